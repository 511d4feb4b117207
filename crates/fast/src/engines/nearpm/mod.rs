// SPDX-License-Identifier: Apache-2.0

//! NearPM (hw/engine/nearpm): crash consistency in the device. The engine accepts commands in the
//! order of the host's accesses and makes logs, copies and checkpoints while the host continues. A
//! conflict filter orders the host's accesses after them.

mod bits;
mod conflict_filter;
mod contexts;
mod mover;
mod peers;
mod progress;
mod saved_state;
mod table;
mod tracking;
mod unit;
mod unit_command;

use std::ops::Range;

use design::engine::EngineInstance;
use sim::{OrderEvent, OrderWatch, Time, TraceEvent};
use spec::nearpm::{register, Command, ErrorBit, Operation, COMMANDS};
use spec::regs::nearpm::{
    control, domain, forget, CONTROL, DOMAIN, FORGET, LINES, LINES_COUNT, LINES_STRIDE, LOADS,
    MOST_LINES, PROGRESS, REFUSED, STORES, TAKEN, TRACKED, UNDER_WAY, WORKING,
};
use spec::regs::Field;

use self::conflict_filter::NearPmFilter;
use self::contexts::Accepted;
use self::mover::{MoveLimits, ReadRate, NUMBERS};
use self::peers::Peers;
use self::progress::Progress;
use self::saved_state::RestoreOutcome;
use self::table::ReadyCommand;
use self::unit::Unit;
use super::page::Page;
use super::ports::{AccessBounds, EnginePorts};
use super::{event_kind, JobResult};
use crate::config::{Config, FaultInjection};
use crate::conflict_filter::ConflictFilter;
use crate::context::{Event, SimContext, TAG_LINE};
use crate::memory::{master, Memories};

/// The type in the status block, and the name in `engine.toml`.
pub(super) const KIND: (u32, &str) = (22, "nearpm");
/// Cycles from a command's store until a unit can start it.
const DECODE_CYCLES: u64 = 11;
/// Cycles until a device without saved state opens, and for each restored line.
const OPEN_CYCLES: u64 = 80;
const RESTORE_CYCLES: u64 = 2;
/// Maximum number of queue lines that wait at the memory.
const MAX_LINES_AT_MEMORY: u32 = 4;
/// Maximum number of units.
const MAX_UNITS: u32 = 16;
/// The wake-up that notifies peers. Those of units are below.
const NOTIFY: u32 = MAX_UNITS << 1;
/// The wake-up that writes a progress word.
const WRITE_WORD: u32 = NOTIFY + 1;
/// The AXI ID of queue lines, which the PM window does not use.
const LINE_ID: u16 = 64;

/// The engine of a device.
pub(super) struct NearPm {
    number: u8,
    /// Range of its registers in BAR4.
    pub(super) place: Range<u64>,
    pub(super) page_at: Option<u64>,
    bounds: AccessBounds,
    page: Page,
    peers: Peers,
    /// A wake-up that notifies a peer is scheduled.
    notifying: bool,
    progress: Progress,
    /// A wake-up that writes a progress word is scheduled.
    writing_word: bool,
    units: Vec<Unit>,
    /// Unit n reads at rate n, modulo their number.
    rates: Vec<ReadRate>,
    /// Commands that were accepted, and that were rejected.
    accepted: u32,
    refused: u32,
    /// State was restored.
    restored: bool,
    /// State that has to survive was not saved at a power loss. Set until the host clears it.
    lost: bool,
    /// The header of the reserved range says that state has to survive, or should say so because it
    /// could not be written.
    marked_live: bool,
    mark_failed: bool,
}

