//! Admin commands (NVMe 1.4, chapter 5), one at a time (nvme_admin).

use std::sync::Arc;

use nvme::feature::Request as FeatureRequest;
use nvme::format::Format;
use nvme::log::GetLogPage;
use nvme::{Step, Walker, BLOCK_BYTES};
use spec::nvme::{admin, status, Priority, Sqe, Status, ALL_NAMESPACES, PAGE_BYTES};

use crate::cx::{Cx, Event};
use crate::port::{Arrival, Purpose, BEAT};

use super::data::{self, Op, Outcome, Request, Source};
use super::features::{FeatureData, FeatureOutcome};
use super::queues::{Completion, Submission};
use super::zero::What;
use super::{error_log, identify, logs, timing, Controller};

/// Doorbell Buffer Config.
const DOORBELL_BUFFER_CONFIG: u8 = 0x7C;
/// Blocks that a format zeroes with one data command.
const FORMAT_BLOCKS: u64 = 65536;
/// Cycles in which an Abort looks at a slot.
const ABORT_STEP: u64 = 2;

/// Data that a command brings along.
struct Take {
    what: FeatureData,
    /// Pieces of host pages: address, bytes, where they begin.
    pieces: Vec<(u64, u32, u32)>,
    got: Vec<u32>,
    bytes: Vec<u8>,
    /// Reads that are not over.
    open: usize,
    failed: bool,
}

/// A Format NVM.
struct FormatWork {
    /// Namespaces, 1 in the lowest bit, that are left, and all of them.
    left: u32,
    all: u32,
    /// Blocks of the present one: from, to.
    from: u64,
    to: u64,
    /// A data command is under way.
    moving: bool,
}

/// What the present command waits for.
#[derive(Default)]
enum Doing {
    #[default]
    Nothing,
    /// A page goes to the host: the log that is released with it.
    Page(Option<u8>),
    Take(Take),
    /// An Abort looks through the slots.
    Abort {
        sqid: usize,
        cid: u16,
    },
    /// The end of the command in this slot.
    Aborting {
        slot: u16,
    },
    /// The commands of a submission queue that is deleted.
    Drain {
        qid: usize,
    },
    Format(FormatWork),
    /// It is over, but for the EventIdx of doorbells.
    Over(Status, u32),
}

/// The admin queue's present command.
#[derive(Default)]
pub(super) struct Admin {
    /// A command has been fetched that is not over.
    pub(super) pending: bool,
    /// There was no room in the completion queue for a parked command.
    pub(super) no_room: bool,
    command: Option<(u16, Sqe)>,
    /// The slot of the last one that was over.
    over: Option<u16>,
    /// It has begun.
    begun: bool,
    doing: Doing,
}

impl Admin {
    /// No command is in its hands.
    pub(super) fn is_idle(&self) -> bool {
        self.command.is_none()
    }

    /// The command in this slot is over, and its entry is about to go into the line.
    pub(super) fn is_over(&mut self, slot: u16) -> bool {
        self.over.take_if(|over| *over == slot).is_some()
    }

    /// Namespaces that are being formatted, namespace 1 in the lowest bit.
    pub(super) fn formatting(&self) -> u32 {
        match &self.doing {
            Doing::Format(format) => format.all,
            _ => 0,
        }
    }
}

impl Controller {
    /// An entry of the admin queue has come.
    pub(super) fn admin_command(&mut self, slot: u16, sqe: Sqe, cx: &mut Cx) {
        self.admin.command = Some((slot, sqe));
        self.admin.begun = false;
        cx.after(timing::ADMIN, Event::Admin);
    }

    /// Events that are due are reported, then the command goes on.
    pub(super) fn admin_go_on(&mut self, cx: &mut Cx) {
        // The next one is fetched when nothing of this one's can be seen behind it.
        if std::mem::take(&mut cx.port.admin_sent) {
            self.admin.pending = false;
            self.kick_fetch(1, cx);
        }
        // Between two commands, too: an event does not wait for the next one.
        if !self.admin.begun || self.admin.command.is_none() {
            self.report_events(cx);
            if let Some((slot, sqe)) = self.admin.command {
                self.admin.begun = true;
                self.begin(slot, sqe, cx);
            }
        }
    }

