// SPDX-License-Identifier: Apache-2.0

//! A list in host memory that the caller reads: PRP entries, or the descriptors of a segment.

use std::collections::VecDeque;

/// A part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    /// Its first address.
    pub addr: u64,
    /// Number of qwords, at least one.
    pub entries: u64,
}

/// The current list of a walk: entries that were fed, and those that are missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListReader {
    /// Address of the next missing qword.
    addr: u64,
    /// Number of missing qwords.
    left: u64,
    /// Qwords that were fed and have not been taken.
    fed: VecDeque<u64>,
    failed: bool,
}

/// The result of a request for qwords.
pub(crate) enum NextQwords<const N: usize> {
    Qwords([u64; N]),
    /// They are not available until this list is fed.
    NotFed(List),
    /// They can't be read.
    Failed,
}

impl ListReader {
    /// A list of `entries` qwords from `addr` on.
    pub fn new(addr: u64, entries: u64) -> ListReader {
        ListReader {
            addr,
            left: entries,
            ..ListReader::default()
        }
    }

    /// The part that is missing.
    pub fn wanted(&self) -> Option<List> {
        (self.left > 0 && !self.failed).then_some(List {
            addr: self.addr,
            entries: self.left,
        })
    }

    /// Number of qwords that have not been taken.
    pub fn remaining(&self) -> u64 {
        self.left.saturating_add(self.fed.len() as u64)
    }

    pub fn feed(&mut self, qwords: &[u64]) {
        if self.failed {
            return;
        }
        let count = self.left.min(qwords.len() as u64);
        self.fed.extend(&qwords[..count as usize]);
        self.addr = self.addr.wrapping_add(8 * count);
        self.left -= count;
    }

    pub fn fail(&mut self) {
        self.failed |= self.left > 0;
    }

    /// Takes the next qwords.
    pub fn next_qwords<const N: usize>(&mut self) -> NextQwords<N> {
        if self.fed.len() < N {
            return match self.wanted() {
                Some(list) => NextQwords::NotFed(list),
                // Walkers check for the list's end before, so this is a failed read.
                None => NextQwords::Failed,
            };
        }
        let mut qwords = [0; N];
        for (qword, fed) in qwords.iter_mut().zip(self.fed.drain(..N)) {
            *qword = fed;
        }
        NextQwords::Qwords(qwords)
    }
}
