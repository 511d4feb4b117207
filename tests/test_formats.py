# SPDX-License-Identifier: Apache-2.0
"""Files of other programs: tables pass unchanged, or an error says why not."""

from __future__ import annotations

import csv
import datetime as dt
import io
import random
import uuid
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from nearside import NearsideError, sort_table, tables

PEERS = "install the query engines with 'make peers'"


def sort(source: Path, by: str, target: Path, **how) -> Path:
    tables.sort_file(source, target, by, model="fast", **how)
    return target


def refused(source: Path, by: str = "a", target: str = "o.parquet", **how) -> str:
    """The error for a file that can't be sorted, without its name; nothing is written."""
    output = source.parent / target
    with pytest.raises(NearsideError) as error:
        sort(source, by, output, **how)
    assert not output.exists()
    reported = str(error.value)
    assert len(reported.splitlines()) == 1
    return reported.removeprefix(f"{source}: ")


# Parquet: INT96


def int96(path: Path, table: pa.Table, **how) -> Path:
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, **how)
    return path


@pytest.mark.parametrize("schema", [True, False], ids=["with Arrow's schema", "without"])
def test_format_parquet_int96_times_of_any_year(schema, tmp_path):
    draw = random.Random(1)
    days = [-719_162, -200_000, 0, 150_000, 2_932_896]
    for unit, step in [("s", 1), ("ms", 10**3), ("us", 10**6)]:
        times = [draw.choice(days) * 86_400 * step + draw.randrange(86_400 * step) for _ in range(50)]
        table = pa.table({
            "a": pa.array([None if draw.random() < 0.1 else t for t in times], pa.timestamp(unit)),
            "within": pa.array([[{"t": t}] for t in times], pa.list_(pa.struct({"t": pa.timestamp(unit)}))),
            "row": range(50),
        })  # fmt: skip
        found = pq.read_table(
            sort(int96(tmp_path / "t.parquet", table, store_schema=schema), "a", tmp_path / "o.parquet")
        )
        order = pc.sort_indices(table, sort_keys=[("a", "ascending"), ("row", "ascending")])
        wanted = table.take(order)
        assert found["a"].cast(pa.timestamp("us")) == wanted["a"].cast(pa.timestamp("us"))
        assert found["row"] == wanted["row"]
        us = pa.list_(pa.struct({"t": pa.timestamp("us")}))
        assert found["within"].cast(us).to_pylist() == wanted["within"].cast(us).to_pylist()


def test_format_parquet_int96_nanoseconds(tmp_path):
    fine = pa.array([5_000_000_001, -1, None], pa.timestamp("ns"))
    path = int96(tmp_path / "t.parquet", pa.table({"a": fine}), store_schema=False)
    found = pq.read_table(sort(path, "a", tmp_path / "o.parquet"))
    assert found["a"].combine_chunks() == pa.array([-1, 5_000_000_001, None], pa.timestamp("ns"))


