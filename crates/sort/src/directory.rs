// SPDX-License-Identifier: Apache-2.0

//! The directory of the resident tables of a device. Two copies stand at the start of its
//! namespace.
//!
//! A change writes one copy with the next number, and then the other copy. So one copy is valid at
//! any power cut: it describes the state before or after the change. At rest both copies are the
//! same.

use std::ops::Range;

use serde_json::{json, Value};

use crate::digest::digest;
use crate::{Error, Result};

/// Bytes of a copy.
pub const COPY_BYTES: u64 = 64 << 10;
/// Where the space for tables begins.
pub const DATA_START: u64 = 2 * COPY_BYTES;
const MAGIC: [u8; 8] = *b"NSTABLES";
const VERSION: u32 = 1;
/// Bytes of the header: magic, version, length, number, and the digest of everything else.
const HEAD: usize = 32;

/// A key column that is stored separately from the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyColumn {
    pub name: String,
    pub column: usize,
    pub at: u64,
    /// Bytes of each key.
    pub bytes: usize,
    /// True if the keys are the column's values, false if they are prefixes of its normalised keys.
    pub plain: bool,
}

/// A range of bytes that the host reads, and its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBytes {
    pub place: Range<u64>,
    pub digest: u64,
}

/// The part of a table that one device stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePart {
    pub name: String,
    /// The table's id, the same in all of its parts.
    pub id: u64,
    pub part: usize,
    pub parts: usize,
    /// Number of the part's first row in the table.
    pub first: usize,
    pub rows: usize,
    /// Rows of the whole table.
    pub all: usize,
    pub row_bytes: usize,
    /// The space of the part.
    pub extent: Range<u64>,
    pub table: u64,
    /// Digest of the rows, independent of their order.
    pub digest: u64,
    pub keys: Vec<KeyColumn>,
    /// The schema, and the metadata of a Parquet file.
    pub schema: StoredBytes,
    /// Columns that are not in the rows.
    pub side_columns: StoredBytes,
}

/// All tables of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    /// Counts changes.
    pub number: u64,
    pub entries: Vec<TablePart>,
}

fn number(value: &Value, key: &str) -> Option<u64> {
    value[key].as_u64()
}

fn size(value: &Value, key: &str) -> Option<usize> {
    number(value, key)?.try_into().ok()
}

fn range(value: &Value, key: &str) -> Option<Range<u64>> {
    let (start, end) = (value[key][0].as_u64()?, value[key][1].as_u64()?);
    (start <= end).then_some(start..end)
}

impl StoredBytes {
    fn to_json(&self) -> Value {
        json!({"place": [self.place.start, self.place.end], "digest": self.digest})
    }

    fn of(value: &Value) -> Option<StoredBytes> {
        Some(StoredBytes {
            place: range(value, "place")?,
            digest: number(value, "digest")?,
        })
    }
}

impl KeyColumn {
    fn to_json(&self) -> Value {
        json!({
            "name": self.name, "column": self.column, "at": self.at, "bytes": self.bytes,
            "plain": self.plain,
        })
    }

    fn of(value: &Value) -> Option<KeyColumn> {
        Some(KeyColumn {
            name: value["name"].as_str()?.into(),
            column: size(value, "column")?,
            at: number(value, "at")?,
            bytes: size(value, "bytes")?,
            plain: value["plain"].as_bool()?,
        })
    }
}

impl TablePart {
    fn to_json(&self) -> Value {
        let keys: Vec<Value> = self.keys.iter().map(KeyColumn::to_json).collect();
        json!({
            "name": self.name, "id": self.id, "part": self.part, "parts": self.parts,
            "first": self.first,
            "rows": self.rows, "all": self.all, "row_bytes": self.row_bytes, "table": self.table,
            "digest": self.digest,
            "extent": [self.extent.start, self.extent.end], "keys": keys,
            "schema": self.schema.to_json(), "apart": self.side_columns.to_json(),
        })
    }

