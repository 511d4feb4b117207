// SPDX-License-Identifier: Apache-2.0

//! Sorts random tables on the fast model, and compares with a stable sort of the host.

use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, Int32Builder, ListBuilder};
use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_ord::sort::{lexsort_to_indices, SortColumn};
use arrow_row::{RowConverter, SortField};
use arrow_schema::{DataType, SortOptions};
use arrow_select::take::take_record_batch;
use design::Design;
use device::{Factory, Model, RtlOptions};
use sim::Random;
use sort::{parse_order, Compression, Format, Plan, Progress, Report, Source, Table};

fn design() -> Design {
    Design::find("sort").unwrap()
}

/// The same work with command lists.
fn lists() -> Design {
    Design::find("pipeline").unwrap()
}

fn names(report: &Report) -> Vec<&'static str> {
    report.stages().iter().map(|stage| stage.name).collect()
}

fn run_on(
    design: &Design,
    table: &Table,
    by: &str,
    devices: usize,
) -> sort::Result<(Table, Report)> {
    let plan = Plan::new(table, &parse_order(by)?, design, devices)?;
    let options = RtlOptions::default();
    let factory = Factory::new(design, Model::Fast, &options, &mut |_| true).unwrap();
    plan.run(&factory, &Progress::default())
}

fn run(table: &Table, by: &str, devices: usize) -> sort::Result<(Table, Report)> {
    run_on(&design(), table, by, devices)
}

/// The expected table. The host's sort is not stable, so the row number is the last key.
fn reference(batch: &RecordBatch, by: &str) -> RecordBatch {
    let mut columns: Vec<SortColumn> = parse_order(by)
        .unwrap()
        .iter()
        .map(|by| SortColumn {
            values: batch.column_by_name(&by.column).unwrap().clone(),
            options: Some(SortOptions {
                descending: by.descending,
                nulls_first: by.nulls_first,
            }),
        })
        .collect();
    let rows = UInt64Array::from_iter_values(0..batch.num_rows() as u64);
    columns.push(SortColumn {
        values: Arc::new(rows),
        options: None,
    });
    let order = lexsort_to_indices(&columns, None).unwrap();
    take_record_batch(batch, &order).unwrap()
}

/// Random values with duplicates and nulls.
fn some<T>(random: &mut Random, rows: usize, mut value: impl FnMut(u64) -> T) -> Vec<Option<T>> {
    (0..rows)
        .map(|_| {
            let few = random.below(2) == 0;
            let bits = if few {
                random.below(5).wrapping_sub(2)
            } else {
                random.next()
            };
            (random.below(10) > 0).then(|| value(bits))
        })
        .collect()
}

fn text(bits: u64) -> String {
    // Long common prefixes: the engine compares only their beginning.
    let tail = "z".repeat((bits % 5) as usize * 7);
    format!("{}{tail}{}", bits % 3, bits >> 40)
}

