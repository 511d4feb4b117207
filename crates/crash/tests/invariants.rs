// SPDX-License-Identifier: Apache-2.0

//! The invariants on hand-written logs, with each rule violated once; and on the logs of campaigns,
//! with and without faults.

use crash::invariants::{check, Invariant, LogEntry, Violation};
use crash::{run, Campaign, Executor, InjectedFault, Report};
use design::Design;
use device::{Factory, Model, RtlOptions};
use host::{Fence, HostEvent};
use pm::{Mechanism, Synchronisation};
use sim::{Bar, LineRange, OrderEvent, OrderedCommand, Time};
use spec::nearpm::{Command, Operation};

const PAGE: u64 = 0x4_0000;

#[derive(Clone)]
enum ScriptEntry {
    Host(HostEvent),
    Device(usize, OrderEvent),
    Returned,
    Restarted,
}

/// A log with an event every nanosecond. Addresses are line numbers.
#[derive(Clone, Default)]
struct Script(Vec<ScriptEntry>);

fn line(line: u64) -> LineRange {
    LineRange {
        first: line,
        last: line,
    }
}

/// A command of pool 0 thread 0, transaction 7, that reads a line and writes another one.
fn ordered(number: u8, operation: Operation, reads: u64, writes: u64) -> OrderedCommand {
    OrderedCommand {
        number,
        operation: operation as u8,
        log: 0,
        transaction: 7,
        participants: 0,
        reads: Some(line(reads)),
        writes: Some(line(writes)),
    }
}

impl Script {
    fn host(mut self, event: HostEvent) -> Script {
        self.0.push(ScriptEntry::Host(event));
        self
    }

    fn device_event(mut self, device: usize, event: OrderEvent) -> Script {
        self.0.push(ScriptEntry::Device(device, event));
        self
    }

    fn returned(mut self) -> Script {
        self.0.push(ScriptEntry::Returned);
        self
    }

    fn restarted(mut self) -> Script {
        self.0.push(ScriptEntry::Restarted);
        self
    }

    fn post_store(self, device: usize, line: u64) -> Script {
        self.host(HostEvent::Posted {
            device,
            bar: Bar::Pm,
            offset: 64 * line,
            data: vec![1; 64],
        })
    }

    fn post(self, device: usize, number: u8, operation: Operation) -> Script {
        let mut command = Command::new(operation, 1, 0, 0);
        command.transaction = 7;
        let mut data = vec![0; 8];
        data.extend(command.arguments().iter().flat_map(|a| a.to_le_bytes()));
        self.host(HostEvent::Posted {
            device,
            bar: Bar::Control,
            offset: PAGE + 64 * u64::from(number),
            data,
        })
    }

    /// A store arrives, and departs.
    fn store(self, number: u32, at: u64, queued: bool) -> Script {
        let channel = 0;
        self.device_event(
            0,
            OrderEvent::StoreArrived {
                channel,
                lines: line(at),
            },
        )
        .device_event(
            0,
            OrderEvent::StoreIssued {
                channel,
                number,
                queued,
            },
        )
    }

    fn reaches(self, number: u32) -> Script {
        self.device_event(0, OrderEvent::StoreReachedMemory { channel: 0, number })
    }

    fn kept(self, number: u32) -> Script {
        self.device_event(0, OrderEvent::StorePersisted { channel: 0, number })
    }

    fn leaves(self) -> Script {
        self.device_event(0, OrderEvent::QueueLineIssued { channel: 0 })
    }

    fn written(self) -> Script {
        self.device_event(0, OrderEvent::QueueLineWritten { channel: 0 })
    }

    fn load(self, id: u32, at: u64) -> Script {
        self.device_event(
            0,
            OrderEvent::LoadArrived {
                channel: 0,
                id,
                lines: line(at),
            },
        )
    }

    fn reads(self, id: u32) -> Script {
        self.device_event(0, OrderEvent::LoadIssued { channel: 0, id })
    }

    fn served(self, id: u32) -> Script {
        self.device_event(0, OrderEvent::LoadServed { channel: 0, id })
    }

    fn takes(self, device: usize, command: OrderedCommand) -> Script {
        self.device_event(device, OrderEvent::CommandAccepted(command))
    }

    fn begins(self, device: usize, number: u8) -> Script {
        self.device_event(device, OrderEvent::CommandStarted { number })
    }

    fn ends(self, device: usize, number: u8) -> Script {
        self.device_event(device, OrderEvent::CommandEnded { number, fine: true })
    }

