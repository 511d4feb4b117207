// SPDX-License-Identifier: Apache-2.0

//! Memory of this process, with the media of its devices counted separately.

use std::time::{Duration, Instant};

/// Interval of reads of the system's peak.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(10);
/// Interval of scans of the media, which visit all of their pages.
const MEDIA_INTERVAL: Duration = Duration::from_millis(200);
/// Growth of the peak that causes an earlier scan.
const STEP: u64 = 8 << 20;

/// The highest memory use so far.
pub struct MemoryPeak {
    /// Bytes in memory that are not media, including libraries, Python and the simulation.
    pub host: u64,
    /// Bytes of media in memory.
    pub media: u64,
    /// The system's peak at the last sample, and the media at that time.
    peak: u64,
    media_last: u64,
    sampled: Instant,
    last: Instant,
}

impl MemoryPeak {
    /// The present use.
    pub fn now() -> MemoryPeak {
        let (now, peak) = status();
        let media = sim::Media::resident();
        MemoryPeak {
            host: now.saturating_sub(media),
            media,
            peak,
            media_last: media,
            sampled: Instant::now(),
            last: Instant::now(),
        }
    }

    /// Takes a sample if the interval has passed.
    pub fn sample(&mut self) {
        if self.sampled.elapsed() < SAMPLE_INTERVAL {
            return;
        }
        self.sampled = Instant::now();
        let found = status();
        if self.last.elapsed() >= MEDIA_INTERVAL || found.1 > self.peak + STEP {
            self.add(found);
        }
    }

    /// Takes a final sample. Nothing before it is missed, as the system records its peak.
    pub fn finish(&mut self) {
        self.add(status());
    }

    fn add(&mut self, (now, peak): (u64, u64)) {
        let media = sim::Media::resident();
        self.media = self.media.max(media);
        self.host = self.host.max(now.saturating_sub(media));
        if peak > self.peak {
            // The time of the peak is unknown, and media of that time may be gone.
            let media = media.max(self.media_last);
            self.host = self.host.max(peak.saturating_sub(media));
        }
        (self.peak, self.media_last) = (peak, media);
        self.last = Instant::now();
    }
}

/// Resident bytes of this process, mapped files included, and their peak. Zeros if the system does
/// not report them.
fn status() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let mut lines = status.lines().filter_map(|line| line.strip_prefix(name));
        let kib = lines.next().and_then(|rest| rest.split_whitespace().next());
        kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
    };
    (field("VmRSS:"), field("VmHWM:"))
}
