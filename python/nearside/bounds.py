# SPDX-License-Identifier: Apache-2.0
"""Bounds of a sort: what link, memory and engine allow in each stage, and which limits it."""

from __future__ import annotations

import random
from functools import lru_cache

from nearside import ideal, wire
from nearside._native import LEAVES, ONE_PASS_KEYS
from nearside.device import Design
from nearside.types import Bound, PartitionPlan, SortPlan, StageBound

# From hw/engine: keys or values of each engine in a cycle.
KEYS_DECODED = 16
KEYS_SORTED = 8
BEAT = 64
# The most keys of one pass, and of two.
PASSES = (ONE_PASS_KEYS, LEAVES * ONE_PASS_KEYS)
# Bytes of an index.
INDEX = 4
# Bytes of the NVMe commands that move a table.
COMMAND = 128 << 10
# Lines that are simulated to find the bandwidth of the memory.
LINES = 4096
# Seed of the random rows.
SEED = 1

LINK = "PCIe link, commands of 128 KiB"
STREAMS = "DDR4 model, as many bytes read as written, by ideal masters"
GATHER = "DDR4 model, rows read at random and written in order, by ideal masters"


@lru_cache
def _streams(design: Design) -> float:
    """GB/s of sequential streams over all channels, reads and writes together."""
    reads, writes = ideal.stream(0, LINES), ideal.stream(_half(design), LINES)
    return 2 * design.values["channels"] * LINES * BEAT / ideal.busy_ns(design, reads, writes)


def _half(design: Design) -> int:
    """The middle of a channel's addresses; reads before it and writes after it do not overlap."""
    return design.values["media"]["bytes"] // design.values["channels"] // 2 // 4096 * 4096


@lru_cache
def _gather(design: Design, row_bytes: int) -> float:
    """GB/s of rows that are read at random and written in sequence, over all channels."""
    draw, half = random.Random(SEED), _half(design)
    rows = max(1, min(half // row_bytes, 1 << 20))
    count = max(16, LINES * BEAT // max(row_bytes, BEAT))
    reads: list[int] = []
    for _ in range(count):
        start = draw.randrange(rows) * row_bytes
        reads += range(start // BEAT * BEAT, start + row_bytes, BEAT)
    writes = ideal.stream(half, -(-count * row_bytes // BEAT))
    return design.values["channels"] * count * row_bytes / ideal.busy_ns(design, reads, writes)


def _rate(what: str, gb_s: float) -> str:
    return f"{what}, {gb_s:.2f} GB/s"


def _worst(*limits: tuple[float, str, str]) -> Bound:
    ns, limit, source = max(limits)
    return {"ns": ns, "limit": limit, "source": source}


def _sort(design: Design, count: int, key_bytes: int, cycle: float) -> Bound:
    passes = sum(count > most for most in PASSES) + 1
    record = 8 if key_bytes == 4 else 2 * key_bytes
    moved = [key_bytes, *[record] * (2 * passes - 2), INDEX]
    rows = passes * -(-count // KEYS_SORTED) * cycle
    return _worst(
        (count * sum(moved) / _streams(design), _rate("memory", _streams(design)), STREAMS),
        (rows, f"{KEYS_SORTED} keys a cycle of {cycle:g} ns", f"sorter, passes: {passes}"),
    )


def of_partition(design: Design, plan: SortPlan, part: PartitionPlan) -> dict[str, Bound]:
    """The least time of each stage of a partition, in ns, and its limit."""
    cycle = 1e3 / design.values["clock_mhz"]
    rows, count, row_bytes, key_bytes = part["rows"], part["sorted"], plan["row_bytes"], plan["key_bytes"]
    keys, pages = count * key_bytes, part["pages"]
    encoded = pages["dictionary"] + pages["encoded"] if pages else 0
    stages = {}
    if not plan["stands"]:
        moved = (encoded if pages else keys) + rows * row_bytes
        link = wire.bound(design, "write", COMMAND)
        stages["put"] = _worst((moved / link, _rate("link", link), LINK))
    if pages:
        memory = _streams(design)
        stages["decode"] = _worst(
            ((encoded + keys) / memory, _rate("memory", memory), STREAMS),
            (-(-count // KEYS_DECODED) * cycle, f"{KEYS_DECODED} values a cycle of {cycle:g} ns", "dict_decode"),
        )
    if count:
        stages["sort"] = _sort(design, count, key_bytes, cycle)
        memory, beat = _gather(design, row_bytes), BEAT / cycle
        stages["shuffle"] = _worst(
            (count * row_bytes / memory, _rate("memory", memory), GATHER),
            (count * row_bytes / beat, _rate(f"{BEAT} bytes a cycle", beat), "row_shuffle"),
        )
    link = wire.bound(design, "read", COMMAND)
    stages["get"] = _worst((rows * row_bytes / link, _rate("link", link), LINK))
    return stages


def of_plan(design: Design, plan: SortPlan) -> list[StageBound]:
    """The bounds of a whole sort: for each stage those of its slowest device, over all partitions."""
    worst: dict[str, Bound] = {}
    for device in plan["devices"]:
        total: dict[str, Bound] = {}
        for part in device:
            for name, bound in of_partition(design, plan, part).items():
                if name in total:
                    bound["ns"] += total[name]["ns"]
                total[name] = bound
        for name, bound in total.items():
            if name not in worst or bound["ns"] >= worst[name]["ns"]:
                worst[name] = bound
    order = [name for name in ("put", "decode", "sort", "shuffle", "get") if name in worst]
    return [
        {"stage": name, "ns": worst[name]["ns"], "limit": worst[name]["limit"], "source": worst[name]["source"]}
        for name in order
    ]
