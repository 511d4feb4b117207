// SPDX-License-Identifier: Apache-2.0

//! Dispatch of fetched commands: to the data path, an engine or the admin queue (nvme_dispatch).

use sim::TraceEvent;
use spec::nvme::{io, status, Sqe};

use crate::context::{Event, SimContext};

use super::data_path::{RangeOp, TransferOp, TransferResult};
use super::decode::{self, DataCommand, DataWork, Decoded};
use super::engines::{OffloadState, OffloadedCommand};
use super::fetch::EntryFetch;
use super::fused_arbiter::ArbiterAction;
use super::smart::IoCount;
use super::{timing, Controller, EngineCommand};

impl Controller {
    /// Decodes entries in the order of their fetches, one a cycle.
    pub(crate) fn decode(&mut self, ctx: &mut SimContext) {
        while let Some(entry) = self.fetching.front() {
            let Some(arrived) = entry.arrival else {
                return;
            };
            let at = self.decode_at.max(arrived + timing::DECODE);
            if at > ctx.now {
                ctx.schedule(at, Event::Decode);
                return;
            }
            self.decode_at = ctx.now + 1;
            let entry = self.fetching.pop_front();
            self.decode_entry(entry.expect("it is the first one"), ctx);
        }
    }

    pub(super) fn decode_entry(&mut self, entry: EntryFetch, ctx: &mut SimContext) {
        let (qid, slot) = (usize::from(entry.qid), entry.slot);
        self.queues.sq_mut(qid).arrived = entry.head;
        self.schedule_fetch(1, ctx);
        if entry.failed {
            ctx.trace(ctx.now, || TraceEvent::Sent {
                slot: slot as u8,
                addr: 0,
                entry: [0; 16],
                vector: None,
            });
            self.retire(slot);
            self.raise_fatal(ctx);
            return;
        }
        let sqe = Sqe::from_bytes(&entry.bytes);
        ctx.trace(ctx.now, || TraceEvent::Decoded {
            slot: slot as u8,
            queue: qid as u16,
            cid: sqe.cid(),
            opcode: sqe.opcode(),
            nsid: sqe.nsid(),
            cdw: [10, 11, 12].map(|n| sqe.dw[n]),
        });
        let owner = self.owner(slot);
        owner.decoded = true;
        (owner.cid, owner.nsid) = (sqe.cid(), sqe.nsid());
        let has_lba = qid != 0 && decode::has_lba(sqe.opcode());
        owner.lba = if has_lba { sqe.slba() } else { 0 };
        if qid == 0 {
            self.admin_command(slot, sqe, ctx);
            return;
        }
        let route = self.routes[usize::from(sqe.opcode())];
        let formatting = self.admin.formatting();
        let decoded = decode::validate(slot, &sqe, &self.config.namespaces, formatting, route);
        if sqe.fuse() != 0 || self.fused.has_first(qid) {
            self.fused_command(qid, slot, sqe, entry.more, decoded, ctx);
        } else {
            self.execute(slot, sqe, decoded, ctx);
        }
    }

    /// Executes an I/O command that is not part of a fused pair.
    pub(super) fn execute(&mut self, slot: u16, sqe: Sqe, decoded: Decoded, ctx: &mut SimContext) {
        match decoded {
            Decoded::Complete(status) => self.complete(slot, status, 0, ctx),
            Decoded::Data(command) => {
                self.mark_in_flight(slot, command.span.namespace);
                self.fused_arbiter.submit(command);
                self.start_commands(ctx);
            }
            Decoded::Engine(route) => {
                self.mark_in_flight(slot, sqe.nsid());
                let namespace = self.config.namespaces.get(sqe.nsid());
                let namespace = namespace.expect("decoding has found the namespace");
                self.offloaded[usize::from(slot)] = Some(OffloadedCommand {
                    engine: route.engine,
                    command: EngineCommand {
                        slot,
                        command: route.command,
                        base: namespace.base,
                        blocks: namespace.blocks,
                        sqe,
                    },
                    state: OffloadState::Waiting,
                    abort: None,
                    stop_requested: false,
                });
                self.dispatch_to_engine(slot, ctx);
            }
        }
    }

    /// Starts the data commands that the fused arbiter releases.
    pub(super) fn start_commands(&mut self, ctx: &mut SimContext) {
        while let Some(next) = self.fused_arbiter.next_action() {
            match next {
                ArbiterAction::Start(command) => self.start(&command, ctx),
                ArbiterAction::Fail(slot) => {
                    self.complete(slot, status::ABORTED_FAILED_FUSED.dnr(), 0, ctx)
                }
            }
        }
    }

    pub(super) fn start(&mut self, command: &DataCommand, ctx: &mut SimContext) {
        let slot = command.slot as u8;
        ctx.trace(ctx.now, || TraceEvent::Started { slot });
        let now = self.uptime(ctx);
        self.logs.smart.started(now);
        let blocks = command.span.blocks;
        let counts = match command.sqe.opcode() {
            io::READ | io::COMPARE | io::VERIFY => IoCount::Read(blocks),
            io::WRITE => IoCount::Write(blocks),
            _ => IoCount::None,
        };
        self.owner(command.slot).counts = counts;
        match command.data_work(&self.config.namespaces) {
            DataWork::Transfer(request) => self.data_path.start(command.slot, request, ctx),
            DataWork::RangeWalk(op, range) => self.start_range_op(command.slot, op, range, ctx),
        }
    }

    pub(super) fn start_range_op(
        &mut self,
        slot: u16,
        op: TransferOp,
        range: RangeOp,
        ctx: &mut SimContext,
    ) {
        self.data_path.open_range_op(slot, op);
        if self.accepts_commands() {
            self.range_walker.start(slot, range, ctx);
        } else {
            self.data_path
                .range_walk_done(slot, TransferResult::Interrupted, ctx);
        }
    }

    /// Ends the command of a transfer that is complete.
    pub(crate) fn transfer_done(&mut self, slot: u16, ctx: &mut SimContext) {
        let outcome = self.data_path.take_result(slot);
        let owner = *self.owner(slot);
        ctx.trace(ctx.now, || TraceEvent::Done { slot: slot as u8 });
        if owner.qid == 0 {
            self.admin_transfer_done(outcome, ctx);
            return;
        }
        let answer = outcome.status(self.features.acre());
        let now = self.uptime(ctx);
        self.logs.smart.ended(owner.counts, answer, now);
        self.fused_arbiter.ended(slot, outcome);
        self.complete(slot, answer, 0, ctx);
        self.start_commands(ctx);
        self.resume_admin(ctx);
    }
}
