// SPDX-License-Identifier: Apache-2.0

//! A fake device: persistent memory, and the reference model of the crash-consistency engine. Each
//! access and command is executed, and persistent, at once and in order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use nearpm_model::{Engine, Memory};
use sim::{Bar, Counter, Device, Fault, HostPort, Mmio, Time};
use spec::nearpm::{ReturnValue, COMMANDS, LINE};

pub type Image = Arc<Mutex<Vec<u8>>>;

/// All changes of the memory: time, place, and new bytes. A load is a change of no bytes: it comes
/// after all stores before it.
pub type Journal = Arc<Mutex<Option<Vec<(Time, u64, Vec<u8>)>>>>;

/// What survives a power loss, besides the engine.
struct PersistentMemory {
    image: Image,
    journal: Journal,
    now: Time,
}

impl Memory for PersistentMemory {
    fn read(&self, at: u64, bytes: u64) -> Vec<u8> {
        self.image.lock().unwrap().read(at, bytes)
    }

    fn write(&mut self, at: u64, data: &[u8]) {
        self.image.lock().unwrap().write(at, data);
        if let Some(journal) = self.journal.lock().unwrap().as_mut() {
            journal.push((self.now, at, data.to_vec()));
        }
    }
}

/// The content of a line of the command page.
#[derive(Clone, Copy, Default)]
struct CommandLine {
    done: Option<Time>,
    result: u32,
    value: u64,
}

pub struct FakeDevice {
    now: Time,
    pub image: Image,
    pub journal: Journal,
    engine: Engine,
    memory: PersistentMemory,
    lines: [CommandLine; COMMANDS],
    latency: Time,
    powered: bool,
    answers: VecDeque<(Time, u32, Vec<u8>)>,
}

/// How long the host can't reuse a line after its command.
const BUSY: Time = Time::ns(1000);

impl FakeDevice {
    pub fn new(bytes: Vec<u8>, latency: Time) -> FakeDevice {
        let engine = Engine::new(bytes.len() as u64);
        let image = Arc::new(Mutex::new(bytes));
        let journal = Journal::default();
        FakeDevice {
            now: Time::ZERO,
            engine,
            memory: PersistentMemory {
                image: image.clone(),
                journal: journal.clone(),
                now: Time::ZERO,
            },
            image,
            journal,
            lines: [CommandLine::default(); COMMANDS],
            latency,
            powered: true,
            answers: VecDeque::new(),
        }
    }

    fn command(&mut self, offset: u64, data: &[u8]) {
        let n = ((offset - super::PAGE) / LINE) as usize;
        assert_eq!((offset % LINE, data.len()), (0, 64), "one store a command");
        let line = self.lines[n];
        assert!(
            line.done.is_none_or(|at| at <= self.now),
            "line {n} is busy"
        );
        let long = |n: usize| u64::from_le_bytes(data[8 * n..8 * n + 8].try_into().unwrap());
        let words = std::array::from_fn(long);
        let (result, value) = match self.engine.execute(&mut self.memory, &words) {
            Ok(value) => (0, value),
            Err(refusal) => (ReturnValue::from(refusal).0, 0),
        };
        self.lines[n] = CommandLine {
            done: Some(self.now + BUSY),
            result,
            value,
        };
    }

    fn status(&self, offset: u64) -> Vec<u8> {
        let line = self.lines[((offset - super::PAGE) / LINE) as usize];
        let mut out = vec![0; LINE as usize];
        let state: u32 = match line.done {
            None => 0,
            Some(at) if at <= self.now => 2,
            Some(_) => 1,
        };
        out[..4].copy_from_slice(&state.to_le_bytes());
        if state == 2 {
            out[4..8].copy_from_slice(&line.result.to_le_bytes());
            out[8..16].copy_from_slice(&line.value.to_le_bytes());
        }
        out
    }

    fn take(&mut self, mmio: Mmio) {
        self.memory.now = self.now;
        match mmio {
            Mmio::Write { .. } if !self.powered => {}
            Mmio::Write {
                bar: Bar::Control,
                offset,
                data,
            } => self.command(offset, &data),
            Mmio::Write { offset, data, .. } => {
                let bytes = data.len() as u64;
                self.engine.before_store(&mut self.memory, offset, bytes);
                self.memory.write(offset, &data);
            }
            Mmio::Read {
                bar,
                offset,
                len,
                tag,
            } => {
                let data = match bar {
                    Bar::Control => {
                        let line = offset - offset % LINE;
                        let at = (offset - line) as usize;
                        self.status(line)[at..at + len as usize].to_vec()
                    }
                    _ => self.memory.read(offset, len.into()),
                };
                if let Some(journal) = self.journal.lock().unwrap().as_mut() {
                    journal.push((self.now, 0, Vec::new()));
                }
                self.answers.push_back((self.now + self.latency, tag, data));
            }
        }
    }
}

impl Device for FakeDevice {
    fn now(&self) -> Time {
        self.now
    }

    fn advance(&mut self, until: Time, host: &mut dyn HostPort) -> Result<(), Fault> {
        loop {
            let arrival = host.next_mmio().map(|t| t.max(self.now));
            let answer = self.answers.front().map(|a| a.0);
            let next = [arrival, answer].into_iter().flatten().min();
            let Some(at) = next.filter(|&at| at <= until) else {
                break;
            };
            self.now = self.now.max(at);
            if answer.is_some_and(|due| due <= self.now) {
                if let Some((_, tag, data)) = self.answers.pop_front() {
                    host.mmio_data(self.now, tag, self.powered.then_some(data));
                }
                continue;
            }
            if let Some(mmio) = host.mmio(self.now) {
                self.take(mmio);
            }
        }
        self.now = self.now.max(until);
        Ok(())
    }

    fn idle(&self) -> bool {
        self.answers.is_empty()
    }

    fn power_off(&mut self) {
        self.powered = false;
        self.answers.clear();
        // Pools, logs and the memory stay.
        self.lines = [CommandLine::default(); COMMANDS];
    }

    fn power_on(&mut self) {
        self.powered = true;
    }

    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }
}
