//! Sorts tables on devices: keys and rows go there with NVMe writes, the engines `sorter` and `row_shuffle` do the work
//! where they stand, and sorted rows come back with NVMe reads. See `docs/sort.md`.

mod bench;
mod error;
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
mod room;
mod table;
mod transfer;

pub use error::{Error, Result};
pub use file::{Compression, Format};
pub use gather::merged;
pub use order::{parse, By};
pub use plan::Plan;
pub use progress::Progress;
pub use report::{Report, Stage};
pub use table::Table;
