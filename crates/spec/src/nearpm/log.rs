// SPDX-License-Identifier: Apache-2.0

//! Logs on the media: descriptor and records. All numbers are little-endian.

use super::LINE;

/// Bytes of a descriptor.
pub const DESCRIPTOR_BYTES: u64 = LINE;
/// Bytes of a header.
pub const HEADER_BYTES: u64 = LINE;
/// Offset of the first record in a log.
pub const FIRST_RECORD: u64 = LINE;

const DESCRIPTOR_MAGIC: [u8; 8] = *b"NPMLOG\0\x01";
const HEADER_MAGIC: [u8; 4] = *b"NPMR";
/// Offset of the CRC of a line, which covers all bytes before it.
const CRC: usize = 60;

/// Bytes of a payload, padded to whole lines.
pub fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(LINE)
}

/// Offset of the record that follows one of `bytes` at `offset`.
pub fn next_record(offset: u64, bytes: u64) -> u64 {
    offset + HEADER_BYTES + padded(bytes)
}

fn word(line: &[u8; 64], at: usize) -> u32 {
    u32::from_le_bytes([line[at], line[at + 1], line[at + 2], line[at + 3]])
}

fn long(line: &[u8; 64], at: usize) -> u64 {
    u64::from(word(line, at)) | u64::from(word(line, at + 4)) << 32
}

/// Writes the CRC of a descriptor or header.
pub fn seal(line: &mut [u8; 64]) {
    let crc = crc32c::crc32c(&line[..CRC]);
    line[CRC..].copy_from_slice(&crc.to_le_bytes());
}

fn is_sealed(line: &[u8; 64]) -> bool {
    crc32c::crc32c(&line[..CRC]) == word(line, CRC)
}

/// The state of a log's transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogState {
    /// Recovery writes undo records and checkpoints back and drops redo records.
    Open,
    /// Recovery applies the redo records.
    Committed,
    /// The log's part of a transaction of several devices is complete. The records are deleted once
    /// all devices have completed it; otherwise recovery writes them back. One bit for each
    /// participating device.
    Pending(u8),
}

/// Number of records that no log has: a record could not be written.
pub const INCOMPLETE: u32 = u32::MAX;

/// The first line of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Generation of the valid records.
    pub generation: u64,
    /// State of the transaction.
    pub state: LogState,
    /// Number of records that the log must have. In the state `Open` 0 means any number; another
    /// value means that the engine failed to execute a command. [`INCOMPLETE`]: a record could not
    /// be written.
    pub records: u32,
    /// Transaction of the last operation that wrote this line.
    pub transaction: u64,
}

impl Descriptor {
    /// The line.
    pub fn to_line(&self) -> [u8; 64] {
        let (state, participants) = match self.state {
            LogState::Open => (0, 0),
            LogState::Committed => (1, 0),
            LogState::Pending(participants) => (2, participants),
        };
        let mut line = [0; 64];
        line[..8].copy_from_slice(&DESCRIPTOR_MAGIC);
        line[8..16].copy_from_slice(&self.generation.to_le_bytes());
        line[16] = state;
        line[20..24].copy_from_slice(&self.records.to_le_bytes());
        line[24..32].copy_from_slice(&self.transaction.to_le_bytes());
        line[32] = participants;
        seal(&mut line);
        line
    }

    /// The descriptor in a line; `None` if the line is no valid descriptor.
    pub fn from_line(line: &[u8; 64]) -> Option<Descriptor> {
        let state = match (word(line, 16), line[32]) {
            (0, 0) => LogState::Open,
            (1, 0) => LogState::Committed,
            (2, 1..) => LogState::Pending(line[32]),
            _ => return None,
        };
        let rest = line[33..CRC].iter().all(|byte| *byte == 0);
        (line[..8] == DESCRIPTOR_MAGIC && is_sealed(line) && rest).then(|| Descriptor {
            generation: long(line, 8),
            state,
            records: word(line, 20),
            transaction: long(line, 24),
        })
    }
}

/// The contents of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// Old bytes.
    Undo = 1,
    /// New bytes.
    Redo = 2,
    /// Old pages.
    Checkpoint = 3,
}

/// The writer of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordWriter {
    /// An engine: the record is complete before its command ends.
    Engine = 0,
    /// A CPU: its lines, and those of the records that it wrote before the same fence, may become
    /// persistent in any order.
    Cpu = 1,
    /// A CPU that wrote it when all earlier records were persistent.
    CpuOrdered = 2,
}

