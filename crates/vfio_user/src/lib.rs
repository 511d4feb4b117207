// SPDX-License-Identifier: Apache-2.0

//! Serves devices to virtual machines and user-space drivers, as vfio-user servers.
//!
//! A client (QEMU 10.1 or newer, SPDK) connects to a Unix socket. It finds a PCI function there,
//! and shares its memory with it. The device runs in the process of the server; any [`sim::Device`]
//! can be served.
//!
//! **Time is wall-clock** with [`Server::start`]. While the guest waits, the device is simulated as
//! fast as the machine can. The latency and bandwidth that the guest sees are those of the
//! simulation, never those of the device. The link is not modelled: a read of host memory is
//! answered at once.
//!
//! **Time is simulated** with [`Server::start_in_simulated_time`]. An emulator whose clock is the
//! devices' says how far they may run, through a separate channel. The link is modelled. See
//! [Simulated time](#simulated-time).
//!
//! **Time is paced** with [`Server::start_paced`]. It is the wall clock, slower by a factor. No
//! client sees what a device does before its modelled time. See [Paced devices](#paced-devices).
//!
//! # Modules, in reading order
//!
//! | module | content |
//! |---|---|
//! | `wire` | framing of messages, file descriptors |
//! | `served`, `server`, `stop` | devices to serve; sockets, admission of clients, shutdown |
//! | `connection` | messages of a client: regions, interrupts, maps, register accesses, reset |
//! | `port` | what a connection does with its device |
//! | `config` | PCI configuration space: class, BARs, power management, FLR, MSI-X |
//! | `memory` | the client's memory, mapped from its file descriptors |
//! | `peer` | the client's process: whether it shares that memory |
//! | `doorbells` | the doorbell page of BAR0, shared with the client |
//! | `irq`, `signal` | MSI-X vectors to eventfds, without waiting for one |
//! | `worker` | wall-clock time: the thread in which the device runs, and its [`sim::HostPort`] |
//! | `attached` | devices at one [`sim::System`], for the other two modes |
//! | `timed` | simulated time: they run as far as an emulator says |
//! | `channel`, `time_page` | the emulator's side of it |
//! | `paced`, `inbox` | paced devices: their thread, and the requests to it |
//! | `clock`, `meter` | the wall clock and the dilation; how late something was seen |
//! | `setup` | register writes after a reset |
//! | `shared`, `log`, `stats` | state of a device, log lines, counters |
//!
//! The crate does not use the server of the published crate `vfio_user`. That one panics on
//! malformed lengths and texts, serves one connection, and can't be stopped. The tests attach with
//! its client, as an independent implementation.
//!
//! # Threads
//!
//! Each device has three threads.
//!
//! - The **acceptor** admits clients. A device has one client at a time. The first message of
//!   another one is answered with `EBUSY` at once, however many clients are being rejected. A
//!   client that sends nothing is disconnected after 200 ms.
//! - The **connection** answers messages. It owns configuration space, and passes register
//!   accesses, interrupt set-up and resets to the worker, in order. A client that has the device
//!   but agrees on no protocol version within 10 s loses it.
//! - The **worker** advances the device in slices of 1 us of simulated time, and polls the doorbell
//!   page between them. A request or an answer ends a slice at the next clock edge. So a register
//!   read takes as long as the device takes for it, some tens of clock cycles.
//!
//! An idle device is not simulated. The worker spins for 50 us and then polls the doorbells every
//! 100 us, after 2 s every 1 ms. Simulated time then follows the wall clock, and so does a Keep
//! Alive Timeout.
//!
//! A busy device is not paced. Its simulated time advances as fast as the machine computes it, as a
//! rule far slower than the wall clock. For example, a Format of 960 MiB is 31 ms in about 4 s. The
//! difference stays. A Keep Alive Timeout counts simulated time, so it expires late for the guest
//! of a busy device.
//!
//! # Simulated time
//!
//! The emulator connects to a socket before its devices. Over it, it says how far it has come, or
//! that its CPU is idle. The devices run to that time, or to their first interrupt, and no further.
//! The answer has the time before which no device can do anything that the emulator sees. Until
//! then it may run alone. An access to a device carries the emulator's time in a shared page, and
//! the page has its duration when it is answered. Interrupts are signalled only while the emulator
//! waits for time.
//!
//! Devices run ahead of the emulator by the time in which nothing can reach them from the host.
//! That is the least latency of a link, and the way from CPU to root complex. So the emulator can
//! run alone for twice the latency of the link even while a device is busy.
//!
//! Doorbells and the PM window are not mapped, as each access has to arrive at its time. All
//! devices of a server share one time. Devices do not reach each other. A device whose assertion
//! fails stops all of them, until one is reset.
//!
//! # Paced devices
//!
//! One thread, the **pacer**, has the role of the emulator for all devices of a server. It lets
//! their time pass as far as the wall clock has come, divided by the dilation. Then it waits until
//! the next effect, by sleeping and, for the last 50 us, by spinning. So an effect is computed at
//! most by the latency of a link before its time, and reaches the client's memory at its time or
//! later. Nothing is held anywhere else: a reset, an unmap, or the end of a connection loses what
//! has not arrived, as on a bus.
//!
//! A request begins at the time at which its connection received it, even if the simulation is
//! late. Then it catches up. Devices that are busy without end and too slow do not reach the
//! present. After 200 ms their clock is set back, so that a read of a register is answered. Reads
//! and full queues of a link keep only their device's client waiting, not the other devices.
//!
//! The error of each completion queue entry (a write of at most 64 bytes), interrupt and answer is
//! recorded: [`Server::pacing`]. Doorbells and the PM window are not mapped, as in simulated time.
//!
//! # Doorbells
//!
//! BAR0 0x1000 to 0x2000 can be mapped (sparse mmap), so a doorbell is a store without a message.
//! Each word that was read is replaced by all ones, so the same value is detected twice if it is
//! written twice. The price: a doorbell write of FFFFFFFFh, which NVMe calls invalid, is not seen.
//! Each client gets a new page, sealed against shrinking.
//!
//! # PM window
//!
//! With media in memory and the profile `dram` (no timing), BAR2 can be mapped. Loads and stores of
//! the client then reach the media directly, at memory speed, and NVMe blocks show them. They
//! bypass the counters of `nvm_delay` and the conflict filter of an engine. So a client that maps
//! the window has to wait for the end of a command before it stores what the command reads. The
//! file is a memfd, sealed against shrinking.
//!
//! In all other cases each access is a message and takes the device's path. A timing requires this.
//! A media file is not passed to clients, as a client could truncate it.
//!
//! # Memory
//!
//! Each access looks its address up under a lock. An unmap, and the end of bus mastering, wait for
//! that lock: once they are answered, nothing accesses that memory.
//!
//! An access is an unsupported request if its address is not mapped, if the map does not allow it,
//! or without bus mastering. A read then fails, and so does its command. A posted write is lost
//! without notice to the device, as on a bus, so a Read command into missing memory succeeds. Both
//! are counted (`refused_accesses`). The first one of a client is logged with its address and the
//! reason, and their number at the client's end.
//!
//! A refused DMA_MAP is logged with its reason and counted (`refused_maps`). An unmap of a range
//! without maps succeeds, as in VFIO: clients unmap address space without knowing what was mapped.
//!
//! Memory that the client does not share is logged once. It is detected in two ways. It comes
//! without a descriptor, before any that comes with one. Or the client's mappings
//! (`/proc/PID/maps`, module `peer`) show its file only as private mappings.
//!
//! A client that truncates its file makes the copy raise SIGBUS. A handler replaces that one
//! mapping with zero pages, and the map fails from then on. Other handlers of SIGBUS in the
//! process, such as Python's `faulthandler`, may come and go, and get all other signals. A process
//! that blocks the signal ends.
//!
//! Copies proceed in ascending steps of at most 8 bytes. So a completion's phase bit never arrives
//! before the rest of the entry.
//!
//! # Interrupts
//!
//! Vectors are the eventfds that the client attaches. The device's MSI-X table sends the message of
//! each vector to the server, which signals the eventfd. A vector without an eventfd is masked in
//! the device, so an early interrupt stays pending. MSI-X is enabled once configuration space says
//! so or an eventfd is attached. The function mask drives the device's input. Mask bits of the
//! client's table, and mask actions, mask the vector in the device.
//!
//! # Reset
//!
//! FLR, `DEVICE_RESET` and the end of a connection reset the function. Media writes in flight
//! complete. The device comes up as after power-on, gets its media profile again, and keeps the
//! content of the media.
//!
//! # Hostile clients
//!
//! Messages are read by the length in their header. A length that is out of bounds ends the
//! connection; any other invalid field is answered with an error number. Offsets, sizes, counts,
//! indices and descriptors are checked. Only whole 4 KiB pages of regular files (memfd, hugetlbfs)
//! are mapped, at most 16 TiB of them. Only eventfds are signalled, through the kernel's AIO, which
//! adds to a full counter without waiting. Requests in flight are bounded, so a client that floods
//! its device waits. More than 16 descriptors in one message end the connection. Doorbells that a
//! device has no time for stay in the page, where the last value counts. `tests/hostile.rs` covers
//! all of this.
//!
//! `tests/messages.rs` generates sessions of valid and broken messages: all commands, extreme
//! fields, overlapping maps, descriptors of all kinds, bursts, clients that leave midway, files
//! that shrink. A model of the protocol predicts each answer, and what the device reaches. Every
//! answer, and every byte of the client's files and of the windows, is compared. No thread may
//! panic, no descriptor may stay open, and each connection that was ended needs a reason in the
//! log.
//!
//! `make sanitize` runs these tests and the unit tests under AddressSanitizer with leak detection
//! (rustup's cargo), without a finding. It covers the crate's `unsafe` code: copies from and to the
//! client's mappings (`memory`), words of the shared page (`doorbells`) and Linux AIO (`signal`).
//! It also covers mappings of media and the SIGBUS handler in `sim`, and calls of compiled designs
//! in `rtl`. Waveforms are left out, as Verilator's writer leaks. Miri does not support mappings of
//! files.
//!
//! # Sockets
//!
//! A socket that no process has open is replaced. Any other file at the path stays, sockets of live
//! programs included, and the start fails. The probe does not connect to the live program. The
//! socket's directory is locked (`flock`) meanwhile, so of two servers that start at once one gets
//! the socket and the other one fails. A directory may not be lockable: it is not readable, its
//! file system has no locks, or another program keeps it locked. In that case a dead socket is not
//! replaced, but named in the error, and has to be removed by hand. The end removes only the socket
//! that the start created.
//!
//! # What it leaves out
//!
//! Memory decoding (bit 1 of the command register) does not gate the windows, as with VFIO clients.
//! There is no INTx, no MSI, no migration, and no tracking of dirty pages. Flush commands make data
//! safe against the end of the server, not of the machine: the media file is written back when the
//! server ends. A server that is killed is a power cut (see `docs/architecture.md`).
#![warn(missing_docs)]

