// SPDX-License-Identifier: Apache-2.0

//! The scheduler: one host, its memory, and devices attached by links, in one simulated time.
//!
//! Everything that crosses a link takes at least the link's latency. Devices may therefore run
//! ahead for that long before the scheduler handles what they sent. Events at the root complex are
//! handled in order of time; ties are resolved by device number. Results are therefore independent
//! of how far and in which order devices ran.
//!
//! The host acts at [`System::now`]; time passes only while it waits.

use std::collections::VecDeque;

use crate::config::{HostConfig, InvalidValue, LinkConfig, PAGE};
use crate::guard;
use crate::memory::{ExternalMemory, HostMemory, Interrupt, Watch};
use crate::pcie::{split_write, Link, ReadRequest, UpstreamKind};
use crate::random::Random;
use crate::{Bar, Device, Fault, HostPort, Mmio, OrderWatch, Time, TraceEvent, Tracer};

/// Start of the devices' windows in the host's address space.
pub const WINDOW_BASE: u64 = 1 << 40;

/// Why a request of the host failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A device cannot continue.
    #[error("device {device}: {fault}")]
    Fault {
        /// Which device.
        device: usize,
        /// The device's fault.
        fault: Fault,
    },
    /// No such device, or the access is not within the window.
    #[error("device {device} has nothing at {bar:?} offset {offset:#x}")]
    NoWindow {
        /// Which device.
        device: usize,
        /// The window.
        bar: Bar,
        /// The offset in the window.
        offset: u64,
    },
    /// The device answered a read with an error. (A real CPU sees all ones.)
    #[error("device {device} failed a read of {bar:?} offset {offset:#x}")]
    ReadFailed {
        /// Which device.
        device: usize,
        /// The window.
        bar: Bar,
        /// Where in it.
        offset: u64,
    },
    /// The device has neither answered a read nor accepted a write within the completion timeout.
    #[error("device {device} does not answer an access to {bar:?} offset {offset:#x}")]
    Timeout {
        /// Which device.
        device: usize,
        /// The window.
        bar: Bar,
        /// Where in it.
        offset: u64,
    },
    /// A parameter is not allowed.
    #[error(transparent)]
    Config(#[from] InvalidValue),
    /// Windows of these sizes exceed the host's address space.
    #[error(
        "windows of {0:?} bytes: they don't fit into what is left of the host's address space"
    )]
    Windows(Vec<u64>),
    /// A load that is empty or crosses a page.
    #[error("a load of {len} bytes at {offset:#x}: allowed are 1 to 4096 in one page")]
    LoadLength {
        /// Its bytes.
        len: usize,
        /// Where in the window.
        offset: u64,
    },
}

/// An access of a device at the root complex: one TLP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedTlp {
    /// When it arrived.
    pub time: Time,
    /// The device that sent it.
    pub device: usize,
    /// The first address.
    pub addr: u64,
    /// The number of bytes.
    pub len: u32,
    /// The data of a write; `None` is a read.
    pub data: Option<Vec<u8>>,
}

/// A device's window in the host's address space.
struct Window {
    bar: Bar,
    base: u64,
    size: u64,
}

impl Window {
    fn contains(&self, addr: u64, len: u64) -> bool {
        let end = addr
            .checked_sub(self.base)
            .and_then(|at| at.checked_add(len));
        end.is_some_and(|end| end <= self.size)
    }
}

struct AttachedDevice {
    device: Box<dyn Device + Send>,
    link: Link,
    windows: Vec<Window>,
    tracer: Option<Tracer>,
}

/// A TLP as [`System::take_accesses`] returns it. Answers of the device to reads are not accesses.
fn observed_tlp(time: Time, device: usize, up: &UpstreamKind, link: &Link) -> Option<ObservedTlp> {
    let (addr, len, data) = match up {
        UpstreamKind::Write { addr, slot, len } => {
            (*addr, *len, Some(link.bytes(*slot, *len).to_vec()))
        }
        UpstreamKind::Read(request) => (request.addr, request.len, None),
        UpstreamKind::Answer { .. } => return None,
    };
    Some(ObservedTlp {
        time,
        device,
        addr,
        len,
        data,
    })
}

/// The requester of a read of a device.
#[derive(Clone, Copy)]
enum Requester {
    Cpu(IssuedLoad),
    Peer { device: usize, request: ReadRequest },
}

/// A load of the CPU.
#[derive(Clone, Copy)]
struct IssuedLoad {
    at: Time,
    device: usize,
    bar: Bar,
    offset: u64,
    len: u32,
}

