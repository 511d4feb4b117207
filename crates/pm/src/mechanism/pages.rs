// SPDX-License-Identifier: Apache-2.0

//! The places of the pages of a pool with shadow paging.
//!
//! A page that an engine has copied is not in the CPU's cache at its new place, but most of its
//! lines still are at the former one. Unchanged lines are read there until that place is needed.
//! Only host memory records this: an opened pool starts from the table and the last switch list.
//! Only the pool's transactions move pages, and these take turns.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sim::Time;
use spec::nearpm::LINE;

use super::covering_lines;
use crate::header::Header;
use crate::memory::{lines, Memory};
use crate::ranges::Ranges;
use crate::switch_lists::SwitchLists;
use crate::units::PAGE;
use crate::{Error, Result};

/// The page table in host memory, a copy of the one in persistent memory.
pub(crate) struct Pages {
    /// Offset in the pool of the table: 8 bytes for each page of the program.
    table: u64,
    /// Offset in the pool of the first page.
    base: u64,
    pub switches: SwitchLists,
    /// The number of devices over which pages rotate: a power of 2.
    devices: u64,
    state: Mutex<PageMap>,
}

#[derive(Default)]
struct PageMap {
    /// For each page of the program the number of its place.
    places: Vec<u64>,
    /// Spare places, and a bit for each of their lines that still has the content of the page's
    /// former owner.
    spare: BTreeMap<u64, u64>,
    /// For pages of the program, the spare places with such lines of theirs.
    former: HashMap<u64, Vec<u64>>,
    /// For places with a known cache state, a bit for each line that may be cached. Of other places
    /// all lines may be.
    cached: HashMap<u64, u64>,
    /// Places that are being read, and the number of readers.
    readers: HashMap<u64, usize>,
    /// Number of the last switch list.
    number: u64,
    /// That list, until it is in the table.
    last: Vec<(u64, u64)>,
}

/// The search result for a spare page.
enum SparePage {
    /// The page's place, and the place of its copy.
    Taken(u64, u64),
    /// A spare page exists, but is still being read.
    BeingRead,
    None,
}

/// Adjacent lines of a page in one place: that place, the offset in it, and the position in the
/// read range.
type LineRun = (u64, u64, Range<usize>);

impl Pages {
    /// The table of a new pool.
    pub fn table(header: &Header) -> Vec<u8> {
        let pages = header.heap_bytes() / PAGE;
        let places = header.spare()..header.spare() + pages;
        places.flat_map(u64::to_le_bytes).collect()
    }

    /// Applies the committed switch list to the table. Nothing else uses the pool.
    pub fn recover(m: &mut Memory, header: &Header) -> Result<()> {
        let pages = header.heap_bytes() / PAGE;
        let table = header.table();
        let Some((_, entries)) = header.switches().load(m)? else {
            return Ok(());
        };
        m.drop_lines(table..table + pages * 8)?;
        for (page, place) in entries {
            if page >= pages {
                return Err(Error::Corrupt(format!(
                    "the switch list is damaged: page {page}, of {pages}"
                )));
            }
            let at = table + page * 8;
            m.write(at, &place.to_le_bytes())?;
            m.flush(at..at + 8)?;
        }
        m.fence()
    }