def test_format_parquet_int96_times_without_a_unit_are_refused(tmp_path):
    """A nanosecond of the last day of the year 9999, as an INT96."""
    far = pa.table({"a": pa.array([dt.datetime(9999, 12, 31)], pa.timestamp("us"))})
    path = int96(tmp_path / "t.parquet", far, store_schema=False, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    julian = (2_440_588 + 2_932_896).to_bytes(4, "little")
    value = bytes(8) + julian
    assert data.count(value) >= 1
    path.write_bytes(data.replace(value, (1).to_bytes(8, "little") + julian))
    reported = refused(path)
    assert 'column "a": no unit of a timestamp of 64 bits holds all of its INT96 times' in reported


# Parquet: checksums


def with_a_flipped_bit(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy"])
@pytest.mark.parametrize("page", ["dictionary", "data"])
def test_format_parquet_page_checksums(page, codec, version, tmp_path):
    """A flipped bit, in the key and in another column, with its column, row group and page."""
    path = tmp_path / "t.parquet"
    table = pa.table({"a": [n % 7 for n in range(4000)], "b": [f"word {n % 9}" for n in range(4000)]})
    how = {
        "compression": codec,
        "write_page_checksum": True,
        "data_page_version": version,
        "use_dictionary": page == "dictionary",
    }
    pq.write_table(table, path, row_group_size=2000, **how)
    good = path.read_bytes()
    assert pq.read_table(sort(path, "a", tmp_path / "o.parquet")).num_rows == 4000
    (tmp_path / "o.parquet").unlink()
    for at, name in enumerate("ab"):
        path.write_bytes(good)
        chunk = pq.read_metadata(path).row_group(1).column(at)
        if page == "dictionary":
            with_a_flipped_bit(path, chunk.data_page_offset - 2)
            where = "its dictionary page"
        else:
            with_a_flipped_bit(path, chunk.data_page_offset + chunk.total_compressed_size - 2)
            where = "page 0"
        reported = refused(path)
        assert reported.startswith(f'no Parquet that can be read: column "{name}", row group 1, {where}: '), reported
        assert "CRC" in reported


# Parquet: encryption


class Kms(pe.KmsClient):
    def wrap_key(self, key, name):
        return key.hex()

    def unwrap_key(self, key, name):
        return bytes.fromhex(key)


@pytest.mark.parametrize(
    ("how", "reported"),
    [
        ({"column_keys": {"c": ["a"]}, "plaintext_footer": True}, 'column "a" is encrypted'),
        ({"column_keys": {"c": ["a", "b"]}, "plaintext_footer": True}, 'columns "a", "b" are encrypted'),
        ({"uniform_encryption": True}, "its footer is encrypted"),
        ({"column_keys": {"c": ["a"]}, "plaintext_footer": False}, "its footer is encrypted"),
    ],
    ids=["a column", "two", "all", "the footer"],
)
@pytest.mark.parametrize("name", ["t.parquet", "t"])
def test_format_parquet_encryption_is_named(how, reported, name, tmp_path):
    path = tmp_path / name
    config = pe.EncryptionConfiguration(footer_key="f", **how)
    factory = pe.CryptoFactory(lambda _: Kms())
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), config)
    table = pa.table({"a": [2, 1], "b": [1, 2]})
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    assert refused(path, "b").startswith(f"no Parquet that can be read: {reported}: ")


# Parquet: types and order


def logical(path: Path) -> list[str]:
    schema = pq.ParquetFile(path).schema
    return [str(schema.column(at).logical_type) for at in range(len(schema))]


def test_format_parquet_logical_types_are_kept(tmp_path):
    """In columns and within lists, in one sort and resident, and from Arrow's extension types."""
    ids = [uuid.UUID(int=n).bytes for n in (2, 1)]
    table = pa.table({
        "n": [2, 1],
        "u": pa.array(ids, pa.uuid()),
        "j": pa.array(["{}", "[]"], pa.json_()),
        "us": pa.ListArray.from_arrays([0, 1, 2], pa.array(ids, pa.uuid())),
        "s": pa.StructArray.from_arrays([pa.array(["1", None], pa.json_())], ["j"]),
        "half": pa.array([1.5, None], pa.float16()),
        "small": pa.array([1, None], pa.uint8()),
        "t": pa.array([1, 2], pa.time32("ms")),
        "zone": pa.array([1, 2], pa.timestamp("us", "Europe/Berlin")),
    })  # fmt: skip
    for schema in (False, True):
        source = tmp_path / "t.parquet"
        pq.write_table(table, source, store_schema=schema)
        kinds = logical(source)
        assert "UUID" in kinds
        assert "JSON" in kinds
        target = sort(source, "n", tmp_path / "o.parquet")
        assert logical(target) == kinds
        assert pq.read_table(target).to_pylist() == table[::-1].to_pylist()
        arrow = sort(source, "n", tmp_path / "o.arrow")
        assert pa.ipc.open_file(arrow).schema.field("u").type == pa.uuid()
        assert logical(sort(arrow, "n desc", tmp_path / "again.parquet")) == kinds
        media = tmp_path / f"{schema}.img"
        tables.put(source, media, "t", "n", model="fast")
        tables.get("t", media, tmp_path / "got.parquet", model="fast")
        assert logical(tmp_path / "got.parquet") == kinds


