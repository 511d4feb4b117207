//! NVMe I/O commands of an engine: one at a time (engine_nvme).

use crate::controller::EngineCommand;

use super::Job;

/// A command that is pending.
pub(super) struct PendingCommand {
    pub(super) command: EngineCommand,
    /// It is to be carried out.
    pub(super) job: Option<Job>,
    /// It is to end early.
    pub(super) stop: bool,
}

/// The command that an engine has, if it has one.
#[derive(Default)]
pub(super) struct NvmeSource(pub(super) Option<PendingCommand>);

impl NvmeSource {
    /// A command may come.
    pub(super) fn has_room(&self) -> bool {
        self.0.is_none()
    }

    /// There is a job; and it is to end early.
    pub(super) fn requests(&self) -> (bool, bool) {
        let pending = self.0.as_ref().filter(|pending| pending.job.is_some());
        (
            pending.is_some(),
            pending.is_some_and(|pending| pending.stop),
        )
    }
}
