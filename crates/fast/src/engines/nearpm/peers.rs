//! The multi-device handler: what this device and its peers have completed of transactions of several devices, and when their logs
//! may be deleted. README.md of the engine, "Several devices".

use std::collections::VecDeque;

use sim::{OrderEvent, TraceEvent};
use spec::nearpm::{register, Completion, DEVICES, LINE, POOLS, SEQUENCE_BITS, THREADS};

use crate::cx::Cx;

const LOGS: usize = POOLS as usize * THREADS as usize;
const ROW: usize = DEVICES as usize;
/// Lines of what is saved: a number, then the rows of logs.
pub(super) const LINES: usize = 1 + LOGS;
/// Bytes of a transaction's number there.
const NUMBER: usize = SEQUENCE_BITS as usize / 8;
/// Bits of a peer's address that count: its registers are aligned to 4 KiB.
const ADDRESS: u64 = !0xFFF;
/// Cycles from a completion to its write at the host port, and between two of them.
const TELL: u64 = 4;

/// What is known of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Row {
    /// The last transaction that each device has told of; they never go back.
    seen: [u64; ROW],
    /// The last one that all of its participants have completed.
    all: u64,
}

pub(super) struct Peers {
    /// The own number, which stands there also while it does not count.
    own: u8,
    numbered: bool,
    /// Bus addresses of the peers' registers, as they were written; 0: none.
    written: [u64; ROW],
    /// Those that count: half of an address is none.
    addresses: [u64; ROW],
    /// What peers have written last.
    words: [u64; ROW],
    select: u8,
    /// The low word of a number that was read last: where the upper one is, and what it was then.
    kept: Option<(u64, u32)>,
    rows: Vec<Row>,
    /// Peers and logs of which they are to be told.
    tells: VecDeque<(u8, u8)>,
}

impl Peers {
    pub(super) fn new() -> Peers {
        Peers {
            own: 0,
            numbered: false,
            written: [0; ROW],
            addresses: [0; ROW],
            words: [0; ROW],
            select: 0,
            kept: None,
            rows: vec![Row::default(); LOGS],
            tells: VecDeque::new(),
        }
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.tells.is_empty()
    }

    /// The own number, if it has one.
    pub(super) fn device(&self) -> Option<u8> {
        self.numbered.then_some(self.own)
    }

    /// The last transaction of a log that has been completed here.
    pub(super) fn completed(&self, log: u8) -> u64 {
        self.rows[usize::from(log)].seen[usize::from(self.own)]
    }

    fn highest(&self) -> u64 {
        let seen = self.rows.iter().flat_map(|row| row.seen);
        seen.max().unwrap_or(0)
    }

    /// A word of its registers is read by the host: the upper word of a number is as it was when the low one was read.
    pub(super) fn load(&mut self, at: u64) -> u32 {
        let numbers = register::SEEN..register::END;
        if !numbers.contains(&at) {
            return self.read(at);
        }
        if at & 4 == 0 {
            self.kept = Some((at + 4, self.read(at + 4)));
            return self.read(at);
        }
        let kept = self.kept.take_if(|kept| kept.0 == at);
        kept.map_or_else(|| self.read(at), |kept| kept.1)
    }

    /// A word of its registers.
    fn read(&self, at: u64) -> u32 {
        let row = &self.rows[usize::from(self.select)];
        let pair = |first: u64, values: &[u64]| {
            let value = values.get(((at - first) / 8) as usize).copied();
            (value.unwrap_or(0) >> (8 * (at & 4))) as u32
        };
        match at {
            register::DEVICE => {
                let numbered = u32::from(self.numbered) * register::DEVICE_IS_SET;
                numbered | u32::from(self.own)
            }
            register::SELECT => self.select.into(),
            register::PEER..register::DONE => pair(register::PEER, &self.written),
            register::SEEN..register::ALL => pair(register::SEEN, &row.seen),
            register::ALL..register::HIGHEST => pair(register::ALL, &[row.all]),
            register::HIGHEST..register::END => pair(register::HIGHEST, &[self.highest()]),
            _ => 0,
        }
    }

