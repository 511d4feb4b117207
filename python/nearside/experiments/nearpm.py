# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the experiments of NearPM's figures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

from nearside import _native
from nearside.device import Design
from nearside.experiments.registry import Row, Run, plot
from nearside.types import CopyResult, TransactionMeans, TransactionsResult

Means = TypeVar("Means", bound=TransactionMeans)

TITLE = "Seneviratne et al., NearPM (EuroSys 2023)"
MECHANISMS = ("undo", "redo", "checkpoint", "shadow")
# The mechanisms that the paper has figures for.
PAPER_MECHANISMS = ("undo", "checkpoint", "shadow")
# Sections 8.2.1, 8.2.3 and 8.2.4: means over the paper's workloads.
PAPER_COPY = {64: 1.13, 16384: 5.57}
PAPER_REGIONS = {"undo": 6.9, "checkpoint": 4.3, "shadow": 9.8}
PAPER_ALONE = {"undo": 1.29, "checkpoint": 1.15, "shadow": 1.28}
# Figure 16: two devices, synchronised by software, and by themselves.
PAPER_TWO_SOFTWARE = {"undo": 1.21, "checkpoint": 1.14, "shadow": 1.23}
PAPER_TWO = {"undo": 1.35, "checkpoint": 1.22, "shadow": 1.33}
# Section 2.1, figure 1: the share of crash consistency in a program's time, and the share of copies
# in that.
PAPER_SHARE = {"undo": 0.377, "checkpoint": 0.486, "shadow": 0.672}
PAPER_COPIES = {"undo": 0.689, "checkpoint": 0.604, "shadow": 0.705}
DESIGN_TEXT = (
    "Design nearpm-paper: 300 MHz, four units of 4 GB/s each, one channel of DDR4-2400, PCIe Gen3 x8; a dependent "
    "load of 64 bytes takes 436 ns as in the paper's section 7, which a test checks within 1 percent."
)
# Runs of each point, as in the paper: full and quick.
RUNS, QUICK_RUNS = 10, 3
# nearpm-paper attached by CXL.
CXL = "nearpm-cxl"
CXL_TEXT = (
    "Design nearpm-cxl is nearpm-paper on CXL, Gen5 x8: a load takes 249 ns. Each write has a completion there, and a "
    "global persistent flush saves what the device has accepted. So the fences of both sides wait for completions."
)
RUNS_TEXT = (
    "Each value is the mean of several runs with a seed each, with their standard deviation. Ratios are those of "
    "each run. Runs differ in the keys, or in the position of copies relative to the memory's refreshes."
)
FENCE_TEXT = (
    "Both sides of a ratio give the same guarantee. Durable: a transaction's end waits for a load that follows all "
    "of its stores and commands, as nothing else proves persistence of posted writes. Relaxed: neither the "
    "CPU's fences nor the engine's wait for one; transactions are atomic, the last ones may be lost."
)
ORDERED_TEXT = (
    "Ordered: durable, too, but the CPU relies on a device that makes posted stores persistent in order, as one "
    "with a single channel does. Its fences between stores are an sfence, and only the last one of a transaction reads "
    "back. That is the strongest CPU baseline for such a device."
)
CREATION_TEXT = (
    "The creation of log entries, of checkpoints or of copies of pages is the part of crash consistency that the "
    "paper's artifact times. The CPU makes them, and waits until they are persistent where stores have to follow. "
    "Offloaded, it is the library's code and the commands. Commits, flushes and their waits are not in it."
)
# The events at which both clocks of a ratio start and stop.
REGION_CLOCKS = (
    "on both sides the CPU's time within library code for logs, copies, flushes, fences and commands, from a "
    "transaction's begin to its commit's return. Units continue in parallel. Misses of pages that they have moved are "
    "not included here, but in nearpm.transaction"
)
WHOLE_CLOCKS = "on both sides from a transaction's begin to its commit's return, all of the CPU's time"
REGION_DIFFERS = (
    "the paper's are means of nine programs with PMDK 1.9 on hardware. Its published artifact times little more "
    "than the creation of log entries: its CPU waits for an sfence, its offloaded commits for nothing"
)
PROGRAM_DIFFERS = (
    "the paper's are nine programs with PMDK 1.9 on hardware; ours compute so that crash consistency has the share of "
    "time that its figure 1 states"
)


def design(run: Run, name: str = "", media: str = "dram", host: str = "", more: str = "") -> Design:
    """The run's design or another one, with media and host profiles, and less memory for short runs."""
    host = host or ("cxl" if name == CXL else "nearpm")
    found = Design.load(name) if name or run.design is None else run.design
    sizes = f'[media]\nbytes = "256 MiB"\nprofile = "{media}"\n[nvme]\nnamespaces = ["1 MiB"]\n'
    return found.with_values(f'{sizes}[cpu]\nprofile = "{host}"\n{more}')


