//! A command as the trace shows it.

use sim::Time;
use spec::nvme::{admin, io};

/// A moment in the life of a command, in the order in which they come (data may arrive before the last job is made).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TracePoint {
    /// The CPU stores to the doorbell that announces it. Not known of a device that is served.
    Stored,
    /// The doorbell arrives at the device. Not there for commands that were announced in memory.
    Doorbell,
    /// The read of its submission queue entry is requested.
    Fetch,
    /// The entry is here and decoded.
    Decoded,
    /// The data path takes it.
    Started,
    /// Its first piece of at most one page is handed to a mover.
    FirstJob,
    /// Its last piece is: all PRPs have been walked.
    LastJob,
    /// The first data arrives from its source, the media or the host.
    FirstData,
    /// All its data is where it belongs.
    Done,
    /// Its completion queue entry is put together.
    Posted,
    /// The entry is on its way to the host, and its slot free.
    Sent,
    /// The entry is in the host's memory.
    Landed,
    /// The interrupt that announces it is on its way.
    Message,
    /// The interrupt is at the host.
    Interrupt,
}

/// All moments, in order, and what files call them.
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

/// A command and what became of it.
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
    /// Vector of its interrupt, if it asked for one.
    pub vector: Option<u8>,
    times: [Option<Time>; TRACE_POINTS.len()],
}

impl Command {
    /// A command that is being fetched into this slot.
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

    /// When this was, if it was.
    pub fn time(&self, point: TracePoint) -> Option<Time> {
        self.times[point as usize]
    }

    pub(crate) fn set(&mut self, point: TracePoint, time: Time) {
        self.times[point as usize] = Some(time);
    }

    pub(crate) fn set_first(&mut self, point: TracePoint, time: Time) {
        self.times[point as usize].get_or_insert(time);
    }

    /// The first and the last known moment.
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

    /// What the specification calls it.
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

    /// Whether its jobs read something: zeros come from nowhere.
    pub(crate) fn has_source(&self, to_media: bool) -> bool {
        match (self.queue, self.opcode) {
            (0, _) => !to_media,
            (_, io::WRITE_ZEROES | io::DATASET_MANAGEMENT) => false,
            _ => true,
        }
    }
}
