// SPDX-License-Identifier: Apache-2.0

//! Persistent memory on a simulated host in this process: systems, pools, and threads with
//! transactions.

use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use host::{CutScope, Fence};
use pm::session::{PoolUse, Session, SessionPool, SessionThread};
use pm::{Layout, Ticket};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;
use sim::Time;

use crate::arguments::zeroed;
use crate::build::Design;
use crate::document::Document;
use crate::error::raise;

/// Serialises the calls of a system. It is held only while Python's lock is released. So a thread
/// that waits for it with Python's lock, such as a destructor, waits for no thread that needs
/// Python's lock.
type CallLock = Arc<Mutex<()>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An object of a system, until it is closed.
struct SystemPart<T> {
    call_lock: CallLock,
    value: Mutex<Option<T>>,
    what: &'static str,
    /// The process that created it. A forked process must not use it, as its locks may be held
    /// forever.
    process: u32,
}

impl<T: Send> SystemPart<T> {
    fn new(call_lock: &CallLock, what: &'static str, value: T) -> SystemPart<T> {
        SystemPart {
            call_lock: call_lock.clone(),
            value: Mutex::new(Some(value)),
            what,
            process: process::id(),
        }
    }

    fn check_process(&self) -> PyResult<()> {
        match self.process == process::id() {
            true => Ok(()),
            false => Err(raise(format!(
                "the {} belongs to process {}, which has forked this one off: make one of this \
                    process's own",
                self.what, self.process
            ))),
        }
    }

    /// Does something with it, call_lock.
    fn call<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut T) -> pm::Result<R> + Send,
    ) -> PyResult<R> {
        self.check_process()?;
        py.detach(|| {
            let _guard = lock(&self.call_lock);
            lock(&self.value).as_mut().map(act)
        })
        .unwrap_or_else(|| {
            let text = format!("the {} is closed: open it again", self.what);
            Err(pm::Error::Invalid(text))
        })
        .map_err(raise)
    }

    /// Closes the object, once.
    fn close<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Option<T>) -> pm::Result<R> + Send,
    ) -> PyResult<R> {
        self.check_process()?;
        py.detach(|| {
            let _guard = lock(&self.call_lock);
            act(&mut lock(&self.value))
        })
        .map_err(raise)
    }
}

impl<T> Drop for SystemPart<T> {
    fn drop(&mut self) {
        if self.process != process::id() {
            let value = self.value.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(value.take());
            return;
        }
        // A transaction in flight is aborted, which takes simulated time.
        let _guard = lock(&self.call_lock);
        lock(&self.value).take();
    }
}

fn usage(
    offload: bool,
    fence: &str,
    number: u8,
    engine_recovers: bool,
    group_commit: Option<u64>,
    words: bool,
) -> PyResult<PoolUse> {
    let fence = match fence {
        "read_back" => Fence::ReadBack,
        "posted" => Fence::Posted,
        "completion" => Fence::Completion,
        other => {
            return Err(raise(format!(
                "fence = {other:?}: allowed are read_back, posted, completion"
            )))
        }
    };
    Ok(PoolUse {
        offload,
        fence,
        number,
        engine_recovers,
        group_commit,
        words,
    })
}

/// A host with one device, or with several devices that its pools span. Times are simulated.
#[pyclass(frozen, module = "nearside._native")]
pub struct PmSystem {
    session: SystemPart<Arc<Session>>,
}

impl PmSystem {
    fn pool(
        &self,
        py: Python<'_>,
        make: impl FnOnce(&Arc<Session>) -> pm::Result<SessionPool> + Send,
    ) -> PyResult<PmPool> {
        let pool = self.session.call(py, |session| make(session))?;
        let pool = SystemPart::new(&self.session.call_lock, "pool", pool);
        Ok(PmPool { pool })
    }
}

#[pymethods]
impl PmSystem {
    /// Starts a system on a model, with 1, 2 or 4 devices that "devices" or the "host" synchronise.
    #[new]
    fn new(
        py: Python<'_>,
        design: &Design,
        model: &str,
        devices: usize,
        synchronise: &str,
    ) -> PyResult<PmSystem> {
        let model = model.parse().map_err(raise)?;
        let synchronise = synchronise.parse().map_err(raise)?;
        let start = || Session::start_with_devices(&design.inner, model, devices, synchronise);
        let session = py.detach(start);
        let session = Arc::new(session.map_err(raise)?);
        let session = SystemPart::new(&CallLock::default(), "system", session);
        Ok(PmSystem { session })
    }

    /// The present time in ps.
    fn now_ps(&self, py: Python<'_>) -> PyResult<u64> {
        self.session.call(py, |session| Ok(session.now().0))
    }

