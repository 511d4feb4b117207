//! A key column as it is in its Parquet file: the values of its dictionary, and its keys in runs (RLE and bit-packed), for the
//! engine `dict_decode`.

use bytes::Bytes;
use parquet::basic::{Encoding, Type};
use parquet::column::page::Page;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::guard::guarded;
use crate::key::{Compared, Key};
use crate::{Error, Result, Table};

/// Values, and their bytes, that the engine has room for.
const MOST_ENTRIES: usize = 65536;
const MOST_BYTES: usize = 512 << 10;
/// Values of a group of packed keys.
const GROUP: usize = 8;

/// What a device gets of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pages {
    /// Plain values.
    pub dictionary: Vec<u8>,
    /// Runs of keys.
    pub encoded: Vec<u8>,
    /// What the engine has to know of them.
    pub shape: Shape,
}

/// How keys and values look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    entries: usize,
    /// Bits of a key.
    width: usize,
    value_bytes: usize,
}

impl Shape {
    /// Dword 15 of the command `decode`.
    pub fn dword(&self) -> u32 {
        (self.entries as u32 - 1) | (self.width as u32) << 16 | self.value_bytes.ilog2() << 24
    }
}

/// Keys that stand together.
#[derive(Clone, Debug)]
enum Keys {
    /// One, many times.
    Same(Bytes),
    /// In groups.
    Packed(Bytes),
}

#[derive(Clone, Debug)]
struct Run {
    first: usize,
    count: usize,
    keys: Keys,
}

/// A whole column.
#[derive(Clone, Debug)]
pub struct Column {
    dictionary: Bytes,
    entries: usize,
    width: usize,
    value_bytes: usize,
    runs: Vec<Run>,
}

/// A length of up to 32 bits; its value and the bytes behind it.
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

impl Column {
    /// The key of a table as it is in its file, if the engine can decode that: one row group, one dictionary, no nulls, keys of one width,
    /// numbers of 4 or 8 bytes.
    pub fn of(table: &Table, key: &Key) -> Option<Column> {
        let file = table.file.clone()?;
        let (&[column], Compared::Plain { .. }) = (&key.columns[..], key.compared) else {
            return None;
        };
        if table.batch.column(column).null_count() > 0 {
            return None;
        }
        let schema = table.schema();
        let name = schema.field(column).name().clone();
        let (bytes, rows) = (key.bytes, table.batch.num_rows());
        // The table has been read: what is odd here goes the other way.
        let read = || Column::read(file, &name, bytes, rows).map_err(Error::new);
        guarded("no pages", || -> Result<Option<Column>> { read() })
            .ok()
            .flatten()
    }

    fn read(
        file: Bytes,
        name: &str,
        value_bytes: usize,
        rows: usize,
    ) -> parquet::errors::Result<Option<Column>> {
        let reader = SerializedFileReader::new(file)?;
        if reader.num_row_groups() != 1 {
            return Ok(None);
        }
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
        if width != value_bytes || leaf.max_rep_level() > 0 || levels > 1 {
            return Ok(None);
        }
        let group = reader.get_row_group(0)?;
        let mut column: Option<Column> = None;
        let mut row = 0;
        for page in group.get_column_page_reader(at)? {
            match (page?, &mut column) {
                (
                    Page::DictionaryPage {
                        buf, num_values, ..
                    },
                    None,
                ) => {
                    let entries = num_values as usize;
                    let bytes = entries * value_bytes;
                    if !(1..=MOST_ENTRIES).contains(&entries)
                        || bytes > MOST_BYTES
                        || bytes > buf.len()
                    {
                        return Ok(None);
                    }
                    column = Some(Column {
                        dictionary: buf.slice(..bytes),
                        entries,
                        width: usize::MAX,
                        value_bytes,
                        runs: Vec::new(),
                    });
                }
                (page, Some(column)) => match column.page(&page, levels > 0, row) {
                    Some(count) => row += count,
                    None => return Ok(None),
                },
                _ => return Ok(None),
            }
        }
        Ok(column.filter(|column| row == rows && column.width <= 32))
    }