/// A table with a column of each type.
fn table(rows: usize, seed: u64) -> RecordBatch {
    let r = &mut Random::new(seed);
    let fine = |bits: u64| i128::from(bits as i64) << 30;
    let texts: Vec<Option<String>> = some(r, rows, text);
    let binary: Vec<Option<Vec<u8>>> = some(r, rows, |bits| {
        bits.to_be_bytes()[(bits % 8) as usize..].to_vec()
    });
    let mut fixed = FixedSizeBinaryBuilder::with_capacity(rows, 5);
    let mut list = ListBuilder::new(Int32Builder::new());
    for value in some(r, rows, |bits| bits) {
        match value {
            Some(bits) => {
                fixed.append_value(&bits.to_le_bytes()[..5]).unwrap();
                (0..bits % 4).for_each(|n| list.values().append_value(n as i32));
                list.append(true);
            }
            None => {
                fixed.append_null();
                list.append(false);
            }
        }
    }
    let words = ["one", "two", "three"].map(String::from);
    let dictionary: DictionaryArray<Int32Type> =
        some(r, rows, |bits| words[(bits % 3) as usize].clone())
            .iter()
            .map(|word| word.as_deref())
            .collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "row",
            Arc::new(UInt32Array::from_iter_values(0..rows as u32)),
        ),
        ("i8", Arc::new(Int8Array::from(some(r, rows, |b| b as i8)))),
        (
            "i16",
            Arc::new(Int16Array::from(some(r, rows, |b| b as i16))),
        ),
        (
            "i32",
            Arc::new(Int32Array::from(some(r, rows, |b| b as i32))),
        ),
        (
            "i64",
            Arc::new(Int64Array::from(some(r, rows, |b| b as i64))),
        ),
        ("u8", Arc::new(UInt8Array::from(some(r, rows, |b| b as u8)))),
        (
            "u16",
            Arc::new(UInt16Array::from(some(r, rows, |b| b as u16))),
        ),
        (
            "u32",
            Arc::new(UInt32Array::from(some(r, rows, |b| b as u32))),
        ),
        ("u64", Arc::new(UInt64Array::from(some(r, rows, |b| b)))),
        (
            "f32",
            Arc::new(Float32Array::from(some(r, rows, |b| {
                f32::from_bits(b as u32)
            }))),
        ),
        (
            "f64",
            Arc::new(Float64Array::from(some(r, rows, f64::from_bits))),
        ),
        (
            "date",
            Arc::new(Date32Array::from(some(r, rows, |b| b as i32))),
        ),
        (
            "time",
            Arc::new(
                TimestampMicrosecondArray::from(some(r, rows, |b| b as i64)).with_timezone("UTC"),
            ),
        ),
        (
            "d128",
            Arc::new(
                Decimal128Array::from(some(r, rows, fine))
                    .with_precision_and_scale(38, 3)
                    .unwrap(),
            ),
        ),
        (
            "bool",
            Arc::new(BooleanArray::from(some(r, rows, |b| b % 2 == 0))),
        ),
        ("text", Arc::new(StringArray::from(texts.clone()))),
        ("large", Arc::new(LargeStringArray::from(texts.clone()))),
        (
            "view",
            Arc::new(StringViewArray::from_iter(
                texts.iter().map(|t| t.as_deref()),
            )),
        ),
        ("binary", Arc::new(BinaryArray::from_iter(binary))),
        ("fixed", Arc::new(fixed.finish())),
        ("list", Arc::new(list.finish())),
        ("words", Arc::new(dictionary)),
        ("nothing", Arc::new(NullArray::new(rows))),
    ];
    let whole: Vec<f64> = (0..rows).map(|n| (n % 7) as f64 - 3.5).collect();
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    let whole: (&str, ArrayRef, bool) = ("whole", Arc::new(Float64Array::from(whole)), false);
    RecordBatch::try_from_iter_with_nullable(columns.chain([whole])).unwrap()
}

const KEYS: [&str; 19] = [
    "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "date", "time", "d128",
    "bool", "text", "large", "view", "binary", "fixed",
];

/// Compares the bits of two columns, as NaN equals no value.
fn same(one: &ArrayRef, other: &ArrayRef) -> bool {
    if one.data_type() == &DataType::Null {
        return true;
    }
    let fields = vec![SortField::new(one.data_type().clone())];
    let converter = RowConverter::new(fields).unwrap();
    let rows = |array: &ArrayRef| {
        converter
            .convert_columns(std::slice::from_ref(array))
            .unwrap()
    };
    rows(one).iter().eq(&rows(other))
}

fn compare(batch: &RecordBatch, by: &str, devices: usize) -> Report {
    let (found, report) = run(&batch.clone().into(), by, devices).unwrap();
    let wanted = reference(batch, by);
    for (at, field) in batch.schema().fields().iter().enumerate() {
        let (found, wanted) = (found.batch.column(at), wanted.column(at));
        assert_eq!(found.len(), wanted.len());
        assert!(
            same(found, wanted),
            "{by}, {devices} devices: column {}",
            field.name()
        );
    }
    report
}

