//! What a device does, as whoever has a `sim::Device` sees it: one source for all engines.
//! `NEARSIDE_ENGINE` chooses, without it the fast one; what is in a module `sampled` runs in `make
//! test` on the RTL, too. See crates/device/README.md.

mod common;

mod admin;
mod blocks;
mod calibration;
mod engines;
mod file_system;
mod fills;
mod memories;
mod namespaces;
mod pages;
mod reset;
mod silence;
mod top;
mod window;
