// SPDX-License-Identifier: Apache-2.0

//! Tracked pools: the engine makes a record of a line before the first store to it in an epoch.

use super::{RecordKind, THREADS};

/// Records in flight that the engine makes without a command. Their numbers follow those of the
/// host's commands.
pub const INTERNAL_RECORDS: usize = 16;
/// Most lines of a pool that have a record in an epoch.
pub const TRACKED_LINES: usize = 1024;

/// Bits of `extra` of pool_map.
const THREADS_MASK: u64 = 0x1F;
const IS_TRACKED: u64 = 1 << 8;
const IS_CHECKPOINT: u64 = 1 << 9;

/// Whether the engine makes records without commands, and of which kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracking {
    /// Only commands make records.
    #[default]
    Disabled,
    /// Undo records.
    Undo,
    /// Checkpoints, of a line each.
    Checkpoint,
}

impl Tracking {
    /// Its bits of `extra` of pool_map.
    pub fn bits(self) -> u64 {
        match self {
            Tracking::Disabled => 0,
            Tracking::Undo => IS_TRACKED,
            Tracking::Checkpoint => IS_TRACKED | IS_CHECKPOINT,
        }
    }

    /// Threads and tracking of `extra` of pool_map; `None` if it is invalid. A tracked pool has one
    /// thread, since stores do not say whose they are.
    pub fn from_extra(extra: u64) -> Option<(u8, Tracking)> {
        let threads = (extra & THREADS_MASK) as u8;
        let all = [Tracking::Disabled, Tracking::Undo, Tracking::Checkpoint];
        let found = all
            .into_iter()
            .find(|tracking| tracking.bits() == extra & !THREADS_MASK);
        let tracking = found?;
        let most = match tracking {
            Tracking::Disabled => THREADS,
            Tracking::Undo | Tracking::Checkpoint => 1,
        };
        (1..=most).contains(&threads).then_some((threads, tracking))
    }

    /// The kind of its records, if it makes any.
    pub fn record_kind(self) -> Option<RecordKind> {
        match self {
            Tracking::Disabled => None,
            Tracking::Undo => Some(RecordKind::Undo),
            Tracking::Checkpoint => Some(RecordKind::Checkpoint),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearpm_tracking_allows_one_thread_and_refuses_unknown_bits() {
        for extra in (0..1 << 12).chain([1 << 32 | 1, u64::MAX]) {
            let found = Tracking::from_extra(extra);
            let want = match extra {
                1..=16 => Some((extra as u8, Tracking::Disabled)),
                0x101 => Some((1, Tracking::Undo)),
                0x301 => Some((1, Tracking::Checkpoint)),
                _ => None,
            };
            assert_eq!(found, want, "{extra:#x}");
            if let Some((threads, tracking)) = found {
                assert_eq!(u64::from(threads) | tracking.bits(), extra);
            }
        }
    }
}
