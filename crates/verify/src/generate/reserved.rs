// SPDX-License-Identifier: Apache-2.0

//! Random bits in all fields of a command that have no effect: reserved fields, fields of other
//! commands, unused dwords. No such bit may change what the controller does (NVM Express 1.4, 1.8:
//! a reserved field is not checked by the recipient).

use sim::Random;
use spec::nvme::{admin, io, Sqe};

use crate::commands::has_range;
use crate::commands::{BLOCKS, COPY, PIPELINE, TABLES};
use crate::random::{chance, pick};

/// The significant bits of each dword.
pub type SignificantBits = [u32; 16];

/// Opcode, FUSE, PSDT and CID.
const FIRST: u32 = 0xFFFF_C3FF;
const ALL: u32 = u32::MAX;

/// The significant bits of a command, of the admin command set or the NVM command set. Not
/// significant are metadata (none exist, so MPTR has no meaning, 4.2), protection information,
/// streams and hints (not supported, 6.9), and UUID indices (5.14.1.1).
pub fn significant_bits(set: Set, sqe: &Sqe) -> SignificantBits {
    let mut u = [0; 16];
    u[0] = FIRST;
    match set {
        Set::Admin => admin_fields(sqe, &mut u),
        Set::Nvm => nvm_fields(sqe, &mut u),
    }
    u
}

/// The command set of an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// Admin command set.
    Admin,
    /// NVM command set.
    Nvm,
}

fn nvm_fields(sqe: &Sqe, u: &mut SignificantBits) {
    let opcode = sqe.opcode();
    let data = matches!(opcode, io::READ | io::WRITE | io::COMPARE);
    let list = opcode == io::DATASET_MANAGEMENT && sqe.dw[11] & 4 != 0;
    if has_range(opcode) || matches!(opcode, io::FLUSH | io::DATASET_MANAGEMENT) {
        u[1] = ALL;
    }
    if data || list {
        u[6..10].fill(ALL);
    }
    if has_range(opcode) {
        (u[10], u[11], u[12]) = (ALL, ALL, 0xFFFF);
    }
    if BLOCKS.contains(&opcode) {
        u[1] = ALL;
        u[10..16].fill(ALL);
        if opcode != COPY {
            u[2..4].fill(ALL);
        }
    }
    if TABLES.contains(&opcode) || opcode == PIPELINE {
        u[1] = ALL;
        u[10..16].fill(ALL);
    }
    if opcode == io::DATASET_MANAGEMENT {
        (u[10], u[11]) = (0xFF, 4);
    }
}

fn admin_fields(sqe: &Sqe, u: &mut SignificantBits) {
    let (prp1, both) = (6..8, 6..10);
    match sqe.opcode() {
        admin::IDENTIFY => {
            (u[1], u[10]) = (ALL, 0xFF);
            u[both].fill(ALL);
            // CSI has a meaning with CNS 06h only; both are of NVMe 2.0.
            u[11] = if sqe.dw[10] as u8 == 6 { 0xFF << 24 } else { 0 };
        }
        admin::GET_LOG_PAGE => {
            u[1] = ALL;
            u[both].fill(ALL);
            // RAE affects later logs, so the host chooses it.
            (u[10], u[11], u[12], u[13]) = (0xFFFF_80FF, 0xFFFF, ALL, ALL);
        }
        admin::SET_FEATURES | admin::GET_FEATURES => {
            (u[1], u[11]) = (ALL, ALL);
            u[both].fill(ALL);
            let set = sqe.opcode() == admin::SET_FEATURES;
            u[10] = if set { 0x8000_00FF } else { 0x7FF };
        }
        admin::CREATE_IO_CQ => {
            (u[10], u[11]) = (ALL, 0xFFFF_0003);
            u[prp1].fill(ALL);
        }
        admin::CREATE_IO_SQ => {
            (u[10], u[11]) = (ALL, 0xFFFF_0007);
            u[prp1].fill(ALL);
        }
        admin::DELETE_IO_SQ | admin::DELETE_IO_CQ => u[10] = 0xFFFF,
        admin::ABORT => u[10] = ALL,
        admin::FORMAT_NVM => (u[1], u[10]) = (ALL, 0xEEF),
        admin::DOORBELL_BUFFER_CONFIG => u[both].fill(ALL),
        _ => {}
    }
}

/// Randomises bits that are not significant: none, one bit, one dword, several dwords, or all.
pub fn randomise_reserved(random: &mut Random, set: Set, sqe: &mut Sqe) {
    let significant_bits = significant_bits(set, sqe);
    let free: Vec<usize> = (0..16).filter(|&n| significant_bits[n] != ALL).collect();
    match random.below(8) {
        0 => {
            let n = pick(random, &free);
            sqe.dw[n] |= 1 << random.below(32) & !significant_bits[n];
        }
        1 => {
            let one = vec![pick(random, &free)];
            fill(random, sqe, &significant_bits, one);
        }
        2 => {
            let some: Vec<usize> = free.into_iter().filter(|_| chance(random, 40)).collect();
            fill(random, sqe, &significant_bits, some);
        }
        3 => fill(random, sqe, &significant_bits, free),
        _ => {}
    }
}

fn fill(
    random: &mut Random,
    sqe: &mut Sqe,
    significant_bits: &SignificantBits,
    dwords: Vec<usize>,
) {
    for n in dwords {
        let value = match random.below(4) {
            0 => ALL,
            _ => random.next() as u32,
        };
        sqe.dw[n] = sqe.dw[n] & significant_bits[n] | value & !significant_bits[n];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_bits_are_all_randomised_and_significant_bits_stay() {
        let mut random = Random::new(3);
        let admin_opcodes = (0..=255).map(|opcode| (Set::Admin, opcode));
        let opcodes = admin_opcodes.chain((0..=255).map(|opcode| (Set::Nvm, opcode)));
        for (set, opcode) in opcodes {
            let dw: [u32; 16] = std::array::from_fn(|n| match n {
                0 => opcode,
                _ => random.next() as u32,
            });
            let first = Sqe { dw };
            let significant_bits = significant_bits(set, &first);
            let mut seen_bits = [0; 16];
            for _ in 0..300 {
                let mut sqe = first;
                randomise_reserved(&mut random, set, &mut sqe);
                for n in 0..16 {
                    let other = sqe.dw[n] ^ first.dw[n];
                    assert_eq!(
                        other & significant_bits[n],
                        0,
                        "{set:?} {opcode:#x} dword {n}"
                    );
                    seen_bits[n] |= other;
                }
            }
            for n in 0..16 {
                assert_eq!(
                    seen_bits[n], !significant_bits[n],
                    "{set:?} {opcode:#x} dword {n}"
                );
            }
        }
    }
}
