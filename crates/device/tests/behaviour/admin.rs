// SPDX-License-Identifier: Apache-2.0

//! What admin commands return and keep, compared with the structs that the fast model is made of:
//! each status, each dword 0, each byte of the data, each event.

use std::collections::BTreeSet;

use design::{Design, DeviceInstance, Identity};
use driver::{Host, SimHost};
use fast::controller::events::{DoorbellError, Events};
use fast::controller::features::{FeatureData, FeatureOutcome, Features};
use fast::controller::smart::{IoCount, Uptime};
use fast::controller::{error_log, identify, logs};
use nvme::identify::Identify;
use nvme::log::{self, GetLogPage};
use sim::{Bar, Random, Time};
use spec::nvme::properties::DOORBELLS;
use spec::nvme::{admin, feature, io, status, Cqe, Sqe, Status, ALL_NAMESPACES};

use crate::common::queue::{enable, Queue};
use crate::common::{self, design, rest};

/// Bytes of the buffer: the most that two PRPs can address.
const BUFFER: u64 = 8192;
/// Its contents before a command.
const STALE: u8 = 0xA5;
/// After this time an event that is due has been reported.
const SOON: Time = Time::us(10);

/// A completion without the fields that a model cannot know: identifier, status, dword 0.
type Completed = (u16, Status, u32);

/// The device of a design, and the structs of the fast model.
struct Twins {
    host: SimHost,
    admin: Queue,
    io: Queue,
    buffer: u64,
    cid: u16,
    config: identify::Config,
    features: Features,
    logs: logs::Logs,
    events: Events<u16>,
    clock_khz: u32,
    /// Completions of Asynchronous Event Requests, as they came and as expected.
    found: Vec<Cqe>,
    wanted: Vec<Completed>,
    /// Dwords 0 of all events that were reported.
    seen: BTreeSet<u32>,
}

impl Twins {
    fn new(name: &str) -> Twins {
        Twins::of(&design(name))
    }

    fn of(design: &Design) -> Twins {
        let device = common::device(&common::factory(design), design);
        let mut host = common::host_of(design, device);
        let buffer = host.alloc(BUFFER, 4096).unwrap();
        let identity = Identity::of(design, DeviceInstance::Number(0)).unwrap();
        let config = identify::Config::of(design, identity);
        let plugged = design.engines().unwrap();
        let io_queues = design.nvme.io_queues as u16;
        let mut twins = Twins {
            admin: Queue::new(&mut host, 0),
            io: Queue::new(&mut host, 1),
            host,
            buffer,
            cid: 0,
            features: Features::new(io_queues, config.namespaces.clone()),
            config,
            logs: logs::Logs::new(
                plugged.iter().flat_map(|p| &p.commands),
                design.nvme.doorbell_buffer,
            ),
            events: Events::default(),
            clock_khz: design.clock_mhz * 1000,
            found: Vec::new(),
            wanted: Vec::new(),
            seen: BTreeSet::new(),
        };
        twins.reset();
        twins
    }

    /// A reset of the controller.
    fn reset(&mut self) {
        self.admin = enable(&mut self.host);
        self.events.reset();
        self.logs.reset();
        self.features.reset(self.now());
        self.events.set_ready(true);
        self.look();
        self.io = Queue::new(&mut self.host, 1);
        for sqe in self.io.create() {
            let cqe = self.submit(sqe);
            assert!(cqe.status().is_success());
        }
    }

    fn now(&self) -> Uptime {
        let picoseconds = self.host.now().0;
        let cycles = u128::from(picoseconds) * u128::from(self.clock_khz) / 1_000_000_000;
        Uptime {
            cycles: cycles as u64,
            khz: self.clock_khz,
        }
    }

    fn look(&mut self) {
        let temperature = self.logs.smart.temperature();
        let (thresholds, enabled) = (self.features.thresholds(), self.features.events());
        self.events.update(temperature, thresholds, enabled);
    }

    fn error(&mut self, sqid: u16, sqe: &Sqe, status: Status, phase: bool) {
        let command = error_log::FailedCommand::of(sqid, sqe);
        self.logs.errors.completed(command, status, phase);
    }

