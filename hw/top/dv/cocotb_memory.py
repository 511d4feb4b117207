# SPDX-License-Identifier: Apache-2.0
"""A memory of the shell and an engine: a stop while writes wait in front of a channel; bounds."""

import os
from collections import deque

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import AxiBus, AxiMaster, AxiResp

GRANULE = 4096
LIMIT = int(os.environ.get("LIMIT", "0"))  # 0: in the tests of a stop


async def accept_writes(dut, channel, held):
    """A memory controller that accepts all writes immediately, and answers none while `held[channel]`."""

    def s(name):
        return getattr(dut, f"m{channel}_axi_{name}")

    s("arready").value = s("rvalid").value = s("bvalid").value = 0
    s("awready").value = s("wready").value = 1
    ids, ends, shown = deque(), 0, False
    while True:
        await RisingEdge(dut.clk_i)
        if shown and int(s("bready").value):
            ids.popleft()
            ends, shown = ends - 1, False
        if int(s("awvalid").value):
            ids.append(int(s("awid").value))
        if int(s("wvalid").value):
            ends += int(s("wlast").value)
        shown = shown or bool(ends and ids and not held[channel])
        s("bvalid").value = int(shown)
        s("bid").value = ids[0] if shown else 0
        s("bresp").value = 0


@cocotb.test(skip=LIMIT != 0)
@cocotb.parametrize(lines=range(1, 13))
async def stop_completes_started_writes(dut, lines):
    """`lines` lines to channel 0, which lets one through, then one to channel 1; then the function is stopped."""
    dut.rst_ni.value = 0
    dut.stop_i.value = 0
    for way in ("ar", "aw", "w"):
        getattr(dut, f"n_axi_{way}valid").value = 0
    cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())
    master = AxiMaster(AxiBus.from_prefix(dut, "s_axi"), dut.clk_i, reset=dut.rst_ni, reset_active_level=False)
    held = [True, False]
    await ClockCycles(dut.clk_i, 4)
    dut.rst_ni.value = 1
    for channel in range(2):
        cocotb.start_soon(accept_writes(dut, channel, held))
    await ClockCycles(dut.clk_i, 2)

    for n in range(lines):
        master.init_write(64 * n, bytes([n + 1] * 64), awid=n)
    master.init_write(GRANULE, b"x" * 64, awid=15)
    await ClockCycles(dut.clk_i, 400)
    dut.stop_i.value = 1
    held[0] = False
    await ClockCycles(dut.clk_i, 1000)
    started = int(dut.begun_o.value)
    assert started == 0, f"channels {started:02b}: a started burst lacks data 1000 cycles later"


@cocotb.test(skip=LIMIT == 0)
async def bounds_limit_addresses(dut):
    """Lines below the limit are written, others answered DECERR."""
    dut.rst_ni.value = 0
    dut.stop_i.value = 0
    for way in ("ar", "aw", "w"):
        getattr(dut, f"n_axi_{way}valid").value = 0
    cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())
    master = AxiMaster(AxiBus.from_prefix(dut, "s_axi"), dut.clk_i, reset=dut.rst_ni, reset_active_level=False)
    await ClockCycles(dut.clk_i, 4)
    dut.rst_ni.value = 1
    for channel in range(2):
        cocotb.start_soon(accept_writes(dut, channel, [False, False]))
    await ClockCycles(dut.clk_i, 2)
    for granule in range(5):
        for offset in (0, GRANULE - 64):
            addr = GRANULE * granule + offset
            answer = await with_timeout(master.write(addr, b"x" * 64), 4000, "ns")
            assert answer.resp == (AxiResp.OKAY if addr < LIMIT else AxiResp.DECERR), f"{addr:#x}"
