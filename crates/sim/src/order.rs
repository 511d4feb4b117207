//! In what order a device with an access hook does what its host asks of it, for whoever checks
//! that: stores and loads of the PM window, and the commands of the engine at the hook
//! (hw/engine/nearpm, "Order").
//!
//! What causes something is told before it. Without a listener nothing is put together, and the
//! hardware has none of it: the RTL tells of it in checked builds alone (`nearpm_recorder.sv`).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Time;

/// LineRange of 64 bytes of the media, the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRange {
    /// The number of the first one: its address / 64.
    pub first: u64,
    /// And of the last one, which is not before it.
    pub last: u64,
}

impl LineRange {
    /// Those that a range of at least one byte touches.
    pub fn of(addr: u64, bytes: u64) -> LineRange {
        LineRange {
            first: addr / 64,
            last: (addr + bytes.max(1) - 1) / 64,
        }
    }

    /// They have a line in common.
    pub fn overlaps(&self, other: &LineRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// A command that an engine has taken: translated, and checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderedCommand {
    /// Its line of the command page, 0 to 63.
    pub number: u8,
    /// Its operation, as in `spec::nearpm::Operation`.
    pub operation: u8,
    /// 16 * pool + thread.
    pub log: u8,
    /// The number of its transaction.
    pub transaction: u64,
    /// Of a commit: a bit for each device whose log waits for the others; 0: it waits for nobody.
    pub participants: u8,
    /// What it reads.
    pub reads: Option<LineRange>,
    /// What it writes.
    pub writes: Option<LineRange>,
}

/// Something that matters for the order. Stores and loads are told by the channel of the memory
/// that they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderEvent {
    /// A store has come: what comes from now on is younger.
    StoreArrived {
        /// Its channel.
        channel: u8,
        /// What it overlaps.
        lines: LineRange,
    },
    /// The oldest store of a channel that has not done so goes on.
    StoreIssued {
        /// Its channel.
        channel: u8,
        /// Names it in this channel until it is kept.
        number: u32,
        /// Into the hook's queue; else to the memory.
        queued: bool,
    },
    /// The memory has a store that was not queued: later accesses to these lines find it.
    StoreReachedMemory {
        /// Its channel.
        channel: u8,
        /// Its name.
        number: u32,
    },
    /// A store is in the persistence domain.
    StorePersisted {
        /// Its channel.
        channel: u8,
        /// Its name.
        number: u32,
    },
    /// The oldest line of a channel's queue that has not left goes to the memory.
    QueueLineIssued {
        /// The channel.
        channel: u8,
    },
    /// The memory has answered the oldest one that has left: its place is free.
    QueueLineWritten {
        /// The channel.
        channel: u8,
    },
    /// A load has come.
    LoadArrived {
        /// Its channel.
        channel: u8,
        /// Names it in this channel; of several of one name the oldest is meant.
        id: u32,
        /// What it overlaps.
        lines: LineRange,
    },
    /// It goes to the memory.
    LoadIssued {
        /// Its channel.
        channel: u8,
        /// Its name.
        id: u32,
    },
    /// The host has all of its data.
    LoadServed {
        /// Its channel.
        channel: u8,
        /// Its name.
        id: u32,
    },
    /// A command has been taken.
    CommandAccepted(OrderedCommand),
    /// One has been taken that is over at once: it was refused, or there was nothing to do.
    CommandSkipped {
        /// Its line.
        number: u8,
    },
    /// A command begins.
    CommandStarted {
        /// Its line.
        number: u8,
    },
    /// It has ended, all of its writes answered.
    CommandEnded {
        /// Its line.
        number: u8,
        /// Without an error.
        fine: bool,
    },
    /// A peer is told what has been completed here.
    PeerNotified {
        /// Its number.
        peer: u8,
    },
    /// The records of a log are void, as all participants of its transaction have completed that.
    LogVoid {
        /// 16 * pool + thread.
        log: u8,
        /// The transaction.
        transaction: u64,
    },
    /// The power is gone, or the function is reset: the device has nothing but what the media hold.
    PowerLost,
    /// The power is back: a command that was kept is there again.
    CommandRestored(OrderedCommand),
    /// The same of a line of a queue.
    QueueLineRestored {
        /// The channel.
        channel: u8,
        /// The number of the line: its address / 64.
        line: u64,
    },
    /// All that was restored has ended: accesses of the host may come.
    WindowOpened,
}

/// Hears of these.
pub trait OrderSink: Send {
    /// `event` happened at `time`.
    fn event(&mut self, time: Time, event: OrderEvent);
}

/// A listener that a device can be given.
#[derive(Clone)]
pub struct OrderWatch(Arc<Mutex<dyn OrderSink>>);

impl OrderWatch {
    /// One that tells this sink.
    pub fn new(sink: impl OrderSink + 'static) -> OrderWatch {
        OrderWatch(Arc::new(Mutex::new(sink)))
    }

    /// Tells it.
    pub fn record(&self, time: Time, event: OrderEvent) {
        let mut sink = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sink.event(time, event);
    }
}

impl fmt::Debug for OrderWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OrderWatch")
    }
}
