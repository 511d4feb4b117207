# SPDX-License-Identifier: Apache-2.0
"""The machinery of claims: it must be able to reject a claim."""

from __future__ import annotations

import json
import math
import re
from contextlib import nullcontext
from pathlib import Path

import pytest
import typer
from nearside._native import NearsideError
from nearside.claims import cli, registry, report, run
from nearside.claims.registry import Claim, Context, Measured, Published, at_least, at_most
from nearside.device import model_of, root


def claim(name, value, bound, **options):
    def measure(context):
        if isinstance(value, BaseException):
            raise value
        return value

    return Claim(name, "%", bound, "a test", measure, **options)


def test_claim_bounds():
    assert at_most(0.1).holds(0.1)
    assert not at_most(0.1).holds(0.1001)
    assert at_least(3).holds(3)
    assert not at_least(3).holds(2.9999)
    assert str(at_least(300_000)) == ">= 300000"
    assert not at_most(1).holds(math.nan)


def test_claim_measurement_that_fails_does_not_hold():
    entry = run.run_claim(claim("x", NearsideError("it broke"), at_most(1)), Context())
    assert (entry["holds"], entry["value"], entry["error"]) == (False, None, "it broke")
    entry = run.run_claim(claim("x", math.nan, at_most(1)), Context())
    assert (entry["holds"], entry["value"]) == (False, None)
    json.dumps(entry, allow_nan=False)


class Panic(BaseException):
    """As raised by the native module."""


@pytest.mark.parametrize("failure", [ValueError("odd"), ZeroDivisionError(), MemoryError(), Panic("overflow")])
def test_claim_exception_does_not_end_the_run(failure):
    entry = run.run_claim(claim("x", failure, at_most(1)), Context())
    assert (entry["holds"], entry["value"]) == (False, None)
    assert entry["error"].startswith(f"{type(failure).__name__}: {failure}")
    assert "test_claims.py:" in entry["error"]
    for value in ("no number", None, [1]):
        entry = run.run_claim(claim("x", value, at_most(1)), Context())
        assert (entry["holds"], entry["error"] is None) == (False, False)


def test_claim_is_saved_after_each_measurement():
    saved = []
    claims = [claim("a", 1, at_most(2)), claim("b", ValueError("odd"), at_most(2)), claim("c", 1, at_most(2))]
    claims.append(claim("d", KeyboardInterrupt(), at_most(2)))
    with pytest.raises(KeyboardInterrupt):
        run.run_claims(claims, True, 1, save=lambda doc: saved.append(json.loads(json.dumps(doc))))
    assert [[e["name"] for e in doc["claims"]] for doc in saved] == [["a"], ["a", "b"], ["a", "b", "c"]]
    assert [doc["holds"] for doc in saved] == [True, False, False]


def test_claim_run_on_the_command_line_survives_a_failure(monkeypatch, tmp_path, capsys):
    def stopped(context):
        raise KeyboardInterrupt

    monkeypatch.setenv("NEARSIDE_RESULTS", str(tmp_path))
    claims = [claim("dram.a", 1, at_most(2)), claim("dram.b", ValueError("odd"), at_most(2))]
    monkeypatch.setattr(cli, "find", lambda names: claims)
    page = tmp_path / "page.md"
    for exit_zero in (False, True):
        with pytest.raises(typer.Exit) if not exit_zero else nullcontext() as end:
            cli.run(report=page, exit_zero=exit_zero)
        assert exit_zero or end.value.exit_code == 1
        out = capsys.readouterr().out
        assert "DO NOT HOLD: dram.b" in out
        assert "1 of 2 hold" in out
    assert "| **no** |" in page.read_text()
    claims.append(Claim("dram.c", "%", at_most(2), "a test", stopped))
    with pytest.raises(KeyboardInterrupt):
        cli.run(report=page)
    saved = report.load(tmp_path / "claims.json")
    assert [e["name"] for e in saved["claims"]] == ["dram.a", "dram.b"]
    assert "1 of 2 claims hold" in page.read_text()


def test_claim_after_a_failure_gets_another_device():
    context = Context()
    made = []

    def use(context):
        context.once(("device", ""), lambda: made.append(1))
        context.once("figures", lambda: made.append(2))
        raise ValueError("odd")

    for _ in range(2):
        run.run_claim(Claim("x", "%", at_most(1), "a test", use), context)
    assert made == [1, 2, 1]


def test_claim_failure_does_not_stop_make_docs():
    recipe = (Path(__file__).parent.parent / "Makefile").read_text().partition("\ndocs:")[2].partition("\n\n")[0]
    assert "claim run --report docs/validation.md --exit-zero" in recipe


