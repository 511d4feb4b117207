//! One client: a thread, which holds the store for one request at a time and never while it waits
//! for its client.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::admission::{Activity, Limits, Phase};
use crate::{Dialect, Foreign, Protocol, Step, Store};

/// Replies that are gathered before they are sent.
const GATHERED: usize = 64 << 10;

/// A connection of either kind.
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(crate) fn try_clone(&self) -> io::Result<Socket> {
        Ok(match self {
            Socket::Tcp(stream) => Socket::Tcp(stream.try_clone()?),
            Socket::Unix(stream) => Socket::Unix(stream.try_clone()?),
        })
    }

    /// Ends one direction, or both; whoever waits in it comes back. It may have ended before.
    fn shutdown(&self, how: Shutdown) {
        let _ = match self {
            Socket::Tcp(stream) => stream.shutdown(how),
            Socket::Unix(stream) => stream.shutdown(how),
        };
    }

    fn set_read_timeout(&self, limit: Duration) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_read_timeout(Some(limit)),
            Socket::Unix(stream) => stream.set_read_timeout(Some(limit)),
        }
    }

    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(out),
            Socket::Unix(stream) => stream.read(out),
        }
    }

    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(data),
            Socket::Unix(stream) => stream.write(data),
        }
    }

    /// Says a last thing, and reads on until the client has gone, for a bounded time: to end a
    /// connection with bytes unread is to reset it, and a reset takes back what the client has not
    /// read yet.
    pub(crate) fn end_with(&mut self, text: &[u8], limit: Duration) -> io::Result<()> {
        let mut rest = text;
        while !rest.is_empty() {
            match self.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => rest = &rest[bytes..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.shutdown(Shutdown::Write);
        let end = Instant::now() + limit;
        let mut piece = vec![0; 16 << 10];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.set_read_timeout(left.max(Duration::from_millis(1)))?;
            match self.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// How connections ended that their clients did not end.
#[derive(Default)]
pub(crate) struct Ends {
    /// They spoke HTTP.
    pub http: AtomicU64,
    /// They spoke another protocol.
    pub not_text: AtomicU64,
    /// A request was not whole in time.
    pub late: AtomicU64,
    /// Another client got the place.
    pub gave_way: AtomicU64,
    /// There was no place.
    pub turned_away: AtomicU64,
}

impl Ends {
    pub(crate) fn report(&self) -> Value {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        json!({
            "hung_up": get(&self.http) + get(&self.not_text),
            "late": get(&self.late),
            "gave_way": get(&self.gave_way),
            "turned_away": get(&self.turned_away),
        })
    }
}

/// What all connections of a server use.
pub(crate) struct Shared {
    pub store: Mutex<Store>,
    /// How often its power has failed; the store's own.
    pub losses: Arc<AtomicU64>,
    pub ended: AtomicBool,
    pub limits: Limits,
    pub protocol: Protocol,
    pub ends: Ends,
    /// Takes a line for whoever runs the server.
    pub tell: Box<dyn Fn(&str) + Send + Sync>,
}

impl Shared {
    /// Counts an end of a connection, and tells of the 1st, 2nd, 4th, 8th and so on: whoever comes
    /// again and again doesn't fill the log.
    pub(crate) fn count(&self, of: &AtomicU64, what: &str) {
        let count = of.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            let so_far = match count {
                1 => String::new(),
                n => format!(" ({n} so far)"),
            };
            (self.tell)(&format!("{what}{so_far}"));
        }
    }
}

/// A client, as the server sees it.
pub(crate) struct Client {
    activity: Mutex<Activity>,
    /// Ends the connection from outside of its thread.
    socket: Socket,
    /// How often the power had failed when it came: a host that loses its power loses its
    /// connections.
    life: u64,
    late: AtomicBool,
}

impl Client {
    pub(crate) fn new(socket: &Socket, life: u64) -> io::Result<Client> {
        let now = Instant::now();
        Ok(Client {
            activity: Mutex::new(Activity {
                phase: Phase::Idle,
                served: false,
                since: now,
                moved: now,
            }),
            socket: socket.try_clone()?,
            life,
            late: AtomicBool::new(false),
        })
    }

    fn change(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn activity(&self) -> Activity {
        *self.change()
    }

    fn enter(&self, phase: Phase, since: Instant) {
        let mut activity = self.change();
        (activity.phase, activity.since) = (phase, since);
    }

    fn moved(&self) {
        self.change().moved = Instant::now();
    }

    /// Ends it.
    pub(crate) fn end(&self) {
        self.socket.shutdown(Shutdown::Both);
    }

    /// Lets it read no more: what it has begun to answer is answered.
    fn stop_reading(&self) {
        self.socket.shutdown(Shutdown::Read);
    }

    /// Looks whether it has to end, now and then.
    pub(crate) fn supervise(&self, shared: &Shared, now: Instant) {
        let lost = shared.losses.load(Ordering::Acquire) != self.life;
        let late = self.activity().is_late(&shared.limits, now);
        if late && !lost {
            self.late.store(true, Ordering::Relaxed);
        }
        if late || lost {
            self.stop_reading();
        }
    }

    fn lives(&self, shared: &Shared) -> bool {
        !shared.ended.load(Ordering::Relaxed) && shared.losses.load(Ordering::Acquire) == self.life
    }

    fn send(&self, socket: &mut Socket, out: &mut Vec<u8>) -> io::Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        self.enter(Phase::Sending, Instant::now());
        let mut at = 0;
        while at < out.len() {
            match socket.write(&out[at..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => at += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            self.moved();
        }
        *out = Vec::new();
        Ok(())
    }

    fn end_with(&self, socket: &mut Socket, text: &[u8], shared: &Shared) -> io::Result<()> {
        self.enter(Phase::Ending, Instant::now());
        socket.end_with(text, shared.limits.linger)
    }

    /// Serves it until one of the two ends the connection. An error is a client that has gone.
    pub(crate) fn serve(
        &self,
        socket: &mut Socket,
        mut dialect: Box<dyn Dialect>,
        shared: &Shared,
    ) -> io::Result<()> {
        let (mut input, mut out) = (Vec::new(), Vec::new());
        let mut piece = vec![0; 16 << 10];
        // Since when a request is being read.
        let mut begun: Option<Instant> = None;
        loop {
            self.enter(Phase::Working, Instant::now());
            let mut at = 0;
            loop {
                if !self.lives(shared) {
                    return self.send(socket, &mut out);
                }
                match dialect.step(&input[at..], &shared.store, &mut out) {
                    Step::Done(used) => {
                        at += used;
                        begun = None;
                        self.change().served = true;
                    }
                    Step::Part(used) => at += used,
                    Step::More => break,
                    Step::Close => return self.end_with(socket, &out, shared),
                    Step::HangUp(why) => {
                        let what = format!("hung up on a client: {}", why.text());
                        let of = match why {
                            Foreign::Http => &shared.ends.http,
                            Foreign::NotText => &shared.ends.not_text,
                        };
                        shared.count(of, &what);
                        return self.end_with(socket, &out, shared);
                    }
                }
                if out.len() > GATHERED {
                    self.send(socket, &mut out)?;
                    self.enter(Phase::Working, Instant::now());
                }
            }
            input.drain(..at);
            self.send(socket, &mut out)?;
            let now = Instant::now();
            if dialect.in_request() || !input.is_empty() {
                self.enter(Phase::Reading, *begun.get_or_insert(now));
            } else {
                begun = None;
                self.enter(Phase::Idle, now);
            }
            let read = socket.read(&mut piece);
            if self.late.load(Ordering::Relaxed) {
                let seconds = shared.limits.request.as_secs_f64();
                let why = format!("a request has to be whole within {seconds} s");
                shared.count(&shared.ends.late, &format!("ended a connection: {why}"));
                let text = match shared.protocol {
                    Protocol::Redis => format!("-ERR Protocol error: {why}\r\n"),
                    Protocol::Memcached => format!("SERVER_ERROR {why}\r\n"),
                };
                return self.end_with(socket, text.as_bytes(), shared);
            }
            match read {
                Ok(0) => return Ok(()),
                Ok(bytes) => {
                    input.extend(&piece[..bytes]);
                    self.moved();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
