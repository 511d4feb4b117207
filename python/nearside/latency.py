# SPDX-License-Identifier: Apache-2.0
"""The latency of a single 4 KiB command by terms: those of physics and host, and those of the
controller.

The physical terms are delays that a controller without any delay would still have. The controller's
terms
lie between them. In order:

- `doorbell`: from the CPU's store to the device. Measured.
- `fetch`: from the read request of the submission queue entry at the device's port to the entry.
Measured.
- read: `memory`: from the controller's read of the memory, past the timing emulator, to the first
data.
  Measured. `transfer`: from there to the last data on the wire. Each TLP is assumed to leave as
  soon as the
  memory has delivered its bytes and the wire is free. Times of the memory's data are measured;
  those on the
  wire are computed from rate, MPS and the 24 bytes around a TLP's payload.
- write: `transfer`: from the data's read request at the device's port to the last data. Measured.
- `entry`: the completion queue entry's TLP on the wire, and the link's latency. Computed.

The rest of the time until the entry is in host memory is the controller's. In writes it includes
the time
in which the memory accepts the data, which can't be separated.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nearside import plots, results, show, wire
from nearside.device import Design, Device
from nearside.renamed import renamed
from nearside.types import LatencyBreakdown, LinkValues

BYTES = 4096
BEAT = 64
DOORBELLS = range(0x1000, 0x2000)

PHYSICAL = {
    "read": ("doorbell", "fetch", "memory", "transfer", "entry"),
    "write": ("doorbell", "fetch", "transfer", "entry"),
}
ADDED = {
    "read": ("doorbell to fetch", "entry to memory read", "data to entry"),
    "write": ("doorbell to fetch", "entry to data read", "data to entry"),
}
# The order of the terms in time.
ORDER = {
    "read": (
        "doorbell", "doorbell to fetch", "fetch", "entry to memory read", "memory", "transfer", "data to entry", "entry"
    ),
    "write": ("doorbell", "doorbell to fetch", "fetch", "entry to data read", "transfer", "data to entry", "entry"),
}  # fmt: skip
EXPLAINED: dict[str, str | dict[str, str]] = {
    "doorbell": "CPU to device, measured",
    "fetch": "round trip of the 64-byte read, measured",
    "memory": "read to first data, measured",
    "transfer": {
        "read": "16 TLPs as the memory delivers them, computed",
        "write": "round trip and data at the port, measured",
    },
    "entry": "TLP on the wire and the link's latency, computed",
    "doorbell to fetch": "controller",
    "entry to memory read": "controller: decode, PRPs, mover",
    "entry to data read": "controller: decode, PRPs, mover",
    "data to entry": {
        "read": "controller: first burst, end of data, completion",
        "write": "controller, and the memory taking the data",
    },
}


def explained(kind: str, term: str) -> str:
    text = EXPLAINED[term]
    return text if isinstance(text, str) else text[kind]


def terms(pcie: LinkValues, kind: str, events: list[list[Any]]) -> dict[str, float]:
    """The terms of one command in ns, from its events."""

    def times(name: str) -> list[float]:
        return [ps / 1e3 for ps, event, _ in events if event == name]

    def rung(name: str) -> float:
        tails = (ps / 1e3 for ps, event, at in events if event == name and at in DOORBELLS and at % 8 == 0)
        return next(tails)

    entry_at = next(at for _, event, at in events if event == "sent")
    landed = next(ps / 1e3 for ps, event, at in events if event == "landed" and at == entry_at)
    stored, arrived = rung("stored"), rung("arrived")
    requests, data = times("host_read"), times("host_data")
    per_byte = 1 / wire.rate(pcie)
    latency = pcie["device_phy_ns"] + pcie["propagation_ns"] + pcie["root_phy_ns"]
    entry = (wire.CQE + wire.WRITE_TLP) * per_byte + latency
    out = {"doorbell": arrived - stored, "doorbell to fetch": requests[0] - arrived, "fetch": data[0] - requests[0]}
    if kind == "read":
        asked, beats = times("read")[0], times("beat")
        payload = pcie["max_payload_bytes"]
        free = 0.0
        for last in range(payload // BEAT - 1, len(beats), payload // BEAT):
            free = max(free, beats[last]) + (payload + wire.WRITE_TLP) * per_byte
        out |= {
            "entry to memory read": asked - data[0],
            "memory": beats[0] - asked,
            "transfer": free - beats[0],
            "data to entry": landed - free - entry,
        }
    else:
        out |= {
            "entry to data read": requests[1] - data[0],
            "transfer": data[-1] - requests[1],
            "data to entry": landed - data[-1] - entry,
        }
    return out | {"entry": entry, "total": landed - stored}


def measure(device: Device, kind: str, commands: int, seed: int) -> LatencyBreakdown:
    """Means over `commands` single commands; the controller's cycles of the slowest."""
    pcie, period = device.design.values["pcie"], 1e3 / device.design.values["clock_mhz"]
    runs = device.single(write=kind == "write", bytes=BYTES, commands=commands, seed=seed)
    each = [terms(pcie, kind, events) for events in runs]
    added = [sum(one[term] for term in ADDED[kind]) / period for one in each]
    mean = {term: sum(one[term] for one in each) / len(each) for term in (*ORDER[kind], "total")}
    return {
        "kind": kind,
        "commands": len(each),
        "period_ns": period,
        "terms": [
            {
                "term": term, "mean_ns": mean[term], "cycles": mean[term] / period, "added": term in ADDED[kind],
                "how": explained(kind, term),
            }
            for term in ORDER[kind]
        ],
        "total_ns": mean["total"],
        "physical_ns": sum(mean[term] for term in PHYSICAL[kind]),
        "added_ns": sum(mean[term] for term in ADDED[kind]),
        "added_cycles": sum(added) / len(added),
        "added_cycles_max": max(added),
        "memory_included": kind == "write",
    }  # fmt: skip