class Wkb(pa.ExtensionType):
    """Parquet's GEOMETRY and GEOGRAPHY as written by pyarrow."""

    def __init__(self, metadata: str = "{}"):
        self.metadata = metadata
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self):
        return self.metadata.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, metadata):
        return cls(metadata.decode())


@pytest.fixture
def wkb():
    pa.register_extension_type(Wkb())
    yield Wkb
    pa.unregister_extension_type("geoarrow.wkb")


@pytest.mark.parametrize(
    "metadata",
    [
        "{}",
        '{"crs":"OGC:CRS84","crs_type":"authority_code"}',
        '{"crs":"srid:5070"}',
        '{"crs":{"id":{"authority":"EPSG","code":32632},"type":"ProjectedCRS"},"crs_type":"projjson"}',
        '{"crs":"OGC:CRS84","crs_type":"authority_code","edges":"spherical"}',
    ],
)
def test_format_parquet_geometry_is_kept(metadata, wkb, tmp_path):
    shapes = [bytes([1, n]) for n in (2, 1)]
    table = pa.table({"n": [2, 1], "g": pa.ExtensionArray.from_storage(wkb(metadata), pa.array(shapes, pa.binary()))})
    source = tmp_path / "t.parquet"
    for schema in (True, False):
        pq.write_table(table, source, store_schema=schema)
        kinds = logical(source)
        assert kinds[1].startswith("Geo"), kinds
        target = sort(source, "n", tmp_path / "o.parquet")
        assert logical(target) == kinds
        assert not pq.read_metadata(target).row_group(0).column(1).is_stats_set
        arrow = sort(source, "n", tmp_path / "o.arrow")
        assert pa.ipc.open_file(arrow).schema.field("g").type.extension_name == "geoarrow.wkb"
        # As pyarrow reads its file.
        assert pa.ipc.open_file(arrow).schema.field("g").type == pq.read_schema(source).field("g").type
        assert logical(sort(arrow, "n", tmp_path / "again.parquet")) == kinds


def test_format_parquet_units_and_dates_suit_all_readers(tmp_path):
    """A type without a unit in Parquet uses the next finer one, and never a plain number."""
    table = pa.table({
        "s": pa.array([2, -1, None], pa.timestamp("s")),
        "zone": pa.array([2, 1, None], pa.timestamp("s", "UTC")),
        "time": pa.array([2, 1, None], pa.time32("s")),
        "day": pa.array([dt.date(2020, 1, 2), dt.date(1900, 1, 1), None], pa.date64()),
        "within": pa.array([[2], [1], None], pa.list_(pa.timestamp("s"))),
        "words": pa.array([2, 1, None], pa.timestamp("s")).dictionary_encode(),
    })  # fmt: skip
    source = tmp_path / "t.arrow"
    with pa.ipc.new_file(source, table.schema) as sink:
        sink.write_table(table)
    found = pq.read_table(sort(source, "s", tmp_path / "o.parquet"))
    kinds = {name: str(found.schema.field(name).type) for name in found.column_names}
    assert kinds == {
        "s": "timestamp[ms]",
        "zone": "timestamp[ms, tz=UTC]",
        "time": "time32[ms]",
        "day": "date32[day]",
        "within": "list<item: timestamp[ms]>",
        "words": "timestamp[ms]",
    }
    assert found.to_pylist() == [table.to_pylist()[n] for n in (1, 0, 2)]
    (tmp_path / "o.parquet").unlink()
    far = pa.table({"a": pa.array([2**62], pa.timestamp("s"))})
    with pa.ipc.new_file(source, far.schema) as sink:
        sink.write_table(far)
    assert 'can\'t be written as Parquet: column "a": ' in refused(source)


