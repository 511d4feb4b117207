# SPDX-License-Identifier: Apache-2.0
"""ns_axil_demux: every range, byte strobes, DECERR outside, back-pressure on all channels, writes in a row."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, Combine, with_timeout
from cocotb.utils import get_sim_time
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiLiteRam, AxiResp

RANGES = [(0x000000, 0x10000), (0x100000, 0x10000), (0x110000, 0x1000)]
HOLES = [0x010000, 0x0FFFFC, 0x111000, 0x11FFFC, 0x200000, 0xFFFFFC]


async def start(dut):
    """Clock and reset; returns the master and the memories of the ranges."""
    reset = {"reset": dut.rst_ni, "reset_active_level": False}
    master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk_i, **reset)
    rams = [
        AxiLiteRam(AxiLiteBus.from_prefix(dut, f"m{i}_axil"), dut.clk_i, size=size, **reset)
        for i, (_, size) in enumerate(RANGES)
    ]
    cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())
    dut.rst_ni.value = 0
    await ClockCycles(dut.clk_i, 4)
    dut.rst_ni.value = 1
    await ClockCycles(dut.clk_i, 2)
    return master, rams


@cocotb.test()
@cocotb.parametrize(probability=[0.0, 0.5, 0.8])
async def random_traffic(dut, probability):
    rng = random.Random(cocotb.RANDOM_SEED)
    master, rams = await start(dut)

    def stalls(seed):
        stall = random.Random(seed)
        while True:
            yield stall.random() < probability

    for port in [master, *rams]:
        write, read = port.write_if, port.read_if
        for channel in (write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel):
            channel.set_pause_generator(stalls(rng.random()))

    models = [bytearray(size) for _, size in RANGES]

    def start_write():
        """Starts a write at a random address; returns its event and the expected response."""
        if rng.random() < 0.2:
            return master.init_write(rng.choice(HOLES), b"lost"), AxiResp.DECERR
        index = rng.randrange(3)
        base, size = RANGES[index]
        length = rng.randint(1, 40)
        offset = rng.choice([0, size - length, rng.randrange(size - length)])
        data = rng.randbytes(length)
        models[index][offset : offset + length] = data
        return master.init_write(base + offset, data), AxiResp.OKAY

    async def writes():
        for _ in range(40):
            # None waits for the response to the one before it.
            for done, wanted in [start_write() for _ in range(rng.randint(1, 8))]:
                await done.wait()
                assert done.data.resp == wanted

    async def reads():
        for _ in range(150):
            done = await master.read(rng.choice(HOLES), 4)
            assert done.resp == AxiResp.DECERR
            assert bytes(done.data) == bytes(4)

    await with_timeout(Combine(cocotb.start_soon(writes()), cocotb.start_soon(reads())), 200_000, "ns")
    for index, (base, size) in enumerate(RANGES):
        assert bytes(rams[index].read(0, size)) == models[index]
        for _ in range(40):
            offset = rng.randrange(size // 4) * 4
            done = await with_timeout(master.read(base + offset, 4), 4_000, "ns")
            assert done.resp == AxiResp.OKAY
            assert bytes(done.data) == models[index][offset : offset + 4]
    await ClockCycles(dut.clk_i, 4)
    assert dut.busy_o.value == 0


@cocotb.test()
async def rate(dut):
    """A slave that is always ready gets a write every two cycles."""
    master, _ = await start(dut)
    words = 200
    begin = get_sim_time("ns")
    await with_timeout(master.write(RANGES[0][0], bytes(4 * words)), 20_000, "ns")
    cycles = (get_sim_time("ns") - begin) / 4
    assert cycles <= 2 * words + 20, f"{cycles} cycles for {words} writes"
