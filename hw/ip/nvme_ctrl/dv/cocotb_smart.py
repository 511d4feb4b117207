# SPDX-License-Identifier: Apache-2.0
"""Tests of nvme_log_smart alone, with a clock so slow that minutes are simulated in no time."""

from __future__ import annotations

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge
from identify_model import WARNING_TEMPERATURE

MINUTE = 60_000  # cycles at 1 kHz
INPUTS = (
    "start",
    "start_slot",
    "start_op",
    "start_bytes",
    "end",
    "end_slot",
    "end_status",
    "warning",
    "hours",
    "errors",
)


async def minutes(dut) -> tuple[int, int, int]:
    """Controller Busy Time, Warning and Critical Composite Temperature Time."""
    beats = []
    for beat in (1, 3):
        dut.re_i.value, dut.beat_i.value = 1, beat
        await FallingEdge(dut.clk_i)
        beats.append(int(dut.data_o.value))
    dut.re_i.value = 0
    return beats[0] >> 8 * 32 & (1 << 128) - 1, beats[1] & (1 << 32) - 1, beats[1] >> 32 & (1 << 32) - 1


async def command(dut, cycles: int) -> None:
    """A command in the data path for `cycles` cycles."""
    dut.start_i.value = 1
    await FallingEdge(dut.clk_i)
    dut.start_i.value = 0
    await ClockCycles(dut.clk_i, cycles - 1)
    await FallingEdge(dut.clk_i)
    dut.end_i.value = 1
    await FallingEdge(dut.clk_i)
    dut.end_i.value = 0


class Count:
    """Cycles since power-on; a simulation may skip some."""

    def __init__(self, dut) -> None:
        self.dut, self.cycles, self.skip = dut, 0, 0
        dut.cycles_i.value = 0
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        while True:
            await FallingEdge(self.dut.clk_i)
            self.cycles += 1 + self.skip
            self.skip = 0
            self.dut.cycles_i.value = self.cycles


@cocotb.test()
async def smart_times(dut):
    """Minutes add up over interruptions; each temperature counts for one of the two times, or for
    none."""
    cocotb.start_soon(Clock(dut.clk_i, 2, "ns").start())
    for name in INPUTS:
        getattr(dut, f"{name}_i").value = 0
    cycles = Count(dut)
    dut.re_i.value = dut.beat_i.value = 0
    dut.temperature_i.value = WARNING_TEMPERATURE - 1
    dut.rst_ni.value = 0
    await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    await ClockCycles(dut.clk_i, 2 * MINUTE)
    await FallingEdge(dut.clk_i)
    assert await minutes(dut) == (0, 0, 0)
    assert not int(dut.busy_o.value)

    for _ in range(3):
        await command(dut, MINUTE // 2)
        await ClockCycles(dut.clk_i, MINUTE)
        await FallingEdge(dut.clk_i)
    assert await minutes(dut) == (1, 0, 0)

    for temperature, want in (
        (WARNING_TEMPERATURE, (1, 1, 0)),
        (WARNING_TEMPERATURE + 10, (1, 1, 1)),
        (WARNING_TEMPERATURE + 9, (1, 2, 1)),
        (0xFFFF, (1, 2, 2)),
        (0, (1, 2, 2)),
    ):
        dut.temperature_i.value = temperature
        await ClockCycles(dut.clk_i, MINUTE + 1)
        await FallingEdge(dut.clk_i)
        assert int(dut.busy_o.value) == (temperature >= WARNING_TEMPERATURE), "the clock has to run"
        assert await minutes(dut) == want, f"{temperature} K"

    # Skipped cycles count as if they had been simulated, and only while there is a command.
    dut.temperature_i.value = WARNING_TEMPERATURE - 1
    dut.start_i.value = 1
    await FallingEdge(dut.clk_i)
    dut.start_i.value = 0
    for _ in range(4):
        cycles.skip = MINUTE // 2
        await ClockCycles(dut.clk_i, 10)
    await FallingEdge(dut.clk_i)
    dut.end_i.value = 1
    await FallingEdge(dut.clk_i)
    dut.end_i.value = 0
    cycles.skip = MINUTE
    await ClockCycles(dut.clk_i, 10)
    await FallingEdge(dut.clk_i)
    assert await minutes(dut) == (3, 2, 2)
