// SPDX-License-Identifier: Apache-2.0

//! The four invariants of Partitioned Persist Ordering (NearPM, EuroSys 2023, section 4), as
//! assertions over one log of the events of CPUs and devices.
//!
//! 1. Accesses to addresses that CPU and commands share follow program order. Violated if a store
//!    or load reaches the memory, or a command begins, before an older overlapping access is done.
//!    Also if a device accepts accesses in another order than they were sent.
//! 2. Shared writes persist in program order. Violated if a command begins, or a load is answered,
//!    before all older stores are in the persistence domain; or if a store overtakes an older one
//!    of its lines.
//! 3. Everything before a synchronisation persists before it. Violated if a commit begins before
//!    the records of its log are made, or if redo records are committed before all devices have
//!    theirs. Also if a log is void before all devices have completed its transaction, or if a
//!    transaction returns before its commits are persistent.
//! 4. After a failure recovery reads only what had persisted. Violated if anything persistent is
//!    not restored, if anything else is restored, or if the device opens before all restored work
//!    has ended.
//!
//! A store is persistent when the device has answered it. A command is persistent when it has been
//! accepted and all stores before it are persistent: from then on it is executed in any case
//! (`docs/persistence.md`). Data that only commands access, logs and copies, may be written late,
//! which invariant 2 does not cover. But they are written before the synchronisation. The
//! granularity of the order is a line of 64 bytes, as in the conflict filter.
//!
//! The log needs no order by time between devices. An effect is logged after its cause, and no
//! invariant relates events without a common cause.
//!
//! Not checked: accesses of the NVMe controller, which are unordered until a completion, and the
//! bytes themselves, which the comparison after recovery covers.

mod device;
mod event_text;
mod order_log;
mod transactions;

use std::collections::VecDeque;
use std::fmt;

use host::{HostEvent, LINE};
use sim::{Bar, OrderEvent, Time};
use spec::bar4;
use spec::nearpm::{Command, Operation};

use self::device::Device;
pub(crate) use self::event_text::order_event_text;
pub(crate) use self::order_log::OrderLog;
use self::transactions::DistributedTransactions;

/// Events of devices that are kept to explain a violation.
const RECENT: usize = 1024;

/// An event of a device: its time, the device, the event.
pub type DeviceEvent = (Time, usize, OrderEvent);

/// An entry of the log.
#[derive(Clone, Copy, Debug)]
pub enum LogEntry<'a> {
    /// An event of a CPU, or an access that leaves the host or returns to it.
    Host(&'a HostEvent),
    /// An event of a device, with its number.
    Device(usize, OrderEvent),
    /// A transaction has returned to a program, which relies on it: a synchronisation that the host
    /// knows.
    Returned,
    /// The host has its power back: accesses that it had sent and no device has accepted are lost.
    Restarted,
}

/// One of the four invariants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// Accesses to shared addresses follow program order.
    Order,
    /// Shared writes persist in program order.
    Persistence,
    /// Everything before a synchronisation persists before it.
    Synchronisation,
    /// After a failure recovery reads only what had persisted.
    Recovery,
}

impl Invariant {
    /// Its number in the paper, 1 to 4.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }
}

/// Two events in the wrong order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The violated invariant.
    pub invariant: Invariant,
    /// The device of the later event.
    pub device: usize,
    /// The time of the later event.
    pub at: Time,
    /// The later event.
    pub event: String,
    /// The event that should have happened before: its text, and when it began.
    pub before: (String, Time),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = |time: Time| time.0 as f64 / 1e3;
        write!(
            f,
            "invariant {}, device {}: {} at {:.3} ns, but {} (since {:.3} ns)",
            self.invariant.number(),
            self.device,
            self.event,
            ns(self.at),
            self.before.0,
            ns(self.before.1)
        )
    }
}

/// The result of checking an entry: a violation has neither its device nor its time yet.
type CheckResult = Result<(), Breach>;

/// A [`Violation`] without its device and time.
#[derive(Debug)]
struct Breach {
    invariant: Invariant,
    event: String,
    before: (String, Time),
}

/// Follows a log, and keeps the first violation.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    /// Offset of the engine's command page in BAR4, the same on all devices.
    page: u64,
    devices: Vec<Device>,
    transactions: DistributedTransactions,
    recent: VecDeque<DeviceEvent>,
    violation: Option<Violation>,
    entries: u64,
}

impl Checker {
    /// A checker of devices whose engines have their command pages at `page` of BAR4. Accesses sent
    /// before have been accepted.
    pub fn new(devices: usize, page: u64) -> Checker {
        Checker {
            page,
            devices: (0..devices).map(|_| Device::default()).collect(),
            ..Checker::default()
        }
    }

