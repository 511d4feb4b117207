# SPDX-License-Identifier: Apache-2.0
"""Resident tables: put once, sorted in place, read back; interrupted, damaged and refused."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from nearside import Design, NearsideError, cli, tables

SMALL = "[media]\nbytes = '4 MiB'\n[nvme]\nnamespaces = ['2 MiB']"
ROWS = 9000


@pytest.fixture(scope="module")
def design():
    return Design.load("sort").with_values(SMALL)


def table(rows: int = ROWS, seed: int = 1) -> pa.Table:
    draw = np.random.default_rng(seed)
    words = np.array(["", "a", "the same beginning, 1", "the same beginning, 2", "zz"], dtype=object)

    def nulls(values, kind=None) -> pa.Array:
        return pa.array(values, kind, mask=draw.random(rows) < 0.1)

    columns = {
        "whole": pa.array(draw.integers(-50, 50, rows)),
        "maybe": nulls(draw.integers(-5, 5, rows)),
        "word": nulls(words[draw.integers(0, len(words), rows)]),
        "real": pa.array(draw.normal(size=rows)),
        "list": pa.array([list(range(n)) for n in draw.integers(0, 3, rows)]),
        "row": pa.array(np.arange(rows)),
    }
    return pa.table(columns).replace_schema_metadata({"made by": "a test"})


def by(data: pa.Table, *keys: tuple[str, str, str]) -> pa.Table:
    return data.take(pc.sort_indices(data, sort_keys=[*keys, ("row", "ascending", "at_end")]))


class ResidentStore:
    """A table on devices."""

    def __init__(
        self, folder: Path, design: Design, data: pa.Table, keys: str, devices: int = 2, model: str = "fast"
    ) -> None:
        self.design, self.data, self.model = design, data, model
        self.media = [folder / f"d{n}" for n in range(devices)]
        self.source, self.out = folder / "t.feather", folder / "out.arrow"
        feather.write_feather(data, self.source)
        self.put("t", keys)

    def put(self, name: str, keys: str) -> dict:
        return tables.put(self.source, self.media, name, keys, self.model, self.design)

    def names(self) -> list[str]:
        return [entry["name"] for entry in tables.resident(self.media, "fast", self.design)]

    def get(self, order: str | None = None, name: str = "t", media: list[Path] | None = None) -> tuple[pa.Table, dict]:
        report = tables.get(name, media or self.media, self.out, order, self.model, self.design)
        found = pa.ipc.open_file(self.out.read_bytes()).read_all()
        self.out.unlink()
        return found, report

    def reported(self, *arguments, **options) -> str:
        with pytest.raises(NearsideError) as error:
            self.get(*arguments, **options)
        assert not self.out.exists()
        assert len(str(error.value).splitlines()) == 1
        return str(error.value)


@pytest.fixture(scope="module")
def store(tmp_path_factory, design):
    return ResidentStore(tmp_path_factory.mktemp("stand"), design, table(), "whole, maybe, word")


def test_resident_table_round_trip(store):
    found, report = store.get()
    assert found.equals(store.data, check_metadata=True)
    assert [stage["stage"] for stage in report["stages"]] == ["get"]
    (entry,) = tables.resident(store.media, "fast", store.design)
    assert (entry["name"], entry["rows"], entry["keys"]) == ("t", ROWS, ["whole", "maybe", "word"])
    assert (entry["parts"], entry["of_parts"], entry["devices"]) == (2, 2, [0, 1])
    assert re.fullmatch("[0-9a-f]{16}", entry["id"])


@pytest.mark.parametrize("order", ["ascending", "descending"])
@pytest.mark.parametrize("nulls", ["at_start", "at_end"])
@pytest.mark.parametrize("column", ["whole", "maybe", "word"])
def test_resident_table_is_sorted_in_place(store, column, nulls, order):
    ends = {"ascending": "asc", "descending": "desc", "at_start": "nulls first", "at_end": "nulls last"}
    spelt = f"{column} {ends[order]} {ends[nulls]}"
    found, report = store.get(spelt)
    assert found.equals(by(store.data, (column, order, nulls)), check_metadata=True)
    assert [stage["stage"] for stage in report["stages"]] == ["sort", "shuffle", "get"]
    assert tables.explain_resident("t", store.media, spelt, "fast", store.design)["plan"] == report["plan"]
    assert all(bound["reached_percent"] > 0 for bound in report["bounds"])


def test_resident_table_sort_by_several_columns(store):
    found, report = store.get("maybe desc, word nulls first, real")
    keys = [("maybe", "descending", "at_start"), ("word", "ascending", "at_start"), ("real", "ascending", "at_end")]
    assert found.equals(by(store.data, *keys))
    assert report["ties"] > 0


def test_resident_table_order_of_devices_does_not_matter(store):
    assert store.get("whole", media=store.media[::-1])[0].equals(by(store.data, ("whole", "ascending", "at_end")))


def test_resident_table_missing_tables_are_reported(store, tmp_path):
    assert store.reported(name="x") == "no table is called 'x': these media files have t".replace("'", '"')
    assert "was put with the keys whole, maybe, word" in store.reported("real")
    assert "no column is called" in store.reported("none")
    assert "has 2 parts, of which these media files have 1" in store.reported(media=store.media[:1])
    assert store.reported(media=[*store.media, tmp_path / "d"]) == f"{tmp_path}/d: no such file"
    assert "another device has it" in store.reported(media=[store.media[0]] * 2)
    with pytest.raises(NearsideError, match=r"there is a table .t. already"):
        store.put("t", "")
    with pytest.raises(NearsideError, match="named twice"):
        store.put("u", "row, row")
    with pytest.raises(NearsideError, match="no column is called"):
        store.put("u", "none")
    for name in ("", "x" * 65, "a\nb"):
        with pytest.raises(NearsideError, match=r"^name = "):
            store.put(name, "")
    assert store.names() == ["t"]


@pytest.mark.rtl
def test_resident_table_on_the_rtl(tmp_path):
    store = ResidentStore(tmp_path, Design.load("sort"), table(200), "maybe", model="rtl")
    found, report = store.get("maybe desc")
    assert found.equals(by(store.data, ("maybe", "descending", "at_start")))
    assert report["engine"] == "rtl"
    # The same media on the fast model.
    store.model = "fast"
    assert store.get()[0].equals(store.data)


def test_resident_table_several_tables(tmp_path, design):
    store = ResidentStore(tmp_path, design, table(500), "word", devices=3)
    first = store.data
    store.data = table(700, seed=2)
    feather.write_feather(store.data, store.source)
    store.put("u", "maybe")
    assert store.names() == ["t", "u"]
    assert store.get("maybe", name="u")[0].equals(by(store.data, ("maybe", "ascending", "at_end")))
    assert store.get()[0].equals(first)
    tables.drop("t", store.media, "fast", design)
    assert store.names() == ["u"]
    store.put("v", "")
    assert store.get(name="v")[0].equals(store.data)
    with pytest.raises(NearsideError, match="no table is called"):
        tables.drop("t", store.media, "fast", design)
    feather.write_feather(table(0), store.source)
    store.put("empty", "word")
    assert store.get("word", name="empty")[0].equals(table(0))


def test_resident_table_no_room(tmp_path, design):
    store = ResidentStore(tmp_path, design, table(1000), "whole", devices=1)
    feather.write_feather(table(60_000), store.source)
    with pytest.raises(NearsideError, match=r"^device 0: the table's part takes .* MiB"):
        store.put("large", "")
    # The rest is room for sorting, in partitions.
    rows, before = 1000, 0
    while "full" not in store.names():
        feather.write_feather(table(rows), store.source)
        try:
            store.put("full", "whole")
        except NearsideError:
            break
        if store.get("whole", name="full")[1]["partitions"] > 1:
            before = rows
            break
        tables.drop("full", store.media, "fast", design)
        rows += 4000
    assert before, "it is sorted in partitions before it has no room"
    assert store.get("whole", name="full")[0].equals(by(table(rows), ("whole", "ascending", "at_end")))


def test_resident_table_damage_is_reported(tmp_path, design):
    """Flipped bytes of a media file: never other rows, and never another order except of equal keys."""
    store = ResidentStore(tmp_path, design, table(300), "maybe", devices=1)
    good, draw = store.media[0].read_bytes(), random.Random(1)
    used = [n for n in range(0, len(good), 16) if any(good[n : n + 16])]
    reported = 0
    for _ in range(60):
        bad = bytearray(good)
        at = draw.choice(used) + draw.randrange(16)
        bad[at] ^= 1 << draw.randrange(8)
        store.media[0].write_bytes(bad)
        for order, wanted in ((None, store.data), ("maybe", by(store.data, ("maybe", "ascending", "at_end")))):
            try:
                found = store.get(order)[0]
            except NearsideError as error:
                assert "damaged" in str(error) or "other data" in str(error) or "not in order" in str(error)  # noqa: PT017
                assert not store.out.exists()
                reported += 1
            else:
                assert found["maybe"].equals(wanted["maybe"])
                assert by(found, ("maybe", "ascending", "at_end")).equals(by(wanted, ("maybe", "ascending", "at_end")))
    assert reported > 30


PUT = """
import os, signal, sys
from pathlib import Path
from nearside import Design, tables

