"""`nearside pmdk`: unmodified programs with libpmemobj, whose transactions' logs a device keeps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from nearside import _native, show
from nearside._native import NearsideError
from nearside.device import Design, as_text
from nearside.renamed import renamed
from nearside.serve import Server

# The program maps the PM window, so nothing may delay what it does there.
MAPPABLE = '[media]\nprofile = "dram"'
CONTROLS = ("snapshots", "fences")
REPORT = "NEARSIDE_PMDK_REPORT"


def shim(folder: Path) -> Path:
    """Puts the library that is preloaded into a folder."""
    path = folder / "libnearside_pmdk.so"
    path.write_bytes(_native.pmdk_shim())
    return path


def environment(
    library: Path,
    socket: Path | None,
    report: Path | None = None,
    without: str | None = None,
    kill: int | None = None,
    trace: Path | None = None,
    crash: int | None = None,
    torn: bool = False,
    moments: Path | None = None,
    code: Path | None = None,
) -> Mapping[str, str]:
    """A program's environment: this process's, and that its pools are on the device behind the socket, or no device's.

    `kill`: it is killed (SIGKILL) at this moment, as the report counts them. `crash`: the power fails then; a seed
    says what leaves the cache before, 0 that nothing does. `torn`: of a line words may, of 8 bytes. `moments`: a
    file to which all are written. `code`: the socket of `pmdk_code.served`, which has instructions of its own followed.
    """
    if without is not None and without not in CONTROLS:
        raise NearsideError(f"without = {without}: allowed is {', '.join(CONTROLS)}")
    preloaded = [str(library), *os.environ.get("LD_PRELOAD", "").split()]
    # A pool's file says what its memory is, and this one's memory is elsewhere: libpmem has to be told.
    variables = {"LD_PRELOAD": " ".join(preloaded), "PMEM_IS_PMEM_FORCE": "1"}
    if socket is not None:
        variables["NEARSIDE_PMDK"] = str(socket)
    if trace is not None:
        variables["NEARSIDE_PMDK_TRACE"] = str(trace)
    if report is not None:
        variables[REPORT] = str(report)
    if without is not None:
        variables["NEARSIDE_PMDK_WITHOUT"] = without
    if kill is not None:
        variables["NEARSIDE_PMDK_KILL"] = str(kill)
    if crash is not None:
        variables["NEARSIDE_PMDK_CRASH"] = str(crash)
    if torn:
        variables["NEARSIDE_PMDK_TORN"] = "1"
    if moments is not None:
        variables["NEARSIDE_PMDK_MOMENTS"] = str(moments)
    if code is not None:
        variables["NEARSIDE_PMDK_CODE"] = str(code)
    return os.environ | variables


@renamed(engine="model")
def served(design: str, socket: Path, model: str | None = None, quiet: bool = True) -> Server:
    """A device for such programs; it has what they keep until it ends."""
    loaded = Design.load(design).with_values(MAPPABLE)
    with show.building(loaded.name, not quiet) as progress:
        return Server([(loaded, socket)], progress, model=model)


@contextmanager
def _device(socket: Path | None, folder: Path, design: str, model: str | None, quiet: bool) -> Iterator[Path]:
    if socket is not None:
        if not socket.is_socket():
            raise NearsideError(f"{socket}: no device is served there; nearside serve {design} --socket {socket} does")
        yield socket
        return
    path = folder / "device.sock"
    with served(design, path, model, quiet):
        yield path


def start(program: Sequence[str], variables: Mapping[str, str], quiet: bool) -> int:
    """Runs a program to its end; its exit status as a shell has it. Quiet: its output goes to standard error."""
    try:
        done = subprocess.run(program, env=variables, stdout=sys.stderr if quiet else None)
    except OSError as error:
        raise NearsideError(f"{program[0]}: {error.strerror}") from None
    except ValueError as error:
        raise NearsideError(f"{program[0]!r}: {error}") from None
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


def read_report(path: Path) -> dict[str, Any] | None:
    """What the shim has reported, or None: the file of a process that was killed is empty."""
    text = path.read_text() if path.exists() else ""
    return json.loads(text) if text else None


@renamed(engine="model")
def run(
    program: Sequence[str],
    *,
    socket: Path | None = None,
    without: str | None = None,
    design: str = "nearpm",
    model: str | None = None,
    quiet: bool = True,
) -> tuple[int, dict[str, Any]]:
    """Runs a program to its end; its exit status, and what the device has done for it."""
    with tempfile.TemporaryDirectory(prefix="nearside-") as scratch:
        folder = Path(scratch)
        report = folder / "report.json"
        with _device(socket, folder, design, model, quiet) as path:
            status = start(program, environment(shim(folder), path.absolute(), report, without), quiet)
        counts = read_report(report)
    return status, {"program": list(program), "status": status, "without": without, "done": counts}


@renamed(engine="model")
def gain(
    program: Sequence[str],
    *,
    profile: str = "nearpm",
    fence: str = "read_back",
    design: str = "nearpm",
    model: str | None = None,
    quiet: bool = True,
) -> dict[str, Any]:
    """What a program's crash consistency takes by itself and offloaded, on a host profile, in simulated time.

    It runs twice, its pools in another empty folder each time: `{}` in its arguments. What both runs have flushed,
    fenced, copied and commanded is done again on the simulated host and device; what else the program computes is not.
    """
    if not any("{}" in word for word in program):
        raise NearsideError("the program's arguments lack {}: a folder for its pools, another one for each of two runs")
    loaded = Design.load(design).with_values(f"[cpu]\nprofile = {json.dumps(as_text('profile', profile))}")
    doc: dict[str, Any] = {"program": list(program), "profile": profile, "fence": fence, "time": "simulated"}
    with tempfile.TemporaryDirectory(prefix="nearside-") as scratch:
        folder = Path(scratch)
        library = shim(folder)
        for way in ("alone", "offloaded"):
            pools, trace = folder / way, folder / f"{way}.trace"
            pools.mkdir()
            words = [word.replace("{}", str(pools)) for word in program]
            with _device(None, folder, design, model, quiet) if way == "offloaded" else nullcontext() as path:
                status = start(words, environment(library, path, trace=trace), quiet)
            if status != 0:
                raise NearsideError(f"{words[0]}: exit status {status}")
            events = trace.read_bytes() if trace.exists() else b""
            doc[way] = json.loads(_native.pmdk_cost(loaded.native, events, fence, model))
            if doc[way]["transactions"] == 0:
                raise NearsideError(f"{words[0]}: it has made no transaction of libpmemobj")
    if doc["offloaded"]["commands"] == 0:
        raise NearsideError(f"{program[0]}: none of its pools was on the device")
    alone, offloaded = (doc[way]["ns"] / doc[way]["transactions"] for way in ("alone", "offloaded"))
    doc["ratio"] = alone / offloaded if offloaded > 0 else None
    return doc


def print_report(doc: Mapping[str, Any]) -> None:
    counts = doc["done"]
    if counts is None:
        show.out.print("no transaction of libpmemobj had its pool on the device")
        return
    table = show.table("kept by the device", "", "number")
    for key, value in counts.items():
        table.add_row(key.replace("_", " "), f"{value:,}")
    show.out.print(table)


def print_gain(doc: Mapping[str, Any]) -> None:
    host = f"host profile {doc['profile']}, fences {doc['fence'].replace('_', '-')}"
    title = f"crash consistency of a transaction, {host}, simulated"
    table = show.table(title, "", "alone", "offloaded")
    rows = {
        "lines": "lines flushed",
        "fences": "fences",
        "streamed": "bytes copied past the cache",
        "commands": "commands",
    }
    rows |= {
        "lines_ns": "flushes, ns",
        "fences_ns": "fences, ns",
        "streams_ns": "copies, ns",
        "commands_ns": "commands, ns",
    }
    for key, label in (rows | {"ns": "all, ns"}).items():
        table.add_row(label, *(f"{doc[way][key] / doc[way]['transactions']:.1f}" for way in ("alone", "offloaded")))
    show.out.print(table)
    show.out.print(f"{doc['ratio']:.2f} times as fast, but for what the program computes")
