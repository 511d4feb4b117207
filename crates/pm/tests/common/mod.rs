// SPDX-License-Identifier: Apache-2.0

//! Hosts with devices for the tests.
#![allow(dead_code)]

pub mod fake;

use std::sync::Arc;

use design::{Design, HostProfile};
use device::Model;
use fake::{FakeDevice, Image, Journal};
use host::{Machine, SharedMachine};
use pm::{EngineHandle, Options};
use sim::{Device, HostConfig, LinkConfig, Time};
use testbed::{attach, host_parameters, Testbed};

/// Bytes of the fake's window.
pub const WINDOW: u64 = 8 << 20;
/// Offset of the command page.
pub const PAGE: u64 = 0x4_0000;

pub struct Bench {
    pub shared: SharedMachine,
    /// The content of the fake.
    pub image: Image,
    pub journal: Journal,
    pub engine: Arc<EngineHandle>,
    /// The engines of all devices, `engine` included.
    pub engines: Vec<Arc<EngineHandle>>,
}

impl Bench {
    /// A host whose fake device has this content.
    pub fn new(bytes: Vec<u8>) -> Bench {
        let profile = HostProfile::find("nearpm").unwrap();
        let (host, link) = profile.attached(&HostConfig::default(), &LinkConfig::default());
        let window = bytes.len() as u64;
        let device = FakeDevice::new(bytes, Time::ns(105));
        let (image, journal) = (device.image.clone(), device.journal.clone());
        let device: Box<dyn Device + Send> = Box::new(device);
        let system = attach(&host, [(device, link, window)]).unwrap();
        let engine = Arc::new(EngineHandle::new(0, PAGE));
        Bench {
            shared: SharedMachine::new(Machine::new(system, host_parameters(&profile))),
            image,
            journal,
            engines: vec![engine.clone()],
            engine,
        }
    }

    pub fn empty() -> Bench {
        Bench::sized(WINDOW)
    }

    pub fn sized(bytes: u64) -> Bench {
        // Nonzero, so that no test depends on the former content.
        Bench::new(vec![0xA5; bytes as usize])
    }

    /// A host with the default device on the fast model, and media of `bytes` bytes.
    pub fn fast(bytes: u64) -> Bench {
        Bench::of("default", &format!("media.bytes = {bytes}"), Model::Fast, 1)
    }

    /// The same with one channel, which keeps posted stores in order.
    pub fn single() -> Bench {
        Bench::of("nearpm-paper", "", Model::Fast, 1)
    }

    /// A host with devices that have the crash-consistency engine, on the model that
    /// `NEARSIDE_MODEL` names, else the fast one.
    pub fn near(devices: usize) -> Bench {
        let model = Model::named(Model::Fast).unwrap();
        Bench::of("nearpm", "", model, devices)
    }

    /// A host whose device is attached by CXL. Its media are slow, so stores wait in front of them.
    pub fn cxl() -> Bench {
        let model = Model::named(Model::Fast).unwrap();
        Bench::on_host("cxl", "nearpm-cxl", "media.profile = \"pcm\"", model, 1)
    }

    fn of(design: &str, values: &str, model: Model, devices: usize) -> Bench {
        Bench::on_host("nearpm", design, values, model, devices)
    }

    fn on_host(host: &str, design: &str, values: &str, model: Model, devices: usize) -> Bench {
        let design = Design::find(design).unwrap();
        let text = format!("{values}\n[cpu]\nprofile = \"{host}\"\n");
        let design = design.with_values(&text).unwrap();
        let testbed = Testbed::builder(&design).model(model).devices(devices);
        let testbed = testbed.build().unwrap();
        let mut engines = EngineHandle::of_testbed(&testbed);
        if engines.is_empty() {
            engines.push(Arc::new(EngineHandle::new(0, PAGE)));
        }
        Bench {
            shared: testbed.machine().clone(),
            image: Image::default(),
            journal: Journal::default(),
            engine: engines[0].clone(),
            engines,
        }
    }

    pub fn options(&self, offloaded: bool) -> Options {
        match offloaded {
            true => Options::with_engines(&self.engines),
            false => Options::default(),
        }
    }

    /// The power is back.
    pub fn restart(&self) {
        self.shared.with_machine(|machine| machine.restart());
        self.engines.iter().for_each(|engine| engine.restart());
    }

    pub fn now(&self) -> Time {
        self.shared.with_machine(|machine| machine.system().now())
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.image.lock().unwrap().clone()
    }
}