mod attached;
mod channel;
mod clock;
mod config;
mod connection;
mod doorbells;
mod inbox;
mod irq;
mod log;
mod memory;
mod meter;
mod paced;
mod peer;
mod port;
mod served;
mod server;
mod setup;
mod shared;
mod signal;
mod stats;
mod stop;
mod time_page;
mod timed;
mod wire;
mod worker;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

pub use clock::{Clock, Dilation, MonotonicClock};
pub use log::Log;
pub use meter::{Lateness, PacingReport};
pub use served::ServedDevice;
pub use server::Server;

/// Bytes of BAR0.
pub const BAR0_BYTES: u64 = 64 << 10;
/// Bytes of BAR4.
pub const BAR4_BYTES: u64 = 1 << 20;

/// The appearance of a device on the bus.
#[derive(Clone, Debug)]
pub struct Function {
    /// Bytes of BAR2, the PM window: a power of two.
    pub pm_bytes: u64,
    /// The device's media, which clients map as BAR2. Their loads and stores then bypass the device
    /// and its timing. `None`: each access is a message that the device answers. The file has at
    /// least `pm_bytes` bytes and is sealed against shrinking, as clients get this very file.
    pub pm_file: Option<Arc<OwnedFd>>,
    /// MSI-X vectors.
    pub vectors: u16,
    /// The link that configuration space describes. Its timing counts in simulated time only.
    pub link: sim::LinkConfig,
}

