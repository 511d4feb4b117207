// SPDX-License-Identifier: Apache-2.0

//! The interface of software and hardware: NVMe structures with the specification's names, register
//! maps, and the NearPM formats. Names and values are those of the NVM Express Base Specification
//! 1.4.
//!
//! Reading order:
//! - [`nvme`]: controller properties, queue entries, Identify data, status codes;
//! - [`regs`]: register maps, generated from SystemRDL and from `engine.toml`;
//! - [`bar4`]: the blocks of BAR4, and the registers that every engine has;
//! - [`nvm_delay`]: the parameters of an emulated delay, and the interleaving of channels;
//! - [`tables`]: limits of the engines that sort tables;
//! - [`nearpm`]: commands, logs and saved state of the crash-consistency engine.
//!
//! Left out: the meaning of NVMe commands (crate `nvme`), accesses to a device (crate `driver`),
//! and what engines other than NearPM do.

#![forbid(unsafe_code)]

pub mod bar4;
pub mod nearpm;
pub mod nvm_delay;
pub mod nvme;
pub mod regs;
pub mod tables;
