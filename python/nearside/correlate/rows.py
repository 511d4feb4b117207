# SPDX-License-Identifier: Apache-2.0
"""The rows: a Latin hypercube over the parameters of workloads, and corner cases.

A row is identified by its parameters alone. Its number of commands follows from an estimate of
their time, so that the RTL simulates a row in a few seconds.
"""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, replace
from typing import Any

from nearside.device import Design, media_profile
from nearside.types import MediaDirection

HELD_OUT_DESIGN = """
clock_mhz = 300
channels = 4
granule = "8 KiB"
[media]
bytes = "512 MiB"
[nvme]
slots = 64
[dram]
data_rate_mts = 3200
"""
# Designs that are compiled; links and most profiles are not part of them. No tuning uses
# `held-out`.
DESIGNS = {
    "default": ("default", ""),
    "nand": ("default", "[media]\nprofile = 'nand'"),
    "engines": ("engines", ""),
    "held-out": ("default", HELD_OUT_DESIGN),
}
LINKS = {
    f"gen{generation}x{lanes}": f"[pcie]\ngeneration = {generation}\nlanes = {lanes}"
    for generation, lanes in ((3, 8), (3, 16), (4, 8))
}
PROFILES = ("dram", "optane-dcpmm", "pcm", "reram", "stt-mram", "nand")
READ_PERCENT = {"read": 100, "write": 0, "mix": 50}
PATTERNS = ("random", "sequential")
WINDOW = ("load", "store")
ENGINES = ("copy", "scan")
# Reads and writes with data in another device's PM window: it is written, or read.
PEER = {"peer-read": 100, "peer-write": 0}

BLOCK, SMALLEST, LARGEST = 512, 512, 1 << 20
MOST_QUEUES, DEEPEST = 16, 256
# Simulated time of a row, and of a quick one.
BUDGET_NS, QUICK_NS = 1.2e6, 0.2e6
# Estimated time of a command and of a load, without their bytes and the media.
COMMAND_NS, LOAD_NS = 2200.0, 660.0
# Additional time of a read from a peer, without its media and a read from host memory.
PEER_NS = 1200.0
LEAST_COMMANDS, MOST_COMMANDS = 3, 20_000
# One in three drawn rows is held out: with another seed, and in turns with the design that no
# tuning uses.
HELD_OUT = 3
# The share of drawn reads and writes with data in another device.
PEERS = 1 / 5
HELD_OUT_SEED = 1 << 32


@dataclass(frozen=True)
class Row:
    """A workload on a device.

    Kinds are "read", "write", "mix" (NVMe), "load", "store" (PM window), "copy" and "scan"
    (engines), and "peer-read", "peer-write" (NVMe, data in a peer's PM window).
    """

    origin: str
    kind: str
    bytes: int
    profile: str = "dram"
    link: str = "gen3x8"
    design: str = "default"
    pattern: str = "random"
    queues: int = 1
    depth: int = 1
    commands: int = 0
    scattered: bool = False
    seed: int = 1
    held_out: bool = False

    @property
    def values(self) -> dict[str, Any]:
        return asdict(self) | {"name": self.name}

    @property
    def job(self) -> dict[str, Any]:
        """The parameters that the result depends on: without origin, name and purpose."""
        return {key: value for key, value in self.values.items() if key not in ("origin", "name", "held_out")}

    @property
    def name(self) -> str:
        """A readable name."""
        parts = [self.kind, _size(self.bytes), f"{self.queues}x{self.depth}", self.profile, self.link]
        parts += ["seq"] if self.pattern == "sequential" else []
        parts += ["scattered"] if self.scattered else []
        parts += [f"({self.design})"] if self.design != "default" else []
        return " ".join(parts)

    def load(self) -> Design:
        name, values = DESIGNS[self.design]
        return Design.load(name).with_values(values).with_values(LINKS[self.link])


def _sides(row: Row) -> list[MediaDirection]:
    """The directions of the media that a row uses."""
    profile = media_profile(row.profile)
    if row.kind in ("mix", "copy", *PEER):
        return [profile["read"], profile["write"]]
    return [profile["write"] if row.kind in ("write", "store") else profile["read"]]


def _rate(row: Row) -> float:
    """An estimate of the GB/s that link and media allow."""
    pcie = row.load().values["pcie"]
    link = 0.9 * 2 ** (pcie["generation"] - 3) * pcie["lanes"]
    return min([link, *(side.get("cap_gb_s") or link for side in _sides(row))])


