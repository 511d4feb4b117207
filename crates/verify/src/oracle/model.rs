// SPDX-License-Identifier: Apache-2.0

//! The reference model of the controller: what each command may answer, transfer and change.
//!
//! Written from NVM Express 1.4 and the status table in `docs/hardware/nvme_ctrl.md`. A command is
//! evaluated when it is fetched. Admin commands are fetched one at a time, so their order is
//! defined. The mutual effects of I/O commands are left to [`Media`]. Where several errors race,
//! each of them is permitted.

mod features;
pub mod fused;
pub mod nvm;

use std::collections::BTreeMap;
use std::rc::Rc;

use nvme::feature::{select::CAPABILITIES, FeatureRequest, BEHAVIOR_BYTES, TIMESTAMP_BYTES};
use nvme::format::Format;
use nvme::identify::Identify;
use nvme::log::{self, GetLogPage};
use nvme::queue::{deleted, Abort, CreateCq, CreateSq};
use nvme::sgl::Descriptor;
use nvme::WalkError;
use spec::nvme::{admin, feature, status, Sqe, Status, ALL_NAMESPACES};

use crate::generate::Limits;
use crate::oracle::expectation::{
    Acre, CompletionEffect, DataSource, Direction, Expectation, MediaUse,
};
use crate::oracle::media::Media;
use crate::oracle::memory::Memory;
use crate::oracle::model::features::Features;
use crate::oracle::model::fused::{NextCommand, Pair, WaitingFirst};
use crate::oracle::namespaces::find;
use crate::oracle::prp::walk;
use crate::oracle::sgl::walk_sgl;
use crate::oracle::shadow::Pages;
use crate::oracle::walk::Walk;
use crate::PAGE;

/// A submission queue as the controller knows it.
#[derive(Clone, Debug)]
pub struct SubmissionQueue {
    /// Its address.
    pub base: u64,
    /// Its entries.
    pub entries: u32,
    /// Its completion queue.
    pub cqid: u16,
}

/// A completion queue as the controller knows it.
#[derive(Clone, Debug)]
pub struct CompletionQueue {
    /// Its address.
    pub base: u64,
    /// Its entries.
    pub entries: u32,
    /// Its interrupt vector, if it has interrupts.
    pub vector: Option<u16>,
}

/// Pages with known content, by their command: Identify (CNS, NSID) or Get Log Page (identifier).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KnownPage {
    /// Identify with this CNS, of this namespace or of none (0).
    Identify(u8, u32),
    /// This log.
    Log(u8),
}

/// The state of a controller between enable and reset.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its sizes.
    pub limits: Limits,
    /// Submission queues by identifier, 0 included.
    pub sqs: BTreeMap<u16, SubmissionQueue>,
    /// Completion queues by identifier, 0 included.
    pub cqs: BTreeMap<u16, CompletionQueue>,
    /// Features.
    pub features: Features,
    /// Identifiers of the Asynchronous Event Requests that wait.
    pub waiting: Vec<u16>,
    /// Pages that never change.
    pub known: BTreeMap<KnownPage, Rc<Vec<u8>>>,
    /// CC.IOSQES and CC.IOCQES are valid.
    pub entry_sizes: (bool, bool),
    /// NSIDs of the Format NVM commands that were fetched and have not completed.
    pub formatting: Vec<u32>,
    /// First commands of fused operations that wait for the second one, by submission queue.
    pub firsts: BTreeMap<u16, WaitingFirst>,
    /// The controller is about to stop: first commands may be given up.
    pub closing: bool,
    /// Whether the host supports Command Interrupted.
    pub acre: Acre,
}

impl Model {
    /// A controller just after it was enabled.
    pub fn new(limits: Limits, known: BTreeMap<KnownPage, Rc<Vec<u8>>>) -> Model {
        let features = Features::new(limits.queues, limits.namespaces.clone());
        Model {
            limits,
            sqs: BTreeMap::new(),
            cqs: BTreeMap::new(),
            features,
            waiting: Vec::new(),
            known,
            entry_sizes: (true, true),
            formatting: Vec::new(),
            firsts: BTreeMap::new(),
            closing: false,
            acre: Acre::of(false),
        }
    }

