// SPDX-License-Identifier: Apache-2.0

//! The state that is saved in the reserved range at a power loss: docs/hardware/nearpm.md,
//! "Persistence domain".

use spec::nearpm::{LINE, POOLS, QUEUE_LINES, THREADS};

use super::conflict_filter::NearPmFilter;
use super::contexts::{Log, Pool, LOG_BYTES};
use super::peers::{self, Peers};
use super::table::{CommandSet, Prerequisites, CHANNELS, PLACES};
use super::unit_command::UnitCommand;
use crate::conflict_filter::ConflictFilter;
use crate::memory::Memories;

const MAGIC: [u8; 8] = *b"NPMSAVE\x01";
/// Magic number of the header while state has to survive.
const LIVE_MAGIC: [u8; 8] = *b"NPMLIVE\x01";
/// Header byte: a loss was found that the host has not read.
const LOST: usize = 16;
const BYTES: usize = LINE as usize;
/// Lines of the image: commands, pools, logs, and each channel's queue.
const FIRST_COMMAND: usize = 1;
const FIRST_POOL: usize = FIRST_COMMAND + 2 * PLACES;
const FIRST_LOG: usize = FIRST_POOL + POOLS as usize;
const FIRST_QUEUE: usize = FIRST_LOG + POOLS as usize * THREADS as usize * LOG_BYTES / BYTES;
const QUEUE: usize = QUEUE_LINES / 2 + QUEUE_LINES;
/// A set of commands has its low 64 bits at one place and the others at another one.
type SetPlace = (usize, usize);
/// Commands whose logs were closed by an error, after the first pool.
const FAILED: SetPlace = (FIRST_POOL * BYTES + 56, FIRST_POOL * BYTES + 54);
/// The commands that a command waits for, in its second line.
const COMMAND_SET: SetPlace = (8, 62);
/// The commands that a line of a queue waits for, in its entry.
const ENTRY_SET: SetPlace = (16, 24);
/// Flags in the second line of a command: it is present, and its pool has been unmapped.
const PRESENT: u8 = 1;
const STALE: u8 = 2;
/// Bytes of a queue entry.
const ENTRY: usize = 32;
const VALID: u64 = 1 << 63;

fn write_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn read_u64(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8]
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn write_set(bytes: &mut [u8], (low, high): SetPlace, set: CommandSet) {
    write_u64(bytes, low, set as u64);
    bytes[high..high + 2].copy_from_slice(&((set >> 64) as u16).to_le_bytes());
}

fn read_set(bytes: &[u8], (low, high): SetPlace) -> CommandSet {
    let upper = u16::from_le_bytes([bytes[high], bytes[high + 1]]);
    CommandSet::from(read_u64(bytes, low)) | CommandSet::from(upper) << 64
}

/// Bytes of the saved state of a device with this number of channels.
pub(super) fn image_bytes(channels: usize) -> usize {
    (FIRST_QUEUE + QUEUE * channels.min(CHANNELS) + peers::LINES) * BYTES
}

/// The result of a restore.
pub(super) enum RestoreOutcome {
    /// No state was saved. `lost`: state had to survive.
    Nothing { lost: bool },
    /// All state was restored, from `lines` lines. `lost`: an earlier save was lost.
    All { lines: u64, lost: bool },
    /// The saved state can't be restored. `mark_failed`: because it could not be marked as used.
    Failed { mark_failed: bool },
}

/// Writes the header, which says whether state has to survive. False: the write failed.
pub(super) fn write_header(filter: &NearPmFilter, is_live: bool, memory: &mut Memories) -> bool {
    let mut line = [0; BYTES];
    if is_live {
        line[..8].copy_from_slice(&LIVE_MAGIC);
    }
    memory.write_unfiltered(filter.reserved, &line)
}

/// Saves all state. False: some lines could not be written. The next restore finds this by the CRC
/// or by the older header.
pub(super) fn save(
    peers: &Peers,
    filter: &NearPmFilter,
    lost: bool,
    memory: &mut Memories,
) -> bool {
    let mut written = true;
    for (n, line) in (0..).zip(image(peers, filter, lost).chunks(BYTES)) {
        written &= memory.write_unfiltered(filter.reserved + n * LINE, line);
    }
    written
}

/// The saved image.
pub(super) fn image(peers: &Peers, filter: &NearPmFilter, lost: bool) -> Vec<u8> {
    let channels = filter.channels().min(CHANNELS);
    let first_peer = FIRST_QUEUE + QUEUE * channels;
    let lines = first_peer + peers::LINES;
    let mut image = vec![0; lines * BYTES];
    let mut failed = 0;
    // All stores that have passed are on the media, answered or not, so every command is kept.
    for (number, entry) in filter.table.entries() {
        let at = (FIRST_COMMAND + 2 * usize::from(number)) * BYTES;
        image[at..at + BYTES].copy_from_slice(&entry.job.to_line());
        entry.job.write_more(&mut image[at + BYTES..at + 2 * BYTES]);
        image[at + BYTES] = PRESENT | if entry.stale { STALE } else { 0 };
        failed |= CommandSet::from(entry.failed) << number;
        write_set(&mut image[at + BYTES..], COMMAND_SET, entry.commands);
        for channel in 0..channels {
            let before = filter.lines_before(channel, entry.before.lines[channel]);
            image[at + BYTES + 16 + channel] = before as u8;
        }
    }
    let mapped = |(_, pool): &(usize, &Pool)| **pool != Pool::default();
    for (n, pool) in filter.contexts.pools.iter().enumerate().filter(mapped) {
        let at = (FIRST_POOL + n) * BYTES;
        image[at..at + BYTES].copy_from_slice(&pool.to_line());
    }
    write_set(&mut image, FAILED, failed);
    // Most logs were never open and are zeros.
    let used = |(_, log): &(usize, &Log)| **log != Log::default();
    for (n, log) in filter.contexts.logs.iter().enumerate().filter(used) {
        let at = FIRST_LOG * BYTES + LOG_BYTES * n;
        image[at..at + LOG_BYTES].copy_from_slice(&log.to_bytes());
    }
    for channel in 0..channels {
        let first = (FIRST_QUEUE + QUEUE * channel) * BYTES;
        for (n, line) in filter.lines(channel).enumerate() {
            let at = first + ENTRY * n;
            write_u64(&mut image, at, line.line | VALID);
            write_u64(&mut image, at + 8, line.strobes);
            write_set(&mut image[at..], ENTRY_SET, line.commands);
            let at = first + (QUEUE_LINES / 2 + n) * BYTES;
            image[at..at + BYTES].copy_from_slice(&line.data);
        }
    }
    image[first_peer * BYTES..].copy_from_slice(&peers.to_lines());
    image[..8].copy_from_slice(&MAGIC);
    image[LOST] = lost.into();
    image[8..12].copy_from_slice(&(lines as u32 - 1).to_le_bytes());
    let crc = crc32c::crc32c(&image[BYTES..]);
    image[12..16].copy_from_slice(&crc.to_le_bytes());
    image
}

