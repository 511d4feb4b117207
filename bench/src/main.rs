// SPDX-License-Identifier: Apache-2.0

//! Speed of the fast model, beside its targets, a bound and other simulators: see README.md.

mod accesses;
mod commands;
mod content;
mod copy;
mod peers;
mod places;
mod process;
mod report;
mod run_result;
mod zeros;

use std::ops::RangeInclusive;
use std::process::ExitCode;

use report::{Report, Row};
use run_result::RunResult;

const USAGE: &str = "nearside-bench [--json] [--runs N] [--short]
nearside-bench commands BYTES COMMANDS READ_PERCENT
nearside-bench accesses PROFILE DEPTH BYTES ACCESSES READ_PERCENT
nearside-bench zeros
";

/// Commands or accesses of a single run: nobody waits for more.
const COUNTS: RangeInclusive<u64> = 1..=1_000_000_000_000;

/// The measurement of a row.
#[derive(Clone, Copy)]
enum Measurement<'a> {
    /// NVMe commands: bytes, reads of 100.
    Commands(usize, u64),
    /// Accesses through a channel.
    Accesses(accesses::Load<'a>),
}

impl Measurement<'_> {
    fn name(&self) -> String {
        let (what, bytes, percent) = match *self {
            Measurement::Commands(bytes, percent) => ("NVMe commands".to_string(), bytes, percent),
            Measurement::Accesses(load) => {
                let what = format!("accesses, {} x {}", load.profile, load.depth);
                (what, load.bytes as usize, load.percent)
            }
        };
        let kind = match percent {
            100 => "reads",
            0 => "writes",
            _ => "half reads",
        };
        format!("{what}, {bytes} B, {kind}")
    }

    fn measure(&self, count: u64) -> Result<RunResult, String> {
        match *self {
            Measurement::Commands(bytes, percent) => commands::measure(bytes, count, percent),
            Measurement::Accesses(load) => accesses::measure(load, count),
        }
    }

    /// Commands or accesses of a CPU second that it shall reach.
    fn target(&self) -> f64 {
        match *self {
            Measurement::Commands(512, _) => 1e6,
            Measurement::Commands(..) => 5e5,
            Measurement::Accesses(_) => 8e6,
        }
    }

    /// How many take about half a second.
    fn count(&self) -> u64 {
        match *self {
            Measurement::Commands(512, _) => 400_000,
            Measurement::Commands(..) => 200_000,
            Measurement::Accesses(_) => 4_000_000,
        }
    }

    /// Copies of the bytes of each in a CPU second.
    fn copies(&self) -> f64 {
        match *self {
            Measurement::Commands(bytes, _) => {
                copy::copies(bytes, commands::SPAN as usize, commands::IN_FLIGHT)
            }
            Measurement::Accesses(load) => {
                copy::copies(load.bytes as usize, accesses::SPAN as usize, load.depth)
            }
        }
    }

    fn peers(&self) -> &'static [peers::Peer] {
        match self {
            Measurement::Commands(..) => peers::COMMANDS,
            Measurement::Accesses(_) => peers::ACCESSES,
        }
    }
}

fn rows() -> Vec<Measurement<'static>> {
    let mut rows = Vec::new();
    for bytes in [512, 4096] {
        rows.extend([100, 50, 0].map(|percent| Measurement::Commands(bytes, percent)));
    }
    for (profile, depth) in [("optane-dcpmm", 16), ("dram", 16), ("dram", 64)] {
        rows.extend([100, 50, 0].map(|percent| {
            Measurement::Accesses(accesses::Load {
                profile,
                depth,
                bytes: 64,
                percent,
            })
        }));
    }
    rows
}

fn report(runs: usize, short: bool) -> Result<Report, String> {
    let rows = rows();
    let mut outcomes = vec![Vec::new(); rows.len()];
    let mut bounds = vec![Vec::new(); rows.len()];
    // In turn, so that other load of the machine affects all rows alike.
    for run in 0..runs {
        for (n, what) in rows.iter().enumerate() {
            eprint!(
                "\rrun {} of {runs}, row {} of {} ",
                run + 1,
                n + 1,
                rows.len()
            );
            outcomes[n].push(what.measure(what.count())?);
            bounds[n].push(what.copies());
        }
    }
    eprintln!();
    let mut long = Vec::new();
    let times = if short { 2 } else { 10 };
    for (what, warm) in [(rows[1], commands::WARM), (rows[7], accesses::WARM)] {
        let count = times * warm;
        eprintln!("memory: {count} x {}", what.name());
        long.push((what.name(), count, what.measure(count)?));
    }
    let row = |n: usize, what: &Measurement| Row::new(what, &outcomes[n], &bounds[n]);
    Ok(Report {
        cpu: process::cpu_name(),
        rows: rows
            .iter()
            .enumerate()
            .map(|(n, what)| row(n, what))
            .collect(),
        long,
    })
}

