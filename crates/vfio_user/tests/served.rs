// SPDX-License-Identifier: Apache-2.0

//! A device of a design, attached through a client. `NEARSIDE_MODEL` names the model; the default
//! is the fast one. The project's driver works on memory that it shares with the server. See
//! crates/device/README.md.

mod common;

use std::sync::{Arc, Mutex};

use common::machine::{self, Machine, RAM_BASE, RAM_BYTES};
use common::*;
use design::Design;
use device::{Model, RtlOptions};
use driver::control::{DelayRegisters, Inventory};
use driver::workload::{run_job, IoJob};
use driver::{Buffer, DriverConfig, Host, IoCommand, NvmeDriver};
use memmap2::MmapOptions;
use serde_json::Value;
use sim::{Bar, Media, Time, Tracer};
use spec::nvme::status;
use vfio_user::{RegisterWrite, Server};

const MEDIA: u64 = 1 << 30; // as in the default design

fn default_design() -> Design {
    Design::find("default").unwrap()
}

/// Serves a device with media in a file and the timing of an NVM.
fn serve(dir: &Dir, tracer: Option<Tracer>) -> Server {
    let media = Media::file(&dir.path().join("media"), MEDIA).unwrap();
    let design = default_design();
    let registers = design::Profile::latencies("test", 305.0, 94.0)
        .registers(design.clock(), design.interleave())
        .unwrap();
    let delays = (0..).zip(&registers);
    let delays = delays.flat_map(|(c, r)| DelayRegisters::of_channel(c).writes(r).unwrap());
    let setup = delays.map(|(offset, value)| RegisterWrite {
        bar: Bar::Control,
        offset,
        value,
    });
    serve_media(dir, media, setup.collect(), tracer)
}

fn serve_media(
    dir: &Dir,
    media: Media,
    setup: Vec<RegisterWrite>,
    tracer: Option<Tracer>,
) -> Server {
    let pm_file = media
        .shared_file()
        .map(|file| Arc::new(file.try_clone_to_owned().unwrap()));
    let model = Model::named(Model::Fast).unwrap();
    let options = RtlOptions::default();
    let mut served = machine::served(&default_design(), model, &options, dir.socket(0), media);
    served.function.pm_file = pm_file;
    served.setup = setup;
    served.tracer = tracer;
    Server::start(vec![served]).unwrap()
}

fn config() -> DriverConfig {
    DriverConfig {
        io_queues: 4,
        command_timeout: Time(120_000_000_000_000), // wall-clock
        ..DriverConfig::default()
    }
}

fn job(commands: u64) -> IoJob {
    IoJob {
        read_percent: 50,
        min_bytes: 512,
        max_bytes: 16384,
        queues: 4,
        depth: 8,
        commands,
        verify: true,
        ..IoJob::default()
    }
}

mod sampled {
    use super::*;

