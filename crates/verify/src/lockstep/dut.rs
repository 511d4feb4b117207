// SPDX-License-Identifier: Apache-2.0

//! One of the two devices under test, with a separate host that keeps its queues.

use std::collections::BTreeMap;

use sim::{Bar, Device, Mmio, Time};
use spec::nvme::properties;
use spec::nvme::{Cqe, Sqe, CQE_BYTES, SQE_BYTES};

use crate::link::LinkPort;
use crate::lockstep::host::Host;

/// Longest time of any action.
const DEADLINE: Time = Time::ms(400);
/// Interval at which a device is polled.
const POLL: Time = Time::us(20);
/// Longest time of a read of a BAR.
const REGISTER: Time = Time::ms(2);
/// Loads in flight at once.
const LOADS: usize = 16;

/// A submission queue of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sq {
    /// Its address.
    pub base: u64,
    /// Entries.
    pub entries: u32,
    /// Its completion queue.
    pub cqid: u16,
    /// Index of the next entry.
    pub tail: u32,
    /// Its priority, as in Create I/O Submission Queue.
    pub priority: u32,
}

/// A completion queue of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cq {
    /// Its address.
    pub base: u64,
    /// Entries.
    pub entries: u32,
    /// The vector of its interrupts.
    pub vector: Option<u16>,
    /// Index of the next entry.
    pub head: u32,
    /// The phase of the next entry.
    pub phase: bool,
}

impl Sq {
    /// An empty queue.
    pub fn new(base: u64, entries: u32, cqid: u16) -> Sq {
        Sq {
            base,
            entries,
            cqid,
            tail: 0,
            priority: 0,
        }
    }
}

impl Cq {
    /// An empty queue.
    pub fn new(base: u64, entries: u32, vector: Option<u16>) -> Cq {
        Cq {
            base,
            entries,
            vector,
            head: 0,
            phase: true,
        }
    }
}

/// A device under test and its host.
pub struct Dut {
    /// Name of the device.
    pub name: &'static str,
    /// The device.
    pub device: Box<dyn Device + Send>,
    /// Its host.
    pub host: Host,
    /// The host's time.
    pub now: Time,
    /// Submission queues.
    pub sqs: BTreeMap<u16, Sq>,
    /// Completion queues.
    pub cqs: BTreeMap<u16, Cq>,
    /// Pages of shadow doorbells and EventIdx, if they are in use.
    pub shadow: Option<(u64, u64)>,
    /// Completions: completion queue, entry.
    pub completed: Vec<(u16, Cqe)>,
    /// Completion times, by submission queue and identifier.
    pub times: BTreeMap<(u16, u16), Time>,
    tag: u32,
}

impl Dut {
    /// A device before its first access.
    pub fn new(name: &'static str, device: Box<dyn Device + Send>) -> Dut {
        Dut {
            name,
            device,
            host: Host::new(),
            now: Time::ZERO,
            sqs: BTreeMap::new(),
            cqs: BTreeMap::new(),
            shadow: None,
            completed: Vec::new(),
            times: BTreeMap::new(),
            tag: 0,
        }
    }

    fn err(&self, what: impl std::fmt::Display) -> String {
        format!("{}: {what}", self.name)
    }

    // ---- time ----

    /// Advances the time; true if an arrival ended it before `until`.
    fn advance_once(&mut self, until: Time) -> Result<bool, String> {
        self.host.woken();
        let passed = self.device.advance(until, &mut LinkPort(&mut self.host));
        if let Some(wrong) = &self.host.wrong {
            return Err(self.err(wrong));
        }
        passed.map_err(|fault| self.err(fault))?;
        let woken = self.host.woken();
        self.now = match woken {
            true => self.device.now().max(self.now),
            false => until.max(self.device.now()).max(self.now),
        };
        Ok(woken)
    }

    /// Advances the time.
    pub fn advance(&mut self, until: Time) -> Result<(), String> {
        while self.now < until {
            self.advance_once(until)?;
        }
        Ok(())
    }

    /// Advances the time until the device is idle.
    pub fn run_until_idle(&mut self) -> Result<(), String> {
        let limit = self.now + DEADLINE;
        loop {
            let until = self.now + POLL;
            self.advance(until)?;
            if self.host.is_quiet() && self.device.idle() {
                return Ok(());
            }
            if self.now > limit {
                return Err(self.err(format!("hung: still busy after {DEADLINE}")));
            }
        }
    }

    // ---- registers and the PM window ----

