// SPDX-License-Identifier: Apache-2.0

//! Host memory does not grow with the table. All allocations are counted; media are not allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, DictionaryArray, Int32Array, Int64Array,
    LargeBinaryArray, LargeStringArray, RecordBatch, RunArray, StringArray, UInt32Array,
};
use arrow_schema::{DataType, Field};
use design::Design;
use device::{Factory, Model, RtlOptions};
use parquet::arrow::ArrowWriter;
use parquet::basic::Encoding;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;
use sim::Random;
use sort::{parse_order, Compression, Format, Input, Plan, Progress, Report, Source, Writer};

struct CountingAllocator;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system allocator does everything.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = ALLOCATED.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(held, Relaxed);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Rows of a batch of the input.
const PIECE: usize = 10_000;

fn piece(random: &mut Random, first: usize) -> RecordBatch {
    let word = |n: u64| format!("{n:020} and what makes it long: {:060}", n * n);
    let keys: Vec<u64> = (0..PIECE).map(|_| random.below(1 << 20)).collect();
    let columns: [(&str, ArrayRef); 3] = [
        (
            "key",
            Arc::new(Int64Array::from_iter_values(keys.iter().map(|&n| n as i64))),
        ),
        (
            "word",
            Arc::new(StringArray::from_iter_values(keys.iter().map(|&n| word(n)))),
        ),
        (
            "row",
            Arc::new(UInt32Array::from_iter_values(
                first as u32..(first + PIECE) as u32,
            )),
        ),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Writes a file with this number of rows, and returns their size in memory.
fn file(path: &Path, rows: usize) -> usize {
    let mut random = Random::new(1);
    let schema = piece(&mut random, 0).schema();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), schema, None).unwrap();
    let mut bytes = 0;
    for first in (0..rows).step_by(PIECE) {
        let piece = piece(&mut random, first);
        let columns = piece.columns().iter();
        bytes += columns.map(|c| c.get_buffer_memory_size()).sum::<usize>();
        writer.write(&piece).unwrap();
    }
    writer.close().unwrap();
    bytes
}

/// Peak allocation of a sort into another file.
fn sort(source: &Path, target: &Path, by: &str, rows: usize) -> usize {
    let out = File::create(target).unwrap();
    let mut writer = None;
    let mut last = i64::MIN;
    let (most, report) = sort_to(source, Format::Parquet, by, |batch| {
        let keys = Int64Array::from(batch.column(0).to_data());
        for &key in keys.values() {
            assert!(last <= key);
            last = key;
        }
        let writer = writer.get_or_insert_with(|| {
            let compression = Compression::Snappy;
            let out = out.try_clone().unwrap();
            Writer::new(out, Format::Stream, compression, batch.schema(), &[], &[]).unwrap()
        });
        writer.write(&batch).unwrap();
    });
    writer.unwrap().finish().unwrap();
    assert_eq!(report.rows, rows);
    assert!(report.partitions > 2 && report.spilled > 0);
    most
}

