# SPDX-License-Identifier: Apache-2.0
"""Cocotb side of test_hdl.py."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly


async def count(dut, cycles):
    Clock(dut.clk_i, 4, unit="ns").start()
    dut.rst_ni.value = 0
    dut.en_i.value = 0
    await ClockCycles(dut.clk_i, 2)
    dut.rst_ni.value = 1
    dut.en_i.value = 1
    await ClockCycles(dut.clk_i, cycles)
    await ReadOnly()
    return dut.count_o.value.to_unsigned()


@cocotb.test()
async def passes(dut):
    assert await count(dut, 20) in (19, 20)
    dut._log.info("drew %d", random.getrandbits(32))


@cocotb.test()
async def fails(dut):
    assert await count(dut, 20) == 0


@cocotb.test()
async def breaks_assertion(dut):
    await count(dut, 250)


@cocotb.test()
async def hangs(dut):
    Clock(dut.clk_i, 4, unit="ns").start()
    dut.rst_ni.value = 0
    while True:  # in reset, where nothing can go wrong
        await ClockCycles(dut.clk_i, 1)
