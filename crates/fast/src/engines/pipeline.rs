// SPDX-License-Identifier: Apache-2.0

//! The pipeline engine (hw/engine/pipeline): runs the decoder, sorter and row gatherer one after
//! another from a list of their commands.

use spec::nvme::{status, Sqe, Status};
use spec::regs::pipeline::{self, kind, progress, result};

use crate::config::Config;
use crate::controller::EngineCommand;

use super::dict_decode::DictDecode;
use super::ports::EnginePorts;
use super::row_shuffle::RowShuffle;
use super::sorter::Sorter;
use super::{bursts_of_two, Engine, Job, JobResult, Range, BLOCK_BITS, UNIT_BITS};

const MAX_ENTRIES: u64 = 16;
const ENTRY: u64 = 64;
/// Return value bits that have the same meaning in all kernels. The bits above them are data errors
/// of a kernel.
const READ_ERROR: u32 = 1;
const STOPPED: u32 = 2;
const INVALID: u32 = 4;
const WRITE_ERROR: u32 = 8;
const COMMON: u32 = 15;

/// Cycles of the phases: start to list read, last list beat to first entry, entry to kernel start,
/// last entry to report write, and report answer to end.
const CHECK_CYCLES: u64 = 4;
const RETURN_CYCLES: u64 = 3;
const DECODE_CYCLES: u64 = 5;
const REPORT_CYCLES: u64 = 2;
const FINISH_CYCLES: u64 = 3;
const CROSSBAR_CYCLES: u64 = 2;

/// Wake-up bits of the first kernel, and the pipeline's wake-ups.
const KERNEL_BITS: u32 = 24;
const BEGIN: u32 = 0;
const NEXT: u32 = 1;
const REPORT: u32 = 2;
const DONE: u32 = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum PipelineState {
    Idle,
    Checking,
    Reading,
    /// An entry is decoded.
    Decoding,
    Running,
    Reporting,
    Finished,
}

/// The list that is run.
#[derive(Clone, Copy)]
struct EntryList {
    address: u64,
    count: u64,
    /// First address of entries, in blocks, and the number of blocks.
    base: u64,
    blocks: u64,
    report: bool,
}

impl EntryList {
    /// The list of a job; `None`: it is invalid.
    fn of(job: &Job) -> Option<EntryList> {
        let [address, count, base, bytes, kind, ..] = job.arguments;
        let ok = !job.malformed
            && (1..=MAX_ENTRIES).contains(&count)
            && address % (1 << UNIT_BITS) == 0
            && base % (1 << UNIT_BITS) == 0
            && bytes % (1 << BLOCK_BITS) == 0
            && kind & !kind::REPORT.mask() == 0;
        if !ok {
            return None;
        }
        let list = EntryList {
            address,
            count,
            base: base >> BLOCK_BITS,
            blocks: bytes >> BLOCK_BITS,
            report: kind::REPORT.is_set(kind),
        };
        let fits = Range::new(address, list.bytes()).fits() && Range::new(base, bytes).fits();
        fits.then_some(list)
    }

    fn bytes(&self) -> u64 {
        self.count * ENTRY * if self.report { 2 } else { 1 }
    }
}

/// The result of an entry.
#[derive(Clone, Copy, Default)]
struct EntryReport {
    status: Status,
    value: u32,
    cycles: u32,
}

impl EntryReport {
    fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0; ENTRY as usize];
        out[..2].copy_from_slice(&(self.status.0 << 1 | 1).to_le_bytes());
        out[4..8].copy_from_slice(&self.value.to_le_bytes());
        out[8..12].copy_from_slice(&self.cycles.to_le_bytes());
        out
    }
}

/// One list at a time.
pub(super) struct Pipeline {
    /// The kernels, and the opcodes of their entries.
    kernels: [(u8, Box<dyn Engine>); 3],
    state: PipelineState,
    list: Option<EntryList>,
    entries: Vec<Sqe>,
    stopped: bool,
    /// The current or last entry, its kernel, and its start.
    entry: usize,
    kernel: Option<usize>,
    begun: u64,
    reports: Vec<EntryReport>,
    good: u64,
    result: u32,
    status: Status,
    finished: Option<JobResult>,
}

