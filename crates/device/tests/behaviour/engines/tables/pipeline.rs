// SPDX-License-Identifier: Apache-2.0

//! The pipeline: decode, sort and gather in one list.

use spec::nvme::properties::{MSIX_ENTRY, MSIX_TABLE};
use spec::nvme::status;
use spec::regs::pipeline::{CYCLES, CYCLES_STRIDE, ITEMS_LO, PROGRESS};

use super::decode::{keys, runs, values};
use super::nvme::{decode, shuffle, sort};
use super::shuffle::gathered;
use super::sort::sorted;
use super::*;
use crate::engines::nvme::abort;

/// The last engine of [`designs::tables`].
const PIPELINE: usize = 3;
const ENTRY: usize = 64;
/// Bits of the return value.
const BAD_ENTRY: u32 = 16;
const BAD_DATA: u32 = 32;
/// Requests reports.
const REPORT: u64 = 1;
/// Bytes of the namespace, and units of its addresses.
const BYTES: u64 = REACH.end - REACH.start;
const UNITS: u32 = (BYTES / 4096) as u32;
/// Addresses in it: lists, and the data of their entries.
const LIST: u32 = 1;
const OTHER_LIST: u32 = 2;
const DICT: u32 = 16;
const RUNS: u32 = 32;
const KEYS: u32 = 64;
const INDEXES: u32 = 256;
const TABLE: u32 = 512;
const ROWS: u32 = 1024;
const OTHERS: u32 = 1536;

const DICT_VALUES: u32 = 700;
const WIDTH: u32 = 10;
const ROW: u32 = 40;

fn at(unit: u32) -> u64 {
    REACH.start + 4096 * u64::from(unit)
}

/// An entry: the command of an engine, without the fields of the list.
fn entry(sqe: Sqe) -> Vec<u8> {
    let mut dw = sqe.dw;
    dw[1] = 0;
    dw.iter().flat_map(|dword| dword.to_le_bytes()).collect()
}

fn command(list: u32, entries: u32, kind: u32) -> Sqe {
    Sqe::new(0xDC)
        .with_nsid(2)
        .with_cdw(10, list)
        .with_cdw(13, entries)
        .with_cdw(14, kind)
}

/// A table whose rows are sorted by a column of dictionary keys.
struct TableJob {
    count: u32,
    sources: Vec<(u64, Vec<u8>)>,
    /// For each entry, the address and the contents of its output.
    results: Vec<(u32, Vec<u8>)>,
    bytes: u32,
}

impl TableJob {
    fn new(random: &mut Random, count: u32) -> TableJob {
        let keys = keys(random, u64::from(DICT_VALUES), count as usize);
        let (dict, runs) = (
            bytes(random, 4 * DICT_VALUES as usize),
            runs(random, &keys, WIDTH),
        );
        let table = bytes(random, (ROW * count) as usize);
        let column = values(&dict, 4, &keys);
        let indexes = sorted(32, &column);
        let order: Vec<u32> = indexes
            .chunks(4)
            .map(|index| u32::from_le_bytes(index.try_into().unwrap()))
            .collect();
        let rows = gathered(&table, ROW as usize, &order);
        TableJob {
            count,
            bytes: runs.len() as u32,
            sources: vec![(at(DICT), dict), (at(RUNS), runs), (at(TABLE), table)],
            results: vec![(KEYS, column), (INDEXES, indexes), (ROWS, rows)],
        }
    }

    fn entries(&self) -> [Sqe; 3] {
        let word = (DICT_VALUES - 1) | WIDTH << 16 | 2 << 24;
        let n = self.count;
        [
            decode([DICT, RUNS, KEYS, n, self.bytes, word]),
            sort([KEYS, INDEXES, OTHERS, n, 32]),
            shuffle([INDEXES, TABLE, ROWS, n, n, ROW]),
        ]
    }

