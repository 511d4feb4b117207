//! The store: a pool of a simulated device, losses of its power, and what requests took.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use design::Design;
use device::Engine;
use pm::session::{Session, SessionPool, SessionThread, Use};
use pm::{Error, Layout, Mechanism, Result};
use serde_json::{json, Value};
use sim::Time;

use crate::table::Table;

const NAME: &str = "front";
/// Pages of 4 KiB that a transaction may change.
const PAGES: u64 = 320;
/// Keys that one transaction of a flush takes out.
const FLUSHED: usize = 16;

/// What a store is made of.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// What makes transactions whole.
    pub mechanism: Mechanism,
    /// The device does its work, else the CPU.
    pub offload: bool,
    /// Bytes of the pool.
    pub bytes: u64,
    /// The power fails 400 ns behind the end of so many writes: mostly in the next request.
    pub cut_after: Option<u64>,
    /// The power fails so much simulated time after the start.
    pub cut_at: Option<Time>,
}

/// How long after a write the power fails, where a number of writes was asked for: in the middle of the next.
const INTO_WRITE: Time = Time::ns(400);

#[derive(Default)]
struct Took {
    requests: u64,
    sum: Time,
    most: Time,
}

impl Took {
    fn add(&mut self, time: Time) {
        self.requests += 1;
        self.sum += time;
        self.most = self.most.max(time);
    }

    fn report(&self) -> Value {
        let mean = self.sum.0 as f64 / 1000. / self.requests.max(1) as f64;
        json!({
            "requests": self.requests,
            "simulated_mean_ns": mean,
            "simulated_max_ns": self.most.0 as f64 / 1000.,
        })
    }
}

/// Why a request has no answer.
pub enum Failure {
    /// The power has failed: a write that was under way is there, or it is not.
    Power,
    /// Nothing of it was done, unless the text says what was.
    Refused(String),
}

impl Failure {
    /// The same, behind transactions of the request that have taken entries out.
    fn behind(self, gone: usize, of: usize) -> Failure {
        match self {
            Failure::Refused(text) if gone > 0 => Failure::Refused(format!(
                "{gone} of {of} entries are gone, the others are not: {text}"
            )),
            other => other,
        }
    }
}

/// A request reads, or it may write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
}

/// See the module.
pub struct Store {
    session: Arc<Session>,
    config: Config,
    /// None: it has to be opened.
    open: Option<(SessionThread, SessionPool)>,
    /// How often the power has failed.
    pub(crate) losses: Arc<AtomicU64>,
    reads: Took,
    writes: Took,
    refused: u64,
}

fn usage(config: &Config) -> Use {
    Use {
        offload: config.offload,
        ..Use::default()
    }
}

impl Store {
    /// Makes an empty one in a new device.
    pub fn create(design: &Design, engine: Engine, config: Config) -> Result<Store> {
        let session = Arc::new(Session::start(design, engine)?);
        let layout = Layout {
            threads: 1,
            log_bytes: (PAGES * 4096 + 4096) * 5 / 4 / 4096 * 4096,
            spare_pages: PAGES,
            ..Layout::new(NAME).with(config.mechanism)
        };
        let pool = session.create(0, config.bytes, &layout, usage(&config))?;
        let mut thread = pool.thread(0)?;
        thread.run(Table::create)?;
        thread.finish()?;
        if let Some(time) = config.cut_at {
            session.cut_power_after(time)?;
        }
        Ok(Store {
            session,
            config,
            open: Some((thread, pool)),
            losses: Arc::default(),
            reads: Took::default(),
            writes: Took::default(),
            refused: 0,
        })
    }

    /// Runs a request as one transaction, which is persistent behind this.
    pub fn run<R>(
        &mut self,
        kind: Kind,
        body: impl FnOnce(&mut Table<'_, '_>) -> Result<R>,
    ) -> std::result::Result<R, Failure> {
        let start = self.session.now();
        let result = match &mut self.open {
            Some((thread, _)) => thread.run(|tx| body(&mut Table::open(tx)?)),
            None => Err(Error::Invalid("the pool is not open".into())),
        };
        if !self.session.has_power() {
            self.recover()?;
            return Err(Failure::Power);
        }
        match result {
            Ok(value) => {
                let took = match kind {
                    Kind::Read => &mut self.reads,
                    Kind::Write => &mut self.writes,
                };
                took.add(self.session.now().saturating_sub(start));
                if kind == Kind::Write && self.config.cut_after == Some(self.writes.requests) {
                    self.cut(INTO_WRITE)?;
                }
                Ok(value)
            }
            Err(error) => {
                self.refused += 1;
                if !matches!(error, Error::Full(_) | Error::Invalid(_)) || self.open.is_none() {
                    self.reopen()?;
                }
                Err(Failure::Refused(error.to_string()))
            }
        }
    }

    /// Lets the power fail so much simulated time later: 0 is now.
    pub fn cut(&mut self, later: Time) -> std::result::Result<(), Failure> {
        if later > Time::ZERO {
            let ordered = self.session.cut_power_after(later);
            return ordered.map_err(refused);
        }
        self.session.cut_power(host::Cut::All).map_err(refused)?;
        self.recover()?;
        Err(Failure::Power)
    }

    fn recover(&mut self) -> std::result::Result<(), Failure> {
        self.losses.fetch_add(1, Ordering::Release);
        self.open = None;
        self.session.power_on().map_err(refused)?;
        self.reopen()
    }

    fn reopen(&mut self) -> std::result::Result<(), Failure> {
        self.open = None;
        let opened = self.session.open(0, NAME, usage(&self.config));
        let pool = opened.map_err(refused)?;
        let thread = pool.thread(0).map_err(refused)?;
        self.open = Some((thread, pool));
        Ok(())
    }

    /// Takes all entries out, some in a transaction: a loss of power leaves the rest, and so does a refusal, which says how many are gone.
    pub fn flush(&mut self) -> std::result::Result<(), Failure> {
        let keys = self.run(Kind::Read, |table| table.keys())?;
        for (n, some) in keys.chunks(FLUSHED).enumerate() {
            let done = self.run(Kind::Write, |table| {
                some.iter().try_for_each(|key| table.remove(key).map(drop))
            });
            done.map_err(|failure| failure.behind(n * FLUSHED, keys.len()))?;
        }
        Ok(())
    }

    /// What it has done. Times are simulated.
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

fn refused(error: Error) -> Failure {
    Failure::Refused(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_is_gone() {
        let text = |gone| match Failure::Refused("full".into()).behind(gone, 40) {
            Failure::Refused(text) => text,
            Failure::Power => String::new(),
        };
        assert_eq!(text(0), "full");
        assert_eq!(
            text(16),
            "16 of 40 entries are gone, the others are not: full"
        );
        assert!(matches!(Failure::Power.behind(16, 40), Failure::Power));
    }
}
