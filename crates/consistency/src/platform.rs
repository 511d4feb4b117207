//! A host with a device of a design.

use std::path::Path;
use std::sync::Arc;

use design::Design;
use device::Factory;
use driver::control::Inventory;
use driver::SharedHost;
use host::{Machine, Shared};
use sim::{Bar, System};

use crate::{Error, Result};

/// A design whose devices have the crash-consistency engine, ready to make them.
pub struct Platform<'a> {
    design: &'a Design,
    factory: Factory,
    media: design::Profile,
    /// Its engine's command page.
    page: u64,
}

/// A host with one device, as after power-on.
pub struct Bench {
    /// The host.
    pub shared: Shared,
    /// The device's engine.
    pub engine: Arc<pm::Engine>,
    /// Bytes of the media that are the host's.
    pub bytes: u64,
}

impl<'a> Platform<'a> {
    /// The platform of a design, whose hardware `factory` has; `root` is that of the repository.
    pub fn new(design: &'a Design, factory: Factory, root: &Path) -> Result<Platform<'a>> {
        let engines = design.engines(root)?;
        let engine = engines.iter().find(|engine| engine.manifest.hook);
        let page = engine.and_then(|engine| engine.page).ok_or_else(|| {
            Error::new(format!(
                "the design {:?} has no crash-consistency engine: allowed are designs that have one, as \"nearpm\"",
                design.name
            ))
        })?;
        Ok(Platform {
            design,
            factory,
            media: design::Profile::find(root, &design.media.profile)?,
            page,
        })
    }

    /// A host with a new device, which has the design's media profile.
    pub fn bench(&self) -> Result<Bench> {
        let device = self.factory.device(self.factory.media()?)?;
        let (host, link) = self.design.attached()?;
        let mut system = System::new(&host)?;
        let windows = [
            (Bar::Nvme, 64 << 10),
            (Bar::Pm, self.design.window_bytes()),
            (Bar::Control, 1 << 20),
        ];
        system.add_device(device, &link, &windows)?;
        let shared = Shared::new(Machine::new(system, &self.design.cpu.host()?));
        let mut host = SharedHost::new(&shared, 0, self.design.cpu.costs(), 1, 0);
        let inventory = Inventory::read(&mut host)?;
        let registers = self.media.registers(inventory.clock, inventory.turns())?;
        for (delay, registers) in inventory.delays().iter().zip(&registers) {
            delay.set(&mut host, registers)?;
        }
        Ok(Bench {
            shared,
            engine: Arc::new(pm::Engine::new(0, self.page)),
            bytes: self.design.media.bytes.0,
        })
    }
}
