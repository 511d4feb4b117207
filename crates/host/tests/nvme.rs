// SPDX-License-Identifier: Apache-2.0

//! Several libraries on one host: an NVMe driver, and persistent memory on other CPUs.

#[path = "common/model.rs"]
mod model;

use std::sync::Mutex;

use design::{Design, Profile};
use device::Model::{self as DeviceModel, Fast, Rtl};
use driver::workload::{run_job, IoJob};
use driver::{DriverConfig, NvmeDriver, SharedHost};
use host::{
    CacheParameters, CutScope, Error, Fence, HostParameters, Mapping, MemoryType, Program,
    SharedMachine,
};
use model::{program, Model, COUNT, CPUS, LINE};
use sim::{Random, Time};
use testbed::{host_parameters, set_media_profile, Testbed};

/// Address range of the NVMe job: after the model's lines.
const JOB: u64 = 1 << 20;

fn design() -> Design {
    let design = Design::find("default").unwrap();
    let media = "[media]\nbytes = \"4 MiB\"\nprofile = \"optane-dcpmm\"\n";
    design
        .with_values(&format!("{media}[cpu]\nprofile = \"nearpm\"\n"))
        .unwrap()
}

/// A host with a very small cache.
fn testbed(design: &Design, model: DeviceModel) -> Testbed {
    let (sets, ways) = (4, 2);
    let parameters = host_parameters(&design.cpu.host().unwrap());
    let policy = parameters.cache.policy;
    let parameters = HostParameters {
        cache: CacheParameters { sets, ways, policy },
        ..parameters
    };
    let testbed = Testbed::builder(design).model(model).host(parameters);
    testbed.build().unwrap()
}

fn controller(testbed: &Testbed) -> NvmeDriver<SharedHost> {
    let config = DriverConfig {
        io_queues: 4,
        io_entries: 64,
        ..DriverConfig::default()
    };
    NvmeDriver::start(testbed.host(0, 5, CPUS as usize), config).unwrap()
}

struct RunResult {
    shared: SharedMachine,
    model: Model,
    /// The driver's result: bytes and time of its job.
    nvme: Result<(u64, Time), driver::Error>,
    begin: Time,
    end: Time,
}

