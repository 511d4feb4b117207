// SPDX-License-Identifier: Apache-2.0

//! The driver with a fake device, with and without faults.

use sim::Time;
use spec::nvme::{status, Sqe};

use crate::fake_device::{FakeDevice, Fault};
use crate::replay::{replay, TimedCommand};
use crate::workload::{self, BlockPattern, BufferLayout, IoJob, TransferShape};
use crate::{
    BlockRange, Buffer, DriverConfig, Erase, Error, IoCommand, NvmeDriver, ALL_NAMESPACES,
};

fn config() -> DriverConfig {
    DriverConfig {
        io_queues: 4,
        io_entries: 16,
        ..DriverConfig::default()
    }
}

fn start(fault: Fault) -> NvmeDriver<FakeDevice> {
    NvmeDriver::start(FakeDevice::new(fault), config()).unwrap()
}

fn keep_going(_: u64, _: u64) -> bool {
    true
}

#[test]
fn driver_shutdown_frees_all_memory() {
    let mut c = start(Fault::None);
    assert_eq!((c.io_queues(), c.io_entries(), c.nsid()), (4, 16, 1));
    assert_eq!(c.identity().serial, "FAKE");
    let data: Vec<u8> = (0..3 << 20).map(|i| (i * 7 / 5) as u8).collect();
    c.write(5, &data).unwrap();
    let mut back = vec![0; data.len()];
    c.read(5, &mut back).unwrap();
    assert!(data == back);
    c.flush().unwrap();
    let host = c.shutdown().unwrap();
    assert_eq!(host.allocations(), 0);
}

#[test]
fn driver_sgls_describe_the_same_data() {
    let mut c = start(Fault::None);
    let data: Vec<u8> = (0..3 << 20).map(|i| (i * 7 / 3) as u8).collect();
    c.set_sgl(true).unwrap();
    c.write(5, &data).unwrap();
    c.set_sgl(false).unwrap();
    let mut back = vec![0; data.len()];
    c.read(5, &mut back).unwrap();
    assert!(data == back);
    c.set_sgl(true).unwrap();
    assert!(c.compare(5, &data).unwrap());
    let job = IoJob {
        commands: 1000,
        layout: BufferLayout::Scattered,
        read_percent: 50,
        max_bytes: 1 << 16,
        queues: 4,
        verify: true,
        ..IoJob::default()
    };
    let outcome = workload::run_job(&mut c, &job, &mut keep_going).unwrap();
    assert_eq!(outcome.report.commands, 1000);
    assert!(outcome.verified_bytes > 0);
    assert_eq!(c.shutdown().unwrap().allocations(), 0);
}

#[test]
fn driver_compare_and_write_is_one_step() {
    let mut c = start(Fault::None);
    let (old, new) = (vec![0x11; 4096], vec![0x22; 4096]);
    c.write(7, &old).unwrap();
    let doorbells = c.host().doorbells;
    assert!(c.compare_and_write(7, &old, &new).unwrap());
    assert_eq!(c.host().doorbells, doorbells + 3, "one for both commands");
    assert!(!c.compare_and_write(7, &old, &old).unwrap());
    assert!(c.compare(7, &new).unwrap());
    for (expected, data) in [(512, 1024), (100, 100), (0, 0), (17 * 512, 17 * 512)] {
        let (expected, data) = (vec![0; expected], vec![0; data]);
        assert!(matches!(
            c.compare_and_write(7, &expected, &data),
            Err(Error::Invalid(_))
        ));
    }
    assert!(matches!(
        c.compare_and_write(8192, &old, &new),
        Err(Error::Status { .. })
    ));
    assert_eq!(c.shutdown().unwrap().allocations(), 0);
}

#[test]
fn driver_namespaces_are_separate_and_formatted() {
    let mut c = start(Fault::None);
    let sizes: Vec<(u32, u64)> = c.namespaces().iter().map(|n| (n.0, n.1.size)).collect();
    assert_eq!(sizes, [(1, 8192), (3, 1000)]);
    let patterns = [(1, vec![0x11; 4096]), (3, vec![0x33; 4096])];
    for (nsid, data) in &patterns {
        c.select_namespace(*nsid).unwrap();
        assert_eq!(c.nsid(), *nsid);
        c.write(0, data).unwrap();
    }
    let holds = |c: &mut NvmeDriver<FakeDevice>, nsid: u32, byte: u8| {
        c.select_namespace(nsid).unwrap();
        c.compare(0, &[byte; 4096]).unwrap()
    };
    assert!(holds(&mut c, 1, 0x11) && holds(&mut c, 3, 0x33));
    assert!(c.write(997, &patterns[0].1).is_err(), "beyond NSID 3");
    for nsid in [0, 2, 4, ALL_NAMESPACES] {
        let error = c.select_namespace(nsid).unwrap_err().to_string();
        assert!(error.contains("the active namespaces are 1, 3"), "{error}");
    }
    assert_eq!(c.nsid(), 3, "as before");
    assert!(c.format(1, Erase::Cryptographic).is_err());
    c.format(1, Erase::None).unwrap();
    assert!(holds(&mut c, 1, 0) && holds(&mut c, 3, 0x33));
    c.format(ALL_NAMESPACES, Erase::UserData).unwrap();
    assert!(holds(&mut c, 3, 0));
}

