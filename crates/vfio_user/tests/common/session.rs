// SPDX-License-Identifier: Apache-2.0

//! Sessions of a client that sends anything, generated from bytes. So random numbers and a
//! coverage-guided fuzzer generate alike. A model of the protocol predicts each answer, and what
//! the device can reach.

use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

use rustix::event::{eventfd, EventfdFlags};
use rustix::net::{sendmsg, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use sim::HostConfig;
use vfio_user::Dilation;

use super::manual_clock::ManualClock;
use super::*;

const PAGE: u64 = 4096;
/// Files of the client, and their initial length.
const FILES: usize = 3;
const FILE_BYTES: u64 = 4 * PAGE;
/// Longest transfer, and most descriptors of a message.
const MAX_TRANSFER: u64 = 1 << 20;
const MAX_MESSAGE: u32 = (1 << 20) + 64;
const MAX_FDS: usize = 16;
const NO_REPLY: u32 = 1 << 4;
/// Prefix of the log line of a connection that the server ends.
const ENDED: &str = "connection ended: ";

/// A file descriptor that is sent with a message.
#[derive(Clone, Copy, Debug)]
pub enum Fd {
    Ram(usize),
    ReadOnly(usize),
    Eventfd,
    Pipe,
    Zero,
    Directory,
}

#[derive(Clone, Debug)]
pub struct ClientMessage {
    pub command: u16,
    pub body: Vec<u8>,
    pub fds: Vec<Fd>,
    pub no_reply: bool,
}

#[derive(Clone, Debug)]
pub enum ClientStep {
    /// Several messages, and then all of their answers.
    Burst(Vec<ClientMessage>),
    /// The device copies between its buffer and the client's memory.
    Dma { write: bool, addr: u64, len: u32 },
    /// An invalid header.
    BadHeader { size: u32, flags: u32 },
    /// The beginning of a message, before the client leaves.
    Cut { msg: ClientMessage, keep: usize },
    /// Changes the length of a file.
    Truncate { file: usize, len: u64 },
    /// Writes to the doorbell page.
    Ring { index: usize, value: u32 },
    /// The client leaves, and the next one connects. That one may omit the version.
    Leave { silent: bool },
}

/// Numbers from bytes. Zeros once the bytes are used up.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn u64(&mut self) -> u64 {
        (0..8).fold(0, |n, _| n << 8 | u64::from(self.byte()))
    }

    fn address(&mut self) -> u64 {
        match self.below(8) {
            0 => self.pick(&[
                0,
                1,
                !0xFFF,
                0xFFFF_FFFF_F000,
                1 << 63,
                u64::MAX,
                0xFEE0_0000,
            ]),
            1 => self.u64(),
            _ => 0x10_0000 + PAGE * self.below(8) as u64,
        }
    }

    fn size(&mut self) -> u64 {
        match self.below(4) {
            0 => self.pick(&[
                0,
                1,
                0x1001,
                1 << 44,
                1 << 63,
                !0xFFF,
                u64::MAX,
                0xFFFF_F000,
            ]),
            _ => PAGE * (1 + self.below(4) as u64),
        }
    }

    fn fd(&mut self) -> Fd {
        let file = self.below(FILES);
        match self.below(12) {
            0 => Fd::ReadOnly(file),
            1 => Fd::Eventfd,
            2 => Fd::Pipe,
            3 => Fd::Zero,
            4 => Fd::Directory,
            _ => Fd::Ram(file),
        }
    }

    fn region(&mut self) -> (u32, u64) {
        let (region, size) = self.pick(&[
            (BAR0, 1u64 << 16),
            (BAR2, 1 << 20),
            (BAR4, 1 << 20),
            (CONFIG, 4096),
            (BAR0 + 1, 0),
            (8, 0),
            (9, 0),
            (u32::MAX, 0),
        ]);
        let near = [
            0, 4, 0x68, 0x69, 0xB3, 0x1000, 0x2000, 0x200C, 0x2038, 0x3000, 0xFF8,
        ];
        let offset = match self.below(8) {
            0 => size.wrapping_sub(self.below(9) as u64),
            1 => self.pick(&[u64::MAX, u64::MAX - 3, 1 << 63, 1 << 32]),
            2 | 3 => u64::from(self.byte()) << 8 | u64::from(self.byte()),
            _ => self.pick(&near),
        };
        (region, offset)
    }

    fn msg(&mut self, longest: usize) -> ClientMessage {
        let mut fds = Vec::new();
        let mut body = Vec::new();
        let command = self.pick(&[
            DMA_MAP,
            DMA_MAP,
            DMA_MAP,
            DMA_UNMAP,
            DMA_UNMAP,
            REGION_READ,
            REGION_READ,
            REGION_WRITE,
            REGION_WRITE,
            REGION_WRITE,
            SET_IRQS,
            SET_IRQS,
            GET_REGION_INFO,
            GET_IRQ_INFO,
            GET_INFO,
            RESET,
            VERSION,
            0,
        ]);
        let command = if command == 0 {
            u16::from(self.byte())
        } else {
            command
        };
        match command {
            DMA_MAP => {
                body.extend(32u32.to_le_bytes());
                let flags = self.pick(&[3u32, 3, 3, 3, 1, 2, 0, 4, 7, u32::MAX]);
                body.extend(flags.to_le_bytes());
                let offset = match self.below(4) {
                    0 => self.pick(&[
                        1u64,
                        8,
                        512,
                        PAGE - 1,
                        PAGE + 64,
                        1 << 63,
                        !0xFFF,
                        u64::MAX,
                        FILE_BYTES,
                    ]),
                    _ => PAGE * self.below(4) as u64,
                };
                body.extend(offset.to_le_bytes());
                body.extend(self.address().to_le_bytes());
                body.extend(self.size().to_le_bytes());
                let many = self.pick(&[1, 1, 1, 1, 1, 0, 2, 17]);
                fds = (0..many).map(|_| self.fd()).collect();
            }
            DMA_UNMAP => {
                body.extend(24u32.to_le_bytes());
                let flags = self.pick(&[0u32, 0, 0, 2, 1, 4, u32::MAX]);
                body.extend(flags.to_le_bytes());
                let all = flags == 2 && !self.one_in(4);
                let (address, size) = if all {
                    (0, 0)
                } else {
                    (self.address(), self.size())
                };
                body.extend(address.to_le_bytes());
                body.extend(size.to_le_bytes());
            }
            REGION_READ | REGION_WRITE => {
                let (region, offset) = self.region();
                let counts = [
                    4u32,
                    1,
                    8,
                    0,
                    100,
                    4096,
                    5000,
                    1 << 20,
                    (1 << 20) + 1,
                    u32::MAX,
                ];
                let count = self.pick(&counts);
                body.extend(offset.to_le_bytes());
                body.extend(region.to_le_bytes());
                body.extend(count.to_le_bytes());
                if command == REGION_WRITE {
                    let len = (count as usize).min(longest);
                    let (first, step) = (self.byte(), self.byte());
                    body.extend((0..len).map(|i| first.wrapping_add(step.wrapping_mul(i as u8))));
                }
            }
            SET_IRQS => {
                let flags = self.pick(&[
                    0x24u32, 0x24, 0x24, 0x21, 0x22, 0x09, 0x11, 0x0A, 0x12, 0, !0,
                ]);
                let index = self.pick(&[2u32, 2, 2, 2, 0, 4, 5, u32::MAX]);
                let start = self.pick(&[0u32, 0, 1, 3, 4, u32::MAX]);
                let count = self.pick(&[1u32, 1, 4, 0, 2, 5, u32::MAX]);
                for word in [20, flags, index, start, count] {
                    body.extend(word.to_le_bytes());
                }
                if flags == 0x24 {
                    let many = match self.below(4) {
                        0 => self.pick(&[0, 1, 2, 17, 40]),
                        _ => count.min(20) as usize,
                    };
                    fds = vec![Fd::Eventfd; many];
                    if self.one_in(6) && many > 0 {
                        fds[0] = self.fd();
                    }
                } else {
                    body.extend((0..self.below(6)).map(|i| i as u8 & 1));
                }
            }
            GET_REGION_INFO | GET_IRQ_INFO | GET_INFO => {
                let room = self.pick(&[64u32, 32, 16, 0, u32::MAX]);
                let index = self.pick(&[0u32, 2, 4, 7, 8, 9, u32::MAX]);
                for word in [room, 0, index, 0, 0, 0, 0, 0] {
                    body.extend(word.to_le_bytes());
                }
            }
            VERSION => body.extend([0, 0, self.below(3) as u8, 0, b'{']),
            _ => body.extend((0..self.below(40)).map(|_| self.byte()).collect::<Vec<_>>()),
        }
        // Invalid messages.
        if self.one_in(4) {
            match self.below(4) {
                0 => body.truncate(self.below(48)),
                1 => body.extend((0..self.below(24)).map(|_| 0xFF)),
                2 if !body.is_empty() => {
                    let at = self.below(body.len().min(48));
                    body[at] ^= 1 << self.below(8);
                }
                _ if body.len() >= 4 => {
                    let at = 4 * self.below(body.len().min(48) / 4);
                    let extreme = self.pick(&[u32::MAX, 0, 1 << 31, 0x7FFF_FFFF, 0xFFFF_F000]);
                    body[at..at + 4].copy_from_slice(&extreme.to_le_bytes());
                }
                _ => {}
            }
        }
        ClientMessage {
            command,
            body,
            fds,
            no_reply: self.one_in(16),
        }
    }

    fn step(&mut self) -> ClientStep {
        match self.below(16) {
            0..8 => ClientStep::Burst(vec![self.msg(MAX_TRANSFER as usize + 1)]),
            8 => ClientStep::Burst((0..2 + self.below(6)).map(|_| self.msg(4096)).collect()),
            9..12 => {
                let inside = self.pick(&[0, 1, 8, 0x800, 0xFF0, 0xFFF]);
                ClientStep::Dma {
                    write: self.one_in(2),
                    addr: self.address().saturating_add(inside),
                    len: self.pick(&[1, 8, 9, 16, 512, 4096]),
                }
            }
            12 => {
                let sizes = [0, 15, MAX_MESSAGE + 1, 1 << 31, u32::MAX, 16, 64];
                let size = self.pick(&sizes);
                let flags = if (16..=MAX_MESSAGE).contains(&size) {
                    1 + self.below(15) as u32
                } else {
                    u32::from(self.byte())
                };
                ClientStep::BadHeader { size, flags }
            }
            13 => ClientStep::Cut {
                msg: self.msg(4096),
                keep: self.below(100),
            },
            14 => match self.below(3) {
                0 => ClientStep::Truncate {
                    file: self.below(FILES),
                    len: PAGE * self.below(3) as u64,
                },
                _ => ClientStep::Ring {
                    index: self.below(256) * 4,
                    value: self.byte().into(),
                },
            },
            _ => ClientStep::Leave {
                silent: self.one_in(4),
            },
        }
    }
}

