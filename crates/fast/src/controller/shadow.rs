// SPDX-License-Identifier: Apache-2.0

//! Shadow doorbells (NVMe 1.4, 5.7 and 7.13; nvme_shadow): their states, and accesses to host
//! memory for them.
//!
//! A doorbell is asleep or awake. Asleep, its EventIdx holds the value that the controller has seen
//! last. The host's next change then writes the register, which only wakes the doorbell.
//!
//! Awake, the controller reads the shadow when it needs the value. That is when it knows of no more
//! commands of a submission queue, or when a command waits for room in a completion queue. If the
//! value is unchanged, it writes EventIdx and reads the shadow again. If it is unchanged still, the
//! doorbell sleeps. The doorbell of a new queue sleeps, and its EventIdx is written.

use crate::context::{Event, SimContext};
use crate::host_port::{BurstOwner, HostReadData, ReadPurpose, BEAT};

use super::queues::Queues;

#[derive(Clone, Copy, Debug, Default)]
struct DoorbellState {
    awake: bool,
    /// Its EventIdx has to be written.
    arm: bool,
    /// A command waits for room in the queue.
    full: bool,
    /// The last value that the controller has seen.
    last: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShadowState {
    Idle,
    /// The shadow is being read, for the second time if `again`.
    Reading {
        again: bool,
    },
    /// EventIdx is being written. The shadow is read again after that, unless `only`.
    Arming {
        only: bool,
    },
}

/// A doorbell's value from the shadow page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DoorbellUpdate {
    pub(crate) qid: usize,
    pub(crate) completion: bool,
    pub(crate) value: u16,
}

pub(crate) struct ShadowDoorbells {
    /// Pages of shadow doorbells and of EventIdx, once configured.
    pages: Option<(u64, u64)>,
    /// The EventIdx of all doorbells were written.
    live: bool,
    doorbells: Vec<DoorbellState>,
    state: ShadowState,
    /// The doorbell in progress.
    at: usize,
    /// Its register was written in the meantime.
    register_was_written: bool,
    /// Its queue was created or deleted in the meantime.
    drop: bool,
    value: u32,
    received: usize,
    scheduled: bool,
    /// The link has accepted the last EventIdx.
    event_idx_sent: bool,
}

