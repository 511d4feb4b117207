//! Several devices: who they are to each other, and what they tell each other.

/// Devices that a transaction can span.
pub const DEVICES: u8 = 4;
/// Bits of the number of a transaction of several devices.
pub const SEQUENCE_BITS: u32 = 56;

/// Registers of the engine, from its start on; those of 64 bits are a pair, the low word first.
pub mod register {
    /// The device's own number.
    pub const DEVICE: u64 = 0x180;
    /// Of `DEVICE`: it has a number.
    pub const DEVICE_IS_SET: u32 = 1 << 8;
    /// The log that `SEEN` and `ALL` are about.
    pub const SELECT: u64 = 0x184;
    /// Bus address of device n's engine registers, 64 bits each; 0: it is not there.
    pub const PEER: u64 = 0x1A0;
    /// Where device n tells what it has completed, 64 bits each.
    pub const DONE: u64 = 0x1C0;
    /// The last transaction that device n has told of, 64 bits each; the own one: that it has completed itself.
    pub const SEEN: u64 = 0x1E0;
    /// The last transaction that all participants have completed, 64 bits.
    pub const ALL: u64 = 0x200;
    /// The highest transaction that any device has told of, 64 bits.
    pub const HIGHEST: u64 = 0x208;
    /// Behind all of these.
    pub const END: u64 = 0x210;
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
        u64::from(self.log) << SEQUENCE_BITS | self.sequence & ((1 << SEQUENCE_BITS) - 1)
    }

    /// What such a word says.
    pub fn from_word(word: u64) -> Completion {
        Completion {
            log: (word >> SEQUENCE_BITS) as u8,
            sequence: word & ((1 << SEQUENCE_BITS) - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_is_read_as_written() {
        let completion = Completion {
            log: 0xA5,
            sequence: (1 << SEQUENCE_BITS) - 2,
        };
        let word = completion.to_word();
        assert_eq!(word, 0xA5FF_FFFF_FFFF_FFFE);
        assert_eq!(Completion::from_word(word), completion);
    }
}
