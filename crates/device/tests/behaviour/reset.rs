// SPDX-License-Identifier: Apache-2.0

//! Resets of the function and failing power while accesses are under way. The memories are not
//! reset with the function, and answer late.

use driver::{Buffer, DriverConfig, Host, IoCommand, NvmeDriver, SimHost};
use sim::memctrl::MemoryModel;
use sim::{Bar, Random, Time};

use crate::common::{self, design, Bench};

const LINE: usize = 64;
const PAGE: u64 = 4096;

fn bench(memory: MemoryModel) -> Bench {
    Bench::with(&design("default"), memory)
}

fn noise(random: &mut Random, len: u64) -> Vec<u8> {
    (0..len).map(|_| random.next() as u8).collect()
}

fn memories() -> [MemoryModel; 2] {
    [
        MemoryModel::Fixed(Time::ns(900)),
        MemoryModel::Ddr4(sim::DramConfig::default()),
    ]
}

/// Loads of one life that are answered in the next one must not be taken for answers to the next
/// one's loads.
#[test]
fn reset_drops_answers_of_an_earlier_life() {
    for memory in memories() {
        let mut b = bench(memory);
        let mut random = Random::new(1);
        let old = noise(&mut random, 4 * PAGE);
        let new = noise(&mut random, 4 * PAGE);
        b.store(0, &old);
        b.store(1 << 20, &new);
        b.run(Time::us(4));
        for phase in 0..300 {
            let now = b.device.now();
            for page in 0..4 {
                b.host.ask(now, Bar::Pm, page * PAGE, PAGE as u32);
                b.host.ask(now, Bar::Pm, page * PAGE + 128, 64);
            }
            b.run(Time(4000 * phase));
            b.function_reset();
            if phase % 3 == 0 {
                b.function_reset(); // and at once another
            }
            for page in 0..4 {
                let got = b.read(Bar::Pm, (1 << 20) + page * PAGE, 192).unwrap();
                let at = (page * PAGE) as usize;
                assert!(got == new[at..at + 192], "phase {phase}, page {page}");
            }
        }
    }
}

/// Bursts of stores that are cut leave whole beats, and none of their beats is taken for one of the
/// next life.
#[test]
fn reset_cuts_stores_between_beats() {
    for memory in memories() {
        let mut b = bench(memory);
        let mut random = Random::new(2);
        b.run(Time::us(4));
        let mut before = b.stored(0, 2 * PAGE as usize);
        for phase in 0..300 {
            let now = b.device.now();
            let data = noise(&mut random, 2 * PAGE);
            for page in 0..2usize {
                for quarter in 0..4usize {
                    let at = page * PAGE as usize + quarter * 1024;
                    b.host.post(now, Bar::Pm, at as u64, &data[at..at + 1024]);
                }
            }
            b.run(Time(4000 * phase));
            b.function_reset();
            let fresh = noise(&mut random, 192);
            b.post(Bar::Pm, 1 << 20, &fresh);
            let got = b.read(Bar::Pm, 1 << 20, 192).unwrap();
            assert!(got == fresh, "phase {phase}: a store of the new life");
            let after = b.stored(0, 2 * PAGE as usize);
            for page in [0, PAGE as usize] {
                let mut cut = false; // lines of one page are written in order
                for line in (page..page + PAGE as usize).step_by(LINE) {
                    let is = &after[line..line + LINE];
                    let old = is == &before[line..line + LINE];
                    let new = is == &data[line..line + LINE];
                    assert!(old || new, "phase {phase}: the line at {line:#x} is torn");
                    assert!(!(new && cut), "phase {phase}: {line:#x} came before others");
                    cut |= old && !new;
                }
            }
            before = after;
        }
    }
}

/// Blocks that are written and read by NVMe commands while the function is reset or the power
/// fails.
struct Blocks {
    c: NvmeDriver<SimHost>,
    random: Random,
    /// The contents of each block before the traffic, and what the commands under way write.
    old: Vec<u8>,
    new: Vec<u8>,
}

/// Blocks, 4 KiB commands, and the bytes of a block.
const BLOCKS: usize = 256;
const PER_COMMAND: usize = 8;
const BLOCK: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq)]
enum CutKind {
    FunctionReset,
    TwoResets,
    Power,
}

fn queues() -> DriverConfig {
    DriverConfig {
        admin_entries: 16,
        io_queues: 2,
        io_entries: 64,
        ..DriverConfig::default()
    }
}

impl Blocks {
    fn new(memory: MemoryModel, seed: u64) -> Blocks {
        let design = design("default");
        let device = common::device(&common::factory_with(&design, memory), &design);
        let host = common::host_of(&design, device);
        let mut blocks = Blocks {
            c: NvmeDriver::start(host, queues()).unwrap(),
            random: Random::new(seed),
            old: vec![0; BLOCKS * BLOCK],
            new: Vec::new(),
        };
        let old = noise(&mut blocks.random, (BLOCKS * BLOCK) as u64);
        blocks.c.write(0, &old).unwrap();
        blocks.old = old;
        blocks
    }

