# SPDX-License-Identifier: Apache-2.0
"""Tests of nvme_format alone, with namespaces too large for a simulated memory."""

from __future__ import annotations

import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

SIZES = [int(size) for size in os.environ["NVME_CTRL_NS"].split()]
BASES = [sum((size + 7) // 8 * 8 for size in SIZES[:n]) for n in range(len(SIZES))]
MOST = 65536
INTERNAL_ERROR, INTERRUPTED, WRITE_FAULT = 0x006, 0x021, 0x280
SLOT, ZERO = 5, 3


class Bench:
    """Model of nvme_admin and the data path."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.rng = random.Random(cocotb.RANDOM_SEED)

    async def power_up(self) -> None:
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk_i, 4, "ns").start())
        for name in ("req", "cmd", "stop", "acre", "in_flight", "data_ready", "data_done", "data_status"):
            getattr(dut, f"{name}_i").value = 0
        dut.rst_ni.value = 0
        for _ in range(3):
            await FallingEdge(dut.clk_i)
        dut.rst_ni.value = 1
        await FallingEdge(dut.clk_i)

    def command(self, nsid: int, cdw10: int) -> int:
        """admin_cmd_t."""
        fields = ((SLOT, 8), (0x1234, 16), (0x80, 8), (0, 1), (nsid, 32), (cdw10, 32), (0, 32), (0, 32), (0, 32))
        word = 0
        for value, bits in (*fields, (0, 64), (0, 64)):
            word = word << bits | value
        return word

    async def format(self, nsid: int, fail_at: int | None = None, stop_at: int | None = None):
        """Runs one; returns the status (SCT << 8 | SC) and the parts requested: (namespace, first
        block, blocks)."""
        dut, rng = self.dut, self.rng
        dut.cmd_i.value = self.command(nsid, 0)
        dut.req_i.value = 1
        parts, busy = [], None
        affected = sum(1 << n for n, size in enumerate(SIZES) if size and nsid in (n + 1, 0xFFFF_FFFF))
        in_flight = rng.getrandbits(16) | affected
        dut.in_flight_i.value = in_flight
        for cycle in range(100_000):
            await FallingEdge(dut.clk_i)
            dut.data_done_i.value = 0
            if int(dut.done_o.value):
                status = int(dut.status_o.value)
                await FallingEdge(dut.clk_i)  # the next state of nvme_admin
                dut.req_i.value = dut.stop_i.value = 0
                await FallingEdge(dut.clk_i)
                assert int(dut.formatting_o.value) == 0
                return status & 0x7FF, parts
            if cycle > 1:
                assert int(dut.formatting_o.value) == affected
            if cycle == 30:
                assert not parts, "commands were in flight"
                in_flight &= ~affected
                dut.in_flight_i.value = in_flight
            fire = int(dut.data_valid_o.value) and rng.random() < 0.5
            dut.data_ready_i.value = int(fire)
            if fire:
                word = int(dut.data_o.value)
                assert word & (1 << 128) - 1 == 0
                assert word >> 222 == (SLOT << 3 | ZERO) << 1
                parts.append((word >> 218 & 0xF, word >> 128 + 9 & (1 << 55) - 1, (word >> 192 & (1 << 26) - 1) // 512))
                busy = rng.randrange(1, 6)
                if stop_at is not None and len(parts) == stop_at + 1:
                    dut.stop_i.value = 1
            elif busy is not None:
                assert int(dut.data_wait_o.value)
                busy -= 1
                if busy == 0:
                    busy = None
                    dut.data_done_i.value = 1
                    dut.data_status_i.value = 4 if fail_at is not None and len(parts) == fail_at + 1 else 0
        raise AssertionError("it does not end")


def expected(nsid: int) -> list[tuple[int, int, int]]:
    found = []
    for n, (base, size) in enumerate(zip(BASES, SIZES, strict=True)):
        if nsid in (n + 1, 0xFFFF_FFFF):
            found += [(n, base + at, min(MOST, size - at)) for at in range(0, size, MOST)]
    return found


@cocotb.test()
async def format_parts(dut):
    """Every block once, in commands of at most 65536, in order; one namespace or all."""
    bench = Bench(dut)
    await bench.power_up()
    for nsid in (*(n + 1 for n, size in enumerate(SIZES) if size), 0xFFFF_FFFF):
        status, asked = await bench.format(nsid)
        assert status == 0
        assert asked == expected(nsid), nsid


@cocotb.test()
async def format_ends_early(dut):
    """A write error, or a controller that is being disabled, ends it after the current command."""
    bench = Bench(dut)
    await bench.power_up()
    whole = expected(0xFFFF_FFFF)
    for at in range(len(whole)):
        status, asked = await bench.format(0xFFFF_FFFF, fail_at=at)
        assert (status, asked) == (WRITE_FAULT, whole[: at + 1])
        last = at == len(whole) - 1
        for acre, early in enumerate((INTERNAL_ERROR, INTERRUPTED)):
            dut.acre_i.value = acre
            status, asked = await bench.format(0xFFFF_FFFF, stop_at=at)
            assert (status, asked) == (0 if last else early, whole[: at + 1])
