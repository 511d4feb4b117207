# SPDX-License-Identifier: Apache-2.0
"""ns_ram_1r1w: one cycle of latency, data held, the old word when a word is read and written at once."""

import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

DEPTH = int(os.environ["DEPTH"])


@cocotb.test()
async def random_access(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())
    model, expected, collisions = {}, None, 0
    for _ in range(3000):
        await FallingEdge(dut.clk_i)
        if expected is not None:
            assert int(dut.rdata_o.value) == expected
        write, waddr, data = rng.random() < 0.5, rng.randrange(DEPTH), rng.getrandbits(32)
        read, raddr = rng.random() < 0.5, rng.choice([waddr, rng.randrange(DEPTH)])
        dut.we_i.value, dut.waddr_i.value, dut.wdata_i.value = int(write), waddr, data
        dut.re_i.value, dut.raddr_i.value = int(read), raddr
        await RisingEdge(dut.clk_i)
        if read:
            expected = model.get(raddr)
            collisions += write and raddr == waddr and expected is not None
        if write:
            model[waddr] = data
    assert collisions > 50
