// SPDX-License-Identifier: Apache-2.0

//! Progress events of commands.
//!
//! Events come from two sides: the device, and its environment (the root complex, or a server's
//! memory). A device runs ahead of its host, so the times of the two sides are not monotonic
//! together. A cause is always recorded before its effect.

use std::sync::{Arc, Mutex, PoisonError};

use crate::Time;

/// An event of a command, or of something that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// The CPU stores to a register of BAR0.
    Stored {
        /// Offset in BAR0.
        offset: u64,
        /// The value.
        value: u32,
    },
    /// Such a store arrives at the device.
    Arrived {
        /// Offset in BAR0.
        offset: u64,
        /// The value.
        value: u32,
    },
    /// The device requests a submission queue entry.
    Fetch {
        /// The command's slot.
        slot: u8,
        /// The queue.
        queue: u16,
        /// The queue's head after this entry.
        head: u16,
    },
    /// The entry has arrived and is decoded.
    Decoded {
        /// The command's slot.
        slot: u8,
        /// The queue.
        queue: u16,
        /// The command identifier.
        cid: u16,
        /// The opcode.
        opcode: u8,
        /// The namespace.
        nsid: u32,
        /// Command dwords 10 to 12.
        cdw: [u32; 3],
    },
    /// The data path accepts the command.
    Started {
        /// The command's slot.
        slot: u8,
    },
    /// A transfer segment of its data, of at most one page, is issued to a mover.
    Segment {
        /// The command's slot.
        slot: u8,
        /// The mover.
        mover: u8,
        /// The segment writes the media.
        to_media: bool,
    },
    /// A mover's read of its source is accepted.
    Read {
        /// The mover.
        mover: u8,
    },
    /// The first data of a mover's read arrives.
    Data {
        /// The mover.
        mover: u8,
    },
    /// Data of a mover's read arrives.
    Beat {
        /// The mover.
        mover: u8,
    },
    /// The data path has completed the command.
    Done {
        /// The command's slot.
        slot: u8,
    },
    /// The completion queue entry of the command is built.
    Post,
    /// The entry is sent to the host; the slot is free.
    Sent {
        /// The command's slot.
        slot: u8,
        /// The address of the entry.
        addr: u64,
        /// The entry.
        entry: [u8; 16],
        /// The vector of the interrupt that follows, if one does.
        vector: Option<u8>,
    },
    /// An MSI-X message is sent.
    Message {
        /// The vector.
        vector: u8,
        /// The address.
        addr: u64,
        /// The data.
        data: u32,
    },
    /// A write of the device reaches the host's memory, or is an interrupt.
    Landed {
        /// The first address.
        addr: u64,
        /// The length.
        len: usize,
    },
    /// A read is accepted at the device's host port.
    HostRead {
        /// The address.
        addr: u64,
    },
    /// A beat of read data is accepted at the device's host port.
    HostData,
    /// A beat of a write is accepted at the device's host port.
    HostWrite,
    /// A unit of the crash-consistency engine starts a command. The fast model reports units, the
    /// RTL model does not.
    UnitBegins {
        /// The unit.
        unit: u8,
        /// The command's line of the page.
        command: u8,
        /// The operation.
        operation: u8,
        /// Bytes that the command covers.
        bytes: u64,
    },
    /// The unit has completed its command.
    UnitEnds {
        /// The unit.
        unit: u8,
    },
    /// The engine notifies a peer that it has completed a transaction.
    PeerNotified {
        /// The peer's number.
        peer: u8,
    },
    /// The records of a log are void, because all devices have completed its transaction.
    LogDeleted {
        /// 16 * pool + thread.
        log: u8,
    },
    /// The device lost its power: all commands are gone.
    PowerOff,
}

/// Receives progress events.
pub trait TraceSink: Send {
    /// `event` happened at `time`.
    fn event(&mut self, time: Time, event: &TraceEvent);
}

/// Several sinks receive the same events.
impl TraceSink for Vec<Arc<Mutex<dyn TraceSink>>> {
    fn event(&mut self, time: Time, event: &TraceEvent) {
        for sink in self {
            let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
            sink.event(time, event);
        }
    }
}

/// A sink that all sides of a device share.
#[derive(Clone)]
pub struct Tracer {
    sink: Arc<Mutex<dyn TraceSink>>,
    ports: bool,
}

impl Tracer {
    /// Passes events to `sink`; with `ports` also those of every beat at the device's host port.
    pub fn new(sink: Arc<Mutex<dyn TraceSink>>, ports: bool) -> Tracer {
        Tracer { sink, ports }
    }

    /// Whether the events of the host port are wanted.
    pub fn wants_ports(&self) -> bool {
        self.ports
    }

    /// Passes an event to the sink.
    pub fn record(&self, time: Time, event: &TraceEvent) {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        sink.event(time, event);
    }

    /// Passes a store to BAR0 to the sink, if it is one word.
    pub fn record_store(&self, time: Time, offset: u64, data: &[u8]) {
        if let Ok(word) = <[u8; 4]>::try_from(data) {
            let value = u32::from_le_bytes(word);
            self.record(time, &TraceEvent::Stored { offset, value });
        }
    }
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tracer")
    }
}
