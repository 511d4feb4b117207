// SPDX-License-Identifier: Apache-2.0

//! Admin commands (NVMe 1.4, chapter 5), one at a time (nvme_admin).

use std::sync::Arc;

use nvme::feature::FeatureRequest;
use nvme::format::Format;
use nvme::log::GetLogPage;
use nvme::{WalkStep, Walker, BLOCK_BYTES};
use spec::nvme::{admin, status, Priority, Sqe, Status, ALL_NAMESPACES, PAGE_BYTES};

use crate::context::{Event, SimContext};
use crate::host_port::{HostReadData, ReadPurpose, BEAT};

use super::data_path::{self, DataRequest, DataSource, TransferOp, TransferResult};
use super::features::{FeatureData, FeatureOutcome};
use super::queues::{Completion, Submission};
use super::range_walk::RangeOp;
use super::{error_log, identify, logs, timing, Controller};

/// Doorbell Buffer Config.
const DOORBELL_BUFFER_CONFIG: u8 = 0x7C;
/// Blocks that a format zeroes with one range walk.
const FORMAT_BLOCKS: u64 = 65536;
/// Cycles in which an Abort compares one slot.
const ABORT_SCAN_STEP: u64 = 2;

/// Data of a Set Features that is read from the host.
struct HostDataFetch {
    what: FeatureData,
    /// Segments of host pages: address, bytes, offset.
    segments: Vec<(u64, u32, u32)>,
    received: Vec<u32>,
    bytes: Vec<u8>,
    /// Reads that are not complete.
    open: usize,
    failed: bool,
}

/// Progress of a Format NVM.
struct FormatProgress {
    /// Namespaces that are left, and all of the command, with namespace 1 in the lowest bit.
    left: u32,
    all: u32,
    /// Blocks of the present namespace that are left: first, end.
    from: u64,
    to: u64,
    /// A range walk is in progress.
    transfer_active: bool,
}

/// The state of the admin command in progress.
#[derive(Default)]
enum AdminState {
    #[default]
    Idle,
    /// A page is sent to the host. A log is released after its page.
    Page(Option<u8>),
    HostData(HostDataFetch),
    /// An Abort compares all slots.
    AbortScan {
        sqid: usize,
        cid: u16,
    },
    /// An Abort waits for the end of the command in this slot.
    Aborting {
        slot: u16,
    },
    /// A Delete I/O Submission Queue waits for the queue's commands.
    DeleteQueue {
        qid: usize,
    },
    Format(FormatProgress),
    /// The command has ended. Its entry waits until all EventIdx are written.
    Completing(Status, u32),
}

/// The admin queue's command in progress.
#[derive(Default)]
pub(super) struct Admin {
    /// A command was fetched and has not ended.
    pub(super) pending: bool,
    /// The completion queue has no room for an Asynchronous Event Request.
    pub(super) no_room: bool,
    command: Option<(u16, Sqe)>,
    /// The slot of the command that has just ended.
    completed_slot: Option<u16>,
    /// The link has accepted the entry of the last command.
    pub(super) entry_sent: bool,
    /// The command was started.
    started: bool,
    state: AdminState,
}

impl Admin {
    /// No command is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.command.is_none()
    }

    /// Whether the command in this slot has just ended. True once.
    pub(super) fn take_completed(&mut self, slot: u16) -> bool {
        self.completed_slot
            .take_if(|completed| *completed == slot)
            .is_some()
    }

    /// Namespaces with a format in progress, namespace 1 in the lowest bit.
    pub(super) fn formatting(&self) -> u32 {
        match &self.state {
            AdminState::Format(format) => format.all,
            _ => 0,
        }
    }
}

impl Controller {
    /// Accepts a command of the admin queue.
    pub(super) fn admin_command(&mut self, slot: u16, sqe: Sqe, ctx: &mut SimContext) {
        self.admin.command = Some((slot, sqe));
        self.admin.started = false;
        ctx.schedule_after(timing::ADMIN, Event::Admin);
    }

