//! Sorts tables on devices: keys and rows go there with NVMe writes, the engines `sorter` and `row_shuffle` do the work
//! where they stand, and sorted rows come back with NVMe reads. See `docs/sort.md`.

mod apart;
mod bench;
mod digest;
mod directory;
mod error;
#[cfg(test)]
mod failures;
mod file;
mod form;
mod gather;
mod guard;
mod job;
mod key;
mod merge;
mod order;
mod pages;
mod plan;
mod progress;
mod report;
mod rest;
mod room;
mod standing;
mod store;
mod table;
mod trace;
mod transfer;
mod watch;

pub use apart::merged;
pub use error::{Error, Result};
pub use file::{Compression, Format};
pub use order::{columns, parse, By};
pub use plan::Plan;
pub use progress::Progress;
pub use report::{Device, Report, Stage, Total};
pub use store::Store;
pub use table::Table;