    /// Bytes of each device's PM window.
    fn window_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.session.call(py, |session| Ok(session.window_bytes()))
    }

    /// Loads bytes of the first device's window, bypassing the CPU's cache.
    fn load<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        length: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.session
            .call(py, |session| session.check_access(offset, length))?;
        let mut out = zeroed(length as usize)?;
        self.session
            .call(py, |session| session.load(offset, &mut out))?;
        Ok(PyBytes::new(py, &out))
    }

    /// Stores bytes of the first device's window, and waits until they are persistent.
    fn store(&self, py: Python<'_>, offset: u64, data: &[u8]) -> PyResult<()> {
        self.session.call(py, |session| session.store(offset, data))
    }

    /// Cuts the power of the host ("host"), or of all at once ("all"). Returns how many lines of
    /// stores the host has lost.
    fn power_cut(&self, py: Python<'_>, cut: &str) -> PyResult<usize> {
        let cut = match cut {
            "host" => CutScope::Host,
            "all" => CutScope::All,
            other => return Err(raise(format!("cut = {other:?}: allowed are host, all"))),
        };
        self.session.call(py, |session| session.cut_power(cut))
    }

    /// Cuts the power after `ps`.
    fn power_cut_after(&self, py: Python<'_>, ps: u64) -> PyResult<()> {
        self.session
            .call(py, |session| session.cut_power_after(Time(ps)))
    }

    /// Restores power.
    fn power_on(&self, py: Python<'_>) -> PyResult<()> {
        self.session.call(py, |session| session.power_on())
    }

    /// Discards the records of lost data.
    fn forget(&self, py: Python<'_>) -> PyResult<()> {
        self.session.call(py, |session| session.forget())
    }

    /// Closes the system. Its resources are freed once its pools and threads are closed. A second
    /// call does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.session.close(py, |session| {
            session.take();
            Ok(())
        })
    }

    /// False while the power is cut.
    fn has_power(&self, py: Python<'_>) -> PyResult<bool> {
        self.session.call(py, |session| Ok(session.has_power()))
    }

    /// Creates a pool, and opens it.
    #[allow(clippy::too_many_arguments)] // keyword arguments in Python
    fn pool_create(
        &self,
        py: Python<'_>,
        place: u64,
        bytes: u64,
        name: &str,
        mechanism: &str,
        threads: u8,
        log_bytes: u64,
        spare_pages: u64,
        tracked: bool,
        offload: bool,
        fence: &str,
        number: u8,
        engine_recovers: bool,
        group_commit: Option<u64>,
        words: bool,
    ) -> PyResult<PmPool> {
        let layout = Layout {
            name: name.into(),
            mechanism: mechanism.parse().map_err(raise)?,
            threads,
            log_bytes,
            spare_pages,
            tracked,
        };
        let usage = usage(offload, fence, number, engine_recovers, group_commit, words)?;
        self.pool(py, |session| session.create(place, bytes, &layout, usage))
    }

    /// Opens a pool, and recovers it.
    #[allow(clippy::too_many_arguments)] // keyword arguments in Python
    fn pool_open(
        &self,
        py: Python<'_>,
        place: u64,
        name: &str,
        offload: bool,
        fence: &str,
        number: u8,
        engine_recovers: bool,
        group_commit: Option<u64>,
        words: bool,
    ) -> PyResult<PmPool> {
        let usage = usage(offload, fence, number, engine_recovers, group_commit, words)?;
        self.pool(py, |session| session.open(place, name, usage))
    }
}

/// An open pool.
#[pyclass(frozen, module = "nearside._native")]
pub struct PmPool {
    pool: SystemPart<SessionPool>,
}

#[pymethods]
impl PmPool {
    /// Size in bytes.
    fn bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.pool.call(py, |pool| Ok(pool.bytes()))
    }

    /// Checks the pool's metadata. Returns the findings.
    fn check(&self, py: Python<'_>) -> PyResult<Document> {
        let found = self.pool.call(py, |pool| pool.check())?;
        Ok(Document(json!({
            "objects": found.objects, "bytes": found.bytes, "generation": found.generation,
        })))
    }

    /// Grows the pool to `bytes`.
    fn resize(&self, py: Python<'_>, bytes: u64) -> PyResult<()> {
        self.pool.call(py, |pool| pool.resize(bytes))
    }

    /// A thread of the pool, on a CPU.
    fn thread(&self, py: Python<'_>, cpu: usize) -> PyResult<PmThread> {
        let thread = self.pool.call(py, |pool| pool.thread(cpu))?;
        let thread = SystemPart::new(&self.pool.call_lock, "thread", thread);
        Ok(PmThread { thread })
    }

    /// Closes the pool. A second call does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.pool.close(py, |pool| {
            if let Some(open) = pool {
                open.clone().close()?;
            }
            *pool = None;
            Ok(())
        })
    }
}

