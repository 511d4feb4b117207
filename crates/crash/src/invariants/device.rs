//! One device: what it was sent, has taken and has not done yet.

use std::collections::VecDeque;

use sim::{LineRange, OrderEvent, OrderedCommand, Time};
use spec::nearpm::{Command, Operation, LINE};

use super::text::{name, place};
use super::{Broken, Checked, Invariant};

/// An access on its way to the device, in program order.
#[derive(Clone, Debug)]
struct Sent {
    at: Time,
    /// Counted from the first one on.
    number: u64,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Store(LineRange),
    /// Of a line of the page.
    Command(u8, Option<Command>),
}

/// A store that the device has, and that is not yet kept and in the memory.
#[derive(Clone, Debug)]
struct Store {
    /// Which of all accesses that the device has had.
    order: u64,
    /// As [`Sent::number`], if it is known.
    sent: Option<u64>,
    at: Time,
    channel: u8,
    lines: LineRange,
    number: Option<u32>,
    /// The memory has it, or its lines stand in the queue.
    gone: bool,
    kept: bool,
}

/// A line of a queue.
#[derive(Clone, Debug)]
struct Line {
    order: u64,
    at: Time,
    line: u64,
    left: bool,
    restored: bool,
}

#[derive(Clone, Debug)]
struct Load {
    order: u64,
    at: Time,
    channel: u8,
    id: u32,
    lines: LineRange,
    reads: bool,
}

/// A command that has been taken and has not ended.
#[derive(Clone, Debug)]
struct Taken {
    order: u64,
    at: Time,
    command: OrderedCommand,
    /// It was there before the power failed.
    restored: bool,
}

impl Taken {
    fn writes(&self, lines: &LineRange) -> bool {
        self.command.writes.is_some_and(|own| own.overlaps(lines))
    }

    fn touches(&self, lines: &LineRange) -> bool {
        self.writes(lines) || self.command.reads.is_some_and(|own| own.overlaps(lines))
    }
}

/// What was there when the power failed: all of it may come back, and what was persistent has to.
#[derive(Clone, Debug, Default)]
struct Left {
    commands: Vec<(Taken, bool)>,
    lines: Vec<(u8, Line, bool)>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Device {
    sent: VecDeque<Sent>,
    sends: u64,
    /// Loads of the host, and how many accesses stand before each.
    marks: Vec<(u32, u64)>,
    accesses: u64,
    stores: VecDeque<Store>,
    queues: Vec<VecDeque<Line>>,
    loads: Vec<Load>,
    commands: Vec<Taken>,
    left: Left,
    closed: bool,
}

fn broken(invariant: Invariant, event: String, before: String, since: Time) -> Broken {
    Broken {
        invariant,
        event,
        before: (before, since),
    }
}

/// Its end is one that others count on.
fn synchronises(operation: u8) -> bool {
    use Operation::*;
    let operation = Operation::from_number(operation);
    operation.is_some_and(|o| matches!(o, Commit | CommitRedo | Delete | Sync))
}

/// The host counts on it when a transaction has returned.
fn commits(operation: Operation) -> bool {
    use Operation::*;
    matches!(operation, Commit | CommitRedo | Switch)
}

impl Device {
    // ---------------------------------------------------------------- the host

    fn send(&mut self, at: Time, what: What) {
        self.sends += 1;
        self.sent.push_back(Sent {
            at,
            number: self.sends,
            what,
        });
    }

    pub fn send_store(&mut self, at: Time, offset: u64, bytes: u64) {
        self.send(at, What::Store(LineRange::of(offset, bytes)));
    }

    pub fn send_command(&mut self, at: Time, line: u8, command: Option<Command>) {
        self.send(at, What::Command(line, command));
    }

    pub fn issued(&mut self, tag: u32) {
        self.marks.push((tag, self.sends));
    }

