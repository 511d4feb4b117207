// SPDX-License-Identifier: Apache-2.0

//! The progress of a run: returned transactions, which of them are durable, and their contents.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pm::{Error, Thread, Ticket};
use sim::Time;
use workloads::Contents;

use crate::options::{Campaign, InjectedFault};
use crate::stage::Stage;

/// Interval of calls of `on_progress` while nothing else happens.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A transaction that has returned.
#[derive(Clone)]
struct Returned {
    at: Time,
    ticket: Ticket,
    /// When it was known to be durable.
    durable: Option<Time>,
    contents: Contents,
}

/// The progress of a run.
#[derive(Clone, Default)]
pub(crate) struct Progress {
    seed: u64,
    /// Returned transactions.
    done: u64,
    /// The last ones of these: all that a cut may leave. The one before the first transaction
    /// stands for the initial contents.
    last: VecDeque<Returned>,
}

/// What may be found after a cut.
pub(crate) struct Candidates {
    /// Transactions of the first contents: all that had to be durable.
    pub durable: u64,
    /// Transactions that had returned.
    pub returned: u64,
    /// The contents after `durable` transactions, after one more, and so on.
    pub contents: Vec<Contents>,
}

impl Progress {
    /// The begin of a run, with the initial contents of its workload.
    pub fn new(seed: u64, contents: Contents) -> Progress {
        let initial = Returned {
            at: Time::ZERO,
            ticket: Ticket::from_number(0),
            durable: Some(Time::ZERO),
            contents,
        };
        Progress {
            seed,
            done: 0,
            last: [initial].into(),
        }
    }

    /// The begin of the events that led to the present.
    pub fn begin(&self) -> Time {
        self.last.front().map_or(Time::ZERO, |first| first.at)
    }

    /// The contents after the last transaction.
    fn contents(&self) -> Contents {
        self.last
            .back()
            .map_or_else(Contents::new, |last| last.contents.clone())
    }

    /// Adds a transaction that has returned.
    fn add(&mut self, contents: Contents, at: Time, ticket: Ticket) {
        self.done += 1;
        self.last.push_back(Returned {
            at,
            ticket,
            durable: None,
            contents,
        });
    }

    /// Notes which transactions are known to be durable. A cut may be a little earlier than the
    /// present, so the last state that was durable before stays.
    fn note_durable(&mut self, ticket: Ticket, now: Time) {
        let known = self.last.iter().rposition(|one| one.durable.is_some());
        let mut any = false;
        for one in self.last.iter_mut().filter(|one| one.ticket <= ticket) {
            any |= one.durable.is_none();
            one.durable.get_or_insert(now);
        }
        if any {
            self.last.drain(..known.unwrap_or(0));
        }
    }

    /// The number of the transaction that comes next.
    pub fn next(&self) -> u64 {
        self.done
    }

    /// What may be found after a cut: the transactions that were durable then, or any later prefix
    /// with at most one that had not returned.
    pub fn candidates(&self, stage: &Stage, at: Time) -> Result<Candidates, String> {
        let first = self.done + 1 - self.last.len() as u64;
        let durable = |one: &Returned| one.durable.is_some_and(|durable| durable <= at);
        let durable = self.last.iter().rposition(durable).unwrap_or(0);
        let returned = self.last.iter().rposition(|one| one.at <= at).unwrap_or(0);
        let some = self.last.iter().skip(durable).take(returned + 2 - durable);
        let mut contents: Vec<Contents> = some.map(|one| one.contents.clone()).collect();
        if returned + 1 == self.last.len() {
            let mut next = self.contents();
            let applied = stage.workload.apply(&mut next, self.seed, self.done);
            applied.map_err(|e| e.to_string())?;
            contents.push(next);
        }
        Ok(Candidates {
            durable: first + durable as u64,
            returned: first + returned as u64,
            contents,
        })
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
        let begin = stage.cpu.now();
        for one in &mut progress.last {
            (one.at, one.ticket) = (begin, thread.last_ticket());
            one.durable = Some(begin);
        }
    }
    for number in 0..campaign.transactions {
        let mut next = lock(progress).contents();
        let committed = stage.workload.apply(&mut next, campaign.seed, number)?;
        // Without records a transaction can't be aborted.
        if committed || !campaign.fault.is_some_and(InjectedFault::prevents_aborts) {
            perform(stage, campaign, &mut thread, number)?;
        }
        let many = |later: u64| thread.last_ticket().number() - thread.durable().number() >= later;
        let waits = campaign.words && campaign.later.is_some_and(many);
        if number + 1 == campaign.transactions || waits {
            thread.sync()?;
        }
        thread.poll()?;
        let now = stage.cpu.now();
        {
            let mut progress = lock(progress);
            progress.add(next, now, thread.last_ticket());
            progress.note_durable(thread.durable(), now);
        }
        if thread.is_durable(thread.last_ticket()) {
            stage.transactions_durable();
        }
        if !on_progress() {
            break;
        }
    }
    Ok(thread.counts().spanning)
}

fn perform(
    stage: &Stage,
    campaign: &Campaign,
    thread: &mut Thread,
    number: u64,
) -> Result<(), Error> {
    let (workload, seed) = (&stage.workload, campaign.seed);
    match campaign.later {
        Some(_) => workload.perform_later(thread, seed, number).map(drop),
        None => workload.perform(thread, seed, number).map(drop),
    }
}
