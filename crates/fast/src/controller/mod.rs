// SPDX-License-Identifier: Apache-2.0

//! The NVMe controller (hw/ip/nvme_ctrl): properties, queues, commands, completions.
//!
//! Modules in the order in which a command passes them:
//! - `properties`, `queues`, `shadow_doorbells`: registers, submission and completion queues,
//!   doorbells.
//! - `admin` with [`features`], [`identify`], [`logs`], [`events`], [`error_log`] and [`smart`]:
//!   admin commands.
//! - `io`, `fused`, `fused_arbiter`: decoding of I/O commands, and fused pairs.
//! - `data_path`, `range_walk`, `hazard`: data between host and media.
//! - `coalescing`: interrupts. `timing` has the latencies of the RTL's stages.

mod admin;
mod coalescing;
mod data_path;
pub mod error_log;
pub mod events;
pub mod features;
mod fused;
mod fused_arbiter;
pub mod identify;
mod io;
pub mod logs;
mod properties;
mod queues;
mod range_walk;
mod shadow_doorbells;
pub mod smart;
mod timing;

use std::collections::VecDeque;

use sim::{HostPort, TraceEvent};
use spec::nvme::{status, Cqe, Sqe, Status, SQE_BYTES};
use spec::regs::nvme::msix_pending::{WORD_COUNT, WORD_STRIDE};
use spec::regs::nvme::{doorbells, DOORBELLS, MSIX_PENDING, MSIX_TABLE};

use crate::config::Config;
use crate::context::{Event, SimContext};
use crate::host_port::{BurstOwner, HostReadData, ReadPurpose, WriteStep};
use crate::memory::Memories;
use crate::msix::Message;

use admin::Admin;
use coalescing::InterruptCoalescer;
use data_path::{DataPath, TransferResult};
use error_log::ErrorCause;
use events::{DoorbellError, Events};
use features::Features;
use fused::Fused;
use fused_arbiter::{ArbiterAction, FusedArbiter};
use io::{DataCommand, DataWork, Decoded, EngineRoute};
use logs::Logs;
use properties::{Csts, Properties};
use queues::{next_index, Queues};
use range_walk::{RangeOp, RangeWalker};
use shadow_doorbells::ShadowDoorbells;
use smart::{IoCount, Uptime};

/// Submission queue entries that are fetched at a time.
const FETCH_DEPTH: usize = 32;
/// Bytes of the doorbells, of the MSI-X table and of the pending bits.
const AREA_BYTES: u64 = 0x1000;
const PENDING_BYTES: u64 = WORD_COUNT * WORD_STRIDE;

/// The command that occupies a slot.
#[derive(Clone, Copy, Debug)]
struct SlotOwner {
    qid: u16,
    /// Its submission queue entry has arrived.
    decoded: bool,
    cid: u16,
    nsid: u32,
    lba: u64,
    /// The namespace in which the command is in flight.
    in_flight: Option<u32>,
    counts: IoCount,
}

/// A submission queue entry that is being fetched.
struct EntryFetch {
    qid: u16,
    slot: u16,
    /// The queue's head after this entry.
    head: u32,
    /// The queue has another entry.
    more: bool,
    bytes: [u8; SQE_BYTES],
    received: usize,
    failed: bool,
    /// The edge from which on the entry is complete.
    arrival: Option<u64>,
}

/// State of the controller (nvme_state).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ControllerState {
    Off,
    Ready,
    Fatal,
    /// Disabled, with commands in flight that still have to end.
    Draining,
}

const SHUTDOWN_NONE: u32 = 0;
const SHUTDOWN_OCCURRING: u32 = 1;
const SHUTDOWN_COMPLETE: u32 = 2;

/// A command for an engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EngineCommand {
    pub(crate) slot: u16,
    /// Number of the command within its engine.
    pub(crate) command: u8,
    /// First block of the namespace on the media, and its number of blocks.
    pub(crate) base: u64,
    pub(crate) blocks: u64,
    pub(crate) sqe: Sqe,
}

