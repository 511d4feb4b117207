"""The demonstration: a file travels through the device under DRAM timing and under Optane timing."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

from nearside import accuracy, plots, results, show
from nearside._native import NearsideError
from nearside.device import Design, Device

GENERATED_BYTES = 8 << 20
SEED = 1
SHAPE = {"queues": 4, "depth": 8, "chunk": 16384}


def read_input(path: Path | None, room: int) -> tuple[str, bytes]:
    """The file's bytes, or 8 MiB of pseudo-random ones; checked before anything long begins."""
    if path is None:
        return "8 MiB generated", random.Random(SEED).randbytes(GENERATED_BYTES)
    try:
        if not path.is_file():
            reason = "is a directory" if path.is_dir() else "no such file"
            raise NearsideError(f"{path}: {reason}")
        count = path.stat().st_size
        if count > room:
            raise NearsideError(f"{path}: {count} bytes do not fit in the namespace of {room} bytes")
        data = path.read_bytes()
    except OSError as error:
        raise NearsideError(f"{path}: {error.strerror}") from None
    if not data:
        raise NearsideError(f"{path}: the file is empty")
    return path.name, data


def trip(device: Device, profile: str, data: bytes, quiet: bool) -> dict[str, Any]:
    """Writes the data, reads it back and measures single 4 KiB reads, all under one media profile."""
    device.delay_set(profile)
    with show.bar(f"{profile}: writing", not quiet) as progress:
        write = device.write(data, progress=progress, **SHAPE)
    with show.bar(f"{profile}: reading", not quiet) as progress:
        back, read = device.read(len(data), progress=progress, **SHAPE)
    with show.bar(f"{profile}: single reads", not quiet) as progress:
        span = max(1 << 20, len(data) // 4096 * 4096)
        job = {"queues": 1, "depth": 1, "commands": 300, "span": min(span, device.namespace_bytes), "seed": SEED}
        single_read = device.workload(read_percent=100, progress=progress, **job)
    digest = hashlib.sha256(back).hexdigest()
    return {"profile": profile, "write": write, "read": read, "single_read": single_read, "sha256": digest}


def run(path: Path | None, design: Design, quiet: bool) -> dict[str, Any]:
    """Everything; returns the result document, already saved."""
    name, data = read_input(path, design.values["media"]["bytes"])
    optane = design.values["media"]["profile"]
    if optane == "dram":
        optane = "optane-dcpmm"
    with show.building(design.name, not quiet) as progress:
        device = Device(design, progress)
    with device:
        digest = hashlib.sha256(data).hexdigest()
        trips = [trip(device, profile, data, quiet) for profile in ("dram", optane)]
    with show.building("nvm_delay bench", not quiet) as progress:
        targets = accuracy.run(accuracy.DEMO_TARGETS, samples=2000, seed=SEED, progress=progress)
    intact = all(t["sha256"] == digest for t in trips)
    figures = [
        results.figure(f"{t['profile']}.{kind}.bandwidth", t[kind]["total_bandwidth_gb_s"], "GB/s")
        for t in trips
        for kind in ("write", "read")
    ]
    figures += [
        results.figure(f"{t['profile']}.single_read.mean", t["single_read"]["latency"]["mean_ns"], "ns") for t in trips
    ]
    figures += [
        results.figure(f"nvm_delay.{t['name']}.mean_error", t["mean_error_percent"], "%", paper=t["paper"])
        for t in targets
    ]
    doc = results.document(
        "demo", design, SEED, file={"name": name, "bytes": len(data), "sha256": digest}, intact=intact, trips=trips,
        accuracy=targets, figures=figures,
    )  # fmt: skip
    plot = results.folder() / "demo.png"
    plots.demo(doc, plot)
    doc["plot"] = str(plot)
    doc["saved"] = str(results.folder() / "demo.json")
    results.save("demo", doc)
    return doc


def print_document(doc: dict[str, Any]) -> None:
    """The document for people."""
    file = doc["file"]
    verdict = "identical" if doc["intact"] else "DIFFERENT"
    show.out.print(f"[bold]{file['name']}[/bold] ({show.size(file['bytes'])}) through {SHAPE['queues']} NVMe queues")
    show.out.print(f"  SHA-256 sent  {file['sha256']}")
    for trip in doc["trips"]:
        show.out.print(f"  SHA-256 back  {trip['sha256']}  ({trip['profile']})")
    show.out.print(f"  The data is [bold]{verdict}[/bold].\n")
    names = [trip["profile"] for trip in doc["trips"]]
    table = show.table("Simulated time: the device's and the link's clock", "", *names)
    rows = (("write", "write, 16 KiB x 32"), ("read", "read, 16 KiB x 32"), ("single_read", "read, 4 KiB x 1"))
    for kind, text in rows:
        reports = [trip[kind] for trip in doc["trips"]]
        bandwidth = "total_bandwidth_gb_s" if kind != "single_read" else "bandwidth_gb_s"
        table.add_row(f"{text}: bandwidth", *(f"{r[bandwidth]:.3f} GB/s" for r in reports))
        for key, label in (("mean_ns", "mean"), ("p50_ns", "p50"), ("p99_ns", "p99"), ("p999_ns", "p99.9")):
            table.add_row(f"  {label}", *(show.nanoseconds(r["latency"][key]) for r in reports))
    show.out.print(table)
    accuracy.print_table(doc["accuracy"])
    show.out.print(f"Results: {doc['saved']}\nPlot:    {doc['plot']}")
