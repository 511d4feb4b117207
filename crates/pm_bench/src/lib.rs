//! What crash consistency costs a host, by the CPU and left to the device's engine: copies,
//! transactions, and what goes on beside them. All times are simulated.
#![warn(missing_docs)]

mod activity;
mod benchmark;
mod copy;
mod error;
mod platform;
mod timeline;
mod transactions;

pub use benchmark::{Benchmark, BenchmarkResult};
pub use copy::{Copies, CopyMethod, CopyResult};
pub use error::{Error, Result};
pub use platform::{Bench, Platform};
pub use timeline::{Mark, Span, Timeline, TimelineResult};
pub use transactions::{parse_fence, parse_fence_and_order, Transactions, TransactionsResult};

/// Hears how much has been done of how much, and stops it by answering false.
pub type Progress<'a> = &'a mut (dyn FnMut(u64, u64) -> bool + Send);

fn report_progress(
    progress: &mut (dyn FnMut(u64, u64) -> bool + Send),
    done: u64,
    total: u64,
) -> Result<()> {
    match progress(done, total) {
        true => Ok(()),
        false => Err(Error::new("interrupted")),
    }
}
