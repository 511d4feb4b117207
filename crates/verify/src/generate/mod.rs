// SPDX-License-Identifier: Apache-2.0

//! Random commands with their data, under a [`Policy`]: hostile, valid, or with one result only.
//!
//! Modules in reading order: `buffer` and `sgl` (PRPs and SGLs), `io`, `admin`, `queues`,
//! `engines`, `tables` and `lists` (commands of engines), `reserved` (bits without effect).
//!
//! # What is generated
//!
//! Valid and invalid input of each kind. With [`Policy::Determined`] a command has at most one
//! error. Left out of it are rings of SGL segments, PRPs of all ones, and PRP lists from a wrong
//! entry on. So are corrupted SGLs of Dataset Management, lists of `pipeline` over any content, and
//! queues without memory.
//!
//! - Every command: all 16 dwords. Bits without effect for the opcode stay 0, or one bit, one
//!   dword, or all of them are random. These are reserved bits, unused dwords, MPTR, tags, hints,
//!   the UUID index, and the NSID of commands without one.
//! - I/O commands: Read, Write, Compare, Write Zeroes, Verify, Dataset Management and Flush, of 1
//!   to 65536 blocks, mostly few, partly on the same blocks. Invalid: any opcode, ranges beyond
//!   the end, excessive lengths, FUSE 11b, PSDT 11b, and fields without meaning.
//! - `scan`: `count` and `filter`, with bitmaps of all kinds of values and bounds that occur in
//!   the media.
//! - `copy`: next to its source or anywhere, from 1 block to a whole namespace, beside other
//!   commands. Long copies are followed by an Abort, a deletion of the queue or a reset. Formats
//!   and power cuts occur while they wait or work.
//! - Invalid commands of both: ranges and targets beyond the end, 2^24 blocks, targets over their
//!   source, reserved bits, NSIDs.
//! - `sorter`, `row_shuffle`, `dict_decode` (`nearside fuzz fuzz-sort`): all kinds and widths,
//!   few and many keys, rows and values, with an Abort, a deletion of the queue or a reset soon
//!   after. Invalid: overlapping places, places beyond the end or at 2^44, counts of 0, 2^31 and
//!   2^32 - 1, oversized dictionaries, reserved bits.
//! - Lists of `pipeline` (`fuzz-sort`): written by stores to unused blocks of the PM window, or
//!   over older content. They have 1 to 16 entries of the kinds above, with or without reports.
//! - Invalid lists: other opcodes, reserved or random bits, places beyond the end, over each
//!   other or over the list. Lists and reports lie at the end of the namespace or beyond, and
//!   have 0, 17 or 2^32 - 1 entries.
//! - PRPs: any offset, lists from any entry on, chained lists, lists that lead back to their
//!   page. Invalid: forbidden offsets, addresses without memory, a page twice, 0, all ones.
//! - SGLs (PSDT 01b, 10b): one block, or up to four segments at any qword and across pages, bit
//!   buckets, empty blocks, more data than needed, excessive segment lengths. Invalid: types and
//!   subtypes, granularity, missing bytes, segments within or after a last one, lengths of 0 or
//!   8, rings, addresses without memory.
//! - Fused pairs: Compare and Write, equal or not. Invalid: a half alone, the same half twice,
//!   another opcode, range or namespace, errors of either half, and a doorbell between both.
//! - Namespaces: four of different sizes, and an inactive one. Invalid: NSID 0, too large,
//!   inactive, and FFFFFFFFh where it has no meaning.
//! - Admin commands: Identify CNS 00h to 03h, 06h, 08h; Get Log Page 00h to 05h; Set and Get
//!   Features with Select; Create and Delete of queues with any priority. Abort is mostly of
//!   commands in flight. Keep Alive, Asynchronous Event Request, and Format NVM of one or all
//!   namespaces (SES 0 and 1) run beside I/O. Invalid: all other opcodes, FUSE and PSDT, and all
//!   fields.
//! - Features: every identifier with any value, Select and Save. Host Behavior Support is
//!   included. Invalid: reserved values of ACRE.

mod admin;
mod buffer;
mod engines;
mod io;
mod lists;
mod queues;
pub mod reserved;
mod sgl;
mod tables;

use std::ops::Range;
use std::sync::Arc;

