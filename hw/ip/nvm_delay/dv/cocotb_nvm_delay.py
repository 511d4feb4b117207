# SPDX-License-Identifier: Apache-2.0
"""cocotb tests of nvm_delay; the test plan is in docs/hardware/nvm_delay.md."""

from __future__ import annotations

import os
import random

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge, Timer
from extent import LONG
from nvm_delay_bench import (
    CALIBRATION,
    CAP0,
    CAP1,
    CLEAR,
    COMMAND,
    COMMIT,
    CONTROL,
    COUNTERS,
    FIXED,
    ID,
    INCR,
    OFF,
    READ_CAP,
    REGION,
    SLOTS,
    SNAPSHOT,
    STATUS,
    TIMING,
    VERSION,
    WRAP,
    WRITE_CAP,
    WRITE_SLOTS,
    Bench,
    Config,
    Region,
    Timing,
    chance,
    q12,
)


async def bench(dut, config: Config = OFF, seed: int = 1) -> Bench:
    b = Bench(dut, seed)
    await b.start()
    if config is not OFF:
        await b.configure(config)
    return b


@cocotb.test()
async def off_latency_and_throughput(dut):
    """Off: two cycles more than the memory, one beat a cycle each way at once."""
    b = await bench(dut)
    for _ in range(5):
        read, write = b.read(id=3), b.write(id=3)
        await b.run()
        assert read.latency == 4 + 2
        assert write.latency == 4 + 2
    for beats in (1, 2, 16, 256):
        count = 512 // beats
        start_r, start_w = len(b.reads), len(b.writes)
        for i in range(count):
            b.read(id=i % 5, addr=64 * i, beats=beats)
            b.write(id=i % 5, addr=64 * i, beats=beats)
        await b.run()
        for log in (b.reads[start_r:], b.writes[start_w:]):
            cycles = log[-1].taken[-1] - log[0].received
            assert cycles <= 512 + 8, (beats, cycles)


@cocotb.test()
async def pipelined_reads(dut):
    """8 pipelined reads at a delay of 200 finish within 220 cycles, each after 200 cycles; so do writes."""
    b = await bench(dut, Config(Timing.cycles(read=200, write=200)))
    for ids in (range(8), [0] * 8):
        start = len(b.reads)
        for i in ids:
            b.read(id=i)
            b.write(id=i)
        await b.run()
        for log in (b.reads[start:], b.writes[start:]):
            assert [x.latency for x in log] == [200] * 8
            assert log[-1].taken[-1] - log[0].received <= 220


async def random_mix(b: Bench, rng: random.Random, count: int) -> None:
    """Random parameters, then random traffic under random back-pressure, checked against the scoreboard."""

    def timing() -> Timing:
        scale = rng.choice((10, 50, 200, 1500))
        beat = rng.choice((0, 0.3, 1, 2.4, 7.5, 60))
        return Timing.cycles(scale * rng.random(), beat, scale * rng.random(), beat * rng.random())

    places = tuple(Region(16 * r, 16 * r + 15, timing()) for r in range(rng.randrange(5)))
    caps = [rng.choice((0, 0, 3.3, 12)) for _ in range(2)]
    calibration = Timing.cycles(*(rng.choice((0, 0, 0.5, 6.5, 200 * rng.random())) for _ in range(4)))
    await b.configure(Config(timing(), places, rng.random() < 0.9, *caps, calibration))
    slowest = rng.choice((3, 30, 200))
    b.shuffle = rng.random() < 0.7
    b.read_latency = b.write_latency = lambda burst: rng.randint(1, slowest)
    b.beat_gap = lambda: rng.choice((0, 0, 0, 1, 5))
    b.resp_of = lambda burst: (burst.number * 7 >> 2) & 3
    p = [rng.choice((0.2, 0.7, 1)) for _ in range(6)]
    b.s_rready, b.s_bready, b.m_arready, b.m_awready, b.m_wready, b.w_gap = (chance(rng, x) for x in p)
    ids = rng.choice((1, 3, 12, 256))
    top = b.beat_bytes.bit_length() - 1
    for _ in range(count):
        for ask in (b.read, b.write):
            burst = rng.choice((INCR, INCR, INCR, WRAP, FIXED))
            beats = rng.choice((1, 1, 1, 2, 3, 8, 33, 256 if rng.random() < 0.1 else 5))
            if burst == WRAP:
                beats = rng.choice((2, 4, 8, 16))
            elif burst == FIXED:
                beats = min(beats, 16)
            ask(
                id=rng.randrange(ids),
                addr=rng.randrange(0x48) << 12 | rng.randrange(0x1000),
                beats=beats,
                size=rng.choice((top, top, rng.randint(0, top))),
                burst=burst,
                extra=rng.getrandbits(16),
            )
    await b.run(300 * count)


