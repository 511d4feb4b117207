// SPDX-License-Identifier: Apache-2.0

//! The data path: transfers between host memory and the media (nvme_data).
//!
//! A walker splits a transfer into PRP segments. PRP segments that make whole blocks are grouped
//! into transfer segments, each within 4 KiB of the media. A transfer segment becomes a descriptor
//! for the mover of its channel.
//!
//! A read descriptor is one burst of the media, whose blocks leave for the host as they arrive. A
//! write descriptor reads its PRP segments from the host and leaves as bursts of the media, each
//! when its data is complete.
//!
//! Modules have the names of the RTL's, in the order in which data passes them: `walkers`,
//! `block_assembler`, `splitter`, `mover` with `mover_read`, `read_limit`, `hazard` and
//! `mover_write`, `transfer_tracker`. `ranges`, `range_walk` and `fill` execute commands without
//! data.

mod block_assembler;
mod fill;
mod hazard;
mod mover;
mod mover_read;
mod mover_write;
mod range_walk;
mod ranges;
mod read_limit;
mod splitter;
mod transfer_tracker;
mod walkers;

use std::collections::VecDeque;
use std::sync::Arc;

use nvme::{WalkError, Walker};
use slab::Slab;
use spec::nvme::{status, Status};

use crate::config::Config;
use crate::context::SimContext;

use hazard::Hazard;
use mover::{Descriptor, Mover};
use mover_read::ArrivingData;
use mover_write::MediaBurst;
use read_limit::ReadLimit;
use transfer_tracker::TransferTracker;
use walkers::Walkers;

pub(crate) use ranges::{RangeOp, RangeWalker};

/// A transfer segment lies within this many bytes of the media.
const SEGMENT_BYTES: u64 = 4096;
/// Beats that a mover to the media holds.
const MOVER_BEATS: u32 = 512;

/// A mover's accesses to the media have one AXI ID.
const NVME_ID: u16 = 0;

const READ: usize = 0;
const WRITE: usize = 1;

/// The operation of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferOp {
    /// Media, or an admin page, to the host.
    Read,
    /// Host to media.
    Write,
    /// Comparison of host and media.
    Compare,
    /// Zeros to the media.
    Zero,
    /// Media are read, and the data is discarded.
    Verify,
}

impl TransferOp {
    /// The walkers that it uses. A comparison reads from the host, as a write does.
    fn walkers(self) -> usize {
        match self {
            TransferOp::Read => READ,
            _ => WRITE,
        }
    }

    /// The movers that it uses.
    fn direction(self) -> usize {
        match self {
            TransferOp::Read | TransferOp::Verify | TransferOp::Compare => READ,
            TransferOp::Write | TransferOp::Zero => WRITE,
        }
    }
}

/// The result of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferResult {
    Ok,
    Walk(WalkError),
    HostError,
    ReadError,
    WriteFault,
    Mismatch,
    OutOfRange,
    /// The controller was disabled.
    Interrupted,
    Aborted,
    Deleted,
}

impl TransferResult {
    /// The status of the command. It depends on the host's ACRE (README of nvme_ctrl, "Status
    /// codes").
    pub(crate) fn status(self, acre: bool) -> Status {
        match self {
            TransferResult::Ok => status::SUCCESS,
            TransferResult::Walk(fault) => fault.status(),
            TransferResult::HostError => status::DATA_TRANSFER_ERROR,
            TransferResult::ReadError => status::UNRECOVERED_READ_ERROR,
            TransferResult::WriteFault => status::WRITE_FAULT,
            TransferResult::Mismatch => status::COMPARE_FAILURE.dnr(),
            TransferResult::OutOfRange => status::LBA_OUT_OF_RANGE.dnr(),
            TransferResult::Interrupted => interrupted(acre),
            TransferResult::Aborted => status::ABORT_REQUESTED,
            TransferResult::Deleted => status::ABORTED_SQ_DELETION,
        }
    }
}

/// Status of a command that the controller had to abandon (NVMe 1.4, figures 126 and 127). Only
/// hosts that have set ACRE get Command Interrupted.
pub(crate) fn interrupted(acre: bool) -> Status {
    match acre {
        true => status::COMMAND_INTERRUPTED.with_delay(1),
        false => status::INTERNAL_ERROR,
    }
}

/// Source of the data of a read.
#[derive(Clone)]
pub(crate) enum DataSource {
    /// The media from this address on.
    Media(u64),
    /// These bytes, followed by zeros.
    Page(Arc<[u8]>),
}

/// A data command's transfer.
pub(crate) struct DataRequest {
    pub(crate) op: TransferOp,
    pub(crate) source: DataSource,
    pub(crate) walker: Walker,
}

/// The data path. Numbers of descriptors and bursts in its queues, in tags and in reads of the host
/// are those of items that exist: an index without an item is a bug.
pub(crate) struct DataPath {
    /// By direction.
    walkers: [Walkers; 2],
    transfers: TransferTracker,
    /// Transfers that wait for room in a mover.
    stalled: VecDeque<u16>,
    /// Range walks in progress, which may push further segments.
    range_walks: u32,
    descriptors: Slab<Descriptor>,
    /// By direction and channel.
    movers: [Vec<Mover>; 2],
    read_limit: ReadLimit,
    /// Data from the host on the way through the movers.
    arriving: VecDeque<ArrivingData>,
    /// Outstanding accesses to the media of each channel.
    hazards: Vec<Hazard>,
    media_bursts: Slab<MediaBurst>,
    /// Read bursts of a channel in flight, bytes of the longest write burst, and write bursts in
    /// flight.
    reads: u32,
    write_bytes: u64,
    writes: u32,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

impl DataPath {
    pub(crate) fn new(config: &Config) -> DataPath {
        let channels = config.storage.channels;
        let movers = |room| (0..channels).map(|_| Mover::new(room)).collect();
        DataPath {
            walkers: Default::default(),
            transfers: TransferTracker::new(config.slots),
            stalled: VecDeque::new(),
            range_walks: 0,
            descriptors: Slab::new(),
            movers: [movers(config.media_read_beats), movers(MOVER_BEATS)],
            read_limit: ReadLimit::default(),
            arriving: VecDeque::new(),
            hazards: (0..channels).map(|_| Hazard::default()).collect(),
            media_bursts: Slab::new(),
            reads: config.media_reads,
            write_bytes: config.media_write_bytes.into(),
            writes: config.media_writes,
            spare: Vec::new(),
        }
    }

    fn channels(&self) -> usize {
        self.hazards.len()
    }

    /// Retries accesses that the conflict filter held.
    pub(crate) fn filter_changed(&mut self, ctx: &mut SimContext) {
        for channel in 0..self.channels() {
            self.issue_media_writes(channel, ctx);
            self.issue_descriptors(READ, channel, ctx);
        }
    }

    /// Removes a transfer that is complete and returns its result.
    pub(crate) fn take_result(&mut self, slot: u16) -> TransferResult {
        self.transfers.take_result(slot)
    }
}
