// SPDX-License-Identifier: Apache-2.0

//! The services that the driver needs from its host.

use sim::{Bar, Time};

use crate::Result;

/// CPU work that takes time on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuWork {
    /// Building one command and placing it in a submission queue.
    Submit,
    /// Reaping one completion.
    Complete,
}

/// CPU time of a driver's work, in picoseconds of simulated time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCosts {
    /// To build and submit one command.
    pub submit_ps: u64,
    /// To reap one completion.
    pub complete_ps: u64,
    /// Of one posted MMIO write.
    pub mmio_write_ps: u64,
    /// From an interrupt message to the first check of the queue; 0 polls.
    pub interrupt_ps: u64,
}

/// A host with a device: register access, memory that the device can reach, and time.
///
/// A host has several CPUs. Work on one CPU takes only that CPU's time; `run_on` selects the CPU.
pub trait Host {
    /// Reads device memory or registers; fails if no answer arrives.
    fn read(&mut self, bar: Bar, offset: u64, data: &mut [u8]) -> Result<()>;

    /// Posted write to device memory or registers.
    fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<()>;

    /// Allocates zeroed, physically contiguous memory that the device can reach; returns its bus
    /// address.
    fn alloc(&mut self, bytes: u64, align: u64) -> Result<u64>;

    /// Frees memory.
    fn free(&mut self, addr: u64, bytes: u64);

    /// Reads memory that was allocated here.
    fn dma_read(&mut self, addr: u64, data: &mut [u8]);

    /// Writes memory that was allocated here.
    fn dma_write(&mut self, addr: u64, data: &[u8]);

    /// Selects the CPU that performs the following calls.
    fn run_on(&mut self, cpu: usize);

    /// The present time of the selected CPU: the end of its work so far.
    fn now(&self) -> Time;

    /// Whether the selected CPU is still working.
    fn busy(&self) -> bool;

    /// Adds work to the selected CPU.
    fn spend(&mut self, work: CpuWork);

    /// Makes `wait` return when the device writes into this range; for completion queues.
    fn watch(&mut self, addr: u64, bytes: u64);

    /// Cancels a watch.
    fn unwatch(&mut self, addr: u64);

    /// Lets time pass until a CPU has finished its work, the device wrote to a watched range, or
    /// `until`.
    fn wait(&mut self, until: Time) -> Result<()>;

    /// Interrupt vectors that this host wants to use; 0 means polling.
    fn vectors(&self) -> u16;

    /// The message of an interrupt vector: address and data.
    fn message(&self, vector: u16) -> (u64, u32);

    /// Takes the interrupt of a vector: true if its handler is running by now and may check the
    /// queue.
    fn take_interrupt(&mut self, vector: u16) -> bool;

    /// Reads a 32-bit register.
    fn read32(&mut self, bar: Bar, offset: u64) -> Result<u32> {
        let mut data = [0; 4];
        self.read(bar, offset, &mut data)?;
        Ok(u32::from_le_bytes(data))
    }

    /// Writes a 32-bit register.
    fn write32(&mut self, bar: Bar, offset: u64, value: u32) -> Result<()> {
        self.write(bar, offset, &value.to_le_bytes())
    }

    /// Reads a 64-bit register as two 32-bit reads, low then high, as every controller must allow.
    fn read64(&mut self, bar: Bar, offset: u64) -> Result<u64> {
        let low = self.read32(bar, offset)?;
        Ok(u64::from(low) | u64::from(self.read32(bar, offset + 4)?) << 32)
    }

    /// Writes a 64-bit register as two 32-bit writes, low then high.
    fn write64(&mut self, bar: Bar, offset: u64, value: u64) -> Result<()> {
        self.write32(bar, offset, value as u32)?;
        self.write32(bar, offset + 4, (value >> 32) as u32)
    }
}