    /// Reports pending events, then starts the command.
    pub(super) fn admin_step(&mut self, ctx: &mut SimContext) {
        // The next command is fetched after the entry of this one was sent.
        if std::mem::take(&mut self.admin.entry_sent) {
            self.admin.pending = false;
            self.schedule_fetch(1, ctx);
        }
        // Events are also reported between commands.
        if !self.admin.started || self.admin.command.is_none() {
            self.report_events(ctx);
            if let Some((slot, sqe)) = self.admin.command {
                self.admin.started = true;
                self.start_admin(slot, sqe, ctx);
            }
        }
    }

    /// Schedules the admin queue if an event can be reported.
    pub(super) fn wake_admin(&mut self, ctx: &mut SimContext) {
        if self.admin.command.is_none() && self.events.is_due() && !self.admin.no_room {
            ctx.schedule_after(2, Event::Admin);
        }
    }

    fn report_events(&mut self, ctx: &mut SimContext) {
        while self.events.is_due() && !self.admin.no_room && self.accepts_commands() {
            if !self.reserve_admin() {
                self.admin.no_room = true;
                return;
            }
            if let Some((slot, dw0)) = self.events.report() {
                self.complete(slot, status::SUCCESS, dw0, ctx);
            }
        }
    }

    fn reserve_admin(&mut self) -> bool {
        let fetches = self.accepts_commands();
        let queue = self.queues.completion[0].as_mut();
        fetches && queue.is_some_and(Completion::reserve)
    }

    /// Updates events after temperature, thresholds, enabled events or the list of changed
    /// namespaces may have changed.
    pub(super) fn update_events(&mut self, ctx: &mut SimContext) {
        let kelvins = self.logs.smart.temperature();
        self.events
            .update(kelvins, self.features.thresholds(), self.features.events());
        self.events.set_listed(self.logs.changed.has_entries());
        self.wake_admin(ctx);
    }

    fn start_admin(&mut self, slot: u16, sqe: Sqe, ctx: &mut SimContext) {
        if sqe.fuse() != 0 || sqe.psdt() != 0 {
            self.complete_admin(status::INVALID_FIELD.dnr(), 0, ctx);
            return;
        }
        let outcome = match sqe.opcode() {
            admin::IDENTIFY => self.identify_command(slot, &sqe, ctx),
            admin::GET_LOG_PAGE => self.get_log_page(slot, &sqe, ctx),
            admin::CREATE_IO_CQ => self.create_cq(&sqe, ctx),
            admin::CREATE_IO_SQ => self.create_sq(&sqe, ctx),
            admin::DELETE_IO_SQ => self.delete_sq(&sqe, ctx),
            admin::DELETE_IO_CQ => self.delete_cq(&sqe, ctx),
            admin::SET_FEATURES | admin::GET_FEATURES => self.feature(slot, &sqe, ctx),
            admin::ABORT => self.abort(&sqe, ctx),
            admin::ASYNC_EVENT_REQUEST => self.event_request(slot, &sqe, ctx),
            admin::KEEP_ALIVE => Ok(Some(0)),
            admin::FORMAT_NVM => self.format(&sqe, ctx),
            DOORBELL_BUFFER_CONFIG => self.configure_shadow(&sqe, ctx),
            _ => Err(status::INVALID_OPCODE.dnr()),
        };
        match outcome {
            Err(status) => self.complete_admin(status, 0, ctx),
            Ok(Some(dw0)) => self.complete_admin(status::SUCCESS, dw0, ctx),
            Ok(None) => {}
        }
    }

    /// Ends the command in progress. Its entry waits until the host can rely on EventIdx.
    fn complete_admin(&mut self, status: Status, dw0: u32, ctx: &mut SimContext) {
        self.admin.state = AdminState::Completing(status, dw0);
        self.resume_admin(ctx);
    }

