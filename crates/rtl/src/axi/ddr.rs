//! A DDR channel behind a master port of a model: data from the media, timing from a memory model.

use std::collections::VecDeque;

use sim::{Media, Time};

use super::{resp, Ax, AxiPorts, FillPorts, BEAT};
use crate::bitstream::Model;
use crate::error::{Error, Result};

/// Timing of a memory that serves 64-byte accesses. It moves no data.
pub trait MemoryTiming {
    /// Whether an access of this direction would be taken now.
    fn ready(&self, write: bool) -> bool;

    /// Takes an access to the 64-byte line at `addr`. Only after [`MemoryTiming::ready`] said so. `token` comes back when
    /// a read has its data or a write is safe in the controller; writes come back in order.
    fn push(&mut self, now: Time, token: u32, addr: u64, write: bool);

    /// Advances to `now` and appends the tokens that have come back by then.
    fn advance(&mut self, now: Time, done: &mut Vec<u32>);

    /// When something may happen next, if anything is in flight. A time not after now means at once.
    fn next_event(&self) -> Option<Time>;
}

/// The DDR4 controller and DRAM of `sim`.
impl MemoryTiming for sim::dram::Channel {
    #[inline]
    fn ready(&self, write: bool) -> bool {
        self.can_accept(write)
    }

    #[inline]
    fn push(&mut self, now: Time, token: u32, addr: u64, write: bool) {
        let request = sim::dram::Request {
            tag: token.into(),
            addr,
            is_write: write,
        };
        let taken = sim::dram::Channel::push(self, now, request);
        debug_assert!(taken);
    }

    #[inline]
    fn advance(&mut self, now: Time, done: &mut Vec<u32>) {
        while let Some(completion) = self.poll(now) {
            done.push(completion.tag as u32);
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        sim::dram::Channel::next_event(self)
    }
}

/// The simplest memory: every access takes the same time.
pub struct FixedLatency {
    latency: Time,
    accesses: VecDeque<(Time, u32)>,
}

impl FixedLatency {
    /// A memory with this latency.
    pub fn new(latency: Time) -> FixedLatency {
        FixedLatency {
            latency,
            accesses: VecDeque::new(),
        }
    }
}

impl MemoryTiming for FixedLatency {
    fn ready(&self, _write: bool) -> bool {
        true
    }

    fn push(&mut self, now: Time, token: u32, _addr: u64, _write: bool) {
        self.accesses.push_back((now + self.latency, token));
    }

    fn advance(&mut self, now: Time, done: &mut Vec<u32>) {
        while let Some(&(time, token)) = self.accesses.front() {
            if time > now {
                break;
            }
            done.push(token);
            self.accesses.pop_front();
        }
    }

    fn next_event(&self) -> Option<Time> {
        self.accesses.front().map(|&(time, _)| time)
    }
}

/// Where a channel's local addresses are on the media: channels take turns every `granule` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressMap {
    channel: u64,
    channels: u64,
    shift: u32,
    bytes: u64, // of the whole media
}

impl AddressMap {
    /// Channel `channel` of `channels`, on media of `bytes`.
    pub fn new(channel: u32, channels: u32, granule: u64, bytes: u64) -> Result<AddressMap> {
        if !granule.is_power_of_two() || granule < 4096 {
            return Err(Error::Config(format!(
                "granule = {granule}: a power of two, at least 4096, is needed"
            )));
        }
        if channels == 0 || channel >= channels {
            return Err(Error::Config(format!(
                "channels = {channels}: at least 1 is needed"
            )));
        }
        Ok(AddressMap {
            channel: u64::from(channel),
            channels: u64::from(channels),
            shift: granule.trailing_zeros(),
            bytes,
        })
    }

    /// Media address of local address `local`, or `None` beyond the media.
    #[inline]
    pub fn media(&self, local: u64) -> Option<u64> {
        let granule = (local >> self.shift)
            .checked_mul(self.channels)?
            .checked_add(self.channel)?;
        if granule > u64::MAX >> self.shift {
            return None;
        }
        let addr = granule << self.shift | local & ((1 << self.shift) - 1);
        (addr < self.bytes).then_some(addr)
    }
}

