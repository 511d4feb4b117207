// SPDX-License-Identifier: Apache-2.0

//! Combines events to commands.

use std::collections::{BTreeMap, VecDeque};

use sim::{Time, TraceEvent};
use spec::nvme::admin;
use spec::nvme::properties::{self, CC};

use crate::command::{Command, TracePoint};

const DOORBELLS: std::ops::Range<u64> = properties::DOORBELLS..properties::MSIX_TABLE;
/// Maximum number of kept doorbell stores, entries and messages. It is reached only if events are
/// lost.
const MANY: usize = 4096;

/// A write of a submission queue's tail.
struct Doorbell {
    stored: Option<Time>,
    arrived: Time,
    tail: u16,
}

/// An interrupt message in flight.
struct InterruptMessage {
    vector: u8,
    addr: u64,
    sent: Time,
    /// Commands that it announces and whose entries are in memory.
    commands: Vec<Command>,
}

/// Combines events to commands.
#[derive(Default)]
pub struct Collector {
    /// Stores in flight to the device: offset and time.
    stores: VecDeque<(u64, Time)>,
    /// By queue: doorbells with commands that have not been fetched.
    doorbells: BTreeMap<u16, VecDeque<Doorbell>>,
    /// By slot.
    active: BTreeMap<u8, Command>,
    /// By mover: slots of the jobs whose data has not started to arrive.
    jobs: BTreeMap<u8, VecDeque<u8>>,
    /// Time of a completion entry that was created and not sent.
    posted: Option<Time>,
    /// Entries in flight to the host, by address.
    entries: VecDeque<(u64, Command)>,
    /// Commands whose interrupt has not been sent.
    waiting: VecDeque<Command>,
    /// Interrupts in flight.
    messages: VecDeque<InterruptMessage>,
    finished: Vec<Command>,
}

impl Collector {
    /// A collector without commands.
    pub fn new() -> Collector {
        Collector::default()
    }

    /// Processes the next event.
    pub fn event(&mut self, time: Time, event: &TraceEvent) {
        match event {
            TraceEvent::Stored { offset, .. } => {
                self.stores.push_back((*offset, time));
                if self.stores.len() > MANY {
                    self.stores.pop_front();
                }
            }
            TraceEvent::Arrived { offset, value } => self.arrived(time, *offset, *value),
            TraceEvent::Fetch { slot, queue, head } => self.fetch(time, *slot, *queue, *head),
            TraceEvent::Decoded {
                slot,
                queue,
                cid,
                opcode,
                nsid,
                cdw,
            } => {
                if let Some(command) = self.active.get_mut(slot) {
                    command.set(TracePoint::Decoded, time);
                    command.queue = *queue;
                    command.cid = *cid;
                    command.opcode = *opcode;
                    command.nsid = *nsid;
                    command.cdw = *cdw;
                }
                if (*queue, *opcode) == (0, admin::CREATE_IO_SQ) {
                    self.doorbells.remove(&(cdw[0] as u16));
                }
            }
            TraceEvent::Started { slot } => self.mark(*slot, TracePoint::Started, time),
            TraceEvent::Segment {
                slot,
                mover,
                to_media,
            } => {
                self.mark(*slot, TracePoint::LastJob, time);
                if let Some(command) = self.active.get_mut(slot) {
                    command.set_first(TracePoint::FirstJob, time);
                    if command.has_source(*to_media) {
                        self.jobs.entry(*mover).or_default().push_back(*slot);
                    }
                }
            }
            TraceEvent::Data { mover } => {
                let slot = self.jobs.get_mut(mover).and_then(VecDeque::pop_front);
                if let Some(command) = slot.and_then(|slot| self.active.get_mut(&slot)) {
                    command.set_first(TracePoint::FirstData, time);
                }
            }
            TraceEvent::Done { slot } => {
                self.mark(*slot, TracePoint::Done, time);
                self.forget_jobs(*slot);
            }
            TraceEvent::Post => self.posted = Some(time),
            TraceEvent::Sent {
                slot,
                addr,
                entry,
                vector,
            } => self.sent(time, *slot, *addr, entry, *vector),
            TraceEvent::Message { vector, addr, .. } => self.message(time, *vector, *addr),
            TraceEvent::Landed { addr, len } => self.landed(time, *addr, *len),
            TraceEvent::PowerOff => self.power_off(),
            TraceEvent::Read { .. }
            | TraceEvent::Beat { .. }
            | TraceEvent::HostRead { .. }
            | TraceEvent::HostData
            | TraceEvent::HostWrite
            | TraceEvent::UnitBegins { .. }
            | TraceEvent::UnitEnds { .. }
            | TraceEvent::PeerNotified { .. }
            | TraceEvent::LogDeleted { .. } => {}
        }
    }

