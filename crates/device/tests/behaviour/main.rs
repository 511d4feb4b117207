// SPDX-License-Identifier: Apache-2.0

//! What a device does as seen through `sim::Device`: one source for both models. `NEARSIDE_MODEL`
//! chooses, by default the fast model. Modules `sampled` run in `make test` on the RTL model, too.
//! See crates/device/README.md.

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
