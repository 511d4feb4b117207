// SPDX-License-Identifier: Apache-2.0

//! NVMe commands on the fast model alone. The host answers reads after 500 ns and accepts writes at
//! once. It keeps a fixed number of commands in flight on several queues. Later reads compare the
//! data of writes.

use std::collections::VecDeque;

use fast::{Config, FastDevice};
use hdrhistogram::Histogram;
use sim::{Bar, Device, HostPort, Media, Mmio, ReadData, Time};
use spec::nvme::{properties, Cqe, Sqe};

use crate::content::Content;
use crate::places::{Access, Places};
use crate::process::{cpu_seconds, resident_mb};
use crate::run_result::{Hash, RunResult, LONGEST_NS};

const QUEUES: usize = 8;
const DEPTH: usize = 16;
/// Commands in flight, each with a separate buffer.
pub const IN_FLIGHT: usize = QUEUES * DEPTH;
/// The commands are spread over so much of the media.
pub const SPAN: u64 = 64 << 20;
/// Commands after which memory is measured for the first time: everything has been touched then.
pub const WARM: u64 = 400_000;

const ENTRIES: usize = 64;
const LATENCY: Time = Time::ns(500);
/// Memory: the admin queues, then each pair's queues, then buffers.
const ADMIN_ENTRIES: usize = 16;
const ADMIN_SQ: usize = 0x1000;
const ADMIN_CQ: usize = 0x3000;
const QUEUE_BYTES: usize = 8192;
const BUFFERS: usize = 1 << 20;
/// Largest command: in a slot, data are before the list of their pages.
pub const MOST_BYTES: usize = 1 << 17;
/// A page follows them, so that equal offsets of slots are in different sets of the CPU's caches.
const SLOT_BYTES: usize = 2 * MOST_BYTES + 4096;
// There is always a place that no command is at.
const _: () = assert!(SPAN as usize / MOST_BYTES > IN_FLIGHT);

/// Whether commands can have this size.
pub fn fits(bytes: usize) -> bool {
    bytes % 512 == 0 && (512..=MOST_BYTES).contains(&bytes)
}

fn sq(queue: usize) -> usize {
    QUEUE_BYTES * (2 + 2 * queue)
}
fn cq(queue: usize) -> usize {
    QUEUE_BYTES * (3 + 2 * queue)
}
fn buffer(queue: usize, slot: usize) -> usize {
    BUFFERS + SLOT_BYTES * (queue * DEPTH + slot)
}
/// The doorbell of a submission queue, or of a completion queue.
fn doorbell(qid: usize, completion: bool) -> u64 {
    0x1000 + 8 * qid as u64 + if completion { 4 } else { 0 }
}

/// An arrived completion queue entry: its time, its queue, its content.
type Done = (Time, usize, Cqe);

/// Memory of a host, and its transfers in flight to and from the device.
pub struct Host {
    memory: Vec<u8>,
    mmio: VecDeque<(Time, Mmio)>,
    data: VecDeque<(Time, ReadData)>,
    done: Vec<Done>,
}

