// SPDX-License-Identifier: Apache-2.0

//! The map of BAR4: the blocks of `nearside_shell` (docs/architecture.md, "BARs").

use std::ops::Range;

/// The status block, which lists all blocks.
pub const STATUS: u64 = 0;
/// Quality of service.
pub const QOS: u64 = 0x1000;
/// `nvm_delay` of channel 0.
pub const DELAY: u64 = 0x1_0000;
/// Distance between the blocks of two channels.
pub const DELAY_STEP: u64 = 0x1000;
/// Command pages of engines, in engine order.
pub const PAGES: Range<u64> = 0x4_0000..0x8_0000;
/// Distance between two pages.
pub const PAGE_STEP: u64 = 0x1000;
/// Registers of engines, in engine order, each at a multiple of its size.
pub const REGISTERS: Range<u64> = 0x8_0000..0x10_0000;
