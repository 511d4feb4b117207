# SPDX-License-Identifier: Apache-2.0
"""Any block with one ready/valid stream in and one out: ns_fifo, ns_skid. Order, loss, stability, rate, depth."""

import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

DEPTH = int(os.environ["DEPTH"])  # words it must hold
LATENCY = int(os.environ["LATENCY"])  # cycles from a word's acceptance until it can be taken
COUNT = os.environ["COUNT"] == "1"  # has count_o


async def run(dut, words, offer, take, limit):
    """Streams words through with given probabilities of offering and taking; returns the cycles it took.

    Inputs change after the falling edge: an output that depended on one combinationally would be seen to change.
    """
    rng = random.Random(cocotb.RANDOM_SEED)
    cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())
    dut.flush_i.value = 0
    dut.in_valid_i.value = 0
    dut.out_ready_i.value = 0
    dut.rst_ni.value = 0
    await RisingEdge(dut.clk_i)
    await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    await FallingEdge(dut.clk_i)

    sent, received, inside, held = 0, 0, 0, None
    valid = False
    for cycle in range(limit):
        state = (dut.in_ready_o.value, dut.out_valid_o.value)
        valid = (valid and held is not None) or (sent < len(words) and rng.random() < offer)
        dut.in_valid_i.value = int(valid)
        dut.in_data_i.value = words[sent] if valid else rng.getrandbits(8)
        ready = rng.random() < take
        dut.out_ready_i.value = int(ready)
        await RisingEdge(dut.clk_i)
        assert (dut.in_ready_o.value, dut.out_valid_o.value) == state, "handshake depends on inputs"
        if COUNT:
            assert int(dut.count_o.value) == inside
        accept = valid and dut.in_ready_o.value == 1
        held = words[sent] if valid and not accept else None
        leave = ready and dut.out_valid_o.value == 1
        if dut.out_valid_o.value == 1:
            assert inside > 0
            assert int(dut.out_data_o.value) == words[received], f"word {received}"
        if inside < DEPTH:
            assert dut.in_ready_o.value == 1, f"not ready with {inside} words"
        sent += accept
        received += leave
        inside += accept - leave
        if received == len(words):
            return cycle + 1
        await FallingEdge(dut.clk_i)
    raise AssertionError(f"hang: {received} of {len(words)} words after {limit} cycles")


@cocotb.test()
async def random_rates(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    for offer, take in [(0.5, 0.5), (0.9, 0.3), (0.3, 0.9), (1.0, 0.5), (0.5, 1.0)]:
        await run(dut, [rng.getrandbits(8) for _ in range(300 + 2 * DEPTH)], offer, take, 4000 + 20 * DEPTH)


@cocotb.test()
async def full_throughput(dut):
    cycles = await run(dut, [i % 256 for i in range(400)], 1.0, 1.0, 2000)
    # An entry is free for the next word one cycle after a word has left it, which is LATENCY + 1
    # cycles after that word was accepted.
    wanted = max(400, 400 * (LATENCY + 1) // DEPTH)
    assert wanted <= cycles <= wanted + LATENCY


@cocotb.test()
async def fills_up(dut):
    """It accepts DEPTH words while the output is stalled, and returns them."""
    cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())
    dut.rst_ni.value = 0
    dut.flush_i.value = 0
    dut.out_ready_i.value = 0
    dut.in_valid_i.value = 0
    await FallingEdge(dut.clk_i)
    await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    accepted = 0
    for _ in range(DEPTH + 8):
        dut.in_valid_i.value = 1
        dut.in_data_i.value = accepted % 256
        await RisingEdge(dut.clk_i)
        accepted += int(dut.in_ready_o.value)
        await FallingEdge(dut.clk_i)
    assert accepted == DEPTH
    dut.in_valid_i.value = 0
    dut.out_ready_i.value = 1
    for i in range(DEPTH):
        await RisingEdge(dut.clk_i)
        assert dut.out_valid_o.value == 1
        assert int(dut.out_data_o.value) == i % 256
        await FallingEdge(dut.clk_i)
    assert dut.out_valid_o.value == 0
