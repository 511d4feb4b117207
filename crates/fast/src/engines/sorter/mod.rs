// SPDX-License-Identifier: Apache-2.0

//! The sorter (hw/engine/sorter): sorts a column of keys in passes over the memory.
//!
//! The model sorts the records of a merge at once and computes only the times of the RTL's bursts.
//! Reads arrive at a beat or a row of 8 records a cycle, and merged records leave at the same rate.
//! Both wait for each other as in the RTL. The first pass waits for a free half of the leaves. The
//! other passes wait for the rows of the leaves that are next.

mod keys;

use std::collections::VecDeque;

use spec::nvme::{status, Status};
use spec::regs::sorter::{kind, result};
use spec::tables::{LEAVES, ONE_PASS_KEYS};

use crate::config::Config;
use crate::controller::EngineCommand;

use self::keys::{SortKind, INDEX_BYTES};
use super::ports::EnginePorts;
use super::{Engine, Job, JobResult, Range, BLOCK_BITS, UNIT_BITS};

/// Parameters of the RTL: rows of a cascade run, records of a row, bytes of a burst.
const RUN_ROWS: u64 = 256;
const LANES: u64 = 8;
const BURST: u64 = 4096;
/// Bytes of the ranges that are given to the write logic.
const RANGE: u64 = 16 << 10;
/// Records that are sorted in the first pass.
const CHUNK: u64 = LANES * LEAVES * RUN_ROWS;
const _: () = assert!(CHUNK == ONE_PASS_KEYS);
const MAX_KEYS: u64 = 1 << 31;
const BEAT: u64 = 64;

/// Cycles from the start to the first read, between passes after the last response, and from the
/// last response to the end.
const CHECK_CYCLES: u64 = 4;
const NEXT_PASS: u64 = 2;
const FINISH_CYCLES: u64 = 4;
/// Cycles through the crossbar, and from a channel to the row input.
const CROSSBAR_CYCLES: u64 = 2;
const RETURN_CYCLES: u64 = 9;
/// Cycles from an input row to the end of its chunk's last run, from the leaves to the tree's first
/// row, and between two merges.
const CASCADE: u64 = RUN_ROWS + 80;
const TREE: u64 = 52;
const CLEAR: u64 = 3;

/// Wake-up numbers.
const BEGIN: u32 = 0;
const ADVANCE: u32 = 1;
const PASS: u32 = 2;
const DONE: u32 = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum SorterState {
    Idle,
    Checking,
    Sorting,
    /// Between passes.
    BetweenPasses,
    /// Open requests are drained.
    Aborting,
    Finished,
}

/// The column to sort.
#[derive(Clone, Copy)]
struct Column {
    src: u64,
    dst: u64,
    tmp: u64,
    count: u64,
    kind: SortKind,
}

impl Column {
    /// The column of a job; `None`: it is invalid.
    fn of(job: &Job) -> Option<Column> {
        let [src, dst, tmp, count, kind, ..] = job.arguments;
        if job.malformed || count == 0 || count > MAX_KEYS {
            return None;
        }
        let kind = SortKind::of(kind)?;
        let column = Column {
            src,
            dst,
            tmp,
            count,
            kind,
        };
        let sizes = sizes(count, kind.width, kind.indexes, kind.pairs);
        let places = [src, dst, tmp];
        let used = if sizes[2] == 0 { 2 } else { 3 };
        let aligned = places[..used].iter().all(|place| place % BEAT == 0);
        let ranges = [0, 1, 2].map(|n| Range::new(places[n], sizes[n]));
        let fits = ranges[..used].iter().all(Range::fits);
        let alone = (0..used).all(|a| (0..a).all(|b| ranges[a].is_disjoint(&ranges[b])));
        (aligned && fits && alone).then_some(column)
    }

    fn passes(&self) -> u64 {
        let (mut passes, mut most) = (1, CHUNK);
        while self.count > most {
            (passes, most) = (passes + 1, most * self.runs_per_merge());
        }
        passes
    }

    /// Number of runs that are merged at a time.
    fn runs_per_merge(&self) -> u64 {
        runs_per_merge(self.kind.pairs)
    }
}

fn runs_per_merge(pairs: bool) -> u64 {
    match pairs {
        true => 2,
        false => LEAVES,
    }
}

