// SPDX-License-Identifier: Apache-2.0

//! The writes sent to the devices: those that a load has proven to be persistent, and those that
//! may still be lost.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use host::{HostEvent, Machine, LINE};
use sim::{Bar, Random, Time};

use crate::invariants::OrderLog;

/// Events that are kept for a timeline.
const RECENT: usize = 4096;

type Bytes = [u8; LINE];

/// A write to the PM window.
struct WindowWrite {
    offset: u64,
    data: Vec<u8>,
}

/// The writes to one device.
#[derive(Default)]
struct DeviceLink {
    /// The proven content of lines; other lines were never written.
    proven: BTreeMap<u64, Bytes>,
    since: VecDeque<WindowWrite>,
    sent: u64,
    /// Loads under way, and the number of writes before each.
    loads: Vec<(u32, u64)>,
}

#[derive(Default)]
struct JournalState {
    /// One for each device that was written to.
    links: BTreeMap<usize, DeviceLink>,
    recent: VecDeque<(Time, HostEvent)>,
    /// The distinct times of events, if they are recorded.
    times: Option<Vec<Time>>,
}

/// Records the events of a machine, from its start.
#[derive(Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<JournalState>>);

impl Journal {
    /// A journal of a machine with devices whose media are empty; it passes the events on to a log.
    pub fn of(machine: &mut Machine, log: Option<OrderLog>) -> Journal {
        let journal = Journal::default();
        let own = journal.clone();
        machine.observe(Some(Box::new(move |at, event| {
            if let Some(log) = &log {
                log.host(at, &event);
            }
            own.lock().record(at, event);
        })));
        journal
    }

    fn lock(&self) -> MutexGuard<'_, JournalState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The events since a time.
    pub fn events_since(&self, from: Time) -> Vec<(Time, HostEvent)> {
        let inner = self.lock();
        let recent = inner.recent.iter().filter(|event| event.0 >= from);
        recent.cloned().collect()
    }

    /// Starts recording the times of events.
    pub fn record_times(&self) {
        self.lock().times = Some(Vec::new());
    }

    /// The recorded times.
    pub fn take_times(&self) -> Vec<Time> {
        self.lock().times.take().unwrap_or_default()
    }

    /// Drops a generated number of the last unproven writes of each line. Returns the content of
    /// the written lines of each device after that.
    pub fn draw_lost_stores(&self, seed: u64) -> Vec<(usize, Vec<(u64, Bytes)>)> {
        let inner = self.lock();
        let mut random = Random::new(seed);
        let links = inner.links.iter();
        links
            .map(|(device, link)| (*device, link.draw_lost_stores(&mut random)))
            .collect()
    }
}

fn line(offset: u64) -> u64 {
    offset - offset % LINE as u64
}

fn apply_write(line: &mut Bytes, sent: &WindowWrite) {
    let at = (sent.offset % LINE as u64) as usize;
    line[at..at + sent.data.len()].copy_from_slice(&sent.data);
}

impl DeviceLink {
    fn draw_lost_stores(&self, random: &mut Random) -> Vec<(u64, Bytes)> {
        let mut left: BTreeMap<u64, u64> = BTreeMap::new();
        for sent in &self.since {
            *left.entry(line(sent.offset)).or_insert(0) += 1;
        }
        for count in left.values_mut() {
            *count = random.below(*count + 1);
        }
        let old = |at: &u64| self.proven.get(at).copied().unwrap_or([0; LINE]);
        let mut lines: BTreeMap<u64, Bytes> = left.keys().map(|at| (*at, old(at))).collect();
        for sent in &self.since {
            let at = line(sent.offset);
            if let (Some(count), Some(bytes)) = (left.get_mut(&at), lines.get_mut(&at)) {
                if *count > 0 {
                    *count -= 1;
                    apply_write(bytes, sent);
                }
            }
        }
        lines.into_iter().collect()
    }

    /// Handles the return of a load, if it is one of these.
    fn mark_proven(&mut self, tag: u32) {
        let Some(place) = self.loads.iter().position(|load| load.0 == tag) else {
            return;
        };
        let before = self.loads.swap_remove(place).1;
        while self.sent - (self.since.len() as u64) < before {
            let Some(sent) = self.since.pop_front() else {
                break;
            };
            let bytes = self.proven.entry(line(sent.offset)).or_insert([0; LINE]);
            apply_write(bytes, &sent);
        }
    }
}

impl JournalState {
    fn record(&mut self, at: Time, event: HostEvent) {
        match &event {
            HostEvent::Posted {
                device,
                bar: Bar::Pm,
                offset,
                data,
            } => {
                let link = self.links.entry(*device).or_default();
                link.sent += 1;
                link.since.push_back(WindowWrite {
                    offset: *offset,
                    data: data.clone(),
                });
            }
            HostEvent::Issued { device, tag } => {
                let link = self.links.entry(*device).or_default();
                link.loads.push((*tag, link.sent));
            }
            HostEvent::Answered { tag } => self
                .links
                .values_mut()
                .for_each(|link| link.mark_proven(*tag)),
            _ => {}
        }
        if let Some(times) = &mut self.times {
            if times.last() != Some(&at) {
                times.push(at);
            }
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((at, event));
    }
}
