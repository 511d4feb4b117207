# SPDX-License-Identifier: Apache-2.0
"""The commands of a guest, issued again in this process: does the device take as long for them?"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from nearside import trace as traces
from nearside._native import NearsideError
from nearside.device import Design, Device
from nearside.experiments.nvmulator_guest import Command

KINDS = ("Read", "Write")


def replay(design: Design, model: str, commands: Sequence[Command]) -> dict[str, dict[str, Any]]:
    """Issues the reads and writes of a trace at their times; by kind, the mean latencies of both.

    A latency is the device's and the link's: from the fetch of the entry to that of the completion in the host's
    memory. Doorbells and interrupts are left out, as a guest announces some commands in its memory.
    """
    recorded = [command for command in commands if command["command"] in KINDS and command["queue"] > 0]
    if not recorded:
        raise NearsideError("the trace has no reads or writes")
    recorded.sort(key=fetched_ps)
    start = fetched_ps(recorded[0])
    timed = [(fetched_ps(c) - start, c["command"].lower(), c["lba"], c["blocks"]) for c in recorded]
    with tempfile.TemporaryDirectory(prefix="nearside-") as folder:
        trace = Path(folder) / "trace.jsonl"
        # The times are those of the guest's CPU already.
        with Device(design.with_values("[cpu]\nprofile = 'none'"), model=model) as device:
            device.trace_start(trace)
            report = device.replay(timed)
            device.trace_stop()
        again = traces.load(trace)
    found = {}
    for kind in KINDS:
        before, after = (
            [latency_ns(command) for command in of if command["command"] == kind] for of in (recorded, again)
        )
        if len(before) != len(after):
            raise NearsideError(f"{len(after)} of {len(before)} commands {kind} were issued again")
        if before:
            found[kind.lower()] = {
                "count": len(before),
                "recorded_us": fmean(before) / 1e3,
                "replayed_us": fmean(after) / 1e3,
                "error_percent": 100 * abs(fmean(after) / fmean(before) - 1),
                "late_us": report["late_ns"] / 1e3,
            }
    return found


def fetched_ps(command: Command) -> int:
    """When the device asked for the command's entry."""
    return int(command["times_ps"]["fetch"])


def latency_ns(command: Command) -> float:
    times = command["times_ps"]
    return (times["landed"] - times["fetch"]) / 1e3
