//! Redis's and memcached's protocols in front of a store in persistent memory, for their real
//! clients.
//!
//! All data stand in a pool of a simulated device; a write is answered when its transaction is
//! persistent. Clients are real and wait in wall-clock time, so what a figure may use is only the
//! simulated time that [`Store::report`] tells.
#![warn(missing_docs)]

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

pub use access::{Access, Endpoint};
pub use admission::Limits;
pub use server::Server;
pub use store::{Config, Store};

/// Whose protocol is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2 and RESP3, of Redis.
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
pub const MAX_VALUE: usize = 256 << 10;
/// Most bytes of a request, and of what a Redis transaction queues.
pub const MAX_REQUEST: usize = 1 << 20;
/// Most bytes of a reply: a short request may name a large value often.
pub const MAX_REPLY: usize = 4 << 20;
/// Most words of a request.
pub const MAX_WORDS: usize = 1024;
/// Clients at a time.
pub const MAX_CLIENTS: usize = 64;

/// What a connection does next.
enum Step {
    /// A request that ends after so many bytes has been answered.
    Complete(usize),
    /// So many bytes, at least one, are taken; their request goes on.
    Partial(usize),
    /// More bytes are needed.
    NeedMore,
    /// The connection ends after what was written.
    Close,
    /// This is no client of the protocol: the connection ends, and nothing more is answered.
    Reject(ForeignProtocol),
}

/// A connection's side of a protocol.
trait ProtocolHandler: Send {
    /// Takes what the input begins with: a request, or a part of one.
    fn step(&mut self, input: &[u8], store: &std::sync::Mutex<Store>, out: &mut Vec<u8>) -> Step;

    /// Bytes that [`Step::Partial`] has taken are of a request that has not ended.
    fn in_request(&self) -> bool;
}

/// A number, as protocols write it: digits, with a sign if it is negative.
fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    let text = std::str::from_utf8(text).ok()?;
    // Rust's own parser takes a plus sign, too.
    text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        .then(|| text.parse().ok())?
}

/// A request of either protocol begins with text. Anything else is another protocol: TLS begins
/// with 16h, memcached's binary one with 80h.
fn is_text_start(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\r' | b'\n' | b'\t')
}

/// What a client speaks that is none of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForeignProtocol {
    /// HTTP: a web page may make any browser on this machine send it.
    Http,
    /// Something whose requests begin with a byte that is none of text.
    NotText,
}

impl ForeignProtocol {
    fn text(self) -> &'static str {
        match self {
            ForeignProtocol::Http => "it speaks HTTP: perhaps a web page tries to reach the store through a browser",
            ForeignProtocol::NotText => {
                "its request begins with a byte that no request of the protocol does (TLS? memcached's binary protocol?)"
            }
        }
    }
}

fn lock(store: &std::sync::Mutex<Store>) -> std::sync::MutexGuard<'_, Store> {
    store
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