@cocotb.test()
async def random_traffic(dut):
    """Random IDs, bursts, sizes, responses out of order and interleaved, errors, back-pressure."""
    b = await bench(dut)
    for seed in (1, 2, 3):
        await random_mix(b, random.Random(seed), 100)


@cocotb.test()
async def registers(dut):
    """Identification, capabilities, every shadow register with byte strobes, status."""
    b = await bench(dut)
    assert await b.peek(ID) == 0x4E56444C
    assert await b.peek(VERSION) == 0x0001_0001
    assert await b.peek(CAP0) == 4 << 28 | 20 << 20 | 12 << 16 | min(WRITE_SLOTS, 255) << 8 | SLOTS
    assert await b.peek(CAP1) == 64 << 24 | b.beat_bytes << 16 | 512
    masks = {CONTROL: 0xF1, READ_CAP: 0xFFFFFF, WRITE_CAP: 0xFFFFFF}
    masks |= {at + 4 * i: 0xFFFFFFFF for at in (CALIBRATION, TIMING) for i in range(4)}
    for r in range(4):
        masks |= {REGION + 0x20 * r + o: 0xFFFFFFFF for o in (0x0, 0x4, 0x10, 0x14, 0x18, 0x1C)}
    values = {addr: b.rng.getrandbits(32) for addr in masks}
    for addr, value in values.items():
        assert await b.peek(addr) == 0
        await b.poke(addr, value)
    for addr, value in values.items():
        assert await b.peek(addr) == value & masks[addr], hex(addr)
        await b.regs.write(addr + 1, b"\x5a")
        values[addr] = value & ~0xFF00 | 0x5A00
    assert await b.peek(STATUS) == 0
    await b.poke(COMMAND, COMMIT)
    assert await b.peek(COMMAND) == 0
    assert await b.peek(STATUS) & 0x1FF == (values[CONTROL] & 1) << 8 | 1
    for addr, value in values.items():
        assert await b.peek(addr) == value & masks[addr], hex(addr)
    for addr in range(COUNTERS, COUNTERS + 0x300, 4):
        await b.poke(addr, 0xFFFFFFFF)
        zero_at_reset = addr not in (COUNTERS + 0x20, COUNTERS + 0x60)
        assert await b.peek(addr) == (0 if zero_at_reset else 0xFFFFFFFF)


@cocotb.test()
async def beat_deadlines(dut):
    """Each beat of bursts of 1 to 256 leaves exactly at its deadline, and so does each B."""
    cases = [(40, 1), (40.5, 1.25), (76.25, 0), (60, 3.7), (200.125, 2.4), (30, 40.3), (30, 130.5), (12, 400), (0, 50)]
    b = await bench(dut)
    for base, beat in cases:
        await b.configure(Config(Timing.cycles(base, beat, base, beat)))
        for beats in (1, 2, 5) if beat > 10 else (1, 2, 3, 16, 256 if beat in (1, 2.4) else 40):
            read, write = b.read(id=1, beats=beats), b.write(id=1, beats=beats)
            await b.run()
            if beat >= 1 or beats == 1:
                assert read.offered == read.due, (base, beat, beats)
            if base + beat * beats > beats + 10:
                assert write.offered == write.due, (base, beat, beats)


@cocotb.test()
async def short_targets(dut):
    """The shortest possible targets are met to the cycle; shorter targets take the same time."""
    b = await bench(dut)
    b.read_latency = b.write_latency = lambda burst: 1
    for cycles in range(1, 13):
        await b.configure(Config(Timing.cycles(read=cycles, write=cycles)))
        read, write = b.read(), b.write()
        await b.run()
        assert read.latency == max(cycles, 7)
        assert write.latency == max(cycles, 7)