    /// A load has come back: what stood before it is persistent.
    pub fn answered(&mut self, tag: u32) -> Checked {
        let Some(found) = self.marks.iter().position(|mark| mark.0 == tag) else {
            return Ok(());
        };
        let (_, before) = self.marks.swap_remove(found);
        if let Some(sent) = self.sent.front().filter(|sent| sent.number <= before) {
            let before = format!("{} has not taken what the host sent before it", whose(sent));
            return Err(proof(before, sent.at));
        }
        let late = self.stores.iter().find(|store| {
            let sent = store.sent.is_some_and(|number| number <= before);
            sent && !store.kept
        });
        match late {
            None => Ok(()),
            Some(store) => {
                let before = format!("the store before it, {}, is not kept", place(&store.lines));
                Err(proof(before, store.at))
            }
        }
    }

    /// A transaction has returned.
    pub fn returned(&self) -> Checked {
        let event = "a transaction returns".to_string();
        let early = |before, since| {
            let event = event.clone();
            Err(broken(Invariant::Synchronisation, event, before, since))
        };
        for sent in &self.sent {
            if let What::Command(_, Some(command)) = &sent.what {
                if commits(command.operation) {
                    let before = format!("its {:?} has not been taken", command.operation);
                    return early(before, sent.at);
                }
            }
        }
        let Some(store) = self.stores.iter().find(|store| !store.kept) else {
            return Ok(());
        };
        let behind = |taken: &Taken| {
            let operation = Operation::from_number(taken.command.operation);
            taken.order > store.order && operation.is_some_and(commits)
        };
        match self.commands.iter().any(behind) {
            false => Ok(()),
            true => {
                let store_is = place(&store.lines);
                let before = format!("a store before its commit, {store_is}, is not kept");
                early(before, store.at)
            }
        }
    }

    pub fn restarted(&mut self) {
        self.sent.clear();
        self.marks.clear();
    }

    // ---------------------------------------------------------------- the device

    /// A command that has been taken and has not ended.
    pub fn command(&self, number: u8) -> Option<OrderedCommand> {
        let found = self.commands.iter().find(|c| c.command.number == number);
        found.map(|taken| taken.command)
    }

    /// The device does something. The command that it has taken, as it was sent.
    pub fn take(&mut self, at: Time, event: OrderEvent) -> Result<Option<Command>, Broken> {
        match event {
            OrderEvent::StoreArrived { channel, lines } => self.store(at, channel, lines)?,
            OrderEvent::StoreIssued {
                channel,
                number,
                queued,
            } => self.goes(channel, number, queued),
            OrderEvent::StoreReachedMemory { channel, number } => self.reaches(channel, number)?,
            OrderEvent::StorePersisted { channel, number } => {
                if let Some(store) = self.store_of(channel, number) {
                    store.kept = true;
                }
                let done = |store: &Store| store.kept && store.gone;
                while self.stores.front().is_some_and(done) {
                    self.stores.pop_front();
                }
            }
            OrderEvent::QueueLineIssued { channel } => self.leaves(channel)?,
            OrderEvent::QueueLineWritten { channel } => {
                self.queue(channel).pop_front();
            }
            OrderEvent::LoadArrived { channel, id, lines } => {
                self.comes_in(|| format!("a load, {}, comes", place(&lines)))?;
                self.accesses += 1;
                self.loads.push(Load {
                    order: self.accesses,
                    at,
                    channel,
                    id,
                    lines,
                    reads: false,
                });
            }
            OrderEvent::LoadIssued { channel, id } => self.reads(channel, id)?,
            OrderEvent::LoadServed { channel, id } => self.served(channel, id)?,
            OrderEvent::CommandAccepted(command) => {
                self.comes_in(|| format!("{} is taken", name(&command)))?;
                let sent = self.take_sent(command.number)?;
                self.accesses += 1;
                self.commands.push(Taken {
                    order: self.accesses,
                    at,
                    command,
                    restored: false,
                });
                return Ok(sent);
            }
            OrderEvent::CommandSkipped { number } => return self.take_sent(number),
            OrderEvent::CommandStarted { number } => self.begins(number)?,
            OrderEvent::CommandEnded { number, .. } => {
                self.commands.retain(|c| c.command.number != number);
            }
            OrderEvent::PeerNotified { .. } | OrderEvent::LogVoid { .. } => {}
            OrderEvent::PowerLost => self.fails(),
            OrderEvent::CommandRestored(command) => self.restored(command)?,
            OrderEvent::QueueLineRestored { channel, line } => self.restored_line(channel, line)?,
            OrderEvent::WindowOpened => self.opens()?,
        }
        Ok(None)
    }

