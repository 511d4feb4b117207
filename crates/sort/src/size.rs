// SPDX-License-Identifier: Apache-2.0

//! Sizes of values, counted once for each row that has them. Batches and keys of rows take this
//! much.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, BinaryType, ByteArrayType, ByteViewType, Int16Type, Int32Type,
    Int64Type, LargeBinaryType, LargeUtf8Type, RunEndIndexType, Utf8Type,
};
use arrow_array::{downcast_dictionary_array, Array, ArrayRef, OffsetSizeTrait};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

/// Returns the bytes of a row's value.
type Size<'a> = Box<dyn Fn(usize) -> usize + 'a>;

/// How many of the first rows have at most `most` bytes in these columns together. At least one row
/// is counted, if there is one.
pub fn rows_within(columns: &[ArrayRef], most: usize) -> usize {
    let rows = columns.first().map_or(0, |column| column.len());
    let known = columns.iter().map(|column| width(column.data_type()));
    if let Some(each) = known.sum::<Option<usize>>() {
        return (most / each.max(1)).max(1).min(rows);
    }
    let sizes: Vec<Size> = columns.iter().map(|column| size(column.as_ref())).collect();
    let mut sum = 0usize;
    let fits = (0..rows).take_while(|&row| {
        let bytes = sizes.iter().map(|size| size(row));
        sum = bytes.fold(sum, usize::saturating_add);
        sum <= most
    });
    fits.count().max(1).min(rows)
}

/// Bytes of a value, if all values of the type have the same size.
pub fn width(kind: &DataType) -> Option<usize> {
    match kind {
        DataType::Null => Some(0),
        DataType::Boolean => Some(1),
        DataType::FixedSizeBinary(width) => Some(*width as usize),
        kind => kind.primitive_width(),
    }
}

fn size(array: &dyn Array) -> Size<'_> {
    if let Some(width) = width(array.data_type()) {
        return Box::new(move |_| width);
    }
    match array.data_type() {
        DataType::Utf8 => bytes::<Utf8Type>(array),
        DataType::LargeUtf8 => bytes::<LargeUtf8Type>(array),
        DataType::Binary => bytes::<BinaryType>(array),
        DataType::LargeBinary => bytes::<LargeBinaryType>(array),
        DataType::Utf8View => views(array.as_string_view()),
        DataType::BinaryView => views(array.as_binary_view()),
        DataType::List(_) => list::<i32>(array),
        DataType::LargeList(_) => list::<i64>(array),
        DataType::FixedSizeList(_, length) => {
            let (of, length) = (size(array.as_fixed_size_list().values()), *length as usize);
            Box::new(move |row| (row * length..(row + 1) * length).map(&of).sum())
        }
        DataType::Map(..) => {
            let map = array.as_map();
            let (ends, of) = (map.offsets(), size(map.entries()));
            Box::new(move |row| (ends[row] as usize..ends[row + 1] as usize).map(&of).sum())
        }
        DataType::Struct(_) => {
            let columns = array.as_struct().columns().iter();
            let of: Vec<Size> = columns.map(|column| size(column.as_ref())).collect();
            Box::new(move |row| of.iter().map(|of| of(row)).sum())
        }
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => runs::<Int16Type>(array),
            DataType::Int32 => runs::<Int32Type>(array),
            _ => runs::<Int64Type>(array),
        },
        _ => downcast_dictionary_array!(
            array => dictionary(array),
            // All other types are kept in memory as whole columns.
            _ => Box::new(|_| 16)
        ),
    }
}

fn bytes<T: ByteArrayType>(array: &dyn Array) -> Size<'_> {
    let ends = array.as_bytes::<T>().value_offsets();
    Box::new(move |row| (ends[row + 1] - ends[row]).as_usize())
}

fn views<T: ByteViewType + ?Sized>(array: &arrow_array::GenericByteViewArray<T>) -> Size<'_> {
    // The length is the first word of a view.
    let views = array.views();
    Box::new(move |row| views[row] as u32 as usize)
}