#[test]
fn sort_orders_keys_of_every_type() {
    let batch = table(700, 1);
    for (n, name) in KEYS.iter().enumerate() {
        for tail in ["", " desc"] {
            compare(&batch, &format!("{name}{tail}"), 1 + n % 3);
        }
    }
    compare(&batch, "whole desc", 2);
    // The reference has no order of a null column.
    let (found, report) = run(&batch.clone().into(), "nothing", 2).unwrap();
    assert_eq!(found.batch.column(0), batch.column(0));
    assert!(report
        .devices
        .iter()
        .all(|device| device.nulls == device.rows));
}

#[test]
fn sort_places_nulls_first_or_last() {
    let batch = table(300, 2);
    for name in ["i64", "text"] {
        for tail in [
            "asc nulls first",
            "asc nulls last",
            "desc nulls first",
            "desc nulls last",
        ] {
            compare(&batch, &format!("{name} {tail}"), 2);
        }
    }
}

#[test]
fn sort_by_several_keys() {
    let batch = table(900, 3);
    for by in [
        "bool, i8 desc, text",
        "text desc, u64",
        "words, f32 nulls first, row desc",
        "i8, i8",
    ] {
        let report = compare(&batch, by, 3);
        assert_eq!(report.devices.len(), 3);
    }
    assert!(compare(&batch, "bool, text, i64", 1).ties > 0);
}

#[test]
fn sort_any_number_of_rows_on_any_number_of_devices() {
    for rows in [0, 1, 2, 5, 17, 1000] {
        for devices in [1, 4, 16] {
            compare(&table(rows, 4), "i16 desc", devices);
        }
    }
}

#[test]
#[ignore = "takes seconds"]
fn sort_more_rows_than_the_sorter_holds() {
    let rows = 150_000;
    let r = &mut Random::new(5);
    let key: ArrayRef = Arc::new(Int32Array::from(some(r, rows, |b| b as i32)));
    let row: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..rows as u32));
    let batch = RecordBatch::try_from_iter([("row", row), ("key", key)]).unwrap();
    let report = compare(&batch, "key", 1);
    assert_eq!(names(&report), ["put", "sort", "shuffle", "get"]);
    // The command list is in the scratch of the sort.
    let (listed, of_list) = run_on(&lists(), &batch.clone().into(), "key", 1).unwrap();
    assert!(same(
        listed.batch.column(0),
        reference(&batch, "key").column(0)
    ));
    assert_eq!(names(&of_list), names(&report));
    let two = compare(&batch, "key", 2);
    assert!(two.elapsed() < report.elapsed(), "two devices are faster");
}

/// A namespace so small that partitions are sorted one after another.
fn small(kib: u64) -> Design {
    let values = format!("[media]\nbytes = \"1 MiB\"\n[nvme]\nnamespaces = [\"{kib} KiB\"]");
    design().with_values(&values).unwrap()
}

#[test]
fn sort_more_rows_than_the_devices_hold() {
    let batch = table(3000, 13);
    for (by, devices, kib) in [
        ("i32 desc", 1, 128),
        ("text, u8", 2, 128),
        ("f64 nulls first", 3, 64),
        ("whole", 1, 256),
        ("nothing", 2, 128),
    ] {
        let memory = Table::from(batch.clone());
        let (found, report) = run_on(&small(kib), &memory, by, devices).unwrap();
        let wanted = match by {
            "nothing" => batch.clone(),
            by => reference(&batch, by),
        };
        for (at, field) in batch.schema().fields().iter().enumerate() {
            let (found, wanted) = (found.batch.column(at), wanted.column(at));
            assert!(same(found, wanted), "{by}: column {}", field.name());
        }
        let each: Vec<usize> = report.devices.iter().map(|d| d.partitions).collect();
        assert_eq!(each.iter().sum::<usize>(), report.partitions);
        assert!(each.iter().all(|&n| n > 3), "{by}: {each:?}");
        assert_eq!(report.devices.iter().map(|d| d.rows).sum::<usize>(), 3000);
    }
}

