//! The Device contract: what reaches a device, and what a device may do to its host.
//!
//! Everything above it (links, drivers, experiments) works on any [`Device`]; an engine below it
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
        /// Names this read in the answer.
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
    /// True for the last piece of this read. Pieces of one read come in address order.
    pub last: bool,
}

/// The device's side of its link: what an engine calls while it advances.
///
/// The calls carry the device's own time `now`, which never goes backwards. The link takes what it
/// can: `false` means no credit or tag now, try again on a later cycle.
pub trait HostPort {
    /// Posted write of `data` at host address `addr` (1 to 4096 bytes, in one 4 KiB page). Once
    /// accepted it is ordered behind all accepted before. Writes to the MSI address range are
    /// interrupts.
    fn write(&mut self, now: Time, addr: u64, data: &[u8]) -> bool;

    /// Read `len` bytes (1 to 4096, in one 4 KiB page) at host address `addr`. Reads are answered
    /// in any order between tags; `tag` must not be in use.
    fn read(&mut self, now: Time, tag: u32, addr: u64, len: u32) -> bool;

    /// The next bytes of the answer to a [`Mmio::Read`], in address order; more will follow. All
    /// but the first and the last part of an answer begin and end at a multiple of the link's
    /// largest payload, so that each is a completion of its own.
    fn mmio_part(&mut self, now: Time, tag: u32, data: Vec<u8>);

    /// The answer to a [`Mmio::Read`], or what is left of it after [`HostPort::mmio_part`]; `None`
    /// reports a failed read.
    fn mmio_data(&mut self, now: Time, tag: u32, data: Option<Vec<u8>>);

    /// The next access that has arrived by `now`, in order. Not taking it is back-pressure.
    fn mmio(&mut self, now: Time) -> Option<Mmio>;

    /// The next piece of read data that has arrived by `now`. Not taking it is back-pressure.
    fn read_data(&mut self, now: Time) -> Option<ReadData>;

    /// When the next access arrives, if that is known already: a time not after `now` means at
    /// once.
    fn next_mmio(&self) -> Option<Time>;

    /// When the next piece of read data arrives, likewise.
    fn next_data(&self) -> Option<Time>;

    /// When the link will next have something for the device, if that is known already and nothing
    /// further is sent: a time not after `now` means at once.
    fn next_arrival(&self) -> Option<Time> {
        match (self.next_mmio(), self.next_data()) {
            (Some(mmio), Some(data)) => Some(mmio.min(data)),
            (mmio, data) => mmio.or(data),
        }
    }

    /// After a write or read was refused: when the same may be taken, as far as that is known;
    /// [`Time::MAX`] while it depends on what has not reached the other side yet. A time not after
    /// `now` means at any later time.
    fn refused_until(&self) -> Time {
        Time::ZERO
    }

    /// True once the host wants control back before the end of the current advance (it saw a write
    /// or an interrupt that it waits for). The engine then returns at its next clock edge.
    fn attention(&self) -> bool;
}

/// Answers whose parts have come so far, for a host that wants them whole.
#[derive(Clone, Debug, Default)]
pub struct SplitCompletions(Vec<(u32, Vec<u8>)>);

impl SplitCompletions {
    /// See [`HostPort::mmio_part`].
    pub fn add(&mut self, tag: u32, data: Vec<u8>) {
        match self.0.iter_mut().find(|part| part.0 == tag) {
            Some(part) => part.1.extend(data),
            None => self.0.push((tag, data)),
        }
    }

    /// The whole answer, of which [`HostPort::mmio_data`] brings the rest.
    pub fn end(&mut self, tag: u32, data: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let Some(at) = self.0.iter().position(|part| part.0 == tag) else {
            return data;
        };
        let mut whole = self.0.swap_remove(at).1;
        whole.extend(data?);
        Some(whole)
    }

    /// What has begun will not end any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// A named count or measurement of an engine, for reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Dotted name, such as `cycles.evaluated`.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit, such as `cycles`.
    pub unit: &'static str,
}

