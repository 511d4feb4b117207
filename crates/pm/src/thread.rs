// SPDX-License-Identifier: Apache-2.0

//! Threads of a pool, and their transactions.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use host::Cpu;
use sim::Time;

use crate::durability::Durability;
use crate::heap::{self, HeapChange};
use crate::lock::LockGuard;
use crate::mechanism::Mechanism;
use crate::memory::{self, Memory};
use crate::pool::PoolInner;
use crate::progress::Progress;
use crate::{Counts, Error, Lock, Ptr, Result, Ticket, Value};

/// A thread that works on a pool, with a private log.
pub struct Thread {
    pool: Arc<PoolInner>,
    number: u8,
    /// Present until this is dropped.
    mechanism: Option<Box<dyn Mechanism>>,
    memory: Memory,
    /// A transaction is under way.
    active: bool,
    /// The heap in the pool: first byte, and end.
    heap: (u64, u64),
    durability: Durability,
    /// The engine reports in host memory how far transactions are durable.
    progress: Option<Progress>,
    /// Number of the last transaction.
    transaction: u64,
}

/// Transactions like the last one whose new objects' lines are fetched, if nothing waits.
const TRANSACTIONS_AHEAD: usize = 3;
/// Pause between two loads of a progress word.
const POLL_INTERVAL: Time = Time::ns(20);
/// After this time without a word, a load of the device proves that transactions are durable.
const WORD_TIMEOUT: Time = Time::us(2);

impl Drop for Thread {
    fn drop(&mut self) {
        if !self.active && self.sync().is_err() {
            // Without power nothing becomes durable any more.
            self.pool.mark_unusable();
        }
        self.set_pending(false);
        match self.mechanism.take() {
            Some(mechanism) if !self.active => self.pool.return_mechanism(self.number, mechanism),
            _ => self.pool.mark_unusable(),
        }
    }
}

/// The state of a transaction under way. If it is dropped before the end, by a panic, the pool has
/// to be opened again.
#[derive(Default)]
pub(crate) struct ActiveTransaction {
    pool: Option<Arc<PoolInner>>,
    ended: bool,
    /// The pool's pages, if the mechanism protects these.
    held: Option<LockGuard>,
    began: Time,
    /// It may become durable later.
    later: bool,
    /// It has changed something.
    changed: bool,
    allocated: Vec<HeapChange>,
    freed: Vec<HeapChange>,
    /// Allocated and freed by this transaction. They stay set aside until it ends, since their
    /// logged bytes may still be written back.
    discarded: Vec<HeapChange>,
    /// Make chunks those of small objects.
    chunks: Vec<heap::MetadataStore>,
    /// The commit is not possible: a nested transaction has failed.
    failed: bool,
}

impl Drop for ActiveTransaction {
    fn drop(&mut self) {
        // The lock on the pool's pages is released after this.
        if let Some(pool) = &self.pool {
            pool.under_way.fetch_sub(1, Ordering::Relaxed);
            if !self.ended {
                pool.mark_unusable();
            }
        }
    }
}

impl ActiveTransaction {
    /// Prevents the commit.
    pub fn fail(&mut self) {
        self.failed = true;
    }
}

/// A transaction under way.
pub struct Transaction<'a> {
    thread: &'a mut Thread,
    work: &'a mut ActiveTransaction,
}

impl Thread {
    pub(crate) fn new(
        pool: &Arc<PoolInner>,
        number: u8,
        mechanism: Box<dyn Mechanism>,
        memory: Memory,
        progress: Option<Progress>,
    ) -> Thread {
        let mut memory = memory;
        memory.words = progress.is_some() && memory.options.group_commit.is_none();
        let heap = {
            let header = pool.header();
            memory.threads = number * header.turns()..(number + 1) * header.turns();
            (header.data(), header.data() + header.heap_bytes())
        };
        Thread {
            pool: pool.clone(),
            number,
            mechanism: Some(mechanism),
            memory,
            active: false,
            heap,
            durability: Durability::default(),
            progress,
            transaction: 0,
        }
    }

    /// Its CPU.
    pub fn cpu(&self) -> &Cpu {
        &self.memory.cpu
    }

    /// Its counters since it began.
    pub fn counts(&self) -> Counts {
        self.memory.counts
    }

    fn mechanism_and_memory(&mut self) -> Result<(&mut dyn Mechanism, &mut Memory)> {
        match &mut self.mechanism {
            Some(mechanism) => Ok((mechanism.as_mut(), &mut self.memory)),
            None => Err(Error::Invalid("the thread has ended".into())),
        }
    }

