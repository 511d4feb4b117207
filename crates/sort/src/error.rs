// SPDX-License-Identifier: Apache-2.0

//! Errors of the crate.

use std::fmt;

use arrow_schema::ArrowError;

/// An error as one line of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

/// The result type of the crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error with the text of another one, on one line.
    pub fn new(text: impl fmt::Display) -> Error {
        let text = text.to_string();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        Error(lines.join(" "))
    }

    /// An error of joining columns.
    pub(crate) fn of_rows(error: ArrowError) -> Error {
        match error {
            ArrowError::DictionaryKeyOverflowError => Error::new(
                "the dictionaries of a column together have more values than its keys can name: \
                    make its keys wider, \
                 as dictionary<values=.., indices=int32>",
            ),
            ArrowError::OffsetOverflowError(_) => Error::new(
                "a column that stays in memory as a whole has more text, or more values in lists, \
                    than its type counts: \
                 make it a large one (large_string, large_list)",
            ),
            other => Error::new(other),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