#[test]
fn driver_zeroes_deallocates_compares_and_verifies_blocks() {
    let mut c = start(Fault::None);
    let data: Vec<u8> = (0..2 << 20).map(|i| ((i * 7 / 5) | 1) as u8).collect();
    c.write(0, &data).unwrap();
    assert!(c.compare(0, &data).unwrap());
    let mut other = data.clone();
    other[(1 << 20) + 5] ^= 1;
    assert!(!c.compare(0, &other).unwrap());
    c.verify(0, 8192).unwrap();
    assert!(c.verify(0, 8193).is_err());
    c.write_zeroes(1, 2).unwrap();
    let ranges: Vec<BlockRange> = (0..300)
        .map(|i| BlockRange {
            lba: 10 + 3 * i,
            blocks: 1,
        })
        .collect();
    c.deallocate(&ranges).unwrap();
    let mut want = data;
    want[512..3 * 512].fill(0);
    for range in &ranges {
        let at = range.lba as usize * 512;
        want[at..at + 512].fill(0);
    }
    assert!(c.compare(0, &want).unwrap());
    let beyond = [
        BlockRange { lba: 0, blocks: 1 },
        BlockRange {
            lba: 8192,
            blocks: 1,
        },
    ];
    assert_eq!(
        c.deallocate(&beyond).unwrap_err().to_string(),
        "Dataset Management failed: LBA Out of Range (Generic Command Status, SCT 0h SC 80h, \
            Do Not Retry)"
    );
    assert!(c.write_zeroes(u64::MAX, 2).is_err());
    assert_eq!(c.shutdown().unwrap().allocations(), 0);
}

#[test]
fn driver_status_errors_carry_names() {
    let mut c = start(Fault::None);
    let error = c.read(8192, &mut [0; 512]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Read failed: LBA Out of Range (Generic Command Status, SCT 0h SC 80h, Do Not Retry)"
    );
    let completion = c.execute_raw(0, Sqe::new(0x7F).with_nsid(1)).unwrap();
    assert_eq!(completion.status.bare(), status::INVALID_OPCODE);
    let completion = c.execute_raw(0, Sqe::flush(2)).unwrap();
    assert_eq!(
        completion.status.bare(),
        status::INVALID_NAMESPACE_OR_FORMAT
    );
    let error = c
        .admin(
            Sqe::create_io_sq(9, 16, 0, 9),
            "Create I/O Submission Queue",
        )
        .unwrap_err();
    assert_eq!(
        error,
        Error::Status {
            command: "Create I/O Submission Queue".into(),
            status: status::COMPLETION_QUEUE_INVALID
        }
    );
}

#[test]
fn driver_invalid_arguments_are_errors() {
    let mut c = start(Fault::None);
    assert!(matches!(c.read(0, &mut [0; 100]), Err(Error::Invalid(_))));
    assert!(matches!(
        c.submit(7, IoCommand::Flush, &Buffer::Contiguous(0), 0),
        Err(Error::Invalid(_))
    ));
    let two = IoCommand::Read { lba: 0, blocks: 1 };
    assert!(matches!(
        c.submit(0, two, &Buffer::Contiguous(2), 0),
        Err(Error::Invalid(_))
    ));
    let none = IoCommand::Write { lba: 0, blocks: 0 };
    assert!(matches!(
        c.submit(0, none, &Buffer::Contiguous(0), 0),
        Err(Error::Invalid(_))
    ));
    for _ in 0..15 {
        c.submit(0, IoCommand::Flush, &Buffer::Contiguous(0), 0)
            .unwrap();
    }
    assert!(!c.has_room(0));
    assert!(c
        .submit(0, IoCommand::Flush, &Buffer::Contiguous(0), 0)
        .is_err());
}

