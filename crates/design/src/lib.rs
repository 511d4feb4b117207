// SPDX-License-Identifier: Apache-2.0

//! Device configurations (`designs/*.toml`), media profiles (`media/*.toml`) and host profiles
//! (`hosts/*.toml`). A [`Design`] describes a device and its host. All values are checked when the
//! file is read: an unknown key or an invalid value is a one-line error with the file, the key and
//! the allowed values.
//!
//! Reading order:
//! - this file: [`Design`] and its tables for the media, the NVMe controller and the memory
//!   channels;
//! - `memory`: the local memory;
//! - [`media`]: media profiles, and the registers and sizes of `nvm_delay`; [`path`]: the device's
//!   latency outside `nvm_delay`;
//! - [`host`], `cpu`: host profiles and driver costs;
//! - [`engine`]: engines, their manifests, and the device top; [`export`]: exports for external
//!   tools;
//! - `shipped`: the designs, media profiles and engines that belong to the program;
//! - `identity`: serial number and names of a device;
//! - `error`: errors with file and line.
//!
//! Left out: building and running a device (crates `device`, `fast` and `driver`).

#![forbid(unsafe_code)]

mod cpu;
pub mod engine;
mod error;
pub mod export;
pub mod host;
mod identity;
pub mod media;
mod memory;
pub mod path;
mod shipped;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sim::{Clock, DramConfig, HostConfig, LinkConfig};
use spec::nvm_delay::Interleave;

pub use cpu::Cpu;
pub use error::Error;
pub use host::HostProfile;
pub use identity::{DeviceInstance, Identity};

pub use media::Profile;
pub use memory::{Memory, LOCAL};
pub use shipped::checkout;

use error::{check, one_of, range};

/// Major version of the design format: part of the content hash.
const FORMAT: u32 = 1;

/// A device and the host that it is connected to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Design {
    /// Its name, for reports.
    pub name: String,
    /// The device's clock in MHz: 1 to 1000.
    #[serde(default = "default_clock_mhz")]
    pub clock_mhz: u32,
    /// Memory channels: 1, 2 or 4.
    #[serde(default = "default_channels")]
    pub channels: u32,
    /// Bytes that go to one channel before the next one: a power of two from 4 KiB to 1 MiB.
    #[serde(default = "default_granule")]
    pub granule: Bytes,
    /// The media.
    pub media: Media,
    /// Sizes of each channel's `nvm_delay` that override those of the profile.
    #[serde(default, skip_serializing_if = "Delay::is_empty")]
    pub delay: Delay,
    /// The NVMe controller.
    #[serde(default)]
    pub nvme: Nvme,
    /// Memories in addition to the media, at most one: `local`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<Memory>,
    /// Engines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub engine: Vec<engine::Engine>,
    /// The PCIe link.
    #[serde(default)]
    pub pcie: LinkConfig,
    /// The DDR4 channel that each memory channel has.
    #[serde(default)]
    pub dram: DramConfig,
    /// The host's memory and root complex.
    #[serde(default)]
    pub host: HostConfig,
    /// The host's CPUs: a host profile.
    #[serde(default)]
    pub cpu: Cpu,
    #[serde(skip)]
    origin: SourceFile,
}

/// The file of a design, for errors that are found later. It does not matter when designs are
/// compared.
#[derive(Clone, Debug, Default)]
struct SourceFile(Option<Arc<(PathBuf, String)>>);

impl PartialEq for SourceFile {
    fn eq(&self, _: &SourceFile) -> bool {
        true
    }
}

impl SourceFile {
    /// Adds file and line to an error.
    fn locate(&self, error: Error) -> Error {
        match self.0.as_deref() {
            Some((path, text)) => error.in_text(path, text),
            None => error,
        }
    }
}

/// The storage and its timing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Media {
    /// Bytes of the whole media: at least 1 MiB and a power of two.
    pub bytes: Bytes,
    /// A file that stores the data. Without it the media is in memory and starts as zeros.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The media profile whose timing `nvm_delay` gives to every channel: `media/<profile>.toml`.
    #[serde(default = "default_profile")]
    pub profile: String,
}

/// Sizes of each channel's `nvm_delay`. The others follow from the media profile, see
/// [`Profile::sizes`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Delay {
    /// Reads in flight: 32, 64 or 128.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_slots: Option<u32>,
    /// Writes in flight: 32, 64, 128, 256 or 512.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_slots: Option<u32>,
    /// Beats of 64 bytes that the read buffer holds: a power of two from 512 to 32768.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_beats: Option<u32>,
}

impl Delay {
    fn is_empty(&self) -> bool {
        *self == Delay::default()
    }

    /// `sizes` with the given ones replaced.
    fn sizes(&self, sizes: media::DelaySizes) -> media::DelaySizes {
        media::DelaySizes {
            read_slots: self.read_slots.unwrap_or(sizes.read_slots),
            write_slots: self.write_slots.unwrap_or(sizes.write_slots),
            buffer_beats: self.buffer_beats.unwrap_or(sizes.buffer_beats),
        }
    }

