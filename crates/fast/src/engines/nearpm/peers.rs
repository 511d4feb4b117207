// SPDX-License-Identifier: Apache-2.0

//! The multi-device handler: the transactions of several devices that this device and its peers
//! have completed, and when their logs may be deleted. See docs/hardware/nearpm.md, "Several
//! devices".

use std::collections::VecDeque;

use sim::{OrderEvent, TraceEvent};
use spec::nearpm::{register, Completion, DEVICES, LINE, POOLS, SEQUENCE_BITS, THREADS};

use crate::context::SimContext;

const LOGS: usize = POOLS as usize * THREADS as usize;
const PEERS: usize = DEVICES as usize;
/// Lines of the saved state: a device number, then the rows of logs.
pub(super) const LINES: usize = 1 + LOGS;
/// Bytes of a saved transaction number.
const NUMBER: usize = SEQUENCE_BITS as usize / 8;
/// Valid bits of a peer's address: its registers are aligned to 4 KiB.
const ADDRESS: u64 = !0xFFF;
/// Cycles from a completion to its write at the host port, and between two of them.
const NOTIFY_CYCLES: u64 = 4;

/// The transactions of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LogProgress {
    /// The last transaction that each device has completed; never decreases.
    completed: [u64; PEERS],
    /// The last transaction that all of its participants have completed.
    all: u64,
}

pub(super) struct Peers {
    /// This device's number; it is also saved while it is not valid.
    number: u8,
    numbered: bool,
    /// Bus addresses of the peers' registers, as written; 0: none.
    written: [u64; PEERS],
    /// The valid addresses. An address of which only one half was written is not valid.
    addresses: [u64; PEERS],
    /// The last completion that each peer has written.
    words: [u64; PEERS],
    select: u8,
    /// The last number of which the low dword was read: address and value of its high dword.
    kept: Option<(u64, u32)>,
    rows: Vec<LogProgress>,
    /// Pending notifications: peer and log.
    notifications: VecDeque<(u8, u8)>,
}