/// A read of a device that has not been answered in full.
struct PendingRead {
    tag: u32,
    requester: Requester,
    /// The data that has arrived.
    data: Vec<u8>,
}

/// A load that has ended, see [`System::load`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedLoad {
    /// The value that [`System::load`] returned.
    pub tag: u32,
    /// When the CPU issued it.
    pub issued: Time,
    /// When the CPU has all of it.
    pub done: Time,
    /// The bytes.
    pub data: Result<Vec<u8>, Error>,
}

/// When [`System::run_until`] returns before its limit.
#[derive(Clone, Copy)]
enum StopCondition {
    Never,
    Attention,
    /// More than this number of loads have been answered.
    Answers(usize),
    Room(usize),
    /// Anything that a CPU may wait for: an answer beyond a number of them, space in one of the
    /// full queues, a mark that is reached; on request, attention.
    Event {
        answers: usize,
        full: usize,
        marks: usize,
        attention: bool,
    },
}

/// One host with its devices.
pub struct System {
    host: HostConfig,
    memory: HostMemory,
    slots: Vec<AttachedDevice>,
    /// Where the next window may start.
    next_window: u64,
    /// The host's time.
    now: Time,
    /// Devices have run up to this time: at most the lookahead past `now`.
    device_time: Time,
    /// The latest event at the root complex.
    event_time: Time,
    /// The smallest latency of all links.
    lookahead: Time,
    next_tag: u32,
    /// Reads of devices that wait for an answer.
    reads: Vec<PendingRead>,
    /// Loads that have been answered and not taken, in the order of their ends.
    loads: VecDeque<CompletedLoad>,
    /// Accesses of devices since they were last taken, if recorded.
    observed: Option<Vec<ObservedTlp>>,
    random: Random,
}

impl System {
    /// A host without devices at time zero.
    pub fn new(host: &HostConfig) -> Result<System, Error> {
        host.validate()?;
        let mib = host.memory_mib;
        let memory = HostMemory::new(host.memory_base, mib << 20).map_err(|error| {
            InvalidValue::new("memory_mib", mib, format_args!("{error}; choose less"))
        })?;
        Ok(System::with_memory(host, memory))
    }

    /// A host without devices at time zero, with memory of another program. Its parameters must be
    /// valid; those of memory do not count. Devices do not reach each other.
    pub fn with_external_memory(
        host: &HostConfig,
        memory: Box<dyn ExternalMemory>,
    ) -> Result<System, Error> {
        host.validate()?;
        let memory = HostMemory::external(memory)
            .map_err(|error| InvalidValue::new("memory_mib", host.memory_mib, error))?;
        Ok(System::with_memory(host, memory))
    }

    fn with_memory(host: &HostConfig, memory: HostMemory) -> System {
        System {
            memory,
            slots: Vec::new(),
            next_window: WINDOW_BASE,
            now: Time::ZERO,
            device_time: Time::ZERO,
            event_time: Time::ZERO,
            lookahead: Time::MAX,
            next_tag: 0,
            reads: Vec::new(),
            loads: VecDeque::new(),
            observed: None,
            random: Random::new(host.seed),
            host: host.clone(),
        }
    }

    /// Attaches a device by a separate link and assigns addresses to its windows (BAR and bytes
    /// each). Returns the number of the device. The device must not be ahead of this system's time.
    pub fn add_device(
        &mut self,
        device: Box<dyn Device + Send>,
        link: &LinkConfig,
        windows: &[(Bar, u64)],
    ) -> Result<usize, Error> {
        link.validate()?;
        let mut next = self.next_window;
        let mut place = |&(bar, size): &(Bar, u64)| {
            let span = size.checked_next_power_of_two()?.max(PAGE);
            let base = next.checked_next_multiple_of(span)?;
            next = base.checked_add(span)?;
            Some(Window { bar, base, size })
        };
        let placed: Option<Vec<Window>> = windows.iter().map(&mut place).collect();
        let windows =
            placed.ok_or_else(|| Error::Windows(windows.iter().map(|w| w.1).collect()))?;
        self.next_window = next;
        let link = Link::new(link);
        self.lookahead = self.lookahead.min(link.latency());
        self.slots.push(AttachedDevice {
            device,
            link,
            windows,
            tracer: None,
        });
        Ok(self.slots.len() - 1)
    }

    /// The host's present time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The host's parameters.
    pub fn host(&self) -> &HostConfig {
        &self.host
    }

