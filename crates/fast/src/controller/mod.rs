//! The NVMe controller (hw/ip/nvme_ctrl): properties, queues, commands, completions.

mod admin;
mod data;
pub mod error_log;
pub mod events;
pub mod features;
mod fused;
mod hazard;
pub mod identify;
mod interrupts;
mod io;
pub mod logs;
mod pairs;
mod properties;
mod queues;
mod shadow;
pub mod smart;
mod timing;
mod zero;

use std::collections::VecDeque;

use sim::{HostPort, TraceEvent};
use spec::nvme::{status, Cqe, Sqe, Status, SQE_BYTES};
use spec::regs::nvme::msix_pending::{WORD_COUNT, WORD_STRIDE};
use spec::regs::nvme::{doorbells, DOORBELLS, MSIX_PENDING, MSIX_TABLE};

use crate::config::Config;
use crate::cx::{Cx, Event};
use crate::memory::Memories;
use crate::msix::Message;
use crate::port::{Arrival, Post, Purpose};

use admin::Admin;
use data::{Data, Outcome};
use error_log::ErrorCause;
use events::{DoorbellError, Events};
use features::Features;
use fused::Fused;
use interrupts::Coalesce;
use io::{Command, Route, Verdict, Work};
use logs::Logs;
use pairs::{Next, Pairs};
use properties::{Csts, Properties};
use queues::{next, Queues};
use shadow::Shadow;
use smart::{IoCount, Uptime};
use zero::{What, Zeroing};

/// Entries that are being fetched at a time.
const FETCH_DEPTH: usize = 32;
/// Bytes of doorbells, MSI-X table and pending bits.
const AREA: u64 = 0x1000;
const PENDING: u64 = WORD_COUNT * WORD_STRIDE;

/// Whose command has a slot.
#[derive(Clone, Copy, Debug)]
struct Owner {
    qid: u16,
    /// Its entry has come.
    decoded: bool,
    cid: u16,
    nsid: u32,
    lba: u64,
    /// Its namespace, from when it is under way there.
    flies: Option<u32>,
    counts: IoCount,
}

/// An entry that is being fetched.
struct Fetching {
    qid: u16,
    slot: u16,
    /// The queue's head behind it.
    head: u32,
    /// There is another one behind it.
    more: bool,
    bytes: [u8; SQE_BYTES],
    got: usize,
    failed: bool,
    /// It is here whole from this edge on.
    here: Option<u64>,
}

/// Life cycle of the controller (nvme_state).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Off,
    Ready,
    Fatal,
    /// What is in flight ends.
    Drain,
}

const SHUTDOWN_NONE: u32 = 0;
const SHUTDOWN_OCCURRING: u32 = 1;
const SHUTDOWN_COMPLETE: u32 = 2;

/// A command for an engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EngineCommand {
    pub(crate) slot: u16,
    /// Number among those of its engine.
    pub(crate) command: u8,
    /// The namespace's first block on the media, and its blocks.
    pub(crate) base: u64,
    pub(crate) blocks: u64,
    pub(crate) sqe: Sqe,
}

/// How an engine has ended a command: because it was asked to, or with a status and dword 0.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EngineEnd {
    Stopped,
    Done(Status, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Waits,
    Runs,
}

/// A command that an engine carries out.
struct AtEngine {
    engine: usize,
    command: EngineCommand,
    held: Held,
    /// It is to end: since its queue is being deleted, else because of an Abort.
    ends: Option<bool>,
    asked: bool,
}

/// What the device does for the controller at its engines.
pub(crate) enum ToEngine {
    /// A command waits; see [`Controller::engine_free`].
    Command,
    /// End the command of this slot.
    Stop(usize, u16),
}

pub(crate) struct Controller {
    config: std::sync::Arc<Config>,
    identify: identify::Config,
    properties: Properties,
    life: Life,
    rdy: bool,
    cfs: bool,
    shst: u32,
    fatal: bool,
    queues: Queues,
    slots: Vec<Option<Owner>>,
    free_slots: VecDeque<u16>,
    fetching: VecDeque<Fetching>,
    /// The next choice of a command.
    fetch_at: u64,
    fetch_planned: bool,
    decode_at: u64,
    /// A weighted round robin that was selected counts from the next time that commands may be fetched.
    weighted: bool,
    complete_at: u64,
    /// Commands that are over, and whose entries wait for room in the line.
    ending: VecDeque<(u16, Status, u32)>,
    admin: Admin,
    features: Features,
    events: Events<u16>,
    logs: Logs,
    fused: Fused,
    pairs: Pairs,
    data: Data,
    zero: Zeroing,
    shadow: Shadow,
    coalesce: Coalesce,
    keep_alive: Option<u64>,
    routes: Vec<Option<Route>>,
    at_engines: Vec<Option<AtEngine>>,
    to_engines: VecDeque<ToEngine>,
    /// Cycles that passed before the controller came up, of those since power-on.
    up_since: u64,
}

