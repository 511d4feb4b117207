// SPDX-License-Identifier: Apache-2.0

//! Two devices with the same input, and the comparison of their state after each step.
//!
//! # What is compared
//!
//! - Each completion: status, dword 0, its queue, place and phase. SQHD is compared if the
//!   command is alone in its queue. Each command completes once.
//! - The order of admin completions.
//! - Every byte that a device has written to its host, also at addresses without memory: data,
//!   logs, Identify pages, EventIdx.
//! - Messages: all of them after a single command, otherwise the set of vectors.
//! - Every block that a command may have written, after its step. All media are compared at the
//!   end and after some resets. Blocks also have to hold a content that a command has written or
//!   the old one, so an error that both devices share is found as well.
//! - CSTS after each step. All properties, the MSI-X table and pending bits after resets, and
//!   while a vector is masked.
//! - Engines: all registers while idle, and lines of pages. For a valid job also the known return
//!   value, the count, the written bytes, and the reports of lists without cycles.
//! - BAR4: the status block, QoS, registers of `nvm_delay`, transactions and beats of each
//!   channel.
//! - Lost stores and failed accesses of the media, as both devices count them.
//! - That no device hangs for 400 ms of simulated time, and the assertions of the RTL.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use sim::{Bar, Random, Time};
use spec::nvme::properties::CSTS;
use spec::nvme::{admin, io, Cqe, Sqe, Status};

use crate::campaign::StepResult;
use crate::commands::{COMMANDS, DECODE, PIPELINE, SHUFFLE};
use crate::generate::reserved::{randomise_reserved, Set};
use crate::generate::{Command, Generator, Policy, Surroundings};
use crate::lockstep::dut::Dut;
use crate::lockstep::effects::{Effects, PlannedCommand};
use crate::lockstep::host_state::HostState;
use crate::lockstep::locks::RangeLocks;
use crate::lockstep::memory::Arena;
use crate::lockstep::{rules, Report, Shape};
use crate::{BLOCK, PAGE};

/// Content of blocks beyond the media.
const ZEROS: [u8; BLOCK as usize] = [0; BLOCK as usize];
/// Attempts to generate a command whose blocks are unlocked.
const TRIES: u32 = 4;
/// Lines of history in the report of a failure.
const HISTORY: usize = 60;
/// Blocks of a page of the PM window.
const BLOCKS: u64 = PAGE / BLOCK;
/// Common times of both devices are multiples of this.
const COMMON: u64 = 1_000_000;

/// Counters that are equal while the devices are idle.
const LOST: [&str; 2] = ["media.failures", "mmio.lost_writes"];

/// A command that was submitted.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Its queue.
    pub sqid: u16,
    /// The command, with its identifier.
    pub command: Command,
    /// Its effect, if it succeeds.
    pub effects: Effects,
}

impl Sent {
    /// Queue and identifier, as in its completion.
    pub fn key(&self) -> (u16, u16) {
        (self.sqid, self.command.sqe.cid())
    }
}

/// Permitted differences after a step.
#[derive(Clone, Debug, Default)]
pub struct AllowedDifferences {
    /// Commands that may end with several results, or not at all.
    pub outcome: BTreeSet<(u16, u16)>,
    /// A reset has cut the step: completions are optional.
    pub cut: bool,
    /// A submission queue that was deleted while its commands were in flight.
    pub deleted: Option<u16>,
    /// Errors are logged in the order of the queue.
    pub ordered: bool,
}

/// Possible contents of a block: written contents, or [`UNKNOWN`]. The flag is true if the block
/// has to hold one of them, so that both devices agree. Otherwise it may also hold its old content.
pub type AllowedContents<'a> = (Vec<&'a Vec<u8>>, bool);

/// Unknown content.
pub const UNKNOWN: &Vec<u8> = &Vec::new();

/// The hosts of a step, as generators see them.
struct StepHost<'a> {
    arena: &'a mut Arena,
    media: &'a [u8],
    locks: &'a RangeLocks,
}

impl Surroundings for StepHost<'_> {
    fn has_room(&self, _pages: u64) -> bool {
        true
    }

    fn alloc(&mut self, random: &mut Random, pages: u64) -> Option<u64> {
        self.arena.alloc_run(random, pages)
    }

    fn alloc_queue(&mut self, random: &mut Random) -> Option<u64> {
        self.arena.alloc(random)
    }

    fn content(&self, block: u64) -> &[u8] {
        let at = usize::try_from(block)
            .ok()
            .and_then(|n| n.checked_mul(BLOCK as usize));
        let content = at.and_then(|at| self.media.get(at..at.checked_add(BLOCK as usize)?));
        content.unwrap_or(&ZEROS)
    }

    fn in_use(&self, blocks: Range<u64>) -> bool {
        self.locks.is_locked(&blocks, true, false)
    }
}

