//! The way of a load or store of BAR2 through the device, beside the time of its `nvm_delay`.
//!
//! A profile says what the host is to see beyond its link, so this way is taken off the profile's times: it is `nvm_delay`'s
//! calibration. It is in cycles, and the same in every design and at every clock. `crates/device/tests/behaviour/calibration.rs`
//! measures it on both models, and fails when a stage is added.

/// `nearside_window` rests before a load that comes alone, and takes nothing in its first cycle.
const WAKE: f64 = 1.0;
/// Addresses: two register slices of `ns_axi_demux`, one of `ns_axi_mux`.
const ADDRESS: f64 = 2.0 + 1.0;
/// Data and responses: one of each.
const ANSWER: f64 = 1.0 + 1.0;
/// What comes at any time waits half a cycle for the clock's edge, in the mean.
const EDGE: f64 = 0.5;

/// Cycles of a load, and of a store until its response: one alone, at any time, in the mean.
pub const CYCLES: f64 = EDGE + WAKE + ADDRESS + ANSWER;