calls = 0
def progress(done, total):
    global calls
    calls += 1
    if calls == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)

media = [Path(name) for name in sys.argv[3:]]
tables.put(Path(sys.argv[2]), media, "u", "whole", "fast", Design.load("sort"), progress=progress)
print("done")
"""


@pytest.mark.slow
def test_resident_table_killed_put_leaves_the_earlier_table(tmp_path):
    """At any moment; `resident_table_survives_power_loss` of crates/sort covers every moment."""
    design = Design.load("sort")
    store = ResidentStore(tmp_path, design, table(1000), "whole")
    later = table(150_000)
    feather.write_feather(later, store.source)
    for call in (1, 2, 4):
        command = [sys.executable, "-c", PUT, str(call), store.source, *store.media]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
        assert store.get()[0].equals(store.data)
        if store.names() == ["t"]:
            continue
        # It was too late: the table is complete, or partial, which is reported.
        if ended.returncode == 0:
            assert store.get(name="u")[0].equals(later)
        tables.drop("u", store.media, "fast", design)


def nearside(capsys, monkeypatch, *arguments) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["nearside", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


def test_resident_table_commands(tmp_path, capsys, monkeypatch):
    small, source, target = tmp_path / "small.toml", tmp_path / "t.parquet", tmp_path / "s.csv"
    engines = "".join(f'[[engine]]\nname = "{name}0"\nengine = "{name}"\n' for name in ("sorter", "row_shuffle"))
    media = '[media]\nbytes = "4 MiB"\nprofile = "dram"\n[nvme]\nnamespaces = ["4 MiB"]\n'
    small.write_text(f'name = "small"\n{media}{engines}')
    data = table(200).drop(["list"])
    pq.write_table(data, source)
    common = ["--design", small, "--model", "fast", "--media", tmp_path / "d0", "--media", tmp_path / "d1"]
    run = lambda *arguments: nearside(capsys, monkeypatch, *arguments)  # noqa: E731
    status, out, err = run("table", "put", source, "--keys", 'word, "whole"', *common)
    assert (status, err) == (0, "")
    assert "put" in out
    status, out, err = run("table", "list", *common, "--json")
    assert json.loads(out)[0]["keys"] == ["word", "whole"]
    assert "word, whole" in run("table", "list", *common)[1]
    status, out, err = run("sort", "--table", "t", "--by", "word desc", *common, "-o", target)
    assert (status, err) == (0, "")
    assert "of its bound" in out
    rows = [int(line.split(",")[-1]) for line in target.read_text().splitlines()[1:]]
    assert rows == by(data, ("word", "descending", "at_start"))["row"].to_pylist()
    status, out, err = run("sort", "--table", "t", "--by", "word", *common, "--explain")
    assert (status, err) == (0, "")
    assert "device 1: 100 rows" in out
    assert run("table", "get", "t", *common, "-o", target)[0] == 0
    assert len(target.read_text().splitlines()) == 201
    assert run("table", "drop", "t", *common)[0] == 0
    assert json.loads(run("table", "list", *common, "--json")[1]) == []
    for wrong in (
        ("sort", "--by", "a"),
        ("sort", source, "--table", "t", "--by", "a", *common),
        ("sort", source, "--by", "a", *common, "-o", target),
        ("sort", "--table", "t", "--by", "a", "-o", target),
        ("sort", source, "--by", "a"),
        ("table", "put", source, "--keys", "a b", *common),
    ):
        status, out, err = run(*wrong)
        assert status in (1, 2)
        assert (out, len(err.splitlines())) == ("", 1)


def test_resident_table_plan_is_reported(tmp_path, capsys, monkeypatch, design):
    source = tmp_path / "t.parquet"
    pq.write_table(table(), source)
    doc = tables.explain(source, "maybe desc", 2, design)
    each = [sum(part["rows"] for part in device) for device in doc["plan"]["devices"]]
    assert each == [ROWS // 2] * 2
    assert [bound["stage"] for bound in doc["bounds"]] == ["put", "decode", "sort", "shuffle", "get"]
    assert all(bound["ns"] > 0 and bound["limit"] and bound["source"] for bound in doc["bounds"])
    found = tables.sort_file(source, tmp_path / "s.parquet", "maybe desc", 2, "fast", design)
    assert found["plan"] == doc["plan"]
    for stage, bound in zip(found["stages"], found["bounds"], strict=True):
        assert stage["ns"] >= bound["ns"], "nothing is faster than its bound"
    status, out, err = nearside(capsys, monkeypatch, "sort", source, "--by", "word, whole", "--devices", 3, "--explain")
    assert (status, err) == (0, "")
    assert "device 2: 3000 rows" in out
    assert "PCIe link" in out
    assert "(the longest)" in out
    assert not os.path.exists(tmp_path / "out")


def rows_of(name: str, media: list[Path], folder: Path, design: Design, by: str | None = None) -> pa.Table:
    tables.get(name, media, folder / "out.arrow", by, "fast", design)
    return pa.ipc.open_file((folder / "out.arrow").read_bytes()).read_all()


def ids_of(media: list[Path], design: Design) -> list[str]:
    return [entry["id"] for entry in tables.resident(media, "fast", design)]


def errors_of(name: str, media: list[Path], folder: Path, design: Design) -> set[str]:
    """The errors of the commands that take a table's name; nothing is written."""
    before, reported = [path.read_bytes() for path in media], set()
    source = folder / "other.feather"
    feather.write_feather(table(5), source)
    for refused in (
        lambda: tables.get(name, media, folder / "none", None, "fast", design),
        lambda: tables.get(name, media, folder / "none", "k", "fast", design),
        lambda: tables.explain_resident(name, media, "k", "fast", design),
        lambda: tables.drop(name, media, "fast", design),
    ):
        with pytest.raises(NearsideError) as error:
            refused()
        assert len(str(error.value).splitlines()) == 1
        reported.add(str(error.value))
    with pytest.raises(NearsideError, match=r"there is a table .t. already, "):
        tables.put(source, media, name, "whole", "fast", design)
    assert [path.read_bytes() for path in media] == before
    assert not (folder / "none").exists()
    return reported


