# SPDX-License-Identifier: Apache-2.0
"""`nearside pmdk`: unmodified programs with libpmemobj, whose transaction logs a device keeps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

from nearside import _native, files, show
from nearside._native import NearsideError
from nearside.device import Design, as_text
from nearside.renamed import former_names, renamed
from nearside.serve import Server
from nearside.types import PmdkCost, PmdkCounts, PmdkGain, PmdkReport

# The program maps the PM window, so the profile must not delay accesses.
MAPPABLE = '[media]\nprofile = "dram"'
FAULT_INJECTIONS = ("snapshots", "fences")
TRACKED = ("auto", "never")
EACH = "{each}"
REPORT = "NEARSIDE_PMDK_REPORT"


def write_shim(folder: Path) -> Path:
    """Writes the preloaded library to a folder."""
    path = folder / "libnearside_pmdk.so"
    path.write_bytes(_native.pmdk_shim())
    return path


def check_tracked(tracked: str) -> None:
    if tracked not in TRACKED:
        raise NearsideError(f"tracked = {files.printable(tracked)}: allowed is {', '.join(TRACKED)}")


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
    tracked: str = "never",
) -> Mapping[str, str]:
    """The environment of a program: this process's, with the preloaded library and a device's
    socket, or none.

    - `kill`: the program is killed (SIGKILL) at this moment, as the report counts them.
    - `crash`: the power fails at that moment. It is the seed of the lines that have left the cache;
    0 is none.
    - `torn`: of a line, single words of 8 bytes may have left the cache.
    - `moments`: a file to which all moments are written.
    - `code`: the socket of `pmdk_code.served`, which makes the shim follow the program's flush
    instructions.
    - `tracked`: "auto" has the device track pools of programs with one thread; "never" does not.
    """
    check_tracked(tracked)
    if without is not None and without not in FAULT_INJECTIONS:
        raise NearsideError(f"without = {files.printable(without)}: allowed is {', '.join(FAULT_INJECTIONS)}")
    preloaded = [str(library), *os.environ.get("LD_PRELOAD", "").split()]
    # libpmem decides by the file whether memory is persistent; this memory is elsewhere, so it is
    # forced.
    variables = {"LD_PRELOAD": " ".join(preloaded), "PMEM_IS_PMEM_FORCE": "1"}
    if socket is not None:
        variables["NEARSIDE_PMDK"] = str(socket)
    if tracked != "never":
        variables["NEARSIDE_PMDK_TRACKED"] = tracked
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
def serve_device(design: str, socket: Path, model: str | None = None, quiet: bool = True) -> Server:
    """A device for such programs, with their data until it ends."""
    loaded = Design.load(design).with_values(MAPPABLE)
    with show.building(loaded.name, not quiet) as progress:
        return Server([(loaded, socket)], progress, model=model)


@contextmanager
def _device_socket(socket: Path | None, folder: Path, design: str, model: str | None, quiet: bool) -> Iterator[Path]:
    if socket is not None:
        if not socket.is_socket():
            raise NearsideError(
                f"{files.printable(socket)}: no device is served there; `nearside serve {design} --socket PATH` does"
            )
        yield socket
        return
    path = folder / "device.sock"
    with serve_device(design, path, model, quiet):
        yield path


def run_program(program: Sequence[str], variables: Mapping[str, str], quiet: bool) -> int:
    """Runs a program to its end; its exit status as in a shell. `quiet`: its output goes to standard error."""
    try:
        done = subprocess.run(program, env=variables, stdout=sys.stderr if quiet else None)
    except OSError as error:
        raise NearsideError(f"{files.printable(program[0])}: {error.strerror}") from None
    except ValueError as error:
        raise NearsideError(f"{files.printable(program[0])}: {error}") from None
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


def read_report(path: Path) -> dict[str, Any] | None:
    """The shim's report, or None: the file of a killed process is empty."""
    text = path.read_text() if path.exists() else ""
    return json.loads(text) if text else None


@renamed(engine="model")
def run_on_device(
    program: Sequence[str],
    *,
    socket: Path | None = None,
    without: str | None = None,
    design: str = "nearpm",
    model: str | None = None,
    tracked: str = "never",
    quiet: bool = True,
) -> tuple[int, PmdkReport]:
    """Runs a program to its end; its exit status, and the device's counts."""
    with tempfile.TemporaryDirectory(prefix="nearside-") as scratch:
        folder = Path(scratch)
        report = folder / "report.json"
        with _device_socket(socket, folder, design, model, quiet) as path:
            variables = environment(write_shim(folder), path.absolute(), report, without, tracked=tracked)
            status = run_program(program, variables, quiet)
        counts = cast("PmdkCounts | None", read_report(report))
    return status, {"program": list(program), "status": status, "without": without, "tracked": tracked, "done": counts}


