// SPDX-License-Identifier: Apache-2.0

//! Sorts tables on devices.
//!
//! Keys and rows are written to the devices with NVMe. The engines `sorter` and `row_shuffle` sort
//! them there, and the sorted rows are read back with NVMe. Tables can also stay on the devices
//! ([`Store`]). The page `docs/sort.md` describes the use from the command line and from Python.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
//! use design::Design;
//! use device::{Factory, Model, RtlOptions};
//! use sort::{parse_order, Plan, Progress, Table};
//!
//! let design = Design::find("sort")?;
//! let factory = Factory::new(&design, Model::Fast, &RtlOptions::default(), &mut |_| true)?;
//!
//! let city: ArrayRef = Arc::new(StringArray::from(vec!["Rome", "Oslo", "Bern"]));
//! let degrees: ArrayRef = Arc::new(Int32Array::from(vec![31, 18, 24]));
//! let table = Table::from(RecordBatch::try_from_iter([("city", city), ("degrees", degrees)])?);
//!
//! let order = parse_order("degrees desc")?;
//! let plan = Plan::new(&table, &order, &design, 2)?;
//! let (sorted, report) = plan.run(&factory, &Progress::default())?;
//!
//! let degrees = Int32Array::from(sorted.batch.column(1).to_data());
//! assert_eq!(degrees.values(), &[31, 24, 18]);
//! assert_eq!(report.devices.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules, in reading order
//!
//! 1. What is sorted: `order`, `table`, `input`, `file` (Parquet, Arrow IPC, CSV), `source`.
//! 2. Keys and rows: `key`, `encoded_keys`, `row_layout`, `size`, `run_end`, `digest`.
//! 3. One device: `region`, `transfer`, `sampler`, `job`, `powered_devices`.
//! 4. A sort: `plan`, `spill`, `rows`, `merge`, `merge_output`, `fan_in`, `merge_partitions`.
//! 5. Resident tables: `directory`, `table_parts`, `side_columns`, `resident`, `store`.
//! 6. Several hosts: `sharded_merge`.
//! 7. Results and errors: `progress`, `report`, `trace`, `error`, `guard`.
//!
//! # What it leaves out
//!
//! Devices do not exchange rows: the host merges. Columns within structs can't be keys. A resident
//! table has one copy of each part. Lists, structs and Arrow dictionaries are kept in host memory
//! as whole columns.

#![forbid(unsafe_code)]

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
mod powered_devices;
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
pub use file::{Collector, Compression, Format, Writer};
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