    /// Host memory.
    pub fn memory(&self) -> &HostMemory {
        &self.memory
    }

    /// Host memory, for the CPU's stores at the present time.
    pub fn memory_mut(&mut self) -> &mut HostMemory {
        &mut self.memory
    }

    /// Number of devices.
    pub fn devices(&self) -> usize {
        self.slots.len()
    }

    /// A device.
    pub fn device(&self, device: usize) -> Option<&(dyn Device + Send)> {
        self.slots.get(device).map(|s| s.device.as_ref())
    }

    /// A device, to change what no host can change.
    pub fn device_mut(&mut self, device: usize) -> Option<&mut (dyn Device + Send + 'static)> {
        self.slots.get_mut(device).map(|s| s.device.as_mut())
    }

    /// Records the progress of a device's commands, on the device and at the host, in `tracer` from
    /// now on, or in none. False: the device cannot report it.
    pub fn set_tracer(&mut self, device: usize, tracer: Option<Tracer>) -> bool {
        self.slots.get_mut(device).is_some_and(|slot| {
            let supported = slot.device.set_tracer(tracer.clone());
            slot.tracer = tracer.filter(|_| supported);
            supported
        })
    }

    /// Records the order in which a device serves its host, from now on; see
    /// [`Device::watch_order`].
    pub fn watch_order(&mut self, device: usize, watch: Option<OrderWatch>) -> bool {
        let slot = self.slots.get_mut(device);
        slot.is_some_and(|slot| slot.device.watch_order(watch))
    }

    /// Records the accesses of devices at the root complex from now on, for
    /// [`System::take_accesses`].
    pub fn record_accesses(&mut self) {
        self.observed.get_or_insert_default();
    }

    /// The accesses of all devices that have reached the root complex since the last call, in the
    /// order in which they were handled.
    pub fn take_accesses(&mut self) -> Vec<ObservedTlp> {
        self.observed
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Completes and flushes the files that devices are writing: see [`Device::finish`].
    pub fn finish(&mut self) -> Result<(), Error> {
        let mut outcome = Ok(());
        for (device, slot) in self.slots.iter_mut().enumerate() {
            let finished = slot.device.finish();
            outcome = outcome.and(finished.map_err(|fault| Error::Fault { device, fault }));
        }
        outcome
    }

    /// The link of a device.
    pub fn link(&self, device: usize) -> Option<&Link> {
        self.slots.get(device).map(|s| &s.link)
    }

    /// The host address of a device's window, to which other devices write.
    pub fn window(&self, device: usize, bar: Bar) -> Option<u64> {
        self.slots
            .get(device)?
            .windows
            .iter()
            .find(|w| w.bar == bar)
            .map(|w| w.base)
    }

    // ---- the CPU ----

    /// Posted write. The CPU continues at once, unless the link's queue is full: then it waits for
    /// space.
    pub fn mmio_write(
        &mut self,
        device: usize,
        bar: Bar,
        offset: u64,
        data: &[u8],
    ) -> Result<(), Error> {
        self.check_access(device, bar, offset, data.len() as u64)?;
        let unit = self.slots[device].link.config().max_payload_bytes;
        if let (Bar::Nvme, Some(tracer)) = (bar, &self.slots[device].tracer) {
            tracer.record_store(self.now, offset, data);
        }
        for mmio in split_write(bar, offset, data, unit) {
            if self.slots[device].link.mmio_queued() >= self.host.mmio_queue {
                let limit = self.now + Time::us(self.host.completion_timeout_us);
                if !self.run_until(limit, StopCondition::Room(device))? {
                    return Err(Error::Timeout {
                        device,
                        bar,
                        offset,
                    });
                }
            }
            let ready = self.now + Time::ns(self.host.mmio_ns);
            self.slots[device].link.enqueue_mmio(ready, mmio);
        }
        Ok(())
    }

    /// Reads from a device. The CPU waits for the answer, so time passes.
    pub fn mmio_read(
        &mut self,
        device: usize,
        bar: Bar,
        offset: u64,
        len: usize,
    ) -> Result<Vec<u8>, Error> {
        self.check_access(device, bar, offset, len as u64)?;
        let mut out = Vec::new();
        while out.len() < len {
            let at = offset + out.len() as u64;
            let piece = (len - out.len()).min((PAGE - at % PAGE) as usize);
            let tag = self.load(device, bar, at, piece)?;
            out.extend_from_slice(&self.take_load(Some(tag))?.data?);
        }
        Ok(out)
    }

    /// Starts a load that lies within a page, and returns its tag. Time passes only if the CPU's
    /// limit ([`HostConfig::cpu_loads`]) is reached: until one load has ended.
    pub fn load(&mut self, device: usize, bar: Bar, offset: u64, len: usize) -> Result<u32, Error> {
        self.check_access(device, bar, offset, len as u64)?;
        if len == 0 || len as u64 > PAGE - offset % PAGE {
            return Err(Error::LoadLength { len, offset });
        }
        while self.loads_under_way() >= self.host.cpu_loads {
            match self.loads.iter().find(|load| load.done > self.now) {
                Some(load) => self.advance_until(load.done)?,
                None => self.wait_for_answer()?,
            }
        }
        let at = self.now;
        let len = len as u32;
        let tag = self.take_tag(Requester::Cpu(IssuedLoad {
            at,
            device,
            bar,
            offset,
            len,
        }));
        let read = Mmio::Read {
            bar,
            offset,
            len,
            tag,
        };
        let ready = at + Time::ns(self.host.mmio_ns);
        self.slots[device].link.enqueue_mmio(ready, read);
        Ok(tag)
    }

    /// Takes the load that ended first, and waits for one if none has ended. `None` if no load is
    /// in flight. A load that the device does not answer ends with the completion timeout.
    pub fn wait_load(&mut self) -> Result<Option<CompletedLoad>, Error> {
        if self.loads.is_empty() && self.loads_under_way() == 0 {
            return Ok(None);
        }
        self.take_load(None).map(Some)
    }

    /// The loads that have been answered and not taken: the time at which the CPU has all data, and
    /// the tag.
    pub fn completed_loads(&self) -> impl Iterator<Item = (Time, u32)> + '_ {
        self.loads.iter().map(|load| (load.done, load.tag))
    }