    fn check(&self) -> Result<(), Violation> {
        let log = self.0.iter().zip(1..).map(|(said, n)| {
            let entry = match said {
                ScriptEntry::Host(event) => LogEntry::Host(event),
                ScriptEntry::Device(device, event) => LogEntry::Device(*device, *event),
                ScriptEntry::Returned => LogEntry::Returned,
                ScriptEntry::Restarted => LogEntry::Restarted,
            };
            (Time::ns(n), entry)
        });
        check(2, PAGE, log)
    }

    fn holds(&self) {
        assert_eq!(self.check(), Ok(()));
    }

    /// Asserts that the last event violates an invariant, and none before it does.
    #[track_caller]
    fn breaks(&self, invariant: Invariant, what: &str) {
        let mut before = self.clone();
        before.0.pop();
        assert_eq!(before.check(), Ok(()));
        let violation = self.check().expect_err("a violation");
        let text = violation.to_string();
        assert_eq!(violation.invariant, invariant, "{text}");
        assert_eq!(violation.at, Time::ns(self.0.len() as u64), "{text}");
        assert!(text.contains(what) && text.lines().count() == 1, "{text}");
        let number = format!("invariant {}, device ", invariant.number());
        assert!(text.starts_with(&number), "{text}");
    }
}

use Operation::{Commit, CommitRedo, Copy, Recover, Redo, Undo};

fn script() -> Script {
    Script::default()
}

/// Lines 1 and 2 are objects, 8 and 9 the log.
fn undo(number: u8) -> OrderedCommand {
    ordered(number, Undo, 1, 9)
}

fn commit(number: u8) -> OrderedCommand {
    OrderedCommand {
        reads: None,
        writes: Some(LineRange { first: 8, last: 9 }),
        ..ordered(number, Commit, 8, 8)
    }
}

/// A record, a store that waits for it, the commit, and the load that proves it.
fn transaction() -> Script {
    script()
        .post(0, 0, Undo)
        .post_store(0, 1)
        .post(0, 1, Commit)
        .host(HostEvent::Issued { device: 0, tag: 5 })
        .takes(0, undo(0))
        .store(0, 1, true)
        .begins(0, 0)
        .kept(0)
        .takes(0, commit(1))
        .load(3, 40)
        .reads(3)
        .served(3)
        .host(HostEvent::Answered { tag: 5 })
        .host(HostEvent::Fenced {
            cpu: 0,
            what: Fence::ReadBack,
        })
        .returned()
        .ends(0, 0)
        .leaves()
        .begins(0, 1)
        .written()
        .ends(0, 1)
}

#[test]
fn invariants_accept_a_kept_order() {
    transaction().holds();
    // After a power loss all persistent work is restored and ends before the device opens.
    let mut cut = transaction();
    cut.0.truncate(16);
    let back = cut
        .device_event(0, OrderEvent::PowerLost)
        .restarted()
        .device_event(0, OrderEvent::CommandRestored(undo(0)))
        .device_event(0, OrderEvent::CommandRestored(commit(1)))
        .device_event(
            0,
            OrderEvent::QueueLineRestored {
                channel: 0,
                line: 1,
            },
        )
        .begins(0, 0)
        .ends(0, 0)
        .begins(0, 1)
        .ends(0, 1)
        .leaves()
        .written()
        .device_event(0, OrderEvent::WindowOpened)
        .load(1, 1)
        .reads(1)
        .served(1);
    back.holds();
}

/// The younger of two stores to a line was not persistent. The older one is restored, twice, and a
/// command between them does not hold it up.
#[test]
fn restored_lines_come_back_oldest_first() {
    let second = ordered(1, Undo, 1, 10);
    let back = |script: Script| {
        script
            .device_event(0, OrderEvent::PowerLost)
            .restarted()
            .device_event(0, OrderEvent::CommandRestored(undo(0)))
            .device_event(0, OrderEvent::CommandRestored(second))
            .device_event(
                0,
                OrderEvent::QueueLineRestored {
                    channel: 0,
                    line: 1,
                },
            )
            .begins(0, 0)
    };
    let two = script()
        .takes(0, undo(0))
        .store(0, 1, true)
        .kept(0)
        .takes(0, second)
        .store(1, 1, true);
    let once = back(two);
    once.clone().ends(0, 0).leaves().holds();
    back(once).ends(0, 0).leaves().holds();
}

