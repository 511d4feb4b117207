//! Shadow paging: a page is copied before it is changed, and the copy takes its place when the transaction commits.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spec::nearpm::Kind;

use super::{whole_lines, Mechanism};
use crate::header::{Header, PAGE};
use crate::log::Log;
use crate::memory::Memory;
use crate::ranges::Ranges;
use crate::{Error, Result};

/// Which page of the pool is where: what the table in persistent memory says, in the host's memory.
pub(crate) struct Pages {
    /// Offset in the pool of the table: 8 bytes for each page that programs use.
    table: u64,
    /// Offset in the pool of the first page.
    base: u64,
    state: Mutex<State>,
}

struct State {
    /// For each page that programs use the number of the one that has it.
    places: Vec<u64>,
    /// Pages that nobody uses.
    spare: BTreeSet<u64>,
}

impl Pages {
    /// The table of a new pool.
    pub fn first(header: &Header) -> Vec<u8> {
        let pages = header.heap_bytes() / PAGE;
        let places = header.spare()..header.spare() + pages;
        places.flat_map(u64::to_le_bytes).collect()
    }

    /// Reads the table.
    pub fn load(m: &mut Memory, header: &Header) -> Result<Pages> {
        let pages = header.heap_bytes() / PAGE;
        let mut bytes = vec![0; (pages * 8) as usize];
        // The engine changes it behind the cache.
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
        Ok(Pages {
            table: header.table(),
            base: header.data(),
            state: Mutex::new(State { places, spare }),
        })
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

    /// The parts of a range by page: the page, where the part begins in the pool, and where in the range.
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

    /// Reads what is there outside of transactions.
    pub fn read(&self, m: &mut Memory, offset: u64, out: &mut [u8]) -> Result<()> {
        for (page, within, part) in self.parts(offset, out.len())? {
            let place = self.state().places[page as usize];
            m.read(self.at(place) + within, &mut out[part])?;
        }
        Ok(())
    }
}

pub(crate) struct Shadow {
    log: Log,
    pages: Arc<Pages>,
    /// The places of the copies of pages.
    copies: BTreeMap<u64, u64>,
    /// Lines of copies that were stored to.
    dirty: Ranges,
    snapshots: bool,
}

impl Shadow {
    pub fn new(log: Log, pages: &Arc<Pages>, snapshots: bool) -> Shadow {
        Shadow {
            log,
            pages: pages.clone(),
            copies: BTreeMap::new(),
            dirty: Ranges::default(),
            snapshots,
        }
    }

    /// Where a page is for this transaction.
    fn place(&self, page: u64) -> u64 {
        match self.copies.get(&page) {
            Some(place) => *place,
            None => self.pages.state().places[page as usize],
        }
    }

    /// Copies a page, unless that was done.
    fn touch(&mut self, m: &mut Memory, page: u64) -> Result<()> {
        m.spend(m.options.costs.range)?;
        if !self.snapshots || self.copies.contains_key(&page) {
            return Ok(());
        }
        let (from, to) = {
            let mut state = self.pages.state();
            let Some(to) = state.spare.pop_first() else {
                let text = format!(
                    "the transaction has changed {} pages: there are no spare ones for more",
                    self.copies.len()
                );
                return Err(Error::Full(text));
            };
            (state.places[page as usize], to)
        };
        self.copies.insert(page, to);
        m.spend(m.options.costs.trap)?;
        let (from, to) = (self.pages.at(from), self.pages.at(to));
        if self.log.is_offloaded() {
            return self.log.copy(m, from, to, PAGE);
        }
        let mut old = vec![0; PAGE as usize];
        m.read_old(from, &mut old)?;
        m.stream(to, &old)
    }

    /// Pages that nobody uses any more.
    fn release(&self, m: &mut Memory, places: &[u64]) -> Result<()> {
        if self.log.is_offloaded() {
            // The engine will write there, behind the cache.
            for place in places {
                let at = self.pages.at(*place);
                m.drop_lines(at..at + PAGE)?;
            }
        }
        self.pages.state().spare.extend(places);
        Ok(())
    }

    fn switch(&mut self, m: &mut Memory) -> Result<()> {
        if self.copies.is_empty() {
            return self.log.commit(m, &self.dirty);
        }
        let entries: Vec<(u64, u64)> = self
            .copies
            .iter()
            .map(|(page, place)| (self.pages.table + page * 8, *place))
            .collect();
        // One entry is switched in a single store; several are undone by what is kept of them.
        let several = entries.len() > 1;
        let mut kept = Ranges::default();
        if several {
            entries.iter().for_each(|(at, _)| kept.add(*at..at + 8));
        }
        for range in self.dirty.iter() {
            m.flush(range)?;
        }
        if self.log.is_offloaded() {
            m.order()?;
        }
        for range in kept.iter() {
            self.log.keep(m, Kind::Undo, range)?;
        }
        let mut table = Ranges::default();
        if self.log.is_offloaded() {
            for (at, place) in &entries {
                self.log.switch(m, *at, *place)?;
            }
            if !several {
                return m.fence_commands();
            }
        } else {
            m.fence()?;
            for (at, place) in &entries {
                m.write(*at, &place.to_le_bytes())?;
                table.add(whole_lines(*at..at + 8));
            }
        }
        self.log.commit(m, &table)
    }
}

impl Mechanism for Shadow {
    fn begin(&mut self, _: &mut Memory, transaction: u64) -> Result<()> {
        self.log.begin(transaction)
    }

    fn add(&mut self, m: &mut Memory, range: Range<u64>) -> Result<()> {
        let parts = self
            .pages
            .parts(range.start, (range.end - range.start) as usize)?;
        m.consistently(|m| parts.iter().try_for_each(|(page, ..)| self.touch(m, *page)))
    }

    fn fresh(&mut self, _: Range<u64>) {}

    fn read(&self, m: &mut Memory, offset: u64, out: &mut [u8]) -> Result<()> {
        for (page, within, part) in self.pages.parts(offset, out.len())? {
            m.read(self.pages.at(self.place(page)) + within, &mut out[part])?;
        }
        Ok(())
    }

    fn write(&mut self, m: &mut Memory, offset: u64, data: &[u8]) -> Result<()> {
        for (page, within, part) in self.pages.parts(offset, data.len())? {
            m.consistently(|m| self.touch(m, page))?;
            let at = self.pages.at(self.place(page)) + within;
            self.dirty.add(whole_lines(at..at + part.len() as u64));
            m.write(at, &data[part])?;
        }
        Ok(())
    }

    fn commit(&mut self, m: &mut Memory) -> Result<()> {
        m.consistently(|m| self.switch(m))?;
        let mut old = Vec::new();
        for (page, place) in std::mem::take(&mut self.copies) {
            let mut state = self.pages.state();
            old.push(std::mem::replace(&mut state.places[page as usize], place));
        }
        self.dirty.clear();
        m.consistently(|m| self.release(m, &old))
    }

    fn abort(&mut self, m: &mut Memory) -> Result<()> {
        let places: Vec<u64> = std::mem::take(&mut self.copies).into_values().collect();
        self.dirty.clear();
        let none = Ranges::default();
        m.consistently(|m| {
            self.log.abort(m, &none)?;
            self.release(m, &places)?;
            // What was stored there may still be on its way to the cache, and has to leave it before the engine writes. Nobody else has a
            // transaction under way that could take these pages before.
            match self.log.is_offloaded() && !places.is_empty() {
                true => m.order(),
                false => Ok(()),
            }
        })
    }

    fn finish(&mut self, m: &mut Memory) -> Result<()> {
        self.log.finish(m)
    }
}
