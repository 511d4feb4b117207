// SPDX-License-Identifier: Apache-2.0

//! Random admin commands that change no queue.

use nvme::feature::BEHAVIOR_BYTES;
use spec::nvme::{admin, feature, Sqe, ALL_NAMESPACES};

use super::{Command, Fill, Generator};
use crate::random::bytes;
use crate::PAGE;

/// Opcodes that change queues or wait, and those that take data or namespaces.
const KNOWN: [u8; 11] = [
    admin::DELETE_IO_SQ,
    admin::CREATE_IO_SQ,
    admin::DELETE_IO_CQ,
    admin::CREATE_IO_CQ,
    admin::DOORBELL_BUFFER_CONFIG,
    admin::FORMAT_NVM,
    admin::ASYNC_EVENT_REQUEST,
    admin::SET_FEATURES,
    admin::GET_LOG_PAGE,
    admin::IDENTIFY,
    admin::GET_FEATURES,
];

impl Generator<'_> {
    /// An admin command.
    pub fn admin(&mut self) -> Option<Command> {
        let mut command = match self.random.below(100) {
            0..=28 => self.identify()?,
            29..=51 => self.log()?,
            52..=82 => self.feature()?,
            83..=87 => Command::plain(Sqe::new(admin::ASYNC_EVENT_REQUEST)),
            88 => Command::plain(Sqe::new(admin::KEEP_ALIVE)),
            89 | 90 => self.format(),
            _ => {
                let opcode = self.random.next() as u8;
                // The host offers shadow doorbells only if it knows the command.
                let offers = opcode == admin::DOORBELL_BUFFER_CONFIG && self.limits.doorbell_buffer;
                match KNOWN.contains(&opcode) {
                    true if self.is_hostile() && !offers => Command::plain(Sqe::new(opcode)),
                    true => Command::plain(Sqe::new(0x19)),
                    false => Command::plain(Sqe::new(opcode)),
                }
            }
        };
        self.flags(&mut command.sqe, &[1, 2, 3], &[1, 2, 3]);
        Some(command)
    }

    /// An admin command without data, whose flags may be wrong.
    pub fn with_admin_flags(&mut self, mut sqe: Sqe) -> Command {
        self.flags(&mut sqe, &[1, 2, 3], &[1, 2, 3]);
        Command::plain(sqe)
    }

    fn format(&mut self) -> Command {
        let right = match self.chance(80) {
            true => self.namespace().nsid,
            false => ALL_NAMESPACES,
        };
        let odd = match self.is_wrong(20) {
            true => self.random.next() as u32 & 0xFFF,
            false => 0,
        };
        let ses = self.random.below(2) as u32;
        let sqe = Sqe::new(admin::FORMAT_NVM).with_nsid(self.nsid(right));
        Command::plain(sqe.with_cdw(10, odd | ses << 9))
    }

    fn identify(&mut self) -> Option<Command> {
        let cns = match self.random.below(20) {
            0..=11 => self.random.below(4),
            12 | 13 => 6,
            14 | 15 => 8,
            16 => 2,
            17 => 0x12 + self.random.below(2),
            _ => self.random.below(256),
        } as u8;
        let count = u64::from(self.limits.namespaces.count());
        // Inactive namespaces, too.
        let right = match cns {
            0 | 3 | 8 => 1 + self.random.below(count) as u32,
            _ => self.random.below(count + 1) as u32,
        };
        let mut sqe = Sqe::identify(cns, self.nsid(right));
        if self.chance(10) {
            // CNTID and CSI.
            sqe.dw[10] |= (self.random.below(4) as u32) << 16;
            sqe.dw[11] = (self.random.below(3) as u32) << 24;
        }
        self.with_prps(sqe, PAGE, Fill::Nothing)
    }

    fn log(&mut self) -> Option<Command> {
        let lid = match self.chance(92) {
            true => self.random.below(6),
            false => self.random.below(256),
        };
        let dwords = match self.random.below(60) {
            // The largest transfer.
            0 => self.limits.transfer.min(1 << 20) / 4,
            1..=3 => 1 + self.random.below(20_000),
            4..=20 => 1 + self.random.below(1024),
            21..=38 => 1024,
            _ => 128,
        };
        let offset = match self.random.below(10) {
            0..=5 => 0,
            6 => self.random.below(16) * 64,
            7 => self.random.below(128) * 4,
            8 => self.random.below(1025) * 4,
            _ => self.pick(&[1, 2, 510, 516, 4096, 4100, 1 << 32, 1 << 63]),
        };
        let numd = match self.chance(98) {
            true => dwords - 1,
            false => self.pick(&[0x4_0000, 0xFFFF_FFFF, 1 << 24]),
        };
        let rae = self.random.below(2) as u32;
        let nsid = match self.chance(50) {
            true => ALL_NAMESPACES,
            false => self.nsid(0),
        };
        let sqe = Sqe::new(admin::GET_LOG_PAGE)
            .with_nsid(nsid)
            .with_cdw(10, (numd as u32 & 0xFFFF) << 16 | rae << 15 | lid as u32)
            .with_cdw(11, (numd >> 16) as u32 & 0xFFFF)
            .with_cdw(12, offset as u32)
            .with_cdw(13, (offset >> 32) as u32);
        self.with_prps(sqe, dwords * 4, Fill::Nothing)
    }

    fn feature(&mut self) -> Option<Command> {
        let set = self.chance(50);
        let mut fid = match self.chance(75) {
            true => self.pick(&[1, 2, 4, 5, 7, 8, 9, 0xA, 0xB, 0xE, 0xF, 0x16]),
            // Any identifier, most often one that NVM Express defines.
            false if self.chance(50) => self.random.below(0x20) as u32,
            false => self.random.below(256) as u32,
        };
        if set && !self.is_hostile() && fid as u8 == feature::KEEP_ALIVE_TIMER {
            // A separate step sets it.
            fid = feature::ARBITRATION.into();
        }
        let value = match self.random.below(9) {
            0..=2 => self.random.next() as u32,
            3 => self.random.below(16) as u32,
            4 => (self.random.below(16) << 16 | self.random.below(400)) as u32,
            5 => 1 << self.random.below(32),
            // Interrupt coalescing: thresholds that are reached, times up to 25.5 ms.
            6 => (self.random.below(256) << 8 | self.random.below(20)) as u32,
            7 => (self.random.below(2) << 16 | self.random.below(8)) as u32,
            _ => 0,
        };
        let count = u64::from(self.limits.namespaces.count());
        let one = 1 + self.random.below(count) as u32;
        let right = match (fid, set && self.chance(20)) {
            (5, false) => one,
            (5, true) => ALL_NAMESPACES,
            _ => 0,
        };
        let save = if self.chance(6) { 1 << 31 } else { 0 };
        let select = match !set && self.chance(18) {
            true => (self.random.below(8) as u32) << 8,
            false => 0,
        };
        let nsid = match self.chance(87) {
            true => right,
            false => self.nsid(one),
        };
        let opcode = match set {
            true => admin::SET_FEATURES,
            false => admin::GET_FEATURES,
        };
        let sqe = Sqe::new(opcode)
            .with_nsid(nsid)
            .with_cdw(10, fid | save | select)
            .with_cdw(11, value);
        let behavior = fid as u8 == feature::HOST_BEHAVIOR_SUPPORT;
        let len = if behavior { BEHAVIOR_BYTES } else { 8 };
        let mut data = match self.chance(60) {
            true => bytes(self.random, len),
            false => vec![0; len as usize],
        };
        // Mostly ACRE; reserved bits have no effect.
        if behavior && self.chance(90) {
            data[0] = self.random.below(2) as u8;
        }
        self.with_prps(sqe, len, Fill::Bytes(data))
    }
}
