# SPDX-License-Identifier: Apache-2.0
"""Bench of the conflict filter and the table: masters, a memory, and commands that the bench runs.

The model keeps the versions that program order gives each line: stores in the order of their
addresses, commands in the order of insertion. An access that passes an older one, or is lost, shows
as a version that must not be visible.
"""

from __future__ import annotations

import logging
import mmap
import random
from collections import deque
from dataclasses import dataclass, field

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiBus, AxiMaster, AxiRam, AxiResp

PERIOD = 4
LINE = 64
GRANULE = 4096
BYTES = 1 << 16  # of the channel
LINES = BYTES // LINE
NVME = LINES // 2  # lines from here on are written by the NVMe controller only


@dataclass
class Access:
    """A burst; a write keeps the versions of its lines."""

    addr: int
    data: bytes = b""
    length: int = 0
    ident: int = 0
    size: int = 6
    cycle: int = 0  # of the address handshake
    versions_made: dict[int, int] = field(default_factory=dict)  # line: its version
    oldest_visible: dict[int, int] = field(default_factory=dict)  # load: oldest version that it may return
    number: int = 0  # store: index, from 0 on

    @property
    def lines(self) -> range:
        return range(self.addr // LINE, (self.addr + max(len(self.data), self.length) - 1) // LINE + 1)


@dataclass
class Command:
    """A command in flight: the lines of this channel that it reads and writes."""

    number: int
    ranges: tuple  # (first, last) on the media or None, of reads and writes
    reads: list[int]
    writes: list[int]
    data: dict[int, bytes]
    seen: dict[int, bytes] = field(default_factory=dict)  # expected content of its lines
    versions_made: dict[int, int] = field(default_factory=dict)
    issued: bool = False
    stores: int = 0  # stores that precede it
    restored: bool = False  # restored after a power cut


class Memory:
    """Memory at the port of the PM window; responses of different IDs come in any order."""

    def __init__(self, dut, mem, rng) -> None:
        self.dut, self.mem, self.rng = dut, mem, rng
        self.pause = 0.0
        self.latency = (1, 4)
        self.error_ids: set[int] = set()
        self.bursts: deque = deque()  # addresses with data to come
        self.writes: list = []  # (ready at, ID), oldest first
        self.reads: list = []  # (ready at, ID, beats)
        self.read = None
        self.now = 0
        for name in ("awready", "wready", "arready", "bvalid", "rvalid"):
            getattr(dut, f"m_pm_{name}").value = 0
        cocotb.start_soon(self.run())

    def accepts(self) -> bool:
        return self.rng.random() >= self.pause

    def pick(self, queue):
        """One of the due entries that are the oldest of their ID."""
        seen, due = set(), []
        for entry in queue:
            if entry[1] not in seen and entry[0] <= self.now:
                due.append(entry)
            seen.add(entry[1])
        return self.rng.choice(due) if due else None

    async def run(self) -> None:
        dut = self.dut
        answer = None
        while True:
            await RisingEdge(dut.clk_i)
            self.now += 1
            if not int(dut.rst_ni.value):
                self.bursts.clear()
                self.writes.clear()
                self.reads.clear()
                answer = self.read = None
                dut.m_pm_bvalid.value = dut.m_pm_rvalid.value = 0
                continue
            later = lambda: self.now + self.rng.randint(*self.latency)  # noqa: E731
            if int(dut.m_pm_bvalid.value) and int(dut.m_pm_bready.value):
                answer = None
            if int(dut.m_pm_rvalid.value) and int(dut.m_pm_rready.value):
                self.read[2].pop(0)
                if not self.read[2]:
                    self.read = None
            if int(dut.m_pm_wvalid.value) and int(dut.m_pm_wready.value):
                ident, addr, beats, size = self.bursts[0]
                strb, data = int(dut.m_pm_wstrb.value), int(dut.m_pm_wdata.value).to_bytes(LINE, "little")
                base = addr // LINE * LINE
                for i in range(LINE):
                    if strb >> i & 1:
                        self.mem[base + i] = data[i]
                is_last = int(dut.m_pm_wlast.value)
                assert is_last == (beats == 1)
                if is_last:
                    self.bursts.popleft()
                    self.writes.append((later(), ident))
                else:
                    self.bursts[0] = (ident, (addr & -(1 << size)) + (1 << size), beats - 1, size)
            if int(dut.m_pm_awvalid.value) and int(dut.m_pm_awready.value):
                self.bursts.append(self.address("aw"))
            if int(dut.m_pm_arvalid.value) and int(dut.m_pm_arready.value):
                ident, addr, beats, size = self.address("ar")
                out = []
                for _ in range(beats):
                    base = addr // LINE * LINE
                    out.append(int.from_bytes(self.mem[base : base + LINE], "little"))
                    addr = (addr & -(1 << size)) + (1 << size)
                self.reads.append((later(), ident, out))
            if answer is None and self.accepts():
                answer = self.pick(self.writes)
                if answer:
                    self.writes.remove(answer)
            dut.m_pm_bvalid.value = int(answer is not None)
            if answer:
                dut.m_pm_bid.value = answer[1]
                dut.m_pm_bresp.value = 2 if answer[1] in self.error_ids else 0
            if self.read is None and self.accepts():
                self.read = self.pick(self.reads)
                if self.read:
                    self.reads.remove(self.read)
            dut.m_pm_rvalid.value = int(self.read is not None)
            if self.read:
                dut.m_pm_rid.value, dut.m_pm_rresp.value = self.read[1], 0
                dut.m_pm_rdata.value, dut.m_pm_rlast.value = self.read[2][0], int(len(self.read[2]) == 1)
            dut.m_pm_awready.value = int(self.accepts() and len(self.bursts) < 30)
            dut.m_pm_wready.value = int(self.accepts())
            dut.m_pm_arready.value = int(self.accepts())

    def address(self, channel: str) -> tuple[int, int, int, int]:
        value = lambda what: int(getattr(self.dut, f"m_pm_{channel}{what}").value)  # noqa: E731
        assert value("burst") == 1
        return value("id"), value("addr"), value("len") + 1, value("size")


class Bench:
    def __init__(self, dut, seed: int, channels: int, channel: int) -> None:
        self.dut, self.rng = dut, random.Random(seed)
        self.channels, self.channel = channels, channel
        self.mem = mmap.mmap(-1, BYTES)
        self.mem[:] = self.rng.randbytes(BYTES)
        kwargs = {"reset": dut.rst_ni, "reset_active_level": False}
        self.pm = AxiMaster(AxiBus.from_prefix(dut, "s_pm"), dut.clk_i, **kwargs)
        self.nvme = AxiMaster(AxiBus.from_prefix(dut, "s_nvme"), dut.clk_i, **kwargs)
        self.ram = AxiRam(AxiBus.from_prefix(dut, "m_nvme"), dut.clk_i, size=BYTES, mem=self.mem, **kwargs)
        for name in (m for m in logging.root.manager.loggerDict if m.startswith("cocotb.filter_tb")):
            logging.getLogger(name).setLevel(logging.ERROR)
        self.memory = Memory(dut, self.mem, random.Random(seed + 1))
        self.versions = [[bytes(self.mem[i * LINE : (i + 1) * LINE])] for i in range(LINES)]
        self.visible = [0] * LINES  # newest version of each line that a response has confirmed
        self.durable = [0] * LINES  # newest durable version, without writes of commands
        # Accesses requested of the masters whose address is not accepted yet.
        self.queues: dict[str, deque[Access]] = {p + c: deque() for p in ("pm_", "nvme_") for c in ("aw", "ar")}
        self.order: deque[Access] = deque()  # stores without a response
        self.open_nvme: list[Access] = []
        self.commands: dict[int, Command] = {}
        self.ids_free = list(range(64))
        self.dead = False
        self.inserting: Command | None = None
        self.cycle = self.ended = self.stores = self.queued = 0
        self.most_lines = self.most_loads = 0
        for name in (
            *("freeze_i", "hold_i", "insert_valid_i", "insert_number_i", "insert_ranges_i", "insert_internal_i"),
            *("issue_valid_i", "issue_number_i", "retire_valid_i", "retire_number_i", "save_number_i"),
            *("restore_i", "restore_number_i", "restore_ranges_i", "restore_commands_i", "restore_lines_i"),
            *("queue_save_index_i", "queue_restore_i", "queue_restore_index_i", "queue_restore_data_i"),
        ):
            getattr(dut, name).value = 0
        cocotb.start_soon(Clock(dut.clk_i, PERIOD, unit="ns").start())
        cocotb.start_soon(self.monitor())

    async def reset(self) -> None:
        self.dut.rst_ni.value = 0
        await ClockCycles(self.dut.clk_i, 4)
        self.dut.rst_ni.value = 1
        await ClockCycles(self.dut.clk_i, 2)

    def pause(self, p: float, latency=(1, 4)) -> None:
        """Every channel of every port stalls in each cycle with this probability."""

        def stalls(rng):
            while True:
                yield rng.random() < p

        self.memory.pause, self.memory.latency = p, latency
        for port in (self.pm, self.nvme, self.ram):
            write, read = port.write_if, port.read_if
            for channel in (write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel):
                channel.set_pause_generator(stalls(random.Random(self.rng.random())))

    async def power_cut(self, traffic) -> None:
        """Resets the function and drops all traffic."""
        for task in traffic:
            task.cancel()
        self.dead = True  # requests to the masters end without a response
        self.dut.hold_i.value = self.dut.insert_valid_i.value = 0
        self.inserting = None
        await self.reset()
        for queue in (*self.queues.values(), self.order, self.open_nvme):
            queue.clear()

    # ------------------------------------------------------------ model

    def media(self, line: int) -> int:
        per = GRANULE // LINE
        return (line // per * self.channels + self.channel) * per + line % per

    def local(self, first: int, last: int) -> list[int]:
        """Lines of this channel in a range of the media."""
        per = GRANULE // LINE
        return [
            m // per // self.channels * per + m % per
            for m in range(first, last + 1)
            if m // per % self.channels == self.channel
        ]

    def write(self, access: Access) -> None:
        """Each beat makes a version of its line: 64 bytes are atomic, a narrow burst is not."""
        at, end = access.addr, access.addr + len(access.data)
        while at < end:
            line, step = at // LINE, 1 << access.size
            stop = min(end, (at // step + 1) * step)
            new = bytearray(self.versions[line][-1])
            new[at % LINE : at % LINE + stop - at] = access.data[at - access.addr : stop - access.addr]
            self.versions[line].append(bytes(new))
            access.versions_made[line] = len(self.versions[line]) - 1
            at = stop

    def note_visible(self, versions_made: dict[int, int]) -> None:
        for line, version in versions_made.items():
            self.visible[line] = max(self.visible[line], version)

    def note_durable(self, versions_made: dict[int, int]) -> None:
        """These versions survive a power cut."""
        for line, version in versions_made.items():
            self.durable[line] = max(self.durable[line], version)

    async def monitor(self) -> None:
        """Handshakes at the ports of the filter, in program order."""
        dut = self.dut

        def handshake(port: str) -> bool:
            return bool(int(getattr(dut, f"{port}valid").value) and int(getattr(dut, f"{port}ready").value))

        while True:
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            if not int(dut.rst_ni.value):
                continue
            if int(dut.inserted_o.value):
                self.note_insert(int(dut.insert_number_i.value))
            if handshake("s_pm_aw") and self.queues["pm_aw"]:
                access = self.queues["pm_aw"].popleft()
                assert access.addr == int(dut.s_pm_awaddr.value)
                access.cycle = self.cycle
                access.number = self.stores
                self.stores += 1
                self.write(access)
                self.order.append(access)
            if handshake("s_nvme_aw") and self.queues["nvme_aw"]:
                access = self.queues["nvme_aw"].popleft()
                self.write(access)
            for port in ("pm_ar", "nvme_ar"):
                if handshake(f"s_{port}"):
                    access = self.queues[port].popleft()
                    access.cycle = self.cycle
                    access.oldest_visible = {line: self.visible[line] for line in access.lines}
            if handshake("s_pm_b"):
                access = self.order.popleft()
                assert access.ident == int(dut.s_pm_bid.value), "responses in the order of the stores"
                self.note_visible(access.versions_made)
                self.note_durable(access.versions_made)
            self.queued += int(dut.store_queued_o.value)
            self.most_lines = max(self.most_lines, int(dut.lines_o.value))
            self.most_loads = max(self.most_loads, int(dut.loads_o.value))

    def note_insert(self, number: int) -> None:
        """Called by the first of `monitor` and `insert` that sees the insertion."""
        command = self.inserting
        if command is None or command.number != number:
            return
        for line in {*command.reads, *command.writes}:
            command.seen[line] = self.versions[line][-1]
        for line in command.writes:
            self.versions[line].append(command.data[line])
            command.versions_made[line] = len(self.versions[line]) - 1
        self.note_visible(command.versions_made)
        command.stores = self.stores
        self.commands[command.number] = command
        self.inserting = None

    # ------------------------------------------------------------ accesses

    async def store(self, addr: int, data: bytes, size: int = 6, ident: int | None = None) -> None:
        access = Access(addr, data, ident=self.rng.randrange(64) if ident is None else ident, size=size)
        self.queues["pm_aw"].append(access)
        done = await self.pm.write(addr, data, awid=access.ident, size=size)
        assert self.dead or done.resp == AxiResp.OKAY

    async def load(self, addr: int, length: int, size: int = 6, ident: int | None = None) -> bytes:
        access = Access(addr, length=length)
        self.queues["pm_ar"].append(access)
        done = await self.pm.read(addr, length, arid=self.rng.randrange(64) if ident is None else ident, size=size)
        return self.check(access, done)

    def nvme_write(self, addr: int, data: bytes):
        """The write is outstanding from the call on."""
        access = Access(addr, data)
        self.queues["nvme_aw"].append(access)
        self.open_nvme.append(access)

        async def write() -> None:
            done = await self.nvme.write(addr, data, awid=0, size=6)
            if self.dead:
                return
            assert done.resp == AxiResp.OKAY
            self.note_visible(access.versions_made)
            self.note_durable(access.versions_made)
            self.open_nvme.remove(access)

        return cocotb.start_soon(write())

    async def nvme_read(self, addr: int, length: int) -> bytes:
        access = Access(addr, length=length)
        self.queues["nvme_ar"].append(access)
        done = await self.nvme.read(addr, length, arid=0, size=6)
        return self.check(access, done)

    def check(self, access: Access, done) -> bytes:
        """Each line read has a version at least as new as the one visible when the load arrived."""
        if self.dead:
            return b""
        assert done.resp == AxiResp.OKAY
        for line in access.lines:
            start, end = max(access.addr, line * LINE), min(access.addr + access.length, (line + 1) * LINE)
            got = bytes(done.data[start - access.addr : end - access.addr])
            oldest = access.oldest_visible[line]
            may = [v[start - line * LINE : end - line * LINE] for v in self.versions[line][oldest:]]
            if got not in may:
                old = [v[start - line * LINE : end - line * LINE] for v in self.versions[line]]
                found = old.index(got) if got in old else "none"
                newest = len(old) - 1
                raise AssertionError(f"line {line} read at {access.cycle}: version {found}, not {oldest} to {newest}")
        return bytes(done.data)

    # ------------------------------------------------------------ commands

    def new_command(self, reads: tuple[int, int] | None, writes: tuple[int, int] | None) -> Command | None:
        """A command on ranges of the media."""
        read, written = (self.local(*r) if r else [] for r in (reads, writes))
        read, written = ([line for line in some if line < LINES] for some in (read, written))
        number = self.rng.choice(self.ids_free)
        data = {line: self.rng.randbytes(LINE) for line in written}
        return Command(number, (reads, writes), read, written, data)

    async def insert(self, command: Command) -> int:
        """Inserts a command as the command page does; returns the cycles that it took."""
        dut = self.dut
        self.ids_free.remove(command.number)
        self.inserting = command
        dut.hold_i.value = 1
        await RisingEdge(dut.clk_i)
        dut.insert_valid_i.value = 1
        dut.insert_number_i.value = command.number
        dut.insert_ranges_i.value = ranges(*command.ranges)
        cycles = 0
        while True:
            await RisingEdge(dut.clk_i)
            cycles += not int(dut.freeze_i.value)
            assert cycles <= 12, "insertion is bounded"
            if int(dut.inserted_o.value):
                self.note_insert(command.number)
                break
        dut.insert_valid_i.value = 0
        dut.hold_i.value = 0
        return cycles

    def lines(self, some) -> dict[int, bytes]:
        return {line: bytes(self.mem[line * LINE : (line + 1) * LINE]) for line in some}

    async def units(self, most: int = 4, quickest: int = 4, slowest: int = 60, when=lambda: True) -> None:
        """Issues ready commands, `most` at a time, and retires them some cycles later; until a freeze."""
        dut, running, ending = self.dut, [], deque()
        while True:
            await RisingEdge(dut.clk_i)
            if int(dut.freeze_i.value):
                dut.issue_valid_i.value = dut.retire_valid_i.value = 0
                return
            if int(dut.retire_valid_i.value):
                self.retire(int(dut.retire_number_i.value))
            dut.issue_valid_i.value = dut.retire_valid_i.value = 0
            for entry in running:
                if entry[0] == self.cycle:
                    self.write_data(entry[2])
                if entry[1] == self.cycle:
                    self.end_check(entry[2])
                    ending.append(entry[2])
            running = [entry for entry in running if entry[1] > self.cycle]
            if ending:
                command = ending.popleft()
                dut.retire_valid_i.value, dut.retire_number_i.value = 1, command.number
            ready = int(dut.ready_o.value)
            may = [c for n, c in self.commands.items() if ready >> n & 1 and not c.issued]
            if may and len(running) < most and when():
                command = self.rng.choice(may)
                self.issue_check(command)
                dut.issue_valid_i.value, dut.issue_number_i.value = 1, command.number
                write_at = self.cycle + self.rng.randint(2, slowest)
                running.append((write_at, write_at + self.rng.randint(2, quickest), command))

    def issue_check(self, command: Command) -> None:
        """All older accesses are in the memory, and no younger ones."""
        seen = {line: data for line, data in command.seen.items() if not command.restored or line in command.reads}
        assert self.lines(seen) == seen, f"command {command.number} begins"
        command.issued = True

    def write_data(self, command: Command) -> None:
        for line, data in command.data.items():
            self.mem[line * LINE : (line + 1) * LINE] = data

    def end_check(self, command: Command) -> None:
        read = [line for line in command.reads if line not in command.data]
        assert self.lines(read) == {line: command.seen[line] for line in read}, f"command {command.number} ends"
        assert self.lines(command.data) == command.data, f"command {command.number} ends"

    def retire(self, number: int) -> None:
        del self.commands[number]
        self.ids_free.append(number)
        self.ended += 1


def ranges(reads, writes) -> int:
    """Packs both ranges as `ranges_t`."""

    def one(pair) -> int:
        return 0 if pair is None else 1 << 76 | pair[0] << 38 | pair[1]

    return one(reads) << 77 | one(writes)
