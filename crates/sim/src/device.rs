// SPDX-License-Identifier: Apache-2.0

//! The Device contract: what reaches a device, and what a device may do to its host.
//!
//! The layers above (links, drivers, experiments) work on any [`Device`]. An implementation of it
//! knows nothing of links, drivers or other devices. All of it runs in simulated time.

use crate::{OrderWatch, Time, Tracer};

/// A base address register of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bar {
    /// BAR0: NVMe registers, doorbells, MSI-X table.
    Nvme,
    /// BAR2: the byte-addressable persistent-memory window.
    Pm,
    /// BAR4: the control bus.
    Control,
}

/// A memory access that arrives at the device over its link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mmio {
    /// A posted write.
    Write {
        /// The window that was hit.
        bar: Bar,
        /// Byte offset in the window.
        offset: u64,
        /// The bytes: 1 to 4096, never across a 4 KiB boundary.
        data: Vec<u8>,
    },
    /// A read; the device answers through [`HostPort::mmio_data`] with the same tag.
    Read {
        /// The window that was hit.
        bar: Bar,
        /// Byte offset in the window.
        offset: u64,
        /// Bytes wanted: 1 to 4096, never across a 4 KiB boundary.
        len: u32,
        /// Identifies this read in the answer.
        tag: u32,
    },
}

/// Data that answers a device's read of host memory (or of a peer).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadData {
    /// The tag that the device gave to the read.
    pub tag: u32,
    /// The bytes, or `None` when the read failed (unsupported request, completer abort, time-out).
    pub data: Option<Vec<u8>>,
    /// True for the last part of this read. The parts of one read come in address order.
    pub last: bool,
}

/// The device's side of its link: the calls that a device makes while it advances.
///
/// The calls carry the device's time `now`, which never goes backwards. `false` means that the link
/// has no credit or tag now; the device tries again in a later cycle.
pub trait HostPort {
    /// Posted write of `data` at host address `addr` (1 to 4096 bytes, in one 4 KiB page). Accepted
    /// writes keep their order. Writes to the MSI address range are interrupts.
    fn write(&mut self, now: Time, addr: u64, data: &[u8]) -> bool;

    /// Reads `len` bytes (1 to 4096, in one 4 KiB page) at host address `addr`. Different tags are
    /// answered in any order; `tag` must not be in use.
    fn read(&mut self, now: Time, tag: u32, addr: u64, len: u32) -> bool;

    /// The next bytes of the answer to a [`Mmio::Read`], in address order; more follow. Interior
    /// part boundaries are multiples of the link's largest payload, so each part is one completion.
    fn mmio_part(&mut self, now: Time, tag: u32, data: Vec<u8>);

    /// The answer to a [`Mmio::Read`], or its remainder after [`HostPort::mmio_part`]; `None`
    /// reports a failed read.
    fn mmio_data(&mut self, now: Time, tag: u32, data: Option<Vec<u8>>);

    /// The next access that has arrived by `now`, in order. A device that does not take it exerts
    /// back-pressure.
    fn mmio(&mut self, now: Time) -> Option<Mmio>;

    /// The next part of read data that has arrived by `now`. A device that does not take it exerts
    /// back-pressure.
    fn read_data(&mut self, now: Time) -> Option<ReadData>;

    /// The arrival time of the next access, if known. A time not after `now` means at once.
    fn next_mmio(&self) -> Option<Time>;

    /// The arrival time of the next part of read data, if known.
    fn next_data(&self) -> Option<Time>;

    /// The time at which the link next has something for the device, if that is known and nothing
    /// more is sent. A time not after `now` means at once.
    fn next_arrival(&self) -> Option<Time> {
        match (self.next_mmio(), self.next_data()) {
            (Some(mmio), Some(data)) => Some(mmio.min(data)),
            (mmio, data) => mmio.or(data),
        }
    }

    /// After a write or read was refused: the time at which it may be accepted, as far as known.
    /// [`Time::MAX`] means that it depends on something that the other side has not received yet. A
    /// time not after `now` means at any later time.
    fn refused_until(&self) -> Time {
        Time::ZERO
    }

    /// True once the host needs control before the end of the current advance, because a watched
    /// write or an interrupt has arrived. The device then returns at its next clock edge.
    fn attention(&self) -> bool;
}

/// Collects the parts of answers, for a host that needs them whole.
#[derive(Clone, Debug, Default)]
pub struct SplitCompletions(Vec<(u32, Vec<u8>)>);