    /// Continues the command in progress, if what it waits for has happened.
    pub(super) fn resume_admin(&mut self, ctx: &mut SimContext) {
        match &self.admin.state {
            AdminState::Completing(status, dw0) => {
                if !self.shadow.is_armed() && self.accepts_commands() {
                    return;
                }
                let (status, dw0) = (*status, *dw0);
                let Some((slot, sqe)) = self.admin.command else {
                    return;
                };
                let set = sqe.opcode() == admin::SET_FEATURES
                    && sqe.dw[10] as u8 == spec::nvme::feature::KEEP_ALIVE_TIMER;
                if status.is_success() && (set || sqe.opcode() == admin::KEEP_ALIVE) {
                    self.restart_keep_alive(ctx);
                }
                self.admin.completed_slot = Some(slot);
                self.admin.state = AdminState::Idle;
                self.admin.command = None;
                self.complete(slot, status, dw0, ctx);
                self.wake_admin(ctx);
            }
            AdminState::DeleteQueue { qid } => {
                let qid = *qid;
                let idle = |sq: &Submission| sq.in_flight == 0;
                if self.queues.submission[qid].as_ref().is_none_or(idle) {
                    self.complete_admin(status::SUCCESS, 0, ctx);
                } else {
                    self.abort_queue_commands(qid, ctx);
                }
            }
            AdminState::Format(work) if !work.transfer_active => self.format_step(ctx),
            _ => {}
        }
    }

    /// Ends an Abort whose command's entry was posted.
    pub(super) fn admin_entry_posted(&mut self, slot: u16, status: Status, ctx: &mut SimContext) {
        if matches!(self.admin.state, AdminState::Aborting { slot: of } if of == slot) {
            let aborted = status == status::ABORT_REQUESTED;
            self.complete_admin(status::SUCCESS, u32::from(!aborted), ctx);
        }
    }

    // ---- pages ----

    fn send_page(
        &mut self,
        slot: u16,
        sqe: &Sqe,
        page: Arc<[u8]>,
        bytes: u64,
        log: Option<u8>,
        ctx: &mut SimContext,
    ) {
        self.admin.state = AdminState::Page(log);
        let request = DataRequest {
            op: TransferOp::Read,
            source: DataSource::Page(page),
            walker: Walker::new(sqe, bytes, true),
        };
        self.data_path.start(slot, request, ctx);
    }

    fn identify_command(
        &mut self,
        slot: u16,
        sqe: &Sqe,
        ctx: &mut SimContext,
    ) -> Result<Option<u32>, Status> {
        let w = sqe.dw[10];
        let csi = (sqe.dw[11] >> 24) as u8;
        let page = identify::page(&self.identify, w as u8, sqe.nsid(), (w >> 16) as u16, csi)?;
        self.send_page(slot, sqe, Arc::from(&page[..]), PAGE_BYTES, None, ctx);
        Ok(None)
    }

    fn get_log_page(
        &mut self,
        slot: u16,
        sqe: &Sqe,
        ctx: &mut SimContext,
    ) -> Result<Option<u32>, Status> {
        let request = GetLogPage::of(sqe);
        logs::check(&request)?;
        let now = self.uptime(ctx);
        let page = self.logs.read(&request, self.events.warning(), now);
        let released = (!request.retain).then_some(request.lid);
        self.send_page(slot, sqe, page.into(), request.bytes, released, ctx);
        Ok(None)
    }

    /// Continues the command in progress after its transfer or range walk.
    pub(super) fn admin_transfer_done(
        &mut self,
        slot: u16,
        outcome: TransferResult,
        ctx: &mut SimContext,
    ) {
        let _ = slot;
        match &mut self.admin.state {
            AdminState::Page(log) => {
                if let (Some(lid), TransferResult::Ok) = (*log, outcome) {
                    self.logs.release(lid);
                    self.events.set_listed(self.logs.changed.has_entries());
                    self.events.log_was_read(lid);
                }
                let status = outcome.status(self.features.acre());
                self.complete_admin(status, 0, ctx);
            }
            AdminState::Format(work) => {
                work.transfer_active = false;
                if outcome != TransferResult::Ok {
                    let status = outcome.status(self.features.acre());
                    self.complete_admin(status, 0, ctx);
                } else {
                    self.format_step(ctx);
                }
            }
            _ => {}
        }
    }

    // ---- queues ----

    fn io_qid(&self, qid: u32) -> Option<usize> {
        (1..self.queues.count() as u32)
            .contains(&qid)
            .then_some(qid as usize)
    }

    fn bad_size(&self, sqe: &Sqe) -> bool {
        let size = sqe.dw[10] >> 16;
        size == 0 || size >= self.config.queue_entries
    }

