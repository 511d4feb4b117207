// SPDX-License-Identifier: Apache-2.0

//! Pools: creation, opening, growth, closing.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use host::{Cpu, SharedMachine};
use sim::Bar;
use spec::nearpm::{
    progress_word, Command, Descriptor, ErrorBit, LogState, Operation, RecordKind, ALIGN,
    FIRST_RECORD, LINE, POOLS, RESERVED_BYTES, THREADS,
};

use crate::devices::Devices;
use crate::header::{Header, HEADER_BYTES};
use crate::heap::{self, Heap};
use crate::log::{Log, LogPlacement, Offload};
use crate::mechanism::{self, Group, InPlace, Pages, Redo, Shadow, Tracked};
use crate::memory::Memory;
use crate::multi_device::{self, LogRecovery};
use crate::progress::Progress;
use crate::recovery::{self, PendingAction};
use crate::units::PAGE;
use crate::{Error, Layout, Lock, Mechanism, Options, Result, Thread};

type MechanismSlot = Option<Box<dyn mechanism::Mechanism>>;

pub(crate) struct PoolInner {
    pub devices: Devices,
    /// Offset in each device's window.
    pub place: u64,
    pub options: Options,
    header: Mutex<Header>,
    heap: Mutex<Heap>,
    pub pages: Option<Arc<Pages>>,
    /// The mechanism of each thread, while no [`Thread`] uses it.
    slots: Mutex<Vec<MechanismSlot>>,
    transactions: AtomicU64,
    /// Held by transactions that change pages.
    pub exclusive: Lock,
    /// Transactions under way.
    pub under_way: AtomicUsize,
    /// Bits of threads with transactions that are not durable yet.
    pending: AtomicU64,
    /// Bits of those whose transactions are a group.
    grouped: AtomicU64,
    /// Host memory with the progress words of the pool's engine.
    words: Option<u64>,
    shared: SharedMachine,
    /// Restarts of the host when it was opened.
    restarts: u64,
    /// Why the pool can't be used any more.
    unusable: Mutex<Option<&'static str>>,
}

/// A pool of persistent memory. Clones are the same pool.
#[derive(Clone)]
pub struct Pool(pub(crate) Arc<PoolInner>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PoolInner {
    // None of these locks is held while a CPU acts: the scheduler may switch to another program.
    pub fn header(&self) -> MutexGuard<'_, Header> {
        lock(&self.header)
    }

    pub fn heap(&self) -> MutexGuard<'_, Heap> {
        lock(&self.heap)
    }

    pub fn next_transaction(&self) -> u64 {
        self.transactions.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// An error if the power has failed since the pool was opened.
    pub fn check_alive(&self) -> Result<()> {
        match self.shared.with_machine(|machine| machine.restarts()) == self.restarts {
            true => Ok(()),
            false => Err(Error::Power(
                "the power has failed since the pool was opened: open it again".into(),
            )),
        }
    }

    pub fn check_usable(&self) -> Result<()> {
        match *lock(&self.unusable) {
            Some(why) => Err(Error::Invalid(why.into())),
            None => Ok(()),
        }
    }

    pub fn mark_unusable(&self) {
        let why = "a transaction of the pool has neither been committed nor aborted: the pool has \
                   to be opened again";
        lock(&self.unusable).get_or_insert(why);
    }

    /// Reads the program's data, outside of transactions.
    pub fn read(&self, m: &mut Memory, offset: u64, out: &mut [u8]) -> Result<()> {
        match &self.pages {
            Some(pages) => {
                pages.spend_lookup(m, offset, out.len())?;
                pages.read(m, offset, out)
            }
            None => m.read(offset, out),
        }
    }

    /// Number of threads that use the pool.
    pub fn open_threads(&self) -> usize {
        lock(&self.slots)
            .iter()
            .filter(|slot| slot.is_none())
            .count()
    }

    /// Records whether a thread has transactions that are not durable, and whether these are a
    /// group.
    pub fn set_pending(&self, thread: u8, pending: bool, grouped: bool) {
        for (bits, set) in [(&self.pending, pending), (&self.grouped, grouped)] {
            match set {
                true => bits.fetch_or(1 << thread, Ordering::Relaxed),
                false => bits.fetch_and(!(1 << thread), Ordering::Relaxed),
            };
        }
    }

    /// True if a thread has transactions that are not durable.
    pub fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed) != 0
    }

    /// Takes the mechanism of a thread that has ended.
    pub fn return_mechanism(&self, thread: u8, mechanism: Box<dyn mechanism::Mechanism>) {
        lock(&self.slots)[usize::from(thread)] = Some(mechanism);
    }

    pub fn memory(&self, cpu: &Cpu) -> Memory {
        Memory::new(
            cpu,
            &self.devices,
            self.place,
            self.header().bytes,
            &self.options,
        )
    }
}

