# SPDX-License-Identifier: Apache-2.0
"""Unmodified programs with libpmemobj whose logs a device keeps: they behave as without it, and survive `kill -9`."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nearside import NearsideError, pmdk
from pmdk_programs import Place, steps_of

KINDS = ["btree", "rbtree", "skiplist", "hashmap", "list"]
# With an odd seed some steps are aborted before they are complete.
CALM, ABORTING = 2, 3


def acknowledged(process: subprocess.Popen[str], lines: int, pause_s: float) -> dict[tuple[int, int], int]:
    """Kills a program some time after a number of lines; returns the steps that it has reported as complete."""
    output = "".join(process.stdout.readline() for _ in range(lines))
    time.sleep(pause_s)
    process.send_signal(signal.SIGKILL)
    output += process.stdout.read()  # the result of `communicate` lacks data that were read ahead
    process.communicate(timeout=600)
    return steps_of(output)


def kill_often(
    place: Place, pools: list[str], seed: int, threads: int, rounds: int, draw: random.Random, **options
) -> str:
    """Kills a program at random moments, and checks each time; returns the first fault, or None."""
    before: dict[tuple[int, int], int] = {}
    for _ in range(rounds):
        process = place.start(pools, seed, 1 << 30, threads, **options)
        reported = before | acknowledged(process, draw.randrange(1, 40), draw.random() * 0.004)
        done, wrong = place.check(pools, seed)
        if wrong:
            return wrong
        for key, steps in reported.items():
            assert steps <= done[key] <= steps + 1, (key, reported, done)
        before = done
    return ""


def kill_at_moments(place: Place, pools: list[str], seed: int, rounds: int, draw: random.Random, **options) -> str:
    """Kills a program at random moments between calls of libpmemobj and the device, including recovery."""
    opening = place.run(pools, seed, 0)["moments"]
    before: dict[tuple[int, int], int] = {}
    for _ in range(rounds):
        process = place.start(pools, seed, 1 << 30, kill=1 + draw.randrange(opening + 150), **options)
        output, err = process.communicate(timeout=600)
        assert (process.returncode, err) == (-signal.SIGKILL, "")
        reported = before | steps_of(output)
        done, wrong = place.check(pools, seed)
        if wrong:
            return wrong
        for key, steps in reported.items():
            assert steps <= done[key] <= steps + 1, (key, reported, done)
        before = done
    return ""


def test_pmdk_transactions_and_recovery(place):
    pools = place.pools(*KINDS[:4])
    counts = place.run(pools, ABORTING, 100, threads=2)
    assert counts["commits"] >= 4 * 2 * 100
    assert counts["aborts"] > 50
    assert counts["records"] > counts["commits"]
    assert counts["ranges_repeated"] > 0
    assert counts["ranges_left_to_libpmemobj"] == 0
    done, wrong = place.check(pools, ABORTING)
    assert wrong == ""
    assert all(done[pool, thread] == 100 for pool in range(4) for thread in range(2))
    place.remove(pools)


def test_pmdk_program_behaves_as_before(place, compiled, tmp_path):
    """Aborts in all ways, nesting, callbacks, locks, large ranges, more threads than logs, wrong arguments."""
    command = [compiled("calls"), tmp_path / "pool"]
    alone = os.environ | {"PMEM_IS_PMEM_FORCE": "1"}
    bare = subprocess.run(command, env=alone, capture_output=True, text=True, timeout=600)
    assert (bare.returncode, bare.stderr) == (0, "")
    (tmp_path / "pool").unlink()
    done = subprocess.run(command, env=place.environment(), capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == bare.stdout
    assert (tmp_path / "pool").stat().st_blocks * 512 <= 4096  # its contents are on the device
    (tmp_path / "pool").unlink()
    counts = json.loads((place.folder / "report.json").read_text())
    assert counts["ranges_left_to_libpmemobj"] > 0  # beyond a log, or a 17th transaction at once
    assert counts["records"] > counts["commits"] > 50
    assert counts["aborts"] > 50


def same_as_alone(place: Place, program: Path, *pools: Path) -> str:
    """The output of a program with the shim and without it."""

    def reported(environment: dict[str, str]) -> str:
        done = subprocess.run([program, *pools], env=environment, capture_output=True, text=True, timeout=600)
        assert (done.returncode, done.stderr) == (0, "")
        for path in pools:
            path.unlink()
        return done.stdout

    bare = reported(os.environ | {"PMEM_IS_PMEM_FORCE": "1"})
    assert reported(place.environment()) == bare
    return bare


def test_pmdk_objects_of_another_pool(place, compiled, tmp_path):
    """libpmemobj refuses them; a new object of the same transaction at that place stays new, and has no record."""
    same_as_alone(place, compiled("foreign"), tmp_path / "pool", tmp_path / "another")
    assert json.loads((place.folder / "report.json").read_text())["records"] == 0


def test_pmdk_deferred_frees_create_nothing(place, compiled, tmp_path):
    """Objects to be published need records, except reservations."""
    printed = same_as_alone(place, compiled("deferred"), tmp_path / "pool").splitlines()
    assert [line.split(": ")[1] for line in printed] == ["0 0 0"] * 4
    # Only the reservation has none.
    assert json.loads((place.folder / "report.json").read_text())["records"] == 3 * 4


def test_pmdk_reserved_objects_of_others_are_not_written(place, compiled, tmp_path):
    assert same_as_alone(place, compiled("reserved"), tmp_path / "pool") == "allocated some, overwritten 0\n"
    counts = json.loads((place.folder / "report.json").read_text())
    assert counts["records"] == 0 < counts["ranges_left_to_libpmemobj"] == counts["transactions"]


def test_pmdk_crash_consistency_cost(structures):
    program = [str(structures), "run", "2", "60", "1", "btree:{}/pool"]
    docs = {fence: pmdk.measure_gain(program, fence=fence, model="fast") for fence in ("read_back", "posted")}
    for doc in docs.values():
        alone, offloaded = doc["alone"], doc["offloaded"]
        assert alone["transactions"] == offloaded["transactions"] == 61
        assert alone["lines"] > 0
        assert alone["commands"] == 0 < offloaded["commands"]
        # The device's records are neither copied nor fenced by the CPU.
        assert offloaded["streamed"] < alone["streamed"]
        assert offloaded["fences"] < alone["fences"]
        assert doc["ratio"] > 1
    assert docs["posted"]["alone"]["ns"] < docs["read_back"]["alone"]["ns"]
    for words, text in [
        (["true"], "lack {}"),
        (["true", "{}"], "no transaction"),
        (["false", "{}"], "exit status 1"),
        (["/no/program", "{}"], "No such file"),
    ]:
        with pytest.raises(NearsideError, match=re.escape(text)):
            pmdk.measure_gain(words, model="fast")


def test_pmdk_absent_device_is_named(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(NearsideError, match=f"^{re.escape(str(path))}: no device is served there"):
            pmdk.run_on_device(["true"], socket=path)


def test_pmdk_child_processes_cost_nothing(compiled):
    program = [str(compiled("ways")), "run", "{}/pool", "obj_persist"]
    without = pmdk.measure_gain([*program, "obj_persist"], model="fast", tracked="never")
    doc = pmdk.measure_gain([*program, "obj_persist_with_processes"], model="fast", tracked="never")
    assert {**doc, "program": None} == {**without, "program": None}
    # A script that starts it costs nothing, either.
    doc = pmdk.measure_gain(
        ["/bin/sh", "-c", f"true; {shlex.join([*program, 'obj_persist'])}; true"], model="fast", tracked="never"
    )
    assert {**doc, "program": None} == {**without, "program": None}


@pytest.mark.slow
def test_pmdk_command(structures, tmp_path):
    command = [sys.executable, "-m", "nearside.cli", "pmdk", "run", "--json", "--"]
    command += [structures, "run", "3", "20", "1", f"rbtree:{tmp_path}/pool"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0
    doc = json.loads(done.stdout)
    assert doc["program"] == [str(word) for word in command[7:]]
    assert doc["done"]["commits"] >= 20
    assert done.stderr.splitlines()[-1] == "0 0 20"
    done = subprocess.run([*command[:5], "--", "false"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 1
    assert "no transaction of libpmemobj" in done.stdout
    done = subprocess.run([*command[:5], "--", "/no/program"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 1
    assert done.stderr == "nearside: /no/program: No such file or directory\n"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_pmdk_kills_at_any_time(place, kind):
    pools = place.pools(kind)
    assert kill_often(place, pools, ABORTING, 2, 2, random.Random(kind)) == ""
    place.remove(pools)


@pytest.mark.slow
def test_pmdk_kills_of_several_pools_with_several_threads(place):
    pools = place.pools("btree", "hashmap", "list")
    assert kill_often(place, pools, ABORTING, 3, 3, random.Random(1)) == ""
    place.remove(pools)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_pmdk_kills_at_moments(place, kind):
    pools = place.pools(kind)
    assert kill_at_moments(place, pools, ABORTING, 4, random.Random(kind)) == ""
    place.remove(pools)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["btree", "hashmap"])
def test_pmdk_kills_without_snapshots_are_detected(place, kind):
    """The negative control: the same kills find that the old bytes are lost."""
    pools = place.pools(kind)
    assert kill_at_moments(place, pools, CALM, 60, random.Random(kind), without="snapshots") != ""
    place.remove(pools)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [ABORTING, CALM, 5, 7])
def test_pmdk_many_kills(place, kind, seed):
    pools = place.pools(kind)
    draw = random.Random(f"{kind} {seed}")
    assert kill_at_moments(place, pools, seed, 250, draw) == ""
    assert kill_often(place, pools, seed, 3, 50, draw) == ""
    place.remove(pools)
