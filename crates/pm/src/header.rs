//! The first lines of a pool: what it is.

use spec::nearpm::{ALIGN, THREADS};

use crate::switches::Switches;
use crate::{Error, Layout, Mechanism, Result};

/// Bytes before the logs.
pub(crate) const HEADER_BYTES: u64 = ALIGN;
/// Bytes of a page of the paged mechanisms.
pub(crate) const PAGE: u64 = 4096;
/// Version of what stands in a pool.
const VERSION: u32 = 2;
const MAGIC: [u8; 8] = *b"NPMPOOL\0";
/// Where the CRC of a line stands, over all before it.
const CRC: usize = 60;
/// Most bytes of a layout's name.
const NAME: usize = 47;

/// Where everything in a pool is. The first line has it but the name, so growth is one store; the second has the name.
///
/// | bytes | first line | second line |
/// |---|---|---|
/// | 0 to 7 | "NPMPOOL\0" | name, padded with 0, to 46 |
/// | 8 to 11 | version | |
/// | 12, 13, 14 to 15 | mechanism, threads, 0 | |
/// | 16 to 23 | bytes of the pool | |
/// | 24 to 31 | offset of the logs | |
/// | 32 to 39 | bytes of each log | |
/// | 40 to 47 | offset of what programs use | 47: 0 |
/// | 48 to 55 | spare pages | 48 to 59: 0 |
/// | 56 to 59 | generation: how often this line was written | |
/// | 60 to 63 | CRC-32C of bytes 0 to 59 | the same |
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub layout: Layout,
    pub bytes: u64,
    pub generation: u32,
}

impl Header {
    /// The header of a new pool of so many bytes.
    pub fn new(layout: &Layout, bytes: u64) -> Result<Header> {
        let invalid = |text: String| Err(Error::Invalid(text));
        let name = layout.name.as_bytes();
        if name.is_empty() || name.len() > NAME || name.contains(&0) {
            return invalid(format!(
                "a layout's name of {} bytes: allowed are 1 to {NAME}, none of them 0",
                name.len()
            ));
        }
        if layout.threads == 0 || layout.threads > THREADS {
            return invalid(format!(
                "{} threads: allowed are 1 to {THREADS}",
                layout.threads
            ));
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
        if bytes % ALIGN != 0 || bytes > 1 << 50 {
            return invalid(format!(
                "a pool of {bytes} bytes: allowed are multiples of {ALIGN} up to 2^50"
            ));
        }
        let header = Header {
            layout: layout.clone(),
            bytes,
            generation: 1,
        };
        let least = header.data() + header.spare() * PAGE + crate::heap::LEAST_BYTES;
        if bytes < least {
            return invalid(format!(
                "a pool of {bytes} bytes: with these logs and pages it has at least {least}"
            ));
        }
        Ok(header)
    }

    /// The header in two lines.
    pub fn from_lines(first: &[u8; 64], second: &[u8; 64]) -> Result<Header> {
        let corrupt = |what: &str| Error::Corrupt(format!("the pool's header is damaged: {what}"));
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|n| first[at + n]));
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if first[..8] != MAGIC {
            let text = "there is no pool: its first bytes are not \"NPMPOOL\"";
            return Err(Error::NoPool(text.into()));
        }
        for (n, line) in [first, second].into_iter().enumerate() {
            let crc = crc32c::crc32c(&line[..CRC]).to_le_bytes();
            if line[CRC..] != crc {
                return Err(corrupt(["CRC of the first line", "CRC of the name"][n]));
            }
        }
        if word(8) != VERSION {
            let text = format!("a pool of version {}: allowed is {VERSION}", word(8));
            return Err(Error::NoPool(text));
        }
        let mechanism = Mechanism::ALL.get(usize::from(first[12]));
        let name = second[..NAME].split(|byte| *byte == 0).next();
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        let layout = Layout {
            name: name.ok_or_else(|| corrupt("the name"))?.into(),
            mechanism: *mechanism.ok_or_else(|| corrupt("the mechanism"))?,
            threads: first[13],
            log_bytes: long(32),
            spare_pages: long(48),
        };
        let header = Header::new(&layout, long(16)).map_err(|error| corrupt(&error.to_string()))?;
        let header = Header {
            generation: word(56),
            ..header
        };
        match header.to_lines() == [*first, *second] {
            true => Ok(header),
            false => Err(corrupt("places of its parts")),
        }
    }

    /// The two lines.
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
            let crc = crc32c::crc32c(&line[..CRC]);
            line[CRC..].copy_from_slice(&crc.to_le_bytes());
        }
        [first, second]
    }

    /// Offset of the logs.
    pub fn logs(&self) -> u64 {
        HEADER_BYTES
    }

    /// Offset of a thread's log.
    pub fn log(&self, thread: u8) -> u64 {
        self.logs() + u64::from(thread) * self.layout.log_bytes
    }

    /// Offset of where a thread's new bytes stand before the engine makes redo records of them; each is as long as a log.
    pub fn staging(&self, thread: u8) -> u64 {
        self.log(self.layout.threads) + u64::from(thread) * self.layout.log_bytes
    }

    /// Offset of the page table.
    pub fn table(&self) -> u64 {
        match self.layout.mechanism {
            Mechanism::Redo => self.staging(self.layout.threads),
            _ => self.log(self.layout.threads),
        }
    }

    /// Pages for copies.
    pub fn spare(&self) -> u64 {
        match self.layout.mechanism {
            Mechanism::Shadow => self.layout.spare_pages,
            _ => 0,
        }
    }

    /// Offset of what programs use: with shadow paging of the first page, else of the heap.
    pub fn data(&self) -> u64 {
        let pages = match self.layout.mechanism {
            Mechanism::Shadow => self.table_bytes() + Switches::bytes(self.layout.spare_pages),
            _ => 0,
        };
        self.table() + pages
    }

    /// An entry of the page table for each page behind the header, more than there will be.
    fn table_bytes(&self) -> u64 {
        (self.bytes / PAGE * 8).next_multiple_of(PAGE)
    }

    /// Where lists of pages that change places are, with shadow paging.
    pub fn switches(&self) -> Switches {
        Switches::new(self.table() + self.table_bytes(), self.layout.spare_pages)
    }

    /// Bytes of the heap: without spare pages.
    pub fn heap_bytes(&self) -> u64 {
        self.bytes - self.data() - self.spare() * PAGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_written_and_no_other_way() {
        for mechanism in Mechanism::ALL {
            let header = Header::new(&Layout::new("a name").with(mechanism), 4 << 20).unwrap();
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
    fn a_layout_that_can_not_be_is_told() {
        let wrong = |layout: Layout, bytes: u64, what: &str| {
            let error = Header::new(&layout, bytes).unwrap_err().to_string();
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
    }
}
