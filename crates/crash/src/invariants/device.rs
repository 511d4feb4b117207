// SPDX-License-Identifier: Apache-2.0

//! The state of one device: accesses sent to it, accepted by it, and not completed yet.

use std::collections::VecDeque;

use sim::{LineRange, OrderEvent, OrderedCommand, Time};
use spec::nearpm::{Command, Operation, COMMANDS, LINE};

use super::event_text::{command_text, lines_text};
use super::{Breach, CheckResult, Invariant};

/// An access on its way to the device, in program order.
#[derive(Clone, Debug)]
struct SentAccess {
    at: Time,
    /// Counts from the first one.
    number: u64,
    kind: AccessKind,
}

#[derive(Clone, Debug)]
enum AccessKind {
    Store(LineRange),
    /// A command, with its line of the page.
    Command(u8, Option<Command>),
}

/// A store that the device has accepted, and that is not yet persistent and in the memory.
#[derive(Clone, Debug)]
struct ArrivedStore {
    /// Position among all accesses that the device has accepted.
    order: u64,
    /// As [`SentAccess::number`], if it is known.
    sent: Option<u64>,
    at: Time,
    channel: u8,
    lines: LineRange,
    number: Option<u32>,
    /// The memory has it, or its lines are in the queue.
    in_memory: bool,
    kept: bool,
}

/// A line of a queue.
#[derive(Clone, Debug)]
struct QueuedLine {
    order: u64,
    at: Time,
    line: u64,
    left: bool,
    restored: bool,
}

#[derive(Clone, Debug)]
struct OutstandingLoad {
    order: u64,
    at: Time,
    channel: u8,
    id: u32,
    lines: LineRange,
    reads: bool,
}

/// An accepted command that has not ended.
#[derive(Clone, Debug)]
struct AcceptedCommand {
    order: u64,
    at: Time,
    command: OrderedCommand,
    /// Stores before this one have to be persistent when it begins.
    after_stores: u64,
    /// It was accepted before the last power loss.
    restored: bool,
}

impl AcceptedCommand {
    fn writes(&self, lines: &LineRange) -> bool {
        self.command.writes.is_some_and(|own| own.overlaps(lines))
    }

    fn touches(&self, lines: &LineRange) -> bool {
        self.writes(lines) || self.command.reads.is_some_and(|own| own.overlaps(lines))
    }
}

/// The state at a power loss: all of it may be restored, and persistent parts have to be.
#[derive(Clone, Debug, Default)]
struct PowerLossState {
    commands: Vec<(AcceptedCommand, bool)>,
    lines: Vec<(u8, QueuedLine, bool)>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Device {
    sent: VecDeque<SentAccess>,
    sends: u64,
    /// Loads of the host, and the number of accesses before each.
    marks: Vec<(u32, u64)>,
    accesses: u64,
    stores: VecDeque<ArrivedStore>,
    queues: Vec<VecDeque<QueuedLine>>,
    loads: Vec<OutstandingLoad>,
    commands: Vec<AcceptedCommand>,
    /// Order of the last command of the host.
    last_command: u64,
    left: PowerLossState,
    closed: bool,
}

fn breach(invariant: Invariant, event: String, before: String, since: Time) -> Breach {
    Breach {
        invariant,
        event,
        before: (before, since),
    }
}

/// True if others rely on its end.
fn is_synchronising(operation: u8) -> bool {
    use Operation::*;
    let operation = Operation::from_number(operation);
    operation.is_some_and(|o| matches!(o, Commit | CommitRedo | Delete | Sync))
}

/// True if the host relies on it when a transaction has returned.
fn is_commit(operation: Operation) -> bool {
    use Operation::*;
    matches!(operation, Commit | CommitRedo | Switch)
}

impl Device {
    // ---- the host ----

    fn send(&mut self, at: Time, kind: AccessKind) {
        self.sends += 1;
        self.sent.push_back(SentAccess {
            at,
            number: self.sends,
            kind,
        });
    }

