//! The device: events in the order of their clock edges, between a link and memories.

use std::sync::Arc;

use sim::{
    Bar, Clock, Counter, Device, Fault, HostPort, Media, OrderEvent, OrderWatch, ReadData, Time,
    TraceEvent, Tracer,
};
use spec::bar4;

use crate::bridge::{Asked, Bridge, Registers};
use crate::calendar::Calendar;
use crate::config::{Config, Omission};
use crate::control::Status;
use crate::controller::Controller;
use crate::controller::ToEngine;
use crate::cx::{Cx, Event, Looks, TAG_ENGINE, TAG_LINE, TAG_LOAD, TAG_READ, TAG_STORE, TAG_WRITE};
use crate::engines::{self, Engines, Hook};
use crate::memory::{Event as Answer, Memories};
use crate::msix::Msix;
use crate::patience::LOOK_MS;
use crate::port::Port;
use crate::qos::Qos;

/// Clock cycles from power-on until the device takes anything.
const RESET_CYCLES: u64 = 5;
/// Cycles that an empty function takes to be reset.
const FUNCTION_RESET: u64 = 40;
/// Whatever is planned behind so many cycles, while nothing is under way, is for the device itself.
const SOON: u64 = 64;
/// A register of BAR0, until its value is there.
const READ_BAR0: u64 = 8;
/// And of BAR4.
const READ_BAR4: u64 = 7;

/// From so many bytes on, what is not settled is, though the host is told nothing.
const UNSETTLED: u64 = 1 << 20;

/// A load of what is no command page.
const PAGE_ERROR: u64 = 9;

/// Everything that is lost with the power, or a reset of the function.
struct Powered {
    calendar: Calendar<Event>,
    port: Port,
    msix: Msix,
    bridge: Bridge,
    controller: Controller,
    engines: Engines,
    hook: Option<Box<Hook>>,
    qos: Qos,
    looks: Looks,
    /// When a look at each channel is planned.
    channel_looks: Vec<u64>,
}

/// A device that is modelled transaction by transaction.
pub struct FastDevice {
    config: Arc<Config>,
    memory: Memories,
    status: Status,
    powered: Option<Powered>,
    /// The last clock edge.
    edge: u64,
    msix: (bool, bool),
    tracer: Option<Tracer>,
    order: Option<OrderWatch>,
    lost_writes: u64,
    events: u64,
    answers: Vec<Answer>,
    /// What failing power would write may have changed since the media were settled.
    uncommitted_bytes: bool,
    /// It is in the middle of something.
    within: bool,
}

impl FastDevice {
    /// A device with power; `media` is what its storage holds.
    pub fn new(config: Config, mut media: Media) -> Result<FastDevice, String> {
        engines::check(&config)?;
        let last = engines::last_bytes(&config);
        if last > 0 {
            media.begin_journal(last).map_err(|e| e.to_string())?;
        }
        let local = match &config.local {
            None => None,
            Some(local) => {
                let media = match &local.file {
                    Some(path) => Media::file(path, local.bytes),
                    None => Media::memory(local.bytes),
                };
                Some((media.map_err(|e| e.to_string())?, config.local_base))
            }
        };
        let config = Arc::new(config);
        let mut device = FastDevice {
            memory: Memories::new(&config, media, local),
            status: Status::new(&config),
            powered: None,
            edge: 0,
            msix: (true, false),
            tracer: None,
            order: None,
            lost_writes: 0,
            events: 0,
            answers: Vec::new(),
            uncommitted_bytes: true,
            within: false,
            config,
        };
        device.power_up();
        Ok(device)
    }

    /// What the storage holds.
    pub fn media(&self) -> &Media {
        self.memory.storage()
    }

    /// The same, to be changed behind the device's back.
    pub fn media_mut(&mut self) -> &mut Media {
        self.memory.storage_mut()
    }

