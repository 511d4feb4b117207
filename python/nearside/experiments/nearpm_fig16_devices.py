# SPDX-License-Identifier: Apache-2.0
"""NearPM, figure 16: whole programs in four configurations, and over 1, 2 and 4 devices."""

from __future__ import annotations

from typing import Any

from nearside.experiments import nearpm
from nearside.experiments.nearpm_fig16 import work_ns
from nearside.experiments.registry import Experiment, Row, Run, figure, from_paper, plot

# Columns: devices and who synchronises them. The CPU has its pool on as many devices, or on fewer
# if that is faster.
CONFIGURATIONS = {
    "one": (1, "devices"), "two_software": (2, "host"), "two": (2, "devices"),
    "four_software": (4, "host"), "four": (4, "devices"),
}  # fmt: skip
NAMES = {
    "one": "one device", "two_software": "two, software", "two": "two", "four_software": "four, software",
    "four": "four",
}  # fmt: skip
PAPER = {"one": nearpm.PAPER_ALONE, "two_software": nearpm.PAPER_TWO_SOFTWARE, "two": nearpm.PAPER_TWO}


def cases(run: Run) -> list[str]:
    return list(nearpm.PAPER_MECHANISMS)


def measure(run: Run, mechanism: str) -> Row:
    of = nearpm.design(run)
    inserts = nearpm.inserts(run, mechanism)
    work = work_ns(run, of, mechanism, inserts)
    by_cpu = {
        count: nearpm.transactions(run, of, mechanism, False, "read_back", inserts, work, devices=count)
        for count in nearpm.counts(4)
    }
    row: Row = {"mechanism": mechanism, "work_ns": work}
    for name, (devices, who) in CONFIGURATIONS.items():
        cpu = nearpm.fastest([by_cpu[count] for count in nearpm.counts(devices)])
        ran = nearpm.transactions(
            run, of, mechanism, True, "read_back", inserts, work, devices=devices, synchronise=who
        )  # fmt: skip
        row |= {
            name: cpu["ns"] / ran["ns"], f"{name}_ns": ran["ns"], f"{name}_cpu_ns": cpu["ns"],
            f"{name}_regions": cpu["consistency_ns"] / ran["consistency_ns"],
        }  # fmt: skip
    return row


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for row in rows:
        for name, title in NAMES.items():
            mechanism = row["mechanism"]
            paper = PAPER.get(name, {}).get(mechanism)
            stated = from_paper(paper, "section 8.2.4, figure 16")
            program = f"{mechanism}, {title}: speed-up of the program"
            regions = f"{mechanism}, {title}: the same of crash consistency alone"
            out.append(figure(f"{mechanism}.{name}", program, row[name], "x", **stated))
            out.append(figure(f"{mechanism}.{name}.regions", regions, row[f"{name}_regions"], "x"))
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    names = [row["mechanism"] for row in rows]
    series = [{"name": title, "of": "ours", "y": [row[name] for row in rows]} for name, title in NAMES.items()]
    series += [
        {"name": f"NearPM, {NAMES[name]}", "of": "paper", "y": [paper.get(mechanism) for mechanism in names]}
        for name, paper in PAPER.items()
    ]
    title = "Figure 16: whole programs over several devices, speed-up"
    return [plot(title, names, series, x_label="mechanism", y_label="x, simulated", kind="bars")]


EXPERIMENT = Experiment(
    name="nearpm_fig16_devices",
    title="Whole programs over 1, 2 and 4 devices, speed-up over the CPU",
    source=f"{nearpm.TITLE}, figure 16",
    text=(
        "Insertions into a B-tree with computation, as in nearpm_fig16, durable: by the engines of one, two and four "
        "devices, with pools striped over them in units of 4 KiB. The CPU has its pool on as many devices, or on "
        "fewer where that is faster. The paper does not state the number of its CPU's devices.",
        "Two and four: devices notify each other of commits, and the host waits for a load of each. Software: it "
        "waits for the ends of all commits, and notifies each device. Shadow paging is the same with either: its "
        "pages change places by one command on one device, before which the host waits for a load of the others.",
        nearpm.RUNS_TEXT,
        nearpm.DESIGN_TEXT,
        "The CPU waits for one read-back, whatever the number of devices. Each further device costs commands: one "
        "more commit, and one more record where a range spans two. It gains where the copies of units take "
        "longer than the rest.",
    ),
    quick={"runs": nearpm.QUICK_RUNS, "inserts": 200},
    full={"runs": nearpm.RUNS, "inserts": 2000},
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast", "rtl"),
    design="nearpm-paper",
)  # fmt: skip
