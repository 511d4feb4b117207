// SPDX-License-Identifier: Apache-2.0

//! A host without a driver or a link, and a bench of a device and this host. `crates/rtl/tests`
//! uses it, too.
#![allow(dead_code)]

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use sim::{Bar, Device, Fault, HostPort, Mmio, ReadData, SplitCompletions, Time};

/// A host that answers from a flat memory after a fixed time, and records everything that a device
/// did.
pub struct TestHost {
    /// Host memory from address 0.
    pub memory: Vec<u8>,
    /// Addresses from here on fail.
    pub bad_from: u64,
    /// Reads of addresses from here on get no answer at all.
    pub lost_from: u64,
    /// Those reads: tag, address, bytes.
    pub lost: Vec<(u32, u64, u32)>,
    /// Time from a read to its data.
    pub latency: Time,
    /// Time between two writes that it accepts.
    pub write_gap: Time,
    next_write: Time,
    /// Everything the device did: time, kind, address or tag, data.
    pub log: Vec<(Time, &'static str, u64, Vec<u8>)>,
    mmio: VecDeque<(Time, Mmio)>,
    data: VecDeque<(Time, ReadData)>,
    parts: SplitCompletions,
    answers: Vec<(u32, Option<Vec<u8>>)>,
    next_tag: u32,
}

impl TestHost {
    pub fn new() -> TestHost {
        TestHost {
            memory: vec![0; 1 << 20],
            bad_from: 1 << 20,
            lost_from: u64::MAX,
            lost: Vec::new(),
            latency: Time::ns(500),
            write_gap: Time::ZERO,
            next_write: Time::ZERO,
            log: Vec::new(),
            mmio: VecDeque::new(),
            data: VecDeque::new(),
            parts: SplitCompletions::default(),
            answers: Vec::new(),
            next_tag: 0,
        }
    }

    /// Posts a write, which arrives at the device's next step.
    pub fn post(&mut self, now: Time, bar: Bar, offset: u64, data: &[u8]) {
        self.mmio.push_back((
            now,
            Mmio::Write {
                bar,
                offset,
                data: data.to_vec(),
            },
        ));
    }

    /// Posts a read, which arrives at the device's next step; returns its tag.
    pub fn ask(&mut self, now: Time, bar: Bar, offset: u64, len: u32) -> u32 {
        self.next_tag += 1;
        self.mmio.push_back((
            now,
            Mmio::Read {
                bar,
                offset,
                len,
                tag: self.next_tag,
            },
        ));
        self.next_tag
    }

    /// The answer to a read, if it is there.
    pub fn answer(&mut self, tag: u32) -> Option<Option<Vec<u8>>> {
        let at = self.answers.iter().position(|(t, _)| *t == tag)?;
        Some(self.answers.remove(at).1)
    }

    /// Drops everything under way, as a link does that goes down.
    pub fn forget(&mut self) {
        self.mmio.clear();
        self.data.clear();
        self.parts.clear();
        self.lost.clear();
    }

    /// Answers the reads that were lost.
    pub fn answer_lost(&mut self, now: Time) {
        for (tag, addr, len) in std::mem::take(&mut self.lost) {
            self.reply(now, tag, addr, len);
        }
    }

    /// Answers a read.
    fn reply(&mut self, now: Time, tag: u32, addr: u64, len: u32) {
        let time = now + self.latency;
        if addr.saturating_add(len.into()) > self.bad_from {
            self.data.push_back((
                time,
                ReadData {
                    tag,
                    data: None,
                    last: true,
                },
            ));
            return;
        }
        let bytes = &self.memory[addr as usize..(addr + u64::from(len)) as usize];
        let pieces: Vec<&[u8]> = bytes.chunks(200).collect(); // not at beat boundaries
        for (i, piece) in pieces.iter().enumerate() {
            let last = i + 1 == pieces.len();
            self.data.push_back((
                time,
                ReadData {
                    tag,
                    data: Some(piece.to_vec()),
                    last,
                },
            ));
        }
    }