/// Bytes of source, target and scratch, for keys of `4 << width` bytes. With three or more passes
/// the target also holds intermediate records; with one pass there is no scratch.
fn sizes(count: u64, width: u64, indexes: bool, pairs: bool) -> [u64; 3] {
    let records = count << (3 + width);
    [
        count << (2 + width),
        match indexes && count <= CHUNK * runs_per_merge(pairs) {
            true => count * INDEX_BYTES as u64,
            false => records,
        },
        match count <= CHUNK {
            true => 0,
            false => records,
        },
    ]
}

/// A read burst.
struct ReadBurst {
    addr: u64,
    len: u64,
    /// Its leaf; the first pass has only one.
    leaf: usize,
    /// Number of records whose last byte is in it.
    records: u64,
    /// Arrival time.
    arrival: Option<u64>,
}

/// A leaf of the tree, in all passes except the first.
#[derive(Clone, Default)]
struct Leaf {
    /// Number of records in its run, and of those requested, arrived and merged.
    run: u64,
    requested: u64,
    arrived: u64,
    merged: u64,
}

/// One sort at a time.
pub(super) struct Sorter {
    state: SorterState,
    column: Option<Column>,
    stopped: bool,
    read_error: bool,
    write_error: bool,
    /// The keys, and their numbers in the order of the current pass's result.
    keys: Vec<u8>,
    order: Vec<u32>,

    pass: u64,
    passes: u64,
    /// Records of a run that this pass reads, or of a chunk that the first pass makes.
    run: u64,

    /// Read bursts in order, number of the first one, next free edge of an address, and edge up to
    /// which beats have been accepted.
    reads: VecDeque<ReadBurst>,
    first_read: u64,
    read_free: u64,
    accept_free: u64,
    /// Records requested, and accepted.
    requested: u64,
    loaded: u64,
    /// Leaves with room for a piece, in round-robin order. Those whose next piece is in the next
    /// channel come first.
    leaves: Vec<Leaf>,
    next: usize,
    granule: u64,
    channels: u64,
    channel: u64,
    /// Arrival time of the last record of each chunk that has not been merged.
    chunks: VecDeque<u64>,

    /// Records that have been merged, the time when the last of them left the tree, and the end of
    /// the current merge.
    merged: u64,
    out_free: u64,
    merge_end: u64,
    /// Records of the previous passes.
    before: u64,
    /// Bytes of this pass whose write has started, open write bursts with a number each, and the
    /// next free edge of a write.
    written: u64,
    writes: Vec<bool>,
    next_write: usize,
    write_free: u64,
    scheduled: u64,
    finished: Option<JobResult>,
}

