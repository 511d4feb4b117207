// SPDX-License-Identifier: Apache-2.0

//! Finds encrypted columns of a file. The library would report such a footer as damaged.
//!
//! The footer is in Thrift's compact protocol. Only what leads to `crypto_metadata` is decoded.

use crate::input::Input;
use crate::{Error, Result};

const MAGIC: &[u8] = b"PAR1";
const MAGIC_ENCRYPTED: &[u8] = b"PARE";
/// Length and magic at the end.
const TAIL: usize = 8;
/// Deepest nesting of structures.
const DEPTH: usize = 32;

/// Field numbers of `parquet.thrift`.
mod field {
    pub const ROW_GROUPS: i16 = 4;
    pub const ENCRYPTION_ALGORITHM: i16 = 8;
    pub const COLUMNS: i16 = 1;
    pub const META_DATA: i16 = 3;
    pub const CRYPTO_METADATA: i16 = 8;
    pub const PATH_IN_SCHEMA: i16 = 3;
    pub const WITH_COLUMN_KEY: i16 = 2;
    pub const PATH_OF_KEY: i16 = 1;
}

/// Types of the compact protocol.
mod kind {
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const BYTE: u8 = 3;
    pub const I64: u8 = 6;
    pub const DOUBLE: u8 = 7;
    pub const BINARY: u8 = 8;
    pub const LIST: u8 = 9;
    pub const SET: u8 = 10;
    pub const MAP: u8 = 11;
    pub const STRUCT: u8 = 12;
    pub const UUID: u8 = 13;
}

/// Refuses a file with an encrypted footer or encrypted columns. Anything that is no footer is left
/// to the reader.
pub fn check(input: &Input) -> Result<()> {
    let Some(start) = input.bytes().checked_sub(TAIL as u64) else {
        return Ok(());
    };
    let tail = input.read_at(start, TAIL)?;
    if tail.ends_with(MAGIC_ENCRYPTED) {
        return Err(Error::new(
            "its footer is encrypted: encrypted files are not read, write it without encryption",
        ));
    }
    let length = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
    let Some(start) = start.checked_sub(length.into()) else {
        return Ok(());
    };
    if !tail.ends_with(MAGIC) {
        return Ok(());
    }
    let footer = input.read_at(start, length as usize)?;
    match encrypted(&footer) {
        Some(columns) if !columns.is_empty() => {
            let (several, are) = if columns.len() > 1 {
                ("s", "are")
            } else {
                ("", "is")
            };
            let columns: Vec<String> = columns.iter().map(|name| format!("{name:?}")).collect();
            Err(Error::new(format!(
                "column{several} {} {are} encrypted: encrypted columns are not read, write the \
                    file without encryption",
                columns.join(", ")
            )))
        }
        _ => Ok(()),
    }
}

/// The encrypted columns of a footer. `None`: it is no footer.
fn encrypted(footer: &[u8]) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut algorithm = false;
    let mut thrift = Thrift { bytes: footer };
    thrift.structure(DEPTH, &mut |thrift, id, kind| {
        algorithm |= id == field::ENCRYPTION_ALGORITHM;
        match id {
            field::ROW_GROUPS => {
                thrift.list(kind, |thrift, kind| row_group(thrift, kind, &mut found))
            }
            _ => thrift.skip(kind, DEPTH),
        }
    })?;
    // Without an algorithm in the footer nothing is encrypted.
    algorithm.then_some(found)
}

fn row_group(thrift: &mut Thrift, kind: u8, found: &mut Vec<String>) -> Option<()> {
    if kind != kind::STRUCT {
        return None;
    }
    thrift.structure(DEPTH, &mut |thrift, id, kind| match id {
        field::COLUMNS => thrift.list(kind, |thrift, kind| column(thrift, kind, found)),
        _ => thrift.skip(kind, DEPTH),
    })
}

