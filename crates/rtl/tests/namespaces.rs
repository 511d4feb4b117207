//! A device of four namespaces: from the design through the driver and the link to the media.

use design::{Bytes, Cpu, Nvme};
use driver::workload::{run_job, Job};
use driver::{Config, Controller, Erase, Range, SimHost, ALL_NAMESPACES};
use rtl::bitstream::stderr_progress;
use rtl::{DeviceConfig, RtlDevice};
use sim::{Bar, HostConfig, LinkConfig, Media, System};

const MEDIA: u64 = 1 << 26;
/// Bytes of each namespace: one of more than a data command of Format NVM, odd ones, an inactive one, all of the rest.
const SIZES: [u64; 5] = [33 << 20, 512 * 1001, 0, 7 * 512, (30 << 20) + 1024];
const NSIDS: [u32; 4] = [1, 2, 4, 5];

fn controller() -> Controller<SimHost> {
    let nvme = Nvme {
        namespaces: SIZES.map(Bytes).to_vec(),
        ..Nvme::default()
    };
    let mut config = DeviceConfig {
        hang_cycles: 50_000,
        ..DeviceConfig::new().unwrap()
    };
    let parameters = nvme.namespace_parameters();
    config.parameters = parameters
        .into_iter()
        .map(|(name, value)| (name.to_string(), value))
        .chain([("MediaBytes".to_string(), format!("64'd{MEDIA}"))])
        .collect();
    let media = Media::memory(MEDIA).unwrap();
    let device = RtlDevice::build(config, media, &mut stderr_progress("nearside_top")).unwrap();
    let mut system = System::new(&HostConfig::default()).unwrap();
    let windows = [
        (Bar::Nvme, 64 << 10),
        (Bar::Pm, MEDIA),
        (Bar::Control, 1 << 20),
    ];
    let number = system
        .add_device(Box::new(device), &LinkConfig::default(), &windows)
        .unwrap();
    let host = SimHost::new(system, number, Cpu::default().costs(), 0);
    Controller::start(host, Config::default()).unwrap()
}

/// What block `lba` of a namespace is to hold.
fn block(nsid: u32, lba: u64) -> Vec<u8> {
    (0..512u64)
        .map(|i| ((i * 7 + lba * 13) as u8) & 0x1F | (nsid as u8) << 5 | 1)
        .collect()
}

fn blocks_of(nsid: u32) -> u64 {
    SIZES[nsid as usize - 1] / 512
}

/// First and last blocks of a namespace hold what they should.
fn intact(c: &mut Controller<SimHost>, nsid: u32) -> bool {
    c.select_namespace(nsid).unwrap();
    let last = blocks_of(nsid) - 1;
    [0, last].iter().all(|&lba| {
        let mut back = vec![0; 512];
        c.read(lba, &mut back).unwrap();
        back == block(nsid, lba)
    })
}

#[test]
fn four_namespaces_share_a_media_and_no_block() {
    let mut c = controller();
    let found: Vec<(u32, u64)> = c
        .namespaces()
        .iter()
        .map(|(nsid, ns)| (*nsid, ns.bytes()))
        .collect();
    let want: Vec<(u32, u64)> = NSIDS.map(|n| (n, SIZES[n as usize - 1])).to_vec();
    assert_eq!(found, want);
    assert_eq!(c.identity().namespaces, 5, "NN");
    let mut names: Vec<[u8; 16]> = c.namespaces().iter().map(|n| n.1.nguid).collect();
    names.dedup();
    assert_eq!(names.len(), 4, "NGUIDs differ");

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
        let beyond = Range {
            lba: end,
            blocks: 1,
        };
        assert!(c.deallocate(&[beyond]).is_err());
    }

    // A load with comparison of all data in one of them, and the others don't notice.
    c.select_namespace(2).unwrap();
    let job = Job {
        read_percent: 50,
        min_bytes: 512,
        max_bytes: 16384,
        queues: 4,
        depth: 8,
        commands: 400,
        verify: true,
        ..Job::default()
    };
    run_job(&mut c, &job, &mut |_, _| true).unwrap();
    for nsid in [1, 4, 5] {
        assert!(intact(&mut c, nsid), "NSID {nsid}");
    }

    // Format: one, with more than one data command; errors; then all.
    let error = c.format(1, Erase::Cryptographic).unwrap_err().to_string();
    assert!(error.contains("Invalid Field"), "{error}");
    for nsid in [0, 6] {
        assert!(c.format(nsid, Erase::None).is_err(), "NSID {nsid}");
    }
    assert!(intact(&mut c, 1));
    let before = c.now();
    c.format(1, Erase::None).unwrap();
    let span = c.now() - before;
    c.select_namespace(1).unwrap();
    let mut back = vec![1; 1 << 20];
    for lba in [0, 65536 - 1024, blocks_of(1) - 2048] {
        c.read(lba, &mut back).unwrap();
        assert!(back.iter().all(|&byte| byte == 0));
    }
    for nsid in [4, 5] {
        assert!(intact(&mut c, nsid), "NSID {nsid}");
    }
    // 33 MiB at DDR4's bandwidth: nearly 30 GB/s on two channels.
    assert!(span < sim::Time::ms(2), "{span:?}");
    c.format(ALL_NAMESPACES, Erase::UserData).unwrap();
    for nsid in NSIDS {
        c.select_namespace(nsid).unwrap();
        let end = blocks_of(nsid);
        let mut back = vec![1; 512 * end.min(1000) as usize];
        let lba = end - back.len() as u64 / 512;
        c.read(lba, &mut back).unwrap();
        assert!(back.iter().all(|&byte| byte == 0), "NSID {nsid}");
    }
    let c = c.reset().unwrap();
    assert_eq!(c.namespaces().len(), 4);
    c.shutdown().unwrap();
}
