//! A list in host memory that somebody else reads: PRP entries, or the descriptors of a segment.

use std::collections::VecDeque;

/// A part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    /// Its first address.
    pub addr: u64,
    /// Its qwords, at least one.
    pub entries: u64,
}

/// The list that a walk is in: what was fed, and what was not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    /// The next qword that was not fed.
    addr: u64,
    /// How many were not.
    left: u64,
    /// Those that were, and are still to be looked at.
    fed: VecDeque<u64>,
    failed: bool,
}

/// What a walk that wants qwords gets.
pub(crate) enum Got<const N: usize> {
    Qwords([u64; N]),
    /// Not before this was fed.
    Later(List),
    /// They can't be read.
    Never,
}

impl Reading {
    /// Of so many qwords from `addr` on.
    pub fn new(addr: u64, entries: u64) -> Reading {
        Reading {
            addr,
            left: entries,
            ..Reading::default()
        }
    }

    /// What was not fed.
    pub fn wanted(&self) -> Option<List> {
        (self.left > 0 && !self.failed).then_some(List {
            addr: self.addr,
            entries: self.left,
        })
    }

    /// Qwords that were not looked at.
    pub fn rest(&self) -> u64 {
        self.left.saturating_add(self.fed.len() as u64)
    }

    pub fn feed(&mut self, qwords: &[u64]) {
        if self.failed {
            return;
        }
        let taken = self.left.min(qwords.len() as u64);
        self.fed.extend(&qwords[..taken as usize]);
        self.addr = self.addr.wrapping_add(8 * taken);
        self.left -= taken;
    }

    pub fn fail(&mut self) {
        self.failed |= self.left > 0;
    }

    /// Takes the next qwords.
    pub fn take<const N: usize>(&mut self) -> Got<N> {
        if self.fed.len() < N {
            return match self.wanted() {
                Some(list) => Got::Later(list),
                // Also where nothing is left, which walkers look at before.
                None => Got::Never,
            };
        }
        let mut qwords = [0; N];
        for (qword, fed) in qwords.iter_mut().zip(self.fed.drain(..N)) {
            *qword = fed;
        }
        Got::Qwords(qwords)
    }
}
