# SPDX-License-Identifier: Apache-2.0
"""Crash campaigns: power cuts and their violations, and the report."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable

from nearside import _native, show
from nearside.device import Design, Progress, as_text
from nearside.renamed import former_names, renamed
from nearside.types import CrashReport

WORKLOADS, MECHANISMS, EXECUTORS, FAULT_INJECTIONS = _native.crash_names()
# The design by executor.
DESIGNS = {"cpu": "default", "device": "nearpm"}
PROFILE = '[cpu]\nprofile = "nearpm"\n'
COUNTS = ("cuts", "violated", "more", "recoveries_cut", "evicted")


def load_design(by: str, name: str | None = None) -> Design:
    """The design of a campaign, with the host profile of the NearPM paper."""
    return Design.load(name or DESIGNS.get(by, "nearpm")).with_values(PROFILE)


def jobs() -> int:
    """The number of concurrent copies: one for each CPU that this process may use."""
    return max(1, len(os.sched_getaffinity(0)))


@renamed(engine="model")
def run_campaign(
    design: Design,
    workload: str,
    mechanism: str,
    by: str,
    cuts: str,
    *,
    model: str,
    transactions: int = 24,
    seed: int = 1,
    without: str | None = None,
    at_once: int | None = None,
    progress: Progress | None = None,
    devices: int = 1,
    synchronise: str = "devices",
    tracked: bool = False,
    later: int | None = None,
    words: bool = False,
) -> CrashReport:
    """Runs a campaign; a violation includes the command that reproduces it."""
    for what, text in (("workload", workload), ("mechanism", mechanism), ("by", by), ("cuts", cuts)):
        as_text(what, text)
    report = _native.crash_test(
        design.native, workload, mechanism, by, cuts, transactions, seed, without=without, jobs=at_once or jobs(),
        model=model, progress=progress, devices=devices, synchronise=synchronise, tracked=tracked,
        later=later, words=words,
    )  # fmt: skip
    doc: CrashReport = {
        "workload": workload,
        "mechanism": mechanism,
        "by": by,
        "engine": model,
        "seed": seed,
        "without": without,
        "devices": devices,
        "synchronise": synchronise,
        "tracked": tracked,
        "later": later,
        "words": words,
        "time": "simulated",
        **report,
    }
    if violation := doc["violation"]:
        line = ["nearside", "crashtest", workload, "--mechanism", mechanism, "--by", by, "--model", model]
        line += ["--seed", str(seed), "--transactions", str(transactions)]
        line += ["--devices", str(devices), "--synchronise", synchronise] if devices > 1 else []
        line += ["--tracked"] if tracked else []
        line += ["--later", str(later)] if later else []
        line += ["--words"] if words else []
        line += ["--without", without] if without else []
        line += ["--design", design.name] if design.name != DESIGNS.get(by) else []
        violation["replay"] = shlex.join([*line, "--cuts", f"at:{violation['cut']}"])
    return doc


def campaign_failed(doc: CrashReport) -> bool:
    """Whether a campaign failed: a violation, or none in a negative control."""
    return bool(doc["violated"] or doc["stopped"]) == (doc["without"] is None)


def print_reports(docs: Iterable[CrashReport]) -> None:
    """Prints a row for each campaign, and the events before its first violation."""
    docs = list(docs)
    models = " and ".join(sorted({doc["engine"] for doc in docs}))
    columns = ["cuts", "violations", "n + 1", "cut again", "evicted", "simulated"]
    table = show.table(f"power cuts, {models}", "workload", "mechanism", *columns)
    for doc in docs:
        counts = [f"{dict(doc)[name]:,}" for name in COUNTS]
        made = f"{doc['mechanism']} by {doc['by']}"
        if doc["tracked"]:
            made += ", tracked"
        if doc["devices"] > 1:
            made += f", {doc['devices']} devices"
        if doc["later"]:
            made += f", {doc['later']} durable together"
        table.add_row(doc["workload"], made, *counts, show.nanoseconds(doc["simulated_ns"]))
    show.out.print(table)
    for doc in docs:
        if doc["without"] and doc["invariant"]:
            made = f"{doc['workload']}, {doc['mechanism']} without {doc['without']}"
            show.out.print(f"{made}: {doc['invariant']['what']}", soft_wrap=True)
        violation = doc["violation"]
        if violation and doc["without"] is None:
            show.out.print(f"{doc['workload']}, {doc['mechanism']} by the {doc['by']}: {violation['what']}")
            for line in violation["timeline"]:
                show.out.print(f"  {line}", soft_wrap=True)
            show.out.print(f"again: {violation['replay']}", soft_wrap=True)


__getattr__ = former_names(__name__, run="run_campaign", load="load_design", failed="campaign_failed")
