// SPDX-License-Identifier: Apache-2.0

//! Walks over the ranges of a command (nvme_range_walk).
//!
//! Ranges of fewer than [`FILL_BLOCKS`] blocks pass the movers, 4 KiB at a time. Longer ones are
//! filled by the memories, a region at a time.

use nvme::BLOCK_BYTES;

use crate::context::{Event, SimContext};
use crate::host_port::BEAT;
use crate::memory::Memories;

use super::super::timing;
use super::fill::MemoryFill;
use super::ranges::RangeWalker;
use super::{DataPath, TransferResult, SEGMENT_BYTES};

/// Ranges of at least this many blocks are filled by the memories.
const FILL_BLOCKS: u64 = 128;

impl RangeWalker {
    /// Continues the active command while movers and memories have room.
    pub(crate) fn walk(&mut self, data_path: &mut DataPath, ctx: &mut SimContext) {
        self.planned = None;
        if self.active.is_none() {
            let Some(queued) = self.waiting.pop_front() else {
                return;
            };
            self.begin(queued, data_path, ctx);
        }
        loop {
            let Some(active) = &mut self.active else {
                return;
            };
            if active.fill.is_some() {
                return;
            }
            if let Some(result) = active.end {
                if active.list.is_some() {
                    return;
                }
                self.finish(result, data_path, ctx);
                return;
            }
            if active.list.is_some() {
                return;
            }
            let Some(&(addr, bytes)) = active.ranges.front() else {
                self.finish(TransferResult::Ok, data_path, ctx);
                return;
            };
            let left = addr + bytes - active.at;
            if left == 0 {
                active.ranges.pop_front();
                active.at = active.ranges.front().map_or(0, |range| range.0);
                continue;
            }
            // A fill bypasses the conflict filter, so a device with one has none.
            if !active.verify && ctx.filter.is_none() && bytes / BLOCK_BYTES >= FILL_BLOCKS {
                let part = left.min(self.region - active.at % self.region);
                self.fills += 1;
                let lines = part.div_ceil(BEAT * self.channels);
                let cycles = (lines * self.line_cycles).div_ceil(256).max(1) + timing::WRITE_ISSUE;
                active.fill = Some(MemoryFill {
                    number: self.fills,
                    since: ctx.now,
                    addr: active.at,
                    bytes: part,
                    cycles,
                });
                ctx.schedule_after(cycles, Event::FillDone(self.fills));
                return;
            }
            let part = left.min(SEGMENT_BYTES - active.at % SEGMENT_BYTES);
            if !data_path.push_range_segment(active.slot, active.at, part as u32, ctx) {
                return; // it is called again when there is room
            }
            active.at += part;
        }
    }

    /// A fill of the memories is complete.
    pub(crate) fn fill_done(
        &mut self,
        number: u32,
        data_path: &mut DataPath,
        ctx: &mut SimContext,
    ) {
        // The fill may have been stopped, and the command may have ended.
        let Some(active) = &mut self.active else {
            return;
        };
        let Some(fill) = active.fill.filter(|fill| fill.number == number) else {
            return;
        };
        debug_assert!(ctx.now >= fill.since + fill.cycles);
        active.fill = None;
        active.at += fill.bytes;
        if !ctx.memory.zero(fill.addr, fill.bytes) {
            self.finish(TransferResult::WriteFault, data_path, ctx);
            return;
        }
        self.walk(data_path, ctx);
    }

    /// Applies the completed part of a fill when the function is reset or the power fails.
    pub(crate) fn apply_partial_fill(&self, now: u64, memory: &mut Memories) {
        if let Some(fill) = self.active.as_ref().and_then(|active| active.fill) {
            memory.zero(fill.addr, fill.done(now, self.line_cycles, self.channels));
        }
    }
}
