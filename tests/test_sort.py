# SPDX-License-Identifier: Apache-2.0
"""Tables sorted on simulated devices, beside pyarrow; and every error of the command is one line."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from nearside import NearsideError, cli, sort_table

WORDS = ["", "a", "ab", "b", "the same beginning, end 1", "the same beginning, end 2"]


def table(rows: int, seed: int = 1) -> pa.Table:
    """Keys that repeat often, and nulls."""
    random = np.random.default_rng(seed)

    def nulls(values) -> pa.Array:
        return pa.array(values, mask=random.random(rows) < 0.1)

    columns = {
        "number": nulls(random.integers(-5, 5, rows)),
        "short": nulls(random.integers(-100, 100, rows).astype(np.int16)),
        "float": nulls(random.normal(size=rows)),
        "word": nulls(np.array(WORDS, dtype=object)[random.integers(0, len(WORDS), rows)]),
        "money": nulls(np.array([Decimal(int(n)) / 100 for n in random.integers(-999, 999, rows)])),
        "flag": nulls(random.integers(0, 2, rows).astype(bool)),
        "day": pa.array(random.integers(0, 20_000, rows).astype(np.int32)).cast(pa.date32()),
        "list": pa.array([list(range(n)) for n in random.integers(0, 4, rows)]),
        "row": pa.array(np.arange(rows)),
    }
    return pa.table(columns).replace_schema_metadata({"made by": "a test"})


def reference(data: pa.Table, *keys: tuple[str, str], nulls: str = "at_end") -> pa.Table:
    """The order by pyarrow; the number of the row makes it stable."""
    keys = [(*key, nulls) for key in (*keys, ("row", "ascending"))]
    order = pc.sort_indices(data, sort_keys=keys)
    return data.take(order)


@pytest.mark.slow
@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.parametrize("column", ["number", "short", "float", "word", "money", "flag", "day"])
def test_sort_column_of_each_type(column, devices):
    data = table(1500)
    found, report = sort_table(data, column, devices=devices, model="fast")
    assert found.equals(reference(data, (column, "ascending")), check_metadata=True)
    assert [stage["stage"] for stage in report["stages"]] == ["put", "sort", "shuffle", "get"]
    assert (report["rows"], len(report["devices"]), report["engine"]) == (1500, devices, "fast")
    found, _ = sort_table(data, f"{column} desc", devices=devices, model="fast")
    assert found.equals(reference(data, (column, "descending"), nulls="at_start"))


def test_sort_several_columns():
    data = table(1500)
    found, report = sort_table(data, "word desc nulls last, number", devices=2, model="fast")
    assert found.equals(reference(data, ("word", "descending"), ("number", "ascending")))
    assert report["ties"] > 0


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_sort_columns_of_runs(devices, tmp_path):
    """As keys and other columns, at the top and nested, wherever a device's shard begins."""
    draw = np.random.default_rng(3)
    lengths = draw.integers(1, 9, 250)

    def runs(values) -> pa.Array:
        return pc.run_end_encode(pa.array(np.repeat(values, lengths), mask=np.repeat(draw.random(250) < 0.1, lengths)))

    words = np.array(WORDS, dtype=object)[draw.integers(0, len(WORDS), 250)]
    columns = {"number": runs(draw.integers(-5, 5, 250)), "word": runs(words)}
    rows = len(columns["number"])
    columns["row"] = pa.array(np.arange(rows))
    data = pa.table(columns)
    plain = pa.table({name: column if name == "row" else pc.run_end_decode(column) for name, column in columns.items()})
    for by, wanted in (
        ("number", reference(plain, ("number", "ascending"))),
        ("word desc", reference(plain, ("word", "descending"), nulls="at_start")),
        ("word, number", reference(plain, ("word", "ascending"), ("number", "ascending"))),
        ("row desc", plain[::-1]),
    ):
        found, _ = sort_table(data, by, devices=devices, model="fast")
        assert found.schema.equals(data.schema)
        for name in plain.column_names:
            column = found[name].combine_chunks()
            decoded = column if name == "row" else pc.run_end_decode(column)
            assert decoded.to_pylist() == wanted[name].to_pylist(), (by, name)
    # Several pieces, each of which begins within a run.
    pieces = pa.concat_tables([data[:100], data[100:101], data[101:]])
    found, _ = sort_table(pieces, "number", devices=devices, model="fast")
    assert found["row"].to_pylist() == reference(plain, ("number", "ascending"))["row"].to_pylist()
    # More rows than run ends of a short type can count: an error, and not other rows.
    short = pa.RunEndEncodedArray.from_arrays(pa.array([20_000], pa.int16()), pa.array([7]))
    chunks = pa.table({"k": pa.chunked_array([short, short]), "row": range(40_000)})
    with pytest.raises(NearsideError, match=r'column "k": its run ends are Int16, .* 40000 rows: make them int64'):
        sort_table(chunks, "row desc", devices=devices, model="fast")


