# SPDX-License-Identifier: Apache-2.0
"""A command in a guest: its devices, its files, its output, and its results."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from nearside import files, show
from nearside._native import NearsideError
from nearside.device import Design, toml_text
from nearside.guest import report as reports
from nearside.guest.image import Archive, write_disk, write_initrd
from nearside.guest.kit import install_kit
from nearside.guest.machine import SIMULATED, WALL, CpuModel, Guest, start
from nearside.serve import Server, ended_by_signals, print_pacing
from nearside.types import GuestReport

POLL_S = 0.05
# Between two reports of progress.
PROGRESS_S = 0.5
INTERRUPTED = 130


def _is_kernels(path: Path) -> bool:
    """Whether a path names what a kernel tells of itself: that of the guest is meant."""
    return path.is_absolute() and path.parts[1:2] in (("proc",), ("sys",))


@dataclass
class Job:
    """A command in a guest, with the files that it needs."""

    words: Sequence[str]
    """The command. Words that name files of this machine become names in the guest."""
    folders: Sequence[Path] = ()
    """Folders that the guest gets a copy of in its memory, under their names."""
    images: Sequence[Path] = ()
    """Folders that the guest gets a copy of on a device each, read-only: /image/NAME."""
    inputs: dict[str, bytes] = field(default_factory=dict, init=False)
    """SHA-256 of each file that `archive` has put into the guest's folder, by the names there."""

    def archive(self, devices: int) -> Archive:
        """What the guest's file system has besides the kit."""
        archive = Archive()
        words = []
        taken: dict[str, bytes] = {}
        trees: list[str] = []
        for word in self.words:
            path = Path(word)
            # Unlike Path.is_file, it has no error for a word that is too long to be a name.
            if not os.path.isfile(path) or _is_kernels(path):
                words.append(word)
                continue
            if path.name in taken:
                raise NearsideError(f"two files are called {files.printable(path.name)}: a job has one folder")
            taken[path.name] = files.read_bytes(path)
            words.append(path.name)
        archive.add_folder("job/.run")
        for name, content in taken.items():
            archive.add_file(f"job/{name}", content, executable=True)
        for folder in self.folders:
            if not folder.is_dir():
                raise NearsideError(f"{files.printable(folder)} is no folder")
            name = folder.resolve().name
            if name in (".run", "", *taken) or f"job/{name}" in trees:
                raise NearsideError(f"{files.printable(folder)}: a job has another file or folder of that name")
            trees.append(f"job/{name}")
            archive.add_tree(trees[-1], folder)
        self.inputs.clear()
        self.inputs.update({name.removeprefix("job/"): digest for name, digest in archive.digests.items()})
        if words and words[0] in taken:
            words[0] = f"./{words[0]}"
        archive.add_file("job/.run/command", os.fsencode(shlex.join(words) + "\n"))
        archive.add_file("job/.run/devices", f"{devices}\n".encode())
        archive.add_file("job/.run/images", "".join(f"{name}\n" for name in self.image_names()).encode())
        return archive

    def image_names(self) -> list[str]:
        """The names of the images in the guest."""
        names = [folder.resolve().name for folder in self.images]
        for name in names:
            if not name.isprintable() or not name or any(letter in name for letter in " /\\"):
                raise NearsideError(f"{files.printable(name)}: the name of an image has no spaces and no backslashes")
            if names.count(name) > 1:
                raise NearsideError(f"two images are called {files.printable(name)}")
        return names


@dataclass(frozen=True)
class Setup:
    """The machine that a job runs in."""

    designs: Sequence[Design]
    """The designs of its devices."""
    model: str | None = None
    """The model that simulates them; None: the default."""
    cpu: CpuModel | None = None
    """Its kind of CPU; None: wall-clock time."""
    memory_mib: int = 512
    """Its memory, in MiB."""
    dilation: float | None = None
    """In wall-clock time: that of `serve.Server`, if its devices are paced."""
    cpus: int = 1
    """The number of its CPUs, 1 to 8."""
    qemu: Path | None = None
    """Another QEMU than the kit's, of any version."""
    kernel_line: str = ""
    """More words for its kernel's command line."""


class Follower:
    """Copies what is added to a file to standard output."""

    def __init__(self, path: Path, output: IO[bytes] | None) -> None:
        self.path, self.output, self.done = path, output, 0

    def copy(self) -> bool:
        """Copies what is new; whether something was."""
        if self.output is None or not self.path.exists():
            return False
        with open(self.path, "rb") as file:
            file.seek(self.done)
            text = file.read()
        self.done += len(text)
        if text:
            self.output.write(text)
            self.output.flush()
        return bool(text)


