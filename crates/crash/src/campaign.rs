// SPDX-License-Identifier: Apache-2.0

//! Campaigns: one run, and copies of it that end in power cuts.

use std::sync::{Arc, Mutex};

use device::Factory;
use host::CrashProbe;
use sim::fork::Fork;
use sim::{Random, Time};
use workloads::{Scale, Workload};

use crate::copies::run_copies;
use crate::cut::{Cut, CutPlan, HoldUp, LineSelection};
use crate::error::Error;
use crate::options::{Campaign, Executor};
use crate::progress::{forward, lock, Progress, POLL_INTERVAL};
use crate::report::{Report, Violation};
use crate::stage::Stage;

/// Most dirty lines of which [`CutPlan::All`] tries all subsets.
const MAX_DIRTY_LINES: usize = 6;
/// Rounds of simplification of the first violation.
const SIMPLIFICATION_ROUNDS: usize = 8;

/// The times of a run: its begin and end, its events, and the returns of its transactions.
struct RunMeasurement {
    begin: Time,
    end: Time,
    times: Vec<Time>,
    returns: Vec<Time>,
    spanning: u64,
    /// When the CPU had submitted each command to an engine.
    commands: Vec<Time>,
}

impl RunMeasurement {
    /// Generates a cut time: any, just after an event, or within a link's latency of a
    /// transaction's return. With several devices also one while commits are on their way to them.
    fn generate_time(&self, random: &mut Random, devices: usize) -> Time {
        let span = self.end.0.saturating_sub(self.begin.0);
        let any = self.begin.0 + 1 + random.below(span);
        let one = |times: &[Time], random: &mut Random| {
            let n = random.below(times.len() as u64) as usize;
            times.get(n).map_or(any, |time| time.0)
        };
        let at = match random.below(4) {
            0 => one(&self.times, random) + random.below(10_000),
            1 => one(&self.returns, random) + random.below(300_000),
            2 | 3 if devices > 1 => {
                let before = 200_000 + random.below(400_000);
                one(&self.returns, random).saturating_sub(before)
            }
            _ => any,
        };
        Time(at.clamp(self.begin.0 + 1, self.end.0))
    }
}

fn to_words(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks_exact(8).map(|w| w.try_into());
    words.map(|w| w.map_or(0, u64::from_le_bytes)).collect()
}