    fn of(value: &Value) -> Option<TablePart> {
        let keys: Option<Vec<KeyColumn>> = value["keys"]
            .as_array()?
            .iter()
            .map(KeyColumn::of)
            .collect();
        Some(TablePart {
            name: value["name"].as_str()?.into(),
            id: number(value, "id")?,
            part: size(value, "part")?,
            parts: size(value, "parts")?,
            first: size(value, "first")?,
            rows: size(value, "rows")?,
            all: size(value, "all")?,
            row_bytes: size(value, "row_bytes")?,
            extent: range(value, "extent")?,
            table: number(value, "table")?,
            digest: number(value, "digest")?,
            keys: keys?,
            schema: StoredBytes::of(&value["schema"])?,
            side_columns: StoredBytes::of(&value["apart"])?,
        })
    }

    /// True if all ranges of the part lie within its extent, and that within the namespace.
    fn fits(&self, namespace: u64) -> bool {
        let Range { start, end } = self.extent;
        let within = |at: u64, count: usize, each: usize| {
            let bytes = (count as u64).checked_mul(each as u64);
            let last = bytes.and_then(|bytes| at.checked_add(bytes));
            at >= start && last.is_some_and(|last| last <= end)
        };
        let bytes = |bytes: &StoredBytes| bytes.place.start >= start && bytes.place.end <= end;
        let key = |key: &KeyColumn| {
            key.bytes.is_power_of_two()
                && (4..=16).contains(&key.bytes)
                && within(key.at, self.rows, key.bytes)
        };
        start >= DATA_START
            && end <= namespace
            && self.row_bytes > 0
            && self.part < self.parts
            && within(self.table, self.rows, self.row_bytes)
            && self.keys.iter().all(key)
            && bytes(&self.schema)
            && bytes(&self.side_columns)
    }
}

/// The number and the entries of a copy, if it is whole.
fn read_copy(copy: &[u8]) -> Option<(u64, &[u8])> {
    let head = copy.get(..HEAD)?;
    let word = |at: usize| {
        head[at..at + 4]
            .iter()
            .rev()
            .fold(0, |n, &b| n << 8 | u64::from(b))
    };
    let long = |at: usize| word(at) | word(at + 4) << 32;
    if head[..8] != MAGIC || word(8) != u64::from(VERSION) {
        return None;
    }
    let body = copy.get(HEAD..)?.get(..word(12) as usize)?;
    let checksum = digest(&[&head[..24], body].concat());
    (checksum == long(24)).then_some((long(16), body))
}

impl Directory {
    /// Reads the start of a namespace of `namespace` bytes. Nothing but zeros is an empty
    /// directory.
    pub fn read(start: &[u8], namespace: u64) -> Result<Directory> {
        let copies = start.chunks(COPY_BYTES as usize).filter_map(read_copy);
        let Some((number, body)) = copies.max_by_key(|copy| copy.0) else {
            let empty = start.iter().all(|&byte| byte == 0);
            return empty.then(Directory::default).ok_or_else(|| {
                Error::new(
                    "its namespace holds other data and no tables: erase it, or name \
                    another media file",
                )
            });
        };
        let value: Option<Value> = serde_json::from_slice(body).ok();
        let entries = value.as_ref().and_then(Value::as_array);
        let entries: Option<Vec<TablePart>> =
            entries.and_then(|e| e.iter().map(TablePart::of).collect());
        match entries {
            Some(entries) if entries.iter().all(|e| e.fits(namespace)) => {
                Ok(Directory { number, entries })
            }
            _ => Err(Error::new("its directory of tables is damaged")),
        }
    }

