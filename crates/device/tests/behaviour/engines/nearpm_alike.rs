// SPDX-License-Identifier: Apache-2.0

//! Random commands, errors of the memory, losses of power and damaged ranges on both models. They
//! give the same results, and leave the same on the media.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use ::device::{Factory, Model, RtlOptions};
use driver::Host;
use rtl::bitstream::stderr_progress;
use sim::{Bar, FailingRange, Media, Random, Time};
use spec::nearpm::{register, Command, Operation, RESERVED_BYTES};
use spec::regs::nearpm::{CONTROL, DOMAIN, FORGET, LINES, REFUSED, STORES, TAKEN, UNDER_WAY};

use crate::common::nearpm::{Kit, Pool};
use crate::common::{design, model, rest};

const SIZE: u64 = 1 << 16;
/// Bytes of objects, which often overlap.
const NEAR: u64 = 1024;
/// `read_error`, `write_error`, `torn`: the target of such a command is undefined.
const UNSURE: u32 = 0x83;
const SHOWN: [u64; 9] = [
    CONTROL,
    TAKEN,
    REFUSED,
    UNDER_WAY,
    STORES,
    DOMAIN,
    LINES,
    register::DEVICE,
    register::HIGHEST,
];

struct NearpmDevice {
    kit: Kit,
    file: File,
    bad: FailingRange,
}

struct DevicePair {
    devices: [NearpmDevice; 2],
    pools: [Pool; 2],
    registers: u64,
    reserved: u64,
    random: Random,
    fails: bool,
    history: Vec<String>,
}

impl NearpmDevice {
    fn new(model: Model) -> NearpmDevice {
        let design = design("nearpm");
        let mut progress = stderr_progress("nearpm");
        let factory = Factory::new(&design, model, &RtlOptions::default(), &mut progress);
        let media = Media::shared(design.media.bytes.0).unwrap();
        let file = media.shared_file().unwrap().try_clone_to_owned();
        NearpmDevice {
            file: file.unwrap().into(),
            bad: media.failing_range(),
            kit: Kit::before(factory.unwrap().device(media).unwrap(), &design),
        }
    }

    fn read(&self, at: u64, len: u64) -> Vec<u8> {
        let mut bytes = vec![0; len as usize];
        self.file.read_exact_at(&mut bytes, at).unwrap();
        bytes
    }

    fn flip(&self, at: u64) {
        let byte = self.read(at, 1)[0] ^ 1;
        self.file.write_all_at(&[byte], at).unwrap();
    }

    fn cut(&mut self, between: impl FnOnce(&mut NearpmDevice)) {
        let number = self.kit.host.device();
        self.kit.host.system_mut().power_off(number);
        rest(&mut self.kit.host, Time::us(20));
        between(self);
        self.kit.host.system_mut().power_on(number);
        self.comes_up();
    }

    fn comes_up(&mut self) {
        rest(&mut self.kit.host, Time::us(50));
        self.kit.page = Kit::page_of(&design("nearpm"));
    }

    fn set(&mut self, at: u64, value: u64) {
        let value = value.to_le_bytes();
        self.kit.host.write(Bar::Control, at, &value).unwrap();
        rest(&mut self.kit.host, Time::us(5));
    }
}

impl DevicePair {
    fn new(seed: u64) -> DevicePair {
        let design = design("nearpm");
        let pool = |number: u8| Pool {
            bytes: SIZE,
            logs: SIZE / 2,
            log_bytes: 8192 >> number,
            threads: 2,
            ..Pool::new(number, 7, (1 << 20) + u64::from(number) * SIZE)
        };
        DevicePair {
            devices: [Model::Fast, Model::Rtl].map(NearpmDevice::new),
            pools: [pool(0), pool(1)],
            registers: design.engines().unwrap()[0].offset,
            reserved: design.media.bytes.0 - RESERVED_BYTES,
            random: Random::new(seed),
            fails: false,
            history: Vec::new(),
        }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    fn say(&self, what: &str) -> ! {
        let last = self.history.len().saturating_sub(40);
        panic!("{what}, after\n{}", self.history[last..].join("\n"));
    }

    fn both<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: String,
        act: impl Fn(&mut NearpmDevice) -> T,
    ) -> T {
        let [fast, rtl] = self.devices.each_mut().map(act);
        self.history.push(format!("{what}: {fast:x?}"));
        if fast != rtl {
            self.say(&format!("fast {fast:x?}, RTL {rtl:x?}"));
        }
        fast
    }

