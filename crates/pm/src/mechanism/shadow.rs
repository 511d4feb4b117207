//! Shadow paging: a page is copied before it is changed, and the copy takes its place when the transaction commits.
//!
//! New bytes stay in the host's memory until then, and go to the copies with non-temporal stores. The pages that change places are written down as a
//! list; one store of 8 bytes, the list's number, commits it. The page table follows with the next commit.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spec::nearpm::LINE;

use super::{whole_lines, Mechanism};
use crate::header::{Header, PAGE};
use crate::log::Log;
use crate::memory::{lines, Memory};
use crate::ranges::Ranges;
use crate::switches::Switches;
use crate::{Error, Result};

/// Lines that are fetched again after a commit: as many as a CPU has fill buffers, or fewer.
const WANTED: usize = 10;

/// Which page of the pool is where: what the table in persistent memory says, in the host's memory.
pub(crate) struct Pages {
    /// Offset in the pool of the table: 8 bytes for each page that programs use.
    table: u64,
    /// Offset in the pool of the first page.
    base: u64,
    switches: Switches,
    /// Devices that have the pages in turns: a power of 2.
    devices: u64,
    state: Mutex<State>,
}

struct State {
    /// For each page that programs use the number of the one that has it.
    places: Vec<u64>,
    /// Pages that nobody uses: with an engine none of their lines is in the cache.
    spare: BTreeSet<u64>,
    /// Lines that may be in the cache, a bit for each, of pages of which that is known. Of others all may be.
    cached: HashMap<u64, u64>,
    /// Places that are being read, and by how many.
    readers: HashMap<u64, usize>,
    /// Those of them that nobody uses any more: the last reader gives them back, and tells whether an engine may change them then.
    read_still: HashMap<u64, bool>,
    /// Number of the last list of switches.
    number: u64,
    /// What it has changed of the table, and has not been written back yet.
    entries: Ranges,
}

impl Pages {
    /// The table of a new pool.
    pub fn first(header: &Header) -> Vec<u8> {
        let pages = header.heap_bytes() / PAGE;
        let places = header.spare()..header.spare() + pages;
        places.flat_map(u64::to_le_bytes).collect()
    }