def copies(run: Run, of: Design, way: str, size: int, count: int) -> CopyResult:
    """Copies of one size in one way."""
    return _native.pm_copies(of.native, way, size, count, run.seed, run.model, run.build)


def transactions(
    run: Run,
    of: Design,
    mechanism: str,
    offloaded: bool,
    fence: str,
    inserts: int,
    work_ns: float = 0.0,
    threads: int = 1,
    **devices: Any,
) -> TransactionsResult:
    """Insertions into a B-tree, each a transaction. `devices`: their number, and who synchronises them."""
    return _native.pm_transactions(
        of.native, mechanism, offloaded, fence, inserts, work_ns, threads, run.seed, run.model, run.build, **devices
    )


def ordered(of: Design) -> bool:
    """Whether posted stores become persistent in order: with one channel there is a single path."""
    return of.values["channels"] == 1


def fastest(of_devices: Sequence[Means]) -> Means:
    """The CPU's best: of pools on one device and on as many as the engines have."""
    return min(of_devices, key=lambda ran: ran["ns"])


def counts(devices: int) -> list[int]:
    """Numbers of devices for a pool, up to this one."""
    return [count for count in (1, 2, 4) if count <= devices]


def units(count: int, lines: int | None = None) -> str:
    """An engine with `count` units, each limited to `lines` in 1024 cycles: TOML for `design`."""
    limit = "" if lines is None else f", unit_lines = {lines}"
    return f'[[engine]]\nname = "nearpm0"\nengine = "nearpm"\nparameters = {{ units = {count}{limit} }}\n'


def rates(run: Run, of: Design, threads: int, devices: int = 1, with_ordered: bool = False) -> Row:
    """Durable insertions by several threads: transactions a microsecond by CPUs and offloaded, and
    the gain.

    The CPUs read back at each fence. `with_ordered` adds a device that keeps the order of stores,
    with one read-back.

    The CPUs' rates are measured once for all numbers of units in a run, since they don't depend on
    engines.
    """
    row: Row = {}
    for mechanism in PAPER_MECHANISMS:

        def rate(offloaded: bool, fence: str, mechanism: str = mechanism) -> float:
            way = (mechanism, offloaded, fence, inserts(run, mechanism))
            return transactions(run, of, *way, threads=threads, devices=devices)["per_us"]

        cpu = run.once((mechanism, threads, devices), partial(rate, False, "read_back"))
        engine = rate(True, "read_back")
        row[mechanism] = engine / cpu
        row[f"{mechanism}_cpu_per_us"], row[f"{mechanism}_per_us"] = cpu, engine
        if with_ordered and ordered(of):
            by_order = rate(False, "ordered")
            row[f"{mechanism}_ordered"], row[f"{mechanism}_ordered_per_us"] = engine / by_order, by_order
    return row


def inserts(run: Run, mechanism: str) -> int:
    """The number of insertions: with pages of 4 KiB each takes several times as long."""
    return run.parameters["inserts"] // (4 if mechanism in ("checkpoint", "shadow") else 1)


def designs_and_mechanisms(run: Run) -> list[tuple[str, str]]:
    """The cases of experiments with a row for each design and mechanism."""
    return [(design, mechanism) for design in run.parameters["designs"] for mechanism in MECHANISMS]


def speed_ups_by_mechanism(
    rows: list[Row], title: str, paper: dict[str, float], more: dict[str, str] | None = None
) -> list[dict[str, Any]]:
    """A plot of each design: durable and relaxed, beside the paper's. `more`: names of limits, and their columns."""
    out = []
    for design in dict.fromkeys(row["design"] for row in rows):
        own = [row for row in rows if row["design"] == design]
        names = [name for name in ("durable", "ordered", "relaxed") if all(name in row for row in own)]
        series = [{"name": name, "of": "ours", "y": [row[name] for row in own]} for name in names]
        series.append({"name": "NearPM", "of": "paper", "y": [paper.get(row["mechanism"]) for row in own]})
        for name, column in (more or {}).items():
            series.append({"name": name, "of": "limit", "y": [row[column] for row in own]})
        names = [row["mechanism"] for row in own]
        out.append(plot(f"{title}, {design}", names, series, x_label="mechanism", y_label="x, simulated", kind="bars"))
    return out


def speed_ups_by(rows: list[Row], column: str, title: str) -> list[dict[str, Any]]:
    """A plot of each mechanism's speed-up (the column of that name) over another column."""
    series = [{"name": name, "of": "ours", "y": [row[name] for row in rows]} for name in PAPER_MECHANISMS]
    return [plot(title, [row[column] for row in rows], series, x_label=column, y_label="x, simulated")]
