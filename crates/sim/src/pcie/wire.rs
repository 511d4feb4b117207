// SPDX-License-Identifier: Apache-2.0

//! One direction of the wire, and the time that TLPs occupy it.

use crate::config::LinkConfig;
use crate::Time;

/// Overhead of a memory request with a 64-bit address, bytes.
pub(super) const REQUEST_64: u64 = 24;
/// Overhead of a memory request with a 32-bit address and of a completion, bytes.
pub(super) const REQUEST_32: u64 = 20;
pub(super) const COMPLETION: u64 = 20;
pub(super) const DLLP: u64 = 8;

/// Traffic of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionStats {
    /// TLPs.
    pub tlps: u64,
    /// Payload bytes.
    pub payload: u64,
    /// Bytes on the wire: payload, overhead and DLLPs.
    pub wire: u64,
    /// DLLPs.
    pub dllps: u64,
}

/// One direction of the wire.
pub(super) struct Wire {
    /// When everything so far has been sent.
    pub(super) free: Time,
    /// Picoseconds per byte, 16 fractional bits.
    pub(super) ps_per_byte: u64,
    pub(super) carried: DirectionStats,
    /// TLPs of the other direction since the last ACK and UpdateFC.
    pub(super) unacknowledged: u32,
    pub(super) unupdated: u32,
}

impl Wire {
    pub(super) fn new(config: &LinkConfig) -> Wire {
        Wire {
            free: Time::ZERO,
            ps_per_byte: (1000.0 / config.bytes_per_ns() * 65_536.0).round() as u64,
            carried: DirectionStats::default(),
            unacknowledged: 0,
            unupdated: 0,
        }
    }

    #[inline]
    pub(super) fn time(&self, bytes: u64) -> Time {
        Time((bytes * self.ps_per_byte) >> 16)
    }

    /// Sends a TLP, no earlier than `ready`; returns when its last bit leaves.
    #[inline]
    pub(super) fn send(&mut self, ready: Time, payload: u64, overhead: u64) -> Time {
        self.free = self.free.max(ready) + self.time(payload + overhead);
        self.carried.tlps += 1;
        self.carried.payload += payload;
        self.carried.wire += payload + overhead;
        self.free
    }

    /// Accounts for the DLLPs that answer a TLP of the other direction, received at `at`.
    #[inline]
    pub(super) fn acknowledge(&mut self, at: Time, config: &LinkConfig) {
        self.unacknowledged += 1;
        self.unupdated += 1;
        let mut dllps = 0;
        if self.unacknowledged >= config.ack_every_tlps {
            self.unacknowledged = 0;
            dllps += 1;
        }
        if self.unupdated >= config.update_fc_every_tlps {
            self.unupdated = 0;
            dllps += 1;
        }
        if dllps > 0 {
            self.free = self.free.max(at) + self.time(DLLP * dllps);
            self.carried.dllps += dllps;
            self.carried.wire += DLLP * dllps;
        }
    }
}

/// Payload of `len` bytes at `addr`: whole double words.
pub(super) fn dwords(addr: u64, len: usize) -> u64 {
    ((addr & 3) + len as u64 + 3) & !3
}

pub(super) fn request_overhead(addr: u64) -> u64 {
    if addr >> 32 == 0 {
        REQUEST_32
    } else {
        REQUEST_64
    }
}
