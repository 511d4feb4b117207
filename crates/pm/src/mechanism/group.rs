// SPDX-License-Identifier: Apache-2.0

//! Groups of transactions that become durable together.
//!
//! A group is one transaction of the mechanism below: it begins with the first transaction of the
//! group, and commits when the group is settled. Until then a power loss undoes the whole group, so
//! a prefix of the transactions survives. The log of a group is void only when all of its data are
//! durable, since one commit does both.
//!
//! A transaction within a group is undone alone if it fails: its old bytes are kept in host memory.
//! If the mechanism has no room for a further transaction, the earlier ones are settled while it is
//! under way. Its stores are taken back for that, and made again.
//!
//! A group is of one thread. While several threads use a pool, an engine's commits are posted one
//! by one instead, and a later fence proves them. So they are if the engine reports them in host
//! memory and the program alone decides when to wait.

use std::ops::Range;

use spec::nearpm::{padded, LINE, MAX_BYTES};

use super::Mechanism;
use crate::memory::Memory;
use crate::ranges::Ranges;
use crate::{Error, Result};

/// What a transaction has done, so that it can be taken back and done again.
#[derive(Default)]
struct OwnChanges {
    added: Vec<Range<u64>>,
    fresh: Ranges,
    /// Old bytes of its stores, in their order.
    old: Vec<(u64, Vec<u8>)>,
    /// Bound of its bytes in a log that the commit writes.
    log_bytes: u64,
    any: bool,
}

pub(crate) struct Group {
    inner: Box<dyn Mechanism>,
    /// Bytes for records, if the commit makes all of them. Other mechanisms report a full log at
    /// the store that needs more.
    room: Option<u64>,
    /// Transactions have committed that are not durable yet.
    open: bool,
    /// Bound of the bytes of all transactions in a log that the commit writes.
    log_bytes: u64,
    /// The number of the transaction under way.
    under_way: Option<u64>,
    own: OwnChanges,
    /// The error of a commit of several transactions, which may have taken effect.
    commit_error: Option<Error>,
}

impl Group {
    pub fn new(inner: Box<dyn Mechanism>, room: Option<u64>) -> Group {
        Group {
            inner,
            room,
            open: false,
            log_bytes: 0,
            under_way: None,
            own: OwnChanges::default(),
            commit_error: None,
        }
    }

    /// Commits all transactions of the group, and the one under way if it is complete.
    fn commit_all(&mut self, m: &mut Memory) -> Result<()> {
        if let Err(error) = self.inner.commit(m) {
            self.commit_error = self.open.then(|| error.clone());
            return Err(error);
        }
        (self.open, self.log_bytes) = (false, 0);
        Ok(())
    }

    /// Takes the stores of the transaction under way back.
    fn take_back(&mut self, m: &mut Memory) -> Result<()> {
        for (at, old) in self.own.old.iter().rev() {
            self.inner.write(m, *at, old)?;
        }
        Ok(())
    }

    /// Makes the earlier transactions durable while another one is under way.
    fn settle_earlier(&mut self, m: &mut Memory, number: u64) -> Result<()> {
        let mut changed = Ranges::default();
        for (at, old) in &self.own.old {
            changed.add(*at..*at + old.len() as u64);
        }
        let mut new = Vec::new();
        for range in changed.iter() {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            self.inner.read(m, range.start, &mut bytes)?;
            new.push((range.start, bytes));
        }
        self.take_back(m)?;
        self.commit_all(m)?;
        m.settled = true;
        self.log_bytes = self.own.log_bytes;
        self.inner.begin(m, number)?;
        for range in self.own.fresh.iter() {
            self.inner.mark_fresh(range);
        }
        for range in &self.own.added {
            self.inner.add(m, range.clone())?;
        }
        for (at, bytes) in &new {
            self.inner.write(m, *at, bytes)?;
        }
        Ok(())
    }

    /// Runs a step of the transaction under way; if there is no room, once more after the earlier
    /// transactions are settled.
    fn with_room(
        &mut self,
        m: &mut Memory,
        step: impl Fn(&mut dyn Mechanism, &mut Memory) -> Result<()>,
    ) -> Result<()> {
        match (step(self.inner.as_mut(), m), self.under_way) {
            (Err(Error::Full(_)), Some(number)) if self.open => {
                self.settle_earlier(m, number)?;
                step(self.inner.as_mut(), m)
            }
            (done, _) => done,
        }
    }