#[test]
fn driver_start_failures_are_reported() {
    let fails = |fault| NvmeDriver::start(FakeDevice::new(fault), config()).unwrap_err();
    assert_eq!(fails(Fault::Gone), Error::Gone);
    assert_eq!(fails(Fault::Fatal), Error::Fatal);
    assert!(matches!(fails(Fault::NeverReady), Error::Timeout { .. }));
    assert!(matches!(fails(Fault::BadIdentify), Error::Misbehaviour(_)));
    // No NVM command set; pages of at least 8 KiB, whatever the maximum.
    for bits in [1 << 37, 1 << 48, 1 << 48 | 1 << 52] {
        assert!(matches!(fails(Fault::Cap(bits)), Error::Unsupported(_)));
    }
}

#[test]
fn driver_misbehaving_controllers_are_reported() {
    let fails = |fault| {
        let mut c = start(Fault::None);
        c.host_mut().fault = fault;
        (0..40).find_map(|_| c.flush().err()).unwrap()
    };
    assert!(matches!(fails(Fault::Silent), Error::Timeout { .. }));
    assert!(matches!(fails(Fault::Cid(15)), Error::Misbehaviour(_)));
    assert!(matches!(fails(Fault::Cid(0xFFFF)), Error::Misbehaviour(_)));
    assert!(matches!(fails(Fault::Sqid(3)), Error::Misbehaviour(_)));
    assert!(matches!(fails(Fault::Head(16)), Error::Misbehaviour(_)));
    assert!(matches!(fails(Fault::Twice), Error::Misbehaviour(_)));
    let internal = status::INTERNAL_ERROR;
    assert_eq!(
        fails(Fault::Status(internal)),
        Error::Status {
            command: "Flush".into(),
            status: internal
        }
    );
}

#[test]
fn driver_reset_recovers_a_silent_controller() {
    let mut c = start(Fault::None);
    c.host_mut().fault = Fault::Silent;
    assert!(c.flush().is_err());
    c.host_mut().fault = Fault::None;
    c.reset().unwrap();
    c.flush().unwrap();
    assert_eq!(c.shutdown().unwrap().allocations(), 0);
}

#[test]
fn driver_failed_reset_can_be_retried() {
    for fault in [
        Fault::Gone,
        Fault::NeverReady,
        Fault::Fatal,
        Fault::BadIdentify,
    ] {
        let mut c = start(Fault::None);
        c.write(3, &[0xA5; 512]).unwrap();
        c.host_mut().fault = fault;
        for _ in 0..3 {
            assert!(c.reset().is_err(), "{fault:?}");
        }
        c.host_mut().fault = Fault::None;
        c.reset().unwrap();
        let mut back = [0; 512];
        c.read(3, &mut back).unwrap();
        assert_eq!(back, [0xA5; 512], "{fault:?}: the media is as it was");
        assert_eq!(c.shutdown().unwrap().allocations(), 0, "{fault:?}");
    }
}

#[test]
fn driver_queues_can_be_deleted_and_recreated() {
    let mut c = start(Fault::None);
    c.delete_io_queue(1).unwrap();
    c.create_io_queue(1).unwrap();
    c.execute(1, IoCommand::Flush, &Buffer::Contiguous(0))
        .unwrap()
        .check()
        .unwrap();
}

#[test]
fn workload_mixed_random_job_on_all_queues_verifies() {
    let mut c = start(Fault::None);
    let job = IoJob {
        read_percent: 50,
        min_bytes: 512,
        max_bytes: 64 << 10,
        queues: 4,
        depth: 15,
        commands: 3000,
        layout: BufferLayout::Scattered,
        verify: true,
        ..IoJob::default()
    };
    c.set_list_offset(4088);
    let outcome = workload::run_job(&mut c, &job, &mut keep_going).unwrap();
    assert_eq!(outcome.report.commands, 3000);
    assert!(
        outcome.verified_bytes > 1 << 20,
        "{}",
        outcome.verified_bytes
    );
    assert!(outcome.report.bandwidth() > 0.0 && outcome.report.read.count() > 1000);
    let same = workload::run_job(&mut start(Fault::None), &job, &mut keep_going).unwrap();
    let again = workload::run_job(&mut start(Fault::None), &job, &mut keep_going).unwrap();
    assert_eq!(same, again, "the same seed gives the same run");
}

#[test]
fn workload_detects_wrong_data() {
    let mut c = start(Fault::None);
    c.host_mut().fault = Fault::Flip;
    let job = IoJob {
        read_percent: 50,
        queues: 2,
        depth: 4,
        verify: true,
        span: 1 << 20,
        ..IoJob::default()
    };
    let error = workload::run_job(&mut c, &job, &mut keep_going).unwrap_err();
    assert!(error.to_string().contains("wrong data: LBA "), "{error}");
}

