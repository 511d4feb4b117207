# SPDX-License-Identifier: Apache-2.0
"""Traces of commands and the breakdown of single ones, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nearside import Design, Device, NearsideError, latency, plots, trace

MOMENTS = [
    "stored", "doorbell", "fetch", "decoded", "started", "first_job", "last_job", "first_data", "done", "posted",
    "sent", "landed", "message", "interrupt",
]  # fmt: skip
# Name, type, whether it may be null.
FIELDS = [
    ("queue", int, False), ("cid", int, False), ("slot", int, False), ("opcode", int, False), ("command", str, False),
    ("nsid", int, False), ("lba", int, True), ("blocks", int, True), ("cdw10", int, False), ("cdw11", int, False),
    ("cdw12", int, False), ("status", int, True), ("status_name", str, True), ("vector", int, True),
    ("times_ps", dict, False),
]  # fmt: skip
JOB = {"read_percent": 50, "min_bytes": 512, "max_bytes": 65536, "queues": 3, "depth": 4, "commands": 80}


def test_trace_that_is_not_written_is_named(tmp_path):
    path = tmp_path / "full.jsonl"
    path.symlink_to("/dev/full")
    device = Device(Design.load("fuzz"))
    device.trace_start(path)
    device.workload(queues=1, commands=4)
    with pytest.raises(NearsideError, match=r"full\.jsonl: the trace could not be written: No space"):
        device.trace_stop()


@pytest.mark.rtl
def test_trace_single_reads_match_the_command():
    """docs/trace.md: the terms of `nearside latency`."""
    text = (Path(__file__).parent.parent / "docs/trace.md").read_text()
    table = text.split("Reads under DRAM timing", 1)[1].split("\n\n")[1]
    stated = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    with Device(Design.load("default")) as device:
        device.delay_set("dram")
        row = latency.measure(device, "read", 20, seed=1)
    period = row["period_ns"]
    shown = [
        [t["term"], f"{t['mean_ns']:.1f}", f"{t['cycles']:.1f}", f"{t['cycles']:.1f}" if t["added"] else "", t["how"]]
        for t in row["terms"]
    ]
    whole = f"{row['total_ns']:.1f}", f"{row['total_ns'] / period:.1f}", f"{row['added_cycles']:.1f}"
    assert stated == [*shown, ["total", *whole, "store to entry"]]


@pytest.fixture(scope="module")
def device():
    return Device(Design.load("default"))


def check(command: dict) -> None:
    """The schema of docs/trace.md."""
    assert list(command) == [name for name, _, _ in FIELDS]
    for name, kind, nullable in FIELDS:
        value = command[name]
        assert type(value) is kind or (value is None and nullable), (name, value)
    times = command["times_ps"]
    assert set(times) <= set(MOMENTS)
    assert all(isinstance(t, int) for t in times.values())
    order = [times[m] for m in MOMENTS if m in times and m not in ("first_data", "message")]
    assert order == sorted(order), command


def test_trace_lines_follow_the_schema(device, tmp_path):
    path = tmp_path / "t.jsonl"
    device.trace_start(path)
    report = device.workload(**JOB)
    assert device.trace_stop() == JOB["commands"]
    assert device.trace_stop() is None
    device.workload(**JOB)  # is not in it
    commands = trace.load(path)
    assert len(commands) == JOB["commands"]
    for command in commands:
        check(command)
        assert command["status"] == 0
        assert command["command"] in ("Read", "Write")
    assert sum(c["blocks"] for c in commands) * 512 == report["bytes"]
    rows = trace.summary(commands)
    whole = {row["command"]: row for row in rows if row["stage"] == "whole"}
    assert whole["Read"]["count"] + whole["Write"]["count"] == JOB["commands"]
    for kind, row in whole.items():
        parts = [r["mean_ns"] * r["count"] for r in rows if r["command"] == kind and r["stage"] != "whole"]
        assert sum(parts) == pytest.approx(row["mean_ns"] * row["count"])
    plots.trace(commands[:20], tmp_path / "t.png")
    assert (tmp_path / "t.png").read_bytes()[:4] == b"\x89PNG"


def test_trace_perfetto_file_is_valid(device, tmp_path):
    path = tmp_path / "t.json"
    device.trace_start(path)
    device.workload(**JOB)
    device.trace_stop()
    doc = json.loads(path.read_text())
    slices = [e for e in doc["traceEvents"] if e["ph"] == "X"]
    assert all({"name", "pid", "tid", "ts", "dur"} <= set(e) and e["dur"] >= 0 for e in slices)
    assert len([e for e in slices if "args" in e]) == JOB["commands"]
    named = {e["tid"] for e in doc["traceEvents"] if e["name"] == "thread_name"}
    assert {e["tid"] for e in slices} == named


@pytest.mark.both
def test_trace_terms_of_single_commands(device):
    device.delay_set("dram")
    for kind in ("read", "write"):
        row = latency.measure(device, kind, commands=4, seed=3)
        total = sum(term["mean_ns"] for term in row["terms"])
        assert total == pytest.approx(row["total_ns"]) == pytest.approx(row["physical_ns"] + row["added_ns"])
        assert all(term["mean_ns"] > 0 for term in row["terms"]), row
    # A slower memory adds to the memory's term and not to the controller's.
    fast = latency.measure(device, "read", commands=4, seed=3)
    device.delay_set_latency(1000, 1000)
    slow = latency.measure(device, "read", commands=4, seed=3)
    memory = {row: next(t["mean_ns"] for t in r["terms"] if t["term"] == "memory") for row, r in
              (("fast", fast), ("slow", slow))}  # fmt: skip
    assert memory["slow"] > 950 > memory["fast"]
    assert abs(slow["added_cycles"] - fast["added_cycles"]) < 6
    device.delay_set("dram")


def test_trace_bad_files(device, tmp_path):
    with pytest.raises(NearsideError, match=r"\.jsonl"):
        device.trace_start(tmp_path / "t.txt")
    with pytest.raises(NearsideError, match="No such file"):
        device.trace_start(tmp_path / "none" / "t.json")
    (tmp_path / "bad.jsonl").write_text("{\n")
    for name, text in (("none.jsonl", "no such file"), ("bad.jsonl", "no trace")):
        with pytest.raises(NearsideError, match=text):
            trace.load(Path(tmp_path / name))
