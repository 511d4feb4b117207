# SPDX-License-Identifier: Apache-2.0
"""Models around nvme_data_tb: memories with AXI slaves, a driver that checks the protocol, and PRP
building."""

from __future__ import annotations

import heapq
import os
import random
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

PAGE = 4096
OK, BAD_PRP, HOST_ERROR, READ_ERROR, WRITE_FAULT, MISMATCH, OUT_OF_RANGE = range(7)  # data_status_e
BAD_SEGMENT, BAD_COUNT, BAD_LENGTH, BAD_TYPE, BAD_GRANULARITY, INTERRUPTED, ABORTED, DELETED = range(7, 15)
BLOCK, BUCKET, SEGMENT, LAST_SEGMENT = 0x00, 0x10, 0x20, 0x30  # SGL descriptor types
READ, WRITE, COMPARE, ZERO, VERIFY, DEALLOCATE = range(6)  # data_op_e
AX_BITS, W_BITS, B_BITS, R_BITS = 89, 577, 14, 527
DATA_MASK = (1 << 512) - 1
FULL = (1 << 64) - 1
ADMIN = 1 << 63


class Memory:
    """Bytes from `base` on; anything else answers DECERR. `read_error` and `write_error`: addresses
    that SLVERR."""

    def __init__(self, base: int, size: int, seed: int) -> None:
        self.base = base
        self.data = bytearray(random.Random(seed).randbytes(size))
        self.read_error: set[int] = set()
        self.write_error: set[int] = set()

    def read(self, addr: int, length: int) -> bytes:
        offset = addr - self.base
        assert 0 <= offset <= len(self.data) - length, f"outside: {addr:x}"
        return bytes(self.data[offset : offset + length])

    def write(self, addr: int, data: bytes) -> None:
        offset = addr - self.base
        assert 0 <= offset <= len(self.data) - len(data), f"outside: {addr:x}"
        self.data[offset : offset + len(data)] = data

    def beat(self, addr: int) -> tuple[int, int]:
        """The 64-byte beat at an aligned address, and its response."""
        offset = addr - self.base
        if offset < 0 or offset + 64 > len(self.data):
            return 0xDEAD, 3
        return int.from_bytes(self.data[offset : offset + 64], "little"), 2 * (addr in self.read_error)

    def refuses(self, addr: int) -> int:
        """The response to a write of a beat."""
        offset = addr - self.base
        return 3 if offset < 0 or offset + 64 > len(self.data) else 2 * (addr in self.write_error)

    def store(self, addr: int, data: int, strobes: int) -> None:
        """Writes a beat that is not refused."""
        offset = addr - self.base
        if strobes == FULL:
            self.data[offset : offset + 64] = data.to_bytes(64, "little")
        else:
            for i, byte in enumerate(data.to_bytes(64, "little")):
                if strobes >> i & 1:
                    self.data[offset + i] = byte


@dataclass
class Timing:
    """How a side answers: probabilities of ready and of a due response, latencies in cycles."""

    ready: float = 1.0
    write_ready: bool = True  # off: no write proceeds
    respond: float = 1.0
    latency: Callable[[], int] = lambda: 1
    # Each line is read or written at a separate time, up to this many cycles late; one ID's writes
    # in order.
    line_spread: int = 0


@dataclass
class Port:
    """State of one AXI slave port."""

    reads: dict[int, deque] = field(default_factory=dict)  # ID -> [due, address, last, beat]
    # Accepted addresses whose data is to come: [addr, beats, id, resp, all written].
    writes: deque = field(default_factory=deque)
    # line -> when its latest write takes place
    written: dict[int, int] = field(default_factory=dict)
    early: deque = field(default_factory=deque)  # data that arrived before their address
    answers: deque = field(default_factory=deque)  # (due, id, resp)
    read_due: int = 0
    write_due: int = 0
    aw_ready: int = 1
    w_ready: int = 1
    ar_ready: int = 1
    r: tuple | None = None  # offered
    b: tuple | None = None


