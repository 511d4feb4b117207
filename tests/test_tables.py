# SPDX-License-Identifier: Apache-2.0
"""Files of tables: each format in and out, with its types, and damaged ones; the output is complete or absent."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from nearside import NearsideError, sort_table, tables

ENDINGS = [".parquet", ".arrow", ".arrows", ".csv"]


def plain(rows: int = 300, seed: int = 1) -> pa.Table:
    """Types that a CSV can express, each with nulls."""
    draw = np.random.default_rng(seed)
    words = np.array(["plain", "with, comma", 'with "quotes"', "two\nlines", "ümläut"], dtype=object)

    def nulls(values, kind) -> pa.Array:
        return pa.array(values, kind, mask=draw.random(rows) < 0.1)

    stamps = (1_600_000_000_000_001 + draw.integers(0, 10**12, rows)).astype("datetime64[us]")
    columns = {
        "whole": nulls(draw.integers(-5, 5, rows), pa.int64()),
        "real": nulls(draw.normal(size=rows), pa.float64()),
        "flag": nulls(draw.integers(0, 2, rows).astype(bool), pa.bool_()),
        "word": nulls(words[draw.integers(0, len(words), rows)], pa.string()),
        "day": nulls(draw.integers(0, 20_000, rows).astype("datetime64[D]"), pa.date32()),
        "moment": nulls(stamps, pa.timestamp("us")),
        "row": pa.array(np.arange(rows)),
    }
    return pa.table(columns)


def write(table: pa.Table, path: Path) -> None:
    """As pyarrow writes it."""
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".csv":
        pcsv.write_csv(table, path)
    else:
        new = pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream
        with new(path, table.schema) as sink:
            sink.write_table(table, max_chunksize=70)


def read(path: Path) -> pa.Table:
    """As pyarrow reads it."""
    if path.suffix == ".parquet":
        return pq.read_table(path)
    if path.suffix == ".csv":
        options = pcsv.ConvertOptions(column_types={"moment": pa.timestamp("us")}, strings_can_be_null=True)
        parse = pcsv.ParseOptions(newlines_in_values=True)
        return pcsv.read_csv(path, parse_options=parse, convert_options=options)
    opened = pa.ipc.open_file if path.suffix == ".arrow" else pa.ipc.open_stream
    return opened(path.read_bytes()).read_all()


def by(table: pa.Table, column: str) -> pa.Table:
    order = pc.sort_indices(table, sort_keys=[(column, "ascending", "at_end"), ("row", "ascending", "at_end")])
    return table.take(order)


@pytest.mark.slow
@pytest.mark.parametrize("target", ENDINGS)
@pytest.mark.parametrize("source", ENDINGS)
def test_table_file_each_format_into_each(source, target, tmp_path):
    table = plain()
    one, other = tmp_path / f"t{source}", tmp_path / f"s{target}"
    write(table, one)
    report = tables.sort_file(one, other, "whole", devices=2, model="fast")
    assert report["rows"] == 300
    found = read(other)
    assert found.num_rows == 300
    for name in table.column_names:
        assert found[name].to_pylist() == by(table, "whole")[name].to_pylist(), name
    if source != ".csv" and target != ".csv":
        assert found.schema.equals(table.schema)


def test_table_file_format_can_be_given(tmp_path):
    table = plain(50)
    one, other = tmp_path / "t.csv", tmp_path / "s.parquet"
    write(table, tmp_path / "t.arrow")
    (tmp_path / "t.arrow").rename(one)
    tables.sort_file(one, other, "real", model="fast", source_format="arrow", target_format="csv")
    assert other.read_text().startswith("whole,real,flag")
    with pytest.raises(NearsideError, match=r"^format = .xml.: allowed are parquet, arrow, stream, csv$"):
        tables.sort_file(one, other, "real", model="fast", source_format="xml")
    with pytest.raises(NearsideError, match=r"^compression = .x.: allowed are none, snappy, lz4, gzip, zstd$"):
        tables.sort_file(one, other, "real", model="fast", source_format="arrow", compression="x")


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["none", "snappy", "lz4", "gzip", "zstd"])
def test_table_file_compressed_pages(codec, tmp_path):
    table = plain()
    one, other = tmp_path / "t.parquet", tmp_path / "s.parquet"
    pq.write_table(table, one, compression=codec)
    tables.sort_file(one, other, "row desc", model="fast", compression=codec)
    assert pq.read_table(other).equals(table[::-1])
    named = {"none": "UNCOMPRESSED"}.get(codec, codec.upper())
    assert pq.ParquetFile(other).metadata.row_group(0).column(0).compression == named


@pytest.mark.parametrize("codec", ["uncompressed", "lz4", "zstd"])
def test_table_file_feather(codec, tmp_path):
    table = plain()
    feather.write_feather(table, tmp_path / "t.feather", compression=codec)
    found, _ = sort_table(tmp_path / "t.feather", "row desc", model="fast")
    assert found.equals(table[::-1])


@pytest.mark.slow
def test_table_file_metadata_are_kept(tmp_path):
    fields = [pa.field("row", pa.int64(), metadata={"unit": "m"}), pa.field("flag", pa.bool_(), nullable=False)]
    schema = pa.schema(fields, metadata={"made by": "a test"})
    table = pa.table([[2, 1, 3], [True, False, True]], schema=schema)
    for source in ENDINGS[:3]:
        for target in ENDINGS[:3]:
            one, other = tmp_path / f"t{source}", tmp_path / f"s{target}"
            write(table, one)
            tables.sort_file(one, other, "row", model="fast")
            assert read(other).schema.equals(schema, check_metadata=True), (source, target)


def test_table_file_csv_types(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "a,b,c,d,e,f,nothing\n1,1,true,2020-01-02,2020-01-02 03:04:05,12345678901234567890,\n"
        "2,.5,False,,2020-01-02T03:04:05.678,1,\n"
    )
    table, _ = sort_table(path, "a desc", model="fast")
    kinds = [pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.timestamp("ms"), pa.string(), pa.null()]
    assert table.schema.types == kinds
    assert table["a"].to_pylist() == [2, 1]

    def reported(text: str | bytes) -> str:
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        with pytest.raises(NearsideError) as error:
            sort_table(path, "a", model="fast")
        assert len(str(error.value).splitlines()) == 1
        return str(error.value).removeprefix(f"{path}: no CSV that can be read: ")

    assert "names no column" in reported("")
    assert "line 3" in reported("a,b\n1,2\n3\n")
    assert "UTF-8" in reported(b"a,b\n1,\xff\n")


def damaged(good: bytes, count: int, seed: int):
    """Truncated files, and files with flipped bytes."""
    draw = random.Random(seed)
    for n in range(count):
        if n % 3 == 0:
            yield good[: draw.randrange(len(good))]
            continue
        bad = bytearray(good)
        for _ in range(1 + n % 5):
            bad[draw.randrange(len(bad))] = draw.choice([0, 255, 128, draw.randrange(256)])
        yield bytes(bad)


@pytest.mark.slow
@pytest.mark.parametrize(
    "made",
    ["t.parquet", "zstd.parquet", "t.arrow", "t.arrows", "lz4.feather", "zstd.feather", "t.csv"],
)
def test_table_file_damaged_files(made, tmp_path):
    """A one-line error and no output, or a sorted table."""
    words = pa.array(["x", "", None, "y"] * 10)
    table = pa.table({"a": pa.array([3, 1, None, 2] * 10), "b": words.dictionary_encode()})
    one, other = tmp_path / made, tmp_path / "s.arrow"
    codec = made.split(".")[0]
    if one.suffix == ".feather":
        feather.write_feather(table, one, compression=codec)
    elif codec == "zstd":
        pq.write_table(table, one, compression=codec, row_group_size=15)
    else:
        write(table.set_column(1, "b", words) if one.suffix == ".csv" else table, one)
    good = one.read_bytes()
    for bad in damaged(good, 150, 1):
        one.write_bytes(bad)
        other.unlink(missing_ok=True)
        try:
            tables.sort_file(one, other, "a", model="fast")
        except NearsideError as error:
            reported = str(error)
        else:
            reported = None
        assert other.exists() == (reported is None)
        if reported is not None:
            assert len(reported.splitlines()) == 1, reported
        else:
            column = read(other)["a"]
            values = [value for value in column.to_pylist() if value is not None]
            assert values == sorted(values)
            assert column.to_pylist()[: len(values)] == values
            # The number of rows is checked: none is lost.
            if one.suffix != ".csv":
                assert len(column) in (40, 0), (len(column), bad)


def test_table_file_wrong_dictionary_indexes(tmp_path):
    """Keys beyond their dictionary, in Parquet's pages and in Arrow's arrays: the reader detects them."""
    one, other = tmp_path / "t.parquet", tmp_path / "t.arrows"
    pq.write_table(pa.table({"a": [5] * 1000}), one, compression="none")
    # After the levels: keys of 1 bit, a run of 1000 times key 0, the only one.
    page, run = one.read_bytes(), b"\xd0\x0f\x01\x01\xd0\x0f\x00"
    assert page.count(run) == 1
    one.write_bytes(page.replace(run, run[:-1] + b"\x01"))
    write(pa.table({"a": pa.array(["x", "y"] * 50).dictionary_encode()}), other)
    keys = other.read_bytes()
    good, bad = (np.array(words, np.int32).tobytes() for words in ([0, 1, 0, 1], [0, 7, 0, 1]))
    assert good in keys
    other.write_bytes(keys.replace(good, bad, 1))
    for path in (one, other):
        with pytest.raises(NearsideError) as error:
            sort_table(path, "a", model="fast")
        assert str(error.value).startswith(f"{path}: no ")


def run_sort(folder: Path, output: Path, before: str = "", rows: int = 3000) -> subprocess.Popen:
    """The command in a separate process, after some Python code."""
    write(plain(rows), folder / "t.arrow")
    code = f"import sys\n{before}\nfrom nearside import cli\ncli.main()"
    arguments = ["sort", folder / "t.arrow", "--by", "word, real", "--model", "fast", "-o", output]
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.long
def test_table_file_no_room_for_temporary_files(tmp_path):
    """3,000,000 rows of 100 bytes exceed the memory limit; files may have 1 MiB."""
    text = pa.array(["the same in each row, for what matters is how much it is: " + 36 * "."]).dictionary_encode()
    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3_000_000, np.int32)), text.dictionary).cast(pa.string())
    write(pa.table({"word": words, "real": np.random.default_rng(1).random(3_000_000)}), tmp_path / "t.arrow")
    target = tmp_path / "s.arrow"
    target.write_text("old")
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)); "
        "from nearside import cli; cli.main()"
    )
    arguments = ["sort", tmp_path / "t.arrow", "--by", "real", "--devices", "4", "--model", "fast", "-o", target]
    run = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)
    assert (run.stdout, run.returncode) == ("", 1)
    assert run.stderr.startswith("nearside: temporary files in ")
    assert run.stderr.endswith(" can't be written: File too large (os error 27)\n")
    assert target.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"t.arrow", "s.arrow"}


def test_table_file_full_disk(tmp_path):
    full = run_sort(tmp_path, Path("/dev/full"))
    assert full.communicate() == ("", "nearside: /dev/full: No space left on device\n")
    assert full.returncode == 1
    target = tmp_path / "s.arrow"
    target.write_text("old")
    limited = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
    large = run_sort(tmp_path, target, limited)
    out, err = large.communicate()
    assert (out, err) == ("", f"nearside: {target}: File too large\n")
    assert target.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.arrow", "t.arrow"]


# During the sort, which is when progress is reported.
INTERRUPT = """
import os, signal, sys
from contextlib import contextmanager
from nearside import show