    /// Evaluates a fetched command, and updates the model. Also returns its effect on a fused first
    /// command before it.
    pub fn expect(
        &mut self,
        sqid: u16,
        sqe: &Sqe,
        more: NextCommand,
        memory: &Memory,
        media: &Media,
    ) -> (Expectation, Option<Pair>) {
        match sqid {
            0 => (self.admin(sqe, memory), None),
            _ => self.fused(sqid, sqe, more, memory, media),
        }
    }

    /// True while a namespace may be in a format.
    pub fn is_formatting(&self, nsid: u32) -> bool {
        self.formatting
            .iter()
            .any(|&n| n == nsid || n == ALL_NAMESPACES)
    }

    // ---- the admin command set ----

    fn admin(&mut self, sqe: &Sqe, memory: &Memory) -> Expectation {
        let known = [
            admin::DELETE_IO_SQ,
            admin::CREATE_IO_SQ,
            admin::GET_LOG_PAGE,
            admin::DELETE_IO_CQ,
            admin::CREATE_IO_CQ,
            admin::IDENTIFY,
            admin::ABORT,
            admin::SET_FEATURES,
            admin::GET_FEATURES,
            admin::ASYNC_EVENT_REQUEST,
            admin::FORMAT_NVM,
            admin::KEEP_ALIVE,
            admin::DOORBELL_BUFFER_CONFIG,
        ];
        // The flags are checked first here, the opcode first in the NVM command set.
        if flags(sqe) != (0, 0) {
            return Expectation::refused(status::INVALID_FIELD);
        }
        let offered = sqe.opcode() != admin::DOORBELL_BUFFER_CONFIG || self.limits.doorbell_buffer;
        if !known.contains(&sqe.opcode()) || !offered {
            return Expectation::refused(status::INVALID_OPCODE);
        }
        let outcome = match sqe.opcode() {
            admin::IDENTIFY => self.identify(sqe, memory),
            admin::GET_LOG_PAGE => self.log(sqe, memory),
            admin::CREATE_IO_CQ => self.create_cq(sqe),
            admin::CREATE_IO_SQ => self.create_sq(sqe),
            admin::DELETE_IO_SQ => self.delete_sq(sqe),
            admin::DELETE_IO_CQ => self.delete_cq(sqe),
            admin::FORMAT_NVM => self.format(sqe),
            admin::DOORBELL_BUFFER_CONFIG => shadow(sqe),
            admin::KEEP_ALIVE => Ok(Expectation {
                after: CompletionEffect::KeptAlive,
                ..Expectation::success()
            }),
            admin::ABORT => self.abort(sqe),
            admin::ASYNC_EVENT_REQUEST => self.event_request(sqe),
            _ => self.features(sqe, memory),
        };
        outcome.unwrap_or_else(Expectation::refused)
    }

    fn page(&self, key: KnownPage, offset: u64) -> DataSource {
        match self.known.get(&key) {
            Some(page) => DataSource::Page(page.clone(), offset),
            None => DataSource::Any,
        }
    }

    fn identify(&self, sqe: &Sqe, memory: &Memory) -> Result<Expectation, Status> {
        let request = Identify::of(sqe);
        let (cns, nsid) = (request.cns, request.nsid);
        let namespaces = &self.limits.namespaces;
        let content = match cns {
            0x00 | 0x03 | 0x08 if !namespaces.valid(nsid) => {
                return Err(status::INVALID_NAMESPACE_OR_FORMAT)
            }
            0x03 if find(namespaces, nsid).is_err() => return Err(status::INVALID_FIELD),
            0x02 if nsid >= 0xFFFF_FFFE => return Err(status::INVALID_NAMESPACE_OR_FORMAT),
            // CNS 06h and 08h are of NVMe 2.0; hosts of NVMe 1.4 request them as well.
            0x06 if request.csi != 0 => return Err(status::INVALID_FIELD),
            0x00 | 0x03 | 0x08 => self.page(KnownPage::Identify(cns, nsid), 0),
            0x01 | 0x06 => self.page(KnownPage::Identify(cns, 0), 0),
            0x02 => DataSource::Page(Rc::new(namespaces.list_above(nsid)), 0),
            0x12 if nsid == ALL_NAMESPACES => return Err(status::INVALID_FIELD),
            0x12 if !namespaces.valid(nsid) => return Err(status::INVALID_NAMESPACE_OR_FORMAT),
            0x12 | 0x13 => {
                let attached = cns == 0x13 || find(namespaces, nsid).is_ok();
                self.controllers(request.cntid, attached)
            }
            _ => return Err(status::INVALID_FIELD),
        };
        Ok(send(memory, sqe, PAGE, content))
    }

