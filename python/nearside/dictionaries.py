# SPDX-License-Identifier: Apache-2.0
"""Dictionary columns of pyarrow with more distinct values in all chunks than their keys can number.

A sorted chunk has rows of all chunks, so keys are widened for the sort. Afterwards the rows are cut
into
chunks again, each with a separate dictionary that the original keys can number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Rows of a chunk that are examined first.
LOOK = 4096


def _most(kind: Any) -> int:
    """The number of values that keys of a type can distinguish."""
    info = np.iinfo(kind.to_pandas_dtype())
    return int(info.max) + 1


def widened(table: Any) -> Any:
    """The table, with 32-bit keys in columns whose keys may not suffice."""
    import pyarrow as pa

    for number, field in enumerate(table.schema):
        kind = field.type
        if not pa.types.is_dictionary(kind) or kind.index_type.bit_width >= 32:
            continue
        column = table.column(number)
        if sum(len(chunk.dictionary) for chunk in column.chunks) <= _most(kind.index_type):
            continue
        wide = pa.dictionary(pa.int32(), kind.value_type, kind.ordered)
        chunks = [
            pa.DictionaryArray.from_arrays(chunk.indices.cast(pa.int32()), chunk.dictionary, ordered=kind.ordered)
            for chunk in column.chunks
        ]
        table = table.set_column(number, field.with_type(wide), pa.chunked_array(chunks, wide))
    return table


def narrowed(table: Any, schema: Any) -> Any:
    """The table with its original schema restored, in as many chunks as necessary."""
    if table.schema.equals(schema):
        return table
    import pyarrow as pa

    columns = [
        column if column.type == field.type else pa.chunked_array(_chunks(column, field.type), field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _chunks(column: Any, kind: Any) -> list[Any]:
    """The chunks of a column, cut so that keys of this type can number the values of each."""
    import pyarrow as pa

    most, made = _most(kind.index_type), []
    for chunk in column.chunks:
        null = chunk.indices.is_null().to_numpy(zero_copy_only=False)
        keys = chunk.indices.fill_null(0).to_numpy(zero_copy_only=False)
        start = 0
        while start < len(keys):
            used, own, end = _cut(keys, start, most)
            indices = pa.array(own.astype(kind.index_type.to_pandas_dtype()), kind.index_type, mask=null[start:end])
            values = chunk.dictionary.take(pa.array(used))
            made.append(pa.DictionaryArray.from_arrays(indices, values, ordered=kind.ordered))
            start = end
    return made


def _cut(keys: np.ndarray, start: int, most: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows from `start` on with at most `most` distinct values: the used keys, each row's index into them, the end."""
    look = LOOK
    while True:
        end = min(start + look, len(keys))
        used, first = np.unique(keys[start:end], return_index=True)
        if len(used) > most:
            end = start + int(np.sort(first)[most])
        elif end < len(keys):
            look *= 2
            continue
        used, own = np.unique(keys[start:end], return_inverse=True)
        return used, own, end
