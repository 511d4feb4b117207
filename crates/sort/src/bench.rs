//! One host with several devices of a design, and a driver for each.

use std::path::Path;

use design::{Design, HostProfile, Identity, Place, Profile};
use device::Factory;
use driver::control::Inventory;
use driver::{Config, Controller, SharedHost};
use host::{Machine, Program, Shared};
use sim::{Bar, System, Time};

use crate::job::Job;
use crate::report::Stage;
use crate::transfer::QUEUES;
use crate::{Error, Progress, Result};

/// Simulated time that a command may take: sorting is long.
const PATIENCE: Time = Time::ms(10_000);

/// What comes from a device: its rows, and how long they took.
pub type Outcome = (Vec<u8>, Vec<Stage>);

/// A host with its devices.
pub struct Bench {
    shared: Shared,
    drivers: Vec<Controller<SharedHost>>,
}

impl Bench {
    /// Gives so many devices power, starts their drivers, and sets the design's media profile.
    pub fn new(root: &Path, design: &Design, factory: &mut Factory, count: usize) -> Result<Bench> {
        let (host, link) = design.attached().map_err(Error::new)?;
        let mut system = System::new(&host).map_err(Error::new)?;
        for number in 0..count {
            let place = Place::Number(number as u32);
            factory.set_identity(Identity::of(design, place).map_err(Error::new)?);
            let media = factory.media().map_err(Error::new)?;
            let device = factory.device(media).map_err(Error::new)?;
            let windows = [
                (Bar::Nvme, 64 << 10),
                (Bar::Pm, design.window_bytes()),
                (Bar::Control, 1 << 20),
            ];
            let added = system.add_device(device, &link, &windows);
            added.map_err(Error::new)?;
        }
        let free = HostProfile::shipped("none").ok_or_else(|| Error::new("no host profile"))?;
        let shared = Shared::new(Machine::new(system, free));
        let profile = Profile::find(root, &design.media.profile).map_err(Error::new)?;
        let registers = profile.registers(design.clock(), design.turns());
        let registers = registers.map_err(Error::new)?;
        let config = Config {
            io_queues: QUEUES as u16,
            command_timeout: PATIENCE,
            ..Config::default()
        };
        let start = |number: usize| -> driver::Result<Controller<SharedHost>> {
            let host = SharedHost::new(&shared, number, design.cpu.costs(), 0, QUEUES * number);
            let mut controller = Controller::start(host, config)?;
            let inventory = Inventory::read(controller.host_mut())?;
            // Those of the storage come first.
            for (delay, registers) in inventory.delays().iter().zip(&registers) {
                delay.set(controller.host_mut(), registers)?;
            }
            Ok(controller)
        };
        let drivers: driver::Result<Vec<_>> = (0..count).map(start).collect();
        let drivers = drivers.map_err(Error::new)?;
        Ok(Bench { shared, drivers })
    }

    /// Has each device do its job, all at the same time.
    pub fn run(&mut self, jobs: &[Job], progress: &Progress) -> Result<Vec<Outcome>> {
        let drivers = self.drivers.iter_mut().zip(jobs).enumerate();
        let programs = drivers.map(|(number, (driver, job))| {
            let work = move |_: &host::Cpu| job.run(driver, progress);
            let program: Program<'_, driver::Result<Outcome>> = Box::new(work);
            (QUEUES * number, program)
        });
        let done = self.shared.run(programs.collect()).map_err(Error::new)?;
        let named = |(number, outcome): (usize, driver::Result<Outcome>)| {
            outcome.map_err(|e| Error::new(format!("device {number}: {e}")))
        };
        done.into_iter().enumerate().map(named).collect()
    }
}
