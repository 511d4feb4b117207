//! Commands for an engine through its command page: each is one store of 64 bytes.

use sim::{Bar, Time};
use spec::regs::command_page::{line, LINE_COUNT, LINE_STRIDE};

use crate::launch::poll_until;
use crate::{Error, Host, Result};

/// Bytes of a command.
const COMMAND: usize = 64;
/// Most arguments of a command: what follows its first 8 bytes, which are 0.
const MOST_ARGUMENTS: usize = 7;

/// An engine's command page in BAR4, of which this is the only user.
#[derive(Clone, Debug)]
pub struct CommandPage {
    base: u64,
    /// Lines that are known to be free.
    free: u64,
    /// The line after the last one that was written.
    next: u64,
    /// The last command of each line.
    commands: [u64; LINE_COUNT as usize],
    count: u64,
}

/// A command that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmittedCommand {
    /// Where it was written.
    pub line: u64,
    /// How many have been written up to and with this one.
    pub number: u64,
}

/// How a command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandResult {
    /// The engine's return value; 0: all is well.
    pub result: u32,
    /// What else it tells.
    pub value: u64,
}

/// What a page has counted since the function's reset, modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCounts {
    /// Commands that were whole.
    pub accepted: u32,
    /// Commands that have ended.
    pub ended: u32,
    /// Writes that were dropped, since their line was busy.
    pub dropped: u32,
}

fn read_u32(bytes: &[u8], at: u64) -> u32 {
    let at = at as usize;
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn read_u64(bytes: &[u8], low: u64, high: u64) -> u64 {
    u64::from(read_u32(bytes, high)) << 32 | u64::from(read_u32(bytes, low))
}

/// What any line that was read says of all lines, a bit each: it is busy.
pub fn busy_lines(bytes: &[u8; COMMAND]) -> u64 {
    read_u64(bytes, line::BUSY_LO, line::BUSY_HI)
}

/// And whether its last command has ended with return value 0.
pub fn succeeded_lines(bytes: &[u8; COMMAND]) -> u64 {
    read_u64(bytes, line::SUCCEEDED_LO, line::SUCCEEDED_HI)
}

/// The store that is a command with these arguments, up to 7.
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

/// And how many writes the page has dropped since the function's reset, modulo 2^32.
pub fn dropped(bytes: &[u8; COMMAND]) -> u32 {
    read_u32(bytes, line::DROPPED)
}

/// True when a line that was read holds a command that has not ended: what is written there is
/// dropped.
pub fn is_busy(bytes: &[u8; COMMAND]) -> bool {
    line::state::BUSY.is_set(read_u32(bytes, line::STATE).into())
}

/// What a line that was read says of the command that was written there last: how it has ended, if
/// it has.
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

    /// Writes a command with these arguments, up to 7. An error when all 64 lines are busy.
    pub fn submit<H: Host>(&mut self, host: &mut H, arguments: &[u64]) -> Result<SubmittedCommand> {
        host.run_on(0);
        let command = encode(arguments)?;
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
        host.write(Bar::Control, self.line_offset(line), &command)?;
        Ok(SubmittedCommand {
            line,
            number: self.count,
        })
    }

    /// How a command has ended, if it has; an error if another one has taken its line since.
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

    /// Waits for its end until `deadline`, looking every `interval`. `keep_going` answers whether
    /// to wait further.
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

    /// What the page has counted.
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

    /// A bit for each line: it is free.
    fn idle_lines<H: Host>(&self, host: &mut H) -> Result<u64> {
        Ok(!busy_lines(&self.read_line(host, 0)?))
    }
}
