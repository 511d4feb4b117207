// SPDX-License-Identifier: Apache-2.0

//! Results as values for [`crate::document::Document`].

use design::media::{cap_gb_s, time_ns};
use driver::control::{block, DelayCounters, Inventory, MemoryInfo};
use driver::workload::JobResult;
use driver::{Latencies, Namespace, RunReport};
use serde_json::{json, Value};
use sim::Clock;
use spec::nvm_delay::Registers;
use spec::regs::nvm_delay::control::ENABLE;

/// Latencies in ns of simulated time. Null if there are none.
pub fn latency(latency: &Latencies) -> Value {
    match latency.summary() {
        None => Value::Null,
        Some(s) => json!({
            "count": s.count, "mean_ns": s.mean_ns, "min_ns": s.min_ns, "p50_ns": s.p50_ns,
            "p99_ns": s.p99_ns, "p999_ns": s.p999_ns, "max_ns": s.max_ns,
        }),
    }
}

/// The report of a run.
pub fn report(r: &RunReport) -> Value {
    let mut all = r.read.clone();
    all.merge(&r.write);
    json!({
        "time": "simulated",
        "commands": r.commands,
        "commands_by_queue": r.by_queue,
        "bytes": r.bytes,
        "elapsed_ns": r.elapsed.as_ns(),
        "bandwidth_gb_s": r.bandwidth() / 1e9,
        "iops": r.iops(),
        "latency": latency(&all),
        "read_latency": latency(&r.read),
        "write_latency": latency(&r.write),
    })
}

/// The result of a job.
pub fn outcome(o: &JobResult) -> Value {
    let mut value = report(&o.report);
    value["verified_bytes"] = json!(o.verified_bytes);
    value
}

/// Counters of one direction of an `nvm_delay`.
pub fn delay_counters(c: &DelayCounters, clock: Clock) -> Value {
    let ns = |cycles: f64| clock.ns(cycles);
    let any = c.transactions > 0;
    json!({
        "transactions": c.transactions,
        "beats": c.beats,
        "late": c.late,
        "mean_ns": any.then(|| ns(c.latency_sum as f64 / c.transactions as f64)),
        "min_ns": any.then(|| ns(c.latency_min.into())),
        "max_ns": any.then(|| ns(c.latency_max.into())),
        "buckets": c.buckets,
    })
}

/// The blocks of a device.
pub fn inventory(i: &Inventory) -> Value {
    let blocks: Vec<Value> = i
        .blocks
        .iter()
        .map(|b| {
            json!({
                "type": b.kind, "name": block::name(b.kind),
                "version": format!("{}.{}", b.version.0, b.version.1),
                "instance": b.instance, "bar": b.bar, "offset": b.offset, "size": b.size,
                "capabilities": b.capabilities,
            })
        })
        .collect();
    let memories: Vec<Value> = i
        .memories()
        .iter()
        .map(|m| {
            json!({
                "name": m.name(), "base": m.base, "bytes": m.bytes,
                "first_channel": m.first_channel,
                "channels": m.turns.channels, "granule": m.turns.granule,
            })
        })
        .collect();
    json!({
        "memories": memories,
        "layout": i.version, "clock_khz": i.clock.khz(), "media_bytes": i.media_bytes,
        "channels": i.channels, "granule": i.granule, "blocks": blocks,
    })
}

/// A namespace.
pub fn namespace(nsid: u32, ns: &Namespace) -> Value {
    json!({
        "nsid": nsid, "blocks": ns.size, "block_bytes": ns.block_bytes, "bytes": ns.bytes(),
        "nguid": ns.nguid.iter().map(|b| format!("{b:02x}")).collect::<String>(),
    })
}

/// Timing of a channel of a memory.
pub fn timing(r: &Registers, clock: Clock, memory: &MemoryInfo, commits: u8) -> Value {
    let channels = memory.turns.channels;
    let of = |base: u32, beat: u32, cap: Option<u32>| {
        let cap = cap
            .filter(|&raw| raw > 0)
            .map(|raw| cap_gb_s(raw, clock, channels));
        json!({"base_ns": time_ns(base, clock), "beat_ns": time_ns(beat, clock), "cap_gb_s": cap})
    };
    let regions: Vec<Value> = r
        .regions
        .iter()
        .map(|&[first, last, a, b, c, d]| {
            json!({
                "first_page": first, "last_page": last,
                "read": of(a, b, None), "write": of(c, d, None),
            })
        })
        .collect();
    let [a, b, c, d] = r.timing;
    json!({
        "memory": memory.name(),
        "enabled": ENABLE.is_set(r.control.into()), "commits": commits,
        "read": of(a, b, Some(r.read_cap)), "write": of(c, d, Some(r.write_cap)),
        "regions": regions,
    })
}
