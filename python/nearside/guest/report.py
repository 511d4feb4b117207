# SPDX-License-Identifier: Apache-2.0
"""What a guest has reported: its status, its files, and the durations of its commands."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tarfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from nearside import files, show
from nearside.guest.machine import Guest
from nearside.serve import print_pacing
from nearside.types import GuestClock, GuestCommands, GuestDevice, GuestPhase, GuestReport

CLOCK_LINE = re.compile(r"^nearside clock: (\{.*\})$", re.MULTILINE)


@dataclass
class PortReport:
    """What the third serial port has carried."""

    status: int | None = None
    """The exit status of the job, if it has ended."""
    marks: dict[int, str] = field(default_factory=lambda: {0: "boot"})
    """The names of phases."""
    lines: list[str] = field(default_factory=list)
    """All lines."""


def read_port(path: Path) -> PortReport:
    """Reads the output of the third serial port."""
    report = PortReport()
    content = path.read_text(errors="replace") if path.exists() else ""
    for text in content.splitlines():
        report.lines.append(text)
        if found := re.fullmatch(r"mark (\d+) (.*)", text):
            report.marks[int(found[1])] = found[2]
        if found := re.fullmatch(r"status (\d+)", text):
            report.status = int(found[1])
    return report


def read_clock(errors: str) -> GuestClock | None:
    """The clock in the messages of QEMU."""
    found = CLOCK_LINE.search(errors)
    return json.loads(found[1]) if found else None


def explain_end(guest: Guest, status: int, errors: str, lines: Sequence[str]) -> str:
    """Why a guest ended without the status of its job."""
    port = guest.serial(0)
    console = port.read_text(errors="replace").replace("\r", "").splitlines() if port.exists() else []
    panic = [line for line in console if "Kernel panic" in line]
    if any("No working init found" in line for line in panic):
        return "the guest has too little memory for its file system: --memory MIB"
    if panic:
        return f"the guest's kernel has panicked: {panic[-1].split('] ')[-1]}"
    if "no-disk" in lines:
        return "the guest finds no disk on a device: its driver gave up, or the design has no namespace"
    clock = [line for line in errors.splitlines() if line.startswith("nearside clock: ") and "{" not in line]
    if clock:
        return clock[-1]
    if status:
        last = [line for line in CLOCK_LINE.sub("", errors).splitlines() if line.strip()] or ["no reason given"]
        how = f"signal {-status}" if status < 0 else f"status {status}"
        return f"QEMU ended with {how}: {last[-1]}"
    last = [line for line in console if line.strip()] or ["nothing"]
    return f"the guest switched off before its job was done; last on its console: {last[-1]}"


def save_files(archive: Path, inputs: dict[str, bytes], target: Path) -> list[str]:
    """Saves the regular files that a job has made or changed, from a tar archive; returns their names.

    `inputs`: SHA-256 of the files that it had at its start.
    A file that can't be saved is reported on standard error, and does not end the report. The archive is the guest's:
    its names can't lead out of `target`.
    """
    saved: list[str] = []
    if not archive.exists():
        return saved
    with suppress(tarfile.ReadError), tarfile.open(archive) as tar:
        for member in tar:
            name = member.name.removeprefix("./")
            try:
                # Of a file with several names the archive has the content once.
                found = tar.getmember(member.linkname) if member.islnk() else member
                if not found.isreg() or (name in inputs and inputs[name] == _digest(tar, found)):
                    continue
                tar.extract(found.replace(name=member.name, deep=False), target, filter="data")
            except (KeyError, OSError, tarfile.TarError) as error:
                reason = getattr(error, "strerror", None) or error
                print(f"guest: {files.printable(name)} can't be saved: {files.printable(reason)}", file=sys.stderr)
                continue
            saved.append(name)
    return saved


def _digest(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes | None:
    """SHA-256 of a file of an archive."""
    file = tar.extractfile(member)
    return hashlib.file_digest(file, "sha256").digest() if file else None  # type: ignore[arg-type]


def job_phases(device: GuestDevice) -> list[GuestPhase]:
    """The phases between the begin of the job and its end."""
    # By place, since a job may give a phase any name.
    phases = device["phases"][1:]
    return phases[:-1] if phases and phases[-1]["name"] == "end" else phases


def job_commands(report: GuestReport, command: str, device: int = 0) -> list[GuestCommands]:
    """The durations of a kind of command in the phases of the job."""
    rows = [row for phase in job_phases(report["devices"][device]) for row in phase["commands"]]
    return [row for row in rows if row["command"] == command]


def print_report(report: GuestReport, results: Path) -> None:
    """Prints where the time of a job went."""
    clock, cpu = report["clock"], report["cpu"]
    if clock is not None:
        seconds, idle = clock["ps"] / 1e12, clock["skipped_ps"] / 1e12
        who = "the CPU" if report["cpus"] == 1 else "a CPU on average"
        text = f"simulated time: {seconds:.6f} s from power-on, in {idle:.6f} s of it {who} executed nothing;"
        show.out.print(f"{text} {clock['instructions']:,} instructions")
    pacing = [(device["name"], device["pacing"]) for device in report["devices"]]
    paced = [(name, found) for name, found in pacing if found]
    if cpu is not None:
        what = "simulated time"
        show.out.print(
            f"CPU: {cpu['instruction_ns']:g} ns an instruction (host profile {files.printable(cpu['host'])})"
        )
    elif paced:
        what = "as modelled"
    else:
        what = "wall-clock time of this machine: the simulator's speed, not the device's"
    for device in report["devices"]:
        for phase in job_phases(device):
            if phase["commands"]:
                _print_phase(device, phase, what)
    if paced:
        print_pacing(paced)
        if (dilation := paced[0][1]["dilation"]) != 1:
            show.out.print(f"Divide what the job has measured by {dilation:g}.")
    if report["partial"]:
        show.out.print("Interrupted: the figures are partial.")
    if report["out_of_memory"]:
        show.out.print("The guest's kernel ended a process for lack of memory: --memory MIB.")
    if report["files"]:
        names = ", ".join(map(files.printable, report["files"]))
        show.out.print(f"Files of the job, in {files.printable(results)}: {names}")


def _print_phase(device: GuestDevice, phase: GuestPhase, what: str) -> None:
    title = f"{device['name']} ({device['design']}, {device['profile']}), {phase['name']}: {what}"
    table = show.table(title, "command", "count", "mean", "device", "link", "p50", "p99", "max")
    for row in phase["commands"]:
        values = [row["mean_ns"], row["device_ns"], row["link_ns"], row["p50_ns"], row["p99_ns"], row["max_ns"]]
        table.add_row(row["command"], str(row["count"]), *map(show.nanoseconds, values))
    show.out.print(table)
    span, busy = show.nanoseconds(phase["span_ns"]), show.nanoseconds(phase["in_flight_ns"])
    pause = show.nanoseconds(phase["pause_p50_ns"])
    show.out.print(
        f"{span}, in {busy} of it a command was in flight. Median time between two commands with none in flight, "
        f"the guest's own code: {pause}"
    )
