# SPDX-License-Identifier: Apache-2.0
"""Builds a SystemVerilog top with Verilator and runs cocotb tests on it, from pytest.

    from hdl import simulate

    def test_fifo():
        simulate("fifo", "cocotb_fifo", filelists=["hw/lib/lib.f"], parameters={"Depth": 4})

The cocotb module is in the folder of the calling file. Builds are kept in build/dv/<top>/<hash> and reused until
a source, a parameter or an option changes. Environment variables:

    - COCOTB_RANDOM_SEED=7   another seed than 1
    - COCOTB_TEST_FILTER=regex   only some cocotb tests
    - POWER_UP=ones          initial registers and memories: zeros, ones or (the default) random, from the seed
    - NEARSIDE_LONG=1        all repetitions of tests of which `make test` runs a sample (extent.py)
    - WAVES=1                write waves.fst in the run's folder (another build, much slower)
    - CLOCK_GATE_BYPASS=1    every block's clock always runs, as in an FPGA (another build, slower)
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import filelist
import pytest
from cocotb_tools import runner
from cocotb_tools.check_results import get_results

ROOT = filelist.ROOT
VENV_BIN = Path(sys.executable).parent  # not resolved: the interpreter in .venv/bin is a link out of it
KEPT_BUILDS = 40  # per top; older ones are removed
POWER_UP = {"zeros": 0, "ones": 1, "random": 2}  # as Verilator's +verilator+rand+reset has it


def simulate(
    top: str,
    test_module: str,
    *,
    filelists: Iterable[str] = (),
    extra_sources: Iterable[str | Path] = (),
    parameters: Mapping[str, object] | None = None,
    plusargs: Iterable[str] = (),
    env: Mapping[str, str] | None = None,
    build_args: Iterable[str] = (),
    testcase: str | None = None,
    seed: int | None = None,
    limit_s: int = 600,
) -> Path:
    """Builds `top` and runs every cocotb test of `test_module` on it; fails the pytest test if one of them fails.

    Returns cocotb's file of results.

    - filelists: lists relative to the repository root (see tools/filelist.py); their lint waivers apply.
    - extra_sources: further sources or .vlt files, relative to the calling file or absolute.
    - parameters: of the top; strings are passed as written, so quote them for string parameters.
    - testcase: run only this cocotb test (or several, separated by commas).
    - limit_s: limit of the run in CPU seconds, so that a busy machine fails no test. A test should bound itself in
      cycles long before.
    """
    here = Path(sys._getframe(1).f_globals["__file__"]).resolve().parent
    files = filelist.read(*filelists)
    for extra in map(Path, extra_sources):
        path = here / extra
        (files.waivers if path.suffix == ".vlt" else files.sources).append(path)
    waves = os.environ.get("WAVES", "0") not in ("", "0")
    bypass = os.environ.get("CLOCK_GATE_BYPASS", "0") not in ("", "0")
    options = [
        "--assert",
        "-Wall",  # warnings are fatal; waivers with reasons are in lint/*.vlt
        *("--x-assign", "unique", "--x-initial", "unique"),  # no test may rely on zeros at power-up
        *(f"+incdir+{d}" for d in files.incdirs),
        *(["--trace-fst"] if waves else []),
        *(["+define+NS_CLOCK_GATE_BYPASS"] if bypass else []),
        *build_args,
    ]
    simulator = Simulator()
    build = _build(simulator, top, files, dict(parameters or {}), options, waves)

    current = os.environ.get("PYTEST_CURRENT_TEST", test_module).split("::")[-1].split(" ")[0]
    run = build / "runs" / re.sub(r"[^\w.=-]+", "_", f"{current}.{testcase}" if testcase else current)
    run.mkdir(parents=True, exist_ok=True)
    seed = seed if seed is not None else int(os.environ.get("COCOTB_RANDOM_SEED", "1"))
    start = os.environ.get("POWER_UP", "random")
    if start not in POWER_UP:
        pytest.fail(f"POWER_UP is {start!r}; it may be {', '.join(POWER_UP)}", pytrace=False)
    simulator.limit_s = limit_s
    simulator.python_path = [str(here), *sys.path]
    results, log = run / "results.xml", run / "sim.log"
    failure = ""
    try:
        simulator.test(
            test_module=["power_up", test_module],
            hdl_toplevel=top,
            hdl_toplevel_lang="verilog",
            build_dir=build,
            test_dir=run,
            testcase=testcase,
            seed=seed,
            plusargs=[f"+verilator+rand+reset+{POWER_UP[start]}", f"+verilator+seed+{seed % 2**31 or 1}", *plusargs],
            test_args=["--trace-file", "waves.fst"] if waves else [],
            waves=waves,
            extra_env=dict(env or {}),
            results_xml=str(results),
            log_file=log,
        )
    except (RuntimeError, SystemExit) as error:  # the runner's two reports of a failed simulator
        failure = str(error) if isinstance(error, RuntimeError) else "the simulator stopped without results"
        if f"code: {-signal.SIGXCPU}" in failure:
            failure = f"stopped after {limit_s} s of CPU time"
    count, failed = get_results(results) if results.exists() else (0, 0)
    if failed or count == 0 or failure:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-60:])
        summary = f"{failed} of {count} cocotb tests failed" + (f", {failure}" if failure else "")
        pytest.fail(
            f"{tail}\n{test_module}: {summary}; seed {seed}, registers {start}; log: {log.relative_to(ROOT)}",
            pytrace=False,
        )
    return results


class Simulator(runner.Verilator):
    """cocotb's Verilator runner, with what makes its models slow taken out."""

    limit_s = 600
    python_path: Iterable[str] = ()

    def __init__(self) -> None:
        super().__init__()
        self.log.setLevel(logging.CRITICAL)  # simulate() reports
        os.environ["PATH"] = f"{VENV_BIN}{os.pathsep}{os.environ['PATH']}"
        os.environ["CCACHE_BASEDIR"] = str(ROOT)  # what ccache has of another checkout is good here, too

    def _build_command(self) -> list[list[str]]:
        verilate, make = super()._build_command()
        # --public-flat-rw makes every signal visible and costs a factor of 3.5; the top's ports are
        # all a test needs.
        at = verilate.index("--public-flat-rw")
        verilate[at : at + 1] = ["--public-depth", "1"]
        # -O2 gains 4 % and compiles longer. One file, as the headers are most of each.
        return [verilate, [*make, "OPT_FAST=-O1", "VM_PARALLEL_BUILDS=0"]]

    def _set_env_test(self) -> None:
        super()._set_env_test()  # hands our own sys.path to the simulation
        self.env["PYTHONPATH"] = os.pathsep.join(self.python_path)

    def _get_sim_cmd_prefix(self) -> list[str]:
        limited = f'ulimit -S -t {self.limit_s} && exec "$0" "$@"'
        return ["sh", "-c", limited, *super()._get_sim_cmd_prefix()]


