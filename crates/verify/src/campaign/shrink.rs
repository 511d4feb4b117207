// SPDX-License-Identifier: Apache-2.0

//! Makes a failing sequence of steps shorter.

use std::collections::BTreeSet;

use super::{EpisodeEnd, EpisodeFailure};

/// Removes steps of a failing run as long as it fails, with `tries` runs at most. Returns the steps
/// that are needed, and the failure with these steps.
pub fn shrink(
    all: Vec<u32>,
    failure: EpisodeFailure,
    tries: u32,
    run: &mut dyn FnMut(&BTreeSet<u32>) -> Result<EpisodeEnd, String>,
) -> Result<(Vec<u32>, EpisodeFailure), String> {
    let (mut kept, mut best, mut tried) = (all, failure, 0);
    let mut piece = kept.len().div_ceil(2);
    'search: while piece > 0 {
        let mut from = 0;
        while from < kept.len() {
            tried += 1;
            if tried > tries {
                break 'search;
            }
            let to = (from + piece).min(kept.len());
            let fewer: BTreeSet<u32> = kept[..from].iter().chain(&kept[to..]).copied().collect();
            let again = run(&fewer)?;
            if again.stopped {
                break 'search;
            }
            match again.failure {
                Some(failure) => {
                    kept = fewer.into_iter().filter(|&s| s < again.steps).collect();
                    best = failure;
                }
                None => from = to,
            }
        }
        piece = if piece == 1 { 0 } else { piece.div_ceil(2) };
    }
    Ok((kept, best))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrink_keeps_the_steps_that_are_needed() {
        let mut run = |steps: &BTreeSet<u32>| {
            let bad = steps.contains(&3) && steps.contains(&70);
            Ok(EpisodeEnd {
                steps: 100,
                failure: bad.then(EpisodeFailure::default),
                ..EpisodeEnd::default()
            })
        };
        let (kept, _) = shrink(
            (0..100).collect(),
            EpisodeFailure::default(),
            1000,
            &mut run,
        )
        .unwrap();
        assert_eq!(kept, [3, 70]);
        let (kept, _) = shrink((0..100).collect(), EpisodeFailure::default(), 0, &mut run).unwrap();
        assert_eq!(kept.len(), 100);
    }
}
