# SPDX-License-Identifier: Apache-2.0
"""NearPM, figures 1 and 16: whole programs, their share of crash consistency, and the gain of offloading."""

from __future__ import annotations

from typing import Any

from nearside.device import Design
from nearside.experiments import nearpm
from nearside.experiments.nearpm_fig15 import TEXTS
from nearside.experiments.registry import Experiment, Row, Run, figure, from_paper

# The share of crash consistency in the paper's programs, by its mechanisms; redo logs count as
# logs.
SHARE = nearpm.PAPER_SHARE | {"redo": nearpm.PAPER_SHARE["undo"]}


# Ratios whose sides give the same guarantee: what the fences of the CPU and of the engine wait for.
RATIOS = {
    "durable": ("read_back", "read_back"),
    "ordered": ("ordered", "read_back"),
    "relaxed": ("posted", "posted"),
}


def work_ns(run: Run, of: Design, mechanism: str, inserts: int, fence: str = "read_back") -> float:
    """The computation beside each insertion that gives crash consistency the paper's share of this CPU's time."""
    plain = nearpm.transactions(run, of, mechanism, False, fence, inserts)
    region = plain["consistency_ns"]
    return max(0.0, region * (1 / SHARE[mechanism] - 1) - (plain["ns"] - region))


def measure(run: Run, case: tuple[str, str]) -> Row:
    design, mechanism = case
    of = nearpm.design(run, design)
    inserts = nearpm.inserts(run, mechanism)
    row: Row = {"design": design, "mechanism": mechanism}
    for name, (by_cpu, by_engine) in RATIOS.items():
        if by_cpu == "ordered" and not nearpm.ordered(of):
            continue
        work = work_ns(run, of, mechanism, inserts, by_cpu)
        cpu = nearpm.transactions(run, of, mechanism, False, by_cpu, inserts, work)
        engine = nearpm.transactions(run, of, mechanism, True, by_engine, inserts, work)
        row |= {name: cpu["ns"] / engine["ns"], f"{name}_cpu_ns": cpu["ns"], f"{name}_engine_ns": engine["ns"]}
        if name == "durable":
            share = cpu["consistency_ns"] / cpu["ns"]
            row |= {
                "work_ns": work, "share": share, "bound": 1 / (1 - share),
                "copies": cpu["copies_ns"] / cpu["consistency_ns"], "fences": cpu["fences_ns"] / cpu["consistency_ns"],
            }  # fmt: skip
    return row


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for row in rows:
        mechanism, design = row["mechanism"], row["design"]
        what, name = f"{mechanism}, {design}", f"{design}.{mechanism}"
        share, copied = nearpm.PAPER_SHARE.get(mechanism), nearpm.PAPER_COPIES.get(mechanism)
        paper = nearpm.PAPER_ALONE.get(mechanism)
        one = from_paper(share and 100 * share, "section 2.1, figure 1")
        two = from_paper(copied and 100 * copied, "section 2.1, figure 1")
        stated = from_paper(paper, "section 8.2.4, figure 16, one device")
        out += [
            figure(f"{name}.share", f"{what}: f, time of crash consistency by the CPU", 100 * row["share"], "%",
                   better="equal", **one),
            figure(f"{name}.copies", f"{what}: of that copies", 100 * row["copies"], "%", better="equal", **two),
            *(
                figure(f"{name}.{kind}", f"{what}: speed-up of the program, {TEXTS[kind]}", row[kind], "x", **stated,
                       limit=row["bound"], limit_text="1/(1-f), f measured")
                for kind in RATIOS if kind in row
            ),
        ]  # fmt: skip
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    title = "Figure 16: whole programs, speed-up"
    return nearpm.speed_ups_by_mechanism(rows, title, nearpm.PAPER_ALONE, {"1/(1-f)": "bound"})


EXPERIMENT = Experiment(
    name="nearpm_fig16",
    title="Whole programs, speed-up over the CPU",
    source=f"{nearpm.TITLE}, figure 1 and figure 16",
    text=(
        "Insertions into a B-tree as in figure 15, each with computation. Its length makes f, the share of crash "
        "consistency in the CPU's variant, that of the paper's figure 1 for its programs. f is then measured. Each "
        "CPU that the engine is compared with has a separate length.",
        nearpm.RUNS_TEXT,
        nearpm.DESIGN_TEXT,
        nearpm.FENCE_TEXT,
        nearpm.ORDERED_TEXT,
        "No offloading gains more than 1/(1-f). The difference to that is the load that a durable transaction waits "
        "for, commands, and with shadow paging reads of pages that have changed places, which miss the cache.",
    ),
    quick={"runs": nearpm.QUICK_RUNS, "inserts": 200, "designs": ["nearpm-paper"]},
    full={"runs": nearpm.RUNS, "inserts": 2000, "designs": ["nearpm-paper", "nearpm"]},
    cases=nearpm.designs_and_mechanisms,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast", "rtl"),
    design="nearpm-paper",
)  # fmt: skip
