"""`nearside correlate`: its rows, what it keeps, and what it says."""

import json

import pytest
from nearside.correlate import measure, run
from nearside.correlate.rows import DEEPEST, LARGEST, MOST_QUEUES, PEER, SMALLEST, Row, draw


def test_rows_are_the_seeds():
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


def test_errors_and_summary():
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


def test_references_are_kept_by_what_they_depend_on(tmp_path):
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
def test_a_row_of_two_devices_is_measured_on_both_engines(kind, tmp_path):
    row = Row("corner", kind, 4096, queues=1, depth=2, commands=60)
    entry = run.compare(row, measure.References(tmp_path / "kept.json"), None)
    assert entry["rtl"]["gb_s"] > 1
    assert entry["worst_percent"] < run.WITHIN_PERCENT
