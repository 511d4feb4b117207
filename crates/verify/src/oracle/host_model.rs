// SPDX-License-Identifier: Apache-2.0

//! The host's side of the device's link, where every access of the device is checked as it arrives.
//!
//! - A write is a completion queue entry at its queue's tail, an interrupt of the table, or the
//!   correct bytes at an address that a command in flight names. Anything else is a failure, so
//!   no data outside the host's buffers can change unnoticed.
//! - A read fetches the next rung submission queue entry, or bytes that a command in flight
//!   names.
//! - A completion belongs to a command in flight, follows all of its data, and has a status that
//!   the model permits.
//! - No access arrives while the controller has to be silent.
//!
//! # What is checked
//!
//! - Fused commands answer as a pair: the answer of one restricts the answers of the other.
//! - Every fetched command completes once, after all of its data, or is lost in a reset. The
//!   model permits its status, dword 0 and SQHD. Where errors race, each of them is permitted;
//!   otherwise one only.
//! - After a format all blocks are zeros, except for later writes. A refused command has changed
//!   nothing.
//! - No access arrives after CSTS reports that there is none. A subsystem reset resets all
//!   properties.
//! - Interrupts follow completions, at the latest after the longest aggregation time. None
//!   arrives while a mask that was read back is effective, at an entry that was replaced, or for
//!   a queue that was emptied long ago.
//! - No interrupt arrives 5 us after the function was masked or disabled. On a link, this is
//!   after the answer of a read that begins 20 us later.
//! - Masked messages are sent as soon as the mask is removed. Messages that fall due while MSI-X
//!   is disabled are dropped. Events have a cause.
//! - A Keep Alive Timeout ends in CFS at its time, under any load, and never earlier. Command
//!   Interrupted is used only with ACRE.
//! - Admin commands that wait for no other command complete within 150 us after the host accepts
//!   writes (1 ms with two devices). With late memory, those with data may take 100 accesses
//!   more: their data take the path of I/O data.
//! - Everything ends within 20 ms of simulated time (60 ms with two devices), and 4000 accesses
//!   more with late memory. Both limits grow by 2 us for each list of the commands in flight (of
//!   PRPs, or a segment of an SGL). A ring of segments is detected after 4096 of them.
//! - The deletion of a queue aborts commands that zero, verify or belong to an engine (08h). Of
//!   other commands it aborts only a fused pair and commands that may have waited after one;
//!   those have written nothing.
//! - Counts of an engine match values that its range has held during the count.
//! - The device's clock has 50 MHz or more: slower ones are refused.
//! - All media, including blocks outside of namespaces, hold what the model permits. This is
//!   checked at each read, load and Compare, and at the end. A Compare, alone or fused, takes
//!   commands into account that arrived meanwhile.

mod completion;
mod messages;
mod pairs;
mod port;
mod scoreboard;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use sim::{Mmio, Random, Time};
use spec::nvme::Sqe;

use crate::commands::{FUSED_FIRST, FUSED_SECOND};
use crate::generate::{Limits, Surroundings};
use crate::link::HostLink;
use crate::oracle::block::WriteOutcome;
use crate::oracle::expectation::{CompletionEffect, DataSource, Direction, Expectation, MediaUse};
use crate::oracle::media::Media;
use crate::oracle::memory::Memory;
use crate::oracle::model::fused::NextCommand;
use crate::oracle::model::{flags, Model};
use crate::oracle::shadow::{queue_at, Pages, Shadow};
use crate::oracle::walk::Walk;
use crate::oracle::Report;
use crate::PAGE;
pub use messages::Messages;
use pairs::Fused;
use scoreboard::ReadScoreboard;

/// Address range of interrupt messages.
pub const MSI: std::ops::Range<u64> = 0xFEE0_0000..0xFEF0_0000;
/// Longest time to read a list (of PRPs, or a segment of an SGL), including a slow link.
const LIST: Time = Time::us(2);
/// Lines of history in the report of a failure.
const HISTORY: usize = 60;
/// Pages that stay free, for queues.
const SPARE_PAGES: u64 = 64;

/// A command that was placed and not yet fetched.
#[derive(Clone, Debug, Default)]
pub struct PendingCommand {
    /// Its pages.
    pub pages: Vec<u64>,
}