impl Controller {
    /// As after power-on.
    pub(crate) fn new(config: std::sync::Arc<Config>, now: u64) -> Controller {
        let queues = config.queues();
        let mut routes: Vec<Option<Route>> = vec![None; 256];
        let commands = |plugged: &design::engine::EngineInstance| plugged.commands.clone();
        let all: Vec<design::engine::Command> = config.engines.iter().flat_map(commands).collect();
        for (engine, plugged) in config.engines.iter().enumerate() {
            let namespaces = plugged.namespaces.clone();
            let bits = namespaces.fold(0u32, |bits, n| bits | 1u32.checked_shl(n - 1).unwrap_or(0));
            for (command, known) in (0..).zip(&plugged.commands) {
                routes[usize::from(known.opcode)] = Some(Route {
                    engine,
                    command,
                    namespaces: bits,
                });
            }
        }
        Controller {
            identify: identify::Config {
                identity: config.identity.clone(),
                namespaces: config.namespaces.clone(),
            },
            properties: Properties::new(config.queue_entries),
            life: Life::Off,
            rdy: false,
            cfs: false,
            shst: SHUTDOWN_NONE,
            fatal: false,
            queues: Queues::new(queues),
            slots: vec![None; config.slots.into()],
            free_slots: (0..config.slots).collect(),
            fetching: VecDeque::new(),
            fetch_at: 0,
            fetch_planned: false,
            decode_at: 0,
            weighted: false,
            complete_at: 0,
            ending: VecDeque::new(),
            admin: Admin::default(),
            features: Features::new(config.io_queues, config.namespaces.clone()),
            events: Events::default(),
            logs: Logs::new(&all),
            fused: Fused::new(queues),
            pairs: Pairs::new(config.slots),
            data: Data::new(&config),
            zero: Zeroing::new(&config),
            shadow: Shadow::new(queues),
            coalesce: Coalesce::new(queues),
            keep_alive: None,
            routes,
            at_engines: (0..config.slots).map(|_| None).collect(),
            to_engines: VecDeque::new(),
            up_since: now,
            config,
        }
    }

    fn uptime(&self, cx: &Cx) -> Uptime {
        Uptime {
            cycles: cx.now - self.up_since,
            khz: cx.clock.khz(),
        }
    }

    // ---- registers ----

    fn csts(&self) -> Csts {
        Csts {
            rdy: self.rdy,
            cfs: self.cfs,
            shst: self.shst,
        }
    }

    /// A word of BAR0.
    pub(crate) fn read_register(&self, offset: u64, cx: &Cx) -> u32 {
        match offset {
            DOORBELLS..0x2000 => 0,
            _ if (MSIX_TABLE..MSIX_TABLE + AREA).contains(&offset) => {
                cx.msix.read(offset - MSIX_TABLE)
            }
            _ if (MSIX_PENDING..MSIX_PENDING + PENDING).contains(&offset) => cx
                .msix
                .pending(((offset - MSIX_PENDING) / WORD_STRIDE) as usize),
            _ if offset >= MSIX_PENDING => 0,
            _ => self.properties.read(offset, self.csts()),
        }
    }

    /// Writes the bits `bits` of a word of BAR0.
    pub(crate) fn write_register(&mut self, offset: u64, value: u32, bits: u32, cx: &mut Cx) {
        match offset {
            DOORBELLS..0x2000 => {
                if bits as u16 == u16::MAX {
                    let place = offset - DOORBELLS;
                    let qid = (place / doorbells::QUEUE_STRIDE) as usize;
                    let completion = place & doorbells::queue::CQ != 0;
                    self.doorbell_register(qid, completion, value as u16, cx);
                }
            }
            _ if (MSIX_TABLE..MSIX_TABLE + AREA).contains(&offset) => {
                if bits == u32::MAX {
                    cx.msix.write(offset - MSIX_TABLE, value);
                    self.send_messages(cx);
                }
            }
            _ if offset >= MSIX_PENDING => {}
            _ => {
                self.properties.write(offset, value, bits);
                cx.after(1, Event::Life);
            }
        }
    }

    /// Puts what MSI-X has ready into the line.
    pub(crate) fn send_messages(&mut self, cx: &mut Cx) {
        while cx.port.has_room() {
            let Some(Message { vector, addr, data }) = cx.msix.take() else {
                return;
            };
            cx.tell(cx.now + timing::MESSAGE, || TraceEvent::Message {
                vector: vector as u8,
                addr,
                data,
            });
            cx.post_write(timing::MESSAGE, addr, &data.to_le_bytes());
        }
    }