/// The steps that bytes encode.
pub fn steps(bytes: &[u8]) -> Vec<ClientStep> {
    let mut source = Bytes(bytes);
    let mut steps = Vec::new();
    while !source.0.is_empty() && steps.len() < 64 {
        steps.push(source.step());
    }
    steps
}

struct Map {
    start: u64,
    len: u64,
    read: bool,
    write: bool,
    /// The file, and the offset in it.
    file: Option<(usize, u64)>,
}

impl Map {
    fn last(&self) -> u64 {
        self.start + (self.len - 1)
    }
}

/// The expected answer of a message.
#[derive(Debug)]
enum ExpectedReply {
    Refused,
    /// Success, with any body.
    Done,
    /// Success with this body, as far as the bytes of a region are known.
    Body(Vec<u8>),
    /// No answer: the connection ends.
    HangUp,
}

/// The expected state.
struct ExpectedState {
    negotiated: bool,
    bus_master: bool,
    maps: Vec<Map>,
    bar0: Vec<u8>,
    bar2: Vec<u8>,
    bar4: Vec<u8>,
    /// Lengths and contents. They are unknown once a file was truncated.
    lens: [u64; FILES],
    files: [Option<Vec<u8>>; FILES],
    /// True if the device's buffer holds what `bar4` says.
    buffer: bool,
}

