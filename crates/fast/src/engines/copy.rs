//! The copy engine (hw/engine/copy): a range of the memories to another one, of any alignment and length.

use spec::nvme::{status, Status};
use spec::regs::copy::result;

use crate::config::Config;
use crate::controller::EngineCommand;

use super::mover::{Mover, Shape, BURSTS};
use super::ports::Ports;
use super::{End, Engine, Job, BLOCK_BITS};

/// Movers of the RTL.
const SHAPE: Shape = Shape {
    burst: 256,
    bursts: BURSTS,
    commands: 8,
};
/// Cycles from the start to the first piece.
const CHECK: u64 = 2;
/// Cycles from the last answer to the end.
const FINISH: u64 = 2;
/// What a wake-up is about, besides numbers of movers.
const BEGIN: u32 = 1 << 16;
const OVER: u32 = 2 << 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    /// It is going to be cut.
    Check,
    Cut,
    /// All pieces have been given to movers.
    Wait,
    /// They are over.
    Over,
}

/// One copy at a time: it is cut at granules of its target, and each piece goes to the mover of the channel that this lies in.
pub(super) struct Copy {
    granule: u64,
    /// Bytes of the longest copy: the PM window's.
    longest: u64,
    state: State,
    src: u64,
    dst: u64,
    left: u64,
    /// Pieces under way.
    open: u64,
    result: u64,
    movers: Vec<Mover>,
    ended: Option<End>,
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
            state: State::Idle,
            src: 0,
            dst: 0,
            left: 0,
            open: 0,
            result: 0,
            movers: (0..storage.channels)
                .map(|number| Mover::new(number, SHAPE))
                .collect(),
            ended: None,
        }
    }

    /// Gives pieces to movers, as many as these have room for, and sees what has ended.
    fn go_on(&mut self, ports: &mut Ports) {
        let mut again = true;
        while again {
            again = false;
            for mover in &mut self.movers {
                while let Some(errors) = mover.take_ended() {
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
            while self.state == State::Cut {
                let number = (self.dst / self.granule % self.movers.len() as u64) as usize;
                let mover = &mut self.movers[number];
                if !mover.has_room() {
                    break;
                }
                let bytes = (self.granule - self.dst % self.granule).min(self.left);
                mover.push(self.src, self.dst, bytes);
                mover.go_on(ports);
                again = true;
                self.open += 1;
                self.left -= bytes;
                self.src = self.src.wrapping_add(bytes);
                self.dst = self.dst.wrapping_add(bytes);
                if self.left == 0 {
                    self.state = State::Wait;
                }
            }
        }
        if self.state == State::Wait && self.open == 0 {
            self.state = State::Over;
            ports.wake(ports.now() + FINISH, OVER);
        }
    }
}

/// A range of so many bytes, one at least, does not wrap at 2^64.
fn fits(addr: u64, bytes: u64) -> bool {
    bytes > 0 && addr.checked_add(bytes - 1).is_some()
}

impl Engine for Copy {
    fn judge(&self, command: &EngineCommand) -> Result<Job, Status> {
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

    fn stopped(&self) -> u32 {
        result::STOPPED.mask() as u32
    }

    fn answer(&self, end: &End) -> (Status, u32) {
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

    fn start(&mut self, job: &Job, ports: &mut Ports) {
        [self.src, self.dst, self.left] = [0, 1, 2].map(|n| job.arguments[n]);
        let fine = !job.malformed
            && self.left <= self.longest
            && fits(self.src, self.left)
            && fits(self.dst, self.left);
        (self.state, self.result) = (State::Check, 0);
        if !fine {
            self.left = 0;
            self.result = result::INVALID.mask();
        }
        ports.wake(ports.now() + CHECK, BEGIN);
    }

    fn stop(&mut self, ports: &mut Ports) {
        match self.state {
            State::Check if self.left > 0 => {
                self.left = 0;
                self.result |= result::STOPPED.mask();
            }
            State::Cut => {
                self.state = State::Wait;
                self.result |= result::STOPPED.mask();
                self.go_on(ports);
            }
            _ => {}
        }
    }

    fn wake(&mut self, what: u32, ports: &mut Ports) {
        match what {
            BEGIN => {
                self.state = match self.left {
                    0 => State::Wait,
                    _ => State::Cut,
                };
                self.go_on(ports);
            }
            OVER => {
                self.state = State::Idle;
                self.ended = Some(End {
                    result: self.result as u32,
                    ..End::default()
                });
            }
            number => {
                if let Some(mover) = self.movers.get_mut(number as usize) {
                    mover.go_on(ports);
                }
            }
        }
    }

    fn read(&mut self, burst: u32, end: bool, fine: bool, ports: &mut Ports) {
        let burst = burst as usize;
        if end {
            if let Some(mover) = self.movers.get_mut(burst / BURSTS) {
                mover.arrived(burst % BURSTS, fine, ports);
            }
        }
    }

    fn written(&mut self, burst: u32, fine: bool, ports: &mut Ports) {
        let burst = burst as usize;
        if let Some(mover) = self.movers.get_mut(burst / BURSTS) {
            mover.written(burst % BURSTS, fine, ports);
        }
        self.go_on(ports);
    }

    fn ended(&mut self) -> Option<End> {
        self.ended.take()
    }
}
