# SPDX-License-Identifier: Apache-2.0
"""Bandwidth beside the wire's limit: the bytes that each command moves over the link in each
direction.

The bound counts the traffic that NVMe needs for a command. It includes the read of the submission
queue entry, the data, the PRP list for its size, the completion queue entry and both doorbells. To
these it adds the headers of all TLPs and the DLLPs that answer them. Interrupts are not counted:
the driver polls. Only the parameters of the link come from the simulator.

A driver that finds several completions at once rings one doorbell for them, so a run may slightly
exceed 100 %.
"""

from __future__ import annotations

from dataclasses import dataclass

from nearside import show
from nearside.device import Design, Device
from nearside.types import LinkValues, WireMeasurement

PAGE = 4096
SQE, CQE, PRP = 64, 16, 8
# Bytes on the wire around the payload (framing, sequence number, header with 64-bit address,
# LCRC), and of a DLLP. Headers of requests below 4 GiB have a 32-bit address. PCI Express base
# specification 3.1, sections 2.2 and 3.4.
WRITE_TLP = READ_TLP = 24
SHORTER_BELOW_4_GIB = 4
COMPLETION_TLP = 20
DOORBELL = 28
DLLP = 8

SIZES = {"512b": 512, "4k": 4096, "8k": 8192, "16k": 16384, "32k": 32768, "128k": 131072}
PATTERNS = {"seq": "sequential", "rand": "random"}
LINKS = {
    f"gen{generation}x{lanes}": f"[pcie]\ngeneration = {generation}\nlanes = {lanes}"
    for generation, lanes in ((3, 8), (3, 16), (4, 8))
}


@dataclass
class Direction:
    """The traffic of a command in one direction of the link."""

    bytes: float = 0.0
    tlps: int = 0

    def add(self, payload: int, limit: int, overhead: int) -> None:
        """Adds `payload` bytes in TLPs of at most `limit`; 0 bytes are one TLP."""
        count = max(1, -(-payload // limit))
        self.bytes += payload + overhead * count
        self.tlps += count


def _traffic(pcie: LinkValues, kind: str, size: int, below_4_gib: bool) -> tuple[Direction, Direction]:
    """The traffic of one command: from the device to the host, and the other way."""
    up, down = Direction(), Direction()
    shorter = SHORTER_BELOW_4_GIB if below_4_gib else 0

    def read_from_host(payload: int) -> None:
        for start in range(0, payload, pcie["max_read_request_bytes"]):
            part = min(pcie["max_read_request_bytes"], payload - start)
            up.add(0, 1, READ_TLP - shorter)
            down.add(part, pcie["max_completion_bytes"], COMPLETION_TLP)

    down.bytes += 2 * DOORBELL
    down.tlps += 2
    read_from_host(SQE)
    pages = -(-size // PAGE)
    if pages > 2:
        read_from_host(PRP * (pages - 1))
    if kind == "read":
        up.add(size, pcie["max_payload_bytes"], WRITE_TLP - shorter)
    else:
        read_from_host(size)
    up.add(CQE, CQE, WRITE_TLP - shorter)
    return up, down


def rate(pcie: LinkValues) -> float:
    """GB/s of one direction of the link.

    From generation 3 on: 128b/130b, one SKP block every 371. Before: 8b/10b, one SKP ordered set of
    4 symbols every 1538.
    """
    if pcie["generation"] < 3:
        return 2.5 * pcie["generation"] * pcie["lanes"] / 8 * (8 / 10) * (1 - 4 / 1538)
    return 8 * 2 ** (pcie["generation"] - 3) * pcie["lanes"] / 8 * (128 / 130) * (1 - 1 / 371)


def bound(design: Design, kind: str, size: int, below_4_gib: bool = False) -> float:
    """GB/s of data over the link in commands of `size` bytes: "read", "write", or "mix" for half of each.

    `below_4_gib`: the host's memory has 32-bit addresses, as in a small guest. Doorbells do not count as such.
    """
    pcie = design.values["pcie"]
    kinds = ["read", "write"] if kind == "mix" else [kind]
    ups, downs = zip(*(_traffic(pcie, one, size, below_4_gib) for one in kinds), strict=True)
    answers = DLLP * (1 / pcie["ack_every_tlps"] + 1 / pcie["update_fc_every_tlps"])
    up = sum(d.bytes for d in ups) + answers * sum(d.tlps for d in downs)
    down = sum(d.bytes for d in downs) + answers * sum(d.tlps for d in ups)
    return rate(pcie) * size * len(kinds) / max(up, down)


@dataclass(frozen=True)
class Case:
    """A workload on a link."""

    kind: str
    size: str
    pattern: str
    queues: int = 16
    depth: int = 16

    def commands(self) -> int:
        """A number of commands that makes start and end of the run negligible."""
        return max(400, min(20_000, (40 << 20) // SIZES[self.size]))


def cases() -> list[Case]:
    """The rows of the table for one link."""
    rows = [Case(kind, size, pattern) for size in SIZES for kind in ("read", "write") for pattern in PATTERNS]
    rows += [Case("mix", "4k", "rand", depth=32)]
    return rows + [Case(kind, "4k", "rand", queues=1, depth=64) for kind in ("read", "write")]


def measure(device: Device, case: Case, commands: int, seed: int) -> WireMeasurement:
    """Measures a row, in simulated time."""
    report = device.workload(
        read_percent={"read": 100, "write": 0, "mix": 50}[case.kind], pattern=PATTERNS[case.pattern],
        min_bytes=SIZES[case.size], queues=case.queues, depth=case.depth, commands=commands, seed=seed,
    )  # fmt: skip
    limit = bound(device.design, case.kind, SIZES[case.size])
    return {
        "kind": case.kind,
        "bytes": SIZES[case.size],
        "pattern": PATTERNS[case.pattern],
        "queues": case.queues,
        "depth": case.depth,
        "gb_s": report["bandwidth_gb_s"],
        "kiops": report["iops"] / 1e3,
        "bound_gb_s": limit,
        "percent": 100 * report["bandwidth_gb_s"] / limit,
    }


def print_table(link: str, rows: list[WireMeasurement]) -> None:
    table = show.table(
        f"{link}, DRAM timing, simulated time: measured, what the wire allows, and the ratio",
        "", "bytes", "pattern", "queues", "GB/s", "kIOPS", "wire", "ratio",
    )  # fmt: skip
    for row in rows:
        table.add_row(
            row["kind"], str(row["bytes"]), row["pattern"], f"{row['queues']} x {row['depth']}", f"{row['gb_s']:.3f}",
            f"{row['kiops']:.0f}", f"{row['bound_gb_s']:.3f}", f"{row['percent']:.1f} %",
        )  # fmt: skip
    show.out.print(table)