    /// What the local memory holds, if there is one.
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
        calendar.go_to(self.edge);
        let mut engines = Engines::new(config);
        let hook = engines.restore(config, self.edge + RESET_CYCLES, &mut self.memory);
        if let (Some(order), Some(hook)) = (&self.order, &hook) {
            engines::tell_restored(hook, order, config.clock.edge(self.edge));
        }
        let mut looks = Looks::new();
        if hook.is_some() {
            looks.plan(self.edge, Event::Hook);
            calendar.plan(self.edge, Event::Hook);
        }
        self.powered = Some(Powered {
            calendar,
            port: Port::new(config.clock, config.host_reads, config.host_chunk),
            msix: Msix::new(config.queues(), vectors, self.msix),
            bridge: Bridge::new(config.host_chunk),
            controller: Controller::new(config.clone(), self.edge + RESET_CYCLES),
            engines,
            hook,
            qos: Qos::new(),
            looks,
            channel_looks: vec![0; channels],
        });
    }

    /// What has begun on the media ends, without the host; all else is lost.
    fn end(&mut self) {
        let mut saved = true;
        if let Some(p) = &mut self.powered {
            p.controller.end_bursts(self.edge, &mut self.memory);
            let saves = self.config.omits != Some(Omission::Domain);
            if let Some(hook) = p.hook.as_ref().filter(|_| saves) {
                if self.memory.storage().has_journal() {
                    let (at, last) = p.engines.last_writes(hook);
                    self.memory.storage_mut().commit(at, &last);
                }
                saved = p.engines.save(hook, &mut self.memory);
            }
            self.lost_writes += p.bridge.lost_writes;
            if let (Some(order), Some(_)) = (&self.order, &p.hook) {
                order.record(self.config.clock.edge(self.edge), OrderEvent::PowerLost);
            }
        }
        self.powered = None;
        // Whatever was to be kept is on the media; else it stays in their journal, for whoever opens them next.
        if saved {
            self.memory.storage_mut().commit(0, &[]);
        }
    }

    fn clock(&self) -> Clock {
        self.config.clock
    }

    /// Without power: writes are lost, reads fail.
    fn discard(&mut self, until: Time, host: &mut dyn HostPort) {
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
                break; // the link knows better than to repeat itself
            }
        }
        self.edge = edge;
    }
}

/// The parts of a device that has power.
struct Parts<'a> {
    p: &'a mut Powered,
    memory: &'a mut Memories,
    status: &'a Status,
    config: &'a Config,
    answers: &'a mut Vec<Answer>,
    now: u64,
    tracer: Option<&'a Tracer>,
    order: Option<&'a OrderWatch>,
    uncommitted_bytes: &'a mut bool,
}

macro_rules! cx {
    ($parts:ident) => {
        Cx {
            now: $parts.now,
            clock: $parts.config.clock,
            calendar: &mut $parts.p.calendar,
            port: &mut $parts.p.port,
            memory: $parts.memory,
            msix: &mut $parts.p.msix,
            looks: &mut $parts.p.looks,
            channel_looks: &mut $parts.p.channel_looks,
            hook: $parts.p.hook.as_deref_mut(),
            tracer: $parts.tracer,
            order: $parts.order,
        }
    };
}

