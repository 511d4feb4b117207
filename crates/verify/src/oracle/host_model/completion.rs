// SPDX-License-Identifier: Apache-2.0

//! Completions: each command in flight has one, after its data, with a status that the model
//! permits.

use sim::Time;
use spec::nvme::{admin, status, Cqe, Status};

use super::{HostModel, InFlight};
use crate::oracle::block::WriteOutcome;
use crate::oracle::engine_output::{EngineOutput, Transform};
use crate::oracle::expectation::{CompletionEffect, Direction, MediaUse};
use crate::oracle::model::nvm::comparison;
use crate::BLOCK;
use crate::PAGE;

impl HostModel {
    pub(super) fn complete(&mut self, cqid: u16, addr: u64, data: &[u8]) -> Result<(), String> {
        let Some(queue) = self.cqs.get_mut(&cqid) else {
            return Err(format!(
                "a write to completion queue {cqid}, which was deleted"
            ));
        };
        let entries = queue.entries;
        let index = queue.tail % entries;
        let Ok(bytes) = <[u8; 16]>::try_from(data) else {
            return Err(format!("CQ {cqid}: a write of {} bytes", data.len()));
        };
        if addr != queue.base + 16 * index {
            return Err(format!(
                "CQ {cqid}: a write at {addr:#x}, the next entry is {index}"
            ));
        }
        if queue.tail - queue.rung >= entries - 1 {
            return Err(format!(
                "CQ {cqid}: entry {index} is overwritten before it was consumed"
            ));
        }
        let cqe = Cqe::from_bytes(&bytes);
        let phase = queue.tail / entries % 2 == 0;
        if cqe.phase() != phase || cqe.dw[1] != 0 {
            return Err(format!(
                "CQ {cqid} entry {index}: phase {} or DW1 {:#x} is wrong",
                cqe.phase(),
                cqe.dw[1]
            ));
        }
        queue.tail += 1;
        if let Some(vector) = queue.vector {
            self.messages.completed(vector, self.now);
        }
        self.memory.device_write(addr, data);
        self.wake |= self.watch;
        self.finish(cqid, cqe)
    }

    pub(super) fn finish(&mut self, cqid: u16, cqe: Cqe) -> Result<(), String> {
        let key = (cqe.sqid(), cqe.cid());
        let name = format!("SQ {} CID {:#06x}", key.0, key.1);
        self.note(format!(
            "completed {name}: {:?}, DW0 {:#x}",
            cqe.status(),
            cqe.result()
        ));
        let abortable = self.abort_target() == Some(key) && self.is_waiting_first(key);
        self.compare_again(key);
        self.permit_giving_up(key);
        let Some(active) = self.in_flight.remove(&key) else {
            return Err(format!("{name} is completed, but isn't in flight"));
        };
        let fine = self.check_completion(cqid, &cqe, &active, abortable);
        let sqid = key.0;
        if let Some(fused) = &active.fused {
            self.narrow(fused, cqe.status());
        }
        let firsts = &mut self.model.firsts;
        if firsts.get(&sqid).is_some_and(|half| half.cid() == key.1) {
            firsts.remove(&sqid);
        }
        if let Some(queue) = self.sqs.get_mut(&sqid) {
            let entries = queue.entries;
            let least = queue.head.max(active.position + 1);
            let ahead = (u64::from(cqe.sq_head()) + entries - least % entries) % entries;
            if u64::from(cqe.sq_head()) >= entries || least + ahead > queue.fetched {
                return Err(format!(
                    "{name}: SQHD {} was not fetched yet",
                    cqe.sq_head()
                ));
            }
            queue.head = least + ahead;
        }
        self.counts.completed += 1;
        self.result = cqe.result();
        let set = if sqid == 0 { "admin" } else { "io" };
        let what = cqe.status().bare();
        let outcome = format!("{set} {:02x}h {:03x}h", active.sqe.opcode(), what.0);
        *self.counts.outcomes.entry(outcome).or_default() += 1;
        let success = cqe.status() == status::SUCCESS;
        let after = active.expectation.after;
        if sqid == 0 && active.sqe.opcode() == admin::DOORBELL_BUFFER_CONFIG {
            self.shadow.offered = None;
        }
        if success {
            self.counts.moved_bytes += active.expectation.media_bytes();
        }
        if sqid != 0 && cqe.status() == status::ABORT_REQUESTED {
            self.aborted = Some(key);
        }
        let end = active.expectation.end(cqe.status());
        let begun = active.begun;
        self.release(key, active, end);
        fine.map_err(|e| format!("{name}: {e}"))?;
        self.effect(after, success, key.1, &cqe, begun)
    }

