// SPDX-License-Identifier: Apache-2.0

//! One-line errors that name the file, the line, the key and the allowed values.

use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use sim::{escape_controls, InvalidValue};
use toml::de::{DeTable, DeValue};

/// The reason why a design or a profile can't be used, in one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value that is not allowed.
    #[error(transparent)]
    Value(#[from] InvalidValue),
    /// An error in a file.
    #[error(
        "{}{}: {source}",
        escape_controls(path.display()),
        line.map_or(String::new(), |n| format!(":{n}"))
    )]
    InFile {
        /// The file.
        path: PathBuf,
        /// The line, from 1 on.
        line: Option<usize>,
        /// The error.
        source: Box<Error>,
    },
    /// The text is not TOML, a key is unknown or missing, or a value has another type.
    #[error("{}", escape_controls(message))]
    Toml {
        /// The error with the key's name.
        message: String,
        /// The error of the parser.
        source: Box<toml::de::Error>,
    },
    /// Overridden values that TOML can't express.
    #[error("override: {0}")]
    Override(#[from] toml::ser::Error),
    /// A file that can't be read.
    #[error("{}: {source}", escape_controls(path.display()))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A path that names something other than a file.
    #[error("{}: is no regular file", escape_controls(.0.display()))]
    NotAFile(PathBuf),
    /// A name without a file in its folder.
    #[error(
        "no {kind} {name:?} in {}; there: {}",
        escape_controls(place),
        escape_controls(there)
    )]
    NotFound {
        /// What it would be the name of.
        kind: &'static str,
        /// The name.
        name: String,
        /// Where the files are.
        place: String,
        /// The names that exist, or "none".
        there: String,
    },
    /// There is no checkout of Nearside.
    #[error(
        "this needs a checkout of Nearside, and none was found: run inside one or set NEARSIDE_ROOT"
    )]
    NoCheckout,
    /// The environment variable `NEARSIDE_ROOT` names another folder.
    #[error(
        "NEARSIDE_ROOT={} is no checkout of Nearside (no hw/lib/lib.f in it)",
        escape_controls(.0.display())
    )]
    NotACheckout(PathBuf),
    /// The device top lacks a parameter of this name.
    #[error("the device top has no parameter {0}")]
    NoParameter(String),
    /// The device top lacks the lines between which engines are inserted.
    #[error("no place for engines")]
    NoEngineRegion,
    /// The device top lacks this text, which engines replace.
    #[error("{0:?} is not there")]
    NoText(&'static str),
    /// Two constants of the C header have this name.
    #[error(
        "two constants of the header would be NEARSIDE_{0}: give the engine of one of them another \
         name"
    )]
    SameConstant(String),
}

impl Error {
    pub(crate) fn in_file(self, path: &Path, line: Option<usize>) -> Error {
        Error::InFile {
            path: path.into(),
            line,
            source: Box::new(self),
        }
    }

    /// Adds the file, and the line of the key of an [`InvalidValue`].
    pub(crate) fn in_text(self, path: &Path, text: &str) -> Error {
        let line = match &self {
            Error::Value(value) => line_of_key(text, &value.key),
            _ => None,
        };
        self.in_file(path, line)
    }
}

/// Reads a file's text as TOML. Errors name the file, the line and the key.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, path: &Path) -> Result<T, Error> {
    toml::from_str(text).map_err(|source| {
        let (line, message) = describe(text, &source);
        let source = Box::new(source);
        Error::Toml { message, source }.in_file(path, line)
    })
}

