#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Synthesises a module for UltraScale+ with Yosys and counts what it takes.

usage: synth.py TOP -f LIST.f [-f ...] [FILE.sv ...] [-G NAME=VALUE ...] [--json OUT] [--uram] [--path]
                [--hierarchy DEPTH] [--deep LEVELS] [--keep] [--gates]

Clocks always run, as in an FPGA (NS_CLOCK_GATE_BYPASS); --gates leaves their gates in, as latches.

LUT counts every LUT, and for distributed RAM and shift registers the LUTs they occupy; two small functions sharing
one LUT6 are not modelled, so it is an upper bound. BRAM is in units of 36 Kbit (an 18 Kbit block is half).
LUT levels are those of the deepest path between registers or hard blocks; without placement there is no timing. The
mapper takes a net for NET_PS: a path of many LUTs is then slower than a carry chain, as on UltraScale+.

A combinational loop is printed with its cells, and the exit status is then 1.

With --hierarchy there is also a table of instances, down to a depth. Each row has everything in the instance and the
levels of the deepest path that ends in it. Nothing is simplified across their ports, so figures are somewhat higher.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import filelist
import flat_top
from loops import loops

BIN = Path(sys.executable).parent
# Yosys maps for the LUTs (0.1 to 0.6 ns), carry chains and nets (0.3 ns) of the 7 series. On
# UltraScale+ nets weigh several times as much relative to the others. With 0.3 ns the slowest path
# is a long carry chain. The mapper then makes other paths up to 12 LUTs deep, for area, where 10
# and fewer would do.
NET_PS = 800
FPGA = ("NS_CLOCK_GATE_BYPASS",)
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
            # A cell that recurs on its path is a combinational loop; it is left out.
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

    def ends(self) -> dict[str, tuple[int, str | None]]:
        """Where paths end, registers, memories and hard blocks: the depth there, and the last cell on the way."""
        ends = {}
        for name, cell in self.cells.items():
            if ends_path(cell["type"]) or is_memory(cell["type"]):
                last = max(self._sources(name), key=self.of, default=None)
                ends[name] = (self.depth[last] if last else 0, last)
        return ends

    def path(self, end: str, last: str | None) -> list[str]:
        """The cells from the end of a path to its start."""
        path, step = [end], last
        while step:
            path.append(step)
            step = self.before[step]
        return path


class Names:
    """Names for cells: that of a net they drive, as the source has it, or the place in the source."""

    def __init__(self, module: dict) -> None:
        self.cells = module["cells"]
        self.net: dict[int | str, str] = {}
        for name, net in module["netnames"].items():
            if net.get("hide_name"):
                continue
            for index, bit in enumerate(net["bits"]):
                named = f"{name}[{index}]" if len(net["bits"]) > 1 else name
                if bit not in self.net or self._rank(named) < self._rank(self.net[bit]):
                    self.net[bit] = named

    @staticmethod
    def _rank(name: str) -> tuple[bool, int, str]:
        return (re.search(r"_q(\[\d+\])*$", name) is None, len(name), name)

    def of(self, cell: str) -> str:
        """Its type and its name."""
        drives = self.cells[cell]
        bits = [
            b for p, d in drives["port_directions"].items() if d == "output" for b in drives["connections"].get(p, [])
        ]
        named = sorted((self.net[b] for b in bits if b in self.net), key=self._rank)
        # Not the places in Yosys' own files.
        places = [p for p in drives["attributes"].get("src", "").split("|") if p and not Path(p).is_absolute()]
        return f"{drives['type']} {[*named, *places, cell][0]}"


def deep_paths(levels: Levels, names: Names, limit: int) -> list[str]:
    """Paths of more than `limit` levels, those from one register to another (whatever the bit) on one line."""
    classes: dict[tuple[str, str], list[int]] = {}
    for end, (depth, last) in levels.ends().items():
        if depth > limit:
            path = levels.path(end, last)
            ends = tuple(re.sub(r"(?<=\[)\d+(?=\])", "*", names.of(cell)) for cell in (path[-1], end))
            classes.setdefault(ends, []).append(depth)
    rows = sorted(classes.items(), key=lambda row: (-max(row[1]), row[0]))
    return [f"{max(depths):3} levels, {len(depths):5} ends: {start} -> {end}" for (start, end), depths in rows]


def loop_lines(names: Names, found: list[list[str]]) -> list[str]:
    """Lines that name the cells of each loop."""
    return [
        line
        for loop in found
        for line in (f"combinational loop of {len(loop)} cells:", *(f"    {names.of(cell)}" for cell in loop))
    ]


