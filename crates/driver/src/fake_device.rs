// SPDX-License-Identifier: Apache-2.0

//! A fake for tests: a host and a small behavioural controller in one, with faults on request.

use std::collections::{BTreeMap, HashMap};

use sim::{Bar, Time};
use spec::nvme::properties::{self, DOORBELLS};
use spec::nvme::{
    admin, cns, io, oacs, oncs, sgl_type, status, Cqe, Sqe, Status, ALL_NAMESPACES, PAGE_BYTES,
};

use crate::{CpuWork, Error, Host, Result};

/// The fault of the fake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Registers read all ones.
    Gone,
    /// CSTS.RDY never rises.
    NeverReady,
    /// CSTS.CFS rises with the enable.
    Fatal,
    /// I/O commands never complete.
    Silent,
    /// I/O completions carry this command identifier.
    Cid(u16),
    /// I/O completions carry this queue identifier.
    Sqid(u16),
    /// I/O completions carry this SQ head.
    Head(u16),
    /// I/O commands complete with this status.
    Status(Status),
    /// I/O completions come twice.
    Twice,
    /// Reads answer with a flipped bit.
    Flip,
    /// Identify Namespace is full of ones.
    BadIdentify,
    /// These bits of CAP are inverted.
    Cap(u64),
}

#[derive(Default, Clone, Debug)]
struct FakeQueue {
    base: u64,
    entries: u32,
    /// SQ: head; CQ: tail.
    at: u32,
    phase: bool,
    cqid: u16,
}

#[derive(Debug)]
pub struct FakeDevice {
    pub fault: Fault,
    memory: Vec<u8>,
    allocated: BTreeMap<u64, u64>,
    now: Time,
    cc: u32,
    aqa: u32,
    asq: u64,
    acq: u64,
    sq: HashMap<u16, FakeQueue>,
    cq: HashMap<u16, FakeQueue>,
    /// Namespaces 1 and 3.
    media: [Vec<u8>; 2],
    /// Completions that are due at a time.
    due: BTreeMap<(Time, u64), (u16, Cqe)>,
    sequence: u64,
    /// The first command of a fused operation has failed.
    fused_failed: bool,
    pub doorbells: u64,
}

const ASQ_HIGH: u64 = properties::ASQ + 4;
const ACQ_HIGH: u64 = properties::ACQ + 4;
const MEMORY: u64 = 64 << 20;
/// DMRL.
const MOST_RANGES: u8 = 200;
/// DMRSL and DMSL.
const MOST_BLOCKS: u32 = 20;
const BLOCKS: [u64; 2] = [8192, 1000];
const NSIDS: [u32; 2] = [1, 3];

impl FakeDevice {
    pub fn new(fault: Fault) -> FakeDevice {
        FakeDevice {
            fault,
            memory: vec![0; MEMORY as usize],
            allocated: BTreeMap::new(),
            now: Time::ZERO,
            cc: 0,
            aqa: 0,
            asq: 0,
            acq: 0,
            sq: HashMap::new(),
            cq: HashMap::new(),
            media: BLOCKS.map(|blocks| vec![0; (blocks * 512) as usize]),
            due: BTreeMap::new(),
            sequence: 0,
            fused_failed: false,
            doorbells: 0,
        }
    }

    pub fn allocations(&self) -> usize {
        self.allocated.len()
    }

    fn csts(&self) -> u32 {
        let enabled = self.cc & 1;
        match self.fault {
            Fault::NeverReady => 0,
            Fault::Fatal => enabled << 1,
            _ => enabled | if self.cc >> 14 & 3 != 0 { 8 } else { 0 },
        }
    }

    fn u64_at(&self, addr: u64) -> u64 {
        let at = addr as usize;
        u64::from_le_bytes(self.memory[at..at + 8].try_into().unwrap())
    }

