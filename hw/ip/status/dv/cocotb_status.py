# SPDX-License-Identifier: Apache-2.0
"""status: the table of docs/hardware/status.md, read and written under random back-pressure."""

import json
import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

TABLE = json.loads(os.environ["STATUS_TABLE"])  # from test_status.py
HEADER, BLOCKS = TABLE["header"], TABLE["blocks"]


async def start(dut):
    cocotb.start_soon(Clock(dut.clk_i, 4, "ns").start())
    master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk_i, dut.rst_ni, reset_active_level=False)
    for channel in (master.write_if.b_channel, master.read_if.r_channel):
        channel.set_pause_generator(iter(lambda: random.random() < 0.4, None))
    dut.rst_ni.value = 0
    await ClockCycles(dut.clk_i, 3)
    dut.rst_ni.value = 1
    await RisingEdge(dut.clk_i)
    return master


async def word(master, offset):
    read = await with_timeout(master.read(offset, 4), 2, "us")
    assert read.resp == AxiResp.OKAY
    return int.from_bytes(read.data, "little")


def expected(offset):
    if offset < 0x20:
        return HEADER[offset // 4]
    block, index = divmod(offset - 0x100, 32)
    return BLOCKS[block][index // 4] if 0 <= block < len(BLOCKS) else 0


@cocotb.test()
async def table_reads_every_word(dut):
    master = await start(dut)
    for offset in range(0, 0x1000, 4):
        assert await word(master, offset) == expected(offset), hex(offset)


@cocotb.test()
async def table_ignores_writes(dut):
    master = await start(dut)
    for _ in range(200):
        offset = random.choice([random.randrange(0, 0x20, 4), random.randrange(0x100, 0x160, 4)])
        if random.random() < 0.5:
            write = await with_timeout(master.write(offset, random.randbytes(4)), 2, "us")
            assert write.resp == AxiResp.OKAY
        assert await word(master, offset) == expected(offset), hex(offset)


@cocotb.test()
async def table_reads_during_writes(dut):
    master = await start(dut)
    for _ in range(50):
        offset = random.randrange(0, 0x20, 4)
        write = cocotb.start_soon(master.write(0x100, b"\xff" * 4))
        assert await word(master, offset) == expected(offset)
        await with_timeout(write, 2, "us")
    assert await word(master, 0x100) == expected(0x100)
