// SPDX-License-Identifier: Apache-2.0

//! The store: a pool of a simulated device, its power losses, and the times of requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use design::Design;
use device::Model;
use pm::session::{PoolUse, Session, SessionPool, SessionThread};
use pm::{Error, Layout, Mechanism, Result, Ticket};
use serde_json::{json, Value};
use sim::Time;

use crate::table::Table;

const POOL_NAME: &str = "front";
/// Marks a store during its creation, in the last line of the header's page. It distinguishes an
/// unfinished store from other content.
const CREATION_MARK: &[u8; 64] =
    b"NSFRONT: this pool is being made; its bytes are nobody's as yet.";
const CREATION_MARK_OFFSET: u64 = 4096 - 64;
/// Pages of 4 KiB that a transaction may change.
const MAX_PAGES_PER_TRANSACTION: u64 = 320;
/// Keys that one transaction of a flush removes.
const KEYS_PER_FLUSH: usize = 16;

/// The configuration of a store.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How transactions are made atomic.
    pub mechanism: Mechanism,
    /// The device is the executor; else the CPU.
    pub offload: bool,
    /// Bytes of the pool.
    pub bytes: u64,
    /// The power fails 400 ns after this number of writes: mostly during the next request.
    pub cut_after: Option<u64>,
    /// The power fails this much simulated time after the start.
    pub cut_at: Option<Time>,
}

/// Delay of the power cut after a number of writes: it falls into the next write.
const CUT_DELAY: Time = Time::ns(400);

#[derive(Default)]
struct RequestStats {
    requests: u64,
    sum: Time,
    max: Time,
}

impl RequestStats {
    fn add(&mut self, time: Time) {
        self.requests += 1;
        self.sum += time;
        self.max = self.max.max(time);
    }

    fn report(&self) -> Value {
        let mean = self.sum.0 as f64 / 1000. / self.requests.max(1) as f64;
        json!({
            "requests": self.requests,
            "simulated_mean_ns": mean,
            "simulated_max_ns": self.max.0 as f64 / 1000.,
        })
    }
}

/// Why a request has no result.
pub enum RequestError {
    /// The power has failed: a write under way was stored or not.
    Power,
    /// The request had no effect, except as the text says.
    Refused(String),
}

impl RequestError {
    /// The error of a request whose earlier transactions have removed entries.
    fn after_removals(self, gone: usize, of: usize) -> RequestError {
        match self {
            RequestError::Refused(text) if gone > 0 => RequestError::Refused(format!(
                "{gone} of {of} entries are gone, the others are not: {text}"
            )),
            other => other,
        }
    }
}

/// Whether a request may write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AccessMode {
    Read,
    Write,
}

/// A request whose transaction may not be durable yet.
struct UnansweredRequest {
    ticket: Ticket,
    kind: AccessMode,
    begin: Time,
}

/// A pool with a table, its scheduled power cuts, and its counters.
pub struct Store {
    session: Arc<Session>,
    config: Config,
    /// None if the pool has to be opened.
    open: Option<(SessionThread, SessionPool)>,
    /// Scheduled power cuts, the next one first.
    cuts: Vec<Time>,
    /// Number of power losses.
    pub(crate) losses: Arc<AtomicU64>,
    reads: RequestStats,
    writes: RequestStats,
    refused: u64,
    /// Writes that have been performed.
    written: u64,
    /// The oldest first.
    unanswered: Vec<UnansweredRequest>,
    /// How often requests without an answer may have been lost.
    epoch: u64,
}

fn pool_use(config: &Config) -> PoolUse {
    PoolUse {
        offload: config.offload,
        ..PoolUse::default()
    }
}

impl Store {
    /// Creates an empty store on a new device. If the device's media file has a store with this
    /// configuration, uses that one. Any other content is refused and stays.
    pub fn create(design: &Design, model: Model, config: Config) -> Result<Store> {
        let session = Arc::new(Session::start(design, model)?);
        let opened = match &design.media.file {
            None => None,
            Some(file) => open_existing(&session, &config, &sim::escape_controls(file.display()))?,
        };
        let (thread, pool) = match opened {
            Some(open) => open,
            None => create_new(&session, &config)?,
        };
        let mut store = Store {
            session,
            config,
            open: Some((thread, pool)),
            cuts: Vec::new(),
            losses: Arc::default(),
            reads: RequestStats::default(),
            writes: RequestStats::default(),
            refused: 0,
            written: 0,
            unanswered: Vec::new(),
            epoch: 0,
        };
        if let Some(time) = config.cut_at {
            store.schedule_cut(time)?;
        }
        Ok(store)
    }

