// SPDX-License-Identifier: Apache-2.0

//! The Keep Alive Timeout (nvme_keep_alive).

use crate::context::{Event, SimContext};

use super::super::error_log::ErrorCause;
use super::super::Controller;

impl Controller {
    pub(super) fn restart_keep_alive(&mut self, ctx: &mut SimContext) {
        let ms = u64::from(self.features.keep_alive());
        self.keep_alive =
            (ms > 0 && self.accepts_commands()).then(|| ctx.now + ctx.cycles_of_ms(ms));
        if let Some(deadline) = self.keep_alive {
            ctx.schedule(deadline, Event::KeepAlive);
        }
    }

    /// Checks the Keep Alive Timeout.
    pub(crate) fn expire_keep_alive(&mut self, ctx: &mut SimContext) {
        if self.keep_alive.is_some_and(|deadline| deadline <= ctx.now) && self.accepts_commands() {
            self.keep_alive = None;
            self.logs.errors.record(ErrorCause::KeepAlive);
            self.raise_fatal(ctx);
        }
    }
}
