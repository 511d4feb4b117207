// SPDX-License-Identifier: Apache-2.0

//! One episode of a device with the engine `nearpm`. Commands run beside stores and loads of the PM
//! window, in one order. A model executes each at once. Between steps all commands have ended.
//! There the power may fail or the function be reset, which must change nothing.
//!
//! # What is generated
//!
//! 1 to 64 commands at once, in four pools of four processes, which are mapped and unmapped. They
//! are undo and redo records, checkpoints, records of several ranges, copies, switches, applies,
//! commits, aborts and recoveries. Logs have 192 bytes to 8 KiB, open and closed.
//!
//! A quarter of the commands is corrupted. They have any operation, reserved bits, absent pools and
//! threads, another process, or addresses of another pool. Ranges cross the end of a pool or of all
//! addresses, and lengths are 0, 65,537 and 2^64 - 1. They have arguments that an operation lacks,
//! maps over other pools and beyond the media, a busy line, and records that exceed a log.
//!
//! # What is checked
//!
//! The model is `crates/nearpm_model`. Each command has to end with the status and the value of the
//! model. Each load has to return the result of everything before it. At the end all pools are
//! compared, including logs. A conflict filter or a table that does not wait is found within 3,000
//! commands, and so is a power cut that loses the engine's state.
//!
//! # Left out
//!
//! - Commands whose result depends on timing: damaged records while others of their log are in
//!   flight.
//! - Power cuts during commands: `nearside crashtest`, `crates/device/tests/nearpm.rs`.
//! - NVMe commands beside those of the engine.

mod generate;

use nearpm_model::{CommandResult, Engine, Memory, Pool, Words};
use sim::{Bar, HostConfig, LinkConfig, Random, System, Time};
use spec::nearpm::{Command, Operation, ReturnValue, COMMANDS, LINE, RESERVED_BYTES};

use crate::campaign::{
    self, Campaign, Conditions, EpisodeEnd, EpisodeFailure, KeepRunning, Script, StepResult,
};
use crate::oracle::{Make, Report};
use crate::random::chance;

/// The part of the media that holds pools, from its start on.
const ARENA: u64 = 512 << 10;
/// Longest time of a command under any load.
const DEADLINE: Time = Time::ms(5);
/// Lines of history in the report of a failure.
const HISTORY: usize = 60;
/// Fields of a line of the command page.
const STATE: std::ops::Range<usize> = 0..4;

struct Bench {
    system: System,
    page: u64,
    model: Engine,
    /// The expected content of the arena.
    arena: Vec<u8>,
    random: Random,
    history: Vec<String>,
    report: Report,
}

/// A command that was written: its line, its words, its expected result.
type Sent = (usize, Words, CommandResult);

