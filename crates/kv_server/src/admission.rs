//! Who gets one of the places for clients, and who has to give his up.
//!
//! Nobody loses a place for being silent, as long as nobody else wants it. A request that has begun
//! has to be whole in a bounded time. When all places are taken, a newcomer gets the place of the
//! client that is least likely to miss it, if there is one.

use std::time::{Duration, Instant};

/// How long clients are waited for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Clients at a time.
    pub clients: usize,
    /// From the first byte of a request to its last one, without the time that requests before it
    /// take.
    pub request: Duration,
    /// After so long without a byte of a request that has begun, its client may have to give its
    /// place to a newcomer.
    pub stalled: Duration,
    /// The same between two requests, and of a client that takes no replies.
    pub idle: Duration,
    /// For a client to take its last reply before the connection ends.
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

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It waits for a request.
    Idle,
    /// It waits for the rest of a request.
    Reading,
    /// It waits for the store, or is served by it.
    Working,
    /// It waits for its client to take replies.
    Sending,
    /// It has sent all that it will.
    Ending,
}

/// What the choice goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Activity {
    pub phase: Phase,
    /// A request of this client has been answered.
    pub served: bool,
    /// When the phase began; a request's next bytes don't begin it anew.
    pub since: Instant,
    /// When bytes last went either way.
    pub last_transfer: Instant,
}

impl Activity {
    /// A request takes too long to come.
    pub(crate) fn is_late(&self, limits: &Limits, now: Instant) -> bool {
        self.phase == Phase::Reading && now.saturating_duration_since(self.since) > limits.request
    }

    /// How readily its place is given to another client; `None`: not at all.
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

/// Which of the clients gives its place to a newcomer.
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
        // First those that have never said anything, the longest silent one of them before all.
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
            // A byte now and then doesn't help.
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
