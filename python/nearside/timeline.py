# SPDX-License-Identifier: Apache-2.0
"""Activities and waits of CPU, units and devices in transactions, after NearPM's figures 5 and 6."""

from __future__ import annotations

from nearside import _native, show
from nearside.device import BuildProgress, Design
from nearside.types import TimelineDocument, TimelineRow, TimelineVariant

# Small media, for a quick start; the host profile has the latencies of the paper.
VALUES = """
[media]
bytes = "256 MiB"
profile = "dram"
[nvme]
namespaces = ["1 MiB"]
[cpu]
profile = "nearpm"
"""
# The row of the CPU in pictures, and its activities with their colours. Other rows are units.
CPU = "CPU"
CPU_COLOURS = {"program": "#4c72b0", "copy": "#dd8452", "flush": "#937860", "command": "#8172b3", "fence": "#d9d9d9"}


# Lines that a transaction in a tracked pool may change, and those of the pool's own data.
TRACKED_LINES, OWN_LINES = 1024, 16


def variants(mechanism: str, objects: int, size: int) -> list[TimelineVariant]:
    """The executors of the same transactions. Tracked pools are for those whose lines they can record."""

    def variant(name: str, devices: int = 0, synchronise: str = "devices", tracked: bool = False) -> TimelineVariant:
        return {
            "name": name, "offloaded": devices > 0, "tracked": tracked, "devices": max(1, devices),
            "synchronise": synchronise,
        }  # fmt: skip

    lines = objects * (size // 64 + 2) + OWN_LINES
    can_track = mechanism != "redo" and lines <= TRACKED_LINES
    return [
        variant("by the CPU"),
        variant("by one device", 1),
        *([variant("by one device, without commands before stores", 1, tracked=True)] if can_track else []),
        variant("by two devices, synchronised by the host", 2, "host"),
        variant("by two devices", 2),
    ]


def measure(
    design: Design,
    mechanism: str = "undo",
    objects: int = 2,
    size: int = 4096,
    transactions: int = 2,
    build: BuildProgress | None = None,
) -> TimelineDocument:
    """Runs the same transactions by each executor; times are simulated ns from the begin of the first one.

    `size`: bytes of each object, a multiple of 8 up to 16 KiB; 1 to 8 objects and transactions.
    """
    design = design.with_values(VALUES)
    rows: list[TimelineRow] = []
    for variant in variants(mechanism, objects, size):
        ways = (variant["devices"], variant["synchronise"], variant["tracked"])
        arguments = (mechanism, variant["offloaded"], objects, size, transactions)
        rows.append({**variant, **_native.pm_timeline(design.native, *arguments, *ways, build)})
    return {
        "design": {"name": design.name, "hash": design.hash},
        "engine": "fast",
        "time": "simulated",
        "mechanism": mechanism,
        "objects": objects,
        "bytes": size,
        "transactions": transactions,
        "rows": rows,
    }


def busy_ns(row: TimelineRow, who: str, what: str | None = None) -> float:
    """The busy time of a CPU or unit, or its time in one activity, until the end of the last transaction."""
    spans = (s for s in row["spans"] if s["who"].startswith(who) and what in (None, s["what"]))
    return sum(max(0.0, min(s["end_ns"], row["took_ns"]) - max(s["begin_ns"], 0.0)) for s in spans)


def print_table(doc: TimelineDocument) -> None:
    columns = ("", "transactions took", *(f"CPU: {what}" for what in CPU_COLOURS), "units, sum")
    title = f"{doc['transactions']} transactions, {doc['mechanism']}, {doc['objects']} objects of {doc['bytes']} B each"
    table = show.table(f"{title}: ns, simulated", *columns)
    for row in doc["rows"]:
        parts = [f"{busy_ns(row, CPU, what):.0f}" for what in CPU_COLOURS]
        table.add_row(row["name"], f"{row['took_ns']:.0f}", *parts, f"{busy_ns(row, 'device'):.0f}")
    show.out.print(table)
