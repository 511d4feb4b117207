// SPDX-License-Identifier: Apache-2.0

//! The state of a device in Python: the simulated system, the driver, and the trace that is being
//! written.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use design::engine::EngineInstance;
use design::{DeviceInstance, Identity};
use device::Factory;
use driver::control::Inventory;
use driver::page::CommandPage;
use driver::{DriverConfig, NvmeDriver, SimHost};
use host::HostParameters;
use pyo3::prelude::*;
use sim::{Media, Tracer};
use testbed::Testbed;
use trace::TraceFile;

use crate::error::raise;
use crate::trace::finish;

/// The error of a device without trace ports.
const NO_TRACE: &str = "this device has no trace ports";

/// The simulated system, the driver, and the devices.
pub struct Session {
    pub controller: NvmeDriver<SimHost>,
    pub inventory: Inventory,
    /// Command pages of the engines that got commands, by the engine's name.
    pub pages: HashMap<String, CommandPage>,
    /// See [`Factory::build`].
    pub build: String,
    /// Other devices of the same host, without a driver.
    pub peers: Vec<Peer>,
    _numbers: Vec<DeviceNumber>,
}

/// Another device of a host. Its registers, engines and PM window are used, but it gets no NVMe
/// commands.
pub struct Peer {
    pub slot: usize,
    pub design: design::Design,
    pub engines: Vec<EngineInstance>,
    pub inventory: Inventory,
}

fn inventory(host: &mut SimHost) -> PyResult<Inventory> {
    let inventory = Inventory::read(host).map_err(raise)?;
    for delay in inventory.delays() {
        delay.check(host).map_err(raise)?;
    }
    Ok(inventory)
}

impl Session {
    /// Powers the devices, and starts the driver of the first one. `others` are those of its peers.
    pub fn start(
        driver: DriverConfig,
        factory: Factory,
        media: Media,
        tracer: Option<Tracer>,
        others: Vec<(Factory, Media)>,
    ) -> PyResult<Session> {
        let mut numbers = Vec::new();
        let mut identity = |factory: &Factory| {
            let number = DeviceNumber::lowest_free();
            let place = DeviceInstance::Number(number.0);
            numbers.push(number);
            Identity::of(factory.design(), place).map_err(raise)
        };
        let mut testbed = Testbed::of(&factory)
            .media(vec![media])
            .identities(vec![identity(&factory)?])
            .host(HostParameters::default());
        let (factories, storages): (Vec<_>, Vec<_>) = others.into_iter().unzip();
        for (other, media) in factories.iter().zip(storages) {
            testbed = testbed.beside(other, media, Some(identity(other)?));
        }
        let testbed = testbed.build().map_err(raise)?;
        let machine = testbed.machine();
        let traced = |tracer| machine.with_machine(|m| m.system_mut().set_tracer(0, Some(tracer)));
        if !tracer.is_none_or(traced) {
            return Err(raise(NO_TRACE));
        }
        let peers = (1..testbed.devices()).map(|slot| {
            let (design, engines) = (testbed.design(slot), testbed.engines(slot));
            (slot, design.clone(), engines.to_vec())
        });
        let peers: Vec<_> = peers.collect();
        let vectors = factory.design().nvme.io_queues as u16 + 1;
        let mut controller =
            NvmeDriver::start(testbed.into_sim_host(vectors), driver).map_err(raise)?;
        let own = inventory(controller.host_mut())?;
        let peers = peers.into_iter().map(|(slot, design, engines)| {
            let inventory = controller.host_mut().with_device(slot, inventory)?;
            Ok(Peer {
                slot,
                design,
                engines,
                inventory,
            })
        });
        let peers = peers.collect::<PyResult<_>>()?;
        Ok(Session {
            controller,
            inventory: own,
            pages: HashMap::new(),
            build: factory.build(),
            peers,
            _numbers: numbers,
        })
    }

    /// The host of the devices.
    pub fn host(&mut self) -> &mut SimHost {
        self.controller.host_mut()
    }

    /// A peer by its number, from 0 on.
    pub fn peer(&self, number: usize) -> PyResult<&Peer> {
        let count = self.peers.len();
        let none = || raise(format!("peer = {number}: the device has {count} of them"));
        self.peers.get(number).ok_or_else(none)
    }

    /// Calls `act` for a peer.
    pub fn with_peer<R>(
        &mut self,
        number: usize,
        act: impl FnOnce(&mut SimHost) -> R,
    ) -> PyResult<R> {
        let slot = self.peer(number)?.slot;
        Ok(self.host().with_device(slot, act))
    }
}

/// The number of a device of this process: the lowest free one. Consecutive devices get the same
/// number, so runs are repeatable.
struct DeviceNumber(u32);

static NUMBERS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

impl DeviceNumber {
    fn lowest_free() -> DeviceNumber {
        let mut used = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        let free = (0..).find(|n| !used.contains(n)).unwrap_or(u32::MAX);
        used.insert(free);
        DeviceNumber(free)
    }
}

impl Drop for DeviceNumber {
    fn drop(&mut self) {
        let mut used = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        used.remove(&self.0);
    }
}

/// State that only one call at a time may use.
#[derive(Default)]
pub struct SessionState {
    /// `None` after the shutdown.
    pub session: Option<Session>,
    /// Trace of commands that is being written.
    pub trace: Option<Arc<Mutex<TraceFile>>>,
}

impl SessionState {
    /// The session. It is an error after the shutdown.
    pub fn session(&mut self) -> PyResult<&mut Session> {
        self.session
            .as_mut()
            .ok_or_else(|| raise("the device was shut down"))
    }

    /// Sets or removes the receiver of command events.
    pub fn set_tracer(&mut self, tracer: Option<Tracer>) -> PyResult<()> {
        let host = self.session()?.host();
        let (number, wanted) = (host.device(), tracer.is_some());
        if !host.system_mut().set_tracer(number, tracer) && wanted {
            return Err(raise(NO_TRACE));
        }
        Ok(())
    }

    /// Ends the trace, and returns the number of its commands.
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
