//! Memory of this process: its own, and what is its devices' media.

use std::time::{Duration, Instant};

/// Between two looks: one goes through all pages of the media.
const INTERVAL: Duration = Duration::from_millis(200);

/// The most that was seen.
pub struct Memory {
    /// Bytes in memory that are not media: libraries, Python and the simulation itself among them.
    pub host: u64,
    /// Of media in memory.
    pub media: u64,
    last: Instant,
}

impl Memory {
    /// As it is.
    pub fn now() -> Memory {
        let media = sim::Media::resident();
        Memory {
            host: resident().saturating_sub(media),
            media,
            last: Instant::now(),
        }
    }

    /// Looks, if it is time to.
    pub fn look(&mut self) {
        if self.last.elapsed() < INTERVAL {
            return;
        }
        let now = Memory::now();
        self.host = self.host.max(now.host);
        self.media = self.media.max(now.media);
        self.last = Instant::now();
    }
}

/// Bytes of this process that are in memory, files' pages that it maps included; nothing if the system does not tell.
fn resident() -> u64 {
    let told = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = told.lines().filter_map(|line| line.strip_prefix("VmRSS:"));
    let kib = lines.next().and_then(|rest| rest.split_whitespace().next());
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
}