impl Parts<'_> {
    /// What failing power would leave now is what this process leaves if it ends without notice. Done before the host is told
    /// anything that it may build on.
    fn settle(&mut self) {
        let storage = self.memory.storage();
        let changed = std::mem::take(self.uncommitted_bytes) || storage.uncommitted_bytes() > 0;
        if !changed || !storage.has_journal() {
            return;
        }
        let saves = self.config.omits != Some(Omission::Domain);
        let hook = self.p.hook.as_deref().filter(|_| saves);
        let last = hook.map(|hook| self.p.engines.last_writes(hook));
        let (at, last) = last.unwrap_or_default();
        // A file that was cut is told of, and counted, by the media.
        self.memory.storage_mut().commit(at, &last);
    }

    /// What has arrived by now.
    fn arrivals(&mut self, host: &mut dyn HostPort) {
        let time = self.config.clock.edge(self.now);
        while host.next_data().is_some_and(|at| at <= time) {
            let Some(piece) = host.read_data(time) else {
                break;
            };
            *self.uncommitted_bytes = true;
            self.arrived(piece);
            while let Some(piece) = self.p.port.released() {
                self.arrived(piece);
            }
            // Tags have come back, perhaps.
            cx!(self).plan(self.now, Event::Reads);
        }
        self.bridge(host);
    }

    fn arrived(&mut self, piece: ReadData) {
        if let Some(arrival) = self.p.port.arrived(self.now, piece, self.tracer) {
            self.p.controller.arrived(arrival, &mut cx!(self));
        }
    }

    /// Ends reads that the host has not answered for too long.
    fn look_at_owed(&mut self) {
        for arrival in self.p.port.look(self.now) {
            self.p.controller.arrived(arrival, &mut cx!(self));
        }
        self.plan_look();
    }

    fn plan_look(&mut self) {
        if self.p.port.wants_look() {
            let cycles = cx!(self).ms(LOOK_MS);
            cx!(self).after(cycles, Event::Owed);
        }
    }

    fn bridge(&mut self, host: &mut dyn HostPort) {
        let time = self.config.clock.edge(self.now);
        let (stored, _) = self.p.bridge.counts();
        while let Some(asked) = self.p.bridge.take(&mut cx!(self), host) {
            match asked {
                Asked::Nothing => {}
                Asked::Registers(access) => {
                    *self.uncommitted_bytes = true;
                    self.registers(access);
                }
                Asked::Page(offset, data) => {
                    *self.uncommitted_bytes = true;
                    let (stores, answered) = self.p.bridge.counts();
                    let engines = &mut self.p.engines;
                    let fine = engines.write_page(offset, &data, stores, answered, &mut cx!(self));
                    self.p.bridge.lost_writes += u64::from(!fine);
                }
                Asked::PageLoad(offset, len, tag) => {
                    let data = self.p.engines.read_page(offset, len);
                    let bridge = &mut self.p.bridge;
                    match data {
                        Some(data) => bridge.reply_lines(tag, offset, &data, &mut cx!(self)),
                        None => bridge.reply(self.now + PAGE_ERROR, tag, None, &mut cx!(self)),
                    }
                }
            }
        }
        *self.uncommitted_bytes |= self.p.bridge.counts().0 != stored;
        if self.p.bridge.has_answer(self.now) {
            self.settle();
        }
        if let Some(again) = self.p.bridge.answer(self.now, time, host) {
            cx!(self).plan(again, Event::Bridge);
        }
    }

    fn registers(&mut self, access: Registers) {
        match access {
            Registers::Word(bar, offset, value) => self.write(bar, offset, value, u32::MAX),
            Registers::Write(bar, words) => {
                for (offset, value, bits) in words {
                    self.write(bar, offset, value, bits);
                }
            }
            Registers::Read {
                bar,
                first,
                words,
                skip,
                len,
                tag,
            } => {
                let mut bytes = Vec::new();
                let mut fine = true;
                for n in 0..words {
                    match self.read(bar, first + 4 * n) {
                        Some(word) => bytes.extend_from_slice(&word.to_le_bytes()),
                        None => fine = false,
                    }
                }
                let data = fine.then(|| bytes[skip..skip + len].to_vec());
                let more = 7 * (words - 1);
                match bar {
                    Bar::Nvme => {
                        self.p
                            .controller
                            .answer(tag, data, READ_BAR0 + more, &mut cx!(self))
                    }
                    _ => {
                        let cycle = self.now + READ_BAR4 + more;
                        self.p.bridge.reply(cycle, tag, data, &mut cx!(self));
                    }
                }
            }
        }
    }

    fn read(&mut self, bar: Bar, offset: u64) -> Option<u32> {
        if bar == Bar::Nvme {
            return Some(self.p.controller.read_register(offset, &cx!(self)));
        }
        let block = offset - offset % bar4::DELAY_STEP;
        let at = offset - block;
        match block {
            bar4::STATUS => Some(self.status.read(at)),
            bar4::QOS => Some(self.p.qos.read(at)),
            _ => match self.delay_of(block) {
                Some(channel) => Some(self.memory.channels[channel].register(at)),
                None => {
                    let hook = self.p.hook.as_deref();
                    self.p.engines.read_register(offset, self.now, hook)
                }
            },
        }
    }

    fn write(&mut self, bar: Bar, offset: u64, value: u32, bits: u32) {
        if bar == Bar::Nvme {
            self.p
                .controller
                .write_register(offset, value, bits, &mut cx!(self));
            return;
        }
        let block = offset - offset % bar4::DELAY_STEP;
        let at = offset - block;
        match block {
            bar4::STATUS => {}
            bar4::QOS => {
                self.p.qos.write(at, value, bits);
                self.set_credits();
            }
            _ => match self.delay_of(block) {
                Some(channel) => {
                    self.p.bridge.delay_written(channel, at, value, self.now);
                    let strobe = (0..4).fold(0, |s, n| s | (bits >> (8 * n) & 1) << n);
                    self.memory.channels[channel].set_register(self.now, at, value, strobe as u8);
                    cx!(self).channel_changed(channel);
                }
                None => {
                    let engines = &mut self.p.engines;
                    if !engines.write_register(offset, value, bits, &mut cx!(self)) {
                        self.p.bridge.lost_writes += 1;
                    }
                    self.serve_engines();
                }
            },
        }
    }

    /// The channel whose `nvm_delay` has this block of BAR4.
    fn delay_of(&self, block: u64) -> Option<usize> {
        let channel = (block.checked_sub(bar4::DELAY)? / bar4::DELAY_STEP) as usize;
        (channel < self.memory.channels.len()).then_some(channel)
    }

    /// Brings the quality of service to all channels.
    fn set_credits(&mut self) {
        for channel in 0..self.memory.channels.len() {
            for master in 0..crate::memory::master::ENGINES + self.config.engines.len() {
                let credits = self.p.qos.credits(master);
                self.memory.channels[channel].set_credits(self.now, master, credits);
            }
            cx!(self).channel_changed(channel);
        }
    }

    fn handle(&mut self, event: Event, host: &mut dyn HostPort) {
        // Those that are left out change nothing that is persistent, or say so themselves.
        *self.uncommitted_bytes |= match event {
            Event::Bridge | Event::Reads | Event::Owed | Event::Port | Event::Channel(_) => false,
            Event::Hook => (self.p.hook.as_ref()).is_some_and(|hook| !hook.is_quiet()),
            _ => true,
        };
        match event {
            Event::Bridge => self.bridge(host),
            Event::Reads => {
                let again = self.p.port.send_reads(self.now, self.tracer, host);
                if let Some(again) = again {
                    cx!(self).plan(again, Event::Reads);
                }
                self.plan_look();
            }
            Event::Owed => self.look_at_owed(),
            Event::Port => {
                self.settle();
                let again = self.p.controller.send(self.now, &mut cx!(self), host);
                if let Some(again) = again {
                    cx!(self).plan(again, Event::Port);
                }
            }
            Event::Channel(channel) => self.channel(channel.into()),
            Event::Hook => self.hook(),
            Event::Engine(engine, event) => {
                let (_, answered) = self.p.bridge.counts();
                let engines = &mut self.p.engines;
                engines.handle(engine, event, answered, &mut cx!(self));
                self.serve_engines();
            }
            event => {
                self.p.controller.handle(event, &mut cx!(self));
                if self.p.controller.asks_engines() {
                    self.serve_engines();
                }
            }
        }
    }

    /// What passes between the controller and the engines: commands and their ends, and messages of interrupts.
    fn serve_engines(&mut self) {
        loop {
            while let Some(asked) = self.p.controller.next_for_engines() {
                if let ToEngine::Stop(engine, slot) = asked {
                    let engines = &mut self.p.engines;
                    engines.stop_command(engine, slot, &mut cx!(self));
                }
            }
            while let Some((slot, end)) = self.p.engines.take_ended() {
                let controller = &mut self.p.controller;
                controller.engine_ended(slot, end, &mut cx!(self));
            }
            for engine in 0..self.config.engines.len() {
                if self.p.engines.has_room(engine) {
                    if let Some(command) = self.p.controller.engine_free(engine) {
                        self.p.controller.engine_took(command.slot);
                        self.p.engines.command(engine, command, &mut cx!(self));
                    }
                }
            }
            if !self.p.controller.asks_engines() {
                break;
            }
        }
        self.p.controller.send_messages(&mut cx!(self));
    }

    fn channel(&mut self, channel: usize) {
        let mut answers = std::mem::take(self.answers);
        self.memory.channels[channel].advance(self.now, &mut answers);
        for answer in answers.drain(..) {
            let loads = |tag: u64| tag >> 32 << 32 == TAG_LOAD;
            *self.uncommitted_bytes |= !matches!(answer, Answer::Read { tag, .. } if loads(tag));
            let (tag, number) = match answer {
                Answer::Read { tag, .. } | Answer::Write { tag, .. } => {
                    (tag >> 32 << 32, tag as u32)
                }
            };
            match (answer, tag) {
                (
                    Answer::Read {
                        cycle, beats, end, ..
                    },
                    TAG_READ,
                ) => {
                    let controller = &mut self.p.controller;
                    controller.media_read(number, cycle, beats, end, &mut cx!(self));
                }
                (
                    Answer::Read {
                        cycle, beats, end, ..
                    },
                    TAG_LOAD,
                ) => {
                    let part = (cycle, beats, end);
                    let bridge = &mut self.p.bridge;
                    bridge.loaded(number, channel, part, &mut cx!(self));
                }
                (Answer::Write { .. }, TAG_WRITE) => {
                    self.p.controller.media_written(number, &mut cx!(self))
                }
                (Answer::Write { .. }, TAG_STORE) => {
                    self.p.bridge.stored(number, &mut cx!(self));
                    let (_, answered) = self.p.bridge.counts();
                    let engines = &mut self.p.engines;
                    engines.stores_answered(answered, &mut cx!(self));
                }
                (Answer::Read { end, .. }, TAG_ENGINE) => {
                    self.p.engines.read(number, end, &mut cx!(self));
                }
                (Answer::Write { .. }, TAG_ENGINE) => {
                    self.p.engines.written(number, &mut cx!(self));
                }
                (Answer::Write { .. }, TAG_LINE) => {
                    engines::line_written(number, &mut cx!(self));
                }
                _ => {}
            }
        }
        *self.answers = answers;
        cx!(self).channel_changed(channel);
        self.p.bridge.passed(&mut cx!(self));
        if self.p.hook.as_ref().is_some_and(|h| h.has_lines(channel)) {
            cx!(self).after(1, Event::Hook);
        }
    }

    /// Looks at all that waits in the access hook.
    fn hook(&mut self) {
        let now = self.now;
        let answer = |hook: &mut Option<Box<Hook>>| hook.as_mut()?.take_answer(now);
        while let Some(number) = answer(&mut self.p.hook) {
            self.p.bridge.stored(number, &mut cx!(self));
            let (_, answered) = self.p.bridge.counts();
            let engines = &mut self.p.engines;
            engines.stores_answered(answered, &mut cx!(self));
        }
        let mut loads = Vec::new();
        engines::go_on(&mut loads, &mut cx!(self));
        for load in loads {
            self.p.bridge.go_on(load, &mut cx!(self));
        }
        self.p.engines.dispatch(&mut cx!(self));
        self.p.controller.hook_changed(&mut cx!(self));
        if self.p.bridge.is_blocked() {
            cx!(self).plan(now, Event::Bridge);
        }
    }
}

