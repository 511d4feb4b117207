//! How far a run is: the transactions that have returned, and what they have left.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pm::Error;
use sim::Time;
use workloads::Contents;

use crate::options::{Campaign, InjectedFault};
use crate::stage::Stage;

/// How often somebody is asked whether to go on, while nothing else happens.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How far a run is.
#[derive(Clone, Default)]
pub(crate) struct Progress {
    seed: u64,
    /// Transactions that have returned, and what they have left.
    done: u64,
    contents: Contents,
    /// What the last of them found, and when it returned.
    before: Contents,
    ended: Time,
    /// When the one before that returned.
    earlier: Time,
}

impl Progress {
    /// A run whose workload has its initial contents.
    pub fn new(seed: u64, contents: Contents) -> Progress {
        Progress {
            seed,
            contents,
            ..Progress::default()
        }
    }

    /// Where what led to the present began.
    pub fn begin(&self) -> Time {
        self.earlier
    }

    /// The number of the transaction that comes next.
    pub fn next(&self) -> u64 {
        self.done
    }

    /// What may be there after a cut, and how many transactions had returned before it.
    pub fn candidates(&self, stage: &Stage, at: Time) -> Result<(u64, Vec<Contents>), String> {
        let (done, now, next) = match self.ended <= at {
            true => {
                let mut next = self.contents.clone();
                let applied = stage.workload.apply(&mut next, self.seed, self.done);
                applied.map_err(|e| e.to_string())?;
                (self.done, self.contents.clone(), next)
            }
            // It has returned to a program that was without power by then.
            false => (self.done - 1, self.before.clone(), self.contents.clone()),
        };
        Ok((done, vec![now, next]))
    }
}

type Shared<T> = Arc<Mutex<T>>;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The transactions of a run; how many of them several devices had a part in. `on_progress` hears of each end, and stops it by answering false.
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
        // Without snapshots nothing can be aborted.
        if committed || campaign.fault != Some(InjectedFault::Snapshots) {
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