fn word(body: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(body.get(at..at + 4)?.try_into().ok()?))
}

fn long(body: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(body.get(at..at + 8)?.try_into().ok()?))
}

impl ExpectedState {
    fn new(bar2: Vec<u8>) -> ExpectedState {
        let mut model = ExpectedState {
            negotiated: false,
            bus_master: false,
            maps: Vec::new(),
            bar0: Vec::new(),
            bar2,
            bar4: Vec::new(),
            lens: [FILE_BYTES; FILES],
            files: std::array::from_fn(|n| Some(pattern(n))),
            buffer: true,
        };
        model.power_on();
        model
    }

    fn power_on(&mut self) {
        self.bus_master = false;
        self.bar0 = vec![0; 1 << 16];
        (0..4).for_each(|vector| self.bar0[0x200C + 16 * vector] = 1);
        self.bar4 = vec![0; 1 << 20];
        let at = SETUP.offset as usize;
        self.bar4[at..at + 4].copy_from_slice(&SETUP.value.to_le_bytes());
        self.buffer = true;
    }

    fn forget_client(&mut self) {
        self.negotiated = false;
        self.maps.clear();
        self.power_on();
    }

    fn validate(&mut self, msg: &ClientMessage) -> ExpectedReply {
        if msg.fds.len() > MAX_FDS {
            return ExpectedReply::HangUp;
        }
        if msg.command == VERSION {
            let agreed = word(&msg.body, 0).is_some_and(|v| v & 0xFFFF == 0);
            self.negotiated |= agreed;
            return if agreed {
                ExpectedReply::Done
            } else {
                ExpectedReply::Refused
            };
        }
        if !self.negotiated {
            return ExpectedReply::Refused;
        }
        let done = match msg.command {
            DMA_MAP => self.map(msg),
            DMA_UNMAP => self.unmap(&msg.body),
            GET_INFO => {
                let words = [16u32, 3, 9, 5];
                return ExpectedReply::Body(words.iter().flat_map(|w| w.to_le_bytes()).collect());
            }
            GET_REGION_INFO => word(&msg.body, 8).filter(|&n| n < 9).map(drop),
            GET_IRQ_INFO => word(&msg.body, 8).filter(|&n| n < 5).map(drop),
            SET_IRQS => set_irqs(msg),
            REGION_READ => match self.read(&msg.body) {
                Some(body) => return ExpectedReply::Body(body),
                None => None,
            },
            REGION_WRITE => match self.write(&msg.body) {
                Some(()) => return ExpectedReply::Body(msg.body[..16].to_vec()),
                None => None,
            },
            RESET => {
                self.power_on();
                Some(())
            }
            _ => None,
        };
        done.map_or(ExpectedReply::Refused, |()| ExpectedReply::Done)
    }

