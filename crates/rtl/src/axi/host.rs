// SPDX-License-Identifier: Apache-2.0

//! The host at the device's DMA port: AXI4 to the link and back.

use std::collections::VecDeque;

use sim::{HostPort, ReadData, Time};

use super::ddr::set_if_changed;
use super::{burst, resp, Ax, AxiPorts, BEAT};
use crate::bitstream::VerilatedModel;

const PAGE: u64 = 4096;
/// Write addresses taken ahead of their data.
const MAX_WRITES: usize = 16;
/// Chunks of write data that may wait for the link.
const MAX_CHUNKS: usize = 8;
/// Write responses not taken yet; more than these stop the writes.
const MAX_RESPONSES: usize = 16;
/// Interval of the checks for lost requests.
const LOST_CHECK_INTERVAL: Time = Time::ms(1);
/// The longest time between the first and the last byte of an answer.
const MAX_ANSWER_TIME: Time = Time::us(100);

#[derive(Default)]
struct HostRead {
    ax: Ax,
    issued: Time,    // when the link has taken it
    buffer: Vec<u8>, // whole beats
    filled: usize,   // bytes of the buffer up to where data has arrived
    failed: bool,
    answered: bool, // the link has nothing more for this tag
    sent: u32,      // beats given to the master
}

impl HostRead {
    fn has_beat(&self) -> bool {
        // A failed read keeps its tag until the link is done with it.
        (self.failed && self.answered) || self.filled >= (self.sent as usize + 1) * BEAT
    }

    fn bytes(&self) -> u32 {
        self.ax.beats() * BEAT as u32 - (self.ax.addr % BEAT as u64) as u32
    }
}

/// Bytes on their way to the link.
struct WriteChunk {
    addr: u64,
    data: Vec<u8>,
    response: Option<u16>, // ID of the burst that ends with this chunk
}

/// The AXI4 slave in the place of the PCIe bridge.
///
/// Writes go to the link in order, in chunks of up to `chunk` bytes as their data comes in. B comes
/// when the link has accepted the last chunk of a burst. Reads with one ID return in order; beats
/// of different reads are not interleaved. A read that the host fails returns SLVERR.
pub struct HostSlave {
    ports: AxiPorts,
    chunk: u64,
    link_timeout: Time,   // a request without an answer for this long is lost
    reads: Vec<HostRead>, // by tag
    free: Vec<u32>,
    order: VecDeque<u32>, // tags, oldest first
    unissued: VecDeque<u32>,
    waiting: u32,               // reads that the link has taken and not answered in full
    refused: [Option<Time>; 2], // since when the link has taken none: reads, writes
    next_lost_check: Time,      // when to look for what is lost
    sending: Option<u32>,
    may_have_beat: bool, // there may be a beat to send: data came, or a burst ended
    r_driven: bool,
    r_valid: bool,
    writes: VecDeque<Ax>,
    write_beat: u32,
    gathered: Vec<u8>,
    gathered_at: u64,
    chunks: VecDeque<WriteChunk>,
    spare: Vec<Vec<u8>>,
    responses: VecDeque<u16>,
    b_driven: bool,
    aw_ready: bool,
    w_ready: bool,
    ar_ready: bool,
    /// Beats read and written.
    pub beats: [u64; 2],
    /// The first violation of the port's rules.
    pub breach: Option<String>,
}

