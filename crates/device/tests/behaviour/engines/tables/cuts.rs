// SPDX-License-Identifier: Apache-2.0

//! Everything that can end the table engines at work: sources stay intact, and the engines still
//! work.

use spec::nvme::status;

use super::decode::{keys, runs, values, PACKED};
use super::nvme::{decode, shuffle, sort};
use super::shuffle::{gathered, list};
use super::sort::sorted;
use super::*;
use crate::engines::nvme::abort;

#[derive(Clone, Copy, Debug, PartialEq)]
enum CutKind {
    FunctionReset,
    Power,
    Abort,
    Deletion,
    Stop,
}

/// What is sorted, gathered and decoded, and the expected results.
struct TableJobs {
    sources: Vec<(u64, Vec<u8>)>,
    results: Vec<(usize, u64, Vec<u8>)>,
}

const COUNT: u64 = 6000;
const ROW: usize = 40;
/// Addresses in units of the namespace: sources, then targets of commands, then targets of
/// registers.
const KEYS: u32 = 16;
const LIST: u32 = 64;
const TABLE: u32 = 80;
const DICT: u32 = 192;
const RUNS: u32 = 194;
const TARGETS: [u32; 3] = [256, 384, 512];
const OTHERS: [u32; 3] = [640, 768, 896];

fn at(unit: u32) -> u64 {
    REACH.start + 4096 * u64::from(unit)
}

impl TableJobs {
    fn new(random: &mut Random) -> TableJobs {
        let column = super::sort::keys(random, 0, COUNT as usize);
        let indexes: Vec<u32> = (0..COUNT).map(|_| random.below(COUNT) as u32).collect();
        let list = list(random, &indexes, 0);
        let table = bytes(random, ROW * COUNT as usize);
        let keys = keys(random, 2000, COUNT as usize);
        let (dict, runs) = (bytes(random, 8000), runs(random, &keys, 11));
        let results = vec![
            (SORT, sorted(0, &column)),
            (SHUFFLE, gathered(&table, ROW, &indexes)),
            (DECODE, values(&dict, 4, &keys)),
        ];
        let places = [KEYS, LIST, TABLE, DICT, RUNS].map(at);
        TableJobs {
            sources: places
                .into_iter()
                .zip([column, list, table, dict, runs])
                .collect(),
            results: results
                .into_iter()
                .map(|(engine, data)| (engine, at(TARGETS[engine]), data))
                .collect(),
        }
    }

    fn lay(&self, q: &mut Queues) {
        for (at, data) in &self.sources {
            store(q.host(), *at, data);
        }
    }

    fn sources_are_whole(&self, q: &mut Queues, what: &str) {
        for (at, data) in &self.sources {
            assert!(load(q.host(), *at, data.len()) == *data, "{at:#x}: {what}");
        }
    }

    /// Each engine has a command and a job of its registers.
    fn begin(&self, q: &mut Queues) {
        let (n, row) = (COUNT as u32, ROW as u32);
        let bytes = self.sources[4].1.len();
        let word = 1999 | 11 << 16 | 2 << 24;
        let commands = [
            sort([KEYS, TARGETS[0], 0, n, 0]),
            shuffle([LIST, TABLE, TARGETS[1], n, n, row]),
            decode([DICT, RUNS, TARGETS[2], n, bytes as u32, word]),
        ];
        for (tag, sqe) in (0..).zip(commands) {
            q.c.submit_raw(1, sqe, tag).unwrap();
        }
        q.c.ring(1).unwrap();
        let [sorts, gathers, decodes] = OTHERS.map(at);
        q.start(SORT, &[at(KEYS), sorts, 0, COUNT, 0]);
        let row = u64::from(row);
        q.start(
            SHUFFLE,
            &[at(LIST), at(TABLE), gathers, COUNT, row, COUNT, 0],
        );
        let kind = 11 | 2 << 8;
        q.start(
            DECODE,
            &[at(DICT), 2000, at(RUNS), bytes as u64, decodes, COUNT, kind],
        );
    }

