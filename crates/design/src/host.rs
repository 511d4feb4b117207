// SPDX-License-Identifier: Apache-2.0

//! Host profiles (`hosts/*.toml`): costs of the host's CPUs and cache, and the connection of a
//! device.

use std::path::Path;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use sim::{HostConfig, InvalidValue, LinkConfig};

use crate::error::{self, check, one_of, range, Error};

/// Bytes of a cache line.
const LINE_BYTES: u64 = 64;
/// The maximum time in a profile, ns.
const MOST_NS: f64 = 1e6;

/// The included profiles, by name. The first three only describe a driver.
const SHIPPED: [(&str, &str); 7] = [
    ("none", include_str!("../../../hosts/none.toml")),
    ("polled", include_str!("../../../hosts/polled.toml")),
    ("kernel", include_str!("../../../hosts/kernel.toml")),
    ("nearpm", include_str!("../../../hosts/nearpm.toml")),
    (
        "optane-dimm",
        include_str!("../../../hosts/optane-dimm.toml"),
    ),
    ("cxl", include_str!("../../../hosts/cxl.toml")),
    ("numa", include_str!("../../../hosts/numa.toml")),
];

/// A value and its publication, or the reason for assuming it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sourced<T> {
    /// The value; its unit is part of the key.
    pub value: T,
    /// Its publication, or `assumed` and the reason.
    pub source: String,
}

/// A host. Times are in ns, at most 1 ms each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostProfile {
    /// Its name, equal to the file's.
    pub name: String,
    /// A description in one line.
    pub description: String,
    /// Costs of an NVMe driver.
    pub driver: Driver,
    /// Loads and stores of one CPU to a device.
    pub core: CpuCore,
    /// The cache for device memory that is mapped write-back, shared by all CPUs.
    pub cache: Cache,
    /// The host's memory.
    pub memory: Dram,
    /// The CPU of a guest in simulated time. Only a profile with this table can be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestCpu>,
    /// The connection of CPU and device. Without this table the design's values apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attach: Option<Attachment>,
}

/// Costs of an NVMe driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Driver {
    /// CPU time to build and submit one command.
    pub submit_ns: Sourced<f64>,
    /// CPU time to reap one completion.
    pub complete_ns: Sourced<f64>,
    /// CPU time of one doorbell: the driver's code for it and the store.
    pub doorbell_ns: Sourced<f64>,
    /// From an interrupt message to the first check of the queue; 0 polls.
    pub interrupt_ns: Sourced<f64>,
}

/// Costs of one CPU's loads and stores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuCore {
    /// CPU time to issue a load, or a store to the cache or a write-combining buffer.
    pub issue_ns: Sourced<f64>,
    /// Interval between two uncached stores that leave the store buffer. The CPU continues
    /// meanwhile.
    pub mmio_store_ns: Sourced<f64>,
    /// Uncached stores that the store buffer holds: 1 to 1024.
    pub store_buffer: Sourced<u32>,
    /// The CPU's part of the round trip of a load from a device, in addition to `host.mmio_ns` each
    /// way.
    pub load_ns: Sourced<f64>,
    /// Maximum number of open loads from a device: 1 to 1024.
    pub fill_buffers: Sourced<u32>,
    /// Write-combining buffers: 1 to 1024.
    pub wc_buffers: Sourced<u32>,
    /// Time from the flush of a write-combining buffer until the host's fabric has accepted it,
    /// when the buffer is free again. The root complex has it after another `host.mmio_ns`.
    pub wc_flush_ns: Sourced<f64>,
    /// CPU time of one non-temporal store of up to 64 bytes.
    pub ntstore_ns: Sourced<f64>,
    /// CPU time to issue one `clwb` or `clflushopt`.
    pub clwb_ns: Sourced<f64>,
    /// Time from there until the host's fabric has accepted the line. The root complex has it after
    /// another `host.mmio_ns`.
    pub clwb_drain_ns: Sourced<f64>,
    /// CPU time of an `sfence` without outstanding stores.
    pub sfence_ns: Sourced<f64>,
}

/// The CPU of a guest in simulated time: the same time for each instruction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestCpu {
    /// Time of an instruction: 0.001 to 1000.
    pub instruction_ns: Sourced<f64>,
    /// Additional time of a read of the time stamp counter: 0 to 1000.
    pub counter_ns: Sourced<f64>,
}

/// How a set of the cache selects the line to evict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplacementPolicy {
    /// The least recently used one.
    Lru,
    /// A random one, from `host.seed`.
    Random,
}

