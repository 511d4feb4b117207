// SPDX-License-Identifier: Apache-2.0

//! A driver's part of a shared host.

use ::host::SharedMachine;
use sim::{Bar, Time, MSI_BASE};

use crate::port::{dma_read, dma_write, DevicePort};
use crate::{CpuWork, Host, HostCosts, Result};

/// One device of a shared host. Other users are drivers of other devices, loads and stores of
/// persistent memory, and concurrent programs ([`SharedMachine::run`]). Several drivers may use one
/// device, each with separate interrupt vectors.
pub struct SharedHost {
    shared: SharedMachine,
    port: DevicePort,
}

impl SharedHost {
    /// Device number `device` of a host. The driver's CPU n is the host's CPU `first_cpu` + n. With
    /// an interrupt cost in `costs`, `vectors` interrupt vectors are used.
    pub fn new(
        shared: &SharedMachine,
        device: usize,
        costs: HostCosts,
        vectors: u16,
        first_cpu: usize,
    ) -> SharedHost {
        SharedHost {
            shared: shared.clone(),
            port: DevicePort::new(device, costs, vectors, first_cpu),
        }
    }

    /// The host.
    pub fn shared(&self) -> &SharedMachine {
        &self.shared
    }

    /// The number of the device.
    pub fn device(&self) -> usize {
        self.port.device
    }
}

impl Host for SharedHost {
    fn read(&mut self, bar: Bar, offset: u64, data: &mut [u8]) -> Result<()> {
        let mut turn = self.shared.turn()?;
        self.port.read(&mut turn, bar, offset, data)
    }

    fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<()> {
        let mut turn = self.shared.turn()?;
        self.port.write(&mut turn, bar, offset, data)
    }

    fn alloc(&mut self, bytes: u64, align: u64) -> Result<u64> {
        self.shared
            .with_machine(|machine| self.port.alloc(machine, bytes, align))
    }

    fn free(&mut self, addr: u64, _bytes: u64) {
        self.shared
            .with_machine(|machine| machine.system_mut().memory_mut().free(addr));
    }

    fn dma_read(&mut self, addr: u64, data: &mut [u8]) {
        self.shared
            .with_machine(|machine| dma_read(machine, addr, data));
    }

    fn dma_write(&mut self, addr: u64, data: &[u8]) {
        self.shared
            .with_machine(|machine| dma_write(machine, addr, data));
    }

    fn run_on(&mut self, cpu: usize) {
        self.port.run_on(cpu);
    }

    fn now(&self) -> Time {
        self.shared.with_machine(|machine| self.port.now(machine))
    }

    fn busy(&self) -> bool {
        self.shared.with_machine(|machine| self.port.busy(machine))
    }

    fn spend(&mut self, work: CpuWork) {
        self.shared
            .with_machine(|machine| self.port.spend(machine, work));
    }

    fn watch(&mut self, addr: u64, bytes: u64) {
        self.shared
            .with_machine(|machine| self.port.watch(machine, addr, bytes));
    }

    fn unwatch(&mut self, addr: u64) {
        self.shared
            .with_machine(|machine| self.port.unwatch(machine, addr));
    }

    fn wait(&mut self, until: Time) -> Result<()> {
        let mut turn = self.shared.turn()?;
        self.port.wait(&mut turn, until)
    }

    fn vectors(&self) -> u16 {
        self.port.vectors
    }

    fn message(&self, vector: u16) -> (u64, u32) {
        (MSI_BASE, u32::from(vector))
    }

    fn take_interrupt(&mut self, vector: u16) -> bool {
        self.shared
            .with_machine(|machine| self.port.take_interrupt(machine, vector))
    }
}
