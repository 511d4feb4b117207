# SPDX-License-Identifier: Apache-2.0
"""NearPM, figure 19: transactions by the number of units."""

from __future__ import annotations

from typing import Any

from nearside.experiments import nearpm
from nearside.experiments.registry import Experiment, Row, Run, figure


def cases(run: Run) -> list[int]:
    return run.parameters["units"]


def measure(run: Run, units: int) -> Row:
    # The rate of a unit stays that of the design.
    of = nearpm.design(run, more=nearpm.units(units, 213))
    row: Row = {"units": units}
    for mechanism in nearpm.PAPER_MECHANISMS:
        inserts = nearpm.inserts(run, mechanism)
        cpu, engine = (
            nearpm.transactions(run, of, mechanism, offloaded, fence, inserts)
            for offloaded, fence in ((False, "read_back"), (True, "read_back"))
        )
        row[mechanism] = cpu["ns"] / engine["ns"]
    return row


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    return [
        figure(f"{mechanism}.{row['units']}", f"{mechanism}, {row['units']} units: speed-up", row[mechanism], "x")
        for row in rows
        for mechanism in nearpm.PAPER_MECHANISMS
    ]


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    return nearpm.speed_ups_by(rows, "units", "Figure 19: speed-up by units")


EXPERIMENT = Experiment(
    name="nearpm_fig19",
    title="Speed-up by the number of units",
    source=f"{nearpm.TITLE}, figure 19",
    text=(
        "Insertions into a B-tree by one thread as in figure 15, durable, without other computation, with 1 to 16 "
        "units of 4 GB/s, over those by the CPU. The paper has no figures in its text, and programs with computation.",
        nearpm.RUNS_TEXT,
        nearpm.DESIGN_TEXT,
        "Records of a transaction are made in parallel, and so are copies; those of the next one wait for its commit. "
        "So a thread has work for as many units as a transaction has pages, four or five here.",
    ),
    quick={"runs": nearpm.QUICK_RUNS, "inserts": 200, "units": [1, 4]},
    full={"runs": nearpm.RUNS, "inserts": 2000, "units": [1, 2, 4, 8, 16]},
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast",),
    design="nearpm-paper",
)  # fmt: skip