@pytest.fixture
def same_names(tmp_path, design):
    """Tables of one name on separate media: of other rows, of as many shards, of more, and of the same rows."""
    media, rows = {}, {}
    for number, (owner, parts, amount) in enumerate((("ann", 2, 100), ("bob", 2, 7), ("cy", 1, 3), ("dee", 1, 3))):
        data = pa.table({"k": list(range(8)), "paid": pa.array([amount] * 8, pa.int32())})
        feather.write_feather(data, tmp_path / "t.feather", compression="uncompressed")
        media[owner] = [tmp_path / f"{owner}{n}" for n in range(parts)]
        tables.put(tmp_path / "t.feather", media[owner], "t", "k", "fast", design)
        rows[owner] = data
        assert len(ids_of(media[owner], design)) == 1, number
    return media, rows


@pytest.mark.parametrize(
    "chosen",
    [["ann0", "ann1", "cy0"], ["ann0", "bob1"], ["ann0", "ann1", "bob0"], ["cy0", "dee0"]],
    ids=" ".join,
)
def test_resident_table_name_of_two_tables_is_ambiguous(same_names, tmp_path, design, chosen):
    """Complete or not, with the media files in any order: nothing is read, and nothing dropped."""
    media, rows = same_names
    reported, ids = set(), None
    for order in (chosen, chosen[::-1]):
        paths = [tmp_path / name for name in order]
        ids = ids_of(paths, design)
        assert len(set(ids)) == 2
        reported |= errors_of("t", paths, tmp_path, design)
    (error,) = reported
    assert error.startswith('2 tables are called "t": ')
    for name, found in zip(ids, tables.resident(paths, "fast", design), strict=True):
        assert f"{name} ({found['parts']} of {found['of_parts']} parts" in error
    assert all(str(tmp_path / name) in error for name in chosen)
    # Each has an id, and an incomplete one is no table under that, either.
    by_owner = {ids_of(paths, design)[0]: owner for owner, paths in media.items()}
    for found in tables.resident(paths, "fast", design):
        owner, name = by_owner[found["id"]], found["id"]
        if found["parts"] == found["of_parts"]:
            assert rows_of(name, paths, tmp_path, design).equals(rows[owner])
            assert rows_of(name, paths, tmp_path, design, "k desc").equals(rows[owner][::-1])
        else:
            with pytest.raises(NearsideError, match="has 2 parts, of which these media files have 1"):
                rows_of(name, paths, tmp_path, design)
    # Of two, the named one is dropped.
    gone, left = ids
    tables.drop(gone, paths, "fast", design)
    assert ids_of(paths, design) == [left]
    for owner, own in media.items():
        if by_owner.get(gone) != owner:
            assert rows_of("t", own, tmp_path, design).equals(rows[owner])