    fn doorbell_register(&mut self, qid: usize, completion: bool, value: u16, cx: &mut Cx) {
        if qid >= self.queues.count() {
            self.bad_doorbell(DoorbellError::InvalidRegister, cx);
        } else if !self.shadow.kick(qid, completion, &self.queues, cx) {
            self.ring(qid, completion, value, false, cx);
        }
    }

    fn bad_doorbell(&mut self, what: DoorbellError, cx: &mut Cx) {
        // Before the controller is ready there are none.
        if !self.rdy {
            return;
        }
        self.events.doorbell(what);
        self.logs.errors.record(match what {
            DoorbellError::InvalidRegister => ErrorCause::DoorbellRegister,
            DoorbellError::InvalidValue => ErrorCause::DoorbellValue,
        });
        self.admin_next(cx);
    }

    /// A doorbell's value reaches its queue.
    fn ring(&mut self, qid: usize, completion: bool, value: u16, shadow: bool, cx: &mut Cx) {
        let value_of = u32::from(value);
        let bad = match completion {
            false => match self.queues.submission[qid].as_mut().filter(|sq| sq.valid) {
                None => Some(DoorbellError::InvalidRegister),
                Some(sq) if value_of > sq.size => Some(DoorbellError::InvalidValue),
                Some(sq) => {
                    sq.tail = value_of;
                    None
                }
            },
            true => match self.queues.completion[qid].as_mut() {
                None => Some(DoorbellError::InvalidRegister),
                Some(cq) if !cq.may_move(value_of) => Some(DoorbellError::InvalidValue),
                Some(cq) => {
                    cq.head = value_of;
                    None
                }
            },
        };
        // What counts is what is taken and possible; out of the shadow page anything, or it would be read for ever.
        if bad.is_none() || shadow {
            self.shadow.taken(qid, completion, value, cx);
        }
        match bad {
            // A value out of the shadow page may come when its queue has gone.
            Some(DoorbellError::InvalidRegister) if shadow => {}
            Some(what) => self.bad_doorbell(what, cx),
            None if completion => self.head_moved(qid, cx),
            None => {}
        }
        self.kick_fetch(timing::DOORBELL, cx);
    }

    fn head_moved(&mut self, qid: usize, cx: &mut Cx) {
        self.queues.unblock();
        self.admin.no_room = false;
        if let Some(cq) = self.queues.cq(qid) {
            if let (true, Some(vector)) = (cq.head == cq.tail, cq.vector) {
                if self.users(vector) == 1 {
                    self.coalesce.withdraw(vector, cx);
                }
            }
        }
        self.admin_next(cx);
    }

    /// Completion queues with interrupts on a vector.
    fn users(&self, vector: usize) -> usize {
        let queues = self.queues.completion.iter().flatten();
        queues.filter(|cq| cq.vector == Some(vector)).count()
    }

    // ---- life ----

    /// Commands are fetched.
    fn fetches(&self) -> bool {
        self.life == Life::Ready && self.shst == SHUTDOWN_NONE
    }

    /// No command is in flight, except parked ones, and everything that was written has left.
    fn is_quiet(&self, cx: &Cx) -> bool {
        let used = self.slots.len() - self.free_slots.len();
        used == self.events.parked()
            && self.fetching.is_empty()
            && self.shadow.is_quiet()
            && self.admin.is_idle()
            && self.ending.is_empty()
            && !cx.port.writes_wait()
    }

    /// Something that no command can report.
    fn fail(&mut self, cx: &mut Cx) {
        self.fatal = true;
        cx.after(1, Event::Life);
    }

    /// Goes on with the life cycle, as far as it can.
    pub(crate) fn live(&mut self, cx: &mut Cx) {
        loop {
            let before = (self.life, self.shst);
            let enabled = self.properties.enabled();
            let reset = self.properties.reset_wanted;
            match self.life {
                Life::Off if reset => self.clear(cx),
                Life::Off if enabled && self.properties.usable() => self.enable(cx),
                Life::Off if enabled => {
                    self.life = Life::Fatal;
                    self.cfs = true;
                }
                Life::Ready if !enabled || reset => self.life = Life::Drain,
                Life::Ready if self.fatal => {
                    self.life = Life::Fatal;
                    self.cfs = true;
                }
                Life::Fatal if !enabled || reset => self.life = Life::Drain,
                Life::Drain if self.is_quiet(cx) => self.clear(cx),
                _ => {}
            }
            let wanted = self.properties.shutdown();
            self.shst = match self.life {
                Life::Off if !enabled && wanted => SHUTDOWN_COMPLETE,
                Life::Off if !enabled => SHUTDOWN_NONE,
                Life::Ready | Life::Fatal if self.shst == SHUTDOWN_NONE && wanted => {
                    SHUTDOWN_OCCURRING
                }
                Life::Ready | Life::Fatal
                    if self.shst == SHUTDOWN_OCCURRING && self.is_quiet(cx) =>
                {
                    SHUTDOWN_COMPLETE
                }
                _ => self.shst,
            };
            if !self.fetches() {
                self.stop(cx);
            }
            if before == (self.life, self.shst) {
                return;
            }
        }
    }

