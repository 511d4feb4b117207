// SPDX-License-Identifier: Apache-2.0

//! NVMe I/O commands of an engine, one at a time (engine_nvme).

use crate::controller::EngineCommand;

use super::Job;

/// A pending command.
pub(super) struct PendingCommand {
    pub(super) command: EngineCommand,
    /// The decoded job, ready to start.
    pub(super) job: Option<Job>,
    /// The command shall stop early.
    pub(super) stop: bool,
}

/// The NVMe command that the engine has accepted, if any.
#[derive(Default)]
pub(super) struct NvmeSource(pub(super) Option<PendingCommand>);

impl NvmeSource {
    /// A command can be accepted.
    pub(super) fn has_room(&self) -> bool {
        self.0.is_none()
    }

    /// The requests: a job, and its stop.
    pub(super) fn requests(&self) -> (bool, bool) {
        let pending = self.0.as_ref().filter(|pending| pending.job.is_some());
        (
            pending.is_some(),
            pending.is_some_and(|pending| pending.stop),
        )
    }
}
