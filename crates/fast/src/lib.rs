//! The device of a design, transaction by transaction: the same registers, bytes and statuses as the RTL, in a hundredth of its time.

#![warn(missing_docs)]

pub mod controller;
pub mod memory;