    /// Schedules a power cut, in addition to earlier ones.
    fn schedule_cut(&mut self, later: Time) -> Result<()> {
        let at = Time(self.session.now().0.saturating_add(later.0));
        self.cuts.push(at);
        self.cuts.sort_unstable();
        self.arm_next_cut()
    }

    /// Arms the next scheduled power cut.
    fn arm_next_cut(&mut self) -> Result<()> {
        match self.cuts.first() {
            Some(at) => self
                .session
                .cut_power_after(at.saturating_sub(self.session.now())),
            None => Ok(()),
        }
    }

    /// Runs a request as one transaction. Its client gets the answer after [`Store::settle`], when
    /// the transaction is durable.
    pub fn run<R>(
        &mut self,
        kind: AccessMode,
        body: impl FnOnce(&mut Table<'_, '_>) -> Result<R>,
    ) -> std::result::Result<R, RequestError> {
        let start = self.session.now();
        let result = match &mut self.open {
            Some((thread, _)) => thread.run_later(|tx| body(&mut Table::open(tx)?)),
            None => Err(Error::Invalid("the pool is not open".into())),
        };
        if !self.session.has_power() {
            self.recover()?;
            return Err(RequestError::Power);
        }
        match result {
            Ok((value, ticket)) => {
                self.unanswered.push(UnansweredRequest {
                    ticket,
                    kind,
                    begin: start,
                });
                self.note_durable();
                self.written += u64::from(kind == AccessMode::Write);
                if kind == AccessMode::Write && self.config.cut_after == Some(self.written) {
                    self.cut(CUT_DELAY)?;
                }
                Ok(value)
            }
            Err(error) => {
                self.refused += 1;
                if !matches!(error, Error::Full(_) | Error::Invalid(_)) || self.open.is_none() {
                    self.reopen()?;
                }
                Err(RequestError::Refused(error.to_string()))
            }
        }
    }

    /// Counts the requests that are durable.
    fn note_durable(&mut self) {
        let Some((thread, _)) = &mut self.open else {
            return;
        };
        // An error is reported by the call that waits.
        let Ok(durable) = thread.durable() else {
            return;
        };
        let count = self.unanswered.partition_point(|one| one.ticket <= durable);
        let now = self.session.now();
        for one in self.unanswered.drain(..count) {
            let stats = match one.kind {
                AccessMode::Read => &mut self.reads,
                AccessMode::Write => &mut self.writes,
            };
            stats.add(now.saturating_sub(one.begin));
        }
    }

    /// A number that changes when requests without an answer may have been lost.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Waits until all requests so far are durable: then they may be answered.
    pub fn settle(&mut self) -> std::result::Result<(), RequestError> {
        let settled = match &mut self.open {
            Some((thread, _)) if !self.unanswered.is_empty() => thread.sync(),
            _ => return Ok(()),
        };
        if !self.session.has_power() {
            self.recover()?;
            return Err(RequestError::Power);
        }
        match settled {
            Ok(()) => {
                self.note_durable();
                Ok(())
            }
            Err(error) => {
                self.reopen()?;
                Err(RequestError::Refused(error.to_string()))
            }
        }
    }

    /// Requests without an answer may be lost.
    fn lose_unanswered(&mut self) {
        if !self.unanswered.is_empty() {
            self.unanswered.clear();
            self.epoch += 1;
        }
    }

    /// Schedules a power cut after this simulated time: 0 is now.
    pub fn cut(&mut self, later: Time) -> std::result::Result<(), RequestError> {
        if later > Time::ZERO {
            return self.schedule_cut(later).map_err(to_refusal);
        }
        self.session
            .cut_power(host::CutScope::All)
            .map_err(to_refusal)?;
        self.recover()?;
        Err(RequestError::Power)
    }

