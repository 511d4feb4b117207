// SPDX-License-Identifier: Apache-2.0

//! Media profiles: the timing that `nvm_delay` gives to a memory.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sim::{Clock, DramConfig, InvalidValue};
use spec::nvm_delay::{Interleave, Registers, MAX_REGIONS, REGION_PAGE};
use spec::regs::nvm_delay::control::{ENABLE, REGION_ENABLE};

use crate::error::{self, check, Error};
use crate::{path, shipped};

/// Fractional bits of a time in `nvm_delay`'s registers (Q20.12 cycles).
const TIME_FRACTION: u32 = 12;
/// Fractional bits of a bandwidth cap (Q8.16 bytes per cycle).
const CAP_FRACTION: u32 = 16;
/// The timing of a memory for a 64-byte access. The file has the published source of each value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name, equal to the file's.
    pub name: String,
    /// A description in one line.
    pub description: String,
    /// False: `nvm_delay` is off, so that the DRAM's timing applies.
    #[serde(default = "yes")]
    pub enable: bool,
    /// Reads.
    #[serde(default)]
    pub read: Timing,
    /// Writes.
    #[serde(default)]
    pub write: Timing,
    /// Parts of the media with separate timing.
    #[serde(default, rename = "region", skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<Region>,
}

/// The timing of one direction: a transaction of n beats of 64 bytes takes `base_ns + n * beat_ns`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timing {
    /// Latency that every transaction has, in ns.
    pub base_ns: f64,
    /// Latency of each beat of 64 bytes, in ns.
    pub beat_ns: f64,
    /// Maximum bandwidth of the whole device, in GB/s; 0 is no limit.
    pub cap_gb_s: f64,
    /// The publication of the values.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
}

/// A part of the media with separate timing. Bandwidth caps apply to the whole media.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// First byte of the media.
    pub first: crate::Bytes,
    /// Bytes.
    pub bytes: crate::Bytes,
    /// Reads.
    pub read: Timing,
    /// Writes.
    pub write: Timing,
}

fn yes() -> bool {
    true
}

/// Sizes of a channel's `nvm_delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DelaySizes {
    /// Reads in flight.
    pub read_slots: u32,
    /// Writes in flight.
    pub write_slots: u32,
    /// Beats of 64 bytes that the read buffer holds.
    pub buffer_beats: u32,
}

/// Limits of the NVMe controller in each channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MoverSizes {
    /// Beats of 64 bytes read ahead.
    pub read_beats: u32,
    /// Reads of up to 4 KiB.
    pub reads: u32,
    /// Bytes of the longest write burst.
    pub write_bytes: u32,
    /// Write bursts.
    pub writes: u32,
}

impl MoverSizes {
    /// The sizes for fast media, which are the minimum.
    pub const FAST: MoverSizes = MoverSizes {
        read_beats: READ_BEATS[0],
        reads: READS[0],
        write_bytes: 1024,
        writes: WRITES[0],
    };
}

/// Reads of a profile that the device's DRAM is too slow for. They are answered when the DRAM has
/// answered, and count as late.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LateReads {
    /// The profile's name.
    pub profile: String,
    /// Target time of a read of 64 bytes, in ns; the shortest of all regions.
    pub target_ns: f64,
    /// Minimum time from `nvm_delay` to the DRAM and back if no row of the bank is open, in ns.
    pub dram_ns: f64,
    /// The same if the row is open.
    pub open_row_ns: f64,
    /// Time from the host port to `nvm_delay` and back, which is subtracted from the target.
    pub path_ns: f64,
    /// All reads are late; otherwise only reads whose row is not open.
    pub all: bool,
}

impl LateReads {
    /// The warning as a sentence.
    pub fn message(&self) -> String {
        let LateReads {
            profile,
            target_ns,
            dram_ns,
            open_row_ns,
            path_ns,
            ..
        } = self;
        let which = match self.all {
            true => "all reads",
            false => "reads whose row is not open",
        };
        format!(
            "the media profile {profile} asks for reads of 64 bytes in {target_ns} ns, but the \
             DDR4 takes at least {dram_ns} ns, or {open_row_ns} ns when their row is open, and the \
             way to it {path_ns} ns: {which} come late and show the DRAM's own time (nvm_delay \
             counts them)"
        )
    }
}

