# SPDX-License-Identifier: Apache-2.0
"""`nearside correlate`: its rows, its references, and its messages."""

import json
import os
import sys
import threading
from itertools import chain
from pathlib import Path

import pytest
from nearside import NearsideError, cli
from nearside.correlate import measure, run
from nearside.correlate.rows import (
    DEEPEST,
    ENGINES,
    LARGEST,
    MOST_QUEUES,
    PEER,
    READ_PERCENT,
    SMALLEST,
    WINDOW,
    Row,
    draw,
)

OUTCOME = {"mean_ns": 100.0, "p99_ns": None, "gb_s": 1.0, "wall_s": 0.0}


def test_correlate_rows_depend_on_the_seed():
    rows = draw(100, 1)
    assert rows == draw(100, 1)
    assert len(rows) == 100
    assert [row for row in rows if row.origin != "corner"] != [row for row in draw(100, 2) if row.origin != "corner"]
    assert 15 <= sum(row.held_out for row in rows) <= 40
    assert all(not row.held_out for row in rows if row.design != "held-out" and row.origin == "corner")
    assert all(row.held_out for row in rows if row.design == "held-out")
    for row in rows:
        assert row.bytes % 512 == 0 or row.kind in ("load", "store")
        assert SMALLEST <= row.bytes <= LARGEST or row.kind in ("load", "store")
        assert 1 <= row.queues <= MOST_QUEUES
        assert 1 <= row.depth <= DEEPEST
        assert row.commands >= 3
    quick = draw(12, 1, quick=True)
    assert {row.design for row in quick} == {"default"}
    for sample in (rows, quick):
        assert {row.kind for row in sample} >= {"read", "write", "mix", *PEER}
    assert any(row.kind in PEER and row.held_out for row in draw(run.ROWS, 1))


def test_correlate_errors_and_summary():
    rtl = {"mean_ns": 100.0, "gb_s": 2.0, "p99_ns": None}
    errors = run.errors(rtl, {"mean_ns": 90.0, "gb_s": 2.1, "p99_ns": 5.0})
    assert errors["mean_ns"] == pytest.approx(-10)
    assert errors["gb_s"] == pytest.approx(5)
    assert errors["p99_ns"] is None
    rows = [{"worst_percent": value, "errors": {"p99_ns": -2.0}} for value in (4.0, 12.0)]
    rows.append({"worst_percent": None, "errors": None})
    found = run.summary(rows)
    assert (found["rows"], found["compared"], found["within"]) == (3, 2, 1)
    assert (found["mean_error_percent"], found["p99_mean_error_percent"]) == (8, 2)


def test_correlate_references_are_keyed_by_their_inputs(tmp_path):
    path = tmp_path / "kept.json"
    row = Row("corner", "read", 4096, commands=10)
    outcome = {"mean_ns": 1.0, "p99_ns": 1.0, "gb_s": 1.0}
    references = measure.References(path)
    assert references.of(row, lambda: outcome) == (outcome, False)
    assert measure.References(path).of(row, lambda: pytest.fail("it is known")) == (outcome, True)
    assert references.key(row) != references.key(Row("corner", "read", 4096, commands=10, link="gen4x8"))
    assert references.key(row) == references.key(Row("drawn", "read", 4096, commands=10, held_out=True))
    assert len(json.loads(path.read_text())) == 1


@pytest.mark.parametrize("kind", PEER)
def test_correlate_row_of_two_devices_is_measured_on_both_models(kind, tmp_path):
    row = Row("corner", kind, 4096, queues=1, depth=2, commands=60)
    entry = run.compare(row, measure.References(tmp_path / "kept.json"), None)
    assert entry["rtl"]["gb_s"] > 1
    assert entry["worst_percent"] < run.WITHIN_PERCENT


def command(capsys, *arguments: object) -> tuple[int, str, str]:
    """Runs `nearside correlate` in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["nearside", "correlate", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    out, err = capsys.readouterr()
    return ended.value.code or 0, out, err


@pytest.fixture
def measured(tmp_path, monkeypatch) -> list[tuple[str, str]]:
    """Runs it in a separate folder without a device; returns what would have been measured."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEARSIDE_RESULTS", "results")
    done = []

    def instead(row, model, progress=None):
        done.append((row.name, model))
        return dict(OUTCOME)

    monkeypatch.setattr(run, "measure", instead)
    return done


BAD_REFERENCES = [
    b"", b"{", b"\xff", b"[]", b'"x"', b"1", b"null", b"[" * 100_000, b'{"k": 1}', b'{"k": []}', b'{"k": {}}',
    *(json.dumps({"k": OUTCOME | {key: value}}).encode() for key in ("mean_ns", "p99_ns", "gb_s")
      for value in ("1", 0, -1, True, [], float("nan"), float("inf"))),
    json.dumps({"k": OUTCOME | {"gb_s": None}}).encode(),
]  # fmt: skip


