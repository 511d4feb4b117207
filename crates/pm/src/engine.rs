//! The crash-consistency engine of a device, as all threads of a host use it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use driver::page;
use host::{Cpu, Kind, Mapping, Pending};
use sim::{Bar, Time};
use spec::nearpm::{Command, Operation, Results, COMMANDS, LINE};
use spec::regs::command_page::LINE_STRIDE;

use crate::{Error, Result};

/// How many lines are looked at when none is known to be free: their loads are under way together.
const LOOK: usize = 12;
/// How many are asked for ahead: some fill buffers are left for others. And how long it takes until what they bring is surely there.
const AHEAD: usize = 8;
const THERE: Time = Time::us(1);
/// With fewer free lines than this, what was asked for ahead is waited for.
const FEW: usize = 16;
/// How long a CPU pauses between two looks at a command.
const PAUSE: Time = Time::ns(500);
/// The longest that is waited for a command.
const PATIENCE: Time = Time::ms(100);

/// A command that was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submitted {
    line: usize,
    number: u64,
}

/// A line of the page, as far as is known.
#[derive(Clone, Copy, Debug)]
enum Line {
    /// Nothing is: the engine may still have a command there, from before a loss of power.
    Unknown,
    Free,
    /// A command will be written there.
    Reserved,
    /// A command is there that may not have ended: its number, and it.
    Busy(u64, Command),
}

#[derive(Debug)]
struct State {
    lines: [Line; COMMANDS],
    count: u64,
    /// Commands that were refused, and nobody has been told.
    refused: Vec<(Command, Results)>,
    /// Lines that are being looked at ahead, and since when.
    asked: Vec<(Submitted, Pending)>,
    since: Time,
}

/// An engine's command page in BAR4, of which this is the only user. Programs of several CPUs share it.
#[derive(Debug)]
pub struct Engine {
    device: usize,
    page: u64,
    /// Where its registers are in BAR4: for pools over several devices.
    registers: Option<u64>,
    state: Mutex<State>,
}

impl Engine {
    /// The engine whose command page is at `page` of a device's BAR4.
    pub fn new(device: usize, page: u64) -> Engine {
        Engine {
            device,
            page,
            registers: None,
            state: Mutex::new(State {
                lines: [Line::Unknown; COMMANDS],
                count: 0,
                refused: Vec::new(),
                asked: Vec::new(),
                since: Time::ZERO,
            }),
        }
    }

    /// The same, whose registers are at `registers` of BAR4: what pools over several devices need, too.
    pub fn with_registers(device: usize, page: u64, registers: u64) -> Engine {
        Engine {
            registers: Some(registers),
            ..Engine::new(device, page)
        }
    }

    /// The number of its device.
    pub fn device(&self) -> usize {
        self.device
    }

    /// Where its registers are.
    fn registers(&self) -> Result<u64> {
        self.registers.ok_or_else(|| {
            Error::Invalid(format!(
                "the engine of device {}: a pool over several devices needs to know where its registers are, as Engine::with_registers says",
                self.device
            ))
        })
    }

    /// Where its registers are on the bus.
    pub(crate) fn address(&self, cpu: &Cpu) -> Result<u64> {
        let device = self.device;
        let window = |machine: &mut host::Machine| machine.system().window(device, Bar::Control);
        match cpu.shared().with(window) {
            Some(window) => Ok(window + self.registers()?),
            None => Err(Error::Invalid(format!("device {device} has no BAR4"))),
        }
    }

    /// Writes a register of 4 or 8 bytes.
    pub(crate) fn set(&self, cpu: &Cpu, register: u64, value: &[u8]) -> Result<()> {
        let at = self.registers()? + register;
        Ok(cpu.store(&self.map(Kind::Uncached), at, value)?)
    }

    /// Reads a register of 64 bits.
    pub(crate) fn get(&self, cpu: &Cpu, register: u64) -> Result<u64> {
        let mut value = [0; 8];
        let at = self.registers()? + register;
        cpu.load(&self.map(Kind::Uncached), at, &mut value)?;
        Ok(u64::from_le_bytes(value))
    }