    fn enable(&mut self, cx: &mut Cx) {
        let [(asq, sq_size), (acq, cq_size)] = self.properties.admin_queues();
        self.queues.completion[0] = Some(queues::Completion {
            base: acq,
            size: cq_size,
            head: 0,
            tail: 0,
            reserve: 0,
            phase: true,
            vector: Some(0),
        });
        self.queues.submission[0] =
            Some(queues::Submission::new(asq, sq_size, 0, Default::default()));
        self.weighted = self.properties.weighted();
        self.life = Life::Ready;
        self.rdy = true;
        self.fatal = false;
        self.admin.no_room = false;
        self.events.set_ready(true);
        self.look_at_events(cx);
    }

    /// Everything has ended: the controller is as before it was enabled.
    fn clear(&mut self, cx: &mut Cx) {
        for slot in self.events.reset() {
            self.free(slot);
        }
        let now = self.uptime(cx);
        self.features.reset(now);
        self.logs.reset();
        self.shadow.clear();
        self.coalesce.clear();
        self.queues.clear();
        self.fused.clear();
        self.keep_alive = None;
        cx.msix.clear();
        (self.rdy, self.cfs, self.fatal) = (false, false, false);
        self.shst = SHUTDOWN_NONE;
        self.life = Life::Off;
        if self.properties.reset_wanted {
            self.properties.reset();
        }
        cx.after(timing::DEFAULTS, Event::Life);
    }

    /// Commands are not fetched any more: what takes long ends.
    fn stop(&mut self, cx: &mut Cx) {
        self.keep_alive = None;
        if self.slots.len() == self.free_slots.len() {
            return;
        }
        if !self.zero.is_quiet() {
            self.zero.stop(&mut self.data, cx);
        }
        self.give_up_halves(cx);
        self.stop_engines(cx);
        if self.coalesce.holds() {
            self.coalesce.look(false, &self.features, cx);
            self.send_messages(cx);
        }
        self.admin_stopped(cx);
    }

    // ---- fetching ----

    /// Looks for a command to fetch, so many cycles from now.
    fn kick_fetch(&mut self, cycles: u64, cx: &mut Cx) {
        if !self.fetch_planned && self.can_fetch() {
            self.fetch_planned = true;
            let at = self.fetch_at.max(cx.now + cycles);
            cx.plan(at, Event::Fetch);
        }
    }

    /// Whether commands of the admin queue, and of others, may be fetched. The last slot is the admin queue's.
    fn may_fetch(&self) -> (bool, bool) {
        let free = self.free_slots.len();
        (free > 0 && !self.admin.pending, free > 1)
    }

    fn can_fetch(&self) -> bool {
        let (admin, io) = self.may_fetch();
        self.fetches() && self.fetching.len() < FETCH_DEPTH && self.queues.any(admin, io)
    }

    pub(crate) fn fetch(&mut self, cx: &mut Cx) {
        self.fetch_planned = false;
        if !self.can_fetch() {
            return;
        }
        let (admin, io) = self.may_fetch();
        let weights = self.weighted.then(|| self.features.weights());
        let Some(qid) = self.queues.choose(admin, io, weights) else {
            return;
        };
        let classes = if self.weighted {
            timing::FETCH_CLASSES
        } else {
            0
        };
        self.fetch_at = cx.now + timing::FETCH_STEP + classes;
        let cqid = self.queues.submission[qid].as_ref().map_or(0, |sq| sq.cqid);
        let reserved = self.queues.completion[cqid]
            .as_mut()
            .is_some_and(queues::Completion::reserve);
        let Some(sq) = &mut self.queues.submission[qid] else {
            return;
        };
        if !reserved {
            sq.blocked = true;
            self.shadow.full(cqid, cx);
            self.kick_fetch(0, cx);
            return;
        }
        let addr = sq.base + SQE_BYTES as u64 * u64::from(sq.head);
        sq.head = next(sq.head, sq.size);
        sq.in_flight += 1;
        let (head, more) = (sq.head, sq.has_commands());
        self.queues.used();
        let Some(slot) = self.free_slots.pop_front() else {
            return;
        };
        self.admin.pending |= qid == 0;
        self.slots[usize::from(slot)] = Some(Owner {
            qid: qid as u16,
            decoded: false,
            cid: 0,
            nsid: 0,
            lba: 0,
            flies: None,
            counts: IoCount::None,
        });
        self.fetching.push_back(Fetching {
            qid: qid as u16,
            slot,
            head,
            more,
            bytes: [0; SQE_BYTES],
            got: 0,
            failed: false,
            here: None,
        });
        cx.tell(cx.now + timing::FETCH + classes, || TraceEvent::Fetch {
            slot: slot as u8,
            queue: qid as u16,
            head: head as u16,
        });
        let purpose = Purpose::Fetch(slot);
        cx.read(timing::FETCH + classes, purpose, addr, SQE_BYTES as u32);
        if !more {
            self.shadow.plan(cx);
        }
        self.kick_fetch(0, cx);
    }

