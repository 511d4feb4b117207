// SPDX-License-Identifier: Apache-2.0

//! A host with devices of a design: what tests, measurements and commands run on.
//!
//! [`Testbed::builder`] takes a design, a model and the number of devices. The result has the
//! machine with its CPUs, a driver for each device, and the engines with their place in BAR4.
//!
//! ```
//! use design::Design;
//! use device::Model;
//! use driver::DriverConfig;
//! use host::{Mapping, MemoryType};
//! use testbed::Testbed;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let design = Design::find("nearpm")?;
//! let testbed = Testbed::builder(&design).model(Model::Fast).devices(2).build()?;
//!
//! // A driver writes to the second device, and a CPU reads the same bytes in its PM window.
//! let mut nvme = testbed.driver(1, DriverConfig::default())?;
//! nvme.write(8, &[0x5A; 4096])?;
//! let mut line = [0; 64];
//! testbed.cpu(0).load(&Mapping::pm(1, MemoryType::Uncached), 8 * 512, &mut line)?;
//! assert_eq!(line, [0x5A; 64]);
//!
//! let engine = testbed.engine(1, "nearpm").ok_or("no such engine")?;
//! assert!(engine.page.is_some());
//! # Ok(())
//! # }
//! ```
//!
//! # Modules, in reading order
//!
//! - this file: [`Testbed`], and hosts of devices that were made elsewhere ([`attach`],
//!   [`host_of`]);
//! - `builder`: [`Builder`], what a testbed is made of;
//! - `parameters`: design and host profile as parameters of crates `host` and `driver`;
//! - `exercise`: [`exercise`], a short mixed workload that trains builds.
//!
//! # Left out
//!
//! Devices by themselves (crate `device`), devices for QEMU and SPDK, whose host is real (crate
//! `vfio_user`), and libraries on top of a host, such as `pm` and `sort`.

#![forbid(unsafe_code)]

mod builder;
mod exercise;
mod parameters;

use design::engine::EngineInstance;
use design::{Design, Profile};
use device::Factory;
use driver::control::Inventory;
use driver::{DriverConfig, Host, HostCosts, NvmeDriver, SharedHost, SimHost};
use host::{Cpu, SharedMachine};
use sim::{Bar, Device, HostConfig, LinkConfig, System};

use builder::Origin;

pub use builder::Builder;
pub use exercise::exercise;
pub use parameters::{driver_costs, host_parameters};

/// Why there is no testbed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The design, or a profile that it names.
    #[error(transparent)]
    Design(#[from] design::Error),
    /// A device.
    #[error(transparent)]
    Device(#[from] device::Error),
    /// The driver.
    #[error(transparent)]
    Driver(#[from] driver::Error),
    /// The simulated system.
    #[error(transparent)]
    System(#[from] sim::Error),
}

/// The result of building a testbed.
pub type Result<T> = std::result::Result<T, Error>;

/// A device of a testbed.
struct PoweredDevice {
    design: Design,
    engines: Vec<EngineInstance>,
}

/// A host with devices, after power-on.
pub struct Testbed {
    machine: SharedMachine,
    devices: Vec<PoweredDevice>,
}

impl Testbed {
    /// Describes a host with devices of a design.
    pub fn builder(design: &Design) -> Builder<'_> {
        Builder::new(Origin::Design(design))
    }

    /// The same with a factory, so that nothing is compiled.
    pub fn of(factory: &Factory) -> Builder<'_> {
        Builder::new(Origin::Factory(factory))
    }

    /// The machine, which programs share.
    pub fn machine(&self) -> &SharedMachine {
        &self.machine
    }

    /// A CPU, from 0 on.
    pub fn cpu(&self, number: usize) -> Cpu {
        self.machine.cpu(number)
    }

    /// Number of devices.
    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// The design of a device.
    pub fn design(&self, device: usize) -> &Design {
        &self.devices[device].design
    }

    /// The engines of a device, in the order of its design.
    pub fn engines(&self, device: usize) -> &[EngineInstance] {
        &self.devices[device].engines
    }

    /// The first engine of a kind, by the name of its manifest.
    pub fn engine(&self, device: usize, kind: &str) -> Option<&EngineInstance> {
        let mut engines = self.engines(device).iter();
        engines.find(|engine| engine.manifest.name == kind)
    }

    /// A device for a driver whose CPU n is the machine's CPU `first_cpu` + n. With an interrupt
    /// cost in the design, `vectors` interrupt vectors are used.
    pub fn host(&self, device: usize, vectors: u16, first_cpu: usize) -> SharedHost {
        let costs = driver_costs(&self.design(device).cpu);
        SharedHost::new(&self.machine, device, costs, vectors, first_cpu)
    }

    /// Starts a driver on the first CPUs, with a vector for each queue.
    pub fn driver(&self, device: usize, config: DriverConfig) -> Result<NvmeDriver<SharedHost>> {
        let host = self.host(device, config.io_queues + 1, 0);
        Ok(NvmeDriver::start(host, config)?)
    }

    /// The host of the first device, for a driver that is alone.
    ///
    /// # Panics
    ///
    /// If CPUs or drivers of the testbed are in use.
    pub fn into_sim_host(self, vectors: u16) -> SimHost {
        let costs = driver_costs(&self.design(0).cpu);
        let machine = self.machine.into_machine();
        SimHost::on(machine.expect("nothing else uses it"), 0, costs, vectors)
    }
}

/// A host with these devices, each with its link and the bytes of its PM window.
pub fn attach(
    host: &HostConfig,
    devices: impl IntoIterator<Item = (Box<dyn Device + Send>, LinkConfig, u64)>,
) -> Result<System> {
    let mut system = System::new(host)?;
    for (device, link, window_bytes) in devices {
        let windows = [
            (Bar::Nvme, 64 << 10),
            (Bar::Pm, window_bytes),
            (Bar::Control, 1 << 20),
        ];
        system.add_device(device, &link, &windows)?;
    }
    Ok(system)
}

/// The host of one device, for a driver that is alone. Host and link are the default ones.
pub fn host_of(
    device: Box<dyn Device + Send>,
    window_bytes: u64,
    costs: HostCosts,
    vectors: u16,
) -> Result<SimHost> {
    let devices = [(device, LinkConfig::default(), window_bytes)];
    let system = attach(&HostConfig::default(), devices)?;
    Ok(SimHost::new(system, 0, costs, vectors))
}

/// Gives the storage of a device the timing of a media profile.
pub fn set_media_profile<H: Host>(host: &mut H, profile: &Profile) -> Result<()> {
    let inventory = Inventory::read(host)?;
    let registers = profile.registers(inventory.clock, inventory.turns())?;
    // The delays of the storage come first.
    for (delay, registers) in inventory.delays().iter().zip(&registers) {
        delay.set(host, registers)?;
    }
    Ok(())
}
