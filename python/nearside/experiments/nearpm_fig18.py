# SPDX-License-Identifier: Apache-2.0
"""NearPM, figure 18: the share of time in which CPU and units work in parallel, by workload."""

from __future__ import annotations

import statistics
from typing import Any, Literal

from nearside import _native
from nearside.device import Design
from nearside.experiments import nearpm
from nearside.experiments.nearpm_fig16 import SHARE
from nearside.experiments.registry import Experiment, Row, Run, figure, from_paper, plot
from nearside.types import BenchmarkResult

# From table 4, with its sizes of values and records.
WORKLOADS = ["tpcc", "tatp", "btree", "rbtree", "skiplist", "hashmap", "redis", "memcached", "pmemkv"]
SMALL_TEXT = (
    "The programs are small (48 records), so that their data are in the CPU's cache, except those that an engine moves."
)
# Section 8.2.2: means over the paper's nine.
PAPER = {"undo": 20.01, "checkpoint": 17.25, "shadow": 24.68}
KINDS = {
    "durable": "with computation beside", "relaxed": "the same, relaxed", "alone": "without computation beside",
    "units": "of the first, units work at all", "waits": "of the first, the CPU waits in fences",
}  # fmt: skip


def cases(run: Run) -> list[tuple[str, str]]:
    return [(mechanism, name) for mechanism in nearpm.PAPER_MECHANISMS for name in run.parameters["workloads"]]


def performed(
    run: Run,
    of: Design,
    case: tuple[str, str],
    offloaded: bool,
    fence: str = "read_back",
    work_ns: float = 0.0,
    **devices: Any,
) -> BenchmarkResult:
    """Transactions of a program. `devices`: their number, and who synchronises them."""
    mechanism, name = case
    count = run.parameters["transactions"]
    shape = (name, mechanism, offloaded, fence, count, work_ns, run.seed)
    return _native.pm_benchmark(of.native, *shape, run.build, **devices)


def work_ns(mechanism: str, plain: BenchmarkResult) -> float:
    """The computation of a program for the paper's f, as in figure 16, from the CPU's time without it."""
    return max(0.0, plain["consistency_ns"] / SHARE[mechanism] - plain["ns"])


def measure(run: Run, case: tuple[str, str]) -> Row:
    mechanism, name = case
    of = nearpm.design(run)
    plain = performed(run, of, case, False)
    region = plain["consistency_ns"]
    work = work_ns(mechanism, plain)
    durable = performed(run, of, case, True, work_ns=work)
    relaxed = performed(run, of, case, True, "posted", work)
    alone = performed(run, of, case, True)
    return {
        "mechanism": mechanism, "workload": name, "work_ns": work, "f": region / (plain["ns"] + work),
        "durable": _percent(durable, "both_ns"), "relaxed": _percent(relaxed, "both_ns"),
        "alone": _percent(alone, "both_ns"), "units": _percent(durable, "units_ns"),
        "waits": _percent(durable, "fences_ns"), "ns": durable["ns"], "commands": durable["commands"],
    }  # fmt: skip


def _percent(performed: BenchmarkResult, part: Literal["both_ns", "units_ns", "fences_ns"]) -> float:
    return 100 * performed[part] / performed["ns"]


def means(rows: list[Row], kind: str) -> dict[str, float]:
    """The mean over the workloads of each mechanism."""
    own = {mechanism: [row[kind] for row in rows if row["mechanism"] == mechanism] for mechanism in PAPER}
    return {mechanism: statistics.fmean(values) for mechanism, values in own.items() if values}


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for kind, text in KINDS.items():
        for mechanism, mean in means(rows, kind).items():
            paper = PAPER[mechanism] if kind == "durable" else None
            stated = from_paper(paper, "section 8.2.2, figure 18, mean of nine programs")
            what = f"{mechanism}, mean: CPU and units work at once, {text}"
            if kind in ("units", "waits"):
                what = f"{mechanism}, mean: {text}"
            better = "lower" if kind == "waits" else "higher"
            out.append(figure(f"{mechanism}.{kind}", what, mean, "%", better=better, **stated))
    for row in rows:
        name = f"{row['mechanism']}.durable.{row['workload']}"
        what = f"{row['mechanism']}, {row['workload']}: CPU and units work at once, with computation beside"
        out.append(figure(name, what, row["durable"], "%"))
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    names = list(dict.fromkeys(row["workload"] for row in rows))
    mean = means(rows, "durable")
    of = {(row["mechanism"], row["workload"]): row["durable"] for row in rows}
    series = [
        {"name": mechanism, "of": "ours", "y": [*(of.get((mechanism, name)) for name in names), mean.get(mechanism)]}
        for mechanism in PAPER
    ]
    none = [None] * len(names)
    series += [{"name": f"NearPM, {mechanism}", "of": "paper", "y": [*none, PAPER[mechanism]]} for mechanism in PAPER]
    title = "Figure 18: CPU and units work at once"
    return [plot(title, [*names, "mean"], series, x_label="workload", y_label="% of the time, simulated", kind="bars")]


EXPERIMENT = Experiment(
    name="nearpm_fig18",
    title="The part of the time in which CPU and units work at once",
    source=f"{nearpm.TITLE}, figure 18",
    text=(
        "Transactions of nine programs by one thread, offloaded: the share of time, from the begin of the first to "
        "the end of the last one, in which at least one unit of the engine has a command and the CPU is in no fence.",
        "As in figure 16 the program computes before each transaction. The length makes f, the share of crash "
        "consistency by the CPU, that of the paper. Another series is without computation. The paper states means "
        "only.",
        nearpm.RUNS_TEXT,
        nearpm.DESIGN_TEXT,
        nearpm.FENCE_TEXT,
        "A CPU that waits for a load or a store which overlaps a command counts as working: only fences are visible, "
        "so ours is an upper bound of the work. The paper's is the part that is parallelizable, and it does not say "
        "how that was found.",
        SMALL_TEXT,
    ),
    quick={"runs": nearpm.QUICK_RUNS, "transactions": 100, "workloads": WORKLOADS},
    full={"runs": nearpm.RUNS, "transactions": 500, "workloads": WORKLOADS},
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast",),
    design="nearpm-paper",
)  # fmt: skip
