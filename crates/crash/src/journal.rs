//! What has been sent to the devices: what a load has proven to be there, and what may still be lost.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use host::{Event, Machine, LINE};
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

/// What has been sent to a device.
#[derive(Default)]
struct DeviceLink {
    /// Lines as they are certain to be; others were never written.
    proven: BTreeMap<u64, Bytes>,
    since: VecDeque<WindowWrite>,
    sent: u64,
    /// Loads under way, and how many writes stand before each.
    loads: Vec<(u32, u64)>,
}

#[derive(Default)]
struct JournalState {
    /// One for each device that anything was sent to.
    links: BTreeMap<usize, DeviceLink>,
    recent: VecDeque<(Time, Event)>,
    /// Different times of events, where somebody wants them.
    times: Option<Vec<Time>>,
}

/// Hears of all that a machine does, from its start.
#[derive(Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<JournalState>>);

impl Journal {
    /// A journal of a machine whose devices have nothing on their media; a log hears of the events, too.
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

    /// The events from a time on.
    pub fn events_since(&self, from: Time) -> Vec<(Time, Event)> {
        let inner = self.lock();
        let recent = inner.recent.iter().filter(|event| event.0 >= from);
        recent.cloned().collect()
    }

    /// From now on keeps the times of events.
    pub fn record_times(&self) {
        self.lock().times = Some(Vec::new());
    }

    /// What was kept.
    pub fn take_times(&self) -> Vec<Time> {
        self.lock().times.take().unwrap_or_default()
    }

    /// Of the writes of each line that no load was behind the last are lost, as many as drawn: the lines of each device that were written, as
    /// they are then.
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

    /// A load has come back, if it is one of these.
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
    fn record(&mut self, at: Time, event: Event) {
        match &event {
            Event::Posted {
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
            Event::Issued { device, tag } => {
                let link = self.links.entry(*device).or_default();
                link.loads.push((*tag, link.sent));
            }
            Event::Answered { tag } => self
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