class Progress:
    """A line on the terminal: what the guest does, and how far its devices have come."""

    def __init__(self, server: Server, guest: Guest, enabled: bool) -> None:
        self.server, self.guest = server, guest
        self.status = show.err.status("guest: booting") if enabled and sys.stderr.isatty() else None
        self.due = time.monotonic()
        if self.status:
            self.status.start()

    def update(self) -> None:
        """Updates the line, if it is there and it is time."""
        if self.status is None or time.monotonic() < self.due:
            return
        self.due = time.monotonic() + PROGRESS_S
        done = self.server.native.progress()
        commands, last = sum(count for count, _ in done), max(time_ps for _, time_ps in done)
        what = "running" if _is_ready(self.guest) else "booting"
        clock = f", {last / 1e12:.6f} s simulated" if self.guest.clock else ""
        self.status.update(f"guest: {what}, {commands:,} commands{clock}")

    def stop(self) -> None:
        """Removes the line."""
        if self.status:
            self.status.stop()
            self.status = None


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """A list of the requests to end this process, which only the main thread can get."""
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    with ended_by_signals() as received:
        yield received


@contextmanager
def _unwinding() -> Iterator[None]:
    """SIGTERM and SIGHUP (a closed terminal) raise SystemExit, so that no file and no process is left."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # What ignores a signal, such as nohup, keeps on doing so.
    numbers = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for a guest, which is removed at the end."""
    with _unwinding(), tempfile.TemporaryDirectory(prefix="nearside-") as name:
        yield Path(name)


@contextmanager
def _terminal() -> Iterator[None]:
    """Restores the settings of the terminal, which QEMU changes."""
    before = termios.tcgetattr(sys.stdin) if sys.stdin.isatty() else None
    try:
        yield
    finally:
        if before is not None:
            with suppress(termios.error):  # closed
                termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _is_ready(guest: Guest) -> bool:
    """Whether the guest has booted and is about to start its job."""
    port = guest.serial(2)
    return port.exists() and b"ready" in port.read_bytes()[:4096]


def _attach_images(kit: Path, job: Job, folder: Path) -> list[Design]:
    """Makes the images; designs of devices that have them."""
    designs = []
    for number, source in enumerate(job.images):
        path = folder / f"image{number}"
        size = write_disk(kit, source, path)
        keys = f'bytes = {size}\nprofile = "dram"\nfile = {toml_text("the name of an image", str(path))}\n'
        designs.append(Design.load("default").with_values(f"[media]\n{keys}"))
    return designs


def _make_guest(setup: Setup, kit: Path, folder: Path, devices: int) -> Guest:
    """The guest of a set-up, with the sockets of its devices in a folder."""
    return Guest(
        kit, folder, [folder / f"device{number}" for number in range(devices)],
        folder / "clock" if setup.cpu else None, setup.memory_mib, setup.cpu, setup.dilation, setup.cpus, setup.qemu,
        kernel_line=setup.kernel_line,
    )  # fmt: skip


def _serve(
    served: Sequence[tuple[Design, Path]], traces: Sequence[Path | None], setup: Setup, clock: Path | None, quiet: bool
) -> Server:
    """Serves the devices of a guest; compiles them first if necessary, with progress."""
    with show.building(served[0][0].name, not quiet) as building:
        return Server(served, building, traces, setup.model, clock, setup.dilation, summarize=True)


