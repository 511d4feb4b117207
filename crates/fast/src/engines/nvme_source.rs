//! NVMe I/O commands of an engine: one at a time (engine_nvme).

use crate::controller::EngineCommand;

use super::Job;

/// A command that is kept.
pub(super) struct KeptCommand {
    pub(super) command: EngineCommand,
    /// It is to be carried out.
    pub(super) job: Option<Job>,
    /// It is to end early.
    pub(super) stop: bool,
}

/// The command that an engine has, if it has one.
#[derive(Default)]
pub(super) struct NvmeSource(pub(super) Option<KeptCommand>);

impl NvmeSource {
    /// A command may come.
    pub(super) fn has_room(&self) -> bool {
        self.0.is_none()
    }

    /// There is a job; and it is to end early.
    pub(super) fn requests(&self) -> (bool, bool) {
        let kept = self.0.as_ref().filter(|kept| kept.job.is_some());
        (kept.is_some(), kept.is_some_and(|kept| kept.stop))
    }
}
