//! Crash campaigns: a program with transactions runs forward once, and copies of it end at many
//! moments in a loss of power; each recovers, and is compared with what so many transactions, or
//! one more, leave behind. See the crate's README.
#![warn(missing_docs)]

mod campaign;
mod copies;
mod cut;
pub mod invariants;
mod journal;
mod options;
mod progress;
mod recovery_check;
mod report;
mod stage;
mod timeline;

pub use campaign::run;
pub use cut::{Cut, CutPlan, HoldUp, LineSelection};
pub use options::{Campaign, Executor, InjectedFault};
pub use report::{InvariantViolation, Report, Violation};
