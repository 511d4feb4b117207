# SPDX-License-Identifier: Apache-2.0
"""ns_rr_arbiter against a model: one-hot, stable until taken, round robin."""

import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

N = int(os.environ["N"])


@cocotb.test()
async def against_model(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())
    dut.rst_ni.value = 0
    dut.flush_i.value = 0
    dut.req_i.value = 0
    dut.next_i.value = 0
    await FallingEdge(dut.clk_i)
    await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    first = 0  # whose turn it is
    for cycle in range(3000):
        density = (0.1, 0.5, 1.0)[cycle // 1000]
        req = sum((rng.random() < density) << i for i in range(N))
        take = rng.random() < 0.6
        flush = rng.random() < 0.05
        dut.req_i.value = req
        dut.next_i.value = int(take)
        dut.flush_i.value = int(flush)
        await RisingEdge(dut.clk_i)
        wanted = next((i % N for i in range(first, first + N) if req >> i % N & 1), None)
        assert int(dut.valid_o.value) == (wanted is not None)
        assert int(dut.gnt_o.value) == (0 if wanted is None else 1 << wanted)
        assert int(dut.idx_o.value) == (wanted or 0)
        if wanted is not None:
            first = (wanted + take) % N
        if flush:
            first = 0
        await FallingEdge(dut.clk_i)


@cocotb.test()
async def equal_shares(dut):
    cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())
    dut.rst_ni.value = 0
    dut.flush_i.value = 0
    await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    dut.req_i.value = (1 << N) - 1
    dut.next_i.value = 1
    grants = [0] * N
    for _ in range(20 * N):
        await RisingEdge(dut.clk_i)
        grants[int(dut.idx_o.value)] += 1
        await FallingEdge(dut.clk_i)
    assert grants == [20] * N
