// SPDX-License-Identifier: Apache-2.0

//! One host for several libraries and programs.
//!
//! A [`SharedMachine`] is a handle to a [`Machine`]: all copies use the same CPUs, cache and
//! devices. Concurrent programs ([`SharedMachine::run`]) are threads, of which exactly one acts at
//! a time: the one with the earliest time, or the lowest number of several. Each CPU therefore has
//! a separate time, and results depend on the programs only.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use sim::Time;

use crate::cpu::Cpu;
use crate::machine::{Machine, Turn, WakeCondition};
use crate::{Error, Result};

/// A program, which receives its CPU.
pub type Program<'a, R> = Box<dyn FnOnce(&Cpu) -> R + Send + 'a>;

/// A program of a run.
struct Participant {
    /// The condition that it waits for; `None` once it has ended.
    wake: Option<WakeCondition>,
    /// The number of processed loads when none of its loads was among them
    /// ([`Machine::due_time_since`]).
    loads_collected: Option<u64>,
    /// An event that [`WakeCondition::Attention`] waits for has happened, and the program has not
    /// seen it.
    attention: bool,
    ended: bool,
    /// The thread to wake for its turn; `None` before it has started.
    thread: Option<Thread>,
}

struct SchedulerState {
    machine: Machine,
    participants: Vec<Participant>,
    /// The program that has the turn.
    current: Option<usize>,
    /// Why no program can continue.
    failed: Option<Error>,
    /// Distinguishes the threads of different runs.
    run: u64,
    /// How far a program may run ahead of the others while it hits the cache.
    slack: Time,
}

/// A host with several users. Copies refer to the same host.
#[derive(Clone)]
pub struct SharedMachine(Arc<Mutex<SchedulerState>>);

thread_local! {
    /// The run and number of the program that this thread executes.
    static PROGRAM: Cell<Option<(u64, usize)>> = const { Cell::new(None) };
}

impl SharedMachine {
    /// Shares a host.
    pub fn new(machine: Machine) -> SharedMachine {
        SharedMachine(Arc::new(Mutex::new(SchedulerState {
            machine,
            participants: Vec::new(),
            current: None,
            failed: None,
            run: 0,
            slack: Time::ZERO,
        })))
    }

    /// The host, if this is the last handle.
    pub fn into_machine(self) -> Option<Machine> {
        let state = Arc::into_inner(self.0)?.into_inner();
        Some(state.unwrap_or_else(PoisonError::into_inner).machine)
    }

    /// A CPU, from 0 on.
    pub fn cpu(&self, number: usize) -> Cpu {
        Cpu::new(self.clone(), number)
    }

    /// Gives access to the host, also to state that no program can change.
    pub fn with_machine<R>(&self, look: impl FnOnce(&mut Machine) -> R) -> R {
        look(&mut self.lock().machine)
    }

    /// Lets a program run ahead of others by up to `slack` while it hits the cache; the default is
    /// 0. Slack reduces switches between programs, which dominate the cost of several programs in
    /// step. Programs may then see each other's stores that much too early or too late. Results
    /// still depend on the programs only.
    pub fn set_slack(&self, slack: Time) {
        self.lock().slack = slack;
    }

