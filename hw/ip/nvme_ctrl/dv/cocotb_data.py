"""Tests of the data path on nvme_data_tb."""

from __future__ import annotations

import cocotb
from data_model import Env

SIZES = (4, 8, 60, 64, 68, 512, 516, 1024, 4092, 4096, 4100, 8192, 12288, 16384, 65536 + 8)


@cocotb.test()
async def basic_copies(dut):
    """One command at a time, every size in both directions, aligned."""
    env = Env(dut)
    await env.reset()
    for size in SIZES:
        for write in (False, True):
            await env.copy([env.command(write, 0x10000, size)])
