// SPDX-License-Identifier: Apache-2.0

//! Random commands: valid ones, and commands with one error.

use std::ops::Range;

use crate::commands::{Bounds, COPY, COUNT, PIPELINE, SHUFFLE, SORT, TABLES};
use crate::generate::reserved::{randomise_reserved, Set};
use nvme::feature::BEHAVIOR_BYTES;
use nvme::{Namespace, Namespaces};
use sim::Random;
use spec::nvme::{admin, feature, io, Sqe, ALL_NAMESPACES};

use crate::lockstep::buffer::{prps, sgl, Buffer};
use crate::lockstep::engines::{bound, laid, scanned, unit_of};
use crate::lockstep::lists;
use crate::lockstep::memory::Arena;
use crate::lockstep::tables::{random_count, Column, Rows, Sort};
use crate::lockstep::MOST_MEDIA;
use crate::random::{bytes, chance, pick};
use crate::BLOCK;
use crate::PAGE;

/// Blocks and their content.
pub type Blocks = Vec<(u64, Vec<u8>)>;

/// Percentage of I/O commands for engines.
const ENGINES: u64 = 10;
/// Blocks of the largest transfer.
const MOST: u64 = (1 << 20) / BLOCK;

/// A command to submit.
#[derive(Clone, Debug)]
pub struct Command {
    /// Its entry, without an identifier.
    pub sqe: Sqe,
    /// Its memory.
    pub buffer: Buffer,
    /// Bytes that it moves.
    pub bytes: u64,
    /// It moves them to the host.
    pub to_host: bool,
    /// Blocks of the media that it reads.
    pub reads: Range<u64>,
    /// Blocks of the media that it may write, and their content afterwards.
    pub writes: Vec<(u64, Vec<u8>)>,
    /// If it fails, its blocks may be written in part.
    pub torn: bool,
}

impl Command {
    fn new(sqe: Sqe) -> Command {
        Command {
            sqe,
            buffer: Buffer::default(),
            bytes: 0,
            to_host: false,
            reads: 0..0,
            writes: Vec::new(),
            torn: false,
        }
    }

    /// A command without data.
    pub fn plain(sqe: Sqe) -> Command {
        Command::new(sqe)
    }

    /// True if its data differ from the generated data: a page occurs twice, or a descriptor has
    /// another length.
    pub fn is_odd(&self) -> bool {
        self.buffer.twice || self.buffer.corrupted && self.sqe.psdt() != 0
    }

    /// True if it may write one of these blocks.
    pub fn writes_in(&self, blocks: &Range<u64>) -> bool {
        self.writes.iter().any(|(block, _)| blocks.contains(block))
    }
}

/// Generator of commands.
pub struct Generator<'a> {
    /// Source of random numbers.
    pub random: &'a mut Random,
    /// Allocator of host pages.
    pub arena: &'a mut Arena,
    /// Content of the media.
    pub media: &'a [u8],
    /// Namespaces.
    pub namespaces: &'a Namespaces,
    /// Opcodes of the engines.
    pub opcodes: Vec<u8>,
    /// Percentage of commands with an error.
    pub wrong: u64,
}

/// Locks on block ranges that commands of the same step use.
#[derive(Clone, Debug, Default)]
pub struct RangeLocks {
    /// Ranges that are read.
    pub reads: Vec<Range<u64>>,
    /// Ranges that are written.
    pub writes: Vec<Range<u64>>,
    /// Ranges may overlap, except with exclusive ones.
    pub shared: bool,
    /// Exclusive ranges of engines: reads, writes.
    pub exclusive: [Vec<Range<u64>>; 2],
}

fn overlap(all: &[Range<u64>], one: &Range<u64>) -> bool {
    all.iter().any(|r| r.start < one.end && one.start < r.end)
}

impl RangeLocks {
    /// Locks a range; true if no other command conflicts with it.
    fn lock(&mut self, blocks: Range<u64>, write: bool) -> bool {
        let busy = overlap(&self.writes, &blocks) || write && overlap(&self.reads, &blocks);
        let [read, written] = &self.exclusive;
        let closed = overlap(written, &blocks) || write && overlap(read, &blocks);
        if busy && !self.shared || closed {
            return false;
        }
        match write {
            true => self.writes.push(blocks),
            false => self.reads.push(blocks),
        }
        true
    }

    /// Locks a range against all later commands, even if ranges may overlap otherwise.
    pub fn lock_exclusive(&mut self, blocks: Range<u64>, write: bool) -> bool {
        let shared = std::mem::replace(&mut self.shared, false);
        let taken = self.lock(blocks.clone(), write);
        self.shared = shared;
        if taken {
            self.exclusive[usize::from(write)].push(blocks);
        }
        taken
    }
}

