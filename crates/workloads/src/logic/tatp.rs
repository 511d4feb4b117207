// SPDX-License-Identifier: Apache-2.0

//! The Telecom Application Transaction Processing benchmark, version 1.0: its four tables and its
//! standard mix.

use pm::Result;
use sim::Random;

use super::{random_bytes, skewed, Logic};
use crate::Store;

/// The number of subscribers.
#[derive(Clone, Copy, Debug)]
pub struct Tatp {
    /// Rows of the table `subscriber`.
    pub subscribers: u64,
}

const SUBSCRIBER: usize = 0;
const ACCESS_INFO: usize = 1;
const SPECIAL_FACILITY: usize = 2;
const CALL_FORWARDING: usize = 3;

/// A subscriber: sub_nbr in 16 bytes; bit_1 to bit_10, hex_1 to hex_10, byte2_1 to byte2_10, each
/// in a byte; msc_location, vlr_location.
const SUBSCRIBER_BYTES: usize = 56;
const BIT_1: usize = 16;
const VLR_LOCATION: usize = 52;
/// data1, data2, data3 in 3 bytes, data4 in 5.
const ACCESS_INFO_BYTES: usize = 10;
/// is_active, error_cntrl, data_a, data_b in 5 bytes.
const SPECIAL_FACILITY_BYTES: usize = 8;
const DATA_A: usize = 2;
/// end_time, numberx in 15 bytes.
const CALL_FORWARDING_BYTES: usize = 16;

/// Key of an access_info or special_facility of a type from 0 to 3.
fn typed_key(subscriber: u64, kind: u64) -> u64 {
    4 * subscriber + kind
}

/// Key of a call_forwarding that starts at 0, 8 or 16 o'clock.
fn forwarding_key(facility: u64, start: u64) -> u64 {
    3 * facility + start
}

impl Tatp {
    fn subscriber(&self, random: &mut Random) -> u64 {
        // TATP's A for up to a million subscribers.
        skewed(random, 65_535.min(self.subscribers / 2), self.subscribers)
    }
}

impl Logic for Tatp {
    fn tables(&self) -> usize {
        4
    }

    fn population_steps(&self) -> u64 {
        self.subscribers
    }

    fn populate(&self, step: u64, random: &mut Random, store: &mut dyn Store) -> Result<()> {
        let mut row = format!("{step:016}").into_bytes();
        row.extend(random_bytes(random, SUBSCRIBER_BYTES - row.len()));
        store.put(SUBSCRIBER, step, &row)?;
        for kind in 0..1 + random.below(4) {
            let row = random_bytes(random, ACCESS_INFO_BYTES);
            store.put(ACCESS_INFO, typed_key(step, kind), &row)?;
        }
        for kind in 0..1 + random.below(4) {
            let mut row = random_bytes(random, SPECIAL_FACILITY_BYTES);
            row[0] = u8::from(random.below(100) < 85);
            store.put(SPECIAL_FACILITY, typed_key(step, kind), &row)?;
            for start in 0..random.below(4) {
                let row = random_bytes(random, CALL_FORWARDING_BYTES);
                let key = forwarding_key(typed_key(step, kind), start);
                store.put(CALL_FORWARDING, key, &row)?;
            }
        }
        Ok(())
    }

    fn transaction(&self, random: &mut Random, store: &mut dyn Store) -> Result<bool> {
        let subscriber = self.subscriber(random);
        let (kind, start) = (random.below(4), random.below(3));
        let facility = typed_key(subscriber, kind);
        match random.below(100) {
            // GET_SUBSCRIBER_DATA
            0..35 => drop(store.get(SUBSCRIBER, subscriber)?),
            // GET_NEW_DESTINATION
            35..45 => {
                let row = store.get(SPECIAL_FACILITY, facility)?;
                if row.is_some_and(|row| row[0] == 1) {
                    for start in 0..=start {
                        store.get(CALL_FORWARDING, forwarding_key(facility, start))?;
                    }
                }
            }
            // GET_ACCESS_DATA
            45..80 => drop(store.get(ACCESS_INFO, typed_key(subscriber, kind))?),
            // UPDATE_SUBSCRIBER_DATA
            80..82 => {
                let bit = [random.below(2) as u8];
                store.update(SUBSCRIBER, subscriber, BIT_1, &bit)?;
                let data = [random.next() as u8];
                // Without such a facility the whole transaction fails.
                return store.update(SPECIAL_FACILITY, facility, DATA_A, &data);
            }
            // UPDATE_LOCATION
            82..96 => {
                let location = random_bytes(random, 4);
                store.update(SUBSCRIBER, subscriber, VLR_LOCATION, &location)?;
            }
            // INSERT_CALL_FORWARDING
            96..98 => {
                let row = random_bytes(random, CALL_FORWARDING_BYTES);
                let key = forwarding_key(facility, start);
                let known = store.get(SPECIAL_FACILITY, facility)?.is_some();
                if !known || store.get(CALL_FORWARDING, key)?.is_some() {
                    return Ok(false);
                }
                store.put(CALL_FORWARDING, key, &row)?;
            }
            // DELETE_CALL_FORWARDING
            _ => return store.remove(CALL_FORWARDING, forwarding_key(facility, start)),
        }
        Ok(true)
    }
}