/// Bytes that are cleared at a time.
const ZEROS: [u8; PAGE as usize] = [0; PAGE as usize];

fn write_zeros(m: &mut Memory, range: std::ops::Range<u64>) -> Result<()> {
    for at in range.clone().step_by(ZEROS.len()) {
        let bytes = (range.end - at).min(PAGE) as usize;
        m.stream(at, &ZEROS[..bytes])?;
    }
    Ok(())
}

impl Pool {
    /// Creates a pool of `bytes` bytes at `place` of the PM window of one or several devices, and
    /// opens it. The former content is lost.
    pub fn create(
        cpu: &Cpu,
        devices: impl Into<Devices>,
        place: u64,
        bytes: u64,
        layout: &Layout,
        options: &Options,
    ) -> Result<Pool> {
        check_pool_number(options)?;
        check_group(options)?;
        let devices = devices.into();
        devices.validate()?;
        let count = devices.count();
        let header = Header::new(layout, bytes, count as u8)?;
        check_within_windows(cpu, &devices, place, bytes, options)?;
        let mut m = Memory::new(cpu, &devices, place, bytes, options);
        // The former content stays until the engines have accepted the new pool.
        if let Some(offload) = new_offload(&devices, place, options)? {
            let recovery = LogRecovery {
                header: &header,
                offload: &offload,
            };
            recovery.unmap_pool(&m)?;
            recovery.map_pool(&m)?;
        }
        // A crash from here on leaves no pool.
        m.write_line(0, &[0; LINE as usize])?;
        m.fence()?;
        let first = Descriptor {
            generation: recovery::NEVER_OPENED,
            state: LogState::Open,
            records: 0,
            transaction: 0,
        };
        for index in 0..count {
            let part = header.part_line(index);
            m.on_device(index, |m| {
                if index > 0 {
                    m.write_line(0, &part)?;
                }
                write_zeros(m, header.logs()..header.log(header.log_count()))?;
                (0..header.log_count())
                    .try_for_each(|number| m.write_line(header.log(number), &first.to_line()))
            })?;
        }
        if count > 1 {
            write_zeros(&mut m, header.cpu_log(0)..header.cpu_log(layout.threads))?;
            for thread in 0..layout.threads {
                m.write_line(header.cpu_log(thread), &first.to_line())?;
            }
        }
        if layout.has_pages() {
            m.stream(header.table(), &Pages::table(&header))?;
            let none = header.switches().number_offset();
            write_zeros(&mut m, none..none + PAGE)?;
        }
        let heap = header.data() + header.spare() * PAGE;
        for range in heap::metadata(0, header.heap_bytes()) {
            write_zeros(&mut m, heap + range.start..heap + range.end)?;
        }
        let [first, second] = header.to_lines();
        m.write_line(LINE, &second)?;
        m.fence()?;
        m.write_line(0, &first)?;
        m.fence()?;
        let (name, all) = (&layout.name, |_| Ok(()));
        Pool::open_used(cpu, devices, place, name, options, all, false)
    }

    /// Opens the pool with this layout name at `place` of the PM window of one device, or of
    /// several in the order of its creation. Transactions that were under way at its last use are
    /// completed or undone.
    pub fn open(
        cpu: &Cpu,
        devices: impl Into<Devices>,
        place: u64,
        name: &str,
        options: &Options,
    ) -> Result<Pool> {
        Pool::open_if_allowed(cpu, devices, place, name, options, |_| Ok(()))
    }

