// SPDX-License-Identifier: Apache-2.0

//! When the device has accepted what was posted to it: what a completion of each posted write would
//! report.

use crate::Time;

/// Counts posted writes on their way to the device, with marks at positions in their order.
#[derive(Default)]
pub(super) struct DeliveryMarks {
    posted: u64,
    taken: u64,
    last_taken: Time,
    next: u64,
    /// Name, number of earlier writes, time at which the last of these was accepted.
    marks: Vec<(u64, u64, Option<Time>)>,
}

impl DeliveryMarks {
    /// A write was posted.
    pub(super) fn posted(&mut self) {
        self.posted += 1;
    }

    /// The device has accepted the next one.
    pub(super) fn taken(&mut self, now: Time) {
        self.taken += 1;
        self.last_taken = now;
        for mark in &mut self.marks {
            if mark.2.is_none() && self.taken >= mark.1 {
                mark.2 = Some(now);
            }
        }
    }

    /// Adds a mark after everything posted so far.
    pub(super) fn add(&mut self) -> u64 {
        let name = self.next;
        self.next += 1;
        let reached = (self.taken >= self.posted).then_some(self.last_taken);
        self.marks.push((name, self.posted, reached));
        name
    }

    /// When the device had accepted everything before a mark.
    pub(super) fn reached(&self, name: u64) -> Option<Time> {
        self.marks.iter().find(|mark| mark.0 == name)?.2
    }

    /// Removes a mark.
    pub(super) fn remove(&mut self, name: u64) {
        self.marks.retain(|mark| mark.0 != name);
    }

    /// Number of marks that were not reached.
    pub(super) fn open(&self) -> usize {
        self.marks.iter().filter(|mark| mark.2.is_none()).count()
    }
}
