// SPDX-License-Identifier: Apache-2.0

//! Shared by the tests: a client that sends exact messages, and a fake device.
#![allow(dead_code)]

pub mod emulator;
pub mod machine;
pub mod manual_clock;
pub mod session;

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{ftruncate, memfd_create, MemfdFlags};
use rustix::net::{
    recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use sim::{Bar, Counter, Device, Fault, HostPort, Mmio, Time};
use tempfile::TempDir;
use vfio_user::{Function, RegisterWrite, ServedDevice, Server};

pub const VERSION: u16 = 1;
pub const DMA_MAP: u16 = 2;
pub const DMA_UNMAP: u16 = 3;
pub const GET_INFO: u16 = 4;
pub const GET_REGION_INFO: u16 = 5;
pub const GET_IRQ_INFO: u16 = 7;
pub const SET_IRQS: u16 = 8;
pub const REGION_READ: u16 = 9;
pub const REGION_WRITE: u16 = 10;
pub const RESET: u16 = 13;

pub const BAR0: u32 = 0;
pub const BAR2: u32 = 2;
pub const BAR4: u32 = 4;
pub const CONFIG: u32 = 7;

/// Limit for events that a test waits for.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A temporary directory of a test, removed at its end.
pub struct Dir(TempDir);

impl Dir {
    pub fn new() -> Dir {
        Dir(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn socket(&self, n: usize) -> PathBuf {
        self.path().join(format!("{n}.sock"))
    }
}

/// Waits until `done` is true. Panics if that takes too long.
pub fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < TEST_TIMEOUT, "{what}: in vain");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// A file of zeros in memory.
pub fn memory(len: u64) -> OwnedFd {
    let fd = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&fd, len).unwrap();
    fd
}

pub fn peek(fd: &OwnedFd, at: u64, len: usize) -> Vec<u8> {
    let mut data = vec![0; len];
    assert_eq!(rustix::io::pread(fd, &mut data[..], at).unwrap(), len);
    data
}

pub fn poke(fd: &OwnedFd, at: u64, data: &[u8]) {
    assert_eq!(rustix::io::pwrite(fd, data, at).unwrap(), data.len());
}

pub struct Answer {
    pub errno: u32,
    pub body: Vec<u8>,
    pub fds: Vec<OwnedFd>,
}

impl Answer {
    pub fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.body[at..at + 4].try_into().unwrap())
    }
}

/// A client that checks nothing.
pub struct Client {
    pub stream: UnixStream,
    next: u16,
}

impl Client {
    /// Connects, and agrees on the version.
    pub fn new(path: &Path) -> Client {
        let mut client = Client::silent(path);
        let mut body = vec![0, 0, 1, 0];
        body.extend(b"{\"capabilities\":{\"max_msg_fds\":8}}\0");
        assert_eq!(client.ask(VERSION, &body, &[]).errno, 0);
        client
    }

