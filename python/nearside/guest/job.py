# SPDX-License-Identifier: Apache-2.0
"""A command in a guest: its files, its output, and its results."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time
from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from nearside import files, show
from nearside import trace as trace_summary
from nearside._native import NearsideError
from nearside.device import Design
from nearside.guest.image import Archive, write_initrd
from nearside.guest.kit import install_kit
from nearside.guest.machine import SIMULATED, WALL, CpuModel, Guest, start
from nearside.serve import Server, print_pacing
from nearside.types import GuestClock, GuestCommands, GuestReport

POLL_S = 0.05
CLOCK_LINE = re.compile(r"^nearside clock: (\{.*\})$", re.MULTILINE)


@dataclass
class Job:
    """A command in a guest, with the files that it needs."""

    words: Sequence[str]
    """The command. Words that name files of this machine become names in the guest."""
    folders: Sequence[Path] = ()
    """Folders that the guest gets a copy of, under their names."""
    inputs: dict[str, bytes] = field(default_factory=dict, init=False)
    """The files that `archive` has found in the command, by their names in the guest."""

    def archive(self) -> Archive:
        """What the guest's file system has besides the kit."""
        archive = Archive()
        self.inputs.clear()
        words = []
        for word in self.words:
            path = Path(word)
            if not path.is_file():
                words.append(word)
                continue
            if path.name in self.inputs:
                raise NearsideError(f"two files are called {files.printable(path.name)}: a job has one folder")
            self.inputs[path.name] = files.read_bytes(path)
            words.append(path.name)
        archive.add_folder("job/.run")
        for name, content in self.inputs.items():
            archive.add_file(f"job/{name}", content, executable=True)
        for folder in self.folders:
            if not folder.is_dir():
                raise NearsideError(f"{files.printable(folder)} is no folder")
            archive.add_tree(f"job/{folder.resolve().name}", folder)
        if words and words[0] in self.inputs:
            words[0] = f"./{words[0]}"
        archive.add_file("job/.run/command", (shlex.join(words) + "\n").encode())
        return archive


class Follower:
    """Copies what is added to a file to standard output."""

    def __init__(self, path: Path, output: IO[bytes] | None) -> None:
        self.path, self.output, self.done = path, output, 0

    def copy(self) -> None:
        if self.output is None or not self.path.exists():
            return
        with open(self.path, "rb") as file:
            file.seek(self.done)
            text = file.read()
        self.done += len(text)
        if text:
            self.output.write(text)
            self.output.flush()


def _read_clock(errors: str) -> GuestClock | None:
    found = CLOCK_LINE.search(errors)
    return json.loads(found[1]) if found else None


def _explain_end(guest: Guest, status: int, errors: str, words: str) -> str:
    """Why a guest ended without the status of its job."""
    port = guest.serial(0)
    console = port.read_text(errors="replace").replace("\r", "").splitlines() if port.exists() else []
    panic = [line for line in console if "Kernel panic" in line]
    if any("No working init found" in line for line in panic):
        return "the guest has too little memory for its file system: --memory MIB"
    if panic:
        return f"the guest's kernel has panicked: {panic[-1].split('] ')[-1]}"
    if "no-disk" in words:
        return "the guest finds no disk on its device: its driver gave up, or the design has no namespace"
    clock = [line for line in errors.splitlines() if line.startswith("nearside clock: ") and "{" not in line]
    if clock:
        return clock[-1]
    if status:
        last = [line for line in errors.splitlines() if line.strip()] or ["no reason given"]
        how = f"signal {-status}" if status < 0 else f"status {status}"
        return f"QEMU ended with {how}: {last[-1]}"
    last = [line for line in console if line.strip()] or ["nothing"]
    return f"the guest switched off before its job was done; last on its console: {last[-1]}"


def _split_report(data: bytes) -> tuple[list[str], bytes]:
    """The lines of the third serial port, and the archive after them."""
    lines: list[str] = []
    while data:
        line, _, data = data.partition(b"\n")
        lines.append(line.decode(errors="replace"))
        if lines[-1].startswith("status "):
            break
    return lines, data


def _measure_commands(trace: Path) -> list[GuestCommands]:
    """What the device and its link have taken for each kind of command, from the doorbell to the interrupt."""
    spans: dict[str, array[int]] = {}
    with open(trace) as lines:
        for line in lines:
            command = json.loads(line)
            times = command["times_ps"].values()
            if command["status"] is not None:
                spans.setdefault(command["command"], array("q")).append(max(times) - min(times))
    rows: list[GuestCommands] = []
    for kind, unsorted in sorted(spans.items()):
        values = sorted(unsorted)
        rank = {p: trace_summary.nearest_rank(values, p) / 1e3 for p in (50, 99)}
        mean = sum(values) / len(values) / 1e3
        rows.append(
            {
                "command": kind,
                "count": len(values),
                "mean_ns": mean,
                "p50_ns": rank[50],
                "p99_ns": rank[99],
                "max_ns": values[-1] / 1e3,
            }
        )
    return rows


def _save_files(archive: bytes, inputs: dict[str, bytes], target: Path) -> list[str]:
    """Saves the files that a job has made or changed."""
    saved = []
    with suppress(tarfile.ReadError), tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            name = member.name.removeprefix("./")
            content = tar.extractfile(member)
            if not member.isreg() or content is None:
                continue
            data = content.read()
            if inputs.get(name) == data:
                continue
            tar.extract(member, target, filter="data")
            saved.append(name)
    return saved