/// The host's side of a submission queue. Entries are counted from the queue's creation.
#[derive(Clone, Debug, Default)]
pub struct SqState {
    /// Its address.
    pub base: u64,
    /// Its entries.
    pub entries: u64,
    /// Its completion queue.
    pub cqid: u16,
    /// Entries placed by the host.
    pub tail: u64,
    /// Entries that the controller was notified of.
    pub rung: u64,
    /// Successive doorbell values beyond the fetched entries.
    pub rungs: VecDeque<u64>,
    /// Entries fetched.
    pub fetched: u64,
    /// Entries that the controller has reported as free again.
    pub head: u64,
    /// Commands placed and not fetched, oldest first.
    pub waiting: VecDeque<PendingCommand>,
    /// The host may use the queue.
    pub usable: bool,
    /// A read of the queue has failed.
    pub broken: bool,
}

impl SqState {
    /// True if another command fits: one entry always stays free.
    pub fn has_room(&self) -> bool {
        self.tail - self.head < self.entries - 1
    }

    /// Whether the queue held another command after this one when it was fetched.
    fn more(&mut self, position: u64) -> NextCommand {
        while self.rungs.front().is_some_and(|&tail| tail <= position) {
            self.rungs.pop_front();
        }
        match self.rungs.front() {
            _ if self.rung <= position + 1 => NextCommand::No,
            Some(&tail) if tail >= position + 2 => NextCommand::Yes,
            _ => NextCommand::Unsure,
        }
    }
}

/// The host's side of a completion queue. Entries are counted from the queue's creation.
#[derive(Clone, Debug, Default)]
pub struct CqState {
    /// Its address.
    pub base: u64,
    /// Its entries.
    pub entries: u64,
    /// Its interrupt vector, if it has interrupts.
    pub vector: Option<u16>,
    /// Entries written by the controller.
    pub tail: u64,
    /// Entries consumed by the host.
    pub head: u64,
    /// Entries that the controller was notified of.
    pub rung: u64,
    /// The host may use the queue.
    pub usable: bool,
}

/// A command that was fetched and not yet completed.
#[derive(Debug)]
struct InFlight {
    sqe: Sqe,
    position: u64,
    /// When it was fetched.
    begun: Time,
    expectation: Expectation,
    pages: Vec<u64>,
    written: u64,
    shared: bool,
    /// Its user number in the media.
    user: u64,
    fused: Option<Fused>,
    /// The data that a Read has delivered so far.
    scoreboard: Option<ReadScoreboard>,
    /// It waits, or may have waited, after a fused pair.
    after_pair: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClaimKind {
    ToHost,
    FromHost,
    List,
}

#[derive(Clone, Copy, Debug)]
struct ClaimedRange {
    key: (u16, u16),
    at: u64,
    len: u64,
    offset: u64,
    claim: ClaimKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchedPage {
    Sq(u16),
    Cq(u16),
    Shadow,
    EventIdx,
}

/// The host as the device sees it: everything that the device can access, and its permitted
/// accesses.
pub struct HostModel {
    /// Host memory.
    pub memory: Memory,
    /// Possible contents of the media.
    pub media: Media,
    /// The reference model.
    pub model: Model,
    /// Its end of the link, unless another link has the timing.
    pub link: HostLink,
    /// Submission queues.
    pub sqs: BTreeMap<u16, SqState>,
    /// Completion queues.
    pub cqs: BTreeMap<u16, CqState>,
    /// The controller may not access the host.
    pub silent: bool,
    /// The model expects a fatal error: CSTS.CFS must be set.
    pub fatal: bool,
    /// The first failure.
    pub failure: Option<String>,
    /// Returns control to the host at the next completion.
    pub watch: bool,
    /// Answers of register reads.
    pub answers: Vec<(u32, Option<Vec<u8>>)>,
    /// Shadow doorbells.
    pub shadow: Shadow,
    /// Interrupts.
    pub messages: Messages,
    /// Longest time of a message after its cause, and after its mask.
    pub prompt: Time,
    /// Earliest and latest expiry of the Keep Alive Timer, while it runs.
    pub keep_alive: Option<(Time, Time)>,
    /// A message later than this after its cause is a failure, as the doorbell that empties its
    /// queue has reached the device long before.
    pub stale: Time,
    /// The host sends valid commands only.
    pub valid_only: bool,
    /// Invalid doorbell writes: of absent queues, or with bad values.
    pub bad_doorbells: u64,
    /// DW0 of the last completion.
    pub result: u32,
    /// Statistics.
    pub counts: Report,
    /// The last events.
    pub history: VecDeque<String>,
    in_flight: BTreeMap<(u16, u16), InFlight>,
    /// An I/O command that ended as aborted; its Abort has to report so.
    aborted: Option<(u16, u16)>,
    places: HashMap<u64, Vec<ClaimedRange>>,
    rings: HashMap<u64, WatchedPage>,
    /// When an admin command was last fetched.
    admin_fetched: Time,
    users: u64,
    now: Time,
    wake: bool,
}

impl HostModel {
    /// A host with this memory before a device with this media.
    pub fn new(memory: Memory, media: Media, model: Model) -> HostModel {
        HostModel {
            memory,
            media,
            model,
            link: HostLink::new(),
            sqs: BTreeMap::new(),
            cqs: BTreeMap::new(),
            silent: true,
            fatal: false,
            failure: None,
            watch: false,
            answers: Vec::new(),
            shadow: Shadow::default(),
            messages: Messages::default(),
            prompt: Time::us(5),
            keep_alive: None,
            stale: Time::us(10),
            valid_only: false,
            now: Time::ZERO,
            bad_doorbells: 0,
            result: 0,
            counts: Report::default(),
            history: VecDeque::new(),
            in_flight: BTreeMap::new(),
            aborted: None,
            places: HashMap::new(),
            rings: HashMap::new(),
            admin_fetched: Time::ZERO,
            users: 0,
            wake: false,
        }
    }