    pub fn send_store(&mut self, at: Time, offset: u64, bytes: u64) {
        self.send(at, AccessKind::Store(LineRange::of(offset, bytes)));
    }

    pub fn send_command(&mut self, at: Time, line: u8, command: Option<Command>) {
        self.send(at, AccessKind::Command(line, command));
    }

    pub fn load_issued(&mut self, tag: u32) {
        self.marks.push((tag, self.sends));
    }

    /// A load has returned: accesses before it are persistent.
    pub fn load_answered(&mut self, tag: u32) -> CheckResult {
        let Some(found) = self.marks.iter().position(|mark| mark.0 == tag) else {
            return Ok(());
        };
        let (_, before) = self.marks.swap_remove(found);
        if let Some(sent) = self.sent.front().filter(|sent| sent.number <= before) {
            let before = format!(
                "{} has not taken what the host sent before it",
                describe_access(sent)
            );
            return Err(load_return_breach(before, sent.at));
        }
        let late = self.stores.iter().find(|store| {
            let sent = store.sent.is_some_and(|number| number <= before);
            sent && !store.kept
        });
        match late {
            None => Ok(()),
            Some(store) => {
                let before = format!(
                    "the store before it, {}, is not kept",
                    lines_text(&store.lines)
                );
                Err(load_return_breach(before, store.at))
            }
        }
    }

    /// A transaction has returned.
    pub fn transaction_returned(&self) -> CheckResult {
        let event = "a transaction returns".to_string();
        let early = |before, since| {
            let event = event.clone();
            Err(breach(Invariant::Synchronisation, event, before, since))
        };
        for sent in &self.sent {
            if let AccessKind::Command(_, Some(command)) = &sent.kind {
                if is_commit(command.operation) {
                    let before = format!("its {:?} has not been taken", command.operation);
                    return early(before, sent.at);
                }
            }
        }
        let Some(store) = self.stores.iter().find(|store| !store.kept) else {
            return Ok(());
        };
        let follows_store = |taken: &AcceptedCommand| {
            let operation = Operation::from_number(taken.command.operation);
            taken.order > store.order && operation.is_some_and(is_commit)
        };
        match self.commands.iter().any(follows_store) {
            false => Ok(()),
            true => {
                let store_is = lines_text(&store.lines);
                let before = format!("a store before its commit, {store_is}, is not kept");
                early(before, store.at)
            }
        }
    }

    pub fn restarted(&mut self) {
        self.sent.clear();
        self.marks.clear();
    }

    // ---- the device ----

    /// An accepted command that has not ended.
    pub fn accepted_command(&self, number: u8) -> Option<OrderedCommand> {
        let found = self.commands.iter().find(|c| c.command.number == number);
        found.map(|taken| taken.command)
    }

