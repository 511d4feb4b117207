// SPDX-License-Identifier: Apache-2.0

//! [`RtlDevice`]: a model of the device top with bus models, clock, power and reset around it.

use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use sim::memctrl::MemoryModel;
use sim::{
    Clock, Counter, Device, Fault, HostPort, InvalidValue, Media, Mmio, OrderEvent, OrderWatch,
    Output, Time, TraceEvent, Tracer,
};

use crate::axi::{AddressMap, AxiPorts, DdrSlave, DdrStats, FillPorts, HostSlave};
use crate::bitstream::{
    compile, compile_trained, Bitstream, BitstreamSpec, Field, Progress, Purpose, VerilatedModel,
};
use crate::error::{Error, Result, TrainingError};
use crate::mmio::MmioBridge;
use crate::order;
use crate::power_up::PowerUpRegisters;
use crate::probe::TraceProbe;

/// Clock cycles of reset after power-on.
const RESET_CYCLES: u32 = 5;
/// The energy that is left when the power fails keeps the clock running for this time.
const HOLD_UP: Time = Time::us(10);
/// But for at least this number of cycles, which take longer at clocks below 250 MHz.
const HOLD_UP_CYCLES: u64 = 2500;
/// A function reset that takes longer than PCIe allows is a hang.
const RESET_LIMIT: Time = Time::ms(100);
/// One cycle of this many is timed: a prime, so that no period of the design hides from it.
const TIMED: u32 = 509;
/// A cycle that took more seconds than this was interrupted by another process.
const PREEMPTED: f64 = 200e-6;

/// A window of simulated time to write waveforms of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceWindow {
    /// First clock edge.
    pub from: Time,
    /// No clock edge from here on.
    pub to: Time,
    /// The FST file. Each further power-on begins a further file: `x.fst`, `x.2.fst`, `x.3.fst`.
    /// Each is locked from power-on until it is complete; the first clock edge in the window clears
    /// it.
    pub path: PathBuf,
}

impl TraceWindow {
    /// The file for power-on number `life`.
    fn open(&self, life: u32) -> Result<Output> {
        let path = life_path(&self.path, life);
        if std::fs::metadata(&path).is_ok_and(|meta| meta.file_type().is_fifo()) {
            let reason = "a waveform can't go to a pipe, for it is not written from start to end; \
                name a file";
            return Err(Error::Waveform { path, reason });
        }
        Output::open(&path).map_err(|e| Error::io(&path, e))
    }
}

