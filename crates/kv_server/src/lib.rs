// SPDX-License-Identifier: Apache-2.0

//! Redis's and memcached's protocols over a store in persistent memory, for real clients:
//! `nearside pm serve`.
//!
//! All data are in a pool of a simulated device, and a request is answered when its transaction is
//! durable. Clients wait in wall-clock time. So only the simulated times of [`Store::report`] are
//! valid measurements.
//!
//! Modules in reading order:
//!
//! - `access`: [`Access`], where clients connect and which of them may.
//! - `server`: [`Server`], with the acceptor thread that admits and supervises clients.
//! - `connection`, `admission`: a thread for each client; deadlines, eviction, [`Limits`].
//! - `resp`, `memcached`: the protocols, from bytes to requests to transactions.
//! - `table`: entries by keys of any bytes, over the hash table of `pm`.
//! - `store`: [`Store`], the pool, its power losses and recovery, and simulated times.
//!
//! # Requests
//!
//! A request is one transaction, and its reply is sent when that is durable. The transactions of
//! pipelined requests become durable together: the server waits once, before it sends their
//! replies. So does a request that only reads, since it may have read what another client has just
//! written. After a power loss no reply is sent to requests that may be lost. `MULTI` to `EXEC` is
//! one transaction of all commands in between, except `QUIT`. A flush removes 16 keys per
//! transaction. After `MULTI` it is a part of that transaction, and refused if the log has no room
//! for all keys. A memcached line with `noreply` gets no reply, not even an error. The store is
//! held for one request at a time, and never while the server waits for a client.
//!
//! # Hostile clients
//!
//! Nothing is allocated before its bytes have arrived. Lengths, words, queued commands, replies and
//! clients are bounded. A request beyond these bounds is read to its end without being stored, and
//! refused with the bound. A request beyond the bounds of Redis or memcached themselves (512 MiB, 2
//! GiB) ends the connection, with the reason. The server reads on for up to 2 s before it closes a
//! connection, since a reset would discard the reason.
//!
//! No byte of another protocol, and none of a data block, is a command. A web page can make a
//! browser on this machine send HTTP to any port, with commands in the body. So a client is
//! rejected, and its further bytes are ignored, if it sends one of:
//!
//! - `POST` or `Host:` as a command, as Redis does;
//! - another request line or header line of HTTP;
//! - a request whose first byte is not text: TLS, memcached's binary protocol.
//!
//! A line with a name that memcached does not have gets `ERROR` and ends the connection, since a
//! data block may follow. So does a storage command with an invalid length.
//!
//! # Admission
//!
//! No client is disconnected for being silent between two requests. A request that has begun has to
//! be complete within 60 s. When all 64 places are taken, a new client evicts the one that has been
//! silent for longest, from the first of these groups that has one:
//!
//! 1. clients that have never sent anything;
//! 2. clients that have stopped within a request for 1 s;
//! 3. clients that have been silent between requests, or have taken no replies, for 60 s.
//!
//! Without such a client the new one gets an error and is rejected. `connections` in the report
//! counts all of these.
//!
//! # What it leaves out
//!
//! Times to live, replication, clusters, scripts, and most commands of Redis are not supported.
//! What is not supported is refused, not ignored.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod access;
mod admission;
mod connection;
#[cfg(test)]
mod fragmentation;
mod memcached;
mod resp;
mod server;
mod store;
mod table;

use sim::InvalidValue;

pub use access::{Access, AccessError, Endpoint};
pub use admission::Limits;
pub use server::Server;
pub use store::{Config, Store};

/// The protocol that clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2 and RESP3, of Redis.
    Redis,
    /// memcached's text protocol.
    Memcached,
}

impl Protocol {
    /// The reply to a request that is refused.
    fn error_line(self, why: &str) -> String {
        let kind = match self {
            Protocol::Redis => "-ERR",
            Protocol::Memcached => "SERVER_ERROR",
        };
        format!("{kind} {}\r\n", why.replace(['\r', '\n'], " "))
    }
}

impl std::str::FromStr for Protocol {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Protocol, InvalidValue> {
        match text {
            "redis" => Ok(Protocol::Redis),
            "memcached" => Ok(Protocol::Memcached),
            _ => {
                let (value, rule) = (format_args!("{text:?}"), "allowed are redis, memcached");
                Err(InvalidValue::new("protocol", value, rule))
            }
        }
    }
}

/// Most bytes of a value: the log of a transaction has room for it.
pub const MAX_VALUE: usize = 256 << 10;
/// Most bytes of a request, and of the commands that a Redis transaction queues.
pub const MAX_REQUEST: usize = 1 << 20;
/// Most bytes of a reply: a short request may name a large value several times.
pub const MAX_REPLY: usize = 4 << 20;
/// Most words of a request.
pub const MAX_WORDS: usize = 1024;
/// Clients at a time.
pub const MAX_CLIENTS: usize = 64;

/// The result of processing input.
enum Step {
    /// A request that ends after this number of bytes has been answered.
    Complete(usize),
    /// This number of bytes, at least one, was consumed; their request continues.
    Partial(usize),
    /// More bytes are needed.
    NeedMore,
    /// The connection ends after the written replies.
    Close,
    /// The client speaks another protocol: the connection ends without another reply.
    Reject(ForeignProtocol),
}

/// The server's side of a protocol, for one connection.
trait ProtocolHandler: Send {
    /// Processes a request, or a part of one, at the beginning of the input.
    fn step(&mut self, input: &[u8], store: &std::sync::Mutex<Store>, out: &mut Vec<u8>) -> Step;

    /// True if the bytes consumed by [`Step::Partial`] belong to an unfinished request.
    fn in_request(&self) -> bool;
}

/// Parses a number of a protocol: digits, with a sign if it is negative.
fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    let text = std::str::from_utf8(text).ok()?;
    // Rust's parser would accept a plus sign, too.
    text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        .then(|| text.parse().ok())?
}

/// A request of either protocol begins with text. TLS begins with 16h, and memcached's binary
/// protocol with 80h.
fn is_text_start(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\r' | b'\n' | b'\t')
}

/// A foreign protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForeignProtocol {
    /// HTTP: a web page may make any browser on this machine send it.
    Http,
    /// A protocol whose requests do not begin with text.
    NotText,
}

impl ForeignProtocol {
    fn text(self) -> &'static str {
        match self {
            ForeignProtocol::Http => {
                "it speaks HTTP: perhaps a web page tries to reach the store \
                                      through a browser"
            }
            ForeignProtocol::NotText => {
                "its request begins with a byte that no request of the protocol does (TLS? \
                 memcached's binary protocol?)"
            }
        }
    }
}

fn lock(store: &std::sync::Mutex<Store>) -> std::sync::MutexGuard<'_, Store> {
    store
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
