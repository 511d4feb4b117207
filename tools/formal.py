#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the formal proofs: `make formal`.

A proof is hw/**/formal/<name>.sby; its [files] are named relative to the repository root. sby works in
build/formal/<name>[_<task>]. A proof counts only when sby states PASS for every task, or FAIL where a task expects
that: it asserts what is to be reached.

usage: formal.py [--sample] [NAME ...]        all proofs when none is named; --sample: without the tasks in LONG
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from filelist import ROOT

BIN = Path(sys.executable).parent
WORK = ROOT / "build" / "formal"
LIMIT_S = 900  # of CPU time, for each process of a proof
LONGEST = ["filter", "dispatch", "level", "timeout", "fused_arbiter", "completion", "mover", "mover_write"]
# Tasks that `make test` leaves out. Other tasks of the same file cover most of them, for other
# sizes or in fewer cycles. Some only show that the longer proofs are not vacuous.
LONG = {
    "level": ["one", "cover"],
    "tree": ["two", "cover"],
    "launch": ["cover", "row_shuffle", "pipeline", "scan", "sorter"],
    "dispatch": ["without_table", "parts", "reached_parts", "reached_commits", "reached_cancel", "reached_wait"],
    "filter": [
        "reached_command",
        "reached_load",
        "reached_store",
        "unblocked",
        "rules",
        "liveness",
        "liveness_loads",
        "loads",
        "stores",
    ],
    "peers": ["safe", "liveness", "lost_notification", "reached"],
    "resave": ["reached"],
    "fused_arbiter": ["bmc_deletion", "reached_deletion", "cover"],
    "arbitration": ["cover"],
    "axi_demux": ["cover", "read", "read_local", "read_outside", "write_local", "write_outside"],
    "axi_id_remap": ["cover", "read"],
    "axi_mux": ["cover", "read"],
    "axi_route": ["cover", "m1_outside", "m2_outside"],
    "axi_xbar": ["cover", "write"],
    "table": ["internal", "reached"],
    "progress": ["cover", "reached"],
    "rate": ["cover"],
    "track": ["short_log", "progress", "reached", "reached_overflow"],
    "timeout": ["cover", "write"],
    "mover": ["bmc"],
    "mover_write": ["cover"],
    "order": ["cover_r", "cover_w", "r2"],
    "ready": ["cover", "bmc4"],
    "command_order": ["cover", "prove"],
    "completion": ["cover"],
}


def tasks(path: Path, sample: bool) -> list[str]:
    """The tasks of a file that are to run; none: all that there are."""
    left_out = LONG.get(path.stem, []) if sample else []
    if not left_out:
        return []
    section = re.search(r"^\[tasks\]\n(.*?)^\[", path.read_text(), re.MULTILINE | re.DOTALL)
    # A line is a task and the groups that it is in.
    known = [line.split()[0] for line in section[1].splitlines() if line.strip()] if section else []
    if not set(left_out) < set(known):
        sys.exit(f"{path.relative_to(ROOT)}: its tasks are {', '.join(known)}, not only {', '.join(left_out)}")
    return [task for task in known if task not in left_out]


def prove(path: Path, sample: bool = False) -> bool:
    """Runs one .sby file and prints one line for each of its tasks."""
    env = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    start = time.monotonic()
    log = WORK / f"{path.stem}.log"
    with open(log, "w") as output:
        command = [BIN / "sby", "-f", "--prefix", WORK / path.stem, path, *tasks(path, sample)]
        done = subprocess.run(
            ["prlimit", f"--cpu={LIMIT_S}", *command], cwd=ROOT, env=env, stdout=output, stderr=subprocess.STDOUT
        )
    seconds = time.monotonic() - start
    text = log.read_text(errors="replace")
    ends = re.findall(r"\[.*/(\w+)\] DONE \((\w+), rc=(\d+)\)", text)
    states = {task: f"{state} as expected" if (state, rc) == ("FAIL", "0") else state for task, state, rc in ends}
    passed = done.returncode == 0 and bool(states) and set(states.values()) <= {"PASS", "FAIL as expected"}
    detail = ": " + ", ".join(f"{name} {state}" for name, state in sorted(states.items()))
    print(f"{'PASS' if passed else 'FAIL':5} {seconds:6.1f} s  {path.relative_to(ROOT)}{detail}", flush=True)
    if not passed:
        print("\n".join(text.splitlines()[-25:]))
    return passed


def main() -> int:
    WORK.mkdir(parents=True, exist_ok=True)
    sample = "--sample" in sys.argv[1:]
    wanted = set(sys.argv[1:]) - {"--sample"}
    proofs = [p for p in sorted(ROOT.glob("hw/**/formal/*.sby")) if not wanted or p.stem in wanted]
    if wanted - {p.stem for p in proofs}:
        sys.exit(f"no such proof: {', '.join(sorted(wanted - {p.stem for p in proofs}))}")
    # Each is one process at a time; those that take longest come first.
    proofs.sort(key=lambda path: LONGEST.index(path.stem) if path.stem in LONGEST else len(LONGEST))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = list(pool.map(lambda path: prove(path, sample), proofs))
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