/// The path for power-on number `life`.
fn life_path(path: &Path, life: u32) -> PathBuf {
    if life <= 1 {
        return path.to_path_buf();
    }
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(format!(".{life}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// The local memory, as in the parameters. It keeps its data over a loss of power as the storage
/// does.
#[derive(Clone, Debug)]
pub struct LocalMemory {
    /// Channels.
    pub channels: u32,
    /// Consecutive bytes that go to one channel.
    pub granule: u64,
    /// Bytes.
    pub bytes: u64,
    /// The memory of each channel.
    pub memory: MemoryModel,
    /// A file that keeps the data.
    pub file: Option<PathBuf>,
}

impl LocalMemory {
    fn media(&self) -> Result<Media> {
        let media = match &self.file {
            Some(path) => Media::file(path, self.bytes),
            None => Media::memory(self.bytes),
        };
        Ok(media?)
    }
}

/// What device to build and how to run it.
#[derive(Clone, Debug)]
pub struct DeviceConfig {
    /// The repository root.
    pub root: PathBuf,
    /// The top module.
    pub top: String,
    /// The top's file lists.
    pub filelists: Vec<PathBuf>,
    /// The design's engines.
    pub engines: Vec<design::engine::EngineInstance>,
    /// The top's source, if no file list has it.
    pub generated: BTreeMap<String, String>,
    /// The top's parameters, as written in SystemVerilog.
    pub parameters: BTreeMap<String, String>,
    /// The device's identity. It is given at power-on, and nothing that is compiled depends on it.
    pub identity: design::Identity,
    /// The clock.
    pub clock: Clock,
    /// Memory channels, as in `parameters`.
    pub channels: u32,
    /// Consecutive bytes that go to one channel, as in `parameters`.
    pub granule: u64,
    /// The memory of each channel.
    pub memory: MemoryModel,
    /// The local memory, if there is one.
    pub local: Option<LocalMemory>,
    /// Reads of host memory that may be outstanding.
    pub host_reads: u32,
    /// Largest write to host memory, in bytes: the link's maximum payload.
    pub host_chunk: u64,
    /// A busy device is hung after this number of cycles without any handshake.
    pub hang_cycles: u64,
    /// An answer that the link owes for longer than this is lost, and reported as a hang. The
    /// controller itself gives up on it after 25 to 50 ms, and would hide that.
    pub link_patience: Time,
    /// Write waveforms.
    pub trace: Option<TraceWindow>,
    /// Skip the cycles in which nothing can happen, without evaluating them. Off only serves
    /// measurements.
    pub skip_idle: bool,
    /// With assertions or without. A device that writes waveforms has them in any case.
    pub purpose: Purpose,
    /// Every block's clock always runs, as in an FPGA. The simulation is slower.
    pub free_clocks: bool,
    /// What registers and memories hold at each power-on.
    pub registers: PowerUpRegisters,
    /// What a build for speed runs on the device, on empty media, to find what matters most. An
    /// error fails the build. Not used with waveforms.
    pub train: Option<fn(RtlDevice) -> std::result::Result<(), TrainingError>>,
}

impl DeviceConfig {
    /// The default device, `hw/top`, in the checkout that [`design::checkout`] finds.
    pub fn new() -> Result<DeviceConfig> {
        Ok(DeviceConfig {
            root: design::checkout()?,
            top: "nearside_top".to_string(),
            filelists: vec![PathBuf::from("hw/top/top.f")],
            engines: Vec::new(),
            generated: BTreeMap::new(),
            parameters: BTreeMap::new(),
            identity: design::Identity::default(),
            clock: Clock::default(),
            channels: 2,
            granule: 4096,
            memory: MemoryModel::Ddr4(sim::DramConfig::default()),
            local: None,
            host_reads: 64,
            host_chunk: 256,
            hang_cycles: 2_000_000,
            link_patience: Time::ms(20),
            trace: None,
            skip_idle: true,
            purpose: Purpose::Checked,
            free_clocks: false,
            registers: PowerUpRegisters::named()?,
            train: None,
        })
    }

    /// The device that a design describes. Unless the design gives an identity, it is the first
    /// device of its process.
    pub fn from_design(design: &design::Design) -> Result<DeviceConfig> {
        let profile = |name: &str| design::Profile::find(name);
        let storage = profile(&design.media.profile)?;
        let delay = design.delay_sizes(&storage);
        let movers = design.mover_sizes(&storage);
        let doorbell_buffer = u8::from(design.nvme.doorbell_buffer);
        let mut parameters: BTreeMap<String, String> = [
            ("NumChannels", design.channels.to_string()),
            ("Granule", design.granule.0.to_string()),
            ("MediaBytes", format!("64'd{}", design.media.bytes.0)),
            ("ClockKhz", (design.clock_mhz * 1000).to_string()),
            ("NumIoQueues", design.nvme.io_queues.to_string()),
            ("QueueEntries", design.nvme.queue_entries.to_string()),
            ("NumSlots", design.nvme.slots.to_string()),
            ("DoorbellBuffer", doorbell_buffer.to_string()),
            ("MediaReadBeats", movers.read_beats.to_string()),
            ("MediaReads", movers.reads.to_string()),
            ("MediaWriteBytes", movers.write_bytes.to_string()),
            ("MediaWrites", movers.writes.to_string()),
            ("DelayReadSlots", delay.read_slots.to_string()),
            ("DelayWriteSlots", delay.write_slots.to_string()),
            ("DelayBufferBeats", delay.buffer_beats.to_string()),
        ]
        .map(|(name, value)| (name.to_string(), value))
        .into();
        let namespaces = design.nvme.namespace_parameters().into_iter();
        parameters.extend(namespaces.map(|(name, value)| (name.to_string(), value)));
        let mut local = None;
        if let Some(memory) = design.local() {
            let sizes = design.local_sizes(memory, &profile(&memory.profile)?);
            let values = design.local_parameters(memory, sizes).into_iter();
            parameters.extend(values.map(|(name, value)| (name.to_string(), value)));
            local = Some(LocalMemory {
                channels: memory.channels,
                granule: memory.granule.0,
                bytes: memory.bytes.0,
                memory: MemoryModel::Ddr4(design.local_dram(memory).clone()),
                file: design.local_file(),
            });
        }
        let base = DeviceConfig::new()?;
        let engines = design.engines()?;
        let (mut filelists, mut generated) = (base.filelists.clone(), BTreeMap::new());
        if !engines.is_empty() {
            let top = design::engine::top(&base.root, &engines)?;
            generated.insert("nearside_top.sv".to_string(), top);
            filelists = vec![PathBuf::from("hw/top/shell.f")];
            filelists.extend(engines.iter().map(|engine| engine.filelist.clone()));
        }
        Ok(DeviceConfig {
            engines,
            filelists,
            generated,
            parameters,
            identity: design::Identity::of(design, design::DeviceInstance::Number(0))?,
            clock: design.clock(),
            channels: design.channels,
            granule: design.granule.0,
            memory: MemoryModel::Ddr4(design.dram.clone()),
            local,
            host_reads: design.pcie.tags.min(256),
            host_chunk: u64::from(design.pcie.max_payload_bytes),
            ..base
        })
    }

    /// What to compile.
    pub fn bitstream(&self) -> BitstreamSpec {
        BitstreamSpec {
            root: self.root.clone(),
            top: self.top.clone(),
            filelists: self.filelists.clone(),
            generated: self.generated.clone(),
            parameters: self.parameters.clone(),
            purpose: match self.trace {
                Some(_) => Purpose::Checked,
                None => self.purpose,
            },
            trace: self.trace.is_some(),
            options: match self.free_clocks {
                true => vec!["+define+NS_CLOCK_GATE_BYPASS".to_string()],
                false => Vec::new(),
            },
            ..BitstreamSpec::default()
        }
    }

    /// Compiles the device if it was not compiled before; returns the path of the bitstream.
    pub fn compile(
        &self,
        media_bytes: u64,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<PathBuf> {
        let (Some(train), None) = (self.train, &self.trace) else {
            return compile(&self.bitstream(), progress);
        };
        let mut training = |path: &Path| {
            let media = Media::memory(media_bytes)?;
            let bitstream = Bitstream::open(path)?;
            let mut config = self.clone();
            if let Some(local) = &mut config.local {
                local.file = None;
            }
            train(RtlDevice::new(bitstream, config, media)?)
        };
        compile_trained(&self.bitstream(), &mut training, progress)
    }

    /// Refuses what cannot be built. Compiling may take minutes, so this comes first.
    pub fn check_buildable(&self) -> Result<()> {
        self.check()?;
        self.waveform().map(drop)
    }

    /// The file of the first waveform.
    fn waveform(&self) -> Result<Option<Output>> {
        let window = self.trace.as_ref();
        window.map(|window| window.open(1)).transpose()
    }

    fn check(&self) -> Result<()> {
        let (reads, chunk) = (self.host_reads, self.host_chunk);
        if !(1..=256).contains(&reads) {
            return Err(InvalidValue::new("host_reads", reads, "1 to 256 are allowed").into());
        }
        if !chunk.is_power_of_two() || !(64..=4096).contains(&chunk) {
            let rule = "a power of two from 64 to 4096 is needed";
            return Err(InvalidValue::new("host_chunk", chunk, rule).into());
        }
        let memories = self.local.iter().map(|local| &local.memory);
        for memory in memories.chain([&self.memory]) {
            if let MemoryModel::Ddr4(dram) = memory {
                dram.validate()?;
            }
        }
        Ok(())
    }
}

/// Everything that is lost with the power.
struct PoweredModel {
    model: VerilatedModel,
    mmio: MmioBridge,
    host: HostSlave,
    /// Channels of the storage, then those of the local memory.
    ddr: Vec<DdrSlave>,
    idle: Field,
    /// Tells the design how many cycles it has not seen, if it has that port.
    skipped: Option<Field>,
    /// Cycles in which the design only waits for an internal timer.
    wait: Option<Field>,
    /// Clock edges until the design acts by itself, even if it is idle.
    wake: Option<Field>,
    /// Skipped cycles that the design does not know of yet.
    unseen: u64,
    reset: Field,
    reset_left: u32,
    /// How the design learns of a function reset and of failing power, if it has these ports.
    shutdown: Option<ShutdownPorts>,
    /// False: the host is dead, and its slave does nothing.
    host_alive: bool,
    tracing: bool,
    probe: Option<TraceProbe>,
}

/// Ports of a design that completes what it has begun.
#[derive(Clone, Copy)]
struct ShutdownPorts {
    function_reset: Field,
    power_fail: Field,
    done: Field,
}

impl ShutdownPorts {
    fn find(model: &VerilatedModel) -> Result<ShutdownPorts> {
        Ok(ShutdownPorts {
            function_reset: model.field("flr_i")?,
            power_fail: model.field("power_fail_i")?,
            done: model.field("reset_done_o")?,
        })
    }
}

/// The host of a device without power: nothing answers.
struct DeadHost;

impl HostPort for DeadHost {
    fn write(&mut self, _: Time, _: u64, _: &[u8]) -> bool {
        false
    }

    fn read(&mut self, _: Time, _: u32, _: u64, _: u32) -> bool {
        false
    }

    fn mmio_part(&mut self, _: Time, _: u32, _: Vec<u8>) {}

    fn mmio_data(&mut self, _: Time, _: u32, _: Option<Vec<u8>>) {}

    fn mmio(&mut self, _: Time) -> Option<Mmio> {
        None
    }

    fn read_data(&mut self, _: Time) -> Option<sim::ReadData> {
        None
    }

    fn next_mmio(&self) -> Option<Time> {
        None
    }

    fn next_data(&self) -> Option<Time> {
        None
    }

    fn attention(&self) -> bool {
        false
    }
}

#[derive(Default)]
struct DeviceCounts {
    evaluated: u64,
    skipped: u64,
    handshakes: u64,
    lost_writes: u64,
    host_beats: [u64; 2],
    ddr: DdrStats,
    timed: u64,
    timed_all: f64,   // seconds of whole cycles
    timed_model: f64, // seconds of these in the model
}

/// A device whose hardware is simulated clock by clock.
pub struct RtlDevice {
    config: DeviceConfig,
    bitstream: Arc<Bitstream>,
    media: Media,
    local: Option<Media>,
    powered: Option<PoweredModel>,
    /// The last clock edge, and when it was.
    edge: u64,
    now: Time,
    quiet_cycles: u64, // cycles since the last handshake, while busy
    until_timed: u32,
    /// MSI-X enable and function mask.
    msix: (bool, bool),
    /// An input has changed since the last evaluated clock edge.
    disturbed: bool,
    last_handshake: Time,
    fault: Option<Fault>,
    /// The file of the present waveform, until the window begins.
    waveform: Option<Output>,
    trace_done: bool,
    /// The number of power-ons.
    lives: u32,
    held_up: Option<HoldUp>,
    tracer: Option<Tracer>,
    order: Option<OrderWatch>,
    counts: DeviceCounts,
}

/// What happened to the writes to the media that had begun when the power failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldUp {
    /// How long the clock still ran.
    pub time: Time,
    /// All of them ended by then.
    pub ended: bool,
}

impl RtlDevice {
    /// Compiles the device if it was not compiled before, loads it and powers it on.
    pub fn build(
        config: DeviceConfig,
        media: Media,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<RtlDevice> {
        config.check()?;
        // Compiling may take minutes, so what cannot be built is refused first.
        let waveform = config.waveform()?;
        let path = config.compile(media.size(), progress)?;
        RtlDevice::with(Bitstream::open(&path)?, config, media, waveform)
    }

    /// A device made from a bitstream that fits `config`.
    pub fn new(bitstream: Arc<Bitstream>, config: DeviceConfig, media: Media) -> Result<RtlDevice> {
        config.check()?;
        let waveform = config.waveform()?;
        RtlDevice::with(bitstream, config, media, waveform)
    }

    fn with(
        bitstream: Arc<Bitstream>,
        config: DeviceConfig,
        media: Media,
        waveform: Option<Output>,
    ) -> Result<RtlDevice> {
        let local = config.local.as_ref().map(LocalMemory::media).transpose()?;
        let mut device = RtlDevice {
            config,
            bitstream,
            media,
            local,
            powered: None,
            edge: 0,
            now: Time::ZERO,
            quiet_cycles: 0,
            until_timed: TIMED,
            msix: (true, false),
            disturbed: false,
            last_handshake: Time::ZERO,
            fault: None,
            waveform,
            trace_done: false,
            lives: 0,
            held_up: None,
            tracer: None,
            order: None,
            counts: DeviceCounts::default(),
        };
        device.powered = Some(device.power_up()?);
        Ok(device)
    }

    /// What the bitstream was built as; see [`Bitstream::build`].
    pub fn bitstream_build(&self) -> &str {
        self.bitstream.build()
    }

    /// What the device stores.
    pub fn media(&self) -> &Media {
        &self.media
    }

    /// What its local memory stores, if it has one.
    pub fn local(&self) -> Option<&Media> {
        self.local.as_ref()
    }

    /// What the device stores, to be changed without the device.
    pub fn media_mut(&mut self) -> &mut Media {
        &mut self.media
    }

    /// What the latest loss of power left; `None` if the design has no ports for it.
    pub fn held_up(&self) -> Option<HoldUp> {
        self.held_up
    }

    /// The configuration.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// Simulated clock cycles that were evaluated, and those that were skipped because nothing
    /// could happen.
    pub fn cycles(&self) -> (u64, u64) {
        (self.counts.evaluated, self.counts.skipped)
    }

    /// CPU seconds in the Verilated model so far, estimated from the cycles that were timed.
    pub fn model_seconds(&self) -> f64 {
        self.scaled(self.counts.timed_model)
    }

    /// CPU seconds in evaluated cycles so far, model and bus models, estimated from the cycles that
    /// were timed.
    pub fn evaluation_seconds(&self) -> f64 {
        self.scaled(self.counts.timed_all)
    }

    fn scaled(&self, seconds: f64) -> f64 {
        seconds * self.counts.evaluated as f64 / self.counts.timed.max(1) as f64
    }

    fn power_up(&mut self) -> Result<PoweredModel> {
        self.lives += 1;
        let contents = self.config.registers.for_life(self.lives, self.edge);
        let model = VerilatedModel::with_initial_values(&self.bitstream, contents)?;
        let channels = self.config.channels;
        let config = self.config.local.as_ref();
        let lanes = channels + config.map_or(0, |local| local.channels);
        let ports = |lane| AxiPorts::find_lane(&model, "m_axi_ddr_", lane, lanes);
        let mut ddr = Vec::new();
        for channel in 0..channels {
            let map = AddressMap::new(channel, channels, self.config.granule, self.media.size())?;
            let fill = FillPorts::find_lane(&model, "m_fill_", channel, channels).ok();
            let timing = self.config.memory.timing();
            ddr.push(DdrSlave::new(ports(channel)?, map, timing).with_fill(fill));
        }
        if let Some(config) = config {
            for channel in 0..config.channels {
                let map = AddressMap::new(channel, config.channels, config.granule, config.bytes)?;
                let timing = config.memory.timing();
                ddr.push(DdrSlave::new(ports(channels + channel)?, map, timing));
            }
        }
        let reset = model.field("rst_ni")?;
        let mut powered = PoweredModel {
            mmio: MmioBridge::new(&model, self.config.host_chunk)?,
            host: self.bridge(&model)?,
            ddr,
            idle: model.field("idle_o")?,
            skipped: model.field("skipped_i").ok(),
            wait: model.field("wait_o").ok(),
            wake: model.field("wake_o").ok(),
            unseen: 0,
            reset,
            reset_left: RESET_CYCLES,
            shutdown: ShutdownPorts::find(&model).ok(),
            host_alive: true,
            tracing: false,
            probe: None,
            model,
        };
        powered.set_msix(self.msix)?;
        powered.identify(&self.config.identity);
        powered.model.assert_reset(reset, self.now.0)?;
        powered.set_tracer(self.tracer.as_ref());
        powered.model.watch_order(self.order.is_some());
        Ok(powered)
    }

    /// The host's side of the device's own accesses.
    fn bridge(&self, model: &VerilatedModel) -> Result<HostSlave> {
        let ports = AxiPorts::find(model, "m_axi_host_")?;
        Ok(HostSlave::new(
            ports,
            self.config.host_reads,
            self.config.host_chunk,
            self.config.link_patience,
        ))
    }

    /// Lets the device complete what it has begun, with a dead host, until `deadline` at the
    /// latest. Returns whether it did; `None` if the design has no ports for it.
    fn shut_down(
        &mut self,
        request: fn(&ShutdownPorts) -> Field,
        deadline: Time,
    ) -> std::result::Result<Option<bool>, Fault> {
        let Some(p) = &mut self.powered else {
            return Ok(None);
        };
        let Some(shutdown) = p.shutdown else {
            return Ok(None);
        };
        p.host_alive = false;
        p.probe = None; // over a reset, changes at its ports mean nothing
        p.mmio.deassert(&mut p.model);
        p.host.ports().deassert_slave(&mut p.model);
        p.model.set(request(&shutdown), 1);
        while self.config.clock.edge(self.edge + 1) <= deadline {
            self.step(&mut DeadHost)?;
            let done = |p: &PoweredModel| p.model.is(shutdown.done);
            if self.powered.as_ref().is_some_and(done) {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    /// The function in reset comes up with a host that has nothing outstanding.
    fn restart_function(&mut self) -> std::result::Result<(), Fault> {
        let (lost_writes, beats) = match &mut self.powered {
            Some(p) => {
                if let Some(shutdown) = p.shutdown {
                    p.model.set(shutdown.function_reset, 0);
                }
                (p.mmio.lost_writes, p.host.beats)
            }
            None => return Ok(()),
        };
        // The cycle in which the design sees that.
        self.step(&mut DeadHost)?;
        let Some(p) = &self.powered else {
            return Ok(());
        };
        let mut mmio = MmioBridge::new(&p.model, self.config.host_chunk)?;
        let mut host = self.bridge(&p.model)?;
        mmio.lost_writes = lost_writes;
        host.beats = beats;
        if let Some(p) = &mut self.powered {
            p.mmio = mmio;
            p.host = host;
            p.host_alive = true;
            p.set_tracer(self.tracer.as_ref());
        }
        self.quiet_cycles = 0;
        Ok(())
    }

    /// One clock cycle.
    fn step(&mut self, host: &mut dyn HostPort) -> std::result::Result<(), Fault> {
        let (before, now) = (self.now, self.config.clock.edge(self.edge + 1));
        let middle = Time(before.0 + (now.0 - before.0) / 2);
        if self.config.trace.is_some() {
            self.update_waveform(now)?;
        }
        let Some(p) = &mut self.powered else {
            return Ok(());
        };
        self.until_timed -= 1;
        let timed = self.until_timed == 0;
        let start = timed.then(Instant::now);
        if p.reset_left > 0 {
            p.reset_left -= 1;
            p.model.set(p.reset, u64::from(p.reset_left == 0));
        }
        let running = p.reset_left == 0;
        if running {
            if p.host_alive {
                p.mmio.drive(&mut p.model, host, now);
                p.host.drive(&mut p.model, host, now);
            }
            let channels = self.config.channels as usize;
            for (n, channel) in p.ddr.iter_mut().enumerate() {
                let media = match &self.local {
                    Some(local) if n >= channels => local,
                    _ => &self.media,
                };
                channel.drive(&mut p.model, media, now);
            }
        }
        let skipped = std::mem::take(&mut p.unseen);
        if let (true, Some(port)) = (skipped > 0, p.skipped) {
            p.model.set(port, skipped);
        }
        let model_start = timed.then(Instant::now);
        let low = p.model.clock(false, middle.0);
        let mut model_time = model_start.map(|start| start.elapsed().as_secs_f64());
        let mut handshakes = 0;
        if running {
            if let Some(probe) = &p.probe {
                probe.record_port_handshakes(&p.model, p.host.ports(), now);
            }
            if p.host_alive {
                handshakes += p.mmio.sample(&p.model, host, now);
                handshakes += p.host.sample(&p.model);
            }
            let channels = self.config.channels as usize;
            for (n, channel) in p.ddr.iter_mut().enumerate() {
                let media = match &mut self.local {
                    Some(local) if n >= channels => local,
                    _ => &mut self.media,
                };
                handshakes += channel.sample(&p.model, media, now);
            }
        }
        let model_start = timed.then(Instant::now);
        let high = low.and_then(|()| p.model.clock(true, now.0));
        if let (Some(time), Some(again)) = (&mut model_time, model_start) {
            *time += again.elapsed().as_secs_f64();
        }
        if let (true, Some(port)) = (skipped > 0, p.skipped) {
            p.model.set(port, 0);
        }
        if let Some(probe) = &mut p.probe {
            probe.record_changes(&p.model, now, before);
        }
        if let Some(watch) = &self.order {
            order::record_events(&mut p.model, watch, now);
        }
        self.edge += 1;
        self.now = now;
        self.disturbed = false;
        self.counts.evaluated += 1;
        if handshakes > 0 {
            self.counts.handshakes += handshakes;
            self.last_handshake = now;
            self.quiet_cycles = 0;
        } else {
            self.quiet_cycles += 1;
        }
        if let (Some(start), Some(model_time)) = (start, model_time) {
            self.until_timed = TIMED;
            let all = start.elapsed().as_secs_f64();
            if all < PREEMPTED {
                self.counts.timed += 1;
                self.counts.timed_all += all;
                self.counts.timed_model += model_time;
            }
        }
        if let Err(fault) = high {
            return Err(self.record_fault(fault));
        }
        if let Some(breach) = self.powered.as_mut().and_then(|p| p.host.breach.take()) {
            return Err(self.record_fault(Fault::Assertion(breach)));
        }
        if self.quiet_cycles >= self.config.hang_cycles {
            return self.check_hang(host);
        }
        Ok(())
    }

    /// The function keeps nothing but what is on the media.
    fn record_power_lost(&self) {
        if let Some(watch) = &self.order {
            watch.record(self.now, OrderEvent::PowerLost);
        }
    }

    fn record_fault(&mut self, fault: Fault) -> Fault {
        self.fault = Some(fault.clone());
        if let Some(p) = &mut self.powered {
            // The waveform shows what led here. The fault matters more than an error of the
            // waveform.
            if let Err(error) = p.model.trace_close() {
                eprintln!("waveform {error}");
            }
        }
        fault
    }

    /// Many cycles have passed without a handshake: does anything else still work?
    fn check_hang(&mut self, host: &dyn HostPort) -> std::result::Result<(), Fault> {
        self.quiet_cycles = 0;
        let Some(p) = &self.powered else {
            return Ok(());
        };
        let external = host.next_arrival().is_some()
            || p.host.waits_for_link()
            || p.ddr
                .iter()
                .any(|channel| channel.next_event().is_some() || channel.filling());
        if external || self.idle() || p.free_cycles() > 0 {
            return Ok(());
        }
        let cycles = self.config.hang_cycles;
        let dump = format!(
            "  busy for {cycles} cycles without a handshake\n{}",
            self.dump()
        );
        Err(self.record_fault(Fault::Hang(dump)))
    }

    /// An answer that the link has lost is a hang, whatever else happens.
    #[inline]
    fn check_link(&mut self) -> std::result::Result<(), Fault> {
        let now = self.now;
        let lost = self.powered.as_mut().and_then(|p| p.host.lost_request(now));
        match lost {
            None => Ok(()),
            Some(what) => {
                let dump = format!("  m_axi_host: {what}\n{}", self.dump());
                Err(self.record_fault(Fault::Hang(dump)))
            }
        }
    }

    /// Every port and what is outstanding on it.
    fn dump(&self) -> String {
        let Some(p) = &self.powered else {
            return "no power".to_string();
        };
        let mut text = format!(
            "  at {}: the last handshake was at {}\n",
            self.now, self.last_handshake
        );
        let mut port = |name: &str, handshakes: [(&'static str, Field, Field); 5]| {
            let states = handshakes.map(|(channel, valid, ready)| {
                format!("{channel} {}/{}", p.model.get(valid), p.model.get(ready))
            });
            text += &format!("  {name:<12} valid/ready: {}\n", states.join("  "));
        };
        port("s_axil", p.mmio.lite().ports().handshakes());
        port("s_axi_pm", p.mmio.pm().ports().handshakes());
        port("m_axi_host", p.host.ports().handshakes());
        for (i, channel) in p.ddr.iter().enumerate() {
            port(&format!("m_axi_ddr[{i}]"), channel.ports().handshakes());
        }
        text += &format!(
            "  {}\n  m_axi_host: {}\n",
            p.mmio.describe(),
            p.host.describe()
        );
        for (i, channel) in p.ddr.iter().enumerate() {
            text += &format!("  m_axi_ddr[{i}]: {}\n", channel.describe());
        }
        text
    }

    fn update_waveform(&mut self, edge: Time) -> std::result::Result<(), Fault> {
        let (Some(window), Some(p)) = (&self.config.trace, &mut self.powered) else {
            return Ok(());
        };
        let inside = edge >= window.from && edge < window.to;
        if let Some(file) = self.waveform.take_if(|_| inside) {
            p.tracing = true;
            let opened = p.model.trace_open(file);
            if let Err(error) = opened {
                return Err(self.record_fault(waveform(error)));
            }
        } else if !inside && p.tracing {
            p.tracing = false;
            self.trace_done = true;
            let closed = p.model.trace_close();
            if let Err(error) = closed {
                return Err(self.record_fault(waveform(error)));
            }
        }
        Ok(())
    }

    /// True when nothing happens until something arrives or a memory answers.
    fn is_resting(&self) -> bool {
        !self.disturbed && self.powered.as_ref().is_none_or(PoweredModel::is_resting)
    }

    /// Goes to a clock edge without evaluating any.
    fn jump_to_edge(&mut self, edge: u64) {
        self.edge = edge;
        self.now = self.config.clock.edge(edge);
    }

    /// Cycles in which nothing changes but the time, unless something arrives or a memory answers.
    fn free_cycles(&self) -> u64 {
        match &self.powered {
            Some(p) if !self.disturbed && p.quiet() => p.free_cycles(),
            _ => 0,
        }
    }

    /// Lets time pass without evaluating anything, up to just before the first edge that something
    /// can happen at; at most `free` cycles.
    fn skip_cycles(&mut self, until: Time, host: &dyn HostPort, free: u64) {
        let Some(p) = &self.powered else { return };
        let memory = p.ddr.iter().filter_map(DdrSlave::next_event).min();
        let next = [host.next_arrival(), memory, p.host.timeout_count_start()]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(Time::MAX);
        let clock = self.config.clock;
        // The edge that sees the event is the first at or after it, and is evaluated.
        let before = clock.edge_strictly_before(next);
        let target = before
            .min(clock.edge_before(until))
            .min(self.edge.saturating_add(free));
        if target > self.edge {
            let filling = p.ddr.iter().any(DdrSlave::filling);
            let target = if filling {
                self.run_fills(target)
            } else {
                target
            };
            let cycles = target - self.edge;
            self.counts.skipped += cycles;
            if let Some(p) = &mut self.powered {
                p.unseen += cycles;
            }
            self.jump_to_edge(target);
        }
    }

    /// The memories zero blocks while the device rests. This runs their clock edges until `target`,
    /// or until before the first one that the device has to see. Returns the last edge that passed.
    fn run_fills(&mut self, target: u64) -> u64 {
        let Some(p) = &mut self.powered else {
            return target;
        };
        let mut edge = self.edge;
        while edge < target {
            let time = self.config.clock.edge(edge + 1);
            if !p.ddr.iter_mut().all(|channel| channel.advance_idle(time)) {
                break;
            }
            for channel in &mut p.ddr {
                channel.fill_line(&mut self.media, time);
            }
            edge += 1;
        }
        edge
    }

    /// Without power: writes are lost, reads fail.
    fn discard_arrivals(&mut self, until: Time, host: &mut dyn HostPort) {
        let edge = self.config.clock.edge_before(until).max(self.edge);
        let last = self.config.clock.edge(edge);
        loop {
            let time = host.next_arrival().unwrap_or(Time::MAX).max(self.now);
            if time > last {
                break;
            }
            let mut any = false;
            while let Some(access) = host.mmio(time) {
                any = true;
                if let Mmio::Read { tag, .. } = access {
                    host.mmio_data(time, tag, None);
                }
            }
            while host.read_data(time).is_some() {
                any = true;
            }
            if !any {
                break; // the link has nothing more
            }
        }
        self.jump_to_edge(edge);
    }

    /// Moves the counts of what is about to lose power to where they are kept.
    fn save_port_counts(&mut self) {
        if let Some(p) = &self.powered {
            add_port_counts(&mut self.counts, p);
        }
    }
}

impl PoweredModel {
    /// False when the device has no trace ports.
    fn set_tracer(&mut self, tracer: Option<&Tracer>) -> bool {
        self.probe = tracer.and_then(|t| TraceProbe::new(&self.model, t.clone()).ok());
        self.mmio.tracer = tracer.cloned();
        self.probe.is_some()
    }

    /// Drives the identity straps of a device that has them.
    fn identify(&mut self, identity: &design::Identity) {
        if let Ok(port) = self.model.field("serial_i") {
            let mut bytes = identity.serial_bytes();
            bytes.reverse(); // the first character is in the high bits
            self.model.write(port, &bytes);
        }
        if let Ok(port) = self.model.field("eui64_i") {
            self.model.set(port, identity.eui64(1));
        }
    }

    fn set_msix(&mut self, (enable, mask): (bool, bool)) -> Result<()> {
        for (name, value) in [("msix_enable_i", enable), ("msix_mask_i", mask)] {
            let field = self.model.field(name)?;
            self.model.set(field, u64::from(value));
        }
        Ok(())
    }

    fn is_resting(&self) -> bool {
        self.quiet() && self.model.is(self.idle)
    }

    /// The number of cycles that the design allows to skip while all ports are quiet.
    fn free_cycles(&self) -> u64 {
        // Cycles skipped since the last edge count against both.
        let left = |port| self.model.get(port).saturating_sub(self.unseen);
        // The edge that wakes it is evaluated.
        let asleep = self
            .wake
            .map_or(u64::MAX, |wake| left(wake).saturating_sub(1));
        let free = match self.model.is(self.idle) {
            true => u64::MAX,
            false => self.wait.map_or(0, left),
        };
        free.min(asleep)
    }

    /// Nothing is under way at the ports.
    fn quiet(&self) -> bool {
        self.reset_left == 0
            && self.mmio.quiet(&self.model)
            && self.host.quiet()
            && self.ddr.iter().all(DdrSlave::quiet)
    }
}

fn waveform(error: Error) -> Fault {
    Fault::File(format!("waveform {error}"))
}

fn add_port_counts(counts: &mut DeviceCounts, p: &PoweredModel) {
    counts.lost_writes += p.mmio.lost_writes;
    for (sum, beats) in counts.host_beats.iter_mut().zip(p.host.beats) {
        *sum += beats;
    }
    for channel in &p.ddr {
        let stats = channel.stats();
        counts.ddr.reads += stats.reads;
        counts.ddr.read_beats += stats.read_beats;
        counts.ddr.writes += stats.writes;
        counts.ddr.write_beats += stats.write_beats;
        counts.ddr.fill_beats += stats.fill_beats;
    }
}

impl Device for RtlDevice {
    fn now(&self) -> Time {
        self.now
    }

    fn advance(&mut self, until: Time, host: &mut dyn HostPort) -> std::result::Result<(), Fault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        if self.powered.is_none() {
            self.discard_arrivals(until, host);
            return Ok(());
        }
        loop {
            if self.config.skip_idle {
                let free = self.free_cycles();
                if free > 0 {
                    self.skip_cycles(until, host, free);
                }
            }
            self.check_link()?;
            if self.config.clock.edge(self.edge + 1) > until {
                return Ok(());
            }
            self.step(host)?;
            if host.attention() {
                return Ok(());
            }
        }
    }

    fn idle(&self) -> bool {
        let waits = |p: &PoweredModel| {
            p.host.waits_for_link()
                || p.ddr
                    .iter()
                    .any(|c| c.next_event().is_some() || c.filling())
        };
        self.is_resting() && !self.powered.as_ref().is_some_and(waits)
    }

    fn power_off(&mut self) {
        if self.powered.is_none() {
            self.fault = None;
            return;
        }
        if let Some(tracer) = &self.tracer {
            tracer.record(self.now, &TraceEvent::PowerOff);
        }
        self.held_up = None;
        // A fault while it ends is reported by what comes next.
        let mut failed = None;
        if self.fault.is_none() {
            let start = self.now;
            let slow = self.config.clock.edge(self.edge + HOLD_UP_CYCLES);
            let deadline = (start + HOLD_UP).max(slow);
            match self.shut_down(|shutdown| shutdown.power_fail, deadline) {
                Ok(Some(ended)) => {
                    let time = self.now - start;
                    self.held_up = Some(HoldUp { time, ended });
                }
                Ok(None) => {}
                Err(fault) => failed = Some(fault),
            }
        }
        self.save_port_counts();
        self.powered = None;
        self.record_power_lost();
        self.disturbed = false;
        self.fault = failed;
        self.quiet_cycles = 0;
    }

    fn power_on(&mut self) {
        if self.powered.is_some() {
            return;
        }
        match self.power_up() {
            Ok(powered) => self.powered = Some(powered),
            // The same bitstream came up before.
            Err(error) => self.fault = Some(error.into()),
        }
        let window = self.config.trace.as_ref();
        if let Some(window) = window.filter(|w| !self.trace_done && self.now < w.to) {
            match window.open(self.lives) {
                Ok(file) => self.waveform = Some(file),
                Err(error) => self.fault = Some(waveform(error)),
            }
        }
    }

    fn function_reset(&mut self) {
        let able = |p: &PoweredModel| p.shutdown.is_some();
        if self.fault.is_some() || !self.powered.as_ref().is_some_and(able) {
            // A model that has failed can't go on.
            self.power_off();
            self.power_on();
            return;
        }
        if let Some(tracer) = &self.tracer {
            tracer.record(self.now, &TraceEvent::PowerOff);
        }
        let ended = self.shut_down(|shutdown| shutdown.function_reset, self.now + RESET_LIMIT);
        self.record_power_lost();
        let revived = match ended {
            Ok(Some(false)) => Err(Fault::Hang(self.dump())),
            Ok(_) => self.restart_function(),
            Err(fault) => Err(fault),
        };
        if let Err(fault) = revived {
            self.record_fault(fault);
        }
    }

    fn set_msix(&mut self, enable: bool, mask: bool) {
        if self.msix == (enable, mask) {
            return;
        }
        self.msix = (enable, mask);
        if let Some(p) = &mut self.powered {
            self.disturbed = true;
            if let Err(error) = p.set_msix(self.msix) {
                self.fault = Some(error.into());
            }
        }
    }

    fn set_tracer(&mut self, tracer: Option<Tracer>) -> bool {
        self.tracer = tracer;
        let tracer = self.tracer.as_ref();
        self.powered.as_mut().is_some_and(|p| p.set_tracer(tracer))
    }

    fn watch_order(&mut self, watch: Option<OrderWatch>) -> bool {
        let on = watch.is_some();
        let skipped = |p: &mut PoweredModel| p.model.watch_order(on);
        let skipped = self.powered.as_mut().is_some_and(skipped);
        self.order = watch.filter(|_| skipped);
        skipped
    }

    fn finish(&mut self) -> std::result::Result<(), Fault> {
        let closed = match &mut self.powered {
            Some(p) if p.tracing => {
                p.tracing = false;
                self.trace_done = true;
                p.model.trace_close().map_err(waveform)
            }
            _ => Ok(()),
        };
        let flushed = self.media.flush();
        closed.and(flushed.map_err(|e| Fault::File(e.to_string())))
    }

    fn lost_writes(&self) -> u64 {
        let of_bridge = self.powered.as_ref().map_or(0, |p| p.mmio.lost_writes);
        self.counts.lost_writes + of_bridge
    }

    fn counters(&self) -> Vec<Counter> {
        let mut sum = DeviceCounts {
            lost_writes: self.counts.lost_writes,
            host_beats: self.counts.host_beats,
            ddr: self.counts.ddr,
            ..DeviceCounts::default()
        };
        if let Some(p) = &self.powered {
            add_port_counts(&mut sum, p);
        }
        let c = &self.counts;
        let counter = |name: &str, value: f64, unit| Counter {
            name: name.to_string(),
            value,
            unit,
        };
        vec![
            counter("cycles.evaluated", c.evaluated as f64, "cycles"),
            counter("cycles.skipped", c.skipped as f64, "cycles"),
            counter("cpu.engine", self.evaluation_seconds(), "s"),
            counter("cpu.model", self.model_seconds(), "s"),
            counter("axi.handshakes", c.handshakes as f64, "beats"),
            counter("axi.host.read_beats", sum.host_beats[0] as f64, "beats"),
            counter("axi.host.write_beats", sum.host_beats[1] as f64, "beats"),
            counter("axi.ddr.reads", sum.ddr.reads as f64, "bursts"),
            counter("axi.ddr.read_beats", sum.ddr.read_beats as f64, "beats"),
            counter("axi.ddr.writes", sum.ddr.writes as f64, "bursts"),
            counter("axi.ddr.write_beats", sum.ddr.write_beats as f64, "beats"),
            counter("axi.ddr.fill_beats", sum.ddr.fill_beats as f64, "beats"),
            counter("media.failures", self.media.failures() as f64, "accesses"),
            counter("mmio.lost_writes", sum.lost_writes as f64, "accesses"),
        ]
    }
}

impl std::fmt::Debug for RtlDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RtlDevice")
            .field("config", &self.config)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}
