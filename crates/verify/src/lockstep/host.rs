// SPDX-License-Identifier: Apache-2.0

//! The host's side of a device's link: memory, answers with random timing, and the record of the
//! device's writes.

use std::collections::BTreeMap;
use std::ops::Range;

use sim::{Mmio, Random, Time};

use crate::link::{HostLink, LinkHost};
use crate::lockstep::memory::Memory;
use crate::PAGE;

/// Address range of interrupt messages.
pub const MSI: Range<u64> = 0xFEE0_0000..0xFEF0_0000;

/// Address range whose reads are never answered, not even by the link.
pub const SILENT: Range<u64> = 1 << 46..(1 << 46) + (1 << 30);
/// One of this many reads without memory ends by the link's completion timeout.
const LOST: u64 = 12;
/// Longest completion timeout. PCI Express (4.0, 7.5.3.16) has 50 us to 64 s; the controller's
/// timeout is 25 ms.
const TIMEOUT_US: u64 = 250;
/// Latency of each answer with fixed timing.
const CALM: Time = Time::ns(300);

/// A completion queue entry as it was written.
#[derive(Clone, Copy, Debug)]
pub struct Posted {
    /// The queue that contains its address.
    pub cqid: u16,
    /// Its address.
    pub addr: u64,
    /// The entry.
    pub bytes: [u8; 16],
    /// Its time of arrival.
    pub time: Time,
}

/// A host.
pub struct Host {
    /// Its memory.
    pub memory: Memory,
    /// Messages in their order: address, data.
    pub messages: Vec<(u64, u32)>,
    /// Entries of completion queues in their order.
    pub entries: Vec<Posted>,
    /// Pages of completion queues.
    pub rings: BTreeMap<u64, u16>,
    /// A forbidden access of the device.
    pub wrong: Option<String>,
    link: HostLink,
    answers: BTreeMap<u32, Option<Vec<u8>>>,
    wake: bool,
    fixed_timing: bool,
}

impl Host {
    /// A host with empty memory.
    pub fn new() -> Host {
        Host {
            memory: Memory::new(),
            messages: Vec::new(),
            entries: Vec::new(),
            rings: BTreeMap::new(),
            wrong: None,
            link: HostLink::new(),
            answers: BTreeMap::new(),
            wake: false,
            fixed_timing: false,
        }
    }

    /// Sets the seed of the timing.
    pub fn reseed(&mut self, seed: u64) {
        self.link.random = Random::new(seed);
    }

    /// Selects fixed timing of all answers, or random timing of each.
    pub fn set_fixed_timing(&mut self, fixed_timing: bool) {
        self.fixed_timing = fixed_timing;
    }

    /// Sends something to the device.
    pub fn post(&mut self, time: Time, access: Mmio) {
        self.link.post(time, access);
    }

    /// The answer to a read of a BAR, if it has arrived.
    pub fn answer(&mut self, tag: u32) -> Option<Option<Vec<u8>>> {
        self.answers.remove(&tag)
    }

    /// True if nothing is in flight to the device.
    pub fn is_quiet(&self) -> bool {
        self.link.is_quiet()
    }

    /// True once after each arrival that may end a wait.
    pub fn woken(&mut self) -> bool {
        std::mem::take(&mut self.wake)
    }

    /// The link was down: everything in flight is lost.
    pub fn forget_link(&mut self) {
        self.link.clear();
        self.answers.clear();
    }

    fn device_write(&mut self, time: Time, addr: u64, data: &[u8]) {
        if MSI.contains(&addr) {
            let word: Result<[u8; 4], _> = data.try_into();
            match word {
                Ok(word) => self.messages.push((addr, u32::from_le_bytes(word))),
                Err(_) => {
                    let len = data.len();
                    self.wrong = Some(format!("a message of {len} bytes at {addr:#x}"));
                }
            }
            return;
        }
        if let Some(&cqid) = self.rings.get(&(addr - addr % PAGE)) {
            match data.try_into() {
                Ok(bytes) => self.entries.push(Posted {
                    cqid,
                    addr,
                    bytes,
                    time,
                }),
                Err(_) => {
                    let len = data.len();
                    self.wrong = Some(format!(
                        "{len} bytes at {addr:#x}, in completion queue {cqid}"
                    ));
                }
            }
        }
        self.memory.device_write(addr, data);
    }
}

impl LinkHost for Host {
    fn link(&self) -> &HostLink {
        &self.link
    }

    fn link_mut(&mut self) -> &mut HostLink {
        &mut self.link
    }

    fn write(&mut self, now: Time, addr: u64, data: &[u8]) -> bool {
        let accepted = self.fixed_timing || self.link.accepts(now);
        if accepted {
            self.device_write(now, addr, data);
        }
        accepted
    }

    fn read(&mut self, now: Time, tag: u32, addr: u64, len: u32) {
        if SILENT.contains(&addr) {
            return;
        }
        let ((mut time, part), pause) = match self.fixed_timing {
            true => ((now + CALM, 512), 1),
            false => (self.link.answer_timing(now), 12),
        };
        let data = self.memory.get(addr, len.into());
        // No memory answers: occasionally the read ends by the completion timeout of the link.
        if data.is_none() && self.link.random.below(LOST) == 0 {
            time += Time::us(self.link.random.below(TIMEOUT_US));
        }
        self.link.send(tag, data, (time, part), pause);
    }

    fn answered(&mut self, tag: u32, data: Option<Vec<u8>>) {
        self.answers.insert(tag, data);
        self.wake = true;
    }

    fn attention(&self) -> bool {
        self.wake
    }
}