/// The write-back cache. Lines have 64 bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Bytes: 64 times `ways` times a power of two, at most 1 GiB.
    pub bytes: Sourced<u32>,
    /// Lines of a set: 1 to 64.
    pub ways: Sourced<u32>,
    /// The replacement policy.
    pub policy: Sourced<ReplacementPolicy>,
    /// From the issue of a load to its data on a hit.
    pub hit_ns: Sourced<f64>,
}

/// The host's memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dram {
    /// A load that misses all caches.
    pub dram_ns: Sourced<f64>,
    /// Bytes per ns that one CPU copies within it: more than 0, at most 1000.
    pub copy_gb_s: Sourced<f64>,
}

/// The connection of CPU and device: keys of [`HostConfig`] and [`LinkConfig`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// Between CPU and root complex, one way.
    pub mmio_ns: Sourced<u32>,
    /// See [`LinkConfig::device_phy_ns`].
    pub device_phy_ns: Sourced<u32>,
    /// See [`LinkConfig::propagation_ns`].
    pub propagation_ns: Sourced<u32>,
    /// See [`LinkConfig::root_phy_ns`].
    pub root_phy_ns: Sourced<u32>,
    /// See [`LinkConfig::generation`]: 1 to 5.
    pub generation: Sourced<u8>,
    /// See [`LinkConfig::lanes`]: 1, 2, 4, 8, 16.
    pub lanes: Sourced<u8>,
}

impl HostProfile {
    /// Names of the included profiles.
    pub fn names() -> [&'static str; SHIPPED.len()] {
        SHIPPED.map(|shipped| shipped.0)
    }

    /// Finds a profile by name, or by path if the value contains `/` or `.toml`.
    pub fn find(name: &str) -> Result<HostProfile, Error> {
        if name.contains('/') || name.ends_with(".toml") {
            return HostProfile::load(Path::new(name));
        }
        HostProfile::shipped(name)
            .cloned()
            .ok_or_else(|| HostProfile::unknown("host profile", name))
    }

    /// An included profile.
    pub fn shipped(name: &str) -> Option<&'static HostProfile> {
        static PROFILES: OnceLock<Vec<HostProfile>> = OnceLock::new();
        let profiles = PROFILES.get_or_init(|| {
            let parse = |&(name, text): &(&str, &str)| {
                HostProfile::parse(text, Path::new(&format!("hosts/{name}.toml"))).ok()
            };
            // A test parses all of them.
            SHIPPED.iter().filter_map(parse).collect()
        });
        profiles.iter().find(|profile| profile.name == name)
    }

    /// Reads a profile file.
    pub fn load(path: &Path) -> Result<HostProfile, Error> {
        HostProfile::parse(&error::read(path)?, path)
    }

    /// Reads a profile from text. Errors name `path`.
    pub fn parse(text: &str, path: &Path) -> Result<HostProfile, Error> {
        let profile: HostProfile = error::parse(text, path)?;
        profile.validate().map_err(|e| e.in_text(path, text))?;
        Ok(profile)
    }

    /// The error for an unknown name.
    pub(crate) fn unknown(key: &str, name: &str) -> Error {
        let names = HostProfile::names().join(", ");
        let rule = format_args!("allowed is {names}, or a TOML file");
        InvalidValue::new(key, name, rule).into()
    }

    /// Checks every value, and that each has a source.
    pub fn validate(&self) -> Result<(), Error> {
        let Driver {
            submit_ns,
            complete_ns,
            doorbell_ns,
            interrupt_ns,
        } = &self.driver;
        time("driver.submit_ns", submit_ns)?;
        time("driver.complete_ns", complete_ns)?;
        time("driver.doorbell_ns", doorbell_ns)?;
        time("driver.interrupt_ns", interrupt_ns)?;
        self.core.validate()?;
        self.cache.validate()?;
        time("memory.dram_ns", &self.memory.dram_ns)?;
        let rate = &self.memory.copy_gb_s;
        sourced("memory.copy_gb_s", rate)?;
        let ok = rate.value > 0.0 && rate.value <= 1000.0;
        check(
            "memory.copy_gb_s",
            rate.value,
            ok,
            "more than 0, at most 1000",
        )?;
        self.guest.as_ref().map_or(Ok(()), GuestCpu::validate)?;
        self.attach.as_ref().map_or(Ok(()), Attachment::validate)
    }

    /// The CPU of a guest; an error if the profile has none.
    pub fn guest_cpu(&self) -> Result<&GuestCpu, Error> {
        let with_guest = HostProfile::names().into_iter();
        let with_guest = with_guest.filter_map(HostProfile::shipped);
        let names: Vec<&str> = with_guest
            .filter(|profile| profile.guest.is_some())
            .map(|profile| profile.name.as_str())
            .collect();
        let names = names.join(", ");
        let rule = format_args!("allowed is a profile with the table [guest]: {names}, or a file");
        let missing = || InvalidValue::new("host profile", &self.name, rule).into();
        self.guest.as_ref().ok_or_else(missing)
    }

    /// Host and link with the profile's values; otherwise those of `host` and `link`.
    pub fn attached(&self, host: &HostConfig, link: &LinkConfig) -> (HostConfig, LinkConfig) {
        let (mut host, mut link) = (host.clone(), link.clone());
        if let Some(attach) = &self.attach {
            host.mmio_ns = attach.mmio_ns.value.into();
            link.device_phy_ns = attach.device_phy_ns.value.into();
            link.propagation_ns = attach.propagation_ns.value.into();
            link.root_phy_ns = attach.root_phy_ns.value.into();
            link.generation = attach.generation.value;
            link.lanes = attach.lanes.value;
        }
        (host, link)
    }
}

