// SPDX-License-Identifier: Apache-2.0

//! The register block: shadow registers, their committed values, and the copy of the counters.

use spec::regs::nvm_delay::{self, cap0, cap1, command, control, read_cap, status, timing};

use super::counters::{Counters, BUCKETS};
use design::media::DelaySizes;

/// Address regions.
pub const REGIONS: usize = nvm_delay::REGION_COUNT as usize;
/// Integer bits of a time.
const TIME_INTEGER: u64 = 20;
/// Fractional bits of a time.
pub const TIME_FRACTION: u32 = 12;
/// Bytes of a beat.
const BEAT_BYTES: u64 = 64;
/// Numbers in eight bits saturate at this value.
const MAX_COUNT: u64 = 255;

/// Offsets of the times of a region, in the order of [`CommittedRegisters::times`].
const TIMES: [u64; 4] = [
    timing::READ_BASE,
    timing::READ_BEAT,
    timing::WRITE_BASE,
    timing::WRITE_BEAT,
];

/// Parameters in effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommittedRegisters {
    /// The emulated delay is on.
    pub enable: bool,
    /// Enabled regions, a bit each.
    pub regions: u32,
    /// First and last page of each region.
    pub pages: [[u32; 2]; REGIONS],
    /// Read base and beat, write base and beat, less the calibration: of each region, and of all
    /// other addresses.
    pub times: [[u32; 4]; REGIONS + 1],
    /// Caps of reads and writes in bytes a cycle, Q8.16.
    pub caps: [u32; 2],
}

/// Commands of a register write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// Shadow registers take effect.
    pub commit: bool,
    /// Counters are copied.
    pub snapshot: bool,
    /// Counters are cleared, after the copy.
    pub clear: bool,
}

/// Whether an access to a register waits until the times are copied, and whether a write to it
/// starts a copy.
pub fn timing_copy(offset: u64, value: u32) -> (bool, bool) {
    let offset = offset & 0xFFC;
    let within = |base: u64| (base..base + 16).contains(&offset);
    let calibration = within(nvm_delay::CALIBRATION);
    let region = offset
        .checked_sub(nvm_delay::REGION)
        .filter(|at| *at < nvm_delay::REGION_COUNT * nvm_delay::REGION_STRIDE)
        .is_some_and(|at| at % nvm_delay::REGION_STRIDE >= nvm_delay::region::TIMING);
    let command = offset == nvm_delay::COMMAND;
    let commit = command && command::COMMIT.get(value.into()) != 0;
    let waits = command || calibration || within(nvm_delay::TIMING) || region;
    (waits, calibration || commit)
}

/// The registers as software sees them.
#[derive(Clone, Debug)]
pub struct Registers {
    sizes: DelaySizes,
    shadow: CommittedRegisters,
    calibration: [u32; 4],
    control: u32,
    commits: u8,
    active: bool,
    copy: [Counters; 2],
}

impl Registers {
    /// Registers after reset.
    pub fn new(sizes: DelaySizes) -> Registers {
        Registers {
            sizes,
            shadow: CommittedRegisters::default(),
            calibration: [0; 4],
            control: 0,
            commits: 0,
            active: false,
            copy: Default::default(),
        }
    }

    /// Reads the register at `offset`, or 0 where there is none. `in_flight` are reads and writes
    /// in flight.
    pub fn read(&self, offset: u64, in_flight: [usize; 2]) -> u32 {
        let offset = offset & 0xFFC;
        let saturated = |n: u64| n.min(MAX_COUNT);
        let value = match offset {
            nvm_delay::ID => nvm_delay::id::MAGIC.reset(),
            nvm_delay::VERSION => {
                nvm_delay::version::MINOR.of(nvm_delay::version::MINOR.reset())
                    | nvm_delay::version::MAJOR.of(nvm_delay::version::MAJOR.reset())
            }
            nvm_delay::CAP0 => {
                cap0::READ_SLOTS.of(saturated(self.sizes.read_slots.into()))
                    | cap0::WRITE_SLOTS.of(saturated(self.sizes.write_slots.into()))
                    | cap0::FRAC_BITS.of(TIME_FRACTION.into())
                    | cap0::INT_BITS.of(TIME_INTEGER)
                    | cap0::REGIONS.of(REGIONS as u64)
            }
            nvm_delay::CAP1 => {
                cap1::BUFFER_BEATS.of(self.sizes.buffer_beats.into())
                    | cap1::BEAT_BYTES.of(BEAT_BYTES)
                    | cap1::BUCKETS.of(BUCKETS as u64)
            }
            nvm_delay::CONTROL => self.control.into(),
            nvm_delay::STATUS => {
                status::COMMITS.of(self.commits.into())
                    | status::ACTIVE.of(self.active.into())
                    | status::READS.of(saturated(in_flight[0] as u64))
                    | status::WRITES.of(saturated(in_flight[1] as u64))
            }
            nvm_delay::READ_CAP => self.shadow.caps[0].into(),
            nvm_delay::WRITE_CAP => self.shadow.caps[1].into(),
            _ => match self.word(offset) {
                Some(word) => self.shadow_word(word).into(),
                None => self.counter(offset).into(),
            },
        };
        value as u32
    }

