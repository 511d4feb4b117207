// SPDX-License-Identifier: Apache-2.0

//! The NVM command set, for the reference model (NVM Express 1.4, chapter 6; status table in
//! `docs/hardware/nvme_ctrl.md`).

use nvme::{dataset, Namespace};
use spec::nvme::{io, status, Sqe, Status, ALL_NAMESPACES};

use crate::commands::{has_range, moves, BLOCKS, PIPELINE, TABLES};
use crate::oracle::engines;
use crate::oracle::expectation::{DataSource, Expectation, MediaUse};
use crate::oracle::lists;
use crate::oracle::media::Media;
use crate::oracle::memory::Memory;
use crate::oracle::model::{fetch, flags, send, Model};
use crate::oracle::namespaces::find;
use crate::oracle::tables;
use crate::BLOCK;

impl Model {
    /// Checks a command before the state of its namespace matters. A Flush of all namespaces has no
    /// namespace.
    pub fn check(&self, sqe: &Sqe) -> Result<Option<Namespace>, Status> {
        let opcode = sqe.opcode();
        let known = matches!(opcode, io::FLUSH | io::DATASET_MANAGEMENT)
            || self.limits.engines.contains(&opcode);
        if !has_range(opcode) && !known {
            return Err(status::INVALID_OPCODE);
        }
        let (fuse, psdt) = flags(sqe);
        if fuse == 3 || psdt == 3 {
            return Err(status::INVALID_FIELD);
        }
        if opcode == io::FLUSH && sqe.nsid() == ALL_NAMESPACES {
            return Ok(None);
        }
        find(&self.limits.namespaces, sqe.nsid()).map(Some)
    }

    /// Checks the size and the range of a command.
    pub fn check_range(&self, sqe: &Sqe, namespace: &Namespace) -> Result<(), Status> {
        let count = u64::from(sqe.blocks());
        if moves(sqe.opcode()) && count * BLOCK > self.limits.transfer {
            return Err(status::INVALID_FIELD);
        }
        if has_range(sqe.opcode()) && !namespace.holds(sqe.slba(), count) {
            return Err(status::LBA_OUT_OF_RANGE);
        }
        Ok(())
    }

    /// A command outside of fused pairs.
    pub fn io(&self, sqe: &Sqe, memory: &Memory, media: &Media) -> Expectation {
        let namespace = match self.check(sqe) {
            Err(status) => return Expectation::refused(status),
            Ok(None) => return Expectation::success(),
            Ok(Some(namespace)) => namespace,
        };
        let mut v = match self.check_range(sqe, &namespace) {
            Err(status) => Expectation::refused(status),
            Ok(()) => self.work(sqe, &namespace, memory, media),
        };
        // The exact start and end of a format are undefined.
        if self.is_formatting(namespace.nsid) {
            v.statuses.push(status::FORMAT_IN_PROGRESS);
        }
        v
    }

    /// The expectation of a command that has passed all checks.
    pub fn work(&self, sqe: &Sqe, ns: &Namespace, memory: &Memory, media: &Media) -> Expectation {
        let lba = ns.base.wrapping_add(sqe.slba());
        let count = u64::from(sqe.blocks());
        let mut v = match sqe.opcode() {
            io::READ => send(memory, sqe, count * BLOCK, DataSource::Media(lba * BLOCK)),
            io::WRITE => fetch(memory, sqe, count * BLOCK),
            io::COMPARE => return compare(sqe, lba, memory, media),
            opcode if BLOCKS.contains(&opcode) => return engines::expectation(sqe, ns),
            opcode if TABLES.contains(&opcode) => return tables::expectation(sqe, ns),
            PIPELINE => return lists::expectation(sqe, ns, media),
            io::DATASET_MANAGEMENT if dataset::deallocates(sqe) => {
                return deallocate(sqe, ns, memory)
            }
            _ => Expectation::success(),
        };
        v.long = matches!(sqe.opcode(), io::VERIFY | io::WRITE_ZEROES);
        v.media = match sqe.opcode() {
            io::READ | io::VERIFY => MediaUse::Read(lba, count),
            io::WRITE => MediaUse::Write(lba, v.walk.gather(memory)),
            io::WRITE_ZEROES => MediaUse::Zero(vec![(lba, count)]),
            _ => MediaUse::None,
        };
        v
    }
}

fn compare(sqe: &Sqe, lba: u64, memory: &Memory, media: &Media) -> Expectation {
    let count = u64::from(sqe.blocks());
    let mut v = fetch(memory, sqe, count * BLOCK);
    let data = v.walk.gather(memory);
    let (same, other) = comparison(lba, &data, None, media);
    if !same {
        v.statuses.retain(|s| *s != status::SUCCESS);
    }
    if other {
        v.statuses.push(status::COMPARE_FAILURE.dnr());
    }
    v.media = MediaUse::Compare(lba, count, data);
    v
}

/// Whether a Compare may find these bytes equal, and whether it may find a difference, before the
/// user `but` has written.
pub fn comparison(lba: u64, data: &[Option<u8>], but: Option<u64>, media: &Media) -> (bool, bool) {
    let pieces = (lba..).zip(data.chunks(BLOCK as usize));
    pieces.fold((true, false), |(same, other), (at, piece)| {
        let (equal, different) = media.compares(at, piece, but);
        (same && equal, other || different)
    })
}

/// Dataset Management with AD: a list of ranges of 16 bytes each (6.7). DMRL, DMRSL and DMSL are
/// recommendations only: ranges beyond them are executed, too.
fn deallocate(sqe: &Sqe, ns: &Namespace, memory: &Memory) -> Expectation {
    let mut v = fetch(memory, sqe, dataset::list_bytes(sqe));
    v.long = true;
    let data = v.walk.gather(memory);
    let mut ranges = Vec::new();
    let (mut outside, mut unclear) = (false, false);
    for range in data.chunks_exact(dataset::RANGE) {
        let bytes: Option<Vec<u8>> = range.iter().copied().collect();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        let Some(bytes) = bytes else { continue };
        let range = dataset::Range::from_bytes(&bytes);
        let (count, lba) = (u64::from(range.blocks), range.lba);
        if ns.holds(lba, count) {
            ranges.push((ns.base + lba, count));
        } else if count == 0 {
            // An empty range is within any namespace.
            unclear = true;
        } else {
            outside = true;
        }
    }
    let range_error = status::LBA_OUT_OF_RANGE.dnr();
    if outside && v.clean {
        v.statuses.retain(|s| *s != status::SUCCESS);
    }
    if outside || unclear {
        v.statuses.push(range_error);
    }
    if v.statuses.contains(&status::SUCCESS) {
        ranges.retain(|r| r.1 > 0);
        v.media = MediaUse::Zero(ranges);
    }
    v
}