    /// Switches power on and opens the pool, again if the power fails meanwhile.
    fn recover(&mut self) -> std::result::Result<(), RequestError> {
        loop {
            self.losses.fetch_add(1, Ordering::Release);
            self.lose_unanswered();
            self.open = None;
            self.session.power_on().map_err(to_refusal)?;
            // A cut scheduled for the time without power has no effect.
            let now = self.session.now();
            self.cuts.retain(|at| *at > now);
            self.arm_next_cut().map_err(to_refusal)?;
            match self.open_pool() {
                Err(_) if !self.session.has_power() => {}
                other => return other.map_err(to_refusal),
            }
        }
    }

    fn reopen(&mut self) -> std::result::Result<(), RequestError> {
        match self.open_pool() {
            Err(_) if !self.session.has_power() => {
                self.recover()?;
                Err(RequestError::Power)
            }
            other => other.map_err(to_refusal),
        }
    }

    fn open_pool(&mut self) -> Result<()> {
        let synced = self.open.as_mut().map(|(thread, _)| thread.sync());
        match synced {
            Some(Ok(())) => self.note_durable(),
            _ => self.lose_unanswered(),
        }
        self.open = None;
        let pool = self.session.open(0, POOL_NAME, pool_use(&self.config))?;
        let thread = pool.thread(0)?;
        self.open = Some((thread, pool));
        Ok(())
    }

    /// Removes all entries, a few per transaction. A power loss or a refusal leaves the rest; the
    /// refusal says how many were removed.
    pub fn flush(&mut self) -> std::result::Result<(), RequestError> {
        let keys = self.run(AccessMode::Read, |table| table.keys())?;
        for (n, some) in keys.chunks(KEYS_PER_FLUSH).enumerate() {
            let done = self.run(AccessMode::Write, |table| {
                some.iter().try_for_each(|key| table.remove(key).map(drop))
            });
            done.map_err(|failure| failure.after_removals(n * KEYS_PER_FLUSH, keys.len()))?;
        }
        Ok(())
    }

    /// The counters of the store. Times are simulated.
    pub fn report(&self) -> Value {
        json!({
            "mechanism": self.config.mechanism.name(),
            "by": if self.config.offload { "device" } else { "cpu" },
            "reads": self.reads.report(),
            "writes": self.writes.report(),
            "refused": self.refused,
            "power_losses": self.losses.load(Ordering::Relaxed),
            "simulated_us": self.session.now().0 as f64 / 1e6,
        })
    }
}

