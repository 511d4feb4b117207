// SPDX-License-Identifier: Apache-2.0

//! Shadow paging: a page is copied before it is changed, and the copy takes its place at the
//! commit.
//!
//! New bytes stay in host memory until then, and go to the copies with non-temporal stores. The
//! pages that change places are written as a list; one store of 8 bytes, the list's number, commits
//! it. The page table follows with the next commit.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use spec::nearpm::LINE;

use super::{covering_lines, Mechanism, Pages};
use crate::log::Log;
use crate::memory::{lines, ConsistencyOperation, Memory, PREFETCH_LINES};
use crate::ranges::Ranges;
use crate::units::PAGE;
use crate::{Error, Result};

pub(crate) struct Shadow {
    log: Log,
    pages: Arc<Pages>,
    /// The places of the copies of pages.
    copies: BTreeMap<u64, u64>,
    /// Lines of these pages with new bytes, by their offset for programs.
    new_lines: BTreeMap<u64, [u8; LINE as usize]>,
    /// The first lines that the transaction has read, by the same offset.
    read: RefCell<Vec<u64>>,
    /// Newly allocated ranges.
    fresh: Ranges,
    /// Lines that were stored to without a copy.
    dirty: Ranges,
    /// The error of a commit whose outcome is not known.
    commit_error: Option<Error>,
    snapshots: bool,
}

impl Shadow {
    pub fn new(log: Log, pages: &Arc<Pages>, snapshots: bool) -> Shadow {
        Shadow {
            log,
            pages: pages.clone(),
            copies: BTreeMap::new(),
            new_lines: BTreeMap::new(),
            read: RefCell::default(),
            fresh: Ranges::default(),
            dirty: Ranges::default(),
            commit_error: None,
            snapshots,
        }
    }

    /// Copies a page, unless it has a copy. The engine copies at once; the CPU copies at the
    /// commit, with all new bytes.
    fn copy_page(&mut self, m: &mut Memory, page: u64) -> Result<()> {
        m.spend(m.options.costs.range)?;
        if !self.snapshots || self.copies.contains_key(&page) {
            return Ok(());
        }
        let offloaded = self.log.is_offloaded();
        let Some((from, to)) = self.pages.take_spare(m, page, offloaded)? else {
            return Err(Error::Full(format!(
                "the transaction has changed {} pages: there are no spare ones for more",
                self.copies.len()
            )));
        };
        m.spend(m.options.costs.trap)?;
        if offloaded {
            let (from, to) = (self.pages.place_offset(from), self.pages.place_offset(to));
            self.log.shadow_copy(m, from, to, PAGE)?;
        }
        // A page without its copy gets none: an engine may still write the copy, so its place is
        // not used again.
        self.copies.insert(page, to);
        Ok(())
    }

    /// Reads committed bytes.
    fn read_committed(&self, m: &mut Memory, offset: u64, out: &mut [u8]) -> Result<()> {
        m.count_consistency_time(|m| self.pages.spend_lookup(m, offset, out.len()))?;
        self.pages.read(m, offset, out)
    }

    /// Changes bytes within a line.
    fn change_line(&mut self, m: &mut Memory, range: Range<u64>, data: &[u8]) -> Result<()> {
        let line = range.start - range.start % LINE;
        if !self.new_lines.contains_key(&line) {
            let mut old = [0; LINE as usize];
            let fresh = self.fresh.missing(line..line + LINE).is_empty();
            if data.len() < old.len() && !fresh {
                // `copy_page` has spent the time of the look-up.
                self.pages.read(m, line, &mut old)?;
            }
            self.new_lines.insert(line, old);
        }
        if let Some(new) = self.new_lines.get_mut(&line) {
            let start = (range.start - line) as usize;
            new[start..start + data.len()].copy_from_slice(data);
        }
        Ok(())
    }

    /// The ranges that have to be persistent before the switch: the copies, and the list.
    fn ranges_before_switch(&self, list: &[(u64, u64)], number: u64) -> Ranges {
        let mut all = Ranges::default();
        for to in self.copies.values() {
            all.add(self.pages.place_offset(*to)..self.pages.place_offset(*to) + PAGE);
        }
        all.add(self.pages.switches.range(number, list.len()));
        all
    }

    /// Writes the content of the copies.
    fn fill_copies(&mut self, m: &mut Memory) -> Result<()> {
        if self.log.is_offloaded() {
            for (line, data) in &self.new_lines {
                if let Some(to) = self.copies.get(&self.pages.page(*line)?) {
                    m.stream(self.pages.place_offset(*to) + line % PAGE, data)?;
                }
            }
            return Ok(());
        }
        for (page, to) in &self.copies {
            let mut bytes = vec![0; PAGE as usize];
            let first = self.pages.page_offset(*page);
            m.timed(ConsistencyOperation::Copy, |m| {
                self.pages.read(m, first, &mut bytes)
            })?;
            for (line, data) in self.new_lines.range(first..first + PAGE) {
                let from = (line - first) as usize;
                bytes[from..from + data.len()].copy_from_slice(data);
            }
            m.stream(self.pages.place_offset(*to), &bytes)?;
        }
        Ok(())
    }

