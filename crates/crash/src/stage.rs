// SPDX-License-Identifier: Apache-2.0

//! A host with devices, a pool with a workload's tables, and a second program's pool.

use std::sync::{Arc, Mutex, PoisonError};

use device::Factory;
use host::{Cpu, Fence, SharedMachine};
use pm::{
    ConsistencyOperation, EngineHandle, Error, Layout, Listener, Options, Pool, Ptr,
    Synchronisation, Thread,
};
use sim::Time;
use testbed::Testbed;
use workloads::Workload;

use crate::error::Error as CampaignError;
use crate::invariants::OrderLog;
use crate::journal::Journal;
use crate::options::{Campaign, Executor, InjectedFault};
use crate::report::InvariantViolation;
use crate::timeline::Timeline;

/// Place of the workload's pool in the window, in multiples of 4096.
pub(crate) const PLACE: u64 = 4096;
const OTHER_BYTES: u64 = 1 << 20;
/// Content of the second program's object, and the content that its open transaction has stored.
const OTHER: ([u64; 512], [u64; 512]) =
    ([0x0707_0707_0707_0707; 512], [0x0808_0808_0808_0808; 512]);
/// The second program's numbers on the engine.
const OTHER_POOL: u8 = 1;
const OTHER_PROCESS: u16 = 2;
const OTHER_NAME: &str = "another program";

/// The host, its devices and both pools.
pub(crate) struct Stage {
    pub shared: SharedMachine,
    pub cpu: Cpu,
    pub journal: Journal,
    /// The events of CPUs and devices, checked against the invariants, if the devices report them.
    pub log: Option<OrderLog>,
    /// A fault is injected.
    pub is_negative_control: bool,
    pub workload: Workload,
    pub pool: Pool,
    pub seed: u64,
    devices: Vec<usize>,
    engines: Vec<Arc<EngineHandle>>,
    synchronise: Synchronisation,
    /// When the CPU had submitted each command of the workload to an engine.
    pub commands: Arc<Mutex<Vec<Time>>>,
    other: Pool,
    pub other_place: u64,
    object: Ptr<[u64; 512]>,
}

impl Stage {
    pub fn new(
        factory: &Factory,
        workload: Workload,
        campaign: &Campaign,
    ) -> Result<Stage, CampaignError> {
        let Campaign {
            mechanism,
            executor,
            fault,
            seed,
            synchronise,
            ..
        } = *campaign;
        let omission = fault.and_then(InjectedFault::device_fault);
        if omission.is_some() && executor == Executor::Cpu {
            return Err(CampaignError::FaultOfEngine);
        }
        if fault == Some(InjectedFault::Peers)
            && (executor == Executor::Cpu || campaign.devices == 1)
        {
            return Err(CampaignError::FaultOfPeers);
        }
        let devices: Vec<usize> = (0..campaign.devices).collect();
        let testbed = Testbed::of(factory)
            .devices(campaign.devices)
            .fault(omission)
            .build()?;
        // With the CPU as executor there are no synchronisations to check.
        let engines = match executor {
            Executor::Cpu => Vec::new(),
            Executor::Device => EngineHandle::of_testbed(&testbed),
        };
        if engines.is_empty() && executor == Executor::Device {
            return Err(CampaignError::NoEngine(factory.design().name.clone()));
        }
        let page = engines.first().map(|engine| engine.page());
        let (log, journal) = testbed.machine().with_machine(|machine| {
            machine.system_mut().watch_accepted();
            let log = page.and_then(|page| OrderLog::of(machine, page));
            let journal = Journal::of(machine, log.clone());
            (log, journal)
        });
        let shared = testbed.machine().clone();
        let cpu = shared.cpu(0);
        let commands = Arc::<Mutex<Vec<Time>>>::default();
        let heard = commands.clone();
        let listener: Listener = Arc::new(move |part, _, end| {
            if part == ConsistencyOperation::Command {
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                heard.push(end);
            }
        });
        let own = Options {
            listener: Some(listener),
            // With words the campaign itself waits.
            group_commit: campaign.later.filter(|_| !campaign.words),
            words: campaign.words,
            proofs: fault != Some(InjectedFault::Durability),
            ..options(&engines, synchronise, fault)
        };
        let layout = match campaign.tracked {
            true => workload.layout(mechanism).with_tracking(),
            false => workload.layout(mechanism),
        };
        // As many bytes on each device as with one device: several devices have more logs.
        let (bytes, count) = (workload.pool_bytes(), devices.len() as u64);
        let pool = Pool::create(&cpu, devices.clone(), PLACE, bytes * count, &layout, &own)?;
        let mut thread = pool.thread(&cpu)?;
        workload.create(&mut thread, seed)?;
        drop(thread);
        let other_place = PLACE + bytes;
        // Recovery searches the log past its last record after each cut, so the log is no
        // larger than needed.
        let layout = Layout {
            threads: 1,
            log_bytes: 16 << 10,
            ..Layout::new(OTHER_NAME)
        };
        let options = other_options(&engines, synchronise, fault);
        let other_bytes = OTHER_BYTES * count;
        let on = devices.clone();
        let other = Pool::create(&cpu, on, other_place, other_bytes, &layout, &options)?;
        let mut thread = other.thread(&cpu)?;
        let object = thread.run(|tx| tx.create(&OTHER.0))?;
        drop(thread);
        Ok(Stage {
            shared,
            cpu,
            journal,
            log,
            is_negative_control: fault.is_some(),
            workload,
            pool,
            seed,
            devices,
            engines,
            synchronise,
            commands,
            other,
            other_place,
            object,
        })
    }

