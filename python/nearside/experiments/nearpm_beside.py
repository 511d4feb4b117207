# SPDX-License-Identifier: Apache-2.0
"""NearPM, section 5.3.1: accesses that overlap no command, beside units that are all busy."""

from __future__ import annotations

from typing import Any

from nearside import beside
from nearside.experiments import nearpm
from nearside.experiments.registry import Experiment, Row, Run, figure, plot

# The goals: bandwidth that others keep, and the largest rise of the 99th percentile.
KEPT_PERCENT, LOST_NS = 95.0, 450.0
NAMES = {
    "load": "loads, one at a time",
    "loads": "loads, 64 at a time",
    "stores": "stores at random places",
    "stores_in_sequence": "stores in sequence",
    "nvme_read": "an NVMe read of 4 KiB at a time",
    "nvme_write": "an NVMe write of 4 KiB at a time",
    "nvme_reads": "NVMe reads of 4 KiB, 64 at a time",
    "nvme_writes": "NVMe writes of 4 KiB, 64 at a time",
}
# Single accesses are judged by latency, which limits their bandwidth.
ALONE = ("load", "nvme_read", "nvme_write")
# These fill the link; their latency is that of the queue.
FULL = ("nvme_reads", "nvme_writes")


def cases(run: Run) -> list[tuple[str, int]]:
    return [(kind, credits) for credits in run.parameters["credits"] for kind in beside.TRAFFIC]


def measure(run: Run, case: tuple[str, int]) -> Row:
    kind, credits = case
    return dict(beside.measure(nearpm.design(run), kind, credits, run.seed, run.quick, run.model, run.build))


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for row in rows:
        kind, credits = row["kind"], row["credits"]
        what = NAMES[kind] + (f", {credits} + {credits} lines of credit" if credits else "")
        name = f"{kind}.{credits or 'reset'}"
        if kind not in ALONE:
            out.append(figure(f"{name}.kept", f"bandwidth kept: {what}", row["kept_percent"], "%",
                              limit=KEPT_PERCENT, limit_text="the goal: at least"))  # fmt: skip
        if row["lost_p99_ns"] is not None and kind not in FULL:
            out.append(figure(f"{name}.lost", f"later at p99: {what}", row["lost_p99_ns"], "ns", better="lower",
                              limit=LOST_NS, limit_text="the goal: at most"))  # fmt: skip
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    kinds = [kind for kind in dict.fromkeys(row["kind"] for row in rows) if kind not in ALONE]
    series = []
    for credits in dict.fromkeys(row["credits"] for row in rows):
        of = {row["kind"]: row["kept_percent"] for row in rows if row["credits"] == credits}
        name = f"{credits} + {credits} lines" if credits else "credits as after reset"
        series.append({"name": name, "of": "ours", "y": [of.get(kind) for kind in kinds]})
    series.append({"name": "goal", "of": "limit", "y": [KEPT_PERCENT] * len(kinds)})
    names = [NAMES[kind] for kind in kinds]
    title = "Bandwidth kept beside four units"
    return [plot(title, names, series, x_label="traffic", y_label="%, simulated", kind="bars")]


EXPERIMENT = Experiment(
    name="nearpm_beside",
    title="Loads, stores and NVMe beside busy units",
    source=f"{nearpm.TITLE}, section 5.3.1 and figure 10, for which the paper measures nothing",
    text=(
        "Four units copy 64 KiB each, one command after the other, while loads, stores and NVMe commands access other "
        "ranges. Shown are their share of the bandwidth that they have alone, and the rise of their 99th percentile. "
        "A run whose copies end before it is refused.",
        "Design nearpm, DRAM timing, PCIe Gen3 x8. The engine's lines of credit in each channel are those after reset "
        "(32 + 32, or 16 + 16 while the controller has accesses in flight there), or always 32 + 32, or 12 + 12.",
        "64 NVMe commands of 4 KiB at a time fill the link and wait for each other, 45 us at the 99th percentile. "
        "That changes by whole commands, 580 ns, up or down, so latency is given for single commands.",
    ),
    quick={"credits": [0]},
    full={"credits": [0, 32, 12]},
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("rtl", "fast"),
    design="nearpm",
)  # fmt: skip