    /// Connects only.
    pub fn silent(path: &Path) -> Client {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TEST_TIMEOUT)).unwrap();
        Client { stream, next: 1 }
    }

    pub fn message(&mut self, command: u16, body: &[u8]) -> Vec<u8> {
        self.next = self.next.wrapping_add(1);
        let mut bytes = Vec::new();
        bytes.extend(self.next.to_le_bytes());
        bytes.extend(command.to_le_bytes());
        bytes.extend((16 + body.len() as u32).to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(body);
        bytes
    }

    /// Sends a message and waits for its answer.
    pub fn ask(&mut self, command: u16, body: &[u8], fds: &[BorrowedFd<'_>]) -> Answer {
        let bytes = self.message(command, body);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(fds)));
        }
        let sent = sendmsg(
            &self.stream,
            &[IoSlice::new(&bytes)],
            &mut ancillary,
            SendFlags::empty(),
        )
        .unwrap();
        self.stream.write_all(&bytes[sent..]).unwrap();
        let answer = self.answer().expect("an answer");
        assert_eq!(answer.1, (self.next, command));
        answer.0
    }

    /// The next answer, with its id and command; `None` when the server has closed the connection.
    pub fn answer(&mut self) -> Option<(Answer, (u16, u16))> {
        let mut header = [0; 16];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut part = [std::io::IoSliceMut::new(&mut header)];
        let flags = RecvFlags::WAITALL;
        match recvmsg(&self.stream, &mut part, &mut ancillary, flags) {
            Ok(r) if r.bytes == 16 => {}
            Ok(_) | Err(rustix::io::Errno::CONNRESET) => return None,
            Err(error) => panic!("{error}"),
        }
        let mut fds = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(more) = message {
                fds.extend(more);
            }
        }
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        let mut body = vec![0; word(4) as usize - 16];
        self.stream.read_exact(&mut body).unwrap();
        let (flags, errno) = (word(8), word(12));
        assert_eq!(flags, if errno == 0 { 1 } else { 0x21 }, "reply flags");
        let answer = Answer { errno, body, fds };
        Some((answer, (word(0) as u16, (word(0) >> 16) as u16)))
    }

    pub fn map(&mut self, address: u64, size: u64, file: Option<(&OwnedFd, u64)>) -> u32 {
        let mut body = Vec::new();
        body.extend(32u32.to_le_bytes());
        body.extend(3u32.to_le_bytes());
        body.extend(file.map_or(0, |f| f.1).to_le_bytes());
        body.extend(address.to_le_bytes());
        body.extend(size.to_le_bytes());
        let fds: Vec<BorrowedFd<'_>> = file.iter().map(|f| f.0.as_fd()).collect();
        self.ask(DMA_MAP, &body, &fds).errno
    }

    pub fn unmap(&mut self, address: u64, size: u64) -> u32 {
        let mut body = Vec::new();
        body.extend(24u32.to_le_bytes());
        body.extend(0u32.to_le_bytes());
        body.extend(address.to_le_bytes());
        body.extend(size.to_le_bytes());
        self.ask(DMA_UNMAP, &body, &[]).errno
    }

    /// The body of a region access.
    pub fn access(region: u32, offset: u64, count: u32) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend(offset.to_le_bytes());
        body.extend(region.to_le_bytes());
        body.extend(count.to_le_bytes());
        body
    }

    pub fn try_read(&mut self, region: u32, offset: u64, count: u32) -> Result<Vec<u8>, u32> {
        let answer = self.ask(REGION_READ, &Client::access(region, offset, count), &[]);
        match answer.errno {
            0 => Ok(answer.body[16..].to_vec()),
            errno => Err(errno),
        }
    }

    pub fn try_write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<(), u32> {
        let mut body = Client::access(region, offset, data.len() as u32);
        body.extend(data);
        match self.ask(REGION_WRITE, &body, &[]).errno {
            0 => Ok(()),
            errno => Err(errno),
        }
    }

    pub fn read32(&mut self, region: u32, offset: u64) -> u32 {
        let data = self.try_read(region, offset, 4).unwrap();
        u32::from_le_bytes(data.try_into().unwrap())
    }

    pub fn write32(&mut self, region: u32, offset: u64, value: u32) {
        self.try_write(region, offset, &value.to_le_bytes())
            .unwrap();
    }

    pub fn bus_master(&mut self, on: bool) {
        self.write32(CONFIG, 4, if on { 6 } else { 2 });
    }

    pub fn set_irqs(
        &mut self,
        flags: u32,
        index: u32,
        start: u32,
        count: u32,
        fds: &[BorrowedFd<'_>],
    ) -> u32 {
        let words = [20, flags, index, start, count];
        let body: Vec<u8> = words.iter().flat_map(|w: &u32| w.to_le_bytes()).collect();
        self.ask(SET_IRQS, &body, fds).errno
    }
}

/// Registers of [`Fake`] in BAR4.
pub mod fake {
    pub const ADDRESS: u64 = 0x100;
    pub const LENGTH: u64 = 0x108;
    pub const COMMAND: u64 = 0x10C;
    /// Copies host memory to the device's buffer, which is at BAR4 offset 0x1000.
    pub const READ: u32 = 1;
    /// Copies the buffer to host memory.
    pub const WRITE: u32 = 2;
    /// Sends the interrupt vector in LENGTH.
    pub const INTERRUPT: u32 = 3;
    /// Fails an assertion.
    pub const FAIL: u32 = 4;
    /// Writes and reads without end.
    pub const STORM: u32 = 5;
    /// Fails an assertion after some time, while it is idle.
    pub const FAIL_AT_REST: u32 = 6;
    /// Sends the interrupt vector in LENGTH without end.
    pub const RING: u32 = 7;
    pub const BUFFER: u64 = 0x1000;
}

