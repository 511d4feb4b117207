//! A command page: 64 lines of 64 bytes, each of which holds a command (hw/ip/command_page).

use std::collections::VecDeque;

use spec::bar4::{PAGES, PAGE_STEP};
use spec::regs::command_page::line;

use super::{Job, JobResult, MAX_ARGUMENTS};

/// Bytes of a line.
const LINE_BYTES: usize = 64;
/// Lines.
const LINES: usize = 64;

/// Cuts an access at pages: calls `piece` with the page's place in BAR4, the place in it, the place in the access, and the bytes.
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
    /// Which of them have been written since the last command, a bit each.
    written: u64,
    /// It holds a command that has not ended.
    busy: bool,
    /// The last command has ended.
    done: bool,
    result: u32,
    value: u64,
}

/// A command that waits: its line, and how many stores the PM window has had before it.
#[derive(Clone, Copy)]
struct WaitingCommand {
    line: u8,
    stores: u64,
}

/// One page, and the command of it that the engine has (engine_page).
pub(super) struct Page {
    lines: Vec<PageLine>,
    waiting: VecDeque<WaitingCommand>,
    accepted: u32,
    ended: u32,
    dropped: u32,
    arguments: usize,
    /// The line of the command that the engine has.
    kept: Option<u8>,
    /// It is to be carried out.
    pub(super) job: Option<Job>,
}

impl Page {
    /// Of commands with so many arguments, as after a reset.
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

    /// No command waits or is carried out.
    pub(super) fn is_idle(&self) -> bool {
        self.kept.is_none() && self.waiting.is_empty()
    }

    /// Bytes are written: each line of 64 is a write of its own.
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

    /// Appends bytes that the page reads as.
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

    /// The engine takes the oldest command, if it has none, and if so many answered stores are all before it. True: it has.
    pub(super) fn accept_next(&mut self, answered: u64) -> bool {
        let ordered = |waits: &&WaitingCommand| waits.stores <= answered;
        if self.kept.is_some() || self.waiting.front().filter(ordered).is_none() {
            return false;
        }
        self.kept = self.waiting.pop_front().map(|waits| waits.line);
        true
    }

    /// The command that the engine has becomes a job.
    pub(super) fn make_job(&mut self) {
        if let Some(kept) = self.kept {
            self.job = Some(self.job_of(kept));
        }
    }

    /// What the command in a line asks for.
    pub(super) fn job_of(&self, line: u8) -> Job {
        let bytes = &self.lines[usize::from(line)].bytes;
        let mut job = Job::default();
        for (n, word) in bytes.chunks_exact(8).enumerate() {
            let value = word.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b));
            match n.checked_sub(1) {
                Some(argument) if argument < self.arguments => job.arguments[argument] = value,
                _ => job.malformed |= value != 0,
            }
        }
        job
    }

    /// The line of the oldest command that waits, for an engine with room for all of them.
    pub(super) fn next_line(&mut self) -> Option<u8> {
        self.waiting.pop_front().map(|waits| waits.line)
    }

    /// That job has ended.
    pub(super) fn job_ended(&mut self, end: &JobResult) {
        self.job = None;
        if let Some(kept) = self.kept.take() {
            self.end_line(kept, end);
        }
    }

    /// The command in a line has ended. One from before a reset has no line any more.
    pub(super) fn end_line(&mut self, line: u8, end: &JobResult) {
        let line = &mut self.lines[usize::from(line)];
        if line.busy {
            (line.busy, line.done) = (false, true);
            (line.result, line.value) = (end.result, end.outputs[0]);
            self.ended = self.ended.wrapping_add(1);
        }
    }
}
