// SPDX-License-Identifier: Apache-2.0

//! Persistent memory on a simulated host: pools in a device's PM window, an allocator,
//! transactions, and a B-tree.
//!
//! A transaction is atomic with respect to power loss by one of four mechanisms: undo log, redo
//! log, checkpoint, shadow paging. The executor of each is the CPU, or the device's
//! crash-consistency engine `nearpm`.
//!
//! ```
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use design::Design;
//! use device::Model;
//! use pm::btree::Tree;
//! use pm::session::Session;
//! use pm::{Layout, Options, Pool};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A host with a device on the fast model.
//! let design = Design::find("nearpm")?;
//! let session = Arc::new(Session::start(&design, Model::Fast)?);
//! let cpu = session.cpu(0)?;
//!
//! // A pool of 8 MiB on device 0, at place 0 of its window; the engine keeps the undo log.
//! let options = Options::offloaded(session.engine()?);
//! let pool = Pool::create(&cpu, 0, 0, 8 << 20, &Layout::new("phones"), &options)?;
//! let mut thread = pool.thread(&cpu)?;
//! let tree = thread.run(|tx| {
//!     let tree = Tree::create(tx)?;
//!     tx.set_root(tree.root())?;
//!     Ok::<_, pm::Error>(tree)
//! })?;
//! thread.run(|tx| {
//!     let value = tx.create(&[7u64; 8])?; // an object of 64 bytes
//!     tree.insert(tx, 42, value.offset())
//! })?;
//!
//! // The transaction is durable. One that fails leaves nothing.
//! let failed = thread.run(|tx| {
//!     tree.remove(tx, 42)?;
//!     Err::<(), _>(pm::Error::Aborted)
//! });
//! assert!(failed.is_err());
//! assert!(tree.get(&mut thread, 42)?.is_some());
//! # Ok(())
//! # }
//! ```
//!
//! Modules in reading order:
//!
//! - `config`: [`Layout`] of a pool, [`Options`] of its use, [`Mechanism`], [`Synchronisation`].
//! - `pool`, `header`: creation, opening, growth and closing of a [`Pool`]. `check`: a
//!   [`CheckReport`].
//! - `thread`: [`Thread`] and [`Transaction`]. `durability`: [`Ticket`].
//! - `value`: [`Ptr`], [`Value`] and [`record!`].
//! - `heap`: the allocator. [`btree`]: a B-tree with 3 to 7 items a node. [`map`]: a hash table.
//! - `mechanism`: the four mechanisms. `log`: a thread's log, of the CPU or an engine.
//! - `recovery`: recovery of a log. `multi_device`: recovery and peers of several devices.
//! - `switch_lists`: pages that change places atomically, for shadow paging.
//! - `engine`: [`EngineHandle`], the engine's command page.
//! - `memory`: access to a pool's bytes, with [`Counts`]. `devices`: the bytes of each device.
//! - `partial_lines`, `ranges`, `lock`, `units`: helpers.
//! - [`session`]: plain calls, for C, Python and other languages.
//!
//! # Pools
//!
//! | offset | content |
//! |---|---|
//! | 0 | header: two lines, each with a CRC |
//! | 4096 | a log for each thread, in the engine's format, for either executor |
//! | then | redo: a staging area for each thread, as long as its log |
//! | then | shadow paging: page table, 8 bytes a page, switch lists, and spare pages |
//! | then | heap: zones of 4 MiB, whose first 64 KiB describe the other 63 chunks; root pointer |
//!
//! A pool is opened with the name of its creation. Errors name the problem: no pool, another name,
//! another version, damage, sizes beyond the window. Growth clears the metadata of the new part and
//! reads all metadata before one store of the header's first line makes it effective; the old pool
//! stays on damage. Pools with shadow paging keep their size. A pool ends in front of the bytes
//! that an engine reserves at the end of the media.
//!
//! [`Pool::check`] reads the metadata again, past the cache, and compares them with the open pool.
//! No checksum guards the page table. Two exchanged entries make a valid table, so only an open
//! pool can detect them.
//!
//! # Transactions
//!
//! [`Thread::run`] takes a closure. If it succeeds, all stores, allocations and frees are
//! committed, else none. [`Transaction::nested`] is flat: a failed nested transaction aborts the
//! whole one. [`Transaction::add_range`] logs a range as a whole, once; stores without it are
//! logged store by store. After a panic in a transaction the pool has to be opened again. The same
//! holds after an error in a commit of shadow paging, since the commit may have taken effect.
//! Threads have private logs; shared structures need a [`Lock`], a spinlock in simulated time.
//!
//! Allocation and freeing take effect with the commit. An object's state is a byte that no other
//! object shares, and its change goes through the mechanism. So a crash neither leaks an object nor
//! allocates it twice, and an abort changes nothing that another transaction has committed.
//!
//! With the CPU as the executor:
//!
//! - undo: old bytes go to the log with non-temporal stores. One fence for all records since the
//!   last one precedes the first store to their ranges. Then stores in place; at the commit `clwb`
//!   of all lines, fence, descriptor, fence.
//! - redo: stores go to host memory. At the commit: records, fence, descriptor, fence, stores in
//!   place, `clwb`, fence, descriptor, fence.
//! - checkpoint: as undo, but with whole pages of 4 KiB. A pool's transactions take turns.
//! - shadow: stores go to host memory. At the commit changed pages go to spare places with
//!   non-temporal stores, then a list of these, fence, the list's number, fence.
//!
//! Offloaded:
//!
//! - undo, checkpoint: a command for each range, without a fence; stores in place; at the commit
//!   `clwb`, `sfence`, commit command, fence. Undo ranges of at most 448 bytes share a command, up
//!   to seven: they are gathered until the first store to one of them. Larger ranges and pages have
//!   a command each, since several units make their records at the same time.
//! - redo: new bytes go to the staging area, `sfence`, commands for records, commit. The CPU
//!   applies records of at most 256 bytes, so that their lines stay in the cache: `clwb`, `sfence`.
//!   Commands apply the others, then delete the log; fence.
//! - shadow: a copy command for each page at its first store. At the commit new lines, list,
//!   `sfence`, a switch command with the list's number, fence.
//! - tracked ([`Layout::tracked`]): no command but the commit. Stores in place; at the commit
//!   `clwb`, `sfence`, commit command, fence. The engine makes a record of each line before the
//!   first store to it. The library counts the lines, and refuses the store that the engine could
//!   not record. It writes all but the last two lines back during the transaction, so that their
//!   records are made meanwhile.
//!   An abort writes the changed lines back and invalidates them before its command, so that none
//!   becomes a store of the next transaction.
//!
//! With shadow paging the page table follows with the next commit. A page that an engine has copied
//! is not in the CPU's cache, but most of its lines are cached at the former place. Unchanged lines
//! are read there until the place is needed; places with few such lines are reused first. Up to ten
//! changed lines are prefetched while the fence waits.
//!
//! [`Options::fence`] says what a fence waits for. The default is a read-back, since over PCIe
//! nothing else proves persistence. The `sfence` in front of a command is posted in any case: the
//! link keeps stores and commands in order, and so does the engine.
//!
//! While a commit's fence waits, the CPU fetches the lines of the next objects. Their sizes are
//! assumed to be those that the transaction has allocated. The stores to a new object would wait
//! for its lines, and the next order fence for these stores. With shadow paging, new objects are in
//! host memory.
//!
//! A command is one store of 64 bytes. One load reports which lines of the command page are free.
//! It is issued after a commit when fewer than 32 lines are known to be free, and evaluated later.
//! It also reports refused commands: a later transaction of the thread fails with the refusal.
//! [`Thread::finish`] waits until all commands have ended, and reports a refusal at once.
//!
//! Writes of the engine do not pass the cache, which may hold lines of the same bytes. Lines that a
//! record covers completely are invalidated before the command and again after it. Partly covered
//! lines are also written by the CPU, in front of the command.
//!
//! # Durable later
//!
//! A fence waits for a round trip to the device. [`Thread::run_later`] commits without that wait,
//! and returns a [`Ticket`]. [`Thread::wait`] and [`Thread::sync`] wait until tickets are durable,
//! one wait for all of them; [`Thread::when_durable`] calls a function then. With
//! [`Options::group_commit`] the library waits by itself. After a power loss a prefix of each
//! thread's transactions is found, with all that had a durable ticket.
//!
//! ```
//! # use std::sync::Arc;
//! # use pm::{session::Session, Error, Layout, Options, Pool};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let design = design::Design::find("nearpm")?;
//! # let session = Arc::new(Session::start(&design, device::Model::Fast)?);
//! # let cpu = session.cpu(0)?;
//! let options = Options {
//!     group_commit: Some(16), // at most 15 transactions are not durable
//!     ..Options::offloaded(session.engine()?)
//! };
//! let pool = Pool::create(&cpu, 0, 0, 8 << 20, &Layout::new("answers"), &options)?;
//! let mut thread = pool.thread(&cpu)?;
//! let (at, _) = thread.run_later(|tx| tx.create(&1u64))?;
//! let (_, ticket) = thread.run_later(|tx| tx.set(at, &2))?;
//! assert!(!thread.is_durable(ticket));
//! thread.when_durable(ticket, |ticket| println!("answer number {}", ticket.number()))?;
//! thread.wait(ticket)?;
//! assert!(thread.is_durable(ticket));
//! # Ok(())
//! # }
//! ```
//!
//! The transactions since the last wait are a group, on either side. While one [`Thread`] uses the
//! pool, a group is one transaction of the mechanism:
//!
//! - undo, checkpoint: a range is logged once in a group. The CPU waits for new records before the
//!   first store to their ranges, as always; an engine gets a command. The end of a transaction is
//!   left to the end of the group: `clwb` of all lines, fence, descriptor, fence; or `clwb`,
//!   `sfence`, commit command, fence. The records of the whole group are void together, when all of
//!   its data are durable.
//! - redo: new bytes stay in host memory until the end of the group, which commits all.
//! - shadow: a page is copied once in a group. New bytes stay in host memory, as always.
//!
//! A power loss undoes the group as a whole. Its transactions abort one by one, from old bytes in
//! host memory. A group ends by itself where a log, the spare pages or the heap have no room for
//! more. Places of freed objects stay until the end of the group: recovery may need their bytes. A
//! second thread is refused while a group is open.
//!
//! While several threads use the pool, a power loss must not undo what other threads may have
//! changed since:
//!
//! - With an engine each commit is a posted command, and only its fence is left out. The link keeps
//!   commands and stores in order, and so does the engine. So what the device has accepted is a
//!   prefix. A commit waits until its command has left the CPU, since other threads may use its
//!   changes. A load of the command page is answered after all commands, so it proves these.
//! - With the CPU as the executor each transaction is durable on return.
//!
//! Over several devices each transaction is durable on return, too: a power loss could leave
//! different transactions on them.
//!
//! A ticket says nothing about other threads. A transaction that has changed nothing has the ticket
//! of the thread's transaction before it.
//!
//! # Recovery
//!
//! [`Pool::open`] recovers the pool. Undo records and checkpoints of transactions under way are
//! written back; committed redo records are applied. The CPU does that for logs of either executor,
//! after it has unmapped the pool on the engine; with [`Options::engine_recovers`] the engine does.
//!
//! A pool with an incomplete log is refused with [`Error::Corrupt`], which names the thread and the
//! damage. Examples are a missing record in front of persistent ones, a wrong payload of an
//! engine's record, and fewer records than the descriptor requires. Of the records that a CPU
//! writes before one fence any may be missing, since their bytes have not been changed yet. A
//! missing last record can't be detected if nothing has counted the records.
//!
//! A pool is also refused when its device reports that it has lost accepted stores or commands, or
//! can't restore them. [`EngineHandle::forget`] acknowledges that. These reports need
//! [`EngineHandle::with_registers`]; otherwise commands are refused with `read_error`.
//!
//! # Several devices
//!
//! A pool spans 1, 2 or 4 devices. Stripes of 4 KiB rotate over them, so a page is on one device
//! and a device's share of a range is contiguous there. A command goes to each device that its
//! range touches, clipped to the device's share. Each device has separate logs, at the same place.
//! Its number in the system, 0 to 3, is its number as a peer.
//!
//! | on each device | content |
//! |---|---|
//! | 0 | the header, on the first device; on others a line with the part of the pool |
//! | 4096 | two logs for each thread, so at most 8 threads; redo: staging areas |
//! | then | interleaved: the CPU's log of each thread, and everything else as with one device |
//!
//! - undo, checkpoint: commit commands go to all devices with records or stores of the transaction.
//!   The host waits for a read-back of each, all at once. A device empties its log when all devices
//!   are complete; meanwhile the thread's next transaction uses its other log.
//! - redo: records on all devices are made and read back first, so one device's commit commits all.
//!   That is one fence more if the transaction spans devices. Recovery applies the records of all
//!   devices if one of them has the commit.
//! - shadow: copies are made within a device. One list, and one switch command, commit after a
//!   read-back of the other devices: one fence more if other devices are involved.
//!
//! [`Options::synchronise`] chooses the synchronisation; peers are registered for all pools of a
//! device, so pools on the same devices have the same one. Fences have to read back: with posted
//! fences two devices may recover different transactions. Without engines a pool over several
//! devices is opened only if the engines' logs are empty.
//!
//! # What it leaves out
//!
//! It measures nothing: crate `pm_bench` does. It has no crash campaigns: crate `crash` does.
//! Programs with PMDK do not use it: crate `pmdk` does that.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod btree;
mod check;
mod config;
mod devices;
mod durability;
mod engine;
mod error;
mod header;
mod heap;
mod lock;
mod log;
pub mod map;
mod mechanism;
mod memory;
mod multi_device;
mod partial_lines;
mod pool;
mod progress;
mod ranges;
mod recovery;
pub mod session;
mod switch_lists;
mod thread;
mod units;
mod value;

pub use check::CheckReport;
pub use config::{Costs, Layout, Mechanism, Options, Synchronisation};
pub use devices::Devices;
pub use durability::Ticket;
pub use engine::{EngineHandle, SubmittedCommand};
pub use error::{Error, Result};
pub use heap::MAX_OBJECT_BYTES;
pub use lock::Lock;
pub use memory::{ConsistencyOperation, Counts, Listener, OperationTimes};
pub use pool::Pool;
pub use thread::{Thread, Transaction};
pub use value::{Ptr, Value};
