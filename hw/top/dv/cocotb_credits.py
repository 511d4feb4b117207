# SPDX-License-Identifier: Apache-2.0
"""Limits of an engine's outstanding lines in a channel: before, while and after the NVMe controller uses it."""

import os
from collections import deque

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiBus, AxiMaster

CREDITS = int(os.environ["CREDITS"])
BESIDE = int(os.environ["BESIDE"])
LINES = 16  # that the engine, and the controller, request
# 0 is no limit.
ALONE = CREDITS or LINES
LOWER = min(ALONE, BESIDE or LINES)


class Memory:
    """The memory of channel 0: accepts lines immediately, answers `answers` of each direction, in order."""

    def __init__(self, dut):
        self.dut, self.answers = dut, {"ar": 0, "aw": 0}
        self.open = {"ar": deque(), "aw": deque()}
        cocotb.start_soon(self.run())

    def port(self, name):
        return getattr(self.dut, f"m0_axi_{name}")

    def count(self, way):
        return len(self.open[way])

    async def run(self):
        port, shown = self.port, {"ar": False, "aw": False}
        port("arready").value = port("awready").value = port("wready").value = 1
        lines, data = self.open, 0
        while True:
            await RisingEdge(self.dut.clk_i)
            for way, answer in (("ar", "r"), ("aw", "b")):
                if shown[way] and int(port(f"{answer}ready").value):
                    lines[way].popleft()
                    shown[way] = False
                    data -= way == "aw"
                if int(port(f"{way}valid").value):
                    assert int(port(f"{way}len").value) == 0
                    lines[way].append(int(port(f"{way}id").value))
            if int(port("wvalid").value):
                data += 1
            for way, answer in (("ar", "r"), ("aw", "b")):
                if not shown[way] and self.answers[way] and lines[way] and (way == "ar" or data):
                    shown[way] = True
                    self.answers[way] -= 1
                port(f"{answer}valid").value = int(shown[way])
                port(f"{answer}id").value = lines[way][0] if lines[way] else 0
                port(f"{answer}resp").value = 0
            port("rlast").value = 1


async def begin(dut):
    dut.rst_ni.value = 0
    dut.stop_i.value = 0
    for channel in range(2):  # until there is a memory
        for name in ("arready", "awready", "wready", "rvalid", "bvalid"):
            getattr(dut, f"m{channel}_axi_{name}").value = 0
    cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())
    masters = [
        AxiMaster(AxiBus.from_prefix(dut, name), dut.clk_i, reset=dut.rst_ni, reset_active_level=False)
        for name in ("s_axi", "n_axi")
    ]
    await ClockCycles(dut.clk_i, 4)
    dut.rst_ni.value = 1
    memory = Memory(dut)
    # The nvm_delay fills its free list.
    await ClockCycles(dut.clk_i, 600)
    return *masters, memory


def request(master, way, n):
    if way == "ar":
        return master.init_read(64 * n, 64, arid=n)
    return master.init_write(64 * n, bytes(64), awid=n)


@cocotb.test()
@cocotb.parametrize(of_controller=["ar", "aw"], of_engine=["ar", "aw"])
async def credits_are_lower_beside_the_controller(dut, of_controller, of_engine):
    """The controller has a line outstanding, then the engine requests many, then the controller has none."""
    engine, controller, memory = await begin(dut)
    line = request(controller, of_controller, 0)
    await ClockCycles(dut.clk_i, 60)
    assert memory.count(of_controller) == 1
    for n in range(LINES):
        request(engine, of_engine, n)
    await ClockCycles(dut.clk_i, 200)
    own = of_controller == of_engine
    assert memory.count(of_engine) == LOWER + own
    # The controller's line is the oldest one of its way.
    memory.answers[of_controller] = 1
    await ClockCycles(dut.clk_i, 300)
    assert line.is_set()
    assert memory.count(of_engine) == ALONE
    memory.answers[of_engine] = 1000
    await ClockCycles(dut.clk_i, 600)
    assert not memory.count(of_engine)


@cocotb.test()
@cocotb.parametrize(way=["ar", "aw"])
async def credits_do_not_limit_the_controller(dut, way):
    """Many lines of the controller, and then those of the engine."""
    engine, controller, memory = await begin(dut)
    for n in range(LINES):
        request(controller, way, n)
    await ClockCycles(dut.clk_i, 200)
    assert memory.count(way) == LINES
    for n in range(LINES):
        request(engine, way, n)
    await ClockCycles(dut.clk_i, 200)
    assert memory.count(way) == LINES + LOWER


@cocotb.test()
@cocotb.parametrize(way=["ar", "aw"])
async def credits_keep_lines_outstanding_before(dut, way):
    """The engine has all its lines outstanding when the controller starts: none is issued before some have ended."""
    engine, controller, memory = await begin(dut)
    for n in range(LINES):
        request(engine, way, n)
    await ClockCycles(dut.clk_i, 200)
    assert memory.count(way) == ALONE
    request(controller, way, 0)
    await ClockCycles(dut.clk_i, 60)
    assert memory.count(way) == ALONE + 1
    for done in range(1, ALONE):
        memory.answers[way] = 1
        await ClockCycles(dut.clk_i, 60)
        # Lines that have ended, and those that replace them, are the engine's.
        left = min(LINES - done, max(ALONE - done, LOWER))
        assert memory.count(way) == left + 1, done
    memory.answers[way] = 1000
    await ClockCycles(dut.clk_i, 600)
    assert not memory.count(way)


@cocotb.test()
@cocotb.parametrize(way=["ar", "aw"])
async def credits_let_an_engine_progress_beside_the_controller(dut, way):
    """The controller always has a line outstanding in each direction: all lines of the engine end."""
    engine, controller, memory = await begin(dut)
    ends = []

    async def endless(own, ident):
        while True:
            line = request(controller, own, ident)
            await line.wait()

    for own in ("ar", "aw"):
        for ident in range(4):
            cocotb.start_soon(endless(own, ident))
    await ClockCycles(dut.clk_i, 60)
    assert memory.count("ar") == memory.count("aw") == 4

    async def answer():
        # One by one, so that some are outstanding at all times.
        while True:
            await ClockCycles(dut.clk_i, 3)
            for own in ("ar", "aw"):
                memory.answers[own] = int(memory.count(own) > 1)

    cocotb.start_soon(answer())
    for n in range(64):
        line = request(engine, way, n % LINES)
        ends.append(line)
    await ClockCycles(dut.clk_i, 6000)
    assert all(line.is_set() for line in ends)
