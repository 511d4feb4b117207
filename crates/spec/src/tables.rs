// SPDX-License-Identifier: Apache-2.0

//! Limits of the engines that sort tables: parameters of `hw/engine/sorter` and
//! `hw/engine/dict_decode` that software has to know.

/// Runs that the sorter merges in a pass (parameter `Leaves`).
pub const LEAVES: u64 = 64;
/// Most keys that the sorter sorts in one pass.
pub const ONE_PASS_KEYS: u64 = 128 << 10;
/// Most keys that it sorts in two passes, and then writes as indexes only.
pub const TWO_PASS_KEYS: u64 = LEAVES * ONE_PASS_KEYS;
/// Most values of a dictionary.
pub const DICTIONARY_VALUES: u64 = 1 << 16;
/// Most bytes of a dictionary (parameter `DictBytes`).
pub const DICTIONARY_BYTES: u64 = 512 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// The default of a parameter of an engine's module, as a product of numbers.
    fn parameter(module: &str, name: &str) -> u64 {
        let start = format!("parameter int unsigned {name}");
        let line = module.lines().find(|line| line.trim().starts_with(&start));
        let value = line.unwrap().split_once('=').unwrap().1;
        let factors = value.trim().trim_end_matches(',').split('*');
        factors.map(|n| n.trim().parse::<u64>().unwrap()).product()
    }

    #[test]
    fn table_limits_are_the_parameters_of_the_rtl() {
        let sorter = include_str!("../../../hw/engine/sorter/rtl/sorter.sv");
        let decode = include_str!("../../../hw/engine/dict_decode/rtl/dict_decode.sv");
        assert_eq!(parameter(sorter, "Leaves"), LEAVES);
        assert_eq!(parameter(decode, "DictBytes"), DICTIONARY_BYTES);
    }
}
