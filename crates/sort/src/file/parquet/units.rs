// SPDX-License-Identifier: Apache-2.0

//! Columns whose values may not fit the derived Arrow type: INT96 is 96 bits of time, INTERVAL has
//! three numbers.
//!
//! The library uses one type for all of their values, and drops what does not fit. So all values
//! are checked first.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit};
use parquet::basic::{ConvertedType, Type};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, FixedLenByteArray, Int96};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::SchemaDescriptor;

use super::fit;
use crate::input::Input;
use crate::{Error, Result};

/// Records that are read at once.
const RECORDS_PER_READ: usize = 16 << 10;
const JULIAN_DAY_OF_EPOCH: i128 = 2_440_588;
const NANOSECONDS_OF_DAY: i128 = 86_400_000_000_000;

/// A schema whose types hold all values of such columns, if the given one's do not. An error names
/// a column that no type can hold.
pub fn schema_that_fits(
    input: &Input,
    file: &SchemaDescriptor,
    schema: &SchemaRef,
) -> Result<Option<SchemaRef>> {
    let odd = |at: &usize| {
        let column = file.column(*at);
        column.physical_type() == Type::INT96 || is_interval(file, *at)
    };
    let odd: Vec<usize> = (0..file.num_columns()).filter(odd).collect();
    if odd.is_empty() {
        return Ok(None);
    }
    let leaves = fit::leaves(schema);
    let reader = SerializedFileReader::new(input.clone())?;
    let mut changed = HashMap::new();
    for at in odd {
        let name = file.column(at).path().string();
        let derived = leaves
            .get(at)
            .ok_or_else(|| Error::new("its columns differ"))?;
        let derived = derived.data_type();
        let fits = match file.column(at).physical_type() {
            Type::INT96 => time(&reader, at, &name, derived)?,
            _ => interval(&reader, at, &name, derived)?,
        };
        if fits != *derived {
            changed.insert(at, fits);
        }
    }
    if changed.is_empty() {
        return Ok(None);
    }
    let mut next = 0;
    let fields = schema.fields().iter();
    let fields: Fields = fields.map(|f| with_types(f, &mut next, &changed)).collect();
    let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
    Ok(Some(Arc::new(schema)))
}

fn is_interval(file: &SchemaDescriptor, at: usize) -> bool {
    let column = file.column(at);
    column.converted_type() == ConvertedType::INTERVAL && column.type_length() == 12
}

/// The field with other types of some leaves.
fn with_types(field: &FieldRef, next: &mut usize, changed: &HashMap<usize, DataType>) -> FieldRef {
    let mut of = |field: &FieldRef| with_types(field, next, changed);
    let kind = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(of).collect()),
        DataType::List(field) => DataType::List(of(field)),
        DataType::LargeList(field) => DataType::LargeList(of(field)),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(of(field), *size),
        DataType::Map(field, sorted) => DataType::Map(of(field), *sorted),
        leaf => {
            *next += 1;
            changed.get(&(*next - 1)).unwrap_or(leaf).clone()
        }
    };
    Arc::new(field.as_ref().clone().with_data_type(kind))
}

/// Passes all values of a leaf to `each`.
fn scan(
    reader: &SerializedFileReader<Input>,
    at: usize,
    mut each: impl FnMut(ScannedValues) -> Result<()>,
) -> Result<()> {
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let mut column = group.get_column_reader(at)?;
        loop {
            let (mut definition, mut repetition) = (Vec::new(), Vec::new());
            let levels = (Some(&mut definition), Some(&mut repetition));
            let (records, values) = match &mut column {
                ColumnReader::Int96ColumnReader(column) => {
                    let mut values: Vec<Int96> = Vec::new();
                    let read =
                        column.read_records(RECORDS_PER_READ, levels.0, levels.1, &mut values);
                    (read, ScannedValues::Times(values))
                }
                ColumnReader::FixedLenByteArrayColumnReader(column) => {
                    let mut values: Vec<FixedLenByteArray> = Vec::new();
                    let read =
                        column.read_records(RECORDS_PER_READ, levels.0, levels.1, &mut values);
                    let values = values.into_iter().map(ByteArray::from);
                    (read, ScannedValues::Intervals(values.collect()))
                }
                _ => return Err(Error::new("a column is of another type than it says")),
            };
            let (records, ..) = records?;
            if records == 0 {
                break;
            }
            each(values)?;
        }
    }
    Ok(())
}