    /// Writes the bits `bits` of a word of them. The log of which a peer has told something, if it has.
    pub(super) fn write(&mut self, at: u64, value: u32, bits: u32) -> Option<u8> {
        let peer = (at % 0x20 / 8) as usize;
        let upper = at & 4 != 0;
        let half = |word: &mut u64| {
            let shift = if upper { 32 } else { 0 };
            *word = *word & !(u64::from(bits) << shift) | u64::from(value & bits) << shift;
        };
        let whole = |old: u32| old & !bits | value & bits;
        match at {
            register::DEVICE => self.set_device(whole(self.read(at))),
            register::SELECT => self.select = whole(self.select.into()) as u8,
            register::PEER..register::DONE => {
                half(&mut self.written[peer]);
                if upper {
                    self.addresses[peer] = self.written[peer];
                    self.tell_all(peer as u8);
                }
            }
            register::DONE..register::SEEN => {
                half(&mut self.words[peer]);
                if !upper {
                    return None;
                }
                let done = Completion::from_word(self.words[peer]);
                if self.numbered && usize::from(self.own) != peer {
                    let seen = &mut self.rows[usize::from(done.log)].seen[peer];
                    *seen = done.sequence.max(*seen);
                    return Some(done.log);
                }
            }
            _ => {}
        }
        None
    }

    /// Under another number nothing is left of what was told under the one before.
    fn set_device(&mut self, value: u32) {
        let own = (value % u32::from(DEVICES)) as u8;
        let numbered = value & register::DEVICE_IS_SET != 0;
        if (own, numbered) != (self.own, self.numbered) {
            (self.own, self.numbered) = (own, numbered);
            self.rows.fill(Row::default());
            self.tells.clear();
        }
    }

    /// A peer may have missed what it was told: it is told again.
    fn tell_all(&mut self, peer: u8) {
        if self.device().is_none_or(|own| own == peer) {
            return;
        }
        for log in 0..=(LOGS - 1) as u8 {
            if self.completed(log) > 0 {
                self.tell_later(peer, log);
            }
        }
    }

    /// The own part of a log's transaction is complete.
    pub(super) fn complete(&mut self, log: u8, sequence: u64, participants: u8) {
        let Some(own) = self.device() else { return };
        let seen = &mut self.rows[usize::from(log)].seen[usize::from(own)];
        *seen = sequence.max(*seen);
        let peers = (0..DEVICES).filter(|n| *n != own && participants >> n & 1 == 1);
        peers.for_each(|peer| self.tell_later(peer, log));
    }

    /// Once, as it is told what is true by then: however often a host introduces a peer.
    fn tell_later(&mut self, peer: u8, log: u8) {
        if !self.tells.contains(&(peer, log)) {
            self.tells.push_back((peer, log));
        }
    }

    /// All participants have told that theirs is; this device is one of them.
    pub(super) fn is_complete(&self, log: u8, sequence: u64, participants: u8) -> bool {
        if self.device().is_none_or(|own| participants >> own & 1 == 0) {
            return false;
        }
        let seen = self.rows[usize::from(log)].seen;
        (0..ROW).all(|n| participants >> n & 1 == 0 || seen[n] >= sequence)
    }

    /// The log's records are void.
    pub(super) fn all_complete(&mut self, log: u8, sequence: u64) {
        let all = &mut self.rows[usize::from(log)].all;
        *all = sequence.max(*all);
    }

    /// One peer is told of one log, if it is set up; it is told what is true by now.
    pub(super) fn tell(&mut self, cx: &mut Cx) {
        if !cx.port.has_room() {
            return;
        }
        let (Some((peer, log)), Some(own)) = (self.tells.pop_front(), self.device()) else {
            return;
        };
        let address = self.addresses[usize::from(peer)] & ADDRESS;
        if address == 0 {
            return;
        }
        let completion = Completion {
            log,
            sequence: self.completed(log),
        };
        let place = address + register::DONE + 8 * u64::from(own);
        cx.post_write(0, place, &completion.to_word().to_le_bytes());
        cx.tell(cx.now, || TraceEvent::PeerNotified { peer });
        cx.order(|| OrderEvent::PeerNotified { peer });
    }

    /// When it looks again whether there is something to tell.
    pub(super) fn next(&self, now: u64) -> Option<u64> {
        (!self.tells.is_empty()).then_some(now + TELL)
    }