/// Peak allocation of a sort whose rows are dropped, with a limit of 1 MiB for spills.
fn sort_to(
    source: &Path,
    format: Format,
    by: &str,
    mut sink: impl FnMut(RecordBatch) + Send,
) -> (usize, Report) {
    let small = "[media]\nbytes = \"2 MiB\"\n[nvme]\nnamespaces = [\"2 MiB\"]";
    let design = Design::find("sort").unwrap().with_values(small).unwrap();
    let options = RtlOptions::default();
    let factory = Factory::new(&design, Model::Fast, &options, &mut |_| true).unwrap();
    let before = ALLOCATED.load(Relaxed);
    PEAK.store(before, Relaxed);
    let progress = Progress::default();
    let source = Source::open(format, Input::open(source).unwrap(), None).unwrap();
    let by = parse_order(by).unwrap();
    let plan = Plan::of(source, &by, &design, 2).unwrap();
    let loaded = plan.with_memory(1 << 20).load(&progress).unwrap();
    let mut rows = 0;
    let report = loaded.run(&factory, &progress, &mut |batch| {
        rows += batch.num_rows();
        sink(batch);
        Ok(())
    });
    let report = report.unwrap();
    assert_eq!(rows, report.rows);
    (PEAK.load(Relaxed) - before, report)
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Only one test at a time may allocate.
static ONE_TEST: Mutex<()> = Mutex::new(());

fn folder(name: &str) -> Folder {
    let name = format!("nearside-sort-{name}-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    std::fs::create_dir_all(&folder.0).unwrap();
    folder
}

#[test]
#[ignore = "takes seconds"]
fn memory_does_not_grow_with_the_table() {
    let _alone = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = folder("memory");
    let [source, target] = ["s.parquet", "t.arrows"].map(|name| folder.0.join(name));
    // Numbers, and text of which the engine compares only a prefix.
    for by in ["key", "word"] {
        let [(few, _), (many, bytes)] = [250_000, 1_000_000].map(|rows| {
            let bytes = file(&source, rows);
            (sort(&source, &target, by, rows), bytes)
        });
        println!("{by}: {many} of a table of {bytes}, of a quarter {few}");
        assert!(many < bytes / 4, "{by}: {many} of a table of {bytes}");
        assert!(many < 2 * few, "{by}: {many}, of a quarter {few}");
    }
}

/// Bytes of a text column once each row has a copy.
const EXPANDED: usize = 128 << 20;
/// Bound of the peak with 1 MiB for spills: "Memory of the host" in docs/guides/sort-inside.md.
const BOUND: usize = 80 << 20;
const CASES: usize = 7;
/// Number of distinct long texts.
const TEXTS: usize = 4;

/// A file that is small, but expands when it is read.
#[derive(Debug)]
struct Case {
    format: Format,
    /// Encoding of Parquet pages.
    encoding: Encoding,
    version: WriterVersion,
    kind: DataType,
    /// Bytes of a text.
    length: usize,
    /// Rows without text that precede the others.
    short: usize,
    by: &'static str,
}

impl Case {
    /// Each encoding that makes text small occurs for some case numbers.
    fn draw(number: usize, random: &mut Random) -> Case {
        use DataType::*;
        let mut one_of = |count: usize| random.below(count as u64) as usize;
        let field = |name: &str, kind, null| Arc::new(Field::new(name, kind, null));
        let runs = RunEndEncoded(field("run_ends", Int32, false), field("values", Utf8, true));
        let encodings = [
            Encoding::RLE_DICTIONARY,
            Encoding::PLAIN,
            Encoding::DELTA_BYTE_ARRAY,
            Encoding::DELTA_LENGTH_BYTE_ARRAY,
        ];
        let encoding = encodings[number % 4];
        let kinds = [Utf8, LargeUtf8, Utf8View, LargeBinary, Binary, BinaryView];
        let kind = kinds[one_of(kinds.len())].clone();
        let arrow = [Format::Arrow, Format::Stream][one_of(2)];
        let (format, kind) = match number % 7 {
            0..4 => (Format::Parquet, kind),
            4 => (arrow, Dictionary(Box::new(Int32), Box::new(Utf8))),
            5 => (arrow, runs),
            _ => (arrow, Utf8View),
        };
        let versions = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
        Case {
            format,
            encoding,
            version: versions[one_of(2)],
            kind,
            length: [5_000, 60_000, 700_000][one_of(3)],
            short: [0, 30_000][one_of(2)],
            by: ["row desc", "text", "text desc, row"][one_of(3)],
        }
    }

    /// The text of each row, in runs. The last text is empty.
    fn numbers(&self, random: &mut Random) -> Vec<usize> {
        let mut numbers = vec![TEXTS; self.short];
        while numbers.len() < self.short + EXPANDED / self.length {
            let (number, count) = (random.below(TEXTS as u64), random.below(32));
            numbers.extend(std::iter::repeat_n(number as usize, count as usize));
        }
        numbers
    }

    /// Consecutive rows. Texts differ only in the last byte.
    fn batch(&self, first: usize, numbers: &[usize]) -> RecordBatch {
        let same = "a".repeat(self.length - 1);
        let texts = (0..TEXTS).map(|n| format!("{same}{n}"));
        let texts: Vec<String> = texts.chain([String::new()]).collect();
        let words = || numbers.iter().map(|&n| texts[n].as_str());
        let words: ArrayRef = match &self.kind {
            DataType::Dictionary(..) => {
                let keys = numbers.iter().map(|&n| n as i32);
                let texts = StringArray::from(texts);
                let keys = Int32Array::from_iter_values(keys);
                Arc::new(DictionaryArray::new(keys, Arc::new(texts)))
            }
            DataType::RunEndEncoded(..) => Arc::new(words().collect::<RunArray<Int32Type>>()),
            DataType::Utf8View => {
                let mut views = StringViewBuilder::new().with_deduplicate_strings();
                words().for_each(|word| views.append_value(word));
                Arc::new(views.finish())
            }
            DataType::BinaryView => Arc::new(BinaryViewArray::from_iter_values(words())),
            DataType::Utf8 => Arc::new(StringArray::from_iter_values(words())),
            DataType::LargeUtf8 => Arc::new(LargeStringArray::from_iter_values(words())),
            DataType::LargeBinary => Arc::new(LargeBinaryArray::from_iter_values(words())),
            _ => Arc::new(BinaryArray::from_iter_values(words())),
        };
        let rows = first as u32..(first + numbers.len()) as u32;
        let row: ArrayRef = Arc::new(UInt32Array::from_iter_values(rows));
        RecordBatch::try_from_iter([("text", words), ("row", row)]).unwrap()
    }

    /// Writes all rows. Parquet gets small batches, which go into one row group. Other formats get
    /// large ones, which are read unchanged.
    fn write(&self, path: &Path, numbers: &[usize]) {
        let file = File::create(path).unwrap();
        let rows = match self.format {
            Format::Parquet => (8 << 20) / self.length,
            _ => numbers.len(),
        };
        let starts = (0..numbers.len()).step_by(rows);
        let batches = starts.map(|at| self.batch(at, &numbers[at..numbers.len().min(at + rows)]));
        if self.format != Format::Parquet {
            let mut batches = batches.peekable();
            let schema = batches.peek().unwrap().schema();
            let none = Compression::Uncompressed;
            let mut writer = Writer::new(file, self.format, none, schema, &[], &[]).unwrap();
            batches.for_each(|batch| writer.write(&batch).unwrap());
            return writer.finish().unwrap();
        }
        let properties = WriterProperties::builder()
            .set_writer_version(self.version)
            .set_compression(parquet::basic::Compression::SNAPPY)
            .set_dictionary_page_size_limit(8 << 20);
        let text = || ColumnPath::from("text");
        let properties = match self.encoding {
            Encoding::RLE_DICTIONARY => properties,
            other => properties
                .set_column_dictionary_enabled(text(), false)
                .set_column_encoding(text(), other),
        };
        let mut batches = batches.peekable();
        let schema = batches.peek().unwrap().schema();
        let mut writer = ArrowWriter::try_new(file, schema, Some(properties.build())).unwrap();
        batches.for_each(|batch| writer.write(&batch).unwrap());
        writer.close().unwrap();
    }

    /// The expected row numbers, in order.
    fn wanted(&self, numbers: &[usize]) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..numbers.len() as u32).collect();
        // The empty text comes first.
        let place = |&row: &u32| (numbers[row as usize] + 1) % (TEXTS + 1);
        match self.by {
            "row desc" => rows.reverse(),
            "text" => rows.sort_by_key(place),
            _ => rows.sort_by_key(|row| std::cmp::Reverse(place(row))),
        }
        rows
    }
}