    /// Runs a transaction. If `body` succeeds, all of its stores, allocations and frees are
    /// committed, else none. On return it is durable, and so are all before it.
    pub fn run<R, E: From<Error>>(
        &mut self,
        body: impl FnOnce(&mut Transaction<'_>) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        let mut work = self.begin(true)?;
        let result = body(&mut self.transaction(&mut work));
        self.end(work, result)
    }

    /// Runs a transaction that becomes durable later: [`Thread::wait`] waits for its ticket. After
    /// a power loss the transactions of a thread up to one of them are found: that of the last
    /// durable ticket, or a later one.
    ///
    /// While they are not durable, [`Pool::thread`](crate::Pool::thread) refuses a second thread.
    /// Some transactions are durable on return: those of a pool over several devices, and those of
    /// a CPU as the executor while several threads use the pool.
    pub fn run_later<R, E: From<Error>>(
        &mut self,
        body: impl FnOnce(&mut Transaction<'_>) -> std::result::Result<R, E>,
    ) -> std::result::Result<(R, Ticket), E> {
        let mut work = self.begin(true)?;
        work.later = true;
        let result = body(&mut self.transaction(&mut work));
        let value = self.end(work, result)?;
        Ok((value, self.durability.last()))
    }

    /// Commits a transaction that becomes durable later.
    pub(crate) fn end_later(&mut self, mut work: ActiveTransaction) -> Result<Ticket> {
        work.later = true;
        self.end(work, Ok::<_, Error>(()))?;
        Ok(self.durability.last())
    }

    /// A power loss ends the transactions that were not durable. What would make them so would
    /// change the pool as it was recovered since.
    fn check_usable(&self) -> Result<()> {
        if self.durability.pending() > 0 {
            self.pool.check_alive()?;
        }
        self.pool.check_usable()
    }

    /// Learns how far transactions are durable, without waiting: loads the word of host memory that
    /// the engine writes. Without such a word nothing new is learned, and no time passes.
    pub fn poll(&mut self) -> Result<Ticket> {
        if self.durability.pending() == 0 {
            return Ok(self.durable());
        }
        self.check_usable()?;
        let device = self.pool.devices.number(0);
        let begin = self.memory.cpu.now();
        let learned = match &mut self.progress {
            Some(progress) => progress.poll(&self.memory.cpu, device),
            None => Ok(None),
        };
        self.memory.counts.consistency += self.memory.cpu.now().saturating_sub(begin);
        match learned {
            Ok(None) => {}
            Ok(Some(ticket)) => {
                if ticket == self.durability.last() {
                    self.memory.unproven = false;
                }
                self.record_durable(ticket);
            }
            Err(error) => {
                self.pool.mark_unusable();
                return Err(error);
            }
        }
        Ok(self.durable())
    }

    /// Waits until fewer than `most` transactions are not durable: by the engine's word, and if
    /// that takes long until all are durable.
    fn wait_below(&mut self, most: u64) -> Result<()> {
        if self.progress.is_some() {
            let limit = self.memory.cpu.now() + WORD_TIMEOUT;
            loop {
                self.poll()?;
                if self.durability.pending() < most {
                    return Ok(());
                }
                if self.memory.cpu.now() >= limit {
                    break;
                }
                let next = self.memory.cpu.now() + POLL_INTERVAL;
                self.memory.cpu.sleep_until(next)?;
                self.memory.counts.consistency += POLL_INTERVAL;
            }
        }
        self.sync()
    }

    /// True if a transaction is known to be durable. Takes no time.
    pub fn is_durable(&self, ticket: Ticket) -> bool {
        ticket <= self.durable()
    }

    /// The last ticket that is known to be durable.
    pub fn durable(&self) -> Ticket {
        match self.memory.options.proofs {
            true => self.durability.durable(),
            false => self.durability.last(),
        }
    }

    /// The ticket of the last transaction.
    pub fn last_ticket(&self) -> Ticket {
        self.durability.last()
    }

    /// Waits until a transaction is durable.
    pub fn wait(&mut self, ticket: Ticket) -> Result<()> {
        self.check_ticket(ticket)?;
        if !self.is_durable(ticket) {
            self.poll()?;
        }
        match self.is_durable(ticket) {
            true => Ok(()),
            false => self.sync(),
        }
    }

    /// Waits until all transactions of this thread are durable.
    pub fn sync(&mut self) -> Result<()> {
        self.poll()?;
        if self.durability.pending() == 0 {
            return Ok(());
        }
        self.check_usable()?;
        let settled = {
            let (mechanism, memory) = self.mechanism_and_memory()?;
            mechanism.settle(memory)
        };
        if let Err(error) = settled {
            self.pool.mark_unusable();
            return Err(error);
        }
        self.record_durable(self.durability.last());
        Ok(())
    }

    /// Calls a function once, when a transaction is durable. The call is made by the function of
    /// this thread that learns it: `wait`, `sync`, or a transaction. It is made at once for a
    /// durable one.
    pub fn when_durable(
        &mut self,
        ticket: Ticket,
        callback: impl FnOnce(Ticket) + Send + 'static,
    ) -> Result<()> {
        self.check_ticket(ticket)?;
        match self.is_durable(ticket) {
            true => callback(ticket),
            false => self.durability.add_callback(ticket, Box::new(callback)),
        }
        Ok(())
    }

    /// An error for a ticket that this thread has not given out.
    fn check_ticket(&self, ticket: Ticket) -> Result<()> {
        let last = self.durability.last();
        match ticket <= last {
            true => Ok(()),
            false => Err(Error::Invalid(format!(
                "ticket {}: allowed are tickets of this thread, up to {}",
                ticket.number(),
                last.number()
            ))),
        }
    }

    /// The one place that learns how far transactions are durable.
    fn record_durable(&mut self, to: Ticket) {
        let due = self.durability.advance(to);
        if self.durability.pending() == 0 {
            if let Some(progress) = &mut self.progress {
                progress.clear();
            }
            self.set_pending(false);
            self.release_freed();
        }
        due.into_iter()
            .for_each(|(ticket, callback)| callback(ticket));
    }

    /// Makes the places of freed objects free, once the frees are durable.
    fn release_freed(&mut self) {
        let freed = std::mem::take(&mut self.durability.freed);
        if !freed.is_empty() {
            let mut heap = self.pool.heap();
            freed.into_iter().for_each(|offset| heap.mark_free(offset));
        }
    }

    /// Tells the pool whether this thread has transactions that are not durable.
    fn set_pending(&mut self, pending: bool) {
        let grouped = self.has_group();
        self.pool.set_pending(self.number, pending, grouped);
    }

    /// True if transactions are a group that a power loss would undo.
    fn has_group(&self) -> bool {
        let mechanism = self.mechanism.as_ref();
        mechanism.is_some_and(|mechanism| mechanism.has_group())
    }

    /// Numbers a committed transaction, and waits if `group_commit` says so.
    fn record_commit(&mut self, later: bool, changed: bool) -> Result<()> {
        let settled_before = std::mem::take(&mut self.memory.settled);
        if settled_before {
            self.record_durable(self.durability.last());
        }
        if changed {
            self.durability.commit();
        }
        let posted = std::mem::take(&mut self.memory.posted);
        if let Some(progress) = self.progress.as_mut().filter(|_| posted) {
            progress.add(self.transaction, self.durability.last());
        }
        let (mechanism, memory) = self.mechanism_and_memory()?;
        let settled = mechanism.is_settled(memory);
        if settled {
            self.record_durable(self.durability.last());
        }
        self.set_pending(!settled);
        let most = self.memory.options.group_commit;
        let many = most.is_some_and(|most| self.durability.pending() >= most);
        match settled || later && !many {
            true => Ok(()),
            // One transaction alone is proven sooner by a load of the device.
            false if later && !self.has_group() && most != Some(1) => {
                self.wait_below(most.unwrap_or(1))
            }
            false => self.sync(),
        }
    }

    /// The interface of a transaction that has begun.
    pub(crate) fn transaction<'a>(
        &'a mut self,
        work: &'a mut ActiveTransaction,
    ) -> Transaction<'a> {
        Transaction { thread: self, work }
    }

