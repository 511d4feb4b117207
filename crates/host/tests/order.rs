// SPDX-License-Identifier: Apache-2.0

//! The order and visibility of accesses, and programs that share a host.

mod common;

use std::sync::Mutex;

use common::{bench, profile, Bench, Pm, BYTES};
use host::{Error, Fence, Mapping, MemoryType, Program};
use sim::Time;

fn start() -> Bench {
    bench(&profile("nearpm"), vec![Pm::new(BYTES, Time::ns(80))])
}

fn log(b: &Bench) -> Vec<(u64, usize)> {
    let log = b.logs[0].lock().unwrap();
    log.iter().map(|w| (w.1, w.2)).collect()
}

#[test]
fn uncached_stores_leave_in_order_after_combined_ones() {
    let b = start();
    let cpu = b.shared.cpu(0);
    let (wc, uc) = (
        Mapping::pm(0, MemoryType::WriteCombining),
        Mapping::pm(0, MemoryType::Uncached),
    );
    cpu.store(&wc, 4096, &[1; 8]).unwrap();
    cpu.store(&uc, 128, &[2; 4]).unwrap();
    cpu.store(&uc, 64, &[3; 64]).unwrap();
    cpu.store(&uc, 124, &[4; 8]).unwrap();
    cpu.store(&wc, 8192, &[5; 8]).unwrap();
    cpu.load(&uc, 0, &mut [0; 4]).unwrap();
    assert_eq!(
        log(&b),
        [(4096, 8), (128, 4), (64, 64), (124, 4), (128, 4), (8192, 8)]
    );
}

#[test]
fn write_combining_buffers_leave_on_demand_fence_and_load() {
    let b = start();
    let (cpu, wc) = (b.shared.cpu(0), Mapping::pm(0, MemoryType::WriteCombining));
    let half = u64::from(profile("nearpm").core.wc_buffers.value / 2);
    for line in 0..=half {
        cpu.store(&wc, 64 * line, &[1; 8]).unwrap();
    }
    cpu.sleep_until(Time::us(5)).unwrap();
    assert_eq!(log(&b), [(0, 8)]);
    let mut out = [0; 8];
    cpu.load(&wc, 128, &mut out).unwrap();
    assert_eq!((out, log(&b).last()), ([1; 8], Some(&(128, 8))));
    cpu.fence(Fence::ReadBack).unwrap();
    assert_eq!(log(&b).len() as u64, half + 1);
}

#[test]
fn cache_dirty_lines_leave_in_eviction_order() {
    let mut small = profile("nearpm");
    (small.cache.bytes.value, small.cache.ways.value) = (128, 2);
    let b = bench(&small, vec![Pm::new(BYTES, Time::ns(80))]);
    let (cpu, wb) = (b.shared.cpu(0), Mapping::pm(0, MemoryType::WriteBack));
    for line in [5, 3, 9, 3, 1, 7] {
        cpu.store(&wb, 64 * line, &[line as u8; 8]).unwrap();
        cpu.load(&wb, 64 * line, &mut [0; 8]).unwrap();
    }
    cpu.sleep_until(Time::us(20)).unwrap();
    assert_eq!(log(&b), [(5 * 64, 64), (9 * 64, 64), (3 * 64, 64)]);
}

#[test]
fn fence_waits_for_a_line_evicted_before_its_write_back() {
    let mut small = profile("nearpm");
    (small.cache.bytes.value, small.cache.ways.value) = (128, 2);
    let b = bench(&small, vec![Pm::new(BYTES, Time::ns(80))]);
    let (cpu, wb) = (b.shared.cpu(0), Mapping::pm(0, MemoryType::WriteBack));
    cpu.store(&wb, 0, &[1; 8]).unwrap();
    cpu.load(&wb, 0, &mut [0; 8]).unwrap();
    cpu.load(&wb, 64, &mut [0; 8]).unwrap();
    cpu.load(&wb, 128, &mut [0; 8]).unwrap();
    // The line is being written back, and no longer in the cache.
    cpu.clwb(&wb, 0).unwrap();
    cpu.fence(Fence::ReadBack).unwrap();
    let log = b.logs[0].lock().unwrap();
    let there = log.iter().any(|w| w.1 == 0 && w.0 <= cpu.now());
    assert!(
        there && b.shared.with_machine(|m| m.counts().flushes) == 0,
        "{log:?}"
    );
}