    /// Checks an event of the device. Returns the command that it has accepted, as it was sent.
    pub fn check_event(&mut self, at: Time, event: OrderEvent) -> Result<Option<Command>, Breach> {
        match event {
            OrderEvent::StoreArrived { channel, lines } => {
                self.store_arrives(at, channel, lines)?
            }
            OrderEvent::StoreIssued {
                channel,
                number,
                queued,
            } => self.store_departs(channel, number, queued),
            OrderEvent::StoreReachedMemory { channel, number } => {
                self.store_reaches_memory(channel, number)?
            }
            OrderEvent::StorePersisted { channel, number } => {
                if let Some(store) = self.find_store(channel, number) {
                    store.kept = true;
                }
                let done = |store: &ArrivedStore| store.kept && store.in_memory;
                while self.stores.front().is_some_and(done) {
                    self.stores.pop_front();
                }
            }
            OrderEvent::QueueLineIssued { channel } => self.line_leaves_queue(channel)?,
            OrderEvent::QueueLineWritten { channel } => {
                self.queue(channel).pop_front();
            }
            OrderEvent::LoadArrived { channel, id, lines } => {
                self.check_open(|| format!("a load, {}, comes", lines_text(&lines)))?;
                self.accesses += 1;
                self.loads.push(OutstandingLoad {
                    order: self.accesses,
                    at,
                    channel,
                    id,
                    lines,
                    reads: false,
                });
            }
            OrderEvent::LoadIssued { channel, id } => self.load_reads(channel, id)?,
            OrderEvent::LoadServed { channel, id } => self.load_served(channel, id)?,
            OrderEvent::CommandAccepted(command) => {
                self.check_open(|| format!("{} is taken", command_text(&command)))?;
                let sent = self.accept_sent(command.number)?;
                self.accesses += 1;
                // A record that the engine makes by itself may start before stores of the same
                // epoch are kept. They are to other lines.
                if usize::from(command.number) < COMMANDS {
                    self.last_command = self.accesses;
                }
                self.commands.push(AcceptedCommand {
                    order: self.accesses,
                    at,
                    command,
                    after_stores: self.last_command,
                    restored: false,
                });
                return Ok(sent);
            }
            OrderEvent::CommandSkipped { number } => return self.accept_sent(number),
            OrderEvent::CommandStarted { number } => self.command_begins(number)?,
            OrderEvent::CommandEnded { number, .. } => {
                self.commands.retain(|c| c.command.number != number);
            }
            OrderEvent::PeerNotified { .. } | OrderEvent::LogVoid { .. } => {}
            OrderEvent::PowerLost => self.power_fails(),
            OrderEvent::CommandRestored(command) => self.command_restored(command)?,
            OrderEvent::QueueLineRestored { channel, line } => self.line_restored(channel, line)?,
            OrderEvent::WindowOpened => self.device_opens()?,
        }
        Ok(None)
    }

    fn queue(&mut self, channel: u8) -> &mut VecDeque<QueuedLine> {
        let channel = usize::from(channel);
        if self.queues.len() <= channel {
            self.queues.resize(channel + 1, VecDeque::new());
        }
        &mut self.queues[channel]
    }

    fn find_store(&mut self, channel: u8, number: u32) -> Option<&mut ArrivedStore> {
        let mut stores = self.stores.iter_mut();
        stores.find(|store| {
            // A number is free again when its store is persistent.
            !store.kept && store.channel == channel && store.number == Some(number)
        })
    }

    /// Anything restored after a power loss that has not ended.
    fn unfinished(&self) -> Option<(String, Time)> {
        let mut commands = self.commands.iter().filter(|taken| taken.restored);
        if let Some(taken) = commands.next() {
            let what = format!(
                "{} has come back and not ended",
                command_text(&taken.command)
            );
            return Some((what, taken.at));
        }
        let mut lines = self.queues.iter().flatten().filter(|line| line.restored);
        let line = lines.next()?;
        let what = format!(
            "a store, PM {:#x}, has come back and is not written",
            line.line * LINE
        );
        Some((what, line.at))
    }

    /// The device accepts nothing before all restored work has ended.
    fn check_open(&self, event: impl Fn() -> String) -> CheckResult {
        if !self.closed {
            return Ok(());
        }
        let unknown = || {
            (
                "the device has not opened after a loss of power".into(),
                Time::ZERO,
            )
        };
        let (before, since) = self.unfinished().unwrap_or_else(unknown);
        Err(breach(Invariant::Recovery, event(), before, since))
    }

