// SPDX-License-Identifier: Apache-2.0

//! The queues of a memory controller's AXI4 port: what it accepts, and in which order it answers.

use std::collections::VecDeque;

use super::MemoryTiming;
use crate::axi::{resp, Ax, BEAT};
use crate::Time;

/// Reads that the port accepts before the first of them has been answered.
pub const MAX_READS: usize = 64;
/// Write addresses accepted before their data.
pub const MAX_WRITES: usize = 16;
/// Write responses not taken yet; more of them stop the writes.
pub const MAX_RESPONSES: usize = 32;

/// Tokens of writes: beats before the last of a burst, and the last.
const WRITE_BEAT: u32 = u32::MAX;
const WRITE_END: u32 = u32::MAX - 1;
/// Token of a fill line, which no master writes; smaller ones are those of reads.
const FILL_LINE: u32 = u32::MAX - 2;

#[derive(Clone, Default)]
struct QueuedRead {
    ax: Ax,
    issued: u32,       // beats issued to the memory
    arrived: [u64; 4], // a bit per beat whose data has arrived
    sent: u32,         // beats sent to the master
}

impl QueuedRead {
    fn has_beat(&self, beat: u32) -> bool {
        self.arrived[beat as usize / 64] >> (beat % 64) & 1 != 0
    }
}

/// The queues of one channel, without its signals and without data. Once a clock, the owner asks
/// what may be transferred and reports what was.
///
/// Reads are issued to the memory one line a clock, in order. The beats of one read are answered
/// together. Of the reads that have data, the oldest is answered first; those of one ID stay in
/// order. A write is answered once the memory has all of its data.
pub struct PortQueues {
    timing: Box<dyn MemoryTiming + Send>,
    reads: Vec<QueuedRead>,
    free: Vec<u8>,
    order: VecDeque<u8>, // reads, oldest first
    unissued: VecDeque<u8>,
    arrived: u32,        // beats that can be sent, of all reads
    sending: Option<u8>, // read whose burst is being sent
    wake: Option<Time>,  // when the memory has to be advanced
    writes: VecDeque<Ax>,
    write_beat: u32,
    write_code: u8,                // of the burst, so far
    accepted: VecDeque<(u16, u8)>, // writes that the memory has not accepted in full: ID, code
    responses: VecDeque<(u16, u8)>,
    fill_lines: u32, // fill lines that the memory has not accepted
    done: Vec<u32>,
}

impl PortQueues {
    /// Empty queues for this memory.
    pub fn new(timing: Box<dyn MemoryTiming + Send>) -> PortQueues {
        PortQueues {
            timing,
            reads: vec![QueuedRead::default(); MAX_READS],
            free: (0..MAX_READS as u8).rev().collect(),
            order: VecDeque::new(),
            unissued: VecDeque::new(),
            arrived: 0,
            sending: None,
            wake: None,
            writes: VecDeque::new(),
            write_beat: 0,
            write_code: resp::OKAY,
            accepted: VecDeque::new(),
            responses: VecDeque::new(),
            fill_lines: 0,
            done: Vec::new(),
        }
    }