/// Counts of one channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DdrStats {
    /// Read bursts.
    pub reads: u64,
    /// Beats read.
    pub read_beats: u64,
    /// Write bursts.
    pub writes: u64,
    /// Beats written.
    pub write_beats: u64,
    /// Beats zeroed on request.
    pub fill_beats: u64,
}

/// Reads in progress per channel; also how many the controller's front end takes.
const MAX_READS: usize = 64;
/// Write addresses taken ahead of their data.
const MAX_WRITES: usize = 16;
/// Write responses not taken yet; more stop the writes.
const MAX_RESPONSES: usize = 32;
/// Tokens of writes: beats before the last of a burst, and the last.
const WRITE_BEAT: u32 = u32::MAX;
const WRITE_END: u32 = u32::MAX - 1;
/// Token of a zeroed line; smaller ones are those of reads.
const FILL: u32 = u32::MAX - 2;
/// Bytes of a block.
const BLOCK: u64 = 512;
/// What is zeroed of the media at a time, where all of it is to be: no larger than a granule.
const PAGE: u64 = 4096;

#[derive(Clone, Default)]
struct Read {
    ax: Ax,
    issued: u32,       // beats given to the memory
    arrived: [u64; 4], // bit per beat whose data is there
    sent: u32,         // beats given to the master
}

impl Read {
    fn has(&self, beat: u32) -> bool {
        self.arrived[beat as usize / 64] >> (beat % 64) & 1 != 0
    }
}

/// A request to zero blocks.
#[derive(Default)]
struct Fill {
    next: u64,  // address of the next line
    end: u64,   // address behind the last one
    clear: u64, // all below is zero on the media
    open: u32,  // lines that are on their way to safety
    error: bool,
}

/// The AXI4 slave: the memory controller's front end. Where the design has the ports for it, it also zeroes blocks on request,
/// one line a clock; writes over AXI and these lines take turns.
///
/// Data is written when a beat is accepted and read when it is returned, B comes once the controller has all data, reads of
/// one ID return in order and beats of different reads are not interleaved. Addresses beyond the media get DECERR,
/// accesses that fail there SLVERR.
pub struct DdrSlave {
    ports: AxiPorts,
    map: AddressMap,
    timing: Box<dyn MemoryTiming + Send>,
    reads: Vec<Read>,
    free: Vec<u8>,
    order: VecDeque<u8>, // reads, oldest first
    unissued: VecDeque<u8>,
    arrived: u32,        // beats that can be sent, of all reads
    sending: Option<u8>, // read whose burst is being sent
    r_driven: bool,      // its next beat is on the port
    r_valid: bool,       // as the port has it
    wake: Option<Time>,  // when the memory has to be looked at
    writes: VecDeque<Ax>,
    write_beat: u32,
    write_code: u8,                // of the burst, so far
    accepted: VecDeque<(u16, u8)>, // writes whose data is on its way to safety: ID, code
    responses: VecDeque<(u16, u8)>,
    b_driven: bool,
    aw_ready: bool,
    w_ready: bool,
    ar_ready: bool,
    done: Vec<u32>,
    fill_ports: Option<FillPorts>,
    fill: Option<Fill>,
    fill_ready: bool,
    fill_done: bool, // as the port has it
    fill_turn: bool, // the next line is the fill's, if a write wants to go as well
    stats: DdrStats,
}

impl DdrSlave {
    /// A channel on these ports.
    pub fn new(ports: AxiPorts, map: AddressMap, timing: Box<dyn MemoryTiming + Send>) -> DdrSlave {
        DdrSlave {
            ports,
            map,
            timing,
            reads: vec![Read::default(); MAX_READS],
            free: (0..MAX_READS as u8).rev().collect(),
            order: VecDeque::new(),
            unissued: VecDeque::new(),
            arrived: 0,
            sending: None,
            r_driven: false,
            r_valid: false,
            wake: None,
            writes: VecDeque::new(),
            write_beat: 0,
            write_code: resp::OKAY,
            accepted: VecDeque::new(),
            responses: VecDeque::new(),
            b_driven: false,
            aw_ready: false,
            w_ready: false,
            ar_ready: false,
            done: Vec::new(),
            fill_ports: None,
            fill: None,
            fill_ready: false,
            fill_done: false,
            fill_turn: false,
            stats: DdrStats::default(),
        }
    }

