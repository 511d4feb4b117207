//! NVMe commands per CPU second of the engine alone: a host that answers reads after 500 ns, takes writes at once, and has a fixed number of
//! commands in flight on several queues. Writes bring data that later reads compare. `engine_speed BYTES COMMANDS READ_PERCENT`.

use std::collections::VecDeque;
use std::path::Path;

use fast::{Config, FastDevice};
use sim::{Bar, Device, HostPort, Media, Mmio, Random, ReadData, Time};
use spec::nvme::{properties, Cqe, Sqe};

const QUEUES: usize = 8;
const DEPTH: usize = 16;
const ENTRIES: usize = 64;
const LATENCY: Time = Time::ns(500);
/// Memory: admin queues, then for each pair its queues, then buffers.
const QUEUE_BYTES: usize = 8192;
const SLOT_BYTES: usize = 1 << 18;

fn sq(queue: usize) -> usize {
    QUEUE_BYTES * (1 + 2 * queue)
}
fn cq(queue: usize) -> usize {
    QUEUE_BYTES * (2 + 2 * queue)
}
fn buffer(queue: usize, slot: usize) -> usize {
    (1 << 20) + SLOT_BYTES * (queue * DEPTH + slot)
}

struct Host {
    memory: Vec<u8>,
    mmio: VecDeque<(Time, Mmio)>,
    data: VecDeque<(Time, ReadData)>,
    /// Completion queue entries that have come, by queue.
    done: Vec<(usize, Cqe)>,
    answers: Vec<(u32, Option<Vec<u8>>)>,
}

impl HostPort for Host {
    fn write(&mut self, _: Time, addr: u64, data: &[u8]) -> bool {
        let at = addr as usize;
        self.memory[at..at + data.len()].copy_from_slice(data);
        if at < 1 << 20 && data.len() == 16 {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(data);
            self.done.push((
                (at / QUEUE_BYTES).saturating_sub(2) / 2,
                Cqe::from_bytes(&bytes),
            ));
        }
        true
    }
    fn read(&mut self, now: Time, tag: u32, addr: u64, len: u32) -> bool {
        let at = addr as usize;
        let data = Some(self.memory[at..at + len as usize].to_vec());
        let piece = ReadData {
            tag,
            data,
            last: true,
        };
        self.data.push_back((now + LATENCY, piece));
        true
    }
    fn mmio_part(&mut self, _: Time, _: u32, _: Vec<u8>) {}
    fn mmio_data(&mut self, _: Time, tag: u32, data: Option<Vec<u8>>) {
        self.answers.push((tag, data));
    }
    fn mmio(&mut self, now: Time) -> Option<Mmio> {
        (self.mmio.front()?.0 <= now)
            .then(|| self.mmio.pop_front())
            .flatten()
            .map(|m| m.1)
    }
    fn read_data(&mut self, now: Time) -> Option<ReadData> {
        (self.data.front()?.0 <= now)
            .then(|| self.data.pop_front())
            .flatten()
            .map(|d| d.1)
    }
    fn next_mmio(&self) -> Option<Time> {
        self.mmio.front().map(|m| m.0)
    }
    fn next_data(&self) -> Option<Time> {
        self.data.front().map(|d| d.0)
    }
    fn attention(&self) -> bool {
        !self.done.is_empty() || !self.answers.is_empty()
    }
}

impl Host {
    fn store(&mut self, now: Time, offset: u64, value: u32) {
        let write = Mmio::Write {
            bar: Bar::Nvme,
            offset,
            data: value.to_le_bytes().to_vec(),
        };
        self.mmio.push_back((now, write));
    }
    fn place(&mut self, queue: Option<usize>, index: usize, sqe: &Sqe) {
        let at = queue.map_or(0, sq) + 64 * index;
        self.memory[at..at + 64].copy_from_slice(&sqe.to_bytes());
    }
}

/// A queue pair as the host sees it.
#[derive(Default, Clone)]
struct Pair {
    tail: usize,
    head: usize,
    /// What each slot does: first block, and whether it reads.
    slots: Vec<(u64, bool)>,
}

/// Random bytes, of which each write takes those from a place of its own on.
fn pool(bytes: usize) -> Vec<u8> {
    let mut random = Random::new(9);
    (0..bytes + POOL).map(|_| random.below(256) as u8).collect()
}

/// CPU time of this process, user and system.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns = stat.split(' ').next().and_then(|n| n.parse::<f64>().ok());
    ns.unwrap_or(0.0) / 1e9
}

/// Places in the pool.
const POOL: usize = 1 << 16;

