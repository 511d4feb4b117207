// SPDX-License-Identifier: Apache-2.0

//! A submission queue and the completion queue that answers it.

use std::collections::VecDeque;

use sim::{Bar, Time};
use spec::nvme::{properties, Cqe, Sqe, Status, CQE_BYTES, PAGE_BYTES, SQE_BYTES};

use crate::{Error, Host, Result};

/// The driver's record of a command in flight.
#[derive(Clone, Debug)]
struct PendingCommand {
    tag: u64,
    name: &'static str,
    submitted: Time,
    lists: Vec<u64>,
}

/// A completed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The caller's identifier of the command.
    pub tag: u64,
    /// The name of the command.
    pub command: &'static str,
    /// Its status.
    pub status: Status,
    /// DW0 of the completion.
    pub result: u32,
    /// When the host started to submit it.
    pub submitted: Time,
    /// When the host observed its completion.
    pub completed: Time,
}

impl Completion {
    /// From submission to observed completion.
    pub fn latency(&self) -> Time {
        self.completed.saturating_sub(self.submitted)
    }

    /// `Ok` for Successful Completion, else the status as an error.
    pub fn check(&self) -> Result<()> {
        if self.status.is_success() {
            return Ok(());
        }
        Err(Error::Status {
            command: self.command.into(),
            status: self.status,
        })
    }
}

/// A queue pair with the same number of entries in both queues.
#[derive(Debug)]
pub(crate) struct QueuePair {
    pub qid: u16,
    pub cpu: usize,
    pub entries: u32,
    pub sq: u64,
    pub cq: u64,
    /// The interrupt vector, unless the host polls.
    pub vector: Option<u16>,
    /// The interrupt handler runs, until the queue is empty.
    pub awake: bool,
    stride: u64,
    tail: u32,
    rung_tail: u32,
    sq_head: u32,
    head: u32,
    rung_head: u32,
    phase: bool,
    slots: Vec<Option<PendingCommand>>,
    free: VecDeque<u16>,
}

impl QueuePair {
    pub fn new<H: Host>(
        host: &mut H,
        qid: u16,
        cpu: usize,
        entries: u32,
        stride: u64,
    ) -> Result<QueuePair> {
        let sq = host.alloc(u64::from(entries) * SQE_BYTES as u64, PAGE_BYTES)?;
        let cq_bytes = u64::from(entries) * CQE_BYTES as u64;
        let cq = match host.alloc(cq_bytes, PAGE_BYTES) {
            Ok(cq) => cq,
            Err(error) => {
                host.free(sq, u64::from(entries) * SQE_BYTES as u64);
                return Err(error);
            }
        };
        host.watch(cq, cq_bytes);
        Ok(QueuePair {
            qid,
            cpu,
            entries,
            sq,
            cq,
            vector: None,
            awake: false,
            stride,
            tail: 0,
            rung_tail: 0,
            sq_head: 0,
            head: 0,
            rung_head: 0,
            phase: true,
            slots: vec![None; entries as usize],
            // Identifiers are reused as late as possible, so that a duplicate completion refers to
            // an unused one.
            free: (0..entries as u16).collect(),
        })
    }

    pub fn release<H: Host>(&mut self, host: &mut H) {
        host.unwatch(self.cq);
        host.free(self.sq, u64::from(self.entries) * SQE_BYTES as u64);
        host.free(self.cq, u64::from(self.entries) * CQE_BYTES as u64);
    }

    /// List pages of commands that will never complete.
    pub fn abandon(&mut self) -> Vec<u64> {
        self.slots
            .iter_mut()
            .filter_map(Option::take)
            .flat_map(|p| p.lists)
            .collect()
    }