impl Pipeline {
    pub(super) fn new(config: &Config) -> Pipeline {
        let bursts = bursts_of_two(config);
        Pipeline {
            kernels: [
                (0xD4, Box::new(DictDecode::new(bursts))),
                (0xD0, Box::new(Sorter::new(config, bursts))),
                (0xD8, Box::new(RowShuffle::new(config))),
            ],
            state: PipelineState::Idle,
            list: None,
            entries: Vec::new(),
            stopped: false,
            entry: 0,
            kernel: None,
            begun: 0,
            reports: Vec::new(),
            good: 0,
            result: 0,
            status: status::SUCCESS,
            finished: None,
        }
    }

    fn finish(&mut self, cycles: u64, ports: &mut EnginePorts) {
        self.state = PipelineState::Finished;
        ports.wake(ports.now() + cycles, DONE);
    }

    /// The list of a job that was started.
    fn valid_list(&self) -> EntryList {
        self.list.expect("an invalid job ends at its start")
    }

    /// Stops with no entry running.
    fn halt(&mut self, ports: &mut EnginePorts) {
        self.result = result::STOPPED.mask() as u32;
        self.finish(1, ports);
    }

    fn read_list(&mut self, ports: &mut EnginePorts) {
        match self.list {
            None => {
                self.result = result::INVALID.mask() as u32;
                self.status = status::INVALID_FIELD.dnr();
                self.finish(1, ports);
            }
            Some(_) if self.stopped => self.halt(ports),
            Some(list) => {
                self.state = PipelineState::Reading;
                ports.read(
                    CROSSBAR_CYCLES,
                    0,
                    list.address,
                    (list.count * ENTRY) as u32,
                    0,
                );
            }
        }
    }

    /// The list has arrived, or its read failed.
    fn list_arrived(&mut self, ok: bool, ports: &mut EnginePorts) {
        let list = self.valid_list();
        let mut data = vec![0; (list.count * ENTRY) as usize];
        if !(ok && ports.load(list.address, &mut data)) {
            self.result = result::READ_ERROR.mask() as u32;
            self.status = status::UNRECOVERED_READ_ERROR;
            return self.finish(RETURN_CYCLES, ports);
        }
        self.entries = data
            .chunks_exact(ENTRY as usize)
            .map(|entry| {
                let mut sqe = Sqe::default();
                for (dword, bytes) in sqe.dw.iter_mut().zip(entry.chunks_exact(4)) {
                    *dword = bytes.iter().rev().fold(0, |v, &b| v << 8 | u32::from(b));
                }
                sqe
            })
            .collect();
        self.state = PipelineState::Decoding;
        ports.wake(ports.now() + RETURN_CYCLES + DECODE_CYCLES, NEXT);
    }

    /// The kernel of the current entry, and its job.
    fn decode_entry(&self, list: &EntryList) -> Result<(usize, Job), Status> {
        let sqe = self.entries[self.entry];
        let opcode = sqe.dw[0];
        let own = sqe.dw[1..10].iter().all(|&dword| dword == 0);
        let mut kernels = self.kernels.iter();
        let kernel = kernels
            .position(|(code, _)| u32::from(*code) == opcode)
            .filter(|_| own)
            .ok_or(status::INVALID_FIELD.dnr())?;
        let command = EngineCommand {
            slot: 0,
            command: 0,
            base: list.base,
            blocks: list.blocks,
            sqe,
        };
        Ok((kernel, self.kernels[kernel].1.decode_command(&command)?))
    }

    /// Starts the current entry, if there is one.
    fn start_entry(&mut self, ports: &mut EnginePorts) {
        let list = self.valid_list();
        if self.stopped {
            return self.halt(ports);
        }
        match self.decode_entry(&list) {
            Ok((kernel, job)) => {
                self.state = PipelineState::Running;
                self.kernel = Some(kernel);
                self.begun = ports.now();
                self.with_kernel(kernel, ports, |kernel, ports| kernel.start(&job, ports));
            }
            Err(status) => {
                self.result = result::BAD_ENTRY.mask() as u32;
                self.status = status;
                self.reports.push(EntryReport {
                    status,
                    ..EntryReport::default()
                });
                self.end_list(&list, ports);
            }
        }
    }