@contextmanager
def bar(text, enabled=True):
    yield lambda done, total: os.kill(os.getpid(), signal.SIGINT)

show.bar = bar
"""


def test_table_file_interrupt_leaves_no_output(tmp_path):
    target = tmp_path / "s.arrow"
    stopped = run_sort(tmp_path, target, INTERRUPT, rows=30_000)
    out, err = stopped.communicate()
    assert (stopped.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["t.arrow"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=str)
def test_table_file_signal_leaves_no_output(number, tmp_path):
    """The process ends by the signal, as at any other time, and leaves no files."""
    target = tmp_path / "s.arrow"
    target.write_text("old")
    ended = run_sort(tmp_path, target, INTERRUPT.replace("SIGINT", number.name), rows=30_000)
    assert ended.communicate() == ("", "")
    assert ended.returncode == -number
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.arrow", "t.arrow"]
    assert target.read_text() == "old"


# A process for each line of Python code for written files: a signal arrives there.
EACH_LINE = """
import json, os, shutil, signal, sys, tempfile
from pathlib import Path
from nearside import files

out = Path(sys.argv[1], "out")

def write(at):
    left = at
    def line(frame, event, _):
        nonlocal left
        if frame.f_code.co_filename not in (files.__file__, tempfile.__file__, shutil.__file__):
            return None
        left -= event == "line"
        if left == 0 and event == "line":
            os.kill(os.getpid(), getattr(signal, sys.argv[2]))
        return line
    sys.settrace(line)
    try:
        with files.replaced(out) as part:
            part.write_text("new")
    except KeyboardInterrupt:
        os._exit(130)
    sys.settrace(None)
    os._exit(0 if left > 0 else 1)

