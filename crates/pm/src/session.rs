// SPDX-License-Identifier: Apache-2.0

//! The library as plain calls, for languages without closures and lifetimes. A session has a host
//! with devices in this process; its pools detect a power loss, and its transactions begin and end
//! by a call each.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use design::Design;
use host::{Cpu, CutScope, Fence, Machine, Mapping, MemoryType, SharedMachine};
use sim::Time;
use spec::nearpm::{Command, ErrorBit, Operation, ReturnValue, POOLS};
use testbed::Testbed;

use crate::thread::ActiveTransaction;
use crate::{
    CheckReport, Counts, Devices, EngineHandle, Error, Layout, Options, Pool, Ptr, Result,
    Synchronisation, Thread, Ticket, Transaction,
};

/// Most CPUs of a session's host.
pub const MAX_CPUS: usize = 64;
/// Most bytes of a load or store outside of pools.
const MAX_ACCESS_BYTES: usize = 64 << 20;

struct PowerState {
    on: bool,
    /// The time of the last power loss.
    failed: Time,
    /// The time of a scheduled power cut.
    ordered: Option<Time>,
}

/// An open pool: no other pool may overlap it or have its number.
struct OpenPool {
    number: Option<u8>,
    place: u64,
    bytes: u64,
    by: Weak<()>,
}

/// A host with one device, or with several devices that each pool spans. Times are simulated.
pub struct Session {
    shared: SharedMachine,
    devices: Devices,
    /// The engines of all devices, if the design has them.
    engines: Vec<Arc<EngineHandle>>,
    synchronise: Synchronisation,
    /// Bytes of each device's window for the host, without those that an engine reserves at the end
    /// of the media.
    window: u64,
    /// Bytes that the engine reserves.
    reserved: u64,
    power: Mutex<PowerState>,
    pools: Mutex<Vec<OpenPool>>,
    /// Numbers of pools that a program has mapped by explicit commands since power came on.
    mapped_by_program: Mutex<Vec<u8>>,
    /// The engines may have tracked pools mapped that are not open any more: in a file, or from
    /// before a power loss.
    may_track: AtomicBool,
}

/// How a pool is used, without what the session determines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUse {
    /// The engines are the executor; else the CPU.
    pub offload: bool,
    /// What a fence waits for.
    pub fence: Fence,
    /// Number of the pool on the engine, 0 to 15. Another one than that of a transaction which has
    /// to be recovered is refused.
    pub number: u8,
    /// The engine recovers the logs that it has; else the CPU does.
    pub engine_recovers: bool,
    /// Transactions that become durable later: as [`Options::group_commit`].
    pub group_commit: Option<u64>,
    /// The engine of one device reports in host memory what is durable: as [`Options::words`].
    pub words: bool,
}

