//! Hosts with one device for the tests.
#![allow(dead_code)]

pub mod double;

use std::sync::Arc;

use design::HostProfile;
use double::{Double, Image, Journal};
use host::{Machine, Shared};
use pm::{Engine, Options};
use sim::{Bar, HostConfig, LinkConfig, System, Time};

/// Bytes of the double's window.
pub const WINDOW: u64 = 8 << 20;
/// Where its command page is.
pub const PAGE: u64 = 0x4_0000;

pub struct Bench {
    pub shared: Shared,
    pub image: Image,
    pub journal: Journal,
    pub engine: Arc<Engine>,
}

impl Bench {
    /// A host whose device holds this.
    pub fn new(bytes: Vec<u8>) -> Bench {
        let profile = HostProfile::find("nearpm").unwrap();
        let (host, link) = profile.attached(&HostConfig::default(), &LinkConfig::default());
        let mut system = System::new(&host).unwrap();
        let device = Double::new(bytes, Time::ns(105));
        let (image, journal) = (device.image.clone(), device.journal.clone());
        let windows = [(Bar::Pm, WINDOW), (Bar::Control, 1 << 20)];
        system
            .add_device(Box::new(device), &link, &windows)
            .unwrap();
        Bench {
            shared: Shared::new(Machine::new(system, &profile)),
            image,
            journal,
            engine: Arc::new(Engine::new(0, PAGE)),
        }
    }

    pub fn empty() -> Bench {
        // Not zeros: nothing may depend on what stood there.
        Bench::new(vec![0xA5; WINDOW as usize])
    }

    pub fn options(&self, offloaded: bool) -> Options {
        match offloaded {
            true => Options::offloaded(&self.engine),
            false => Options::default(),
        }
    }

    pub fn now(&self) -> Time {
        self.shared.with(|machine| machine.system().now())
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.image.lock().unwrap().clone()
    }
}