#[test]
fn invariant_1_accesses_to_shared_addresses_follow_program_order() {
    let wrong = |script: Script, what| script.breaks(Invariant::Order, what);
    let under_way = || script().takes(0, ordered(0, Copy, 1, 2));
    wrong(
        under_way().store(0, 1, false).reaches(0),
        "a store, PM 0x40, reaches the memory",
    );
    wrong(
        under_way().store(0, 2, false).reaches(0),
        "command 0, Copy of pool 0 thread 0, is older",
    );
    wrong(
        under_way().store(0, 2, true).kept(0).leaves(),
        "a store of the queue",
    );
    wrong(
        under_way().load(0, 2).reads(0),
        "a load, PM 0x80, reads the memory",
    );
    let queued = under_way().store(0, 2, true).kept(0).ends(0, 0);
    wrong(
        queued.clone().load(0, 2).reads(0),
        "an older store, PM 0x80, is in the queue",
    );
    wrong(
        queued.takes(0, ordered(1, Copy, 2, 5)).begins(0, 1),
        "is in the queue",
    );
    // A command does not block reads of what it reads, nor stores elsewhere.
    under_way()
        .load(0, 1)
        .reads(0)
        .store(0, 3, false)
        .reaches(0)
        .holds();
    for (reads, writes) in [(2, 5), (5, 1), (5, 2)] {
        let next = under_way()
            .takes(0, ordered(1, Copy, reads, writes))
            .begins(0, 1);
        wrong(next, "command 1, Copy of pool 0 thread 0, begins");
    }
    under_way()
        .takes(0, ordered(1, Copy, 1, 5))
        .begins(0, 1)
        .holds();
    let reading = script()
        .load(0, 2)
        .reads(0)
        .takes(0, ordered(0, Copy, 1, 2));
    wrong(
        reading.begins(0, 0),
        "an older load, PM 0x80, is not answered",
    );
    // The device accepts them in another order.
    let sent = script().post_store(0, 1).post(0, 0, Undo);
    wrong(
        sent.takes(0, undo(0)),
        "a store, PM 0x40, before it has not come",
    );
    let sent = script().post(0, 0, Undo).post_store(0, 1);
    wrong(
        sent.device_event(
            0,
            OrderEvent::StoreArrived {
                channel: 0,
                lines: line(1),
            },
        ),
        "command 0, Undo, before it has not been taken",
    );
}

#[test]
fn invariant_2_shared_writes_persist_in_program_order() {
    let wrong = |script: Script, what| script.breaks(Invariant::Persistence, what);
    let stored = || script().post_store(0, 30).store(0, 30, false).reaches(0);
    wrong(
        stored().takes(0, undo(0)).begins(0, 0),
        "an older store, PM 0x780, is not kept",
    );
    stored().takes(0, undo(0)).kept(0).begins(0, 0).holds();
    wrong(
        stored().load(0, 31).reads(0).served(0),
        "a load, PM 0x7c0, is answered",
    );
    let issued = |script: Script| script.host(HostEvent::Issued { device: 0, tag: 1 });
    let answered = |script: Script| script.host(HostEvent::Answered { tag: 1 });
    wrong(answered(issued(stored())), "a load comes back to the host");
    wrong(
        answered(issued(script().post_store(0, 1))),
        "a store, PM 0x40, has not taken",
    );
    wrong(
        answered(issued(script().post(0, 0, Undo))),
        "command 0, Undo, has not taken",
    );
    answered(issued(stored().kept(0)).post_store(0, 4)).holds();
    // The older one of a line is in the queue.
    let queued = script()
        .takes(0, undo(0))
        .store(0, 1, true)
        .kept(0)
        .ends(0, 0);
    wrong(
        queued.store(1, 1, false).reaches(1),
        "an older store, PM 0x40, is in the queue",
    );
}

#[test]
fn invariant_3_everything_before_a_synchronisation_persists_before_it() {
    let wrong = |script: Script, what| script.breaks(Invariant::Synchronisation, what);
    wrong(
        script().takes(0, undo(0)).takes(0, commit(1)).begins(0, 1),
        "command 1, Commit of pool 0 thread 0, begins",
    );
    // A transaction returns.
    wrong(
        script().post(0, 0, Commit).returned(),
        "its Commit has not been taken",
    );
    let stored = script().store(0, 30, false).reaches(0).takes(0, commit(0));
    wrong(stored.clone().returned(), "a store before its commit");
    stored.kept(0).returned().holds();
    script().post(0, 0, Undo).returned().holds();
    // Device 1 has records, too.
    let both = || {
        script()
            .post(0, 0, Undo)
            .post(1, 0, Undo)
            .takes(0, undo(0))
            .takes(1, undo(0))
            .ends(0, 0)
            .ends(1, 0)
    };
    let commits = || {
        both()
            .post(0, 1, Commit)
            .post(1, 1, Commit)
            .takes(0, commit(1))
            .begins(0, 1)
    };
    wrong(commits().ends(0, 1), "device 1 has not completed it");
    let with = |participants| OrderedCommand {
        participants,
        ..commit(1)
    };
    let void = |script: Script| {
        script.device_event(
            0,
            OrderEvent::LogVoid {
                log: 0,
                transaction: 7,
            },
        )
    };
    let first = both()
        .post(0, 1, Commit)
        .post(1, 1, Commit)
        .takes(0, with(3))
        .ends(0, 1);
    wrong(void(first.clone()), "deletes its records of transaction 7");
    void(first.takes(1, with(3)).ends(1, 1)).holds();
    // One device that accepts the commit commits all redo records.
    let redo = |number| ordered(number, Redo, 20, 9);
    let sent = script()
        .post(0, 0, Redo)
        .post(1, 0, Redo)
        .post(0, 1, CommitRedo)
        .takes(0, redo(0))
        .ends(0, 0);
    let commit_redo = OrderedCommand {
        operation: CommitRedo as u8,
        ..commit(1)
    };
    wrong(
        sent.clone().takes(0, commit_redo),
        "device 1 has not taken all of its records",
    );
    sent.takes(1, redo(0)).takes(0, commit_redo).holds();
}

