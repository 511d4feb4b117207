// SPDX-License-Identifier: Apache-2.0

//! The header of a pool: its first two lines.

use spec::nearpm::{ALIGN, DEVICES, THREADS};

use crate::switch_lists::SwitchLists;
use crate::units::PAGE;
use crate::{Error, Layout, Mechanism, Result};

/// Bytes in front of the logs.
pub(crate) const HEADER_BYTES: u64 = ALIGN;
/// Version of the pool format.
const VERSION: u32 = 2;
const MAGIC: [u8; 8] = *b"NPMPOOL\0";
/// Offset of a line's CRC, over all bytes before it.
const CRC_OFFSET: usize = 60;
/// The first bytes of the part on another device.
const PART_MAGIC: [u8; 8] = *b"NPMPART\0";
/// Logs of a thread on each of several devices. Its transactions alternate between them: while one
/// log waits for the other devices, the next transaction uses the other log.
pub(crate) const TURNS: u8 = 2;
/// Most bytes of a layout's name.
const MAX_NAME_BYTES: usize = 47;

/// The places of all parts of a pool. The first line has everything but the name, so growth is one
/// store; the second line has the name.
///
/// | bytes | first line | second line |
/// |---|---|---|
/// | 0 to 7 | "NPMPOOL\0" | name, padded with 0, to 46 |
/// | 8 to 11 | version | |
/// | 12, 13, 14, 15 | mechanism, threads, devices less one, 1 if it is tracked | |
/// | 16 to 23 | bytes of the pool | |
/// | 24 to 31 | offset of the logs, on each device | |
/// | 32 to 39 | bytes of each log | |
/// | 40 to 47 | offset of what programs use | 47: 0 |
/// | 48 to 55 | spare pages | 48 to 59: 0 |
/// | 56 to 59 | generation: how often this line was written | |
/// | 60 to 63 | CRC-32C of bytes 0 to 59 | the same |
///
/// Each device of several has a page in front of its logs. On devices other than the first one the
/// first line names the part of the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub layout: Layout,
    pub devices: u8,
    pub bytes: u64,
    pub generation: u32,
}

impl Header {
    /// The header of a new pool.
    pub fn new(layout: &Layout, bytes: u64, devices: u8) -> Result<Header> {
        let invalid = |text: String| Err(Error::Invalid(text));
        let name = layout.name.as_bytes();
        if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains(&0) {
            return invalid(format!(
                "a layout's name of {} bytes: allowed are 1 to {MAX_NAME_BYTES}, none of them 0",
                name.len()
            ));
        }
        let threads = match devices {
            1 => THREADS,
            _ => THREADS / TURNS,
        };
        if layout.threads == 0 || layout.threads > threads {
            return invalid(format!(
                "{} threads: allowed are 1 to {threads} with {devices} devices",
                layout.threads
            ));
        }
        if layout.tracked {
            check_tracked(layout, devices).map_err(Error::Invalid)?;
        }
        let logs = layout.log_bytes;
        if logs == 0 || logs % ALIGN != 0 || logs > 1 << 40 {
            return invalid(format!(
                "a log of {logs} bytes: allowed are multiples of {ALIGN} up to 2^40"
            ));
        }
        if layout.spare_pages > 1 << 28 {
            return invalid(format!(
                "{} spare pages: allowed are at most 2^28",
                layout.spare_pages
            ));
        }
        let multiple = ALIGN * u64::from(devices);
        if bytes % multiple != 0 || bytes > 1 << 50 {
            return invalid(format!(
                "a pool of {bytes} bytes: allowed are multiples of {multiple} up to 2^50"
            ));
        }
        let header = Header {
            layout: layout.clone(),
            devices,
            bytes,
            generation: 1,
        };
        let least = header.data() + header.spare() * PAGE + crate::heap::MIN_BYTES;
        if bytes < least {
            return invalid(format!(
                "a pool of {bytes} bytes: with these logs and pages it has at least {least}"
            ));
        }
        Ok(header)
    }

