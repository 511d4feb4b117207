# SPDX-License-Identifier: Apache-2.0
"""`nearside timeline`: who does what, and who waits for whom, while transactions run."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest
from nearside import _native, timeline
from nearside._native import NearsideError
from nearside.device import Design

NEARSIDE = Path(sys.executable).with_name("nearside")


def rows(mechanism: str = "undo", **shape: int) -> dict[str, dict]:
    doc = timeline.measure(Design.load("nearpm-paper"), mechanism, **shape)
    return {row["name"]: row for row in doc["rows"]}


@pytest.fixture(scope="module")
def undo() -> dict[str, dict]:
    return rows()


def test_timeline_cpu_has_one_activity_at_a_time(undo):
    for row in undo.values():
        spans = [span for span in row["spans"] if span["who"] == timeline.CPU]
        assert spans[0]["begin_ns"] == 0
        assert spans[-1]["end_ns"] == pytest.approx(row["took_ns"])
        for before, after in itertools.pairwise(spans):
            assert after["begin_ns"] == pytest.approx(before["end_ns"])
        assert timeline.busy_ns(row, timeline.CPU, "fence") == pytest.approx(row["fences_ns"])


def test_timeline_units_have_one_command_each_at_a_time(undo):
    assert not [span for span in undo["by the CPU"]["spans"] if span["who"] != timeline.CPU]
    for row in list(undo.values())[1:]:
        for who in {span["who"] for span in row["spans"]} - {timeline.CPU}:
            own = sorted((span["begin_ns"], span["end_ns"]) for span in row["spans"] if span["who"] == who)
            assert all(begin < end for begin, end in own)
            assert all(after[0] >= before[1] for before, after in itertools.pairwise(own))


def test_timeline_record_is_made_in_parallel_with_the_program(undo):
    """Figure 5c: the CPU computes and stores during the commands; by the CPU alone it waits between log and store."""
    row = undo["by one device"]
    program = [span for span in row["spans"] if span["what"] == "program"]
    units = [span for span in row["spans"] if span["what"] == "undo"]
    assert any(p["begin_ns"] < u["end_ns"] and u["begin_ns"] < p["end_ns"] for p in program for u in units)
    assert row["took_ns"] < undo["by the CPU"]["took_ns"]


def test_timeline_tracked_pool_needs_no_command_before_stores(undo):
    """The commits are the only commands. Each line of the objects has a record."""
    row = undo["by one device, without commands before stores"]
    commands = [span for span in row["spans"] if span["what"] == "command"]
    stores = [span for span in row["spans"] if (span["who"], span["what"]) == (timeline.CPU, "program")]
    assert len(commands) == 2
    assert stores[0]["end_ns"] < commands[0]["begin_ns"]
    assert len([span for span in row["spans"] if span["what"] == "undo"]) >= 2 * 2 * 4096 // 64
    # More lines than an epoch has: that variant is left out.
    assert "by one device, without commands before stores" not in rows(objects=8, size=16384, transactions=1)


def test_timeline_next_transaction_precedes_log_deletion_unless_the_host_synchronises(undo):
    """Figure 6, b and c."""

    def first(row: dict, what: str, number: int = 0) -> float:
        return sorted(mark["at_ns"] for mark in row["marks"] if mark["what"] == what)[number]

    alone, together = undo["by two devices"], undo["by two devices, synchronised by the host"]
    assert first(alone, "begin", 1) < first(alone, "deleted")
    ends = [span["end_ns"] for span in together["spans"] if span["what"] == "commit"]
    assert first(together, "begin", 1) > sorted(ends)[1]
    assert [mark for mark in alone["marks"] if mark["what"] == "notified"]
    assert not [mark for mark in together["marks"] if mark["what"] == "notified"]
    assert alone["took_ns"] < together["took_ns"]


@pytest.mark.parametrize("mechanism", ["redo", "checkpoint", "shadow"])
def test_timeline_of_other_mechanisms(mechanism):
    for name, row in rows(mechanism, transactions=1).items():
        assert row["took_ns"] > 0
        assert ("device" in name) == any(span["who"] != timeline.CPU for span in row["spans"])


def test_timeline_cpu_and_units_in_parallel_are_counted_once():
    """What nearpm_fig18 is made of."""
    design = Design.load("nearpm-paper").with_values(timeline.VALUES).native

    def performed(offloaded: bool, fence: str = "read_back", work_ns: float = 0.0) -> dict[str, float]:
        return _native.pm_benchmark(design, "btree", "undo", offloaded, fence, 40, work_ns, 1)

    cpu, durable, relaxed = performed(False), performed(True), performed(True, "posted")
    assert (cpu["units_ns"], cpu["both_ns"], cpu["commands"]) == (0, 0, 0)
    for row in (cpu, durable, relaxed):
        assert row["fences_ns"] <= row["consistency_ns"] <= row["ns"]
        assert row["units_ns"] - row["fences_ns"] <= row["both_ns"] <= row["units_ns"] <= row["ns"]
    # Units work while the CPU waits in the fence at a transaction's end, and beside it.
    assert 0 < durable["both_ns"] < durable["units_ns"]
    assert relaxed["fences_ns"] < durable["fences_ns"]
    assert relaxed["both_ns"] / relaxed["units_ns"] > durable["both_ns"] / durable["units_ns"]
    beside = performed(True, work_ns=5000.0)
    assert beside["ns"] == pytest.approx(durable["ns"] + 5000, rel=0.1)
    assert beside["commands"] == durable["commands"]
    assert beside["both_ns"] / beside["ns"] < durable["both_ns"] / durable["ns"]
    with pytest.raises(NearsideError, match="transactions = 0: allowed are 1 to 4000"):
        _native.pm_benchmark(design, "btree", "undo", True, "posted", 0, 0.0, 1)


def test_timeline_errors_of_arguments():
    with pytest.raises(NearsideError, match="multiples of 8"):
        rows(size=12)
    with pytest.raises(NearsideError, match="undo, redo, checkpoint, shadow"):
        rows("log")
    with pytest.raises(NearsideError, match="no crash-consistency engine"):
        timeline.measure(Design.load("default"))


@pytest.mark.slow
def test_timeline_picture_and_document(tmp_path):
    plot = tmp_path / "t.png"
    done = subprocess.run([NEARSIDE, "timeline", "--json", "--plot", plot], capture_output=True, text=True, check=True)
    doc = json.loads(done.stdout)
    assert doc["time"] == "simulated"
    assert len(doc["rows"]) == 5
    assert plot.read_bytes().startswith(b"\x89PNG")
