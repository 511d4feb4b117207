//! What is kept in the reserved range while there is no power: README.md of the engine, "Persistence domain".

use spec::nearpm::{COMMANDS, LINE, POOLS, QUEUE_LINES, THREADS};

use super::contexts::{Contexts, Log, Pool, LOG_BYTES};
use super::hook::Hook;
use super::job::Job;
use super::peers::{self, Peers};
use super::table::{Before, CHANNELS};
use crate::memory::Memories;

const MAGIC: [u8; 8] = *b"NPMSAVE\x01";
/// Of the header while there is something that has to survive.
const LIVE: [u8; 8] = *b"NPMLIVE\x01";
/// In a header: a loss has been found that nobody has seen.
const LOST: usize = 16;
const BYTES: usize = LINE as usize;
/// Lines of the range: of commands, pools, logs, and of each channel's queue.
const FIRST_COMMAND: usize = 1;
const FIRST_POOL: usize = FIRST_COMMAND + 2 * COMMANDS;
const FIRST_LOG: usize = FIRST_POOL + POOLS as usize;
const FIRST_QUEUE: usize = FIRST_LOG + POOLS as usize * THREADS as usize * LOG_BYTES / BYTES;
const QUEUE: usize = QUEUE_LINES / 2 + QUEUE_LINES;
/// Commands whose logs were closed by an error, behind the first pool.
const FAILED: usize = FIRST_POOL * BYTES + 56;
/// In the second line of a command: there is one, and its pool has been unmapped since.
const THERE: u8 = 1;
const STALE: u8 = 2;
/// In an entry of the queue.
const ENTRY: usize = 32;
const VALID: u64 = 1 << 63;

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn get(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8]
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Bytes of what is saved of a device with so many channels.
pub(super) fn bytes(channels: usize) -> usize {
    (FIRST_QUEUE + QUEUE * channels.min(CHANNELS) + peers::LINES) * BYTES
}

/// What was found at the start of a life.
pub(super) enum Found {
    /// Nothing was kept. `lost`: though there was something that has to survive.
    Nothing { lost: bool },
    /// All is back, from so many lines. `lost`: a life before had lost something.
    All { lines: u64, lost: bool },
    /// What was kept can't be brought back.
    Unread,
}

/// Writes the header of a life, which says whether there is something that has to survive. False: it could not be.
pub(super) fn mark(hook: &Hook, lives: bool, memory: &mut Memories) -> bool {
    let mut line = [0; BYTES];
    if lives {
        line[..8].copy_from_slice(&LIVE);
    }
    memory.write_beside(hook.reserved, &line)
}

/// Writes all of it. False: some of it could not be.
pub(super) fn save(
    contexts: &Contexts,
    peers: &Peers,
    hook: &Hook,
    lost: bool,
    memory: &mut Memories,
) -> bool {
    let mut written = true;
    // Whether the lines could be written the CRC says, or the header that was there before.
    for (n, line) in (0..).zip(range(contexts, peers, hook, lost).chunks(BYTES)) {
        written &= memory.write_beside(hook.reserved + n * LINE, line);
    }
    written
}

/// What is saved.
pub(super) fn range(contexts: &Contexts, peers: &Peers, hook: &Hook, lost: bool) -> Vec<u8> {
    let channels = hook.channels().min(CHANNELS);
    let first_peer = FIRST_QUEUE + QUEUE * channels;
    let lines = first_peer + peers::LINES;
    let mut range = vec![0; lines * BYTES];
    let mut failed = 0;
    // All stores that have passed are on the media, whether answered or not: so every command is kept.
    for (number, entry) in hook.table.entries() {
        let at = (FIRST_COMMAND + 2 * usize::from(number)) * BYTES;
        range[at..at + BYTES].copy_from_slice(&entry.job.to_line());
        range[at + BYTES] = THERE | if entry.stale { STALE } else { 0 };
        failed |= u64::from(entry.failed) << number;
        put(&mut range, at + BYTES + 8, entry.commands);
        for channel in 0..channels {
            let before = hook.lines_before(channel, entry.before.lines[channel]);
            range[at + BYTES + 16 + channel] = before as u8;
        }
    }
    let mapped = |(_, pool): &(usize, &Pool)| **pool != Pool::default();
    for (n, pool) in contexts.pools.iter().enumerate().filter(mapped) {
        let at = (FIRST_POOL + n) * BYTES;
        range[at..at + BYTES].copy_from_slice(&pool.to_line());
    }
    put(&mut range, FAILED, failed);
    // Most logs were never open, and are zeros.
    let used = |(_, log): &(usize, &Log)| **log != Log::default();
    for (n, log) in contexts.logs.iter().enumerate().filter(used) {
        let at = FIRST_LOG * BYTES + LOG_BYTES * n;
        range[at..at + LOG_BYTES].copy_from_slice(&log.to_bytes());
    }
    for channel in 0..channels {
        let first = (FIRST_QUEUE + QUEUE * channel) * BYTES;
        for (n, line) in hook.lines(channel).enumerate() {
            let at = first + ENTRY * n;
            put(&mut range, at, line.line | VALID);
            put(&mut range, at + 8, line.strobes);
            put(&mut range, at + 16, line.commands);
            let at = first + (QUEUE_LINES / 2 + n) * BYTES;
            range[at..at + BYTES].copy_from_slice(&line.data);
        }
    }
    range[first_peer * BYTES..].copy_from_slice(&peers.to_lines());
    range[..8].copy_from_slice(&MAGIC);
    range[LOST] = lost.into();
    range[8..12].copy_from_slice(&(lines as u32 - 1).to_le_bytes());
    let crc = crc32c::crc32c(&range[BYTES..]);
    range[12..16].copy_from_slice(&crc.to_le_bytes());
    range
}