    fn map(&mut self, msg: &ClientMessage) -> Option<()> {
        let (flags, offset) = (word(&msg.body, 4)?, long(&msg.body, 8)?);
        let (start, len) = (long(&msg.body, 16)?, long(&msg.body, 24)?);
        let (read, write) = (flags & 1 != 0, flags & 2 != 0);
        let last = start.checked_add(len.checked_sub(1)?)?;
        let fits = flags <= 3 && start % PAGE == 0 && len % PAGE == 0 && msg.fds.len() <= 1;
        let free = self.maps.iter().all(|m| m.start > last || m.last() < start);
        if !fits || !free {
            return None;
        }
        let file = match msg.fds.first() {
            Some(&(Fd::Ram(n) | Fd::ReadOnly(n))) => {
                let writable = matches!(msg.fds[0], Fd::Ram(_));
                let inside = offset % PAGE == 0 && offset.checked_add(len)? <= self.lens[n];
                if !inside || write && !writable {
                    return None;
                }
                Some((n, offset))
            }
            Some(_) => return None,
            None => None,
        };
        self.maps.push(Map {
            start,
            len,
            read,
            write,
            file,
        });
        Some(())
    }

    fn unmap(&mut self, body: &[u8]) -> Option<()> {
        let flags = word(body, 4)?;
        let (start, len) = (long(body, 8)?, long(body, 16)?);
        match flags {
            2 if (start, len) == (0, 0) => {
                self.maps.clear();
                Some(())
            }
            0 => {
                let last = start.checked_add(len.checked_sub(1)?)?;
                let touched = |m: &Map| m.start <= last && m.last() >= start;
                let whole = |m: &Map| m.start >= start && m.last() <= last;
                let all_whole = self.maps.iter().all(|m| !touched(m) || whole(m));
                if all_whole {
                    self.maps.retain(|m| !touched(m));
                }
                all_whole.then_some(())
            }
            _ => None,
        }
    }