    /// The same, if `allowed` accepts the pool's size.
    pub(crate) fn open_if_allowed(
        cpu: &Cpu,
        devices: impl Into<Devices>,
        place: u64,
        name: &str,
        options: &Options,
        allowed: impl FnOnce(u64) -> Result<()>,
    ) -> Result<Pool> {
        Pool::open_used(cpu, devices, place, name, options, allowed, true)
    }

    /// The same for a pool that is new, or has been in use before.
    fn open_used(
        cpu: &Cpu,
        devices: impl Into<Devices>,
        place: u64,
        name: &str,
        options: &Options,
        allowed: impl FnOnce(u64) -> Result<()>,
        used_before: bool,
    ) -> Result<Pool> {
        check_pool_number(options)?;
        check_group(options)?;
        let devices = devices.into();
        devices.validate()?;
        let count = devices.count();
        let pages = HEADER_BYTES * count as u64;
        check_within_windows(cpu, &devices, place, pages, options)?;
        options
            .engines()
            .try_for_each(|engine| engine.check_nothing_lost(cpu))?;
        let mut m = Memory::new(cpu, &devices, place, pages, options);
        let header = Header::from_lines(&m.read_line_direct(0)?, &m.read_line_direct(LINE)?)?;
        if header.layout.name != name {
            return Err(Error::NoPool(format!(
                "the pool holds `{}`, not `{}`",
                sim::escape_controls(&header.layout.name),
                sim::escape_controls(name)
            )));
        }
        if usize::from(header.devices) != count {
            return Err(Error::Invalid(format!(
                "the pool is over {} devices, not {count}",
                header.devices
            )));
        }
        if let Some(index) = missing_part(&mut m, &header)? {
            return Err(Error::NoPool(format!(
                "device {} does not have part {index} of the pool",
                devices.number(index)
            )));
        }
        check_within_windows(cpu, &devices, place, header.bytes, options)?;
        allowed(header.bytes)?;
        m.resize(header.bytes);
        let offload = new_offload(&devices, place, options)?;
        if header.layout.tracked && offload.is_some() && used_before {
            // Only the cache may have what an interrupted transaction has stored. These stores are
            // undone, since the engine makes records of them while it still has the log open.
            m.drop_lines(header.data()..header.bytes)?;
            m.fence_posted()?;
        }
        let (generations, last) = recover_logs(&mut m, &header, offload.as_ref())?;
        options
            .engines()
            .try_for_each(|engine| engine.wait_until_persistent(cpu))?;
        if header.layout.has_pages() {
            Pages::recover(&mut m, &header)?;
        }
        let pages = match header.layout.has_pages() {
            true => Some(Arc::new(Pages::load(&mut m, &header)?)),
            false => None,
        };
        let heap = load_heap(&mut m, &header, pages.as_deref())?;
        let words = match &options.engine {
            Some(engine) if count == 1 && options.words => {
                engine.attach_words(cpu, options.pool)?
            }
            _ => None,
        };
        let slots = generations.into_iter().enumerate();
        let slots = slots.map(|(n, generations)| {
            let log = new_log(&header, n as u8, &generations, offload.as_ref(), options);
            Some(new_mechanism(&header, log, pages.as_ref(), options))
        });
        Ok(Pool(Arc::new(PoolInner {
            devices,
            place,
            options: options.clone(),
            slots: Mutex::new(slots.collect()),
            header: Mutex::new(header),
            heap: Mutex::new(heap),
            pages,
            words,
            transactions: AtomicU64::new(last),
            exclusive: Lock::new(),
            under_way: AtomicUsize::new(0),
            pending: AtomicU64::new(0),
            grouped: AtomicU64::new(0),
            shared: cpu.shared().clone(),
            restarts: cpu.shared().with_machine(|machine| machine.restarts()),
            unusable: Mutex::new(None),
        })))
    }

