// SPDX-License-Identifier: Apache-2.0

//! Steps: actions of the hosts, each generated from a seed.
//!
//! # What is generated
//!
//! Of 100 steps:
//!
//! - 37 are bursts of 2 to 40 I/O commands on all queues. They use separate blocks; one burst in
//!   five has blocks in common. A tenth of the commands is for engines (`count`, `filter`,
//!   `copy`), on blocks that no other command uses, not even one with a wrong namespace.
//! - 8 are single I/O commands, a third of them with an error.
//! - 5 are measurements, with delays disabled and fixed timing of the host. They are sequential
//!   reads or writes, concurrent reads of whole pages, and concurrent flushes, also by the
//!   priority of queues with separate weights.
//! - 16 are 1 to 5 admin commands: Identify, logs, features, event requests, Abort, Keep Alive,
//!   Format NVM, any other opcode.
//! - 3 are fused pairs and halves. 1 is a first half that waits for its partner without room in
//!   the completion queue, with an Abort of one of both.
//! - 5 create and delete I/O queues. 3 are loads and stores of the PM window, also beyond its
//!   media.
//! - 5 are jobs of engines, in registers and up to four lines of each command page, beside I/O
//!   commands. Lines are written in parts of any order. Jobs use any bytes of the media; some are
//!   invalid, lie beyond the media, or have reserved bits set.
//! - Jobs of the pipeline, also as NVMe commands, have 1 to 16 entries that read the output of
//!   earlier ones; some entries are wrong. Interrupts are on or off. One step in five stops the
//!   jobs of registers.
//! - 4 are accesses of BAR4: status block, QoS, registers and commits of `nvm_delay`, snapshots
//!   of its counters, and absent offsets.
//! - 2 are loads and stores of BAR0 of any size, and 2 are wrong doorbells.
//! - 1 masks, changes and unmasks interrupts by entry and by function, or disables MSI-X.
//! - 2 are Doorbell Buffer Config, or Keep Alive Timeouts, expired or not, beside other commands.
//! - 2 are long commands with Aborts, a queue deleted with its commands, commands of milliseconds
//!   that have to be ended, or a queue without memory (CFS).
//! - 0.05 are writes whose data never arrive, not even by the link's timeout, and a reset of the
//!   function. They take 25 to 50 ms of simulated time: 50 s of the RTL model at 300 MHz.
//! - 4 are resets, idle or during a burst, a third of the latter with jobs in registers and
//!   pages. They are a disable, a shutdown, a subsystem or function reset, or a power cut,
//!   occasionally followed by invalid settings.
//!
//! A quarter of the episodes has a memory with a random latency of each access. A read without
//! memory fails after 100 to 500 ns. One in twelve fails after up to 250 us, as by the link's
//! completion timeout. An invalid command has one error only, as the controller may report either
//! of two.

use sim::{Bar, Time};
use spec::bar4;
use spec::nvme::properties::{self, Csts};
use spec::nvme::{admin, feature, io, Sqe};
use spec::regs::{nvm_delay, nvme as regs, qos};

use crate::campaign::StepResult;
use crate::generate::{Command, WRONG};
use crate::lockstep::effects::PlannedCommand;
use crate::lockstep::lifecycle::Reset;
use crate::lockstep::locks::RangeLocks;
use crate::lockstep::pair::{takes_long, AllowedDifferences, LockstepPair, Sent};
use crate::random::{bytes, chance, pick};
use crate::BLOCK;
use crate::PAGE;

/// Most commands of a burst.
const BURST: u64 = 40;
/// Longest time until a burst is cut by a reset, ns.
const CUT: u64 = 12_000;
/// Time in which a command is fetched, and an Abort executed, ns.
const HALF: u64 = 20_000;

