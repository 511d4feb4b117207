# SPDX-License-Identifier: Apache-2.0
"""One beat per cycle on every port, in both directions at once."""

import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles

N = int(os.environ["N"])
BEATS = int(os.environ["BEATS"])


def words(handle):
    value = int(handle.value)
    return [value >> 32 * i & 0xFFFFFFFF for i in range(N)]


@cocotb.test()
async def full_throughput(dut):
    cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())
    dut.rst_ni.value = 0
    await ClockCycles(dut.clk_i, 4)
    dut.rst_ni.value = 1
    await ClockCycles(dut.clk_i, 200)
    before = [words(dut.writes_o), words(dut.responses_o), words(dut.reads_o)]
    cycles = 2000
    await ClockCycles(dut.clk_i, cycles)
    after = [words(dut.writes_o), words(dut.responses_o), words(dut.reads_o)]
    writes, responses, reads = ([b - a for a, b in zip(x, y, strict=True)] for x, y in zip(before, after, strict=True))
    dut._log.info(f"beats in {cycles} cycles: written {writes}, read {reads}; responses {responses}")
    assert min(writes) >= cycles
    assert min(reads) >= cycles
    assert min(responses) >= min(writes) // BEATS - 4
