# SPDX-License-Identifier: Apache-2.0
"""Tests of the limits under which steps of the checks run."""

import sys
import threading
import time
from pathlib import Path

import pytest
import watched

SPIN = "while True: pass"
CHILD = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
# On a busy machine a step gets far less than its share. Its output shows its progress.
SLOW = "import time\nfor k in range(20): print(k, flush=True); time.sleep(0.1)"


def python(*words: str) -> list[str]:
    return [sys.executable, "-c", *words]


def alive(mark: str) -> list[str]:
    """The processes whose command line has that word."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and mark in (folder / "cmdline").read_text().split("\0"):
                found.append(folder.name)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


@pytest.mark.parametrize("command", [python(SPIN), python(CHILD, SPIN)], ids=["itself", "child"])
def test_cpu_time_is_limited_with_that_of_children(tmp_path, command):
    ended = watched.run(command, tmp_path / "log", watched.Limits(cpu=1, poll=0.1))
    assert ended.stopped == "stopped after 1 s of CPU time"
    assert ended.status != 0
    assert ended.cpu >= 1


def test_time_that_passes_is_no_limit(tmp_path):
    limits = watched.Limits(cpu=60, window=1, least=50, poll=0.05)
    ended = watched.run(python(SLOW), tmp_path / "log", limits)
    assert (ended.status, ended.stopped) == (0, "")
    assert ended.seconds > 2 * limits.window - 0.1


def test_what_stalls_is_stopped(tmp_path):
    limits = watched.Limits(window=0.5, poll=0.05)
    ended = watched.run(python("import time; time.sleep(100)"), tmp_path / "log", limits)
    assert ended.stopped == "stopped: no output and less than 30 s of CPU time in 0.5 s"


# Works by processes that nobody waits for: their time is nobody's when they have ended.
UNWAITED = """
import os, signal, sys, time
if sys.argv[1] == "ignored":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(4):
    read, write = os.pipe()
    if os.fork() == 0:
        if sys.argv[1] == "ignored" or os.fork() == 0:
            while time.process_time() < 0.5:
                pass
            time.sleep(0.5)
        os._exit(0)
    os.close(write)
    os.read(read, 1)
time.sleep(0.5)
"""


@pytest.mark.parametrize("children", ["ignored", "orphans"])
def test_time_of_processes_that_nobody_waits_for_counts(tmp_path, children):
    ended = watched.run(python(UNWAITED, children), tmp_path / "log", watched.Limits(poll=0.05))
    assert (ended.status, ended.stopped) == (0, "")
    assert ended.cpu > 1.5


@pytest.mark.parametrize("session", [False, True], ids=["same", "own session"])
def test_interruption_ends_all_that_was_started(tmp_path, session):
    mark = f"mark-{tmp_path.name}"
    script = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)', "
    script += f"{mark!r}], start_new_session={session}); time.sleep(100)"
    interrupt = threading.Event()
    ends = []
    run = threading.Thread(
        target=lambda: ends.append(
            watched.run(python(script), tmp_path / "log", watched.Limits(poll=0.1), interrupt=interrupt)
        )
    )
    run.start()
    while not alive(mark):
        time.sleep(0.05)
    interrupt.set()
    run.join()
    assert ends[0].stopped == "interrupted"
    assert not alive(mark)