    /// Writes the bytes of the register at `offset` that `strobe` selects; returns its commands.
    pub fn write(&mut self, offset: u64, value: u32, strobe: u8) -> Commands {
        let offset = offset & 0xFFC;
        let mask = (0..4).fold(0u32, |mask, byte| {
            mask | u32::from(strobe >> byte & 1) * (0xFF << (8 * byte))
        });
        let set = |old: &mut u32, fields: u64| {
            let mask = mask & fields as u32;
            *old = *old & !mask | value & mask;
        };
        match offset {
            nvm_delay::CONTROL => set(
                &mut self.control,
                control::ENABLE.mask() | control::REGION_ENABLE.mask(),
            ),
            nvm_delay::READ_CAP => set(&mut self.shadow.caps[0], read_cap::RATE.mask()),
            nvm_delay::WRITE_CAP => set(&mut self.shadow.caps[1], read_cap::RATE.mask()),
            nvm_delay::COMMAND => {
                let bits = u64::from(value & mask);
                return Commands {
                    commit: command::COMMIT.get(bits) != 0,
                    snapshot: command::SNAPSHOT.get(bits) != 0,
                    clear: command::CLEAR.get(bits) != 0,
                };
            }
            _ => {
                if let Some(word) = self.word(offset) {
                    let old = match word {
                        ShadowWord::Page(region, end) => &mut self.shadow.pages[region][end],
                        ShadowWord::Time(place, which) => &mut self.shadow.times[place][which],
                        ShadowWord::Calibration(which) => &mut self.calibration[which],
                    };
                    set(old, u32::MAX.into());
                }
            }
        }
        Commands::default()
    }

    /// Commits the shadow registers.
    pub fn commit(&mut self) -> CommittedRegisters {
        self.commits = self.commits.wrapping_add(1);
        let control = u64::from(self.control);
        self.active = control::ENABLE.get(control) != 0;
        let mut committed = self.shadow.clone();
        for times in &mut committed.times {
            for (time, off) in times.iter_mut().zip(self.calibration) {
                *time = time.saturating_sub(off);
            }
        }
        committed.enable = self.active;
        committed.regions = control::REGION_ENABLE.get(control) as u32;
        if !self.active {
            committed.caps = [0; 2];
        }
        committed
    }

    /// Copies the counters.
    pub fn snapshot(&mut self, counters: &[Counters; 2]) {
        self.copy.clone_from(counters);
    }

    /// The shadow register at an offset.
    fn word(&self, offset: u64) -> Option<ShadowWord> {
        let time = |base: u64| TIMES.iter().position(|&t| base + t == offset);
        if let Some(which) = time(nvm_delay::TIMING) {
            return Some(ShadowWord::Time(REGIONS, which));
        }
        if let Some(which) = time(nvm_delay::CALIBRATION) {
            return Some(ShadowWord::Calibration(which));
        }
        let region = offset.checked_sub(nvm_delay::REGION)? / nvm_delay::REGION_STRIDE;
        if region >= nvm_delay::REGION_COUNT {
            return None;
        }
        let base = nvm_delay::REGION + region * nvm_delay::REGION_STRIDE;
        let region = region as usize;
        match offset - base {
            nvm_delay::region::FIRST => Some(ShadowWord::Page(region, 0)),
            nvm_delay::region::LAST => Some(ShadowWord::Page(region, 1)),
            _ => Some(ShadowWord::Time(
                region,
                time(base + nvm_delay::region::TIMING)?,
            )),
        }
    }

    fn shadow_word(&self, word: ShadowWord) -> u32 {
        match word {
            ShadowWord::Page(region, end) => self.shadow.pages[region][end],
            ShadowWord::Time(place, which) => self.shadow.times[place][which],
            ShadowWord::Calibration(which) => self.calibration[which],
        }
    }

    fn counter(&self, offset: u64) -> u32 {
        use nvm_delay::counters as at;
        let Some(offset) = offset.checked_sub(nvm_delay::COUNTERS) else {
            return 0;
        };
        let buckets = |base: u64, direction: usize| {
            let index = offset.checked_sub(base)? / at::READ_BUCKET_STRIDE;
            self.copy[direction].buckets.get(index as usize).copied()
        };
        if let Some(count) = buckets(at::WRITE_BUCKET, 1).or(buckets(at::READ_BUCKET, 0)) {
            return count;
        }
        // Words between and after the counters of the directions read 0.
        match offset {
            _ if offset < at::WRITE => self.copy[0].word(offset / 4),
            _ if offset < 2 * at::WRITE => self.copy[1].word((offset - at::WRITE) / 4),
            _ => 0,
        }
    }
}

/// A shadow register of 32 bits.
#[derive(Clone, Copy)]
enum ShadowWord {
    /// First or last page of a region.
    Page(usize, usize),
    /// A time of a region.
    Time(usize, usize),
    /// The calibration that is subtracted from a time of all regions.
    Calibration(usize),
}