    /// Writes the sources and the list; clears the results of the one before.
    fn lay(&self, host: &mut SimHost, list: u32, entries: &[Sqe]) {
        for (at, data) in &self.sources {
            store(host, *at, data);
        }
        for (unit, data) in &self.results {
            store(host, at(*unit), &vec![0; data.len()]);
        }
        let list_bytes: Vec<u8> = entries.iter().flat_map(|&sqe| entry(sqe)).collect();
        store(host, at(list), &[0x5A; 4096]);
        store(host, at(list), &list_bytes);
    }

    fn is_done(&self, host: &mut SimHost, what: &str) {
        for (unit, data) in &self.results {
            assert!(load(host, at(*unit), data.len()) == *data, "{unit}: {what}");
        }
    }

    fn sources_are_whole(&self, host: &mut SimHost, what: &str) {
        for (at, data) in &self.sources {
            assert!(load(host, *at, data.len()) == *data, "{at:#x}: {what}");
        }
    }
}

fn job(list: u32, entries: u64, kind: u64) -> [u64; 5] {
    [at(list), entries, REACH.start, BYTES, kind]
}

/// The report of an entry: status, dword 0, cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
struct EntryReport {
    status: Status,
    value: u32,
    cycles: u64,
}

/// Reports of a list, up to the first entry without a report.
fn read_reports(host: &mut SimHost, list: u32, entries: usize) -> Vec<EntryReport> {
    let data = load(host, at(list) + (ENTRY * entries) as u64, ENTRY * entries);
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b));
    let reports = data.chunks(ENTRY).take_while(|report| report[1] != 0x5A);
    reports
        .map(|report| {
            assert_eq!(report[0] & 1, 1);
            assert!(report[2..4] == [0; 2] && report[16..] == [0; 48]);
            EntryReport {
                status: Status(number(&report[..2]) as u16 >> 1),
                value: number(&report[4..8]) as u32,
                cycles: number(&report[8..16]),
            }
        })
        .collect()
}

impl Bench {
    /// Runs a list by the registers. Returns the return value, the entries that ended without an
    /// error, and the cycles of each entry in the registers.
    fn list(&mut self, arguments: &[u64]) -> (u32, u64, Vec<u32>) {
        let (result, done) = self.launch_outputs(PIPELINE, arguments);
        let base = self.registers(PIPELINE).base;
        let cycles = (0..16).map(|n| self.word(base + CYCLES + CYCLES_STRIDE * n));
        (result, done, cycles.collect())
    }
}

mod sampled {
    use super::*;

    #[test]
    fn pipeline_executes_all_entries() {
        let mut b = bench();
        let mut random = Random::new(1);
        let fence = Fence::new(&mut b);
        for count in [1, 8, 333, 3000] {
            let work = TableJob::new(&mut random, count);
            let what = format!("{count} rows");
            work.lay(&mut b.host, LIST, &work.entries());
            let (result, done, cycles) = b.list(&job(LIST, 3, REPORT));
            assert_eq!((result, done), (0, 3), "{what}");
            work.is_done(&mut b.host, &what);
            work.sources_are_whole(&mut b.host, &what);
            let reports = read_reports(&mut b.host, LIST, 3);
            let values: Vec<u32> = reports.iter().map(|report| report.value).collect();
            assert_eq!(values, [count, 1, count], "{what}");
            assert!(reports.iter().all(|r| r.status == status::SUCCESS));
            let of_reports: Vec<u32> = reports.iter().map(|r| r.cycles as u32).collect();
            assert_eq!(cycles[..3], of_reports, "{what}");
            assert_eq!(cycles[3..], [0; 13], "{what}");
            let base = b.registers(PIPELINE).base;
            assert_eq!(b.word(base + PROGRESS), 2, "{what}");
            assert_eq!(b.word(base + ITEMS_LO), count, "{what}");
            fence.check(&mut b, &what);
            // The same by the page, without reports.
            work.lay(&mut b.host, LIST, &work.entries());
            let submitted = b.submit(PIPELINE, &job(LIST, 3, 0));
            let ended = b.finish(PIPELINE, submitted);
            assert_eq!((ended.result, ended.value), (0, 3), "{what}");
            work.is_done(&mut b.host, &what);
            assert!(read_reports(&mut b.host, LIST, 3).is_empty(), "{what}");
        }
    }

