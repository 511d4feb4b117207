// SPDX-License-Identifier: Apache-2.0

//! Admission of clients, and eviction when all places are taken.
//!
//! A silent client keeps its place as long as no other client needs it. A request that has begun
//! has to be complete within a bounded time. When all places are taken, a new client evicts the one
//! that is least likely to miss its connection, if there is one.

use std::time::{Duration, Instant};

/// Time limits of clients, and their number.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Clients at a time.
    pub clients: usize,
    /// From the first byte of a request to its last one, without the time that requests before it
    /// take.
    pub request: Duration,
    /// After this time without a byte within a request, a new client may evict the client.
    pub stalled: Duration,
    /// The same between two requests, and for a client that takes no replies.
    pub idle: Duration,
    /// Time for a client to take its last reply before the connection ends.
    pub linger: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            clients: crate::MAX_CLIENTS,
            request: Duration::from_secs(60),
            stalled: Duration::from_secs(1),
            idle: Duration::from_secs(60),
            linger: Duration::from_secs(2),
        }
    }
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waiting for a request.
    Idle,
    /// Waiting for the rest of a request.
    Reading,
    /// Waiting for the store, or in it.
    Working,
    /// Waiting for the client to take replies.
    Sending,
    /// Everything has been sent.
    Ending,
}

/// The state that eviction depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Activity {
    pub phase: Phase,
    /// A request of this client has been answered.
    pub served: bool,
    /// When the phase began; further bytes of a request do not restart it.
    pub since: Instant,
    /// The last transfer of bytes in either direction.
    pub last_transfer: Instant,
}

impl Activity {
    /// True if a request takes too long to arrive.
    pub(crate) fn is_late(&self, limits: &Limits, now: Instant) -> bool {
        self.phase == Phase::Reading && now.saturating_duration_since(self.since) > limits.request
    }

    /// The rank in the order of eviction; `None` for a client that is never evicted.
    fn eviction_rank(&self, limits: &Limits, now: Instant) -> Option<u8> {
        let still = now.saturating_duration_since(self.last_transfer);
        match self.phase {
            Phase::Ending => Some(0),
            Phase::Idle if !self.served => Some(0),
            Phase::Reading => (still >= limits.stalled).then_some(1),
            Phase::Idle | Phase::Sending => (still >= limits.idle).then_some(2),
            Phase::Working => None,
        }
    }
}

/// Chooses the client that a new client evicts.
pub(crate) fn choose_evicted(clients: &[Activity], limits: &Limits, now: Instant) -> Option<usize> {
    let ranked = clients.iter().enumerate();
    let ranked =
        ranked.filter_map(|(n, c)| Some((c.eviction_rank(limits, now)?, c.last_transfer, n)));
    ranked.min().map(|(_, _, n)| n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eviction_chooses_silent_and_stalled_clients_only() {
        let limits = Limits::default();
        let start = Instant::now();
        let now = start + Duration::from_secs(1000);
        let client = |phase, served, still_ms| Activity {
            phase,
            served,
            since: start,
            last_transfer: now - Duration::from_millis(still_ms),
        };
        let busy = [
            client(Phase::Working, true, 900_000),
            client(Phase::Working, false, 900_000),
            client(Phase::Reading, true, 900),
            client(Phase::Idle, true, 59_000),
            client(Phase::Sending, true, 59_000),
        ];
        assert_eq!(choose_evicted(&busy, &limits, now), None);
        for (added, wins) in [
            (client(Phase::Idle, false, 0), true),
            (client(Phase::Ending, true, 0), true),
            (client(Phase::Reading, true, 1000), true),
            (client(Phase::Idle, true, 60_000), true),
            (client(Phase::Sending, true, 60_000), true),
            (client(Phase::Idle, true, 0), false),
        ] {
            let all = [&busy[..], &[added]].concat();
            let chosen = wins.then_some(busy.len());
            assert_eq!(choose_evicted(&all, &limits, now), chosen, "{added:?}");
        }
        // Clients that have never sent anything come first, the longest silent one of them before
        // the others.
        let order = [
            client(Phase::Idle, true, 900_000),
            client(Phase::Reading, true, 5000),
            client(Phase::Idle, false, 10),
            client(Phase::Idle, false, 20),
        ];
        assert_eq!(choose_evicted(&order, &limits, now), Some(3));
        assert_eq!(choose_evicted(&order[..3], &limits, now), Some(2));
        assert_eq!(choose_evicted(&order[..2], &limits, now), Some(1));
        assert_eq!(choose_evicted(&order[..1], &limits, now), Some(0));
    }

    #[test]
    fn deadline_applies_to_begun_requests_only() {
        let (limits, start) = (Limits::default(), Instant::now());
        let now = start + Duration::from_secs(61);
        for phase in [Phase::Idle, Phase::Working, Phase::Sending, Phase::Reading] {
            let client = |last_transfer| Activity {
                phase,
                served: true,
                since: start,
                last_transfer,
            };
            // Single bytes do not extend the time.
            for last_transfer in [start, now] {
                assert_eq!(
                    client(last_transfer).is_late(&limits, now),
                    phase == Phase::Reading
                );
            }
            let before = start + Duration::from_secs(59);
            assert!(!client(start).is_late(&limits, before));
        }
    }
}