@renamed(engine="model")
def measure_gain(
    program: Sequence[str],
    *,
    profile: str = "nearpm",
    fence: str = "read_back",
    design: str = "nearpm",
    model: str | None = None,
    tracked: str = "auto",
    quiet: bool = True,
) -> PmdkGain:
    """Measures a program's crash consistency by the CPU and offloaded, on a host profile, in
    simulated time.

    - `tracked`: "auto" also runs the program in tracked pools, as far as it allows that; "never"
    does not.

    The program runs two or three times, each time with its pools in another empty folder: `{}` in its arguments.
    The flushes, fences, copies and commands of both runs are repeated on the simulated host and
    device. The program's computation is not included.
    """
    if not any("{}" in word for word in program):
        raise NearsideError("the program's arguments lack {}: a folder for its pools, a different one in each run")
    check_tracked(tracked)
    loaded = Design.load(design).with_values(f"[cpu]\nprofile = {json.dumps(as_text('profile', profile))}")
    costs: dict[str, PmdkCost] = {}
    with tempfile.TemporaryDirectory(prefix="nearside-") as scratch:
        folder = Path(scratch)
        library = write_shim(folder)
        for way in ("alone", "offloaded", *(["tracked"] if tracked == "auto" else [])):
            pools, trace = folder / way, folder / f"{way}.trace"
            pools.mkdir()
            words = [word.replace("{}", str(pools)) for word in program]
            with _device_socket(None, folder, design, model, quiet) if way != "alone" else nullcontext() as path:
                own = "auto" if way == "tracked" else "never"
                status = run_program(words, environment(library, path, trace=trace, tracked=own), quiet)
            if status != 0:
                raise NearsideError(f"{files.printable(words[0])}: exit status {status}")
            events = trace.read_bytes() if trace.exists() else b""
            replayed = "tracked" if way == "tracked" else "waiting"
            costs[way] = _native.pmdk_cost(loaded.native, events, fence, model, way=replayed)
            if costs[way]["transactions"] == 0:
                raise NearsideError(f"{files.printable(words[0])}: it has made no transaction of libpmemobj")
            if way != "tracked":
                costs[f"{way}_ordered"] = _native.pmdk_cost(loaded.native, events, fence, model, way="ordered")
    if costs["offloaded"]["commands"] == 0:
        raise NearsideError(f"{files.printable(program[0])}: none of its pools was on the device")
    alone, offloaded = (costs[way]["ns"] / costs[way]["transactions"] for way in ("alone", "offloaded"))
    return {
        "program": list(program),
        "profile": profile,
        "fence": fence,
        "time": "simulated",
        "alone": costs["alone"],
        "offloaded": costs["offloaded"],
        "ratio": alone / offloaded if offloaded > 0 else None,
        "alone_ordered": costs["alone_ordered"],
        "offloaded_ordered": costs["offloaded_ordered"],
        "tracked": costs.get("tracked"),
    }


def measure_gains(program: Sequence[str], each: Sequence[str], **options: Any) -> dict[str, PmdkGain]:
    """`measure_gain` with each of these words in place of {each} in the program's arguments."""
    if not any(EACH in word for word in program):
        raise NearsideError(f"the program's arguments lack {EACH}, which is each of {', '.join(each)}")
    return {one: measure_gain([word.replace(EACH, one) for word in program], **options) for one in each}


def print_report(doc: PmdkReport) -> None:
    counts = doc["done"]
    if counts is None:
        show.out.print("no transaction of libpmemobj had its pool on the device")
        return
    table = show.table("kept by the device", "", "number")
    for key, value in counts.items():
        table.add_row(key.replace("_", " "), f"{value:,}")
    show.out.print(table)


def _ways(doc: PmdkGain) -> dict[str, PmdkCost | None]:
    return {
        "CPU": doc["alone"],
        "CPU, ordered": doc["alone_ordered"],
        "offloaded": doc["offloaded"],
        "ordered": doc["offloaded_ordered"],
        "tracked": doc["tracked"],
    }


def _title(doc: PmdkGain) -> str:
    host = f"host profile {doc['profile']}, fences {doc['fence'].replace('_', '-')}"
    return f"crash consistency of a transaction, {host}, simulated"


def _print_tracked(doc: PmdkGain) -> None:
    cost = doc["tracked"]
    if cost is not None and cost["tracked"] < cost["transactions"]:
        show.out.print(
            f"tracked: {cost['tracked']:,} of {cost['transactions']:,} transactions; it has threads or large ones"
        )


def print_gain(doc: PmdkGain) -> None:
    ways = {name: cost for name, cost in _ways(doc).items() if cost is not None}
    table = show.table(_title(doc), "", *ways)
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
    costs: list[Any] = list(ways.values())
    for key, label in (rows | {"ns": "all, ns", "whole_ns": "transaction with its stores, ns"}).items():
        table.add_row(label, *(f"{cost[key] / cost['transactions']:.1f}" for cost in costs))
    show.out.print(table)
    show.out.print(f"{doc['ratio']:.2f} times as fast, but for what the program computes")
    _print_tracked(doc)


def print_gains(docs: Mapping[str, PmdkGain]) -> None:
    """A row for each program and way. Ratios are to the time by the CPU and to that offloaded."""
    first = next(iter(docs.values()))
    table = show.table(
        _title(first), "", "", "ns", "to CPU", "to offloaded", "with stores, ns", "to CPU", "to offloaded"
    )
    for name, doc in docs.items():
        for way, cost in _ways(doc).items():
            if cost is None:
                continue
            cells = [name, way]
            for key in ("ns", "whole_ns"):
                own, alone, offloaded = (
                    float(cast("Any", one)[key]) / one["transactions"] for one in (cost, doc["alone"], doc["offloaded"])
                )
                cells += [f"{own:.0f}", f"{alone / own:.2f}", f"{offloaded / own:.2f}"]
            table.add_row(*cells)
    show.out.print(table)
    for doc in docs.values():
        _print_tracked(doc)


__getattr__ = former_names(
    __name__, start="run_program", shim="write_shim", served="serve_device", run="run_on_device", gain="measure_gain"
)
