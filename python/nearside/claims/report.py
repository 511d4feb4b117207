"""Makes docs/validation.md from a result document of claims."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

from nearside._native import NearsideError

TITLES = {
    "nvm_delay": "nvm_delay: the NVM timing emulator",
    "nvme": "nvme_ctrl: the NVMe controller",
    "dram": "The DDR4 model",
    "pm": "The PM window",
    "rtl": "The RTL engine",
}


def load(path: Path) -> dict[str, Any]:
    """Reads a result document of claims."""
    try:
        doc = json.loads(path.read_text())
    except OSError as error:
        raise NearsideError(f"{path}: {error.strerror}; `nearside claim run` makes one") from None
    except ValueError as error:
        raise NearsideError(f"{path}: {error}") from None
    if not isinstance(doc, dict) or doc.get("what") != "claims" or "claims" not in doc:
        raise NearsideError(f"{path}: this is no result of `nearside claim run`")
    return doc


def number(value: float | None) -> str:
    """Four significant digits, in plain notation where that is short."""
    if value is None:
        return "-"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:.4g}"


def markdown(doc: dict[str, Any]) -> str:
    """The page."""
    entries = doc["claims"]
    held = sum(e["holds"] for e in entries)
    design = doc["design"]
    lines = [
        "# Validation",
        "",
        "Every figure that this project states is a claim: a name, a bound, and a measurement that anyone can rerun",
        "with `nearside claim run NAME`. `nearside claim report` generates this page from a run; do not edit it.",
        "",
        f"- {held} of {len(entries)} claims hold.",
        f"- Run: {doc['when']}, {'quick variants' if doc['quick'] else 'full variants'}, seed {doc['seed']}, "
        f"{doc['machine']}, {sum(e['duration_s'] for e in entries):.0f} s in all.",
        f"- Design: `{design['name']}`, content hash `{design['hash'][:16]}`.",
        "- Simulated time is that of the device's and the link's clocks; wall-clock time is that of the machine above.",
    ]
    for group, members in groupby(entries, key=lambda e: e["name"].split(".")[0]):
        lines += ["", f"## {TITLES.get(group, group)}", ""]
        lines += [
            "| claim | value | bound | holds | published figure | engine, time | took |",
            "|---|---|---|---|---|---|---|",
        ]
        notes = []
        for e in members:
            value = f"{number(e['value'])} {e['unit']}".strip()
            holds = "yes" if e["holds"] else "**no**"
            kind = f"{e['engine']}, {e['time']}"
            lines.append(
                f"| `{e['name']}`<br>{e['text']} | {value} | {e['bound']} | {holds} | {e['paper'] or '-'} | {kind} | "
                f"{e['duration_s']:.1f} s |"
            )
            note = e["error"] or e["detail"]
            if note:
                notes.append(f"- `{e['name']}`: {note.splitlines()[0]}")
        if notes:
            lines += ["", *notes]
    return "\n".join(lines) + "\n"
