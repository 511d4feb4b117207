// SPDX-License-Identifier: Apache-2.0

//! Reads files of other writers, and checks what is written for them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, IntervalDayTimeType, IntervalYearMonthType};
use arrow_array::*;
use arrow_buffer::{IntervalDayTime, IntervalMonthDayNano, OffsetBuffer};
use arrow_schema::{DataType, Field, Schema};
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{
    ByteArray, ByteArrayType, FixedLenByteArray, FixedLenByteArrayType, Int32Type as Ints,
    Int64Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::Type;
use sort::{Compression, Format, Table};

type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

/// A Parquet file whose columns are written one by one.
fn parquet(schema: &str, write: impl Fn(&mut Group<'_>)) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    write(&mut group);
    group.close().unwrap();
    writer.into_inner().unwrap()
}

fn read(file: Vec<u8>) -> sort::Result<Table> {
    Table::read(Format::Parquet, file)
}

/// Repeated fields without a list annotation, as old writers use them: lists of zero, one and
/// several elements.
#[test]
fn parquet_repeated_fields_without_annotation() {
    let schema = "message m { required int32 id; \
        optional group phones { repeated group phone { required int64 number; optional binary \
        kind (UTF8); } } \
        repeated int32 plain; }";
    let file = parquet(schema, |group| {
        let mut column = group.next_column().unwrap().unwrap();
        column
            .typed::<Ints>()
            .write_batch(&[1, 2, 3, 4], None, None)
            .unwrap();
        column.close().unwrap();
        // No phones, an empty list, one phone without a kind, and two phones.
        let levels: (&[i16], &[i16]) = (&[0, 1, 2, 2, 2], &[0, 0, 0, 0, 1]);
        let mut column = group.next_column().unwrap().unwrap();
        let numbers = column.typed::<Int64Type>();
        numbers
            .write_batch(&[5, 6, 7], Some(levels.0), Some(levels.1))
            .unwrap();
        column.close().unwrap();
        let kinds = [ByteArray::from("home"), ByteArray::from("work")];
        let mut column = group.next_column().unwrap().unwrap();
        let written = column.typed::<ByteArrayType>();
        written
            .write_batch(&kinds, Some(&[0, 1, 2, 3, 3]), Some(levels.1))
            .unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let plain = column.typed::<Ints>();
        plain
            .write_batch(&[8, 9], Some(&[0, 1, 1, 0, 0]), Some(&[0, 0, 1, 0, 0]))
            .unwrap();
        column.close().unwrap();
    });
    let table = read(file.clone()).unwrap();
    assert_eq!(table.batch.num_rows(), 4);
    // Some footers claim zero rows although their row groups have rows.
    let (said, none) = (b"\x16\x08\x19\x1c", b"\x16\x00\x19\x1c");
    let places = file
        .windows(4)
        .enumerate()
        .filter(|(_, bytes)| bytes == said);
    let places: Vec<usize> = places.map(|(at, _)| at).collect();
    assert_eq!(
        places.len(),
        1,
        "the footer's number of rows, and its list of row groups"
    );
    let mut without = file.clone();
    without[places[0]..][..4].copy_from_slice(none);
    assert_eq!(read(without).unwrap().batch, table.batch);
    let phones = table.batch.column(1).as_struct();
    assert!(phones.is_null(0));
    let lists = phones.column(0).as_list::<i32>();
    let lengths: Vec<i32> = (0..4).map(|row| lists.value_length(row)).collect();
    assert_eq!(lengths, [0, 0, 1, 2]);
    let plain = table.batch.column(2).as_list::<i32>();
    assert_eq!(plain.value(1).as_primitive::<Int32Type>().values(), &[8, 9]);
    let again = read(table.write(Format::Parquet, Compression::Snappy).unwrap()).unwrap();
    assert_eq!(again.batch.num_rows(), 4);
}

/// Writes a binary column.
fn bytes(group: &mut Group<'_>, values: &[&[u8]]) {
    let values: Vec<ByteArray> = values.iter().map(|v| ByteArray::from(v.to_vec())).collect();
    let mut column = group.next_column().unwrap().unwrap();
    let typed = column.typed::<ByteArrayType>();
    typed.write_batch(&values, None, None).unwrap();
    column.close().unwrap();
}

fn logical(file: &[u8]) -> Vec<String> {
    let reader = SerializedFileReader::new(::bytes::Bytes::copy_from_slice(file)).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let leaves = schema.columns().iter();
    leaves
        .map(|leaf| format!("{:?} {}", leaf.logical_type_ref(), leaf.converted_type()))
        .collect()
}

/// Logical types without an Arrow type are carried from file to file, those of old files and of
/// groups as well.
#[test]
fn parquet_logical_types_without_a_type_of_arrow() {
    let schema = "message m { required binary e (ENUM); required binary b (BSON); required binary \
        j (JSON); \
        required int32 t (TIME(MILLIS,true)); required int64 u (TIME(NANOS,false)); }";
    let file = parquet(schema, |group| {
        (0..3).for_each(|_| bytes(group, &[b"x", b"y"]));
        let mut column = group.next_column().unwrap().unwrap();
        column
            .typed::<Ints>()
            .write_batch(&[1, 2], None, None)
            .unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column
            .typed::<Int64Type>()
            .write_batch(&[1, 2], None, None)
            .unwrap();
        column.close().unwrap();
    });
    let table = read(file.clone()).unwrap();
    let again = table.write(Format::Parquet, Compression::Snappy).unwrap();
    let (written, kept) = (logical(&file), logical(&again));
    assert!(written[0].starts_with("Some(Enum)"), "{written:?}");
    assert!(
        written[3].contains("is_adjusted_to_u_t_c: true"),
        "{written:?}"
    );
    assert_eq!(written, kept);
    assert_eq!(read(again.clone()).unwrap().metadata, table.metadata);
    // The metadata pair of the table is not written to files.
    let reader = SerializedFileReader::new(::bytes::Bytes::from(again)).unwrap();
    let pairs = reader.metadata().file_metadata().key_value_metadata();
    assert!(pairs
        .into_iter()
        .flatten()
        .all(|pair| !pair.key.starts_with("nearside")));
}

/// Variant groups keep their type, also within other groups.
#[test]
fn parquet_variant_groups_are_kept() {
    let group = |name: &str, kind: Option<LogicalType>, within: Vec<Type>| {
        let within = within.into_iter().map(Arc::new).collect();
        let group = Type::group_type_builder(name)
            .with_fields(within)
            .with_logical_type(kind);
        group.with_repetition(Repetition::REQUIRED).build().unwrap()
    };
    let leaf = |name: &str| {
        let leaf = Type::primitive_type_builder(name, PhysicalType::BYTE_ARRAY);
        leaf.with_repetition(Repetition::REQUIRED).build().unwrap()
    };
    let variant = || {
        let kind = LogicalType::Variant {
            specification_version: Some(1),
        };
        group("v", Some(kind), vec![leaf("metadata"), leaf("value")])
    };
    let outer = group("outer", None, vec![variant()]);
    let schema = Type::group_type_builder("m")
        .with_fields(vec![Arc::new(outer)])
        .build()
        .unwrap();
    let mut writer =
        SerializedFileWriter::new(Vec::new(), Arc::new(schema), Default::default()).unwrap();
    let mut rows = writer.next_row_group().unwrap();
    (0..2).for_each(|_| bytes(&mut rows, &[b"x"]));
    rows.close().unwrap();
    let table = read(writer.into_inner().unwrap()).unwrap();
    let again = table.write(Format::Parquet, Compression::Snappy).unwrap();
    let reader = SerializedFileReader::new(::bytes::Bytes::from(again)).unwrap();
    let schema = reader.metadata().file_metadata().schema();
    let outer = &schema.get_fields()[0];
    assert_eq!(outer.get_basic_info().logical_type_ref(), None);
    let kind = outer.get_fields()[0].get_basic_info().logical_type_ref();
    assert_eq!(
        kind,
        Some(&LogicalType::Variant {
            specification_version: Some(1)
        })
    );
}

/// A file of intervals: months, days and milliseconds.
fn intervals(values: &[[u32; 3]]) -> Vec<u8> {
    let schema = "message m { required fixed_len_byte_array(12) i (INTERVAL); }";
    parquet(schema, |group| {
        let bytes = |value: &[u32; 3]| {
            let bytes: Vec<u8> = value.iter().flat_map(|n| n.to_le_bytes()).collect();
            FixedLenByteArray::from(bytes)
        };
        let values: Vec<FixedLenByteArray> = values.iter().map(bytes).collect();
        let mut column = group.next_column().unwrap().unwrap();
        let typed = column.typed::<FixedLenByteArrayType>();
        typed.write_batch(&values, None, None).unwrap();
        column.close().unwrap();
    })
}

/// No number of an interval is lost. Arrow's types have only some of the three.
#[test]
fn parquet_intervals_are_kept_or_refused() {
    let months = read(intervals(&[[14, 0, 0], [1, 0, 0]])).unwrap();
    let values = months
        .batch
        .column(0)
        .as_primitive::<IntervalYearMonthType>();
    assert_eq!(values.values(), &[14, 1]);
    let days = read(intervals(&[[0, 2, 3]])).unwrap();
    let value = days
        .batch
        .column(0)
        .as_primitive::<IntervalDayTimeType>()
        .value(0);
    assert_eq!((value.days, value.milliseconds), (2, 3));
    for table in [months, days] {
        let again = table.write(Format::Parquet, Compression::Snappy).unwrap();
        assert!(logical(&again)[0].ends_with(&ConvertedType::INTERVAL.to_string()));
        assert_eq!(read(again).unwrap().batch, table.batch);
    }
    for (values, why) in [
        (
            [[1, 2, 0], [0, 0, 0]],
            "have months beside days or milliseconds",
        ),
        (
            [[1, 0, 0], [0, 0, 1]],
            "have months beside days or milliseconds",
        ),
        ([[0, 1 << 31, 0], [0, 0, 0]], "an interval of 2^31"),
    ] {
        let error = read(intervals(&values)).unwrap_err().to_string();
        assert!(
            error.contains("column \"i\"") && error.contains(why),
            "{error}"
        );
    }
}

/// A value that a file would change is refused, with the column.
#[test]
fn parquet_refuses_what_it_would_change() {
    let decimal = |value: i128, precision| {
        let data = Decimal128Array::from(vec![value]).into_data();
        let kind = DataType::Decimal128(precision, 0);
        Decimal128Array::from(data.into_builder().data_type(kind).build().unwrap())
    };
    let within = |array: ArrayRef| {
        let field = Field::new("item", array.data_type().clone(), true);
        Arc::new(ListArray::new(
            Arc::new(field),
            OffsetBuffer::from_lengths([1]),
            array,
            None,
        )) as ArrayRef
    };
    let day = IntervalDayTime::new(-1, 0);
    let odd: [(ArrayRef, &str); 7] = [
        // The library would write the low bits of such numbers.
        (
            Arc::new(decimal(1 << 40, 5)),
            "too large to store in a Decimal128",
        ),
        (
            Arc::new(decimal(1 << 70, 18)),
            "too large to store in a Decimal128",
        ),
        (
            within(Arc::new(decimal(1 << 40, 5))),
            "too large to store in a Decimal128",
        ),
        (
            Arc::new(Date64Array::from(vec![86_400_001])),
            "no time of day",
        ),
        (
            Arc::new(IntervalDayTimeArray::from(vec![day])),
            "no negative intervals",
        ),
        (
            Arc::new(IntervalYearMonthArray::from(vec![-1])),
            "no negative intervals",
        ),
        (
            Arc::new(IntervalMonthDayNanoArray::from(vec![
                IntervalMonthDayNano::new(1, 2, 3),
            ])),
            "Parquet has no type for",
        ),
    ];
    for (array, why) in odd {
        let schema = Schema::new(vec![Field::new("odd one", array.data_type().clone(), true)]);
        let batch = RecordBatch::try_new(schema.into(), vec![array]).unwrap();
        let written = Table::from(batch).write(Format::Parquet, Compression::Snappy);
        let error = written.unwrap_err().to_string();
        assert!(
            error.contains("column \"odd one\"") && error.contains(why),
            "{error}"
        );
    }
    let dates: ArrayRef = Arc::new(Date64Array::from(vec![
        Some(86_400_000),
        None,
        Some(-86_400_000),
    ]));
    let table = Table::from(RecordBatch::try_from_iter([("d", dates)]).unwrap());
    let file = table.write(Format::Parquet, Compression::Snappy).unwrap();
    assert!(logical(&file)[0].starts_with("Some(Date)"));
    assert_eq!(read(file).unwrap().batch, table.batch);
}