/// Where in the pool the content of a place's nth write begins.
fn place_of(place: u64, version: u32) -> usize {
    let mixed = (place << 24 | u64::from(version)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 48) as usize
}

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().collect();
    let arg = |n: usize, default: u64| args.get(n).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (bytes, commands, percent) = (arg(1, 512), arg(2, 1_000_000), arg(3, 50));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let design = design::Design::find(&root, "default").map_err(|e| e.to_string())?;
    let config = Config::of(&design, &root).map_err(|e| e.to_string())?;
    let media = Media::memory(design.media.bytes.0).map_err(|e| e.to_string())?;
    let mut device = FastDevice::new(config, media)?;
    let mut host = Host {
        memory: vec![0; (1 << 20) + SLOT_BYTES * QUEUES * DEPTH],
        mmio: VecDeque::new(),
        data: VecDeque::new(),
        done: Vec::new(),
        answers: Vec::new(),
    };
    // Admin queues at 0 and one page on; ASQ must not be 0, so the submission queue stands in the second half.
    let (asq, acq) = (0x1000usize, 0x1800usize);
    host.store(Time::ZERO, properties::AQA, 15 << 16 | 15);
    host.store(Time::ZERO, properties::ASQ, asq as u32);
    host.store(Time::ZERO, properties::ACQ, 0x3000);
    let _ = acq;
    host.store(Time::ZERO, properties::CC, 4 << 20 | 6 << 16 | 1);
    device
        .advance(Time::us(10), &mut host)
        .map_err(|e| e.to_string())?;
    let mut admin = 0usize;
    let mut setup: Vec<Sqe> = Vec::new();
    for queue in 0..QUEUES {
        let qid = queue as u16 + 1;
        setup.push(Sqe::create_io_cq(
            qid,
            ENTRIES as u32,
            cq(queue) as u64,
            None,
        ));
        setup.push(Sqe::create_io_sq(
            qid,
            ENTRIES as u32,
            sq(queue) as u64,
            qid,
        ));
    }
    for sqe in setup {
        let at = asq + 64 * admin;
        host.memory[at..at + 64].copy_from_slice(&sqe.to_bytes());
        admin = (admin + 1) % 16;
        host.store(device.now(), 0x1000, admin as u32);
        device
            .advance(device.now() + Time::us(10), &mut host)
            .map_err(|e| e.to_string())?;
        while host.done.is_empty() {
            device
                .advance(device.now() + Time::us(10), &mut host)
                .map_err(|e| e.to_string())?;
        }
        host.done.clear();
        host.store(device.now(), 0x1004, admin as u32);
    }
    let blocks = bytes / 512;
    let places = (64 << 20) / bytes;
    let mut random = Random::new(1);
    let mut written = vec![0u32; places as usize];
    let mut busy = vec![false; places as usize];
    let mut pairs = vec![
        Pair {
            slots: vec![(0, false); DEPTH],
            ..Pair::default()
        };
        QUEUES
    ];
    let (mut issued, mut ended, mut compared) = (0u64, 0u64, 0u64);
    let pool = pool(bytes as usize);
    let mut submit = |host: &mut Host,
                      pair: &mut Pair,
                      queue: usize,
                      slot: usize,
                      written: &mut [u32],
                      busy: &mut [bool]| {
        let place = loop {
            let place = random.below(places);
            if !busy[place as usize] {
                break place;
            }
        };
        busy[place as usize] = true;
        let read = random.below(100) < percent;
        let at = buffer(queue, slot);
        if !read {
            written[place as usize] += 1;
            let from = place_of(place, written[place as usize]);
            let data = &pool[from..from + bytes as usize];
            host.memory[at..at + bytes as usize].copy_from_slice(data);
        }
        let list = at + (SLOT_BYTES / 2);
        let pages = (bytes as usize).div_ceil(4096);
        for n in 1..pages {
            let entry = (at + 4096 * n) as u64;
            host.memory[list + 8 * (n - 1)..list + 8 * n].copy_from_slice(&entry.to_le_bytes());
        }
        let prp2 = match pages {
            1 => 0,
            2 => (at + 4096) as u64,
            _ => list as u64,
        };
        let sqe = Sqe::transfer(!read, 1, place * blocks, blocks as u32)
            .with_cid(slot as u16)
            .with_prps(at as u64, prp2);
        host.place(Some(queue), pair.tail, &sqe);
        pair.tail = (pair.tail + 1) % ENTRIES;
        pair.slots[slot] = (place, read);
    };
    let start = cpu_seconds();
    for (queue, pair) in pairs.iter_mut().enumerate() {
        for slot in 0..DEPTH {
            submit(&mut host, pair, queue, slot, &mut written, &mut busy);
            issued += 1;
        }
        host.store(device.now(), 0x1008 + 8 * queue as u64, pair.tail as u32);
    }
    let begin = device.now();
    let mut done = Vec::new();
    while ended < commands {
        device
            .advance(device.now() + Time::us(100), &mut host)
            .map_err(|e| e.to_string())?;
        std::mem::swap(&mut done, &mut host.done);
        for (queue, cqe) in done.drain(..) {
            if !cqe.status().is_success() {
                return Err(format!("status {}", cqe.status()));
            }
            let pair = &mut pairs[queue];
            let slot = usize::from(cqe.cid());
            let (place, read) = pair.slots[slot];
            let at = buffer(queue, slot);
            if read && written[place as usize] > 0 {
                let from = place_of(place, written[place as usize]);
                if host.memory[at..at + bytes as usize] != pool[from..from + bytes as usize] {
                    return Err(format!("wrong data at {place}"));
                }
                compared += bytes;
            }
            busy[place as usize] = false;
            ended += 1;
            pair.head = (pair.head + 1) % ENTRIES;
            host.store(device.now(), 0x100C + 8 * queue as u64, pair.head as u32);
            if issued < commands {
                submit(&mut host, pair, queue, slot, &mut written, &mut busy);
                issued += 1;
                host.store(device.now(), 0x1008 + 8 * queue as u64, pair.tail as u32);
            }
        }
    }
    let seconds = cpu_seconds() - start;
    let simulated = (device.now() - begin).as_ns();
    println!(
        "{:.0} thousand commands of {bytes} bytes a CPU second; {compared} bytes compared; simulated {:.2} GB/s",
        commands as f64 / seconds / 1e3,
        (commands * bytes) as f64 / simulated
    );
    for counter in device.counters() {
        eprintln!("{} {}", counter.name, counter.value / commands as f64);
    }
    Ok(())
}
