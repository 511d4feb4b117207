// SPDX-License-Identifier: Apache-2.0

//! The host: the simulated system, the time of each CPU, and the buffers between CPUs and devices.

use std::collections::{HashMap, VecDeque};

use sim::{Bar, System, Time};

use crate::cache::Cache;
use crate::events::Observer;
use crate::load::LoadInFlight;
use crate::mapping::{CacheLine, LINE};
use crate::parameters::HostParameters;
use crate::store_buffer::StoreBuffer;
use crate::wc::{WcBuffer, WcBuffers};
use crate::{Error, Result};

/// Upper bound of the CPUs' times: about a hundred days, with headroom for additions.
pub(crate) const END: Time = Time(u64::MAX / 2);

/// What a CPU waits for.
#[derive(Clone, Debug)]
pub enum WakeCondition {
    /// This time.
    At(Time),
    /// The answer to a load, or to the first of several: tags of [`System::load`].
    Loads(Vec<u32>),
    /// Space in the queue of a device's link, or this time.
    Room(usize, Time),
    /// A CPU's store buffer holds at most this number of stores, or this time.
    Buffered(usize, usize, Time),
    /// A device has accepted everything before a mark ([`System::mark`]), or this time.
    Accepted(usize, u64, Time),
    /// A watched write or an interrupt ([`System::wait`]), or this time.
    Attention(Time),
}

/// The right to act: its holder runs at [`System::now`], and no other program does.
///
/// [`Machine`] implements it for a program that is alone; [`crate::SharedMachine`] gives a turn to
/// each of several programs.
pub trait Turn {
    /// The host.
    fn machine(&mut self) -> &mut Machine;

    /// Lets time pass until the condition holds and all CPUs with earlier times have acted.
    fn wait_for(&mut self, wake: WakeCondition) -> Result<()>;

    /// True if no other program runs.
    fn is_alone(&self) -> bool;

    /// True if a CPU with this time may use the cache before programs with earlier times: see
    /// [`crate::SharedMachine::set_slack`].
    fn may_run_ahead(&mut self, time: Time) -> bool;
}

/// The state of one CPU.
pub(crate) struct CoreState {
    /// The end of its work so far.
    pub busy: Time,
    pub wc: WcBuffers,
    /// Uncached stores.
    pub stores: StoreBuffer,
    /// The write-combining buffer that is being sent.
    pub sending: Option<WcBuffer>,
    /// When the root complex has accepted everything that this CPU has sent.
    pub accepted: Time,
    /// The last write to each device since the last fence: window and offset.
    pub unfenced: Vec<(usize, Bar, u64)>,
    /// A store whose line could not be fetched.
    pub failed: Option<Error>,
    /// Stores that each device had lost at the last fence, or at the start.
    pub lost: Vec<u64>,
}

/// An evicted line on its way to its device.
pub(crate) struct Victim {
    pub line: CacheLine,
    pub data: [u8; LINE],
    /// The bytes that were stored.
    pub dirty: u64,
    /// CPUs that requested the write-back, and whose fences wait for it.
    pub cpus: Vec<usize>,
}

/// Called when the power is about to fail. Returning a later time postpones the cut to that time.
pub type CrashProbe = Box<dyn FnMut(&mut Machine) -> Option<Time> + Send>;

/// Counters of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Loads and stores that found their line in the cache.
    pub hits: u64,
    /// Lines that were fetched.
    pub fills: u64,
    /// Lines that were written back to make room.
    pub evictions: u64,
    /// Lines that were written back because a CPU asked for it.
    pub flushes: u64,
    /// Write-combining buffers that left full.
    pub wc_full: u64,
    /// Write-combining buffers that left partly filled.
    pub wc_partial: u64,
    /// Fences.
    pub fences: u64,
}