    /// Calls a kernel, then checks for its job's end.
    fn with_kernel(
        &mut self,
        number: usize,
        ports: &mut EnginePorts,
        call: impl FnOnce(&mut dyn Engine, &mut EnginePorts),
    ) {
        let kernel_bits = (number as u32 + 1) << KERNEL_BITS;
        let kernel = &mut self.kernels[number].1;
        call(&mut **kernel, &mut ports.for_kernel(kernel_bits));
        if let Some(end) = kernel.take_result() {
            let (status, value) = kernel.completion_status(&end);
            self.entry_ended(end.result, status, value, ports);
        }
    }

    fn entry_ended(&mut self, how: u32, status: Status, value: u32, ports: &mut EnginePorts) {
        let list = self.valid_list();
        let bits = [
            (result::READ_ERROR, how & READ_ERROR),
            (result::STOPPED, how & STOPPED),
            (result::WRITE_ERROR, how & WRITE_ERROR),
            (result::BAD_ENTRY, how & INVALID),
            (result::BAD_DATA, how & !COMMON),
        ];
        self.result = 0;
        for (bit, on) in bits {
            self.result |= if on != 0 { bit.mask() as u32 } else { 0 };
        }
        let cycles = self.cycles(self.entry, ports.now());
        self.reports.push(EntryReport {
            status,
            value,
            cycles,
        });
        if how & STOPPED != 0 {
            return self.finish(1, ports);
        }
        self.status = status;
        if status != status::SUCCESS {
            return self.end_list(&list, ports);
        }
        self.good += 1;
        if self.good == list.count {
            return self.end_list(&list, ports);
        }
        self.entry += 1;
        self.kernel = None;
        self.state = PipelineState::Decoding;
        ports.wake(ports.now() + DECODE_CYCLES, NEXT);
    }

    /// No further entry runs.
    fn end_list(&mut self, list: &EntryList, ports: &mut EnginePorts) {
        if !list.report {
            return self.finish(1, ports);
        }
        self.state = PipelineState::Reporting;
        ports.wake(ports.now() + REPORT_CYCLES, REPORT);
    }

    fn report(&mut self, ports: &mut EnginePorts) {
        let list = self.valid_list();
        let data: Vec<u8> = self.reports.iter().flat_map(EntryReport::bytes).collect();
        let address = list.address + list.count * ENTRY;
        if ports.write(CROSSBAR_CYCLES, 0, address, data.len() as u32, 0)
            && !ports.store(address, &data)
        {
            self.report_fails();
        }
    }

    fn report_fails(&mut self) {
        self.result |= result::WRITE_ERROR.mask() as u32;
        if self.status == status::SUCCESS {
            self.status = status::WRITE_FAULT;
        }
    }

    /// Cycles of an entry so far.
    fn cycles(&self, entry: usize, now: u64) -> u32 {
        match self.reports.get(entry) {
            Some(reports) => reports.cycles,
            None if self.state == PipelineState::Running && entry == self.entry => {
                (now - self.begun).min(u64::from(u32::MAX)) as u32
            }
            None => 0,
        }
    }
}

impl Engine for Pipeline {
    fn decode_command(&self, command: &EngineCommand) -> Result<Job, Status> {
        let dw = &command.sqe.dw;
        let kind = u64::from(dw[14]);
        if kind & !kind::REPORT.mask() != 0 || [11, 12, 15].iter().any(|&n| dw[n] != 0) {
            return Err(status::INVALID_FIELD.dnr());
        }
        let (address, count) = (u64::from(dw[10]) << UNIT_BITS, u64::from(dw[13]));
        let (base, bytes) = (command.base << BLOCK_BITS, command.blocks << BLOCK_BITS);
        if address + ((count * ENTRY) << kind) > bytes {
            return Err(status::LBA_OUT_OF_RANGE.dnr());
        }
        let mut job = Job::default();
        job.arguments[..5].copy_from_slice(&[base + address, count, base, bytes, kind]);
        Ok(job)
    }

