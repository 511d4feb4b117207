# SPDX-License-Identifier: Apache-2.0
"""Sorted tables beside those of pyarrow, DuckDB and Polars: random schemas, TPC-H and TPC-C.

`NEARSIDE_TPCH_SCALE` and `NEARSIDE_TPCC_WAREHOUSES` make the tables larger. Those that have whole tables in
memory go to a scale factor of 1, or 20 warehouses; those from file to file have no such limit.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from nearside import sort_table
from nearside.order_line import order_line

PEERS = "install the query engines with 'make peers'"
SCALE = float(os.environ.get("NEARSIDE_TPCH_SCALE", "0.005"))
WAREHOUSES = int(os.environ.get("NEARSIDE_TPCC_WAREHOUSES", "0"))
DAYS = 20_000
TOGETHER = 100_000  # rows that are compared at a time
IN_MEMORY = pytest.mark.skipif(SCALE > 1 or WAREHOUSES > 20, reason="too large to be in memory as a whole")

# A key: a column, whether the greatest is first, whether nulls are.
Key = tuple[str, bool, bool]


def spelt(keys: list[Key]) -> str:
    """In the syntax of `nearside sort --by`; defaults are left out at random."""
    parts = []
    for name, descending, nulls_first in keys:
        nulls = "" if nulls_first == descending else f" nulls {'first' if nulls_first else 'last'}"
        parts.append(f'"{name}"{" desc" if descending else ""}{nulls}')
    return ", ".join(parts)


def plain(column: pa.ChunkedArray) -> pa.Array:
    """Converted to a type that pyarrow can sort and take by index."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    elif pa.types.is_duration(kind):
        kind = pa.int64()
    elif kind == pa.string_view():
        kind = pa.string()
    return column.cast(kind).combine_chunks()


def by_pyarrow(table: pa.Table, keys: list[Key]) -> list[int]:
    """The order as row numbers, which are also the last key, as pyarrow's sort need not be stable."""
    columns = {}
    for name, _, _ in keys:
        columns[name] = plain(table[name])
    columns["row"] = pa.array(np.arange(table.num_rows))
    order = [
        (name, "descending" if descending else "ascending", "at_start" if nulls_first else "at_end")
        for name, descending, nulls_first in keys
    ]
    return pc.sort_indices(pa.table(columns), sort_keys=[*order, ("row", "ascending", "at_end")]).to_pylist()


def by_duckdb(table: pa.Table, keys: list[Key]) -> list[int]:
    duckdb = pytest.importorskip("duckdb", reason=PEERS)
    with_row = table.append_column("row", pa.array(np.arange(table.num_rows)))
    order = ", ".join(
        f'"{name}" {"DESC" if descending else "ASC"} NULLS {"FIRST" if nulls_first else "LAST"}'
        for name, descending, nulls_first in keys
    )
    with duckdb.connect() as engine:
        engine.register("given", with_row)
        engine.execute("SET threads = 1")
        return [row for (row,) in engine.execute(f'SELECT "row" FROM given ORDER BY {order}, "row"').fetchall()]


def by_polars(table: pa.Table, keys: list[Key]) -> list[int]:
    polars = pytest.importorskip("polars", reason=PEERS)
    frame = polars.from_arrow(table).with_row_index("row")
    names, descending, nulls_first = zip(*keys, strict=True)
    nulls_last = [not first for first in nulls_first]
    return frame.sort(names, descending=descending, nulls_last=nulls_last, maintain_order=True)["row"].to_list()


ENGINES = {"pyarrow": by_pyarrow, "duckdb": by_duckdb, "polars": by_polars}


def words(draw: random.Random) -> str:
    """Many have a common prefix longer than the engine's key; some are empty."""
    return draw.choice(["", "a", "the same beginning, "]) * draw.randrange(3) + draw.choice(["", "x", "é", "\0", "zz"])


def few(draw: random.Random, low: int, high: int) -> int:
    """A number; some occur often."""
    return (
        draw.choice([low, high, max(low, -1), min(high, 1), min(high, 7)])
        if draw.random() < 0.6
        else draw.randint(low, high)
    )


# Makers of values, by type. NaN and -0 are left out, as engines order them differently.
KINDS = {
    **{getattr(pa, f"int{n}")(): lambda d, n=n: few(d, -(1 << n - 1), (1 << n - 1) - 1) for n in (8, 16, 32, 64)},
    **{getattr(pa, f"uint{n}")(): lambda d, n=n: few(d, 0, (1 << n) - 1) for n in (8, 16, 32, 64)},
    pa.float32(): lambda d: float(np.float32(d.choice([1.5, -1e30, float("inf"), d.gauss(0, 1) or 1.0]))),
    pa.float64(): lambda d: d.choice([1.5, -1e300, float("-inf"), d.gauss(0, 1) or 1.0]),
    pa.bool_(): lambda d: d.random() < 0.5,
    pa.date32(): lambda d: few(d, -DAYS, DAYS),
    pa.time32("ms"): lambda d: few(d, 0, 86_399_999),
    pa.time64("us"): lambda d: few(d, 0, 86_399_999_999),
    pa.timestamp("us"): lambda d: few(d, -(10**15), 10**15),
    pa.timestamp("ms", "UTC"): lambda d: few(d, -(10**12), 10**12),
    pa.duration("us"): lambda d: few(d, -(10**12), 10**12),
    pa.decimal128(9, 2): lambda d: Decimal(few(d, -(10**9) + 1, 10**9 - 1)).scaleb(-2),
    pa.decimal128(38, 4): lambda d: Decimal(few(d, -(10**20), 10**20)).scaleb(-4),
    pa.string(): words,
    pa.large_string(): words,
    pa.string_view(): words,
    pa.binary(): lambda d: words(d).encode() + bytes([d.randrange(256)] * d.randrange(3)),
    pa.dictionary(pa.int32(), pa.string()): words,
}


