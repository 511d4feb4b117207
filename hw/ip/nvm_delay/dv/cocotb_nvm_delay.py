"""cocotb tests of nvm_delay; the plan in README.md says which shows what."""

from __future__ import annotations

import random

import cocotb
from nvm_delay_bench import (
    OFF,
    SLOTS,
    Bench,
    Config,
    Region,
    Timing,
    chance,
)


async def bench(dut, config: Config = OFF, seed: int = 1) -> Bench:
    b = Bench(dut, seed)
    await b.start()
    if config is not OFF:
        await b.configure(config)
    return b


@cocotb.test()
async def off_latency_and_throughput(dut):
    """Off: two cycles more than the memory's own, one beat a cycle each way at once."""
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


@cocotb.test()
async def random_traffic(dut):
    """Everything at random, checked against the scoreboard."""
    config = Config(
        Timing.cycles(read=60.3, read_beat=1.7, write=90.1, write_beat=2.3),
        regions=(
            Region(0x10, 0x1F, Timing.cycles(read=300, read_beat=7.5, write=500)),
            Region(0x20, 0x2F, Timing.cycles(read=10, read_beat=0.5, write=12, write_beat=0.25)),
        ),
    )
    b = await bench(dut, config)
    rng = random.Random(7)
    b.shuffle = True
    b.read_latency = lambda burst: rng.randint(2, 80)
    b.write_latency = lambda burst: rng.randint(2, 80)
    b.beat_gap = lambda: rng.choice((0, 0, 0, 1, 5))
    b.s_rready, b.s_bready = chance(rng, 0.7), chance(rng, 0.7)
    b.m_arready, b.m_awready, b.m_wready = chance(rng, 0.5), chance(rng, 0.5), chance(rng, 0.8)
    for _ in range(400):
        beats = rng.choice((1, 1, 1, 2, 4, 8, 16, 33, 256 if rng.random() < 0.1 else 3))
        b.read(id=rng.randrange(12), addr=rng.randrange(0x40) << 12, beats=beats)
        b.write(id=rng.randrange(12), addr=rng.randrange(0x40) << 12, beats=rng.choice((1, 1, 2, 8)))
    await b.run(60000)