impl LockstepPair {
    /// Runs one step.
    pub fn step(&mut self) -> StepResult {
        match self.random.below(100) {
            0..=36 => self.burst(),
            37..=44 => self.single(),
            45..=49 => self.timed(),
            50..=65 => self.admin(),
            66..=68 => self.fused(),
            69 => self.fused_half(),
            70..=74 => self.change_queues(),
            75..=77 => self.access_pm_window(),
            78..=82 => self.engines(),
            83..=86 => self.access_bar4(),
            87 | 88 => self.access_bar0(),
            89 | 90 => self.bad_doorbell(),
            91 => self.change_masks(),
            92 | 93 => match chance(&mut self.random, 40) {
                true => self.shadow(),
                false => self.keep_alive(),
            },
            94 => match chance(&mut self.random, 70) {
                true => self.abort(),
                false => self.endless(),
            },
            95 => match self.random.below(100) {
                0..=59 => self.delete_busy(),
                60..=94 => self.fatal(),
                // Milliseconds of simulated time, cycle by cycle: several seconds of the RTL model.
                _ => self.silence(),
            },
            96 | 97 => self.reset(),
            _ => self.cut_burst(),
        }
    }

    // ---- I/O ----

    /// Submission queues, and the number of commands that fit into each.
    pub(crate) fn queue_rooms(&self) -> Vec<(u16, u32)> {
        let queues = self.duts[0].sqs.iter().filter(|(&qid, _)| qid != 0);
        queues.map(|(&qid, sq)| (qid, sq.entries - 1)).collect()
    }

    /// Submits I/O commands, with a doorbell for several at a time.
    pub(crate) fn submit(&mut self, count: u64, wrong: u64, locks: &mut RangeLocks) -> Vec<Sent> {
        self.submit_after(Vec::new(), count, wrong, locks)
    }

    /// As `submit`, after commands that were generated before.
    pub(crate) fn submit_after(
        &mut self,
        first: Vec<PlannedCommand>,
        count: u64,
        wrong: u64,
        locks: &mut RangeLocks,
    ) -> Vec<Sent> {
        let mut queue_rooms = self.queue_rooms();
        let mut sent = Vec::new();
        let mut silent = Vec::new();
        let mut first = first.into_iter();
        for _ in 0..count + first.len() as u64 {
            queue_rooms.retain(|room| room.1 > 0);
            if queue_rooms.is_empty() {
                break;
            }
            let n = self.random.below(queue_rooms.len() as u64) as usize;
            let generated = first.next();
            let generated = generated.or_else(|| self.generate_io(wrong, locks));
            let Some(planned) = generated else {
                continue;
            };
            let qid = queue_rooms[n].0;
            queue_rooms[n].1 -= 1;
            sent.push(self.push_planned(qid, planned));
            silent.push(qid);
            if chance(&mut self.random, 25) {
                self.ring_sqs(&std::mem::take(&mut silent));
            }
        }
        self.ring_sqs(&silent);
        sent
    }

    /// Commands with several permitted results, such as comparisons beside writes of the same
    /// blocks.
    pub(crate) fn races(sent: &[Sent]) -> AllowedDifferences {
        let mut differences = AllowedDifferences::default();
        for (n, s) in sent.iter().enumerate() {
            if s.command.sqe.opcode() != io::COMPARE {
                continue;
            }
            // The second half of a pair writes after its first half has ended.
            let fuse = s.command.sqe.fuse();
            let is_partner = |other: usize, o: &Sent| {
                other == n + 1 && o.sqid == s.sqid && (fuse, o.command.sqe.fuse()) == (1, 2)
            };
            let others = sent.iter().enumerate();
            let others = others.filter(|&(other, o)| other != n && !is_partner(other, o));
            // A Compare with other data and an error in its SGL may report either.
            if s.command.is_odd()
                || others
                    .map(|(_, o)| &o.effects)
                    .any(|o| o.writes_in(&s.effects.reads))
            {
                differences.outcome.insert(s.key());
            }
        }
        differences
    }

    fn burst(&mut self) -> StepResult {
        let mut locks = RangeLocks::new(chance(&mut self.random, 20));
        self.count(if locks.shared {
            "bursts that overlap"
        } else {
            "bursts"
        });
        let count = 2 + self.random.below(BURST - 1);
        let wrong = pick(&mut self.random, &[0, WRONG, 2 * WRONG]);
        let sent = self.submit(count, wrong, &mut locks);
        self.run_commands(&sent, &LockstepPair::races(&sent))
            .map(drop)
    }