@renamed(engine="model")
def run(
    design: Design, profiles: list[str], commands: int, seed: int, quiet: bool, model: str | None = None
) -> dict[str, Any]:
    """Measures reads and writes under each profile; returns the saved document, with its plot."""
    results.check_outputs(["latency.json", "latency.png"], inputs=design.files)
    with show.building(design.name, not quiet) as progress:
        device = Device(design, progress, model)
    rows: list[dict[str, Any]] = []
    with device:
        for profile in profiles:
            device.delay_set(profile)
            chosen = {"profile": profile, "late_reads": device.late_reads}
            rows += [{**chosen, **measure(device, kind, commands, seed)} for kind in ("read", "write")]
    figures = [
        results.figure(f"{row['profile']}.{row['kind']}_4k.added_cycles", row["added_cycles"], "cycles") for row in rows
    ]
    doc = results.document("latency", design, seed, model=device.model, time="simulated", rows=rows, figures=figures)
    doc["plot"] = str(results.folder() / "latency.png")
    plots.latency(doc, Path(doc["plot"]))
    doc["saved"] = str(results.folder() / "latency.json")
    results.save("latency", doc)
    return doc


def print_document(doc: dict[str, Any]) -> None:
    """Prints the document for people."""
    for row in doc["rows"]:
        table = show.table(
            f"4 KiB {row['kind']}, one at a time, {row['profile']}: means of {row['commands']}, simulated time",
            "", "ns", "cycles", "controller", "how",
        )  # fmt: skip
        for term in row["terms"]:
            controller = f"{term['cycles']:.1f}" if term["added"] else ""
            table.add_row(term["term"], f"{term['mean_ns']:.1f}", f"{term['cycles']:.1f}", controller, term["how"])
        whole = f"{row['total_ns']:.1f}", f"{row['total_ns'] / row['period_ns']:.1f}"
        table.add_row("total", *whole, f"{row['added_cycles']:.1f}", "store to entry")
        show.out.print(table)
    show.out.print(f"Results: {doc['saved']}\nPlot:    {doc['plot']}", soft_wrap=True)
