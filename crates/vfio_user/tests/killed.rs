// SPDX-License-Identifier: Apache-2.0

//! A server that is killed (`kill -9`) at any moment: the media file holds all acknowledged writes,
//! and whole blocks. There is no volatile write cache.

mod common;

use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use common::machine::{served, Machine};
use common::*;
use design::Design;
use device::{Model, RtlOptions};
use driver::{Buffer, DriverConfig, Host, IoCommand, NvmeDriver};
use sim::{Media, Random, Time};
use vfio_user::Server;

/// Socket and design of the child.
const PLACE: &str = "NEARSIDE_TEST_SERVES";
const DESIGN: &str = "NEARSIDE_TEST_DESIGN";
/// Places that are written, and blocks of each.
const PLACES: u64 = 64;
const BLOCKS: u32 = 16;
/// The first block of the first place. No place begins at a page.
const FIRST: u64 = 5;
const BYTES: usize = BLOCKS as usize * 512;
const DEPTH: usize = 8;
const ROUNDS: u64 = 8;

/// The server in a child process. It is no test by itself.
#[test]
fn killed_server_process() {
    let Ok(place) = std::env::var(PLACE) else {
        return;
    };
    let place = std::path::PathBuf::from(place);
    let design = std::env::var(DESIGN).unwrap();
    let design = Design::find(&design).unwrap();
    let media = Media::file(&place.join("media"), design.media.bytes.0).unwrap();
    let model = Model::named(Model::Fast).unwrap();
    let socket = place.join("0.sock");
    let served = served(&design, model, &RtlOptions::default(), socket, media);
    let _server = Server::start(vec![served]).unwrap();
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// A server process that ends with the test, however that ends.
struct Process(Child);

impl Process {
    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn server(dir: &Dir, design: &str) -> Process {
    let socket = dir.path().join("0.sock");
    let _ = std::fs::remove_file(&socket);
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed_server_process", "--nocapture"])
        .env(PLACE, dir.path())
        .env(DESIGN, design)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let server = Process(child);
    wait_for("the server", || UnixStream::connect(&socket).is_ok());
    server
}

fn controller(dir: &Dir) -> NvmeDriver<Machine> {
    let config = DriverConfig {
        io_queues: 1,
        command_timeout: Time(120_000_000_000_000), // wall-clock
        ..DriverConfig::default()
    };
    let machine = Machine::new(&dir.path().join("0.sock"), false);
    NvmeDriver::start(machine, config).unwrap()
}

/// The content of a block after a write.
fn block(lba: u64, number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < 512 {
        bytes.extend_from_slice(&lba.to_le_bytes());
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes
}

/// For each block: its last acknowledged write, and its last write that was begun.
type Written = Vec<(u64, u64)>;

fn check(c: &mut NvmeDriver<Machine>, written: &mut Written, round: u64) {
    for place in 0..PLACES {
        let first = FIRST + place * u64::from(BLOCKS);
        let mut back = vec![0; BYTES];
        c.read(first, &mut back).unwrap();
        for (lba, bytes) in (first..).zip(back.chunks(512)) {
            let number = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
            let (acknowledged, begun) = &mut written[lba as usize];
            let whole =
                number == 0 && bytes.iter().all(|&b| b == 0) || *bytes == block(lba, number);
            assert!(whole, "round {round}: block {lba} is torn");
            let allowed = number == *acknowledged || number == *begun;
            assert!(
                allowed,
                "round {round}: block {lba} has write {number}; {acknowledged} was acknowledged, \
                    {begun} begun"
            );
            (*acknowledged, *begun) = (number, number);
        }
    }
}

/// Writes until the server is gone.
fn load(
    c: &mut NvmeDriver<Machine>,
    written: &mut Written,
    numbers: &mut u64,
    gone: &AtomicBool,
    random: &mut Random,
) {
    // Any dword alignment is valid: blocks arrive in pieces.
    let buffers: Vec<u64> = (0..DEPTH)
        .map(|_| {
            let page = c.host_mut().alloc(BYTES as u64 + 4096, 4096).unwrap();
            page + 4 * random.below(1024)
        })
        .collect();
    let mut under_way: Vec<Option<u64>> = vec![None; DEPTH];
    loop {
        // Completions that arrived before the end count.
        let last = gone.load(Ordering::SeqCst);
        while let Some(completion) = c.poll(0).unwrap() {
            let slot = completion.tag as usize;
            assert_eq!(completion.status, spec::nvme::status::SUCCESS);
            let place = under_way[slot].take().unwrap();
            let first = FIRST + place * u64::from(BLOCKS);
            for lba in first..first + u64::from(BLOCKS) {
                written[lba as usize].0 = written[lba as usize].1;
            }
        }
        if last {
            return;
        }
        let mut rings = false;
        for slot in 0..DEPTH {
            let place = random.below(PLACES);
            if under_way[slot].is_some() || under_way.contains(&Some(place)) {
                continue;
            }
            *numbers += 1;
            let first = FIRST + place * u64::from(BLOCKS);
            let mut data = Vec::new();
            for lba in first..first + u64::from(BLOCKS) {
                data.extend(block(lba, *numbers));
                written[lba as usize].1 = *numbers;
            }
            c.host_mut().dma_write(buffers[slot], &data);
            let io = IoCommand::Write {
                lba: first,
                blocks: BLOCKS,
            };
            c.submit(0, io, &Buffer::Contiguous(buffers[slot]), slot as u64)
                .unwrap();
            under_way[slot] = Some(place);
            rings = true;
        }
        if rings {
            c.ring(0).unwrap();
        }
    }
}

fn kills(design: &str, rounds: u64) {
    let dir = Dir::new();
    let mut written = vec![(0, 0); (FIRST + PLACES * u64::from(BLOCKS)) as usize];
    let mut random = Random::new(7);
    let mut numbers = 0;
    for round in 0..rounds {
        let mut child = server(&dir, design);
        let mut c = controller(&dir);
        check(&mut c, &mut written, round);
        let gone = Arc::new(AtomicBool::new(false));
        let after = Duration::from_micros(500 + random.below(40_000));
        let killer = {
            let gone = gone.clone();
            std::thread::spawn(move || {
                std::thread::sleep(after);
                child.kill();
                gone.store(true, Ordering::SeqCst);
            })
        };
        load(&mut c, &mut written, &mut numbers, &gone, &mut random);
        killer.join().unwrap();
    }
    assert!(numbers > 0);
    let _server = server(&dir, design);
    check(&mut controller(&dir), &mut written, rounds);
}

/// With a journal that follows the media: the client's memory must not be ahead of it.
#[test]
fn killed_server_keeps_acknowledged_writes_with_a_persistence_domain() {
    match Model::named(Model::Fast).unwrap() {
        Model::Fast => kills("nearpm", ROUNDS),
        Model::Rtl => eprintln!("skipped: such a device has no media file on the RTL"),
    }
}

mod sampled {
    use super::*;

    #[test]
    fn killed_server_keeps_acknowledged_writes_and_whole_blocks() {
        kills("default", ROUNDS);
    }
}
