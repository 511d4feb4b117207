// SPDX-License-Identifier: Apache-2.0

//! Places of the media in the order of their accesses, and the state of each.
//!
//! The host knows its next accesses, so it prefetches its state of the places a few accesses ahead.
//! Otherwise most time would pass while single lines come from memory.

use sim::{prefetch, Random};

/// Accesses between the drawn one and the prefetched one.
const AHEAD: u64 = 8;

/// An access at a place where no other is.
pub struct Access {
    /// Where.
    pub place: u64,
    /// A read, else a write.
    pub read: bool,
    /// How often it has been written, this write included.
    pub version: u32,
}

/// Where accesses go.
pub struct Places {
    random: Random,
    /// The same, [`AHEAD`] accesses later unless a busy place is drawn until then.
    later: Random,
    percent: u64,
    /// Of each place, how often it has been written, and in the lowest bit whether it is accessed.
    marks: Vec<u32>,
}

impl Places {
    /// `count` places, with `percent` reads of 100 accesses.
    pub fn new(count: u64, percent: u64) -> Places {
        let mut places = Places {
            random: Random::new(1),
            later: Random::new(1),
            percent,
            marks: vec![0; count as usize],
        };
        places.prefetch_ahead();
        places
    }

    fn prefetch_ahead(&mut self) {
        self.later = self.random.clone();
        for _ in 0..2 * AHEAD {
            self.later.next();
        }
    }

    /// The next access begins.
    pub fn begin(&mut self) -> Access {
        let place = loop {
            let place = self.random.below(self.marks.len() as u64);
            if self.marks[place as usize] & 1 == 0 {
                break place;
            }
            self.prefetch_ahead();
        };
        let read = self.random.below(100) < self.percent;
        let mark = &mut self.marks[place as usize];
        *mark += 1 + 2 * u32::from(!read);
        Access {
            place,
            read,
            version: *mark >> 1,
        }
    }

    /// Where an access begins that is a few away.
    pub fn upcoming(&mut self) -> u64 {
        let place = self.later.below(self.marks.len() as u64);
        self.later.next();
        prefetch(&self.marks[place as usize]);
        place
    }

    /// An access has ended; how often its place has been written.
    pub fn end(&mut self, place: u64) -> u32 {
        let mark = &mut self.marks[place as usize];
        *mark -= 1;
        *mark >> 1
    }
}
