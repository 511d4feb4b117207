# SPDX-License-Identifier: Apache-2.0
"""NearPM, figure 17: copies of persistent data by the CPU and by a unit."""

from __future__ import annotations

from typing import Any

from nearside.experiments import nearpm
from nearside.experiments.registry import Experiment, Row, Run, figure, from_paper, plot

CLOCKS = (
    "from the first load, or the store of the command, until all bytes of the copy are persistent at their place and a "
    "load that follows them has returned"
)
WAYS = ("streamed", "cached", "accepted", "ended")
UNIT_GB_S = 4.0
# Most units of a copy, and the least bytes for each.
COPY_UNITS = 4
PART_BYTES = 4096


def cases(run: Run) -> list[int]:
    return run.parameters["bytes"]


def measure(run: Run, size: int) -> Row:
    design = nearpm.design(run)
    elapsed = {way: nearpm.copies(run, design, way, size, run.parameters["count"])["mean_ns"] for way in WAYS}
    cpu = min(elapsed["streamed"], elapsed["cached"])
    # The part of that at the rate alone of the units over which the copy is divided.
    units = max(1, min(COPY_UNITS, size // PART_BYTES))
    limit = cpu / (size / (units * UNIT_GB_S))
    return {
        "bytes": size, **{f"{way}_ns": ns for way, ns in elapsed.items()}, "ended": cpu / elapsed["ended"],
        "cached": elapsed["cached"] / elapsed["ended"], "limit": limit,
    }  # fmt: skip


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for row in rows:
        size, paper = row["bytes"], nearpm.PAPER_COPY.get(row["bytes"])
        stated = from_paper(paper, "section 8.2.1, figure 17")
        out += [
            figure(f"{size}.ended", f"{size} B: speed-up over the CPU's faster way", row["ended"], "x", **stated,
                   limit=row["limit"], limit_text="the CPU's time by that of 4 GB/s of each of its units"),
            figure(f"{size}.cached", f"{size} B: the same, over copies through the cache with clwb", row["cached"],
                   "x", **stated),
            figure(f"{size}.accepted", f"{size} B: until the device has the command, which a power cut does not "
                   "revoke; the copy has not ended then", row["accepted_ns"], "ns", better="lower"),
        ]  # fmt: skip
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    series = [
        {"name": "over the CPU's faster way", "of": "ours", "y": [row["ended"] for row in rows]},
        {"name": "over copies through the cache", "of": "ours", "y": [row["cached"] for row in rows]},
        {"name": "NearPM", "of": "paper", "y": [nearpm.PAPER_COPY.get(row["bytes"]) for row in rows]},
    ]
    sizes = [row["bytes"] for row in rows]
    return [plot("Figure 17: copies, speed-up", sizes, series, x_label="bytes", y_label="x, simulated", log=True)]


EXPERIMENT = Experiment(
    name="nearpm_fig17",
    title="Copies of persistent data, speed-up over the CPU",
    source=f"{nearpm.TITLE}, figure 17",
    text=(
        "One copy at a time from and to memory that no cache holds: the CPU's time by a command's. Both clocks go "
        + CLOCKS + ".",
        "The device has a command in its persistence domain before that, once it has accepted it: that time is shown "
        "separately, and is not a copy's.",
        nearpm.RUNS_TEXT,
        nearpm.DESIGN_TEXT,
        "The CPU is the faster of two ways, each with 12 loads in flight: loads and non-temporal stores, or stores "
        "through the cache with clwb; then a fence that reads back. The second series is over the second way alone. "
        "The paper does not state which of them its CPU takes; its memory is mapped write-back.",
        "A unit of 4 GB/s takes 4.1 us for 16 KiB. The device divides copies of 8 KiB and more over up to four units.",
    ),
    quick={"runs": nearpm.QUICK_RUNS, "bytes": [64, 1024, 16384], "count": 4},
    full={"runs": nearpm.RUNS, "bytes": [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384], "count": 16},
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast", "rtl"),
    design="nearpm-paper",
)  # fmt: skip