enum ScannedValues {
    Times(Vec<Int96>),
    Intervals(Vec<ByteArray>),
}

/// Nanoseconds since 1970.
fn nanoseconds(value: &Int96) -> i128 {
    let [low, high, day] = [value.data()[0], value.data()[1], value.data()[2]];
    // As the library reads them: both numbers are signed.
    let of_day = (u64::from(high) << 32 | u64::from(low)) as i64;
    (i128::from(day as i32) - JULIAN_DAY_OF_EPOCH) * NANOSECONDS_OF_DAY + i128::from(of_day)
}

/// The unit in which all times of an INT96 column are whole 64-bit numbers: the declared one, else
/// the finest.
fn time(
    reader: &SerializedFileReader<Input>,
    at: usize,
    name: &str,
    derived: &DataType,
) -> Result<DataType> {
    let DataType::Timestamp(unit, zone) = derived else {
        return Err(Error::new(format!(
            "column {name:?}: values of INT96 can't be read as {derived}"
        )));
    };
    let (mut first, mut last) = (i128::MAX, i128::MIN);
    // All times are multiples of this number.
    let mut step: i128 = 1_000_000_000;
    scan(reader, at, |values| {
        if let ScannedValues::Times(values) = values {
            for value in values.iter().map(nanoseconds) {
                (first, last) = (first.min(value), last.max(value));
                while value % step != 0 {
                    step /= 1000;
                }
            }
        }
        Ok(())
    })?;
    let fits = |unit: &TimeUnit| {
        let of = nanoseconds_of(*unit);
        let holds = |value: i128| i64::try_from(value / of).is_ok();
        first > last || step >= of && holds(first) && holds(last)
    };
    let finest = [
        TimeUnit::Nanosecond,
        TimeUnit::Microsecond,
        TimeUnit::Millisecond,
        TimeUnit::Second,
    ];
    let unit = [*unit].into_iter().chain(finest).find(fits);
    let unit = unit.ok_or_else(|| {
        Error::new(format!(
            "column {name:?}: no unit of a timestamp of 64 bits holds all of its INT96 times: \
                they go from {first} to \
             {last} ns since 1970, and some are no multiple of {} ns",
            1000 * step
        ))
    })?;
    Ok(DataType::Timestamp(unit, zone.clone()))
}

fn nanoseconds_of(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1000,
        TimeUnit::Nanosecond => 1,
    }
}

/// The type of an INTERVAL column. Arrow's types have either months, or days and milliseconds.
fn interval(
    reader: &SerializedFileReader<Input>,
    at: usize,
    name: &str,
    derived: &DataType,
) -> Result<DataType> {
    let (mut months, mut others, mut large) = (false, false, false);
    scan(reader, at, |values| {
        if let ScannedValues::Intervals(values) = values {
            for value in &values {
                let numbers = value.data().chunks_exact(4);
                let number =
                    |bytes: &[u8]| i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                let numbers: Vec<i32> = numbers.map(number).collect();
                months |= numbers[0] != 0;
                others |= numbers[1..].iter().any(|&n| n != 0);
                // Parquet's numbers are unsigned, Arrow's are signed.
                large |= numbers.iter().any(|&n| n < 0);
            }
        }
        Ok(())
    })?;
    let refused = |why: &str| Err(Error::new(format!("column {name:?}: {why}")));
    match (months, others) {
        _ if large => refused("an interval of 2^31 or more months, days or milliseconds"),
        (true, true) => refused(
            "its intervals have months beside days or milliseconds, for which there is no type \
                here",
        ),
        (true, false) => Ok(DataType::Interval(IntervalUnit::YearMonth)),
        (false, true) => Ok(DataType::Interval(IntervalUnit::DayTime)),
        (false, false) => Ok(derived.clone()),
    }
}
