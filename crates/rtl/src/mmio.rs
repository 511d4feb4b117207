// SPDX-License-Identifier: Apache-2.0

//! From the BARs to the device's slave ports.

use sim::{Bar, HostPort, Mmio, Time, TraceEvent, Tracer};
use spec::bar4::PAGES;

use crate::axi::{
    burst, resp, Ax, AxiMaster, AxiPorts, AxilAccess, AxilMaster, AxilPorts, WBeat, BEAT,
};
use crate::bitstream::VerilatedModel;
use crate::error::Result;

/// BAR windows on the AXI4-Lite port: (base, size).
const BAR0: (u64, u64) = (0, 0x1_0000);
const BAR4: (u64, u64) = (0x10_0000, 0x10_0000);
/// Where the port of the PM window has the command pages (`nearside_pkg::PageBase`).
const PAGE_BASE: u64 = 1 << 63;
/// Write beats that may wait in the bridge; further ones stay on the link.
const MAX_BEATS: usize = 64;
/// Highest number of transaction IDs used.
const MAX_IDS: u32 = 64;

/// An access through AXI4-Lite, word by word, low addresses first. A write is in this state until
/// its last word has been offered.
struct LiteAccess {
    addr: u64, // of the next word
    end: u64,
    data: Vec<u8>, // to write (whole words), or read so far
    strobes: Vec<u8>,
    read: Option<(u32, usize, usize)>, // tag, bytes to skip in the first word, bytes wanted
    failed: bool,                      // a word of the read
}

/// A read of the PM window or of a command page.
struct PmWindowRead {
    tag: u32,
    /// Address of the next byte that comes, and of the end of the range that the host reads.
    at: u64,
    end: u64,
    /// Data that came and was not sent yet.
    data: Vec<u8>,
    failed: bool,
}

/// The bridge from the link to AXI4-Lite (BAR0, BAR4) and AXI4 (BAR2, command pages of BAR4).
///
/// Accesses are taken in order. A write starts after the writes before it on the other port are
/// done. A read starts after all writes before it are done. Reads do not hold up later accesses to
/// the PM window. Read data of the PM window goes to the link as it comes, in completions of up to
/// `chunk` bytes.
pub(crate) struct MmioBridge {
    lite: AxilMaster,
    pm: AxiMaster,
    held: Option<Mmio>,
    lite_access: Option<LiteAccess>,
    ids: u32,
    write_id: u32,
    pm_writes: u32, // without their response yet
    pm_reads: Vec<Option<PmWindowRead>>,
    pm_reading: usize,
    /// Bytes of the largest completion.
    chunk: u64,
    /// Write errors without a report: posted writes have no answer.
    pub(crate) lost_writes: u64,
    /// Gets what arrives at BAR0.
    pub(crate) tracer: Option<Tracer>,
}

impl MmioBridge {
    pub(crate) fn new(model: &VerilatedModel, chunk: u64) -> Result<MmioBridge> {
        let pm = AxiPorts::find(model, "s_axi_pm_")?;
        let ids = pm.ar.ids().min(MAX_IDS);
        Ok(MmioBridge {
            lite: AxilMaster::new(AxilPorts::find(model, "s_axil_")?),
            pm: AxiMaster::new(pm),
            held: None,
            lite_access: None,
            ids,
            write_id: 0,
            pm_writes: 0,
            pm_reads: (0..ids).map(|_| None).collect(),
            pm_reading: 0,
            chunk,
            lost_writes: 0,
            tracer: None,
        })
    }

    pub(crate) fn lite(&self) -> &AxilMaster {
        &self.lite
    }

    pub(crate) fn pm(&self) -> &AxiMaster {
        &self.pm
    }

    /// Deasserts every valid and ready: the bridge is without power.
    pub(crate) fn deassert(&self, model: &mut VerilatedModel) {
        self.lite.ports().deassert_master(model);
        self.pm.ports().deassert_master(model);
    }

    /// Takes what has arrived, and sets the inputs for the rising edge at `now`.
    #[inline]
    pub(crate) fn drive(&mut self, model: &mut VerilatedModel, host: &mut dyn HostPort, now: Time) {
        if self.held.is_none() {
            self.held = host.mmio(now);
            if let (Some(access), Some(tracer)) = (&self.held, &self.tracer) {
                record_arrival(tracer, access, now);
            }
        }
        self.lite.drive(model);
        if let Some(access) = self.held.take() {
            self.held = self.start_access(access, host, now);
        }
        self.issue_next_word(model);
        self.pm.drive(model);
    }

    /// Performs the handshakes of the rising edge at `now`; returns their number.
    #[inline]
    pub(crate) fn sample(
        &mut self,
        model: &VerilatedModel,
        host: &mut dyn HostPort,
        now: Time,
    ) -> u64 {
        let (mut count, done) = self.lite.sample(model);
        if let Some((data, code)) = done {
            self.word_done(data, code, host, now);
        }
        let seen = self.pm.sample(model);
        count += seen.count();
        if let Some((_, code)) = seen.b {
            self.pm_writes -= 1;
            self.lost_writes += u64::from(code != resp::OKAY);
        }
        if let Some((id, code, last)) = seen.r {
            self.pm_data(id, code, last, host, now);
        }
        count
    }

