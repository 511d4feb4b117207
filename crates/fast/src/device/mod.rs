// SPDX-License-Identifier: Apache-2.0

//! The device as the simulation sees it: events in the order of their clock edges, between a link
//! and the memories.

mod control;

use std::sync::Arc;

use sim::{
    Clock, Counter, Device, Fault, HostPort, Media, OrderEvent, OrderWatch, ReadData, Time,
    TraceEvent, Tracer,
};

use crate::bridge::{Bridge, BridgeRequest};
use crate::calendar::Calendar;
use crate::config::{Config, FaultInjection};
use crate::conflict_filter::ConflictFilter;
use crate::context::{
    Event, SimContext, WakeUps, TAG_ENGINE, TAG_LINE, TAG_LOAD, TAG_READ, TAG_STORE, TAG_WRITE,
};
use crate::controller::{Controller, EngineRequest};
use crate::engines::{self, Engines};
use crate::error::Error;
use crate::host_port::{HostArbiter, CHECK_INTERVAL_MS};
use crate::memory::{ChannelEvent, Memories};
use crate::msix::Msix;
use crate::qos::Qos;
use crate::status::StatusBlock;

/// Clock cycles from power-on until the device accepts an access.
const RESET_CYCLES: u64 = 5;
/// Cycles that a reset of an idle function takes.
const FUNCTION_RESET: u64 = 40;
/// An idle device may have events further ahead than this: they have no effect on the host.
const IDLE_HORIZON: u64 = 64;
/// Cycles of a load of BAR4 outside of all command pages.
const PAGE_ERROR: u64 = 9;

/// The journal is settled once it has this many bytes, even if nothing is reported to the host.
const MAX_UNSETTLED_BYTES: u64 = 1 << 20;

/// Everything that is lost with the power, or with a reset of the function.
struct PoweredState {
    calendar: Calendar<Event>,
    port: HostArbiter,
    msix: Msix,
    bridge: Bridge,
    controller: Controller,
    engines: Engines,
    filter: Option<Box<dyn ConflictFilter>>,
    qos: Qos,
    wake_ups: WakeUps,
    /// When each channel is next advanced.
    channel_wake_ups: Vec<u64>,
}

/// A device that is modelled transaction by transaction.
pub struct FastDevice {
    config: Arc<Config>,
    memory: Memories,
    status: StatusBlock,
    powered: Option<PoweredState>,
    /// The last clock edge.
    edge: u64,
    msix: (bool, bool),
    tracer: Option<Tracer>,
    order: Option<OrderWatch>,
    lost_writes: u64,
    events: u64,
    channel_events: Vec<ChannelEvent>,
    /// What failing power would write may have changed since the journal was settled.
    journal_stale: bool,
    /// [`Device::advance`] is running.
    advancing: bool,
}

impl FastDevice {
    /// A device with power; `media` is the content of its storage.
    pub fn new(config: Config, mut media: Media) -> Result<FastDevice, Error> {
        engines::check(&config)?;
        let last = engines::last_bytes(&config);
        if last > 0 {
            media.begin_journal(last)?;
        }
        let local = match &config.local {
            None => None,
            Some(local) => {
                let media = match &local.file {
                    Some(path) => Media::file(path, local.bytes),
                    None => Media::memory(local.bytes),
                };
                Some((media?, config.local_base))
            }
        };
        let config = Arc::new(config);
        let mut device = FastDevice {
            memory: Memories::new(&config, media, local),
            status: StatusBlock::new(&config),
            powered: None,
            edge: 0,
            msix: (true, false),
            tracer: None,
            order: None,
            lost_writes: 0,
            events: 0,
            channel_events: Vec::new(),
            journal_stale: true,
            advancing: false,
            config,
        };
        device.power_up();
        Ok(device)
    }

    /// The content of the storage.
    pub fn media(&self) -> &Media {
        self.memory.storage()
    }

    /// The content of the storage, to be changed without the device's knowledge.
    pub fn media_mut(&mut self) -> &mut Media {
        self.memory.storage_mut()
    }

