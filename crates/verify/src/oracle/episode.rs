// SPDX-License-Identifier: Apache-2.0

//! One episode: a device from power-on to the final comparison. Each step has a separate seed, so a
//! subset of the steps can be run again.
//!
//! # What is generated
//!
//! Commands are those of [`generate`](crate::generate). Beside them, valid and invalid:
//!
//! - Doorbells: one or several commands and completions at a time, and shadow doorbells by
//!   EventIdx, enabled at any time. Invalid: absent queues, values beyond the queue, offsets of
//!   shadow pages, shadow pages without memory.
//! - Registers: writes to read-only registers, reads anywhere, NSSR with other values.
//! - PM window: loads, and stores of 1 byte to 4 KiB at any byte, beside commands.
//! - Interrupts: a vector is masked, its entry changed, read back and unmasked. The function is
//!   masked, or MSI-X disabled, for microseconds or until a later step, beside commands.
//! - Memory: the design's, or a memory with a random latency of each access, up to 200 ns, 2, 10
//!   or 40 us.
//! - Features: coalescing with any threshold and time, followed by a pause longer than any. Keep
//!   Alive Timeouts, expired or not.
//! - Life cycle: round robin or weighted round robin, queues of 2 to 64 entries, masked vectors.
//!   At any time: disable, shutdown, function level reset, subsystem reset, power cut, invalid
//!   settings, queues without memory.
//! - The link: answers after 100 to 500 ns in several parts, back-pressure, and error answers.
//! - Two devices, in every third episode (1, 4, 7 ...), if the last 256 KiB of the media belong
//!   to no namespace. Each is connected by a `sim::Link` of one of seven speeds, with small and
//!   large TLPs, credits, tags and buffers. The pages of the one host memory belong to both hosts
//!   in turn. Of 100 pages for data, PRP lists and SGL segments, 15 lie in the other device's
//!   BAR2.

mod queues;
mod reset;
mod window;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use nvme::Namespaces;
use sim::{Bar, Mmio, Random, Time};
use spec::nvme::properties::{self, Cap, Csts};
use spec::nvme::{admin, feature, oacs, Sqe};

use crate::campaign::{
    Conditions, EpisodeEnd, EpisodeFailure, KeepRunning, Script, StepResult, Totals,
};
use crate::commands::{COMMANDS, PIPELINE};
use crate::generate::reserved::{randomise_reserved, Set};
use crate::generate::{Command, Generator, Limits, Policy};
use crate::link::LinkPort;
use crate::oracle::host_model::{HostModel, PendingCommand, SqState, MSI};
use crate::oracle::media::Media;
use crate::oracle::memory::Memory;
use crate::oracle::model::{CompletionQueue, KnownPage, Model, SubmissionQueue};
use crate::oracle::rig::{Rig, Seat};
use crate::oracle::shadow::Pages;
use crate::oracle::{Make, Report, Target};
use crate::random::{chance, pick};
use crate::{BLOCK, PAGE};

/// Host memory of an episode.
const PAGES: u64 = 4096;
/// Longest time of a register read.
const REGISTER: Time = Time(1_000_000_000);
/// Longest time until every submitted command completes, and until a reset ends, without late
/// memory.
const DEADLINE: Time = Time(20_000_000_000);
/// Longer than the longest aggregation time of interrupts (5.21.1.8: 255 times 100 us).
const COALESCED: Time = Time(25_600_000_000);
/// Longer than twice the controller's timeout for the host (`HostTimeout`, 25 ms).
const HOST_PAUSE: Time = Time::ms(60);
/// CSTS shows the end of a Keep Alive Timeout after this time.
const EXPIRED: Time = Time(2_000_000);
/// Longest Keep Alive Timeout that the host waits for.
const WAITED: Time = Time(1_000_000_000_000);
/// Longest time of an admin command that waits for no other command, while the host accepts writes.
/// It holds for commands without data, and for all commands without late memory.
const ADMIN: Time = Time(150_000_000);
/// Accesses to late memory that the data of an admin command may wait for.
const ADMIN_ACCESSES: u64 = 100;
/// As [`ADMIN`], for a device on a link, with other devices at the host.
const ADMIN_BESIDE: Time = Time(1_000_000_000);
/// Longest time of a message to the host, with several devices. It may queue after a read of
/// another device, which waits for the stores on a link that takes one at a time.
const PROMPT_BESIDE: Time = Time(100_000_000);
/// Longest time of a doorbell to the device, with several devices. It queues after stores to the
/// media.
const DOORBELL_BESIDE: Time = Time(1_000_000_000);
/// Time (ns) in which everything on a link arrives after its device has lost power.
const LINK_DRAIN_NS: u64 = 20_000;
/// Pages at the end of each device's media that are the window of another device, if there is one.
const WINDOW_PAGES: u64 = 64;
/// The same in bytes.
pub const WINDOW_BYTES: u64 = WINDOW_PAGES * PAGE;
/// One of this many episodes has two devices.
const PAIR_PERIOD: u32 = 3;
/// Most namespaces that the host asks for.
const MOST_NAMESPACES: u64 = 1024;
/// Entries of a completion queue that leave room for the waiting first halves of all submission
/// queues.
const ROOM_FOR_PAIRS: u64 = 12;
/// Reads of the PM window in flight at once.
const LOADS: usize = 8;

/// Makes a host whose device's last pages may be the window of another device.
fn host_of(target: &Target, memory: Memory, pages: u64) -> HostModel {
    let limits = HostModel::vacant().model.limits;
    let media = Media::new((target.media_bytes - pages * PAGE) / BLOCK);
    let mut host = HostModel::new(memory, media, Model::new(limits, BTreeMap::new()));
    host.valid_only = target.valid_only;
    if target.torn_blocks {
        host.media.tolerate_torn_blocks();
    }
    host
}