    /// Commits a transaction if `result` is a success, else aborts it.
    pub(crate) fn end<R, E: From<Error>>(
        &mut self,
        mut work: ActiveTransaction,
        mut result: std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        let mut transaction = self.transaction(&mut work);
        if result.is_ok() {
            let ended = match transaction.work.failed {
                true => Err(Error::Aborted),
                false => transaction.commit(),
            };
            if let Err(error) = ended {
                let lost = matches!(error, Error::Host(host::Error::Lost { .. }));
                if lost && transaction.thread.memory.options.engine.is_some() {
                    // The device may have accepted the commit without the data before it.
                    transaction.thread.pool.mark_unusable();
                }
                result = Err(error.into());
            }
        }
        if result.is_err() {
            if let Err(error) = transaction.abort() {
                // The pool has to be opened again: that outweighs the reason for the abort.
                self.pool.mark_unusable();
                result = Err(error.into());
            }
        }
        let (began, later, changed) = (work.began, work.later, work.changed);
        work.ended = true;
        drop(work);
        if result.is_ok() {
            if let Err(error) = self.record_commit(later, changed) {
                result = Err(error.into());
            }
        }
        let time = self.memory.cpu.now().saturating_sub(began);
        self.memory.counts.time += time;
        result
    }

    /// Begins a transaction. With a paged mechanism it waits for its turn, or is refused if another
    /// one is under way.
    pub(crate) fn begin(&mut self, waits: bool) -> Result<ActiveTransaction> {
        let began = self.memory.cpu.now();
        self.check_usable()?;
        let takes_turns = {
            let header = self.pool.header();
            header.layout.mechanism.is_paged() && !header.layout.tracked
        };
        let held = match takes_turns {
            true => Some(self.pool.exclusive.clone()),
            false => None,
        };
        let take = |lock: Lock| match waits || !lock.is_held() {
            true => lock.acquire(&self.memory.cpu),
            false => Err(Error::Invalid(
                "another transaction of the pool is under way: where pages are protected they \
                 take turns"
                    .into(),
            )),
        };
        let held = held.map(take).transpose()?;
        self.memory.spend(self.memory.options.costs.transaction)?;
        let number = self.pool.next_transaction();
        let (mechanism, memory) = self.mechanism_and_memory()?;
        mechanism.begin(memory, number)?;
        self.active = true;
        self.transaction = number;
        self.memory.posted = false;
        let mut work = ActiveTransaction::default();
        self.pool.under_way.fetch_add(1, Ordering::Relaxed);
        work.pool = Some(self.pool.clone());
        work.held = held;
        work.began = began;
        Ok(work)
    }

