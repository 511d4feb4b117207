# SPDX-License-Identifier: Apache-2.0
"""The accuracy of nvm_delay: single accesses through it to the DDR4 model, timed at its ports."""

from __future__ import annotations

from nearside import _native, show
from nearside.device import BuildProgress, Design
from nearside.types import AccuracyRow

# From NVMulator, section 4.1: the error of the mean in the paper's Optane experiment.
PAPER = {("read", 305.0): "NVMulator: 0.62 %", ("write", 94.0): "NVMulator: 1.7 %"}

DEMO_TARGETS = [
    ("read", 305.0),
    ("write", 94.0),
    ("read", 451.0),
    ("write", 201.0),
    ("read", 1001.0),
    ("write", 10_002.0),
]


class DelayBench:
    """`nvm_delay` alone, between a master and the DDR4 model."""

    def __init__(self, design: Design, progress: BuildProgress | None = None) -> None:
        self.native = _native.DelayBench(design.native, progress)
        self.period_ns = self.native.period_ns

    def measure(
        self, kind: str, target_ns: float, samples: int, seed: int, beats: int = 1, beat_ns: float = 0.0
    ) -> AccuracyRow:
        """Measures single accesses at random addresses. `target_ns` is for all beats, including `beat_ns` for each."""
        base_ns = target_ns - beat_ns * beats
        base_ns = 0.0 if abs(base_ns) < 1e-6 else base_ns  # rounding error
        result = self.native.measure(kind, base_ns, beat_ns, beats, samples, seed)
        error, extremes = result["mean_ns"] - target_ns, (result["min_ns"], result["max_ns"])
        return {
            **result,
            "name": f"{kind}_{target_ns:g}ns" + (f"_{beats}beats" if beats > 1 else ""),
            "kind": kind,
            "target_ns": target_ns,
            "beats": beats,
            "mean_error_percent": 100 * abs(error) / target_ns,
            "max_error_clocks": max(abs(ns - target_ns) for ns in extremes) / self.period_ns,
            "paper": PAPER.get((kind, target_ns)),
        }


def measure_targets(
    design: Design, targets: list[tuple[str, float]], samples: int, seed: int, progress: BuildProgress | None = None
) -> list[AccuracyRow]:
    """Measures each target; returns a row for each. `progress` may raise an exception between two of them."""
    bench = DelayBench(design, progress)
    rows = []
    for done, (kind, target) in enumerate(targets):
        if progress:
            progress("measuring", done, len(targets))
        rows.append(bench.measure(kind, target, samples, seed))
    return rows


def print_table(rows: list[AccuracyRow]) -> None:
    table = show.table(
        "nvm_delay: 64 B at random addresses on DDR4, simulated time; the paper is NVMulator",
        "access", "target", "mean", "error", "from-to, ns", "off, clk", "paper",
    )  # fmt: skip
    for row in rows:
        times = [show.nanoseconds(row[key]) for key in ("target_ns", "mean_ns")]
        extent = f"{row['min_ns']:g}-{row['max_ns']:g}"
        off = f"{row['max_error_clocks']:.2f}"
        paper = (row["paper"] or "-").removeprefix("NVMulator: ")
        table.add_row(row["kind"], *times, f"{row['mean_error_percent']:.4f} %", extent, off, paper)
    show.out.print(table)
