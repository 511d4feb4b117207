// SPDX-License-Identifier: Apache-2.0

//! The logs on the media, and their recovery after a power loss.

use std::ops::Range;

use sim::Time;
use spec::nearpm::{
    next_record, padded, Descriptor, Header, LogState, RecordKind, RecordWriter, FIRST_RECORD,
    INCOMPLETE, LINE, MAX_BYTES, SEQUENCE_BITS,
};

use crate::memory::Memory;
use crate::{Error, Result};

/// Generations and transaction numbers are below this limit, so that they can rise throughout a
/// pool's use.
const GENERATION_LIMIT: u64 = 1 << 62;
/// The limit of transaction numbers of several devices, which have fewer bits.
pub(crate) const SEQUENCE_LIMIT: u64 = 1 << (SEQUENCE_BITS - 1);
/// The generation of a log that was never opened. The first opening uses the next one, so no record
/// has this one.
pub(crate) const NEVER_OPENED: u64 = 1;
/// Pause of a CPU between two polls of a log that waits for other devices.
const POLL_INTERVAL: Time = Time::ns(100);
/// The longest wait for engines.
pub(crate) const PEER_TIMEOUT: Time = Time::ms(100);

/// True if the log waits for other devices.
pub(crate) fn is_pending(descriptor: &Option<Descriptor>) -> bool {
    descriptor.is_some_and(|descriptor| matches!(descriptor.state, LogState::Pending(_)))
}

/// Waits until a log no longer waits for other devices.
pub(crate) fn wait_until_empty(m: &mut Memory, place: u64, thread: u8) -> Result<()> {
    let limit = m.cpu.now() + PEER_TIMEOUT;
    while is_pending(&Some(read_descriptor(m, place, thread)?)) {
        if m.cpu.now() > limit {
            let text = format!(
                "log {thread}: other devices have not completed its transaction within \
                 {PEER_TIMEOUT}"
            );
            return Err(Error::Invalid(text));
        }
        m.cpu.sleep_until(m.cpu.now() + POLL_INTERVAL)?;
    }
    Ok(())
}

/// The descriptor of a log.
pub(crate) fn read_descriptor(m: &Memory, place: u64, thread: u8) -> Result<Descriptor> {
    let descriptor = Descriptor::from_line(&m.read_line_direct(place)?)
        .ok_or_else(|| corrupt(thread, "its first line is no descriptor"))?;
    match descriptor.generation.max(descriptor.transaction) < GENERATION_LIMIT {
        true => Ok(descriptor),
        false => Err(corrupt(
            thread,
            "its generation or transaction is out of range",
        )),
    }
}

/// A record of a log.
struct FoundRecord {
    header: Header,
    payload: Vec<u8>,
}

fn corrupt(thread: u8, what: &str) -> Error {
    Error::Corrupt(format!("the log of thread {thread} is damaged: {what}"))
}

/// Reads the record at an offset of a log, if it is the next one. A record of a CPU with a wrong
/// payload is none, since its lines may become persistent in any order. Such a record of an engine
/// is damage.
fn read_record(
    m: &Memory,
    place: u64,
    bytes: u64,
    at: u64,
    expected: &Header,
) -> Result<Option<FoundRecord>> {
    if at + LINE > bytes {
        return Ok(None);
    }
    let Some(header) = Header::from_line(&m.read_line_direct(place + at)?) else {
        return Ok(None);
    };
    let follows = header.generation == expected.generation
        && header.number == expected.number
        && header.previous == expected.previous
        && header.thread == expected.thread
        && u64::from(header.bytes) <= MAX_BYTES
        && next_record(at, header.bytes.into()) <= bytes;
    if !follows {
        return Ok(None);
    }
    let mut payload = vec![0; padded(header.bytes.into()) as usize];
    m.read_direct(place + at + LINE, &mut payload)?;
    let whole = crc32c::crc32c(&payload) == header.payload_crc;
    if !whole && header.writer == RecordWriter::Engine {
        let what = format!("the payload of record {} is not whole", header.number);
        return Err(corrupt(header.thread, &what));
    }
    payload.truncate(header.bytes as usize);
    Ok(whole.then_some(FoundRecord { header, payload }))
}

/// Bytes in which records can follow a missing one: those of all commands under way.
const GAP_SEARCH_BYTES: u64 = 64 * MAX_BYTES;
/// Bytes that are searched at a time.
const GAP_SEARCH_CHUNK: u64 = 4096;

/// An error if a later record exists that implies that the expected one was persistent. The
/// expected record is missing then, and its bytes may have been changed.
fn check_no_gap(m: &Memory, place: u64, bytes: u64, from: u64, expected: &Header) -> Result<()> {
    let end = bytes.min(from.saturating_add(GAP_SEARCH_BYTES));
    let mut at = from;
    while at < end {
        let mut chunk = vec![0; GAP_SEARCH_CHUNK.min(end - at) as usize];
        m.read_media(place + at, &mut chunk)?;
        for line in chunk.chunks_exact(LINE as usize) {
            let header = line.try_into().ok().and_then(Header::from_line);
            let is_later = |header: &Header| {
                let first = match header.writer {
                    RecordWriter::Engine => expected.number,
                    RecordWriter::CpuOrdered => expected.number + 1,
                    RecordWriter::Cpu => return false,
                };
                header.thread == expected.thread
                    && header.generation == expected.generation
                    && header.number >= first
            };
            if let Some(header) = header.filter(is_later) {
                let (missing, there) = (expected.number, header.number);
                let what = format!("record {missing} is missing, and record {there} is there");
                return Err(corrupt(expected.thread, &what));
            }
        }
        at += GAP_SEARCH_CHUNK;
    }
    Ok(())
}