    fn single(&mut self) -> StepResult {
        for _ in 0..1 + self.random.below(4) {
            let sent = self.submit(1, 3 * WRONG, &mut RangeLocks::default());
            self.run_commands(&sent, &LockstepPair::races(&sent))?;
        }
        Ok(())
    }

    fn fused(&mut self) -> StepResult {
        let queue_rooms = self.queue_rooms();
        if queue_rooms.is_empty() {
            return Ok(());
        }
        let (qid, room) = pick(&mut self.random, &queue_rooms);
        let Some(commands) = self.generate(WRONG, &RangeLocks::default(), |g| g.fused()) else {
            return Ok(());
        };
        if (room as usize) < commands.len() {
            return Ok(());
        }
        self.count("fused pairs and halves");
        let sent: Vec<Sent> = commands.into_iter().map(|c| self.push(qid, c)).collect();
        self.ring_sqs(&[qid]);
        self.run_commands(&sent, &LockstepPair::races(&sent))
            .map(drop)
    }

    /// A first half of a fused pair waits for its partner, for which the completion queue has no
    /// room; an Abort of one of both follows.
    fn fused_half(&mut self) -> StepResult {
        let left = &self.duts[0];
        let mut queue_rooms = self.queue_rooms();
        // Entries of the completion queue that have to be in use.
        let used = |qid: u16| {
            let cq = left.cqs.get(&left.sqs.get(&qid)?.cqid)?;
            cq.entries.checked_sub(2)
        };
        queue_rooms.retain(|&(qid, room)| used(qid).is_some_and(|used| used + 2 <= room));
        if queue_rooms.is_empty() {
            return Ok(());
        }
        let (qid, _) = pick(&mut self.random, &queue_rooms);
        let used = used(qid).unwrap_or_default();
        let commands = self.generate(WRONG, &RangeLocks::default(), |g| g.fused());
        let Some(commands) = commands.filter(|all| all.len() == 2) else {
            return Ok(());
        };
        self.count("Aborts of halves of fused pairs");
        let nsid = self
            .shape
            .limits
            .namespaces
            .active()
            .next()
            .map_or(1, |ns| ns.nsid);
        let mut sent: Vec<Sent> = (0..used)
            .map(|_| self.push(qid, Command::plain(Sqe::flush(nsid))))
            .collect();
        self.ring_sqs(&[qid]);
        self.for_each(|dut| dut.run_until_idle())?;
        self.align_time()?;
        sent.extend(commands.into_iter().map(|c| self.push(qid, c)));
        self.ring_sqs(&[qid]);
        self.wait_ns(HALF)?;
        let target = used as usize + pick(&mut self.random, &[0, 0, 0, 1]);
        let cid = u32::from(sent[target].key().1);
        let abort = Sqe::new(admin::ABORT).with_cdw(10, cid << 16 | u32::from(qid));
        sent.push(self.push(0, Command::plain(abort)));
        self.ring_sqs(&[0]);
        self.wait_ns(HALF)?;
        // A half that was not aborted would wait for 25 ms.
        self.for_each(|dut| dut.consume().map(drop))?;
        self.wait_ns(HALF)?;
        self.run_commands(&sent, &LockstepPair::races(&sent))
            .map(drop)
    }

    /// Long commands, and Aborts of some of them.
    fn abort(&mut self) -> StepResult {
        self.count("bursts with Aborts");
        let count = 2 + self.random.below(12);
        let mut locks = RangeLocks::default();
        let mut sent = self.submit(count, 0, &mut locks);
        let io = sent.len();
        let ns = self.random.below(4000);
        self.wait_ns(ns)?;
        let mut differences = LockstepPair::races(&sent);
        for _ in 0..1 + self.random.below(3) {
            if io == 0 {
                break;
            }
            let target = &sent[self.random.below(io as u64) as usize];
            let (sqid, cid) = target.key();
            if takes_long(target.command.sqe.opcode()) {
                differences.outcome.insert((sqid, cid));
            }
            let sqe = Sqe::new(admin::ABORT).with_cdw(10, u32::from(cid) << 16 | u32::from(sqid));
            let abort = self.push(0, Command::plain(sqe));
            differences.outcome.insert(abort.key());
            sent.push(abort);
        }
        self.ring_sqs(&[0]);
        self.run_commands(&sent, &differences).map(drop)
    }