/// Length and last byte of a row's text.
fn length_and_last_byte(words: &ArrayRef, row: usize) -> (usize, u8) {
    let of = |bytes: &[u8]| (bytes.len(), bytes.last().copied().unwrap_or(0));
    match words.data_type() {
        DataType::Dictionary(..) => {
            let words = words.as_dictionary::<Int32Type>();
            length_and_last_byte(words.values(), words.key(row).unwrap())
        }
        DataType::RunEndEncoded(..) => {
            let words = words.as_run::<Int32Type>();
            length_and_last_byte(words.values(), words.get_physical_index(row))
        }
        DataType::Utf8View => of(words.as_string_view().value(row).as_bytes()),
        DataType::BinaryView => of(words.as_binary_view().value(row)),
        DataType::Utf8 => of(words.as_string::<i32>().value(row).as_bytes()),
        DataType::LargeUtf8 => of(words.as_string::<i64>().value(row).as_bytes()),
        DataType::LargeBinary => of(words.as_binary::<i64>().value(row)),
        _ => of(words.as_binary::<i32>().value(row)),
    }
}

#[test]
#[ignore = "takes seconds"]
fn memory_is_bounded_whatever_the_file_expands_to() {
    let _alone = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = folder("bounds");
    let path = folder.0.join("t");
    let mut random = Random::new(1);
    for number in 0..CASES {
        let case = Case::draw(number, &mut random);
        let numbers = case.numbers(&mut random);
        case.write(&path, &numbers);
        let size = path.metadata().unwrap().len() >> 20;
        let begin = std::time::Instant::now();
        let mut found = Vec::new();
        let (most, _) = sort_to(&path, case.format, case.by, |batch| {
            let rows = batch.column(1).as_primitive::<UInt32Type>().values();
            for (at, &row) in rows.iter().enumerate() {
                let wanted = match numbers[row as usize] {
                    TEXTS => (0, 0),
                    text => (case.length, b'0' + text as u8),
                };
                assert_eq!(
                    length_and_last_byte(batch.column(0), at),
                    wanted,
                    "{case:?}"
                );
            }
            found.extend_from_slice(rows);
        });
        println!(
            "{number}: {} MiB of a file of {size} MiB, {:?}: {case:?}",
            most >> 20,
            begin.elapsed()
        );
        assert!(found == case.wanted(&numbers), "{case:?}");
        assert!(most < BOUND, "{most}: {case:?}");
    }
}

