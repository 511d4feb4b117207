// SPDX-License-Identifier: Apache-2.0

//! The dictionary, and the cycles of a row of keys in its banks (dict_decode_table).

use spec::tables::DICTIONARY_BYTES;

/// Banks of the dictionary, and their bytes.
const BANKS: u64 = 16;
const BANK_BYTES: u64 = DICTIONARY_BYTES / BANKS;
const WORD: u64 = 8;

#[derive(Debug, Default)]
pub(super) struct Table {
    /// Bytes of a value.
    size: u64,
    values: Vec<u8>,
    entries: u64,
    /// Banks of a copy.
    share: u64,
}

impl Table {
    pub(super) fn new(size: u64, entries: u64) -> Table {
        let banks = (size * entries).div_ceil(BANK_BYTES).max(1);
        Table {
            size,
            entries,
            values: Vec::new(),
            share: banks.next_power_of_two(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.size * self.entries
    }

    /// Appends bytes of the dictionary. Returns the cycles.
    pub(super) fn push(&mut self, data: &[u8]) -> u64 {
        self.values.extend_from_slice(data);
        (data.len() as u64).div_ceil(WORD * self.share.min(WORD))
    }

    pub(super) fn has(&self, key: u32) -> bool {
        u64::from(key) < self.entries
    }

    /// Appends the values of a row of keys, which are all in the dictionary. Returns the cycles.
    pub(super) fn look_up(&self, keys: &[u32], values: &mut Vec<u8>) -> u64 {
        let mut words = [[0; BANKS as usize]; BANKS as usize];
        let mut counts = [0; BANKS as usize];
        for (lane, &key) in (0..).zip(keys) {
            let at = u64::from(key) * self.size;
            values.extend_from_slice(&self.values[at as usize..(at + self.size) as usize]);
            // Each bank serves one word a cycle, to all lanes that request it.
            let word = at / WORD;
            let bank = (lane / self.share * self.share + word % self.share) as usize;
            if !words[bank][..counts[bank]].contains(&word) {
                words[bank][counts[bank]] = word;
                counts[bank] += 1;
            }
        }
        counts.into_iter().fold(1, usize::max) as u64
    }
}
