// SPDX-License-Identifier: Apache-2.0

//! The progress of a run: returned transactions and their contents.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pm::Error;
use sim::Time;
use workloads::Contents;

use crate::options::{Campaign, InjectedFault};
use crate::stage::Stage;

/// Interval of calls of `on_progress` while nothing else happens.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The progress of a run.
#[derive(Clone, Default)]
pub(crate) struct Progress {
    seed: u64,
    /// Returned transactions, and the contents after them.
    done: u64,
    contents: Contents,
    /// The contents before the last transaction, and when that returned.
    before: Contents,
    ended: Time,
    /// When the transaction before that returned.
    earlier: Time,
}

impl Progress {
    /// The begin of a run, with the initial contents of its workload.
    pub fn new(seed: u64, contents: Contents) -> Progress {
        Progress {
            seed,
            contents,
            ..Progress::default()
        }
    }

    /// The begin of the events that led to the present.
    pub fn begin(&self) -> Time {
        self.earlier
    }

    /// The number of the transaction that comes next.
    pub fn next(&self) -> u64 {
        self.done
    }

    /// The number of transactions that had returned before a cut, and the contents that may be
    /// found after it.
    pub fn candidates(&self, stage: &Stage, at: Time) -> Result<(u64, Vec<Contents>), String> {
        let (done, now, next) = match self.ended <= at {
            true => {
                let mut next = self.contents.clone();
                let applied = stage.workload.apply(&mut next, self.seed, self.done);
                applied.map_err(|e| e.to_string())?;
                (self.done, self.contents.clone(), next)
            }
            // The last transaction returned after the program had lost its power.
            false => (self.done - 1, self.before.clone(), self.contents.clone()),
        };
        Ok((done, vec![now, next]))
    }
}

type Shared<T> = Arc<Mutex<T>>;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the transactions; returns the number of those that spanned several devices. `on_progress`
/// is called after each, and stops the run by returning false.
pub(crate) fn forward(
    stage: &Stage,
    campaign: &Campaign,
    progress: &Shared<Progress>,
    on_progress: &mut dyn FnMut() -> bool,
) -> Result<u64, Error> {
    let mut thread = stage.pool.thread(&stage.cpu)?;
    {
        let mut progress = lock(progress);
        progress.ended = stage.cpu.now();
        progress.earlier = progress.ended;
    }
    for number in 0..campaign.transactions {
        let mut next = lock(progress).contents.clone();
        let committed = stage.workload.apply(&mut next, campaign.seed, number)?;
        // Without records a transaction can't be aborted.
        if committed || !campaign.fault.is_some_and(InjectedFault::prevents_aborts) {
            stage.workload.perform(&mut thread, campaign.seed, number)?;
        }
        {
            let mut progress = lock(progress);
            progress.earlier = progress.ended;
            progress.ended = stage.cpu.now();
            progress.before = std::mem::replace(&mut progress.contents, next);
            progress.done = number + 1;
        }
        stage.transaction_returned();
        if !on_progress() {
            break;
        }
    }
    Ok(thread.counts().spanning)
}