    fn create_cq(&mut self, sqe: &Sqe, ctx: &mut SimContext) -> Result<Option<u32>, Status> {
        let qid = self
            .io_qid(sqe.dw[10] & 0xFFFF)
            .filter(|&q| self.queues.cq(q).is_none());
        let qid = qid.ok_or(status::INVALID_QUEUE_IDENTIFIER.dnr())?;
        if self.bad_size(sqe) || !self.properties.entry_sizes().1 {
            return Err(status::INVALID_QUEUE_SIZE.dnr());
        }
        let (flags, vector) = (sqe.dw[11], (sqe.dw[11] >> 16) as usize);
        if vector >= self.queues.count() {
            return Err(status::INVALID_INTERRUPT_VECTOR.dnr());
        }
        contiguous(sqe)?;
        self.queues.completion[qid] = Some(Completion {
            base: sqe.prp1(),
            size: sqe.dw[10] >> 16,
            head: 0,
            tail: 0,
            reserve: 0,
            phase: true,
            vector: (flags >> 1 & 1 == 1).then_some(vector),
        });
        self.queues.unblock();
        self.shadow.queue_changed(qid, true, true, ctx);
        Ok(Some(0))
    }

    fn create_sq(&mut self, sqe: &Sqe, ctx: &mut SimContext) -> Result<Option<u32>, Status> {
        let qid = self
            .io_qid(sqe.dw[10] & 0xFFFF)
            .filter(|&q| self.queues.sq(q).is_none());
        let qid = qid.ok_or(status::INVALID_QUEUE_IDENTIFIER.dnr())?;
        let cqid = self
            .io_qid(sqe.dw[11] >> 16)
            .ok_or(status::INVALID_QUEUE_IDENTIFIER.dnr())?;
        if self.queues.cq(cqid).is_none() {
            return Err(status::COMPLETION_QUEUE_INVALID.dnr());
        }
        if self.bad_size(sqe) || !self.properties.entry_sizes().0 {
            return Err(status::INVALID_QUEUE_SIZE.dnr());
        }
        contiguous(sqe)?;
        let priority = match sqe.dw[11] >> 1 & 3 {
            0 => Priority::Urgent,
            1 => Priority::High,
            2 => Priority::Medium,
            _ => Priority::Low,
        };
        let queue = Submission::new(sqe.prp1(), sqe.dw[10] >> 16, cqid, priority);
        self.queues.submission[qid] = Some(queue);
        self.shadow.queue_changed(qid, false, true, ctx);
        Ok(Some(0))
    }

    fn delete_sq(&mut self, sqe: &Sqe, ctx: &mut SimContext) -> Result<Option<u32>, Status> {
        let qid = self
            .io_qid(sqe.dw[10] & 0xFFFF)
            .filter(|&q| self.queues.sq(q).is_some());
        let qid = qid.ok_or(status::INVALID_QUEUE_IDENTIFIER.dnr())?;
        if let Some(sq) = &mut self.queues.submission[qid] {
            sq.valid = false;
        }
        self.shadow.queue_changed(qid, false, false, ctx);
        self.admin.state = AdminState::DeleteQueue { qid };
        self.abort_unpaired(ctx);
        self.resume_admin(ctx);
        Ok(None)
    }

    /// Ends those commands of a deleted queue that may take long.
    fn abort_queue_commands(&mut self, qid: usize, ctx: &mut SimContext) {
        let of = |slot: u16, slots: &[Option<super::SlotOwner>]| {
            slots[usize::from(slot)]
                .is_some_and(|owner| owner.decoded && usize::from(owner.qid) == qid)
        };
        self.abort_unpaired(ctx);
        for slot in 0..self.slots.len() as u16 {
            if of(slot, &self.slots) {
                self.range_walker
                    .abort(slot, true, &mut self.data_path, ctx);
                self.abort_offloaded(slot, Some(true), ctx);
            }
        }
        let slots = self.slots.clone();
        for slot in self.fused_arbiter.abort_waiting(|slot| of(slot, &slots)) {
            self.complete(slot, status::ABORTED_SQ_DELETION, 0, ctx);
        }
        self.start_commands(ctx);
    }

