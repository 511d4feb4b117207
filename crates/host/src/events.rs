// SPDX-License-Identifier: Apache-2.0

//! What observers are notified of: actions of the CPUs, and traffic that has left the host.

use sim::{Bar, Time};

use crate::mapping::CacheLine;

/// What a fence waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fence {
    /// `sfence`: the root complex has accepted everything. With PCIe this says nothing about the
    /// device, which may still lose it.
    Posted,
    /// Each device that this CPU has written to has also answered a later load. On a Nearside
    /// device this proves persistence. If a device has lost stores meanwhile, because its media
    /// fail, the fence is an error. The same holds for [`Fence::Completion`].
    ReadBack,
    /// Each of these devices has also reported that it has accepted everything, as CXL.mem does for
    /// every write. What this guarantees at a power cut depends on the device. A Nearside device
    /// may still lose what it has accepted and not started to write.
    Completion,
}

/// An action of a CPU, or traffic that has left the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// A CPU has stored to the cache.
    Stored {
        /// The CPU.
        cpu: usize,
        /// The line.
        line: CacheLine,
        /// First byte within the line, and number of bytes.
        bytes: (usize, usize),
    },
    /// A CPU has requested the write-back of a line.
    Flushed {
        /// The CPU.
        cpu: usize,
        /// The line.
        line: CacheLine,
    },
    /// A CPU has executed a fence.
    Fenced {
        /// The CPU.
        cpu: usize,
        /// The condition of the fence.
        what: Fence,
    },
    /// A write was posted to a device: it may still be lost.
    Posted {
        /// The device.
        device: usize,
        /// The window.
        bar: Bar,
        /// The offset in the window.
        offset: u64,
        /// The bytes.
        data: Vec<u8>,
    },
    /// A load was sent to a device, after everything posted to it.
    Issued {
        /// The device.
        device: usize,
        /// Identifies the load.
        tag: u32,
    },
    /// The load was answered, so everything posted before it has arrived.
    Answered {
        /// Identifies the load.
        tag: u32,
    },
}

/// Receives each event with its time.
pub type Observer = Box<dyn FnMut(Time, HostEvent) + Send>;
