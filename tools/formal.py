#!/usr/bin/env python3
"""Runs the formal proofs: `make formal`.

A proof is hw/**/formal/<name>.sby; its [files] are named relative to the repository root. sby works in
build/formal/<name>[_<task>]. A proof counts only when sby states PASS for every task.

usage: formal.py [NAME ...]        all proofs when none is named
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from filelist import ROOT

BIN = Path(sys.executable).parent
WORK = ROOT / "build" / "formal"
LIMIT_S = 300


def prove(path: Path) -> bool:
    """Runs one .sby file and prints one line for each of its tasks."""
    for old in [WORK / path.stem, *WORK.glob(f"{path.stem}_*")]:
        shutil.rmtree(old, ignore_errors=True)
    env = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    start = time.monotonic()
    log = WORK / f"{path.stem}.log"
    with open(log, "w") as output:
        command = ["timeout", str(LIMIT_S), BIN / "sby", "-f", "--prefix", WORK / path.stem, path]
        done = subprocess.run(command, cwd=ROOT, env=env, stdout=output, stderr=subprocess.STDOUT)
    seconds = time.monotonic() - start
    tasks = [d for d in [WORK / path.stem, *WORK.glob(f"{path.stem}_*")] if d.is_dir()]
    states = {d.name: (d / "status").read_text().split()[0] if (d / "status").exists() else "ERROR" for d in tasks}
    passed = done.returncode == 0 and bool(states) and set(states.values()) == {"PASS"}
    detail = "" if len(states) == 1 else ": " + ", ".join(f"{n} {s}" for n, s in sorted(states.items()))
    print(f"{'PASS' if passed else 'FAIL':5} {seconds:6.1f} s  {path.relative_to(ROOT)}{detail}", flush=True)
    if not passed:
        print("\n".join(log.read_text(errors="replace").splitlines()[-25:]))
    return passed


def main() -> int:
    WORK.mkdir(parents=True, exist_ok=True)
    wanted = set(sys.argv[1:])
    proofs = [p for p in sorted(ROOT.glob("hw/**/formal/*.sby")) if not wanted or p.stem in wanted]
    if wanted - {p.stem for p in proofs}:
        sys.exit(f"no such proof: {', '.join(sorted(wanted - {p.stem for p in proofs}))}")
    results = [prove(path) for path in proofs]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