/// A host with its devices.
pub struct Machine {
    pub(crate) system: System,
    pub(crate) costs: HostParameters,
    pub(crate) cores: Vec<CoreState>,
    pub(crate) cache: Cache,
    pub(crate) loads_in_flight: Vec<LoadInFlight>,
    /// Number of loads that have been processed.
    pub(crate) loads_collected: u64,
    /// Evicted lines that wait for space in the queue of their device.
    pub(crate) victims: VecDeque<Victim>,
    /// Results of loads that were not taken, and when the CPU has them.
    pub(crate) found: HashMap<u64, (Time, Result<Vec<u8>>)>,
    pub(crate) next_ticket: u64,
    pub(crate) counts: HostCounters,
    pub(crate) cut: Option<Time>,
    /// How often power was restored.
    pub(crate) restarts: u64,
    pub(crate) probe: Option<CrashProbe>,
    pub(crate) observer: Option<Observer>,
    /// Pending interrupts: device and vector, and the arrival of the first of each.
    messages: HashMap<(usize, u16), Time>,
}

impl Machine {
    /// A host with these parameters.
    pub fn new(system: System, parameters: HostParameters) -> Machine {
        Machine {
            costs: parameters,
            cache: Cache::new(parameters.cache, system.host().seed),
            system,
            cores: Vec::new(),
            loads_in_flight: Vec::new(),
            loads_collected: 0,
            victims: VecDeque::new(),
            found: HashMap::new(),
            next_ticket: 0,
            counts: HostCounters::default(),
            cut: None,
            restarts: 0,
            probe: None,
            observer: None,
            messages: HashMap::new(),
        }
    }

    /// The system.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// The system, mutable.
    pub fn system_mut(&mut self) -> &mut System {
        &mut self.system
    }

    /// The parameters.
    pub fn parameters(&self) -> &HostParameters {
        &self.costs
    }

    /// Counters so far.
    pub fn counts(&self) -> HostCounters {
        self.counts
    }

    /// The time of a CPU: the end of its work, or the present.
    pub fn time(&self, cpu: usize) -> Time {
        self.system.now().max(self.busy_until(cpu))
    }

    /// Collects the interrupts of a device that have arrived. A second interrupt of a pending
    /// vector is merged.
    pub fn collect_interrupts(&mut self, device: usize) {
        for interrupt in self.system.interrupts(device) {
            let vector = (device, interrupt.data as u16);
            self.messages.entry(vector).or_insert(interrupt.time);
        }
    }

