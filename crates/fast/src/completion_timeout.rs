//! What the host owes for so long that it is given up (ns_axi_timeout).
//!
//! The device looks at the reads that are outstanding, now and then, stream by stream. A stream that has got nothing between two looks
//! is stuck: all that it is watched ends as errors. What the host still answers is dropped, and what it answers to later reads of the stream
//! comes behind that, as it does in order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sim::ReadData;

/// Milliseconds between two looks (`HostTimeout` of nearside_shell): a read is given up after so many to twice that.
pub(crate) const CHECK_INTERVAL_MS: u64 = 25;

/// Reads whose answers come in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stream {
    /// Submission queue entries.
    Fetch,
    /// The list of the command in this slot.
    List(u16),
    /// Data for the mover of this channel.
    Data(u8),
    /// Shadow doorbells.
    Shadow,
    /// What a Set Features brings along.
    AdminData,
    /// Lists of ranges.
    Ranges,
}

pub(crate) struct CompletionTimeout {
    /// A look is armed.
    armed: bool,
    /// Streams that were watched something at the last look; whether they have got anything since.
    watched: BTreeMap<Stream, bool>,
    /// Answers that were given up and may still come.
    expired: BTreeMap<Stream, usize>,
    /// What has come behind these.
    held: VecDeque<(Stream, ReadData)>,
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

    /// Answers that may still come.
    pub(crate) fn expired(&self) -> usize {
        match self.expired.is_empty() {
            true => 0,
            false => self.expired.values().sum(),
        }
    }

    /// A look is to be armed, unless it is.
    pub(crate) fn arm(&mut self) -> bool {
        !std::mem::replace(&mut self.armed, true)
    }

    /// Looks at the streams that are watched something. Those that are stuck.
    pub(crate) fn check(&mut self, open: impl Iterator<Item = Stream>) -> BTreeSet<Stream> {
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

    /// A read of a stream is given up.
    pub(crate) fn expire(&mut self, stream: Stream) {
        *self.expired.entry(stream).or_default() += 1;
    }

    /// The answer to one has come after all.
    pub(crate) fn answer_expired(&mut self, stream: Stream) {
        let Some(expired) = self.expired.get_mut(&stream) else {
            return;
        };
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

    /// Something of a stream has come, if it is its turn.
    #[inline]
    pub(crate) fn accept(&mut self, stream: Stream, piece: ReadData) -> Option<ReadData> {
        if !self.expired.is_empty() && self.expired.contains_key(&stream) {
            self.held.push_back((stream, piece));
            return None;
        }
        if let Some(moved) = self.watched.get_mut(&stream) {
            *moved = true;
        }
        Some(piece)
    }

    /// Drops what has come for a read that waits for its turn; true if that was all.
    pub(crate) fn discard_held(&mut self, tag: u32) -> bool {
        let ended = |piece: &ReadData| piece.tag == tag && piece.last;
        let all = self.held.iter().any(|(_, piece)| ended(piece));
        self.held.retain(|(_, piece)| piece.tag != tag);
        all
    }

    /// What waited and has its turn.
    pub(crate) fn released(&mut self) -> Option<ReadData> {
        self.released.pop_front()
    }
}
