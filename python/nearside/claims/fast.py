# SPDX-License-Identifier: Apache-2.0
"""The fast model: the errors of its mean latencies and bandwidths against the RTL. See `nearside correlate`."""

from __future__ import annotations

from typing import Any

from nearside.claims.registry import Context, Measured, at_least, at_most, claim
from nearside.correlate import run as comparison


def compared(context: Context) -> dict[str, Any]:
    """All rows on both models; shared by these claims."""
    count = comparison.QUICK_ROWS if context.quick else comparison.ROWS
    return context.once(("fast.rows",), lambda: comparison.run(count, context.seed, context.quick))


def _part(name: str, text: str, held_out: tuple[bool, ...]) -> None:
    def rows(context: Context) -> list[dict[str, Any]]:
        return [row for row in compared(context)["rows"] if row["errors"] and row["held_out"] in held_out]

    @claim(
        f"fast.correlation.{name}.within", "%", at_least(95),
        f"Rows, {text}, in which the fast model's mean latency and bandwidth are within 10 % of the RTL's.",
        model="fast and rtl",
    )  # fmt: skip
    def share(context: Context) -> Measured:
        part, worst = comparison.summary(rows(context)), max(rows(context), key=lambda row: row["worst_percent"])
        detail = f"{part['within']} of {part['compared']} rows; worst {worst['worst_percent']:.1f} %, {worst['name']}"
        return Measured(100 * part["within"] / part["compared"], detail)

    @claim(
        f"fast.correlation.{name}.mean_error", "%", at_most(4),
        f"The larger error of the fast model's mean latency and bandwidth, averaged over rows: {text}.",
        model="fast and rtl",
    )  # fmt: skip
    def mean(context: Context) -> Measured:
        part = comparison.summary(rows(context))
        return Measured(part["mean_error_percent"], f"p99, not judged: {part['p99_mean_error_percent']:.1f} %")


_part("all", "corners, drawn ones, and those that are held out", (False, True))
_part("held_out", "with seeds and a design that no tuning used", (True,))
