//! A channel with a fixed latency, until the structured one is there.

/// What a channel tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The data of a read: when its first and its last beat leave the channel.
    Read {
        /// As given.
        tag: u32,
        /// First beat, clock edge.
        first: u64,
        /// Last beat, clock edge.
        last: u64,
    },
    /// The response to a write.
    Written {
        /// As given.
        tag: u32,
    },
}

/// One channel.
pub struct Channel {
    free: u64,
    waiting: std::collections::VecDeque<(u64, Answer)>,
}

impl Channel {
    pub(crate) fn new() -> Channel {
        Channel {
            free: 0,
            waiting: Default::default(),
        }
    }
    pub(crate) fn read(&mut self, cycle: u64, _master: u8, _addr: u64, bytes: u32, tag: u32) {
        let beats = u64::from(bytes.div_ceil(64));
        let first = self.free.max(cycle + 20);
        let last = first + beats - 1;
        self.free = last + 1;
        self.waiting
            .push_back((first, Answer::Read { tag, first, last }));
    }
    pub(crate) fn write(&mut self, cycle: u64, _master: u8, _addr: u64, bytes: u32, tag: u32) {
        let beats = u64::from(bytes.div_ceil(64));
        let first = self.free.max(cycle + 20);
        self.free = first + beats;
        self.waiting
            .push_back((first + beats, Answer::Written { tag }));
    }
    pub(crate) fn next_event(&self) -> Option<u64> {
        self.waiting.front().map(|w| w.0)
    }
    pub(crate) fn advance(&mut self, cycle: u64, out: &mut Vec<Answer>) {
        while self.waiting.front().is_some_and(|w| w.0 <= cycle) {
            if let Some((_, answer)) = self.waiting.pop_front() {
                out.push(answer);
            }
        }
    }
}
