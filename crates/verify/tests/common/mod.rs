// SPDX-License-Identifier: Apache-2.0

//! What the tests of campaigns share.

use verify::campaign::{Campaign, Failure};

/// A number from the environment, or this one.
pub fn from_env(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// A campaign of this amount. `PREFIX_SEED`, `_EPISODE`, `_SHRINKS` and `_REPLAY` of the
/// environment override its parameters.
pub fn campaign(prefix: &str, amount: u64, per_episode: u64, shrinks: u64) -> Campaign {
    let number = |name: &str, default| from_env(&format!("{prefix}_{name}"), default);
    let replay = std::env::var(format!("{prefix}_REPLAY")).ok();
    Campaign {
        seed: number("SEED", 1),
        amount,
        per_episode,
        first_episode: number("EPISODE", 0) as u32,
        shrinks: number("SHRINKS", shrinks) as u32,
        replay: replay.map(|r| r.parse().unwrap()),
    }
}

/// Panics with a failure.
pub fn check(failure: &Option<Failure>) {
    if let Some(failure) = failure {
        panic!(
            "{}\nreplay {} ({} of {} steps)\n{}",
            failure.what,
            failure.replay,
            failure.steps,
            failure.of_steps,
            failure.history.join("\n")
        );
    }
}