def run_job(
    job: Job,
    setup: Setup,
    *,
    trace: Path | None = None,
    results: Path | None = None,
    output: IO[bytes] | None = None,
    timeout_s: float | None = None,
    quiet: bool = True,
) -> GuestReport:
    """Boots a guest, runs a job in it, and switches it off.

    `output` gets the job's output while it runs; the files that the job leaves in its folder go to `results`. `trace`
    gets the commands of the first device. `timeout_s` is in seconds of wall-clock time. SIGINT and SIGTERM interrupt
    the job, whose results are then saved; the second time they end the guest.
    """
    kit = install_kit(quiet)
    began = time.monotonic()
    with _scratch() as folder:
        designs = [*setup.designs, *_attach_images(kit, job, folder)]
        guest = _make_guest(setup, kit, folder, len(designs))
        os.mkfifo(guest.control)
        errors = folder / "errors"
        follower = Follower(guest.serial(1), output)
        served = list(zip(designs, guest.sockets, strict=True))
        traces = [trace, *[None] * (len(designs) - 1)]
        with (
            # Nothing of it is left, however this process ends.
            tempfile.TemporaryFile() as initrd,
            _serve(served, traces, setup, guest.clock, quiet) as server,
            open(guest.control, "r+b", buffering=0) as control,
            _interrupts() as interrupts,
        ):
            write_initrd(kit, job.archive(len(designs)), initrd)
            command = guest.command(f"/proc/self/fd/{initrd.fileno()}")
            process = start(command, errors, pass_fds=[initrd.fileno()])
            progress = Progress(server, guest, not quiet)
            try:
                _wait(process, guest, follower, progress, timeout_s, interrupts, control)
            finally:
                progress.stop()
                if process.poll() is None:
                    process.kill()
                    process.wait()
            follower.copy()
            port = reports.read_port(guest.serial(2))
            counters, phases, pacing = server.counters(), server.native.summaries(port.marks), server.pacing()
        messages = errors.read_text(errors="replace")
        if port.status is None and not interrupts:
            raise NearsideError(reports.explain_end(guest, process.returncode, messages, port.lines))
        saved = reports.save_files(guest.results, job.inputs, results) if results else []
        terminal = guest.serial(1)
        text = terminal.read_bytes().decode(errors="replace").replace("\r\n", "\n") if terminal.exists() else ""
    cpu = setup.cpu
    return {
        "command": list(job.words),
        "status": INTERRUPTED if port.status is None or interrupts else port.status,
        "partial": bool(interrupts),
        "time": SIMULATED if cpu else WALL,
        "cpus": setup.cpus,
        "cpu": cpu.document() if cpu else None,
        "output": text,
        "files": saved,
        "out_of_memory": "memory" in port.lines,
        "clock": reports.read_clock(messages),
        "devices": [
            {
                "name": f"nearside{number}",
                "design": design.name,
                "profile": design.values["media"]["profile"],
                "phases": phases[number],
                "counters": counters[number],
                "pacing": pacing[number] if pacing else None,
            }
            for number, design in enumerate(designs)
        ],
        "wall_s": time.monotonic() - began,
    }


def _wait(
    process: subprocess.Popen[bytes],
    guest: Guest,
    follower: Follower,
    progress: Progress,
    timeout_s: float | None,
    interrupts: list[int],
    control: IO[bytes],
) -> None:
    """Waits for the end of the guest, or for the second request to end it."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    asked = sent = False
    while True:
        try:
            process.wait(POLL_S)
            return
        except subprocess.TimeoutExpired:
            if follower.copy():
                # Both are on the same terminal.
                progress.stop()
            progress.update()
        if interrupts and not asked:
            asked = True
            progress.stop()
            print("guest: interrupting the job; Ctrl-C again ends the guest", file=sys.stderr, flush=True)
        # Before that it would be lost: the guest's driver empties the port when it opens it.
        if asked and not sent and _is_ready(guest):
            sent = True
            control.write(b"interrupt\n")
        if len(interrupts) > 1:
            return
        if deadline is not None and time.monotonic() > deadline:
            raise NearsideError(f"the guest has not ended within {timeout_s:g} s of wall-clock time")


def run_shell(setup: Setup, folders: Sequence[Path] = (), images: Sequence[Path] = ()) -> None:
    """Boots a guest and connects this terminal to a shell in it, until the shell ends."""
    kit = install_kit()
    job = Job([], folders, images)
    with _scratch() as folder:
        designs = [*setup.designs, *_attach_images(kit, job, folder)]
        archive = job.archive(len(designs))
        archive.add_file("job/.run/shell", b"")
        guest = _make_guest(setup, kit, folder, len(designs))
        errors = folder / "errors"
        served = list(zip(designs, guest.sockets, strict=True))
        with (
            tempfile.TemporaryFile() as initrd,
            _serve(served, [], setup, guest.clock, quiet=False) as server,
        ):
            write_initrd(kit, archive, initrd)
            command = guest.command(f"/proc/self/fd/{initrd.fileno()}", interactive=True)
            with _terminal():
                process = start(command, errors, interactive=True, pass_fds=[initrd.fileno()])
                try:
                    process.wait()
                finally:
                    if process.poll() is None:
                        process.kill()
                        process.wait()
            pacing = server.pacing()
        if process.returncode:
            messages = errors.read_text(errors="replace")
            lines = reports.read_port(guest.serial(2)).lines
            raise NearsideError(reports.explain_end(guest, process.returncode, messages, lines))
    if pacing:
        print_pacing([(f"nearside{number}", one) for number, one in enumerate(pacing)])