    /// The data segments of a command, walked as the specification states.
    fn data_segments(&self, sqe: &Sqe, bytes: u64) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        let mut left = bytes;
        if sqe.psdt() == 1 {
            // The descriptor in the command is a segment of one.
            let mut segment = vec![(sqe.prp1(), sqe.prp2())];
            while let Some((addr, rest)) = (!segment.is_empty()).then(|| segment.remove(0)) {
                let length = rest & 0xFFFF_FFFF;
                match (rest >> 56) as u8 {
                    sgl_type::DATA_BLOCK => out.push((addr, length)),
                    sgl_type::SEGMENT | sgl_type::LAST_SEGMENT => {
                        segment = (0..length / 16)
                            .map(|i| addr + 16 * i)
                            .map(|at| (self.u64_at(at), self.u64_at(at + 8)))
                            .collect();
                    }
                    kind => panic!("SGL descriptor {kind:#x}"),
                }
            }
            assert_eq!(out.iter().map(|(_, length)| length).sum::<u64>(), bytes);
            return out;
        }
        let mut take = |addr: u64, left: &mut u64| {
            let here = (PAGE_BYTES - addr % PAGE_BYTES).min(*left);
            out.push((addr, here));
            *left -= here;
        };
        take(sqe.prp1(), &mut left);
        if left == 0 {
            return out;
        }
        if left <= PAGE_BYTES {
            take(sqe.prp2(), &mut left);
            return out;
        }
        let mut pointer = sqe.prp2();
        while left > 0 {
            let entry = self.u64_at(pointer);
            if pointer % PAGE_BYTES == PAGE_BYTES - 8 && left > PAGE_BYTES {
                pointer = entry;
            } else {
                take(entry, &mut left);
                pointer += 8;
            }
        }
        out
    }

    fn ring(&mut self, qid: u16, tail: u32) {
        let Some(queue) = self.sq.get(&qid).cloned() else {
            return;
        };
        let mut at = queue.at;
        while at != tail % queue.entries {
            let addr = (queue.base + u64::from(at) * 64) as usize;
            let sqe = Sqe::from_bytes(self.memory[addr..addr + 64].try_into().unwrap());
            at = (at + 1) % queue.entries;
            self.sq.get_mut(&qid).unwrap().at = at;
            let (result, mut status) = if qid == 0 {
                self.admin(&sqe)
            } else {
                self.io(&sqe)
            };
            let (mut head, mut sqid, mut cid) = (at as u16, qid, sqe.cid());
            if qid != 0 {
                match self.fault {
                    Fault::Silent => continue,
                    Fault::Cid(c) => cid = c,
                    Fault::Sqid(s) => sqid = s,
                    Fault::Head(h) => head = h,
                    Fault::Status(s) => status = s,
                    _ => {}
                }
            }
            let times = if qid != 0 && self.fault == Fault::Twice {
                2
            } else {
                1
            };
            for _ in 0..times {
                self.sequence += 1;
                // Out of order between commands.
                let delay = 500 + self.sequence.wrapping_mul(2_654_435_761) % 3000;
                let cqe = Cqe::new(result, head, sqid, cid, false, status);
                self.due.insert(
                    (self.now + Time::ns(delay), self.sequence),
                    (queue.cqid, cqe),
                );
            }
        }
    }

    fn admin(&mut self, sqe: &Sqe) -> (u32, Status) {
        let qid = sqe.dw[10] as u16;
        let entries = (sqe.dw[10] >> 16) + 1;
        let queue = FakeQueue {
            base: sqe.prp1(),
            entries,
            at: 0,
            phase: true,
            cqid: (sqe.dw[11] >> 16) as u16,
        };
        match sqe.opcode() {
            admin::IDENTIFY => {
                let mut page = [0u8; 4096];
                match sqe.dw[10] as u8 {
                    cns::CONTROLLER => {
                        page[4..24].copy_from_slice(b"FAKE                ");
                        page[77] = 8;
                        page[512] = 0x66;
                        page[513] = 0x44;
                        page[256] = oacs::FORMAT_NVM as u8;
                        page[516] = 3;
                        page[520] = (oncs::COMPARE | oncs::DATASET_MANAGEMENT | oncs::WRITE_ZEROES)
                            as u8
                            | oncs::VERIFY as u8;
                        page[522] = 1;
                        page[532..534].copy_from_slice(&15u16.to_le_bytes());
                        page[536] = 2;
                    }
                    cns::COMMAND_SET => {
                        page[3] = MOST_RANGES;
                        page[4..8].copy_from_slice(&MOST_BLOCKS.to_le_bytes());
                        page[8..12].copy_from_slice(&MOST_BLOCKS.to_le_bytes());
                    }
                    cns::ACTIVE_NAMESPACES => {
                        for (at, nsid) in NSIDS.into_iter().enumerate() {
                            page[4 * at..4 * at + 4].copy_from_slice(&nsid.to_le_bytes());
                        }
                    }
                    _ if self.fault == Fault::BadIdentify => page.fill(0xFF),
                    _ => {
                        let blocks = BLOCKS[usize::from(sqe.nsid() == NSIDS[1])].to_le_bytes();
                        page[0..8].copy_from_slice(&blocks);
                        page[8..16].copy_from_slice(&blocks);
                        page[130] = 9;
                    }
                }
                let at = sqe.prp1() as usize;
                self.memory[at..at + 4096].copy_from_slice(&page);
            }
            admin::SET_FEATURES => return (3 << 16 | 3, status::SUCCESS),
            admin::CREATE_IO_CQ => drop(self.cq.insert(qid, queue)),
            admin::CREATE_IO_SQ if !self.cq.contains_key(&queue.cqid) => {
                return (0, status::COMPLETION_QUEUE_INVALID)
            }
            admin::CREATE_IO_SQ => drop(self.sq.insert(qid, queue)),
            admin::DELETE_IO_SQ => drop(self.sq.remove(&qid)),
            admin::DELETE_IO_CQ => drop(self.cq.remove(&qid)),
            admin::FORMAT_NVM if sqe.dw[10] >> 9 & 7 > 1 => {
                return (0, status::INVALID_FIELD.dnr());
            }
            admin::FORMAT_NVM => {
                for (nsid, media) in NSIDS.into_iter().zip(&mut self.media) {
                    if sqe.nsid() == nsid || sqe.nsid() == ALL_NAMESPACES {
                        media.fill(0);
                    }
                }
            }
            _ => return (0, status::INVALID_OPCODE.dnr()),
        }
        (0, status::SUCCESS)
    }

    fn io(&mut self, sqe: &Sqe) -> (u32, Status) {
        if sqe.fuse() == 2 && self.fused_failed {
            return (0, status::ABORTED_FAILED_FUSED.dnr());
        }
        let (result, status) = self.io_alone(sqe);
        self.fused_failed = sqe.fuse() == 1 && status != status::SUCCESS;
        (result, status)
    }

    fn io_alone(&mut self, sqe: &Sqe) -> (u32, Status) {
        let Some(ns) = NSIDS.into_iter().position(|nsid| nsid == sqe.nsid()) else {
            return (0, status::INVALID_NAMESPACE_OR_FORMAT.dnr());
        };
        let write = match sqe.opcode() {
            io::FLUSH => return (0, status::SUCCESS),
            io::DATASET_MANAGEMENT => return (0, self.deallocate(sqe, ns)),
            io::WRITE | io::COMPARE | io::WRITE_ZEROES | io::VERIFY => true,
            io::READ => false,
            _ => return (0, status::INVALID_OPCODE.dnr()),
        };
        if sqe.slba().saturating_add(u64::from(sqe.blocks())) > BLOCKS[ns] {
            return (0, status::LBA_OUT_OF_RANGE.dnr());
        }
        let mut at = sqe.slba() as usize * 512;
        if sqe.opcode() == io::VERIFY {
            return (0, status::SUCCESS);
        }
        if sqe.opcode() == io::WRITE_ZEROES {
            self.media[ns][at..at + sqe.blocks() as usize * 512].fill(0);
            return (0, status::SUCCESS);
        }
        for (addr, len) in self.data_segments(sqe, u64::from(sqe.blocks()) * 512) {
            let (addr, len) = (addr as usize, len as usize);
            if sqe.opcode() == io::COMPARE {
                if self.media[ns][at..at + len] != self.memory[addr..addr + len] {
                    return (0, status::COMPARE_FAILURE.dnr());
                }
            } else if write {
                self.media[ns][at..at + len].copy_from_slice(&self.memory[addr..addr + len]);
            } else {
                self.memory[addr..addr + len].copy_from_slice(&self.media[ns][at..at + len]);
                if self.fault == Fault::Flip {
                    self.memory[addr] ^= 1;
                }
            }
            at += len;
        }
        (0, status::SUCCESS)
    }

    fn deallocate(&mut self, sqe: &Sqe, ns: usize) -> Status {
        let list = sqe.prp1();
        let ranges: Vec<(u64, u64)> = (0..=u64::from(sqe.dw[10] & 0xFF))
            .map(|i| list + 16 * i)
            .map(|at| (self.u64_at(at + 8), self.u64_at(at) >> 32))
            .collect();
        if ranges.iter().any(|(lba, blocks)| lba + blocks > BLOCKS[ns]) {
            return status::LBA_OUT_OF_RANGE.dnr();
        }
        let blocks: u64 = ranges.iter().map(|(_, blocks)| blocks).sum();
        if ranges.len() > MOST_RANGES.into() || blocks > MOST_BLOCKS.into() {
            return status::COMMAND_SIZE_LIMIT_EXCEEDED.dnr();
        }
        for (lba, blocks) in ranges {
            self.media[ns][lba as usize * 512..(lba + blocks) as usize * 512].fill(0);
        }
        status::SUCCESS
    }

    /// Writes the completions that are due.
    fn write_due_completions(&mut self) -> bool {
        let mut wrote = false;
        while let Some((&key, _)) = self.due.iter().next().filter(|(k, _)| k.0 <= self.now) {
            let Some((cqid, cqe)) = self.due.remove(&key) else {
                break;
            };
            let Some(queue) = self.cq.get_mut(&cqid) else {
                continue;
            };
            let mut cqe = cqe;
            cqe.dw[3] |= u32::from(queue.phase) << 16;
            let addr = (queue.base + u64::from(queue.at) * 16) as usize;
            queue.at += 1;
            if queue.at == queue.entries {
                queue.at = 0;
                queue.phase = !queue.phase;
            }
            self.memory[addr..addr + 16].copy_from_slice(&cqe.to_bytes());
            wrote = true;
        }
        wrote
    }
}