    /// A thread that works on the pool, on a CPU. The layout limits their number.
    pub fn thread(&self, cpu: &Cpu) -> Result<Thread> {
        self.0.check_usable()?;
        if self.0.grouped.load(Ordering::Relaxed) != 0 {
            return Err(Error::Invalid(
                "another thread of the pool has transactions that are not durable: allowed is a \
                 further thread after its `sync`"
                    .into(),
            ));
        }
        let mut slots = lock(&self.0.slots);
        let free = slots.iter_mut().enumerate().find(|(_, s)| s.is_some());
        let taken = free.and_then(|(n, slot)| Some((n as u8, slot.take()?)));
        let Some((number, mechanism)) = taken else {
            let text = format!("the pool has logs for {} threads, all in use", slots.len());
            return Err(Error::Full(text));
        };
        let words = self.0.words;
        let log = self.0.options.pool * THREADS + number;
        let progress = words.map(|words| Progress::new(progress_word(words, log)));
        let memory = self.0.memory(cpu);
        Ok(Thread::new(&self.0, number, mechanism, memory, progress))
    }

    /// Bytes of the pool.
    pub fn bytes(&self) -> u64 {
        self.0.header().bytes
    }

    /// The layout of the pool.
    pub fn layout(&self) -> Layout {
        self.0.header().layout.clone()
    }

    pub(crate) fn options(&self) -> &Options {
        &self.0.options
    }

    /// Grows the pool to `bytes` bytes. No [`Thread`] may use it.
    pub fn resize(&self, cpu: &Cpu, bytes: u64) -> Result<()> {
        self.0.check_usable()?;
        let old = self.0.header().clone();
        if old.layout.has_pages() {
            let text = "a pool with shadow paging keeps its size: its page table has no room for \
                        more pages";
            return Err(Error::Invalid(text.into()));
        }
        if lock(&self.0.slots).iter().any(Option::is_none) {
            let text = "the pool can't grow while threads use it";
            return Err(Error::Invalid(text.into()));
        }
        let new = Header {
            generation: old.generation.wrapping_add(1),
            ..Header::new(&old.layout, bytes, old.devices)?
        };
        if bytes < old.bytes {
            return Err(Error::Invalid(format!(
                "{bytes} bytes: a pool of {} bytes can only grow",
                old.bytes
            )));
        }
        check_within_windows(cpu, &self.0.devices, self.0.place, bytes, &self.0.options)?;
        let mut m = self.0.memory(cpu);
        m.resize(bytes);
        let heap = match self.prepare_growth(&mut m, &old, &new) {
            Ok(heap) => heap,
            Err(error) => {
                m.resize(old.bytes);
                self.remap(&mut m, &old)
                    .inspect_err(|_| self.0.mark_unusable())?;
                return Err(error);
            }
        };
        let grown = |m: &mut Memory| {
            m.write_line(0, &new.to_lines()[0])?;
            m.fence()?;
            *self.0.header() = new.clone();
            *self.0.heap() = heap;
            self.remap(m, &new)
        };
        // How far the growth has come is not known.
        grown(&mut m).inspect_err(|_| self.0.mark_unusable())
    }

    /// Prepares all that has to exist before the header says that the pool has grown; returns the
    /// new heap. The old pool does not read these bytes, so a power loss leaves the old pool.
    fn prepare_growth(&self, m: &mut Memory, old: &Header, new: &Header) -> Result<Heap> {
        // The engines unmap the pool to map a larger one. A transaction that was committed on only
        // one device by then would never be completed.
        self.wait_for_peers(m)?;
        // The former content stays until the engines have accepted the range.
        self.map_on_engines(m, new)?;
        let added = heap::metadata(old.heap_bytes(), new.heap_bytes());
        for range in heap::metadata_beyond(old.heap_bytes())
            .into_iter()
            .chain(added)
        {
            write_zeros(m, new.data() + range.start..new.data() + range.end)?;
        }
        m.fence()?;
        // An unreadable heap would be lost with the new header.
        reload_heap(m, new, None)
    }

