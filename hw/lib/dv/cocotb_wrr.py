# SPDX-License-Identifier: Apache-2.0
"""ns_wrr_arbiter: shares follow the weights, urgent requesters have priority, no requester starves."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

N = 4


def packed(values, bits):
    return sum(value << bits * n for n, value in enumerate(values))


class Bench:
    def __init__(self, dut):
        self.dut = dut
        cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())

    async def start(self, weights, urgent=0):
        d = self.dut
        d.rst_ni.value, d.req_i.value, d.next_i.value, d.cost_i.value = 0, 0, 0, 0
        d.weight_i.value, d.urgent_i.value = packed(weights, 8), urgent
        await FallingEdge(d.clk_i)
        await FallingEdge(d.clk_i)
        d.rst_ni.value = 1

    async def cycle(self, req, costs, take=True):
        """One cycle; returns the number of the granted requester whose grant was used, if any."""
        d = self.dut
        d.req_i.value, d.cost_i.value, d.next_i.value = req, packed(costs, 9), int(take)
        await RisingEdge(d.clk_i)
        gnt, idx = int(d.gnt_o.value), int(d.idx_o.value)
        assert gnt & (gnt - 1) == 0
        assert gnt & ~req == 0
        assert int(d.valid_o.value) == (gnt != 0)
        assert gnt == 0 or gnt == 1 << idx
        await FallingEdge(d.clk_i)
        return idx if gnt and take else None


@cocotb.test()
async def shares(dut):
    """All request all the time, with bursts of different lengths: each share is its weight, within a burst."""
    bench = Bench(dut)
    rng = random.Random(cocotb.RANDOM_SEED)
    for weights in ([32, 32, 32, 32], [128, 32, 16, 8], [1, 255, 3, 40]):
        await bench.start(weights)
        got, costs, idle = [0] * N, [rng.randint(1, 64) for _ in range(N)], 0
        cycles = 6000
        for _ in range(cycles):
            winner = await bench.cycle((1 << N) - 1, costs, rng.random() < 0.8)
            idle += not int(dut.valid_o.value)
            if winner is not None:
                got[winner] += costs[winner]
                costs[winner] = rng.randint(1, 64)
        rounds = sum(got) / sum(weights)
        for n, weight in enumerate(weights):
            assert abs(got[n] - rounds * weight) <= 2 * (64 + weight), (weights, got)


@cocotb.test()
async def single_requester_gets_all(dut):
    """Weights of idle requesters cost nothing but the cycle in which a round starts."""
    bench = Bench(dut)
    await bench.start([16, 16, 16, 16])
    taken = 0
    for _ in range(1000):
        taken += await bench.cycle(0b0100, [8] * N) is not None
    assert taken >= 660, taken  # two bursts of 8 in a round of 16, then a cycle


@cocotb.test()
async def urgent_has_priority_without_cost(dut):
    bench = Bench(dut)
    rng = random.Random(cocotb.RANDOM_SEED)
    await bench.start([1, 10, 20, 30], urgent=1)
    got = [0] * N
    for _ in range(6000):
        urgent = rng.random() < 0.3
        winner = await bench.cycle(0b1110 | urgent, [1, 5, 5, 5])
        assert not urgent or winner == 0
        if winner is not None:
            got[winner] += 1
    assert abs(got[2] / got[1] - 2) < 0.1, got
    assert abs(got[3] / got[1] - 3) < 0.15, got