fn to_bytes(words: impl IntoIterator<Item = u64>) -> Vec<u8> {
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// Runs an action in a fork, and returns only its result.
fn run_in_fork(
    stage: &Stage,
    on_progress: &mut dyn FnMut() -> bool,
    work: impl FnOnce() -> pm::Result<Vec<u64>>,
) -> Result<Vec<u64>, Error> {
    let fork = Fork::start(|| {
        let mut out = Vec::new();
        let ran = stage.with_concurrent_transaction(|| {
            out = work()?;
            Ok(())
        });
        match ran {
            Ok(()) => to_bytes([0].into_iter().chain(out)),
            Err(error) => {
                let led = stage
                    .invariant_violation()
                    .map(|b| format!("; before that: {}", b.text));
                let text = format!("{error}{}", led.unwrap_or_default());
                to_bytes([1]).into_iter().chain(text.into_bytes()).collect()
            }
        }
    });
    let fork = fork?;
    while !fork.is_ready(POLL_INTERVAL) {
        if !on_progress() {
            return Err(Error::Interrupted);
        }
    }
    let answer = fork.answer()?;
    match to_words(answer.get(..8).unwrap_or(&[])).first() {
        Some(0) => Ok(to_words(&answer[8..])),
        _ => {
            let text = String::from_utf8_lossy(answer.get(8..).unwrap_or(&[]));
            Err(Error::Run(text.into_owned()))
        }
    }
}

fn measure(
    stage: &Stage,
    campaign: &Campaign,
    first: &Progress,
    on_progress: &mut dyn FnMut() -> bool,
) -> Result<RunMeasurement, Error> {
    let times = run_in_fork(stage, on_progress, || {
        let begin = stage.cpu.now();
        stage.journal.record_times();
        lock(&stage.commands).clear();
        let progress = Arc::new(Mutex::new(first.clone()));
        let mut returns = Vec::new();
        let spanning = forward(stage, campaign, &progress, &mut || {
            returns.push(stage.cpu.now());
            true
        })?;
        let times = stage.journal.take_times();
        returns.insert(0, begin);
        let commands = std::mem::take(&mut *lock(&stage.commands));
        let counts = [spanning, commands.len() as u64];
        let all = commands.into_iter().chain(returns).chain(times);
        Ok(counts.into_iter().chain(all.map(|t| t.0)).collect())
    })?;
    let mut times = times.into_iter();
    let spanning = times.next().unwrap_or(0);
    let count = times.next().unwrap_or(0);
    let commands = times.by_ref().take(count as usize).map(Time).collect();
    let mut returns: Vec<Time> = times.map(Time).collect();
    let mut times = returns.split_off((campaign.transactions as usize + 1).min(returns.len()));
    let begin = returns.remove(0);
    let end = returns.last().copied().unwrap_or(begin);
    // A CPU is ahead of the host where it hits its cache.
    times.sort_unstable();
    times.dedup();
    times.retain(|at| *at > begin && *at <= end);
    Ok(RunMeasurement {
        begin,
        end,
        times,
        returns,
        spanning,
        commands,
    })
}

/// The number of dirty cache lines at each of these times.
fn count_dirty_lines(
    stage: &Stage,
    campaign: &Campaign,
    first: &Progress,
    times: &[Time],
    on_progress: &mut dyn FnMut() -> bool,
) -> Result<Vec<u64>, Error> {
    run_in_fork(stage, on_progress, || {
        let found = Arc::new(Mutex::new((0, Vec::new())));
        let (own, all) = (found.clone(), times.to_vec());
        let probe: CrashProbe = Box::new(move |machine| {
            let mut found = lock(&own);
            found.1.push(machine.evict(|_| false) as u64);
            found.0 += 1;
            Some(all.get(found.0).copied().unwrap_or(Time::MAX))
        });
        stage.shared.with_machine(|machine| {
            machine.set_probe(Some(probe));
            machine.cut_at(times.first().copied());
        });
        let progress = Arc::new(Mutex::new(first.clone()));
        forward(stage, campaign, &progress, &mut || true)?;
        let found = lock(&found);
        Ok(found.1.clone())
    })
}

/// The devices fail with the host: before and after they have accepted what was sent.
fn with_host() -> Vec<Vec<HoldUp>> {
    vec![vec![HoldUp::For(Time::ZERO)], vec![HoldUp::UntilDrained]]
}

/// Each of several devices fails alone.
fn one_device_each(devices: usize) -> Vec<Vec<HoldUp>> {
    let one_lost = |lost: usize| {
        let mut later = vec![HoldUp::Indefinite; devices];
        later[lost] = HoldUp::For(Time::ZERO);
        later
    };
    (0..devices).map(one_lost).collect()
}

/// A cut at this time with each of the hold-up times.
fn cuts_at(at: Time, laters: &[Vec<HoldUp>]) -> impl Iterator<Item = Cut> + '_ {
    laters.iter().map(move |later| Cut {
        later: later.clone(),
        ..Cut::at(at)
    })
}

/// Plans the cuts of a campaign.
fn plan(
    stage: &Stage,
    campaign: &Campaign,
    first: &Progress,
    measured: &RunMeasurement,
    period: Time,
    on_progress: &mut dyn FnMut() -> bool,
) -> Result<Vec<Cut>, Error> {
    let RunMeasurement {
        begin, end, times, ..
    } = measured;
    let offloaded = campaign.executor == Executor::Device;
    let mut cuts = match &campaign.cuts {
        CutPlan::At(cuts) => cuts.clone(),
        CutPlan::Sampled(count) => {
            let mut random = Random::new(campaign.seed);
            let mut generate = |_| {
                let at = measured.generate_time(&mut random, campaign.devices);
                let mut cut = Cut::generate(at, &mut random, offloaded, campaign.devices);
                // Lines can only leave the cache early while the run goes on.
                if cut.start() < *begin {
                    cut.early = None;
                }
                cut
            };
            (0..*count).map(&mut generate).collect()
        }
        CutPlan::All => {
            let edges = (begin.0 / period.0 + 1..=end.0 / period.0).map(|n| Time(n * period.0));
            // All devices, before and after they have accepted what was sent; and each of several
            // alone.
            let mut laters = with_host();
            if campaign.devices > 1 {
                laters.extend(one_device_each(campaign.devices));
            }
            let mut cuts: Vec<Cut> = edges.flat_map(|at| cuts_at(at, &laters)).collect();
            let counts = count_dirty_lines(stage, campaign, first, times, on_progress)?;
            for (at, lines) in times.iter().zip(counts) {
                let lines = (lines as usize).min(MAX_DIRTY_LINES);
                cuts.extend((1..1u64 << lines).map(|mask| Cut {
                    evict: Some(LineSelection::Mask(mask)),
                    later: vec![HoldUp::UntilDrained],
                    ..Cut::at(*at)
                }));
            }
            cuts
        }
        CutPlan::Commands => {
            let laters = match campaign.devices {
                1 => with_host(),
                devices => one_device_each(devices),
            };
            let after = |at: &Time| Time((at.0 + 1).min(end.0));
            let moments = measured.commands.iter().map(after);
            moments.flat_map(|at| cuts_at(at, &laters)).collect()
        }
    };
    // A report without violations has to mean that cuts were made.
    if cuts.is_empty() {
        let what = match campaign.cuts {
            CutPlan::Commands => "gives no command to an engine",
            _ => "ends before the first of these cuts",
        };
        return Err(Error::NoCuts(what));
    }
    if let Some(cut) = cuts
        .iter()
        .find(|cut| cut.start() < *begin || cut.at > *end)
    {
        return Err(Error::CutOutside {
            cut: Box::new(cut.clone()),
            begin: begin.0,
            end: end.0,
        });
    }
    cuts.sort_by_key(Cut::start);
    Ok(cuts)
}

