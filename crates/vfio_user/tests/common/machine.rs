// SPDX-License-Identifier: Apache-2.0

//! A machine for the project's driver, attached to a served device.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use design::Design;
use device::{Factory, Model, RtlOptions};
use driver::{CpuWork, Host, Result};
use memmap2::{MmapOptions, MmapRaw};
use rtl::bitstream::stderr_progress;
use rustix::event::{eventfd, EventfdFlags};
use sim::{Bar, Media, Time};
use vfio_user::{Function, ServedDevice};

use super::*;

pub const RAM_BASE: u64 = 0x4000_0000;
pub const RAM_BYTES: u64 = 64 << 20;
pub const VECTORS: u16 = 17;

/// A device of a design on a model, served at a socket. Its PM window is its media, and it is not
/// traced.
pub fn served(
    design: &Design,
    model: Model,
    options: &RtlOptions,
    socket: PathBuf,
    media: Media,
) -> ServedDevice {
    let mut progress = stderr_progress(&design.name);
    let factory = Factory::new(design, model, options, &mut progress).unwrap();
    ServedDevice {
        name: model.to_string(),
        socket,
        device: factory.device(media).unwrap(),
        function: Function {
            pm_bytes: design.media.bytes.0,
            pm_file: None,
            vectors: VECTORS,
            link: sim::LinkConfig::default(),
        },
        setup: Vec::new(),
        tracer: None,
        log: vfio_user::Log::stderr(),
    }
}

/// The buffers in the memory of a machine: powers of two, aligned to their size.
#[derive(Default)]
pub struct Buffers {
    free: BTreeMap<u64, Vec<u64>>,
    /// The start of the unused rest.
    pub fresh: u64,
}

impl Buffers {
    /// The address and the size of a buffer, which may have former content.
    pub fn alloc(&mut self, bytes: u64) -> (u64, u64) {
        let bytes = bytes.next_power_of_two().max(4096);
        let used = self.free.get_mut(&bytes).and_then(Vec::pop);
        let addr = used.unwrap_or_else(|| {
            let at = self.fresh.next_multiple_of(bytes);
            self.fresh = at + bytes;
            RAM_BASE + at
        });
        (addr, bytes)
    }

    pub fn free(&mut self, addr: u64, bytes: u64) {
        let bytes = bytes.next_power_of_two().max(4096);
        self.free.entry(bytes).or_default().push(addr);
    }
}

/// A machine whose device is served, in wall-clock time. Its memory is a file that both sides map.
pub struct Machine {
    pub client: vfio_user_client::Client,
    ram: MmapRaw,
    pub file: OwnedFd,
    /// `None`: each doorbell is a message.
    doorbells: Option<MmapRaw>,
    events: Vec<OwnedFd>,
    pub buffers: Buffers,
    start: Instant,
}

impl Machine {
    /// Attaches to a device; with `interrupts` every vector gets an eventfd.
    pub fn new(socket: &Path, interrupts: bool) -> Machine {
        let mut client = vfio_user_client::Client::new(socket).unwrap();
        let file = memory(RAM_BYTES);
        client
            .dma_map(0, RAM_BASE, RAM_BYTES, file.as_raw_fd())
            .unwrap();
        client.region_write(CONFIG, 4, &[6, 0]).unwrap();
        let page = client.region(BAR0).unwrap().file_offset.as_ref();
        let doorbells = page.map(|page| {
            MmapOptions::new()
                .offset(page.start() + 0x1000)
                .len(0x1000)
                .map_raw(page.file())
                .unwrap()
        });
        let events: Vec<OwnedFd> = (0..if interrupts { VECTORS } else { 0 })
            .map(|_| eventfd(0, EventfdFlags::NONBLOCK).unwrap())
            .collect();
        for (n, event) in events.iter().enumerate() {
            let fd = event.as_fd().as_raw_fd();
            client.set_irqs(2, 0x24, n as u32, 1, &[fd]).unwrap();
        }
        Machine {
            client,
            ram: MmapOptions::new().map_raw(&file).unwrap(),
            file,
            doorbells,
            events,
            buffers: Buffers::default(),
            start: Instant::now(),
        }
    }

    /// A byte of this machine's memory.
    fn at(&self, addr: u64, len: usize) -> *mut u8 {
        let offset = addr.checked_sub(RAM_BASE).unwrap();
        assert!(offset + len as u64 <= RAM_BYTES);
        // SAFETY: within the mapping.
        unsafe { self.ram.as_mut_ptr().add(offset as usize) }
    }
}

pub fn region(bar: Bar) -> u32 {
    match bar {
        Bar::Nvme => BAR0,
        Bar::Pm => BAR2,
        Bar::Control => BAR4,
    }
}

impl Host for Machine {
    fn read(&mut self, bar: Bar, offset: u64, data: &mut [u8]) -> Result<()> {
        self.client.region_read(region(bar), offset, data).unwrap();
        Ok(())
    }

    fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<()> {
        let doorbells = self.doorbells.as_ref();
        if let (Bar::Nvme, 0x1000..0x2000, Ok(word), Some(page)) =
            (bar, offset, data.try_into(), doorbells)
        {
            // SAFETY: within the page, aligned.
            let doorbell = unsafe {
                AtomicU32::from_ptr(page.as_mut_ptr().add(offset as usize - 0x1000).cast())
            };
            doorbell.store(u32::from_le_bytes(word), Ordering::Release);
            return Ok(());
        }
        self.client.region_write(region(bar), offset, data).unwrap();
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
        let from = self.at(addr, data.len());
        for (i, byte) in data.iter_mut().enumerate() {
            // SAFETY: `at` has checked the range.
            *byte = unsafe { from.add(i).read_volatile() };
        }
        std::sync::atomic::fence(Ordering::Acquire);
        if let (16, 0) = (data.len(), addr % 16) {
            // A completion. The half with the phase was written last, so it is read first. SAFETY:
            // as above, aligned.
            let (low, high) = unsafe {
                let high = AtomicU64::from_ptr(from.add(8).cast()).load(Ordering::Acquire);
                (
                    AtomicU64::from_ptr(from.cast()).load(Ordering::Acquire),
                    high,
                )
            };
            data[..8].copy_from_slice(&low.to_le_bytes());
            data[8..].copy_from_slice(&high.to_le_bytes());
        }
    }

    fn dma_write(&mut self, addr: u64, data: &[u8]) {
        let to = self.at(addr, data.len());
        for (i, byte) in data.iter().enumerate() {
            // SAFETY: `at` has checked the range.
            unsafe { to.add(i).write_volatile(*byte) };
        }
        std::sync::atomic::fence(Ordering::Release);
    }

    fn run_on(&mut self, _cpu: usize) {}

    fn now(&self) -> Time {
        Time::ns(self.start.elapsed().as_nanos() as u64)
    }

    fn busy(&self) -> bool {
        false
    }

    fn spend(&mut self, _work: CpuWork) {}

    fn watch(&mut self, _addr: u64, _bytes: u64) {}

    fn unwatch(&mut self, _addr: u64) {}

    fn wait(&mut self, _until: Time) -> Result<()> {
        std::thread::sleep(std::time::Duration::from_micros(50));
        Ok(())
    }

    fn vectors(&self) -> u16 {
        self.events.len() as u16
    }

    fn message(&self, vector: u16) -> (u64, u32) {
        (0xFEE0_0000, u32::from(vector))
    }

    fn take_interrupt(&mut self, vector: u16) -> bool {
        let mut count = [0; 8];
        rustix::io::read(&self.events[usize::from(vector)], &mut count).is_ok()
    }
}
