//! Register maps, one module each, generated from `hw/{ip,engine}/*/regs/*.rdl` and
//! `hw/engine/*/engine.toml`, the only places where offsets and fields are defined. [`engine`] has
//! the registers of every engine.

pub mod command_page;
pub mod copy;
pub mod dict_decode;
pub mod engine;
pub mod nearpm;
pub mod nvm_delay;
pub mod nvme;
pub mod pipeline;
pub mod qos;
pub mod row_shuffle;
pub mod scan;
pub mod sorter;

/// A field of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    low: u32,
    width: u32,
    reset: u64,
}

impl Field {
    /// A field of `width` bits from bit `low` on, with its reset value.
    pub(crate) const fn new(low: u32, width: u32, reset: u64) -> Field {
        Field { low, width, reset }
    }

    /// Its largest value.
    pub const fn max(self) -> u64 {
        u64::MAX >> (64 - self.width)
    }

    /// Its bits in the register.
    pub const fn mask(self) -> u64 {
        self.max() << self.low
    }

    /// Its value in a register that reads `register`.
    pub const fn get(self, register: u64) -> u64 {
        register >> self.low & self.max()
    }

    /// Any of its bits is set in `register`.
    pub const fn is_set(self, register: u64) -> bool {
        register & self.mask() != 0
    }

    /// A register with only this field set to `value`, truncated to the field.
    pub const fn of(self, value: u64) -> u64 {
        (value & self.max()) << self.low
    }

    /// `register` with this field changed to `value`.
    pub const fn put(self, register: u64, value: u64) -> u64 {
        register & !self.mask() | self.of(value)
    }

    /// Its reset value; 0 if the map has none.
    pub const fn reset(self) -> u64 {
        self.reset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn register_fields_are_read_and_changed_in_place() {
        let field = Field::new(20, 4, 5);
        assert_eq!(
            (field.max(), field.mask(), field.reset()),
            (15, 0xF0_0000, 5)
        );
        assert_eq!(field.get(0x1234_5678), 3);
        assert_eq!(field.put(0x1234_5678, 9), 0x1294_5678);
        assert_eq!(field.of(0x19), 0x90_0000);
        assert!(field.is_set(1 << 23) && !field.is_set(!field.mask()));
        let whole = Field::new(0, 64, 0);
        assert_eq!((whole.max(), whole.get(u64::MAX)), (u64::MAX, u64::MAX));
    }

    #[test]
    fn register_maps_are_those_of_the_specification() {
        // NVM Express 1.4, 3.1.
        assert_eq!(
            (nvme::CAP, nvme::CC, nvme::CSTS, nvme::AQA),
            (0, 0x14, 0x1C, 0x24)
        );
        assert_eq!((nvme::DOORBELLS, nvme::MSIX_TABLE), (0x1000, 0x2000));
        assert_eq!(nvme::cap::MPSMAX.mask(), 0xF << 52);
        assert_eq!(nvme::aqa::ACQS.mask(), 0xFFF << 16);
        assert_eq!(nvm_delay::region::TIMING, 0x10);
        assert_eq!(
            nvm_delay::COUNTERS + nvm_delay::counters::READ_BUCKET,
            0x900
        );
    }
}
