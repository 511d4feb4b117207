# SPDX-License-Identifier: Apache-2.0
"""cocotb tests of nvm_delay_stats alone: each snapshot shows one moment.

The counters must match the events up to some cycle between the command and the end of its sweep. These are the first
transactions with all their fields, and the beats that had passed by that cycle.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from dataclasses import dataclass, field

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge
from extent import LONG

BUCKETS = 64
NONE = 2**32 - 1
INPUTS = (
    "beat_i",
    "done_i",
    "latency_i",
    "late_i",
    "snapshot_i",
    "clear_i",
    "full_i",
    "read_i",
    "read_bucket_i",
    "read_index_i",
)


def bucket(latency: int) -> int:
    if latency < 4:
        return latency
    e = latency.bit_length() - 1
    return min(4 * (e - 1) + (latency >> (e - 2) & 3), BUCKETS - 1)


@dataclass
class Log:
    """Recorded events: cycles of beats; cycle, latency and lateness of transactions."""

    beats: list[int] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    what: list[tuple[int, bool]] = field(default_factory=list)

    def between(self, start: int, end: int) -> dict:
        """Counters of the events from cycle `start` until before cycle `end`."""
        what = self.what[bisect_left(self.done, start) : bisect_left(self.done, end)]
        histogram = [0] * BUCKETS
        for latency, _ in what:
            histogram[bucket(latency)] += 1
        latencies = [latency for latency, _ in what]
        return {
            "transactions": len(what),
            "beats": bisect_left(self.beats, end) - bisect_left(self.beats, start),
            "late": sum(late for _, late in what),
            "sum": sum(latencies),
            "min": min(latencies, default=NONE),
            "max": max(latencies, default=0),
            "histogram": histogram,
        }

    def moments(self, start: int, got: dict, first: int, last: int) -> range:
        """The ends in [first, last] for which `between(start, end)` is `got`."""
        for cycles, count in ((self.done, got["transactions"]), (self.beats, got["beats"])):
            end = bisect_left(cycles, start) + count
            if end > len(cycles):
                return range(0)
            first = max(first, cycles[end - 1] + 1 if end > 0 else 0)
            last = min(last, cycles[end] if end < len(cycles) else last)
        fits = first <= last and self.between(start, first) == got
        return range(first, last + 1) if fits else range(0)


class Bench:
    def __init__(self, dut, seed: int) -> None:
        self.dut = dut
        self.rng = random.Random(seed)
        self.now = 0
        self.log = Log()
        self.rate = 0.5
        for name in INPUTS:
            getattr(dut, name).value = 0

    async def start(self) -> None:
        dut = self.dut
        Clock(dut.clk_i, 4, "ns").start()
        dut.rst_ni.value = 0
        dut.init_i.value = 1
        for _ in range(3):
            await FallingEdge(dut.clk_i)
        dut.rst_ni.value = 1
        for index in range(BUCKETS):
            dut.init_index_i.value = index
            await FallingEdge(dut.clk_i)
        dut.init_i.value = 0
        while dut.busy_o.value == 1:
            await FallingEdge(dut.clk_i)

    async def step(self, **inputs: int) -> None:
        """One cycle of random traffic, with these inputs."""
        dut, rng = self.dut, self.rng
        done = rng.random() < self.rate
        beat = done or rng.random() < self.rate
        dut.beat_i.value = int(beat)
        dut.done_i.value = int(done)
        if done:
            latency, late = int(2 ** rng.uniform(0, 19)), rng.random() < 0.3
            dut.latency_i.value = latency
            dut.late_i.value = int(late)
            self.log.done.append(self.now)
            self.log.what.append((latency, late))
        if beat:
            self.log.beats.append(self.now)
        for name, value in inputs.items():
            getattr(dut, name).value = value
        await FallingEdge(dut.clk_i)
        for name in inputs:
            getattr(dut, name).value = 0
        self.now += 1

    async def word(self, index: int, histogram: int) -> int:
        await self.step(read_i=1, read_bucket_i=histogram, read_index_i=index)
        return int(self.dut.read_data_o.value)

    async def counters(self) -> dict:
        for _ in range(3 * 400):
            if self.dut.settled_o.value == 1:
                break
            await self.step()
        assert self.dut.settled_o.value == 1, "the counters do not settle"
        words = [await self.word(i, 0) for i in range(10)]
        double = [words[i] | words[i + 1] << 32 for i in range(0, 8, 2)]
        got = dict(zip(("transactions", "beats", "late", "sum"), double, strict=True))
        got |= {"min": words[8], "max": words[9]}
        return got | {"histogram": [await self.word(i, 1) for i in range(BUCKETS)]}


async def check(dut, seed: int, rate: float, count: int) -> None:
    """Snapshots with a clear, without one, clears alone, several during one sweep, at any distance from each other."""
    b = Bench(dut, seed)
    b.rate = rate
    await b.start()
    starts, seen = [0], 0  # the counters may have been cleared in one of these cycles
    for number in range(count):
        for _ in range(number % 97):
            await b.step()
        clears = kept = False
        at = b.now
        if b.rng.random() < 0.3:
            # A clear alone, with or without a separate sweep before the snapshot's.
            at_clear = b.now
            await b.step(clear_i=1)
            for _ in range(b.rng.choice((0, 0, 1, 7, 390))):
                await b.step()
            starts, at = list(range(at_clear, b.now + 400)), b.now
        clears = b.rng.random() < 0.5
        await b.step(snapshot_i=1, clear_i=int(clears))
        if b.rng.random() < 0.3:
            # The last snapshot counts: what came before it becomes one with it, or had a
            # separate sweep.
            kept = clears
            for _ in range(b.rng.choice((0, 1, 2, 300))):
                await b.step()
            clears = b.rng.random() < 0.5
            again = b.now
            await b.step(snapshot_i=1, clear_i=int(clears))
            if kept:
                starts = list(range(at, b.now + 800))
            at = again
        got = await b.counters()
        fits = {s: b.log.moments(s, got, max(s, at), b.now) for s in starts}
        fits = {s: ends for s, ends in fits.items() if ends}
        assert fits, f"snapshot {number} is not of one moment: {got}"
        assert sum(got["histogram"]) == got["transactions"]
        seen += got["transactions"]
        # The clear acts in the very cycle of the snapshot.
        starts = sorted({end for ends in fits.values() for end in ends}) if clears else list(fits)
    assert seen > 20 * count * rate, seen


@cocotb.test()
async def snapshots(dut):
    """Under full and half traffic."""
    await check(dut, seed=1, rate=1.0, count=60 if LONG else 20)
    dut.rst_ni.value = 0
    await check(dut, seed=2, rate=0.4, count=120 if LONG else 40)


@cocotb.test()
async def snapshots_sparse(dut):
    """A few transactions a sweep, down to none between two clears."""
    await check(dut, seed=3, rate=0.02, count=100)
