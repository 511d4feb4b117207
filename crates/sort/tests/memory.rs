//! The host's memory does not grow with the table: all that is allocated here is counted. Media are none of it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array};
use design::Design;
use device::{Engine, Factory, RtlOptions};
use parquet::arrow::ArrowWriter;
use rtl::bitstream::repo_root;
use sim::Random;
use sort::{parse, Compression, Format, Input, Plan, Progress, Source, Writer};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does all of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(held, Relaxed);
        // SAFETY: as the caller says.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller says.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Rows of a piece of a table.
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

/// A file of so many rows, and what they are in memory.
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

/// The most that a sort into another file allocates.
fn sort(source: &Path, target: &Path, by: &str, rows: usize) -> usize {
    let root = repo_root().unwrap();
    let small = "[media]\nbytes = \"2 MiB\"\n[nvme]\nnamespaces = [\"2 MiB\"]";
    let design = Design::find(&root, "sort")
        .unwrap()
        .with_values(small)
        .unwrap();
    let options = RtlOptions::default();
    let mut factory = Factory::new(&design, Engine::Fast, &options, &mut |_| true).unwrap();
    let before = HELD.load(Relaxed);
    MOST.store(before, Relaxed);
    let progress = Progress::default();
    let source = Source::open(Format::Parquet, Input::open(source).unwrap(), None).unwrap();
    let (schema, out) = (source.schema(), File::create(target).unwrap());
    let compression = Compression::Snappy;
    let mut writer = Writer::new(out, Format::Stream, compression, schema, &[]).unwrap();
    let by = parse(by).unwrap();
    let plan = Plan::of(source, &by, &root, &design, 2).unwrap();
    let loaded = plan.with_memory(1 << 20).load(&progress).unwrap();
    let (mut found, mut last) = (0, i64::MIN);
    let report = loaded.run(&mut factory, &progress, &mut |batch| {
        let keys = Int64Array::from(batch.column(0).to_data());
        for &key in keys.values() {
            assert!(last <= key);
            last = key;
        }
        found += batch.num_rows();
        writer.write(&batch)
    });
    writer.finish().unwrap();
    let report = report.unwrap();
    assert_eq!((found, report.rows), (rows, rows));
    assert!(report.partitions > 2 && report.spilled > 0);
    MOST.load(Relaxed) - before
}

/// A folder that is taken away in the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
#[ignore = "takes seconds"]
fn memory_does_not_grow_with_the_table() {
    let name = format!("nearside-sort-memory-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    std::fs::create_dir_all(&folder.0).unwrap();
    let [source, target] = ["s.parquet", "t.arrows"].map(|name| folder.0.join(name));
    // Numbers, and text of which the engine has seen no more than the beginning.
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