/// Cycles of a 64-byte read between `nvm_delay` and the DRAM's controller, both ways.
const STAGES: f64 = 6.0;

/// Slots of a direction that the hardware supports.
pub(crate) const SLOTS: [u32; 3] = [32, 64, 128];
/// Slots of writes, which may take longer.
pub(crate) const WRITE_SLOTS: [u32; 5] = [32, 64, 128, 256, 512];
/// Minimum number of slots, unless the design overrides it.
const FEWEST_SLOTS: u32 = 64;
/// Minimum and maximum beats of a buffer in hardware.
pub(crate) const BUFFER: [u32; 2] = [512, 32_768];
/// Minimum and maximum beats of a mover of the NVMe controller.
pub(crate) const READ_BEATS: [u32; 2] = [512, 4096];
pub(crate) const READS: [u32; 2] = [32, 64];
pub(crate) const WRITES: [u32; 2] = [32, 512];
/// Bytes of its longest write burst.
pub(crate) const WRITE_BYTES: [u32; 3] = [1024, 2048, 4096];
/// Bytes of a beat.
const BEAT: f64 = 64.0;
/// Beats of the shortest transaction that shall reach the bandwidth.
const SHORT: u32 = 8;
/// Beats of the longest transaction, for media that would need too many of the shortest.
const LONG: u32 = 64;

impl Profile {
    /// Reads a profile file.
    pub fn load(path: &Path) -> Result<Profile, Error> {
        let text = error::read(path)?;
        Profile::parse(&text, path)
    }

    /// Finds a profile by name among those of the program, or by path if the value contains `/` or
    /// `.toml`.
    pub fn find(name: &str) -> Result<Profile, Error> {
        let (path, text) = shipped::find("media profile", "media", name)?;
        Profile::parse(&text, &path)
    }

    /// Checks that the profile that a design names in `key` can be used.
    pub(crate) fn check_named(key: &str, name: &str) -> Result<(), Error> {
        let rule = match Profile::find(name) {
            Err(Error::NotFound { there, .. }) => format!("allowed is {there}, or a TOML file"),
            Err(Error::Unreadable { source, .. }) => format!("{source}; allowed is a TOML file"),
            Err(Error::NotAFile(_)) => "allowed is a regular file".into(),
            found => return found.map(drop),
        };
        Err(InvalidValue::new(key, name, rule).into())
    }

    /// Reads a profile from text. Errors name `path`.
    pub fn parse(text: &str, path: &Path) -> Result<Profile, Error> {
        let profile: Profile = error::parse(text, path)?;
        profile.validate().map_err(|e| e.in_text(path, text))?;
        Ok(profile)
    }

    /// A profile of two latencies without limits.
    pub fn latencies(name: &str, read_ns: f64, write_ns: f64) -> Profile {
        let timing = |base_ns| Timing {
            base_ns,
            ..Timing::default()
        };
        Profile {
            name: name.into(),
            description: format!("{read_ns} ns reads, {write_ns} ns writes"),
            enable: true,
            read: timing(read_ns),
            write: timing(write_ns),
            regions: Vec::new(),
        }
    }

    /// Checks every value.
    pub fn validate(&self) -> Result<(), Error> {
        let count = self.regions.len();
        check("region", count, count <= MAX_REGIONS, "at most 4 of them")?;
        self.read.validate("read")?;
        self.write.validate("write")?;
        for (i, region) in self.regions.iter().enumerate() {
            let whole = |b: u64| b % REGION_PAGE == 0;
            let name = format!("region[{i}]");
            let ok = whole(region.first.0) && whole(region.bytes.0) && region.bytes.0 > 0;
            check(
                &format!("{name}.first, bytes"),
                region.bytes,
                ok,
                "multiples of 4 KiB, not empty",
            )?;
            region.read.validate(&format!("{name}.read"))?;
            region.write.validate(&format!("{name}.write"))?;
        }
        Ok(())
    }

