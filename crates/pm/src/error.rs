//! Why something of persistent memory can't be done.

use spec::nearpm::{Operation, Results};

/// Why a pool, a transaction or an allocation ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// What the host says: a power cut, an access that failed.
    Host(host::Error),
    /// The power has failed; the text says what is to be done.
    Power(String),
    /// There is no pool, or another one than was asked for.
    NoPool(String),
    /// A pool whose metadata are damaged.
    Corrupt(String),
    /// There is no room: in the heap, in a log, among the threads.
    Full(String),
    /// What was asked for can't be; the text says what is allowed.
    Invalid(String),
    /// The device has refused a command.
    Refused(Operation, Results),
    /// The transaction was to be aborted, though its closure said that all is well: a nested one had failed.
    Aborted,
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Host(error) => write!(f, "{error}"),
            Error::Power(text)
            | Error::NoPool(text)
            | Error::Corrupt(text)
            | Error::Full(text)
            | Error::Invalid(text) => f.write_str(text),
            Error::Refused(operation, results) => {
                write!(f, "the device refused {operation:?}: {results}")
            }
            Error::Aborted => {
                f.write_str("the transaction was aborted: one that was nested in it had failed")
            }
        }
    }
}

impl Error {
    /// The power has failed, before or meanwhile.
    pub fn is_power_loss(&self) -> bool {
        matches!(
            self,
            Error::Power(_) | Error::Host(host::Error::PowerCut(_))
        )
    }
}

impl std::error::Error for Error {}

impl From<host::Error> for Error {
    fn from(error: host::Error) -> Error {
        Error::Host(error)
    }
}
