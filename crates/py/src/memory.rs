//! MemoryPeak of this process: its own, and what is its devices' media.

use std::time::{Duration, Instant};

/// Between two looks at whether the system has seen more.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(10);
/// Between two looks at the media, all of whose pages one goes through.
const MEDIA_INTERVAL: Duration = Duration::from_millis(200);
/// Bytes more that are worth one before.
const STEP: u64 = 8 << 20;

/// The most that was seen.
pub struct MemoryPeak {
    /// Bytes in memory that are not media: libraries, Python and the simulation itself among them.
    pub host: u64,
    /// Of media in memory.
    pub media: u64,
    /// What the system had seen at most at the last look, and of media was there then.
    peak: u64,
    media_last: u64,
    sampled: Instant,
    last: Instant,
}

impl MemoryPeak {
    /// As it is.
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

    /// Looks, if it is time to.
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

    /// Looks, so that nothing before was missed: the system remembers the most that it has seen.
    pub fn finish(&mut self) {
        self.add(status());
    }

    fn add(&mut self, (now, peak): (u64, u64)) {
        let media = sim::Media::resident();
        self.media = self.media.max(media);
        self.host = self.host.max(now.saturating_sub(media));
        if peak > self.peak {
            // When that was nobody knows: what was there of media then may be gone.
            let media = media.max(self.media_last);
            self.host = self.host.max(peak.saturating_sub(media));
        }
        (self.peak, self.media_last) = (peak, media);
        self.last = Instant::now();
    }
}

/// Bytes of this process that are in memory, files' pages that it maps included, and the most that ever were; nothing if the system does not tell.
fn status() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let mut lines = status.lines().filter_map(|line| line.strip_prefix(name));
        let kib = lines.next().and_then(|rest| rest.split_whitespace().next());
        kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
    };
    (field("VmRSS:"), field("VmHWM:"))
}
