//! The crash-consistency engine of a device, as all threads of a host use it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use driver::page::{self, Ended};
use host::{Cpu, Kind, Mapping};
use sim::{Bar, Time};
use spec::nearpm::{Command, Operation, Results, COMMANDS, LINE};
use spec::regs::command_page::LINE_STRIDE;

use crate::{Error, Result};

/// How many lines are looked at when none is known to be free: their loads are under way together.
const LOOK: usize = 12;
/// How long a CPU pauses between two looks at a command.
const PAUSE: Time = Time::ns(500);
/// The longest that is waited for a command.
const PATIENCE: Time = Time::ms(100);

/// A command that was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Submitted {
    line: usize,
    number: u64,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    /// The command that is there or will be, unless it is known to have ended.
    busy: Option<(u64, Command)>,
    /// It is there.
    written: bool,
}

#[derive(Debug)]
struct State {
    lines: [Line; COMMANDS],
    count: u64,
    /// Commands that were refused, and nobody has been told.
    refused: Vec<(Command, Results)>,
}

/// An engine's command page in BAR4, of which this is the only user. Programs of several CPUs share it.
#[derive(Debug)]
pub struct Engine {
    device: usize,
    page: u64,
    state: Mutex<State>,
}

impl Engine {
    /// The engine whose command page is at `page` of a device's BAR4.
    pub fn new(device: usize, page: u64) -> Engine {
        Engine {
            device,
            page,
            state: Mutex::new(State {
                lines: [Line {
                    busy: None,
                    written: false,
                }; COMMANDS],
                count: 0,
                refused: Vec::new(),
            }),
        }
    }

    /// The number of its device.
    pub fn device(&self) -> usize {
        self.device
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

    /// A free line becomes a command's.
    fn reserve(&self, command: &Command) -> Option<Submitted> {
        let mut state = self.state();
        let line = state.lines.iter().position(|line| line.busy.is_none())?;
        state.count += 1;
        let number = state.count;
        state.lines[line] = Line {
            busy: Some((number, *command)),
            written: false,
        };
        Some(Submitted { line, number })
    }

    /// Writes a command: one store of 64 bytes. Waits while all lines are busy.
    pub(crate) fn submit(&self, cpu: &Cpu, command: &Command) -> Result<Submitted> {
        let limit = cpu.now() + PATIENCE;
        let submitted = loop {
            if let Some(submitted) = self.reserve(command) {
                break submitted;
            }
            if self.look(cpu)? == 0 {
                if cpu.now() > limit {
                    return Err(late(command));
                }
                cpu.sleep_until(cpu.now() + PAUSE)?;
            }
        };
        let bytes = page::encode(&command.arguments()).map_err(invalid)?;
        cpu.store(&self.map(Kind::Uncached), self.at(submitted.line), &bytes)?;
        self.state().lines[submitted.line].written = true;
        Ok(submitted)
    }

    /// Looks whether the oldest commands have ended; returns how many have.
    fn look(&self, cpu: &Cpu) -> Result<usize> {
        let mut oldest: Vec<(u64, usize)> = {
            let state = self.state();
            let lines = state.lines.iter().enumerate();
            lines
                .filter(|(_, line)| line.written)
                .filter_map(|(n, line)| Some((line.busy?.0, n)))
                .collect()
        };
        oldest.sort_unstable();
        oldest.truncate(LOOK);
        let map = self.map(Kind::WriteCombining);
        let mut loads = Vec::new();
        for &(number, line) in &oldest {
            let pending = cpu.issue(&map, self.at(line), LINE as usize)?;
            loads.push((Submitted { line, number }, pending));
        }
        let mut ended = 0;
        for (submitted, pending) in loads {
            let mut bytes = [0; LINE as usize];
            bytes.copy_from_slice(&cpu.finish(pending)?);
            ended += usize::from(self.note(submitted, &bytes)?.is_some());
        }
        Ok(ended)
    }

    /// What a line says of a command.
    fn note(&self, submitted: Submitted, bytes: &[u8; LINE as usize]) -> Result<Option<Ended>> {
        let Some(ended) = page::ended(bytes).map_err(invalid)? else {
            return Ok(None);
        };
        let mut state = self.state();
        let line = &mut state.lines[submitted.line];
        match line.busy {
            Some((number, command)) if number == submitted.number => {
                line.busy = None;
                let results = Results(ended.result);
                if !results.is_ok() {
                    state.refused.push((command, results));
                }
            }
            _ => {}
        }
        Ok(Some(ended))
    }

    /// Writes a command, waits for its end, and returns its results and value.
    pub(crate) fn launch(&self, cpu: &Cpu, command: &Command) -> Result<(Results, u64)> {
        let submitted = self.submit(cpu, command)?;
        let limit = cpu.now() + PATIENCE;
        loop {
            let mut bytes = [0; LINE as usize];
            cpu.load(
                &self.map(Kind::Uncached),
                self.at(submitted.line),
                &mut bytes,
            )?;
            if let Some(ended) = self.note(submitted, &bytes)? {
                let own = |c: &(Command, Results)| c.0 == *command;
                self.state().refused.retain(|c| !own(c));
                return Ok((Results(ended.result), ended.value));
            }
            if cpu.now() > limit {
                return Err(late(command));
            }
            cpu.sleep_until(cpu.now() + PAUSE)?;
        }
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

    /// Waits until the commands of a thread have ended; an error if one was refused.
    pub(crate) fn settle(&self, cpu: &Cpu, command: &Command) -> Result<()> {
        let sync = Command {
            operation: Operation::Sync,
            ..*command
        };
        let (results, _) = self.launch(cpu, &sync)?;
        if !results.is_ok() {
            return Err(Error::Refused(Operation::Sync, results));
        }
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
