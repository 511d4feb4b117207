// SPDX-License-Identifier: Apache-2.0

//! The transactions of the benchmarks, over any [`Store`].

mod cache;
mod key_value;
mod tatp;
mod tpcc;

use pm::Result;
use sim::Random;

use crate::Store;

pub use cache::Cache;
pub use key_value::KeyValue;
pub use tatp::Tatp;
pub use tpcc::Tpcc;

/// The transactions of a benchmark. Everything random comes from the given generator, so the same
/// seed does the same to equal contents.
pub trait Logic: Send + Sync {
    /// Number of tables.
    fn tables(&self) -> usize;

    /// Number of transactions that make the initial contents.
    fn population_steps(&self) -> u64;

    /// Stores a part of the initial contents.
    fn populate(&self, step: u64, random: &mut Random, store: &mut dyn Store) -> Result<()>;

    /// Performs a transaction. False if it is to be aborted.
    fn transaction(&self, random: &mut Random, store: &mut dyn Store) -> Result<bool>;
}

/// Random bytes.
fn random_bytes(random: &mut Random, len: usize) -> Vec<u8> {
    let words = (0..len.div_ceil(8)).flat_map(|_| random.next().to_le_bytes());
    words.take(len).collect()
}

/// Reads a number of 8 bytes of a row.
fn read_number(row: &[u8], at: usize) -> u64 {
    let bytes = row.get(at..at + 8).and_then(|b| b.try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}

/// The distribution of TPC-C's clause 2.1.6 (and of TATP) over 0 to `count` - 1, in which some
/// numbers are far more frequent.
fn skewed(random: &mut Random, a: u64, count: u64) -> u64 {
    (random.below(a + 1) | random.below(count)) % count.max(1)
}