/// Why a device can't go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Busy for too long without any progress at its ports; the text is a dump of what it waits
    /// for.
    Hang(String),
    /// An assertion in the hardware failed; the text is its message.
    Assertion(String),
    /// A file of the device's can't be written; the text names it and says why. The hardware is
    /// well.
    File(String),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Hang(dump) => write!(f, "the device hangs:\n{dump}"),
            Fault::Assertion(message) => write!(f, "a hardware assertion failed: {message}"),
            Fault::File(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Fault {}

/// A near-data-processing NVM device.
pub trait Device {
    /// The device's time: that of its last clock edge.
    fn now(&self) -> Time;

    /// Runs to the last clock edge at or before `until`, taking accesses from `host` as they
    /// arrive. ReadBeatSlots early when [`HostPort::attention`] says so. A device without power
    /// only lets time pass and discards what arrives (writes are lost, reads fail).
    fn advance(&mut self, until: Time, host: &mut dyn HostPort) -> Result<(), Fault>;

    /// True when nothing that the host could see coming will come from the device until something
    /// arrives: time may be skipped. What the device does by itself when a time is over (a Keep
    /// Alive Timeout makes a register tell of a fatal error), it does in [`Device::advance`], at
    /// that time.
    fn idle(&self) -> bool;

    /// The time before which nothing leaves the device, and nothing changes that the host can see,
    /// unless something arrives: [`Time::MAX`] when there is none. The earlier the worse: devices
    /// that share a system run one link latency beyond the earliest of these times, and no further.
    fn next_event(&self) -> Time {
        match self.idle() {
            true => Time::MAX,
            false => self.now(),
        }
    }

    /// Takes power away at the present time: the link is dead, everything volatile is lost; what
    /// the media holds stays. A device with a hold-up time uses it to end what it has begun on the
    /// media, and its time goes on for as long.
    fn power_off(&mut self);

    /// Gives power back: the device comes up as after a cold reset.
    fn power_on(&mut self);

    /// Resets the function (function level reset, hot reset) at the present time, while its
    /// memories go on: writes to the media that have begun end, all else of the function is lost,
    /// and it comes up as after a cold reset. The device's time goes on for as long as that takes.
    /// Whoever is behind the [`HostPort`] forgets what is under way: answers to what the device
    /// asked for before must not come any more.
    fn function_reset(&mut self) {
        self.power_off();
        self.power_on();
    }

    /// What PCI configuration space says of MSI-X: whether it is enabled, and whether all of the
    /// function's vectors are masked. A device starts enabled and unmasked, and keeps what was set
    /// through a loss of power: the setting isn't its own.
    fn set_msix(&mut self, enable: bool, mask: bool) {
        // Devices without interrupts have nothing to set.
        let _ = (enable, mask);
    }

    /// From now on tells what happens to commands, or tells nobody. ReadBeatSlots false when the
    /// device can't; then there is nothing to be told.
    fn set_tracer(&mut self, tracer: Option<Tracer>) -> bool {
        // Devices without commands have nothing to tell.
        let _ = tracer;
        false
    }

    /// From now on tells in what order it does what its host asks of it, or tells nobody.
    /// ReadBeatSlots false when the device can't; then there is nothing to be told.
    fn watch_order(&mut self, watch: Option<OrderWatch>) -> bool {
        // Devices without an access hook keep no order that anybody asks for.
        let _ = watch;
        false
    }

    /// Ends what is being written to files, and brings it to the disk. Who takes a device apart
    /// without this hears of no error.
    fn finish(&mut self) -> Result<(), Fault> {
        // Devices without files have nothing to end.
        Ok(())
    }

    /// Posted writes to its memories and registers that it has taken and could not carry out, in
    /// all its lives: they have no answer that could say so. A device that is reset goes on
    /// counting.
    fn lost_writes(&self) -> u64 {
        // Most simple devices lose none.
        0
    }

    /// Counters of the engine.
    fn counters(&self) -> Vec<Counter>;
}
