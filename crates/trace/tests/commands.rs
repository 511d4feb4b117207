// SPDX-License-Identifier: Apache-2.0

//! The trace of a real device, compared with its host's view.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use design::{Cpu, Design};
use driver::{Buffer, Completion, DriverConfig, IoCommand, NvmeDriver, SimHost};
use rtl::bitstream::stderr_progress;
use rtl::{DeviceConfig, RtlDevice};
use serde_json::Value;
use sim::{Media, Time, TraceEvent, TraceSink, Tracer};
use spec::nvme::{io, Sqe};
use testbed::driver_costs;
use trace::{Collector, Command, TraceFile, TracePoint, TRACE_POINTS};

const MEDIA: u64 = 1 << 30; // as in the default design
const QUEUES: u16 = 3;
const BLOCKS: u64 = MEDIA / 512;
const MAX_BLOCKS: u32 = 2048;

/// Keeps commands as they end.
#[derive(Default)]
struct Kept {
    collector: Collector,
    commands: Vec<Command>,
}

impl TraceSink for Kept {
    fn event(&mut self, time: Time, event: &TraceEvent) {
        self.collector.event(time, event);
        self.commands.extend(self.collector.take_finished());
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % n
    }
}

fn start(cpu: &str, tracer: Tracer) -> NvmeDriver<SimHost> {
    let design = Design::find("default").unwrap();
    let config = DeviceConfig::from_design(&design).unwrap();
    let media = Media::memory(MEDIA).unwrap();
    let device = RtlDevice::build(config, media, &mut stderr_progress("nearside_top")).unwrap();
    let costs = driver_costs(&Cpu {
        profile: cpu.into(),
        ..Cpu::default()
    });
    let mut host = testbed::host_of(Box::new(device), MEDIA, costs, QUEUES + 1).unwrap();
    assert!(host.system_mut().set_tracer(0, Some(tracer)));
    let config = DriverConfig {
        io_queues: QUEUES,
        ..DriverConfig::default()
    };
    NvmeDriver::start(host, config).unwrap()
}

/// Submits one command of a mix: valid ones of all kinds and sizes, and invalid ones.
fn place(
    c: &mut NvmeDriver<SimHost>,
    queue: usize,
    buffer: &Buffer,
    random: &mut Random,
    tag: u64,
) {
    let blocks = match random.below(4) {
        0 => 1 + random.below(u64::from(MAX_BLOCKS)) as u32,
        _ => 1 + random.below(16) as u32,
    };
    let lba = random.below(BLOCKS - u64::from(blocks));
    let nsid = c.nsid();
    let raw = |opcode| Sqe::of_blocks(opcode, nsid, lba, blocks);
    match random.below(10) {
        0..=3 => c.submit(queue, IoCommand::Read { lba, blocks }, buffer, tag),
        4..=5 => c.submit(queue, IoCommand::Write { lba, blocks }, buffer, tag),
        6 => c.submit_raw(queue, raw(io::WRITE_ZEROES), tag),
        7 => c.submit_raw(queue, raw(io::VERIFY), tag),
        8 => c.submit(queue, IoCommand::Flush, buffer, tag),
        _ => match random.below(3) {
            // After the end, an unknown namespace, an unknown command.
            0 => c.submit(
                queue,
                IoCommand::Read {
                    lba: BLOCKS,
                    blocks: 1,
                },
                buffer,
                tag,
            ),
            1 => c.submit_raw(queue, raw(io::VERIFY).with_nsid(77), tag),
            _ => c.submit_raw(queue, Sqe::new(0x7F), tag),
        },
    }
    .unwrap();
}