impl Sorter {
    /// A sorter with a maximum of `bursts` read bursts, open or buffered, and as many write bursts.
    pub(super) fn new(config: &Config, bursts: usize) -> Sorter {
        Sorter {
            state: SorterState::Idle,
            column: None,
            stopped: false,
            read_error: false,
            write_error: false,
            keys: Vec::new(),
            order: Vec::new(),
            pass: 0,
            passes: 0,
            run: CHUNK,
            reads: VecDeque::with_capacity(bursts),
            first_read: 0,
            read_free: 0,
            accept_free: 0,
            requested: 0,
            loaded: 0,
            leaves: vec![Leaf::default(); LEAVES as usize],
            next: 0,
            granule: config.storage.granule,
            channels: config.storage.channels as u64,
            channel: 0,
            chunks: VecDeque::new(),
            merged: 0,
            out_free: 0,
            merge_end: 0,
            before: 0,
            written: 0,
            writes: vec![false; bursts],
            next_write: 0,
            write_free: 0,
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

    /// The column of a job that was started.
    fn valid_column(&self) -> Column {
        self.column.expect("an invalid job ends at its start")
    }

    fn is_first(&self) -> bool {
        self.pass == 0
    }

    fn is_last(&self) -> bool {
        self.pass + 1 == self.passes
    }

    /// This pass writes to the job's target, as the last pass does.
    fn is_to_dst(&self) -> bool {
        (self.passes - self.pass) % 2 == 1
    }

    fn begin_pass(&mut self, ports: &mut EnginePorts) {
        self.state = SorterState::Sorting;
        (self.requested, self.loaded, self.merged, self.written) = (0, 0, 0, 0);
        (self.read_free, self.accept_free, self.out_free) = (ports.now(), ports.now(), ports.now());
        (self.merge_end, self.write_free) = (0, ports.now());
        self.chunks.clear();
        self.before = self.pass * self.valid_column().count;
        if !self.is_first() {
            self.begin_group(ports.now());
        }
        self.advance(ports);
    }

    /// Starts the next group of runs that are merged into one.
    fn begin_group(&mut self, now: u64) {
        let column = self.valid_column();
        let first = self.merged;
        for (n, leaf) in (0..).zip(&mut self.leaves) {
            let left = match n < column.runs_per_merge() {
                true => column.count.saturating_sub(first + n * self.run),
                false => 0,
            };
            *leaf = Leaf {
                run: left.min(self.run),
                ..Leaf::default()
            };
        }
        self.next = 0;
        self.merge_end = first + (column.runs_per_merge() * self.run).min(column.count - first);
        self.out_free = now + TREE;
        // The runs follow each other in `order`; their union is sorted in place.
        let (order, keys) = (
            &mut self.order[first as usize..self.merge_end as usize],
            &self.keys,
        );
        sort(order, keys, &column.kind);
    }

    /// Does all work that is possible up to the current edge.
    fn advance(&mut self, ports: &mut EnginePorts) {
        if self.state == SorterState::Sorting {
            while self.take_burst(ports) | self.merge(ports) {}
            self.issue_reads(ports);
        }
        self.check_done(ports);
    }

    /// Issues the reads that there is room for.
    fn issue_reads(&mut self, ports: &mut EnginePorts) {
        let column = self.valid_column();
        while self.reads.len() < self.writes.len() {
            if self.read_free > ports.now() {
                let cycle = self.read_free;
                return self.schedule_wake_up(cycle, ports);
            }
            let (size, from, first, leaf, left) = if self.is_first() {
                let size = column.kind.bytes as u64;
                (
                    size,
                    column.src,
                    self.requested,
                    0,
                    column.count - self.requested,
                )
            } else {
                let from = if self.is_to_dst() {
                    column.tmp
                } else {
                    column.dst
                };
                let Some(leaf) = self.leaf_with_room(&column, from) else {
                    return;
                };
                let (begin, requested) = (self.merge_begin(&column), self.leaves[leaf].requested);
                let first = begin + leaf as u64 * self.run + requested;
                (
                    column.kind.record() as u64,
                    from,
                    first,
                    leaf,
                    self.leaves[leaf].run - requested,
                )
            };
            if left == 0 {
                return;
            }
            let addr = from + first * size;
            self.channel = addr / self.granule + 1;
            let len = (BURST - addr % BURST).min(left * size);
            let records = len / size;
            match self.is_first() {
                true => self.requested += records,
                false => {
                    self.leaves[leaf].requested += records;
                    // A piece of 4 KiB is requested as a whole.
                    if addr % BURST + len == BURST {
                        self.next = (leaf + 1) % self.leaves.len();
                    }
                }
            }
            let slot = (self.first_read + self.reads.len() as u64) % self.writes.len() as u64;
            self.reads.push_back(ReadBurst {
                addr,
                len,
                leaf,
                records,
                arrival: None,
            });
            self.read_free = ports.now() + 1;
            ports.read(CROSSBAR_CYCLES, slot as u16, addr, len as u32, slot as u32);
        }
    }

    /// First record of the group that is merged.
    fn merge_begin(&self, column: &Column) -> u64 {
        let group = column.runs_per_merge() * self.run;
        (self.merge_end - 1) / group * group
    }

    fn leaf_with_room(&self, column: &Column, from: u64) -> Option<usize> {
        let (record, begin) = (column.kind.record() as u64, self.merge_begin(column));
        let (ring, piece) = (2 * LANES * RUN_ROWS, BURST / record);
        let leaves = self.leaves.len();
        let has_room = |n: &usize| {
            let leaf = &self.leaves[*n];
            leaf.requested < leaf.run && leaf.requested - leaf.merged + piece <= ring
        };
        let has_turn = |n: &usize| {
            let first = begin + *n as u64 * self.run + self.leaves[*n].requested;
            (from + first * record) / self.granule % self.channels == self.channel % self.channels
        };
        let with_room = || {
            (0..leaves)
                .map(|n| (self.next + n) % leaves)
                .filter(has_room)
        };
        with_room().find(has_turn).or_else(|| with_room().next())
    }

    /// Accepts the oldest read burst if it has arrived.
    fn take_burst(&mut self, ports: &mut EnginePorts) -> bool {
        let column = self.valid_column();
        let Some(read) = self.reads.front() else {
            return false;
        };
        let Some(arrived) = read.arrival else {
            return false;
        };
        // The leaves have two halves: a chunk waits until the second chunk before it has been
        // merged.
        let chunk = self.loaded / CHUNK;
        if self.is_first() && chunk > self.merged / CHUNK + 1 {
            return false;
        }
        let beats = read.len.div_ceil(BEAT);
        let rows = read.records.div_ceil(LANES);
        let done = self.accept_free.max(arrived + RETURN_CYCLES)
            + if self.is_first() {
                beats.max(rows)
            } else {
                beats
            };
        if done > ports.now() {
            self.schedule_wake_up(done, ports);
            return false;
        }
        self.accept_free = done;
        let (records, leaf) = (read.records, read.leaf);
        self.reads.pop_front();
        self.first_read += 1;
        self.loaded += records;
        if !self.is_first() {
            self.leaves[leaf].arrived += records;
            return true;
        }
        // A burst may hold the end of a chunk and the start of the next one.
        let mut from = (self.loaded - records) / CHUNK * CHUNK;
        let mut end = (from + CHUNK).min(column.count);
        while from < end && end <= self.loaded {
            self.order.extend(from as u32..end as u32);
            sort(&mut self.order[from as usize..], &self.keys, &column.kind);
            self.chunks.push_back(done + CASCADE);
            (from, end) = (end, (end + CHUNK).min(column.count));
        }
        true
    }

    /// Merges the records that the next write burst needs, and starts the write.
    fn merge(&mut self, ports: &mut EnginePorts) -> bool {
        let column = self.valid_column();
        let indexes = column.kind.indexes && self.is_last();
        let size = if indexes {
            INDEX_BYTES
        } else {
            column.kind.record()
        } as u64;
        let bytes = column.count * size;
        if self.written == bytes {
            return false;
        }
        if self.merged == self.merge_end && !self.begin_merge(&column, ports) {
            return false;
        }
        let to = if self.is_to_dst() {
            column.dst
        } else {
            column.tmp
        };
        let addr = to + self.written;
        let len = (BURST - addr % BURST).min(bytes - self.written);
        // Whole records of this merge.
        let until = (self.written + len).div_ceil(size).min(self.merge_end);
        let records = until - self.merged;
        if !self.is_first() && records > 0 {
            let begin = self.merge_begin(&column);
            let mut counts = [0u32; LEAVES as usize];
            for &number in &self.order[self.merged as usize..until as usize] {
                counts[((u64::from(number) - begin) / self.run) as usize] += 1;
            }
            let short =
                |(leaf, &count): (&Leaf, &u32)| leaf.merged + u64::from(count) > leaf.arrived;
            if self.leaves.iter().zip(&counts).any(short) {
                return false;
            }
            for (leaf, count) in self.leaves.iter_mut().zip(counts) {
                leaf.merged += u64::from(count);
            }
        }
        if records > 0 {
            let row_beats = if indexes { 1 } else { LANES * size / BEAT };
            let begin = self
                .out_free
                .max(if self.is_first() { 0 } else { ports.now() });
            self.out_free = begin + records.div_ceil(LANES) * row_beats;
            self.merged = until;
            if self.merged == self.merge_end && self.is_first() {
                self.chunks.pop_front();
            }
        }
        if self.merged * size < self.written + len {
            return true;
        }
        if self.writes[self.next_write] {
            return false;
        }
        let when = self.out_free.max(self.write_free);
        if when > ports.now() {
            self.schedule_wake_up(when, ports);
            return false;
        }
        self.issue_write(addr, len, size, indexes, ports);
        true
    }

    /// Starts the merge of the next chunk or group of runs, if there is one.
    fn begin_merge(&mut self, column: &Column, ports: &mut EnginePorts) -> bool {
        if self.merged == column.count {
            return true;
        }
        if !self.is_first() {
            self.begin_group(ports.now());
            self.issue_reads(ports);
            return true;
        }
        let Some(&full) = self.chunks.front() else {
            return false;
        };
        if full > ports.now() {
            self.schedule_wake_up(full, ports);
            return false;
        }
        self.merge_end = (self.merged + CHUNK).min(column.count);
        self.out_free = full.max(self.out_free + CLEAR) + TREE;
        true
    }

    fn issue_write(
        &mut self,
        addr: u64,
        len: u64,
        size: u64,
        indexes: bool,
        ports: &mut EnginePorts,
    ) {
        let column = self.valid_column();
        let key_bytes = column.kind.bytes;
        let first = self.written / size;
        let last = (self.written + len).div_ceil(size);
        let mut data = Vec::with_capacity(((last - first) * size) as usize);
        for &number in &self.order[first as usize..last as usize] {
            if !indexes {
                let at = number as usize * key_bytes;
                data.extend_from_slice(&self.keys[at..at + key_bytes]);
            }
            data.extend_from_slice(&number.to_le_bytes());
            if !indexes {
                data.resize(data.len() + key_bytes - INDEX_BYTES, 0);
            }
        }
        let skip = (self.written - first * size) as usize;
        let id = self.next_write as u16;
        self.writes[self.next_write] = true;
        if ports.write(CROSSBAR_CYCLES, id, addr, len as u32, id.into()) {
            self.write_error |= !ports.store(addr, &data[skip..skip + len as usize]);
        }
        self.next_write = (self.next_write + 1) % self.writes.len();
        self.written += len;
        self.write_free = ports.now() + len.div_ceil(BEAT);
    }

    /// Ends the pass, or the stopped job, if all its work is done.
    fn check_done(&mut self, ports: &mut EnginePorts) {
        let is_drained = self.writes.iter().all(|&open| !open);
        // A wake-up of the job before may come after the start of an invalid one.
        let Some(column) = self.column else { return };
        match self.state {
            SorterState::Sorting if self.read_error || self.write_error || self.stopped => {
                self.state = SorterState::Aborting;
                self.write_free = self.write_free.max(ports.now()) + self.missing_beats(&column);
                self.check_done(ports);
            }
            SorterState::Sorting
                if is_drained && self.merged == column.count && self.is_written(&column) =>
            {
                self.pass += 1;
                if self.pass > 1 {
                    self.run *= column.runs_per_merge();
                }
                match self.pass == self.passes {
                    true => self.finish(FINISH_CYCLES, ports),
                    false => {
                        self.state = SorterState::BetweenPasses;
                        ports.wake(ports.now() + NEXT_PASS, PASS);
                    }
                }
            }
            SorterState::Aborting if ports.now() < self.write_free => {
                ports.wake(self.write_free, ADVANCE);
            }
            SorterState::Aborting
                if is_drained && self.reads.iter().all(|read| read.arrival.is_some()) =>
            {
                self.finish(FINISH_CYCLES, ports)
            }
            _ => {}
        }
    }

    /// Beats of the unwritten ranges, which are sent without data.
    fn missing_beats(&self, column: &Column) -> u64 {
        let to = if self.is_to_dst() {
            column.dst
        } else {
            column.tmp
        };
        // A range that ends at 2^64 is valid.
        let [at, end] = [self.written, self.bytes(column)].map(|n| u128::from(to) + u128::from(n));
        let range = u128::from(RANGE);
        let mut handed = at;
        while handed < end && handed - at < range {
            handed = ((handed / range + 1) * range).min(end);
        }
        (handed - at).div_ceil(u128::from(BEAT)) as u64
    }

    /// Bytes that this pass writes.
    fn bytes(&self, column: &Column) -> u64 {
        let size = match column.kind.indexes && self.is_last() {
            true => INDEX_BYTES,
            false => column.kind.record(),
        };
        column.count * size as u64
    }

    fn is_written(&self, column: &Column) -> bool {
        self.written == self.bytes(column)
    }

    fn finish(&mut self, cycles: u64, ports: &mut EnginePorts) {
        self.state = SorterState::Finished;
        ports.wake(ports.now() + cycles, DONE);
    }

    fn result(&self) -> JobResult {
        let mut end = JobResult::default();
        let stopped = self.stopped && !self.read_error;
        let bits = [
            (result::READ_ERROR, self.read_error),
            (result::WRITE_ERROR, self.write_error),
            (result::STOPPED, stopped),
            (result::INVALID, self.column.is_none()),
        ];
        for (bit, on) in bits {
            end.result |= if on { bit.mask() as u32 } else { 0 };
        }
        if !stopped && self.column.is_some() {
            end.outputs[0] = self.passes;
        }
        end
    }
}

/// Sorts key numbers by their keys; the sort is stable.
fn sort(order: &mut [u32], keys: &[u8], kind: &SortKind) {
    let size = kind.bytes;
    order.sort_by_key(|&number| kind.rank(&keys[number as usize * size..][..size]));
}

impl Engine for Sorter {
    fn decode_command(&self, command: &EngineCommand) -> Result<Job, Status> {
        let dw = &command.sqe.dw;
        if dw[14] >> 7 != 0 || dw[15] != 0 {
            return Err(status::INVALID_FIELD.dnr());
        }
        let (count, kind) = (u64::from(dw[13]), u64::from(dw[14]));
        let places = [10, 11, 12].map(|n| u64::from(dw[n]) << UNIT_BITS);
        let bytes = command.blocks << BLOCK_BITS;
        let sizes = sizes(
            count,
            kind::WIDTH.get(kind),
            kind::INDEXES.is_set(kind),
            kind::PAIRS.is_set(kind),
        );
        let beyond = |(place, size): (u64, u64)| size != 0 && place + size > bytes;
        if places.into_iter().zip(sizes).any(beyond) {
            return Err(status::LBA_OUT_OF_RANGE.dnr());
        }
        let mut job = Job::default();
        let base = command.base << BLOCK_BITS;
        for (argument, place) in job.arguments.iter_mut().zip(places) {
            *argument = base.wrapping_add(place);
        }
        (job.arguments[3], job.arguments[4]) = (count, kind);
        Ok(job)
    }

    fn stopped_mask(&self) -> u32 {
        result::STOPPED.mask() as u32
    }

    fn completion_status(&self, end: &JobResult) -> (Status, u32) {
        let is = |bit: spec::regs::Field| bit.is_set(end.result.into());
        let status = if is(result::INVALID) {
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
        self.column = Column::of(job);
        (self.stopped, self.read_error, self.write_error) = (false, false, false);
        (self.pass, self.run) = (0, CHUNK);
        (self.before, self.merged) = (0, 0);
        self.passes = self.column.map_or(0, |column| column.passes());
        self.keys.clear();
        self.order.clear();
        self.reads.clear();
        self.state = SorterState::Checking;
        ports.wake(ports.now() + CHECK_CYCLES, BEGIN);
    }

    fn stop(&mut self, ports: &mut EnginePorts) {
        match self.state {
            SorterState::Checking => self.stopped |= self.column.is_some(),
            SorterState::Sorting | SorterState::BetweenPasses if !self.stopped => {
                self.stopped = true;
                self.check_done(ports);
            }
            _ => {}
        }
    }

    fn wake(&mut self, what: u32, ports: &mut EnginePorts) {
        match what {
            BEGIN if self.column.is_none() || self.stopped => self.finish(1, ports),
            BEGIN => self.begin_pass(ports),
            PASS if self.stopped => self.finish(FINISH_CYCLES, ports),
            PASS => self.begin_pass(ports),
            DONE => {
                self.state = SorterState::Idle;
                self.finished = Some(self.result());
                (self.keys, self.order) = (Vec::new(), Vec::new());
            }
            _ => self.advance(ports),
        }
    }

    fn read_answered(&mut self, burst: u32, end: bool, ok: bool, ports: &mut EnginePorts) {
        if !end {
            return;
        }
        let slot = u64::from(burst);
        let bursts = self.writes.len() as u64;
        let place = (slot + bursts - self.first_read % bursts) % bursts;
        let is_first = self.is_first();
        let column = self.valid_column();
        let read = &mut self.reads[place as usize];
        read.arrival = Some(ports.now());
        let mut ok = ok;
        if is_first && ok {
            let at = (read.addr - column.src) as usize;
            let end = at + read.len as usize;
            if self.keys.len() < end {
                self.keys.resize(end, 0);
            }
            ok = ports.load(read.addr, &mut self.keys[at..end]);
        }
        self.read_error |= !ok;
        self.advance(ports);
    }

    fn write_answered(&mut self, burst: u32, ok: bool, ports: &mut EnginePorts) {
        self.writes[burst as usize] = false;
        self.write_error |= !ok;
        self.advance(ports);
    }

    fn progress(&self) -> u64 {
        self.before + self.merged
    }

    fn take_result(&mut self) -> Option<JobResult> {
        self.finished.take()
    }
}
