// SPDX-License-Identifier: Apache-2.0

//! `nvm_delay` alone, between a traffic generator and the DDR4 model: how exactly it keeps its
//! targets.
//!
//! Everything is counted in clock edges at the emulator's ports, so nothing else of the device
//! blurs the result.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use design::media::DelaySizes;
use sim::memctrl::MemoryModel;
use sim::{Clock, Fault, Media, Random};
use spec::nvm_delay::Registers;
use spec::regs::nvm_delay::{self, command, control, counters::read as of, timing};

use crate::axi::{
    resp, AddressMap, Ax, AxiMaster, AxiPorts, AxilAccess, AxilMaster, AxilPorts, DdrSlave, WBeat,
    BEAT,
};
use crate::bitstream::{compile, Bitstream, BitstreamSpec, Field, Progress, VerilatedModel};
use crate::error::Result;

/// Edges without any handshake that count as a hang; the longest delay is 2^20 cycles.
const HANG_CYCLES: u64 = 3 << 20;
/// Edges between two reports of progress.
const PROGRESS_INTERVAL: u64 = 1024;

/// Fractional bits of a time in the registers.
const TIME_FRACTION: u32 = 12;

/// Target latencies, in cycles (fractions count): a transaction of n beats takes `base + n * beat`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TargetLatencies {
    /// Of a read.
    pub read_base: f64,
    /// Of each beat of a read.
    pub read_beat: f64,
    /// Of a write.
    pub write_base: f64,
    /// Of each beat of a write.
    pub write_beat: f64,
}

/// Where accesses go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressPattern {
    /// Anywhere, aligned to the burst's size rounded up to a power of two.
    Random,
    /// Each after the one before.
    Sequential,
}

/// Traffic of one direction, or of both in equal parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficMix {
    /// Reads only.
    Reads,
    /// Writes only.
    Writes,
    /// Either, at random.
    Both,
}

/// What to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Directions.
    pub mix: TrafficMix,
    /// Where.
    pub addresses: AddressPattern,
    /// Beats of 64 bytes in a burst: 1 to 64 (longer bursts would cross a 4 KiB boundary), or up to
    /// 256 with `size` 4.
    pub beats: u32,
    /// log2 of the bytes of a beat: 6 is a full beat.
    pub size: u8,
    /// Transactions.
    pub count: usize,
    /// Transactions in flight.
    pub outstanding: usize,
    /// IDs in use, taken in turn.
    pub ids: u16,
    /// Cycles from one request to the next: at least these, at most twice as many, at random.
    pub gap: u64,
    /// Seed of everything random.
    pub seed: u64,
}

impl Default for Traffic {
    fn default() -> Traffic {
        Traffic {
            mix: TrafficMix::Reads,
            addresses: AddressPattern::Random,
            beats: 1,
            size: 6,
            count: 1000,
            outstanding: 1,
            ids: 1,
            gap: 0,
            seed: 1,
        }
    }
}

/// One transaction, in clock edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionSample {
    /// A write.
    pub write: bool,
    /// Its ID.
    pub id: u16,
    /// The edge that took its address.
    pub start: u64,
    /// The edge that took its last write data; `start` for a read.
    pub data: u64,
    /// Edges from `start` to each beat of read data, or to the one write response.
    pub latencies: Vec<u32>,
    /// Edges from `start` to the memory's last answer; 0 where several transactions are in flight.
    pub memory: u32,
}

impl TransactionSample {
    /// Edges from the address to the last beat of the answer.
    pub fn latency(&self) -> u32 {
        self.latencies.last().copied().unwrap_or(0)
    }
}

/// What the emulator itself counted in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DelayBenchCounters {
    /// Transactions.
    pub transactions: u64,
    /// Beats.
    pub beats: u64,
    /// Responses that came later than their target.
    pub late: u64,
    /// Sum of latencies in cycles.
    pub latency_sum: u64,
    /// The smallest.
    pub latency_min: u32,
    /// The largest.
    pub latency_max: u32,
    /// Transactions by latency.
    pub buckets: Vec<u32>,
}

/// An `nvm_delay` with everything around it.
pub struct DelayBench {
    model: VerilatedModel,
    reset: Field,
    answers: [Field; 2],
    answered: u64,
    master: AxiMaster,
    control: AxilMaster,
    ddr: DdrSlave,
    media: Media,
    clock: Clock,
    edge: u64,
    quiet: u64,
}

