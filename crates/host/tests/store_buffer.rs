// SPDX-License-Identifier: Apache-2.0

//! Uncached stores in a CPU's store buffer: when they leave, and what waits for them.

mod common;

use common::{bench, profile, Bench, Pm, BYTES};
use host::{Cpu, CutScope, Fence, Mapping, MemoryType, Program};
use sim::Time;

fn start() -> Bench {
    bench(&profile("nearpm"), vec![Pm::new(BYTES, Time::ns(80))])
}

fn interval() -> Time {
    Time(design::host::ps(profile("nearpm").core.mmio_store_ns.value))
}

const UNCACHED: Mapping = Mapping {
    device: 0,
    bar: sim::Bar::Pm,
    kind: MemoryType::Uncached,
};
const CACHED: Mapping = Mapping {
    device: 0,
    bar: sim::Bar::Pm,
    kind: MemoryType::WriteBack,
};

fn offsets(b: &Bench) -> Vec<u64> {
    b.logs[0].lock().unwrap().iter().map(|w| w.1).collect()
}

fn stores(cpu: &Cpu, count: u64) {
    for n in 0..count {
        cpu.store(&UNCACHED, 64 * n, &[n as u8 + 1; 64]).unwrap();
    }
}

#[test]
fn cpu_continues_and_stores_leave_at_intervals() {
    let b = start();
    let cpu = b.shared.cpu(0);
    stores(&cpu, 8);
    let issue = profile("nearpm").core.issue_ns.value;
    assert!((cpu.now().as_ns() - 8.0 * issue).abs() < 0.01);
    cpu.fence(Fence::ReadBack).unwrap();
    let arrived: Vec<Time> = b.logs[0].lock().unwrap().iter().map(|w| w.0).collect();
    assert_eq!(offsets(&b), (0..8).map(|n| 64 * n).collect::<Vec<_>>());
    for pair in arrived.windows(2) {
        let apart = pair[1] - pair[0];
        // DLLPs occasionally occupy the wire.
        assert!(
            apart + Time::ns(2) > interval() && apart < interval() + Time::ns(2),
            "{apart}"
        );
    }
}

#[test]
fn full_store_buffer_stalls_the_cpu() {
    let b = start();
    let cpu = b.shared.cpu(0);
    let held = u64::from(profile("nearpm").core.store_buffer.value);
    // The first store leaves at once.
    stores(&cpu, held + 1);
    assert!(cpu.now() < Time::ns(30), "{}", cpu.now());
    stores(&cpu, 10);
    let stalled = Time(9 * interval().0);
    assert!(cpu.now() > stalled, "{}", cpu.now());
}

/// What waits until the buffer is empty, with the stores that have left by then.
#[test]
fn ordered_operations_wait_for_the_buffer() {
    let line = 128 << 10;
    type Act = fn(&Cpu, u64);
    let acts: [(&str, Act); 5] = [
        ("sfence", |cpu, _| cpu.fence(Fence::Posted).unwrap()),
        ("clwb", |cpu, line| cpu.clwb(&CACHED, line).unwrap()),
        ("load past the cache", |cpu, line| {
            let combining = Mapping::pm(0, MemoryType::WriteCombining);
            let load = cpu.issue_load(&combining, line, 64).unwrap();
            cpu.finish_load(load).map(drop).unwrap();
        }),
        ("uncached load", |cpu, line| {
            cpu.load(&UNCACHED, line, &mut [0; 8]).unwrap()
        }),
        ("full write-combining buffer", |cpu, line| {
            cpu.ntstore(&CACHED, line, &[9; 64]).unwrap()
        }),
    ];
    for (name, act) in acts {
        let b = start();
        let cpu = b.shared.cpu(0);
        cpu.store(&CACHED, line, &[7; 64]).unwrap();
        cpu.load(&CACHED, line, &mut [0; 8]).unwrap();
        stores(&cpu, 5);
        let left = |b: &Bench| b.shared.with_machine(|m| m.stores_left(0));
        assert_eq!(left(&b), 1, "{name}");
        act(&cpu, line);
        assert_eq!(left(&b), 5, "{name}");
        cpu.fence(Fence::ReadBack).unwrap();
        let found = offsets(&b);
        let place = found.iter().position(|at| *at == line);
        assert!(place.is_none_or(|place| place == 5), "{name}: {found:?}");
    }
}

/// A cached store becomes visible after the uncached stores before it, also if another CPU's
/// accesses evict its line.
#[test]
fn eviction_does_not_pass_the_buffer() {
    let mut small = profile("nearpm");
    small.cache.bytes.value = 4096;
    small.cache.ways.value = 1;
    let b = bench(&small, vec![Pm::new(BYTES, Time::ns(80))]);
    let line = 128 << 10;
    let programs: Vec<(usize, Program<'_, ()>)> = vec![
        (
            0,
            Box::new(move |cpu: &Cpu| {
                cpu.load(&CACHED, line, &mut [0; 8]).unwrap();
                cpu.sleep_until(Time::us(1)).unwrap();
                stores(cpu, 20);
                cpu.store(&CACHED, line, &[7; 64]).unwrap();
                cpu.compute(Time::us(5)).unwrap();
                cpu.sleep_until(cpu.now()).unwrap();
            }),
        ),
        (
            1,
            Box::new(move |cpu: &Cpu| {
                cpu.sleep_until(Time(Time::us(1).0 + 20_000)).unwrap();
                // The same set.
                cpu.load(&CACHED, line + 4096, &mut [0; 8]).unwrap();
            }),
        ),
    ];
    b.shared.run(programs).unwrap();
    b.shared.cpu(0).fence(Fence::ReadBack).unwrap();
    let found = offsets(&b);
    let place = found.iter().position(|at| *at == line);
    assert_eq!(place, Some(20), "{found:?}");
}

#[test]
fn power_cut_loses_what_has_not_left() {
    let b = start();
    let cpu = b.shared.cpu(0);
    let cut = Time(Time::us(2).0 + interval().0 * 5 / 2);
    b.shared.with_machine(|m| m.cut_at(Some(cut)));
    cpu.sleep_until(Time::us(2)).unwrap();
    stores(&cpu, 8);
    assert!(cpu.fence(Fence::Posted).is_err());
    b.shared.with_machine(|m| m.crash(CutScope::Host)).unwrap();
    // At 0, 1 and 2 intervals.
    assert_eq!(offsets(&b), [0, 64, 128]);
    // The next life starts with an empty buffer.
    b.shared.with_machine(|m| m.restart());
    cpu.store(&UNCACHED, 4096, &[1; 8]).unwrap();
    cpu.fence(Fence::ReadBack).unwrap();
    assert_eq!(offsets(&b), [0, 64, 128, 4096]);
}

/// A device that accepts nothing for a while holds the stores, and loses none.
#[test]
fn slow_link_delays_stores() {
    let slow = Pm::new(BYTES, Time::ns(80)).slow(Time::us(3));
    let b = bench(&profile("nearpm"), vec![slow]);
    let cpu = b.shared.cpu(0);
    for round in 0..20 {
        for n in 0..20 {
            let at = 64 * (20 * round + n);
            cpu.store(&UNCACHED, at, &[1; 64]).unwrap();
        }
    }
    cpu.fence(Fence::Posted).unwrap();
    assert_eq!(b.shared.with_machine(|m| m.stores_left(0)), 400);
    cpu.sleep_until(Time::ms(2)).unwrap();
    assert_eq!(offsets(&b), (0..400).map(|n| 64 * n).collect::<Vec<_>>());
}
