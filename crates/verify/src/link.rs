// SPDX-License-Identifier: Apache-2.0

//! The host's end of a device's link: accesses and data on their way to the device, with random
//! timing.

use std::collections::{BTreeMap, VecDeque};

use sim::{HostPort, Mmio, Random, ReadData, SplitCompletions, Time};

/// Accesses and data on their way to a device.
pub struct HostLink {
    /// Source of the timing.
    pub random: Random,
    mmio: VecDeque<(Time, Mmio)>,
    data: BTreeMap<(Time, u64), ReadData>,
    sequence: u64,
    parts: SplitCompletions,
    stall: Time,
}

impl HostLink {
    /// An idle link.
    pub fn new() -> HostLink {
        HostLink {
            random: Random::new(0),
            mmio: VecDeque::new(),
            data: BTreeMap::new(),
            sequence: 0,
            parts: SplitCompletions::default(),
            stall: Time::ZERO,
        }
    }

    /// Sends an access to the device, after the earlier ones.
    pub fn post(&mut self, time: Time, access: Mmio) {
        let time = self.mmio.back().map_or(time, |last| last.0.max(time));
        self.mmio.push_back((time, access));
    }

    /// Accesses to the device since the last call, for a link with separate timing.
    pub fn take_posted(&mut self) -> Vec<Mmio> {
        self.mmio.drain(..).map(|(_, access)| access).collect()
    }

    /// Refuses a write of the device from time to time, for up to 300 ns.
    pub fn accepts(&mut self, now: Time) -> bool {
        if now >= self.stall && self.random.below(256) == 0 {
            self.stall = now + Time::ns(self.random.below(300));
            return false;
        }
        now >= self.stall
    }

    /// A random time of an answer, and the bytes of its parts.
    pub fn answer_timing(&mut self, now: Time) -> (Time, usize) {
        let time = now + Time::ns(100 + self.random.below(400));
        (time, 64 << self.random.below(4))
    }

    /// Sends the data of a read in parts, with pauses of less than `pause` ns. `None` fails it.
    pub fn send(
        &mut self,
        tag: u32,
        data: Option<&[u8]>,
        (mut time, part): (Time, usize),
        pause: u64,
    ) {
        let parts: Vec<Option<Vec<u8>>> = match data {
            None => vec![None],
            Some(data) => data.chunks(part).map(|part| Some(part.to_vec())).collect(),
        };
        let count = parts.len();
        for (n, data) in (1..).zip(parts) {
            self.sequence += 1;
            let last = n == count;
            let answer = ReadData { tag, data, last };
            self.data.insert((time, self.sequence), answer);
            time += Time::ns(self.random.below(pause));
        }
    }

    /// True if nothing is in flight to the device.
    pub fn is_quiet(&self) -> bool {
        self.mmio.is_empty() && self.data.is_empty()
    }

    /// Everything in flight is lost.
    pub fn clear(&mut self) {
        self.mmio.clear();
        self.data.clear();
        self.parts.clear();
        self.stall = Time::ZERO;
    }
}

/// A host at a link.
pub trait LinkHost {
    /// Its link.
    fn link(&self) -> &HostLink;

    /// Its link.
    fn link_mut(&mut self) -> &mut HostLink;

    /// See [`HostPort::write`].
    fn write(&mut self, now: Time, addr: u64, data: &[u8]) -> bool;

    /// See [`HostPort::read`].
    fn read(&mut self, now: Time, tag: u32, addr: u64, len: u32);

    /// The whole answer to a read of a BAR; `None` if it failed.
    fn answered(&mut self, tag: u32, data: Option<Vec<u8>>);

    /// See [`HostPort::attention`].
    fn attention(&self) -> bool;
}

/// The port of a host at a link.
pub struct LinkPort<'a, H>(pub &'a mut H);

impl<H: LinkHost> HostPort for LinkPort<'_, H> {
    fn write(&mut self, now: Time, addr: u64, data: &[u8]) -> bool {
        self.0.write(now, addr, data)
    }

    fn read(&mut self, now: Time, tag: u32, addr: u64, len: u32) -> bool {
        self.0.read(now, tag, addr, len);
        true
    }

    fn mmio_part(&mut self, _now: Time, tag: u32, data: Vec<u8>) {
        self.0.link_mut().parts.add(tag, data);
    }

    fn mmio_data(&mut self, _now: Time, tag: u32, data: Option<Vec<u8>>) {
        let data = self.0.link_mut().parts.end(tag, data);
        self.0.answered(tag, data);
    }

    fn mmio(&mut self, now: Time) -> Option<Mmio> {
        let mmio = &mut self.0.link_mut().mmio;
        let arrived = mmio.front()?.0 <= now;
        arrived.then(|| mmio.pop_front()).flatten().map(|m| m.1)
    }

    fn read_data(&mut self, now: Time) -> Option<ReadData> {
        let first = self.0.link_mut().data.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    fn next_mmio(&self) -> Option<Time> {
        self.0.link().mmio.front().map(|m| m.0)
    }

    fn next_data(&self) -> Option<Time> {
        self.0.link().data.first_key_value().map(|(k, _)| k.0)
    }

    fn refused_until(&self) -> Time {
        self.0.link().stall
    }

    fn attention(&self) -> bool {
        self.0.attention()
    }
}
