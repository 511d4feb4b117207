// SPDX-License-Identifier: Apache-2.0

//! Latency of a BAR2 load or store in the device outside its `nvm_delay`.
//!
//! A profile defines the latency at the end of the link. So the device's latency is subtracted from
//! the profile's times as `nvm_delay`'s calibration. It is in cycles, and the same in every design
//! and at every clock. `crates/device/tests/behaviour/calibration.rs` measures it with both models
//! and fails when a stage is added.

/// An idle `nearside_window` needs one cycle to wake up and accepts no load in it.
const WAKE: f64 = 1.0;
/// Addresses: two register slices of `ns_axi_demux`, one of `ns_axi_mux`.
const ADDRESS: f64 = 2.0 + 1.0;
/// Data and responses: one of each.
const ANSWER: f64 = 1.0 + 1.0;
/// An access at a random time waits for half a cycle on average until the clock edge.
const EDGE: f64 = 0.5;

/// Average cycles of an isolated load, and of a store until its response.
pub const CYCLES: f64 = EDGE + WAKE + ADDRESS + ANSWER;