    /// Runs an admin command on the device. Keeps completions of requests that have waited.
    fn submit(&mut self, sqe: Sqe) -> Cqe {
        self.cid = self.cid.wrapping_add(1);
        self.admin.push(&mut self.host, sqe.with_cid(self.cid));
        loop {
            let cqe = self.admin.wait(&mut self.host);
            if cqe.cid() == self.cid {
                return cqe;
            }
            self.found.push(cqe);
        }
    }

    /// What the structs return for a command that has data, or a feature.
    fn expected(&mut self, sqe: &Sqe, data: &[u8]) -> Result<(u32, Vec<u8>), Status> {
        let now = self.now();
        let (cdw10, cdw11, nsid) = (sqe.dw[10], sqe.dw[11], sqe.nsid());
        let outcome = match sqe.opcode() {
            admin::IDENTIFY => {
                let page = identify::answer(&self.config, Identify::of(sqe))?;
                FeatureOutcome::SendsData(page.to_vec())
            }
            admin::GET_LOG_PAGE => {
                let request = GetLogPage::of(sqe);
                logs::check(&request)?;
                let bytes = self.logs.read(&request, self.events.warning(), now);
                if !request.retain {
                    self.logs.release(request.lid);
                    self.events.log_was_read(request.lid);
                }
                FeatureOutcome::SendsData(bytes)
            }
            admin::SET_FEATURES => self.features.set(cdw10, cdw11, nsid, true)?,
            _ => self.features.get(cdw10, cdw11, nsid, now)?,
        };
        self.look();
        match outcome {
            FeatureOutcome::Done(dw0) => Ok((dw0, Vec::new())),
            FeatureOutcome::KeepAlive => Ok((0, Vec::new())),
            FeatureOutcome::SendsData(bytes) => Ok((0, bytes)),
            FeatureOutcome::NeedsData(FeatureData::Behavior) => {
                self.features.set_behavior(data[0])?;
                Ok((0, Vec::new()))
            }
            FeatureOutcome::NeedsData(FeatureData::Timestamp) => {
                let bytes = data[..8].try_into().unwrap();
                self.features.set_timestamp(bytes, now);
                Ok((0, Vec::new()))
            }
        }
    }

    /// Runs a command on both, and compares everything except its data, which it returns as found
    /// and as expected. `data` is what the command sends.
    fn both(&mut self, sqe: Sqe, data: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let buffer = self.buffer;
        let mut wanted = vec![STALE; BUFFER as usize];
        wanted[..data.len()].copy_from_slice(data);
        self.host.dma_write(buffer, &wanted);
        let sqe = sqe.with_prps(buffer, buffer + 4096);
        let cqe = self.submit(sqe);
        let mut found = vec![0; BUFFER as usize];
        self.host.dma_read(buffer, &mut found);

        let (status, dw0) = match self.expected(&sqe, data) {
            Ok((dw0, bytes)) => {
                wanted[..bytes.len()].copy_from_slice(&bytes);
                (status::SUCCESS, dw0)
            }
            Err(status) => (status, 0),
        };
        assert_eq!(cqe.status(), status, "status of {:08x?}", sqe.dw);
        assert_eq!(cqe.result(), dw0, "dword 0 of {:08x?}", sqe.dw);
        self.error(0, &sqe.with_cid(cqe.cid()), status, cqe.phase());
        self.settle();
        (found, wanted)
    }

    fn check(&mut self, sqe: Sqe, data: &[u8]) {
        let (found, wanted) = self.both(sqe, data);
        if let Some(at) = (0..found.len()).find(|&at| found[at] != wanted[at]) {
            let (found, wanted) = (found[at], wanted[at]);
            let what = &sqe.dw;
            panic!("byte {at} is {found:#04x}, not {wanted:#04x}: {what:08x?}");
        }
    }

    /// An Asynchronous Event Request.
    fn park(&mut self) {
        let sqe = Sqe::new(admin::ASYNC_EVENT_REQUEST);
        let next = self.cid.wrapping_add(1);
        match self.events.park(next, next) {
            Ok(()) => {
                self.cid = next;
                self.admin.push(&mut self.host, sqe.with_cid(next));
                rest(&mut self.host, SOON);
            }
            Err(status) => {
                let cqe = self.submit(sqe);
                assert_eq!(cqe.status(), status);
                self.error(0, &sqe.with_cid(cqe.cid()), status, cqe.phase());
            }
        }
        self.settle();
    }