def test_resident_table_duplicate_shard_is_reported_and_not_dropped(tmp_path, design):
    """A copy of a media file is the same shard: it is ambiguous which of them is meant."""
    store = ResidentStore(tmp_path, design, table(400).rename_columns(["k", *table(0).column_names[1:]]), "k")
    copy = tmp_path / "copy"
    shutil.copy(store.media[0], copy)
    for order in ([*store.media, copy], [copy, *store.media]):
        reported = errors_of("t", order, tmp_path, design)
        (error,) = {re.sub(r"\S+(d0|copy) and \S+(d0|copy)", "two", text) for text in reported}
        assert "has part 0 on two: name one of these media files" in error
    assert store.get()[0].equals(store.data)
    assert store.get(media=[copy, store.media[1]])[0].equals(store.data)


def test_resident_table_rest_of_a_table_is_reported_and_dropped(tmp_path, design):
    store = ResidentStore(tmp_path, design, table(400), "whole", devices=3)
    left = store.media[1:]
    assert "has 3 parts, of which these media files have 2 (on " in store.reported(media=left)
    assert "and part 0 is missing: name all of them once, or drop what is left" in store.reported(media=left)
    tables.drop("t", left, "fast", design)
    assert [tables.resident([path], "fast", design) == [] for path in store.media] == [False, True, True]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["l", "s"])