impl HostSlave {
    /// A host on these ports with `tags` reads outstanding. `chunk` is a power of two, at most
    /// 4096, such as the link's maximum payload. A request without an answer for `link_timeout` is
    /// lost.
    pub fn new(ports: AxiPorts, tags: u32, chunk: u64, link_timeout: Time) -> HostSlave {
        HostSlave {
            ports,
            chunk,
            link_timeout,
            reads: (0..tags).map(|_| HostRead::default()).collect(),
            free: (0..tags).rev().collect(),
            order: VecDeque::new(),
            unissued: VecDeque::new(),
            waiting: 0,
            refused: [None; 2],
            next_lost_check: Time::ZERO,
            sending: None,
            may_have_beat: false,
            r_driven: false,
            r_valid: false,
            writes: VecDeque::new(),
            write_beat: 0,
            gathered: Vec::new(),
            gathered_at: 0,
            chunks: VecDeque::new(),
            spare: Vec::new(),
            responses: VecDeque::new(),
            b_driven: false,
            aw_ready: false,
            w_ready: false,
            ar_ready: false,
            beats: [0; 2],
            breach: None,
        }
    }

    /// The ports.
    pub fn ports(&self) -> &AxiPorts {
        &self.ports
    }

    /// Exchanges with the link, and sets the inputs for the rising edge at `now`.
    #[inline]
    pub fn drive(&mut self, model: &mut VerilatedModel, host: &mut dyn HostPort, now: Time) {
        while self.waiting > 0 {
            match host.read_data(now) {
                Some(piece) => self.accept_read_data(piece),
                None => break,
            }
        }
        while let Some(&tag) = self.unissued.front() {
            let read = &mut self.reads[tag as usize];
            if !host.read(now, tag, read.ax.addr, read.bytes()) {
                self.refused[0].get_or_insert(now);
                break;
            }
            self.refused[0] = None;
            read.issued = now;
            self.unissued.pop_front();
            self.waiting += 1;
        }
        while let Some(piece) = self.chunks.front() {
            if !piece.data.is_empty() && !host.write(now, piece.addr, &piece.data) {
                self.refused[1].get_or_insert(now);
                break;
            }
            self.refused[1] = None;
            if let Some(mut piece) = self.chunks.pop_front() {
                self.responses.extend(piece.response);
                piece.data.clear();
                self.spare.push(piece.data);
            }
        }
        self.drive_r(model);
        let b_valid = !self.responses.is_empty();
        set_if_changed(model, self.ports.b.valid, &mut self.b_driven, b_valid);
        if let Some(&id) = self.responses.front() {
            self.ports.b.set(model, id, resp::OKAY);
        }
        let aw_ready = self.writes.len() < MAX_WRITES;
        let w_ready = !self.writes.is_empty()
            && self.chunks.len() < MAX_CHUNKS
            && self.responses.len() < MAX_RESPONSES;
        let ar_ready = !self.free.is_empty();
        set_if_changed(model, self.ports.aw.ready, &mut self.aw_ready, aw_ready);
        set_if_changed(model, self.ports.w.ready, &mut self.w_ready, w_ready);
        set_if_changed(model, self.ports.ar.ready, &mut self.ar_ready, ar_ready);
    }

