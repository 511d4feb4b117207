# SPDX-License-Identifier: Apache-2.0
"""Measures a row on one model; keeps the references of the RTL."""

from __future__ import annotations

import hashlib
import json
import math
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

from nearside import files, results
from nearside._native import NearsideError
from nearside.correlate.rows import ENGINES, PEER, READ_PERCENT, WINDOW, Row
from nearside.device import BuildProgress, Device, LateReadsWarning, root
from nearside.renamed import renamed
from nearside.types import StreamReport, WorkloadReport

REFERENCES = "correlate.rtl.json"
MIB = 1 << 20
# Host and link code is part of a reference, too.
HOST_CRATES = ("sim", "host", "driver", "rtl", "design", "testbed")
# Files of these that only the fast model uses.
FAST_ONLY = ("bursts.rs",)

RowResult = dict[str, float | None]


class UnsupportedRow(Exception):
    """The model can't run this row; the text says why."""


@renamed(engine="model")
def run(row: Row, model: str, progress: BuildProgress | None = None) -> RowResult:
    """Measures a row on a separate device, so that rows are independent of each other."""
    if row.kind in ENGINES and model == "fast" and not _fast_has_engines():
        raise UnsupportedRow("the fast model has no engines yet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LateReadsWarning)
        design = row.load()
        peers = [(design, model)] if row.kind in PEER else []
        with Device(design, progress, model=model, peers=peers) as device:
            device.delay_set(row.profile)
            for peer in device.peers:
                peer.delay_set(row.profile)
            start = time.perf_counter()
            outcome = _measure(device, row)
            return outcome | {"wall_s": round(time.perf_counter() - start, 3)}


def _measure(device: Device, row: Row) -> RowResult:
    if row.kind in ENGINES:
        arguments = {"src": 0, "bytes": row.bytes}
        arguments |= {"dst": 256 * MIB} if row.kind == "copy" else {"low": 0, "high": 1 << 30, "kind": 0}
        ns = device.engine(f"{row.kind}0").launch(**arguments)
        return {"mean_ns": ns, "p99_ns": None, "gb_s": row.bytes / ns}
    if row.kind in WINDOW:
        found: StreamReport | WorkloadReport = device.pm_stream(
            row.kind, bytes=row.bytes, in_flight=row.depth, count=row.commands, pattern=row.pattern, seed=row.seed
        )
    else:
        found = device.workload(
            read_percent=(READ_PERCENT | PEER)[row.kind], pattern=row.pattern, min_bytes=row.bytes, queues=row.queues,
            depth=row.depth, commands=row.commands, scattered=row.scattered, seed=row.seed,
            peer=0 if row.kind in PEER else None,
        )  # fmt: skip
    latency = found["latency"] or {"mean_ns": None, "p99_ns": None}
    return {"mean_ns": latency["mean_ns"], "p99_ns": latency["p99_ns"], "gb_s": found["bandwidth_gb_s"]}


@cache
def _fast_has_engines() -> bool:
    """Whether the fast model implements engines: a copy of one line ends."""
    from nearside.device import Design

    try:
        with Device(Design.load("engines"), model="fast") as device:
            device.engine("copy0").launch(timeout_us=100, src=0, dst=MIB, bytes=64)
    except NearsideError:
        return False
    return True


@cache
def _host() -> str:
    """A hash of the code around the device, which influences the times of every row."""
    digest = hashlib.sha256()
    for crate in HOST_CRATES:
        for path in sorted((root() / "crates" / crate / "src").rglob("*.rs")):
            if path.name not in FAST_ONLY:
                digest.update(f"{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _fault(known: object) -> str | None:
    """Why a document is no mapping of keys to results, or None if it is one."""
    if not isinstance(known, dict):
        return f"{type(known).__name__} instead of a table"
    for key, outcome in known.items():
        if not isinstance(outcome, dict):
            return f"{key[:40]!r}: no table"
        for name in ("mean_ns", "p99_ns", "gb_s"):
            value = outcome.get(name)
            # Posted stores have no latency.
            if value is None and name in outcome and name != "gb_s":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                return f"{key[:40]!r}: {name} = {str(value)[:40]!r}, allowed is a number above 0"
    return None


class References:
    """The RTL's result of each row, by a hash of its inputs: hardware, design, profile, host code and row."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or results.folder() / REFERENCES
        files.check_output(self.path)
        self._known = self._read()

    def _read(self) -> dict[str, RowResult]:
        if not self.path.exists():
            return {}
        again = "remove it, and rows are measured again, or name another file"
        try:
            known = json.loads(files.read_text(self.path))
        except (ValueError, RecursionError) as error:
            raise NearsideError(f"{files.printable(self.path)}: no references of the RTL ({error}); {again}") from None
        if fault := _fault(known):
            raise NearsideError(f"{files.printable(self.path)}: no references of the RTL ({fault}); {again}")
        return known

    def key(self, row: Row) -> str:
        design = row.load()
        profile = (root() / "media" / f"{row.profile}.toml").read_text()
        parts = [design.hardware, design.hash, profile, _host(), json.dumps(row.job, sort_keys=True)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    def of(self, row: Row, measure: Callable[[], RowResult]) -> tuple[RowResult, bool]:
        """The reference of a row, measured if it is unknown; and whether it was known."""
        key = self.key(row)
        known = key in self._known
        if not known:
            outcome = measure()
            # Another run may have added entries meanwhile.
            with files.locked(self.path):
                self._known = self._read() | {key: outcome}
                files.write_text(self.path, json.dumps(self._known, indent=0, sort_keys=True) + "\n")
        return self._known[key], known