    /// Runs an action while the second program has a transaction under way.
    pub fn with_concurrent_transaction(
        &self,
        work: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut thread = self.other.thread(&self.cpu)?;
        let mut outcome = Ok(());
        let aborted = thread.run(|tx| {
            tx.set(self.object, &OTHER.1)?;
            outcome = work();
            Err::<(), _>(Error::Aborted)
        });
        match aborted {
            Err(Error::Aborted) | Ok(()) => outcome,
            // After a power loss nothing can be aborted.
            Err(error) => outcome.and(Err(error)),
        }
    }

    /// Records that the program relies on all transactions so far.
    pub fn transactions_durable(&self) {
        if let Some(log) = &self.log {
            log.returned(self.cpu.now());
        }
    }

    /// Number of log entries so far.
    pub fn events(&self) -> u64 {
        self.log.as_ref().map_or(0, OrderLog::entries)
    }

    /// The first violation of an invariant, with the events before it.
    pub fn invariant_violation(&self) -> Option<InvariantViolation> {
        let (violation, recent) = self.log.as_ref()?.violation()?;
        let events = self.journal.events_since(Time::ZERO);
        let timeline = Timeline::until_violation(events, &recent, &violation);
        Some(InvariantViolation {
            text: violation.to_string(),
            timeline: timeline.text(),
        })
    }

    /// True if the pools span several devices.
    pub fn is_over_several(&self) -> bool {
        self.devices.len() > 1
    }

    /// Switches the power on again.
    pub fn restart(&self) {
        if let Some(log) = &self.log {
            log.restarted(self.shared.with_machine(|machine| machine.system().now()));
        }
        self.shared.with_machine(|machine| machine.restart());
        self.engines.iter().for_each(|engine| engine.restart());
    }

    /// Opens the workload's pool after a power loss.
    pub fn open(&self, engine_recovers: bool) -> Result<Pool, Error> {
        let options = Options {
            engine_recovers,
            ..options(&self.engines, self.synchronise, None)
        };
        let devices = self.devices.clone();
        Pool::open(&self.cpu, devices, PLACE, self.workload.name(), &options)
    }

    /// Checks that the second program has the content from before its transaction.
    pub fn check_other(&self) -> Result<(), String> {
        let text = |error: Error| format!("the other program's pool: {error}");
        let options = other_options(&self.engines, self.synchronise, None);
        let devices = self.devices.clone();
        let pool = Pool::open(&self.cpu, devices, self.other_place, OTHER_NAME, &options);
        let pool = pool.map_err(text)?;
        let mut thread: Thread = pool.thread(&self.cpu).map_err(text)?;
        let found = thread.get(self.object).map_err(text)?;
        if found != OTHER.0 {
            let other = found.iter().filter(|n| **n != OTHER.0[0]).count();
            return Err(format!(
                "the other program's object has {other} of 512 words that it did not have before \
                 its transaction"
            ));
        }
        drop(thread);
        pool.check(&self.cpu).map(drop).map_err(text)
    }
}

fn options(
    engines: &[Arc<EngineHandle>],
    synchronise: Synchronisation,
    fault: Option<InjectedFault>,
) -> Options {
    Options {
        snapshots: fault != Some(InjectedFault::Snapshots),
        fence: match fault {
            Some(InjectedFault::Fences) => Fence::Posted,
            _ => Fence::ReadBack,
        },
        synchronise: match fault {
            Some(InjectedFault::Peers) => Synchronisation::Disabled,
            _ => synchronise,
        },
        ..Options::with_engines(engines)
    }
}

/// Faults are not injected into the second program's pool. But the synchronisation of devices is
/// the same for all of their pools.
fn other_options(
    engines: &[Arc<EngineHandle>],
    synchronise: Synchronisation,
    fault: Option<InjectedFault>,
) -> Options {
    let fault = fault.filter(|fault| *fault == InjectedFault::Peers);
    Options {
        pool: OTHER_POOL,
        process: OTHER_PROCESS,
        ..options(engines, synchronise, fault)
    }
}