    #[test]
    #[ignore = "takes seconds"]
    fn served_device_works_with_the_driver() {
        let dir = Dir::new();
        let path = dir.path().join("trace.jsonl");
        let trace = Arc::new(Mutex::new(trace::TraceFile::create(&path).unwrap()));
        let server = serve(&dir, Some(Tracer::new(trace.clone(), false)));
        let data: Vec<u8> = (0..50_000u32).map(|i| ((i * i) >> 3) as u8).collect();
        for interrupts in [false, true] {
            let machine = Machine::new(&dir.socket(0), interrupts);
            let mut controller = NvmeDriver::start(machine, config()).unwrap();
            run_job(&mut controller, &job(300), &mut |_, _| true).unwrap();
            controller.write(8, &data[..49_664]).unwrap();
            // The PM window shows the same media, through messages.
            let mut back = vec![0; 300];
            let machine = controller.host_mut();
            machine.read(Bar::Pm, 8 * 512 + 4000, &mut back).unwrap();
            assert_eq!(back, data[4000..4300]);
            let inventory = Inventory::read(machine).unwrap();
            for delay in inventory.delays() {
                let registers = delay.get(machine).unwrap();
                assert_eq!(registers.control, 1, "the profile is set at the start");
            }
            // A function reset while the controller is in use, and a new start.
            machine.client.reset().unwrap();
            machine.client.region_write(CONFIG, 4, &[6, 0]).unwrap();
            let mut controller = NvmeDriver::start(controller.into_host(), config()).unwrap();
            let mut back = vec![0; 49_664];
            controller.read(8, &mut back).unwrap();
            assert_eq!(back, data[..49_664]);
            controller.shutdown().unwrap();
        }
        server.stop();
        // The file holds the content of the media.
        let file = std::fs::read(dir.path().join("media")).unwrap();
        assert_eq!(file[4096..4096 + 49_664], data[..49_664]);
        // The trace has each command, from doorbell to host.
        let count = trace.lock().unwrap().finish().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len() as u64, count);
        let data: Vec<&Value> = lines.iter().filter(|l| l["queue"] != 0).collect();
        assert_eq!(data.len(), 2 * (300 + 1 + 1));
        for line in data {
            let times = &line["times_ps"];
            assert_eq!(line["status"], 0, "{line}");
            assert!(times["doorbell"].as_u64().unwrap() < times["landed"].as_u64().unwrap());
            assert_eq!(
                times["interrupt"].is_u64(),
                line["vector"].is_u64(),
                "{line}"
            );
        }
        assert!(lines.iter().any(|l| l["vector"].is_u64()));
    }
}

#[test]
fn served_device_fails_commands_on_a_full_disk() {
    let dir = Dir::new();
    let server = serve(&dir, None);
    let mut controller = NvmeDriver::start(Machine::new(&dir.socket(0), false), config()).unwrap();
    let data = [3; 8192];
    controller.write(0, &data).unwrap();
    // Accesses past the cut raise SIGBUS, as holes do on a full disk.
    let path = dir.path().join("media");
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(1 << 20).unwrap();
    let (gone, mut back) = (4096, [0; 8192]);
    let error = controller.write(gone, &data).unwrap_err().to_string();
    assert!(error.contains("Write Fault"), "{error}");
    let error = controller.read(gone, &mut back).unwrap_err().to_string();
    assert!(error.contains("Unrecovered Read Error"), "{error}");
    controller.read(0, &mut back).unwrap();
    assert_eq!(back, data, "the rest is there");
    file.set_len(MEDIA).unwrap();
    controller.write(gone, &data).unwrap();
    controller.read(gone, &mut back).unwrap();
    assert_eq!(back, data);
    controller.shutdown().unwrap();
    server.stop();
}

#[test]
fn served_pm_window_without_timing_is_mapped() {
    let dir = Dir::new();
    let server = serve_media(&dir, Media::shared(MEDIA).unwrap(), Vec::new(), None);
    let machine = Machine::new(&dir.socket(0), false);
    let window = machine.client.region(BAR2).unwrap();
    assert!(window.sparse_areas.is_empty(), "all of it");
    let file = window.file_offset.as_ref().unwrap();
    assert_eq!(file.start(), 0);
    let window = MmapOptions::new().map_raw(file.file()).unwrap();
    assert_eq!(window.len() as u64, MEDIA);
    // SAFETY: within the mapping; the device is at rest.
    let byte = |at: u64| unsafe { window.as_mut_ptr().add(at as usize) };
    let mut controller = NvmeDriver::start(machine, config()).unwrap();
    let data: Vec<u8> = (0..8192u32).map(|i| ((i * 7) >> 2) as u8).collect();
    controller.write(8, &data).unwrap();
    for (i, &expected) in data.iter().enumerate() {
        // SAFETY: as above.
        assert_eq!(unsafe { byte(4096 + i as u64).read_volatile() }, expected);
    }
    for at in [4096 + 5, 4096 + 8191, MEDIA - 1] {
        // SAFETY: as above.
        unsafe { byte(at).write_volatile(0xA5) };
    }
    let mut back = vec![0; 8192];
    controller.read(8, &mut back).unwrap();
    assert_eq!((back[5], back[8191], back[6]), (0xA5, 0xA5, data[6]));
    controller.read(MEDIA / 512 - 1, &mut back[..512]).unwrap();
    assert_eq!(back[511], 0xA5);
    // Messages show the same bytes.
    let mut byte = [0];
    controller
        .host_mut()
        .read(Bar::Pm, MEDIA - 1, &mut byte)
        .unwrap();
    assert_eq!(byte, [0xA5]);
    let window = controller.host().client.region(BAR2).unwrap();
    let file = window.file_offset.as_ref().unwrap().file();
    assert!(
        rustix::fs::ftruncate(file, 4096).is_err(),
        "a client can't cut it"
    );
    controller.shutdown().unwrap();
    server.stop();
}