    /// Takes the keys of a data page; how many. Nothing if it is not what the engine can decode.
    fn page(&mut self, page: &Page, levels: bool, first: usize) -> Option<usize> {
        let (buf, values, encoding, skip) = match page {
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
        #[allow(deprecated)] // old files have it
        let known = [Encoding::RLE_DICTIONARY, Encoding::PLAIN_DICTIONARY];
        if !known.contains(&encoding) {
            return None;
        }
        let (_, rest) = split(buf, skip)?;
        let (width, mut rest) = split(&rest, 1)?;
        let width = usize::from(width[0]);
        if !self.runs.is_empty() && self.width != width {
            return None;
        }
        self.width = width;
        let mut done = 0;
        while done < values {
            let (header, behind) = length(&rest)?;
            let packed = header & 1 == 1;
            let (bytes, holds) = match packed {
                true => ((header >> 1).checked_mul(width)?, (header >> 1) * GROUP),
                false => (width.div_ceil(8), header >> 1),
            };
            let (keys, behind) = split(&behind, bytes)?;
            let count = holds.min(values - done);
            if count == 0 {
                return None;
            }
            let keys = if packed {
                Keys::Packed(keys)
            } else {
                Keys::Same(keys)
            };
            self.runs.push(Run {
                first: first + done,
                count,
                keys,
            });
            done += count;
            rest = behind;
        }
        Some(done)
    }

    /// What a device gets for the rows `from..to`.
    pub fn part(&self, from: u32, to: u32) -> Pages {
        let (from, to) = (from as usize, to as usize);
        let mut encoded = Vec::new();
        // Keys of no bits are known.
        let runs = if self.width == 0 { &[] } else { &self.runs[..] };
        let begin = runs.partition_point(|run| run.first + run.count <= from);
        for run in runs[begin..].iter().take_while(|run| run.first < to) {
            let (start, end) = (from.max(run.first), to.min(run.first + run.count));
            let (start, end) = (start - run.first, end - run.first);
            match &run.keys {
                Keys::Same(key) => {
                    push_length(&mut encoded, (end - start) << 1);
                    encoded.extend_from_slice(key);
                }
                Keys::Packed(keys) => {
                    let last = run.first + end == to;
                    self.packed(keys, start, end, last, &mut encoded);
                }
            }
        }
        Pages {
            dictionary: self.dictionary.to_vec(),
            encoded,
            shape: Shape {
                entries: self.entries,
                width: self.width,
                value_bytes: self.value_bytes,
            },
        }
    }

    /// Keys of a packed run. Only the last group of all may be filled up: keys that are no whole group are runs of their own.
    fn packed(&self, keys: &[u8], start: usize, end: usize, last: bool, out: &mut Vec<u8>) {
        let first = start.next_multiple_of(GROUP).min(end);
        let whole = if last {
            end.next_multiple_of(GROUP)
        } else {
            end / GROUP * GROUP
        };
        (start..first).for_each(|n| self.single(keys, n, out));
        if first < whole && first < end {
            let groups = (whole - first) / GROUP;
            push_length(out, groups << 1 | 1);
            out.extend_from_slice(&keys[first / GROUP * self.width..whole / GROUP * self.width]);
        }
        (whole.max(first)..end).for_each(|n| self.single(keys, n, out));
    }

    fn single(&self, keys: &[u8], n: usize, out: &mut Vec<u8>) {
        let bit = |at: usize| u64::from(keys[at / 8] >> (at % 8) & 1);
        let key = (0..self.width).fold(0, |key, b| key | bit(n * self.width + b) << b);
        push_length(out, 1 << 1);
        out.extend_from_slice(&key.to_le_bytes()[..self.width.div_ceil(8)]);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array, Int32Array, RecordBatch, UInt64Array};
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use sim::Random;

    use super::*;
    use crate::order::parse;

    /// What the engine makes of it.
    fn decode(pages: &Pages, count: usize) -> Vec<u8> {
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
            let (header, behind) = length(&rest).unwrap();
            if header & 1 == 0 {
                let (key, behind) = split(&behind, shape.width.div_ceil(8)).unwrap();
                let key = key.iter().rev().fold(0, |n, &b| n << 8 | usize::from(b));
                (0..header >> 1).for_each(|_| push(key));
                left -= header >> 1;
                rest = behind;
            } else {
                let (keys, behind) = split(&behind, (header >> 1) * shape.width).unwrap();
                let here = ((header >> 1) * GROUP).min(left);
                assert!(
                    here % GROUP == 0 || here == left,
                    "filled up before the end"
                );
                for n in 0..here {
                    let bit = |at: usize| usize::from(keys[at / 8] >> (at % 8) & 1);
                    push((0..shape.width).fold(0, |k, b| k | bit(n * shape.width + b) << b));
                }
                left -= here;
                rest = behind;
            }
        }
        assert!(rest.is_empty(), "more than was asked for");
        out
    }

    fn parquet(array: ArrayRef, version: WriterVersion, nullable: bool) -> Table {
        let columns = [("key", array, nullable)];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_data_page_row_count_limit(700)
            .set_write_batch_size(100)
            .build();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        Table::read(crate::Format::Parquet, file).unwrap()
    }

    #[test]
    fn any_part_of_a_column_decodes_to_its_values() {
        let mut random = Random::new(1);
        for entries in [1, 2, 3, 100, 300] {
            // All of its values come at once: the keys of all pages are as wide.
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
                    let table = parquet(
                        array.clone(),
                        version,
                        version == WriterVersion::PARQUET_1_0,
                    );
                    let key = Key::of(&table.schema(), &parse("key").unwrap()).unwrap();
                    let column = Column::of(&table, &key).expect("the engine can decode it");
                    for _ in 0..60 {
                        let from = random.below(3000) as u32;
                        let to = from + 1 + random.below(u64::from(3001 - from)) as u32;
                        let order: Vec<u32> = (from..to).collect();
                        let wanted = key.encode(&table.batch, &order).unwrap();
                        assert_eq!(decode(&column.part(from, to), order.len()), wanted);
                    }
                }
            }
        }
    }

    #[test]
    fn what_the_engine_can_not_decode_goes_as_values() {
        let key = |table: &Table| Key::of(&table.schema(), &parse("key").unwrap()).unwrap();
        let nulls = parquet(
            Arc::new(Int32Array::from(vec![Some(1), None])),
            WriterVersion::PARQUET_1_0,
            true,
        );
        assert!(Column::of(&nulls, &key(&nulls)).is_none());
        let memory = Table::from(nulls.batch.clone());
        assert!(Column::of(&memory, &key(&memory)).is_none());
    }
}
