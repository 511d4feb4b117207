#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed of a guest in simulated time: CPU seconds of this machine for a boot, and reads per CPU second.

usage: bench/guest.py [--model fast|rtl] [--reads N] [--runs N] [--json]

A read costs the difference of two jobs of fio, one with N reads more. CPU seconds are those of QEMU and of the server,
user and system. In process, reads come from the host that is simulated there. It keeps the device busier than a kernel
does, so the two are also compared by the simulated time with a command in flight.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys

from nearside import Design, Device
from nearside.guest.job import Job, Setup, run_job
from nearside.guest.machine import CpuModel

DEPTH = 8
FEW = 200
FIO = (
    "fio --name=t --filename=/dev/nvme0n1 --direct=1 --bs=4k --rw=randread --ioengine=libaio --size=64m --randseed=1 "
    f"--iodepth={DEPTH} --thread --norandommap --number_ios="
)
# Required: CPU seconds of a boot, reads per CPU second, and the share of what is possible in
# process.
BOOT_S, READS_PER_S, RTL_SHARE = 15, 5000, 0.5


def cpu_s() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def guest_cost(words: list[str], model: str) -> tuple[float, float]:
    """A job in a guest: CPU seconds, and simulated ns with a command in flight."""
    before = cpu_s()
    report = run_job(Job(words), Setup([Design.load("default")], model, CpuModel.load()))
    if report["status"] != 0:
        sys.exit(f"the job ends with status {report['status']}: {report['output']}")
    return cpu_s() - before, sum(phase["in_flight_ns"] for phase in report["devices"][0]["phases"])


def process_cost(reads: int, model: str) -> tuple[float, float]:
    """The same for reads in process."""
    with Device(Design.load("default"), model=model) as device:
        before = cpu_s()
        report = device.workload(min_bytes=4096, depth=DEPTH, commands=reads, seed=1, verify=False)
        return cpu_s() - before, reads / report["iops"] * 1e9


def measure(reads: int, model: str) -> dict[str, float]:
    """One measurement of everything."""
    boot, _ = guest_cost(["true"], model)
    few, few_ns = guest_cost([*(FIO + str(FEW)).split()], model)
    many, many_ns = guest_cost([*(FIO + str(FEW + reads)).split()], model)
    process, process_ns = process_cost(reads, model)
    guest = many - few
    return {
        "boot_s": boot, "guest_reads": reads / guest, "guest_us": (many_ns - few_ns) / guest / 1e3,
        "process_reads": reads / process, "process_us": process_ns / process / 1e3,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("fast", "rtl"), default="fast")
    parser.add_argument("--reads", type=int, help="reads that a measurement takes: 20000, or 500 on the RTL")
    parser.add_argument("--runs", type=int, default=3, help="measurements, of which the median counts")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    reads = options.reads or {"fast": 20000, "rtl": 500}[options.model]
    rows = [measure(reads, options.model) for _ in range(options.runs)]
    found = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
    if options.json:
        print(json.dumps({"model": options.model, "reads": reads, "median": found, "runs": rows}))
        return
    fast = options.model == "fast"
    print(f"{options.model} model, {reads} reads of 4 KiB at depth {DEPTH}, median of {options.runs}, per CPU second")
    print(f"boot to the end of an empty job: {found['boot_s']:.1f} s of CPU; at most {BOOT_S}")
    print(f"reads in the guest: {found['guest_reads']:,.0f}" + (f"; at least {READS_PER_S:,}" if fast else ""))
    print(f"reads in process: {found['process_reads']:,.0f}")
    share = found["guest_us"] / found["process_us"]
    print(f"simulated us with a command in flight: {found['guest_us']:,.0f}, in process {found['process_us']:,.0f}")
    print(f"ratio of the two: {share:.2f}" + ("" if fast else f"; at least {RTL_SHARE}"))


if __name__ == "__main__":
    main()
