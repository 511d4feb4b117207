//! Crash-consistency engine. Generated from hw/engine/nearpm/regs/nearpm_regs.rdl by tools/regs.py: `make regs`.

use super::Field;

/// Bytes up to the end of the last register.
pub const SIZE: u64 = 0x218;
/// Control.
pub const CONTROL: u64 = 0x0;
/// Inside of `CONTROL`.
pub mod control {
    use super::Field;
    /// Starts nothing: commands arrive through the page.
    pub const START: Field = Field::new(0, 1, 0x0);
    /// No command is in flight.
    pub const IDLE: Field = Field::new(2, 1, 0x0);
}
/// Interrupt enable.
pub const INTERRUPT: u64 = 0x4;
/// Inside of `INTERRUPT`.
pub mod interrupt {
    use super::Field;
    /// enable.
    pub const ENABLE: Field = Field::new(0, 1, 0x0);
}
/// Interrupt sources.
pub const SOURCES: u64 = 0x8;
/// Inside of `SOURCES`.
pub mod sources {
    use super::Field;
    /// done.
    pub const DONE: Field = Field::new(0, 1, 0x0);
}
/// Status.
pub const STATUS: u64 = 0xc;
/// Inside of `STATUS`.
pub mod status {
    use super::Field;
    /// Always 0.
    pub const DONE: Field = Field::new(0, 1, 0x0);
}
/// Return value.
pub const RESULT: u64 = 0x10;
/// Inside of `RESULT`.
pub mod result {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Commands taken.
pub const TAKEN: u64 = 0x100;
/// Inside of `TAKEN`.
pub mod taken {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Commands refused.
pub const REFUSED: u64 = 0x104;
/// Inside of `REFUSED`.
pub mod refused {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Commands under way.
pub const UNDER_WAY: u64 = 0x108;
/// Inside of `UNDER_WAY`.
pub mod under_way {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 7, 0x0);
}
/// Units at work.
pub const WORKING: u64 = 0x10c;
/// Inside of `WORKING`.
pub mod working {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 16, 0x0);
}
/// Most lines.
pub const MOST_LINES: u64 = 0x110;
/// Inside of `MOST_LINES`.
pub mod most_lines {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 7, 0x0);
}
/// Loads that wait.
pub const LOADS: u64 = 0x114;
/// Inside of `LOADS`.
pub mod loads {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 9, 0x0);
}
/// Stores queued.
pub const STORES: u64 = 0x118;
/// Inside of `STORES`.
pub mod stores {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Persistence domain.
pub const DOMAIN: u64 = 0x11c;
/// Inside of `DOMAIN`.
pub mod domain {
    use super::Field;
    /// A saved state was restored after the reset.
    pub const RESTORED: Field = Field::new(0, 1, 0x0);
    /// All restored commands and lines have ended.
    pub const OPEN: Field = Field::new(1, 1, 0x0);
    /// A line of the queue could not be written.
    pub const LINE_ERROR: Field = Field::new(2, 1, 0x0);
    /// The saved state could not be restored: media accesses fail until a reset, which tries again.
    pub const UNREAD: Field = Field::new(3, 1, 0x0);
    /// State that has to survive was not saved before the reset; until it is discarded.
    pub const LOST: Field = Field::new(4, 1, 0x0);
    /// A loss would not be detected: the header of the reserved range is not up to date.
    pub const UNKEPT: Field = Field::new(5, 1, 0x0);
}
/// Forget.
pub const FORGET: u64 = 0x120;
/// Inside of `FORGET`.
pub mod forget {
    use super::Field;
    /// Acknowledge or discard.
    pub const FORGET: Field = Field::new(0, 1, 0x0);
}
/// Lines recorded.
pub const TRACKED: u64 = 0x128;
/// Inside of `TRACKED`.
pub mod tracked {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 32, 0x0);
}
/// Lines in a channel's queue.
pub const LINES: u64 = 0x140;
/// From one to the next: Lines in a channel's queue.
pub const LINES_STRIDE: u64 = 0x4;
/// How many there are: Lines in a channel's queue.
pub const LINES_COUNT: u64 = 16;
/// Inside of `LINES`.
pub mod lines {
    use super::Field;
    /// value.
    pub const VALUE: Field = Field::new(0, 7, 0x0);
}
/// Device.
pub const DEVICE: u64 = 0x180;
/// Inside of `DEVICE`.
pub mod device {
    use super::Field;
    /// Number of the device among those that transactions span.
    pub const OWN: Field = Field::new(0, 2, 0x0);
    /// The device has a number.
    pub const NUMBERED: Field = Field::new(8, 1, 0x0);
}
/// Log.
pub const SELECT: u64 = 0x184;
/// Inside of `SELECT`.
pub mod select {
    use super::Field;
    /// 16 * pool + thread.
    pub const LOG: Field = Field::new(0, 8, 0x0);
}
/// Address of device n's engine registers.
pub const PEER: u64 = 0x1a0;
/// From one to the next: Address of device n's engine registers.
pub const PEER_STRIDE: u64 = 0x4;
/// How many there are: Address of device n's engine registers.
pub const PEER_COUNT: u64 = 8;
/// Inside of `PEER`.
pub mod peer {
    use super::Field;
    /// word.
    pub const WORD: Field = Field::new(0, 32, 0x0);
}
/// Device n has completed a transaction.
pub const DONE: u64 = 0x1c0;
/// From one to the next: Device n has completed a transaction.
pub const DONE_STRIDE: u64 = 0x4;
/// How many there are: Device n has completed a transaction.
pub const DONE_COUNT: u64 = 8;
/// Inside of `DONE`.
pub mod done {
    use super::Field;
    /// word.
    pub const WORD: Field = Field::new(0, 32, 0x0);
}
/// Last transaction that device n has completed.
pub const SEEN: u64 = 0x1e0;
/// From one to the next: Last transaction that device n has completed.
pub const SEEN_STRIDE: u64 = 0x4;
/// How many there are: Last transaction that device n has completed.
pub const SEEN_COUNT: u64 = 8;
/// Inside of `SEEN`.
pub mod seen {
    use super::Field;
    /// word.
    pub const WORD: Field = Field::new(0, 32, 0x0);
}
/// Last transaction that all participants have completed.
pub const ALL_COMPLETE: u64 = 0x200;
/// From one to the next: Last transaction that all participants have completed.
pub const ALL_COMPLETE_STRIDE: u64 = 0x4;
/// How many there are: Last transaction that all participants have completed.
pub const ALL_COMPLETE_COUNT: u64 = 2;
/// Inside of `ALL_COMPLETE`.
pub mod all_complete {
    use super::Field;
    /// word.
    pub const WORD: Field = Field::new(0, 32, 0x0);
}
/// Highest transaction of any log.
pub const HIGHEST: u64 = 0x208;
/// From one to the next: Highest transaction of any log.
pub const HIGHEST_STRIDE: u64 = 0x4;
/// How many there are: Highest transaction of any log.
pub const HIGHEST_COUNT: u64 = 2;
/// Inside of `HIGHEST`.
pub mod highest {
    use super::Field;
    /// word.
    pub const WORD: Field = Field::new(0, 32, 0x0);
}
/// Address of the progress words.
pub const PROGRESS: u64 = 0x210;
/// From one to the next: Address of the progress words.
pub const PROGRESS_STRIDE: u64 = 0x4;
/// How many there are: Address of the progress words.
pub const PROGRESS_COUNT: u64 = 2;
/// Inside of `PROGRESS`.
pub mod progress {
    use super::Field;
    /// word.
    pub const WORD: Field = Field::new(0, 32, 0x0);
}
