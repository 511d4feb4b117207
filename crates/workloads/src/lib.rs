//! Programs on persistent memory: what crash tests cut off and figures measure.
//!
//! A [`Workload`] is the logic of a benchmark ([`logic`]) over tables whose index is one of several
//! structures ([`map`]). The same logic runs over a plain map in the host's memory, which is the
//! oracle: [`Contents`] after n transactions.
#![warn(missing_docs)]

pub mod logic;
pub mod map;
mod store;
mod workload;

pub use store::{Contents, Store};
pub use workload::{Inspection, Scale, Workload, NAMES};
