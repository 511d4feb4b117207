# SPDX-License-Identifier: Apache-2.0
"""NearPM, figure 20: transactions of several threads."""

from __future__ import annotations

from typing import Any

from nearside.experiments import nearpm
from nearside.experiments.registry import Experiment, Row, Run, figure


def cases(run: Run) -> list[int]:
    return run.parameters["threads"]


def measure(run: Run, threads: int) -> Row:
    return {"threads": threads} | nearpm.rates(run, nearpm.design(run), threads, with_ordered=True)


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for row in rows:
        for mechanism in nearpm.PAPER_MECHANISMS:
            what, name = f"{mechanism}, {row['threads']} threads", f"{mechanism}.{row['threads']}"
            out.append(figure(f"{name}.speed_up", f"{what}: speed-up", row[mechanism], "x"))
            if f"{mechanism}_ordered" in row:
                text = f"{what}: speed-up over CPUs that order only"
                out.append(figure(f"{name}.ordered", text, row[f"{mechanism}_ordered"], "x"))
            rate = f"{what}: transactions a microsecond"
            out.append(figure(f"{name}.rate", f"{rate}, offloaded", row[f"{mechanism}_per_us"], "1/us"))
            out.append(figure(f"{name}.cpu", f"{rate}, by the CPU", row[f"{mechanism}_cpu_per_us"], "1/us"))
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    return nearpm.speed_ups_by(rows, "threads", "Figure 20: speed-up by threads")


EXPERIMENT = Experiment(
    name="nearpm_fig20",
    title="Speed-up by the number of threads",
    source=f"{nearpm.TITLE}, figure 20",
    text=(
        "Insertions into B-trees as in figure 15, durable, without other computation, over as many threads by the CPUs "
        "alone. 1 to 16 threads each have a private CPU, pool and tree, as in the paper's memcached.",
        nearpm.RUNS_TEXT,
        nearpm.DESIGN_TEXT,
        nearpm.ORDERED_TEXT,
        "The paper's gain falls with threads, as there are four units; it has no figures in its text. Its programs are "
        "memcached and Redis. Rates are those from the common begin of all threads to the end of the last one.",
    ),
    quick={"runs": nearpm.QUICK_RUNS, "inserts": 100, "threads": [1, 4]},
    full={"runs": nearpm.RUNS, "inserts": 800, "threads": [1, 2, 4, 8, 16]},
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast",),
    design="nearpm-paper",
)  # fmt: skip
