// SPDX-License-Identifier: Apache-2.0

//! The host's CPUs: a [host profile](HostProfile), and the costs of a driver that a design
//! overrides.

use serde::{Deserialize, Serialize};

use crate::error::{check, Error};
use crate::host::Sourced;
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
    /// CPU time of one doorbell of a driver, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mmio_write_ns: Option<u64>,
    /// Interval between two uncached stores that leave a CPU's store buffer, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mmio_store_ns: Option<u64>,
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
            mmio_store_ns: None,
            interrupt_ns: None,
        }
    }
}

impl Cpu {
    pub(crate) fn validate(&self) -> Result<(), Error> {
        self.host().map(drop)?;
        for (key, value) in [
            ("cpu.submit_ns", self.submit_ns),
            ("cpu.complete_ns", self.complete_ns),
            ("cpu.mmio_write_ns", self.mmio_write_ns),
            ("cpu.mmio_store_ns", self.mmio_store_ns),
            ("cpu.interrupt_ns", self.interrupt_ns),
        ] {
            let value = value.unwrap_or(0);
            check(key, value, value <= 1_000_000, "0 to 1000000")?;
        }
        Ok(())
    }

    /// The host profile, with the values that override it for loads and stores.
    pub fn host(&self) -> Result<HostProfile, Error> {
        let name = self.profile.as_str();
        let mut profile = match HostProfile::find(name) {
            Err(_) if !name.contains('/') && !name.ends_with(".toml") => {
                Err(HostProfile::unknown("cpu.profile", name))
            }
            found => found,
        }?;
        if let Some(ns) = self.mmio_store_ns {
            profile.core.mmio_store_ns = Sourced {
                value: ns as f64,
                source: "the design's cpu.mmio_store_ns".into(),
            };
        }
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_profile_that_does_not_exist_is_refused() {
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
