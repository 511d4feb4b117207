// SPDX-License-Identifier: Apache-2.0

//! Keys with values of one size, to exercise a structure.

use pm::Result;
use sim::Random;

use super::{random_bytes, Logic};
use crate::Store;

/// One to three operations: store a value, change bytes of a value in place, remove a key. One
/// transaction of eight is aborted.
#[derive(Clone, Copy, Debug)]
pub struct KeyValue {
    /// Limit of the keys; half of them exist initially.
    pub keys: u64,
    /// Bytes of each value.
    pub bytes: usize,
}

/// Keys per transaction of the initial population.
const KEYS_PER_STEP: u64 = 8;

impl Logic for KeyValue {
    fn tables(&self) -> usize {
        1
    }

    fn population_steps(&self) -> u64 {
        self.keys.div_ceil(2 * KEYS_PER_STEP)
    }

    fn populate(&self, step: u64, random: &mut Random, store: &mut dyn Store) -> Result<()> {
        (0..KEYS_PER_STEP).try_for_each(|n| {
            let key = 2 * (step * KEYS_PER_STEP + n);
            match key < self.keys {
                true => store.put(0, key, &random_bytes(random, self.bytes)),
                false => Ok(()),
            }
        })
    }

    fn transaction(&self, random: &mut Random, store: &mut dyn Store) -> Result<bool> {
        for _ in 0..1 + random.below(3) {
            let key = random.below(self.keys);
            match random.below(4) {
                0 | 1 => store.put(0, key, &random_bytes(random, self.bytes))?,
                2 => {
                    let (first, last) = (random_bytes(random, 8), self.bytes - 8);
                    if store.update(0, key, 0, &first)? {
                        store.update(0, key, last, &first)?;
                    }
                }
                _ => drop(store.remove(0, key)?),
            }
        }
        Ok(random.below(8) != 0)
    }
}