    /// The same with a port for requests to zero blocks.
    pub fn with_fill(mut self, ports: Option<FillPorts>) -> DdrSlave {
        self.fill_ports = ports;
        self
    }

    /// The ports.
    pub fn ports(&self) -> &AxiPorts {
        &self.ports
    }

    /// Counts so far.
    pub fn stats(&self) -> DdrStats {
        self.stats
    }

    /// Sets the inputs for the rising edge at `now`.
    #[inline]
    pub fn drive(&mut self, model: &mut Model, media: &Media, now: Time) {
        self.advance(now);
        if let Some(&slot) = self.unissued.front() {
            if self.timing.ready(false) {
                self.issue(slot, now);
            }
        }
        self.drive_r(model, media);
        let b_valid = !self.responses.is_empty();
        set_if_changed(model, self.ports.b.valid, &mut self.b_driven, b_valid);
        if let Some(&(id, resp)) = self.responses.front() {
            self.ports.b.set(model, id, resp);
        }
        let aw_ready = self.writes.len() < MAX_WRITES;
        let open = self.accepted.len() + self.responses.len();
        let yields = self.fill_turn && self.lines_left();
        let w_ready =
            !self.writes.is_empty() && open < MAX_RESPONSES && self.timing.ready(true) && !yields;
        let ar_ready = !self.free.is_empty();
        set_if_changed(model, self.ports.aw.ready, &mut self.aw_ready, aw_ready);
        set_if_changed(model, self.ports.w.ready, &mut self.w_ready, w_ready);
        set_if_changed(model, self.ports.ar.ready, &mut self.ar_ready, ar_ready);
        if let Some(ports) = self.fill_ports {
            let done = self.fill_ended();
            if done != self.fill_done {
                self.fill_done = done;
                ports.set_done(model, done, self.fill.as_ref().is_some_and(|f| f.error));
            }
            let ready = self.fill.is_none();
            set_if_changed(model, ports.ready, &mut self.fill_ready, ready);
        }
    }

    /// Takes note of what the memory has done by `now`.
    #[inline]
    fn advance(&mut self, now: Time) {
        if self.wake.is_none_or(|time| time > now) {
            return;
        }
        self.timing.advance(now, &mut self.done);
        self.wake = self.timing.next_event();
        for token in self.done.drain(..) {
            match token {
                WRITE_BEAT => {}
                WRITE_END => self.responses.extend(self.accepted.pop_front()),
                FILL => {
                    if let Some(fill) = &mut self.fill {
                        fill.open -= 1;
                    }
                }
                _ => {
                    let read = &mut self.reads[(token >> 8) as usize];
                    read.arrived[token as usize >> 6 & 3] |= 1 << (token & 63);
                    self.arrived += 1;
                }
            }
        }
    }

    /// Blocks are being zeroed.
    #[inline]
    pub fn filling(&self) -> bool {
        self.fill.is_some()
    }

    /// All lines of a fill are safe, which the design is yet to hear.
    #[inline]
    fn fill_ended(&self) -> bool {
        self.fill
            .as_ref()
            .is_some_and(|f| f.next >= f.end && f.open == 0)
    }

    #[inline]
    fn lines_left(&self) -> bool {
        self.fill.as_ref().is_some_and(|f| f.next < f.end)
    }

    /// The clock edge at `now` of a design that rests. False: the design has to see it, and nothing has been done but what
    /// [`DdrSlave::drive`] will find done.
    #[inline]
    pub fn rest(&mut self, now: Time) -> bool {
        self.advance(now);
        self.quiet()
    }

