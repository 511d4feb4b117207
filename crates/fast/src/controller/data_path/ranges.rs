// SPDX-License-Identifier: Apache-2.0

//! Commands that zero or verify ranges of the media, one at a time (nvme_ranges). These are Write
//! Zeroes, Verify, Dataset Management and Format NVM.

use std::collections::VecDeque;

use nvme::dataset::{Range, RANGE};
use nvme::{Namespace, WalkStep, Walker, BLOCK_BYTES};

use sim::memctrl::MemoryModel;

use crate::config::Config;
use crate::context::{Event, SimContext};
use crate::host_port::{HostReadData, ReadPurpose, BEAT};

use super::super::timing;
use super::fill::MemoryFill;
use super::{DataPath, TransferResult};

/// Bytes that a channel fills for one request.
const REGION_BYTES: u64 = 512 << 10;

/// The ranges of a command, and what is done with them.
pub(crate) enum RangeOp {
    /// Zeros: address on the media, bytes.
    Zero(u64, u64),
    /// Reads without data: address on the media, bytes.
    Verify(u64, u64),
    /// Zeros in the ranges of a list in host memory.
    Deallocate {
        walker: Walker,
        bytes: u64,
        namespace: Namespace,
    },
}

pub(super) struct QueuedRangeOp {
    slot: u16,
    op: RangeOp,
}

/// The list of a Dataset Management that is being read.
pub(super) struct RangeList {
    walker: Walker,
    bytes: Vec<u8>,
    wanted: usize,
    namespace: Namespace,
    /// The present PRP segment of the list: address, bytes left.
    segment: (u64, u64),
}

pub(super) struct ActiveRangeOp {
    pub(super) slot: u16,
    pub(super) list: Option<RangeList>,
    pub(super) ranges: VecDeque<(u64, u64)>,
    /// Position in the first range.
    pub(super) at: u64,
    pub(super) verify: bool,
    /// The command ends with this result.
    pub(super) end: Option<TransferResult>,
    /// A fill of the memories is in progress.
    pub(super) fill: Option<MemoryFill>,
}

pub(crate) struct RangeWalker {
    pub(super) waiting: VecDeque<QueuedRangeOp>,
    pub(super) active: Option<ActiveRangeOp>,
    pub(super) fills: u32,
    pub(super) region: u64,
    pub(super) channels: u64,
    /// Cycles in which a channel fills a line of 64 bytes, times 256.
    pub(super) line_cycles: u64,
    /// The edge at which the walk continues.
    pub(super) planned: Option<u64>,
}