    fn queue(&mut self, channel: u8) -> &mut VecDeque<Line> {
        let channel = usize::from(channel);
        if self.queues.len() <= channel {
            self.queues.resize(channel + 1, VecDeque::new());
        }
        &mut self.queues[channel]
    }

    fn store_of(&mut self, channel: u8, number: u32) -> Option<&mut Store> {
        let mut stores = self.stores.iter_mut();
        stores.find(|store| {
            // A name is free again when a store is kept.
            !store.kept && store.channel == channel && store.number == Some(number)
        })
    }

    /// What has come back after a loss of power and is not done.
    fn unfinished(&self) -> Option<(String, Time)> {
        let mut commands = self.commands.iter().filter(|taken| taken.restored);
        if let Some(taken) = commands.next() {
            let what = format!("{} has come back and not ended", name(&taken.command));
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

    /// Nothing of the host comes before all that was restored has ended.
    fn comes_in(&self, event: impl Fn() -> String) -> Checked {
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
        Err(broken(Invariant::Recovery, event(), before, since))
    }

    fn store(&mut self, at: Time, channel: u8, lines: LineRange) -> Checked {
        let event = || format!("a store, {}, comes", place(&lines));
        self.comes_in(event)?;
        let own = |sent: &Sent| matches!(&sent.what, What::Store(own) if (own.first..=own.last).contains(&lines.first));
        let found = self.sent.iter().position(own);
        let mut number = None;
        if let Some(found) = found {
            // Those of other lines may stand before it: their channel is another.
            let command = self.sent.iter().take(found);
            if let Some(sent) = command
                .into_iter()
                .find(|s| matches!(s.what, What::Command(..)))
            {
                let before = format!("{} before it has not been taken", whose(sent));
                return Err(broken(Invariant::Order, event(), before, sent.at));
            }
            number = Some(self.sent[found].number);
            let over = match &mut self.sent[found].what {
                What::Store(own) => {
                    own.first = lines.last + 1;
                    own.first > own.last
                }
                What::Command(..) => false,
            };
            if over {
                self.sent.remove(found);
            }
        }
        self.accesses += 1;
        self.stores.push_back(Store {
            order: self.accesses,
            sent: number,
            at,
            channel,
            lines,
            number: None,
            gone: false,
            kept: false,
        });
        Ok(())
    }

    fn take_sent(&mut self, number: u8) -> Result<Option<Command>, Broken> {
        let own = |sent: &Sent| matches!(sent.what, What::Command(line, _) if line == number);
        let Some(found) = self.sent.iter().position(own) else {
            return Ok(None);
        };
        if let Some(sent) = self.sent.front().filter(|_| found > 0) {
            let event = format!("command {number} is taken");
            let before = format!("{} before it has not come", whose(sent));
            return Err(broken(Invariant::Order, event, before, sent.at));
        }
        Ok(self.sent.remove(found).and_then(|sent| match sent.what {
            What::Command(_, command) => command,
            What::Store(_) => None,
        }))
    }

    fn goes(&mut self, channel: u8, number: u32, queued: bool) {
        let mut stores = self.stores.iter_mut();
        let Some(store) = stores.find(|s| s.channel == channel && s.number.is_none()) else {
            return;
        };
        (store.number, store.gone) = (Some(number), queued);
        let (order, at, lines) = (store.order, store.at, store.lines);
        if queued {
            let queue = self.queue(channel);
            queue.extend((lines.first..=lines.last).map(|line| Line {
                order,
                at,
                line,
                left: false,
                restored: false,
            }));
        }
    }

    /// Bytes of lines come to the memory, or are read there, by an access of that place: what is older than it and in the way.
    fn in_the_way(
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
                format!("{} is older and has not ended", name(&taken.command)),
                taken.at,
            ));
        }
        // Stores of one line keep their order: invariant 2. A load that does not find an older one breaks the first.
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
            .filter(|store| store.order < order && !store.gone);
        let store = stores.find(|store| store.lines.overlaps(lines))?;
        Some((
            invariant,
            format!("an older store, {}, is not there", place(&store.lines)),
            store.at,
        ))
    }

