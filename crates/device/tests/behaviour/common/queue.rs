// SPDX-License-Identifier: Apache-2.0

//! A bare NVMe host for tests: queues without a driver, so that the test chooses identifiers,
//! phases and waiting requests.

use driver::{Host, SimHost};
use sim::{Bar, Time};
use spec::nvme::properties::{self, Cc, Csts};
use spec::nvme::{Cqe, Sqe, CQE_BYTES, SQE_BYTES};

use super::rest;

/// Entries of each queue.
const ENTRIES: u32 = 16;
/// The longest time that anything may take.
const PATIENCE: Time = Time::ms(50);

/// A submission queue and its completion queue.
pub struct Queue {
    /// Its identifier.
    pub qid: u16,
    /// Address of the submission queue.
    pub sq: u64,
    /// Address of the completion queue.
    pub cq: u64,
    tail: u32,
    head: u32,
    phase: bool,
}

impl Queue {
    /// Memory for one queue pair.
    pub fn new(host: &mut SimHost, qid: u16) -> Queue {
        let sq = host.alloc(4096, 4096).unwrap();
        let cq = host.alloc(4096, 4096).unwrap();
        Queue {
            qid,
            sq,
            cq,
            tail: 0,
            head: 0,
            phase: true,
        }
    }

    fn doorbell(&self, completion: bool) -> u64 {
        let number = 2 * u64::from(self.qid) + u64::from(completion);
        properties::DOORBELLS + 4 * number
    }

    /// Filling the submission queue is a mistake of the caller: there is never more than one
    /// command in addition to the waiting requests.
    pub fn push(&mut self, host: &mut SimHost, sqe: Sqe) {
        let at = self.sq + u64::from(self.tail) * SQE_BYTES as u64;
        host.dma_write(at, &sqe.to_bytes());
        self.tail = (self.tail + 1) % ENTRIES;
        host.write32(Bar::Nvme, self.doorbell(false), self.tail)
            .unwrap();
    }

    /// The next completion, if it is there.
    pub fn pop(&mut self, host: &mut SimHost) -> Option<Cqe> {
        let mut bytes = [0; CQE_BYTES];
        host.dma_read(
            self.cq + u64::from(self.head) * CQE_BYTES as u64,
            &mut bytes,
        );
        let cqe = Cqe::from_bytes(&bytes);
        if cqe.phase() != self.phase {
            return None;
        }
        self.head = (self.head + 1) % ENTRIES;
        self.phase ^= self.head == 0;
        host.write32(Bar::Nvme, self.doorbell(true), self.head)
            .unwrap();
        Some(cqe)
    }

    /// Waits for the next completion.
    pub fn wait(&mut self, host: &mut SimHost) -> Cqe {
        let limit = host.now() + PATIENCE;
        loop {
            if let Some(cqe) = self.pop(host) {
                return cqe;
            }
            assert!(host.now() < limit, "no completion within {PATIENCE}");
            rest(host, Time::us(1));
        }
    }

    /// The commands that create it as an I/O queue.
    pub fn create(&self) -> [Sqe; 2] {
        [
            Sqe::create_io_cq(self.qid, ENTRIES, self.cq, None),
            Sqe::create_io_sq(self.qid, ENTRIES, self.sq, self.qid),
        ]
    }
}

/// Disables the controller and enables it again: its admin queue.
pub fn enable(host: &mut SimHost) -> Queue {
    let admin = Queue::new(host, 0);
    for on in [false, true] {
        let cc = Cc::DEFAULT.with_enable(on);
        if on {
            let aqa = properties::aqa(ENTRIES, ENTRIES);
            host.write32(Bar::Nvme, properties::AQA, aqa).unwrap();
            host.write64(Bar::Nvme, properties::ASQ, admin.sq).unwrap();
            host.write64(Bar::Nvme, properties::ACQ, admin.cq).unwrap();
        }
        host.write32(Bar::Nvme, properties::CC, cc.0).unwrap();
        let limit = host.now() + PATIENCE;
        while Csts(host.read32(Bar::Nvme, properties::CSTS).unwrap()).ready() != on {
            assert!(host.now() < limit, "CSTS.RDY");
        }
    }
    admin
}