    #[test]
    fn pipeline_commands_execute_in_order() {
        let mut q = bench().controller();
        let mut random = Random::new(2);
        let work = TableJob::new(&mut random, 900);
        work.lay(q.host(), LIST, &work.entries());
        // Sixteen entries; the second list waits for the first one.
        let many: Vec<Sqe> = (0..16).map(|n| work.entries()[n % 3]).collect();
        work.lay(q.host(), OTHER_LIST, &many);
        for (tag, sqe) in (0..).zip([command(OTHER_LIST, 16, 1), command(LIST, 3, 1)]) {
            q.c.submit_raw(1, sqe, tag).unwrap();
        }
        q.c.ring(1).unwrap();
        q.rest(1_000_000);
        assert_eq!(q.ended(1), [(0, status::SUCCESS), (1, status::SUCCESS)]);
        work.is_done(q.host(), "both");
        for (list, entries) in [(OTHER_LIST, 16), (LIST, 3)] {
            let reports = read_reports(q.host(), list, entries);
            assert_eq!(reports.len(), entries);
            assert!(reports.iter().all(|r| r.status == status::SUCCESS));
        }
        let done = q.execute(command(LIST, 3, 0));
        assert_eq!((done.status, done.result), (status::SUCCESS, 3));
    }

    #[test]
    fn pipeline_stops_at_the_first_bad_entry() {
        let mut b = bench();
        let mut random = Random::new(3);
        let fence = Fence::new(&mut b);
        let work = TableJob::new(&mut random, 200);
        let [d, s, g] = work.entries();
        let (field, range) = (status::INVALID_FIELD.dnr(), status::LBA_OUT_OF_RANGE.dnr());
        let last = UNITS - 1;
        let dword = |sqe: Sqe, n: usize, bits: u32| {
            let mut sqe = sqe;
            sqe.dw[n] |= bits;
            sqe
        };
        for (bad, result, wanted, value) in [
            (Sqe::new(0), BAD_ENTRY, field, 0),
            (command(LIST, 1, 0), BAD_ENTRY, field, 0),
            (Sqe::new(0xC4), BAD_ENTRY, field, 0),
            (dword(s, 0, 1 << 8), BAD_ENTRY, field, 0),
            (dword(s, 0, 1 << 31), BAD_ENTRY, field, 0),
            (dword(g, 2, 1), BAD_ENTRY, field, 0),
            (dword(d, 9, 1 << 31), BAD_ENTRY, field, 0),
            (dword(s, 14, 1 << 7), BAD_ENTRY, field, 0),
            (dword(s, 15, 1), BAD_ENTRY, field, 0),
            (dword(g, 15, 1 << 31), BAD_ENTRY, field, 0),
            (dword(d, 15, 1 << 31), BAD_ENTRY, field, 0),
            (sort([KEYS, KEYS, 0, 9, 0]), BAD_ENTRY, field, 0),
            (sort([KEYS, INDEXES, 0, 0, 0]), BAD_ENTRY, field, 0),
            (sort([last, INDEXES, 0, 1025, 0]), BAD_ENTRY, range, 0),
            (sort([KEYS, u32::MAX, 0, 9, 0]), BAD_ENTRY, range, 0),
            (
                sort([KEYS, INDEXES, UNITS - 256, 131_073, 0]),
                BAD_ENTRY,
                range,
                0,
            ),
            (
                shuffle([INDEXES, UNITS, ROWS, 9, 9, 9]),
                BAD_ENTRY,
                range,
                0,
            ),
            (
                shuffle([INDEXES, TABLE, last, 200, 200, 41]),
                BAD_ENTRY,
                range,
                0,
            ),
            (
                shuffle([INDEXES, TABLE, ROWS, 9, u32::MAX, 65536]),
                BAD_ENTRY,
                range,
                0,
            ),
            (decode([UNITS, RUNS, KEYS, 9, 9, 0]), BAD_ENTRY, range, 0),
            (
                decode([DICT, RUNS, KEYS, u32::MAX, 9, 1 << 26]),
                BAD_ENTRY,
                range,
                0,
            ),
            (
                decode([DICT, RUNS, KEYS, 200, 40, 2 << 24 | 1 << 26]),
                BAD_DATA,
                field,
                10,
            ),
        ] {
            for place in [0, 1, 3] {
                let what = format!("{bad:?} at {place}");
                let mut entries = vec![d, s, g];
                entries.insert(place, bad);
                work.lay(&mut b.host, LIST, &entries);
                let (got, done, _) = b.list(&job(LIST, 4, REPORT));
                assert_eq!((got, done), (result, place as u64), "{what}");
                let reports = read_reports(&mut b.host, LIST, 4);
                assert_eq!(reports.len(), place + 1, "{what}");
                let fine = reports[..place].iter().all(|r| r.status == status::SUCCESS);
                assert!(fine, "{what}");
                let found = (reports[place].status, reports[place].value);
                assert_eq!(found, (wanted, value), "{what}");
                let base = b.registers(PIPELINE).base;
                assert_eq!(b.word(base + PROGRESS), place as u32, "{what}");
                // The entries after it were not done.
                if place < 3 {
                    let rows = load(&mut b.host, at(ROWS), work.results[2].1.len());
                    assert!(rows.iter().all(|&byte| byte == 0), "{what}");
                }
            }
            fence.check(&mut b, &format!("{bad:?}"));
        }
        // An index out of range in what the sorter wrote.
        let short = shuffle([INDEXES, TABLE, ROWS, 200, 100, ROW]);
        work.lay(&mut b.host, LIST, &[d, s, short]);
        let (result, done, _) = b.list(&job(LIST, 3, REPORT));
        assert_eq!((result, done), (BAD_DATA, 2));
        let report = read_reports(&mut b.host, LIST, 3)[2];
        assert_eq!(report.status, field);
        assert!(report.value < 200);
        let mut q = b.controller();
        let done = q.execute(command(LIST, 3, 1));
        assert_eq!((done.status, done.result), (field, 2));
        work.lay(q.host(), LIST, &[d, sort([UNITS, 0, 0, 9, 0]), g]);
        let done = q.execute(command(LIST, 3, 1));
        assert_eq!((done.status, done.result), (range, 1));
    }

