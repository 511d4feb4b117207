//! What a sort took.

use std::time::Duration;

use serde_json::{json, Value};
use sim::Time;

use crate::sampler::ChannelSample;

/// A stage on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct StageReport {
    /// put, decode, sort, shuffle or get.
    pub name: &'static str,
    /// Which partition's.
    pub partition: usize,
    /// Simulated time at its begin.
    pub begin: Time,
    /// Simulated time at its end.
    pub end: Time,
    /// put, get: moved; decode: of what is decoded; sort: of keys; shuffle: of rows.
    pub bytes: u64,
    /// NVMe I/O commands.
    pub commands: u64,
}

/// What one device did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceReport {
    /// Rows that it sorted.
    pub rows: usize,
    /// Of these, those whose key is null.
    pub nulls: usize,
    /// Partitions, one after another.
    pub partitions: usize,
    /// In their order, of all partitions.
    pub stages: Vec<StageReport>,
    /// Of sorts that are sampled: by partition, what its channels counted meanwhile.
    pub samples: Vec<Vec<ChannelSample>>,
    /// Why it was given up; others have done its part.
    pub failed: Option<String>,
}

/// A stage in all.
#[derive(Clone, Debug, PartialEq)]
pub struct StageTotal {
    /// As of a [`StageReport`].
    pub name: &'static str,
    /// Simulated time of the device that it took longest, of all its partitions.
    pub time: Time,
    /// Of all devices.
    pub bytes: u64,
    /// Of all devices.
    pub commands: u64,
}

/// What a sort took.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Rows of the table.
    pub rows: usize,
    /// Bytes of a row in fixed layout.
    pub row_bytes: usize,
    /// What the engines compared.
    pub key: String,
    /// Parts of the table that were sorted one after another, or on different devices, and merged.
    pub partitions: usize,
    /// What was planned: see [`crate::Plan::explain`].
    pub plan: Value,
    /// The devices.
    pub devices: Vec<DeviceReport>,
    /// Rows that the host had to compare with others, as their keys began alike.
    pub ties: u64,
    /// Reading, and making keys and rows before, on this machine.
    pub prepare: Duration,
    /// Ties, merge, columns and writing behind, on this machine.
    pub merge: Duration,
    /// Bytes that waited in temporary files.
    pub spilled: u64,
}

const STAGES: [&str; 5] = ["put", "decode", "sort", "shuffle", "get"];

fn time(stage: &StageReport) -> Time {
    stage.end.saturating_sub(stage.begin)
}

/// Of stages of one name on one device.
fn sum<'a>(
    name: &'static str,
    stages: impl Iterator<Item = &'a StageReport>,
) -> Option<StageTotal> {
    let totals = stages
        .filter(|stage| stage.name == name)
        .map(|stage| StageTotal {
            name,
            time: time(stage),
            bytes: stage.bytes,
            commands: stage.commands,
        });
    totals.reduce(|a, b| StageTotal {
        name,
        time: a.time + b.time,
        bytes: a.bytes + b.bytes,
        commands: a.commands + b.commands,
    })
}

impl DeviceReport {
    /// Each stage that it had.
    pub fn totals(&self) -> Vec<StageTotal> {
        let of = |name: &&'static str| sum(name, self.stages.iter());
        STAGES.iter().filter_map(of).collect()
    }
}

impl Report {
    fn of(&self, name: &'static str) -> Option<StageTotal> {
        let devices = self.devices.iter();
        let totals = devices.filter_map(|device| sum(name, device.stages.iter()));
        totals.reduce(|a, b| StageTotal {
            name,
            time: a.time.max(b.time),
            bytes: a.bytes + b.bytes,
            commands: a.commands + b.commands,
        })
    }

    /// Each stage that there was.
    pub fn stages(&self) -> Vec<StageTotal> {
        STAGES.iter().filter_map(|name| self.of(name)).collect()
    }

    /// Whether the engine `dict_decode` made keys of what was in the file.
    pub fn pages(&self) -> bool {
        self.of("decode").is_some()
    }

    /// Simulated time from the first command to the last one's end.
    pub fn elapsed(&self) -> Time {
        let stages = || self.devices.iter().flat_map(|device| &device.stages);
        let begin = stages().map(|stage| stage.begin).min();
        let end = stages().map(|stage| stage.end).max();
        end.unwrap_or_default()
            .saturating_sub(begin.unwrap_or_default())
    }

    /// All of it.
    pub fn to_json(&self) -> Value {
        let total = |total: &StageTotal| {
            json!({
                "stage": total.name, "ns": total.time.as_ns(), "bytes": total.bytes, "commands": total.commands,
            })
        };
        let list = |totals: &[StageTotal]| -> Vec<Value> { totals.iter().map(total).collect() };
        let device = |device: &DeviceReport| {
            json!({
                "rows": device.rows, "nulls": device.nulls, "partitions": device.partitions,
                "failed": device.failed, "stages": list(&device.totals()),
            })
        };
        json!({
            "rows": self.rows, "row_bytes": self.row_bytes, "key": self.key, "pages": self.pages(), "ties": self.ties,
            "partitions": self.partitions, "stages": list(&self.stages()), "elapsed_ns": self.elapsed().as_ns(), "plan": self.plan,
            "devices": self.devices.iter().map(device).collect::<Vec<Value>>(),
            "host": {"time": "wall-clock", "prepare_ns": self.prepare.as_nanos() as u64, "merge_ns": self.merge.as_nanos() as u64,
                "spilled_bytes": self.spilled},
        })
    }
}
