// SPDX-License-Identifier: Apache-2.0

//! Bandwidth cap: the token bucket of `nvm_delay_cap`.

/// Fractional bits of a rate.
const FRACTION: u32 = 16;
/// Bytes of two beats: the debt at which a beat may still pass.
const DEPTH: u64 = 2 * 64 << FRACTION;
/// Bytes of a beat.
const BEAT: u64 = 64 << FRACTION;

/// Debt of the beats that have passed, in bytes, Q.16.
#[derive(Clone, Debug, Default)]
pub struct BandwidthCap {
    /// Bytes a cycle, Q8.16; 0 is no cap.
    rate: u64,
    /// The debt in cycle `at`.
    debt: u64,
    at: u64,
}

impl BandwidthCap {
    /// Changes the rate in `cycle`.
    pub fn set_rate(&mut self, cycle: u64, rate: u32) {
        self.drain_debt(cycle);
        self.rate = rate.into();
        if rate == 0 {
            self.debt = 0;
        }
    }

    /// There is no cap.
    #[inline]
    pub fn is_off(&self) -> bool {
        self.rate == 0
    }

    #[inline]
    fn drain_debt(&mut self, cycle: u64) {
        if let Some(cycles) = cycle.checked_sub(self.at) {
            self.debt = self.debt.saturating_sub(self.rate.saturating_mul(cycles));
            self.at = cycle;
        }
    }

    /// How many of `beats` waiting beats pass without a pause, at least one.
    #[inline]
    pub fn beats_without_pause(&self, beats: u32) -> u32 {
        if self.rate == 0 {
            return beats;
        }
        let bytes = u64::from(beats) * self.rate;
        ((bytes / BEAT) as u32).clamp(1, beats.max(1))
    }

    /// The first cycle from `cycle` on in which a beat may pass.
    #[inline]
    pub fn open_cycle(&mut self, cycle: u64) -> u64 {
        let cycle = cycle.max(self.at);
        self.drain_debt(cycle);
        if self.rate == 0 || self.debt <= DEPTH {
            return cycle;
        }
        cycle + (self.debt - DEPTH).div_ceil(self.rate)
    }

    /// Passes `beats` beats from `cycle` on, at most one a cycle. Returns the cycles of the first
    /// and the last.
    #[inline]
    pub fn pass_beats(&mut self, cycle: u64, beats: u32) -> (u64, u64) {
        if self.rate == 0 {
            return (cycle, cycle + u64::from(beats.max(1)) - 1);
        }
        let mut cycle = cycle.max(self.at);
        let mut first = None;
        for _ in 0..beats.max(1) {
            cycle = self.open_cycle(cycle);
            self.drain_debt(cycle);
            first.get_or_insert(cycle);
            self.debt = self.debt.saturating_sub(self.rate) + BEAT;
            cycle += 1;
            self.at = cycle;
        }
        (first.unwrap_or(cycle), cycle - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The registers of `nvm_delay_cap`, cycle by cycle, with beats always waiting.
    fn cycles_of_beats(rate: u64, beats: usize) -> Vec<u64> {
        let (mut debt, mut cycle, mut out) = (0u64, 100, Vec::new());
        while out.len() < beats {
            let left = debt.saturating_sub(rate);
            if debt <= DEPTH {
                out.push(cycle);
                debt = left + BEAT;
            } else {
                debt = left;
            }
            cycle += 1;
        }
        out
    }

    #[test]
    fn cap_passes_beats_in_the_cycles_of_the_rtl_token_bucket() {
        for rate in [1 << 8, 1 << 16, 6_600_000 >> 4, 64 << 16, 0xFF_FFFF] {
            let mut cap = BandwidthCap::default();
            cap.set_rate(0, rate);
            let expected = cycles_of_beats(rate.into(), 40);
            let single: Vec<u64> = (0..24).map(|_| cap.pass_beats(100, 1).1).collect();
            assert_eq!(single, expected[..24], "{rate}");
            assert_eq!(
                cap.pass_beats(100, 16),
                (expected[24], expected[39]),
                "{rate}"
            );
        }
    }
}
