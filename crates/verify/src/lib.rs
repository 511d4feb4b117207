// SPDX-License-Identifier: Apache-2.0

//! Verification of NVMe controllers by random input.
//!
//! For tests of any `sim::Device`. A campaign runs episodes of random steps. It has two consumers
//! of what it generates:
//!
//! - [`oracle`]: a device alone, or two on one host, whose every access is checked against a
//!   reference model. The input is hostile: random and malformed commands, and resets at any time.
//! - [`lockstep`]: two devices of one design, for example the RTL model and the fast model, which
//!   receive the same sequence. All that a host can see is compared. The input has one result only.
//!
//! # Modules in reading order
//!
//! - [`campaign`]: episodes, steps with a seed each, replays, and the shortening of failures.
//! - `random`, `commands`: random choices; opcodes of engines and classes of NVM commands.
//! - `generate`: random commands with their buffers, under a policy: hostile, valid, or with one
//!   result only. Its submodules are `buffer` and `sgl` (PRPs and SGLs), `io`, `admin`, `queues`,
//!   `engines`, `tables` and `lists` (commands of engines), and `reserved` (random bits in every
//!   field that has no effect).
//! - `link`: the host's end of a link, with random timing.
//! - [`oracle`], [`lockstep`]: see above.
//! - [`nearpm`]: campaigns of the engine `nearpm`, with a reference model of it.
//!
//! # Left out of campaigns with the reference model
//!
//! Each item names the tests that cover it instead.
//!
//! - Hosts that never answer (completion timeout, 25 ms and more): `silent_reads` and others in
//!   `hw/ip/nvme_ctrl/dv/cocotb_ctrl_data.py`.
//! - A first fused command whose partner finds no room for 25 ms, and the atomicity of fused
//!   commands for other commands (`atomic`): `cocotb_ctrl_fused.py`.
//! - Content of logs and Identify pages, which are read once and then compared with themselves:
//!   `identify`, `log_ranges` and others in `cocotb_logs.py`.
//! - Errors of the memory: `bus_errors` in `cocotb_ctrl.py`.
//! - Shares of weighted round robin: `cocotb_queues.py`.
//! - A device that loses power while another one accesses its media: `power.rs` and `peers.rs` in
//!   `crates/sim/tests/link`, without a controller.
//! - More than two devices: `peers.rs` (order of devices), without a controller.
//! - Registers and command pages of engines, the local memory, and namespaces that an engine may
//!   not access: `tests/test_engines.py`, `test_scan.py`, `test_pages.py`, `test_memories.py`,
//!   and `pages.rs` in `crates/device/tests/behaviour`.
//! - Output of the engines that sort tables: `tables/` in
//!   `crates/device/tests/behaviour/engines`, and [`lockstep`]. The model permits any bytes
//!   in the ranges that a command names, and none outside.
//! - Reports of lists, and a valid list that is refused because it may have been overwritten:
//!   `tables/pipeline.rs` in the same folder, and [`lockstep`].
//!
//! No test covers these:
//!
//! - Invalid values of registers of I/O queues while shadow doorbells are in use, and invalid
//!   values of shadow doorbells.
//! - An SGL or a list at an address that data of the same command are written to.
//! - Queues in another device's media, and a device that accesses its media through the host.
//! - The order of two commands of one engine with the same target: the model permits parts of
//!   both.
//!
//! # Left out of lockstep campaigns
//!
//! - Engines on overlapping ranges, busy lines of pages, local memory, and engines with separate
//!   namespaces or opcodes: [`oracle`], `crates/device/tests/behaviour`.
//! - Two devices on links, and peer-to-peer transfers: [`oracle`].
//! - Entries, lists and data of Compares that are never answered, and answers after the timeout:
//!   `crates/device/tests/behaviour/silence.rs`, cocotb.
//! - Completion queues without memory: [`oracle`], cocotb.
//! - Commands beside loads and stores of the PM window: [`oracle`].
//! - Shares of weighted round robin, except for mean times: cocotb.
//! - Counters of late answers, sums, extremes and buckets of latencies: `crates/fast/tests`.
//!   Traces of commands are covered by no test.

//! # Known differences of the models
//!
//! If a block lies in several host pages or descriptors, the fast model reads the media once
//! (`Data::piece`). The RTL model reads it segment by segment. So transactions and beats of
//! `nvm_delay` differ, and are not compared after such commands until they were cleared.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod campaign;
mod commands;
mod generate;
mod link;
pub mod lockstep;
pub mod nearpm;
pub mod oracle;
mod random;

/// Bytes of a block.
const BLOCK: u64 = nvme::BLOCK_BYTES;
/// Bytes of a host page.
const PAGE: u64 = spec::nvme::PAGE_BYTES;
