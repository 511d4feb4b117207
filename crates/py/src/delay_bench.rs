// SPDX-License-Identifier: Apache-2.0

//! Measurements of `nvm_delay` alone, between a master and the DDR4 model.

use std::sync::{Mutex, MutexGuard};

use design::Design as Config;
use pyo3::prelude::*;
use rtl::delay_bench::{
    self, DelayBenchCounters, TargetLatencies, Traffic, TrafficMix, TransactionSample,
};
use rtl::MemoryModel;
use serde_json::json;
use sim::{Clock, Media};

use crate::build::{BuildReporter, Design};
use crate::document::Document;
use crate::error::raise;
use crate::process::{alone, ProcessOwned};
use crate::progress::ProgressReporter;

/// Memory downstream of the emulator. It has enough rows that random addresses rarely hit an open
/// one.
const MEDIA_BYTES: u64 = 1 << 30;
/// Most accesses of a measurement.
const MOST_SAMPLES: usize = 10_000_000;
/// Most reads in flight in the emulator.
const MOST_READS: usize = 64;
/// Most cycles that its registers hold.
const MOST_CYCLES: f64 = ((1 << 20) - 1) as f64;
/// Most bytes of a burst, as AXI limits it.
const BURST_BYTES: u32 = 4096;

/// An emulator with the clock and the DRAM of a design. Only one call at a time is allowed.
#[pyclass(frozen, module = "nearside._native")]
pub struct DelayBench {
    bench: ProcessOwned<Mutex<Option<delay_bench::DelayBench>>>,
    clock: Clock,
}

impl DelayBench {
    fn lock(&self) -> PyResult<MutexGuard<'_, Option<delay_bench::DelayBench>>> {
        self.bench.check()?;
        alone(&self.bench, "bench")
    }
}

#[pymethods]
impl DelayBench {
    /// Compiles `nvm_delay` if necessary, and powers it.
    #[new]
    #[pyo3(signature = (design, progress=None))]
    fn new(py: Python<'_>, design: &Design, progress: Option<Py<PyAny>>) -> PyResult<DelayBench> {
        let config: &Config = &design.inner;
        let root = crate::build::root()?;
        let clock = config.clock();
        let memory = MemoryModel::Ddr4(config.dram.clone());
        let mut reporter = BuildReporter::new(progress);
        let bench = py.detach(|| {
            let media = Media::memory(MEDIA_BYTES).map_err(raise)?;
            let mut tell = |p| reporter.report(p);
            delay_bench::DelayBench::new(&root, clock, &memory, media, None, &mut tell)
                .map_err(raise)
        });
        let bench = reporter.finish(bench)?;
        Ok(DelayBench {
            bench: ProcessOwned::new(Some(bench).into()),
            clock,
        })
    }

    /// The clock period.
    #[getter]
    fn period_ns(&self) -> f64 {
        self.clock.ns(1.0)
    }