def test_claim_quick_run_may_have_another_bound():
    counted = claim("x", 5, at_least(10), quick_bound=at_least(4))
    quick, full = (run.run_claim(counted, Context(quick=quick)) for quick in (True, False))
    assert (quick["bound"], quick["holds"]) == (">= 4", True)
    assert (full["bound"], full["holds"]) == (">= 10", False)
    assert run.run_claim(claim("y", 5, at_least(10)), Context(quick=True))["bound"] == ">= 10"


def test_claim_entry_is_complete():
    stated = Published("2 %", "P, section 1", "on hardware", 2.0)
    reported = {"paper": stated, "clocks": "from here to there."}
    entry = run.run_claim(claim("x.y", Measured(0.5, "why"), at_most(1), **reported), Context(quick=True, seed=7))
    assert entry["holds"]
    keys = ("value", "unit", "bound", "paper", "differs", "reaches", "clocks", "seed", "engine", "time", "detail")
    assert {k: entry[k] for k in keys} == {
        "value": 0.5, "unit": "%", "bound": "<= 1", "paper": "2 % (P, section 1)", "differs": "on hardware",
        "reaches": True, "clocks": "from here to there.", "seed": 7, "engine": "rtl", "time": "simulated",
        "detail": "why",
    }  # fmt: skip
    assert entry["duration_s"] >= 0


@pytest.mark.parametrize("asked", ["rtl", "fast"])
def test_claim_is_measured_on_its_model(asked, monkeypatch):
    monkeypatch.setenv("NEARSIDE_MODEL", asked)
    for named, used in (("rtl", "rtl"), ("fast", "fast"), ("fast and rtl", "rtl")):
        found = []

        def measure(_context, found=found):
            found.append(model_of(None))
            return 0.0

        run.run_claim(Claim("x", "%", at_most(1), "a test", measure, model=named), Context())
        assert found == [used]
    assert model_of(None) == asked


def test_claim_run_shares_measurements():
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


def test_claim_is_found_by_name_prefix_and_pattern():
    assert [c.name for c in registry.find(["pm.coherence"])] == ["pm.coherence"]
    bandwidths = [c.name for c in registry.find(["nvme.*.bandwidth"])]
    assert len(bandwidths) == 12
    assert {"nvme.sizes", *bandwidths} <= {c.name for c in registry.find(["nvme"])}
    assert len(registry.find([])) == len(registry.all_claims())
    with pytest.raises(NearsideError, match="no claim is called"):
        registry.find(["nvm"])


def test_claim_list_is_complete():
    for c in registry.all_claims().values():
        assert c.text.endswith("."), c.name
        assert c.unit, c.name
        assert c.time in ("simulated", "wall-clock", "none"), c.name
        assert c.model in ("rtl", "fast", "fast and rtl", "sim", "yosys"), c.name


def test_claim_comparison_states_the_events_of_both_clocks():
    """Ratios, and claims beside a paper's figure; the latter also state how the paper's measurement differs."""
    for c in registry.all_claims().values():
        if c.unit == "x" or c.paper:
            assert c.clocks.endswith("."), c.name
        if c.paper:
            assert c.paper.differs, c.name
            assert c.paper.source, c.name
            assert c.paper.text, c.name


@pytest.mark.parametrize("word", ["best of", "fastest of", "joule", "energy"])
def test_claim_text_has_no_superlatives_nor_unmeasured_power(word):
    """A median or a mean is stated; the paper's watts times our seconds are not a figure of this project."""
    assert [c.name for c in registry.all_claims().values() if word in c.text or word in c.name] == []


def test_claim_baselines_begin_with_the_strongest():
    names = [name.split(".")[-1] for name in registry.all_claims() if name.startswith("sort.system.wide.")]
    assert names == ["card_overlapped", "cpu_overlapped", "card_one_by_one", "flat"]


@pytest.mark.parametrize(
    ("bound", "paper", "value", "reaches"),
    [
        (at_least(2), 3.0, 2.99, True),
        (at_least(2), 3.0, 2.9, False),
        (at_most(2), 1.0, 1.0049, True),
        (at_most(2), 1.0, 1.1, False),
        (at_most(2), None, 1.1, None),
    ],
)
def test_claim_reaching_a_published_figure_differs_from_the_bound(bound, paper, value, reaches):
    stated = Published("so much", "P, section 1", "on hardware", paper)
    entry = run.run_claim(claim("nearpm.x", value, bound, paper=stated), Context())
    assert entry["reaches"] is reaches
    page = report.markdown(run.run_claims([claim("nearpm.x", value, bound, paper=stated)], False, 1))
    assert ("Less good than the paper's: `nearpm.x`" in page) is (reaches is False)
    assert ("1 claims beside a figure of a paper 1 are" in page) is (reaches is True)
    assert "| so much (P, section 1)<br>" in page
    assert "on hardware |" in page