    /// Brings the table to what was committed. Nothing else uses the pool.
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
                    "the list of switches is damaged: page {page}, of {pages}"
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
                    "the page table is damaged: page {} is at {place}, which is another's or nowhere",
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
            state: Mutex::new(State {
                places,
                spare: BTreeSet::new(),
                cached: HashMap::new(),
                readers: HashMap::new(),
                read_still: HashMap::new(),
                number,
                entries: Ranges::default(),
            }),
        };
        let behind = m.options.engine.is_some();
        loaded.release(m, spare, behind)?;
        Ok(loaded)
    }

    /// Reads the table again while no transaction is under way, and compares it with what is known and with the last list. Which page has which
    /// place nothing else tells: after a loss of power the table is the truth.
    pub fn check(&self, m: &mut Memory, header: &Header) -> Result<Pages> {
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
                "the last list of switches is number {number}, the transactions have come to {own}"
            ));
        }
        // Whoever opens the pool does what the list says.
        let is_done = |(page, place): &&(u64, u64)| found.get(*page as usize) == Some(place);
        match list.iter().find(|entry| !is_done(entry)) {
            None => Ok(read),
            Some((page, place)) => corrupt(format!(
                "the last list of switches puts page {page} at {place}, where it is not"
            )),
        }
    }

    /// Reads what the device has of committed pages, whatever the cache has.
    pub fn read_again(&self, m: &Memory, offset: u64, out: &mut [u8]) -> Result<()> {
        for (page, within, part) in self.parts(offset, out.len())? {
            let place = self.state().places[page as usize];
            m.read_media(self.at(place) + within, &mut out[part])?;
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The page of an offset that programs use.
    fn page(&self, offset: u64) -> Result<u64> {
        let page = offset.checked_sub(self.base).map(|at| at / PAGE);
        let known = page.filter(|page| (*page as usize) < self.state().places.len());
        known.ok_or_else(|| Error::Invalid(format!("no page of the pool is at {offset:#x}")))
    }

    /// Offset in the pool of a page's place.
    fn at(&self, place: u64) -> u64 {
        self.base + place * PAGE
    }

    /// The parts of a range by page: the page, where the part begins in it, and where in the range.
    fn parts(&self, offset: u64, len: usize) -> Result<Vec<(u64, u64, Range<usize>)>> {
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

    /// Where a part of a page is read through the cache.
    fn found(&self, page: u64, within: u64, len: usize) -> u64 {
        let place = find(&mut self.state(), page, within, len);
        self.at(place) + within
    }

    /// Reads what was committed. Others may put the page elsewhere meanwhile: its place stays as it is until this has ended.
    pub fn read(&self, m: &mut Memory, offset: u64, out: &mut [u8]) -> Result<()> {
        for (page, within, part) in self.parts(offset, out.len())? {
            let place = {
                let state = &mut *self.state();
                let place = find(state, page, within, part.len());
                *state.readers.entry(place).or_default() += 1;
                place
            };
            let read = m.read(self.at(place) + within, &mut out[part]);
            self.leave(m, place)?;
            read?;
        }
        Ok(())
    }

    /// A reader has ended.
    fn leave(&self, m: &mut Memory, place: u64) -> Result<()> {
        let given_back = {
            let state = &mut *self.state();
            if let Entry::Occupied(mut readers) = state.readers.entry(place) {
                *readers.get_mut() -= 1;
                if *readers.get() > 0 {
                    return Ok(());
                }
                readers.remove();
            }
            state.read_still.get(&place).copied()
        };
        given_back.map_or(Ok(()), |behind| self.release(m, [place], behind))
    }

    /// Pages that nobody uses any more. Where an engine is going to change them `behind` the cache, their lines leave it.
    fn release(
        &self,
        m: &mut Memory,
        places: impl IntoIterator<Item = u64>,
        behind: bool,
    ) -> Result<()> {
        for place in places {
            let cached = {
                let state = &mut *self.state();
                if state.readers.contains_key(&place) {
                    state.read_still.insert(place, behind);
                    continue;
                }
                match behind {
                    true => state.cached.insert(place, 0).unwrap_or(u64::MAX),
                    false => 0,
                }
            };
            for line in (0..PAGE / LINE).filter(|line| cached >> line & 1 != 0) {
                let at = self.at(place) + line * LINE;
                m.drop_lines(at..at + LINE)?;
            }
            let state = &mut *self.state();
            state.read_still.remove(&place);
            state.spare.insert(place);
        }
        Ok(())
    }

    /// Takes a page for the copy of one, on the same device: an engine copies within its own.
    fn spare(&self, page: u64) -> Spare {
        let state = &mut *self.state();
        let from = state.places[page as usize];
        let near = |to: &&u64| (*to ^ from) % self.devices == 0;
        match state.spare.iter().find(near).copied() {
            Some(to) => {
                state.spare.remove(&to);
                Spare::Taken(from, to)
            }
            None if state.read_still.keys().any(|to| near(&to)) => Spare::Read,
            None => Spare::None,
        }
    }

    /// Others have read pages that are in use through the cache.
    pub fn forget(&self) {
        let state = &mut *self.state();
        let spare = &state.spare;
        state.cached.retain(|place, _| spare.contains(place));
    }

    /// The table in persistent memory follows a list that was committed. It has to be there before that list's room is used again.
    fn follow(&self, m: &mut Memory, list: &[(u64, u64)], number: u64) -> Result<()> {
        for (page, place) in list {
            let at = self.table + page * 8;
            m.write(at, &place.to_le_bytes())?;
            self.state().entries.add(whole_lines(at..at + 8));
        }
        self.state().number = number;
        Ok(())
    }
}

/// A page for a copy.
enum Spare {
    /// Where the page is, and where its copy is to be.
    Taken(u64, u64),
    /// There will be one as soon as others have read what is there.
    Read,
    None,
}

/// The place of a page, of which lines come to the cache now.
fn find(state: &mut State, page: u64, within: u64, len: usize) -> u64 {
    let place = state.places[page as usize];
    if let Some(cached) = state.cached.get_mut(&place) {
        for line in lines(within..within + len as u64) {
            *cached |= 1 << (line / LINE);
        }
    }
    place
}

pub(crate) struct Shadow {
    log: Log,
    pages: Arc<Pages>,
    /// The places of the copies of pages.
    copies: BTreeMap<u64, u64>,
    /// Lines of these pages with new bytes, by the offset that programs have.
    news: BTreeMap<u64, [u8; LINE as usize]>,
    /// The first lines that the transaction has read, the same.
    read: RefCell<Vec<u64>>,
    /// Lines that were stored to without a copy.
    dirty: Ranges,
    snapshots: bool,
}

impl Shadow {
    pub fn new(log: Log, pages: &Arc<Pages>, snapshots: bool) -> Shadow {
        Shadow {
            log,
            pages: pages.clone(),
            copies: BTreeMap::new(),
            news: BTreeMap::new(),
            read: RefCell::default(),
            dirty: Ranges::default(),
            snapshots,
        }
    }

    /// Copies a page, unless that was done: the engine does, or the CPU when it knows all that is to stand there.
    fn touch(&mut self, m: &mut Memory, page: u64) -> Result<()> {
        m.spend(m.options.costs.range)?;
        if !self.snapshots || self.copies.contains_key(&page) {
            return Ok(());
        }
        let (from, to) = loop {
            match self.pages.spare(page) {
                Spare::Taken(from, to) => break (from, to),
                Spare::Read => m.pause()?,
                Spare::None => {
                    let text = format!(
                        "the transaction has changed {} pages: there are no spare ones for more",
                        self.copies.len()
                    );
                    return Err(Error::Full(text));
                }
            }
        };
        self.copies.insert(page, to);
        m.spend(m.options.costs.trap)?;
        match self.log.is_offloaded() {
            true => {
                let (from, to) = (self.pages.at(from), self.pages.at(to));
                self.log.copy(m, from, to, PAGE)
            }
            false => Ok(()),
        }
    }

    /// New bytes within a line.
    fn change(&mut self, m: &mut Memory, page: u64, range: Range<u64>, data: &[u8]) -> Result<()> {
        let line = range.start - range.start % LINE;
        if !self.news.contains_key(&line) {
            let mut old = [0; LINE as usize];
            if data.len() < old.len() {
                let at = self.pages.found(page, line % PAGE, old.len());
                m.read(at, &mut old)?;
            }
            self.news.insert(line, old);
        }
        if let Some(new) = self.news.get_mut(&line) {
            let start = (range.start - line) as usize;
            new[start..start + data.len()].copy_from_slice(data);
        }
        Ok(())
    }

    /// What has to be persistent before the pages change places: the copies, and the list of these.
    fn before(&self, list: &[(u64, u64)], number: u64) -> Ranges {
        let mut all = Ranges::default();
        for to in self.copies.values() {
            all.add(self.pages.at(*to)..self.pages.at(*to) + PAGE);
        }
        all.add(self.pages.switches.range(number, list.len()));
        all
    }

    /// What stands in the copies is on its way to persistence.
    fn fill(&mut self, m: &mut Memory) -> Result<()> {
        if self.log.is_offloaded() {
            for (line, data) in &self.news {
                if let Some(to) = self.copies.get(&self.pages.page(*line)?) {
                    m.stream(self.pages.at(*to) + line % PAGE, data)?;
                }
            }
            return Ok(());
        }
        for (page, to) in &self.copies {
            let mut bytes = vec![0; PAGE as usize];
            let at = self.pages.found(*page, 0, bytes.len());
            m.read_old(at, &mut bytes)?;
            let first = self.pages.base + page * PAGE;
            for (line, data) in self.news.range(first..first + PAGE) {
                let from = (line - first) as usize;
                bytes[from..from + data.len()].copy_from_slice(data);
            }
            m.stream(self.pages.at(*to), &bytes)?;
        }
        Ok(())
    }

    fn switch(&mut self, m: &mut Memory) -> Result<()> {
        if self.copies.is_empty() {
            return self.log.commit(m, &self.dirty);
        }
        let (number, entries) = {
            let mut state = self.pages.state();
            (state.number + 1, std::mem::take(&mut state.entries))
        };
        for range in entries.iter() {
            m.flush(range)?;
        }
        self.fill(m)?;
        let list: Vec<(u64, u64)> = self.copies.iter().map(|(page, to)| (*page, *to)).collect();
        let switches = &self.pages.switches;
        switches.write(m, number, &list)?;
        if self.log.is_offloaded() {
            let before = self.before(&list, number);
            let device = self.log.switch(m, switches.word(), number, &before)?;
            self.fetch(m)?;
            m.fence_commands(device)?;
        } else {
            m.fence()?;
            m.write(switches.word(), &number.to_le_bytes())?;
            m.flush(switches.word()..switches.word() + 8)?;
            self.fetch(m)?;
            m.fence()?;
        }
        self.pages.follow(m, &list, number)
    }

    /// What the transaction has read first of the pages that have changed places comes to the cache again: most likely the next one wants it.
    fn fetch(&self, m: &mut Memory) -> Result<()> {
        for line in &*self.read.borrow() {
            if let Some(to) = self.copies.get(&self.pages.page(*line)?) {
                let within = line % PAGE;
                let mut state = self.pages.state();
                if let Some(cached) = state.cached.get_mut(to) {
                    *cached |= 1 << (within / LINE);
                }
                drop(state);
                m.prefetch(self.pages.at(*to) + within)?;
            }
        }
        Ok(())
    }

    fn end(&mut self) {
        self.copies.clear();
        self.news.clear();
        self.read.borrow_mut().clear();
        self.dirty.clear();
    }
}

impl Mechanism for Shadow {
    fn begin(&mut self, m: &mut Memory, transaction: u64) -> Result<()> {
        m.consistently(|m| self.log.begin(m, transaction))
    }

    fn add(&mut self, m: &mut Memory, range: Range<u64>) -> Result<()> {
        let parts = self
            .pages
            .parts(range.start, (range.end - range.start) as usize)?;
        m.consistently(|m| parts.iter().try_for_each(|(page, ..)| self.touch(m, *page)))
    }

    fn fresh(&mut self, _: Range<u64>) {}

    fn read(&self, m: &mut Memory, offset: u64, out: &mut [u8]) -> Result<()> {
        self.pages.read(m, offset, out)?;
        let end = offset + out.len() as u64;
        let read = &mut *self.read.borrow_mut();
        for line in lines(offset..end) {
            if read.len() < WANTED && !read.contains(&line) {
                read.push(line);
            }
        }
        if self.news.is_empty() {
            return Ok(());
        }
        m.consistently(|m| m.spend(m.options.costs.range))?;
        for line in lines(offset..end) {
            if let Some(new) = self.news.get(&line) {
                let (from, to) = (line.max(offset), (line + LINE).min(end));
                let of = |base: u64| (from - base) as usize..(to - base) as usize;
                out[of(offset)].copy_from_slice(&new[of(line)]);
            }
        }
        Ok(())
    }

    fn write(&mut self, m: &mut Memory, offset: u64, data: &[u8]) -> Result<()> {
        for (page, within, part) in self.pages.parts(offset, data.len())? {
            m.consistently(|m| self.touch(m, page))?;
            if !self.copies.contains_key(&page) {
                let at = self.pages.found(page, within, part.len());
                self.dirty.add(whole_lines(at..at + part.len() as u64));
                m.write(at, &data[part])?;
                continue;
            }
            m.consistently(|m| Ok(m.cpu.copy(part.len() as u64)?))?;
            let mut from = part.start;
            while from < part.end {
                let at = offset + from as u64;
                let len = ((LINE - at % LINE) as usize).min(part.end - from);
                self.change(m, page, at..at + len as u64, &data[from..from + len])?;
                from += len;
            }
        }
        Ok(())
    }

    fn commit(&mut self, m: &mut Memory) -> Result<()> {
        m.consistently(|m| self.switch(m))?;
        let mut old = Vec::new();
        for (page, place) in &self.copies {
            let mut state = self.pages.state();
            old.push(std::mem::replace(&mut state.places[*page as usize], *place));
        }
        self.end();
        let behind = self.log.is_offloaded();
        m.consistently(|m| self.pages.release(m, old, behind))
    }

    fn abort(&mut self, m: &mut Memory) -> Result<()> {
        let places: Vec<u64> = std::mem::take(&mut self.copies).into_values().collect();
        self.end();
        let behind = self.log.is_offloaded();
        m.consistently(|m| self.pages.release(m, places, behind))
    }

    fn finish(&mut self, m: &mut Memory) -> Result<()> {
        self.log.finish(m)
    }
}