#[test]
fn sort_encoded_keys_in_several_partitions() {
    let rows = 20_000;
    let row: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..rows));
    let key: ArrayRef = Arc::new(Int64Array::from_iter_values(
        (0..rows).map(|n| i64::from(n * 7919 % 1000)),
    ));
    let batch = RecordBatch::try_from_iter([("row", row), ("key", key)]).unwrap();
    let file = Table::from(batch.clone())
        .write(Format::Parquet, Compression::Zstd)
        .unwrap();
    let table = Table::read(Format::Parquet, file).unwrap();
    let (found, report) = run_on(&small(512), &table, "key", 2).unwrap();
    assert_eq!(found.batch, reference(&batch, "key"));
    assert!(report.pages() && report.partitions > 2, "{report:?}");
}

#[test]
fn sort_time_is_deterministic() {
    let batch = Table::from(table(500, 6));
    let stages = || run(&batch, "f64, i8", 3).unwrap().1.devices;
    assert_eq!(stages(), stages());
}

#[test]
fn parquet_keeps_schema_and_metadata() {
    let batch = table(400, 7);
    let mut schema = (*batch.schema()).clone();
    schema.metadata.insert("who".into(), "me".into());
    let batch = batch.with_schema(schema.into()).unwrap();
    let mut table = Table::from(batch);
    let pair = parquet::file::metadata::KeyValue::new("more".into(), "x".to_string());
    table.metadata.push(pair);
    let read = Table::read(
        Format::Parquet,
        table.write(Format::Parquet, Compression::Snappy).unwrap(),
    )
    .unwrap();
    let (sorted, _) = run(&read, "u64", 2).unwrap();
    let again = Table::read(
        Format::Parquet,
        sorted.write(Format::Parquet, Compression::Snappy).unwrap(),
    )
    .unwrap();
    assert_eq!(again.batch, sorted.batch);
    assert_eq!(again.schema().fields(), table.schema().fields());
    let has = |table: &Table, key: &str| table.metadata.iter().any(|pair| pair.key == key);
    assert!(has(&again, "more"));
    assert_eq!(
        again.schema().metadata.get("who").map(String::as_str),
        Some("me")
    );
}

/// Columns with few distinct values, in memory and from a file with dictionaries.
fn of_few_values() -> (RecordBatch, Table) {
    let rows = 5000;
    let r = &mut Random::new(12);
    let mut few = || -> Vec<u64> {
        let mut last = 0;
        (0..rows)
            .map(|n| {
                let new = n < 300 || r.below(3) == 0;
                last = if new {
                    if n < 300 {
                        n
                    } else {
                        r.below(300)
                    }
                } else {
                    last
                };
                last
            })
            .collect()
    };
    let row: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..rows as u32));
    let long: ArrayRef = Arc::new(Int64Array::from_iter_values(
        few().iter().map(|n| 7 - *n as i64),
    ));
    let float: ArrayRef = Arc::new(Float32Array::from_iter_values(
        few().iter().map(|n| *n as f32 - 99.5),
    ));
    let batch =
        RecordBatch::try_from_iter([("row", row), ("long", long), ("float", float)]).unwrap();
    let file = Table::from(batch.clone())
        .write(Format::Parquet, Compression::Snappy)
        .unwrap();
    let table = Table::read(Format::Parquet, file).unwrap();
    (batch, table)
}

/// Encoded keys are sent if the design can decode them. The result is the same.
#[test]
fn sort_sends_encoded_keys_to_dict_decode() {
    let engines = design().engines().unwrap();
    let decodes = engines
        .iter()
        .any(|engine| engine.manifest.kind == driver::control::block::DICT_DECODE);
    let (batch, table) = of_few_values();
    for by in ["long", "long desc", "float", "float desc"] {
        for devices in [1, 3] {
            let (found, report) = run(&table, by, devices).unwrap();
            assert_eq!(report.pages(), decodes);
            assert_eq!(found.batch, reference(&batch, by), "{by}");
            assert_eq!(names(&report).contains(&"decode"), decodes);
            let (listed, of_lists) = run_on(&lists(), &table, by, devices).unwrap();
            assert_eq!(listed.batch, found.batch, "{by}: lists");
            assert_eq!(names(&of_lists), names(&report), "{by}: lists");
        }
    }
}