    /// The content of the local memory, if there is one.
    pub fn local(&self) -> Option<&Media> {
        self.memory.local()
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    fn power_up(&mut self) {
        let config = &self.config;
        let vectors = config
            .engines
            .iter()
            .map(|e| usize::from(e.manifest.interrupts))
            .sum();
        let channels = self.memory.channels.len();
        self.memory.reset();
        let mut calendar = Calendar::new();
        calendar.advance_to(self.edge);
        let mut engines = Engines::new(config);
        let filter = engines.restore(config, self.edge + RESET_CYCLES, &mut self.memory);
        if let (Some(order), Some(filter)) = (&self.order, &filter) {
            engines::record_restored(&**filter, order, config.clock.edge(self.edge));
        }
        let mut wake_ups = WakeUps::new();
        if filter.is_some() {
            wake_ups.set(self.edge, Event::ConflictFilter);
            calendar.schedule(self.edge, Event::ConflictFilter);
        }
        self.powered = Some(PoweredState {
            calendar,
            port: HostArbiter::new(
                config.clock,
                config.host_reads,
                config.max_payload,
                config.storage.channels,
            ),
            msix: Msix::new(config.queues(), vectors, self.msix),
            bridge: Bridge::new(config.max_payload),
            controller: Controller::new(config.clone(), self.edge + RESET_CYCLES),
            engines,
            filter,
            qos: Qos::new(),
            wake_ups,
            channel_wake_ups: vec![0; channels],
        });
    }

    /// Ends what has begun on the media, without the host; all else is lost.
    fn power_down(&mut self) {
        let mut saved = true;
        if let Some(p) = &mut self.powered {
            p.controller
                .complete_media_bursts(self.edge, &mut self.memory);
            let fault = self.config.fault_injection;
            let saves = fault != Some(FaultInjection::PersistenceDomain);
            if let Some(filter) = p.filter.as_ref().filter(|_| saves) {
                if self.memory.storage().has_journal() {
                    let (at, last) = p.engines.last_writes(&**filter);
                    self.memory.storage_mut().commit(at, &last);
                }
                saved = p.engines.save(&**filter, &mut self.memory);
            }
            self.lost_writes += p.bridge.lost_writes;
            if let (Some(order), Some(_)) = (&self.order, &p.filter) {
                order.record(self.config.clock.edge(self.edge), OrderEvent::PowerLost);
            }
        }
        self.powered = None;
        // All that has to survive is on the media now. If it is not, the journal keeps it for the
        // next process that opens the file.
        if saved {
            self.memory.storage_mut().commit(0, &[]);
        }
    }

    fn clock(&self) -> Clock {
        self.config.clock
    }

    /// Answers accesses without power: writes are lost, reads fail.
    fn discard_accesses(&mut self, until: Time, host: &mut dyn HostPort) {
        let edge = self.clock().edge_before(until).max(self.edge);
        let last = self.clock().edge(edge);
        loop {
            let time = host.next_arrival().unwrap_or(Time::MAX).max(self.now());
            if time > last {
                break;
            }
            let mut any = false;
            while let Some(access) = host.mmio(time) {
                any = true;
                if let sim::Mmio::Read { tag, .. } = access {
                    host.mmio_data(time, tag, None);
                }
            }
            while host.read_data(time).is_some() {
                any = true;
            }
            if !any {
                break; // a link that announces an arrival twice would loop here for ever
            }
        }
        self.edge = edge;
    }

    /// The device at the present clock edge; `None` without power.
    fn active(&mut self) -> Option<ActiveDevice<'_>> {
        let p = self.powered.as_mut()?;
        Some(ActiveDevice {
            ctx: SimContext {
                now: self.edge,
                clock: self.config.clock,
                calendar: &mut p.calendar,
                port: &mut p.port,
                memory: &mut self.memory,
                msix: &mut p.msix,
                wake_ups: &mut p.wake_ups,
                channel_wake_ups: &mut p.channel_wake_ups,
                filter: p.filter.as_deref_mut(),
                tracer: self.tracer.as_ref(),
                order: self.order.as_ref(),
            },
            bridge: &mut p.bridge,
            controller: &mut p.controller,
            engines: &mut p.engines,
            qos: &mut p.qos,
            status: &self.status,
            config: &self.config,
            channel_events: &mut self.channel_events,
            journal_stale: &mut self.journal_stale,
        })
    }
}