/// Opens the store of a media file; none if the file is empty.
fn open_existing(
    session: &Arc<Session>,
    config: &Config,
    file: &str,
) -> Result<Option<(SessionThread, SessionPool)>> {
    let mut line = [0; 64];
    session.load(CREATION_MARK_OFFSET, &mut line)?;
    if line == *CREATION_MARK {
        return Ok(None);
    }
    let pool = match session.open(0, POOL_NAME, pool_use(config)) {
        Ok(pool) => pool,
        Err(Error::NoPool(why)) => {
            let mut bytes = vec![0; 1 << 20];
            for at in (0..config.bytes).step_by(bytes.len()) {
                let len = (config.bytes - at).min(bytes.len() as u64) as usize;
                session.load(at, &mut bytes[..len])?;
                if bytes[..len].iter().any(|byte| *byte != 0) {
                    return Err(Error::Invalid(format!(
                        "media file {file}: {} bytes from its start on are wanted, and hold \
                         something that is no store ({why}): name another file",
                        config.bytes
                    )));
                }
            }
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let (is, bytes) = (pool.layout().mechanism, pool.bytes());
    if (is, bytes) != (config.mechanism, config.bytes) {
        return Err(Error::Invalid(format!(
            "media file {file}: its store has mechanism {} and {bytes} bytes, and {} and {} were \
             asked for: allowed are these values, or another file",
            is.name(),
            config.mechanism.name(),
            config.bytes
        )));
    }
    Ok(Some((pool.thread(0)?, pool)))
}

/// Creates a new store.
fn create_new(session: &Arc<Session>, config: &Config) -> Result<(SessionThread, SessionPool)> {
    let layout = Layout {
        threads: 1,
        log_bytes: (MAX_PAGES_PER_TRANSACTION * 4096 + 4096) * 5 / 4 / 4096 * 4096,
        spare_pages: MAX_PAGES_PER_TRANSACTION,
        ..Layout::new(POOL_NAME).with_mechanism(config.mechanism)
    };
    session.store(CREATION_MARK_OFFSET, CREATION_MARK)?;
    let pool = session.create(0, config.bytes, &layout, pool_use(config))?;
    let mut thread = pool.thread(0)?;
    thread.run(Table::create)?;
    thread.finish()?;
    session.store(CREATION_MARK_OFFSET, &[0; 64])?;
    Ok((thread, pool))
}

fn to_refusal(error: Error) -> RequestError {
    RequestError::Refused(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each option causes its power loss, whichever comes first. One that a client schedules does
    /// not replace them.
    #[test]
    fn scheduled_power_cuts_all_take_place() {
        let design = Design::find("nearpm").unwrap();
        for (after, at, client) in [(2, 300, 0), (60, 1, 0), (2, 300, 200)] {
            let config = Config {
                mechanism: Mechanism::Undo,
                offload: true,
                bytes: 16 << 20,
                cut_after: Some(after),
                cut_at: Some(Time::us(at)),
            };
            let mut store = Store::create(&design, Model::Fast, config).unwrap();
            let start = store.session.now();
            let mut losses = Vec::new();
            let mut ordered = client == 0;
            for n in 0..300u64 {
                if !ordered && n == 1 {
                    ordered = true;
                    assert!(store.cut(Time::us(client)).is_ok());
                }
                let written = store.run(AccessMode::Write, |table| {
                    table.put(&n.to_le_bytes(), b"x", 0)
                });
                match written {
                    Ok(()) => {}
                    Err(RequestError::Power) => losses.push(store.session.now() - start),
                    Err(RequestError::Refused(text)) => panic!("{text}"),
                }
            }
            let wanted = 2 + u64::from(client > 0);
            assert_eq!(
                store.losses.load(Ordering::Acquire),
                wanted,
                "{after}, {at}: {losses:?}"
            );
            assert!(
                losses.iter().any(|time| *time >= Time::us(at)),
                "{losses:?}"
            );
        }
    }

    /// Requests before a wait share it, and a power loss before it changes the epoch.
    #[test]
    fn requests_become_durable_together() {
        let design = Design::find("nearpm").unwrap();
        for (mechanism, offload) in Mechanism::ALL
            .into_iter()
            .flat_map(|m| [(m, false), (m, true)])
        {
            let config = Config {
                mechanism,
                offload,
                bytes: 16 << 20,
                cut_after: None,
                cut_at: None,
            };
            let mut store = Store::create(&design, Model::Fast, config).unwrap();
            let put = |store: &mut Store, n: u64| {
                let done = store.run(AccessMode::Write, |table| {
                    table.put(&n.to_le_bytes(), b"x", 0)
                });
                assert!(done.is_ok());
            };
            let fences = |store: &Store| {
                let open = store.open.as_ref();
                open.map_or(0, |(thread, _)| thread.counts().fences)
            };
            (0..8).for_each(|n| put(&mut store, n));
            let seen = store.run(AccessMode::Read, |table| Ok(table.len()));
            assert!(matches!(seen, Ok(8)));
            assert_eq!((store.unanswered.len(), store.writes.requests), (9, 0));
            let (epoch, before) = (store.epoch(), fences(&store));
            assert!(store.settle().is_ok());
            let waited = fences(&store) - before;
            assert!(
                waited > 0 && (!offload || waited == 1),
                "{mechanism:?}: {waited}"
            );
            assert_eq!((store.unanswered.len(), store.writes.requests), (0, 8));
            assert_eq!((store.reads.requests, store.epoch()), (1, epoch));
            put(&mut store, 8);
            assert!(matches!(store.cut(Time::ZERO), Err(RequestError::Power)));
            assert_eq!((store.unanswered.len(), store.epoch()), (0, epoch + 1));
            let seen = store.run(AccessMode::Read, |table| Ok(table.len()));
            assert!(matches!(seen, Ok(8 | 9)));
        }
    }

    #[test]
    fn refusal_reports_removed_entries() {
        let text = |gone| match RequestError::Refused("full".into()).after_removals(gone, 40) {
            RequestError::Refused(text) => text,
            RequestError::Power => String::new(),
        };
        assert_eq!(text(0), "full");
        assert_eq!(
            text(16),
            "16 of 40 entries are gone, the others are not: full"
        );
        assert!(matches!(
            RequestError::Power.after_removals(16, 40),
            RequestError::Power
        ));
    }
}
