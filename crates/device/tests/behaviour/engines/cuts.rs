// SPDX-License-Identifier: Apache-2.0

//! Everything that can end engines at work: lines of 64 bytes are old or new, and the engines still
//! work.

use spec::nvme::properties::{CC, CSTS};
use spec::nvme::status;

use super::nvme::{abort, nvme_copy, nvme_scan, COUNT};
use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum CutKind {
    FunctionReset,
    Power,
    Disable,
    Shutdown,
    Abort,
    Deletion,
    Stop,
}

const BLOCKS: u32 = 1024;
const SOURCE: u64 = 64 * MIB;
const TARGET: u64 = 65 * MIB;
const OTHER: u64 = 66 * MIB;

fn begin(q: &mut Queues) {
    let copy = nvme_copy(SOURCE / 512, TARGET / 512, BLOCKS);
    q.c.submit_raw(1, copy, 0).unwrap();
    for tag in 1..3 {
        let scan = nvme_scan(COUNT, SOURCE / 512, BLOCKS, 0, u32::MAX);
        q.c.submit_raw(1, scan, tag).unwrap();
    }
    q.c.ring(1).unwrap();
    q.start(COPY0, &[SOURCE, OTHER, u64::from(BLOCKS) * 512]);
}

fn over(mut q: Queues, cut: CutKind, first: u32) -> Queues {
    let one_of = |ended: Vec<(u64, Status)>, other: Status| {
        assert_eq!(ended.len(), 3);
        let fits = |(_, s): &(u64, Status)| *s == status::SUCCESS || *s == other;
        assert!(ended.iter().all(fits), "{ended:?}");
    };
    let number = q.host().device();
    match cut {
        CutKind::FunctionReset => q.host().system_mut().function_reset(number),
        CutKind::Power => {
            q.host().system_mut().power_off(number);
            q.host().system_mut().power_on(number);
        }
        CutKind::Disable | CutKind::Shutdown => {
            let cc = q.host().read32(Bar::Nvme, CC).unwrap();
            let (off, mask, wanted) = match cut {
                CutKind::Disable => (cc & !1, 1, 0),
                _ => (cc | 1 << 14, 0xC, 8),
            };
            q.host().write32(Bar::Nvme, CC, off).unwrap();
            let mut turns = 0;
            while q.host().read32(Bar::Nvme, CSTS).unwrap() & mask != wanted {
                q.rest(1000);
                turns += 1;
                assert!(turns < 200, "{cut:?} takes long");
            }
            // The controller does not end the copy of the registers.
            assert_eq!(q.wait(COPY0), 0);
            q.c.reset().unwrap();
            return q;
        }
        CutKind::Abort => {
            (first..first + 3).for_each(|cid| {
                abort(&mut q, cid);
            });
            assert_eq!(q.wait(COPY0), 0);
            q.rest(20_000);
            let ended = q.ended(1);
            one_of(ended, status::ABORT_REQUESTED);
            return q;
        }
        CutKind::Deletion => {
            let delete = Sqe::delete_io_sq(2);
            q.c.admin(delete, "Delete I/O Submission Queue").unwrap();
            let ended = q.ended(1);
            one_of(ended, status::ABORTED_SQ_DELETION);
            assert_eq!(q.wait(COPY0), 0);
            q.c.reset().unwrap();
            return q;
        }
        CutKind::Stop => {
            q.set(COPY0, 0, 2);
            assert!([0, STOPPED].contains(&q.wait(COPY0)));
            q.rest(1_000_000);
            let ended = q.ended(1);
            one_of(ended, status::SUCCESS);
            return q;
        }
    }
    let engines = q.engines;
    let host = q.c.into_host();
    let config = driver::DriverConfig {
        io_queues: 2,
        ..driver::DriverConfig::default()
    };
    Queues {
        c: NvmeDriver::start(host, config).unwrap(),
        engines,
    }
}

#[test]
#[ignore = "takes seconds"]
fn engines_leave_lines_old_or_new_at_every_kind_of_end() {
    use CutKind::*;
    for cut in [
        FunctionReset,
        Power,
        Disable,
        Shutdown,
        Abort,
        Deletion,
        Stop,
    ] {
        let len = BLOCKS as usize * 512;
        let mut q = Bench::new("").controller();
        let mut half = false;
        let mut random = Random::new(8);
        for moment in 0..common::rounds(12, 6) {
            let (source, old) = (bytes(&mut random, len), bytes(&mut random, len));
            q.c.write(SOURCE / 512, &source).unwrap();
            for at in [TARGET, OTHER] {
                q.c.write(at / 512, &old).unwrap();
            }
            begin(&mut q);
            q.rest(1500 + 9_973 * moment % 190_000);
            q = over(q, cut, 6 * moment as u32);
            for at in [TARGET, OTHER] {
                let is = q.bytes(at, len);
                let lines = is.chunks(64).zip(source.chunks(64).zip(old.chunks(64)));
                let mut new = 0;
                for (is, (source, old)) in lines {
                    assert!(is == source || is == old, "{cut:?} {moment}");
                    new += usize::from(is == source);
                }
                half |= new > 0 && new < len / 64;
            }
            for engine in [COPY0, SCAN0] {
                assert_eq!(q.register(engine, 0) & 4, 4, "{cut:?} {moment}: idle");
            }
            // Everything still works.
            begin(&mut q);
            assert_eq!(q.wait(COPY0), 0);
            q.rest(1_000_000);
            let fine = [0, 1, 2].map(|tag| (tag, status::SUCCESS));
            assert_eq!(q.ended(1), fine, "{cut:?} {moment}");
            assert!(q.bytes(TARGET, len) == source && q.bytes(OTHER, len) == source);
        }
        assert!(half, "{cut:?}: nothing was half done");
    }
}