impl FakeDevice {
    /// 1024 entries, contiguous, 500 ms, NVM command set, pages of 4 KiB.
    fn cap(&self) -> u64 {
        let cap = 1023 | 1 << 16 | 1 << 24 | 1 << 37;
        match self.fault {
            Fault::Cap(bits) => cap ^ bits,
            _ => cap,
        }
    }
}

impl Host for FakeDevice {
    fn read(&mut self, _bar: Bar, offset: u64, data: &mut [u8]) -> Result<()> {
        self.now += Time::ns(800);
        self.write_due_completions();
        let value: u64 = match offset {
            _ if self.fault == Fault::Gone => u64::MAX,
            properties::CAP => self.cap(),
            0x04 => self.cap() >> 32,
            properties::VS => 0x0001_0400,
            properties::CC => self.cc.into(),
            properties::CSTS => self.csts().into(),
            _ => 0,
        };
        data.copy_from_slice(&value.to_le_bytes()[..data.len()]);
        Ok(())
    }

    fn write(&mut self, _bar: Bar, offset: u64, data: &[u8]) -> Result<()> {
        let value = u32::from_le_bytes(
            data.try_into()
                .map_err(|_| Error::Host("not 32 bits".into()))?,
        );
        let half = |old: u64, high: bool| match high {
            false => old & !0xFFFF_FFFF | u64::from(value),
            true => old & 0xFFFF_FFFF | u64::from(value) << 32,
        };
        match offset {
            properties::AQA => self.aqa = value,
            properties::ASQ => self.asq = half(self.asq, false),
            ASQ_HIGH => self.asq = half(self.asq, true),
            properties::ACQ => self.acq = half(self.acq, false),
            ACQ_HIGH => self.acq = half(self.acq, true),
            properties::CC => {
                self.cc = value;
                if value & 1 == 0 {
                    (self.sq, self.cq) = Default::default();
                    self.due.clear();
                } else if self.sq.is_empty() {
                    let queue = |base, entries| FakeQueue {
                        base,
                        entries,
                        at: 0,
                        phase: true,
                        cqid: 0,
                    };
                    self.sq.insert(0, queue(self.asq, (self.aqa & 0xFFF) + 1));
                    self.cq
                        .insert(0, queue(self.acq, (self.aqa >> 16 & 0xFFF) + 1));
                }
            }
            DOORBELLS.. => {
                self.doorbells += 1;
                let n = (offset - DOORBELLS) / 4;
                if n % 2 == 0 {
                    self.ring((n / 2) as u16, value);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn alloc(&mut self, bytes: u64, align: u64) -> Result<u64> {
        let mut at = 1 << 20;
        for (&start, &len) in &self.allocated {
            if at + bytes <= start {
                break;
            }
            at = (start + len).next_multiple_of(align);
        }
        if at + bytes > MEMORY {
            return Err(Error::Host("out of memory".into()));
        }
        self.memory[at as usize..(at + bytes) as usize].fill(0);
        self.allocated.insert(at, bytes);
        Ok(at)
    }

    fn free(&mut self, addr: u64, bytes: u64) {
        assert_eq!(self.allocated.remove(&addr), Some(bytes));
    }

    fn dma_read(&mut self, addr: u64, data: &mut [u8]) {
        data.copy_from_slice(&self.memory[addr as usize..addr as usize + data.len()]);
    }

    fn dma_write(&mut self, addr: u64, data: &[u8]) {
        self.memory[addr as usize..addr as usize + data.len()].copy_from_slice(data);
    }

    fn run_on(&mut self, _cpu: usize) {}

    fn now(&self) -> Time {
        self.now
    }

    fn busy(&self) -> bool {
        false
    }

    fn spend(&mut self, _work: CpuWork) {}

    fn watch(&mut self, _addr: u64, _bytes: u64) {}

    fn unwatch(&mut self, _addr: u64) {}

    fn wait(&mut self, until: Time) -> Result<()> {
        let next = self.due.keys().next().map_or(until, |k| k.0.min(until));
        self.now = self.now.max(next);
        self.write_due_completions();
        Ok(())
    }

    fn vectors(&self) -> u16 {
        0
    }

    fn message(&self, _vector: u16) -> (u64, u32) {
        (0, 0)
    }

    fn take_interrupt(&mut self, _vector: u16) -> bool {
        false
    }
}