def a_dictionary(source: Path) -> tuple[Path, pa.Table]:
    """A file whose key has a dictionary and no nulls, and its sort."""
    data = pa.table({"key": np.arange(1003) * 37 % 100, "row": np.arange(1003)})
    pq.write_table(data, source)
    return source, reference(data, ("key", "descending"), nulls="at_start")


def test_sort_dictionary_is_sent_encoded(tmp_path):
    source, sorted_one = a_dictionary(tmp_path / "t.parquet")
    found, report = sort_table(source, "key desc", devices=2, model="fast")
    assert found.equals(sorted_one)
    assert [stage["stage"] for stage in report["stages"]] == ["put", "decode", "sort", "shuffle", "get"]


@pytest.mark.slow
@pytest.mark.rtl
def test_sort_dictionary_on_the_rtl(tmp_path):
    source, sorted_one = a_dictionary(tmp_path / "t.parquet")
    found, report = sort_table(source, "key desc")
    assert found.equals(sorted_one)
    assert (report["engine"], report["pages"]) == ("rtl", True)


@pytest.mark.rtl
def test_sort_small_table_on_the_rtl():
    data = table(300)
    found, report = sort_table(data, "number", devices=2)
    assert found.equals(reference(data, ("number", "ascending")))
    assert report["engine"] == "rtl"


def nearside(capsys, monkeypatch, *arguments) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["nearside", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


def test_sort_command(tmp_path, capsys, monkeypatch):
    source, target = tmp_path / "t.parquet", tmp_path / "sorted.parquet"
    pq.write_table(table(1000), source)
    data = pq.read_table(source)
    command = ["sort", source, "--by", "float desc", "--devices", 2, "--model", "fast", "-o", target]
    status, out, err = nearside(capsys, monkeypatch, *command, "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["rows"] == 1000
    assert pq.read_table(target).equals(reference(data, ("float", "descending"), nulls="at_start"), check_metadata=True)
    target.write_text("old")
    target.chmod(0o640)
    status, out, err = nearside(capsys, monkeypatch, *command)
    assert status == 0
    assert "shuffle" in out
    assert "wall-clock" in out
    assert pq.read_table(target).num_rows == 1000
    assert target.stat().st_mode & 0o777 == 0o640
    assert {path.name for path in tmp_path.iterdir()} == {"t.parquet", "sorted.parquet"}


def test_sort_empty_table(tmp_path, capsys, monkeypatch):
    source, target = tmp_path / "t.parquet", tmp_path / "sorted.parquet"
    pq.write_table(table(0), source)
    assert nearside(capsys, monkeypatch, "sort", source, "--by", "word", "-o", target)[0] == 0
    assert pq.read_table(target).schema.equals(table(0).schema, check_metadata=True)


def test_sort_errors_are_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("NEARSIDE_MODEL", "fast")
    source, target = tmp_path / "t.parquet", tmp_path / "sorted.parquet"
    pq.write_table(table(100), source)
    text = tmp_path / "text"
    text.write_text("no table")
    cut = tmp_path / "cut"
    cut.write_bytes(source.read_bytes()[:-100])
    small = tmp_path / "small.toml"
    small.write_text(
        'name = "small"\n[media]\nbytes = "1 MiB"\nprofile = "dram"\n[nvme]\nnamespaces = ["16 KiB"]\n'
        '[[engine]]\nname = "sorter0"\nengine = "sorter"\n[[engine]]\nname = "shuffle0"\nengine = "row_shuffle"\n'
    )

    def reported(*arguments) -> str:
        status, out, err = nearside(capsys, monkeypatch, "sort", *arguments)
        assert (out, len(err.splitlines())) == ("", 1), err
        assert status == (2 if "--help" in err else 1)
        assert not target.exists()
        return err.removeprefix("nearside: ").strip()

    good = ("-o", target, "--by", "word")
    assert reported(tmp_path / "none", *good) == f"{tmp_path}/none: no such file"
    assert reported(text, *good).startswith(f"{text}: neither its name nor how it begins says what it is")
    assert reported(text, *good, "--from", "parquet").startswith(f"{text}: no Parquet that can be read: ")
    assert reported(cut, *good).startswith(f"{cut}: no Parquet that can be read: ")
    assert 'no column is called "x": the table has number, short' in reported(source, "-o", target, "--by", "x")
    assert "asc or desc" in reported(source, "-o", target, "--by", "word up")
    assert "--devices" in reported(source, *good, "--devices", "17")
    assert "has no engine sorter" in reported(source, *good, "--design", "default")
    assert reported(source, *good, "--design", small).startswith("the table is too large: 100 rows")
    assert "the same file" in reported(source, "--by", "word", "-o", source)
    assert "its folder doesn't exist" in reported(source, "--by", "word", "-o", tmp_path / "none" / "x")
    with pytest.raises(TypeError, match="table must be"):
        sort_table([1, 2], "a")
    with pytest.raises(NearsideError, match="no column is called"):
        sort_table(table(10), "x", model="fast")