/// The measurement of a single run and its count, for a profiler.
fn single(args: &[String]) -> Result<(Measurement<'_>, u64), String> {
    let number = |n: usize, name: &str, allowed: RangeInclusive<u64>| -> Result<u64, String> {
        let value = args[n].parse().ok().filter(|value| allowed.contains(value));
        let (low, high) = (allowed.start(), allowed.end());
        value.ok_or_else(|| format!("{name} = {}: allowed is {low} to {high}", args[n]))
    };
    match args {
        [what, bytes, _, _] if what == "commands" => {
            let size = bytes.parse().ok().filter(|&n| commands::fits(n));
            let size = size.ok_or_else(|| {
                let most = commands::MOST_BYTES;
                format!(
                    "BYTES = {bytes}: allowed is a multiple of 512 from 512 to {most}, what a \
                     command's buffer holds"
                )
            })?;
            let count = number(2, "COMMANDS", COUNTS)?;
            Ok((
                Measurement::Commands(size, number(3, "READ_PERCENT", 0..=100)?),
                count,
            ))
        }
        [what, profile, _, bytes, _, _] if what == "accesses" => {
            let size = bytes.parse().ok().filter(|&n| accesses::fits(n));
            let load = accesses::Load {
                profile,
                depth: number(2, "DEPTH", 1..=accesses::DEEPEST)? as usize,
                bytes: size.ok_or_else(|| {
                    format!(
                        "BYTES = {bytes}: allowed is a power of two from 64 to {}, one burst",
                        accesses::MOST_BYTES
                    )
                })?,
                percent: number(5, "READ_PERCENT", 0..=100)?,
            };
            Ok((Measurement::Accesses(load), number(4, "ACCESSES", COUNTS)?))
        }
        _ => Err(USAGE.to_string()),
    }
}

/// Deallocate and Format of all of the media. They are no rows of the table, because they need as
/// much memory as the media have.
fn all_zeros() -> Result<(), String> {
    for zeroed in zeros::measure()? {
        print!("{}", report::zeroed(&zeroed));
    }
    Ok(())
}

/// Runs what the command line requests, and prints it.
fn run(args: &[String]) -> Result<(), String> {
    if matches!(
        args.first().map(String::as_str),
        Some("commands" | "accesses")
    ) {
        let (what, count) = single(args)?;
        print!("{}", report::single(&what.measure(count)?));
        return Ok(());
    }
    if args == ["zeros"] {
        return all_zeros();
    }
    let (mut json, mut short, mut runs) = (false, false, 5);
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--json" => json = true,
            "--short" => (short, runs) = (true, 1),
            "--runs" => {
                let value = rest.next().and_then(|n| n.parse().ok());
                runs = value.filter(|&n| n > 0).ok_or(USAGE)?;
            }
            _ => return Err(USAGE.to_string()),
        }
    }
    let report = report(runs, short)?;
    print!("{}", if json { report.json() } else { report.table() });
    Ok(())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nearside-bench: {}", error.trim_end());
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Vec<String> {
        line.split(' ').map(String::from).collect()
    }

    #[test]
    fn arguments_out_of_range_are_reported() {
        for (line, name) in [
            ("commands 0 10 50", "BYTES = 0"),
            ("commands 513 10 50", "BYTES = 513"),
            ("commands 131584 10 50", "BYTES = 131584"),
            ("commands 1048576 10 50", "BYTES = 1048576"),
            (
                "commands 18446744073709551104 10 50",
                "BYTES = 18446744073709551104",
            ),
            ("commands x 10 50", "BYTES = x"),
            ("commands 512 0 50", "COMMANDS = 0"),
            ("commands 512 -1 50", "COMMANDS = -1"),
            (
                "commands 512 18446744073709551615 50",
                "COMMANDS = 18446744073709551615",
            ),
            ("commands 512 10 101", "READ_PERCENT = 101"),
            ("accesses dram 0 64 10 50", "DEPTH = 0"),
            ("accesses dram 4097 64 10 50", "DEPTH = 4097"),
            ("accesses dram 1 0 10 50", "BYTES = 0"),
            ("accesses dram 1 96 10 50", "BYTES = 96"),
            ("accesses dram 1 32 10 50", "BYTES = 32"),
            ("accesses dram 1 8192 10 50", "BYTES = 8192"),
            ("accesses dram 1 4294967360 10 50", "BYTES = 4294967360"),
            ("accesses dram 1 64 0 50", "ACCESSES = 0"),
            ("accesses dram 1 64 10 101", "READ_PERCENT = 101"),
        ] {
            let error = single(&arguments(line))
                .err()
                .unwrap_or_else(|| panic!("{line} is taken"));
            let start = format!("{name}: allowed is ");
            assert!(
                error.starts_with(&start) && !error.contains('\n'),
                "{line}: {error}"
            );
        }
        for line in [
            "commands",
            "commands 512 10",
            "commands 512 10 50 1",
            "accesses dram 1 64 10",
        ] {
            assert_eq!(
                single(&arguments(line)).err().as_deref(),
                Some(USAGE),
                "{line}"
            );
        }
        let error = run(&arguments("accesses none 1 64 10 50")).unwrap_err();
        assert!(error.starts_with("no media profile \"none\""), "{error}");
    }

    /// At the limits of the arguments all data are correct, and each figure is a number.
    #[test]
    fn arguments_in_range_are_measured() {
        for line in [
            "commands 512 1 100",
            "commands 512 300 0",
            "commands 6656 600 50",
            "commands 131072 600 50",
            "accesses dram 1 64 1 100",
            "accesses dram 64 4096 20000 50",
            "accesses dram 4096 64 20000 50",
            "accesses optane-dcpmm 4096 4096 20000 50",
        ] {
            let args = arguments(line);
            let (what, count) = single(&args).unwrap();
            let outcome = what
                .measure(count)
                .unwrap_or_else(|e| panic!("{line}: {e}"));
            assert!(
                outcome.per_second > 0.0 && outcome.simulated > 0.0,
                "{line}"
            );
            let text = report::single(&outcome);
            assert!(
                !text.contains("NaN") && !text.contains("inf"),
                "{line}: {text}"
            );
        }
    }
}