/// Runs a campaign on a factory's devices. `on_progress` receives the number of finished cuts and
/// of all cuts. It stops the campaign by returning false.
pub fn run(
    factory: &Factory,
    campaign: &Campaign,
    on_progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Report, Error> {
    campaign.validate()?;
    let stage = || {
        let scale = match campaign.devices {
            1 => Scale::SMALL,
            _ => Scale::WIDE,
        };
        let workload = Workload::new(&campaign.workload, scale);
        Stage::new(factory, workload?, campaign)
    };
    let own = stage()?;
    let contents = own.workload.initial_contents(campaign.seed)?;
    let first = Progress::new(campaign.seed, contents);
    let period = Time(1_000_000 / u64::from(factory.design().clock_mhz.max(1)));
    let mut interrupted = false;
    let measured = measure(&own, campaign, &first, &mut || {
        interrupted |= !on_progress(0, 1);
        !interrupted
    });
    let measured = match measured {
        // A negative control that is found before any cut.
        Err(error) if campaign.fault.is_some() && !interrupted => {
            return Ok(Report {
                transactions: campaign.transactions,
                stopped: Some(error.to_string()),
                ..Report::default()
            });
        }
        measured => measured?,
    };
    let cuts = plan(&own, campaign, &first, &measured, period, &mut || {
        on_progress(0, 1)
    })?;
    let all = cuts.len() as u64;
    if !on_progress(0, all) {
        return Err(Error::Interrupted);
    }
    let before = own.events();
    let mut ended = run_copies(&own, campaign, &first, cuts, &mut |done| {
        on_progress(done, all)
    })?;
    let broken = own
        .invariant_violation()
        .filter(|_| !own.is_negative_control);
    let events = own.events() - before;
    drop(own);
    ended.sort_by_key(|(cut, _)| cut.at);
    let mut report = Report {
        cuts: all,
        transactions: campaign.transactions,
        spanning: measured.spanning,
        events,
        simulated_ns: measured.end.saturating_sub(measured.begin).0 / 1000,
        ..Report::default()
    };
    for (cut, outcome) in ended {
        report.more += u64::from(outcome.more);
        report.recoveries_cut += outcome.recoveries_cut;
        report.evicted += outcome.evicted;
        if let Some(broken) = outcome.broken {
            report.broken += 1;
            report.invariant.get_or_insert(broken);
        }
        if let Some(text) = outcome.violation {
            report.violated += 1;
            report.violation.get_or_insert(Violation {
                cut,
                text,
                timeline: outcome.timeline,
            });
        }
    }
    if let (Some(broken), 0) = (broken, report.violated) {
        // The violation follows the last cut.
        return Err(Error::Invariant {
            text: broken.text,
            timeline: broken.timeline.join("\n"),
        });
    }
    if let Some(mut violation) = report.violation.take() {
        for _ in 0..SIMPLIFICATION_ROUNDS {
            let mut cuts = violation.cut.simplifications();
            cuts.sort_by_key(Cut::start);
            let found = run_copies(&stage()?, campaign, &first, cuts, &mut |_| {
                on_progress(all, all)
            })?;
            let simpler = found
                .into_iter()
                .find_map(|(cut, outcome)| Some((cut, outcome.violation?, outcome.timeline)));
            let Some((cut, text, timeline)) = simpler else {
                break;
            };
            violation = Violation {
                cut,
                text,
                timeline,
            };
        }
        report.violation = Some(violation);
    }
    Ok(report)
}