    /// Reserves room in a log that the commit writes: a record for each store at most.
    fn reserve(&mut self, m: &mut Memory, range: &Range<u64>) -> Result<()> {
        let Some(room) = self.room else {
            return Ok(());
        };
        // Stores to new objects are in place.
        for part in self.own.fresh.missing(range.clone()) {
            let bytes = part.end - part.start;
            let needed = bytes.div_ceil(MAX_BYTES) * LINE + padded(bytes);
            self.own.log_bytes += needed;
            self.log_bytes += needed;
        }
        match self.under_way {
            Some(number) if self.open && self.log_bytes > room => self.settle_earlier(m, number),
            _ => Ok(()),
        }
    }

    /// Keeps old bytes of a store, except those of new objects.
    fn keep_old(&mut self, m: &mut Memory, range: Range<u64>) -> Result<()> {
        for part in self.own.fresh.missing(range) {
            let mut old = vec![0; (part.end - part.start) as usize];
            let (inner, own) = (&self.inner, &mut self.own);
            m.count_consistency_time(|m| {
                inner.read(m, part.start, &mut old)?;
                Ok(m.cpu.spend_copy(old.len() as u64)?)
            })?;
            own.old.push((part.start, old));
        }
        Ok(())
    }
}

impl Mechanism for Group {
    fn begin(&mut self, m: &mut Memory, transaction: u64) -> Result<()> {
        self.own = OwnChanges::default();
        if !self.open {
            self.inner.begin(m, transaction)?;
        }
        self.under_way = Some(transaction);
        Ok(())
    }

    fn add(&mut self, m: &mut Memory, range: Range<u64>) -> Result<()> {
        self.own.any = true;
        if self.open {
            self.own.added.push(range.clone());
        }
        self.with_room(m, |inner, m| inner.add(m, range.clone()))
    }

    fn mark_fresh(&mut self, range: Range<u64>) {
        self.own.any = true;
        self.own.fresh.add(range.clone());
        self.inner.mark_fresh(range);
    }

    fn read(&self, m: &mut Memory, offset: u64, out: &mut [u8]) -> Result<()> {
        self.inner.read(m, offset, out)
    }

    fn write(&mut self, m: &mut Memory, offset: u64, data: &[u8]) -> Result<()> {
        let range = offset..offset + data.len() as u64;
        self.own.any = true;
        self.reserve(m, &range)?;
        if self.open {
            self.keep_old(m, range)?;
        }
        self.with_room(m, |inner, m| inner.write(m, offset, data))
    }

    fn commit(&mut self, m: &mut Memory) -> Result<()> {
        self.commit_all(m)?;
        self.under_way = None;
        Ok(())
    }

    fn commit_later(&mut self, m: &mut Memory) -> Result<()> {
        let nothing = !self.open && !self.own.any;
        let too_long = self.room.is_some_and(|room| self.own.log_bytes > room);
        if nothing || too_long {
            return self.commit(m);
        }
        if (!m.alone || m.words) && !self.open {
            self.inner.commit_later(m)?;
            self.log_bytes = 0;
        } else {
            self.open = true;
            m.fetch_next_lines()?;
        }
        self.under_way = None;
        Ok(())
    }

    fn settle(&mut self, m: &mut Memory) -> Result<()> {
        match (self.open, self.under_way) {
            (false, _) => {}
            (true, Some(number)) => self.settle_earlier(m, number)?,
            (true, None) => self.commit_all(m)?,
        }
        self.inner.settle(m)
    }

    fn has_group(&self) -> bool {
        self.open
    }

    fn is_settled(&self, m: &Memory) -> bool {
        !self.open && self.inner.is_settled(m)
    }

    fn abort(&mut self, m: &mut Memory) -> Result<()> {
        self.under_way = None;
        if !self.open {
            return self.inner.abort(m);
        }
        // The pool has to be opened again.
        match self.commit_error.take() {
            Some(error) => Err(error),
            None => self.take_back(m),
        }
    }

    fn finish(&mut self, m: &mut Memory) -> Result<()> {
        self.inner.finish(m)
    }
}
