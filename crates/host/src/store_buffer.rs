// SPDX-License-Identifier: Apache-2.0

//! The uncached stores in a CPU's store buffer.
//!
//! A CPU continues after such a store; the store leaves later, in program order. Source: SDM volume
//! 3A, "Store Buffer": the buffer is drained by `sfence`, among others. The next store leaves when
//! the fabric has accepted the one before it, which takes [`crate::HostParameters::mmio_store`].
//!
//! A cached store of the same CPU becomes visible after the uncached stores before it. This model
//! changes the cache at once. So no line is written back while a store buffer holds anything.
//! Loads that bypass the cache, `clwb`, and write-combining buffers wait, too.

use std::collections::VecDeque;

use sim::{Bar, Time};

/// A store that has not left its CPU.
#[derive(Clone, Debug)]
pub(crate) struct BufferedStore {
    pub device: usize,
    pub bar: Bar,
    pub offset: u64,
    pub data: Vec<u8>,
}

/// The uncached stores of a CPU.
#[derive(Default)]
pub(crate) struct StoreBuffer {
    /// Oldest first.
    pub held: VecDeque<BufferedStore>,
    /// When the next store may leave.
    pub next: Time,
    /// Stores that have left, since the start.
    pub left: u64,
}

impl StoreBuffer {
    /// Stores since the start; some may not have left.
    pub fn executed(&self) -> u64 {
        self.left + self.held.len() as u64
    }

    /// Removes all stores at a power cut.
    pub fn clear(&mut self) {
        self.held.clear();
        self.next = Time::ZERO;
    }
}
