//! Sorts tables on devices: keys and rows go there with NVMe writes, the engines `sorter` and `row_shuffle` do the work
//! where they stand, and sorted rows come back with NVMe reads. See `docs/sort.md`.

mod bench;
mod digest;
mod directory;
mod encoded_keys;
mod error;
#[cfg(test)]
mod failures;
mod fan_in;
mod file;
mod guard;
mod input;
mod job;
mod key;
mod merge;
mod merge_output;
mod merge_partitions;
mod order;
mod plan;
mod progress;
mod region;
mod report;
mod resident;
mod row_layout;
mod rows;
mod run_end;
mod sampler;
mod sharded_merge;
mod side_columns;
mod size;
mod source;
mod spill;
mod store;
mod table;
mod table_parts;
mod trace;
mod transfer;

pub use arrow_array::RecordBatch;
pub use arrow_schema::SchemaRef;
pub use error::{Error, Result};
pub use file::{Compression, Format, Writer};
pub use input::Input;
pub use merge_partitions::Sink;
pub use order::{parse_columns, parse_order, OrderBy};
pub use parquet::file::metadata::KeyValue;
pub use plan::{LoadedPlan, Plan};
pub use progress::Progress;
pub use report::{DeviceReport, Report, StageReport, StageTotal};
pub use resident::ResidentTable;
pub use sharded_merge::sharded_merge;
pub use source::Source;
pub use store::Store;
pub use table::Table;