def sized(row: Row, budget_ns: float) -> Row:
    """The row with a number of commands, and a depth, that fit into a time budget."""
    rate = _rate(row)
    base = max(side.get("base_ns") or 0.0 for side in _sides(row))
    alone = base + (LOAD_NS if row.kind in WINDOW else COMMAND_NS)
    alone += base + PEER_NS if row.kind == "peer-write" else 0
    depth = max(1, min(row.depth, int(rate * budget_ns / row.bytes / row.queues)))
    in_flight = row.queues * depth
    each = max(row.bytes / rate, (alone + row.bytes / rate) / in_flight, 60.0)
    count = max(int(budget_ns / each), 5 * in_flight // 4, LEAST_COMMANDS)
    return replace(row, depth=depth, commands=min(count, MOST_COMMANDS))


def _corners() -> list[Row]:
    """Typical workloads, and the limits of the parameters."""
    rows = []

    def add(kind: str, size: int, queues: int, depth: int, **values: Any) -> None:
        rows.append(Row("corner", kind, size, queues=queues, depth=depth, **values))

    for kind in READ_PERCENT:
        add(kind, 512, 16, 256, link="gen3x16")
        add(kind, 4096, 1, 1)
        add(kind, 4096, 1, 64)
        add(kind, 4096, 16, 16, link="gen4x8")
        add(kind, LARGEST, 2, 4, pattern="sequential")
    for kind in ("read", "write"):
        add(kind, 512, 1, 1, profile="optane-dcpmm")
        add(kind, 131072, 4, 8, profile="optane-dcpmm", pattern="sequential", link="gen3x16")
        add(kind, 4096, 4, 32, profile="nand", design="nand")
        add(kind, LARGEST, 1, 1, link="gen4x8", scattered=True)
        add(kind, 4096, 4, 8, profile="pcm")
    # Two devices, whose latencies add up; small and large data TLPs in both directions.
    for kind in PEER:
        add(kind, 4096, 1, 1)
        add(kind, 4096, 4, 16)
        add(kind, 512, 4, 16, profile="optane-dcpmm", link="gen3x16")
        add(kind, 131072, 2, 4, profile="pcm", link="gen4x8", scattered=True)
    # PRP lists that wait for data on the wire.
    add("write", 16384, 4, 8, link="gen3x16", scattered=True)
    for size, depth in ((64, 1), (64, 64), (4096, 16)):
        add("load", size, 1, depth, profile="optane-dcpmm")
    for size in (64, 4096):
        add("store", size, 1, 64, profile="optane-dcpmm")
    for kind in ENGINES:
        add(kind, 1 << 20, 1, 1, design="engines")
        add(kind, 16384, 1, 1, design="engines", profile="optane-dcpmm")
    return rows


def _size(count: int) -> str:
    for unit in ("B", "KiB"):
        if count < 1024 or count % 1024:
            return f"{count}{unit}"
        count //= 1024
    return f"{count}MiB"


def _hypercube(count: int, seed: int) -> list[dict[str, float]]:
    """Points of a Latin hypercube: each axis has one point in each of `count` equal intervals."""
    chance = random.Random(seed)
    axes = {}
    for axis in ("bytes", "depth", "queues", "kind", "profile", "link", "pattern", "odd", "scattered", "peer"):
        parts = list(range(count))
        chance.shuffle(parts)
        axes[axis] = [(part + chance.random()) / count for part in parts]
    return [{axis: values[n] for axis, values in axes.items()} for n in range(count)]


def _pick(choices: Any, at: float) -> Any:
    choices = list(choices)
    return choices[min(int(at * len(choices)), len(choices) - 1)]


def _drawn(number: int, point: dict[str, float], seed: int) -> Row:
    """The row of a point.

    A third of the sizes are no powers of two. A fifth of the buffers is scattered. A fifth of the
    reads and writes has its data in another device.
    """
    size = SMALLEST * (LARGEST / SMALLEST) ** point["bytes"]
    power = SMALLEST << min(round((LARGEST // SMALLEST).bit_length() * point["bytes"] - 0.5), 11)
    odd = max(round(size / BLOCK), 1) * BLOCK
    profile = _pick(PROFILES, point["profile"])
    kind = _pick(READ_PERCENT, point["kind"])
    if point["peer"] < PEERS:
        kind = {"read": "peer-read", "write": "peer-write"}.get(kind, kind)
    return Row(
        origin=f"drawn {number} by seed {seed}",
        kind=kind,
        bytes=odd if point["odd"] < 1 / 3 else power,
        profile=profile,
        link=_pick(LINKS, point["link"]),
        design="nand" if profile == "nand" else "default",
        pattern=_pick(PATTERNS, point["pattern"]),
        queues=round(MOST_QUEUES ** point["queues"]),
        depth=round(DEEPEST ** point["depth"]),
        scattered=point["scattered"] < 1 / 5,
        seed=number + 1,
    )


def _held_out(row: Row, number: int) -> Row:
    design = "held-out" if number % 2 and row.profile != "nand" else row.design
    return replace(row, held_out=True, design=design, seed=row.seed + 1000)


def draw(count: int, seed: int, quick: bool = False) -> list[Row]:
    """Rows: corners, drawn ones, and drawn ones that are held out. A quick run has some of each, on one design."""
    corners = _corners()
    if quick:
        corners = [row for row in corners if row.design == "default"][:: max(1, 40 // max(count // 2, 1))]
    corners = corners[: max(count // 2, 1)]
    left = count - len(corners)
    held = left // HELD_OUT
    drawn = [_drawn(n, point, seed) for n, point in enumerate(_hypercube(left - held, seed))]
    others = [_drawn(n, point, seed + HELD_OUT_SEED) for n, point in enumerate(_hypercube(held, seed + HELD_OUT_SEED))]
    others = [_held_out(row, 0 if quick else n) for n, row in enumerate(others)]
    rows = [*corners, *drawn, *others]
    if quick:
        rows = [replace(row, profile="pcm", design="default") if row.profile == "nand" else row for row in rows]
    return [sized(row, QUICK_NS if quick else BUDGET_NS) for row in rows]