    /// A Controller List with the only controller, from an identifier on.
    fn controllers(&self, from: u16, attached: bool) -> DataSource {
        let Some(page) = self.known.get(&KnownPage::Identify(1, 0)) else {
            return DataSource::Any;
        };
        let id = u16::from_le_bytes([page[78], page[79]]);
        let mut list = vec![0; PAGE as usize];
        if attached && from <= id {
            list[0] = 1;
            list[2..4].copy_from_slice(&id.to_le_bytes());
        }
        DataSource::Page(Rc::new(list), 0)
    }

    fn log(&self, sqe: &Sqe, memory: &Memory) -> Result<Expectation, Status> {
        let request = GetLogPage::of(sqe);
        let size = log::size(request.lid).ok_or(status::INVALID_LOG_PAGE)?;
        if request.nsid != 0 && request.nsid != ALL_NAMESPACES
            || request.bytes > self.limits.transfer
            || request.offset % 4 != 0
            || request.offset > size
        {
            return Err(status::INVALID_FIELD);
        }
        let content = self.page(KnownPage::Log(request.lid), request.offset);
        Ok(send(memory, sqe, request.bytes, content))
    }

    /// Format NVM (5.23): one format, without protection information; user data erase is all the
    /// same.
    fn format(&mut self, sqe: &Sqe) -> Result<Expectation, Status> {
        let format = Format::of(sqe);
        let nsid = format.nsid;
        let namespaces = &self.limits.namespaces;
        let formatted: Vec<(u64, u64)> = match nsid {
            ALL_NAMESPACES => namespaces.active().map(|n| (n.base, n.blocks)).collect(),
            _ => find(namespaces, nsid).map(|n| vec![(n.base, n.blocks)])?,
        };
        if format.lbaf != 0 {
            return Err(status::INVALID_FORMAT);
        }
        match format.pi {
            0 => {}
            1..=3 => return Err(status::INVALID_FORMAT),
            _ => return Err(status::INVALID_FIELD),
        }
        if format.ses > 1 {
            return Err(status::INVALID_FIELD);
        }
        self.formatting.push(nsid);
        let mut v = Expectation {
            after: CompletionEffect::Formatted(nsid),
            ..Expectation::success()
        };
        v.media = MediaUse::Zero(formatted);
        Ok(v)
    }

    fn bad_size(&self, entries: u32) -> bool {
        entries < 2 || entries > self.limits.entries
    }

    fn io_qid(&self, qid: u16) -> Option<u16> {
        (1..=self.limits.queues).contains(&qid).then_some(qid)
    }

    fn create_cq(&mut self, sqe: &Sqe) -> Result<Expectation, Status> {
        let wanted = CreateCq::of(sqe);
        let qid = self.io_qid(wanted.qid);
        let qid = qid.filter(|q| !self.cqs.contains_key(q));
        let qid = qid.ok_or(status::INVALID_QUEUE_IDENTIFIER)?;
        if self.bad_size(wanted.entries) || !self.entry_sizes.1 {
            return Err(status::INVALID_QUEUE_SIZE);
        }
        if wanted.vector > self.limits.queues {
            return Err(status::INVALID_INTERRUPT_VECTOR);
        }
        check_contiguous(wanted.contiguous, wanted.base)?;
        let queue = CompletionQueue {
            base: wanted.base,
            entries: wanted.entries,
            vector: wanted.interrupts.then_some(wanted.vector),
        };
        self.cqs.insert(qid, queue);
        Ok(Expectation {
            after: CompletionEffect::CqCreated(qid),
            ..Expectation::success()
        })
    }