    /// Commands in flight.
    pub fn outstanding(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Identifiers of the commands in flight.
    pub fn in_flight(&self) -> Vec<u16> {
        let slots = (0..).zip(&self.slots);
        slots
            .filter_map(|(cid, slot)| slot.is_some().then_some(cid))
            .collect()
    }

    /// Whether there is space for one more: a queue of n entries holds n - 1.
    pub fn has_room(&self) -> bool {
        (self.tail + 1) % self.entries != self.sq_head && !self.free.is_empty()
    }

    /// Places a command; `ring` notifies the controller.
    pub fn push<H: Host>(
        &mut self,
        host: &mut H,
        sqe: Sqe,
        name: &'static str,
        tag: u64,
        submitted: Time,
        lists: Vec<u64>,
    ) -> Result<()> {
        if !self.has_room() {
            return Err(Error::Invalid(format!(
                "submission queue {} is full",
                self.qid
            )));
        }
        let Some(cid) = self.free.pop_front() else {
            return Err(Error::Invalid(format!(
                "no command identifier is free on queue {}",
                self.qid
            )));
        };
        let at = self.sq + u64::from(self.tail) * SQE_BYTES as u64;
        host.dma_write(at, &sqe.with_cid(cid).to_bytes());
        self.tail = (self.tail + 1) % self.entries;
        self.slots[usize::from(cid)] = Some(PendingCommand {
            tag,
            name,
            submitted,
            lists,
        });
        Ok(())
    }

    /// Whether `ring` has something to write.
    pub fn unrung(&self) -> bool {
        self.tail != self.rung_tail || self.head != self.rung_head
    }

    /// Writes the doorbells that have changed.
    pub fn ring<H: Host>(&mut self, host: &mut H) -> Result<()> {
        while self.unrung() {
            self.ring_next(host)?;
        }
        Ok(())
    }

    /// Writes one doorbell that has changed: that of the completion queue first.
    pub fn ring_next<H: Host>(&mut self, host: &mut H) -> Result<()> {
        if self.head != self.rung_head {
            let offset = properties::cq_doorbell(self.qid, self.stride);
            host.write32(Bar::Nvme, offset, self.head)?;
            self.rung_head = self.head;
        } else if self.tail != self.rung_tail {
            let offset = properties::sq_doorbell(self.qid, self.stride);
            host.write32(Bar::Nvme, offset, self.tail)?;
            self.rung_tail = self.tail;
        }
        Ok(())
    }

    /// The completion at the head of the queue, if the controller has written one.
    pub fn peek<H: Host>(&self, host: &mut H) -> Option<Cqe> {
        let mut bytes = [0; CQE_BYTES];
        host.dma_read(
            self.cq + u64::from(self.head) * CQE_BYTES as u64,
            &mut bytes,
        );
        let cqe = Cqe::from_bytes(&bytes);
        (cqe.phase() == self.phase).then_some(cqe)
    }

    /// Accepts the completion that `peek` returned. Also returns the list pages of its command.
    pub fn accept(&mut self, cqe: Cqe, now: Time) -> Result<(Completion, Vec<u64>)> {
        self.head += 1;
        if self.head == self.entries {
            self.head = 0;
            self.phase = !self.phase;
        }
        let bad = |what: String| {
            Err(Error::Misbehaviour(format!(
                "completion queue {}: {what}",
                self.qid
            )))
        };
        if cqe.sqid() != self.qid {
            return bad(format!("a completion for submission queue {}", cqe.sqid()));
        }
        if u32::from(cqe.sq_head()) >= self.entries {
            return bad(format!(
                "SQ head {} in a queue of {}",
                cqe.sq_head(),
                self.entries
            ));
        }
        let Some(pending) = self
            .slots
            .get_mut(usize::from(cqe.cid()))
            .and_then(Option::take)
        else {
            return bad(format!(
                "a completion for command identifier {}, which is not in use",
                cqe.cid()
            ));
        };
        self.sq_head = u32::from(cqe.sq_head());
        self.free.push_back(cqe.cid());
        let completion = Completion {
            tag: pending.tag,
            command: pending.name,
            status: cqe.status(),
            result: cqe.result(),
            submitted: pending.submitted,
            completed: now,
        };
        Ok((completion, pending.lists))
    }
}