class Side:
    """The AXI slaves of all ports of one side, before one memory."""

    def __init__(self, dut, name: str, ports: int, memory: Memory, rng: random.Random, writes: bool = True) -> None:
        self.name, self.memory, self.rng, self.has_writes = name, memory, rng, writes
        self.timing = Timing()
        self.ports = [Port() for _ in range(ports)]
        self.read_beats = [0] * ports
        self.write_beats = [0] * ports
        self.bursts = 0
        self.outstanding = 0  # read beats
        self.outstanding_max = 0
        self.check: Callable[[int, int, int, bool], None] = lambda port, addr, length, write: None
        for channel in ("aw", "w", "b", "ar", "r") if writes else ("ar", "r"):
            for suffix in ("", "_valid", "_ready"):
                out = (channel in ("b", "r")) == (suffix == "_ready")
                signal = getattr(dut, f"{name}_{channel}{suffix}_{'o' if out else 'i'}")
                setattr(self, channel + suffix, signal)
                if not out:
                    signal.value = 0
        self.driven: dict[str, int] = {}
        # (when, number, action on a line)
        self.late: list[tuple[int, int, Callable[[], None]]] = []
        self.late_count = 0

    def _later(self, when: int, action: Callable[[], None]) -> None:
        self.late_count += 1
        heapq.heappush(self.late, (when, self.late_count, action))

    def _drive(self, name: str, value: int) -> None:
        if self.driven.get(name) != value:
            self.driven[name] = value
            getattr(self, name).value = value

    def _burst(self, port: int, ax: int, write: bool) -> tuple[int, int, int]:
        """Checks an address against the rules of m_axi_host; returns address, beats, ID."""
        addr, burst, size = ax & FULL, ax >> 64 & 3, ax >> 66 & 7
        length, ident = (ax >> 69 & 0xFF) + 1, ax >> 77
        assert (burst, size) == (1, 6), f"{self.name}{port}: not INCR of 64 bytes"
        assert addr % 4 == 0, f"{self.name}{port}: {addr:x} is not a dword address"
        last = (addr & ~63) + 64 * length - 1
        assert addr >> 12 == last >> 12, f"{self.name}{port}: {addr:x} +{length} crosses a page"
        self.check(port, addr, length, write)
        self.bursts += 1
        return addr, length, ident

    def step(self, now: int) -> None:
        """One clock edge: accepts what was transferred, then drives the next cycle."""
        timing, rng = self.timing, self.rng
        while self.late and self.late[0][0] <= now:
            heapq.heappop(self.late)[2]()
        aw_valid = w_valid = b_ready = 0
        if self.has_writes:
            aw_valid, w_valid = int(self.aw_valid.value), int(self.w_valid.value)
            b_ready = int(self.b_ready.value)
        ar_valid, r_ready = int(self.ar_valid.value), int(self.r_ready.value)
        aw = int(self.aw.value) if aw_valid else 0
        w = int(self.w.value) if w_valid else 0
        ar = int(self.ar.value) if ar_valid else 0
        r_all = b_all = r_valid = b_valid = aw_ready = w_ready = ar_ready = 0
        for i, p in enumerate(self.ports):
            if ar_valid >> i & 1 and p.ar_ready:
                addr, length, ident = self._burst(i, ar >> i * AX_BITS & (1 << AX_BITS) - 1, False)
                queue = p.reads.setdefault(ident, deque())
                p.read_due = due = max(now + timing.latency() + timing.line_spread, p.read_due if queue else 0)
                for k in range(length):
                    line = [due, (addr & ~63) + 64 * k, k == length - 1, None]
                    queue.append(line)
                    if timing.line_spread:
                        self._later(now + rng.randrange(timing.line_spread), lambda line=line: self._sample(line))
                self.outstanding += length
                self.outstanding_max = max(self.outstanding_max, self.outstanding)
            if aw_valid >> i & 1 and p.aw_ready:
                addr, length, ident = self._burst(i, aw >> i * AX_BITS & (1 << AX_BITS) - 1, True)
                p.writes.append([addr, length, ident, 0, 0])
                while p.early and p.writes:
                    self._beat(now, i, p, p.early.popleft())
            if w_valid >> i & 1 and p.w_ready:
                beat = w >> i * W_BITS & (1 << W_BITS) - 1
                if p.writes and not p.early:
                    self._beat(now, i, p, beat)
                else:
                    p.early.append(beat)
                    assert len(p.early) <= 64, f"{self.name}{i}: data without an address"
            if p.r is not None and r_ready >> i & 1:
                self.read_beats[i] += 1
                self.outstanding -= 1
                p.r = None
            if p.b is not None and b_ready >> i & 1:
                p.b = None
            # Next cycle.
            if p.r is None and any(p.reads.values()) and (timing.respond >= 1 or rng.random() < timing.respond):
                due = [ident for ident, queue in p.reads.items() if queue and queue[0][0] <= now]
                if due:
                    ident = due[0] if len(due) == 1 else rng.choice(due)
                    _, addr, last, beat = p.reads[ident].popleft()
                    data, resp = beat or self.memory.beat(addr)
                    p.r = (ident << 515 | resp << 513 | last << 512 | data,)
            due = p.b is None and p.answers and p.answers[0][0] <= now
            if due and (timing.respond >= 1 or rng.random() < timing.respond):
                _, ident, resp = p.answers.popleft()
                p.b = (ident << 2 | resp,)
            if timing.ready < 1:
                p.aw_ready, p.w_ready, p.ar_ready = (rng.random() < timing.ready for _ in range(3))
            else:
                p.aw_ready = p.w_ready = p.ar_ready = 1
            if not timing.write_ready:
                p.aw_ready = p.w_ready = 0
            aw_ready |= p.aw_ready << i
            w_ready |= p.w_ready << i
            ar_ready |= p.ar_ready << i
            if p.r is not None:
                r_valid |= 1 << i
                r_all |= p.r[0] << i * R_BITS
            if p.b is not None:
                b_valid |= 1 << i
                b_all |= p.b[0] << i * B_BITS
        self._drive("ar_ready", ar_ready)
        self._drive("r_valid", r_valid)
        if r_valid:
            self._drive("r", r_all)
        if self.has_writes:
            self._drive("aw_ready", aw_ready)
            self._drive("w_ready", w_ready)
            self._drive("b_valid", b_valid)
            if b_valid:
                self._drive("b", b_all)

    def _beat(self, now: int, i: int, p: Port, beat: int) -> None:
        burst = p.writes[0]
        last = burst[1] == 1
        assert beat >> 576 == last, f"{self.name}{i}: last in the wrong place"
        addr, data, strobes = burst[0] & ~63, beat & DATA_MASK, beat >> 512 & FULL
        # From the burst's first byte to its last one, without a gap.
        from_top = strobes >> burst[0] % 64
        assert strobes == from_top << burst[0] % 64, f"{self.name}{i}: strobes {strobes:x} before {burst[0]:x}"
        assert from_top & 1, f"{self.name}{i}: strobes {strobes:x} begin beyond {burst[0]:x}"
        assert not from_top & from_top + 1, f"{self.name}{i}: strobes {strobes:x} have a gap"
        assert last or strobes >> 63, f"{self.name}{i}: strobes {strobes:x} end before the last beat"
        response = self.memory.refuses(addr)
        burst[3] = burst[3] or response
        if not response and self.timing.line_spread:
            when = max(now + self.rng.randrange(self.timing.line_spread), p.written.get(addr, 0))
            p.written[addr] = when
            burst[4] = max(burst[4], when)
            self._later(when, lambda: self.memory.store(addr, data, strobes))
        elif not response:
            self.memory.store(addr, data, strobes)
        burst[0] = addr + 64
        burst[1] -= 1
        self.write_beats[i] += 1
        if last:
            p.writes.popleft()
            p.write_due = due = max(now + self.timing.latency(), burst[4] + 1, p.write_due if p.answers else 0)
            p.answers.append((due, burst[2], burst[3]))

    def _sample(self, line: list) -> None:
        line[3] = self.memory.beat(line[1])

    @property
    def quiet(self) -> bool:
        """Nothing is outstanding."""
        return not any(p.writes or p.early or p.answers or p.b or p.r or any(p.reads.values()) for p in self.ports)