/// A device with power at one clock edge: its blocks, and the context that each of them gets.
struct ActiveDevice<'a> {
    ctx: SimContext<'a>,
    bridge: &'a mut Bridge,
    controller: &'a mut Controller,
    engines: &'a mut Engines,
    qos: &'a mut Qos,
    status: &'a StatusBlock,
    config: &'a Config,
    channel_events: &'a mut Vec<ChannelEvent>,
    journal_stale: &'a mut bool,
}

impl ActiveDevice<'_> {
    /// Brings the journal up to date: a process that ends without notice then leaves what failing
    /// power would leave. Called before the host gets a report that it may build on.
    fn settle_journal(&mut self) {
        let storage = self.ctx.memory.storage();
        let changed = std::mem::take(self.journal_stale) || storage.uncommitted_bytes() > 0;
        if !changed || !storage.has_journal() {
            return;
        }
        let saves = self.config.fault_injection != Some(FaultInjection::PersistenceDomain);
        let filter = self.ctx.filter.as_deref().filter(|_| saves);
        let last = filter.map(|filter| self.engines.last_writes(filter));
        let (at, last) = last.unwrap_or_default();
        // Accepted commands and stores would be lost with the process. The host learns it by the
        // count, since the load by which a fence proves them may be one of a register.
        let kept = self.ctx.memory.storage_mut().commit(at, &last);
        self.ctx.memory.lost_writes += u64::from(!kept);
    }

    /// Receives what has arrived over the link by now.
    fn receive(&mut self, host: &mut dyn HostPort) {
        let time = self.config.clock.edge(self.ctx.now);
        while host.next_data().is_some_and(|at| at <= time) {
            let Some(data) = host.read_data(time) else {
                break;
            };
            *self.journal_stale = true;
            self.receive_read_data(data);
            while let Some(data) = self.ctx.port.link.released() {
                self.receive_read_data(data);
            }
            // Tags may have become free.
            self.ctx.schedule(self.ctx.now, Event::HostRead);
        }
        self.run_bridge(host);
    }

    fn receive_read_data(&mut self, data: ReadData) {
        let (now, tracer) = (self.ctx.now, self.ctx.tracer);
        if let Some(data) = self.ctx.port.link.receive(now, data, tracer) {
            self.controller.receive(data, &mut self.ctx);
        }
    }

    /// Ends host reads whose completion timeout has passed.
    fn expire_host_reads(&mut self) {
        for data in self.ctx.port.link.expire_stalled_reads(self.ctx.now) {
            self.controller.receive(data, &mut self.ctx);
        }
        self.schedule_timeout_check();
    }

    fn schedule_timeout_check(&mut self) {
        if self.ctx.port.link.arm_timeout_check() {
            let cycles = self.ctx.cycles_of_ms(CHECK_INTERVAL_MS);
            self.ctx.schedule_after(cycles, Event::CompletionTimeout);
        }
    }

    fn run_bridge(&mut self, host: &mut dyn HostPort) {
        let time = self.config.clock.edge(self.ctx.now);
        let (begun, _) = self.bridge.store_counts();
        while let Some(request) = self.bridge.next_access(&mut self.ctx, host) {
            match request {
                BridgeRequest::None => {}
                BridgeRequest::Registers(access) => {
                    *self.journal_stale = true;
                    self.access_registers(access);
                }
                BridgeRequest::PageStore(offset, data) => {
                    *self.journal_stale = true;
                    let (begun, answered) = self.bridge.store_counts();
                    let ctx = &mut self.ctx;
                    let inside = self.engines.write_page(offset, &data, begun, answered, ctx);
                    self.bridge.lost_writes += u64::from(!inside);
                }
                BridgeRequest::PageLoad(offset, len, tag) => {
                    let ctx = &mut self.ctx;
                    match self.engines.read_page(offset, len) {
                        Some(data) => self.bridge.queue_page_answer(tag, offset, &data, ctx),
                        None => {
                            let cycle = ctx.now + PAGE_ERROR;
                            self.bridge.queue_answer(cycle, tag, None, ctx);
                        }
                    }
                }
            }
        }
        *self.journal_stale |= self.bridge.store_counts().0 != begun;
        if self.bridge.has_answer(self.ctx.now) {
            self.settle_journal();
        }
        if let Some(again) = self.bridge.send_answers(self.ctx.now, time, host) {
            self.ctx.schedule(again, Event::Bridge);
        }
    }

    fn handle_event(&mut self, event: Event, host: &mut dyn HostPort) {
        // The events that are listed change nothing persistent, or mark the journal themselves.
        *self.journal_stale |= match event {
            Event::Bridge
            | Event::HostRead
            | Event::CompletionTimeout
            | Event::HostWrite
            | Event::Channel(_) => false,
            Event::ConflictFilter => {
                let filter = self.ctx.filter.as_deref();
                filter.is_some_and(|filter| !filter.is_idle())
            }
            _ => true,
        };
        match event {
            Event::Bridge => self.run_bridge(host),
            Event::HostRead => {
                let (now, tracer) = (self.ctx.now, self.ctx.tracer);
                let again = self.ctx.port.link.send_reads(now, tracer, host);
                if let Some(again) = again {
                    self.ctx.schedule(again, Event::HostRead);
                }
                self.schedule_timeout_check();
            }
            Event::CompletionTimeout => self.expire_host_reads(),
            Event::HostWrite => {
                self.settle_journal();
                let again = self.controller.send_to_host(&mut self.ctx, host);
                if let Some(again) = again {
                    self.ctx.schedule(again, Event::HostWrite);
                }
            }
            Event::Channel(channel) => self.run_channel(channel.into()),
            Event::ConflictFilter => self.run_filter(),
            Event::Engine(engine, event) => {
                let (_, answered) = self.bridge.store_counts();
                let ctx = &mut self.ctx;
                self.engines.handle_event(engine, event, answered, ctx);
                self.serve_engines();
            }
            event => {
                self.controller.handle_event(event, &mut self.ctx);
                if self.controller.has_engine_requests() {
                    self.serve_engines();
                }
            }
        }
    }

    /// Passes commands, their results and interrupts between the controller and the engines.
    fn serve_engines(&mut self) {
        let ctx = &mut self.ctx;
        loop {
            while let Some(request) = self.controller.next_engine_request() {
                if let EngineRequest::Stop(engine, slot) = request {
                    self.engines.stop_command(engine, slot, ctx);
                }
            }
            while let Some((slot, result)) = self.engines.next_ended_command() {
                self.controller.engine_completed(slot, result, ctx);
            }
            for engine in 0..self.config.engines.len() {
                if self.engines.has_room(engine) {
                    if let Some(command) = self.controller.next_for_engine(engine) {
                        self.controller.engine_accepted(command.slot);
                        self.engines.start_command(engine, command, ctx);
                    }
                }
            }
            if !self.controller.has_engine_requests() {
                break;
            }
        }
        self.controller.send_messages(ctx);
    }

    fn run_channel(&mut self, channel: usize) {
        let mut events = std::mem::take(self.channel_events);
        self.ctx.memory.channels[channel].advance(self.ctx.now, &mut events);
        for event in events.drain(..) {
            let is_load = |tag: u64| tag >> 32 << 32 == TAG_LOAD;
            *self.journal_stale |= !matches!(event, ChannelEvent::Read { tag, .. } if is_load(tag));
            match event {
                ChannelEvent::Read {
                    tag,
                    cycle,
                    beats,
                    end,
                } => self.media_read(channel, tag, (cycle, beats, end)),
                ChannelEvent::Write { tag, .. } => self.media_written(tag),
            }
        }
        *self.channel_events = events;
        self.ctx.schedule_channel(channel);
        self.bridge.memory_accepted_data(&mut self.ctx);
        let filter = self.ctx.filter.as_deref();
        if filter.is_some_and(|filter| filter.has_waiting_lines(channel)) {
            self.ctx.schedule_after(1, Event::ConflictFilter);
        }
    }

    /// Hands read data of a channel to the block whose burst it belongs to.
    fn media_read(&mut self, channel: usize, tag: u64, data: (u64, u32, bool)) {
        let (owner, number) = (tag >> 32 << 32, tag as u32);
        let (cycle, beats, end) = data;
        let ctx = &mut self.ctx;
        match owner {
            TAG_READ => self
                .controller
                .data_path
                .media_read(number, cycle, beats, end, ctx),
            TAG_LOAD => self.bridge.load_data_arrived(number, channel, data, ctx),
            TAG_ENGINE => self.engines.read_answered(number, end, ctx),
            _ => unreachable!("stores and queue lines read nothing"),
        }
    }

    /// Hands a write response of a channel to the block whose burst it belongs to.
    fn media_written(&mut self, tag: u64) {
        let (owner, number) = (tag >> 32 << 32, tag as u32);
        let ctx = &mut self.ctx;
        match owner {
            TAG_WRITE => self.controller.data_path.media_written(number, ctx),
            TAG_STORE => self.store_answered(number),
            TAG_ENGINE => self.engines.write_answered(number, ctx),
            TAG_LINE => engines::line_written(number, ctx),
            _ => unreachable!("loads write nothing"),
        }
    }

    fn store_answered(&mut self, number: u32) {
        let ctx = &mut self.ctx;
        self.bridge.store_answered(number, ctx);
        let (_, answered) = self.bridge.store_counts();
        self.engines.stores_answered(answered, ctx);
    }

    /// Lets everything pass that the conflict filter need not hold any longer.
    fn run_filter(&mut self) {
        let now = self.ctx.now;
        while let Some(number) =
            (self.ctx.filter.as_deref_mut()).and_then(|filter| filter.next_answer(now))
        {
            self.store_answered(number);
        }
        let ctx = &mut self.ctx;
        for load in self.engines.issue_waiting_accesses(ctx) {
            self.bridge.issue_load(load, ctx);
        }
        self.engines.dispatch(ctx);
        self.controller.data_path.filter_changed(ctx);
        if self.bridge.is_blocked() {
            ctx.schedule(now, Event::Bridge);
        }
    }
}