    /// Takes the commands that have ended since the last call, in the order of their ends.
    pub fn take_finished(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.finished)
    }

    /// The commands in flight, in any order.
    pub fn in_flight(&self) -> impl Iterator<Item = &Command> {
        let announced = self.messages.iter().flat_map(|message| &message.commands);
        let entries = self.entries.iter().map(|(_, command)| command);
        let active = self.active.values();
        active.chain(entries).chain(&self.waiting).chain(announced)
    }

    /// Ends all commands in flight, so that they can be taken.
    pub fn end(&mut self) {
        for message in self.messages.drain(..) {
            self.finished.extend(message.commands);
        }
        self.finished.extend(self.waiting.drain(..));
        self.finished.extend(self.entries.drain(..).map(|(_, c)| c));
        self.finished
            .extend(std::mem::take(&mut self.active).into_values());
    }

    fn mark(&mut self, slot: u8, point: TracePoint, time: Time) {
        if let Some(command) = self.active.get_mut(&slot) {
            command.set(point, time);
        }
    }

    fn forget_jobs(&mut self, slot: u8) {
        for jobs in self.jobs.values_mut() {
            jobs.retain(|&s| s != slot);
        }
    }

    fn arrived(&mut self, time: Time, offset: u64, value: u32) {
        // Stores arrive in order.
        let place = self.stores.iter().position(|&(o, _)| o == offset);
        let stored = place.and_then(|at| self.stores.drain(..=at).next_back());
        if offset == CC && value & 1 == 0 {
            self.doorbells.clear();
        }
        if DOORBELLS.contains(&offset) && offset % 8 == 0 {
            let queue = ((offset - DOORBELLS.start) / 8) as u16;
            let list = self.doorbells.entry(queue).or_default();
            list.push_back(Doorbell {
                stored: stored.map(|(_, time)| time),
                arrived: time,
                tail: value as u16,
            });
            if list.len() > MANY {
                list.pop_front();
            }
        }
    }

    fn fetch(&mut self, time: Time, slot: u8, queue: u16, head: u16) {
        let mut command = Command::new(queue, slot);
        if let Some(list) = self.doorbells.get_mut(&queue) {
            if let Some(doorbell) = list.front() {
                command.set(TracePoint::Doorbell, doorbell.arrived);
                if let Some(stored) = doorbell.stored {
                    command.set(TracePoint::Stored, stored);
                }
            }
            // All commands of the doorbell with this tail, and of those before it, have been
            // fetched.
            if let Some(last) = list.iter().position(|d| d.tail == head) {
                list.drain(..=last);
            }
        }
        command.set(TracePoint::Fetch, time);
        if let Some(lost) = self.active.insert(slot, command) {
            self.finished.push(lost);
        }
    }

    fn sent(&mut self, time: Time, slot: u8, addr: u64, entry: &[u8; 16], vector: Option<u8>) {
        let posted = self.posted.take();
        let Some(mut command) = self.active.remove(&slot) else {
            return;
        };
        self.forget_jobs(slot);
        let Some(posted) = posted else {
            // The slot was freed without an entry: the command could not be read.
            self.finished.push(command);
            return;
        };
        command.set(TracePoint::Posted, posted);
        command.set(TracePoint::Sent, time);
        command.status = Some(u16::from_le_bytes([entry[14], entry[15]]) >> 1);
        command.vector = vector;
        self.entries.push_back((addr, command));
        if self.entries.len() > MANY {
            self.finished
                .extend(self.entries.pop_front().map(|(_, c)| c));
        }
    }

    fn message(&mut self, time: Time, vector: u8, addr: u64) {
        // Entries are sent before their message, so some may not have arrived yet.
        let mut commands = Vec::new();
        self.waiting.retain(|command| {
            let announced = command.vector == Some(vector);
            if announced {
                commands.push(command.clone());
            }
            !announced
        });
        for command in &mut commands {
            command.set(TracePoint::Message, time);
        }
        for (_, command) in &mut self.entries {
            if command.vector == Some(vector) {
                command.set_first(TracePoint::Message, time);
            }
        }
        self.messages.push_back(InterruptMessage {
            vector,
            addr,
            sent: time,
            commands,
        });
        if self.messages.len() > MANY {
            if let Some(message) = self.messages.pop_front() {
                self.finished.extend(message.commands);
            }
        }
    }

    fn landed(&mut self, time: Time, addr: u64, len: usize) {
        if len == 16 {
            if let Some(at) = self.entries.iter().position(|&(a, _)| a == addr) {
                if let Some((_, mut command)) = self.entries.remove(at) {
                    command.set(TracePoint::Landed, time);
                    self.has_landed(command);
                }
            }
        } else if len == 4 {
            if let Some(at) = self.messages.iter().position(|m| m.addr == addr) {
                if let Some(mut message) = self.messages.remove(at) {
                    for command in &mut message.commands {
                        command.set(TracePoint::Interrupt, time);
                    }
                    self.finished.append(&mut message.commands);
                }
            }
        }
    }

    /// An entry is in host memory. Only its interrupt is missing.
    fn has_landed(&mut self, command: Command) {
        if command.vector.is_none() {
            self.finished.push(command);
        } else if let (Some(vector), Some(sent)) =
            (command.vector, command.time(TracePoint::Message))
        {
            // Its message follows it on the link.
            let mut messages = self.messages.iter_mut();
            match messages.find(|m| (m.vector, m.sent) == (vector, sent)) {
                Some(message) => message.commands.push(command),
                None => self.finished.push(command),
            }
        } else {
            self.waiting.push_back(command);
            if self.waiting.len() > MANY {
                self.finished.extend(self.waiting.pop_front());
            }
        }
    }

    fn power_off(&mut self) {
        self.end();
        let finished = std::mem::take(&mut self.finished);
        *self = Collector {
            finished,
            ..Collector::default()
        };
    }
}