@cocotb.test()
async def regions(dut):
    """Regions, their bounds, their priority; a slow one does not delay others."""
    timings = [Timing.cycles(read=100 + 20 * i, write=110 + 20 * i) for i in range(5)]
    config = Config(
        timings[4],
        (
            Region(0x10, 0x1F, timings[0]),
            Region(0x18, 0x2F, timings[1]),
            Region(0x30, 0x30, timings[2]),
            Region(0x80000000, 0xFFFFFFFF, timings[3]),
        ),
    )
    b = await bench(dut, config)
    pages = {
        **{0x0F: 4, 0x10: 0, 0x1F: 0, 0x18: 0, 0x20: 1, 0x2F: 1, 0x30: 2, 0x31: 4},
        **{0x7FFFFFFF: 4, 0x80000000: 3, 0xFFFFFFFF: 3, 0x100000000: 4, 0x100000010: 4},
    }
    for page, which in pages.items():
        for offset in (0, 0xFC0):
            read, write = b.read(addr=page << 12 | offset), b.write(addr=page << 12 | offset)
            await b.run()
            assert (read.latency, write.latency) == (100 + 20 * which, 110 + 20 * which), hex(page)
    # Far slower transactions first, of other IDs: the fast ones still come at their deadlines.
    config = Config(Timing.cycles(read=50, write=50), (Region(0, 0xF, Timing.cycles(3000, 5, 3000, 5)),))
    await b.configure(config)
    slow = [b.read(id=i, addr=0, beats=8) for i in range(16)] + [b.write(id=i, addr=0, beats=2) for i in range(16)]
    fast = [f(id=16 + i, addr=0x10000, at=b.now + 250) for i in range(20) for f in (b.read, b.write)]
    await b.run()
    assert all(x.latency <= 54 for x in fast)
    assert all(x.offered[-1] <= x.due[-1] + 100 for x in slow)


@cocotb.test()
async def dither_mean(dut):
    """Means hit targets between two clock edges; every sample is within one clock."""
    b = await bench(dut)
    for read, write in ((76.25, 23.5), (100.1, 33.33), (61.9375, 40.001)):
        await b.configure(Config(Timing.cycles(read=read, write=write)))
        start_r, start_w = len(b.reads), len(b.writes)
        for i in range(200):
            b.read(id=0, at=b.now + 10 + 7 * i)
            b.write(id=0, at=b.now + 10 + 7 * i)
        await b.run()
        for log, target in ((b.reads[start_r:], read), (b.writes[start_w:], write)):
            assert all(abs(x.latency - target) < 1 for x in log)
            mean = sum(x.latency for x in log) / len(log)
            assert abs(mean - target) < min(0.001 * target, 0.02), (mean, target)


@cocotb.test()
async def calibration(dut):
    """It is subtracted from every time after its commit, whatever else is written; a smaller time becomes 0."""
    timing, region = Timing.cycles(100.25, 12.5, 90.5, 13), Timing.cycles(60, 30, 50, 20.25)
    places = (Region(0, 0, Timing.cycles(3, 40, 3, 40)), Region(1, 1, region))
    b = await bench(dut, Config(timing, places))

    async def accesses() -> None:
        for page in range(3):
            for beats in (1, 4):
                read, write = b.read(addr=page << 12, beats=beats), b.write(addr=page << 12, beats=beats)
                await b.run()
                assert (read.offered, write.offered) == (read.due, write.due)

    for cycles in ((6.5, 0, 0, 0), (0, 0.75, 4.25, 0), (40, 0, 40, 1.5), (1e6, 0, 8, 0), (0, 0, 0, 0)):
        config = Config(timing, places, calibration=Timing.cycles(*cycles))
        settings = b.settings(config)
        for first in range(0, len(settings), 3):
            for addr, value in settings[first:] + settings[:first]:
                await b.poke(addr, value)
            # Before the commit nothing has changed, including the times of the other bank.
            await accesses()
            await b.poke(COMMAND, COMMIT)
            b.config = config
            await accesses()
            # The copy after the commit has it, too.
            await b.poke(TIMING, q12(100.25))
            await b.poke(COMMAND, COMMIT)
            await accesses()
            assert await b.peek(TIMING) == q12(100.25)
    # A write during the copy of the previous one, and after a commit.
    for cycles in ((9, 1, 7, 0.5), (1.5, 0, 30, 2)):
        config = Config(timing, places, calibration=Timing.cycles(*cycles))
        await b.poke(COMMAND, COMMIT)
        for i, value in enumerate(cycles):
            await b.poke(CALIBRATION + 4 * i, q12(value))
        await accesses()
        await b.poke(COMMAND, COMMIT)
        b.config = config
        await accesses()


