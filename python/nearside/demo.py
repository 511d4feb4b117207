# SPDX-License-Identifier: Apache-2.0
"""The demonstration: a file is written and read back under DRAM and Optane timing, and a table is sorted."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.text import Text

from nearside import accuracy, files, plots, results, show, tables
from nearside._native import NearsideError
from nearside.device import Design, Device
from nearside.renamed import renamed
from nearside.types import AccuracyRow

GENERATED_BYTES = 8 << 20
SEED = 1
# OpenExpress, section 4.1: 16 KiB, ten queues of depth 8, DRAM as media.
PAPER = {
    kind: f"OpenExpress: {gb_s} GB/s, 10 queues, hardware, fio through Linux"
    for kind, gb_s in (("write", 4.7), ("read", 7.0))
}
SINGLE_BYTES = (512, 4096)
SHAPE = {"queues": 4, "depth": 8, "chunk": 16384}
# The table: rows, order, devices. The model is the fast one: RTL would need another compilation.
SORT_ROWS = 100_000
SORT_BY, SORT_DEVICES, SORT_MODEL = "day, amount desc", 2, "fast"


def read_input(path: Path | None, design: Design) -> tuple[str, bytes]:
    """The file's bytes, or 8 MiB of pseudo-random ones if they fit; checked before anything long starts."""
    namespaces = design.values["nvme"].get("namespaces")
    room = namespaces[0] if namespaces else design.values["media"]["bytes"]
    if room == 0:
        raise NearsideError(f"the design {design.name} has no namespace 1 to send anything to; choose another one")
    if path is None:
        count = min(GENERATED_BYTES, room)
        return f"{show.size(count)} generated", random.Random(SEED).randbytes(count)
    files.check_regular(path)
    count = path.stat().st_size
    if count > room:
        raise NearsideError(f"{files.printable(path)}: {count} bytes do not fit in the namespace of {room} bytes")
    data = files.read_bytes(path)
    if not data:
        raise NearsideError(f"{files.printable(path)}: the file is empty")
    return path.name, data


def round_trip(device: Device, profile: str, data: bytes, quiet: bool) -> dict[str, Any]:
    """Writes the data, reads it back and measures single reads, under one media profile."""
    device.delay_set(profile)
    with show.bar(f"{profile}: writing", not quiet) as progress:
        write = device.write(data, progress=progress, **SHAPE)
    with show.bar(f"{profile}: reading", not quiet) as progress:
        back, read = device.read(len(data), progress=progress, **SHAPE)
    job = {"queues": 1, "depth": 1, "commands": 300, "span": min(8 << 20, device.namespace_bytes), "seed": SEED}
    singles = {}
    for size in SINGLE_BYTES:
        with show.bar(f"{profile}: single reads of {size} bytes", not quiet) as progress:
            singles[f"read_{size}"] = device.workload(read_percent=100, min_bytes=size, progress=progress, **job)
    digest = hashlib.sha256(back).hexdigest()
    chosen = {"profile": profile, "late_reads": device.late_reads}
    return chosen | {"write": write, "read": read, "sha256": digest} | singles