    /// Takes an answered load, at whatever time. See [`System::completed_loads`].
    pub fn take_completed_load(&mut self, tag: u32) -> Option<CompletedLoad> {
        let place = self.loads.iter().position(|load| load.tag == tag)?;
        self.loads.remove(place)
    }

    /// Whether the link's queue has space for the CPU's next store to a device, so that the store
    /// takes no time.
    pub fn has_room(&self, device: usize) -> bool {
        let queued = |slot: &AttachedDevice| slot.link.mmio_queued() < self.host.mmio_queue;
        self.slots.get(device).is_none_or(queued)
    }

    /// Adds a mark after everything that was stored to a device so far; its number is the argument
    /// of [`System::completed`]. `None`: no such device.
    pub fn mark(&mut self, device: usize) -> Option<u64> {
        let slot = self.slots.get_mut(device)?;
        Some(slot.link.mark())
    }

    /// When the host would be notified that the device has accepted everything before a mark, if
    /// each store were answered as in CXL.mem: one link latency later. `None` until then;
    /// afterwards the mark is removed.
    pub fn completed(&mut self, device: usize, mark: u64) -> Option<Time> {
        self.slots.get_mut(device)?.link.completed(mark)
    }

    /// As [`System::completed`], without removing the mark.
    pub fn peek_completed(&self, device: usize, mark: u64) -> Option<Time> {
        self.slots.get(device)?.link.peek_completed(mark)
    }

    /// Records the accesses that devices accept, from now on: the last 256 of each device.
    pub fn watch_accepted(&mut self) {
        let links = self.slots.iter_mut().map(|slot| &mut slot.link);
        links.for_each(Link::watch_accepted);
    }

    /// The latest accesses that a device has accepted, oldest first, with times. See
    /// [`System::watch_accepted`].
    pub fn accepted(&self, device: usize) -> impl Iterator<Item = &(Time, Mmio)> {
        let slot = self.slots.get(device);
        slot.into_iter().flat_map(|slot| slot.link.accepted())
    }

    /// Lets time pass until `limit`, or until an event that a CPU may wait for. Such an event is an
    /// answered or timed-out load, space in a full queue, a mark that is reached, or, with
    /// `attention`, what [`System::wait`] returns for. Returns whether there was one. With a limit
    /// of [`Time::MAX`], false means that nothing will happen any more.
    pub fn wait_event(&mut self, limit: Time, attention: bool) -> Result<bool, Error> {
        let issued = self.reads.iter().filter_map(|read| match read.requester {
            Requester::Cpu(issued) => Some((issued.at, read.tag)),
            Requester::Peer { .. } => None,
        });
        let patience = Time::us(self.host.completion_timeout_us);
        let oldest = issued
            .min_by_key(|&(at, _)| at)
            .map(|(at, tag)| (at + patience, tag));
        let overdue = oldest.filter(|&(end, _)| end <= limit);
        let stop = StopCondition::Event {
            answers: self.loads.len(),
            full: self.full_queues(),
            marks: self.open_marks(),
            attention,
        };
        let until = overdue.map_or(limit, |(end, _)| end.max(self.now));
        if self.run_until(until, stop)? {
            return Ok(true);
        }
        if let Some((_, tag)) = overdue {
            self.end_read(self.now, tag, Err(()));
        }
        Ok(overdue.is_some())
    }

