// SPDX-License-Identifier: Apache-2.0

//! Devices and their hosts for the tests, on the model that `NEARSIDE_MODEL` names, by default the
//! fast model.

pub mod bench;
pub mod cuts;
pub mod designs;
pub mod nearpm;
pub mod queue;

use std::fs::File;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::FileExt;

use design::{Cpu, Design};
use device::{Factory, Model, RtlOptions};
use driver::{DriverConfig, HostCosts, NvmeDriver, SimHost};
use rtl::bitstream::stderr_progress;
use sim::memctrl::MemoryModel;
use sim::{Counter, Device, Media, Time};
use testbed::driver_costs;

pub use designs::{design, root};

/// What simulates the devices of these tests.
pub fn model() -> Model {
    Model::named(Model::Fast).unwrap()
}

/// The number of repetitions. The RTL model is a hundred times slower, and repeats only some of
/// what runs on the fast model.
pub fn rounds(fast: u64, rtl: u64) -> u64 {
    match model() {
        Model::Fast => fast,
        Model::Rtl => rtl,
    }
}

/// The factory of a design. With `CLOCK_GATE_BYPASS=1` the clocks of the RTL always run.
pub fn factory(design: &Design) -> Factory {
    factory_for(design, None)
}

/// The same for a host that may owe an answer for this time.
pub fn factory_for(design: &Design, link_patience: Option<Time>) -> Factory {
    made_with(
        design,
        RtlOptions {
            link_patience,
            ..RtlOptions::default()
        },
    )
}

/// The same with these options.
pub fn made_with(design: &Design, options: RtlOptions) -> Factory {
    let bypass = std::env::var("CLOCK_GATE_BYPASS").unwrap_or_default();
    let options = RtlOptions {
        hang_cycles: Some(2_000_000),
        free_clocks: !matches!(bypass.as_str(), "" | "0"),
        ..options
    };
    let mut progress = stderr_progress(&design.name);
    Factory::new(design, model(), &options, &mut progress).unwrap()
}

/// The same with another memory for each channel of the storage.
pub fn factory_with(design: &Design, memory: MemoryModel) -> Factory {
    let mut factory = factory(design);
    factory.set_memory(memory);
    factory
}

/// A device, a host without a driver, and the contents of its storage.
pub struct Bench {
    bench: bench::Bench<dyn Device + Send>,
    storage: Option<File>,
}

impl Deref for Bench {
    type Target = bench::Bench<dyn Device + Send>;

    fn deref(&self) -> &Self::Target {
        &self.bench
    }
}

impl DerefMut for Bench {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.bench
    }
}

impl Bench {
    /// On empty media.
    pub fn new(design: &Design) -> Bench {
        let media = Media::shared(design.media.bytes.0).unwrap();
        Bench::on(design, media)
    }

    /// The same with another memory for each channel of the storage.
    pub fn with(design: &Design, memory: MemoryModel) -> Bench {
        let media = Media::shared(design.media.bytes.0).unwrap();
        Bench::made(&factory_with(design, memory), media)
    }

    pub fn on(design: &Design, media: Media) -> Bench {
        Bench::made(&factory(design), media)
    }

    /// On empty media, with a host that may owe an answer forever.
    pub fn patient(design: &Design) -> Bench {
        let media = Media::shared(design.media.bytes.0).unwrap();
        Bench::made(&factory_for(design, Some(Time::MAX)), media)
    }

    fn made(factory: &Factory, media: Media) -> Bench {
        // The device owns its media; a second view of them needs no access to it.
        let storage = media
            .shared_file()
            .map(|file| file.try_clone_to_owned().unwrap().into());
        Bench {
            bench: bench::Bench::of(factory.device(media).unwrap()),
            storage,
        }
    }

    fn storage(&self) -> &File {
        let file = self.storage.as_ref();
        file.expect("media that can be looked into are made by Media::shared")
    }

    /// What the storage holds, read without the device.
    pub fn stored(&self, at: u64, len: usize) -> Vec<u8> {
        let mut data = vec![0; len];
        self.storage().read_exact_at(&mut data, at).unwrap();
        data
    }

    /// A byte of it.
    pub fn byte(&self, at: u64) -> u8 {
        self.stored(at, 1)[0]
    }

    /// Changes what the storage holds without the device.
    pub fn store(&self, at: u64, data: &[u8]) {
        self.storage().write_all_at(data, at).unwrap();
    }

    /// A counter of the device.
    pub fn counter(&self, name: &str) -> f64 {
        value(&self.device.counters(), name)
    }
}

/// Two memories and a copy between them, at 10 MHz. On the RTL model it is one of several engines
/// of other tests, so that all have one bitstream.
pub fn two_memories() -> Design {
    match model() {
        Model::Rtl => designs::mailboxes(),
        Model::Fast => designs::copy_alone(),
    }
}

/// A bench of that design.
pub struct Copying {
    bench: Bench,
    /// Registers of the copy in BAR4.
    pub copy: u64,
    /// Its command page.
    pub page: u64,
}

impl Deref for Copying {
    type Target = Bench;

    fn deref(&self) -> &Bench {
        &self.bench
    }
}

impl DerefMut for Copying {
    fn deref_mut(&mut self) -> &mut Bench {
        &mut self.bench
    }
}

impl Copying {
    pub fn new() -> Copying {
        Copying::of(&two_memories())
    }

    pub fn of(design: &Design) -> Copying {
        let engines = design.engines().unwrap();
        let copy = engines.iter().find(|engine| engine.engine.name == "copy0");
        let copy = copy.unwrap();
        Copying {
            bench: Bench::new(design),
            copy: copy.offset,
            page: copy.page.unwrap(),
        }
    }

    /// Runs this number of cycles.
    pub fn cycles(&mut self, cycles: u64) {
        self.run(Time(CYCLE.0 * cycles));
    }
}

/// A cycle of that design.
const CYCLE: Time = Time::ns(100);

/// The host of a device at a link.
pub fn host_of(design: &Design, device: Box<dyn Device + Send>) -> SimHost {
    host_with(design, device, driver_costs(&Cpu::default()), 0)
}

/// The same with costs, and this number of interrupt vectors.
pub fn host_with(
    design: &Design,
    device: Box<dyn Device + Send>,
    costs: HostCosts,
    vectors: u16,
) -> SimHost {
    testbed::host_of(device, design.window_bytes(), costs, vectors).unwrap()
}

/// A device on empty media.
pub fn device(factory: &Factory, design: &Design) -> Box<dyn Device + Send> {
    let media = Media::memory(design.media.bytes.0).unwrap();
    factory.device(media).unwrap()
}

/// A driver for a device of `designs/`, at a link.
pub fn controller(name: &str) -> NvmeDriver<SimHost> {
    let design = design(name);
    let device = device(&factory(&design), &design);
    NvmeDriver::start(host_of(&design, device), DriverConfig::default()).unwrap()
}

/// Lets time pass.
pub fn rest(host: &mut SimHost, span: Time) {
    let system = host.system_mut();
    let until = system.now() + span;
    system.advance_until(until).unwrap();
}

/// A counter of the device.
pub fn counter(host: &SimHost, name: &str) -> f64 {
    let device = host.system().device(host.device()).unwrap();
    value(&device.counters(), name)
}

fn value(counters: &[Counter], name: &str) -> f64 {
    let found = counters.iter().find(|counter| counter.name == name);
    found.unwrap_or_else(|| panic!("no counter {name}")).value
}
