# SPDX-License-Identifier: Apache-2.0
"""Runs all rows on both models: the document of a comparison, and its summary."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nearside import results, show
from nearside._native import NearsideError
from nearside.correlate.measure import References, UnsupportedRow
from nearside.correlate.measure import run as measure
from nearside.correlate.rows import ENGINES, WINDOW, Row, draw
from nearside.device import BuildProgress, Design
from nearside.experiments.run import INTERRUPTED, SAVE_EVERY_S, UNDER_WAY, Interrupted

ROWS, QUICK_ROWS = 108, 12
WITHIN_PERCENT = 10.0
# The compared values; p99 is only shown.
COMPARED = ("mean_ns", "gb_s")
# Keys of the document. The rows called "tuned" there were seen while the fast model was written;
# nothing was fitted to them.
GROUPS = {"tuned": False, "held out": True}
SHOWN = {"tuned": "seen", "held out": "held out"}
KINDS = {
    "reads": ("read",), "writes": ("write",), "half of each": ("mix",), "reads into a peer": ("peer-read",),
    "writes from a peer": ("peer-write",), "loads and stores": WINDOW, "copy, scan": ENGINES,
}  # fmt: skip


def errors(rtl: dict[str, Any], fast: dict[str, Any]) -> dict[str, float | None]:
    """The errors of the fast model, in percent of the RTL's values."""
    out: dict[str, float | None] = {}
    for key in (*COMPARED, "p99_ns"):
        there = rtl[key] and fast[key] is not None
        out[key] = 100 * (fast[key] / rtl[key] - 1) if there else None
    return out


def compare(row: Row, references: References, progress: BuildProgress | None) -> dict[str, Any]:
    """A row on both models. `worst_percent` is the largest error of the compared values, or None."""
    entry: dict[str, Any] = row.values | {"skipped": None, "errors": None, "worst_percent": None}
    try:
        fast = measure(row, "fast")
    except UnsupportedRow as reason:
        return entry | {"rtl": None, "fast": None, "skipped": str(reason)}
    rtl, _ = references.of(row, lambda: measure(row, "rtl", progress))
    found = errors(rtl, fast)
    judged = [abs(value) for key in COMPARED if (value := found[key]) is not None]
    return entry | {"rtl": rtl, "fast": fast, "errors": found, "worst_percent": max(judged)}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts rows within the bound, and averages the errors."""
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


def choose_rows(count: int, seed: int, quick: bool, only: str | None) -> list[Row]:
    """The rows of a run, at least one."""

    def of(count: int) -> list[Row]:
        return [row for row in draw(count, seed, quick) if only is None or row.held_out == GROUPS[only]]

    rows = of(count)
    if not rows:
        assert only is not None  # without it each count has rows
        least = next(more for more in range(count + 1, ROWS + 1) if of(more))
        raise NearsideError(f"rows = {count}: none of them is {SHOWN[only]}; allowed are {least} and more")
    return rows


def run(
    count: int,
    seed: int,
    quick: bool = False,
    only: str | None = None,
    reuse: Path | None = None,
    build: BuildProgress | None = None,
    progress: Callable[[int, int], None] | None = None,
    save: Callable[[dict[str, Any]], Path] | None = None,
) -> dict[str, Any]:
    """Runs all rows; returns the document. `only` is "tuned" or "held out".

    `save` receives the document periodically and at the end. After an early end, also by Ctrl-C,
    the document is marked as partial with the reason. The exception then propagates.
    """
    rows = choose_rows(count, seed, quick, only)
    references = References(reuse)
    doc = results.document(
        "correlate", Design.load("default"), seed, "fast and rtl", time="simulated", quick=quick,
        within_percent=WITHIN_PERCENT, status="partial", reason=UNDER_WAY, cases=len(rows), all={}, groups={},
        kinds={}, rows=[], figures=[],
    )  # fmt: skip
    saved = time.monotonic()
    try:
        for done, row in enumerate(rows):
            if progress:
                progress(done, len(rows))
            doc["rows"].append(compare(row, references, build))
            if save and time.monotonic() - saved >= SAVE_EVERY_S:
                save(with_summary(doc))
                saved = time.monotonic()
    except BaseException as error:  # a panic of the native module is not an Exception
        stopped = isinstance(error, KeyboardInterrupt)
        doc["reason"] = INTERRUPTED if stopped else f"{type(error).__name__}: {error}"
        if not save:
            raise
        kept = " before its first row; nothing was saved"
        if doc["rows"]:
            kept = f"; {len(doc['rows'])} of {len(rows)} rows are in {save(with_summary(doc))}, marked as partial"
        if stopped:
            raise Interrupted(f"correlate: interrupted{kept}") from None
        raise
    doc["status"], doc["reason"] = "complete", None
    if save:
        save(with_summary(doc))
    return with_summary(doc)


def with_summary(doc: dict[str, Any]) -> dict[str, Any]:
    """The document, with the values that follow from its rows."""
    rows = doc["rows"]
    doc["all"] = summary(rows)
    doc["groups"] = {name: summary([row for row in rows if row["held_out"] == held]) for name, held in GROUPS.items()}
    doc["kinds"] = {name: summary([row for row in rows if row["kind"] in kinds]) for name, kinds in KINDS.items()}
    doc["figures"] = [
        results.figure("within", doc["all"]["within"], "rows"),
        results.figure("mean_error", doc["all"]["mean_error_percent"], "%"),
    ]
    return doc


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1f} %"


def print_document(doc: dict[str, Any], worst_first: bool = False) -> None:
    """Prints the document as tables."""
    table = show.table(
        "fast beside rtl, simulated time: errors of the fast model",
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
    table = show.table("by kind", "", "rows", f"within {doc['within_percent']:g} %", "mean error", "worst")
    for name, part in doc["kinds"].items():
        if part["compared"]:
            errors = (f"{part[key]:.1f} %" for key in ("mean_error_percent", "worst_error_percent"))
            table.add_row(name, str(part["compared"]), str(part["within"]), *errors)
    show.out.print(table)
    for name, part in [*doc["groups"].items(), ("all", doc["all"])]:
        if part["compared"]:
            show.out.print(
                f"{SHOWN.get(name, name)}: {part['within']} of {part['compared']} rows "
                f"within {doc['within_percent']:g} %, "
                f"{part['mean_error_percent']:.1f} % on average, worst {part['worst_error_percent']:.1f} %"
                + (f"; {part['rows'] - part['compared']} left out" if part["rows"] > part["compared"] else ""),
                soft_wrap=True,
            )
