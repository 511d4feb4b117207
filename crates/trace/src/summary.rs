// SPDX-License-Identifier: Apache-2.0

//! Durations of commands, in memory that does not grow with their number.

use std::collections::{BTreeMap, VecDeque};

use hdrhistogram::Histogram;
use sim::{Time, TraceEvent, TraceSink};
use spec::nvme::admin;

use crate::collect::Collector;
use crate::command::{Command, TracePoint};

/// A Get Features command with this in the upper half of its dword 11 begins a phase: "NS". The
/// dword has no meaning for the device.
const MARK: u32 = 0x4E53;
/// Later marks are ignored.
const MAX_PHASES: usize = 256;
/// Times with a command in flight are joined over as many of them.
const MAX_SPANS: usize = 1024;
/// Digits of percentiles.
const DIGITS: u8 = 3;

/// Durations of the commands of a kind.
pub struct CommandTimes {
    whole: Histogram<u64>,
    whole_ps: u128,
    device_ps: u128,
}

impl CommandTimes {
    fn new() -> CommandTimes {
        CommandTimes {
            whole: histogram(),
            whole_ps: 0,
            device_ps: 0,
        }
    }

    fn record(&mut self, whole: Time, device: Time) {
        record(&mut self.whole, whole.0);
        self.whole_ps += u128::from(whole.0);
        self.device_ps += u128::from(device.0);
    }

    /// The number of commands.
    pub fn count(&self) -> u64 {
        self.whole.len()
    }

    /// Mean duration in ps, from the store to the doorbell to the interrupt, or to the entry in
    /// host memory if there is no interrupt.
    pub fn mean_ps(&self) -> f64 {
        self.whole_ps as f64 / self.count() as f64
    }

    /// Mean duration in ps from the doorbell's arrival at the device until the entry is sent.
    pub fn device_mean_ps(&self) -> f64 {
        self.device_ps as f64 / self.count() as f64
    }

    /// The duration in ps that this share of the commands, in percent, does not exceed; to three
    /// digits.
    pub fn percentile_ps(&self, percent: f64) -> u64 {
        self.whole.value_at_percentile(percent)
    }

    /// The longest duration in ps, to three digits.
    pub fn max_ps(&self) -> u64 {
        self.whole.max()
    }
}

/// A part of a run: from a mark, or the begin, to the next mark, or the end.
pub struct Phase {
    /// The number of the mark; 0 until the first.
    pub mark: u16,
    /// Its first event, after the mark.
    pub begin: Time,
    /// Its last event.
    pub end: Time,
    /// Time with a command in flight.
    pub in_flight: Time,
    /// Times without a command in flight, between two commands.
    pub between: Histogram<u64>,
    /// Durations by the name of the command, of those that were completed.
    pub commands: BTreeMap<&'static str, CommandTimes>,
    /// Disjoint times with a command in flight, in order, that a later command may still join.
    spans: VecDeque<(Time, Time)>,
    /// The end of the last span that has been counted.
    counted: Option<Time>,
}

fn histogram() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("DIGITS is 0 to 5")
}

fn record(histogram: &mut Histogram<u64>, value: u64) {
    histogram
        .record(value)
        .expect("the histogram resizes itself");
}

impl Phase {
    fn new(mark: u16, begin: Time) -> Phase {
        Phase {
            mark,
            begin,
            end: begin,
            in_flight: Time::ZERO,
            between: histogram(),
            commands: BTreeMap::new(),
            spans: VecDeque::new(),
            counted: None,
        }
    }

    fn record(&mut self, command: &Command) {
        let (begin, end) = command.span();
        self.end = self.end.max(end);
        if waits_for_event(command) {
            return;
        }
        self.add_span(begin.max(self.begin), end);
        if command.status.is_none() {
            return;
        }
        let arrived = [TracePoint::Doorbell, TracePoint::Fetch];
        let arrived = arrived.iter().find_map(|&point| command.time(point));
        let sent = command.time(TracePoint::Sent).unwrap_or(end);
        let device = sent.0.saturating_sub(arrived.unwrap_or(begin).0);
        let times = self.commands.entry(command.name());
        let times = times.or_insert_with(CommandTimes::new);
        times.record(Time(end.0 - begin.0), Time(device));
    }

    /// Commands end in order of time.
    fn add_span(&mut self, mut begin: Time, mut end: Time) {
        while let Some(&(last_begin, last_end)) = self.spans.back() {
            if last_end < begin {
                break;
            }
            begin = begin.min(last_begin);
            end = end.max(last_end);
            self.spans.pop_back();
        }
        self.spans.push_back((begin, end));
        if self.spans.len() > MAX_SPANS {
            self.count_span();
        }
    }