/// The completions that the host saw, by queue and in order.
fn run(c: &mut NvmeDriver<SimHost>, commands: u64) -> Vec<Vec<Completion>> {
    let mut random = Random(3);
    let buffers: Vec<Buffer> = (0..QUEUES)
        .map(|_| {
            let bytes = u64::from(MAX_BLOCKS) * 512;
            let base = driver::Host::alloc(c.host_mut(), bytes, 4096).unwrap();
            Buffer::Contiguous(base)
        })
        .collect();
    let mut seen = vec![Vec::new(); usize::from(QUEUES)];
    let (mut placed, mut done) = (0, 0);
    while done < commands {
        for queue in 0..usize::from(QUEUES) {
            while placed < commands && c.outstanding(queue) < 6 {
                place(c, queue, &buffers[queue], &mut random, placed);
                placed += 1;
            }
            c.ring(queue).unwrap();
            while let Some(completion) = c.poll(queue).unwrap() {
                seen[queue].push(completion);
                done += 1;
            }
            c.ring(queue).unwrap();
        }
        if done < commands {
            let limit = c.now() + Time::ms(50);
            c.wait(limit, "a command").unwrap();
        }
    }
    seen
}

fn check_order(command: &Command) {
    let order = [
        TracePoint::Stored,
        TracePoint::Doorbell,
        TracePoint::Fetch,
        TracePoint::Decoded,
        TracePoint::Started,
        TracePoint::FirstJob,
        TracePoint::LastJob,
        TracePoint::Done,
        TracePoint::Posted,
        TracePoint::Sent,
        TracePoint::Landed,
        TracePoint::Interrupt,
    ];
    let times: Vec<Time> = order.iter().filter_map(|&p| command.time(p)).collect();
    assert!(times.windows(2).all(|w| w[0] <= w[1]), "{command:?}");
    if let Some(data) = command.time(TracePoint::FirstData) {
        assert!(
            command.time(TracePoint::FirstJob).unwrap() < data,
            "{command:?}"
        );
        assert!(
            data < command.time(TracePoint::Done).unwrap(),
            "{command:?}"
        );
    }
    for point in [
        TracePoint::Stored,
        TracePoint::Doorbell,
        TracePoint::Fetch,
        TracePoint::Decoded,
    ] {
        assert!(command.time(point).is_some(), "{point:?} of {command:?}");
    }
    let data = matches!(command.opcode, io::READ | io::WRITE | io::VERIFY);
    if command.queue != 0 && command.status == Some(0) && data {
        assert!(command.time(TracePoint::FirstData).is_some(), "{command:?}");
    }
}

fn against_the_host(cpu: &str) {
    let kept = Arc::new(Mutex::new(Kept::default()));
    let mut controller = start(cpu, Tracer::new(kept.clone(), false));
    let before = kept.lock().unwrap().commands.len();
    let seen = run(&mut controller, 250);
    let limit = controller.now() + Time::us(50);
    controller
        .host_mut()
        .system_mut()
        .advance_until(limit)
        .unwrap();
    let commands = kept.lock().unwrap().commands.split_off(before);
    let total: usize = seen.iter().map(Vec::len).sum();
    assert_eq!(commands.len(), total, "each command once");
    let mut failed = 0;
    for (n, seen) in seen.iter().enumerate() {
        let queue = n as u16 + 1;
        let mut own: Vec<&Command> = commands.iter().filter(|c| c.queue == queue).collect();
        own.sort_by_key(|c| c.time(TracePoint::Landed).unwrap());
        assert_eq!(own.len(), seen.len(), "queue {queue}");
        for (command, completion) in own.iter().zip(seen) {
            check_order(command);
            assert_eq!(command.status, Some(completion.status.0), "{command:?}");
            if completion.command != "command" {
                assert_eq!(command.name(), completion.command);
            }
            failed += usize::from(!completion.status.is_success());
            assert!(completion.submitted <= command.time(TracePoint::Stored).unwrap());
            // With interrupts, too: a running handler checks for entries before their interrupt
            // arrives.
            assert!(command.time(TracePoint::Landed).unwrap() <= completion.completed);
            assert_eq!(
                command.time(TracePoint::Interrupt).is_some(),
                cpu == "kernel"
            );
            assert_eq!(command.vector.is_some(), cpu == "kernel");
        }
    }
    assert!(failed > 10, "bad commands are part of the mixture");
    let long = commands
        .iter()
        .filter(|c| c.blocks().is_some_and(|(_, n)| n > 1000));
    let listed = long.filter(|c| c.time(TracePoint::LastJob) > c.time(TracePoint::FirstData));
    assert!(listed.count() > 0, "lists are walked while data flows");
}