/// Brings it back, if there is any, and marks it as used.
pub(super) fn restore(
    contexts: &mut Contexts,
    peers: &mut Peers,
    hook: &mut Hook,
    memory: &mut Memories,
) -> Found {
    let channels = hook.channels().min(CHANNELS);
    let first_peer = FIRST_QUEUE + QUEUE * channels;
    let lines = first_peer + peers::LINES;
    let mut range = vec![0; lines * BYTES];
    if !memory.read_beside(hook.reserved, &mut range[..BYTES]) {
        return Found::Unread;
    }
    let is_clear = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    let lives = range[..8] == LIVE;
    if is_clear(&range[8..BYTES]) && (lives || is_clear(&range[..8])) {
        return Found::Nothing { lost: lives };
    }
    for (n, line) in (1..).zip(range[BYTES..].chunks_mut(BYTES)) {
        if !memory.read_beside(hook.reserved + n * LINE, line) {
            return Found::Unread;
        }
    }
    let word = |at: usize| get(&range, at) as u32;
    let whole = range[..8] == MAGIC
        && range[LOST] <= 1
        && is_clear(&range[LOST + 1..BYTES])
        && word(8) as usize == lines - 1
        && word(12) == crc32c::crc32c(&range[BYTES..]);
    // While it can't be marked it would be restored again, over what is newer.
    if !whole || !mark(hook, true, memory) {
        return Found::Unread;
    }
    let lost = range[LOST] == 1;
    for (n, pool) in contexts.pools.iter_mut().enumerate() {
        let at = (FIRST_POOL + n) * BYTES;
        *pool = Pool::from_line(&range[at..at + BYTES]);
    }
    for (n, log) in contexts.logs.iter_mut().enumerate() {
        let at = FIRST_LOG * BYTES + LOG_BYTES * n;
        *log = Log::from_bytes(&range[at..at + LOG_BYTES]);
    }
    let command = |number: usize| {
        let at = (FIRST_COMMAND + 2 * number) * BYTES;
        let job = Job::from_line(&range[at..at + BYTES])?;
        (range[at + BYTES] & THERE != 0).then_some((job, at + BYTES))
    };
    let all = (0..COMMANDS).filter(|number| command(*number).is_some());
    let there = all.fold(0u64, |set, number| set | 1 << number);
    for number in 0..COMMANDS {
        if let Some((job, at)) = command(number) {
            let mut before = Before::default();
            for channel in 0..channels {
                before.lines[channel] = range[at + 16 + channel].into();
            }
            let commands = get(&range, at + 8) & there;
            hook.table.put(number as u8, job, commands, before, 0);
            let failed = get(&range, FAILED) >> number & 1 == 1;
            let stale = range[at] & STALE != 0;
            hook.table.mark(number as u8, failed, stale);
        }
    }
    for channel in 0..channels {
        let first = (FIRST_QUEUE + QUEUE * channel) * BYTES;
        for n in 0..QUEUE_LINES {
            let at = first + ENTRY * n;
            let line = get(&range, at);
            if line & VALID == 0 {
                break;
            }
            let data = first + (QUEUE_LINES / 2 + n) * BYTES;
            let commands = get(&range, at + 16) & there;
            let (strobes, data) = (get(&range, at + 8), &range[data..data + BYTES]);
            hook.put_line(channel, line & !VALID, strobes, commands, data);
        }
    }
    peers.restore(&range[first_peer * BYTES..]);
    Found::All {
        lines: lines as u64,
        lost,
    }
}
