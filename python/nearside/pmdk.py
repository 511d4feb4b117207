"""`nearside pmdk`: unmodified programs with libpmemobj, whose transactions' logs a device keeps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nearside import _native, show
from nearside._native import NearsideError
from nearside.device import Design
from nearside.serve import Server

# The program maps the PM window, so nothing may delay what it does there.
MAPPABLE = '[media]\nprofile = "dram"'
CONTROLS = ("snapshots",)


def shim(folder: Path) -> Path:
    """Puts the library that is preloaded into a folder."""
    path = folder / "libnearside_pmdk.so"
    path.write_bytes(_native.pmdk_shim())
    return path


def environment(
    library: Path, socket: Path, report: Path | None = None, without: str | None = None, kill: int | None = None
) -> Mapping[str, str]:
    """A program's environment: this process's, and that its pools are on the device behind the socket.

    `kill`: it is killed (SIGKILL) at this moment, as the report counts them.
    """
    if without is not None and without not in CONTROLS:
        raise NearsideError(f"without = {without}: allowed is {', '.join(CONTROLS)}")
    preloaded = [str(library), *os.environ.get("LD_PRELOAD", "").split()]
    # A pool's file says what its memory is, and this one's memory is elsewhere: libpmem has to be told.
    variables = {"LD_PRELOAD": " ".join(preloaded), "NEARSIDE_PMDK": str(socket), "PMEM_IS_PMEM_FORCE": "1"}
    if report is not None:
        variables["NEARSIDE_PMDK_REPORT"] = str(report)
    if without is not None:
        variables["NEARSIDE_PMDK_WITHOUT"] = without
    if kill is not None:
        variables["NEARSIDE_PMDK_KILL"] = str(kill)
    return os.environ | variables


def served(design: str, socket: Path, engine: str | None = None, quiet: bool = True) -> Server:
    """A device for such programs; it has what they keep until it ends."""
    loaded = Design.load(design).with_values(MAPPABLE)
    with show.building(loaded.name, not quiet) as progress:
        return Server([(loaded, socket)], progress, engine=engine)


@contextmanager
def _device(socket: Path | None, folder: Path, design: str, engine: str | None, quiet: bool) -> Iterator[Path]:
    if socket is not None:
        yield socket
        return
    path = folder / "device.sock"
    with served(design, path, engine, quiet):
        yield path


def run(
    program: Sequence[str],
    *,
    socket: Path | None = None,
    without: str | None = None,
    design: str = "nearpm",
    engine: str | None = None,
    quiet: bool = True,
) -> tuple[int, dict[str, Any]]:
    """Runs a program to its end; its exit status as a shell has it, and what the device has done for it.

    Quiet: what the program writes to standard output goes to standard error.
    """
    with tempfile.TemporaryDirectory(prefix="nearside-") as scratch:
        folder = Path(scratch)
        report = folder / "report.json"
        with _device(socket, folder, design, engine, quiet) as path:
            variables = environment(shim(folder), path.absolute(), report, without)
            try:
                done = subprocess.run(program, env=variables, stdout=sys.stderr if quiet else None)
            except OSError as error:
                raise NearsideError(f"{program[0]}: {error.strerror}") from None
            except ValueError as error:
                raise NearsideError(f"{program[0]!r}: {error}") from None
        counts = json.loads(report.read_text()) if report.exists() else None
    status = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return status, {"program": list(program), "status": status, "without": without, "offloaded": counts}


def print_report(doc: Mapping[str, Any]) -> None:
    counts = doc["offloaded"]
    if counts is None:
        show.out.print("no transaction of libpmemobj had its pool on the device")
        return
    table = show.table("kept by the device", "", "number")
    for key, value in counts.items():
        table.add_row(key.replace("_", " "), f"{value:,}")
    show.out.print(table)