def tree(modules: dict, top: str, levels: Levels, depth: int) -> list[dict]:
    """A row for each instance down to a depth: its resources with all below, and the deepest path that ends in it."""
    totals: dict[str, Counter[str]] = {}

    def total(module: str) -> Counter[str]:
        if module not in totals:
            cells: Counter[str] = Counter()
            for cell in modules[module]["cells"].values():
                cells += total(cell["type"]) if cell["type"] in modules else Counter({cell["type"]: 1})
            totals[module] = cells
        return totals[module]

    rows: dict[str, dict] = {}

    def visit(path: str, module: str, level: int) -> None:
        rows[path] = {"instance": path, "module": module, "level": level, **count(total(module)), "LUT levels": 0}
        for name, cell in sorted(modules[module]["cells"].items()):
            if level < depth and cell["type"] in modules:
                visit(f"{path}.{name}" if path else name, cell["type"], level + 1)

    visit("", top, 0)
    for end, (deepest, _) in levels.ends().items():
        # A cell of an instance is named `a.b.name`, or `$flatten\a.\b.$name` if the source does not
        # name it.
        place = end.removeprefix("$flatten").replace("\\", "").split("$")[0]
        parts = place.split(".")
        for cut in range(len(parts)):
            row = rows.get(".".join(parts[:cut]))
            if row:
                row["LUT levels"] = max(row["LUT levels"], deepest)
    return list(rows.values())


def run_yosys(work: Path, script: list[str]) -> str:
    """Runs a script and returns its log; raises RuntimeError with the end of it when it fails."""
    (work / "run.ys").write_text("\n".join(script) + "\n")
    log = work / "yosys.log"
    done = subprocess.run([BIN / "yosys", "-l", log, work / "run.ys"], capture_output=True, text=True)
    if done.returncode != 0:
        tail = log.read_text(errors="replace").splitlines()[-20:] if log.exists() else []
        raise RuntimeError("\n".join([*tail, done.stderr.strip(), f"log: {log.relative_to(filelist.ROOT)}"]))
    return log.read_text(errors="replace")


def shallow(listing: str, top: str, depth: int) -> list[str]:
    """Of the modules in Yosys' listing, one for each instance and called `module$path`, those down to a depth."""
    modules = {m[1]: m[0] for m in re.finditer(rf"\S+\$({re.escape(top)}\.\S+)", listing)}

    def level(path: str) -> int:  # Generate blocks put dots into names, too.
        return 1 + sum(path.startswith(f"{above}.") for above in modules)

    return [module for path, module in modules.items() if level(path) <= depth]


