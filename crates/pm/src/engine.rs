//! The crash-consistency engine of a device, as all threads of a host use it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use driver::page;
use host::{Cpu, Kind, Mapping, Pending};
use sim::{Bar, Time};
use spec::nearpm::{Command, Operation, Results, COMMANDS, LINE};
use spec::regs::command_page::LINE_STRIDE;
use spec::regs::nearpm::{domain, DOMAIN, FORGET};
use spec::regs::Field;

use crate::{Error, Result};

/// How long it takes until the answer to a look ahead is surely there.
const STATUS_LATENCY: Time = Time::us(1);
/// With fewer free lines than this, it is waited for.
const LOW_FREE_LINES: usize = 16;
/// How long a CPU pauses between two looks at a command.
const POLL_INTERVAL: Time = Time::ns(500);
/// The longest that is waited for a command.
const COMMAND_TIMEOUT: Time = Time::ms(100);

/// A command that was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmittedCommand {
    line: usize,
    number: u64,
}

/// A line of the page, as far as is known.
#[derive(Clone, Copy, Debug)]
enum LineState {
    /// Nothing is: the engine may still have a command there, from before a loss of power.
    Unknown,
    Free,
    /// A command will be written there.
    Reserved,
    /// A command is there that may not have ended.
    Busy(IssuedCommand),
}

/// A command in a line.
#[derive(Clone, Copy, Debug)]
struct IssuedCommand {
    number: u64,
    command: Command,
    /// When its store had left its CPU.
    sent: Time,
    /// Who has written it waits for its end, and reads it in this line: nobody else gives the line to another command.
    awaited: bool,
}

#[derive(Debug)]
struct PageState {
    lines: [LineState; COMMANDS],
    count: u64,
    /// Commands that were refused, and nobody has been told.
    refused: Vec<(Command, Results)>,
    /// A look ahead, and since when.
    status_load: Option<StatusLoad>,
    status_load_sent: Time,
    /// Writes that the page had dropped when it was first looked at.
    dropped: Option<u32>,
}

/// A load of a line, which tells of all lines, on its way; and the commands that were on the page before it.
#[derive(Debug)]
struct StatusLoad {
    commands: Vec<SubmittedCommand>,
    load: Pending,
}

/// An engine's command page in BAR4, of which this is the only user. Programs of several CPUs share it.
#[derive(Debug)]
pub struct EngineHandle {
    device: usize,
    page: u64,
    /// Where its registers are in BAR4: for pools over several devices.
    registers: Option<u64>,
    state: Mutex<PageState>,
}

impl EngineHandle {
    /// The engine whose command page is at `page` of a device's BAR4.
    pub fn new(device: usize, page: u64) -> EngineHandle {
        EngineHandle {
            device,
            page,
            registers: None,
            state: Mutex::new(PageState {
                lines: [LineState::Unknown; COMMANDS],
                count: 0,
                refused: Vec::new(),
                status_load: None,
                dropped: None,
                status_load_sent: Time::ZERO,
            }),
        }
    }

