# SPDX-License-Identifier: Apache-2.0
"""Whether simulated time works with a QEMU: the same job is the same twice, and measures the device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict

from nearside._native import NearsideError
from nearside.device import Design
from nearside.guest.job import Job, Setup, run_job
from nearside.guest.machine import CpuModel
from nearside.guest.report import job_commands
from nearside.types import GuestReport

READS = 200
FIO = (
    "fio --name=check --filename=/dev/nvme0n1 --direct=1 --bs=4k --rw=randread --ioengine=psync --size=8m "
    f"--number_ios={READS} --randseed=1 --thread --output-format=json"
)
PROFILES = ("dram", "pcm")
# What software may take more on one medium than on another: only the phase of the device's clock
# differs.
TOLERANCE_NS = 8


class ClockCheck(TypedDict):
    """The result of a check of simulated time."""

    same_twice: bool
    """Whether two runs were the same to the last instruction."""
    fio_dram_ns: float
    """The mean latency of a read as fio prints it, on DRAM, in ns."""
    device_dram_ns: float
    """What the device and its link take of that, in ns."""
    fio_pcm_ns: float
    """The same on the slower medium, in ns."""
    device_pcm_ns: float
    """The same on the slower medium, in ns."""
    software_difference_ns: float
    """By how much the rest of the latency differs between the media, in ns."""


def _measure(profile: str, quiet: bool, qemu: Path | None) -> tuple[GuestReport, float, float]:
    design = Design.load("default").with_values(f"[media]\nprofile = '{profile}'")
    setup = Setup([design], "fast", CpuModel.load(), qemu=qemu)
    report = run_job(Job(FIO.split()), setup, timeout_s=600, quiet=quiet)
    if report["status"] != 0:
        raise NearsideError(f"fio ends with status {report['status']}: {report['output'].strip()}")
    found = json.loads(report["output"])["jobs"][0]["read"]["clat_ns"]["mean"]
    reads = [row for row in job_commands(report, "Read") if row["count"] >= READS]
    if not reads:
        raise NearsideError(f"the device has not had {READS} reads: {report['devices']}")
    return report, found, reads[0]["mean_ns"]


def check_clock(quiet: bool = False, qemu: Path | None = None) -> ClockCheck:
    """Runs the check with the kit's QEMU or another one; an error if QEMU does not work at all."""
    first, dram, device_dram = _measure(PROFILES[0], quiet, qemu)
    second, _, _ = _measure(PROFILES[0], quiet, qemu)
    _, pcm, device_pcm = _measure(PROFILES[1], quiet, qemu)
    same = all(first[key] == second[key] for key in ("clock", "output", "devices"))
    return {
        "same_twice": same,
        "fio_dram_ns": dram,
        "device_dram_ns": device_dram,
        "fio_pcm_ns": pcm,
        "device_pcm_ns": device_pcm,
        "software_difference_ns": (pcm - device_pcm) - (dram - device_dram),
    }


def explain_failure(found: ClockCheck) -> str | None:
    """What a check has found wrong, in one line; None if simulated time works."""
    if not found["same_twice"]:
        return "simulated time does not work with this QEMU: two runs differ"
    difference = found["software_difference_ns"]
    if not abs(difference) <= TOLERANCE_NS:
        return (
            f"simulated time does not work with this QEMU: software differs by {difference:.1f} ns between the media, "
            f"allowed are {TOLERANCE_NS} ns"
        )
    return None
