// SPDX-License-Identifier: Apache-2.0

//! Observation of the CPUs, and of power cuts, for crash tests.

use crate::events::{HostEvent, Observer};
use crate::machine::{CrashProbe, Machine};

impl Machine {
    /// Reports the actions of the CPUs to `observer` from now on, or to none.
    pub fn observe(&mut self, observer: Option<Observer>) {
        self.observer = observer;
    }

    /// Reports an event that happens now.
    pub(crate) fn record(&mut self, event: impl FnOnce() -> HostEvent) {
        let now = self.system.now();
        if let Some(observer) = &mut self.observer {
            observer(now, event());
        }
    }

    /// Reports an event at the time of a CPU.
    pub(crate) fn record_at(&mut self, cpu: usize, event: impl FnOnce() -> HostEvent) {
        let time = self.time(cpu);
        if let Some(observer) = &mut self.observer {
            observer(time, event());
        }
    }

    /// Calls `probe` at the time of [`Machine::cut_at`], before the power fails.
    pub fn set_probe(&mut self, probe: Option<CrashProbe>) {
        self.probe = probe;
    }

    /// True if a probe has postponed the cut past the present.
    pub(crate) fn is_spared(&mut self) -> bool {
        while self.cut.is_some_and(|cut| self.system.now() >= cut) {
            let Some(mut probe) = self.probe.take() else {
                return false;
            };
            let Some(next) = probe(self) else {
                return false;
            };
            self.cut = Some(next);
            self.probe.get_or_insert(probe);
        }
        true
    }
}