    // Never held while a CPU acts: another program may have the next turn.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn map(&self, kind: Kind) -> Mapping {
        Mapping {
            device: self.device,
            bar: Bar::Control,
            kind,
        }
    }

    fn at(&self, line: usize) -> u64 {
        self.page + LINE_STRIDE * line as u64
    }

    /// What was known of the page is so no longer: after a loss of power, or a reset of the function.
    pub fn restart(&self) {
        let mut state = self.state();
        state.lines.fill(Line::Unknown);
        state.refused.clear();
        state.asked.clear();
    }

    /// A free line, and the number of its command.
    fn reserve(&self) -> Option<Submitted> {
        let mut state = self.state();
        let free = |line: &Line| matches!(line, Line::Free);
        let line = state.lines.iter().position(free)?;
        state.count += 1;
        let number = state.count;
        state.lines[line] = Line::Reserved;
        Some(Submitted { line, number })
    }

    /// Writes a command: one store of 64 bytes. Waits while all lines are busy.
    pub fn submit(&self, cpu: &Cpu, command: &Command) -> Result<Submitted> {
        let limit = cpu.now() + PATIENCE;
        let submitted = loop {
            if let Some(submitted) = self.reserve() {
                break submitted;
            }
            if self.collect(cpu)? == 0 && self.look(cpu)? == 0 {
                if cpu.now() > limit {
                    return Err(late(command));
                }
                cpu.sleep_until(cpu.now() + PAUSE)?;
            }
        };
        let bytes = page::encode(&command.arguments()).map_err(invalid)?;
        cpu.store(&self.map(Kind::Uncached), self.at(submitted.line), &bytes)?;
        self.state().lines[submitted.line] = Line::Busy(submitted.number, *command);
        Ok(submitted)
    }

    /// The oldest commands that may not have ended, and lines of which nothing is known.
    fn oldest(&self, most: usize) -> Vec<Submitted> {
        let state = self.state();
        let lines = state.lines.iter().enumerate();
        let busy = lines.filter_map(|(line, what)| match what {
            Line::Unknown => Some(Submitted { line, number: 0 }),
            Line::Busy(number, _) => Some(Submitted {
                line,
                number: *number,
            }),
            Line::Free | Line::Reserved => None,
        });
        let mut oldest: Vec<Submitted> = busy.collect();
        oldest.sort_unstable_by_key(|s| (s.number, s.line));
        oldest.truncate(most);
        oldest
    }

    /// Starts looking at these lines.
    fn ask(&self, cpu: &Cpu, lines: Vec<Submitted>) -> Result<Vec<(Submitted, Pending)>> {
        let map = self.map(Kind::WriteCombining);
        let mut loads = Vec::new();
        for submitted in lines {
            let pending = cpu.issue(&map, self.at(submitted.line), LINE as usize)?;
            loads.push((submitted, pending));
        }
        Ok(loads)
    }

    /// Starts looking at the oldest commands without waiting for it, so that lines are known to be free when they are needed.
    pub(crate) fn look_ahead(&self, cpu: &Cpu) -> Result<()> {
        let (waits, since, free) = {
            let state = self.state();
            let free = |line: &&Line| matches!(line, Line::Free);
            let free = state.lines.iter().filter(free).count();
            (!state.asked.is_empty(), state.since, free)
        };
        if waits {
            if free >= FEW && cpu.now() < since + THERE {
                return Ok(());
            }
            self.collect(cpu)?;
        }
        if free >= COMMANDS / 2 {
            return Ok(());
        }
        let asked = self.ask(cpu, self.oldest(AHEAD))?;
        let mut state = self.state();
        state.asked.extend(asked);
        state.since = cpu.now();
        Ok(())
    }

    /// Takes in what was looked at ahead; returns how many commands have ended.
    fn collect(&self, cpu: &Cpu) -> Result<usize> {
        let asked = std::mem::take(&mut self.state().asked);
        self.settle_looks(cpu, asked)
    }

    /// Looks whether the oldest commands have ended; returns how many have.
    fn look(&self, cpu: &Cpu) -> Result<usize> {
        let loads = self.ask(cpu, self.oldest(LOOK))?;
        self.settle_looks(cpu, loads)
    }

    fn settle_looks(&self, cpu: &Cpu, loads: Vec<(Submitted, Pending)>) -> Result<usize> {
        let mut ended = 0;
        for (submitted, pending) in loads {
            let mut bytes = [0; LINE as usize];
            bytes.copy_from_slice(&cpu.finish(pending)?);
            ended += usize::from(self.note(submitted, &bytes)?);
        }
        Ok(ended)
    }

    /// What a line that was read says of a command; true when the line is free.
    fn note(&self, submitted: Submitted, bytes: &[u8; LINE as usize]) -> Result<bool> {
        if page::is_busy(bytes) {
            return Ok(false);
        }
        let mut state = self.state();
        match state.lines[submitted.line] {
            Line::Unknown if submitted.number == 0 => state.lines[submitted.line] = Line::Free,
            Line::Busy(number, command) if number == submitted.number => {
                state.lines[submitted.line] = Line::Free;
                let ended = page::ended(bytes).map_err(invalid)?;
                let results = Results(ended.map_or(0, |ended| ended.result));
                if !results.is_ok() {
                    state.refused.push((command, results));
                }
            }
            // Somebody else has seen it.
            _ => {}
        }
        Ok(true)
    }

    /// Writes a command, waits for its end, and returns its results and value. Whoever gives commands to a log that a [`crate::Thread`] has
    /// spoils that thread's transactions.
    pub fn launch(&self, cpu: &Cpu, command: &Command) -> Result<(Results, u64)> {
        let submitted = self.submit(cpu, command)?;
        let limit = cpu.now() + PATIENCE;
        loop {
            let mut bytes = [0; LINE as usize];
            cpu.load(
                &self.map(Kind::Uncached),
                self.at(submitted.line),
                &mut bytes,
            )?;
            if self.note(submitted, &bytes)? {
                let ended = page::ended(&bytes).map_err(invalid)?;
                let own = |c: &(Command, Results)| c.0 == *command;
                self.state().refused.retain(|c| !own(c));
                return Ok(ended.map_or((Results(0), 0), |e| (Results(e.result), e.value)));
            }
            if cpu.now() > limit {
                return Err(late(command));
            }
            cpu.sleep_until(cpu.now() + PAUSE)?;
        }
    }

    /// Starts looking at a command that was submitted; see [`Engine::ended`].
    pub(crate) fn look_at(&self, cpu: &Cpu, submitted: Submitted) -> Result<Pending> {
        let map = self.map(Kind::WriteCombining);
        Ok(cpu.issue(&map, self.at(submitted.line), LINE as usize)?)
    }

    /// What that look has found: true if the command has ended.
    pub(crate) fn ended(&self, cpu: &Cpu, submitted: Submitted, look: Pending) -> Result<bool> {
        let mut bytes = [0; LINE as usize];
        bytes.copy_from_slice(&cpu.finish(look)?);
        self.note(submitted, &bytes)
    }

    /// An error if a command of a thread was refused, as far as is known.
    pub(crate) fn refused(&self, pool: u8, thread: u8) -> Result<()> {
        let mut state = self.state();
        let own = |c: &(Command, Results)| c.0.pool == pool && c.0.thread == thread;
        match state.refused.iter().position(own) {
            Some(n) => {
                let (command, results) = state.refused.remove(n);
                Err(Error::Refused(command.operation, results))
            }
            None => Ok(()),
        }
    }

    /// Waits until the commands of a thread have ended, that of the pool and thread of `command`; an error if one was refused.
    pub fn settle(&self, cpu: &Cpu, command: &Command) -> Result<()> {
        let sync = Command {
            operation: Operation::Sync,
            ..*command
        };
        let (results, _) = self.launch(cpu, &sync)?;
        if !results.is_ok() {
            return Err(Error::Refused(Operation::Sync, results));
        }
        self.collect(cpu)?;
        while self.look(cpu)? > 0 {}
        self.refused(command.pool, command.thread)
    }
}

fn late(command: &Command) -> Error {
    Error::Invalid(format!(
        "{:?} has not ended within {PATIENCE}",
        command.operation
    ))
}

fn invalid(error: driver::Error) -> Error {
    Error::Invalid(error.to_string())
}