impl Function {
    fn check(&self) -> Result<(), Error> {
        if !self.pm_bytes.is_power_of_two() || self.pm_bytes < 4096 {
            return Err(Error::Function(format!(
                "a PM window of {} bytes: a power of two from 4096 on is needed",
                self.pm_bytes
            )));
        }
        if !(1..=256).contains(&self.vectors) {
            return Err(Error::Function(format!(
                "{} interrupt vectors: 1 to 256 are allowed",
                self.vectors
            )));
        }
        Ok(())
    }
}

/// A write of a 32-bit register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterWrite {
    /// The window.
    pub bar: sim::Bar,
    /// Byte offset in it.
    pub offset: u64,
    /// The value.
    pub value: u32,
}

/// Why devices can't be served, as one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path is the socket of a live program, or no socket.
    #[error(
        "{} exists, and is not the socket of an ended server: end the program that has it, or \
         choose another path",
        sim::escape_controls(.0.display())
    )]
    InUse(PathBuf),
    /// The operating system refuses something that a server needs.
    #[error("can't have {}: {}", sim::escape_controls(.0), .1)]
    Start(String, #[source] std::io::Error),
    /// An invalid [`Function`].
    #[error("{0}")]
    Function(String),
    /// A dilation that is not allowed.
    #[error("a dilation of {0}: allowed are 0.01 to 100000")]
    Dilation(f64),
    /// The simulated system of devices in simulated or paced time.
    #[error(transparent)]
    System(sim::Error),
}
