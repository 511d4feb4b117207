// SPDX-License-Identifier: Apache-2.0

//! Messages of all kinds, valid and broken, compared with a model of the protocol:
//! `tests/common/session.rs`.
//!
//! Each session is generated from a seed. `SESSIONS=20000 cargo test --profile checked -p
//! nearside-vfio-user --test messages` runs more of them, `SEED=n SESSIONS=1` repeats one.

mod common;

use std::panic::{catch_unwind, AssertUnwindSafe};

use common::session::{steps, ClientStep, SessionRunner};
use sim::Random;

/// Sessions of a usual run.
const SESSIONS: u64 = 150;

fn number(name: &str, otherwise: u64) -> u64 {
    let text = std::env::var(name);
    text.map_or(otherwise, |text| text.parse().expect(name))
}

fn draw(seed: u64) -> Vec<ClientStep> {
    let mut random = Random::new(seed);
    let len = 50 + random.below(600);
    let bytes: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
    steps(&bytes)
}

fn fails(paced: bool, steps: &[ClientStep]) -> bool {
    let mut bench = SessionRunner::new(paced);
    catch_unwind(AssertUnwindSafe(|| bench.run(steps))).is_err()
}

/// Removes steps that the failure does not need, within limits.
fn shortened(paced: bool, mut steps: Vec<ClientStep>) -> Vec<ClientStep> {
    let mut at = steps.len();
    while at > 0 {
        at -= 1;
        let mut fewer = steps.clone();
        fewer.remove(at);
        if fails(paced, &fewer) {
            steps = fewer;
        }
    }
    steps
}

fn run_sessions(paced: bool) {
    let mut bench = SessionRunner::new(paced);
    let first = number("SEED", 1);
    for seed in first..first + number("SESSIONS", SESSIONS) {
        let steps = draw(seed);
        if catch_unwind(AssertUnwindSafe(|| bench.run(&steps))).is_err() {
            panic!("seed {seed}; it takes {:#?}", shortened(paced, steps));
        }
    }
    bench.end();
}

#[test]
#[ignore = "takes seconds"]
fn messages_are_answered_as_the_protocol_requires() {
    // One after the other, as a session counts the descriptors of this process.
    for paced in [false, true] {
        run_sessions(paced);
    }
}