    fn is_done(&self, q: &mut Queues, what: &str) {
        for (engine, place, data) in &self.results {
            let other = at(OTHERS[*engine]);
            assert!(
                load(q.host(), *place, data.len()) == *data,
                "{engine}: {what}"
            );
            assert!(
                load(q.host(), other, data.len()) == *data,
                "{engine}: {what}"
            );
        }
    }
}

fn over(mut q: Queues, cut: CutKind, first: u32) -> Queues {
    let all = [SORT, SHUFFLE, DECODE];
    let one_of = |ended: Vec<(u64, Status)>, other: Status| {
        assert_eq!(ended.len(), 3, "{cut:?}: {ended:?}");
        let fits = |(_, s): &(u64, Status)| *s == status::SUCCESS || *s == other;
        assert!(ended.iter().all(fits), "{ended:?}");
    };
    let number = q.host().device();
    match cut {
        CutKind::FunctionReset => q.host().system_mut().function_reset(number),
        CutKind::Power => {
            q.host().system_mut().power_off(number);
            q.host().system_mut().power_on(number);
        }
        CutKind::Abort => {
            (first..first + 3).for_each(|cid| {
                abort(&mut q, cid);
            });
            all.into_iter()
                .for_each(|engine| assert_eq!(q.wait(engine), 0));
            q.rest(100_000);
            one_of(q.ended(1), status::ABORT_REQUESTED);
            return q;
        }
        CutKind::Deletion => {
            let delete = Sqe::delete_io_sq(2);
            q.c.admin(delete, "Delete I/O Submission Queue").unwrap();
            one_of(q.ended(1), status::ABORTED_SQ_DELETION);
            all.into_iter()
                .for_each(|engine| assert_eq!(q.wait(engine), 0));
            q.c.reset().unwrap();
            return q;
        }
        CutKind::Stop => {
            all.into_iter().for_each(|engine| q.set(engine, 0, 2));
            all.into_iter()
                .for_each(|engine| assert!([0, HALT].contains(&q.wait(engine))));
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

fn cuts(rounds: u64, all: &[CutKind]) {
    for &cut in all {
        let mut q = bench().controller();
        let mut random = Random::new(8);
        let work = TableJobs::new(&mut random);
        let mut amid = 0;
        for moment in 0..rounds {
            let what = format!("{cut:?} {moment}");
            work.lay(&mut q);
            work.begin(&mut q);
            q.rest(500 + moment * 60_000 / rounds + random.below(900));
            let works = |engine: &usize| q.register(*engine, 0) & 4 == 0;
            amid += [SORT, SHUFFLE, DECODE].iter().any(works) as u64;
            q = over(q, cut, 6 * moment as u32);
            work.sources_are_whole(&mut q, &what);
            for engine in [SORT, SHUFFLE, DECODE] {
                assert_eq!(q.register(engine, 0) & 4, 4, "{what}: idle");
            }
            // Everything still works.
            work.begin(&mut q);
            for engine in [SORT, SHUFFLE, DECODE] {
                assert_eq!(q.wait(engine), 0, "{what}");
            }
            q.rest(200_000);
            let fine = [0, 1, 2].map(|tag| (tag, status::SUCCESS));
            assert_eq!(q.ended(1), fine, "{what}");
            work.is_done(&mut q, &what);
            // Different in shape, so that nothing of the one before remains.
            let odd = [
                at(DICT),
                2000,
                at(RUNS),
                32,
                at(OTHERS[2]),
                16,
                16 | PACKED | 2 << 8,
            ];
            q.start(DECODE, &odd);
            assert!([0, BAD].contains(&q.wait(DECODE)), "{what}");
        }
        assert!(2 * amid >= rounds, "{cut:?}: {amid} of {rounds} were amid");
    }
}

#[test]
#[ignore = "takes seconds"]
fn tables_sources_survive_every_kind_of_end() {
    use CutKind::*;
    cuts(
        common::rounds(24, 8),
        &[FunctionReset, Power, Abort, Deletion, Stop],
    );
}

mod sampled {
    use super::*;

    #[test]
    fn tables_survive_resets_and_power_loss_under_load() {
        cuts(
            common::rounds(3, 1),
            &[CutKind::FunctionReset, CutKind::Power],
        );
    }
}