/// What a fake device records for the tests.
#[derive(Default, Debug, Clone)]
pub struct FakeRecord {
    /// Writes to the doorbell page: offset, value.
    pub doorbells: Vec<(u64, u32)>,
    pub msix: (bool, bool),
    pub power_ups: usize,
    pub failed_reads: u64,
    pub storms: u64,
}

/// A device with memory for registers, and commands that access its host's memory.
pub struct Fake {
    now: Time,
    bars: [Vec<u8>; 3],
    powered: bool,
    storm: bool,
    ring: bool,
    reading: bool,
    doomed: Option<Time>,
    pub seen: Arc<Mutex<FakeRecord>>,
}

impl Fake {
    pub fn new() -> Fake {
        Fake {
            now: Time::ZERO,
            bars: [vec![0; 64 << 10], vec![0; 1 << 20], vec![0; 1 << 20]],
            powered: true,
            storm: false,
            ring: false,
            reading: false,
            doomed: None,
            seen: Arc::default(),
        }
    }

    fn bar(&mut self, bar: Bar) -> &mut Vec<u8> {
        &mut self.bars[bar as usize]
    }

    fn reg(&mut self, offset: u64) -> u32 {
        let at = offset as usize;
        u32::from_le_bytes(self.bar(Bar::Control)[at..at + 4].try_into().unwrap())
    }

    fn operand(&mut self) -> (u64, usize) {
        let addr =
            u64::from(self.reg(fake::ADDRESS)) | u64::from(self.reg(fake::ADDRESS + 4)) << 32;
        (addr, self.reg(fake::LENGTH).clamp(1, 4096) as usize)
    }

    /// Sends the message of the vector in LENGTH, unless it is masked.
    fn interrupt(&mut self, host: &mut dyn HostPort) {
        let entry = 0x2000 + 16 * self.reg(fake::LENGTH) as usize;
        let table = self.bar(Bar::Nvme)[entry..entry + 16].to_vec();
        let (enabled, masked) = self.seen.lock().unwrap().msix;
        if table[12] & 1 == 0 && enabled && !masked {
            let addr = u64::from_le_bytes(table[..8].try_into().unwrap());
            host.write(self.now, addr, &table[8..12]);
        }
    }

    fn command(&mut self, command: u32, host: &mut dyn HostPort) -> Result<(), Fault> {
        let (addr, len) = self.operand();
        let buffer = fake::BUFFER as usize;
        match command {
            fake::READ => self.reading = host.read(self.now, 1, addr, len as u32),
            fake::WRITE => {
                let data = self.bar(Bar::Control)[buffer..buffer + len].to_vec();
                host.write(self.now, addr, &data);
            }
            fake::INTERRUPT => self.interrupt(host),
            fake::RING => self.ring = true,
            fake::FAIL_AT_REST => self.doomed = Some(self.now + Time::us(200)),
            fake::FAIL => return Err(Fault::Assertion("commanded".into())),
            fake::STORM => self.storm = true,
            _ => {}
        }
        Ok(())
    }
}

impl Device for Fake {
    fn now(&self) -> Time {
        self.now
    }

