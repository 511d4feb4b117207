//! A host with a device, a pool with a workload's tables on it, and another program's pool beside.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use design::Design;
use device::{Factory, Omission};
use host::{Cpu, Fence, Machine, Shared};
use pm::{Engine, Error, Layout, Mechanism, Options, Pool, Ptr, Thread};
use sim::{Bar, System};
use workloads::Workload;

use crate::journal::Journal;

/// Who does what makes transactions whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// The CPU.
    Cpu,
    /// The device's crash-consistency engine.
    Device,
}

/// What is left out on purpose, so that the test has to find violations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Without {
    /// Nothing is kept before it is changed.
    Snapshots,
    /// No fence waits for the device.
    Fences,
    /// The device's access hook lets stores and loads pass whatever commands they overlap.
    Hook,
    /// The device's commands do not wait for older ones.
    Commands,
    /// The device saves nothing when its power fails.
    Domain,
}

impl Without {
    /// What the device leaves out then.
    fn omission(self) -> Option<Omission> {
        match self {
            Without::Snapshots | Without::Fences => None,
            Without::Hook => Some(Omission::Hook),
            Without::Commands => Some(Omission::Commands),
            Without::Domain => Some(Omission::Domain),
        }
    }
}

macro_rules! named {
    ($type:ident, $what:literal, $($name:literal $value:ident),*) => {
        impl $type {
            /// All of them.
            pub const ALL: &[$type] = &[$($type::$value),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$value => $name,)*
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<$type, String> {
                let found = $type::ALL.iter().find(|one| one.name() == text);
                found.copied().ok_or_else(|| {
                    let names: Vec<_> = $type::ALL.iter().map(|one| one.name()).collect();
                    format!("{} = {text:?}: allowed are {}", $what, names.join(", "))
                })
            }
        }
    };
}

named!(By, "by", "cpu" Cpu, "device" Device);
named!(
    Without,
    "without",
    "snapshots" Snapshots,
    "fences" Fences,
    "hook" Hook,
    "commands" Commands,
    "domain" Domain
);

/// Places in the window, in pools of that many bytes.
pub(crate) const PLACE: u64 = 4096;
const OTHER_BYTES: u64 = 1 << 20;
/// What the other program's object holds, and what its transaction under way has stored there.
const OTHER: ([u64; 512], [u64; 512]) =
    ([0x0707_0707_0707_0707; 512], [0x0808_0808_0808_0808; 512]);
/// The other program on the engine.
const OTHER_POOL: u8 = 1;
const OTHER_PROCESS: u16 = 2;
const OTHER_NAME: &str = "another program";

/// See the module.
pub(crate) struct Stage {
    pub shared: Shared,
    pub cpu: Cpu,
    pub journal: Journal,
    pub workload: Workload,
    pub pool: Pool,
    pub seed: u64,
    engine: Option<Arc<Engine>>,
    other: Pool,
    pub other_place: u64,
    object: Ptr<[u64; 512]>,
}

