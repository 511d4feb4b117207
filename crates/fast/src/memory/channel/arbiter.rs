// SPDX-License-Identifier: Apache-2.0

//! Arbitration between the masters of a channel: `ns_wrr_arbiter`.

use super::MASTERS;

/// The master with absolute priority.
pub const URGENT: usize = 0;

/// Weighted round robin. Each master but the urgent one may use its weight in a round.
#[derive(Clone, Debug)]
pub struct Arbiter {
    /// Beats left of a weight; negative if a burst has exceeded it.
    left: [i32; MASTERS],
    /// The first master in rotation, which follows the one granted last.
    next_master: usize,
}

/// The result of one cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// A master is granted.
    Master(usize),
    /// A new round begins, which takes the cycle.
    Round,
}

impl Arbiter {
    /// An arbiter after reset.
    pub fn new() -> Arbiter {
        Arbiter {
            left: [1; MASTERS],
            next_master: 0,
        }
    }

    /// Grants one of `requests`, a bit mask that is not 0. `weights` are at least 1.
    pub fn grant(&mut self, requests: u32, weights: &[i32; MASTERS]) -> Grant {
        if requests >> URGENT & 1 != 0 {
            return Grant::Master(URGENT);
        }
        let able = (0..MASTERS)
            .filter(|&m| requests >> m & 1 != 0 && self.left[m] > 0)
            .fold(0u32, |able, m| able | 1 << m);
        if able == 0 {
            for (left, &weight) in self.left.iter_mut().zip(weights) {
                *left = if *left > 0 {
                    weight
                } else {
                    (*left + weight).min(weight)
                };
            }
            return Grant::Round;
        }
        let later = able >> self.next_master << self.next_master;
        let first = if later != 0 { later } else { able };
        Grant::Master(first.trailing_zeros() as usize)
    }

    /// Accounts for a burst of `cost` beats of the granted master.
    pub fn granted(&mut self, master: usize, cost: u32) {
        if master != URGENT {
            self.left[master] -= cost as i32;
        }
        self.next_master = (master + 1) % MASTERS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arbiter_shares_follow_weights_and_the_urgent_master_is_first() {
        let mut arbiter = Arbiter::new();
        let mut weights = [1; MASTERS];
        (weights[1], weights[2]) = (30, 10);
        let mut beats = [0u32; MASTERS];
        for _ in 0..10_000 {
            if let Grant::Master(master) = arbiter.grant(0b110, &weights) {
                let cost = if master == 1 { 8 } else { 64 };
                arbiter.granted(master, cost);
                beats[master] += cost;
            }
        }
        let share = f64::from(beats[1]) / f64::from(beats[2]);
        assert!((share - 3.0).abs() < 0.05, "{share}");
        assert_eq!(arbiter.grant(0b111, &weights), Grant::Master(URGENT));
    }
}