impl NearPm {
    pub(super) fn new(number: u8, instance: &EngineInstance, config: &Config) -> NearPm {
        let manifest = &instance.manifest;
        let parameter =
            |name: &str, most: u64| instance.parameter(name).map_or(most, |v| v.min(most));
        let units = parameter("units", MAX_UNITS.into()).max(1) as u32;
        let limits = MoveLimits::new(units, config.channels(), parameter("unit_lines", 1024));
        NearPm {
            number,
            place: instance.offset..instance.offset + manifest.registers.0,
            page_at: instance.page,
            bounds: AccessBounds::new(instance, config),
            page: Page::new(manifest.arguments.len()),
            peers: Peers::new(),
            notifying: false,
            progress: Progress::new(config.fault_injection == Some(FaultInjection::ProgressWords)),
            writing_word: false,
            units: (0..units).map(|n| Unit::new(n, limits)).collect(),
            rates: {
                let sharing = parameter("rate_units", 1).max(1) as u32;
                vec![ReadRate::default(); units.div_ceil(sharing) as usize]
            },
            accepted: 0,
            refused: 0,
            restored: false,
            lost: false,
            marked_live: false,
            mark_failed: false,
        }
    }

    /// Updates the header of the reserved range, which says whether state has to survive.
    fn update_header(&mut self, filter: &NearPmFilter, memory: &mut Memories) {
        if filter.has_failed_restore() {
            return;
        }
        let is_numbered = self.peers.device().is_some();
        let marked_live =
            self.lost || filter.contexts.is_used() || !filter.is_empty() || is_numbered;
        if marked_live != self.marked_live {
            self.marked_live = marked_live;
            self.mark_failed = !saved_state::write_header(filter, marked_live, memory);
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.page.is_idle()
            && self.peers.is_idle()
            && self.progress.is_idle()
            && self.units.iter().all(Unit::is_idle)
    }

    /// Appends bytes of the page to `data`.
    pub(super) fn read_page(&self, at: usize, len: usize, data: &mut Vec<u8>) {
        self.page.read(at, len, data);
    }

    /// Writes bytes to the page and accepts its complete commands. `stores`: number of earlier
    /// stores to the PM window.
    pub(super) fn write_page(&mut self, at: usize, data: &[u8], stores: u64, ctx: &mut SimContext) {
        self.page.write(at, data, stores);
        while let Some(line) = self.page.next_line() {
            self.accepted = self.accepted.wrapping_add(1);
            let command = Command::from_words(&self.page.words_of(line));
            let filter = own_mut(&mut ctx.filter);
            let accepted = match filter.has_failed_restore() {
                true => Err(ErrorBit::ReadError),
                false => filter.contexts.accept_command(command, &self.peers),
            };
            match accepted {
                Ok(Accepted::Unit(job)) => {
                    if job.operation == Operation::PoolUnmap {
                        filter.table.unmap_pool(job.log >> 4);
                        self.progress.pool_changed(job.log >> 4);
                    }
                    filter.insert(line, job, stores, ctx.now + DECODE_CYCLES);
                    ctx.schedule_after(DECODE_CYCLES, Event::ConflictFilter);
                    ctx.record_order(|| OrderEvent::CommandAccepted(job.ordered(line)));
                }
                Ok(Accepted::Ended) => {
                    if let Some(map) = command.filter(|c| c.operation == Operation::PoolMap) {
                        self.progress.pool_changed(map.pool);
                    }
                    ctx.record_order(|| OrderEvent::CommandSkipped { number: line });
                    self.page.end_line(line, &JobResult::default());
                }
                Err(refusal) => {
                    ctx.record_order(|| OrderEvent::CommandSkipped { number: line });
                    self.refused = self.refused.wrapping_add(1);
                    let end = JobResult {
                        result: refusal as u32,
                        ..JobResult::default()
                    };
                    self.page.end_line(line, &end);
                }
            }
        }
        self.update_header(own(&ctx.filter), ctx.memory);
    }

    /// Starts ready commands on free units.
    pub(super) fn dispatch(&mut self, ctx: &mut SimContext) {
        self.update_header(own(&ctx.filter), ctx.memory);
        while let Some(unit) = self.units.iter().position(Unit::is_idle) {
            let now = ctx.now;
            match own_mut(&mut ctx.filter).next_ready(now) {
                Ok(ReadyCommand {
                    number,
                    failed: true,
                    ..
                }) => {
                    ctx.record_order(|| OrderEvent::CommandEnded {
                        number,
                        fine: false,
                    });
                    self.finish_command(number, ErrorBit::Unmapped as u32, 0, ctx);
                }
                Ok(ReadyCommand { number, job, .. }) => {
                    ctx.trace(now, || TraceEvent::UnitBegins {
                        unit: unit as u8,
                        command: number,
                        operation: job.operation as u8,
                        bytes: job.bytes.into(),
                    });
                    ctx.record_order(|| OrderEvent::CommandStarted { number });
                    self.with_unit(unit, ctx, |unit, ports| unit.begin(number, job, ports));
                }
                Err(Some(later)) => return ctx.schedule(later, Event::ConflictFilter),
                Err(None) => return,
            }
        }
    }

    fn with_unit<T>(
        &mut self,
        unit: usize,
        ctx: &mut SimContext,
        call: impl FnOnce(&mut Unit, &mut EnginePorts) -> T,
    ) -> T {
        let mut ports = EnginePorts {
            ctx,
            number: self.number,
            bounds: &self.bounds,
            kernel: 0,
        };
        let rates = self.rates.len();
        let rate = &mut self.rates[unit % rates];
        self.units[unit].set_rate(*rate);
        let called = call(&mut self.units[unit], &mut ports);
        *rate = self.units[unit].rate();
        called
    }

    /// A scheduled event is due.
    pub(super) fn handle_event(&mut self, event: u32, ctx: &mut SimContext) {
        let number = event & ((1 << event_kind::BITS) - 1);
        if event >> event_kind::BITS != event_kind::WAKE {
            // Bursts outside the media do not belong to the engine.
            return self.burst_answered(number, false, ctx);
        }
        if number == NOTIFY {
            self.notifying = false;
            self.peers.notify_next(ctx);
            return self.schedule_notification(ctx);
        }
        if number == WRITE_WORD {
            self.writing_word = false;
            self.progress.write_next(ctx);
            return self.schedule_word(ctx);
        }
        let (unit, about) = ((number >> 1) as usize, number & 1);
        let ended = self.with_unit(unit, ctx, |unit, ports| unit.wake(about, ports));
        let Some(ended) = ended else {
            return;
        };
        ctx.trace(ctx.now, || TraceEvent::UnitEnds { unit: unit as u8 });
        let filter = own_mut(&mut ctx.filter);
        let stale = filter.table.is_stale(ended.command);
        if ended.result != 0 && ended.job.closes_log() {
            if !stale {
                filter.contexts.close(ended.job.log, ended.log_inconsistent);
            }
            filter.table.close(ended.job.log, stale);
        }
        let job = ended.job;
        ctx.record_order(|| OrderEvent::CommandEnded {
            number: ended.command,
            fine: ended.result == 0,
        });
        if ended.result == 0 && !stale {
            self.progress.command_ended(&job);
            self.schedule_word(ctx);
        }
        if ended.result == 0 && job.operation == Operation::Commit && job.bytes != 0 {
            let completed = own(&ctx.filter).contexts.completed_commit(&job);
            if let Some(done) = completed.filter(|_| !stale) {
                self.peers
                    .complete(job.log, done.sequence, done.participants);
                self.delete_if_complete(job.log, ctx);
                self.schedule_notification(ctx);
            }
        }
        self.finish_command(ended.command, ended.result, ended.value, ctx);
    }

    /// Deletes the records of a log when all devices have completed its transaction.
    fn delete_if_complete(&mut self, log: u8, ctx: &mut SimContext) {
        let Some(pending) = own(&ctx.filter).contexts.pending(log) else {
            return;
        };
        let (sequence, participants) = (pending.sequence, pending.participants);
        if self.peers.is_complete(log, sequence, participants) {
            ctx.record_order(|| OrderEvent::LogVoid {
                log,
                transaction: sequence,
            });
            let contexts = &mut own_mut(&mut ctx.filter).contexts;
            let (place, descriptor) = contexts.delete(log, sequence);
            if !ctx.memory.write_unfiltered(place, &descriptor.to_line()) {
                // The log on the media is unchanged.
                let filter = own_mut(&mut ctx.filter);
                filter.contexts.close(log, false);
                filter.table.close(log, false);
                return;
            }
            self.peers.all_complete(log, sequence);
            ctx.trace(ctx.now, || TraceEvent::LogDeleted { log });
        }
    }

    /// Peers are notified one after another.
    fn schedule_notification(&mut self, ctx: &mut SimContext) {
        let next = self
            .peers
            .next_notification(ctx.now)
            .filter(|_| !self.notifying);
        if let Some(next) = next {
            self.notifying = true;
            let about = event_kind::WAKE << event_kind::BITS | NOTIFY;
            ctx.schedule(next, Event::Engine(self.number, about));
        }
    }

    /// Progress words are written one after another.
    fn schedule_word(&mut self, ctx: &mut SimContext) {
        let next = self.progress.next_write(ctx.now);
        if let Some(next) = next.filter(|_| !self.writing_word) {
            self.writing_word = true;
            let about = event_kind::WAKE << event_kind::BITS | WRITE_WORD;
            ctx.schedule(next, Event::Engine(self.number, about));
        }
    }

    /// Writes the bits `bits` of a register dword.
    pub(super) fn write_register(&mut self, at: u64, value: u32, bits: u32, ctx: &mut SimContext) {
        if at == FORGET && value & bits & forget::FORGET.mask() as u32 != 0 {
            self.forget(ctx);
        }
        if at & !4 == PROGRESS {
            self.progress.write(at & 4 != 0, value, bits);
            self.schedule_word(ctx);
        }
        let has_failed_restore = own(&ctx.filter).has_failed_restore();
        let is_completion = (register::DONE..register::SEEN).contains(&at);
        // Notifications of peers continue from the restored state.
        if !(has_failed_restore && is_completion) {
            if let Some(log) = self.peers.write(at, value, bits) {
                self.delete_if_complete(log, ctx);
            }
        }
        self.schedule_notification(ctx);
        self.update_header(own(&ctx.filter), ctx.memory);
    }

    /// Clears the loss, and the saved state that could not be restored, for the next reset.
    fn forget(&mut self, ctx: &mut SimContext) {
        let filter = own(&ctx.filter);
        if filter.has_failed_restore() {
            self.mark_failed = !saved_state::write_header(filter, false, ctx.memory);
        } else {
            self.lost = false;
        }
    }

    /// A command has ended.
    fn finish_command(&mut self, command: u8, result: u32, value: u64, ctx: &mut SimContext) {
        let mut end = JobResult {
            result,
            ..JobResult::default()
        };
        end.outputs[0] = value;
        // Internal records answer nobody.
        if usize::from(command) < COMMANDS {
            self.page.end_line(command, &end);
        }
        own_mut(&mut ctx.filter).command_ended(command);
        self.update_header(own(&ctx.filter), ctx.memory);
        ctx.schedule(ctx.now, Event::ConflictFilter);
    }

    /// Reads a register dword; 0 if no register is there.
    pub(super) fn read_register(&mut self, at: u64, filter: &dyn ConflictFilter) -> u32 {
        let filter = of_nearpm(filter);
        let [most, stores, loads] = filter.counts();
        let busy = self.units.iter().enumerate();
        let busy = busy.fold(0, |set, (n, unit)| set | u32::from(!unit.is_idle()) << n);
        let lines = LINES..LINES + LINES_STRIDE * LINES_COUNT;
        match at {
            CONTROL if filter.table.is_empty() => control::IDLE.mask() as u32,
            TAKEN => self.accepted,
            REFUSED => self.refused,
            UNDER_WAY => filter.table.len() as u32,
            WORKING => busy,
            MOST_LINES => most,
            _ if at & !4 == PROGRESS => self.progress.read(at & 4 != 0),
            register::DEVICE..register::END => self.peers.read_latched(at),
            LOADS => loads,
            STORES => stores,
            TRACKED => filter.tracked,
            DOMAIN => {
                let set = |on: bool, field: Field| if on { field.mask() as u32 } else { 0 };
                set(self.restored, domain::RESTORED)
                    | set(
                        !filter.is_closed() && !filter.has_failed_restore(),
                        domain::OPEN,
                    )
                    | set(filter.line_error, domain::LINE_ERROR)
                    | set(filter.has_failed_restore(), domain::UNREAD)
                    | set(self.lost, domain::LOST)
                    | set(self.mark_failed, domain::UNKEPT)
            }
            _ if lines.contains(&at) && at % LINES_STRIDE == 0 => {
                filter.queued(((at - LINES) / LINES_STRIDE) as usize) as u32
            }
            _ => 0,
        }
    }

    /// A burst has ended.
    pub(super) fn burst_answered(&mut self, burst: u32, ok: bool, ctx: &mut SimContext) {
        let (unit, burst) = ((burst / NUMBERS) as usize, burst % NUMBERS);
        self.with_unit(unit, ctx, |unit, ports| {
            unit.burst_answered(burst, ok, ports)
        });
    }

    /// Saves the state at a power loss or a function reset. State that could not be restored is
    /// left unchanged. False: the save was incomplete.
    pub(super) fn save(&self, filter: &dyn ConflictFilter, memory: &mut Memories) -> bool {
        let filter = of_nearpm(filter);
        filter.has_failed_restore() || saved_state::save(&self.peers, filter, self.lost, memory)
    }

    /// The writes of [`NearPm::save`]: start address and bytes.
    pub(super) fn last_writes(&self, filter: &dyn ConflictFilter) -> (u64, Vec<u8>) {
        let filter = of_nearpm(filter);
        let writes = match filter.has_failed_restore() {
            true => Vec::new(),
            false => saved_state::image(&self.peers, filter, self.lost),
        };
        (filter.reserved, writes)
    }

    /// Restores the saved state into a new filter. No command is accepted before an edge.
    pub(super) fn restore(
        &mut self,
        config: &Config,
        reserved: u64,
        from: u64,
        memory: &mut Memories,
    ) -> Box<dyn ConflictFilter> {
        let mut filter = NearPmFilter::new(config, reserved, from);
        let found = saved_state::restore(&mut self.peers, &mut filter, memory);
        memory.storage_closed = matches!(found, RestoreOutcome::Failed { .. });
        let mut lines = 1;
        match found {
            RestoreOutcome::Failed { mark_failed } => {
                filter.fail_restore();
                self.mark_failed = mark_failed;
            }
            RestoreOutcome::Nothing { lost } => (self.lost, self.marked_live) = (lost, lost),
            RestoreOutcome::All { lines: all, lost } => {
                lines = all;
                (self.restored, self.lost, self.marked_live) = (true, lost, true);
            }
        }
        filter.close_until(from + OPEN_CYCLES + RESTORE_CYCLES * lines);
        self.update_header(&filter, memory);
        Box::new(filter)
    }
}

/// The filter of a device with this engine, which [`NearPm::restore`] has made.
fn of_nearpm(filter: &dyn ConflictFilter) -> &NearPmFilter {
    let filter = filter.as_any().downcast_ref();
    filter.expect("nearpm makes the filter of its device")
}

/// The same, from the context.
fn own<'a>(filter: &'a Option<&mut dyn ConflictFilter>) -> &'a NearPmFilter {
    of_nearpm(
        filter
            .as_deref()
            .expect("a device with nearpm has a filter"),
    )
}