@contextmanager
def delay_bench(design: Design, wanted: bool) -> Iterator[Future[list[AccuracyRow]]]:
    """Measures the accuracy of nvm_delay in parallel with the block: a simulation uses only one core."""
    stop = threading.Event()

    def check_stop(*_: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt

    def measure() -> list[AccuracyRow]:
        return (
            accuracy.measure_targets(design, accuracy.DEMO_TARGETS, samples=2000, seed=SEED, progress=check_stop)
            if wanted
            else []
        )

    with ThreadPoolExecutor(1) as pool:
        try:
            yield pool.submit(measure)
        finally:
            stop.set()


def sort(quiet: bool) -> dict[str, Any] | None:
    """Sorts a table on devices and compares it with pyarrow's result; None without pyarrow."""
    try:
        import numpy as np
        import pyarrow as pa
    except ImportError:
        return None
    rng = np.random.default_rng(SEED)
    columns = {
        "day": pa.array(rng.integers(20_000, 20_365, SORT_ROWS).astype(np.int32)).cast(pa.date32()),
        "amount": rng.integers(1, 1_000_000, SORT_ROWS),
        "customer": [f"customer {n}" for n in rng.integers(0, 1000, SORT_ROWS)],
        "row": np.arange(SORT_ROWS),
    }
    table = pa.table(columns)
    with show.bar(f"sorting {SORT_ROWS} rows", not quiet) as progress:
        found, report = tables.sort_table(table, SORT_BY, SORT_DEVICES, SORT_MODEL, progress=progress)
    keys = [("day", "ascending"), ("amount", "descending"), ("row", "ascending")]
    return {"by": SORT_BY, "equal": found.equals(table.sort_by(keys)), "report": report}


@renamed(engine="model")
def run(
    path: Path | None, design: Design, quiet: bool, trace: Path | None = None, model: str | None = None
) -> dict[str, Any]:
    """Runs the whole demonstration; returns the saved document. Accuracy is measured on the RTL only."""
    name, data = read_input(path, design)
    results.check_outputs(["demo.json", "demo.png"], [trace], [path, *design.files])
    optane = design.values["media"]["profile"]
    if optane == "dram":
        optane = "optane-dcpmm"
    with show.building(design.name, not quiet) as progress:
        device = Device(design, progress, model, commands=trace)
    with delay_bench(design, device.model == "rtl") as bench:
        with device:
            digest = hashlib.sha256(data).hexdigest()
            trips = [round_trip(device, profile, data, quiet) for profile in ("dram", optane)]
        device.trace_stop()
        with show.bar("nvm_delay: single accesses", not quiet):
            targets = bench.result()
    sorted_table = sort(quiet)
    intact = all(t["sha256"] == digest for t in trips)
    figures = [
        results.figure(
            f"{t['profile']}.{kind}.bandwidth",
            t[kind]["bandwidth_gb_s"],
            "GB/s",
            paper=PAPER[kind] if t["profile"] == "dram" else None,
        )
        for t in trips
        for kind in ("write", "read")
    ]
    figures += [
        results.figure(f"{t['profile']}.read_{size}.mean", t[f"read_{size}"]["latency"]["mean_ns"], "ns")
        for t in trips
        for size in SINGLE_BYTES
    ]
    figures += [
        results.figure(f"nvm_delay.{t['name']}.mean_error", t["mean_error_percent"], "%", paper=t["paper"])
        for t in targets
    ]
    doc = results.document(
        "demo", design, SEED, model=device.model, file={"name": name, "bytes": len(data), "sha256": digest},
        intact=intact, trips=trips, accuracy=targets, sort=sorted_table, figures=figures,
    )  # fmt: skip
    plot = results.folder() / "demo.png"
    plots.demo(doc, plot)
    doc["plot"] = str(plot)
    doc["saved"] = str(results.folder() / "demo.json")
    results.save("demo", doc)
    return doc


def print_document(doc: dict[str, Any]) -> None:
    """Prints the document for people."""
    file = doc["file"]
    verdict = "identical" if doc["intact"] else "DIFFERENT"
    through = f" ({show.size(file['bytes'])}) through {SHAPE['queues']} NVMe queues"
    show.out.print(Text.assemble((file["name"], "bold"), through), soft_wrap=True)
    show.out.print(f"  SHA-256 sent  {file['sha256']}")
    for trip in doc["trips"]:
        show.out.print(f"  SHA-256 back  {trip['sha256']}  ({trip['profile']})", soft_wrap=True)
    show.out.print(Text.assemble("  The data is ", (verdict, "bold"), ".\n"))
    names = [trip["profile"] for trip in doc["trips"]]
    table = show.table("Simulated time: the device's and the link's clock", "", *names)
    rows = [("write", "write the file, 16 KiB x 32"), ("read", "read it back, 16 KiB x 32")]
    rows += [(f"read_{size}", f"random reads, {show.size(size)} x 1") for size in SINGLE_BYTES]
    for kind, text in rows:
        reports = [trip[kind] for trip in doc["trips"]]
        table.add_row(f"{text}: bandwidth", *(f"{r['bandwidth_gb_s']:.3f} GB/s" for r in reports))
        for key, label in (("mean_ns", "mean"), ("p50_ns", "p50"), ("p99_ns", "p99"), ("p999_ns", "p99.9")):
            table.add_row(f"  {label}", *(show.nanoseconds(r["latency"][key]) for r in reports))
    show.out.print(table)
    if doc["accuracy"]:
        accuracy.print_table(doc["accuracy"])
    if doc["sort"]:
        verdict = "as" if doc["sort"]["equal"] else "NOT AS"
        text = f"A table sorted by {doc['sort']['by']}, {verdict} pyarrow sorts it:"
        show.out.print(text)
        tables.print_report(doc["sort"]["report"])
    else:
        show.out.print("No table was sorted: that needs pyarrow (pip install pyarrow).")
    show.out.print(f"Results: {doc['saved']}\nPlot:    {doc['plot']}", soft_wrap=True)