    /// Deletes a queue while its commands are in flight.
    fn delete_busy(&mut self) -> StepResult {
        self.count("deletions of busy queues");
        let count = 2 + self.random.below(12);
        let mut locks = RangeLocks::default();
        let mut sent = self.submit(count, 0, &mut locks);
        let Some(qid) = sent.first().map(|s| s.sqid) else {
            return Ok(());
        };
        let ns = self.random.below(3000);
        self.wait_ns(ns)?;
        let mut differences = AllowedDifferences {
            deleted: Some(qid),
            ..LockstepPair::races(&sent)
        };
        let of_queue = sent.iter().filter(|s| s.sqid == qid);
        differences.outcome.extend(of_queue.map(Sent::key));
        let delete = self.push(0, Command::plain(Sqe::delete_io_sq(qid)));
        sent.push(delete);
        self.ring_sqs(&[0]);
        self.run_commands(&sent, &differences)?;
        self.deleted(qid, true);
        Ok(())
    }

    /// A command that would take milliseconds, ended by an Abort or by the deletion of its queue.
    /// It has to end early.
    fn endless(&mut self) -> StepResult {
        let queue_rooms = self.queue_rooms();
        if queue_rooms.is_empty() {
            return Ok(());
        }
        self.count("ends of endless commands");
        let (qid, _) = pick(&mut self.random, &queue_rooms);
        let Some(command) = self.generate(0, &RangeLocks::default(), |g| g.endless()) else {
            return Ok(());
        };
        let mut sent = vec![self.push(qid, command)];
        let name = sent[0].key();
        self.ring_sqs(&[qid]);
        let ns = 20_000 + self.random.below(20_000);
        self.wait_ns(ns)?;
        let deletion = chance(&mut self.random, 50);
        let sqe = match deletion {
            true => Sqe::delete_io_sq(qid),
            false => {
                let target = u32::from(name.1) << 16 | u32::from(qid);
                Sqe::new(admin::ABORT).with_cdw(10, target)
            }
        };
        sent.push(self.push(0, Command::plain(sqe)));
        self.ring_sqs(&[0]);
        let differences = AllowedDifferences {
            deleted: deletion.then_some(qid),
            ..AllowedDifferences::default()
        };
        let done = self.run_commands(&sent, &differences)?;
        if done.get(&name).is_some_and(|cqe| cqe.status().is_success()) {
            return Err("a command that takes milliseconds was not ended on either side".into());
        }
        if deletion {
            self.deleted(qid, true);
        }
        Ok(())
    }

    pub(crate) fn wait_ns(&mut self, ns: u64) -> StepResult {
        self.for_each(|dut| dut.advance(dut.now + Time::ns(ns)))
    }

    // ---- admin ----

    fn admin(&mut self) -> StepResult {
        let room = self.duts[0].sqs.get(&0).map_or(0, |sq| sq.entries - 1);
        let room = room.min(8);
        let count = (1 + self.random.below(5)).min(room.into());
        let mut sent: Vec<Sent> = Vec::new();
        for _ in 0..count {
            let Some(command) = self.admin_command() else {
                continue;
            };
            let sqe = &command.sqe;
            if sqe.opcode() == admin::SET_FEATURES
                && sqe.dw[10] as u8 == feature::INTERRUPT_COALESCING
            {
                self.state.coalesced = true;
            }
            let format = sqe.opcode() == admin::FORMAT_NVM;
            sent.push(self.push(0, command));
            if format {
                break;
            }
        }
        self.ring_sqs(&[0]);
        let differences = AllowedDifferences {
            ordered: true,
            ..AllowedDifferences::default()
        };
        self.run_commands(&sent, &differences).map(drop)
    }

