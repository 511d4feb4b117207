// SPDX-License-Identifier: Apache-2.0

//! Time: single latencies of the devices may differ, but their means must agree.
//!
//! Some steps measure commands of one kind, alone or concurrently, with delays disabled and a host
//! with fixed timing. At the end of a campaign the means are compared. So exact models of time and
//! good approximations pass; a wrong model fails.
//!
//! Means are compared from 16 commands of a kind on, and from 32 concurrent ones. Permitted are
//! differences of 5 % for flushes, 10 % for urgent flushes, 8 % for reads and writes, and 11 % for
//! concurrent pages. With a memory of random latency, 6 % for writes and 35 % for reads and pages
//! are permitted. Observed with the fuzzer's design: 0.5 %, 2 %, 2 %, 7 %.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use sim::Bar;
use spec::bar4;
use spec::nvme::{admin, feature, io, Sqe};
use spec::regs::{nvm_delay, nvme::cc};

use crate::campaign::StepResult;
use crate::generate::Command;
use crate::lockstep::locks::RangeLocks;
use crate::lockstep::pair::{AllowedDifferences, LockstepPair};
use crate::random::pick;
use crate::BLOCK;
use crate::PAGE;

/// Measurements of sequential commands.
const READS: &str = "reads";
const WRITES: &str = "writes";
/// Measurements of concurrent commands.
const FLUSHES: &str = "flushes at once";
const PAGES: &str = "pages at once";
const SHARES: &str = "shares";
/// Most concurrent commands.
const CONCURRENT: u64 = 100;
/// Sequential commands measured in a step.
const SEQUENTIAL: u64 = 16;
/// Fewest measurements of a mean; concurrent commands need more.
const LEAST: u64 = 16;
const LEAST_AT_ONCE: u64 = 32;

/// Latencies of one kind of command.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Latency {
    /// Number of measurements.
    pub count: u64,
    /// Sum of each device's latencies, ns.
    #[serde(serialize_with = "<[f64]>::serialize")]
    pub ns: [f64; 2],
}

impl Latency {
    /// Adds other latencies.
    pub fn add(&mut self, other: &Latency) {
        self.count += other.count;
        for (sum, ns) in self.ns.iter_mut().zip(other.ns) {
            *sum += ns;
        }
    }
}

/// Names of flushes that share time by weights, by the priority of their queues.
const CLASSES: [&str; 4] = [
    "flushes of urgent priority",
    "flushes of high priority",
    "flushes of medium priority",
    "flushes of low priority",
];

/// Kinds of measurements, and the permitted difference of their means.
const BOUNDS: [(&str, f64); 12] = [
    (FLUSHES, 0.05),
    ("flushes at once, late memory", 0.05),
    (CLASSES[0], 0.1),
    (CLASSES[1], 0.05),
    (CLASSES[2], 0.05),
    (CLASSES[3], 0.05),
    (PAGES, 0.11),
    ("pages at once, late memory", 0.3),
    (READS, 0.08),
    ("reads, late memory", 0.35),
    (WRITES, 0.08),
    ("writes, late memory", 0.06),
];

/// A message if the means of a kind differ too much.
pub fn mean_mismatch(all: &BTreeMap<String, Latency>) -> Option<String> {
    BOUNDS.iter().find_map(|&(name, bound)| {
        let alone = name.starts_with(READS) || name.starts_with(WRITES);
        let least = if alone { LEAST } else { LEAST_AT_ONCE };
        let latency = all.get(name).filter(|latency| latency.count >= least)?;
        let [a, b] = latency.ns;
        let count = latency.count as f64;
        let far = (b / a - 1.0).abs() > bound;
        far.then(|| {
            format!(
                "{name} take {:.1} ns and {:.1} ns in the mean of {count}",
                a / count,
                b / count
            )
        })
    })
}

impl LockstepPair {
    /// A step that measures commands.
    pub fn timed(&mut self) -> StepResult {
        self.count("measurements of time");
        self.undelayed()?;
        self.set_fixed_timing(true);
        let result = match self.random.below(6) {
            0 => self.measure_at_once(FLUSHES),
            1 => self.measure_at_once(PAGES),
            2 => self.measure_alone(READS, io::READ),
            3 => self.measure_alone(WRITES, io::WRITE),
            _ if self.is_weighted() => self.shares(),
            _ => self.measure_at_once(PAGES),
        };
        self.set_fixed_timing(false);
        result
    }

    fn set_fixed_timing(&mut self, set_fixed_timing: bool) {
        let duts = self.duts.iter_mut();
        duts.for_each(|dut| dut.host.set_fixed_timing(set_fixed_timing));
    }

    /// Disables the emulated delays.
    fn undelayed(&mut self) -> StepResult {
        for channel in 0..u64::from(self.shape.channels) {
            let base = bar4::DELAY + bar4::DELAY_STEP * channel;
            for dut in &mut self.duts {
                dut.write32(Bar::Control, base + nvm_delay::CONTROL, 0);
                dut.write32(Bar::Control, base + nvm_delay::COMMAND, 1);
            }
        }
        self.wait_until_idle()
    }