#[test]
fn invariant_4_recovery_reads_only_what_had_persisted() {
    let wrong = |script: Script, what| script.breaks(Invariant::Recovery, what);
    let back = |script: Script| script.device_event(0, OrderEvent::PowerLost).restarted();
    let opens = |script: Script| script.device_event(0, OrderEvent::WindowOpened);
    let restored =
        |script: Script, command| script.device_event(0, OrderEvent::CommandRestored(command));
    let taken = || script().takes(0, undo(0)).store(0, 1, true).kept(0);
    wrong(
        opens(back(taken())),
        "command 0, Undo of pool 0 thread 0, was persistent and has not come back",
    );
    let command = restored(back(taken()), undo(0));
    wrong(
        opens(command.clone().ends(0, 0)),
        "a store, PM 0x40, was persistent and has not come back",
    );
    let both = command.device_event(
        0,
        OrderEvent::QueueLineRestored {
            channel: 0,
            line: 1,
        },
    );
    wrong(opens(both.clone()), "has come back and not ended");
    wrong(
        opens(both.clone().ends(0, 0)),
        "has come back and is not written",
    );
    wrong(both.load(0, 50), "a load, PM 0xc80, comes");
    wrong(
        restored(back(script()), undo(0)),
        "was not among what had been taken",
    );
    wrong(
        back(taken()).device_event(
            0,
            OrderEvent::QueueLineRestored {
                channel: 0,
                line: 2,
            },
        ),
        "was not in the queue",
    );
    wrong(
        back(script()).takes(0, ordered(0, Recover, 1, 1)),
        "the device has not opened",
    );
    // Unanswered stores may be lost, with all later accesses.
    opens(back(
        script().store(0, 30, false).reaches(0).takes(0, undo(0)),
    ))
    .holds();
    // A second power loss loses nothing of what was not restored yet.
    wrong(
        opens(back(back(taken()))),
        "was persistent and has not come back",
    );
}

// ---- campaigns ----

struct Campaigns(Factory);

fn campaigns() -> Campaigns {
    let design = Design::find("nearpm").unwrap();
    let design = design.with_values("[cpu]\nprofile = \"nearpm\"\n").unwrap();
    let model = Model::named(Model::Fast).unwrap();
    let factory = Factory::new(&design, model, &RtlOptions::default(), &mut |_| true).unwrap();
    Campaigns(factory)
}

impl Campaigns {
    fn run(&self, mechanism: Mechanism, devices: usize, fault: Option<InjectedFault>) -> Report {
        let is_rtl = self.0.model() == Model::Rtl;
        let campaign = Campaign {
            workload: "btree".into(),
            mechanism,
            tracked: false,
            executor: Executor::Device,
            devices,
            synchronise: Synchronisation::Devices,
            transactions: if is_rtl { 3 } else { 24 },
            seed: 1,
            cuts: if is_rtl { "sampled:4" } else { "sampled:20" }
                .parse()
                .unwrap(),
            later: None,
            words: false,
            fault,
            jobs: 2,
        };
        run(&self.0, &campaign, &mut |_, _| true).unwrap()
    }
}

impl Campaigns {
    /// A run with cuts violates no invariant, and events were checked.
    fn keeps_them(&self, mechanism: Mechanism, devices: usize) {
        let report = self.run(mechanism, devices, None);
        println!("{mechanism:?}, {devices} devices: {} events", report.events);
        assert_eq!((report.broken, report.violated), (0, 0), "{report:?}");
        assert!(report.events > 60 * report.transactions, "{report:?}");
    }

