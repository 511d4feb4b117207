# SPDX-License-Identifier: Apache-2.0
"""Programs with libpmemobj in tracked pools: the device records lines before they change, without commands."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess

import pytest
from nearside import NearsideError, pmdk, pmdk_crash
from pmdk_programs import steps_of

KINDS = ["btree", "rbtree", "skiplist", "hashmap", "list"]
CALM, ABORTING = 2, 3
FALLS_BACK = "nearside: a pool is no longer tracked"


def run(place, pools, seed, steps, threads=1, **options):
    """To the end: its messages, and the counts of the shim."""
    process = place.start(pools, seed, steps, threads, tracked="auto", **options)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return err, pmdk.read_report(place.folder / "report.json")


@pytest.mark.parametrize("kind", KINDS)
def test_pmdk_tracked_kills_leave_whole_transactions(place, kind):
    """Also aborted and nested ones. The next opening is with tracking or without it."""
    pools = place.pools(kind)
    err, counts = run(place, pools, ABORTING, 20)
    # The device makes the records: the shim requests none.
    assert (err, counts["records"]) == ("", 0)
    assert counts["commits"] >= 20
    assert (counts["aborts"] > 0) == (kind != "list")
    draw = random.Random(7)
    reported, before = {(0, 0): 20}, {(0, 0): 20}
    for turn in range(8):
        process = place.start(pools, ABORTING, 1 << 30, tracked="auto", kill=1 + draw.randrange(700))
        output, err = process.communicate(timeout=600)
        assert (process.returncode, err) == (-signal.SIGKILL, "")
        reported = before | steps_of(output)
        # The check opens it without tracking every other time.
        command = [place.program, "check", str(ABORTING), *pools]
        variables = place.environment(tracked="auto" if turn % 2 else "never")
        checked = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600)
        assert (checked.returncode, checked.stderr) == (0, "")
        done = steps_of(checked.stdout)
        assert reported[0, 0] <= done[0, 0] <= reported[0, 0] + 1
        before = done
    place.remove(pools)


def test_pmdk_tracked_ends_with_a_second_thread(place):
    pools = place.pools("btree", "hashmap")
    err, counts = run(place, pools, ABORTING, 40, threads=2)
    assert err.count(FALLS_BACK) == 2
    assert counts["records"] > counts["commits"] > 0
    done, wrong = place.check(pools, ABORTING)
    assert wrong == ""
    assert all(done[pool, thread] == 40 for pool in range(2) for thread in range(2))
    place.remove(pools)


@pytest.mark.parametrize("way", ["commit", "abort", "begun"])
def test_pmdk_tracked_transaction_with_many_lines(place, compiled, tmp_path, way):
    """2,000 lines: the transaction goes on by commands, and is whole, or not there."""
    pool = tmp_path / "pool"
    command = [compiled("large"), pool, way]
    done = subprocess.run(command, env=place.environment(tracked="auto"), capture_output=True, text=True, timeout=600)
    assert FALLS_BACK in done.stderr
    assert done.returncode == (-signal.SIGKILL if way == "begun" else 0)
    for tracked in ("auto", "never"):
        variables = place.environment(tracked=tracked)
        check = [compiled("large"), pool, "check"]
        found = subprocess.run(check, env=variables, capture_output=True, text=True, timeout=600)
        assert (found.returncode, found.stderr) == (0, "")
        assert found.stdout == ("2000 new, 0 old\n" if way == "commit" else "0 new, 2000 old\n")
    pool.unlink()


def test_pmdk_tracked_program_behaves_as_before(place, compiled, tmp_path):
    command = [compiled("calls"), tmp_path / "pool"]
    alone = os.environ | {"PMEM_IS_PMEM_FORCE": "1"}
    bare = subprocess.run(command, env=alone, capture_output=True, text=True, timeout=600)
    (tmp_path / "pool").unlink()
    done = subprocess.run(command, env=place.environment(tracked="auto"), capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout) == (0, bare.stdout)
    assert all(line.startswith(FALLS_BACK) for line in done.stderr.splitlines())
    (tmp_path / "pool").unlink()


@pytest.mark.parametrize("kind", ["btree", "list"])
def test_pmdk_tracked_power_cuts(structures, kind):
    pool = f"{kind}:{{}}/pool"
    check = shlex.join([str(structures), "check", "3", pool])
    program = [str(structures), "run", "3", "15", "1", pool]
    doc = pmdk_crash.run_campaign(program, check, "device", "sampled:25", tracked="auto")
    assert (doc["violated"], doc["violation"]) == (0, None)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
def test_pmdk_tracked_power_cuts_detect_missing_records(structures, seed):
    pool = "btree:{}/pool"
    check = shlex.join([str(structures), "check", "3", pool])
    program = [str(structures), "run", "3", "3", "1", pool]
    options = {"tracked": "auto", "without": "snapshots", "seed": seed}
    # At each moment: a sample may have none at which a part of a transaction is on the device.
    doc = pmdk_crash.run_campaign(program, check, "device", "all", **options)
    assert doc["violated"] > 0


def test_pmdk_tracked_gain(structures):
    program = [str(structures), "run", "2", "60", "1", "{each}:{}/pool"]
    docs = pmdk.measure_gains(program, ["btree", "hashmap"], model="fast")
    for doc in docs.values():
        tracked, ordered = doc["tracked"], doc["offloaded_ordered"]
        assert tracked["tracked"] == tracked["transactions"] == doc["alone"]["transactions"] == 61
        assert tracked["ns"] < ordered["ns"] < doc["offloaded"]["ns"] < doc["alone"]["ns"]
        assert doc["alone_ordered"]["ns"] < doc["alone"]["ns"]
        assert 0 < tracked["most_lines"] <= 1024
        assert all(cost["whole_ns"] > cost["ns"] * 0.9 for cost in (tracked, ordered, doc["alone"]))
    threads = [str(structures), "run", "2", "10", "2", "btree:{}/pool"]
    assert pmdk.measure_gain(threads, model="fast")["tracked"]["tracked"] == 0
    assert pmdk.measure_gain(threads, model="fast", tracked="never")["tracked"] is None


def test_pmdk_tracked_bad_arguments(structures):
    program = [str(structures), "run", "2", "10", "1", "btree:{}/pool"]
    with pytest.raises(NearsideError, match="tracked = maybe: allowed is auto, never"):
        pmdk.measure_gain(program, tracked="maybe")
    with pytest.raises(NearsideError, match="allowed for logs by the device"):
        pmdk_crash.run_campaign(program, None, "cpu", "sampled:1", tracked="auto")
    with pytest.raises(NearsideError, match="arguments lack"):
        pmdk.measure_gains(program, ["btree"])
    with pytest.raises(NearsideError, match="has no crash-consistency engine"):
        pmdk.measure_gain(program, design="dram")