    fn count_span(&mut self) {
        if let Some((begin, end)) = self.spans.pop_front() {
            let begin = begin.max(self.counted.unwrap_or(begin));
            self.in_flight += Time(end.0.saturating_sub(begin.0));
            if let Some(last) = self.counted {
                record(&mut self.between, begin.0 - last.0);
            }
            self.counted = Some(end.max(begin));
        }
    }

    fn finish(&mut self, end: Time) {
        self.end = self.end.max(end);
        while !self.spans.is_empty() {
            self.count_span();
        }
    }
}

/// A sink that keeps the durations of commands, by phase.
#[derive(Default)]
pub struct TraceSummary {
    collector: Collector,
    phases: Vec<Phase>,
    commands: u64,
}

impl TraceSummary {
    /// A summary without commands.
    pub fn new() -> TraceSummary {
        TraceSummary::default()
    }

    /// The number of commands so far.
    pub fn commands(&self) -> u64 {
        self.commands
    }

    /// The end of the last command; zero if there was none.
    pub fn last_end(&self) -> Time {
        self.phases.last().map_or(Time::ZERO, |phase| phase.end)
    }

    /// Ends the commands in flight, and returns the phases.
    pub fn finish(mut self) -> Vec<Phase> {
        self.collector.end();
        self.collect();
        if let Some(phase) = self.phases.last_mut() {
            phase.finish(phase.end);
        }
        self.phases
    }

    fn collect(&mut self) {
        for command in self.collector.take_finished() {
            self.commands += 1;
            match command_mark(&command) {
                Some(mark) => self.begin_phase(mark, command.span()),
                None => self.last_phase(command.span().0).record(&command),
            }
        }
    }

    fn last_phase(&mut self, begin: Time) -> &mut Phase {
        if self.phases.is_empty() {
            self.phases.push(Phase::new(0, begin));
        }
        let last = self.phases.len() - 1;
        &mut self.phases[last]
    }

    fn begin_phase(&mut self, mark: u16, (begin, end): (Time, Time)) {
        let in_flight = self.collector.in_flight();
        let others = in_flight.filter(|command| !waits_for_event(command));
        let begins: Vec<Time> = others.map(|command| command.span().0).collect();
        let last = self.last_phase(begin);
        // Such a command has its other part in the next phase.
        let last_end = last.end.max(begin);
        for other in begins.into_iter().filter(|&other| other < begin) {
            last.add_span(other.max(last.begin), last_end);
        }
        last.finish(begin);
        if self.phases.len() < MAX_PHASES {
            self.phases.push(Phase::new(mark, end));
        }
    }
}

/// An event request waits for an event, not for the device.
fn waits_for_event(command: &Command) -> bool {
    (command.queue, command.opcode) == (0, admin::ASYNC_EVENT_REQUEST)
}

/// The number in a command that marks the begin of a phase.
fn command_mark(command: &Command) -> Option<u16> {
    let is_mark = command.queue == 0
        && command.opcode == admin::GET_FEATURES
        && command.cdw[1] >> 16 == MARK
        && command.status == Some(0);
    is_mark.then_some(command.cdw[1] as u16)
}