    /// Reads the table.
    pub fn load(m: &mut Memory, header: &Header) -> Result<Pages> {
        let pages = header.heap_bytes() / PAGE;
        let mut bytes = vec![0; (pages * 8) as usize];
        m.drop_lines(header.table()..header.table() + pages * 8)?;
        m.read(header.table(), &mut bytes)?;
        let mut spare: BTreeSet<u64> = (0..pages + header.spare()).collect();
        let mut places = Vec::new();
        for entry in bytes.chunks_exact(8) {
            let place = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|n| entry[n]));
            if !spare.remove(&place) {
                return Err(Error::Corrupt(format!(
                    "the page table is damaged: page {} is at {place}, which is used twice or \
                     does not exist",
                    places.len()
                )));
            }
            places.push(place);
        }
        let switches = header.switches();
        let number = switches.load(m)?.map_or(0, |(number, _)| number);
        let loaded = Pages {
            table: header.table(),
            base: header.data(),
            switches,
            devices: header.devices.into(),
            state: Mutex::new(PageMap {
                places,
                spare: spare.iter().map(|place| (*place, 0)).collect(),
                number,
                ..PageMap::default()
            }),
        };
        let offloaded = m.options.engine.is_some();
        spare
            .iter()
            .try_for_each(|to| loaded.drop_cached(m, *to, offloaded))?;
        Ok(loaded)
    }

    /// Reads the table again while no transaction is under way, and compares it with the known
    /// state and the last list. Nothing else records the places: after a power loss the table is
    /// authoritative.
    pub fn check(&self, m: &mut Memory, header: &Header) -> Result<Pages> {
        // The first step of the next transaction.
        let last = self.state().last.clone();
        self.write_table(m, &last)?;
        let read = Pages::load(m, header)?;
        let (own, found) = (self.state().places.clone(), read.state().places.clone());
        let corrupt =
            |what: String| Err(Error::Corrupt(format!("the page table is damaged: {what}")));
        if let Some(page) = (0..own.len()).find(|page| own[*page] != found[*page]) {
            return corrupt(format!(
                "page {page} is at {}, the transactions have left it at {}",
                found[page], own[page]
            ));
        }
        let (own, last) = (self.state().number, self.switches.load(m)?);
        let (number, list) = last.unwrap_or_default();
        if number != own {
            return corrupt(format!(
                "the last switch list is number {number}, the transactions have reached {own}"
            ));
        }
        // Opening the pool applies the list.
        let is_done = |(page, place): &&(u64, u64)| found.get(*page as usize) == Some(place);
        match list.iter().find(|entry| !is_done(entry)) {
            None => Ok(read),
            Some((page, place)) => corrupt(format!(
                "the last switch list puts page {page} at {place}, but it is elsewhere"
            )),
        }
    }

    /// Reads committed pages from the device, past the cache.
    pub fn read_again(&self, m: &Memory, offset: u64, out: &mut [u8]) -> Result<()> {
        for (page, within, part) in self.split_by_page(offset, out.len())? {
            let place = self.state().places[page as usize];
            m.read_media(self.place_offset(place) + within, &mut out[part])?;
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, PageMap> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The page of an offset.
    pub fn page(&self, offset: u64) -> Result<u64> {
        let page = offset.checked_sub(self.base).map(|at| at / PAGE);
        let known = page.filter(|page| (*page as usize) < self.state().places.len());
        known.ok_or_else(|| Error::Invalid(format!("no page of the pool is at {offset:#x}")))
    }

    /// The offset of a page's first byte.
    pub fn page_offset(&self, page: u64) -> u64 {
        self.base + page * PAGE
    }

    /// Offset in the pool of a place.
    pub fn place_offset(&self, place: u64) -> u64 {
        self.base + place * PAGE
    }

    /// Splits a range by page: the page, the offset in it, and the position in the range.
    pub fn split_by_page(&self, offset: u64, len: usize) -> Result<Vec<(u64, u64, Range<usize>)>> {
        let mut out = Vec::new();
        let mut from = 0;
        while from < len {
            let at = offset + from as u64;
            let here = ((PAGE - at % PAGE) as usize).min(len - from);
            out.push((self.page(at)?, at % PAGE, from..from + here));
            from += here;
        }
        Ok(out)
    }

    /// Marks a part of a page as changed in place; returns its offset in the pool.
    pub fn change_in_place(&self, page: u64, within: u64, len: usize) -> u64 {
        let state = &mut *self.state();
        let changed = line_bits(within..within + len as u64);
        state.invalidate_former(page, changed);
        let place = state.places[page as usize];
        state.note_cached(place, changed);
        self.place_offset(place) + within
    }

    /// Spends the time of looking up a range: once for each page, and once more for pages with
    /// lines in a former place.
    pub fn spend_lookup(&self, m: &Memory, offset: u64, len: usize) -> Result<()> {
        let mut looks = 0;
        for (page, within, part) in self.split_by_page(offset, len)? {
            let lines = line_bits(within..within + part.len() as u64);
            looks += 1 + u64::from(self.state().lines_elsewhere(page) & lines != 0);
        }
        m.spend(Time(m.options.costs.page.0 * looks))
    }

    /// Reads committed bytes. Other threads may move the page meanwhile: the places stay unchanged
    /// until this has ended.
    pub fn read(&self, m: &mut Memory, offset: u64, out: &mut [u8]) -> Result<()> {
        for (page, within, part) in self.split_by_page(offset, out.len())? {
            let found = self.state().begin_read(page, within, part);
            let read = found.iter().try_for_each(|(place, within, part)| {
                m.read(self.place_offset(*place) + within, &mut out[part.clone()])
            });
            self.state().end_read(&found);
            read?;
        }
        Ok(())
    }

    /// Takes a spare place for the copy of a page: returns the page's place and that of the copy,
    /// or nothing without spare ones. If `offloaded`, an engine writes there, so the lines of the
    /// place leave the cache.
    pub fn take_spare(
        &self,
        m: &mut Memory,
        page: u64,
        offloaded: bool,
    ) -> Result<Option<(u64, u64)>> {
        loop {
            let spare = self.state().choose_spare(page, self.devices);
            match spare {
                SparePage::Taken(from, to) => {
                    self.drop_cached(m, to, offloaded)?;
                    return Ok(Some((from, to)));
                }
                SparePage::BeingRead => m.pause()?,
                SparePage::None => return Ok(None),
            }
        }
    }

    fn drop_cached(&self, m: &mut Memory, place: u64, offloaded: bool) -> Result<()> {
        let cached = {
            let known = &mut self.state().cached;
            match offloaded {
                true => known.insert(place, 0).unwrap_or(u64::MAX),
                false => {
                    known.remove(&place);
                    0
                }
            }
        };
        for line in (0..PAGE / LINE).filter(|line| cached >> line & 1 != 0) {
            let at = self.place_offset(place) + line * LINE;
            m.drop_lines(at..at + LINE)?;
        }
        Ok(())
    }

    /// Returns places that are not needed.
    pub fn return_spares(&self, places: impl IntoIterator<Item = u64>) {
        let none = places.into_iter().map(|place| (place, 0));
        self.state().spare.extend(none);
    }

    /// Records that a page has moved, with these lines changed. If `offloaded`, unchanged lines are
    /// read at the former place, where the cache has them.
    pub fn record_move(&self, page: u64, to: u64, changed: u64, offloaded: bool) {
        let state = &mut *self.state();
        state.invalidate_former(page, changed);
        let elsewhere = state.lines_elsewhere(page);
        let from = std::mem::replace(&mut state.places[page as usize], to);
        let cached = state.cached.get(&from).copied().unwrap_or(u64::MAX);
        let lines = match offloaded {
            true => cached & !changed & !elsewhere,
            false => 0,
        };
        state.spare.insert(from, lines);
        if lines != 0 {
            state.former.entry(page).or_default().push(from);
        }
    }

    /// Prefetches a line of a page.
    pub fn prefetch_line(&self, m: &Memory, place: u64, within: u64) -> Result<()> {
        self.state()
            .note_cached(place, line_bits(within..within + 1));
        m.prefetch(self.place_offset(place) + within)
    }

    /// Brings the table up to the last switch list, before that list's place is used again. Returns
    /// the number of the next list.
    pub fn begin_list(&self, m: &mut Memory) -> Result<u64> {
        let (number, last) = {
            let state = &mut *self.state();
            (state.number + 1, std::mem::take(&mut state.last))
        };
        let changed = self.write_table(m, &last)?;
        changed.iter().try_for_each(|lines| m.flush(lines))?;
        Ok(number)
    }

    /// Stores entries of the table; returns their lines.
    fn write_table(&self, m: &Memory, list: &[(u64, u64)]) -> Result<Ranges> {
        let mut changed = Ranges::default();
        for (page, place) in list {
            let at = self.table + page * 8;
            m.write(at, &place.to_le_bytes())?;
            changed.add(covering_lines(at..at + 8));
        }
        Ok(changed)
    }

    /// Records a committed list.
    pub fn record_list(&self, list: Vec<(u64, u64)>, number: u64) {
        let state = &mut *self.state();
        (state.number, state.last) = (number, list);
    }

    /// Other programs may have read pages in use through the cache.
    pub fn forget_cached(&self) {
        let state = &mut *self.state();
        let spare = &state.spare;
        state.cached.retain(|place, _| spare.contains_key(place));
    }
}

impl PageMap {
    /// The place at which a line of a page is read.
    fn line_place(&self, page: u64, line: u64) -> u64 {
        let has = |place: &&u64| {
            self.spare
                .get(place)
                .is_some_and(|lines| lines >> line & 1 != 0)
        };
        let former = self
            .former
            .get(&page)
            .and_then(|places| places.iter().find(has));
        *former.unwrap_or(&self.places[page as usize])
    }

    /// Lines of a page that are read at a former place.
    fn lines_elsewhere(&self, page: u64) -> u64 {
        let former = self.former.get(&page).into_iter().flatten();
        let lines = former.filter_map(|place| self.spare.get(place));
        lines.fold(0, |all, lines| all | lines)
    }

    /// Records lines as cached.
    fn note_cached(&mut self, place: u64, lines: u64) {
        if let Some(cached) = self.cached.get_mut(&place) {
            *cached |= lines;
        }
    }

    /// Changed lines of a page are read at its current place only.
    fn invalidate_former(&mut self, page: u64, changed: u64) {
        let Some(places) = self.former.get_mut(&page) else {
            return;
        };
        places.retain(|place| {
            let lines = self.spare.entry(*place).or_default();
            *lines &= !changed;
            *lines != 0
        });
        if places.is_empty() {
            self.former.remove(&page);
        }
    }

    /// Chooses a spare place for the copy of a page, on the same device, since an engine copies
    /// within its device. It prefers the one with the fewest lines in use.
    fn choose_spare(&mut self, page: u64, devices: u64) -> SparePage {
        let from = self.places[page as usize];
        let near = |to: &u64| (to ^ from) % devices == 0;
        let all = || self.spare.iter().filter(|(to, _)| near(to));
        let unread = all().filter(|(to, _)| !self.readers.contains_key(to));
        // Cached lines have to leave the cache.
        let cached = |to: &u64| self.cached.get(to).map_or(0, |lines| lines.count_ones());
        let best = unread.min_by_key(|(to, lines)| (lines.count_ones(), cached(to)));
        let Some(to) = best.map(|(to, _)| *to) else {
            let Some(to) = all().next().map(|(to, _)| *to) else {
                return SparePage::None;
            };
            // Later readers use the current place: else the place might always have a reader.
            if let Some(lines) = self.spare.insert(to, 0) {
                self.drop_former(to, lines);
            }
            return SparePage::BeingRead;
        };
        if let Some(lines) = self.spare.remove(&to) {
            self.drop_former(to, lines);
        }
        SparePage::Taken(from, to)
    }

    /// The lines of a spare place are no longer read there.
    fn drop_former(&mut self, place: u64, lines: u64) {
        if lines != 0 {
            self.former.retain(|_, places| {
                places.retain(|former| *former != place);
                !places.is_empty()
            });
        }
    }

    /// Begins a read of a part of a page.
    fn begin_read(&mut self, page: u64, within: u64, part: Range<usize>) -> Vec<LineRun> {
        let mut found: Vec<LineRun> = Vec::new();
        let end = within + part.len() as u64;
        for line in lines(within..end) {
            let (from, to) = (line.max(within), (line + LINE).min(end));
            let of = |at: u64| part.start + (at - within) as usize;
            let place = self.line_place(page, line / LINE);
            self.note_cached(place, line_bits(line..line + 1));
            match found.last_mut() {
                Some((last, _, part)) if *last == place => part.end = of(to),
                _ => found.push((place, from, of(from)..of(to))),
            }
        }
        for (place, ..) in &found {
            *self.readers.entry(*place).or_default() += 1;
        }
        found
    }

    /// Ends it.
    fn end_read(&mut self, found: &[LineRun]) {
        for (place, ..) in found {
            if let Entry::Occupied(mut readers) = self.readers.entry(*place) {
                *readers.get_mut() -= 1;
                if *readers.get() == 0 {
                    readers.remove();
                }
            }
        }
    }
}

/// A bit for each line of a range of a page.
fn line_bits(range: Range<u64>) -> u64 {
    lines(range).fold(0, |line_bits, line| line_bits | 1 << (line / LINE))
}
