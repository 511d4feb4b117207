// SPDX-License-Identifier: Apache-2.0

//! The bitmap lines of one channel's values (scan_bitmap).

use std::collections::VecDeque;

/// Bytes of a line.
const LINE: usize = 64;

/// A part of a line that is written.
#[derive(Clone, Copy)]
pub(super) struct BitmapLine {
    /// Media address of its first byte.
    pub(super) at: u64,
    pub(super) len: usize,
    pub(super) data: [u8; LINE],
}

const EMPTY: BitmapLine = BitmapLine {
    at: 0,
    len: 0,
    data: [0; LINE],
};

/// Collects bits into lines.
pub(super) struct Bitmap {
    /// Address of the next byte.
    pos: u64,
    gathered: BitmapLine,
    lines: VecDeque<BitmapLine>,
}

impl Bitmap {
    pub(super) fn new() -> Bitmap {
        Bitmap {
            pos: 0,
            gathered: EMPTY,
            lines: VecDeque::with_capacity(LINE),
        }
    }

    /// Starts with the media address of the first bits.
    pub(super) fn start(&mut self, pos: u64) {
        self.pos = pos;
        self.gathered = EMPTY;
    }

    /// Appends consecutive bytes. `jump`: distance from them to the next ones. `whole`: the next
    /// ones are in another line.
    pub(super) fn push(&mut self, bytes: &[u8], jump: u64, whole: bool) {
        for &byte in bytes {
            let line = &mut self.gathered;
            if line.len == 0 {
                line.at = self.pos;
            }
            line.data[line.len] = byte;
            line.len += 1;
            self.pos = self.pos.wrapping_add(1);
            if self.pos % LINE as u64 == 0 {
                self.flush();
            }
        }
        if whole {
            self.flush();
        }
        self.pos = self.pos.wrapping_add(jump);
    }

    fn flush(&mut self) {
        if self.gathered.len > 0 {
            self.lines.push_back(self.gathered);
            self.gathered.len = 0;
        }
    }

    /// Number of waiting lines.
    pub(super) fn waiting(&self) -> usize {
        self.lines.len()
    }

    /// Takes the oldest line.
    pub(super) fn take_line(&mut self) -> Option<BitmapLine> {
        self.lines.pop_front()
    }
}