    fn validate(&self, table: &str) -> Result<(), Error> {
        let slots = |key: &str, slots: Option<u32>, all| {
            slots.map_or(Ok(()), |n| one_of(&format!("{table}.{key}"), n, all))
        };
        slots("read_slots", self.read_slots, &media::SLOTS)?;
        slots("write_slots", self.write_slots, &media::WRITE_SLOTS)?;
        let beats = self.buffer_beats.unwrap_or(media::BUFFER[0]);
        let ok = beats.is_power_of_two() && (media::BUFFER[0]..=media::BUFFER[1]).contains(&beats);
        check(
            &format!("{table}.buffer_beats"),
            beats,
            ok,
            "a power of two from 512 to 32768",
        )
    }
}

/// Maximum number of namespaces.
pub const MAX_NAMESPACES: usize = 16;
/// Alignment of a namespace on the media.
const NAMESPACE_ALIGN: u64 = 4096;
/// Bytes of a logical block.
const BLOCK_BYTES: u64 = 512;

/// Sizes of the NVMe controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Nvme {
    /// I/O queue pairs: 1 to 64.
    pub io_queues: u32,
    /// Entries of the longest queue (MQES + 1): a power of two from 16 to 1024.
    pub queue_entries: u32,
    /// Commands in flight inside the controller: 16, 32, 64 or 128.
    pub slots: u32,
    /// Whether the controller offers Doorbell Buffer Config (shadow doorbells). Linux uses it
    /// whenever it is offered: a host then writes fewer registers, and the first command after a
    /// pause takes an additional read of host memory. Physical devices do not offer it.
    pub doorbell_buffer: bool,
    /// Beats of 64 bytes of each channel's media that are read ahead: a power of two from 512 to
    /// 4096. This and the following keys follow from the media profile by default, see
    /// [`Profile::mover_sizes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_read_beats: Option<u32>,
    /// Reads of up to 4 KiB in flight in each channel: 32 or 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_reads: Option<u32>,
    /// Bytes of the longest write burst to the media: 1024, 2048 or 4096.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_write_bytes: Option<u32>,
    /// Write bursts in flight in each channel: a power of two from 32 to 512.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_writes: Option<u32>,
    /// Sizes of up to 16 namespaces, multiples of 512 bytes; 0 makes an inactive one. Without this
    /// key namespace 1 is the whole media.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<Bytes>,
    /// Serial number, 1 to 20 characters, from which all names of the device and its namespaces are
    /// derived. Without this key it is derived, see [`Identity::of`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
}

impl Nvme {
    /// The parameters of the hardware for the namespaces, as SystemVerilog literals; none for the
    /// default.
    pub fn namespace_parameters(&self) -> Vec<(&'static str, String)> {
        if self.namespaces.is_empty() {
            return Vec::new();
        }
        // 64 bits each, namespace 1 in the low ones.
        let blocks = self.namespaces.iter().rev();
        let digits: String = blocks
            .map(|bytes| format!("{:016x}", bytes.0 / BLOCK_BYTES))
            .collect();
        vec![
            ("NumNamespaces", self.namespaces.len().to_string()),
            ("NsBlocks", format!("{}'h{digits}", 64 * MAX_NAMESPACES)),
        ]
    }

    /// Bytes at the end of the media that belong to no namespace.
    pub fn unclaimed_bytes(&self, media: Bytes) -> u64 {
        let end = self.namespaces.iter().fold(0u64, |end, bytes| {
            end.next_multiple_of(NAMESPACE_ALIGN) + bytes.0
        });
        match self.namespaces.is_empty() {
            true => 0,
            false => media.0.saturating_sub(end),
        }
    }

    /// Media addresses of a namespace, from 1 on; empty if it does not exist.
    pub fn extent(&self, namespace: u32, media: Bytes) -> std::ops::Range<u64> {
        if self.namespaces.is_empty() {
            return 0..media.0;
        }
        let mut end = 0u64;
        for (number, bytes) in (1..).zip(&self.namespaces) {
            let start = end.next_multiple_of(NAMESPACE_ALIGN);
            end = start + bytes.0;
            if number == namespace {
                return start..end;
            }
        }
        0..0
    }

    fn validate_movers(&self) -> Result<(), Error> {
        let power = |key: &str, value: Option<u32>, [least, most]: [u32; 2]| {
            let value = value.unwrap_or(least);
            let ok = value.is_power_of_two() && (least..=most).contains(&value);
            let allowed = format!("a power of two from {least} to {most}");
            check(key, value, ok, &allowed)
        };
        power(
            "nvme.media_read_beats",
            self.media_read_beats,
            media::READ_BEATS,
        )?;
        power("nvme.media_reads", self.media_reads, media::READS)?;
        power("nvme.media_writes", self.media_writes, media::WRITES)?;
        self.media_write_bytes.map_or(Ok(()), |n| {
            one_of("nvme.media_write_bytes", n, &media::WRITE_BYTES)
        })
    }

