// SPDX-License-Identifier: Apache-2.0

//! A DDR channel at a master port of a model: data from the media, timing from a memory model.

use sim::memctrl::{AddressMap, MemoryTiming, PortQueues};
use sim::{Media, Time};

use super::block_buffer::{BlockBuffer, BLOCK};
use super::{resp, AxiPorts, FillPorts, BEAT};
use crate::bitstream::VerilatedModel;

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

/// Bytes of the media that are zeroed at a time if all of them are to be zeroed: no larger than a
/// granule.
const ZERO_CHUNK: u64 = 4096;

/// A request to zero blocks.
#[derive(Default)]
struct FillRequest {
    next: u64,  // address of the next line
    end: u64,   // address after the last one
    clear: u64, // all below is zero on the media
    error: bool,
}

/// The AXI4 slave: ports and data of a [`PortQueues`]. Where the design has the ports for it, it
/// also zeroes blocks on request, one line a clock; writes over AXI and these lines take turns.
///
/// Data is written when the last beat that a burst has for a block is accepted ([`BlockBuffer`]),
/// and read when it is returned. B comes once the controller has all data, reads of one ID return
/// in order and beats of different reads are not interleaved. Addresses beyond the media get
/// DECERR, accesses that fail there SLVERR.
pub struct DdrSlave {
    ports: AxiPorts,
    map: AddressMap,
    queues: PortQueues,
    r_driven: bool, // its next beat is on the port
    r_valid: bool,  // as the port has it
    b_driven: bool,
    aw_ready: bool,
    w_ready: bool,
    ar_ready: bool,
    fill_ports: Option<FillPorts>,
    fill: Option<FillRequest>,
    fill_ready: bool,
    fill_done: bool, // as the port has it
    fill_turn: bool, // the next line is the fill's, if a write wants to go as well
    block_buffer: BlockBuffer,
    stats: DdrStats,
}

