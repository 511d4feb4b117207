// SPDX-License-Identifier: Apache-2.0

//! The host side of a simulated system: CPUs, memory types, caches, fences and power cuts.
//!
//! A [`Machine`] adds CPUs to a [`sim::System`]: a time for each CPU, write-combining buffers, a
//! write-back cache and fences, with the costs of [`HostParameters`]. A [`SharedMachine`] shares it
//! between programs. NVMe drivers (`driver::SharedHost`) and persistent-memory libraries are built
//! on it.
//!
//! ```
//! use design::Design;
//! use device::Model;
//! use host::{Fence, Mapping, MemoryType};
//! use testbed::Testbed;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let design = Design::find("default")?;
//! let testbed = Testbed::builder(&design).model(Model::Fast).build()?;
//! let shared = testbed.machine();
//!
//! let pm = Mapping::pm(0, MemoryType::WriteBack);
//! let cpu = shared.cpu(0);
//! cpu.store(&pm, 0x1000, &[1, 2, 3, 4])?;
//! cpu.clwb(&pm, 0x1000)?;
//! cpu.fence(Fence::ReadBack)?; // the store is persistent now
//! let mut data = [0; 4];
//! cpu.load(&pm, 0x1000, &mut data)?;
//! assert_eq!(data, [1, 2, 3, 4]);
//!
//! // Two programs run concurrently, each on one CPU.
//! let program = |line: u64| -> host::Program<'_, host::Result<()>> {
//!     Box::new(move |cpu| {
//!         cpu.store(&pm, 64 * line, &line.to_le_bytes())?;
//!         cpu.flush(&pm, 64 * line, 8)?;
//!         cpu.fence(Fence::ReadBack)
//!     })
//! };
//! let results = shared.run(vec![(0, program(0)), (1, program(1))])?;
//! assert!(results.iter().all(|result| result.is_ok()));
//! # Ok(())
//! # }
//! ```
//!
//! # Modules, in reading order
//!
//! - `parameters`: [`HostParameters`], what operations cost, and the sizes of buffers and cache.
//! - `machine`: [`Machine`], the times and costs of CPUs, and the conditions that they wait for.
//! - `mapping`: [`Mapping`], [`MemoryType`] and [`CacheLine`], a window as a CPU sees it.
//! - `cpu`: [`Cpu`], the operations of a program.
//! - `access`, `load`, `in_flight`: loads and stores of 1 to 64 bytes, loads in flight, and the
//!   accesses that wait for them.
//! - `cache`, `wc`, `store_buffer`: the write-back cache, and the buffers of a CPU.
//! - `uncached`, `eviction`, `flush`: uncached stores, evicted lines, write-backs and fences.
//! - [`register`]: uncached accesses of any length.
//! - `shared`: [`SharedMachine`], one host for several programs in the order of their times.
//! - `crash`: power cuts, [`CutScope`] and [`CrashReport`].
//! - `events`, `watch`: [`HostEvent`] for observers, [`CrashProbe`] for calls before a power cut.
//!
//! # Time and order
//!
//! The time of a CPU is the end of its work so far. A CPU acts when the system has reached that
//! time, so a CPU that is ahead waits. Of several programs the one with the earliest time runs, or
//! the first of several with the same time. Results therefore depend on the programs only: the same
//! seed gives the same bytes at the same times.
//!
//! Programs are threads, so a library is straight-line code. A switch costs the machine 5 to 30 us.
//! With one program, or none (the caller is the program), nothing is switched, and cache hits do
//! not involve the system. [`SharedMachine::set_slack`] lets a program run ahead of the others
//! while it hits the cache. Results still repeat, but programs may see each other's stores that
//! much too early or too late.
//!
//! # The model of x86
//!
//! - **Uncached**: accesses in program order. A load waits for its data. The write-combining
//!   buffers are sent first. The CPU continues after a store: the store buffer holds it, and one
//!   leaves in each `mmio_store_ns`. Fences, write-backs, evictions, and loads that bypass the
//!   cache wait until it is empty.
//! - **Write-combining**: a buffer collects the stores to a 64-byte line. A full buffer is sent as
//!   one write. A partial one is sent when another line needs it, at a fence, at an uncached
//!   access, or at a load of the line. It becomes one write for each run of bytes within 8 aligned
//!   ones. At most half of the buffers collect stores; the others are busy for `wc_flush_ns`.
//!   Loads are not ordered with combined stores to other lines, and never pass stores to the same
//!   line.
//! - **Write-back**: a miss fetches 64 bytes and occupies a fill buffer. A store that misses
//!   fetches the line for ownership and does not wait for it. Evicted dirty lines are posted whole,
//!   in the order of their eviction. One cache for all CPUs of the host keeps them coherent.
//! - **`ntstore`** uses the write-combining buffers. A dirty line is written back first; a clean
//!   copy gets the new bytes as well.
//! - **`clwb`** posts a dirty line and keeps it; **`clflushopt`** evicts it.
//! - **Fences**: [`Fence::Posted`] is `sfence`: it waits until the root complex has accepted
//!   everything that this CPU has sent or requested to be written back. Writes are posted, so this
//!   proves nothing about the device. [`Fence::ReadBack`] also loads 4 bytes from each of these
//!   devices, after the writes; a Nearside device then has them in its persistence domain. The load
//!   goes to the place in [`HostParameters::read_back`], a register in a testbed.
//!   [`Fence::Completion`] waits for an answer to the writes, as CXL.mem gives it: the device has
//!   accepted them, which on a Nearside device is earlier than persistent. Both are an error
//!   ([`Error::Lost`]), once per CPU, if the device has lost stores since, because its media fail.
//!
//! # Power cuts
//!
//! [`Machine::cut_at`] fails the power at a time: programs end with [`Error::PowerCut`].
//! [`Machine::crash`] then performs the cut and reports the lost stores: dirty lines and
//! write-combining buffers. With [`CutScope::Host`] the devices first accept what was posted. With
//! [`CutScope::All`] they fail at the same time, and everything in flight is lost. With
//! [`Machine::crash_staggered`] each device fails later than the host by a separate time.
//! [`Machine::evict`] evicts dirty lines before a cut. [`Machine::set_probe`] calls a function when
//! the power is about to fail; it may copy the process and let the original continue.
//!
//! The remaining content of a line:
//!
//! | stored by | is whole | order |
//! |---|---|---|
//! | write-back stores only | 64 bytes, as of some time | stores to a line persist in order |
//! | other stores as well | each aligned 8 bytes | likewise, within each 8 bytes |
//!
//! Stores older than a `clwb` before a `ReadBack` fence of the same CPU are present, as are
//! non-temporal stores before it. All others are old or new.
//!
//! # Not modelled
//!
//! A store buffer for cached stores: those that hit are visible at once, so the model is stronger
//! than x86-TSO. Speculation, prefetchers, TLBs, several levels of cache, and the bandwidth of host
//! memory.
//!
//! **A device's writes to its media do not reach the cache**, for NVMe commands and engines alike.
//! As with real PCIe, nothing snoops a device's memory, so a cached line stays as it is. The
//! program uses `clflushopt` before such a write starts, or an uncached mapping. The same holds for
//! the write-combining buffers of other CPUs, and for bytes mapped in two ways.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod access;
mod cache;
mod cpu;
mod crash;
mod error;
mod events;
mod eviction;
mod flush;
mod in_flight;
mod load;
mod machine;
mod mapping;
mod parameters;
pub mod register;
mod shared;
mod store_buffer;
mod uncached;
mod watch;
mod wc;

pub use access::PendingLoad;
pub use cpu::Cpu;
pub use crash::{CrashReport, CutScope, LostStores};
pub use error::{Error, Result};
pub use events::{Fence, HostEvent, Observer};
pub use machine::{CrashProbe, HostCounters, Machine, Turn, WakeCondition};
pub use mapping::{CacheLine, Mapping, MemoryType, LINE};
pub use parameters::{CacheParameters, HostParameters, ReplacementPolicy};
pub use shared::{Program, SharedMachine, TurnGuard};
