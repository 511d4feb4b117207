// SPDX-License-Identifier: Apache-2.0

//! The cost of loads and stores.

mod common;

use common::{bench, profile, Bench, Pm, BYTES};
use design::host::ps;
use host::{Fence, Mapping, MemoryType, Program};
use sim::Time;

const MEDIA: Time = Time::ns(80);
const KINDS: [MemoryType; 3] = [
    MemoryType::Uncached,
    MemoryType::WriteCombining,
    MemoryType::WriteBack,
];

fn start(name: &str) -> Bench {
    bench(&profile(name), vec![Pm::new(BYTES, MEDIA)])
}

/// The time of a load of `bytes` bytes: the parts of CPU, host, link, wire and device.
fn load_ns(name: &str, b: &Bench, bytes: f64) -> f64 {
    let cpu = profile(name).core.load_ns.value;
    let way = b.host.mmio_ns + b.link.device_phy_ns + b.link.propagation_ns + b.link.root_phy_ns;
    let wire = (24.0 + 20.0 + bytes) / b.link.bytes_per_ns();
    cpu + 2.0 * way as f64 + wire + MEDIA.as_ns()
}

#[test]
fn timing_of_dependent_loads_is_profile_link_and_device() {
    for name in ["none", "polled", "nearpm", "optane-dimm", "cxl", "numa"] {
        for kind in KINDS {
            let b = start(name);
            let (cpu, pm) = (b.shared.cpu(0), Mapping::pm(0, kind));
            let begin = cpu.now();
            for n in 0..100 {
                cpu.load(&pm, 64 * n, &mut [0; 64]).unwrap();
            }
            let each = (cpu.now() - begin).as_ns() / 100.0;
            let want = load_ns(name, &b, 64.0);
            // DLLPs occasionally occupy the wire.
            assert!(
                (each - want).abs() < 0.5,
                "{name} {kind:?}: {each} ns, not {want}"
            );
        }
    }
}

/// The table of the crate documentation.
#[test]
fn timing_follows_each_profile() {
    let cost = |name: &str, work: &dyn Fn(&host::Cpu, &Mapping)| {
        let b = start(name);
        let (cpu, pm) = (b.shared.cpu(0), Mapping::pm(0, MemoryType::WriteBack));
        cpu.load(&pm, 0, &mut [0; 8]).unwrap();
        let begin = cpu.now();
        work(&cpu, &pm);
        (cpu.now() - begin).as_ns()
    };
    for name in design::HostProfile::names() {
        let load = cost(name, &|cpu, pm| cpu.load(pm, 4096, &mut [0; 64]).unwrap());
        let clwb = cost(name, &|cpu, pm| {
            cpu.store(pm, 0, &[1; 64]).unwrap();
            cpu.clwb(pm, 0).unwrap();
            cpu.fence(Fence::Posted).unwrap();
        });
        let nt = cost(name, &|cpu, pm| {
            cpu.ntstore(pm, 64, &[1; 64]).unwrap();
            cpu.fence(Fence::Posted).unwrap();
        });
        println!("{name}: {load:.1} | {clwb:.1} | {nt:.1}");
        let core = profile(name).core;
        let way = start(name).host.mmio_ns as f64;
        let want = core.issue_ns.value + core.clwb_ns.value + core.clwb_drain_ns.value;
        assert!(
            (clwb - want - way - core.sfence_ns.value).abs() < 0.01,
            "{name}: {clwb}"
        );
        let want = core.ntstore_ns.value + core.wc_flush_ns.value + core.sfence_ns.value;
        assert!((nt - want - way).abs() < 0.01, "{name}: {nt}");
    }
}

#[test]
fn timing_of_a_cached_line_is_a_hit() {
    let b = start("nearpm");
    let (cpu, pm) = (b.shared.cpu(0), Mapping::pm(0, MemoryType::WriteBack));
    cpu.load(&pm, 0, &mut [0; 8]).unwrap();
    let begin = cpu.now();
    for n in 0..8 {
        cpu.load(&pm, 8 * n, &mut [0; 8]).unwrap();
    }
    assert_eq!(cpu.now() - begin, Time::ns(8 * 2));
    assert_eq!(
        b.shared
            .with_machine(|m| (m.counts().hits, m.counts().fills)),
        (8, 1)
    );
}

#[test]
fn timing_loads_in_flight_are_bounded_by_fill_buffers() {
    for kind in [MemoryType::WriteCombining, MemoryType::WriteBack] {
        let b = start("nearpm");
        let buffers = u64::from(profile("nearpm").core.fill_buffers.value);
        let (cpu, pm) = (b.shared.cpu(0), Mapping::pm(0, kind));
        let elapsed = |offset: u64, count: u64| {
            let begin = cpu.now();
            let loads: Vec<_> = (0..count)
                .map(|n| cpu.issue_load(&pm, offset + 64 * n, 64).unwrap())
                .collect();
            for load in loads {
                cpu.finish_load(load).unwrap();
            }
            (cpu.now() - begin).as_ns()
        };
        let one = load_ns("nearpm", &b, 64.0);
        // A full set of buffers takes little more than one load; each further round takes one more.
        let few = elapsed(0, buffers);
        let many = elapsed(1 << 16, 10 * buffers);
        assert!(
            few > one && few < 1.4 * one,
            "{kind:?}: {few} ns for {buffers} loads, {one} for one"
        );
        assert!(
            many > 9.0 * one && many < 11.0 * one,
            "{kind:?}: {many} ns, {one} for one"
        );
    }
}