    /// An Abort of an admin command.
    fn abort(&mut self, cid: u16) {
        let sqe = Sqe::new(admin::ABORT).with_cdw(10, u32::from(cid) << 16);
        let aborted = self.events.abort(cid);
        if aborted.is_some() {
            let wanted = (cid, status::ABORT_REQUESTED, 0);
            self.wanted.push(wanted);
        }
        let cqe = self.submit(sqe);
        let dw0 = u32::from(aborted.is_none());
        assert_eq!((cqe.status(), cqe.result()), (status::SUCCESS, dw0));
        // Its entry in the error log is made by `settle`.
        self.settle();
    }

    /// A wrong write to a doorbell.
    fn ring(&mut self, what: DoorbellError) {
        let (register, value) = match what {
            DoorbellError::InvalidRegister => (2 * 5, 1),
            DoorbellError::InvalidValue => (2, 0x7FFF),
        };
        let at = DOORBELLS + 4 * register;
        self.host.write32(Bar::Nvme, at, value).unwrap();
        rest(&mut self.host, SOON);
        self.events.doorbell(what);
        self.logs.errors.record(match what {
            DoorbellError::InvalidRegister => error_log::ErrorCause::DoorbellRegister,
            DoorbellError::InvalidValue => error_log::ErrorCause::DoorbellValue,
        });
        self.settle();
    }

    /// Events that are due are reported, and nothing else.
    fn settle(&mut self) {
        while let Some((cid, dw0)) = self.events.report() {
            self.seen.insert(dw0);
            self.wanted.push((cid, status::SUCCESS, dw0));
        }
        while self.found.len() < self.wanted.len() {
            let cqe = self.admin.wait(&mut self.host);
            self.found.push(cqe);
        }
        for (cqe, wanted) in std::mem::take(&mut self.found).iter().zip(&self.wanted) {
            assert_eq!((cqe.cid(), cqe.status(), cqe.result()), *wanted);
            let command = error_log::FailedCommand {
                sqid: 0,
                cid: cqe.cid(),
                nsid: 0,
                lba: 0,
            };
            let status = cqe.status();
            self.logs.errors.completed(command, status, cqe.phase());
        }
        self.wanted.clear();
    }

    /// Read, Write, Verify, Write Zeroes of the first namespace.
    fn io(&mut self, opcode: u8, lba: u64, blocks: u32) {
        let buffer = self.buffer;
        self.cid = self.cid.wrapping_add(1);
        let sqe = Sqe::of_blocks(opcode, 1, lba, blocks)
            .with_prps(buffer, buffer + 4096)
            .with_cid(self.cid);
        self.io.push(&mut self.host, sqe);
        let cqe = self.io.wait(&mut self.host);
        let holds = self.config.namespaces.get(1).unwrap();
        let status = match holds.holds(lba, blocks.into()) {
            _ if opcode == 0x77 => status::INVALID_OPCODE.dnr(),
            true => status::SUCCESS,
            false => status::LBA_OUT_OF_RANGE.dnr(),
        };
        assert_eq!((cqe.cid(), cqe.status()), (self.cid, status));
        let now = self.now();
        if status.is_success() {
            self.logs.smart.started(now);
            let counts = IoCount::of(&sqe);
            self.logs.smart.ended(counts, status, now);
        }
        self.error(1, &sqe, status, cqe.phase());
    }
}

fn get_log(lid: u8, offset: u64, bytes: u64) -> Sqe {
    let dwords = bytes / 4 - 1;
    Sqe::new(admin::GET_LOG_PAGE)
        .with_cdw(10, u32::from(lid) | ((dwords & 0xFFFF) as u32) << 16)
        .with_cdw(11, (dwords >> 16) as u32)
        .with_cdw(12, offset as u32)
        .with_cdw(13, (offset >> 32) as u32)
}

fn pick<T: Copy>(random: &mut Random, values: &[T]) -> T {
    values[random.below(values.len() as u64) as usize]
}