    /// What is kept without power: all but what the host sets up anew.
    pub(super) fn to_lines(&self) -> Vec<u8> {
        let mut bytes = u64::from(self.read(register::DEVICE))
            .to_le_bytes()
            .to_vec();
        bytes.extend(self.highest().to_le_bytes());
        bytes.resize(LINE as usize, 0);
        for row in &self.rows {
            let end = bytes.len() + LINE as usize;
            for value in row.seen.into_iter().chain([row.all]) {
                bytes.extend(&value.to_le_bytes()[..NUMBER]);
            }
            bytes.resize(end, 0);
        }
        bytes
    }

    pub(super) fn restore(&mut self, lines: &[u8]) {
        let number = |bytes: &[u8]| {
            let bytes = bytes.iter().rev();
            bytes.fold(0, |value, byte| value << 8 | u64::from(*byte))
        };
        let mut lines = lines.chunks_exact(LINE as usize);
        let device = lines.next().map_or(0, |line| number(&line[..8]));
        self.set_device(device as u32);
        for (row, line) in self.rows.iter_mut().zip(lines) {
            row.seen = std::array::from_fn(|n| number(&line[NUMBER * n..][..NUMBER]));
            row.all = number(&line[NUMBER * ROW..][..NUMBER]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u32 = u32::MAX;

    fn tell(peers: &mut Peers, from: u64, log: u8, sequence: u64) -> Option<u8> {
        let word = Completion { log, sequence }.to_word();
        assert_eq!(
            peers.write(register::DONE + 8 * from, word as u32, ALL),
            None
        );
        peers.write(register::DONE + 8 * from + 4, (word >> 32) as u32, ALL)
    }

    #[test]
    fn it_is_complete_when_all_have_said_so_in_whatever_order_and_however_often() {
        let mut peers = Peers::new();
        assert_eq!(tell(&mut peers, 1, 9, 5), None, "it has no number yet");
        peers.write(register::DEVICE, register::DEVICE_IS_SET | 2, ALL);
        assert_eq!(tell(&mut peers, 2, 9, 5), None, "nobody tells it of itself");
        assert_eq!(tell(&mut peers, 1, 9, 5), Some(9));
        assert_eq!(tell(&mut peers, 1, 9, 4), Some(9), "late");
        assert!(!peers.is_complete(9, 5, 0b0111));
        peers.complete(9, 5, 0b0111);
        assert!(!peers.is_complete(9, 5, 0b0111));
        assert_eq!(tell(&mut peers, 0, 9, 7), Some(9));
        assert!(peers.is_complete(9, 5, 0b0111));
        assert!(!peers.is_complete(9, 6, 0b0111));
        assert!(!peers.is_complete(8, 5, 0b0111));
        peers.all_complete(9, 5);
        assert_eq!(peers.tells, [(0, 9), (1, 9)]);

        let mut again = Peers::new();
        again.restore(&peers.to_lines());
        assert_eq!(peers.to_lines().len(), LINES * LINE as usize);
        assert_eq!(again.rows, peers.rows);
        assert_eq!(again.device(), Some(2));
        again.write(register::PEER + 8, 0x1000, ALL);
        again.write(register::PEER + 12, 1, ALL);
        assert_eq!(again.tells, [(1, 9)]);
        for n in 2..100 {
            again.write(register::PEER + 12, n, ALL);
        }
        assert_eq!(again.tells, [(1, 9)]);
        // The same number changes nothing, another one does.
        again.write(register::DEVICE, register::DEVICE_IS_SET | 2, ALL);
        assert_eq!(again.rows, peers.rows);
        again.write(register::DEVICE, register::DEVICE_IS_SET | 1, ALL);
        assert_eq!(again.highest(), 0);
    }

    #[test]
    fn a_number_comes_in_parts() {
        let mut peers = Peers::new();
        peers.write(register::DEVICE, 2, 0xFF);
        assert_eq!((peers.read(register::DEVICE), peers.device()), (2, None));
        let mut again = Peers::new();
        again.restore(&peers.to_lines());
        for peers in [&mut peers, &mut again] {
            peers.write(register::DEVICE, register::DEVICE_IS_SET, 0xFF00);
            assert_eq!(peers.device(), Some(2));
        }
    }
}