/// Two devices under test with the same input.
pub struct LockstepPair {
    /// The devices.
    pub duts: [Dut; 2],
    /// Their common configuration.
    pub shape: Shape,
    /// Random numbers of this step.
    pub random: Random,
    /// Allocator of pages, common to both hosts.
    pub arena: Arena,
    /// Content of the media of both.
    pub media: Vec<u8>,
    /// See [`HostState`].
    pub state: HostState,
    /// Counts of the episode.
    pub report: Report,
    /// Each access of the memories has a random latency.
    pub late: bool,
    history: VecDeque<String>,
}

impl LockstepPair {
    /// Two devices before their first access, with media of zeros.
    pub fn new(duts: [Dut; 2], shape: Shape) -> LockstepPair {
        let media = vec![0; shape.media_bytes as usize];
        LockstepPair {
            duts,
            shape,
            random: Random::new(0),
            arena: Arena::new(),
            media,
            state: HostState {
                parked: BTreeSet::new(),
                errors: 0,
                groups: Vec::new(),
                loose_logs: false,
                loose_counts: false,
                masked: BTreeSet::new(),
                cc: 0,
                coalesced: false,
                loose_engines: BTreeSet::new(),
                cid: 0,
            },
            report: Report::default(),
            late: false,
            history: VecDeque::new(),
        }
    }

    /// Sets the seed of a step.
    pub fn reseed(&mut self, seed: u64) {
        let mut random = Random::new(seed);
        for dut in &mut self.duts {
            dut.host.reseed(random.next());
        }
        self.random = random;
    }

    /// Adds a line to the history.
    pub fn note(&mut self, line: String) {
        if self.history.len() >= HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(line);
    }

    /// The last events.
    pub fn history(&self) -> Vec<String> {
        self.history.iter().cloned().collect()
    }

    /// Counts an action.
    pub fn count(&mut self, what: &str) {
        *self.report.kinds.entry(what.to_string()).or_default() += 1;
    }

    /// Generates input with one result. `wrong` is the share of errors.
    pub fn generate<T>(
        &mut self,
        wrong: u64,
        locks: &RangeLocks,
        generate: impl FnOnce(&mut Generator) -> T,
    ) -> T {
        let mut host = StepHost {
            arena: &mut self.arena,
            media: &self.media,
            locks,
        };
        let policy = Policy::Determined { wrong };
        let limits = &self.shape.limits;
        generate(&mut Generator::new(
            &mut self.random,
            &mut host,
            limits,
            policy,
        ))
    }

    /// A command with its effect on the present media.
    pub fn plan(&self, sqid: u16, command: Command) -> PlannedCommand {
        let effects = Effects::of(sqid, &command, &self.media, &self.shape.limits.namespaces);
        PlannedCommand { command, effects }
    }

    /// Generates an I/O command that conflicts with no other one; `None` if a few attempts make
    /// none.
    pub fn generate_io(&mut self, wrong: u64, locks: &mut RangeLocks) -> Option<PlannedCommand> {
        (0..TRIES).find_map(|_| {
            let command = self.generate(wrong, locks, |g| g.io())?;
            let planned = self.plan(1, command);
            planned.lock(locks).then_some(planned)
        })
    }

    // ---- both ----

    /// Applies an action to both devices.
    pub fn for_each(&mut self, mut act: impl FnMut(&mut Dut) -> StepResult) -> StepResult {
        self.duts.iter_mut().try_for_each(&mut act)
    }

