// SPDX-License-Identifier: Apache-2.0

//! Why an access or a program fails.

use sim::Time;

/// Why a CPU cannot continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// An error of the simulated system: a read that failed or was not answered, no such window, a
    /// device fault.
    System(sim::Error),
    /// The power was cut at this time.
    PowerCut(Time),
    /// A device has lost stores since this CPU's last fence, possibly another CPU's.
    Lost {
        /// Which device.
        device: usize,
        /// The number of stores.
        stores: u64,
    },
    /// An access that no instruction makes; the text states what is allowed.
    Access(String),
    /// All programs wait for events that cannot happen.
    Stuck,
    /// Programs are running, and the caller is not one of them.
    Busy,
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use sim::Error::{ReadFailed, Timeout};
        match self {
            Error::System(error @ (ReadFailed { .. } | Timeout { .. })) => write!(
                f,
                "{error} (is it without power, its media cut short, or their disk full?)"
            ),
            Error::System(error) => write!(f, "{error}"),
            Error::Lost { device, stores } => write!(
                f,
                "device {device} could not write {stores} of its host's stores, which are lost: \
                    is the disk of its media full?"
            ),
            Error::PowerCut(at) => write!(f, "the power was cut at {at}"),
            Error::Access(text) => f.write_str(text),
            Error::Stuck => f.write_str("all programs wait for events that cannot happen"),
            Error::Busy => {
                f.write_str("the host runs programs: only these may use it until they have ended")
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<sim::Error> for Error {
    fn from(error: sim::Error) -> Error {
        Error::System(error)
    }
}