    /// Something has happened that events, or a command that waits, may be about.
    pub(super) fn admin_next(&mut self, cx: &mut Cx) {
        if self.admin.command.is_none() && self.events.is_due() && !self.admin.no_room {
            cx.after(2, Event::Admin);
        }
    }

    fn report_events(&mut self, cx: &mut Cx) {
        while self.events.is_due() && !self.admin.no_room && self.fetches() {
            if !self.reserve_admin() {
                self.admin.no_room = true;
                return;
            }
            if let Some((slot, dw0)) = self.events.report() {
                self.complete(slot, status::SUCCESS, dw0, cx);
            }
        }
    }

    fn reserve_admin(&mut self) -> bool {
        let fetches = self.fetches();
        let queue = self.queues.completion[0].as_mut();
        fetches && queue.is_some_and(Completion::reserve)
    }

    /// Temperature thresholds, enabled events or the list of changed namespaces may have changed.
    pub(super) fn look_at_events(&mut self, cx: &mut Cx) {
        let kelvins = self.logs.smart.temperature();
        self.events
            .update(kelvins, self.features.thresholds(), self.features.events());
        self.events.set_listed(self.logs.changed.any());
        self.admin_next(cx);
    }

    fn begin(&mut self, slot: u16, sqe: Sqe, cx: &mut Cx) {
        if sqe.fuse() != 0 || sqe.psdt() != 0 {
            self.admin_over(status::INVALID_FIELD.dnr(), 0, cx);
            return;
        }
        let outcome = match sqe.opcode() {
            admin::IDENTIFY => self.identify_command(slot, &sqe, cx),
            admin::GET_LOG_PAGE => self.get_log_page(slot, &sqe, cx),
            admin::CREATE_IO_CQ => self.create_cq(&sqe, cx),
            admin::CREATE_IO_SQ => self.create_sq(&sqe, cx),
            admin::DELETE_IO_SQ => self.delete_sq(&sqe, cx),
            admin::DELETE_IO_CQ => self.delete_cq(&sqe, cx),
            admin::SET_FEATURES | admin::GET_FEATURES => self.feature(slot, &sqe, cx),
            admin::ABORT => self.abort(&sqe, cx),
            admin::ASYNC_EVENT_REQUEST => self.event_request(slot, &sqe, cx),
            admin::KEEP_ALIVE => Ok(Some(0)),
            admin::FORMAT_NVM => self.format(&sqe, cx),
            DOORBELL_BUFFER_CONFIG => self.configure_shadow(&sqe, cx),
            _ => Err(status::INVALID_OPCODE.dnr()),
        };
        match outcome {
            Err(status) => self.admin_over(status, 0, cx),
            Ok(Some(dw0)) => self.admin_over(status::SUCCESS, dw0, cx),
            Ok(None) => {}
        }
    }

    /// The present command is over, once the host can rely on EventIdx.
    fn admin_over(&mut self, status: Status, dw0: u32, cx: &mut Cx) {
        self.admin.doing = Doing::Over(status, dw0);
        self.admin_look(cx);
    }