    fn stopped_mask(&self) -> u32 {
        result::STOPPED.mask() as u32
    }

    fn completion_status(&self, end: &JobResult) -> (Status, u32) {
        (self.status, end.outputs[0] as u32)
    }

    fn start(&mut self, job: &Job, ports: &mut EnginePorts) {
        self.list = EntryList::of(job);
        self.entries.clear();
        self.reports.clear();
        (self.stopped, self.entry, self.kernel) = (false, 0, None);
        (self.good, self.result, self.status) = (0, 0, status::SUCCESS);
        self.state = PipelineState::Checking;
        ports.wake(ports.now() + CHECK_CYCLES, BEGIN);
    }

    fn stop(&mut self, ports: &mut EnginePorts) {
        if matches!(
            self.state,
            PipelineState::Reporting | PipelineState::Finished
        ) {
            return;
        }
        self.stopped = true;
        if let (PipelineState::Running, Some(kernel)) = (self.state, self.kernel) {
            self.with_kernel(kernel, ports, |kernel, ports| kernel.stop(ports));
        }
    }

    fn wake(&mut self, what: u32, ports: &mut EnginePorts) {
        if let Some(kernel) = (what >> KERNEL_BITS).checked_sub(1) {
            let what = what & ((1 << KERNEL_BITS) - 1);
            return self.with_kernel(kernel as usize, ports, |k, ports| k.wake(what, ports));
        }
        match what {
            BEGIN => self.read_list(ports),
            NEXT => self.start_entry(ports),
            REPORT => self.report(ports),
            _ => {
                self.state = PipelineState::Idle;
                let mut end = JobResult {
                    result: self.result,
                    ..JobResult::default()
                };
                end.outputs[0] = self.good;
                self.finished = Some(end);
            }
        }
    }

    fn read_answered(&mut self, burst: u32, end: bool, ok: bool, ports: &mut EnginePorts) {
        match (self.state, self.kernel) {
            (PipelineState::Reading, _) if end => self.list_arrived(ok, ports),
            (PipelineState::Reading, _) => {}
            (PipelineState::Running, Some(kernel)) => {
                self.with_kernel(kernel, ports, |k, ports| {
                    k.read_answered(burst, end, ok, ports)
                })
            }
            _ => unreachable!("the reads of a kernel end before it"),
        }
    }

    fn write_answered(&mut self, burst: u32, ok: bool, ports: &mut EnginePorts) {
        match (self.state, self.kernel) {
            (PipelineState::Reporting, _) => {
                if !ok {
                    self.report_fails();
                }
                self.finish(FINISH_CYCLES, ports);
            }
            (PipelineState::Running, Some(kernel)) => {
                self.with_kernel(kernel, ports, |k, ports| k.write_answered(burst, ok, ports))
            }
            _ => unreachable!("the writes of a kernel end before it"),
        }
    }

    fn take_result(&mut self) -> Option<JobResult> {
        self.finished.take()
    }

    fn register(&self, at: u64, now: u64) -> Option<u32> {
        let items = self.kernel.map_or(0, |k| self.kernels[k].1.progress());
        match at {
            pipeline::PROGRESS => {
                let running = u64::from(self.state != PipelineState::Idle);
                let reports = progress::ENTRY.of(self.entry as u64) | progress::RUNNING.of(running);
                Some(reports as u32)
            }
            pipeline::ITEMS_LO => Some(items as u32),
            pipeline::ITEMS_HI => Some((items >> 32) as u32),
            _ => {
                let from = at.checked_sub(pipeline::CYCLES)?;
                let entry = from / pipeline::CYCLES_STRIDE;
                (entry < pipeline::CYCLES_COUNT).then(|| self.cycles(entry as usize, now))
            }
        }
    }
}
