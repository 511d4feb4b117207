//! Several devices: who they are to each other, and what they tell each other.

/// Devices that a transaction can span.
pub const DEVICES: u8 = 4;
/// Bits of the number of a transaction of several devices.
pub const SEQUENCE_BITS: u32 = 48;
/// Where the log stands in what is told.
const LOG: u32 = 56;

/// Registers of the engine, from its start on; those of 64 bits are a pair, the low word first.
pub mod register {
    use crate::regs::nearpm as regs;

    /// The device's own number.
    pub const DEVICE: u64 = regs::DEVICE;
    /// Of `DEVICE`: it has a number.
    pub const DEVICE_IS_SET: u32 = regs::device::NUMBERED.mask() as u32;
    /// The log that `SEEN` and `ALL` are about.
    pub const SELECT: u64 = regs::SELECT;
    /// Bus address of device n's engine registers, 64 bits each; 0: it is not there.
    pub const PEER: u64 = regs::PEER;
    /// Where device n tells what it has completed, 64 bits each.
    pub const DONE: u64 = regs::DONE;
    /// The last transaction that device n has told of, 64 bits each; the own one: that it has completed itself.
    pub const SEEN: u64 = regs::SEEN;
    /// The last transaction that all participants have completed, 64 bits.
    pub const ALL: u64 = regs::ALL_COMPLETE;
    /// The highest transaction that any device has told of, 64 bits.
    pub const HIGHEST: u64 = regs::HIGHEST;
    /// Behind all of these.
    pub const END: u64 = HIGHEST + 8;
}

/// What a device tells its peers: it has completed its part of a log's transactions, up to and with this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// 16 * pool + thread.
    pub log: u8,
    /// The transaction.
    pub sequence: u64,
}

impl Completion {
    /// The 64 bits that are written into a peer's `DONE`.
    pub fn to_word(self) -> u64 {
        u64::from(self.log) << LOG | self.sequence & ((1 << SEQUENCE_BITS) - 1)
    }

    /// What such a word says.
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
