// SPDX-License-Identifier: Apache-2.0

//! A host with devices of a design.

use std::path::Path;
use std::sync::Arc;

use design::Design;
use device::Factory;
use driver::control::Inventory;
use driver::SharedHost;
use host::{Machine, SharedMachine};
use sim::{Bar, System};

use crate::{Error, Result};

/// A design whose devices have the crash-consistency engine, ready to create devices.
pub struct Platform<'a> {
    design: &'a Design,
    factory: Factory,
    media: design::Profile,
    /// The engine's command page, and its registers.
    page: u64,
    registers: u64,
}

/// A host with devices, after power-on.
pub struct Bench {
    /// The host.
    pub shared: SharedMachine,
    /// The engine of the first device.
    pub engine: Arc<pm::EngineHandle>,
    /// The engines of all devices.
    pub engines: Vec<Arc<pm::EngineHandle>>,
    /// Bytes of each device's media that the host may use.
    pub bytes: u64,
}

impl<'a> Platform<'a> {
    /// The platform of a design, whose devices `factory` creates; `root` is that of the repository.
    pub fn new(design: &'a Design, factory: Factory, root: &Path) -> Result<Platform<'a>> {
        let engines = design.engines(root)?;
        let engine = engines.iter().find(|engine| engine.manifest.hook);
        let places = engine.and_then(|engine| Some((engine.page?, engine.offset)));
        let (page, registers) = places.ok_or_else(|| Error::NoEngine(design.name.clone()))?;
        Ok(Platform {
            design,
            factory,
            media: design::Profile::find(root, &design.media.profile)?,
            page,
            registers,
        })
    }

    /// Refuses to rely on an order of posted stores that is not kept: with engines, several
    /// channels, several devices.
    pub(crate) fn validate_order(
        &self,
        ordered: bool,
        offloaded: bool,
        devices: usize,
    ) -> Result<()> {
        let kept = !offloaded && devices == 1 && self.design.channels == 1;
        match ordered && !kept {
            true => {
                let allowed =
                    "with offloaded = false, one device, and a design of one channel only";
                Err(Error::refused("fence", "ordered", allowed))
            }
            false => Ok(()),
        }
    }

    /// A host with a new device, which has the design's media profile.
    pub fn bench(&self) -> Result<Bench> {
        self.bench_of(1)
    }

    /// A host with a number of them.
    pub fn bench_of(&self, devices: usize) -> Result<Bench> {
        let (host, link) = self.design.attached()?;
        let mut system = System::new(&host)?;
        let windows = [
            (Bar::Nvme, 64 << 10),
            (Bar::Pm, self.design.window_bytes()),
            (Bar::Control, 1 << 20),
        ];
        for _ in 0..devices {
            let device = self.factory.device(self.factory.media()?)?;
            system.add_device(device, &link, &windows)?;
        }
        let shared = SharedMachine::new(Machine::new(system, &self.design.cpu.host()?));
        for device in 0..devices {
            let mut host = SharedHost::new(&shared, device, self.design.cpu.costs(), 1, 0);
            let inventory = Inventory::read(&mut host)?;
            let registers = self.media.registers(inventory.clock, inventory.turns())?;
            for (delay, registers) in inventory.delays().iter().zip(&registers) {
                delay.set(&mut host, registers)?;
            }
        }
        let engine = |device| pm::EngineHandle::with_registers(device, self.page, self.registers);
        let engines: Vec<_> = (0..devices).map(engine).map(Arc::new).collect();
        let first = engines.first().cloned();
        Ok(Bench {
            shared,
            engine: first.ok_or_else(|| Error::refused("devices", devices, "1 and more"))?,
            engines,
            bytes: self.design.media.bytes.0,
        })
    }
}

impl Bench {
    /// Refuses numbers of devices that no pool spans.
    pub(crate) fn validate_devices(devices: usize) -> Result<()> {
        match devices {
            1 | 2 | 4 => Ok(()),
            _ => Err(Error::refused("devices", devices, "1, 2 and 4")),
        }
    }

    /// The engines of an offloaded mechanism: those of all devices, or none.
    pub(crate) fn engines(&self, offloaded: bool) -> &[Arc<pm::EngineHandle>] {
        match offloaded {
            true => &self.engines,
            false => &[],
        }
    }

    /// The devices' numbers, for a pool that spans all of them.
    pub(crate) fn devices(&self) -> Vec<usize> {
        (0..self.engines.len()).collect()
    }
}
