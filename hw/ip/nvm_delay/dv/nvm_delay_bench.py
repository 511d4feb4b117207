# SPDX-License-Identifier: Apache-2.0
"""Test bench of nvm_delay: a master, a memory and a scoreboard around it, one step a clock cycle.

The memory answers after latencies of the test's choice, in any order between IDs, interleaved or not. R data are tokens
that name transaction and beat, so each beat is known at the slave port. The scoreboard computes every
deadline from the parameters, dither included, and checks each beat against it.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import astuple, dataclass, field

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer
from cocotbext.axi import AxiLiteBus, AxiLiteMaster

FRAC = 12
TIME_MAX = 2**32 - 1
GOLDEN = 40503
SLOTS = int(os.environ.get("SLOTS", "64"))  # of each direction
WRITE_SLOTS = int(os.environ.get("WRITE_SLOTS", SLOTS))
INCR, FIXED, WRAP = 1, 0, 2

# Registers.
ID, VERSION, CAP0, CAP1, CONTROL, COMMAND, STATUS = 0x000, 0x004, 0x008, 0x00C, 0x010, 0x014, 0x018
READ_CAP, WRITE_CAP, CALIBRATION, TIMING, REGION, COUNTERS = 0x020, 0x024, 0x030, 0x040, 0x080, 0x800
COMMIT, SNAPSHOT, CLEAR = 1, 2, 4


def q12(cycles: float) -> int:
    """Cycles in Q20.12, saturated."""
    return min(round(cycles * 2**FRAC), TIME_MAX)


@dataclass(frozen=True)
class Timing:
    """The times of one region, in Q20.12."""

    read_base: int = 0
    read_beat: int = 0
    write_base: int = 0
    write_beat: int = 0

    @staticmethod
    def cycles(read: float = 0, read_beat: float = 0, write: float = 0, write_beat: float = 0) -> Timing:
        return Timing(q12(read), q12(read_beat), q12(write), q12(write_beat))

    def less(self, calibration: Timing) -> Timing:
        return Timing(*(max(a - b, 0) for a, b in zip(astuple(self), astuple(calibration), strict=True)))


@dataclass(frozen=True)
class Region:
    """A region of pages first to last."""

    first: int
    last: int
    timing: Timing


@dataclass(frozen=True)
class Config:
    """All parameters that a commit activates."""

    timing: Timing = Timing()
    regions: tuple[Region, ...] = ()
    enable: bool = True
    read_cap: float = 0
    write_cap: float = 0
    # Subtracted from all of these times.
    calibration: Timing = Timing()

    def at(self, addr: int) -> Timing:
        """The times of an address, less the calibration."""
        found = self.timing
        for region in self.regions:
            if region.first <= addr >> 12 <= region.last:
                found = region.timing
                break
        return found.less(self.calibration)


OFF = Config(enable=False)


@dataclass
class Burst:
    """One transaction, as requested and as observed."""

    id: int = 0
    addr: int = 0
    beats: int = 1
    size: int = 0
    burst: int = INCR
    extra: int = 0  # lock, cache, prot, qos, region as one number
    at: int = 0  # earliest cycle of its address
    number: int = 0
    received: int | None = None
    offered: list[int] = field(default_factory=list)  # first cycle with valid, of each beat or of B
    taken: list[int] = field(default_factory=list)
    due: list[int] | None = None  # cycle of each deadline, None: off
    resp: int | None = None

    @property
    def latency(self) -> int:
        return self.taken[-1] - self.received

    @property
    def late(self) -> bool:
        return self.due is not None and self.offered[-1] > self.due[-1]


def always() -> bool:
    return True


def chance(rng: random.Random, p: float) -> Callable[[], bool]:
    """True with probability p."""
    return always if p >= 1 else lambda: rng.random() < p


class Bench:
    """Master, memory and scoreboard. `step` is one clock cycle."""

    def __init__(self, dut, seed: int = 1) -> None:
        self.dut = dut
        self.rng = random.Random(seed)
        self.beat_bytes = len(dut.s_axi_wstrb)
        self.now = 0
        self.config = OFF
        self.check_deadlines = True
        self.gated = False
        self.skipped = 0  # cycles without a clock
        self.dither = {"read": 0, "write": 0}
        # Settings for tests.
        self.s_rready = self.s_bready = self.m_arready = self.m_awready = self.m_wready = always
        self.read_latency: Callable[[Burst], int] = lambda burst: 4  # from AR to the first beat
        self.beat_gap: Callable[[], int] = lambda: 0  # between beats of one burst
        self.write_latency: Callable[[Burst], int] = lambda burst: 4  # from the last W to B
        self.resp_of: Callable[[Burst], int] = lambda burst: 0
        self.shuffle = False  # respond in random order between IDs, interleaved
        self.hold_r = False  # memory does not respond
        # The master's side.
        self.ar_queue: deque[Burst] = deque()
        self.aw_queue: deque[Burst] = deque()
        self.w_queue: deque[tuple[int, int, int]] = deque()
        self.w_at = 0
        self.w_gap: Callable[[], bool] = always  # offer a W beat in this cycle
        self.reads: list[Burst] = []
        self.writes: list[Burst] = []
        self.read_ids: dict[int, deque[Burst]] = defaultdict(deque)
        self.write_ids: dict[int, deque[Burst]] = defaultdict(deque)
        self.read_beats = self.write_beats = 0
        self.r_seen = self.b_seen = None
        self.r_log: list[tuple[int, Burst]] = []
        # The memory's side.
        self.mem_ar_number = self.mem_aw_number = 0
        self.mem_reads: dict[int, deque] = defaultdict(deque)  # by ID: [burst, beat, ready cycle]
        self.mem_order: deque[int] = deque()  # IDs in the order of their AR
        self.mem_r = None
        self.mem_aw: deque[Burst] = deque()
        self.mem_w_ended: deque[int] = deque()  # cycles of last W beats without an AW yet
        self.mem_w_expected: deque[tuple[int, int, int]] = deque()
        self.mem_b: dict[int, deque] = defaultdict(deque)
        self.mem_b_now = None
        self.mem_w_beats = 0
        self.mem_answered: set[int] = set()  # numbers of writes
        for name in ("s_axi", "m_axi"):
            for channel in ("aw", "w", "b", "ar", "r"):
                for kind in ("valid", "ready"):
                    signal = getattr(dut, f"{name}_{channel}{kind}")
                    if (name == "s_axi") == ((kind == "valid") == (channel in ("aw", "w", "ar"))):
                        signal.value = 0
        self.regs = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk_i, dut.rst_ni, False)
        for part in (self.regs.write_if, self.regs.read_if):
            part.log.disabled = True

    async def start(self) -> None:
        self.dut.rst_ni.value = 0
        self.dut.flush_i.value = 0
        self.clock = Clock(self.dut.clk_i, 4, "ns")
        self.clock.start()
        for _ in range(3):
            await RisingEdge(self.dut.clk_i)
        self.dut.rst_ni.value = 1
        for _ in range(402 + 2 * max(SLOTS, WRITE_SLOTS)):  # set-up after reset
            await RisingEdge(self.dut.clk_i)
        assert self.dut.busy_o.value == 0

    def gate(self, on: bool) -> None:
        """Stops the clock whenever the block allows it, as a clock gate does; no register accesses meanwhile."""
        self.gated = on
        if on:
            self.clock.stop()
        else:
            self.clock.start()

    async def edge(self) -> None:
        """Advances to the next clock edge, or past an edge that a closed gate suppresses."""
        dut = self.dut
        if not self.gated:
            await RisingEdge(dut.clk_i)
            return
        await Timer(1, "ns")
        dut.clk_i.value = 0
        await Timer(3, "ns")
        wake = (dut.busy_o, dut.s_axi_awvalid, dut.s_axi_wvalid, dut.s_axi_arvalid)
        if any(signal.value == 1 for signal in wake):
            dut.clk_i.value = 1
            await RisingEdge(dut.clk_i)
        else:
            self.skipped += 1

    # -------------------------------------------------------------------------------- registers

    async def poke(self, addr: int, value: int) -> None:
        result = await self.regs.write(addr, value.to_bytes(4, "little"))
        assert result.resp == 0

    async def peek(self, addr: int) -> int:
        return int.from_bytes((await self.regs.read(addr, 4)).data, "little")

    @staticmethod
    def settings(config: Config) -> list[tuple[int, int]]:
        """Shadow registers and their values."""
        settings = [(CONTROL, int(config.enable) | (2 ** len(config.regions) - 1) << 4)]
        settings += [(READ_CAP, round(config.read_cap * 2**16)), (WRITE_CAP, round(config.write_cap * 2**16))]
        places = [(CALIBRATION, config.calibration), (TIMING, config.timing)]
        for r, region in enumerate(config.regions):
            at = REGION + 0x20 * r
            settings += [(at, region.first), (at + 4, region.last)]
            places.append((at + 0x10, region.timing))
        for addr, timing in places:
            values = (timing.read_base, timing.read_beat, timing.write_base, timing.write_beat)
            settings += [(addr + 4 * i, value) for i, value in enumerate(values)]
        return settings

    async def write_shadow(self, config: Config) -> None:
        """Writes all parameters, without a commit."""
        for addr, value in self.settings(config):
            await self.poke(addr, value)

    async def configure(self, config: Config) -> None:
        """Activates parameters. For use while no transaction is being accepted."""
        await self.write_shadow(config)
        await self.poke(COMMAND, COMMIT)
        for _ in range(4):
            await RisingEdge(self.dut.clk_i)
        self.config = config

    async def counters(self, command: int = SNAPSHOT, histogram: bool = False) -> dict[str, dict]:
        """Takes a snapshot and reads it."""
        if command:
            await self.poke(COMMAND, command)
        result = {}
        for d, name in enumerate(("read", "write")):
            words = [await self.peek(COUNTERS + 0x40 * d + 4 * i) for i in range(10)]
            double = [words[i] | words[i + 1] << 32 for i in range(0, 8, 2)]
            result[name] = dict(zip(("transactions", "beats", "late", "sum"), double, strict=True))
            result[name] |= {"min": words[8], "max": words[9]}
            if histogram:
                base = COUNTERS + 0x100 * (d + 1)
                result[name]["histogram"] = [await self.peek(base + 4 * i) for i in range(64)]
        return result

    # -------------------------------------------------------------------------------- traffic

    def read(self, **kwargs) -> Burst:
        burst = Burst(**({"size": self.beat_bytes.bit_length() - 1} | kwargs))
        self.ar_queue.append(burst)
        return burst

    def write(self, **kwargs) -> Burst:
        burst = Burst(**({"size": self.beat_bytes.bit_length() - 1} | kwargs))
        self.aw_queue.append(burst)
        for beat in range(burst.beats):
            data = self.rng.getrandbits(8 * self.beat_bytes)
            self.w_queue.append((data, self.rng.getrandbits(self.beat_bytes), int(beat == burst.beats - 1)))
        return burst

    def token(self, burst: Burst, beat: int) -> int:
        """R data of a beat, distinct for each."""
        value = burst.number << 8 | beat
        return (value * 0x9E3779B97F4A7C15F39CC0605CEDC835 + value) % 2 ** (8 * self.beat_bytes)

    def deadlines(self, direction: str, burst: Burst) -> list[int] | None:
        """Cycles of the deadlines of a transaction that was just accepted; None when off."""
        if not self.config.enable:
            return None
        timing = self.config.at(burst.addr)
        dither = self.dither[direction] >> 4
        self.dither[direction] = (self.dither[direction] + GOLDEN) % 2**16
        if direction == "write":
            target = min(timing.write_base + timing.write_beat * burst.beats + dither, TIME_MAX)
            return [burst.received + (target >> FRAC)]
        rel = min(timing.read_base + timing.read_beat + dither, TIME_MAX)
        due = []
        for _ in range(burst.beats):
            due.append(burst.received + (rel >> FRAC))
            rel = min(rel + timing.read_beat, TIME_MAX)
        return due

    @property
    def quiet(self) -> bool:
        """Nothing is in flight."""
        return not (
            self.ar_queue
            or self.aw_queue
            or self.w_queue
            or any(self.read_ids.values())
            or any(self.write_ids.values())
        )

    async def run(self, limit: int = 20000) -> None:
        """Runs until everything has been answered."""
        for _ in range(limit):
            await self.step()
            if self.quiet:
                break
        assert self.quiet, f"not finished after {limit} cycles"

    async def during(self, work: Coroutine):
        """Runs a register access under traffic; returns its result."""
        task = cocotb.start_soon(work)
        while not task.done():
            await self.step()
        return task.result()

    async def steps(self, count: int) -> None:
        for _ in range(count):
            await self.step()

    async def step(self) -> None:
        dut = self.dut
        await self.edge()
        self.now += 1
        self._master_reads(dut)
        self._master_writes(dut)
        self._memory_reads(dut)
        self._memory_writes(dut)

    # -------------------------------------------------------------------------------- master

    def _master_reads(self, dut) -> None:
        queue = self.ar_queue
        if dut.s_axi_arvalid.value == 1:
            if dut.s_axi_arready.value == 1:
                burst = queue.popleft()
                burst.received = self.now
                burst.number = len(self.reads)
                burst.due = self.deadlines("read", burst)
                self.reads.append(burst)
                self.read_ids[burst.id].append(burst)
                dut.s_axi_arvalid.value = 0
                offer = True
            else:
                offer = False
        else:
            offer = True
        if offer and queue and queue[0].at <= self.now + 1:
            burst = queue[0]
            self._drive_ax(dut, "ar", burst)
            dut.s_axi_arvalid.value = 1
        # R
        if dut.s_axi_rvalid.value == 1:
            r_id = int(dut.s_axi_rid.value)
            assert self.read_ids[r_id], f"R with ID {r_id} that nobody waits for"
            burst = self.read_ids[r_id][0]
            beat = len(burst.taken)
            if self.r_seen is None:
                self.r_seen = burst
                burst.offered.append(self.now)
                assert int(dut.s_axi_rdata.value) == self.token(burst, beat), "wrong data"
                assert int(dut.s_axi_rlast.value) == int(beat == burst.beats - 1), "wrong last"
                assert int(dut.s_axi_rresp.value) == self.resp_of(burst), "wrong resp"
                if self.check_deadlines and burst.due:
                    assert self.now >= burst.due[beat], f"read {burst.number} beat {beat} left early"
            if dut.s_axi_rready.value == 1:
                self.r_seen = None
                burst.taken.append(self.now)
                self.read_beats += 1
                self.r_log.append((self.now, burst))
                if len(burst.taken) == burst.beats:
                    self.read_ids[r_id].popleft()
        ready = self.s_rready()
        dut.s_axi_rready.value = int(ready)

    def _drive_ax(self, dut, channel: str, burst: Burst) -> None:
        for name, value in self._ax(burst).items():
            getattr(dut, f"s_axi_{channel}{name}").value = value

    @staticmethod
    def _ax(burst: Burst) -> dict[str, int]:
        extra = burst.extra
        return {
            "id": burst.id,
            "addr": burst.addr,
            "len": burst.beats - 1,
            "size": burst.size,
            "burst": burst.burst,
            "lock": extra & 1,
            "cache": extra >> 1 & 15,
            "prot": extra >> 5 & 7,
            "qos": extra >> 8 & 15,
            "region": extra >> 12 & 15,
        }

    def _master_writes(self, dut) -> None:
        queue = self.aw_queue
        offer = True
        if dut.s_axi_awvalid.value == 1:
            if dut.s_axi_awready.value == 1:
                burst = queue.popleft()
                burst.received = self.now
                burst.number = len(self.writes)
                burst.due = self.deadlines("write", burst)
                self.writes.append(burst)
                self.write_ids[burst.id].append(burst)
                dut.s_axi_awvalid.value = 0
            else:
                offer = False
        if offer and queue and queue[0].at <= self.now + 1:
            self._drive_ax(dut, "aw", queue[0])
            dut.s_axi_awvalid.value = 1
        offer = True
        if dut.s_axi_wvalid.value == 1:
            if dut.s_axi_wready.value == 1:
                self.mem_w_expected.append(self.w_queue.popleft())
                self.write_beats += 1
                dut.s_axi_wvalid.value = 0
            else:
                offer = False
        if offer and self.w_queue and self.w_at <= self.now + 1 and self.w_gap():
            data, strb, last = self.w_queue[0]
            dut.s_axi_wdata.value = data
            dut.s_axi_wstrb.value = strb
            dut.s_axi_wlast.value = last
            dut.s_axi_wvalid.value = 1
        # B
        if dut.s_axi_bvalid.value == 1:
            b_id = int(dut.s_axi_bid.value)
            assert self.write_ids[b_id], f"B with ID {b_id} that nobody waits for"
            burst = self.write_ids[b_id][0]
            if self.b_seen is None:
                self.b_seen = burst
                burst.offered.append(self.now)
                assert burst.number in self.mem_answered, "B before the memory's"
                assert int(dut.s_axi_bresp.value) == self.resp_of(burst), "wrong resp"
                if self.check_deadlines and burst.due:
                    assert self.now >= burst.due[0], f"write {burst.number} answered early"
            if dut.s_axi_bready.value == 1:
                self.b_seen = None
                burst.taken.append(self.now)
                self.write_ids[b_id].popleft()
        dut.s_axi_bready.value = int(self.s_bready())

    # -------------------------------------------------------------------------------- memory

    def _check_ax(self, dut, channel: str, burst: Burst, skip: Iterable[str] = ()) -> None:
        for name, value in self._ax(burst).items():
            if name not in skip:
                got = int(getattr(dut, f"m_axi_{channel}{name}").value)
                assert got == value, f"{channel}{name} is {got}, not {value}"

    def _memory_reads(self, dut) -> None:
        if dut.m_axi_arvalid.value == 1 and dut.m_axi_arready.value == 1:
            assert self.mem_ar_number < len(self.reads), "AR that nobody asked for"
            burst = self.reads[self.mem_ar_number]
            self.mem_ar_number += 1
            self._check_ax(dut, "ar", burst, skip=("id",))
            mem_id = int(dut.m_axi_arid.value)
            self.mem_reads[mem_id].append([burst, 0, self.now + self.read_latency(burst)])
            self.mem_order.append(mem_id)
        dut.m_axi_arready.value = int(self.m_arready())
        if self.mem_r is not None:
            assert dut.m_axi_rready.value == 1, "memory is blocked"
            self.mem_r = None
            dut.m_axi_rvalid.value = 0
        if self.hold_r or not self.mem_reads:
            return
        if self.shuffle:
            ids = [i for i, q in self.mem_reads.items() if q[0][2] <= self.now + 1]
            if not ids:
                return
            mem_id = self.rng.choice(ids)
        else:
            mem_id = self.mem_order[0]
            if self.mem_reads[mem_id][0][2] > self.now + 1:
                return
        entry = self.mem_reads[mem_id][0]
        burst, beat, _ = entry
        last = beat == burst.beats - 1
        dut.m_axi_rid.value = mem_id
        dut.m_axi_rdata.value = self.token(burst, beat)
        dut.m_axi_rresp.value = self.resp_of(burst)
        dut.m_axi_rlast.value = int(last)
        dut.m_axi_rvalid.value = 1
        self.mem_r = entry
        entry[1] += 1
        entry[2] = self.now + 2 + self.beat_gap()
        if last:
            self.mem_reads[mem_id].popleft()
            if not self.mem_reads[mem_id]:
                del self.mem_reads[mem_id]
            self.mem_order.remove(mem_id)

    def _memory_writes(self, dut) -> None:
        if dut.m_axi_awvalid.value == 1 and dut.m_axi_awready.value == 1:
            assert self.mem_aw_number < len(self.writes), "AW that nobody asked for"
            burst = self.writes[self.mem_aw_number]
            self.mem_aw_number += 1
            self._check_ax(dut, "aw", burst)
            self.mem_aw.append(burst)
        dut.m_axi_awready.value = int(self.m_awready())
        if dut.m_axi_wvalid.value == 1 and dut.m_axi_wready.value == 1:
            data, strb, last = self.mem_w_expected.popleft()
            assert int(dut.m_axi_wdata.value) == data
            assert int(dut.m_axi_wstrb.value) == strb
            assert int(dut.m_axi_wlast.value) == last
            self.mem_w_beats += 1
            if last:
                self.mem_w_ended.append(self.now)
        dut.m_axi_wready.value = int(self.m_wready())
        while self.mem_w_ended and self.mem_aw:
            burst = self.mem_aw.popleft()
            at = max(self.mem_w_ended.popleft(), self.now) + self.write_latency(burst)
            self.mem_b[burst.id].append((burst, at))
        if self.mem_b_now is not None:
            assert dut.m_axi_bready.value == 1, "memory is blocked"
            self.mem_b_now = None
            dut.m_axi_bvalid.value = 0
        ids = [i for i, q in self.mem_b.items() if q and q[0][1] <= self.now + 1]
        if ids:
            b_id = self.rng.choice(ids) if self.shuffle else min(ids, key=lambda i: self.mem_b[i][0][0].number)
            burst, _ = self.mem_b[b_id].popleft()
            dut.m_axi_bid.value = b_id
            dut.m_axi_bresp.value = self.resp_of(burst)
            dut.m_axi_bvalid.value = 1
            self.mem_b_now = burst
            self.mem_answered.add(burst.number)
