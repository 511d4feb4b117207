// SPDX-License-Identifier: Apache-2.0

//! Tests of devices that fail during a sort, and of keys that are not in their dictionary.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt32Array};
use design::Design;
use device::{Factory, Model, RtlOptions};
use sim::{Random, Time};

use crate::powered_devices::{MachineEvent, PoweredDevices};
use crate::{parse_order, Plan, Progress, Report, Result, Store, Table};

const ROWS: usize = 20_000;

struct Fixture {
    design: Design,
    factory: Factory,
    table: Table,
    /// The expected row numbers, in order.
    wanted: Vec<u32>,
}

impl Fixture {
    fn new() -> Fixture {
        // Space for about 2400 rows at a time.
        let small = "[media]\nbytes = \"1 MiB\"\n[nvme]\nnamespaces = [\"128 KiB\"]";
        let design = Design::find("sort").unwrap();
        let design = design.with_values(small).unwrap();
        let options = RtlOptions::default();
        let factory = Factory::new(&design, Model::Fast, &options, &mut |_| true).unwrap();
        let mut random = Random::new(1);
        let keys: Vec<i64> = (0..ROWS).map(|_| random.below(3000) as i64).collect();
        let mut wanted: Vec<u32> = (0..ROWS as u32).collect();
        wanted.sort_by_key(|&row| keys[row as usize]);
        let row: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..ROWS as u32));
        let key: ArrayRef = Arc::new(Int64Array::from(keys));
        let batch = RecordBatch::try_from_iter([("row", row), ("key", key)]).unwrap();
        Fixture {
            design,
            factory,
            table: batch.into(),
            wanted,
        }
    }

    fn plan(&self, devices: usize) -> Plan<'_> {
        let by = parse_order("key").unwrap();
        Plan::new(&self.table, &by, &self.design, devices).unwrap()
    }

    /// Sorts, with events at times relative to the start of the devices.
    fn sort(
        &mut self,
        devices: usize,
        events: impl FnOnce(&mut PoweredDevices) -> Vec<(Time, MachineEvent)>,
    ) -> Result<(Vec<u32>, Report)> {
        let Fixture {
            design,
            factory,
            table,
            ..
        } = self;
        let by = parse_order("key").unwrap();
        let plan = Plan::new(table, &by, design, devices).unwrap();
        let mut powered = plan.power_devices(factory).unwrap();
        let begin = powered.drivers[0].now();
        let events = events(&mut powered);
        powered.events = events
            .into_iter()
            .map(|(after, event)| (begin + after, event))
            .collect();
        let (sorted, report) = plan.run_on(&mut powered, &Progress::default())?;
        let rows = sorted.batch.column(0).to_data();
        let rows = UInt32Array::from(rows).values().to_vec();
        Ok((rows, report))
    }

    /// Simulated time of a sort without events.
    fn undisturbed(&mut self, devices: usize) -> Time {
        let (rows, report) = self.sort(devices, |_| Vec::new()).unwrap();
        assert_eq!(rows, self.wanted);
        assert!(report.devices.iter().all(|device| device.failed.is_none()));
        report.elapsed()
    }
}

/// Times from the first command to the last one.
fn moments(all: Time) -> impl Iterator<Item = Time> {
    (1..8).map(move |n| Time(all.0 * n / 8))
}

type InjectedFailure = fn(&mut host::Machine, usize);
const FAILURES: [InjectedFailure; 2] = [
    |machine, device| machine.system_mut().power_off(device),
    |machine, device| machine.system_mut().function_reset(device),
];

