// SPDX-License-Identifier: Apache-2.0

//! Speed grades and timing of DDR4 SDRAM (JEDEC JESD79-4), x8 devices with 1 KiB pages.

use serde::{Deserialize, Serialize};

use crate::config::{check, check_power_of_two, check_range, InvalidValue};
use crate::Time;

/// A DDR4 channel and its controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DramConfig {
    /// Speed grade in MT/s: 2133 (CL15), 2400 (CL17), 2666 (CL19) or 3200 (CL22).
    pub data_rate_mts: u32,
    /// Density of a device, Gbit; eight of them make a channel.
    pub density_gbit: u32,
    /// Fine-granularity refresh: 1, 2 or 4 refreshes per 7.8 us; 0 switches refresh off.
    pub refresh_mode: u32,
    /// Reads that the controller can hold.
    pub read_queue: usize,
    /// Writes that the controller can hold.
    pub write_queue: usize,
    /// Buffered writes that start a drain.
    pub drain_high: usize,
    /// Buffered writes that end a drain.
    pub drain_low: usize,
    /// A request that has waited for this time precedes row hits, ns.
    pub age_limit_ns: u64,
    /// Latency from acceptance to the scheduler, ns.
    pub frontend_ns: u64,
    /// Latency from the last data on the pins to the answer, ns.
    pub backend_ns: u64,
}

impl Default for DramConfig {
    fn default() -> Self {
        DramConfig {
            data_rate_mts: 2400,
            density_gbit: 4,
            refresh_mode: 2,
            read_queue: 64,
            write_queue: 64,
            drain_high: 48,
            drain_low: 16,
            age_limit_ns: 2000,
            frontend_ns: 8,
            backend_ns: 8,
        }
    }
}

impl DramConfig {
    /// An error is one line that names the first key whose value is not allowed.
    pub fn validate(&self) -> Result<(), InvalidValue> {
        let rate = self.data_rate_mts;
        let ok = [2133, 2400, 2666, 3200].contains(&rate);
        check("data_rate_mts", rate, ok, "2133, 2400, 2666, 3200")?;
        check_power_of_two("density_gbit", self.density_gbit.into(), 4, 16)?;
        let ok = [0, 1, 2, 4].contains(&self.refresh_mode);
        check("refresh_mode", self.refresh_mode, ok, "0, 1, 2, 4")?;
        check_range("read_queue", self.read_queue as u64, 1, 1024)?;
        check_range("write_queue", self.write_queue as u64, 1, 1024)?;
        check_range(
            "drain_high",
            self.drain_high as u64,
            1,
            self.write_queue as u64,
        )?;
        check_range(
            "drain_low",
            self.drain_low as u64,
            0,
            self.drain_high as u64 - 1,
        )?;
        check_range("age_limit_ns", self.age_limit_ns, 0, 1_000_000)?;
        check_range("frontend_ns", self.frontend_ns, 0, 10_000)?;
        check_range("backend_ns", self.backend_ns, 0, 10_000)
    }

    /// Peak bandwidth of the pins, bytes per ns.
    pub fn peak_bytes_per_ns(&self) -> f64 {
        f64::from(self.data_rate_mts) * 8.0 / 1000.0
    }

    /// Latency of a 64-byte read in an idle channel, ns: row hit, and bank without an open row.
    pub fn read_ns(&self) -> [f64; 2] {
        let t = Timing::new(self);
        let ends = (self.frontend_ns + self.backend_ns) as f64;
        let ns = |clocks: u64| ends + clocks as f64 * 2000.0 / f64::from(self.data_rate_mts);
        [ns(t.cl + t.burst), ns(t.rcd + t.cl + t.burst)]
    }

    /// Bytes in the channel.
    pub fn bytes(&self) -> u64 {
        u64::from(self.density_gbit) << 30
    }
}

/// Timing constraints in clocks, by their JEDEC names.
#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    pub cl: u64,
    pub cwl: u64,
    pub rcd: u64,
    pub rp: u64,
    pub ras: u64,
    pub rc: u64,
    pub rrd_s: u64,
    pub rrd_l: u64,
    pub faw: u64,
    pub ccd_s: u64,
    pub ccd_l: u64,
    pub wr: u64,
    pub wtr_s: u64,
    pub wtr_l: u64,
    pub rtp: u64,
    /// Clocks of data per access: half the burst length.
    pub burst: u64,
    /// Between refreshes; `u64::MAX` without refresh.
    pub refi: u64,
    pub rfc: u64,
    /// MT/s.
    rate: u64,
    /// The clock period in ps, 64 fractional bits, rounded down.
    ps_per_clock: u128,
    /// Its inverse, likewise rounded down.
    clocks_per_ps: u64,
}