    fn admin_command(&mut self) -> Option<Command> {
        if !chance(&mut self.random, 4) {
            return self.generate(WRONG, &RangeLocks::default(), |g| g.admin());
        }
        // An Abort of a command that does not exist.
        let cid = 0xF000 | self.random.below(0x1000) as u32;
        let name = cid << 16 | self.random.below(8) as u32;
        Some(Command::plain(Sqe::new(admin::ABORT).with_cdw(10, name)))
    }

    fn change_queues(&mut self) -> StepResult {
        match self.random.below(3) {
            0 => self.create_cq(WRONG),
            1 => self.create_sq(WRONG),
            _ => self.delete(),
        }
    }

    /// A Keep Alive Timeout, outlasted or not.
    fn keep_alive(&mut self) -> StepResult {
        self.count("Keep Alive Timeouts");
        let ms = 100 * (1 + self.random.below(3));
        let odd = self.random.below(100);
        let set = |ms: u64| {
            let fid = u32::from(feature::KEEP_ALIVE_TIMER);
            Command::plain(
                Sqe::new(admin::SET_FEATURES)
                    .with_cdw(10, fid)
                    .with_cdw(11, ms as u32),
            )
        };
        self.run_alone(set(ms - odd))?;
        for _ in 0..self.random.below(3) {
            let until = self.duts[0].now + Time::ms(ms - 1);
            self.for_each(|dut| dut.advance(until))?;
            self.run_alone(Command::plain(Sqe::new(admin::KEEP_ALIVE)))?;
        }
        if chance(&mut self.random, 50) {
            return self.run_alone(set(0)).map(drop);
        }
        let over = self.duts[0].now + Time::ms(ms + 1);
        if chance(&mut self.random, 50) {
            // TBKAS is 0: other commands do not restart the timer.
            let late = self.duts[0].now + Time::ms(ms - ms / 4);
            self.for_each(|dut| dut.advance(late))?;
            let fid = u32::from(feature::ARBITRATION);
            let other = Sqe::new(admin::GET_FEATURES).with_cdw(10, fid);
            self.run_alone(Command::plain(other))?;
        }
        self.for_each(|dut| dut.advance(over))?;
        self.wait_until_idle()?;
        let csts = self.compare("CSTS", |dut| dut.read32(Bar::Nvme, properties::CSTS))?;
        if !Csts(csts).fatal() {
            return Err(format!(
                "a Keep Alive Timeout of {ms} ms has not ended in CFS on either side"
            ));
        }
        self.state.errors += 1;
        self.compare_messages(false)?;
        let reset = pick(&mut self.random, &Reset::ALL);
        self.end_by_reset(reset)?;
        self.compare_memory(None)?;
        self.restart(reset)
    }

    // ---- the PM window ----

    fn access_pm_window(&mut self) -> StepResult {
        for _ in 0..1 + self.random.below(5) {
            let most = if chance(&mut self.random, 60) {
                64
            } else {
                PAGE
            };
            let offset = match self.random.below(12) {
                0 => self.shape.media_bytes - 1 - self.random.below(5000),
                1 => self.random.below(self.shape.window_bytes),
                2 => 64 * self.random.below(1024),
                _ => self.random.below(self.shape.media_bytes),
            };
            let len = (1 + self.random.below(most)).min(PAGE - offset % PAGE);
            if chance(&mut self.random, 50) {
                self.count("PM window stores");
                let data = bytes(&mut self.random, len);
                self.write(Bar::Pm, offset, &data);
                if let Some(held) = self.media.get_mut(offset as usize..(offset + len) as usize) {
                    held.copy_from_slice(&data);
                }
            }
            self.count("PM window loads");
            let found = self.compare("a load of the PM window", |dut| {
                dut.load(Bar::Pm, offset, len as u32)
            })?;
            let held = self.media.get(offset as usize..(offset + len) as usize);
            if found.as_deref() != held {
                return Err(format!(
                    "both windows hold at {offset:#x} what was not stored there"
                ));
            }
        }
        self.wait_until_idle()
    }

    // ---- BAR4 ----