    fn advance(&mut self, until: Time, host: &mut dyn HostPort) -> Result<(), Fault> {
        while self.now + Time::ns(4) <= until {
            self.now += Time::ns(4);
            while let Some(piece) = host.read_data(self.now) {
                self.reading = false;
                match piece.data {
                    Some(data) => {
                        let at = fake::BUFFER as usize;
                        self.bar(Bar::Control)[at..at + data.len()].copy_from_slice(&data);
                    }
                    None => self.seen.lock().unwrap().failed_reads += 1,
                }
            }
            match host.mmio(self.now) {
                Some(Mmio::Write { bar, offset, data }) => {
                    let at = offset as usize;
                    self.bar(bar)[at..at + data.len()].copy_from_slice(&data);
                    if let (Bar::Nvme, 0x1000..0x2000, Ok(word)) =
                        (bar, offset, <[u8; 4]>::try_from(&data[..]))
                    {
                        let value = u32::from_le_bytes(word);
                        self.seen.lock().unwrap().doorbells.push((offset, value));
                    }
                    if bar == Bar::Control && offset == fake::COMMAND {
                        let command = self.reg(fake::COMMAND);
                        self.command(command, host)?;
                    }
                }
                Some(Mmio::Read {
                    bar,
                    offset,
                    len,
                    tag,
                }) => {
                    let at = offset as usize;
                    let data = self.bar(bar)[at..at + len as usize].to_vec();
                    host.mmio_data(self.now, tag, Some(data));
                }
                None => {}
            }
            if self.storm {
                let (addr, len) = self.operand();
                host.write(self.now, addr, &vec![0xEE; len]);
                if !self.reading {
                    self.reading = host.read(self.now, 1, addr, len as u32);
                }
                self.seen.lock().unwrap().storms += 1;
            }
            if self.ring {
                self.interrupt(host);
            }
            if host.attention() {
                return Ok(());
            }
            if self.doomed.is_some_and(|at| self.now >= at) {
                return Err(Fault::Assertion("commanded, at rest".into()));
            }
            if self.idle() && host.next_arrival().is_none() {
                // Its clock keeps its phase, however far it was asked to run.
                self.now = Time(until.0 - until.0 % Time::ns(4).0);
            }
        }
        Ok(())
    }

    fn idle(&self) -> bool {
        !self.storm && !self.ring && !self.reading
    }

    fn power_off(&mut self) {
        self.powered = false;
    }

    fn power_on(&mut self) {
        // The PM window keeps the content of the media.
        self.bars[Bar::Nvme as usize].fill(0);
        self.bars[Bar::Control as usize].fill(0);
        self.storm = false;
        self.ring = false;
        self.reading = false;
        self.doomed = None;
        self.powered = true;
        self.seen.lock().unwrap().power_ups += 1;
    }

    fn set_msix(&mut self, enable: bool, mask: bool) {
        self.seen.lock().unwrap().msix = (enable, mask);
    }

    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }
}

pub const SETUP: RegisterWrite = RegisterWrite {
    bar: Bar::Control,
    offset: 0x20,
    value: 0x5EED,
};

/// The log lines of a server.
#[derive(Clone, Default)]
pub struct LogLines(Arc<Mutex<Vec<String>>>);

impl LogLines {
    pub fn log(&self) -> vfio_user::Log {
        let lines = self.0.clone();
        vfio_user::Log::new(move |line| lines.lock().unwrap().push(line.into()))
    }

    /// The number of lines with this text.
    pub fn times(&self, text: &str) -> usize {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|line| line.contains(text)).count()
    }
}

/// Fake devices with sockets in the directory, and their records.
pub fn serve_fakes(dir: &Dir, count: usize) -> (Server, Vec<Arc<Mutex<FakeRecord>>>) {
    let (server, seen, _) = serve_fakes_logged(dir, count);
    (server, seen)
}

/// The same, with the server's log lines.
pub fn serve_fakes_logged(
    dir: &Dir,
    count: usize,
) -> (Server, Vec<Arc<Mutex<FakeRecord>>>, LogLines) {
    let log = LogLines::default();
    let fakes = (0..count).map(|n| fake_device(dir, n, &log));
    let (served, seen) = fakes.unzip();
    (Server::start(served).unwrap(), seen, log)
}

/// A fake device, and what it records.
pub fn fake_device(dir: &Dir, n: usize, log: &LogLines) -> (ServedDevice, Arc<Mutex<FakeRecord>>) {
    let device = Fake::new();
    let seen = device.seen.clone();
    let served = ServedDevice {
        name: format!("fake{n}"),
        socket: dir.socket(n),
        device: Box::new(device),
        function: Function {
            pm_bytes: 1 << 20,
            pm_file: None,
            vectors: 4,
            link: sim::LinkConfig::default(),
        },
        setup: vec![SETUP],
        tracer: None,
        log: log.log(),
    };
    (served, seen)
}