def test_correlate_references_are_checked_before_measurements(measured, capsys):
    os.mkfifo("pipe")
    Path("folder").mkdir()
    for name in ("pipe", "/dev/full", "/dev/zero", "folder", "no/such/dir.json", "x" * 300, "/proc/x.json"):
        status, out, err = command(capsys, "--quick", "--reuse", name)
        assert (status, out, len(err.splitlines())) == (1, "", 1), err
        assert err.startswith(f"nearside: {name}: ")
    for content in BAD_REFERENCES:
        Path("bad.json").write_bytes(content)
        status, out, err = command(capsys, "--quick", "--reuse", "bad.json")
        assert (status, out, len(err.splitlines())) == (1, "", 1), err
        assert err.startswith("nearside: bad.json: no references of the RTL (")
        assert Path("bad.json").read_bytes() == content
    assert measured == []


def test_correlate_impossible_plot_is_refused_before_measurements(measured, capsys):
    Path("folder").mkdir()
    for name in ("nodir/x.png", "x.foo", "folder", "", "results/correlate.json", "results/correlate.rtl.json"):
        status, out, err = command(capsys, "--quick", "--plot", name)
        assert (status, out, len(err.splitlines())) == (1, "", 1), err
    assert measured == []


def test_correlate_failing_plot_leaves_the_result(measured, capsys, monkeypatch):
    status, _, err = command(capsys, "--quick", "--plot", "/dev/full")
    assert (status, err) == (1, "nearside: /dev/full: No space left on device\n")
    assert json.loads(Path("results/correlate.json").read_text())["status"] == "complete"
    assert command(capsys, "--quick", "--plot", "x.png")[0] == 0
    assert json.loads(Path("results/correlate.json").read_text())["plot"] == "x.png"
    assert Path("x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), NearsideError("it broke"), ValueError("odd")])
@pytest.mark.parametrize("at", [0, 3])
def test_correlate_early_end_is_partial(measured, monkeypatch, failure, at):
    whole = run.compare

    def failing(row, *others):
        if len(measured) >= 2 * at:
            raise failure
        return whole(row, *others)

    monkeypatch.setattr(run, "compare", failing)
    kept = []

    def save(doc):
        kept.append(json.loads(json.dumps(doc)))
        return Path("there.json")

    expected = run.Interrupted if isinstance(failure, KeyboardInterrupt) else type(failure)
    with pytest.raises(expected) as error:
        run.run(12, 1, quick=True, save=save)
    assert [(doc["status"], len(doc["rows"]), doc["all"]["compared"]) for doc in kept] == [("partial", at, at)] * (
        at > 0
    )
    if expected is run.Interrupted:
        said = (
            "; 3 of 12 rows are in there.json, marked as partial" if at else " before its first row; nothing was saved"
        )
        assert str(error.value) == f"correlate: interrupted{said}"


def test_correlate_comparison_of_nothing_lists_what_is_allowed(measured, capsys):
    for quick in ([], ["--quick"]):
        status, out, err = command(capsys, "--rows", 1, "--only", "held-out", *quick)
        assert (status, out) == (1, "")
        least = int(err.removeprefix("nearside: rows = 1: none of them is held out; allowed are ").split()[0])
        assert measured == []
        assert command(capsys, "--rows", least - 1, "--only", "held-out", *quick)[0] == 1
        assert command(capsys, "--rows", least, "--only", "held-out", *quick)[0] == 0
        measured.clear()


def test_correlate_concurrent_runs_keep_each_others_references(tmp_path):
    path = tmp_path / "kept.json"
    rows = [Row("corner", "read", 4096, commands=10, seed=seed) for seed in range(40)]
    sets = [measure.References(path) for _ in range(4)]

    def fill(number):
        for row in rows[number::4]:
            sets[number].of(row, lambda: OUTCOME)

    threads = [threading.Thread(target=fill, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = measure.References(path)
    assert all(found.of(row, lambda: pytest.fail("it is known"))[1] for row in rows)


def test_correlate_table_by_kind_has_each_row_once(measured, capsys):
    kinds = list(chain(*run.KINDS.values()))
    assert sorted(kinds) == sorted([*READ_PERCENT, *PEER, *WINDOW, *ENGINES])
    status, out, _ = command(capsys, "--quick", "--json")
    doc = json.loads(out)
    assert status == 0
    assert sum(part["compared"] for part in doc["kinds"].values()) == doc["all"]["compared"] == 12
    out = command(capsys, "--quick")[1]
    assert "by kind" in out
    assert "half of each" in out