    fn access(&self, body: &[u8]) -> Option<(u32, usize, usize)> {
        let (offset, region, count) = (long(body, 0)?, word(body, 8)?, word(body, 12)?);
        let size = match region {
            BAR0 => 1 << 16,
            BAR2 | BAR4 => 1 << 20,
            CONFIG => 4096,
            _ => return None,
        };
        let inside = offset.checked_add(count.into())? <= size;
        let fits = inside && u64::from(count) <= MAX_TRANSFER;
        fits.then_some((region, offset as usize, count as usize))
    }

    fn bar(&mut self, region: u32) -> Option<&mut Vec<u8>> {
        match region {
            BAR0 => Some(&mut self.bar0),
            BAR2 => Some(&mut self.bar2),
            BAR4 => Some(&mut self.bar4),
            _ => None,
        }
    }

    fn read(&mut self, body: &[u8]) -> Option<Vec<u8>> {
        let (region, offset, count) = self.access(body)?;
        let mut reply = body[..16].to_vec();
        match self.bar(region) {
            Some(bar) => reply.extend(&bar[offset..offset + count]),
            None => reply.resize(16 + count, 0),
        }
        Some(reply)
    }

    /// True if a byte of a region is known.
    fn known(&self, region: u32, at: usize) -> bool {
        match region {
            // Doorbells are also written through the page.
            BAR0 => !(0x1000..0x2000).contains(&at),
            BAR4 => self.buffer || !(0x1000..0x2000).contains(&at),
            BAR2 => true,
            _ => false,
        }
    }

    fn write(&mut self, body: &[u8]) -> Option<()> {
        let (region, offset, count) = self.access(body)?;
        let data = &body[16..];
        if data.len() != count {
            return None;
        }
        if let Some(bar) = self.bar(region) {
            bar[offset..offset + count].copy_from_slice(data);
            return Some(());
        }
        let byte = |at: usize| {
            (offset..offset + count)
                .contains(&at)
                .then(|| data[at - offset])
        };
        if let Some(command) = byte(4) {
            self.bus_master = command & 4 != 0;
        }
        if byte(0x69).is_some_and(|control| control & 0x80 != 0) {
            self.power_on();
        }
        Some(())
    }

    /// Writes of the fake's command registers, which would be commands.
    fn is_order(&self, msg: &ClientMessage) -> bool {
        let hit = |(region, offset, count): (u32, usize, usize)| {
            region == BAR4 && offset < 0x110 && offset + count > 0x100
        };
        msg.command == REGION_WRITE && self.access(&msg.body).is_some_and(hit)
    }

    fn dma(&mut self, write: bool, addr: u64, len: usize) {
        let Some(last) = addr.checked_add(len as u64 - 1) else {
            return;
        };
        let inside = |m: &&Map| m.start <= addr && last <= m.last();
        let Some(map) = self.maps.iter().find(inside).filter(|_| self.bus_master) else {
            return;
        };
        let Some((file, from)) = map.file else {
            return;
        };
        if !(if write { map.write } else { map.read }) {
            return;
        }
        let at = (from + addr - map.start) as usize;
        let buffer = fake::BUFFER as usize;
        match (&mut self.files[file], write) {
            (Some(content), true) if self.buffer => {
                content[at..at + len].copy_from_slice(&self.bar4[buffer..buffer + len]);
            }
            (Some(content), false) => {
                self.bar4[buffer..buffer + len].copy_from_slice(&content[at..at + len]);
            }
            (content, true) => *content = None,
            (None, false) => self.buffer = false,
        }
    }
}