    fn access_bar4(&mut self) -> StepResult {
        self.count("accesses to BAR4");
        let channels = u64::from(self.shape.channels);
        let channel = bar4::DELAY + bar4::DELAY_STEP * self.random.below(channels);
        match self.random.below(7) {
            0 => {
                let words: Vec<u64> = (0..192).map(|n| bar4::STATUS + 4 * n).collect();
                self.compare_registers("the list of blocks", Bar::Control, &words)?;
            }
            1 => {
                let master = self.random.below(8);
                let at = bar4::QOS + qos::ENGINE_STRIDE * master + 4 * self.random.below(4);
                let value = match chance(&mut self.random, 50) {
                    true => self.random.below(80) as u32,
                    false => self.random.next() as u32,
                };
                self.write32(Bar::Control, at, value);
                self.compare("qos", |dut| dut.read32(Bar::Control, at))?;
            }
            2 | 3 => self.delays(channel)?,
            4 => self.delay_counts()?,
            5 => {
                // Any offset, except for registers that depend on time.
                let base = pick(
                    &mut self.random,
                    &[bar4::STATUS, bar4::QOS, channel, 0x2000, 0x2_0000, 0xF_F000],
                );
                let offset = base + self.random.below(0x800 - 8);
                let len = pick(&mut self.random, &[1, 2, 3, 4, 4, 4, 8]);
                let len = (len as u64).min(PAGE - offset % PAGE) as u32;
                if offset >= channel + nvm_delay::STATUS && offset < channel + nvm_delay::STATUS + 8
                {
                    return Ok(());
                }
                self.compare("a load of BAR4", |dut| dut.load(Bar::Control, offset, len))
                    .map_err(|e| format!("{e}, {len} bytes at {offset:#x}"))?;
            }
            _ => {
                let base = pick(
                    &mut self.random,
                    &[bar4::STATUS, 0x2000, 0x2_0000, 0xF_F000],
                );
                let offset = base + 4 * self.random.below(0x1FF);
                let value = self.random.next() as u32;
                self.write32(Bar::Control, offset, value);
                self.compare("a load of BAR4", |dut| dut.load(Bar::Control, offset, 4))?;
            }
        }
        self.wait_until_idle()
    }

    /// Writes registers of an `nvm_delay`, with or without a commit, and compares their values.
    fn delays(&mut self, base: u64) -> StepResult {
        let mut writes: Vec<(u64, u32)> = Vec::new();
        let slow = pick(&mut self.random, &[1, 100, 1500]);
        for _ in 0..1 + self.random.below(8) {
            let time = (self.random.below(slow) << 12 | self.random.below(4096)) as u32;
            let region = nvm_delay::REGION
                + nvm_delay::REGION_STRIDE * self.random.below(nvm_delay::REGION_COUNT);
            let page = self.random.below(600) as u32;
            writes.push(match self.random.below(10) {
                0 | 1 => (nvm_delay::CONTROL, self.random.below(256) as u32),
                2 => (
                    nvm_delay::READ_CAP,
                    1 << 16 | self.random.next() as u32 >> 8,
                ),
                3 => (nvm_delay::WRITE_CAP, 0),
                4 | 5 => (nvm_delay::TIMING + 4 * self.random.below(4), time),
                6 => (
                    region + nvm_delay::region::TIMING + 4 * self.random.below(4),
                    time,
                ),
                7 => (region + nvm_delay::region::FIRST, page),
                8 => (region + nvm_delay::region::LAST, page),
                _ => (nvm_delay::CALIBRATION + 4 * self.random.below(4), time),
            });
        }
        if chance(&mut self.random, 70) {
            writes.push((nvm_delay::COMMAND, 1));
        }
        for (at, value) in writes {
            self.write32(Bar::Control, base + at, value);
        }
        let words: Vec<u64> = (0..64).map(|n| base + 4 * n).collect();
        self.compare_registers("registers of nvm_delay", Bar::Control, &words)
    }