def test_format_parquet_footer_has_the_order(tmp_path):
    table = pa.table({"x": [[1], [2], []], "a": [3, None, 1], "b": ["x", "y", "z"], "c": [1.5, -2, 0]})
    source, target = tmp_path / "t.parquet", tmp_path / "o.parquet"
    old = [pq.SortingColumn(2, True, False)]
    pq.write_table(table, source, sorting_columns=old)
    for by, wanted in [
        ("a", [(1, False, False)]),
        ("b desc nulls last, a nulls first", [(2, True, False), (1, False, True)]),
        ("c desc", [(3, True, True)]),
        # Parquet can't state the order of lists.
        ("a, x, b", [(1, False, False)]),
        ("x", []),
    ]:
        order = pq.read_metadata(sort(source, by, target)).row_group(0).sorting_columns
        assert [(s.column_index, s.descending, s.nulls_first) for s in order] == wanted, by
    media = tmp_path / "d.img"
    tables.put(source, media, "t", "a", model="fast")
    tables.get("t", media, target, model="fast")
    assert pq.read_metadata(target).row_group(0).sorting_columns == ()
    tables.get("t", media, target, by="a desc", model="fast")
    order = pq.read_metadata(target).row_group(0).sorting_columns
    assert [(s.column_index, s.descending, s.nulls_first) for s in order] == [(1, True, True)]


# CSV


def drawn_field(draw: random.Random, kind: str) -> str:
    """A CSV as people write it."""
    number = draw.randrange(-99, 99)
    texts = ["", '""', "a", '"a"', ' "a"', '"a,b"', '"a\nb"', '"a\r\nb"', '"say ""x"""', "é", "a'", " a "]
    return {
        "int": lambda: draw.choice([f"{number}", f"{abs(number):05}", f'"{number}"', ""]),
        "float": lambda: draw.choice([f"{number}.50", f"{number}e2", f"{number}E-1", f"{number}", ".5", "NaN", ""]),
        "bool": lambda: draw.choice(["true", "TRUE", "False", ""]),
        "date": lambda: draw.choice(["2020-01-02", "1999-12-31", ""]),
        "time": lambda: draw.choice(["2020-01-02 03:04:05", "2020-01-02T03:04:05.10", ""]),
        "text": lambda: draw.choice(texts),
    }[kind]()  # fmt: skip


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_format_csv_lines_are_kept(end, tmp_path):
    """Random tables: the sorted file has exactly the lines of the first, in the order of their values."""
    source = tmp_path / "t.csv"
    for seed in range({"\n": 4, "\r\n": 3, "\r": 2}[end]):
        draw = random.Random(seed)
        kinds = [draw.choice(["int", "float", "bool", "date", "time", "text"]) for _ in range(draw.randint(2, 5))]
        rows = [[drawn_field(draw, kind) for kind in kinds] for _ in range(draw.choice([0, 1, 40]))]
        head = ["n", *(f'"{kind}, {n}"' for n, kind in enumerate(kinds))]
        lines = [",".join(row) for row in [head, *([f"{n:03}", *row] for n, row in enumerate(rows))]]
        mark = "\ufeff" if seed % 3 == 0 else ""
        rows = rows or draw.choice([[], [["" for _ in kinds]]])
        lines += [",".join(["000", *row]) for row in rows[len(lines) - 1 :]]
        text = mark + end.join(lines) + (end if seed % 2 or not rows else "")
        source.write_bytes(text.encode())
        by = draw.choice(["n", f'"{kinds[0]}, 0"', f'"{kinds[-1]}, {len(kinds) - 1}" desc, n'])
        target = sort(source, by, tmp_path / "o.csv", devices=draw.randint(1, 3))
        typed, _ = sort_table(source, by, model="fast")
        order = typed["n"].to_pylist() if rows else []
        wanted = [lines[0], *(lines[1 + n] for n in order)]
        assert target.read_bytes().decode() == mark + "".join(line + end for line in wanted), (seed, by)
        # Also for resident tables.
        media = tmp_path / f"{seed}.img"
        tables.put(source, media, "t", "n", model="fast")
        tables.get("t", media, tmp_path / "got.csv", by="n desc", model="fast")
        wanted = [lines[0], *reversed(lines[1:])]
        assert (tmp_path / "got.csv").read_bytes().decode() == mark + "".join(line + end for line in wanted)
        tables.get("t", media, tmp_path / "got.arrow", model="fast")
        assert pa.ipc.open_file(tmp_path / "got.arrow").read_all().column_names == typed.column_names


