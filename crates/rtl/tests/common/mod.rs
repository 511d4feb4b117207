//! What the tests share.
#![allow(dead_code)]

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use design::{Cpu, Design, HostCosts};
use driver::{Config, Controller, SimHost};
use rtl::bitstream::{compile, repo_root, stderr_progress, Bitstream, BitstreamSpec};
use rtl::{DeviceConfig, RtlDevice};
use sim::{
    Bar, Device, HostConfig, HostPort, LinkConfig, Media, Mmio, Parts, ReadData, System, Time,
};

/// The spec of the fixture device.
pub fn fixture_spec(trace: bool) -> BitstreamSpec {
    BitstreamSpec {
        root: repo_root().unwrap(),
        top: "rtl_fixture".to_string(),
        filelists: vec![PathBuf::from("hw/top/sim/rtl_fixture.f")],
        trace,
        ..BitstreamSpec::default()
    }
}

fn free_clocks() -> bool {
    let bypass = std::env::var("CLOCK_GATE_BYPASS").unwrap_or_default();
    !matches!(bypass.as_str(), "" | "0")
}

/// The device of a design of `designs/`: the bitstream that everybody uses who runs it. With `CLOCK_GATE_BYPASS=1` it is one
/// whose clocks always run.
pub fn design(name: &str) -> DeviceConfig {
    let path = repo_root().unwrap().join(format!("designs/{name}.toml"));
    DeviceConfig {
        free_clocks: free_clocks(),
        ..DeviceConfig::of(&Design::load(&path).unwrap()).unwrap()
    }
}

/// The default device, which writes its zeros itself.
pub fn fill_inside() -> DeviceConfig {
    with_parameters(design("default"), &[("FillInside", "1'b1")])
}

/// The default device with another number of channels, each in turns of 8 KiB.
pub fn channels(channels: u32) -> DeviceConfig {
    let config = DeviceConfig {
        channels,
        granule: 8192,
        ..design("default")
    };
    let number = channels.to_string();
    with_parameters(config, &[("NumChannels", &number), ("Granule", "8192")])
}

fn with_parameters(mut config: DeviceConfig, parameters: &[(&str, &str)]) -> DeviceConfig {
    let parameters = parameters.iter();
    let parameters = parameters.map(|(name, value)| (name.to_string(), value.to_string()));
    config.parameters.extend(parameters);
    config
}

/// Two memories, two mailboxes (`tests/engines/mailbox`), a copy between them, and `tests/engines/hold` at the access hook, with two I/O queues and two namespaces, of which the second mailbox
/// has commands in one only.
pub fn mailboxes_design() -> Design {
    let engine = |name: &str, engine: &str| {
        format!("[[engine]]\nname = \"{name}\"\nengine = \"{engine}\"\n")
    };
    let local =
        "[[memory]]\nname = \"local\"\nbytes = \"1 MiB\"\nchannels = 2\ngranule = \"8 KiB\"\n";
    let second = "namespaces = [2]\nopcodes = [0x94, 0xA3]\n";
    let text = format!(
        "name = \"mailboxes\"\nclock_mhz = 10\n[media]\nbytes = \"16 MiB\"\nprofile = \"dram\"\n[nvme]\nio_queues = 2\nnamespaces = [\"8 MiB\", \"4 MiB\"]\n{local}{}{}{}{second}{}",
        engine("a", "tests/engines/mailbox"),
        engine("copy0", "copy"),
        engine("b", "tests/engines/mailbox"),
        engine("hold", "tests/engines/hold")
    );
    Design::parse(&text, &repo_root().unwrap().join("mailboxes.toml")).unwrap()
}

/// A device of that design.
pub fn mailboxes() -> DeviceConfig {
    DeviceConfig {
        hang_cycles: 2_000_000,
        free_clocks: free_clocks(),
        ..DeviceConfig::of(&mailboxes_design()).unwrap()
    }
}

/// Cycles of its clock, at 10 MHz.
const MAILBOX_CYCLE: Time = Time::ns(100);

/// That device on empty media, and its host.
pub fn mailbox_bench() -> Bench {
    let media = Media::memory(mailboxes_design().media.bytes.0).unwrap();
    let mut progress = stderr_progress("mailboxes");
    Bench::new(RtlDevice::build(mailboxes(), media, &mut progress).unwrap())
}

