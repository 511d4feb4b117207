// SPDX-License-Identifier: Apache-2.0

//! I/O commands that engines execute (nvme_engines).

use spec::nvme::{status, Sqe, Status};

use crate::context::SimContext;

use super::data_path::interrupted;
use super::Controller;

/// A command for an engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EngineCommand {
    pub(crate) slot: u16,
    /// Number of the command within its engine.
    pub(crate) command: u8,
    /// First block of the namespace on the media, and its number of blocks.
    pub(crate) base: u64,
    pub(crate) blocks: u64,
    pub(crate) sqe: Sqe,
}

/// The end of an offloaded command: stopped on request, or with a status and dword 0.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EngineResult {
    Stopped,
    Done(Status, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OffloadState {
    Waiting,
    Running,
}

/// A command that an engine carries out.
pub(super) struct OffloadedCommand {
    pub(super) engine: usize,
    pub(super) command: EngineCommand,
    pub(super) state: OffloadState,
    /// Set when the command is to end early: true if its queue is deleted, false for an Abort.
    pub(super) abort: Option<bool>,
    pub(super) stop_requested: bool,
}

/// A request of the controller to the engines.
pub(crate) enum EngineRequest {
    /// A command waits: see [`Controller::next_for_engine`].
    Dispatch,
    /// Stop the command of a slot: engine, slot.
    Stop(usize, u16),
}

impl Controller {
    /// The next request to the engines.
    pub(crate) fn next_engine_request(&mut self) -> Option<EngineRequest> {
        self.engine_requests.pop_front()
    }

    /// There are requests to the engines.
    pub(crate) fn has_engine_requests(&self) -> bool {
        !self.engine_requests.is_empty()
    }

    /// Announces a command to its engine.
    pub(super) fn dispatch_to_engine(&mut self, slot: u16, ctx: &mut SimContext) {
        let stops = !self.accepts_commands();
        if stops {
            // A command that arrives while the controller is disabled ends at once.
            self.abort_offloaded(slot, None, ctx);
        } else {
            self.engine_requests.push_back(EngineRequest::Dispatch);
        }
    }

    /// An engine has accepted a command.
    pub(crate) fn engine_accepted(&mut self, slot: u16) {
        let at = self.offloaded[usize::from(slot)].as_mut();
        at.expect("an engine accepts a command that waits").state = OffloadState::Running;
    }

    /// The oldest command that waits for an engine.
    pub(crate) fn next_for_engine(&mut self, engine: usize) -> Option<EngineCommand> {
        if !self.accepts_commands() {
            return None;
        }
        let waits = |at: &&OffloadedCommand| {
            at.engine == engine && at.state == OffloadState::Waiting && at.abort.is_none()
        };
        let mut all = self.offloaded.iter().flatten();
        all.find(waits).map(|at| at.command)
    }

    /// An engine has ended a command.
    pub(crate) fn engine_completed(&mut self, slot: u16, end: EngineResult, ctx: &mut SimContext) {
        let at = self.offloaded[usize::from(slot)].take();
        let at = at.expect("an engine ends a command once");
        debug_assert_eq!(at.state, OffloadState::Running);
        let (status, dw0) = match end {
            EngineResult::Done(status, dw0) => (status, dw0),
            EngineResult::Stopped => (self.abort_status(at.abort), 0),
        };
        self.complete(slot, status, dw0, ctx);
    }

    fn abort_status(&self, abort: Option<bool>) -> Status {
        match abort {
            Some(true) => status::ABORTED_SQ_DELETION,
            Some(false) => status::ABORT_REQUESTED,
            None if !self.accepts_commands() => interrupted(self.features.acre()),
            None => status::INTERNAL_ERROR,
        }
    }

    /// Ends the offloaded command in a slot; false if there is none.
    pub(super) fn abort_offloaded(
        &mut self,
        slot: u16,
        abort: Option<bool>,
        ctx: &mut SimContext,
    ) -> bool {
        let Some(at) = &mut self.offloaded[usize::from(slot)] else {
            return false;
        };
        if abort.is_some() {
            at.abort = abort;
        }
        match at.state {
            OffloadState::Waiting => {
                let abort = at.abort;
                self.offloaded[usize::from(slot)] = None;
                let status = self.abort_status(abort);
                self.complete(slot, status, 0, ctx);
            }
            OffloadState::Running if !at.stop_requested => {
                at.stop_requested = true;
                self.engine_requests
                    .push_back(EngineRequest::Stop(at.engine, slot));
            }
            OffloadState::Running => {}
        }
        true
    }

    pub(super) fn abort_all_offloaded(&mut self, ctx: &mut SimContext) {
        for slot in 0..self.offloaded.len() as u16 {
            if self.offloaded[usize::from(slot)].is_some() {
                self.abort_offloaded(slot, None, ctx);
            }
        }
    }
}