    fn delete_cq(&mut self, sqe: &Sqe, ctx: &mut SimContext) -> Result<Option<u32>, Status> {
        let qid = self
            .io_qid(sqe.dw[10] & 0xFFFF)
            .filter(|&q| self.queues.cq(q).is_some());
        let qid = qid.ok_or(status::INVALID_QUEUE_IDENTIFIER.dnr())?;
        let uses = |sq: &Submission| sq.valid && sq.cqid == qid;
        if self.queues.submission.iter().flatten().any(uses) {
            return Err(status::INVALID_QUEUE_DELETION.dnr());
        }
        if let Some(vector) = self.queues.completion[qid].take().and_then(|cq| cq.vector) {
            // A deleted queue withdraws its pending interrupt.
            if self.queues_of_vector(vector) == 0 {
                self.coalescer.withdraw(vector, ctx);
            }
        }
        self.shadow.queue_changed(qid, true, false, ctx);
        Ok(Some(0))
    }

    fn configure_shadow(&mut self, sqe: &Sqe, ctx: &mut SimContext) -> Result<Option<u32>, Status> {
        let (shadow, event_idx) = (sqe.prp1(), sqe.prp2());
        if shadow % PAGE_BYTES != 0 || event_idx % PAGE_BYTES != 0 {
            return Err(status::INVALID_FIELD.dnr());
        }
        self.shadow.configure(shadow, event_idx, &self.queues, ctx);
        Ok(Some(0))
    }

    // ---- features ----

    fn feature(
        &mut self,
        slot: u16,
        sqe: &Sqe,
        ctx: &mut SimContext,
    ) -> Result<Option<u32>, Status> {
        let request = FeatureRequest::of(sqe);
        let (w10, w11, nsid) = (request.cdw10, request.cdw11, request.nsid);
        let now = self.uptime(ctx);
        let outcome = match request.set {
            true => self.features.set(w10, w11, nsid, self.queues.any_io())?,
            false => self.features.get(w10, w11, nsid, now)?,
        };
        if request.set {
            self.update_events(ctx);
            ctx.schedule_after(1, Event::Coalescing);
        }
        match outcome {
            FeatureOutcome::Done(dw0) => Ok(Some(dw0)),
            FeatureOutcome::KeepAlive => Ok(Some(0)),
            FeatureOutcome::SendsData(data) => {
                let bytes = data.len() as u64;
                self.send_page(slot, sqe, data.into(), bytes, None, ctx);
                Ok(None)
            }
            FeatureOutcome::NeedsData(what) => self.fetch_host_data(sqe, what, ctx).map(|()| None),
        }
    }

    /// Reads the data of a Set Features.
    fn fetch_host_data(
        &mut self,
        sqe: &Sqe,
        what: FeatureData,
        ctx: &mut SimContext,
    ) -> Result<(), Status> {
        let bytes = what.bytes();
        let mut walker = Walker::new(sqe, bytes, false);
        let mut segments = Vec::new();
        loop {
            match walker.step() {
                WalkStep::Data(piece) => {
                    segments.push((piece.addr, piece.len as u32, piece.offset as u32))
                }
                WalkStep::Failed(fault) => return Err(fault.status()),
                _ => break,
            }
        }
        for (n, &(addr, len, _)) in (0..).zip(&segments) {
            let skip = addr % BEAT;
            let whole = ((skip + u64::from(len)).next_multiple_of(BEAT) - skip) as u32;
            ctx.read_host(timing::LIST, ReadPurpose::AdminData(n), addr, whole);
        }
        self.admin.state = AdminState::HostData(HostDataFetch {
            what,
            received: vec![0; segments.len()],
            open: segments.len(),
            segments,
            bytes: vec![0; bytes as usize],
            failed: false,
        });
        Ok(())
    }

