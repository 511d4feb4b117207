// SPDX-License-Identifier: Apache-2.0

//! The part of a simulated host that a driver uses: its device, CPUs, watches and interrupts.

use std::collections::HashMap;

use ::host::{register, Machine, Turn, WakeCondition};
use sim::{Bar, Time, Watch};

use crate::{CpuWork, Error, HostCosts, Result};

/// One device of a simulated host, as a driver uses it. Each call receives the host, or the right
/// to act on it.
pub(crate) struct DevicePort {
    pub device: usize,
    costs: HostCosts,
    pub vectors: u16,
    /// The host's number of the driver's CPU 0.
    first_cpu: usize,
    cpu: usize,
    /// CPUs that the driver has used.
    used: Vec<usize>,
    watches: HashMap<u64, Watch>,
}

impl DevicePort {
    pub fn new(device: usize, costs: HostCosts, vectors: u16, first_cpu: usize) -> DevicePort {
        DevicePort {
            device,
            costs,
            vectors: if costs.interrupt_ps == 0 { 0 } else { vectors },
            first_cpu,
            cpu: first_cpu,
            used: vec![first_cpu],
            watches: HashMap::new(),
        }
    }

    pub fn read<T: Turn>(
        &self,
        turn: &mut T,
        bar: Bar,
        offset: u64,
        data: &mut [u8],
    ) -> Result<()> {
        Ok(register::read(
            turn,
            self.cpu,
            (self.device, bar),
            offset,
            data,
        )?)
    }

    pub fn write<T: Turn>(&self, turn: &mut T, bar: Bar, offset: u64, data: &[u8]) -> Result<()> {
        // The CPU executes the store before it is sent.
        let cost = Time(self.costs.mmio_write_ps);
        Ok(register::write(
            turn,
            self.cpu,
            (self.device, bar),
            offset,
            data,
            cost,
        )?)
    }

    pub fn alloc(&self, machine: &mut Machine, bytes: u64, align: u64) -> Result<u64> {
        let memory = machine.system_mut().memory_mut();
        memory
            .alloc(bytes, align)
            .ok_or_else(|| Error::Host(format!("host memory is too small for {bytes} bytes more")))
    }

    pub fn run_on(&mut self, cpu: usize) {
        self.cpu = self.first_cpu.saturating_add(cpu);
        if !self.used.contains(&self.cpu) {
            self.used.push(self.cpu);
        }
    }

    pub fn now(&self, machine: &Machine) -> Time {
        machine.time(self.cpu)
    }

    pub fn busy(&self, machine: &Machine) -> bool {
        machine.busy_until(self.cpu) > machine.system().now()
    }

    pub fn spend(&self, machine: &mut Machine, work: CpuWork) {
        let ps = match work {
            CpuWork::Submit => self.costs.submit_ps,
            CpuWork::Complete => self.costs.complete_ps,
        };
        machine.spend(self.cpu, Time(ps));
    }

    pub fn watch(&mut self, machine: &mut Machine, addr: u64, bytes: u64) {
        let watch = machine.system_mut().memory_mut().watch(addr, bytes);
        debug_assert!(watch.is_ok(), "{watch:?}");
        if let Ok(watch) = watch {
            self.watches.insert(addr, watch);
        }
    }

    pub fn unwatch(&mut self, machine: &mut Machine, addr: u64) {
        if let Some(watch) = self.watches.remove(&addr) {
            machine.system_mut().memory_mut().unwatch(watch);
        }
    }

    pub fn wait<T: Turn>(&self, turn: &mut T, until: Time) -> Result<()> {
        let machine = turn.machine();
        machine.collect_interrupts(self.device);
        let now = machine.system().now();
        let busy = self.used.iter().map(|&cpu| machine.busy_until(cpu));
        let messages = machine.pending_interrupts(self.device);
        let handlers = messages.map(|(_, time)| self.handler(time));
        let next = busy.chain(handlers).filter(|&t| t > now).min();
        let next = next.unwrap_or(until).min(until);
        turn.wait_for(WakeCondition::Attention(next))?;
        turn.machine().collect_interrupts(self.device);
        Ok(())
    }

    pub fn take_interrupt(&self, machine: &mut Machine, vector: u16) -> bool {
        let now = machine.system().now();
        let came = machine.interrupt_time(self.device, vector);
        let due = came.is_some_and(|time| self.handler(time) <= now);
        if due {
            machine.clear_interrupt(self.device, vector);
        }
        due
    }

    /// When the handler of an interrupt that arrived at `time` runs.
    fn handler(&self, time: Time) -> Time {
        time + Time(self.costs.interrupt_ps)
    }
}

/// Reads memory that was allocated here.
pub(crate) fn dma_read(machine: &Machine, addr: u64, data: &mut [u8]) {
    let read = machine.system().memory().read(addr, data);
    debug_assert!(read.is_ok(), "{read:?}");
}

/// Writes memory that was allocated here.
pub(crate) fn dma_write(machine: &mut Machine, addr: u64, data: &[u8]) {
    let written = machine.system_mut().memory_mut().write(addr, data);
    debug_assert!(written.is_ok(), "{written:?}");
}