    pub(super) fn check_completion(
        &self,
        cqid: u16,
        cqe: &Cqe,
        active: &InFlight,
        abortable: bool,
    ) -> Result<(), String> {
        let v = &active.expectation;
        let sqid = cqe.sqid();
        if self.sqs.get(&sqid).is_some_and(|q| q.cqid != cqid) {
            return Err(format!("completed to CQ {cqid}, which is another queue's"));
        }
        let mut allowed: Vec<Status> = v.statuses.clone();
        if let (MediaUse::Compare(lba, _, data), None) = (&v.media, &active.fused) {
            // Concurrent writes may have made a difference, or removed one.
            let (same, other) = comparison(*lba, data, None, &self.media);
            if other {
                allowed.push(status::COMPARE_FAILURE.dnr());
            }
            if same && v.clean {
                allowed.push(status::SUCCESS);
            }
        }
        if v.long && self.model.closing {
            allowed.extend(self.model.acre.interrupted());
        }
        if matches!(v.after, CompletionEffect::Formatted(_)) && self.model.closing {
            allowed.extend(self.model.acre.interrupted());
        }
        // Long commands, a fused pair that waits for commands in flight, and commands that wait for
        // the pair.
        let waits = active.fused.is_some() || active.after_pair;
        let can_wait = v.long || waits && !matches!(v.media, MediaUse::None);
        if can_wait && sqid != 0 && !self.model.sqs.contains_key(&sqid) {
            allowed.push(status::ABORTED_SQ_DELETION);
        }
        if abortable || v.long && self.abort_target() == Some((sqid, cqe.cid())) {
            allowed.push(status::ABORT_REQUESTED);
        }
        if !allowed.contains(&cqe.status()) {
            return Err(format!(
                "status {:?}, allowed are {allowed:?}",
                cqe.status()
            ));
        }
        let success = cqe.status() == status::SUCCESS;
        let counted = match v.media {
            MediaUse::Count(lba, count, bounds) => Some((lba, count, bounds)),
            MediaUse::Derive(EngineOutput {
                from,
                count,
                how: Transform::Bitmap(bounds),
                ..
            }) => Some((from, count, bounds)),
            _ => None,
        };
        if let (true, Some((lba, count, bounds))) = (success, counted) {
            let counts = self.media.counts(lba, count, &bounds);
            if !counts.contains(&u64::from(cqe.result())) {
                return Err(format!("counts {} values, not {counts:?}", cqe.result()));
            }
        }
        if let (true, Some(dw0)) = (success, v.dw0) {
            if cqe.result() != dw0 {
                return Err(format!("DW0 is {:#x}, not {dw0:#x}", cqe.result()));
            }
        }
        if let (true, Direction::ToHost(_)) = (success, &v.direction) {
            let all = v.walk.bytes();
            if active.written < all || active.written > all && !active.shared {
                return Err(format!(
                    "completed after {} of {all} bytes of its data",
                    active.written
                ));
            }
        }
        Ok(())
    }

