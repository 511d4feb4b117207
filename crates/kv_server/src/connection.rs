// SPDX-License-Identifier: Apache-2.0

//! The connection of one client: a thread, which holds the store for one request at a time and
//! never while it waits for its client.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::admission::{Activity, Limits, Phase};
use crate::store::RequestError;
use crate::{lock, ForeignProtocol, Protocol, ProtocolHandler, Step, Store};

/// Bytes of replies that are collected before they are sent.
const SEND_THRESHOLD: usize = 64 << 10;

/// Replies that have not been sent.
#[derive(Default)]
struct Replies {
    bytes: Vec<u8>,
    /// Requests that they answer.
    count: usize,
    /// That of the store when the first one was made: see [`Store::epoch`].
    epoch: u64,
}

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

    /// Closes one direction, or both, and wakes a thread that waits in it. It may be closed
    /// already.
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

    /// Sends a last text, and reads until the client has closed the connection, for a bounded time.
    /// Closing with unread bytes would reset the connection, and a reset discards text that the
    /// client has not read yet.
    pub(crate) fn send_and_close(&mut self, text: &[u8], limit: Duration) -> io::Result<()> {
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
        let mut chunk = vec![0; 16 << 10];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.set_read_timeout(left.max(Duration::from_millis(1)))?;
            match self.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Counts of connections that the server ended, by reason.
#[derive(Default)]
pub(crate) struct ConnectionCounts {
    /// The client spoke HTTP.
    pub http: AtomicU64,
    /// The client spoke another protocol.
    pub not_text: AtomicU64,
    /// A request was not complete in time.
    pub late: AtomicU64,
    /// Another client got the place.
    pub evicted: AtomicU64,
    /// All places were taken.
    pub rejected: AtomicU64,
}

impl ConnectionCounts {
    pub(crate) fn report(&self) -> Value {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        json!({
            "hung_up": get(&self.http) + get(&self.not_text),
            "late": get(&self.late),
            "gave_way": get(&self.evicted),
            "turned_away": get(&self.rejected),
        })
    }
}

/// The state that all connections of a server share.
pub(crate) struct ServerState {
    pub store: Mutex<Store>,
    /// Number of power losses, shared with the store.
    pub losses: Arc<AtomicU64>,
    pub ended: AtomicBool,
    pub limits: Limits,
    pub protocol: Protocol,
    pub counts: ConnectionCounts,
    /// Logs a line for the operator.
    pub log: Box<dyn Fn(&str) + Send + Sync>,
}

impl ServerState {
    /// Counts the end of a connection. Logs the 1st, 2nd, 4th, 8th and so on, so that repeated
    /// connections do not fill the log.
    pub(crate) fn count_and_log(&self, of: &AtomicU64, what: &str) {
        let count = of.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            let so_far = match count {
                1 => String::new(),
                n => format!(" ({n} so far)"),
            };
            (self.log)(&format!("{what}{so_far}"));
        }
    }
}

/// A client, for the acceptor.
pub(crate) struct Client {
    activity: Mutex<Activity>,
    /// Ends the connection from another thread.
    socket: Socket,
    /// Number of power losses at the client's arrival: a power loss of the host ends its
    /// connections.
    power_epoch: u64,
    late: AtomicBool,
}

impl Client {
    pub(crate) fn new(socket: &Socket, power_epoch: u64) -> io::Result<Client> {
        let now = Instant::now();
        Ok(Client {
            activity: Mutex::new(Activity {
                phase: Phase::Idle,
                served: false,
                since: now,
                last_transfer: now,
            }),
            socket: socket.try_clone()?,
            power_epoch,
            late: AtomicBool::new(false),
        })
    }

    fn lock_activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn activity(&self) -> Activity {
        *self.lock_activity()
    }

    fn set_phase(&self, phase: Phase, since: Instant) {
        let mut activity = self.lock_activity();
        (activity.phase, activity.since) = (phase, since);
    }

    fn record_transfer(&self) {
        self.lock_activity().last_transfer = Instant::now();
    }

    /// Ends the connection.
    pub(crate) fn end(&self) {
        self.socket.shutdown(Shutdown::Both);
    }

    /// Stops reading; the current request is still answered.
    fn stop_reading(&self) {
        self.socket.shutdown(Shutdown::Read);
    }

    /// Ends the connection after a power loss, or past a deadline.
    pub(crate) fn supervise(&self, shared: &ServerState, now: Instant) {
        let lost = shared.losses.load(Ordering::Acquire) != self.power_epoch;
        let late = self.activity().is_late(&shared.limits, now);
        if late && !lost {
            self.late.store(true, Ordering::Relaxed);
        }
        if late || lost {
            self.stop_reading();
        }
    }

    fn is_connected(&self, shared: &ServerState) -> bool {
        !shared.ended.load(Ordering::Relaxed)
            && shared.losses.load(Ordering::Acquire) == self.power_epoch
    }