impl CpuCore {
    fn validate(&self) -> Result<(), Error> {
        let times = [
            ("core.issue_ns", &self.issue_ns),
            ("core.mmio_store_ns", &self.mmio_store_ns),
            ("core.load_ns", &self.load_ns),
            ("core.wc_flush_ns", &self.wc_flush_ns),
            ("core.ntstore_ns", &self.ntstore_ns),
            ("core.clwb_ns", &self.clwb_ns),
            ("core.clwb_drain_ns", &self.clwb_drain_ns),
            ("core.sfence_ns", &self.sfence_ns),
        ];
        times.iter().try_for_each(|(key, value)| time(key, value))?;
        for (key, count) in [
            ("core.store_buffer", &self.store_buffer),
            ("core.fill_buffers", &self.fill_buffers),
            ("core.wc_buffers", &self.wc_buffers),
        ] {
            sourced(key, count)?;
            range(key, count.value, 1, 1024)?;
        }
        Ok(())
    }
}

impl GuestCpu {
    fn validate(&self) -> Result<(), Error> {
        let GuestCpu {
            instruction_ns,
            counter_ns,
        } = self;
        sourced("guest.instruction_ns", instruction_ns)?;
        let ok = (0.001..=1000.0).contains(&instruction_ns.value);
        let value = instruction_ns.value;
        check("guest.instruction_ns", value, ok, "0.001 to 1000")?;
        sourced("guest.counter_ns", counter_ns)?;
        let ok = (0.0..=1000.0).contains(&counter_ns.value);
        check("guest.counter_ns", counter_ns.value, ok, "0 to 1000")
    }
}

impl Cache {
    fn validate(&self) -> Result<(), Error> {
        sourced("cache.bytes", &self.bytes)?;
        sourced("cache.ways", &self.ways)?;
        sourced("cache.policy", &self.policy)?;
        time("cache.hit_ns", &self.hit_ns)?;
        let (bytes, ways) = (self.bytes.value, self.ways.value);
        range("cache.ways", ways, 1, 64)?;
        let way = u64::from(ways) * LINE_BYTES;
        let sets = u64::from(bytes) / way;
        let ok = u64::from(bytes) % way == 0 && sets.is_power_of_two() && bytes <= 1 << 30;
        let allowed = format!("{way} times a power of two, at most 1 GiB");
        check("cache.bytes", bytes, ok, &allowed)
    }

    /// Number of sets.
    pub fn sets(&self) -> usize {
        (u64::from(self.bytes.value) / (u64::from(self.ways.value.max(1)) * LINE_BYTES)) as usize
    }
}

impl Attachment {
    fn validate(&self) -> Result<(), Error> {
        let times = [
            ("attach.mmio_ns", &self.mmio_ns),
            ("attach.device_phy_ns", &self.device_phy_ns),
            ("attach.propagation_ns", &self.propagation_ns),
            ("attach.root_phy_ns", &self.root_phy_ns),
        ];
        for (key, value) in times {
            sourced(key, value)?;
            range(key, value.value, 0, MOST_NS as u32)?;
        }
        let sum = self.device_phy_ns.value + self.propagation_ns.value + self.root_phy_ns.value;
        let allowed =
            "10 and more with propagation_ns and root_phy_ns: the scheduler runs devices \
         apart for that long";
        check(
            "attach.device_phy_ns",
            self.device_phy_ns.value,
            sum >= 10,
            allowed,
        )?;
        sourced("attach.generation", &self.generation)?;
        range("attach.generation", self.generation.value.into(), 1, 5)?;
        sourced("attach.lanes", &self.lanes)?;
        one_of("attach.lanes", self.lanes.value.into(), &[1, 2, 4, 8, 16])
    }
}

