// SPDX-License-Identifier: Apache-2.0

//! The context that blocks get while they handle an event: time, calendar, link port, memories.

use sim::{Clock, OrderEvent, OrderWatch, TraceEvent, Tracer};

use crate::calendar::Calendar;
use crate::conflict_filter::ConflictFilter;
use crate::host_port::{BurstOwner, HostArbiter, ReadPurpose};
use crate::memory::Memories;
use crate::msix::Msix;

/// Owners of a channel's bursts, in the upper half of their tags.
pub(crate) const TAG_READ: u64 = 0;
pub(crate) const TAG_WRITE: u64 = 1 << 32;
pub(crate) const TAG_LOAD: u64 = 2 << 32;
pub(crate) const TAG_STORE: u64 = 3 << 32;
pub(crate) const TAG_ENGINE: u64 = 4 << 32;
pub(crate) const TAG_LINE: u64 = 5 << 32;

/// An event of the device's calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The bridge handles accesses that have arrived.
    Bridge,
    /// The host port sends reads.
    HostRead,
    /// Reads of host memory are checked for their completion timeout.
    CompletionTimeout,
    /// The host port passes and sends writes.
    HostWrite,
    /// A memory channel has an event.
    Channel(u8),
    /// The PRP or SGL walk of this slot continues.
    Walk(u16),
    /// The transfer of this slot is complete.
    TransferDone(u16),
    /// The controller issues write bursts to this channel.
    MediaWrite(u8),
    /// A read burst of the controller has left this channel.
    MediaReadDone(u8),
    /// The range walk continues.
    RangeWalk,
    /// The fill with this number is complete.
    FillDone(u32),
    /// A line of a list of ranges has arrived.
    RangeListLine,
    /// The next submission queue entry may be fetched.
    Fetch,
    /// The oldest fetched entry goes to the decoder.
    Decode,
    /// The admin command in progress continues.
    Admin,
    /// An Abort has compared all slots.
    AbortScan,
    /// The controller's state machine is evaluated.
    ControllerState,
    /// The aggregation time of held interrupts may have passed.
    Coalescing,
    /// The Keep Alive Timeout may have passed.
    KeepAlive,
    /// First commands of fused pairs may have waited for too long.
    FusedTimeout,
    /// A shadow doorbell is processed.
    ShadowDoorbell,
    /// The conflict filter lets accesses pass.
    ConflictFilter,
    /// An engine has an event; the number is the engine's.
    Engine(u8, u32),
}

impl Event {
    /// Index in [`WakeUps`] of events that serve everything that is due and schedule their
    /// successor. One pending event of such a kind is enough.
    fn wake_up_index(self) -> Option<usize> {
        Some(match self {
            Event::Bridge => 0,
            Event::HostRead => 1,
            Event::HostWrite => 2,
            Event::Decode => 3,
            Event::RangeWalk => 4,
            Event::ControllerState => 5,
            Event::Admin => 6,
            Event::Coalescing => 7,
            Event::ConflictFilter => 8,
            _ => return None,
        })
    }
}

/// The earliest scheduled cycle of each kind of wake-up.
pub(crate) struct WakeUps([u64; 9]);

impl WakeUps {
    pub(crate) fn new() -> WakeUps {
        WakeUps([u64::MAX; 9])
    }

    /// Records the cycle of a wake-up that was put into the calendar directly.
    pub(crate) fn set(&mut self, cycle: u64, event: Event) {
        if let Some(wake_up) = event.wake_up_index() {
            self.0[wake_up] = cycle;
        }
    }

    /// Whether an event that has come up is to be handled. A wake-up that an earlier one has
    /// superseded is not.
    #[inline]
    pub(crate) fn is_due(&mut self, now: u64, event: Event) -> bool {
        let Some(wake_up) = event.wake_up_index() else {
            return true;
        };
        let due = self.0[wake_up] == now;
        if due {
            self.0[wake_up] = u64::MAX;
        }
        due
    }
}

pub(crate) struct SimContext<'a> {
    /// The present clock edge.
    pub(crate) now: u64,
    pub(crate) clock: Clock,
    pub(crate) calendar: &'a mut Calendar<Event>,
    pub(crate) port: &'a mut HostArbiter,
    pub(crate) memory: &'a mut Memories,
    pub(crate) msix: &'a mut Msix,
    pub(crate) wake_ups: &'a mut WakeUps,
    /// The scheduled wake-up of each channel.
    pub(crate) channel_wake_ups: &'a mut [u64],
    /// The conflict filter, if an engine has one.
    pub(crate) filter: Option<&'a mut dyn ConflictFilter>,
    pub(crate) tracer: Option<&'a Tracer>,
    pub(crate) order: Option<&'a OrderWatch>,
}

impl SimContext<'_> {
    /// Schedules an event for an edge. A past edge becomes the present one.
    #[inline]
    pub(crate) fn schedule(&mut self, cycle: u64, event: Event) {
        let cycle = cycle.max(self.now);
        if let Some(wake_up) = event.wake_up_index() {
            let planned = &mut self.wake_ups.0[wake_up];
            if *planned <= cycle {
                return;
            }
            *planned = cycle;
        }
        self.calendar.schedule(cycle, event);
    }

    /// Schedules an event some cycles from now.
    pub(crate) fn schedule_after(&mut self, cycles: u64, event: Event) {
        self.schedule(self.now + cycles, event);
    }

    /// Requests a read of host memory some cycles from now.
    pub(crate) fn read_host(&mut self, cycles: u64, purpose: ReadPurpose, addr: u64, len: u32) {
        let cycle = self.now + cycles;
        self.port.link.request_read(cycle, purpose, addr, len);
        self.schedule_host_reads(cycle);
    }

    /// Schedules the host port for a read that is due at this edge.
    pub(crate) fn schedule_host_reads(&mut self, cycle: u64) {
        self.schedule(cycle, Event::HostRead);
    }

    /// Posts at most 16 bytes to host memory from an edge on, in the order of the front end's
    /// writes. `owner` is notified once the link has accepted them.
    pub(crate) fn post_write(
        &mut self,
        cycle: u64,
        addr: u64,
        data: &[u8],
        owner: Option<BurstOwner>,
    ) {
        self.port.post_write(cycle, addr, data, owner);
        self.schedule(cycle, Event::HostWrite);
    }

    /// Schedules the next event of a channel after its state has changed.
    pub(crate) fn schedule_channel(&mut self, channel: usize) {
        let Some(next) = self.memory.channels[channel].next_event() else {
            return;
        };
        let next = next.max(self.now);
        let wake_up = &mut self.channel_wake_ups[channel];
        if next < *wake_up || *wake_up <= self.now {
            *wake_up = next;
            self.calendar.schedule(next, Event::Channel(channel as u8));
        }
    }

    /// Reports a trace event of an edge to the tracer, if there is one.
    #[inline]
    pub(crate) fn trace(&self, cycle: u64, event: impl FnOnce() -> TraceEvent) {
        if let Some(tracer) = self.tracer {
            tracer.record(self.clock.edge(cycle), &event());
        }
    }

    /// Reports an event of the order of accesses and commands, if it is recorded.
    #[inline]
    pub(crate) fn record_order(&self, event: impl FnOnce() -> OrderEvent) {
        if let Some(order) = self.order {
            order.record(self.clock.edge(self.now), event());
        }
    }

    /// Milliseconds in cycles of the device's clock.
    pub(crate) fn cycles_of_ms(&self, ms: u64) -> u64 {
        ms.saturating_mul(u64::from(self.clock.khz()))
    }
}