/// Sorts the table of a file, with a limit for spills.
fn run_file(
    design: &Design,
    format: Format,
    file: &[u8],
    by: &str,
    memory: u64,
) -> sort::Result<(Table, Report)> {
    let source = Source::open(format, file.to_vec().into(), Some("t"))?;
    let plan = Plan::of(source, &parse_order(by)?, design, 3)?.with_memory(memory);
    let options = RtlOptions::default();
    let factory = Factory::new(design, Model::Fast, &options, &mut |_| true).unwrap();
    plan.run(&factory, &Progress::default())
}

#[test]
fn sort_with_temporary_files_matches_memory() {
    let batch = table(3000, 12);
    // Several partitions for each device.
    let small = "[media]\nbytes = \"1 MiB\"\n[nvme]\nnamespaces = [\"128 KiB\"]";
    let design = design().with_values(small).unwrap();
    for format in [Format::Parquet, Format::Arrow, Format::Stream] {
        let file = Table::from(batch.clone())
            .write(format, Compression::Snappy)
            .unwrap();
        for (by, memory) in [("i32 desc", 0), ("text, u8", 100_000), ("list", 0)] {
            let (found, report) = run_file(&design, format, &file, by, memory).unwrap();
            assert_eq!(found.batch, reference(&batch, by), "{format:?}, {by}");
            assert!(report.partitions > 3 && report.spilled > 0);
        }
    }
}

/// More rows than a step of the order check: runs end within rows that the engine took for equal.
#[test]
#[ignore = "takes seconds"]
fn sort_orders_many_rows_with_equal_prefixes() {
    let rows = 50_000;
    let mut random = Random::new(13);
    let words: Vec<Option<String>> = (0..rows)
        .map(|_| {
            let tail = random.below(20_000);
            (tail > 500).then(|| format!("the same beginning of all, {tail}"))
        })
        .collect();
    let number: ArrayRef = Arc::new(Int32Array::from_iter(
        (0..rows).map(|_| (random.below(9) > 0).then(|| random.below(3) as i32)),
    ));
    let word: ArrayRef = Arc::new(StringViewArray::from_iter(words));
    let row: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..rows as u32));
    let batch = RecordBatch::try_from_iter([("word", word), ("number", number), ("row", row)]);
    let batch = batch.unwrap();
    let table = Table::from(batch.clone());
    for by in [
        "word",
        "word desc nulls last",
        "number nulls first, word desc",
    ] {
        for devices in [1, 2] {
            let (found, report) = run(&table, by, devices).unwrap();
            assert_eq!(found.batch, reference(&batch, by), "{by}");
            assert!(report.ties > 0);
        }
    }
}

/// Some writers omit statistics.
#[test]
fn sort_keeps_nulls_without_statistics() {
    let batch = table(2000, 14);
    let properties = parquet::file::properties::WriterProperties::builder();
    let none = parquet::file::properties::EnabledStatistics::None;
    let properties = properties.set_statistics_enabled(none).build();
    let mut file = Vec::new();
    let schema = batch.schema();
    let writer = parquet::arrow::ArrowWriter::try_new(&mut file, schema, Some(properties));
    let mut writer = writer.unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    for by in ["i32", "i64 desc nulls last", "text", "u8, i16"] {
        let (found, _) = run_file(&design(), Format::Parquet, &file, by, 1 << 20).unwrap();
        assert_eq!(found.batch, reference(&batch, by), "{by}");
    }
}

/// Nulls occur only in some batches.
#[test]
fn sort_keeps_nulls_of_some_batches() {
    let rows = 40_000;
    let mut random = Random::new(15);
    let some = |n: usize| n % 16_384 > 16_000;
    let number: ArrayRef =
        Arc::new(Int32Array::from_iter((0..rows).map(|n| {
            (n < 20_000 || !some(n)).then(|| random.below(1000) as i32)
        })));
    let word: ArrayRef = Arc::new(StringArray::from_iter(
        (0..rows).map(|n| (n < 20_000 || !some(n)).then(|| format!("{n}"))),
    ));
    let row: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..rows as u32));
    let columns = [("number", number), ("word", word), ("row", row)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut stream = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    for first in (0..rows).step_by(10_000) {
        // A column without nulls has no validity bits.
        let part = batch.slice(first, 10_000);
        stream.write(&part).unwrap();
    }
    let file = stream.into_inner().unwrap();
    for by in ["number nulls first", "word desc nulls last, number"] {
        let (found, _) = run_file(&design(), Format::Stream, &file, by, 1 << 20).unwrap();
        assert_eq!(found.batch, reference(&batch, by), "{by}");
    }
}