def test_resident_table_nulls_within_values_sort_as_nulls(tmp_path, design, key):
    lists, structs = [[1], [None], [2], None, []], [{"x": 1}, {"x": None}, {"x": 2}, None, {"x": 0}]
    data = pa.table({"l": lists * 20, "s": structs * 20, "row": list(range(100))})
    feather.write_feather(data, tmp_path / "t.feather", compression="uncompressed")
    media, out = [tmp_path / "d0", tmp_path / "d1"], tmp_path / "out.arrow"
    tables.put(tmp_path / "t.feather", media, "t", "l, s", "fast", design)
    for order in ("", " desc", " nulls first", " desc nulls last"):
        wanted, _ = tables.sort_table(data, key + order, model="fast")
        tables.get("t", media, out, key + order, "fast", design)
        assert feather.read_table(out)["row"] == wanted["row"], order


def test_resident_table_directory_survives_damage_of_one_copy(tmp_path, design):
    feather.write_feather(table(50), tmp_path / "t.feather", compression="uncompressed")
    media = [tmp_path / "d0"]
    for name in ("t", "u"):
        tables.put(tmp_path / "t.feather", media, name, "whole", "fast", design)
    whole = media[0].read_bytes()
    for place in (40, 65536 + 40):
        media[0].write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert [found["name"] for found in tables.resident(media, "fast", design)] == ["t", "u"]


def test_resident_table_no_columns(tmp_path, design):
    source = tmp_path / "t.parquet"
    pq.write_table(table(3).select([]), source)
    for keys in ("", "a"):
        with pytest.raises(NearsideError, match='table "t" has no columns: one or more are needed'):
            tables.put(source, [tmp_path / "d0"], "t", keys, model="fast", design=design)
