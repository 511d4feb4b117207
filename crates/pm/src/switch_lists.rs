// SPDX-License-Identifier: Apache-2.0

//! Lists of pages that change places atomically: a list is written, then committed by one store of
//! 8 bytes.
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
//! A list's place is used again two lists later. By then the page table contains the list's
//! changes.

use std::ops::Range;

use spec::nearpm::LINE;

use crate::memory::Memory;
use crate::units::PAGE;
use crate::{Error, Result};

const LIST_HEADER_BYTES: usize = 32;
const ENTRY_BYTES: usize = 16;

/// The places of a pool's switch lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SwitchLists {
    /// Offset in the pool.
    place: u64,
    /// Bytes set aside for a list.
    room: u64,
}

fn read_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|n| bytes[at + n]))
}

fn crc(list: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&list[..16]), &list[LIST_HEADER_BYTES..])
}

impl SwitchLists {
    /// Bytes for lists of at most `most` entries.
    pub fn bytes(most: u64) -> u64 {
        PAGE + 2 * SwitchLists::list_bytes(most)
    }

    fn list_bytes(most: u64) -> u64 {
        (LIST_HEADER_BYTES as u64 + most * ENTRY_BYTES as u64).next_multiple_of(PAGE)
    }

    /// Switch lists at an offset in the pool.
    pub fn new(place: u64, most: u64) -> SwitchLists {
        SwitchLists {
            place,
            room: SwitchLists::list_bytes(most),
        }
    }

    /// Offset in the pool of the number that commits a list.
    pub fn number_offset(&self) -> u64 {
        self.place
    }

    fn list_offset(&self, number: u64) -> u64 {
        self.place + PAGE + number % 2 * self.room
    }

    /// The range of a list.
    pub fn range(&self, number: u64, entries: usize) -> Range<u64> {
        let place = self.list_offset(number);
        place..place + (LIST_HEADER_BYTES + entries * ENTRY_BYTES) as u64
    }

    /// Writes a list. It can be committed when it is persistent.
    pub fn write(&self, m: &mut Memory, number: u64, entries: &[(u64, u64)]) -> Result<()> {
        let mut list = vec![0; LIST_HEADER_BYTES];
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
        m.stream(self.list_offset(number), &list)
    }

    /// The last committed list: its number, and pages with their new places.
    #[allow(clippy::type_complexity)]
    pub fn load(&self, m: &Memory) -> Result<Option<(u64, Vec<(u64, u64)>)>> {
        let mut word = [0; 8];
        m.read_direct(self.number_offset(), &mut word)?;
        let number = u64::from_le_bytes(word);
        if number == 0 {
            return Ok(None);
        }
        let damaged = || Error::Corrupt(format!("switch list {number} is damaged"));
        let mut list = vec![0; LIST_HEADER_BYTES];
        m.read_direct(self.list_offset(number), &mut list)?;
        let entries = read_u64(&list, 8);
        if read_u64(&list, 0) != number
            || entries > (self.room - LIST_HEADER_BYTES as u64) / ENTRY_BYTES as u64
        {
            return Err(damaged());
        }
        list.resize(LIST_HEADER_BYTES + entries as usize * ENTRY_BYTES, 0);
        m.read_direct(
            self.list_offset(number) + LIST_HEADER_BYTES as u64,
            &mut list[LIST_HEADER_BYTES..],
        )?;
        if list[16..20] != crc(&list).to_le_bytes() {
            return Err(damaged());
        }
        let entries = list[LIST_HEADER_BYTES..].chunks_exact(ENTRY_BYTES);
        let entries = entries.map(|entry| (read_u64(entry, 0), read_u64(entry, 8)));
        Ok(Some((number, entries.collect())))
    }
}
