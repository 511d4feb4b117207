# SPDX-License-Identifier: Apache-2.0
"""Random traffic through ns_axi_mux or ns_axi_xbar: data, interleaving, order, DECERR, back-pressure, no hang."""

import logging
import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, Combine, with_timeout
from cocotbext.axi import AxiBus, AxiMaster, AxiRam, AxiResp

MASTERS = int(os.environ["MASTERS"])
SLAVES = int(os.environ["SLAVES"])
GRANULE = int(os.environ["GRANULE"])
BYTES = int(os.environ["BYTES"])
MUX = os.environ["MUX"] == "1"
PERIOD = 4


class Bench:
    """Masters, memories at the slave ports, and back-pressure on every channel."""

    def __init__(self, dut):
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED)
        kwargs = {"reset": dut.rst_ni, "reset_active_level": False}
        self.masters = [AxiMaster(AxiBus.from_prefix(dut, f"s{i}_axi"), dut.clk_i, **kwargs) for i in range(MASTERS)]
        self.rams = [
            AxiRam(AxiBus.from_prefix(dut, f"m{i}_axi"), dut.clk_i, size=BYTES // SLAVES, **kwargs)
            for i in range(SLAVES)
        ]
        for name in (m for m in logging.root.manager.loggerDict if m.startswith("cocotb.axi_tb")):
            logging.getLogger(name).setLevel(logging.WARNING)
        cocotb.start_soon(Clock(dut.clk_i, PERIOD, unit="ns").start())

    async def reset(self):
        self.dut.rst_ni.value = 0
        await ClockCycles(self.dut.clk_i, 4)
        self.dut.rst_ni.value = 1
        await ClockCycles(self.dut.clk_i, 2)

    def pause(self, probability):
        """Every channel of every port stalls in each cycle with this probability."""

        def stalls(rng):
            while True:
                yield rng.random() < probability

        for port in [*self.masters, *self.rams]:
            write, read = port.write_if, port.read_if
            for channel in (write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel):
                channel.set_pause_generator(stalls(random.Random(self.random.random())))

    def peek(self, addr, length):
        """Content of the memories at a range of the interleaved address space."""
        out = bytearray()
        for a in range(addr, addr + length):
            granule, offset = divmod(a, GRANULE)
            out += self.rams[granule % SLAVES].read(granule // SLAVES * GRANULE + offset, 1)
        return bytes(out)


async def bounded(dut, task, cycles):
    """Fails on a hang."""
    await with_timeout(task, cycles * PERIOD, "ns")


async def traffic(bench, index, operations):
    """One master: random reads and writes within its share of the space, several at a time, against a model.

    A unit of 512 bytes is used by one operation at a time, but operations with one ID meet all slaves.
    """
    rng, master = bench.random, bench.masters[index]
    share = BYTES // MASTERS
    base, units = index * share, share // 512
    model = bytearray(rng.randbytes(share))
    for granule in range(base // GRANULE, (base + share) // GRANULE):
        at = granule * GRANULE
        bench.rams[granule % SLAVES].write(granule // SLAVES * GRANULE, model[at - base : at - base + GRANULE])
    busy = set()

    async def operation(unit, span):
        start = unit * 512 + rng.randrange(512)
        length = rng.randint(1, (unit + span) * 512 - start)
        size = rng.choice([6, 6, 6, rng.randint(0, 6)])
        tag = rng.choice([0, 1, rng.randrange(1 << 8 >> 2)])
        if rng.random() < 0.5:
            data = rng.randbytes(length)
            done = await master.write(base + start, data, awid=tag, size=size)
            assert done.resp == AxiResp.OKAY
            model[start : start + length] = data
        else:
            done = await master.read(base + start, length, arid=tag, size=size)
            assert done.resp == AxiResp.OKAY
            assert bytes(done.data) == model[start : start + length], f"master {index} read {base + start:#x}"
        busy.difference_update(range(unit, unit + span))

    tasks = []
    while operations:
        span = rng.choice([1, 1, 1, 2, 8, 16])
        unit = rng.randrange(units - span + 1)
        if len(busy) > units // 2 or not busy.isdisjoint(range(unit, unit + span)):
            await ClockCycles(bench.dut.clk_i, 8)
            continue
        busy.update(range(unit, unit + span))
        tasks.append(cocotb.start_soon(operation(unit, span)))
        operations -= 1
    await Combine(*tasks)
    assert bench.peek(base, share) == model


async def run_random_traffic(dut, probability, operations, cycles):
    bench = Bench(dut)
    await bench.reset()
    bench.pause(probability)
    tasks = [cocotb.start_soon(traffic(bench, i, operations)) for i in range(MASTERS)]
    await bounded(dut, Combine(*tasks), cycles)


@cocotb.test()
async def random_traffic_at_full_speed(dut):
    await run_random_traffic(dut, 0.0, 60, 20_000)


@cocotb.test()
async def random_traffic_with_back_pressure(dut):
    await run_random_traffic(dut, 0.5, 60, 60_000)


@cocotb.test()
async def random_traffic_slow(dut):
    await run_random_traffic(dut, 0.9, 12, 120_000)


@cocotb.test()
async def order_of_an_id_is_kept(dut):
    """Reads and writes with one ID that alternate between a slow and fast slaves complete in order."""
    bench = Bench(dut)
    await bench.reset()
    rng = random.Random(1)
    slow = (bench.rams[0].read_if.r_channel, bench.rams[0].write_if.b_channel, bench.rams[0].write_if.aw_channel)
    for channel in slow:
        channel.set_pause_generator(rng.random() < 0.95 for _ in iter(int, 1))
    master = bench.masters[0]
    order = []

    async def write(i):
        await master.write(i * GRANULE % BYTES, bytes([i]) * 64, awid=3)
        order.append(("w", i))

    async def read(i):
        done = await master.read(i * GRANULE % BYTES, 64, arid=3)
        assert bytes(done.data) == bytes([i]) * 64
        order.append(("r", i))

    count = min(12, BYTES // GRANULE)
    await bounded(dut, Combine(*[cocotb.start_soon(write(i)) for i in range(count)]), 20_000)
    await bounded(dut, Combine(*[cocotb.start_soon(read(i)) for i in range(count)]), 20_000)
    assert order == [(kind, i) for kind in "wr" for i in range(count)]


@cocotb.test(skip=MUX)
async def decerr_out_of_range(dut):
    """Addresses from BYTES on: DECERR for every burst length, during valid traffic, and nothing reaches a slave."""
    bench = Bench(dut)
    await bench.reset()
    bench.pause(0.3)
    before = [ram.read(0, BYTES // SLAVES) for ram in bench.rams]

    async def bad(index):
        rng = random.Random(index)
        for _ in range(8):
            addr = rng.choice([BYTES, BYTES + 4096 * rng.randrange(100), 1 << 40, (1 << 64) - 4096])
            length = rng.choice([1, 64, 1000, 4096])
            tag = rng.randrange(4)
            done = await bench.masters[index].write(addr, bytes(length), awid=tag)
            assert done.resp == AxiResp.DECERR
            done = await bench.masters[index].read(addr, length, arid=tag)
            assert done.resp == AxiResp.DECERR
            assert bytes(done.data) == bytes(length)
            at = rng.randrange(BYTES - 256)
            done = await bench.masters[index].read(at, 200, arid=tag)
            assert done.resp == AxiResp.OKAY

    await bounded(dut, Combine(*[cocotb.start_soon(bad(i)) for i in range(MASTERS)]), 60_000)
    assert [ram.read(0, BYTES // SLAVES) for ram in bench.rams] == before


@cocotb.test(skip=MASTERS < 2 or SLAVES < 2)
async def deadlock_free_with_crossed_writes(dut):
    """Two masters write to two slaves in opposite order while one write address channel lags: the classic deadlock."""
    bench = Bench(dut)
    await bench.reset()
    rng = random.Random(2)
    for ram in bench.rams:
        ram.write_if.aw_channel.set_pause_generator(rng.random() < 0.7 for _ in iter(int, 1))

    async def write(index, channel, i):
        addr = (2 * index * SLAVES + channel) * GRANULE
        await bench.masters[index].write(addr, bytes([index * 16 + i]) * 1024, awid=i)

    tasks = []
    for i in range(16):
        tasks.append(cocotb.start_soon(write(0, i % 2, i)))
        tasks.append(cocotb.start_soon(write(1, 1 - i % 2, i)))
    await bounded(dut, Combine(*tasks), 20_000)