impl Generator<'_> {
    fn chance(&mut self, percent: u64) -> bool {
        chance(self.random, percent)
    }

    fn namespace(&mut self) -> Namespace {
        let active: Vec<Namespace> = self.namespaces.active().copied().collect();
        pick(self.random, &active)
    }

    /// The namespace identifier `right`, or another one if the command is to be wrong.
    fn nsid(&mut self, right: u32) -> u32 {
        let wrong = self.wrong / 4;
        if !self.chance(wrong) {
            return right;
        }
        let count = self.namespaces.count();
        match self.random.below(4) {
            0 => 1 + self.random.below(count.into()) as u32,
            _ => pick(
                self.random,
                &[0, count + 1, 3, ALL_NAMESPACES, ALL_NAMESPACES - 1, 1 << 31],
            ),
        }
    }

    fn count(&mut self, most: u64) -> u64 {
        let n = match self.random.below(100) {
            0..=69 => 1 + self.random.below(8),
            70..=91 => 1 + self.random.below(32),
            92..=97 => 1 + self.random.below(256),
            _ => 1 + self.random.below(MOST),
        };
        n.min(most)
    }

    fn held(&self, block: u64, count: u64) -> Vec<u8> {
        let range = (block * BLOCK) as usize..((block + count) * BLOCK) as usize;
        self.media.get(range).unwrap_or_default().to_vec()
    }

    /// The first block of a range in the namespace, without conflicts.
    fn first_block(
        &mut self,
        ns: &Namespace,
        count: u64,
        write: bool,
        locks: &mut RangeLocks,
    ) -> Option<u64> {
        for _ in 0..12 {
            let most = ns.blocks - count + 1;
            let lba = match self.random.below(10) {
                0..=3 => self.random.below(most.min(48)),
                4 => most - 1,
                _ => self.random.below(most),
            };
            let first = ns.base + lba;
            if locks.lock(first..first + count, write) {
                return Some(lba);
            }
        }
        None
    }

    /// Gives a command memory. `sgls` permits an SGL.
    fn with_data(&mut self, mut command: Command, sgls: bool, corrupt: u64) -> Option<Command> {
        let (sqe, bytes) = (command.sqe, command.bytes);
        let (sqe, buffer) = match sgls && chance(self.random, 40) {
            true => sgl(
                self.random,
                self.arena,
                sqe,
                bytes,
                command.to_host,
                corrupt,
            )?,
            false => prps(self.random, self.arena, sqe, bytes, corrupt)?,
        };
        (command.sqe, command.buffer) = (sqe, buffer);
        Some(command)
    }

    /// An I/O command.
    pub fn io(&mut self, locks: &mut RangeLocks) -> Option<Command> {
        let engine = !self.opcodes.is_empty() && self.chance(ENGINES);
        let mut command = match self.random.below(100) {
            _ if engine => self.engine(locks)?,
            0..=29 => self.transfer(io::READ, locks)?,
            30..=61 => self.transfer(io::WRITE, locks)?,
            62..=71 => self.transfer(io::COMPARE, locks)?,
            72..=79 => self.transfer(io::WRITE_ZEROES, locks)?,
            80..=84 => self.transfer(io::VERIFY, locks)?,
            85..=91 => self.deallocation(locks)?,
            92..=94 => {
                let right = if chance(self.random, 20) {
                    ALL_NAMESPACES
                } else {
                    self.namespace().nsid
                };
                Command::new(Sqe::flush(self.nsid(right)))
            }
            _ if self.chance(self.wrong.min(12) * 8) => self.unsupported_command()?,
            _ => self.transfer(io::READ, locks)?,
        };
        if self.chance(self.wrong / 6) {
            command.sqe.dw[0] |= if self.chance(50) { 3 << 8 } else { 3 << 14 };
            command.writes.clear();
        }
        randomise_reserved(self.random, Set::Nvm, &mut command.sqe);
        Some(command)
    }

    /// A command with an unsupported opcode, or with blocks beyond every namespace.
    fn unsupported_command(&mut self) -> Option<Command> {
        let ns = self.namespace();
        let known = [
            io::FLUSH,
            io::WRITE,
            io::READ,
            io::COMPARE,
            io::WRITE_ZEROES,
            io::DATASET_MANAGEMENT,
            io::VERIFY,
        ];
        if self.chance(40) {
            let opcode = self.random.next() as u8;
            let opcode = if known.contains(&opcode) || self.opcodes.contains(&opcode) {
                0x77
            } else {
                opcode
            };
            return Some(Command::new(Sqe::of_blocks(opcode, ns.nsid, 0, 1)));
        }
        let opcode = pick(
            self.random,
            &[
                io::READ,
                io::WRITE,
                io::COMPARE,
                io::WRITE_ZEROES,
                io::VERIFY,
            ],
        );
        let count = self.count(ns.blocks);
        let (lba, count) = match self.random.below(5) {
            0 => (ns.blocks - count + 1, count),
            1 => (self.random.next(), count),
            2 => (u64::MAX - self.random.below(4), count),
            3 => (0, 65536),
            _ => (0, (MOST + 1).max(ns.blocks + 1).min(65536)),
        };
        let mut command = Command::new(Sqe::of_blocks(opcode, ns.nsid, lba, count as u32));
        command.bytes = 4096;
        self.with_data(command, true, 0)
    }

    /// A command that moves, compares or zeroes blocks.
    pub fn transfer(&mut self, opcode: u8, locks: &mut RangeLocks) -> Option<Command> {
        let ns = self.namespace();
        let moves = matches!(opcode, io::READ | io::WRITE | io::COMPARE);
        let mut count = self.count(ns.blocks);
        if !moves && self.chance(10) {
            count = 1 + self.random.below(ns.blocks);
        }
        let write = matches!(opcode, io::WRITE | io::WRITE_ZEROES);
        let lba = self.first_block(&ns, count, write, locks)?;
        let first = ns.base + lba;
        let nsid = self.nsid(ns.nsid);
        let mut command = Command::new(Sqe::of_blocks(opcode, nsid, lba, count as u32));
        let right = nsid == ns.nsid;
        command.to_host = opcode == io::READ;
        if !write {
            command.reads = first..first + count;
        }
        if moves {
            command.bytes = count * BLOCK;
            // In another namespace a comparison finds other data; a second error is not added.
            let corrupt = if right { self.wrong } else { 0 };
            command = self.with_data(command, true, corrupt)?;
        }
        match opcode {
            io::WRITE => {
                let data = bytes(self.random, command.bytes);
                command.buffer.fill(&data);
                command.writes = blocks_of(first, &data);
                if command.is_odd() {
                    // It writes other data than it was generated for.
                    command.writes.iter_mut().for_each(|w| w.1.clear());
                }
            }
            io::COMPARE => {
                let mut data = self.held(first, count);
                if !command.buffer.corrupted && self.chance(30) {
                    let at = self.random.below(data.len() as u64) as usize;
                    data[at] ^= 1 << self.random.below(8);
                }
                command.buffer.fill(&data);
            }
            io::WRITE_ZEROES => {
                let zeros = vec![0; (count * BLOCK) as usize];
                command.writes = blocks_of(first, &zeros);
            }
            _ => {}
        }
        if !right {
            self.effect_in_other_namespace(&mut command, lba, count, locks)?;
        }
        Some(command)
    }

    /// The effect of a command whose namespace was replaced by another one. The command is dropped
    /// if it conflicts there: blocks that engines and other commands write at the same time are not
    /// atomic.
    fn effect_in_other_namespace(
        &mut self,
        command: &mut Command,
        lba: u64,
        count: u64,
        locks: &mut RangeLocks,
    ) -> Option<()> {
        let ns = self.namespaces.get(command.sqe.nsid());
        let Some(ns) = ns.filter(|ns| ns.is_active() && ns.holds(lba, count)) else {
            command.writes.clear();
            return Some(());
        };
        let first = ns.base + lba;
        if !locks.lock(first..first + count, !command.writes.is_empty()) {
            return None;
        }
        for (n, write) in (first..).zip(&mut command.writes) {
            write.0 = n;
        }
        if !command.reads.is_empty() {
            command.reads = first..first + count;
        }
        Some(())
    }

    /// A command of an engine.
    fn engine(&mut self, locks: &mut RangeLocks) -> Option<Command> {
        let opcode = pick(self.random, &self.opcodes);
        let ns = self.namespace();
        if TABLES.contains(&opcode) {
            return self.table_command(opcode, &ns, locks);
        }
        if opcode == PIPELINE {
            return Some(self.wrong_list_command(&ns));
        }
        let most = if opcode == COUNT {
            ns.blocks
        } else {
            ns.blocks / 3
        };
        let count = match self.chance(6) {
            true => 1 + self.random.below(most.max(1)),
            false => self.count(most.max(1)),
        };
        let lba = self.first_block(&ns, count, false, locks)?;
        let first = ns.base + lba;
        if !locks.lock_exclusive(first..first + count, false) {
            return None;
        }
        let source = self.held(first, count);
        let nsid = self.nsid(ns.nsid);
        let mut command = Command::new(Sqe::of_blocks(opcode, nsid, lba, count as u32));
        command.sqe.dw[12] = count as u32 - 1;
        command.torn = true;
        command.reads = first..first + count;
        let (kind, low, high) = (
            self.random.below(4),
            bound(self.random, &source),
            bound(self.random, &source),
        );
        if opcode == COPY {
            let to = self.target(&ns, (count, 1), true, locks)?;
            command.sqe = command.sqe.with_cdw(14, to as u32);
            command.writes = blocks_of(ns.base + to, &source);
        } else {
            for (n, value) in [(2, low), (3, low >> 32), (14, high), (15, high >> 32)] {
                command.sqe = command.sqe.with_cdw(n, value as u32);
            }
            command.sqe.dw[13] = kind as u32;
            if opcode != COUNT {
                let (_, bits) = scanned(&Bounds::new(kind, low, high), &source);
                let blocks = (bits.len() as u64).div_ceil(BLOCK);
                let to = self.target(&ns, (blocks, 8), true, locks)?;
                command.sqe.dw[13] |= unit_of(to)? << 2;
                command.writes = laid(self.media, (ns.base + to) * BLOCK, &bits);
            }
        }
        if self.chance(self.wrong) {
            self.corrupt_engine(&mut command, &ns, count);
        }
        if command.sqe.nsid() != ns.nsid {
            // Its effect there is unknown, and may conflict with other commands. So it is dropped
            // if it would have an effect.
            let there = self.namespaces.get(command.sqe.nsid());
            if there.is_some_and(|there| there.is_active()) {
                return None;
            }
            command.writes.clear();
        }
        Some(command)
    }

    /// A command of an engine of tables, on the present content of the media.
    fn table_command(
        &mut self,
        opcode: u8,
        ns: &Namespace,
        locks: &mut RangeLocks,
    ) -> Option<Command> {
        let most = ns.blocks * BLOCK / 16;
        let count = random_count(self.random, most);
        let mut place = |generate: &mut Self, bytes: u64, write: bool| {
            let blocks = bytes.div_ceil(BLOCK).max(1);
            let lba = generate.target(ns, (blocks, 8), write, locks)?;
            let at = ((ns.base + lba) * BLOCK) as usize;
            let held = generate.media.get(at..at + bytes as usize)?;
            Some((unit_of(lba)?, at as u64, held))
        };
        let nsid = self.nsid(ns.nsid);
        let (dwords, at, made) = match opcode {
            SORT => {
                let job = Sort::generate(self.random, count);
                let [keys, out, _] = job.sizes();
                let (src, _, source) = place(self, keys, false)?;
                let (dst, at, _) = place(self, out, true)?;
                let tmp = self.random.next() as u32;
                let dwords = [src, dst, tmp, count as u32, job.kind as u32, 0];
                (dwords, at, job.made(source))
            }
            SHUFFLE => {
                let job = Rows {
                    kind: self.random.below(4),
                    count,
                    row: 1 + self.random.below(16),
                    rows: random_count(self.random, most),
                };
                let [list, table, out] = job.sizes();
                let (index, _, list) = place(self, list, false)?;
                let (src, _, table) = place(self, table, false)?;
                let (dst, at, old) = place(self, out, true)?;
                let mut made = job.made(list, table);
                made.extend_from_slice(&old[made.len()..]);
                let last = job.row as u32 | (job.kind as u32) << 24;
                let dwords = [index, src, dst, count as u32, job.rows as u32, last];
                (dwords, at, made)
            }
            _ => {
                let log = self.random.below(2);
                // A dictionary that is large enough contains every key.
                let flags = [0, 8 | 1 << 17, 16 | 1 << 17, 1 << 16, 2, 8];
                let kind = pick(self.random, &flags) | log << 8;
                let entries = match kind & 63 {
                    16 => 65536,
                    8 => 256,
                    _ => 4,
                };
                let job = Column {
                    kind,
                    entries,
                    count,
                };
                let bytes = count * if kind & 63 == 16 { 2 } else { job.size() };
                let (dict, _, table) = place(self, entries << log, false)?;
                let (src, _, source) = place(self, bytes, false)?;
                let (dst, at, old) = place(self, count << log, true)?;
                let (mut made, ends) = job.made(table, source);
                if ends.0 != 0 {
                    made = old.to_vec();
                }
                let last = (entries - 1) | (kind & 63) << 16 | log << 24 | (kind >> 16) << 26;
                let dwords = [dict, src, dst, count as u32, bytes as u32, last as u32];
                (dwords, at, made)
            }
        };
        let sqe = Sqe::new(opcode).with_nsid(nsid);
        let mut command = Command::new(
            (10..)
                .zip(dwords)
                .fold(sqe, |sqe, (n, value)| sqe.with_cdw(n, value)),
        );
        command.torn = true;
        command.writes = laid(self.media, at, &made);
        if self.chance(self.wrong) {
            self.corrupt_table(&mut command, ns);
        }
        if command.sqe.nsid() != ns.nsid {
            let there = self.namespaces.get(command.sqe.nsid());
            if there.is_some_and(|there| there.is_active()) {
                return None;
            }
            command.writes.clear();
        }
        Some(command)
    }

    /// A command of a list that the engine refuses before it reads the list.
    fn wrong_list_command(&mut self, ns: &Namespace) -> Command {
        let nsid = self.nsid(ns.nsid);
        let mut sqe = Sqe::new(PIPELINE).with_nsid(nsid).with_cdw(13, 1);
        let dw = &mut sqe.dw;
        match self.random.below(4) {
            0 => dw[13] = pick(self.random, &[0, 17, u32::MAX]),
            // Beyond all namespaces.
            1 => {
                dw[10] = pick(
                    self.random,
                    &[(MOST_MEDIA / PAGE) as u32, 1 << 20, u32::MAX],
                )
            }
            2 => dw[pick(self.random, &[11, 12, 15])] = 1 << self.random.below(32),
            _ => dw[14] = 2 << self.random.below(31),
        }
        Command::new(sqe)
    }

    /// A command of a list in a namespace, and the content that has to be there before.
    pub fn list(&mut self, locks: &mut RangeLocks) -> Option<(Command, Blocks)> {
        let ns = self.namespace();
        let reach = ns.base * BLOCK..(ns.base + ns.blocks) * BLOCK;
        let job = lists::job(self.random, self.media, locks, reach.clone())?;
        let unit = (job.arguments[0] - reach.start) / PAGE;
        let mut command = Command::new(
            Sqe::new(PIPELINE)
                .with_nsid(ns.nsid)
                .with_cdw(10, unit as u32)
                .with_cdw(13, job.arguments[1] as u32)
                .with_cdw(14, job.arguments[4] as u32),
        );
        command.torn = true;
        command.writes = job.writes;
        randomise_reserved(self.random, Set::Nvm, &mut command.sqe);
        Some((command, job.lays))
    }

    /// Corrupts one or two fields: the command changes nothing.
    fn corrupt_table(&mut self, command: &mut Command, ns: &Namespace) {
        let beyond = |generate: &mut Self| match generate.random.below(3) {
            0 => u32::MAX,
            _ => (ns.blocks.div_ceil(8) + generate.random.below(4)) as u32,
        };
        let (opcode, n) = (command.sqe.opcode(), self.random.below(2) as usize);
        command.writes.clear();
        let free: &[u32] = match opcode {
            SORT => &[7, 8, 16, 31],
            SHUFFLE => &[17, 23, 26, 31],
            _ => &[22, 23, 28, 31],
        };
        let reserved = 1 << pick(self.random, free);
        let last = if opcode == SORT { 14 } else { 15 };
        let far = beyond(self);
        let dw = &mut command.sqe.dw;
        match self.random.below(5) {
            0 => dw[13] = 0,
            1 => dw[last] |= reserved,
            // The target; also the source and the list.
            2 => dw[if opcode == SORT { 11 } else { 12 }] = far,
            3 => (dw[10 + n], dw[last]) = (far, dw[last] | reserved),
            _ if opcode == SORT => dw[14] |= pick(self.random, &[3, 3 << 2]),
            _ if opcode == SHUFFLE => dw[15] = pick(self.random, &[0, 65537]),
            _ => dw[15] = (dw[15] & !(3 << 26)) | pick(self.random, &[33 << 16, 3 << 26]),
        }
    }

    /// The first block of a range of an engine of tables, or of a target of another engine: a
    /// multiple of its unit.
    fn target(
        &mut self,
        ns: &Namespace,
        (count, unit): (u64, u64),
        write: bool,
        locks: &mut RangeLocks,
    ) -> Option<u64> {
        let most = ns.blocks.checked_sub(count)? / unit + 1;
        (0..12).find_map(|_| {
            let lba = match self.random.below(6) {
                0 => most - 1,
                _ => self.random.below(most),
            } * unit;
            let first = ns.base + lba;
            locks
                .lock_exclusive(first..first + count, write)
                .then_some(lba)
        })
    }

    /// Corrupts one field that only the engine checks: the command changes nothing.
    fn corrupt_engine(&mut self, command: &mut Command, ns: &Namespace, count: u64) {
        let copy = command.sqe.opcode() == COPY;
        let slba = command.sqe.slba();
        command.writes.clear();
        let sqe = &mut command.sqe;
        match self.random.below(5) {
            0 => sqe.dw[12] |= 1 << (24 + self.random.below(8)),
            1 if copy => sqe.dw[13] = 1 << self.random.below(32),
            2 if copy => sqe.dw[14] = (slba + self.random.below(count)) as u32,
            3 if copy => sqe.dw[14] = (ns.blocks - count + 1 + self.random.below(count)) as u32,
            4 if copy => sqe.dw[15] = 1 << self.random.below(32),
            1 => sqe.dw[12] = pick(self.random, &[0xFF_FFFF, 0x80_0000]),
            2 => sqe.dw[11] = 1 << self.random.below(32),
            _ => {
                let beyond = ns.blocks - count + 1 + self.random.below(count);
                (sqe.dw[10], sqe.dw[11]) = (beyond as u32, 0);
            }
        }
    }

    fn deallocation(&mut self, locks: &mut RangeLocks) -> Option<Command> {
        let ns = self.namespace();
        let count = match self.random.below(20) {
            0 => 1 + self.random.below(256),
            1..=5 => 1 + self.random.below(20),
            _ => 1 + self.random.below(3),
        };
        let most = match count > 1 && self.chance(8) {
            true => (8192 / count).min(ns.blocks),
            false => ns.blocks.min(12),
        };
        let mut list = Vec::new();
        let mut command = Command::new(Sqe::deallocate(ns.nsid, count as usize));
        let beyond = self
            .chance(self.wrong / 3)
            .then(|| self.random.below(count));
        for n in 0..count {
            let len = if self.chance(3) {
                0
            } else {
                1 + self.random.below(most.max(1))
            };
            let lba = match len {
                0 => self.random.below(ns.blocks),
                // The command is dropped if another command conflicts with it.
                _ => self.first_block(&ns, len, true, locks)?,
            };
            let (lba, len) = match beyond == Some(n) {
                true => (ns.blocks - len.min(ns.blocks) + 1, len + 1),
                false => (lba, len),
            };
            list.extend((self.random.next() as u32).to_le_bytes());
            list.extend((len as u32).to_le_bytes());
            list.extend(lba.to_le_bytes());
            if beyond.is_none() {
                let blocks = ns.base + lba..ns.base + lba + len;
                command
                    .writes
                    .extend(blocks.map(|b| (b, vec![0; BLOCK as usize])));
            }
        }
        command.writes.sort();
        command.writes.dedup();
        let attributes = if self.chance(85) { 4 } else { 0 };
        command.sqe = command.sqe.with_cdw(11, attributes);
        if attributes == 0 || beyond.is_some() {
            command.writes.clear();
        }
        command.bytes = count * 16;
        // A list that is read from another address may name anything.
        let sgls = self.chance(40);
        let corrupt = if beyond.is_some() || sgls {
            0
        } else {
            self.wrong
        };
        let mut command = self.with_data(command, sgls, corrupt)?;
        command.buffer.fill(&list);
        if command.is_odd() {
            command.writes.iter_mut().for_each(|w| w.1.clear());
        }
        Some(command)
    }

    /// A deallocation of the largest namespace, 256 times.
    pub fn endless(&mut self) -> Option<Command> {
        let ns = *self.namespaces.active().max_by_key(|ns| ns.blocks)?;
        let mut list = Vec::new();
        for _ in 0..256 {
            list.extend([0; 4]);
            list.extend((ns.blocks as u32).to_le_bytes());
            list.extend([0; 8]);
        }
        let mut command = Command::new(Sqe::deallocate(ns.nsid, 256));
        let blocks = ns.base..ns.base + ns.blocks;
        let zeros = blocks.map(|block| (block, vec![0; BLOCK as usize]));
        command.writes = zeros.collect();
        command.bytes = list.len() as u64;
        let mut command = self.with_data(command, true, 0)?;
        command.buffer.fill(&list);
        Some(command)
    }

    /// A fused Compare and Write, mostly complete and valid.
    pub fn fused(&mut self) -> Option<Vec<Command>> {
        let ns = self.namespace();
        let count = self.count(ns.blocks).min(64);
        let mut locks = RangeLocks::default();
        let lba = self.first_block(&ns, count, true, &mut locks)?;
        let mut halves = [(io::COMPARE, ns, lba, count), (io::WRITE, ns, lba, count)];
        let mut fuses = vec![1, 2];
        let odd = &mut halves[self.random.below(2) as usize];
        let case = self.random.below(30);
        match case {
            0 => {
                odd.0 = pick(
                    self.random,
                    &[io::READ, io::WRITE, io::COMPARE, io::WRITE_ZEROES],
                )
            }
            1 => odd.0 = pick(self.random, &[io::FLUSH, 0x77]),
            2 => odd.2 = odd.2.wrapping_add(1),
            3 => odd.3 += 1,
            4 => odd.2 = ns.blocks,
            5 => fuses = vec![1],
            6 => fuses = vec![2],
            7 => fuses = vec![1, 0],
            8 => fuses = vec![1, 3],
            9 => fuses = vec![1, 1],
            10 => fuses = vec![2, 1],
            _ => {}
        }
        let differs = self.chance(30);
        let mut corrupted = differs;
        let mut commands = Vec::new();
        for (&fuse, &(opcode, ns, lba, count)) in fuses.iter().zip(&halves) {
            let mut command = Command::new(Sqe::of_blocks(opcode, ns.nsid, lba, count as u32));
            command.to_host = opcode == io::READ;
            command.bytes = count * BLOCK;
            let corrupt = if corrupted || case < 11 {
                0
            } else {
                self.wrong
            };
            command = self.with_data(command, true, corrupt)?;
            corrupted |= command.buffer.corrupted;
            let first = ns.base + lba;
            let fits = ns.holds(lba, count);
            let data = match opcode {
                io::COMPARE => {
                    let mut data = self.held(first, count);
                    data.resize((count * BLOCK) as usize, 0);
                    if differs {
                        let at = self.random.below(data.len() as u64) as usize;
                        data[at] ^= 1 << self.random.below(8);
                    }
                    data
                }
                _ => bytes(self.random, command.bytes),
            };
            command.buffer.fill(&data);
            if fits {
                command.reads = first..first + count;
            }
            match opcode {
                io::WRITE if fits => command.writes = blocks_of(first, &data),
                io::WRITE_ZEROES if fits => command.writes = blocks_of(first, &vec![0; data.len()]),
                _ => {}
            }
            if command.is_odd() {
                command.writes.iter_mut().for_each(|w| w.1.clear());
            }
            command.sqe.dw[0] |= fuse << 8;
            commands.push(command);
        }
        Some(commands)
    }

    /// An admin command that changes no queue.
    pub fn admin(&mut self) -> Option<Command> {
        let mut command = match self.random.below(100) {
            0..=27 => self.identify()?,
            28..=49 => self.log()?,
            50..=77 => self.feature()?,
            78..=85 => Command::new(Sqe::new(admin::ASYNC_EVENT_REQUEST)),
            86 => Command::new(Sqe::new(admin::KEEP_ALIVE)),
            87..=90 => {
                // Of a command that does not exist.
                let (sqid, cid) = (
                    self.random.below(8) as u32,
                    0xF000 | self.random.below(0x1000) as u32,
                );
                Command::new(Sqe::new(admin::ABORT).with_cdw(10, cid << 16 | sqid))
            }
            91 | 92 => self.format(),
            _ => {
                let opcode = self.random.next() as u8;
                let known = [
                    admin::DELETE_IO_SQ,
                    admin::CREATE_IO_SQ,
                    admin::DELETE_IO_CQ,
                    admin::CREATE_IO_CQ,
                    admin::DOORBELL_BUFFER_CONFIG,
                    admin::FORMAT_NVM,
                    admin::ASYNC_EVENT_REQUEST,
                    admin::SET_FEATURES,
                    admin::GET_LOG_PAGE,
                    admin::IDENTIFY,
                    admin::GET_FEATURES,
                ];
                let opcode = if known.contains(&opcode) {
                    0x19
                } else {
                    opcode
                };
                Command::new(Sqe::new(opcode))
            }
        };
        if self.chance(self.wrong / 4) {
            let bits = [1 << 8, 2 << 8, 3 << 8, 1 << 14, 2 << 14, 3 << 14];
            command.sqe.dw[0] |= pick(self.random, &bits);
            command.writes.clear();
        }
        randomise_reserved(self.random, Set::Admin, &mut command.sqe);
        Some(command)
    }

    fn format(&mut self) -> Command {
        let right = if self.chance(85) {
            self.namespace().nsid
        } else {
            ALL_NAMESPACES
        };
        let nsid = self.nsid(right);
        let odd = if self.chance(25) {
            self.random.next() as u32 & 0xFFF
        } else {
            0
        };
        let ses = self.random.below(2) as u32;
        let mut command = Command::new(
            Sqe::new(admin::FORMAT_NVM)
                .with_nsid(nsid)
                .with_cdw(10, odd | ses << 9),
        );
        for ns in self.namespaces.active() {
            if nsid == ALL_NAMESPACES || ns.nsid == nsid {
                let blocks = ns.base..ns.base + ns.blocks;
                command
                    .writes
                    .extend(blocks.map(|b| (b, vec![0; BLOCK as usize])));
            }
        }
        command
    }

    fn identify(&mut self) -> Option<Command> {
        let cns = match self.random.below(20) {
            0..=11 => self.random.below(4),
            12 | 13 => 6,
            14 | 15 => 8,
            16 => 2,
            17 => 0x12 + self.random.below(2),
            _ => self.random.below(256),
        } as u8;
        let count = u64::from(self.namespaces.count());
        let right = match cns {
            0 | 3 | 8 => 1 + self.random.below(count) as u32,
            _ => self.random.below(count + 1) as u32,
        };
        let mut command = Command::new(Sqe::identify(cns, self.nsid(right)));
        if self.chance(10) {
            // CNTID and CSI.
            command.sqe.dw[10] |= (self.random.below(4) as u32) << 16;
            command.sqe.dw[11] = (self.random.below(3) as u32) << 24;
        }
        (command.bytes, command.to_host) = (PAGE, true);
        self.with_data(command, false, self.wrong / 2)
    }

    fn log(&mut self) -> Option<Command> {
        let lid = if self.chance(92) {
            self.random.below(6)
        } else {
            self.random.below(256)
        };
        let dwords = match self.random.below(60) {
            // The largest transfer.
            0 => (MOST * BLOCK) / 4,
            1 | 2 => 1 + self.random.below(20_000),
            3..=20 => 1 + self.random.below(1024),
            21..=38 => 1024,
            _ => 128,
        };
        let offset = match self.random.below(10) {
            0..=5 => 0,
            6 => self.random.below(16) * 64,
            7 => self.random.below(128) * 4,
            8 => self.random.below(1025) * 4,
            _ => pick(self.random, &[1, 2, 510, 516, 4096, 4100, 1 << 32, 1 << 63]),
        };
        let bytes = dwords * 4;
        let numd = match self.chance(98) {
            true => dwords - 1,
            false => pick(self.random, &[0x4_0000, 0xFFFF_FFFF, 1 << 24]),
        };
        let rae = self.random.below(2) as u32;
        let nsid = if self.chance(50) {
            ALL_NAMESPACES
        } else {
            self.nsid(0)
        };
        let sqe = Sqe::new(admin::GET_LOG_PAGE)
            .with_nsid(nsid)
            .with_cdw(10, (numd as u32 & 0xFFFF) << 16 | rae << 15 | lid as u32)
            .with_cdw(11, (numd >> 16) as u32 & 0xFFFF)
            .with_cdw(12, offset as u32)
            .with_cdw(13, (offset >> 32) as u32);
        let mut command = Command::new(sqe);
        (command.bytes, command.to_host) = (bytes, true);
        self.with_data(command, false, self.wrong / 2)
    }

    fn feature(&mut self) -> Option<Command> {
        let set = self.chance(50);
        let mut fid = match self.chance(75) {
            true => pick(
                self.random,
                &[1, 2, 4, 4, 5, 7, 8, 9, 0xA, 0xB, 0xB, 0xE, 0xF, 0x16],
            ),
            false if self.chance(50) => self.random.below(0x20) as u32,
            false => self.random.below(256) as u32,
        };
        if set && fid as u8 == feature::KEEP_ALIVE_TIMER {
            // A separate step sets it.
            fid = feature::ARBITRATION.into();
        }
        let value = match self.random.below(9) {
            0..=2 => self.random.next() as u32,
            3 => self.random.below(16) as u32,
            4 => (self.random.below(16) << 16 | self.random.below(400)) as u32,
            5 => 1 << self.random.below(32),
            6 => (self.random.below(256) << 8 | self.random.below(20)) as u32,
            7 => (self.random.below(2) << 16 | self.random.below(8)) as u32,
            _ => 0,
        };
        let count = u64::from(self.namespaces.count());
        let one = 1 + self.random.below(count) as u32;
        let right = match (fid, set && self.chance(20)) {
            (5, false) => one,
            (5, true) => ALL_NAMESPACES,
            _ => 0,
        };
        let save = if self.chance(6) { 1 << 31 } else { 0 };
        let select = if !set && self.chance(20) {
            (self.random.below(8) as u32) << 8
        } else {
            0
        };
        let nsid = if self.chance(90) {
            right
        } else {
            self.nsid(one)
        };
        let opcode = if set {
            admin::SET_FEATURES
        } else {
            admin::GET_FEATURES
        };
        let sqe = Sqe::new(opcode)
            .with_nsid(nsid)
            .with_cdw(10, fid | save | select)
            .with_cdw(11, value);
        let mut command = Command::new(sqe);
        command.to_host = !set;
        command.bytes = match fid as u8 {
            feature::HOST_BEHAVIOR_SUPPORT => BEHAVIOR_BYTES,
            _ => 8,
        };
        let mut data = vec![0; command.bytes as usize];
        if self.chance(60) {
            data = bytes(self.random, command.bytes);
        }
        if fid as u8 == feature::HOST_BEHAVIOR_SUPPORT && self.chance(90) {
            data[0] = self.random.below(2) as u8;
        }
        let mut command = self.with_data(command, false, self.wrong / 2)?;
        command.buffer.fill(&data);
        Some(command)
    }
}

