// SPDX-License-Identifier: Apache-2.0

//! Life cycle of a controller: enabling, resets of all kinds, queues.

use nvme::queue::{CreateCq, CreateSq};
use sim::{Bar, Time};
use spec::nvme::properties::{self, Cc, Csts};
use spec::nvme::{admin, Sqe};
use spec::regs::nvme as regs;

use crate::campaign::StepResult;
use crate::generate::{Command, WRONG};
use crate::lockstep::dut::{Cq, Sq};
use crate::lockstep::host::MSI;
use crate::lockstep::locks::RangeLocks;
use crate::lockstep::pair::LockstepPair;
use crate::random::{chance, pick};

/// The value of NSSR that causes a reset: "NVMe".
const SUBSYSTEM_RESET: u32 = 0x4E56_4D65;
/// CSTS.NSSRO.
const RESET_OCCURRED: u32 = 1 << 4;
/// Properties whose values are compared, in dwords.
const PROPERTIES: [u64; 24] = [
    0x00, 0x04, 0x08, 0x0C, 0x10, 0x14, 0x18, 0x1C, 0x20, 0x24, 0x28, 0x2C, 0x30, 0x34, 0x38, 0x3C,
    0xE00, 0xE04, 0xE08, 0xE0C, 0xE10, 0xE14, 0xE18, 0xE1C,
];

/// How the enabled state of a controller ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// CC.EN to 0.
    Disable,
    /// CC.SHN, then CC.EN to 0.
    Shutdown,
    /// NSSR.
    Subsystem,
    /// A function level reset.
    Function,
    /// Loss of power.
    Power,
}

impl Reset {
    /// All of them.
    pub const ALL: [Reset; 5] = [
        Reset::Disable,
        Reset::Shutdown,
        Reset::Subsystem,
        Reset::Function,
        Reset::Power,
    ];

    /// True if the logs restart.
    pub fn is_of_function(self) -> bool {
        matches!(self, Reset::Function | Reset::Power)
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Reset::Disable => "reset: disable",
            Reset::Shutdown => "reset: shutdown",
            Reset::Subsystem => "reset: subsystem",
            Reset::Function => "reset: function",
            Reset::Power => "reset: power",
        }
    }
}

impl LockstepPair {
    /// Enables the controllers for the first time.
    pub fn enable_first(&mut self) -> StepResult {
        self.fill_msix_table()?;
        self.enable()
    }

    /// Fills the MSI-X table, with some vectors masked.
    fn fill_msix_table(&mut self) -> StepResult {
        self.state.masked.clear();
        for vector in 0..=self.shape.last_vector() {
            let masked = vector != 0 && chance(&mut self.random, 12);
            self.set_msix_entry(vector);
            let entry = properties::MSIX_TABLE + properties::MSIX_ENTRY * u64::from(vector);
            self.write32(Bar::Nvme, entry + 12, masked.into());
            if masked {
                self.state.masked.insert(vector);
            }
        }
        Ok(())
    }

    /// Sets address and data of a vector.
    pub fn set_msix_entry(&mut self, vector: u16) {
        let entry = properties::MSIX_TABLE + properties::MSIX_ENTRY * u64::from(vector);
        let addr = MSI.start + 16 * self.random.below(4096);
        let data = self.random.next() as u32 & 0xFFFF_FF00 | u32::from(vector);
        self.write64(Bar::Nvme, entry, addr);
        self.write32(Bar::Nvme, entry + 8, data);
    }

    /// Enables the controllers, and creates some queues.
    pub fn enable(&mut self) -> StepResult {
        let (asq, acq) = match (
            self.arena.alloc_kept(&mut self.random),
            self.arena.alloc_kept(&mut self.random),
        ) {
            (Some(asq), Some(acq)) => (asq, acq),
            _ => return Err("no memory for queues".into()),
        };
        let sq_entries = 8 + self.random.below(56) as u32;
        let cq_entries = 8 + self.random.below(56) as u32;
        let weighted = chance(&mut self.random, 40);
        let mut cc = Cc::DEFAULT
            .with_weighted_round_robin(weighted)
            .with_enable(true)
            .0;
        if chance(&mut self.random, 3) {
            // Entry sizes that no queue supports.
            cc = cc & !(0xFF << 16) | 0x55 << 16;
        }
        self.state.cc = cc;
        self.write_settings(properties::aqa(sq_entries, cq_entries), asq, acq, cc);
        for dut in &mut self.duts {
            dut.sqs.insert(0, Sq::new(asq, sq_entries, 0));
            dut.open_cq(0, Cq::new(acq, cq_entries, Some(0)));
        }
        self.for_each(|dut| {
            dut.wait32(properties::CSTS, "ready", |csts| Csts(csts).ready())
                .map(drop)
        })?;
        self.align_time()?;
        self.properties()?;
        let count = 1 + self.random.below(u64::from(self.shape.limits.queues));
        for _ in 0..count {
            self.create_cq(0)?;
            self.create_sq(0)?;
        }
        Ok(())
    }

