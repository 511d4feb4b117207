// SPDX-License-Identifier: Apache-2.0

//! A host that does not answer: reads of its memory are given up after 25 to 50 ms (README of
//! nvme_ctrl).

use sim::{Bar, Time};
use spec::nvme::properties::{self, Cc, Csts, CSTS};
use spec::nvme::{io, status, Cqe, Sqe, Status, CQE_BYTES, SQE_BYTES};

use crate::common::{two_memories, Bench};

/// Addresses of queues and data. No read from `SILENT` on is answered.
const QUEUES: u64 = 0x1_0000;
const DATA: u64 = 0x3_0000;
const SILENT: u64 = 0x8_0000;
/// Entries of each queue.
const ENTRIES: u64 = 16;
/// The shortest and longest wait of a read, with a little for polling and the command.
const LEAST: Time = Time::ms(25);
const MOST: Time = Time::ms(51);
/// Interval of the polls for completions.
const LOOK: Time = Time::us(100);

/// A device, its admin queue and one I/O queue.
struct Silent {
    b: Bench,
    tails: [u64; 2],
    heads: [u64; 2],
}

fn sq(qid: usize) -> u64 {
    QUEUES + 0x2000 * qid as u64
}

fn cq(qid: usize) -> u64 {
    sq(qid) + 0x1000
}

/// A command for one block, in or out, from the start of namespace 1.
fn block(opcode: u8, lba: u64, prp1: u64) -> Sqe {
    Sqe::of_blocks(opcode, 1, lba, 1).with_prps(prp1, 0)
}

impl Silent {
    fn new() -> Silent {
        let mut b = Bench::patient(&two_memories());
        b.host.memory[DATA as usize..][..8192].fill(0x5A);
        b.host.memory[SILENT as usize..][..8192].fill(0xA5);
        let mut silent = Silent {
            b,
            tails: [0; 2],
            heads: [0; 2],
        };
        silent.enable();
        silent
    }

    fn enable(&mut self) {
        self.b.host.lost_from = u64::MAX;
        self.b.host.memory[QUEUES as usize..][..0x4000].fill(0);
        (self.tails, self.heads) = ([0; 2], [0; 2]);
        let entries = ENTRIES as u32;
        let aqa = properties::aqa(entries, entries);
        self.b.write32(Bar::Nvme, properties::AQA, aqa);
        self.b.write32(Bar::Nvme, properties::ASQ, sq(0) as u32);
        self.b.write32(Bar::Nvme, properties::ACQ, cq(0) as u32);
        let cc = Cc::DEFAULT.with_enable(true);
        self.b.write32(Bar::Nvme, properties::CC, cc.0);
        while !Csts(self.b.read32(Bar::Nvme, CSTS)).ready() {}
        for sqe in [
            Sqe::create_io_cq(1, entries, cq(1), None),
            Sqe::create_io_sq(1, entries, sq(1), 1),
        ] {
            self.push(0, sqe);
            assert_eq!(self.wait(0).0, status::SUCCESS);
        }
        self.b.host.lost_from = SILENT;
    }

    fn push(&mut self, qid: usize, sqe: Sqe) {
        let at = (sq(qid) + self.tails[qid] * SQE_BYTES as u64) as usize;
        self.b.host.memory[at..at + SQE_BYTES].copy_from_slice(&sqe.to_bytes());
        self.tails[qid] = (self.tails[qid] + 1) % ENTRIES;
        let doorbell = properties::sq_doorbell(qid as u16, 4);
        let tail = self.tails[qid] as u32;
        self.b.write32(Bar::Nvme, doorbell, tail);
    }

    /// The next completion of the queue's first lap: its status, and the time that it took.
    fn wait(&mut self, qid: usize) -> (Status, Time) {
        let begin = self.b.device.now();
        loop {
            let at = (cq(qid) + self.heads[qid] * CQE_BYTES as u64) as usize;
            let bytes = self.b.host.memory[at..at + CQE_BYTES].try_into().unwrap();
            let cqe = Cqe::from_bytes(&bytes);
            let took = self.b.device.now().saturating_sub(begin);
            if cqe.phase() {
                self.heads[qid] += 1;
                return (cqe.status(), took);
            }
            assert!(took < Time::ms(120), "no completion");
            self.b.run(LOOK);
        }
    }

    fn run(&mut self, sqe: Sqe) -> (Status, Time) {
        self.push(1, sqe);
        self.wait(1)
    }

    fn given_up(&mut self, sqe: Sqe) {
        let (ended, took) = self.run(sqe);
        assert_eq!(ended, status::DATA_TRANSFER_ERROR);
        assert!((LEAST..MOST).contains(&took), "{took}");
    }

    fn done(&mut self, sqe: Sqe) {
        let (ended, took) = self.run(sqe);
        assert_eq!(ended, status::SUCCESS);
        assert!(took < Time::ms(1), "{took}");
    }
}

mod sampled {
    use super::*;

    #[test]
    fn lost_data_is_an_error_and_late_data_is_dropped() {
        let mut s = Silent::new();
        s.given_up(block(io::WRITE, 0, SILENT));
        assert_eq!(s.b.byte(0), 0);
        // In step: the next command of the channel waits until the first is given up, and gets the
        // right data.
        s.push(1, block(io::WRITE, 1, DATA));
        s.b.run(Time::ms(5));
        let now = s.b.device.now();
        s.b.host.answer_lost(now);
        let (ended, took) = s.wait(1);
        assert_eq!(ended, status::SUCCESS);
        assert!(took < Time::ms(1), "{took}");
        let bytes = [0, 512, 1023].map(|at| s.b.byte(at));
        assert_eq!(bytes, [0, 0x5A, 0x5A]);
        s.done(block(io::WRITE, 0, DATA));
        assert_eq!(s.b.byte(511), 0x5A);
    }
}

#[test]
fn lost_read_holds_its_channel_until_a_function_reset() {
    let mut s = Silent::new();
    s.given_up(block(io::WRITE, 0, SILENT));
    s.given_up(block(io::WRITE, 0, DATA));
    // Data to the host are not affected.
    s.done(block(io::READ, 0, DATA + 4096));
    s.b.function_reset();
    s.enable();
    s.done(block(io::WRITE, 0, DATA));
    assert_eq!(s.b.byte(0), 0x5A);
}

#[test]
fn lost_prp_list_is_an_error() {
    let mut s = Silent::new();
    s.given_up(Sqe::of_blocks(io::WRITE, 1, 0, 32).with_prps(DATA, SILENT));
}

#[test]
fn lost_queue_entry_is_fatal() {
    let mut s = Silent::new();
    s.b.host.lost_from = sq(1);
    s.push(1, block(io::READ, 0, DATA));
    let begin = s.b.device.now();
    while !Csts(s.b.read32(Bar::Nvme, CSTS)).fatal() {
        let took = s.b.device.now().saturating_sub(begin);
        assert!(took < MOST, "{took}");
        s.b.run(LOOK);
    }
    let took = s.b.device.now().saturating_sub(begin);
    assert!(took >= LEAST, "{took}");
    s.b.function_reset();
    s.enable();
    s.done(block(io::WRITE, 0, DATA));
}