    /// A hash of all events and their times.
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!("{:?}", self.log).hash(&mut hasher);
        hasher.finish()
    }
}

impl HostPort for TestHost {
    fn write(&mut self, now: Time, addr: u64, data: &[u8]) -> bool {
        if now < self.next_write {
            return false;
        }
        self.next_write = now + self.write_gap;
        self.log.push((now, "write", addr, data.to_vec()));
        let end = (addr as usize).checked_add(data.len());
        if let Some(place) = end.and_then(|end| self.memory.get_mut(addr as usize..end)) {
            place.copy_from_slice(data);
        }
        true
    }

    fn read(&mut self, now: Time, tag: u32, addr: u64, len: u32) -> bool {
        self.log
            .push((now, "read", addr, len.to_le_bytes().to_vec()));
        if addr >= self.lost_from {
            self.lost.push((tag, addr, len));
            return true;
        }
        self.reply(now, tag, addr, len);
        true
    }

    fn mmio_part(&mut self, now: Time, tag: u32, data: Vec<u8>) {
        self.log.push((now, "part", tag.into(), data.clone()));
        self.parts.add(tag, data);
    }

    fn mmio_data(&mut self, now: Time, tag: u32, data: Option<Vec<u8>>) {
        self.log
            .push((now, "answer", tag.into(), data.clone().unwrap_or_default()));
        let data = self.parts.end(tag, data);
        self.answers.push((tag, data));
    }

    fn mmio(&mut self, now: Time) -> Option<Mmio> {
        if self.mmio.front()?.0 > now {
            return None;
        }
        self.mmio.pop_front().map(|(_, access)| access)
    }

    fn read_data(&mut self, now: Time) -> Option<ReadData> {
        if self.data.front()?.0 > now {
            return None;
        }
        self.data.pop_front().map(|(_, piece)| piece)
    }

    fn next_mmio(&self) -> Option<Time> {
        self.mmio.front().map(|(time, _)| *time)
    }

    fn next_data(&self) -> Option<Time> {
        self.data.front().map(|(time, _)| *time)
    }

    fn attention(&self) -> bool {
        false
    }
}

/// A device and its host.
pub struct Bench<D: Device + ?Sized> {
    pub device: Box<D>,
    pub host: TestHost,
}

impl<D: Device + ?Sized> Bench<D> {
    pub fn of(device: Box<D>) -> Bench<D> {
        Bench {
            device,
            host: TestHost::new(),
        }
    }

    /// Lets time pass.
    pub fn run(&mut self, span: Time) {
        self.try_run(span).unwrap();
    }

    pub fn try_run(&mut self, span: Time) -> Result<(), Fault> {
        self.device
            .advance(self.device.now() + span, &mut self.host)
    }

    /// Resets the function; the host drops everything under way.
    pub fn function_reset(&mut self) {
        self.device.function_reset();
        self.host.forget();
    }

    pub fn post(&mut self, bar: Bar, offset: u64, data: &[u8]) {
        self.host.post(self.device.now(), bar, offset, data);
    }

    /// Reads, and waits for the answer.
    pub fn read(&mut self, bar: Bar, offset: u64, len: u32) -> Option<Vec<u8>> {
        let tag = self.host.ask(self.device.now(), bar, offset, len);
        for _ in 0..10_000 {
            if let Some(answer) = self.host.answer(tag) {
                return answer;
            }
            self.run(Time::ns(100));
        }
        panic!("no answer to a read of {bar:?} at {offset:#x} within 1 ms");
    }

    pub fn read32(&mut self, bar: Bar, offset: u64) -> u32 {
        u32::from_le_bytes(self.read(bar, offset, 4).unwrap().try_into().unwrap())
    }

    pub fn write32(&mut self, bar: Bar, offset: u64, value: u32) {
        self.post(bar, offset, &value.to_le_bytes());
    }
}
