//! What software and hardware agree on: NVMe structures with the specification's names, and the register maps.
//!
//! Names and values are those of the NVM Express Base Specification 1.4.

pub mod bar4;
pub mod nearpm;
pub mod nvme;
pub mod regs;