def test_format_csv_fields_keep_their_spelling(tmp_path):
    source = tmp_path / "t.csv"
    source.write_text(
        "n,zip,price,flag,time,exp\n2,00501,1.10,TRUE,2020-01-02 03:04:05,1E5\n"
        "1,02134,2.50,FALSE,2020-01-02 03:04:06,2e3\n"
    )
    head, two, one = source.read_text().splitlines()
    for by in ("n", "price desc", "exp", "zip desc, flag"):
        assert sort(source, by, tmp_path / "o.csv").read_text().splitlines() == [head, one, two]
    assert refused(source, "x", "none.csv") == 'no column is called "x": the table has n, zip, price, flag, time, exp'
    source.write_text("a,b,a\n1,2,3\n")
    assert refused(source, "a", "none.csv").startswith('several columns are called "a"')


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_format_csv_of_one_column_keeps_empty_rows(end, tmp_path):
    source = tmp_path / "t.csv"
    source.write_bytes(end.join(["a", "3", "", "1", "", "2", ""]).encode())
    found, _ = sort_table(source, "a", model="fast")
    assert found["a"].to_pylist() == [1, 2, 3, None, None]
    wanted = end.join(["a", "1", "2", "3", '""', '""', ""]).encode()
    assert sort(source, "a", tmp_path / "o.csv").read_bytes() == wanted
    found, _ = sort_table(sort(tmp_path / "o.csv", "a desc", tmp_path / "again.csv"), "a", model="fast")
    assert found["a"].to_pylist() == [1, 2, 3, None, None]


def test_format_csv_distinguishes_null_and_empty_text(tmp_path):
    """As in PostgreSQL and Polars: without quotes, and with."""
    table = pa.table({"a": [1, 2, 3, 4], "b": ["", None, "x", '"']})
    source = tmp_path / "t.parquet"
    pq.write_table(table, source)
    target = sort(source, "a", tmp_path / "o.csv")
    assert target.read_text() == 'a,b\n1,""\n2,\n3,x\n4,""""\n'
    assert [row[1] for row in csv.reader(io.StringIO(target.read_text()))] == ["b", "", "", "x", '"']
    found, _ = sort_table(target, "a", model="fast")
    assert found["b"].to_pylist() == ["", None, "x", '"']


# Others read what is written

KINDS = {
    "i": (pa.int16(), lambda d: d.randrange(-(2**15), 2**15)),
    "u": (pa.uint64(), lambda d: d.randrange(2**64)),
    "f": (pa.float32(), lambda d: d.randrange(-99, 99) / 4),
    "b": (pa.bool_(), lambda d: d.random() < 0.5),
    "small": (pa.decimal128(7, 2), lambda d: Decimal(d.randrange(-(10**7) + 1, 10**7)).scaleb(-2)),
    "middle": (pa.decimal128(17, 3), lambda d: Decimal(d.randrange(-(10**17) + 1, 10**17)).scaleb(-3)),
    "large": (pa.decimal128(38, 4), lambda d: Decimal(d.randrange(-(10**38) + 1, 10**38)).scaleb(-4)),
    "day": (pa.date32(), lambda d: dt.date.fromordinal(d.randrange(1, 3_000_000))),
    "s": (pa.timestamp("s"), lambda d: dt.datetime(1970, 1, 1) + dt.timedelta(seconds=d.randrange(-(10**10), 10**10))),
    "us": (
        pa.timestamp("us"),
        lambda d: dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=d.randrange(-(10**16), 10**16)),
    ),
    "clock": (
        pa.time64("us"),
        lambda d: dt.time(d.randrange(24), d.randrange(60), d.randrange(60), d.randrange(10**6)),
    ),
    "text": (pa.string(), lambda d: d.choice(["", "a", "a,b", 'say "x"', "two\nlines", " é ", "'"])),
    "bytes": (pa.binary(), lambda d: bytes(d.randrange(256) for _ in range(d.randrange(4)))),
}