    /// The next directory as a copy, and the offset to write it to.
    pub fn write(&self) -> Result<(u64, Vec<u8>)> {
        let entries: Vec<Value> = self.entries.iter().map(TablePart::to_json).collect();
        let body = Value::from(entries).to_string().into_bytes();
        if body.len() + HEAD > COPY_BYTES as usize {
            return Err(Error::new(
                "a device's directory has no room for another table; drop one",
            ));
        }
        let mut copy = MAGIC.to_vec();
        copy.extend_from_slice(&VERSION.to_le_bytes());
        copy.extend_from_slice(&(body.len() as u32).to_le_bytes());
        copy.extend_from_slice(&self.number.to_le_bytes());
        let checksum = digest(&[&copy[..], &body].concat());
        copy.extend_from_slice(&checksum.to_le_bytes());
        copy.extend_from_slice(&body);
        copy.resize(COPY_BYTES as usize, 0);
        Ok((self.number % 2 * COPY_BYTES, copy))
    }

    /// The unused ranges of a namespace.
    pub fn free(&self, namespace: u64) -> Vec<Range<u64>> {
        let mut used: Vec<&Range<u64>> = self.entries.iter().map(|entry| &entry.extent).collect();
        used.sort_by_key(|extent| extent.start);
        let (mut free, mut next) = (Vec::new(), DATA_START);
        for extent in used {
            free.push(next..extent.start.max(next));
            next = next.max(extent.end);
        }
        free.push(next..namespace.max(next));
        free.retain(|range| !range.is_empty());
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, extent: Range<u64>) -> TablePart {
        let bytes = StoredBytes {
            place: extent.start..extent.start + 10,
            digest: u64::MAX,
        };
        TablePart {
            name: name.into(),
            id: u64::MAX - 1,
            part: 0,
            parts: 1,
            first: 0,
            rows: 10,
            all: 10,
            row_bytes: 3,
            table: extent.start,
            digest: 7,
            keys: vec![KeyColumn {
                name: "k".into(),
                column: 2,
                at: extent.start,
                bytes: 16,
                plain: false,
            }],
            schema: bytes.clone(),
            side_columns: bytes,
            extent,
        }
    }

    /// The start of a namespace after these changes.
    fn start(directories: &[&Directory]) -> Vec<u8> {
        let mut start = vec![0; DATA_START as usize];
        for directory in directories {
            let (at, copy) = directory.write().unwrap();
            start[at as usize..][..copy.len()].copy_from_slice(&copy);
        }
        start
    }

    #[test]
    fn directory_reads_the_latest_whole_copy() {
        let one = Directory {
            number: 1,
            entries: vec![entry("a", DATA_START..DATA_START + 4096)],
        };
        let mut two = one.clone();
        two.number = 2;
        two.entries
            .push(entry("b", DATA_START + 8192..DATA_START + 12288));
        let namespace = 1 << 20;
        assert_eq!(
            Directory::read(&start(&[]), namespace).unwrap(),
            Directory::default()
        );
        let both = start(&[&one, &two]);
        assert_eq!(Directory::read(&both, namespace).unwrap(), two);
        // For every length that the write of the second copy can be cut at.
        let (at, copy) = two.write().unwrap();
        for written in (0..copy.len()).step_by(97) {
            let mut torn = start(&[&one]);
            torn[at as usize..][..written].copy_from_slice(&copy[..written]);
            let found = Directory::read(&torn, namespace).unwrap();
            assert!(found == one || found == two && copy[written..].iter().all(|&b| b == 0));
        }
        assert_eq!(
            two.free(namespace),
            [
                DATA_START + 4096..DATA_START + 8192,
                DATA_START + 12288..namespace
            ]
        );
    }

    #[test]
    fn directory_rejects_other_data() {
        let one = Directory {
            number: 1,
            entries: vec![entry("a", DATA_START..DATA_START + 4096)],
        };
        let read =
            |start: &[u8], namespace| Directory::read(start, namespace).unwrap_err().to_string();
        let good = start(&[&one]);
        assert!(
            read(&good, DATA_START).contains("damaged"),
            "beyond the namespace"
        );
        let mut bad = good.clone();
        for at in (COPY_BYTES as usize..COPY_BYTES as usize + 300).step_by(7) {
            bad[at] ^= 4;
            assert!(read(&bad, 1 << 20).contains("other data"));
            bad[at] ^= 4;
        }
    }
}