@cocotb.test()
async def late_responses(dut):
    """A late response leaves immediately, two cycles later than without the block, and is counted."""
    b = await bench(dut, Config(Timing.cycles(read=40, write=40)))
    rng = random.Random(3)
    latencies = [rng.choice((5, 20, 37, 38, 39, 60, 100)) for _ in range(60)]
    b.read_latency = b.write_latency = lambda burst: latencies[burst.number]
    for latency in latencies:
        read, write = b.read(), b.write()
        await b.run()
        # When memory takes the target's time but a cycle, the buffer costs that cycle once more.
        assert max(40, latency + 2) <= read.latency <= max(40, latency + 2) + (latency == 37)
        assert write.latency == max(40, latency + 2)
    counters = await b.counters()
    assert counters["read"]["late"] == sum(x.late for x in b.reads) > 10
    assert counters["write"]["late"] == sum(x.late for x in b.writes) > 10


@cocotb.test()
async def commit_under_traffic(dut):
    """A commit under traffic: each transaction has the old or the new parameters, never a mixture."""
    a = Config(Timing.cycles(read=100, read_beat=4, write=100, write_beat=4))
    c = Config(Timing.cycles(read=200, read_beat=2, write=210, write_beat=2))
    b = await bench(dut, a)
    b.check_deadlines = False
    for config in (c, a, OFF, c, OFF, a):
        old, b.config = b.config, config
        start_r, start_w = len(b.reads), len(b.writes)
        for i in range(100):
            b.read(id=i, beats=4, at=b.now + 10 + 9 * i)
            b.write(id=i, beats=4, at=b.now + 10 + 9 * i)
        await b.during(b.write_shadow(config))
        task = cocotb.start_soon(b.poke(COMMAND, COMMIT))
        await b.run()
        assert task.done()

        def seen(x, which, timing):
            if timing.enable is False:
                return x.latency < 60
            t = timing.timing
            base, beat = (t.read_base, t.read_beat) if which == "read" else (t.write_base, t.write_beat)
            return abs(x.latency - (base + 4 * beat) / 4096) <= 8

        for log, which in ((b.reads[start_r:], "read"), (b.writes[start_w:], "write")):
            kinds = [(seen(x, which, old), seen(x, which, config)) for x in log]
            first_new = next(i for i, k in enumerate(kinds) if k[1])
            assert 0 < first_new < 70
            assert all(k[0] for k in kinds[:first_new]), which
            settled = [k[1] for i, k in enumerate(kinds) if i >= first_new]
            assert len(settled) > 10
            assert all(settled), which
    assert await b.peek(STATUS) & 0xFF == 7


@cocotb.test()
async def commits_cover_earlier_writes(dut):
    """A write after a commit waits for the next commit: each parameter, however soon after it."""
    valid = Config(
        Timing.cycles(read=40, write=50, read_beat=1, write_beat=1),
        (Region(1, 1, Timing.cycles(read=80, write=90, read_beat=1, write_beat=1)),),
    )
    later = Config(
        Timing.cycles(read=140, write=150, read_beat=9, write_beat=9),
        (Region(2, 2, Timing.cycles(read=180, write=190, read_beat=9, write_beat=9)),),
        enable=False,
        read_cap=0.5,
        write_cap=0.5,
        calibration=Timing.cycles(12, 0.5, 9, 0.25),
    )
    b = await bench(dut)
    settings = b.settings(later)
    for first in range(len(settings)):
        for commits, gap in ((1, 0), (2, 0), (2, 5), (3, 0), (3, 11)):
            await b.configure(valid)
            for _ in range(commits):
                await b.poke(COMMAND, COMMIT)
                await ClockCycles(dut.clk_i, gap + 1)
            for addr, value in settings[first:] + settings[:first]:
                await b.poke(addr, value)
            # Its deadlines are those of `valid`.
            for page in range(3):
                b.read(addr=page << 12)
                b.write(addr=page << 12)
            await b.run()
    await b.poke(COMMAND, COMMIT)
    assert not await b.peek(STATUS) & 0x100