impl FastDevice {
    /// See [`Device::advance`].
    fn run(&mut self, until: Time, host: &mut dyn HostPort) {
        let clock = self.clock();
        let last = clock.edge_before(until);
        let Some(p) = &mut self.powered else {
            self.discard_accesses(until, host);
            return;
        };
        // Retry what the link has refused for an unknown time.
        if p.port.link.clear_unknown_refusals() {
            let mut active = self.active().expect("power fails between calls");
            active.ctx.schedule_after(0, Event::HostRead);
            active.ctx.schedule_after(0, Event::HostWrite);
        }
        let edge_of = |time: Time| match time.0 {
            0 => 0,
            _ => clock.edge_strictly_before(time) + 1,
        };
        loop {
            let p = self.powered.as_mut().expect("power fails between calls");
            let mmio = match p.bridge.is_blocked() {
                true => None,
                false => host.next_mmio(),
            };
            let data = host.next_data();
            let next_arrival = mmio.unwrap_or(Time::MAX).min(data.unwrap_or(Time::MAX));
            let event = p.calendar.first_cycle().unwrap_or(u64::MAX);
            // The edge takes a division, which is needed only if no event comes before.
            let arrival = match next_arrival <= clock.edge(event.min(last)) {
                true => edge_of(next_arrival).max(self.edge),
                false => u64::MAX,
            };
            let next = event.min(arrival);
            if next > last {
                self.edge = last.max(self.edge);
                p.calendar.advance_to(self.edge);
                return;
            }
            self.edge = next.max(self.edge);
            p.calendar.advance_to(self.edge);
            let mut handled = 0;
            let mut active = self.active().expect("power fails between calls");
            if arrival <= active.ctx.now {
                active.receive(host);
            }
            while let Some(event) = active.ctx.calendar.next_event() {
                if active.ctx.wake_ups.is_due(active.ctx.now, event) {
                    handled += 1;
                    active.handle_event(event, host);
                }
            }
            if active.ctx.memory.storage().uncommitted_bytes() > MAX_UNSETTLED_BYTES {
                *active.journal_stale = true;
                active.settle_journal();
            }
            self.events += handled;
            if host.attention() {
                return;
            }
        }
    }
}