def column(draw: random.Random, kind: pa.DataType, rows: int) -> pa.ChunkedArray:
    """In chunks, with nulls or without."""
    nulls = draw.choice([0, 0, 0.1, 0.9])
    values = [None if draw.random() < nulls else KINDS[kind](draw) for _ in range(rows)]
    cuts = sorted(draw.randint(0, rows) for _ in range(draw.randrange(3)))
    chunks = [values[a:b] for a, b in zip([0, *cuts], [*cuts, rows], strict=True)]
    return pa.chunked_array([pa.array(chunk, kind) for chunk in chunks], kind)


def drawn(seed: int) -> tuple[random.Random, pa.Table, list[Key]]:
    """A random schema, its rows, and an order."""
    draw = random.Random(seed)
    rows = draw.choice([0, 1, 2, 50, 300, 300])
    kinds = draw.sample(list(KINDS), draw.randint(1, 6))
    table = pa.table({f"c{n}, {kind}": column(draw, kind, rows) for n, kind in enumerate(kinds)})
    names = draw.sample(table.column_names, min(draw.randint(1, 3), len(kinds)))
    return draw, table, [(name, draw.random() < 0.5, draw.random() < 0.5) for name in names]


def given(draw: random.Random, table: pa.Table, folder: Path) -> pa.Table | Path:
    """In memory or in a file, in row groups."""
    how = draw.choice(["memory", "parquet", "feather"])
    path = folder / f"t.{how}"
    if how == "memory":
        return table
    if how == "feather":
        feather.write_feather(table, path, compression=draw.choice(["lz4", "zstd", "uncompressed"]))
    else:
        pq.write_table(table, path, row_group_size=draw.choice([7, 100, 1000]), use_dictionary=draw.random() < 0.7)
    return path


@pytest.mark.parametrize("seed", range(40))
def test_sort_peers_random_schemas(seed, tmp_path):
    draw, table, keys = drawn(seed)
    source = given(draw, table, tmp_path)
    found, report = sort_table(source, spelt(keys), devices=draw.randint(1, 3), model="fast")
    order = pa.array(by_pyarrow(table, keys), pa.int64())
    if source is table:
        assert found.schema.equals(table.schema)
    for name in table.column_names:
        assert plain(found[name]).cast(plain(table[name]).type) == plain(table[name]).take(order), (name, keys)
    assert report["rows"] == table.num_rows


@pytest.mark.slow
def test_sort_peers_query_engines_agree_on_random_schemas():
    for seed in range(100, 130):
        draw, table, keys = drawn(seed)
        # DuckDB and Polars have other types for binary and durations; strings replace them above.
        found, _ = sort_table(
            table.append_column("row", pa.array(np.arange(table.num_rows))),
            spelt(keys),
            devices=draw.randint(1, 3),
            model="fast",
        )
        for engine, sort in ENGINES.items():
            assert found["row"].to_pylist() == sort(table, keys), (engine, seed, keys)