    /// The registers of each channel of a device with this clock period.
    ///
    /// A channel uses its channel addresses, has the regions of which it has a part, and gets its
    /// share of the bandwidth. Times are rounded to 2^-12 cycles, caps to 2^-16 bytes per cycle. A
    /// cap above a channel's maximum is no cap. A time that exceeds the registers is an error. The
    /// calibration is the latency of host accesses outside `nvm_delay`: [`path::CYCLES`].
    pub fn registers(&self, clock: Clock, interleave: Interleave) -> Result<Vec<Registers>, Error> {
        if !self.enable {
            return Ok(vec![Registers::default(); interleave.channels as usize]);
        }
        let all = [("read", &self.read), ("write", &self.write)].into_iter();
        let regions = self.regions.iter().flat_map(|r| [&r.read, &r.write]);
        for (name, timing) in all.chain(regions.map(|timing| ("region", timing))) {
            for (key, ns) in [("base_ns", timing.base_ns), ("beat_ns", timing.beat_ns)] {
                let most = clock.ns(f64::from(1u32 << (32 - TIME_FRACTION)) - 1.0);
                let allowed = format!("at most {most:.0} ns at {clock}");
                check(&format!("{name}.{key}"), ns, ns <= most, &allowed)?;
            }
        }
        let times = |read: &Timing, write: &Timing| {
            [read.base_ns, read.beat_ns, write.base_ns, write.beat_ns].map(|ns| time(ns, clock))
        };
        let path = fixed(path::CYCLES);
        let of_channel = |channel| {
            let regions = self.regions.iter().filter_map(|r| {
                let end = r.first.0.saturating_add(r.bytes.0);
                let [first, end] =
                    [r.first.0, end].map(|addr| interleave.pages_before(channel, addr));
                let [a, b, c, d] = times(&r.read, &r.write);
                (first < end).then(|| [first, end - 1, a, b, c, d])
            });
            let regions: Vec<_> = regions.collect();
            let enabled = REGION_ENABLE.of((1 << regions.len()) - 1);
            Registers {
                control: (ENABLE.of(1) | enabled) as u32,
                read_cap: cap(self.read.cap_gb_s, clock, interleave.channels),
                write_cap: cap(self.write.cap_gb_s, clock, interleave.channels),
                calibration: [path, 0, path, 0],
                timing: times(&self.read, &self.write),
                regions,
            }
        };
        Ok((0..interleave.channels).map(of_channel).collect())
    }
}

impl Profile {
    /// Reads that the DRAM of an idle device is too slow for.
    pub fn late_reads(&self, clock: Clock, dram: &DramConfig) -> Option<LateReads> {
        let targets = self.regions.iter().map(|region| &region.read);
        let targets = targets.chain([&self.read]).map(|read| read.target_ns(1));
        let target_ns = targets.fold(f64::INFINITY, f64::min);
        let period = clock.ns(1.0);
        let [open_row_ns, dram_ns] = dram
            .read_ns()
            .map(|ns| ((ns / period).ceil() + STAGES) * period)
            .map(round_to_hundredths);
        let path_ns = round_to_hundredths(clock.ns(path::CYCLES));
        (self.enable && target_ns < dram_ns + path_ns).then(|| LateReads {
            profile: self.name.clone(),
            target_ns,
            dram_ns,
            open_row_ns,
            path_ns,
            all: target_ns < open_row_ns + path_ns,
        })
    }

    /// The sizes with which a channel reaches the profile's bandwidth (Little's law). A channel has
    /// as many transactions of 512 bytes in flight as arrive in one latency, from 64 to 128. Writes
    /// that would need more have up to 512 of 4 KiB. The buffer is the smallest one: the latency of
    /// a read that waits for buffer space has already started, and it needs space only for the
    /// DRAM's time.
    pub fn sizes(&self, clock: Clock, channels: u32) -> DelaySizes {
        let [reads, writes] = self.in_flight(clock, channels, SHORT);
        let long = self.in_flight(clock, channels, LONG)[1];
        let slots = |needed: u32, most: u32| needed.clamp(FEWEST_SLOTS, most).next_power_of_two();
        DelaySizes {
            read_slots: slots(reads, SLOTS[2]),
            write_slots: match writes > SLOTS[2] {
                true => slots(long.max(SLOTS[2]), WRITE_SLOTS[4]),
                false => slots(writes, SLOTS[2]),
            },
            buffer_beats: BUFFER[0],
        }
    }