impl Device for FastDevice {
    fn now(&self) -> Time {
        self.clock().edge(self.edge)
    }

    fn advance(&mut self, until: Time, host: &mut dyn HostPort) -> Result<(), Fault> {
        self.advancing = true;
        self.run(until, host);
        self.advancing = false;
        Ok(())
    }

    fn idle(&self) -> bool {
        self.powered.as_ref().is_none_or(|p| {
            p.bridge.is_idle()
                && p.controller.is_idle(p.port.is_idle())
                && !p.controller.holds_interrupt()
                && p.engines.is_idle()
                && p.filter.as_ref().is_none_or(|filter| filter.is_idle())
                && !p.port.link.has_expired_reads()
                && p.calendar
                    .first_cycle()
                    .is_none_or(|edge| edge > self.edge + IDLE_HORIZON)
        })
    }

    fn next_event(&self) -> Time {
        let Some(p) = &self.powered else {
            return Time::MAX;
        };
        let scheduled = p.calendar.first_cycle().map(|edge| self.clock().edge(edge));
        match p.port.link.is_refused() {
            true => self.now(),
            false => scheduled.unwrap_or(Time::MAX),
        }
    }

    fn power_off(&mut self) {
        if self.powered.is_none() {
            return;
        }
        if let Some(tracer) = &self.tracer {
            tracer.record(self.now(), &TraceEvent::PowerOff);
        }
        self.power_down();
    }

