#!/usr/bin/env python3
"""Synthesises a module for UltraScale+ with Yosys and counts what it takes.

usage: synth.py TOP -f LIST.f [-f ...] [FILE.sv ...] [-G NAME=VALUE ...] [--json OUT] [--uram] [--path]

LUT counts every LUT, and for distributed RAM and shift registers the LUTs they occupy; two small functions sharing
one LUT6 are not modelled, so it is an upper bound. BRAM is in units of 36 Kbit (an 18 Kbit block is half).
LUT levels are those of the deepest path between registers or hard blocks; without placement there is no timing.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import filelist

BIN = Path(sys.executable).parent
# LUTs that one cell of distributed memory occupies (UltraScale architecture, CLB user guide).
MEMORY_LUTS = {
    "RAM32X1S": 1, "RAM32X1D": 2, "RAM64X1S": 1, "RAM64X1D": 2, "RAM128X1S": 2, "RAM128X1D": 4, "RAM256X1S": 4,
    "RAM256X1D": 8, "RAM512X1S": 8, "RAM32M": 4, "RAM32M16": 8, "RAM64M": 4, "RAM64M8": 8, "SRL16E": 1, "SRLC32E": 1,
}  # fmt: skip


def is_register(kind: str) -> bool:
    return re.fullmatch(r"(FD|LD)[A-Z]+(_1)?", kind) is not None


def ends_path(kind: str) -> bool:
    """Registers and hard blocks: their outputs don't depend on their inputs within the cycle."""
    return is_register(kind) or kind.startswith(("RAMB", "URAM", "DSP"))


def is_memory(kind: str) -> bool:
    """Distributed memory: written at the clock edge, read asynchronously."""
    return kind in MEMORY_LUTS


def count(cells: Counter[str]) -> dict[str, float]:
    """Resources of a netlist, from the number of its cells of each kind."""
    logic = sum(n for kind, n in cells.items() if re.fullmatch(r"LUT[1-6](_2)?", kind))
    memory = sum(n * MEMORY_LUTS.get(kind, 0) for kind, n in cells.items())
    return {
        "LUT": logic + memory,
        "LUT as memory": memory,
        "FF": sum(n for kind, n in cells.items() if is_register(kind)),
        "BRAM36": cells["RAMB36E2"] + cells["RAMB18E2"] / 2,
        "URAM": cells["URAM288"],
        "DSP": sum(n for kind, n in cells.items() if kind.startswith("DSP")),
    }


class Levels:
    """Depth in LUTs of every net of a flat netlist, and the cells on the way there."""

    def __init__(self, module: dict) -> None:
        self.cells = module["cells"]
        self.driver = {}
        for name, cell in self.cells.items():
            for port, bits in cell["connections"].items():
                if cell["port_directions"].get(port) == "output":
                    self.driver.update(dict.fromkeys(bits, name))
        self.depth: dict[str, int] = {}  # of each combinational cell's outputs
        self.before: dict[str, str | None] = {}

    def _sources(self, name: str, ports: str = "") -> set[str]:
        """The cells that drive a cell's inputs, or those whose name begins as said."""
        cell = self.cells[name]
        inputs = [p for p, direction in cell["port_directions"].items() if direction == "input"]
        bits = [b for p in inputs if re.match(ports, p) for b in cell["connections"].get(p, [])]
        return {self.driver[b] for b in bits if b in self.driver}

    def _inputs(self, name: str) -> set[str]:
        """The cells that a cell's outputs depend on within the cycle; of a memory, those of its read addresses."""
        kind = self.cells[name]["type"]
        # Yosys gives the last address port of a RAM of several ports to writing alone.
        write = {"RAM32M": "D", "RAM64M": "D", "RAM32M16": "H", "RAM64M8": "H"}.get(kind, "0")
        return set() if ends_path(kind) else self._sources(name, f"A(?!DDR{write})|DPRA" if is_memory(kind) else "")

    def of(self, start: str) -> int:
        """Depth at the outputs of one cell. Iterative: paths through carry chains outgrow Python's stack."""
        stack = [start]
        while stack:
            name = stack[-1]
            if name in self.depth:
                stack.pop()
                continue
            inputs = self._inputs(name)
            # A cell met again on its own path is a combinational loop; it is left out.
            pending = [i for i in inputs if i not in self.depth and i not in self.before]
            self.before[name] = None
            if pending:
                stack += pending
                continue
            best = max((i for i in inputs if i in self.depth), key=self.depth.__getitem__, default=None)
            own = int(self.cells[name]["type"].startswith("LUT") or is_memory(self.cells[name]["type"]))
            self.depth[name] = own + (self.depth[best] if best else 0)
            self.before[name] = best
            stack.pop()
        return self.depth[start]

    def worst(self) -> tuple[int, list[str]]:
        """The deepest path into a register, a memory or a hard block: its depth and its cells from end to start."""
        depth, path = 0, []
        for name, cell in self.cells.items():
            if not (ends_path(cell["type"]) or is_memory(cell["type"])):
                continue
            for source in self._sources(name):
                if self.of(source) > depth:
                    depth = self.depth[source]
                    path, step = [name], source
                    while step:
                        path.append(step)
                        step = self.before[step]
        return depth, [f"{self.cells[name]['type']} {name}" for name in path]