/// A thread of a pool.
#[pyclass(frozen, module = "nearside._native")]
pub struct PmThread {
    thread: SystemPart<SessionThread>,
}

#[pymethods]
impl PmThread {
    /// Begins a transaction.
    fn begin(&self, py: Python<'_>) -> PyResult<()> {
        self.thread.call(py, |thread| thread.begin())
    }

    /// Commits the transaction.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.thread.call(py, |thread| thread.commit())
    }

    /// Commits the transaction, which becomes durable later. Returns the number of its ticket.
    fn commit_later(&self, py: Python<'_>) -> PyResult<u64> {
        let ticket = self.thread.call(py, |thread| thread.commit_later())?;
        Ok(ticket.number())
    }

    /// Waits until a transaction is durable.
    fn wait(&self, py: Python<'_>, ticket: u64) -> PyResult<()> {
        let ticket = Ticket::from_number(ticket);
        self.thread.call(py, |thread| thread.wait(ticket))
    }

    /// Waits until all transactions of the thread are durable.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.thread.call(py, |thread| thread.sync())
    }

    /// The last ticket that is known to be durable, and the last one.
    fn tickets(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let tickets = |thread: &mut SessionThread| {
            Ok((thread.durable()?.number(), thread.last_ticket().number()))
        };
        self.thread.call(py, tickets)
    }

    /// Aborts the transaction.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.thread.call(py, |thread| thread.abort())
    }

    /// Marks the transaction as failed. It can't be committed any more.
    fn fail(&self, py: Python<'_>) -> PyResult<()> {
        self.thread.call(py, |thread| thread.fail())
    }

    /// True during a transaction.
    fn is_active(&self, py: Python<'_>) -> PyResult<bool> {
        self.thread.call(py, |thread| Ok(thread.is_active()))
    }

    /// Adds a range that is about to be changed.
    fn add_range(&self, py: Python<'_>, offset: u64, length: u64) -> PyResult<()> {
        self.thread
            .call(py, |thread| thread.add_range(offset, length))
    }

    /// Stores bytes.
    fn write(&self, py: Python<'_>, offset: u64, data: &[u8]) -> PyResult<()> {
        self.thread.call(py, |thread| thread.write(offset, data))
    }

    /// Reads bytes.
    fn read<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.thread
            .call(py, |thread| thread.check_range(offset, length))?;
        let mut out = zeroed(length)?;
        self.thread
            .call(py, |thread| thread.read(offset, &mut out))?;
        Ok(PyBytes::new(py, &out))
    }

    /// Allocates an object, and returns its offset.
    fn alloc(&self, py: Python<'_>, bytes: u64) -> PyResult<u64> {
        self.thread.call(py, |thread| thread.alloc(bytes))
    }

    /// Frees an object.
    fn free(&self, py: Python<'_>, offset: u64) -> PyResult<()> {
        self.thread.call(py, |thread| thread.free(offset))
    }

    /// The offset that the pool's root points to. 0: none.
    fn root(&self, py: Python<'_>) -> PyResult<u64> {
        self.thread.call(py, |thread| thread.root())
    }

    /// Sets the object that the root points to.
    fn set_root(&self, py: Python<'_>, offset: u64) -> PyResult<()> {
        self.thread.call(py, |thread| thread.set_root(offset))
    }

    /// Waits for the engine.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.thread.call(py, |thread| thread.finish())
    }

    /// Counters. Times are in ps.
    fn counts(&self, py: Python<'_>) -> PyResult<Document> {
        let counts = self.thread.call(py, |thread| Ok(thread.counts()))?;
        Ok(Document(json!({
            "transactions": counts.transactions, "aborts": counts.aborts, "fences": counts.fences,
            "orders": counts.orders,
            "lines": counts.lines, "copied_bytes": counts.copied, "records": counts.records,
            "payload_bytes": counts.payload,
            "commands": counts.commands, "allocations": counts.allocations,
            "time_ps": counts.time.0,
            "consistency_ps": counts.consistency.0,
        })))
    }

    /// Ends the thread. A transaction in flight is aborted, all others are durable unless the power
    /// has failed. Returns the last durable ticket. A second call does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        let close = |thread: &mut Option<SessionThread>| match thread.take() {
            Some(thread) => thread.close().map(|ticket| Some(ticket.number())),
            None => Ok(None),
        };
        self.thread.close(py, close)
    }
}
