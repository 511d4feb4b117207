// SPDX-License-Identifier: Apache-2.0

//! Loads in flight, and the processing of a line when it arrives.

use sim::Time;

use crate::events::HostEvent;
use crate::eviction::post_victims;
use crate::load::{DeferredAccess, FillActions, LoadInFlight};
use crate::machine::{Machine, Victim};
use crate::mapping::{AccessPart, CacheLine, LINE};
use crate::wc::mask;
use crate::{Error, Result, Turn, WakeCondition};

impl Machine {
    pub(crate) fn take_ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    /// The load in flight that fetches a line into the cache.
    pub(crate) fn filling(&mut self, line: &CacheLine) -> Option<&mut LoadInFlight> {
        self.loads_in_flight
            .iter_mut()
            .find(|f| f.fill == Some(*line))
    }

    /// Processes the loads that have arrived by now, in order.
    pub(crate) fn collect_arrivals(&mut self) {
        let now = self.system.now();
        while let Some((_, tag)) = self
            .system
            .completed_loads()
            .filter(|&(done, tag)| done <= now && self.is_in_flight(tag))
            .min()
        {
            self.collect_load(tag);
        }
    }

    /// Processes a load that has arrived.
    fn collect_load(&mut self, tag: u32) {
        let place = self.loads_in_flight.iter().position(|f| f.tag == tag);
        let (Some(place), Some(load)) = (place, self.system.take_completed_load(tag)) else {
            return;
        };
        if load.data.is_ok() {
            self.record(|| HostEvent::Answered { tag });
        }
        let flight = self.loads_in_flight.swap_remove(place);
        self.loads_collected += 1;
        let at = load.done + self.costs.load;
        let mut data = match load.data {
            Ok(data) => data,
            Err(error) => return self.fail_load(flight, at, &Error::System(error)),
        };
        let mut dirty = 0;
        for step in flight.steps {
            match step {
                DeferredAccess::Read { ticket, start, len } => {
                    let bytes = data.get(start..start + len).unwrap_or_default().to_vec();
                    self.found.insert(ticket, (at, Ok(bytes)));
                }
                DeferredAccess::Store { start, data: bytes } => {
                    data[start..start + bytes.len()].copy_from_slice(&bytes);
                    dirty |= mask(start, bytes.len());
                }
                DeferredAccess::Patch { start, data: bytes } => {
                    data[start..start + bytes.len()].copy_from_slice(&bytes);
                }
            }
        }
        let (Some(line), Ok(mut data)) = (flight.fill, <[u8; LINE]>::try_from(data)) else {
            return;
        };
        let FillActions { cpus, leaves } = flight.after;
        if !cpus.is_empty() && dirty != 0 {
            self.counts.flushes += 1;
            self.victims.push_back(Victim {
                line,
                data,
                dirty: std::mem::take(&mut dirty),
                cpus,
            });
        }
        if leaves {
            data.fill(0);
            return;
        }
        if let Some(old) = self.cache.insert(line, data, dirty) {
            if old.dirty != 0 {
                self.counts.evictions += 1;
                self.victims.push_back(Victim {
                    line: old.line,
                    data: old.data,
                    dirty: old.dirty,
                    cpus: Vec::new(),
                });
            }
        }
    }

    /// A load failed: reports the error to every access that waits for it.
    fn fail_load(&mut self, flight: LoadInFlight, at: Time, error: &Error) {
        for step in flight.steps {
            match step {
                DeferredAccess::Read { ticket, .. } => {
                    self.found.insert(ticket, (at, Err(error.clone())));
                }
                DeferredAccess::Store { .. } => {
                    let core = self.core(flight.cpu);
                    core.failed.get_or_insert(error.clone());
                }
                DeferredAccess::Patch { .. } => {}
            }
        }
    }
}

/// Starts an instruction of a CPU at its time: processes arrivals, and posts evicted lines.
pub(crate) fn begin_instruction<T: Turn>(turn: &mut T, cpu: usize) -> Result<()> {
    let at = turn.machine().busy_until(cpu);
    turn.wait_for(WakeCondition::At(at))?;
    process_arrivals(turn)?;
    match turn.machine().core(cpu).failed.take() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Processes arrivals, and posts evicted lines.
pub(crate) fn process_arrivals<T: Turn>(turn: &mut T) -> Result<()> {
    loop {
        turn.machine().collect_arrivals();
        if turn.machine().victims.is_empty() {
            return Ok(());
        }
        post_victims(turn)?;
    }
}

/// Starts a load of a device once the CPU has a fill buffer. `None`: time has passed, so the caller
/// checks again.
pub(crate) fn start_load<T: Turn>(
    turn: &mut T,
    cpu: usize,
    part: &AccessPart,
    fill: bool,
    steps: Vec<DeferredAccess>,
) -> Result<Option<u32>> {
    if !turn.machine().victims.is_empty() {
        // The line may be among those that wait for space.
        process_arrivals(turn)?;
        return Ok(None);
    }
    let machine = turn.machine();
    let own = |f: &&LoadInFlight| f.cpu == cpu;
    let mut full: Vec<u32> = machine
        .loads_in_flight
        .iter()
        .filter(own)
        .map(|f| f.tag)
        .collect();
    if full.len() < machine.costs.fill_buffers {
        full.clear();
    }
    if full.is_empty() && machine.loads_in_flight.len() >= machine.system.host().cpu_loads {
        full = machine.loads_in_flight.iter().map(|f| f.tag).collect();
    }
    if !full.is_empty() {
        turn.wait_for(WakeCondition::Loads(full))?;
        process_arrivals(turn)?;
        return Ok(None);
    }
    let (offset, len) = match fill {
        true => (part.line.offset, LINE),
        false => (part.offset(), part.len),
    };
    let tag = machine
        .system
        .load(part.line.device, part.line.bar, offset, len)?;
    let device = part.line.device;
    machine.record(|| HostEvent::Issued { device, tag });
    if fill {
        machine.counts.fills += 1;
    }
    machine.loads_in_flight.push(LoadInFlight {
        tag,
        cpu,
        fill: fill.then_some(part.line),
        steps,
        after: FillActions::default(),
    });
    Ok(Some(tag))
}

/// Waits for the result of a load; the CPU has it afterwards.
pub(crate) fn wait_load<T: Turn>(turn: &mut T, cpu: usize, ticket: u64) -> Result<Vec<u8>> {
    loop {
        let machine = turn.machine();
        if let Some((at, data)) = machine.found.remove(&ticket) {
            let core = machine.core(cpu);
            core.busy = core.busy.max(at);
            return data;
        }
        let waits = |f: &&LoadInFlight| {
            f.steps.iter().any(|step| match step {
                DeferredAccess::Read { ticket: read, .. } => *read == ticket,
                _ => false,
            })
        };
        let Some(tag) = machine.loads_in_flight.iter().find(waits).map(|f| f.tag) else {
            return Err(Error::Access("a load that nobody has issued".into()));
        };
        turn.wait_for(WakeCondition::Loads(vec![tag]))?;
        process_arrivals(turn)?;
    }
}