    /// Has the engines map the pool as a header says.
    fn map_on_engines(&self, m: &Memory, header: &Header) -> Result<()> {
        let offload = new_offload(&self.0.devices, self.0.place, &self.0.options)?;
        let recovery = offload
            .as_ref()
            .map(|offload| LogRecovery { header, offload });
        recovery.map_or(Ok(()), |recovery| recovery.map_pool(m))
    }

    /// Waits until no log waits for other devices.
    pub(crate) fn wait_for_peers(&self, m: &mut Memory) -> Result<()> {
        let inner = &*self.0;
        let header = inner.header().clone();
        match new_offload(&inner.devices, inner.place, &inner.options)? {
            Some(offload) if header.devices > 1 => LogRecovery {
                header: &header,
                offload: &offload,
            }
            .wait_for_peers(m),
            _ => Ok(()),
        }
    }

    /// Maps the pool on the engines again.
    fn remap(&self, m: &mut Memory, header: &Header) -> Result<()> {
        let options = &self.0.options;
        let Some(offload) = new_offload(&self.0.devices, self.0.place, options)? else {
            return Ok(());
        };
        let (generations, last) = recover_logs(m, header, Some(&offload))?;
        self.0.transactions.fetch_max(last, Ordering::Relaxed);
        for (n, generations) in generations.into_iter().enumerate() {
            let log = new_log(header, n as u8, &generations, Some(&offload), options);
            let mechanism = new_mechanism(header, log, None, options);
            self.0.return_mechanism(n as u8, mechanism);
        }
        Ok(())
    }

    /// Ends the use of the pool: the engines unmap it, and its clones are unusable. No [`Thread`]
    /// may use it.
    pub fn close(self, cpu: &Cpu) -> Result<()> {
        if lock(&self.0.slots).iter().any(Option::is_none) {
            let text = "the pool can't be closed while threads use it";
            return Err(Error::Invalid(text.into()));
        }
        self.wait_for_peers(&mut self.0.memory(cpu))?;
        lock(&self.0.unusable).get_or_insert("the pool has been closed: open it again");
        let options = &self.0.options;
        let unmap = Command::new(Operation::PoolUnmap, options.process, options.pool, 0);
        for engine in options.engines() {
            match engine.launch(cpu, &unmap)? {
                (results, _) if results.is_ok() => {}
                (results, _) => return Err(Error::Refused(Operation::PoolUnmap, results)),
            }
        }
        Ok(())
    }
}

/// An error for a group without transactions.
fn check_group(options: &Options) -> Result<()> {
    match options.group_commit {
        Some(0) => Err(Error::Invalid(
            "group_commit = 0: allowed are 1 and more".into(),
        )),
        _ => Ok(()),
    }
}

/// An error for a pool number that engines do not have.
fn check_pool_number(options: &Options) -> Result<()> {
    match options.pool < POOLS {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "pool {}: allowed are 0 to {}",
            options.pool,
            POOLS - 1
        ))),
    }
}

/// The engines that the options name, for the logs; nothing without engines.
fn new_offload(devices: &Devices, place: u64, options: &Options) -> Result<Option<Arc<Offload>>> {
    let engines: Vec<_> = options.engines().cloned().collect();
    if engines.is_empty() {
        return Ok(None);
    }
    let own: Vec<usize> = engines.iter().map(|engine| engine.device()).collect();
    if own != devices.numbers() {
        return Err(Error::Invalid(format!(
            "the pool is on devices {:?}, its engines on {own:?}",
            devices.numbers()
        )));
    }
    let most = usize::from(spec::nearpm::DEVICES);
    if own.len() > 1 && own.iter().any(|device| *device >= most) {
        return Err(Error::Invalid(format!(
            "devices {own:?}: engines of several devices have numbers, allowed are 0 to {}",
            most - 1
        )));
    }
    Ok(Some(Arc::new(Offload {
        engines,
        devices: devices.clone(),
        synchronise: options.synchronise,
        pool: options.pool,
        process: options.process,
        place,
    })))
}