    /// Queries both devices, and compares the answers.
    pub fn compare<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &str,
        mut ask: impl FnMut(&mut Dut) -> StepResult<T>,
    ) -> StepResult<T> {
        let [left, right] = &mut self.duts;
        let (a, b) = (ask(left)?, ask(right)?);
        match a == b {
            true => Ok(a),
            false => Err(format!(
                "{what}: {} has {a:x?}, {} has {b:x?}",
                left.name, right.name
            )),
        }
    }

    /// Compares 32-bit registers.
    pub fn compare_registers(&mut self, what: &str, bar: Bar, words: &[u64]) -> StepResult {
        let loads: Vec<(u64, u32)> = words.iter().map(|&offset| (offset, 4)).collect();
        let [left, right] = &mut self.duts;
        let (a, b) = (left.loads(bar, &loads)?, right.loads(bar, &loads)?);
        let mut all = words.iter().zip(a.iter().zip(&b));
        match all.find(|(_, (a, b))| a != b) {
            None => Ok(()),
            Some((offset, (a, b))) => Err(format!(
                "{what} at {offset:#x}: {} has {a:02x?}, {} has {b:02x?}",
                left.name, right.name
            )),
        }
    }

    /// Advances both devices to a common time.
    pub fn align_time(&mut self) -> StepResult {
        let latest = self
            .duts
            .iter()
            .map(|dut| dut.now)
            .max()
            .unwrap_or_default();
        let until = Time((latest.0 / COMMON + 2) * COMMON);
        self.for_each(|dut| dut.advance(until))
    }

    /// Runs both devices until they are idle, and to a common time.
    pub fn wait_until_idle(&mut self) -> StepResult {
        self.for_each(Dut::complete_all)?;
        self.compare_counters()?;
        self.align_time()
    }

    /// Compares the devices' counters of lost accesses.
    fn compare_counters(&mut self) -> StepResult {
        self.compare("lost accesses", |dut| {
            let all = dut.device.counters().into_iter();
            let lost = all.filter(|counter| LOST.contains(&counter.name.as_str()));
            Ok(lost.map(|c| (c.name, c.value)).collect::<Vec<_>>())
        })
        .map(drop)
    }

    /// A store to a BAR, within a page.
    pub fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) {
        let duts = self.duts.iter_mut();
        duts.for_each(|dut| dut.write(bar, offset, data));
    }

    /// Writes a register.
    pub fn write32(&mut self, bar: Bar, offset: u64, value: u32) {
        self.write(bar, offset, &value.to_le_bytes());
    }

    /// Writes two registers.
    pub fn write64(&mut self, bar: Bar, offset: u64, value: u64) {
        self.write(bar, offset, &value.to_le_bytes()[..4]);
        self.write(bar, offset + 4, &value.to_le_bytes()[4..]);
    }

    /// Rings the doorbells of submission queues, each once.
    pub fn ring_sqs(&mut self, qids: &[u16]) {
        let qids: BTreeSet<u16> = qids.iter().copied().collect();
        for dut in &mut self.duts {
            qids.iter().for_each(|&qid| dut.ring_sq(qid));
        }
    }

    // ---- commands ----

    /// Places a command into a queue of both. The doorbell is rung by [`Dut::ring_sq`].
    pub fn push(&mut self, sqid: u16, command: Command) -> Sent {
        let planned = self.plan(sqid, command);
        self.push_planned(sqid, planned)
    }

    /// The same for a command whose effect is known.
    pub fn push_planned(&mut self, sqid: u16, planned: PlannedCommand) -> Sent {
        let PlannedCommand {
            mut command,
            effects,
        } = planned;
        self.state.cid = self.state.cid.wrapping_add(1) % 0xE000;
        let set = if sqid == 0 { Set::Admin } else { Set::Nvm };
        randomise_reserved(&mut self.random, set, &mut command.sqe);
        command.sqe = command.sqe.with_cid(self.state.cid);
        self.report.commands += 1;
        for dut in &mut self.duts {
            for (addr, data) in &command.buffer.stores {
                dut.host.memory.store(*addr, data);
            }
            dut.push(sqid, &command.sqe);
        }
        self.note(format!("  queue {sqid}: {:08x?}", command.sqe.dw));
        Sent {
            sqid,
            command,
            effects,
        }
    }

    /// Runs commands to their ends, and compares the resulting state.
    pub fn run_commands(
        &mut self,
        sent: &[Sent],
        differences: &AllowedDifferences,
    ) -> StepResult<BTreeMap<(u16, u16), Cqe>> {
        self.wait_until_idle()?;
        self.compare_step(sent, differences)
    }

    /// An admin command alone; its completion, if there is one.
    pub fn run_alone(&mut self, command: Command) -> StepResult<Option<Cqe>> {
        let sent = [self.push(0, command)];
        self.ring_sqs(&[0]);
        let done = self.run_commands(&sent, &AllowedDifferences::default())?;
        Ok(done.get(&sent[0].key()).copied())
    }

    /// Compares the state after commands.
    pub fn compare_step(
        &mut self,
        sent: &[Sent],
        differences: &AllowedDifferences,
    ) -> StepResult<BTreeMap<(u16, u16), Cqe>> {
        let done = self.compare_completions(sent, differences)?;
        self.compare_buffers(sent, &done, differences)?;
        self.compare_blocks(sent, &done, differences)?;
        if differences.cut || differences.deleted.is_some() {
            self.for_each(|dut| {
                dut.host.messages.clear();
                Ok(())
            })?;
        }
        if !differences.cut {
            // In a queue that is deleted during its work, commands that were not fetched never
            // complete.
            if differences.deleted.is_none() {
                self.compare_messages(sent.len() <= 1)?;
            }
            self.compare("CSTS", |dut| dut.read32(Bar::Nvme, CSTS))?;
        }
        self.compare_memory(differences.deleted)?;
        rules::forget_old(&mut self.state);
        let [left, _] = done;
        Ok(left)
    }

    /// Compares completions; returns those of each device.
    fn compare_completions(
        &mut self,
        sent: &[Sent],
        differences: &AllowedDifferences,
    ) -> StepResult<[BTreeMap<(u16, u16), Cqe>; 2]> {
        let mut done: [BTreeMap<(u16, u16), Cqe>; 2] = Default::default();
        let mut order: [Vec<u16>; 2] = Default::default();
        let mut errors = [0; 2];
        for (n, dut) in self.duts.iter_mut().enumerate() {
            for (cqid, cqe) in std::mem::take(&mut dut.completed) {
                let name = (cqe.sqid(), cqe.cid());
                let parked = name.0 == 0 && self.state.parked.contains(&name.1);
                let known = parked || sent.iter().any(|s| s.key() == name);
                let home = dut.sqs.get(&name.0).map(|sq| sq.cqid);
                let fits = differences.cut || home.is_none_or(|home| home == cqid);
                if !known || !fits {
                    return Err(format!(
                        "{}: no such command has been sent: {cqe:x?} in {cqid}",
                        dut.name
                    ));
                }
                if done[n].insert(name, cqe).is_some() {
                    return Err(format!(
                        "{}: a command has completed twice: {cqe:x?}",
                        dut.name
                    ));
                }
                errors[n] += u64::from(!cqe.status().is_success());
                if name.0 == 0 && !parked {
                    order[n].push(name.1);
                }
            }
        }
        let names = self.duts.each_ref().map(|dut| dut.name);
        let wrong =
            |what: &str, sqe: Option<&Sqe>, a: &dyn std::fmt::Debug, b: &dyn std::fmt::Debug| {
                let sqe = sqe
                    .map(|sqe| format!(" of {:08x?}", sqe.dw))
                    .unwrap_or_default();
                Err(format!(
                    "{what}{sqe}: {} has {a:x?}, {} has {b:x?}",
                    names[0], names[1]
                ))
            };
        // Asynchronous Event Requests.
        for &cid in &self.state.parked {
            let of = |n: usize| {
                done[n]
                    .get(&(0, cid))
                    .map(|cqe| (cqe.status(), cqe.result()))
            };
            let (a, b) = (of(0), of(1));
            if a != b && !differences.cut {
                return wrong("completion of an event request", None, &a, &b);
            }
        }
        for s in sent {
            let name = s.key();
            let (a, b) = (done[0].get(&name), done[1].get(&name));
            if differences.cut || differences.outcome.contains(&name) {
                let status = |cqe: Option<&Cqe>| cqe.map(|cqe| cqe.status());
                self.state.loose_logs |= status(a) != status(b);
                continue;
            }
            let sqe = &s.command.sqe;
            let of = |cqe: Option<&Cqe>| cqe.map(|cqe| (cqe.status(), cqe.result()));
            if of(a) != of(b) {
                return wrong("completion", Some(sqe), &of(a), &of(b));
            }
            let alone = sent.iter().filter(|other| other.sqid == s.sqid).count() == 1;
            let head = |cqe: Option<&Cqe>| cqe.map(|cqe| cqe.sq_head());
            if alone && head(a) != head(b) {
                return wrong("SQHD", Some(sqe), &head(a), &head(b));
            }
            match a {
                Some(cqe) => {
                    let queue = if s.sqid == 0 { "admin" } else { "io" };
                    let status = rules::status(cqe.status());
                    let name = format!("{queue} {:02x} {status}", sqe.opcode());
                    *self.report.outcomes.entry(name).or_default() += 1;
                }
                None if s.sqid == 0 && sqe.opcode() == admin::ASYNC_EVENT_REQUEST => {
                    self.state.parked.insert(name.1);
                }
                None => return Err(format!("no completion of {:08x?} on either side", sqe.dw)),
            }
        }
        if order[0] != order[1] && !differences.cut && differences.outcome.is_empty() {
            return wrong("order of admin completions", None, &order[0], &order[1]);
        }
        self.state
            .parked
            .retain(|cid| !done[0].contains_key(&(0, *cid)));
        if differences.cut {
            self.state.parked.clear();
        }
        if differences.cut || errors[0] != errors[1] {
            self.state.loose_logs = true;
        }
        let first = self.state.errors + 1;
        self.state.errors += errors[0];
        // A single completion may have another phase, after a different number of others.
        if errors[0] > 0 && sent.len() > 1 && !differences.ordered {
            self.state.groups.push(first..first + errors[0]);
        }
        Ok(done)
    }

    /// Compares data in host memory with permitted differences, and makes both hosts equal where
    /// they may differ.
    fn compare_buffers(
        &mut self,
        sent: &[Sent],
        done: &[BTreeMap<(u16, u16), Cqe>; 2],
        differences: &AllowedDifferences,
    ) -> StepResult {
        let mut holes = differences.cut;
        for (n, s) in sent.iter().enumerate() {
            let c = &s.command;
            if !c.is_to_host() {
                continue;
            }
            let name = s.key();
            let fine = |dut: usize| {
                let cqe: Option<&Cqe> = done[dut].get(&name);
                cqe.is_some_and(|cqe| cqe.status().is_success())
            };
            let others = sent.iter().enumerate().filter(|(other, _)| *other != n);
            let raced = others
                .map(|(_, o)| &o.effects)
                .any(|o| o.writes_in(&s.effects.reads));
            let free =
                differences.cut || differences.outcome.contains(&name) || raced || c.buffer.twice;
            if fine(0) && fine(1) && !free {
                let rule = rules::of_data(s.sqid, &c.sqe, &self.state);
                if rule == rules::DataRule::Same {
                    continue;
                }
                let data = self.duts.each_ref().map(|dut| gather(dut, c));
                rules::compare(rule, &c.sqe, &data, &self.state)?;
                holes |= c.buffer.corrupted;
            } else {
                holes = true;
            }
            self.equalise_pages(&c.buffer.pages);
        }
        if holes {
            for dut in &mut self.duts {
                dut.host.memory.drop_holes();
            }
        }
        Ok(())
    }

    /// Copies pages from the first host to the second.
    pub fn equalise_pages(&mut self, pages: &[u64]) {
        let [left, right] = &mut self.duts;
        for &page in pages {
            let bytes = left.host.memory.page(page).to_vec();
            right.host.memory.store(page, &bytes);
        }
    }

    /// Compares the blocks that commands may have written with their possible contents.
    fn compare_blocks(
        &mut self,
        sent: &[Sent],
        done: &[BTreeMap<(u16, u16), Cqe>; 2],
        differences: &AllowedDifferences,
    ) -> StepResult {
        let mut allowed: BTreeMap<u64, AllowedContents> = BTreeMap::new();
        for s in sent {
            let name = s.key();
            let status = |dut: usize| done[dut].get(&name).map(|cqe: &Cqe| cqe.status());
            let (a, b) = (status(0), status(1));
            let free = differences.cut || differences.outcome.contains(&name);
            // These find invalid data during their work.
            let late = [SHUFFLE, DECODE, PIPELINE].contains(&s.command.sqe.opcode());
            if !free && !late && a.is_some_and(rules::changes_nothing) {
                continue;
            }
            self.state.loose_counts |= free || a.is_some_and(|a| !a.is_success());
            // The fast model reads the media of such a block once, and the RTL model segment by
            // segment: see the crate docs.
            self.state.loose_counts |= !s.command.buffer.is_blockwise();
            let sure = !free && a.is_some_and(Status::is_success) && a == b;
            for (block, content) in &s.effects.writes {
                let of = allowed.entry(*block).or_insert((Vec::new(), true));
                // Reports of lists contain times.
                let has_reports = content.is_empty() && s.command.sqe.opcode() == PIPELINE;
                of.1 &= sure && of.0.is_empty() && !has_reports;
                of.0.push(if s.effects.torn && !sure {
                    UNKNOWN
                } else {
                    content
                });
            }
        }
        self.check_blocks(&allowed)
    }

    /// Compares blocks of the media with their possible contents.
    pub fn check_blocks(&mut self, allowed: &BTreeMap<u64, AllowedContents>) -> StepResult {
        let pages: BTreeSet<u64> = allowed.keys().map(|block| block / BLOCKS).collect();
        let found = self.load_pages(&pages)?;
        let mut unsure: Vec<u64> = Vec::new();
        for (&block, (contents, sure)) in allowed {
            let at = (block * BLOCK) as usize..((block + 1) * BLOCK) as usize;
            let old = self.media[at.clone()].to_vec();
            let held = [0, 1].map(|n: usize| {
                let page = found[n].get(&(block / BLOCKS));
                let from = (block % BLOCKS * BLOCK) as usize;
                page.and_then(|page| page.get(from..from + BLOCK as usize))
                    .unwrap_or_default()
            });
            let known = contents.iter().all(|c| !c.is_empty());
            for (dut, held) in self.duts.iter().zip(held) {
                let fits = contents.iter().any(|c| c[..] == *held) || !sure && old == held;
                if known && !fits {
                    return Err(format!(
                        "{}: block {block} of the media holds {:02x?}..., \
                         which no command has written",
                        dut.name,
                        &held[..16.min(held.len())]
                    ));
                }
            }
            if *sure && held[0] != held[1] {
                return Err(format!(
                    "block {block} of the media differs: {}",
                    rules::first_difference(held[0], held[1])
                ));
            }
            match sure {
                true => self.media[at].copy_from_slice(held[0]),
                false => unsure.push(block),
            }
            self.report.compared_bytes += BLOCK;
        }
        self.equalise_blocks(&unsure)
    }

    /// Writes the assumed content to blocks that may hold something else.
    pub fn equalise_blocks(&mut self, blocks: &[u64]) -> StepResult {
        for &block in blocks {
            let at = (block * BLOCK) as usize..((block + 1) * BLOCK) as usize;
            let content = self.media[at].to_vec();
            self.write(Bar::Pm, block * BLOCK, &content);
        }
        match blocks.is_empty() {
            true => Ok(()),
            false => self.wait_until_idle(),
        }
    }

    /// Loads pages of the media of both.
    fn load_pages(&mut self, pages: &BTreeSet<u64>) -> StepResult<[BTreeMap<u64, Vec<u8>>; 2]> {
        let mut out: [BTreeMap<u64, Vec<u8>>; 2] = Default::default();
        let loads: Vec<(u64, u32)> = pages
            .iter()
            .map(|page| (page * PAGE, PAGE as u32))
            .collect();
        for (dut, out) in self.duts.iter_mut().zip(&mut out) {
            let found = dut.loads(Bar::Pm, &loads)?;
            for (&page, data) in pages.iter().zip(found) {
                let data = data.ok_or_else(|| {
                    format!("{}: page {page} of the media cannot be loaded", dut.name)
                })?;
                out.insert(page, data);
            }
        }
        Ok(out)
    }

    /// Compares all of the media.
    pub fn compare_all_media(&mut self) -> StepResult {
        let pages: Vec<u64> = (0..self.shape.media_bytes / PAGE).collect();
        for some in pages.chunks(64) {
            let some: BTreeSet<u64> = some.iter().copied().collect();
            let [left, right] = self.load_pages(&some)?;
            for (page, data) in left {
                let at = (page * PAGE) as usize..((page + 1) * PAGE) as usize;
                let known = &self.media[at];
                for (dut, data) in self.duts.iter().zip([&data, &right[&page]]) {
                    if data != known {
                        let what = rules::first_difference(data, known);
                        return Err(format!(
                            "{}: page {page} of the media is not as it should be: {what}",
                            dut.name
                        ));
                    }
                }
                self.report.compared_bytes += PAGE;
            }
        }
        self.align_time()
    }

    /// Compares messages: all of them if `exact`, else the set of messages. Their order is that of
    /// completions, which is not determined.
    pub fn compare_messages(&mut self, exact: bool) -> StepResult {
        let exact = exact && !self.state.coalesced;
        self.compare("messages", |dut| {
            let mut all = std::mem::take(&mut dut.host.messages);
            all.sort();
            if !exact {
                all.dedup();
            }
            Ok(all)
        })
        .map(drop)
    }

    /// Compares the memory that the devices have written.
    pub fn compare_memory(&mut self, deleted: Option<u16>) -> StepResult {
        let mut dirty = BTreeSet::new();
        for dut in &mut self.duts {
            dirty.extend(dut.host.memory.take_dirty());
        }
        let [left, right] = &self.duts;
        let shadow = left.shadow.map(|(_, events)| events);
        for page in dirty {
            if left.host.rings.contains_key(&page) {
                continue;
            }
            let (a, b) = (left.host.memory.page(page), right.host.memory.page(page));
            if a == b {
                continue;
            }
            if shadow == Some(page) && rules::same_event_idx(a, b, deleted) {
                continue;
            }
            return Err(format!(
                "host memory differs in the page at {page:#x}: {}",
                rules::first_difference(a, b)
            ));
        }
        self.arena.end_step();
        Ok(())
    }
}