    fn validate_namespaces(&self, media: Bytes) -> Result<(), Error> {
        let count = self.namespaces.len();
        let key = "nvme.namespaces";
        check(key, count, count <= MAX_NAMESPACES, "at most 16 of them")?;
        let mut end = Some(0u64);
        for (n, &bytes) in self.namespaces.iter().enumerate() {
            let key = format!("{key}[{n}]");
            let whole = bytes.0 % BLOCK_BYTES == 0;
            check(&key, bytes, whole, "a multiple of 512 bytes")?;
            let start = end.and_then(|end| end.checked_next_multiple_of(NAMESPACE_ALIGN));
            end = start.and_then(|start| start.checked_add(bytes.0));
            let left = media.0.saturating_sub(start.unwrap_or(u64::MAX));
            let fits = end.is_some_and(|end| end <= media.0);
            let allowed = format!("at most the {} that are left of media.bytes", Bytes(left));
            check(&key, bytes, fits, &allowed)?;
        }
        let some = count == 0 || self.namespaces.iter().any(|bytes| bytes.0 > 0);
        check(key, "all 0", some, "at least one with a size")
    }
}

impl Default for Nvme {
    fn default() -> Nvme {
        Nvme {
            io_queues: 16,
            queue_entries: 1024,
            slots: 128,
            doorbell_buffer: true,
            media_read_beats: None,
            media_reads: None,
            media_write_bytes: None,
            media_writes: None,
            namespaces: Vec::new(),
            serial: None,
        }
    }
}

fn default_clock_mhz() -> u32 {
    250
}
fn default_channels() -> u32 {
    2
}
fn default_granule() -> Bytes {
    Bytes(4096)
}
fn default_profile() -> String {
    "dram".into()
}

impl Design {
    /// Reads a design file.
    pub fn load(path: &Path) -> Result<Design, Error> {
        let text = error::read(path)?;
        Design::parse(&text, path)
    }

    /// Finds a design by name among those of the program, or by path if the value contains `/` or
    /// `.toml`.
    pub fn find(name: &str) -> Result<Design, Error> {
        let (path, text) = shipped::find("design", "designs", name)?;
        Design::parse(&text, &path)
    }

    /// Reads a design from text. Errors name `path`.
    pub fn parse(text: &str, path: &Path) -> Result<Design, Error> {
        let mut design: Design = error::parse(text, path)?;
        design.origin = SourceFile(Some(Arc::new((path.into(), text.into()))));
        let checked = design.validate();
        checked.map_err(|e| design.origin.locate(e))?;
        Ok(design)
    }

    /// The path that the design was read from, if it was read. Without a checkout, a design of the
    /// program has no such file.
    pub fn path(&self) -> Option<&Path> {
        self.origin.0.as_deref().map(|(path, _)| path.as_path())
    }

    /// The design with values overridden by a TOML text with the same keys.
    pub fn with_values(&self, overrides: &str) -> Result<Design, Error> {
        let path = Path::new("override");
        let overrides: toml::Table = error::parse(overrides, path)?;
        let mut table = toml::Table::try_from(self)?;
        merge(&mut table, overrides);
        let text = toml::to_string(&table)?;
        let design: Design = error::parse(&text, path).map_err(|error| match error {
            // Lines of the merged text belong to no file.
            Error::InFile { source, .. } => source.in_file(path, None),
            other => other,
        })?;
        design.validate().map_err(|e| e.in_file(path, None))?;
        Ok(design)
    }

