//! What a device in Python holds: the simulated system, the driver, and the trace that is being written.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use design::{Identity, Place};
use device::Factory;
use driver::control::Inventory;
use driver::page::CommandPage;
use driver::{Config, Controller, SimHost};
use pyo3::prelude::*;
use sim::{Bar, Media, System, Tracer};
use trace::TraceFile;

use crate::error::raise;
use crate::trace::finish;

/// What a device without trace ports answers.
const NO_TRACE: &str = "this device has no trace ports";

/// Everything of one session.
pub struct Session {
    pub controller: Controller<SimHost>,
    pub inventory: Inventory,
    /// Command pages of the engines that have been given commands there, by the engine's name.
    pub pages: HashMap<String, CommandPage>,
    /// See [`Factory::build`].
    pub build: String,
    _number: Number,
}

impl Session {
    /// Gives the device power, and starts the driver.
    pub fn start(
        design: &design::Design,
        driver: Config,
        mut factory: Factory,
        media: Media,
        tracer: Option<Tracer>,
    ) -> PyResult<Session> {
        let number = Number::take();
        factory.set_identity(Identity::of(design, Place::Number(number.0)).map_err(raise)?);
        let device = factory.device(media).map_err(raise)?;
        let build = factory.build();
        let (host, link) = design.attached().map_err(raise)?;
        let mut system = System::new(&host).map_err(raise)?;
        let windows = [
            (Bar::Nvme, 64 << 10),
            (Bar::Pm, design.window_bytes()),
            (Bar::Control, 1 << 20),
        ];
        let slot = system.add_device(device, &link, &windows).map_err(raise)?;
        if tracer.is_some() && !system.set_tracer(slot, tracer) {
            return Err(raise(NO_TRACE));
        }
        let vectors = design.nvme.io_queues as u16 + 1;
        let host = SimHost::new(system, slot, design.cpu.costs(), vectors);
        let mut controller = Controller::start(host, driver).map_err(raise)?;
        let inventory = Inventory::read(controller.host_mut()).map_err(raise)?;
        for delay in inventory.delays() {
            delay.check(controller.host_mut()).map_err(raise)?;
        }
        Ok(Session {
            controller,
            inventory,
            pages: HashMap::new(),
            build,
            _number: number,
        })
    }

    /// The host that it runs on.
    pub fn host(&mut self) -> &mut SimHost {
        self.controller.host_mut()
    }
}

/// The number of a device among those that live in this process: the lowest that is free. So one device after another has
/// the same one, and runs stay repeatable.
struct Number(u32);

static NUMBERS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

impl Number {
    fn take() -> Number {
        let mut used = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        let free = (0..).find(|n| !used.contains(n)).unwrap_or(u32::MAX);
        used.insert(free);
        Number(free)
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        let mut used = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        used.remove(&self.0);
    }
}

/// What only one call at a time may use.
#[derive(Default)]
pub struct State {
    /// `None` after the shutdown.
    pub session: Option<Session>,
    /// Trace of commands that is being written.
    pub trace: Option<Arc<Mutex<TraceFile>>>,
}

impl State {
    /// The session, before the shutdown.
    pub fn session(&mut self) -> PyResult<&mut Session> {
        self.session
            .as_mut()
            .ok_or_else(|| raise("the device was shut down"))
    }

    /// Has the device tell of its commands, or not.
    pub fn set_tracer(&mut self, tracer: Option<Tracer>) -> PyResult<()> {
        let host = self.session()?.host();
        let (number, wanted) = (host.device(), tracer.is_some());
        if !host.system_mut().set_tracer(number, tracer) && wanted {
            return Err(raise(NO_TRACE));
        }
        Ok(())
    }

    /// Ends the trace; how many commands it holds.
    pub fn trace_stop(&mut self) -> PyResult<Option<u64>> {
        let Some(file) = self.trace.take() else {
            return Ok(None);
        };
        if self.session.is_some() {
            self.set_tracer(None)?;
        }
        finish(&file).map(Some)
    }
}
