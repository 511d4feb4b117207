// SPDX-License-Identifier: Apache-2.0

//! Flow control credits.

use std::collections::VecDeque;

use crate::Time;

/// Flow control credits of one kind, seen by the sender.
pub(super) struct Credits {
    pub(super) headers: u32,
    /// Bytes.
    pub(super) data: u32,
    /// Freed at the receiver, in order: the time at which the sender is notified, headers, bytes.
    pub(super) returning: VecDeque<(Time, u32, u32)>,
}

impl Credits {
    pub(super) fn new(headers: u32, data: u32) -> Credits {
        Credits {
            headers,
            data,
            returning: VecDeque::new(),
        }
    }

    pub(super) fn refresh(&mut self, now: Time) {
        while let Some(&(at, headers, data)) = self.returning.front() {
            if at > now {
                break;
            }
            self.headers += headers;
            self.data += data;
            self.returning.pop_front();
        }
    }

    /// Consumes credits if they are available at `now`.
    #[inline]
    pub(super) fn consume(&mut self, now: Time, headers: u32, data: u32) -> bool {
        if self.headers < headers || self.data < data {
            self.refresh(now);
            if self.headers < headers || self.data < data {
                return false;
            }
        }
        self.headers -= headers;
        self.data -= data;
        true
    }

    /// When these credits will be available, if known.
    pub(super) fn available(&self, headers: u32, data: u32) -> Option<Time> {
        let (mut h, mut d) = (self.headers, self.data);
        if h >= headers && d >= data {
            return Some(Time::ZERO);
        }
        for &(at, more_h, more_d) in &self.returning {
            h += more_h;
            d += more_d;
            if h >= headers && d >= data {
                return Some(at);
            }
        }
        None
    }

    pub(super) fn return_credits(&mut self, at: Time, headers: u32, data: u32) {
        self.returning.push_back((at, headers, data));
    }
}

/// Data credits are units of 16 bytes.
pub(super) fn credit_bytes(len: usize) -> u32 {
    (len as u32).div_ceil(16) * 16
}
