// SPDX-License-Identifier: Apache-2.0

//! Several devices at one host: each is connected by a separate link, all in one `sim::System`.
//!
//! Each access of a device at the root complex is passed to the device's [`HostModel`], in the
//! order of time. It is checked there as if it came from the device directly. The memory of a host
//! model mirrors the host memory. Stores of its host are copied to the host memory before time
//! advances. Writes of the device must be in the host memory as soon as they were checked.
//! Interrupts are checked when they arrive.
//!
//! Each host model also has a window: the last pages of another device's media, seen through that
//! device's BAR2. No command of that device reaches them. The host model treats them as memory. The
//! host fills them through the other device's link.
//!
//! At the end the host memory must hold nothing else. The last 64 pages of each device's media are
//! the window. The other host checks it at each command that reads data there, at loads, and at the
//! end. A device loses power, or is reset as a function, only while no command of the other device
//! names its media.

use std::cell::RefCell;
use std::mem::swap;
use std::rc::Rc;

use sim::{Bar, Device, Error, HostConfig, HostMemory, LinkConfig, Mmio, Random, System, Time};

use crate::oracle::host_model::{HostModel, MSI};
use crate::oracle::memory::{Memory, BASE};
use crate::random::pick;
use crate::PAGE;

/// BAR0 of a device.
const REGISTERS: u64 = 64 << 10;

/// The environment of a device.
pub enum Seat {
    /// The device is connected to its host model directly.
    Alone(Box<dyn Device + Send>),
    /// The device has this number on a host with several devices.
    Beside(Rc<RefCell<Rig>>, usize),
}

impl Seat {
    /// The time of the host.
    pub fn now(&self) -> Time {
        match self {
            Seat::Alone(device) => device.now(),
            Seat::Beside(rig, _) => rig.borrow().system.now(),
        }
    }

    /// True if no other device may access the media of this device at present. Stores of the host
    /// to these media may still be in flight.
    pub fn is_left_alone(&self) -> bool {
        match self {
            Seat::Alone(_) => true,
            Seat::Beside(rig, n) => {
                let rig = rig.borrow();
                let hosts = rig.hosts.iter().enumerate();
                let mut others = hosts.filter(|(other, _)| other != n);
                others.all(|(_, host)| !host.names_window())
            }
        }
    }

    /// See [`Device::set_msix`].
    pub fn set_msix(&mut self, enable: bool, mask: bool) {
        match self {
            Seat::Alone(device) => device.set_msix(enable, mask),
            Seat::Beside(rig, n) => {
                if let Some(device) = rig.borrow_mut().system.device_mut(*n) {
                    device.set_msix(enable, mask);
                }
            }
        }
    }

    /// See [`Device::function_reset`].
    pub fn function_reset(&mut self) {
        match self {
            Seat::Alone(device) => device.function_reset(),
            Seat::Beside(rig, n) => rig.borrow_mut().system.function_reset(*n),
        }
    }

    /// See [`Device::power_off`].
    pub fn power_off(&mut self) {
        match self {
            Seat::Alone(device) => device.power_off(),
            Seat::Beside(rig, n) => rig.borrow_mut().system.power_off(*n),
        }
    }

    /// See [`Device::power_on`].
    pub fn power_on(&mut self) {
        match self {
            Seat::Alone(device) => device.power_on(),
            Seat::Beside(rig, n) => rig.borrow_mut().system.power_on(*n),
        }
    }
}

/// A host with several devices.
pub struct Rig {
    system: System,
    /// The host model of each device. The model of the active host is with that host while no time
    /// passes.
    hosts: Vec<HostModel>,
}

/// A link with random timing and buffers that fill up. It is fast enough for the timeouts of the
/// hosts.
fn link(random: &mut Random) -> LinkConfig {
    let mut link = LinkConfig::default();
    let speeds = [(3, 1), (1, 8), (3, 4), (3, 8), (4, 8), (5, 4), (3, 16)];
    (link.generation, link.lanes) = pick(random, &speeds);
    link.max_payload_bytes = pick(random, &[128, 256, 512, 4096]);
    link.max_read_request_bytes = pick(random, &[128, 256, 512, 4096]);
    link.read_completion_boundary_bytes = pick(random, &[64, 128]);
    link.max_completion_bytes = pick(random, &[128, 256, 4096]);
    link.tags = pick(random, &[32, 64, 256]);
    link.host_posted_headers = pick(random, &[32, 128]);
    link.device_posted_headers = pick(random, &[1, 4, 32]);
    link.device_nonposted_headers = pick(random, &[1, 16]);
    link.device_completion_bytes = pick(random, &[0, 4096, 16384]);
    link.device_tx_buffer_bytes = pick(random, &[256, 2048]);
    link.device_phy_ns = 50 + random.below(300);
    link
}