/// The end of an offloaded command: stopped on request, or with a status and dword 0.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EngineResult {
    Stopped,
    Done(Status, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OffloadState {
    Waiting,
    Running,
}

/// A command that an engine carries out.
struct OffloadedCommand {
    engine: usize,
    command: EngineCommand,
    state: OffloadState,
    /// Set when the command is to end early: true if its queue is deleted, false for an Abort.
    abort: Option<bool>,
    stop_requested: bool,
}

/// A request of the controller to the engines.
pub(crate) enum EngineRequest {
    /// A command waits: see [`Controller::next_for_engine`].
    Dispatch,
    /// Stop the command of a slot: engine, slot.
    Stop(usize, u16),
}

pub(crate) struct Controller {
    config: std::sync::Arc<Config>,
    identify: identify::Config,
    properties: Properties,
    state: ControllerState,
    rdy: bool,
    cfs: bool,
    shst: u32,
    fatal: bool,
    queues: Queues,
    slots: Vec<Option<SlotOwner>>,
    free_slots: VecDeque<u16>,
    fetching: VecDeque<EntryFetch>,
    /// The earliest edge of the next arbitration.
    fetch_at: u64,
    fetch_planned: bool,
    decode_at: u64,
    /// Weighted round robin is in effect. A change of CC.AMS applies when the controller is
    /// enabled.
    weighted: bool,
    complete_at: u64,
    /// Ended commands whose entries wait for room in the queue of posted writes.
    completions: VecDeque<(u16, Status, u32)>,
    admin: Admin,
    features: Features,
    events: Events<u16>,
    logs: Logs,
    fused: Fused,
    fused_arbiter: FusedArbiter,
    data_path: DataPath,
    range_walker: RangeWalker,
    shadow: ShadowDoorbells,
    coalescer: InterruptCoalescer,
    keep_alive: Option<u64>,
    routes: Vec<Option<EngineRoute>>,
    offloaded: Vec<Option<OffloadedCommand>>,
    engine_requests: VecDeque<EngineRequest>,
    /// The edge at which the controller came up.
    up_since: u64,
}

impl Controller {
    /// A controller after power-on.
    pub(crate) fn new(config: std::sync::Arc<Config>, now: u64) -> Controller {
        let queues = config.queues();
        let mut routes: Vec<Option<EngineRoute>> = vec![None; 256];
        let commands = |plugged: &design::engine::EngineInstance| plugged.commands.clone();
        let all: Vec<design::engine::Command> = config.engines.iter().flat_map(commands).collect();
        for (engine, plugged) in config.engines.iter().enumerate() {
            let namespaces = plugged.namespaces.clone();
            let bits = namespaces.fold(0u32, |bits, n| bits | 1u32.checked_shl(n - 1).unwrap_or(0));
            for (command, known) in (0..).zip(&plugged.commands) {
                routes[usize::from(known.opcode)] = Some(EngineRoute {
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
            state: ControllerState::Off,
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
            completions: VecDeque::new(),
            admin: Admin::default(),
            features: Features::new(config.io_queues, config.namespaces.clone()),
            events: Events::default(),
            logs: Logs::new(&all),
            fused: Fused::new(queues),
            fused_arbiter: FusedArbiter::new(config.slots),
            data_path: DataPath::new(&config),
            range_walker: RangeWalker::new(&config),
            shadow: ShadowDoorbells::new(queues),
            coalescer: InterruptCoalescer::new(queues),
            keep_alive: None,
            routes,
            offloaded: (0..config.slots).map(|_| None).collect(),
            engine_requests: VecDeque::new(),
            up_since: now,
            config,
        }
    }

    fn uptime(&self, ctx: &SimContext) -> Uptime {
        Uptime {
            cycles: ctx.now - self.up_since,
            khz: ctx.clock.khz(),
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

    /// Reads a word of BAR0.
    pub(crate) fn read_register(&self, offset: u64, ctx: &SimContext) -> u32 {
        match offset {
            DOORBELLS..0x2000 => 0,
            _ if (MSIX_TABLE..MSIX_TABLE + AREA_BYTES).contains(&offset) => {
                ctx.msix.read(offset - MSIX_TABLE)
            }
            _ if (MSIX_PENDING..MSIX_PENDING + PENDING_BYTES).contains(&offset) => ctx
                .msix
                .pending(((offset - MSIX_PENDING) / WORD_STRIDE) as usize),
            _ if offset >= MSIX_PENDING => 0,
            _ => self.properties.read(offset, self.csts()),
        }
    }

    /// Writes the bits of a word of BAR0 that `bits` selects.
    pub(crate) fn write_register(
        &mut self,
        offset: u64,
        value: u32,
        bits: u32,
        ctx: &mut SimContext,
    ) {
        match offset {
            DOORBELLS..0x2000 => {
                if bits as u16 == u16::MAX {
                    let place = offset - DOORBELLS;
                    let qid = (place / doorbells::QUEUE_STRIDE) as usize;
                    let completion = place & doorbells::queue::CQ != 0;
                    self.doorbell_register(qid, completion, value as u16, ctx);
                }
            }
            _ if (MSIX_TABLE..MSIX_TABLE + AREA_BYTES).contains(&offset) => {
                if bits == u32::MAX {
                    ctx.msix.write(offset - MSIX_TABLE, value);
                    self.send_messages(ctx);
                }
            }
            _ if offset >= MSIX_PENDING => {}
            _ => {
                self.properties.write(offset, value, bits);
                ctx.schedule_after(1, Event::ControllerState);
            }
        }
    }

    /// Posts the MSI-X messages that are ready.
    pub(crate) fn send_messages(&mut self, ctx: &mut SimContext) {
        while ctx.port.has_room() {
            let Some(Message { vector, addr, data }) = ctx.msix.next_message() else {
                return;
            };
            ctx.trace(ctx.now + timing::MESSAGE, || TraceEvent::Message {
                vector: vector as u8,
                addr,
                data,
            });
            let cycle = ctx.now + timing::MESSAGE;
            ctx.post_write(cycle, addr, &data.to_le_bytes(), None);
        }
    }

    fn doorbell_register(
        &mut self,
        qid: usize,
        completion: bool,
        value: u16,
        ctx: &mut SimContext,
    ) {
        if qid >= self.queues.count() {
            self.doorbell_error(DoorbellError::InvalidRegister, ctx);
        } else if !self
            .shadow
            .register_written(qid, completion, &self.queues, ctx)
        {
            self.apply_doorbell(qid, completion, value, false, ctx);
        }
    }

    fn doorbell_error(&mut self, what: DoorbellError, ctx: &mut SimContext) {
        // A controller that is not ready reports no errors.
        if !self.rdy {
            return;
        }
        self.events.doorbell(what);
        self.logs.errors.record(match what {
            DoorbellError::InvalidRegister => ErrorCause::DoorbellRegister,
            DoorbellError::InvalidValue => ErrorCause::DoorbellValue,
        });
        self.wake_admin(ctx);
    }

    /// Applies a doorbell's value to its queue.
    fn apply_doorbell(
        &mut self,
        qid: usize,
        completion: bool,
        value: u16,
        shadow: bool,
        ctx: &mut SimContext,
    ) {
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
        // A valid value is recorded. An invalid one from the shadow page is recorded too, or it
        // would be read again for ever.
        if bad.is_none() || shadow {
            self.shadow.value_accepted(qid, completion, value, ctx);
        }
        match bad {
            // A value from the shadow page may arrive after its queue was deleted.
            Some(DoorbellError::InvalidRegister) if shadow => {}
            Some(what) => self.doorbell_error(what, ctx),
            None if completion => self.cq_head_moved(qid, ctx),
            None => {}
        }
        self.schedule_fetch(timing::DOORBELL, ctx);
    }

    fn cq_head_moved(&mut self, qid: usize, ctx: &mut SimContext) {
        self.queues.unblock();
        self.admin.no_room = false;
        if let Some(cq) = self.queues.cq(qid) {
            if let (true, Some(vector)) = (cq.head == cq.tail, cq.vector) {
                if self.queues_of_vector(vector) == 1 {
                    self.coalescer.withdraw(vector, ctx);
                }
            }
        }
        self.wake_admin(ctx);
    }

    /// Number of completion queues with interrupts on a vector.
    fn queues_of_vector(&self, vector: usize) -> usize {
        let queues = self.queues.completion.iter().flatten();
        queues.filter(|cq| cq.vector == Some(vector)).count()
    }

    // ---- state ----

    /// The controller is ready and fetches commands.
    fn accepts_commands(&self) -> bool {
        self.state == ControllerState::Ready && self.shst == SHUTDOWN_NONE
    }

    /// No command is in flight except parked ones, and all writes have left.
    fn is_drained(&self, ctx: &SimContext) -> bool {
        let used = self.slots.len() - self.free_slots.len();
        used == self.events.parked()
            && self.fetching.is_empty()
            && self.shadow.is_idle()
            && self.admin.is_idle()
            && self.completions.is_empty()
            && !ctx.port.has_pending_writes()
    }

    /// Enters the fatal state, for an error that no completion can report.
    fn raise_fatal(&mut self, ctx: &mut SimContext) {
        self.fatal = true;
        ctx.schedule_after(1, Event::ControllerState);
    }

    /// Evaluates the state machine until it is stable.
    pub(crate) fn update_state(&mut self, ctx: &mut SimContext) {
        loop {
            let before = (self.state, self.shst);
            let enabled = self.properties.enabled();
            let reset = self.properties.reset_wanted;
            match self.state {
                ControllerState::Off if reset => self.reset(ctx),
                ControllerState::Off if enabled && self.properties.usable() => self.enable(ctx),
                ControllerState::Off if enabled => {
                    self.state = ControllerState::Fatal;
                    self.cfs = true;
                }
                ControllerState::Ready if !enabled || reset => {
                    self.state = ControllerState::Draining
                }
                ControllerState::Ready if self.fatal => {
                    self.state = ControllerState::Fatal;
                    self.cfs = true;
                }
                ControllerState::Fatal if !enabled || reset => {
                    self.state = ControllerState::Draining
                }
                ControllerState::Draining if self.is_drained(ctx) => self.reset(ctx),
                _ => {}
            }
            let wanted = self.properties.shutdown();
            self.shst = match self.state {
                ControllerState::Off if !enabled && wanted => SHUTDOWN_COMPLETE,
                ControllerState::Off if !enabled => SHUTDOWN_NONE,
                ControllerState::Ready | ControllerState::Fatal
                    if self.shst == SHUTDOWN_NONE && wanted =>
                {
                    SHUTDOWN_OCCURRING
                }
                ControllerState::Ready | ControllerState::Fatal
                    if self.shst == SHUTDOWN_OCCURRING && self.is_drained(ctx) =>
                {
                    SHUTDOWN_COMPLETE
                }
                _ => self.shst,
            };
            if !self.accepts_commands() {
                self.abort_long_commands(ctx);
            }
            if before == (self.state, self.shst) {
                return;
            }
        }
    }

    fn enable(&mut self, ctx: &mut SimContext) {
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
        self.state = ControllerState::Ready;
        self.rdy = true;
        self.fatal = false;
        self.admin.no_room = false;
        self.events.set_ready(true);
        self.update_events(ctx);
    }

    /// Resets the controller, after everything has ended.
    fn reset(&mut self, ctx: &mut SimContext) {
        for slot in self.events.reset() {
            self.free_slot(slot);
        }
        let now = self.uptime(ctx);
        self.features.reset(now);
        self.logs.reset();
        self.shadow.clear();
        self.coalescer.clear();
        self.queues.clear();
        self.fused.clear();
        self.keep_alive = None;
        ctx.msix.clear();
        (self.rdy, self.cfs, self.fatal) = (false, false, false);
        self.shst = SHUTDOWN_NONE;
        self.state = ControllerState::Off;
        if self.properties.reset_wanted {
            self.properties.reset();
        }
        ctx.schedule_after(timing::DEFAULTS, Event::ControllerState);
    }

    /// Ends commands that may take long, since commands are not fetched any more.
    fn abort_long_commands(&mut self, ctx: &mut SimContext) {
        self.keep_alive = None;
        if self.slots.len() == self.free_slots.len() {
            return;
        }
        if !self.range_walker.is_idle() {
            self.range_walker.stop(&mut self.data_path, ctx);
        }
        self.abort_unpaired(ctx);
        self.abort_all_offloaded(ctx);
        if self.coalescer.is_holding() {
            self.coalescer.expire(false, &self.features, ctx);
            self.send_messages(ctx);
        }
        self.admin_disabled(ctx);
    }

    // ---- fetching ----

    /// Schedules the next fetch after a number of cycles, if there is one.
    fn schedule_fetch(&mut self, cycles: u64, ctx: &mut SimContext) {
        if !self.fetch_planned && self.can_fetch() {
            self.fetch_planned = true;
            let at = self.fetch_at.max(ctx.now + cycles);
            ctx.schedule(at, Event::Fetch);
        }
    }

    /// Whether commands of the admin queue and of I/O queues may be fetched. The last slot is
    /// reserved for the admin queue.
    fn fetch_permissions(&self) -> (bool, bool) {
        let free = self.free_slots.len();
        (free > 0 && !self.admin.pending, free > 1)
    }

    fn can_fetch(&self) -> bool {
        let (admin, io) = self.fetch_permissions();
        self.accepts_commands()
            && self.fetching.len() < FETCH_DEPTH
            && self.queues.any_ready(admin, io)
    }

    pub(crate) fn fetch(&mut self, ctx: &mut SimContext) {
        self.fetch_planned = false;
        if !self.can_fetch() {
            return;
        }
        let (admin, io) = self.fetch_permissions();
        let weights = self.weighted.then(|| self.features.weights());
        let Some(qid) = self.queues.arbitrate(admin, io, weights) else {
            return;
        };
        let classes = if self.weighted {
            timing::FETCH_CLASSES
        } else {
            0
        };
        self.fetch_at = ctx.now + timing::FETCH_STEP + classes;
        let cqid = self.queues.submission[qid].as_ref().map_or(0, |sq| sq.cqid);
        let reserved = self.queues.completion[cqid]
            .as_mut()
            .is_some_and(queues::Completion::reserve);
        let Some(sq) = &mut self.queues.submission[qid] else {
            return;
        };
        if !reserved {
            sq.blocked = true;
            self.shadow.queue_full(cqid, ctx);
            self.schedule_fetch(0, ctx);
            return;
        }
        let addr = sq.base + SQE_BYTES as u64 * u64::from(sq.head);
        sq.head = next_index(sq.head, sq.size);
        sq.in_flight += 1;
        let (head, more) = (sq.head, sq.has_commands());
        self.queues.consume_credit();
        let Some(slot) = self.free_slots.pop_front() else {
            return;
        };
        self.admin.pending |= qid == 0;
        self.slots[usize::from(slot)] = Some(SlotOwner {
            qid: qid as u16,
            decoded: false,
            cid: 0,
            nsid: 0,
            lba: 0,
            in_flight: None,
            counts: IoCount::None,
        });
        self.fetching.push_back(EntryFetch {
            qid: qid as u16,
            slot,
            head,
            more,
            bytes: [0; SQE_BYTES],
            received: 0,
            failed: false,
            arrival: None,
        });
        ctx.trace(ctx.now + timing::FETCH + classes, || TraceEvent::Fetch {
            slot: slot as u8,
            queue: qid as u16,
            head: head as u16,
        });
        let purpose = ReadPurpose::Fetch(slot);
        ctx.read_host(timing::FETCH + classes, purpose, addr, SQE_BYTES as u32);
        if !more {
            self.shadow.schedule(ctx);
        }
        self.schedule_fetch(0, ctx);
    }

    fn entry_arrived(&mut self, slot: u16, arrival: &HostReadData, ctx: &mut SimContext) {
        let Some(entry) = self.fetching.iter_mut().find(|entry| entry.slot == slot) else {
            return;
        };
        match &arrival.data {
            None => entry.failed = true,
            Some(data) => {
                let len = data.len().min(SQE_BYTES - entry.received);
                entry.bytes[entry.received..entry.received + len].copy_from_slice(&data[..len]);
                entry.received += len;
            }
        }
        if arrival.last {
            entry.failed |= entry.received < SQE_BYTES;
            entry.arrival = Some(arrival.cycle);
            ctx.schedule(arrival.cycle + timing::DECODE, Event::Decode);
        }
    }

    /// Decodes entries in the order of their fetches, one a cycle.
    pub(crate) fn decode(&mut self, ctx: &mut SimContext) {
        while let Some(entry) = self.fetching.front() {
            let Some(arrived) = entry.arrival else {
                return;
            };
            let at = self.decode_at.max(arrived + timing::DECODE);
            if at > ctx.now {
                ctx.schedule(at, Event::Decode);
                return;
            }
            self.decode_at = ctx.now + 1;
            if let Some(entry) = self.fetching.pop_front() {
                self.decode_entry(entry, ctx);
            }
        }
    }

    fn decode_entry(&mut self, entry: EntryFetch, ctx: &mut SimContext) {
        let (qid, slot) = (usize::from(entry.qid), entry.slot);
        if let Some(sq) = &mut self.queues.submission[qid] {
            sq.arrived = entry.head;
        }
        self.schedule_fetch(1, ctx);
        if entry.failed {
            ctx.trace(ctx.now, || TraceEvent::Sent {
                slot: slot as u8,
                addr: 0,
                entry: [0; 16],
                vector: None,
            });
            self.retire(slot);
            self.raise_fatal(ctx);
            return;
        }
        let sqe = Sqe::from_bytes(&entry.bytes);
        ctx.trace(ctx.now, || TraceEvent::Decoded {
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
            self.admin_command(slot, sqe, ctx);
            return;
        }
        let route = self.routes[usize::from(sqe.opcode())];
        let formatting = self.admin.formatting();
        let decoded = io::validate(slot, &sqe, &self.config.namespaces, formatting, route);
        if sqe.fuse() != 0 || self.fused.has_first(qid) {
            self.fused_command(qid, slot, sqe, entry.more, decoded, ctx);
        } else {
            self.execute(slot, sqe, decoded, ctx);
        }
    }

    /// Executes an I/O command that is not part of a fused pair.
    fn execute(&mut self, slot: u16, sqe: Sqe, decoded: Decoded, ctx: &mut SimContext) {
        match decoded {
            Decoded::Complete(status) => self.complete(slot, status, 0, ctx),
            Decoded::Data(command) => {
                self.mark_in_flight(slot, command.span.namespace);
                self.fused_arbiter.submit(command);
                self.start_commands(ctx);
            }
            Decoded::Engine(route) => {
                self.mark_in_flight(slot, sqe.nsid());
                let namespace = self.config.namespaces.get(sqe.nsid());
                let (base, blocks) = namespace.map_or((0, 0), |n| (n.base, n.blocks));
                self.offloaded[usize::from(slot)] = Some(OffloadedCommand {
                    engine: route.engine,
                    command: EngineCommand {
                        slot,
                        command: route.command,
                        base,
                        blocks,
                        sqe,
                    },
                    state: OffloadState::Waiting,
                    abort: None,
                    stop_requested: false,
                });
                self.dispatch_to_engine(slot, ctx);
            }
        }
    }

    fn mark_in_flight(&mut self, slot: u16, nsid: u32) {
        if let Some(owner) = &mut self.slots[usize::from(slot)] {
            owner.in_flight = Some(nsid);
        }
    }

    /// Starts the data commands that the fused arbiter releases.
    fn start_commands(&mut self, ctx: &mut SimContext) {
        while let Some(next) = self.fused_arbiter.next_action() {
            match next {
                ArbiterAction::Start(command) => self.start(&command, ctx),
                ArbiterAction::Fail(slot) => {
                    self.complete(slot, status::ABORTED_FAILED_FUSED.dnr(), 0, ctx)
                }
            }
        }
    }

    fn start(&mut self, command: &DataCommand, ctx: &mut SimContext) {
        let slot = command.slot as u8;
        ctx.trace(ctx.now, || TraceEvent::Started { slot });
        let now = self.uptime(ctx);
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
        match command.data_work(&self.config.namespaces) {
            DataWork::Transfer(request) => self.data_path.start(command.slot, request, ctx),
            DataWork::RangeWalk(op, range) => self.start_range_op(command.slot, op, range, ctx),
        }
    }

    fn start_range_op(
        &mut self,
        slot: u16,
        op: data_path::TransferOp,
        range: RangeOp,
        ctx: &mut SimContext,
    ) {
        self.data_path.open_range_op(slot, op);
        if self.accepts_commands() {
            self.range_walker.start(slot, range, ctx);
        } else {
            self.data_path
                .range_walk_done(slot, TransferResult::Interrupted, ctx);
        }
    }

    /// Ends the command of a transfer that is complete.
    pub(crate) fn transfer_done(&mut self, slot: u16, ctx: &mut SimContext) {
        let outcome = self.data_path.take_result(slot);
        let Some(owner) = self.slots[usize::from(slot)] else {
            return;
        };
        ctx.trace(ctx.now, || TraceEvent::Done { slot: slot as u8 });
        if owner.qid == 0 {
            self.admin_transfer_done(slot, outcome, ctx);
            return;
        }
        let answer = outcome.status(self.features.acre());
        let now = self.uptime(ctx);
        self.logs.smart.ended(owner.counts, answer, now);
        self.fused_arbiter.ended(slot, outcome);
        self.complete(slot, answer, 0, ctx);
        self.start_commands(ctx);
        self.resume_admin(ctx);
    }

    // ---- completing ----

    /// Ends a command. Its entry is posted once there is room.
    fn complete(&mut self, slot: u16, status: Status, dw0: u32, ctx: &mut SimContext) {
        self.completions.push_back((slot, status, dw0));
        if self.completions.len() == 1 {
            self.post_entries(ctx);
        }
    }

    /// Posts entries and messages while there is room.
    fn post_entries(&mut self, ctx: &mut SimContext) {
        self.send_messages(ctx);
        while let Some(&(slot, status, dw0)) = self.completions.front() {
            if !ctx.port.has_room() {
                return;
            }
            self.post_entry(slot, status, dw0, ctx);
            self.completions.pop_front();
            self.send_messages(ctx);
        }
    }

    /// Posts the entry of a command and frees its slot.
    fn post_entry(&mut self, slot: u16, status: Status, dw0: u32, ctx: &mut SimContext) {
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
        cq.tail = next_index(cq.tail, cq.size);
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
        let at = self.complete_at.max(ctx.now + timing::COMPLETE);
        self.complete_at = at + timing::COMPLETE_STEP;
        ctx.trace(at - 1, || TraceEvent::Post);
        ctx.trace(at, || TraceEvent::Sent {
            slot: slot as u8,
            addr,
            entry: entry.to_bytes(),
            vector: vector.map(|vector| vector as u8),
        });
        // The next admin command is fetched after the entry of the present one is sent. Other
        // entries of the admin queue need no notification.
        let owner = self
            .admin
            .take_completed(slot)
            .then_some(BurstOwner::AdminEntry);
        ctx.post_write(at, addr, &entry.to_bytes(), owner);
        self.retire(slot);
        if let Some(vector) = vector {
            let enabled = self.accepts_commands();
            self.coalescer
                .entry_posted(vector, cqid == 0, enabled, &self.features, ctx);
        }
        self.admin_entry_posted(slot, status, ctx);
        self.slot_retired(ctx);
    }

    /// Frees a slot, with or without an entry.
    fn retire(&mut self, slot: u16) {
        if let Some(owner) = self.slots[usize::from(slot)] {
            if let Some(sq) = &mut self.queues.submission[usize::from(owner.qid)] {
                sq.in_flight -= 1;
            }
        }
        self.free_slot(slot);
    }

    fn free_slot(&mut self, slot: u16) {
        if self.slots[usize::from(slot)].take().is_some() {
            self.free_slots.push_back(slot);
        }
    }

    fn slot_retired(&mut self, ctx: &mut SimContext) {
        if self.accepts_commands() {
            self.schedule_fetch(1, ctx);
        } else {
            ctx.schedule_after(1, Event::ControllerState);
        }
        self.resume_admin(ctx);
    }

    // ---- engines ----

    /// The next request to the engines.
    pub(crate) fn next_engine_request(&mut self) -> Option<EngineRequest> {
        self.engine_requests.pop_front()
    }

    /// There are requests to the engines.
    pub(crate) fn has_engine_requests(&self) -> bool {
        !self.engine_requests.is_empty()
    }

    /// Announces a command to its engine.
    fn dispatch_to_engine(&mut self, slot: u16, ctx: &mut SimContext) {
        let stops = !self.accepts_commands();
        if stops {
            // A command that arrives while the controller is disabled ends at once.
            self.abort_offloaded(slot, None, ctx);
        } else {
            self.engine_requests.push_back(EngineRequest::Dispatch);
        }
    }

    /// An engine has accepted a command.
    pub(crate) fn engine_accepted(&mut self, slot: u16) {
        if let Some(at) = &mut self.offloaded[usize::from(slot)] {
            at.state = OffloadState::Running;
        }
    }

    /// The oldest command that waits for an engine.
    pub(crate) fn next_for_engine(&mut self, engine: usize) -> Option<EngineCommand> {
        if !self.accepts_commands() {
            return None;
        }
        let waits = |at: &&OffloadedCommand| {
            at.engine == engine && at.state == OffloadState::Waiting && at.abort.is_none()
        };
        let mut all = self.offloaded.iter().flatten();
        all.find(waits).map(|at| at.command)
    }

    /// An engine has ended a command.
    pub(crate) fn engine_completed(&mut self, slot: u16, end: EngineResult, ctx: &mut SimContext) {
        let Some(at) = self
            .offloaded
            .get_mut(usize::from(slot))
            .and_then(Option::take)
        else {
            return;
        };
        let (status, dw0) = match end {
            EngineResult::Done(status, dw0) => (status, dw0),
            EngineResult::Stopped => (self.abort_status(at.abort), 0),
        };
        self.complete(slot, status, dw0, ctx);
    }

    fn abort_status(&self, abort: Option<bool>) -> Status {
        match abort {
            Some(true) => status::ABORTED_SQ_DELETION,
            Some(false) => status::ABORT_REQUESTED,
            None if !self.accepts_commands() => data_path::interrupted(self.features.acre()),
            None => status::INTERNAL_ERROR,
        }
    }

    /// Ends the offloaded command in a slot; false if there is none.
    fn abort_offloaded(&mut self, slot: u16, abort: Option<bool>, ctx: &mut SimContext) -> bool {
        let Some(at) = &mut self.offloaded[usize::from(slot)] else {
            return false;
        };
        if abort.is_some() {
            at.abort = abort;
        }
        match at.state {
            OffloadState::Waiting => {
                let abort = at.abort;
                self.offloaded[usize::from(slot)] = None;
                let status = self.abort_status(abort);
                self.complete(slot, status, 0, ctx);
            }
            OffloadState::Running if !at.stop_requested => {
                at.stop_requested = true;
                self.engine_requests
                    .push_back(EngineRequest::Stop(at.engine, slot));
            }
            OffloadState::Running => {}
        }
        true
    }

    fn abort_all_offloaded(&mut self, ctx: &mut SimContext) {
        for slot in 0..self.offloaded.len() as u16 {
            if self.offloaded[usize::from(slot)].is_some() {
                self.abort_offloaded(slot, None, ctx);
            }
        }
    }

    // ---- inputs of other blocks ----

    /// Receives data of a host read for the block that requested it.
    pub(crate) fn receive(&mut self, arrival: HostReadData, ctx: &mut SimContext) {
        match arrival.purpose {
            ReadPurpose::Fetch(slot) => self.entry_arrived(slot, &arrival, ctx),
            ReadPurpose::List(slot) => self.data_path.list_arrived(slot, &arrival, ctx),
            ReadPurpose::Data(job, piece, _) => {
                self.data_path.host_data_arrived(job, piece, arrival, ctx)
            }
            ReadPurpose::RangeList | ReadPurpose::RangeListPointer => {
                self.range_walker
                    .line_arrived(&arrival, &mut self.data_path, ctx);
            }
            ReadPurpose::AdminData(piece) => self.accept_admin_data(piece, &arrival, ctx),
            ReadPurpose::Shadow => match self.shadow.receive(&arrival, ctx) {
                Ok(None) => self.shadow_updated(ctx),
                Ok(Some(update)) => {
                    self.apply_doorbell(update.qid, update.completion, update.value, true, ctx);
                    self.shadow_updated(ctx);
                }
                Err(()) => self.raise_fatal(ctx),
            },
        }
    }

    fn shadow_updated(&mut self, ctx: &mut SimContext) {
        self.resume_admin(ctx);
        if !self.accepts_commands() {
            ctx.schedule_after(1, Event::ControllerState);
        }
    }

    /// Sends writes to the host and notifies their owners. Returns the edge of the next call.
    pub(crate) fn send_to_host(
        &mut self,
        ctx: &mut SimContext,
        host: &mut dyn HostPort,
    ) -> Option<u64> {
        let before = ctx.port.posts();
        let mut again = loop {
            match ctx.port.next_write(ctx.now, ctx.tracer, host) {
                WriteStep::Granted(channel, burst) => {
                    self.data_path.pass_host_burst(channel, &burst, ctx)
                }
                WriteStep::Sent(BurstOwner::Descriptor(number)) => {
                    self.data_path.host_burst_sent(number, ctx)
                }
                WriteStep::Sent(BurstOwner::EventIdx) => self.shadow.event_idx_sent(ctx),
                WriteStep::Sent(BurstOwner::AdminEntry) => {
                    self.admin.entry_sent = true;
                    ctx.schedule(ctx.now, Event::Admin);
                }
                WriteStep::Wait(again) => break again,
            }
        };
        if ctx.port.posts() < before {
            self.post_entries(ctx);
            let next = ctx.port.next_post().map(|cycle| cycle.max(ctx.now + 1));
            again = again.into_iter().chain(next).min();
        }
        if !self.accepts_commands() && !ctx.port.has_pending_writes() {
            ctx.schedule_after(1, Event::ControllerState);
        }
        again
    }

    /// Answers a read of BAR0, in order with the posted writes.
    pub(crate) fn answer_read(
        &mut self,
        tag: u32,
        data: Option<Vec<u8>>,
        cycles: u64,
        ctx: &mut SimContext,
    ) {
        let cycle = ctx.now + cycles;
        ctx.port.post_answer(cycle, tag, data);
        ctx.schedule(cycle, Event::HostWrite);
    }

    /// Sends messages after function-level enable or mask of MSI-X has changed.
    pub(crate) fn msix_changed(&mut self, ctx: &mut SimContext) {
        self.send_messages(ctx);
    }

    /// Completes the writes to the media that have started, without the host.
    pub(crate) fn complete_media_bursts(&mut self, now: u64, memory: &mut Memories) {
        self.data_path.complete_bursts(memory);
        self.range_walker.apply_partial_fill(now, memory);
    }

    /// No command is in flight except parked ones.
    pub(crate) fn is_idle(&self, port_idle: bool) -> bool {
        port_idle && self.free_slots.len() + self.events.parked() == self.slots.len()
    }

    /// Interrupt coalescing holds an interrupt.
    pub(crate) fn holds_interrupt(&self) -> bool {
        self.coalescer.is_holding()
    }

    /// Dispatches an event to its block.
    pub(crate) fn handle_event(&mut self, event: Event, ctx: &mut SimContext) {
        match event {
            Event::Walk(slot) => self.data_path.walk(slot, ctx),
            Event::TransferDone(slot) => self.transfer_done(slot, ctx),
            Event::MediaWrite(channel) => self.data_path.issue_media_writes(channel.into(), ctx),
            Event::MediaReadDone(channel) => {
                self.data_path.media_read_slot_free(channel.into(), ctx)
            }
            Event::RangeWalk => self.range_walker.walk(&mut self.data_path, ctx),
            Event::FillDone(number) => {
                self.range_walker
                    .fill_done(number, &mut self.data_path, ctx)
            }
            Event::RangeListLine => self.range_walker.list_line_done(&mut self.data_path, ctx),
            Event::Fetch => self.fetch(ctx),
            Event::Decode => self.decode(ctx),
            Event::Admin => self.admin_step(ctx),
            Event::AbortScan => self.abort_scan_done(ctx),
            Event::ControllerState => self.update_state(ctx),
            Event::Coalescing => {
                let enabled = self.accepts_commands();
                self.coalescer.expire(enabled, &self.features, ctx);
                self.send_messages(ctx);
            }
            Event::KeepAlive => self.expire_keep_alive(ctx),
            Event::FusedTimeout => self.expire_fused(ctx),
            Event::ShadowDoorbell => {
                let enabled = self.accepts_commands();
                self.shadow.advance(&self.queues, enabled, ctx);
                self.shadow_updated(ctx);
            }
            _ => {}
        }
    }

    /// Read data of the media; see [`DataPath::media_read`].
    pub(crate) fn media_read(
        &mut self,
        job: u32,
        cycle: u64,
        beats: u32,
        end: bool,
        ctx: &mut SimContext,
    ) {
        self.data_path.media_read(job, cycle, beats, end, ctx);
    }

    /// Retries accesses that the conflict filter held.
    pub(crate) fn filter_changed(&mut self, ctx: &mut SimContext) {
        self.data_path.filter_changed(ctx);
    }

    /// Write response of the media; see [`DataPath::media_written`].
    pub(crate) fn media_written(&mut self, burst: u32, ctx: &mut SimContext) {
        self.data_path.media_written(burst, ctx);
    }
}
