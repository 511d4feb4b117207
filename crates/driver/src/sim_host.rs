// SPDX-License-Identifier: Apache-2.0

//! The simulated host of one driver: memory and link of a [`sim::System`], and CPUs that take time.

use ::host::{HostParameters, Machine};
use sim::{Bar, LinkStats, System, Time, MSI_BASE};

use crate::port::{dma_read, dma_write, DevicePort};
use crate::{CpuWork, Host, HostCosts, Result};

/// One device of a simulated system, and the CPUs of its host, for a driver that is alone. See
/// [`crate::SharedHost`] for a shared one.
pub struct SimHost {
    machine: Machine,
    port: DevicePort,
}

impl SimHost {
    /// The host of device number `device`, whose loads and stores take no CPU time. With an
    /// interrupt cost in `costs`, `vectors` interrupt vectors are used.
    pub fn new(system: System, device: usize, costs: HostCosts, vectors: u16) -> SimHost {
        let machine = Machine::new(system, HostParameters::default());
        SimHost::on(machine, device, costs, vectors)
    }

    /// The same on a machine.
    pub fn on(machine: Machine, device: usize, costs: HostCosts, vectors: u16) -> SimHost {
        SimHost {
            machine,
            port: DevicePort::new(device, costs, vectors, 0),
        }
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The machine, mutable.
    pub fn machine_mut(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// The system.
    pub fn system(&self) -> &System {
        self.machine.system()
    }

    /// The system, mutable.
    pub fn system_mut(&mut self) -> &mut System {
        self.machine.system_mut()
    }

    /// The number of the device.
    pub fn device(&self) -> usize {
        self.port.device
    }

    /// Acts on the registers and windows of another device of the same system. CPUs, watches and
    /// interrupts stay those of the driver.
    pub fn with_device<R>(&mut self, device: usize, act: impl FnOnce(&mut SimHost) -> R) -> R {
        let own = std::mem::replace(&mut self.port.device, device);
        let result = act(self);
        self.port.device = own;
        result
    }

    /// Traffic of the device's link.
    pub fn link_stats(&self) -> LinkStats {
        let link = self.system().link(self.port.device);
        link.map(sim::Link::stats).unwrap_or_default()
    }
}

impl Host for SimHost {
    fn read(&mut self, bar: Bar, offset: u64, data: &mut [u8]) -> Result<()> {
        self.port.read(&mut self.machine, bar, offset, data)
    }

    fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<()> {
        self.port.write(&mut self.machine, bar, offset, data)
    }

    fn alloc(&mut self, bytes: u64, align: u64) -> Result<u64> {
        self.port.alloc(&mut self.machine, bytes, align)
    }

    fn free(&mut self, addr: u64, _bytes: u64) {
        self.system_mut().memory_mut().free(addr);
    }

    fn dma_read(&mut self, addr: u64, data: &mut [u8]) {
        dma_read(&self.machine, addr, data);
    }

    fn dma_write(&mut self, addr: u64, data: &[u8]) {
        dma_write(&mut self.machine, addr, data);
    }

    fn run_on(&mut self, cpu: usize) {
        self.port.run_on(cpu);
    }

    fn now(&self) -> Time {
        self.port.now(&self.machine)
    }

    fn busy(&self) -> bool {
        self.port.busy(&self.machine)
    }

    fn spend(&mut self, work: CpuWork) {
        self.port.spend(&mut self.machine, work);
    }

    fn watch(&mut self, addr: u64, bytes: u64) {
        self.port.watch(&mut self.machine, addr, bytes);
    }

    fn unwatch(&mut self, addr: u64) {
        self.port.unwatch(&mut self.machine, addr);
    }

    fn wait(&mut self, until: Time) -> Result<()> {
        self.port.wait(&mut self.machine, until)
    }

    fn vectors(&self) -> u16 {
        self.port.vectors
    }

    fn message(&self, vector: u16) -> (u64, u32) {
        (MSI_BASE, u32::from(vector))
    }

    fn take_interrupt(&mut self, vector: u16) -> bool {
        self.port.take_interrupt(&mut self.machine, vector)
    }
}
