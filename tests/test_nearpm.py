# SPDX-License-Identifier: Apache-2.0
"""The experiments of NearPM's figures: comparisons give the same guarantee, and small runs of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nearside.experiments import (
    document,
    nearpm,
    nearpm_fig15,
    nearpm_fig16,
    nearpm_fig16_devices,
    nearpm_fig17,
    nearpm_programs,
)
from nearside.experiments import run as runs
from nearside.experiments.registry import find

# The guarantee when a transaction's commit has returned, by what fences wait for.
PROMISE = {"read_back": "durable", "ordered": "durable", "posted": "relaxed"}
BOTH = ["nearpm-paper", "nearpm"]
SMALL = {
    "nearpm_fig15": {"runs": 1, "inserts": 20, "designs": BOTH},
    "nearpm_fig16_devices": {"runs": 1, "inserts": 20},
    "nearpm_fig17": {"runs": 2, "bytes": [64, 1024], "count": 2},
    "nearpm_later": {"runs": 1, "transactions": 16, "workloads": ["btree"]},
    "nearpm_programs": {"runs": 1, "transactions": 10, "workloads": ["btree"]},
    "nearpm_tracked": {"runs": 1, "transactions": 10, "inserts": 20, "workloads": ["btree", "redis"], "threads": [2]},
}


def test_nearpm_ratio_sides_give_the_same_guarantee():
    who = nearpm_fig15.WHO
    for cpu, engine in nearpm_fig15.RATIOS.values():
        assert (who[cpu][0], who[engine][0]) == (False, True)
        assert PROMISE[who[cpu][1]] == PROMISE[who[engine][1]]
    pairs = [*nearpm_fig16.RATIOS.values(), *(own[:2] for own in nearpm_programs.CONFIGURATIONS.values())]
    assert all(PROMISE[cpu] == PROMISE[engine] for cpu, engine in pairs)
    # Only an engine has commands, whose order it keeps.
    assert all(engine != "ordered" for _, engine in pairs)


def test_nearpm_copy_ratio_is_of_copies():
    """An accepted command is not a copy: it has a time, and no speed-up."""
    row = {"bytes": 64, "ended": 1.5, "cached": 2.0, "accepted_ns": 480.0, "limit": 60.0}
    figures = {f["name"]: f for f in nearpm_fig17.figures([row])}
    assert {name for name, f in figures.items() if f["unit"] == "x"} == {"64.ended", "64.cached"}
    assert (figures["64.accepted"]["unit"], figures["64.accepted"]["paper"]) == ("ns", None)


def test_nearpm_cpu_has_as_many_devices_as_is_fastest():
    assert [nearpm.counts(n) for n in (1, 2, 4)] == [[1], [1, 2], [1, 2, 4]]
    assert nearpm.fastest([{"ns": 3.0, "n": 1}, {"ns": 2.0, "n": 2}])["n"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_nearpm_small_run(name, tmp_path, monkeypatch):
    monkeypatch.setenv("NEARSIDE_RESULTS", str(tmp_path))
    doc = runs.run(replace(find(name), quick=SMALL[name]), "fast", quick=True, seed=3)
    assert doc["status"] == "complete"
    loaded = document.load(tmp_path / f"experiments/{name}.fast.json")
    assert loaded["plots"]
    assert all(figure["value"] >= 0 for figure in loaded["figures"])
    names = {figure["name"] for figure in loaded["figures"]}
    if name == "nearpm_fig15":
        # A design of two channels keeps no order that a CPU could rely on.
        assert {"nearpm-paper.undo.ordered", "nearpm-paper.undo.durable.whole", "nearpm.undo.durable"} <= names
        assert not any(one.startswith("nearpm.") and "ordered" in one for one in names)
    if name == "nearpm_fig16_devices":
        # A faster CPU makes a gain smaller.
        rows = loaded["rows"]
        each = nearpm_fig16_devices.CONFIGURATIONS
        assert all(row[f"{one}_cpu_ns"] <= row["one_cpu_ns"] for row in rows for one in each)
    if name == "nearpm_later":
        # A group costs latency, and saves what its transactions share.
        for row in loaded["rows"]:
            assert row["regions_durable_1"] < row["regions_durable_4"] < row["regions_durable_16"]
            assert row["regions_same_16"] < row["regions_durable_16"]
            for side in ("device", "cpu"):
                means = [row[f"{side}_acknowledged_ns_{group}"] for group in (1, 4, 16)]
                assert means == sorted(means)
                assert row[f"{side}_acknowledged_p99_ns_16"] >= means[-1]