    fn store_arrives(&mut self, at: Time, channel: u8, lines: LineRange) -> CheckResult {
        let event = || format!("a store, {}, comes", lines_text(&lines));
        self.check_open(event)?;
        let own = |sent: &SentAccess| match &sent.kind {
            AccessKind::Store(own) => (own.first..=own.last).contains(&lines.first),
            AccessKind::Command(..) => false,
        };
        let found = self.sent.iter().position(own);
        let mut number = None;
        if let Some(found) = found {
            // Stores to other lines may precede it: they are for another channel.
            let command = self.sent.iter().take(found);
            if let Some(sent) = command
                .into_iter()
                .find(|s| matches!(s.kind, AccessKind::Command(..)))
            {
                let before = format!("{} before it has not been taken", describe_access(sent));
                return Err(breach(Invariant::Order, event(), before, sent.at));
            }
            number = Some(self.sent[found].number);
            let over = match &mut self.sent[found].kind {
                AccessKind::Store(own) => {
                    own.first = lines.last + 1;
                    own.first > own.last
                }
                AccessKind::Command(..) => false,
            };
            if over {
                self.sent.remove(found);
            }
        }
        self.accesses += 1;
        self.stores.push_back(ArrivedStore {
            order: self.accesses,
            sent: number,
            at,
            channel,
            lines,
            number: None,
            in_memory: false,
            kept: false,
        });
        Ok(())
    }

    fn accept_sent(&mut self, number: u8) -> Result<Option<Command>, Breach> {
        let own =
            |sent: &SentAccess| matches!(sent.kind, AccessKind::Command(line, _) if line == number);
        let Some(found) = self.sent.iter().position(own) else {
            return Ok(None);
        };
        if let Some(sent) = self.sent.front().filter(|_| found > 0) {
            let event = format!("command {number} is taken");
            let before = format!("{} before it has not come", describe_access(sent));
            return Err(breach(Invariant::Order, event, before, sent.at));
        }
        Ok(self.sent.remove(found).and_then(|sent| match sent.kind {
            AccessKind::Command(_, command) => command,
            AccessKind::Store(_) => None,
        }))
    }

    fn store_departs(&mut self, channel: u8, number: u32, queued: bool) {
        let mut stores = self.stores.iter_mut();
        let Some(store) = stores.find(|s| s.channel == channel && s.number.is_none()) else {
            return;
        };
        (store.number, store.in_memory) = (Some(number), queued);
        let (order, at, lines) = (store.order, store.at, store.lines);
        if queued {
            let queue = self.queue(channel);
            queue.extend((lines.first..=lines.last).map(|line| QueuedLine {
                order,
                at,
                line,
                left: false,
                restored: false,
            }));
        }
    }

    /// The first older access that conflicts with a write, or a read, of these lines.
    fn older_conflict(
        &self,
        order: u64,
        lines: &LineRange,
        write: bool,
    ) -> Option<(Invariant, String, Time)> {
        let older = self.commands.iter().filter(|taken| taken.order < order);
        let mut older = older.filter(|taken| match write {
            true => taken.touches(lines),
            false => taken.writes(lines),
        });
        if let Some(taken) = older.next() {
            return Some((
                Invariant::Order,
                format!(
                    "{} is older and has not ended",
                    command_text(&taken.command)
                ),
                taken.at,
            ));
        }
        // Stores to one line keep their order: invariant 2. A load that misses an older store
        // violates invariant 1.
        let invariant = if write {
            Invariant::Persistence
        } else {
            Invariant::Order
        };
        let mut lines_before = self
            .queues
            .iter()
            .flatten()
            .filter(|line| line.order < order && !line.left);
        if let Some(line) =
            lines_before.find(|line| (lines.first..=lines.last).contains(&line.line))
        {
            return Some((
                invariant,
                format!(
                    "an older store, PM {:#x}, is in the queue",
                    line.line * LINE
                ),
                line.at,
            ));
        }
        let mut stores = self
            .stores
            .iter()
            .filter(|store| store.order < order && !store.in_memory);
        let store = stores.find(|store| store.lines.overlaps(lines))?;
        Some((
            invariant,
            format!("an older store, {}, is not there", lines_text(&store.lines)),
            store.at,
        ))
    }

    fn store_reaches_memory(&mut self, channel: u8, number: u32) -> CheckResult {
        let Some(store) = self.find_store(channel, number) else {
            return Ok(());
        };
        store.in_memory = true;
        let (order, lines) = (store.order, store.lines);
        match self.older_conflict(order, &lines, true) {
            None => Ok(()),
            Some((invariant, before, since)) => {
                let event = format!("a store, {}, reaches the memory", lines_text(&lines));
                Err(breach(invariant, event, before, since))
            }
        }
    }

