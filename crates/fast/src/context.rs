//! What the parts of a device share while something happens: time, plans, the host port, the memories.

use sim::{Clock, OrderEvent, OrderWatch, TraceEvent, Tracer};

use crate::calendar::Calendar;
use crate::engines::ConflictFilter;
use crate::memory::Memories;
use crate::msix::Msix;
use crate::port::{LinkPort, ReadPurpose};

/// Tags of a channel's bursts: whose they are.
pub(crate) const TAG_READ: u64 = 0;
pub(crate) const TAG_WRITE: u64 = 1 << 32;
pub(crate) const TAG_LOAD: u64 = 2 << 32;
pub(crate) const TAG_STORE: u64 = 3 << 32;
pub(crate) const TAG_ENGINE: u64 = 4 << 32;
pub(crate) const TAG_LINE: u64 = 5 << 32;

/// What is going to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The bridge looks at what has arrived.
    Bridge,
    /// Reads of host memory may leave.
    HostRead,
    /// Reads of host memory that wait for long are looked at.
    CompletionTimeout,
    /// Writes to host memory may leave.
    HostWrite,
    /// A channel has something.
    Channel(u8),
    /// Goes on with a walk.
    Walk(u16),
    /// A transfer is over.
    TransferDone(u16),
    /// Bursts of a channel's media may leave.
    MediaWrite(u8),
    /// The place of a read burst of a channel is free.
    MediaReadDone(u8),
    /// Zeroing goes on.
    RangeWalk,
    /// What the memories zero by themselves has ended.
    FillDone(u32),
    /// A line of a list of ranges has been looked at.
    RangeListLine,
    /// The next command may be fetched.
    Fetch,
    /// The oldest entry that was fetched goes to the decoder.
    Decode,
    /// The admin queue's command goes on.
    Admin,
    /// An Abort has looked through the slots.
    AbortScan,
    /// The controller's life goes on.
    ControllerState,
    /// Interrupts that are held back may be due.
    Coalescing,
    /// The Keep Alive Timeout may be over.
    KeepAlive,
    /// First halves of fused pairs may have waited for too long.
    FusedTimeout,
    /// A shadow doorbell is looked at.
    ShadowDoorbell,
    /// What waits in the access hook is looked at.
    ConflictFilter,
    /// An engine goes on.
    Engine(u8, u32),
}

impl Event {
    /// WakeUps at everything of its kind that is due, and plans the next wake_up itself: one wake_up at a time is enough. Its place among those.
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

/// When each kind of wake_up is planned, the earliest one.
pub(crate) struct WakeUps([u64; 9]);

impl WakeUps {
    pub(crate) fn new() -> WakeUps {
        WakeUps([u64::MAX; 9])
    }

    /// A wake_up is planned.
    pub(crate) fn set(&mut self, cycle: u64, event: Event) {
        if let Some(wake_up) = event.wake_up_index() {
            self.0[wake_up] = cycle;
        }
    }

    /// An event's time has come: true if it is not a wake_up that an earlier one has taken the place of.
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
    pub(crate) port: &'a mut LinkPort,
    pub(crate) memory: &'a mut Memories,
    pub(crate) msix: &'a mut Msix,
    pub(crate) wake_ups: &'a mut WakeUps,
    /// When a wake_up at each channel is planned.
    pub(crate) channel_wake_ups: &'a mut [u64],
    /// The access hook, if an engine has one.
    pub(crate) filter: Option<&'a mut ConflictFilter>,
    pub(crate) tracer: Option<&'a Tracer>,
    pub(crate) order: Option<&'a OrderWatch>,
}

impl SimContext<'_> {
    /// Plans something for an edge; one that has passed is the present one.
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

    /// Plans something some cycles from now.
    pub(crate) fn schedule_after(&mut self, cycles: u64, event: Event) {
        self.schedule(self.now + cycles, event);
    }

    /// Asks for host memory some cycles from now.
    pub(crate) fn read_host(&mut self, cycles: u64, purpose: ReadPurpose, addr: u64, len: u32) {
        let cycle = self.now + cycles;
        self.port.request_read(cycle, purpose, addr, len);
        self.schedule_host_reads(cycle);
    }

    /// A read of host memory is due at this edge.
    pub(crate) fn schedule_host_reads(&mut self, cycle: u64) {
        self.schedule(cycle, Event::HostRead);
    }

    /// Writes bytes, at most 16, to host memory in the front end's line, some cycles from now.
    pub(crate) fn post_write(&mut self, cycles: u64, addr: u64, data: &[u8]) {
        let cycle = self.now + cycles;
        self.port.post_write(cycle, addr, data);
        self.schedule(cycle, Event::HostWrite);
    }

    /// A channel has got something: wake_up at it when it has an answer.
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

    /// Tells who wants to know what happens to commands, at an edge.
    #[inline]
    pub(crate) fn trace(&self, cycle: u64, event: impl FnOnce() -> TraceEvent) {
        if let Some(tracer) = self.tracer {
            tracer.tell(self.clock.edge(cycle), &event());
        }
    }

    /// Tells who wants to know in what order accesses and commands are carried out.
    #[inline]
    pub(crate) fn record_order(&self, event: impl FnOnce() -> OrderEvent) {
        if let Some(order) = self.order {
            order.tell(self.clock.edge(self.now), event());
        }
    }

    /// So many ms of the device's clock, in cycles.
    pub(crate) fn cycles_of_ms(&self, ms: u64) -> u64 {
        ms.saturating_mul(u64::from(self.clock.khz()))
    }
}
