//! What the host owes for so long that it is given up (ns_axi_timeout).
//!
//! The device looks at the reads that are outstanding, now and then, stream by stream. A stream that has got nothing between two looks
//! is stuck: all that it is owed ends as errors. What the host still answers is dropped, and what it answers to later reads of the stream
//! comes behind that, as it does in order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sim::ReadData;

/// Milliseconds between two looks (`HostTimeout` of nearside_shell): a read is given up after so many to twice that.
pub(crate) const LOOK_MS: u64 = 25;

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

pub(crate) struct Patience {
    /// A look is planned.
    planned: bool,
    /// Streams that were owed something at the last look; whether they have got anything since.
    owed: BTreeMap<Stream, bool>,
    /// Answers that were given up and may still come.
    lost: BTreeMap<Stream, usize>,
    /// What has come behind these.
    held: VecDeque<(Stream, ReadData)>,
    released: VecDeque<ReadData>,
}

impl Patience {
    pub(crate) fn new() -> Patience {
        Patience {
            planned: false,
            owed: BTreeMap::new(),
            lost: BTreeMap::new(),
            held: VecDeque::new(),
            released: VecDeque::new(),
        }
    }

    /// Answers that may still come.
    pub(crate) fn lost(&self) -> usize {
        match self.lost.is_empty() {
            true => 0,
            false => self.lost.values().sum(),
        }
    }

    /// A look is to be planned, unless it is.
    pub(crate) fn plan(&mut self) -> bool {
        !std::mem::replace(&mut self.planned, true)
    }

    /// Looks at the streams that are owed something. Those that are stuck.
    pub(crate) fn look(&mut self, open: impl Iterator<Item = Stream>) -> BTreeSet<Stream> {
        self.planned = false;
        let before = std::mem::take(&mut self.owed);
        let mut stuck = BTreeSet::new();
        for stream in open {
            match before.get(&stream) {
                Some(false) => {
                    stuck.insert(stream);
                }
                _ => {
                    self.owed.insert(stream, false);
                }
            }
        }
        stuck
    }

    /// A read of a stream is given up.
    pub(crate) fn lose(&mut self, stream: Stream) {
        *self.lost.entry(stream).or_default() += 1;
    }

    /// The answer to one has come after all.
    pub(crate) fn found(&mut self, stream: Stream) {
        let Some(lost) = self.lost.get_mut(&stream) else {
            return;
        };
        *lost -= 1;
        if *lost > 0 {
            return;
        }
        self.lost.remove(&stream);
        for (of, piece) in std::mem::take(&mut self.held) {
            match of == stream {
                true => self.released.push_back(piece),
                false => self.held.push_back((of, piece)),
            }
        }
    }

    /// Something of a stream has come, if it is its turn.
    #[inline]
    pub(crate) fn comes(&mut self, stream: Stream, piece: ReadData) -> Option<ReadData> {
        if !self.lost.is_empty() && self.lost.contains_key(&stream) {
            self.held.push_back((stream, piece));
            return None;
        }
        if let Some(moved) = self.owed.get_mut(&stream) {
            *moved = true;
        }
        Some(piece)
    }

    /// Drops what has come for a read that waits for its turn; true if that was all.
    pub(crate) fn forget(&mut self, tag: u32) -> bool {
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
