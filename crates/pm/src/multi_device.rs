// SPDX-License-Identifier: Apache-2.0

//! Pools over several devices: registration of peers, and recovery to the same transaction after a
//! power loss of any device.
//!
//! The rule is that of the `nearpm` engine, chapter "Several devices".

use std::sync::Arc;

use spec::nearpm::{register, Command, Descriptor, ErrorBit, LogState, Operation, ReturnValue};

use crate::header::Header;
use crate::log::Offload;
use crate::memory::Memory;
use crate::recovery::{self, PendingAction};
use crate::{EngineHandle, Error, Mechanism, Result, Synchronisation};

/// The state of a log at recovery.
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
        let pending = matches!(self.descriptor.state, LogState::Pending(_));
        pending.then_some(self.descriptor.transaction)
    }

    fn action(&self) -> PendingAction {
        match self.complete {
            true => PendingAction::Discard,
            false => PendingAction::WriteBack,
        }
    }
}

/// Recovers the logs of a pool.
pub(crate) struct LogRecovery<'a> {
    pub header: &'a Header,
    pub offload: &'a Offload,
}

impl LogRecovery<'_> {
    fn engine(&self, index: usize) -> &Arc<EngineHandle> {
        &self.offload.engines[index]
    }

    fn launch(&self, m: &Memory, index: usize, command: &Command) -> Result<ReturnValue> {
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

    /// The command that maps a device's share of the pool.
    pub fn map_command(&self) -> Command {
        let header = self.header;
        Command {
            address: self.offload.address(0),
            bytes: header.bytes / u64::from(header.devices),
            target: self.offload.place,
            transaction: header.logs(),
            value: header.layout.log_bytes,
            extra: u64::from(header.log_count()) | header.layout.tracking().bits(),
            ..self.command(Operation::PoolMap, 0)
        }
    }

    /// The place of a device's log, and its bytes.
    fn log(&self, number: u8) -> (u64, u64) {
        (self.header.log(number), self.header.layout.log_bytes)
    }

    fn each_log(&self) -> impl Iterator<Item = (usize, u8)> {
        let logs = 0..self.header.log_count();
        let devices = self.offload.indices();
        devices.flat_map(move |index| logs.clone().map(move |number| (index, number)))
    }

    /// Assigns each device its number. It answers after it has restored its state.
    fn assign_numbers(&self, m: &Memory) -> Result<()> {
        for index in self.offload.indices() {
            let number = register::DEVICE_IS_SET | self.offload.devices.number(index) as u32;
            let engine = self.engine(index);
            engine.write_register(&m.cpu, register::DEVICE, &number.to_le_bytes())?;
        }
        Ok(())
    }

    /// Unmaps the pool's number on all engines, after all its commands have ended.
    pub fn unmap_pool(&self, m: &Memory) -> Result<()> {
        let mut indices = self.offload.indices();
        indices.try_for_each(|index| self.unmap_on(m, index))
    }

    /// Unmaps the pool's number on an engine, if the engine has it.
    fn unmap_on(&self, m: &Memory, index: usize) -> Result<()> {
        let results = self.launch(m, index, &self.command(Operation::PoolUnmap, 0))?;
        match results.is_ok() || results.has(ErrorBit::Unmapped) {
            true => Ok(()),
            false => Err(Error::Refused(Operation::PoolUnmap, results)),
        }
    }

    /// Maps the pool on each device, as the header says; an error where it overlaps another pool of
    /// the engine.
    pub fn map_pool(&self, m: &Memory) -> Result<()> {
        for index in self.offload.indices() {
            let map = self.map_command();
            match self.launch(m, index, &map)? {
                results if results.is_ok() => {}
                results if results.has(ErrorBit::Busy) => {
                    // The engine has this number, or another pool at this place.
                    self.unmap_on(m, index)?;
                    self.launch_checked(m, index, &map)?;
                }
                results => return Err(Error::Refused(Operation::PoolMap, results)),
            }
        }
        Ok(())
    }

    /// Registers the devices as peers of each other, or removes the peers where the host
    /// synchronises.
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

    /// An error if a log has records of a pool with another number.
    fn check_pool_number(&self, m: &mut Memory) -> Result<()> {
        for (index, number) in self.each_log() {
            let ((place, bytes), pool) = (self.log(number), self.offload.pool);
            m.on_device(index, |m| {
                recovery::check_pool_number(m, place, bytes, number, pool, "")
            })?;
        }
        Ok(())
    }

    /// Reads the state of the logs, after all commands sent to the devices have ended.
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
            if let LogState::Pending(participants) = found.descriptor.state {
                let transaction = found.descriptor.transaction;
                found.complete =
                    self.is_complete(m, found.number, transaction, participants.into())?;
            }
        }
        Ok(all)
    }

    /// True if all participants have completed a transaction.
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

    /// Commits redo logs without a commit whose transaction another device has committed.
    fn commit_redo(&self, m: &mut Memory, all: &mut [FoundLog]) -> Result<()> {
        if self.header.layout.mechanism != Mechanism::Redo {
            return Ok(());
        }
        let known: Vec<(u8, u64)> = all
            .iter()
            .map(|found| (found.number, found.descriptor.transaction))
            .collect();
        for found in all
            .iter_mut()
            .filter(|f| f.descriptor.state == LogState::Open)
        {
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
                state: LogState::Committed,
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

    /// The device's share of all bytes that a record may cover.
    fn objects(&self) -> std::ops::Range<u64> {
        let count = u64::from(self.header.devices);
        self.header.table() / count..self.header.bytes / count
    }

    /// Completes or undoes a log's transaction by the engine.
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
            // Keeps the number of the last transaction.
            transaction: found.descriptor.transaction,
            ..self.command(Operation::Recover, number)
        };
        self.launch_checked(m, index, &recover)
    }

    /// Recovers all logs and opens them. Returns their generations, device by device for each turn
    /// of each thread, and the highest transaction number.
    pub fn recover_all(&self, m: &mut Memory) -> Result<(Vec<Vec<Vec<u64>>>, u64)> {
        self.assign_numbers(m)?;
        self.check_pool_number(m)?;
        self.map_pool(m)?;
        let mut all = self.inspect_logs(m)?;
        self.register_peers(m)?;
        self.commit_redo(m, &mut all)?;
        let any = |found: &FoundLog| found.descriptor.state != LogState::Open;
        let mut dropped = false;
        let mut drop_all_lines = |m: &mut Memory| {
            if !std::mem::replace(&mut dropped, true) {
                // No line that the engines change may stay in the cache.
                m.drop_lines(self.header.table()..self.header.bytes)?;
                m.fence_posted()?;
            }
            Ok::<_, Error>(())
        };
        // The newest transaction of a thread first: the one that no device has completed.
        all.sort_by_key(|found| std::cmp::Reverse(found.pending().unwrap_or(u64::MAX)));
        let by_engine = m.options.engine_recovers;
        if !by_engine {
            // This command ends after all others of the pool, and stops the emptying of logs.
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
            if matches!(descriptor.state, LogState::Pending(_)) {
                // It was closed while it waited, and all devices are complete: its content is void.
                open.value += 1;
            }
            let results = self.launch(m, index, &open)?;
            // A log that the engine had open stays open.
            if !results.is_ok() && !results.has(ErrorBit::Busy) {
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

/// Without engines, transactions in their logs can't be recovered.
pub(crate) fn refuse_unless_empty(m: &mut Memory, header: &Header) -> Result<()> {
    for index in 0..usize::from(header.devices) {
        for number in 0..header.log_count() {
            let (place, bytes) = (header.log(number), header.layout.log_bytes);
            if !m.on_device(index, |m| recovery::is_empty(m, place, bytes, number))? {
                return Err(Error::Invalid(format!(
                    "log {number} of the pool's device {index} holds a transaction of the \
                     engines: open the pool with them"
                )));
            }
        }
    }
    Ok(())
}