/// The first line of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Contents of the record.
    pub kind: RecordKind,
    /// Pool of the record.
    pub pool: u8,
    /// Thread of the pool.
    pub thread: u8,
    /// The writer.
    pub writer: RecordWriter,
    /// Generation of the log.
    pub generation: u64,
    /// Offset of the object in the pool.
    pub object: u64,
    /// Bytes of the payload.
    pub bytes: u32,
    /// Number of the record in its generation.
    pub number: u32,
    /// Offset of the previous record in the log; 0: this is the first one.
    pub previous: u64,
    /// Number of the transaction.
    pub transaction: u64,
    /// CRC-32C of the payload, including its padding.
    pub payload_crc: u32,
}

/// CRC-32C of a payload, padded with zeros to whole lines.
pub fn payload_crc(payload: &[u8]) -> u32 {
    let zeros = (padded(payload.len() as u64) - payload.len() as u64) as usize;
    crc32c::crc32c_append(crc32c::crc32c(payload), &[0; LINE as usize][..zeros])
}

impl Header {
    /// The line.
    pub fn to_line(&self) -> [u8; 64] {
        let mut line = [0; 64];
        line[..4].copy_from_slice(&HEADER_MAGIC);
        line[4..7].copy_from_slice(&[self.kind as u8, self.pool, self.thread]);
        line[7] = self.writer as u8;
        line[8..16].copy_from_slice(&self.generation.to_le_bytes());
        line[16..24].copy_from_slice(&self.object.to_le_bytes());
        line[24..28].copy_from_slice(&self.bytes.to_le_bytes());
        line[28..32].copy_from_slice(&self.number.to_le_bytes());
        line[32..40].copy_from_slice(&self.previous.to_le_bytes());
        line[40..48].copy_from_slice(&self.transaction.to_le_bytes());
        line[56..60].copy_from_slice(&self.payload_crc.to_le_bytes());
        seal(&mut line);
        line
    }

    /// The line is the header of record `number` or a later one in this log and generation, and all
    /// earlier records were persistent when it was written.
    pub fn is_later(line: &[u8; 64], pool: u8, thread: u8, generation: u64, number: u32) -> bool {
        line[..4] == HEADER_MAGIC
            && line[5..7] == [pool, thread]
            && line[7] != RecordWriter::Cpu as u8
            && long(line, 8) == generation
            && word(line, 28) >= number
            && is_sealed(line)
    }

    /// The header in a line; `None` if the line is no valid header. The payload has another CRC.
    pub fn from_line(line: &[u8; 64]) -> Option<Header> {
        let kind = match line[4] {
            1 => RecordKind::Undo,
            2 => RecordKind::Redo,
            3 => RecordKind::Checkpoint,
            _ => return None,
        };
        let writer = match line[7] {
            0 => RecordWriter::Engine,
            1 => RecordWriter::Cpu,
            2 => RecordWriter::CpuOrdered,
            _ => return None,
        };
        let rest = line[48..56].iter().all(|byte| *byte == 0);
        (line[..4] == HEADER_MAGIC && is_sealed(line) && rest).then(|| Header {
            kind,
            pool: line[5],
            thread: line[6],
            writer,
            generation: long(line, 8),
            object: long(line, 16),
            bytes: word(line, 24),
            number: word(line, 28),
            previous: long(line, 32),
            transaction: long(line, 40),
            payload_crc: word(line, 56),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearpm_log_lines_are_read_as_written_and_reject_any_flipped_bit() {
        let descriptor = Descriptor {
            generation: 7,
            state: LogState::Committed,
            records: 3,
            transaction: 9,
        };
        let pending = Descriptor {
            state: LogState::Pending(0b1010),
            ..descriptor
        };
        let header = Header {
            kind: RecordKind::Redo,
            pool: 2,
            thread: 3,
            writer: RecordWriter::CpuOrdered,
            generation: 7,
            object: 0x1234,
            bytes: 100,
            number: 1,
            previous: 64,
            transaction: 9,
            payload_crc: payload_crc(&[5; 100]),
        };
        assert_eq!(
            Descriptor::from_line(&descriptor.to_line()),
            Some(descriptor)
        );
        assert_eq!(Descriptor::from_line(&pending.to_line()), Some(pending));
        let nobody = Descriptor {
            state: LogState::Pending(0),
            ..pending
        };
        assert_eq!(Descriptor::from_line(&nobody.to_line()), None);
        assert_eq!(Header::from_line(&header.to_line()), Some(header));
        for bit in 0..512 {
            let flip = |mut line: [u8; 64]| {
                line[bit / 8] ^= 1 << (bit % 8);
                line
            };
            assert_eq!(Descriptor::from_line(&flip(descriptor.to_line())), None);
            assert_eq!(Header::from_line(&flip(header.to_line())), None);
        }
        let mut whole = [5; 128];
        whole[100..].fill(0);
        assert_eq!(payload_crc(&[5; 100]), crc32c::crc32c(&whole));
        assert_eq!(next_record(FIRST_RECORD, 65), 64 + 64 + 128);
    }
}