    /// An empty host model, in place of a model that is in use elsewhere.
    pub fn vacant() -> HostModel {
        let limits = Limits {
            queues: 0,
            entries: 2,
            transfer: PAGE,
            events: 1,
            namespaces: Arc::default(),
            doorbell_buffer: false,
            engines: Vec::new(),
        };
        let model = Model::new(limits, BTreeMap::new());
        HostModel::new(Memory::new(0), Media::new(0), model)
    }

    /// Adds an event to the history, for the report of a failure.
    pub fn note(&mut self, text: String) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(text);
    }

    /// Records a failure; only the first one is kept.
    pub fn fail(&mut self, text: String) {
        self.failure.get_or_insert(text);
    }

    /// Sends a register access to the device.
    pub fn post(&mut self, now: Time, access: Mmio) {
        let time = now + Time::ns(20 + self.link.random.below(30));
        self.link.post(time, access);
    }

    /// True if the device may now access a page in the window of another device.
    pub fn names_window(&self) -> bool {
        let rung = self.sqs.values().flat_map(|q| {
            let count = q.rung.saturating_sub(q.fetched) as usize;
            q.waiting.iter().take(count).flat_map(|r| &r.pages)
        });
        let active_pages = self.in_flight.values().flat_map(|f| &f.pages);
        rung.chain(active_pages).any(|&p| self.memory.is_window(p))
    }

    /// Opens a queue of the model: accesses to its page are watched.
    pub fn open_sq(&mut self, qid: u16) {
        let Some(q) = self.model.sqs.get(&qid).cloned() else {
            return;
        };
        if let Some(old) = self.sqs.get(&qid).map(|q| q.base) {
            self.close_sq(qid, old);
        }
        self.rings.insert(q.base / PAGE, WatchedPage::Sq(qid));
        let (entries, usable) = (u64::from(q.entries), qid == 0);
        self.sqs.insert(
            qid,
            SqState {
                base: q.base,
                entries,
                cqid: q.cqid,
                usable,
                ..SqState::default()
            },
        );
    }

