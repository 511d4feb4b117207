// SPDX-License-Identifier: Apache-2.0

//! Traces of sorts in the Trace Event Format, for Perfetto and `chrome://tracing`.

use serde_json::{json, Value};
use sim::axi::BEAT;
use sim::Time;

use crate::report::{DeviceReport, StageReport};
use crate::sampler::ChannelSample;
use crate::Report;

/// The track of a device's stages.
const TRACK: u32 = 1;

fn us(time: Time) -> f64 {
    time.0 as f64 / 1e6
}

fn rate(bytes: u64, time: Time) -> f64 {
    bytes as f64 / time.as_ns()
}

/// Metadata that names a process or a thread.
fn metadata_event(what: &str, pid: usize, name: String) -> Value {
    json!({"ph": "M", "pid": pid, "tid": TRACK, "name": what, "args": {"name": name}})
}

fn slice(pid: usize, stage: &StageReport) -> Value {
    let time = stage.end.saturating_sub(stage.begin);
    json!({
        "ph": "X", "pid": pid, "tid": TRACK, "name": stage.name, "ts": us(stage.begin),
        "dur": us(time),
        "args": {
            "partition": stage.partition, "bytes": stage.bytes, "NVMe commands": stage.commands,
            "GB/s": (time > Time::default()).then(|| rate(stage.bytes, time)),
        },
    })
}

/// Mean bandwidth between two samples.
fn rates(pid: usize, samples: &[ChannelSample]) -> impl Iterator<Item = Value> + '_ {
    samples.windows(2).flat_map(move |pair| {
        let [from, to] = pair else { return Vec::new() };
        let time = to.time.saturating_sub(from.time);
        let of = |channel: usize| {
            let passed = |way: usize| {
                let beats = to.beats[channel][way].saturating_sub(from.beats[channel][way]);
                rate(beats * BEAT as u64, time)
            };
            json!({
                "ph": "C", "pid": pid, "name": format!("channel {channel}, GB/s"),
                "ts": us(from.time),
                "args": {"read": passed(0), "written": passed(1)},
            })
        };
        match time > Time::default() {
            true => (0..to.beats.len()).map(of).collect(),
            false => Vec::new(),
        }
    })
}

fn device(number: usize, device: &DeviceReport) -> Vec<Value> {
    let pid = number + 1;
    let mut events = vec![
        metadata_event("process_name", pid, format!("device {number}")),
        metadata_event("thread_name", pid, "stages".to_string()),
    ];
    events.extend(device.stages.iter().map(|stage| slice(pid, stage)));
    for samples in &device.samples {
        events.extend(rates(pid, samples));
    }
    events
}

impl Report {
    /// A trace for Perfetto: the stages of all devices and partitions, in simulated time. Of a
    /// sampled sort ([`crate::Progress::with_samples`]) it has each channel's bandwidth as well.
    pub fn trace(&self) -> Value {
        let devices = self.devices.iter().enumerate();
        let events: Vec<Value> = devices.flat_map(|(n, d)| device(n, d)).collect();
        json!({"displayTimeUnit": "ns", "traceEvents": events, "otherData": {"time": "simulated"}})
    }
}