    fn line_leaves_queue(&mut self, channel: u8) -> CheckResult {
        let Some(line) = self.queue(channel).iter_mut().find(|line| !line.left) else {
            return Ok(());
        };
        line.left = true;
        let (order, number) = (line.order, line.line);
        let lines = LineRange {
            first: number,
            last: number,
        };
        match self.older_conflict(order, &lines, true) {
            None => Ok(()),
            Some((invariant, before, since)) => {
                let event = format!(
                    "a store of the queue, {}, reaches the memory",
                    lines_text(&lines)
                );
                Err(breach(invariant, event, before, since))
            }
        }
    }

    fn find_load(&self, channel: u8, id: u32, reads: bool) -> Option<usize> {
        let mut loads = self.loads.iter();
        loads.position(|load| (load.channel, load.id, load.reads) == (channel, id, reads))
    }

    fn load_reads(&mut self, channel: u8, id: u32) -> CheckResult {
        let Some(place_of) = self.find_load(channel, id, false) else {
            return Ok(());
        };
        let load = &mut self.loads[place_of];
        load.reads = true;
        let (order, lines) = (load.order, load.lines);
        match self.older_conflict(order, &lines, false) {
            None => Ok(()),
            Some((invariant, before, since)) => {
                let event = format!("a load, {}, reads the memory", lines_text(&lines));
                Err(breach(invariant, event, before, since))
            }
        }
    }

    fn load_served(&mut self, channel: u8, id: u32) -> CheckResult {
        let Some(place_of) = self.find_load(channel, id, true) else {
            return Ok(());
        };
        let load = self.loads.remove(place_of);
        match self.stores.iter().find(|s| s.order < load.order && !s.kept) {
            None => Ok(()),
            Some(store) => {
                let event = format!("a load, {}, is answered", lines_text(&load.lines));
                let before = format!("an older store, {}, is not kept", lines_text(&store.lines));
                Err(breach(Invariant::Persistence, event, before, store.at))
            }
        }
    }

    fn command_begins(&mut self, number: u8) -> CheckResult {
        let found = self.commands.iter().find(|c| c.command.number == number);
        let Some(own) = found else {
            return Ok(());
        };
        let (order, command, after_stores) = (own.order, own.command, own.after_stores);
        let event = || format!("{} begins", command_text(&command));
        for old in self.commands.iter().filter(|old| old.order < order) {
            let reads = command.reads.is_some_and(|lines| old.writes(&lines));
            let writes = command.writes.is_some_and(|lines| old.touches(&lines));
            if reads || writes {
                let invariant =
                    match is_synchronising(command.operation) && old.command.log == command.log {
                        true => Invariant::Synchronisation,
                        false => Invariant::Order,
                    };
                let before = format!("{} is older and has not ended", command_text(&old.command));
                return Err(breach(invariant, event(), before, old.at));
            }
        }
        let ranges = [command.reads, command.writes];
        let touches = |lines: &LineRange| ranges.iter().flatten().any(|own| own.overlaps(lines));
        let mut lines = self
            .queues
            .iter()
            .flatten()
            .filter(|line| line.order < order);
        if let Some(line) = lines.find(|line| {
            touches(&LineRange {
                first: line.line,
                last: line.line,
            })
        }) {
            let before = format!(
                "an older store, PM {:#x}, is in the queue",
                line.line * LINE
            );
            return Err(breach(Invariant::Order, event(), before, line.at));
        }
        let is_late = |s: &&ArrivedStore| s.order < after_stores && !s.kept;
        if let Some(store) = self.stores.iter().find(is_late) {
            let before = format!("an older store, {}, is not kept", lines_text(&store.lines));
            return Err(breach(Invariant::Persistence, event(), before, store.at));
        }
        let reading = self.loads.iter().filter(|load| load.order < order);
        let overwrites =
            |load: &&OutstandingLoad| command.writes.is_some_and(|own| own.overlaps(&load.lines));
        if let Some(load) = reading.into_iter().find(overwrites) {
            let before = format!(
                "an older load, {}, is not answered",
                lines_text(&load.lines)
            );
            return Err(breach(Invariant::Order, event(), before, load.at));
        }
        Ok(())
    }