    /// See [`HostModel::open_sq`].
    pub fn open_cq(&mut self, qid: u16) {
        let Some(q) = self.model.cqs.get(&qid).cloned() else {
            return;
        };
        if let Some(old) = self.cqs.get(&qid).map(|q| q.base) {
            self.close_cq(qid, old);
        }
        self.rings.insert(q.base / PAGE, WatchedPage::Cq(qid));
        let (entries, usable) = (u64::from(q.entries), qid == 0);
        self.cqs.insert(
            qid,
            CqState {
                base: q.base,
                entries,
                vector: q.vector,
                usable,
                ..CqState::default()
            },
        );
        self.messages.opened(qid, q.vector);
    }

    fn close_sq(&mut self, qid: u16, base: u64) {
        if self.sqs.get(&qid).is_some_and(|q| q.base == base) {
            let rungs = self.sqs.remove(&qid).map(|q| q.waiting).unwrap_or_default();
            rungs.into_iter().for_each(|r| self.free_pages(r.pages));
            self.shadow.close(&mut self.memory, qid, false);
            self.close(base);
        }
    }

    fn close_cq(&mut self, qid: u16, base: u64) {
        if self.cqs.get(&qid).is_some_and(|q| q.base == base) {
            self.cqs.remove(&qid);
            self.messages.closed(qid);
            self.shadow.close(&mut self.memory, qid, true);
            self.close(base);
        }
    }

    /// Number of commands in flight, without waiting Asynchronous Event Requests.
    pub fn in_flight_count(&self) -> usize {
        let events = self
            .in_flight
            .values()
            .filter(|f| matches!(f.expectation.after, CompletionEffect::Event(_)))
            .count();
        self.in_flight.len() - events.min(self.model.limits.events)
    }

    /// True if a format, a deletion of a queue or an Abort of an I/O command is in flight: admin
    /// commands may wait for I/O commands then.
    pub fn admin_waits_for_io(&self) -> bool {
        let mut in_flight = self.in_flight.range((0, 0)..(1, 0));
        in_flight.any(|(_, f)| {
            matches!(
                f.expectation.after,
                CompletionEffect::Formatted(_)
                    | CompletionEffect::SqDeleted(..)
                    | CompletionEffect::AbortIo(..)
            )
        })
    }

    /// Longest time to read the lists of the commands in flight. Each list gives the address of the
    /// next one. SGLs of one direction are walked in turn, so a ring of segments delays later ones
    /// until it is detected.
    pub fn lists(&self) -> Time {
        let lists = self
            .in_flight
            .values()
            .map(|f| f.expectation.walk.lists.len());
        Time(LIST.0 * lists.sum::<usize>() as u64)
    }

    /// Most accesses of the media for the data of the commands in flight.
    pub fn accesses(&self) -> u64 {
        let walks = self.in_flight.values().map(|f| &f.expectation.walk);
        // A segment of host memory lies in a page, and so in at most two segments of the media.
        walks.map(|walk| 2 * walk.segments.len() as u64).sum()
    }

    /// Reports an admin command that is late: it waits for no other command, and `since` and its
    /// fetch were long ago. The limit is `bound` for commands without data, else `data`.
    pub fn late_admin(&self, now: Time, since: Time, bound: Time, data: Time) -> Option<String> {
        if self.admin_waits_for_io() {
            return None;
        }
        let waiting = self.sqs.get(&0).is_some_and(|q| q.fetched < q.rung);
        let mut in_flight = self.in_flight.range((0, 0)..(1, 0));
        let late = in_flight.find_map(|(k, f)| {
            let bound = if f.expectation.walk == Walk::default() {
                bound
            } else {
                data
            };
            let event = matches!(f.expectation.after, CompletionEffect::Event(_));
            let late = !event && now >= f.begun.max(since) + bound;
            late.then(|| {
                format!(
                    "the admin command {:02x}h, CID {:#06x}, is not done \
                     {bound} after it was fetched and the host has begun to wait",
                    f.sqe.opcode(),
                    k.1
                )
            })
        });
        let unfetched = waiting && now >= self.admin_fetched.max(since) + data;
        late.or(unfetched.then(|| format!("an admin command was not fetched in {data}")))
    }

    /// True if a command with this identifier is in flight.
    pub fn uses(&self, cid: u16) -> bool {
        self.in_flight.keys().any(|k| k.1 == cid)
    }