/// Runs an episode on fresh devices with empty media. It is an error if no device can be made.
pub fn run(
    make: &mut Make,
    target: &Target,
    script: &Script,
    keep_running: &mut KeepRunning,
) -> Result<(Report, EpisodeEnd), String> {
    let mut random = Random::new(script.seed_of(u64::MAX - 2));
    let late = !target.valid_only && chance(&mut random, 40);
    let most = pick(&mut random, &[200, 2_000, 10_000, 40_000]);
    let conditions = Conditions {
        late_memory: late.then_some(Time::ns(most)),
        seed: random.next(),
    };
    let mut report = Report::default();
    if late {
        report.count("episodes with late memory");
    }
    let window = target.unclaimed_bytes >= WINDOW_BYTES;
    let mut benches = Vec::new();
    if target.valid_only || !window || script.episode % PAIR_PERIOD != 1 {
        let mut bench = Bench::new(Seat::Alone(make(&conditions)?), &conditions);
        bench.host = host_of(target, Memory::new(PAGES), 0);
        benches.push(bench);
    } else {
        report.count("episodes with two devices");
        let mut random = Random::new(script.seed_of(u64::MAX - 3));
        let mut devices = Vec::new();
        for n in 0..2 {
            let seed = conditions.seed ^ n;
            devices.push(make(&Conditions { seed, ..conditions })?);
        }
        let host = |memory| host_of(target, memory, WINDOW_PAGES);
        let bytes = target.media_bytes;
        let rig = Rig::new(devices, &mut random, PAGES, bytes, WINDOW_PAGES, host)?;
        let rig = Rc::new(RefCell::new(rig));
        let seat = |n| Seat::Beside(rig.clone(), n);
        benches.extend((0..2).map(|n| Bench::new(seat(n), &conditions)));
    }
    let mut end = EpisodeEnd::default();
    let result = step_devices(&mut benches, script, &mut end, keep_running);
    let mut history = Vec::new();
    let mut time = Time::ZERO;
    for bench in &mut benches {
        bench
            .in_turn(|bench| {
                time = time.max(bench.now);
                report.add(std::mem::take(&mut bench.host.counts));
                history.extend(bench.host.history.iter().cloned());
                history.push(bench.host.describe());
                Ok(())
            })
            .unwrap_or_default();
    }
    report.simulated_ns = time.as_ns();
    end.failure = result.err().map(|what| EpisodeFailure { what, history });
    Ok((report, end))
}

/// Runs the steps of all hosts in turn.
fn step_devices(
    benches: &mut Vec<Bench>,
    script: &Script,
    end: &mut EpisodeEnd,
    keep_running: &mut KeepRunning,
) -> StepResult {
    let each = |benches: &mut [Bench], step: u64, act: &mut dyn FnMut(&mut Bench) -> StepResult| {
        for (n, bench) in (0..).zip(benches) {
            bench.in_turn(|bench| {
                bench.reseed(script.seed_of(step) ^ n);
                act(bench)
            })?;
        }
        Ok(())
    };
    each(benches, u64::MAX, &mut |bench| {
        bench.discover()?;
        bench.enable()
    })?;
    let soak = script.steps.is_none() && benches[0].host.valid_only;
    let mut moved = (0, Time::ZERO);
    let done = |benches: &mut Vec<Bench>| {
        let amount = benches.iter_mut().map(Bench::progress).sum();
        let (now, deadline) = (benches[0].now, benches[0].deadline);
        if amount != moved.0 {
            moved = (amount, now);
        } else if soak && now > moved.1 + deadline {
            return Err(format!("hung: nothing has happened for {deadline}"));
        }
        Ok(amount)
    };
    script.run_steps(benches, end, keep_running, done, |benches, step, seed| {
        let n = Random::new(!seed).below(benches.len() as u64) as usize;
        benches[n].in_turn(|bench| {
            bench.reseed(seed);
            bench.host.note(format!("step {step} at {}", bench.now));
            bench.step()
        })
    })?;
    if end.stopped {
        return Ok(());
    }
    each(benches, u64::MAX - 1, &mut Bench::drain)?;
    each(benches, u64::MAX - 4, &mut Bench::compare_media)
}

struct Bench {
    seat: Seat,
    host: HostModel,
    random: Random,
    now: Time,
    cid: u16,
    tag: u32,
    cc: u32,
    known: BTreeMap<KnownPage, Rc<Vec<u8>>>,
    limits: Limits,
    /// The controller may use shadow doorbells until its next reset.
    shadows: bool,
    /// Longest time until every submitted command completes.
    deadline: Time,
    /// Longest times of admin commands that wait for no other command: without data, and with data.
    /// The data take the same path as those of I/O commands, and wait for the memory as long as
    /// these.
    admin: (Time, Time),
    /// Longest additional time of a memory access.
    late: Time,
}

impl Bench {
    fn new(seat: Seat, conditions: &Conditions) -> Bench {
        let host = HostModel::vacant();
        let late = conditions.late_memory.unwrap_or_default();
        let alone = matches!(seat, Seat::Alone(_));
        let admin = if alone { ADMIN } else { ADMIN_BESIDE };
        // An access to late memory waits for earlier commands as well.
        let deadline = Time(DEADLINE.0 * if alone { 1 } else { 3 } + late.0 * 4000);
        Bench {
            seat,
            random: Random::new(0),
            now: Time::ZERO,
            cid: 0,
            tag: 0,
            cc: 0,
            known: BTreeMap::new(),
            limits: host.model.limits.clone(),
            host,
            shadows: false,
            deadline,
            admin: (admin, admin + Time(late.0 * ADMIN_ACCESSES)),
            late,
        }
    }

