// SPDX-License-Identifier: Apache-2.0

//! The simulated environment of a device: time, host memory, PCIe links, DDR4 timing and media.
//!
//! A [`Device`] is attached to a [`System`] by a [`Link`]. The system schedules all devices in one
//! simulated time of integer picoseconds ([`Time`]). Results depend on the configuration and the
//! seeds only: not on the wall clock, the order of devices or hash order.
//!
//! ```
//! use sim::{Bar, Counter, Device, Fault, HostConfig, HostPort, LinkConfig, Mmio, System, Time};
//!
//! /// A device whose registers read as their offset.
//! struct Offsets(Time);
//!
//! impl Device for Offsets {
//!     fn now(&self) -> Time {
//!         self.0
//!     }
//!     fn advance(&mut self, until: Time, host: &mut dyn HostPort) -> Result<(), Fault> {
//!         while let Some(access) = host.mmio(until) {
//!             if let Mmio::Read { offset, len, tag, .. } = access {
//!                 let data = offset.to_le_bytes()[..len as usize].to_vec();
//!                 host.mmio_data(until, tag, Some(data));
//!             }
//!         }
//!         self.0 = until;
//!         Ok(())
//!     }
//!     fn idle(&self) -> bool {
//!         true
//!     }
//!     fn power_off(&mut self) {}
//!     fn power_on(&mut self) {}
//!     fn counters(&self) -> Vec<Counter> {
//!         Vec::new()
//!     }
//! }
//!
//! # fn main() -> Result<(), sim::Error> {
//! let mut system = System::new(&HostConfig::default())?;
//! let windows = [(Bar::Nvme, 64 << 10)];
//! let device = Box::new(Offsets(Time::ZERO));
//! let device = system.add_device(device, &LinkConfig::default(), &windows)?;
//! assert_eq!(system.mmio_read(device, Bar::Nvme, 0x1000, 4)?, [0x00, 0x10, 0, 0]);
//! // Two crossings of the link, two of the root complex, and the bytes on the wire.
//! assert!(system.now() > Time::ns(600) && system.now() < Time::ns(1000));
//! # Ok(())
//! # }
//! ```
//!
//! # Modules, in reading order
//!
//! - [`Time`], [`Clock`] and [`Random`]: picoseconds, exact clock edges, a seeded generator.
//! - [`Device`] and [`HostPort`]: the contract between a device and its environment.
//! - [`HostMemory`]: buffers, watches and interrupts.
//! - [`Link`]: wire, credits and TLPs of one PCIe link.
//! - [`System`]: the scheduler, the root complex and the CPU's accesses.
//! - [`axi`]: AXI4 transactions as plain data.
//! - [`dram`]: DDR4 timing, clock by clock ([`dram::Channel`]) or burst by burst
//!   ([`dram::BurstChannel`]).
//! - [`memctrl`]: the port queues of a memory controller, timing models, address maps.
//! - [`Media`]: the content of a device, in memory or in a file; a journal keeps a file consistent
//!   if the process is killed.
//! - [`guard`]: copies from and to mapped files whose pages may be missing (SIGBUS).
//! - [`fork`]: copies of the process, for crash campaigns.
//! - [`Tracer`] and [`OrderWatch`]: events of commands, and of the order of accesses.
//! - [`config`]: the parameters of host and link, each with `validate()`.
//!
//! # How time passes
//!
//! Nothing crosses a link faster than its latency L: device PHY, propagation and root PHY, 260 ns
//! by default. [`System`] therefore lets devices run at most L past what the root complex has
//! handled, and then handles what they sent, in order of time. The host is woken at the exact
//! picosecond at which a watched write or an interrupt arrives. Whatever it does then reaches no
//! device before that device's present time. When all devices are idle, time jumps to the next
//! event, or to the limit of the wait.
//!
//! # The link
//!
//! A TLP occupies its direction for `(payload + overhead) / rate`. The overhead is 24 bytes for
//! memory requests (20 with a 32-bit address) and 20 bytes for completions. The rate is GT/s times
//! lanes, less line encoding and SKP ordered sets. One ACK and one UpdateFC DLLP for every four
//! TLPs (by default) take 8 bytes each of the opposite direction.
//!
//! [`System::load`] starts a load, [`System::wait_load`] takes the next one that has ended, and
//! [`HostConfig::cpu_loads`] bounds the loads in flight; [`System::mmio_read`] runs one after the
//! other. The crate `host` builds CPUs on [`System::wait_event`], [`System::mark`] and
//! [`System::completed`].
//! A device may answer in parts ([`HostPort::mmio_part`]), each a completion that takes the wire at
//! once; parts of several reads may interleave. A read of a peer is passed on as a whole. The
//! device's credits are those that a Gen3 endpoint block states; the host's have no source.
//!
//! Writes of a device are refused while more than `device_tx_buffer_bytes` wait for the wire, or
//! the host's posted credits are used up. Reads are refused while `device_tx_requests` wait, or
//! tags, non-posted credits or completion buffer are short. A TLP that a device does not accept
//! holds its credits. A write to a peer holds the sender's credits until the peer's queue has
//! space.
//!
//! At a power cut, TLPs on the wire arrive and those that wait for it are lost. Reads of the device
//! are dropped, and unanswered reads of it fail.
//!
//! # DDR4
//!
//! One command a clock; constraints tRCD, tRP, tRAS, tRC, tRRD_S/L, tFAW, tCCD_S/L, tWR, tWTR_S/L,
//! tRTP, bus turnarounds, all-bank refresh (tREFI, tRFC; fine-granularity modes). A test checks
//! every pair of commands against them, independently of the controller's state. Writes complete
//! when the controller has them. They go to the DRAM when no reads wait, or from `drain_high`
//! buffered ones down to `drain_low`.
//!
//! [`dram::BurstChannel`] is compared with [`dram::Channel`] downstream of the same port queues,
//! with bursts of 64 bytes to 4 KiB and 1 to 64 in flight (`tests/bursts.rs`). With one direction,
//! bandwidth and mean latency differ by 0 to 4 %, 0.4 % on average. With both directions they
//! differ by up to 8 and 16 %, 1.6 and 2.6 % on average, because `Channel` delays reads that
//! `BurstChannel` has already answered. The difference is larger where a DRAM saturated in both
//! directions delays writes, or where nearly all accesses are to different rows of one bank. A
//! random line costs 25 to 60 ns of CPU time, a line of a long burst 15 to 45.
//!
//! # Not modelled
//!
//! Link: bit errors and replay, L0s/L1 entry, virtual channels, relaxed ordering. Host: bandwidth
//! of its memory, caches (a read takes `read_ns`, plus up to `read_jitter_ns`). DDR4: several
//! ranks, power-down, ZQ calibration, postponed refreshes, per-bank refresh.

#![warn(missing_docs)]

pub mod axi;
mod clock;
pub mod config;
mod device;
pub mod dram;
pub mod fork;
pub mod guard;
mod journal;
mod media;
pub mod memctrl;
mod memory;
mod order;
mod output;
mod pcie;
mod prefetch;
mod random;
mod system;
mod time;
mod trace;

pub use clock::Clock;
pub use config::{escape_controls, parse_digits, HostConfig, InvalidValue, LinkConfig};
pub use device::{Bar, Counter, Device, Fault, HostPort, Mmio, ReadData, SplitCompletions};
pub use dram::DramConfig;
pub use media::{FailingRange, Media, MediaError};
pub use memory::{ExternalMemory, HostMemory, Interrupt, Unmapped, Watch, MSI_BASE, MSI_LAST};
pub use order::{LineRange, OrderEvent, OrderSink, OrderWatch, OrderedCommand};
pub use output::Output;
pub use pcie::{DirectionStats, Link, LinkStats};
pub use prefetch::prefetch;
pub use random::{mix, Random};
pub use system::{CompletedLoad, Error, ObservedTlp, System, WINDOW_BASE};
pub use time::Time;
pub use trace::{TraceEvent, TraceSink, Tracer};
