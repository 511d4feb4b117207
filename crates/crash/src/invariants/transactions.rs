// SPDX-License-Identifier: Apache-2.0

//! Transactions with records in the logs of several devices: commands sent to each device, and
//! completed ones.

use std::collections::BTreeMap;

use sim::Time;
use spec::nearpm::{Command, Operation};

use super::{Breach, CheckResult, Invariant};

/// A device's part in a transaction.
#[derive(Clone, Copy, Debug, Default)]
struct Participation {
    /// When the last command was sent to it.
    at: Time,
    /// It was sent records, or a commit.
    takes_part: bool,
    /// Records that it was sent and has not accepted.
    pending_records: u32,
    /// Its commit has ended.
    completed: bool,
}

/// By log (16 * pool + thread) and transaction; then by device.
#[derive(Clone, Debug, Default)]
pub(super) struct DistributedTransactions(BTreeMap<(u8, u64), Vec<Participation>>);

fn log_of(command: &Command) -> u8 {
    command.pool << 4 | command.thread
}

impl DistributedTransactions {
    fn participation(&mut self, log: u8, transaction: u64, device: usize) -> &mut Participation {
        let parts = self.0.entry((log, transaction)).or_default();
        if parts.len() <= device {
            parts.resize(device + 1, Participation::default());
        }
        &mut parts[device]
    }

    /// Records a command sent to a device.
    pub fn sent(&mut self, device: usize, command: &Command, at: Time) {
        use Operation::*;
        let (log, transaction) = (log_of(command), command.transaction);
        match command.operation {
            Undo | Redo | Checkpoint | UndoRanges | CheckpointRanges => {
                let part = self.participation(log, transaction, device);
                (part.takes_part, part.at) = (true, at);
                part.pending_records += 1;
            }
            Commit | CommitRedo => {
                let part = self.participation(log, transaction, device);
                (part.takes_part, part.at) = (true, at);
            }
            // The device's records are void, or written back: the other devices do not wait for it.
            Abort | Recover | LogOpen => self.forget(device, |key| key.0 == log),
            PoolUnmap => self.forget(device, |key| key.0 >> 4 == command.pool),
            _ => {}
        }
    }

    fn forget(&mut self, device: usize, which: impl Fn(&(u8, u64)) -> bool) {
        self.0.retain(|key, parts| {
            if which(key) {
                if let Some(part) = parts.get_mut(device) {
                    *part = Participation::default();
                }
            }
            parts.iter().any(|part| part.takes_part)
        });
    }

    /// Records that a device has accepted a command.
    pub fn taken(&mut self, device: usize, command: &Command) -> CheckResult {
        use Operation::*;
        let key = (log_of(command), command.transaction);
        let Some(parts) = self.0.get_mut(&key) else {
            return Ok(());
        };
        match command.operation {
            Undo | Redo | Checkpoint | UndoRanges | CheckpointRanges => {
                if let Some(part) = parts.get_mut(device) {
                    part.pending_records = part.pending_records.saturating_sub(1);
                }
            }
            CommitRedo => {
                // From here on the transaction is committed, whatever happens to the others.
                let mut others = parts.iter().enumerate();
                if let Some((other, part)) = others.find(|(_, part)| part.pending_records > 0) {
                    let what = format!("device {other} has not taken all of its records");
                    let event = "takes the commit of redo records";
                    return Err(breach(event, key, (what, part.at)));
                }
                parts[device].completed = true;
                self.prune(key);
            }
            _ => {}
        }
        Ok(())
    }

    /// Records that a device has completed its part.
    pub fn completed(&mut self, device: usize, log: u8, transaction: u64) {
        let key = (log, transaction);
        let part = self.0.get_mut(&key).and_then(|parts| parts.get_mut(device));
        if let Some(part) = part {
            part.completed = true;
        }
    }

    /// Records that a device's records are void.
    pub fn void(&mut self, device: usize, log: u8, transaction: u64) -> CheckResult {
        let key = (log, transaction);
        let Some(parts) = self.0.get(&key) else {
            return Ok(());
        };
        let mut others = parts.iter().enumerate().filter(|(n, _)| *n != device);
        if let Some((other, part)) = others.find(|(_, part)| part.takes_part && !part.completed) {
            let what = format!("device {other} has not completed it");
            return Err(breach("deletes its records", key, (what, part.at)));
        }
        self.prune(key);
        Ok(())
    }

    /// Removes a transaction without pending work.
    fn prune(&mut self, key: (u8, u64)) {
        let parts = self.0.get(&key).into_iter().flatten();
        if parts.clone().all(|part| part.completed || !part.takes_part) {
            self.0.remove(&key);
        }
    }
}

fn breach(event: &str, (log, transaction): (u8, u64), before: (String, Time)) -> Breach {
    let (pool, thread) = (log >> 4, log & 15);
    Breach {
        invariant: Invariant::Synchronisation,
        event: format!("{event} of transaction {transaction}, pool {pool} thread {thread},"),
        before,
    }
}
