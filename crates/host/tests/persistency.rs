// SPDX-License-Identifier: Apache-2.0

//! Random programs on several CPUs compared with a model, with and without a power cut.

mod common;
#[path = "common/model.rs"]
mod model;

use std::sync::Mutex;

use common::{bench, profile, Bench, Pm, BYTES};
use design::host::ReplacementPolicy;
use design::HostProfile;
use host::{CrashReport, CutScope, Error, Fence, Mapping, MemoryType, Program};
use model::{program, Model, Use, COUNT, CPUS, LINE};
use sim::{Random, Time};

const DEVICES: usize = 2;
const OPS: u64 = 250;

/// A host with a cache so small that lines are evicted all the time.
fn small(policy: ReplacementPolicy) -> HostProfile {
    let mut profile = profile("nearpm");
    (profile.cache.bytes.value, profile.cache.ways.value) = (2 * 4 * 64, 2);
    profile.cache.policy.value = policy;
    (
        profile.core.fill_buffers.value,
        profile.core.wc_buffers.value,
    ) = (4, 4);
    profile
}

struct Outcome {
    bench: Bench,
    model: Model,
    end: Time,
    results: Vec<Result<(), Error>>,
}

fn run(seed: u64, fence: Fence, promise: bool, cut: Option<Time>) -> Outcome {
    let policy = [ReplacementPolicy::Lru, ReplacementPolicy::Random][(seed % 2) as usize];
    // The second device is slow, so that queues fill.
    let devices = vec![
        Pm::new(BYTES, Time::ns(80)),
        Pm::new(BYTES, Time::ns(300)).slow(Time::ns(40)),
    ];
    let bench = bench(&small(policy), devices);
    bench.shared.with_machine(|machine| machine.cut_at(cut));
    let model = Mutex::new(Model::new(DEVICES));
    let programs = (0..CPUS)
        .map(|cpu| {
            let model = &model;
            let work: Program<'_, Result<(), Error>> =
                Box::new(move |c| program(c, model, DEVICES, fence, promise, OPS, seed * 31 + cpu));
            (cpu as usize, work)
        })
        .collect();
    let results = bench.shared.run(programs).unwrap();
    let end = bench.shared.with_machine(|machine| machine.system().now());
    Outcome {
        model: model.into_inner().unwrap(),
        bench,
        end,
        results,
    }
}

fn held(bench: &Bench, at: (usize, u64)) -> Vec<u8> {
    let image = bench.images[at.0].lock().unwrap();
    let from = at.1 as usize * LINE;
    image[from..from + LINE].to_vec()
}

#[test]
fn persistency_without_power_cut_keeps_all_stores() {
    for seed in 0..20 {
        let o = run(seed, Fence::Posted, false, None);
        assert!(o.results.iter().all(Result::is_ok), "{:?}", o.results);
        for cpu in 0..CPUS as usize {
            let cpu = o.bench.shared.cpu(cpu);
            for device in 0..DEVICES {
                let pm = Mapping::pm(device, MemoryType::WriteBack);
                cpu.flush(&pm, 0, COUNT as usize * LINE).unwrap();
            }
            cpu.fence(Fence::ReadBack).unwrap();
        }
        for (&at, line) in &o.model.lines {
            let last = line.history.last().unwrap();
            assert_eq!(
                held(&o.bench, at),
                last,
                "seed {seed} {:?} {at:?}",
                line.usage
            );
        }
    }
}