    /// True when nothing is under way.
    #[inline]
    pub(crate) fn quiet(&self, model: &VerilatedModel) -> bool {
        self.held.is_none()
            && self.lite_done()
            && self.pm_writes == 0
            && self.pm_reading == 0
            && self.pm.quiet(model)
    }

    /// What is outstanding, for dumps.
    pub(crate) fn describe(&self) -> String {
        let lite = match &self.lite_access {
            Some(lite_access) if lite_access.read.is_some() => {
                format!("reading at {:#x}", lite_access.addr)
            }
            Some(lite_access) => format!("writing at {:#x}", lite_access.addr),
            None if self.lite.idle() => "nothing".to_string(),
            None => "writes without response".to_string(),
        };
        format!(
            "s_axil: {lite}; s_axi_pm: {} writes, {} reads; {} waiting",
            self.pm_writes,
            self.pm_reading,
            if self.held.is_some() {
                "an access"
            } else {
                "nothing"
            }
        )
    }

    /// Starts an access, or returns it if it has to wait.
    fn start_access(&mut self, access: Mmio, host: &mut dyn HostPort, now: Time) -> Option<Mmio> {
        let (bar, pm) = match &access {
            Mmio::Write { bar, offset, data } => (*bar, pm_addr(*bar, *offset, data.len() as u64)),
            Mmio::Read {
                bar, offset, len, ..
            } => (*bar, pm_addr(*bar, *offset, u64::from(*len))),
        };
        match (&access, pm) {
            (Mmio::Write { data, .. }, Some(addr)) => {
                if !self.lite_done() || self.pm.queued().1 >= MAX_BEATS {
                    return Some(access);
                }
                self.pm_write(addr, data);
            }
            (Mmio::Read { len, tag, .. }, Some(addr)) => {
                let reading = self
                    .lite_access
                    .as_ref()
                    .is_some_and(|lite_access| lite_access.read.is_some());
                let writing = !reading && !self.lite_done();
                let free = self.pm_reads.iter().position(Option::is_none);
                match free {
                    Some(id) if !writing && self.pm_writes == 0 => {
                        self.pm_read(id, addr, *len, *tag)
                    }
                    _ => return Some(access),
                }
            }
            (Mmio::Write { offset, data, .. }, None) => {
                if self.lite_access.is_some() || self.pm_writes != 0 {
                    return Some(access);
                }
                match lite_addr(bar, *offset, data.len() as u64) {
                    Some(addr) => self.lite_access = Some(lite_write(addr, data)),
                    None => self.lost_writes += 1,
                }
            }
            (
                Mmio::Read {
                    offset, len, tag, ..
                },
                None,
            ) => {
                if !self.lite_done() || self.pm_writes != 0 {
                    return Some(access);
                }
                match lite_addr(bar, *offset, u64::from(*len)) {
                    Some(addr) => self.lite_access = Some(lite_read(addr, *len, *tag)),
                    None => host.mmio_data(now, *tag, None),
                }
            }
        }
        None
    }

    /// True when nothing is under way on the AXI4-Lite port.
    fn lite_done(&self) -> bool {
        self.lite_access.is_none() && self.lite.idle()
    }

    fn issue_next_word(&mut self, model: &mut VerilatedModel) {
        let Some(lite_access) = &mut self.lite_access else {
            return;
        };
        let addr = lite_access.addr as u32;
        let access = if lite_access.read.is_some() {
            AxilAccess::Read { addr }
        } else {
            let at = lite_access.data.len() - (lite_access.end - lite_access.addr) as usize;
            let word = [
                lite_access.data[at],
                lite_access.data[at + 1],
                lite_access.data[at + 2],
                lite_access.data[at + 3],
            ];
            AxilAccess::Write {
                addr,
                data: u32::from_le_bytes(word),
                strb: lite_access.strobes[at / 4],
            }
        };
        if !self.lite.can_start(&access) {
            return;
        }
        self.lite.start(model, access);
        if lite_access.read.is_none() {
            lite_access.addr += 4;
            if lite_access.addr == lite_access.end {
                self.lite_access = None;
            }
        }
    }

    /// A word has been answered. It belongs to the read if there is one, since a read begins after
    /// all writes are done.
    fn word_done(&mut self, data: u32, code: u8, host: &mut dyn HostPort, now: Time) {
        let failed = code != resp::OKAY;
        let Some((lite_access, (tag, skip, len))) = self
            .lite_access
            .as_mut()
            .and_then(|lite_access| lite_access.read.map(|read| (lite_access, read)))
        else {
            self.lost_writes += u64::from(failed);
            return;
        };
        lite_access.addr += 4;
        lite_access.failed |= failed;
        lite_access.data.extend_from_slice(&data.to_le_bytes());
        if lite_access.addr < lite_access.end {
            return;
        }
        let data = (!lite_access.failed).then(|| lite_access.data[skip..skip + len].to_vec());
        self.lite_access = None;
        host.mmio_data(now, tag, data);
    }

