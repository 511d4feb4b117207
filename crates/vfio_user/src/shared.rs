// SPDX-License-Identifier: Apache-2.0

//! State that the threads of a served device share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::irq::Vectors;
use crate::log::Log;
use crate::memory::GuestMemory;
use crate::stats::Stats;

/// Log lines that follow a fault.
const RECOVERY_HINT: [&str; 3] = [
    "registers read all ones until a function level reset; `nvme reset` only resets the \
        controller. In a Linux guest, as root:",
    "  cd /sys/bus/pci/devices/ADDRESS    # `grep -l 0x4e53 /sys/bus/pci/devices/*/vendor` names \
        it",
    "  echo ADDRESS > driver/unbind; echo 1 > reset; echo ADDRESS > /sys/bus/pci/drivers/nvme/bind",
];

/// State that connection and device share.
pub(crate) struct SharedState {
    pub memory: GuestMemory,
    pub vectors: Vectors,
    pub stats: Stats,
    /// The device's name for log lines.
    name: String,
    log: Log,
    /// A read of the device was not answered. Configuration space reports it.
    pub master_abort: AtomicBool,
    /// A request was sent, so the simulation should return.
    pub request_pending: AtomicBool,
    /// The device's thread has to end.
    pub stop: AtomicBool,
    /// Accesses that found no memory of this client.
    unmet: AtomicU64,
}

impl SharedState {
    pub(crate) fn new(name: String, log: Log, vectors: u16) -> SharedState {
        SharedState {
            memory: GuestMemory::default(),
            vectors: Vectors::new(vectors),
            stats: Stats::default(),
            name,
            log,
            master_abort: AtomicBool::new(false),
            request_pending: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            unmet: AtomicU64::new(0),
        }
    }

    pub(crate) fn report(&self, line: &str) {
        self.log.report(&self.name, line);
    }

    /// Counts a fault of the device, and reports it.
    pub(crate) fn report_fault(&self, fault: &str) {
        self.stats.faults.add(1);
        self.report(fault);
        RECOVERY_HINT.iter().for_each(|line| self.report(line));
    }

    /// Counts an access of the device that found no memory, and reports the client's first one.
    /// Without bus mastering, no access is expected to find memory.
    pub(crate) fn refuse_access(&self, write: bool, addr: u64, len: usize) {
        self.stats.refused_accesses.add(1);
        if !self.memory.bus_master() {
            return;
        }
        if !write {
            self.master_abort.store(true, Ordering::Relaxed);
        }
        if self.unmet.fetch_add(1, Ordering::Relaxed) == 0 {
            let why = self.memory.explain_failure(addr, len, write);
            let what = match write {
                true => format!("a write of {len} bytes to {addr:#x} is lost"),
                false => format!("a read of {len} bytes from {addr:#x} fails"),
            };
            self.report(&format!("DMA: {what}: {why}. Further ones are counted"));
        }
    }

    /// The client is gone.
    pub(crate) fn report_unmet_accesses(&self) {
        let unmet = self.unmet.swap(0, Ordering::Relaxed);
        if unmet > 1 {
            let line = format!("{unmet} DMA accesses of this client found no memory");
            self.report(&line);
        }
    }
}