impl SplitCompletions {
    /// Adds a part; see [`HostPort::mmio_part`].
    pub fn add(&mut self, tag: u32, data: Vec<u8>) {
        match self.0.iter_mut().find(|part| part.0 == tag) {
            Some(part) => part.1.extend(data),
            None => self.0.push((tag, data)),
        }
    }

    /// The whole answer; `data` is the remainder that [`HostPort::mmio_data`] carries.
    pub fn end(&mut self, tag: u32, data: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let Some(at) = self.0.iter().position(|part| part.0 == tag) else {
            return data;
        };
        let mut whole = self.0.swap_remove(at).1;
        whole.extend(data?);
        Some(whole)
    }

    /// Drops answers that will not be completed.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// A named count or measurement of a device, for reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Dotted name, such as `cycles.evaluated`.
    pub name: String,
    /// The value.
    pub value: f64,
    /// The unit, such as `cycles`.
    pub unit: &'static str,
}

/// Why a device cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Busy for too long without progress at any port; the text is a dump of what is outstanding.
    #[error("the device hangs:\n{0}")]
    Hang(String),
    /// A hardware assertion failed; the text is its message.
    #[error("a hardware assertion failed: {0}")]
    Assertion(String),
    /// A file of the device cannot be written; the text names the file and the reason. The hardware
    /// is not at fault.
    #[error("{0}")]
    File(String),
}

/// A near-data-processing NVM device.
pub trait Device {
    /// The device's time: that of its last clock edge.
    fn now(&self) -> Time;

    /// Runs to the last clock edge at or before `until` and takes accesses from `host` as they
    /// arrive. Returns early when [`HostPort::attention`] is true. A device without power only lets
    /// time pass and discards what arrives: writes are lost, reads fail.
    fn advance(&mut self, until: Time, host: &mut dyn HostPort) -> Result<(), Fault>;

    /// True if the device cannot produce a host-visible effect without further input, so the
    /// scheduler may skip ahead. A timed change of a register, such as the fatal status after a
    /// Keep Alive Timeout, happens in [`Device::advance`] at its time.
    fn idle(&self) -> bool;

    /// The earliest time at which the device may send something or change host-visible state
    /// without further input; [`Time::MAX`] if there is none. An earlier time than necessary costs
    /// speed: devices of one system run at most one link latency past the earliest of these times.
    fn next_event(&self) -> Time {
        match self.idle() {
            true => Time::MAX,
            false => self.now(),
        }
    }

    /// Removes power now: the link is down, volatile state is lost, the media keep their content. A
    /// device with a hold-up time uses it to end writes to the media that have begun; the device's
    /// time advances meanwhile.
    fn power_off(&mut self);

    /// Restores power: the device comes up as after a cold reset.
    fn power_on(&mut self);

    /// Resets the function (function level reset, hot reset) now, while the memories keep running.
    /// Writes to the media that have begun end; all other state of the function is lost. The
    /// function comes up as after a cold reset, and the device's time advances meanwhile.
    ///
    /// The implementation of [`HostPort`] drops everything in flight: answers to earlier requests
    /// must not arrive any more.
    fn function_reset(&mut self) {
        self.power_off();
        self.power_on();
    }

    /// Sets the MSI-X state of PCI configuration space: enable, and function mask. A device starts
    /// enabled and unmasked. The state survives a loss of power, because it belongs to the host's
    /// configuration.
    fn set_msix(&mut self, enable: bool, mask: bool) {
        // Devices without interrupts ignore the setting.
        let _ = (enable, mask);
    }

    /// Reports the progress of commands to `tracer` from now on, or to none. False: the device
    /// cannot report it.
    fn set_tracer(&mut self, tracer: Option<Tracer>) -> bool {
        // Devices without commands have nothing to report.
        let _ = tracer;
        false
    }

    /// Reports the order in which the device serves its host to `watch` from now on, or to none.
    /// False: the device cannot report it.
    fn watch_order(&mut self, watch: Option<OrderWatch>) -> bool {
        // Devices without a conflict filter guarantee no order.
        let _ = watch;
        false
    }

    /// Completes the files that are being written and flushes them to the disk. Only this call
    /// reports their errors; dropping a device does not.
    fn finish(&mut self) -> Result<(), Fault> {
        // Devices without files have nothing to complete.
        Ok(())
    }

    /// Posted writes to memories and registers that the device accepted and could not perform, over
    /// all of its lives. A posted write has no answer that could report this. A reset does not
    /// clear the count.
    fn lost_writes(&self) -> u64 {
        // Most simple devices lose none.
        0
    }

    /// Counters of the device.
    fn counters(&self) -> Vec<Counter>;
}