impl RangeWalker {
    pub(crate) fn new(config: &Config) -> RangeWalker {
        let channels = u64::from(config.storage.channels);
        let granule = config.storage.granule;
        let line_cycles = match &config.storage.dram {
            MemoryModel::Ddr4(dram) => {
                // A line a cycle, if the DRAM's pins carry it. Refreshes take their share.
                let per_cycle = dram.peak_bytes_per_ns() * config.clock.ns(1.0) * 0.93;
                (256.0 * (BEAT as f64 / per_cycle).max(1.0)) as u64
            }
            _ => 256,
        };
        RangeWalker {
            waiting: VecDeque::new(),
            active: None,
            fills: 0,
            region: channels * REGION_BYTES.max(granule),
            channels,
            line_cycles,
            planned: None,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.active.is_none()
    }

    /// Queues a command, whose transfer is open already.
    pub(crate) fn start(&mut self, slot: u16, op: RangeOp, ctx: &mut SimContext) {
        self.waiting.push_back(QueuedRangeOp { slot, op });
        self.schedule(ctx.now + timing::WALK, ctx);
    }

    pub(super) fn schedule(&mut self, cycle: u64, ctx: &mut SimContext) {
        if self
            .planned
            .is_none_or(|planned| planned > cycle || planned < ctx.now)
        {
            self.planned = Some(cycle);
            ctx.schedule(cycle, Event::RangeWalk);
        }
    }

    /// Ends a command early; false if it is not here.
    pub(crate) fn abort(
        &mut self,
        slot: u16,
        deleted: bool,
        data_path: &mut DataPath,
        ctx: &mut SimContext,
    ) -> bool {
        let result = match deleted {
            true => TransferResult::Deleted,
            false => TransferResult::Aborted,
        };
        if self.active.as_ref().is_some_and(|p| p.slot == slot) {
            self.abort_active(result, data_path, ctx);
            return true;
        }
        let Some(place) = self.waiting.iter().position(|queued| queued.slot == slot) else {
            return false;
        };
        self.waiting.remove(place);
        data_path.range_walk_done(slot, result, ctx);
        true
    }

    /// Ends all commands, as the controller is disabled.
    pub(crate) fn stop(&mut self, data_path: &mut DataPath, ctx: &mut SimContext) {
        self.abort_active(TransferResult::Interrupted, data_path, ctx);
        for queued in std::mem::take(&mut self.waiting) {
            data_path.range_walk_done(queued.slot, TransferResult::Interrupted, ctx);
        }
    }

    fn abort_active(
        &mut self,
        result: TransferResult,
        data_path: &mut DataPath,
        ctx: &mut SimContext,
    ) {
        let Some(active) = &mut self.active else {
            return;
        };
        if active.end.is_some() {
            return;
        }
        active.end = Some(result);
        if let Some(fill) = active.fill {
            let done = fill.done(ctx.now, self.line_cycles, self.channels);
            if done < fill.bytes {
                let written = ctx.memory.zero(fill.addr, done);
                active.fill = None;
                self.finish(
                    if written {
                        result
                    } else {
                        TransferResult::WriteFault
                    },
                    data_path,
                    ctx,
                );
                return;
            }
        }
        // If the list is being read, the requested line arrives first.
        let reading = active
            .list
            .as_ref()
            .is_some_and(|list| list.segment.1 != 0 || list.bytes.len() < list.wanted);
        if !reading && active.fill.is_none() {
            self.schedule(ctx.now + 1, ctx);
        }
    }

    /// Ends the active command.
    pub(super) fn finish(
        &mut self,
        outcome: TransferResult,
        data_path: &mut DataPath,
        ctx: &mut SimContext,
    ) {
        let active = self.active.take().expect("a command is active");
        data_path.range_walk_done(active.slot, outcome, ctx);
        if !self.waiting.is_empty() {
            self.schedule(ctx.now + timing::WALK, ctx);
        }
    }

    pub(super) fn begin(
        &mut self,
        queued: QueuedRangeOp,
        data_path: &mut DataPath,
        ctx: &mut SimContext,
    ) {
        let mut active = ActiveRangeOp {
            slot: queued.slot,
            list: None,
            ranges: VecDeque::new(),
            at: 0,
            verify: false,
            end: None,
            fill: None,
        };
        match queued.op {
            RangeOp::Zero(addr, bytes) | RangeOp::Verify(addr, bytes) => {
                active.verify = matches!(queued.op, RangeOp::Verify(..));
                active.ranges.push_back((addr, bytes));
                active.at = addr;
                self.active = Some(active);
            }
            RangeOp::Deallocate {
                walker,
                bytes,
                namespace,
            } => {
                active.list = Some(RangeList {
                    walker,
                    bytes: Vec::new(),
                    wanted: bytes as usize,
                    namespace,
                    segment: (0, 0),
                });
                self.active = Some(active);
                self.next_line(data_path, ctx);
            }
        }
    }

    /// Reads the next line of the list.
    fn next_line(&mut self, data_path: &mut DataPath, ctx: &mut SimContext) {
        let outcome = loop {
            let active = self.active.as_mut();
            let active = active.expect("a command is active while its list is read");
            let list = active.list.as_mut();
            let list = list.expect("a list stays until all of it has arrived");
            if let Some(result) = active.end {
                break result;
            }
            if list.segment.1 > 0 {
                let addr = list.segment.0;
                let first = addr & !(BEAT - 1);
                ctx.read_host(timing::LIST, ReadPurpose::RangeList, first, BEAT as u32);
                return;
            }
            match list.walker.step() {
                WalkStep::Data(piece) => list.segment = (piece.addr, piece.len),
                WalkStep::Drop(_) => {}
                WalkStep::NeedList(wanted) => {
                    let first = wanted.addr & !(BEAT - 1);
                    list.segment = (0, 0);
                    ctx.read_host(
                        timing::LIST,
                        ReadPurpose::RangeListPointer,
                        first,
                        BEAT as u32,
                    );
                    return;
                }
                WalkStep::Failed(fault) => break TransferResult::Walk(fault),
                WalkStep::Done => {
                    let bytes = std::mem::take(&mut list.bytes);
                    let namespace = list.namespace;
                    let ranges: Vec<Range> = bytes
                        .chunks_exact(RANGE)
                        .map(|chunk| {
                            let mut bytes = [0; RANGE];
                            bytes.copy_from_slice(chunk);
                            Range::from_bytes(&bytes)
                        })
                        .collect();
                    if !ranges
                        .iter()
                        .all(|r| namespace.holds(r.lba, r.blocks.into()))
                    {
                        break TransferResult::OutOfRange;
                    }
                    active.list = None;
                    active.ranges = ranges
                        .iter()
                        .map(|r| {
                            let addr = (namespace.base + r.lba) * BLOCK_BYTES;
                            (addr, u64::from(r.blocks) * BLOCK_BYTES)
                        })
                        .collect();
                    active.at = active.ranges.front().map_or(0, |range| range.0);
                    self.schedule(ctx.now + timing::WALK, ctx);
                    return;
                }
            }
        };
        self.finish(outcome, data_path, ctx);
    }

    /// Receives a line of the list, or of the PRP list or SGL segment that describes its place.
    pub(crate) fn line_arrived(
        &mut self,
        arrival: &HostReadData,
        data_path: &mut DataPath,
        ctx: &mut SimContext,
    ) {
        let active = self.active.as_mut();
        let active = active.expect("a command is active while its list is read");
        let list = active.list.as_mut();
        let list = list.expect("a list stays until all of it has arrived");
        let of_list = arrival.purpose == ReadPurpose::RangeList;
        match &arrival.data {
            None if of_list => {
                let result = active.end.unwrap_or(TransferResult::HostError);
                self.finish(result, data_path, ctx);
                return;
            }
            None => list.walker.fail(),
            Some(bytes) if of_list => {
                let (addr, left) = list.segment;
                let first = addr & !(BEAT - 1);
                let skip = (addr - first).saturating_sub(arrival.offset.into()) as usize;
                let here = bytes.get(skip..).unwrap_or(&[]);
                let some = (here.len() as u64).min(left);
                list.bytes.extend_from_slice(&here[..some as usize]);
                list.segment = (addr.wrapping_add(some), left - some);
            }
            Some(bytes) => {
                let addr = list.walker.wanted().map_or(0, |wanted| wanted.addr);
                let first = addr & !(BEAT - 1);
                // Data that begins after the requested qwords is used from its start.
                let at = u64::from(arrival.offset);
                let skip = (addr - first).saturating_sub(at) as usize;
                for qword in bytes.get(skip..).unwrap_or(&[]).chunks_exact(8) {
                    let mut word = [0; 8];
                    word.copy_from_slice(qword);
                    list.walker.feed(&[u64::from_le_bytes(word)]);
                }
            }
        }
        if arrival.last {
            ctx.schedule(arrival.cycle + timing::LIST_BACK, Event::RangeListLine);
        }
    }

    /// Continues after a line has arrived.
    pub(crate) fn list_line_done(&mut self, data_path: &mut DataPath, ctx: &mut SimContext) {
        self.next_line(data_path, ctx);
    }
}