#[test]
#[ignore = "takes seconds"]
fn memory_is_bounded_however_long_lines_of_csv_are() {
    let _alone = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = folder("csv");
    let path = folder.0.join("t.csv");
    // Both texts are quoted, and one has commas. A few lines exceed the bytes of a batch.
    for (length, by) in [(150_000, "row desc"), (4_000_000, "text,row desc")] {
        let rows = EXPANDED / 2 / length;
        let mut out = BufWriter::new(File::create(&path).unwrap());
        writeln!(out, "text,row,more").unwrap();
        let (same, more) = ("a".repeat(length / 2), "b,".repeat(length / 4));
        for row in 0..rows {
            writeln!(out, "\"{same}{}\",{row},\"{more}\"", row % TEXTS).unwrap();
        }
        out.into_inner().unwrap();
        let mut found = Vec::new();
        let (most, _) = sort_to(&path, Format::Csv, by, |batch| {
            let (text, others) = (batch.column(0).as_string::<i32>(), batch.column(2));
            let numbers = batch.column(1).as_primitive::<Int64Type>().values();
            for (at, &row) in numbers.iter().enumerate() {
                let wanted = format!("{}", row as usize % TEXTS);
                assert_eq!(text.value(at).strip_prefix(&same), Some(wanted.as_str()));
                assert_eq!(others.as_string::<i32>().value(at), more);
            }
            found.extend(numbers.iter().map(|&row| row as usize));
        });
        let mut wanted: Vec<usize> = (0..rows).rev().collect();
        if by.starts_with("text") {
            wanted.sort_by_key(|row| row % TEXTS);
        }
        assert_eq!(found, wanted, "{length}");
        println!("lines of {length}: {} MiB", most >> 20);
        assert!(most < BOUND, "{most} with lines of {length}");
    }
}