for at in range(1, 100_000):
    out.write_text("old")
    child = os.fork()
    if child == 0:
        write(at)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([status, out.read_text(), sorted(os.listdir(out.parent))]))
    if status == 0:
        break
"""


@pytest.mark.parametrize(("number", "status"), [("SIGTERM", -signal.SIGTERM), ("SIGINT", 130)])
def test_table_file_signal_at_any_line_leaves_nothing(number, status, tmp_path):
    """Temporary files are removed whenever a signal arrives, and the output is the old one or the new one."""
    run = subprocess.run([sys.executable, "-c", EACH_LINE, tmp_path, number], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    ends = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(ends) > 50
    assert ends.pop() == [0, "new", ["out"]]
    # After the removal of temporary files the signal ends the process silently.
    assert {end[0] for end in ends} <= {status}
    assert {end[1] for end in ends} == {"old", "new"}
    assert [end for end in ends if end[2] != ["out"]] == []


@pytest.mark.parametrize("output", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_table_file_standard_output_has_data_only(output, tmp_path):
    """The report of a sort is on standard error then; that of a table that is read back, too."""
    write(plain(50), tmp_path / "t.arrow")
    (tmp_path / "link").symlink_to("/dev/stdout")
    output = tmp_path / output  # absolute ones stay

    def run(*arguments, merged: bool = False) -> tuple[bytes, bytes | None]:
        code = "from nearside import cli; cli.main()"
        command = [sys.executable, "-c", code, *arguments, "--model", "fast", "-o", output]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT if merged else subprocess.PIPE)
        assert done.returncode == 0, done
        return done.stdout, done.stderr

    def rows(data: bytes) -> list[int]:
        return pa.ipc.open_stream(data).read_all()["row"].to_pylist()

    wanted = list(range(49, -1, -1))
    sort = ["sort", tmp_path / "t.arrow", "--by", "row desc", "--to", "stream"]
    data, reported = run(*sort, "--json")
    assert rows(data) == wanted
    assert json.loads(reported)["rows"] == 50
    if output != tmp_path / "/dev/stdout":
        return
    data, reported = run(*sort)
    assert rows(data) == wanted
    assert b"wall-clock" in reported
    # Standard error is the same file.
    assert run(*sort, merged=True) == (data, None)
    tables.put(tmp_path / "t.arrow", tmp_path / "d", "t", "row", model="fast")
    data, reported = run("table", "get", "t", "--media", tmp_path / "d", "--to", "stream")
    assert rows(data) == wanted[::-1]
    assert b"wall-clock" in reported


def short_dictionaries(kind: pa.DataType, values: int, chunks: int = 4, rows: int = 900) -> pa.Table:
    """Chunks whose dictionaries have nothing in common, with nulls."""
    draw = np.random.default_rng(9)
    made = []
    for chunk in range(chunks):
        keys = pa.array(draw.integers(0, values, rows), kind, mask=draw.random(rows) < 0.1)
        made.append(pa.DictionaryArray.from_arrays(keys, [f"w{chunk} {n:05}" for n in range(values)], ordered=True))
    return pa.table({"word": pa.chunked_array(made), "row": np.arange(chunks * rows)}).replace_schema_metadata(
        {"a": "b"}
    )


@pytest.mark.slow
@pytest.mark.parametrize("by", ["word desc nulls last, row", "row desc"])
@pytest.mark.parametrize(
    ("kind", "values"), [(pa.int8(), 100), (pa.uint8(), 256), (pa.int16(), 20_000), (pa.int8(), 20)], ids=str
)
def test_table_file_dictionaries_beyond_their_key_type(kind, values, by):
    table = short_dictionaries(kind, values)
    found, _ = sort_table(table, by, devices=2, model="fast")
    assert found.schema.equals(table.schema, check_metadata=True)
    found.validate(full=True)
    text = table.set_column(0, "word", table.column("word").cast(pa.string()))
    word, row = ("word", "descending", "at_end"), ("row", "ascending", "at_end")
    keys = [word, row] if by.startswith("word") else [("row", "descending", "at_end")]
    expected = text.take(pc.sort_indices(text, sort_keys=keys))
    assert found.column("word").cast(pa.string()).equals(expected.column("word"))
    assert found.column("row").equals(expected.column("row"))


def test_table_file_dictionaries_of_a_file_beyond_their_key_type(tmp_path):
    table, path = short_dictionaries(pa.int8(), 100), tmp_path / "t.arrows"
    with pa.ipc.new_stream(path, table.schema) as sink:
        sink.write_table(table)
    reported = "dictionaries of a column together have more values than its keys can name: make its keys wider"
    with pytest.raises(NearsideError, match=reported):
        sort_table(path, "row", model="fast")
    # Also within lists, where keys are not widened.
    column = pa.chunked_array([pa.ListArray.from_arrays([0, len(c)], c) for c in table.column("word").chunks])
    with pytest.raises(NearsideError, match=reported):
        sort_table(pa.table({"list": column, "row": range(len(column))}), "row", model="fast")


def test_table_file_paths_as_text(tmp_path):
    table, source, target = plain(), str(tmp_path / "t.arrow"), str(tmp_path / "sorted.arrow")
    media = str(tmp_path / "d.img")
    write(table, Path(source))
    tables.sort_file(source, target, "row desc", model="fast", trace=f"{target}.json")
    assert read(Path(target)).equals(table.sort_by([("row", "descending")]))
    assert tables.explain(source, "row")["plan"]["rows"] == len(table)
    tables.put(source, media, "t", "row", model="fast")
    assert [entry["name"] for entry in tables.resident(media, model="fast")] == ["t"]
    assert tables.explain_resident("t", [media], "row", model="fast")["plan"]["rows"] == len(table)
    tables.get("t", media, target, model="fast")
    assert read(Path(target)).equals(table)
    tables.drop("t", media, model="fast")
    assert tables.resident([media], model="fast") == []
