# SPDX-License-Identifier: Apache-2.0
"""NearPM, figure 15: the time of crash-consistency regions, by mechanism."""

from __future__ import annotations

from typing import Any

from nearside.experiments import nearpm
from nearside.experiments.registry import Experiment, Row, Run, figure, from_paper

# Executor of a transaction, and what its fences wait for.
WHO = {
    "cpu": (False, "read_back"),
    "engine": (True, "read_back"),
    "cpu_posted": (False, "posted"),
    "engine_posted": (True, "posted"),
    "cpu_ordered": (False, "ordered"),
}
# Ratios whose sides give the same guarantee: numerator and denominator.
RATIOS = {
    "durable": ("cpu", "engine"),
    "ordered": ("cpu_ordered", "engine"),
    "relaxed": ("cpu_posted", "engine_posted"),
}
# CXL completes each write, so its fences wait for no load on either side.
CXL = {"cpu": (False, "completion"), "engine": (True, "completion")}
TEXTS = {
    "durable": "durable, by a CPU that reads back at each fence",
    "ordered": "durable, by a CPU whose fences between stores are an sfence, as the device keeps their order",
    "relaxed": "relaxed on both sides",
}
PARTS = ("fences_ns", "copies_ns", "flushes_ns", "commands_ns")


def measure(run: Run, case: tuple[str, str]) -> Row:
    design, mechanism = case
    of = nearpm.design(run, design)
    ways = CXL if design == nearpm.CXL else WHO
    inserts = nearpm.inserts(run, mechanism)
    elapsed = {
        who: nearpm.transactions(run, of, mechanism, offloaded, fence, inserts)
        for who, (offloaded, fence) in ways.items()
        if fence != "ordered" or nearpm.ordered(of)
    }
    row: Row = {"design": design, "mechanism": mechanism, **elapsed}
    for name, (cpu, engine) in RATIOS.items():
        if cpu in elapsed:
            row[name] = elapsed[cpu]["consistency_ns"] / elapsed[engine]["consistency_ns"]
            row[f"{name}_whole"] = elapsed[cpu]["ns"] / elapsed[engine]["ns"]
    if mechanism in nearpm.PAPER_MECHANISMS:
        row["creation"] = elapsed["cpu"]["creation_ns"] / elapsed["engine"]["creation_ns"]
    return row


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for row in rows:
        mechanism, paper = row["mechanism"], nearpm.PAPER_REGIONS.get(row["mechanism"])
        what, name = f"{mechanism}, {row['design']}", f"{row['design']}.{mechanism}"
        stated = from_paper(paper, "section 8.2.3, figure 15, mean of nine programs")
        for kind in (kind for kind in RATIOS if kind in row):
            text = f"{what}: speed-up of regions, {TEXTS[kind]}"
            out.append(figure(f"{name}.{kind}", text, row[kind], "x", **stated))
            text = f"{what}: the same of whole transactions, {TEXTS[kind]}"
            out.append(figure(f"{name}.{kind}.whole", text, row[f"{kind}_whole"], "x"))
        if "creation" in row:
            text = f"{what}: speed-up of the creation of log entries or copies alone, as the paper's artifact times it"
            out.append(figure(f"{name}.creation", text, row["creation"], "x", **stated))
        for who in ("cpu", "engine"):
            ran = row[who]
            out.append(figure(f"{name}.{who}", f"{what}: region, {who}", ran["consistency_ns"], "ns", better="lower"))
            for part in PARTS:
                text = f"{what}: of that {part.removesuffix('_ns')}, {who}"
                out.append(figure(f"{name}.{who}.{part}", text, ran[part], "ns", better="lower"))
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    title = "Figure 15: regions of crash consistency, speed-up"
    return nearpm.speed_ups_by_mechanism(rows, title, nearpm.PAPER_REGIONS)


EXPERIMENT = Experiment(
    name="nearpm_fig15",
    title="Regions of crash consistency, speed-up over the CPU",
    source=f"{nearpm.TITLE}, figure 15",
    text=(
        "Insertions of random keys with values of 64 bytes into a B-tree, each a transaction: the time of "
        "crash-consistency regions, by the CPU and offloaded. The paper's are means over nine programs, ours is one.",
        nearpm.RUNS_TEXT,
        nearpm.DESIGN_TEXT,
        nearpm.FENCE_TEXT,
        nearpm.ORDERED_TEXT,
        nearpm.CREATION_TEXT,
        nearpm.CXL_TEXT,
        "The CPU copies with non-temporal stores and flushes all changes of a transaction at once, as PMDK does.",
        "A region is " + nearpm.REGION_CLOCKS + ". Whole transactions are shown beside it.",
        "With durable transactions each region contains one load of 436 ns on either side, so no region is shorter. "
        "Of the paper's, " + nearpm.REGION_DIFFERS + ".",
    ),
    quick={"runs": nearpm.QUICK_RUNS, "inserts": 200, "designs": ["nearpm-paper"]},
    full={"runs": nearpm.RUNS, "inserts": 2000, "designs": ["nearpm-paper", "nearpm", nearpm.CXL]},
    cases=nearpm.designs_and_mechanisms,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast", "rtl"),
    design="nearpm-paper",
)  # fmt: skip
