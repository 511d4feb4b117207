# SPDX-License-Identifier: Apache-2.0
"""Bench of an engine that performs one job at a time, with one memory: registers, command page, NVMe commands."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from interleaving_ram import InterleavingRam

SIZE = 1 << 20
CONTROL, INTERRUPT, SOURCES, STATUS, RESULT, ARGUMENT = 0, 4, 8, 0xC, 0x10, 0x20
BASE, BLOCKS = 0x80, (SIZE >> 9) - 0x80  # of the namespace


class EngineBench:
    """`arguments`: their names, in the order of the registers."""

    def __init__(self, dut, arguments):
        self.dut, self.arguments = dut, arguments
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.ram = InterleavingRam(dut, "m_axi", SIZE, self.random.random(), stall=0.1, latency=10)
        cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())

    async def start(self):
        d = self.dut
        for name in ("awvalid", "wvalid", "bready", "arvalid", "rready"):
            getattr(d, f"s_axil_{name}").value = 0
        d.cmd_valid_i.value = d.page_valid_i.value = 0
        d.rst_ni.value = 0
        await ClockCycles(d.clk_i, 4)
        d.rst_ni.value = 1
        cocotb.start_soon(self.ram.run())
        await ClockCycles(d.clk_i, 4)
        self.ram.data[:] = self.random.randbytes(SIZE)

    async def until(self, signal):
        for _ in range(100_000):
            await RisingEdge(self.dut.clk_i)
            if int(signal.value):
                return
        raise AssertionError(f"no {signal._name}")

    async def write(self, addr, value):
        d = self.dut
        d.s_axil_awaddr.value, d.s_axil_wdata.value, d.s_axil_wstrb.value = addr, value, 15
        d.s_axil_bready.value = d.s_axil_awvalid.value = d.s_axil_wvalid.value = 1
        address = data = True
        while address or data:
            await RisingEdge(d.clk_i)
            if address and int(d.s_axil_awready.value):
                address = False
            if data and int(d.s_axil_wready.value):
                data = False
            d.s_axil_awvalid.value, d.s_axil_wvalid.value = address, data
        while not int(d.s_axil_bvalid.value):
            await RisingEdge(d.clk_i)
        await RisingEdge(d.clk_i)

    async def read(self, addr):
        d = self.dut
        d.s_axil_araddr.value = addr
        d.s_axil_arvalid.value = d.s_axil_rready.value = 1
        await self.until(d.s_axil_arready)
        d.s_axil_arvalid.value = 0
        while not int(d.s_axil_rvalid.value):
            await RisingEdge(d.clk_i)
        value = int(d.s_axil_rdata.value)
        await RisingEdge(d.clk_i)
        return value

    async def launch(self, **arguments):
        """A job by registers: return value and the first output."""
        d = self.dut
        for n, name in enumerate(self.arguments):
            for half in (0, 1):
                await self.write(ARGUMENT + 0x10 * n + 4 * half, arguments[name] >> 32 * half & 0xFFFF_FFFF)
        await self.write(INTERRUPT, 1)
        await self.write(SOURCES, 1)
        await self.write(CONTROL, 1)
        if not int(d.irq_o.value):
            await self.until(d.irq_o)
        assert await self.read(STATUS) == 1
        await self.write(STATUS, 1)
        assert await self.read(CONTROL) == 4
        at = ARGUMENT + 0x10 * len(self.arguments)
        value = await self.read(at) | await self.read(at + 4) << 32
        return await self.read(RESULT), value

    async def page(self, **arguments):
        """A job by the command page: the same."""
        d = self.dut
        words = [0, *(arguments[name] for name in self.arguments)]
        d.page_i.value = int.from_bytes(b"".join(word.to_bytes(8, "little") for word in words), "little")
        d.page_valid_i.value = 1
        await self.until(d.page_ready_o)
        d.page_valid_i.value = 0
        await self.until(d.page_done_o)
        return int(d.page_result_o.value), int(d.page_value_o.value)

    def sqe(self, opcode, dwords):
        """A submission queue entry, or an entry of a list, with dwords 10 to 15."""
        words = [opcode, *[0] * 9, *dwords]
        return b"".join((word & 0xFFFF_FFFF).to_bytes(4, "little") for word in words)

    async def send(self, sqe):
        """An NVMe command: status and dword 0."""
        d = self.dut
        d.sqe_i.value = int.from_bytes(sqe, "little")
        d.base_i.value, d.blocks_i.value = BASE, BLOCKS
        d.cmd_valid_i.value = 1
        await self.until(d.cmd_ready_o)
        d.cmd_valid_i.value = 0
        await self.until(d.done_valid_o)
        return int(d.status_o.value), int(d.dw0_o.value)