def rows_of(reader: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """The same rows in tables of `TOGETHER`, except the last one, with the types of `schema`."""
    held: list[pa.RecordBatch] = []
    for batch in reader:
        held.append(batch)
        while sum(batch.num_rows for batch in held) >= TOGETHER:
            table = pa.Table.from_batches(held)
            yield table.slice(0, TOGETHER).cast(schema)
            held = table.slice(TOGETHER).to_batches()
    if held:
        yield pa.Table.from_batches(held).cast(schema)


def same_as_duckdb(source: Path, ours: Path, keys: list[Key]) -> int:
    """Compares a sorted file with DuckDB's sort of its source, in bounded memory; returns its rows.

    Rows with equal keys are in the order of the source.
    """
    duckdb = pytest.importorskip("duckdb", reason=PEERS)
    order = ", ".join(
        f'"{name}" {"DESC" if descending else "ASC"} NULLS {"FIRST" if nulls_first else "LAST"}'
        for name, descending, nulls_first in keys
    )
    file = pq.ParquetFile(ours)
    assert file.schema_arrow.equals(pq.read_schema(source))
    with duckdb.connect(config={"threads": 1, "memory_limit": "4GB", "temp_directory": f"{ours}.duckdb"}) as engine:
        found = engine.sql(
            "SELECT * EXCLUDE (file_row_number) FROM read_parquet($1, file_row_number = true) "
            f"ORDER BY {order}, file_row_number",
            params=[str(source)],
        )
        tables = (rows_of(reader, file.schema_arrow) for reader in (file.iter_batches(), found.to_arrow_reader()))
        rows = 0
        for one, other in zip_longest(*tables):
            assert one is not None
            assert other is not None
            assert one.equals(other), f"rows from {rows} on"
            rows += one.num_rows
    assert rows == file.metadata.num_rows == pq.read_metadata(source).num_rows
    return rows


def from_file_to_file(source: Path, found: Path, keys: list[Key]) -> None:
    """Runs the command in a separate process."""
    run = [Path(sys.executable).with_name("nearside"), "sort", source, "-o", found, "--by", spelt(keys)]
    subprocess.run([*run, "--devices", "4", "--model", "fast"], check=True, capture_output=True)
    assert same_as_duckdb(source, found, keys) > 0


@pytest.fixture(scope="module")
def tpch(tmp_path_factory):
    """Generates a table of TPC-H, as Parquet."""
    tool = Path(sys.executable).with_name("tpchgen-cli")
    if not tool.exists():
        pytest.skip(PEERS)
    folder = tmp_path_factory.mktemp("tpch")

    def make(name: str) -> Path:
        path = folder / f"{name}.parquet"
        if not path.exists():
            options = ["--tables", name, "-s", f"{SCALE:g}", "--output-dir", folder]
            subprocess.run([tool, "parquet", *options], check=True, capture_output=True)
        return path

    return make


@pytest.mark.slow
@IN_MEMORY
@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("lineitem", [("l_shipdate", False, False)]),
        ("lineitem", [("l_orderkey", False, False)]),
        ("lineitem", [("l_comment", False, False)]),
        ("lineitem", [("l_extendedprice", True, True)]),
        ("lineitem", [("l_returnflag", False, False), ("l_linestatus", True, False), ("l_quantity", True, False)]),
        ("orders", [("o_orderdate", True, False), ("o_totalprice", False, False)]),
        ("customer", [("c_name", True, True)]),
        ("customer", [("c_mktsegment", False, False), ("c_acctbal", True, False)]),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0][0],
)
def test_sort_peers_tpch(tpch, name, by):
    path = tpch(name)
    table = pq.read_table(path)
    found, report = sort_table(path, spelt(by), devices=2, model="fast")
    assert report["rows"] == table.num_rows
    orders = [engine(table, by) for engine in ENGINES.values()]
    assert orders[0] == orders[1] == orders[2]
    assert found.schema.equals(table.schema)
    for name in table.column_names:
        assert plain(found[name]) == plain(table[name]).take(pa.array(orders[0])), name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("lineitem", [("l_shipdate", False, False), ("l_extendedprice", True, True)]),
        ("orders", [("o_orderpriority", True, True), ("o_totalprice", False, False)]),
    ],
    ids=["lineitem", "orders"],
)
def test_sort_peers_tpch_from_file_to_file(tpch, tmp_path, name, keys):
    from_file_to_file(tpch(name), tmp_path / "sorted.parquet", keys)


@IN_MEMORY
@pytest.mark.parametrize(
    "by", [[("ol_i_id", False, False)], [("ol_amount", True, True), ("ol_dist_info", False, False)]]
)
def test_sort_peers_order_line(by):
    table = order_line(WAREHOUSES) if WAREHOUSES else order_line(1, 1)
    found, _ = sort_table(table, spelt(by), devices=3, model="fast")
    assert found.equals(table.take(by_pyarrow(table, by)))


def test_sort_peers_order_line_from_file_to_file(tmp_path):
    """Warehouse by warehouse, as whole tables of many are too large."""
    source = tmp_path / "order_line.parquet"
    first = order_line(1, 1)
    with pq.ParquetWriter(source, first.schema) as writer:
        for warehouse in range(WAREHOUSES):
            writer.write_table(order_line(1, seed=warehouse))
        if not WAREHOUSES:
            writer.write_table(first)
    from_file_to_file(source, tmp_path / "sorted.parquet", [("ol_amount", True, True), ("ol_dist_info", False, False)])


def test_sort_peers_order_line_matches_the_specification():
    rows = order_line(1, 1)
    orders = rows["ol_o_id"].value_counts()
    counts = [count.as_py() for count in orders.field("counts")]
    assert (len(orders), min(counts), max(counts)) == (3000, 5, 15)
    delivered = pc.less(rows["ol_o_id"], 2101)
    assert rows.filter(delivered)["ol_amount"].unique().to_pylist() == [Decimal("0.00")]
    assert rows.filter(pc.invert(delivered))["ol_delivery_d"].null_count == pc.sum(pc.invert(delivered)).as_py()
    assert rows.filter(delivered)["ol_delivery_d"].null_count == 0
    assert pc.min(rows.filter(pc.invert(delivered))["ol_amount"]).as_py() >= Decimal("0.01")
    assert rows["ol_quantity"].unique().to_pylist() == [5]