    fn reaches(&mut self, channel: u8, number: u32) -> Checked {
        let Some(store) = self.store_of(channel, number) else {
            return Ok(());
        };
        store.gone = true;
        let (order, lines) = (store.order, store.lines);
        match self.in_the_way(order, &lines, true) {
            None => Ok(()),
            Some((invariant, before, since)) => {
                let event = format!("a store, {}, reaches the memory", place(&lines));
                Err(broken(invariant, event, before, since))
            }
        }
    }

    fn leaves(&mut self, channel: u8) -> Checked {
        let Some(line) = self.queue(channel).iter_mut().find(|line| !line.left) else {
            return Ok(());
        };
        line.left = true;
        let (order, number) = (line.order, line.line);
        let lines = LineRange {
            first: number,
            last: number,
        };
        match self.in_the_way(order, &lines, true) {
            None => Ok(()),
            Some((invariant, before, since)) => {
                let event = format!(
                    "a store of the queue, {}, reaches the memory",
                    place(&lines)
                );
                Err(broken(invariant, event, before, since))
            }
        }
    }

    fn load_of(&self, channel: u8, id: u32, reads: bool) -> Option<usize> {
        let mut loads = self.loads.iter();
        loads.position(|load| (load.channel, load.id, load.reads) == (channel, id, reads))
    }

    fn reads(&mut self, channel: u8, id: u32) -> Checked {
        let Some(place_of) = self.load_of(channel, id, false) else {
            return Ok(());
        };
        let load = &mut self.loads[place_of];
        load.reads = true;
        let (order, lines) = (load.order, load.lines);
        match self.in_the_way(order, &lines, false) {
            None => Ok(()),
            Some((invariant, before, since)) => {
                let event = format!("a load, {}, reads the memory", place(&lines));
                Err(broken(invariant, event, before, since))
            }
        }
    }

    fn served(&mut self, channel: u8, id: u32) -> Checked {
        let Some(place_of) = self.load_of(channel, id, true) else {
            return Ok(());
        };
        let load = self.loads.remove(place_of);
        match self.stores.iter().find(|s| s.order < load.order && !s.kept) {
            None => Ok(()),
            Some(store) => {
                let event = format!("a load, {}, is answered", place(&load.lines));
                let before = format!("an older store, {}, is not kept", place(&store.lines));
                Err(broken(Invariant::Persistence, event, before, store.at))
            }
        }
    }

