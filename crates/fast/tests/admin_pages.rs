//! What admin commands return and keep, beside the RTL: each status, each dword 0, each byte of the data.

use std::sync::Arc;

use design::{Cpu, Design, Identity, Place};
use driver::{Controller, Error, Host, SimHost};
use fast::controller::events::Events;
use fast::controller::features::{Data, Features, Outcome};
use fast::controller::smart::{Counts, Uptime};
use fast::controller::{error_log, identify, logs};
use nvme::log::{self, GetLogPage};
use nvme::Namespaces;
use rtl::bitstream::{repo_root, stderr_progress};
use rtl::{DeviceConfig, RtlDevice};
use sim::{Bar, HostConfig, LinkConfig, Media, Random, System, Time};
use spec::nvme::{admin, feature, io, status, Sqe, Status, ALL_NAMESPACES};

/// Bytes of the buffer: what two PRPs can say.
const BUFFER: u64 = 8192;
/// What is in it before a command.
const STALE: u8 = 0xA5;

/// The RTL of a design behind the driver, and the structs of the fast engine.
struct Twins {
    rtl: Controller<SimHost>,
    buffer: u64,
    config: identify::Config,
    namespaces: Arc<Namespaces>,
    features: Features,
    logs: logs::Logs,
    events: Events<()>,
    clock_khz: u32,
}

type Answer = (Status, u32, Vec<u8>);

impl Twins {
    fn new(name: &str) -> Twins {
        let root = repo_root().unwrap();
        let design = Design::load(&root.join(format!("designs/{name}.toml"))).unwrap();
        let bytes = design.media.bytes.0;
        let device = RtlDevice::build(
            DeviceConfig::of(&design).unwrap(),
            Media::memory(bytes).unwrap(),
            &mut stderr_progress(name),
        );
        let mut system = System::new(&HostConfig::default()).unwrap();
        let windows = [
            (Bar::Nvme, 64 << 10),
            (Bar::Pm, bytes),
            (Bar::Control, 1 << 20),
        ];
        let link = LinkConfig::default();
        let number = system.add_device(Box::new(device.unwrap()), &link, &windows);
        let host = SimHost::new(system, number.unwrap(), Cpu::default().costs(), 0);
        let mut rtl = Controller::start(host, driver::Config::default()).unwrap();
        let buffer = rtl.host_mut().alloc(BUFFER, 4096).unwrap();

        let identity = Identity::of(&design, Place::Number(0)).unwrap();
        let config = identify::Config::of(&design, identity);
        let plugged = design.engines(&root).unwrap();
        let namespaces = config.namespaces.clone();
        let mut twins = Twins {
            rtl,
            buffer,
            features: Features::new(design.nvme.io_queues as u16, namespaces.clone()),
            config,
            namespaces,
            logs: logs::Logs::new(plugged.iter().flat_map(|p| &p.commands)),
            events: Events::default(),
            clock_khz: design.clock_mhz * 1000,
        };
        twins.events.set_ready(true);
        twins.look();
        twins
    }

    fn now(&self) -> Uptime {
        let picoseconds = self.rtl.host().now().0;
        let cycles = u128::from(picoseconds) * u128::from(self.clock_khz) / 1_000_000_000;
        Uptime {
            cycles: cycles as u64,
            khz: self.clock_khz,
        }
    }

    fn look(&mut self) {
        let temperature = self.logs.smart.temperature();
        let (thresholds, enabled) = (self.features.thresholds(), self.features.events());
        self.events.look(temperature, thresholds, enabled);
    }

    /// What the structs say.
    fn expected(&mut self, sqe: &Sqe, data: &[u8]) -> Result<(u32, Vec<u8>), Status> {
        let now = self.now();
        let (cdw10, cdw11, nsid) = (sqe.dw[10], sqe.dw[11], sqe.nsid());
        let outcome = match sqe.opcode() {
            admin::IDENTIFY => {
                let (cntid, csi) = ((cdw10 >> 16) as u16, (cdw11 >> 24) as u8);
                let page = identify::page(&self.config, cdw10 as u8, nsid, cntid, csi)?;
                Outcome::SendsData(page.to_vec())
            }
            admin::GET_LOG_PAGE => {
                let request = GetLogPage::of(sqe);
                logs::check(&request)?;
                let bytes = self.logs.read(&request, self.events.warning(), now);
                if !request.retain {
                    self.logs.release(request.lid);
                    self.events.log_read(request.lid);
                }
                Outcome::SendsData(bytes)
            }
            admin::SET_FEATURES => self.features.set(cdw10, cdw11, nsid, true)?,
            _ => self.features.get(cdw10, cdw11, nsid, now)?,
        };
        self.look();
        match outcome {
            Outcome::Done(dw0) => Ok((dw0, Vec::new())),
            Outcome::KeepAlive => Ok((0, Vec::new())),
            Outcome::SendsData(bytes) => Ok((0, bytes)),
            Outcome::NeedsData(Data::Behavior) => {
                self.features.set_behavior(data[0])?;
                Ok((0, Vec::new()))
            }
            Outcome::NeedsData(Data::Timestamp) => {
                self.features
                    .set_timestamp(data[..8].try_into().unwrap(), now);
                Ok((0, Vec::new()))
            }
        }
    }

