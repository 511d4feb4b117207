// SPDX-License-Identifier: Apache-2.0

//! A device of four namespaces: from the design through the driver and the link to the media.

use driver::workload::{run_job, IoJob};
use driver::{BlockRange, Erase, NvmeDriver, SimHost};

use crate::common;

/// Bytes of each namespace of `designs/namespaces.toml`. Format NVM of the second one needs more
/// than one data command.
const SIZES: [u64; 5] = [960 << 20, 33 << 20, 0, 1 << 20, 512 * 1001];
const NSIDS: [u32; 4] = [1, 2, 4, 5];

fn controller() -> NvmeDriver<SimHost> {
    common::controller("namespaces")
}

/// The expected contents of block `lba` of a namespace.
fn block(nsid: u32, lba: u64) -> Vec<u8> {
    (0..512u64)
        .map(|i| ((i * 7 + lba * 13) as u8) & 0x1F | (nsid as u8) << 5 | 1)
        .collect()
}

fn blocks_of(nsid: u32) -> u64 {
    SIZES[nsid as usize - 1] / 512
}

/// Checks the first and last blocks of a namespace.
fn intact(c: &mut NvmeDriver<SimHost>, nsid: u32) -> bool {
    c.select_namespace(nsid).unwrap();
    let last = blocks_of(nsid) - 1;
    [0, last].iter().all(|&lba| {
        let mut back = vec![0; 512];
        c.read(lba, &mut back).unwrap();
        back == block(nsid, lba)
    })
}

mod sampled {
    use super::*;

    #[test]
    fn namespaces_share_no_block() {
        let mut c = controller();
        let found: Vec<(u32, u64)> = c
            .namespaces()
            .iter()
            .map(|(nsid, ns)| (*nsid, ns.bytes()))
            .collect();
        let want: Vec<(u32, u64)> = NSIDS.map(|n| (n, SIZES[n as usize - 1])).to_vec();
        assert_eq!(found, want);
        assert_eq!(c.identity().namespaces, 5, "NN");
        // Names as in the identity: the hardware derives the same from its straps.
        let identity = design::Identity::default();
        assert_eq!(c.identity().serial, identity.serial());
        assert_eq!(c.identity().subnqn, identity.subnqn());
        let names: Vec<[u8; 16]> = c.namespaces().iter().map(|n| n.1.nguid).collect();
        assert_eq!(names, NSIDS.map(|nsid| identity.nguid(nsid)));

        for nsid in NSIDS {
            c.select_namespace(nsid).unwrap();
            for lba in [0, blocks_of(nsid) - 1] {
                c.write(lba, &block(nsid, lba)).unwrap();
            }
        }
        for nsid in NSIDS {
            assert!(intact(&mut c, nsid), "NSID {nsid}");
            let end = blocks_of(nsid);
            let mut data = vec![0; 1024];
            let error = c.read(end - 1, &mut data).unwrap_err().to_string();
            assert!(error.contains("LBA Out of Range"), "{error}");
            assert!(c.write(end, &data[..512]).is_err());
            assert!(c.write_zeroes(end - 1, 2).is_err());
            let beyond = BlockRange {
                lba: end,
                blocks: 1,
            };
            assert!(c.deallocate(&[beyond]).is_err());
        }

        // Traffic that compares all data in one of them does not affect the others.
        c.select_namespace(5).unwrap();
        let job = IoJob {
            read_percent: 50,
            min_bytes: 512,
            max_bytes: 16384,
            queues: 4,
            depth: 8,
            commands: 400,
            verify: true,
            ..IoJob::default()
        };
        run_job(&mut c, &job, &mut |_, _| true).unwrap();
        for nsid in [1, 2, 4] {
            assert!(intact(&mut c, nsid), "NSID {nsid}");
        }

        // Format: errors; one with several data commands; a small one.
        let error = c.format(2, Erase::Cryptographic).unwrap_err().to_string();
        assert!(error.contains("Invalid Field"), "{error}");
        for nsid in [0, 6] {
            assert!(c.format(nsid, Erase::None).is_err(), "NSID {nsid}");
        }
        assert!(intact(&mut c, 2));
        let before = c.now();
        c.format(2, Erase::None).unwrap();
        let span = c.now() - before;
        c.select_namespace(2).unwrap();
        let mut back = vec![1; 1 << 20];
        for lba in [0, 65536 - 1024, blocks_of(2) - 2048] {
            c.read(lba, &mut back).unwrap();
            assert!(back.iter().all(|&byte| byte == 0));
        }
        for nsid in [1, 4] {
            assert!(intact(&mut c, nsid), "NSID {nsid}");
        }
        // 33 MiB at DDR4's bandwidth: nearly 30 GB/s on two channels.
        assert!(span < sim::Time::ms(2), "{span:?}");
        c.format(5, Erase::UserData).unwrap();
        c.select_namespace(5).unwrap();
        let mut back = vec![1; SIZES[4] as usize];
        c.read(0, &mut back).unwrap();
        assert!(back.iter().all(|&byte| byte == 0));
        assert!(intact(&mut c, 4));
        c.reset().unwrap();
        assert_eq!(c.namespaces().len(), 4);
        c.shutdown().unwrap();
    }
}
