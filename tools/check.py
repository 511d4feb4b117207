#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the checks: `make check` (format, lint, fast tests), `make test` (all there is, once) and two longer ones.

`make test-all` adds some steps and everything that is `long`: a mark of Python tests, a module of Rust tests, a list of
proofs, repetitions in a simulation. CONTRIBUTING.md lists what only it has. `make test-seeds` runs the simulations of
blocks with several seeds, each with registers that start as zeros, as ones and at random. It takes hours, for a night.

One line a step, with its time and that of its processors; full logs in build/logs. Steps run two at a time, so that one
fills the pauses of the other; a step's line comes at its end. All steps run even when one fails. A step whose tool is
missing, or of a version that it was never run with, is skipped and says so. The closing line sums up the tests of every
step; a step that isn't a test run counts as one test.

usage: check.py check|test|all|seeds [STEP ...]     only the steps whose name contains one of these words
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import watched
from filelist import ROOT
from setup import runs

BIN = ROOT / ".venv" / "bin"
LOGS = ROOT / "build" / "logs"
LANES = 2
LIMITS = watched.Limits()  # of a step
INTERRUPT = threading.Event()
SHARED = threading.Lock()  # around what steps print and count
# The oldest and the newest clippy that this tree is known to satisfy. Their lints differ.
CLIPPY = (85, 95)
# Simulators are single threads, so two run at a time. With `--dist loadfile` (pytest-xdist 3.8), a
# worker that replaces a crashed one waits for tests for ever. Without replacement the others
# continue and the step fails.
PYTEST = [str(BIN / "pytest"), "-n", "2", "--max-worker-restart=0"]
DATAFUSION = ["--manifest-path", "extensions/datafusion/Cargo.toml"]
DATAFUSION_RUST = 94  # what it needs
SEEDS = range(1, 6)  # of `make test-seeds`
# The steps that take longest, in this order; the others follow. What ends last is then short, and
# both lanes end together. Others use what the first two build, and cargo waits for another cargo.
LONGEST = [
    "bitstreams",
    "datafusion",
    "formal",
    "cargo test",
    "pytest hw/ip/nvme_ctrl",
    "cargo test on rtl",
    "pytest tests",
    "claims",
    "pytest hw/engine",
    "guest",
    "pytest tests on rtl",
]
POWER_UP = ("zeros", "ones", "random")  # what registers start with (hw/dv/hdl.py)
# The tests that `make test-all` runs with every clock running, too.
FREE_CLOCKS = ["hw/ip/nvme_ctrl/dv/test_ctrl.py::test_ctrl", "hw/ip/nvme_ctrl/dv/test_ctrl.py::test_ctrl_io_quick"]

# The profile of tests: that of users with the assertions of debug builds, compiled more quickly.
CHECKED = ["--profile", "checked"]
# The tests that run on either model. `make test` also runs their modules `sampled` on the RTL, and
# `make test-all` those called `extended`, too. A word may be any part of a test's name, so no other
# test has it there.
EITHER_MODEL = [
    "--test",
    "behaviour",
    "--test",
    "forks",
    "--test",
    "nearpm",
    "--test",
    "nearpm_devices",
    "--test",
    "crash",
    "--test",
    "campaigns",
    "--test",
    "invariants",
    "--test",
    "served",
    "--test",
    "killed",
]
ON_RTL = {"test": ["sampled"], "all": ["sampled", "extended"]}


def no_rustfmt() -> str:
    """Why Rust can't be formatted here, or nothing."""
    return "" if runs("rustfmt", "--version") else "rustfmt is not installed (make setup says how)"


def other_clippy() -> str:
    """Why clippy's word does not count here, or nothing."""
    version = re.match(r"clippy 0\.1\.(\d+)", found := runs("cargo", "clippy", "--version"))
    if not version:
        return f"clippy is {found}" if found else "clippy is not installed (make setup says how)"
    oldest, newest = CLIPPY
    if oldest <= int(version[1]) <= newest:
        return ""
    return f"clippy is 1.{version[1]}, this tree is kept clean with 1.{oldest} to 1.{newest}"


def old_rust() -> str:
    """Why the extension of DataFusion can't be compiled here, or nothing."""
    version = re.match(r"rustc 1\.(\d+)", found := runs("rustc", "--version"))
    if version and int(version[1]) >= DATAFUSION_RUST:
        return ""
    return f"datafusion-ffi needs Rust 1.{DATAFUSION_RUST} or newer, this is {found or 'none'}"


@dataclass
class Step:
    name: str
    command: list[str]
    counted: bool = False  # its output tells how many tests passed, failed and were skipped
    obstacle: Callable[[], str] = str  # why it can't run here; nothing when it can
    env: tuple[tuple[str, str], ...] = ()  # further environment variables