    #[test]
    fn pipeline_refuses_wrong_lists() {
        let mut b = bench();
        let mut random = Random::new(4);
        let fence = Fence::new(&mut b);
        let work = TableJob::new(&mut random, 100);
        work.lay(&mut b.host, LIST, &work.entries());
        let [l, n, base, size, kind] = job(LIST, 3, 0);
        let top = u64::MAX - 4095;
        for wrong in [
            [l + 64, n, base, size, kind],
            [l, 0, base, size, kind],
            [l, 17, base, size, kind],
            [l, 1 << 32, base, size, kind],
            [l, n | 1 << 63, base, size, kind],
            [l, n, base + 512, size, kind],
            [l, n, base, size + 64, kind],
            [l, n, top, 8192, kind],
            [l, n, base, u64::MAX - 511, kind],
            [l, n, base, size, 2],
            [l, n, base, size, 1 << 32],
            [l, n, base, size, 1 << 63],
        ] {
            assert_eq!(b.launch_outputs(PIPELINE, &wrong), (WRONG, 0), "{wrong:x?}");
            let submitted = b.submit(PIPELINE, &wrong);
            assert_eq!(b.finish(PIPELINE, submitted).result, WRONG, "{wrong:x?}");
        }
        // Lists out of reach, and one whose reports are out of reach.
        for place in [0, REACH.start - 4096, REACH.end, 1 << 63, top] {
            let (result, done, _) = b.list(&[place, 3, base, size, REPORT]);
            assert_eq!((result, done), (READ, 0), "{place:#x}");
        }
        // Entries with smaller bounds, or none: everything beyond the reach is refused all the
        // same.
        let (result, done, _) = b.list(&[l, n, base, 4096 * u64::from(ROWS), kind]);
        assert_eq!((result, done), (BAD_ENTRY, 2));
        let (result, done, _) = b.list(&[l, n, 0, 4096, kind]);
        assert_eq!((result, done), (BAD_ENTRY, 0));
        let beyond = [decode([0, 1, 512 + KEYS, 9, 9, 8 << 16 | 1 << 27])];
        work.lay(&mut b.host, LIST, &beyond);
        let (result, done, _) = b.list(&[l, 1, 0, MEDIA, kind]);
        assert_eq!((result, done), (READ, 0));
        work.lay(&mut b.host, LIST, &work.entries());
        fence.check(&mut b, "lists");
        let mut q = b.controller();
        let (field, range) = (status::INVALID_FIELD.dnr(), status::LBA_OUT_OF_RANGE.dnr());
        let last = UNITS - 1;
        let with = |n: usize, bits: u32| {
            let mut sqe = command(LIST, 3, 0);
            sqe.dw[n] = bits;
            sqe
        };
        for (sqe, wanted) in [
            (with(11, 1), field),
            (with(12, 1 << 31), field),
            (with(14, 2), field),
            (with(14, 1 << 31), field),
            (with(15, 1), field),
            (with(13, 0), field),
            (with(13, 17), field),
            (with(10, UNITS), range),
            (with(10, u32::MAX), range),
            (with(13, u32::MAX), range),
            (command(last, 65, 0), range),
            (command(last, 33, 1), range),
            (command(last, 32, 1), field),
        ] {
            let done = q.execute(sqe);
            assert_eq!((done.status, done.result), (wanted, 0), "{sqe:?}");
        }
        // The pipeline has no access to the first namespace.
        let done = q.execute(command(LIST, 3, 0).with_nsid(1));
        assert_ne!(done.status, status::SUCCESS);
        let done = q.execute(command(LIST, 3, 0));
        assert_eq!((done.status, done.result), (status::SUCCESS, 3));
        work.is_done(q.host(), "after all");
    }