    /// Receives data of a Set Features.
    pub(super) fn accept_admin_data(
        &mut self,
        piece: u8,
        arrival: &HostReadData,
        ctx: &mut SimContext,
    ) {
        let AdminState::HostData(fetch) = &mut self.admin.state else {
            return;
        };
        let (_, len, offset) = fetch.segments[usize::from(piece)];
        let received = &mut fetch.received[usize::from(piece)];
        match &arrival.data {
            None => fetch.failed = true,
            Some(data) => {
                let some = data.len().min((len - *received) as usize);
                let at = (offset + *received) as usize;
                fetch.bytes[at..at + some].copy_from_slice(&data[..some]);
                *received += some as u32;
            }
        }
        if !arrival.last {
            return;
        }
        fetch.failed |= *received < len;
        fetch.open -= 1;
        if fetch.open > 0 {
            return;
        }
        let AdminState::HostData(fetch) = std::mem::take(&mut self.admin.state) else {
            return;
        };
        let outcome = match (fetch.failed, fetch.what) {
            (true, _) => Err(status::DATA_TRANSFER_ERROR),
            (false, FeatureData::Behavior) => self.features.set_behavior(fetch.bytes[0]),
            (false, FeatureData::Timestamp) => {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&fetch.bytes);
                let now = self.uptime(ctx);
                self.features.set_timestamp(bytes, now);
                Ok(())
            }
        };
        self.complete_admin(outcome.err().unwrap_or(status::SUCCESS), 0, ctx);
    }

    // ---- Abort, events ----

    fn abort(&mut self, sqe: &Sqe, ctx: &mut SimContext) -> Result<Option<u32>, Status> {
        let (sqid, cid) = (usize::from(sqe.dw[10] as u16), (sqe.dw[10] >> 16) as u16);
        if sqid == 0 {
            // Without room for the entry of the request the Abort has no effect.
            if !self.events.is_parked(cid) || !self.reserve_admin() {
                return Ok(Some(1));
            }
            if let Some(slot) = self.events.abort(cid) {
                self.complete(slot, status::ABORT_REQUESTED, 0, ctx);
            }
            return Ok(Some(0));
        }
        if self.queues.sq(sqid.min(self.queues.count())).is_none() {
            return Ok(Some(1));
        }
        self.admin.state = AdminState::AbortScan { sqid, cid };
        ctx.schedule_after(ABORT_SCAN_STEP * self.slots.len() as u64, Event::AbortScan);
        Ok(None)
    }

    /// Compares the slots with the command that an Abort names.
    pub(super) fn abort_scan_done(&mut self, ctx: &mut SimContext) {
        let AdminState::AbortScan { sqid, cid } = self.admin.state else {
            return;
        };
        let named = |owner: &Option<super::SlotOwner>| {
            owner.is_some_and(|o| o.decoded && usize::from(o.qid) == sqid && o.cid == cid)
        };
        let slots = (0..).zip(&self.slots).filter(|(_, owner)| named(owner));
        let slots: Vec<u16> = slots.map(|(slot, _)| slot).collect();
        for slot in slots {
            self.admin.state = AdminState::Aborting { slot };
            let found = self
                .range_walker
                .abort(slot, false, &mut self.data_path, ctx)
                || self.abort_offloaded(slot, Some(false), ctx)
                || self.abort_first(sqid, slot, ctx);
            if found {
                return;
            }
        }
        self.complete_admin(status::SUCCESS, 1, ctx);
    }

    fn event_request(
        &mut self,
        slot: u16,
        sqe: &Sqe,
        ctx: &mut SimContext,
    ) -> Result<Option<u32>, Status> {
        self.events.park(sqe.cid(), slot)?;
        // A parked request returns its reserved entry.
        if let Some(cq) = &mut self.queues.completion[0] {
            cq.unreserve();
        }
        self.admin.command = None;
        self.admin.state = AdminState::Idle;
        self.admin.pending = false;
        self.queues.unblock();
        self.wake_admin(ctx);
        self.slot_retired(ctx);
        Ok(None)
    }

    // ---- Keep Alive ----

    fn restart_keep_alive(&mut self, ctx: &mut SimContext) {
        let ms = u64::from(self.features.keep_alive());
        self.keep_alive =
            (ms > 0 && self.accepts_commands()).then(|| ctx.now + ctx.cycles_of_ms(ms));
        if let Some(deadline) = self.keep_alive {
            ctx.schedule(deadline, Event::KeepAlive);
        }
    }

    /// Checks the Keep Alive Timeout.
    pub(super) fn expire_keep_alive(&mut self, ctx: &mut SimContext) {
        if self.keep_alive.is_some_and(|deadline| deadline <= ctx.now) && self.accepts_commands() {
            self.keep_alive = None;
            self.logs.errors.record(error_log::ErrorCause::KeepAlive);
            self.raise_fatal(ctx);
        }
    }

    // ---- Format NVM ----

    fn format(&mut self, sqe: &Sqe, ctx: &mut SimContext) -> Result<Option<u32>, Status> {
        let format = Format::of(sqe);
        let namespaces = &self.config.namespaces;
        let all = match format.nsid {
            ALL_NAMESPACES => namespaces
                .active()
                .fold(0, |bits, n| bits | 1 << (n.nsid - 1)),
            nsid => {
                let namespace = namespaces
                    .get(nsid)
                    .ok_or(status::INVALID_NAMESPACE_OR_FORMAT.dnr())?;
                if !namespace.is_active() {
                    return Err(status::INVALID_FIELD.dnr());
                }
                1 << (nsid - 1)
            }
        };
        if format.lbaf != 0 {
            return Err(status::INVALID_FORMAT.dnr());
        }
        match format.pi {
            0 => {}
            1..=3 => return Err(status::INVALID_FORMAT.dnr()),
            _ => return Err(status::INVALID_FIELD.dnr()),
        }
        if format.ses > 1 {
            return Err(status::INVALID_FIELD.dnr());
        }
        self.admin.state = AdminState::Format(FormatProgress {
            left: all,
            all,
            from: 0,
            to: 0,
            transfer_active: false,
        });
        self.format_step(ctx);
        Ok(None)
    }

    /// Namespaces with commands in flight, namespace 1 in the lowest bit.
    fn namespaces_in_flight(&self) -> u32 {
        let in_flight = self
            .slots
            .iter()
            .flatten()
            .filter_map(|owner| owner.in_flight);
        in_flight.fold(0, |bits, nsid| bits | 1 << (nsid - 1))
    }

    fn format_step(&mut self, ctx: &mut SimContext) {
        let (stopped, namespaces_in_flight) =
            (!self.accepts_commands(), self.namespaces_in_flight());
        let acre = self.features.acre();
        let Some((slot, _)) = self.admin.command else {
            return;
        };
        let AdminState::Format(work) = &mut self.admin.state else {
            return;
        };
        let started = work.left != work.all || work.to > 0;
        if !started && namespaces_in_flight & work.all != 0 {
            return;
        }
        if work.from == work.to {
            if work.left == 0 {
                self.complete_admin(status::SUCCESS, 0, ctx);
                return;
            }
            let nsid = work.left.trailing_zeros() + 1;
            work.left &= work.left - 1;
            if let Some(namespace) = self.config.namespaces.get(nsid) {
                (work.from, work.to) = (namespace.base, namespace.base + namespace.blocks);
            }
        }
        if stopped {
            self.complete_admin(data_path::interrupted(acre), 0, ctx);
            return;
        }
        let blocks = (work.to - work.from).min(FORMAT_BLOCKS);
        let addr = work.from * BLOCK_BYTES;
        work.from += blocks;
        work.transfer_active = true;
        self.start_range_op(
            slot,
            TransferOp::Zero,
            RangeOp::Zero(addr, blocks * BLOCK_BYTES),
            ctx,
        );
    }

    /// Ends the command in progress after commands are not fetched any more.
    pub(super) fn admin_disabled(&mut self, ctx: &mut SimContext) {
        // A format that has not started waits for commands in flight and ends then.
        self.resume_admin(ctx);
    }
}

impl Submission {
    pub(super) fn new(base: u64, size: u32, cqid: usize, priority: Priority) -> Submission {
        Submission {
            valid: true,
            base,
            size,
            cqid,
            priority,
            tail: 0,
            head: 0,
            arrived: 0,
            in_flight: 0,
            blocked: false,
        }
    }
}

/// Checks that a queue is physically contiguous and begins at a page.
fn contiguous(sqe: &Sqe) -> Result<(), Status> {
    if sqe.dw[11] & 1 == 0 {
        return Err(status::INVALID_FIELD.dnr());
    }
    if sqe.prp1() % PAGE_BYTES != 0 {
        return Err(status::PRP_OFFSET_INVALID.dnr());
    }
    Ok(())
}
