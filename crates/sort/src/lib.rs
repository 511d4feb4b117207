//! Sorts tables on devices: keys and rows go there with NVMe writes, the engines `sorter` and `row_shuffle` do the work
//! where they stand, and sorted rows come back with NVMe reads. See `docs/sort.md`.

mod apart;
mod bench;
mod digest;
mod directory;
mod error;
#[cfg(test)]
mod failures;
mod fan_in;
mod file;
mod form;
mod gather;
mod guard;
mod input;
mod job;
mod key;
mod lookup;
mod merge;
mod order;
mod pages;
mod plan;
mod progress;
mod report;
mod rest;
mod room;
mod rows;
mod runs;
mod size;
mod source;
mod spill;
mod standing;
mod store;
mod table;
mod trace;
mod transfer;
mod watch;

pub use apart::merged;
pub use arrow_array::RecordBatch;
pub use arrow_schema::SchemaRef;
pub use error::{Error, Result};
pub use file::{Compression, Format, Writer};
pub use gather::Sink;
pub use input::Input;
pub use order::{columns, parse, By};
pub use parquet::file::metadata::KeyValue;
pub use plan::{Loaded, Plan};
pub use progress::Progress;
pub use report::{Device, Report, Stage, Total};
pub use source::Source;
pub use standing::Standing;
pub use store::Store;
pub use table::Table;
