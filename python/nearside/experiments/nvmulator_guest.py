# SPDX-License-Identifier: Apache-2.0
"""NVMulator's figures of file systems and databases: programs in a stock guest, in simulated time."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from nearside import trace as traces
from nearside._native import NearsideError
from nearside.device import Design
from nearside.experiments.registry import Run
from nearside.guest.job import Job, Setup, run_job
from nearside.guest.machine import CpuModel

PROFILES = ("optane-dcpmm", "dram", "pcm")
# The end of the file system, in blocks of 4 KiB: what is beyond it on a namespace of 1 GiB marks
# places in a trace.
FS_BLOCKS = 256_000
FS_BLOCK_BYTES = 4096
LBA_BYTES = 512
LBAS = FS_BLOCK_BYTES // LBA_BYTES
# Reads a block beyond the file system, which marks a place in the trace.
MARK = (
    f"mark() {{ dd if=/dev/nvme0n1 of=/dev/null bs={FS_BLOCK_BYTES} skip=$(({FS_BLOCKS} + $1)) count=1 iflag=direct "
    "2> /dev/null; }\n"
)
# Without lazy initialisation the kernel writes nothing later.
MKFS = (
    f"mke2fs -q -t ext4 -b {FS_BLOCK_BYTES} -N 1024 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "
    f"/dev/nvme0n1 {FS_BLOCKS}"
)

Command = dict[str, Any]


@dataclass(frozen=True)
class GuestRun:
    """A script that has run in a guest."""

    files: dict[str, str]
    """The files that it has left, by name."""
    commands: list[Command]
    """Its device's commands, in the order of their ends."""
    output: str
    """What it has written to its terminal."""


def profile_design(run: Run, profile: str) -> Design:
    """The experiment's design with a media profile; like NVMe devices of hardware, without shadow doorbells."""
    return run.required_design.with_values(f"[media]\nprofile = '{profile}'\n[nvme]\ndoorbell_buffer = false\n")


def run_script(
    run: Run,
    design: Design,
    script: str,
    inputs: dict[str, str] | None = None,
    cpus: int = 1,
    kernel_line: str = "",
    output: IO[bytes] | None = None,
) -> GuestRun:
    """Boots a guest on a device of this design, and runs a script of the shell in it.

    `inputs` are files for it, by name. A script that fails is an error with the last line that it printed. What it
    prints goes to `output`, too, while it runs.
    """
    with tempfile.TemporaryDirectory(prefix="nearside-") as name:
        folder = Path(name)
        words = []
        for file, text in {"script.sh": f"#!/bin/sh\nset -e\n{script}", **(inputs or {})}.items():
            (folder / file).write_text(text)
            words.append(str(folder / file))
        trace, results = folder / "trace.jsonl", folder / "results"
        setup = Setup([design], run.model, CpuModel.load(), cpus=cpus, kernel_line=kernel_line)
        report = run_job(Job(words), setup, trace=trace, results=results, output=output)
        if report["status"] != 0:
            last = report["output"].strip().splitlines()[-1:] or ["no reason given"]
            raise NearsideError(f"the guest's script ends with status {report['status']}: {last[0]}")
        found = {file: (results / file).read_text() for file in report["files"]}
        return GuestRun(found, traces.load(trace), report["output"])


def mark_place(number: int) -> int:
    """The byte of the namespace, beyond the file system, whose read marks a place in a trace."""
    return (FS_BLOCKS + number) * FS_BLOCK_BYTES


def begun_ps(command: Command) -> int:
    """When the host announced a command: by a doorbell, else its entry's fetch is the first that is known."""
    return int(min(command["times_ps"].values()))


def split_at_marks(commands: Sequence[Command], count: int) -> list[list[Command]]:
    """The commands between each of the marks 0 to `count` and the next one, in the order of their begins."""
    ordered = sorted(commands, key=begun_ps)
    first = mark_place(0) // LBA_BYTES
    places = {
        (command["lba"] - first) // LBAS: index
        for index, command in enumerate(ordered)
        if command["command"] == "Read" and command["lba"] is not None and command["lba"] >= first
    }
    missing = [number for number in range(count + 1) if number not in places]
    if missing:
        raise NearsideError(f"the trace lacks the mark {missing[0]} of {count}")
    return [ordered[places[number] + 1 : places[number + 1]] for number in range(count)]


def device_ns(command: Command) -> float:
    """What a command has taken in device and link, in ns: to the interrupt."""
    return (completed_ps(command) - begun_ps(command)) / 1e3


def completed_ps(command: Command) -> int:
    """When the host knew of a command's end."""
    return int(max(command["times_ps"].values()))


def parse_extents(text: str) -> dict[str, list[tuple[int, int]]]:
    """The blocks of files from the output of `filefrag -v`: first LBA and the one after the last, by name."""
    found: dict[str, list[tuple[int, int]]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("File size of "):
            name = line.removeprefix("File size of ").partition(" is ")[0]
            found[name] = []
            continue
        fields = line.split(":")
        if name and fields[0].strip().isdigit():
            low, high = (int(word.strip()) for word in fields[2].split(".."))
            found[name].append((low * LBAS, (high + 1) * LBAS))
    return found


def commands_of(commands: Sequence[Command], extents: Sequence[tuple[int, int]], kind: str) -> list[Command]:
    """The commands of a kind that begin in these blocks."""
    return [
        command
        for command in commands
        if command["command"] == kind
        and command["lba"] is not None
        and any(low <= command["lba"] < high for low, high in extents)
    ]