#[test]
fn workload_checks_arguments_and_can_be_stopped() {
    let mut c = start(Fault::None);
    let ok = IoJob {
        queues: 2,
        ..IoJob::default()
    };
    let mut refuse = |job: IoJob| {
        let error = workload::run_job(&mut c, &job, &mut keep_going).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");
    };
    refuse(IoJob { queues: 5, ..ok });
    refuse(IoJob { queues: 0, ..ok });
    refuse(IoJob { depth: 16, ..ok });
    refuse(IoJob { min_bytes: 0, ..ok });
    refuse(IoJob {
        min_bytes: 2 * ok.max_bytes,
        ..ok
    });
    refuse(IoJob {
        max_bytes: 4 << 20,
        ..ok
    });
    refuse(IoJob {
        span: 1 << 40,
        ..ok
    });
    refuse(IoJob {
        start: u64::MAX - 511,
        ..ok
    });
    refuse(IoJob { span: 2048, ..ok });
    refuse(IoJob {
        read_percent: 101,
        ..ok
    });
    let stopped = workload::run_job(&mut c, &ok, &mut |_, _| false);
    assert_eq!(stopped.unwrap_err(), Error::Interrupted);
}

fn timed(at_us: u64, io: IoCommand) -> TimedCommand {
    let at = Time(at_us * 1_000_000);
    TimedCommand { at, io }
}

#[test]
fn replay_issues_commands_at_their_times() {
    let mut c = start(Fault::None);
    let read = IoCommand::Read { lba: 8, blocks: 8 };
    let write = IoCommand::Write {
        lba: 0,
        blocks: 300,
    };
    let commands = [
        timed(0, read),
        timed(1000, write),
        timed(1000, IoCommand::Flush),
        timed(5000, read),
    ];
    let result = replay(&mut c, &commands, &mut keep_going).unwrap();
    let report = &result.report;
    assert_eq!((report.commands, report.bytes), (4, 316 * 512));
    assert_eq!((report.read.count(), report.write.count()), (2, 2));
    assert_eq!(result.late, Time::ZERO);
    let last = report.read.summary().unwrap().max_ns;
    assert!(report.elapsed.as_ns() >= 5e6 && report.elapsed.as_ns() <= 5e6 + last);
    // A queue of 16 entries has room for 15 commands.
    let burst = vec![timed(0, read); 100];
    let result = replay(&mut c, &burst, &mut keep_going).unwrap();
    assert_eq!(result.report.commands, 100);
    assert!(result.late > Time::ZERO);
    assert_eq!(
        replay(&mut c, &[], &mut keep_going)
            .unwrap()
            .report
            .commands,
        0
    );
    assert_eq!(c.shutdown().unwrap().allocations(), 0);
}

#[test]
fn replay_checks_commands_and_can_be_stopped() {
    let mut c = start(Fault::None);
    let read = |lba, blocks| IoCommand::Read { lba, blocks };
    let mut refuse = |commands: &[TimedCommand], what: &str| {
        let error = replay(&mut c, commands, &mut keep_going).unwrap_err();
        assert!(
            matches!(&error, Error::Invalid(text) if text.contains(what)),
            "{error}"
        );
    };
    let good = timed(10, read(0, 1));
    refuse(
        &[good, timed(9, read(0, 1))],
        "command 1: its time is before",
    );
    refuse(&[timed(0, read(0, 0))], "command 0: 0 blocks from LBA 0");
    refuse(&[good, timed(10, read(u64::MAX, 1))], "command 1: 1 blocks");
    refuse(&[timed(0, read(0, 65536))], "command 0: 65536 blocks");
    let many = vec![good; 600];
    let stopped = replay(&mut c, &many, &mut |_, _| false);
    assert_eq!(stopped.unwrap_err(), Error::Interrupted);
    assert_eq!(c.shutdown().unwrap().allocations(), 0);
    // The next command's time is after that of the time-out.
    let late = [timed(0, read(0, 1)), timed(1 << 40, read(0, 1))];
    let error = replay(&mut start(Fault::Silent), &late, &mut keep_going).unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
}