use nvme::{Namespace, Namespaces};
use sim::Random;
use spec::nvme::{Sqe, ALL_NAMESPACES};

use crate::random::{chance, pick};
use crate::PAGE;

pub use buffer::Fill;
pub use engines::bound;
pub use lists::List;

/// Percentage of errors at which the shares of errors are those of hostile input.
pub const WRONG: u64 = 12;

/// What a generator may generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Anything: several errors in a command, and ranges that other commands use.
    Hostile,
    /// Valid commands.
    Valid,
    /// Commands with one result: at most one error, as a controller may report either of two.
    Determined {
        /// Share of errors, compared with [`WRONG`].
        wrong: u64,
    },
}

/// The limits that a controller reports.
#[derive(Clone, Debug)]
pub struct Limits {
    /// I/O queue pairs; there is one more interrupt vector.
    pub queues: u16,
    /// Entries of the longest I/O queue.
    pub entries: u32,
    /// Largest transfer in bytes.
    pub transfer: u64,
    /// Asynchronous Event Requests that can wait.
    pub events: usize,
    /// Namespaces.
    pub namespaces: Arc<Namespaces>,
    /// Doorbell Buffer Config is offered.
    pub doorbell_buffer: bool,
    /// Opcodes of the commands of its engines.
    pub engines: Vec<u8>,
}

/// The host and the media that commands are generated for.
pub trait Surroundings {
    /// True if the host can spare this many pages.
    fn has_room(&self, pages: u64) -> bool;

    /// Allocates consecutive pages; returns the first one.
    fn alloc(&mut self, random: &mut Random, pages: u64) -> Option<u64>;

    /// Allocates a page for a queue.
    fn alloc_queue(&mut self, random: &mut Random) -> Option<u64>;

    /// A possible content of a block of the media.
    fn content(&self, block: u64) -> &[u8];

    /// True if another command uses one of these blocks.
    fn in_use(&self, blocks: Range<u64>) -> bool;
}

/// The memory of a command.
#[derive(Clone, Debug, Default)]
pub struct Buffer {
    /// Its pages, including those of lists.
    pub pages: Vec<u64>,
    /// Its segments in order: offset in the data, address, length.
    pub pieces: Vec<(u64, u64, u64)>,
    /// One field is corrupted.
    pub corrupted: bool,
    /// A page is named twice.
    pub twice: bool,
    /// Stores that the host has to make first.
    pub stores: Vec<(u64, Vec<u8>)>,
}

/// A command to submit.
#[derive(Clone, Debug)]
pub struct Command {
    /// Its entry, without an identifier.
    pub sqe: Sqe,
    /// Its memory.
    pub buffer: Buffer,
    /// Bytes that it moves.
    pub bytes: u64,
    /// The host's data.
    pub data: Vec<u8>,
}

impl Command {
    /// A command without data.
    pub fn plain(sqe: Sqe) -> Command {
        Command {
            sqe,
            buffer: Buffer::default(),
            bytes: 0,
            data: Vec::new(),
        }
    }

    /// True if it moves data to the host.
    pub fn is_to_host(&self) -> bool {
        is_to_host(&self.sqe)
    }

    /// True if its data differ from the generated data: a page occurs twice, or a descriptor has
    /// another length.
    pub fn is_odd(&self) -> bool {
        self.buffer.twice || self.buffer.corrupted && self.sqe.psdt() != 0
    }
}

/// True for commands with data to the host (NVM Express 1.4, 4.2: bits 1:0 of the opcode).
fn is_to_host(sqe: &Sqe) -> bool {
    sqe.opcode() & 3 == 2
}

/// Generator of commands.
pub struct Generator<'a> {
    random: &'a mut Random,
    host: &'a mut dyn Surroundings,
    limits: &'a Limits,
    policy: Policy,
    /// The command has an error.
    has_error: bool,
}

