# SPDX-License-Identifier: Apache-2.0
"""Transactions that become durable later, on both sides: the nine programs with groups of 1, 4 and 16."""

from __future__ import annotations

import statistics
from functools import cache
from typing import Any

from nearside.experiments import nearpm
from nearside.experiments.nearpm_fig18 import SMALL_TEXT, WORKLOADS, cases, performed, work_ns
from nearside.experiments.registry import Experiment, Row, Run, figure, plot
from nearside.types import BenchmarkResult

GROUPS = (1, 4, 16)
# What is wanted of the largest group, over a CPU whose transactions are durable on return.
WANTED_REGIONS = {"undo": 10.0, "checkpoint": 20.0, "shadow": 11.0}
WANTED_PROGRAMS = {"undo": 1.5, "checkpoint": 1.85, "shadow": 2.4}
# The CPU that the engine is compared with.
BASELINES = {
    "durable": "a CPU, each transaction durable",
    "same": "a CPU with the same group",
    "ordered": "the same on a device that keeps stores in order",
}
PARTS = {"regions": ("consistency_ns", "crash consistency"), "program": ("ns", "the program")}


def measure(run: Run, case: tuple[str, str]) -> Row:
    mechanism, name = case
    of = nearpm.design(run)
    work = work_ns(mechanism, performed(run, of, case, False))

    @cache
    def ran(offloaded: bool, fence: str, group: int | None) -> BenchmarkResult:
        return performed(run, of, case, offloaded, fence, work, group=group)

    row: Row = {
        "mechanism": mechanism,
        "workload": name,
        "work_ns": work,
        "cpu_ns": ran(False, "read_back", None)["ns"],
    }
    for group in GROUPS:
        own = ran(True, "read_back", group)
        others = {"durable": ran(False, "read_back", None), "same": ran(False, "read_back", group)}
        if nearpm.ordered(of):
            others["ordered"] = ran(False, "ordered", group)
        for baseline, cpu in others.items():
            row[f"regions_{baseline}_{group}"] = cpu["consistency_ns"] / own["consistency_ns"]
            row[f"program_{baseline}_{group}"] = cpu["ns"] / own["ns"]
        for side, result in (("device", own), ("cpu", others["same"])):
            row[f"{side}_per_us_{group}"] = 1000 / result["ns"]
            row[f"{side}_acknowledged_ns_{group}"] = result["acknowledged_ns"]
            row[f"{side}_acknowledged_p99_ns_{group}"] = result["acknowledged_p99_ns"]
    return row


def mean(rows: list[Row], mechanism: str, column: str) -> float:
    return statistics.fmean(row[column] for row in rows if row["mechanism"] == mechanism)


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for mechanism in dict.fromkeys(row["mechanism"] for row in rows):
        wanted = {"regions": WANTED_REGIONS.get(mechanism), "program": WANTED_PROGRAMS.get(mechanism)}
        for group in GROUPS:
            for baseline, over in BASELINES.items():
                for part, (_, what) in PARTS.items():
                    column = f"{part}_{baseline}_{group}"
                    if column not in rows[0]:
                        continue
                    limit = wanted[part] if baseline == "durable" and group == max(GROUPS) else None
                    text = f"{mechanism}, groups of {group}, mean of the programs: speed-up of {what} over {over}"
                    out.append(
                        figure(f"{mechanism}.{column}", text, mean(rows, mechanism, column), "x",
                               limit=limit, limit_text="wanted: at least" if limit else None)
                    )  # fmt: skip
            for side, who in (("device", "by the engine"), ("cpu", "by the CPU")):
                what = f"{mechanism} {who}, groups of {group}"
                name = f"{mechanism}.{side}"
                rate = mean(rows, mechanism, f"{side}_per_us_{group}")
                out.append(figure(f"{name}_per_us_{group}", f"{what}: transactions", rate, "1/us"))
                for column, text in (("acknowledged_ns", "mean"), ("acknowledged_p99_ns", "99 %")):
                    value = mean(rows, mechanism, f"{side}_{column}_{group}")
                    text = f"{what}: latency until acknowledged, {text}"
                    out.append(figure(f"{name}_{column}_{group}", text, value, "ns", better="lower"))
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    mechanisms = list(dict.fromkeys(row["mechanism"] for row in rows))
    for part, (_, what) in PARTS.items():
        for mechanism in mechanisms:
            series = [
                {"name": over, "of": "ours", "y": [mean(rows, mechanism, f"{part}_{baseline}_{g}") for g in GROUPS]}
                for baseline, over in BASELINES.items()
                if f"{part}_{baseline}_1" in rows[0]
            ]
            title = f"{mechanism}: speed-up of {what}, mean of the programs"
            out.append(
                plot(title, GROUPS, series, x_label="transactions of a group", y_label="x, simulated", kind="bars")
            )
    for mechanism in mechanisms:
        series = [
            {
                "name": f"{who}, {text}",
                "of": "ours",
                "y": [mean(rows, mechanism, f"{side}_{column}_{g}") for g in GROUPS],
            }
            for side, who in (("device", "the engine"), ("cpu", "the CPU"))
            for column, text in (("acknowledged_ns", "mean"), ("acknowledged_p99_ns", "99 %"))
        ]
        title = f"{mechanism}: latency until acknowledged, mean of the programs"
        out.append(plot(title, GROUPS, series, x_label="transactions of a group", y_label="ns, simulated", kind="bars"))
    return out


EXPERIMENT = Experiment(
    name="nearpm_later",
    title="Transactions that become durable later, on both sides",
    source=f"{nearpm.TITLE}, programs of table 4, for which the paper has no such mode",
    text=(
        "The nine programs with transactions that become durable later, in groups of 1, 4 and 16. Both sides promise "
        "the same: after a power loss what was acknowledged is found, and a prefix of the rest. With groups of 1 each "
        "transaction is durable on return.",
        "On both sides a group is one transaction of the mechanism. A range is logged once in a group, a line is "
        "written back once, and the group has the last fences of one transaction. The engine waits for one load.",
        "Three baselines: a CPU whose transactions are durable on return, one with the same group, and that one on a "
        "device that keeps stores in order. Throughput and latency belong together: a transaction waits for its group.",
        nearpm.RUNS_TEXT,
        nearpm.DESIGN_TEXT,
        "Computation as in figure 16. Crash consistency is " + nearpm.REGION_CLOCKS + ", with the waits of groups.",
        "The latency until acknowledged is from a transaction's begin to the moment that the program knows it to be "
        "durable.",
        SMALL_TEXT,
    ),
    quick={"runs": nearpm.QUICK_RUNS, "transactions": 64, "workloads": WORKLOADS},
    full={"runs": nearpm.RUNS, "transactions": 320, "workloads": WORKLOADS},
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast",),
    design="nearpm-paper",
)  # fmt: skip