    /// A store to a BAR, within a page.
    pub fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) {
        let data = data.to_vec();
        self.host.post(self.now, Mmio::Write { bar, offset, data });
    }

    /// Writes a register.
    pub fn write32(&mut self, bar: Bar, offset: u64, value: u32) {
        self.write(bar, offset, &value.to_le_bytes());
    }

    /// Loads from a BAR; each within a page. `None` for a failed load.
    pub fn loads(&mut self, bar: Bar, all: &[(u64, u32)]) -> Result<Vec<Option<Vec<u8>>>, String> {
        let mut out = Vec::new();
        for some in all.chunks(LOADS) {
            let first = self.tag.wrapping_add(1);
            for &(offset, len) in some {
                self.tag = self.tag.wrapping_add(1);
                let tag = self.tag;
                self.host.post(
                    self.now,
                    Mmio::Read {
                        bar,
                        offset,
                        len,
                        tag,
                    },
                );
            }
            let limit = self.now + REGISTER;
            for n in 0..some.len() as u32 {
                let tag = first.wrapping_add(n);
                let data = loop {
                    if let Some(data) = self.host.answer(tag) {
                        break data;
                    }
                    if self.now >= limit {
                        return Err(self.err("a load of a BAR was not answered"));
                    }
                    self.advance_once(limit)?;
                };
                out.push(data);
            }
        }
        Ok(out)
    }

    /// A load from a BAR, within a page.
    pub fn load(&mut self, bar: Bar, offset: u64, len: u32) -> Result<Option<Vec<u8>>, String> {
        let all = self.loads(bar, &[(offset, len)])?;
        Ok(all.into_iter().next().flatten())
    }

    /// Reads a register.
    pub fn read32(&mut self, bar: Bar, offset: u64) -> Result<u32, String> {
        let data = self.load(bar, offset, 4)?;
        let bytes = data.and_then(|d| <[u8; 4]>::try_from(&d[..]).ok());
        let failed = || self.err(format!("the register at {offset:#x} cannot be read"));
        bytes.map(u32::from_le_bytes).ok_or_else(failed)
    }

    /// Waits until a register satisfies a condition.
    pub fn wait32(
        &mut self,
        offset: u64,
        what: &str,
        done: impl Fn(u32) -> bool,
    ) -> Result<u32, String> {
        let limit = self.now + DEADLINE;
        loop {
            let value = self.read32(Bar::Nvme, offset)?;
            if done(value) {
                return Ok(value);
            }
            if self.now > limit {
                let text = format!("hung: register {offset:#x} is {value:#x}, and not {what}");
                return Err(self.err(text));
            }
            let until = self.now + Time::us(1);
            self.advance(until)?;
        }
    }

    // ---- queues ----

    /// Places a command into its queue. The caller ensures that there is room.
    pub fn push(&mut self, sqid: u16, sqe: &Sqe) {
        if let Some(sq) = self.sqs.get_mut(&sqid) {
            let at = sq.base + u64::from(sq.tail) * SQE_BYTES as u64;
            sq.tail = (sq.tail + 1) % sq.entries;
            self.host.memory.store(at, &sqe.to_bytes());
        }
    }

    /// Rings the doorbell of a submission queue.
    pub fn ring_sq(&mut self, sqid: u16) {
        if let Some(sq) = self.sqs.get(&sqid) {
            let tail = sq.tail;
            self.ring(sqid, false, tail);
        }
    }

    fn ring(&mut self, qid: u16, completion: bool, value: u32) {
        if let (Some((doorbells, _)), true) = (self.shadow, qid != 0) {
            let at = doorbells + 8 * u64::from(qid) + 4 * u64::from(completion);
            self.host.memory.store(at, &value.to_le_bytes());
        }
        let offset = match completion {
            false => properties::sq_doorbell(qid, 4),
            true => properties::cq_doorbell(qid, 4),
        };
        self.write32(Bar::Nvme, offset, value);
    }

    /// Consumes completions, and rings the doorbells. Returns the number of entries.
    pub fn consume(&mut self) -> Result<usize, String> {
        self.collect(true)
    }

    /// Consumes completions, and rings the doorbells if `ring`. Returns the number of entries.
    pub fn collect(&mut self, ring: bool) -> Result<usize, String> {
        let entries = std::mem::take(&mut self.host.entries);
        let mut moved: BTreeMap<u16, u32> = BTreeMap::new();
        for posted in &entries {
            let name = self.name;
            let Some(cq) = self.cqs.get_mut(&posted.cqid) else {
                return Err(self.err(format!(
                    "an entry in completion queue {}, which is not there",
                    posted.cqid
                )));
            };
            let cqe = Cqe::from_bytes(&posted.bytes);
            let at = cq.base + u64::from(cq.head) * CQE_BYTES as u64;
            if posted.addr != at || cqe.phase() != cq.phase {
                let (cqid, addr) = (posted.cqid, posted.addr);
                return Err(format!(
                    "{name}: an entry of completion queue {cqid} at {addr:#x} with phase {}, \
                         not at {at:#x} with {}",
                    cqe.phase(),
                    cq.phase
                ));
            }
            cq.head += 1;
            if cq.head == cq.entries {
                cq.head = 0;
                cq.phase = !cq.phase;
            }
            let count = moved.entry(posted.cqid).or_default();
            *count += 1;
            if *count >= cq.entries {
                return Err(format!(
                    "{name}: completion queue {} has overrun",
                    posted.cqid
                ));
            }
            self.times.insert((cqe.sqid(), cqe.cid()), posted.time);
            self.completed.push((posted.cqid, cqe));
        }
        for &cqid in moved.keys().filter(|_| ring) {
            if let Some(cq) = self.cqs.get(&cqid) {
                let head = cq.head;
                self.ring(cqid, true, head);
            }
        }
        Ok(entries.len())
    }

    /// Consumes completions until there are no more.
    pub fn complete_all(&mut self) -> Result<(), String> {
        loop {
            self.run_until_idle()?;
            if self.consume()? == 0 {
                return Ok(());
            }
        }
    }

    /// Opens a completion queue, in a separate page.
    pub fn open_cq(&mut self, cqid: u16, cq: Cq) {
        self.close_cq(cqid);
        self.host.rings.insert(cq.base, cqid);
        self.cqs.insert(cqid, cq);
    }

    /// Closes a deleted completion queue.
    pub fn close_cq(&mut self, cqid: u16) {
        if let Some(cq) = self.cqs.remove(&cqid) {
            self.host.rings.remove(&cq.base);
        }
    }

    /// Closes all queues after a reset.
    pub fn close_all(&mut self) {
        self.sqs.clear();
        self.cqs.clear();
        self.host.rings.clear();
        self.host.entries.clear();
        self.completed.clear();
        self.shadow = None;
    }
}