    /// The commands in flight, for the report of a failure.
    pub fn describe(&self) -> String {
        let mut lines: Vec<String> = self
            .in_flight
            .iter()
            .map(|((sqid, cid), f)| {
                format!("  in flight: SQ {sqid} CID {cid:#06x} {:08x?}", f.sqe.dw)
            })
            .collect();
        for (qid, q) in &self.sqs {
            lines.push(format!(
                "  SQ {qid}: placed {} rung {} fetched {} head {}",
                q.tail, q.rung, q.fetched, q.head
            ));
        }
        for (qid, q) in &self.cqs {
            lines.push(format!(
                "  CQ {qid}: written {} consumed {} rung {}",
                q.tail, q.head, q.rung
            ));
        }
        lines.join("\n")
    }

    /// The controller was reset: all commands in flight are dropped.
    pub fn forget(&mut self) {
        for (key, active) in std::mem::take(&mut self.in_flight) {
            self.counts.dropped += 1;
            self.release(key, active, WriteOutcome::Part);
        }
        let sqs: Vec<(u16, u64)> = self.sqs.iter().map(|(&qid, q)| (qid, q.base)).collect();
        sqs.into_iter()
            .for_each(|(qid, base)| self.close_sq(qid, base));
        let cqs: Vec<(u16, u64)> = self.cqs.iter().map(|(&qid, q)| (qid, q.base)).collect();
        cqs.into_iter()
            .for_each(|(qid, base)| self.close_cq(qid, base));
        for pages in std::mem::take(&mut self.shadow).opened {
            self.close_shadow(pages);
        }
        self.rings.clear();
        self.messages.reset();
        self.aborted = None;
        self.keep_alive = None;
        self.fatal = false;
    }

    /// A command fetched at this time has restarted the Keep Alive Timer.
    fn restart_keep_alive(&mut self, fetched: Time) {
        // The timer is halted while the host stops the controller.
        let stopped = self.model.closing && self.keep_alive.is_none();
        let time = Time::ms(self.model.features.keep_alive().into());
        let runs = !stopped && time > Time::ZERO;
        self.keep_alive = runs.then_some((fetched + time, self.now + time));
    }

    /// True if the Keep Alive Timeout may have expired by then.
    pub fn may_have_expired(&self, now: Time) -> bool {
        self.keep_alive.is_some_and(|(earliest, _)| now >= earliest)
    }

    /// The power is lost, with everything in flight on the link.
    pub fn forget_link(&mut self) {
        self.link.clear();
        self.answers.clear();
    }

    fn close_shadow(&mut self, pages: Pages) {
        self.close(pages.doorbells);
        self.close(pages.events);
    }

    fn close(&mut self, base: u64) {
        self.rings.remove(&(base / PAGE));
        if self.memory.exists(base, PAGE) {
            self.memory.free(base);
        }
    }

    fn free_pages(&mut self, pages: Vec<u64>) {
        for page in pages {
            self.memory.free(page);
        }
    }

    // ---- what the device reads ----

    fn handle_read(&mut self, addr: u64, len: u32) -> Result<Option<Vec<u8>>, String> {
        let len = u64::from(len);
        match self.rings.get(&(addr / PAGE)) {
            Some(&WatchedPage::Sq(qid)) => return self.fetch(qid, addr, len),
            Some(WatchedPage::Shadow) => return self.serve_shadow(addr, len),
            _ => {}
        }
        let at = addr % PAGE;
        let places = self.places.get(&(addr / PAGE)).map_or(&[][..], |p| &p[..]);
        let named = places.iter().any(|p| {
            let (from, to) = (p.at / 64 * 64, (p.at + p.len).next_multiple_of(64));
            p.claim != ClaimKind::ToHost && at >= from && at + len <= to
        });
        if !named {
            return Err(format!(
                "a read of {len} bytes at {addr:#x}, which no command in flight names"
            ));
        }
        Ok(self.memory.get(addr, len).map(<[u8]>::to_vec))
    }