    /// Runs an action of one host. Outside of its turn, its host model is in the [`Rig`].
    fn in_turn(&mut self, act: impl FnOnce(&mut Bench) -> StepResult) -> StepResult {
        let Seat::Beside(rig, n) = &self.seat else {
            return act(self);
        };
        let (rig, n) = (rig.clone(), *n);
        rig.borrow_mut().swap(n, &mut self.host);
        self.now = self.seat.now();
        self.host.prompt = PROMPT_BESIDE;
        self.host.stale = DOORBELL_BESIDE;
        let result = act(self);
        rig.borrow_mut().swap(n, &mut self.host);
        result
    }

    /// The measure of an episode's length: commands, or bytes if `valid_only`.
    fn progress(&mut self) -> u64 {
        let mut done = 0;
        let look = |bench: &mut Bench| {
            let counts = &bench.host.counts;
            done = if bench.host.valid_only {
                counts.moved_bytes
            } else {
                counts.commands
            };
            Ok(())
        };
        self.in_turn(look).map_or(0, |()| done)
    }

    fn count(&mut self, what: &str) {
        self.host.counts.count(what);
    }

    fn reseed(&mut self, seed: u64) {
        let mut random = Random::new(seed);
        self.host.link.random = Random::new(random.next());
        self.random = random;
    }