    /// 32 commands, every other one a write, and stores and loads of another part of the PM window.
    fn begin(&mut self) -> Vec<(u64, u64)> {
        self.new = noise(&mut self.random, (BLOCKS * BLOCK) as u64);
        let bytes = (PER_COMMAND * BLOCK) as u64;
        let mut buffers = Vec::new();
        for command in 0..BLOCKS / PER_COMMAND {
            let buffer = self.c.host_mut().alloc(bytes, PAGE).unwrap();
            buffers.push((buffer, bytes));
            let at = command * bytes as usize;
            let (lba, blocks) = ((command * PER_COMMAND) as u64, PER_COMMAND as u32);
            let io = if command % 2 == 0 {
                self.c
                    .host_mut()
                    .dma_write(buffer, &self.new[at..at + bytes as usize]);
                IoCommand::Write { lba, blocks }
            } else {
                IoCommand::Read { lba, blocks }
            };
            self.c
                .submit(command % 2, io, &Buffer::Contiguous(buffer), 0)
                .unwrap();
        }
        self.c.ring(0).unwrap();
        self.c.ring(1).unwrap();
        for i in 0..8 {
            let line = [i as u8; 256];
            let host = self.c.host_mut();
            host.write(Bar::Pm, (1 << 24) + 256 * i, &line).unwrap();
        }
        buffers
    }

    /// Cuts the traffic after this time, and starts again.
    fn cut(mut self, after: Time, cut: CutKind) -> Blocks {
        let buffers = self.begin();
        let host = self.c.host_mut();
        let number = host.device();
        let system = host.system_mut();
        system.advance_until(system.now() + after).unwrap();
        match cut {
            CutKind::Power => {
                system.power_off(number);
                system.power_on(number);
            }
            _ => system.function_reset(number),
        }
        if cut == CutKind::TwoResets {
            system.function_reset(number);
        }
        let mut host = self.c.into_host();
        for (addr, bytes) in buffers {
            host.free(addr, bytes);
        }
        self.c = NvmeDriver::start(host, queues()).unwrap();
        self
    }

    /// Every block is old or new; returns how many are new.
    fn check(&mut self, what: &str) -> usize {
        let mut is = vec![0; BLOCKS * BLOCK];
        self.c.read(0, &mut is).unwrap();
        let mut fresh = 0;
        for at in (0..is.len()).step_by(BLOCK) {
            let (block, writes) = (&is[at..at + BLOCK], at / (PER_COMMAND * BLOCK) % 2 == 0);
            let new = writes && block == &self.new[at..at + BLOCK];
            let old = block == &self.old[at..at + BLOCK];
            assert!(old || new, "{what}: block {} is torn", at / BLOCK);
            fresh += usize::from(new);
        }
        self.old = is;
        fresh
    }
}

fn blocks_stay_whole(cut: CutKind, phases: u64, step: u64) {
    for memory in memories() {
        let mut b = Blocks::new(memory, 3);
        let mut seen = [false; 3]; // none, some, all of the blocks are new
        for phase in 0..phases {
            b = b.cut(Time::ns(800) + Time(4000 * step * phase), cut);
            let fresh = b.check(&format!("{cut:?} at phase {phase}"));
            seen[match fresh {
                0 => 0,
                n if n < BLOCKS / 2 => 1,
                _ => 2,
            }] = true;
        }
        assert!(seen[0] && seen[1], "the phases are not those of the writes");
    }
}

#[test]
fn reset_of_the_function_leaves_whole_blocks() {
    blocks_stay_whole(CutKind::FunctionReset, 30, 61);
}

mod sampled {
    use super::*;

    #[test]
    fn reset_twice_leaves_whole_blocks() {
        blocks_stay_whole(CutKind::TwoResets, 12, 151);
    }

    #[test]
    fn power_loss_leaves_whole_blocks() {
        blocks_stay_whole(CutKind::Power, 30, 61);
    }

    /// Accesses that `nvm_delay` holds for 100 us end with a reset of the function, and so does the
    /// delay.
    #[test]
    fn reset_ends_delays() {
        let mut b = bench(MemoryModel::Fixed(Time::ns(300)));
        let mut random = Random::new(4);
        let new = noise(&mut random, PAGE);
        b.store(1 << 20, &new);
        let slow = 25_000 << 12; // cycles, Q20.12
        for phase in 0..40 {
            b.run(Time::us(2));
            set(&mut b, &[(0x10, 1), (0x40, slow), (0x48, slow), (0x14, 1)]);
            b.run(Time::us(1));
            let now = b.device.now();
            for i in 0..6 {
                b.host.post(now, Bar::Pm, i * PAGE, &new[..1000]);
                b.host.ask(now, Bar::Pm, i * PAGE, 1000);
            }
            b.run(Time::ns(37 * phase));
            b.function_reset();
            let took = b.device.now() - now;
            assert!(took < Time::us(6), "phase {phase}: {took}");
            let start = b.device.now();
            assert!(b.read(Bar::Pm, 1 << 20, 192).unwrap() == new[..192]);
            let took = b.device.now() - start;
            assert!(took < Time::us(3), "phase {phase}: a load takes {took}");
        }
    }
}

/// Every 15th cycle of a window of 1800. With `EVERY_CYCLE=1` each of them, which takes minutes on
/// the RTL model.
#[test]
fn reset_at_every_cycle_leaves_whole_blocks() {
    let step = if std::env::var_os("EVERY_CYCLE").is_some() {
        1
    } else {
        15
    };
    for cut in [CutKind::FunctionReset, CutKind::Power] {
        blocks_stay_whole(cut, 1800 / step, step);
    }
}

const NVM_DELAY: u64 = 0x1_0000;

fn set(b: &mut Bench, registers: &[(u64, u32)]) {
    for channel in 0..2 {
        for &(offset, value) in registers {
            b.write32(Bar::Control, NVM_DELAY + 0x1000 * channel + offset, value);
        }
    }
}