    fn serve_shadow(&mut self, addr: u64, len: u64) -> Result<Option<Vec<u8>>, String> {
        let (qid, head) = queue_at(addr);
        if qid == 0 || qid > self.model.limits.queues || len > 64 {
            return Err(format!(
                "a read of {len} bytes at {addr:#x}: no queue has its shadow doorbell there"
            ));
        }
        self.counts.count("shadow doorbells read");
        let data = self.memory.get(addr, len).map(<[u8]>::to_vec);
        self.note(format!(
            "read the shadow doorbell of queue {qid}, head {head}"
        ));
        if data.is_none() {
            self.fatal = true;
            self.close_down();
        }
        Ok(data)
    }

    fn take_event_idx(&mut self, addr: u64, data: &[u8]) -> Result<(), String> {
        let (qid, head) = queue_at(addr);
        let entries = match head {
            true => self.cqs.get(&qid).map(|q| q.entries),
            false => self.sqs.get(&qid).map(|q| q.entries),
        };
        let value = <[u8; 4]>::try_from(data).map(u32::from_le_bytes);
        let fits = value.is_ok_and(|v| u64::from(v) < entries.unwrap_or(1 << 16));
        if qid == 0 || qid > self.model.limits.queues || addr % 4 != 0 || !fits {
            return Err(format!("a wrong EventIdx {data:02x?} at {addr:#x}"));
        }
        self.counts.count("EventIdx written");
        self.memory.device_write(addr, data);
        Ok(())
    }

    fn fetch(&mut self, qid: u16, addr: u64, len: u64) -> Result<Option<Vec<u8>>, String> {
        let Some(queue) = self.sqs.get_mut(&qid) else {
            return Err(format!(
                "a read of submission queue {qid}, which was deleted"
            ));
        };
        let index = queue.fetched % queue.entries;
        if len != 64 || addr != queue.base + 64 * index {
            return Err(format!(
                "a read of {len} bytes at {addr:#x}: SQ {qid} goes on with entry {index}"
            ));
        }
        if queue.fetched == queue.rung {
            return Err(format!(
                "SQ {qid}: entry {index} is fetched before its doorbell"
            ));
        }
        let position = queue.fetched;
        queue.fetched += 1;
        let more = queue.more(position);
        let mut rung = queue.waiting.pop_front().unwrap_or_default();
        let Some(bytes) = self
            .memory
            .get(addr, 64)
            .and_then(|b| <[u8; 64]>::try_from(b).ok())
        else {
            queue.broken = true;
            self.fatal = true;
            self.free_pages(rung.pages);
            self.close_down();
            return Ok(None);
        };
        self.counts.commands += 1;
        if qid == 0 {
            self.admin_fetched = self.now;
        }
        let sqe = Sqe::from_bytes(&bytes);
        let key = (qid, sqe.cid());
        let judged = self
            .model
            .expect(qid, &sqe, more, &self.memory, &self.media);
        let (expectation, pair) = judged;
        let fused = pair.and_then(|pair| self.apply_pair(key, pair));
        let user = self.new_user();
        self.begin_command(key, user, &expectation);
        if rung.pages.iter().any(|&p| self.memory.is_window(p)) {
            let kind = match expectation.direction {
                Direction::ToHost(_) => "commands with data to another device",
                Direction::FromHost => "commands with data from another device",
                Direction::None => "commands refused that name another device",
            };
            self.counts.count(kind);
        }
        for kind in command_kinds(qid, &sqe, &expectation, fused.is_some()) {
            self.counts.count(kind);
        }
        match expectation.after {
            // The page belongs to the queue from now on.
            CompletionEffect::SqCreated(new) => {
                rung.pages.clear();
                self.open_sq(new);
            }
            CompletionEffect::CqCreated(new) => {
                rung.pages.clear();
                self.open_cq(new);
            }
            CompletionEffect::SqDeleted(old, _) => self.break_pairs(old),
            CompletionEffect::Shadow(pages) => {
                rung.pages.clear();
                self.rings
                    .insert(pages.doorbells / PAGE, WatchedPage::Shadow);
                self.rings
                    .insert(pages.events / PAGE, WatchedPage::EventIdx);
                self.shadow.opened.push(pages);
            }
            _ => {}
        }
        self.note(format!(
            "fetched SQ {qid} CID {:#06x} {:08x?} -> {:?}",
            sqe.cid(),
            sqe.dw,
            expectation.statuses
        ));
        let scoreboard = match (&expectation.media, &expectation.direction) {
            (&MediaUse::Read(lba, count), Direction::ToHost(_)) => {
                Some(ReadScoreboard::new(lba, count, self.media.now()))
            }
            _ => None,
        };
        let active = InFlight {
            sqe,
            position,
            begun: self.now,
            expectation,
            pages: rung.pages,
            written: 0,
            shared: false,
            user,
            fused,
            scoreboard,
            after_pair: self.in_flight.values().any(|f| f.fused.is_some()),
        };
        if self.in_flight.insert(key, active).is_some() {
            return Err(format!(
                "the fuzzer used CID {:#06x} twice on SQ {qid}",
                key.1
            ));
        }
        self.permit_abort();
        Ok(Some(bytes.to_vec()))
    }