    fn entry_arrived(&mut self, slot: u16, arrival: &Arrival, cx: &mut Cx) {
        let Some(entry) = self.fetching.iter_mut().find(|entry| entry.slot == slot) else {
            return;
        };
        match &arrival.data {
            None => entry.failed = true,
            Some(data) => {
                let len = data.len().min(SQE_BYTES - entry.got);
                entry.bytes[entry.got..entry.got + len].copy_from_slice(&data[..len]);
                entry.got += len;
            }
        }
        if arrival.last {
            entry.failed |= entry.got < SQE_BYTES;
            entry.here = Some(arrival.cycle);
            cx.plan(arrival.cycle + timing::DECODE, Event::Decode);
        }
    }

    /// Entries go on in the order in which they were asked for, one a cycle.
    pub(crate) fn decode(&mut self, cx: &mut Cx) {
        while let Some(entry) = self.fetching.front() {
            let Some(here) = entry.here else {
                return;
            };
            let at = self.decode_at.max(here + timing::DECODE);
            if at > cx.now {
                cx.plan(at, Event::Decode);
                return;
            }
            self.decode_at = cx.now + 1;
            if let Some(entry) = self.fetching.pop_front() {
                self.dispatch(entry, cx);
            }
        }
    }

    fn dispatch(&mut self, entry: Fetching, cx: &mut Cx) {
        let (qid, slot) = (usize::from(entry.qid), entry.slot);
        if let Some(sq) = &mut self.queues.submission[qid] {
            sq.arrived = entry.head;
        }
        self.kick_fetch(1, cx);
        if entry.failed {
            cx.tell(cx.now, || TraceEvent::Sent {
                slot: slot as u8,
                addr: 0,
                entry: [0; 16],
                vector: None,
            });
            self.retire(slot);
            self.fail(cx);
            return;
        }
        let sqe = Sqe::from_bytes(&entry.bytes);
        cx.tell(cx.now, || TraceEvent::Decoded {
            slot: slot as u8,
            queue: qid as u16,
            cid: sqe.cid(),
            opcode: sqe.opcode(),
            nsid: sqe.nsid(),
            cdw: [10, 11, 12].map(|n| sqe.dw[n]),
        });
        if let Some(owner) = &mut self.slots[usize::from(slot)] {
            owner.decoded = true;
            (owner.cid, owner.nsid) = (sqe.cid(), sqe.nsid());
            let has_lba = qid != 0 && io::has_lba(sqe.opcode());
            owner.lba = if has_lba { sqe.slba() } else { 0 };
        }
        if qid == 0 {
            self.admin_command(slot, sqe, cx);
            return;
        }
        let route = self.routes[usize::from(sqe.opcode())];
        let formatting = self.admin.formatting();
        let verdict = io::judge(slot, &sqe, &self.config.namespaces, formatting, route);
        if sqe.fuse() != 0 || self.fused.keeps(qid) {
            self.fused_command(qid, slot, sqe, entry.more, verdict, cx);
        } else {
            self.carry_out(slot, sqe, verdict, cx);
        }
    }

    /// An I/O command that has nothing to do with a pair.
    fn carry_out(&mut self, slot: u16, sqe: Sqe, verdict: Verdict, cx: &mut Cx) {
        match verdict {
            Verdict::Over(status) => self.complete(slot, status, 0, cx),
            Verdict::Data(command) => {
                self.fly(slot, command.span.namespace);
                self.pairs.submit(command);
                self.start_commands(cx);
            }
            Verdict::Engine(route) => {
                self.fly(slot, sqe.nsid());
                let namespace = self.config.namespaces.get(sqe.nsid());
                let (base, blocks) = namespace.map_or((0, 0), |n| (n.base, n.blocks));
                self.at_engines[usize::from(slot)] = Some(AtEngine {
                    engine: route.engine,
                    command: EngineCommand {
                        slot,
                        command: route.command,
                        base,
                        blocks,
                        sqe,
                    },
                    held: Held::Waits,
                    ends: None,
                    asked: false,
                });
                self.offer(slot, cx);
            }
        }
    }