fn draw(random: &mut Random, opcode: u8) -> Sqe {
    let (most, any) = (ALL_NAMESPACES, random.next() as u32);
    let nsid = pick(random, &[0, 0, 1, 2, 3, 4, 5, 6, 17, any, most - 1, most]);
    let sqe = Sqe::new(opcode).with_nsid(nsid);
    match opcode {
        admin::IDENTIFY => {
            let cns = pick(random, &[0, 1, 2, 3, 6, 8, 0x12, 0x13, any & 0xFF]);
            let cntid = pick(random, &[0, 0, 1, 2, 0xFFFF]);
            let csi = pick(random, &[0, 0, 1, 0xFF]);
            sqe.with_cdw(10, cntid << 16 | cns).with_cdw(11, csi << 24)
        }
        admin::GET_LOG_PAGE => {
            let lid = pick(random, &[0, 1, 1, 2, 2, 3, 4, 5, 6, 0x80]);
            let dword = 4 * random.below(1100);
            let offset = pick(random, &[0, 0, 0, dword, dword, 512, 4096, 2, 1 << 32]);
            let bytes = 4 * (1 + random.below(BUFFER / 4));
            let bytes = pick(random, &[4, 512, 4096, bytes, (1 << 20) + 4]);
            let retain = pick(random, &[0, 1 << 15]);
            let nsid = pick(random, &[0, 0, 0, most, 1]);
            let sqe = get_log(lid, offset, bytes).with_nsid(nsid);
            sqe.with_cdw(10, sqe.dw[10] | retain)
        }
        _ => {
            let known = [1, 2, 4, 4, 5, 7, 8, 9, 0xA, 0xB, 0xB, 0xF, 0x16];
            let fid = pick(random, &known) as u8;
            let fid = pick(random, &[fid, fid, fid, fid, any as u8]);
            let select = pick(random, &[0, 0, 0, 1, 2, 3, 4, 7]);
            let save = pick(random, &[0, 0, 0, 1 << 31]);
            let bit = 1 << random.below(32);
            // The device is at 298 K.
            let kelvins = pick(random, &[297, 298, 299, 343]) | pick(random, &[0, 1 << 20]);
            let value = match fid {
                // A timeout that does not end during the test; Timestamps are tested separately.
                feature::KEEP_ALIVE_TIMER => pick(random, &[0, any | 1 << 31, u32::MAX]),
                feature::TEMPERATURE_THRESHOLD => pick(random, &[kelvins, kelvins, any, bit]),
                feature::POWER_MANAGEMENT => pick(random, &[any << 5, bit]),
                feature::ERROR_RECOVERY => any & !pick(random, &[0, 1 << 16]),
                feature::INTERRUPT_VECTOR_CONFIGURATION => any & 0x1_0007,
                feature::ASYNC_EVENT_CONFIGURATION => pick(random, &[any, any | 2, bit]),
                _ => pick(random, &[any, bit, 0]),
            };
            let fid = if fid == feature::TIMESTAMP { 0 } else { fid };
            sqe.with_cdw(10, save | select << 8 | u32::from(fid))
                .with_cdw(11, value)
        }
    }
}

/// Everything that can be requested, once.
fn everything(t: &mut Twins) {
    for cns in 0..=255 {
        for nsid in (0..=18).chain(ALL_NAMESPACES - 2..=ALL_NAMESPACES) {
            if cns <= 0x14 || nsid == 1 {
                t.check(Sqe::identify(cns, nsid), &[]);
            }
        }
    }
    for lid in 0..=255 {
        t.check(get_log(lid, 0, 4096), &[]);
    }
    for fid in (0..=255).filter(|&fid| fid != feature::TIMESTAMP) {
        for nsid in [0, 1, 3, ALL_NAMESPACES] {
            for select in 0..8 {
                let get = Sqe::new(admin::GET_FEATURES).with_nsid(nsid);
                t.check(get.with_cdw(10, select << 8 | u32::from(fid)), &[]);
            }
        }
    }
}

/// Random commands.
fn anything(t: &mut Twins, random: &mut Random) {
    let opcodes = [
        admin::IDENTIFY,
        admin::GET_LOG_PAGE,
        admin::GET_FEATURES,
        admin::SET_FEATURES,
        admin::SET_FEATURES,
    ];
    let acre = pick(random, &[0, 1, 1, 2, 0xFF]);
    let opcode = pick(random, &opcodes);
    match random.below(100) {
        0..=9 => t.park(),
        10..=12 => t.ring(DoorbellError::InvalidRegister),
        13..=15 => t.ring(DoorbellError::InvalidValue),
        16..=20 => t.abort(t.cid.wrapping_sub(random.below(12) as u16)),
        21..=40 => {
            let opcodes = [io::READ, io::WRITE, io::VERIFY, io::WRITE_ZEROES, 0x77];
            let lba = pick(random, &[0, 1, 500, 1 << 40, u64::MAX]);
            let blocks = 1 + random.below(16) as u32;
            t.io(pick(random, &opcodes), lba, blocks);
        }
        41 if random.below(4) == 0 => t.reset(),
        _ => t.check(draw(random, opcode), &[acre; 512]),
    }
}