def synthesise(
    top: str,
    files: filelist.FileList,
    parameters: list[str],
    uram: bool = False,
    defines: tuple[str, ...] = FPGA,
    hierarchy: int | None = None,
    deep: int | None = None,
    keep: bool = False,
) -> dict:
    """Runs Yosys and returns the figures; raises RuntimeError with the end of its log when it fails."""
    root = filelist.ROOT / "build" / "synth"
    root.mkdir(parents=True, exist_ok=True)
    # A separate folder, because several runs of one top can be in progress.
    name = re.sub(r"[^\w.=-]+", "_", "-".join([top, *parameters]))[:120]
    work = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=root))
    netlist, modules = (work / f"{what}.json" for what in ("netlist", "modules"))
    sources, values, module = list(files.sources), parameters, top
    if flat := flat_top.wrapper(top, files, parameters, defines):
        (work / "flat.sv").write_text(flat)
        sources, values, module = [*sources, work / "flat.sv"], [], f"flat_{top}"
    read = ["read_slang", "--top", module, "-D", "SYNTHESIS", *(f"-D {d}" for d in defines)]
    read += ["--keep-hierarchy"] if hierarchy is not None else []
    read += [f"-G {p}" for p in values] + [f"-I {d}" for d in files.incdirs]
    load = " ".join([*read, *map(str, sources)])
    synth = [
        f"scratchpad -set synth_xilinx.abc9.W {NET_PS}",
        f"synth_xilinx -family xcup -top {module} -flatten -noiopad -noclkbuf{' -uram' if uram else ''}",
    ]
    start = time.monotonic()
    script = [load, *synth, f"write_json {netlist}"]
    if hierarchy is not None:
        kept = [
            f"setattr -mod -set keep_hierarchy 1 {module}"
            for module in shallow(run_yosys(work, [load, "ls"]), module, hierarchy)
        ]
        script = [load, *kept, *synth, f"write_json {modules}"]
        script += ["setattr -mod -unset keep_hierarchy *", "flatten", f"write_json {netlist}"]

    def top_of(modules: dict) -> str:
        return module if module in modules else next(n for n, m in modules.items() if "top" in m["attributes"])

    try:
        run_yosys(work, script)
    except RuntimeError as error:
        if "Assert `no_loops'" not in str(error):
            raise
        # The mapper to LUTs gives up on some loops, by themselves too short a word about it.
        run_yosys(
            work,
            [load, synth[0], f"{synth[1]} -run :map_luts", "flatten", "blackbox =A:whitebox", f"write_json {netlist}"],
        )
        mapped = json.loads(netlist.read_text())["modules"]
        before = mapped[top_of(mapped)]
        found = loops(before, ends_path)
        raise RuntimeError("\n".join(loop_lines(Names(before), found))) from error
    netlists = json.loads(netlist.read_text())["modules"]
    cells_of = netlists[top_of(netlists)]
    cells = Counter(cell["type"] for cell in cells_of["cells"].values())
    levels, names = Levels(cells_of), Names(cells_of)
    end, (depth, last) = max(levels.ends().items(), key=lambda item: item[1][0], default=("", (0, None)))
    result = {
        "top": top,
        "parameters": parameters,
        "family": "UltraScale+ (xcup)",
        "resources": count(cells),
        "lut_levels": depth,
        "path": [names.of(cell) for cell in levels.path(end, last)] if end else [],
        "loops": loop_lines(names, loops(cells_of, ends_path)),
        "cells": dict(sorted(cells.items())),
        "seconds": round(time.monotonic() - start, 1),
    }
    if deep is not None:
        result["deep"] = deep_paths(levels, names, deep)
    if hierarchy is not None:
        # Library cells are black boxes.
        tops = {
            n: m for n, m in json.loads(modules.read_text())["modules"].items() if "blackbox" not in m["attributes"]
        }
        result["hierarchy"] = tree(tops, top_of(tops), levels, hierarchy)
    if not keep:
        shutil.rmtree(work)
    return result


def print_rows(rows: list[dict], labels: list[str]) -> None:
    """Prints a table of resources, with the labels in the last column."""
    print("  ".join(f"{name:>{max(len(name), 7)}}" for name in rows[0]))
    for row, label in zip(rows, labels, strict=True):
        figures = (f"{value:>{max(len(name), 7)}{'g' if value < 1e5 else ''}}" for name, value in row.items())
        print("  ".join([*figures, label]).rstrip())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("top")
    parser.add_argument("files", nargs="*", type=Path, help="further sources")
    parser.add_argument("-f", dest="lists", action="append", default=[], help="a file list (may be repeated)")
    parser.add_argument("-G", dest="parameters", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--uram", action="store_true", help="infer UltraRAM without an attribute")
    parser.add_argument("--path", action="store_true", help="print the deepest path")
    parser.add_argument("--deep", type=int, metavar="LEVELS", help="list the paths of more levels")
    parser.add_argument("--hierarchy", type=int, metavar="DEPTH", help="print a table of instances")
    parser.add_argument("--gates", action="store_true", help="with clock gates")
    parser.add_argument("--keep", action="store_true", help="leave netlist and log in build/synth")
    args = parser.parse_args()
    try:
        files = filelist.read(*args.lists)
        files.sources += [path.resolve() for path in args.files]
        defines = () if args.gates else FPGA
        options = {"hierarchy": args.hierarchy, "deep": args.deep, "keep": args.keep}
        result = synthesise(args.top, files, args.parameters, args.uram, defines, **options)
    except (RuntimeError, ValueError) as error:
        print(error)
        return 1
    print(f"{args.top} {' '.join(args.parameters)}".rstrip() + f", {result['family']}, {result['seconds']} s")
    row = result["resources"] | {"LUT levels": result["lut_levels"]}
    print_rows([row], [""])
    if args.hierarchy is not None:
        print()
        rows = result["hierarchy"]
        labels = [f"{'  ' * r['level']}{r['instance'].rpartition('.')[2] or r['module']}" for r in rows]
        print_rows([{name: r[name] for name in row} for r in rows], labels)
    if args.path:
        print("\n".join(f"    {step}" for step in result["path"]))
    if args.deep is not None:
        print("\n".join(result["deep"]) or f"no path of more than {args.deep} levels")
    if result["loops"]:
        print("\n".join(result["loops"]))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if result["loops"] else 0


if __name__ == "__main__":
    sys.exit(main())