/// An error for a pool outside of the windows, or in the range that engines reserve at the end of
/// their media.
fn check_within_windows(
    cpu: &Cpu,
    devices: &Devices,
    place: u64,
    bytes: u64,
    options: &Options,
) -> Result<()> {
    if place % ALIGN != 0 {
        let text = format!("a pool at {place:#x}: allowed are multiples of {ALIGN}");
        return Err(Error::Invalid(text));
    }
    let each = bytes / devices.count() as u64;
    let reaches = |device: usize, bytes: u64| {
        let check = |machine: &mut host::Machine| {
            let system = machine.system();
            system.check_access(device, Bar::Pm, place, bytes)
        };
        cpu.shared().with_machine(check)
    };
    for &device in devices.numbers() {
        let refused = |what: String| {
            Error::Invalid(format!(
                "a pool of {bytes} bytes at {place:#x} of device {device}: {what}"
            ))
        };
        reaches(device, each).map_err(|error| refused(error.to_string()))?;
        if options.engine.is_some() {
            reaches(device, each.saturating_add(RESERVED_BYTES)).map_err(|_| {
                refused(format!(
                    "allowed are pools that leave the window's last {RESERVED_BYTES} bytes to the \
                     engine"
                ))
            })?;
        }
    }
    Ok(())
}