def python(script: str, *args: str) -> list[str]:
    return [str(BIN / "python"), f"tools/{script}", *args]


def static_steps(scope: str) -> list[Step]:
    """Format and lint."""
    sample = ["--sample"] if scope == "test" else []
    clippy = ["cargo", "clippy", *CHECKED, "--workspace", "--all-targets", "--", "-D", "warnings"]
    return [
        Step("rustfmt", ["cargo", "fmt", "--all", "--check"], obstacle=no_rustfmt),
        Step("rustfmt of extensions", ["cargo", "fmt", *DATAFUSION, "--check"], obstacle=no_rustfmt),
        Step("ruff format", [str(BIN / "ruff"), "format", "--check", "."]),
        Step("ruff", [str(BIN / "ruff"), "check", "."]),
        Step("mypy", [str(BIN / "mypy")]),
        Step("prose", python("prose.py")),
        Step("import circles", python("import_circles.py")),
        Step("verible", python("fmt_hw.py", "--check")),
        Step("verilator lint", python("lint_hw.py", *sample)),
        Step("register maps", python("regs.py", "--check"), obstacle=no_rustfmt),
        Step("clippy", clippy, obstacle=other_clippy),
    ]


def test_steps(scope: str) -> list[Step]:
    """Proofs, Rust tests, simulations, cross-layer tests, claims."""
    steps = []
    everything = scope != "check"
    long = ["--skip", "long::"] if scope == "test" else []
    ignored = ["--", "--include-ignored", *long] if everything else []
    # The Python extension is included although it has no tests. Without it features differ, and
    # everything is compiled twice.
    cargo = ["cargo", "test", *CHECKED, "--no-fail-fast", "--workspace"]
    # The devices of all later tests. They are counted among the tests of "cargo test".
    steps.append(Step("bitstreams", [*cargo, "--test", "builds", *ignored]))
    if everything:
        sample = ["--sample"] if scope == "test" else []
        steps.append(Step("formal", python("formal.py", *sample), counted=True))
    chosen = {"check": ["-m", "not slow and not long"], "test": ["-m", "not long"], "all": []}[scope]
    blocks = [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("hw/ip/*"))]
    folders = ["tools", "hw/dv", "hw/lib", *blocks, "hw/engine", "hw/top", "tests"]
    if scope == "all":  # for the tests of SQL, which are skipped without; it takes ten minutes to compile
        install = [str(BIN / "maturin"), "develop", "--locked", *DATAFUSION, "--target-dir", "build/datafusion"]
        steps.append(Step("datafusion", install, obstacle=old_rust))
    for name in folders:
        if name == folders[-1]:  # from here on tests have devices
            steps.append(Step("cargo test", [*cargo, *ignored], counted=True))
            if everything:  # what a device does is tested on the fast model; a sample of it on the RTL, too
                rtl = (("NEARSIDE_MODEL", "rtl"),)
                command = [*cargo, *EITHER_MODEL, "--", *ON_RTL[scope], *ignored[1:]]
                steps.append(Step("cargo test on rtl", command, counted=True, env=rtl))
        if any((ROOT / name).rglob("test_*.py")):
            # In hw/ simulators share only builds, which are locked. Elsewhere the tests of a module
            # share devices.
            spread = "worksteal" if name.startswith("hw/") else "loadfile"
            command = [*PYTEST, name, "--dist", spread, *chosen]
            steps.append(Step(f"pytest {name}", command, counted=True))
    if everything:  # behaviour is tested on the fast model, and sampled on the other one
        command = [*PYTEST, "tests", "-m", "both", "--dist", "loadfile"]
        steps.append(Step("pytest tests on rtl", command, counted=True, env=(("NEARSIDE_MODEL", "rtl"),)))
    if everything:
        steps.append(Step("guest", python("guest.py", "test"), counted=True))
    if scope == "all":
        sample = python("guest.py", "test", "--model", "rtl", "--task", "first")
        steps.append(Step("guest on rtl", sample, counted=True))
        # As in an FPGA; a sample, as every block does the same with it.
        free = (("CLOCK_GATE_BYPASS", "1"),)
        command = [*PYTEST, *FREE_CLOCKS]
        steps.append(Step("free clocks", command, counted=True, env=free))
    if everything and (ROOT / "python" / "nearside").is_dir():
        # Tests never depend on how fast a machine is; `make docs` measures the rest.
        steps.append(Step("claims", [str(BIN / "nearside"), "claim", "run", "--quick", "--simulated"]))
    if everything:
        steps.sort(key=lambda step: LONGEST.index(step.name) if step.name in LONGEST else len(LONGEST))
    return steps