    /// I/O commands in flight that an Abort may find: those that may take long, and first commands
    /// of fused pairs.
    pub fn abortable(&self) -> Vec<(u16, u16)> {
        let in_flight = self.in_flight.iter();
        in_flight
            .filter(|(k, f)| k.0 != 0 && (f.expectation.long || flags(&f.sqe).0 == FUSED_FIRST))
            .map(|(&k, _)| k)
            .collect()
    }

    /// A new user number for the media.
    pub fn new_user(&mut self) -> u64 {
        self.users += 1;
        self.users
    }

    /// Begins a command: the addresses that it names, and its use of the media.
    fn begin_command(&mut self, key: (u16, u16), user: u64, expectation: &Expectation) {
        let claim = match expectation.direction {
            Direction::ToHost(_) => Some(ClaimKind::ToHost),
            Direction::FromHost => Some(ClaimKind::FromHost),
            Direction::None => None,
        };
        if let Some(claim) = claim {
            let data = expectation.walk.segments.iter();
            let data = data.map(|s| (s.addr, s.len, s.offset, claim));
            let lists = expectation.walk.lists.iter();
            let lists = lists.map(|&(addr, len)| (addr, len, 0, ClaimKind::List));
            for (addr, len, offset, claim) in data.chain(lists) {
                let place = ClaimedRange {
                    key,
                    at: addr % PAGE,
                    len,
                    offset,
                    claim,
                };
                self.places.entry(addr / PAGE).or_default().push(place);
            }
        }
        if let Some((lba, count)) = expectation.list {
            self.media.begin_read(lba, count);
        }
        match &expectation.media {
            MediaUse::None => {}
            MediaUse::Read(lba, count)
            | MediaUse::Compare(lba, count, _)
            | MediaUse::Count(lba, count, _) => self.media.begin_read(*lba, *count),
            MediaUse::Write(lba, data) => self.media.begin_write(user, *lba, data),
            MediaUse::Derive(product) => self.media.begin_derive(user, *product),
            MediaUse::WriteUnknown(parts) => parts
                .iter()
                .for_each(|part| self.media.begin_unknown_write(user, part.0, part.1)),
            MediaUse::Zero(ranges) => ranges
                .iter()
                .for_each(|r| self.media.begin_zero(user, r.0, r.1)),
        }
    }

    // ---- what the device writes ----

