"""The machinery of claims: it must be able to say no."""

from __future__ import annotations

import json
import math

import pytest
from nearside._native import NearsideError
from nearside.claims import registry, report, run
from nearside.claims.registry import Claim, Context, Measured, at_least, at_most


def claim(name, value, bound, **options):
    def measure(context):
        if isinstance(value, Exception):
            raise value
        return value

    return Claim(name, "%", bound, "a test", measure, **options)


def test_bounds():
    assert at_most(0.1).holds(0.1)
    assert not at_most(0.1).holds(0.1001)
    assert at_least(3).holds(3)
    assert not at_least(3).holds(2.9999)
    assert str(at_least(300_000)) == ">= 300000"
    assert not at_most(1).holds(math.nan)


def test_a_measurement_that_fails_does_not_hold():
    entry = run.run_claim(claim("x", NearsideError("it broke"), at_most(1)), Context())
    assert (entry["holds"], entry["value"], entry["error"]) == (False, None, "it broke")
    entry = run.run_claim(claim("x", math.nan, at_most(1)), Context())
    assert (entry["holds"], entry["value"]) == (False, None)
    json.dumps(entry, allow_nan=False)


def test_a_quick_run_may_have_a_bound_of_its_own():
    counted = claim("x", 5, at_least(10), quick_bound=at_least(4))
    quick, full = (run.run_claim(counted, Context(quick=quick)) for quick in (True, False))
    assert (quick["bound"], quick["holds"]) == (">= 4", True)
    assert (full["bound"], full["holds"]) == (">= 10", False)
    assert run.run_claim(claim("y", 5, at_least(10)), Context(quick=True))["bound"] == ">= 10"


def test_entries_say_everything():
    entry = run.run_claim(claim("x.y", Measured(0.5, "why"), at_most(1), paper="P: 2 %"), Context(quick=True, seed=7))
    assert entry["holds"]
    assert {k: entry[k] for k in ("value", "unit", "bound", "paper", "seed", "engine", "time", "detail")} == {
        "value": 0.5, "unit": "%", "bound": "<= 1", "paper": "P: 2 %", "seed": 7, "engine": "rtl",
        "time": "simulated", "detail": "why",
    }  # fmt: skip
    assert entry["duration_s"] >= 0


def test_claims_of_one_run_share_it():
    context = Context()
    calls = []
    for _ in range(3):
        context.once("key", lambda: calls.append(1))
    assert calls == [1]

    def fail():
        calls.append(2)
        raise NearsideError("it broke")

    for _ in range(3):
        with pytest.raises(NearsideError, match="it broke"):
            context.once("other", fail)
    assert calls == [1, 2]
    assert Context(quick=True).commands(1000) == 250


def test_find_by_name_prefix_and_pattern():
    assert [c.name for c in registry.find(["pm.coherence"])] == ["pm.coherence"]
    bandwidths = [c.name for c in registry.find(["nvme.*.bandwidth"])]
    assert len(bandwidths) == 12
    assert {"nvme.sizes", *bandwidths} <= {c.name for c in registry.find(["nvme"])}
    assert len(registry.find([])) == len(registry.all_claims())
    with pytest.raises(NearsideError, match="no claim is called"):
        registry.find(["nvm"])


def test_every_claim_is_complete():
    for c in registry.all_claims().values():
        assert c.text.endswith("."), c.name
        assert c.unit, c.name
        assert c.time in ("simulated", "wall-clock", "none"), c.name
        assert c.engine in ("rtl", "sim", "yosys"), c.name


def test_names_are_unique():
    with pytest.raises(ValueError, match=r"pm\.coherence"):
        registry.claim("pm.coherence", "%", at_most(1), "again")(lambda context: 0)


def test_the_report_shows_what_does_not_hold():
    claims = [claim("nvme.good", Measured(1, "fine"), at_most(2)), claim("nvme.bad", NearsideError("no"), at_most(2))]
    told = []
    doc = run.run_claims(claims, quick=True, seed=3, tell=told.append)
    assert [e["name"] for e in told] == ["nvme.good", "nvme.bad"]
    assert not doc["holds"]
    page = report.markdown(doc)
    assert "1 of 2 claims hold" in page
    assert "| **no** |" in page
    assert "quick variants, seed 3" in page
    assert "`nvme.bad`: no" in page
    assert doc["design"]["hash"][:16] in page
    assert f"revision {doc['revision']}, " in page
    assert "Not measured: `dram." in page


def test_a_report_of_two_runs():
    """The later one counts; each claim says whose it is."""
    first = run.run_claims(
        [claim("pm.coherence", Measured(7, "stale"), at_most(2)), claim("nvme.sizes", Measured(1), at_most(2))],
        False,
        1,
    )
    second = run.run_claims([claim("pm.coherence", Measured(1, "new"), at_most(2))], False, 1)
    page = report.markdown(first, second)
    assert "2 of 2 claims hold" in page
    assert "Run 1: 1 claims" in page
    assert "Run 2: 1 claims" in page
    assert page.index("| `nvme.sizes`") < page.index("| `pm.coherence`"), "in the order of the catalogue"
    assert "simulated, run 2" in page
    assert "`pm.coherence`: new" in page
    assert "stale" not in page


def test_numbers():
    assert report.number(300000.0) == "300,000"
    assert report.number(0.00123456) == "0.001235"
    assert report.number(None) == "-"
