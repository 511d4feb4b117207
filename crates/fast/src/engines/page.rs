// SPDX-License-Identifier: Apache-2.0

//! A command page: 64 lines of 64 bytes, each of which holds a command (hw/ip/command_page).

use std::collections::VecDeque;

use spec::bar4::{PAGES, PAGE_STEP};
use spec::regs::command_page::line;

use super::{Job, JobResult, MAX_ARGUMENTS};

/// Bytes of a line.
const LINE_BYTES: usize = 64;
/// Number of lines.
const LINES: usize = 64;

/// Splits an access at page boundaries. Calls `piece` with the page's BAR4 offset, the offset in
/// the page, the offset in the access, and the length.
pub(super) fn for_each_page(
    offset: u64,
    len: usize,
    mut piece: impl FnMut(u64, usize, usize, usize),
) {
    let mut from = 0;
    while from < len {
        let at = offset + from as u64;
        let inside = (at - PAGES.start) % PAGE_STEP;
        let bytes = ((PAGE_STEP - inside) as usize).min(len - from);
        piece(at - inside, inside as usize, from, bytes);
        from += bytes;
    }
}

#[derive(Clone, Copy)]
struct PageLine {
    bytes: [u8; LINE_BYTES],
    /// The bytes written since the last command, one bit each.
    written: u64,
    /// The line holds a command that has not ended.
    busy: bool,
    /// The last command has ended.
    done: bool,
    result: u32,
    value: u64,
}

/// A waiting command: its line, and the number of earlier stores to the PM window.
#[derive(Clone, Copy)]
struct WaitingCommand {
    line: u8,
    stores: u64,
}

/// One page, and its command that the engine has accepted (engine_page).
pub(super) struct Page {
    lines: Vec<PageLine>,
    waiting: VecDeque<WaitingCommand>,
    accepted: u32,
    ended: u32,
    dropped: u32,
    arguments: usize,
    /// Line of the accepted command.
    kept: Option<u8>,
    /// The decoded job, ready to start.
    pub(super) job: Option<Job>,
}

impl Page {
    /// A page after a reset, with commands of `arguments` arguments.
    pub(super) fn new(arguments: usize) -> Page {
        let line = PageLine {
            bytes: [0; LINE_BYTES],
            written: 0,
            busy: false,
            done: false,
            result: 0,
            value: 0,
        };
        Page {
            lines: vec![line; LINES],
            waiting: VecDeque::with_capacity(LINES),
            accepted: 0,
            ended: 0,
            dropped: 0,
            arguments: arguments.min(MAX_ARGUMENTS),
            kept: None,
            job: None,
        }
    }

    /// No command waits or runs.
    pub(super) fn is_idle(&self) -> bool {
        self.kept.is_none() && self.waiting.is_empty()
    }

    /// Writes bytes; each line of 64 bytes is a separate write.
    pub(super) fn write(&mut self, at: usize, data: &[u8], stores: u64) {
        let mut from = 0;
        while from < data.len() {
            let (number, inside) = ((at + from) / LINE_BYTES % LINES, (at + from) % LINE_BYTES);
            let len = (LINE_BYTES - inside).min(data.len() - from);
            let line = &mut self.lines[number];
            if line.busy {
                self.dropped = self.dropped.wrapping_add(1);
            } else {
                line.bytes[inside..inside + len].copy_from_slice(&data[from..from + len]);
                line.written |= u64::MAX >> (LINE_BYTES - len) << inside;
                if line.written == u64::MAX {
                    (line.written, line.busy, line.done) = (0, true, false);
                    self.accepted = self.accepted.wrapping_add(1);
                    self.waiting.push_back(WaitingCommand {
                        line: number as u8,
                        stores,
                    });
                }
            }
            from += len;
        }
    }

    /// Appends bytes of the page to `out`.
    pub(super) fn read(&self, at: usize, len: usize, out: &mut Vec<u8>) {
        let mask = |is: fn(&PageLine) -> bool| {
            let lines = self.lines.iter().enumerate();
            lines.fold(0, |all, (n, line)| all | u64::from(is(line)) << n)
        };
        let busy = mask(|line| line.busy);
        let succeeded = mask(|line| line.done && line.result == 0);
        for at in at..at + len {
            let line = &self.lines[at / LINE_BYTES % LINES];
            let place = (at % LINE_BYTES) as u64;
            let (result, value) = match line.done {
                true => (line.result, line.value),
                false => (0, 0),
            };
            let word = match place & !3 {
                line::STATE => u32::from(line.busy) | u32::from(line.done) << 1,
                line::RESULT => result,
                line::VALUE_LO => value as u32,
                line::VALUE_HI => (value >> 32) as u32,
                line::ACCEPTED => self.accepted,
                line::ENDED => self.ended,
                line::DROPPED => self.dropped,
                line::BUSY_LO => busy as u32,
                line::BUSY_HI => (busy >> 32) as u32,
                line::SUCCEEDED_LO => succeeded as u32,
                line::SUCCEEDED_HI => (succeeded >> 32) as u32,
                _ => 0,
            };
            out.push((word >> (8 * (place % 4))) as u8);
        }
    }

    /// Accepts the oldest command if none is accepted yet and all earlier stores are among the
    /// `answered` ones. True: a command was accepted.
    pub(super) fn accept_next(&mut self, answered: u64) -> bool {
        let ordered = |waits: &&WaitingCommand| waits.stores <= answered;
        if self.kept.is_some() || self.waiting.front().filter(ordered).is_none() {
            return false;
        }
        self.kept = self.waiting.pop_front().map(|waits| waits.line);
        true
    }

    /// Decodes the accepted command into a job.
    pub(super) fn make_job(&mut self) {
        let kept = self.kept.expect("a command was accepted");
        self.job = Some(self.job_of(kept));
    }

    /// The words of the command in a line.
    pub(super) fn words_of(&self, line: u8) -> [u64; LINE_BYTES / 8] {
        let bytes = &self.lines[usize::from(line)].bytes;
        let word = |n: usize| bytes[8 * n..8 * n + 8].iter().rev();
        std::array::from_fn(|n| word(n).fold(0, |v, &b| v << 8 | u64::from(b)))
    }

    /// The job of the command in a line.
    fn job_of(&self, line: u8) -> Job {
        let mut job = Job::default();
        for (n, value) in self.words_of(line).into_iter().enumerate() {
            match n.checked_sub(1) {
                Some(argument) if argument < self.arguments => job.arguments[argument] = value,
                _ => job.malformed |= value != 0,
            }
        }
        job
    }

    /// Takes the line of the oldest waiting command, for an engine with room for all commands.
    pub(super) fn next_line(&mut self) -> Option<u8> {
        self.waiting.pop_front().map(|waits| waits.line)
    }

    /// The job of the accepted command has ended.
    pub(super) fn job_ended(&mut self, end: &JobResult) {
        self.job = None;
        let kept = self.kept.take().expect("a command was accepted");
        self.end_line(kept, end);
    }

    /// The command in a line has ended. A command from before a reset has no line any more.
    pub(super) fn end_line(&mut self, line: u8, end: &JobResult) {
        let line = &mut self.lines[usize::from(line)];
        if line.busy {
            (line.busy, line.done) = (false, true);
            (line.result, line.value) = (end.result, end.outputs[0]);
            self.ended = self.ended.wrapping_add(1);
        }
    }
}
