//! What the parts of a device share while something happens: time, plans, the host port, the memories.

use sim::{Clock, OrderEvent, OrderWatch, TraceEvent, Tracer};

use crate::calendar::Calendar;
use crate::engines::Hook;
use crate::memory::Memories;
use crate::msix::Msix;
use crate::port::{Port, Purpose};

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
    Reads,
    /// Reads of host memory that wait for long are looked at.
    Owed,
    /// Writes to host memory may leave.
    Port,
    /// A channel has something.
    Channel(u8),
    /// Goes on with a walk.
    Walk(u16),
    /// A transfer is over.
    Moved(u16),
    /// Bursts of a channel's media may leave.
    Fill(u8),
    /// The place of a read burst of a channel is free.
    ReadOver(u8),
    /// Zeroing goes on.
    Sweep,
    /// What the memories zero by themselves has ended.
    Zeroed(u32),
    /// A line of a list of ranges has been looked at.
    Ranges,
    /// The next command may be fetched.
    Fetch,
    /// The oldest entry that was fetched goes to the decoder.
    Decode,
    /// The admin queue's command goes on.
    Admin,
    /// An Abort has looked through the slots.
    Aborted,
    /// The controller's life goes on.
    Life,
    /// Interrupts that are held back may be due.
    Coalesced,
    /// The Keep Alive Timeout may be over.
    KeepAlive,
    /// First halves of fused pairs may have waited for too long.
    Fused,
    /// A shadow doorbell is looked at.
    Shadow,
    /// What waits in the access hook is looked at.
    Hook,
    /// An engine goes on.
    Engine(u8, u32),
}

impl Event {
    /// Looks at everything of its kind that is due, and plans the next look itself: one look at a time is enough. Its place among those.
    fn look(self) -> Option<usize> {
        Some(match self {
            Event::Bridge => 0,
            Event::Reads => 1,
            Event::Port => 2,
            Event::Decode => 3,
            Event::Sweep => 4,
            Event::Life => 5,
            Event::Admin => 6,
            Event::Coalesced => 7,
            Event::Hook => 8,
            _ => return None,
        })
    }
}

/// When each kind of look is planned, the earliest one.
pub(crate) struct Looks([u64; 9]);

impl Looks {
    pub(crate) fn new() -> Looks {
        Looks([u64::MAX; 9])
    }

    /// A look is planned.
    pub(crate) fn plan(&mut self, cycle: u64, event: Event) {
        if let Some(look) = event.look() {
            self.0[look] = cycle;
        }
    }

    /// An event's time has come: true if it is not a look that an earlier one has taken the place of.
    #[inline]
    pub(crate) fn is_due(&mut self, now: u64, event: Event) -> bool {
        let Some(look) = event.look() else {
            return true;
        };
        let due = self.0[look] == now;
        if due {
            self.0[look] = u64::MAX;
        }
        due
    }
}

pub(crate) struct Cx<'a> {
    /// The present clock edge.
    pub(crate) now: u64,
    pub(crate) clock: Clock,
    pub(crate) calendar: &'a mut Calendar<Event>,
    pub(crate) port: &'a mut Port,
    pub(crate) memory: &'a mut Memories,
    pub(crate) msix: &'a mut Msix,
    pub(crate) looks: &'a mut Looks,
    /// When a look at each channel is planned.
    pub(crate) channel_looks: &'a mut [u64],
    /// The access hook, if an engine has one.
    pub(crate) hook: Option<&'a mut Hook>,
    pub(crate) tracer: Option<&'a Tracer>,
    pub(crate) order: Option<&'a OrderWatch>,
}

impl Cx<'_> {
    /// Plans something for an edge; one that has passed is the present one.
    #[inline]
    pub(crate) fn plan(&mut self, cycle: u64, event: Event) {
        let cycle = cycle.max(self.now);
        if let Some(look) = event.look() {
            let planned = &mut self.looks.0[look];
            if *planned <= cycle {
                return;
            }
            *planned = cycle;
        }
        self.calendar.plan(cycle, event);
    }

    /// Plans something some cycles from now.
    pub(crate) fn after(&mut self, cycles: u64, event: Event) {
        self.plan(self.now + cycles, event);
    }

    /// Asks for host memory some cycles from now.
    pub(crate) fn read(&mut self, cycles: u64, purpose: Purpose, addr: u64, len: u32) {
        let cycle = self.now + cycles;
        self.port.read(cycle, purpose, addr, len);
        self.reads_changed(cycle);
    }

    /// A read of host memory is due at this edge.
    pub(crate) fn reads_changed(&mut self, cycle: u64) {
        self.plan(cycle, Event::Reads);
    }

    /// Writes bytes, at most 16, to host memory in the front end's line, some cycles from now.
    pub(crate) fn post_write(&mut self, cycles: u64, addr: u64, data: &[u8]) {
        let cycle = self.now + cycles;
        self.port.post_write(cycle, addr, data);
        self.plan(cycle, Event::Port);
    }

    /// A channel has got something: look at it when it has an answer.
    pub(crate) fn channel_changed(&mut self, channel: usize) {
        let Some(next) = self.memory.channels[channel].next_event() else {
            return;
        };
        let next = next.max(self.now);
        let look = &mut self.channel_looks[channel];
        if next < *look || *look <= self.now {
            *look = next;
            self.calendar.plan(next, Event::Channel(channel as u8));
        }
    }

    /// Tells who wants to know what happens to commands, at an edge.
    #[inline]
    pub(crate) fn tell(&self, cycle: u64, event: impl FnOnce() -> TraceEvent) {
        if let Some(tracer) = self.tracer {
            tracer.record(self.clock.edge(cycle), &event());
        }
    }

    /// Tells who wants to know in what order accesses and commands are carried out.
    #[inline]
    pub(crate) fn order(&self, event: impl FnOnce() -> OrderEvent) {
        if let Some(order) = self.order {
            order.record(self.clock.edge(self.now), event());
        }
    }

    /// So many ms of the device's clock, in cycles.
    pub(crate) fn ms(&self, ms: u64) -> u64 {
        ms.saturating_mul(u64::from(self.clock.khz()))
    }
}