fn list<O: OffsetSizeTrait>(array: &dyn Array) -> Size<'_> {
    let array = array.as_list::<O>();
    let (ends, of) = (array.value_offsets(), size(array.values()));
    Box::new(move |row| {
        (ends[row].as_usize()..ends[row + 1].as_usize())
            .map(&of)
            .sum()
    })
}

fn runs<R: RunEndIndexType>(array: &dyn Array) -> Size<'_> {
    let array = array.as_run::<R>();
    let of = size(array.values());
    Box::new(move |row| of(array.get_physical_index(row)))
}

fn dictionary<K: ArrowDictionaryKeyType>(array: &arrow_array::DictionaryArray<K>) -> Size<'_> {
    let of = size(array.values());
    Box::new(move |row| array.key(row).map_or(0, &of))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{
        DictionaryArray, FixedSizeListArray, Int32Array, ListArray, RunArray, StringArray,
        StringViewArray, StructArray,
    };
    use arrow_schema::Field;

    use super::*;

    /// Checks each row, for slices that begin anywhere.
    fn check(array: impl Array + 'static, wanted: &[usize]) {
        let array: ArrayRef = Arc::new(array);
        for first in 0..wanted.len() {
            let part = array.slice(first, wanted.len() - first);
            let of = size(part.as_ref());
            let found: Vec<usize> = (0..part.len()).map(of).collect();
            assert_eq!(found, wanted[first..], "{} from {first}", array.data_type());
        }
    }

    #[test]
    fn size_counts_the_bytes_of_each_row() {
        let words = ["a", "", "four", "sixsix"];
        check(StringArray::from(words.to_vec()), &[1, 0, 4, 6]);
        let long = "no longer within the view itself";
        check(StringViewArray::from(vec!["a", "", long]), &[1, 0, 32]);
        let keys: DictionaryArray<Int8Type> = [Some("four"), None, Some("a"), Some("four")]
            .into_iter()
            .collect();
        check(keys, &[4, 0, 1, 4]);
        let runs: RunArray<Int32Type> = ["four", "four", "a", "sixsix"].into_iter().collect();
        check(runs, &[4, 4, 1, 6]);
        check(Int32Array::from(vec![1, 2]), &[4, 4]);
        let lists = [
            Some(vec![Some(1), None]),
            None,
            Some(vec![]),
            Some(vec![Some(3)]),
        ];
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
        check(lists.clone(), &[8, 0, 0, 4]);
        let both: Vec<(Arc<Field>, ArrayRef)> = vec![
            (
                Arc::new(Field::new("l", lists.data_type().clone(), true)),
                Arc::new(lists),
            ),
            (
                Arc::new(Field::new("w", DataType::Utf8, true)),
                Arc::new(StringArray::from(words.to_vec())),
            ),
        ];
        check(StructArray::from(both), &[9, 0, 4, 10]);
        let words: ArrayRef = Arc::new(StringArray::from(words.to_vec()));
        let item = Arc::new(Field::new("item", DataType::Utf8, true));
        check(FixedSizeListArray::new(item, 2, words, None), &[1, 10]);
    }

    #[test]
    fn size_limits_rows_by_bytes_but_keeps_one() {
        let words: ArrayRef = Arc::new(StringArray::from(vec!["four"; 10]));
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1; 10]));
        assert_eq!(rows_within(std::slice::from_ref(&words), 11), 2);
        assert_eq!(rows_within(&[words.clone(), numbers.clone()], 23), 2);
        assert_eq!(rows_within(std::slice::from_ref(&numbers), 11), 2);
        assert_eq!(rows_within(std::slice::from_ref(&words), 3), 1);
        assert_eq!(rows_within(&[words], 1000), 10);
        assert_eq!(rows_within(&[numbers.slice(0, 0)], 3), 0);
        assert_eq!(rows_within(&[], 3), 0);
    }
}
