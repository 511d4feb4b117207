// SPDX-License-Identifier: Apache-2.0

//! Commands about blocks on the device: from the driver through the link to the media.

use driver::workload::{run_job, BufferLayout, IoJob};
use driver::BlockRange;

use crate::common;

const MEDIA: u64 = 1 << 30;

mod sampled {
    use super::*;

    #[test]
    fn blocks_by_sgls_and_fused_commands() {
        let mut c = common::controller("default");
        let data: Vec<u8> = (0..1 << 20).map(|i| (i * 13 / 7) as u8).collect();
        c.set_sgl(true).unwrap();
        c.write(64, &data).unwrap();
        assert!(c.compare(64, &data).unwrap());
        c.set_sgl(false).unwrap();
        let mut back = vec![0; data.len()];
        c.read(64, &mut back).unwrap();
        assert!(back == data);
        let (old, new) = (&data[..4096], &data[4096..8192]);
        for sgl in [false, true] {
            c.set_sgl(sgl).unwrap();
            assert!(c.compare_and_write(64, old, new).unwrap());
            assert!(!c.compare_and_write(64, old, old).unwrap());
            assert!(c.compare(64, new).unwrap());
            c.write(64, old).unwrap();
            let job = IoJob {
                read_percent: 50,
                max_bytes: 1 << 16,
                queues: 2,
                commands: 300,
                layout: BufferLayout::Scattered,
                verify: true,
                start: 4 << 20,
                ..IoJob::default()
            };
            let outcome = run_job(&mut c, &job, &mut |_, _| true).unwrap();
            assert_eq!(outcome.report.commands, 300);
        }
        c.shutdown().unwrap();
    }
}

#[test]
fn blocks_zeroed_deallocated_compared_verified() {
    let mut c = common::controller("default");
    let last = MEDIA / 512;
    let data: Vec<u8> = (0..1 << 20).map(|i| ((i * 11 / 7) | 1) as u8).collect();
    c.write(100, &data).unwrap();
    assert!(c.compare(100, &data).unwrap());
    for at in [0, 4097, data.len() - 1] {
        let mut other = data.clone();
        other[at] ^= 0x10;
        assert!(!c.compare(100, &other).unwrap(), "byte {at}");
    }
    let mut want = data;
    c.write_zeroes(103, 50).unwrap();
    want[3 * 512..53 * 512].fill(0);
    let ranges: Vec<BlockRange> = (0..300)
        .map(|i| BlockRange {
            lba: 200 + 5 * i,
            blocks: i as u32 % 4,
        })
        .collect();
    c.deallocate(&ranges).unwrap();
    for range in &ranges {
        let at = (range.lba - 100) as usize * 512;
        want[at..at + range.blocks as usize * 512].fill(0);
    }
    let mut back = vec![0; want.len()];
    c.read(100, &mut back).unwrap();
    assert!(back == want);
    assert!(c.compare(100, &want).unwrap());

    let many = 65_536 + 7; // more than a command
    c.verify(0, many).unwrap();
    let error = c.verify(last - many + 1, many).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("Verify failed: LBA Out of Range"),
        "{error}"
    );
    let bad = [
        BlockRange {
            lba: 100,
            blocks: 1,
        },
        BlockRange {
            lba: last,
            blocks: 1,
        },
    ];
    assert!(c.deallocate(&bad).is_err());
    assert!(c.compare(100, &want).unwrap(), "a bad list changes nothing");
    c.write_zeroes(0, many).unwrap();
    c.read(100, &mut back).unwrap();
    assert!(back.iter().all(|&byte| byte == 0));
    c.shutdown().unwrap();
}
