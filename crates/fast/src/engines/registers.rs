// SPDX-License-Identifier: Apache-2.0

//! The registers that all engines have (docs/engines.md): control, interrupt, status, return value,
//! arguments, outputs.

use spec::regs::engine::{
    control, ARGUMENTS, ARGUMENTS_STRIDE, CONTROL, INTERRUPT, RESULT, SOURCES, STATUS,
};

use super::{Job, JobResult, MAX_ARGUMENTS, MAX_OUTPUTS};

/// Registers of one engine, and the job that they request (engine_registers).
pub(super) struct Registers {
    arguments: Vec<[u32; 2]>,
    outputs: Vec<u64>,
    interrupt: bool,
    sources: bool,
    done: bool,
    result: u32,
    /// A job is requested and has not ended.
    pub(super) requested: bool,
    /// The job shall stop early.
    pub(super) stop: bool,
    /// The interrupt request at the last check.
    requests: bool,
}

impl Registers {
    /// Registers after a reset, with this number of arguments and outputs.
    pub(super) fn new(arguments: usize, outputs: usize) -> Registers {
        Registers {
            arguments: vec![[0; 2]; arguments.min(MAX_ARGUMENTS)],
            outputs: vec![0; outputs.min(MAX_OUTPUTS)],
            interrupt: false,
            sources: false,
            done: false,
            result: 0,
            requested: false,
            stop: false,
            requests: false,
        }
    }

    /// Index of an argument or output, and of its dword.
    fn value_of(at: u64) -> Option<(usize, usize)> {
        let from = at.checked_sub(ARGUMENTS)?;
        let word = from % ARGUMENTS_STRIDE / 4;
        (word < 2).then_some(((from / ARGUMENTS_STRIDE) as usize, word as usize))
    }

    /// Reads a dword by its offset; 0 if no register is there.
    pub(super) fn read(&self, at: u64) -> u32 {
        match at {
            CONTROL => match self.requested {
                true => 0,
                false => control::IDLE.mask() as u32,
            },
            INTERRUPT => self.interrupt.into(),
            SOURCES => self.sources.into(),
            STATUS => self.done.into(),
            RESULT => self.result,
            _ => match Registers::value_of(at) {
                Some((n, word)) if n < self.arguments.len() => self.arguments[n][word],
                Some((n, word)) => self
                    .outputs
                    .get(n - self.arguments.len())
                    .map_or(0, |value| (value >> (32 * word)) as u32),
                None => 0,
            },
        }
    }

    /// Writes the bits `bits` of a dword.
    pub(super) fn write(&mut self, at: u64, value: u32, bits: u32) {
        let set = value & bits;
        let flag = |old: bool| if bits & 1 == 1 { set & 1 == 1 } else { old };
        match at {
            CONTROL => {
                let start = set & control::START.mask() as u32 != 0;
                let stop = set & control::STOP.mask() as u32 != 0;
                if self.requested {
                    self.stop |= stop;
                } else if start {
                    (self.requested, self.stop) = (true, stop);
                }
            }
            INTERRUPT => self.interrupt = flag(self.interrupt),
            SOURCES => self.sources = flag(self.sources),
            STATUS => self.done &= set & 1 == 0,
            _ => {
                if let Some((n, word)) = Registers::value_of(at) {
                    if let Some(argument) = self.arguments.get_mut(n) {
                        argument[word] = argument[word] & !bits | set;
                    }
                }
            }
        }
    }

    /// The job that the registers request.
    pub(super) fn job(&self) -> Job {
        let mut job = Job::default();
        for (to, [low, high]) in job.arguments.iter_mut().zip(&self.arguments) {
            *to = u64::from(*high) << 32 | u64::from(*low);
        }
        job
    }

    /// The job of the registers has ended.
    pub(super) fn job_ended(&mut self, end: &JobResult) {
        (self.requested, self.stop) = (false, false);
        self.result = end.result;
        self.done = true;
        for (to, value) in self.outputs.iter_mut().zip(end.outputs) {
            *to = value;
        }
    }

    /// The interrupt request has risen since the last check.
    pub(super) fn interrupt_rises(&mut self) -> bool {
        let now = self.interrupt && self.sources && self.done;
        let before = std::mem::replace(&mut self.requests, now);
        now && !before
    }
}
