// SPDX-License-Identifier: Apache-2.0

//! The NVMe controller (hw/ip/nvme_ctrl): properties, queues, commands, completions.
//!
//! Modules have the names of the RTL's without `nvme_`, in the order in which a command passes
//! them:
//! - `bar0` with `properties`, `ctrl_state`, `queues`, `shadow`, `fetch`, `slot_table`: front end.
//! - `dispatch` with `decode`, `fused_pairing`, `fused_arbiter`, `engines`: the way of a command to
//!   the block that executes it.
//! - `data_path`: data between host and media, in a folder.
//! - `admin`: admin commands, in a folder, with [`features`], [`events`], and the pages
//!   [`identify`], [`logs`], [`error_log`] and [`smart`].
//! - `completion`, `coalescer`: completion queue entries and interrupts.
//! - `timing`: the latencies of the RTL's stages.

mod admin;
mod bar0;
mod coalescer;
mod completion;
mod ctrl_state;
mod data_path;
mod decode;
mod dispatch;
mod engines;
pub mod error_log;
pub mod events;
pub mod features;
mod fetch;
mod fused_arbiter;
mod fused_pairing;
pub mod identify;
pub mod logs;
mod properties;
mod queues;
mod shadow;
mod slot_table;
pub mod smart;
mod timing;

use std::collections::VecDeque;

use sim::HostPort;
use spec::nvme::Status;

use crate::config::Config;
use crate::context::{Event, SimContext};
use crate::host_port::{BurstOwner, HostReadData, ReadPurpose, WriteStep};
use crate::memory::Memories;

use admin::Admin;
use coalescer::InterruptCoalescer;
use ctrl_state::{ControllerState, SHUTDOWN_NONE};
use data_path::{DataPath, RangeWalker};
use decode::EngineRoute;
use engines::OffloadedCommand;
use events::Events;
use features::Features;
use fetch::EntryFetch;
use fused_arbiter::FusedArbiter;
use fused_pairing::Fused;
use logs::Logs;
use properties::Properties;
use queues::Queues;
use shadow::ShadowDoorbells;
use slot_table::SlotOwner;
use smart::Uptime;

pub(crate) use engines::{EngineCommand, EngineRequest, EngineResult};

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
    pub(crate) data_path: DataPath,
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
                doorbell_buffer: config.doorbell_buffer,
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
            logs: Logs::new(&all, config.doorbell_buffer),
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
            _ => unreachable!("the device handles {event:?}"),
        }
    }
}
