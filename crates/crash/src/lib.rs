// SPDX-License-Identifier: Apache-2.0

//! Crash campaigns: a workload's transactions are cut off by power losses at many times, and the
//! recovered state is checked after each.
//!
//! A workload of [`workloads`] runs forward once on a simulated host with devices. At each cut a
//! copy of the process ends in a power loss, recovers, and is compared with the oracle: the
//! contents after n transactions, or after n + 1. `nearside crashtest` runs campaigns;
//! `docs/crash-consistency.md` and `docs/persistence.md` say how to use it.
//!
//! Modules in reading order:
//!
//! - `options`: [`Campaign`] with its [`Executor`] and an [`InjectedFault`].
//! - `cut`: [`Cut`], a power cut with a textual form, and [`CutPlan`], which cuts a campaign makes.
//! - `stage`: the host, its devices, the workload's pool, and a second program's pool.
//! - `progress`: the transactions of a run.
//! - `campaign`: [`run`] measures a run, plans its cuts, and makes the report.
//! - `copies`: the copies of the run (`sim::fork`) that end at cuts.
//! - `recovery_check`: the end of a copy, recovery, and the comparison with the oracle.
//! - `journal`: writes sent to the devices, and those that a load has proven to be persistent.
//! - [`invariants`]: the four invariants of persist ordering, over a log of events.
//! - `timeline`, `report`: what led to a violation, and the results.
//!
//! # Cuts
//!
//! A cut is written as `PS[:PART...]`, for example `163756025:later=all:again=1200`.
//!
//! | part | meaning |
//! |---|---|
//! | `PS` | when the host's power fails; its cache, its buffers and everything unsent is lost |
//! | `early=PS/LINES` | this long before, these lines left the cache, and the program went on |
//! | `evict=LINES` | these lines leave the cache at the cut |
//! | `later=PS` | the device has power for this much longer |
//! | `later=all` | the device has power until it has accepted everything on the link |
//! | `later=PS/keeps/...` | the same for each of several devices; `keeps`: it keeps its power |
//! | `lost=SEED` | the last unproven stores of each line are lost, a generated number of them |
//! | `again=PS/PS` | the power fails again this long after each recovery has begun |
//! | `engine` | the engine recovers at the end; else the CPU does |
//!
//! LINES are a mask over the dirty lines (`m5`) or a seed (`s7`). Without `later` the devices fail
//! with the host. Only executors on the CPU have `lost`, since they do not rely on the order of
//! posted writes. CPU and engine alternate in the recoveries that `again` cuts.
//!
//! On the RTL each life has a separate model, whose registers are zeros, ones or random at power-on
//! and differ between copies: recovery has nothing but the media. A write of 64 bytes arrives
//! completely or not at all. A cut at any picosecond finds the partial work of the engine's units.
//!
//! Plans: `sampled:N` generates times, a half of them anywhere, a quarter just after an event, and
//! a quarter within 300 ns of a transaction's return. `all` cuts at each clock edge of the device:
//! with the host, and after everything sent was accepted. It also cuts between all events of the
//! CPU, with each subset of up to 6 dirty lines. `commands` cuts after each command to an engine; a
//! run without commands is refused, since no cut finds nothing. With several devices a half of the
//! generated times are while commits are on their way; `all` also has each device fail alone, and
//! `commands` has only that. Structures have values of 4160 bytes then, so that most transactions
//! span devices.
//!
//! # Checks
//!
//! After recovery are checked:
//!
//! - the contents, byte by byte against the oracle;
//! - the structure of the indexes, and the set of allocated objects;
//! - that logs are empty and the pool's metadata are sound;
//! - one transaction more, and its result;
//! - the second program's pool, which must have its content from before its open transaction.
//!
//! A transaction that had returned before the host's power failed has to be found. The
//! first violation is simplified, part by part, and reported with the events since the transaction
//! began.
//!
//! With an engine as the executor, all events of the run and of its copies are also checked against
//! the [`invariants`]. So a wrong order is found where it occurs, not only where a cut reveals it.
//! A report has the number of `events`, the number of cuts whose log was `broken`, and the first
//! violated `invariant` in one line that names both events. The checks take 4 to 7 % more CPU time.
//!
//! # Negative controls
//!
//! `--without` injects a fault; the campaign then fails unless it finds a violation. Violations
//! after 200 generated cuts of the B-tree, seed 1, 24 transactions, fast model:
//!
//! | fault | executor | undo | redo | checkpoint | shadow |
//! |---|---|---|---|---|---|
//! | `snapshots` | CPU | 61 | 52 | 60 | 53 |
//! | | device | 30 | 37 | 33 | 33 |
//! | `fences` | CPU | 68 | 91 | 98 | 121 |
//! | | device | 5 | 0 | 6 | 10 |
//! | `hook` | device | the run fails | 0 | 162 | 191 |
//! | `commands` | device | the run fails | 0 | the run fails | 0 |
//! | `domain` | device | 200 | 200 | 200 | 200 |
//!
//! The invariant that a fault violates first, and after how many of 20 cuts:
//!
//! | fault | undo | redo | checkpoint | shadow |
//! |---|---|---|---|---|
//! | `fences` | 3: 19 | 3: 4 | 3: 20 | 3: 19 |
//! | `hook` | 1: the run fails | 1: 1 | 1: 20 | 1: 20 |
//! | `commands` | 3: the run fails | 3: 20 | 3: the run fails | 1: 13 |
//! | `domain` | 4: 7 | 4: 5 | 4: 14 | 4: 13 |
//! | `peers`, two devices | 3: 20 | 0 | 3: 20 | 0 |
//!
//! A 0 means that the mechanism hides the fault at these sizes. Offloaded redo reads nothing back
//! before a load has proven that it is applied, and its records are made as fast as their commands
//! arrive. Commands of a few bytes end before the power fails. With shadow paging, 500 cuts of each
//! of `pmemkv`, `tpcc` and `hashmap` reveal missing fences 23 to 33 times. They never reveal a
//! missing order of commands; only the invariants find that. No fault violates invariant 2 alone; a
//! hand-written log does. With `domain` the device itself reports the loss (register 0x11C, bit 4),
//! and the library refuses to open its pools. `peers` is found with `tpcc` on two devices, 100
//! cuts, 24 transactions: 6 cuts with undo, 5 with checkpoints. A cut has to take a commit from one
//! device and leave it to the other, which is a window of some 200 ns. Shadow and redo have no logs
//! that wait. `tracking` is for tracked pools by the device: 19 of 60 cuts of the B-tree.
//!
//! # What it leaves out
//!
//! Stores within a CPU's cache are no accesses yet and have no log entries. Accesses of the NVMe
//! controller are unordered until their completion. The log has no bytes: the comparison with the
//! oracle covers these. Programs with PMDK have campaigns of a different kind, in crate `pmdk`.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod campaign;
mod copies;
mod cut;
mod error;
pub mod invariants;
mod journal;
mod options;
mod progress;
mod recovery_check;
mod report;
mod stage;
mod timeline;

pub use campaign::run;
pub use cut::{Cut, CutPlan, HoldUp, LineSelection};
pub use error::Error;
pub use options::{Campaign, Executor, InjectedFault};
pub use report::{InvariantViolation, Report, Violation};