def seed_steps() -> list[Step]:
    """The simulations of all blocks with each seed and each start of registers."""
    command = [*PYTEST, "hw", "--dist", "worksteal", "-m", "not long"]
    return [
        Step(
            f"hw seed {seed} {start}",
            command,
            counted=True,
            env=(("COCOTB_RANDOM_SEED", str(seed)), ("POWER_UP", start)),
        )
        for seed in SEEDS
        for start in POWER_UP
    ]


def counts(output: str) -> Counter[str]:
    """Sums the closing lines of pytest, cargo test and our own tools."""
    total: Counter[str] = Counter()
    words = {"error": "failed", "errors": "failed", "ignored": "skipped", "xfailed": "skipped", "xpassed": "passed"}
    for line in output.splitlines():
        if re.match(r"test result: |=*\s*\d+ (passed|failed|skipped|errors?|deselected)\b", line):
            for number, word in re.findall(r"(\d+) (passed|failed|skipped|errors?|ignored|xfailed|xpassed)", line):
                total[words.get(word, word)] += int(number)
    return total


def failures(output: str) -> list[str]:
    """Returns the lines that say what failed. Those of cargo test are amid the output of later tests."""
    lines = output.splitlines()
    found, inside = [], False
    for line in lines:
        inside = (inside and not line.startswith("test result: ")) or bool(re.match(r"---- .* ----$", line))
        if inside:
            found.append(line)
    return [*found[:60], *lines[-30:]]


def run(step: Step, scope: str, total: Counter[str]) -> None:
    """Runs a step and prints its line; several threads may do so."""
    if reason := step.obstacle():
        with SHARED:
            total["skipped"] += 1
            print(f"  {step.name:24} skip                    skipped: {reason}", flush=True)
        return
    log = LOGS / f"{re.sub(r'[^a-z0-9_]+', '-', step.name)}.log"
    env = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": str(ROOT / ".venv")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # a thousand starts of the command would compile its libraries each
    env["NEARSIDE_CHECKED"] = "1"  # devices have their assertions
    env["NEARSIDE_LONG"] = str(int(scope == "all"))  # simulations do all that they can, or a sample
    env |= dict(step.env)
    ended = watched.run(step.command, log, LIMITS, cwd=ROOT, env=env, interrupt=INTERRUPT)
    status, seconds, cpu = ended.status, ended.seconds, ended.cpu
    text = log.read_text(errors="replace")
    found = counts(text) if step.counted else Counter()
    ok = status == 0 or (step.command[0].endswith("pytest") and status == 5)  # 5: every test was deselected
    if not found and (not ok or not step.counted):
        found["passed" if ok else "failed"] += 1
    if not ok and not found["failed"]:
        found["failed"] += 1
    detail = ", ".join(f"{found[k]} {k}" for k in ("passed", "failed", "skipped") if found[k]) if step.counted else ""
    verdict = f"{'ok' if ok else 'FAIL':5} {seconds:6.1f} s {cpu:6.1f} s"
    lines = [f"  {step.name:24} {verdict}  {detail}".rstrip()]
    lines += [f"      {line}" for line in text.splitlines() if line.startswith("skipped: ")]
    if not ok:
        reason = ended.stopped or f"exit status {status}"
        lines += [f"      {line}" for line in failures(text)]
        lines.append(f"      {reason}; log: {log.relative_to(ROOT)}")
    with SHARED:
        total.update(found)
        print("\n".join(lines), flush=True)


def main() -> int:
    if sys.argv[1:2] not in (["check"], ["test"], ["all"], ["seeds"]):
        sys.exit(__doc__)
    scope, only = sys.argv[1], sys.argv[2:]
    steps = seed_steps() if scope == "seeds" else [*static_steps(scope), *test_steps(scope)]
    for word in only:
        if not any(word in step.name for step in steps):
            sys.exit(f"check.py: no step has {word!r} in its name; there are: {', '.join(s.name for s in steps)}")
    LOGS.mkdir(parents=True, exist_ok=True)
    total: Counter[str] = Counter()
    start = time.monotonic()
    chosen = [step for step in steps if not only or any(word in step.name for word in only)]
    print(f"  {'':30}  clock        CPU")
    before = {n: signal.signal(n, lambda *_: INTERRUPT.set()) for n in (signal.SIGINT, signal.SIGTERM)}
    # Runs of one bench that differ in the seed alone have one folder.
    with ThreadPoolExecutor(1 if scope == "seeds" else LANES) as lanes:
        list(lanes.map(lambda step: INTERRUPT.is_set() or run(step, scope, total), chosen))
    for number, handler in before.items():
        signal.signal(number, handler)
    times = os.times()
    cpu = times.children_user + times.children_system
    print(f"  {'all':24}       {time.monotonic() - start:6.1f} s {cpu:6.1f} s\n")
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    if INTERRUPT.is_set():
        print("interrupted: steps are missing")
    return 1 if total["failed"] or INTERRUPT.is_set() else 0


if __name__ == "__main__":
    sys.exit(main())
