// SPDX-License-Identifier: Apache-2.0

//! Engines from a folder outside of `hw/engine`: host memory, interrupts, resets.

mod common;

use common::Bench;
use sim::{Bar, Device, Time};
use spec::nvme::properties::{MSIX_ENTRY, MSIX_TABLE};

const MESSAGE: u64 = 0xFEE0_1000;
/// I/O queues and the admin queue have the first vectors.
const QUEUES: u64 = 3;
const VECTORS: u64 = 3;

#[test]
fn interrupt_vectors_are_queues_then_engines() {
    let design = common::designs::mailboxes();
    assert_eq!(design.vectors().unwrap(), 3 + 3 + 1 + 3);
}

/// Offsets of the engines in BAR4.
const A: u64 = 0x8_0000;
const COPY: u64 = 0x8_2000;
const B: u64 = 0x8_4000;

impl Bench {
    fn vector(&mut self, vector: u64, masked: bool) {
        let entry = MSIX_TABLE + MSIX_ENTRY * vector;
        self.write32(Bar::Nvme, entry, (MESSAGE + 4 * vector) as u32);
        self.write32(Bar::Nvme, entry + 4, 0);
        self.write32(Bar::Nvme, entry + 8, 0x100 + vector as u32);
        self.write32(Bar::Nvme, entry + 12, masked.into());
        self.cycles(50);
    }

    fn launch(&mut self, engine: u64, arguments: &[u64]) {
        for (n, value) in (0..).zip(arguments) {
            let at = engine + 0x20 + 0x10 * n;
            self.write32(Bar::Control, at, *value as u32);
            self.write32(Bar::Control, at + 4, (*value >> 32) as u32);
        }
        self.write32(Bar::Control, engine + 0xC, 1);
        self.write32(Bar::Control, engine, 1);
        self.cycles(60);
    }

    fn result(&mut self, engine: u64) -> u32 {
        for _ in 0..1000 {
            if self.read32(Bar::Control, engine + 0xC) & 1 == 1 {
                return self.read32(Bar::Control, engine + 0x10);
            }
            self.cycles(100);
        }
        panic!("the engine at {engine:#x} has not ended");
    }

    /// Positions in the log of the messages of a vector.
    fn messages(&self, vector: u64) -> Vec<usize> {
        let data = (0x100 + vector as u32).to_le_bytes();
        let is = |(_, kind, addr, value): &(Time, &str, u64, Vec<u8>)| {
            *kind == "write" && *addr == MESSAGE + 4 * vector && value[..] == data
        };
        (0..self.host.log.len())
            .filter(|&n| is(&self.host.log[n]))
            .collect()
    }

    /// Position in the log of the last write below an address.
    fn last_write(&self, below: u64, from: u64) -> usize {
        let log = &self.host.log;
        let is = |n: &usize| log[*n].1 == "write" && (from..below).contains(&log[*n].2);
        (0..log.len()).rev().find(is).unwrap()
    }
}

#[test]
#[ignore = "compiles a separate device"]
fn interrupt_of_an_engine_follows_its_data() {
    let mut b = common::mailbox_bench();
    for vector in 0..QUEUES + 2 * VECTORS + 1 {
        b.vector(vector, false);
    }
    for (gap, count) in [(0, 1), (0, 40), (3, 100), (11, 33)] {
        b.host.write_gap = Time::ns(100 * gap);
        b.host.log.clear();
        b.launch(A, &[0x1000, count, 7, 2]);
        b.launch(B, &[0x8000, count / 2 + 1, 9, 0]);
        assert_eq!((b.result(A), b.result(B)), (0, 0));
        let (from_a, from_b) = (b.messages(QUEUES + 2), b.messages(QUEUES + 4));
        assert_eq!((from_a.len(), from_b.len()), (1, 1), "{gap} {count}");
        assert!(from_a[0] > b.last_write(0x8000, 0x1000));
        assert!(from_b[0] > b.last_write(1 << 20, 0x8000));
        let line = |at: usize, value: u64| {
            (0..8).all(|n| b.host.memory[at + 8 * n..][..8] == value.to_le_bytes())
        };
        assert!((0..count).all(|n| line(0x1000 + 64 * n as usize, 7 + n)));
        let others = [0, 1, 2, 3, 4, 6, 8, 9].map(|v| b.messages(v).len());
        assert_eq!(others, [0; 8]);
    }
}

#[test]
#[ignore = "compiles a separate device"]
fn interrupt_masked_vectors_stay_pending_over_a_controller_reset() {
    let mut b = common::mailbox_bench();
    b.vector(QUEUES, true);
    b.launch(A, &[0x1000, 3, 0, 0]);
    assert_eq!(b.result(A), 0);
    b.cycles(500);
    assert_eq!(b.messages(QUEUES).len(), 0);
    let pending = b.read32(Bar::Nvme, spec::regs::nvme::MSIX_PENDING);
    assert_eq!(pending, 1 << QUEUES);
    // CC.EN from 1 to 0 clears only the pending bits of the controller.
    b.write32(Bar::Nvme, 0x14, 0x46_0001);
    b.cycles(500);
    b.write32(Bar::Nvme, 0x14, 0x46_0000);
    b.cycles(2000);
    b.vector(QUEUES, false);
    b.cycles(200);
    assert_eq!(b.messages(QUEUES).len(), 1);
    b.device.set_msix(true, true);
    b.launch(A, &[0x1000, 3, 0, 0]);
    assert_eq!(b.result(A), 0);
    assert_eq!(b.messages(QUEUES).len(), 1);
    b.device.set_msix(true, false);
    b.cycles(200);
    assert_eq!(b.messages(QUEUES).len(), 2);
}

#[test]
#[ignore = "compiles a separate device"]
fn engine_host_access_refused_is_an_error() {
    let mut b = common::mailbox_bench();
    b.host.bad_from = 0x1400;
    b.launch(A, &[0x13C0, 4, 0, 0]);
    assert_eq!(b.result(A), 1, "read error");
    b.host.bad_from = 1 << 20;
    b.launch(B, &[0x4000, 40, 0, 0]);
    assert_eq!(b.result(B), 0);
}

#[test]
#[ignore = "compiles a separate device"]
fn function_reset_ends_engine_jobs() {
    for after in [1, 5, 17, 40, 90] {
        let mut b = common::mailbox_bench();
        b.host.write_gap = Time::ns(200);
        b.vector(QUEUES, false);
        b.launch(A, &[0x1000, 60, 0, 0]);
        b.launch(COPY, &[0, 1 << 20, 1 << 16]);
        b.cycles(after);
        b.function_reset();
        b.host.log.clear();
        b.cycles(1000);
        assert_eq!(b.host.log, [], "nothing of the life before");
        for engine in [A, COPY, B] {
            assert_eq!(b.read32(Bar::Control, engine) & 4, 4, "idle");
        }
        b.vector(QUEUES, false);
        b.launch(A, &[0x1000, 60, 3, 0]);
        assert_eq!(b.result(A), 0);
        assert_eq!(b.messages(QUEUES).len(), 1);
    }
}
