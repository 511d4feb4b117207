# SPDX-License-Identifier: Apache-2.0
"""Eight masters over interconnects in stages, and memories that answer in any order and interleave reads."""

import logging
import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, Combine, RisingEdge, with_timeout
from cocotbext.axi import AxiBus, AxiMaster, AxiResp
from interleaving_ram import InterleavingRam

KIND = int(os.environ["KIND"])
MASTERS = 8
MEMORIES = 2 if KIND == 2 else 1
GRANULE = 4096
SHARE = 4 * GRANULE  # of a master
SIZE = MASTERS * SHARE
MEM_BITS = 2
PERIOD = 4


class Bench:
    def __init__(self, dut, stall):
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.masters = [
            AxiMaster(AxiBus.from_prefix(dut, f"s{i}_axi"), dut.clk_i, reset=dut.rst_ni, reset_active_level=False)
            for i in range(MASTERS)
        ]
        self.rams = [
            InterleavingRam(dut, f"m{i}_axi", SIZE // MEMORIES, self.random.random(), stall=stall, latency=30)
            for i in range(MEMORIES)
        ]
        for name in (m for m in logging.root.manager.loggerDict if m.startswith("cocotb.fabric_tb")):
            logging.getLogger(name).setLevel(logging.WARNING)
        for port in self.masters:
            write, read = port.write_if, port.read_if
            for channel in (write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel):
                channel.set_pause_generator(self.stalls(stall))
        cocotb.start_soon(Clock(dut.clk_i, PERIOD, unit="ns").start())

    def stalls(self, probability):
        rng = random.Random(self.random.random())
        while True:
            yield rng.random() < probability

    async def start(self):
        self.dut.rst_ni.value = 0
        await ClockCycles(self.dut.clk_i, 4)
        self.dut.rst_ni.value = 1
        for ram in self.rams:
            cocotb.start_soon(ram.run())
        await ClockCycles(self.dut.clk_i, 2)

    def at(self, addr):
        """Memory and local address of an address."""
        granule, offset = divmod(addr, GRANULE)
        return self.rams[granule % MEMORIES].data, granule // MEMORIES * GRANULE + offset

    def poke(self, addr, data):
        for i in range(0, len(data), GRANULE):
            memory, place = self.at(addr + i)
            memory[place : place + GRANULE] = data[i : i + GRANULE]

    def peek(self, addr, length):
        out = b""
        for i in range(0, length, GRANULE):
            memory, place = self.at(addr + i)
            out += memory[place : place + GRANULE]
        return out


async def traffic(bench, index, operations):
    """One master: bursts in its share, several at a time; a unit of 512 bytes is used by one at a time."""
    rng, master = random.Random(bench.random.random()), bench.masters[index]
    base, units = index * SHARE, SHARE // 512
    model = bytearray(rng.randbytes(SHARE))
    bench.poke(base, model)
    busy = set()

    async def operation(unit, span):
        start, length = unit * 512, rng.randint(1, span * 512)
        tag = rng.choice([0, 1, rng.randrange(8)])
        if rng.random() < 0.5:
            data = rng.randbytes(length)
            done = await master.write(base + start, data, awid=tag)
            model[start : start + length] = data
        else:
            done = await master.read(base + start, length, arid=tag)
            assert bytes(done.data) == model[start : start + length], f"master {index} read {base + start:#x}"
        assert done.resp == AxiResp.OKAY
        busy.difference_update(range(unit, unit + span))

    tasks = []
    while operations:
        span = rng.choice([1, 1, 2, 9])
        unit = rng.randrange(units - span + 1)
        if len(busy) > units // 2 or not busy.isdisjoint(range(unit, unit + span)):
            await ClockCycles(bench.dut.clk_i, 8)
            continue
        busy.update(range(unit, unit + span))
        tasks.append(cocotb.start_soon(operation(unit, span)))
        operations -= 1
    await Combine(*tasks)
    assert bench.peek(base, SHARE) == model


async def random_traffic(dut, stall, operations):
    bench = Bench(dut, stall)
    await bench.start()
    tasks = [cocotb.start_soon(traffic(bench, i, operations)) for i in range(MASTERS)]
    await with_timeout(Combine(*tasks), 60_000 * PERIOD, "ns")
    for ram in bench.rams:
        assert ram.interleaved > 10, "no read was interleaved"
        assert not any(ident >> MEM_BITS for ident in [*ram.reads, *ram.answers]), "an ID of too many bits"
        assert len(ram.reads) == 1 << MEM_BITS


@cocotb.test()
async def full_speed(dut):
    await random_traffic(dut, 0.0, 12)


@cocotb.test()
async def back_pressure(dut):
    await random_traffic(dut, 0.5, 12)


@cocotb.test()
async def many_ids(dut):
    """More IDs in flight than the memory has: all are answered, those of one ID in order."""
    bench = Bench(dut, 0.2)
    await bench.start()
    order = {}

    async def read(index, tag, i):
        addr = index * SHARE + i % 4 * GRANULE + tag * 64
        done = await bench.masters[index].read(addr, 64, arid=tag)
        assert bytes(done.data) == bench.peek(addr - addr % GRANULE, GRANULE)[tag * 64 : tag * 64 + 64]
        order.setdefault((index, tag), []).append(i)

    for index in range(MASTERS):
        bench.poke(index * SHARE, bench.random.randbytes(SHARE))
    tasks = [
        cocotb.start_soon(read(index, tag, i)) for i in range(4) for tag in range(0, 8, 2) for index in range(MASTERS)
    ]
    await with_timeout(Combine(*tasks), 20_000 * PERIOD, "ns")
    assert len(order) == 4 * MASTERS
    assert all(done == list(range(4)) for done in order.values())


@cocotb.test(skip=KIND != 2)
async def crossed_bursts(dut):
    """Two masters, each within a burst of one memory; both memories continue with the other one's burst."""
    bench = Bench(dut, 0.0)
    orders = [[(2, 0), (0, 0), (0, 1), (2, 1)], [(0, 0), (2, 0), (2, 1), (0, 1)]]  # of a memory: master, last
    ids = [{}, {}]

    def signal(memory, name):
        return getattr(dut, f"m{memory}_axi_{name}")

    async def memory(i):
        signal(i, "arready").value = 1
        while not all(len(known) == 2 for known in ids):
            await RisingEdge(dut.clk_i)
            if int(signal(i, "arvalid").value):
                ids[i][0 if int(signal(i, "araddr").value) < SHARE else 2] = int(signal(i, "arid").value)
        for master, last in orders[i]:
            signal(i, "rid").value, signal(i, "rlast").value = ids[i][master], last
            signal(i, "rresp").value = signal(i, "rdata").value = 0
            signal(i, "rvalid").value = 1
            await RisingEdge(dut.clk_i)
            while not int(signal(i, "rready").value):
                await RisingEdge(dut.clk_i)
        signal(i, "rvalid").value = 0

    dut.rst_ni.value = 0
    for i in range(2):
        signal(i, "rvalid").value = signal(i, "bvalid").value = 0
        signal(i, "arready").value = signal(i, "awready").value = signal(i, "wready").value = 0
    await ClockCycles(dut.clk_i, 4)
    dut.rst_ni.value = 1
    await ClockCycles(dut.clk_i, 2)
    tasks = [cocotb.start_soon(memory(i)) for i in range(2)]
    for index in (0, 2):
        for i in range(2):
            # Two beats of a granule of each memory.
            read = bench.masters[index].read(index * SHARE + i * GRANULE, 128, arid=i)
            tasks.append(cocotb.start_soon(read))
    await with_timeout(Combine(*tasks), 1000 * PERIOD, "ns")
