// SPDX-License-Identifier: Apache-2.0

//! What the operations of a host cost, and the sizes of its buffers and its cache.

use sim::{Bar, Time};

/// How a set of the cache selects the line to evict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplacementPolicy {
    /// The least recently used one.
    Lru,
    /// A random one, from `host.seed`.
    Random,
}

/// The write-back cache, shared by all CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheParameters {
    /// Number of sets.
    pub sets: usize,
    /// Lines of a set.
    pub ways: usize,
    /// The replacement policy.
    pub policy: ReplacementPolicy,
}

/// The CPUs of a host. The default is one whose work takes no time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostParameters {
    /// CPU time to issue a load, or a store to the cache or a write-combining buffer.
    pub issue: Time,
    /// Interval between two uncached stores of a CPU that leave its store buffer.
    pub mmio_store: Time,
    /// Uncached stores that the store buffer of a CPU holds. While it is full, the CPU waits.
    pub store_buffer: usize,
    /// The CPU's part of the round trip of a load from a device.
    pub load: Time,
    /// From the flush of a write-combining buffer until the host's fabric has accepted it.
    pub wc_flush: Time,
    /// CPU time of one non-temporal store of up to 64 bytes.
    pub ntstore: Time,
    /// CPU time to issue one `clwb` or `clflushopt`.
    pub clwb: Time,
    /// From there until the host's fabric has accepted the line.
    pub clwb_drain: Time,
    /// CPU time of an `sfence` without outstanding stores.
    pub sfence: Time,
    /// From the issue of a load to its data on a cache hit.
    pub hit: Time,
    /// A load of host memory that misses all caches.
    pub dram: Time,
    /// CPU time of a copy within host memory, in ps per byte.
    pub copy_ps_per_byte: f64,
    /// Maximum number of open loads of one CPU from a device.
    pub fill_buffers: usize,
    /// Write-combining buffers of one CPU.
    pub wc_buffers: u32,
    /// The cache.
    pub cache: CacheParameters,
    /// Where a fence that reads back loads from each device; without it where the last store went.
    /// A device answers any load after all earlier stores, and a register sooner than media.
    pub read_back: Option<(Bar, u64)>,
}

impl Default for HostParameters {
    fn default() -> HostParameters {
        HostParameters {
            issue: Time::ZERO,
            mmio_store: Time::ZERO,
            store_buffer: 56,
            load: Time::ZERO,
            wc_flush: Time::ZERO,
            ntstore: Time::ZERO,
            clwb: Time::ZERO,
            clwb_drain: Time::ZERO,
            sfence: Time::ZERO,
            hit: Time::ZERO,
            dram: Time::ZERO,
            copy_ps_per_byte: 1.0,
            fill_buffers: 64,
            wc_buffers: 64,
            cache: CacheParameters {
                sets: 32 << 10,
                ways: 16,
                policy: ReplacementPolicy::Lru,
            },
            read_back: None,
        }
    }
}
