// SPDX-License-Identifier: Apache-2.0

//! The row gatherer (hw/engine/row_shuffle): copies rows of a table in the order of an index list.

use std::collections::VecDeque;

use spec::nvme::{status, Status};
use spec::regs::row_shuffle::{kind, result};

use crate::config::Config;
use crate::controller::EngineCommand;

use super::mover::{Mover, MoverParameters, BURSTS};
use super::ports::EnginePorts;
use super::{bursts_of_two, Engine, Job, JobResult, Range, BLOCK_BITS, UNIT_BITS};

const MAX_INDEXES: u64 = 1 << 31;
const MAX_ROW_BYTES: u64 = 65_536;
const INDEX_BYTES: u64 = 4;
const BEAT: u64 = 64;
/// Bytes of a burst of the list.
const BURST: u64 = 1024;
/// Maximum number of row addresses that wait for the mover.
const QUEUE: usize = 4;

/// Cycles from the start to the first read, and from the last answer to the end.
const CHECK_CYCLES: u64 = 4;
const FINISH_CYCLES: u64 = 3;
/// Cycles through the crossbar, from a channel to the index decoder, and from an index to its row
/// address.
const CROSSBAR_CYCLES: u64 = 2;
const RETURN_CYCLES: u64 = 7;
const PRODUCT: u64 = 3;

/// Wake-up numbers, in addition to those of the mover.
const BEGIN: u32 = 1 << 16;
const DONE: u32 = 2 << 16;
const ADVANCE: u32 = 3 << 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum ShuffleState {
    Idle,
    Checking,
    Gathering,
    /// Open requests are drained.
    Draining,
    Finished,
}

/// The rows to gather.
#[derive(Clone, Copy)]
struct GatherJob {
    list: u64,
    src: u64,
    dst: u64,
    count: u64,
    row_bytes: u64,
    rows: u64,
    /// Bytes from one index to the next.
    stride: u64,
}

impl GatherJob {
    /// The rows of a job; `None`: it is invalid.
    fn of(job: &Job) -> Option<GatherJob> {
        let [list, src, dst, count, row_bytes, rows, kind] = job.arguments;
        let ok = !job.malformed
            && list % BEAT == 0
            && (1..=MAX_INDEXES).contains(&count)
            && (1..=MAX_ROW_BYTES).contains(&row_bytes)
            && (1..=u64::from(u32::MAX)).contains(&rows)
            && kind & !kind::RECORDS.mask() == 0;
        if !ok {
            return None;
        }
        let all = GatherJob {
            list,
            src,
            dst,
            count,
            row_bytes,
            rows,
            stride: INDEX_BYTES << kind::RECORDS.get(kind),
        };
        let list = Range::new(list, count * all.stride);
        let src = Range::new(src, rows * row_bytes);
        let dst = Range::new(dst, count * row_bytes);
        let fits = [&list, &src, &dst].into_iter().all(Range::fits);
        // Ranges that are only read may overlap.
        (fits && list.is_disjoint(&dst) && src.is_disjoint(&dst)).then_some(all)
    }

    /// Byte offset of an index in its list entry.
    fn offset(&self) -> usize {
        match self.stride {
            INDEX_BYTES => 0,
            stride => stride as usize / 2,
        }
    }
}

/// A burst of the list.
struct ListBurst {
    addr: u64,
    data: Vec<u8>,
    /// Arrival time, and whether the read succeeded.
    arrival: Option<(u64, bool)>,
}

/// One list at a time.
pub(super) struct RowShuffle {
    parameters: MoverParameters,
    state: ShuffleState,
    rows: Option<GatherJob>,
    stopped: bool,
    bad_index: bool,
    read_error: bool,
    write_error: bool,

    /// Read bursts of the list in order, number of the first one, bytes requested, and next free
    /// edge of an address.
    reads: VecDeque<ListBurst>,
    first_read: u64,
    requested: u64,
    read_free: u64,
    /// Indexes decoded, those of the oldest burst included, and the next free edge.
    decoded: u64,
    of_burst: usize,
    index_free: u64,
    /// Row addresses, and the edge from which each is available.
    queue: VecDeque<(u64, u64)>,
    /// Rows whose copy has started, and ended.
    begun: u64,
    copied: u64,
    mover: Mover,
    scheduled: u64,
    finished: Option<JobResult>,
}

impl RowShuffle {
    pub(super) fn new(config: &Config) -> RowShuffle {
        let parameters = MoverParameters {
            burst: 4096,
            bursts: bursts_of_two(config),
            commands: 32,
        };
        RowShuffle {
            parameters,
            state: ShuffleState::Idle,
            rows: None,
            stopped: false,
            bad_index: false,
            read_error: false,
            write_error: false,
            reads: VecDeque::with_capacity(BURSTS),
            first_read: 0,
            requested: 0,
            read_free: 0,
            decoded: 0,
            of_burst: 0,
            index_free: 0,
            queue: VecDeque::with_capacity(QUEUE),
            begun: 0,
            copied: 0,
            mover: Mover::new(0, parameters),
            scheduled: 0,
            finished: None,
        }
    }

