# SPDX-License-Identifier: Apache-2.0
"""The engines of a sort, each separately, on data in the device: measurement and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from nearside import ideal
from nearside._native import LEAVES, ONE_PASS_KEYS, NearsideError
from nearside.bounds import KEYS_SORTED
from nearside.device import Design, Device, Peer

MIB = 1 << 20
# The most bytes that are compared with the host's result.
CHECKED = MIB
TIMEOUT_US = 1_000_000_000


def round_up(size: int, step: int = 4096) -> int:
    """Rounds up to a multiple."""
    return -(-size // step) * step


def memory_base(device: Device, memory: str) -> int:
    """The base address of a memory in the PM window."""
    return {m["name"]: m["base"] for m in device.info()["device"]["memories"]}[memory]


def store(place: Device | Peer, at: int, data: bytes) -> None:
    """Stores data and waits until they have arrived: stores are posted."""
    place.pm_write(at, data)
    place.pm_read(at, ideal.LINE)


def remove_limits(place: Device | Peer, engines: Sequence[str]) -> None:
    """Removes engines' credit limits: flash needs more lines in flight than the 32 after reset."""
    for name in engines:
        place.set_qos(name, reads=0, writes=0, beside=0)


def random_keys(count: int, bits: int, seed: int) -> np.ndarray:
    """Uniformly distributed unsigned keys."""
    return np.random.default_rng(seed).integers(0, 1 << bits, count, dtype=f"u{bits // 8}")