    fn send(&self, socket: &mut Socket, out: &mut Vec<u8>) -> io::Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        self.set_phase(Phase::Sending, Instant::now());
        let mut at = 0;
        while at < out.len() {
            match socket.write(&out[at..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => at += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            self.record_transfer();
        }
        *out = Vec::new();
        Ok(())
    }

    /// Waits until the requests that the replies answer are durable. If they are refused after all,
    /// each is answered with the reason. False if they may be lost, so that there is nothing to
    /// send.
    fn settle(&self, shared: &ServerState, replies: &mut Replies) -> bool {
        let mut store = lock(&shared.store);
        if replies.bytes.is_empty() {
            (replies.count, replies.epoch) = (0, store.epoch());
            return true;
        }
        // Another client's power loss may have come before this client's replies were sent.
        if replies.epoch != store.epoch() {
            return false;
        }
        match store.settle() {
            Ok(()) => true,
            Err(RequestError::Refused(why)) => {
                let each = shared.protocol.error_line(&why);
                replies.bytes = each.repeat(replies.count).into_bytes();
                true
            }
            Err(RequestError::Power) => false,
        }
    }

    fn send_and_close(
        &self,
        socket: &mut Socket,
        text: &[u8],
        shared: &ServerState,
    ) -> io::Result<()> {
        self.set_phase(Phase::Ending, Instant::now());
        socket.send_and_close(text, shared.limits.linger)
    }

    /// Serves the client until the connection ends. An error means that the client has gone.
    pub(crate) fn serve(
        &self,
        socket: &mut Socket,
        mut handler: Box<dyn ProtocolHandler>,
        shared: &ServerState,
    ) -> io::Result<()> {
        let (mut input, mut replies) = (Vec::new(), Replies::default());
        let mut chunk = vec![0; 16 << 10];
        // When the current request began to arrive.
        let mut begun: Option<Instant> = None;
        loop {
            self.set_phase(Phase::Working, Instant::now());
            let mut at = 0;
            loop {
                if !self.is_connected(shared) {
                    return match self.settle(shared, &mut replies) {
                        true => self.send(socket, &mut replies.bytes),
                        false => Ok(()),
                    };
                }
                if replies.bytes.is_empty() {
                    self.settle(shared, &mut replies);
                }
                let before = replies.bytes.len();
                let step = handler.step(&input[at..], &shared.store, &mut replies.bytes);
                replies.count += usize::from(replies.bytes.len() > before);
                match step {
                    Step::Complete(used) => {
                        at += used;
                        begun = None;
                        self.lock_activity().served = true;
                    }
                    Step::Partial(used) => at += used,
                    Step::NeedMore => break,
                    Step::Close => {
                        if !self.settle(shared, &mut replies) {
                            replies.bytes.clear();
                        }
                        return self.send_and_close(socket, &replies.bytes, shared);
                    }
                    Step::Reject(why) => {
                        let what = format!("rejected a client: {}", why.text());
                        let of = match why {
                            ForeignProtocol::Http => &shared.counts.http,
                            ForeignProtocol::NotText => &shared.counts.not_text,
                        };
                        shared.count_and_log(of, &what);
                        if !self.settle(shared, &mut replies) {
                            replies.bytes.clear();
                        }
                        return self.send_and_close(socket, &replies.bytes, shared);
                    }
                }
                if replies.bytes.len() > SEND_THRESHOLD {
                    if !self.settle(shared, &mut replies) {
                        return Ok(());
                    }
                    self.send(socket, &mut replies.bytes)?;
                    self.set_phase(Phase::Working, Instant::now());
                }
            }
            input.drain(..at);
            if !self.settle(shared, &mut replies) {
                return Ok(());
            }
            self.send(socket, &mut replies.bytes)?;
            let now = Instant::now();
            if handler.in_request() || !input.is_empty() {
                self.set_phase(Phase::Reading, *begun.get_or_insert(now));
            } else {
                begun = None;
                self.set_phase(Phase::Idle, now);
            }
            let read = socket.read(&mut chunk);
            if self.late.load(Ordering::Relaxed) {
                let seconds = shared.limits.request.as_secs_f64();
                let why = format!("a request has to be whole within {seconds} s");
                shared.count_and_log(&shared.counts.late, &format!("ended a connection: {why}"));
                let text = match shared.protocol {
                    Protocol::Redis => shared
                        .protocol
                        .error_line(&format!("Protocol error: {why}")),
                    Protocol::Memcached => shared.protocol.error_line(&why),
                };
                return self.send_and_close(socket, text.as_bytes(), shared);
            }
            match read {
                Ok(0) => return Ok(()),
                Ok(bytes) => {
                    input.extend(&chunk[..bytes]);
                    self.record_transfer();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