    pub(super) fn effect(
        &mut self,
        after: CompletionEffect,
        success: bool,
        cid: u16,
        cqe: &Cqe,
        begun: Time,
    ) -> Result<(), String> {
        match after {
            CompletionEffect::SqCreated(qid) => {
                if let Some(queue) = self.sqs.get_mut(&qid) {
                    queue.usable = true;
                }
            }
            CompletionEffect::CqCreated(qid) => {
                if let Some(queue) = self.cqs.get_mut(&qid) {
                    queue.usable = true;
                }
            }
            CompletionEffect::SqDeleted(qid, base) => {
                let again = self.sqs.get(&qid).is_some_and(|q| q.base != base);
                if !again && self.in_flight.keys().any(|k| k.0 == qid) {
                    return Err(format!(
                        "SQ {qid} is deleted before its commands have completed"
                    ));
                }
                self.close_sq(qid, base);
            }
            CompletionEffect::CqDeleted(qid, base) => self.close_cq(qid, base),
            CompletionEffect::Event(_) => {
                self.model.waiting.retain(|&c| c != cid);
                if success {
                    let smart = self.model.features.temperature_set();
                    let (kind, info) = (cqe.result() & 7, cqe.result() >> 8 & 0xFF);
                    let cause = match (kind, info) {
                        (0, 0 | 1) => self.bad_doorbells > 0,
                        (1, 1) => smart,
                        _ => false,
                    };
                    if !cause {
                        return Err(format!("an event without a cause: DW0 {:#x}", cqe.result()));
                    }
                }
            }
            CompletionEffect::Abort(aborted) => {
                let gone = !self.model.waiting.contains(&aborted);
                if cqe.result() == 0 && !gone {
                    return Err(format!(
                        "CID {aborted:#06x} is said to be aborted, and still waits"
                    ));
                }
            }
            CompletionEffect::AbortIo(sqid, named) => {
                let done = self.aborted.take();
                let wanted = u32::from(done != Some((sqid, named)));
                if done.is_some_and(|key| key != (sqid, named)) || cqe.result() != wanted {
                    return Err(format!(
                        "an Abort of SQ {sqid} CID {named:#06x} says {:#x}; {done:?} was aborted",
                        cqe.result()
                    ));
                }
            }
            CompletionEffect::Formatted(nsid) => {
                let formatting = &mut self.model.formatting;
                if let Some(at) = formatting.iter().position(|&n| n == nsid) {
                    formatting.remove(at);
                }
            }
            CompletionEffect::Shadow(_) => {
                // The previous pages belong to the host again.
                let newest = self.shadow.opened.pop();
                for pages in std::mem::take(&mut self.shadow.opened) {
                    self.close_shadow(pages);
                }
                self.shadow.opened.extend(newest);
                self.shadow.on = true;
            }
            CompletionEffect::Behavior(new, old) => {
                // Commands that end meanwhile may have been evaluated before.
                if !self.model.closing {
                    self.model.acre = if success { new } else { old };
                }
            }
            CompletionEffect::KeptAlive if success => self.restart_keep_alive(begun),
            CompletionEffect::KeptAlive | CompletionEffect::Nothing => {}
        }
        Ok(())
    }

    pub(super) fn release(&mut self, key: (u16, u16), active: InFlight, end: WriteOutcome) {
        for s in &active.expectation.walk.segments {
            self.unclaim(s.addr / PAGE, key);
        }
        for &(addr, _) in &active.expectation.walk.lists {
            self.unclaim(addr / PAGE, key);
        }
        if let Some((lba, count)) = active.expectation.list {
            self.media.end_read(lba, count);
        }
        match &active.expectation.media {
            MediaUse::None => {}
            MediaUse::Read(lba, count) => {
                self.media.end_read(*lba, *count);
                if let (WriteOutcome::Whole, Some(scoreboard)) = (end, &active.scoreboard) {
                    scoreboard.learn(&mut self.media);
                }
            }
            MediaUse::Compare(lba, count, _) | MediaUse::Count(lba, count, _) => {
                self.media.end_read(*lba, *count)
            }
            MediaUse::Write(lba, data) => {
                let count = (data.len() as u64).div_ceil(BLOCK);
                self.media.end_write(active.user, *lba, count, end);
            }
            MediaUse::Derive(_) => self.media.end_derive(active.user, end),
            MediaUse::WriteUnknown(parts) => parts.iter().for_each(|part| {
                self.media
                    .end_unknown_write(active.user, part.0, part.1, end)
            }),
            MediaUse::Zero(ranges) => ranges
                .iter()
                .for_each(|r| self.media.end_write(active.user, r.0, r.1, end)),
        }
        self.free_pages(active.pages);
    }

    pub(super) fn unclaim(&mut self, page: u64, key: (u16, u16)) {
        if let Some(places) = self.places.get_mut(&page) {
            places.retain(|p| p.key != key);
            if places.is_empty() {
                self.places.remove(&page);
            }
        }
    }
}