    /// The sizes with which the NVMe controller keeps a channel busy at the profile's bandwidth.
    /// They are at least those for fast media.
    pub fn mover_sizes(&self, clock: Clock, channels: u32) -> MoverSizes {
        let [reads, writes] = self.in_flight(clock, channels, LONG);
        let fast = MoverSizes::FAST;
        // The minimum latency of a read in the controller and to the memory counts, too.
        let beats = (reads + 1) * LONG;
        let held = fast.writes * fast.write_bytes / (BEAT as u32 * LONG);
        MoverSizes {
            read_beats: beats
                .clamp(fast.read_beats, READ_BEATS[1])
                .next_power_of_two(),
            reads: (reads + 1).clamp(fast.reads, READS[1]).next_power_of_two(),
            write_bytes: if writes > held {
                BEAT as u32 * LONG
            } else {
                fast.write_bytes
            },
            writes: match writes > held {
                true => writes.clamp(fast.writes, WRITES[1]).next_power_of_two(),
                false => fast.writes,
            },
        }
    }

    /// Transactions of `beats` that arrive in one latency at a channel's bandwidth: reads and
    /// writes, for the slowest region of the media.
    fn in_flight(&self, clock: Clock, channels: u32, beats: u32) -> [u32; 2] {
        let most = BEAT / clock.ns(1.0); // what a channel can carry
        let needed = |all: &Timing, timing: &Timing| {
            let share = all.cap_gb_s / f64::from(channels);
            let rate = if share > 0.0 { share.min(most) } else { most };
            (rate * timing.target_ns(beats) / (BEAT * f64::from(beats))).ceil() as u32
        };
        if !self.enable {
            return [0, 0];
        }
        let regions = self.regions.iter();
        regions.fold(
            [
                needed(&self.read, &self.read),
                needed(&self.write, &self.write),
            ],
            |[reads, writes], r| {
                [
                    reads.max(needed(&self.read, &r.read)),
                    writes.max(needed(&self.write, &r.write)),
                ]
            },
        )
    }
}

impl Timing {
    fn validate(&self, name: &str) -> Result<(), Error> {
        for (key, value) in [("base_ns", self.base_ns), ("beat_ns", self.beat_ns)] {
            let ok = (0.0..=4_000_000.0).contains(&value);
            check(&format!("{name}.{key}"), value, ok, "0 to 4000000")?;
        }
        let ok = (0.0..=1000.0).contains(&self.cap_gb_s);
        check(
            &format!("{name}.cap_gb_s"),
            self.cap_gb_s,
            ok,
            "0 (none) to 1000",
        )
    }

    /// Target time of a transaction of `beats`, in ns.
    pub fn target_ns(&self, beats: u32) -> f64 {
        self.base_ns + self.beat_ns * f64::from(beats)
    }
}

/// Rounds to two digits for messages.
fn round_to_hundredths(ns: f64) -> f64 {
    (ns * 100.0).round() / 100.0
}

/// Nanoseconds in Q20.12 cycles, rounded to nearest.
fn time(ns: f64, clock: Clock) -> u32 {
    fixed(clock.cycles(ns))
}

/// Cycles in Q20.12, rounded to nearest.
fn fixed(cycles: f64) -> u32 {
    (cycles * f64::from(1u32 << TIME_FRACTION)).round() as u32
}

/// A device's GB/s in Q8.16 bytes per cycle of one channel; at least 1 unit.
fn cap(gb_s: f64, clock: Clock, channels: u32) -> u32 {
    if gb_s == 0.0 {
        return 0;
    }
    let bytes_per_cycle = gb_s * clock.ns(1.0) / f64::from(channels);
    let raw = (bytes_per_cycle * f64::from(1u32 << CAP_FRACTION)).round() as u32;
    raw.clamp(1, (1 << 24) - 1)
}

/// Q20.12 cycles in nanoseconds.
pub fn time_ns(raw: u32, clock: Clock) -> f64 {
    clock.ns(f64::from(raw) / f64::from(1u32 << TIME_FRACTION))
}