    /// Checks every value against the supported ones of the hardware and the models.
    pub fn validate(&self) -> Result<(), Error> {
        let name_ok = !self.name.is_empty()
            && self
                .name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        check(
            "name",
            &self.name,
            name_ok,
            "letters, digits, '-', '_' and '.'",
        )?;
        range("clock_mhz", self.clock_mhz, 1, 1000)?;
        one_of("channels", self.channels, &[1, 2, 4])?;
        let granule = self.granule.0;
        let granule_ok = granule.is_power_of_two() && (4 << 10..=1 << 20).contains(&granule);
        check(
            "granule",
            self.granule,
            granule_ok,
            "a power of two from 4 KiB to 1 MiB",
        )?;
        let media = self.media.bytes.0;
        let media_ok = media.is_power_of_two() && (1 << 20..=1 << 40).contains(&media);
        check(
            "media.bytes",
            self.media.bytes,
            media_ok,
            "a power of two from 1 MiB to 1 TiB",
        )?;
        let file = self.media.file.as_deref();
        let named = file.is_none_or(|file| !file.as_os_str().is_empty());
        let allowed = "the name of a file, or no such key for media in memory";
        check("media.file", "\"\"", named, allowed)?;
        media::Profile::check_named("media.profile", &self.media.profile)?;
        let room = u64::from(self.channels) * granule;
        check(
            "granule",
            self.granule,
            room <= media,
            "at most media.bytes / channels",
        )?;

        range("nvme.io_queues", self.nvme.io_queues, 1, 64)?;
        let entries = self.nvme.queue_entries;
        let entries_ok = entries.is_power_of_two() && (16..=1024).contains(&entries);
        check(
            "nvme.queue_entries",
            entries,
            entries_ok,
            "a power of two from 16 to 1024",
        )?;
        one_of("nvme.slots", self.nvme.slots, &[16, 32, 64, 128])?;
        self.nvme.validate_movers()?;
        self.nvme.validate_namespaces(self.media.bytes)?;
        self.validate_memories()?;
        self.validate_engines()?;
        self.delay.validate("delay")?;
        self.nvme
            .serial
            .as_deref()
            .map_or(Ok(()), |serial| Identity::new(serial).map(drop))?;

        self.pcie.validate().map_err(|e| e.in_table("pcie"))?;
        self.dram.validate().map_err(|e| e.in_table("dram"))?;
        self.host.validate().map_err(|e| e.in_table("host"))?;
        let most = self.dram.bytes().saturating_mul(u64::from(self.channels));
        let allowed = format!("at most {}, the DRAM of all channels", Bytes(most));
        check("media.bytes", self.media.bytes, media <= most, &allowed)?;
        self.cpu.validate()
    }

    /// Host and link with the host profile's values for the connection of CPU and device.
    pub fn attached(&self) -> Result<(HostConfig, LinkConfig), Error> {
        let profile = self.cpu.host().map_err(|e| self.origin.locate(e))?;
        Ok(profile.attached(&self.host, &self.pcie))
    }

    /// How the memory channels are interleaved.
    pub fn interleave(&self) -> Interleave {
        Interleave {
            channels: self.channels,
            granule: self.granule.0,
        }
    }

    /// The sizes of each channel's `nvm_delay`: those of the design, otherwise of its media
    /// profile.
    pub fn delay_sizes(&self, profile: &Profile) -> media::DelaySizes {
        self.delay.sizes(profile.sizes(self.clock(), self.channels))
    }

    /// The NVMe controller's limits in each channel: those of the design, otherwise of its media
    /// profile.
    pub fn mover_sizes(&self, profile: &Profile) -> media::MoverSizes {
        let sizes = profile.mover_sizes(self.clock(), self.channels);
        media::MoverSizes {
            read_beats: self.nvme.media_read_beats.unwrap_or(sizes.read_beats),
            reads: self.nvme.media_reads.unwrap_or(sizes.reads),
            write_bytes: self.nvme.media_write_bytes.unwrap_or(sizes.write_bytes),
            writes: self.nvme.media_writes.unwrap_or(sizes.writes),
        }
    }

    /// The device's clock. A design that was not validated has the default for an invalid
    /// frequency.
    pub fn clock(&self) -> Clock {
        Clock::from_mhz(self.clock_mhz).unwrap_or_default()
    }

    /// SHA-256 of all values, independent of the order and format of the file. It covers neither
    /// the RTL nor the contents of the media profile, of which a design only has the name.
    pub fn hash(&self) -> String {
        let canonical = serde_json::json!({ "format": FORMAT, "design": self }).to_string();
        Sha256::digest(canonical.as_bytes())
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect()
    }
}

/// Overrides the values of `base` with those of `overrides`, table by table.
fn merge(base: &mut toml::Table, overrides: toml::Table) {
    for (key, value) in overrides {
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(base)), toml::Value::Table(overrides)) => {
                merge(base, overrides)
            }
            (_, value) => drop(base.insert(key, value)),
        }
    }
}

/// A number of bytes; in files an integer or a string such as `"64 KiB"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut value, mut unit) = (self.0, 0);
        while value >= 1024 && value % 1024 == 0 && unit < UNITS.len() - 1 {
            value /= 1024;
            unit += 1;
        }
        write!(f, "{value} {}", UNITS[unit])
    }
}

/// A text that is not a number of bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a size; write an integer or e.g. \"64 KiB\", \"1 GiB\"")]
pub struct NotASize(pub String);

const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