    /// Decodes the two lines.
    pub fn from_lines(first: &[u8; 64], second: &[u8; 64]) -> Result<Header> {
        let corrupt = |what: &str| Error::Corrupt(format!("the pool's header is damaged: {what}"));
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|n| first[at + n]));
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if first[..8] != MAGIC {
            let text = "there is no pool: its first bytes are not \"NPMPOOL\"";
            return Err(Error::NoPool(text.into()));
        }
        for (n, line) in [first, second].into_iter().enumerate() {
            let crc = crc32c::crc32c(&line[..CRC_OFFSET]).to_le_bytes();
            if line[CRC_OFFSET..] != crc {
                return Err(corrupt(["CRC of the first line", "CRC of the name"][n]));
            }
        }
        if word(8) != VERSION {
            let text = format!("a pool of version {}: allowed is {VERSION}", word(8));
            return Err(Error::NoPool(text));
        }
        let mechanism = Mechanism::ALL.get(usize::from(first[12]));
        let name = second[..MAX_NAME_BYTES].split(|byte| *byte == 0).next();
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        let layout = Layout {
            name: name.ok_or_else(|| corrupt("the name"))?.into(),
            mechanism: *mechanism.ok_or_else(|| corrupt("the mechanism"))?,
            threads: first[13],
            log_bytes: long(32),
            spare_pages: long(48),
            tracked: first[15] == 1,
        };
        let devices = first[14].checked_add(1).filter(|n| *n <= DEVICES);
        let devices = devices.ok_or_else(|| corrupt("the number of devices"))?;
        let header =
            Header::new(&layout, long(16), devices).map_err(|error| corrupt(&error.to_string()))?;
        let header = Header {
            generation: word(56),
            ..header
        };
        match header.to_lines() == [*first, *second] {
            true => Ok(header),
            false => Err(corrupt("places of its parts")),
        }
    }

    /// Encodes the two lines.
    pub fn to_lines(&self) -> [[u8; 64]; 2] {
        let (mut first, mut second) = ([0; 64], [0; 64]);
        let layout = &self.layout;
        first[..8].copy_from_slice(&MAGIC);
        first[8..12].copy_from_slice(&VERSION.to_le_bytes());
        first[12] = Mechanism::ALL
            .iter()
            .position(|m| *m == layout.mechanism)
            .unwrap_or(0) as u8;
        first[13] = layout.threads;
        first[14] = self.devices - 1;
        first[15] = layout.tracked.into();
        let longs = [
            self.bytes,
            self.logs(),
            layout.log_bytes,
            self.data(),
            layout.spare_pages,
        ];
        for (n, long) in longs.into_iter().enumerate() {
            first[16 + 8 * n..24 + 8 * n].copy_from_slice(&long.to_le_bytes());
        }
        first[56..60].copy_from_slice(&self.generation.to_le_bytes());
        second[..layout.name.len()].copy_from_slice(layout.name.as_bytes());
        for line in [&mut first, &mut second] {
            let crc = crc32c::crc32c(&line[..CRC_OFFSET]);
            line[CRC_OFFSET..].copy_from_slice(&crc.to_le_bytes());
        }
        [first, second]
    }

    /// The first line of a part on a device without the header. It holds "NPMPART\0", the device's
    /// index, the number of devices, the CRC of the name's line, and the CRC of this line.
    pub fn part_line(&self, index: usize) -> [u8; 64] {
        let mut line = [0; 64];
        line[..8].copy_from_slice(&PART_MAGIC);
        (line[8], line[9]) = (index as u8, self.devices);
        line[12..16].copy_from_slice(&self.to_lines()[1][CRC_OFFSET..]);
        let crc = crc32c::crc32c(&line[..CRC_OFFSET]);
        line[CRC_OFFSET..].copy_from_slice(&crc.to_le_bytes());
        line
    }

    /// Offset of the logs on each device.
    pub fn logs(&self) -> u64 {
        HEADER_BYTES
    }

    /// Logs of a thread on each device.
    pub fn turns(&self) -> u8 {
        match self.devices {
            1 => 1,
            _ => TURNS,
        }
    }

    /// Logs on each device.
    pub fn log_count(&self) -> u8 {
        self.layout.threads * self.turns()
    }

    /// Offset on each device of a log.
    pub fn log(&self, number: u8) -> u64 {
        self.logs() + u64::from(number) * self.layout.log_bytes
    }

    /// Offset on each device of a thread's staging area: new bytes before the engine makes redo
    /// records of them. It is as long as a log.
    pub fn staging(&self, thread: u8) -> u64 {
        self.log(self.log_count()) + u64::from(thread) * self.layout.log_bytes
    }

    /// Offset on each device after the engine's areas.
    fn engines_end(&self) -> u64 {
        match self.layout.mechanism {
            Mechanism::Redo => self.staging(self.layout.threads),
            _ => self.log(self.log_count()),
        }
    }

    /// Offset of the log that the CPU writes for a thread. With one device it is the engine's log.
    /// Several devices have one such log together, interleaved like all data.
    pub fn cpu_log(&self, thread: u8) -> u64 {
        match self.devices {
            1 => self.log(thread),
            count => {
                let logs = u64::from(thread) * self.layout.log_bytes;
                self.engines_end() * u64::from(count) + logs
            }
        }
    }

    /// Offset of the page table.
    pub fn table(&self) -> u64 {
        match self.devices {
            1 => self.engines_end(),
            count => self
                .cpu_log(self.layout.threads)
                .next_multiple_of(u64::from(count) * PAGE),
        }
    }

    /// Spare pages, for copies.
    pub fn spare(&self) -> u64 {
        match self.layout.has_pages() {
            // All pages that a transaction changes may be on one device.
            true => self.layout.spare_pages * u64::from(self.devices),
            false => 0,
        }
    }

    /// Offset of the program's data: with shadow paging the first page, else the heap.
    pub fn data(&self) -> u64 {
        let pages = match self.layout.has_pages() {
            true => self.table_bytes() + SwitchLists::bytes(self.spare()),
            false => 0,
        };
        self.table() + pages
    }

    /// An entry for each page after the header: more than there will be.
    fn table_bytes(&self) -> u64 {
        (self.bytes / PAGE * 8).next_multiple_of(PAGE)
    }

    /// Place of the switch lists, with shadow paging.
    pub fn switches(&self) -> SwitchLists {
        SwitchLists::new(self.table() + self.table_bytes(), self.spare())
    }

    /// Bytes of the heap, without spare pages.
    pub fn heap_bytes(&self) -> u64 {
        self.bytes - self.data() - self.spare() * PAGE
    }
}