fn set_irqs(msg: &ClientMessage) -> Option<()> {
    let (flags, index) = (word(&msg.body, 4)?, word(&msg.body, 8)?);
    let (start, count) = (word(&msg.body, 12)?, word(&msg.body, 16)?);
    let one = |bits: u32| (flags & bits).is_power_of_two();
    if index >= 5 || flags & !0x3F != 0 || !one(7) || !one(0x38) {
        return None;
    }
    if (flags, count) == (0x21, 0) {
        return Some(());
    }
    let vectors = if index == 2 { 4 } else { 0 };
    if count == 0 || u64::from(start) + u64::from(count) > vectors {
        return None;
    }
    if flags & 4 == 0 {
        return Some(());
    }
    let fds = &msg.fds;
    let eventfds = fds.iter().all(|fd| matches!(fd, Fd::Eventfd));
    let fitting = fds.is_empty() || fds.len() == count as usize && eventfds;
    (flags == 0x24 && fitting).then_some(())
}

fn pattern(file: usize) -> Vec<u8> {
    let byte = |at: u64| (at * 7 + at / 256 + file as u64 * 50 + 1) as u8;
    (0..FILE_BYTES).map(byte).collect()
}

/// Clients one after another, and the expected state.
struct Session {
    socket: PathBuf,
    client: Client,
    model: ExpectedState,
    files: Vec<OwnedFd>,
    /// Connections that the server had to end.
    broken: usize,
    /// True if the server has answered this client. Otherwise it may be dropped unseen.
    met: bool,
    /// Connections of clients that were not answered.
    unmet: usize,
}

impl Session {
    fn new(socket: PathBuf, bar2: Vec<u8>) -> Session {
        let files: Vec<OwnedFd> = (0..FILES).map(|_| memory(FILE_BYTES)).collect();
        for (n, file) in files.iter().enumerate() {
            poke(file, 0, &pattern(n));
        }
        let mut session = Session {
            client: Client::new(&socket),
            socket,
            model: ExpectedState::new(bar2),
            files,
            broken: 0,
            met: true,
            unmet: 0,
        };
        session.model.negotiated = true;
        session
    }

    /// The client leaves, and the next one connects.
    fn leave(&mut self, silent: bool) {
        self.model.forget_client();
        self.model.negotiated = !silent;
        self.met = !silent;
        // The former one leaves first.
        self.client.stream.shutdown(std::net::Shutdown::Both).ok();
        self.client = match silent {
            true => Client::silent(&self.socket),
            false => Client::new(&self.socket),
        };
    }

    fn step(&mut self, step: &ClientStep) {
        match step {
            ClientStep::Burst(messages) => self.burst(messages),
            ClientStep::Dma { write, addr, len } if self.model.negotiated => {
                self.dma(*write, *addr, *len);
            }
            ClientStep::Ring { index, value } if self.model.negotiated => self.ring(*index, *value),
            ClientStep::Dma { .. } | ClientStep::Ring { .. } => {}
            ClientStep::BadHeader { size, flags } => {
                let mut header = self.client.message(REGION_READ, &[]);
                header[4..8].copy_from_slice(&size.to_le_bytes());
                header[8..12].copy_from_slice(&flags.to_le_bytes());
                self.client.stream.write_all(&header).unwrap();
                assert!(self.client.answer().is_none(), "the server hangs up");
                self.broken += 1;
                self.leave(false);
            }
            ClientStep::Cut { msg, keep } => {
                let bytes = self.client.message(msg.command, &msg.body);
                let keep = keep % bytes.len();
                self.send(&bytes[..keep], &msg.fds);
                match self.met {
                    true => self.broken += usize::from(keep > 0),
                    false => self.unmet += 1,
                }
                self.leave(false);
            }
            ClientStep::Truncate { file, len } => {
                ftruncate(&self.files[*file], *len).unwrap();
                self.model.lens[*file] = *len;
                self.model.files[*file] = None;
            }
            ClientStep::Leave { silent } => self.leave(*silent),
        }
    }

    fn open(&self, fd: Fd) -> OwnedFd {
        let path = match fd {
            Fd::Ram(n) => return self.files[n].try_clone().unwrap(),
            Fd::Eventfd => return eventfd(0, EventfdFlags::NONBLOCK).unwrap(),
            Fd::Pipe => return rustix::pipe::pipe().unwrap().0,
            Fd::ReadOnly(n) => format!("/proc/self/fd/{}", self.files[n].as_raw_fd()),
            Fd::Zero => "/dev/zero".into(),
            Fd::Directory => "/".into(),
        };
        std::fs::File::open(path).unwrap().into()
    }

