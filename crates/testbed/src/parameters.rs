// SPDX-License-Identifier: Apache-2.0

//! A design's host as parameters of the crates `host` and `driver`, which know no design.

use design::host::{ps, Sourced};
use design::HostProfile;
use driver::HostCosts;
use host::{CacheParameters, HostParameters, ReplacementPolicy};
use sim::Time;

/// The costs of CPUs and the sizes of the cache that a host profile states.
pub fn host_parameters(profile: &HostProfile) -> HostParameters {
    let HostProfile {
        core,
        cache,
        memory,
        ..
    } = profile;
    let time = |ns: &Sourced<f64>| Time(ps(ns.value));
    HostParameters {
        issue: time(&core.issue_ns),
        mmio_store: time(&core.mmio_store_ns),
        store_buffer: core.store_buffer.value as usize,
        load: time(&core.load_ns),
        wc_flush: time(&core.wc_flush_ns),
        ntstore: time(&core.ntstore_ns),
        clwb: time(&core.clwb_ns),
        clwb_drain: time(&core.clwb_drain_ns),
        sfence: time(&core.sfence_ns),
        hit: time(&cache.hit_ns),
        dram: time(&memory.dram_ns),
        copy_ps_per_byte: 1000.0 / memory.copy_gb_s.value,
        fill_buffers: core.fill_buffers.value as usize,
        wc_buffers: core.wc_buffers.value,
        cache: CacheParameters {
            sets: cache.sets(),
            ways: cache.ways.value as usize,
            policy: match cache.policy.value {
                design::host::ReplacementPolicy::Lru => ReplacementPolicy::Lru,
                design::host::ReplacementPolicy::Random => ReplacementPolicy::Random,
            },
        },
        read_back: None,
    }
}

/// The costs of a driver: those of the host profile, with the values that the design overrides. An
/// invalid profile, which [`design::Design::validate`] rejects, costs nothing.
pub fn driver_costs(cpu: &design::Cpu) -> HostCosts {
    let costs = cpu.host().map_or_else(
        |_| HostCosts::default(),
        |profile| HostCosts {
            submit_ps: ps(profile.driver.submit_ns.value),
            complete_ps: ps(profile.driver.complete_ns.value),
            mmio_write_ps: ps(profile.driver.doorbell_ns.value),
            interrupt_ps: ps(profile.driver.interrupt_ns.value),
        },
    );
    let ps = |given: Option<u64>, profile: u64| given.map_or(profile, |ns| ns * 1000);
    HostCosts {
        submit_ps: ps(cpu.submit_ns, costs.submit_ps),
        complete_ps: ps(cpu.complete_ns, costs.complete_ps),
        mmio_write_ps: ps(cpu.mmio_write_ns, costs.mmio_write_ps),
        interrupt_ps: ps(cpu.interrupt_ns, costs.interrupt_ps),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_parameters_by_default_are_those_of_the_profile_none() {
        let none = HostProfile::shipped("none").unwrap();
        assert_eq!(host_parameters(none), HostParameters::default());
    }

    #[test]
    fn driver_costs_are_those_of_the_profile_unless_the_design_overrides_them() {
        let cpu = |profile: &str| design::Cpu {
            profile: profile.into(),
            ..design::Cpu::default()
        };
        // Those of the first release.
        for (name, [submit, complete, store, interrupt]) in [
            ("none", [0, 0, 0, 0]),
            ("polled", [40, 30, 20, 0]),
            ("kernel", [900, 500, 20, 1500]),
        ] {
            let costs = HostCosts {
                submit_ps: submit * 1000,
                complete_ps: complete * 1000,
                mmio_write_ps: store * 1000,
                interrupt_ps: interrupt * 1000,
            };
            assert_eq!(driver_costs(&cpu(name)), costs, "{name}");
            assert_eq!(HostProfile::shipped(name).unwrap().attach, None, "{name}");
        }
        let costs = driver_costs(&design::Cpu {
            submit_ns: Some(1),
            ..cpu("kernel")
        });
        assert_eq!((costs.submit_ps, costs.complete_ps), (1000, 500_000));
    }
}