/// Cuts the power of runs at several times, and checks what is left.
fn cuts(fence: Fence, cut: CutScope, promise: bool, look: impl Fn(&Outcome, &CrashReport)) {
    let mut promised = 0;
    for seed in 0..40 {
        let end = run(seed, fence, promise, None).end;
        let mut random = Random::new(seed);
        for _ in 0..3 {
            let at = Time(1 + random.below(end.0));
            let o = run(seed, fence, promise, Some(at));
            let ended = |r: &Result<(), Error>| r.is_ok() || *r == Err(Error::PowerCut(at));
            assert!(o.results.iter().all(ended), "{:?}", o.results);
            let crash = o
                .bench
                .shared
                .with_machine(|machine| machine.crash(cut))
                .unwrap();
            assert_eq!(crash.at, at);
            for &line in o.model.lines.keys() {
                let wrong = o.model.wrong(line, &held(&o.bench, line));
                assert_eq!(wrong, None, "seed {seed}, cut at {at}");
                promised += o.model.lines[&line].promised;
            }
            look(&o, &crash);
            // Continue after the cut.
            o.bench.shared.with_machine(|machine| machine.restart());
            let pm = Mapping::pm(0, MemoryType::WriteBack);
            let mut out = [0; LINE];
            o.bench.shared.cpu(0).load(&pm, 0, &mut out).unwrap();
            assert_eq!(out[..], held(&o.bench, (0, 0)));
        }
    }
    assert_eq!(promised > 1000, promise, "{promised}");
}

#[test]
fn persistency_read_back_survives_a_cut_of_all_power() {
    cuts(Fence::ReadBack, CutScope::All, true, |_, _| {});
}

#[test]
fn persistency_completion_survives_where_acceptance_persists() {
    cuts(Fence::Completion, CutScope::All, true, |_, _| {});
}

#[test]
fn persistency_posted_stores_survive_a_host_cut() {
    cuts(Fence::Posted, CutScope::Host, true, |o, crash| {
        // Lines that differ from their last content are those that the crash reports.
        for (&at, line) in &o.model.lines {
            let last = line.history.last().unwrap();
            let reported = crash.dirty.iter().chain(&crash.gathered);
            let lines: Vec<_> = reported
                .filter(|l| (l.line.device, l.line.offset) == (at.0, at.1 * LINE as u64))
                .collect();
            if line.usage == Use::Shared && lines.is_empty() {
                assert_eq!(held(&o.bench, at), last, "{at:?}");
            }
            if line.usage == Use::Shared {
                for lost in lines {
                    for n in (0..LINE).filter(|n| lost.bytes >> n & 1 == 1) {
                        assert_eq!(lost.data[n], last[n], "{at:?}");
                    }
                }
            }
        }
    });
}

#[test]
fn persistency_stores_without_a_fence_are_lost() {
    // The model detects a fence that promises too much: posted writes prove nothing when all power
    // fails.
    let mut lost = 0;
    for seed in 0..60 {
        let end = run(seed, Fence::Posted, true, None).end;
        let at = Time(1 + Random::new(seed).below(end.0));
        let o = run(seed, Fence::Posted, true, Some(at));
        o.bench
            .shared
            .with_machine(|m| m.crash(CutScope::All))
            .unwrap();
        let wrong = |&line: &(usize, u64)| o.model.wrong(line, &held(&o.bench, line)).is_some();
        lost += o.model.lines.keys().filter(|line| wrong(line)).count();
    }
    assert!(lost > 0);
    println!("{lost} lines broke a promise that nobody should have made");
}

#[test]
fn persistency_repeats_with_the_seed() {
    let run = |seed| {
        let o = run(seed, Fence::ReadBack, true, None);
        let logs: Vec<_> = o
            .bench
            .logs
            .iter()
            .map(|l| l.lock().unwrap().clone())
            .collect();
        let images: Vec<_> = o
            .bench
            .images
            .iter()
            .map(|i| i.lock().unwrap().clone())
            .collect();
        let times: Vec<_> = (0..CPUS as usize)
            .map(|c| o.bench.shared.cpu(c).now())
            .collect();
        let counts = o.bench.shared.with_machine(|m| m.counts());
        (logs, images, times, counts, o.end)
    };
    for seed in 0..6 {
        let first = run(seed);
        assert!(first.3.evictions > 50 && first.3.hits > 40, "{:?}", first.3);
        assert!(first == run(seed), "seed {seed}");
    }
}