impl Rig {
    /// A host with these devices of `media_bytes` bytes of media, whose last pages are windows for
    /// others; `pages` of memory.
    pub fn new(
        devices: Vec<Box<dyn Device + Send>>,
        random: &mut Random,
        pages: u64,
        media_bytes: u64,
        window_pages: u64,
        vacant: impl Fn(Memory) -> HostModel,
    ) -> Result<Rig, String> {
        let host = HostConfig {
            memory_base: BASE,
            memory_mib: (pages * PAGE) >> 20,
            read_jitter_ns: pick(random, &[0, 50, 400]),
            mmio_queue: pick(random, &[4, 64]),
            completion_timeout_us: 1000,
            seed: random.next(),
            ..HostConfig::default()
        };
        let mut system = System::new(&host).map_err(|e| e.to_string())?;
        let window = media_bytes - window_pages * PAGE;
        let windows = [(Bar::Nvme, REGISTERS), (Bar::Pm, media_bytes)];
        let count = devices.len();
        for device in devices {
            let added = system.add_device(device, &link(random), &windows);
            added.map_err(|e| e.to_string())?;
        }
        let all = system.memory_mut().alloc(pages * PAGE, PAGE);
        if all != Some(BASE) {
            return Err("the host's memory is not where it should be".into());
        }
        let watched = system.memory_mut().watch(BASE, pages * PAGE);
        watched.map_err(|e| e.to_string())?;
        system.record_accesses();
        let mut hosts = Vec::new();
        for n in 0..count {
            let peer = system.window((n + 1) % count, Bar::Pm).unwrap_or(0);
            let window = (peer + window, window_pages);
            let memory = Memory::shared(pages, n as u64, count as u64, window);
            hosts.push(vacant(memory));
        }
        Ok(Rig { system, hosts })
    }

    /// Exchanges the stored host model with `host`.
    pub fn swap(&mut self, n: usize, host: &mut HostModel) {
        swap(&mut self.hosts[n], host);
    }

    /// Advances the time of all devices; true if the host of device `n` was woken before the end.
    pub fn advance(
        &mut self,
        n: usize,
        host: &mut HostModel,
        until: Time,
        watch: bool,
    ) -> Result<bool, String> {
        self.swap(n, host);
        let result = self.run(n, until, watch);
        self.swap(n, host);
        result
    }

    fn run(&mut self, n: usize, until: Time, watch: bool) -> Result<bool, String> {
        loop {
            self.hosts[n].clear_wake();
            let answered = self.send()?;
            if answered && watch {
                // Accesses that arrived while the host's stores waited for their links.
                self.check_accesses()?;
                return Ok(true);
            }
            let stopped = self.system.wait(until).map_err(|e| self.name(&e))?;
            self.check_accesses()?;
            if watch && self.hosts[n].woken() {
                return Ok(true);
            }
            if !stopped {
                return Ok(false);
            }
        }
    }

    fn name(&self, error: &Error) -> String {
        let waits = |n: usize| {
            let link = self.system.link(n);
            link.map(|l| format!("; its link: {:?}", l.stats()))
                .unwrap_or_default()
        };
        match error {
            Error::Fault { device, .. } | Error::Timeout { device, .. } => {
                format!("{error}{}", waits(*device))
            }
            _ => error.to_string(),
        }
    }

    /// Sends the stores of the hosts, then their register accesses. True if a read was answered.
    fn send(&mut self) -> Result<bool, String> {
        // In order, as time may pass while a link is full.
        for n in 0..self.hosts.len() {
            for (addr, data) in self.hosts[n].memory.take_stores() {
                if self.system.memory_mut().write(addr, &data).is_err() {
                    let (peer, offset) = self.peer(n, addr);
                    let sent = self.system.mmio_write(peer, Bar::Pm, offset, &data);
                    sent.map_err(|e| self.name(&e))?;
                }
            }
        }
        let mut answered = false;
        for n in 0..self.hosts.len() {
            for access in self.hosts[n].link.take_posted() {
                answered |= self.access(n, access)?;
            }
        }
        Ok(answered)
    }