fn column(thrift: &mut Thrift, kind: u8, found: &mut Vec<String>) -> Option<()> {
    if kind != kind::STRUCT {
        return None;
    }
    let (mut encrypted, mut path, mut of_key) = (false, Vec::new(), Vec::new());
    thrift.structure(DEPTH, &mut |thrift, id, kind| match (id, kind) {
        (field::META_DATA, kind::STRUCT) => {
            thrift.structure(DEPTH, &mut |thrift, id, kind| match id {
                field::PATH_IN_SCHEMA => thrift.texts(kind, &mut path),
                _ => thrift.skip(kind, DEPTH),
            })
        }
        (field::CRYPTO_METADATA, kind::STRUCT) => {
            encrypted = true;
            thrift.structure(DEPTH, &mut |thrift, id, kind| match (id, kind) {
                (field::WITH_COLUMN_KEY, kind::STRUCT) => {
                    thrift.structure(DEPTH, &mut |thrift, id, kind| match id {
                        field::PATH_OF_KEY => thrift.texts(kind, &mut of_key),
                        _ => thrift.skip(kind, DEPTH),
                    })
                }
                _ => thrift.skip(kind, DEPTH),
            })
        }
        _ => thrift.skip(kind, DEPTH),
    })?;
    if encrypted {
        let name = if path.is_empty() { of_key } else { path }.join(".");
        if !found.contains(&name) {
            found.push(name);
        }
    }
    Some(())
}

/// What is left of bytes in the compact protocol. Nothing comes of bytes that are none.
struct Thrift<'a> {
    bytes: &'a [u8],
}

impl<'a> Thrift<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    fn take_bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let count = usize::try_from(count).ok()?;
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn binary(&mut self) -> Option<&'a [u8]> {
        let length = self.varint()?;
        self.take_bytes(length)
    }

    /// Passes the number and the type of each field to `each`, which reads the value.
    fn structure(
        &mut self,
        depth: usize,
        each: &mut dyn FnMut(&mut Thrift<'a>, i16, u8) -> Option<()>,
    ) -> Option<()> {
        depth.checked_sub(1)?;
        let mut id = 0i16;
        loop {
            let header = self.byte()?;
            if header == 0 {
                return Some(());
            }
            id = match header >> 4 {
                0 => {
                    let zigzag = self.varint()?;
                    i16::try_from((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)).ok()?
                }
                more => id.checked_add(more.into())?,
            };
            each(self, id, header & 0xF)?;
        }
    }

    /// Passes the type of each element to `each`, which reads the value.
    fn list(
        &mut self,
        kind: u8,
        mut each: impl FnMut(&mut Thrift<'a>, u8) -> Option<()>,
    ) -> Option<()> {
        if kind != kind::LIST {
            return None;
        }
        let header = self.byte()?;
        let count = match header >> 4 {
            15 => self.varint()?,
            count => count.into(),
        };
        (0..count).try_for_each(|_| each(self, header & 0xF))
    }

    fn texts(&mut self, kind: u8, out: &mut Vec<String>) -> Option<()> {
        self.list(kind, |thrift, kind| {
            if kind != kind::BINARY {
                return None;
            }
            out.push(String::from_utf8_lossy(thrift.binary()?).into_owned());
            Some(())
        })
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            // In a field, the type itself is the boolean.
            kind::TRUE | kind::FALSE => Some(()),
            kind::BYTE => self.take_bytes(1).map(drop),
            4..=kind::I64 => self.varint().map(drop),
            kind::DOUBLE => self.take_bytes(8).map(drop),
            kind::BINARY => self.binary().map(drop),
            kind::UUID => self.take_bytes(16).map(drop),
            kind::STRUCT => self.structure(depth, &mut |thrift, _, kind| thrift.skip(kind, depth)),
            kind::LIST | kind::SET => {
                self.list(kind::LIST, |thrift, kind| thrift.element(kind, depth))
            }
            kind::MAP => {
                let count = self.varint()?;
                if count == 0 {
                    return Some(());
                }
                let kinds = self.byte()?;
                (0..count).try_for_each(|_| {
                    self.element(kinds >> 4, depth)?;
                    self.element(kinds & 0xF, depth)
                })
            }
            _ => None,
        }
    }

    /// In lists and maps, a boolean is a byte.
    fn element(&mut self, kind: u8, depth: usize) -> Option<()> {
        match kind {
            kind::TRUE | kind::FALSE => self.take_bytes(1).map(drop),
            kind => self.skip(kind, depth),
        }
    }
}
