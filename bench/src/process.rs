// SPDX-License-Identifier: Apache-2.0

//! CPU time and memory of this process.

/// CPU time of this process in seconds, user and system. Other processes do not lengthen it, except
/// through the caches.
pub fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns = stat.split(' ').next().and_then(|n| n.parse::<f64>().ok());
    ns.unwrap_or(f64::NAN) / 1e9
}

/// Resident memory in MB.
pub fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    let kib = line.and_then(|l| l.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) * 1024.0 / 1e6
}

/// The CPU's name, as the kernel gives it.
pub fn cpu_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find_map(|l| l.strip_prefix("model name"));
    line.map_or("unknown", |l| l.trim_start_matches(['\t', ' ', ':']))
        .to_string()
}