    /// With few rows a job shows the cost of its start and end, in addition to the engine's cycles.
    #[test]
    fn pipeline_stages_are_as_fast_as_the_engines() {
        let (mut lists, mut engines) = (
            Stopwatch::new(bench()),
            Stopwatch::new(super::super::bench()),
        );
        let mut around = [0.0; 4];
        for count in [10, 20_000] {
            let work = TableJob::new(&mut Random::new(6), count);
            work.lay(&mut lists.b.host, LIST, &work.entries());
            work.lay(&mut engines.b.host, LIST, &[]);
            let whole = lists.time(PIPELINE, &job(LIST, 3, REPORT));
            let cycles: Vec<f64> = read_reports(&mut lists.b.host, LIST, 3)
                .iter()
                .map(|report| CYCLE_NS * report.cycles as f64)
                .collect();
            let (n, row) = (u64::from(count), u64::from(ROW));
            let kind = u64::from(WIDTH) | 2 << 8;
            let (dict, bytes) = (u64::from(DICT_VALUES), u64::from(work.bytes));
            let jobs = [
                (
                    DECODE,
                    vec![at(DICT), dict, at(RUNS), bytes, at(KEYS), n, kind],
                ),
                (SORT, vec![at(KEYS), at(INDEXES), 0, n, 32]),
                (
                    SHUFFLE,
                    vec![at(INDEXES), at(TABLE), at(ROWS), n, row, n, 0],
                ),
            ];
            for (stage, (engine, arguments)) in jobs.iter().enumerate() {
                let alone = engines.time(*engine, arguments);
                match count {
                    10 => around[stage] = alone - cycles[stage],
                    _ => {
                        let wanted = alone - around[stage];
                        let off = (cycles[stage] - wanted).abs();
                        assert!(
                            off < 0.01 * wanted + REFRESH_NS,
                            "{stage}: {cycles:?} {wanted}"
                        );
                    }
                }
            }
            work.is_done(&mut engines.b.host, "engines");
            work.is_done(&mut lists.b.host, "list");
            // The cost between entries is what three entries take in addition to their cycles, and
            // one does not.
            store(&mut lists.b.host, at(OTHER_LIST), &entry(work.entries()[2]));
            let one = lists.time(PIPELINE, &job(OTHER_LIST, 1, REPORT));
            let last = read_reports(&mut lists.b.host, OTHER_LIST, 1)[0];
            let one = one - CYCLE_NS * last.cycles as f64;
            let between = (whole - cycles.iter().sum::<f64>() - one) / 2.0;
            assert!(between < 20.0 + REFRESH_NS, "{between} ns");
        }
    }