    /// True if commands are fetched by weighted round robin at present.
    fn is_weighted(&self) -> bool {
        cc::AMS.get(self.state.cc.into()) == 1
    }

    /// As many flushes as fit into the queues, with separate weights.
    fn shares(&mut self) -> StepResult {
        let weights = (0..3).fold(0, |all, _| all << 8 | pick(&mut self.random, &[0, 1, 3, 7]));
        let fid = u32::from(feature::ARBITRATION);
        let set = Sqe::new(admin::SET_FEATURES).with_cdw(10, fid);
        self.run_alone(Command::plain(set.with_cdw(11, weights << 8 | 7)))?;
        self.measure_at_once(SHARES)
    }

    /// Commands of one kind, one after the other.
    fn measure_alone(&mut self, name: &str, opcode: u8) -> StepResult {
        for _ in 0..SEQUENTIAL {
            let mut queue_rooms = self.queue_rooms();
            queue_rooms.retain(|room| room.1 > 0);
            let locks = RangeLocks::default();
            let Some(command) = self.generate(0, &locks, |g| g.transfer(opcode)) else {
                continue;
            };
            if !queue_rooms.is_empty() {
                let (qid, _) = pick(&mut self.random, &queue_rooms);
                self.measure(name, vec![(qid, command)])?;
            }
        }
        Ok(())
    }

    /// As many commands as fit into the completion queues: without data, or with a read of one page
    /// each.
    fn measure_at_once(&mut self, name: &str) -> StepResult {
        let wanted = match name == SHARES {
            true => 4 * CONCURRENT,
            false => 1 + self.random.below(CONCURRENT),
        };
        let mut queue_rooms = self.queue_rooms();
        let left = &self.duts[0];
        let homes: BTreeMap<u16, u16> = left.sqs.iter().map(|(&qid, sq)| (qid, sq.cqid)).collect();
        let mut free: BTreeMap<u16, u32> = left
            .cqs
            .iter()
            .map(|(&cqid, cq)| (cqid, cq.entries - 1))
            .collect();
        let nsid = self
            .shape
            .limits
            .namespaces
            .active()
            .next()
            .map_or(1, |ns| ns.nsid);
        let mut all = Vec::new();
        for _ in 0..wanted {
            queue_rooms.retain(|(qid, room)| *room > 0 && free[&homes[qid]] > 0);
            if queue_rooms.is_empty() {
                break;
            }
            let n = self.random.below(queue_rooms.len() as u64) as usize;
            let qid = queue_rooms[n].0;
            queue_rooms[n].1 -= 1;
            if let Some(free) = free.get_mut(&homes[&qid]) {
                *free -= 1;
            }
            let command = match name == PAGES {
                true => self.page(),
                false => Some(Command::plain(Sqe::flush(nsid))),
            };
            all.extend(command.map(|command| (qid, command)));
        }
        self.measure(name, all)
    }

    /// A read of a page of the media into a page of memory.
    fn page(&mut self) -> Option<Command> {
        let active: Vec<_> = self.shape.limits.namespaces.active().copied().collect();
        let ns = pick(&mut self.random, &active);
        let blocks = PAGE / BLOCK;
        let first = ns.base.next_multiple_of(blocks);
        let pages = (ns.base + ns.blocks).checked_sub(first)? / blocks;
        let at = first + blocks * self.random.below(pages.max(1));
        if pages == 0 {
            return None;
        }
        let to = self.arena.alloc(&mut self.random)?;
        let sqe = Sqe::of_blocks(io::READ, ns.nsid, at - ns.base, blocks as u32);
        let mut command = Command::plain(sqe.with_prps(to, 0));
        command.bytes = PAGE;
        command.buffer.pages.push(to);
        command.buffer.pieces.push((0, to, PAGE));
        Some(command)
    }

    /// Runs commands, and measures their latencies from the doorbells on.
    fn measure(&mut self, name: &str, commands: Vec<(u16, Command)>) -> StepResult {
        let commands = commands.into_iter();
        let sent: Vec<_> = commands.map(|(qid, c)| self.push(qid, c)).collect();
        let queues: BTreeSet<u16> = sent.iter().map(|s| s.sqid).collect();
        let start = self.duts[0].now;
        for dut in &mut self.duts {
            dut.times.clear();
            queues.iter().for_each(|&qid| dut.ring_sq(qid));
        }
        self.run_commands(&sent, &AllowedDifferences::default())?;
        let late = if self.late { ", late memory" } else { "" };
        for s in &sent {
            let mut latency = Latency {
                count: 1,
                ns: [0.0; 2],
            };
            for (ns, dut) in latency.ns.iter_mut().zip(&self.duts) {
                let time = dut.times.get(&s.key()).copied().unwrap_or(start);
                *ns = (time - start).as_ns();
            }
            let kind = match name == SHARES {
                true => {
                    let sq = self.duts[0].sqs.get(&s.sqid);
                    CLASSES[sq.map_or(0, |sq| sq.priority as usize)].into()
                }
                false => format!("{name}{late}"),
            };
            self.report.latencies.entry(kind).or_default().add(&latency);
        }
        Ok(())
    }
}
