# SPDX-License-Identifier: Apache-2.0
"""NearPM, figures 15 and 16: each of the nine programs of table 4 in four configurations."""

from __future__ import annotations

import statistics
from functools import cache
from typing import Any

from nearside.experiments import nearpm
from nearside.experiments.nearpm_fig18 import SMALL_TEXT, WORKLOADS, cases, performed, work_ns
from nearside.experiments.registry import Experiment, Row, Run, figure, from_paper, plot
from nearside.types import BenchmarkResult

# What the fences of the CPU and of the engines wait for, devices, and who synchronises them. Both
# sides give the same guarantee; the CPU has its pool on as many devices, or on one if that is
# faster.
CONFIGURATIONS = {
    "one": ("read_back", "read_back", 1, "devices"), "ordered": ("ordered", "read_back", 1, "devices"),
    "relaxed": ("posted", "posted", 1, "devices"), "two_software": ("read_back", "read_back", 2, "host"),
    "two": ("read_back", "read_back", 2, "devices"),
}  # fmt: skip
NAMES = {
    "one": "one device", "ordered": "one, over a CPU that only orders between", "relaxed": "one, both relaxed",
    "two_software": "two, software", "two": "two",
}  # fmt: skip
# Section 8.2.1 and figure 15, sections 8.2.3 and 8.2.4 and figure 16: means over the paper's nine.
PAPER_REGIONS = {"one": nearpm.PAPER_REGIONS}
PAPER_PROGRAMS = {"one": nearpm.PAPER_ALONE, "two_software": nearpm.PAPER_TWO_SOFTWARE, "two": nearpm.PAPER_TWO}


def measure(run: Run, case: tuple[str, str]) -> Row:
    mechanism, name = case
    of = nearpm.design(run)

    @cache
    def work(fence: str) -> float:
        return work_ns(mechanism, performed(run, of, case, False, fence))

    @cache
    def by_cpu(fence: str, devices: int) -> BenchmarkResult:
        return performed(run, of, case, False, fence, work(fence), devices=devices)

    cpu = by_cpu("read_back", 1)
    f = cpu["consistency_ns"] / cpu["ns"]
    row: Row = {
        "mechanism": mechanism, "workload": name, "work_ns": work("read_back"), "f": f, "bound": 1 / (1 - f),
        "cpu_ns": cpu["ns"],
    }  # fmt: skip
    for configuration, (fence, own, devices, who) in CONFIGURATIONS.items():
        if fence == "ordered" and not nearpm.ordered(of):
            continue
        cpu = nearpm.fastest([by_cpu(fence, count) for count in nearpm.counts(devices)])
        ran = performed(run, of, case, True, own, work(fence), devices=devices, synchronise=who)
        row[configuration] = cpu["ns"] / ran["ns"]
        row[f"{configuration}_regions"] = cpu["consistency_ns"] / ran["consistency_ns"]
        if configuration == "one":
            row["creation"] = cpu["creation_ns"] / ran["creation_ns"]
    return row


def mean(rows: list[Row], mechanism: str, column: str) -> float:
    """The mean over the programs, as in the paper."""
    return statistics.fmean(row[column] for row in rows if row["mechanism"] == mechanism)


def measured(rows: list[Row]) -> dict[str, str]:
    """The configurations that were measured: with several channels a device does not keep the order of stores."""
    return {name: title for name, title in NAMES.items() if all(name in row for row in rows)}


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for mechanism in dict.fromkeys(row["mechanism"] for row in rows):
        for name, title in measured(rows).items():
            for column, what, papers, source in (
                (f"{name}_regions", "crash consistency", PAPER_REGIONS, "figure 15"),
                (name, "the program", PAPER_PROGRAMS, "figure 16"),
            ):
                paper = papers.get(name, {}).get(mechanism)
                stated = from_paper(paper, f"section 8.2, {source}, mean of nine programs")
                text = f"{mechanism}, {title}, mean: speed-up of {what}"
                out.append(figure(f"{mechanism}.{column}", text, mean(rows, mechanism, column), "x", **stated))
        text = f"{mechanism}, one device, mean: speed-up of the creation of log entries or copies alone"
        paper, source = nearpm.PAPER_REGIONS[mechanism], "section 8.2.3, figure 15, as its artifact times it"
        out.append(
            figure(f"{mechanism}.creation", text, mean(rows, mechanism, "creation"), "x", **from_paper(paper, source))
        )
        bound = mean(rows, mechanism, "bound")
        out.append(figure(f"{mechanism}.bound", f"{mechanism}, mean: 1 / (1 - f), what a program can gain", bound, "x"))
    for row in rows:
        name = f"{row['mechanism']}.{row['workload']}"
        for column, what in (("one_regions", "crash consistency"), ("one", "the program")):
            text = f"{row['mechanism']}, {row['workload']}, one device: speed-up of {what}"
            out.append(figure(f"{name}.{column}", text, row[column], "x"))
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    out, there = [], measured(rows)
    for title, columns, papers in (
        ("Figure 15: crash consistency of nine programs", {n: f"{n}_regions" for n in there}, PAPER_REGIONS),
        ("Figure 16: nine programs", {n: n for n in there}, PAPER_PROGRAMS),
    ):
        for mechanism in dict.fromkeys(row["mechanism"] for row in rows):
            own = [row for row in rows if row["mechanism"] == mechanism]
            names = [row["workload"] for row in own]
            series = [
                {"name": NAMES[n], "of": "ours", "y": [*(row[c] for row in own), mean(rows, mechanism, c)]}
                for n, c in columns.items()
            ]
            none = [None] * len(names)
            series += [
                {"name": f"NearPM, {NAMES[n]}", "of": "paper", "y": [*none, paper.get(mechanism)]}
                for n, paper in papers.items()
            ]
            text = f"{title}, {mechanism}"
            out.append(
                plot(text, [*names, "mean"], series, kind="bars", x_label="workload", y_label="x, simulated")
            )  # fmt: skip
    return out


EXPERIMENT = Experiment(
    name="nearpm_programs",
    title="The nine programs in four configurations, speed-up over the CPU",
    source=f"{nearpm.TITLE}, figure 15, figure 16 and table 4",
    text=(
        "Transactions of nine programs by one thread: by the CPU, by one device, by two that the host synchronises, "
        "and by two that synchronise themselves. Crash consistency alone, and the program with its computation.",
        "As in figure 16 the program computes before each transaction. The length makes f, the share of crash "
        "consistency by the CPU, that of the paper. The result of each is compared with the same in the host's memory.",
        nearpm.RUNS_TEXT,
        nearpm.DESIGN_TEXT,
        nearpm.FENCE_TEXT,
        nearpm.ORDERED_TEXT,
        nearpm.CREATION_TEXT,
        "Crash consistency is " + nearpm.REGION_CLOCKS + ". Of the paper's, " + nearpm.REGION_DIFFERS + ".",
        SMALL_TEXT,
    ),
    quick={"runs": nearpm.QUICK_RUNS, "transactions": 50, "workloads": WORKLOADS},
    full={"runs": nearpm.RUNS, "transactions": 300, "workloads": WORKLOADS},
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast",),
    design="nearpm-paper",
)  # fmt: skip