def run_job(
    job: Job,
    design: Design,
    *,
    model: str | None = None,
    simulated: bool = True,
    dilation: float | None = None,
    memory_mib: int = 512,
    cpu: CpuModel | None = None,
    trace: Path | None = None,
    results: Path | None = None,
    output: IO[bytes] | None = None,
    timeout_s: float | None = None,
    quiet: bool = True,
) -> GuestReport:
    """Boots a guest on a device of `design`, runs a job in it, and switches it off.

    `output` gets the job's output while it runs; the files that the job leaves in its folder go to `results`.
    `timeout_s` is in seconds of wall-clock time. `dilation` is that of `serve.Server`, for wall-clock time.
    """
    kit = install_kit(quiet)
    archive = job.archive()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="nearside-") as name:
        folder = Path(name)
        clock = folder / "clock" if simulated else None
        socket = folder / "device"
        guest = Guest(kit, folder, [socket], clock, memory_mib, cpu or CpuModel(), dilation)
        initrd = folder / "initrd"
        write_initrd(kit, archive, initrd)
        errors = folder / "errors"
        follower = Follower(guest.serial(1), output)
        events = trace or folder / "trace.jsonl"
        with Server([(design, socket)], None, [events], model, clock, dilation) as server:
            process = start(guest.command(initrd), errors)
            try:
                _wait(process, follower, timeout_s)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            follower.copy()
            counters, pacing = server.counters(), server.pacing()
        said = errors.read_text(errors="replace")
        report_port = guest.serial(2)
        lines, tar = _split_report(report_port.read_bytes() if report_port.exists() else b"")
        status = next((int(line.split()[1]) for line in lines if line.startswith("status ")), None)
        if status is None:
            raise NearsideError(_explain_end(guest, process.returncode, said, "\n".join(lines)))
        saved = _save_files(tar, job.inputs, results) if results else []
        commands = _measure_commands(events) if events.suffix == ".jsonl" else []
        text = guest.serial(1).read_bytes().decode(errors="replace").replace("\r\n", "\n")
    found: dict[str, Any] = {
        "command": list(job.words),
        "status": status,
        "time": SIMULATED if simulated else WALL,
        "output": text,
        "files": saved,
        "out_of_memory": "memory" in lines,
        "clock": _read_clock(said),
        "pacing": pacing[0] if pacing else None,
        "commands": commands,
        "counters": counters[0],
        "wall_s": time.monotonic() - began,
    }
    return found  # type: ignore[return-value]


def run_shell(
    design: Design,
    *,
    model: str | None = None,
    simulated: bool = True,
    dilation: float | None = None,
    memory_mib: int = 512,
    cpu: CpuModel | None = None,
    folders: Sequence[Path] = (),
) -> None:
    """Boots a guest and connects this terminal to a shell in it, until the shell ends."""
    kit = install_kit()
    job = Job([], folders)
    archive = job.archive()
    archive.add_file("job/.run/shell", b"")
    with tempfile.TemporaryDirectory(prefix="nearside-") as name:
        folder = Path(name)
        clock = folder / "clock" if simulated else None
        guest = Guest(kit, folder, [folder / "device"], clock, memory_mib, cpu or CpuModel(), dilation)
        write_initrd(kit, archive, folder / "initrd")
        with Server([(design, folder / "device")], None, [], model, clock, dilation) as server:
            process = start(guest.command(folder / "initrd", interactive=True), folder / "errors", interactive=True)
            process.wait()
            pacing = server.pacing()
        if process.returncode:
            raise NearsideError(_explain_end(guest, process.returncode, (folder / "errors").read_text(), ""))
    if pacing:
        print_pacing([("device", pacing[0])])


def _wait(process: subprocess.Popen[bytes], follower: Follower, timeout_s: float | None) -> None:
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        try:
            process.wait(POLL_S)
            return
        except subprocess.TimeoutExpired:
            follower.copy()
        if deadline is not None and time.monotonic() > deadline:
            raise NearsideError(f"the guest has not ended within {timeout_s:g} s of wall-clock time")


def standard_output() -> IO[bytes]:
    """Where a job's output goes."""
    return sys.stdout.buffer


def print_report(report: GuestReport) -> None:
    """Prints where the time of a job went."""
    clock = report["clock"]
    if clock is not None:
        seconds, idle = clock["ps"] / 1e12, clock["skipped_ps"] / 1e12
        text = f"simulated time: {seconds:.6f} s from power-on, in {idle:.6f} s of it the CPU executed nothing;"
        show.out.print(f"{text} {clock['instructions']:,} instructions")
        where = "device and link, simulated time, from the doorbell to the interrupt"
    elif report["pacing"] is not None:
        where = "device and link as modelled, from the doorbell to the interrupt"
    else:
        where = "wall-clock time of this machine: the simulator's speed, not the device's"
    table = show.table(where, "command", "count", "mean", "p50", "p99", "max")
    for row in report["commands"]:
        values = [row["mean_ns"], row["p50_ns"], row["p99_ns"], row["max_ns"]]
        table.add_row(row["command"], str(row["count"]), *map(show.nanoseconds, values))
    show.out.print(table)
    if report["pacing"] is not None:
        print_pacing([("device", report["pacing"])])
        if report["pacing"]["dilation"] != 1:
            show.out.print(f"Divide what the job has measured by {report['pacing']['dilation']:g}.")
    if report["out_of_memory"]:
        show.out.print("The guest's kernel ended a process for lack of memory: --memory MIB.")
    if report["files"]:
        show.out.print(f"Files of the job, in results/guest: {', '.join(map(files.printable, report['files']))}")