    /// The right to act, at once for a program or while none runs. Its holder must use nothing else
    /// of this host.
    pub fn turn(&self) -> Result<TurnGuard<'_>> {
        let guard = self.lock();
        let me = guard.me();
        if me.is_none() && !guard.participants.is_empty() {
            return Err(Error::Busy);
        }
        if let Some(error) = &guard.failed {
            return Err(error.clone());
        }
        Ok(TurnGuard {
            shared: self,
            state: Some(guard),
            me,
        })
    }

    /// Runs programs concurrently, each on the given CPU, and returns their results. They start at
    /// the present time of their CPUs. Other callers get [`Error::Busy`] until all have ended.
    ///
    /// # Panics
    ///
    /// If a program panics.
    pub fn run<R: Send>(&self, programs: Vec<(usize, Program<'_, R>)>) -> Result<Vec<R>> {
        let count = programs.len();
        let run = {
            let mut state = self.lock();
            if !state.participants.is_empty() {
                return Err(Error::Busy);
            }
            let SchedulerState { machine, .. } = &*state;
            let times: Vec<Time> = programs.iter().map(|p| machine.time(p.0)).collect();
            state.participants = times
                .into_iter()
                .map(|time| Participant {
                    wake: Some(WakeCondition::At(time)),
                    loads_collected: None,
                    attention: false,
                    ended: false,
                    thread: None,
                })
                .collect();
            state.failed = None;
            state.run += 1;
            state.current = None;
            state.call_next();
            state.run
        };
        let outcomes = std::thread::scope(|scope| {
            let threads: Vec<_> = programs
                .into_iter()
                .enumerate()
                .map(|(number, (cpu, program))| {
                    let shared = self.clone();
                    scope.spawn(move || {
                        PROGRAM.set(Some((run, number)));
                        let _end = EndOnDrop(&shared, number);
                        shared.begin(number);
                        program(&shared.cpu(cpu))
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join()).collect::<Vec<_>>()
        });
        {
            let mut state = self.lock();
            state.participants.clear();
            state.current = None;
            state.failed = None;
        }
        let mut out = Vec::with_capacity(count);
        for outcome in outcomes {
            match outcome {
                Ok(value) => out.push(value),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(out)
    }

    fn lock(&self) -> MutexGuard<'_, SchedulerState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the first turn of a program, in its thread.
    fn begin(&self, number: usize) {
        let mut guard = self.lock();
        guard.participants[number].thread = Some(std::thread::current());
        if !guard.is_called(number) {
            drop(guard);
            drop(self.await_call(number));
        }
    }

    /// Waits until it is a program's turn, or no program can continue. Called in the program's
    /// thread, which was not called yet.
    fn await_call(&self, number: usize) -> MutexGuard<'_, SchedulerState> {
        loop {
            std::thread::park();
            let guard = self.lock();
            if guard.is_called(number) {
                return guard;
            }
        }
    }
}

/// Ends a program when dropped, also after a panic.
struct EndOnDrop<'a>(&'a SharedMachine, usize);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        PROGRAM.set(None);
        let mut state = self.0.lock();
        if let Some(participant) = state.participants.get_mut(self.1) {
            participant.ended = true;
            participant.wake = None;
        }
        let next = state.call_next();
        drop(state);
        unpark(next);
    }
}

/// Wakes the thread that has the turn. It needs the host at once, so the caller must have released
/// the lock.
fn unpark(next: Option<Thread>) {
    if let Some(thread) = next {
        thread.unpark();
    }
}

impl SchedulerState {
    /// The program that the calling thread executes.
    fn me(&self) -> Option<usize> {
        let (run, number) = PROGRAM.get()?;
        (run == self.run && number < self.participants.len()).then_some(number)
    }

    /// Whether it is a program's turn, or no program can continue.
    fn is_called(&self, number: usize) -> bool {
        self.current == Some(number) || self.failed.is_some()
    }

    /// Gives the turn to the program with the earliest time, and lets the system run up to that
    /// time. Returns the thread to wake.
    fn call_next(&mut self) -> Option<Thread> {
        self.current = None;
        match self.choose_next() {
            Ok(Some(next)) => {
                self.current = Some(next);
                self.participants[next].wake = None;
                self.participants[next].thread.clone()
            }
            Ok(None) => None,
            Err(error) => {
                self.failed = Some(error);
                let threads = self.participants.iter().filter_map(|p| p.thread.as_ref());
                threads.for_each(Thread::unpark);
                None
            }
        }
    }

    fn choose_next(&mut self) -> Result<Option<usize>> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.participants.iter().all(|p| p.ended) {
            return Ok(None);
        }
        loop {
            self.machine.check_power()?;
            let stores = self.machine.post_due_stores()?;
            if self.machine.system.memory().attention() {
                self.machine.system.memory_mut().clear_attention();
                self.participants
                    .iter_mut()
                    .for_each(|p| p.attention = true);
            }
            let now = self.machine.system.now();
            let mut next: Option<(Time, Time, usize)> = None;
            for (number, participant) in self.participants.iter_mut().enumerate() {
                let due = match &participant.wake {
                    Some(WakeCondition::Attention(_)) if participant.attention => Some(now),
                    Some(wake) => self
                        .machine
                        .due_time_since(wake, participant.loads_collected),
                    None => None,
                };
                if due.is_none() {
                    participant.loads_collected = Some(self.machine.loads_collected);
                }
                // A condition that was due earlier is due now.
                let due = due.map(|due| due.max(now));
                // Room is given to whoever has waited longest, or others could take it for ever.
                let order = match &participant.wake {
                    Some(WakeCondition::Room(_, limit)) => *limit,
                    _ => Time::MAX,
                };
                let due = due.map(|due| (due, order, number));
                if due.is_some_and(|due| next.is_none_or(|next| due < next)) {
                    next = due;
                }
            }
            if let Some((_, _, number)) = next.filter(|n| n.0 <= now) {
                let participant = &mut self.participants[number];
                if matches!(participant.wake, Some(WakeCondition::Attention(_))) {
                    participant.attention = false;
                }
                return Ok(Some(number));
            }
            let limit = next.map_or(Time::MAX, |n| n.0).min(stores);
            let limit = self.machine.cut.map_or(limit, |cut| cut.min(limit));
            let happened = self.machine.system.wait_event(limit, true)?;
            if !happened && limit == Time::MAX {
                return Err(Error::Stuck);
            }
        }
    }
}

