#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Crash consistency of libpmemobj and of this project's library, on identical operations, in simulated time.

usage: bench/libpmemobj.py [--transactions N] [--seeds N] [--json]

The same puts, updates, removals and aborts go to four structures with undo logs. `structures.c` has them with
libpmemobj, and crates/workloads with the library of crates/pm, by the CPU and offloaded. The flushes, fences and copies
of libpmemobj are repeated on the simulated host, profile `nearpm`, design `nearpm-paper`, whose fences read back. A
value is the mean per transaction. That of libpmemobj is the difference of two runs, one with N transactions more. Its
library's own code is not included; that of crates/pm is.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from nearside import _native, pmdk
from nearside.experiments import nearpm
from nearside.experiments.registry import Run

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import pmdk as kits  # noqa: E402

STRUCTURES = ("btree", "rbtree", "skiplist", "hashmap")


def operations(name: str, seed: int, transactions: int) -> str:
    command = ["cargo", "run", "--quiet", "--profile", "checked", "-p", "nearside-workloads", "--example", "operations"]
    words = [*command, "--", name, str(seed), str(transactions)]
    return subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def cost(program: Path, listing: str, name: str, folder: Path) -> float:
    """Simulated ns of libpmemobj's crash consistency in the transactions of a listing."""
    file, trace = folder / "operations", folder / "trace"
    file.write_text(listing)
    with tempfile.TemporaryDirectory(dir=folder) as pools:
        words = [str(program), "follow", str(file), f"{name}:{pools}/pool"]
        variables = pmdk.environment(pmdk.write_shim(folder), None, trace=trace)
        subprocess.run(words, env=variables, check=True)
    of = nearpm.design(Run("fast", False, 1, {}, None), "nearpm-paper")
    return _native.pmdk_cost(of.native, trace.read_bytes(), "read_back", "fast")["ns"]


def measure(program: Path, name: str, seed: int, transactions: int, folder: Path) -> dict[str, float]:
    warm = transactions // 10
    few = cost(program, operations(name, seed, warm), name, folder)
    many = cost(program, operations(name, seed, warm + transactions), name, folder)
    of = nearpm.design(Run("fast", False, seed, {}, None), "nearpm-paper")
    shape = (name, "undo")
    ours = {
        who: _native.pm_benchmark(of.native, *shape, offloaded, "read_back", transactions, 0.0, seed)["consistency_ns"]
        for who, offloaded in (("cpu", False), ("engine", True))
    }
    return {"libpmemobj": (many - few) / transactions, **ours}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transactions", type=int, default=300, help="transactions of a measurement, 10 to 4000")
    parser.add_argument("--seeds", type=int, default=3, help="measurements, of which the mean counts")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = {}
    with tempfile.TemporaryDirectory(prefix="nearside-") as scratch:
        program = Path(scratch) / "structures"
        kits.compile_program(kits.KIT.folder(), ROOT / "crates/pmdk/examples/structures.c", program)
        for name in STRUCTURES:
            seeds = range(1, options.seeds + 1)
            runs = [measure(program, name, seed, options.transactions, Path(scratch)) for seed in seeds]
            rows[name] = {key: statistics.fmean(run[key] for run in runs) for key in runs[0]}
    if options.json:
        print(json.dumps({"time": "simulated", "transactions": options.transactions, "rows": rows}, indent=2))
        return
    print("ns a transaction, simulated; regions of crash consistency, undo logs, durable")
    print(f"{'':10} {'libpmemobj':>10} {'ours, CPU':>10} {'offloaded':>10} {'x of libpmemobj':>16} {'x of ours':>10}")
    for name, row in rows.items():
        library, cpu, engine = (row[key] for key in ("libpmemobj", "cpu", "engine"))
        print(f"{name:10} {library:10.0f} {cpu:10.0f} {engine:10.0f} {library / engine:16.2f} {cpu / engine:10.2f}")


if __name__ == "__main__":
    main()
