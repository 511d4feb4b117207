// SPDX-License-Identifier: Apache-2.0

//! A store of strings as clients of Redis and memcached use it, without their protocols. Half of
//! the accesses are reads, values differ in size, and some are counters.

use pm::Result;
use sim::Random;

use super::{random_bytes, read_number, skewed, Logic};
use crate::Store;

/// GET 50 %, SET 35 %, INCR 10 %, DEL 5 %, of skewed keys.
#[derive(Clone, Copy, Debug)]
pub struct Cache {
    /// Limit of the keys.
    pub keys: u64,
    /// Most bytes of a value; the fewest are 16.
    pub max_bytes: usize,
}

/// Keys per transaction of the initial population.
const KEYS_PER_STEP: u64 = 8;

impl Cache {
    fn value(&self, random: &mut Random) -> Vec<u8> {
        let len = 16 + random.below(self.max_bytes.saturating_sub(15) as u64);
        random_bytes(random, len as usize)
    }
}

impl Logic for Cache {
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
                true => store.put(0, key, &self.value(random)),
                false => Ok(()),
            }
        })
    }

    fn transaction(&self, random: &mut Random, store: &mut dyn Store) -> Result<bool> {
        let key = skewed(random, self.keys / 4, self.keys);
        match random.below(100) {
            0..50 => drop(store.get(0, key)?),
            50..85 => store.put(0, key, &self.value(random))?,
            85..95 => {
                let old = store.get(0, key)?;
                match old {
                    Some(row) => {
                        let more = read_number(&row, 0).wrapping_add(1);
                        store.update(0, key, 0, &more.to_le_bytes())?;
                    }
                    None => store.put(0, key, &1u128.to_le_bytes())?,
                }
            }
            _ => drop(store.remove(0, key)?),
        }
        Ok(true)
    }
}