    #[test]
    fn pipeline_lists_can_be_cut_off() {
        cuts(
            common::rounds(10, 4),
            &[CutKind::FunctionReset, CutKind::Abort],
        );
    }
}

const CYCLE_NS: f64 = 4.0;
/// A refresh of the DRAM, which may fall into one of two jobs.
const REFRESH_NS: f64 = 160.0;

/// Measures jobs of the registers, up to the interrupt at their end.
struct Stopwatch {
    b: Bench,
    place: u64,
}

impl Stopwatch {
    fn new(mut b: Bench) -> Stopwatch {
        let place = b.host.alloc(4096, 4096).unwrap();
        for engine in 0..b.engines.len() {
            let entry = MSIX_TABLE + MSIX_ENTRY * u64::from(b.engines[engine].vector);
            for (n, word) in (0..).zip([place as u32, (place >> 32) as u32, 1, 0]) {
                b.host.write32(Bar::Nvme, entry + 4 * n, word).unwrap();
            }
            let base = b.registers(engine).base;
            b.set(base + 8, 1);
            b.set(base + 4, 1);
        }
        Stopwatch { b, place }
    }

    /// Simulated nanoseconds.
    fn time(&mut self, engine: usize, arguments: &[u64]) -> f64 {
        let host = &mut self.b.host;
        host.dma_write(self.place, &[0; 4]);
        common::rest(host, Time::us(10));
        let begin = self.b.host.now();
        self.b.start(engine, arguments);
        let (host, mut word) = (&mut self.b.host, [0; 4]);
        while word == [0; 4] {
            common::rest(host, Time::ns(10));
            host.dma_read(self.place, &mut word);
        }
        let took = (host.now() - begin).as_ns();
        assert_eq!(self.b.wait(engine), 0, "{arguments:x?}");
        took
    }
}