impl HostPort for Host {
    fn write(&mut self, now: Time, addr: u64, data: &[u8]) -> bool {
        let at = addr as usize;
        self.memory[at..at + data.len()].copy_from_slice(data);
        if at < BUFFERS && data.len() == 16 {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(data);
            let queue = (at / QUEUE_BYTES).saturating_sub(3) / 2;
            self.done.push((now, queue, Cqe::from_bytes(&bytes)));
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
    fn mmio_data(&mut self, _: Time, _: u32, _: Option<Vec<u8>>) {}
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
        !self.done.is_empty()
    }
}

impl Host {
    /// With all of it zeros, and nothing on its way.
    pub fn new() -> Host {
        Host {
            memory: vec![0; BUFFERS + SLOT_BYTES * IN_FLIGHT],
            mmio: VecDeque::new(),
            data: VecDeque::new(),
            done: Vec::new(),
        }
    }
    fn store(&mut self, now: Time, offset: u64, value: u32) {
        let write = Mmio::Write {
            bar: Bar::Nvme,
            offset,
            data: value.to_le_bytes().to_vec(),
        };
        self.mmio.push_back((now, write));
    }
    fn place(&mut self, at: usize, sqe: &Sqe) {
        self.write_memory(at, &sqe.to_bytes());
    }
    /// Puts bytes into its memory.
    pub fn write_memory(&mut self, at: usize, bytes: &[u8]) {
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// The device of the default design, as after power-on.
pub fn device() -> Result<FastDevice, String> {
    let design = design::Design::find("default").map_err(|e| e.to_string())?;
    let config = Config::of(&design).map_err(|e| e.to_string())?;
    let media = Media::memory(design.media.bytes.0).map_err(|e| e.to_string())?;
    FastDevice::new(config, media).map_err(|e| e.to_string())
}

fn run(device: &mut FastDevice, host: &mut Host, time: Time) -> Result<(), String> {
    let until = device.now() + time;
    device.advance(until, host).map_err(|e| e.to_string())
}

/// A controller that is enabled, and its queues, as far as single commands need to know them.
pub struct Session {
    admin_tail: usize,
}

impl Session {
    /// Enables the controller and makes the queues.
    pub fn set_up(device: &mut FastDevice, host: &mut Host) -> Result<Session, String> {
        let last = ADMIN_ENTRIES as u32 - 1;
        host.store(Time::ZERO, properties::AQA, last << 16 | last);
        host.store(Time::ZERO, properties::ASQ, ADMIN_SQ as u32);
        host.store(Time::ZERO, properties::ACQ, ADMIN_CQ as u32);
        host.store(Time::ZERO, properties::CC, 4 << 20 | 6 << 16 | 1);
        run(device, host, Time::us(10))?;
        let of = |queue: usize| {
            let (qid, entries) = (queue as u16 + 1, ENTRIES as u32);
            [
                Sqe::create_io_cq(qid, entries, cq(queue) as u64, None),
                Sqe::create_io_sq(qid, entries, sq(queue) as u64, qid),
            ]
        };
        let mut session = Session { admin_tail: 0 };
        for sqe in (0..QUEUES).flat_map(of) {
            session.admin(device, host, &sqe)?;
        }
        Ok(session)
    }

    /// Waits for a command of the admin queue; returns when its entry has come.
    pub fn admin(
        &mut self,
        device: &mut FastDevice,
        host: &mut Host,
        sqe: &Sqe,
    ) -> Result<Time, String> {
        host.place(ADMIN_SQ + 64 * self.admin_tail, sqe);
        self.admin_tail = (self.admin_tail + 1) % ADMIN_ENTRIES;
        host.store(device.now(), doorbell(0, false), self.admin_tail as u32);
        let end = ended(device, host)?;
        host.store(device.now(), doorbell(0, true), self.admin_tail as u32);
        Ok(end)
    }
}

/// The first command of the first I/O queue.
pub fn first_command(device: &mut FastDevice, host: &mut Host, sqe: &Sqe) -> Result<Time, String> {
    host.place(sq(0), sqe);
    host.store(device.now(), doorbell(1, false), 1);
    ended(device, host)
}

/// Waits for the only command that is under way.
fn ended(device: &mut FastDevice, host: &mut Host) -> Result<Time, String> {
    while host.done.is_empty() {
        run(device, host, Time::us(10))?;
    }
    match host.done.drain(..).next_back() {
        Some((time, _, cqe)) if cqe.status().is_success() => Ok(time),
        other => Err(format!(
            "{:?}",
            other.map(|done| done.2.status().to_string())
        )),
    }
}

/// A command of a slot.
#[derive(Clone, Copy, Default)]
struct InFlight {
    place: u64,
    read: bool,
    since: Time,
}

/// A queue pair as the host sees it.
#[derive(Default, Clone)]
struct QueuePair {
    tail: usize,
    head: usize,
    slots: Vec<InFlight>,
}

/// Submits commands, and keeps the expected content of the media.
struct Load {
    bytes: usize,
    places: Places,
    content: Content,
    /// Content of a place that has not been written, unless the media have been filled.
    zeros: Option<Vec<u8>>,
}

impl Load {
    fn new(bytes: usize, percent: u64) -> Load {
        Load {
            bytes,
            places: Places::new(SPAN / bytes as u64, percent),
            content: Content::new(bytes),
            zeros: Some(vec![0; bytes]),
        }
    }

    /// Writes each place of the media once, without the device, so that data that are only read
    /// exist.
    fn fill(&mut self, media: &mut Media) -> Result<(), String> {
        self.zeros = None;
        for place in 0..SPAN / self.bytes as u64 {
            let at = place * self.bytes as u64;
            if !media.write(at, self.content.of(place, 0)) {
                return Err(format!("no room for place {place}"));
            }
        }
        Ok(())
    }

    /// Puts a command at a random place into a queue.
    fn submit(
        &mut self,
        now: Time,
        host: &mut Host,
        pair: &mut QueuePair,
        queue: usize,
        slot: usize,
    ) {
        let Access {
            place,
            read,
            version,
        } = self.places.begin();
        self.places.upcoming();
        let (at, bytes) = (buffer(queue, slot), self.bytes);
        if !read {
            host.memory[at..at + bytes].copy_from_slice(self.content.of(place, version));
        }
        let list = at + MOST_BYTES;
        let pages = bytes.div_ceil(4096);
        for n in 1..pages {
            let entry = (at + 4096 * n) as u64;
            host.memory[list + 8 * (n - 1)..list + 8 * n].copy_from_slice(&entry.to_le_bytes());
        }
        let prp2 = match pages {
            1 => 0,
            2 => (at + 4096) as u64,
            _ => list as u64,
        };
        let blocks = (bytes / 512) as u64;
        let sqe = Sqe::transfer(!read, 1, place * blocks, blocks as u32)
            .with_cid(slot as u16)
            .with_prps(at as u64, prp2);
        host.place(sq(queue) + 64 * pair.tail, &sqe);
        pair.tail = (pair.tail + 1) % ENTRIES;
        pair.slots[slot] = InFlight {
            place,
            read,
            since: now,
        };
        host.store(now, doorbell(queue + 1, false), pair.tail as u32);
    }

    /// Compares the data that an ended command has read, and returns their number of bytes.
    fn ended(&mut self, host: &Host, in_flight: InFlight, at: usize) -> Result<u64, String> {
        let place = in_flight.place;
        let version = self.places.end(place);
        if !in_flight.read {
            return Ok(0);
        }
        let data = &host.memory[at..at + self.bytes];
        let fine = match &self.zeros {
            Some(zeros) if version == 0 => data == &zeros[..],
            _ => data == self.content.of(place, version),
        };
        match fine {
            true => Ok(self.bytes as u64),
            false => Err(format!(
                "place {place} does not hold the data written there"
            )),
        }
    }
}

/// Runs commands of `bytes` bytes. `percent` of 100 are reads, the others writes.
pub fn measure(bytes: usize, commands: u64, percent: u64) -> Result<RunResult, String> {
    let mut device = device()?;
    let mut host = Host::new();
    Session::set_up(&mut device, &mut host)?;
    let mut load = Load::new(bytes, percent);
    if percent == 100 {
        load.fill(device.media_mut())?;
    }
    let mut pairs = vec![
        QueuePair {
            slots: vec![InFlight::default(); DEPTH],
            ..QueuePair::default()
        };
        QUEUES
    ];
    let mut latency =
        Histogram::<u64>::new_with_bounds(1, LONGEST_NS, 3).map_err(|e| e.to_string())?;
    let mut hash = Hash::default();
    let (mut issued, mut ended, mut compared) = (0, 0, 0);
    let mut warm_mb = f64::NAN;
    let (start, begin) = (cpu_seconds(), device.now());
    for (queue, pair) in pairs.iter_mut().enumerate() {
        for slot in 0..DEPTH {
            if issued < commands {
                load.submit(begin, &mut host, pair, queue, slot);
                issued += 1;
            }
        }
    }
    let mut done = Vec::new();
    while ended < commands {
        run(&mut device, &mut host, Time::us(100))?;
        let now = device.now();
        std::mem::swap(&mut done, &mut host.done);
        for (time, queue, cqe) in done.drain(..) {
            if !cqe.status().is_success() {
                return Err(format!("status {}", cqe.status()));
            }
            let pair = &mut pairs[queue];
            let slot = usize::from(cqe.cid());
            let in_flight = pair.slots[slot];
            compared += load.ended(&host, in_flight, buffer(queue, slot))?;
            latency.saturating_record((time - in_flight.since).0 / 1000);
            hash.add(time.0);
            hash.add((queue * DEPTH + slot) as u64);
            ended += 1;
            if ended == WARM {
                warm_mb = resident_mb();
            }
            pair.head = (pair.head + 1) % ENTRIES;
            host.store(now, doorbell(queue + 1, true), pair.head as u32);
            if issued < commands {
                load.submit(now, &mut host, pair, queue, slot);
                issued += 1;
            }
        }
    }
    let seconds = cpu_seconds() - start;
    Ok(RunResult {
        per_second: commands as f64 / seconds,
        compared,
        simulated: (device.now() - begin).as_ns(),
        p50_ns: latency.value_at_quantile(0.5),
        p99_ns: latency.value_at_quantile(0.99),
        hash,
        events: device.counters()[0].value / commands as f64,
        warm_mb,
        end_mb: resident_mb(),
    })
}
