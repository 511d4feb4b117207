// SPDX-License-Identifier: Apache-2.0

//! The lines of a tracked pool that have a record: docs/hardware/nearpm.md, "Tracked pools".

use std::collections::HashSet;

use spec::nearpm::TRACKED_LINES;

/// An epoch of a tracked pool: a generation of its log.
#[derive(Clone, Debug, Default)]
pub(super) struct Epoch {
    /// Lines of the media with a record.
    lines: HashSet<u64>,
    /// A record could not be made: the epoch can't be undone, and no further records are made.
    given_up: bool,
}

impl Epoch {
    /// A new epoch, without records.
    pub(super) fn begin(&mut self) {
        self.lines.clear();
        self.given_up = false;
    }

    /// A line needs no further record.
    pub(super) fn has(&self, line: u64) -> bool {
        self.given_up || self.lines.contains(&line)
    }

    /// There is no place for another line.
    pub(super) fn is_full(&self) -> bool {
        self.lines.len() >= TRACKED_LINES
    }

    pub(super) fn add(&mut self, line: u64) {
        self.lines.insert(line);
    }

    pub(super) fn give_up(&mut self) {
        self.given_up = true;
    }
}