    /// The first violation.
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// Number of checked entries.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The last events of devices, the oldest first; events after a violation are left out.
    pub fn recent(&self) -> impl Iterator<Item = &DeviceEvent> {
        self.recent.iter()
    }

    /// Checks the next entry, unless a violation was found.
    pub fn check_entry(&mut self, at: Time, entry: LogEntry) {
        if self.violation.is_some() {
            return;
        }
        self.entries += 1;
        let (device, checked) = match entry {
            LogEntry::Host(event) => self.check_host_event(at, event),
            LogEntry::Device(number, event) => {
                if self.recent.len() == RECENT {
                    self.recent.pop_front();
                }
                self.recent.push_back((at, number, event));
                (number, self.check_device_event(at, number, event))
            }
            LogEntry::Returned => self.check_return(),
            LogEntry::Restarted => {
                self.devices.iter_mut().for_each(Device::restarted);
                (0, Ok(()))
            }
        };
        if let Err(breach) = checked {
            self.violation = Some(Violation {
                invariant: breach.invariant,
                device,
                at,
                event: breach.event,
                before: breach.before,
            });
        }
    }

    fn check_host_event(&mut self, at: Time, event: &HostEvent) -> (usize, CheckResult) {
        match event {
            HostEvent::Posted {
                device,
                bar: Bar::Pm,
                offset,
                data,
            } => {
                if let Some(to) = self.devices.get_mut(*device) {
                    to.send_store(at, *offset, data.len() as u64);
                }
            }
            HostEvent::Posted {
                device,
                bar: Bar::Control,
                offset,
                data,
            } if self.is_command(*offset, data) => {
                let line = (offset - self.page) / LINE as u64;
                let command = decode_command(data);
                if let Some(to) = self.devices.get_mut(*device) {
                    to.send_command(at, line as u8, command);
                    if let Some(command) = command {
                        self.transactions.sent(*device, &command, at);
                    }
                }
            }
            HostEvent::Issued { device, tag } => {
                if let Some(to) = self.devices.get_mut(*device) {
                    to.load_issued(*tag);
                }
            }
            HostEvent::Answered { tag } => {
                for (number, device) in self.devices.iter_mut().enumerate() {
                    let checked = device.load_answered(*tag);
                    if checked.is_err() {
                        return (number, checked);
                    }
                }
            }
            _ => {}
        }
        (0, Ok(()))
    }

    fn is_command(&self, offset: u64, data: &[u8]) -> bool {
        let own = self.page..self.page + bar4::PAGE_STEP;
        data.len() == LINE && own.contains(&offset) && offset % LINE as u64 == 0
    }

    fn check_device_event(&mut self, at: Time, number: usize, event: OrderEvent) -> CheckResult {
        let Some(device) = self.devices.get_mut(number) else {
            return Ok(());
        };
        let ended = match event {
            OrderEvent::CommandEnded { number, fine: true } => device.accepted_command(number),
            _ => None,
        };
        let taken = device.check_event(at, event)?;
        if let Some(command) = taken {
            self.transactions.taken(number, &command)?;
        }
        match (event, ended) {
            (_, Some(command)) if command.operation == Operation::Commit as u8 => {
                let (log, transaction) = (command.log, command.transaction);
                self.transactions.completed(number, log, transaction);
                match command.participants {
                    0 => self.transactions.void(number, log, transaction),
                    _ => Ok(()),
                }
            }
            (OrderEvent::LogVoid { log, transaction }, _) => {
                self.transactions.void(number, log, transaction)
            }
            _ => Ok(()),
        }
    }

    fn check_return(&self) -> (usize, CheckResult) {
        for (number, device) in self.devices.iter().enumerate() {
            let checked = device.transaction_returned();
            if checked.is_err() {
                return (number, checked);
            }
        }
        (0, Ok(()))
    }
}

/// Decodes a command from 64 bytes of a page.
fn decode_command(data: &[u8]) -> Option<Command> {
    let long = |n: usize| {
        let bytes = data[8 * n..8 * n + 8].try_into();
        bytes.map_or(0, u64::from_le_bytes)
    };
    Command::from_words(&std::array::from_fn(long))
}

/// Checks a whole log; returns the first violation. See [`Checker::new`].
pub fn check<'a>(
    devices: usize,
    page: u64,
    log: impl IntoIterator<Item = (Time, LogEntry<'a>)>,
) -> Result<(), Violation> {
    let mut checker = Checker::new(devices, page);
    for (at, entry) in log {
        checker.check_entry(at, entry);
    }
    checker.violation.map_or(Ok(()), Err)
}