    fn pm_write(&mut self, offset: u64, data: &[u8]) {
        let skip = (offset % BEAT as u64) as usize;
        let beats = (skip + data.len()).div_ceil(BEAT);
        self.pm.queue_aw(Ax::incr(
            self.write_id as u16,
            offset - skip as u64,
            beats as u32,
        ));
        self.write_id = (self.write_id + 1) % self.ids;
        self.pm_writes += 1;
        let mut rest = data;
        for beat in 0..beats {
            let from = if beat == 0 { skip } else { 0 };
            let (now, later) = rest.split_at(rest.len().min(BEAT - from));
            let mut lanes = [0; BEAT];
            lanes[from..from + now.len()].copy_from_slice(now);
            let strb = u64::MAX >> (BEAT - now.len()) << from;
            self.pm.queue_w(WBeat {
                data: lanes,
                strb,
                last: beat + 1 == beats,
            });
            rest = later;
        }
    }

    fn pm_read(&mut self, id: usize, offset: u64, len: u32, tag: u32) {
        let skip = (offset % BEAT as u64) as usize;
        let beats = (skip + len as usize).div_ceil(BEAT);
        let ax = Ax::incr(id as u16, offset - skip as u64, beats as u32);
        debug_assert_eq!(ax.burst, burst::INCR);
        self.pm.queue_ar(ax);
        self.pm_reading += 1;
        self.pm_reads[id] = Some(PmWindowRead {
            tag,
            at: offset,
            end: offset + u64::from(len),
            data: Vec::new(),
            failed: false,
        });
    }

    fn pm_data(&mut self, id: u16, code: u8, last: bool, host: &mut dyn HostPort, now: Time) {
        let Some(slot) = self.pm_reads.get_mut(id as usize) else {
            return;
        };
        let Some(read) = slot else { return };
        let from = (read.at % BEAT as u64) as usize;
        let wanted = (read.end - read.at).min((BEAT - from) as u64) as usize;
        read.data
            .extend_from_slice(&self.pm.rdata[from..from + wanted]);
        read.at += wanted as u64;
        // A completion that reports an error is the last one of its read.
        read.failed |= code != resp::OKAY;
        if last {
            let whole = !read.failed && read.at == read.end;
            let data = whole.then(|| std::mem::take(&mut read.data));
            host.mmio_data(now, read.tag, data);
            *slot = None;
            self.pm_reading -= 1;
        } else if !read.failed && read.at % self.chunk == 0 {
            host.mmio_part(now, read.tag, std::mem::take(&mut read.data));
        }
    }
}

fn record_arrival(tracer: &Tracer, access: &Mmio, now: Time) {
    if let Mmio::Write {
        bar: Bar::Nvme,
        offset,
        data,
    } = access
    {
        if let Ok(word) = <[u8; 4]>::try_from(&data[..]) {
            let (offset, value) = (*offset, u32::from_le_bytes(word));
            tracer.record(now, &TraceEvent::Arrived { offset, value });
        }
    }
}

/// Address on the port of the PM window, if the access is for that one.
fn pm_addr(bar: Bar, offset: u64, len: u64) -> Option<u64> {
    match bar {
        Bar::Pm => Some(offset),
        Bar::Control if PAGES.contains(&offset) && offset + len <= PAGES.end => {
            Some(PAGE_BASE + (offset - PAGES.start))
        }
        _ => None,
    }
}

/// Address on the AXI4-Lite port, or `None` when the access is not within the BAR.
fn lite_addr(bar: Bar, offset: u64, len: u64) -> Option<u64> {
    let (base, size) = match bar {
        Bar::Nvme => BAR0,
        Bar::Control => BAR4,
        Bar::Pm => return None,
    };
    (len > 0 && offset.checked_add(len)? <= size).then_some(base + offset)
}

fn lite_write(addr: u64, bytes: &[u8]) -> LiteAccess {
    let first = addr & !3;
    let skip = (addr - first) as usize;
    let words = (skip + bytes.len()).div_ceil(4);
    let mut data = vec![0; words * 4];
    data[skip..skip + bytes.len()].copy_from_slice(bytes);
    let mut strobes = vec![0; words];
    for byte in skip..skip + bytes.len() {
        strobes[byte / 4] |= 1 << (byte % 4);
    }
    let end = first + words as u64 * 4;
    LiteAccess {
        addr: first,
        end,
        data,
        strobes,
        read: None,
        failed: false,
    }
}

fn lite_read(addr: u64, len: u32, tag: u32) -> LiteAccess {
    let first = addr & !3;
    let skip = (addr - first) as usize;
    let words = (skip + len as usize).div_ceil(4);
    let end = first + words as u64 * 4;
    let read = Some((tag, skip, len as usize));
    LiteAccess {
        addr: first,
        end,
        data: Vec::new(),
        strobes: Vec::new(),
        read,
        failed: false,
    }
}
