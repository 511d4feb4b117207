//! A pool over several devices: they know each other, and come to the same transaction after a loss of power of any of them.
//!
//! The rule is that of `hw/engine/nearpm/README.md`, "Several devices".

use std::sync::Arc;

use spec::nearpm::{register, Command, Descriptor, Operation, Refusal, Results, State};

use crate::header::Header;
use crate::log::Offload;
use crate::memory::Memory;
use crate::recovery::{self, PendingAction};
use crate::{EngineHandle, Error, Mechanism, Result, Synchronisation};

/// A log as a recovery has found it.
struct FoundLog {
    index: usize,
    /// Its number on that device.
    number: u8,
    /// The engine has it open.
    open: bool,
    descriptor: Descriptor,
    /// It is pending, and all participants are complete.
    complete: bool,
}

impl FoundLog {
    /// The transaction that it waits with.
    fn pending(&self) -> Option<u64> {
        let pending = matches!(self.descriptor.state, State::Pending(_));
        pending.then_some(self.descriptor.transaction)
    }

    fn action(&self) -> PendingAction {
        match self.complete {
            true => PendingAction::Discard,
            false => PendingAction::WriteBack,
        }
    }
}

/// What recovers the logs of a pool.
pub(crate) struct LogRecovery<'a> {
    pub header: &'a Header,
    pub offload: &'a Offload,
}