    /// A generator of a command for this host.
    fn generate(&mut self) -> Generator<'_> {
        let policy = match self.host.valid_only {
            true => Policy::Valid,
            false => Policy::Hostile,
        };
        Generator::new(&mut self.random, &mut self.host, &self.limits, policy)
    }

    /// True if the device has an engine for lists.
    fn has_lists(&self) -> bool {
        self.limits.engines.contains(&PIPELINE)
    }

    // ---- time and registers ----

    /// Advances the time; true if the host was woken before `until`.
    fn advance(&mut self, until: Time, watch: bool) -> Result<bool, String> {
        let device = match &mut self.seat {
            Seat::Alone(device) => device,
            Seat::Beside(rig, n) => {
                let woken = rig.borrow_mut().advance(*n, &mut self.host, until, watch)?;
                self.now = self.seat.now();
                return Ok(woken);
            }
        };
        loop {
            self.host.clear_wake();
            let passed = device.advance(until, &mut LinkPort(&mut self.host));
            if let Some(failure) = &self.host.failure {
                return Err(failure.clone());
            }
            passed.map_err(|fault| fault.to_string())?;
            if !self.host.woken() {
                self.now = until.max(device.now());
                return Ok(false);
            }
            self.now = device.now().max(self.now);
            if watch {
                return Ok(true);
            }
        }
    }

    fn wait_ns(&mut self, ns: u64) -> StepResult {
        self.advance(self.now + Time::ns(ns), false).map(drop)
    }

    fn write32(&mut self, offset: u64, value: u32) {
        let data = value.to_le_bytes().to_vec();
        self.host.post(
            self.now,
            Mmio::Write {
                bar: Bar::Nvme,
                offset,
                data,
            },
        );
    }

    fn write64(&mut self, offset: u64, value: u64) {
        self.write32(offset, value as u32);
        self.write32(offset + 4, (value >> 32) as u32);
    }

    fn load(&mut self, bar: Bar, offset: u64, len: u32) -> u32 {
        self.tag += 1;
        self.host.post(
            self.now,
            Mmio::Read {
                bar,
                offset,
                len,
                tag: self.tag,
            },
        );
        self.tag
    }

    fn answer(&mut self, tag: u32) -> Result<Vec<u8>, String> {
        let limit = self.now + REGISTER;
        loop {
            if let Some(at) = self.host.answers.iter().position(|a| a.0 == tag) {
                let data = self.host.answers.swap_remove(at).1;
                return data.ok_or_else(|| "a read of a BAR failed".into());
            }
            if self.now >= limit {
                return Err(format!(
                    "hung: a read of a BAR was not answered within {REGISTER}"
                ));
            }
            self.advance(limit, true)?;
        }
    }

    fn read32(&mut self, offset: u64) -> Result<u32, String> {
        let tag = self.load(Bar::Nvme, offset, 4);
        let data = self.answer(tag)?;
        let bytes: [u8; 4] = data
            .try_into()
            .map_err(|_| "a register of 4 bytes answers another number")?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Waits until CSTS satisfies `done`. The state holds from the answer on, where `silent` takes
    /// effect.
    fn csts(&mut self, what: &str, silent: bool, done: impl Fn(Csts) -> bool) -> StepResult {
        let limit = self.now + self.deadline;
        loop {
            let csts = Csts(self.read32(properties::CSTS)?);
            if done(csts) {
                self.host.silent = silent;
                return Ok(());
            }
            if self.now > limit {
                return Err(format!(
                    "hung: CSTS is {:#x}, and not {what}, after {}",
                    csts.0, self.deadline
                ));
            }
            let ns = 50 + self.random.below(500);
            self.wait_ns(ns)?;
        }
    }

    // ---- life cycle ----

    /// Discovers the controller's limits in a first, short enabled period.
    fn discover(&mut self) -> StepResult {
        let cap = u64::from(self.read32(0)?) | u64::from(self.read32(4)?) << 32;
        self.limits.entries = Cap(cap).max_queue_entries();
        self.start_controller(32, 32)?;
        let controller = self.page(Sqe::identify(1, 0))?;
        let word = |page: &[u8], at: usize, len: usize| {
            let bytes = page[at..at + len].iter().rev();
            bytes.fold(0u64, |value, &byte| value << 8 | u64::from(byte))
        };
        self.limits.transfer = match controller[77] {
            0 => 1 << 32,
            mdts => PAGE << mdts.min(20),
        };
        self.limits.events = usize::from(controller[259]) + 1;
        let oacs = word(&controller, 256, 2) as u16;
        self.limits.doorbell_buffer = oacs & oacs::DOORBELL_BUFFER_CONFIG != 0;
        let count = word(&controller, 516, 4).min(MOST_NAMESPACES) as u32;
        // Defaults until the limits are known.
        let any = Namespaces::new(&vec![1; count as usize]);
        self.host.model.limits.namespaces = Arc::new(any);
        let mut sizes = Vec::new();
        for nsid in 1..=count {
            let namespace = self.page(Sqe::identify(0, nsid))?;
            let blocks = word(&namespace, 0, 8);
            sizes.push(blocks);
            self.known
                .insert(KnownPage::Identify(0, nsid), Rc::new(namespace));
            for cns in [3, 8] {
                if cns == 8 || blocks > 0 {
                    let page = self.page(Sqe::identify(cns, nsid))?;
                    self.known
                        .insert(KnownPage::Identify(cns, nsid), Rc::new(page));
                }
            }
        }
        let namespaces = Namespaces::new(&sizes);
        if namespaces.media_blocks() > self.host.media.len() {
            return Err("the namespaces are larger than the media".into());
        }
        let command_set = self.page(Sqe::identify(6, 0))?;
        self.known
            .insert(KnownPage::Identify(1, 0), Rc::new(controller));
        self.known
            .insert(KnownPage::Identify(6, 0), Rc::new(command_set));
        self.limits.namespaces = Arc::new(namespaces);
        for lid in [3u8, 5] {
            let dwords = if lid == 3 { 127 } else { 1023 };
            let sqe = Sqe::new(admin::GET_LOG_PAGE).with_cdw(10, dwords << 16 | u32::from(lid));
            let mut page = self.page(sqe)?;
            page.truncate(4 * (dwords as usize + 1));
            // The I/O commands may follow 256 admin commands.
            if lid == 5 {
                let effects = |opcode: u8| word(&page, 4 * (256 + usize::from(opcode)), 4);
                let engines = COMMANDS.into_iter();
                self.limits.engines = engines.filter(|&o| effects(o) & 1 == 1).collect();
            }
            self.known.insert(KnownPage::Log(lid), Rc::new(page));
        }
        self.page(Sqe::number_of_queues(1))?;
        self.limits.queues = (self.host.result as u16).saturating_add(1);
        self.disable()
    }

    /// Runs a single command with a page for its data; returns the page's content.
    fn page(&mut self, sqe: Sqe) -> Result<Vec<u8>, String> {
        let page = self
            .host
            .memory
            .alloc(&mut self.random)
            .ok_or("no memory")?;
        let mut command = Command::plain(sqe.with_prps(page, 0));
        command.buffer.pages.push(page);
        self.submit(0, command);
        self.ring_sq(0);
        self.drain()?;
        Ok(self
            .host
            .memory
            .get(page, PAGE)
            .unwrap_or_default()
            .to_vec())
    }

    /// Enables the controller with admin queues of these entries.
    fn start_controller(&mut self, sq_entries: u32, cq_entries: u32) -> StepResult {
        let mut take = || self.host.memory.alloc(&mut self.random).ok_or("no memory");
        let (asq, acq) = (take()?, take()?);
        self.host.model = Model::new(self.limits.clone(), self.known.clone());
        let model = &mut self.host.model;
        model.sqs.insert(
            0,
            SubmissionQueue {
                base: asq,
                entries: sq_entries,
                cqid: 0,
            },
        );
        model.cqs.insert(
            0,
            CompletionQueue {
                base: acq,
                entries: cq_entries,
                vector: Some(0),
            },
        );
        self.host.open_sq(0);
        self.host.open_cq(0);
        self.interrupts();
        self.write32(properties::AQA, properties::aqa(sq_entries, cq_entries));
        self.write64(properties::ASQ, asq);
        self.write64(properties::ACQ, acq);
        self.host.silent = false;
        let weighted = chance(&mut self.random, 40);
        let cc = properties::Cc::DEFAULT.with_weighted_round_robin(weighted);
        self.cc = cc.with_enable(true).0;
        if weighted {
            self.count("lives with weighted round robin");
        }
        if !self.host.valid_only && chance(&mut self.random, 3) {
            self.cc = self.cc & !(0xFF << 16) | 0x55 << 16;
            self.host.model.entry_sizes = (false, false);
        }
        self.write32(properties::CC, self.cc);
        self.csts("ready", false, |csts| csts.ready())
    }

    /// Sets up the MSI-X table.
    fn interrupts(&mut self) {
        self.host.messages.clear();
        for vector in 0..=self.limits.queues {
            let masked = vector != 0 && chance(&mut self.random, 15);
            let entry = self.message(vector);
            self.write32(entry + 12, masked.into());
            if masked {
                self.host.messages.mask(vector);
            }
        }
    }

    /// Sets address and data of a vector; returns the offset of its entry.
    fn message(&mut self, vector: u16) -> u64 {
        let addr = MSI.start + 16 * self.random.below(4096);
        let data = self.random.next() as u32 & 0xFFFF_FF00 | u32::from(vector);
        let entry = properties::MSIX_TABLE + 16 * u64::from(vector);
        self.write64(entry, addr);
        self.write32(entry + 8, data);
        self.host.messages.set_entry(vector, addr, data);
        entry
    }

    /// Masks a vector, changes its entry, and unmasks it, while commands are in flight.
    fn change_mask(&mut self) -> StepResult {
        let vector = self.random.below(u64::from(self.limits.queues) + 1) as u16;
        let entry = properties::MSIX_TABLE + 16 * u64::from(vector);
        self.count("vectors masked and changed");
        self.write32(entry + 12, 1);
        let tag = self.load(Bar::Nvme, entry + 12, 4);
        self.host.messages.mask_from(tag, vector);
        if self.answer(tag)? != [1, 0, 0, 0] {
            return Err(format!("the mask of vector {vector} does not read as 1"));
        }
        let wait = |bench: &mut Bench| {
            let ns = bench.random.below(3000);
            bench.wait_ns(ns)
        };
        wait(self)?;
        self.message(vector);
        if chance(&mut self.random, 50) {
            self.read32(entry)?;
            wait(self)?;
        }
        if chance(&mut self.random, 40) {
            // Completions that are polled meanwhile need no interrupt any more.
            self.consume_all();
            wait(self)?;
        }
        self.host.messages.unmask(vector, self.now);
        self.write32(entry + 12, 0);
        // The bound of due messages counts from the arrival of the write.
        if self.flush_messages()? {
            self.host.messages.unmask(vector, self.now);
        }
        Ok(())
    }

    /// Masks all vectors of the function, or disables MSI-X, while commands are in flight: for some
    /// time, or until a later step. Configuration space holds these bits. So they take effect after
    /// earlier accesses to registers and before later ones.
    fn switch_messages(&mut self) -> StepResult {
        self.read32(properties::CSTS)?;
        let prompt = self.host.prompt.0 / 1000;
        if self.host.messages.permitted() {
            let disabled = chance(&mut self.random, 25);
            self.count(match disabled {
                true => "MSI-X disabled",
                false => "functions masked",
            });
            self.host.messages.suspend(disabled);
            self.seat
                .set_msix(!disabled, !disabled || chance(&mut self.random, 50));
            self.wait_ns(prompt)?;
            self.flush_messages()?;
            self.host.messages.suspended();
            if chance(&mut self.random, 30) {
                return Ok(());
            }
            let ns = self.random.below(20_000);
            self.wait_ns(ns)?;
            if chance(&mut self.random, 40) {
                // Completions that are polled meanwhile need no interrupt any more.
                self.consume_all();
            }
            self.read32(properties::CSTS)?;
        }
        self.host.messages.resume(self.now);
        self.seat.set_msix(true, false);
        self.wait_ns(prompt)?;
        if self.flush_messages()? {
            self.host.messages.resume(self.now);
        }
        self.host.messages.resumed();
        Ok(())
    }

    /// On a link, messages may wait for data of another device. Messages that are already decided
    /// arrive before the answer to a read. Returns true if such a read was needed.
    fn flush_messages(&mut self) -> Result<bool, String> {
        let beside = matches!(self.seat, Seat::Beside(..));
        if beside {
            self.read32(properties::CSTS)?;
        }
        Ok(beside)
    }

    fn enable(&mut self) -> StepResult {
        let queues = u64::from(self.limits.queues);
        // A queue of two entries holds one command.
        let few = chance(&mut self.random, 15);
        let sq = 2 + self.random.below(if few { 2 } else { 63 }) as u32;
        let cq = 2 + self.random.below(if few { 2 } else { 63 }) as u32;
        self.start_controller(sq, cq)?;
        self.shadows = chance(&mut self.random, 40) && self.limits.doorbell_buffer;
        self.host.shadow.wanted = self.shadows;
        let shadow_at = self.shadows.then(|| self.random.below(6));
        let least = if self.host.valid_only { 4 } else { 2 };
        for n in 0..least + self.random.below(2 * queues) {
            let command = match n % 2 {
                0 => self.create_cq(),
                _ => self.create_sq(),
            };
            if let Some(command) = command {
                if self.admin_full() {
                    self.drain()?;
                }
                self.submit(0, command);
                self.ring_sq(0);
                self.drain()?;
            }
            if shadow_at == Some(n) {
                if let Some(command) = self.shadow() {
                    self.count("lives with shadow doorbells");
                    self.submit(0, command);
                    self.ring_sq(0);
                }
            }
        }
        Ok(())
    }

    // ---- queues ----

    fn submit(&mut self, qid: u16, command: Command) {
        let Command {
            mut sqe, buffer, ..
        } = command;
        for (addr, data) in &buffer.stores {
            self.host.memory.store(*addr, data);
        }
        let pages = buffer.pages;
        if !self.host.valid_only {
            let set = if qid == 0 { Set::Admin } else { Set::Nvm };
            randomise_reserved(&mut self.random, set, &mut sqe);
        }
        self.cid = self.cid.wrapping_add(1);
        // Asynchronous Event Requests keep their identifiers for long.
        while self.host.uses(self.cid) {
            self.cid = self.cid.wrapping_add(1);
        }
        let offers = sqe.opcode() == admin::DOORBELL_BUFFER_CONFIG && self.limits.doorbell_buffer;
        if qid == 0 && offers {
            let (doorbells, events) = (sqe.prp1(), sqe.prp2());
            let HostModel { shadow, memory, .. } = &mut self.host;
            shadow.offer_pages(memory, Pages { doorbells, events });
        }
        let Some(queue) = self.host.sqs.get_mut(&qid) else {
            pages.into_iter().for_each(|p| self.host.memory.free(p));
            return;
        };
        let at = queue.base + 64 * (queue.tail % queue.entries);
        queue.tail += 1;
        queue.waiting.push_back(PendingCommand { pages });
        self.host
            .memory
            .store(at, &sqe.with_cid(self.cid).to_bytes());
    }

    /// Writes the doorbell for all placed commands. The doorbell of a queue that is being deleted
    /// is left alone: a deletion may take as long as an engine's command. For the controller the
    /// queue is gone from the beginning of the deletion on.
    fn ring_sq(&mut self, qid: u16) {
        if let Some(queue) = self.host.sqs.get_mut(&qid).filter(|q| q.usable) {
            queue.rung = queue.tail;
            queue.rungs.push_back(queue.tail);
            let tail = (queue.tail % queue.entries) as u16;
            self.ring(qid, false, tail);
        }
    }

    /// A host stores the command's data before its shadow doorbell, and the shadow doorbell before
    /// it reads EventIdx.
    fn flush(&mut self) {
        if let Seat::Beside(rig, n) = &self.seat {
            let flushed = rig.borrow_mut().flush(*n, &mut self.host);
            self.now = self.seat.now();
            if let Err(text) = flushed {
                self.host.fail(text);
            }
        }
    }

    /// Writes a doorbell, or its shadow.
    fn ring(&mut self, qid: u16, head: bool, value: u16) {
        if qid != 0 {
            self.flush();
            let HostModel { shadow, memory, .. } = &mut self.host;
            let register = shadow.ring(memory, qid, head, value);
            self.flush();
            if !register && !chance(&mut self.random, 3) {
                self.count("doorbells written to memory only");
                return;
            }
        }
        let offset = match head {
            true => properties::cq_doorbell(qid, 4),
            false => properties::sq_doorbell(qid, 4),
        };
        self.write32(offset, value.into());
    }

    /// Consumes at most `most` completions.
    fn consume(&mut self, qid: u16, most: u64) {
        if let Some(queue) = self.host.cqs.get_mut(&qid) {
            let count = (queue.tail - queue.head).min(most);
            if count > 0 {
                queue.head += count;
                queue.rung = queue.head;
                let (vector, empty) = (queue.vector, queue.head == queue.tail);
                let head = (queue.head % queue.entries) as u16;
                if let (true, Some(vector)) = (empty, vector) {
                    let coalesced = self.host.model.features.coalesced();
                    self.host.messages.emptied(vector, self.now, coalesced);
                }
                self.ring(qid, true, head);
            }
        }
    }

    fn consume_all(&mut self) {
        let qids: Vec<u16> = self.host.cqs.keys().copied().collect();
        qids.into_iter().for_each(|qid| self.consume(qid, u64::MAX));
    }

    /// Queues with room for a command.
    fn with_room(&self) -> Vec<u16> {
        self.host
            .sqs
            .iter()
            .filter(|(&qid, q)| qid != 0 && q.usable && !q.broken && q.has_room())
            .map(|(&qid, _)| qid)
            .collect()
    }

    /// True if a first command of a fused pair does not wait for room that its partner needs.
    fn takes_pairs(&self, qid: u16) -> bool {
        let cq = self
            .host
            .sqs
            .get(&qid)
            .and_then(|q| self.host.cqs.get(&q.cqid));
        cq.is_some_and(|cq| cq.entries >= ROOM_FOR_PAIRS)
    }

    /// Waits until every command with a rung doorbell has completed.
    fn drain(&mut self) -> StepResult {
        let qids: Vec<u16> = self.host.sqs.keys().copied().collect();
        qids.into_iter().for_each(|qid| self.ring_sq(qid));
        let begun = self.now;
        let (mut since, mut held, mut lists) = (begun, false, Time::ZERO);
        let mut accesses = 0;
        self.host.watch = true;
        loop {
            self.keep_alive()?;
            if self.host.fatal {
                self.host.watch = false;
                return self.recover();
            }
            self.interrupts_came()?;
            self.consume_all();
            // The bound of a command that waits for others counts from their end.
            let slow = self.host.admin_waits_for_io();
            if slow || held {
                since = self.now;
            }
            held = slow;
            lists = lists.max(self.host.lists());
            // Transfers of I/O commands that have begun occupy the walkers and the room of a mover
            // first.
            accesses = accesses.max(self.host.accesses());
            let others = Time(self.late.0 * accesses);
            let (bound, data) = (self.admin.0, self.admin.1 + lists + others);
            if let Some(late) = self.host.late_admin(self.now, since, bound, data) {
                return Err(late);
            }
            let open = self.host.sqs.values().any(|q| q.fetched < q.rung);
            if !open && self.host.in_flight_count() == 0 {
                break;
            }
            let deadline = self.deadline + lists;
            let limit = begun + deadline;
            if self.now >= limit {
                return Err(format!(
                    "hung: not all commands have completed within {deadline}"
                ));
            }
            // A fatal error wakes no host.
            let until = (self.now + Time::us(20)).min(limit);
            self.advance(until, true)?;
        }
        self.host.watch = false;
        // Interrupts follow their completions.
        self.wait_ns(self.host.prompt.0 / 1000 + 1000)?;
        self.interrupts_came()?;
        Ok(())
    }

    /// If the Keep Alive Timeout may have expired, waits until the controller reports it.
    fn keep_alive(&mut self) -> StepResult {
        let Some((earliest, latest)) = self.host.keep_alive else {
            return Ok(());
        };
        if !self.host.may_have_expired(self.now) {
            return Ok(());
        }
        if self.now < latest + EXPIRED {
            self.advance(latest + EXPIRED, false)?;
        }
        // A Keep Alive command may have arrived in time.
        if self.host.keep_alive == Some((earliest, latest)) {
            self.count("Keep Alive Timeouts expired");
            self.host.fatal = true;
            self.host.close_down();
        }
        Ok(())
    }

    /// Waits until shortly before the end of a Keep Alive Timeout. Then sends a Keep Alive command,
    /// or lets the timeout expire.
    fn outlast_keep_alive(&mut self) -> StepResult {
        self.drain()?;
        if !self.host.valid_only && !self.admin_full() && chance(&mut self.random, 80) {
            let sqe = Sqe::new(admin::SET_FEATURES)
                .with_cdw(10, feature::KEEP_ALIVE_TIMER.into())
                .with_cdw(11, 1 + self.random.below(500) as u32);
            self.submit(0, Command::plain(sqe));
            self.drain()?;
        }
        let Some((earliest, _)) = self.host.keep_alive else {
            return Ok(());
        };
        if self.host.fatal || earliest > self.now + WAITED {
            return Ok(());
        }
        let before = Time::ns(25_000 + self.random.below(100_000));
        if earliest > self.now + before {
            self.advance(Time(earliest.0 - before.0), false)?;
        }
        if self.now + Time::us(20) < earliest {
            let csts = Csts(self.read32(properties::CSTS)?);
            if csts.fatal() {
                return Err(format!(
                    "CSTS is {:#x} before the Keep Alive Timeout",
                    csts.0
                ));
            }
        }
        self.count("Keep Alive Timeouts waited for");
        if chance(&mut self.random, 50) && !self.admin_full() {
            self.submit(0, Command::plain(Sqe::new(admin::KEEP_ALIVE)));
            self.ring_sq(0);
            return self.drain();
        }
        self.advance(earliest, false).map(drop)
    }

    /// The host polls nothing for longer than a first fused command waits for a partner without
    /// room.
    fn ignore_device(&mut self) -> StepResult {
        self.count("hosts that sleep");
        self.advance(self.now + HOST_PAUSE, false).map(drop)
    }

    /// The host waits for longer than any interrupt may be delayed.
    fn wait_longest(&mut self) -> StepResult {
        self.drain()?;
        if self.host.fatal {
            return Ok(());
        }
        self.count("rests longer than any coalescing");
        // No queue is polled.
        self.advance(self.now + COALESCED, false)?;
        let owed = self.host.messages.overdue(self.now, COALESCED);
        if owed.is_empty() {
            return Ok(());
        }
        Err(format!(
            "no interrupt came within {COALESCED} after completions of vectors {owed:?}"
        ))
    }

    /// Checks that interrupts have followed their completions.
    fn interrupts_came(&mut self) -> StepResult {
        let owed = self.host.messages.overdue(self.now, self.host.prompt);
        if owed.is_empty() || self.host.model.features.coalesced() {
            return Ok(());
        }
        Err(format!(
            "no interrupt came after completions of vectors {owed:?}"
        ))
    }

    // ---- steps ----

    fn step(&mut self) -> StepResult {
        // Steps of other devices have advanced the time, too.
        self.keep_alive()?;
        if self.host.fatal {
            return self.recover();
        }
        let kind = match self.host.valid_only {
            // Valid commands, in the same proportions.
            true => [0, 0, 0, 0, 0, 660, 790, 955][self.random.below(8) as usize],
            false => self.random.below(1000),
        };
        match kind {
            0..=79 if self.has_lists() && !self.host.valid_only => self.run_list(),
            0..=549 => self.io_batch(),
            550..=559 => self.interrupt_engine(),
            560..=659 => self.admin_batch(),
            660..=789 => {
                let qids: Vec<u16> = self.host.cqs.keys().copied().collect();
                for qid in qids {
                    let most = match chance(&mut self.random, 70) {
                        true => u64::MAX,
                        false => self.random.below(3),
                    };
                    self.consume(qid, most);
                }
                Ok(())
            }
            790..=891 => {
                let ns = match chance(&mut self.random, 90) {
                    true => self.random.below(2_000),
                    false => self.random.below(30_000),
                };
                self.wait_ns(ns)
            }
            892..=899 => self.switch_messages(),
            900..=929 => self.write_bad_doorbell(),
            930..=944 => self.access_registers(),
            945..=954 => self.change_mask(),
            955..=964 => self.load_media(),
            965..=974 => self.store_media(),
            975..=991 => self.drain(),
            992 if chance(&mut self.random, 50) => self.ignore_device(),
            992 => self.wait_longest(),
            993 | 994 => self.outlast_keep_alive(),
            _ => self.reset(),
        }?;
        self.keep_alive()?;
        if self.host.fatal {
            return self.recover();
        }
        Ok(())
    }

    fn io_batch(&mut self) -> StepResult {
        let queues = self.with_room();
        if queues.is_empty() {
            // The queues may be full of commands whose doorbell was not written yet.
            let unrung = |(&qid, q): (&u16, &SqState)| (q.rung < q.tail).then_some(qid);
            let qids: Vec<u16> = self.host.sqs.iter().filter_map(unrung).collect();
            qids.into_iter().for_each(|qid| self.ring_sq(qid));
            self.consume_all();
            return self.wait_ns(1500);
        }
        let qid = queues[self.random.below(queues.len() as u64) as usize];
        let mut commands = VecDeque::new();
        for _ in 0..1 + self.random.below(6) {
            if commands.is_empty() {
                let fused =
                    !self.host.valid_only && self.takes_pairs(qid) && chance(&mut self.random, 8);
                let generated = match fused {
                    true => self.generate().fused(),
                    false => self.generate().io().map(|c| vec![c]),
                };
                let Some(generated) = generated else {
                    // No free memory: wait for commands to release some.
                    self.ring_sq(qid);
                    self.consume_all();
                    return self.wait_ns(5000);
                };
                commands.extend(generated);
            }
            if !self.with_room().contains(&qid) {
                break;
            }
            let Some(command) = commands.pop_front() else {
                break;
            };
            self.submit(qid, command);
            if !commands.is_empty() && chance(&mut self.random, 5) {
                // A doorbell between the halves of a pair.
                self.ring_sq(qid);
            }
        }
        for command in commands {
            let pages = command.buffer.pages.into_iter();
            pages.for_each(|p| self.host.memory.free(p));
        }
        if chance(&mut self.random, 90) {
            self.ring_sq(qid);
        }
        Ok(())
    }

    /// A long command of an engine, and mostly an action that ends it early.
    fn interrupt_engine(&mut self) -> StepResult {
        let queues = self.with_room();
        if queues.is_empty() || self.admin_full() || self.limits.engines.is_empty() {
            return self.admin_batch();
        }
        let qid = pick(&mut self.random, &queues);
        let command = match self.has_lists() && chance(&mut self.random, 50) {
            true => self.store_random_list(true)?,
            false => None,
        };
        let Some(command) = command.or_else(|| self.generate().engine(true)) else {
            return Ok(());
        };
        self.submit(qid, command);
        let cid = u32::from(self.cid);
        self.ring_sq(qid);
        let most = pick(&mut self.random, &[1_500, 5_000, 30_000]);
        let ns = self.random.below(most);
        self.wait_ns(ns)?;
        let sqe = match self.random.below(8) {
            0..=3 => Sqe::new(admin::ABORT).with_cdw(10, cid << 16 | u32::from(qid)),
            4 => Sqe::delete_io_sq(qid),
            5 => return self.reset(),
            _ => return Ok(()),
        };
        self.submit_admin(Command::plain(sqe));
        self.ring_sq(0);
        Ok(())
    }

    /// Stores a list in the media, and returns the command that runs it; `None` without an unused
    /// location.
    fn store_random_list(&mut self, long: bool) -> Result<Option<Command>, String> {
        let Some((list, bytes)) = self.generate().list(long) else {
            return Ok(None);
        };
        self.count("lists of commands");
        self.store_list(list.byte(), bytes)?;
        Ok(self.generate().list_command(&list, false))
    }

    /// Runs a command of a list, beside other commands.
    fn run_list(&mut self) -> StepResult {
        let Some(command) = self.store_random_list(false)? else {
            return Ok(());
        };
        // Commands that the store has delayed.
        if let Some(&qid) = self.with_room().first() {
            self.submit(qid, command);
            self.ring_sq(qid);
        }
        Ok(())
    }

    /// True if the admin queue has no room for another command.
    fn admin_full(&self) -> bool {
        !self.host.sqs.get(&0).is_some_and(SqState::has_room)
    }

    fn admin_batch(&mut self) -> StepResult {
        for _ in 0..1 + self.random.below(3) {
            if self.admin_full() {
                self.consume_all();
                self.ring_sq(0);
                return self.wait_ns(1000);
            }
            if let Some(command) = self.admin_command() {
                self.submit_admin(command);
            }
        }
        self.ring_sq(0);
        Ok(())
    }

    fn submit_admin(&mut self, command: Command) {
        // The host does not use a queue that it deletes.
        if command.sqe.opcode() == admin::DELETE_IO_SQ {
            let qid = command.sqe.dw[10] as u16;
            // The admin queue always stays.
            if let Some(queue) = self.host.sqs.get_mut(&qid).filter(|_| qid != 0) {
                queue.usable = false;
            }
        }
        self.submit(0, command);
    }

    /// Writes a doorbell of a queue that does not exist, or a value outside its queue.
    fn write_bad_doorbell(&mut self) -> StepResult {
        let mut qid = self.random.below(u64::from(self.limits.queues) + 4) as u16;
        if self.shadows && qid <= self.limits.queues {
            // The initial value of a shadow doorbell is undefined after that.
            qid = 0;
        }
        let head = chance(&mut self.random, 50);
        let entries = match head {
            true => self.host.cqs.get(&qid).map(|q| q.entries),
            false => self.host.sqs.get(&qid).map(|q| q.entries),
        };
        // A queue may be created or replaced before the doorbell arrives: no queue has more than 64
        // entries.
        let settled =
            self.host.in_flight_count() == 0 && self.host.sqs.values().all(|q| q.fetched == q.rung);
        let value = match entries {
            None if settled => self.random.below(70_000),
            Some(entries) if settled => entries + self.random.below(65_536 - entries),
            _ => 64 + self.random.below(65_472),
        };
        let offset = match head {
            true => properties::cq_doorbell(qid, 4),
            false => properties::sq_doorbell(qid, 4),
        };
        self.host.bad_doorbells += 1;
        self.host
            .note(format!("bad doorbell {offset:#x} = {value:#x}"));
        self.write32(offset, value as u32);
        Ok(())
    }

    /// Writes read-only registers, or reads others.
    fn access_registers(&mut self) -> StepResult {
        match self.random.below(4) {
            0 => {
                // Only one value causes a reset.
                let value = self.random.next() as u32 & !1;
                self.write32(properties::NSSR, value);
                Ok(())
            }
            1 => {
                let offset = [0, 4, 8, properties::CSTS][self.random.below(4) as usize];
                let value = self.random.next() as u32;
                self.write32(offset, value);
                Ok(())
            }
            2 => {
                let csts = Csts(self.read32(properties::CSTS)?);
                let fatal = self.host.fatal || self.host.may_have_expired(self.now);
                match csts.ready() && (!csts.fatal() || fatal) {
                    true => Ok(()),
                    false => Err(format!("CSTS is {:#x} in operation", csts.0)),
                }
            }
            _ => {
                let offset = self.random.below(0x4000) & !3;
                self.read32(offset).map(drop)
            }
        }
    }
}