    fn begins(&mut self, number: u8) -> Checked {
        let found = self.commands.iter().find(|c| c.command.number == number);
        let Some(own) = found else {
            return Ok(());
        };
        let (order, command) = (own.order, own.command);
        let event = || format!("{} begins", name(&command));
        for old in self.commands.iter().filter(|old| old.order < order) {
            let reads = command.reads.is_some_and(|lines| old.writes(&lines));
            let writes = command.writes.is_some_and(|lines| old.touches(&lines));
            if reads || writes {
                let invariant =
                    match synchronises(command.operation) && old.command.log == command.log {
                        true => Invariant::Synchronisation,
                        false => Invariant::Order,
                    };
                let before = format!("{} is older and has not ended", name(&old.command));
                return Err(broken(invariant, event(), before, old.at));
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
            return Err(broken(Invariant::Order, event(), before, line.at));
        }
        if let Some(store) = self.stores.iter().find(|s| s.order < order && !s.kept) {
            let before = format!("an older store, {}, is not kept", place(&store.lines));
            return Err(broken(Invariant::Persistence, event(), before, store.at));
        }
        let reading = self.loads.iter().filter(|load| load.order < order);
        let overwrites = |load: &&Load| command.writes.is_some_and(|own| own.overlaps(&load.lines));
        if let Some(load) = reading.into_iter().find(overwrites) {
            let before = format!("an older load, {}, is not answered", place(&load.lines));
            return Err(broken(Invariant::Order, event(), before, load.at));
        }
        Ok(())
    }

    // ---------------------------------------------------------------- losses of power

    fn fails(&mut self) {
        let unkept = self.stores.iter().find(|store| !store.kept);
        let kept_before = unkept.map_or(u64::MAX, |store| store.order);
        // What had not come back when the power failed again still has to.
        let commands = self.commands.drain(..);
        self.left.commands.extend(commands.map(|taken| {
            let has_to = taken.order < kept_before;
            (taken, has_to)
        }));
        for (channel, queue) in (0..).zip(&mut self.queues) {
            self.left.lines.extend(queue.drain(..).map(|line| {
                let has_to = line.order < kept_before;
                (channel, line, has_to)
            }));
        }
        // Of two to one line the older one comes back first; where the power fails again the younger one may be lost since the first time.
        self.left.commands.sort_by_key(|(taken, _)| taken.order);
        self.left.lines.sort_by_key(|(_, line, _)| line.order);
        self.stores.clear();
        self.loads.clear();
        // No load proves anything any more.
        self.marks.clear();
        self.closed = true;
    }

    fn restored(&mut self, command: OrderedCommand) -> Checked {
        let mut left = self.left.commands.iter();
        let Some(found) = left.position(|(taken, _)| taken.command == command) else {
            let event = format!("{} comes back", name(&command));
            let before = "it was not among what had been taken".into();
            return Err(broken(Invariant::Recovery, event, before, Time::ZERO));
        };
        let (mut taken, _) = self.left.commands.remove(found);
        taken.restored = true;
        self.commands.push(taken);
        Ok(())
    }

    fn restored_line(&mut self, channel: u8, line: u64) -> Checked {
        let mut left = self.left.lines.iter();
        let Some(found) = left.position(|(of, left, _)| (*of, left.line) == (channel, line)) else {
            let event = format!("a store, PM {:#x}, comes back", line * LINE);
            let before = "it was not in the queue".into();
            return Err(broken(Invariant::Recovery, event, before, Time::ZERO));
        };
        let (_, mut line, _) = self.left.lines.remove(found);
        (line.left, line.restored) = (false, true);
        self.queue(channel).push_back(line);
        Ok(())
    }

    fn opens(&mut self) -> Checked {
        let event = || "the device opens after a loss of power".to_string();
        let left = std::mem::take(&mut self.left);
        if let Some((taken, _)) = left.commands.iter().find(|(_, has_to)| *has_to) {
            let before = format!(
                "{} was persistent and has not come back",
                name(&taken.command)
            );
            return Err(broken(Invariant::Recovery, event(), before, taken.at));
        }
        if let Some((_, line, _)) = left.lines.iter().find(|(.., has_to)| *has_to) {
            let before = format!(
                "a store, PM {:#x}, was persistent and has not come back",
                line.line * LINE
            );
            return Err(broken(Invariant::Recovery, event(), before, line.at));
        }
        if let Some((before, since)) = self.unfinished() {
            return Err(broken(Invariant::Recovery, event(), before, since));
        }
        self.closed = false;
        Ok(())
    }
}

fn proof(before: String, since: Time) -> Broken {
    broken(
        Invariant::Persistence,
        "a load comes back to the host".into(),
        before,
        since,
    )
}

fn whose(sent: &Sent) -> String {
    match &sent.what {
        What::Store(lines) => format!("a store, {},", place(lines)),
        What::Command(line, Some(command)) => format!("command {line}, {:?},", command.operation),
        What::Command(line, None) => format!("command {line}"),
    }
}