    fn fly(&mut self, slot: u16, nsid: u32) {
        if let Some(owner) = &mut self.slots[usize::from(slot)] {
            owner.flies = Some(nsid);
        }
    }

    /// Data commands that may go to the data path.
    fn start_commands(&mut self, cx: &mut Cx) {
        while let Some(next) = self.pairs.next() {
            match next {
                Next::Start(command) => self.start(&command, cx),
                Next::Fail(slot) => self.complete(slot, status::ABORTED_FAILED_FUSED.dnr(), 0, cx),
            }
        }
    }

    fn start(&mut self, command: &Command, cx: &mut Cx) {
        let slot = command.slot as u8;
        cx.tell(cx.now, || TraceEvent::Started { slot });
        let now = self.uptime(cx);
        self.logs.smart.started(now);
        let blocks = command.span.blocks;
        let counts = match command.sqe.opcode() {
            spec::nvme::io::READ | spec::nvme::io::COMPARE | spec::nvme::io::VERIFY => {
                IoCount::Read(blocks)
            }
            spec::nvme::io::WRITE => IoCount::Write(blocks),
            _ => IoCount::None,
        };
        if let Some(owner) = &mut self.slots[usize::from(command.slot)] {
            owner.counts = counts;
        }
        match command.work(&self.config.namespaces) {
            Work::Move(request) => self.data.start(command.slot, request, cx),
            Work::Sweep(op, what) => self.begin_zero(command.slot, op, what, cx),
        }
    }

    fn begin_zero(&mut self, slot: u16, op: data::Op, what: What, cx: &mut Cx) {
        self.data.open(slot, op);
        if self.fetches() {
            self.zero.start(slot, what, cx);
        } else {
            self.data.swept(slot, Outcome::Interrupted, cx);
        }
    }

    /// A transfer may be over.
    pub(crate) fn moved(&mut self, slot: u16, cx: &mut Cx) {
        let Some(outcome) = self.data.take(slot) else {
            return;
        };
        let Some(owner) = self.slots[usize::from(slot)] else {
            return;
        };
        cx.tell(cx.now, || TraceEvent::Done { slot: slot as u8 });
        if owner.qid == 0 {
            self.admin_moved(slot, outcome, cx);
            return;
        }
        let answer = outcome.status(self.features.acre());
        let now = self.uptime(cx);
        self.logs.smart.ended(owner.counts, answer, now);
        self.pairs.ended(slot, outcome);
        self.complete(slot, answer, 0, cx);
        self.start_commands(cx);
        self.admin_look(cx);
    }

    // ---- completing ----

    /// A command is over: its entry goes into the line, when there is room.
    fn complete(&mut self, slot: u16, status: Status, dw0: u32, cx: &mut Cx) {
        self.ending.push_back((slot, status, dw0));
        if self.ending.len() == 1 {
            self.post_entries(cx);
        }
    }

    /// Posts entries, and messages, as long as the line has room.
    fn post_entries(&mut self, cx: &mut Cx) {
        self.send_messages(cx);
        while let Some(&(slot, status, dw0)) = self.ending.front() {
            if !cx.port.has_room() {
                return;
            }
            self.post_entry(slot, status, dw0, cx);
            self.ending.pop_front();
            self.send_messages(cx);
        }
    }

    /// Posts an entry; the slot comes back.
    fn post_entry(&mut self, slot: u16, status: Status, dw0: u32, cx: &mut Cx) {
        let Some(owner) = self.slots[usize::from(slot)] else {
            return;
        };
        let qid = usize::from(owner.qid);
        let Some(sq) = &self.queues.submission[qid] else {
            return;
        };
        let (cqid, head) = (sq.cqid, sq.arrived as u16);
        let Some(cq) = &mut self.queues.completion[cqid] else {
            return;
        };
        let entry = Cqe::new(dw0, head, owner.qid, owner.cid, cq.phase, status);
        let addr = cq.base + spec::nvme::CQE_BYTES as u64 * u64::from(cq.tail);
        let phase = cq.phase;
        cq.tail = next(cq.tail, cq.size);
        cq.phase ^= cq.tail == 0;
        let vector = cq.vector;
        self.logs.errors.completed(
            error_log::FailedCommand {
                sqid: owner.qid,
                cid: owner.cid,
                nsid: owner.nsid,
                lba: owner.lba,
            },
            status,
            phase,
        );
        let at = self.complete_at.max(cx.now + timing::COMPLETE);
        self.complete_at = at + timing::COMPLETE_STEP;
        cx.tell(at - 1, || TraceEvent::Post);
        cx.tell(at, || TraceEvent::Sent {
            slot: slot as u8,
            addr,
            entry: entry.to_bytes(),
            vector: vector.map(|vector| vector as u8),
        });
        // Of what completes in the admin queue only the present command has another one wait for it.
        let post = match self.admin.is_over(slot) {
            true => Post::AdminEntry(addr, entry.to_bytes()),
            false => Post::Write(addr, entry.to_bytes(), spec::nvme::CQE_BYTES as u8),
        };
        cx.port.post(at, post);
        cx.plan(at, Event::Port);
        self.retire(slot);
        if let Some(vector) = vector {
            let enabled = self.fetches();
            self.coalesce
                .posted(vector, cqid == 0, enabled, &self.features, cx);
        }
        self.admin_posted(slot, status, cx);
        self.after_retiring(cx);
    }