    /// Looks whether what the present command waits for has come.
    pub(super) fn admin_look(&mut self, cx: &mut Cx) {
        match &self.admin.doing {
            Doing::Over(status, dw0) => {
                if !self.shadow.armed() && self.fetches() {
                    return;
                }
                let (status, dw0) = (*status, *dw0);
                let Some((slot, sqe)) = self.admin.command else {
                    return;
                };
                let set = sqe.opcode() == admin::SET_FEATURES
                    && sqe.dw[10] as u8 == spec::nvme::feature::KEEP_ALIVE_TIMER;
                if status.is_success() && (set || sqe.opcode() == admin::KEEP_ALIVE) {
                    self.restart_keep_alive(cx);
                }
                self.admin.over = Some(slot);
                self.admin.doing = Doing::Nothing;
                self.admin.command = None;
                self.complete(slot, status, dw0, cx);
                self.admin_next(cx);
            }
            Doing::Drain { qid } => {
                let qid = *qid;
                let idle = |sq: &Submission| sq.in_flight == 0;
                if self.queues.submission[qid].as_ref().is_none_or(idle) {
                    self.admin_over(status::SUCCESS, 0, cx);
                } else {
                    self.clean(qid, cx);
                }
            }
            Doing::Format(work) if !work.moving => self.format_on(cx),
            _ => {}
        }
    }

