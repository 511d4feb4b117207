# SPDX-License-Identifier: Apache-2.0
"""Runs an experiment, and saves the document after its cases."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from nearside import results
from nearside._native import NearsideError
from nearside.device import BuildProgress, Design
from nearside.experiments import document, repeat
from nearside.experiments.registry import Experiment, Row, Run

# The least time between two saves, as a document of many rows is written completely.
SAVE_EVERY_S = 2.0
INTERRUPTED = "interrupted"
# The reason in a document until its run has ended.
UNDER_WAY = "still under way, or ended by force"


def command(experiment: Experiment, model: str, quick: bool, seed: int, design: str | None) -> str:
    """The command line that repeats a run."""
    words = ["nearside", "experiment", "run", experiment.name, "--model", model]
    words += ["--quick"] if quick else []
    words += ["--seed", str(seed)] if seed != 1 else []
    words += ["--design", shlex.quote(design)] if design and design != experiment.design else []
    return " ".join(words)


def run(
    experiment: Experiment,
    model: str,
    quick: bool = False,
    seed: int = 1,
    design: str | None = None,
    build: BuildProgress | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Measures all cases, with several seeds where the parameters say so; returns the saved
    document.

    After an early end, also by Ctrl-C, the document is marked as partial with the reason. The
    exception then propagates.
    """
    experiment.check(model)
    if design is not None and experiment.design is None:
        raise NearsideError(f"{experiment.name}: takes no design")
    name = experiment.design if design is None else design
    loaded = None if name is None else Design.load(name)
    document.folder()
    results.check_outputs([document.file_name(experiment.name, model)], inputs=loaded.files if loaded else ())
    parameters = experiment.parameters(quick)
    # Each seed has separate devices.
    contexts = [Run(model, quick, one, parameters, loaded, build) for one in repeat.seeds(seed, parameters)]
    cases = [(context, case) for case in experiment.cases(contexts[0]) for context in contexts]
    repeated = repeat.RUNS in parameters
    doc = results.document(
        document.WHAT, loaded, seed, name=experiment.name, title=experiment.title, source=experiment.source,
        text=list(experiment.text), model=model, time=experiment.time, quick=quick, parameters=parameters,
        status="partial", reason=UNDER_WAY, cases=len(cases), rows=[], figures=[], plots=[],
        command=command(experiment, model, quick, seed, design), duration_s=0.0,
    )  # fmt: skip
    doc["format"] = document.FORMAT
    start = saved = time.monotonic()

    def save() -> Path:
        rows = doc["rows"]
        make = (repeat.figures, repeat.plots) if repeated else (_once, _once)
        doc["figures"] = make[0](experiment.figures, rows)
        doc["plots"] = make[1](experiment.plots, rows) if rows else []
        doc["duration_s"] = round(time.monotonic() - start, 1)
        return document.save(doc)

    try:
        with ExitStack() as opened:
            for context in contexts:
                opened.enter_context(context)
            for done, (context, case) in enumerate(cases):
                if progress:
                    progress(done, len(cases))
                row = experiment.measure(context, case)
                doc["rows"].append({repeat.SEED: context.seed, **row} if repeated else row)
                if time.monotonic() - saved >= SAVE_EVERY_S and done + 1 < len(cases):
                    save()
                    saved = time.monotonic()
    except BaseException as error:  # a panic of the native module is not an Exception
        doc["reason"] = INTERRUPTED if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
        if isinstance(error, NearsideError):
            doc["reason"] = str(error)
        if doc["rows"]:
            save()
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted(_kept(doc)) from None
        raise
    doc["status"], doc["reason"] = "complete", None
    doc["saved"] = str(save())
    return doc


def _once(make: Callable[[list[Row]], list[dict[str, Any]]], rows: list[Row]) -> list[dict[str, Any]]:
    return make(rows)


class Interrupted(NearsideError):
    """Ctrl-C in an experiment; the text says what was saved."""

    status = 130


def _kept(doc: dict[str, Any]) -> str:
    if not doc["rows"]:
        return f"{doc['name']}: interrupted before its first row; nothing was saved"
    path = results.folder() / document.file_name(doc["name"], doc["engine"])
    return f"{doc['name']}: interrupted; {len(doc['rows'])} of {doc['cases']} rows are in {path}, marked as partial"
