// SPDX-License-Identifier: Apache-2.0

//! The copies of a run that end at cuts, and the thread that makes them.

use std::collections::VecDeque;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex};
use std::thread;

use host::CrashProbe;
use pm::Error;
use sim::fork::{Fork, ForkError, ForkSide, Reply};
use sim::Time;

use crate::cut::Cut;
use crate::options::Campaign;
use crate::progress::{forward, lock, Progress, POLL_INTERVAL};
use crate::recovery_check::{evict, finish_copy, CutOutcome};
use crate::stage::Stage;

/// Shared by the thread that makes copies and the one that waits for them.
#[derive(Clone, Copy, Default)]
struct CopyStatus {
    /// Copies that have answered.
    ended: u64,
    stopped: bool,
}

#[derive(Default)]
struct CopyRun {
    cuts: VecDeque<Cut>,
    pending: VecDeque<(Cut, Fork)>,
    ended: Vec<(Cut, CutOutcome)>,
    jobs: usize,
    status: Arc<Mutex<CopyStatus>>,
    /// In a copy: its reply, its cut, and the number of lines that have left its cache.
    copy: Option<(Reply, Cut, u64)>,
    failed: Option<ForkError>,
}

impl CopyRun {
    fn is_stopped(&self) -> bool {
        lock(&self.status).stopped
    }

    /// Collects the answer of the oldest copy, unless the campaign is stopped.
    fn collect_oldest(&mut self) {
        let Some((cut, fork)) = self.pending.pop_front() else {
            return;
        };
        while !fork.is_ready(POLL_INTERVAL) {
            if self.is_stopped() {
                return;
            }
        }
        let outcome = match fork.answer() {
            Ok(bytes) => {
                CutOutcome::from_bytes(&bytes).ok_or("a copy answers nonsense".to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        let outcome = outcome.unwrap_or_else(|text| CutOutcome {
            violation: Some(text),
            ..CutOutcome::default()
        });
        self.ended.push((cut, outcome));
        lock(&self.status).ended += 1;
    }

    /// Makes the copies that are due; returns when the next ones are due.
    fn next_cut(&mut self, machine: &mut host::Machine) -> Option<Time> {
        if self.copy.is_some() {
            return None;
        }
        let now = machine.system().now();
        while let Some(cut) = self.cuts.pop_front() {
            if cut.start() > now {
                let next = cut.start();
                self.cuts.push_front(cut);
                return Some(next);
            }
            while self.pending.len() >= self.jobs.max(1) {
                self.collect_oldest();
            }
            let split = {
                // A copy could need a lock that another thread holds at the fork. Other threads
                // hold this one then.
                let status = self.status.clone();
                let status = lock(&status);
                if status.stopped {
                    break;
                }
                Fork::split()
            };
            match split {
                Ok(ForkSide::Original(fork)) => self.pending.push_back((cut, fork)),
                Ok(ForkSide::Copy(reply)) => {
                    let later = cut.early.filter(|_| cut.at > now).map(|_| cut.at);
                    let evicted = match cut.early {
                        Some((_, pick)) => evict(machine, |n| pick.contains(n)),
                        None => 0,
                    };
                    // A copy does not own the other copies.
                    self.pending.drain(..).for_each(|(_, fork)| drop(fork));
                    self.copy = Some((reply, cut, evicted));
                    return later;
                }
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        Some(Time::MAX)
    }
}

/// Runs forward once, and ends a copy at each cut. `on_progress` receives the number of finished
/// copies every few milliseconds. It stops the run by returning false.
///
/// The run has a separate thread, since a single transaction may have thousands of cuts. A copy has
/// only that thread.
pub(crate) fn run_copies(
    stage: &Stage,
    campaign: &Campaign,
    first: &Progress,
    cuts: Vec<Cut>,
    on_progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Vec<(Cut, CutOutcome)>, crate::Error> {
    let shared = Arc::<Mutex<CopyStatus>>::default();
    let run = CopyRun {
        cuts: cuts.into(),
        jobs: campaign.jobs,
        status: shared.clone(),
        ..CopyRun::default()
    };
    thread::scope(|scope| {
        let making = scope.spawn(|| make_copies(stage, campaign, first, run));
        while !making.is_finished() {
            {
                let mut shared = lock(&shared);
                shared.stopped = shared.stopped || !on_progress(shared.ended);
            }
            thread::sleep(POLL_INTERVAL);
        }
        making.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

fn make_copies(
    stage: &Stage,
    campaign: &Campaign,
    first: &Progress,
    run: CopyRun,
) -> Result<Vec<(Cut, CutOutcome)>, crate::Error> {
    let progress = Arc::new(Mutex::new(first.clone()));
    let run = Arc::new(Mutex::new(run));
    let next = lock(&run).cuts.front().map(Cut::start);
    let own = run.clone();
    let probe: CrashProbe = Box::new(move |machine| lock(&own).next_cut(machine));
    let ran = catch_unwind(AssertUnwindSafe(|| {
        stage.with_concurrent_transaction(|| {
            stage.shared.with_machine(|machine| {
                machine.set_probe(Some(probe));
                machine.cut_at(next);
            });
            let continues = || {
                let run = lock(&run);
                run.copy.is_some() || run.failed.is_none() && !run.is_stopped()
            };
            forward(stage, campaign, &progress, &mut || continues())?;
            // Cuts after the last transaction.
            let rest = lock(&run).cuts.back().map(|cut| cut.at);
            match rest.filter(|_| continues()) {
                Some(rest) => Ok(stage.cpu.sleep_until(rest)?),
                None => Ok(()),
            }
        })
    }));
    let copy = lock(&run).copy.take();
    if let Some((reply, cut, evicted)) = copy {
        let failed = match ran {
            Ok(Ok(())) | Ok(Err(Error::Host(host::Error::PowerCut(_)))) => None,
            Ok(Err(error)) => Some(format!("a transaction failed before the cut: {error}")),
            Err(_) => Some("the program panicked before the cut".into()),
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| match failed {
            None => finish_copy(stage, &cut, &lock(&progress).clone(), evicted),
            violation => CutOutcome {
                violation,
                ..CutOutcome::default()
            },
        }));
        let outcome = outcome.unwrap_or_else(|_| CutOutcome {
            violation: Some("recovery panicked".into()),
            ..CutOutcome::default()
        });
        reply.send(&outcome.to_bytes());
    }
    stage.shared.with_machine(|machine| {
        machine.set_probe(None);
        machine.cut_at(None);
    });
    let mut run = lock(&run);
    match ran {
        Err(panic) => resume_unwind(panic),
        Ok(Err(error)) => return Err(error.into()),
        Ok(Ok(())) => {}
    }
    if let Some(error) = run.failed.take() {
        return Err(error.into());
    }
    while !run.pending.is_empty() && !run.is_stopped() {
        run.collect_oldest();
    }
    match run.is_stopped() {
        true => Err(crate::Error::Interrupted),
        false => Ok(std::mem::take(&mut run.ended)),
    }
}
