// SPDX-License-Identifier: Apache-2.0

//! Error Information log (NVMe 1.4, 5.14.1.1): the latest errors, newest first. It survives a reset
//! of the controller, but not a loss of power.

use std::collections::VecDeque;

use nvme::log::ERROR_ENTRY;
use spec::nvme::{io, status, Sqe, Status};

/// Entries of the log (ELPE, the number itself).
pub const ENTRIES: usize = 64;
/// Submission queue and command of an error that belongs to no command.
const NONE: u16 = 0xFFFF;

/// The command that an error belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedCommand {
    /// Its submission queue.
    pub sqid: u16,
    /// Its identifier.
    pub cid: u16,
    /// Its namespace as given.
    pub nsid: u32,
    /// Its first block, or 0.
    pub lba: u64,
}

impl FailedCommand {
    /// A command of a submission queue.
    pub fn of(sqid: u16, sqe: &Sqe) -> FailedCommand {
        let ranges = [
            io::READ,
            io::WRITE,
            io::COMPARE,
            io::WRITE_ZEROES,
            io::VERIFY,
        ];
        let has_range = sqid != 0 && ranges.contains(&sqe.opcode());
        FailedCommand {
            sqid,
            cid: sqe.cid(),
            nsid: sqe.nsid(),
            lba: if has_range { sqe.slba() } else { 0 },
        }
    }
}

/// An error that belongs to no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCause {
    /// A write to a doorbell that does not exist.
    DoorbellRegister,
    /// An impossible value in a doorbell.
    DoorbellValue,
    /// The Keep Alive Timeout has expired.
    KeepAlive,
}

impl ErrorCause {
    /// The closest status code.
    fn status(self) -> Status {
        match self {
            ErrorCause::DoorbellRegister => status::INVALID_QUEUE_IDENTIFIER.dnr(),
            ErrorCause::DoorbellValue => status::INVALID_FIELD.dnr(),
            ErrorCause::KeepAlive => status::KEEP_ALIVE_TIMER_EXPIRED.dnr(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct LogEntry {
    command: FailedCommand,
    /// Status with phase.
    status: u16,
}

/// The log.
#[derive(Clone, Debug, Default)]
pub struct ErrorLog {
    entries: VecDeque<LogEntry>,
    count: u64,
}

impl ErrorLog {
    /// Records a posted completion queue entry, unless it is a success.
    pub fn completed(&mut self, command: FailedCommand, status: Status, phase: bool) {
        if !status.is_success() {
            let status = status.0 << 1 | u16::from(phase);
            self.push(LogEntry { command, status });
        }
    }

    /// Records an error that belongs to no command.
    pub fn record(&mut self, cause: ErrorCause) {
        let command = FailedCommand {
            sqid: NONE,
            cid: NONE,
            nsid: 0,
            lba: 0,
        };
        let status = cause.status().0 << 1;
        self.push(LogEntry { command, status });
    }

    /// Errors since power-on.
    pub fn count(&self) -> u64 {
        self.count
    }

    fn push(&mut self, entry: LogEntry) {
        self.entries.push_front(entry);
        self.entries.truncate(ENTRIES);
        self.count += 1;
    }

    /// The log page. Parameter error location and command specific information are not used.
    pub fn page(&self) -> Vec<u8> {
        let bytes = ERROR_ENTRY as usize;
        let mut page = vec![0; ENTRIES * bytes];
        let counts = (0..=self.count).rev();
        for ((place, entry), count) in page.chunks_exact_mut(bytes).zip(&self.entries).zip(counts) {
            let command = entry.command;
            place[0..8].copy_from_slice(&count.to_le_bytes());
            place[8..10].copy_from_slice(&command.sqid.to_le_bytes());
            place[10..12].copy_from_slice(&command.cid.to_le_bytes());
            place[12..14].copy_from_slice(&entry.status.to_le_bytes());
            place[14..16].copy_from_slice(&NONE.to_le_bytes());
            place[16..24].copy_from_slice(&command.lba.to_le_bytes());
            place[24..28].copy_from_slice(&command.nsid.to_le_bytes());
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(cid: u16) -> FailedCommand {
        FailedCommand {
            sqid: 3,
            cid,
            nsid: 2,
            lba: 0x1_0000_0007,
        }
    }

    #[test]
    fn error_log_entry_has_its_fields_at_the_offsets_of_the_specification() {
        let mut log = ErrorLog::default();
        log.completed(command(1), status::SUCCESS, true);
        assert_eq!(log.page(), vec![0; 4096]);
        log.completed(command(0xBEEF), status::LBA_OUT_OF_RANGE.dnr(), true);
        let mut expected = vec![0; 64];
        expected[0] = 1;
        expected[8] = 3;
        expected[10..12].copy_from_slice(&[0xEF, 0xBE]);
        expected[12..14].copy_from_slice(&(1u16 << 15 | 0x80 << 1 | 1).to_le_bytes());
        expected[14..16].copy_from_slice(&[0xFF, 0xFF]);
        expected[16..24].copy_from_slice(&0x1_0000_0007u64.to_le_bytes());
        expected[24] = 2;
        assert_eq!(log.page()[..64], expected);
        assert_eq!((log.page()[64..].to_vec(), log.count()), (vec![0; 4032], 1));
    }

    #[test]
    fn error_log_names_a_block_only_for_io_commands_with_a_range() {
        let sqe = Sqe::transfer(true, 2, 0x1_0000_0007, 8).with_cid(9);
        assert_eq!(FailedCommand::of(3, &sqe), command(9));
        assert_eq!(FailedCommand::of(0, &sqe).lba, 0);
        assert_eq!(FailedCommand::of(1, &Sqe::deallocate(1, 3)).lba, 0);
        let vendor = Sqe::of_blocks(0xC0, 1, 5, 1);
        assert_eq!(FailedCommand::of(1, &vendor).lba, 0);
    }

    #[test]
    fn error_log_lists_the_latest_first_and_drops_old_entries() {
        let mut log = ErrorLog::default();
        for cid in 0..70 {
            log.completed(command(cid), status::INTERNAL_ERROR, false);
        }
        log.record(ErrorCause::DoorbellRegister);
        log.record(ErrorCause::DoorbellValue);
        log.record(ErrorCause::KeepAlive);
        let page = log.page();
        let field = |entry: usize, at: usize| {
            let at = 64 * entry + at;
            u16::from_le_bytes([page[at], page[at + 1]])
        };
        assert_eq!((field(0, 0), field(63, 0), log.count()), (73, 10, 73));
        assert_eq!((field(0, 12), field(0, 10)), (0x8000 | 0x19 << 1, 0xFFFF));
        assert_eq!(field(1, 12), 0x8000 | 0x02 << 1);
        assert_eq!((field(2, 12), field(2, 8)), (0x8000 | 0x101 << 1, 0xFFFF));
        assert_eq!((field(3, 10), field(63, 10)), (69, 9));
    }
}