    /// Runs an admin command on both: what each of them answers. `data` is what the command brings along.
    fn both(&mut self, sqe: Sqe, data: &[u8]) -> (Answer, Answer) {
        let buffer = self.buffer;
        let mut before = vec![STALE; BUFFER as usize];
        before[..data.len()].copy_from_slice(data);
        self.rtl.host_mut().dma_write(buffer, &before);
        let sqe = sqe.with_prps(buffer, buffer + 4096);
        let found = match self.rtl.admin(sqe, "command") {
            Ok(completion) => (status::SUCCESS, completion.result),
            Err(Error::Status { status, .. }) => (status, 0),
            Err(error) => panic!("{error}"),
        };
        let mut after = vec![0; BUFFER as usize];
        self.rtl.host_mut().dma_read(buffer, &mut after);

        let expected = self.expected(&sqe, data);
        let mut wanted = before;
        let (answer, dw0) = match expected {
            Ok((dw0, bytes)) => {
                wanted[..bytes.len()].copy_from_slice(&bytes);
                (status::SUCCESS, dw0)
            }
            Err(answer) => (answer, 0),
        };
        // Which identifiers and phases the driver has used it does not tell.
        let command = error_log::Command {
            sqid: 0,
            cid: 0,
            nsid: sqe.nsid(),
            lba: 0,
        };
        self.logs.errors.completed(command, answer, false);
        if sqe.opcode() == admin::GET_LOG_PAGE && sqe.dw[10] as u8 == log::ERROR {
            let offset = u64::from(sqe.dw[12]);
            for page in [&mut wanted, &mut after] {
                forget_identifiers(page, offset, GetLogPage::of(&sqe).bytes);
            }
        }
        ((answer, dw0, wanted), (found.0, found.1, after))
    }

    fn check(&mut self, sqe: Sqe, data: &[u8]) {
        let (wanted, found) = self.both(sqe, data);
        let what = format!("{:02x}: {:08x?}", sqe.opcode(), sqe.dw);
        assert_eq!(found.0, wanted.0, "status of {what}");
        assert_eq!(found.1, wanted.1, "dword 0 of {what}");
        let differs = (0..found.2.len()).find(|&at| found.2[at] != wanted.2[at]);
        if let Some(at) = differs {
            let (found, wanted) = (found.2[at], wanted.2[at]);
            panic!("byte {at} is {found:#04x}, not {wanted:#04x}: {what}");
        }
    }

    /// The same with a Read, Write, Verify, Compare ... of the first namespace.
    fn io(&mut self, opcode: u8, lba: u64, blocks: u32) {
        let buffer = self.buffer;
        let sqe = Sqe::of_blocks(opcode, 1, lba, blocks).with_prps(buffer, buffer + 4096);
        let command = error_log::Command {
            sqid: 1,
            cid: 0,
            nsid: 1,
            lba,
        };
        let answer = match self.rtl.execute_raw(0, sqe).unwrap().check() {
            Err(Error::Status { status, .. }) => status,
            other => other.map(|()| status::SUCCESS).unwrap(),
        };
        let now = self.now();
        let known = self.namespaces.get(1).unwrap();
        if known.holds(lba, blocks.into()) {
            self.logs.smart.started(now);
            let count = u64::from(blocks);
            let counts = match opcode {
                io::READ | io::VERIFY | io::COMPARE => Counts::Read(count),
                io::WRITE => Counts::Write(count),
                _ => Counts::Nothing,
            };
            self.logs.smart.ended(counts, answer, now);
        }
        self.logs.errors.completed(command, answer, false);
    }
}