    fn create_sq(&mut self, sqe: &Sqe) -> Result<Expectation, Status> {
        let wanted = CreateSq::of(sqe);
        let qid = self.io_qid(wanted.qid);
        let qid = qid.filter(|q| !self.sqs.contains_key(q));
        let qid = qid.ok_or(status::INVALID_QUEUE_IDENTIFIER)?;
        let cqid = self.io_qid(wanted.cqid);
        let cqid = cqid.ok_or(status::INVALID_QUEUE_IDENTIFIER)?;
        if !self.cqs.contains_key(&cqid) {
            return Err(status::COMPLETION_QUEUE_INVALID);
        }
        if self.bad_size(wanted.entries) || !self.entry_sizes.0 {
            return Err(status::INVALID_QUEUE_SIZE);
        }
        check_contiguous(wanted.contiguous, wanted.base)?;
        let queue = SubmissionQueue {
            base: wanted.base,
            entries: wanted.entries,
            cqid,
        };
        self.firsts.remove(&qid);
        self.sqs.insert(qid, queue);
        Ok(Expectation {
            after: CompletionEffect::SqCreated(qid),
            ..Expectation::success()
        })
    }

    fn delete_sq(&mut self, sqe: &Sqe) -> Result<Expectation, Status> {
        let qid = self
            .io_qid(deleted(sqe))
            .ok_or(status::INVALID_QUEUE_IDENTIFIER)?;
        let queue = self
            .sqs
            .remove(&qid)
            .ok_or(status::INVALID_QUEUE_IDENTIFIER)?;
        Ok(Expectation {
            after: CompletionEffect::SqDeleted(qid, queue.base),
            ..Expectation::success()
        })
    }

    fn delete_cq(&mut self, sqe: &Sqe) -> Result<Expectation, Status> {
        let qid = self
            .io_qid(deleted(sqe))
            .ok_or(status::INVALID_QUEUE_IDENTIFIER)?;
        let base = self
            .cqs
            .get(&qid)
            .ok_or(status::INVALID_QUEUE_IDENTIFIER)?
            .base;
        if self.sqs.values().any(|q| q.cqid == qid) {
            return Err(status::INVALID_QUEUE_DELETION);
        }
        self.cqs.remove(&qid);
        Ok(Expectation {
            after: CompletionEffect::CqDeleted(qid, base),
            ..Expectation::success()
        })
    }

    fn abort(&self, sqe: &Sqe) -> Result<Expectation, Status> {
        let Abort { sqid, cid } = Abort::of(sqe);
        let mut v = Expectation {
            dw0: Some(1),
            ..Expectation::success()
        };
        if sqid == 0 && self.waiting.contains(&cid) {
            v.dw0 = None; // it may be overtaken by an event, or find its completion queue full
            v.after = CompletionEffect::Abort(cid);
        } else if sqid != 0 {
            v.dw0 = None; // what has become of the command tells
            v.after = CompletionEffect::AbortIo(sqid, cid);
        }
        Ok(v)
    }

    fn event_request(&mut self, sqe: &Sqe) -> Result<Expectation, Status> {
        let before = self.waiting.len();
        let mut v = Expectation {
            dw0: None,
            after: CompletionEffect::Event(before),
            ..Expectation::success()
        };
        v.statuses.push(status::ABORT_REQUESTED);
        if before >= self.limits.events {
            v.statuses.push(status::ASYNC_EVENT_REQUEST_LIMIT_EXCEEDED);
        }
        self.waiting.push(sqe.cid());
        Ok(v)
    }

    fn features(&mut self, sqe: &Sqe, memory: &Memory) -> Result<Expectation, Status> {
        let request = FeatureRequest::of(sqe);
        let queues = self.sqs.len() > 1 || self.cqs.len() > 1;
        match self.features.serve(request, queues) {
            // Errors have their DNR bit set already.
            Err(status) => Ok(Expectation::new(vec![status])),
            Ok(dw0) if request.select() == CAPABILITIES => Ok(Expectation {
                dw0: Some(dw0),
                ..Expectation::success()
            }),
            Ok(_) if request.fid() == feature::TIMESTAMP && request.set => {
                Ok(fetch(memory, sqe, TIMESTAMP_BYTES))
            }
            Ok(_) if request.fid() == feature::TIMESTAMP => {
                Ok(send(memory, sqe, TIMESTAMP_BYTES, DataSource::Any))
            }
            Ok(_) if request.fid() == feature::HOST_BEHAVIOR_SUPPORT && request.set => {
                Ok(self.behavior(sqe, memory))
            }
            Ok(_) if request.fid() == feature::HOST_BEHAVIOR_SUPPORT => {
                let known = match (request.select(), self.acre) {
                    (0, Acre { clear, set }) => (clear != set).then_some(set),
                    _ => Some(false),
                };
                let page = known.map(|set| Rc::new(vec![u8::from(set)]));
                let content = page.map_or(DataSource::Any, |page| DataSource::Page(page, 0));
                Ok(send(memory, sqe, BEHAVIOR_BYTES, content))
            }
            Ok(_) if request.fid() == feature::KEEP_ALIVE_TIMER && request.set => Ok(Expectation {
                after: CompletionEffect::KeptAlive,
                ..Expectation::success()
            }),
            // Undetermined before the number of queues is known.
            Ok(dw0) => Ok(Expectation {
                dw0: (self.limits.queues > 0).then_some(dw0),
                ..Expectation::success()
            }),
        }
    }
}

