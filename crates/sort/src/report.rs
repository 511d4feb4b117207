//! What a sort took.

use std::time::Duration;

use serde_json::{json, Value};
use sim::Time;

/// A stage on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// put, decode, sort, shuffle or get.
    pub name: &'static str,
    /// Simulated time at its begin.
    pub begin: Time,
    /// Simulated time at its end.
    pub end: Time,
    /// put, get: moved; decode, sort: of keys; shuffle: of rows.
    pub bytes: u64,
    /// NVMe I/O commands.
    pub commands: u64,
}

/// What one device did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Device {
    /// Rows that it had.
    pub rows: usize,
    /// Of these, those whose key is null.
    pub nulls: usize,
    /// In their order.
    pub stages: Vec<Stage>,
}

/// What a sort took.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Rows of the table.
    pub rows: usize,
    /// Bytes of a row in fixed form.
    pub row_bytes: usize,
    /// What the engines compared.
    pub key: String,
    /// Keys were given as they are in the file, for the engine `dict_decode`.
    pub pages: bool,
    /// The devices.
    pub devices: Vec<Device>,
    /// Rows that the host had to compare with others, as their keys began alike.
    pub ties: u64,
    /// Making keys and rows before, on this machine.
    pub prepare: Duration,
    /// Ties, merge and columns behind, on this machine.
    pub merge: Duration,
}

const STAGES: [&str; 5] = ["put", "decode", "sort", "shuffle", "get"];

impl Report {
    fn of(&self, name: &str) -> Option<Stage> {
        let stages = self.devices.iter().flat_map(|device| &device.stages);
        stages
            .filter(|stage| stage.name == name)
            .cloned()
            .reduce(|a, b| Stage {
                name: a.name,
                begin: a.begin.min(b.begin),
                end: a.end.max(b.end),
                bytes: a.bytes + b.bytes,
                commands: a.commands + b.commands,
            })
    }

    /// Each stage from its first begin on a device to its last end on one.
    pub fn stages(&self) -> Vec<Stage> {
        STAGES.iter().filter_map(|name| self.of(name)).collect()
    }

    /// Simulated time from the first command to the last one's end.
    pub fn elapsed(&self) -> Time {
        let stages = self.stages();
        let begin = stages.iter().map(|stage| stage.begin).min();
        let end = stages.iter().map(|stage| stage.end).max();
        end.unwrap_or_default()
            .saturating_sub(begin.unwrap_or_default())
    }

    /// All of it.
    pub fn to_json(&self) -> Value {
        let stage = |stage: &Stage| {
            json!({
                "stage": stage.name, "ns": stage.end.saturating_sub(stage.begin).as_ns(),
                "bytes": stage.bytes, "commands": stage.commands,
            })
        };
        let list = |stages: &[Stage]| -> Vec<Value> { stages.iter().map(stage).collect() };
        let device = |device: &Device| json!({"rows": device.rows, "nulls": device.nulls, "stages": list(&device.stages)});
        json!({
            "rows": self.rows, "row_bytes": self.row_bytes, "key": self.key, "pages": self.pages, "ties": self.ties,
            "stages": list(&self.stages()), "elapsed_ns": self.elapsed().as_ns(),
            "devices": self.devices.iter().map(device).collect::<Vec<Value>>(),
            "host": {"time": "wall-clock", "prepare_ns": self.prepare.as_nanos() as u64, "merge_ns": self.merge.as_nanos() as u64},
        })
    }
}