#[test]
fn scheduler_runs_the_earliest_cpu_first() {
    let b = start();
    let wb = Mapping::pm(0, MemoryType::WriteBack);
    let recorded = Mutex::new(Vec::new());
    let program = |number: usize, pause: u64| -> (usize, Program<'_, ()>) {
        let recorded = &recorded;
        let work = move |cpu: &host::Cpu| {
            for n in 0..20 {
                cpu.compute(Time::ns(pause)).unwrap();
                cpu.load(&wb, 64 * n, &mut [0; 8]).unwrap();
                recorded.lock().unwrap().push((cpu.now(), number));
            }
        };
        (number, Box::new(work))
    };
    b.shared
        .run(vec![program(0, 70), program(1, 1000), program(2, 130)])
        .unwrap();
    let recorded = recorded.into_inner().unwrap();
    // Each is recorded when its CPU acts next, so the times are nearly in order.
    for pair in recorded.windows(2) {
        assert!(pair[0].0 <= pair[1].0 + Time::ns(500), "{pair:?}");
    }
    let ends: Vec<Time> = (0..3).map(|c| b.shared.cpu(c).now()).collect();
    assert!(ends[0] <= ends[2] && ends[2] < ends[1], "{ends:?}");
    // The lines that one CPU has fetched are present for the others.
    let counts = b.shared.with_machine(|m| m.counts());
    assert_eq!(counts.fills, 20);
}

/// A full queue before a slow device takes the stores of all CPUs in turn.
#[test]
fn scheduler_gives_room_to_whoever_has_waited_longest() {
    const CPUS: u64 = 8;
    const LINES: u64 = 400;
    for kind in [
        MemoryType::Uncached,
        MemoryType::WriteCombining,
        MemoryType::WriteBack,
    ] {
        let b = bench(
            &profile("nearpm"),
            vec![Pm::new(BYTES, Time::ns(80)).slow(Time::ns(400))],
        );
        let pm = Mapping::pm(0, kind);
        let base = |cpu: u64| cpu * LINES * 64;
        let program = |number: u64| -> (usize, Program<'_, ()>) {
            let work = move |cpu: &host::Cpu| {
                for line in 0..LINES {
                    let at = base(number) + 64 * line;
                    match kind {
                        MemoryType::Uncached => cpu.store(&pm, at, &[1; 64]).unwrap(),
                        _ => cpu.ntstore(&pm, at, &[1; 64]).unwrap(),
                    }
                }
                cpu.fence(Fence::ReadBack).unwrap();
            };
            (number as usize, Box::new(work))
        };
        b.shared.run((0..CPUS).map(program).collect()).unwrap();
        let log = log(&b);
        let half = &log[..log.len() / 2];
        for number in 0..CPUS {
            let own = base(number)..base(number + 1);
            let found = half.iter().filter(|w| own.contains(&w.0)).count() as u64;
            let share = LINES / 2;
            assert!(
                (share * 9 / 10..=share * 11 / 10).contains(&found),
                "{kind:?}: CPU {number} has {found} of the first {} lines",
                half.len()
            );
        }
    }
}

#[test]
fn cache_store_is_visible_to_other_cpus() {
    let b = start();
    let wb = Mapping::pm(0, MemoryType::WriteBack);
    let flag = |cpu: &host::Cpu| {
        let mut out = [0; 8];
        cpu.load(&wb, 0, &mut out).map(|()| u64::from_le_bytes(out))
    };
    let ping: Program<'_, u64> = Box::new(|cpu| {
        for round in 0..50u64 {
            while flag(cpu).unwrap() != 2 * round {}
            cpu.store(&wb, 0, &(2 * round + 1).to_le_bytes()).unwrap();
        }
        50
    });
    let pong: Program<'_, u64> = Box::new(|cpu| {
        for round in 0..50u64 {
            while flag(cpu).unwrap() != 2 * round + 1 {}
            cpu.store(&wb, 0, &(2 * round + 2).to_le_bytes()).unwrap();
        }
        flag(cpu).unwrap()
    });
    assert_eq!(b.shared.run(vec![(0, ping), (1, pong)]), Ok(vec![50, 100]));
}