    /// Reads bytes outside of transactions.
    pub fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.check_range(offset, out.len())?;
        let (mechanism, memory) = self.mechanism_and_memory()?;
        match mechanism.has_group() {
            true => mechanism.read(memory, offset, out),
            false => self.pool.read(&mut self.memory, offset, out),
        }
    }

    /// Reads a value outside of transactions.
    pub fn get<T: Value>(&mut self, at: Ptr<T>) -> Result<T> {
        let mut bytes = vec![0; T::BYTES];
        self.read(at.offset(), &mut bytes)?;
        Ok(T::decode(&bytes))
    }

    /// The root pointer.
    pub fn root<T>(&mut self) -> Result<Ptr<T>> {
        let root = heap::root(self.heap.0);
        self.get(Ptr::at(root))
    }

    /// Waits until an engine has done all work of this thread. An error if it has refused any of
    /// it.
    pub fn finish(&mut self) -> Result<()> {
        self.sync()?;
        let (mechanism, memory) = self.mechanism_and_memory()?;
        mechanism.finish(memory)
    }

    /// True if transactions may become durable later. With several devices a power loss would leave
    /// different transactions on them. With the CPU as the executor it undoes the transactions of a
    /// group, so no other thread may have changed their bytes since.
    fn may_commit_later(&self) -> bool {
        match self.memory.options.engine.is_some() {
            true => self.pool.devices.count() == 1,
            false => self.pool.open_threads() == 1,
        }
    }

    /// Allocates an object. If there is no room, frees are made durable first.
    fn allocate(&mut self, bytes: u64) -> Result<HeapChange> {
        let found = self.pool.heap().allocate(bytes, self.number);
        if !matches!(found, Err(Error::Full(_))) || self.durability.freed.is_empty() {
            return found;
        }
        let (mechanism, memory) = self.mechanism_and_memory()?;
        mechanism.settle(memory)?;
        self.record_durable(self.durability.last());
        self.pool.heap().allocate(bytes, self.number)
    }

    /// An error for a range that programs may not access.
    pub(crate) fn check_range(&self, offset: u64, len: usize) -> Result<()> {
        let (start, end) = self.heap;
        let last = offset.checked_add(len as u64);
        let inside =
            last.is_some_and(|last| last <= end && heap::is_for_programs(start, &(offset..last)));
        match inside {
            true => Ok(()),
            false => Err(Error::Invalid(format!(
                "{len} bytes at {offset:#x}: allowed are objects between {start:#x} and {end:#x}"
            ))),
        }
    }
}