    /// An entry has been posted.
    pub(super) fn admin_posted(&mut self, slot: u16, status: Status, cx: &mut Cx) {
        if matches!(self.admin.doing, Doing::Aborting { slot: of } if of == slot) {
            let aborted = status == status::ABORT_REQUESTED;
            self.admin_over(status::SUCCESS, u32::from(!aborted), cx);
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
        cx: &mut Cx,
    ) {
        self.admin.doing = Doing::Page(log);
        let request = Request {
            op: Op::Read,
            source: Source::Page(page),
            walker: Walker::new(sqe, bytes, true),
        };
        self.data.start(slot, request, cx);
    }

    fn identify_command(
        &mut self,
        slot: u16,
        sqe: &Sqe,
        cx: &mut Cx,
    ) -> Result<Option<u32>, Status> {
        let w = sqe.dw[10];
        let csi = (sqe.dw[11] >> 24) as u8;
        let page = identify::page(&self.identify, w as u8, sqe.nsid(), (w >> 16) as u16, csi)?;
        self.send_page(slot, sqe, Arc::from(&page[..]), PAGE_BYTES, None, cx);
        Ok(None)
    }

    fn get_log_page(&mut self, slot: u16, sqe: &Sqe, cx: &mut Cx) -> Result<Option<u32>, Status> {
        let request = GetLogPage::of(sqe);
        logs::check(&request)?;
        let now = self.uptime(cx);
        let page = self.logs.read(&request, self.events.warning(), now);
        let released = (!request.retain).then_some(request.lid);
        self.send_page(slot, sqe, page.into(), request.bytes, released, cx);
        Ok(None)
    }

    /// The data command of the present command is over.
    pub(super) fn admin_moved(&mut self, slot: u16, outcome: Outcome, cx: &mut Cx) {
        let _ = slot;
        match &mut self.admin.doing {
            Doing::Page(log) => {
                if let (Some(lid), Outcome::Ok) = (*log, outcome) {
                    self.logs.release(lid);
                    self.events.set_listed(self.logs.changed.any());
                    self.events.log_was_read(lid);
                }
                let status = outcome.status(self.features.acre());
                self.admin_over(status, 0, cx);
            }
            Doing::Format(work) => {
                work.moving = false;
                if outcome != Outcome::Ok {
                    let status = outcome.status(self.features.acre());
                    self.admin_over(status, 0, cx);
                } else {
                    self.format_on(cx);
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

    fn create_cq(&mut self, sqe: &Sqe, cx: &mut Cx) -> Result<Option<u32>, Status> {
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
        self.shadow.changed(qid, true, true, cx);
        Ok(Some(0))
    }

    fn create_sq(&mut self, sqe: &Sqe, cx: &mut Cx) -> Result<Option<u32>, Status> {
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
        self.shadow.changed(qid, false, true, cx);
        Ok(Some(0))
    }

    fn delete_sq(&mut self, sqe: &Sqe, cx: &mut Cx) -> Result<Option<u32>, Status> {
        let qid = self
            .io_qid(sqe.dw[10] & 0xFFFF)
            .filter(|&q| self.queues.sq(q).is_some());
        let qid = qid.ok_or(status::INVALID_QUEUE_IDENTIFIER.dnr())?;
        if let Some(sq) = &mut self.queues.submission[qid] {
            sq.valid = false;
        }
        self.shadow.changed(qid, false, false, cx);
        self.admin.doing = Doing::Drain { qid };
        self.give_up_halves(cx);
        self.admin_look(cx);
        Ok(None)
    }

    /// Ends those of a deleted queue's commands that may take long.
    fn clean(&mut self, qid: usize, cx: &mut Cx) {
        let of = |slot: u16, slots: &[Option<super::Owner>]| {
            slots[usize::from(slot)]
                .is_some_and(|owner| owner.decoded && usize::from(owner.qid) == qid)
        };
        self.give_up_halves(cx);
        for slot in 0..self.slots.len() as u16 {
            if of(slot, &self.slots) {
                self.zero.abort(slot, true, &mut self.data, cx);
                self.end_at_engine(slot, Some(true), cx);
            }
        }
        let slots = self.slots.clone();
        for slot in self.pairs.cut(|slot| of(slot, &slots)) {
            self.complete(slot, status::ABORTED_SQ_DELETION, 0, cx);
        }
        self.start_commands(cx);
    }

    fn delete_cq(&mut self, sqe: &Sqe, cx: &mut Cx) -> Result<Option<u32>, Status> {
        let qid = self
            .io_qid(sqe.dw[10] & 0xFFFF)
            .filter(|&q| self.queues.cq(q).is_some());
        let qid = qid.ok_or(status::INVALID_QUEUE_IDENTIFIER.dnr())?;
        let uses = |sq: &Submission| sq.valid && sq.cqid == qid;
        if self.queues.submission.iter().flatten().any(uses) {
            return Err(status::INVALID_QUEUE_DELETION.dnr());
        }
        if let Some(vector) = self.queues.completion[qid].take().and_then(|cq| cq.vector) {
            // What a queue that is deleted has asked for goes with it.
            if self.users(vector) == 0 {
                self.coalesce.withdraw(vector, cx);
            }
        }
        self.shadow.changed(qid, true, false, cx);
        Ok(Some(0))
    }

    fn configure_shadow(&mut self, sqe: &Sqe, cx: &mut Cx) -> Result<Option<u32>, Status> {
        let (shadow, event_idx) = (sqe.prp1(), sqe.prp2());
        if shadow % PAGE_BYTES != 0 || event_idx % PAGE_BYTES != 0 {
            return Err(status::INVALID_FIELD.dnr());
        }
        self.shadow.configure(shadow, event_idx, &self.queues, cx);
        Ok(Some(0))
    }

    // ---- features ----

    fn feature(&mut self, slot: u16, sqe: &Sqe, cx: &mut Cx) -> Result<Option<u32>, Status> {
        let request = FeatureRequest::of(sqe);
        let (w10, w11, nsid) = (request.cdw10, request.cdw11, request.nsid);
        let now = self.uptime(cx);
        let outcome = match request.set {
            true => self.features.set(w10, w11, nsid, self.queues.any_io())?,
            false => self.features.get(w10, w11, nsid, now)?,
        };
        if request.set {
            self.look_at_events(cx);
            cx.after(1, Event::Coalesced);
        }
        match outcome {
            FeatureOutcome::Done(dw0) => Ok(Some(dw0)),
            FeatureOutcome::KeepAlive => Ok(Some(0)),
            FeatureOutcome::SendsData(data) => {
                let bytes = data.len() as u64;
                self.send_page(slot, sqe, data.into(), bytes, None, cx);
                Ok(None)
            }
            FeatureOutcome::NeedsData(what) => self.take(sqe, what, cx).map(|()| None),
        }
    }

    /// Reads what a command brings along.
    fn take(&mut self, sqe: &Sqe, what: FeatureData, cx: &mut Cx) -> Result<(), Status> {
        let bytes = what.bytes();
        let mut walker = Walker::new(sqe, bytes, false);
        let mut pieces = Vec::new();
        loop {
            match walker.step() {
                Step::Data(piece) => {
                    pieces.push((piece.addr, piece.len as u32, piece.offset as u32))
                }
                Step::Fault(fault) => return Err(fault.status()),
                _ => break,
            }
        }
        for (n, &(addr, len, _)) in (0..).zip(&pieces) {
            let skip = addr % BEAT;
            let whole = ((skip + u64::from(len)).next_multiple_of(BEAT) - skip) as u32;
            cx.read(timing::LIST, Purpose::AdminData(n), addr, whole);
        }
        self.admin.doing = Doing::Take(Take {
            what,
            got: vec![0; pieces.len()],
            open: pieces.len(),
            pieces,
            bytes: vec![0; bytes as usize],
            failed: false,
        });
        Ok(())
    }

    /// A part of that has come.
    pub(super) fn admin_data(&mut self, piece: u8, arrival: &Arrival, cx: &mut Cx) {
        let Doing::Take(take) = &mut self.admin.doing else {
            return;
        };
        let (_, len, offset) = take.pieces[usize::from(piece)];
        let got = &mut take.got[usize::from(piece)];
        match &arrival.data {
            None => take.failed = true,
            Some(data) => {
                let some = data.len().min((len - *got) as usize);
                let at = (offset + *got) as usize;
                take.bytes[at..at + some].copy_from_slice(&data[..some]);
                *got += some as u32;
            }
        }
        if !arrival.last {
            return;
        }
        take.failed |= *got < len;
        take.open -= 1;
        if take.open > 0 {
            return;
        }
        let Doing::Take(take) = std::mem::take(&mut self.admin.doing) else {
            return;
        };
        let outcome = match (take.failed, take.what) {
            (true, _) => Err(status::DATA_TRANSFER_ERROR),
            (false, FeatureData::Behavior) => self.features.set_behavior(take.bytes[0]),
            (false, FeatureData::Timestamp) => {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&take.bytes);
                let now = self.uptime(cx);
                self.features.set_timestamp(bytes, now);
                Ok(())
            }
        };
        self.admin_over(outcome.err().unwrap_or(status::SUCCESS), 0, cx);
    }

    // ---- Abort, events ----

    fn abort(&mut self, sqe: &Sqe, cx: &mut Cx) -> Result<Option<u32>, Status> {
        let (sqid, cid) = (usize::from(sqe.dw[10] as u16), (sqe.dw[10] >> 16) as u16);
        if sqid == 0 {
            // Without room for its entry nothing is aborted.
            if !self.events.is_parked(cid) || !self.reserve_admin() {
                return Ok(Some(1));
            }
            if let Some(slot) = self.events.abort(cid) {
                self.complete(slot, status::ABORT_REQUESTED, 0, cx);
            }
            return Ok(Some(0));
        }
        if self.queues.sq(sqid.min(self.queues.count())).is_none() {
            return Ok(Some(1));
        }
        self.admin.doing = Doing::Abort { sqid, cid };
        cx.after(ABORT_STEP * self.slots.len() as u64, Event::Aborted);
        Ok(None)
    }

    /// An Abort has looked through all slots.
    pub(super) fn admin_abort(&mut self, cx: &mut Cx) {
        let Doing::Abort { sqid, cid } = self.admin.doing else {
            return;
        };
        let named = |owner: &Option<super::Owner>| {
            owner.is_some_and(|o| o.decoded && usize::from(o.qid) == sqid && o.cid == cid)
        };
        let slots = (0..).zip(&self.slots).filter(|(_, owner)| named(owner));
        let slots: Vec<u16> = slots.map(|(slot, _)| slot).collect();
        for slot in slots {
            self.admin.doing = Doing::Aborting { slot };
            let found = self.zero.abort(slot, false, &mut self.data, cx)
                || self.end_at_engine(slot, Some(false), cx)
                || self.abort_first(sqid, slot, cx);
            if found {
                return;
            }
        }
        self.admin_over(status::SUCCESS, 1, cx);
    }

    fn event_request(&mut self, slot: u16, sqe: &Sqe, cx: &mut Cx) -> Result<Option<u32>, Status> {
        self.events.park(sqe.cid(), slot)?;
        // A parked command gives its entry back.
        if let Some(cq) = &mut self.queues.completion[0] {
            cq.unreserve();
        }
        self.admin.command = None;
        self.admin.doing = Doing::Nothing;
        self.admin.pending = false;
        self.queues.unblock();
        self.admin_next(cx);
        self.after_retiring(cx);
        Ok(None)
    }

    // ---- Keep Alive ----

    fn restart_keep_alive(&mut self, cx: &mut Cx) {
        let ms = u64::from(self.features.keep_alive());
        self.keep_alive = (ms > 0 && self.fetches()).then(|| cx.now + cx.ms(ms));
        if let Some(deadline) = self.keep_alive {
            cx.plan(deadline, Event::KeepAlive);
        }
    }

    /// The time may be over.
    pub(super) fn keep_alive_due(&mut self, cx: &mut Cx) {
        if self.keep_alive.is_some_and(|deadline| deadline <= cx.now) && self.fetches() {
            self.keep_alive = None;
            self.logs.errors.record(error_log::ErrorCause::KeepAlive);
            self.fail(cx);
        }
    }

    // ---- Format NVM ----

    fn format(&mut self, sqe: &Sqe, cx: &mut Cx) -> Result<Option<u32>, Status> {
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
        self.admin.doing = Doing::Format(FormatWork {
            left: all,
            all,
            from: 0,
            to: 0,
            moving: false,
        });
        self.format_on(cx);
        Ok(None)
    }

    /// Namespaces with commands under way.
    fn flying(&self) -> u32 {
        let flies = self.slots.iter().flatten().filter_map(|owner| owner.flies);
        flies.fold(0, |bits, nsid| bits | 1 << (nsid - 1))
    }

    fn format_on(&mut self, cx: &mut Cx) {
        let (stopped, flying) = (!self.fetches(), self.flying());
        let acre = self.features.acre();
        let Some((slot, _)) = self.admin.command else {
            return;
        };
        let Doing::Format(work) = &mut self.admin.doing else {
            return;
        };
        let begun = work.left != work.all || work.to > 0;
        if !begun && flying & work.all != 0 {
            return;
        }
        if work.from == work.to {
            if work.left == 0 {
                self.admin_over(status::SUCCESS, 0, cx);
                return;
            }
            let nsid = work.left.trailing_zeros() + 1;
            work.left &= work.left - 1;
            if let Some(namespace) = self.config.namespaces.get(nsid) {
                (work.from, work.to) = (namespace.base, namespace.base + namespace.blocks);
            }
        }
        if stopped {
            self.admin_over(data::interrupted(acre), 0, cx);
            return;
        }
        let blocks = (work.to - work.from).min(FORMAT_BLOCKS);
        let addr = work.from * BLOCK_BYTES;
        work.from += blocks;
        work.moving = true;
        self.begin_zero(slot, Op::Zero, What::Zero(addr, blocks * BLOCK_BYTES), cx);
    }

    /// Commands are not fetched any more.
    pub(super) fn admin_stopped(&mut self, cx: &mut Cx) {
        // A format that has not begun to move waits for what is in flight, and ends then.
        self.admin_look(cx);
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

/// Physically contiguous, at a page.
fn contiguous(sqe: &Sqe) -> Result<(), Status> {
    if sqe.dw[11] & 1 == 0 {
        return Err(status::INVALID_FIELD.dnr());
    }
    if sqe.prp1() % PAGE_BYTES != 0 {
        return Err(status::PRP_OFFSET_INVALID.dnr());
    }
    Ok(())
}
