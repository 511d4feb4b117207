# SPDX-License-Identifier: Apache-2.0
"""NearPM: the interval between commands that leave a CPU, and what it changes."""

from __future__ import annotations

from typing import Any

from nearside.experiments import nearpm
from nearside.experiments.registry import Experiment, Row, Run, figure, plot


def measure(run: Run, case: tuple[str, int]) -> Row:
    mechanism, interval = case
    of = nearpm.design(run, more=f"mmio_store_ns = {interval}\n")
    inserts = nearpm.inserts(run, mechanism)
    cpu = run.once((mechanism,), lambda: nearpm.transactions(run, of, mechanism, False, "read_back", inserts))
    engine = nearpm.transactions(run, of, mechanism, True, "read_back", inserts)
    return {
        "mechanism": mechanism, "interval_ns": interval, "cpu_ns": cpu["consistency_ns"],
        "engine_ns": engine["consistency_ns"], "commands": engine["commands"],
        "regions": cpu["consistency_ns"] / engine["consistency_ns"],
    }  # fmt: skip


def cases(run: Run) -> list[tuple[str, int]]:
    return [(mechanism, interval) for mechanism in nearpm.PAPER_MECHANISMS for interval in run.parameters["intervals"]]


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for row in rows:
        name, what = f"{row['mechanism']}.{row['interval_ns']}", f"{row['mechanism']}, {row['interval_ns']} ns"
        out.append(figure(f"{name}.regions", f"{what}: speed-up of regions, durable", row["regions"], "x"))
        text = f"{what}: region, offloaded"
        out.append(figure(f"{name}.engine", text, row["engine_ns"], "ns", better="lower"))
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    intervals = list(dict.fromkeys(row["interval_ns"] for row in rows))
    series = [
        {"name": mechanism, "of": "ours", "y": [row["regions"] for row in rows if row["mechanism"] == mechanism]}
        for mechanism in nearpm.PAPER_MECHANISMS
    ]
    title = "Regions by the interval between commands"
    return [plot(title, intervals, series, x_label="ns between uncached stores", y_label="x, simulated")]


EXPERIMENT = Experiment(
    name="nearpm_stores",
    title="Regions of crash consistency, by the interval between commands that leave a CPU",
    source=f"{nearpm.TITLE}, figure 15",
    text=(
        "A command is an uncached store of 64 bytes. The CPU continues after it, and the next one leaves its store "
        "buffer after an interval. Measurements of others spread from 50 to 300 ns between the packets of such stores; "
        "the host profiles have 60, with the source. 20 is what they had for doorbells.",
        "Insertions of random keys with values of 64 bytes into a B-tree, by the CPU and offloaded.",
        "The CPU's library uses no uncached stores, so its time is the same at each interval.",
        nearpm.RUNS_TEXT,
        nearpm.DESIGN_TEXT,
        "A region is " + nearpm.REGION_CLOCKS + ".",
    ),
    quick={"runs": nearpm.QUICK_RUNS, "inserts": 200, "intervals": [20, 60]},
    full={"runs": nearpm.RUNS, "inserts": 2000, "intervals": [20, 60, 150, 300]},
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast",),
    design="nearpm-paper",
)  # fmt: skip
