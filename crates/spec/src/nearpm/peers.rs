// SPDX-License-Identifier: Apache-2.0

//! Several devices: their numbers, and the completions that they send to each other.

/// Maximum number of devices of a transaction.
pub const DEVICES: u8 = 4;
/// Bits of the number of a transaction of several devices.
pub const SEQUENCE_BITS: u32 = 48;
/// Lowest bit of the log in a completion.
const LOG: u32 = 56;

/// Registers of the engine, from its start on. Registers of 64 bits are a pair of dwords, the low
/// dword first.
pub mod register {
    use crate::regs::nearpm as regs;

    /// The number of this device.
    pub const DEVICE: u64 = regs::DEVICE;
    /// In `DEVICE`: the device has a number.
    pub const DEVICE_IS_SET: u32 = regs::device::NUMBERED.mask() as u32;
    /// The log that `SEEN` and `ALL` show.
    pub const SELECT: u64 = regs::SELECT;
    /// Bus address of device n's engine registers, 64 bits each; 0: there is no such device.
    pub const PEER: u64 = regs::PEER;
    /// Device n writes its completions here, 64 bits each.
    pub const DONE: u64 = regs::DONE;
    /// The last transaction that device n has completed, 64 bits each.
    pub const SEEN: u64 = regs::SEEN;
    /// The last transaction that all participants have completed, 64 bits.
    pub const ALL: u64 = regs::ALL_COMPLETE;
    /// The highest transaction that any device has completed, 64 bits.
    pub const HIGHEST: u64 = regs::HIGHEST;
    /// End of these registers.
    pub const END: u64 = HIGHEST + 8;
}

/// Bytes of the progress words of all logs.
pub const PROGRESS_BYTES: u64 = 8 * super::POOLS as u64 * super::THREADS as u64;

/// Address of the progress word of a log, 16 * pool + thread, with the words at `base`.
pub fn progress_word(base: u64, log: u8) -> u64 {
    base + 8 * u64::from(log)
}

/// A completion that a device sends to its peers: it has completed its part of a log's transactions
/// up to and including this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// 16 * pool + thread.
    pub log: u8,
    /// The transaction.
    pub sequence: u64,
}

impl Completion {
    /// The 64 bits that are written to a peer's `DONE`.
    pub fn to_word(self) -> u64 {
        u64::from(self.log) << LOG | self.sequence & ((1 << SEQUENCE_BITS) - 1)
    }

    /// The completion in 64 bits.
    pub fn from_word(word: u64) -> Completion {
        Completion {
            log: (word >> LOG) as u8,
            sequence: word & ((1 << SEQUENCE_BITS) - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearpm_completion_is_read_as_written() {
        let completion = Completion {
            log: 0xA5,
            sequence: (1 << SEQUENCE_BITS) - 2,
        };
        let word = completion.to_word();
        assert_eq!(word, 0xA500_FFFF_FFFF_FFFE);
        assert_eq!(Completion::from_word(word), completion);
    }
}