/// Blocks from `first` on, and their content.
fn blocks_of(first: u64, data: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let contents = data.chunks(BLOCK as usize).map(<[u8]>::to_vec);
    (first..).zip(contents).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of each of two namespaces: few, so that commands overlap.
    const BLOCKS: u64 = 512;

    fn is_engines(command: &Command) -> bool {
        [COPY, COUNT].contains(&command.sqe.opcode())
    }

    /// Blocks that engines and other commands write at the same time are not atomic. So no other
    /// command uses blocks of an engine's command, not even a command with a wrong namespace, whose
    /// effect moves there.
    #[test]
    #[ignore = "takes seconds"]
    fn engine_blocks_are_used_by_no_other_command() {
        let namespaces = Namespaces::new(&[BLOCKS, BLOCKS]);
        let media = vec![0; (2 * BLOCKS * BLOCK) as usize];
        let mut arena = Arena::new();
        let mut random = Random::new(1);
        for round in 0..3000 {
            arena.end_step();
            let mut locks = RangeLocks {
                shared: round % 2 == 0,
                ..RangeLocks::default()
            };
            let mut generate = Generator {
                random: &mut random,
                arena: &mut arena,
                media: &media,
                namespaces: &namespaces,
                opcodes: vec![COPY, COUNT],
                wrong: 100,
            };
            let commands: Vec<Command> = (0..12).filter_map(|_| generate.io(&mut locks)).collect();
            for (n, engine) in commands.iter().enumerate().filter(|(_, c)| is_engines(c)) {
                for (_, other) in commands.iter().enumerate().filter(|(m, _)| *m != n) {
                    let met = engine.writes_in(&other.reads)
                        || engine
                            .writes
                            .iter()
                            .any(|(b, _)| other.writes_in(&(*b..b + 1)))
                        || other.writes_in(&engine.reads);
                    assert!(!met, "{:08x?} beside {:08x?}", engine.sqe.dw, other.sqe.dw);
                }
            }
        }
    }
}
