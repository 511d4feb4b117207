// SPDX-License-Identifier: Apache-2.0

//! A device that consists of persistent memory: it accepts everything at once and answers loads
//! after a fixed time.
#![allow(dead_code)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use design::HostProfile;
use host::{Machine, SharedMachine};
use sim::{Counter, Device, Fault, HostConfig, HostPort, LinkConfig, Mmio, Time};

pub type Image = Arc<Mutex<Vec<u8>>>;

/// Writes that the device has accepted: time, offset, length.
pub type Log = Arc<Mutex<Vec<(Time, u64, usize)>>>;

pub struct Pm {
    now: Time,
    pub image: Image,
    pub log: Log,
    latency: Time,
    /// Time between two accesses that it accepts.
    gap: Time,
    free: Time,
    powered: bool,
    answers: VecDeque<(Time, u32, Vec<u8>)>,
    /// Writes from this offset on fail.
    end: u64,
    lost: u64,
}

impl Pm {
    pub fn new(bytes: usize, latency: Time) -> Pm {
        Pm {
            now: Time::ZERO,
            image: Arc::new(Mutex::new(vec![0; bytes])),
            log: Log::default(),
            latency,
            gap: Time::ZERO,
            free: Time::ZERO,
            powered: true,
            answers: VecDeque::new(),
            end: u64::MAX,
            lost: 0,
        }
    }

    /// Loses stores from `end` on.
    pub fn full(mut self, end: u64) -> Pm {
        self.end = end;
        self
    }

    /// Accepts one access per `gap`.
    pub fn slow(mut self, gap: Time) -> Pm {
        self.gap = gap;
        self
    }
}

impl Device for Pm {
    fn now(&self) -> Time {
        self.now
    }

    fn advance(&mut self, until: Time, host: &mut dyn HostPort) -> Result<(), Fault> {
        loop {
            let arrival = host.next_mmio().map(|t| t.max(self.free).max(self.now));
            let answer = self.answers.front().map(|a| a.0);
            let next = [arrival, answer].into_iter().flatten().min();
            let Some(at) = next.filter(|&at| at <= until) else {
                break;
            };
            self.now = self.now.max(at);
            if answer.is_some_and(|due| due <= self.now) {
                if let Some((_, tag, data)) = self.answers.pop_front() {
                    host.mmio_data(self.now, tag, self.powered.then_some(data));
                }
                continue;
            }
            let Some(mmio) = host.mmio(self.now) else {
                continue;
            };
            self.free = self.now + self.gap;
            let mut image = self.image.lock().unwrap();
            match mmio {
                Mmio::Write { offset, .. } if self.powered && offset >= self.end => self.lost += 1,
                Mmio::Write { offset, data, .. } if self.powered => {
                    let at = offset as usize;
                    image[at..at + data.len()].copy_from_slice(&data);
                    self.log
                        .lock()
                        .unwrap()
                        .push((self.now, offset, data.len()));
                }
                Mmio::Write { .. } => {}
                Mmio::Read {
                    offset, len, tag, ..
                } => {
                    let at = offset as usize;
                    let data = image[at..at + len as usize].to_vec();
                    self.answers.push_back((self.now + self.latency, tag, data));
                }
            }
        }
        self.now = self.now.max(until);
        Ok(())
    }

    fn idle(&self) -> bool {
        self.answers.is_empty()
    }

    fn power_off(&mut self) {
        self.powered = false;
        self.answers.clear();
    }

    fn power_on(&mut self) {
        self.powered = true;
    }

    fn lost_writes(&self) -> u64 {
        self.lost
    }

    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }
}

type PoweredDevice = (Box<dyn Device + Send>, LinkConfig, u64);

pub const BYTES: usize = 1 << 20;

pub struct Bench {
    pub shared: SharedMachine,
    pub images: Vec<Image>,
    pub logs: Vec<Log>,
    pub link: LinkConfig,
    pub host: HostConfig,
}

/// A host with devices, configured by a profile.
pub fn bench(profile: &HostProfile, devices: Vec<Pm>) -> Bench {
    let (host, link) = profile.attached(&HostConfig::default(), &LinkConfig::default());
    bench_on(profile, devices, host, link)
}

pub fn bench_on(
    profile: &HostProfile,
    devices: Vec<Pm>,
    host: HostConfig,
    link: LinkConfig,
) -> Bench {
    let images = devices.iter().map(|device| device.image.clone());
    let logs = devices.iter().map(|device| device.log.clone());
    let (images, logs) = (images.collect(), logs.collect());
    let devices = devices
        .into_iter()
        .map(|device| -> PoweredDevice { (Box::new(device), link.clone(), BYTES as u64) });
    let system = testbed::attach(&host, devices).unwrap();
    let machine = Machine::new(system, testbed::host_parameters(profile));
    Bench {
        shared: SharedMachine::new(machine),
        images,
        logs,
        link,
        host,
    }
}

pub fn profile(name: &str) -> HostProfile {
    HostProfile::find(name).unwrap()
}
