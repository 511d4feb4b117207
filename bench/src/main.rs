//! Speed of the fast engine, beside its targets, a bound and other simulators: see README.md.

mod accesses;
mod commands;
mod content;
mod copy;
mod outcome;
mod peers;
mod places;
mod process;
mod report;
mod zeros;

use outcome::Outcome;
use report::{Report, Row};

const USAGE: &str = "nearside-bench [--json] [--runs N] [--short]
nearside-bench commands BYTES COMMANDS READ_PERCENT
nearside-bench accesses PROFILE DEPTH BYTES ACCESSES READ_PERCENT
nearside-bench zeros
";

/// What a row measures.
#[derive(Clone, Copy)]
enum What {
    /// NVMe commands: bytes, reads of 100.
    Commands(usize, u64),
    /// Accesses through a channel.
    Accesses(accesses::Load<'static>),
}

impl What {
    fn name(&self) -> String {
        let (what, bytes, percent) = match *self {
            What::Commands(bytes, percent) => ("NVMe commands".to_string(), bytes, percent),
            What::Accesses(load) => {
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

    fn measure(&self, count: u64) -> Result<Outcome, String> {
        match *self {
            What::Commands(bytes, percent) => commands::measure(bytes, count, percent),
            What::Accesses(load) => accesses::measure(load, count),
        }
    }

    /// Commands or accesses of a CPU second that it shall reach.
    fn target(&self) -> f64 {
        match *self {
            What::Commands(512, _) => 1e6,
            What::Commands(..) => 5e5,
            What::Accesses(_) => 8e6,
        }
    }

    /// How many take about half a second.
    fn count(&self) -> u64 {
        match *self {
            What::Commands(512, _) => 400_000,
            What::Commands(..) => 200_000,
            What::Accesses(_) => 4_000_000,
        }
    }

    /// Copies of the bytes of each in a CPU second.
    fn copies(&self) -> f64 {
        match *self {
            What::Commands(bytes, _) => {
                copy::copies(bytes, commands::SPAN as usize, commands::FLYING)
            }
            What::Accesses(load) => {
                copy::copies(load.bytes as usize, accesses::SPAN as usize, load.depth)
            }
        }
    }

    fn peers(&self) -> &'static [peers::Peer] {
        match self {
            What::Commands(..) => peers::COMMANDS,
            What::Accesses(_) => peers::ACCESSES,
        }
    }
}

fn rows() -> Vec<What> {
    let mut rows = Vec::new();
    for bytes in [512, 4096] {
        rows.extend([100, 50, 0].map(|percent| What::Commands(bytes, percent)));
    }
    for (profile, depth) in [("optane-dcpmm", 16), ("dram", 16), ("dram", 64)] {
        rows.extend([100, 50, 0].map(|percent| {
            What::Accesses(accesses::Load {
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
    // In turns, so that what else the machine does meets all rows alike.
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
    let row = |n: usize, what: &What| Row::new(what, &outcomes[n], &bounds[n]);
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

/// One run of one row, for a profiler.
fn single(args: &[String]) -> Result<(), String> {
    let number = |n: usize| -> Result<u64, String> {
        let arg = args.get(n).ok_or(USAGE)?;
        arg.parse().map_err(|_| format!("{arg} is no number"))
    };
    let outcome = match args[0].as_str() {
        "commands" => commands::measure(number(1)? as usize, number(2)?, number(3)?)?,
        _ => {
            let load = accesses::Load {
                profile: &args.get(1).ok_or(USAGE)?.clone(),
                depth: number(2)? as usize,
                bytes: number(3)? as u32,
                percent: number(5)?,
            };
            accesses::measure(load, number(4)?)?
        }
    };
    print!("{}", report::single(&outcome));
    Ok(())
}

/// Deallocate and Format of all of the media. They are no rows of the table, since they want as much memory as the media are large.
fn all_zeros() -> Result<(), String> {
    for zeroed in zeros::measure()? {
        print!("{}", report::zeroed(&zeroed));
    }
    Ok(())
}

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if matches!(
        args.first().map(String::as_str),
        Some("commands" | "accesses")
    ) {
        return single(&args);
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