    fn expect_same(&self, at: u64, len: u64) {
        let [fast, rtl] = self.devices.each_ref().map(|one| one.read(at, len));
        for (n, (fast, rtl)) in (0..).zip(fast.chunks(64).zip(rtl.chunks(64))) {
            if fast != rtl {
                let at = at + 64 * n;
                self.say(&format!("line {at:#x}: fast {fast:x?}, RTL {rtl:x?}"));
            }
        }
    }

    /// Copies what is undefined from one device to the other.
    fn level(&self, at: u64, len: u64) {
        let [fast, rtl] = &self.devices;
        fast.file.write_all_at(&rtl.read(at, len), at).unwrap();
    }

    fn fail(&mut self, range: Range<u64>) {
        self.fails = !range.is_empty();
        self.history.push(format!("{range:x?} fails"));
        self.devices
            .iter()
            .for_each(|one| one.bad.set(range.clone()));
    }

    fn offset(&mut self) -> u64 {
        let end = [NEAR, SIZE / 2 - 4096][self.below(2) as usize];
        self.below(end)
    }

    fn command(&mut self, pool: &Pool) -> Command {
        use Operation::*;
        let thread = (self.below(20) * 3 / 20) as u8 % 3;
        let bytes = [1, 8, 64, 100, 500, 3000][self.below(6) as usize];
        let (from, to) = (self.offset(), self.offset());
        let transaction = self.below(100);
        let of = |operation| Command {
            transaction,
            ..pool.command(operation, thread)
        };
        match self.below(25) {
            0..=1 => pool.map(),
            2 if self.below(3) == 0 => of(PoolUnmap),
            2..=5 => pool.open(thread, self.below(1000)),
            6..=9 => pool.undo(thread, from, bytes),
            10..=11 => pool.redo(thread, from, bytes, to),
            12 => Command {
                operation: Checkpoint,
                ..pool.undo(thread, from & !4095, 4096)
            },
            13 => pool.copy(thread, from, bytes, to),
            14 => pool.switch(thread, to & !7, self.random.next()),
            15 => of(Commit),
            16 => Command {
                value: 1 + self.below(3),
                ..of(Commit)
            },
            17 => of(CommitRedo),
            18 => pool.apply(thread, 64 * (1 + self.below(6)), bytes, to),
            19 => of(Delete),
            20..=21 => of(Abort),
            22..=23 => of(Recover),
            _ => of(Sync),
        }
    }

