//! Loads of a device that are under way, and what happens to a line when it arrives.

use sim::Time;

use crate::machine::{Machine, Victim};
use crate::mapping::{Line, Part, LINE};
use crate::watch::Event;
use crate::wc::mask;
use crate::{Error, Result, Turn, Wake};

/// What waits for a load, in program order.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A load takes bytes.
    Read {
        ticket: u64,
        start: usize,
        len: usize,
    },
    /// A store changes bytes.
    Store { start: usize, data: Vec<u8> },
    /// A write-combining buffer went to the device and brought bytes that the load may not have seen.
    Patch { start: usize, data: Vec<u8> },
}

/// What becomes of a line after it has arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct After {
    /// These CPUs have asked to write it back.
    pub cpus: Vec<usize>,
    /// It doesn't stay.
    pub leaves: bool,
}

/// A load of a device.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    /// Its tag in the system.
    pub tag: u32,
    /// Whose fill buffer it holds.
    pub cpu: usize,
    /// The line, where it goes to the cache.
    pub fill: Option<Line>,
    pub steps: Vec<Step>,
    pub after: After,
}

impl Machine {
    pub(crate) fn take_ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    /// The load that brings a line to the cache.
    pub(crate) fn filling(&mut self, line: &Line) -> Option<&mut Flight> {
        self.flights.iter_mut().find(|f| f.fill == Some(*line))
    }

    /// Takes in what has arrived by now, in order.
    pub(crate) fn collect(&mut self) {
        let now = self.system.now();
        while let Some((_, tag)) = self
            .system
            .completed_loads()
            .filter(|&(done, tag)| done <= now && self.flies(tag))
            .min()
        {
            self.arrive(tag);
        }
    }

    /// A load has come back.
    fn arrive(&mut self, tag: u32) {
        let place = self.flights.iter().position(|f| f.tag == tag);
        let (Some(place), Some(load)) = (place, self.system.take_completed_load(tag)) else {
            return;
        };
        if load.data.is_ok() {
            self.tell(|| Event::Answered { tag });
        }
        let flight = self.flights.swap_remove(place);
        self.landed += 1;
        let at = load.done + self.costs.load;
        let mut data = match load.data {
            Ok(data) => data,
            Err(error) => return self.fail(flight, at, &Error::System(error)),
        };
        let mut dirty = 0;
        for step in flight.steps {
            match step {
                Step::Read { ticket, start, len } => {
                    let bytes = data.get(start..start + len).unwrap_or_default().to_vec();
                    self.found.insert(ticket, (at, Ok(bytes)));
                }
                Step::Store { start, data: bytes } => {
                    data[start..start + bytes.len()].copy_from_slice(&bytes);
                    dirty |= mask(start, bytes.len());
                }
                Step::Patch { start, data: bytes } => {
                    data[start..start + bytes.len()].copy_from_slice(&bytes);
                }
            }
        }
        let (Some(line), Ok(mut data)) = (flight.fill, <[u8; LINE]>::try_from(data)) else {
            return;
        };
        let After { cpus, leaves } = flight.after;
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

    /// Nothing came for a load: whoever waits for it hears of it.
    fn fail(&mut self, flight: Flight, at: Time, error: &Error) {
        for step in flight.steps {
            match step {
                Step::Read { ticket, .. } => {
                    self.found.insert(ticket, (at, Err(error.clone())));
                }
                Step::Store { .. } => {
                    let core = self.core(flight.cpu);
                    core.failed.get_or_insert(error.clone());
                }
                Step::Patch { .. } => {}
            }
        }
    }
}

/// Begins an instruction of a CPU at its time: what has come by then is taken in, and what has left the cache is on its way.
pub(crate) fn begin<T: Turn>(turn: &mut T, cpu: usize) -> Result<()> {
    let at = turn.machine().busy_until(cpu);
    turn.pass(Wake::At(at))?;
    settle(turn)?;
    match turn.machine().core(cpu).failed.take() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Takes in what has arrived, and posts the lines that had to leave.
pub(crate) fn settle<T: Turn>(turn: &mut T) -> Result<()> {
    loop {
        turn.machine().collect();
        if turn.machine().victims.is_empty() {
            return Ok(());
        }
        crate::flush::drain(turn)?;
    }
}

/// Starts a load of a device, as soon as the CPU has a fill buffer for it. `None`: time has passed, so look again.
pub(crate) fn start<T: Turn>(
    turn: &mut T,
    cpu: usize,
    part: &Part,
    fill: bool,
    steps: Vec<Step>,
) -> Result<Option<u32>> {
    if !turn.machine().victims.is_empty() {
        // The line may be among those that wait for room.
        settle(turn)?;
        return Ok(None);
    }
    let machine = turn.machine();
    let own = |f: &&Flight| f.cpu == cpu;
    let mut full: Vec<u32> = machine.flights.iter().filter(own).map(|f| f.tag).collect();
    if full.len() < machine.costs.fill_buffers {
        full.clear();
    }
    if full.is_empty() && machine.flights.len() >= machine.system.host().cpu_loads {
        full = machine.flights.iter().map(|f| f.tag).collect();
    }
    if !full.is_empty() {
        turn.pass(Wake::Loads(full))?;
        settle(turn)?;
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
    machine.tell(|| Event::Issued { device, tag });
    if fill {
        machine.counts.fills += 1;
    }
    machine.flights.push(Flight {
        tag,
        cpu,
        fill: fill.then_some(part.line),
        steps,
        after: After::default(),
    });
    Ok(Some(tag))
}

/// Waits for what a load finds: the CPU has it then.
pub(crate) fn finish<T: Turn>(turn: &mut T, cpu: usize, ticket: u64) -> Result<Vec<u8>> {
    loop {
        let machine = turn.machine();
        if let Some((at, data)) = machine.found.remove(&ticket) {
            let core = machine.core(cpu);
            core.busy = core.busy.max(at);
            return data;
        }
        let waits = |f: &&Flight| {
            let read = |step: &Step| matches!(step, Step::Read { ticket: t, .. } if *t == ticket);
            f.steps.iter().any(read)
        };
        let Some(tag) = machine.flights.iter().find(waits).map(|f| f.tag) else {
            return Err(Error::Access("a load that nobody has issued".into()));
        };
        turn.pass(Wake::Loads(vec![tag]))?;
        settle(turn)?;
    }
}
