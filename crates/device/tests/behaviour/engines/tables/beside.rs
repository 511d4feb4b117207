// SPDX-License-Identifier: Apache-2.0

//! All table engines at once, by registers, pages and commands, with other traffic.

use spec::nvme::status;

use super::decode::{keys, runs, values};
use super::nvme::{decode, shuffle, sort};
use super::shuffle::{gathered, list};
use super::sort::sorted;
use super::*;

mod extended {
    use super::*;

    #[test]
    fn tables_engines_work_together_with_nvme_traffic() {
        beside(common::rounds(6, 2));
    }
}

fn at(unit: u32) -> u64 {
    REACH.start + 4096 * u64::from(unit)
}

fn beside(rounds: u64) {
    let mut random = Random::new(1);
    let mut b = bench();
    for round in 0..rounds {
        let kind = [0, 5, 0x1A, 0x31][round as usize % 4];
        let count = 500 + random.below(2000);
        let column = super::sort::keys(&mut random, kind, count as usize);
        let indexes: Vec<u32> = (0..count).map(|_| random.below(900) as u32).collect();
        let listed = list(&mut random, &indexes, 2);
        let table = bytes(&mut random, 900 * 77);
        let keys = keys(&mut random, 900, count as usize);
        let (dict, source) = (bytes(&mut random, 900 * 8), runs(&mut random, &keys, 10));
        for (unit, data) in [
            (0, &column),
            (64, &listed),
            (96, &table),
            (128, &dict),
            (132, &source),
        ] {
            b.store(at(unit), data);
        }
        let len = source.len() as u64;
        let jobs = |n: u32| {
            let to = [256, 512, 768].map(|unit| at(unit + 64 * n));
            [
                vec![at(0), to[0], 0, count, kind],
                vec![at(64), at(96), to[1], count, 77, 900, 2],
                vec![at(128), 900, at(132), len, to[2], count, 10 | 3 << 8],
            ]
        };
        let expected = [
            sorted(kind, &column),
            gathered(&table, 77, &indexes),
            values(&dict, 8, &keys),
        ];
        // Twice in the page, then in the registers.
        let mut lines = Vec::new();
        for n in 0..2 {
            for (engine, job) in jobs(n).iter().enumerate() {
                lines.push((engine, b.submit(engine, job)));
            }
        }
        for (engine, job) in jobs(2).iter().enumerate() {
            b.start(engine, job);
        }
        let pages: Vec<u64> = b.engines.iter().map(|e| e.page.unwrap()).collect();
        let mut q = b.controller();
        // Target 3 is for commands.
        let (c, kind) = (count as u32, kind as u32);
        let commands = [
            sort([0, 256 + 192, 0, c, kind]),
            shuffle([64, 96, 512 + 192, c, 900, 77 | 2 << 24]),
            decode([128, 132, 768 + 192, c, len as u32, 899 | 10 << 16 | 3 << 24]),
        ];
        for (tag, sqe) in (0..).zip(commands) {
            q.c.submit_raw(1, sqe, tag).unwrap();
        }
        q.c.ring(1).unwrap();
        for nsid in [1, 2, 1, 2] {
            q.c.select_namespace(nsid).unwrap();
            let data = bytes(&mut random, 20_000 / 512 * 512);
            // After everything that the engines use.
            let lba = 6 * 2048 * u64::from(nsid - 1) + 2000;
            q.c.write(lba, &data).unwrap();
            let mut back = vec![0; data.len()];
            q.c.read(lba, &mut back).unwrap();
            assert!(back == data, "{round} {nsid}");
        }
        for engine in [SORT, SHUFFLE, DECODE] {
            assert_eq!(q.wait(engine), 0, "{round}");
        }
        q.rest(100_000);
        let fine = [0, 1, 2].map(|tag| (tag, status::SUCCESS));
        assert_eq!(q.ended(1), fine, "{round}");
        for (engine, line) in lines {
            let at = pages[engine] + 64 * line.line;
            let ended = q.host().read64(Bar::Control, at).unwrap();
            assert_eq!(ended, 2, "{round}: engine {engine} by its page");
        }
        for (engine, wanted) in expected.iter().enumerate() {
            for n in 0..4 {
                let place = at(256 * (1 + engine as u32) + 64 * n);
                let found = load(q.host(), place, wanted.len());
                assert!(found == *wanted, "{round}: engine {engine}, {n}");
            }
        }
        let engines = q.engines;
        b = Bench {
            host: q.c.shutdown().unwrap(),
            pages: engines
                .iter()
                .map(|e| CommandPage::new(e.page.unwrap()))
                .collect(),
            engines,
        };
    }
}