    fn schedule_wake_up(&mut self, cycle: u64, ports: &mut EnginePorts) {
        let now = ports.now();
        if self.scheduled <= now || cycle < self.scheduled {
            self.scheduled = cycle;
            ports.wake(cycle, ADVANCE);
        }
    }

    fn is_halted(&self) -> bool {
        self.stopped || self.bad_index || self.read_error || self.write_error
    }

    /// Does all work that is possible up to the current edge.
    fn advance(&mut self, ports: &mut EnginePorts) {
        // A wake-up of the job before may come after the start of an invalid one.
        let Some(rows) = self.rows else { return };
        if !matches!(self.state, ShuffleState::Gathering | ShuffleState::Draining) {
            return;
        }
        while self.finish_row() | self.start_row(&rows, ports) | self.take_index(&rows, ports) {}
        self.read_list(&rows, ports);
        if self.state == ShuffleState::Gathering && (self.is_halted() || self.decoded == rows.count)
        {
            self.state = ShuffleState::Draining;
        }
        let list = self.reads.iter().all(|read| read.arrival.is_some())
            && (self.is_halted() || self.requested == rows.count * rows.stride);
        if self.state == ShuffleState::Draining
            && list
            && self.queue.is_empty()
            && self.begun == self.copied
        {
            self.state = ShuffleState::Finished;
            ports.wake(ports.now() + FINISH_CYCLES, DONE);
        }
    }

    fn read_list(&mut self, rows: &GatherJob, ports: &mut EnginePorts) {
        let bytes = rows.count * rows.stride;
        while self.state == ShuffleState::Gathering
            && !self.is_halted()
            && self.requested < bytes
            && self.reads.len() < self.parameters.bursts
        {
            if self.read_free > ports.now() {
                let cycle = self.read_free;
                return self.schedule_wake_up(cycle, ports);
            }
            let addr = rows.list + self.requested;
            let len = (BURST - addr % BURST).min(bytes - self.requested);
            let slot = (self.first_read + self.reads.len() as u64) % self.parameters.bursts as u64;
            self.reads.push_back(ListBurst {
                addr,
                data: vec![0; len as usize],
                arrival: None,
            });
            self.requested += len;
            self.read_free = ports.now() + 1;
            let number = BURSTS as u64 + slot;
            ports.read(
                CROSSBAR_CYCLES,
                number as u16,
                addr,
                len as u32,
                number as u32,
            );
        }
    }

    /// Decodes the next index.
    fn take_index(&mut self, rows: &GatherJob, ports: &mut EnginePorts) -> bool {
        if self.is_halted() || self.decoded == rows.count || self.queue.len() == QUEUE {
            return false;
        }
        let Some(read) = self.reads.front() else {
            return false;
        };
        let Some((arrived, ok)) = read.arrival else {
            return false;
        };
        let when = self.index_free.max(arrived + RETURN_CYCLES);
        if when > ports.now() {
            self.schedule_wake_up(when, ports);
            return false;
        }
        if !ok {
            self.read_error = true;
            return true;
        }
        self.index_free = when + 1;
        let at = self.of_burst + rows.offset();
        let index = read.data[at..at + INDEX_BYTES as usize].iter().rev();
        let index = index.fold(0, |index, &byte| index << 8 | u64::from(byte));
        self.of_burst += rows.stride as usize;
        if self.of_burst == read.data.len() {
            self.of_burst = 0;
            self.reads.pop_front();
            self.first_read += 1;
        }
        if index >= rows.rows {
            self.bad_index = true;
            return true;
        }
        self.decoded += 1;
        let row = rows.src.wrapping_add(index * rows.row_bytes);
        self.queue.push_back((row, when + PRODUCT));
        true
    }

    /// Gives the next row to the mover.
    fn start_row(&mut self, rows: &GatherJob, ports: &mut EnginePorts) -> bool {
        let Some(&(src, when)) = self.queue.front() else {
            return false;
        };
        if !self.mover.has_room() {
            return false;
        }
        if when > ports.now() {
            self.schedule_wake_up(when, ports);
            return false;
        }
        self.queue.pop_front();
        let dst = rows.dst.wrapping_add(self.begun * rows.row_bytes);
        self.begun += 1;
        self.mover.push(src, dst, rows.row_bytes);
        self.mover.advance(ports);
        true
    }

    fn finish_row(&mut self) -> bool {
        let Some(errors) = self.mover.take_finished() else {
            return false;
        };
        self.copied += 1;
        self.read_error |= errors.read;
        self.write_error |= errors.write;
        true
    }