#[test]
fn sort_continues_on_the_remaining_devices() {
    let mut fixture = Fixture::new();
    assert!(fixture.plan(3).explain()["partitions"].as_u64() > Some(3));
    let all = fixture.undisturbed(3);
    for fail in FAILURES {
        for moment in moments(all) {
            let event: MachineEvent = Box::new(move |machine| fail(machine, 1));
            let (rows, report) = fixture.sort(3, |_| vec![(moment, event)]).unwrap();
            assert_eq!(rows, fixture.wanted, "at {moment}");
            assert_eq!(report.devices.iter().map(|d| d.rows).sum::<usize>(), ROWS);
            let failed: Vec<bool> = report.devices.iter().map(|d| d.failed.is_some()).collect();
            assert_eq!(failed, [false, true, false], "at {moment}");
            assert!(report.devices[0].partitions > 2 || report.devices[2].partitions > 2);
        }
    }
}

#[test]
#[ignore = "takes seconds"]
fn sort_reports_the_first_failure_when_all_devices_fail() {
    let mut fixture = Fixture::new();
    let all = fixture.undisturbed(2);
    for fail in FAILURES {
        for moment in moments(all).step_by(3) {
            let events = |_: &mut PoweredDevices| -> Vec<(Time, MachineEvent)> {
                let both = [(0, moment), (1, moment + Time::us(3))];
                both.map(|(device, at)| -> (Time, MachineEvent) {
                    (at, Box::new(move |machine| fail(machine, device)))
                })
                .into()
            };
            let error = fixture.sort(2, events).unwrap_err().to_string();
            assert!(error.starts_with("device 0: "), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
    }
}

/// The engine's command is aborted while it runs.
#[test]
fn sort_can_be_repeated_after_a_stop() {
    let mut fixture = Fixture::new();
    let all = fixture.undisturbed(2);
    for moment in moments(all) {
        let by = parse_order("key").unwrap();
        let plan = || Plan::new(&fixture.table, &by, &fixture.design, 2).unwrap();
        let mut powered = plan().power_devices(&fixture.factory).unwrap();
        let (progress, at) = (
            Arc::new(Progress::default()),
            powered.drivers[0].now() + moment,
        );
        let stopped = progress.clone();
        powered.events = vec![(at, Box::new(move |_| stopped.stop()))];
        let error = plan().run_on(&mut powered, &progress).unwrap_err();
        assert!(error.to_string().ends_with(": interrupted"), "{error}");
        let (_, report) = plan().run_on(&mut powered, &Progress::default()).unwrap();
        assert_eq!(report.rows, ROWS);
    }
}

/// Two media files in a temporary folder, which is removed at the end.
struct Files {
    folder: PathBuf,
    media: Vec<PathBuf>,
}

impl Files {
    fn new(name: &str) -> Files {
        let folder = format!("nearside-sort-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let media = [0, 1].map(|n| folder.join(format!("d{n}"))).into();
        Files { folder, media }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
#[ignore = "takes seconds"]
fn resident_table_survives_power_loss() {
    let mut fixture = Fixture::new();
    let room = "[media]\nbytes = \"2 MiB\"\n[nvme]\nnamespaces = [\"2 MiB\"]";
    let design = fixture.design.with_values(room).unwrap();
    let options = RtlOptions::default();
    let factory = Factory::new(&design, Model::Fast, &options, &mut |_| true).unwrap();
    let (files, progress, keys) = (Files::new("power"), Progress::default(), ["key".into()]);
    fixture.table = fixture.table.batch.slice(0, 5000).into();
    fixture.wanted.retain(|&row| row < 5000);
    let rows = |table: &Table| {
        let rows = table.batch.column(0).to_data();
        UInt32Array::from(rows).values().to_vec()
    };
    let open = || Store::open(&factory, &files.media).unwrap();
    let mut store = open();
    let begin = store.powered.drivers[0].now();
    store.put("t", &fixture.table, &keys, &progress).unwrap();
    let put = store.powered.drivers[1].now() - begin;
    let (_, report) = store
        .sort("t", &parse_order("key").unwrap(), &progress)
        .unwrap();
    let sort = report.elapsed();
    store.close().unwrap();
    let mut seen = [0; 3];
    for fail in FAILURES {
        for moment in (1..40).map(|n| Time(put.0 * n / 39)) {
            let mut store = open();
            let at = store.powered.drivers[0].now() + moment;
            store.powered.events = vec![(at, Box::new(move |machine| fail(machine, 1)))];
            let outcome = store.put("u", &fixture.table, &keys, &progress);
            drop(store);
            let mut store = open();
            let list = store.list();
            let parts = list.as_array().unwrap().iter().find(|t| t["name"] == "u");
            let parts = parts.map_or(0, |table| table["parts"].as_u64().unwrap());
            seen[parts as usize] += 1;
            assert!(
                outcome.is_err() || parts == 2,
                "what is acknowledged is there"
            );
            assert_eq!(
                rows(&store.get("t", &progress).unwrap().0),
                (0..5000).collect::<Vec<u32>>()
            );
            let (sorted, _) = store
                .sort("t", &parse_order("key").unwrap(), &progress)
                .unwrap();
            assert_eq!(rows(&sorted), fixture.wanted);
            match parts {
                2 => assert_eq!(rows(&store.get("u", &progress).unwrap().0).len(), 5000),
                _ => assert!(store.get("u", &progress).is_err()),
            }
            if parts > 0 {
                store.drop_table("u").unwrap();
            }
            store.close().unwrap();
        }
        for moment in moments(sort) {
            let mut store = open();
            let at = store.powered.drivers[0].now() + moment;
            store.powered.events = vec![(at, Box::new(move |machine| fail(machine, 1)))];
            // The schema and the side columns are read first.
            match store.sort("t", &parse_order("key").unwrap(), &progress) {
                Ok((sorted, _)) => assert_eq!(rows(&sorted), fixture.wanted),
                Err(error) => assert!(error.to_string().starts_with("device 1: "), "{error}"),
            }
        }
    }
    assert!(
        seen[0] > 10 && seen[1] + seen[2] > 1,
        "before and after: {seen:?}"
    );
}

/// The reader rejects such files, so the data for the device is changed.
#[test]
fn decode_reports_the_position_of_an_invalid_key() {
    let mut fixture = Fixture::new();
    let file = fixture
        .table
        .write(crate::Format::Parquet, crate::Compression::Snappy);
    fixture.table = Table::read(crate::Format::Parquet, file.unwrap()).unwrap();
    let by = parse_order("key").unwrap();
    let room = "[nvme]\nnamespaces = [\"1 MiB\"]";
    // With separate commands, and with a command list.
    for name in ["sort", "pipeline"] {
        let design = Design::find(name).unwrap().with_values(room).unwrap();
        let options = RtlOptions::default();
        let factory = Factory::new(&design, Model::Fast, &options, &mut |_| true).unwrap();
        let plan = Plan::new(&fixture.table, &by, &design, 1).unwrap();
        let mut powered = plan.power_devices(&factory).unwrap();
        let progress = Progress::default();
        let loaded = plan.load(&progress).unwrap();
        let job = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut job = loaded.job(0).unwrap();
            assert!(job.decode.is_some(), "keys go as they are in the file");
            let encoded = &mut job.put[1].1;
            let mut bytes = vec![0; encoded.len() as usize];
            encoded.read(0, &mut bytes).unwrap();
            change(&mut bytes);
            let mut changed = job.spills.empty();
            changed.append(&bytes).unwrap();
            *encoded = Arc::new(changed);
            job
        };
        let driver = &mut powered.drivers[0];
        assert!(driver_run(driver, job(&|_| {}), &progress).is_ok());
        // Everything after the header of the run.
        let all_ones = |encoded: &mut Vec<u8>| {
            let from = encoded.len() / 2;
            encoded[from..].fill(0xFF);
        };
        let error = driver_run(driver, job(&all_ones), &progress).unwrap_err();
        assert!(error.starts_with("decode failed: "), "{error}");
        let position: usize = error.rsplit(' ').next().unwrap().parse().unwrap();
        assert!(error.contains("at value ") && position > 0, "{error}");
        // The device still works.
        assert!(driver_run(driver, job(&|_| {}), &progress).is_ok());
    }
}

fn driver_run(
    driver: &mut crate::powered_devices::Driver,
    job: crate::job::SortJob,
    progress: &Progress,
) -> std::result::Result<(), String> {
    let done = job.run(driver, progress);
    done.map(drop).map_err(|e| e.to_string())
}

#[test]
#[ignore = "takes seconds"]
fn sort_continues_when_several_of_four_devices_fail() {
    let mut fixture = Fixture::new();
    let all = fixture.undisturbed(4);
    for (n, first) in moments(all).enumerate() {
        for second in moments(all).step_by(3) {
            let events = |_: &mut PoweredDevices| -> Vec<(Time, MachineEvent)> {
                vec![
                    (first, Box::new(move |machine| FAILURES[n % 2](machine, 0))),
                    (second, Box::new(|machine| FAILURES[1](machine, 3))),
                    (second, Box::new(|machine| FAILURES[0](machine, 2))),
                ]
            };
            let (rows, report) = fixture.sort(4, events).unwrap();
            assert_eq!(rows, fixture.wanted, "at {first}, {second}");
            assert_eq!(report.devices.iter().map(|d| d.rows).sum::<usize>(), ROWS);
        }
    }
}

/// A table is put or dropped while all of three devices lose power, or one does. The table is whole
/// or refused, and another table stays.
#[test]
#[ignore = "takes seconds"]
fn resident_tables_stay_whole_when_put_or_drop_fails() {
    let fixture = Fixture::new();
    let design = "[media]\nbytes = \"2 MiB\"\n[nvme]\nnamespaces = [\"2 MiB\"]";
    let design = fixture.design.with_values(design).unwrap();
    let options = RtlOptions::default();
    let factory = Factory::new(&design, Model::Fast, &options, &mut |_| true).unwrap();
    let mut files = Files::new("put");
    files.media.push(files.folder.join("d2"));
    let open = || Store::open(&factory, &files.media).unwrap();
    let (progress, keys) = (Progress::default(), ["key".into()]);
    let table = Table::from(fixture.table.batch.slice(0, 3000));
    let whole = |store: &mut Store, name: &str| {
        let (found, _) = store.get(name, &progress)?;
        assert_eq!(found.batch, table.batch);
        Result::Ok(())
    };
    let put = |store: &mut Store, name: &str| store.put(name, &table, &keys, &progress).map(drop);
    put(&mut open(), "stands").unwrap();
    for dropped in [false, true] {
        let work = |store: &mut Store| match dropped {
            true => store.drop_table("new"),
            false => put(store, "new"),
        };
        let mut took = Time::ZERO;
        for case in 0..=4 * 7 {
            let mut store = open();
            if dropped {
                put(&mut store, "new").unwrap();
            }
            let begin = store.powered.drivers[0].now();
            // The first run is undisturbed.
            if case > 0 {
                let cut = [&[0, 1, 2][..], &[2]][case % 2];
                let fail = FAILURES[case / 2 % 2];
                let event: MachineEvent =
                    Box::new(move |machine| cut.iter().for_each(|&d| fail(machine, d)));
                let at = begin + Time(took.0 * case as u64 / 28);
                store.powered.events = vec![(at, event)];
            }
            let outcome = work(&mut store);
            if case == 0 {
                outcome.as_ref().unwrap();
                let ends = store.powered.drivers.iter().map(|d| d.now());
                took = Time(ends.max().unwrap().0 - begin.0);
            }
            drop(store);
            let mut store = open();
            let list = store.list();
            let new = list.as_array().unwrap().iter().find(|t| t["name"] == "new");
            let parts = new.map_or(0, |table| table["parts"].as_u64().unwrap());
            let done = parts == if dropped { 0 } else { 3 };
            assert!(
                done || outcome.is_err(),
                "{case}: {parts} parts, {outcome:?}"
            );
            assert_eq!(whole(&mut store, "new").is_ok(), parts == 3, "{case}");
            whole(&mut store, "stands").unwrap();
            if parts > 0 {
                store.drop_table("new").unwrap();
            }
        }
    }
}
