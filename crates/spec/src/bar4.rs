//! Where BAR4 has what: the map of `nearside_shell` (docs/architecture.md, "BARs"), and that of every engine's registers (docs/engines.md).

use std::ops::Range;

/// The list of blocks.
pub const STATUS: u64 = 0;
/// Quality of service.
pub const QOS: u64 = 0x1000;
/// `nvm_delay` of channel 0.
pub const DELAY: u64 = 0x1_0000;
/// From one channel's to the next.
pub const DELAY_STEP: u64 = 0x1000;
/// Command pages of engines, in their order.
pub const PAGES: Range<u64> = 0x4_0000..0x8_0000;
/// From one to the next.
pub const PAGE_STEP: u64 = 0x1000;
/// Registers of engines, in their order, each at a multiple of its size.
pub const REGISTERS: Range<u64> = 0x8_0000..0x10_0000;
/// In the registers of an engine: its first argument; each argument, and behind them each output, has 64 bits.
pub const ARGUMENTS: u64 = 0x20;
/// From one argument to the next.
pub const ARGUMENT_STEP: u64 = 0x10;
