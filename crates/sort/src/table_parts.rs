// SPDX-License-Identifier: Apache-2.0

//! Finds the table of a name. A part names its table by an id. A set of media files may hold
//! several tables of one name, and may lack parts of each.

use std::path::PathBuf;

use crate::directory::{Directory, TablePart};
use crate::{Error, Result};

/// The parts of a table that were found, in order, each with its device.
pub struct TableParts<'a> {
    pub parts: Vec<(usize, &'a TablePart)>,
}

/// Why parts are not a whole table.
enum PartsFlaw {
    Missing(usize),
    /// Two devices have the same part.
    Twice(usize, [usize; 2]),
    Unlike,
}

/// All tables, sorted by name and id. The order of the devices does not matter.
pub fn all_tables(directories: &[Directory]) -> Vec<TableParts<'_>> {
    let entries = directories.iter().enumerate();
    let entries = entries.flat_map(|(device, d)| d.entries.iter().map(move |e| (device, e)));
    let mut entries: Vec<(usize, &TablePart)> = entries.collect();
    entries.sort_by_key(|(device, e)| (&e.name, e.id, e.part, *device));
    let of_one = entries.chunk_by(|(_, a), (_, b)| (&a.name, a.id) == (&b.name, b.id));
    of_one
        .map(|parts| TableParts {
            parts: parts.to_vec(),
        })
        .collect()
}

/// The table with a name or an id. It is an error if there is none, or several.
pub fn find_table<'a>(
    directories: &'a [Directory],
    media: &[PathBuf],
    name: &str,
) -> Result<TableParts<'a>> {
    let (mut meant, other): (Vec<_>, Vec<_>) = all_tables(directories)
        .into_iter()
        .partition(|found| found.name() == name || found.id() == name);
    match (meant.pop(), meant.is_empty()) {
        (Some(one), true) => Ok(one),
        (Some(last), false) => {
            meant.push(last);
            let descriptions: Vec<String> =
                meant.iter().map(|found| found.describe(media)).collect();
            Err(Error::new(format!(
                "{} tables are called {name:?}: {}: name the media files of one of them, or give \
                    its id instead of the name",
                meant.len(),
                join_words(&descriptions)
            )))
        }
        (None, _) => {
            let mut names: Vec<&str> = other.iter().map(TableParts::name).collect();
            names.dedup();
            let names = match names.is_empty() {
                true => "none".into(),
                false => names.join(", "),
            };
            Err(Error::new(format!(
                "no table is called {name:?}: these media files have {names}"
            )))
        }
    }
}

fn join_words(words: &[String]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        words => words.join(""),
    }
}

impl<'a> TableParts<'a> {
    /// The first part. All parts agree about the whole table.
    pub fn first_part(&self) -> &'a TablePart {
        self.parts[0].1
    }

    pub fn name(&self) -> &'a str {
        &self.first_part().name
    }

    /// The id as it is printed.
    pub fn id(&self) -> String {
        format!("{:016x}", self.first_part().id)
    }

    fn on(&self, media: &[PathBuf]) -> String {
        let parts = self.parts.iter();
        let paths: Vec<String> = parts
            .map(|(device, _)| media[*device].display().to_string())
            .collect();
        join_words(&paths)
    }

    /// A description for errors: id, parts that were found, and media files.
    pub fn describe(&self, media: &[PathBuf]) -> String {
        let (one, parts) = (self.first_part(), self.parts.len());
        format!(
            "{} ({parts} of {} parts, {} rows, on {})",
            self.id(),
            one.parts,
            one.all,
            self.on(media)
        )
    }

    fn flaw(&self) -> Option<PartsFlaw> {
        let one = self.first_part();
        let twice = self.parts.windows(2).find_map(|two| match two {
            [(a, x), (b, y)] if x.part == y.part => Some(PartsFlaw::Twice(x.part, [*a, *b])),
            _ => None,
        });
        let has = |n: usize| self.parts.iter().any(|(_, entry)| entry.part == n);
        let missing = (0..one.parts).find(|&n| !has(n)).map(PartsFlaw::Missing);
        if let Some(flaw) = twice.or(missing) {
            return Some(flaw);
        }
        let mut next = 0;
        let alike = self.parts.iter().enumerate().all(|(n, (device, entry))| {
            let follows = entry.part == n
                && entry.first == next
                && entry.row_bytes == one.row_bytes
                && entry.schema.digest == one.schema.digest
                && (entry.parts, entry.all) == (one.parts, one.all)
                && self.parts.iter().filter(|part| part.0 == *device).count() == 1;
            next += entry.rows;
            follows
        });
        (!alike || next != one.all).then_some(PartsFlaw::Unlike)
    }

    fn twice(&self, media: &[PathBuf], part: usize, [a, b]: [usize; 2]) -> Error {
        let [a, b] = [a, b].map(|device| media[device].display());
        Error::new(format!(
            "table {:?} has part {part} on {a} and {b}: name one of these media files",
            self.name()
        ))
    }

    /// Refuses a table that is not whole.
    pub fn check_whole(&self, media: &[PathBuf]) -> Result<()> {
        let what = match self.flaw() {
            None => return Ok(()),
            Some(PartsFlaw::Twice(part, devices)) => return Err(self.twice(media, part, devices)),
            Some(PartsFlaw::Missing(part)) => format!("part {part} is missing"),
            Some(PartsFlaw::Unlike) => "they do not fit together".into(),
        };
        Err(Error::new(format!(
            "table {:?} has {} parts, of which these media files have {} (on {}), and {what}: \
                name all of them once, or drop what is left",
            self.name(),
            self.first_part().parts,
            self.parts.len(),
            self.on(media)
        )))
    }

    /// Refuses a table of which a part was found twice.
    pub fn check_once(&self, media: &[PathBuf]) -> Result<()> {
        match self.flaw() {
            Some(PartsFlaw::Twice(part, devices)) => Err(self.twice(media, part, devices)),
            _ => Ok(()),
        }
    }
}
