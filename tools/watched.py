# SPDX-License-Identifier: Apache-2.0
"""Runs a command until it ends, has used too much CPU time, or no longer gets anywhere.

Limits are of the CPU time of all processes that the command starts, and of progress. They are never of wall-clock time,
because on a busy machine everything takes longer without a fault.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Ended:
    """How a command ended: its exit status, wall-clock and CPU seconds, and why it was stopped (or nothing)."""

    status: int
    seconds: float
    cpu: float
    stopped: str = ""


@dataclass
class Limits:
    """cpu: seconds of CPU time in all. Without further output, a command that uses less than `least` CPU seconds in
    `window` seconds has stalled. poll: seconds between two looks."""

    cpu: float = 6000
    window: float = 900
    least: float = 30
    poll: float = 2


def processes(root: int, without: str = "ZX") -> dict[int, float]:
    """CPU seconds of each process of the session of `root` and of its descendants.

    Those of the children that it has waited for are included. Processes in the states `without` have ended and are
    left out.
    """
    table = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended since
            if fields[0] not in without:
                parent, session = int(fields[1]), int(fields[3])
                table[int(folder.name)] = (parent, session, sum(map(int, fields[11:15])) / TICKS)
    found = {pid for pid, (_, session, _) in table.items() if session == root}
    while more := {pid for pid, (parent, _, _) in table.items() if parent in found and pid not in found}:
        found |= more
    return {pid: table[pid][2] for pid in found}


def kill(root: int) -> None:
    """Ends the processes of the session of `root` and their descendants; after 10 s by force."""
    begun = processes(root)  # an orphan in a separate session is found only as long as its parent lives
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in begun | processes(root):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        end = time.monotonic() + 10
        while time.monotonic() < end and any(Path(f"/proc/{pid}").exists() for pid in begun if pid != root):
            time.sleep(0.1)


def run(
    command: Sequence[str],
    log: Path,
    limits: Limits,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    interrupt: threading.Event | None = None,
) -> Ended:
    """Runs `command` with its output in `log`. When `interrupt` is set, it and all that it has started is ended."""
    begin, cpu = time.monotonic(), 0.0
    with open(log, "w") as output:
        process = subprocess.Popen(
            command, cwd=cwd, env=env, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    stopped, moved = "", (begin, 0.0, 0)  # when it was last seen to get on, with that CPU time and size of the log
    gone = 0.0  # CPU seconds of processes that have ended and that nobody of the command's has waited for
    while not stopped and not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        # A process that has ended and was not waited for yet counts. Its time belongs to its parent
        # afterwards. If it is waited for during the scan, the next scan counts it.
        there = sum(processes(process.pid, without="X").values())
        if there + gone < cpu:
            there = sum(processes(process.pid, without="X").values())
        gone = max(gone, cpu - there)
        cpu, size, now = there + gone, log.stat().st_size, time.monotonic()
        if size != moved[2] or cpu - moved[1] >= limits.least:
            moved = (now, cpu, size)
        if cpu > limits.cpu:
            stopped = f"stopped after {limits.cpu:g} s of CPU time"
        elif now - moved[0] > limits.window:
            stopped = f"stopped: no output and less than {limits.least:g} s of CPU time in {limits.window:g} s"
        elif interrupt and interrupt.is_set():
            stopped = "interrupted"
        else:
            time.sleep(min(limits.poll, 0.02 + (now - begin) / 20))
    if stopped:
        kill(process.pid)
    _, ended, used = os.wait4(process.pid, 0)  # with all that it has waited for
    process.returncode = os.waitstatus_to_exitcode(ended)
    cpu = max(cpu, used.ru_utime + used.ru_stime)  # who was stopped has not waited for all
    return Ended(process.returncode, time.monotonic() - begin, cpu, stopped)
