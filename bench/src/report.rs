// SPDX-License-Identifier: Apache-2.0

//! The table, and the same as JSON.

use std::fmt::Write;

use crate::peers::Peer;
use crate::run_result::RunResult;
use crate::zeros::Zeroed;
use crate::Measurement;

/// One row: medians of several runs.
pub struct Row {
    name: String,
    per_second: f64,
    /// Slowest and fastest run.
    range: [f64; 2],
    target: f64,
    copies: f64,
    outcome: RunResult,
    peers: &'static [Peer],
}

fn median(values: impl Iterator<Item = f64>) -> (f64, [f64; 2]) {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let ends = [sorted[0], sorted[sorted.len() - 1]];
    (sorted[sorted.len() / 2], ends)
}

impl Row {
    /// Of at least one run.
    pub fn new(what: &Measurement, outcomes: &[RunResult], copies: &[f64]) -> Row {
        let (per_second, range) = median(outcomes.iter().map(|o| o.per_second));
        Row {
            name: what.name(),
            per_second,
            range,
            target: what.target(),
            copies: median(copies.iter().copied()).0,
            outcome: outcomes[0],
            peers: what.peers(),
        }
    }
}

/// All that was measured.
pub struct Report {
    /// The CPU.
    pub cpu: String,
    /// One for each load.
    pub rows: Vec<Row>,
    /// Long runs: name, count, result.
    pub long: Vec<(String, u64, RunResult)>,
}

fn thousands(value: f64) -> String {
    format!("{:.0}", value / 1e3)
}

impl Report {
    /// As text.
    pub fn table(&self) -> String {
        let mut out = format!("{}; thousands of a CPU second, one thread\n\n", self.cpu);
        let _ = writeln!(
            out,
            "{:44} {:>7} {:>13} {:>7} {:>6} {:>7} {:>6}  {:<34} {:>9} {:>9}",
            "", "ours", "runs", "target", "ratio", "memcpy", "share", "others", "p50 ns", "p99 ns"
        );
        for row in &self.rows {
            let peers: Vec<String> = row.peers.iter().map(Peer::short).collect();
            let _ = writeln!(
                out,
                "{:44} {:>7} {:>13} {:>7} {:>6.2} {:>7} {:>5.1}%  {:<34} {:>9} {:>9}",
                row.name,
                thousands(row.per_second),
                row.range.map(thousands).join("-"),
                thousands(row.target),
                row.per_second / row.target,
                thousands(row.copies),
                100.0 * row.per_second / row.copies,
                peers.join(", "),
                row.outcome.p50_ns,
                row.outcome.p99_ns,
            );
        }
        out.push('\n');
        for (name, count, outcome) in &self.long {
            let _ = writeln!(
                out,
                "{count} x {name}: {:.1} MB resident when all has been touched, \
                 {:.1} MB at the end",
                outcome.warm_mb, outcome.end_mb
            );
        }
        out
    }

    /// As one JSON object.
    pub fn json(&self) -> String {
        let row = |row: &Row| {
            let peers: Vec<String> = row.peers.iter().map(Peer::json).collect();
            format!(
                "{{\"what\": \"{}\", \"per_cpu_second\": {:.0}, \"slowest\": {:.0}, \
                 \"fastest\": {:.0}, \"target\": {:.0}, \"memcpy\": {:.0}, \
                 \"p50_ns\": {}, \"p99_ns\": {}, \"bytes_compared\": {}, \
                 \"completions\": \"{:016x}\", \"others\": [{}]}}",
                row.name,
                row.per_second,
                row.range[0],
                row.range[1],
                row.target,
                row.copies,
                row.outcome.p50_ns,
                row.outcome.p99_ns,
                row.outcome.compared,
                row.outcome.hash.0,
                peers.join(", "),
            )
        };
        let long = |(name, count, outcome): &(String, u64, RunResult)| {
            format!(
                "{{\"what\": \"{name}\", \"count\": {count}, \"touched_mb\": {:.1}, \
                 \"end_mb\": {:.1}}}",
                outcome.warm_mb, outcome.end_mb
            )
        };
        let rows: Vec<String> = self.rows.iter().map(row).collect();
        let long: Vec<String> = self.long.iter().map(long).collect();
        format!(
            "{{\"cpu\": \"{}\",\n \"rows\": [\n  {}\n ],\n \"memory\": [\n  {}\n ]}}\n",
            self.cpu,
            rows.join(",\n  "),
            long.join(",\n  ")
        )
    }
}

impl Peer {
    fn short(&self) -> String {
        format!("{} {}", self.name, self.per_second.map(thousands).join("-"))
    }

    fn json(&self) -> String {
        let [slow, fast] = self.per_second;
        format!(
            "{{\"name\": \"{}\", \"slowest\": {slow:.0}, \"fastest\": {fast:.0}, \
             \"notes\": \"{}\"}}",
            self.name, self.notes
        )
    }
}

/// A single run.
pub fn single(outcome: &RunResult) -> String {
    // Accesses have none: there is no model around the channel.
    let events = if outcome.events.is_nan() {
        String::new()
    } else {
        format!("; {:.2} events each", outcome.events)
    };
    // CPU time is counted in steps.
    let speed = if outcome.per_second.is_finite() {
        format!("{:.0} thousand a CPU second", outcome.per_second / 1e3)
    } else {
        "too few to be timed".to_string()
    };
    format!(
        "{speed}; {} bytes compared; {:.3} ms simulated; p50 {} ns, p99 {} ns{events}; \
         completions {:016x}; {:.1} MB at the end\n",
        outcome.compared,
        outcome.simulated / 1e6,
        outcome.p50_ns,
        outcome.p99_ns,
        outcome.hash.0,
        outcome.end_mb,
    )
}

/// Media that have become zeros.
pub fn zeroed(zeroed: &Zeroed) -> String {
    format!(
        "{} of {} MiB: {:.3} ms simulated, {:.1} ms of CPU\n",
        zeroed.name,
        zeroed.bytes >> 20,
        zeroed.simulated.as_ns() / 1e6,
        zeroed.seconds * 1e3,
    )
}
