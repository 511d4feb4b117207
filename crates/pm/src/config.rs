// SPDX-License-Identifier: Apache-2.0

//! The layout of a pool, chosen at its creation, and the options of its use.

use std::sync::Arc;

use host::Fence;
use sim::Time;
use spec::nearpm::{next_record, Tracking, FIRST_RECORD, LINE, TRACKED_LINES};

use crate::{EngineHandle, Error, Listener, Result};

/// How a transaction is made atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// Old bytes go to a log before new ones are stored in place.
    Undo,
    /// New bytes go to a log; the commit applies them to their place.
    Redo,
    /// Pages of 4 KiB go to a log before the first store to them.
    Checkpoint,
    /// Pages of 4 KiB are copied and the copies are changed. The commit puts the copies in the
    /// place of the old pages.
    Shadow,
}

impl Mechanism {
    /// All mechanisms.
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

    /// True for the mechanisms that protect pages: only one transaction of a pool is under way at a
    /// time.
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

/// The layout of a pool: chosen at its creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The name of the layout, 1 to 47 bytes: a pool is opened with the name of its creation.
    pub name: String,
    /// How transactions are made atomic.
    pub mechanism: Mechanism,
    /// Threads that may use the pool at a time, 1 to 16: each has a log.
    pub threads: u8,
    /// Bytes of each log: a multiple of 4096.
    pub log_bytes: u64,
    /// Pages for copies, with [`Mechanism::Shadow`]: the most that a transaction may change.
    pub spare_pages: u64,
    /// With an engine, it makes the records of the pool's one thread without commands. Undo logs
    /// and checkpoints then have a record for each line. Shadow paging becomes an undo log, and the
    /// pool has no spare pages.
    ///
    /// An engine that has the pool mapped records all stores to it. So the CPU alone uses it only
    /// after the engine has unmapped it, by [`Pool::close`](crate::Pool::close); a
    /// [`Session`](crate::session::Session) sees to that.
    pub tracked: bool,
}

impl Layout {
    /// A layout of that name: undo logs of 64 KiB for 4 threads, 64 spare pages.
    pub fn new(name: &str) -> Layout {
        Layout {
            name: name.into(),
            mechanism: Mechanism::Undo,
            threads: 4,
            log_bytes: 64 << 10,
            spare_pages: 64,
            tracked: false,
        }
    }

    /// With another mechanism.
    pub fn with_mechanism(self, mechanism: Mechanism) -> Layout {
        Layout { mechanism, ..self }
    }

    /// A tracked pool, which has one thread.
    pub fn with_tracking(self) -> Layout {
        Layout {
            tracked: true,
            threads: 1,
            ..self
        }
    }

    /// Pages change places: with shadow paging that is not tracked.
    pub(crate) fn has_pages(&self) -> bool {
        self.mechanism == Mechanism::Shadow && !self.tracked
    }

    /// What the engine records without commands.
    pub(crate) fn tracking(&self) -> Tracking {
        match (self.tracked, self.mechanism) {
            (false, _) => Tracking::Disabled,
            (true, Mechanism::Checkpoint) => Tracking::Checkpoint,
            (true, _) => Tracking::Undo,
        }
    }

    /// Most lines that a transaction of a tracked pool may change.
    pub(crate) fn tracked_lines(&self) -> u64 {
        let each = next_record(0, LINE);
        (self.log_bytes.saturating_sub(FIRST_RECORD) / each).min(TRACKED_LINES as u64)
    }
}

/// Time of the library's own code on the CPU, beside loads, stores, flushes and fences. All values
/// are assumptions: some tens of instructions each at 2.5 GHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Begin and end of a transaction.
    pub transaction: Time,
    /// A look-up in a transaction's set of ranges.
    pub range: Time,
    /// The header of a log record, or a command.
    pub record: Time,
    /// Allocating or freeing an object.
    pub alloc: Time,
    /// CRC-32C of 64 bytes: 8 instructions of 3 cycles' latency.
    pub crc_line: Time,
    /// A look-up of a page, or of its lines that are still in its former place: a load that hits
    /// the cache.
    pub page: Time,
    /// Detecting the first store to a page, with the mechanisms that protect pages. 0: the program
    /// reports all stores to the library, so no page is protected. A page fault caught with
    /// `mprotect` and a signal takes some 5 us.
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

/// How several devices delete their logs only after all of them have completed the transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Synchronisation {
    /// By peers: the devices notify each other, and the host does not wait for that.
    #[default]
    Devices,
    /// By the host: it waits until each device has completed its part, then notifies all of them.
    /// For comparison.
    Host,
    /// None: each device deletes its log after its part alone. A fault injection: crash tests have
    /// to find violations.
    Disabled,
}

impl Synchronisation {
    /// The values that a program may choose.
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
    /// What a fence waits for. Where writes are posted only [`Fence::ReadBack`] makes a commit
    /// durable. With any other fence the engines of several devices may even recover different
    /// transactions after a power loss.
    pub fence: Fence,
    /// The device makes posted stores persistent in their order, as one with a single channel does.
    /// Without an engine, a fence between stores is then an `sfence`. Only the last fence of a
    /// transaction waits for what `fence` says.
    pub ordered: bool,
    /// The engine of the pool's first device, to which the mechanism is offloaded; without one the
    /// CPU is the executor.
    pub engine: Option<Arc<EngineHandle>>,
    /// With an engine: those of the pool's other devices, in their order.
    pub peers: Vec<Arc<EngineHandle>>,
    /// With several engines: how they are synchronised.
    pub synchronise: Synchronisation,
    /// Number of the pool on the engine, 0 to 15.
    pub pool: u8,
    /// Process that the pool belongs to on the engine.
    pub process: u16,
    /// With an engine: it recovers the logs, whoever has written them; else the CPU does.
    pub engine_recovers: bool,
    /// Transactions of [`Thread::run_later`](crate::Thread::run_later): the one that makes this
    /// number not durable waits until all are, or with `words` until the oldest is. 1: each waits.
    /// None: only the program waits.
    pub group_commit: Option<u64>,
    /// With an engine on one device: the engine writes to host memory how far transactions are
    /// durable, where it can. A program then learns it by loads of host memory. Without
    /// `group_commit`, transactions then have a commit each instead of being a group.
    pub words: bool,
    /// Time of the library's own code.
    pub costs: Costs,
    /// Is called for each operation of the library that exists for crash consistency.
    pub listener: Option<Listener>,
    /// False is a fault injection: no old bytes are logged, and crash tests have to find
    /// violations.
    pub snapshots: bool,
    /// False is a fault injection: a ticket is durable when its transaction returns.
    pub proofs: bool,
}

impl Default for Options {
    /// On the CPU; fences read back, as posted writes require.
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
            group_commit: None,
            words: false,
            costs: Costs::default(),
            listener: None,
            snapshots: true,
            proofs: true,
        }
    }
}

impl Options {
    /// Offloaded to an engine.
    pub fn offloaded(engine: &Arc<EngineHandle>) -> Options {
        Options {
            engine: Some(engine.clone()),
            ..Options::default()
        }
    }

    /// Offloaded to an engine on each of the pool's devices.
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