impl DdrSlave {
    /// A channel on these ports.
    pub fn new(ports: AxiPorts, map: AddressMap, timing: Box<dyn MemoryTiming + Send>) -> DdrSlave {
        DdrSlave {
            ports,
            map,
            queues: PortQueues::new(timing),
            r_driven: false,
            r_valid: false,
            b_driven: false,
            aw_ready: false,
            w_ready: false,
            ar_ready: false,
            fill_ports: None,
            fill: None,
            fill_ready: false,
            fill_done: false,
            fill_turn: false,
            block_buffer: BlockBuffer::new(),
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
    pub fn drive(&mut self, model: &mut VerilatedModel, media: &Media, now: Time) {
        self.queues.advance(now);
        self.queues.issue(now);
        self.drive_r(model, media);
        let response = self.queues.response();
        let b_valid = response.is_some();
        set_if_changed(model, self.ports.b.valid, &mut self.b_driven, b_valid);
        if let Some((id, resp)) = response {
            self.ports.b.set(model, id, resp);
        }
        let aw_ready = self.queues.can_accept_write();
        let yields = self.fill_turn && self.lines_left();
        let w_ready = self.queues.can_accept_data() && !yields;
        let ar_ready = self.queues.can_accept_read();
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

    /// True while blocks are being zeroed.
    #[inline]
    pub fn filling(&self) -> bool {
        self.fill.is_some()
    }

    /// All lines of a fill are safe, and the design has not seen that yet.
    #[inline]
    fn fill_ended(&self) -> bool {
        self.fill.as_ref().is_some_and(|f| f.next >= f.end) && self.queues.fill_lines() == 0
    }

    #[inline]
    fn lines_left(&self) -> bool {
        self.fill.as_ref().is_some_and(|f| f.next < f.end)
    }

    /// Handles the clock edge at `now` of a design that rests. False: the design has to evaluate
    /// this edge, and nothing has been done but what [`DdrSlave::drive`] will find done.
    #[inline]
    pub fn advance_idle(&mut self, now: Time) -> bool {
        self.queues.advance(now);
        self.quiet()
    }

    /// Zeroes the next line if there is one and the controller has room; returns whether it did.
    #[inline]
    pub fn fill_line(&mut self, media: &mut Media, now: Time) -> bool {
        let Some(fill) = &mut self.fill else {
            return false;
        };
        if fill.next >= fill.end || !self.queues.can_accept_line() {
            return false;
        }
        if fill.next >= fill.clear {
            // At least a block at a time, so that no block is half zero when the process ends.
            let whole_page = fill.next % ZERO_CHUNK == 0 && fill.end - fill.next >= ZERO_CHUNK;
            let bytes = if whole_page { ZERO_CHUNK } else { BLOCK };
            match self.map.media(fill.next) {
                Some(addr) => fill.error |= !media.zero(addr, bytes),
                None => fill.error = true,
            }
            fill.clear = fill.next + bytes;
        }
        self.queues.write_fill_line(now, fill.next);
        fill.next += BEAT as u64;
        self.stats.fill_beats += 1;
        true
    }

    /// Takes a request, or ends the one under way early if the design asks for that.
    fn sample_fill(&mut self, model: &VerilatedModel, ports: FillPorts) -> u64 {
        if self.fill_done {
            self.fill = None; // the design has seen `done`
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
                self.fill = Some(FillRequest {
                    next: addr,
                    end: addr.saturating_add(blocks * BLOCK),
                    clear: addr,
                    ..FillRequest::default()
                });
                1
            }
            None => 0,
        }
    }

    /// Performs the handshakes of the rising edge at `now`; returns their number.
    #[inline]
    pub fn sample(&mut self, model: &VerilatedModel, media: &mut Media, now: Time) -> u64 {
        let mut count = 0;
        if self.ar_ready && model.is(self.ports.ar.valid) {
            count += 1;
            let ax = self.ports.ar.get(model);
            self.stats.reads += 1;
            self.stats.read_beats += u64::from(ax.beats());
            self.queues.accept_read(ax);
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
            self.queues.accept_write(self.ports.aw.get(model));
            self.stats.writes += 1;
        }
        if self.b_driven && model.is(self.ports.b.ready) {
            count += 1;
            self.queues.response_sent();
        }
        if self.r_driven && model.is(self.ports.r.ready) {
            count += 1;
            self.r_driven = false;
            self.queues.beat_sent();
        }
        count
    }

    /// True when nothing will happen here before [`DdrSlave::next_event`] unless the design does
    /// something.
    #[inline]
    pub fn quiet(&self) -> bool {
        self.queues.quiet()
            && !self.b_driven
            && !self.r_driven
            && !self.fill_done
            && !self.fill_ended()
    }

    /// When data of an outstanding read or the acceptance of a write may arrive.
    pub fn next_event(&self) -> Option<Time> {
        self.queues.next_event()
    }

    /// What is outstanding, for dumps.
    pub fn describe(&self) -> String {
        let mut text = self.queues.describe();
        if let Some(fill) = &self.fill {
            text += &format!(
                "; zeroing: next line {:#x}, end {:#x}, {} lines under way",
                fill.next,
                fill.end,
                self.queues.fill_lines()
            );
        }
        text
    }

    fn accept_beat(&mut self, model: &VerilatedModel, media: &mut Media, now: Time) {
        let Some(local) = self.queues.data_addr() else {
            return;
        };
        let mut code = resp::OKAY;
        match self.map.media(local) {
            Some(addr) => {
                let mut data = [0; BEAT];
                self.ports.w.data(model, &mut data);
                let strb = self.ports.w.strb(model);
                if !self
                    .block_buffer
                    .add_line(media, addr, &data, strb, self.queues.data_ends())
                {
                    code = resp::SLVERR;
                }
            }
            None => code = resp::DECERR,
        }
        self.queues.accept_data(now, code);
        self.stats.write_beats += 1;
    }

    fn drive_r(&mut self, model: &mut VerilatedModel, media: &Media) {
        if self.r_driven {
            return; // a beat is offered and must stay
        }
        let beat = self.queues.next_beat();
        self.r_driven = beat.is_some();
        if let Some((ax, number)) = beat {
            let (data, code) = match self.map.media(ax.beat_addr(number)) {
                Some(addr) => match media.read_line(addr) {
                    Some(line) => (line, resp::OKAY),
                    None => ([0; BEAT], resp::SLVERR),
                },
                None => ([0; BEAT], resp::DECERR),
            };
            self.ports
                .r
                .set(model, ax.id, code, number + 1 == ax.beats(), &data);
        }
        set_if_changed(model, self.ports.r.valid, &mut self.r_valid, self.r_driven);
    }
}

#[inline]
pub(super) fn set_if_changed(
    model: &mut VerilatedModel,
    field: crate::bitstream::Field,
    state: &mut bool,
    value: bool,
) {
    if *state != value {
        *state = value;
        model.set(field, u64::from(value));
    }
}