/// The right to act on a shared host.
pub struct TurnGuard<'a> {
    shared: &'a SharedMachine,
    /// `None` only within [`Turn::wait_for`].
    state: Option<MutexGuard<'a, SchedulerState>>,
    /// The program that holds it.
    me: Option<usize>,
}

impl TurnGuard<'_> {
    fn state(&mut self) -> &mut SchedulerState {
        self.state.as_mut().expect("a turn has its host")
    }
}

impl Turn for TurnGuard<'_> {
    fn machine(&mut self) -> &mut Machine {
        &mut self.state().machine
    }

    fn wait_for(&mut self, wake: WakeCondition) -> Result<()> {
        let Some(me) = self.me else {
            return self.machine().wait_for(wake);
        };
        let state = self.state();
        // No other program is earlier, and there is nothing to wait for.
        if let WakeCondition::At(time) = wake {
            if time <= state.machine.system.now() {
                return state.machine.check_power();
            }
        }
        state.participants[me].wake = Some(wake);
        state.participants[me].loads_collected = None;
        let next = state.call_next();
        if !state.is_called(me) {
            self.state = None;
            unpark(next);
            self.state = Some(self.shared.await_call(me));
        }
        match &self.state().failed {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    fn may_run_ahead(&mut self, time: Time) -> bool {
        let me = self.me;
        let SchedulerState {
            machine,
            participants,
            slack,
            ..
        } = self.state();
        if *slack == Time::ZERO {
            return false;
        }
        // A program without a known time may have to continue at any time.
        let now = machine.system.now();
        let others = participants.iter().enumerate().filter(|p| Some(p.0) != me);
        let waits = others.filter_map(|p| p.1.wake.as_ref());
        let limits = waits.map(|wake| machine.due_time(wake).unwrap_or(now).max(now));
        let limit = limits.min().unwrap_or(Time::MAX);
        time.0 <= limit.0.saturating_add(slack.0)
    }

    fn is_alone(&self) -> bool {
        let state = self.state.as_ref();
        state.is_none_or(|s| s.participants.iter().filter(|p| !p.ended).count() <= 1)
    }
}