#[test]
fn timing_fill_buffers_are_per_cpu() {
    let b = start("nearpm");
    let pm = Mapping::pm(0, MemoryType::WriteBack);
    let program = |base: u64| -> (usize, Program<'_, Time>) {
        (
            base as usize,
            Box::new(move |cpu| {
                cpu.read(&pm, base << 16, &mut [0; 24 * 64]).unwrap();
                cpu.now()
            }),
        )
    };
    let ends = b.shared.run(vec![program(0), program(1)]).unwrap();
    let one = load_ns("nearpm", &b, 64.0);
    // The wire takes its share of both; with the buffers of one CPU there would be four rounds.
    for end in ends {
        assert!(end.as_ns() < 3.0 * one, "{end}: two rounds of {one} ns");
    }
}

#[test]
fn timing_write_combining_stream_reaches_the_link_rate() {
    for (name, least) in [("nearpm", 0.97), ("none", 0.97)] {
        let b = start(name);
        let (cpu, pm) = (b.shared.cpu(0), Mapping::pm(0, MemoryType::WriteCombining));
        let begin = cpu.now();
        for n in 0..8 * 4000 {
            cpu.store(&pm, 8 * n, &[n as u8; 8]).unwrap();
        }
        cpu.fence(Fence::ReadBack).unwrap();
        let rate = 4000.0 * 64.0 / (cpu.now() - begin).as_ns();
        // A TLP of 64 bytes has 24 bytes of overhead.
        let wire = b.link.bytes_per_ns() * 64.0 / 88.0;
        println!("{name}: {rate:.2} GB/s of {wire:.2}");
        assert!(
            rate > least * wire && rate <= wire,
            "{name}: {rate} GB/s of {wire}"
        );
        assert!(b.logs[0].lock().unwrap().iter().all(|w| w.2 == 64));
    }
}

#[test]
fn timing_of_a_fence_follows_its_kind() {
    let b = start("nearpm");
    let p = profile("nearpm");
    let (cpu, pm) = (b.shared.cpu(0), Mapping::pm(0, MemoryType::WriteBack));
    let cost = |fence: Fence| {
        cpu.load(&pm, 0, &mut [0; 8]).unwrap();
        let begin = cpu.now();
        cpu.store(&pm, 0, &[1; 8]).unwrap();
        cpu.clwb(&pm, 0).unwrap();
        cpu.fence(fence).unwrap();
        (cpu.now() - begin).as_ns()
    };
    let core = &p.core;
    let way = b.host.mmio_ns as f64;
    let issued = core.issue_ns.value + core.clwb_ns.value;
    let posted = issued + core.clwb_drain_ns.value + way + core.sfence_ns.value;
    assert!((cost(Fence::Posted) - posted).abs() < 0.01, "{posted}");
    let read_back = cost(Fence::ReadBack);
    let want = posted + load_ns("nearpm", &b, 4.0);
    assert!((read_back - want).abs() < 2.0, "{read_back}, not {want}");
    let completion = cost(Fence::Completion);
    let link = (b.link.device_phy_ns + b.link.propagation_ns + b.link.root_phy_ns) as f64;
    // The line is posted while `clwb` is issued.
    let want = core.issue_ns.value + 2.0 * (way + link) + 88.0 / b.link.bytes_per_ns();
    assert!((completion - want).abs() < 2.0, "{completion}, not {want}");
    assert!(ps(posted) > 0);
    println!(
        "store, clwb, fence: {posted:.1} posted, {completion:.1} completion, {read_back:.1} \
        read back"
    );
    // Nothing to wait for.
    let begin = cpu.now();
    cpu.fence(Fence::ReadBack).unwrap();
    assert_eq!(cpu.now() - begin, Time(ps(core.sfence_ns.value)));
}

#[test]
fn timing_of_store_and_fence_matches_the_published_one() {
    // Yang et al.: 90.4 ns for ntstore, 62.3 ns for store and clwb, of a line that is in the cache.
    let b = start("optane-dimm");
    let (cpu, pm) = (b.shared.cpu(0), Mapping::pm(0, MemoryType::WriteBack));
    cpu.load(&pm, 0, &mut [0; 8]).unwrap();
    let begin = cpu.now();
    cpu.store(&pm, 0, &[1; 64]).unwrap();
    cpu.clwb(&pm, 0).unwrap();
    cpu.fence(Fence::Posted).unwrap();
    let clwb = (cpu.now() - begin).as_ns();
    let begin = cpu.now();
    cpu.ntstore(&pm, 64, &[1; 64]).unwrap();
    cpu.fence(Fence::Posted).unwrap();
    let nt = (cpu.now() - begin).as_ns();
    assert!((clwb - 62.3).abs() < 0.1, "{clwb}");
    assert!((nt - 90.4).abs() < 0.1, "{nt}");
    println!("clwb {clwb:.1} ns, ntstore {nt:.1} ns");
}
