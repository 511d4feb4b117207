// SPDX-License-Identifier: Apache-2.0

//! The order in which a device with a conflict filter performs the requests of its host, for
//! checkers. It covers stores and loads of the PM window, and the commands of the engine at the
//! filter (hw/engine/nearpm, "Order").
//!
//! A cause is recorded before its effect. Without a listener no event is built. The RTL has this
//! instrumentation in checked builds only (`nearpm_recorder.sv`).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Time;

/// A range of 64-byte lines of the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRange {
    /// Number of the first line: its address / 64.
    pub first: u64,
    /// Number of the last line, not before the first.
    pub last: u64,
}

impl LineRange {
    /// The lines that a range of at least one byte touches.
    pub fn of(addr: u64, bytes: u64) -> LineRange {
        LineRange {
            first: addr / 64,
            last: (addr + bytes.max(1) - 1) / 64,
        }
    }

    /// Whether the ranges have a line in common.
    pub fn overlaps(&self, other: &LineRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// A command that an engine has accepted, translated and validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderedCommand {
    /// The line of the command page, 0 to 63.
    pub number: u8,
    /// The operation, as in `spec::nearpm::Operation`.
    pub operation: u8,
    /// 16 * pool + thread.
    pub log: u8,
    /// The number of the transaction.
    pub transaction: u64,
    /// Of a commit: a bit for each device whose log waits for the others; 0: none waits.
    pub participants: u8,
    /// The lines that the command reads.
    pub reads: Option<LineRange>,
    /// The lines that the command writes.
    pub writes: Option<LineRange>,
}

/// An event that is relevant for the order. Stores and loads are recorded per channel of the
/// memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderEvent {
    /// A store has arrived: everything that arrives from now on is younger.
    StoreArrived {
        /// The channel.
        channel: u8,
        /// The lines that the store overlaps.
        lines: LineRange,
    },
    /// The oldest store of a channel that was not issued is issued.
    StoreIssued {
        /// The channel.
        channel: u8,
        /// Identifies the store in this channel until it is persistent.
        number: u32,
        /// Issued to the conflict filter's queue; else to the memory.
        queued: bool,
    },
    /// The memory has accepted a store that was not queued: later accesses to these lines see it.
    StoreReachedMemory {
        /// The channel.
        channel: u8,
        /// The store.
        number: u32,
    },
    /// A store is in the persistence domain.
    StorePersisted {
        /// The channel.
        channel: u8,
        /// The store.
        number: u32,
    },
    /// The oldest line of a channel's queue that was not issued is issued to the memory.
    QueueLineIssued {
        /// The channel.
        channel: u8,
    },
    /// The memory has answered the oldest issued line; its queue entry is free.
    QueueLineWritten {
        /// The channel.
        channel: u8,
    },
    /// A load has arrived.
    LoadArrived {
        /// The channel.
        channel: u8,
        /// Identifies the load in this channel; of several with the same value, the oldest.
        id: u32,
        /// The lines that the load overlaps.
        lines: LineRange,
    },
    /// A load is issued to the memory.
    LoadIssued {
        /// The channel.
        channel: u8,
        /// The load.
        id: u32,
    },
    /// The host has all data of a load.
    LoadServed {
        /// The channel.
        channel: u8,
        /// The load.
        id: u32,
    },
    /// A command has been accepted.
    CommandAccepted(OrderedCommand),
    /// A command ends as soon as it is accepted: it was refused, or there was nothing to do.
    CommandSkipped {
        /// The line.
        number: u8,
    },
    /// A command starts.
    CommandStarted {
        /// The line.
        number: u8,
    },
    /// A command has ended; all of its writes are answered.
    CommandEnded {
        /// The line.
        number: u8,
        /// Without an error.
        fine: bool,
    },
    /// A peer is notified of a transaction that was completed here.
    PeerNotified {
        /// The number of the peer.
        peer: u8,
    },
    /// The records of a log are void, because all participants have completed its transaction.
    LogVoid {
        /// 16 * pool + thread.
        log: u8,
        /// The transaction.
        transaction: u64,
    },
    /// The power has failed, or the function was reset: only the content of the media is left.
    PowerLost,
    /// The power is back: a saved command is present again.
    CommandRestored(OrderedCommand),
    /// The power is back: a saved line of a queue is present again.
    QueueLineRestored {
        /// The channel.
        channel: u8,
        /// The number of the line: its address / 64.
        line: u64,
    },
    /// Everything that was restored has ended: the window is open for accesses of the host.
    WindowOpened,
}

/// Receives order events.
pub trait OrderSink: Send {
    /// `event` happened at `time`.
    fn event(&mut self, time: Time, event: OrderEvent);
}

/// A listener for order events, to be given to a device.
#[derive(Clone)]
pub struct OrderWatch(Arc<Mutex<dyn OrderSink>>);

impl OrderWatch {
    /// A listener that passes events to `sink`.
    pub fn new(sink: impl OrderSink + 'static) -> OrderWatch {
        OrderWatch(Arc::new(Mutex::new(sink)))
    }

    /// Passes an event to the sink.
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
