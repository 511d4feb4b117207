// SPDX-License-Identifier: Apache-2.0

//! A command in the trace.

use sim::Time;
use spec::nvme::{admin, io};

/// A trace point of a command, in order of time (data may arrive before the last job is created).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TracePoint {
    /// The CPU stores to the doorbell of the command. Unknown if the device is served.
    Stored,
    /// The doorbell arrives at the device. Absent for commands announced in memory.
    Doorbell,
    /// The read of its submission queue entry is issued.
    Fetch,
    /// The entry has arrived and is decoded.
    Decoded,
    /// The data path accepts it.
    Started,
    /// Its first segment, of at most one page, is given to a mover.
    FirstJob,
    /// Its last segment is given to a mover: all PRPs have been walked.
    LastJob,
    /// The first data arrives from its source, the media or the host.
    FirstData,
    /// All its data is at its target.
    Done,
    /// Its completion queue entry is created.
    Posted,
    /// The entry is sent to the host, and its slot is free.
    Sent,
    /// The entry is in host memory.
    Landed,
    /// The interrupt of the entry is sent.
    Message,
    /// The interrupt is at the host.
    Interrupt,
}

/// All trace points in order, with their names in files.
pub const TRACE_POINTS: [(TracePoint, &str); 14] = [
    (TracePoint::Stored, "stored"),
    (TracePoint::Doorbell, "doorbell"),
    (TracePoint::Fetch, "fetch"),
    (TracePoint::Decoded, "decoded"),
    (TracePoint::Started, "started"),
    (TracePoint::FirstJob, "first_job"),
    (TracePoint::LastJob, "last_job"),
    (TracePoint::FirstData, "first_data"),
    (TracePoint::Done, "done"),
    (TracePoint::Posted, "posted"),
    (TracePoint::Sent, "sent"),
    (TracePoint::Landed, "landed"),
    (TracePoint::Message, "message"),
    (TracePoint::Interrupt, "interrupt"),
];

/// A command and its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Submission queue.
    pub queue: u16,
    /// Command identifier.
    pub cid: u16,
    /// The controller's slot.
    pub slot: u8,
    /// Opcode.
    pub opcode: u8,
    /// Namespace identifier.
    pub nsid: u32,
    /// Command dwords 10 to 12.
    pub cdw: [u32; 3],
    /// Status Field, without the phase; `None`: it has not been completed.
    pub status: Option<u16>,
    /// Vector of its interrupt, if it has one.
    pub vector: Option<u8>,
    times: [Option<Time>; TRACE_POINTS.len()],
}

impl Command {
    /// A command that is fetched into this slot.
    pub(crate) fn new(queue: u16, slot: u8) -> Command {
        Command {
            queue,
            cid: 0,
            slot,
            opcode: 0,
            nsid: 0,
            cdw: [0; 3],
            status: None,
            vector: None,
            times: [None; TRACE_POINTS.len()],
        }
    }

    /// Time of a trace point, if it was reached.
    pub fn time(&self, point: TracePoint) -> Option<Time> {
        self.times[point as usize]
    }

    pub(crate) fn set(&mut self, point: TracePoint, time: Time) {
        self.times[point as usize] = Some(time);
    }

    pub(crate) fn set_first(&mut self, point: TracePoint, time: Time) {
        self.times[point as usize].get_or_insert(time);
    }

    /// The first and the last known time.
    pub fn span(&self) -> (Time, Time) {
        let known = self.times.iter().flatten();
        let first = known.clone().min().copied().unwrap_or(Time::ZERO);
        (first, known.max().copied().unwrap_or(first))
    }

    /// First LBA and number of blocks, for commands that have them.
    pub fn blocks(&self) -> Option<(u64, u32)> {
        let has = [
            io::WRITE,
            io::READ,
            io::WRITE_UNCORRECTABLE,
            io::COMPARE,
            io::WRITE_ZEROES,
            io::VERIFY,
        ];
        (self.queue != 0 && has.contains(&self.opcode)).then(|| {
            let lba = u64::from(self.cdw[1]) << 32 | u64::from(self.cdw[0]);
            (lba, (self.cdw[2] & 0xFFFF) + 1)
        })
    }

    /// The specification's name.
    pub fn name(&self) -> &'static str {
        if self.queue == 0 {
            match self.opcode {
                admin::DELETE_IO_SQ => "Delete I/O SQ",
                admin::CREATE_IO_SQ => "Create I/O SQ",
                admin::GET_LOG_PAGE => "Get Log Page",
                admin::DELETE_IO_CQ => "Delete I/O CQ",
                admin::CREATE_IO_CQ => "Create I/O CQ",
                admin::IDENTIFY => "Identify",
                admin::ABORT => "Abort",
                admin::SET_FEATURES => "Set Features",
                admin::GET_FEATURES => "Get Features",
                admin::ASYNC_EVENT_REQUEST => "Asynchronous Event Request",
                0x0D => "Namespace Management",
                0x15 => "Namespace Attachment",
                0x7C => "Doorbell Buffer Config",
                0x80 => "Format NVM",
                _ => "unknown admin command",
            }
        } else {
            match self.opcode {
                io::FLUSH => "Flush",
                io::WRITE => "Write",
                io::READ => "Read",
                io::WRITE_UNCORRECTABLE => "Write Uncorrectable",
                io::COMPARE => "Compare",
                io::WRITE_ZEROES => "Write Zeroes",
                io::DATASET_MANAGEMENT => "Dataset Management",
                io::VERIFY => "Verify",
                _ => "unknown I/O command",
            }
        }
    }

    /// Its jobs read a source; zeros have none.
    pub(crate) fn has_source(&self, to_media: bool) -> bool {
        match (self.queue, self.opcode) {
            (0, _) => !to_media,
            (_, io::WRITE_ZEROES | io::DATASET_MANAGEMENT) => false,
            _ => true,
        }
    }
}
