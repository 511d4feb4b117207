# SPDX-License-Identifier: Apache-2.0
"""`nearside crashtest -- PROGRAM`: programs and checks that do not end, and their output."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from nearside import NearsideError, pmdk_crash

# Longer than a busy machine needs for programs that end; only others reach it.
LIMIT_S = 3


def script(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def is_running(pid: str) -> bool:
    """Whether there is such a process; a zombie has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except OSError:
        return False


@pytest.mark.slow
def test_pmdk_limit_check_that_hangs_is_a_violation(compiled, tmp_path):
    """It is killed with its children, and the campaign continues."""
    ways, seen = compiled("ways"), tmp_path / "seen"
    text = f'{ways} check "$1/f" 2> /dev/null && exit; sleep 1000000 & echo $! >> {seen}; echo I walk; wait'
    command = [str(ways), "run", "{}/f", "nothing"]
    doc = pmdk_crash.run_campaign(
        command, f"{script(tmp_path, 'check', text)} {{}}", "cpu", "at:1/0,2/0,3/0", limit_s=LIMIT_S
    )
    assert (doc["cuts"], doc["ended"], doc["violated"], doc["not_ended"]) == (3, 0, 2, 2)
    assert doc["violation"]["what"] == f"the check has not ended within {LIMIT_S} s"
    assert doc["violation"]["output"] == ["I walk"]
    assert f"--limit {LIMIT_S} " in doc["violation"]["replay"]
    started = seen.read_text().split()
    assert len(started) == 2
    assert [pid for pid in started if is_running(pid)] == []


@pytest.mark.slow
def test_pmdk_limit_program_that_hangs_is_a_violation(compiled):
    """Without a power cut; a program that runs on after a power cut is killed, which is not a violation."""
    ways = compiled("ways")
    text = f'if test "$NEARSIDE_PMDK_KILL" = 3; then sleep 1000000; fi; {ways} run {{}}/f persist'
    check = f"{ways} check {{}}/f"
    doc = pmdk_crash.run_campaign(["/bin/sh", "-c", text], check, "cpu", "at:2,3,4", limit_s=LIMIT_S)
    assert (doc["cuts"], doc["violated"], doc["not_ended"]) == (3, 1, 1)
    what = f"the program has not ended within {LIMIT_S} s, and the power has not failed by then"
    assert doc["violation"]["what"] == what


def test_pmdk_limit_processes_without_power_are_not_awaited(compiled):
    """A part of the program that waits for the one that has lost its power."""
    ways = compiled("ways")
    text = f'{ways} run {{}}/f persist; if test -n "$NEARSIDE_PMDK_CRASH"; then sleep 1000000; fi'
    doc = pmdk_crash.run_campaign(["/bin/sh", "-c", text], f"{ways} check {{}}/f", "cpu", "at:2/0,3/0")
    assert (doc["cuts"], doc["ended"], doc["violated"]) == (2, 0, 0)


@pytest.mark.parametrize("who", ["the program", "the check"])
def test_pmdk_limit_program_that_hangs_with_power(compiled, who):
    ways = compiled("ways")
    program, check = ["/bin/sh", "-c", "sleep 1000000; : {}"], "/bin/true"
    if who == "the check":
        program, check = [str(ways), "run", "{}/f", "persist"], "/bin/sleep 1000000"
        with pytest.raises(NearsideError, match=r"the check fails without .*within 1 s \(--limit sets another one\)$"):
            pmdk_crash.run_campaign(program, check, "cpu", "all", limit_s=1)
        return
    with pytest.raises(NearsideError, match=r"^/bin/sh: it has not ended within 0.5 s \(--limit sets another one\)$"):
        pmdk_crash.run_campaign(program, check, "cpu", "all", limit_s=0.5)


@pytest.mark.parametrize(
    ("says", "what", "output"),
    [
        (
            "echo first; echo the file is missing",
            "exit status 1: the file is missing",
            ["first", "the file is missing"],
        ),
        ("echo more; echo the reason >&2", "the reason", ["more", "the reason"]),
        ("true", "exit status 1", []),
        ("echo gone; kill -9 $$", "signal 9, Killed: gone", ["gone"]),
        ("seq 1 99", "exit status 1: 99", [str(n) for n in range(80, 100)]),
    ],
)
def test_pmdk_limit_output_of_a_check(compiled, tmp_path, capsys, says, what, output):
    ways = compiled("ways")
    check = script(tmp_path, "check", f'{ways} check "$1/f" 2> /dev/null || {{ {says}; exit 1; }}')
    doc = pmdk_crash.run_campaign([str(ways), "run", "{}/f", "nothing"], f"{check} {{}}", "cpu", "all")
    assert (doc["violation"]["what"], doc["violation"]["output"]) == (what, output)
    pmdk_crash.print_reports([doc])
    shown = capsys.readouterr().out
    assert what in shown
    assert ("the last lines of output:" in shown) == (len(output) > 1)


def test_pmdk_limit_output_of_a_program_that_ends_early(compiled):
    text = f'if test "$NEARSIDE_PMDK_KILL" = 3; then echo no room; exit 7; fi; {compiled("ways")} run {{}}/f persist'
    doc = pmdk_crash.run_campaign(["/bin/sh", "-c", text], f"{compiled('ways')} check {{}}/f", "cpu", "at:3")
    assert doc["violation"]["what"] == "the program ends before the power fails: exit status 7: no room"
    assert sum(row["moments_cut"] for row in doc["coverage"]) == 0


def test_pmdk_limit_values():
    for limit in (0, -1, float("nan"), 1e6):
        with pytest.raises(NearsideError, match=r"^limit = .*: allowed are more than 0 and up to 86400 seconds$"):
            pmdk_crash.run_campaign(["/bin/true", "{}"], None, "cpu", "all", limit_s=limit)
    command = [sys.executable, "-m", "nearside.cli", *shlex.split("crashtest btree --limit 3")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, "--limit is for programs" in done.stderr) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_pmdk_limit_ended_campaign_leaves_nothing(tmp_path, number):
    """Neither processes nor its folder."""
    text = (
        f"sleep 1000000 & echo $! > {tmp_path}/started.new; mv {tmp_path}/started.new {tmp_path}/started; wait; : {{}}"
    )
    command = [sys.executable, "-m", "nearside.cli", "crashtest", "--by", "cpu", "--", "/bin/sh", "-c", text]
    with tempfile.TemporaryDirectory() as scratch:  # socket paths are limited in length, unlike tmp_path
        process = subprocess.Popen(command, env=os.environ | {"TMPDIR": scratch}, stderr=subprocess.PIPE)
        while not (tmp_path / "started").exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        process.send_signal(number)
        process.communicate(timeout=600)
        assert process.returncode == 128 + number
        assert not is_running((tmp_path / "started").read_text().strip())
        assert os.listdir(scratch) == []