    fn other(&mut self, pool: &Pool) {
        let registers = self.registers;
        let log = pool.log(self.below(2) as u8);
        match self.below(12) {
            0..=3 => {
                let (at, len) = (pool.media + self.below(SIZE - 64), 1 + self.below(64));
                let data = vec![self.random.next() as u8; len as usize];
                self.both(format!("store {at:x} {len}"), |one| {
                    one.kit.store(at, &data);
                    rest(&mut one.kit.host, Time::us(3));
                });
            }
            4..=5 => {
                let from = pool.media + self.below(SIZE / 64) * 64;
                let most = [2, 64][self.below(2) as usize];
                let end = from + 64 * (1 + self.below(most));
                let ends = self.fails || self.below(4) == 0;
                self.fail(if ends { 0..0 } else { from..end });
            }
            6 => {
                let (resets, forgets) = (self.below(3) == 0, self.below(2));
                self.both(format!("power: {resets} {forgets}"), |one| {
                    one.set(registers + FORGET, forgets);
                    if !resets {
                        return one.cut(|_| ());
                    }
                    let number = one.kit.host.device();
                    one.kit.host.system_mut().function_reset(number);
                    one.comes_up();
                });
            }
            7 => {
                let at = log + self.below(NEAR);
                self.both(format!("a bit of {at:x}"), |one| one.flip(at));
            }
            8 => {
                let value = [0, 0x100, 0x101, 0x100][self.below(4) as usize];
                self.both(format!("device {value:x}"), |one| {
                    let at = registers + register::DEVICE;
                    one.kit.host.write32(Bar::Control, at, value).unwrap();
                    rest(&mut one.kit.host, Time::us(5));
                });
            }
            9 => {
                let (peer, number) = (self.below(2), self.below(100));
                let log = u64::from(pool.number) << 4 | self.below(2);
                self.both(format!("{peer} tells {number} of {log:x}"), |one| {
                    let at = registers + register::DONE + 8 * peer;
                    one.set(at, log << 56 | number);
                });
            }
            10 if self.below(4) == 0 => {
                let (how, reserved) = (self.below(3), self.reserved);
                let at = reserved + self.below(700 * 64);
                self.fail(0..0);
                self.both(format!("damaged: {how} at {at:x}"), |one| {
                    if how == 0 {
                        one.bad.set(reserved..reserved + RESERVED_BYTES);
                    }
                    one.cut(|one| {
                        one.bad.set(if how == 1 { at..at + 1 } else { 0..0 });
                        if how == 2 {
                            one.flip(at);
                        }
                    });
                    one.bad.set(0..0);
                });
            }
            _ => {
                if self.below(3) == 0 {
                    self.both("forget".into(), |one| one.set(registers + FORGET, 1));
                }
                let log = u64::from(pool.number) << 4 | self.below(2);
                for at in SHOWN {
                    self.both(format!("register {at:x}"), |one| {
                        one.kit.host.read32(Bar::Control, registers + at).unwrap()
                    });
                }
                self.both(format!("seen of {log:x}"), |one| {
                    let host = &mut one.kit.host;
                    let at = registers + register::SELECT;
                    host.write32(Bar::Control, at, log as u32).unwrap();
                    let places = [0, 8, register::ALL - register::SEEN];
                    places.map(|at| {
                        let at = registers + register::SEEN + at;
                        host.read32(Bar::Control, at).unwrap()
                    })
                });
            }
        }
    }

    fn step(&mut self) {
        let pool = self.pools[self.below(2) as usize];
        let mut unsure = false;
        if self.below(4) == 0 {
            self.other(&pool);
        } else {
            let command = self.command(&pool);
            let end = self.both(format!("{command:x?}"), |one| {
                let end = one.kit.ends(&command);
                rest(&mut one.kit.host, Time::us(3));
                (end.result, end.value)
            });
            unsure = self.fails && end.0 & UNSURE != 0;
        }
        for pool in &self.pools {
            for thread in 0..2 {
                self.expect_same(pool.log(thread), 64);
            }
            if unsure {
                self.level(pool.media, SIZE);
            }
            self.expect_same(pool.media, SIZE);
        }
    }
}

fn from_env(name: &str, otherwise: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.and_then(|v| v.parse().ok()).unwrap_or(otherwise)
}

mod sampled {
    use super::*;

    /// More of them, and different ones: `SEEDS=60 SEED=1000`.
    #[test]
    #[ignore = "takes seconds, and the RTL"]
    fn nearpm_models_agree_on_random_programs() {
        if model() != Model::Rtl {
            return;
        }
        let first = from_env("SEED", 1);
        for seed in first..first + from_env("SEEDS", 4) {
            let mut two = DevicePair::new(seed);
            two.history.push(format!("seed {seed}"));
            (0..400).for_each(|_| two.step());
        }
    }
}
