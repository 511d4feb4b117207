"""One direction of the completion timeout: what it gives up and drops, however much that is."""

import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

CYCLES = int(os.environ["CYCLES"])
IDS = [int(i) for i in os.environ["IDS"].split(",")]
ALL = 1 << int(os.environ["ID_BITS"])
SCAN = 3 * ALL + 64  # cycles that a look at all IDs takes at most


class Bench:
    """One step a clock cycle: inputs are set at the falling edge, handshakes seen just before the rising one."""

    def __init__(self, dut):
        self.dut = dut
        self.given = []  # (ID, error) handed on
        self.taken = 0  # responses taken from the host
        cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())

    async def start(self):
        for name in ("issue_i", "in_valid_i", "issue_id_i", "issue_beats_i", "in_id_i"):
            getattr(self.dut, name).value = 0
        self.dut.out_ready_i.value = 1
        self.dut.rst_ni.value = 0
        for _ in range(4):
            await RisingEdge(self.dut.clk_i)
        await FallingEdge(self.dut.clk_i)
        self.dut.rst_ni.value = 1
        for _ in range(ALL + 50):
            await self.step()
        assert self.dut.ready_o.value == 1

    async def step(self):
        await RisingEdge(self.dut.clk_i)
        if self.dut.out_valid_o.value == 1 and self.dut.out_ready_i.value == 1:
            self.given.append((int(self.dut.out_id_o.value), int(self.dut.out_error_o.value)))
        if self.dut.in_valid_i.value == 1 and self.dut.in_ready_o.value == 1:
            self.taken += 1
        await FallingEdge(self.dut.clk_i)

    async def issue(self, ident, beats):
        self.dut.issue_i.value = 1
        self.dut.issue_id_i.value = ident
        self.dut.issue_beats_i.value = beats
        await self.step()
        self.dut.issue_i.value = 0

    async def given_up(self, beats):
        """Waits for so many errors, and forgets them."""
        for _ in range(2 * CYCLES + 2 * SCAN + beats):
            if len(self.given) == beats:
                break
            await self.step()
        assert len(self.given) == beats
        assert all(error for _, error in self.given), self.given[:4]
        given, self.given = self.given, []
        return {ident for ident, _ in given}

    async def answer(self, ident, beats, limit=None):
        """The host sends so many beats."""
        before = self.taken
        self.dut.in_valid_i.value = 1
        self.dut.in_id_i.value = ident
        for _ in range(limit or 2 * beats + SCAN):
            if self.taken == before + beats:
                break
            await self.step()
        self.dut.in_valid_i.value = 0
        assert self.taken == before + beats


@cocotb.test()
async def more_lost_than_outstanding(dut):
    """A host is silent through many time-outs, then answers all: none of it counts, and what comes next does."""
    b = Bench(dut)
    await b.start()
    lost = dict.fromkeys(IDS, 0)
    rng = random.Random(cocotb.RANDOM_SEED)
    for _ in range(18):
        for ident in IDS:
            await b.issue(ident, 256)
            lost[ident] += 256
        assert await b.given_up(256 * len(IDS)) == set(IDS)
    assert all(n > 4096 for n in lost.values())
    assert dut.busy_o.value == 1
    while any(lost.values()):
        ident = rng.choice([i for i in IDS if lost[i]])
        beats = min(lost[ident], rng.randint(1, 200))
        await b.answer(ident, beats)
        lost[ident] -= beats
    late = [g for g in b.given if not g[1]]
    assert not late, f"{len(late)} late beats were taken for answers"
    b.given.clear()
    for ident in IDS:
        await b.issue(ident, 4)
        await b.answer(ident, 4)
        assert [g for g in b.given if not g[1]] == [(ident, 0)] * 4
        b.given.clear()
