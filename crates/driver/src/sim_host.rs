//! The simulated host: memory and link of a [`sim::System`], CPUs that take time.

use std::collections::HashMap;

use design::HostCosts;
use sim::{Bar, LinkStats, System, Time, Watch, MSI_BASE};

use crate::{Error, Host, Result, Work};

/// One device of a simulated system, and the CPUs of its host.
pub struct SimHost {
    system: System,
    device: usize,
    costs: HostCosts,
    vectors: u16,
    cpu: usize,
    /// When each CPU is done with what it was given.
    busy: Vec<Time>,
    watches: HashMap<u64, Watch>,
    /// When the handler of each vector's interrupt runs, if one is pending.
    handlers: HashMap<u16, Time>,
}

impl SimHost {
    /// The host of device number `device`. With an interrupt cost in `costs`, `vectors` interrupt vectors are used.
    pub fn new(system: System, device: usize, costs: HostCosts, vectors: u16) -> SimHost {
        SimHost {
            system,
            device,
            costs,
            vectors: if costs.interrupt_ps == 0 { 0 } else { vectors },
            cpu: 0,
            busy: Vec::new(),
            watches: HashMap::new(),
            handlers: HashMap::new(),
        }
    }

    /// The system below.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// The system below, to change.
    pub fn system_mut(&mut self) -> &mut System {
        &mut self.system
    }

    /// The number of the device.
    pub fn device(&self) -> usize {
        self.device
    }

    /// What the device's link has carried.
    pub fn link_stats(&self) -> LinkStats {
        let link = self.system.link(self.device);
        link.map(sim::Link::stats).unwrap_or_default()
    }

    fn busy_until(&self) -> Time {
        self.busy.get(self.cpu).copied().unwrap_or(Time::ZERO)
    }

    fn give_work(&mut self, ps: u64) {
        let end = self.now() + Time(ps);
        if self.busy.len() <= self.cpu {
            self.busy.resize(self.cpu + 1, Time::ZERO);
        }
        self.busy[self.cpu] = end;
    }

    /// Lets time pass until the chosen CPU is free.
    fn catch_up(&mut self) -> Result<()> {
        let until = self.busy_until();
        if until > self.system.now() {
            self.system.advance_until(until).map_err(failed)?;
        }
        Ok(())
    }

    /// Turns interrupts that have arrived into handlers that will run.
    fn take_messages(&mut self) {
        for interrupt in self.system.interrupts(self.device) {
            let due = interrupt.time + Time(self.costs.interrupt_ps);
            // A message that finds one pending adds nothing.
            self.handlers.entry(interrupt.data as u16).or_insert(due);
        }
    }
}

fn failed(error: sim::Error) -> Error {
    match error {
        sim::Error::ReadFailed { .. } | sim::Error::Timeout { .. } => Error::Host(format!(
            "{error} (is it without power, or its media cut short?)"
        )),
        other => Error::Host(other.to_string()),
    }
}

impl Host for SimHost {
    fn read(&mut self, bar: Bar, offset: u64, data: &mut [u8]) -> Result<()> {
        self.catch_up()?;
        let answer = self
            .system
            .mmio_read(self.device, bar, offset, data.len())
            .map_err(failed)?;
        data.copy_from_slice(&answer);
        Ok(())
    }

    fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<()> {
        // The CPU executes the store, then it leaves.
        self.catch_up()?;
        self.system
            .mmio_write(self.device, bar, offset, data)
            .map_err(failed)?;
        self.give_work(self.costs.mmio_write_ps);
        Ok(())
    }

    fn alloc(&mut self, bytes: u64, align: u64) -> Result<u64> {
        self.system
            .memory_mut()
            .alloc(bytes, align)
            .ok_or_else(|| Error::Host(format!("host memory is too small for {bytes} bytes more")))
    }

    fn free(&mut self, addr: u64, _bytes: u64) {
        self.system.memory_mut().free(addr);
    }

    fn dma_read(&mut self, addr: u64, data: &mut [u8]) {
        let read = self.system.memory().read(addr, data);
        debug_assert!(read.is_ok(), "{read:?}");
    }

    fn dma_write(&mut self, addr: u64, data: &[u8]) {
        let written = self.system.memory_mut().write(addr, data);
        debug_assert!(written.is_ok(), "{written:?}");
    }

    fn run_on(&mut self, cpu: usize) {
        self.cpu = cpu;
    }

    fn now(&self) -> Time {
        self.system.now().max(self.busy_until())
    }

    fn busy(&self) -> bool {
        self.busy_until() > self.system.now()
    }

    fn spend(&mut self, work: Work) {
        self.give_work(match work {
            Work::Submit => self.costs.submit_ps,
            Work::Complete => self.costs.complete_ps,
        });
    }

    fn watch(&mut self, addr: u64, bytes: u64) {
        let watch = self.system.memory_mut().watch(addr, bytes);
        debug_assert!(watch.is_ok(), "{watch:?}");
        if let Ok(watch) = watch {
            self.watches.insert(addr, watch);
        }
    }

    fn unwatch(&mut self, addr: u64) {
        if let Some(watch) = self.watches.remove(&addr) {
            self.system.memory_mut().unwatch(watch);
        }
    }

    fn wait(&mut self, until: Time) -> Result<()> {
        self.take_messages();
        let now = self.system.now();
        let ends = self.busy.iter().chain(self.handlers.values());
        let next = ends
            .copied()
            .filter(|&t| t > now)
            .min()
            .unwrap_or(until)
            .min(until);
        self.system.wait(next).map_err(failed)?;
        self.take_messages();
        Ok(())
    }

    fn vectors(&self) -> u16 {
        self.vectors
    }

    fn message(&self, vector: u16) -> (u64, u32) {
        (MSI_BASE, u32::from(vector))
    }

    fn take_interrupt(&mut self, vector: u16) -> bool {
        let now = self.system.now();
        let due = self.handlers.get(&vector).is_some_and(|&due| due <= now);
        if due {
            self.handlers.remove(&vector);
        }
        due
    }
}
