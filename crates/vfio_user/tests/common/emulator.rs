// SPDX-License-Identifier: Apache-2.0

//! An emulator of a CPU that takes no time, and the channel through which it drives devices in
//! simulated time.

use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use driver::{CpuWork, Host, Result};
use memmap2::{MmapOptions, MmapRaw};
use rustix::event::{eventfd, EventfdFlags};
use rustix::net::{recvmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use sim::{Bar, Time};

use super::machine::{region, Buffers, RAM_BASE, RAM_BYTES, VECTORS};
use super::{memory, peek, poke, CONFIG, TEST_TIMEOUT};

pub const NEVER: u64 = 1 << 62;

/// The channel for time.
pub struct Clock {
    stream: UnixStream,
    page: MmapRaw,
}

impl Clock {
    pub fn new(socket: &Path) -> Clock {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let mut greeting = [0; 8];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut part = [IoSliceMut::new(&mut greeting)];
        recvmsg(&stream, &mut part, &mut ancillary, RecvFlags::WAITALL).unwrap();
        assert_eq!(&greeting, b"NSTIME01");
        let file = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        let page = MmapOptions::new().map_raw(&file.unwrap()).unwrap();
        Clock { stream, page }
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        // SAFETY: within the page, aligned.
        unsafe { AtomicU64::from_ptr(self.page.as_mut_ptr().cast::<u64>().add(index)) }
    }

    /// The time before which nothing happens.
    pub fn next(&self) -> u64 {
        self.word(1).load(Ordering::Acquire)
    }

    pub fn set_now(&self, now: Time) {
        self.word(0).store(now.0, Ordering::Release);
    }

    pub fn take_stall(&self) -> Time {
        Time(self.word(2).swap(0, Ordering::AcqRel))
    }

    /// Sends raw bytes.
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Lets the devices run. Returns the time reached, interrupts, and the next time.
    pub fn advance(&mut self, until: u64, idle: bool) -> [u64; 3] {
        let request = [until, u64::from(idle)].map(u64::to_le_bytes);
        self.send(&request.concat());
        let mut reply = [0; 24];
        self.stream.read_exact(&mut reply).unwrap();
        let word = |n: usize| u64::from_le_bytes(reply[8 * n..8 * n + 8].try_into().unwrap());
        [word(0), word(1), word(2)]
    }
}

/// A machine for the project's driver in simulated time.
pub struct Emulator {
    pub client: vfio_user_client::Client,
    pub clock: Clock,
    pub now: Time,
    ram: OwnedFd,
    events: Vec<OwnedFd>,
    buffers: Buffers,
}

impl Emulator {
    pub fn new(socket: &Path, clock: &Path) -> Emulator {
        let clock = Clock::new(clock);
        let mut client = vfio_user_client::Client::new(socket).unwrap();
        let ram = memory(RAM_BYTES);
        client
            .dma_map(0, RAM_BASE, RAM_BYTES, ram.as_raw_fd())
            .unwrap();
        client.region_write(CONFIG, 4, &[6, 0]).unwrap();
        let new_event = |_| eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let events: Vec<OwnedFd> = (0..VECTORS).map(new_event).collect();
        for (n, event) in events.iter().enumerate() {
            let fd = event.as_fd().as_raw_fd();
            client.set_irqs(2, 0x24, n as u32, 1, &[fd]).unwrap();
        }
        Emulator {
            client,
            clock,
            now: Time::ZERO,
            ram,
            events,
            buffers: Buffers::default(),
        }
    }
}

impl Host for Emulator {
    fn read(&mut self, bar: Bar, offset: u64, data: &mut [u8]) -> Result<()> {
        self.clock.set_now(self.now);
        self.client.region_read(region(bar), offset, data).unwrap();
        self.now += self.clock.take_stall();
        Ok(())
    }

    fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<()> {
        self.clock.set_now(self.now);
        self.client.region_write(region(bar), offset, data).unwrap();
        self.now += self.clock.take_stall();
        Ok(())
    }

    fn alloc(&mut self, bytes: u64, _align: u64) -> Result<u64> {
        let (addr, bytes) = self.buffers.alloc(bytes);
        self.dma_write(addr, &vec![0; bytes as usize]);
        Ok(addr)
    }

    fn free(&mut self, addr: u64, bytes: u64) {
        self.buffers.free(addr, bytes);
    }

    fn dma_read(&mut self, addr: u64, data: &mut [u8]) {
        data.copy_from_slice(&peek(&self.ram, addr - RAM_BASE, data.len()));
    }

    fn dma_write(&mut self, addr: u64, data: &[u8]) {
        poke(&self.ram, addr - RAM_BASE, data);
    }

    fn run_on(&mut self, _cpu: usize) {}

    fn now(&self) -> Time {
        self.now
    }

    fn busy(&self) -> bool {
        false
    }

    fn spend(&mut self, _work: CpuWork) {}

    fn watch(&mut self, _addr: u64, _bytes: u64) {}

    fn unwatch(&mut self, _addr: u64) {}

    fn wait(&mut self, until: Time) -> Result<()> {
        let [reached, ..] = self.clock.advance(until.0.min(NEVER), true);
        assert!(reached < NEVER, "the device will never do anything");
        self.now = Time(reached).max(self.now);
        Ok(())
    }

    fn vectors(&self) -> u16 {
        VECTORS
    }

    fn message(&self, vector: u16) -> (u64, u32) {
        (0xFEE0_0000, u32::from(vector))
    }

    fn take_interrupt(&mut self, vector: u16) -> bool {
        let mut count = [0; 8];
        rustix::io::read(&self.events[usize::from(vector)], &mut count).is_ok()
    }
}