    /// Records what the memory has completed by `now`.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        if self.wake.is_none_or(|time| time > now) {
            return;
        }
        self.timing.advance(now, &mut self.done);
        self.wake = self.timing.next_event();
        for token in self.done.drain(..) {
            match token {
                WRITE_BEAT => {}
                WRITE_END => self.responses.extend(self.accepted.pop_front()),
                FILL_LINE => self.fill_lines -= 1,
                _ => {
                    let read = &mut self.reads[(token >> 8) as usize];
                    read.arrived[token as usize >> 6 & 3] |= 1 << (token & 63);
                    self.arrived += 1;
                }
            }
        }
    }

    /// Issues the next line of a read, if there is one and the memory is ready.
    #[inline]
    pub fn issue(&mut self, now: Time) {
        let Some(&slot) = self.unissued.front() else {
            return;
        };
        if !self.timing.ready(false) {
            return;
        }
        let read = &mut self.reads[slot as usize];
        let token = u32::from(slot) << 8 | read.issued;
        let local = read.ax.beat_addr(read.issued) & !(BEAT as u64 - 1);
        self.timing.push(now, token, local, false);
        self.wake = self.timing.next_event();
        read.issued += 1;
        if read.issued == read.ax.beats() {
            self.unissued.pop_front();
        }
    }

    /// Whether a read would be accepted.
    #[inline]
    pub fn can_accept_read(&self) -> bool {
        !self.free.is_empty()
    }

    /// Accepts a read, if [`PortQueues::can_accept_read`].
    pub fn accept_read(&mut self, ax: Ax) {
        let Some(slot) = self.free.pop() else { return };
        self.reads[slot as usize] = QueuedRead {
            ax,
            ..QueuedRead::default()
        };
        self.order.push_back(slot);
        self.unissued.push_back(slot);
    }

    /// The read whose beat is answered next, and the beat's number in its burst, if one is
    /// available. It stays the same until [`PortQueues::beat_sent`].
    #[inline]
    pub fn next_beat(&mut self) -> Option<(Ax, u32)> {
        if self.arrived == 0 {
            return None;
        }
        let slot = match self.sending {
            Some(slot) => {
                let read = &self.reads[slot as usize];
                Some(slot).filter(|_| read.has_beat(read.sent))
            }
            None => self.oldest_ready(),
        }?;
        self.sending = Some(slot);
        let read = &self.reads[slot as usize];
        Some((read.ax, read.sent))
    }

    /// The beat has been taken.
    pub fn beat_sent(&mut self) {
        let Some(slot) = self.sending else { return };
        self.arrived -= 1;
        let read = &mut self.reads[slot as usize];
        read.sent += 1;
        if read.sent == read.ax.beats() {
            self.sending = None;
            self.free.push(slot);
            self.order.retain(|&other| other != slot);
        }
    }

    /// The oldest read of its ID whose next beat is available.
    fn oldest_ready(&self) -> Option<u8> {
        let mut blocked = [0u64; 4]; // IDs of older reads that have to wait
        for &slot in &self.order {
            let read = &self.reads[slot as usize];
            let (word, bit) = (read.ax.id as usize >> 6 & 3, 1 << (read.ax.id & 63));
            if blocked[word] & bit == 0 {
                if read.has_beat(read.sent) {
                    return Some(slot);
                }
                blocked[word] |= bit;
            }
        }
        None
    }

    /// Whether the address of a write would be accepted.
    #[inline]
    pub fn can_accept_write(&self) -> bool {
        self.writes.len() < MAX_WRITES
    }

    /// Accepts the address of a write, if [`PortQueues::can_accept_write`].
    pub fn accept_write(&mut self, ax: Ax) {
        self.writes.push_back(ax);
    }

    /// Whether the memory has space for a line.
    #[inline]
    pub fn can_accept_line(&self) -> bool {
        self.timing.ready(true)
    }

    /// Whether a beat of write data would be accepted.
    #[inline]
    pub fn can_accept_data(&self) -> bool {
        !self.writes.is_empty()
            && self.accepted.len() + self.responses.len() < MAX_RESPONSES
            && self.can_accept_line()
    }

    /// The address of the next beat of write data.
    pub fn data_addr(&self) -> Option<u64> {
        let ax = self.writes.front()?;
        Some(ax.beat_addr(self.write_beat) & !(BEAT as u64 - 1))
    }

    /// Whether the next beat of write data is the last one of its burst.
    pub fn data_ends(&self) -> bool {
        self.writes
            .front()
            .is_some_and(|ax| self.write_beat == u32::from(ax.len))
    }

    /// Accepts a beat of write data, if [`PortQueues::can_accept_data`]; `code` is its response
    /// code.
    pub fn accept_data(&mut self, now: Time, code: u8) {
        let (Some(local), Some(&ax)) = (self.data_addr(), self.writes.front()) else {
            return;
        };
        let end = self.write_beat == u32::from(ax.len);
        let token = if end { WRITE_END } else { WRITE_BEAT };
        self.timing.push(now, token, local, true);
        self.wake = self.timing.next_event();
        self.write_code = self.write_code.max(code);
        self.write_beat += 1;
        if end {
            self.accepted.push_back((ax.id, self.write_code));
            self.writes.pop_front();
            self.write_beat = 0;
            self.write_code = resp::OKAY;
        }
    }

    /// The next write response: its ID and code.
    #[inline]
    pub fn response(&self) -> Option<(u16, u8)> {
        self.responses.front().copied()
    }

    /// The response has been taken.
    pub fn response_sent(&mut self) {
        self.responses.pop_front();
    }

    /// Writes a fill line, if [`PortQueues::can_accept_line`].
    pub fn write_fill_line(&mut self, now: Time, addr: u64) {
        self.timing.push(now, FILL_LINE, addr, true);
        self.wake = self.timing.next_event();
        self.fill_lines += 1;
    }

    /// Fill lines that the memory has not accepted.
    #[inline]
    pub fn fill_lines(&self) -> u32 {
        self.fill_lines
    }

    /// Nothing happens before [`PortQueues::next_event`] without further input.
    #[inline]
    pub fn quiet(&self) -> bool {
        self.arrived == 0 && self.unissued.is_empty() && self.responses.is_empty()
    }

    /// When data of an outstanding read, or the acceptance of a write, may arrive.
    pub fn next_event(&self) -> Option<Time> {
        // Housekeeping of the controller needs no clock of the design.
        self.wake
            .filter(|_| !self.order.is_empty() || !self.accepted.is_empty())
    }

    /// What is outstanding, for dumps.
    pub fn describe(&self) -> String {
        let mut text = format!(
            "{} reads, {} writes awaiting data, {} responses",
            self.order.len(),
            self.writes.len(),
            self.accepted.len() + self.responses.len()
        );
        if let Some(&slot) = self.order.front() {
            let read = &self.reads[slot as usize];
            text += &format!(
                "; oldest read: id {} addr {:#x} beats {} issued {} sent {}",
                read.ax.id,
                read.ax.addr,
                read.ax.beats(),
                read.issued,
                read.sent
            );
        }
        if let Some(ax) = self.writes.front() {
            text += &format!(
                "; oldest write: id {} addr {:#x} beats {} accepted {}",
                ax.id,
                ax.addr,
                ax.beats(),
                self.write_beat
            );
        }
        text
    }
}