impl std::str::FromStr for Bytes {
    type Err = NotASize;
    fn from_str(text: &str) -> Result<Bytes, NotASize> {
        let bad = || NotASize(text.into());
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: u64 = text[..digits].parse().map_err(|_| bad())?;
        let unit = match text[digits..].trim() {
            "" => 0,
            name => UNITS
                .iter()
                .position(|u| u.eq_ignore_ascii_case(name))
                .ok_or_else(bad)?,
        };
        number
            .checked_mul(1 << (10 * unit))
            .map(Bytes)
            .ok_or_else(bad)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a size: an integer or a string such as \"1 GiB\"")
            }
            fn visit_i64<E: serde::de::Error>(self, v: i64) -> Result<Bytes, E> {
                u64::try_from(v)
                    .map(Bytes)
                    .map_err(|_| E::custom("a size can't be negative"))
            }
            fn visit_u64<E: serde::de::Error>(self, v: u64) -> Result<Bytes, E> {
                Ok(Bytes(v))
            }
            fn visit_str<E: serde::de::Error>(self, v: &str) -> Result<Bytes, E> {
                v.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: &str = include_str!("../../../designs/default.toml");

    fn parse(text: &str) -> Result<Design, String> {
        Design::parse(text, Path::new("x.toml")).map_err(|e| e.to_string())
    }

    fn minimal() -> Design {
        parse("name = \"x\"\n[media]\nbytes = \"1 MiB\"\n").unwrap()
    }

    #[test]
    fn designs_shipped_are_valid() {
        for entry in std::fs::read_dir(checkout().unwrap().join("designs")).unwrap() {
            let path = entry.unwrap().path();
            let design = Design::load(&path).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(
                Some(design.name.as_str()),
                path.file_stem().and_then(|s| s.to_str())
            );
        }
        let design = Design::find("default").unwrap();
        assert_eq!((design.channels, design.media.bytes), (2, Bytes(1 << 30)));
    }

    #[test]
    fn design_unknown_keys_are_reported_with_file_key_and_allowed_keys() {
        let error = parse(&format!("chanels = 2\n{DEFAULT}")).unwrap_err();
        assert!(
            error.starts_with("x.toml:1: unknown key `chanels`"),
            "{error}"
        );
        assert!(
            error.contains("`channels`") && !error.contains('\n'),
            "{error}"
        );
        let error =
            parse("name = \"x\"\n[media]\nbytes = 1048576\n[pcie]\nlane = 8\n").unwrap_err();
        assert!(
            error.starts_with("x.toml:5: unknown key `pcie.lane`"),
            "{error}"
        );
        assert!(error.contains("`lanes`"), "{error}");
    }

    #[test]
    fn design_missing_key_is_the_one_reported() {
        for (text, said) in [
            ("clock_mhz = 0\n", "x.toml: missing key `name`"),
            (
                "# none\nmedia = { bytes = 1048576 }\n",
                "x.toml: missing key `name`",
            ),
            ("[media]\nbytes = 1048576\n", "x.toml: missing key `name`"),
            ("name = \"x\"\n", "x.toml: missing key `media`"),
            (
                "name = \"x\"\n[media]\nprofile = \"pcm\"\n",
                "x.toml:2: missing key `media.bytes`",
            ),
            (
                "name = \"x\"\nmedia = { profile = \"pcm\" }\n",
                "x.toml:2: missing key `media.bytes`",
            ),
            (
                "name = \"x\"\n[media]\nbytes = 1048576\n[[engine]]\nengine = \"copy\"\n",
                "x.toml:4: missing key `engine.name`",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), said, "{text}");
        }
    }

    #[test]
    fn design_media_profile_that_does_not_exist_is_refused_where_it_is_named() {
        let text = "name = \"x\"\n[media]\nbytes = \"1 MiB\"\nprofile = \"nope\"\n";
        let error = parse(text).unwrap_err();
        let wanted = "x.toml:4: media.profile = nope: allowed is ";
        assert!(error.starts_with(wanted), "{error}");
        assert!(error.ends_with(", or a TOML file"), "{error}");
        let error = minimal().with_values("media.profile = \"no/x.toml\"");
        let error = error.unwrap_err().to_string();
        let wanted = "override: media.profile = no/x.toml: No such file";
        assert!(error.starts_with(wanted), "{error}");
        let local = "[[memory]]\nname = \"local\"\nbytes = \"1 MiB\"\nprofile = \"nope\"\n";
        let text = text.replace("nope", "dram") + local;
        let error = parse(&text).unwrap_err();
        assert!(
            error.starts_with("x.toml:8: memory[0].profile = nope: "),
            "{error}"
        );
    }

    #[test]
    fn design_errors_escape_line_breaks_of_names() {
        let named = |name: &str, path: &str| {
            let text = format!("name = \"{name}\"\n[media]\nbytes = 1\n");
            let error = Design::parse(&text, Path::new(path)).unwrap_err();
            error.to_string()
        };
        let error = named("a\\nb", "c\n\u{2028}d.toml");
        assert!(
            error.starts_with("c\\n\\u{2028}d.toml:1: name = a\\nb: "),
            "{error}"
        );
        for (name, wanted) in [
            ("a\nb", "no design \"a\\nb\" in "),
            ("a\r/b", "a\\r/b: No such"),
        ] {
            let error = Design::find(name).unwrap_err().to_string();
            assert!(error.starts_with(wanted), "{error}");
        }
        let error = parse("name = \"x\"\n\"a\\nb\" = 1\n").unwrap_err();
        assert!(
            error.starts_with("x.toml:2: unknown key `a\\nb`"),
            "{error}"
        );
    }

    #[test]
    fn design_impossible_values_are_reported_with_file_key_and_allowed_values() {
        let text = "name = \"x\"\nchannels = 3\n[media]\nbytes = \"1 GiB\"\n";
        assert_eq!(
            parse(text).unwrap_err(),
            "x.toml:2: channels = 3: allowed are 1, 2, 4"
        );
        let text = "name = \"x\"\n[media]\nbytes = \"3 MiB\"\n";
        assert_eq!(
            parse(text).unwrap_err(),
            "x.toml:3: media.bytes = 3 MiB: allowed is a power of two from 1 MiB to 1 TiB"
        );
        let error =
            parse("name = \"x\"\nchannels = \"two\"\n[media]\nbytes = 1048576\n").unwrap_err();
        assert!(
            error.starts_with("x.toml:2: channels: invalid type"),
            "{error}"
        );
        let error = parse("name = \"x\"\n[media]\nbytes = \"1 furlong\"\n").unwrap_err();
        assert!(
            error.starts_with("x.toml:3: media.bytes: \"1 furlong\" is not a size"),
            "{error}"
        );
        let text = "name = \"x\"\n[media]\nbytes = 1048576\n[pcie]\nlanes = 3\n";
        assert_eq!(
            parse(text).unwrap_err(),
            "x.toml:5: pcie.lanes = 3: allowed are 1, 2, 4, 8, 16"
        );
        let error = parse("name = \"x\"\n").unwrap_err();
        assert!(error.contains("media"), "{error}");
        let text = "name = \"x\"\n[media]\nbytes = 1048576\nfile = \"\"\n";
        let why =
            "media.file = \"\": allowed is the name of a file, or no such key for media in memory";
        assert_eq!(parse(text).unwrap_err(), format!("x.toml:4: {why}"));
        let error = minimal().with_values("[media]\nfile = \"\"\n");
        assert_eq!(error.unwrap_err().to_string(), format!("override: {why}"));
    }

    #[test]
    fn design_values_have_bounds() {
        const MIB: u64 = 1 << 20;
        let allowed: &[(&str, &str, &[u64], &[u64])] = &[
            ("", "clock_mhz", &[1, 1000], &[0, 1001]),
            ("", "channels", &[1, 2, 4], &[0, 3, 5, 8]),
            ("", "granule", &[4096, MIB], &[0, 2048, 12288, 2 * MIB]),
            (
                "media",
                "bytes",
                &[MIB, 1 << 33],
                &[0, MIB / 2, 3 * MIB, 1 << 41],
            ),
            ("nvme", "io_queues", &[1, 64], &[0, 65]),
            (
                "nvme",
                "queue_entries",
                &[16, 64, 1024],
                &[0, 8, 17, 1000, 2048],
            ),
            ("nvme", "slots", &[16, 32, 64, 128], &[0, 8, 48, 129, 256]),
            ("cpu", "submit_ns", &[0, 1_000_000], &[1_000_001]),
            ("cpu", "complete_ns", &[0, 1_000_000], &[1_000_001]),
            ("cpu", "mmio_write_ns", &[0, 1_000_000], &[1_000_001]),
            ("cpu", "mmio_store_ns", &[0, 1_000_000], &[1_000_001]),
            ("cpu", "interrupt_ns", &[0, 1_000_000], &[1_000_001]),
        ];
        let large = minimal().with_values("[media]\nbytes = \"1 GiB\"\n");
        let large = large.unwrap();
        for &(table, key, good, bad) in allowed {
            let head = if table.is_empty() {
                String::new()
            } else {
                format!("[{table}]\n")
            };
            let with = |value: u64| large.with_values(&format!("{head}{key} = {value}\n"));
            for &value in good {
                with(value).unwrap_or_else(|e| panic!("{e}"));
            }
            for &value in bad {
                let error = with(value).expect_err(key).to_string();
                assert!(error.contains(key) && error.contains("allowed"), "{error}");
            }
        }
    }

    #[test]
    fn design_doorbell_buffer_is_true_or_false() {
        let with = |value: &str| {
            let key = format!("[nvme]\ndoorbell_buffer = {value}\n");
            parse(&format!("name = \"x\"\n[media]\nbytes = \"1 MiB\"\n{key}"))
        };
        assert!(minimal().nvme.doorbell_buffer);
        assert_eq!(with("true").unwrap(), minimal());
        let without = with("false").unwrap();
        assert!(!without.nvme.doorbell_buffer);
        assert_ne!(without.hash(), minimal().hash());
        for value in ["0", "\"off\"", "[]"] {
            let error = with(value).unwrap_err();
            assert!(
                error.starts_with("x.toml:5: nvme.doorbell_buffer: invalid type: ")
                    && error.ends_with(", expected a boolean"),
                "{error}"
            );
        }
    }

    #[test]
    fn design_namespaces_have_sizes_that_fit() {
        let with = |list: &str| {
            parse(&format!(
                "name = \"x\"\n[media]\nbytes = \"1 MiB\"\n[nvme]\nnamespaces = {list}\n"
            ))
        };
        assert_eq!(with("[]").unwrap(), minimal());
        assert!(minimal().nvme.namespace_parameters().is_empty());
        let design = with("[\"256 KiB\", 512, 0, \"764 KiB\"]").unwrap();
        assert_ne!(design.hash(), minimal().hash());
        let blocks = "00000000000005f8000000000000000000000000000000010000000000000200";
        assert_eq!(
            design.nvme.namespace_parameters(),
            [
                ("NumNamespaces", "4".to_string()),
                ("NsBlocks", format!("1024'h{blocks}")),
            ]
        );
        let unclaimed = |list: &str| with(list).unwrap().nvme.unclaimed_bytes(Bytes(1 << 20));
        assert_eq!(unclaimed("[\"256 KiB\", 512, 0, \"764 KiB\"]"), 0);
        assert_eq!(
            unclaimed("[\"256 KiB\", 512, 0, 512]"),
            (1 << 20) - (260 << 10) - 512
        );
        // Namespace 1 is the whole media.
        assert_eq!(unclaimed("[]"), 0);
        // With an override that changes nothing.
        let same = minimal().with_values("[nvme]\nnamespaces = [262144, 512, 0, 782336]\n");
        assert_eq!(same.unwrap(), design);
        for (list, why) in [
            (
                "[100]",
                "nvme.namespaces[0] = 100 B: allowed is a multiple of 512 bytes",
            ),
            (
                "[\"1 MiB\", 512]",
                "nvme.namespaces[1] = 512 B: allowed is at most the 0 B that are \
             left of media.bytes",
            ),
            (
                "[512, \"1 MiB\"]",
                "nvme.namespaces[1] = 1 MiB: allowed is at most the 1020 KiB that \
             are left of media.bytes",
            ),
            ("[512, 18446744073709551104]", "18446744073709551104"),
            (
                "[0, 0]",
                "nvme.namespaces = all 0: allowed is at least one with a size",
            ),
            (
                "[512,512,512,512,512,512,512,512,512,512,512,512,512,512,512,512,512]",
                "nvme.namespaces = 17: allowed is at most 16 of them",
            ),
            ("512", "nvme.namespaces: invalid type"),
            ("[-512]", "a size can't be negative"),
        ] {
            let error = with(list).unwrap_err();
            assert!(error.contains(why) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn design_clock_is_any_of_1_to_1000_mhz() {
        let with = |mhz: &str| minimal().with_values(&format!("clock_mhz = {mhz}\n"));
        for mhz in [1, 7, 150, 250, 300, 333, 999, 1000] {
            let design = with(&mhz.to_string()).unwrap();
            assert_eq!(design.clock().khz(), mhz * 1000);
        }
        for mhz in ["0", "1001", "4294967295"] {
            let error = with(mhz).unwrap_err().to_string();
            let want = format!("override: clock_mhz = {mhz}: allowed is 1 to 1000");
            assert_eq!(error, want);
        }
        for mhz in ["-1", "33.3", "4294967296", "true"] {
            let error = with(mhz).unwrap_err().to_string();
            assert!(error.contains("clock_mhz"), "{error}");
        }
    }

    #[test]
    fn design_delay_sizes_follow_from_the_profile_unless_given() {
        let sizes = |design: &Design, name: &str| {
            let s = design.delay_sizes(&Profile::find(name).unwrap());
            [s.read_slots, s.write_slots, s.buffer_beats]
        };
        // 1.5 GB/s a channel for 60.2 us: 177 reads of 512 bytes, more than the hardware has.
        // 1.5 GB/s for 701.4 us: 257 writes of 4 KiB.
        assert_eq!(sizes(&minimal(), "nand"), [128, 512, 512]);
        for name in ["dram", "optane-dcpmm", "pcm", "reram", "stt-mram"] {
            assert_eq!(sizes(&minimal(), name), [64, 64, 512], "{name}");
        }
        let with = |text: &str| minimal().with_values(text);
        // 0.75 GB/s a channel for 40 us: 59 reads; for 50 us: 74. Regions with separate timing
        // count, too.
        let four = with("channels = 4").unwrap();
        let mut nand = Profile::find("nand").unwrap();
        nand.read.base_ns = 40_000.0;
        assert_eq!(four.delay_sizes(&nand).read_slots, 64);
        nand.read.base_ns = 50_000.0;
        assert_eq!(four.delay_sizes(&nand).read_slots, 128);
        nand.regions.push(media::Region {
            first: Bytes(0),
            bytes: Bytes(4096),
            read: nand.read.clone(),
            write: nand.write.clone(),
        });
        nand.read.base_ns = 0.0;
        assert_eq!(four.delay_sizes(&nand).read_slots, 128);
        nand.enable = false;
        assert_eq!(four.delay_sizes(&nand).read_slots, 64);
        let own = with("[delay]\nread_slots = 32\nbuffer_beats = 1024\n").unwrap();
        assert_eq!(sizes(&own, "nand"), [32, 512, 1024]);
        assert_ne!(own.hash(), minimal().hash());
        for (text, why) in [
            (
                "read_slots = 48",
                "delay.read_slots = 48: allowed are 32, 64, 128",
            ),
            (
                "write_slots = 1024",
                "delay.write_slots = 1024: allowed are 32, 64, 128, 256, 512",
            ),
            (
                "buffer_beats = 256",
                "delay.buffer_beats = 256: allowed is a power of two from 512 to 32768",
            ),
            (
                "buffer_beats = 3000",
                "delay.buffer_beats = 3000: allowed is a power of two from 512 to 32768",
            ),
            ("beats = 512", "unknown key `delay.beats`"),
        ] {
            let error = with(&format!("[delay]\n{text}\n")).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn design_mover_sizes_follow_from_the_profile_unless_given() {
        let sizes = |design: &Design, name: &str| {
            let s = design.mover_sizes(&Profile::find(name).unwrap());
            [s.read_beats, s.reads, s.write_bytes, s.writes]
        };
        for name in ["dram", "optane-dcpmm", "pcm", "reram", "stt-mram"] {
            assert_eq!(sizes(&minimal(), name), [512, 32, 1024, 32], "{name}");
        }
        let with = |text: &str| minimal().with_values(text);
        // 1.5 GB/s a channel: 23 reads of 4 KiB for 61.4 us, 257 writes for 701.4 us.
        assert_eq!(sizes(&minimal(), "nand"), [2048, 32, 4096, 512]);
        let channels = |n: u32| with(&format!("channels = {n}\n")).unwrap();
        assert_eq!(sizes(&channels(1), "nand"), [4096, 64, 4096, 512]);
        assert_eq!(sizes(&channels(4), "nand"), [1024, 32, 4096, 256]);
        let own = "[nvme]\nmedia_reads = 64\nmedia_read_beats = 512\nmedia_write_bytes = \
         2048\nmedia_writes = 128\n";
        let own = with(own).unwrap();
        assert_eq!(sizes(&own, "nand"), [512, 64, 2048, 128]);
        assert_ne!(own.hash(), minimal().hash());
        for (text, why) in [
            (
                "media_read_beats = 256",
                "allowed is a power of two from 512 to 4096",
            ),
            (
                "media_reads = 128",
                "allowed is a power of two from 32 to 64",
            ),
            (
                "media_writes = 96",
                "allowed is a power of two from 32 to 512",
            ),
            ("media_write_bytes = 512", "allowed are 1024, 2048, 4096"),
        ] {
            let error = with(&format!("[nvme]\n{text}\n")).unwrap_err().to_string();
            assert_eq!(error, format!("override: nvme.{text}: {why}"));
        }
    }

    #[test]
    fn design_not_found_lists_those_that_exist() {
        let error = Design::find("nonesuch").unwrap_err().to_string();
        assert!(
            error.contains("nonesuch") && error.contains("default"),
            "{error}"
        );
        let error = Design::find("/nonexistent/x.toml").unwrap_err().to_string();
        assert!(
            error.starts_with("/nonexistent/x.toml: ") && !error.contains('\n'),
            "{error}"
        );
    }

    #[test]
    fn design_hash_depends_on_values_alone() {
        let a = parse("channels = 2\nname = \"x\"\n[media]\nbytes = \"1 MiB\"\n").unwrap();
        assert_eq!(a.hash(), minimal().hash());
        let mut b = minimal();
        b.pcie.lanes = 4;
        assert_ne!(a.hash(), b.hash());
        assert_eq!(a.hash().len(), 64);
    }

    #[test]
    fn design_values_can_be_overridden() {
        let design = minimal()
            .with_values("channels = 4\n[pcie]\nlanes = 4\n")
            .unwrap();
        assert_eq!(
            (design.channels, design.pcie.lanes, design.pcie.generation),
            (4, 4, 3)
        );
        let error = minimal()
            .with_values("[pcie]\nlanes = 5\n")
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "override: pcie.lanes = 5: allowed are 1, 2, 4, 8, 16"
        );
        let error = minimal().with_values("x = 5\n").unwrap_err().to_string();
        assert!(error.contains("unknown key `x`"), "{error}");
    }

    #[test]
    fn bytes_are_parsed_and_printed_with_units() {
        assert_eq!("4096".parse(), Ok(Bytes(4096)));
        assert_eq!("64KiB".parse(), Ok(Bytes(65536)));
        assert_eq!(Bytes(3 << 20).to_string(), "3 MiB");
        assert_eq!(Bytes(1000).to_string(), "1000 B");
        assert!("99999999999 TiB".parse::<Bytes>().is_err() && "x".parse::<Bytes>().is_err());
    }
}