/// Picoseconds of a validated time.
pub fn ps(ns: f64) -> u64 {
    (ns * 1000.0).round() as u64
}

fn sourced<T>(key: &str, value: &Sourced<T>) -> Result<(), Error> {
    let there = !value.source.trim().is_empty();
    check(
        key,
        "a value without a source",
        there,
        "{ value = ..., source = \"where it was published, or why it is assumed\" }",
    )
}

fn time(key: &str, value: &Sourced<f64>) -> Result<(), Error> {
    sourced(key, value)?;
    let ok = (0.0..=MOST_NS).contains(&value.value);
    check(key, value.value, ok, "0 to 1000000")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str) -> &'static str {
        SHIPPED.iter().find(|s| s.0 == name).unwrap().1
    }

    #[test]
    fn host_profiles_are_all_shipped_under_their_file_names() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hosts");
        let files = std::fs::read_dir(&folder).unwrap();
        let mut names: Vec<String> = files
            .map(|f| f.unwrap().path())
            .map(|path| {
                let profile = HostProfile::load(&path).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(
                    Some(profile.name.as_str()),
                    path.file_stem().and_then(|s| s.to_str())
                );
                assert_eq!(HostProfile::shipped(&profile.name), Some(&profile));
                let (host, link) = profile.attached(&HostConfig::default(), &LinkConfig::default());
                host.validate().unwrap();
                link.validate().unwrap();
                profile.name
            })
            .collect();
        names.sort();
        let mut shipped = HostProfile::names().to_vec();
        shipped.sort_unstable();
        assert_eq!(names, shipped);
    }

    #[test]
    fn host_profile_errors_are_one_line_with_file_key_and_allowed_values() {
        let polled = text("polled");
        for (from, to, why) in [
            (
                "[core]",
                "[core]\nclock_ghz = 3",
                "unknown key `core.clock_ghz`; allowed: ",
            ),
            (
                "value = 40",
                "value = -1",
                "driver.submit_ns = -1: allowed is 0 to 1000000",
            ),
            (
                "value = 40",
                "value = nan",
                "driver.submit_ns = NaN: allowed is 0 to 1000000",
            ),
            (
                "value = 40",
                "value = 2e6",
                "driver.submit_ns = 2000000: allowed is 0 to 1000000",
            ),
            (
                "value = 12",
                "value = 0",
                "core.fill_buffers = 0: allowed is 1 to 1024",
            ),
            (
                "value = 33554432",
                "value = 33554433",
                "cache.bytes = 33554433: allowed is 1024 times a power of two, at most 1 GiB",
            ),
            (
                "value = 16",
                "value = 65",
                "cache.ways = 65: allowed is 1 to 64",
            ),
            (
                "\"lru\"",
                "\"fifo\"",
                "cache.policy.value: unknown variant `fifo`, expected `lru` or `random`",
            ),
            (
                "value = 9.4",
                "value = 0",
                "memory.copy_gb_s = 0: allowed is more than 0, at most 1000",
            ),
            (
                "value = 40",
                "valve = 40",
                "unknown key `driver.submit_ns.valve`; allowed: `value` or `source`",
            ),
            (
                "source = \"Little's law: 12 fill buffers of 64 bytes in 81.4 ns\"",
                "source = \" \"",
                "memory.copy_gb_s = a value without a source: allowed is { value",
            ),
        ] {
            assert!(polled.contains(from), "{from}");
            let text = polled.replacen(from, to, 1);
            let error = HostProfile::parse(&text, Path::new("x.toml"))
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("x.toml:") && error.contains(why) && !error.contains('\n'),
                "{error}"
            );
        }
        for (from, to, why) in [
            (
                "value = 75",
                "value = 1000001",
                "attach.device_phy_ns = 1000001: allowed is 0 to 1000000",
            ),
            (
                "generation = { value = 3",
                "generation = { value = 6",
                "attach.generation = 6: allowed is 1 to 5",
            ),
            (
                "lanes = { value = 8",
                "lanes = { value = 3",
                "attach.lanes = 3: allowed are 1, 2, 4, 8, 16",
            ),
        ] {
            let text = text("nearpm").replacen(from, to, 1);
            let error = HostProfile::parse(&text, Path::new("x.toml"))
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("x.toml:") && error.contains(why) && !error.contains('\n'),
                "{error}"
            );
        }
        let error = HostProfile::find("vax").unwrap_err().to_string();
        assert!(
            error.starts_with("host profile = vax: allowed is none, polled, kernel, nearpm"),
            "{error}"
        );
        let error = HostProfile::find("/nonexistent/x.toml")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("/nonexistent/x.toml: "), "{error}");
    }
}
