// SPDX-License-Identifier: Apache-2.0

//! A key column as its Parquet file encodes it, for the engine `dict_decode`: the values of the
//! dictionary, and keys in runs (RLE and bit-packed).

use arrow_buffer::NullBuffer;
use bytes::Bytes;
use parquet::basic::{Encoding, Type};
use parquet::column::page::Page;
use parquet::file::reader::{FileReader, SerializedFileReader};
use spec::tables::{DICTIONARY_BYTES, DICTIONARY_VALUES};

use crate::guard::guarded;
use crate::input::Input;
use crate::key::{EngineKey, SortKey};
use crate::source::Source;
use crate::{Error, Result};

/// Limit of the host memory for the keys of all rows.
const MAX_HELD_BYTES: usize = 64 << 20;
/// Values of a group of packed keys.
const GROUP_VALUES: usize = 8;

/// What a device receives of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedKeys {
    /// The dictionary's values.
    pub dictionary: Vec<u8>,
    /// Runs of keys.
    pub encoded: Vec<u8>,
    /// Parameters of the engine's command.
    pub shape: EncodedShape,
}

/// Sizes of dictionary, keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodedShape {
    entries: usize,
    /// Bits of a key.
    width: usize,
    value_bytes: usize,
}

impl EncodedShape {
    /// Dword 15 of the command `decode`.
    pub fn dword(&self) -> u32 {
        (self.entries as u32 - 1) | (self.width as u32) << 16 | self.value_bytes.ilog2() << 24
    }
}

/// The keys of a run.
#[derive(Clone, Debug)]
enum RunKeys {
    /// One key that is repeated, in as many of these bytes as it has.
    Same([u8; 4]),
    /// Packed groups, copied: a slice of a page would keep the whole page in memory.
    Packed(Box<[u8]>),
}

#[derive(Clone, Debug)]
struct KeyRun {
    /// Number of the run's first value. Nulls are not counted.
    first: usize,
    count: usize,
    /// Bits of a key.
    width: usize,
    /// Number of the first value of its row group's dictionary.
    base: usize,
    keys: RunKeys,
}

/// A whole column.
#[derive(Clone, Debug)]
pub struct DictionaryColumn {
    /// The dictionaries of all row groups, one after the other.
    dictionary: Vec<u8>,
    entries: usize,
    width: usize,
    value_bytes: usize,
    runs: Vec<KeyRun>,
    /// Bytes of memory that the runs take.
    held: usize,
    nulls: Option<NullBuffer>,
}

/// One key of a packed run.
fn unpack(keys: &[u8], width: usize, n: usize) -> usize {
    let first = n * width;
    let bytes = keys[first / 8..].iter().take(5).rev();
    let bits = bytes.fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
    (bits >> (first % 8) & ((1 << width) - 1)) as usize
}

impl KeyRun {
    /// Bytes of memory that the run takes with keys of `width` bits.
    fn held(&self, width: usize) -> usize {
        let keys = match self.keys {
            RunKeys::Same(_) => 0,
            RunKeys::Packed(_) => self.count.div_ceil(GROUP_VALUES) * width,
        };
        size_of::<KeyRun>() + keys
    }

    /// The run with keys of another width, counted from the start of all dictionaries.
    fn widened(&self, width: usize) -> KeyRun {
        let keys = match &self.keys {
            RunKeys::Same(key) => {
                let key = u32::from_le_bytes(*key).wrapping_add(self.base as u32);
                RunKeys::Same(key.to_le_bytes())
            }
            RunKeys::Packed(keys) => {
                let (mut out, mut bits, mut held) = (Vec::new(), 0u64, 0);
                for n in 0..self.count.next_multiple_of(GROUP_VALUES) {
                    // The padding of the last group may hold anything.
                    let key = match n < self.count {
                        true => unpack(keys, self.width, n) + self.base,
                        false => 0,
                    };
                    bits |= (key as u64) << held;
                    held += width;
                    while held >= 8 {
                        out.push(bits as u8);
                        bits >>= 8;
                        held -= 8;
                    }
                }
                RunKeys::Packed(out.into())
            }
        };
        KeyRun {
            width,
            base: 0,
            keys,
            ..self.clone()
        }
    }
}

/// Decodes a length of up to 32 bits. Returns its value and the bytes after it.
fn length(bytes: &Bytes) -> Option<(usize, Bytes)> {
    let mut value = 0;
    for (n, &byte) in bytes.iter().take(5).enumerate() {
        value |= usize::from(byte & 0x7F) << (7 * n);
        if byte < 0x80 {
            return Some((value, bytes.slice(n + 1..)));
        }
    }
    None
}