@cocotb.test()
async def bandwidth_caps(dut):
    """Bandwidth equals the cap to 0.5 %, in each direction, also for fractions of a byte and narrow beats."""
    b = await bench(dut)
    for read_cap, write_cap, size in ((1.5, 2.25, 4), (10, 3.3, 4), (15.9, 12.7, 4), (1, 1.7, 2)):
        await b.configure(Config(read_cap=read_cap, write_cap=write_cap))
        b.check_deadlines = False
        start = b.now
        marks: dict[str, list[int]] = {"r": [], "w": []}
        for i in range(60):
            b.read(id=i % 4, beats=16, size=size)
            b.write(id=i % 4, beats=16, size=size)
        seen_r, seen_w = len(b.r_log), b.mem_w_beats
        while not b.quiet and b.now < start + 9000:
            await b.step()
            if len(b.r_log) != seen_r:
                seen_r = len(b.r_log)
                marks["r"].append(b.now)
            if b.mem_w_beats != seen_w:
                seen_w = b.mem_w_beats
                marks["w"].append(b.now)
        for mark, cap in ((marks["r"], read_cap), (marks["w"], write_cap)):
            rate = (len(mark) - 21) * 2**size / (mark[-1] - mark[20])
            assert abs(rate / cap - 1) < 0.005, (rate, cap)
        await b.run(60000)


@cocotb.test()
async def flush(dut):
    """Write data that waits for the bandwidth cap passes at one beat a cycle once `flush_i` is 1."""
    for after in (0, 1, 7, 40):
        b = await bench(dut)
        await b.configure(Config(write_cap=0.1))
        b.check_deadlines = False
        for i in range(8):
            b.write(id=i, beats=16, size=4)
        await b.steps(30 + after)
        assert b.mem_w_beats < 8, "the cap holds"
        dut.flush_i.value = 1
        await b.steps(8 * 16 + 12)
        assert b.mem_w_beats == 8 * 16


@cocotb.test()
async def flush_responses(dut):
    """After a flush, writes that wait for their deadline, and later ones, are answered."""
    for delay in (20, 150, 40_000):
        b = await bench(dut, Config(Timing.cycles(write=delay)))
        b.check_deadlines = False
        for i in range(12):
            b.write(id=i % 5, beats=2, size=4)
        await b.steps(60)
        waiting = [burst for burst in b.writes if not burst.taken]
        assert len(b.writes) == 12
        assert len(waiting) == (0 if delay == 20 else 12)
        dut.flush_i.value = 1
        for i in range(12):
            b.write(id=i % 5, beats=2, size=4)
        await b.steps(60 + 2 * 2 * 64)
        assert len(b.writes) == 24
        assert all(burst.taken for burst in b.writes), delay


