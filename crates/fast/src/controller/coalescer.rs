// SPDX-License-Identifier: Apache-2.0

//! Interrupt coalescing (NVMe 1.4, 5.21.1.8 and 5.21.1.9; nvme_coalescer).
//!
//! An interrupt is held until enough entries were posted for its vector, or until the aggregation
//! time has passed since the first held interrupt. All vectors share one timer.

use crate::context::{Event, SimContext};

use super::features::Features;

/// Units of the aggregation time in a millisecond.
const UNITS_PER_MS: u64 = 10;

pub(crate) struct InterruptCoalescer {
    /// Held entries of each vector.
    held: Vec<u32>,
    /// The edge at which the first one was held.
    since: Option<u64>,
}

impl InterruptCoalescer {
    pub(crate) fn new(vectors: usize) -> InterruptCoalescer {
        InterruptCoalescer {
            held: vec![0; vectors],
            since: None,
        }
    }

    /// Drops held interrupts when the controller is reset.
    pub(crate) fn clear(&mut self) {
        self.held.fill(0);
        self.since = None;
    }

    /// Requests or holds the interrupt of a posted entry.
    pub(crate) fn entry_posted(
        &mut self,
        vector: usize,
        admin: bool,
        enabled: bool,
        features: &Features,
        ctx: &mut SimContext,
    ) {
        let coalescing = features.coalescing();
        let Some(coalescing) =
            coalescing.filter(|_| enabled && !admin && !features.uncoalesced(vector as u16))
        else {
            self.held[vector] = 0;
            ctx.msix.request(vector);
            self.clear_if_empty();
            return;
        };
        if self.held[vector] + 1 >= coalescing.threshold() {
            self.held[vector] = 0;
            ctx.msix.request(vector);
            self.clear_if_empty();
            return;
        }
        self.held[vector] += 1;
        if self.since.is_none() {
            self.since = Some(ctx.now);
            let cycles = u64::from(coalescing.time()) * ctx.cycles_of_ms(1) / UNITS_PER_MS;
            ctx.schedule_after(cycles.max(1), Event::Coalescing);
        }
    }

    fn clear_if_empty(&mut self) {
        if self.held.iter().all(|&held| held == 0) {
            self.since = None;
        }
    }

    /// Withdraws the interrupt of a vector whose only queue was emptied or deleted.
    pub(crate) fn withdraw(&mut self, vector: usize, ctx: &mut SimContext) {
        self.held[vector] = 0;
        self.clear_if_empty();
        ctx.msix.withdraw(vector);
    }

    /// Requests all held interrupts if the time has passed, or if coalescing is off.
    pub(crate) fn expire(&mut self, enabled: bool, features: &Features, ctx: &mut SimContext) {
        let Some(since) = self.since else {
            return;
        };
        let time = features.coalescing().filter(|_| enabled);
        let due = time.map_or(ctx.now, |coalescing| {
            since + (u64::from(coalescing.time()) * ctx.cycles_of_ms(1) / UNITS_PER_MS).max(1)
        });
        if ctx.now < due {
            ctx.schedule(due, Event::Coalescing);
            return;
        }
        for vector in 0..self.held.len() {
            if std::mem::take(&mut self.held[vector]) > 0 {
                ctx.msix.request(vector);
            }
        }
        self.since = None;
    }

    /// An interrupt is held.
    pub(crate) fn is_holding(&self) -> bool {
        self.since.is_some()
    }
}
