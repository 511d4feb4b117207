//! What a pool is made of, and how it is used.

use std::sync::Arc;

use host::Fence;
use sim::Time;

use crate::{EngineHandle, Error, Listener, Result};

/// What makes a transaction whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// Old bytes go to a log before new ones are stored in place.
    Undo,
    /// New bytes go to a log, and to their place when the transaction is committed.
    Redo,
    /// Pages of 4 KiB go to a log before something is stored in them.
    Checkpoint,
    /// Pages of 4 KiB are copied; the copies are changed, and take the place of the old ones when the transaction is committed.
    Shadow,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Mechanism; 4] = [
        Mechanism::Undo,
        Mechanism::Redo,
        Mechanism::Checkpoint,
        Mechanism::Shadow,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Undo => "undo",
            Mechanism::Redo => "redo",
            Mechanism::Checkpoint => "checkpoint",
            Mechanism::Shadow => "shadow",
        }
    }

    /// True when it protects pages, so that only one transaction of a pool is under way at a time.
    pub fn is_paged(self) -> bool {
        matches!(self, Mechanism::Checkpoint | Mechanism::Shadow)
    }
}

impl std::str::FromStr for Mechanism {
    type Err = Error;

    fn from_str(text: &str) -> Result<Mechanism> {
        let found = Mechanism::ALL.into_iter().find(|m| m.name() == text);
        found.ok_or_else(|| {
            let names = Mechanism::ALL.map(Mechanism::name).join(", ");
            Error::Invalid(format!("mechanism = {text:?}: allowed are {names}"))
        })
    }
}

/// What a pool is made of: chosen when it is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// What the program keeps there, in 1 to 47 bytes; a pool is opened with the same name.
    pub name: String,
    /// What makes transactions whole.
    pub mechanism: Mechanism,
    /// Threads that may use it at a time, 1 to 16: each has a log.
    pub threads: u8,
    /// Bytes of each log: a multiple of 4096.
    pub log_bytes: u64,
    /// Pages for copies, with [`Mechanism::Shadow`]: as many as a transaction may change.
    pub spare_pages: u64,
}

impl Layout {
    /// A layout of that name: undo logs of 64 KiB for 4 threads, 64 pages for copies.
    pub fn new(name: &str) -> Layout {
        Layout {
            name: name.into(),
            mechanism: Mechanism::Undo,
            threads: 4,
            log_bytes: 64 << 10,
            spare_pages: 64,
        }
    }

    /// With another mechanism.
    pub fn with_mechanism(self, mechanism: Mechanism) -> Layout {
        Layout { mechanism, ..self }
    }
}

/// Time that the library's own code takes on the CPU, beside loads, stores, flushes and fences. All are assumptions: some
/// tens of instructions each at 2.5 GHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Begin and end of a transaction.
    pub transaction: Time,
    /// A look at the ranges that a transaction has.
    pub range: Time,
    /// The header of a log record, or a command.
    pub record: Time,
    /// Finding room for an object, or giving it back.
    pub alloc: Time,
    /// CRC-32C of 64 bytes: 8 instructions of 3 cycles' latency.
    pub crc_line: Time,
    /// Where a page is, or where lines of it are that have not moved with it: a load that hits the cache.
    pub page: Time,
    /// What it costs to find out that a page is written for the first time, with the mechanisms that protect pages. 0: the library is told of
    /// all stores, so no page is protected. A page fault caught with `mprotect` and a signal takes some 5 us.
    pub trap: Time,
}

impl Default for Costs {
    fn default() -> Costs {
        Costs {
            transaction: Time::ns(20),
            range: Time::ns(10),
            record: Time::ns(10),
            alloc: Time::ns(40),
            crc_line: Time::ns(10),
            page: Time::ns(2),
            trap: Time::ZERO,
        }
    }
}

/// Who sees to it that engines of several devices delete what a transaction has kept only when all of them have completed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Synchronisation {
    /// The devices, which tell each other; the host waits for none of that.
    #[default]
    Devices,
    /// The host: it waits until each device has completed its part, and tells all of them. For comparison.
    Host,
    /// Nobody: each device deletes when it has completed its own part. The control of a crash test, which then has to find violations.
    Disabled,
}

impl Synchronisation {
    /// All that a program may choose.
    pub const ALL: [Synchronisation; 2] = [Synchronisation::Devices, Synchronisation::Host];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Synchronisation::Devices => "devices",
            Synchronisation::Host => "host",
            Synchronisation::Disabled => "nobody",
        }
    }
}

impl std::str::FromStr for Synchronisation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Synchronisation> {
        let found = Synchronisation::ALL.into_iter().find(|s| s.name() == text);
        found.ok_or_else(|| {
            let names = Synchronisation::ALL.map(Synchronisation::name).join(", ");
            Error::Invalid(format!("synchronise = {text:?}: allowed are {names}"))
        })
    }
}

/// How a pool is used: chosen each time it is created or opened.
#[derive(Clone)]
pub struct Options {
    /// What a fence waits for. Where writes are posted only [`Fence::ReadBack`] makes a commit durable; with any other one engines of
    /// several devices may even come to different transactions after a loss of power.
    pub fence: Fence,
    /// The device makes posted stores persistent in their order, as one with a single channel does: without an engine, a fence that only keeps
    /// stores behind others is an `sfence`, and the last one of a transaction alone waits for what `fence` says.
    pub ordered: bool,
    /// The engine that the mechanism is offloaded to, of the pool's first device; without one the CPU does it.
    pub engine: Option<Arc<EngineHandle>>,
    /// With an engine: those of the pool's other devices, in their order.
    pub peers: Vec<Arc<EngineHandle>>,
    /// With several engines: who synchronises them.
    pub synchronise: Synchronisation,
    /// Number of the pool on the engine, 0 to 15.
    pub pool: u8,
    /// Process that the pool belongs to on the engine.
    pub process: u16,
    /// With an engine: it recovers the logs, by what stands in them; else the CPU does.
    pub engine_recovers: bool,
    /// What the library's code takes.
    pub costs: Costs,
    /// Hears what the library does for crash consistency, and when.
    pub listener: Option<Listener>,
    /// False is the control of a crash test, which then has to find violations: nothing is kept before it is changed.
    pub snapshots: bool,
}

impl Default for Options {
    /// On the CPU; fences wait for a read-back, as they must where writes are posted.
    fn default() -> Options {
        Options {
            fence: Fence::ReadBack,
            ordered: false,
            engine: None,
            peers: Vec::new(),
            synchronise: Synchronisation::default(),
            pool: 0,
            process: 1,
            engine_recovers: false,
            costs: Costs::default(),
            listener: None,
            snapshots: true,
        }
    }
}

impl Options {
    /// With an engine.
    pub fn offloaded(engine: &Arc<EngineHandle>) -> Options {
        Options {
            engine: Some(engine.clone()),
            ..Options::default()
        }
    }

    /// With an engine on each of the pool's devices.
    pub fn with_engines(engines: &[Arc<EngineHandle>]) -> Options {
        Options {
            engine: engines.first().cloned(),
            peers: engines.iter().skip(1).cloned().collect(),
            ..Options::default()
        }
    }

    /// All of its engines.
    pub(crate) fn engines(&self) -> impl Iterator<Item = &Arc<EngineHandle>> {
        self.engine.iter().chain(&self.peers)
    }
}