fn push_length(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn split(bytes: &Bytes, at: usize) -> Option<(Bytes, Bytes)> {
    (at <= bytes.len()).then(|| (bytes.slice(..at), bytes.slice(at..)))
}

impl DictionaryColumn {
    /// The key column of a table as its file encodes it, if the engine can decode that. The
    /// dictionaries have to fit into the engine, all pages have to use them, and values have to be
    /// numbers of 4 or 8 bytes. `valid` says which rows have a value, unless all have.
    pub fn of(
        source: &Source,
        key: &SortKey,
        valid: Option<&NullBuffer>,
    ) -> Option<DictionaryColumn> {
        let file = source.parquet()?;
        let (&[column], EngineKey::Plain { .. }) = (&key.columns[..], key.compared) else {
            return None;
        };
        let schema = source.schema();
        let name = schema.field(column).name().clone();
        let empty = DictionaryColumn {
            dictionary: Vec::new(),
            entries: 0,
            width: 0,
            value_bytes: key.bytes,
            runs: Vec::new(),
            held: 0,
            nulls: valid.cloned(),
        };
        // Columns that can't be read here are sent as values.
        let read = || empty.read(file, &name, source.rows()).map_err(Error::from);
        guarded("no pages", || -> Result<Option<DictionaryColumn>> {
            read()
        })
        .ok()
        .flatten()
    }

    fn read(
        mut self,
        file: Input,
        name: &str,
        rows: usize,
    ) -> parquet::errors::Result<Option<DictionaryColumn>> {
        let reader = SerializedFileReader::new(file)?;
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let leaves = schema.columns().iter();
        let Some(at) = leaves.into_iter().position(|c| c.path().parts() == [name]) else {
            return Ok(None);
        };
        let leaf = schema.column(at);
        let levels = leaf.max_def_level();
        let width = match leaf.physical_type() {
            Type::INT32 | Type::FLOAT => 4,
            Type::INT64 | Type::DOUBLE => 8,
            _ => 0,
        };
        if width != self.value_bytes || leaf.max_rep_level() > 0 || levels > 1 {
            return Ok(None);
        }
        let mut row = 0;
        for group in 0..reader.num_row_groups() {
            let mut base = None;
            for page in reader.get_row_group(group)?.get_column_page_reader(at)? {
                let taken = match (page?, base) {
                    (
                        Page::DictionaryPage {
                            buf, num_values, ..
                        },
                        None,
                    ) => {
                        base = Some(self.entries);
                        self.add_dictionary(&buf, num_values as usize)
                    }
                    (page, Some(base)) => self.add_page(&page, levels > 0, base, row),
                    _ => None,
                };
                match taken {
                    Some(taken) => row += taken,
                    None => return Ok(None),
                }
            }
        }
        if row != rows || self.runs.is_empty() {
            return Ok(None);
        }
        self.width = self.runs[0].width;
        let same = |run: &KeyRun| (run.width, run.base) == (self.width, 0);
        if !self.runs.iter().all(same) {
            self.width = (self.entries.max(2) - 1).ilog2() as usize + 1;
            let wide = self.runs.iter().map(|run| run.held(self.width));
            if wide.sum::<usize>() > MAX_HELD_BYTES {
                return Ok(None);
            }
            self.runs = self
                .runs
                .iter()
                .map(|run| run.widened(self.width))
                .collect();
        }
        Ok(Some(self))
    }

    /// Appends the dictionary of a row group. It has no rows.
    fn add_dictionary(&mut self, values: &[u8], entries: usize) -> Option<usize> {
        let values = values.get(..entries.checked_mul(self.value_bytes)?)?;
        self.entries += entries;
        self.dictionary.extend_from_slice(values);
        let fits = self.entries as u64 <= DICTIONARY_VALUES
            && self.dictionary.len() as u64 <= DICTIONARY_BYTES;
        (fits && entries > 0).then_some(0)
    }

    /// Number of values in the first `rows` rows.
    fn values(&self, rows: usize) -> usize {
        let nulls = self.nulls.as_ref();
        rows - nulls.map_or(0, |nulls| nulls.slice(0, rows).null_count())
    }

    /// Appends the keys of a data page, and returns its rows. `None`: the engine can't decode the
    /// page.
    fn add_page(&mut self, page: &Page, levels: bool, base: usize, row: usize) -> Option<usize> {
        let (buf, rows, encoding, skip) = match page {
            Page::DataPage {
                buf,
                num_values,
                encoding,
                ..
            } => {
                let skip = match levels {
                    true => 4 + u32::from_le_bytes(buf.get(..4)?.try_into().ok()?) as usize,
                    false => 0,
                };
                (buf, *num_values as usize, *encoding, skip)
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let skip = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
                (buf, *num_values as usize, *encoding, skip)
            }
            Page::DictionaryPage { .. } => return None,
        };
        #[allow(deprecated)] // old files use it
        let known = [Encoding::RLE_DICTIONARY, Encoding::PLAIN_DICTIONARY];
        if !known.contains(&encoding) {
            return None;
        }
        if row + rows > self.nulls.as_ref().map_or(usize::MAX, NullBuffer::len) {
            return None;
        }
        let first = self.values(row);
        let values = self.values(row + rows) - first;
        if values == 0 {
            return Some(rows);
        }
        let (_, rest) = split(buf, skip)?;
        let (width, mut rest) = split(&rest, 1)?;
        let width = usize::from(width[0]);
        if width > 32 {
            return None;
        }
        let mut done = 0;
        while done < values {
            let (header, remaining) = length(&rest)?;
            let packed = header & 1 == 1;
            let (bytes, holds) = match packed {
                true => (
                    (header >> 1).checked_mul(width)?,
                    (header >> 1) * GROUP_VALUES,
                ),
                false => (width.div_ceil(8), header >> 1),
            };
            let (keys, remaining) = split(&remaining, bytes)?;
            let count = holds.min(values - done);
            if count == 0 {
                return None;
            }
            self.held += size_of::<KeyRun>() + bytes;
            if self.held > MAX_HELD_BYTES {
                return None;
            }
            let keys = if packed {
                RunKeys::Packed(keys.as_ref().into())
            } else {
                let mut key = [0; 4];
                key[..keys.len()].copy_from_slice(&keys);
                RunKeys::Same(key)
            };
            self.runs.push(KeyRun {
                first: first + done,
                count,
                width,
                base,
                keys,
            });
            done += count;
            rest = remaining;
        }
        Some(rows)
    }

    /// What a device receives for the rows `from..to`.
    pub fn part(&self, from: u32, to: u32) -> EncodedKeys {
        let (from, to) = (self.values(from as usize), self.values(to as usize));
        let mut encoded = Vec::new();
        // Keys of zero bits need no runs.
        let runs = if self.width == 0 { &[] } else { &self.runs[..] };
        let begin = runs.partition_point(|run| run.first + run.count <= from);
        for run in runs[begin..].iter().take_while(|run| run.first < to) {
            let (start, end) = (from.max(run.first), to.min(run.first + run.count));
            let (start, end) = (start - run.first, end - run.first);
            match &run.keys {
                RunKeys::Same(key) => {
                    push_length(&mut encoded, (end - start) << 1);
                    encoded.extend_from_slice(&key[..self.width.div_ceil(8)]);
                }
                RunKeys::Packed(keys) => {
                    let last = run.first + end == to;
                    self.push_packed(keys, start, end, last, &mut encoded);
                }
            }
        }
        EncodedKeys {
            dictionary: self.dictionary.clone(),
            encoded,
            shape: EncodedShape {
                entries: self.entries,
                width: self.width,
                value_bytes: self.value_bytes,
            },
        }
    }

    /// Appends keys of a packed run. Only the very last group may be padded, so keys that do not
    /// fill a group become runs of one.
    fn push_packed(&self, keys: &[u8], start: usize, end: usize, last: bool, out: &mut Vec<u8>) {
        let first = start.next_multiple_of(GROUP_VALUES).min(end);
        let whole = if last {
            end.next_multiple_of(GROUP_VALUES)
        } else {
            end / GROUP_VALUES * GROUP_VALUES
        };
        (start..first).for_each(|n| self.push_single(keys, n, out));
        if first < whole && first < end {
            let groups = (whole - first) / GROUP_VALUES;
            push_length(out, groups << 1 | 1);
            out.extend_from_slice(
                &keys[first / GROUP_VALUES * self.width..whole / GROUP_VALUES * self.width],
            );
        }
        (whole.max(first)..end).for_each(|n| self.push_single(keys, n, out));
    }

    fn push_single(&self, keys: &[u8], n: usize, out: &mut Vec<u8>) {
        let key = unpack(keys, self.width, n) as u64;
        push_length(out, 1 << 1);
        out.extend_from_slice(&key.to_le_bytes()[..self.width.div_ceil(8)]);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch, UInt64Array,
    };
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use sim::Random;

    use super::*;
    use crate::order::parse_order;
    use crate::Table;

    /// Decodes as the engine does.
    fn decode(pages: &EncodedKeys, count: usize) -> Vec<u8> {
        let shape = pages.shape;
        let (mut out, mut rest) = (Vec::new(), Bytes::from(pages.encoded.clone()));
        let mut push = |key: usize| {
            let at = key * shape.value_bytes;
            out.extend_from_slice(&pages.dictionary[at..at + shape.value_bytes]);
        };
        let mut left = count;
        while left > 0 && shape.width == 0 {
            push(0);
            left -= 1;
        }
        while left > 0 {
            let (header, remaining) = length(&rest).unwrap();
            if header & 1 == 0 {
                let (key, remaining) = split(&remaining, shape.width.div_ceil(8)).unwrap();
                let key = key.iter().rev().fold(0, |n, &b| n << 8 | usize::from(b));
                (0..header >> 1).for_each(|_| push(key));
                left -= header >> 1;
                rest = remaining;
            } else {
                let (keys, remaining) = split(&remaining, (header >> 1) * shape.width).unwrap();
                let here = ((header >> 1) * GROUP_VALUES).min(left);
                assert!(
                    here % GROUP_VALUES == 0 || here == left,
                    "filled up before the end"
                );
                for n in 0..here {
                    let bit = |at: usize| usize::from(keys[at / 8] >> (at % 8) & 1);
                    push((0..shape.width).fold(0, |k, b| k | bit(n * shape.width + b) << b));
                }
                left -= here;
                rest = remaining;
            }
        }
        assert!(rest.is_empty(), "more than was asked for");
        out
    }

    fn parquet(array: ArrayRef, version: WriterVersion, nullable: bool, group: usize) -> Table {
        let columns = [("key", array, nullable)];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_max_row_group_size(group)
            .set_data_page_row_count_limit(700)
            .set_write_batch_size(100)
            .build();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        Table::read(crate::Format::Parquet, file).unwrap()
    }

    fn of(table: &Table, key: &SortKey) -> Option<DictionaryColumn> {
        let valid = table.batch.column(0).nulls();
        DictionaryColumn::of(&table.into(), key, valid)
    }

    /// Compares random parts of a column with their values.
    fn check(table: &Table, random: &mut Random) {
        let key = SortKey::of(&table.schema(), &parse_order("key").unwrap()).unwrap();
        let column = of(table, &key).expect("the engine can decode it");
        let rows = table.batch.num_rows() as u64;
        for _ in 0..60 {
            let from = random.below(rows - 1) as u32;
            let to = from + 1 + random.below(rows - u64::from(from)) as u32;
            let part = table.batch.slice(from as usize, (to - from) as usize);
            let (order, sorted) = key.split(&part);
            let wanted = key.encode(&part, &order[..sorted]).unwrap();
            assert_eq!(decode(&column.part(from, to), sorted), wanted);
        }
    }

    #[test]
    fn encoded_keys_decode_to_their_values() {
        let mut random = Random::new(1);
        for entries in [1, 2, 3, 100, 300] {
            // All values occur at once, so the keys of all pages have the same width.
            let mut long = 0;
            let words: Vec<u64> = (0..3001u64)
                .map(|n| {
                    if n >= entries && random.below(10) < 8 {
                        return long;
                    }
                    long = if n < entries {
                        n
                    } else {
                        random.below(entries)
                    };
                    long
                })
                .collect();
            let small = words.iter().map(|&n| n as i32 * 7 - 50);
            let (doubles, words) = (
                words.iter().map(|&n| n as f64 * 0.5),
                words.iter().map(|n| n << 40),
            );
            let arrays: [ArrayRef; 3] = [
                Arc::new(Int32Array::from_iter_values(small)),
                Arc::new(Float64Array::from_iter_values(doubles)),
                Arc::new(UInt64Array::from_iter_values(words)),
            ];
            for array in arrays {
                for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                    let nullable = version == WriterVersion::PARQUET_1_0;
                    for group in [1 << 20, 1000] {
                        let table = parquet(array.clone(), version, nullable, group);
                        check(&table, &mut random);
                    }
                }
            }
        }
    }

    #[test]
    fn encoded_keys_widen_with_the_dictionary_and_skip_nulls() {
        let mut random = Random::new(2);
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for nulls in [0, 3, 9] {
                for group in [1 << 20, 901] {
                    let mut value = |n: u64| {
                        let known = random.below(n / 4 + 1) as i32;
                        (random.below(10) >= nulls).then_some(known * 3 - 77)
                    };
                    let array: ArrayRef =
                        Arc::new(Int32Array::from_iter((0..3001).map(&mut value)));
                    check(&parquet(array, version, true, group), &mut random);
                }
            }
        }
    }

    #[test]
    fn encoded_keys_fall_back_to_values() {
        let key =
            |table: &Table| SortKey::of(&table.schema(), &parse_order("key").unwrap()).unwrap();
        // More distinct values than the engine can hold.
        let many = Int64Array::from_iter_values(0..70_000);
        let many = parquet(Arc::new(many), WriterVersion::PARQUET_1_0, true, 1 << 20);
        assert!(of(&many, &key(&many)).is_none());
        let short = Int16Array::from(vec![1, 2, 1]);
        let short = parquet(Arc::new(short), WriterVersion::PARQUET_1_0, true, 1 << 20);
        assert_eq!(key(&short).bytes, 4);
        let memory = Table::from(short.batch.clone());
        assert!(of(&memory, &key(&memory)).is_none());
    }
}
