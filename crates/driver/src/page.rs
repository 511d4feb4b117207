// SPDX-License-Identifier: Apache-2.0

//! Commands of an engine's command page: each is one store of 64 bytes.

use sim::{Bar, Time};
use spec::regs::command_page::{line, LINE_COUNT, LINE_STRIDE};

use crate::launch::poll_until;
use crate::{Error, Host, Result};

/// Bytes of a command.
const COMMAND: usize = 64;
/// Most arguments of a command; they follow its first 8 bytes, which are 0.
const MOST_ARGUMENTS: usize = 7;

/// An engine's command page in BAR4. This must be its only user.
#[derive(Clone, Debug)]
pub struct CommandPage {
    base: u64,
    /// Lines that are known to be free.
    free: u64,
    /// The line after the last one written.
    next: u64,
    /// The last command of each line.
    commands: [u64; LINE_COUNT as usize],
    count: u64,
}

/// A submitted command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmittedCommand {
    /// The line of the command.
    pub line: u64,
    /// The number of commands written so far, including this one.
    pub number: u64,
}

/// The result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandResult {
    /// The engine's return value; 0 is success.
    pub result: u32,
    /// A further value of the engine.
    pub value: u64,
}

/// Counters of a page since the function's reset, modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCounts {
    /// Complete commands.
    pub accepted: u32,
    /// Ended commands.
    pub ended: u32,
    /// Writes dropped because their line was busy.
    pub dropped: u32,
}

fn read_u32(bytes: &[u8], at: u64) -> u32 {
    let at = at as usize;
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn read_u64(bytes: &[u8], low: u64, high: u64) -> u64 {
    u64::from(read_u32(bytes, high)) << 32 | u64::from(read_u32(bytes, low))
}

/// The busy bits of all lines, which every line contains.
pub fn busy_lines(bytes: &[u8; COMMAND]) -> u64 {
    read_u64(bytes, line::BUSY_LO, line::BUSY_HI)
}

/// A bit for each line whose last command has ended with return value 0; every line contains them.
pub fn succeeded_lines(bytes: &[u8; COMMAND]) -> u64 {
    read_u64(bytes, line::SUCCEEDED_LO, line::SUCCEEDED_HI)
}

/// Encodes a command with up to 7 arguments.
pub fn encode(arguments: &[u64]) -> Result<[u8; COMMAND]> {
    if arguments.len() > MOST_ARGUMENTS {
        let text = format!(
            "{} arguments: a command has at most {MOST_ARGUMENTS}",
            arguments.len()
        );
        return Err(Error::Invalid(text));
    }
    let mut command = [0; COMMAND];
    for (bytes, argument) in command[8..].chunks_exact_mut(8).zip(arguments) {
        bytes.copy_from_slice(&argument.to_le_bytes());
    }
    Ok(command)
}

/// Writes that the page has dropped since the function's reset, modulo 2^32; every line contains
/// them.
pub fn dropped(bytes: &[u8; COMMAND]) -> u32 {
    read_u32(bytes, line::DROPPED)
}

/// Whether a line holds a command that has not ended; writes to it are dropped.
pub fn is_busy(bytes: &[u8; COMMAND]) -> bool {
    line::state::BUSY.is_set(read_u32(bytes, line::STATE).into())
}

/// The result of the last command of a line, if it has ended.
pub fn ended(bytes: &[u8; COMMAND]) -> Result<Option<CommandResult>> {
    let state = read_u32(bytes, line::STATE).into();
    if is_busy(bytes) {
        return Ok(None);
    }
    if !line::state::DONE.is_set(state) {
        let text = "the command page lost a command: the function was reset, or somebody else \
            writes there";
        return Err(Error::Misbehaviour(text.into()));
    }
    Ok(Some(CommandResult {
        result: read_u32(bytes, line::RESULT),
        value: read_u64(bytes, line::VALUE_LO, line::VALUE_HI),
    }))
}

impl CommandPage {
    /// The page at `base` in BAR4.
    pub fn new(base: u64) -> CommandPage {
        CommandPage {
            base,
            free: 0,
            next: 0,
            commands: [0; LINE_COUNT as usize],
            count: 0,
        }
    }

    /// Writes a command with up to 7 arguments. An error if all 64 lines are busy.
    pub fn submit<H: Host>(&mut self, host: &mut H, arguments: &[u64]) -> Result<SubmittedCommand> {
        self.submit_line(host, &encode(arguments)?)
    }

    /// Submits a command of these bytes, in the same way.
    pub fn submit_line<H: Host>(
        &mut self,
        host: &mut H,
        command: &[u8; COMMAND],
    ) -> Result<SubmittedCommand> {
        host.run_on(0);
        if self.free == 0 {
            self.free = self.idle_lines(host)?;
        }
        let mut turn = (0..LINE_COUNT).map(|n| (self.next + n) % LINE_COUNT);
        let Some(line) = turn.find(|line| self.free >> line & 1 != 0) else {
            let text = format!("all {LINE_COUNT} lines of the command page are busy");
            return Err(Error::Invalid(text));
        };
        self.free &= !(1 << line);
        self.next = (line + 1) % LINE_COUNT;
        self.count += 1;
        self.commands[line as usize] = self.count;
        host.write(Bar::Control, self.line_offset(line), command)?;
        Ok(SubmittedCommand {
            line,
            number: self.count,
        })
    }

    /// The result of a command, if it has ended; an error if a later command has used its line.
    pub fn ended<H: Host>(
        &self,
        host: &mut H,
        command: SubmittedCommand,
    ) -> Result<Option<CommandResult>> {
        host.run_on(0);
        let last = self.commands.get(command.line as usize);
        if command.number == 0 || last != Some(&command.number) {
            let text = format!(
                "no command {} is in line {}: a later one has taken its place, or there was none",
                command.number, command.line
            );
            return Err(Error::Invalid(text));
        }
        let bytes = self.read_line(host, command.line)?;
        ended(&bytes)
    }

    /// Waits for the end of a command until `deadline`, polling every `interval`. `keep_going`
    /// decides whether to continue waiting.
    pub fn wait<H: Host>(
        &self,
        host: &mut H,
        command: SubmittedCommand,
        interval: Time,
        deadline: Time,
        keep_going: &mut dyn FnMut() -> bool,
    ) -> Result<Option<CommandResult>> {
        poll_until(host, interval, deadline, keep_going, |host| {
            self.ended(host, command)
        })
    }

    /// The counters of the page.
    pub fn counts<H: Host>(&self, host: &mut H) -> Result<PageCounts> {
        host.run_on(0);
        let bytes = self.read_line(host, 0)?;
        Ok(PageCounts {
            accepted: read_u32(&bytes, line::ACCEPTED),
            ended: read_u32(&bytes, line::ENDED),
            dropped: dropped(&bytes),
        })
    }

    fn line_offset(&self, line: u64) -> u64 {
        self.base + LINE_STRIDE * line
    }

    fn read_line<H: Host>(&self, host: &mut H, line: u64) -> Result<[u8; COMMAND]> {
        let mut bytes = [0; COMMAND];
        host.read(Bar::Control, self.line_offset(line), &mut bytes)?;
        Ok(bytes)
    }

    /// A bit for each free line.
    fn idle_lines<H: Host>(&self, host: &mut H) -> Result<u64> {
        Ok(!busy_lines(&self.read_line(host, 0)?))
    }
}