    /// Compares counts of transactions and beats.
    fn delay_counts(&mut self) -> StepResult {
        self.wait_until_idle()?;
        let loose = self.state.loose_counts;
        let clear = u32::from(loose || chance(&mut self.random, 50));
        use nvm_delay::counters::{read, READ, WRITE};
        let fields = [
            read::TRANSACTIONS_LO,
            read::TRANSACTIONS_HI,
            read::BEATS_LO,
            read::BEATS_HI,
        ];
        for channel in 0..u64::from(self.shape.channels) {
            let base = bar4::DELAY + bar4::DELAY_STEP * channel;
            self.write32(Bar::Control, base + nvm_delay::COMMAND, 2 | clear << 2);
            if loose {
                continue;
            }
            let of = |at: u64| fields.map(|f| base + nvm_delay::COUNTERS + at + f);
            let words: Vec<u64> = [READ, WRITE].into_iter().flat_map(of).collect();
            self.compare_registers("counters of nvm_delay", Bar::Control, &words)?;
        }
        self.state.loose_counts = false;
        Ok(())
    }

    // ---- BAR0 ----

    fn access_bar0(&mut self) -> StepResult {
        self.count("accesses to BAR0");
        for _ in 0..1 + self.random.below(6) {
            let offset = match self.random.below(3) {
                0 => self.random.below(0x40),
                1 => 0xE00 + self.random.below(0x20),
                _ => self.random.below(0x4400),
            };
            let len = pick(&mut self.random, &[1, 2, 4, 4, 4, 8, 16]);
            let len = (len as u64).min(PAGE - offset % PAGE) as u32;
            if chance(&mut self.random, 40) {
                // Read-only properties, properties without effect while the controller is enabled,
                // and PMRCTL and the like.
                let at = pick(
                    &mut self.random,
                    &[
                        0, 4, 8, 0xC, 0x10, 0x18, 0x20, 0x24, 0x28, 0x2C, 0x30, 0x34, 0x38, 0x3C,
                    ],
                );
                let at = if chance(&mut self.random, 30) {
                    0xE00 + 4 * self.random.below(8)
                } else {
                    at
                };
                let value = self.random.next() as u32 & !1;
                let bytes = value.to_le_bytes();
                let some = 1 + self.random.below(4) as usize;
                self.write(Bar::Nvme, at, &bytes[..some]);
            }
            if self.is_free_word(offset + u64::from(len)) {
                continue;
            }
            self.compare("a load of BAR0", |dut| dut.load(Bar::Nvme, offset, len))
                .map_err(|e| format!("{e}, {len} bytes at {offset:#x}"))?;
        }
        self.properties()?;
        self.wait_until_idle()
    }

    /// An invalid doorbell write: an error, and an event.
    fn bad_doorbell(&mut self) -> StepResult {
        self.count("bad doorbells");
        let queues = u64::from(self.shape.limits.queues);
        let left = &self.duts[0];
        let missing: Vec<u16> = (1..=self.shape.limits.queues)
            .filter(|q| !left.sqs.contains_key(q))
            .collect();
        let entries = left.sqs.get(&0).map_or(2, |sq| sq.entries);
        let shadow = left.shadow.is_some();
        let (qid, completion, value) = match self.random.below(4) {
            0 if !missing.is_empty() && !shadow => {
                (u64::from(pick(&mut self.random, &missing)), false, 1)
            }
            1 => (0, false, entries + self.random.below(1000) as u32),
            2 => (0, true, 4095 + self.random.below(1000) as u32),
            _ => (
                queues + 1 + self.random.below(400),
                chance(&mut self.random, 50),
                self.random.next() as u32,
            ),
        };
        let offset = regs::DOORBELLS + 8 * qid + 4 * u64::from(completion);
        self.note(format!("  doorbell {offset:#x} = {value:#x}"));
        match chance(&mut self.random, 15) {
            // A partial write is not a doorbell write.
            true => {
                self.write(Bar::Nvme, offset, &[value as u8]);
            }
            false => {
                self.write32(Bar::Nvme, offset, value);
                self.state.errors += 1;
            }
        }
        self.run_commands(&[], &AllowedDifferences::default())
            .map(drop)
    }

