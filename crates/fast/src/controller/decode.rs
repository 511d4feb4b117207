// SPDX-License-Identifier: Apache-2.0

//! Decoding of I/O commands: their errors, and their requests to the data path (nvme_decode).

use nvme::{dataset, Namespaces, Walker, BLOCK_BYTES};
use spec::nvme::{io, status, Sqe, Status, ALL_NAMESPACES};

use super::data_path::{DataRequest, DataSource, RangeOp, TransferOp};

/// Most bytes that a command transfers (MDTS 8).
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// FUSE of the first and of the second command of a pair.
pub(crate) const FUSE_FIRST: u8 = 1;
pub(crate) const FUSE_SECOND: u8 = 2;

/// The engine that carries out an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EngineRoute {
    pub(crate) engine: usize,
    /// Number of the command within its engine.
    pub(crate) command: u8,
    /// Namespaces in which it is allowed, namespace 1 in the lowest bit.
    pub(crate) namespaces: u32,
}

/// The blocks that a command accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockSpan {
    pub(crate) namespace: u32,
    /// The ranges are unknown, so the command counts for the whole namespace.
    pub(crate) all: bool,
    /// Blocks of the media.
    pub(crate) first: u64,
    pub(crate) blocks: u64,
}

impl BlockSpan {
    pub(crate) fn overlaps(&self, other: &BlockSpan) -> bool {
        let near =
            self.first < other.first + other.blocks && other.first < self.first + self.blocks;
        match self.all || other.all {
            true => self.namespace == other.namespace,
            false => near,
        }
    }
}

/// A data command of an I/O queue.
#[derive(Clone, Debug)]
pub(crate) struct DataCommand {
    pub(crate) slot: u16,
    pub(crate) sqe: Sqe,
    pub(crate) span: BlockSpan,
    /// Bytes that it transfers, or of its list of ranges.
    pub(crate) bytes: u64,
}

/// A decoded command.
#[derive(Clone, Debug)]
pub(crate) enum Decoded {
    /// It ends with this status.
    Complete(Status),
    Data(DataCommand),
    Engine(EngineRoute),
}

/// Commands with SLBA and NLB.
pub(crate) fn has_lba(opcode: u8) -> bool {
    matches!(
        opcode,
        io::READ | io::WRITE | io::COMPARE | io::WRITE_ZEROES | io::VERIFY
    )
}

/// Validates a command, in the order of the README's table.
pub(crate) fn validate(
    slot: u16,
    sqe: &Sqe,
    namespaces: &Namespaces,
    formatting: u32,
    route: Option<EngineRoute>,
) -> Decoded {
    check(slot, sqe, namespaces, formatting, route).unwrap_or_else(Decoded::Complete)
}

fn check(
    slot: u16,
    sqe: &Sqe,
    namespaces: &Namespaces,
    formatting: u32,
    route: Option<EngineRoute>,
) -> Result<Decoded, Status> {
    let opcode = sqe.opcode();
    let moves = matches!(opcode, io::READ | io::WRITE | io::COMPARE);
    let has_lba = has_lba(opcode);
    let flush = opcode == io::FLUSH;
    let dataset = opcode == io::DATASET_MANAGEMENT;
    if !has_lba && !flush && !dataset && route.is_none() {
        return Err(status::INVALID_OPCODE.dnr());
    }
    if sqe.fuse() == 3 || sqe.psdt() == 3 {
        return Err(status::INVALID_FIELD.dnr());
    }
    if flush && sqe.nsid() == ALL_NAMESPACES {
        return Ok(Decoded::Complete(status::SUCCESS));
    }
    let namespace = namespaces
        .get(sqe.nsid())
        .ok_or(status::INVALID_NAMESPACE_OR_FORMAT.dnr())?;
    if !namespace.is_active() {
        return Err(status::INVALID_FIELD.dnr());
    }
    let bit = 1 << (namespace.nsid - 1);
    if route.is_some_and(|route| route.namespaces & bit == 0) {
        return Err(status::INVALID_NAMESPACE_OR_FORMAT.dnr());
    }
    if formatting & bit != 0 {
        return Err(status::FORMAT_IN_PROGRESS);
    }
    let blocks = u64::from(sqe.blocks());
    if moves && blocks * BLOCK_BYTES > MAX_BYTES {
        return Err(status::INVALID_FIELD.dnr());
    }
    if has_lba && !namespace.holds(sqe.slba(), blocks) {
        return Err(status::LBA_OUT_OF_RANGE.dnr());
    }
    if let Some(route) = route {
        return Ok(Decoded::Engine(route));
    }
    let command = |first, blocks, bytes, all| DataCommand {
        slot,
        sqe: *sqe,
        span: BlockSpan {
            namespace: namespace.nsid,
            all,
            first,
            blocks,
        },
        bytes,
    };
    Ok(if has_lba {
        Decoded::Data(command(
            namespace.base + sqe.slba(),
            blocks,
            blocks * BLOCK_BYTES,
            false,
        ))
    } else if dataset && dataset::deallocates(sqe) {
        Decoded::Data(command(
            namespace.base,
            namespace.blocks,
            dataset::list_bytes(sqe),
            true,
        ))
    } else {
        Decoded::Complete(status::SUCCESS)
    })
}

/// What a data command asks of the data path.
pub(crate) enum DataWork {
    Transfer(DataRequest),
    RangeWalk(TransferOp, RangeOp),
}

impl DataCommand {
    /// The request to the data path. The span holds addresses on the media.
    pub(crate) fn data_work(&self, namespaces: &Namespaces) -> DataWork {
        let addr = self.span.first * BLOCK_BYTES;
        let (sqe, bytes) = (&self.sqe, self.bytes);
        let walker = |to_host| Walker::new(sqe, bytes, to_host);
        let moves = |op| {
            DataWork::Transfer(DataRequest {
                op,
                source: DataSource::Media(addr),
                walker: walker(op == TransferOp::Read),
            })
        };
        match sqe.opcode() {
            io::READ => moves(TransferOp::Read),
            io::WRITE => moves(TransferOp::Write),
            io::COMPARE => moves(TransferOp::Compare),
            io::WRITE_ZEROES => DataWork::RangeWalk(TransferOp::Zero, RangeOp::Zero(addr, bytes)),
            io::VERIFY => DataWork::RangeWalk(TransferOp::Verify, RangeOp::Verify(addr, bytes)),
            _ => DataWork::RangeWalk(
                TransferOp::Zero,
                RangeOp::Deallocate {
                    walker: walker(false),
                    bytes,
                    namespace: namespaces
                        .get(sqe.nsid())
                        .expect("validation has found the namespace"),
                },
            ),
        }
    }
}