#[test]
#[ignore = "takes seconds"]
fn trace_agrees_with_a_polling_host() {
    against_the_host("polled");
}

#[test]
#[ignore = "takes seconds"]
fn trace_agrees_with_a_host_with_interrupts() {
    against_the_host("kernel");
}

fn file(name: &str) -> (Vec<u8>, u64) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let file = Arc::new(Mutex::new(TraceFile::create(&path).unwrap()));
    let mut controller = start("polled", Tracer::new(file.clone(), false));
    run(&mut controller, 60);
    controller.shutdown().unwrap();
    let count = file.lock().unwrap().finish().unwrap();
    (std::fs::read(path).unwrap(), count)
}

#[test]
#[ignore = "takes seconds"]
fn trace_json_lines_are_reproducible() {
    let (text, count) = file("a.jsonl");
    assert_eq!(text, file("b.jsonl").0, "the same bytes");
    let lines: Vec<Value> = text
        .split(|&b| b == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(lines.len() as u64, count);
    assert!(count > 60, "admin commands, too");
    let known: Vec<&str> = TRACE_POINTS.iter().map(|p| p.1).collect();
    for line in &lines {
        for (name, time) in line["times_ps"].as_object().unwrap() {
            assert!(known.contains(&&name[..]) && time.is_u64(), "{line}");
        }
    }
    let beyond = lines.iter().find(|l| l["lba"] == BLOCKS);
    assert_eq!(beyond.unwrap()["status_name"], "LBA Out of Range");
    let identify = lines.iter().find(|l| l["command"] == "Identify").unwrap();
    assert_eq!(
        (&identify["queue"], &identify["lba"]),
        (&0.into(), &Value::Null)
    );
}

#[test]
#[ignore = "takes seconds"]
fn trace_slices_nest() {
    let (text, count) = file("c.json");
    assert_eq!(text, file("d.json").0, "the same bytes");
    let doc: Value = serde_json::from_slice(&text).unwrap();
    let events = doc["traceEvents"].as_array().unwrap();
    // Exact: all digits of ts and dur are there.
    let ps = |e: &Value, key: &str| (e[key].as_f64().unwrap() * 1e6).round() as u64;
    let slices: Vec<&Value> = events.iter().filter(|e| e["ph"] == "X").collect();
    // By track: end of the last command, of the last stage.
    let mut ends = std::collections::BTreeMap::<u64, (u64, u64)>::new();
    let mut commands = 0;
    for slice in slices {
        let (from, tid) = (ps(slice, "ts"), slice["tid"].as_u64().unwrap());
        let to = from + ps(slice, "dur");
        if slice.get("args").is_some() {
            commands += 1;
            let last = ends.insert(tid, (to, from));
            assert!(
                last.is_none_or(|(end, _)| end <= from),
                "commands of a track overlap: {slice}"
            );
        } else {
            let (end, stage) = ends.get_mut(&tid).unwrap();
            assert!(from == *stage && to > from && to <= *end, "{slice}");
            *stage = to;
        }
    }
    assert_eq!(commands, count);
    let names: Vec<&Value> = events
        .iter()
        .filter(|e| e["name"] == "thread_name")
        .collect();
    assert!(
        names.len() > usize::from(QUEUES),
        "overlapping commands have different tracks"
    );
}

#[test]
fn trace_file_refuses_other_extensions() {
    let error = TraceFile::create(&PathBuf::from("trace.txt"))
        .err()
        .unwrap();
    assert!(error.to_string().contains(".jsonl"), "{error}");
}