    fn send(&mut self, bytes: &[u8], fds: &[Fd]) {
        let open: Vec<OwnedFd> = fds.iter().map(|&fd| self.open(fd)).collect();
        let borrowed: Vec<BorrowedFd<'_>> = open.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(&borrowed)));
        }
        let flags = SendFlags::NOSIGNAL;
        let part = [IoSlice::new(bytes)];
        let sent = sendmsg(&self.client.stream, &part, &mut ancillary, flags).unwrap();
        self.client.stream.write_all(&bytes[sent..]).unwrap();
    }

    fn burst(&mut self, messages: &[ClientMessage]) {
        let mut expected = Vec::new();
        for msg in messages
            .iter()
            .filter(|msg| msg.body.len() <= MAX_MESSAGE as usize - 16)
        {
            if self.model.is_order(msg) {
                continue;
            }
            let expectation = self.model.validate(msg);
            let known: Vec<bool> = match (&expectation, msg.command) {
                (ExpectedReply::Body(body), REGION_READ) => {
                    let (region, at) = (word(&msg.body, 8).unwrap(), word(&msg.body, 0).unwrap());
                    let data =
                        (0..body.len() - 16).map(|n| self.model.known(region, at as usize + n));
                    std::iter::repeat_n(true, 16).chain(data).collect()
                }
                (ExpectedReply::Body(body), _) => vec![true; body.len()],
                _ => Vec::new(),
            };
            let mut bytes = self.client.message(msg.command, &msg.body);
            let last = matches!(expectation, ExpectedReply::HangUp);
            if msg.no_reply && !last {
                bytes[8..12].copy_from_slice(&NO_REPLY.to_le_bytes());
            } else {
                let id = u16::from_le_bytes([bytes[0], bytes[1]]);
                expected.push((id, msg, expectation, known));
            }
            self.send(&bytes, &msg.fds);
            if last {
                break;
            }
        }
        for (id, msg, expectation, known) in expected {
            if let ExpectedReply::HangUp = expectation {
                assert!(self.client.answer().is_none(), "the server hangs up");
                self.broken += 1;
                self.leave(false);
                return;
            }
            let Some((answer, whose)) = self.client.answer() else {
                panic!("hung up on {msg:?}");
            };
            assert_eq!(whose, (id, msg.command));
            self.met = true;
            let refused = answer.errno != 0;
            assert_eq!(
                refused,
                matches!(expectation, ExpectedReply::Refused),
                "{:?}",
                msg.command
            );
            if refused {
                assert!(answer.body.is_empty() && answer.fds.is_empty());
            }
            if let ExpectedReply::Body(body) = expectation {
                assert_eq!(answer.body.len(), body.len());
                let same = |n: usize| !known[n] || answer.body[n] == body[n];
                if let Some(at) = (0..body.len()).find(|&n| !same(n)) {
                    panic!("byte {at} is {}, not {}", answer.body[at], body[at]);
                }
            }
            let mapped = msg.command == GET_REGION_INFO && !refused;
            assert!(answer.fds.len() <= usize::from(mapped));
            if mapped {
                assert!(matches!(answer.body.len(), 32 | 64));
            }
        }
    }

    /// Compares a range of BAR4.
    fn compare_registers(&mut self, offset: u64, count: u32) {
        self.burst(&[ClientMessage {
            command: REGION_READ,
            body: Client::access(BAR4, offset, count),
            fds: Vec::new(),
            no_reply: false,
        }]);
    }

    fn dma(&mut self, write: bool, addr: u64, len: u32) {
        let order = if write { fake::WRITE } else { fake::READ };
        for (offset, value) in [
            (fake::ADDRESS, addr as u32),
            (fake::ADDRESS + 4, (addr >> 32) as u32),
            (fake::LENGTH, len),
            (fake::COMMAND, order),
        ] {
            let at = offset as usize;
            self.model.bar4[at..at + 4].copy_from_slice(&value.to_le_bytes());
            self.client.write32(BAR4, offset, value);
        }
        // A read completes after all earlier commands. The data that the device reads need the time
        // of two of them, if it has a link.
        self.compare_registers(fake::COMMAND, 4);
        self.compare_registers(fake::COMMAND, 4);
        self.model.dma(write, addr, len as usize);
        if write {
            self.compare_files();
        } else {
            self.compare_registers(fake::BUFFER, 4096);
        }
    }

    /// The client's memory has changed only where the device was commanded to write.
    fn compare_files(&self) {
        for (n, (file, content)) in self.files.iter().zip(&self.model.files).enumerate() {
            let Some(content) = content else { continue };
            let found = peek(file, 0, FILE_BYTES as usize);
            if let Some(at) = (0..found.len()).find(|&at| found[at] != content[at]) {
                panic!("file {n}, byte {at:#x}: {} not {}", found[at], content[at]);
            }
        }
    }

    fn ring(&mut self, index: usize, value: u32) {
        let words = [64u32, 0, BAR0, 0, 0, 0, 0, 0];
        let body: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let info = self.client.ask(GET_REGION_INFO, &body, &[]);
        let (at, value) = (0x1000 + index as u64, value.to_le_bytes());
        match info.fds.first() {
            Some(page) => poke(page, at, &value),
            // Paced devices have no page.
            None => self.client.try_write(BAR0, at, &value).unwrap(),
        }
    }
}