@cocotb.test()
async def counters(dut):
    """Counters and histogram equal the scoreboard's; snapshots are atomic and clears lose nothing under traffic."""
    b = await bench(dut, Config(Timing.cycles(read=50, read_beat=3, write=70, write_beat=0.7)))
    await b.poke(COMMAND, CLEAR)
    rng = random.Random(11)
    b.read_latency = b.write_latency = lambda burst: rng.choice((5, 5, 30, 90, 700))
    totals = {d: {"transactions": 0, "beats": 0, "late": 0, "sum": 0, "histogram": [0] * 64} for d in ("read", "write")}
    extremes = dict.fromkeys(totals, (2**32 - 1, 0))
    start_r, start_w, beats_r, beats_w = len(b.reads), len(b.writes), b.read_beats, b.write_beats
    for part in range(3):
        for _ in range(60):
            b.read(id=rng.randrange(9), beats=rng.choice((1, 1, 2, 5, 16)))
            b.write(id=rng.randrange(9), beats=rng.choice((1, 1, 2, 5, 16)))
        if part == 2:
            await b.run()
            await b.steps(4)
        for d, got in (await b.during(b.counters(SNAPSHOT | CLEAR, histogram=True))).items():
            for key in ("transactions", "beats", "late", "sum"):
                totals[d][key] += got[key]
            totals[d]["histogram"] = [x + y for x, y in zip(totals[d]["histogram"], got["histogram"], strict=True)]
            assert sum(got["histogram"]) == got["transactions"], "the snapshot is not of one moment"
            extremes[d] = min(extremes[d][0], got["min"]), max(extremes[d][1], got["max"])

    def bucket(latency: int) -> int:
        if latency < 4:
            return latency
        e = latency.bit_length() - 1
        return min(4 * (e - 1) + (latency >> (e - 2) & 3), 63)

    for d, log, beats in (
        ("read", b.reads[start_r:], b.read_beats - beats_r),
        ("write", b.writes[start_w:], b.write_beats - beats_w),
    ):
        histogram = [0] * 64
        for x in log:
            histogram[bucket(x.latency)] += 1
        want = {
            "transactions": len(log),
            "beats": beats,
            "late": sum(x.late for x in log),
            "sum": sum(x.latency for x in log),
            "histogram": histogram,
        }
        assert totals[d] == want
        assert extremes[d] == (min(x.latency for x in log), max(x.latency for x in log))
        assert want["late"] > 10
    # A snapshot without a clear leaves the live counters alone; a read without one does not change.
    first = await b.counters(SNAPSHOT)
    b.read()
    await b.run()
    assert await b.counters(0) == first
    again = await b.counters(SNAPSHOT)
    assert again["read"]["transactions"] == first["read"]["transactions"] + 1


@cocotb.test()
async def counters_of_one_moment(dut):
    """Under dense traffic, a snapshot counts the transactions ended by one cycle, the same for both directions."""
    b = await bench(dut, Config(Timing.cycles(read=20, write=30)))
    await b.poke(COMMAND, CLEAR)
    rng = random.Random(5)
    start_r, start_w, start = len(b.reads), len(b.writes), b.now
    for number in range(12 if LONG else 4):
        for _ in range(1200):
            b.read(id=rng.randrange(9), beats=rng.choice((1, 1, 2)))
            b.write(id=rng.randrange(9), beats=rng.choice((1, 1, 2)))
        await b.steps(number)
        clear = number % 3 == 2
        at = b.now
        got = await b.during(b.counters(SNAPSHOT | (CLEAR if clear else 0), histogram=True))
        await b.run()
        ends = []
        for d, log in (("read", b.reads[start_r:]), ("write", b.writes[start_w:])):
            done = sorted((x.taken[-1], x.latency, x.late) for x in log if x.taken[-1] > start)
            count = got[d]["transactions"]
            assert sum(got[d]["histogram"]) == count > 0
            assert got[d]["sum"] == sum(x[1] for x in done[:count]), (d, number)
            assert got[d]["late"] == sum(x[2] for x in done[:count])
            assert got[d]["min"] == min(x[1] for x in done[:count])
            assert got[d]["max"] == max(x[1] for x in done[:count])
            ends.append((done[count - 1][0], done[count][0] if count < len(done) else b.now))
        low, high = max(x[0] for x in ends), min(x[1] for x in ends)
        assert at < high, (number, ends, at)
        assert low < high, (number, ends, at)
        if clear:
            start = low