/// Runs a campaign of a number of commands: see [`campaign::run`]. The engine's command page is at
/// `page` in BAR4.
pub fn run(
    make: &mut Make,
    media_bytes: u64,
    page: u64,
    campaign: &Campaign,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Report, String> {
    campaign::run(campaign, progress, &mut |script, keep_running| {
        episode(make, media_bytes, page, script, keep_running)
    })
}

fn episode(
    make: &mut Make,
    media_bytes: u64,
    page: u64,
    script: &Script,
    keep_running: &mut KeepRunning,
) -> Result<(Report, EpisodeEnd), String> {
    let mut random = Random::new(script.seed_of(u64::MAX - 2));
    let late =
        chance(&mut random, 30).then(|| Time::ns([200, 2000, 10_000][random.below(3) as usize]));
    let device = make(&Conditions {
        late_memory: late,
        seed: random.next(),
    })?;
    let mut system = System::new(&HostConfig::default()).map_err(text)?;
    let windows = [(Bar::Pm, media_bytes), (Bar::Control, 1 << 20)];
    let added = system.add_device(device, &LinkConfig::default(), &windows);
    added.map_err(text)?;
    let mut bench = Bench {
        system,
        page,
        model: Engine::new(media_bytes - RESERVED_BYTES),
        arena: vec![0; ARENA as usize],
        random: Random::new(0),
        history: Vec::new(),
        report: Report::default(),
    };
    let mut end = EpisodeEnd::default();
    let result = bench.run_steps(script, &mut end, keep_running);
    bench.report.simulated_ns = bench.system.now().as_ns();
    let begin = bench.history.len().saturating_sub(HISTORY);
    let history = bench.history.split_off(begin);
    end.failure = result.err().map(|what| EpisodeFailure { what, history });
    Ok((bench.report, end))
}

fn text(error: sim::Error) -> String {
    error.to_string()
}

impl Bench {
    fn run_steps(
        &mut self,
        script: &Script,
        end: &mut EpisodeEnd,
        keep_running: &mut KeepRunning,
    ) -> StepResult {
        let done = |bench: &mut Bench| Ok(bench.report.commands);
        script.run_steps(self, end, keep_running, done, |bench, step, seed| {
            bench.random = Random::new(seed);
            bench.note(format!("step {step} at {}", bench.system.now()));
            bench.step()
        })?;
        if end.stopped {
            return Ok(());
        }
        for at in (0..ARENA).step_by(4096) {
            self.load(at, 4096)?;
            self.report.compared_blocks += 8;
        }
        Ok(())
    }

    fn note(&mut self, line: String) {
        self.history.push(line);
    }

    fn step(&mut self) -> StepResult {
        match self.random.below(20) {
            0 => self.lose_power(false),
            1 => self.lose_power(true),
            2 => self.busy_line(),
            3 => self.burst(COMMANDS as u64),
            _ => {
                let most = 1 + self.random.below(16);
                self.burst(most)
            }
        }
    }

    /// All commands have ended, so all data are kept.
    fn lose_power(&mut self, function: bool) -> StepResult {
        match function {
            true => {
                self.system.function_reset(0);
                self.report.function_resets += 1;
            }
            false => {
                self.system.power_off(0);
                self.system.power_on(0);
                self.report.power_cuts += 1;
            }
        }
        self.note(if function {
            "function reset".into()
        } else {
            "loss of power".into()
        });
        // The window opens after the engine has restored its state.
        self.random_load()
    }

    /// Commands, and accesses between them. All commands have ended afterwards.
    fn burst(&mut self, most: u64) -> StepResult {
        let mut sent: Vec<Sent> = Vec::new();
        for line in 0..most as usize {
            while chance(&mut self.random, 40) {
                match chance(&mut self.random, 70) {
                    true => self.random_store()?,
                    false => self.random_load()?,
                }
            }
            let words = generate::command(&mut self.random, &self.model);
            let ends = self.expect(&words);
            self.write(line, &words)?;
            sent.push((line, words, ends));
            // The content of a closed log determines the results of later commands.
            let recover = |c: Command| c.operation == Operation::Recover;
            if Command::from_words(&words).is_some_and(recover) {
                break;
            }
        }
        self.wait_for_ends(&sent)
    }

    /// A command written to a busy line is dropped.
    fn busy_line(&mut self) -> StepResult {
        let mapped = self
            .model
            .pools
            .iter()
            .flatten()
            .next()
            .map(|pool| pool.map);
        let Some(map) = mapped else {
            return self.burst(4);
        };
        let own = |operation| Command::new(operation, map.process, map.pool, 0);
        let long = Command {
            address: map.address,
            bytes: map.transaction / 2,
            target: map.address + map.transaction / 2,
            ..own(Operation::Copy)
        };
        let dropped = Command {
            target: map.address,
            value: self.random.next(),
            ..own(Operation::Switch)
        };
        let words = long.words();
        let ends = self.expect(&words);
        self.write(0, &words)?;
        self.note("to be dropped:".into());
        self.write(0, &dropped.words())?;
        self.report.count("commands for a busy line");
        self.wait_for_ends(&[(0, words, ends)])?;
        self.load(map.target, 64)
    }

    /// Executes a command in the model; returns the expected result.
    fn expect(&mut self, words: &Words) -> CommandResult {
        let ends = self.model.execute(&mut self.arena[..], words);
        let name = Command::from_words(words).map(|c| format!("{:?}", c.operation));
        let name = name.unwrap_or_else(|| "unknown".into());
        let status = match ends {
            Ok(_) => "ok".to_string(),
            Err(refusal) => format!("{refusal:?}"),
        };
        let key = format!("nearpm {name} {status}");
        *self.report.outcomes.entry(key).or_default() += 1;
        self.report.commands += 1;
        self.report.completed += 1;
        ends
    }

    fn write(&mut self, line: usize, words: &Words) -> StepResult {
        let mut bytes = [0; LINE as usize];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        match Command::from_words(words) {
            Some(c) => self.note(format!("line {line}: {c:x?}")),
            None => self.note(format!("line {line}: {words:x?}")),
        }
        let at = self.page + LINE * line as u64;
        self.system
            .mmio_write(0, Bar::Control, at, &bytes)
            .map_err(text)
    }

    /// Waits for the ends of commands, and checks their results.
    fn wait_for_ends(&mut self, sent: &[Sent]) -> StepResult {
        let limit = self.system.now() + DEADLINE;
        for (line, words, ends) in sent {
            let found = loop {
                let at = self.page + LINE * *line as u64;
                let bytes = self.system.mmio_read(0, Bar::Control, at, LINE as usize);
                let bytes = bytes.map_err(text)?;
                let word = |n: usize| {
                    let word = bytes[4 * n..4 * n + 4].try_into();
                    word.map_or(0, u32::from_le_bytes)
                };
                match bytes[STATE][0] {
                    2 => break (word(1), u64::from(word(3)) << 32 | u64::from(word(2))),
                    1 if self.system.now() < limit => {}
                    1 => {
                        return Err(format!(
                            "hung: line {line} is busy for {DEADLINE}: {words:x?}"
                        ))
                    }
                    state => {
                        return Err(format!(
                            "line {line} lost its command: its state is {state}"
                        ))
                    }
                }
                let later = self.system.now() + Time::ns(500);
                self.system.advance_until(later).map_err(text)?;
            };
            let (result, value) = match ends {
                Ok(value) => (ReturnValue(0), *value),
                Err(refusal) => (ReturnValue::from(*refusal), 0),
            };
            if found != (result.0, value) {
                return Err(format!(
                    "line {line} ends with {} and {:#x}, not {result} and {value:#x}: \
                         {words:x?}",
                    ReturnValue(found.0),
                    found.1
                ));
            }
        }
        self.random_load()
    }

    /// A random range of the arena, occasionally across lines, never across pages.
    fn random_range(&mut self) -> (u64, u64) {
        let len = match chance(&mut self.random, 60) {
            true => 1 + self.random.below(64),
            false => 1 + self.random.below(300),
        };
        // Mostly where objects of pools overlap.
        let pools: Vec<u64> = self
            .model
            .pools
            .iter()
            .flatten()
            .map(|p| p.map.target)
            .collect();
        let base = match pools.len() {
            0 => 0,
            n => pools[self.random.below(n as u64) as usize],
        };
        let at = match chance(&mut self.random, 80) {
            true => base + self.random.below(1024),
            false => self.random.below(ARENA),
        };
        (at, len.min(4096 - at % 4096))
    }

    fn random_store(&mut self) -> StepResult {
        let (at, len) = self.random_range();
        // The content of logs belongs to the engine.
        let in_logs = |pool: &Pool| {
            let logs = pool.map.target + pool.map.transaction;
            at < pool.map.target + pool.map.bytes && at + len > logs
        };
        if self.model.pools.iter().flatten().any(in_logs) {
            return Ok(());
        }
        let data: Vec<u8> = (0..len).map(|_| self.random.next() as u8).collect();
        self.note(format!("store of {len} bytes at {at:#x}"));
        self.report.count("PM window stores");
        self.arena.write(at, &data);
        self.system.mmio_write(0, Bar::Pm, at, &data).map_err(text)
    }

    fn random_load(&mut self) -> StepResult {
        let (at, len) = self.random_range();
        self.report.count("PM window loads");
        self.load(at, len)
    }

    /// A load returns the result of all earlier commands and stores.
    fn load(&mut self, at: u64, len: u64) -> StepResult {
        let found = self
            .system
            .mmio_read(0, Bar::Pm, at, len as usize)
            .map_err(text)?;
        let wanted = self.arena.read(at, len);
        match found.iter().zip(&wanted).position(|(a, b)| a != b) {
            None => Ok(()),
            Some(n) => Err(format!(
                "a load of {len} bytes at {at:#x} finds {:02x?}... from byte {n} on, \
                 not {:02x?}...",
                &found[n..found.len().min(n + 8)],
                &wanted[n..wanted.len().min(n + 8)]
            )),
        }
    }
}