impl TraceSink for TraceSummary {
    fn event(&mut self, time: Time, event: &TraceEvent) {
        self.collector.event(time, event);
        self.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::nvme::properties::DOORBELLS;

    /// Sends a command of one store, from `begin` to its entry at `end`, in ns.
    fn run(
        summary: &mut TraceSummary,
        slot: u8,
        opcode: (u16, u8),
        cdw: u32,
        begin: u64,
        end: u64,
    ) {
        let (queue, opcode) = opcode;
        let at = |ns: u64| Time::ns(ns);
        let offset = DOORBELLS + 8 * u64::from(queue);
        let tail = u32::from(slot) + 1;
        let events = [
            (
                begin,
                TraceEvent::Stored {
                    offset,
                    value: tail,
                },
            ),
            (
                begin + 10,
                TraceEvent::Arrived {
                    offset,
                    value: tail,
                },
            ),
            (
                begin + 11,
                TraceEvent::Fetch {
                    slot,
                    queue,
                    head: tail as u16,
                },
            ),
            (
                begin + 12,
                TraceEvent::Decoded {
                    slot,
                    queue,
                    cid: 0,
                    opcode,
                    nsid: 1,
                    cdw: [0, cdw, 0],
                },
            ),
            (end - 6, TraceEvent::Post),
            (
                end - 5,
                TraceEvent::Sent {
                    slot,
                    addr: 0x100,
                    entry: [0; 16],
                    vector: None,
                },
            ),
            (
                end,
                TraceEvent::Landed {
                    addr: 0x100,
                    len: 16,
                },
            ),
        ];
        for (time, event) in &events {
            summary.event(at(*time), event);
        }
    }

    const READ: (u16, u8) = (1, spec::nvme::io::READ);
    const MARKS: (u16, u8) = (0, admin::GET_FEATURES);

    #[test]
    fn trace_summary_tells_device_and_link_and_the_time_between_commands() {
        let mut summary = TraceSummary::new();
        run(&mut summary, 0, READ, 0, 100, 300);
        run(&mut summary, 1, READ, 0, 1000, 1400);
        assert_eq!(summary.commands(), 2);
        let phases = summary.finish();
        let [phase] = &phases[..] else {
            panic!("{} phases", phases.len())
        };
        assert_eq!(
            (phase.mark, phase.begin, phase.end),
            (0, Time::ns(100), Time::ns(1400))
        );
        assert_eq!(phase.in_flight, Time::ns(600));
        assert_eq!((phase.between.len(), phase.between.max() / 1000), (1, 700));
        let times = &phase.commands["Read"];
        assert_eq!((times.count(), times.mean_ps()), (2, 300_000.0));
        assert_eq!(times.device_mean_ps(), 285_000.0);
    }

    #[test]
    fn trace_summary_begins_a_phase_at_a_mark_and_leaves_other_features_alone() {
        let mut summary = TraceSummary::new();
        run(&mut summary, 0, READ, 0, 100, 300);
        run(&mut summary, 0, MARKS, 0x4E53_0007, 1000, 1100);
        run(&mut summary, 1, READ, 0, 2000, 2100);
        run(&mut summary, 1, MARKS, 7, 3000, 3100);
        let phases = summary.finish();
        let found: Vec<_> = phases.iter().map(|p| (p.mark, p.begin, p.end)).collect();
        let expected = [
            (0, Time::ns(100), Time::ns(1000)),
            (7, Time::ns(1100), Time::ns(3100)),
        ];
        assert_eq!(found, expected);
        assert_eq!(phases[1].commands["Read"].count(), 1);
        assert_eq!(phases[1].commands["Get Features"].count(), 1);
    }

    /// A command is in flight from 100 to 3000, and the mark comes meanwhile.
    #[test]
    fn trace_summary_divides_a_command_in_flight_at_a_mark() {
        let mut summary = TraceSummary::new();
        run(&mut summary, 0, READ, 0, 20, 90);
        let at = |ns| Time::ns(ns);
        let offset = DOORBELLS + 8 * 2;
        summary.event(at(100), &TraceEvent::Stored { offset, value: 1 });
        summary.event(at(110), &TraceEvent::Arrived { offset, value: 1 });
        let (slot, queue, head) = (9, 2, 1);
        summary.event(at(111), &TraceEvent::Fetch { slot, queue, head });
        run(&mut summary, 0, READ, 0, 200, 300);
        run(&mut summary, 0, MARKS, 0x4E53_0007, 1000, 1100);
        let entry = TraceEvent::Sent {
            slot,
            addr: 0x900,
            entry: [0; 16],
            vector: None,
        };
        summary.event(at(2990), &TraceEvent::Post);
        summary.event(at(2995), &entry);
        let (addr, len) = (0x900, 16);
        summary.event(at(3000), &TraceEvent::Landed { addr, len });
        let phases = summary.finish();
        let in_flight: Vec<Time> = phases.iter().map(|phase| phase.in_flight).collect();
        assert_eq!(in_flight, [at(970), at(1900)]);
    }

    #[test]
    fn trace_summary_does_not_grow_with_marks_and_commands() {
        let mut summary = TraceSummary::new();
        for n in 0..2000 {
            run(
                &mut summary,
                0,
                MARKS,
                0x4E53_0001,
                1000 * n,
                1000 * n + 100,
            );
            run(&mut summary, 0, READ, 0, 1000 * n + 500, 1000 * n + 600);
        }
        assert_eq!(summary.phases.len(), MAX_PHASES);
        assert!(summary
            .phases
            .iter()
            .all(|phase| phase.spans.len() <= MAX_SPANS));
        let phases = summary.finish();
        let reads: u64 = phases
            .iter()
            .filter_map(|p| p.commands.get("Read"))
            .map(CommandTimes::count)
            .sum();
        assert_eq!(reads, 2000);
    }

    /// Against the union computed from all spans at once.
    #[test]
    fn trace_summary_joins_commands_that_overlap() {
        let mut phase = Phase::new(0, Time::ZERO);
        let mut random = 1u64;
        let mut spans = Vec::new();
        for n in 1..5000u64 {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let end = 100 * n;
            let begin = end.saturating_sub(random >> 33 & 0x1FF);
            spans.push((begin, end));
            phase.add_span(Time(begin), Time(end));
        }
        phase.finish(Time(500_000));
        spans.sort_unstable();
        let (mut union, mut last) = (0, 0);
        for (begin, end) in spans {
            union += end.saturating_sub(begin.max(last));
            last = last.max(end);
        }
        assert_eq!(phase.in_flight, Time(union));
    }
}