impl LogRecovery<'_> {
    fn engine(&self, index: usize) -> &Arc<EngineHandle> {
        &self.offload.engines[index]
    }

    fn launch(&self, m: &Memory, index: usize, command: &Command) -> Result<Results> {
        Ok(self.engine(index).launch(&m.cpu, command)?.0)
    }

    fn launch_checked(&self, m: &Memory, index: usize, command: &Command) -> Result<()> {
        match self.launch(m, index, command)? {
            results if results.is_ok() => Ok(()),
            results => Err(Error::Refused(command.operation, results)),
        }
    }

    fn command(&self, operation: Operation, number: u8) -> Command {
        self.offload.command(operation, number)
    }

    /// The command that maps the pool: with several devices what one of them has of it.
    pub fn map_command(&self) -> Command {
        let header = self.header;
        Command {
            address: self.offload.address(0),
            bytes: header.bytes / u64::from(header.devices),
            target: self.offload.place,
            transaction: header.logs(),
            value: header.layout.log_bytes,
            extra: header.log_count().into(),
            ..self.command(Operation::PoolMap, 0)
        }
    }

    /// A log of a device and its bytes.
    fn log(&self, number: u8) -> (u64, u64) {
        (self.header.log(number), self.header.layout.log_bytes)
    }

    fn each_log(&self) -> impl Iterator<Item = (usize, u8)> {
        let logs = 0..self.header.log_count();
        let devices = self.offload.indices();
        devices.flat_map(move |index| logs.clone().map(move |number| (index, number)))
    }

    /// Each device has its number, and the pool; it has all back that it kept when it answers.
    fn assign_numbers(&self, m: &Memory) -> Result<()> {
        for index in self.offload.indices() {
            let number = register::DEVICE_IS_SET | self.offload.devices.number(index) as u32;
            let engine = self.engine(index);
            engine.write_register(&m.cpu, register::DEVICE, &number.to_le_bytes())?;
        }
        self.map_pool(m)
    }

    /// No engine has a pool of this number any more, and none has anything to do for it.
    pub fn unmap_pool(&self, m: &Memory) -> Result<()> {
        for index in self.offload.indices() {
            let results = self.launch(m, index, &self.command(Operation::PoolUnmap, 0))?;
            if !results.is_ok() && !results.has(Refusal::Unmapped) {
                return Err(Error::Refused(Operation::PoolUnmap, results));
            }
        }
        Ok(())
    }

    /// Each device has the pool, as the header says; an error where another pool of its engine has some of these bytes.
    pub fn map_pool(&self, m: &Memory) -> Result<()> {
        for index in self.offload.indices() {
            let map = self.map_command();
            match self.launch(m, index, &map)? {
                results if results.is_ok() => {}
                results if results.has(Refusal::Busy) => {
                    self.launch_checked(m, index, &self.command(Operation::PoolUnmap, 0))?;
                    self.launch_checked(m, index, &map)?;
                }
                results => return Err(Error::Refused(Operation::PoolMap, results)),
            }
        }
        Ok(())
    }

    /// The devices know each other, or forget each other where the host synchronises them.
    fn register_peers(&self, m: &Memory) -> Result<()> {
        for index in self.offload.indices() {
            for peer in self.offload.indices().filter(|peer| *peer != index) {
                let address = match self.offload.synchronise {
                    Synchronisation::Devices => self.engine(peer).address(&m.cpu)?,
                    Synchronisation::Host | Synchronisation::Disabled => 0,
                };
                let register = register::PEER + 8 * self.offload.devices.number(peer) as u64;
                let engine = self.engine(index);
                engine.write_register(&m.cpu, register, &address.to_le_bytes())?;
            }
        }
        Ok(())
    }

    /// What the logs hold, when all has ended that the devices had been sent.
    fn inspect_logs(&self, m: &mut Memory) -> Result<Vec<FoundLog>> {
        let mut all = Vec::new();
        for (index, number) in self.each_log() {
            let sync = self.command(Operation::Sync, number);
            let open = self.launch(m, index, &sync)?.is_ok();
            let (place, _) = self.log(number);
            let descriptor = m.on_device(index, |m| recovery::read_descriptor(m, place, number))?;
            all.push(FoundLog {
                index,
                number,
                open,
                descriptor,
                complete: false,
            });
        }
        for found in &mut all {
            if let State::Pending(participants) = found.descriptor.state {
                let transaction = found.descriptor.transaction;
                found.complete =
                    self.is_complete(m, found.number, transaction, participants.into())?;
            }
        }
        Ok(all)
    }

    /// Whether all participants have completed a transaction.
    fn is_complete(
        &self,
        m: &Memory,
        number: u8,
        transaction: u64,
        participants: u64,
    ) -> Result<bool> {
        let known = self
            .offload
            .participants((1 << self.offload.engines.len()) - 1);
        if participants & !known != 0 {
            return Err(Error::Corrupt(format!(
                "log {number} waits for devices {participants:#b}: the pool has {known:#b}"
            )));
        }
        let mut complete = true;
        for index in self.offload.indices() {
            let (engine, device) = (self.engine(index), self.offload.devices.number(index));
            let select = u32::from(self.offload.pool << 4 | number).to_le_bytes();
            engine.write_register(&m.cpu, register::SELECT, &select)?;
            if engine.read_register(&m.cpu, register::ALL)? >= transaction {
                return Ok(true);
            }
            let own = engine.read_register(&m.cpu, register::SEEN + 8 * device as u64)?;
            complete &= participants >> device & 1 == 0 || own >= transaction;
        }
        Ok(complete)
    }

    /// Redo records of logs that have no commit, of a transaction that another device has: it is committed.
    fn commit_redo(&self, m: &mut Memory, all: &mut [FoundLog]) -> Result<()> {
        if self.header.layout.mechanism != Mechanism::Redo {
            return Ok(());
        }
        let known: Vec<(u8, u64)> = all
            .iter()
            .map(|found| (found.number, found.descriptor.transaction))
            .collect();
        for found in all.iter_mut().filter(|f| f.descriptor.state == State::Open) {
            let ((place, bytes), number) = (self.log(found.number), found.number);
            let descriptor = found.descriptor;
            let records = m.on_device(found.index, |m| {
                recovery::find_uncommitted(m, place, bytes, number, &descriptor)
            })?;
            let Some((records, transaction)) = records else {
                continue;
            };
            if !known.contains(&(number, transaction)) {
                continue;
            }
            found.descriptor = Descriptor {
                state: State::Committed,
                records,
                transaction,
                ..descriptor
            };
            if found.open {
                let commit = Command {
                    transaction,
                    ..self.command(Operation::CommitRedo, number)
                };
                self.launch_checked(m, found.index, &commit)?;
            } else {
                let line = found.descriptor.to_line();
                m.on_device(found.index, |m| m.write_line(place, &line))?;
                m.fence()?;
            }
        }
        Ok(())
    }

    /// What one device has of all that a log may have records of.
    fn objects(&self) -> std::ops::Range<u64> {
        let count = u64::from(self.header.devices);
        self.header.table() / count..self.header.bytes / count
    }

    /// The engine brings a log to the end of its transaction, or to its start.
    fn recover_by_engine(&self, m: &mut Memory, found: &FoundLog) -> Result<()> {
        let (number, index) = (found.number, found.index);
        let (place, _) = self.log(number);
        if found.complete {
            if !found.open {
                return Ok(());
            }
            if self.offload.synchronise != Synchronisation::Devices {
                let transaction = found.descriptor.transaction;
                let all = (1 << self.offload.engines.len()) - 1;
                self.offload
                    .notify_peers(&m.cpu, all, number, transaction)?;
            }
            return m.on_device(index, |m| recovery::wait_until_empty(m, place, number));
        }
        let recover = Command {
            // It stays known which transaction was the last one.
            transaction: found.descriptor.transaction,
            ..self.command(Operation::Recover, number)
        };
        self.launch_checked(m, index, &recover)
    }

    /// Recovers all logs, and opens them: their generations, device by device for each turn of each thread; and the highest number that a
    /// transaction has had.
    pub fn recover_all(&self, m: &mut Memory) -> Result<(Vec<Vec<Vec<u64>>>, u64)> {
        self.assign_numbers(m)?;
        let mut all = self.inspect_logs(m)?;
        self.register_peers(m)?;
        self.commit_redo(m, &mut all)?;
        let any = |found: &FoundLog| found.descriptor.state != State::Open;
        let mut dropped = false;
        let mut drop_all_lines = |m: &mut Memory| {
            if !std::mem::replace(&mut dropped, true) {
                // The cache must have none of what the engines change.
                m.drop_lines(self.header.table()..self.header.bytes)?;
                m.fence_posted()?;
            }
            Ok::<_, Error>(())
        };
        // The newest of a thread first: that which no device has completed.
        all.sort_by_key(|found| std::cmp::Reverse(found.pending().unwrap_or(u64::MAX)));
        let by_engine = m.options.engine_recovers;
        if !by_engine {
            // The end of this command is behind that of all others of the pool, and no device empties a log any more.
            for index in self.offload.indices() {
                self.launch_checked(m, index, &self.command(Operation::PoolUnmap, 0))?;
            }
        }
        for found in &all {
            let ((place, bytes), number) = (self.log(found.number), found.number);
            if !by_engine {
                let (objects, action) = (self.objects(), found.action());
                m.on_device(found.index, |m| {
                    recovery::recover(m, place, bytes, number, objects, action)
                })?;
                continue;
            }
            let empty =
                m.on_device(found.index, |m| recovery::is_empty(m, place, bytes, number))?;
            if any(found) || !empty {
                drop_all_lines(m)?;
            }
            self.recover_by_engine(m, found)?;
        }
        if !by_engine {
            for index in self.offload.indices() {
                self.launch_checked(m, index, &self.map_command())?;
            }
        }
        self.open_logs(m)
    }

    /// Opens all logs.
    fn open_logs(&self, m: &mut Memory) -> Result<(Vec<Vec<Vec<u64>>>, u64)> {
        let mut last = 0;
        for index in self.offload.indices() {
            last = self
                .engine(index)
                .read_register(&m.cpu, register::HIGHEST)?
                .max(last);
        }
        let turns = usize::from(self.header.turns());
        let threads = usize::from(self.header.layout.threads);
        let mut generations = vec![vec![Vec::new(); turns]; threads];
        for (index, number) in self.each_log() {
            let (place, _) = self.log(number);
            let descriptor = m.on_device(index, |m| recovery::read_descriptor(m, place, number))?;
            last = descriptor.transaction.max(last);
            let mut open = Command {
                value: descriptor.generation,
                ..self.command(Operation::LogOpen, number)
            };
            if matches!(descriptor.state, State::Pending(_)) {
                // It was closed while it waited, and all are complete: what is in it is void.
                open.value += 1;
            }
            let results = self.launch(m, index, &open)?;
            // One that the engine had has stayed open.
            if !results.is_ok() && !results.has(Refusal::Busy) {
                return Err(Error::Refused(Operation::LogOpen, results));
            }
            let number = usize::from(number);
            generations[number / turns][number % turns].push(open.value);
        }
        match last < recovery::SEQUENCE_LIMIT {
            true => Ok((generations, last)),
            false => Err(Error::Corrupt(format!(
                "a log of the pool has transaction {last}: they end before {}",
                recovery::SEQUENCE_LIMIT
            ))),
        }
    }

    /// Waits until no log waits for other devices.
    pub fn wait_for_peers(&self, m: &mut Memory) -> Result<()> {
        for (index, number) in self.each_log() {
            let (place, _) = self.log(number);
            m.on_device(index, |m| recovery::wait_until_empty(m, place, number))?;
        }
        Ok(())
    }
}

/// Without engines nothing can be done about transactions that their logs hold.
pub(crate) fn refuse_unless_empty(m: &mut Memory, header: &Header) -> Result<()> {
    for index in 0..usize::from(header.devices) {
        for number in 0..header.log_count() {
            let (place, bytes) = (header.log(number), header.layout.log_bytes);
            if !m.on_device(index, |m| recovery::is_empty(m, place, bytes, number))? {
                return Err(Error::Invalid(format!(
                    "log {number} of the pool's device {index} holds a transaction of the engines: open the pool with them"
                )));
            }
        }
    }
    Ok(())
}
