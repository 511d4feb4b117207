// SPDX-License-Identifier: Apache-2.0

//! BAR0: properties, doorbells, MSI-X accesses (nvme_bar0).

use spec::regs::nvme::msix_pending::{WORD_COUNT, WORD_STRIDE};
use spec::regs::nvme::{doorbells, DOORBELLS, MSIX_PENDING, MSIX_TABLE};

use crate::context::{Event, SimContext};

use super::error_log::ErrorCause;
use super::events::DoorbellError;
use super::properties::Csts;
use super::{timing, Controller};

/// Bytes of the doorbells, of the MSI-X table and of the pending bits.
const AREA_BYTES: u64 = 0x1000;
const PENDING_BYTES: u64 = WORD_COUNT * WORD_STRIDE;

impl Controller {
    pub(super) fn csts(&self) -> Csts {
        Csts {
            rdy: self.rdy,
            cfs: self.cfs,
            shst: self.shst,
        }
    }

    /// Reads a word of BAR0.
    pub(crate) fn read_register(&self, offset: u64, ctx: &SimContext) -> u32 {
        match offset {
            DOORBELLS..0x2000 => 0,
            _ if (MSIX_TABLE..MSIX_TABLE + AREA_BYTES).contains(&offset) => {
                ctx.msix.read(offset - MSIX_TABLE)
            }
            _ if (MSIX_PENDING..MSIX_PENDING + PENDING_BYTES).contains(&offset) => ctx
                .msix
                .pending(((offset - MSIX_PENDING) / WORD_STRIDE) as usize),
            _ if offset >= MSIX_PENDING => 0,
            _ => self.properties.read(offset, self.csts()),
        }
    }

    /// Writes the bits of a word of BAR0 that `bits` selects.
    pub(crate) fn write_register(
        &mut self,
        offset: u64,
        value: u32,
        bits: u32,
        ctx: &mut SimContext,
    ) {
        match offset {
            DOORBELLS..0x2000 => {
                if bits as u16 == u16::MAX {
                    let place = offset - DOORBELLS;
                    let qid = (place / doorbells::QUEUE_STRIDE) as usize;
                    let completion = place & doorbells::queue::CQ != 0;
                    self.doorbell_register(qid, completion, value as u16, ctx);
                }
            }
            _ if (MSIX_TABLE..MSIX_TABLE + AREA_BYTES).contains(&offset) => {
                if bits == u32::MAX {
                    ctx.msix.write(offset - MSIX_TABLE, value);
                    self.send_messages(ctx);
                }
            }
            _ if offset >= MSIX_PENDING => {}
            _ => {
                self.properties.write(offset, value, bits);
                ctx.schedule_after(1, Event::ControllerState);
            }
        }
    }

    /// Answers a read of BAR0, in order with the posted writes.
    pub(crate) fn answer_read(
        &mut self,
        tag: u32,
        data: Option<Vec<u8>>,
        cycles: u64,
        ctx: &mut SimContext,
    ) {
        let cycle = ctx.now + cycles;
        ctx.port.post_answer(cycle, tag, data);
        ctx.schedule(cycle, Event::HostWrite);
    }

    fn doorbell_register(
        &mut self,
        qid: usize,
        completion: bool,
        value: u16,
        ctx: &mut SimContext,
    ) {
        if qid >= self.queues.count() {
            self.doorbell_error(DoorbellError::InvalidRegister, ctx);
        } else if !self
            .shadow
            .register_written(qid, completion, &self.queues, ctx)
        {
            self.apply_doorbell(qid, completion, value, false, ctx);
        }
    }

    fn doorbell_error(&mut self, what: DoorbellError, ctx: &mut SimContext) {
        // A controller that is not ready reports no errors.
        if !self.rdy {
            return;
        }
        self.events.doorbell(what);
        self.logs.errors.record(match what {
            DoorbellError::InvalidRegister => ErrorCause::DoorbellRegister,
            DoorbellError::InvalidValue => ErrorCause::DoorbellValue,
        });
        self.wake_admin(ctx);
    }

    /// Applies a doorbell's value to its queue.
    pub(super) fn apply_doorbell(
        &mut self,
        qid: usize,
        completion: bool,
        value: u16,
        shadow: bool,
        ctx: &mut SimContext,
    ) {
        let value_of = u32::from(value);
        let bad = match completion {
            false => match self.queues.submission[qid].as_mut().filter(|sq| sq.valid) {
                None => Some(DoorbellError::InvalidRegister),
                Some(sq) if value_of > sq.size => Some(DoorbellError::InvalidValue),
                Some(sq) => {
                    sq.tail = value_of;
                    None
                }
            },
            true => match self.queues.completion[qid].as_mut() {
                None => Some(DoorbellError::InvalidRegister),
                Some(cq) if !cq.may_move(value_of) => Some(DoorbellError::InvalidValue),
                Some(cq) => {
                    cq.head = value_of;
                    None
                }
            },
        };
        // A valid value is recorded. An invalid one from the shadow page is recorded too, or it
        // would be read again for ever.
        if bad.is_none() || shadow {
            self.shadow.value_accepted(qid, completion, value, ctx);
        }
        match bad {
            // A value from the shadow page may arrive after its queue was deleted.
            Some(DoorbellError::InvalidRegister) if shadow => {}
            Some(what) => self.doorbell_error(what, ctx),
            None if completion => self.cq_head_moved(qid, ctx),
            None => {}
        }
        self.schedule_fetch(timing::DOORBELL, ctx);
    }

    fn cq_head_moved(&mut self, qid: usize, ctx: &mut SimContext) {
        self.queues.unblock();
        self.admin.no_room = false;
        let cq = self.queues.cq_mut(qid);
        if let (true, Some(vector)) = (cq.head == cq.tail, cq.vector) {
            if self.queues_of_vector(vector) == 1 {
                self.coalescer.withdraw(vector, ctx);
            }
        }
        self.wake_admin(ctx);
    }

    /// Number of completion queues with interrupts on a vector.
    pub(super) fn queues_of_vector(&self, vector: usize) -> usize {
        let queues = self.queues.completion.iter().flatten();
        queues.filter(|cq| cq.vector == Some(vector)).count()
    }
}
