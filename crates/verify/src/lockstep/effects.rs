// SPDX-License-Identifier: Apache-2.0

//! Effects of commands on the media, and locks on blocks that keep them determined: commands of a
//! step use separate blocks, or blocks that may hold either content.

use std::ops::Range;

use nvme::{dataset, Namespace, Namespaces};
use sim::Random;
use spec::nvme::{admin, io, Sqe, ALL_NAMESPACES};

use crate::commands::{BLOCKS, COMMANDS, SHUFFLE, SORT, TABLES};
use crate::generate::{Command, Generator, Policy, Surroundings};
use crate::lockstep::engines::{around, laid, scanned};
use crate::lockstep::memory::Arena;
use crate::lockstep::pair::LockstepPair;
use crate::lockstep::tables::{unknown, Column, Rows, Sort};
use crate::oracle::engines::{self, Transform};
use crate::oracle::model::MediaUse;
use crate::oracle::tables;
use crate::BLOCK;

/// Attempts to generate a command whose blocks are unlocked.
const TRIES: u32 = 4;
/// Content of blocks beyond the media.
const ZEROS: [u8; BLOCK as usize] = [0; BLOCK as usize];

/// Blocks and their content; empty where it is unknown.
pub type Blocks = Vec<(u64, Vec<u8>)>;

/// The effect of a command that succeeds.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Blocks of the media that it reads.
    pub reads: Vec<Range<u64>>,
    /// Blocks of the media that it may write, and their content afterwards.
    pub writes: Blocks,
    /// If it fails, its blocks may be written in part.
    pub torn: bool,
}

/// A command and its effect.
#[derive(Clone, Debug)]
pub struct PlannedCommand {
    /// The command.
    pub command: Command,
    /// Its effect.
    pub effects: Effects,
}

/// Blocks from `first` on, and their content.
fn blocks_of(first: u64, data: &[u8]) -> Blocks {
    let contents = data.chunks(BLOCK as usize).map(<[u8]>::to_vec);
    (first..).zip(contents).collect()
}

fn zeros(blocks: Range<u64>) -> Blocks {
    blocks.map(|block| (block, ZEROS.to_vec())).collect()
}

/// Merges ranges that meet.
fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut out: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}

impl Effects {
    /// The effect of a command that the controller accepts, on the present content of the media.
    pub fn of(sqid: u16, command: &Command, media: &[u8], namespaces: &Namespaces) -> Effects {
        let mut effects = Effects::default();
        let nsid = command.sqe.nsid();
        if sqid == 0 {
            if command.sqe.opcode() == admin::FORMAT_NVM {
                let all = namespaces.active();
                let formatted = all.filter(|ns| nsid == ALL_NAMESPACES || ns.nsid == nsid);
                let blocks = formatted.map(|ns| zeros(ns.base..ns.base + ns.blocks));
                effects.writes = blocks.flatten().collect();
            }
            return effects;
        }
        if let Some(ns) = namespaces.get(nsid).filter(|ns| ns.is_active()) {
            effects.of_io(command, media, &ns);
        }
        if command.is_odd() {
            // It writes other data than it was generated for.
            effects.writes.iter_mut().for_each(|write| write.1.clear());
        }
        effects
    }