    // ---- losses of power ----

    fn power_fails(&mut self) {
        let unkept = self.stores.iter().find(|store| !store.kept);
        let kept_before = unkept.map_or(u64::MAX, |store| store.order);
        // What was not restored when the power failed again still has to be restored.
        let commands = self.commands.drain(..);
        self.left.commands.extend(commands.map(|taken| {
            let required = taken.order < kept_before;
            (taken, required)
        }));
        for (channel, queue) in (0..).zip(&mut self.queues) {
            self.left.lines.extend(queue.drain(..).map(|line| {
                let required = line.order < kept_before;
                (channel, line, required)
            }));
        }
        // Of two stores to a line the older one is restored first. After a second power loss the
        // younger one may be lost since the first.
        self.left.commands.sort_by_key(|(taken, _)| taken.order);
        self.left.lines.sort_by_key(|(_, line, _)| line.order);
        self.stores.clear();
        self.loads.clear();
        // Loads before the power loss prove nothing.
        self.marks.clear();
        self.closed = true;
    }

    fn command_restored(&mut self, command: OrderedCommand) -> CheckResult {
        let mut left = self.left.commands.iter();
        let Some(found) = left.position(|(taken, _)| taken.command == command) else {
            let event = format!("{} comes back", command_text(&command));
            let before = "it was not among what had been taken".into();
            return Err(breach(Invariant::Recovery, event, before, Time::ZERO));
        };
        let (mut taken, _) = self.left.commands.remove(found);
        taken.restored = true;
        self.commands.push(taken);
        Ok(())
    }

    fn line_restored(&mut self, channel: u8, line: u64) -> CheckResult {
        let mut left = self.left.lines.iter();
        let Some(found) = left.position(|(of, left, _)| (*of, left.line) == (channel, line)) else {
            let event = format!("a store, PM {:#x}, comes back", line * LINE);
            let before = "it was not in the queue".into();
            return Err(breach(Invariant::Recovery, event, before, Time::ZERO));
        };
        let (_, mut line, _) = self.left.lines.remove(found);
        (line.left, line.restored) = (false, true);
        self.queue(channel).push_back(line);
        Ok(())
    }

    fn device_opens(&mut self) -> CheckResult {
        let event = || "the device opens after a loss of power".to_string();
        let left = std::mem::take(&mut self.left);
        if let Some((taken, _)) = left.commands.iter().find(|(_, required)| *required) {
            let before = format!(
                "{} was persistent and has not come back",
                command_text(&taken.command)
            );
            return Err(breach(Invariant::Recovery, event(), before, taken.at));
        }
        if let Some((_, line, _)) = left.lines.iter().find(|(.., required)| *required) {
            let before = format!(
                "a store, PM {:#x}, was persistent and has not come back",
                line.line * LINE
            );
            return Err(breach(Invariant::Recovery, event(), before, line.at));
        }
        if let Some((before, since)) = self.unfinished() {
            return Err(breach(Invariant::Recovery, event(), before, since));
        }
        self.closed = false;
        Ok(())
    }
}

fn load_return_breach(before: String, since: Time) -> Breach {
    breach(
        Invariant::Persistence,
        "a load comes back to the host".into(),
        before,
        since,
    )
}

fn describe_access(sent: &SentAccess) -> String {
    match &sent.kind {
        AccessKind::Store(lines) => format!("a store, {},", lines_text(lines)),
        AccessKind::Command(line, Some(command)) => {
            format!("command {line}, {:?},", command.operation)
        }
        AccessKind::Command(line, None) => format!("command {line}"),
    }
}