impl DelayBench {
    /// Builds `nvm_delay` if it was not built before, resets it, and leaves it switched off.
    /// Without sizes it has its default ones.
    pub fn new(
        root: &Path,
        clock: Clock,
        memory: &MemoryModel,
        media: Media,
        sizes: Option<DelaySizes>,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<DelayBench> {
        let parameters = |s: DelaySizes| {
            [
                ("ReadSlots".to_string(), s.read_slots.to_string()),
                ("WriteSlots".to_string(), s.write_slots.to_string()),
                ("BufferBeats".to_string(), s.buffer_beats.to_string()),
            ]
        };
        let spec = BitstreamSpec {
            root: root.to_path_buf(),
            top: "nvm_delay".to_string(),
            filelists: vec![PathBuf::from("hw/ip/nvm_delay/nvm_delay.f")],
            parameters: sizes.map(parameters).into_iter().flatten().collect(),
            ..BitstreamSpec::default()
        };
        let model = VerilatedModel::new(&Bitstream::open(&compile(&spec, progress)?)?)?;
        let map = AddressMap::new(0, 1, 4096, media.size())?;
        let mut bench = DelayBench {
            reset: model.field("rst_ni")?,
            answers: [model.field("m_axi_rvalid")?, model.field("m_axi_bvalid")?],
            answered: 0,
            master: AxiMaster::new(AxiPorts::find(&model, "s_axi_")?),
            control: AxilMaster::new(AxilPorts::find(&model, "s_axil_")?),
            ddr: DdrSlave::new(AxiPorts::find(&model, "m_axi_")?, map, memory.timing()),
            media,
            clock,
            edge: 0,
            quiet: 0,
            model,
        };
        bench.model.assert_reset(bench.reset, 0)?;
        for level in [0, 0, 0, 1, 1] {
            bench.model.set(bench.reset, level);
            bench.tick(|_, _, _| {})?;
        }
        // A counter can be read once the sweep after reset has ended. A clear during the sweep
        // would take effect at its end, in the midst of traffic.
        bench.read(nvm_delay::COUNTERS)?;
        Ok(bench)
    }

    /// Edges so far.
    pub fn edges(&self) -> u64 {
        self.edge
    }

    /// What the memory holds.
    pub fn media(&self) -> &Media {
        &self.media
    }

    /// Writes a register.
    pub fn write(&mut self, addr: u64, data: u32) -> std::result::Result<(), Fault> {
        self.access(AxilAccess::Write {
            addr: addr as u32,
            data,
            strb: 0xF,
        })
        .map(|_| ())
    }

    /// Reads a register.
    pub fn read(&mut self, addr: u64) -> std::result::Result<u32, Fault> {
        let addr = addr as u32;
        self.access(AxilAccess::Read { addr })
    }

    fn command(&mut self, bit: spec::regs::Field) -> std::result::Result<(), Fault> {
        self.write(nvm_delay::COMMAND, bit.mask() as u32)
    }

    /// Sets the times and caps of a media profile, without its regions, for what is accepted from
    /// now on.
    pub fn set_profile(&mut self, registers: &Registers) -> std::result::Result<(), Fault> {
        let offsets = [
            timing::READ_BASE,
            timing::READ_BEAT,
            timing::WRITE_BASE,
            timing::WRITE_BEAT,
        ];
        for (offset, time) in offsets.into_iter().zip(registers.timing) {
            self.write(nvm_delay::TIMING + offset, time)?;
        }
        for (offset, time) in offsets.into_iter().zip(registers.calibration) {
            self.write(nvm_delay::CALIBRATION + offset, time)?;
        }
        self.write(nvm_delay::READ_CAP, registers.read_cap)?;
        self.write(nvm_delay::WRITE_CAP, registers.write_cap)?;
        let enable = registers.control & control::ENABLE.mask() as u32;
        self.write(nvm_delay::CONTROL, enable)?;
        self.command(command::COMMIT)
    }

    /// Sets targets without bandwidth caps and calibration, for what is accepted from now on.
    pub fn set(&mut self, targets: &TargetLatencies) -> std::result::Result<(), Fault> {
        let times = [
            (timing::READ_BASE, targets.read_base),
            (timing::READ_BEAT, targets.read_beat),
            (timing::WRITE_BASE, targets.write_base),
            (timing::WRITE_BEAT, targets.write_beat),
        ];
        for (offset, cycles) in times {
            let fixed = (cycles * f64::from(1u32 << TIME_FRACTION))
                .round()
                .clamp(0.0, f64::from(u32::MAX));
            self.write(nvm_delay::CALIBRATION + offset, 0)?;
            self.write(nvm_delay::TIMING + offset, fixed as u32)?;
        }
        self.write(nvm_delay::READ_CAP, 0)?;
        self.write(nvm_delay::WRITE_CAP, 0)?;
        self.write(nvm_delay::CONTROL, control::ENABLE.mask() as u32)?;
        self.command(command::COMMIT)
    }

    /// Switches the emulation off.
    pub fn off(&mut self) -> std::result::Result<(), Fault> {
        self.write(nvm_delay::CONTROL, 0)?;
        self.command(command::COMMIT)
    }

    /// Sets all counters to zero.
    pub fn clear(&mut self) -> std::result::Result<(), Fault> {
        self.command(command::CLEAR)
    }

    /// The counters, reads first.
    pub fn counters(&mut self) -> std::result::Result<[DelayBenchCounters; 2], Fault> {
        self.command(command::SNAPSHOT)?;
        let mut out = [DelayBenchCounters::default(), DelayBenchCounters::default()];
        for (direction, counters) in out.iter_mut().enumerate() {
            let counted = [nvm_delay::counters::READ, nvm_delay::counters::WRITE][direction];
            let bucket = [
                nvm_delay::counters::READ_BUCKET,
                nvm_delay::counters::WRITE_BUCKET,
            ][direction];
            let base = nvm_delay::COUNTERS + counted;
            let mut wide = |offset: u64| -> std::result::Result<u64, Fault> {
                Ok(u64::from(self.read(base + offset)?)
                    | u64::from(self.read(base + offset + 4)?) << 32)
            };
            counters.transactions = wide(of::TRANSACTIONS_LO)?;
            counters.beats = wide(of::BEATS_LO)?;
            counters.late = wide(of::LATE_LO)?;
            counters.latency_sum = wide(of::SUM_LO)?;
            counters.latency_min = self.read(base + of::MIN)?;
            counters.latency_max = self.read(base + of::MAX)?;
            for n in 0..nvm_delay::counters::READ_BUCKET_COUNT {
                counters.buckets.push(self.read(
                    nvm_delay::COUNTERS + bucket + nvm_delay::counters::READ_BUCKET_STRIDE * n,
                )?);
            }
        }
        Ok(out)
    }

    /// Runs edges without traffic.
    pub fn idle(&mut self, edges: u64) -> std::result::Result<(), Fault> {
        for _ in 0..edges {
            self.tick(|_, _, _| {})?;
        }
        Ok(())
    }

    /// Sends traffic and waits until all of it is answered. Read data is checked against what the
    /// memory holds. `progress` gets (answered, total) now and then; after a false no more are
    /// sent.
    pub fn run(
        &mut self,
        traffic: &Traffic,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> std::result::Result<Vec<TransactionSample>, Fault> {
        let mut generator = Generator::new(traffic, self.media.size());
        let mut error = None;
        while !generator.done() && error.is_none() {
            if self.edge % PROGRESS_INTERVAL == 0 {
                let (done, all) = (generator.finished as u64, generator.traffic.count as u64);
                if !progress(done, all) {
                    generator.traffic.count = generator.issued;
                }
            }
            generator.issue(&mut self.master, self.edge);
            let finished = generator.finished;
            self.tick(|edge, seen, context| generator.see(edge, seen, context, &mut error))?;
            if generator.finished > finished && traffic.outstanding == 1 {
                if let Some(sample) = generator.samples.last_mut() {
                    sample.memory = self.answered.saturating_sub(sample.start) as u32;
                }
            }
        }
        match error {
            Some(text) => Err(Fault::Assertion(text)),
            None => Ok(generator.samples),
        }
    }

    /// One clock edge. `see` gets its number, its handshakes, and the read data with the memory's
    /// contents.
    fn tick(
        &mut self,
        mut see: impl FnMut(u64, crate::axi::Handshakes, (&[u8; BEAT], &Media)),
    ) -> std::result::Result<Option<(u32, u8)>, Fault> {
        self.edge += 1;
        let (before, now) = (self.clock.edge(self.edge - 1), self.clock.edge(self.edge));
        self.control.drive(&mut self.model);
        self.master.drive(&mut self.model);
        self.ddr.drive(&mut self.model, &self.media, now);
        let middle = before.0 + (now.0 - before.0) / 2;
        self.model.clock(false, middle)?;
        let (mut count, done) = self.control.sample(&self.model);
        let seen = self.master.sample(&self.model);
        if self.answers.iter().any(|&valid| self.model.is(valid)) {
            self.answered = self.edge;
        }
        count += seen.count() + self.ddr.sample(&self.model, &mut self.media, now);
        see(self.edge, seen, (&self.master.rdata, &self.media));
        self.model.clock(true, now.0)?;
        self.quiet = if count == 0 { self.quiet + 1 } else { 0 };
        if self.quiet > HANG_CYCLES {
            return Err(Fault::Hang(format!(
                "  no handshake for {HANG_CYCLES} cycles\n  m_axi: {}\n",
                self.ddr.describe()
            )));
        }
        Ok(done)
    }

    fn access(&mut self, access: AxilAccess) -> std::result::Result<u32, Fault> {
        self.control.start(&mut self.model, access);
        loop {
            if let Some((data, code)) = self.tick(|_, _, _| {})? {
                if code != resp::OKAY {
                    return Err(Fault::Assertion(format!(
                        "{access:?} is answered with response {code}"
                    )));
                }
                return Ok(data);
            }
        }
    }
}

/// Issues transactions and matches what comes back.
struct Generator {
    traffic: Traffic,
    random: Random,
    span: u64, // bytes a burst is aligned to
    places: u64,
    issued: usize,
    finished: usize,
    next_issue: u64,
    samples: Vec<TransactionSample>,
    addresses: Vec<u64>,
    awaiting_aw: VecDeque<usize>,
    awaiting_w: VecDeque<(usize, u32)>,
    awaiting_ar: VecDeque<usize>,
    reads: BTreeMap<u16, VecDeque<usize>>,
    writes: BTreeMap<u16, VecDeque<usize>>,
}

impl Generator {
    fn new(traffic: &Traffic, bytes: u64) -> Generator {
        let traffic = Traffic {
            beats: traffic.beats.clamp(1, 256),
            size: traffic.size.min(6),
            outstanding: traffic.outstanding.max(1),
            ids: traffic.ids.clamp(1, 256),
            ..*traffic
        };
        let span = (u64::from(traffic.beats) << traffic.size)
            .next_power_of_two()
            .max(BEAT as u64);
        Generator {
            random: Random::new(traffic.seed),
            span,
            places: (bytes / span).max(1),
            issued: 0,
            finished: 0,
            next_issue: 0,
            samples: Vec::with_capacity(traffic.count),
            addresses: Vec::with_capacity(traffic.count),
            awaiting_aw: VecDeque::new(),
            awaiting_w: VecDeque::new(),
            awaiting_ar: VecDeque::new(),
            reads: BTreeMap::new(),
            writes: BTreeMap::new(),
            traffic,
        }
    }

    fn done(&self) -> bool {
        self.finished == self.traffic.count
    }

    fn issue(&mut self, master: &mut AxiMaster, edge: u64) {
        let t = self.traffic;
        if self.issued == t.count
            || self.issued - self.finished >= t.outstanding
            || edge < self.next_issue
        {
            return;
        }
        if t.gap > 0 {
            self.next_issue = edge + t.gap + self.random.below(t.gap + 1);
        }
        let write = match t.mix {
            TrafficMix::Reads => false,
            TrafficMix::Writes => true,
            TrafficMix::Both => self.random.below(2) == 1,
        };
        let index = self.issued;
        let place = match t.addresses {
            AddressPattern::Random => self.random.below(self.places),
            AddressPattern::Sequential => index as u64 % self.places,
        };
        let ax = Ax {
            size: t.size,
            ..Ax::incr((index % t.ids as usize) as u16, place * self.span, t.beats)
        };
        if write {
            master.queue_aw(ax);
            self.awaiting_aw.push_back(index);
            self.awaiting_w.push_back((index, t.beats));
            for beat in 0..t.beats {
                let addr = ax.beat_addr(beat);
                let lane = (addr % BEAT as u64) as u32;
                let strb = if t.size == 6 {
                    u64::MAX
                } else {
                    ((1u64 << (1u32 << t.size)) - 1) << lane
                };
                master.queue_w(WBeat {
                    data: content(addr),
                    strb,
                    last: beat + 1 == t.beats,
                });
            }
        } else {
            master.queue_ar(ax);
            self.awaiting_ar.push_back(index);
        }
        self.addresses.push(ax.addr);
        self.samples.push(TransactionSample {
            write,
            id: ax.id,
            start: 0,
            data: 0,
            latencies: Vec::new(),
            memory: 0,
        });
        self.issued += 1;
    }

    fn see(
        &mut self,
        edge: u64,
        seen: crate::axi::Handshakes,
        (rdata, media): (&[u8; BEAT], &Media),
        error: &mut Option<String>,
    ) {
        if seen.ar {
            if let Some(index) = self.awaiting_ar.pop_front() {
                self.samples[index].start = edge;
                self.samples[index].data = edge;
                self.reads
                    .entry(self.samples[index].id)
                    .or_default()
                    .push_back(index);
            }
        }
        if seen.aw {
            if let Some(index) = self.awaiting_aw.pop_front() {
                self.samples[index].start = edge;
                self.writes
                    .entry(self.samples[index].id)
                    .or_default()
                    .push_back(index);
            }
        }
        if seen.w {
            if let Some((index, left)) = self.awaiting_w.front_mut() {
                *left -= 1;
                if *left == 0 {
                    self.samples[*index].data = edge;
                    self.awaiting_w.pop_front();
                }
            }
        }
        if let Some((id, code)) = seen.b {
            match self.writes.get_mut(&id).and_then(VecDeque::pop_front) {
                Some(index) if code == resp::OKAY => {
                    let start = self.samples[index].start;
                    self.samples[index].latencies.push((edge - start) as u32);
                    self.finished += 1;
                }
                other => {
                    error.get_or_insert(format!(
                        "write response {code} with ID {id} for {other:?} at edge {edge}"
                    ));
                }
            }
        }
        if let Some((id, code, last)) = seen.r {
            self.read_beat(edge, id, code, last, rdata, media, error);
        }
    }

    #[allow(clippy::too_many_arguments)] // the signals of a beat
    fn read_beat(
        &mut self,
        edge: u64,
        id: u16,
        code: u8,
        last: bool,
        rdata: &[u8; BEAT],
        media: &Media,
        error: &mut Option<String>,
    ) {
        let queue = self.reads.get_mut(&id);
        let Some(index) = queue.as_ref().and_then(|queue| queue.front().copied()) else {
            error.get_or_insert(format!(
                "read data with ID {id} that nobody asked for at edge {edge}"
            ));
            return;
        };
        let sample = &mut self.samples[index];
        let beat = sample.latencies.len() as u32;
        sample.latencies.push((edge - sample.start) as u32);
        let ax = Ax {
            size: self.traffic.size,
            ..Ax::incr(id, self.addresses[index], self.traffic.beats)
        };
        let ended = beat + 1 == ax.beats();
        if code != resp::OKAY || last != ended {
            error.get_or_insert(format!(
                "beat {beat} with ID {id}: response {code}, last {last} at edge {edge}"
            ));
        }
        // All writes of a run write to a line what its address says, so their order does not
        // matter. A line is zero until it is written.
        let addr = ax.beat_addr(beat);
        let (from, bytes) = ((addr % BEAT as u64) as usize, 1usize << ax.size);
        let got = &rdata[from..from + bytes];
        let written = content(addr);
        let known = got == &written[from..from + bytes] || got.iter().all(|&byte| byte == 0);
        if !known
            || (self.traffic.mix == TrafficMix::Reads
                && media
                    .read_line(addr)
                    .is_none_or(|line| got != &line[from..from + bytes]))
        {
            error.get_or_insert(format!("wrong data at {addr:#x} at edge {edge}"));
        }
        if ended {
            if let Some(queue) = queue {
                queue.pop_front();
            }
            self.finished += 1;
        }
    }
}

/// What the generator writes to a line.
fn content(addr: u64) -> [u8; BEAT] {
    let mut random = Random::new(addr / BEAT as u64 + 1);
    let mut line = [0; BEAT];
    for word in line.chunks_mut(8) {
        word.copy_from_slice(&random.next().to_le_bytes());
    }
    line
}

/// Sets `targets`, sends `traffic`, and returns every transaction with the emulator's own counters
/// of it (reads, writes). `progress` is as in [`DelayBench::run`].
pub fn delay_bench(
    bench: &mut DelayBench,
    targets: &TargetLatencies,
    traffic: &Traffic,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> std::result::Result<(Vec<TransactionSample>, [DelayBenchCounters; 2]), Fault> {
    bench.set(targets)?;
    bench.clear()?;
    let samples = bench.run(traffic, progress)?;
    let counters = bench.counters()?;
    Ok((samples, counters))
}
