// SPDX-License-Identifier: Apache-2.0

//! Reports of sorts.

use std::time::Duration;

use serde_json::{json, Value};
use sim::Time;

use crate::sampler::ChannelSample;

/// A stage on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct StageReport {
    /// put, decode, sort, shuffle or get.
    pub name: &'static str,
    /// The partition.
    pub partition: usize,
    /// Simulated time at the start.
    pub begin: Time,
    /// Simulated time at the end.
    pub end: Time,
    /// Bytes: moved (put, get), of encoded keys (decode), of keys (sort), or of rows (shuffle).
    pub bytes: u64,
    /// NVMe I/O commands.
    pub commands: u64,
}

/// The work of one device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceReport {
    /// Rows that the device sorted.
    pub rows: usize,
    /// The rows among them whose key is null.
    pub nulls: usize,
    /// Partitions, sorted one after another.
    pub partitions: usize,
    /// The stages of all partitions, in order.
    pub stages: Vec<StageReport>,
    /// Samples of the channels' counters, by partition, if the sort was sampled.
    pub samples: Vec<Vec<ChannelSample>>,
    /// Why the device was given up. Other devices have sorted its partitions.
    pub failed: Option<String>,
}

/// The totals of a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct StageTotal {
    /// The name, as in [`StageReport`].
    pub name: &'static str,
    /// Simulated time of the slowest device, for all of its partitions.
    pub time: Time,
    /// Sum over all devices.
    pub bytes: u64,
    /// Sum over all devices.
    pub commands: u64,
}

/// The report of a sort.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Rows of the table.
    pub rows: usize,
    /// Bytes of a row in fixed layout.
    pub row_bytes: usize,
    /// What the engines compared.
    pub key: String,
    /// Partitions that were sorted, and then merged.
    pub partitions: usize,
    /// The plan: see [`crate::Plan::explain`].
    pub plan: Value,
    /// The devices.
    pub devices: Vec<DeviceReport>,
    /// Rows that the host compared with others, as the prefixes of their keys were equal.
    pub ties: u64,
    /// Wall-clock time of reading the table, and of preparing keys and rows.
    pub prepare: Duration,
    /// Wall-clock time of ordering equal prefixes, merging, decoding and writing.
    pub merge: Duration,
    /// Bytes that were kept in temporary files.
    pub spilled: u64,
}

const STAGES: [&str; 5] = ["put", "decode", "sort", "shuffle", "get"];

fn time(stage: &StageReport) -> Time {
    stage.end.saturating_sub(stage.begin)
}

/// The totals of the stages of one name on one device.
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
    /// The totals of each stage of this device.
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

    /// The totals of each stage.
    pub fn stages(&self) -> Vec<StageTotal> {
        STAGES.iter().filter_map(|name| self.of(name)).collect()
    }

    /// True if the engine `dict_decode` made the keys from the file's encoding.
    pub fn pages(&self) -> bool {
        self.of("decode").is_some()
    }

    /// Simulated time from the start of the first command to the end of the last one.
    pub fn elapsed(&self) -> Time {
        let stages = || self.devices.iter().flat_map(|device| &device.stages);
        let begin = stages().map(|stage| stage.begin).min();
        let end = stages().map(|stage| stage.end).max();
        end.unwrap_or_default()
            .saturating_sub(begin.unwrap_or_default())
    }

    /// The report as JSON.
    pub fn to_json(&self) -> Value {
        let total = |total: &StageTotal| {
            json!({
                "stage": total.name, "ns": total.time.as_ns(), "bytes": total.bytes,
                "commands": total.commands,
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
            "rows": self.rows, "row_bytes": self.row_bytes, "key": self.key, "pages": self.pages(),
            "ties": self.ties,
            "partitions": self.partitions, "stages": list(&self.stages()),
            "elapsed_ns": self.elapsed().as_ns(), "plan": self.plan,
            "devices": self.devices.iter().map(device).collect::<Vec<Value>>(),
            "host": {"time": "wall-clock", "prepare_ns": self.prepare.as_nanos() as u64,
            "merge_ns": self.merge.as_nanos() as u64,
                "spilled_bytes": self.spilled},
        })
    }
}