    /// Zeroes the next line, if there is one and room for it; returns whether.
    #[inline]
    pub fn fill_line(&mut self, media: &mut Media, now: Time) -> bool {
        let Some(fill) = &mut self.fill else {
            return false;
        };
        if fill.next >= fill.end || !self.timing.ready(true) {
            return false;
        }
        if fill.next >= fill.clear {
            // Never less than a block at a time, so that none is half zero whenever this ends.
            let whole_page = fill.next % PAGE == 0 && fill.end - fill.next >= PAGE;
            let bytes = if whole_page { PAGE } else { BLOCK };
            match self.map.media(fill.next) {
                Some(addr) => fill.error |= !media.zero(addr, bytes),
                None => fill.error = true,
            }
            fill.clear = fill.next + bytes;
        }
        self.timing.push(now, FILL, fill.next, true);
        self.wake = self.timing.next_event();
        fill.next += BEAT as u64;
        fill.open += 1;
        self.stats.fill_beats += 1;
        true
    }

    /// Takes a request, and ends the one under way early when the design wants that.
    fn sample_fill(&mut self, model: &Model, ports: FillPorts) -> u64 {
        if self.fill_done {
            self.fill = None; // told
        }
        match &mut self.fill {
            Some(fill) => {
                if model.is(ports.stop) {
                    fill.end = fill.end.min(fill.next.next_multiple_of(BLOCK));
                }
                0
            }
            None if self.fill_ready && model.is(ports.valid) => {
                let (addr, blocks) = ports.get(model);
                self.fill = Some(Fill {
                    next: addr,
                    end: addr.saturating_add(blocks * BLOCK),
                    clear: addr,
                    ..Fill::default()
                });
                1
            }
            None => 0,
        }
    }

    /// Sees the handshakes of the rising edge at `now`; returns their number.
    #[inline]
    pub fn sample(&mut self, model: &Model, media: &mut Media, now: Time) -> u64 {
        let mut count = 0;
        if self.ar_ready && model.is(self.ports.ar.valid) {
            count += 1;
            self.accept_read(self.ports.ar.get(model));
        }
        if self.w_ready && model.is(self.ports.w.valid) {
            count += 1;
            self.accept_beat(model, media, now);
            self.fill_turn = true;
        } else if self.fill_line(media, now) {
            count += 1;
            self.fill_turn = false;
        }
        if let Some(ports) = self.fill_ports {
            count += self.sample_fill(model, ports);
        }
        if self.aw_ready && model.is(self.ports.aw.valid) {
            count += 1;
            self.writes.push_back(self.ports.aw.get(model));
            self.stats.writes += 1;
        }
        if self.b_driven && model.is(self.ports.b.ready) {
            count += 1;
            self.responses.pop_front();
        }
        if self.r_driven && model.is(self.ports.r.ready) {
            count += 1;
            self.beat_sent();
        }
        count
    }

    /// True when nothing will happen here before [`DdrSlave::next_event`] unless the design does something.
    #[inline]
    pub fn quiet(&self) -> bool {
        self.arrived == 0
            && self.unissued.is_empty()
            && self.responses.is_empty()
            && !self.b_driven
            && !self.r_driven
            && !self.fill_done
            && !self.fill_ended()
    }

    /// When data of an outstanding read or the acceptance of a write may arrive.
    pub fn next_event(&self) -> Option<Time> {
        // A controller that only tidies up needs no clock of the design.
        self.wake
            .filter(|_| !self.order.is_empty() || !self.accepted.is_empty())
    }

    /// What is outstanding, for dumps.
    pub fn describe(&self) -> String {
        let mut text = format!(
            "{} reads, {} writes awaiting data, {} responses",
            self.order.len(),
            self.writes.len(),
            self.accepted.len() + self.responses.len()
        );
        if let Some(&slot) = self.order.front() {
            let read = &self.reads[slot as usize];
            text += &format!(
                "; oldest read: id {} addr {:#x} beats {} issued {} sent {}",
                read.ax.id,
                read.ax.addr,
                read.ax.beats(),
                read.issued,
                read.sent
            );
        }
        if let Some(fill) = &self.fill {
            text += &format!(
                "; zeroing: next line {:#x}, end {:#x}, {} lines under way",
                fill.next, fill.end, fill.open
            );
        }
        if let Some(ax) = self.writes.front() {
            text += &format!(
                "; oldest write: id {} addr {:#x} beats {} accepted {}",
                ax.id,
                ax.addr,
                ax.beats(),
                self.write_beat
            );
        }
        text
    }

