# SPDX-License-Identifier: Apache-2.0
"""NearPM without commands before stores: tracked pools, beside pools whose records are commands."""

from __future__ import annotations

import statistics
from typing import Any

from nearside.experiments import nearpm
from nearside.experiments.nearpm_fig18 import SMALL_TEXT, WORKLOADS, performed, work_ns
from nearside.experiments.registry import Experiment, Row, Run, figure, from_paper, plot

# Who makes the records of a pool by an engine.
WAYS = {"commands": False, "tracked": True}
NAMES = {"commands": "records by commands", "tracked": "tracked pool"}


def cases(run: Run) -> list[tuple[str, str | int]]:
    """Mechanisms, each with the programs in one thread, and with insertions by several threads."""
    shapes = [*run.parameters["workloads"], *run.parameters["threads"]]
    return [(mechanism, shape) for mechanism in nearpm.PAPER_MECHANISMS for shape in shapes]


def measure(run: Run, case: tuple[str, str | int]) -> Row:
    mechanism, shape = case
    if isinstance(shape, int):
        return by_threads(run, mechanism, shape)
    of = nearpm.design(run)
    program = (mechanism, shape)
    plain = performed(run, of, program, False)
    work = work_ns(mechanism, plain)
    cpu = performed(run, of, program, False, work_ns=work)
    f = cpu["consistency_ns"] / cpu["ns"]
    row: Row = {
        "mechanism": mechanism, "workload": shape, "threads": 1, "work_ns": work, "f": f, "bound": 1 / (1 - f),
        "cpu_ns": cpu["ns"], "cpu_region_ns": cpu["consistency_ns"],
    }  # fmt: skip
    for way, tracked in WAYS.items():
        ran = performed(run, of, program, True, work_ns=work, tracked=tracked)
        row |= {
            way: cpu["ns"] / ran["ns"], f"{way}_regions": cpu["consistency_ns"] / ran["consistency_ns"],
            f"{way}_region_ns": ran["consistency_ns"], f"{way}_records": ran["records"], f"{way}_sent": ran["commands"],
        }  # fmt: skip
    return row


def by_threads(run: Run, mechanism: str, threads: int) -> Row:
    """Insertions by threads with a pool each: the rate over that of as many CPUs."""
    of = nearpm.design(run)
    inserts = nearpm.inserts(run, mechanism)

    def rate(offloaded: bool, tracked: bool) -> float:
        way = (mechanism, offloaded, "read_back", inserts)
        return nearpm.transactions(run, of, *way, threads=threads, tracked=tracked)["per_us"]

    row: Row = {"mechanism": mechanism, "workload": "inserts", "threads": threads, "cpu_per_us": rate(False, False)}
    for way, tracked in WAYS.items():
        row[f"{way}_per_us"] = rate(True, tracked)
        row[way] = row[f"{way}_per_us"] / row["cpu_per_us"]
    return row


def programs(rows: list[Row], mechanism: str) -> list[Row]:
    return [row for row in rows if row["mechanism"] == mechanism and "f" in row]


def mean(rows: list[Row], mechanism: str, column: str) -> float:
    """The mean over the programs, as in the paper."""
    return statistics.fmean(row[column] for row in programs(rows, mechanism))


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for mechanism in (name for name in nearpm.PAPER_MECHANISMS if programs(rows, name)):
        for way, title in NAMES.items():
            for column, what, papers, place in (
                (f"{way}_regions", "crash consistency", nearpm.PAPER_REGIONS, "figure 15"),
                (way, "the program", nearpm.PAPER_ALONE, "figure 16"),
            ):
                stated = from_paper(papers[mechanism], f"section 8.2, {place}, mean of nine programs")
                text = f"{mechanism}, {title}, mean: speed-up of {what}"
                out.append(figure(f"{mechanism}.{column}", text, mean(rows, mechanism, column), "x", **stated))
        bound = mean(rows, mechanism, "bound")
        out.append(figure(f"{mechanism}.bound", f"{mechanism}, mean: 1 / (1 - f), what a program can gain", bound, "x"))
    for row in rows:
        shape = row["workload"] if "f" in row else f"{row['threads']} threads"
        name = f"{row['mechanism']}.{shape.replace(' ', '_')}"
        for way, title in NAMES.items():
            if "f" in row:
                text = f"{row['mechanism']}, {shape}, {title}: speed-up of crash consistency"
                out.append(figure(f"{name}.{way}_regions", text, row[f"{way}_regions"], "x"))
            what = "the program" if "f" in row else "insertions, over as many CPUs"
            text = f"{row['mechanism']}, {shape}, {title}: speed-up of {what}"
            out.append(figure(f"{name}.{way}", text, row[way], "x"))
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for title, suffix, papers in (
        ("Crash consistency of nine programs", "_regions", nearpm.PAPER_REGIONS),
        ("Nine programs", "", nearpm.PAPER_ALONE),
    ):
        for mechanism in (name for name in nearpm.PAPER_MECHANISMS if programs(rows, name)):
            own = programs(rows, mechanism)
            series = [
                {
                    "name": name,
                    "of": "ours",
                    "y": [*(row[way + suffix] for row in own), mean(rows, mechanism, way + suffix)],
                }
                for way, name in NAMES.items()
            ]
            none = [None] * len(own)
            series.append({"name": "NearPM", "of": "paper", "y": [*none, papers[mechanism]]})
            names = [*(row["workload"] for row in own), "mean"]
            text = f"{title}, {mechanism}"
            out.append(plot(text, names, series, kind="bars", x_label="workload", y_label="x, simulated"))
    return out


EXPERIMENT = Experiment(
    name="nearpm_tracked",
    title="Tracked pools: records without commands, speed-up over the CPU",
    source=f"{nearpm.TITLE}, figure 15 and figure 16; tracked pools are not in the paper",
    text=(
        "Transactions of the nine programs of table 4 by one thread, and insertions into B-trees by threads with a "
        "pool each. An engine makes records when it gets commands for them. In a tracked pool it makes a record of "
        "each line before the first store to it, so that the commit is a transaction's only command.",
        "The CPU has the same mechanism as without tracking: undo logs, checkpoints of pages, shadow paging. A "
        "tracked pool has records of lines with each of them. So its shadow paging is an undo log underneath.",
        "As in figure 16 the program computes before each transaction. The length makes f, the share of crash "
        "consistency by the CPU, that of the paper. The result of each is compared with the same in the host's memory.",
        nearpm.RUNS_TEXT,
        nearpm.DESIGN_TEXT,
        "All are durable: a transaction's end waits for a load that follows all of its stores and commands.",
        "Crash consistency is " + nearpm.REGION_CLOCKS + ". Of the paper's, " + nearpm.REGION_DIFFERS + ".",
        SMALL_TEXT,
    ),
    quick={
        "runs": nearpm.QUICK_RUNS,
        "transactions": 50,
        "inserts": 100,
        "workloads": WORKLOADS,
        "threads": [4],
    },
    full={
        "runs": nearpm.RUNS,
        "transactions": 300,
        "inserts": 400,
        "workloads": WORKLOADS,
        "threads": [1, 4, 16],
    },
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast",),
    design="nearpm-paper",
)  # fmt: skip