impl Timing {
    /// The constraints of a speed grade.
    pub fn new(config: &DramConfig) -> Timing {
        let rate = u64::from(config.data_rate_mts);
        // The clocks that cover a time in ps, and at least `least`.
        let clocks = |ps: u64, least: u64| (ps * rate).div_ceil(2_000_000).max(least);
        // CL = tRCD = tRP in clocks; CWL of a 1 tCK write preamble; tRAS and tRRD_S/L in ps.
        let (cl, cwl, ras, rrd_s, rrd_l, ccd_l) = match config.data_rate_mts {
            2133 => (15, 11, 33_000, 3_700, 5_300, 5_355),
            2666 => (19, 14, 32_000, 3_000, 4_900, 5_000),
            3200 => (22, 16, 32_000, 2_500, 4_900, 5_000),
            _ => (17, 12, 32_000, 3_300, 4_900, 5_000),
        };
        // tRFC by density for refresh modes 1x, 2x, 4x.
        let rfc = match config.density_gbit {
            4 => [260_000, 160_000, 110_000],
            8 => [350_000, 260_000, 160_000],
            _ => [550_000, 350_000, 260_000],
        };
        let ras = clocks(ras, 1);
        let (refi, rfc) = match config.refresh_mode {
            0 => (u64::MAX, 0),
            mode => (
                7_800_000 * rate / 2_000_000 / u64::from(mode),
                clocks(rfc[mode.ilog2() as usize], 1),
            ),
        };
        Timing {
            cl,
            cwl,
            rcd: cl,
            rp: cl,
            ras,
            rc: ras + cl,
            rrd_s: clocks(rrd_s, 4),
            rrd_l: clocks(rrd_l, 4),
            faw: clocks(21_000, 20),
            ccd_s: 4,
            ccd_l: clocks(ccd_l, 5),
            wr: clocks(15_000, 1),
            wtr_s: clocks(2_500, 2),
            wtr_l: clocks(7_500, 4),
            rtp: clocks(7_500, 4),
            burst: 4,
            refi,
            rfc,
            rate,
            ps_per_clock: (2_000_000u128 << 64) / u128::from(rate),
            clocks_per_ps: ((u128::from(rate) << 64) / 2_000_000) as u64,
        }
    }

    /// The start of clock `cycle`.
    #[inline]
    pub fn time(&self, cycle: u64) -> Time {
        // ceil(cycle * 2e6 / rate) without a division: an estimate that is at most one too small,
        // then a correction.
        let guess = (u128::from(cycle) * self.ps_per_clock) >> 64;
        let short = guess * u128::from(self.rate) < u128::from(cycle) * 2_000_000;
        Time(guess as u64 + u64::from(short))
    }

    /// The last clock that has started by `time`.
    #[inline]
    pub fn cycle(&self, time: Time) -> u64 {
        let guess = (u128::from(time.0) * u128::from(self.clocks_per_ps)) >> 64;
        let short = (guess + 1) * 2_000_000 <= u128::from(time.0) * u128::from(self.rate);
        guess as u64 + u64::from(short)
    }

    /// The clock of `time`, and the time since its start in units of 1 / [`REST`] clocks.
    #[inline]
    pub(super) fn cycle_and_rest(&self, time: Time) -> (u64, u64) {
        let cycle = self.cycle(time);
        // Both products may wrap at 64 bits, because their difference is small.
        let rest = time.0.wrapping_mul(self.rate);
        (cycle, rest.wrapping_sub(cycle.wrapping_mul(REST)))
    }
}

/// See [`Timing::cycle_and_rest`].
pub(super) const REST: u64 = 2_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dram_timing_of_ddr4_2400_matches_the_data_sheet() {
        let t = Timing::new(&DramConfig::default());
        assert_eq!((t.cl, t.rcd, t.rp, t.cwl), (17, 17, 17, 12));
        assert_eq!((t.ras, t.rc, t.faw), (39, 56, 26));
        assert_eq!((t.rrd_s, t.rrd_l, t.ccd_s, t.ccd_l), (4, 6, 4, 6));
        assert_eq!((t.wr, t.wtr_s, t.wtr_l, t.rtp), (18, 3, 9, 9));
        assert_eq!((t.refi, t.rfc), (4680, 192));
    }

    #[test]
    fn dram_cycles_and_times_agree_in_every_grade() {
        for data_rate_mts in [2133, 2400, 2666, 3200] {
            let config = DramConfig {
                data_rate_mts,
                ..Default::default()
            };
            config.validate().unwrap();
            let t = Timing::new(&config);
            for cycle in (0..100_000).chain([1 << 40, 1 << 50]) {
                assert_eq!(t.cycle(t.time(cycle)), cycle);
                assert!(cycle == 0 || t.cycle(Time(t.time(cycle).0 - 1)) == cycle - 1);
            }
        }
    }

    #[test]
    fn dram_config_names_bad_values() {
        let message = |config: DramConfig| config.validate().unwrap_err().to_string();
        let default = DramConfig::default;
        assert!(message(DramConfig {
            data_rate_mts: 1600,
            ..default()
        })
        .contains("data_rate_mts = 1600: allowed are 2133"));
        assert!(message(DramConfig {
            refresh_mode: 3,
            ..default()
        })
        .contains("0, 1, 2, 4"));
        assert!(message(DramConfig {
            drain_high: 65,
            ..default()
        })
        .contains("drain_high"));
        assert!(message(DramConfig {
            drain_low: 48,
            ..default()
        })
        .contains("drain_low"));
        assert!(message(DramConfig {
            density_gbit: 3,
            ..default()
        })
        .contains("density_gbit"));
    }
}