    /// The same, whose registers are at `registers` of BAR4: what pools over several devices need, too.
    pub fn with_registers(device: usize, page: u64, registers: u64) -> EngineHandle {
        EngineHandle {
            registers: Some(registers),
            ..EngineHandle::new(device, page)
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
    pub(crate) fn write_register(&self, cpu: &Cpu, register: u64, value: &[u8]) -> Result<()> {
        let at = self.registers()? + register;
        Ok(cpu.store(&self.mapping(Kind::Uncached), at, value)?)
    }

    /// Reads a register of 64 bits.
    pub(crate) fn read_register(&self, cpu: &Cpu, register: u64) -> Result<u64> {
        let mut value = [0; 8];
        let at = self.registers()? + register;
        cpu.load(&self.mapping(Kind::Uncached), at, &mut value)?;
        Ok(u64::from_le_bytes(value))
    }

    /// Bits of what its registers say about what it keeps; nothing if nobody knows where they are.
    fn read_domain(&self, cpu: &Cpu) -> Result<Option<u32>> {
        let Some(registers) = self.registers else {
            return Ok(None);
        };
        let mut value = [0; 4];
        cpu.load(
            &self.mapping(Kind::Uncached),
            registers + DOMAIN,
            &mut value,
        )?;
        Ok(Some(u32::from_le_bytes(value)))
    }

    /// An error if something is lost that it had taken, as far as is known where its registers are.
    pub(crate) fn check_nothing_lost(&self, cpu: &Cpu) -> Result<()> {
        let Some(domain) = self.read_domain(cpu)? else {
            return Ok(());
        };
        let is = |field: Field| domain & field.mask() as u32 != 0;
        let what = match (is(domain::UNREAD), is(domain::LOST)) {
            (true, _) => "could not bring back what it had taken before its last reset; another reset tries again",
            (_, true) => "had taken something when its power failed, and could not save it: stores and commands may be missing",
            _ => return Ok(()),
        };
        Err(Error::Corrupt(format!(
            "the engine of device {} {what}; `forget`, or 1 in its register {FORGET:#x}, says that it may be forgotten",
            self.device
        )))
    }

    /// Waits until what it takes is known to survive; an error if it is not, because it can't write its own range.
    pub(crate) fn wait_until_persistent(&self, cpu: &Cpu) -> Result<()> {
        let limit = cpu.now() + COMMAND_TIMEOUT;
        while let Some(domain) = self.read_domain(cpu)? {
            if domain & domain::UNKEPT.mask() as u32 == 0 {
                break;
            }
            if cpu.now() > limit {
                return Err(Error::Invalid(format!(
                    "the engine of device {} can't write the end of its media: what it takes would not survive a loss of power",
                    self.device
                )));
            }
            cpu.sleep_until(cpu.now() + POLL_INTERVAL)?;
        }
        Ok(())
    }

    /// What it has lost is forgotten; what it could not bring back is not there for the next reset. It has to be one made with
    /// [`EngineHandle::with_registers`].
    pub fn forget(&self, cpu: &Cpu) -> Result<()> {
        self.write_register(cpu, FORGET, &1u32.to_le_bytes())?;
        // The write is there when a read behind it is answered.
        self.read_domain(cpu).map(drop)
    }

    // Never held while a CPU acts: another program may have the next turn.
    fn state(&self) -> MutexGuard<'_, PageState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mapping(&self, kind: Kind) -> Mapping {
        Mapping {
            device: self.device,
            bar: Bar::Control,
            kind,
        }
    }

    fn line_offset(&self, line: usize) -> u64 {
        self.page + LINE_STRIDE * line as u64
    }

    /// What was known of the page is so no longer: after a loss of power, or a reset of the function.
    pub fn restart(&self) {
        let mut state = self.state();
        state.lines.fill(LineState::Unknown);
        state.refused.clear();
        state.status_load = None;
        state.dropped = None;
    }

    /// A free line, and the number of its command.
    fn reserve(&self) -> Option<SubmittedCommand> {
        let mut state = self.state();
        let free = |line: &LineState| matches!(line, LineState::Free);
        let line = state.lines.iter().position(free)?;
        state.count += 1;
        let number = state.count;
        state.lines[line] = LineState::Reserved;
        Some(SubmittedCommand { line, number })
    }

    /// Writes a command: one store of 64 bytes. Waits while all lines are busy.
    pub fn submit(&self, cpu: &Cpu, command: &Command) -> Result<SubmittedCommand> {
        self.issue(cpu, command, false)
    }

    fn issue(&self, cpu: &Cpu, command: &Command, awaited: bool) -> Result<SubmittedCommand> {
        let limit = cpu.now() + COMMAND_TIMEOUT;
        let submitted = loop {
            if let Some(submitted) = self.reserve() {
                break submitted;
            }
            if self.finish_prefetch(cpu)? == 0 && self.poll_status(cpu)? == 0 {
                if cpu.now() > limit {
                    return Err(timeout_error(command));
                }
                cpu.sleep_until(cpu.now() + POLL_INTERVAL)?;
            }
        };
        let bytes = page::encode(&command.arguments()).map_err(invalid)?;
        cpu.store(
            &self.mapping(Kind::Uncached),
            self.line_offset(submitted.line),
            &bytes,
        )?;
        self.state().lines[submitted.line] = LineState::Busy(IssuedCommand {
            number: submitted.number,
            command: *command,
            sent: cpu.now(),
            awaited,
        });
        Ok(submitted)
    }

    /// The commands that were sent before a time and may not have ended, and lines of which nothing is known. Another CPU's store may leave
    /// later than a load of this one: its line tells of the command before it then.
    fn pending_commands(&self, before: Time) -> Vec<SubmittedCommand> {
        let state = self.state();
        let lines = state.lines.iter().enumerate();
        let open = lines.filter_map(|(line, what)| match what {
            LineState::Unknown => Some(SubmittedCommand { line, number: 0 }),
            LineState::Busy(written) if written.sent < before && !written.awaited => {
                Some(SubmittedCommand {
                    line,
                    number: written.number,
                })
            }
            LineState::Busy(_) | LineState::Free | LineState::Reserved => None,
        });
        open.collect()
    }

    /// Starts looking at all of these.
    fn issue_status_load(&self, cpu: &Cpu) -> Result<StatusLoad> {
        let commands = self.pending_commands(cpu.now());
        let map = self.mapping(Kind::WriteCombining);
        let load = cpu.issue(&map, self.line_offset(0), LINE as usize)?;
        Ok(StatusLoad { commands, load })
    }

    /// Starts looking without waiting for it, so that lines are known to be free when they are needed.
    pub(crate) fn prefetch_status(&self, cpu: &Cpu) -> Result<()> {
        let (pending, status_load_sent, free) = {
            let state = self.state();
            let free = |line: &&LineState| matches!(line, LineState::Free);
            let free = state.lines.iter().filter(free).count();
            (state.status_load.is_some(), state.status_load_sent, free)
        };
        if pending {
            if free >= LOW_FREE_LINES && cpu.now() < status_load_sent + STATUS_LATENCY {
                return Ok(());
            }
            self.finish_prefetch(cpu)?;
        }
        if free >= COMMANDS / 2 {
            return Ok(());
        }
        let status = self.issue_status_load(cpu)?;
        let mut state = self.state();
        state.status_load = Some(status);
        state.status_load_sent = cpu.now();
        Ok(())
    }

    /// Takes in what was looked at ahead; returns how many commands have ended.
    fn finish_prefetch(&self, cpu: &Cpu) -> Result<usize> {
        let status_load = self.state().status_load.take();
        status_load.map_or(Ok(0), |status| self.process_status(cpu, status))
    }

    /// Looks which commands have ended; returns how many have.
    fn poll_status(&self, cpu: &Cpu) -> Result<usize> {
        let status = self.issue_status_load(cpu)?;
        self.process_status(cpu, status)
    }

    fn process_status(&self, cpu: &Cpu, status: StatusLoad) -> Result<usize> {
        let bytes = to_line(&cpu.finish(status.load)?);
        self.check_dropped_writes(page::dropped(&bytes))?;
        let (busy, succeeded) = (page::busy_lines(&bytes), page::succeeded_lines(&bytes));
        let mut ended = 0;
        for submitted in status.commands {
            let is = |lines: u64| lines >> submitted.line & 1 != 0;
            // A line of which nothing was known is free then; who wrote its command is gone.
            let known = is(succeeded) || submitted.number == 0;
            ended += usize::from(match (is(busy), known) {
                (true, _) => false,
                (false, true) => self.record_end(submitted, Results(0)),
                // Its own line tells how.
                (false, false) => self.read_line(cpu, submitted)?.is_some(),
            });
        }
        Ok(ended)
    }

    /// A command that was written to a busy line is lost.
    fn check_dropped_writes(&self, dropped: u32) -> Result<()> {
        let mut state = self.state();
        let before = state.dropped.replace(dropped).unwrap_or(dropped);
        // Fewer than before: the function was reset.
        match dropped > before {
            false => Ok(()),
            true => Err(Error::Invalid(format!(
                "the command page of device {} has dropped {} writes: somebody else writes there",
                self.device,
                dropped - before
            ))),
        }
    }

    /// How a command has ended, by its own line; nothing while it is busy.
    fn read_line(&self, cpu: &Cpu, submitted: SubmittedCommand) -> Result<Option<(Results, u64)>> {
        let mut bytes = [0; LINE as usize];
        let at = self.line_offset(submitted.line);
        cpu.load(&self.mapping(Kind::Uncached), at, &mut bytes)?;
        self.process_line(submitted, &bytes)
    }

    fn process_line(
        &self,
        submitted: SubmittedCommand,
        bytes: &[u8; LINE as usize],
    ) -> Result<Option<(Results, u64)>> {
        self.check_dropped_writes(page::dropped(bytes))?;
        if page::is_busy(bytes) {
            return Ok(None);
        }
        let ended = match submitted.number {
            // From before a loss of power: whoever gave it is gone.
            0 => None,
            _ => page::ended(bytes).map_err(invalid)?,
        };
        let (results, value) = ended.map_or((Results(0), 0), |e| (Results(e.result), e.value));
        self.record_end(submitted, results);
        Ok(Some((results, value)))
    }

    /// A command has ended; false if that was known.
    fn record_end(&self, submitted: SubmittedCommand, results: Results) -> bool {
        let mut state = self.state();
        match state.lines[submitted.line] {
            LineState::Unknown if submitted.number == 0 => {}
            LineState::Busy(written) if written.number == submitted.number => {
                if !results.is_ok() {
                    state.refused.push((written.command, results));
                }
            }
            // Somebody else has seen it.
            _ => return false,
        }
        state.lines[submitted.line] = LineState::Free;
        true
    }

    /// Writes a command, waits for its end, and returns its results and value. Whoever gives commands to a log that a [`crate::Thread`] has
    /// spoils that thread's transactions.
    pub fn launch(&self, cpu: &Cpu, command: &Command) -> Result<(Results, u64)> {
        let submitted = self.issue(cpu, command, true)?;
        let limit = cpu.now() + COMMAND_TIMEOUT;
        loop {
            if let Some(ended) = self.read_line(cpu, submitted)? {
                let own = |c: &(Command, Results)| c.0 == *command;
                self.state().refused.retain(|c| !own(c));
                return Ok(ended);
            }
            if cpu.now() > limit {
                if let LineState::Busy(written) = &mut self.state().lines[submitted.line] {
                    written.awaited = false;
                }
                return Err(timeout_error(command));
            }
            cpu.sleep_until(cpu.now() + POLL_INTERVAL)?;
        }
    }

    /// Starts looking at a command that was submitted; see [`EngineHandle::ended`].
    pub(crate) fn issue_line_load(
        &self,
        cpu: &Cpu,
        submitted: SubmittedCommand,
    ) -> Result<Pending> {
        let map = self.mapping(Kind::WriteCombining);
        Ok(cpu.issue(&map, self.line_offset(submitted.line), LINE as usize)?)
    }

    /// What that look has found: true if the command has ended.
    pub(crate) fn has_ended(
        &self,
        cpu: &Cpu,
        submitted: SubmittedCommand,
        load: Pending,
    ) -> Result<bool> {
        let bytes = to_line(&cpu.finish(load)?);
        let holds =
            |line: &LineState| matches!(line, LineState::Busy(w) if w.number == submitted.number);
        // Somebody else has seen its end, and the line may hold another command by now.
        if !holds(&self.state().lines[submitted.line]) {
            return Ok(true);
        }
        Ok(self.process_line(submitted, &bytes)?.is_some())
    }

    /// An error if a command of a thread was refused, as far as is known.
    pub(crate) fn check_refusals(&self, pool: u8, thread: u8) -> Result<()> {
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
    pub fn sync(&self, cpu: &Cpu, command: &Command) -> Result<()> {
        let sync = Command {
            operation: Operation::Sync,
            ..*command
        };
        let (results, _) = self.launch(cpu, &sync)?;
        if !results.is_ok() {
            return Err(Error::Refused(Operation::Sync, results));
        }
        self.finish_prefetch(cpu)?;
        while self.poll_status(cpu)? > 0 {}
        self.check_refusals(command.pool, command.thread)
    }
}

fn to_line(bytes: &[u8]) -> [u8; LINE as usize] {
    std::array::from_fn(|n| bytes.get(n).copied().unwrap_or_default())
}

fn timeout_error(command: &Command) -> Error {
    Error::Invalid(format!(
        "{:?} has not ended within {COMMAND_TIMEOUT}",
        command.operation
    ))
}

fn invalid(error: driver::Error) -> Error {
    Error::Invalid(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look tells of commands that were sent before it, and takes no line from who waits for its command's end.
    #[test]
    fn status_load_skips_later_and_awaited_commands() {
        let engine = EngineHandle::new(0, 0);
        let written = |number: u64, sent: Time, awaited: bool| {
            LineState::Busy(IssuedCommand {
                number,
                command: Command::new(Operation::Sync, 0, 0, 0),
                sent,
                awaited,
            })
        };
        {
            let mut state = engine.state();
            state.lines.fill(LineState::Free);
            state.lines[1] = written(1, Time::ns(10), false);
            state.lines[2] = written(2, Time::ns(10), true);
            state.lines[3] = written(3, Time::ns(20), false);
            state.lines[4] = LineState::Reserved;
            state.lines[5] = LineState::Unknown;
        }
        let found: Vec<_> = engine
            .pending_commands(Time::ns(20))
            .iter()
            .map(|s| s.line)
            .collect();
        assert_eq!(found, [1, 5]);
        // Another command has the line by now.
        let old = SubmittedCommand { line: 1, number: 9 };
        assert!(!engine.record_end(old, Results(0)));
        assert!(matches!(engine.state().lines[1], LineState::Busy(_)));
        let own = SubmittedCommand { line: 1, number: 1 };
        assert!(engine.record_end(own, Results(0)));
        assert!(matches!(engine.state().lines[1], LineState::Free));
    }

    #[test]
    fn dropped_writes_are_reported_once() {
        let engine = EngineHandle::new(0, 0);
        assert!(engine.check_dropped_writes(5).is_ok(), "from before");
        let error = engine.check_dropped_writes(7).unwrap_err().to_string();
        assert!(error.contains("has dropped 2 writes"), "{error}");
        assert!(engine.check_dropped_writes(7).is_ok());
        assert!(
            engine.check_dropped_writes(0).is_ok(),
            "the function was reset"
        );
    }
}