/// Messages of threads that have panicked.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A served fake that sessions run against, one after the other.
pub struct SessionRunner {
    dir: Dir,
    server: Server,
    log: LogLines,
    bar2: Vec<u8>,
    fds: usize,
}

/// File descriptors of this process.
fn open_fds() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

impl SessionRunner {
    /// Of a device that is simulated as fast as possible, or paced.
    pub fn new(paced: bool) -> SessionRunner {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                let thread = std::thread::current();
                // Names of the server's threads.
                if matches!(
                    thread.name(),
                    Some("device" | "pacer" | "acceptor" | "connection" | "signals")
                ) {
                    PANICS.lock().unwrap().push(info.to_string());
                }
                before(info);
            }));
        });
        let dir = Dir::new();
        let (server, log) = match paced {
            false => {
                let (server, _, log) = serve_fakes_logged(&dir, 1);
                (server, log)
            }
            true => {
                let log = LogLines::default();
                let (served, _) = fake_device(&dir, 0, &log);
                let (host, clock) = (HostConfig::default(), Arc::new(ManualClock::running()));
                let server = Server::start_paced(vec![served], &host, Dilation::NONE, clock);
                (server.unwrap(), log)
            }
        };
        let mut bench = SessionRunner {
            dir,
            server,
            log,
            bar2: vec![0; 1 << 20],
            fds: 0,
        };
        bench.probe();
        bench.fds = bench.probe();
        bench
    }

    /// A well-behaved client finds a fresh device. Returns the number of open descriptors
    /// meanwhile.
    fn probe(&mut self) -> usize {
        let mut client = Client::new(&self.dir.socket(0));
        assert_eq!(client.read32(BAR4, SETUP.offset), SETUP.value);
        assert_eq!(client.read32(BAR4, fake::LENGTH), 0, "a fresh device");
        open_fds()
    }

    /// Runs a session. Panics at the first deviation.
    pub fn run(&mut self, steps: &[ClientStep]) {
        let reported = self.log.times(ENDED);
        let mut session = Session::new(self.dir.socket(0), std::mem::take(&mut self.bar2));
        for step in steps {
            session.step(step);
            assert_eq!(PANICS.lock().unwrap()[..], [] as [String; 0]);
        }
        session.compare_files();
        let (broken, unmet) = (session.broken, session.unmet);
        self.bar2 = std::mem::take(&mut session.model.bar2);
        drop(session);
        let fds = self.probe();
        assert_eq!(fds, self.fds, "descriptors that stayed open");
        let reported = self.log.times(ENDED) - reported;
        let expected = broken..=broken + unmet;
        assert!(
            expected.contains(&reported),
            "each connection that is ended has its reason: {reported} of {expected:?}"
        );
        assert_eq!(PANICS.lock().unwrap()[..], [] as [String; 0]);
    }

    /// Ends the server, within a time limit.
    pub fn end(self) {
        self.server.stop();
        assert_eq!(PANICS.lock().unwrap()[..], [] as [String; 0]);
    }
}