    fn accept_read(&mut self, ax: Ax) {
        let Some(slot) = self.free.pop() else { return };
        self.reads[slot as usize] = Read {
            ax,
            ..Read::default()
        };
        self.order.push_back(slot);
        self.unissued.push_back(slot);
        self.stats.reads += 1;
        self.stats.read_beats += u64::from(ax.beats());
    }

    fn issue(&mut self, slot: u8, now: Time) {
        let read = &mut self.reads[slot as usize];
        let token = u32::from(slot) << 8 | read.issued;
        let local = read.ax.beat_addr(read.issued) & !(BEAT as u64 - 1);
        self.timing.push(now, token, local, false);
        self.wake = self.timing.next_event();
        read.issued += 1;
        if read.issued == read.ax.beats() {
            self.unissued.pop_front();
        }
    }

    fn accept_beat(&mut self, model: &Model, media: &mut Media, now: Time) {
        let ax = self.writes[0];
        let local = ax.beat_addr(self.write_beat) & !(BEAT as u64 - 1);
        let end = self.write_beat == u32::from(ax.len);
        self.timing
            .push(now, if end { WRITE_END } else { WRITE_BEAT }, local, true);
        self.wake = self.timing.next_event();
        match self.map.media(local) {
            Some(addr) => {
                let mut data = [0; BEAT];
                self.ports.w.data(model, &mut data);
                if !media.write_line(addr, &data, self.ports.w.strb(model)) {
                    self.write_code = self.write_code.max(resp::SLVERR);
                }
            }
            None => self.write_code = resp::DECERR,
        }
        self.stats.write_beats += 1;
        self.write_beat += 1;
        if end {
            self.accepted.push_back((ax.id, self.write_code));
            self.writes.pop_front();
            self.write_beat = 0;
            self.write_code = resp::OKAY;
        }
    }

    /// The oldest read of its ID that has its next beat.
    fn pick(&self) -> Option<u8> {
        let mut blocked = [0u64; 4]; // IDs of older reads that have to wait
        for &slot in &self.order {
            let read = &self.reads[slot as usize];
            let (word, bit) = (read.ax.id as usize >> 6 & 3, 1 << (read.ax.id & 63));
            if blocked[word] & bit == 0 {
                if read.has(read.sent) {
                    return Some(slot);
                }
                blocked[word] |= bit;
            }
        }
        None
    }

    fn drive_r(&mut self, model: &mut Model, media: &Media) {
        if self.r_driven {
            return; // a beat is offered and must stay
        }
        let slot = match self.sending {
            _ if self.arrived == 0 => None,
            Some(slot) => {
                Some(slot).filter(|_| self.reads[slot as usize].has(self.reads[slot as usize].sent))
            }
            None => self.pick(),
        };
        self.r_driven = slot.is_some();
        if let Some(slot) = slot {
            self.sending = Some(slot);
            let read = &self.reads[slot as usize];
            let (data, code) = match self.map.media(read.ax.beat_addr(read.sent)) {
                Some(addr) => match media.read_line(addr) {
                    Some(line) => (line, resp::OKAY),
                    None => ([0; BEAT], resp::SLVERR),
                },
                None => ([0; BEAT], resp::DECERR),
            };
            self.ports.r.set(
                model,
                read.ax.id,
                code,
                read.sent + 1 == read.ax.beats(),
                &data,
            );
        }
        set_if_changed(model, self.ports.r.valid, &mut self.r_valid, self.r_driven);
    }

    fn beat_sent(&mut self) {
        self.r_driven = false;
        self.arrived -= 1;
        let Some(slot) = self.sending else { return };
        let read = &mut self.reads[slot as usize];
        read.sent += 1;
        if read.sent == read.ax.beats() {
            self.sending = None;
            self.free.push(slot);
            self.order.retain(|&other| other != slot);
        }
    }
}

#[inline]
pub(super) fn set_if_changed(
    model: &mut Model,
    field: crate::bitstream::Field,
    state: &mut bool,
    value: bool,
) {
    if *state != value {
        *state = value;
        model.set(field, u64::from(value));
    }
}