ROW = re.compile(r"^\| `([\w.-]+)`<br>.*? \| ([\d.,e+-]+) .*?\| ([<>]=) (\S+) \| (yes|\*\*no\*\*) \|", re.MULTILINE)
# Rows of other pages that end with a claim, preceded by its value: | ... | 2.52 x |
# `nearpm.copy.16384.paper` |
CITED = re.compile(r"\| ([\d.,]+)(?: [^|`]*)? \| `(\w+\.[\w.-]+)` \|$", re.MULTILINE)
PAGES = sorted(path for folder in ("docs", "hw", "crates", ".") for path in root().joinpath(folder).glob(
    "*.md" if folder == "." else "**/*.md"))  # fmt: skip


def validation() -> dict[str, tuple[float, bool, str]]:
    """The claims of docs/validation.md: value, whether it holds, and the bound."""
    page = (root() / "docs" / "validation.md").read_text()
    rows = ROW.findall(page)
    return {
        name: (float(value.replace(",", "")), holds == "yes", f"{sign} {limit}")
        for name, value, sign, limit, holds in rows
    }


def test_claim_validation_page_has_these_claims_and_bounds():
    """A claim whose bound or name has changed must be measured again."""
    measured, claims = validation(), registry.all_claims()
    assert len(measured) > 300
    assert sorted(measured.keys() - claims.keys()) == []
    assert {name for name, (_, _, bound) in measured.items() if bound != str(claims[name].bound)} == set()
    assert {n for n, (value, holds, _) in measured.items() if claims[n].bound.holds(value) != holds} == set()


def test_claim_figures_in_pages_are_those_measured():
    """The value of a claim in a page's table is that of docs/validation.md, rounded."""
    measured, seen = validation(), set()
    for page in PAGES:
        for shown, name in CITED.findall(page.read_text()):
            assert name in measured, f"{page}: {name} is no claim of docs/validation.md"
            value = measured[name][0]
            digits = len(shown.partition(".")[2])
            # The page's value is rounded, too.
            off = abs(float(shown.replace(",", "")) - value)
            assert off <= 0.5 * 10**-digits + 5e-4 * abs(value), f"{page}: {name} is {value}, and not {shown}"
            seen.add(name)
    assert {"nearpm.copy.16384.paper", "sort.system.wide.card_overlapped", "nearpm.transaction.undo.ordered"} <= seen


def test_claim_names_are_unique():
    with pytest.raises(ValueError, match=r"pm\.coherence"):
        registry.claim("pm.coherence", "%", at_most(1), "again")(lambda context: 0)


def test_claim_without_a_quick_variant_is_measured_in_full():
    """The bound is that of a full run, too."""
    seen = []

    def measured(context):
        return context.once("same", lambda: seen.append(context.quick) or len(seen))

    whole, quick = (
        registry.Claim(name, "x", at_least(1), "", measured, quick=name == "quick", quick_bound=at_least(0))
        for name in ("whole", "quick")
    )
    doc = run.run_claims([whole, quick, whole], quick=True, seed=1)
    assert seen == [False, True]
    assert [e["bound"] for e in doc["claims"]] == [">= 1", ">= 0", ">= 1"]


def test_claim_report_shows_what_does_not_hold():
    claims = [claim("nvme.good", Measured(1, "fine"), at_most(2)), claim("nvme.bad", NearsideError("no"), at_most(2))]
    reported = []
    doc = run.run_claims(claims, quick=True, seed=3, report_claim=reported.append)
    assert [e["name"] for e in reported] == ["nvme.good", "nvme.bad"]
    assert not doc["holds"]
    page = report.markdown(doc)
    assert "1 of 2 claims hold" in page
    assert "| **no** |" in page
    assert "quick variants, seed 3" in page
    assert "`nvme.bad`: no" in page
    assert doc["design"]["hash"][:16] in page
    assert f"revision {doc['revision']}, " in page
    assert "Not measured: `dram." in page


def test_claim_report_of_two_runs():
    """The later run counts; each claim states its run."""
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


def test_claim_numbers():
    assert report.number(300000.0) == "300,000"
    assert report.number(0.00123456) == "0.001235"
    assert report.number(None) == "-"
