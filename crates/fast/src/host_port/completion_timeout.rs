// SPDX-License-Identifier: Apache-2.0

//! Completion timeout of reads of host memory (ns_axi_timeout).
//!
//! The device checks outstanding reads at an interval, stream by stream. A stream that has received
//! nothing between two checks is stalled: all of its reads end with an error. Late answers to these
//! are dropped. Data for later reads of the stream is held until then, because a stream is answered
//! in order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sim::ReadData;

use super::requests::ReadStream;

/// Milliseconds between two checks (`HostTimeout` of nearside_shell). A read expires after one to
/// two of these intervals.
pub(crate) const CHECK_INTERVAL_MS: u64 = 25;

pub(crate) struct CompletionTimeout {
    /// A check is scheduled.
    armed: bool,
    /// Streams with outstanding reads at the last check; true if they have received data since.
    watched: BTreeMap<ReadStream, bool>,
    /// Expired reads that the host has not answered, by stream.
    expired: BTreeMap<ReadStream, usize>,
    /// Data that has arrived before the answer to an expired read of its stream.
    held: VecDeque<(ReadStream, ReadData)>,
    released: VecDeque<ReadData>,
}

impl CompletionTimeout {
    pub(crate) fn new() -> CompletionTimeout {
        CompletionTimeout {
            armed: false,
            watched: BTreeMap::new(),
            expired: BTreeMap::new(),
            held: VecDeque::new(),
            released: VecDeque::new(),
        }
    }

    /// Number of expired reads that the host may still answer.
    pub(crate) fn expired(&self) -> usize {
        match self.expired.is_empty() {
            true => 0,
            false => self.expired.values().sum(),
        }
    }

    /// Marks a check as scheduled; false if it is already.
    pub(crate) fn arm(&mut self) -> bool {
        !std::mem::replace(&mut self.armed, true)
    }

    /// Checks the streams with outstanding reads and returns the stalled ones.
    pub(crate) fn check(&mut self, open: impl Iterator<Item = ReadStream>) -> BTreeSet<ReadStream> {
        self.armed = false;
        let before = std::mem::take(&mut self.watched);
        let mut stuck = BTreeSet::new();
        for stream in open {
            match before.get(&stream) {
                Some(false) => {
                    stuck.insert(stream);
                }
                _ => {
                    self.watched.insert(stream, false);
                }
            }
        }
        stuck
    }

    /// Counts a read of a stream as expired.
    pub(crate) fn expire(&mut self, stream: ReadStream) {
        *self.expired.entry(stream).or_default() += 1;
    }

    /// An expired read has been answered after all. After the last one the held data of its stream
    /// is released.
    pub(crate) fn answer_expired(&mut self, stream: ReadStream) {
        let expired = self.expired.get_mut(&stream);
        let expired = expired.expect("an expired read is counted until it is answered");
        *expired -= 1;
        if *expired > 0 {
            return;
        }
        self.expired.remove(&stream);
        for (of, piece) in std::mem::take(&mut self.held) {
            match of == stream {
                true => self.released.push_back(piece),
                false => self.held.push_back((of, piece)),
            }
        }
    }

    /// Accepts data of a stream, or holds it until expired reads of the stream are answered.
    #[inline]
    pub(crate) fn accept(&mut self, stream: ReadStream, piece: ReadData) -> Option<ReadData> {
        if !self.expired.is_empty() && self.expired.contains_key(&stream) {
            self.held.push_back((stream, piece));
            return None;
        }
        if let Some(moved) = self.watched.get_mut(&stream) {
            *moved = true;
        }
        Some(piece)
    }

    /// Drops held data of a read that expires. True if the read was answered in full.
    pub(crate) fn discard_held(&mut self, tag: u32) -> bool {
        let ended = |piece: &ReadData| piece.tag == tag && piece.last;
        let all = self.held.iter().any(|(_, piece)| ended(piece));
        self.held.retain(|(_, piece)| piece.tag != tag);
        all
    }

    /// The next data that is no longer held.
    pub(crate) fn released(&mut self) -> Option<ReadData> {
        self.released.pop_front()
    }
}
