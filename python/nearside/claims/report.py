# SPDX-License-Identifier: Apache-2.0
"""Generates docs/validation.md, or an HTML page, from result documents of claims."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from nearside import files
from nearside._native import NearsideError
from nearside.claims.matrices import matrices
from nearside.claims.registry import all_claims

TITLES = {
    "nvm_delay": "nvm_delay: the NVM timing emulator",
    "nvme": "nvme_ctrl: the NVMe controller",
    "dram": "The DDR4 model",
    "pm": "The PM window",
    "engine": "What engines get",
    "qos": "Quality of service between the host and engines",
    "nearpm": "The engine for crash consistency",
    "sort": "The engines that sort tables",
    "fast": "The fast model beside the RTL",
    "rtl": "The RTL model",
    "guest": "Programs in a guest in simulated time",
}


def load(path: Path) -> dict[str, Any]:
    """Reads a result document of claims."""
    try:
        doc = json.loads(files.read_text(path))
    except NearsideError as error:
        raise NearsideError(f"{error}; `nearside claim run` makes one") from None
    except (ValueError, RecursionError) as error:
        raise NearsideError(f"{files.printable(path)}: {error}; `nearside claim run` makes one") from None
    if not isinstance(doc, dict) or doc.get("what") != "claims" or "claims" not in doc:
        raise NearsideError(f"{files.printable(path)}: this is no result of `nearside claim run`")
    try:
        markdown(doc)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise NearsideError(
            f"{files.printable(path)}: damaged ({type(error).__name__}: {error}); measure again"
        ) from None
    return doc


def number(value: float | None) -> str:
    """Four significant digits, in plain notation where that is short."""
    if value is None:
        return "-"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:.4g}"


def _value(entry: dict[str, Any]) -> str:
    return f"{number(entry['value'])} {entry['unit']}".strip()


def _cell(entry: dict[str, Any] | str | None) -> str:
    """A cell of a table; claims that don't hold are bold."""
    if not isinstance(entry, dict):
        return entry or ""
    return number(entry["value"]) if entry["holds"] else f"**{number(entry['value'])}**"


def combined(docs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The claims of several runs in the catalogue's order: the last measurement of each, with the number of its run."""
    order = {name: index for index, name in enumerate(all_claims())}
    entries = {e["name"]: e | {"run": run} for run, doc in enumerate(docs, 1) for e in doc["claims"]}
    return sorted(entries.values(), key=lambda e: order.get(e["name"], len(order)))


def what(entry: dict[str, Any]) -> list[str]:
    """The text of a claim, and its clocks if it has them."""
    clocks = entry.get("clocks")
    return [entry["text"], *([f"Clocks: {clocks}"] if clocks else [])]


def published(entry: dict[str, Any]) -> list[str]:
    """A paper's figure, whether ours reaches it, and what differs: in this order."""
    if not entry["paper"]:
        return ["-"]
    states: dict[bool | None, list[str]] = {True: ["reached"], False: ["not reached"]}
    reaches = states.get(entry.get("reaches"), [])
    return [entry["paper"], *reaches, *([entry["differs"]] if entry.get("differs") else [])]


def comparison_summary(entries: Sequence[dict[str, Any]]) -> list[str]:
    """Summarises the claims beside a paper's figure: how many reach it, and which don't."""
    reached = [e["name"] for e in entries if e.get("reaches") is True]
    missed = [e["name"] for e in entries if e.get("reaches") is False]
    if not reached and not missed:
        return []
    lines = [
        "A bound is this project's own, what was measured less a margin where a paper's figure is not reached. Of "
        f"{len(reached) + len(missed)} claims beside a figure of a paper {len(reached)} are as good as that; what was "
        "measured there differs, as each row says."
    ]
    if missed:
        lines.append(f"Less good than the paper's: {', '.join(f'`{name}`' for name in missed)}.")
    return lines


def describe_run(number: int, doc: dict[str, Any], entries: list[dict[str, Any]]) -> str:
    """A line about a run: number of claims, date, revision, machine."""
    design = doc["design"]
    return (
        f"Run {number}: {len(entries)} claims, {doc['when']}, revision {doc.get('revision') or 'unknown'}, "
        f"{'quick variants' if doc['quick'] else 'full variants'}, seed {doc['seed']}, {doc['machine']}, "
        f"{sum(e['duration_s'] for e in entries):.0f} s in all. "
        f"Design `{design['name']}`, hash of its values `{design['hash'][:16]}`."
    )


def markdown(*docs: dict[str, Any]) -> str:
    """The page, from one run or several."""
    entries = combined(docs)
    held = sum(e["holds"] for e in entries)
    missing = sorted(set(all_claims()) - {e["name"] for e in entries})
    failing = [f"`{e['name']}` ({_value(e)}, bound {e['bound']})" for e in entries if not e["holds"]]
    lines = [
        "# Validation",
        "",
        "Every figure that this project states is a claim: a name, a bound, and a measurement that anyone can rerun",
        "with `nearside claim run NAME`. `nearside claim report` generates this page from a run; do not edit it.",
        "",
        f"- {held} of {len(entries)} claims hold.",
        *([f"- Do not hold: {', '.join(failing)}."] if failing else []),
        *([f"- Not measured: {', '.join(f'`{name}`' for name in missing)}."] if missing else []),
        *(f"- {line}" for line in comparison_summary(entries)),
        *(
            "- " + describe_run(number, doc, [e for e in entries if e["run"] == number])
            for number, doc in enumerate(docs, 1)
        ),
        "- Simulated time is that of the device's and the link's clocks; wall-clock time is that of the machine above.",
    ]
    for matrix in matrices(entries):
        lines += ["", f"**{matrix.title}**", ""]
        lines += [f"| {' | '.join((matrix.corner, *matrix.columns))} |", f"|{'---|' * (1 + len(matrix.columns))}"]
        lines += [f"| {' | '.join((label, *map(_cell, cells)))} |" for label, cells in matrix.rows]
    for group, members in groupby(entries, key=lambda e: e["name"].split(".")[0]):
        listed = list(members)
        held = sum(e["holds"] for e in listed)
        lines += ["", f"## {TITLES.get(group, group)}", ""]
        lines += ["<details>", f"<summary>{held} of {len(listed)} hold</summary>", ""]
        lines += [
            "| claim | value | bound | holds | published figure | model, time | took |",
            "|---|---|---|---|---|---|---|",
        ]
        notes = []
        for e in listed:
            holds = "yes" if e["holds"] else "**no**"
            kind = f"{e['engine']}, {e['time']}" + (f", run {e['run']}" if len(docs) > 1 else "")
            lines.append(
                f"| `{e['name']}`<br>{'<br>'.join(what(e))} | {_value(e)} | {e['bound']} | {holds} | "
                f"{'<br>'.join(published(e))} | "
                f"{kind} | {e['duration_s']:.1f} s |"
            )
            note = e["error"] or e["detail"]
            if note:
                notes.append(f"- `{e['name']}`: {note.splitlines()[0]}")
        if notes:
            lines += ["", *notes]
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"