/// The data of a command, in order. Bytes that it has not written are zero.
fn gather(dut: &Dut, command: &Command) -> Vec<u8> {
    let mut data = vec![0; command.bytes as usize];
    for &(offset, addr, len) in &command.buffer.pieces {
        let to = data.get_mut(offset as usize..(offset + len) as usize);
        if let (Some(to), Some(from)) = (to, dut.host.memory.get(addr, len)) {
            to.copy_from_slice(from);
        }
    }
    data
}

/// True if a command with this opcode may take long, so that it may be aborted.
pub fn takes_long(opcode: u8) -> bool {
    matches!(
        opcode,
        io::WRITE_ZEROES | io::VERIFY | io::DATASET_MANAGEMENT
    ) || COMMANDS.contains(&opcode)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use nvme::Namespaces;

    use crate::commands::{COPY, COUNT, FILTER};
    use crate::generate::Limits;

    /// Blocks of each of two namespaces: few, so that commands overlap.
    const BLOCKS: u64 = 512;

    fn is_engines(planned: &PlannedCommand) -> bool {
        COMMANDS.contains(&planned.command.sqe.opcode())
    }

    /// Blocks that engines and other commands write at the same time are not atomic. So no other
    /// command uses blocks of an engine's command, not even a command with a wrong namespace, whose
    /// effect moves there.
    #[test]
    #[ignore = "takes seconds"]
    fn engine_blocks_are_used_by_no_other_command() {
        let limits = Limits {
            queues: 4,
            entries: 64,
            transfer: 1 << 20,
            events: 4,
            namespaces: Arc::new(Namespaces::new(&[BLOCKS, BLOCKS])),
            doorbell_buffer: true,
            engines: vec![COPY, COUNT, FILTER],
        };
        let media = vec![0; (2 * BLOCKS * BLOCK) as usize];
        let mut arena = Arena::new();
        let mut random = Random::new(1);
        let mut engines = 0;
        for round in 0..3000 {
            arena.end_step();
            let mut locks = RangeLocks::new(round % 2 == 0);
            let mut commands = Vec::new();
            for _ in 0..12 {
                let mut host = StepHost {
                    arena: &mut arena,
                    media: &media,
                    locks: &locks,
                };
                let policy = Policy::Determined { wrong: 100 };
                let command = Generator::new(&mut random, &mut host, &limits, policy).io();
                let Some(command) = command else { continue };
                let effects = Effects::of(1, &command, &media, &limits.namespaces);
                let planned = PlannedCommand { command, effects };
                if planned.lock(&mut locks) {
                    commands.push(planned);
                }
            }
            for (n, engine) in commands.iter().enumerate().filter(|(_, c)| is_engines(c)) {
                engines += u64::from(!engine.effects.writes.is_empty());
                for (_, other) in commands.iter().enumerate().filter(|(m, _)| *m != n) {
                    let writes = engine.effects.writes.iter().map(|(b, _)| *b..*b + 1);
                    let writes: Vec<_> = writes.collect();
                    let met = engine.effects.writes_in(&other.effects.reads)
                        || other.effects.writes_in(&writes)
                        || other.effects.writes_in(&engine.effects.reads);
                    let dw = |planned: &PlannedCommand| planned.command.sqe.dw;
                    assert!(!met, "{:08x?} beside {:08x?}", dw(engine), dw(other));
                }
            }
        }
        assert!(engines > 100, "{engines}");
    }
}
