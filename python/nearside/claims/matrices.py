# SPDX-License-Identifier: Apache-2.0
"""Claims that differ only in size, pattern, link or target, as tables and plots at the top of the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nearside import wire
from nearside.experiments.registry import plot

Entry = dict[str, Any]
SIZE_TEXT = {name: f"{size // 1024} KiB" if size >= 1024 else f"{size} B" for name, size in wire.SIZES.items()}
PATTERNS = wire.PATTERNS
# The methods of the bandwidths in the table beside OpenExpress, of each side.
OURS, THEIRS = "simulated, a polling host", "hardware, fio through Linux"
LOADS = {"load_4k": "4 KiB load, ns", "loads_64": "64 loads of 64 B, GB/s"}
SEEN = {"load": "64 B load", "chain": "chain of loads"}
TARGETS = {
    "mean_error": "error of the mean, %",
    "max_error": "worst, clocks",
    "mean": "mean where the DRAM is late, ns",
    "on_time_error": "error of those on time, %",
    "early": "earliest, clocks",
    "after_memory": "after the DRAM, clocks",
}


@dataclass(frozen=True)
class Matrix:
    """A table of claims with names of rows and columns; cells are claims that were measured, or text."""

    title: str
    corner: str
    columns: list[str]
    rows: list[tuple[str, list[Entry | str | None]]]

    @property
    def names(self) -> set[str]:
        return {entry["name"] for _, cells in self.rows for entry in cells if isinstance(entry, dict)}


def _numeric(label: str) -> tuple[float, str]:
    found = re.match(r"[\d.]+", label)
    return (float(found[0]) if found else 0.0, label)


def _collect(
    entries: list[Entry],
    title: str,
    corner: str,
    pattern: str,
    place: Callable[[dict[str, str]], tuple[str, str]],
    by_number: bool = False,
    published: str = "",
) -> Matrix | None:
    """The matrix of all claims whose names match; `place` makes row and column of the parts of the
    name.

    With `published` the last column is the paper's statement, and how that was measured.
    """
    cells: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        found = re.fullmatch(pattern, entry["name"])
        if found:
            cells[place({key: part or "" for key, part in found.groupdict().items()})] = entry
    if len(cells) < 2:
        return None
    rows, columns = (list(dict.fromkeys(key[side] for key in cells)) for side in (0, 1))
    if by_number:
        rows.sort(key=_numeric)
        columns.sort()
    table: list[tuple[str, list[Entry | str | None]]] = []
    for row in rows:
        line = [cells.get((row, column)) for column in columns]
        table.append((row, [*line, next((e["paper"] for e in line if e), None)] if published else [*line]))
    return Matrix(title, corner, [*columns, f"published: {published}"] if published else columns, table)


def matrices(entries: list[Entry]) -> list[Matrix]:
    """The tables for which these claims fill at least two cells."""

    def wired(part: dict[str, str]) -> tuple[str, str]:
        queues = ", one queue" if part["one"] else ""
        return (
            f"{part['kind']} {SIZE_TEXT.get(part['size'], part['size'])}{queues}",
            f"{part['link']} {part['pattern']}",
        )

    def target(part: dict[str, str]) -> tuple[str, str]:
        return f"{part['ns']} ns", f"{part['kind']}: {TARGETS.get(part['what'], part['what'])}"

    found = [
        _collect(
            entries, "Bandwidth by size, pattern and link, of what the wire allows, %", "command",
            r"nvme\.wire\.(?P<link>\w+)\.(?P<kind>\w+)_(?P<size>\w+)\.(?P<pattern>seq|rand)(?P<one>\.one_queue)?",
            wired,
        ),
        _collect(
            entries,
            "Bandwidth beside OpenExpress, 10 queues of depth 8, GB/s; not one measurement, as fio and Linux are part "
            "of the published one only",
            "command",
            r"nvme\.(?P<kind>read|write)_(?P<size>\w+)\.(?P<pattern>seq|rand)\.bandwidth",
            lambda p: (
                f"{p['kind']} {SIZE_TEXT.get(p['size'], p['size'])}",
                f"{PATTERNS.get(p['pattern'], p['pattern'])}: {OURS}",
            ),
            published=THEIRS,
        ),
        _collect(
            entries, "nvm_delay by target, at its ports", "target",
            r"nvm_delay\.(?:targets\.)?(?P<kind>read|write)_(?P<ns>\d+)ns\.(?P<what>\w+)", target, by_number=True,
        ),
        _collect(
            entries, "Loads through BAR2, as the host sees them: off profile and link by, ns", "profile",
            r"pm\.(?P<what>load|chain)\.(?P<profile>(?!path)[\w-]+)(?P<fast>\.fast)?",
            lambda p: (p["profile"], f"{SEEN[p['what']]}, {'fast' if p['fast'] else 'rtl'}"),
        ),
        _collect(
            entries, "nvm_delay by length of the burst: error of the mean, %", "beats",
            r"nvm_delay\.bursts\.(?P<kind>read|write)_(?P<beats>\d+)", lambda p: (p["beats"], f"{p['kind']}s"),
            by_number=True,
        ),
        _collect(
            entries, "PM window by media profile", "profile",
            r"pm\.(?P<what>load_4k|loads_64)\.(?P<profile>[\w-]+)",
            lambda p: (p["profile"], LOADS[p["what"]]),
        ),
    ]  # fmt: skip
    return [matrix for matrix in found if matrix]


def plots(entries: list[Entry]) -> list[dict[str, Any]]:
    """Some of the tables as plots, in the format of `nearside.experiments.plot`."""
    values = {entry["name"]: entry["value"] for entry in entries}
    out = []
    for pattern, text in PATTERNS.items():
        series = []
        for link in ("gen3x8", "gen3x16"):
            for kind in ("read", "write"):
                y = [values.get(f"nvme.wire.{link}.{kind}_{size}.{pattern}") for size in wire.SIZES]
                if any(value is not None for value in y):
                    series.append({"name": f"{link} {kind}s", "of": "ours", "y": y})
        if series:
            x = [SIZE_TEXT[size] for size in wire.SIZES]
            title = f"Bandwidth of what the wire allows, {text}"
            out.append(plot(title, x, series, x_label="size of a command", y_label="%", floor=90))
    for name, value in list(values.items()):
        late = re.fullmatch(r"(nvm_delay\.targets\.read_(\d+)ns)\.mean", name)
        # The true mean, also where a slow DRAM raises it above the target.
        if late and value is not None:
            values[f"{late[1]}.mean_error"] = 100 * abs(value / int(late[2]) - 1)
    targets = sorted({int(f[1]) for f in (re.search(r"_(\d+)ns\.mean_error", name) for name in values) if f})
    if targets:
        series = []
        for kind in ("read", "write"):
            names = [(f"nvm_delay.targets.{kind}_{ns}ns", f"nvm_delay.{kind}_{ns}ns") for ns in targets]
            y = [next((values[k] for n in pair if (k := f"{n}.mean_error") in values), None) for pair in names]
            # An exact value has no place on a logarithmic axis.
            series.append({"name": f"{kind}s", "of": "ours", "y": [value or None for value in y]})
        series.append({"name": "bound", "of": "limit", "y": [0.1] * len(targets)})
        title = "nvm_delay: error of the mean by target"
        out.append(plot(title, targets, series, x_label="target, ns", y_label="%", log=True))
    return out
