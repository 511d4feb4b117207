# SPDX-License-Identifier: Apache-2.0
"""ns_axi_fill between a random master and a random memory: requested blocks become zero, and nothing else changes.
Writes of the master arrive completely and are answered."""

from __future__ import annotations

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer

BLOCK, BEAT = 512, 64
BLOCKS = 256
FILL_ID = 0xFFF
AX_BITS = 85
OURS = BLOCKS // 2  # the master writes below, requests are above


def ax(ident: int, addr: int, beats: int) -> int:
    return ident << 77 | (beats - 1) << 69 | 6 << 66 | 1 << 64 | addr


class Bench:
    """One step a cycle: all inputs are set, then the handshakes of the coming edge are observed."""

    def __init__(self, dut, seed: int) -> None:
        self.dut, self.rng, self.now = dut, random.Random(seed), 0
        self.data = bytearray(self.rng.randbytes(BLOCKS * BLOCK))
        self.bad: set[int] = set()  # blocks whose write is an error
        self.p = 1.0  # of every ready and answer
        self.master = 0.0  # of a burst of the master
        self.bursts: list = []  # the memory's: [id, address, beats left, error], oldest first
        self.answers: list = []
        self.aw: tuple | None = None
        self.w: list = []  # of the master: (data, last), for addresses that were taken
        self.written: dict[int, bytes] = {}
        self.unanswered = 0
        self.done: list[int] = []
        self.beats = 0
        for name in ("fill_valid", "fill_stop", "s_aw_valid", "s_w_valid", "m_b_valid", "fill_addr", "fill_blocks"):
            getattr(dut, f"{name}_i").value = 0
        for name in ("s_aw", "s_w", "m_b", "m_aw_ready", "m_w_ready"):
            getattr(dut, f"{name}_i").value = 0
        dut.s_b_ready_i.value = 1

    async def start(self) -> None:
        Clock(self.dut.clk_i, 4, "ns").start()
        self.dut.rst_ni.value = 0
        for _ in range(3):
            await FallingEdge(self.dut.clk_i)
        self.dut.rst_ni.value = 1

    def chance(self, p: float) -> bool:
        return p >= 1 or self.rng.random() < p

    async def step(self) -> None:
        """Inputs change at falling edges; handshakes are evaluated just before the rising edge."""
        dut = self.dut
        if self.aw is None and not self.w and self.chance(self.master) and self.master:
            block = self.rng.randrange(OURS)
            beats = self.rng.choice((1, 2, 8))
            self.aw = (self.rng.randrange(200), block * BLOCK, beats)
        dut.s_aw_valid_i.value = int(self.aw is not None)
        if self.aw:
            dut.s_aw_i.value = ax(*self.aw)
        w_valid = bool(self.w) and self.chance(0.9)
        dut.s_w_valid_i.value = int(w_valid)
        if self.w:
            data, last = self.w[0]
            dut.s_w_i.value = last << 576 | (2**64 - 1) << 512 | int.from_bytes(data, "little")
        answer = bool(self.answers) and self.chance(self.p)
        dut.m_b_valid_i.value = int(answer)
        if self.answers:
            ident, error = self.answers[0]
            dut.m_b_i.value = ident << 2 | 2 * error
        aw_ready, w_ready = self.chance(self.p), self.chance(self.p) and bool(self.bursts)
        dut.m_aw_ready_i.value, dut.m_w_ready_i.value = int(aw_ready), int(w_ready)
        await Timer(1, "ns")
        if int(dut.fill_done_o.value):
            self.done.append(int(dut.fill_error_o.value))
        if answer and int(dut.m_b_ready_o.value):
            ident, _ = self.answers.pop(0)
            assert int(dut.s_b_valid_o.value) == (ident != FILL_ID)
            self.unanswered -= ident != FILL_ID
        new = None
        if aw_ready and int(dut.m_aw_valid_o.value):
            value = int(dut.m_aw_o.value)
            ident, addr, beats = value >> 77, value & 2**64 - 1, (value >> 69 & 255) + 1
            new = [ident, addr, beats, 0]
            if ident == FILL_ID:
                assert addr % BLOCK == 0
                assert beats % 8 == 0
                assert addr // 1024 == (addr + beats * BEAT - 1) // 1024
        if self.aw and int(dut.s_aw_ready_o.value) and aw_ready:
            ident, addr, beats = self.aw
            assert new is not None
            assert new[:3] == [ident, addr, beats]
            data = self.rng.randbytes(BEAT * beats)
            pieces = [data[i : i + BEAT] for i in range(0, len(data), BEAT)]
            self.w = [(piece, int(i == beats - 1)) for i, piece in enumerate(pieces)]
            for i, piece in enumerate(pieces):
                self.written[addr + BEAT * i] = piece
            self.aw = None
            self.unanswered += 1
            taken = False
        else:
            taken = w_valid and int(dut.s_w_ready_o.value)
        if w_ready and int(dut.m_w_valid_o.value):
            burst = self.bursts[0]
            value = int(dut.m_w_o.value)
            assert (burst[0] != FILL_ID) == bool(taken)
            if burst[1] // BLOCK in self.bad:
                burst[3] = 1
            else:
                self.data[burst[1] : burst[1] + BEAT] = (value & 2**512 - 1).to_bytes(64, "little")
            assert value >> 512 & 2**64 - 1 == 2**64 - 1
            burst[1] += BEAT
            burst[2] -= 1
            assert value >> 576 == int(burst[2] == 0)
            self.beats += 1
            if burst[2] == 0:
                self.bursts.pop(0)
                self.answers.append((burst[0], burst[3]))
        if taken:
            self.w.pop(0)
        if new:
            self.bursts.append(new)
        await FallingEdge(dut.clk_i)
        self.now += 1

    async def fill(self, first: int, count: int, stop: int | None = None) -> int:
        """Requests blocks; returns the error of the response."""
        dut = self.dut
        dut.fill_addr_i.value, dut.fill_blocks_i.value, dut.fill_valid_i.value = first * BLOCK, count, 1
        assert int(dut.fill_ready_o.value) == 1
        self.done.clear()
        await self.step()
        dut.fill_valid_i.value = 0
        for cycle in range(400 * count + 2000):
            if cycle == stop:
                dut.fill_stop_i.value = 1
            await self.step()
            if self.done:
                break
        dut.fill_stop_i.value = 0
        for _ in range(5):
            await self.step()
        assert len(self.done) == 1, "one answer"
        return self.done[0]