/// A driver on the device of a design behind a link, with empty media.
pub fn controller(name: &str, media: u64) -> Controller<SimHost> {
    controller_with(name, media, Cpu::default().costs(), 0)
}

/// As above, with so many interrupt vectors.
pub fn controller_with(
    name: &str,
    media: u64,
    costs: HostCosts,
    vectors: u16,
) -> Controller<SimHost> {
    controller_of(name, design(name), media, costs, vectors)
}

/// The same on a device that differs.
pub fn controller_of(
    name: &str,
    config: DeviceConfig,
    media: u64,
    costs: HostCosts,
    vectors: u16,
) -> Controller<SimHost> {
    let host = host_of(name, config, media, costs, vectors);
    Controller::start(host, Config::default()).unwrap()
}

/// The host of such a device, whose controller is not started.
pub fn host_of(
    name: &str,
    config: DeviceConfig,
    media: u64,
    costs: HostCosts,
    vectors: u16,
) -> SimHost {
    let config = DeviceConfig {
        hang_cycles: 50_000,
        ..config
    };
    let media_of = Media::memory(media).unwrap();
    let device = RtlDevice::build(config, media_of, &mut stderr_progress(name)).unwrap();
    let mut system = System::new(&HostConfig::default()).unwrap();
    let windows = [
        (Bar::Nvme, 64 << 10),
        (Bar::Pm, media),
        (Bar::Control, 1 << 20),
    ];
    let number = system
        .add_device(Box::new(device), &LinkConfig::default(), &windows)
        .unwrap();
    SimHost::new(system, number, costs, vectors)
}

/// Builds and loads a bitstream.
pub fn load(spec: &BitstreamSpec) -> Arc<Bitstream> {
    let path = compile(spec, &mut stderr_progress(&spec.top)).unwrap();
    Bitstream::open(&path).unwrap()
}

/// A host that answers from a flat memory after a fixed time, and remembers everything that a device did.
pub struct TestHost {
    /// Host memory from address 0.
    pub memory: Vec<u8>,
    /// Addresses from here on fail.
    pub bad_from: u64,
    /// Reads of addresses from here on get no answer at all.
    pub lost_from: u64,
    /// Time from a read to its data.
    pub latency: Time,
    /// Time between two writes that it takes.
    pub write_gap: Time,
    next_write: Time,
    /// Everything the device did: time, kind, address or tag, data.
    pub log: Vec<(Time, &'static str, u64, Vec<u8>)>,
    mmio: VecDeque<(Time, Mmio)>,
    data: VecDeque<(Time, ReadData)>,
    parts: Parts,
    answers: Vec<(u32, Option<Vec<u8>>)>,
    next_tag: u32,
}

impl TestHost {
    pub fn new() -> TestHost {
        TestHost {
            memory: vec![0; 1 << 20],
            bad_from: 1 << 20,
            lost_from: u64::MAX,
            latency: Time::ns(500),
            write_gap: Time::ZERO,
            next_write: Time::ZERO,
            log: Vec::new(),
            mmio: VecDeque::new(),
            data: VecDeque::new(),
            parts: Parts::default(),
            answers: Vec::new(),
            next_tag: 0,
        }
    }

    /// Lets a write arrive as soon as the device looks.
    pub fn post(&mut self, now: Time, bar: Bar, offset: u64, data: &[u8]) {
        self.mmio.push_back((
            now,
            Mmio::Write {
                bar,
                offset,
                data: data.to_vec(),
            },
        ));
    }

    /// Lets a read arrive as soon as the device looks; returns its tag.
    pub fn ask(&mut self, now: Time, bar: Bar, offset: u64, len: u32) -> u32 {
        self.next_tag += 1;
        self.mmio.push_back((
            now,
            Mmio::Read {
                bar,
                offset,
                len,
                tag: self.next_tag,
            },
        ));
        self.next_tag
    }

    /// The answer to a read, once it is there.
    pub fn answer(&mut self, tag: u32) -> Option<Option<Vec<u8>>> {
        let at = self.answers.iter().position(|(t, _)| *t == tag)?;
        Some(self.answers.remove(at).1)
    }

    /// Forgets what is under way, as a link does that goes down.
    pub fn forget(&mut self) {
        self.mmio.clear();
        self.data.clear();
        self.parts.clear();
    }

    /// A number that depends on every event and its time.
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!("{:?}", self.log).hash(&mut hasher);
        hasher.finish()
    }
}