    fn of_io(&mut self, command: &Command, media: &[u8], ns: &Namespace) {
        let sqe = &command.sqe;
        let (lba, count) = (sqe.slba(), u64::from(sqe.blocks()));
        let blocks = |lba: u64, count: u64| {
            let first = ns.base.wrapping_add(lba);
            ns.holds(lba, count).then(|| first..first + count)
        };
        match sqe.opcode() {
            io::READ | io::VERIFY | io::COMPARE => self.reads.extend(blocks(lba, count)),
            io::WRITE => {
                if let Some(blocks) = blocks(lba, count) {
                    self.writes = blocks_of(blocks.start, &command.data);
                }
            }
            io::WRITE_ZEROES => self.writes = blocks(lba, count).map(zeros).unwrap_or_default(),
            io::DATASET_MANAGEMENT if dataset::deallocates(sqe) => {
                let list = command.data.chunks_exact(dataset::RANGE);
                let ranges = list.filter_map(|bytes| {
                    let range = dataset::Range::from_bytes(bytes.try_into().ok()?);
                    blocks(range.lba, range.blocks.into())
                });
                let ranges = merged(ranges.collect());
                self.writes = ranges.into_iter().flat_map(zeros).collect();
            }
            opcode if BLOCKS.contains(&opcode) => self.of_blocks_engine(sqe, media, ns),
            opcode if TABLES.contains(&opcode) => self.of_table_engine(sqe, media, ns),
            _ => {}
        }
    }

    /// A command of the engines that copy and scan.
    fn of_blocks_engine(&mut self, sqe: &Sqe, media: &[u8], ns: &Namespace) {
        self.torn = true;
        match engines::expectation(sqe, ns).media {
            MediaUse::Count(first, count, _) => self.reads.push(first..first + count),
            MediaUse::Derive(output) => {
                let blocks = output.from..output.from + output.count;
                let source = held(media, output.from * BLOCK, output.count * BLOCK);
                let bits = match &output.how {
                    Transform::Copy => source.to_vec(),
                    Transform::Bitmap(bounds) => scanned(bounds, source).1,
                };
                self.writes = laid(media, output.to * BLOCK, &bits);
                self.reads.push(blocks);
            }
            _ => {}
        }
    }

    /// A command of the engines of tables.
    fn of_table_engine(&mut self, sqe: &Sqe, media: &[u8], ns: &Namespace) {
        self.torn = true;
        let MediaUse::WriteUnknown(written) = tables::expectation(sqe, ns).media else {
            return;
        };
        let parts = tables::parts(sqe).map(|part| {
            let from = ns.base * BLOCK + part.from;
            (from..from + part.bytes, part.written)
        });
        let reads = parts.iter().filter(|part| !part.1 && !part.0.is_empty());
        self.reads.extend(reads.map(|part| around(&part.0)));
        let content = |n: usize| held(media, parts[n].0.start, parts[n].0.end - parts[n].0.start);
        let dw = |n: usize| u64::from(sqe.dw[n]);
        let (target, made) = match sqe.opcode() {
            SORT => {
                let (count, kind) = (dw(13), dw(14));
                let job = Sort { kind, count };
                (1, (job.passes() == 1).then(|| job.made(content(0))))
            }
            SHUFFLE => {
                let job = Rows {
                    kind: dw(15) >> 24 & 3,
                    count: dw(13),
                    row: dw(15) & 0x1_FFFF,
                    rows: dw(14),
                };
                let mut made = job.made(content(0), content(1));
                // Unwritten bytes stay.
                made.extend_from_slice(&content(2)[made.len()..]);
                (2, Some(made))
            }
            _ => {
                let kind = dw(15) >> 16;
                let job = Column {
                    kind: kind & 63 | (kind >> 8 & 3) << 8 | (kind >> 10 & 3) << 16,
                    entries: (dw(15) & 0xFFFF) + 1,
                    count: dw(13),
                };
                let (made, ends) = job.made(content(0), content(1));
                (
                    2,
                    Some(if ends.0 == 0 {
                        made
                    } else {
                        content(2).to_vec()
                    }),
                )
            }
        };
        for (from, bytes) in written {
            let known = made.as_ref().filter(|_| from == parts[target].0.start);
            self.writes.extend(match known {
                Some(made) => laid(media, from, made),
                None => unknown(from..from + bytes),
            });
        }
    }

    /// True if it may write one of these blocks.
    pub fn writes_in(&self, ranges: &[Range<u64>]) -> bool {
        let mut writes = self.writes.iter();
        writes.any(|(block, _)| ranges.iter().any(|range| range.contains(block)))
    }
}

