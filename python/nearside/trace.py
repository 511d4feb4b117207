# SPDX-License-Identifier: Apache-2.0
"""Traces of commands, as `nearside ... --trace FILE.jsonl` writes them: a summary and a picture."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nearside import files, show
from nearside._native import NearsideError

# Stages as in the Perfetto trace: each ends at this event and begins at the previous one that
# exists.
STAGES = {
    "doorbell": "doorbell",
    "fetch": "queue",
    "decoded": "fetch and decode",
    "started": "to data path",
    "last_job": "PRP",
    "first_data": "source",
    "done": "data",
    "posted": "to completion",
    "sent": "completion",
    "landed": "entry to host",
    "message": "to interrupt",
    "interrupt": "interrupt",
}


def load(path: Path) -> list[dict[str, Any]]:
    """The commands in a file of JSON lines."""
    try:
        commands = [json.loads(line) for line in io.StringIO(files.read_text(path))]
    except (ValueError, RecursionError):
        raise NearsideError(f"{files.printable(path)}: no trace of JSON lines (*.jsonl)") from None
    for number, command in enumerate(commands, 1):
        if not _is_command(command):
            raise NearsideError(f"{files.printable(path)}:{number}: no command of a trace of JSON lines (*.jsonl)")
    return commands


def _is_command(value: Any) -> bool:
    """Whether a value has the keys that `summary` and the picture need."""
    if not isinstance(value, dict) or {"command", "queue", "blocks", "status", "times_ps"} - value.keys():
        return False
    times = value["times_ps"]
    if not (isinstance(value["command"], str) and type(value["queue"]) is int and isinstance(times, dict)):
        return False
    return bool(times) and all(type(time) is int and 0 <= time < 1 << 64 for time in times.values())


def stages(command: dict[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Name, begin and end in ps of each stage. PRPs that are walked while data flows belong to the data."""
    times = command["times_ps"]
    ends = dict(times)
    if times.get("first_data", 1 << 63) < times.get("last_job", 0):
        ends["last_job"] = times["first_data"]
    last = min(times.values())
    for key, name in STAGES.items():
        if ends.get(key, last) > last:
            yield name, last, ends[key]
            last = ends[key]


def nearest_rank(values: Sequence[int], percent: int) -> int:
    """A percentile of sorted values: the least one that this share of all values does not exceed."""
    return values[max(0, -(-percent * len(values) // 100) - 1)]


def summary(commands: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stages of each kind of command, in ns: mean, median, 99th percentile (nearest rank) and largest."""
    spans: dict[tuple[str, str], list[int]] = {}
    for command in commands:
        times = command["times_ps"].values()
        whole = [("whole", min(times), max(times))] if command["status"] is not None else []
        for name, start, end in [*stages(command), *whole]:
            spans.setdefault((command["command"], name), []).append(end - start)
    order = [*STAGES.values(), "whole"]
    rows = []
    for (kind, stage), values in sorted(spans.items(), key=lambda item: (item[0][0], order.index(item[0][1]))):
        values.sort()
        rank = {p: nearest_rank(values, p) / 1e3 for p in (50, 99)}
        rows.append(
            {
                "command": kind, "stage": stage, "count": len(values), "mean_ns": sum(values) / len(values) / 1e3,
                "p50_ns": rank[50], "p99_ns": rank[99], "max_ns": values[-1] / 1e3,
            }
        )  # fmt: skip
    return rows


def print_summary(rows: list[dict[str, Any]]) -> None:
    table = show.table("stages of commands, simulated time", "command", "stage", "count", "mean", "p50", "p99", "max")
    for row in rows:
        values = (show.nanoseconds(row[key]) for key in ("mean_ns", "p50_ns", "p99_ns", "max_ns"))
        table.add_row(row["command"], row["stage"], str(row["count"]), *values)
    show.out.print(table)