/// Q8.16 bytes per cycle of one channel in GB/s of a device with `channels`.
pub fn cap_gb_s(raw: u32, clock: Clock, channels: u32) -> f64 {
    f64::from(raw) / f64::from(1u32 << CAP_FRACTION) / clock.ns(1.0) * f64::from(channels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(text: &str) -> Result<Profile, String> {
        Profile::parse(text, Path::new("m.toml")).map_err(|e| e.to_string())
    }

    #[test]
    fn media_profiles_shipped_are_valid_and_named_as_their_files() {
        for entry in std::fs::read_dir(crate::checkout().unwrap().join("media")).unwrap() {
            let path = entry.unwrap().path();
            let profile = Profile::load(&path).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(
                Some(profile.name.as_str()),
                path.file_stem().and_then(|s| s.to_str())
            );
        }
        let optane = Profile::find("optane-dcpmm").unwrap();
        assert_eq!(
            (optane.read.target_ns(1), optane.write.target_ns(1)),
            (305.0, 94.0)
        );
        assert_eq!(
            Profile::find("dram")
                .unwrap()
                .registers(Clock::default(), INTERLEAVE)
                .unwrap(),
            vec![Registers::default(); 2]
        );
        assert!(Profile::find("core")
            .unwrap_err()
            .to_string()
            .contains("optane-dcpmm"));
    }

    const INTERLEAVE: Interleave = Interleave {
        channels: 2,
        granule: REGION_PAGE,
    };

    #[test]
    fn media_profiles_faster_than_the_dram_are_found_by_their_values() {
        let (clock, dram) = (Clock::default(), DramConfig::default());
        let late = |name: &str| Profile::find(name).unwrap().late_reads(clock, &dram);
        for name in ["dram", "nand", "optane-dcpmm", "pcm"] {
            assert_eq!(late(name), None, "{name}");
        }
        // 8 + 8 ns of the controller and 21 or 38 clocks of 0.833 ns, up to the next edge, and six
        // cycles.
        for (name, target_ns, all) in [("reram", 50.0, true), ("stt-mram", 60.0, true)] {
            let found = late(name).unwrap();
            let expected = LateReads {
                profile: name.into(),
                target_ns,
                dram_ns: 72.0,
                open_row_ns: 60.0,
                path_ns: 26.0,
                all,
            };
            assert_eq!(found, expected);
            let message = found.message();
            for part in [name, &format!("{target_ns} ns"), "72 ns", "60 ns", "late"] {
                assert!(message.contains(part), "{message}");
            }
            assert_eq!(message.contains("all reads"), all);
        }
        // Depends on the numbers, not on names: profile, regions, DRAM and clock. The latency to
        // the DRAM is 26 ns.
        let plain = |ns| Profile::latencies("reram", ns, 0.0);
        for (ns, expected) in [
            (98.0, None),
            (97.9, Some(false)),
            (86.0, Some(false)),
            (85.9, Some(true)),
        ] {
            let found = plain(ns).late_reads(clock, &dram).map(|late| late.all);
            assert_eq!(found, expected, "{ns}");
        }
        let mut p = plain(100.0);
        p.regions.push(Region {
            first: crate::Bytes(0),
            bytes: crate::Bytes(4096),
            read: plain(20.0).read,
            write: Timing::default(),
        });
        assert_eq!(
            p.late_reads(clock, &dram).map(|late| late.target_ns),
            Some(20.0)
        );
        p.enable = false;
        assert_eq!(p.late_reads(clock, &dram), None);
        let slow = DramConfig {
            backend_ns: 60,
            ..dram.clone()
        };
        assert!(plain(100.0).late_reads(clock, &slow).is_some());
        let slow = Clock::from_mhz(100).unwrap();
        assert_eq!(
            plain(89.0).late_reads(slow, &dram).map(|late| late.dram_ns),
            Some(110.0)
        );
    }

    #[test]
    fn media_registers_are_fixed_point_cycles() {
        let mut p = Profile::latencies("x", 305.0, 94.0);
        p.write.beat_ns = 1.0;
        p.read.cap_gb_s = 6.4;
        p.regions.push(Region {
            first: crate::Bytes(1 << 20),
            bytes: crate::Bytes(1 << 20),
            read: Timing {
                base_ns: 2e6,
                ..Timing::default()
            },
            write: Timing::default(),
        });
        let clock = Clock::default();
        let [r, _] = &p.registers(clock, INTERLEAVE).unwrap()[..] else {
            panic!("two channels");
        };
        assert_eq!(r.control, 0x11);
        assert_eq!(r.timing, [312_320, 0, 96_256, 1024]);
        assert_eq!(r.calibration, [26_624, 0, 26_624, 0]);
        assert_eq!(r.read_cap, (12.8 * 65536.0_f64).round() as u32);
        assert_eq!(r.regions[0][..3], [128, 255, 2_048_000_000]);
        assert_eq!(time_ns(r.timing[0], clock), 305.0);
        assert!((cap_gb_s(r.read_cap, clock, 2) - 6.4).abs() < 1e-4);
        let error = p
            .registers(Clock::from_mhz(1000).unwrap(), INTERLEAVE)
            .unwrap_err();
        let want = "region.base_ns = 2000000: allowed is at most 1048575 ns at 1000 MHz";
        assert_eq!(error.to_string(), want);
    }

    #[test]
    fn media_region_covers_the_same_pages_on_every_channel() {
        const PAGES: u64 = 96;
        for (channels, granule_pages) in [(1, 1), (2, 1), (4, 1), (2, 4), (4, 8), (2, 256)] {
            let interleave = Interleave {
                channels,
                granule: granule_pages * REGION_PAGE,
            };
            for first in 0..PAGES {
                for pages in [1, 2, 3, 7, 8, 9, 31, PAGES - first] {
                    let mut p = Profile::latencies("x", 100.0, 100.0);
                    p.regions.push(Region {
                        first: crate::Bytes(first * REGION_PAGE),
                        bytes: crate::Bytes(pages * REGION_PAGE),
                        read: Timing::default(),
                        write: Timing::default(),
                    });
                    let registers = p.registers(Clock::default(), interleave).unwrap();
                    // Interleaved as in the device: pages in round-robin order.
                    let mut next = vec![0; channels as usize];
                    for page in 0..2 * PAGES {
                        let channel = (page / granule_pages % u64::from(channels)) as usize;
                        let local = next[channel];
                        next[channel] += 1;
                        let r = &registers[channel];
                        let slow = r.regions.iter().any(|r| (r[0]..=r[1]).contains(&local));
                        let named = (first..first + pages).contains(&page);
                        assert_eq!(
                            slow, named,
                            "page {page} of {interleave:?}, {pages} from {first}"
                        );
                        assert_eq!(r.control >> 4, (1 << r.regions.len()) - 1);
                    }
                }
            }
        }
    }

    #[test]
    fn media_times_are_exact_to_a_4096th_of_a_cycle_at_every_clock() {
        for mhz in [1, 7, 150, 250, 300, 999, 1000] {
            let clock = Clock::from_mhz(mhz).unwrap();
            for ns in [0.0, 0.1, 1.0, 94.0, 305.0, 12_345.6, 1e6] {
                let p = Profile::latencies("x", ns, 0.0);
                let raw = p.registers(clock, INTERLEAVE).unwrap()[0].timing[0];
                // In exact arithmetic: ns * mhz / 1000 cycles, in tenths of ns.
                let tenths = (ns * 10.0).round() as u64;
                let exact = (tenths * u64::from(mhz) * 4096 * 2 + 10_000) / 20_000;
                assert_eq!(u64::from(raw), exact, "{ns} ns at {mhz} MHz");
                let off = (time_ns(raw, clock) - ns).abs();
                assert!(
                    off <= clock.ns(0.5 / 4096.0) + 1e-9,
                    "{ns} ns at {mhz} MHz: {off}"
                );
            }
        }
    }

    #[test]
    fn media_profile_errors_name_the_key() {
        let head = "name = \"x\"\ndescription = \"y\"\n";
        let error = profile(&format!("{head}[read]\nbase = 5.0\n")).unwrap_err();
        assert!(
            error.starts_with("m.toml:4: unknown key `read.base`; allowed: `base_ns`"),
            "{error}"
        );
        let error = profile(&format!("{head}[read]\nbase_ns = -1.0\n")).unwrap_err();
        assert_eq!(
            error,
            "m.toml:4: read.base_ns = -1: allowed is 0 to 4000000"
        );
        let region = "[[region]]\nfirst = 0\nbytes = 100\n[region.read]\n[region.write]\n";
        let error = profile(&format!("{head}{region}")).unwrap_err();
        assert!(error.contains("multiples of 4 KiB"), "{error}");
    }
}