/// Restores the saved state, if any, and marks it as used.
pub(super) fn restore(
    peers: &mut Peers,
    filter: &mut NearPmFilter,
    memory: &mut Memories,
) -> RestoreOutcome {
    let channels = filter.channels().min(CHANNELS);
    let first_peer = FIRST_QUEUE + QUEUE * channels;
    let lines = first_peer + peers::LINES;
    let mut image = vec![0; lines * BYTES];
    let failed_restore = RestoreOutcome::Failed { mark_failed: false };
    if !memory.read_unfiltered(filter.reserved, &mut image[..BYTES]) {
        return failed_restore;
    }
    let is_clear = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    let is_live = image[..8] == LIVE_MAGIC;
    if is_clear(&image[8..BYTES]) && (is_live || is_clear(&image[..8])) {
        return RestoreOutcome::Nothing { lost: is_live };
    }
    for (n, line) in (1..).zip(image[BYTES..].chunks_mut(BYTES)) {
        if !memory.read_unfiltered(filter.reserved + n * LINE, line) {
            return failed_restore;
        }
    }
    let word = |at: usize| read_u64(&image, at) as u32;
    let whole = image[..8] == MAGIC
        && image[LOST] <= 1
        && is_clear(&image[LOST + 1..BYTES])
        && word(8) as usize == lines - 1
        && word(12) == crc32c::crc32c(&image[BYTES..]);
    if !whole {
        return failed_restore;
    }
    // State that is not marked would be restored again over newer data.
    if !write_header(filter, true, memory) {
        return RestoreOutcome::Failed { mark_failed: true };
    }
    let lost = image[LOST] == 1;
    for (n, pool) in filter.contexts.pools.iter_mut().enumerate() {
        let at = (FIRST_POOL + n) * BYTES;
        *pool = Pool::from_line(&image[at..at + BYTES]);
    }
    for (n, log) in filter.contexts.logs.iter_mut().enumerate() {
        let at = FIRST_LOG * BYTES + LOG_BYTES * n;
        *log = Log::from_bytes(&image[at..at + LOG_BYTES]);
    }
    let command = |number: usize| {
        let at = (FIRST_COMMAND + 2 * number) * BYTES;
        let second = &image[at + BYTES..at + 2 * BYTES];
        let job = UnitCommand::from_lines(&image[at..at + BYTES], second)?;
        (image[at + BYTES] & PRESENT != 0).then_some((job, at + BYTES))
    };
    let all = (0..PLACES).filter(|number| command(*number).is_some());
    let there = all.fold(0, |set: CommandSet, number| set | 1 << number);
    for number in 0..PLACES {
        if let Some((job, at)) = command(number) {
            let mut before = Prerequisites::default();
            for channel in 0..channels {
                before.lines[channel] = image[at + 16 + channel].into();
            }
            let commands = read_set(&image[at..], COMMAND_SET) & there;
            filter.table.restore(number as u8, job, commands, before, 0);
            let failed = read_set(&image, FAILED) >> number & 1 == 1;
            let stale = image[at] & STALE != 0;
            filter.table.set_flags(number as u8, failed, stale);
        }
    }
    for channel in 0..channels {
        let first = (FIRST_QUEUE + QUEUE * channel) * BYTES;
        for n in 0..QUEUE_LINES {
            let at = first + ENTRY * n;
            let line = read_u64(&image, at);
            if line & VALID == 0 {
                break;
            }
            let data = first + (QUEUE_LINES / 2 + n) * BYTES;
            let commands = read_set(&image[at..], ENTRY_SET) & there;
            let (strobes, data) = (read_u64(&image, at + 8), &image[data..data + BYTES]);
            filter.restore_line(channel, line & !VALID, strobes, commands, data);
        }
    }
    peers.restore(&image[first_peer * BYTES..]);
    RestoreOutcome::All {
        lines: lines as u64,
        lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_sets_are_saved_in_two_parts() {
        for (low, high) in [COMMAND_SET, ENTRY_SET, (56, 54)] {
            for number in 0..PLACES {
                let mut line = [0; BYTES];
                write_set(&mut line, (low, high), 1 << number);
                let at = if number < 64 { low } else { high } + number % 64 / 8;
                assert_eq!(line[at], 1 << (number % 8));
                assert_eq!(line.iter().filter(|byte| **byte != 0).count(), 1);
                assert_eq!(read_set(&line, (low, high)), 1 << number);
            }
        }
    }
}