/// The same, to be changed.
fn own_mut<'a>(filter: &'a mut Option<&mut dyn ConflictFilter>) -> &'a mut NearPmFilter {
    let filter = filter.as_deref_mut();
    let filter = filter
        .expect("a device with nearpm has a filter")
        .as_any_mut();
    filter
        .downcast_mut()
        .expect("nearpm makes the filter of its device")
}

/// Bytes that are saved for a device with this number of channels.
pub(super) fn last_bytes(channels: usize) -> usize {
    saved_state::image_bytes(channels)
}

/// Reports restored commands and stores to the order check.
pub(crate) fn record_restored(filter: &dyn ConflictFilter, order: &OrderWatch, time: Time) {
    let filter = of_nearpm(filter);
    for (number, entry) in filter.table.entries() {
        order.record(time, OrderEvent::CommandRestored(entry.job.ordered(number)));
    }
    for channel in 0..filter.channels() {
        for waiting in filter.lines(channel) {
            let line = OrderEvent::QueueLineRestored {
                channel: channel as u8,
                line: waiting.line,
            };
            order.record(time, line);
        }
    }
}

/// Issues all accesses that wait in the filter. Loads that may continue are appended.
pub(super) fn issue_waiting_accesses(loads: &mut Vec<u32>, ctx: &mut SimContext) {
    let now = ctx.now;
    for channel in 0..own(&ctx.filter).channels() {
        while ctx.memory.channels[channel].waiting_write_beats(master::PM) < MAX_LINES_AT_MEMORY {
            let Some(line) = own_mut(&mut ctx.filter).issue_line(channel, now) else {
                break;
            };
            ctx.record_order(|| OrderEvent::QueueLineIssued {
                channel: channel as u8,
            });
            let written = store_bytes(ctx.memory, line.addr, line.strobes, &line.data);
            let filter = own_mut(&mut ctx.filter);
            filter.line_error |= !written;
            let addr = ctx.memory.channel_address(line.addr);
            let tag = TAG_LINE | channel as u64;
            let bytes = line.data.len() as u32;
            let to = &mut ctx.memory.channels[channel];
            to.write(line.cycle, master::PM, LINE_ID, addr, bytes, tag);
            ctx.schedule_channel(channel);
        }
        let filter = own_mut(&mut ctx.filter);
        loads.extend(std::iter::from_fn(|| filter.next_free_load(channel)));
    }
    let filter = own_mut(&mut ctx.filter);
    if filter.open_if_idle(now) {
        ctx.record_order(|| OrderEvent::WindowOpened);
        ctx.schedule(now, Event::Bridge);
    } else if let Some(next) = filter.next_wake_up(now) {
        ctx.schedule(next, Event::ConflictFilter);
    }
}

/// Writes the bytes of a line that have a strobe. False: they could not be written.
fn store_bytes(memory: &mut Memories, addr: u64, strobes: u64, data: &[u8]) -> bool {
    let mut written = true;
    let mut at = 0;
    while at < data.len() {
        let run = (strobes >> at).trailing_ones() as usize;
        if run > 0 {
            let end = (at + run).min(data.len());
            let done = memory.write_unfiltered(addr + at as u64, &data[at..end]);
            memory.lost_writes += u64::from(!done);
            written &= done;
        }
        at += run.max(1);
    }
    written
}

/// A line of a channel's queue is in the memory.
pub(crate) fn line_written(channel: u32, ctx: &mut SimContext) {
    ctx.record_order(|| OrderEvent::QueueLineWritten {
        channel: channel as u8,
    });
    own_mut(&mut ctx.filter).line_written(channel as usize);
    ctx.schedule(ctx.now, Event::ConflictFilter);
}