def random_table(seed: int) -> pa.Table:
    draw, columns = random.Random(seed), {}
    for name, (kind, value) in KINDS.items():
        columns[name] = pa.array([None if draw.random() < 0.2 else value(draw) for _ in range(60)], kind)
    return pa.table({"row": range(60), **columns})


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["duckdb", "polars"])
@pytest.mark.parametrize("source", ["parquet", "arrow"])
def test_format_parquet_is_read_by_others(source, reader, tmp_path):
    peer = pytest.importorskip(reader, reason=PEERS)
    for seed in range(4):
        table, path, target = random_table(seed), tmp_path / f"t.{source}", tmp_path / "o.parquet"
        if source == "parquet":
            pq.write_table(table, path, version="1.0" if seed % 2 else "2.6")
        else:
            with pa.ipc.new_file(path, table.schema) as sink:
                sink.write_table(table)
        by = random.Random(seed).choice(list(KINDS))
        sort(path, f'"{by}", row', target)
        wanted = sorted(table.to_pylist(), key=lambda r: (r[by] is None, by if r[by] is None else r[by], r["row"]))
        if reader == "duckdb":
            found = peer.sql(f"SELECT * FROM read_parquet('{target}')").to_arrow_table().to_pylist()
        else:
            found = peer.read_parquet(target).to_dicts()
        assert found == wanted, (seed, by)


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["duckdb", "polars"])
def test_format_csv_is_read_by_others(reader, tmp_path):
    """With nulls and empty texts distinguished."""
    peer = pytest.importorskip(reader, reason=PEERS)
    table = random_table(5).select(["row", "i", "text", "small"])
    source, target = tmp_path / "t.parquet", tmp_path / "o.csv"
    pq.write_table(table, source)
    sort(source, "row desc", target)
    if reader == "duckdb":
        types = "{'row': 'BIGINT', 'i': 'SMALLINT', 'text': 'VARCHAR', 'small': 'DECIMAL(7,2)'}"
        how = "header = true, allow_quoted_nulls = false, quote = '\"', escape = '\"'"
        query = f"SELECT * FROM read_csv('{target}', {how}, columns = {types})"
        found = peer.sql(query).to_arrow_table().to_pylist()
    else:
        kinds = {"row": peer.Int64, "i": peer.Int16, "text": peer.String, "small": peer.Decimal(7, 2)}
        found = peer.read_csv(target, schema=kinds).to_dicts()
    assert found == table.to_pylist()[::-1]


# What a file is


def write(table: pa.Table, path: Path, kind: str) -> None:
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "csv":
        path.write_text("a\n2\n1\n")
    else:
        new = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        with new(path, table.schema) as sink:
            sink.write_table(table)


@pytest.mark.parametrize("name", ["t", "t.data", "t.PQ", "part-0000"])
def test_format_is_recognised_by_content(name, tmp_path):
    table, path = pa.table({"a": [2, 1]}), tmp_path / name
    for kind in ("parquet", "arrow", "stream"):
        write(table, path, kind)
        found, _ = sort_table(path, "a", model="fast")
        assert found["a"].to_pylist() == [1, 2]
        assert tables.explain(path, "a")["plan"]["rows"] == 2
        assert pq.read_table(sort(path, "a", tmp_path / "o.parquet")).num_rows == 2
    (tmp_path / "o.parquet").unlink()
    write(table, path, "csv")
    assert refused(path).startswith("neither its name nor how it begins says what it is")
    assert pq.read_table(sort(path, "a", tmp_path / "o.parquet", source_format="csv")).num_rows == 2


def test_format_differs_from_the_suffix(tmp_path):
    path = tmp_path / "t.csv"
    write(pa.table({"a": [2, 1]}), path, "parquet")
    assert refused(path).endswith("; it begins like Parquet: --from parquet reads it as that")


@pytest.mark.parametrize("name", ["t.feather", "t.arrow", "t.arrows", "t"])
def test_format_feather_v1_is_named(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(b"FEA1" + bytes(24) + (24).to_bytes(4, "little") + b"FEA1")
    assert "it is Feather V1, which is not read" in refused(path)