/// A read of missing memory is not answered. A write to it is posted, so the controller can't
/// detect it.
#[test]
fn served_commands_on_unmapped_memory_end_as_on_a_bus() {
    let dir = Dir::new();
    let server = serve(&dir, None);
    let refused = |server: &Server| {
        let counters = server.counters().remove(0);
        counters
            .iter()
            .find(|c| c.0 == "refused_accesses")
            .unwrap()
            .1
    };
    let mut controller = NvmeDriver::start(Machine::new(&dir.socket(0), false), config()).unwrap();
    let nowhere = Buffer::Contiguous(RAM_BASE + RAM_BYTES);
    let (lba, blocks) = (0, 8);
    for (io, expected) in [
        (IoCommand::Read { lba, blocks }, status::SUCCESS),
        (
            IoCommand::Write { lba, blocks },
            status::DATA_TRANSFER_ERROR,
        ),
    ] {
        let before = refused(&server);
        controller.submit(0, io, &nowhere, 1).unwrap();
        controller.ring(0).unwrap();
        let ended = loop {
            if let Some(ended) = controller.poll(0).unwrap() {
                break ended.status;
            }
        };
        assert_eq!(ended, expected, "{io:?}");
        assert!(refused(&server) > before, "{io:?}");
        controller.ring(0).unwrap();
    }
    server.stop();
}

#[test]
fn served_device_survives_a_client_lost_under_load() {
    let dir = Dir::new();
    let _server = serve(&dir, None);
    for round in 0..4 {
        let machine = Machine::new(&dir.socket(0), false);
        let ram = machine.file.try_clone().unwrap();
        let mut controller = NvmeDriver::start(machine, config()).unwrap();
        for n in 0..controller.io_queues() {
            // Reads of 1 MiB into one place. Far more than can complete before the client leaves.
            let addr = controller.host_mut().alloc(1 << 20, 4096).unwrap();
            let io = IoCommand::Read {
                lba: n as u64 * 2048,
                blocks: 2048,
            };
            for tag in 0..32 {
                controller
                    .submit(n, io, &Buffer::Contiguous(addr), tag)
                    .unwrap();
            }
            controller.ring(n).unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(3));
        if round % 2 == 1 {
            // The memory is unmapped while commands use it.
            let client = &mut controller.host_mut().client;
            client.dma_unmap(RAM_BASE, RAM_BYTES).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        let used = controller.host().buffers.fresh as usize;
        drop(controller);
        let next = Machine::new(&dir.socket(0), false);
        poke(&ram, 0, &vec![0xAA; used]);
        let mut controller = NvmeDriver::start(next, config()).unwrap();
        run_job(&mut controller, &job(50), &mut |_, _| true).unwrap();
        let untouched = peek(&ram, 0, used).iter().all(|&b| b == 0xAA);
        assert!(untouched, "round {round}: the former client's memory");
    }
}
