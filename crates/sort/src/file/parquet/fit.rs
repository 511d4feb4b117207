// SPDX-License-Identifier: Apache-2.0

//! Arrow types that Parquet lacks: what a file has instead, or why they can't be written.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date64Type, Decimal128Type, Decimal256Type, Decimal32Type, Decimal64Type, IntervalDayTimeType,
    IntervalYearMonthType,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::{cast_with_options, CastOptions};
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit, Schema, SchemaRef, TimeUnit};

use crate::{Error, Result};

const MILLISECONDS_OF_DAY: i64 = 86_400_000;

/// The schema with the nearest types of Parquet. An error names a column for which there is none.
pub fn schema(schema: &Schema) -> Result<Schema> {
    let fields = schema.fields().iter().map(|field| {
        let kind = kind(field.data_type()).map_err(|why| column_error(field.name(), &why))?;
        Ok(field.as_ref().clone().with_data_type(kind))
    });
    let fields: Result<Vec<Field>> = fields.collect();
    Ok(Schema::new_with_metadata(
        fields?,
        schema.metadata().clone(),
    ))
}

fn column_error(column: &str, why: &str) -> Error {
    Error::new(format!("column {column:?}: {why}"))
}

fn kind(from: &DataType) -> std::result::Result<DataType, String> {
    let none = || Err(format!("Parquet has no type for {from}"));
    let of = |field: &FieldRef| {
        let kind = kind(field.data_type())?;
        Ok::<_, String>(FieldRef::new(field.as_ref().clone().with_data_type(kind)))
    };
    Ok(match from {
        // Parquet's coarsest unit is the millisecond.
        DataType::Timestamp(TimeUnit::Second, zone) => {
            DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
        }
        DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
        DataType::List(field) => DataType::List(of(field)?),
        DataType::LargeList(field) => DataType::LargeList(of(field)?),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(of(field)?, *size),
        DataType::Map(field, sorted) => DataType::Map(of(field)?, *sorted),
        DataType::Struct(fields) if fields.is_empty() => {
            return Err("Parquet has no structs without fields".into())
        }
        DataType::Struct(fields) => DataType::Struct(
            fields
                .iter()
                .map(of)
                .collect::<std::result::Result<_, _>>()?,
        ),
        DataType::Dictionary(key, value) => match value.as_ref() {
            // These dictionaries are written unchanged. The library accepts no others.
            DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView => DataType::Dictionary(key.clone(), value.clone()),
            value => kind(value)?,
        },
        DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Union(..)
        | DataType::RunEndEncoded(..)
        | DataType::Interval(IntervalUnit::MonthDayNano) => return none(),
        other => other.clone(),
    })
}

/// A batch with the types of the schema. An error names a column whose values do not fit.
pub fn batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns: Result<Vec<ArrayRef>> = columns
        .map(|(column, field)| {
            let why = |why: &str| column_error(field.name(), why);
            let strict = CastOptions {
                safe: false,
                ..CastOptions::default()
            };
            let column = match column.data_type() == field.data_type() {
                true => column.clone(),
                false => cast_with_options(column, field.data_type(), &strict)
                    .map_err(|e| why(&e.to_string()))?,
            };
            check(&column).map_err(|e| why(&e))?;
            Ok(column)
        })
        .collect();
    RecordBatch::try_new(schema.clone(), columns?).map_err(Error::from)
}

/// Refuses values that the library would silently change.
fn check(column: &ArrayRef) -> std::result::Result<(), String> {
    let precision = |outcome: std::result::Result<(), arrow_schema::ArrowError>| {
        outcome.map_err(|e| e.to_string())
    };
    let valid = |row: &usize| column.is_valid(*row);
    let negative = "Parquet has no negative intervals";
    let refused = |is: bool, why: &str| if is { Err(why.to_string()) } else { Ok(()) };
    match column.data_type() {
        DataType::Date64 => {
            let values = column.as_primitive::<Date64Type>();
            let mut odd = values.iter().flatten();
            let odd = odd.any(|value| value % MILLISECONDS_OF_DAY != 0);
            refused(
                odd,
                "Parquet's dates have no time of day, as a value of date64 has here",
            )
        }
        DataType::Decimal32(p, _) => precision(
            column
                .as_primitive::<Decimal32Type>()
                .validate_decimal_precision(*p),
        ),
        DataType::Decimal64(p, _) => precision(
            column
                .as_primitive::<Decimal64Type>()
                .validate_decimal_precision(*p),
        ),
        DataType::Decimal128(p, _) => precision(
            column
                .as_primitive::<Decimal128Type>()
                .validate_decimal_precision(*p),
        ),
        DataType::Decimal256(p, _) => precision(
            column
                .as_primitive::<Decimal256Type>()
                .validate_decimal_precision(*p),
        ),
        DataType::Interval(IntervalUnit::YearMonth) => {
            let mut values = column.as_primitive::<IntervalYearMonthType>().iter();
            refused(values.any(|value| value.is_some_and(|v| v < 0)), negative)
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let values = column.as_primitive::<IntervalDayTimeType>();
            let mut rows = (0..column.len()).filter(valid);
            let below = rows.any(|row| {
                let value = values.value(row);
                value.days < 0 || value.milliseconds < 0
            });
            refused(below, negative)
        }
        DataType::List(_) => check(column.as_list::<i32>().values()),
        DataType::LargeList(_) => check(column.as_list::<i64>().values()),
        DataType::FixedSizeList(..) => check(column.as_fixed_size_list().values()),
        DataType::Map(..) => column
            .as_map()
            .entries()
            .columns()
            .iter()
            .try_for_each(check),
        DataType::Struct(_) => column.as_struct().columns().iter().try_for_each(check),
        _ => Ok(()),
    }
}

/// The children of a type, as Parquet nests them.
fn children(kind: &DataType) -> Vec<&FieldRef> {
    match kind {
        DataType::Struct(fields) => fields.iter().collect(),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => vec![field],
        _ => Vec::new(),
    }
}

/// The leaf fields, in the order of a file's columns.
pub fn leaves(schema: &Schema) -> Vec<&Field> {
    fn add<'a>(field: &'a Field, out: &mut Vec<&'a Field>) {
        let within = children(field.data_type());
        if within.is_empty() {
            out.push(field);
        }
        within.into_iter().for_each(|field| add(field, out));
    }
    let mut out = Vec::new();
    let fields = schema.fields().iter();
    fields.for_each(|field| add(field, &mut out));
    out
}