    /// The pending interrupts of a device: vector and time of arrival.
    /// [`Machine::collect_interrupts`] updates them.
    pub fn pending_interrupts(&self, device: usize) -> impl Iterator<Item = (u16, Time)> + '_ {
        let of =
            move |(key, time): (&(usize, u16), &Time)| (key.0 == device).then_some((key.1, *time));
        self.messages.iter().filter_map(of)
    }

    /// When the pending interrupt of a vector arrived.
    pub fn interrupt_time(&self, device: usize, vector: u16) -> Option<Time> {
        self.messages.get(&(device, vector)).copied()
    }

    /// Clears the interrupt of a vector.
    pub fn clear_interrupt(&mut self, device: usize, vector: u16) {
        self.messages.remove(&(device, vector));
    }

    /// The end of a CPU's work so far.
    pub fn busy_until(&self, cpu: usize) -> Time {
        self.cores.get(cpu).map_or(Time::ZERO, |core| core.busy)
    }

    /// Adds work of this duration to a CPU.
    pub fn spend(&mut self, cpu: usize, time: Time) {
        let end = Time(self.time(cpu).0.saturating_add(time.0)).min(END);
        self.core(cpu).busy = end;
    }

    pub(crate) fn core(&mut self, cpu: usize) -> &mut CoreState {
        if self.cores.len() <= cpu {
            let buffers = self.costs.wc_buffers;
            let devices = 0..self.system.devices();
            let lost: Vec<u64> = devices.map(|n| self.lost_writes(n)).collect();
            self.cores.resize_with(cpu + 1, || CoreState {
                busy: Time::ZERO,
                wc: WcBuffers::new(buffers),
                stores: StoreBuffer::default(),
                sending: None,
                accepted: Time::ZERO,
                unfenced: Vec::new(),
                failed: None,
                lost: lost.clone(),
            });
        }
        &mut self.cores[cpu]
    }

    /// Stores that a device has lost so far.
    fn lost_writes(&self, device: usize) -> u64 {
        let device = self.system.device(device);
        device.map_or(0, sim::Device::lost_writes)
    }

    /// An error if a device has lost stores since the last check by a CPU. Posted writes have no
    /// answer, so the fence that waits for the device reports it.
    pub(crate) fn check_lost_stores(&mut self, cpu: usize, device: usize) -> Result<()> {
        let now = self.lost_writes(device);
        let core = self.core(cpu);
        if core.lost.len() <= device {
            core.lost.resize(device + 1, 0);
        }
        match now.saturating_sub(std::mem::replace(&mut core.lost[device], now)) {
            0 => Ok(()),
            stores => Err(Error::Lost { device, stores }),
        }
    }

    /// Whether a load was issued and has not been processed.
    pub(crate) fn is_in_flight(&self, tag: u32) -> bool {
        self.loads_in_flight.iter().any(|flight| flight.tag == tag)
    }

    /// When a condition holds, as far as known.
    pub(crate) fn due_time(&mut self, wake: &WakeCondition) -> Option<Time> {
        self.due_time_since(wake, None)
    }

    /// The same for a caller whose loads were all in flight when `loads_collected` loads had been
    /// processed.
    pub(crate) fn due_time_since(
        &mut self,
        wake: &WakeCondition,
        loads_collected: Option<u64>,
    ) -> Option<Time> {
        match wake {
            WakeCondition::At(time) | WakeCondition::Attention(time) => Some(*time),
            WakeCondition::Loads(tags) => {
                let there = self.system.completed_loads();
                let due = there
                    .filter(|(_, tag)| tags.contains(tag))
                    .map(|l| l.0)
                    .min();
                // Another CPU has processed one. Checked only if loads were processed, because
                // every waiting program is checked at each event.
                let gone = |tag: &u32| !self.is_in_flight(*tag);
                let now = self.system.now();
                match loads_collected != Some(self.loads_collected) && tags.iter().any(gone) {
                    true => Some(due.map_or(now, |due| due.min(now))),
                    false => due,
                }
            }
            WakeCondition::Room(device, limit) => match self.system.has_room(*device) {
                true => Some(self.system.now()),
                false => Some(*limit),
            },
            WakeCondition::Buffered(cpu, most, limit) => {
                match self.core(*cpu).stores.held.len() <= *most {
                    true => Some(self.system.now()),
                    false => Some(*limit),
                }
            }
            WakeCondition::Accepted(device, mark, limit) => {
                // The waiting program needs the answer again, so the mark stays.
                Some(self.system.peek_completed(*device, *mark).unwrap_or(*limit))
            }
        }
    }

    /// The latest time until which anything waits for a device.
    pub(crate) fn completion_deadline(&self) -> Time {
        self.system.now() + Time::us(self.system.host().completion_timeout_us)
    }
}

impl Turn for Machine {
    fn machine(&mut self) -> &mut Machine {
        self
    }

    fn wait_for(&mut self, wake: WakeCondition) -> Result<()> {
        if let WakeCondition::Attention(limit) = wake {
            let limit = self.cut.map_or(limit, |cut| cut.min(limit));
            loop {
                let end = self.post_due_stores()?.min(limit);
                if self.has_blocked_store() {
                    // Its device is busy, so an event follows.
                    self.system.wait_event(end, true)?;
                    if !self.system.memory().attention() && self.system.now() < limit {
                        continue;
                    }
                }
                if self.system.wait(end)? || end == limit {
                    return self.check_power();
                }
            }
        }
        loop {
            self.check_power()?;
            let stores = self.post_due_stores()?;
            let now = self.system.now();
            let due = self.due_time(&wake);
            if due.is_some_and(|due| due <= now) {
                return Ok(());
            }
            let limit = due.unwrap_or(Time::MAX).min(stores);
            let limit = self.cut.map_or(limit, |cut| cut.min(limit));
            if matches!(wake, WakeCondition::At(_)) && limit < Time::MAX {
                self.system.advance_until(limit)?;
            } else if !self.system.wait_event(limit, false)? && limit == Time::MAX {
                return Err(Error::Stuck);
            }
        }
    }

    fn is_alone(&self) -> bool {
        true
    }

    fn may_run_ahead(&mut self, _: Time) -> bool {
        true
    }
}

impl Machine {
    /// An error once the power is cut.
    pub(crate) fn check_power(&mut self) -> Result<()> {
        match (self.is_spared(), self.cut) {
            (false, Some(cut)) => Err(Error::PowerCut(cut)),
            _ => Ok(()),
        }
    }
}
