// SPDX-License-Identifier: Apache-2.0

//! The handle of a device's crash-consistency engine, shared by all threads of a host.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use driver::page;
use host::{Cpu, Mapping, MemoryType, PendingLoad};
use sim::{Bar, Time};
use spec::nearpm::{
    progress_word, Command, Operation, ReturnValue, COMMANDS, LINE, PROGRESS_BYTES, THREADS,
};
use spec::regs::command_page::LINE_STRIDE;
use spec::regs::nearpm::{domain, DOMAIN, FORGET, PROGRESS};
use spec::regs::Field;
use testbed::Testbed;

use crate::{Error, Result};

/// After this time the answer to a status load has arrived.
const STATUS_LATENCY: Time = Time::us(1);
/// With fewer free lines than this, the CPU waits for the status load.
const LOW_FREE_LINES: usize = 16;
/// Pause of a CPU between two polls of a command.
const POLL_INTERVAL: Time = Time::ns(500);
/// The longest time that a command may take.
const COMMAND_TIMEOUT: Time = Time::ms(100);

/// A submitted command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmittedCommand {
    line: usize,
    number: u64,
}

/// What is known of a line of the page.
#[derive(Clone, Copy, Debug)]
enum LineState {
    /// Unknown: after a power loss the engine may still have a command there.
    Unknown,
    Free,
    /// Reserved for a command that is not written yet.
    Reserved,
    /// Holds a command that may not have ended.
    Busy(IssuedCommand),
}

/// A command in a line.
#[derive(Clone, Copy, Debug)]
struct IssuedCommand {
    number: u64,
    command: Command,
    /// Its CPU, and the number of its store there. The store leaves the CPU's store buffer later.
    cpu: usize,
    store: u64,
    /// Its submitter waits for its end and reads it in this line: the line is not freed by others.
    awaited: bool,
}

#[derive(Debug)]
struct PageState {
    lines: [LineState; COMMANDS],
    count: u64,
    /// Refused commands that no thread has been notified of.
    refused: Vec<(Command, ReturnValue)>,
    /// A status load that is under way.
    status_load: Option<StatusLoad>,
    status_load_sent: Time,
    /// The page's count of dropped writes at the first status load.
    dropped: Option<u32>,
    /// Host memory for the progress words.
    words: Option<u64>,
}

/// A load of a line, which reports the status of all lines, and the commands on the page at its
/// issue.
#[derive(Debug)]
struct StatusLoad {
    commands: Vec<SubmittedCommand>,
    load: PendingLoad,
}

