# SPDX-License-Identifier: Apache-2.0
"""ns_axi_credit and ns_axi_read_interleaver: data and ends of bursts, pieces, limits, and latency of urgent reads."""

import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from interleaving_ram import InterleavingRam

SIZE = 1 << 18
PIECE, ASKED = (int(os.environ[name]) for name in ("PIECE_BEATS", "MAX_BEATS"))  # see ns_axi_read_interleaver
IDS = 64


class Bench:
    def __init__(self, dut, **ram):
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.ram = InterleavingRam(dut, "m_axi", SIZE, self.random.random(), **ram)
        self.ram.data[:] = self.random.randbytes(SIZE)
        self.open = {}  # ID: [address, beats, beats that have come]
        self.ended = []  # (ID, beats of others since its address was taken)
        self.passed = 0  # beats
        self.since = {}
        self.most_asked = self.most_open = 0
        cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())

    async def start(self, reads=0, writes=0):
        d = self.dut
        for name in ("arvalid", "awvalid", "wvalid", "rready", "bready"):
            getattr(d, f"s_axi_{name}").value = 0
        d.read_credits_i.value, d.write_credits_i.value = reads, writes
        d.s_axi_arsize.value = d.s_axi_awsize.value = 6
        d.s_axi_arburst.value = d.s_axi_awburst.value = 1
        d.rst_ni.value = 0
        await ClockCycles(d.clk_i, 4)
        d.rst_ni.value = 1
        cocotb.start_soon(self.ram.run())
        cocotb.start_soon(self._watch())

    async def _watch(self):
        """No piece exceeds its length, and pieces that are not urgent respect the limit."""
        asked = 0
        d = self.dut
        while True:
            await RisingEdge(d.clk_i)
            if int(d.m_axi_rvalid.value) and int(d.m_axi_rready.value):
                asked -= 1
            if int(d.m_axi_arvalid.value) and int(d.m_axi_arready.value):
                beats = int(d.m_axi_arlen.value) + 1
                assert beats <= PIECE
                asked += beats
                if int(d.m_axi_arid.value) != 0:
                    self.most_asked = max(self.most_asked, asked)

    async def reads(self, bursts, patience=1.0):
        """Reads all of (address, beats, ID), each ID when its last burst has ended; checks the data."""
        d, pending, shown, since = self.dut, list(bursts), None, 0
        while pending or shown or self.open:
            await RisingEdge(d.clk_i)
            since += 1
            assert since < 5000, f"nothing for so long; {len(pending)} left, {len(self.open)} open"
            if shown and int(d.s_axi_arready.value):
                address, beats, id_ = shown
                self.open[id_] = [address, beats, 0]
                self.since[id_] = self.passed
                shown, since = None, 0
                self.most_open = max(self.most_open, sum(b - c for _, b, c in self.open.values()))
            if int(d.s_axi_rready.value) and int(d.s_axi_rvalid.value):
                self._beat(int(d.s_axi_rid.value))
                since = 0
            d.s_axi_rready.value = self.random.random() < patience
            if shown is None and pending and pending[0][2] not in self.open:
                shown = pending.pop(0)
                d.s_axi_araddr.value, d.s_axi_arlen.value, d.s_axi_arid.value = shown[0], shown[1] - 1, shown[2]
            d.s_axi_arvalid.value = shown is not None
        d.s_axi_rready.value = 0
        await ClockCycles(d.clk_i, 3)
        assert int(d.busy_o.value) == 0

    def _beat(self, id_):
        address, beats, come = self.open[id_]
        at = (address & ~63) + 64 * come
        assert int(self.dut.s_axi_rdata.value) == int.from_bytes(self.ram.data[at : at + 64], "little"), (id_, come)
        assert int(self.dut.s_axi_rlast.value) == (come + 1 == beats), (id_, come, beats)
        self.open[id_][2] += 1
        self.passed += 1
        if come + 1 == beats:
            self.ended.append((id_, self.passed - self.since[id_] - beats))
            del self.open[id_]