/// The keys of a text, in the format of errors, with their positions: `channels`, `media.bytes`,
/// `engine[1].name`, `memory[0].delay.read_slots`. `engine[1]` is the second `[[engine]]`. A table
/// has the position of its header. What is not TOML is left out.
fn keys(text: &str) -> Vec<(String, Range<usize>)> {
    fn add_value(path: String, span: Range<usize>, value: &DeValue, keys: &mut Keys) {
        keys.push((path.clone(), span));
        match value {
            DeValue::Table(table) => add_table(&format!("{path}."), table, keys),
            DeValue::Array(values) => {
                for (n, value) in values.iter().enumerate() {
                    add_value(format!("{path}[{n}]"), value.span(), value.get_ref(), keys);
                }
            }
            _ => {}
        }
    }
    fn add_table(prefix: &str, table: &DeTable, keys: &mut Keys) {
        for (key, value) in table {
            let (key_span, span) = (key.span(), value.span());
            let span = key_span.start.min(span.start)..key_span.end.max(span.end);
            add_value(
                format!("{prefix}{}", key.get_ref()),
                span,
                value.get_ref(),
                keys,
            );
        }
    }
    type Keys = Vec<(String, Range<usize>)>;
    let mut keys = Vec::new();
    add_table("", DeTable::parse_recoverable(text).0.get_ref(), &mut keys);
    keys
}

/// The line, from 1 on, of a position.
fn line_at(text: &str, position: usize) -> usize {
    1 + text.bytes().take(position).filter(|&b| b == b'\n').count()
}

/// The line of a key. A missing key has the line of its table.
fn line_of_key(text: &str, key: &str) -> Option<usize> {
    let keys = keys(text);
    let mut name = key;
    loop {
        if let Some((_, span)) = keys.iter().find(|(key, _)| key == name) {
            return Some(line_at(text, span.start));
        }
        name = &name[..name.rfind(['.', '['])?];
    }
}

/// The line of an error, and its text with the key. The key has no indices.
fn describe(text: &str, error: &toml::de::Error) -> (Option<usize>, String) {
    let message = error.message().replace('\n', " ");
    let Some(span) = error.span() else {
        return (None, message);
    };
    let line = Some(line_at(text, span.start));
    let keys = keys(text);
    let around = keys
        .iter()
        .filter(|(_, key)| (key.start..=key.end).contains(&span.start));
    let key = around.min_by_key(|(_, key)| key.len()).map(|(path, _)| {
        let parts = path.split('[');
        let names = parts.map(|part| part.split_once(']').map_or(part, |(_, name)| name));
        names.collect::<String>()
    });
    if let Some(rest) = message.strip_prefix("unknown field `") {
        let (name, expected) = rest.split_once('`').unwrap_or((rest, ""));
        let key = key.as_deref().unwrap_or(name);
        let allowed = expected
            .trim_start_matches(", expected ")
            .trim_start_matches("one of ");
        return (line, format!("unknown key `{key}`; allowed: {allowed}"));
    }
    // The span is that of the table. The text as a whole has an empty one.
    if let Some(rest) = message.strip_prefix("missing field `") {
        let name = rest.split('`').next().unwrap_or(rest);
        return match key.filter(|_| !span.is_empty()) {
            Some(table) => (line, format!("missing key `{table}.{name}`")),
            None => (None, format!("missing key `{name}`")),
        };
    }
    // A key that stands there twice is among the keys once.
    match key
        .as_deref()
        .or(text.get(span).filter(|key| !key.is_empty()))
    {
        Some(key) => (line, format!("{key}: {message}")),
        None => (line, message),
    }
}

/// The text of a regular file. A pipe can block forever, and /dev/zero has no end.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    let unreadable = |source| Error::Unreadable {
        path: path.into(),
        source,
    };
    let kind = std::fs::metadata(path).map_err(unreadable)?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return Err(Error::NotAFile(path.into()));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

/// `Ok` if `ok`, otherwise an error with the allowed values.
pub(crate) fn check(key: &str, value: impl Display, ok: bool, allowed: &str) -> Result<(), Error> {
    if ok {
        return Ok(());
    }
    let rule = format_args!("allowed is {allowed}");
    Err(InvalidValue::new(key, value, rule).into())
}

/// Checks a value against a list.
pub(crate) fn one_of(key: &str, value: u32, allowed: &[u32]) -> Result<(), Error> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let list: Vec<String> = allowed.iter().map(u32::to_string).collect();
    let rule = format_args!("allowed are {}", list.join(", "));
    Err(InvalidValue::new(key, value, rule).into())
}

/// Checks a value against a range.
pub(crate) fn range(key: &str, value: u32, low: u32, high: u32) -> Result<(), Error> {
    check(
        key,
        value,
        (low..=high).contains(&value),
        &format!("{low} to {high}"),
    )
}