    fn write_settings(&mut self, aqa: u32, asq: u64, acq: u64, cc: u32) {
        self.write32(Bar::Nvme, properties::AQA, aqa);
        self.write64(Bar::Nvme, properties::ASQ, asq);
        self.write64(Bar::Nvme, properties::ACQ, acq);
        self.write32(Bar::Nvme, properties::CC, cc);
    }

    /// Compares properties, pending bits and the MSI-X table.
    pub fn properties(&mut self) -> StepResult {
        let vectors = u64::from(self.shape.last_vector()) + 2;
        let table = (0..4 * vectors).map(|n| properties::MSIX_TABLE + 4 * n);
        let pending = (0..4).map(|n| regs::MSIX_PENDING + 4 * n);
        let all = PROPERTIES.into_iter().chain(table).chain(pending);
        let words: Vec<u64> = all.filter(|&at| !self.is_free_word(at)).collect();
        self.compare_registers("BAR0", Bar::Nvme, &words)
    }

    /// True for pending bits that are not determined: with shadow doorbells, those of queues that
    /// were emptied by polling. The controller clears them when it reads the queue's head, which it
    /// does when a command waits for room (`docs/hardware/nvme_ctrl.md`, "Left out").
    pub fn is_free_word(&self, at: u64) -> bool {
        self.duts[0].shadow.is_some() && at >= regs::MSIX_PENDING
    }

    /// Compares the properties after a reset of the function. Addresses and data of messages are
    /// undefined then, but each vector is masked (PCI Express 4.0, 7.7.2.5 to 7.7.2.8).
    fn first_properties(&mut self) -> StepResult {
        let masks = (0..=self.shape.last_vector())
            .map(|n| properties::MSIX_TABLE + properties::MSIX_ENTRY * u64::from(n) + 12);
        let words: Vec<u64> = PROPERTIES.into_iter().chain(masks).collect();
        self.compare_registers("BAR0", Bar::Nvme, &words)
    }

    // ---- queues ----

    fn queue_id(&mut self, wrong: u64, there: &[u16], exists: bool) -> u16 {
        let locks = RangeLocks::default();
        self.generate(wrong, &locks, |g| g.queue_id(there, exists))
    }

    fn completion_queues(&self) -> Vec<u16> {
        self.duts[0]
            .cqs
            .keys()
            .copied()
            .filter(|&q| q != 0)
            .collect()
    }

    /// I/O submission queues.
    pub fn submission_queues(&self) -> Vec<u16> {
        self.duts[0]
            .sqs
            .keys()
            .copied()
            .filter(|&q| q != 0)
            .collect()
    }

    /// Create I/O Completion Queue. `wrong` is the share of errors.
    pub fn create_cq(&mut self, wrong: u64) -> StepResult {
        let cqs = self.completion_queues();
        let locks = RangeLocks::default();
        let Some(command) = self.generate(wrong, &locks, |g| g.create_cq(&cqs)) else {
            return Ok(());
        };
        let cq = CreateCq::of(&command.sqe);
        if self.succeeds(command)? {
            self.arena.keep(cq.base);
            let vector = cq.interrupts.then_some(cq.vector);
            for dut in &mut self.duts {
                dut.open_cq(cq.qid, Cq::new(cq.base, cq.entries, vector));
            }
            self.clear_shadow(cq.qid, true);
        }
        Ok(())
    }

    /// Create I/O Submission Queue. `wrong` is the share of errors.
    pub fn create_sq(&mut self, wrong: u64) -> StepResult {
        let (sqs, cqs) = (self.submission_queues(), self.completion_queues());
        let locks = RangeLocks::default();
        let Some(command) = self.generate(wrong, &locks, |g| g.create_sq(&sqs, &cqs)) else {
            return Ok(());
        };
        let sqe = command.sqe;
        let sq = CreateSq::of(&sqe);
        self.clear_shadow(sq.qid, false);
        if self.succeeds(command)? {
            self.arena.keep(sq.base);
            for dut in &mut self.duts {
                let new = Sq {
                    priority: sqe.dw[11] >> 1 & 3,
                    ..Sq::new(sq.base, sq.entries, sq.cqid)
                };
                dut.sqs.insert(sq.qid, new);
            }
        }
        Ok(())
    }