/// True if a log needs no recovery.
pub(crate) fn is_empty(m: &Memory, place: u64, bytes: u64, thread: u8) -> Result<bool> {
    let descriptor = read_descriptor(m, place, thread)?;
    Ok(descriptor.state == LogState::Open
        && descriptor.records == 0
        && scan_records(m, place, bytes, thread, &descriptor, Some(1))?.is_empty())
}

/// An error if a log has records of a pool with another number. The engine takes such a log for an
/// empty one. `hint` follows the advice of the error.
pub(crate) fn check_pool_number(
    m: &Memory,
    place: u64,
    bytes: u64,
    thread: u8,
    pool: u8,
    hint: &str,
) -> Result<()> {
    let descriptor = read_descriptor(m, place, thread)?;
    let records = scan_records(m, place, bytes, thread, &descriptor, Some(1))?;
    match records.first().map(|record| record.header.pool) {
        Some(found) if found != pool => Err(Error::Invalid(format!(
            "the log of thread {thread} holds a transaction of pool number {found}: open the pool \
             with that number, not {pool}{hint}"
        ))),
        _ => Ok(()),
    }
}

/// The valid records of a log, the oldest first: up to `most`, and none after a missing one.
fn scan_records(
    m: &Memory,
    place: u64,
    bytes: u64,
    thread: u8,
    descriptor: &Descriptor,
    most: Option<usize>,
) -> Result<Vec<FoundRecord>> {
    let mut expected = Header {
        kind: RecordKind::Undo,
        pool: 0,
        thread,
        writer: RecordWriter::Engine,
        generation: descriptor.generation,
        object: 0,
        bytes: 0,
        number: 0,
        previous: 0,
        transaction: 0,
        payload_crc: 0,
    };
    let mut at = FIRST_RECORD;
    let mut all = Vec::new();
    while most.is_none_or(|most| all.len() < most) {
        let Some(found) = read_record(m, place, bytes, at, &expected)? else {
            if most.is_none() && descriptor.generation != NEVER_OPENED {
                check_no_gap(m, place, bytes, at, &expected)?;
            }
            break;
        };
        expected.previous = at;
        expected.number += 1;
        at = next_record(at, found.header.bytes.into());
        all.push(found);
    }
    Ok(all)
}

/// How recovery treats a log that waits for other devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PendingAction {
    /// As its descriptor says.
    FollowDescriptor,
    /// Writes old bytes back: not all devices have completed the transaction.
    WriteBack,
    /// Discards the records: all devices have completed it.
    Discard,
}

/// Completes or undoes a log's transaction; returns the log's new generation. Nothing else uses the
/// pool. The number of the pool in its records does not count, as it is that of an engine.
pub(crate) fn recover(
    m: &mut Memory,
    place: u64,
    bytes: u64,
    thread: u8,
    objects: Range<u64>,
    action: PendingAction,
) -> Result<u64> {
    let descriptor = read_descriptor(m, place, thread)?;
    let forward = descriptor.state == LogState::Committed;
    let records = descriptor.records as usize;
    let most = match (descriptor.state, action) {
        (LogState::Open, _) if descriptor.records == INCOMPLETE => {
            let what = "the device could not make a record, and its bytes may have changed";
            return Err(corrupt(thread, what));
        }
        (LogState::Open, _) => Some(records).filter(|records| *records != 0),
        (LogState::Committed, _) | (LogState::Pending(_), PendingAction::WriteBack) => {
            Some(records)
        }
        (LogState::Pending(_), PendingAction::Discard) => Some(0),
        (LogState::Pending(_), PendingAction::FollowDescriptor) => {
            let what = "it waits for other devices, and the pool has one";
            return Err(corrupt(thread, what));
        }
    };
    let mut all = scan_records(m, place, bytes, thread, &descriptor, most)?;
    if let Some(most) = most.filter(|most| all.len() < *most) {
        let what = format!("it had {most} records, {} are whole", all.len());
        return Err(corrupt(thread, &what));
    }
    if forward {
        all.retain(|found| found.header.kind == RecordKind::Redo);
    } else {
        all.retain(|found| found.header.kind != RecordKind::Redo);
        all.reverse();
    }
    for FoundRecord { header, payload } in &all {
        let end = header.object.checked_add(header.bytes.into());
        if header.object < objects.start || end.is_none_or(|end| end > objects.end) {
            let what = format!("a record of {} bytes at {:#x}", header.bytes, header.object);
            return Err(corrupt(thread, &what));
        }
        m.write(header.object, payload)?;
        m.flush(header.object..header.object + u64::from(header.bytes))?;
    }
    m.fence()?;
    let next = Descriptor {
        generation: descriptor.generation + 1,
        state: LogState::Open,
        records: 0,
        transaction: descriptor.transaction,
    };
    m.write_line(place, &next.to_line())?;
    m.fence()?;
    Ok(next.generation)
}

/// The records of a log without a commit: how many are valid, and their transaction.
pub(crate) fn find_uncommitted(
    m: &Memory,
    place: u64,
    bytes: u64,
    thread: u8,
    descriptor: &Descriptor,
) -> Result<Option<(u32, u64)>> {
    let all = scan_records(m, place, bytes, thread, descriptor, None)?;
    let transaction = all.first().map(|found| found.header.transaction);
    Ok(transaction.map(|transaction| (all.len() as u32, transaction)))
}
