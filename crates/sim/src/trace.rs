//! What can be said of commands on their way, for whoever wants to know.
//!
//! Events come from two sides: from the device's engine, and from what is around it (the root
//! complex, or a server's memory). A device runs ahead of its host, so the times of the two sides
//! are mixed; but what causes something is always told first.

use std::sync::{Arc, Mutex, PoisonError};

use crate::Time;

/// Something that happened to a command, or to what belongs to it.
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
    /// The device asks for a submission queue entry.
    Fetch {
        /// The command's slot.
        slot: u8,
        /// Its queue.
        queue: u16,
        /// Its place in the queue, plus one: the queue's head after it.
        head: u16,
    },
    /// The entry is here and decoded.
    Decoded {
        /// The command's slot.
        slot: u8,
        /// Its queue.
        queue: u16,
        /// Its command identifier.
        cid: u16,
        /// Its opcode.
        opcode: u8,
        /// Its namespace.
        nsid: u32,
        /// Command dwords 10 to 12.
        cdw: [u32; 3],
    },
    /// The data path takes the command.
    Started {
        /// The command's slot.
        slot: u8,
    },
    /// A piece of its data, of at most one page, is handed to a mover.
    Segment {
        /// The command's slot.
        slot: u8,
        /// The mover.
        mover: u8,
        /// It writes the media.
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
    /// The data path is done with the command.
    Done {
        /// The command's slot.
        slot: u8,
    },
    /// The command's completion queue entry is put together.
    Post,
    /// The entry is on its way to the host; the slot comes back.
    Sent {
        /// The command's slot.
        slot: u8,
        /// Where the entry goes.
        addr: u64,
        /// The entry.
        entry: [u8; 16],
        /// The vector of the interrupt that follows, if one does.
        vector: Option<u8>,
    },
    /// An MSI-X message is on its way.
    Message {
        /// Its vector.
        vector: u8,
        /// Where it goes.
        addr: u64,
        /// Its data.
        data: u32,
    },
    /// A write of the device lands in the host's memory, or as an interrupt.
    Landed {
        /// Its first address.
        addr: u64,
        /// Its length.
        len: usize,
    },
    /// A read is accepted at the device's host port.
    HostRead {
        /// Its address.
        addr: u64,
    },
    /// A beat of read data is accepted at the device's host port.
    HostData,
    /// A beat of a write is accepted at the device's host port.
    HostWrite,
    /// A unit of the crash-consistency engine begins a command. The engine `fast` tells of units,
    /// the RTL does not.
    UnitBegins {
        /// The unit.
        unit: u8,
        /// The command's line of the page.
        command: u8,
        /// Its operation.
        operation: u8,
        /// Bytes that it is about.
        bytes: u64,
    },
    /// The unit is done with it.
    UnitEnds {
        /// The unit.
        unit: u8,
    },
    /// The engine tells a peer that it has completed a transaction.
    PeerNotified {
        /// The peer's number.
        peer: u8,
    },
    /// A log's records are void, as all devices have completed its transaction.
    LogDeleted {
        /// 16 * pool + thread.
        log: u8,
    },
    /// The device lost its power: all commands are gone.
    PowerOff,
}

/// Takes events.
pub trait TraceSink: Send {
    /// `event` happened at `time`.
    fn event(&mut self, time: Time, event: &TraceEvent);
}

/// A sink that all sides of a device share.
#[derive(Clone)]
pub struct Tracer {
    sink: Arc<Mutex<dyn TraceSink>>,
    ports: bool,
}

impl Tracer {
    /// Events go to this sink, with `ports` also those of every beat at the device's host port.
    pub fn new(sink: Arc<Mutex<dyn TraceSink>>, ports: bool) -> Tracer {
        Tracer { sink, ports }
    }

    /// Whether the events of the host port are wanted.
    pub fn wants_ports(&self) -> bool {
        self.ports
    }

    /// Tells the sink.
    pub fn record(&self, time: Time, event: &TraceEvent) {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        sink.event(time, event);
    }

    /// Tells the sink of a store to BAR0, if it is one word.
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
