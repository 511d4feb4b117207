# SPDX-License-Identifier: Apache-2.0
"""One direction of the completion timeout: each burst ends with exactly its beats, whatever the slave delays."""

import os
import random
from collections import deque

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

CYCLES = int(os.environ["CYCLES"])
IDS = [int(i) for i in os.environ["IDS"].split(",")]
ALL = 1 << int(os.environ["ID_BITS"])
BURSTS = int(os.environ["BURSTS"])
SCAN = 3 * ALL + 64  # cycles that a look at all IDs takes at most, without what is given up


class Bench:
    """One step a clock cycle: inputs are set at the falling edge, handshakes sampled just before the rising one.

    Every beat is checked. A beat of the slave goes to the master in order, or is dropped if the master got an error for
    it. Errors replace missing beats, and `last` matches the address.
    """

    def __init__(self, dut):
        self.dut = dut
        self.owed = {i: deque() for i in IDS}  # to the master: [number of the burst, beats, beats handed on]
        self.coming = {i: deque() for i in IDS}  # from the slave, the same
        self.number = 0
        self.good = self.errors = self.dropped = 0
        self.torn = 0  # bursts that begin well and end with errors
        cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())

    async def start(self):
        for name in ("issue_i", "in_valid_i", "in_last_i", "issue_id_i", "issue_len_i", "in_id_i"):
            getattr(self.dut, name).value = 0
        self.dut.issue_id_i.value = IDS[0]
        self.dut.out_ready_i.value = 1
        self.dut.rst_ni.value = 0
        for _ in range(4):
            await RisingEdge(self.dut.clk_i)
        await FallingEdge(self.dut.clk_i)
        self.dut.rst_ni.value = 1
        for _ in range(ALL + 50):
            await self.step()
        assert self.dut.ready_o.value == 1

    def open(self):
        return sum(len(queue) for queue in self.owed.values())

    async def step(self):
        dut = self.dut
        await RisingEdge(dut.clk_i)
        out = int(dut.out_valid_o.value) and int(dut.out_ready_i.value)
        if out:
            ident = int(dut.out_id_o.value)
            burst = self.owed[ident][0]
            place = burst[0], burst[2]
            burst[2] += 1
            assert int(dut.out_last_o.value) == (burst[2] == burst[1]), f"ID {ident:#x}: last at beat {burst[2]}"
            if burst[2] == burst[1]:
                self.owed[ident].popleft()
        if int(dut.in_valid_i.value) and int(dut.in_ready_o.value):
            source = int(dut.in_id_i.value)
            late = self.coming[source][0]
            if out:
                assert not int(dut.out_error_o.value)
                assert (source, late[0], late[2]) == (ident, *place), "a late beat was taken for another"
                self.good += 1
            else:
                current = self.owed[source][0] if self.owed[source] else [self.number + 1, 0, 0]
                assert (late[0], late[2]) < (current[0], current[2]), "a beat was dropped that was not late"
                self.dropped += 1
            late[2] += 1
            if late[2] == late[1]:
                self.coming[source].popleft()
        elif out:
            assert int(dut.out_error_o.value)
            self.errors += 1
            self.torn += burst[2] == burst[1] and self.coming[ident][0][2] > 0
        await FallingEdge(dut.clk_i)

    async def issue(self, ident, beats):
        """Issues an address, when there is room for it."""
        self.dut.issue_id_i.value = ident
        self.dut.issue_len_i.value = beats - 1
        await self.offer()
        while not await self.issued(ident, beats):
            pass

    async def offer(self):
        """Waits until ready_o is valid for the offered ID."""
        self.dut.issue_i.value = 0
        await self.step()

    async def issued(self, ident, beats):
        """Accepts the offered address, if there is room; one step either way."""
        ready = int(self.dut.ready_o.value)
        self.dut.issue_i.value = ready
        if ready:
            self.number += 1
            self.owed[ident].append([self.number, beats, 0])
            self.coming[ident].append([self.number, beats, 0])
        assert len(self.owed[ident]) <= BURSTS
        await self.step()
        self.dut.issue_i.value = 0
        return ready

    def show(self, ident):
        """The slave offers its next beat of an ID, or nothing."""
        self.dut.in_valid_i.value = ident is not None
        if ident is not None:
            self.dut.in_id_i.value = ident
            self.dut.in_last_i.value = self.coming[ident][0][2] + 1 == self.coming[ident][0][1]

    async def answer(self, ident, beats):
        """The slave sends `beats` beats."""
        before = self.good + self.dropped
        for _ in range(2 * beats + SCAN + sum(left for _, left, _ in self.owed[ident])):
            if self.good + self.dropped == before + beats:
                break
            self.show(ident)
            await self.step()
        self.show(None)
        assert self.good + self.dropped == before + beats

    async def until_timed_out(self):
        """Waits until nothing is outstanding towards the master."""
        beats = sum(burst[1] for queue in self.owed.values() for burst in queue)
        for _ in range(2 * CYCLES + 2 * SCAN + 2 * beats):
            if not self.open():
                break
            await self.step()
        assert not self.open(), "not given up in time"


