//! Lists of pages that change places at once: written down, then committed by one store of 8 bytes.
//!
//! | offset | what |
//! |---|---|
//! | 0 to 7 | number of the last list that was committed; 0: there was none |
//! | 4096 | room for lists with even numbers, then for those with odd ones |
//!
//! | bytes of a list | what |
//! |---|---|
//! | 0 to 7 | number |
//! | 8 to 15 | entries |
//! | 16 to 19 | CRC-32C of bytes 0 to 15 and all entries |
//! | 20 to 31 | 0 |
//! | from 32 on | entries of 16 bytes: page, new place |
//!
//! A list's room is used again two lists later. By then the table has what it says.

use std::ops::Range;

use spec::nearpm::LINE;

use crate::header::PAGE;
use crate::memory::Memory;
use crate::{Error, Result};

const HEAD: usize = 32;
const ENTRY: usize = 16;

/// Where the lists of a pool are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switches {
    /// Offset in the pool.
    place: u64,
    /// Bytes of the room of a list.
    room: u64,
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|n| bytes[at + n]))
}

fn crc(list: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&list[..16]), &list[HEAD..])
}

impl Switches {
    /// Bytes for lists of so many entries at most.
    pub fn bytes(most: u64) -> u64 {
        PAGE + 2 * Switches::room(most)
    }

    fn room(most: u64) -> u64 {
        (HEAD as u64 + most * ENTRY as u64).next_multiple_of(PAGE)
    }

    /// At an offset in the pool.
    pub fn new(place: u64, most: u64) -> Switches {
        Switches {
            place,
            room: Switches::room(most),
        }
    }

    /// Offset in the pool of the number that commits a list.
    pub fn word(&self) -> u64 {
        self.place
    }

    fn list(&self, number: u64) -> u64 {
        self.place + PAGE + number % 2 * self.room
    }

    /// Where a list of so many entries stands.
    pub fn range(&self, number: u64, entries: usize) -> Range<u64> {
        let place = self.list(number);
        place..place + (HEAD + entries * ENTRY) as u64
    }

    /// Writes a list down: it can be committed when this is persistent.
    pub fn write(&self, m: &mut Memory, number: u64, entries: &[(u64, u64)]) -> Result<()> {
        let mut list = vec![0; HEAD];
        list[..8].copy_from_slice(&number.to_le_bytes());
        list[8..16].copy_from_slice(&(entries.len() as u64).to_le_bytes());
        for (page, place) in entries {
            list.extend(page.to_le_bytes());
            list.extend(place.to_le_bytes());
        }
        let sum = crc(&list).to_le_bytes();
        list[16..20].copy_from_slice(&sum);
        list.resize(list.len().next_multiple_of(LINE as usize), 0);
        let lines = list.len() as u64 / LINE;
        m.spend(sim::Time(m.options.costs.crc_line.0 * lines))?;
        m.stream(self.list(number), &list)
    }

    /// The last list that was committed: its number, and pages with their new places.
    #[allow(clippy::type_complexity)]
    pub fn load(&self, m: &Memory) -> Result<Option<(u64, Vec<(u64, u64)>)>> {
        let mut word = [0; 8];
        m.read_direct(self.word(), &mut word)?;
        let number = u64::from_le_bytes(word);
        if number == 0 {
            return Ok(None);
        }
        let damaged = || Error::Corrupt(format!("list {number} of switches is damaged"));
        let mut list = vec![0; HEAD];
        m.read_direct(self.list(number), &mut list)?;
        let entries = long(&list, 8);
        if long(&list, 0) != number || entries > (self.room - HEAD as u64) / ENTRY as u64 {
            return Err(damaged());
        }
        list.resize(HEAD + entries as usize * ENTRY, 0);
        m.read_direct(self.list(number) + HEAD as u64, &mut list[HEAD..])?;
        if list[16..20] != crc(&list).to_le_bytes() {
            return Err(damaged());
        }
        let entries = list[HEAD..].chunks_exact(ENTRY);
        let entries = entries.map(|entry| (long(entry, 0), long(entry, 8)));
        Ok(Some((number, entries.collect())))
    }
}
