// SPDX-License-Identifier: Apache-2.0

//! Why an access or a program fails.

use sim::Time;

/// Why a CPU cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An error of the simulated system: a read that failed or was not answered, no such window, a
    /// device fault.
    #[error("{0}{hint}", hint = hint(.0))]
    System(#[from] sim::Error),
    /// The power was cut at this time.
    #[error("the power was cut at {0}")]
    PowerCut(Time),
    /// A device has lost stores since this CPU's last fence, possibly another CPU's.
    #[error(
        "device {device} could not write {stores} of its host's stores, which are lost: is the \
         disk of its media full?"
    )]
    Lost {
        /// Which device.
        device: usize,
        /// The number of stores.
        stores: u64,
    },
    /// An access that no instruction makes; the text states what is allowed.
    #[error("{0}")]
    Access(String),
    /// All programs wait for events that cannot happen.
    #[error("all programs wait for events that cannot happen")]
    Stuck,
    /// Programs are running, and the caller is not one of them.
    #[error("the host runs programs: only these may use it until they have ended")]
    Busy,
}

/// What may have caused an error of the system.
fn hint(error: &sim::Error) -> &'static str {
    match error {
        sim::Error::ReadFailed { .. } | sim::Error::Timeout { .. } => {
            " (is it without power, its media cut short, or their disk full?)"
        }
        _ => "",
    }
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;