    /// The device whose media a host model's window shows, and the offset of an address in it.
    fn peer(&self, n: usize, addr: u64) -> (usize, u64) {
        let peer = (n + 1) % self.hosts.len();
        (peer, addr - self.system.window(peer, Bar::Pm).unwrap_or(0))
    }

    /// Sends an access. True if it was a read, which is answered now.
    fn access(&mut self, n: usize, access: Mmio) -> Result<bool, String> {
        match access {
            Mmio::Write { bar, offset, data } => {
                let sent = self.system.mmio_write(n, bar, offset, &data);
                sent.map_err(|e| self.name(&e))?;
                Ok(false)
            }
            Mmio::Read {
                bar,
                offset,
                len,
                tag,
            } => {
                let answer = self.system.mmio_read(n, bar, offset, len as usize);
                // Accesses that arrived before the answer.
                self.check_accesses()?;
                let data = match answer {
                    Ok(data) => Some(data),
                    Err(Error::ReadFailed { .. }) => None,
                    Err(error) => return Err(self.name(&error)),
                };
                self.hosts[n].answer(tag, data);
                Ok(true)
            }
        }
    }

    /// Passes observed accesses and interrupts to the host models.
    fn check_accesses(&mut self) -> Result<(), String> {
        for access in self.system.take_accesses() {
            let host = &mut self.hosts[access.device];
            match access.data {
                // Interrupts count when they arrive.
                Some(_) if MSI.contains(&access.addr) => {}
                Some(data) => host.written(access.time, access.addr, &data),
                None => drop(host.asked(access.time, access.addr, access.len)),
            }
        }
        for (n, host) in self.hosts.iter_mut().enumerate() {
            for message in self.system.interrupts(n) {
                host.written(message.time, message.addr, &message.data.to_le_bytes());
            }
            let real = self.system.memory();
            if let Some(addr) = lost(host, real) {
                host.fail(format!(
                    "host memory does not hold what was written at {addr:#x}"
                ));
            }
            if let Some(text) = &host.failure {
                return Err(format!("device {n}: {text}"));
            }
        }
        Ok(())
    }

    /// Sends all stores of the host: they have arrived, or are in flight after earlier transfers.
    pub fn flush(&mut self, n: usize, host: &mut HostModel) -> Result<(), String> {
        self.swap(n, host);
        let result = self.send().and_then(|_| self.check_accesses());
        self.swap(n, host);
        result
    }

    /// Compares a host model's part of the host memory with its mirror.
    pub fn compare_memory(&mut self, n: usize, host: &mut HostModel) -> Result<(), String> {
        self.swap(n, host);
        let result = self
            .send()
            .and_then(|_| self.check_accesses())
            .and_then(|()| {
                let all = self.hosts.len() as u64;
                let mut share = self.hosts[n].memory.share(n as u64, all);
                let real = self.system.memory();
                let wrong =
                    share.find(|(addr, model)| real.slice(*addr, model.len()).ok() != Some(*model));
                wrong.map_or(Ok(()), |(addr, _)| {
                    Err(format!("host memory has changed unseen near {addr:#x}"))
                })
            });
        self.swap(n, host);
        result
    }

    /// Loads a page of a host model's window.
    pub fn load_peer_page(
        &mut self,
        n: usize,
        host: &mut HostModel,
        addr: u64,
    ) -> Result<Vec<u8>, String> {
        self.swap(n, host);
        let result = self.send().and_then(|_| {
            let (peer, offset) = self.peer(n, addr);
            let read = self.system.mmio_read(peer, Bar::Pm, offset, PAGE as usize);
            self.check_accesses()?;
            read.map_err(|e| self.name(&e))
        });
        self.swap(n, host);
        result
    }
}

/// An address at which host memory lacks data that the device has written.
fn lost(host: &mut HostModel, real: &HostMemory) -> Option<u64> {
    let written = host.memory.take_device_writes();
    let wrong = |&(addr, len): &(u64, u64)| {
        let real = real.slice(addr, len as usize).ok();
        !host.memory.is_window(addr / PAGE * PAGE) && real != host.memory.get(addr, len)
    };
    written.into_iter().find(wrong).map(|(addr, _)| addr)
}
