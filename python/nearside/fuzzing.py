# SPDX-License-Identifier: Apache-2.0
"""Campaigns and soaks of the fuzzer, and their report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from nearside import _native, files, show
from nearside._native import NearsideError
from nearside.device import MAX_U64, Design, Progress, as_text, model_of
from nearside.renamed import former_names, renamed
from nearside.types import FuzzReport, LockstepReport, SoakReport

SOAK_EPISODE = 64 << 20
# The number of episodes of a seed; after the last one the first follows.
EPISODES = 1 << 32

# Keys of a result that are not counts.
RESULT_KEY = ("seed", "design", "hardware", "engine")
COUNT_TABLES = ("kinds", "outcomes")
NOT_COUNTS = (*RESULT_KEY, *COUNT_TABLES, "time", "failure", "simulated_ns")
# Counts that every result has.
COUNTS = ("moved_bytes", "episodes", "mismatches")


@renamed(engine="model")
def run_campaign(design: Design, commands: int, seed: int, **options: Any) -> FuzzReport:
    """Runs a campaign (options `replay`, `shrinks`, `per_episode`, `torn_blocks`, `model`, `progress`)."""
    if options.get("replay") is not None:
        as_text("what to replay", options["replay"])
    model = model_of(options.pop("model", None))
    doc = _native.fuzz(design.native, commands, seed, model=model, **options)
    return {"engine": model, "time": "simulated", **doc}


@renamed(engine="model")
def soak(
    design: Design,
    amount: int,
    seed: int,
    result: Path | None = None,
    progress: Progress | None = None,
    model: str | None = None,
) -> SoakReport:
    """Moves `amount` bytes with valid commands and verifies each. Each episode starts on an empty
    device.

    With `result` the sum is saved in that file after each episode. A file of the same seed, design,
    RTL and model is continued.
    """
    model = model_of(model)
    key = {"seed": seed, "design": design.hash, "hardware": design.hardware, "engine": model}
    total = resume(result, design, seed, model) if result is not None else {}
    while total.get("moved_bytes", 0) < amount and not total.get("mismatches"):
        done = total.get("moved_bytes", 0)

        def report_progress(now: int, _all: int, done: int = done) -> None:
            if progress:
                progress(min(done + now, amount), amount)

        options = {
            "calm": True,
            "first_episode": total.get("episodes", 0) % EPISODES,
            "per_episode": SOAK_EPISODE,
            "model": model,
        }
        doc = run_campaign(design, min(SOAK_EPISODE, amount - done), seed, progress=report_progress, **options)
        total = key | _add_counts(total, dict(doc))
        if result is not None:
            files.write_text(result, json.dumps(total, indent=1))
    return cast("SoakReport", total)


@renamed(engine="model")
def resume(result: Path, design: Design, seed: int, model: str) -> dict[str, Any]:
    """The saved result of a soak of this seed, design, RTL and model; empty if there is no file."""
    try:
        if not result.exists():
            if not result.parent.is_dir():
                raise NearsideError(f"{files.printable(result)}: its folder doesn't exist")
            return {}
        total = json.loads(files.read_text(result))
    except OSError as error:
        raise NearsideError(f"{files.printable(result)}: {error.strerror}") from None
    except (ValueError, RecursionError):
        total = None
    if not _is_total(total):
        raise NearsideError(
            f"{files.printable(result)}: no result of `nearside soak`, or a damaged one; remove it or name another"
        )
    if [total[name] for name in RESULT_KEY] != [seed, design.hash, design.hardware, model]:
        raise NearsideError(
            f"{files.printable(result)} is of another seed, design, RTL or model; remove it or name another"
        )
    return total


def _is_total(value: Any) -> bool:
    """Whether a saved result has all keys that are needed, with the right types."""
    if not isinstance(value, dict) or {*NOT_COUNTS, *COUNTS} - value.keys():
        return False
    if not all(isinstance(value[table], dict) for table in COUNT_TABLES):
        return False
    counts = [count for name, count in value.items() if name not in NOT_COUNTS]
    counts += [count for table in COUNT_TABLES for count in value[table].values()]
    if not all(type(count) is int and 0 <= count <= MAX_U64 for count in counts) or value["episodes"] >= EPISODES:
        return False
    ns, failure = value["simulated_ns"], value["failure"]
    if type(ns) not in (int, float) or not 0 <= ns <= MAX_U64:
        return False
    if not value["mismatches"]:
        return failure is None
    if not isinstance(failure, dict) or {"what", "steps", "of_steps", "history"} - failure.keys():
        return False
    return isinstance(failure["what"], str) and isinstance(failure["history"], list)


def _add_counts(total: dict[str, Any], doc: dict[str, Any]) -> dict[str, Any]:
    merged = doc | {name: total.get(name, 0) + value for name, value in doc.items() if isinstance(value, int | float)}
    for table in COUNT_TABLES:
        merged[table] = dict(total.get(table, {}))
        for name, count in doc[table].items():
            merged[table][name] = merged[table].get(name, 0) + count
    merged["seed"] = doc["seed"]
    return merged


def print_report(doc: FuzzReport | LockstepReport) -> None:
    """Prints the counts of a campaign, of what was generated, and of completions by status."""
    table = show.table(f"seed {doc['seed']}, {doc['engine']}", "", "count")
    for key, value in doc.items():
        if key not in (*NOT_COUNTS, "latencies"):
            table.add_row(key.replace("_", " "), f"{value:,}")
    table.add_row("simulated time", show.nanoseconds(doc["simulated_ns"]))
    show.out.print(table)
    table = show.table("what was drawn", "", "count")
    for kind, count in doc["kinds"].items():
        table.add_row(kind, f"{count:,}")
    show.out.print(table)
    table = show.table("completions", "queue", "opcode", "status (SCT, SC)", "count")
    for outcome, count in doc["outcomes"].items():
        table.add_row(*outcome.split(" "), f"{count:,}")
    show.out.print(table)
    if latencies := cast("LockstepReport", doc).get("latencies"):
        table = show.table("mean latencies of both models, simulated", "commands", "count", "first", "second")
        for kind, latency in latencies.items():
            means = [show.nanoseconds(ns / latency["count"]) for ns in latency["ns"]]
            table.add_row(kind, f"{latency['count']:,}", *means)
        show.out.print(table)
    if doc["failure"]:
        failure = doc["failure"]
        show.out.print(f"{failure['steps']} of {failure['of_steps']} steps are needed. What happened last:")
        for line in failure["history"]:
            show.out.print(f"  {line}", soft_wrap=True)


__getattr__ = former_names(__name__, run="run_campaign")
