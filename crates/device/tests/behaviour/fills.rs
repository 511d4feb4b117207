// SPDX-License-Identifier: Apache-2.0

//! Zeroing by the memories: exact to the block, and in the time that writing takes.

use device::Model;
use driver::workload::{run_job, IoJob};
use driver::{BlockRange, Erase, Host, NvmeDriver, SimHost};
use sim::Time;
use spec::nvme::{status, Sqe};

use crate::common::cuts::whole_when_cut_off;
use crate::common::{self, model};

const MEDIA: u64 = 1 << 30;

fn counter(c: &NvmeDriver<SimHost>, name: &str) -> f64 {
    common::counter(c.host(), name)
}

fn now(c: &NvmeDriver<SimHost>) -> Time {
    c.host().system().now()
}

#[test]
fn fills_of_any_size_at_any_address() {
    let mut c = common::controller("default");
    let base = 5000; // blocks
    let mut want: Vec<u8> = (0..6u32 << 20).map(|i| (i * 11 / 7) as u8 | 1).collect();
    for (i, part) in want.chunks(1 << 20).enumerate() {
        c.write(base + 2048 * i as u64, part).unwrap();
    }
    let mut random = sim::Random::new(7);
    let blocks = want.len() as u64 / 512;
    for round in 0..12 {
        let mut ranges = Vec::new();
        for _ in 0..1 + random.below(5) {
            let most = [20, 129, 700, 5000][random.below(4) as usize];
            let len = 1 + random.below(most);
            let at = random.below(blocks - len);
            want[at as usize * 512..(at + len) as usize * 512].fill(0);
            if round % 2 == 0 {
                c.write_zeroes(base + at, len).unwrap();
            } else {
                let lba = base + at;
                let blocks = len as u32;
                ranges.push(BlockRange { lba, blocks });
            }
        }
        c.deallocate(&ranges).unwrap();
        let mut back = vec![0; want.len()];
        for (i, part) in back.chunks_mut(1 << 20).enumerate() {
            c.read(base + 2048 * i as u64, part).unwrap();
        }
        let wrong = want.iter().zip(&back).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "round {round}: first wrong byte");
        for i in 0..20 {
            let at = (random.below(blocks - 8) & !7) as usize * 512;
            let data = vec![i * 2 + 1; 4096];
            c.write(base + at as u64 / 512, &data).unwrap();
            want[at..at + 4096].copy_from_slice(&data);
        }
    }
    if model() == Model::Rtl {
        assert!(counter(&c, "axi.ddr.fill_beats") > 10_000.0);
    }
    c.shutdown().unwrap();
}

mod sampled {
    use super::*;

    #[test]
    fn fills_leave_other_traffic_intact() {
        let mut c = common::controller("default");
        for _ in 0..3 {
            c.write_zeroes(1 << 20, 4096).unwrap();
            let job = IoJob {
                read_percent: 50,
                max_bytes: 1 << 14,
                commands: 200,
                verify: true,
                ..IoJob::default()
            };
            let outcome = run_job(&mut c, &job, &mut |_, _| true).unwrap();
            assert_eq!(outcome.report.commands, 200);
        }
        c.shutdown().unwrap();
    }
}

/// The whole device at little cost, and at the memories' speed.
#[test]
fn fills_of_the_whole_device_are_fast() {
    let mut c = common::controller("default");
    c.write((MEDIA >> 9) - 8, &[7; 4096]).unwrap();
    let from = now(&c);
    // The cost of the simulation.
    let work = match model() {
        Model::Rtl => "cycles.evaluated",
        Model::Fast => "events",
    };
    let before = counter(&c, work);
    let all = BlockRange {
        lba: 0,
        blocks: (MEDIA >> 9) as u32,
    };
    let limits = c.dataset_limits();
    assert_eq!(
        (limits.ranges, limits.range_blocks, limits.blocks),
        (255, 1 << 17, 1 << 17)
    );
    c.deallocate(&[all]).unwrap();
    let took = now(&c) - from;
    println!("1 GiB: {took} simulated");
    let mut back = [1; 4096];
    c.read((MEDIA >> 9) - 8, &mut back).unwrap();
    assert_eq!(back, [0; 4096]);
    let rate = MEDIA as f64 / took.as_secs();
    assert!((20e9..40e9).contains(&rate), "{rate} bytes/s");
    let cost = counter(&c, work) - before;
    assert!(cost < 1e6, "{cost} {work}");
    c.write(0, &[7; 4096]).unwrap();
    c.format(1, Erase::None).unwrap();
    c.read(0, &mut back).unwrap();
    assert_eq!(back, [0; 4096]);
    c.shutdown().unwrap();
}

/// Lists beyond what Identify recommends (DMRL, DMRSL, DMSL) are done completely: not all hosts
/// read these fields, and none has to.
#[test]
fn fills_beyond_the_recommended_limits() {
    let entry = |range: &BlockRange| {
        let mut bytes = [0; 16];
        bytes[4..8].copy_from_slice(&range.blocks.to_le_bytes());
        bytes[8..].copy_from_slice(&range.lba.to_le_bytes());
        bytes
    };
    let mut c = common::controller("default");
    let last = (MEDIA >> 9) - 1;
    let single: Vec<BlockRange> = (0..256)
        .map(|i| BlockRange {
            lba: 16 * i,
            blocks: 1,
        })
        .collect();
    let large = BlockRange {
        lba: 5,
        blocks: (last - 4) as u32,
    };
    let half = BlockRange {
        lba: last - (1 << 17) + 1,
        blocks: 1 << 17,
    };
    let list = c.host_mut().alloc(4096, 4096).unwrap();
    for (ranges, at) in [
        (single, 16 * 255),
        (vec![large], last),
        (vec![half; 2], last),
    ] {
        c.write(at, &[7; 512]).unwrap();
        let bytes: Vec<u8> = ranges.iter().flat_map(entry).collect();
        c.host_mut().dma_write(list, &bytes);
        let from = now(&c);
        let sqe = Sqe::deallocate(1, ranges.len()).with_prps(list, 0);
        c.submit_raw(0, sqe, 0).unwrap();
        c.ring(0).unwrap();
        let done = loop {
            if let Some(done) = c.poll(0).unwrap() {
                break done;
            }
            c.wait(from + Time::ms(200), "the list").unwrap();
        };
        assert_eq!(done.status, status::SUCCESS);
        println!("{} ranges: {}", ranges.len(), now(&c) - from);
        let mut back = [1; 512];
        c.read(at, &mut back).unwrap();
        assert_eq!(back, [0; 512]);
    }
    c.shutdown().unwrap();
}

#[test]
fn fills_that_are_cut_off_leave_whole_blocks() {
    whole_when_cut_off(common::controller("default"));
}