/// Bytes of the media.
pub fn held(media: &[u8], at: u64, bytes: u64) -> &[u8] {
    &media[at as usize..(at + bytes) as usize]
}

/// Locks on block ranges that commands of the same step use.
#[derive(Clone, Debug, Default)]
pub struct RangeLocks {
    /// Ranges that are read, and ranges that are written.
    used: [Vec<Range<u64>>; 2],
    /// Exclusive ranges of engines: reads, writes.
    exclusive: [Vec<Range<u64>>; 2],
    /// Ranges may overlap, except with exclusive ones.
    pub shared: bool,
}

fn overlap(all: &[Range<u64>], one: &Range<u64>) -> bool {
    all.iter().any(|r| r.start < one.end && one.start < r.end)
}

impl RangeLocks {
    /// No locks yet. Ranges that are `shared` may overlap, except with exclusive ones.
    pub fn new(shared: bool) -> RangeLocks {
        RangeLocks {
            shared,
            ..RangeLocks::default()
        }
    }

    /// True if a range conflicts with those of other commands.
    fn is_locked(&self, blocks: &Range<u64>, write: bool, exclusive: bool) -> bool {
        let meets = |[reads, writes]: &[Vec<Range<u64>>; 2]| {
            overlap(writes, blocks) || write && overlap(reads, blocks)
        };
        meets(&self.exclusive) || (exclusive || !self.shared) && meets(&self.used)
    }

    fn lock(&mut self, blocks: Range<u64>, write: bool, exclusive: bool) {
        if exclusive {
            self.exclusive[usize::from(write)].push(blocks.clone());
        }
        self.used[usize::from(write)].push(blocks);
    }

    /// Locks a range against all later commands, even if ranges may overlap otherwise. False if
    /// another command conflicts with it.
    pub fn lock_exclusive(&mut self, blocks: Range<u64>, write: bool) -> bool {
        let free = !self.is_locked(&blocks, write, true);
        if free {
            self.lock(blocks, write, true);
        }
        free
    }

    /// Locks the blocks of a command. False if another command conflicts with it.
    fn lock_command(&mut self, planned: &PlannedCommand) -> bool {
        // Blocks that engines and other commands write at the same time are not atomic.
        let exclusive = COMMANDS.contains(&planned.command.sqe.opcode());
        let effects = &planned.effects;
        let writes = effects.writes.iter().map(|(block, _)| *block..block + 1);
        let all = [effects.reads.clone(), merged(writes.collect())];
        let writes = all[1].iter().map(|range| (range, true));
        let ranges: Vec<_> = all[0]
            .iter()
            .map(|range| (range, false))
            .chain(writes)
            .collect();
        if ranges
            .iter()
            .any(|(range, write)| self.is_locked(range, *write, exclusive))
        {
            return false;
        }
        for (range, write) in ranges {
            self.lock(range.clone(), write, exclusive);
        }
        true
    }
}

/// The hosts of a step, as generators see them.
struct StepHost<'a> {
    arena: &'a mut Arena,
    media: &'a [u8],
    locks: &'a RangeLocks,
}

impl Surroundings for StepHost<'_> {
    fn has_room(&self, _pages: u64) -> bool {
        true
    }

    fn alloc(&mut self, random: &mut Random, pages: u64) -> Option<u64> {
        self.arena.alloc_run(random, pages)
    }

    fn alloc_queue(&mut self, random: &mut Random) -> Option<u64> {
        self.arena.alloc(random)
    }

    fn content(&self, block: u64) -> &[u8] {
        let at = usize::try_from(block)
            .ok()
            .and_then(|n| n.checked_mul(BLOCK as usize));
        let content = at.and_then(|at| self.media.get(at..at.checked_add(BLOCK as usize)?));
        content.unwrap_or(&ZEROS)
    }

    fn in_use(&self, blocks: Range<u64>) -> bool {
        self.locks.is_locked(&blocks, true, false)
    }
}

