// SPDX-License-Identifier: Apache-2.0

//! Life cycle of the controller: enable, ready, fatal, shutdown, disable (nvme_ctrl_state).

use crate::context::{Event, SimContext};

use super::{queues, timing, Controller};

/// State of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControllerState {
    Off,
    Ready,
    Fatal,
    /// Disabled, with commands in flight that still have to end.
    Draining,
}

pub(super) const SHUTDOWN_NONE: u32 = 0;
pub(super) const SHUTDOWN_OCCURRING: u32 = 1;
pub(super) const SHUTDOWN_COMPLETE: u32 = 2;

impl Controller {
    /// The controller is ready and fetches commands.
    pub(super) fn accepts_commands(&self) -> bool {
        self.state == ControllerState::Ready && self.shst == SHUTDOWN_NONE
    }

    /// No command is in flight except parked ones, and all writes have left.
    pub(super) fn is_drained(&self, ctx: &SimContext) -> bool {
        let used = self.slots.len() - self.free_slots.len();
        used == self.events.parked()
            && self.fetching.is_empty()
            && self.shadow.is_idle()
            && self.admin.is_idle()
            && self.completions.is_empty()
            && !ctx.port.has_pending_writes()
    }

    /// Enters the fatal state, for an error that no completion can report.
    pub(super) fn raise_fatal(&mut self, ctx: &mut SimContext) {
        self.fatal = true;
        ctx.schedule_after(1, Event::ControllerState);
    }

    /// Evaluates the state machine until it is stable.
    pub(crate) fn update_state(&mut self, ctx: &mut SimContext) {
        loop {
            let before = (self.state, self.shst);
            let enabled = self.properties.enabled();
            let reset = self.properties.reset_wanted;
            match self.state {
                ControllerState::Off if reset => self.reset(ctx),
                ControllerState::Off if enabled && self.properties.usable() => self.enable(ctx),
                ControllerState::Off if enabled => {
                    self.state = ControllerState::Fatal;
                    self.cfs = true;
                }
                ControllerState::Ready if !enabled || reset => {
                    self.state = ControllerState::Draining
                }
                ControllerState::Ready if self.fatal => {
                    self.state = ControllerState::Fatal;
                    self.cfs = true;
                }
                ControllerState::Fatal if !enabled || reset => {
                    self.state = ControllerState::Draining
                }
                ControllerState::Draining if self.is_drained(ctx) => self.reset(ctx),
                _ => {}
            }
            let wanted = self.properties.shutdown();
            self.shst = match self.state {
                ControllerState::Off if !enabled && wanted => SHUTDOWN_COMPLETE,
                ControllerState::Off if !enabled => SHUTDOWN_NONE,
                ControllerState::Ready | ControllerState::Fatal
                    if self.shst == SHUTDOWN_NONE && wanted =>
                {
                    SHUTDOWN_OCCURRING
                }
                ControllerState::Ready | ControllerState::Fatal
                    if self.shst == SHUTDOWN_OCCURRING && self.is_drained(ctx) =>
                {
                    SHUTDOWN_COMPLETE
                }
                _ => self.shst,
            };
            if !self.accepts_commands() {
                self.abort_long_commands(ctx);
            }
            if before == (self.state, self.shst) {
                return;
            }
        }
    }

    pub(super) fn enable(&mut self, ctx: &mut SimContext) {
        let [(asq, sq_size), (acq, cq_size)] = self.properties.admin_queues();
        self.queues.completion[0] = Some(queues::Completion {
            base: acq,
            size: cq_size,
            head: 0,
            tail: 0,
            reserve: 0,
            phase: true,
            vector: Some(0),
        });
        self.queues.submission[0] =
            Some(queues::Submission::new(asq, sq_size, 0, Default::default()));
        self.weighted = self.properties.weighted();
        self.state = ControllerState::Ready;
        self.rdy = true;
        self.fatal = false;
        self.admin.no_room = false;
        self.events.set_ready(true);
        self.update_events(ctx);
    }

    /// Resets the controller, after everything has ended.
    pub(super) fn reset(&mut self, ctx: &mut SimContext) {
        for slot in self.events.reset() {
            self.free_slot(slot);
        }
        let now = self.uptime(ctx);
        self.features.reset(now);
        self.logs.reset();
        self.shadow.clear();
        self.coalescer.clear();
        self.queues.clear();
        self.fused.clear();
        self.keep_alive = None;
        ctx.msix.clear();
        (self.rdy, self.cfs, self.fatal) = (false, false, false);
        self.shst = SHUTDOWN_NONE;
        self.state = ControllerState::Off;
        if self.properties.reset_wanted {
            self.properties.reset();
        }
        ctx.schedule_after(timing::DEFAULTS, Event::ControllerState);
    }

    /// Ends commands that may take long, since commands are not fetched any more.
    fn abort_long_commands(&mut self, ctx: &mut SimContext) {
        self.keep_alive = None;
        if self.slots.len() == self.free_slots.len() {
            return;
        }
        if !self.range_walker.is_idle() {
            self.range_walker.stop(&mut self.data_path, ctx);
        }
        self.abort_unpaired(ctx);
        self.abort_all_offloaded(ctx);
        if self.coalescer.is_holding() {
            self.coalescer.expire(false, &self.features, ctx);
            self.send_messages(ctx);
        }
        // A format that has not started waits for commands in flight and ends then.
        self.resume_admin(ctx);
    }
}