/// The command page of an engine in BAR4. The handle is the only user of the page; programs of
/// several CPUs share the handle.
#[derive(Debug)]
pub struct EngineHandle {
    device: usize,
    page: u64,
    /// Offset of the engine's registers in BAR4: required by pools over several devices.
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
                words: None,
            }),
        }
    }

    /// The same, with registers at `registers` of BAR4: pools over several devices need these, too.
    pub fn with_registers(device: usize, page: u64, registers: u64) -> EngineHandle {
        EngineHandle {
            registers: Some(registers),
            ..EngineHandle::new(device, page)
        }
    }

    /// The engines of a testbed, one for each device; none if the devices have none.
    pub fn of_testbed(testbed: &Testbed) -> Vec<Arc<EngineHandle>> {
        let of = |device| {
            let engine = testbed.engine(device, "nearpm")?;
            let handle = EngineHandle::with_registers(device, engine.page?, engine.offset);
            Some(Arc::new(handle))
        };
        (0..testbed.devices()).filter_map(of).collect()
    }

    /// The number of its device.
    pub fn device(&self) -> usize {
        self.device
    }

    /// Offset of the command page.
    pub fn page(&self) -> u64 {
        self.page
    }

    /// Offset of the registers.
    fn registers(&self) -> Result<u64> {
        self.registers.ok_or_else(|| {
            Error::Invalid(format!(
                "the engine of device {}: a pool over several devices needs the registers, see \
                 EngineHandle::with_registers",
                self.device
            ))
        })
    }

    /// Address of the registers on the bus.
    pub(crate) fn address(&self, cpu: &Cpu) -> Result<u64> {
        let device = self.device;
        let window = |machine: &mut host::Machine| machine.system().window(device, Bar::Control);
        match cpu.shared().with_machine(window) {
            Some(window) => Ok(window + self.registers()?),
            None => Err(Error::Invalid(format!("device {device} has no BAR4"))),
        }
    }

    /// Writes a register of 4 or 8 bytes.
    pub(crate) fn write_register(&self, cpu: &Cpu, register: u64, value: &[u8]) -> Result<()> {
        let at = self.registers()? + register;
        Ok(cpu.store(&self.mapping(MemoryType::Uncached), at, value)?)
    }

    /// Reads a register of 64 bits.
    pub(crate) fn read_register(&self, cpu: &Cpu, register: u64) -> Result<u64> {
        let mut value = [0; 8];
        let at = self.registers()? + register;
        cpu.load(&self.mapping(MemoryType::Uncached), at, &mut value)?;
        Ok(u64::from_le_bytes(value))
    }

    /// Has the engine write its progress words to host memory. Returns the address of the words,
    /// with those of `pool` cleared. `None`: the registers are not known, or the host has no memory
    /// that the device reaches. The logs of the pool are open, and no transaction has begun.
    pub(crate) fn attach_words(&self, cpu: &Cpu, pool: u8) -> Result<Option<u64>> {
        if self.registers.is_none() {
            return Ok(None);
        }
        let known = self.state().words;
        let words = cpu.shared().with_machine(|machine| {
            let memory = machine.system_mut().memory_mut();
            let zeros = [0; 8 * THREADS as usize];
            let cleared = |memory: &mut sim::HostMemory, words: u64| {
                memory
                    .write(progress_word(words, pool * THREADS), &zeros)
                    .is_ok()
            };
            let known = known.filter(|words| cleared(memory, *words));
            known.or_else(|| memory.alloc(PROGRESS_BYTES, 1))
        });
        self.state().words = words;
        if let Some(words) = words {
            self.write_register(cpu, PROGRESS, &words.to_le_bytes())?;
        }
        Ok(words)
    }

    /// The register that reports the state of the persistence domain; nothing if the registers are
    /// not known.
    fn read_domain(&self, cpu: &Cpu) -> Result<Option<u32>> {
        let Some(registers) = self.registers else {
            return Ok(None);
        };
        let mut value = [0; 4];
        cpu.load(
            &self.mapping(MemoryType::Uncached),
            registers + DOMAIN,
            &mut value,
        )?;
        Ok(Some(u32::from_le_bytes(value)))
    }

    /// An error if the engine has lost accepted stores or commands. Without registers nothing is
    /// checked.
    pub(crate) fn check_nothing_lost(&self, cpu: &Cpu) -> Result<()> {
        let Some(domain) = self.read_domain(cpu)? else {
            return Ok(());
        };
        let is = |field: Field| domain & field.mask() as u32 != 0;
        let what = match (is(domain::UNREAD), is(domain::LOST)) {
            (true, _) => {
                "could not restore what it had accepted before its last reset; another \
                          reset tries again"
            }
            (_, true) => {
                "could not save what it had accepted when its power failed: stores and \
                          commands may be missing"
            }
            _ => return Ok(()),
        };
        Err(Error::Corrupt(format!(
            "the engine of device {} {what}; `forget`, or 1 in its register {FORGET:#x}, \
             acknowledges the loss",
            self.device
        )))
    }

    /// Waits until the engine can save what it accepts. An error if it can't write its reserved
    /// range.
    pub(crate) fn wait_until_persistent(&self, cpu: &Cpu) -> Result<()> {
        let limit = cpu.now() + COMMAND_TIMEOUT;
        while let Some(domain) = self.read_domain(cpu)? {
            if domain & domain::UNKEPT.mask() as u32 == 0 {
                break;
            }
            if cpu.now() > limit {
                return Err(Error::Invalid(format!(
                    "the engine of device {} can't write the end of its media: what it accepts \
                     would not survive a power loss",
                    self.device
                )));
            }
            cpu.sleep_until(cpu.now() + POLL_INTERVAL)?;
        }
        Ok(())
    }

    /// Acknowledges a loss: the engine forgets what it has lost or could not restore. Needs
    /// [`EngineHandle::with_registers`].
    pub fn forget(&self, cpu: &Cpu) -> Result<()> {
        self.write_register(cpu, FORGET, &1u32.to_le_bytes())?;
        // A read after the write makes sure that the write has arrived.
        self.read_domain(cpu).map(drop)
    }

    // Not held while a CPU acts: the scheduler may switch to another program.
    fn state(&self) -> MutexGuard<'_, PageState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mapping(&self, kind: MemoryType) -> Mapping {
        Mapping {
            device: self.device,
            bar: Bar::Control,
            kind,
        }
    }

    fn line_offset(&self, line: usize) -> u64 {
        self.page + LINE_STRIDE * line as u64
    }

    /// Discards the state of the page: after a power loss, or a reset of the function.
    pub fn restart(&self) {
        let mut state = self.state();
        state.lines.fill(LineState::Unknown);
        state.refused.clear();
        state.status_load = None;
        state.dropped = None;
    }

    /// Reserves a free line, and numbers its command.
    fn reserve(&self) -> Option<SubmittedCommand> {
        let mut state = self.state();
        let free = |line: &LineState| matches!(line, LineState::Free);
        let line = state.lines.iter().position(free)?;
        state.count += 1;
        let number = state.count;
        state.lines[line] = LineState::Reserved;
        Some(SubmittedCommand { line, number })
    }

    /// Submits a command by one store of 64 bytes. Waits while all lines are busy.
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
        cpu.store(
            &self.mapping(MemoryType::Uncached),
            self.line_offset(submitted.line),
            &command.to_line(),
        )?;
        let executed = |machine: &mut host::Machine| machine.stores_executed(cpu.number());
        let store = cpu.shared().with_machine(executed);
        self.state().lines[submitted.line] = LineState::Busy(IssuedCommand {
            number: submitted.number,
            command: *command,
            cpu: cpu.number(),
            store,
            awaited,
        });
        Ok(submitted)
    }

    /// The commands whose stores have left their CPUs and that may not have ended, and lines in an
    /// unknown state. Another CPU's store may leave later than a load of this one; its line then
    /// still reports the command before it.
    fn pending_commands(&self, has_left: impl Fn(&IssuedCommand) -> bool) -> Vec<SubmittedCommand> {
        let state = self.state();
        let lines = state.lines.iter().enumerate();
        let open = lines.filter_map(|(line, what)| match what {
            LineState::Unknown => Some(SubmittedCommand { line, number: 0 }),
            LineState::Busy(written) if has_left(written) && !written.awaited => {
                Some(SubmittedCommand {
                    line,
                    number: written.number,
                })
            }
            LineState::Busy(_) | LineState::Free | LineState::Reserved => None,
        });
        open.collect()
    }

    /// The commands that a load of a CPU shows.
    fn shown_commands(&self, cpu: &Cpu) -> Vec<SubmittedCommand> {
        // The load waits for the stores of the same CPU.
        let same = |written: &IssuedCommand| written.cpu == cpu.number();
        let has_left = |written: &IssuedCommand| {
            let left = |machine: &mut host::Machine| machine.stores_left(written.cpu);
            same(written) || cpu.shared().with_machine(left) >= written.store
        };
        self.pending_commands(has_left)
    }

    /// Starts a status load of all of these.
    fn issue_status_load(&self, cpu: &Cpu) -> Result<StatusLoad> {
        let commands = self.shown_commands(cpu);
        let map = self.mapping(MemoryType::WriteCombining);
        let load = cpu.issue_load(&map, self.line_offset(0), LINE as usize)?;
        Ok(StatusLoad { commands, load })
    }

    /// Starts a status load without waiting for it, so that free lines are known by the time they
    /// are needed.
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

    /// A fence that loads from the pages of these engines: it returns the status of their commands,
    /// too. The engines have accepted or refused all of this CPU's commands by then.
    pub(crate) fn fence_with_status(cpu: &Cpu, engines: &[&Arc<EngineHandle>]) -> Result<()> {
        let mut shown = Vec::new();
        for engine in engines {
            engine.finish_prefetch(cpu)?;
            shown.push(engine.shown_commands(cpu));
        }
        let place =
            |engine: &&Arc<EngineHandle>| (engine.device, Bar::Control, engine.line_offset(0));
        let places: Vec<_> = engines.iter().map(place).collect();
        let lines = cpu.fence_with_lines(&places)?;
        for ((engine, commands), line) in engines.iter().zip(shown).zip(lines) {
            engine.process_lines(cpu, commands, &to_line(&line))?;
        }
        Ok(())
    }

    /// Finishes a status load that is under way; returns how many commands have ended.
    fn finish_prefetch(&self, cpu: &Cpu) -> Result<usize> {
        let status_load = self.state().status_load.take();
        status_load.map_or(Ok(0), |status| self.process_status(cpu, status))
    }

    /// Loads the status and waits for it; returns how many commands have ended.
    fn poll_status(&self, cpu: &Cpu) -> Result<usize> {
        let status = self.issue_status_load(cpu)?;
        self.process_status(cpu, status)
    }

    fn process_status(&self, cpu: &Cpu, status: StatusLoad) -> Result<usize> {
        let bytes = to_line(&cpu.finish_load(status.load)?);
        self.process_lines(cpu, status.commands, &bytes)
    }

    fn process_lines(
        &self,
        cpu: &Cpu,
        commands: Vec<SubmittedCommand>,
        bytes: &[u8; LINE as usize],
    ) -> Result<usize> {
        self.check_dropped_writes(page::dropped(bytes))?;
        let (busy, succeeded) = (page::busy_lines(bytes), page::succeeded_lines(bytes));
        let mut ended = 0;
        for submitted in commands {
            let is = |lines: u64| lines >> submitted.line & 1 != 0;
            // A line in an unknown state is free now; the program of its command is gone.
            let known = is(succeeded) || submitted.number == 0;
            ended += usize::from(match (is(busy), known) {
                (true, _) => false,
                (false, true) => self.record_end(submitted, ReturnValue(0)),
                // The line has the results.
                (false, false) => self.read_line(cpu, submitted)?.is_some(),
            });
        }
        Ok(ended)
    }

    /// An error if the page has dropped a write to a busy line: a command is lost.
    fn check_dropped_writes(&self, dropped: u32) -> Result<()> {
        let mut state = self.state();
        let before = state.dropped.replace(dropped).unwrap_or(dropped);
        // A lower count: the function was reset.
        match dropped > before {
            false => Ok(()),
            true => Err(Error::Invalid(format!(
                "the command page of device {} has dropped {} writes: another program writes there",
                self.device,
                dropped - before
            ))),
        }
    }

    /// The results of a command, from its line; nothing while it is busy.
    fn read_line(
        &self,
        cpu: &Cpu,
        submitted: SubmittedCommand,
    ) -> Result<Option<(ReturnValue, u64)>> {
        let mut bytes = [0; LINE as usize];
        let at = self.line_offset(submitted.line);
        cpu.load(&self.mapping(MemoryType::Uncached), at, &mut bytes)?;
        self.process_line(submitted, &bytes)
    }

    fn process_line(
        &self,
        submitted: SubmittedCommand,
        bytes: &[u8; LINE as usize],
    ) -> Result<Option<(ReturnValue, u64)>> {
        self.check_dropped_writes(page::dropped(bytes))?;
        if page::is_busy(bytes) {
            return Ok(None);
        }
        let ended = match submitted.number {
            // A command from before a power loss: its program is gone.
            0 => None,
            _ => page::ended(bytes).map_err(invalid)?,
        };
        let (results, value) =
            ended.map_or((ReturnValue(0), 0), |e| (ReturnValue(e.result), e.value));
        self.record_end(submitted, results);
        Ok(Some((results, value)))
    }

    /// Records the end of a command; false if it was known.
    fn record_end(&self, submitted: SubmittedCommand, results: ReturnValue) -> bool {
        let mut state = self.state();
        match state.lines[submitted.line] {
            LineState::Unknown if submitted.number == 0 => {}
            LineState::Busy(written) if written.number == submitted.number => {
                if !results.is_ok() {
                    state.refused.push((written.command, results));
                }
            }
            // Another thread has recorded it.
            _ => return false,
        }
        state.lines[submitted.line] = LineState::Free;
        true
    }

    /// Submits a command, waits for its end, and returns its results and value. A command for the
    /// log of a [`crate::Thread`] breaks the transactions of that thread.
    pub fn launch(&self, cpu: &Cpu, command: &Command) -> Result<(ReturnValue, u64)> {
        let submitted = self.issue(cpu, command, true)?;
        let limit = cpu.now() + COMMAND_TIMEOUT;
        loop {
            if let Some(ended) = self.read_line(cpu, submitted)? {
                let own = |c: &(Command, ReturnValue)| c.0 == *command;
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

    /// Starts a load of a command's line; see [`EngineHandle::has_ended`].
    pub(crate) fn issue_line_load(
        &self,
        cpu: &Cpu,
        submitted: SubmittedCommand,
    ) -> Result<PendingLoad> {
        let map = self.mapping(MemoryType::WriteCombining);
        Ok(cpu.issue_load(&map, self.line_offset(submitted.line), LINE as usize)?)
    }

    /// Evaluates that load: true if the command has ended.
    pub(crate) fn has_ended(
        &self,
        cpu: &Cpu,
        submitted: SubmittedCommand,
        load: PendingLoad,
    ) -> Result<bool> {
        let bytes = to_line(&cpu.finish_load(load)?);
        let holds =
            |line: &LineState| matches!(line, LineState::Busy(w) if w.number == submitted.number);
        // Another thread has recorded the end, and the line may hold another command.
        if !holds(&self.state().lines[submitted.line]) {
            return Ok(true);
        }
        Ok(self.process_line(submitted, &bytes)?.is_some())
    }

    /// An error if a command of these threads is known to be refused, or to have failed.
    pub(crate) fn check_refusals(&self, pool: u8, threads: &Range<u8>) -> Result<()> {
        let mut state = self.state();
        let own = |c: &(Command, ReturnValue)| c.0.pool == pool && threads.contains(&c.0.thread);
        match state.refused.iter().position(own) {
            Some(n) => {
                let (command, results) = state.refused.remove(n);
                Err(Error::Refused(command.operation, results))
            }
            None => Ok(()),
        }
    }

    /// Waits until the commands of a pool's thread have ended, as `command` names them. An error if
    /// one was refused.
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
        self.check_refusals(command.pool, &(command.thread..command.thread + 1))
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

    /// A status load covers commands that were sent before it, and frees no line whose submitter
    /// waits.
    #[test]
    fn status_load_skips_later_and_awaited_commands() {
        let engine = EngineHandle::new(0, 0);
        let written = |number: u64, store: u64, awaited: bool| {
            LineState::Busy(IssuedCommand {
                number,
                command: Command::new(Operation::Sync, 0, 0, 0),
                cpu: 0,
                store,
                awaited,
            })
        };
        {
            let mut state = engine.state();
            state.lines.fill(LineState::Free);
            state.lines[1] = written(1, 10, false);
            state.lines[2] = written(2, 10, true);
            state.lines[3] = written(3, 20, false);
            state.lines[4] = LineState::Reserved;
            state.lines[5] = LineState::Unknown;
        }
        let found: Vec<_> = engine
            .pending_commands(|written| written.store < 20)
            .iter()
            .map(|s| s.line)
            .collect();
        assert_eq!(found, [1, 5]);
        // The line holds another command.
        let old = SubmittedCommand { line: 1, number: 9 };
        assert!(!engine.record_end(old, ReturnValue(0)));
        assert!(matches!(engine.state().lines[1], LineState::Busy(_)));
        let own = SubmittedCommand { line: 1, number: 1 };
        assert!(engine.record_end(own, ReturnValue(0)));
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
