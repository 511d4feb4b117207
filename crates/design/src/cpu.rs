//! What things cost on the host's CPU.

use serde::{Deserialize, Serialize};

use crate::error::{check, Error};

/// A named profile of CPU costs, and what deviates from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cpu {
    /// `none` (everything is free), `polled` (a user-space driver that polls) or `kernel` (system calls and interrupts).
    pub profile: String,
    /// CPU time to build and place one command, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submit_ns: Option<u64>,
    /// CPU time to reap one completion, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete_ns: Option<u64>,
    /// CPU time of one posted MMIO write, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mmio_write_ns: Option<u64>,
    /// CPU time from an interrupt message to the first look at the queue, in ns; 0 polls.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HostCosts {
    /// To build and place one command.
    pub submit_ps: u64,
    /// To reap one completion.
    pub complete_ps: u64,
    /// Of one posted MMIO write.
    pub mmio_write_ps: u64,
    /// From an interrupt message to the first look at the queue; 0 polls.
    pub interrupt_ps: u64,
}

/// Profiles by name: submission, completion, MMIO write, interrupt, in ns. `polled` is of the order that SPDK's perf tool
/// reports for one core (about 10 M IOPS without a device limit); `kernel` of Linux' block layer with interrupts.
const PROFILES: [(&str, [u64; 4]); 3] = [
    ("none", [0, 0, 0, 0]),
    ("polled", [40, 30, 20, 0]),
    ("kernel", [900, 500, 20, 1500]),
];

impl Cpu {
    pub(crate) fn validate(&self) -> Result<(), Error> {
        let names = PROFILES.map(|p| p.0);
        check(
            "cpu.profile",
            &self.profile,
            names.contains(&self.profile.as_str()),
            &names.join(", "),
        )?;
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

    /// The costs: those of the profile unless given here.
    pub fn costs(&self) -> HostCosts {
        let profile = PROFILES
            .iter()
            .find(|p| p.0 == self.profile)
            .map_or([0; 4], |p| p.1);
        let ps = |given: Option<u64>, i: usize| given.unwrap_or(profile[i]) * 1000;
        HostCosts {
            submit_ps: ps(self.submit_ns, 0),
            complete_ps: ps(self.complete_ns, 1),
            mmio_write_ps: ps(self.mmio_write_ns, 2),
            interrupt_ps: ps(self.interrupt_ns, 3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_costs_deviate_from_a_profile() {
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
            "cpu.profile = windows: allowed is none, polled, kernel"
        );
    }
}