#[test]
fn sort_reports_invalid_requests() {
    let table = Table::from(table(100, 8));
    let error_of = |by: &str, devices: usize| run(&table, by, devices).unwrap_err().to_string();
    assert!(error_of("nonesuch", 1)
        .starts_with("no column is called \"nonesuch\": the table has row, i8"));
    assert!(error_of("i8", 0).starts_with("devices = 0: allowed are 1 to 16"));
    assert!(error_of("i8", 17).starts_with("devices = 17: allowed are 1 to 16"));
    let small = design()
        .with_values("[media]\nbytes = \"1 MiB\"\n[nvme]\nnamespaces = [\"16 KiB\"]")
        .unwrap();
    let error = run_on(&small, &table, "i8", 1).unwrap_err().to_string();
    assert!(
        error.starts_with("the table is too large: 100 rows"),
        "{error}"
    );
    let other = Design::find("default").unwrap();
    let error = run_on(&other, &table, "i8", 1).unwrap_err().to_string();
    assert!(error.contains("has no engine sorter"), "{error}");
}

#[test]
fn parquet_damage_is_an_error() {
    let good = Table::from(table(200, 9))
        .write(Format::Parquet, Compression::Snappy)
        .unwrap();
    let mut random = Random::new(10);
    for n in 0..300 {
        let mut bad = good.clone();
        match n % 3 {
            0 => bad.truncate(random.below(good.len() as u64) as usize),
            _ => {
                for _ in 0..1 + n % 8 {
                    let at = random.below(good.len() as u64) as usize;
                    bad[at] = random.next() as u8;
                }
            }
        }
        if let Err(error) = Table::read(Format::Parquet, bad) {
            assert_eq!(error.to_string().lines().count(), 1);
        }
    }
    let stream = Table::from(table(20, 9))
        .write(Format::Stream, Compression::Snappy)
        .unwrap();
    for n in 0..300 {
        let mut bad = stream.clone();
        let at = random.below(stream.len() as u64) as usize;
        bad[at] ^= 1 << (n % 8);
        let _ = Table::read(Format::Stream, bad);
    }
}

#[test]
fn sort_can_be_stopped() {
    let table = Table::from(table(3000, 11));
    let design = design();
    let plan = Plan::new(&table, &parse_order("i64").unwrap(), &design, 2).unwrap();
    let factory =
        Factory::new(&design, Model::Fast, &RtlOptions::default(), &mut |_| true).unwrap();
    let progress = Progress::default();
    progress.stop();
    let error = plan.run(&factory, &progress).unwrap_err().to_string();
    assert_eq!(error, "interrupted");
}

const STAGES: [&str; 5] = ["put", "decode", "sort", "shuffle", "get"];

/// Simulated times of the fast model, to the nanosecond. They do not change unnoticed. The claims
/// `sort.*` compare them with the RTL, and are measured again if one changes. No other test detects
/// a change of times alone.
#[test]
fn sort_stages_take_the_recorded_time() {
    let (_, table) = of_few_values();
    for (design, by, known) in [
        (design(), "long", [19_836, 6622, 8896, 46_952, 13_094]),
        (design(), "float desc", [19_700, 4894, 8884, 43_420, 13_098]),
        (lists(), "long", [19_836, 4928, 7276, 45_152, 13_116]),
    ] {
        let (_, report) = run_on(&design, &table, by, 1).unwrap();
        assert_eq!(names(&report), STAGES);
        let found: Vec<u64> = report.stages().iter().map(|s| s.time.0 / 1000).collect();
        assert_eq!(found, known, "{} by {by}, ns of {STAGES:?}", design.name);
    }
}