def adversarial(count: int, seed: int) -> dict[str, np.ndarray]:
    """32-bit keys in orders that are slow for other sort algorithms."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    ordered = np.sort(drawn)
    nan = rng.standard_normal(count, dtype=np.float32)
    nan[rng.integers(0, count, count // 2)] = np.nan
    ends = np.array([0, 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 2, (1 << 32) - 1], np.uint32)
    return {
        "random": drawn,
        "sorted": ordered,
        "reversed": ordered[::-1].copy(),
        "equal": np.full(count, drawn[0]),
        "few distinct": rng.integers(0, 4, count, dtype=np.uint32),
        "extremes": ends[rng.integers(0, len(ends), count)],
        "organ pipe": np.concatenate([ordered[::2], ordered[1::2][::-1]]),
        "half NaN": nan,
    }


def total_order(keys: np.ndarray) -> np.ndarray:
    """Floating-point numbers as unsigned ones in the order of IEEE 754 totalOrder; others unchanged."""
    if keys.dtype.kind != "f":
        return keys
    bits = keys.view(f"u{keys.itemsize}")
    top = bits.dtype.type(1 << (8 * keys.itemsize - 1))
    return np.where(bits & top, ~bits, bits | top)


@dataclass(frozen=True)
class SortTimes:
    """Simulated nanoseconds of a sort, in all and of each pass."""

    ns: float
    passes: list[float]


def sort(
    device: Device,
    keys: np.ndarray,
    source: int,
    room: int,
    *,
    indexes: bool = False,
    pairs: bool = False,
    seed: int = 1,
    stored: bool = False,
) -> SortTimes:
    """Sorts keys at `source` into `room` and the scratch space that follows it; checks a part of
    the result.

    The keys are stored first unless they are `stored`. With `pairs` all passes but the first merge
    two runs at a time; their time is one number.
    """
    count, size = len(keys), keys.itemsize
    record = {4: 8, 8: 16}[size]
    if not stored:
        store(device, source, keys.tobytes())
    kind = {4: 0, 8: 1}[size] | (2 << 2 if keys.dtype.kind == "f" else 0) | indexes << 5 | pairs << 6
    scratch = room + round_up(count * record)
    engine = device.engine("sorter0")
    written = _written(device)  # before the start, since reading counters takes time
    begin = device.now_ns
    engine.start(src=source, dst=room, tmp=scratch, count=count, kind=kind)
    passes = [_time_of_bytes(device, engine.name, written + count * record)] if count > ONE_PASS_KEYS else []
    if wrong := engine.wait(TIMEOUT_US):
        raise NearsideError(f"sorter0: {', '.join(wrong)}")
    ends = [begin, *passes, device.now_ns]
    _check_sorted(device, keys, room, 4 if indexes else record, 0 if indexes else size, seed)
    return SortTimes(ends[-1] - begin, [b - a for a, b in pairwise(ends)])


def _written(device: Device) -> int:
    """Bytes that were written to all channels."""
    return sum(channel["write"]["beats"] for channel in device.delay_counters()) * ideal.LINE


def _time_of_bytes(device: Device, engine: str, goal: int) -> float:
    """The time at which `goal` bytes had been written, interpolated between samples of the counters."""
    before = (device.now_ns, _written(device))
    while device.native.engine_wait(engine, 20) is None:
        after = (device.now_ns, _written(device))
        if after[1] >= goal:
            return float(np.interp(goal, (before[1], after[1]), (before[0], after[0])))
        before = after
    raise NearsideError(f"{engine}: has ended before its first pass")


def _check_sorted(device: Device, keys: np.ndarray, target: int, record: int, at: int, seed: int) -> None:
    """Compares a part of the indexes with a stable sort on the host."""
    wanted = np.argsort(total_order(keys), kind="stable")
    part = min(len(keys), CHECKED // record)
    first = int(np.random.default_rng(seed).integers(0, len(keys) - part + 1))
    data = np.frombuffer(device.pm_read(target + first * record, part * record), np.uint8).reshape(part, record)
    found = np.ascontiguousarray(data[:, at : at + 4]).view(np.uint32).ravel()
    if not np.array_equal(found, wanted[first : first + part]):
        raise AssertionError("the indexes are not those of a stable sort")


def sort_bounds(
    design: Design, count: int, size: int, channels: int, *, indexes: bool = False, sample: int = 32768
) -> list[float]:
    """The least time of each pass: of the memory with ideal masters, or 8 records a cycle."""
    record = {4: 8, 8: 16}[size]
    out = 4 if indexes else record
    cycle_ns = 1e3 / design.values["clock_mhz"]
    far = 512 * MIB
    bounds = []
    passes = 1 if count <= ONE_PASS_KEYS else 2
    for number in range(passes):
        taken = size if number == 0 else record
        given = record if number + 1 < passes else out
        # A sample, since all lines of a pass take the same time on average.
        lines = min(count * taken // ideal.LINE // channels, sample)
        reads: Sequence[int] = ideal.stream(0, lines)
        if number:
            run = max(round_up(count * record // LEAVES // channels), 4096)
            reads = ideal.in_turns(0, LEAVES, run, lines)
        writes = ideal.stream(far, max(lines * given // taken, 1))
        memory = ideal.busy_ns(design, reads, writes) * count * taken / (lines * ideal.LINE * channels)
        bounds.append(max(memory, count / KEYS_SORTED * cycle_ns))
    return bounds


def gather_rows(
    device: Device,
    engines: Sequence[str],
    order: np.ndarray,
    row: int,
    source: int,
    target: int,
    index: int,
    data: bytes | None = None,
    seed: int = 1,
) -> float:
    """Copies rows in a given order by several engines, a part each; simulated ns. Checks a row."""
    if data is not None:
        store(device, source, data)
    store(device, index, order.astype(np.uint32).tobytes())
    jobs = gather_jobs(len(order), len(engines), row, source, target, index)
    begin = device.now_ns
    for name, job in zip(engines, jobs, strict=False):
        device.engine(name).start(**job)
    for name, _ in zip(engines, jobs, strict=False):
        if wrong := device.engine(name).wait(TIMEOUT_US):
            raise NearsideError(f"{name}: {', '.join(wrong)}")
    ns = device.now_ns - begin
    if data is not None:
        at = int(np.random.default_rng(seed).integers(0, len(order)))
        from_ = int(order[at]) * row
        if device.pm_read(target + at * row, row) != data[from_ : from_ + row]:
            raise AssertionError("a row is not where it should be")
    return ns


def gather_jobs(
    rows: int, parts: int, row: int, source: int, target: int, index: int, kind: int = 0
) -> list[dict[str, int]]:
    """The arguments of several engines, each for a part of the list."""
    step = round_up(-(-rows // parts), 64)
    entry = 4 << kind if kind else 4
    return [
        {
            "index": index + first * entry,
            "src": source,
            "dst": target + first * row,
            "count": min(step, rows - first),
            "row_bytes": row,
            "rows": rows,
            "kind": kind,
        }
        for first in range(0, rows, step)
    ]


def gather_bound(design: Design, rows: int, row: int, channels: int, seed: int = 1, sample: int = 32768) -> float:
    """GB/s at which ideal masters copy rows within a memory, in random order."""
    lines = max(row // ideal.LINE, 1)
    count = max(min(rows // channels, sample // lines), 1)
    places = np.random.default_rng(seed).permutation(max(rows // channels, count))[:count]
    reads = [int(place) * row + ideal.LINE * line for place in places for line in range(lines)]
    memory = count * row / ideal.busy_ns(design, reads, ideal.stream(512 * MIB, count * lines))
    return channels * min(memory, ideal.LINE * design.values["clock_mhz"] / 1e3)


def decode(
    device: Device, bits: int, value_bytes: int, count: int, source: int, target: int, seed: int = 1
) -> dict[str, Any]:
    """Decodes packed keys of 8 or 16 bits; simulated ns, bytes of keys and dictionary. Checks a part."""
    rng = np.random.default_rng(seed)
    dictionary = rng.integers(0, 1 << 8 * value_bytes, 1 << bits, dtype=f"u{value_bytes}")
    keys = rng.integers(0, 1 << bits, count, dtype=f"u{bits // 8}")
    at = source + round_up(dictionary.nbytes)
    store(device, source, dictionary.tobytes())
    store(device, at, keys.tobytes())
    kind = bits | value_bytes.bit_length() - 1 << 8 | 1 << 17
    ns = device.engine("decode0").launch(
        TIMEOUT_US, dict=source, entries=1 << bits, src=at, bytes=keys.nbytes, dst=target, count=count, kind=kind
    )
    part = min(count, CHECKED // value_bytes)
    first = int(rng.integers(0, count - part + 1))
    found = np.frombuffer(device.pm_read(target + first * value_bytes, part * value_bytes), dictionary.dtype)
    if not np.array_equal(found, dictionary[keys[first : first + part]]):
        raise AssertionError("the values are not those of the dictionary")
    return {"ns": ns, "key_bytes": keys.nbytes, "dictionary_bytes": dictionary.nbytes}