@cocotb.test()
async def timeout_drops_late_responses(dut):
    """A slave is silent through many timeouts, then answers all: these are dropped, and later responses are not."""
    b = Bench(dut)
    await b.start()
    rng = random.Random(cocotb.RANDOM_SEED)
    for _ in range(18):
        for ident in IDS:
            for beats in [256] + [rng.randint(1, 6) for _ in range(BURSTS - 1)]:
                await b.issue(ident, beats)
        await b.until_timed_out()
    assert b.errors > 18 * 256 * len(IDS)
    assert b.good == 0
    assert dut.busy_o.value == 1
    while late := [i for i in IDS if b.coming[i]]:
        ident = rng.choice(late)
        left = sum(beats - had for _, beats, had in b.coming[ident])
        await b.answer(ident, min(left, rng.randint(1, 200)))
    assert b.good == 0
    assert b.dropped == b.errors
    for ident in IDS:
        await b.issue(ident, 4)
        await b.answer(ident, 4)
    assert b.good == 4 * len(IDS)


@cocotb.test()
async def timeout_completes_started_bursts(dut):
    """The slave falls silent after each number of beats of several bursts: the rest ends as errors, burst by burst."""
    b = Bench(dut)
    await b.start()
    lengths = (3, 1, 4)
    for ident in IDS:
        for before in range(sum(lengths)):
            for beats in lengths:
                await b.issue(ident, beats)
            good, errors, dropped = b.good, b.errors, b.dropped
            await b.answer(ident, before)
            await b.until_timed_out()
            assert (b.good - good, b.errors - errors) == (before, sum(lengths) - before)
            await b.answer(ident, sum(lengths) - before)
            assert b.dropped - dropped == sum(lengths) - before
    assert b.torn


@cocotb.test()
async def timeout_with_random_silence(dut):
    """IDs that fall silent and resume at any time, among active ones, with back-pressure."""
    b = Bench(dut)
    await b.start()
    rng = random.Random(cocotb.RANDOM_SEED)
    silent = dict.fromkeys(IDS, 0)  # until when
    shown, issuing, before = None, None, 0
    seen = lambda: (b.good, b.errors, b.dropped, 20 * b.torn)  # noqa: E731
    for now in range(400 * CYCLES):
        if now >= 40 * CYCLES and min(seen()) > 100:
            break
        for ident in IDS:
            if silent[ident] < now and rng.random() < 0.5 / CYCLES:
                silent[ident] = now + rng.randrange(6 * CYCLES)
        if shown is None or (b.good + b.dropped) != before:
            ready = [i for i in IDS if b.coming[i] and silent[i] < now]
            shown = rng.choice(ready) if ready and rng.random() < 0.6 else None
            b.show(shown)
            before = b.good + b.dropped
        dut.out_ready_i.value = rng.random() < 0.7
        if issuing:
            if await b.issued(*issuing):
                issuing = None
        else:
            if rng.random() < 0.3:
                issuing = rng.choice(IDS), rng.choice([1, 1, 2, rng.randint(1, 20)])
                dut.issue_id_i.value, dut.issue_len_i.value = issuing[0], issuing[1] - 1
            await b.step()
    dut.out_ready_i.value = 1
    while shown is not None and b.good + b.dropped == before:
        await b.step()
    b.show(None)
    await b.until_timed_out()
    assert min(seen()) > 100, seen()


@cocotb.test()
async def timeout_ignores_slow_progress(dut):
    """An ID with a beat every few cycles does not time out, whatever comes between two scans of it."""
    b = Bench(dut)
    await b.start()
    ident = IDS[0]
    dut.issue_id_i.value, dut.issue_len_i.value = ident, 63
    waiting = False
    for gap in range(1, 9):
        for now in range(5 * (CYCLES + SCAN)):
            waiting = waiting or (now % gap == 0 and len(b.coming[ident]) > 0)
            b.show(ident if waiting else None)
            before = b.good
            if len(b.owed[ident]) < 3:
                await b.issued(ident, 64)
            else:
                await b.step()
            waiting = waiting and b.good == before
    assert b.errors == 0
    assert b.good > 12 * (CYCLES + SCAN)