impl ShadowDoorbells {
    pub(crate) fn new(queues: usize) -> ShadowDoorbells {
        ShadowDoorbells {
            pages: None,
            live: false,
            doorbells: vec![DoorbellState::default(); 2 * queues],
            state: ShadowState::Idle,
            at: 0,
            register_was_written: false,
            drop: false,
            value: 0,
            received: 0,
            scheduled: false,
            event_idx_sent: false,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.state == ShadowState::Idle
    }

    /// Returns to doorbell registers when the controller is reset.
    pub(crate) fn clear(&mut self) {
        *self = ShadowDoorbells::new(self.doorbells.len() / 2);
    }

    /// Doorbell Buffer Config.
    pub(crate) fn configure(
        &mut self,
        shadow: u64,
        event_idx: u64,
        queues: &Queues,
        ctx: &mut SimContext,
    ) {
        let first = self.pages.is_none();
        self.pages = Some((shadow, event_idx));
        self.live = false;
        self.drop = true;
        for n in 2..self.doorbells.len() {
            if first {
                self.doorbells[n].awake = false;
            }
            self.doorbells[n].arm = exists(queues, n);
        }
        self.schedule(ctx);
    }

    /// A queue was created or deleted.
    pub(crate) fn queue_changed(
        &mut self,
        qid: usize,
        completion: bool,
        created: bool,
        ctx: &mut SimContext,
    ) {
        let n = 2 * qid + usize::from(completion);
        self.doorbells[n] = DoorbellState {
            arm: self.pages.is_some() && created && qid != 0,
            ..DoorbellState::default()
        };
        if self.at == n {
            self.drop = true;
        }
        self.schedule(ctx);
    }

    /// The EventIdx of all sleeping doorbells were written.
    pub(crate) fn is_armed(&self) -> bool {
        self.pages.is_none()
            || !self.doorbells.iter().any(|doorbell| doorbell.arm)
                && !matches!(self.state, ShadowState::Arming { only: true })
    }

    /// A doorbell register was written; true if that only wakes the doorbell.
    pub(crate) fn register_written(
        &mut self,
        qid: usize,
        completion: bool,
        queues: &Queues,
        ctx: &mut SimContext,
    ) -> bool {
        let n = 2 * qid + usize::from(completion);
        if self.pages.is_none() || qid == 0 || !exists(queues, n) {
            return false;
        }
        if !self.live {
            // The host does not know yet that shadow doorbells are in effect.
            self.doorbells[n].arm = true;
            self.schedule(ctx);
            return false;
        }
        self.doorbells[n].awake = true;
        if self.at == n {
            self.register_was_written = true;
        }
        self.schedule(ctx);
        true
    }

    /// A queue has accepted a doorbell's value.
    pub(crate) fn value_accepted(
        &mut self,
        qid: usize,
        completion: bool,
        value: u16,
        ctx: &mut SimContext,
    ) {
        let doorbell = &mut self.doorbells[2 * qid + usize::from(completion)];
        doorbell.last = value;
        doorbell.full = false;
        self.schedule(ctx);
    }

    /// A command waits for room in a completion queue.
    pub(crate) fn queue_full(&mut self, cqid: usize, ctx: &mut SimContext) {
        self.doorbells[2 * cqid + 1].full = true;
        self.schedule(ctx);
    }

    /// Schedules the next step if none is in progress.
    pub(crate) fn schedule(&mut self, ctx: &mut SimContext) {
        if self.pages.is_some() && self.state == ShadowState::Idle && !self.scheduled {
            self.scheduled = true;
            ctx.schedule_after(3, Event::ShadowDoorbell);
        }
    }

    /// The link has accepted the last EventIdx.
    pub(crate) fn event_idx_sent(&mut self, ctx: &mut SimContext) {
        self.event_idx_sent = true;
        ctx.schedule(ctx.now, Event::ShadowDoorbell);
    }

    /// Continues with the next step.
    pub(crate) fn advance(&mut self, queues: &Queues, enabled: bool, ctx: &mut SimContext) {
        self.scheduled = false;
        match self.state {
            ShadowState::Idle => self.begin(queues, enabled, ctx),
            ShadowState::Arming { only } => {
                if !std::mem::take(&mut self.event_idx_sent) {
                    return;
                }
                if only || self.drop {
                    self.state = ShadowState::Idle;
                    self.update_live(ctx);
                } else {
                    self.read_shadow(true, ctx);
                }
            }
            ShadowState::Reading { .. } => {}
        }
    }

    fn update_live(&mut self, ctx: &mut SimContext) {
        if self.is_armed() {
            self.live = self.pages.is_some();
        }
        self.schedule(ctx);
    }

    fn begin(&mut self, queues: &Queues, enabled: bool, ctx: &mut SimContext) {
        if self.is_armed() {
            self.live = self.pages.is_some();
        }
        if self.pages.is_none() || !enabled {
            return;
        }
        let wants = |n: usize| {
            let doorbell = &self.doorbells[n];
            let (qid, completion) = (n / 2, n % 2 == 1);
            let due = match completion {
                true => doorbell.full,
                false => !queues.sq(qid).is_some_and(|sq| sq.has_commands()),
            };
            doorbell.arm || doorbell.awake && exists(queues, n) && due
        };
        let count = self.doorbells.len();
        let Some(n) = (1..=count)
            .map(|k| (self.at + k) % count)
            .find(|&n| wants(n))
        else {
            return;
        };
        self.at = n;
        (self.register_was_written, self.drop) = (false, false);
        if std::mem::take(&mut self.doorbells[n].arm) {
            self.write_event_idx(true, ctx);
        } else {
            self.read_shadow(false, ctx);
        }
    }

    /// Reads the shadow of the doorbell in progress.
    fn read_shadow(&mut self, again: bool, ctx: &mut SimContext) {
        let (page, _) = self.pages.expect("shadow doorbells are configured");
        self.state = ShadowState::Reading { again };
        (self.value, self.received) = (0, 0);
        let addr = page + 4 * self.at as u64;
        let len = BEAT - addr % BEAT;
        ctx.read_host(3, ReadPurpose::Shadow, addr, len as u32);
    }

    /// Writes the EventIdx of the doorbell in progress.
    fn write_event_idx(&mut self, only: bool, ctx: &mut SimContext) {
        let (_, page) = self.pages.expect("shadow doorbells are configured");
        self.state = ShadowState::Arming { only };
        let value = u32::from(self.doorbells[self.at].last);
        let addr = page + 4 * self.at as u64;
        self.event_idx_sent = false;
        let owner = Some(BurstOwner::EventIdx);
        ctx.post_write(ctx.now + 2, addr, &value.to_le_bytes(), owner);
    }

    /// Receives the shadow; returns its value if it is new. Fails if the host has refused the read.
    pub(crate) fn receive(
        &mut self,
        arrival: &HostReadData,
        ctx: &mut SimContext,
    ) -> Result<Option<DoorbellUpdate>, ()> {
        let ShadowState::Reading { again } = self.state else {
            unreachable!("a shadow is awaited until all of it has arrived");
        };
        let Some(data) = &arrival.data else {
            self.state = ShadowState::Idle;
            return Err(());
        };
        for &byte in data {
            if self.received < 4 {
                self.value |= u32::from(byte) << (8 * self.received);
                self.received += 1;
            }
        }
        if !arrival.last {
            return Ok(None);
        }
        let (n, value) = (self.at, self.value as u16);
        if self.drop {
            self.state = ShadowState::Idle;
            self.schedule(ctx);
            return Ok(None);
        }
        if value != self.doorbells[n].last {
            self.state = ShadowState::Idle;
            return Ok(Some(DoorbellUpdate {
                qid: n / 2,
                completion: n % 2 == 1,
                value,
            }));
        }
        if !again {
            self.write_event_idx(false, ctx);
            return Ok(None);
        }
        // The doorbell sleeps, unless its register was written in the meantime.
        if !self.register_was_written {
            self.doorbells[n].awake = false;
        }
        self.state = ShadowState::Idle;
        self.schedule(ctx);
        Ok(None)
    }
}

fn exists(queues: &Queues, n: usize) -> bool {
    match n % 2 {
        0 => queues.sq(n / 2).is_some(),
        _ => queues.cq(n / 2).is_some(),
    }
}
