// SPDX-License-Identifier: Apache-2.0

//! Campaigns against a reference model: random, malformed and hostile input, checked access by
//! access.
//!
//! Each episode connects a fresh [`Device`] to a hostile host. Every access of the device to its
//! host is checked as it arrives ([`HostModel`](host_model::HostModel)). The stored data are
//! compared with a model of the media, at each read and as a whole at the end. Nothing may be lost,
//! hang, or reach an address that no command names.
//!
//! Modules in reading order:
//!
//! - `episode`: one episode of a device. Its submodules are `queues` (admin commands that depend on
//!   queues), `reset` (resets) and `window` (the PM window).
//! - `host_model`: checks each access of the device as it arrives. Its submodules are `port`
//!   (timing), `completion`, `pairs` (fused commands in flight), `messages` (interrupts) and
//!   `scoreboard` (data of a Read).
//! - `expectation`, `engine_output`: what a command may answer, transfer and change.
//! - `model`: the reference model. Its submodules are `nvm`, `fused` and `features`; `engines`,
//!   `tables`, `lists` and `namespaces` are beside it. The decoding of fields, PRPs, SGLs and
//!   namespaces is in `crates/nvme`.
//! - `media`, `block`, `block_view`: possible contents of the media, of a block, and their view
//!   by a reader.
//! - `memory`, `walk`, `prp`, `sgl`, `shadow`: host memory, transfers in it, and shadow
//!   doorbells.
//! - `rig`: two devices in one `sim::System`.
//! - `report`: the report of a campaign.

mod block;
mod block_view;
pub(crate) mod engine_output;
pub(crate) mod engines;
mod episode;
pub(crate) mod expectation;
mod host_model;
mod lists;
mod media;
mod memory;
mod model;
mod namespaces;
mod prp;
mod report;
mod rig;
mod sgl;
mod shadow;
pub(crate) mod tables;
mod walk;

use sim::Device;

use crate::campaign::{self, Campaign, Conditions};

pub use episode::WINDOW_BYTES;
pub use report::Report;

/// Makes a device with empty media (zeros) and power.
pub type Make<'a> = dyn FnMut(&Conditions) -> Result<Box<dyn Device + Send>, String> + 'a;

/// The devices of a campaign, and the extent of its checks.
#[derive(Clone, Debug)]
pub struct Target {
    /// A soak: valid commands only, no resets. The amount of the campaign is in bytes of the media,
    /// otherwise in commands.
    pub valid_only: bool,
    /// Bytes of the device's media.
    pub media_bytes: u64,
    /// Bytes at the end of the media that belong to no namespace. With [`WINDOW_BYTES`] of them,
    /// some episodes have two devices that use each other's bytes. With fewer, no episode has two
    /// devices.
    pub unclaimed_bytes: u64,
    /// Accepts blocks that hold parts of several contents.
    pub torn_blocks: bool,
}

/// Runs a campaign: see [`campaign::run`]. Mismatches are in the report.
pub fn run(
    make: &mut Make,
    target: &Target,
    campaign: &Campaign,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Report, String> {
    campaign::run(campaign, progress, &mut |script, keep_running| {
        episode::run(make, target, script, keep_running)
    })
}
