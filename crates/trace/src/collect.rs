//! Puts commands together out of events.

use std::collections::{BTreeMap, VecDeque};

use sim::{Time, TraceEvent};
use spec::nvme::admin;
use spec::nvme::properties::{self, CC};

use crate::command::{Command, Point};

const DOORBELLS: std::ops::Range<u64> = properties::DOORBELLS..properties::MSIX_TABLE;
/// Doorbell stores, and entries and messages on their way, that are kept: far more than there can be unless something is lost.
const MANY: usize = 4096;

/// A write of a submission queue's tail.
struct Doorbell {
    stored: Option<Time>,
    arrived: Time,
    tail: u16,
}

/// An interrupt on its way.
struct Message {
    vector: u8,
    addr: u64,
    sent: Time,
    /// What it announces and has landed.
    commands: Vec<Command>,
}

/// Makes commands out of events.
#[derive(Default)]
pub struct Collector {
    /// Stores on their way to the device: offset and time.
    stores: VecDeque<(u64, Time)>,
    /// By queue: doorbells that commands are still to be fetched for.
    doorbells: BTreeMap<u16, VecDeque<Doorbell>>,
    /// By slot.
    active: BTreeMap<u8, Command>,
    /// By mover: slots of the jobs whose data has not begun to arrive.
    jobs: BTreeMap<u8, VecDeque<u8>>,
    /// An entry has been put together at this time and not been sent yet.
    posted: Option<Time>,
    /// Entries on their way to the host, by address.
    entries: VecDeque<(u64, Command)>,
    /// Commands whose interrupt has not been sent.
    waiting: VecDeque<Command>,
    /// Interrupts on their way.
    messages: VecDeque<Message>,
    finished: Vec<Command>,
}

impl Collector {
    /// Without anything yet.
    pub fn new() -> Collector {
        Collector::default()
    }

    /// Takes the next event.
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
                    command.set(Point::Decoded, time);
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
            TraceEvent::Started { slot } => self.mark(*slot, Point::Started, time),
            TraceEvent::Segment {
                slot,
                mover,
                to_media,
            } => {
                self.mark(*slot, Point::LastJob, time);
                if let Some(command) = self.active.get_mut(slot) {
                    command.set_first(Point::FirstJob, time);
                    if command.has_source(*to_media) {
                        self.jobs.entry(*mover).or_default().push_back(*slot);
                    }
                }
            }
            TraceEvent::Data { mover } => {
                let slot = self.jobs.get_mut(mover).and_then(VecDeque::pop_front);
                if let Some(command) = slot.and_then(|slot| self.active.get_mut(&slot)) {
                    command.set_first(Point::FirstData, time);
                }
            }
            TraceEvent::Done { slot } => {
                self.mark(*slot, Point::Done, time);
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

    /// The commands that are over since the last call, in the order in which that became known.
    pub fn take(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.finished)
    }

    /// Gives up everything that is not over yet: afterwards it can be taken, too.
    pub fn end(&mut self) {
        for message in self.messages.drain(..) {
            self.finished.extend(message.commands);
        }
        self.finished.extend(self.waiting.drain(..));
        self.finished.extend(self.entries.drain(..).map(|(_, c)| c));
        self.finished
            .extend(std::mem::take(&mut self.active).into_values());
    }

    fn mark(&mut self, slot: u8, point: Point, time: Time) {
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
                command.set(Point::Doorbell, doorbell.arrived);
                if let Some(stored) = doorbell.stored {
                    command.set(Point::Stored, stored);
                }
            }
            // The doorbell with this tail announced no more, nor did those before it.
            if let Some(last) = list.iter().position(|d| d.tail == head) {
                list.drain(..=last);
            }
        }
        command.set(Point::Fetch, time);
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
            // The slot came back without an entry: the command could not even be read.
            self.finished.push(command);
            return;
        };
        command.set(Point::Posted, posted);
        command.set(Point::Sent, time);
        command.status = Some(u16::from_le_bytes([entry[14], entry[15]]) >> 1);
        command.vector = vector;
        self.entries.push_back((addr, command));
        if self.entries.len() > MANY {
            self.finished
                .extend(self.entries.pop_front().map(|(_, c)| c));
        }
    }

    fn message(&mut self, time: Time, vector: u8, addr: u64) {
        // Entries leave before their message, so some of them may not have landed yet.
        let mut commands = Vec::new();
        self.waiting.retain(|command| {
            let announced = command.vector == Some(vector);
            if announced {
                commands.push(command.clone());
            }
            !announced
        });
        for command in &mut commands {
            command.set(Point::Message, time);
        }
        for (_, command) in &mut self.entries {
            if command.vector == Some(vector) {
                command.set_first(Point::Message, time);
            }
        }
        self.messages.push_back(Message {
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
                    command.set(Point::Landed, time);
                    self.has_landed(command);
                }
            }
        } else if len == 4 {
            if let Some(at) = self.messages.iter().position(|m| m.addr == addr) {
                if let Some(mut message) = self.messages.remove(at) {
                    for command in &mut message.commands {
                        command.set(Point::Interrupt, time);
                    }
                    self.finished.append(&mut message.commands);
                }
            }
        }
    }

    /// An entry is in the host's memory: what is left is its interrupt.
    fn has_landed(&mut self, command: Command) {
        if command.vector.is_none() {
            self.finished.push(command);
        } else if let (Some(vector), Some(sent)) = (command.vector, command.time(Point::Message)) {
            // Its message is behind it on the link.
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