@dataclass
class Command:
    """One data command and, after a run, how it ended."""

    write: bool
    mem: int
    size: int
    prp1: int
    prp2: int = 0
    pages: list[int] = field(default_factory=list)  # addresses of its parts in host memory
    op: int | None = None  # none: READ or WRITE, according to `write`
    sgl: bool = False
    spans: list[tuple[int, int, int]] | None = None  # with an SGL: its parts
    # address and length of what becomes zero on the media
    zeroed: list[tuple[int, int]] = field(default_factory=list)
    delay: int = 0  # cycles after the start of the run before which it is not sent
    slot: int = -1
    status: int | None = None
    started: int = 0
    ended: int = 0

    def parts(self) -> list[tuple[int, int, int]]:
        """(host address, media address, length) of each page or span."""
        if self.spans is not None:
            return self.spans
        result, done = [], 0
        for page in self.pages:
            length = min(PAGE - page % PAGE, self.size - done)
            result.append((page, self.mem + done, length))
            done += length
        return result


class Env:
    """The test top with its memories; `run` feeds commands and waits for all to end."""

    HOST_BASE = 0x0000_7F12_0000_0000

    def __init__(
        self, dut, seed: int = 1, host_bytes: int = 8 << 20, mem_bytes: int = 8 << 20, span_bytes: int = 0
    ) -> None:
        self.dut, self.rng = dut, random.Random(seed)
        self.channels = len(dut.mem_aw_valid_o)
        self.granule = int(os.environ.get("GRANULE", "4096"))
        self.host = Memory(self.HOST_BASE, host_bytes, seed)
        self.media = Memory(0, mem_bytes, seed + 1)
        self.admin = Memory(0, 16384, seed + 2)
        self.host_side = Side(dut, "host", self.channels + 1, self.host, self.rng)
        self.mem_side = Side(dut, "mem", self.channels, self.media, self.rng)
        self.adm_side = Side(dut, "adm", 1, self.admin, self.rng, writes=False)
        self.mem_side.check = self._own_channel
        self.sides = [self.host_side, self.mem_side, self.adm_side]
        self.now = 0
        self.pages = list(range((host_bytes - span_bytes) // PAGE))
        self.span_at = self.host.base + host_bytes - span_bytes
        self.rng.shuffle(self.pages)
        self.done_ready = 1.0
        self.on_cycle: Callable[[], None] = lambda: None

    def _own_channel(self, port: int, addr: int, length: int, write: bool) -> None:
        assert addr // self.granule % self.channels == port, f"mem{port}: {addr:x} is another channel's"

    async def reset(self) -> None:
        self.dut.rst_ni.value = 0
        for name in ("stop", "quiesce", "abort_valid", "abort_slot", "abort_current", "abort_deleted"):
            getattr(self.dut, f"{name}_i").value = 0
        self.dut.cmd_valid_i.value = 0
        self.dut.cmd_i.value = 0
        self.dut.done_ready_i.value = 0
        cocotb.start_soon(Clock(self.dut.clk_i, 4, "ns").start())
        for _ in range(4):
            await RisingEdge(self.dut.clk_i)
        self.dut.rst_ni.value = 1
        await RisingEdge(self.dut.clk_i)

    # Building commands. Host pages are never used twice, so that every byte belongs to one command.

    def page(self) -> int:
        """A fresh page of host memory."""
        return self.host.base + PAGE * self.pages.pop()

    def command(self, write: bool, mem: int, size: int, offset: int = 0, list_offset: int | None = None) -> Command:
        """A command with scattered pages. offset: of PRP1. list_offset: of the list in its page, in
        bytes."""
        first = self.page() + offset
        command = Command(write, mem, size, first, pages=[first])
        left = size - min(size, PAGE - offset)
        while left > 0:
            command.pages.append(self.page())
            left -= min(left, PAGE)
        rest = command.pages[1:]
        if len(rest) == 1:
            command.prp2 = rest[0]
        elif rest:
            at = 8 * self.rng.randrange(512) if list_offset is None else list_offset
            command.prp2 = self.prp_list(rest, at)
        else:
            command.prp2 = self.rng.getrandbits(64)  # must be ignored
        return command

    def span(self, size: int, align: int = 4) -> int:
        """Fresh host memory in one piece, with a gap before it."""
        gap = self.rng.choice((4, 4 * self.rng.randrange(1, 200)))
        start = -(-(self.span_at + gap) // align) * align
        self.span_at = start + size
        assert self.span_at <= self.host.base + len(self.host.data), "the test needs more host memory"
        return start

    def sgl_command(self, op: int, mem: int, descriptors: list[tuple[int, int, int]], size: int = 0) -> Command:
        """A command whose data the descriptors (type, address, length) describe; `size`: if that is
        less."""
        spans, at = [], mem
        end = mem + (size or sum(n for kind, _, n in descriptors if kind == BLOCK or op == READ))
        for kind, address, length in descriptors:
            if kind == BLOCK and at < end and length:
                spans.append((address, at, min(length, end - at)))
            if kind == BLOCK or op == READ:
                at += length
        command = Command(op != READ, mem, end - mem, 0, op=op, sgl=True, spans=spans)
        if op == COMPARE:
            for address, at, length in spans:
                self.host.write(address, self.media.read(at, length))
        return command

    def sgl(self, command: Command, segments: list[list[tuple[int, int, int]]], last: bool = True) -> Command:
        """Writes the segments, each but the last with a descriptor of the next one added. The first
        is inline if alone and of one descriptor."""
        pointer = None
        for i, segment in reversed(list(enumerate(segments))):
            entries = [*segment, *([pointer] if pointer else [])]
            if i == 0 and len(entries) == 1:
                pointer = entries[0]
                break
            data = b"".join(self.descriptor(*entry) for entry in entries)
            where = self.span(len(data), 8)
            self.host.write(where, data)
            pointer = (LAST_SEGMENT if last and i == len(segments) - 1 else SEGMENT, where, len(data))
        command.prp1, command.prp2 = struct.unpack("<QQ", self.descriptor(*pointer))
        return command

    def descriptor(self, kind: int, address: int, length: int) -> bytes:
        """An SGL descriptor; its reserved bytes are random."""
        return struct.pack("<QI", address, length) + self.rng.randbytes(3) + bytes([kind])

    def compare(self, mem: int, size: int, offset: int = 0) -> Command:
        """A Compare whose host data equals what the media has now."""
        command = self.command(True, mem, size, offset)
        command.op = COMPARE
        for page, at, length in command.parts():
            self.host.write(page, self.media.read(at, length))
        return command

    def zero(self, mem: int, size: int) -> Command:
        """Zeros; PRPs must be ignored."""
        prps = self.rng.getrandbits(64), self.rng.getrandbits(64)
        return Command(True, mem, size, *prps, op=ZERO, zeroed=[(mem, size)])

    def verify(self, mem: int, size: int) -> Command:
        """A read without a target."""
        return Command(False, mem, size, self.rng.getrandbits(64), self.rng.getrandbits(64), op=VERIFY)

    def deallocate(self, ranges: list[tuple[int, int]], offset: int = 0) -> Command:
        """Ranges of (LBA, blocks), their list at an offset of its page."""
        entries = b"".join(struct.pack("<IIQ", self.rng.getrandbits(32), n, lba) for lba, n in ranges)
        first = self.page()
        command = Command(True, 0, len(entries), first + offset, self.rng.getrandbits(64), op=DEALLOCATE)
        self.host.write(first + offset, entries[: PAGE - offset])
        if len(entries) > PAGE - offset:
            command.prp2 = self.page()
            self.host.write(command.prp2, entries[PAGE - offset :])
        command.zeroed = [(512 * lba, 512 * n) for lba, n in ranges]
        return command

    def prp_list(self, entries: list[int], offset: int) -> int:
        """Writes a list, chained where it leaves its page; returns its address."""
        pointer = self.page() + offset
        at = pointer
        for i, entry in enumerate(entries):
            if at % PAGE == PAGE - 8 and i < len(entries) - 1:
                chained = self.page()
                self.host.write(at, chained.to_bytes(8, "little"))
                at = chained
            self.host.write(at, entry.to_bytes(8, "little"))
            at += 8
        return pointer

    def expect(self, commands: list[Command]) -> tuple[bytearray, bytearray]:
        """Host memory and media after the commands."""
        host, media = bytearray(self.host.data), bytearray(self.media.data)
        for command in commands:
            for mem, length in command.zeroed:
                media[mem : mem + length] = bytes(length)
            if command.op not in (None, READ, WRITE):
                continue
            for page, mem, length in command.parts():
                at = page - self.host.base
                if command.write:
                    media[mem : mem + length] = self.host.data[at : at + length]
                elif mem & ADMIN:
                    mem -= ADMIN
                    host[at : at + length] = self.admin.data[mem : mem + length]
                else:
                    host[at : at + length] = self.media.data[mem : mem + length]
        return host, media

    async def run(self, commands: list[Command], depth: int = 64, bound: int = 0) -> int:
        """Keeps `depth` commands in flight until all have ended; returns the cycles. Checks one end
        for each."""
        dut = self.dut
        slots = list(range(min(depth, 64)))
        self.rng.shuffle(slots)
        waiting, in_flight = deque(commands), {}
        start = self.now
        total = sum(c.size + sum(length for _, length in c.zeroed) for c in commands)
        bound = bound or 4000 + 100 * len(commands) + total + max(
            (c.delay for c in commands), default=0
        )  # far above what any timing here needs
        offered = None
        ready = 0
        ended = 0
        while ended < len(commands) or offered is not None:
            await RisingEdge(dut.clk_i)
            self.now += 1
            if offered is not None and int(dut.cmd_ready_o.value):
                in_flight[offered.slot] = offered
                offered = None
            if ready and int(dut.done_valid_o.value):
                done = int(dut.done_o.value)
                slot, status = done >> 4, done & 15
                assert slot in in_flight, f"slot {slot} ended and was not in flight"
                command = in_flight.pop(slot)
                command.status, command.ended = status, self.now
                slots.append(slot)
                ended += 1
            for side in self.sides:
                side.step(self.now)
            if offered is None and waiting and slots and self.now - start >= waiting[0].delay:
                offered = waiting.popleft()
                offered.slot = slots.pop(0)
                offered.started = self.now
                op = int(offered.write) if offered.op is None else offered.op
                fields = ((offered.slot, 8), (op, 3), (offered.sgl, 1), (0, 4), (offered.size, 26), (offered.mem, 64))
                word = 0
                for value, bits in (*fields, (offered.prp1, 64), (offered.prp2, 64)):
                    word = word << bits | value
                dut.cmd_i.value = word
                dut.cmd_valid_i.value = 1
            elif offered is None:
                dut.cmd_valid_i.value = 0
            self.on_cycle()
            ready = self.rng.random() < self.done_ready
            dut.done_ready_i.value = int(ready)
            assert self.now - start < bound, f"hang: {ended} of {len(commands)} ended after {bound} cycles"
        cycles = self.now - start
        for _ in range(20):  # nothing may follow
            await RisingEdge(dut.clk_i)
            self.now += 1
            assert not (ready and int(dut.done_valid_o.value)), "a command ended twice"
            for side in self.sides:
                side.step(self.now)
        assert all(side.quiet for side in self.sides), "transactions outstanding after the end"
        assert int(dut.busy_o.value) == 0, "busy after the end"
        return cycles

    async def copy(self, commands: list[Command], depth: int = 64) -> int:
        """Runs commands that must succeed, and compares all of both memories; returns the
        cycles."""
        host, media = self.expect(commands)
        cycles = await self.run(commands, depth)
        for command in commands:
            assert command.status == OK, f"{command} failed"
        assert host == self.host.data, f"host memory differs: {_difference(host, self.host.data)}"
        assert media == self.media.data, f"media differs: {_difference(media, self.media.data)}"
        return cycles


def _difference(expected: bytearray, found: bytearray) -> str:
    at = [i for i, (a, b) in enumerate(zip(expected, found, strict=True)) if a != b]
    return f"{len(at)} bytes from {at[0]:x} to {at[-1]:x}"