impl FastDevice {
    /// See [`Device::advance`].
    fn run(&mut self, until: Time, host: &mut dyn HostPort) {
        let clock = self.clock();
        let last = clock.edge_before(until);
        let Some(p) = &mut self.powered else {
            self.discard(until, host);
            return;
        };
        // What the link has refused, not knowing until when.
        let again = p.port.look_again();
        if again {
            let mut parts = Parts {
                p,
                memory: &mut self.memory,
                status: &self.status,
                config: &self.config,
                answers: &mut self.answers,
                now: self.edge,
                tracer: self.tracer.as_ref(),
                order: self.order.as_ref(),
                uncommitted_bytes: &mut self.uncommitted_bytes,
            };
            let parts = &mut parts;
            cx!(parts).after(0, Event::Reads);
            cx!(parts).after(0, Event::Port);
        }
        let edge_of = |time: Time| match time.0 {
            0 => 0,
            _ => clock.edge_strictly_before(time) + 1,
        };
        loop {
            let Some(p) = &mut self.powered else {
                return;
            };
            let mmio = match p.bridge.is_blocked() {
                true => None,
                false => host.next_mmio(),
            };
            let data = host.next_data();
            let comes = mmio.unwrap_or(Time::MAX).min(data.unwrap_or(Time::MAX));
            let event = p.calendar.first().unwrap_or(u64::MAX);
            // Its edge takes a division, which is needed only if nothing else happens before.
            let arrival = match comes <= clock.edge(event.min(last)) {
                true => edge_of(comes).max(self.edge),
                false => u64::MAX,
            };
            let next = event.min(arrival);
            if next > last {
                self.edge = last.max(self.edge);
                p.calendar.go_to(self.edge);
                return;
            }
            self.edge = next.max(self.edge);
            p.calendar.go_to(self.edge);
            let mut parts = Parts {
                p,
                memory: &mut self.memory,
                status: &self.status,
                config: &self.config,
                answers: &mut self.answers,
                now: self.edge,
                tracer: self.tracer.as_ref(),
                order: self.order.as_ref(),
                uncommitted_bytes: &mut self.uncommitted_bytes,
            };
            if arrival <= self.edge {
                parts.arrivals(host);
            }
            while let Some(event) = parts.p.calendar.next() {
                if parts.p.looks.is_due(parts.now, event) {
                    self.events += 1;
                    parts.handle(event, host);
                }
            }
            if parts.memory.storage().uncommitted_bytes() > UNSETTLED {
                *parts.uncommitted_bytes = true;
                parts.settle();
            }
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
        self.within = true;
        self.run(until, host);
        self.within = false;
        Ok(())
    }

    fn idle(&self) -> bool {
        self.powered.as_ref().is_none_or(|p| {
            p.bridge.is_quiet()
                && p.controller.is_at_rest(p.port.is_quiet())
                && !p.controller.holds()
                && p.engines.is_quiet()
                && p.hook.as_ref().is_none_or(|hook| hook.is_quiet())
                && !p.port.has_lost()
                && p.calendar
                    .first()
                    .is_none_or(|edge| edge > self.edge + SOON)
        })
    }

    fn next_event(&self) -> Time {
        let Some(p) = &self.powered else {
            return Time::MAX;
        };
        let planned = p.calendar.first().map(|edge| self.clock().edge(edge));
        match p.port.is_refused() {
            true => self.now(),
            false => planned.unwrap_or(Time::MAX),
        }
    }

    fn power_off(&mut self) {
        if self.powered.is_none() {
            return;
        }
        if let Some(tracer) = &self.tracer {
            tracer.record(self.now(), &TraceEvent::PowerOff);
        }
        self.end();
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
        self.end();
        self.edge += FUNCTION_RESET;
        self.power_up();
    }

    fn set_msix(&mut self, enable: bool, mask: bool) {
        self.msix = (enable, mask);
        let edge = self.edge;
        if let Some(p) = &mut self.powered {
            p.msix.set(enable, mask);
            let mut parts = Parts {
                p,
                memory: &mut self.memory,
                status: &self.status,
                config: &self.config,
                answers: &mut self.answers,
                now: edge,
                tracer: self.tracer.as_ref(),
                order: self.order.as_ref(),
                uncommitted_bytes: &mut self.uncommitted_bytes,
            };
            let parts = &mut parts;
            parts.p.controller.msix_changed(&mut cx!(parts));
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
    /// The end of a device whose memories are in files is a loss of its power. One that a panic has left in the middle of something
    /// has in its journal what it had before.
    fn drop(&mut self) {
        if self.memory.has_file() && !self.within {
            self.end();
        }
    }
}
