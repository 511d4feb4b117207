# SPDX-License-Identifier: Apache-2.0
"""Traces of sorts: consecutive stages of each device, and the traffic of its memories' channels."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from nearside import Design, NearsideError, tables

ROWS = 40_000
STAGES = ["put", "sort", "shuffle", "get"]


@pytest.fixture
def source(tmp_path) -> Path:
    rng = np.random.default_rng(1)
    table = pa.table({"a": rng.integers(0, 1 << 31, ROWS).astype(np.int32), "b": rng.integers(0, 9, ROWS)})
    pq.write_table(table, tmp_path / "t.parquet", use_dictionary=False)
    return tmp_path / "t.parquet"


def of_device(trace: Path, number: int) -> tuple[list[dict], list[dict]]:
    """Slices and counters of a device."""
    events = [event for event in json.loads(trace.read_text())["traceEvents"] if event["pid"] == number + 1]
    names = [event["args"]["name"] for event in events if event["ph"] == "M"]
    assert names == [f"device {number}", "stages"]
    return [event for event in events if event["ph"] == "X"], [event for event in events if event["ph"] == "C"]


def passed(counters: list[dict], way: str, begin: float, end: float) -> float:
    """Bytes on all channels between two times in microseconds: a counter is constant until the next of its name."""
    total = 0.0
    for name in {event["name"] for event in counters}:
        of = [event for event in counters if event["name"] == name]
        assert [event["ts"] for event in of] == sorted(event["ts"] for event in of)
        for event, after in itertools.pairwise(of):
            overlap = min(after["ts"], end) - max(event["ts"], begin)
            total += max(overlap, 0) * event["args"][way] * 1000
    return total


def check(trace: Path, report: dict, devices: int, rows: int, channels: int) -> None:
    for number in range(devices):
        slices, counters = of_device(trace, number)
        assert [event["name"] for event in slices] == STAGES
        assert {event["name"] for event in counters} == {f"channel {n}, GB/s" for n in range(channels)}
        ends = [event["ts"] + event["dur"] for event in slices]
        assert all(end <= event["ts"] + 1e-6 for end, event in zip(ends, slices[1:], strict=False))
        for event in slices:
            assert event["args"]["bytes"] > 0
        # All data to a memory come over the link; the engines read and write them at least once.
        put, sort, shuffle, _ = slices
        written = passed(counters, "written", put["ts"], put["ts"] + put["dur"])
        assert 0.7 * put["args"]["bytes"] < written < 1.1 * put["args"]["bytes"]
        for stage in (sort, shuffle):
            read = passed(counters, "read", stage["ts"], stage["ts"] + stage["dur"])
            assert read > 0.7 * stage["args"]["bytes"], stage["name"]
    longest = {
        name: max(e["dur"] for n in range(devices) for e in of_device(trace, n)[0] if e["name"] == name)
        for name in STAGES
    }
    for stage in report["stages"]:
        assert longest[stage["stage"]] * 1000 == pytest.approx(stage["ns"])


@pytest.mark.both
def test_sort_trace_stages_and_channels(source, tmp_path):
    trace, plot, design = tmp_path / "trace.json", tmp_path / "plot.png", Design.load("sort")
    report = tables.sort_file(source, tmp_path / "s.parquet", "a", 2, design=design, trace=trace, plot=plot)
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert "trace" not in report
    assert pq.read_table(tmp_path / "s.parquet")["a"].to_pylist() == sorted(pq.read_table(source)["a"].to_pylist())
    check(trace, report, 2, ROWS, design.values["channels"])


def test_sort_trace_resident_table(source, tmp_path):
    media, trace = [tmp_path / "d0", tmp_path / "d1"], tmp_path / "trace.json"
    tables.put(source, media, "t", "a", "fast")
    tables.get("t", media, tmp_path / "s.parquet", "a", "fast", trace=trace)
    for number in range(2):
        slices, counters = of_device(trace, number)
        assert [event["name"] for event in slices] == STAGES[1:]
        assert counters
    tables.get("t", media, tmp_path / "s.parquet", None, "fast", trace=trace)
    slices, _ = of_device(trace, 1)
    assert [event["name"] for event in slices] == ["get"]


def test_sort_trace_list_has_the_stages_of_its_commands(source, tmp_path):
    trace = tmp_path / "trace.json"
    tables.sort_file(
        source, tmp_path / "s.parquet", "a", model="fast", design=Design.load("pipeline"), trace=trace
    )  # fmt: skip
    slices, _ = of_device(trace, 0)
    assert [event["name"] for event in slices] == STAGES
    assert [event["args"]["NVMe commands"] for event in slices][1:3] == [1, 0]


def test_sort_trace_partitions_are_consecutive(source, tmp_path):
    (tmp_path / "small.toml").write_text(
        (Path(__file__).parent.parent / "designs/sort.toml").read_text().replace('["1 GiB"]', '["1 MiB"]')
    )
    trace, design = tmp_path / "trace.json", Design.load(str(tmp_path / "small.toml"))
    report = tables.sort_file(source, tmp_path / "s.parquet", "a", model="fast", design=design, trace=trace)
    slices, _ = of_device(trace, 0)
    assert report["partitions"] > 1
    assert [event["name"] for event in slices] == STAGES * report["partitions"]
    assert [event["args"]["partition"] for event in slices] == [n // 4 for n in range(4 * report["partitions"])]


def test_sort_trace_without_a_trace_time_is_reproducible(source, tmp_path):
    """A trace takes some simulated time, but little."""
    elapsed = [
        tables.sort_file(source, tmp_path / "s.parquet", "a", model="fast", trace=trace)["elapsed_ns"]
        for trace in (None, None, tmp_path / "trace.json")
    ]
    assert elapsed[0] == elapsed[1] <= elapsed[2] < 1.1 * elapsed[0]


def test_sort_trace_names_that_are_refused(source, tmp_path):
    for trace, words in {
        tmp_path / "t.jsonl": "ends in .json",
        tmp_path / "none" / "t.json": "its folder doesn't exist",
        tmp_path / "s.json": "the same file",
    }.items():
        with pytest.raises(NearsideError, match=words):
            tables.sort_file(source, tmp_path / "s.json", "a", model="fast", trace=trace)
        assert not (tmp_path / "s.json").exists()
    with pytest.raises(NearsideError, match="no plot is called"):
        tables.sort_file(source, tmp_path / "s.parquet", "a", model="fast", plot=tmp_path / "p.xyz")