/// A Timestamp is right to the millisecond in which it was requested.
fn timestamps(t: &mut Twins) {
    let bytes = [0xF0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x55, 0x55];
    let cdw10 = feature::TIMESTAMP.into();
    let set = Sqe::new(admin::SET_FEATURES).with_cdw(10, cdw10);
    let get = Sqe::new(admin::GET_FEATURES).with_cdw(10, cdw10);
    for turn in 0..20 {
        let (found, wanted) = t.both(get, &[]);
        let value = |data: &[u8]| i64::from_le_bytes(data[..8].try_into().unwrap());
        let (its, ours) = (value(&found), value(&wanted));
        assert!((ours - its).abs() <= 1, "{its:#x}, not {ours:#x}");
        assert_eq!(found[8..], wanted[8..]);
        rest(&mut t.host, Time::us(2_700));
        match turn {
            5 => t.check(set, &bytes),
            15 => t.reset(),
            _ => {}
        }
    }
}

fn compare(name: &str) {
    let mut t = Twins::new(name);
    everything(&mut t);
    let mut random = Random::new(5);
    for _ in 0..4000 {
        anything(&mut t, &mut random);
    }
    let events = [0x01_0000, 0x01_0100, 0x02_0101];
    assert_eq!(t.seen, BTreeSet::from(events));
    for lid in log::ALL {
        t.check(get_log(lid, 0, BUFFER), &[]);
    }
    timestamps(&mut t);
}

#[test]
fn admin_with_several_namespaces_and_engines() {
    compare("fuzz");
}

#[test]
fn admin_on_the_default_device() {
    compare("default");
}

/// Doorbell Buffer Config as a host finds it: the bit of OACS, the dword of the log of effects, and
/// the command's status.
///
/// With it, EventIdx of the queue is written. Without it neither page is used, and the queue is
/// served by its registers alone.
#[test]
fn admin_doorbell_buffer_config_is_offered_as_the_design_says() {
    let opcode = admin::DOORBELL_BUFFER_CONFIG;
    for offered in [true, false] {
        let values = format!("[nvme]\ndoorbell_buffer = {offered}\n");
        let mut t = Twins::of(&design("fuzz").with_values(&values).unwrap());
        let (page, wanted) = t.both(Sqe::identify(1, 0), &[]);
        let bit = u8::from(offered);
        assert_eq!((page[256], page[257]), (2, bit), "OACS");
        assert_eq!(page, wanted);
        let (page, wanted) = t.both(get_log(5, 0, 4096), &[]);
        assert_eq!(page[4 * usize::from(opcode)], bit, "effects");
        assert_eq!(page, wanted);

        let pages = t.host.alloc(8192, 4096).unwrap();
        t.host.dma_write(pages, &[STALE; 8192]);
        let sqe = Sqe::new(opcode).with_prps(pages, pages + 4096);
        let cqe = t.submit(sqe);
        let status = match offered {
            true => status::SUCCESS,
            false => status::INVALID_OPCODE.dnr(),
        };
        assert_eq!((cqe.status(), cqe.result()), (status, 0));
        t.error(0, &sqe.with_cid(cqe.cid()), status, cqe.phase());
        if !offered {
            // More than the queue has entries.
            for n in 0..40 {
                let opcode = if n % 2 == 0 { io::WRITE } else { io::READ };
                t.io(opcode, n, 8);
            }
        }
        let mut found = vec![0; 8192];
        t.host.dma_read(pages, &mut found);
        assert!(found[..4096].iter().all(|&byte| byte == STALE));
        let event_idx = &found[4096 + 8..4096 + 16];
        assert_eq!(event_idx, [if offered { 0 } else { STALE }; 8]);
        t.check(get_log(log::ERROR, 0, 4096), &[]);
    }
}

mod sampled {
    use super::*;

    #[test]
    fn admin_random_commands() {
        let mut t = Twins::new("fuzz");
        let mut random = Random::new(6);
        for _ in 0..400 {
            anything(&mut t, &mut random);
        }
    }
}