impl<'a> Generator<'a> {
    /// A generator of one command, or of a fused pair.
    pub fn new(
        random: &'a mut Random,
        host: &'a mut dyn Surroundings,
        limits: &'a Limits,
        policy: Policy,
    ) -> Generator<'a> {
        Generator {
            random,
            host,
            limits,
            policy,
            has_error: false,
        }
    }

    fn chance(&mut self, percent: u64) -> bool {
        chance(self.random, percent)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        pick(self.random, from)
    }

    fn is_hostile(&self) -> bool {
        self.policy == Policy::Hostile
    }

    /// True if an error is to be made. `percent` is its share in hostile input.
    fn is_wrong(&mut self, percent: u64) -> bool {
        let wrong = match self.policy {
            Policy::Valid => 0,
            Policy::Hostile => percent,
            Policy::Determined { .. } if self.has_error => 0,
            Policy::Determined { wrong } => percent * wrong / WRONG,
        };
        let is_wrong = self.chance(wrong);
        self.has_error |= is_wrong;
        is_wrong
    }

    /// An active namespace.
    fn namespace(&mut self) -> Namespace {
        let active: Vec<Namespace> = self.limits.namespaces.active().copied().collect();
        self.pick(&active)
    }

    /// The largest namespace; any active one with a probability of `percent`.
    fn large_namespace(&mut self, percent: u64) -> Namespace {
        let largest = self.limits.namespaces.active().max_by_key(|ns| ns.blocks);
        match largest.copied() {
            Some(largest) if !self.chance(percent) => largest,
            _ => self.namespace(),
        }
    }

    /// This NSID, or another one that may be invalid.
    fn nsid(&mut self, right: u32) -> u32 {
        if !self.is_wrong(5) {
            return right;
        }
        let count = self.limits.namespaces.count();
        match self.chance(50) {
            true => self.random.below(u64::from(count) + 2) as u32,
            false => self.pick(&[
                0,
                count + 1,
                ALL_NAMESPACES - 1,
                ALL_NAMESPACES,
                0x8000_0001,
            ]),
        }
    }

    /// FUSE and PSDT with values that are not allowed here, or unchanged.
    fn flags(&mut self, sqe: &mut Sqe, fuse: &[u32], psdt: &[u32]) {
        if self.is_wrong(3) {
            sqe.dw[0] |= match self.chance(50) {
                true => self.pick(fuse) << 8,
                false => self.pick(psdt) << 14,
            };
        }
    }

    /// A number of blocks, mostly small.
    fn block_count(&mut self) -> u64 {
        1 + match self.random.below(1000) {
            0..=599 => self.random.below(8),
            600..=879 => self.random.below(32),
            880..=969 => self.random.below(128),
            970..=989 => self.random.below(512),
            _ => self.random.below(3000),
        }
    }

    /// The first block of a range in a namespace, or beyond its end.
    fn first_block(&mut self, ns: &Namespace, count: u64) -> u64 {
        if self.is_wrong(4) {
            return self.far_block(ns, count);
        }
        let span = match self.random.below(10) {
            0..=5 => ns.blocks.min(512),
            6 => return ns.blocks.saturating_sub(count),
            _ => ns.blocks,
        };
        self.unused(ns, count, span, 6)
    }

    /// The first block of a range at the end of a namespace, or beyond it.
    fn far_block(&mut self, ns: &Namespace, count: u64) -> u64 {
        let end = ns.blocks.saturating_sub(count);
        let far = [u64::MAX, u64::MAX - count, 1 << 55, 1 << 32, 1 << 63];
        match self.chance(50) {
            true => self.pick(&[end, end + 1, ns.blocks]),
            false => self.pick(&far),
        }
    }

    /// A range that no command uses now, if a few attempts find one.
    fn unused(&mut self, ns: &Namespace, count: u64, span: u64, tries: u32) -> u64 {
        let mut lba = 0;
        for _ in 0..tries {
            lba = self.random.below(span.saturating_sub(count) + 1);
            if !self.host.in_use(ns.base + lba..ns.base + lba + count) {
                break;
            }
        }
        lba
    }

    /// The content of blocks of the media.
    fn content(&self, block: u64, count: u64) -> Vec<u8> {
        let blocks = (0..count).map(|n| block.wrapping_add(n));
        blocks
            .flat_map(|block| self.host.content(block).to_vec())
            .collect()
    }

    fn alloc(&mut self, pages: u64, buffer: &mut Buffer) -> Option<u64> {
        let first = self.host.alloc(self.random, pages)?;
        buffer.pages.extend((0..pages).map(|n| first + n * PAGE));
        Some(first)
    }
}