    /// A slot comes back without an entry, or with one.
    fn retire(&mut self, slot: u16) {
        if let Some(owner) = self.slots[usize::from(slot)] {
            if let Some(sq) = &mut self.queues.submission[usize::from(owner.qid)] {
                sq.in_flight -= 1;
            }
        }
        self.free(slot);
    }

    fn free(&mut self, slot: u16) {
        if self.slots[usize::from(slot)].take().is_some() {
            self.free_slots.push_back(slot);
        }
    }

    fn after_retiring(&mut self, cx: &mut Cx) {
        if self.fetches() {
            self.kick_fetch(1, cx);
        } else {
            cx.after(1, Event::Life);
        }
        self.admin_look(cx);
    }

    // ---- engines ----

    /// Takes what the engines are to do.
    pub(crate) fn next_for_engines(&mut self) -> Option<ToEngine> {
        self.to_engines.pop_front()
    }

    /// There is something to take.
    pub(crate) fn asks_engines(&self) -> bool {
        !self.to_engines.is_empty()
    }

    /// A command is offered to its engine.
    fn offer(&mut self, slot: u16, cx: &mut Cx) {
        let stops = !self.fetches();
        if stops {
            // What comes while the controller is being stopped ends at once.
            self.end_at_engine(slot, None, cx);
        } else {
            self.to_engines.push_back(ToEngine::Command);
        }
    }

    /// An engine has taken a command.
    pub(crate) fn engine_took(&mut self, slot: u16) {
        if let Some(at) = &mut self.at_engines[usize::from(slot)] {
            at.held = Held::Runs;
        }
    }

    /// An engine has room: the oldest command that waits for it.
    pub(crate) fn engine_free(&mut self, engine: usize) -> Option<EngineCommand> {
        if !self.fetches() {
            return None;
        }
        let waits =
            |at: &&AtEngine| at.engine == engine && at.held == Held::Waits && at.ends.is_none();
        let mut all = self.at_engines.iter().flatten();
        all.find(waits).map(|at| at.command)
    }

    /// An engine has ended a command.
    pub(crate) fn engine_ended(&mut self, slot: u16, end: EngineEnd, cx: &mut Cx) {
        let Some(at) = self
            .at_engines
            .get_mut(usize::from(slot))
            .and_then(Option::take)
        else {
            return;
        };
        let (status, dw0) = match end {
            EngineEnd::Done(status, dw0) => (status, dw0),
            EngineEnd::Stopped => (self.stopped_status(at.ends), 0),
        };
        self.complete(slot, status, dw0, cx);
    }

    fn stopped_status(&self, ends: Option<bool>) -> Status {
        match ends {
            Some(true) => status::ABORTED_SQ_DELETION,
            Some(false) => status::ABORT_REQUESTED,
            None if !self.fetches() => data::interrupted(self.features.acre()),
            None => status::INTERNAL_ERROR,
        }
    }

    /// Ends the command in a slot, if an engine has it or is to get it.
    fn end_at_engine(&mut self, slot: u16, ends: Option<bool>, cx: &mut Cx) -> bool {
        let Some(at) = &mut self.at_engines[usize::from(slot)] else {
            return false;
        };
        if ends.is_some() {
            at.ends = ends;
        }
        match at.held {
            Held::Waits => {
                let ends = at.ends;
                self.at_engines[usize::from(slot)] = None;
                let status = self.stopped_status(ends);
                self.complete(slot, status, 0, cx);
            }
            Held::Runs if !at.asked => {
                at.asked = true;
                self.to_engines.push_back(ToEngine::Stop(at.engine, slot));
            }
            Held::Runs => {}
        }
        true
    }

    fn stop_engines(&mut self, cx: &mut Cx) {
        for slot in 0..self.at_engines.len() as u16 {
            if self.at_engines[usize::from(slot)].is_some() {
                self.end_at_engine(slot, None, cx);
            }
        }
    }

    // ---- what comes from elsewhere ----