    /// Masks a vector while commands complete, changes its entry, and unmasks it.
    fn change_masks(&mut self) -> StepResult {
        self.count("vectors masked");
        let function = chance(&mut self.random, 35);
        let vector = self.random.below(u64::from(self.shape.last_vector()) + 1) as u16;
        let entry = properties::MSIX_TABLE + properties::MSIX_ENTRY * u64::from(vector);
        let enable = !function || chance(&mut self.random, 70);
        match function {
            true => self.for_each(|dut| {
                dut.device.set_msix(enable, true);
                Ok(())
            })?,
            false => {
                self.write32(Bar::Nvme, entry + 12, 1);
                self.compare("a mask", |dut| dut.read32(Bar::Nvme, entry + 12))?;
            }
        }
        let count = 1 + self.random.below(6);
        let mut locks = RangeLocks::default();
        let sent = self.submit(count, WRONG, &mut locks);
        if !self.state.coalesced {
            // Runs as far as the device gets without free completion entries.
            self.for_each(|dut| dut.run_until_idle())?;
            self.align_time()?;
            self.properties()?;
        }
        if chance(&mut self.random, 50) && !function {
            self.set_msix_entry(vector);
        }
        if chance(&mut self.random, 50) {
            self.run_commands(&sent, &LockstepPair::races(&sent))?;
            self.unmask(function, vector);
            self.wait_until_idle()?;
            self.free_messages();
            return self
                .compare_step(&[], &AllowedDifferences::default())
                .map(drop);
        }
        self.unmask(function, vector);
        self.wait_until_idle()?;
        self.free_messages();
        self.compare_step(&sent, &LockstepPair::races(&sent))
            .map(drop)
    }

    /// With shadow doorbells, it is undetermined whether a masked message is still sent: see
    /// [`LockstepPair::is_free_word`].
    fn free_messages(&mut self) {
        if self.duts[0].shadow.is_some() {
            self.duts
                .iter_mut()
                .for_each(|dut| dut.host.messages.clear());
        }
    }

    fn unmask(&mut self, function: bool, vector: u16) {
        let entry = properties::MSIX_TABLE + properties::MSIX_ENTRY * u64::from(vector);
        match function {
            true => self
                .duts
                .iter_mut()
                .for_each(|dut| dut.device.set_msix(true, false)),
            false => {
                self.write32(Bar::Nvme, entry + 12, 0);
                self.state.masked.remove(&vector);
            }
        }
    }

    // ---- resets ----

    /// A reset while the devices are idle.
    fn reset(&mut self) -> StepResult {
        let reset = pick(&mut self.random, &Reset::ALL);
        self.end_by_reset(reset)?;
        self.compare_messages(false)?;
        self.compare_memory(None)?;
        if chance(&mut self.random, 30) {
            self.compare_all_media()?;
        }
        self.restart(reset)
    }

    /// A reset during commands.
    fn cut_burst(&mut self) -> StepResult {
        self.count("bursts cut off");
        let reset = pick(&mut self.random, &Reset::ALL);
        let mut locks = RangeLocks::new(chance(&mut self.random, 20));
        let count = 2 + self.random.below(BURST - 1);
        let generated = match chance(&mut self.random, 30) {
            true => self.generate_jobs(&mut locks, false)?,
            false => Vec::new(),
        };
        let sent = self.submit(count, WRONG, &mut locks);
        let jobs = self.start_jobs(generated);
        let ns = self.random.below(CUT);
        self.wait_ns(ns)?;
        self.end_by_reset(reset)?;
        // Jobs in registers and pages of engines are independent of the controller, and continue.
        self.for_each(|dut| dut.run_until_idle())?;
        self.align_time()?;
        let differences = AllowedDifferences {
            cut: true,
            ..AllowedDifferences::default()
        };
        self.compare_step(&sent, &differences)?;
        self.jobs_cut(&jobs)?;
        self.restart(reset)
    }

    /// The end of an episode: compares the whole media.
    pub fn finish(&mut self) -> StepResult {
        self.wait_until_idle()?;
        self.compare_step(&[], &AllowedDifferences::default())?;
        self.compare_all_media()
    }
}

const _: () = assert!(PAGE % BLOCK == 0);