impl Model {
    /// Set Features, Host Behavior Support: the first byte is ACRE, the others are reserved.
    fn behavior(&mut self, sqe: &Sqe, memory: &Memory) -> Expectation {
        let mut v = fetch(memory, sqe, BEHAVIOR_BYTES);
        let right = match v.walk.gather(memory).first() {
            Some(Some(acre @ 0..=1)) => *acre == 1,
            _ => {
                for status in &mut v.statuses {
                    if *status == status::SUCCESS {
                        *status = status::INVALID_FIELD.dnr();
                    }
                }
                return v;
            }
        };
        v.after = CompletionEffect::Behavior(Acre::of(right), self.acre);
        self.acre = self.acre.or(Acre::of(right));
        v
    }
}

/// Doorbell Buffer Config (5.7).
fn shadow(sqe: &Sqe) -> Result<Expectation, Status> {
    let (doorbells, events) = (sqe.prp1(), sqe.prp2());
    if doorbells % PAGE != 0 || events % PAGE != 0 {
        return Err(status::INVALID_FIELD);
    }
    Ok(Expectation {
        after: CompletionEffect::Shadow(Pages { doorbells, events }),
        ..Expectation::success()
    })
}

/// FUSE and PSDT.
pub fn flags(sqe: &Sqe) -> (u32, u32) {
    (sqe.fuse().into(), sqe.psdt().into())
}

/// Physically contiguous, and aligned to a page.
fn check_contiguous(contiguous: bool, base: u64) -> Result<(), Status> {
    if !contiguous {
        return Err(status::INVALID_FIELD);
    }
    if base % PAGE != 0 {
        return Err(status::PRP_OFFSET_INVALID);
    }
    Ok(())
}

/// The segments of a command's data: PRPs, or the SGL of an I/O command.
pub fn transfer(memory: &Memory, sqe: &Sqe, bytes: u64, to_host: bool) -> Walk {
    match flags(sqe).1 {
        0 => walk(memory, sqe.prp1(), sqe.prp2(), bytes),
        _ => {
            let first = Descriptor::new(sqe.prp1(), sqe.prp2());
            walk_sgl(memory, first, bytes, to_host)
        }
    }
}

/// Data from the controller to the host: writes to addresses without memory have no effect.
pub fn send(memory: &Memory, sqe: &Sqe, bytes: u64, content: DataSource) -> Expectation {
    let mut v = Expectation::success();
    v.walk = transfer(memory, sqe, bytes, true);
    v.direction = Direction::ToHost(content);
    if let Some(fault) = v.walk.fault {
        v.statuses = vec![fault.status()];
    }
    if v.walk.unsure {
        v.statuses.push(status::DATA_TRANSFER_ERROR);
    }
    v
}

/// Data from the host: an error of the list and an error of the data may be found in either order.
pub fn fetch(memory: &Memory, sqe: &Sqe, bytes: u64) -> Expectation {
    let mut v = Expectation::success();
    v.walk = transfer(memory, sqe, bytes, false);
    v.direction = Direction::FromHost;
    let mut errors: Vec<Status> = v.walk.fault.map(WalkError::status).into_iter().collect();
    if !v.walk.exists(memory) {
        errors.push(status::DATA_TRANSFER_ERROR);
    }
    if !errors.is_empty() {
        v.statuses = errors;
        v.clean = false;
    }
    if v.walk.unsure {
        v.statuses.push(status::DATA_TRANSFER_ERROR);
    }
    v
}