#[test]
fn scheduler_slack_reduces_switches_and_keeps_results_repeatable() {
    let run = |slack: u64| {
        let b = start();
        b.shared.set_slack(Time::ns(slack));
        let wb = Mapping::pm(0, MemoryType::WriteBack);
        let program = |number: u64| -> (usize, Program<'_, u64>) {
            let work = move |cpu: &host::Cpu| {
                let mut sum = 0;
                for n in 0..300u64 {
                    let at = 64 * (n * (number + 3) % 40);
                    let mut out = [0; 8];
                    cpu.load(&wb, at, &mut out).unwrap();
                    sum += u64::from_le_bytes(out) % 1000;
                    cpu.store(&wb, at, &(sum + number).to_le_bytes()).unwrap();
                    cpu.compute(Time::ns(sum % 30)).unwrap();
                }
                sum
            };
            (number as usize, Box::new(work))
        };
        let sums = b.shared.run((0..4).map(program).collect()).unwrap();
        let times: Vec<Time> = (0..4).map(|c| b.shared.cpu(c).now()).collect();
        (sums, times)
    };
    for slack in [0, 100, 5000] {
        assert_eq!(run(slack), run(slack), "{slack}");
    }
    let ends = |slack| run(slack).1.iter().max().unwrap().as_ns();
    assert!(
        (ends(0) / ends(100) - 1.0).abs() < 0.1,
        "{} {}",
        ends(0),
        ends(100)
    );
}

#[test]
fn access_errors_are_reported() {
    let b = start();
    let cpu = b.shared.cpu(0);
    for kind in [
        MemoryType::Uncached,
        MemoryType::WriteCombining,
        MemoryType::WriteBack,
    ] {
        let pm = Mapping::pm(0, kind);
        for (offset, len) in [
            (0, 0),
            (0, 65),
            (BYTES as u64, 1),
            (BYTES as u64 - 1, 2),
            (u64::MAX, 1),
        ] {
            let mut out = vec![0; len];
            assert!(
                cpu.load(&pm, offset, &mut out).is_err(),
                "{kind:?} {offset} {len}"
            );
            assert!(
                cpu.store(&pm, offset, &out).is_err(),
                "{kind:?} {offset} {len}"
            );
            assert!(
                cpu.ntstore(&pm, offset, &out).is_err(),
                "{kind:?} {offset} {len}"
            );
        }
        assert!(cpu.clwb(&pm, BYTES as u64).is_err());
        assert!(
            cpu.write(&pm, u64::MAX, &[0; 2]).is_err()
                && cpu.read(&pm, u64::MAX, &mut [0; 2]).is_err()
        );
        assert!(cpu.load(&Mapping::pm(7, kind), 0, &mut [0; 8]).is_err());
    }
    cpu.fence(Fence::ReadBack).unwrap();
    assert!(cpu.compute(Time::MAX).is_err() && cpu.sleep_until(Time::MAX).is_err());
    cpu.spend_dram_loads(u64::MAX).unwrap_err();
    cpu.spend_copy(u64::MAX).unwrap_err();
    // The other users still have the host.
    b.shared
        .cpu(1)
        .load(&Mapping::pm(0, MemoryType::Uncached), 0, &mut [0; 8])
        .unwrap();
}