    /// A fault violates its invariant in the log itself, whether or not a cut reveals it.
    fn breaks(&self, fault: InjectedFault, mechanism: Mechanism, devices: usize, invariant: u8) {
        let report = self.run(mechanism, devices, Some(fault));
        let about = format!("{fault}, {mechanism:?}: {report:?}");
        let wanted = format!("invariant {invariant}, device ");
        match (&report.invariant, &report.stopped) {
            (Some(broken), _) => {
                let counts = format!("{} of {} cuts", report.broken, report.cuts);
                println!("{fault}, {mechanism:?}: {counts}: {}", broken.text);
                assert!(broken.text.starts_with(&wanted), "{about}");
                let last = broken.timeline.last().map(String::as_str).unwrap_or("");
                assert!(
                    last.ends_with(&format!("found     {}", broken.text)),
                    "{about}"
                );
                assert!(broken.timeline.len() > 10, "{about}");
            }
            // The run failed.
            (None, Some(text)) => {
                println!("{fault}, {mechanism:?}: {text}");
                assert!(text.contains(&format!("before that: {wanted}")), "{about}");
            }
            (None, None) => panic!("{about}"),
        }
    }
}

impl Campaigns {
    /// A device that saves nothing reports that itself, in every cut.
    fn loses(&self, mechanism: Mechanism) {
        let report = self.run(mechanism, 1, Some(InjectedFault::PersistenceDomain));
        let about = format!("{mechanism:?}: {report:?}");
        assert_eq!(report.violated, report.cuts, "{about}");
        let text = &report.violation.as_ref().expect(&about).text;
        assert!(text.contains("could not save what"), "{about}");
    }
}

#[test]
#[ignore = "takes seconds"]
fn campaigns_keep_the_invariants() {
    let campaigns = campaigns();
    for mechanism in Mechanism::ALL {
        for devices in [1, 2] {
            campaigns.keeps_them(mechanism, devices);
        }
    }
}

#[test]
#[ignore = "takes seconds"]
fn negative_controls_break_their_invariants() {
    let campaigns = campaigns();
    for (fault, mechanism, devices, invariant) in [
        (InjectedFault::Fences, Mechanism::Undo, 1, 3),
        (InjectedFault::Fences, Mechanism::Checkpoint, 1, 3),
        (InjectedFault::Peers, Mechanism::Undo, 2, 3),
        (InjectedFault::Peers, Mechanism::Checkpoint, 2, 3),
    ] {
        campaigns.breaks(fault, mechanism, devices, invariant);
    }
}

/// Faults of a device, which only the fast model injects; and those that need more transactions
/// than the RTL model runs here.
#[test]
#[ignore = "takes seconds"]
fn device_faults_break_their_invariants() {
    use Mechanism::{Checkpoint, Redo, Shadow, Undo};
    let campaigns = campaigns();
    if campaigns.0.model() == Model::Rtl {
        return;
    }
    for (fault, mechanism, invariant) in [
        (InjectedFault::Fences, Redo, 3),
        (InjectedFault::Fences, Shadow, 3),
        (InjectedFault::ConflictFilter, Undo, 1),
        (InjectedFault::ConflictFilter, Checkpoint, 1),
        (InjectedFault::ConflictFilter, Shadow, 1),
        (InjectedFault::CommandOrder, Undo, 3),
        (InjectedFault::CommandOrder, Redo, 3),
        (InjectedFault::CommandOrder, Checkpoint, 3),
        (InjectedFault::CommandOrder, Shadow, 1),
        (InjectedFault::PersistenceDomain, Undo, 4),
        (InjectedFault::PersistenceDomain, Redo, 4),
        (InjectedFault::PersistenceDomain, Checkpoint, 4),
        (InjectedFault::PersistenceDomain, Shadow, 4),
    ] {
        campaigns.breaks(fault, mechanism, 1, invariant);
    }
    for mechanism in [Undo, Redo, Checkpoint, Shadow] {
        campaigns.loses(mechanism);
    }
}

mod sampled {
    use super::*;

    /// A sample of these campaigns, for both models.
    #[test]
    #[ignore = "takes seconds"]
    fn campaigns_keep_the_invariants_and_negative_controls_break_them() {
        let campaigns = campaigns();
        campaigns.keeps_them(Mechanism::Undo, 1);
        campaigns.keeps_them(Mechanism::Shadow, 1);
        campaigns.keeps_them(Mechanism::Checkpoint, 2);
        campaigns.breaks(InjectedFault::Fences, Mechanism::Undo, 1, 3);
    }
}
