// SPDX-License-Identifier: Apache-2.0

//! Admin commands (NVMe 1.4, chapter 5), one at a time (nvme_admin).

mod abort;
mod admin_data_in;
mod format;
mod keep_alive;

use std::sync::Arc;

use nvme::feature::FeatureRequest;
use nvme::log::GetLogPage;
use nvme::Walker;
use spec::nvme::{admin, status, Priority, Sqe, Status, PAGE_BYTES};

use crate::context::{Event, SimContext};

use super::data_path::{DataRequest, DataSource, TransferOp, TransferResult};
use super::features::FeatureOutcome;
use super::queues::{Completion, Submission};
use super::{identify, logs, timing, Controller};

use admin_data_in::HostDataFetch;
use format::FormatProgress;

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

    /// The slot and the entry of the command in progress.
    fn in_progress(&self) -> (u16, Sqe) {
        self.command
            .expect("a state other than idle is that of a command")
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
            let report = self.events.report();
            let (slot, dw0) = report.expect("an event and a request are available");
            self.complete(slot, status::SUCCESS, dw0, ctx);
        }
    }

    pub(super) fn reserve_admin(&mut self) -> bool {
        self.accepts_commands() && self.queues.cq_mut(0).reserve()
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
            admin::DOORBELL_BUFFER_CONFIG if self.config.doorbell_buffer => {
                self.configure_shadow(&sqe, ctx)
            }
            _ => Err(status::INVALID_OPCODE.dnr()),
        };
        match outcome {
            Err(status) => self.complete_admin(status, 0, ctx),
            Ok(Some(dw0)) => self.complete_admin(status::SUCCESS, dw0, ctx),
            Ok(None) => {}
        }
    }

    /// Ends the command in progress. Its entry waits until the host can rely on EventIdx.
    pub(super) fn complete_admin(&mut self, status: Status, dw0: u32, ctx: &mut SimContext) {
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
                let (slot, sqe) = self.admin.in_progress();
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
                if self.queues.sq_mut(qid).in_flight == 0 {
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
    pub(super) fn admin_transfer_done(&mut self, outcome: TransferResult, ctx: &mut SimContext) {
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
            _ => unreachable!("only pages and formats have transfers"),
        }
    }

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
        self.queues.sq_mut(qid).valid = false;
        self.shadow.queue_changed(qid, false, false, ctx);
        self.admin.state = AdminState::DeleteQueue { qid };
        self.abort_unpaired(ctx);
        self.resume_admin(ctx);
        Ok(None)
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

    fn event_request(
        &mut self,
        slot: u16,
        sqe: &Sqe,
        ctx: &mut SimContext,
    ) -> Result<Option<u32>, Status> {
        self.events.park(sqe.cid(), slot)?;
        // A parked request returns its reserved entry.
        self.queues.cq_mut(0).unreserve();
        self.admin.command = None;
        self.admin.state = AdminState::Idle;
        self.admin.pending = false;
        self.queues.unblock();
        self.wake_admin(ctx);
        self.slot_retired(ctx);
        Ok(None)
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
