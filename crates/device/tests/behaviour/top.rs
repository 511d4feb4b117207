// SPDX-License-Identifier: Apache-2.0

//! The device as seen from its ports.

use sim::{Bar, Random, Time};

use crate::common::{self, design, Bench};

const MEDIA: u64 = 1 << 30;
const NVM_DELAY: u64 = 0x1_0000;

fn bench() -> Bench {
    Bench::new(&design("default"))
}

mod sampled {
    use super::*;

    #[test]
    fn top_comes_up() {
        let mut b = bench();
        let cap = u64::from_le_bytes(b.read(Bar::Nvme, 0, 8).unwrap().try_into().unwrap());
        assert_eq!(cap & 0xFFFF, 1023, "CAP.MQES: {cap:#x}");
        assert_eq!(cap >> 32 & 0xF, 0, "CAP.DSTRD: {cap:#x}");
        assert_eq!(b.read32(Bar::Nvme, 8), 0x0001_0400, "VS: 1.4");
        assert_eq!(b.read32(Bar::Nvme, 0x1C) & 1, 0, "CSTS.RDY");
        b.run(Time::us(4)); // nvm_delay sweeps its counters after reset
        assert!(b.device.idle());
    }

    #[test]
    fn top_lists_its_blocks() {
        let mut b = bench();
        let header: Vec<u32> = (0..8).map(|i| b.read32(Bar::Control, i * 4)).collect();
        assert_eq!(
            header,
            [0x4E53_4456, 1, 6, 250_000, MEDIA as u32, 0, 2, 4096]
        );
        let block = |b: &mut Bench, i: u64| -> Vec<u32> {
            (0..8)
                .map(|w| b.read32(Bar::Control, 0x100 + i * 32 + w * 4))
                .collect()
        };
        assert_eq!(block(&mut b, 0), [1, 0x1_0000, 0, 0, 0, 0x1_0000, 16, 1024]);
        assert_eq!(block(&mut b, 1), [3, 0x1_0000, 0, 2, 0, 0, MEDIA as u32, 0]);
        assert_eq!(block(&mut b, 4), [4, 0x1_0000, 0, 4, 0x1000, 0x1000, 2, 0]);
        for channel in 0..2 {
            let offset = NVM_DELAY as u32 + 0x1000 * channel;
            assert_eq!(
                block(&mut b, 2 + u64::from(channel)),
                [2, 0x1_0000, channel, 4, offset, 0x1000, channel, 512]
            );
            assert_eq!(
                b.read32(Bar::Control, offset.into()),
                0x4E56_444C,
                "nvm_delay's ID"
            );
        }
        let pages = MEDIA as u32 / 4096;
        assert_eq!(
            block(&mut b, 5),
            [6, 0x1_0000, 0, 2, 0, pages, 2 << 16, 4096]
        );
        assert_eq!(block(&mut b, 6), [0; 8]);
        assert_eq!(b.read(Bar::Control, 0x4_0000, 4), None, "reserved");
    }

    /// A block decodes its whole window: writes after its registers change none of them.
    #[test]
    fn top_addresses_after_the_registers_are_empty() {
        use driver::control::block;
        use spec::regs;
        for name in ["nearpm", "fuzz", "fuzz-sort"] {
            let mut b = Bench::new(&design(name));
            b.run(Time::us(4));
            let count = b.read32(Bar::Control, 8);
            for n in 0..u64::from(count) {
                let word = |b: &mut Bench, i: u64| b.read32(Bar::Control, 0x100 + n * 32 + i * 4);
                let (kind, bar, offset) = (word(&mut b, 0), word(&mut b, 3), word(&mut b, 4));
                let size = match kind {
                    block::NVM_DELAY => regs::nvm_delay::SIZE,
                    block::QOS => regs::qos::SIZE,
                    block::COPY => regs::copy::SIZE,
                    block::SCAN => regs::scan::SIZE,
                    block::DICT_DECODE => regs::dict_decode::SIZE,
                    block::SORTER => regs::sorter::SIZE,
                    block::ROW_SHUFFLE => regs::row_shuffle::SIZE,
                    block::PIPELINE => regs::pipeline::SIZE,
                    block::NEARPM => regs::nearpm::SIZE,
                    _ => continue,
                };
                assert_eq!(bar, 4);
                let all = |b: &mut Bench, from: u64, to: u64| -> Vec<u32> {
                    let places = (from..to).step_by(4);
                    let words = places.map(|at| b.read32(Bar::Control, u64::from(offset) + at));
                    words.collect()
                };
                let before = all(&mut b, 0, size);
                for at in (size..4096).step_by(4) {
                    let ones = u32::MAX.to_le_bytes();
                    b.post(Bar::Control, u64::from(offset) + at, &ones);
                }
                b.run(Time::us(20));
                let block = block::name(kind);
                assert_eq!(all(&mut b, 0, size), before, "{name}: {block}");
                let rest = all(&mut b, size, 4096);
                assert!(rest.iter().all(|word| *word == 0), "{name}: {block}");
            }
        }
    }
}

#[test]
fn top_instances_share_nothing_and_repeat() {
    let traffic = |b: &mut Bench, seed: u64| {
        let mut random = Random::new(seed);
        for _ in 0..60 {
            let data: Vec<u8> = (0..256).map(|_| random.next() as u8).collect();
            b.post(Bar::Pm, random.below(1000) * 256, &data);
            let now = b.device.now();
            b.host.ask(now, Bar::Pm, random.below(1000) * 256, 256);
            b.run(Time::ns(random.below(500)));
        }
    };
    let alone = |seed| {
        let mut b = bench();
        traffic(&mut b, seed);
        b.run(Time::us(50));
        // All counts are the same, except the time of the simulation.
        let counters = b.device.counters().into_iter();
        let counters: Vec<_> = counters.filter(|c| c.unit != "s").collect();
        (b.host.hash(), counters)
    };
    let (first, second) = (alone(1), alone(2));
    assert_eq!(first, alone(1));
    assert_ne!(first.0, second.0);
    // Both in one process at the same time, on two threads.
    let together: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = [1, 2]
            .map(|seed| scope.spawn(move || alone(seed)))
            .into_iter()
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert_eq!(together, [first, second]);
}

fn pages_with_channels(channels: u32) {
    let mut b = Bench::new(&common::designs::channels(channels));
    assert_eq!(b.read32(Bar::Control, 0x18), channels);
    for page in 0..32u64 {
        b.post(Bar::Pm, page * 4096, &[page as u8 + 1; 4096]);
    }
    b.run(Time::us(50));
    for page in 0..32u64 {
        assert!(
            b.stored(page * 4096, 4096) == vec![page as u8 + 1; 4096],
            "{channels} channels, page {page}"
        );
    }
}

#[test]
fn top_with_one_channel() {
    pages_with_channels(1);
}

#[test]
fn top_with_four_channels() {
    pages_with_channels(4);
}

mod long {
    mod sampled {
        #[test]
        #[ignore = "compiles a separate device"]
        fn top_with_four_channels() {
            crate::top::pages_with_channels(4);
        }
    }
}