    /// Performs the handshakes of the coming rising edge; returns their number.
    #[inline]
    pub fn sample(&mut self, model: &VerilatedModel) -> u64 {
        let mut count = 0;
        if self.ar_ready && model.is(self.ports.ar.valid) {
            count += 1;
            self.accept_read(self.ports.ar.get(model));
        }
        if self.w_ready && model.is(self.ports.w.valid) {
            count += 1;
            self.accept_beat(model);
        }
        if self.aw_ready && model.is(self.ports.aw.valid) {
            count += 1;
            let ax = self.ports.aw.get(model);
            self.check_rules(&ax, "write");
            self.writes.push_back(ax);
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

    /// True when only the link or the design can make something happen here.
    #[inline]
    pub fn quiet(&self) -> bool {
        self.unissued.is_empty()
            && self.chunks.is_empty()
            && self.responses.is_empty()
            && !self.b_driven
            && !self.r_driven
            && !self.r_valid
            && !self.may_have_beat
    }

    /// True while the link has to answer a read, or to accept a write or read.
    #[inline]
    pub fn waits_for_link(&self) -> bool {
        self.waiting > 0 || !self.unissued.is_empty() || !self.chunks.is_empty()
    }

    /// From this time on the design may count the cycles without an answer of the link, to give it
    /// up. No cycle is skipped then.
    pub fn timeout_count_start(&self) -> Option<Time> {
        if self.waiting == 0 {
            return None;
        }
        let open = self.order.iter().map(|&tag| &self.reads[tag as usize]);
        let mut taken = open.filter(|read| !read.answered && read.issued != Time::ZERO);
        taken.next().map(|read| read.issued + MAX_ANSWER_TIME)
    }

    /// Describes the request that the link has lost, if any; at most a millisecond late.
    #[inline]
    pub fn lost_request(&mut self, now: Time) -> Option<String> {
        if now < self.next_lost_check {
            return None;
        }
        self.next_lost_check = now + LOST_CHECK_INTERVAL;
        let since = now.saturating_sub(self.link_timeout);
        let mut refused = self.refused.iter().flatten();
        if let Some(time) = refused.find(|&&time| time < since) {
            return Some(format!("the link has taken nothing since {time}"));
        }
        // Reads are issued in order, so the oldest without an answer comes first.
        let mut open = self.order.iter().map(|&tag| &self.reads[tag as usize]);
        let oldest = open.find(|read| !read.answered)?;
        let issued = oldest.issued != Time::ZERO;
        (issued && oldest.issued < since).then(|| {
            format!(
                "the read of {} bytes at {:#x} that the link has taken at {} has no answer",
                oldest.bytes(),
                oldest.ax.addr,
                oldest.issued
            )
        })
    }

    /// What is outstanding, for dumps.
    pub fn describe(&self) -> String {
        let mut text = format!(
            "{} reads ({} with the link, {} not accepted by it), {} writes awaiting data, {} \
                chunks not accepted by \
             the link, {} responses",
            self.order.len(),
            self.waiting,
            self.unissued.len(),
            self.writes.len(),
            self.chunks.len(),
            self.responses.len()
        );
        if let Some(&tag) = self.order.front() {
            let read = &self.reads[tag as usize];
            text += &format!(
                "; oldest read: id {} addr {:#x} beats {} sent {}",
                read.ax.id,
                read.ax.addr,
                read.ax.beats(),
                read.sent
            );
        }
        text
    }

    fn check_rules(&mut self, ax: &Ax, what: &str) {
        let bytes = u64::from(ax.beats()) * BEAT as u64 - ax.addr % BEAT as u64;
        if ax.burst != burst::INCR
            || ax.size != 6
            || ax.addr % PAGE + bytes > PAGE
            || ax.addr % 4 != 0
        {
            self.breach.get_or_insert(format!(
                "m_axi_host: {what} of {} beats of {} bytes at {:#x}, burst type {}: not an INCR \
                    burst of 64-byte \
                 beats within a 4 KiB page",
                ax.beats(),
                1 << ax.size,
                ax.addr,
                ax.burst
            ));
        }
    }

    fn accept_read(&mut self, ax: Ax) {
        self.check_rules(&ax, "read");
        let Some(tag) = self.free.pop() else { return };
        let read = &mut self.reads[tag as usize];
        read.ax = ax;
        read.issued = Time::ZERO;
        read.buffer.clear();
        read.buffer.resize(ax.beats() as usize * BEAT, 0);
        read.filled = (ax.addr % BEAT as u64) as usize;
        read.failed = false;
        read.answered = false;
        read.sent = 0;
        self.order.push_back(tag);
        self.unissued.push_back(tag);
        self.beats[0] += u64::from(ax.beats());
    }

    fn accept_read_data(&mut self, piece: ReadData) {
        let read = &mut self.reads[piece.tag as usize];
        self.may_have_beat = true;
        match piece.data {
            Some(_) if read.failed => {}
            Some(data) => {
                let end = (read.filled + data.len()).min(read.buffer.len());
                read.buffer[read.filled..end].copy_from_slice(&data[..end - read.filled]);
                read.filled = end;
            }
            None => read.failed = true,
        }
        if piece.last {
            self.waiting -= 1;
            read.answered = true;
            // A chunk that is missing at the end is an error of the link, and reported as one.
            read.failed |= read.filled < read.buffer.len();
        }
    }

    fn accept_beat(&mut self, model: &VerilatedModel) {
        let ax = self.writes[0];
        let at = ax.beat_addr(self.write_beat) & !(BEAT as u64 - 1);
        let mut data = [0; BEAT];
        self.ports.w.data(model, &mut data);
        let mut strb = self.ports.w.strb(model);
        while strb != 0 {
            // One run of enabled bytes.
            let from = strb.trailing_zeros();
            let run = (!(strb >> from)).trailing_zeros();
            let addr = at + u64::from(from);
            if addr != self.gathered_end() || addr % self.chunk == 0 {
                self.queue_chunk(None);
                self.gathered_at = addr;
            }
            self.gathered
                .extend_from_slice(&data[from as usize..(from + run) as usize]);
            strb &= !(u64::MAX >> (64 - run) << from);
        }
        self.beats[1] += 1;
        self.write_beat += 1;
        if self.write_beat == ax.beats() {
            if !self.ports.w.last(model) {
                self.breach.get_or_insert(format!(
                    "m_axi_host: WLAST is missing in the write to {:#x}",
                    ax.addr
                ));
            }
            self.queue_chunk(Some(ax.id));
            self.writes.pop_front();
            self.write_beat = 0;
        } else if self.gathered_end() % self.chunk == 0 {
            self.queue_chunk(None);
        }
    }

    /// The address after the gathered bytes; 0 after the last address of all.
    fn gathered_end(&self) -> u64 {
        self.gathered_at.wrapping_add(self.gathered.len() as u64)
    }

    fn queue_chunk(&mut self, response: Option<u16>) {
        if self.gathered.is_empty() && response.is_none() {
            return;
        }
        let empty = self.spare.pop().unwrap_or_default();
        let data = std::mem::replace(&mut self.gathered, empty);
        self.chunks.push_back(WriteChunk {
            addr: self.gathered_at,
            data,
            response,
        });
    }

    /// The oldest read of its ID whose next beat is there.
    fn oldest_ready(&self) -> Option<u32> {
        let mut blocked = [0u64; 4];
        for &tag in &self.order {
            let read = &self.reads[tag as usize];
            let (word, bit) = (read.ax.id as usize >> 6 & 3, 1 << (read.ax.id & 63));
            if blocked[word] & bit == 0 {
                if read.has_beat() {
                    return Some(tag);
                }
                blocked[word] |= bit;
            }
        }
        None
    }

    fn drive_r(&mut self, model: &mut VerilatedModel) {
        if self.r_driven {
            return; // a beat is offered and must stay
        }
        let tag = match self.sending {
            _ if !self.may_have_beat => None,
            Some(tag) => Some(tag).filter(|&tag| self.reads[tag as usize].has_beat()),
            None => self.oldest_ready(),
        };
        self.r_driven = tag.is_some();
        self.may_have_beat = self.r_driven;
        if let Some(tag) = tag {
            self.sending = Some(tag);
            let read = &self.reads[tag as usize];
            let at = read.sent as usize * BEAT;
            let mut data = [0; BEAT];
            let code = if read.filled >= at + BEAT {
                resp::OKAY
            } else {
                resp::SLVERR
            };
            if code == resp::OKAY {
                data.copy_from_slice(&read.buffer[at..at + BEAT]);
            }
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
        let Some(tag) = self.sending else { return };
        let read = &mut self.reads[tag as usize];
        read.sent += 1;
        if read.sent == read.ax.beats() {
            self.sending = None;
            self.free.push(tag);
            self.order.retain(|&other| other != tag);
        }
    }
}
