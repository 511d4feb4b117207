# SPDX-License-Identifier: Apache-2.0
"""ns_clock_gate: a pulse for exactly the cycles that were enabled, and no glitch; every pulse if it is bypassed."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge, Timer


@cocotb.test()
async def pulses(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    count = 0

    async def counter():
        nonlocal count
        while True:
            await RisingEdge(dut.clk_o)
            assert dut.clk_i.value == 1
            count += 1

    dut.en_i.value = 0
    cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())
    await FallingEdge(dut.clk_i)
    cocotb.start_soon(counter())
    wanted, enable = 0, 0
    for _ in range(500):
        await RisingEdge(dut.clk_i)
        wanted += enable
        enable = int(rng.random() < 0.5)
        await Timer(1, "ns")  # as from a register; the clock is high, so the running pulse must not change
        before = dut.clk_o.value
        dut.en_i.value = enable
        await ReadOnly()
        assert dut.clk_o.value == before
        await FallingEdge(dut.clk_i)
        await ReadOnly()
        assert dut.clk_o.value == 0
        assert count == wanted


@cocotb.test()
async def bypass_runs_always(dut):
    """With NS_CLOCK_GATE_BYPASS: the clock passes unchanged, whatever the enable does."""
    rng = random.Random(cocotb.RANDOM_SEED)
    for _ in range(500):
        dut.clk_i.value = clock = rng.randrange(2)
        dut.en_i.value = rng.randrange(2)
        await ReadOnly()
        assert dut.clk_o.value == clock
        await Timer(1, "ns")