def bursts(rng, count, longest=64):
    for _ in range(count):
        beats = rng.choice(
            [
                1,
                2,
                min(PIECE - 1, longest),
                min(PIECE, longest),
                min(PIECE + 1, longest),
                longest,
                rng.randint(1, longest),
            ]
        )
        page = rng.randrange(SIZE // 4096) * 4096
        yield page + 64 * rng.randrange(64 - beats + 1), beats, rng.randrange(IDS)


@cocotb.test()
async def data_and_ends(dut):
    """Any bursts, a memory that interleaves, a master that waits: each burst is complete and has one last beat."""
    bench = Bench(dut)
    await bench.start()
    await bench.reads(bursts(bench.random, 300), patience=0.7)
    assert len(bench.ended) == 300
    assert ASKED - PIECE <= bench.most_asked <= ASKED


@cocotb.test()
async def full_rate(dut):
    """Long bursts: a beat a cycle after the memory's first latency."""
    bench = Bench(dut, stall=0, latency=0, interleave=False)
    await bench.start()
    begin = cocotb.utils.get_sim_time("ns")
    await bench.reads([(4096 * n, 64, 1 + n % 8) for n in range(32)])
    cycles = (cocotb.utils.get_sim_time("ns") - begin) / 4
    assert cycles < 32 * 64 * 1.05 + 40, cycles


@cocotb.test()
async def urgent_first(dut):
    """An urgent read waits for reads issued to the memory, not for waiting ones."""
    bench = Bench(dut, stall=0.1, latency=10, interleave=False)
    await bench.start()
    rng = bench.random
    work = []
    for n in range(120):
        work.append((rng.randrange(SIZE // 4096) * 4096, 64, 1 + n % 12))
        if n % 3 == 0:
            work.append((rng.randrange(SIZE // 64) * 64, 1, 0))
    await bench.reads(work)
    waited = [beats for id_, beats in bench.ended if id_ == 0]
    assert len(waited) == 40
    # The pieces in the memory, the piece at the slice, and one chosen in the same cycle.
    assert max(waited) <= ASKED + 2 * PIECE, waited
    assert max(beats for id_, beats in bench.ended if id_ != 0) > 4 * 64


@cocotb.test()
async def credits_limit_reads(dut):
    """No more beats than the limit; a longer burst passes alone. The limit may change at any time."""
    bench = Bench(dut)
    await bench.start(reads=20)
    await bench.reads(bursts(bench.random, 100, longest=20))
    assert 15 < bench.most_open <= 20
    bench.most_open = 0
    await bench.reads([(4096 * n, 50, 1 + n) for n in range(10)])
    assert bench.most_open == 50
    dut.read_credits_i.value = 0
    await bench.reads([(4096 * n, 16, 1 + n) for n in range(30)])
    assert bench.most_open > 100


@cocotb.test()
async def credits_limit_writes(dut):
    """Beats written without a response."""
    bench = Bench(dut)
    await bench.start(writes=12)
    rng, without, most = bench.random, 0, 0
    addresses = [(n % IDS, rng.randint(1, 12)) for n in range(80)]
    data, lengths, sent = [], [], 0
    dut.s_axi_wstrb.value = (1 << 64) - 1
    shown = None
    left = 0
    while sent < len(addresses) or lengths or data:
        await RisingEdge(dut.clk_i)
        if shown and int(dut.s_axi_awready.value):
            without += shown[1]
            most = max(most, without)
            lengths.append(shown[1])
            data += [n + 1 == shown[1] for n in range(shown[1])]
            sent, shown = sent + 1, None
        if left and int(dut.s_axi_wready.value):
            data.pop(0)
        if int(dut.s_axi_bready.value) and int(dut.s_axi_bvalid.value):
            # Responses of several IDs may come in any order; credits come back in that of the
            # addresses.
            without -= lengths.pop(0)
        if shown is None and sent < len(addresses):
            shown = addresses[sent]
            dut.s_axi_awaddr.value, dut.s_axi_awid.value, dut.s_axi_awlen.value = (
                4096 * sent % SIZE,
                shown[0],
                shown[1] - 1,
            )
        dut.s_axi_awvalid.value = shown is not None
        left = bool(data)
        dut.s_axi_wvalid.value = left
        if data:
            dut.s_axi_wlast.value, dut.s_axi_wdata.value = data[0], rng.getrandbits(512)
        dut.s_axi_bready.value = 1
    assert 8 < most <= 12, most
