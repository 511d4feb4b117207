//! Serves devices to virtual machines and user-space drivers, as vfio-user servers.
//!
//! A client (QEMU, SPDK) connects to a device's socket, finds a PCI function there, and shares its memory with it; the device in
//! the process of the server is any [`sim::Device`]. See `README.md` for what is promised to whom.
#![warn(missing_docs)]

mod config;
mod connection;
mod doorbells;
mod irq;
mod log;
mod memory;
mod peer;
mod server;
mod signal;
mod stats;
mod wire;
mod worker;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

pub use log::Log;
pub use server::{ServedDevice, Server};

/// Bytes of BAR0.
pub const BAR0_BYTES: u64 = 64 << 10;
/// Bytes of BAR4.
pub const BAR4_BYTES: u64 = 1 << 20;

/// What a device looks like on the bus.
#[derive(Clone, Debug)]
pub struct Function {
    /// Bytes of BAR2, the persistent-memory window: a power of two.
    pub pm_bytes: u64,
    /// The device's media, for clients to map as BAR2: their loads and stores then bypass the device and its timing. Without it
    /// every access is a message that the device answers. At least `pm_bytes` long, and sealed against shrinking: a
    /// client gets this very file.
    pub pm_file: Option<Arc<OwnedFd>>,
    /// MSI-X vectors.
    pub vectors: u16,
    /// The link that configuration space describes. Its timing is not emulated.
    pub link: sim::LinkConfig,
}

impl Function {
    fn check(&self) -> Result<(), Error> {
        if !self.pm_bytes.is_power_of_two() || self.pm_bytes < 4096 {
            return Err(Error::Function(format!(
                "a PM window of {} bytes: a power of two from 4096 on is needed",
                self.pm_bytes
            )));
        }
        if !(1..=256).contains(&self.vectors) {
            return Err(Error::Function(format!(
                "{} interrupt vectors: 1 to 256 are allowed",
                self.vectors
            )));
        }
        Ok(())
    }
}

/// A write of a 32-bit register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterWrite {
    /// The window.
    pub bar: sim::Bar,
    /// Byte offset in it.
    pub offset: u64,
    /// The value.
    pub value: u32,
}

/// Why devices can't be served; one line.
#[derive(Debug)]
pub enum Error {
    /// Somebody listens at that path, or something else than a socket is there.
    InUse(PathBuf),
    /// The operating system refuses something.
    Start(String, std::io::Error),
    /// A function that can't be.
    Function(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::InUse(path) => write!(
                f,
                "{} exists and is in use: end the other server, or choose another path",
                path.display()
            ),
            Error::Start(what, error) => write!(f, "can't have {what}: {error}"),
            Error::Function(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Start(_, error) => Some(error),
            _ => None,
        }
    }
}