impl LockstepPair {
    /// Generates input with one result. `wrong` is the share of errors.
    pub fn generate<T>(
        &mut self,
        wrong: u64,
        locks: &RangeLocks,
        generate: impl FnOnce(&mut Generator) -> T,
    ) -> T {
        let mut host = StepHost {
            arena: &mut self.arena,
            media: &self.media,
            locks,
        };
        let policy = Policy::Determined { wrong };
        let limits = &self.shape.limits;
        generate(&mut Generator::new(
            &mut self.random,
            &mut host,
            limits,
            policy,
        ))
    }

    /// A command with its effect on the present media.
    pub fn plan(&self, sqid: u16, command: Command) -> PlannedCommand {
        let effects = Effects::of(sqid, &command, &self.media, &self.shape.limits.namespaces);
        PlannedCommand { command, effects }
    }

    /// Generates an I/O command that conflicts with no other one; `None` if a few attempts make
    /// none.
    pub fn generate_io(&mut self, wrong: u64, locks: &mut RangeLocks) -> Option<PlannedCommand> {
        (0..TRIES).find_map(|_| {
            let command = self.generate(wrong, locks, |g| g.io())?;
            let planned = self.plan(1, command);
            locks.lock_command(&planned).then_some(planned)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::commands::{COPY, COUNT, FILTER};
    use crate::generate::Limits;

    /// Blocks of each of two namespaces: few, so that commands overlap.
    const BLOCKS: u64 = 512;

    fn is_engines(planned: &PlannedCommand) -> bool {
        COMMANDS.contains(&planned.command.sqe.opcode())
    }

    /// Blocks that engines and other commands write at the same time are not atomic. So no other
    /// command uses blocks of an engine's command, not even a command with a wrong namespace, whose
    /// effect moves there.
    #[test]
    #[ignore = "takes seconds"]
    fn engine_blocks_are_used_by_no_other_command() {
        let limits = Limits {
            queues: 4,
            entries: 64,
            transfer: 1 << 20,
            events: 4,
            namespaces: Arc::new(Namespaces::new(&[BLOCKS, BLOCKS])),
            engines: vec![COPY, COUNT, FILTER],
        };
        let media = vec![0; (2 * BLOCKS * BLOCK) as usize];
        let mut arena = Arena::new();
        let mut random = Random::new(1);
        let mut engines = 0;
        for round in 0..3000 {
            arena.end_step();
            let mut locks = RangeLocks::new(round % 2 == 0);
            let mut commands = Vec::new();
            for _ in 0..12 {
                let mut host = StepHost {
                    arena: &mut arena,
                    media: &media,
                    locks: &locks,
                };
                let policy = Policy::Determined { wrong: 100 };
                let command = Generator::new(&mut random, &mut host, &limits, policy).io();
                let Some(command) = command else { continue };
                let effects = Effects::of(1, &command, &media, &limits.namespaces);
                let planned = PlannedCommand { command, effects };
                if locks.lock_command(&planned) {
                    commands.push(planned);
                }
            }
            for (n, engine) in commands.iter().enumerate().filter(|(_, c)| is_engines(c)) {
                engines += u64::from(!engine.effects.writes.is_empty());
                for (_, other) in commands.iter().enumerate().filter(|(m, _)| *m != n) {
                    let writes = engine.effects.writes.iter().map(|(b, _)| *b..*b + 1);
                    let writes: Vec<_> = writes.collect();
                    let met = engine.effects.writes_in(&other.effects.reads)
                        || other.effects.writes_in(&writes)
                        || other.effects.writes_in(&engine.effects.reads);
                    let dw = |planned: &PlannedCommand| planned.command.sqe.dw;
                    assert!(!met, "{:08x?} beside {:08x?}", dw(engine), dw(other));
                }
            }
        }
        assert!(engines > 100, "{engines}");
    }
}