    /// Something has come from host memory.
    pub(crate) fn arrived(&mut self, arrival: Arrival, cx: &mut Cx) {
        match arrival.purpose {
            Purpose::Fetch(slot) => self.entry_arrived(slot, &arrival, cx),
            Purpose::List(slot) => self.data.list_arrived(slot, &arrival, cx),
            Purpose::Data(job, piece, _) => self.data.data_arrived(job, piece, arrival, cx),
            Purpose::Ranges | Purpose::RangesList => {
                self.zero.line_arrived(&arrival, &mut self.data, cx);
            }
            Purpose::AdminData(piece) => self.admin_data(piece, &arrival, cx),
            Purpose::Shadow => match self.shadow.arrived(&arrival, cx) {
                Ok(None) => self.after_shadow(cx),
                Ok(Some(rung)) => {
                    self.ring(rung.qid, rung.completion, rung.value, true, cx);
                    self.after_shadow(cx);
                }
                Err(()) => self.fail(cx),
            },
        }
    }

    fn after_shadow(&mut self, cx: &mut Cx) {
        self.admin_look(cx);
        if !self.fetches() {
            cx.after(1, Event::Life);
        }
    }

    /// Sends what is ready to the host; see [`Data::send`].
    pub(crate) fn send(&mut self, now: u64, cx: &mut Cx, host: &mut dyn HostPort) -> Option<u64> {
        let before = cx.port.posts.len();
        let mut again = self.data.send(now, cx, host);
        if cx.port.posts.len() < before {
            self.post_entries(cx);
            let next = cx.port.posts.front().map(|post| post.0.max(now + 1));
            again = again.into_iter().chain(next).min();
        }
        if !self.fetches() && !cx.port.writes_wait() {
            cx.after(1, Event::Life);
        }
        again
    }

    /// Answers a read of BAR0, behind what was decided before.
    pub(crate) fn answer(&mut self, tag: u32, data: Option<Vec<u8>>, cycles: u64, cx: &mut Cx) {
        let cycle = cx.now + cycles;
        cx.port.post(cycle, Post::Answer(tag, data));
        cx.plan(cycle, Event::Port);
    }

    /// The function-level setting of MSI-X may have changed.
    pub(crate) fn msix_changed(&mut self, cx: &mut Cx) {
        self.send_messages(cx);
    }

    /// Writes to the media that have begun end, without the host.
    pub(crate) fn end_bursts(&mut self, now: u64, memory: &mut Memories) {
        self.data.end_bursts(memory);
        self.zero.cut(now, memory);
    }

    /// Nothing is under way but what waits for the host, or for a time of its own.
    pub(crate) fn is_at_rest(&self, cx_port_quiet: bool) -> bool {
        cx_port_quiet && self.free_slots.len() + self.events.parked() == self.slots.len()
    }

    /// An interrupt is held back.
    pub(crate) fn holds(&self) -> bool {
        self.coalesce.holds()
    }

    /// The parts that events are for.
    pub(crate) fn handle(&mut self, event: Event, cx: &mut Cx) {
        match event {
            Event::Walk(slot) => self.data.walk(slot, cx),
            Event::Moved(slot) => self.moved(slot, cx),
            Event::Fill(channel) => self.data.fill(channel.into(), cx),
            Event::ReadOver(channel) => self.data.read_over(channel.into(), cx),
            Event::Sweep => self.zero.sweep(&mut self.data, cx),
            Event::Zeroed(number) => self.zero.zeroed(number, &mut self.data, cx),
            Event::Ranges => self.zero.ranges(&mut self.data, cx),
            Event::Fetch => self.fetch(cx),
            Event::Decode => self.decode(cx),
            Event::Admin => self.admin_go_on(cx),
            Event::Aborted => self.admin_abort(cx),
            Event::Life => self.live(cx),
            Event::Coalesced => {
                let enabled = self.fetches();
                self.coalesce.look(enabled, &self.features, cx);
                self.send_messages(cx);
            }
            Event::KeepAlive => self.keep_alive_due(cx),
            Event::Fused => self.fused_due(cx),
            Event::Shadow => {
                let enabled = self.fetches();
                self.shadow.go_on(&self.queues, enabled, cx);
                self.after_shadow(cx);
            }
            _ => {}
        }
    }

    /// Data of a read of the media; see [`Data::media_read`].
    pub(crate) fn media_read(&mut self, job: u32, cycle: u64, beats: u32, end: bool, cx: &mut Cx) {
        self.data.media_read(job, cycle, beats, end, cx);
    }

    /// What an access to the media waited for in the hook may have ended.
    pub(crate) fn hook_changed(&mut self, cx: &mut Cx) {
        self.data.hook_changed(cx);
    }

    /// See [`Data::media_written`].
    pub(crate) fn media_written(&mut self, burst: u32, cx: &mut Cx) {
        self.data.media_written(burst, cx);
    }
}