    fn full_queues(&self) -> usize {
        (0..self.slots.len())
            .filter(|&device| !self.has_room(device))
            .count()
    }

    fn open_marks(&self) -> usize {
        self.slots.iter().map(|slot| slot.link.open_marks()).sum()
    }

    /// Number of loads that occupy the CPU.
    fn loads_under_way(&self) -> usize {
        let waits = |read: &&PendingRead| matches!(read.requester, Requester::Cpu(_));
        let comes = |load: &&CompletedLoad| load.done > self.now;
        self.reads.iter().filter(waits).count() + self.loads.iter().filter(comes).count()
    }

    /// Waits for the end of one load, or of any.
    fn take_load(&mut self, tag: Option<u32>) -> Result<CompletedLoad, Error> {
        loop {
            let wanted = |load: &CompletedLoad| tag.is_none_or(|tag| load.tag == tag);
            let place = self.loads.iter().position(wanted);
            if let Some(load) = place.and_then(|place| self.loads.remove(place)) {
                self.advance_until(load.done)?;
                return Ok(load);
            }
            self.wait_for_answer()?;
        }
    }

    /// Waits until one more load has been answered, or the oldest has timed out.
    fn wait_for_answer(&mut self) -> Result<(), Error> {
        let issued = self.reads.iter().filter_map(|read| match read.requester {
            Requester::Cpu(issued) => Some((issued.at, read.tag)),
            Requester::Peer { .. } => None,
        });
        let Some((at, tag)) = issued.min_by_key(|&(at, _)| at) else {
            return Ok(());
        };
        let limit = at + Time::us(self.host.completion_timeout_us);
        if !self.run_until(
            limit.max(self.now),
            StopCondition::Answers(self.loads.len()),
        )? {
            // A late answer is dropped.
            self.end_read(self.now, tag, Err(()));
        }
        Ok(())
    }

    /// Lets `span` pass.
    pub fn advance_by(&mut self, span: Time) -> Result<(), Error> {
        self.advance_until(self.now + span)
    }

    /// Lets time pass until `until`; does nothing if that is in the past.
    pub fn advance_until(&mut self, until: Time) -> Result<(), Error> {
        self.run_until(until, StopCondition::Never).map(drop)
    }

    /// Waits until `limit`, or until a watched write or an interrupt arrives. Returns whether one
    /// did. One that arrived since the last wait ends it at once. A limit of [`Time::MAX`] also
    /// ends it, without time passing, once nothing can happen any more.
    pub fn wait(&mut self, limit: Time) -> Result<bool, Error> {
        let woken = self.memory.attention() || self.run_until(limit, StopCondition::Attention)?;
        self.memory.clear_attention();
        Ok(woken)
    }