/// Simulated nanoseconds of a list as a command, as its host sees them, and cycles of its entries.
fn run(q: &mut Queues, list: u32, entries: usize) -> (f64, Vec<u64>) {
    let begin = q.host().now();
    let done = q.execute(command(list, entries as u32, 1));
    assert_eq!(
        (done.status, done.result),
        (status::SUCCESS, entries as u32)
    );
    let took = (q.host().now() - begin).as_ns();
    let reports = read_reports(q.host(), list, entries);
    (took, reports.iter().map(|report| report.cycles).collect())
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum CutKind {
    FunctionReset,
    Power,
    Abort,
    Deletion,
    Stop,
}

/// Ends what is under way: a command, and a job of the registers after or before it.
fn over(mut q: Queues, cut: CutKind, first: u32) -> Queues {
    let one_of = |ended: Vec<(u64, Status)>, other: Status| {
        assert_eq!(ended.len(), 1, "{cut:?}: {ended:?}");
        let fits = |(_, s): &(u64, Status)| *s == status::SUCCESS || *s == other;
        assert!(ended.iter().all(fits), "{cut:?}: {ended:?}");
    };
    let number = q.host().device();
    match cut {
        CutKind::FunctionReset => q.host().system_mut().function_reset(number),
        CutKind::Power => {
            q.host().system_mut().power_off(number);
            q.host().system_mut().power_on(number);
        }
        CutKind::Abort => {
            abort(&mut q, first);
            assert_eq!(q.wait(PIPELINE), 0);
            q.rest(100_000);
            one_of(q.ended(1), status::ABORT_REQUESTED);
            return q;
        }
        CutKind::Deletion => {
            let delete = Sqe::delete_io_sq(2);
            q.c.admin(delete, "Delete I/O Submission Queue").unwrap();
            one_of(q.ended(1), status::ABORTED_SQ_DELETION);
            assert_eq!(q.wait(PIPELINE), 0);
            q.c.reset().unwrap();
            return q;
        }
        CutKind::Stop => {
            q.set(PIPELINE, 0, 2);
            assert!([0, HALT].contains(&q.wait(PIPELINE)));
            q.rest(200_000);
            one_of(q.ended(1), status::SUCCESS);
            return q;
        }
    }
    let engines = q.engines;
    let config = driver::DriverConfig {
        io_queues: 2,
        ..driver::DriverConfig::default()
    };
    Queues {
        c: NvmeDriver::start(q.c.into_host(), config).unwrap(),
        engines,
    }
}

/// A list as a command and one of the registers, cut off at moments in all of their stages.
fn cuts(rounds: u64, all: &[CutKind]) {
    for &cut in all {
        let mut q = bench().controller();
        let mut random = Random::new(8);
        let work = TableJob::new(&mut random, 2500);
        work.lay(q.host(), LIST, &work.entries());
        let whole = run(&mut q, LIST, 3).0 as u64;
        let (mut amid, mut stages) = (0, [false; 3]);
        for moment in 0..rounds {
            let what = format!("{cut:?} {moment}");
            work.lay(q.host(), LIST, &work.entries());
            q.c.submit_raw(1, command(LIST, 3, 1), 0).unwrap();
            q.c.ring(1).unwrap();
            let begin = 300 + random.below(100);
            q.rest(begin);
            q.start(PIPELINE, &job(LIST, 3, 0));
            q.rest(moment * 2 * whole / rounds + random.below(900));
            let progress = q.register(PIPELINE, PROGRESS);
            if progress >> 8 == 1 {
                amid += 1;
                stages[progress as usize & 3] = true;
            }
            q = over(q, cut, 2 * moment as u32 + 1);
            work.sources_are_whole(q.host(), &what);
            assert_eq!(q.register(PIPELINE, 0) & 4, 4, "{what}: idle");
            assert_eq!(q.register(PIPELINE, PROGRESS) >> 8, 0, "{what}: idle");
            // Everything still works.
            let done = q.execute(command(LIST, 3, 1));
            assert_eq!((done.status, done.result), (status::SUCCESS, 3), "{what}");
            work.is_done(q.host(), &what);
        }
        assert!(2 * amid >= rounds, "{cut:?}: {amid} of {rounds} were amid");
        assert!(rounds < 10 || stages == [true; 3], "{cut:?}: {stages:?}");
    }
}

#[test]
#[ignore = "takes seconds"]
fn pipeline_sources_survive_every_kind_of_end() {
    use CutKind::*;
    cuts(
        common::rounds(24, 12),
        &[FunctionReset, Power, Abort, Deletion, Stop],
    );
}
