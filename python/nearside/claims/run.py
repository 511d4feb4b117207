"""Runs claims and makes result documents of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from nearside import results
from nearside._native import NearsideError
from nearside.claims.registry import Claim, Context, Measured


def run_claim(claim: Claim, context: Context) -> dict[str, Any]:
    """Measures one claim. A measurement that fails is a claim that doesn't hold."""
    start = time.perf_counter()
    error = None
    try:
        measured = claim.measure(context)
    except NearsideError as failure:
        measured, error = Measured(math.nan), str(failure)
    if not isinstance(measured, Measured):
        measured = Measured(float(measured))
    bound = claim.bound_of(context.quick)
    return {
        "name": claim.name,
        "text": claim.text,
        "value": None if math.isnan(measured.value) else measured.value,
        "unit": claim.unit,
        "bound": str(bound),
        "holds": not math.isnan(measured.value) and bound.holds(measured.value),
        "paper": claim.paper,
        "engine": claim.engine,
        "seed": context.seed,
        "time": claim.time,
        "detail": measured.detail,
        "error": error,
        "duration_s": round(time.perf_counter() - start, 2),
    }


def run_claims(
    claims: list[Claim], quick: bool, seed: int, tell: Callable[[dict[str, Any]], None] | None = None
) -> dict[str, Any]:
    """Measures claims one after the other; returns the result document."""
    from nearside.device import Design

    context = Context(quick=quick, seed=seed)
    entries = []
    for claim in claims:
        entry = run_claim(claim, context)
        entries.append(entry)
        if tell:
            tell(entry)
    return results.document(
        "claims", Design.load("default"), seed, quick=quick, claims=entries, holds=all(e["holds"] for e in entries)
    )
