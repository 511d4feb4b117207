// SPDX-License-Identifier: Apache-2.0

//! Runs unmodified programs with PMDK's libpmemobj so that a device with the engine `nearpm` keeps
//! the logs of their transactions, and cuts the power of programs with persistent memory.
//!
//! A preloaded library, the shim ([`SHIM`]), is interposed between the program and libpmemobj. The
//! commands are `nearside pmdk run`, `nearside pmdk gain` and `nearside crashtest -- PROGRAM`.
//!
//! Modules in reading order:
//!
//! - `shim/device.c`: a client of `nearside serve`, which maps the PM window and submits commands.
//! - `shim/pools.c`: pools on the device, and their recovery.
//! - `shim/transactions.c`: ranges, commits, aborts. `shim/reservations.c`: objects that are
//!   reserved and not published yet. `shim/ranges.c`: which bytes of a transaction are logged.
//! - `shim/tracked.c`: tracked pools, which the device logs without commands.
//! - `shim/memory.c`: libpmem's flushes, fences and copies, `msync` and `fsync`, recorded in a
//!   trace; mappings of files.
//! - `shim/crash.c`: the durable bytes of a program, and power losses.
//! - `shim/persist_points.c`: counts and records persist points. `shim/output.c`: output of the
//!   program, and its end.
//! - `shim/instructions.c`, `shim/traps.c`: instructions that flush, fence and store past the
//!   cache.
//! - `shim/process.c`: the locks of all of these, and which process is followed.
//! - `instructions`: finds such instructions in a file. `trace`, `cost`: a trace, and its cost on
//!   the simulated host.
//!
//! `build.rs` compiles the shim; the numbers of registers and commands come from crate `spec`.
//!
//! # Pools
//!
//! `pmemobj_create` and `pmemobj_open` work on the file that the program names, but libpmemobj maps
//! a place in the device's window instead. The file has the pool's size and a label that identifies
//! the place, and uses no disk space. Without the shim it is not a valid pool, so an unrecovered
//! pool can't be opened. The window's first two pages are a directory of up to 16 pools. Each pool
//! is followed by the engine's logs, 16 of 1 MiB.
//!
//! A pool is open once at a time: libpmemobj's lock on the file lasts as long as the pool is
//! mapped. With copy on write (`copy_on_write.at_open`) the pool is opened twice. First its logs
//! are recovered. Then it is mapped privately for libpmemobj alone, with the device's contents, and
//! the device is neither written nor commanded.
//!
//! The directory has the path, the inode and the folder's file system of each pool's file, updated
//! at each opening. When there is no room for a new pool, places of lost pools are reused. A pool
//! is lost if no process has it mapped and its file is gone. That means that another file or none
//! is at its path, and its folder has it under no other name. A file that had several hard links at
//! the last opening or closing may exist in another folder: its place is kept, with a message, and
//! `NEARSIDE_PMDK_FORGET` frees it. A file that can't be accessed keeps its place.
//!
//! | a pool's file | its contents |
//! |---|---|
//! | renamed or moved in its file system | are kept; after a move open it once |
//! | linked, and the last opened name removed | are kept, if it was opened or closed since |
//! | copied | belong to the original; the copy can't be opened while the original exists |
//! | moved to another file system | belong to the copy, from its first opening on |
//! | removed | stay until room is needed |
//!
//! # Transactions
//!
//! libpmemobj gets each range as one that needs no snapshot (`POBJ_XADD_NO_SNAPSHOT`), and still
//! flushes it. The device makes an undo record of the bytes that the transaction has neither logged
//! nor allocated. A new object must not have a record: after an abort another thread may get its
//! memory. Of published actions, those of `pmemobj_reserve` and `pmemobj_xreserve` are new objects;
//! an action of `pmemobj_defer_free` looks alike. The shim waits for each record, since stores
//! through the mapped window bypass the engine's conflict filter.
//!
//! Commit: each log has a generation, and the pool has the same number in an object. With the first
//! record of a transaction the shim publishes the next number (`pmemobj_tx_publish`). So libpmemobj
//! changes it atomically with the rest of its commit, which makes the records void. Then the
//! device's log gets its commit command.
//!
//! Abort: libpmemobj calls back (`TX_PARAM_CB`) when the outermost transaction has been aborted,
//! for any reason. The device writes the old bytes back before any code of the program runs. The
//! program's callbacks are called after that.
//!
//! Recovery: when a process ends, the device resets its function, after all accepted commands. The
//! next `pmemobj_open` lets libpmemobj recover, and then compares each log's generation with the
//! pool's. A log of the same generation is written back; for the one before, the transaction was
//! committed.
//!
//! libpmemobj keeps doing:
//!
//! - ranges for which the log of 1 MiB has no room, and those of a 17th concurrent transaction: by
//!   its snapshots, which are undone together with the records;
//! - ranges with a part of a reserved, unpublished object: only libpmemobj writes old bytes back
//!   before an abort cancels the reservation;
//! - allocations, `pmemobj_list_*`, `pmemobj_publish` and other atomic operations: by redo logs of
//!   a few words;
//! - pool sets, and pools created without the shim: with a message;
//! - everything for programs that load libpmemobj by `dlopen`, which is not interposed.
//!
//! A transaction has one action more than libpmemobj counts: explicit log buffers
//! (`TX_LOG_TYPE_INTENT`) need room for it. `pmemobj_ctl_get("stats...")` reports one object more.
//!
//! # Tracked pools
//!
//! With `NEARSIDE_PMDK_TRACKED=auto` (`--tracked`) the device tracks a pool from the end of its
//! opening on. It makes a record of each line before the first store to it since the last
//! commit. Nothing is requested. A commit command ends each transaction and each fence outside
//! of one.
//!
//! A mapped window has no tracker, as stores in it do not pass the engine. So the program's
//! mapping is private and stands for the cache. A flush sends lines to the device by messages.
//! What is not flushed is lost with the process, as in a power loss.
//!
//! Recovery undoes everything that was stored since the last commit, libpmemobj's own logs and
//! heap included. So it precedes libpmemobj's, and fences within a transaction have nothing to
//! order. The directory says which pools were tracked last. It does not matter whether the next
//! opening tracks.
//!
//! An abort is not the device's: libpmemobj changes its heap during a transaction and relies on
//! that after an abort. The shim has a volatile copy of the old bytes of each range, writes
//! them back, and commits.
//!
//! The device records 1,024 lines, of one writer. Tracking of all pools ends before the program
//! starts a thread or forks, and pools that are opened after a thread has started are not
//! tracked. Tracking of one pool ends when its transaction announces more than 896 lines. A
//! transaction under way continues by commands: its old bytes are logged first, then a byte of
//! the directory switches over. A transaction whose commit stores to more than 1,024 lines
//! without announcing them is ended (`SIGABRT`), and undone at the next opening. A message
//! reports the end of tracking.
//!
//! # Cost
//!
//! [`Way`] says what fences wait for. With `Ordered` a fence within a transaction is an
//! `sfence`, as the device keeps the order of stores, and the transaction ends with one wait. A
//! program that reports within a transaction what it has persisted there needs the waits.
//! Records are requested one by one: libpmemobj's interface announces one range at a time, and
//! its store may follow.
//!
//! [`replay`] repeats the flushes, fences, copies and commands of a trace on a simulated host, one
//! after the other on one CPU. Only these take time, not the program's loads, stores and
//! computation, nor those of libpmemobj. So a whole program gains less. The shim waits for each
//! record; the model does not, since the engine's conflict filter orders its stores.
//!
//! # Power losses
//!
//! `nearside crashtest -- PROGRAM` runs the program from an empty folder (`{}`) on, once for each
//! cut, and lets the power fail at a persist point:
//!
//! | persist point | finds |
//! |---|---|
//! | after a flush, a fence, a command, a call of libpmemobj | data that are not durable yet |
//! | after an instruction that flushes, fences or streams | the same, without libpmem |
//! | before a fence, a sync, an unmapping | output that preceded the durability of its data |
//! | before output, the first of several in a row | lines that left the cache before the output |
//! | at the end: `return`, `exit`, `_exit`, `quick_exit` | data that never became durable |
//!
//! At the end standard output has been written. Of stdio, `fopen`, `fflush` and `fclose` are
//! output. Writes of full or absent buffers are not, nor is the last write of a stream other than
//! standard output. An end by a signal or by `exec` is no persist point.
//!
//! `all` and `sampled:N` have the persist points from the first transaction on, since a pool that
//! is being created is not valid. The report has the number of omitted ones (`left_out`), and `at:`
//! includes them. A program without transactions is cut from its first mapping on.
//!
//! Durable are:
//!
//! - the content of a file when it is mapped;
//! - flushed or streamed bytes, as they were, from the thread's next fence on;
//! - what a successful `msync` with `MS_SYNC`, `fsync` or `fdatasync` has waited for;
//! - writes of the device.
//!
//! At a cut a forked process stops the program and discards all other bytes, with random
//! exceptions. Requested write-backs may be complete, and any line may have left the cache. In one
//! cut of three there are no exceptions. With `--torn` words of such lines may have left it. Then
//! the check runs, on files or on the same device, which was reset. It has to end with status 0;
//! without `--check` the program itself is the check. Its last line of standard error is reported,
//! else its status and its last line of standard output.
//!
//! The first violation is repeated without lines that leave the cache early. It is reported with
//! the last events of program and device, and with the command that reproduces it. A program with
//! several threads may behave differently the next time.
//!
//! Further rules:
//!
//! - In a tracked pool a flushed line is on the device at once, which undoes it until a commit.
//!   With `--without snapshots` the device does not track.
//! - Commands have ended at a cut; crate `crash` has cuts within commands.
//! - Stores to a mapping that is unmapped or replaced (`MAP_FIXED`) count as durable from then on.
//! - A file that is emptied (`ftruncate`) while nobody has it mapped is empty.
//! - `mremap` makes nothing durable; requested write-backs stay requested for their thread.
//! - A file that has grown is followed from the next `mmap` or `mremap` on. A mapping that becomes
//!   writable (`mprotect`) is followed from then on, if its file is still at its path.
//! - `sync`, `syncfs`, `sync_file_range` and `O_SYNC` are not known: what only these make durable
//!   is lost.
//! - In a trace `fsync` is a fence, since the lines that it writes back are not known.
//! - Calls of a signal handler that has interrupted the shim are executed and not followed.
//!
//! `structures` was run with each of its five structures, 40 steps of two threads, 150 cuts each,
//! by CPU and by device, with and without `--torn`: no violation. The negative controls `--without
//! snapshots` (`--by device`) and `--without fences` (`--by cpu`) fail unless they find violations.
//!
//! # Sampling
//!
//! A first run records the kind, the phase and the place of each persist point. The phase is that
//! of its thread's outermost transaction: in it, in its commit, at the end of its commit, in its
//! abort, after it. The place is a hash of the next 12 calls on the stack. Kind and phase make a
//! class; the calls, and the size of the commit as a power of two, make a place. Classes take
//! turns, and the end of a commit (the last eighth of its points, at least two) gets two points per
//! turn. Within a class its places take turns, rare ones first as a rule. No point is repeated
//! before all have been chosen. The same seed chooses the same points of the same run. The report
//! has the coverage of each class: the number of points and places, and of those with a cut.
//!
//! Of a transaction of 2,052 insertions into a list with 7,308 persist points, `sampled:60` chooses
//! 16.6 of the last 261 of its commit, in the mean of 20 seeds. An even choice has 2.1. Of the last
//! 16 it chooses 2, and at least 1; an even choice has 0.13.
//!
//! A program or check that exceeds the limit (`--limit SECONDS`, wall-clock) is killed. At a cut
//! that is a violation, counted in `not_ended`; in runs without a power loss, with 600 s by
//! default, it is an error. The default is 10 times the longest of these runs, and at least 60 s.
//! Each run has a separate session; all processes of the session, and those with the campaign's
//! environment, are killed at its end.
//!
//! # Instructions
//!
//! `nearside crashtest` also follows programs that flush by instructions. For each loaded file,
//! also by `dlopen`, the shim queries the positions of such instructions
//! (`python/nearside/pmdk_code.py`), and replaces the first byte of each by a trap (`int3`).
//! Branches to other instructions are not affected.
//!
//! | instruction | effect | execution |
//! |---|---|---|
//! | `clwb`, `clflushopt`, also with `.byte 0x66` | write-back, ordered by the next fence | none |
//! | `clflush` | durable at once; a persist point before and after | none |
//! | `sfence`, `mfence` | a fence, if the thread has requested a write-back | by the shim |
//! | `lock` prefix, `xchg` with memory | the same, in files with flushes or streams | in a copy |
//! | `movnt*`, `movdiri`, `movdir64b`, `clzero` | durable with the next fence | in a copy |
//!
//! All forms of operands are followed. Masked stores count for all their bytes. Flushes of memory
//! that is not a file's, and fences without pending write-backs, are no persist points.
//!
//! The search is sound where functions are known: from unwind information and symbols with a size.
//! A function that does not decode completely is left alone, and so is an instruction that is the
//! target of a branch into it. The report has the number of followed instructions of each file, and
//! of those left alone. Data that only the latter make durable are lost, and the program may be
//! reported as wrong.
//!
//! Not followed are:
//!
//! - code that is generated or changed at run time, or has neither unwind information nor symbols;
//! - libc, libm, libstdc++, libgcc, the linker; of libpmem and libpmemobj the calls are followed;
//! - statically linked programs, and those with other privileges (setuid): the shim is not loaded;
//! - transactions of a libpmemobj that is linked into the program; its flushes are followed;
//! - system calls by which other processes, devices or the kernel make memory durable;
//! - 32-bit programs and other processors;
//! - serialising instructions such as `cpuid`, and locked ones in a file without flushes;
//! - instructions in `nearside pmdk run` and `gain`, which are executed as they are.
//!
//! A trap takes 5 to 10 us. `SIGTRAP` is used by the shim: the program's handler is kept and called
//! for other traps, and the signal is never blocked. A handler that runs while `sigsuspend`,
//! `ppoll` or `pselect` block it must not flush. A trap needs some KiB of stack, as a signal does.
//! Flushes of unmapped addresses do not fail, and a fault in a copy has the address of the copy.
//! `dlmopen` is not followed.
//!
//! # Several processes
//!
//! A script that starts the program, and its children, share its environment. One process at a time
//! is followed: the first that maps a file for writing, until it ends. It locks the file of the
//! report. Only its persist points count, and only it writes a trace and a report. The programs of
//! a script each count from 1, and the power fails in the first that reaches the point: start the
//! one of interest alone.
//!
//! A pool belongs to the process that has opened it. In a child a transaction in it is aborted at
//! its begin (`ENOTSUP`). A child that continues a transaction in which its parent has forked is
//! ended (`SIGABRT`). Operations without a transaction work as without the shim. A child may use
//! the device for further pools if its parent had none open at the fork. Otherwise it waits for 10
//! s, as any process does while another one has the device. Places of mapped pools stay, even if
//! the parent is killed.
//!
//! The power does not fail at a child's persist points, and a child is not stopped at a cut. Its
//! write-backs count in mappings that it had at the fork, not in later ones. They do not count
//! after the parent has followed the growth of the file or has unmapped it.
//!
//! # Environment
//!
//! | variable | meaning |
//! |---|---|
//! | `NEARSIDE_PMDK` | the device's socket; without it the shim does nothing |
//! | `NEARSIDE_PMDK_TRACE` | a file to which flushes, fences, copies and commands are appended |
//! | `NEARSIDE_PMDK_REPORT` | a file for counts at the program's end, in JSON |
//! | `NEARSIDE_PMDK_TRACKED` | `auto`: tracked pools, while the program has one thread |
//! | `NEARSIDE_PMDK_WITHOUT` | a fault injection: `snapshots`, or `fences` |
//! | `NEARSIDE_PMDK_PATIENCE` | seconds for an answer of the device; 120 |
//! | `NEARSIDE_PMDK_FORGET` | the path of a lost pool with further names: its place may be reused |
//! | `NEARSIDE_PMDK_KILL` | the program kills itself at this persist point: for tests |
//! | `NEARSIDE_PMDK_CRASH` | the power fails at that point; a seed of early lines, 0 for none |
//! | `NEARSIDE_PMDK_MOMENTS` | a file to which each persist point is appended |
//! | `NEARSIDE_PMDK_CODE` | the socket of the server that finds instructions |
//! | `NEARSIDE_PMDK_TORN` | lines leave the cache in words |
//! | `PMEM_IS_PMEM_FORCE` | 1, since libpmem can't know what the window is |
//!
//! After a power loss there is a report; a process that finds one at its start is killed.
//!
//! # What it leaves out
//!
//! It has no persistent-memory library: crate `pm` does. The device's accesses within a command are
//! not cut: crate `crash` does that.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod cost;
mod instructions;
mod trace;

pub use cost::{replay, Cost, Way};
pub use instructions::{find, Effect, FoundInstruction, InstructionList};
pub use trace::{parse, Event};

/// The shared library that is preloaded into such a program.
pub const SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libnearside_pmdk.so"));