fn run(device: DeviceModel, seed: u64, after: Option<Time>, ops: u64) -> RunResult {
    let design = design();
    let testbed = testbed(&design, device);
    let mut controller = controller(&testbed);
    let shared = testbed.machine();
    let begin = shared.with_machine(|m| m.system().now());
    shared.with_machine(|m| m.cut_at(after.map(|after| begin + after)));
    let model = Mutex::new(Model::new(1));
    let nvme = Mutex::new(None);
    let mut programs: Vec<(usize, Program<'_, Result<(), Error>>)> = Vec::new();
    for cpu in 0..CPUS {
        let model = &model;
        let work =
            move |c: &host::Cpu| program(c, model, 1, Fence::ReadBack, true, ops, seed * 7 + cpu);
        programs.push((cpu as usize, Box::new(work)));
    }
    let job = IoJob {
        start: JOB,
        span: JOB,
        max_bytes: 16384,
        queues: 4,
        depth: 4,
        commands: 400,
        read_percent: 50,
        verify: true,
        ..IoJob::default()
    };
    let controller = &mut controller;
    let result = &nvme;
    programs.push((
        CPUS as usize,
        Box::new(move |_| {
            let outcome = run_job(controller, &job, &mut |_, _| true);
            let outcome = outcome.map(|o| (o.verified_bytes, o.report.elapsed));
            *result.lock().unwrap() = Some(outcome);
            Ok(())
        }),
    ));
    let results = shared.run(programs).unwrap();
    for result in results {
        assert!(
            matches!(result, Ok(()) | Err(Error::PowerCut(_))),
            "{result:?}"
        );
    }
    let end = shared.with_machine(|m| m.system().now());
    RunResult {
        model: model.into_inner().unwrap(),
        nvme: nvme.into_inner().unwrap().unwrap(),
        shared: shared.clone(),
        begin,
        end,
    }
}

fn persists(device: DeviceModel, seeds: u64, cuts: u64, ops: u64) {
    let mut promised = 0;
    for seed in 0..seeds {
        let whole = run(device, seed, None, ops);
        let (verified, _) = whole.nvme.unwrap();
        assert!(verified > 0);
        let span = whole.end - whole.begin;
        let mut random = Random::new(seed);
        for _ in 0..cuts {
            let after = Time(1 + random.below(span.0));
            let ran = run(device, seed, Some(after), ops);
            ran.shared.with_machine(|m| m.crash(CutScope::All)).unwrap();
            ran.shared.with_machine(|m| m.restart());
            let (cpu, pm) = (ran.shared.cpu(0), Mapping::pm(0, MemoryType::Uncached));
            for (&at, line) in &ran.model.lines {
                let mut found = [0; LINE];
                cpu.load(&pm, at.1 * LINE as u64, &mut found).unwrap();
                let wrong = ran.model.wrong(at, &found);
                assert_eq!(wrong, None, "seed {seed}, cut after {after}");
                promised += line.promised;
            }
        }
    }
    println!("{promised} promised versions of {COUNT} lines survived");
    assert!(promised > 0);
}

#[test]
fn pm_beside_nvme_survives_power_cuts() {
    persists(Fast, 6, 4, 200);
}

#[test]
fn cache_is_not_snooped_by_device_writes_to_media() {
    let design = design();
    let testbed = testbed(&design, Fast);
    let mut controller = controller(&testbed);
    let shared = testbed.machine();
    let (cpu, pm) = (shared.cpu(0), Mapping::pm(0, MemoryType::WriteBack));
    let mut out = [0; LINE];
    cpu.load(&pm, 0, &mut out).unwrap();
    controller.write(0, &[7; 512]).unwrap();
    cpu.load(&pm, 0, &mut out).unwrap();
    assert_eq!(out, [0; LINE]);
    cpu.clflushopt(&pm, 0).unwrap();
    cpu.load(&pm, 0, &mut out).unwrap();
    assert_eq!(out, [7; LINE]);
    // The reverse direction: the driver reads what was written back.
    cpu.store(&pm, 64, &[8; LINE]).unwrap();
    cpu.clwb(&pm, 64).unwrap();
    cpu.fence(Fence::ReadBack).unwrap();
    let mut block = [0; 512];
    controller.read(0, &mut block).unwrap();
    assert_eq!(block[..128], [[7; 64], [8; 64]].concat()[..]);
}

/// Mean of 64-byte loads at random times, ns.
fn load_ns(profile: &str, media: &str, device: DeviceModel) -> f64 {
    let values = format!("[media]\nprofile = \"{media}\"\n[cpu]\nprofile = \"{profile}\"\n");
    let design = design().with_values(&values).unwrap();
    let testbed = testbed(&design, device);
    let mut controller = controller(&testbed);
    let shared = testbed.machine();
    let profile = Profile::find(media).unwrap();
    set_media_profile(controller.host_mut(), &profile).unwrap();
    let (cpu, pm) = (shared.cpu(0), Mapping::pm(0, MemoryType::Uncached));
    let mut random = Random::new(5);
    let mut sum = Time::ZERO;
    for _ in 0..400 {
        cpu.compute(Time::ns(random.below(4000))).unwrap();
        let begin = cpu.now();
        cpu.load(&pm, 64 * random.below(4096), &mut [0; 64])
            .unwrap();
        sum += cpu.now() - begin;
    }
    sum.as_ns() / 400.0
}

/// Host profile, media profile, and the time of a load: over a link, and on the memory bus.
const LOADS: [(&str, &str, f64); 5] = [
    ("polled", "dram", 738.0 + 17.0),
    ("nearpm", "dram", 436.0),
    ("cxl", "dram", 249.0),
    ("optane-dimm", "optane-dcpmm", 329.0),
    ("numa", "optane-dcpmm", 389.0),
];

fn loads(device: DeviceModel) {
    for (profile, media, want) in LOADS {
        let found = load_ns(profile, media, device);
        println!("{profile}, {media}: {found:.1} ns");
        assert!(
            (found - want).abs() < 8.0,
            "{profile}: {found} ns, not {want}"
        );
    }
}

#[test]
fn profile_sets_the_time_of_loads() {
    loads(Fast);
}

#[test]
#[ignore = "needs Verilator"]
fn profile_sets_the_time_of_loads_on_the_rtl() {
    loads(Rtl);
}

#[test]
fn programs_repeat_with_the_same_times() {
    let run = || {
        let ran = run(Fast, 3, None, 200);
        let times: Vec<Time> = (0..8).map(|c| ran.shared.cpu(c).now()).collect();
        let counts = ran.shared.with_machine(|m| m.counts());
        (ran.nvme.unwrap(), times, counts, ran.end)
    };
    assert_eq!(run(), run());
}

#[test]
#[ignore = "needs Verilator"]
fn pm_beside_nvme_survives_power_cuts_on_the_rtl() {
    persists(Rtl, 1, 3, 100);
}
