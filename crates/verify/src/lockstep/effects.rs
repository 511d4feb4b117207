// SPDX-License-Identifier: Apache-2.0

//! Effects of commands on the media.

use std::ops::Range;

use nvme::{dataset, Namespace, Namespaces};
use spec::nvme::{admin, io, Sqe, ALL_NAMESPACES};

use crate::commands::{BLOCKS, COMMANDS, SHUFFLE, SORT, TABLES};
use crate::generate::Command;
use crate::lockstep::content::{around, blocks_of, held, laid, merged, unknown, zeros, Blocks};
use crate::lockstep::kernels::{scanned, Column, Rows, Sort};
use crate::lockstep::locks::RangeLocks;
use crate::oracle::engine_output::Transform;
use crate::oracle::expectation::MediaUse;
use crate::oracle::{engines, tables};
use crate::BLOCK;

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

impl PlannedCommand {
    /// Locks its blocks. False if another command conflicts with it.
    pub fn lock(&self, locks: &mut RangeLocks) -> bool {
        // Blocks that engines and other commands write at the same time are not atomic.
        let exclusive = COMMANDS.contains(&self.command.sqe.opcode());
        let Effects { reads, writes, .. } = &self.effects;
        let writes = writes.iter().map(|(block, _)| *block..block + 1);
        locks.lock_all([reads.clone(), merged(writes.collect())], exclusive)
    }
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
