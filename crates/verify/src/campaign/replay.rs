// SPDX-License-Identifier: Apache-2.0

//! The text that reproduces a failure.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use sim::parse_digits;

/// An episode, or some of its steps: `SEED:EPISODE` or `SEED:EPISODE:STEPS` with steps such as
/// `0-7,12`. The steps are `none` for a failure that needs only the start and the end of the
/// episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Seed of the campaign.
    pub seed: u64,
    /// Number of the episode.
    pub episode: u32,
    /// Its steps; all of them if `None`.
    pub steps: Option<BTreeSet<u32>>,
}

/// Stands for an empty list of steps: an empty string is more likely a mistake.
const NO_STEPS: &str = "none";

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seed, self.episode)?;
        let Some(steps) = &self.steps else {
            return Ok(());
        };
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for &step in steps {
            match ranges.last_mut() {
                Some(last) if last.1 + 1 == step => last.1 = step,
                _ => ranges.push((step, step)),
            }
        }
        let text = ranges.iter().map(|&(a, b)| {
            if a == b {
                a.to_string()
            } else {
                format!("{a}-{b}")
            }
        });
        let text = text.collect::<Vec<_>>().join(",");
        write!(f, ":{}", if text.is_empty() { NO_STEPS } else { &text })
    }
}

impl FromStr for Replay {
    type Err = String;

    fn from_str(text: &str) -> Result<Replay, String> {
        let bad = || format!("{text:?} is no replay: write SEED:EPISODE or SEED:EPISODE:0-7,12");
        let mut parts = text.split(':');
        let mut number = || parts.next().ok_or_else(bad);
        let seed = parse_digits(number()?).ok_or_else(bad)?;
        let episode = parse_digits(number()?).ok_or_else(bad)?;
        let mut steps = None;
        if let Some(list) = parts.next() {
            let mut set = BTreeSet::new();
            for range in list.split(',').filter(|_| list != NO_STEPS) {
                let (from, to) = range.split_once('-').unwrap_or((range, range));
                let from: u32 = parse_digits(from).ok_or_else(bad)?;
                let to: u32 = parse_digits(to).ok_or_else(bad)?;
                if to == u32::MAX {
                    let why = format!("steps are numbered from 0 to {}", u32::MAX - 1);
                    return Err(format!("{text:?} is no replay: {range}: {why}"));
                }
                let last = from.saturating_add(1 << 20);
                if !(from..=last).contains(&to) {
                    let why = "a range goes up, over at most 1048576 steps";
                    return Err(format!("{text:?} is no replay: {range}: {why}"));
                }
                set.extend(from..=to);
            }
            steps = Some(set);
        }
        match parts.next() {
            None => Ok(Replay {
                seed,
                episode,
                steps,
            }),
            Some(_) => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replay_is_written_as_it_is_read() {
        for text in ["7:3", "7:3:0-7,12,14-15", "7:3:none"] {
            assert_eq!(text.parse::<Replay>().unwrap().to_string(), text);
        }
        assert_eq!(
            "7:3:none".parse::<Replay>().unwrap().steps,
            Some(BTreeSet::new())
        );
        let bad = "7 7:x +7:3 7:+3 7:3:+1 7:3:1-+2 \
                   7:3:4:5 7:3:a-b 7:3:0-4294967295 7:3:4294967295 7:3:5-2 \
                   7:3:1,5-2 7:3: 7:3:, 7:3:1, 7:3:,1 \
                   7:3:1,,2 7:3:- 7:3:1- 7:3:none,1 7:3:none:";
        for text in bad.split(' ').chain([""]) {
            let error = text.parse::<Replay>().unwrap_err();
            assert!(
                error.starts_with(&format!("{text:?} is no replay: ")),
                "{error}"
            );
        }
    }
}
