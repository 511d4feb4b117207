// SPDX-License-Identifier: Apache-2.0

//! The copy engine (hw/engine/copy): copies a range of the memories, of any alignment and length.

use spec::nvme::{status, Status};
use spec::regs::copy::result;

use crate::config::Config;
use crate::controller::EngineCommand;

use super::mover::{Mover, MoverParameters, BURSTS};
use super::ports::EnginePorts;
use super::{Engine, Job, JobResult, BLOCK_BITS};

/// Mover parameters of the RTL.
const PARAMETERS: MoverParameters = MoverParameters {
    burst: 256,
    bursts: BURSTS,
    commands: 8,
};
/// Cycles from the start to the first segment.
const CHECK_CYCLES: u64 = 2;
/// Cycles from the last answer to the end.
const FINISH_CYCLES: u64 = 2;
/// Wake-up numbers, in addition to the mover numbers.
const BEGIN: u32 = 1 << 16;
const DONE: u32 = 2 << 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum CopyState {
    Idle,
    /// The range is checked and will be split.
    Checking,
    Splitting,
    /// All segments have been given to movers.
    Waiting,
    /// All segments have ended.
    Finished,
}

/// One copy at a time. It is split at granules of its target; the mover of the target's channel
/// copies each segment.
pub(super) struct Copy {
    granule: u64,
    /// Bytes of the longest copy: those of the PM window.
    longest: u64,
    state: CopyState,
    src: u64,
    dst: u64,
    left: u64,
    /// Segments that have not ended.
    open: u64,
    result: u64,
    movers: Vec<Mover>,
    finished: Option<JobResult>,
}

impl Copy {
    pub(super) fn new(config: &Config) -> Copy {
        let storage = &config.storage;
        let longest = match &config.local {
            None => storage.bytes,
            Some(local) => config.local_base + local.bytes,
        };
        Copy {
            granule: storage.granule,
            longest,
            state: CopyState::Idle,
            src: 0,
            dst: 0,
            left: 0,
            open: 0,
            result: 0,
            movers: (0..storage.channels)
                .map(|number| Mover::new(number, PARAMETERS))
                .collect(),
            finished: None,
        }
    }

    /// Gives segments to movers that have room, and collects the finished ones.
    fn advance(&mut self, ports: &mut EnginePorts) {
        let mut again = true;
        while again {
            again = false;
            for mover in &mut self.movers {
                while let Some(errors) = mover.take_finished() {
                    self.open -= 1;
                    self.result |= match errors.read {
                        true => result::READ_ERROR.mask(),
                        false => 0,
                    };
                    self.result |= match errors.write {
                        true => result::WRITE_ERROR.mask(),
                        false => 0,
                    };
                }
            }
            while self.state == CopyState::Splitting {
                let number = (self.dst / self.granule % self.movers.len() as u64) as usize;
                let mover = &mut self.movers[number];
                if !mover.has_room() {
                    break;
                }
                let bytes = (self.granule - self.dst % self.granule).min(self.left);
                mover.push(self.src, self.dst, bytes);
                mover.advance(ports);
                again = true;
                self.open += 1;
                self.left -= bytes;
                self.src = self.src.wrapping_add(bytes);
                self.dst = self.dst.wrapping_add(bytes);
                if self.left == 0 {
                    self.state = CopyState::Waiting;
                }
            }
        }
        if self.state == CopyState::Waiting && self.open == 0 {
            self.state = CopyState::Finished;
            ports.wake(ports.now() + FINISH_CYCLES, DONE);
        }
    }
}

/// A range of `bytes`, at least one, does not wrap at 2^64.
fn fits(addr: u64, bytes: u64) -> bool {
    bytes > 0 && addr.checked_add(bytes - 1).is_some()
}

impl Engine for Copy {
    fn decode_command(&self, command: &EngineCommand) -> Result<Job, Status> {
        let dw = &command.sqe.dw;
        let double = |n: usize| u64::from(dw[n + 1]) << 32 | u64::from(dw[n]);
        let (source, target) = (double(10), double(14));
        let less = u64::from(dw[12] & 0xFF_FFFF);
        if dw[12] >> 24 != 0 || dw[13] != 0 {
            return Err(status::INVALID_FIELD.dnr());
        }
        let beyond = |first: u64| {
            let last = first.checked_add(less);
            last.is_none_or(|last| last >= command.blocks)
        };
        if beyond(source) || beyond(target) {
            return Err(status::LBA_OUT_OF_RANGE.dnr());
        }
        if source.abs_diff(target) <= less {
            return Err(status::INVALID_FIELD.dnr());
        }
        let mut job = Job::default();
        job.arguments[0] = (command.base + source) << BLOCK_BITS;
        job.arguments[1] = (command.base + target) << BLOCK_BITS;
        job.arguments[2] = (less + 1) << BLOCK_BITS;
        Ok(job)
    }

    fn stopped_mask(&self) -> u32 {
        result::STOPPED.mask() as u32
    }

    fn completion_status(&self, end: &JobResult) -> (Status, u32) {
        let is = |bit: spec::regs::Field| bit.is_set(end.result.into());
        let status = if is(result::WRITE_ERROR) {
            status::WRITE_FAULT
        } else if is(result::READ_ERROR) {
            status::UNRECOVERED_READ_ERROR
        } else {
            status::SUCCESS
        };
        (status, 0)
    }

    fn start(&mut self, job: &Job, ports: &mut EnginePorts) {
        [self.src, self.dst, self.left] = [0, 1, 2].map(|n| job.arguments[n]);
        let ok = !job.malformed
            && self.left <= self.longest
            && fits(self.src, self.left)
            && fits(self.dst, self.left);
        (self.state, self.result) = (CopyState::Checking, 0);
        if !ok {
            self.left = 0;
            self.result = result::INVALID.mask();
        }
        ports.wake(ports.now() + CHECK_CYCLES, BEGIN);
    }

    fn stop(&mut self, ports: &mut EnginePorts) {
        match self.state {
            CopyState::Checking if self.left > 0 => {
                self.left = 0;
                self.result |= result::STOPPED.mask();
            }
            CopyState::Splitting => {
                self.state = CopyState::Waiting;
                self.result |= result::STOPPED.mask();
                self.advance(ports);
            }
            _ => {}
        }
    }

    fn wake(&mut self, what: u32, ports: &mut EnginePorts) {
        match what {
            BEGIN => {
                self.state = match self.left {
                    0 => CopyState::Waiting,
                    _ => CopyState::Splitting,
                };
                self.advance(ports);
            }
            DONE => {
                self.state = CopyState::Idle;
                self.finished = Some(JobResult {
                    result: self.result as u32,
                    ..JobResult::default()
                });
            }
            number => self.movers[number as usize].advance(ports),
        }
    }

    fn read_answered(&mut self, burst: u32, end: bool, ok: bool, ports: &mut EnginePorts) {
        let burst = burst as usize;
        if end {
            self.movers[burst / BURSTS].read_arrived(burst % BURSTS, ok, ports);
        }
    }

    fn write_answered(&mut self, burst: u32, ok: bool, ports: &mut EnginePorts) {
        let burst = burst as usize;
        self.movers[burst / BURSTS].write_answered(burst % BURSTS, ok, ports);
        self.advance(ports);
    }

    fn take_result(&mut self) -> Option<JobResult> {
        self.finished.take()
    }
}