impl Peers {
    pub(super) fn new() -> Peers {
        Peers {
            number: 0,
            numbered: false,
            written: [0; PEERS],
            addresses: [0; PEERS],
            words: [0; PEERS],
            select: 0,
            kept: None,
            rows: vec![LogProgress::default(); LOGS],
            notifications: VecDeque::new(),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.notifications.is_empty()
    }

    /// This device's number, if it has one.
    pub(super) fn device(&self) -> Option<u8> {
        self.numbered.then_some(self.number)
    }

    /// The last transaction of a log that this device has completed.
    pub(super) fn own_progress(&self, log: u8) -> u64 {
        self.rows[usize::from(log)].completed[usize::from(self.number)]
    }

    fn highest(&self) -> u64 {
        let completed = self.rows.iter().flat_map(|row| row.completed);
        completed.max().expect("there are logs")
    }

    /// The host reads a register dword. The high dword of a number is the one at the time when the
    /// low dword was read.
    pub(super) fn read_latched(&mut self, at: u64) -> u32 {
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

    /// Reads a register dword.
    fn read(&self, at: u64) -> u32 {
        let row = &self.rows[usize::from(self.select)];
        let pair = |first: u64, values: &[u64]| {
            let value = values.get(((at - first) / 8) as usize).copied();
            (value.unwrap_or(0) >> (8 * (at & 4))) as u32
        };
        match at {
            register::DEVICE => {
                let numbered = u32::from(self.numbered) * register::DEVICE_IS_SET;
                numbered | u32::from(self.number)
            }
            register::SELECT => self.select.into(),
            register::PEER..register::DONE => pair(register::PEER, &self.written),
            register::SEEN..register::ALL => pair(register::SEEN, &row.completed),
            register::ALL..register::HIGHEST => pair(register::ALL, &[row.all]),
            register::HIGHEST..register::END => pair(register::HIGHEST, &[self.highest()]),
            _ => 0,
        }
    }

    /// Writes the bits `bits` of a register dword. Returns the log for which a peer has reported a
    /// completion.
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
                    self.renotify_peer(peer as u8);
                }
            }
            register::DONE..register::SEEN => {
                half(&mut self.words[peer]);
                if !upper {
                    return None;
                }
                let done = Completion::from_word(self.words[peer]);
                if self.numbered && usize::from(self.number) != peer {
                    let completed = &mut self.rows[usize::from(done.log)].completed[peer];
                    *completed = done.sequence.max(*completed);
                    return Some(done.log);
                }
            }
            _ => {}
        }
        None
    }

    /// A new device number clears everything that was recorded with the old one.
    fn set_device(&mut self, value: u32) {
        let number = (value % u32::from(DEVICES)) as u8;
        let numbered = value & register::DEVICE_IS_SET != 0;
        if (number, numbered) != (self.number, self.numbered) {
            (self.number, self.numbered) = (number, numbered);
            self.rows.fill(LogProgress::default());
            self.notifications.clear();
        }
    }

    /// A peer may have missed notifications: sends all of them again.
    fn renotify_peer(&mut self, peer: u8) {
        if self.device().is_none_or(|number| number == peer) {
            return;
        }
        for log in 0..=(LOGS - 1) as u8 {
            if self.own_progress(log) > 0 {
                self.queue_notification(peer, log);
            }
        }
    }

    /// This device has completed its part of a log's transaction.
    pub(super) fn complete(&mut self, log: u8, sequence: u64, participants: u8) {
        let Some(number) = self.device() else { return };
        let completed = &mut self.rows[usize::from(log)].completed[usize::from(number)];
        *completed = sequence.max(*completed);
        let peers = (0..DEVICES).filter(|n| *n != number && participants >> n & 1 == 1);
        peers.for_each(|peer| self.queue_notification(peer, log));
    }

    /// Queues a notification, unless it is pending: it is sent with the state at that time.
    fn queue_notification(&mut self, peer: u8, log: u8) {
        if !self.notifications.contains(&(peer, log)) {
            self.notifications.push_back((peer, log));
        }
    }

    /// All participants have completed the transaction, and this device is one of them.
    pub(super) fn is_complete(&self, log: u8, sequence: u64, participants: u8) -> bool {
        if self
            .device()
            .is_none_or(|number| participants >> number & 1 == 0)
        {
            return false;
        }
        let completed = self.rows[usize::from(log)].completed;
        (0..PEERS).all(|n| participants >> n & 1 == 0 || completed[n] >= sequence)
    }

    /// The log's records may be deleted.
    pub(super) fn all_complete(&mut self, log: u8, sequence: u64) {
        let all = &mut self.rows[usize::from(log)].all;
        *all = sequence.max(*all);
    }

    /// Notifies one peer about one log, if the peer's address is set.
    pub(super) fn notify_next(&mut self, ctx: &mut SimContext) {
        if !ctx.port.has_room() {
            return;
        }
        let (Some((peer, log)), Some(number)) = (self.notifications.pop_front(), self.device())
        else {
            return;
        };
        let address = self.addresses[usize::from(peer)] & ADDRESS;
        if address == 0 {
            return;
        }
        let completion = Completion {
            log,
            sequence: self.own_progress(log),
        };
        let place = address + register::DONE + 8 * u64::from(number);
        ctx.post_write(ctx.now, place, &completion.to_word().to_le_bytes(), None);
        ctx.trace(ctx.now, || TraceEvent::PeerNotified { peer });
        ctx.record_order(|| OrderEvent::PeerNotified { peer });
    }

    /// The edge of the next notification, if one is pending.
    pub(super) fn next_notification(&self, now: u64) -> Option<u64> {
        (!self.notifications.is_empty()).then_some(now + NOTIFY_CYCLES)
    }

    /// The saved state: everything that the host does not set up again.
    pub(super) fn to_lines(&self) -> Vec<u8> {
        let mut bytes = u64::from(self.read(register::DEVICE))
            .to_le_bytes()
            .to_vec();
        bytes.extend(self.highest().to_le_bytes());
        bytes.resize(LINE as usize, 0);
        for row in &self.rows {
            let end = bytes.len() + LINE as usize;
            for value in row.completed.into_iter().chain([row.all]) {
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
        let device = lines.next().expect("the number's line is the first one");
        self.set_device(number(&device[..8]) as u32);
        for (row, line) in self.rows.iter_mut().zip(lines) {
            row.completed = std::array::from_fn(|n| number(&line[NUMBER * n..][..NUMBER]));
            row.all = number(&line[NUMBER * PEERS..][..NUMBER]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u32 = u32::MAX;

    fn report(peers: &mut Peers, from: u64, log: u8, sequence: u64) -> Option<u8> {
        let word = Completion { log, sequence }.to_word();
        assert_eq!(
            peers.write(register::DONE + 8 * from, word as u32, ALL),
            None
        );
        peers.write(register::DONE + 8 * from + 4, (word >> 32) as u32, ALL)
    }

    #[test]
    fn peers_complete_a_transaction_once_all_have_reported_in_any_order() {
        let mut peers = Peers::new();
        assert_eq!(report(&mut peers, 1, 9, 5), None, "it has no number yet");
        peers.write(register::DEVICE, register::DEVICE_IS_SET | 2, ALL);
        assert_eq!(
            report(&mut peers, 2, 9, 5),
            None,
            "nobody notifications it of itself"
        );
        assert_eq!(report(&mut peers, 1, 9, 5), Some(9));
        assert_eq!(report(&mut peers, 1, 9, 4), Some(9), "late");
        assert!(!peers.is_complete(9, 5, 0b0111));
        peers.complete(9, 5, 0b0111);
        assert!(!peers.is_complete(9, 5, 0b0111));
        assert_eq!(report(&mut peers, 0, 9, 7), Some(9));
        assert!(peers.is_complete(9, 5, 0b0111));
        assert!(!peers.is_complete(9, 6, 0b0111));
        assert!(!peers.is_complete(8, 5, 0b0111));
        peers.all_complete(9, 5);
        assert_eq!(peers.notifications, [(0, 9), (1, 9)]);

        let mut again = Peers::new();
        again.restore(&peers.to_lines());
        assert_eq!(peers.to_lines().len(), LINES * LINE as usize);
        assert_eq!(again.rows, peers.rows);
        assert_eq!(again.device(), Some(2));
        again.write(register::PEER + 8, 0x1000, ALL);
        again.write(register::PEER + 12, 1, ALL);
        assert_eq!(again.notifications, [(1, 9)]);
        for n in 2..100 {
            again.write(register::PEER + 12, n, ALL);
        }
        assert_eq!(again.notifications, [(1, 9)]);
        // The same number changes nothing, another number does.
        again.write(register::DEVICE, register::DEVICE_IS_SET | 2, ALL);
        assert_eq!(again.rows, peers.rows);
        again.write(register::DEVICE, register::DEVICE_IS_SET | 1, ALL);
        assert_eq!(again.highest(), 0);
    }

    #[test]
    fn peers_accept_a_device_number_written_byte_by_byte() {
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
