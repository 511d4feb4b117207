# SPDX-License-Identifier: Apache-2.0
"""Runs claims and collects their results in a document."""

from __future__ import annotations

import math
import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nearside import results
from nearside._native import NearsideError
from nearside.claims.registry import Claim, Context, Measured
from nearside.device import MODEL


@contextmanager
def default_model(claim: Claim) -> Iterator[None]:
    """Sets the model of devices without an explicit one: the claim's or the RTL, whatever the environment says."""
    name = "fast" if claim.model == "fast" else "rtl"
    before = os.environ.get(MODEL)
    os.environ[MODEL] = name
    try:
        yield
    finally:
        if before is None:
            del os.environ[MODEL]
        else:
            os.environ[MODEL] = before


def run_claim(claim: Claim, context: Context) -> dict[str, Any]:
    """Measures a claim. A measurement that fails in any way is a claim that doesn't hold."""
    start = time.perf_counter()
    error = None
    try:
        with default_model(claim):
            measured = claim.measure(context)
        if not isinstance(measured, Measured):
            measured = Measured(float(measured))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as failure:  # a panic of the native module is not an Exception
        measured, error = Measured(math.nan), _describe_failure(failure)
        context.forget_devices()
    bound = claim.bound_of(context.quick)
    return {
        "name": claim.name,
        "text": claim.text,
        "value": None if math.isnan(measured.value) else measured.value,
        "unit": claim.unit,
        "bound": str(bound),
        "holds": not math.isnan(measured.value) and bound.holds(measured.value),
        "paper": str(claim.paper) if claim.paper else None,
        "differs": claim.paper.differs if claim.paper else None,
        "reaches": None if math.isnan(measured.value) else claim.reaches(measured.value),
        "clocks": claim.clocks,
        "engine": claim.model,
        "seed": context.seed,
        "time": claim.time,
        "detail": measured.detail,
        "error": error,
        "duration_s": round(time.perf_counter() - start, 2),
    }


def _describe_failure(failure: BaseException) -> str:
    """Describes a failure: the text of expected failures, also type and place of others."""
    if isinstance(failure, NearsideError):
        return str(failure)
    frames = traceback.extract_tb(failure.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(failure).__name__}: {failure}{place}"


def run_claims(
    claims: list[Claim],
    quick: bool,
    seed: int,
    report_claim: Callable[[dict[str, Any]], None] | None = None,
    save: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Measures claims one by one; returns the result document. `save` receives the document after each."""
    from nearside.device import Design

    # A named claim without a quick variant runs in full; it shares no measurement with quick ones.
    contexts = {less: Context(quick=less, seed=seed) for less in (False, quick)}
    doc = results.document("claims", Design.load("default"), seed, "each claim's", quick=quick, claims=[], holds=True)
    for claim in claims:
        entry = run_claim(claim, contexts[quick and claim.quick])
        doc["claims"].append(entry)
        doc["holds"] = doc["holds"] and entry["holds"]
        if save:
            save(doc)
        if report_claim:
            report_claim(entry)
    return doc
