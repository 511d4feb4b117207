# SPDX-License-Identifier: Apache-2.0
"""Crash consistency near memory in the modes that the paper does not have: tracked pools, and durability later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nearside.claims.nearpm import paper, run_of
from nearside.claims.registry import Context, Measured, at_least, claim
from nearside.experiments import nearpm, nearpm_later, nearpm_tracked
from nearside.experiments.nearpm_fig18 import WORKLOADS

NINE_CLOCKS = "on both sides from the begin of the first transaction to the return of the last one's commit"


def _tracked(mechanism: str, column: str) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        def all_of_them() -> list[dict[str, Any]]:
            run = run_of(context)
            run.parameters = {"transactions": context.commands(300)}
            return [nearpm_tracked.measure(run, (mechanism, name)) for name in WORKLOADS]

        rows = context.once(("nearpm.tracked", mechanism), all_of_them)
        detail = ", ".join(f"{row['workload']} {row[column]:.2f}" for row in rows)
        return Measured(nearpm_tracked.mean(rows, mechanism, column), detail)

    return measure


TRACKED = {"undo": (4.2, 1.36), "checkpoint": (9.5, 1.71), "shadow": (5.05, 2.0)}
for _mechanism, (_regions, _program) in TRACKED.items():
    for _name, _column, _least, _what, _published, _clocks in (
        (
            "regions", "tracked_regions", _regions, "The time of crash consistency",
            paper(nearpm.PAPER_REGIONS[_mechanism], "8.2.3", nearpm.REGION_DIFFERS), nearpm.REGION_CLOCKS,
        ),
        (
            "program", "tracked", _program, "Computation as in nearpm.programs, and crash consistency,",
            paper(nearpm.PAPER_ALONE[_mechanism], "8.2.4, one device", nearpm.PROGRAM_DIFFERS), NINE_CLOCKS,
        ),
    ):  # fmt: skip
        claim(
            f"nearpm.tracked.{_mechanism}.{_name}", "x", at_least(_least),
            f"{_what} in transactions of nine programs, by the CPU and in a tracked pool, whose records the "
            f"engine makes without commands; durable; mean; {_mechanism}, design nearpm-paper.",
            _published, clocks=f"{_clocks}.", model="fast", quick=False,
        )(_tracked(_mechanism, _column))  # fmt: skip


def _threads(threads: int) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        run = run_of(context)
        run.parameters = {"inserts": 400}
        row = nearpm_tracked.measure(run, ("undo", threads))
        text = f"{row['cpu_per_us']:.2f} a microsecond by the CPUs, {row['tracked_per_us']:.2f} in tracked pools"
        return Measured(row["tracked"], text)

    return measure


# A record of each line, where a command makes one of a range. With 16 threads the search for lines
# that have a record is the limit: more units and channels change nothing.
TRACKED_THREADS = {4: 1.75, 16: 0.86}
for _count, _least in TRACKED_THREADS.items():
    claim(
        f"nearpm.tracked.undo.{_count}", "x", at_least(_least),
        f"Insertions by {_count} threads with a tracked pool each, without other computation, durable: the rate by "
        "that of as many CPUs, which read back at each fence; undo, design nearpm-paper.",
        clocks="on both sides from the common begin of all threads to the end of the last one.",
        model="fast", quick=False,
    )(_threads(_count))  # fmt: skip


def _later(mechanism: str, column: str) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        def all_of_them() -> list[dict[str, Any]]:
            run = run_of(context)
            run.parameters = {"transactions": context.commands(320)}
            return [nearpm_later.measure(run, (mechanism, name)) for name in WORKLOADS]

        rows = context.once(("nearpm.later", mechanism), all_of_them)
        own, cpu = (nearpm_later.mean(rows, mechanism, f"{side}_acknowledged_ns_16") for side in ("device", "cpu"))
        text = f"acknowledged after {own:.0f} ns offloaded, {cpu:.0f} ns by the CPU with groups of 16, means"
        return Measured(nearpm_later.mean(rows, mechanism, column), text)

    return measure


# Over a CPU that is durable on return, and over one that has groups of 16 as well: regions and
# programs. Pages that an engine has moved are no longer in the CPU's cache, which costs shadow
# paging more than its groups save.
LATER = {
    "undo": {"durable": (11.0, 1.48), "same": (5.1, 1.1)},
    "checkpoint": {"durable": (27.5, 1.82), "same": (4.5, 1.1)},
    "shadow": {"durable": (4.9, 1.72), "same": (1.35, 0.88)},
}
for _mechanism, _of_baselines in LATER.items():
    for _baseline, _bounds in _of_baselines.items():
        for (_part, (_, _text)), _least in zip(nearpm_later.PARTS.items(), _bounds, strict=True):
            claim(
                f"nearpm.later.{_mechanism}.{_part}.{_baseline}", "x", at_least(_least),
                "Transactions of nine programs that become durable in groups of 16, by an engine: the time of "
                f"{_text} by {nearpm_later.BASELINES[_baseline]}, over the engine's; mean; {_mechanism}, design "
                "nearpm-paper.",
                clocks=f"{nearpm.REGION_CLOCKS if _part == 'regions' else NINE_CLOCKS}, with the waits of groups.",
                model="fast", quick=False,
            )(_later(_mechanism, f"{_part}_{_baseline}_16"))  # fmt: skip