impl Stage {
    pub fn new(
        design: &Design,
        factory: &Factory,
        workload: Workload,
        mechanism: Mechanism,
        by: By,
        without: Option<Without>,
        seed: u64,
    ) -> Result<Stage, String> {
        let omits = without.and_then(Without::omission);
        if omits.is_some() && by == By::Cpu {
            return Err("this control is of the device's engine: by = \"device\" has it".into());
        }
        let text = |e: &dyn fmt::Display| e.to_string();
        let root = rtl::bitstream::repo_root().map_err(|e| text(&e))?;
        let media = factory.media().map_err(|e| text(&e))?;
        let device = factory.omitting(media, omits).map_err(|e| text(&e))?;
        let (host, link) = design.attached().map_err(|e| text(&e))?;
        let mut system = System::new(&host).map_err(|e| text(&e))?;
        let windows = [
            (Bar::Nvme, 64 << 10),
            (Bar::Pm, design.window_bytes()),
            (Bar::Control, 1 << 20),
        ];
        let added = system.add_device(device, &link, &windows);
        added.map_err(|e| text(&e))?;
        system.watch_taken();
        let profile = design.cpu.host().map_err(|e| text(&e))?;
        let mut machine = Machine::new(system, &profile);
        let journal = Journal::of(&mut machine);
        let shared = Shared::new(machine);
        let cpu = shared.cpu(0);
        let engines = design.engines(&root).map_err(|e| text(&e))?;
        let page = engines.iter().find(|e| e.manifest.name == "nearpm");
        let engine = match (by, page.and_then(|engine| engine.page)) {
            (By::Cpu, _) => None,
            (By::Device, Some(page)) => Some(Arc::new(Engine::new(0, page))),
            (By::Device, None) => {
                let name = &design.name;
                return Err(format!(
                    "design {name:?} has no crash-consistency engine: by = \"device\" needs one, as that of the design \"nearpm\""
                ));
            }
        };
        let own = options(engine.as_ref(), without);
        let layout = workload.layout(mechanism);
        let made = || -> Result<_, Error> {
            let bytes = workload.pool_bytes();
            let pool = Pool::create(&cpu, 0, PLACE, bytes, &layout, &own)?;
            let mut thread = pool.thread(&cpu)?;
            workload.create(&mut thread, seed)?;
            drop(thread);
            let other_place = PLACE + bytes;
            let layout = Layout::new(OTHER_NAME);
            let options = other_options(engine.as_ref());
            let other = Pool::create(&cpu, 0, other_place, OTHER_BYTES, &layout, &options)?;
            let mut thread = other.thread(&cpu)?;
            let object = thread.run(|tx| tx.create(&OTHER.0))?;
            drop(thread);
            Ok((pool, other, other_place, object))
        };
        let (pool, other, other_place, object) = made().map_err(|e| text(&e))?;
        Ok(Stage {
            shared,
            cpu,
            journal,
            workload,
            pool,
            seed,
            engine,
            other,
            other_place,
            object,
        })
    }

    /// Runs something while the other program has a transaction under way.
    pub fn beside_another(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let mut thread = self.other.thread(&self.cpu)?;
        let mut outcome = Ok(());
        let aborted = thread.run(|tx| {
            tx.set(self.object, &OTHER.1)?;
            outcome = work();
            Err::<(), _>(Error::Aborted)
        });
        match aborted {
            Err(Error::Aborted) | Ok(()) => outcome,
            // After a loss of power nothing can be aborted.
            Err(error) => outcome.and(Err(error)),
        }
    }

    /// The power is back.
    pub fn restart(&self) {
        self.shared.with(|machine| machine.restart());
        if let Some(engine) = &self.engine {
            engine.restart();
        }
    }

    /// Opens what a loss of power has left of the workload's pool.
    pub fn open(&self, engine_recovers: bool) -> Result<Pool, Error> {
        let options = Options {
            engine_recovers,
            ..options(self.engine.as_ref(), None)
        };
        Pool::open(&self.cpu, 0, PLACE, self.workload.name(), &options)
    }

    /// Looks whether the other program has what it had before its transaction.
    pub fn check_other(&self) -> Result<(), String> {
        let text = |error: Error| format!("the other program's pool: {error}");
        let options = other_options(self.engine.as_ref());
        let pool = Pool::open(&self.cpu, 0, self.other_place, OTHER_NAME, &options);
        let pool = pool.map_err(text)?;
        let mut thread: Thread = pool.thread(&self.cpu).map_err(text)?;
        let found = thread.get(self.object).map_err(text)?;
        if found != OTHER.0 {
            let other = found.iter().filter(|n| **n != OTHER.0[0]).count();
            return Err(format!(
                "the other program's object has {other} of 512 words that it did not have before its transaction"
            ));
        }
        drop(thread);
        pool.check(&self.cpu).map(drop).map_err(text)
    }
}

fn options(engine: Option<&Arc<Engine>>, without: Option<Without>) -> Options {
    Options {
        engine: engine.cloned(),
        snapshots: without != Some(Without::Snapshots),
        fence: match without {
            Some(Without::Fences) => Fence::Posted,
            _ => Fence::ReadBack,
        },
        ..Options::default()
    }
}

fn other_options(engine: Option<&Arc<Engine>>) -> Options {
    Options {
        pool: OTHER_POOL,
        process: OTHER_PROCESS,
        ..options(engine, None)
    }
}