impl HostPort for TestHost {
    fn write(&mut self, now: Time, addr: u64, data: &[u8]) -> bool {
        if now < self.next_write {
            return false;
        }
        self.next_write = now + self.write_gap;
        self.log.push((now, "write", addr, data.to_vec()));
        let end = (addr as usize).checked_add(data.len());
        if let Some(place) = end.and_then(|end| self.memory.get_mut(addr as usize..end)) {
            place.copy_from_slice(data);
        }
        true
    }

    fn read(&mut self, now: Time, tag: u32, addr: u64, len: u32) -> bool {
        self.log
            .push((now, "read", addr, len.to_le_bytes().to_vec()));
        if addr >= self.lost_from {
            return true;
        }
        let time = now + self.latency;
        if addr.saturating_add(len.into()) > self.bad_from {
            self.data.push_back((
                time,
                ReadData {
                    tag,
                    data: None,
                    last: true,
                },
            ));
            return true;
        }
        let bytes = &self.memory[addr as usize..(addr + u64::from(len)) as usize];
        let pieces: Vec<&[u8]> = bytes.chunks(200).collect(); // not at beat boundaries
        for (i, piece) in pieces.iter().enumerate() {
            let last = i + 1 == pieces.len();
            self.data.push_back((
                time,
                ReadData {
                    tag,
                    data: Some(piece.to_vec()),
                    last,
                },
            ));
        }
        true
    }

    fn mmio_part(&mut self, now: Time, tag: u32, data: Vec<u8>) {
        self.log.push((now, "part", tag.into(), data.clone()));
        self.parts.add(tag, data);
    }

    fn mmio_data(&mut self, now: Time, tag: u32, data: Option<Vec<u8>>) {
        self.log
            .push((now, "answer", tag.into(), data.clone().unwrap_or_default()));
        let data = self.parts.end(tag, data);
        self.answers.push((tag, data));
    }

    fn mmio(&mut self, now: Time) -> Option<Mmio> {
        if self.mmio.front()?.0 > now {
            return None;
        }
        self.mmio.pop_front().map(|(_, access)| access)
    }

    fn read_data(&mut self, now: Time) -> Option<ReadData> {
        if self.data.front()?.0 > now {
            return None;
        }
        self.data.pop_front().map(|(_, piece)| piece)
    }

    fn next_mmio(&self) -> Option<Time> {
        self.mmio.front().map(|(time, _)| *time)
    }

    fn next_data(&self) -> Option<Time> {
        self.data.front().map(|(time, _)| *time)
    }

    fn attention(&self) -> bool {
        false
    }
}

/// A device and its host.
pub struct Bench {
    pub device: RtlDevice,
    pub host: TestHost,
}

impl Bench {
    pub fn new(device: RtlDevice) -> Bench {
        Bench {
            device,
            host: TestHost::new(),
        }
    }

    /// Lets time pass.
    pub fn run(&mut self, span: Time) {
        self.try_run(span).unwrap();
    }

    pub fn try_run(&mut self, span: Time) -> Result<(), sim::Fault> {
        self.device
            .advance(self.device.now() + span, &mut self.host)
    }

    /// Lets cycles of [`mailboxes`] pass.
    pub fn cycles(&mut self, cycles: u64) {
        self.run(Time(MAILBOX_CYCLE.0 * cycles));
    }

    /// A byte of the media.
    pub fn byte(&self, at: u64) -> u8 {
        let mut byte = [0];
        self.device.media().read(at, &mut byte);
        byte[0]
    }

    pub fn post(&mut self, bar: Bar, offset: u64, data: &[u8]) {
        self.host.post(self.device.now(), bar, offset, data);
    }

    /// Reads, and waits for the answer.
    pub fn read(&mut self, bar: Bar, offset: u64, len: u32) -> Option<Vec<u8>> {
        let tag = self.host.ask(self.device.now(), bar, offset, len);
        for _ in 0..10_000 {
            if let Some(answer) = self.host.answer(tag) {
                return answer;
            }
            self.run(Time::ns(100));
        }
        panic!("no answer to a read of {bar:?} at {offset:#x} within 1 ms");
    }

    pub fn read32(&mut self, bar: Bar, offset: u64) -> u32 {
        u32::from_le_bytes(self.read(bar, offset, 4).unwrap().try_into().unwrap())
    }

    pub fn write32(&mut self, bar: Bar, offset: u64, value: u32) {
        self.post(bar, offset, &value.to_le_bytes());
    }
}
