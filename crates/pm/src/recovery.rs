//! What stands in a thread's log on the media, and what becomes of it after a loss of power.

use std::ops::Range;

use sim::Time;
use spec::nearpm::{
    next_record, padded, Descriptor, Header, Kind, State, FIRST_RECORD, LINE, MAX_BYTES,
    SEQUENCE_BITS,
};

use crate::memory::Memory;
use crate::{Error, Result};

/// Generations and transactions are below this, so that they can rise for as long as a pool is in use.
const LAST: u64 = 1 << 62;
/// And transactions of several devices, which have fewer bits, below this one.
pub(crate) const LAST_SEQUENCE: u64 = 1 << (SEQUENCE_BITS - 1);
/// How long a CPU pauses between two looks at a log that waits for other devices.
const PAUSE: Time = Time::ns(100);
/// And the longest that it waits for engines.
pub(crate) const PATIENCE: Time = Time::ms(100);

/// It waits for other devices.
pub(crate) fn is_pending(descriptor: &Option<Descriptor>) -> bool {
    descriptor.is_some_and(|descriptor| matches!(descriptor.state, State::Pending(_)))
}

/// Waits until a log does not wait for other devices.
pub(crate) fn until_empty(m: &mut Memory, place: u64, thread: u8) -> Result<()> {
    let limit = m.cpu.now() + PATIENCE;
    while is_pending(&Some(descriptor(m, place, thread)?)) {
        if m.cpu.now() > limit {
            let text = format!(
                "log {thread}: other devices have not completed its transaction within {PATIENCE}"
            );
            return Err(Error::Invalid(text));
        }
        m.cpu.sleep_until(m.cpu.now() + PAUSE)?;
    }
    Ok(())
}

/// The descriptor of a log.
pub(crate) fn descriptor(m: &Memory, place: u64, thread: u8) -> Result<Descriptor> {
    let corrupt =
        |what: &str| Error::Corrupt(format!("the log of thread {thread} is damaged: {what}"));
    let descriptor = Descriptor::from_line(&m.line_direct(place)?)
        .ok_or_else(|| corrupt("its first line is no descriptor"))?;
    match descriptor.generation.max(descriptor.transaction) < LAST {
        true => Ok(descriptor),
        false => Err(corrupt(
            "its generation or transaction is one that no pool comes to",
        )),
    }
}

/// A record that was found.
struct Found {
    header: Header,
    payload: Vec<u8>,
}

/// The record at an offset of a log, if it is the one that follows.
fn record(m: &Memory, place: u64, bytes: u64, at: u64, expected: &Header) -> Result<Option<Found>> {
    if at + LINE > bytes {
        return Ok(None);
    }
    let Some(header) = Header::from_line(&m.line_direct(place + at)?) else {
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
    payload.truncate(header.bytes as usize);
    Ok(whole.then_some(Found { header, payload }))
}

/// Whether a log has anything to be recovered.
pub(crate) fn is_empty(m: &Memory, place: u64, bytes: u64, thread: u8) -> Result<bool> {
    let descriptor = descriptor(m, place, thread)?;
    Ok(
        descriptor.state == State::Open
            && scan(m, place, bytes, thread, &descriptor, 1)?.is_empty(),
    )
}

/// The valid records of a log, from the oldest on, at most so many.
fn scan(
    m: &Memory,
    place: u64,
    bytes: u64,
    thread: u8,
    descriptor: &Descriptor,
    most: usize,
) -> Result<Vec<Found>> {
    let mut expected = Header {
        kind: Kind::Undo,
        pool: 0,
        thread,
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
    while all.len() < most {
        let Some(found) = record(m, place, bytes, at, &expected)? else {
            break;
        };
        expected.previous = at;
        expected.number += 1;
        at = next_record(at, found.header.bytes.into());
        all.push(found);
    }
    Ok(all)
}

/// What is to become of a log's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// What its descriptor says.
    Own,
    /// Old bytes are written back though the log is pending: not all devices are complete.
    Back,
    /// Nothing, though it is pending: they are.
    Void,
}

/// Brings a log to the end of its transaction, or to its start; returns its generation from then on. Nothing else uses the pool.
pub(crate) fn recover(
    m: &mut Memory,
    place: u64,
    bytes: u64,
    thread: u8,
    objects: Range<u64>,
    verdict: Verdict,
) -> Result<u64> {
    let descriptor = descriptor(m, place, thread)?;
    let corrupt =
        |text: String| Error::Corrupt(format!("the log of thread {thread} is damaged: {text}"));
    let forward = descriptor.state == State::Committed;
    let most = match (descriptor.state, verdict) {
        (State::Open, _) => usize::MAX,
        (State::Committed, _) => descriptor.records as usize,
        (State::Pending(_), Verdict::Back) => descriptor.records as usize,
        (State::Pending(_), Verdict::Void) => 0,
        (State::Pending(_), Verdict::Own) => {
            return Err(corrupt(
                "it waits for other devices, and the pool has one".into(),
            ));
        }
    };
    let mut all = scan(m, place, bytes, thread, &descriptor, most)?;
    if descriptor.state != State::Open && all.len() < most {
        let text = format!("{most} records were committed, {} are whole", all.len());
        return Err(corrupt(text));
    }
    if forward {
        all.retain(|found| found.header.kind == Kind::Redo);
    } else {
        all.retain(|found| found.header.kind != Kind::Redo);
        all.reverse();
    }
    for Found { header, payload } in &all {
        let end = header.object.checked_add(header.bytes.into());
        if header.object < objects.start || end.is_none_or(|end| end > objects.end) {
            let text = format!("a record of {} bytes at {:#x}", header.bytes, header.object);
            return Err(corrupt(text));
        }
        m.write(header.object, payload)?;
        m.flush(header.object..header.object + u64::from(header.bytes))?;
    }
    m.fence()?;
    let next = Descriptor {
        generation: descriptor.generation + 1,
        state: State::Open,
        records: 0,
        transaction: descriptor.transaction,
    };
    m.put_line(place, &next.to_line())?;
    m.fence()?;
    Ok(next.generation)
}

/// Records of a log that no commit has reached: how many are whole, and their transaction.
pub(crate) fn uncommitted(
    m: &Memory,
    place: u64,
    bytes: u64,
    thread: u8,
    descriptor: &Descriptor,
) -> Result<Option<(u32, u64)>> {
    let all = scan(m, place, bytes, thread, descriptor, usize::MAX)?;
    let transaction = all.first().map(|found| found.header.transaction);
    Ok(transaction.map(|transaction| (all.len() as u32, transaction)))
}