@cocotb.test()
async def fills(dut):
    """Every size at every address, beside a master, at any rate, with errors, stopped anywhere."""
    for seed in range(3):
        b = Bench(dut, seed)
        await b.start()
        for number in range(60):
            b.p, b.master = b.rng.choice(((1.0, 0.0), (0.7, 0.0), (1.0, 0.3), (0.4, 0.3), (1.0, 1.0)))
            first = b.rng.randrange(OURS, BLOCKS)
            count = min(1 + b.rng.randrange(b.rng.choice((2, 9, 60))), BLOCKS - first)
            stop = b.rng.randrange(60) if number % 3 == 2 else None
            bad = b.rng.randrange(first, first + count) if number % 7 == 5 else None
            b.bad = set() if bad is None else {bad}
            before = bytes(b.data)
            error = await b.fill(first, count, stop)
            assert error == int(bad is not None) or stop is not None
            zeros = 0
            for block in range(OURS, BLOCKS):
                now, then = (x[block * BLOCK : (block + 1) * BLOCK] for x in (b.data, before))
                if first <= block < first + count and not any(now):
                    zeros += 1
                else:
                    assert now == then, f"block {block}"
            assert zeros >= count - (bad is not None) or stop is not None
            if bad is not None:
                assert b.data[bad * BLOCK : (bad + 1) * BLOCK] == before[bad * BLOCK : (bad + 1) * BLOCK]
        b.master = 0.0
        for _ in range(500):
            await b.step()
        assert not b.unanswered
        assert all(b.data[addr : addr + BEAT] == data for addr, data in b.written.items())
        assert not int(dut.busy_o.value)


@cocotb.test()
async def rate(dut):
    """A beat a cycle while the master is idle, and half of that beside a master that always writes."""
    b = Bench(dut, 9)
    await b.start()
    start = b.now
    await b.fill(OURS, OURS)
    assert b.now - start < 8 * OURS + 20, "cycles"