/// Overwrites Command ID and Phase Tag of each entry that lies in a transfer of the Error Information log.
fn forget_identifiers(page: &mut [u8], offset: u64, bytes: u64) {
    for (at, byte) in (offset..offset + bytes.min(BUFFER)).zip(page) {
        match at % 64 {
            10 | 11 => *byte = 0,
            12 => *byte &= !1,
            _ => {}
        }
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
    let nsid = pick(
        random,
        &[
            0,
            0,
            1,
            2,
            3,
            4,
            5,
            6,
            17,
            ALL_NAMESPACES - 1,
            ALL_NAMESPACES,
        ],
    );
    let sqe = Sqe::new(opcode).with_nsid(nsid);
    let some = random.next() as u32;
    match opcode {
        admin::IDENTIFY => {
            let cns = pick(random, &[0, 1, 2, 3, 6, 8, 0x12, 0x13, some & 0xFF]);
            let cntid = pick(random, &[0, 0, 1, 2, 0xFFFF]);
            let csi = pick(random, &[0, 0, 1, 0xFF]);
            sqe.with_cdw(10, cntid << 16 | cns).with_cdw(11, csi << 24)
        }
        admin::GET_LOG_PAGE => {
            let lid = pick(random, &[0, 1, 2, 3, 4, 5, 6, 0x80]);
            let dword = 4 * random.below(1100);
            let offset = pick(random, &[0, dword, dword, 512, 4096, 2, 1 << 32]);
            let bytes = 4 * (1 + random.below(BUFFER / 4));
            let bytes = pick(random, &[4, 512, 4096, bytes, (1 << 20) + 4]);
            let retain = pick(random, &[0, 1 << 15]);
            let nsid = pick(random, &[0, 0, 0, ALL_NAMESPACES, 1]);
            let sqe = get_log(lid, offset, bytes).with_nsid(nsid);
            sqe.with_cdw(10, sqe.dw[10] | retain)
        }
        _ => {
            let fids = [1, 2, 4, 5, 7, 8, 9, 0xA, 0xB, 0xF, 0x16, some & 0xFF];
            let fid = pick(random, &fids);
            let select = pick(random, &[0, 0, 0, 1, 2, 3, 4, 7]);
            let save = pick(random, &[0, 0, 0, 1 << 31]);
            let value = pick(
                random,
                &[
                    0,
                    1,
                    298,
                    some,
                    some & 0xFFFF,
                    1 << 16 | some & 7,
                    0x1F_0000,
                ],
            );
            // A Keep Alive Timeout that does not end while the test runs, and a Timestamp is the other test's.
            let value = match u8::try_from(fid) {
                Ok(feature::KEEP_ALIVE_TIMER) => pick(random, &[0, some | 1 << 31, u32::MAX]),
                _ => value,
            };
            let fid = if fid == u32::from(feature::TIMESTAMP) {
                0
            } else {
                fid
            };
            sqe.with_cdw(10, save | select << 8 | fid)
                .with_cdw(11, value)
        }
    }
}

fn compare(name: &str) {
    let mut t = Twins::new(name);
    for cns in 0..=255 {
        for nsid in (0..=18).chain([ALL_NAMESPACES - 2, ALL_NAMESPACES - 1, ALL_NAMESPACES]) {
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
    t.check(get_log(log::ERROR, 0, 8192), &[]);

    let mut random = Random::new(5);
    for _ in 0..1500 {
        let opcodes = [
            admin::IDENTIFY,
            admin::GET_LOG_PAGE,
            admin::GET_FEATURES,
            admin::SET_FEATURES,
            admin::SET_FEATURES,
        ];
        let opcode = pick(&mut random, &opcodes);
        let sqe = draw(&mut random, opcode);
        let acre = pick(&mut random, &[0, 1, 1, 2, 0xFF]);
        t.check(sqe, &[acre; 512]);
        if random.below(4) == 0 {
            let opcodes = [io::READ, io::WRITE, io::VERIFY, io::WRITE_ZEROES];
            let lba = pick(&mut random, &[0, 1, 500, 1 << 40, u64::MAX]);
            let blocks = 1 + random.below(16) as u32;
            t.io(pick(&mut random, &opcodes), lba, blocks);
        }
    }
    for lid in log::ALL {
        t.check(get_log(lid, 0, 8192), &[]);
    }

    // A Timestamp is right to the millisecond in which it was asked for.
    let bytes = [0xF0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x55, 0x55];
    let set = Sqe::new(admin::SET_FEATURES).with_cdw(10, feature::TIMESTAMP.into());
    let get = Sqe::new(admin::GET_FEATURES).with_cdw(10, feature::TIMESTAMP.into());
    for _ in 0..20 {
        let (wanted, found) = t.both(get, &[]);
        let value = |answer: &Answer| i64::from_le_bytes(answer.2[..8].try_into().unwrap());
        let off = (value(&wanted) - value(&found)).abs();
        assert!(off <= 1, "{:#x}, not {:#x}", value(&found), value(&wanted));
        assert_eq!((found.0, found.1), (wanted.0, wanted.1));
        assert_eq!(found.2[8..], wanted.2[8..]);
        let until = t.rtl.now() + Time::us(2_700);
        while t.rtl.now() < until {
            t.rtl.host_mut().wait(until).unwrap();
        }
        if value(&found) >> 48 == 0 {
            t.check(set, &bytes);
        }
    }
}

#[test]
#[ignore = "long: builds a device of its own"]
fn several_namespaces_and_engines() {
    compare("fuzz");
}

#[test]
#[ignore = "long: builds a device of its own"]
fn the_default_device() {
    compare("default");
}
