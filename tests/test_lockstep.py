# SPDX-License-Identifier: Apache-2.0
"""Lockstep runs: the RTL and its fast model with the same input, from Python and the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from nearside import NearsideError, _native, differential, fuzzing

DIFF = {"commands": 20, "seed": 1, "first_episode": 0, "replay": None, "shrinks": 2, "per_episode": 20}


def test_lockstep_rtl_and_fast_model_are_equal():
    doc = differential.run_campaign(differential.load_design("fuzz"), 600, 1)
    assert doc["mismatches"] == 0, doc["failure"]
    assert doc["commands"] >= 600
    assert any(name.startswith("io 02 ") for name in doc["outcomes"])


def test_lockstep_replay_runs_its_steps_only():
    doc = differential.run_campaign(differential.load_design("fuzz"), 600, 1, replay="1:0:0-3", models=("fast", "fast"))
    assert (doc["episodes"], doc["steps"], doc["mismatches"]) == (1, 4, 0)


def test_lockstep_report_is_printed_with_latencies(capsys):
    doc = differential.run_campaign(differential.load_design("fuzz"), 100, 1, models=("fast", "fast"))
    assert doc["latencies"]
    fuzzing.print_report(doc)
    printed = capsys.readouterr().out
    for text in ("compared bytes", *doc["latencies"]):
        assert text in printed


def test_lockstep_refuses_what_cannot_be_compared():
    design = differential.load_design("fuzz")
    with pytest.raises(NearsideError, match="is no replay"):
        differential.run_campaign(design, 10, 1, replay="1")
    with pytest.raises(NearsideError, match="allowed are"):
        differential.run_campaign(design, 10, 1, models=("rtl", "slow"))
    with pytest.raises(NearsideError, match="at least 1 is needed"):
        differential.run_campaign(design, 10, 1, per_episode=0)
    with pytest.raises(NearsideError, match=r"^media\.bytes = "):
        differential.run_campaign(differential.load_design("default"), 10, 1)


@pytest.mark.parametrize("key", DIFF)
def test_lockstep_hostile_arguments(key):
    design = differential.load_design("fuzz").native
    for value in (-1, 1 << 64, "x", b"1", 1.5, [], object()):
        with pytest.raises((NearsideError, TypeError, OverflowError, ValueError)):
            _native.diff(design, **DIFF | {"models": ("fast", "fast")} | {key: value})


def test_lockstep_command():
    command = [sys.executable, "-m", "nearside.cli", "diff", "--commands", "100", "--json"]
    doc = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert doc["commands"] >= 100
    assert doc["mismatches"] == 0
    command = [sys.executable, "-m", "nearside.cli", "diff", "--replay", "7:3:5-2"]
    reported = subprocess.run(command, capture_output=True, text=True)
    assert reported.returncode == 1
    assert "is no replay" in reported.stderr