/// All memory is free, and the namespace works.
fn works(c: &mut NvmeDriver<FakeDevice>) {
    for _ in 0..4 {
        c.write(5, &[0x3C; 4096]).unwrap();
        let mut back = [0; 4096];
        c.read(5, &mut back).unwrap();
        assert_eq!(back, [0x3C; 4096]);
    }
    workload::run_job(
        c,
        &IoJob {
            queues: 4,
            ..IoJob::default()
        },
        &mut keep_going,
    )
    .unwrap();
}

#[test]
fn workload_early_end_leaves_nothing_in_flight() {
    let shape = TransferShape {
        queues: 4,
        depth: 8,
        chunk: 4096,
    };
    let job = IoJob {
        queues: 4,
        commands: 20_000,
        ..IoJob::default()
    };
    let mut data = vec![1; 1 << 20];
    let mut c = start(Fault::None);
    // Stopped, in each way.
    let mut stop = |_, _| false;
    let read = workload::read_all(&mut c, 0, &mut data, shape, &mut stop);
    assert_eq!(read.unwrap_err(), Error::Interrupted);
    works(&mut c);
    let write = workload::write_all(&mut c, 0, &data, shape, &mut stop);
    assert_eq!(write.unwrap_err(), Error::Interrupted);
    works(&mut c);
    let run = workload::run_job(&mut c, &job, &mut stop);
    assert_eq!(run.unwrap_err(), Error::Interrupted);
    works(&mut c);
    // The caller's hook fails.
    let mut hook = |_: &mut FakeDevice, _| Err(Error::Host("enough".into()));
    let run = workload::run_job_with(&mut c, &job, &mut hook, &mut keep_going);
    assert_eq!(run.unwrap_err(), Error::Host("enough".into()));
    works(&mut c);
    // Commands fail, and data is wrong.
    for fault in [Fault::Status(status::INTERNAL_ERROR), Fault::Flip] {
        c.host_mut().fault = fault;
        let verified = IoJob {
            verify: true,
            read_percent: 50,
            span: 1 << 20,
            ..job
        };
        workload::run_job(&mut c, &verified, &mut keep_going).unwrap_err();
        c.host_mut().fault = Fault::None;
        works(&mut c);
    }
    assert_eq!(c.shutdown().unwrap().allocations(), 0);
}

#[test]
fn driver_keeps_memory_of_unended_commands_until_reset() {
    let mut c = start(Fault::None);
    let idle = c.host().allocations();
    c.host_mut().fault = Fault::Silent;
    let job = IoJob {
        queues: 2,
        depth: 4,
        ..IoJob::default()
    };
    let slots = 8;
    let error = workload::run_job(&mut c, &job, &mut keep_going).unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert!(c.host().allocations() >= idle + slots);
    c.host_mut().fault = Fault::None;
    // Later commands work.
    let mut data = [0; 512];
    for _ in 0..2 {
        let error = c.read(0, &mut data).unwrap_err().to_string();
        assert!(error.contains("a reset ends them"), "{error}");
        let error = workload::run_job(&mut c, &job, &mut keep_going).unwrap_err();
        assert!(error.to_string().contains("a reset ends them"), "{error}");
    }
    c.reset().unwrap();
    works(&mut c);
    assert_eq!(c.shutdown().unwrap().allocations(), 0);
}

#[test]
fn workload_sequential_queues_use_separate_ranges() {
    let mut c = start(Fault::None);
    let job = IoJob {
        pattern: BlockPattern::Sequential,
        read_percent: 0,
        queues: 4,
        depth: 2,
        ..IoJob::default()
    };
    let outcome = workload::run_job(&mut c, &job, &mut keep_going).unwrap();
    assert_eq!(
        (outcome.report.write.count(), outcome.report.read.count()),
        (4000, 0)
    );
    assert_eq!(outcome.report.bytes, 4000 * 4096);
}

#[test]
fn workload_whole_transfers_arrive() {
    let mut c = start(Fault::None);
    let data: Vec<u8> = (0..1_000_448u32).map(|i| (i ^ i >> 8) as u8).collect();
    let shape = TransferShape {
        queues: 3,
        depth: 5,
        chunk: 24 << 10,
    };
    let report = workload::write_all(&mut c, 9, &data, shape, &mut keep_going).unwrap();
    assert_eq!(report.bytes, data.len() as u64);
    let mut back = vec![0; data.len()];
    workload::read_all(&mut c, 9, &mut back, shape, &mut keep_going).unwrap();
    assert!(data == back);
    let error = workload::write_all(&mut c, 8000, &data, shape, &mut keep_going).unwrap_err();
    assert!(
        error.to_string().contains("inside the namespace"),
        "{error}"
    );
    assert_eq!(c.shutdown().unwrap().allocations(), 0);
}