impl Default for PoolUse {
    fn default() -> PoolUse {
        PoolUse {
            offload: false,
            fence: Fence::ReadBack,
            number: 0,
            engine_recovers: false,
            group_commit: None,
            words: false,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn invalid(error: impl std::fmt::Display) -> Error {
    Error::Invalid(error.to_string())
}

impl Session {
    /// Starts a host with a device of this design. A model that has to be compiled is compiled
    /// first.
    pub fn start(design: &Design, by: device::Model) -> Result<Session> {
        Session::start_with_devices(design, by, 1, Synchronisation::default())
    }

    /// The same with 1, 2 or 4 devices that each pool spans. The synchronisation of their engines
    /// is the same for all pools.
    pub fn start_with_devices(
        design: &Design,
        by: device::Model,
        devices: usize,
        synchronise: Synchronisation,
    ) -> Result<Session> {
        if !matches!(devices, 1 | 2 | 4) {
            return Err(invalid(format!(
                "devices = {devices}: allowed are 1, 2 and 4"
            )));
        }
        if devices > 1 && design.media.file.is_some() {
            return Err(invalid(format!(
                "devices = {devices}: the design's media have a file, which is for one device: \
                 allowed is 1"
            )));
        }
        let testbed = Testbed::builder(design).model(by).devices(devices);
        let testbed = testbed.build().map_err(invalid)?;
        let engines = testbed.engines(0).iter();
        let reserved = engines.map(|e| e.manifest.reserved.0).max().unwrap_or(0);
        Ok(Session {
            shared: testbed.machine().clone(),
            devices: (0..devices).collect::<Vec<_>>().into(),
            engines: EngineHandle::of_testbed(&testbed),
            synchronise,
            window: match reserved {
                0 => design.window_bytes(),
                bytes => design.media.bytes.0.saturating_sub(bytes),
            },
            reserved,
            power: Mutex::new(PowerState {
                on: true,
                failed: Time::ZERO,
                ordered: None,
            }),
            pools: Mutex::new(Vec::new()),
            mapped_by_program: Mutex::new(Vec::new()),
            may_track: AtomicBool::new(design.media.file.is_some()),
        })
    }

    /// The host.
    pub fn shared(&self) -> &SharedMachine {
        &self.shared
    }

    /// The crash-consistency engine of the first device.
    pub fn engine(&self) -> Result<&Arc<EngineHandle>> {
        self.engines.first().ok_or_else(|| {
            invalid("the design has no engine `nearpm`: take one that has, as `nearpm`")
        })
    }

    /// Bytes of each device's PM window for pools. The host can't reach the bytes that an engine
    /// reserves after them.
    pub fn window_bytes(&self) -> u64 {
        self.window
    }

    /// The present time: that of the busiest CPU. Cache hits take time of a CPU, too, without any
    /// event of the host.
    pub fn now(&self) -> Time {
        let cpus = 0..MAX_CPUS;
        let latest = |machine: &mut Machine| cpus.map(|cpu| machine.time(cpu)).max();
        self.shared.with_machine(latest).unwrap_or_default()
    }

    /// The time up to which the host and its devices are simulated: a power cut before it has taken
    /// place.
    fn simulated_until(&self) -> Time {
        self.shared.with_machine(|machine| machine.system().now())
    }

    /// A CPU of the host.
    pub fn cpu(&self, number: usize) -> Result<Cpu> {
        match number < MAX_CPUS {
            true => Ok(self.shared.cpu(number)),
            false => Err(Error::Invalid(format!(
                "CPU {number}: allowed are 0 to {}",
                MAX_CPUS - 1
            ))),
        }
    }

    /// True if the scheduled power cut has taken place. CPUs that hit their caches advance without
    /// the host.
    fn has_failed(&self, power: &PowerState) -> bool {
        power
            .ordered
            .is_some_and(|at| at <= self.now().max(self.simulated_until()))
    }

    /// An error without power.
    fn check_power(&self) -> Result<()> {
        let power = lock(&self.power);
        let failed = match power.on {
            true => power.ordered.filter(|_| self.has_failed(&power)),
            false => Some(power.failed),
        };
        failed.map_or(Ok(()), |at| Err(host::Error::PowerCut(at).into()))
    }

    /// Cuts the power now, or reports the scheduled cut that has taken place. Returns how many
    /// lines of stores the host has lost.
    pub fn cut_power(&self, cut: CutScope) -> Result<usize> {
        let mut power = lock(&self.power);
        if !power.on {
            return Err(Error::Power("the power is off already".into()));
        }
        let failed = self.has_failed(&power);
        power.ordered = None;
        let crash = self.shared.with_machine(|machine| {
            if !failed {
                machine.cut_at(None);
            }
            machine.crash(cut)
        })?;
        (power.on, power.failed) = (false, crash.at);
        Ok(crash.dirty.len() + crash.gathered.len())
    }

    /// Schedules a power cut, during whatever is under way then.
    pub fn cut_power_after(&self, time: Time) -> Result<()> {
        let mut power = lock(&self.power);
        if !power.on || self.has_failed(&power) {
            return Err(Error::Power("the power has failed already".into()));
        }
        let at = Time(self.now().0.saturating_add(time.0));
        power.ordered = Some(at);
        self.shared.with_machine(|machine| machine.cut_at(Some(at)));
        Ok(())
    }

    /// Switches power on. Pools have to be opened again.
    pub fn power_on(&self) -> Result<()> {
        let failed = self.has_failed(&lock(&self.power));
        if failed {
            self.cut_power(CutScope::All)?;
        }
        let mut power = lock(&self.power);
        if power.on {
            return Err(Error::Invalid("the power is on".into()));
        }
        self.shared.with_machine(|machine| machine.restart());
        self.engines.iter().for_each(|engine| engine.restart());
        lock(&self.mapped_by_program).clear();
        lock(&self.pools).clear();
        power.on = true;
        Ok(())
    }

    /// Acknowledges losses of the devices' engines: pools can be opened again, whatever they lack.
    /// What the engines could not restore is dropped for good.
    pub fn forget(&self) -> Result<()> {
        let cpu = self.shared.cpu(0);
        self.engines
            .iter()
            .try_for_each(|engine| engine.forget(&cpu))
    }

    /// True except between a power loss and the next power-on.
    pub fn has_power(&self) -> bool {
        let power = lock(&self.power);
        power.on && !self.has_failed(&power)
    }

    /// An error for a range outside of the window, or too large for one access.
    pub fn check_access(&self, offset: u64, bytes: u64) -> Result<()> {
        let end = offset.checked_add(bytes);
        match end.is_some_and(|end| end <= self.window) && bytes <= MAX_ACCESS_BYTES as u64 {
            true => Ok(()),
            false => Err(Error::Invalid(format!(
                "{bytes} bytes at {offset:#x}: allowed are {MAX_ACCESS_BYTES} at a time within \
                 the window of {} bytes",
                self.window
            ))),
        }
    }

    /// Loads bytes of the first device's window, past the CPU's cache.
    pub fn load(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.check_access(offset, out.len() as u64)?;
        self.check_power()?;
        let map = Mapping::pm(0, MemoryType::Uncached);
        Ok(self.shared.cpu(0).read(&map, offset, out)?)
    }

    /// Stores bytes of the first device's window, and waits until they are persistent.
    pub fn store(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.check_access(offset, data.len() as u64)?;
        self.check_power()?;
        let (cpu, map) = (self.shared.cpu(0), Mapping::pm(0, MemoryType::Uncached));
        cpu.write(&map, offset, data)?;
        Ok(cpu.fence(Fence::ReadBack)?)
    }

    /// Submits a command to the first device's engine and waits for its end; returns its value.
    pub fn command(&self, command: &Command) -> Result<u64> {
        self.check_power()?;
        let (results, value): (ReturnValue, u64) =
            self.engine()?.launch(&self.shared.cpu(0), command)?;
        if results.is_ok() && command.operation == Operation::PoolMap {
            lock(&self.mapped_by_program).push(command.pool);
        }
        match results.is_ok() {
            true => Ok(value),
            false => Err(Error::Refused(command.operation, results)),
        }
    }

    /// Creates a pool of `bytes` bytes at a place of the window, and opens it. The former content
    /// is lost. Each of several devices has an equal share there.
    pub fn create(
        self: &Arc<Session>,
        place: u64,
        bytes: u64,
        layout: &Layout,
        usage: PoolUse,
    ) -> Result<SessionPool> {
        self.admit_pool(place, usage, |cpu, options, allowed| {
            allowed(bytes)?;
            let devices = self.devices.clone();
            Pool::create(cpu, devices, place, bytes, layout, options)
        })
    }

    /// Opens the pool at a place of the window. Transactions that were under way at a power loss
    /// are completed or undone.
    pub fn open(
        self: &Arc<Session>,
        place: u64,
        name: &str,
        usage: PoolUse,
    ) -> Result<SessionPool> {
        self.admit_pool(place, usage, |cpu, options, allowed| {
            allowed(1)?;
            let devices = self.devices.clone();
            Pool::open_if_allowed(cpu, devices, place, name, options, allowed)
        })
    }

    /// Unmaps pools that the engines still have from before a power loss.
    fn unmap_stale_pools(&self, open: &[OpenPool], options: &Options) -> Result<()> {
        let mapped_by_program = lock(&self.mapped_by_program).clone();
        let used =
            |n: &u8| mapped_by_program.contains(n) || open.iter().any(|p| p.number == Some(*n));
        let numbers = (0..POOLS).filter(|n| !used(n));
        for number in numbers {
            let unmap = Command::new(Operation::PoolUnmap, options.process, number, 0);
            for engine in &self.engines {
                engine.launch(&self.shared.cpu(0), &unmap)?;
            }
        }
        Ok(())
    }

    /// The end in each window of a pool's shares.
    fn end_in_window(&self, place: u64, bytes: u64) -> u64 {
        place.saturating_add(bytes.div_ceil(self.devices.count() as u64))
    }

    /// An error for a pool that reaches past the host's part of the window.
    fn check_fits(&self, place: u64, bytes: u64) -> Result<()> {
        if self.end_in_window(place, bytes) <= self.window {
            return Ok(());
        }
        let rest = match self.reserved {
            0 => String::new(),
            bytes => format!("; the engine reserves the {bytes} after them"),
        };
        Err(Error::Invalid(format!(
            "a pool of {bytes} bytes at {place:#x}: allowed are pools that end within the window \
             of {} bytes{rest}",
            self.window
        )))
    }

    fn admit_pool(
        self: &Arc<Session>,
        place: u64,
        usage: PoolUse,
        act: impl Fn(&Cpu, &Options, &dyn Fn(u64) -> Result<()>) -> Result<Pool>,
    ) -> Result<SessionPool> {
        if self.devices.count() > 1 && usage.fence != Fence::ReadBack {
            return Err(Error::Invalid(format!(
                "a pool over {} devices: allowed are fences that read back, since others may \
                 leave different transactions on them",
                self.devices.count()
            )));
        }
        if usage.words && !(usage.offload && self.devices.count() == 1) {
            return Err(Error::Invalid(
                "words: allowed is an offloaded pool on one device".into(),
            ));
        }
        let engines = match usage.offload {
            true => self.engine().map(|_| &self.engines[..])?,
            false => &[],
        };
        let options = Options {
            fence: usage.fence,
            synchronise: self.synchronise,
            pool: usage.number,
            engine_recovers: usage.engine_recovers,
            group_commit: usage.group_commit,
            words: usage.words,
            ..Options::with_engines(engines)
        };
        self.check_power()?;
        let number = usage.offload.then_some(usage.number);
        let mut pools = lock(&self.pools);
        pools.retain(|pool| pool.by.strong_count() > 0);
        let allowed = |bytes: u64| {
            self.check_fits(place, bytes)?;
            let end = self.end_in_window(place, bytes);
            let overlaps =
                |p: &&OpenPool| place < self.end_in_window(p.place, p.bytes) && p.place < end;
            match pools.iter().find(overlaps) {
                Some(other) => Err(Error::Invalid(format!(
                    "a pool at {place:#x}: the one at {:#x} is open, of {} bytes; close it first",
                    other.place, other.bytes
                ))),
                None => Ok(()),
            }
        };
        if number.is_some() && pools.iter().any(|p| p.number == number) {
            return Err(Error::Invalid(format!(
                "pool number {}: an open pool has it on the engine; allowed is any other of 0 to \
                 15",
                usage.number
            )));
        }
        if !usage.offload && self.may_track.load(Ordering::Relaxed) {
            // They would record the CPU's stores.
            self.unmap_stale_pools(&pools, &options)?;
        }
        let act = || act(&self.shared.cpu(0), &options, &allowed);
        let pool = match act() {
            Err(error) if is_map_refused_as_busy(&error) => {
                self.unmap_stale_pools(&pools, &options)?;
                act()?
            }
            other => other?,
        };
        if usage.offload && pool.layout().tracked {
            self.may_track.store(true, Ordering::Relaxed);
        }
        let mark = Arc::new(());
        pools.push(OpenPool {
            number,
            place,
            bytes: pool.bytes(),
            by: Arc::downgrade(&mark),
        });
        Ok(SessionPool {
            session: self.clone(),
            pool,
            mark,
        })
    }
}

/// True if the engine has another pool at this number or range.
fn is_map_refused_as_busy(error: &Error) -> bool {
    match error {
        Error::Refused(Operation::PoolMap, results) => results.has(ErrorBit::Busy),
        _ => false,
    }
}

/// A pool of a session.
#[derive(Clone)]
pub struct SessionPool {
    session: Arc<Session>,
    pool: Pool,
    mark: Arc<()>,
}

impl SessionPool {
    /// Its session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// False if the power has failed since it was opened: then there is nothing to close.
    pub fn is_alive(&self) -> bool {
        self.check_alive().is_ok()
    }

    /// An error if the power has failed since it was opened.
    fn check_alive(&self) -> Result<()> {
        self.pool.0.check_alive()?;
        self.session.check_power()
    }

    /// Bytes of it.
    pub fn bytes(&self) -> u64 {
        self.pool.bytes()
    }

    /// The layout of the pool.
    pub fn layout(&self) -> Layout {
        self.pool.layout()
    }

    /// Compares the metadata with each other and with the state of the pool. No transaction may be
    /// under way.
    pub fn check(&self) -> Result<CheckReport> {
        self.check_alive()?;
        self.pool.check(&self.session.shared.cpu(0))
    }

    /// Grows it to `bytes` bytes. No thread may use it.
    pub fn resize(&self, bytes: u64) -> Result<()> {
        self.check_alive()?;
        let mut pools = lock(&self.session.pools);
        let mine = |p: &OpenPool| p.by.as_ptr() == Arc::as_ptr(&self.mark);
        let place = pools.iter().find(|p| mine(p)).map(|p| p.place);
        let place = place.ok_or_else(|| invalid("the pool is not in use any more"))?;
        self.session.check_fits(place, bytes)?;
        let end = self.session.end_in_window(place, bytes);
        let open = |p: &&OpenPool| p.by.strong_count() > 0 && place < p.place && p.place < end;
        if let Some(other) = pools.iter().find(open) {
            return Err(Error::Invalid(format!(
                "{bytes} bytes at {place:#x}: the pool at {:#x} is open; close it first",
                other.place
            )));
        }
        let cpu = self.session.shared.cpu(0);
        match self.pool.resize(&cpu, bytes) {
            Err(error) if is_map_refused_as_busy(&error) => {
                self.session
                    .unmap_stale_pools(&pools, self.pool.options())?;
                self.pool.resize(&cpu, bytes)?;
            }
            other => other?,
        }
        pools
            .iter_mut()
            .filter(|p| mine(p))
            .for_each(|p| p.bytes = bytes);
        Ok(())
    }

    /// A thread that works on it, on a CPU.
    pub fn thread(&self, cpu: usize) -> Result<SessionThread> {
        self.check_alive()?;
        let cpu = self.session.cpu(cpu)?;
        Ok(SessionThread {
            thread: self.pool.thread(&cpu)?,
            pool: self.clone(),
            work: None,
        })
    }

    /// Ends its use. No thread may use it, unless the power has failed.
    pub fn close(self) -> Result<()> {
        if !self.is_alive() {
            return Ok(());
        }
        self.pool.clone().close(&self.session.shared.cpu(0))?;
        drop(self.mark);
        Ok(())
    }
}

/// A thread of a pool, whose transactions begin and end by a call each.
pub struct SessionThread {
    thread: Thread,
    pool: SessionPool,
    /// The transaction under way.
    work: Option<ActiveTransaction>,
}

impl Drop for SessionThread {
    fn drop(&mut self) {
        if self.work.is_some() {
            // Without power there is nothing to abort.
            let _ = self.abort();
        }
    }
}

impl SessionThread {
    /// Its pool.
    pub fn pool(&self) -> &SessionPool {
        &self.pool
    }

    /// True while a transaction is under way.
    pub fn is_active(&self) -> bool {
        self.work.is_some()
    }

    /// Its counters since it began.
    pub fn counts(&self) -> Counts {
        self.thread.counts()
    }

    /// An error for a range that programs may not access.
    pub fn check_range(&self, offset: u64, bytes: usize) -> Result<()> {
        self.thread.check_range(offset, bytes)
    }

    /// Runs a transaction as a closure, as [`Thread::run_later`] does.
    pub fn run_later<R>(
        &mut self,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<R>,
    ) -> Result<(R, Ticket)> {
        self.pool.check_alive()?;
        match self.work {
            Some(_) => Err(transaction_under_way()),
            None => self.thread.run_later(body),
        }
    }

    /// Runs a transaction as a closure, as [`Thread::run`] does.
    pub fn run<R>(&mut self, body: impl FnOnce(&mut Transaction<'_>) -> Result<R>) -> Result<R> {
        self.pool.check_alive()?;
        match self.work {
            Some(_) => Err(transaction_under_way()),
            None => self.thread.run(body),
        }
    }

    /// Begins a transaction.
    pub fn begin(&mut self) -> Result<()> {
        self.pool.check_alive()?;
        if self.work.is_some() {
            return Err(transaction_under_way());
        }
        self.work = Some(self.thread.begin(false)?);
        Ok(())
    }

    fn transaction(&mut self) -> Result<Transaction<'_>> {
        self.pool.check_alive()?;
        match &mut self.work {
            Some(work) => Ok(self.thread.transaction(work)),
            None => Err(no_transaction()),
        }
    }

    /// Commits the transaction. An error other than a power loss has aborted it.
    pub fn commit(&mut self) -> Result<()> {
        self.pool.check_alive()?;
        let work = self.work.take().ok_or_else(no_transaction)?;
        self.thread.end(work, Ok(()))
    }

    /// Commits the transaction, which becomes durable later, as with [`Thread::run_later`].
    pub fn commit_later(&mut self) -> Result<Ticket> {
        self.pool.check_alive()?;
        let work = self.work.take().ok_or_else(no_transaction)?;
        self.thread.end_later(work)
    }

    /// Waits until a transaction is durable.
    pub fn wait(&mut self, ticket: Ticket) -> Result<()> {
        self.settle(|thread| thread.wait(ticket))
    }

    /// Waits until all transactions of this thread are durable.
    pub fn sync(&mut self) -> Result<()> {
        self.settle(Thread::sync)
    }

    fn settle(&mut self, wait: impl FnOnce(&mut Thread) -> Result<()>) -> Result<()> {
        self.pool.check_alive()?;
        match self.work {
            Some(_) => Err(transaction_under_way()),
            None => wait(&mut self.thread),
        }
    }

    /// The last ticket that is known to be durable: see [`Thread::poll`].
    pub fn durable(&mut self) -> Result<Ticket> {
        self.pool.check_alive()?;
        self.thread.poll()
    }

    /// The ticket of the last transaction.
    pub fn last_ticket(&self) -> Ticket {
        self.thread.last_ticket()
    }

    /// Calls a function once, when a transaction is durable: see [`Thread::when_durable`].
    pub fn when_durable(
        &mut self,
        ticket: Ticket,
        callback: impl FnOnce(Ticket) + Send + 'static,
    ) -> Result<()> {
        self.pool.check_alive()?;
        self.thread.when_durable(ticket, callback)
    }

    /// Aborts the transaction.
    pub fn abort(&mut self) -> Result<()> {
        let work = self.work.take();
        self.pool.check_alive()?;
        let work = work.ok_or_else(no_transaction)?;
        match self.thread.end(work, Err::<(), _>(Error::Aborted)) {
            Err(Error::Aborted) => Ok(()),
            other => other,
        }
    }

    /// Ends its use. Aborts its open transaction and makes all others durable, unless the power has
    /// failed. Returns the last durable one.
    pub fn close(mut self) -> Result<Ticket> {
        if self.pool.is_alive() {
            let aborted = if self.is_active() {
                self.abort()
            } else {
                Ok(())
            };
            let ended = aborted.and_then(|()| self.thread.sync());
            // A scheduled power cut may have come meanwhile.
            if self.pool.is_alive() {
                ended?;
            }
        }
        Ok(self.thread.durable())
    }

    /// Prevents the commit of the transaction: one nested in it has failed.
    pub fn fail(&mut self) -> Result<()> {
        self.pool.check_alive()?;
        self.work.as_mut().ok_or_else(no_transaction)?.fail();
        Ok(())
    }

    /// Announces changes to a range, which is logged as a whole.
    pub fn add_range(&mut self, offset: u64, bytes: u64) -> Result<()> {
        self.transaction()?.add_range(offset, bytes)
    }

    /// Stores bytes.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.transaction()?.write(offset, data)
    }

    /// Reads bytes: the transaction's, if one is under way.
    pub fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.pool.check_alive()?;
        match &mut self.work {
            Some(work) => self.thread.transaction(work).read(offset, out),
            None => self.thread.read(offset, out),
        }
    }

    /// Allocates an object; returns its offset.
    pub fn alloc(&mut self, bytes: u64) -> Result<u64> {
        Ok(self.transaction()?.alloc_bytes(bytes)?.offset())
    }

    /// Frees an object when the transaction commits.
    pub fn free(&mut self, offset: u64) -> Result<()> {
        self.transaction()?.free(Ptr::<u8>::at(offset))
    }

    /// The offset of the root object; 0 without one.
    pub fn root(&mut self) -> Result<u64> {
        self.pool.check_alive()?;
        let root: Ptr<u8> = match &mut self.work {
            Some(work) => self.thread.transaction(work).root()?,
            None => self.thread.root()?,
        };
        Ok(root.offset())
    }

    /// Sets the root object.
    pub fn set_root(&mut self, offset: u64) -> Result<()> {
        self.transaction()?.set_root(Ptr::<u8>::at(offset))
    }

    /// Waits until an engine has done all work of this thread. An error if it has refused any of
    /// it.
    pub fn finish(&mut self) -> Result<()> {
        self.pool.check_alive()?;
        self.thread.finish()
    }
}

fn transaction_under_way() -> Error {
    Error::Invalid("a transaction of this thread is under way: commit or abort it first".into())
}

fn no_transaction() -> Error {
    Error::Invalid("no transaction of this thread is under way: begin one".into())
}