/// An error for a tracked pool that engines do not have.
fn check_tracked(layout: &Layout, devices: u8) -> std::result::Result<(), String> {
    if layout.mechanism == Mechanism::Redo {
        return Err(
            "a tracked pool with mechanism \"redo\": allowed are undo, checkpoint, shadow".into(),
        );
    }
    if layout.threads != 1 {
        return Err(format!(
            "a tracked pool for {} threads: allowed is 1, as the engine does not know whose a \
             store is",
            layout.threads
        ));
    }
    if devices != 1 {
        return Err(format!(
            "a tracked pool over {devices} devices: allowed is 1"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_with_any_bit_flipped_is_refused() {
        let plain = |m| Layout::new("a name").with_mechanism(m);
        let cases = [1, 2, 4].map(|devices| Mechanism::ALL.map(|m| (plain(m), devices)));
        let tracked = [Mechanism::Undo, Mechanism::Checkpoint, Mechanism::Shadow];
        let tracked = tracked.map(|m| (plain(m).with_tracking(), 1));
        for (layout, devices) in cases.into_iter().flatten().chain(tracked) {
            let header = Header::new(&layout, 8 << 20, devices).unwrap();
            let [first, second] = header.to_lines();
            assert_eq!(Header::from_lines(&first, &second), Ok(header));
            for bit in 0..1024 {
                let mut lines = [first, second];
                lines[bit / 512][bit % 512 / 8] ^= 1 << (bit % 8);
                let read = Header::from_lines(&lines[0], &lines[1]);
                assert!(read.is_err(), "bit {bit}: {read:?}");
            }
        }
    }

    #[test]
    fn layout_out_of_range_is_refused() {
        let wrong = |layout: Layout, bytes: u64, what: &str| {
            let error = Header::new(&layout, bytes, 1).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        };
        let layout = Layout::new("x");
        wrong(Layout::new(""), 1 << 22, "1 to 47");
        wrong(Layout::new(&"x".repeat(48)), 1 << 22, "1 to 47");
        let threads = |threads| Layout {
            threads,
            ..layout.clone()
        };
        wrong(threads(0), 1 << 22, "1 to 16");
        wrong(threads(17), 1 << 22, "1 to 16");
        let log = |log_bytes| Layout {
            log_bytes,
            ..layout.clone()
        };
        wrong(log(0), 1 << 22, "multiples of 4096");
        wrong(log(100), 1 << 22, "multiples of 4096");
        wrong(log(u64::MAX - 4095), 1 << 22, "multiples of 4096");
        wrong(layout.clone(), 1 << 12, "at least");
        wrong(layout.clone(), (1 << 22) + 1, "multiples of 4096");
        let two = |layout: &Layout, bytes: u64| Header::new(layout, bytes, 2).unwrap_err();
        let error = two(&layout, (1 << 22) + 4096).to_string();
        assert!(error.contains("multiples of 8192"), "{error}");
        let tracked = layout.clone().with_tracking();
        wrong(
            tracked.clone().with_mechanism(Mechanism::Redo),
            1 << 22,
            "undo, checkpoint, shadow",
        );
        let error = two(&tracked, 1 << 22).to_string();
        assert!(error.contains("over 2 devices: allowed is 1"), "{error}");
        let several = Layout {
            threads: 2,
            ..tracked
        };
        wrong(several, 1 << 22, "for 2 threads: allowed is 1");
        let error = two(&threads(9), 1 << 22).to_string();
        assert!(error.contains("1 to 8 with 2 devices"), "{error}");
    }
}
