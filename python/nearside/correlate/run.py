"""Both engines on all rows: the document of a comparison, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from nearside import results, show
from nearside.correlate.measure import References, Unable
from nearside.correlate.measure import run as measure
from nearside.correlate.rows import Row, draw
from nearside.device import BuildProgress, Design

ROWS, QUICK_ROWS = 108, 12
WITHIN_PERCENT = 10.0
# What is judged; p99 is told only.
JUDGED = ("mean_ns", "gb_s")
GROUPS = {"tuned": False, "held out": True}


def errors(rtl: dict[str, Any], fast: dict[str, Any]) -> dict[str, float | None]:
    """By how much the fast engine is off, in percent of what the RTL says."""
    out: dict[str, float | None] = {}
    for key in (*JUDGED, "p99_ns"):
        there = rtl[key] and fast[key] is not None
        out[key] = 100 * (fast[key] / rtl[key] - 1) if there else None
    return out


def compare(row: Row, references: References, progress: BuildProgress | None) -> dict[str, Any]:
    """One row on both engines. `worst_percent` is the larger error of what is judged, None where there is none."""
    entry: dict[str, Any] = row.values | {"skipped": None, "errors": None, "worst_percent": None}
    try:
        fast = measure(row, "fast")
    except Unable as reason:
        return entry | {"rtl": None, "fast": None, "skipped": str(reason)}
    rtl, _ = references.of(row, lambda: measure(row, "rtl", progress))
    found = errors(rtl, fast)
    judged = [abs(value) for key in JUDGED if (value := found[key]) is not None]
    return entry | {"rtl": rtl, "fast": fast, "errors": found, "worst_percent": max(judged)}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How many rows are within the bound, and by how much they are off on average."""
    done = [row["worst_percent"] for row in rows if row["worst_percent"] is not None]
    p99 = [abs(row["errors"]["p99_ns"]) for row in rows if row["errors"] and row["errors"]["p99_ns"] is not None]
    return {
        "rows": len(rows),
        "compared": len(done),
        "within": sum(error <= WITHIN_PERCENT for error in done),
        "mean_error_percent": sum(done) / len(done) if done else None,
        "worst_error_percent": max(done, default=None),
        "p99_mean_error_percent": sum(p99) / len(p99) if p99 else None,
    }


def run(
    count: int,
    seed: int,
    quick: bool = False,
    only: str | None = None,
    reuse: Path | None = None,
    build: BuildProgress | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """All rows; returns the document. `only` is "tuned" or "held out"."""
    references = References(reuse)
    rows = [row for row in draw(count, seed, quick) if only is None or row.held_out == GROUPS[only]]
    entries = []
    for done, row in enumerate(rows):
        if progress:
            progress(done, len(rows))
        entries.append(compare(row, references, build))
    parts = {name: summary([e for e in entries if e["held_out"] == held]) for name, held in GROUPS.items()}
    figures = [
        results.figure("within", summary(entries)["within"], "rows"),
        results.figure("mean_error", summary(entries)["mean_error_percent"], "%"),
    ]
    return results.document(
        "correlate", Design.load("default"), seed, "fast and rtl", time="simulated", quick=quick,
        within_percent=WITHIN_PERCENT, all=summary(entries), groups=parts, rows=entries, figures=figures,
    )  # fmt: skip


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1f} %"


def print_document(doc: dict[str, Any], worst_first: bool = False) -> None:
    """For people."""
    table = show.table(
        "fast beside rtl, simulated time: errors of the fast engine",
        "row: kind, bytes, queues x depth, profile, link", "commands", "rtl mean", "mean", "rtl GB/s", "GB/s", "p99",
    )  # fmt: skip
    table.columns[0].no_wrap = True
    rows = doc["rows"]
    if worst_first:
        rows = sorted(rows, key=lambda row: -(row["worst_percent"] or 0))
    for row in rows:
        shape = (row["name"] + (", held out" if row["held_out"] else ""), str(row["commands"]))
        if row["skipped"]:
            table.add_row(*shape, row["skipped"])
            continue
        rtl, error = row["rtl"], row["errors"]
        measured = (show.nanoseconds(rtl["mean_ns"]), _percent(error["mean_ns"]), f"{rtl['gb_s']:.3f}")
        style = "red" if row["worst_percent"] > doc["within_percent"] else None
        table.add_row(*shape, *measured, _percent(error["gb_s"]), _percent(error["p99_ns"]), style=style)
    show.out.print(table)
    for name, part in [*doc["groups"].items(), ("all", doc["all"])]:
        if part["compared"]:
            show.out.print(
                f"{name}: {part['within']} of {part['compared']} rows within {doc['within_percent']:g} %, "
                f"{part['mean_error_percent']:.1f} % on average, worst {part['worst_error_percent']:.1f} %"
                + (f"; {part['rows'] - part['compared']} left out" if part["rows"] > part["compared"] else ""),
                soft_wrap=True,
            )