@cocotb.test()
async def many_outstanding(dut):
    """One read and one write per slot wait in parallel, no more; then all leave, with responses in any order."""
    wait = max(SLOTS, WRITE_SLOTS) + 122
    b = await bench(dut, Config(Timing.cycles(read=wait + 50, write=wait + 150)))
    reads = [b.read(id=i % 16) for i in range(SLOTS + 6)]
    writes = [b.write(id=i % 16) for i in range(WRITE_SLOTS + 6)]
    await b.steps(wait)
    assert sum(x.received is not None for x in reads) == SLOTS
    assert sum(x.received is not None for x in writes) == WRITE_SLOTS
    assert await b.during(b.peek(STATUS)) >> 16 == min(WRITE_SLOTS, 255) << 8 | SLOTS
    await b.run()
    assert all(x.latency <= wait + 52 for x in reads[:SLOTS])
    assert all(x.latency <= wait + 152 for x in writes[:WRITE_SLOTS])
    # More bursts than the buffer holds, of one ID and of many, answered in random order and
    # interleaved.
    b.shuffle = True
    b.read_latency = lambda burst: b.rng.randint(1, 400)
    for ids in (1, 64):
        for beats in (8, 17, 256):
            for i in range(1200 // beats):
                b.read(id=i % ids, beats=beats)
            await b.run()


@cocotb.test()
async def write_data_first(dut):
    """W may arrive before its AW, or long after it."""
    b = await bench(dut, Config(Timing.cycles(write=60, write_beat=1)))
    for lead in (0, 5, 30, 100):
        burst = b.write(beats=4, at=b.now + 10 + lead)
        await b.run()
        assert burst.offered == burst.due
    for lag in (5, 40, 100):
        burst = b.write(beats=4, at=b.now)
        b.w_at = b.now + lag
        await b.run()
        assert burst.offered[0] == max(burst.due[0], b.w_at + 3 + 4 + 1)


@cocotb.test()
async def busy(dut):
    """busy_o is 1 from the first valid to the last count, and while a bandwidth bucket is not full."""
    b = await bench(dut, Config(Timing.cycles(read=100, write=100)))
    for kind in (b.read, b.write):
        await b.steps(40)  # the last register access has come to rest
        assert dut.busy_o.value == 0
        burst = kind()
        while burst.received is None:
            await b.step()
        while not b.quiet:
            await b.step()
            assert dut.busy_o.value == 1
        await b.steps(4)
        assert dut.busy_o.value == 0
    await b.configure(Config(read_cap=1 / 16))
    b.read()
    await b.run()
    await b.steps(200)
    assert dut.busy_o.value == 1
    await b.steps(100)
    assert dut.busy_o.value == 0


@cocotb.test()
async def gated_clock(dut):
    """With its clock stopped whenever allowed: every deadline is met, the cap holds, and nothing is lost."""
    b = await bench(dut, Config(Timing.cycles(60.5, 2, 150.25, 1), read_cap=4, write_cap=4))
    await b.steps(50)
    b.gate(True)
    rng = random.Random(2)
    for i in range(60):
        burst = (b.read, b.write)[i % 2](id=rng.randrange(4), at=b.now + rng.randrange(1, 60), size=4)
        await b.run()
        assert burst.offered == burst.due
        await b.steps(rng.randrange(40))
    assert b.skipped > 300
    start = b.now
    for _ in range(20):
        b.read(beats=8)
    await b.run()
    assert abs((b.now - start) - 20 * 8 * 16 / 4) < 80
    await b.steps(50)
    b.gate(False)
    got = await b.counters()
    assert got["read"]["transactions"] == len(b.reads)
    assert got["write"]["sum"] == sum(x.latency for x in b.writes)


@cocotb.test(skip="SLOW" not in os.environ)
async def long_delays(dut):
    """1 ms and the longest possible delay, to the cycle; longer ones saturate."""
    b = await bench(dut)
    most = 2**20 - 1
    for base, beat, cycles in ((250_000.5, 0, 250_000), (2**20 - 1, 0, most), (2**20 - 2, 2**20 - 1, most)):
        await b.configure(Config(Timing.cycles(base, beat, base, beat)))
        read, write = b.read(beats=2), b.write(beats=2)
        await b.steps(50)
        skipped = cycles - 500
        await Timer(4 * skipped - 3, "ns")  # ClockCycles would look at each of them
        await RisingEdge(dut.clk_i)
        b.now += skipped
        await b.run()
        assert read.offered == [read.due[0], max(read.due[1], read.due[0] + 1)]
        assert write.offered == write.due
        assert cycles <= read.offered[0] - read.received <= cycles + 1
        assert cycles <= write.offered[0] - write.received <= cycles + 1


@cocotb.test(skip="SLOW" not in os.environ)
async def random_traffic_long(dut):
    """Random traffic at many operating points."""
    b = await bench(dut)
    for seed in range(10, 16 if LONG else 12):
        await random_mix(b, random.Random(seed), 400)
