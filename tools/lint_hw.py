#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lints the hardware: `make lint-hw`.

Every file list goes through `verilator --lint-only -Wall`, and every warning is an error. It also goes through slang,
the front end of the synthesis, which rejects some code that Verilator accepts (use before declaration). Every waiver,
in a .vlt file or in a source, must have a comment with its reason on the line above. Every register of the device has
a reset, or a reason why it needs none (registers.py).

A list whose module supports several sizes is also linted at its limits. Only there a loop with no iterations, or a
comparison that is constant for a size, is found. The whole device is also linted with waveforms: Verilator then inlines
other modules, and a name in one can hide a name of the module around it.

usage: lint_hw.py [--sample] [LIST.f ...]     all lists when none is named; --sample: without the limits of sizes
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import filelist
import registers
from filelist import ROOT

BIN = Path(sys.executable).parent
TOOLS = Path(__file__).resolve().parent  # its lists pin the front ends
LOCAL = "-GLocalChannels=2 -GLocalBytes=64'h10000"
LIMITS = {
    "nearpm": [
        "-GNumChannels=1 -GUnits=1",
        "-GNumChannels=8 -GUnits=16",
        "-GNumChannels=2 -GUnits=7 -GUnitLines=213 -GRateUnits=2",
        "-DNS_ORDER",
    ],
    "nearpm_filter": ["-DNS_ORDER"],
    "nvme_ctrl": [
        "-GNumChannels=1 -GNumWalkers=1 -GNumIoQueues=1 -GDoorbellBuffer=0",
        "-GNumChannels=16 -GNumIoQueues=64",
    ],
    "nvm_delay": ["-GReadSlots=32 -GWriteSlots=512", "-GReadSlots=128 -GWriteSlots=32 -GBufferBeats=1024"],
    "top": [
        "-GNumChannels=1 -GNumWalkers=1 -GDoorbellBuffer=0",
        "-GNumChannels=16 -GNumWalkers=4 -GFillInside=1",
        LOCAL,
        "--trace-fst",
    ],
}
WAIVER = re.compile(r"\s*\w+_off\b")
# In a separate process, because slang reports to the C++ stderr.
SLANG = """
import sys
from pyslang.driver import Driver
driver = Driver()
driver.addStandardArgs()
ok = driver.parseCommandLine(sys.argv[1]) and driver.processOptions() and driver.parseAllSources()
ok = ok and driver.reportParseDiags()
if ok:
    driver.reportCompilation(driver.createCompilation(), True)
    ok = driver.reportDiagnostics(True)
sys.exit(not ok)
"""


def unexplained_waivers() -> list[str]:
    """One line for each waiver that has no comment above it."""
    found = []
    for path in sorted([*ROOT.glob("hw/**/*.vlt"), *ROOT.glob("hw/**/*.sv*")]):
        if "gen" in path.parts:
            continue
        above = ""
        for number, line in enumerate(path.read_text().splitlines(), 1):
            inline = path.suffix != ".vlt"
            waives = "verilator lint_off" in line if inline else WAIVER.match(line)
            explained = above.startswith(("//", "#")) and "lint_o" not in above
            if waives and not explained:
                found.append(f"{path.relative_to(ROOT)}:{number}: waiver without a reason on the line above")
            above = line.strip()
    return found


def run(command: list[str | Path]) -> str:
    """Empty when the command succeeds, else its output."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return "" if done.returncode == 0 else done.stdout or f"exit status {done.returncode}"


def passed(inputs: list[Path]) -> Path:
    """The file that stands for nothing having been found in exactly these inputs, and by these tools."""
    inputs = [*sorted(TOOLS.glob("*.txt")), Path(__file__), Path(registers.__file__), *inputs]
    digest = hashlib.sha256(b"".join(f"{p.name}\0".encode() + p.read_bytes() for p in inputs))
    return ROOT / "build" / "lint" / digest.hexdigest()[:24]


def without_reset() -> list[str]:
    """One line for each register that has neither a reset nor a reason. What has passed once is not read again."""
    done = passed([*registers.sources(), *sorted(ROOT.glob("hw/**/rtl/*.svh")), *registers.lists()])
    if done.exists():
        return []
    found = registers.problems()
    if not found:
        done.parent.mkdir(parents=True, exist_ok=True)
        done.touch()
    return found


def lint(path: Path, sample: bool = False) -> list[str]:
    """What both front ends find in one list. What has passed once is not read again."""
    try:
        files = filelist.read(path)
    except ValueError as error:
        return [str(error)]
    done = passed([*files.lists, *files.inputs()])
    if done.exists():
        return []
    relative = [str(p.relative_to(ROOT)) for p in [*files.waivers, *files.sources]]
    incdirs = [f"+incdir+{d.relative_to(ROOT)}" for d in files.incdirs]
    top = files.top()
    # A library has many tops; Verilator then elaborates all of them.
    choice = ["--top-module", top] if top else ["-Wno-MULTITOP"]
    verilator = [BIN / "verilator", "--lint-only", "-Wall", "--timing", *choice, *incdirs, *relative]
    limits = [] if sample else LIMITS.get(path.stem, [])
    sizes = [[], *(limit.split() for limit in limits)]
    results = [run([*verilator, *size]) for size in sizes]
    # This checks the language only. tools/synth.py finds what cannot be synthesised.
    slang = run([sys.executable, "-c", SLANG, f"slang --threads 1 --allow-toplevel-iface-ports -f {path}"])
    found = [text for text in (*results, slang) if text]
    if not found and not (sample and path.stem in LIMITS):
        done.parent.mkdir(parents=True, exist_ok=True)
        done.touch()
    return found


def main() -> int:
    sample = "--sample" in sys.argv[1:]
    problems = unexplained_waivers() + without_reset()
    lists = [Path(a) for a in sys.argv[1:] if a != "--sample"] or filelist.every_list()
    for path in lists:
        found = lint(path, sample)
        print(f"{'FAIL' if found else 'ok':5} {path}", flush=True)
        problems += found
    print("\n".join(problems))
    print(f"{len(lists)} lists, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