def _build(
    simulator: Simulator,
    top: str,
    files: filelist.FileList,
    parameters: dict[str, object],
    options: list[str],
    waves: bool,
) -> Path:
    """The folder of the built model; builds it unless one with the same content is there."""
    digest = hashlib.sha256(repr((top, sorted(parameters.items()), options, sys.version)).encode())
    for path in [
        Path(__file__),
        *(ROOT / "tools" / f"{name}.txt" for name in ("requirements", "checks")),
        *files.inputs(),
    ]:
        digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    folder = ROOT / "build" / "dv" / top / digest.hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp, log = folder / "built", folder / "build.log"
        if not stamp.exists():
            _prune(folder.parent)
            start = time.monotonic()
            try:
                simulator.build(
                    sources=[*map(_source, files.waivers), *map(_source, files.sources)],
                    hdl_toplevel=top,
                    parameters=parameters,
                    build_args=options,
                    build_dir=folder,
                    cwd=ROOT,
                    timescale=("1ns", "1ps"),
                    waves=waves,
                    log_file=log,
                )
                stamp.write_text(f"{time.monotonic() - start:.1f} s\n")
            except RuntimeError:
                pass  # reported below, without this exception's trace
        if not stamp.exists():
            lines = log.read_text(errors="replace").splitlines()
            shown = "\n".join(line.replace(f"{ROOT}/", "") for line in lines[:80])
            pytest.fail(f"{shown}\nbuilding {top} failed; log: {log.relative_to(ROOT)}", pytrace=False)
        os.utime(stamp)
    return folder


def _source(path: Path) -> object:
    return runner.VerilatorControlFile(path) if path.suffix == ".vlt" else runner.Verilog(path)


def _prune(parent: Path) -> None:
    builds = sorted(parent.glob("*/built"), key=lambda stamp: stamp.stat().st_mtime, reverse=True)
    for stamp in builds[KEPT_BUILDS:]:
        shutil.rmtree(stamp.parent, ignore_errors=True)