    fn handle_write(&mut self, addr: u64, data: &[u8]) -> Result<(), String> {
        let len = data.len() as u64;
        match self.rings.get(&(addr / PAGE)) {
            Some(&WatchedPage::Cq(qid)) => return self.complete(qid, addr, data),
            Some(WatchedPage::EventIdx) => return self.take_event_idx(addr, data),
            _ => {}
        }
        let at = addr % PAGE;
        let (mut wrong, mut taken, mut ways) = (None, Vec::new(), Vec::new());
        let places = self.places.get(&(addr / PAGE)).map_or(&[][..], |p| &p[..]);
        for place in places {
            if place.claim != ClaimKind::ToHost || at < place.at || at + len > place.at + place.len
            {
                continue;
            }
            let Some(active) = self.in_flight.get(&place.key) else {
                continue;
            };
            let from = place.offset + (at - place.at);
            if may_send(&self.media, &active.expectation.direction, from, data) {
                ways.push((place.key, from));
                if !taken.contains(&place.key) {
                    taken.push(place.key);
                }
            } else {
                wrong = Some(format!(
                    "wrong data at {addr:#x}, byte {from} of SQ {} CID {:#06x}: {data:02x?}",
                    place.key.0, place.key.1
                ));
            }
        }
        if let [(key, from)] = ways[..] {
            // Only this command can have written.
            let scoreboard = self
                .in_flight
                .get_mut(&key)
                .and_then(|f| f.scoreboard.as_mut());
            if let Some(block) =
                scoreboard.and_then(|scoreboard| scoreboard.record(&self.media, from, data))
            {
                return Err(format!(
                    "SQ {} CID {:#06x} delivers a mixture of contents of block {block}: \
                     {data:02x?} at byte {from} do not belong to the content of its other bytes",
                    key.0, key.1
                ));
            }
        }
        if !taken.is_empty() {
            for key in &taken {
                if let Some(active) = self.in_flight.get_mut(key) {
                    active.written += len;
                    // Several commands name the same address: the write may belong to any of them.
                    active.shared |= taken.len() > 1;
                }
            }
            self.counts.checked_bytes += len;
            self.memory.device_write(addr, data);
            return Ok(());
        }
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        if MSI.contains(&addr) {
            self.counts.interrupts += 1;
            let exact = !self.shadow.wanted && !self.model.features.coalesced();
            let late = exact.then_some(self.stale);
            return self.messages.receive(self.now, addr, data, late);
        }
        Err(format!(
            "a write of {len} bytes at {addr:#x}, which no command in flight names"
        ))
    }
}

/// Kinds of a command, for the statistics of the report.
fn command_kinds(
    qid: u16,
    sqe: &Sqe,
    expectation: &Expectation,
    second: bool,
) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    let mut when = |is: bool, kind| {
        if is {
            kinds.push(kind);
        }
    };
    let (fuse, psdt) = flags(sqe);
    let walk = &expectation.walk;
    let moved = walk.bytes() > 0 || walk.fault.is_some();
    let (prps, sgl) = (moved && psdt == 0, moved && psdt != 0);
    when(prps, "PRPs");
    when(prps && !walk.lists.is_empty(), "PRPs with lists");
    when(prps && walk.fault.is_some(), "PRPs with an error");
    when(sgl, "SGLs");
    when(sgl && !walk.lists.is_empty(), "SGLs with segments");
    when(sgl && walk.dropped, "SGLs with bit buckets");
    when(sgl && walk.fault.is_some(), "SGLs with an error");
    when(qid != 0 && fuse == FUSED_FIRST, "fused, first commands");
    when(qid != 0 && fuse == FUSED_SECOND, "fused, second commands");
    when(second, "fused pairs");
    when(
        matches!(expectation.after, CompletionEffect::Formatted(_)),
        "formats begun",
    );
    when(qid != 0 && sqe.nsid() > 1, "I/O with other NSIDs than 1");
    kinds
}

/// True if a command may send these bytes at its offset `from`.
fn may_send(media: &Media, direction: &Direction, from: u64, data: &[u8]) -> bool {
    match direction {
        Direction::ToHost(DataSource::Media(start)) => media.permits(start + from, data),
        Direction::ToHost(DataSource::Page(page, start)) => {
            data.iter().enumerate().all(|(n, &b)| {
                let at = start + from + n as u64;
                b == page.get(at as usize).copied().unwrap_or(0)
            })
        }
        Direction::ToHost(DataSource::Any) => true,
        _ => false,
    }
}

impl Surroundings for HostModel {
    fn has_room(&self, pages: u64) -> bool {
        self.memory.free_pages() as u64 >= pages + SPARE_PAGES
    }

    fn alloc(&mut self, random: &mut Random, pages: u64) -> Option<u64> {
        self.memory.alloc_run(random, pages)
    }

    fn alloc_queue(&mut self, random: &mut Random) -> Option<u64> {
        let room = self.has_room(0);
        room.then(|| self.memory.alloc(random)).flatten()
    }

    fn content(&self, block: u64) -> &[u8] {
        self.media.any(block)
    }

    fn in_use(&self, blocks: Range<u64>) -> bool {
        let count = blocks.end.saturating_sub(blocks.start);
        self.media.in_use(blocks.start, count)
    }
}
