// SPDX-License-Identifier: Apache-2.0

//! Errors of the crate.

use std::fmt::Display;
use std::io;

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;
use sim::escape_controls;

/// Why a table can't be read, sorted or written. It is displayed on one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An argument or the contents of a table are not usable; the text says why.
    #[error("{}", one_line(.0))]
    Invalid(String),
    /// [`crate::Progress::stop`] ended the work.
    #[error("interrupted")]
    Interrupted,
    /// An error, and what it concerns.
    #[error("{}: {source}", escape_controls(subject))]
    Of {
        /// A file, a device or a column.
        subject: String,
        /// The error.
        source: Box<Error>,
    },
    /// An error, and what could be done about it.
    #[error("{source}; {}", escape_controls(hint))]
    Hint {
        /// The error.
        source: Box<Error>,
        /// Another way.
        hint: String,
    },
    /// The caller's [`crate::Sink`] failed.
    #[error("{}", one_line(.0))]
    Sink(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A file can't be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Lines of a CSV are not UTF-8.
    #[error(transparent)]
    Utf8(#[from] std::str::Utf8Error),
    /// Columns can't be read, put together or written.
    #[error("{}", one_line(.0))]
    Arrow(#[from] ArrowError),
    /// A Parquet file can't be read or written.
    #[error("{}", one_line(.0))]
    Parquet(#[from] ParquetError),
    /// The design, its media profile or an engine is not usable.
    #[error(transparent)]
    Design(#[from] design::Error),
    /// A device can't be built.
    #[error(transparent)]
    Device(#[from] device::Error),
    /// The devices can't be set up.
    #[error(transparent)]
    Testbed(#[from] testbed::Error),
    /// The media can't be opened.
    #[error(transparent)]
    Media(#[from] sim::MediaError),
    /// A device does not join the simulated system.
    #[error(transparent)]
    System(#[from] sim::Error),
    /// The host of the devices stopped.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// A command of a device failed. A device that hangs is described on several lines.
    #[error("{}", one_line(.0))]
    Driver(#[from] driver::Error),
}

/// The result type of the crate.
pub type Result<T> = std::result::Result<T, Error>;

fn one_line(text: impl Display) -> String {
    let text = text.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    escape_controls(lines.join(" "))
}

impl Error {
    /// An error of this text.
    pub fn new(text: impl Into<String>) -> Error {
        Error::Invalid(text.into())
    }

    /// The same, of a file, a device or a column. An error of the caller's stays as it is.
    pub fn of(self, subject: impl Into<String>) -> Error {
        match self {
            Error::Sink(_) => self,
            source => Error::Of {
                subject: subject.into(),
                source: Box::new(source),
            },
        }
    }

    /// The same, with what could be done about it.
    pub fn with_hint(self, hint: String) -> Error {
        Error::Hint {
            source: Box::new(self),
            hint,
        }
    }

    /// An error of joining columns.
    pub(crate) fn of_rows(error: ArrowError) -> Error {
        match error {
            ArrowError::DictionaryKeyOverflowError => Error::new(
                "the dictionaries of a column together have more values than its keys can name: \
                 make its keys wider, as dictionary<values=.., indices=int32>",
            ),
            ArrowError::OffsetOverflowError(_) => Error::new(
                "a column that stays in memory as a whole has more text, or more values in lists, \
                 than its type counts: make it a large one (large_string, large_list)",
            ),
            other => other.into(),
        }
    }

    /// The system's error that caused this one, if one did.
    pub fn system(&self) -> Option<&io::Error> {
        // `source` of a transparent error is that of its cause, and passes over the cause itself.
        match self {
            Error::Of { source, .. } | Error::Hint { source, .. } => return source.system(),
            Error::Io(error) if error.raw_os_error().is_some() => return Some(error),
            _ => {}
        }
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            match error.downcast_ref::<io::Error>() {
                Some(error) if error.raw_os_error().is_some() => return Some(error),
                _ => cause = error.source(),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_the_system_is_found_in_every_wrapper() {
        let full = || io::Error::from_raw_os_error(28);
        let arrow = ArrowError::IoError("full".into(), full());
        let hinted = Error::from(full()).with_hint("free some".into());
        for error in [full().into(), arrow.into(), hinted.of("x")] {
            let wrapped = error.of("t.csv").of("the table");
            let found = wrapped.system().and_then(io::Error::raw_os_error);
            assert_eq!(found, Some(28), "{wrapped}");
        }
        assert!(Error::new("x").of("t.csv").system().is_none());
    }

    #[test]
    fn error_escapes_line_breaks_of_names() {
        let error = Error::new("bad\rrow")
            .of("\n")
            .with_hint("free \u{2028}/x".into());
        assert_eq!(error.to_string(), "\\n: bad\\rrow; free \\u{2028}/x");
    }
}
