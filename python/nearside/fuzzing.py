"""The fuzzer: campaigns as dictionaries, and their table."""

from __future__ import annotations

import json
from typing import Any

from nearside import _native, show
from nearside.device import Design


def run(design: Design, commands: int, seed: int, **options: Any) -> dict[str, Any]:
    """Runs a campaign (`replay`, `shrinks`, `per_episode`, `progress`)."""
    return json.loads(_native.fuzz(design.native, commands, seed, **options))


def print_report(doc: dict[str, Any]) -> None:
    """What was done, and what each command answered how often."""
    table = show.table(f"seed {doc['seed']}", "", "count")
    for key, value in doc.items():
        if key not in ("seed", "outcomes", "failure", "simulated_ns"):
            table.add_row(key.replace("_", " "), f"{value:,}")
    table.add_row("simulated time", show.nanoseconds(doc["simulated_ns"]))
    show.out.print(table)
    table = show.table("completions", "queue", "opcode", "status (SCT, SC)", "count")
    for outcome, count in doc["outcomes"].items():
        table.add_row(*outcome.split(" "), f"{count:,}")
    show.out.print(table)
    if doc["failure"]:
        failure = doc["failure"]
        show.out.print(f"{failure['steps']} of {failure['of_steps']} steps are needed. What happened last:")
        for line in failure["history"]:
            show.out.print(f"  {line}", soft_wrap=True, markup=False, highlight=False)
