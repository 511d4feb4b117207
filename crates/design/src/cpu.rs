// SPDX-License-Identifier: Apache-2.0

//! CPU costs of an NVMe driver: a [host profile](HostProfile), and the values that a design
//! overrides.

use serde::{Deserialize, Serialize};

use crate::error::{check, Error};
use crate::HostProfile;

/// A host profile, and the values that override it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cpu {
    /// A profile of `hosts/`, such as `none` (no costs), `polled` (a user-space driver that polls)
    /// or `kernel` (system calls and interrupts), or a TOML file: see [`HostProfile::find`].
    pub profile: String,
    /// CPU time to build and submit one command, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submit_ns: Option<u64>,
    /// CPU time to reap one completion, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete_ns: Option<u64>,
    /// CPU time of one posted MMIO write, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mmio_write_ns: Option<u64>,
    /// CPU time from an interrupt message to the first check of the queue, in ns; 0 polls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt_ns: Option<u64>,
}

impl Default for Cpu {
    fn default() -> Cpu {
        Cpu {
            profile: "polled".into(),
            submit_ns: None,
            complete_ns: None,
            mmio_write_ns: None,
            interrupt_ns: None,
        }
    }
}

/// CPU costs in picoseconds of simulated time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostCosts {
    /// To build and submit one command.
    pub submit_ps: u64,
    /// To reap one completion.
    pub complete_ps: u64,
    /// Of one posted MMIO write.
    pub mmio_write_ps: u64,
    /// From an interrupt message to the first check of the queue; 0 polls.
    pub interrupt_ps: u64,
}

impl Cpu {
    pub(crate) fn validate(&self) -> Result<(), Error> {
        self.host().map(drop)?;
        for (key, value) in [
            ("cpu.submit_ns", self.submit_ns),
            ("cpu.complete_ns", self.complete_ns),
            ("cpu.mmio_write_ns", self.mmio_write_ns),
            ("cpu.interrupt_ns", self.interrupt_ns),
        ] {
            let value = value.unwrap_or(0);
            check(key, value, value <= 1_000_000, "0 to 1000000")?;
        }
        Ok(())
    }

    /// The host profile.
    pub fn host(&self) -> Result<HostProfile, Error> {
        let name = self.profile.as_str();
        match HostProfile::find(name) {
            Err(_) if !name.contains('/') && !name.ends_with(".toml") => {
                Err(HostProfile::unknown("cpu.profile", name))
            }
            found => found,
        }
    }

    /// The costs of the profile with the overrides of the design. An invalid profile, which
    /// [`crate::Design::validate`] rejects, costs nothing.
    pub fn costs(&self) -> HostCosts {
        let profile = self
            .host()
            .map_or_else(|_| HostCosts::default(), |p| p.costs());
        let ps = |given: Option<u64>, profile: u64| given.map_or(profile, |ns| ns * 1000);
        HostCosts {
            submit_ps: ps(self.submit_ns, profile.submit_ps),
            complete_ps: ps(self.complete_ns, profile.complete_ps),
            mmio_write_ps: ps(self.mmio_write_ns, profile.mmio_write_ps),
            interrupt_ps: ps(self.interrupt_ns, profile.interrupt_ps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_costs_override_those_of_the_profile() {
        let cpu = Cpu {
            profile: "kernel".into(),
            submit_ns: Some(1),
            ..Cpu::default()
        };
        let costs = cpu.costs();
        assert_eq!((costs.submit_ps, costs.complete_ps), (1000, 500_000));
        let cpu = Cpu {
            profile: "windows".into(),
            ..Cpu::default()
        };
        let error = cpu.validate().unwrap_err().to_string();
        assert_eq!(
            error,
            "cpu.profile = windows: allowed is none, polled, kernel, nearpm, optane-dimm, cxl, \
             numa, or a TOML file"
        );
    }
}