    /// Shadow doorbell and EventIdx of a new queue are 0.
    fn clear_shadow(&mut self, qid: u16, completion: bool) {
        for dut in &mut self.duts {
            let there = if completion {
                false
            } else {
                dut.sqs.contains_key(&qid)
            };
            if let (Some((doorbells, events)), false) = (dut.shadow, there) {
                let at = 8 * u64::from(qid) + 4 * u64::from(completion);
                if qid <= self.shape.limits.queues && qid != 0 {
                    dut.host.memory.store(doorbells + at, &[0; 4]);
                    dut.host.memory.store(events + at, &[0; 4]);
                }
            }
        }
    }

    /// Deletes an I/O queue, existing or not.
    pub fn delete(&mut self) -> StepResult {
        let submission = chance(&mut self.random, 60);
        let there = if submission {
            self.submission_queues()
        } else {
            self.completion_queues()
        };
        let qid = self.queue_id(WRONG, &there, true);
        let sqe = if submission {
            Sqe::delete_io_sq(qid)
        } else {
            Sqe::delete_io_cq(qid)
        };
        if self.succeeds(Command::plain(sqe))? {
            self.deleted(qid, submission);
        }
        Ok(())
    }

    /// A queue was deleted.
    pub fn deleted(&mut self, qid: u16, submission: bool) {
        let base = match submission {
            true => self.duts[0].sqs.get(&qid).map(|sq| sq.base),
            false => self.duts[0].cqs.get(&qid).map(|cq| cq.base),
        };
        for dut in &mut self.duts {
            match submission {
                true => drop(dut.sqs.remove(&qid)),
                false => dut.close_cq(qid),
            }
        }
        // Its remaining messages.
        let events = self.duts[0].shadow.map(|(_, events)| events);
        self.equalise_pages(&events.into_iter().collect::<Vec<_>>());
        if let Some(base) = base {
            self.equalise_pages(&[base]);
            self.arena.release(base);
        }
    }

    fn succeeds(&mut self, command: Command) -> StepResult<bool> {
        let cqe = self.run_alone(command)?;
        Ok(cqe.is_some_and(|cqe| cqe.status().is_success()))
    }

    /// Doorbell Buffer Config, occasionally with an offset.
    pub fn shadow(&mut self) -> StepResult {
        let (Some(doorbells), Some(events)) = (
            self.arena.alloc(&mut self.random),
            self.arena.alloc(&mut self.random),
        ) else {
            return Ok(());
        };
        if self.duts[0].shadow.is_some() {
            return Ok(());
        }
        let odd = chance(&mut self.random, 10);
        let offset = if odd { 1 << self.random.below(12) } else { 0 };
        for dut in &mut self.duts {
            let mut page = vec![0; 4096];
            let mut set = |at: u16, value: u32| {
                let at = 4 * usize::from(at);
                page[at..at + 4].copy_from_slice(&value.to_le_bytes());
            };
            dut.sqs.iter().for_each(|(&qid, sq)| set(2 * qid, sq.tail));
            dut.cqs
                .iter()
                .for_each(|(&qid, cq)| set(2 * qid + 1, cq.head));
            dut.host.memory.store(doorbells, &page);
            dut.host.memory.store(events, &[0; 4096]);
        }
        let sqe = Sqe::new(admin::DOORBELL_BUFFER_CONFIG).with_prps(doorbells + offset, events);
        // EventIdx of idle queues may be written immediately.
        self.arena.keep(doorbells);
        self.arena.keep(events);
        match self.succeeds(Command::plain(sqe))? {
            true => {
                self.count("shadow doorbells");
                self.duts
                    .iter_mut()
                    .for_each(|dut| dut.shadow = Some((doorbells, events)));
            }
            false => {
                self.arena.release(doorbells);
                self.arena.release(events);
            }
        }
        Ok(())
    }

    // ---- resets ----