    fn switch_pages(&mut self, m: &mut Memory) -> Result<()> {
        if self.copies.is_empty() {
            return self.log.commit(m, &self.dirty);
        }
        let number = self.pages.begin_list(m)?;
        match self.log.is_offloaded() {
            true => self.fill_copies(m)?,
            false => m.count_creation_time(|m| self.fill_copies(m))?,
        }
        let list: Vec<(u64, u64)> = self.copies.iter().map(|(page, to)| (*page, *to)).collect();
        let switches = &self.pages.switches;
        switches.write(m, number, &list)?;
        if self.log.is_offloaded() {
            let before = self.ranges_before_switch(&list, number);
            let device = self
                .log
                .commit_switch(m, switches.number_offset(), number, &before)?;
            self.prefetch_changed(m)?;
            m.fence_commands(device)?;
        } else {
            m.fence_between()?;
            m.write(switches.number_offset(), &number.to_le_bytes())?;
            m.flush(switches.number_offset()..switches.number_offset() + 8)?;
            self.prefetch_changed(m)?;
            m.fence()?;
        }
        self.pages.record_list(list, number);
        Ok(())
    }

    /// Prefetches changed lines, those first that the transaction has read: the next transaction
    /// most likely needs them.
    fn prefetch_changed(&self, m: &mut Memory) -> Result<()> {
        let read = self.read.borrow();
        let offloaded = self.log.is_offloaded();
        // Where an engine has copied the page, other lines are read at the former place.
        let first = read
            .iter()
            .filter(|line| !offloaded || self.new_lines.contains_key(line));
        let rest = self.new_lines.keys().filter(|line| !read.contains(line));
        for line in first.chain(rest).take(PREFETCH_LINES) {
            if let Some(to) = self.copies.get(&self.pages.page(*line)?) {
                self.pages.prefetch_line(m, *to, line % PAGE)?;
            }
        }
        Ok(())
    }

    /// Records lines as read.
    fn note_read(&self, range: Range<u64>) {
        let read = &mut *self.read.borrow_mut();
        for line in lines(range) {
            if read.len() < PREFETCH_LINES && !read.contains(&line) {
                read.push(line);
            }
        }
    }

    /// A bit for each changed line of a page.
    fn changed_lines(&self, page: u64) -> u64 {
        let first = self.pages.page_offset(page);
        let new_lines = self.new_lines.range(first..first + PAGE);
        new_lines.fold(0, |bits, (line, _)| bits | 1 << ((line - first) / LINE))
    }

    fn clear(&mut self) {
        self.copies.clear();
        self.new_lines.clear();
        self.read.borrow_mut().clear();
        self.fresh.clear();
        self.dirty.clear();
    }
}

impl Mechanism for Shadow {
    fn begin(&mut self, m: &mut Memory, transaction: u64) -> Result<()> {
        m.count_consistency_time(|m| self.log.begin(m, transaction))
    }

    fn add(&mut self, m: &mut Memory, range: Range<u64>) -> Result<()> {
        let parts = self
            .pages
            .split_by_page(range.start, (range.end - range.start) as usize)?;
        let copy_all = |m: &mut Memory| {
            let mut parts = parts.iter();
            parts.try_for_each(|(page, ..)| self.copy_page(m, *page))
        };
        m.count_consistency_time(|m| m.count_creation_time(copy_all))
    }

    fn mark_fresh(&mut self, range: Range<u64>) {
        self.fresh.add(range);
    }

    fn read(&self, m: &mut Memory, offset: u64, out: &mut [u8]) -> Result<()> {
        let end = offset + out.len() as u64;
        self.note_read(offset..end);
        if self.new_lines.is_empty() {
            return self.read_committed(m, offset, out);
        }
        m.count_consistency_time(|m| m.spend(m.options.costs.range))?;
        let mut old = Ranges::default();
        for line in lines(offset..end) {
            let (from, to) = (line.max(offset), (line + LINE).min(end));
            let of = |base: u64| (from - base) as usize..(to - base) as usize;
            match self.new_lines.get(&line) {
                Some(new) => out[of(offset)].copy_from_slice(&new[of(line)]),
                None => old.add(from..to),
            }
        }
        let mut old = old.iter();
        old.try_for_each(|Range { start, end }| {
            let part = (start - offset) as usize..(end - offset) as usize;
            self.read_committed(m, start, &mut out[part])
        })
    }

    fn write(&mut self, m: &mut Memory, offset: u64, data: &[u8]) -> Result<()> {
        for (page, within, part) in self.pages.split_by_page(offset, data.len())? {
            let copy = |m: &mut Memory| self.copy_page(m, page);
            m.count_consistency_time(|m| m.count_creation_time(copy))?;
            if !self.copies.contains_key(&page) {
                let at = self.pages.change_in_place(page, within, part.len());
                self.dirty.add(covering_lines(at..at + part.len() as u64));
                m.write(at, &data[part])?;
                continue;
            }
            m.count_consistency_time(|m| Ok(m.cpu.spend_copy(part.len() as u64)?))?;
            let mut from = part.start;
            while from < part.end {
                let at = offset + from as u64;
                let len = ((LINE - at % LINE) as usize).min(part.end - from);
                self.change_line(m, at..at + len as u64, &data[from..from + len])?;
                from += len;
            }
        }
        Ok(())
    }

    fn commit(&mut self, m: &mut Memory) -> Result<()> {
        if let Err(error) = m.count_consistency_time(|m| self.switch_pages(m)) {
            self.commit_error = Some(error.clone());
            return Err(error);
        }
        let offloaded = self.log.is_offloaded();
        for (page, to) in &self.copies {
            self.pages
                .record_move(*page, *to, self.changed_lines(*page), offloaded);
        }
        self.clear();
        Ok(())
    }

    fn abort(&mut self, _: &mut Memory) -> Result<()> {
        // The list's number may be stored or on its way. So places that it names are not spare, and
        // the next list can't have its number.
        if let Some(error) = self.commit_error.take() {
            return Err(error);
        }
        let taken = std::mem::take(&mut self.copies);
        self.pages.return_spares(taken.into_values());
        self.clear();
        Ok(())
    }

    fn finish(&mut self, m: &mut Memory) -> Result<()> {
        self.log.finish(m)
    }
}
