# SPDX-License-Identifier: Apache-2.0
"""nvm_delay between the AXI4 master and memory of cocotbext-axi, at full width: data is read back as written."""

from __future__ import annotations

import random
from itertools import pairwise

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiMaster, AxiRam
from nvm_delay_bench import COMMAND, COMMIT, CONTROL, TIMING, q12

MEMORY = 1 << 16


async def transfers(dut, enable: int) -> None:
    cocotb.start_soon(Clock(dut.clk_i, 4, "ns").start())
    master = AxiMaster(AxiBus.from_prefix(dut, "s_axi"), dut.clk_i, dut.rst_ni, False)
    ram = AxiRam(AxiBus.from_prefix(dut, "m_axi"), dut.clk_i, dut.rst_ni, False, size=MEMORY)
    regs = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk_i, dut.rst_ni, False)
    for part in (master.write_if, master.read_if, ram.write_if, ram.read_if, regs.write_if, regs.read_if):
        part.log.disabled = True
    rng = random.Random(5)
    gaps = random.Random(6)

    def pauses(p):
        while True:
            yield gaps.random() < p

    ram.read_if.r_channel.set_pause_generator(pauses(0.2))
    ram.write_if.w_channel.set_pause_generator(pauses(0.2))
    master.read_if.r_channel.set_pause_generator(pauses(0.3))
    master.write_if.b_channel.set_pause_generator(pauses(0.3))
    dut.rst_ni.value = 0
    dut.flush_i.value = 0
    for _ in range(5):
        await RisingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    for _ in range(5):
        await RisingEdge(dut.clk_i)
    for i, cycles in enumerate((60.5, 1.5, 40, 0.75)):
        await regs.write(TIMING + 4 * i, q12(cycles).to_bytes(4, "little"))
    await regs.write(CONTROL, enable.to_bytes(4, "little"))
    await regs.write(COMMAND, COMMIT.to_bytes(4, "little"))
    expected = bytearray(rng.randbytes(MEMORY))
    ram.write(0, bytes(expected))
    for _ in range(12):
        # Disjoint pieces, all at once: the order between IDs is free.
        cuts = sorted(rng.sample(range(MEMORY), 9))
        jobs = []
        for low, high in pairwise(cuts):
            length = min(high - low, rng.choice((1, 7, 64, 300, 4096)))
            size = rng.choice((0, 2, 6, 6, 6)) if length <= 300 else 6
            write = rng.random() < 0.5
            data = rng.randbytes(length)
            if write:
                expected[low : low + length] = data
                job = master.write(low, data, size=size)
            else:
                job = master.read(low, length, size=size)
            jobs.append((low, length, write, cocotb.start_soon(job)))
        for low, length, write, job in jobs:
            result = await job
            assert result.resp == 0
            assert write or bytes(result.data) == bytes(expected[low : low + length])
    assert bytes(ram.read(0, MEMORY)) == bytes(expected)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def transfers_on(dut):
    await transfers(dut, 1)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def transfers_off(dut):
    await transfers(dut, 0)