/// The first of the pool's other devices that does not have its part.
pub(crate) fn missing_part(m: &mut Memory, header: &Header) -> Result<Option<usize>> {
    for index in 1..usize::from(header.devices) {
        if m.on_device(index, |m| m.read_line_direct(0))? != header.part_line(index) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn load_heap(m: &mut Memory, header: &Header, pages: Option<&Pages>) -> Result<Heap> {
    let mut read = |at: u64, out: &mut [u8]| match pages {
        Some(pages) => pages.read(m, at, out),
        None => m.read(at, out),
    };
    Heap::load(header.data(), header.heap_bytes(), &mut read)
}

/// Reads the allocator's metadata again, from the device.
pub(crate) fn reload_heap(m: &mut Memory, header: &Header, known: Option<&Pages>) -> Result<Heap> {
    let pages = known.map(|pages| pages.check(m, header)).transpose()?;
    let mut read = |at: u64, out: &mut [u8]| match &pages {
        Some(pages) => pages.read_again(m, at, out),
        None => m.read_media(at, out),
    };
    Heap::load_whole(header.data(), header.heap_bytes(), &mut read)
}

fn new_log(
    header: &Header,
    thread: u8,
    generations: &[Vec<u64>],
    offload: Option<&Arc<Offload>>,
    options: &Options,
) -> Log {
    let places = LogPlacement {
        log: match offload {
            Some(_) => header.log(thread * header.turns()),
            None => header.cpu_log(thread),
        },
        bytes: header.layout.log_bytes,
        staging: header.staging(thread),
    };
    let mut log = Log::new(places, thread, generations, offload.cloned());
    if !options.snapshots {
        log.disable_snapshots();
    }
    if header.layout.tracked {
        log.track();
    }
    log
}

fn new_mechanism(
    header: &Header,
    log: Log,
    pages: Option<&Arc<Pages>>,
    options: &Options,
) -> Box<dyn mechanism::Mechanism> {
    let mechanism: Box<dyn mechanism::Mechanism> = match (header.layout.mechanism, pages) {
        _ if header.layout.tracked && log.is_offloaded() => {
            Box::new(Tracked::new(log, header.layout.tracked_lines()))
        }
        (Mechanism::Redo, _) => Box::new(Redo::new(log)),
        (Mechanism::Checkpoint, _) => Box::new(InPlace::new(RecordKind::Checkpoint, log)),
        (Mechanism::Shadow, Some(pages)) => Box::new(Shadow::new(log, pages, options.snapshots)),
        _ => Box::new(InPlace::new(RecordKind::Undo, log)),
    };
    let room = header.layout.log_bytes - FIRST_RECORD;
    let room = (header.layout.mechanism == Mechanism::Redo).then_some(room);
    Box::new(Group::new(mechanism, room))
}

/// The generations of each thread's logs: device by device for each turn.
type Generations = Vec<Vec<Vec<u64>>>;

/// Recovers all logs and opens them; returns their generations, and the highest transaction number.
fn recover_logs(
    m: &mut Memory,
    header: &Header,
    offload: Option<&Arc<Offload>>,
) -> Result<(Generations, u64)> {
    let threads = 0..header.layout.threads;
    let one = |generation| vec![vec![generation]];
    let by_cpu = |m: &mut Memory, thread: u8| {
        let (place, bytes) = (header.cpu_log(thread), header.layout.log_bytes);
        let objects = header.table()..header.bytes;
        recovery::recover(
            m,
            place,
            bytes,
            thread,
            objects,
            PendingAction::FollowDescriptor,
        )
    };
    let all_by_cpu = |m: &mut Memory| {
        let all = threads.clone().map(|thread| by_cpu(m, thread));
        all.collect::<Result<Vec<u64>>>()
    };
    match offload {
        None => {
            if header.devices > 1 {
                multi_device::refuse_unless_empty(m, header)?;
            }
            let all = all_by_cpu(m)?;
            Ok((all.into_iter().map(one).collect(), 0))
        }
        Some(offload) if header.devices > 1 => {
            let recovered = LogRecovery { header, offload }.recover_all(m)?;
            all_by_cpu(m)?;
            Ok(recovered)
        }
        Some(offload) => {
            let all = recover_one_device(m, header, offload, &by_cpu)?;
            Ok((all.into_iter().map(one).collect(), 0))
        }
    }
}

/// The same for one device with an engine.
fn recover_one_device(
    m: &mut Memory,
    header: &Header,
    offload: &Offload,
    by_cpu: &dyn Fn(&mut Memory, u8) -> Result<u64>,
) -> Result<Vec<u64>> {
    let threads = 0..header.layout.threads;
    let engine = &offload.engines[0];
    let launch = |m: &Memory, command: &Command| engine.launch(&m.cpu, command);
    let launch_checked = |m: &Memory, command: &Command| match launch(m, command)? {
        (results, _) if results.is_ok() => Ok(()),
        (results, _) => Err(Error::Refused(command.operation, results)),
    };
    let recovery = LogRecovery { header, offload };
    let map = recovery.map_command();
    let open = |thread: u8, generation: u64| Command {
        value: generation,
        ..offload.command(Operation::LogOpen, thread)
    };
    // This command ends after all others of the pool. It closes the logs, so that their content
    // counts and not the engine's state of them: the CPU may have used the pool since.
    recovery.unmap_pool(m)?;
    if m.options.engine_recovers {
        for thread in threads.clone() {
            let (place, bytes) = (header.log(thread), header.layout.log_bytes);
            let hint = ", or have the CPU recover it, which needs no number";
            recovery::check_pool_number(m, place, bytes, thread, offload.pool, hint)?;
        }
        launch_checked(m, &map)?;
        let mut dropped = false;
        let mut generations = Vec::new();
        for thread in threads {
            let (place, bytes) = (header.log(thread), header.layout.log_bytes);
            if !dropped && !recovery::is_empty(m, place, bytes, thread)? {
                // No line that the engine changes may stay in the cache.
                m.drop_lines(header.table()..header.bytes)?;
                m.fence_posted()?;
                dropped = true;
            }
            let (results, _) = launch(m, &offload.command(Operation::Recover, thread))?;
            let generation = if results.is_ok() {
                recovery::read_descriptor(m, place, thread)?.generation
            } else if results.has(ErrorBit::Torn) {
                // Payloads of the CPU's records may become persistent after their headers.
                by_cpu(m, thread)?
            } else {
                return Err(Error::Refused(Operation::Recover, results));
            };
            launch_checked(m, &open(thread, generation))?;
            generations.push(generation);
        }
        return Ok(generations);
    }
    let generations = threads
        .map(|thread| by_cpu(m, thread))
        .collect::<Result<Vec<_>>>()?;
    launch_checked(m, &map)?;
    for (thread, generation) in generations.iter().enumerate() {
        launch_checked(m, &open(thread as u8, *generation))?;
    }
    Ok(generations)
}
