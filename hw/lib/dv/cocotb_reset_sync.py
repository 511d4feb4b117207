# SPDX-License-Identifier: Apache-2.0
"""ns_reset_sync: asserts immediately, is released by the clock only, and ignores no reset however short."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer

STAGES = 2


@cocotb.test()
async def reset_asserts_immediately_and_releases_at_an_edge(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    await Timer(1, unit="ns")
    assert dut.rst_no.value == 0  # power_up.py has made the reset active, and the clock stands still
    cocotb.start_soon(Clock(dut.clk_i, 10, unit="ns").start())
    for _ in range(100):
        await RisingEdge(dut.clk_i)
        await Timer(rng.randint(1, 8), unit="ns")
        dut.rst_ni.value = 1
        for _ in range(STAGES):
            await Timer(1, unit="ps")
            assert dut.rst_no.value == 0
            await RisingEdge(dut.clk_i)
        await Timer(1, unit="ps")
        assert dut.rst_no.value == 1
        await Timer(rng.randint(1, 30), unit="ns")
        dut.rst_ni.value = 0
        await Timer(rng.randint(1, 3), unit="ps")
        assert dut.rst_no.value == 0