def synthesise(
    top: str, files: filelist.FileList, parameters: list[str], uram: bool = False, defines: tuple[str, ...] = ()
) -> dict:
    """Runs Yosys and returns the figures; raises RuntimeError with the end of its log when it fails."""
    work = filelist.ROOT / "build" / "synth" / re.sub(r"[^\w.=-]+", "_", "-".join([top, *parameters]))[:120]
    work.mkdir(parents=True, exist_ok=True)
    netlist = work / "netlist.json"
    netlist.unlink(missing_ok=True)
    read = ["read_slang", "--top", top, "-D", "SYNTHESIS", *(f"-D {d}" for d in defines)]
    read += [f"-G {p}" for p in parameters] + [f"-I {d}" for d in files.incdirs]
    script = [
        " ".join([*read, *map(str, files.sources)]),
        f"synth_xilinx -family xcup -top {top} -flatten -noiopad -noclkbuf{' -uram' if uram else ''}",
        f"write_json {netlist}",
    ]
    (work / "run.ys").write_text("\n".join(script) + "\n")
    start = time.monotonic()
    log = work / "yosys.log"
    done = subprocess.run([BIN / "yosys", "-l", log, work / "run.ys"], capture_output=True, text=True)
    if done.returncode != 0 or not netlist.exists():
        tail = log.read_text(errors="replace").splitlines()[-20:] if log.exists() else []
        raise RuntimeError("\n".join([*tail, done.stderr.strip(), f"log: {log.relative_to(filelist.ROOT)}"]))
    modules = json.loads(netlist.read_text())["modules"]
    module = modules[top] if top in modules else next(m for m in modules.values() if "top" in m["attributes"])
    cells = Counter(cell["type"] for cell in module["cells"].values())
    depth, path = Levels(module).worst()
    return {
        "top": top,
        "parameters": parameters,
        "family": "UltraScale+ (xcup)",
        "resources": count(cells),
        "lut_levels": depth,
        "path": path,
        "cells": dict(sorted(cells.items())),
        "seconds": round(time.monotonic() - start, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("top")
    parser.add_argument("files", nargs="*", type=Path, help="further sources")
    parser.add_argument("-f", dest="lists", action="append", default=[], help="a file list (may be repeated)")
    parser.add_argument("-G", dest="parameters", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--uram", action="store_true", help="infer UltraRAM without an attribute")
    parser.add_argument("--path", action="store_true", help="print the deepest path")
    args = parser.parse_args()
    try:
        files = filelist.read(*args.lists)
        files.sources += [path.resolve() for path in args.files]
        result = synthesise(args.top, files, args.parameters, args.uram)
    except (RuntimeError, ValueError) as error:
        print(error)
        return 1
    print(f"{args.top} {' '.join(args.parameters)}".rstrip() + f", {result['family']}, {result['seconds']} s")
    row = result["resources"] | {"LUT levels": result["lut_levels"]}
    print("  ".join(f"{name:>{max(len(name), 7)}}" for name in row))
    print("  ".join(f"{value:>{max(len(name), 7)}g}" if value < 1e5 else f"{value:>7}" for name, value in row.items()))
    if args.path:
        print("\n".join(f"    {step}" for step in result["path"]))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