    fn result(&self) -> JobResult {
        let mut end = JobResult::default();
        let bits = [
            (result::READ_ERROR, self.read_error),
            (result::STOPPED, self.stopped),
            (result::INVALID, self.rows.is_none()),
            (result::WRITE_ERROR, self.write_error),
            (result::BAD_INDEX, self.bad_index),
        ];
        for (bit, on) in bits {
            end.result |= if on { bit.mask() as u32 } else { 0 };
        }
        end.outputs[0] = self.begun;
        end
    }
}

impl Engine for RowShuffle {
    fn decode_command(&self, command: &EngineCommand) -> Result<Job, Status> {
        let dw = &command.sqe.dw;
        let [list, src, dst, count, rows] = [10, 11, 12, 13, 14].map(|n| u64::from(dw[n]));
        let (row_bytes, records) = (u64::from(dw[15] & 0x1_FFFF), u64::from(dw[15] >> 24 & 3));
        if dw[15] & !0x301_FFFF != 0 {
            return Err(status::INVALID_FIELD.dnr());
        }
        let places = [list, src, dst].map(|unit| unit << UNIT_BITS);
        let sizes = [
            (count * INDEX_BYTES) << records,
            rows * row_bytes,
            count * row_bytes,
        ];
        let bytes = command.blocks << BLOCK_BITS;
        if places
            .into_iter()
            .zip(sizes)
            .any(|(place, size)| place + size > bytes)
        {
            return Err(status::LBA_OUT_OF_RANGE.dnr());
        }
        let [list, src, dst] = places.map(|place| (command.base << BLOCK_BITS).wrapping_add(place));
        Ok(Job {
            arguments: [list, src, dst, count, row_bytes, rows, records],
            ..Job::default()
        })
    }

    fn stopped_mask(&self) -> u32 {
        result::STOPPED.mask() as u32
    }

    fn completion_status(&self, end: &JobResult) -> (Status, u32) {
        let is = |bit: spec::regs::Field| bit.is_set(end.result.into());
        let status = if is(result::INVALID) || is(result::BAD_INDEX) {
            status::INVALID_FIELD.dnr()
        } else if is(result::WRITE_ERROR) {
            status::WRITE_FAULT
        } else if is(result::READ_ERROR) {
            status::UNRECOVERED_READ_ERROR
        } else {
            status::SUCCESS
        };
        (status, end.outputs[0] as u32)
    }

    fn start(&mut self, job: &Job, ports: &mut EnginePorts) {
        self.rows = GatherJob::of(job);
        (self.stopped, self.bad_index) = (false, false);
        (self.read_error, self.write_error) = (false, false);
        self.reads.clear();
        (self.requested, self.decoded, self.of_burst) = (0, 0, 0);
        (self.begun, self.copied) = (0, 0);
        self.state = ShuffleState::Checking;
        ports.wake(ports.now() + CHECK_CYCLES, BEGIN);
    }

    fn stop(&mut self, ports: &mut EnginePorts) {
        match self.state {
            ShuffleState::Checking => self.stopped |= self.rows.is_some(),
            ShuffleState::Gathering if !self.is_halted() => {
                self.stopped = true;
                self.advance(ports);
            }
            _ => {}
        }
    }

    fn wake(&mut self, what: u32, ports: &mut EnginePorts) {
        match what {
            BEGIN if self.rows.is_none() || self.stopped => {
                self.state = ShuffleState::Finished;
                ports.wake(ports.now() + 1, DONE);
            }
            BEGIN => {
                self.state = ShuffleState::Gathering;
                (self.read_free, self.index_free) = (ports.now(), ports.now());
                self.advance(ports);
            }
            DONE => {
                self.state = ShuffleState::Idle;
                self.finished = Some(self.result());
            }
            ADVANCE => self.advance(ports),
            _ => {
                self.mover.advance(ports);
                self.advance(ports);
            }
        }
    }

    fn read_answered(&mut self, burst: u32, end: bool, ok: bool, ports: &mut EnginePorts) {
        if !end {
            return;
        }
        let burst = burst as usize;
        if burst < BURSTS {
            self.mover.read_arrived(burst, ok, ports);
        } else {
            let bursts = self.parameters.bursts;
            let place = (burst - BURSTS + bursts - self.first_read as usize % bursts) % bursts;
            let read = &mut self.reads[place];
            let ok = ok && ports.load(read.addr, &mut read.data);
            read.arrival = Some((ports.now(), ok));
        }
        self.advance(ports);
    }

    fn write_answered(&mut self, burst: u32, ok: bool, ports: &mut EnginePorts) {
        self.mover.write_answered(burst as usize, ok, ports);
        self.advance(ports);
    }

    fn progress(&self) -> u64 {
        self.begun
    }

    fn take_result(&mut self) -> Option<JobResult> {
        self.finished.take()
    }
}
