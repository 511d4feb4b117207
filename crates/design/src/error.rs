// SPDX-License-Identifier: Apache-2.0

//! One-line errors that name the file, the key and the allowed values.

use std::fmt;
use std::path::Path;

/// The reason why a design or a media profile can't be used, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl Error {
    pub(crate) fn new(text: impl Into<String>) -> Error {
        Error(text.into())
    }

    pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Error {
        Error(format!("{}: {error}", path.display()))
    }

    pub(crate) fn in_file(self, path: &Path) -> Error {
        Error(format!("{}: {}", path.display(), self.0))
    }

    /// Adds file and line of the key to an error of [`check`].
    pub(crate) fn in_text(self, path: &Path, text: &str) -> Error {
        let key = self.0.split(" = ").next().unwrap_or_default();
        match line_of(text, key) {
            Some(line) => Error(format!("{}:{line}: {}", path.display(), self.0)),
            None => self.in_file(path),
        }
    }

    /// A syntax or type error, with its line and key.
    pub(crate) fn from_toml(path: &Path, text: &str, error: &toml::de::Error) -> Error {
        match describe(text, error) {
            (Some(line), message) => Error(format!("{}:{line}: {message}", path.display())),
            (None, message) => Error(format!("{}: {message}", path.display())),
        }
    }

    /// The same for a text that the user has never seen.
    pub(crate) fn without_line(path: &Path, text: &str, error: &toml::de::Error) -> Error {
        Error(format!("{}: {}", path.display(), describe(text, error).1))
    }
}

/// The line, from 1 on, of a key in the format of errors: `channels`, `media.bytes`,
/// `engine[1].name`, `memory[0].delay.read_slots`. `engine[1]` is the second `[[engine]]`. A number
/// after the last part is the index of a value in a list. A missing key has the line of its table.
/// Tables themselves, such as too many of them, have the line of the first one.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let (table, field) = key.rsplit_once('.').unwrap_or(("", key));
    let field = field.split('[').next()?;
    // Of `memory[0].delay`: the list, the index, and the table in it.
    let (list, number, table) = match table.split_once('[') {
        Some((list, rest)) => {
            let (number, inner) = rest.split_once(']')?;
            (list, number.parse().ok()?, format!("{list}{inner}"))
        }
        None => (table, 0, table.to_string()),
    };
    let (mut here, mut seen, mut begin) = (table.is_empty(), 0, None);
    for (n, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            let name = header.trim_start_matches('[').split(']').next()?.trim();
            seen += usize::from(name == list);
            here = name == table && seen == number + 1;
            let first = table.is_empty() && name == field && begin.is_none();
            begin = if here || first { Some(n) } else { begin };
        } else if here {
            let rest = line.strip_prefix(field).map(str::trim_start);
            if rest.is_some_and(|rest| rest.starts_with('=')) {
                return Some(n);
            }
        }
    }
    begin
}

/// The line of an error, and its text with the key.
fn describe(text: &str, error: &toml::de::Error) -> (Option<usize>, String) {
    let message = error.message().replace('\n', " ");
    let Some(span) = error.span().filter(|s| s.start <= text.len()) else {
        return (None, message);
    };
    let before = &text.as_bytes()[..span.start];
    let line = before.iter().filter(|&&b| b == b'\n').count();
    let lines: Vec<&str> = text.lines().collect();
    let header = |l: &&str| {
        let l = l.trim();
        l.strip_prefix('[')
            .and_then(|l| l.split(']').next())
            .map(|l| l.trim_matches('[').to_string())
    };
    let here = lines.get(line).copied().unwrap_or_default();
    // An error about a table itself belongs to its parent.
    let table = match header(&here) {
        Some(own) => own.rsplit_once('.').map(|(parent, _)| parent.to_string()),
        None => lines[..line.min(lines.len())].iter().rev().find_map(header),
    };
    let prefix = table.map_or(String::new(), |t| format!("{t}."));
    if let Some(rest) = message.strip_prefix("unknown field `") {
        let (key, expected) = rest.split_once('`').unwrap_or((rest, ""));
        let allowed = expected
            .trim_start_matches(", expected ")
            .trim_start_matches("one of ");
        return (
            Some(line + 1),
            format!("unknown key `{prefix}{key}`; allowed: {allowed}"),
        );
    }
    // The text names the key. Its span points only to the start of the table: a header, or the
    // value of a key in a table.
    if let Some(rest) = message.strip_prefix("missing field `") {
        let key = rest.split('`').next().unwrap_or(rest);
        let start = text[..span.start].rfind('\n').map_or(0, |n| n + 1);
        let table = match (header(&here), text[start..span.start].split_once('=')) {
            _ if span.is_empty() => String::new(),
            (Some(own), _) => format!("{own}."),
            (None, Some((own, _))) => format!("{prefix}{}.", own.trim()),
            (None, None) => String::new(),
        };
        // The text as a whole has an empty span.
        let at = (!table.is_empty()).then_some(line + 1);
        return (at, format!("missing key `{table}{key}`"));
    }
    match here.split_once('=') {
        Some((key, _)) if !here.trim_start().starts_with('#') => {
            (Some(line + 1), format!("{prefix}{}: {message}", key.trim()))
        }
        _ => (Some(line + 1), message),
    }
}

/// The text of a regular file. A pipe can block forever, and /dev/zero has no end.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    let unreadable = |e: std::io::Error| Error::unreadable(path, &e);
    let kind = std::fs::metadata(path).map_err(unreadable)?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return Err(Error(format!("{}: is no regular file", path.display())));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

/// `Ok` if `ok`, otherwise an error with the allowed values.
pub(crate) fn check(
    key: &str,
    value: impl fmt::Display,
    ok: bool,
    allowed: &str,
) -> Result<(), Error> {
    if ok {
        return Ok(());
    }
    Err(Error(format!("{key} = {value}: allowed is {allowed}")))
}

/// Checks a value against a list.
pub(crate) fn one_of(key: &str, value: u32, allowed: &[u32]) -> Result<(), Error> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let list = allowed
        .iter()
        .map(u32::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    Err(Error(format!("{key} = {value}: allowed are {list}")))
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