impl Transaction<'_> {
    /// The CPU that it runs on.
    pub fn cpu(&self) -> &Cpu {
        &self.thread.memory.cpu
    }

    /// Runs a nested transaction. If it fails, so does this one, whatever its closure returns.
    pub fn nested<R, E: From<Error>>(
        &mut self,
        body: impl FnOnce(&mut Transaction<'_>) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        let result = body(self);
        if result.is_err() {
            self.work.fail();
        }
        result
    }

    /// Announces changes to a range, which is logged as a whole. Stores without it are logged store
    /// by store.
    pub fn add_range(&mut self, offset: u64, bytes: u64) -> Result<()> {
        self.thread.check_range(offset, bytes as usize)?;
        if bytes == 0 {
            return Ok(());
        }
        self.work.changed = true;
        let (mechanism, memory) = self.thread.mechanism_and_memory()?;
        mechanism.add(memory, offset..offset + bytes)
    }

    /// Announces changes to a value.
    pub fn add<T: Value>(&mut self, at: Ptr<T>) -> Result<()> {
        self.add_range(at.offset(), T::BYTES as u64)
    }

    /// Reads bytes, with the stores of this transaction.
    pub fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.thread.check_range(offset, out.len())?;
        let (mechanism, memory) = self.thread.mechanism_and_memory()?;
        mechanism.read(memory, offset, out)
    }

    /// Stores bytes.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.thread.check_range(offset, data.len())?;
        if data.is_empty() {
            return Ok(());
        }
        self.work.changed = true;
        let (mechanism, memory) = self.thread.mechanism_and_memory()?;
        mechanism.write(memory, offset, data)
    }

    /// Reads a value.
    pub fn get<T: Value>(&mut self, at: Ptr<T>) -> Result<T> {
        let mut bytes = vec![0; T::BYTES];
        self.read(at.offset(), &mut bytes)?;
        Ok(T::decode(&bytes))
    }

    /// Stores a value.
    pub fn set<T: Value>(&mut self, at: Ptr<T>, value: &T) -> Result<()> {
        let mut bytes = vec![0; T::BYTES];
        value.encode(&mut bytes);
        self.write(at.offset(), &bytes)
    }

    /// The root pointer.
    pub fn root<T>(&mut self) -> Result<Ptr<T>> {
        let root = heap::root(self.thread.heap.0);
        self.get(Ptr::at(root))
    }

    /// Sets the root pointer.
    pub fn set_root<T>(&mut self, to: Ptr<T>) -> Result<()> {
        if !to.is_null() {
            self.thread.check_range(to.offset(), 0)?;
        }
        let root = heap::root(self.thread.heap.0);
        self.set(Ptr::at(root), &to)
    }

    /// Allocates an object, in lines that no other object has. Its content is undefined.
    pub fn alloc_bytes(&mut self, bytes: u64) -> Result<Ptr<u8>> {
        let thread = &mut *self.thread;
        thread.memory.spend(thread.memory.options.costs.alloc)?;
        self.work.changed = true;
        let mut change = thread.allocate(bytes)?;
        let offset = change.offset;
        let changes = [Some(change.state.clone()), change.chunk.clone()];
        let object = offset..offset + change.bytes;
        self.work.chunks.extend(change.chunk.take());
        self.work.allocated.push(change);
        let (mechanism, memory) = thread.mechanism_and_memory()?;
        mechanism.mark_fresh(object);
        // Bytes that the commit will change are logged now, so that they share a fence with the
        // next record.
        for (at, data) in changes.into_iter().flatten() {
            mechanism.add(memory, at..at + data.len() as u64)?;
        }
        memory.counts.allocations += 1;
        Ok(Ptr::at(offset))
    }

    /// Allocates a value.
    pub fn alloc<T: Value>(&mut self) -> Result<Ptr<T>> {
        Ok(self.alloc_bytes(T::BYTES as u64)?.field(0))
    }

    /// Allocates and stores a value.
    pub fn create<T: Value>(&mut self, value: &T) -> Result<Ptr<T>> {
        let at = self.alloc()?;
        self.set(at, value)?;
        Ok(at)
    }

    /// Frees an object when the transaction commits.
    pub fn free<T>(&mut self, at: Ptr<T>) -> Result<()> {
        let thread = &mut *self.thread;
        thread.memory.spend(thread.memory.options.costs.alloc)?;
        let own = self
            .work
            .allocated
            .iter()
            .position(|g| g.offset == at.offset());
        if let Some(n) = own {
            self.work.discarded.push(self.work.allocated.remove(n));
            return Ok(());
        }
        self.work.changed = true;
        let change = thread.pool.heap().free(at.offset())?;
        let (own, data) = change.state.clone();
        self.work.freed.push(change);
        let (mechanism, memory) = thread.mechanism_and_memory()?;
        mechanism.add(memory, own..own + data.len() as u64)
    }

    fn commit(&mut self) -> Result<()> {
        let (mechanism, memory) = self.thread.mechanism_and_memory()?;
        let changes = self
            .work
            .allocated
            .iter()
            .chain(&self.work.freed)
            .map(|change| &change.state);
        for (at, data) in self.work.chunks.iter().chain(changes) {
            mechanism.write(memory, *at, data)?;
        }
        let later = self.work.later && self.thread.may_commit_later();
        let next = self.lines_of_next_objects(later);
        let pool = self.thread.pool.clone();
        let (mechanism, memory) = self.thread.mechanism_and_memory()?;
        memory.alone = pool.open_threads() == 1;
        memory.fetch_with_fence(next);
        match later {
            true => mechanism.commit_later(memory)?,
            false => mechanism.commit(memory)?,
        }
        memory.counts.transactions += 1;
        if memory.unproven && !memory.alone {
            // Other threads may see its changes from here on, and their commands must not overtake
            // its commit.
            memory.fence_posted()?;
        }
        self.apply_heap_changes(true);
        Ok(())
    }

    /// The lines that the objects of a transaction like this one will get. Their stores would wait
    /// for the lines, and an order fence would wait for these stores. With shadow paging, stores go
    /// to host memory.
    fn lines_of_next_objects(&self, later: bool) -> Vec<u64> {
        if self.thread.pool.pages.is_some() {
            return Vec::new();
        }
        let heap = self.thread.pool.heap();
        let mut sizes: Vec<u64> = Vec::new();
        let mut lines = Vec::new();
        // Nothing waits for these lines, so those of further transactions are fetched, too.
        let ahead = if later { TRANSACTIONS_AHEAD } else { 1 };
        let allocated = std::iter::repeat_n(&self.work.allocated, ahead).flatten();
        for change in allocated {
            let before = sizes.iter().filter(|size| **size == change.bytes).count();
            sizes.push(change.bytes);
            let place = heap.next_place(change.bytes, self.thread.number, before);
            let all = place.map(|at| memory::lines(at..at + change.bytes));
            lines.extend(all.into_iter().flatten());
            if lines.len() >= memory::PREFETCH_LINES {
                break;
            }
        }
        lines.truncate(memory::PREFETCH_LINES);
        lines
    }

    fn abort(&mut self) -> Result<()> {
        let (mechanism, memory) = self.thread.mechanism_and_memory()?;
        mechanism.abort(memory)?;
        memory.counts.aborts += 1;
        self.apply_heap_changes(false);
        Ok(())
    }

    /// Makes the transaction's allocations and frees final, or reverts them.
    fn apply_heap_changes(&mut self, committed: bool) {
        let thread = &mut *self.thread;
        thread.active = false;
        let later = committed && thread.has_group();
        let none = [&self.work.allocated, &self.work.freed, &self.work.discarded]
            .into_iter()
            .all(Vec::is_empty);
        if none {
            return;
        }
        let mut heap = thread.pool.heap();
        let (stay, leave) = match committed {
            true => (&self.work.allocated, &self.work.freed),
            false => (&self.work.freed, &self.work.allocated),
        };
        stay.iter().for_each(|change| heap.mark_used(change.offset));
        let discarded = self.work.discarded.iter();
        discarded.for_each(|change| heap.mark_free(change.offset));
        let offsets = leave.iter().map(|change| change.offset);
        // A power loss that undoes the group brings an object back: its bytes stay. A commit of its
        // own is executed before later stores, so the bytes may change at once.
        match later {
            true => thread.durability.freed.extend(offsets),
            false => offsets.for_each(|offset| heap.mark_free(offset)),
        }
        heap.end_transaction(thread.number, committed);
    }
}