    fn power_on(&mut self) {
        if self.powered.is_none() {
            self.power_up();
        }
    }

    fn function_reset(&mut self) {
        if let (Some(tracer), true) = (&self.tracer, self.powered.is_some()) {
            tracer.record(self.now(), &TraceEvent::PowerOff);
        }
        self.power_down();
        self.edge += FUNCTION_RESET;
        self.power_up();
    }

    fn set_msix(&mut self, enable: bool, mask: bool) {
        self.msix = (enable, mask);
        if let Some(active) = &mut self.active() {
            active.ctx.msix.set(enable, mask);
            active.controller.send_messages(&mut active.ctx);
        }
    }

    fn set_tracer(&mut self, tracer: Option<Tracer>) -> bool {
        self.tracer = tracer;
        true
    }

    fn watch_order(&mut self, watch: Option<OrderWatch>) -> bool {
        self.order = watch;
        self.config.engines.iter().any(engines::is_nearpm)
    }

    fn finish(&mut self) -> Result<(), Fault> {
        let flushed = self.memory.flush();
        flushed.map_err(|e| Fault::File(e.to_string()))
    }

    fn lost_writes(&self) -> u64 {
        let of_bridge = self.powered.as_ref().map_or(0, |p| p.bridge.lost_writes);
        self.lost_writes + of_bridge + self.memory.lost_writes
    }

    fn counters(&self) -> Vec<Counter> {
        let counter = |name: &str, value: u64, unit| Counter {
            name: name.to_string(),
            value: value as f64,
            unit,
        };
        vec![
            counter("events", self.events, "events"),
            counter("media.failures", self.memory.failures(), "accesses"),
            counter("mmio.lost_writes", self.lost_writes(), "accesses"),
        ]
    }
}

impl Drop for FastDevice {
    /// Dropping a device whose memories are files is a loss of its power. After a panic within
    /// [`Device::advance`] the journal keeps its last settled content instead.
    fn drop(&mut self) {
        if self.memory.has_file() && !self.advancing {
            self.power_down();
        }
    }
}
