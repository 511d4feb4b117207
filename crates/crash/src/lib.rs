//! Crash campaigns: a program with transactions runs forward once, and copies of it end at many moments in a loss of power; each recovers, and is
//! compared with what so many transactions, or one more, leave behind. See the crate's README.
#![warn(missing_docs)]

mod campaign;
mod copies;
mod cut;
mod end;
pub mod invariants;
mod journal;
mod report;
mod stage;
mod timeline;

pub use campaign::{run, Campaign};
pub use cut::{Cut, CutPlan, HoldUp, LineSelection};
pub use report::{InvariantViolation, Report, Violation};
pub use stage::{Executor, InjectedFault};