    /// Measures single accesses ("read" or "write") of `beats` beats at random addresses, with a
    /// target of `base_ns` and `beat_ns` for each beat. Returns their times. Beats have 64
    /// bytes, or fewer where the burst would exceed 4 KiB.
    #[pyo3(signature = (kind, base_ns, beat_ns, beats, samples, seed))]
    #[allow(clippy::too_many_arguments)] // keyword arguments in Python
    fn measure(
        &self,
        py: Python<'_>,
        kind: &str,
        base_ns: f64,
        beat_ns: f64,
        beats: u32,
        samples: usize,
        seed: u64,
    ) -> PyResult<Document> {
        let mix = match kind {
            "read" => TrafficMix::Reads,
            "write" => TrafficMix::Writes,
            _ => {
                return Err(raise(format!(
                    "kind = {kind:?}: allowed are \"read\", \"write\""
                )))
            }
        };
        if !(1..=256).contains(&beats) {
            return Err(raise(format!("beats = {beats}: allowed are 1 to 256")));
        }
        if !(1..=MOST_SAMPLES).contains(&samples) {
            return Err(raise(format!(
                "samples = {samples}: allowed are 1 to {MOST_SAMPLES}"
            )));
        }
        for (name, ns) in [("base_ns", base_ns), ("beat_ns", beat_ns)] {
            check_cycles(name, ns, self.cycles(ns))?;
        }
        let (base, beat) = (self.cycles(base_ns), self.cycles(beat_ns));
        let targets = TargetLatencies {
            read_base: base,
            read_beat: beat,
            write_base: base,
            write_beat: beat,
        };
        let size = (BURST_BYTES / beats.next_power_of_two()).ilog2().min(6) as u8;
        // The gap spreads accesses over the refresh of the DRAM and the phase of its clock.
        let traffic = Traffic {
            mix,
            beats,
            size,
            count: samples,
            gap: 40,
            seed,
            ..Traffic::default()
        };
        let (samples, counters) = self.run(py, &targets, &traffic)?;
        let counted = &counters[usize::from(mix == TrafficMix::Writes)];
        let ns = |cycles: f64| self.clock.ns(cycles);
        let latencies: Vec<u32> = samples.iter().map(TransactionSample::latency).collect();
        let sum: f64 = latencies.iter().map(|&l| f64::from(l)).sum();
        let (low, high) = (latencies.iter().min(), latencies.iter().max());
        // How early the earliest beat came, the first one included.
        let early = samples.iter().flat_map(|s| {
            let n = s.latencies.len();
            s.latencies.iter().enumerate().map(move |(i, &l)| {
                let beats_due = if n == 1 { beats as usize } else { i + 1 };
                base + beat * beats_due as f64 - f64::from(l)
            })
        });
        // Within a clock of the target. All later ones wait for the memory.
        let limit = (base + beat * f64::from(beats)).ceil() as u32;
        let on_time = || samples.iter().filter(|s| s.latency() <= limit);
        let on_time_sum: f64 = on_time().map(|s| f64::from(s.latency())).sum();
        let after_memory = samples
            .iter()
            .filter(|s| s.latency() > limit)
            .map(|s| s.latency().saturating_sub(s.memory))
            .max();
        Ok(Document(json!({
            "on_time": on_time().count(),
            "on_time_mean_ns": ns(on_time_sum / on_time().count().max(1) as f64),
            "late_after_memory_clocks": after_memory,
            "samples": latencies.len(),
            "mean_ns": ns(sum / latencies.len() as f64),
            "min_ns": low.map(|&l| ns(l.into())),
            "max_ns": high.map(|&l| ns(l.into())),
            "early_clocks": early.fold(0.0, f64::max),
            "late": counted.late,
            "counted_mean_ns": ns(counted.latency_sum as f64 / counted.transactions.max(1) as f64),
            "beat_bytes": 1 << size,
        })))
    }

    /// The cycles of `reads` reads that are sent one per cycle, with a delay of `delay` cycles:
    /// from the first address to the last beat.
    fn pipelined_reads(&self, py: Python<'_>, reads: usize, delay: f64) -> PyResult<u64> {
        if !(1..=MOST_READS).contains(&reads) {
            return Err(raise(format!(
                "reads = {reads}: allowed are 1 to {MOST_READS}"
            )));
        }
        check_cycles("delay", delay, delay)?;
        let targets = TargetLatencies {
            read_base: delay,
            ..TargetLatencies::default()
        };
        let traffic = Traffic {
            count: reads,
            outstanding: reads,
            ..Traffic::default()
        };
        let (samples, _) = self.run(py, &targets, &traffic)?;
        let start = samples.iter().map(|s| s.start).min().unwrap_or(0);
        let end = samples
            .iter()
            .map(|s| s.start + u64::from(s.latency()))
            .max()
            .unwrap_or(0);
        Ok(end - start)
    }
}

fn check_cycles(name: &str, value: f64, cycles: f64) -> PyResult<()> {
    if (0.0..=MOST_CYCLES).contains(&cycles) {
        return Ok(());
    }
    Err(raise(format!(
        "{name} = {value}: allowed are 0 to {MOST_CYCLES} clock cycles"
    )))
}

impl DelayBench {
    /// Runs traffic, and checks for Ctrl-C.
    fn run(
        &self,
        py: Python<'_>,
        targets: &TargetLatencies,
        traffic: &Traffic,
    ) -> PyResult<(Vec<TransactionSample>, [DelayBenchCounters; 2])> {
        let mut bench = self.lock()?;
        let bench = bench.as_mut().ok_or_else(|| raise("there is no bench"))?;
        let mut reporter = ProgressReporter::new(None);
        let mut tell = |done, total| reporter.report(done, total);
        let outcome = py.detach(|| delay_bench::delay_bench(bench, targets, traffic, &mut tell));
        reporter.finish(outcome)
    }

    fn cycles(&self, ns: f64) -> f64 {
        self.clock.cycles(ns)
    }
}
