# SPDX-License-Identifier: Apache-2.0
"""ns_dma with a memory that responds in any order: any alignment, any length, errors, and rate."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from interleaving_ram import InterleavingRam

SIZE = 1 << 18


class Bench:
    def __init__(self, dut, **ram):
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.ram = InterleavingRam(dut, "m_axi", SIZE, self.random.random(), **ram)
        self.ram.data[:] = self.random.randbytes(SIZE)
        cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())

    async def start(self):
        self.dut.cmd_valid_i.value = 0
        self.dut.done_ready_i.value = 0
        self.dut.rst_ni.value = 0
        await ClockCycles(self.dut.clk_i, 4)
        self.dut.rst_ni.value = 1
        cocotb.start_soon(self.ram.run())

    async def copy(self, commands, patience=1.0):
        """Runs commands and returns their results; `done` is accepted with the probability `patience`."""
        pending, done, since = list(commands), [], 0
        shown = None
        while len(done) < len(commands):
            await RisingEdge(self.dut.clk_i)
            since += 1
            assert since < 20_000, f"nothing for so long; {len(done)} of {len(commands)} done"
            if shown and int(self.dut.cmd_ready_o.value):
                shown, since = None, 0
            if int(self.dut.done_ready_i.value) and int(self.dut.done_valid_o.value):
                done.append(int(self.dut.done_o.value))
                since = 0
            self.dut.done_ready_i.value = self.random.random() < patience
            if shown is None and pending:
                shown = pending.pop(0)
                self.dut.src_i.value, self.dut.dst_i.value, self.dut.bytes_i.value = shown
            self.dut.cmd_valid_i.value = shown is not None
        self.dut.done_ready_i.value = 0
        await ClockCycles(self.dut.clk_i, 3)
        assert int(self.dut.busy_o.value) == 0
        return done


def disjoint_copies(rng, count, longest):
    """Commands whose sources lie in the lower half, whose targets lie in the upper, none overlapping another target."""
    commands, at = [], SIZE // 2 + rng.randrange(64)
    for _ in range(count):
        length = rng.choice([1, 2, 63, 64, 65, rng.randint(1, 130), rng.randint(1, longest)])
        if at + length > SIZE:
            break
        commands.append((rng.randrange(SIZE // 2 - length), at, length))
        at += length + rng.choice([0, 0, 1, rng.randrange(200)])
    return commands


def pages_of(at, length):
    return set(range(at >> 12, (at + length - 1 >> 12) + 1))


def expect(before, commands):
    after = bytearray(before)
    for src, dst, length in commands:
        after[dst : dst + length] = before[src : src + length]
    return after


@cocotb.test()
async def every_alignment(dut):
    """Each pair of offsets in a beat, with lengths around those that add a beat."""
    bench = Bench(dut, stall=0.05, latency=4)
    await bench.start()
    for src in range(0, 64, 3):
        commands, at = [], SIZE // 2
        for dst in range(64):
            length = bench.random.choice([1, 64 - src, 64 - dst, 65, 127, 128, bench.random.randint(1, 300)])
            commands.append((bench.random.randrange(64) * 64 + src, at + dst, max(1, length)))
            at += 512
        before = bytes(bench.ram.data)
        assert await bench.copy(commands) == [0] * len(commands)
        assert bench.ram.data == expect(before, commands), f"source at {src}"


@cocotb.test()
async def random_commands(dut):
    bench = Bench(dut, stall=0.3, latency=60)
    await bench.start()
    for _ in range(4):
        commands = disjoint_copies(bench.random, 60, 6000)
        before = bytes(bench.ram.data)
        assert await bench.copy(commands, patience=bench.random.choice([0.1, 1])) == [0] * len(commands)
        assert bench.ram.data == expect(before, commands)
    assert bench.ram.interleaved > 100, "the memory has hardly interleaved anything"


@cocotb.test()
async def errors(dut):
    """Data that cannot be read is not written, and the command reports it; other commands are unaffected."""
    bench = Bench(dut, stall=0.2, latency=30)
    await bench.start()
    pages = SIZE // 2 >> 12
    for _ in range(4):
        lower, upper = bench.random.sample(range(pages), 3), bench.random.sample(range(pages, 2 * pages), 3)
        bench.ram.errors = {*lower, *upper}
        commands = disjoint_copies(bench.random, 60, 9000)
        before = bytes(bench.ram.data)
        done = await bench.copy(commands)
        after = bytearray(before)
        for (src, dst, length), status in zip(commands, done, strict=True):
            assert status == bool(pages_of(src, length) & {*lower}) + 2 * bool(pages_of(dst, length) & {*upper})
            for i in range(length):
                if dst + i >> 12 in upper:
                    continue
                # A beat with any unreadable byte is skipped completely.
                beat = range(max(dst, (dst + i) // 64 * 64), min(dst + length, (dst + i) // 64 * 64 + 64))
                sources = {src - dst + at >> 12 for at in (beat[0], beat[-1])}
                if not sources & {*lower}:
                    after[dst + i] = before[src + i]
        assert bench.ram.data == after
    bench.ram.errors = set()


@cocotb.test()
async def rate(dut):
    """A long copy moves a beat a cycle in both directions with a memory latency of 60 cycles."""
    bench = Bench(dut, stall=0.0, latency=60, interleave=False)
    await bench.start()
    commands = [(i * 4096, SIZE // 2 + i * 4096, 4096) for i in range(30)]
    before = bytes(bench.ram.data)
    start = bench.ram.now
    assert await bench.copy(commands) == [0] * len(commands)
    cycles, beats = bench.ram.now - start, 30 * 64
    dut._log.info(f"{beats} beats in {cycles} cycles")
    assert bench.ram.data == expect(before, commands)
    assert cycles < beats * 1.05 + 200
