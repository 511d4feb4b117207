//! Register maps, generated from hw/ip/*/regs/*.rdl by tools/regs.py.
#![allow(missing_docs, clippy::all)]

pub mod nvm_delay;
pub mod nvme;