    /// Ends the enabled state by a reset. Commands in flight may have been executed or not.
    pub fn end_by_reset(&mut self, reset: Reset) -> StepResult {
        self.count(reset.name());
        self.note(format!("  {reset:?}"));
        let how = 1 + self.random.below(2) as u32;
        let dark = Time::ns(self.random.below(500));
        let cc = self.state.cc;
        self.for_each(|dut| match reset {
            Reset::Disable => {
                dut.write32(Bar::Nvme, properties::CC, cc & !1);
                dut.wait32(properties::CSTS, "not ready", |csts| csts & 3 == 0)
                    .map(drop)
            }
            Reset::Shutdown => {
                let notified = cc | how << 14;
                dut.write32(Bar::Nvme, properties::CC, notified);
                dut.wait32(properties::CSTS, "shut down", |csts| {
                    Csts(csts).shutdown_complete()
                })?;
                dut.write32(Bar::Nvme, properties::CC, cc & !1);
                dut.wait32(properties::CSTS, "not ready", |csts| csts & 1 == 0)
                    .map(drop)
            }
            Reset::Subsystem => {
                dut.write32(Bar::Nvme, properties::NSSR, SUBSYSTEM_RESET);
                let over = |csts: u32| !Csts(csts).ready() && csts & RESET_OCCURRED != 0;
                dut.wait32(properties::CSTS, "reset", over).map(drop)
            }
            Reset::Function => {
                dut.device.function_reset();
                dut.host.forget_link();
                dut.now = dut.now.max(dut.device.now());
                Ok(())
            }
            Reset::Power => {
                dut.device.power_off();
                dut.host.forget_link();
                dut.now = dut.now.max(dut.device.now());
                dut.advance(dut.now + dark)?;
                dut.device.power_on();
                dut.advance(dut.now + Time::ns(100))
            }
        })?;
        self.for_each(|dut| dut.collect(false).map(drop))?;
        self.align_time()?;
        let mut pages: Vec<u64> = Vec::new();
        let left = &self.duts[0];
        pages.extend(
            left.cqs
                .values()
                .map(|cq| cq.base)
                .chain(left.sqs.values().map(|sq| sq.base)),
        );
        pages.extend(left.shadow.iter().flat_map(|&(a, b)| [a, b]));
        self.equalise_pages(&pages);
        pages.iter().for_each(|&page| self.arena.release(page));
        self.state.coalesced = false;
        Ok(())
    }

    /// Restarts the controllers after a reset, once the remaining state was compared.
    pub fn restart(&mut self, reset: Reset) -> StepResult {
        self.duts.iter_mut().for_each(|dut| dut.close_all());
        self.state.parked.clear();
        if reset == Reset::Subsystem {
            self.properties()?;
            self.write32(Bar::Nvme, properties::CSTS, RESET_OCCURRED);
        }
        if reset.is_of_function() {
            self.state.errors = 0;
            self.state.groups.clear();
            self.state.loose_logs = false;
            self.state.loose_counts = false;
            self.state.loose_engines.clear();
            self.first_properties()?;
            self.fill_msix_table()?;
        }
        if chance(&mut self.random, 20) {
            self.unusable()?;
        }
        self.enable()
    }

    /// A submission queue without memory: its first fetch is fatal, and only a reset clears it.
    pub fn fatal(&mut self) -> StepResult {
        let (there, cqs) = (self.submission_queues(), self.completion_queues());
        let left = &self.duts[0];
        let full = there.len() >= usize::from(self.shape.limits.queues);
        if left.shadow.is_some() || full || cqs.is_empty() {
            return Ok(());
        }
        let qid = self.queue_id(0, &there, false);
        let cqid = self.queue_id(0, &cqs, true);
        let base = (1 << 45) + self.random.below(1 << 30) * 4096;
        if !self.succeeds(Command::plain(Sqe::create_io_sq(qid, 8, base, cqid)))? {
            return Ok(());
        }
        self.count("fetches where no memory is");
        self.write32(Bar::Nvme, properties::sq_doorbell(qid, 4), 1);
        self.for_each(|dut| {
            dut.wait32(properties::CSTS, "fatal", |csts| Csts(csts).fatal())
                .map(drop)
        })?;
        self.wait_until_idle()?;
        self.properties()?;
        self.compare_messages(false)?;
        let resets = [
            Reset::Disable,
            Reset::Subsystem,
            Reset::Function,
            Reset::Power,
        ];
        let reset = pick(&mut self.random, &resets);
        self.end_by_reset(reset)?;
        self.compare_memory(None)?;
        self.restart(reset)
    }

    /// Enables with invalid settings: the controllers report CFS instead of ready.
    fn unusable(&mut self) -> StepResult {
        self.count("unusable settings");
        let page = 1 << 32;
        let right = Cc::DEFAULT.with_enable(true).0;
        let (mut cc, mut aqa, mut asq, mut acq) = (right, properties::aqa(8, 8), page, page + 4096);
        match self.random.below(7) {
            0 => cc |= 1 << (7 + self.random.below(4)),
            1 => cc |= 1 << (4 + self.random.below(3)),
            2 => aqa &= 0xFFF,
            3 => aqa &= 0xFFF << 16,
            4 => asq = 0,
            5 => cc |= (2 + self.random.below(6) as u32) << 11,
            _ => acq = 0,
        }
        self.write_settings(aqa, asq, acq, cc);
        self.for_each(|dut| {
            dut.wait32(properties::CSTS, "fatal", |csts| Csts(csts).fatal())
                .map(drop)
        })?;
        self.properties()?;
        self.write32(Bar::Nvme, properties::CC, cc & !1);
        self.for_each(|dut| {
            dut.wait32(properties::CSTS, "not fatal", |csts| csts & 3 == 0)
                .map(drop)
        })?;
        self.align_time()
    }
}
