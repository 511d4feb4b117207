//! The store: a pool of a simulated device, losses of its power, and what requests took.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use design::Design;
use device::Model;
use pm::session::{PoolUse, Session, SessionPool, SessionThread};
use pm::{Error, Layout, Mechanism, Result};
use serde_json::{json, Value};
use sim::Time;

use crate::table::Table;

const NAME: &str = "front";
/// In the last line of the header's page while the store is made: so one that was not finished is told from what is another's.
const UNDER_WAY: &[u8; 64] = b"NSFRONT: this pool is being made; its bytes are nobody's as yet.";
const UNDER_WAY_AT: u64 = 4096 - 64;
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
    /// When the power is to fail, the next time first.
    cuts: Vec<Time>,
    /// How often the power has failed.
    pub(crate) losses: Arc<AtomicU64>,
    reads: Took,
    writes: Took,
    refused: u64,
}

fn usage(config: &Config) -> PoolUse {
    PoolUse {
        offload: config.offload,
        ..PoolUse::default()
    }
}

impl Store {
    /// Makes an empty one in a new device. If the device has a media file with one, goes on with that; what else stands where it is to be
    /// is another's, and stays.
    pub fn create(design: &Design, model: Model, config: Config) -> Result<Store> {
        let session = Arc::new(Session::start(design, model)?);
        let opened = match &design.media.file {
            None => None,
            Some(file) => found(&session, &config, &file.display().to_string())?,
        };
        let (thread, pool) = match opened {
            Some(open) => open,
            None => made(&session, &config)?,
        };
        let mut store = Store {
            session,
            config,
            open: Some((thread, pool)),
            cuts: Vec::new(),
            losses: Arc::default(),
            reads: Took::default(),
            writes: Took::default(),
            refused: 0,
        };
        if let Some(time) = config.cut_at {
            store.order(time)?;
        }
        Ok(store)
    }

    /// Lets the power fail so much later, beside what was ordered before.
    fn order(&mut self, later: Time) -> Result<()> {
        let at = Time(self.session.now().0.saturating_add(later.0));
        self.cuts.push(at);
        self.cuts.sort_unstable();
        self.arm()
    }

    /// The next loss of power that was ordered and has not come.
    fn arm(&mut self) -> Result<()> {
        match self.cuts.first() {
            Some(at) => self
                .session
                .cut_power_after(at.saturating_sub(self.session.now())),
            None => Ok(()),
        }
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
            return self.order(later).map_err(refused);
        }
        self.session.cut_power(host::Cut::All).map_err(refused)?;
        self.recover()?;
        Err(Failure::Power)
    }

    /// Brings power and pool back, once more when the power fails meanwhile.
    fn recover(&mut self) -> std::result::Result<(), Failure> {
        loop {
            self.losses.fetch_add(1, Ordering::Release);
            self.open = None;
            self.session.power_on().map_err(refused)?;
            // One that was to come meanwhile has found no power.
            let now = self.session.now();
            self.cuts.retain(|at| *at > now);
            self.arm().map_err(refused)?;
            match self.opened() {
                Err(_) if !self.session.has_power() => {}
                other => return other.map_err(refused),
            }
        }
    }

    fn reopen(&mut self) -> std::result::Result<(), Failure> {
        match self.opened() {
            Err(_) if !self.session.has_power() => {
                self.recover()?;
                Err(Failure::Power)
            }
            other => other.map_err(refused),
        }
    }

    fn opened(&mut self) -> Result<()> {
        self.open = None;
        let pool = self.session.open(0, NAME, usage(&self.config))?;
        let thread = pool.thread(0)?;
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

/// The store that stands in a media file; none if nothing does.
fn found(
    session: &Arc<Session>,
    config: &Config,
    file: &str,
) -> Result<Option<(SessionThread, SessionPool)>> {
    let mut line = [0; 64];
    session.load(UNDER_WAY_AT, &mut line)?;
    if line == *UNDER_WAY {
        return Ok(None);
    }
    let pool = match session.open(0, NAME, usage(config)) {
        Ok(pool) => pool,
        Err(Error::NoPool(why)) => {
            let mut bytes = vec![0; 1 << 20];
            for at in (0..config.bytes).step_by(bytes.len()) {
                let len = (config.bytes - at).min(bytes.len() as u64) as usize;
                session.load(at, &mut bytes[..len])?;
                if bytes[..len].iter().any(|byte| *byte != 0) {
                    return Err(Error::Invalid(format!(
                        "media file {file}: {} bytes from its start on are wanted, and hold something that is no store ({why}): name another file",
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
            "media file {file}: its store has mechanism {} and {bytes} bytes, and {} and {} were asked for: allowed are its own, or another file",
            is.name(),
            config.mechanism.name(),
            config.bytes
        )));
    }
    Ok(Some((pool.thread(0)?, pool)))
}

/// A new one.
fn made(session: &Arc<Session>, config: &Config) -> Result<(SessionThread, SessionPool)> {
    let layout = Layout {
        threads: 1,
        log_bytes: (PAGES * 4096 + 4096) * 5 / 4 / 4096 * 4096,
        spare_pages: PAGES,
        ..Layout::new(NAME).with_mechanism(config.mechanism)
    };
    session.store(UNDER_WAY_AT, UNDER_WAY)?;
    let pool = session.create(0, config.bytes, &layout, usage(config))?;
    let mut thread = pool.thread(0)?;
    thread.run(Table::create)?;
    thread.finish()?;
    session.store(UNDER_WAY_AT, &[0; 64])?;
    Ok((thread, pool))
}

fn refused(error: Error) -> Failure {
    Failure::Refused(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each option has its loss of power, whichever comes first; one that a client orders does not take their place.
    #[test]
    fn all_losses_that_were_ordered_come() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let design = Design::find(&root, "nearpm").unwrap();
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
                let written = store.run(Kind::Write, |table| table.put(&n.to_le_bytes(), b"x", 0));
                match written {
                    Ok(()) => {}
                    Err(Failure::Power) => losses.push(store.session.now() - start),
                    Err(Failure::Refused(text)) => panic!("{text}"),
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