    /// As [`System::wait`], but also ends once `cancel` is true, at whatever time. It is called in
    /// each step of the devices, so that a busy device can't keep a program forever.
    pub fn wait_unless(
        &mut self,
        limit: Time,
        cancel: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Error> {
        let stop = StopCondition::Attention;
        let woken = self.memory.attention() || self.run_until_or(limit, stop, cancel)?;
        self.memory.clear_attention();
        Ok(woken)
    }

    /// As [`System::advance_until`], but also ends once `cancel` is true. See
    /// [`System::wait_unless`].
    pub fn advance_unless(
        &mut self,
        until: Time,
        cancel: &mut dyn FnMut() -> bool,
    ) -> Result<(), Error> {
        self.run_until_or(until, StopCondition::Never, cancel)
            .map(drop)
    }

    /// Lets busy devices run to the time before which nothing that the host does from now on can
    /// reach them. The next effect ([`System::next_effect`]) is then known to be later.
    pub fn run_ahead(&mut self) -> Result<(), Error> {
        let effect = self.next_effect();
        if effect == Time::MAX {
            return Ok(());
        }
        let event = self.next_event().map_or(Time::MAX, |event| event.0);
        let earliest = (self.now + Time::ns(self.host.mmio_ns)).min(event);
        let target = Time(earliest.0.saturating_add(self.lookahead.0)).min(effect);
        if target <= self.device_time {
            return Ok(());
        }
        guard::keep_handler();
        self.advance_devices(target)
    }

    /// The earliest time at which an access of a device may reach the root complex, if the host
    /// does nothing until then; [`Time::MAX`] if there is none. Writes of more than 64 bytes do not
    /// count: they are data, which a program uses once it has found a completion.
    pub fn next_effect(&self) -> Time {
        let of_slot = |slot: &AttachedDevice| {
            let (link, latency) = (&slot.link, slot.link.latency());
            let later = |time: Time, span: Time| Time(time.0.saturating_add(span.0));
            let sent = link.next_downstream().map(|time| later(time, latency));
            let arrival = link.next_arrival();
            let active = [sent, arrival, Some(slot.device.next_event())];
            let active = active.into_iter().flatten().min().unwrap_or(Time::MAX);
            let effect = later(active.max(self.device_time), latency);
            link.next_noticed().map_or(effect, |time| time.min(effect))
        };
        let first = self.slots.iter().map(of_slot).min();
        first.unwrap_or(Time::MAX).max(self.event_time)
    }

    /// As [`System::wait`], but only writes to `watch` count: returns true once it has hits. Take
    /// them before the next wait.
    pub fn wait_for_write(&mut self, watch: Watch, limit: Time) -> Result<bool, Error> {
        loop {
            self.memory.clear_attention();
            if self.memory.is_hit(watch) {
                return Ok(true);
            }
            if !self.run_until(limit, StopCondition::Attention)? {
                return Ok(false);
            }
        }
    }

    /// Takes the pending interrupts of a device, oldest first. Those of other devices stay.
    pub fn interrupts(&mut self, device: usize) -> Vec<Interrupt> {
        std::iter::from_fn(|| self.memory.pop_interrupt(device)).collect()
    }

    /// Removes power from a device. After [`System::advance_until`] this happens exactly now. After
    /// an early wake-up the device may be ahead by up to the link's latency, and loses power at its
    /// time.
    pub fn power_off(&mut self, device: usize) {
        let Some(slot) = self.slots.get_mut(device) else {
            return;
        };
        guard::keep_handler();
        slot.device.power_off();
        let lost = slot.link.power_off(self.device_time);
        for tag in lost {
            self.deliver_completion(self.device_time, tag, None, true);
        }
    }

    /// Restores power.
    pub fn power_on(&mut self, device: usize) {
        if let Some(slot) = self.slots.get_mut(device) {
            slot.device.power_on();
        }
    }

    /// Resets the function of a device: everything in flight on its link is lost, as with its
    /// power. See [`System::power_off`].
    pub fn function_reset(&mut self, device: usize) {
        let Some(slot) = self.slots.get_mut(device) else {
            return;
        };
        guard::keep_handler();
        slot.device.function_reset();
        let lost = slot.link.power_off(self.device_time);
        for tag in lost {
            self.deliver_completion(self.device_time, tag, None, true);
        }
    }

    // ---- the root complex ----

    /// Whether an access lies within a device's window.
    pub fn check_access(
        &self,
        device: usize,
        bar: Bar,
        offset: u64,
        len: u64,
    ) -> Result<(), Error> {
        let window = self
            .slots
            .get(device)
            .and_then(|s| s.windows.iter().find(|w| w.bar == bar));
        match window {
            Some(w) if offset.checked_add(len).is_some_and(|end| end <= w.size) => Ok(()),
            _ => Err(Error::NoWindow {
                device,
                bar,
                offset,
            }),
        }
    }

    fn take_tag(&mut self, requester: Requester) -> u32 {
        let tag = self.next_tag;
        self.next_tag = self.next_tag.wrapping_add(1);
        self.reads.push(PendingRead {
            tag,
            requester,
            data: Vec::new(),
        });
        tag
    }

    /// Whether an address belongs to devices.
    #[inline]
    fn is_of_devices(&self, addr: u64) -> bool {
        addr >= WINDOW_BASE && !self.memory.is_external()
    }

    /// The device window that an address hits.
    fn route(&self, addr: u64, len: u32) -> Option<(usize, Bar, u64)> {
        self.slots.iter().enumerate().find_map(|(device, slot)| {
            let window = slot.windows.iter().find(|w| w.contains(addr, len.into()))?;
            Some((device, window.bar, addr - window.base))
        })
    }

    /// Whether the first TLP from `slot` waits for room in a peer's queue.
    fn waits_for_peer(&self, slot: &AttachedDevice) -> bool {
        let (addr, len) = match slot.link.upstream_head() {
            Some(UpstreamKind::Write { addr, len, .. }) => (*addr, *len),
            Some(UpstreamKind::Read(request)) => (request.addr, request.len),
            _ => return false,
        };
        self.is_of_devices(addr)
            && self.route(addr, len).is_some_and(|(peer, ..)| {
                self.slots[peer].link.mmio_queued() >= self.host.mmio_queue
            })
    }

    /// The next event at the root complex: its time, the device, and whether it comes from that
    /// device.
    #[inline]
    fn next_event(&self) -> Option<(Time, usize, bool)> {
        let mut next: Option<(Time, usize, bool)> = None;
        for (i, slot) in self.slots.iter().enumerate() {
            if let Some(time) = slot.link.next_upstream() {
                let time = time.max(self.event_time);
                if next.is_none_or(|n| time < n.0) && !self.waits_for_peer(slot) {
                    next = Some((time, i, true));
                }
            }
            if let Some(time) = slot.link.next_downstream() {
                let time = time.max(self.event_time);
                if next.is_none_or(|n| time < n.0) {
                    next = Some((time, i, false));
                }
            }
        }
        next
    }

    /// A TLP of `device` reaches the root complex at `time`.
    fn receive_tlp(&mut self, time: Time, device: usize) {
        let link = &mut self.slots[device].link;
        let up = link.pop_upstream(time);
        if let (Some(observed), Some(up)) = (&mut self.observed, &up) {
            observed.extend(observed_tlp(time, device, up, link));
        }
        match up {
            Some(UpstreamKind::Write { addr, slot, len }) if !self.is_of_devices(addr) => {
                let link = &self.slots[device].link;
                self.memory
                    .device_write(time, device, addr, link.bytes(slot, len));
                if let Some(tracer) = &self.slots[device].tracer {
                    let len = len as usize;
                    tracer.record(time, &TraceEvent::Landed { addr, len });
                }
                let link = &mut self.slots[device].link;
                link.release(time + Time::ns(self.host.write_ns), slot, len);
            }
            Some(UpstreamKind::Write { addr, slot, len }) => {
                let link = &mut self.slots[device].link;
                let data = link.bytes(slot, len).to_vec();
                link.release(time, slot, len);
                match self.route(addr, len) {
                    Some((peer, bar, offset)) => {
                        let ready = time + Time::ns(self.host.peer_ns);
                        let unit = self.slots[peer].link.config().max_payload_bytes;
                        for mmio in split_write(bar, offset, &data, unit) {
                            self.slots[peer].link.enqueue_mmio(ready, mmio);
                        }
                    }
                    None => self.memory.device_write(time, device, addr, &data),
                }
            }
            Some(UpstreamKind::Read(request)) => {
                self.slots[device].link.release_read(time);
                let route = match self.is_of_devices(request.addr) {
                    true => self.route(request.addr, request.len),
                    false => None,
                };
                if let Some((peer, bar, offset)) = route {
                    let tag = self.take_tag(Requester::Peer { device, request });
                    let ready = time + Time::ns(self.host.peer_ns);
                    self.slots[peer].link.enqueue_mmio(
                        ready,
                        Mmio::Read {
                            bar,
                            offset,
                            len: request.len,
                            tag,
                        },
                    );
                    return;
                }
                let jitter = match self.host.read_jitter_ns {
                    0 => 0,
                    ns => self.random.below(ns * 1000 + 1),
                };
                let ready = time + Time(self.host.read_ns * 1000 + jitter);
                let len = request.len as usize;
                let data = self.memory.device_read(device, request.addr, len);
                self.slots[device].link.complete_read(ready, request, data);
            }
            Some(UpstreamKind::Answer { tag, data, last }) => {
                self.deliver_completion(time, tag, data, last)
            }
            None => {}
        }
    }

    /// A completion of a read of a device has arrived.
    fn deliver_completion(&mut self, time: Time, tag: u32, data: Option<Vec<u8>>, last: bool) {
        let Some(read) = self.reads.iter_mut().find(|read| read.tag == tag) else {
            return;
        };
        match data {
            Some(part) => read.data.extend_from_slice(&part),
            None => return self.end_read(time, tag, Ok(false)),
        }
        if last {
            self.end_read(time, tag, Ok(true));
        }
    }

    /// Passes the answer to a read of a device to its requester: complete, failed or timed out. A
    /// peer gets the whole answer at once.
    fn end_read(&mut self, time: Time, tag: u32, complete: Result<bool, ()>) {
        let Some(place) = self.reads.iter().position(|read| read.tag == tag) else {
            return;
        };
        let read = self.reads.swap_remove(place);
        match read.requester {
            Requester::Cpu(issued) => {
                let IssuedLoad {
                    device,
                    bar,
                    offset,
                    ..
                } = issued;
                let data = match complete {
                    Ok(true) if read.data.len() == issued.len as usize => Ok(read.data),
                    Ok(_) => Err(Error::ReadFailed {
                        device,
                        bar,
                        offset,
                    }),
                    Err(()) => Err(Error::Timeout {
                        device,
                        bar,
                        offset,
                    }),
                };
                let way = match complete {
                    Ok(_) => Time::ns(self.host.mmio_ns),
                    Err(()) => Time::ZERO,
                };
                self.loads.push_back(CompletedLoad {
                    tag,
                    issued: issued.at,
                    done: time + way,
                    data,
                });
            }
            Requester::Peer { device, request } => {
                let whole = complete == Ok(true) && read.data.len() == request.len as usize;
                let data = whole.then_some(read.data);
                let ready = time + Time::ns(self.host.peer_ns);
                self.slots[device]
                    .link
                    .complete_read(ready, request, data.as_deref());
            }
        }
    }

    fn is_met(&self, stop: StopCondition) -> bool {
        match stop {
            StopCondition::Never => false,
            StopCondition::Attention => self.memory.attention(),
            StopCondition::Answers(count) => self.loads.len() > count,
            StopCondition::Room(device) => {
                self.slots[device].link.mmio_queued() < self.host.mmio_queue
            }
            StopCondition::Event {
                answers,
                full,
                marks,
                attention,
            } => {
                self.loads.len() > answers
                    || (full > 0 && self.full_queues() < full)
                    || (marks > 0 && self.open_marks() < marks)
                    || (attention && self.memory.attention())
            }
        }
    }

    fn advance_devices(&mut self, target: Time) -> Result<(), Error> {
        for (device, slot) in self.slots.iter_mut().enumerate() {
            let advanced = slot.device.advance(target, &mut slot.link);
            advanced.map_err(|fault| Error::Fault { device, fault })?;
        }
        self.device_time = target;
        Ok(())
    }

    /// Lets time pass until `limit`, or until `stop`; returns whether the latter.
    fn run_until(&mut self, limit: Time, stop: StopCondition) -> Result<bool, Error> {
        self.run_until_or(limit, stop, &mut || false)
    }

    /// The same. Once `cancel` is true, it returns false at whatever time.
    fn run_until_or(
        &mut self,
        limit: Time,
        stop: StopCondition,
        cancel: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Error> {
        if limit < self.now {
            return Ok(false);
        }
        guard::keep_handler();
        loop {
            // Events at the root complex within the time that all devices have run through.
            let reached = self.device_time.min(limit);
            let mut next = self.next_event();
            while let Some((time, device, up)) = next.filter(|n| n.0 <= reached) {
                self.event_time = time;
                if up {
                    self.receive_tlp(time, device);
                } else {
                    self.slots[device].link.send_downstream(time);
                }
                if self.is_met(stop) {
                    self.now = self.now.max(time);
                    return Ok(true);
                }
                next = self.next_event();
            }
            if self.device_time >= limit {
                self.now = self.now.max(limit);
                return Ok(false);
            }
            if cancel() {
                self.now = self.now.max(reached);
                return Ok(false);
            }
            // Nothing can reach or leave a device sooner than one link latency after the first
            // event.
            let mut first = next.map_or(Time::MAX, |n| n.0);
            for slot in &self.slots {
                if first <= self.device_time {
                    break;
                }
                let arrival = slot.link.next_arrival().unwrap_or(Time::MAX);
                first = first.min(arrival).min(slot.device.next_event());
            }
            let first = first.max(self.device_time);
            if first == Time::MAX && limit == Time::MAX {
                // Nothing will ever happen again.
                return Ok(false);
            }
            let target = Time(first.0.saturating_add(self.lookahead.0)).min(limit);
            self.advance_devices(target)?;
            // The acceptance of a store by a device is no event at the root complex.
            if matches!(stop, StopCondition::Event { marks, .. } if marks > self.open_marks()) {
                return Ok(true);
            }
        }
    }
}
