//! The copies of a run that end at cuts, and the thread that makes them.

use std::collections::VecDeque;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex};
use std::thread;

use host::CrashProbe;
use pm::Error;
use sim::fork::{Fork, ForkSide, Reply};
use sim::Time;

use crate::campaign::{forward, lock, Campaign, Progress, LOOK};
use crate::cut::Cut;
use crate::end::{end, evict, Outcome};
use crate::stage::Stage;

/// What the thread that makes copies tells the one that has asked for them, and hears of it.
#[derive(Clone, Copy, Default)]
struct Told {
    /// Copies that have answered.
    ended: u64,
    stopped: bool,
}

#[derive(Default)]
struct Run {
    cuts: VecDeque<Cut>,
    pending: VecDeque<(Cut, Fork)>,
    ended: Vec<(Cut, Outcome)>,
    jobs: usize,
    told: Arc<Mutex<Told>>,
    /// This is a copy: what it owes, how it is to end, and lines that have left its cache.
    copy: Option<(Reply, Cut, u64)>,
    failed: Option<String>,
}

impl Run {
    fn is_stopped(&self) -> bool {
        lock(&self.told).stopped
    }

    /// Takes the answer of the oldest copy, if nobody stops that.
    fn take(&mut self) {
        let Some((cut, fork)) = self.pending.pop_front() else {
            return;
        };
        while !fork.is_ready(LOOK) {
            if self.is_stopped() {
                return;
            }
        }
        let outcome = match fork.answer() {
            Ok(bytes) => Outcome::from_bytes(&bytes).ok_or("a copy answers nonsense".to_string()),
            Err(error) => Err(error.to_string()),
        };
        let outcome = outcome.unwrap_or_else(|text| Outcome {
            violation: Some(text),
            ..Outcome::default()
        });
        self.ended.push((cut, outcome));
        lock(&self.told).ended += 1;
    }

    /// When the next copies are to be made, after those that are made now.
    fn go_on(&mut self, machine: &mut host::Machine) -> Option<Time> {
        if self.copy.is_some() {
            return None;
        }
        let now = machine.system().now();
        while let Some(cut) = self.cuts.pop_front() {
            if cut.first() > now {
                let next = cut.first();
                self.cuts.push_front(cut);
                return Some(next);
            }
            while self.pending.len() >= self.jobs.max(1) {
                self.take();
            }
            let split = {
                // Whoever else holds a lock that a copy could want has this one, too.
                let told = self.told.clone();
                let told = lock(&told);
                if told.stopped {
                    break;
                }
                Fork::split()
            };
            match split {
                Ok(ForkSide::Original(fork)) => self.pending.push_back((cut, fork)),
                Ok(ForkSide::Copy(reply)) => {
                    let later = cut.early.filter(|_| cut.at > now).map(|_| cut.at);
                    let evicted = match cut.early {
                        Some((_, pick)) => evict(machine, |n| pick.has(n)),
                        None => 0,
                    };
                    // Those of others are none of this one's business.
                    self.pending.drain(..).for_each(|(_, fork)| drop(fork));
                    self.copy = Some((reply, cut, evicted));
                    return later;
                }
                Err(error) => {
                    self.failed = Some(error.to_string());
                    break;
                }
            }
        }
        Some(Time::MAX)
    }
}

/// Runs forward once, and has a copy end at each cut. `told` hears every few milliseconds how many have, and stops it by answering false.
///
/// The run has a thread of its own, as a single transaction may have thousands of cuts. Copies are copies of that thread alone.
pub(crate) fn ends(
    stage: &Stage,
    campaign: &Campaign,
    first: &Progress,
    cuts: Vec<Cut>,
    told: &mut dyn FnMut(u64) -> bool,
) -> Result<Vec<(Cut, Outcome)>, String> {
    let shared = Arc::<Mutex<Told>>::default();
    let run = Run {
        cuts: cuts.into(),
        jobs: campaign.jobs,
        told: shared.clone(),
        ..Run::default()
    };
    thread::scope(|scope| {
        let making = scope.spawn(|| make(stage, campaign, first, run));
        while !making.is_finished() {
            {
                let mut shared = lock(&shared);
                shared.stopped = shared.stopped || !told(shared.ended);
            }
            thread::sleep(LOOK);
        }
        making.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

fn make(
    stage: &Stage,
    campaign: &Campaign,
    first: &Progress,
    run: Run,
) -> Result<Vec<(Cut, Outcome)>, String> {
    let progress = Arc::new(Mutex::new(first.clone()));
    let run = Arc::new(Mutex::new(run));
    let next = lock(&run).cuts.front().map(Cut::first);
    let own = run.clone();
    let probe: CrashProbe = Box::new(move |machine| lock(&own).go_on(machine));
    let ran = catch_unwind(AssertUnwindSafe(|| {
        stage.beside_another(|| {
            stage.shared.with_machine(|machine| {
                machine.set_probe(Some(probe));
                machine.cut_at(next);
            });
            let goes_on = || {
                let run = lock(&run);
                run.copy.is_some() || run.failed.is_none() && !run.is_stopped()
            };
            forward(stage, campaign, &progress, &mut || goes_on())?;
            // Cuts behind the last transaction.
            let rest = lock(&run).cuts.back().map(|cut| cut.at);
            match rest.filter(|_| goes_on()) {
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
            None => end(stage, &cut, &lock(&progress).clone(), evicted),
            violation => Outcome {
                violation,
                ..Outcome::default()
            },
        }));
        let outcome = outcome.unwrap_or_else(|_| Outcome {
            violation: Some("recovery panicked".into()),
            ..Outcome::default()
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
        Ok(Err(error)) => return Err(error.to_string()),
        Ok(Ok(())) => {}
    }
    if let Some(error) = run.failed.take() {
        return Err(error);
    }
    while !run.pending.is_empty() && !run.is_stopped() {
        run.take();
    }
    match run.is_stopped() {
        true => Err("interrupted".into()),
        false => Ok(std::mem::take(&mut run.ended)),
    }
}
