//! Redis's and memcached's protocols in front of a store in persistent memory, for their real clients.
//!
//! All data stand in a pool of a simulated device; a write is answered when its transaction is persistent. Clients are real and wait in
//! wall-clock time, so what a figure may use is only the simulated time that [`Store::report`] tells.
#![warn(missing_docs)]

mod memcached;
mod resp;
mod server;
mod store;
mod table;

pub use server::{Place, Server};
pub use store::{Config, Store};

/// Whose protocol is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2, of Redis.
    Redis,
    /// memcached's text protocol.
    Memcached,
}

impl std::str::FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Protocol, String> {
        match text {
            "redis" => Ok(Protocol::Redis),
            "memcached" => Ok(Protocol::Memcached),
            _ => Err(format!("protocol = {text:?}: allowed are redis, memcached")),
        }
    }
}

/// Most bytes of a value: a transaction's log has room for it.
pub const MOST_VALUE: usize = 256 << 10;
/// Most bytes of a request, of what a Redis transaction queues, and of what is read ahead of a client.
pub const MOST_REQUEST: usize = 1 << 20;
/// Most bytes of a reply: a short request may name a large value often.
pub const MOST_REPLY: usize = 4 << 20;
/// Most words of a request.
pub const MOST_WORDS: usize = 1024;
/// Clients at a time.
pub const MOST_CLIENTS: usize = 64;

/// What a connection does next.
enum Step {
    /// A request of so many bytes has been answered.
    Done(usize),
    /// A request is not complete.
    More,
    /// The connection ends, behind what was written.
    Close,
}

/// A connection's side of a protocol.
trait Dialect: Send {
    /// Answers the request that the bytes begin with.
    fn step(&mut self, input: &[u8], store: &std::sync::Mutex<Store>, out: &mut Vec<u8>) -> Step;
}

/// A number, as protocols write it: digits, with a sign if it is negative.
fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    let text = std::str::from_utf8(text).ok()?;
    // Rust's own parser takes a plus sign, too.
    text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        .then(|| text.parse().ok())?
}

fn lock(store: &std::sync::Mutex<Store>) -> std::sync::MutexGuard<'_, Store> {
    store
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