#[test]
fn scheduler_refuses_others_until_programs_end_or_panic() {
    let b = start();
    let shared = &b.shared;
    let outside = shared.clone();
    let program: Program<'_, Error> = Box::new(move |cpu| {
        let outside = outside.clone();
        let wb = Mapping::pm(0, MemoryType::WriteBack);
        cpu.load(&wb, 0, &mut [0; 8]).unwrap();
        let other = std::thread::spawn(move || outside.cpu(3).load(&wb, 64, &mut [0; 8]));
        other.join().unwrap().unwrap_err()
    });
    assert_eq!(shared.run(vec![(0, program)]), Ok(vec![Error::Busy]));
    let panics: Vec<(usize, Program<'_, ()>)> = vec![
        (0, Box::new(|_| panic!("a program that fails"))),
        (1, Box::new(|cpu| cpu.fence(Fence::Posted).unwrap())),
    ];
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| shared.run(panics)));
    assert!(caught.is_err());
    shared
        .cpu(0)
        .load(&Mapping::pm(0, MemoryType::WriteBack), 0, &mut [0; 8])
        .unwrap();
}

#[test]
fn power_off_device_fails_loads_and_lost_stores_are_reported() {
    let b = start();
    let cpu = b.shared.cpu(0);
    let wb = Mapping::pm(0, MemoryType::WriteBack);
    b.shared.with_machine(|m| m.system_mut().power_off(0));
    for n in 0..3 {
        let answer = cpu.load(&wb, 64 * n, &mut [0; 8]);
        assert!(matches!(answer, Err(Error::System(_))), "{answer:?}");
    }
    cpu.store(&wb, 4096, &[1; 8]).unwrap();
    cpu.sleep_until(Time::us(50)).unwrap_err();
    b.shared.with_machine(|m| m.system_mut().power_on(0));
    cpu.load(&wb, 0, &mut [0; 8]).unwrap();
}

#[test]
fn shared_machine_handles_move_between_threads() {
    fn send<T: Send>() {}
    send::<host::SharedMachine>();
    send::<host::Cpu>();
    send::<host::Machine>();
    send::<driver::SimHost>();
    send::<driver::SharedHost>();
    send::<driver::NvmeDriver<driver::SharedHost>>();
}

#[test]
fn fence_reports_stores_that_a_device_has_lost() {
    let devices = vec![
        Pm::new(BYTES, Time::ns(80)),
        Pm::new(BYTES, Time::ns(80)).full(4096),
    ];
    let b = bench(&profile("nearpm"), devices);
    let (one, two) = (b.shared.cpu(0), b.shared.cpu(1));
    let at = |device, kind| Mapping::pm(device, kind);
    let store = |cpu: &host::Cpu, device, offset| {
        cpu.ntstore(&at(device, MemoryType::WriteBack), offset, &[7; 64])
            .unwrap();
    };
    let lost = |stores| Err(Error::Lost { device: 1, stores });
    for fence in [Fence::ReadBack, Fence::Completion] {
        // Both CPUs have used the device, so nothing earlier is reported to them.
        for cpu in [&one, &two] {
            store(cpu, 1, 64);
            assert_eq!(cpu.fence(fence), Ok(()));
        }
        store(&one, 0, 8192);
        store(&one, 1, 8192);
        store(&one, 1, 8256);
        assert_eq!(one.fence(Fence::Posted), Ok(()));
        store(&one, 0, 0);
        assert_eq!(one.fence(fence), Ok(()), "it has not looked at device 1");
        store(&one, 1, 128);
        assert_eq!(one.fence(fence), lost(2));
        // Reported once, and to every CPU that uses the device, because the owner of the lost
        // stores is unknown.
        store(&one, 1, 192);
        assert_eq!(one.fence(fence), Ok(()));
        store(&two, 1, 256);
        assert_eq!(two.fence(fence), lost(2));
        // Losses of lines that were written back are reported as well.
        let (cached, place) = (at(1, MemoryType::WriteBack), 12288);
        let there = b.shared.cpu(0).store(&cached, place, &[1; 8]);
        there.unwrap();
        one.clwb(&cached, place).unwrap();
        assert_eq!(one.fence(fence), lost(1));
        store(&two, 1, 256);
        assert_eq!(two.fence(fence), lost(1));
    }
}
