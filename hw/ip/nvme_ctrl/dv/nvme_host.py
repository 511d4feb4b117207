# SPDX-License-Identifier: Apache-2.0
"""A small NVMe host around nvme_ctrl_tb: memories, register access, queues, and the checks that
hold in every test.

All writes of the controller to the host are logged in order and checked. A completion queue entry
is one 16-byte write to an entry that the host has consumed before, with the phase that the host
expects.
"""

from __future__ import annotations

import random
import struct
from collections import deque
from dataclasses import dataclass, field
from itertools import count

import cocotb
import identify_model as model
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiSlave
from nvme_coverage import Monitor

PAGE = 4096
CAP, VS, INTMS, INTMC, CC, CSTS, AQA, ASQ, ACQ = 0x00, 0x08, 0x0C, 0x10, 0x14, 0x1C, 0x24, 0x28, 0x30
DOORBELLS, TABLE, PBA = 0x1000, 0x2000, 0x3000
CC_SIZES = 6 << 16 | 4 << 20
MSI = 0xFEE0_0000
RDY, CFS = 1, 2
PATIENCE = 20_000  # cycles that any operation may take
KHZ = 20  # ClockKhz of the test top

# Status field: SCT << 8 | SC; DNR separately.
OK = 0x000
FAILED_FUSED, MISSING_FUSED, INTERRUPTED = 0x009, 0x00A, 0x021
INVALID_OPCODE, INVALID_FIELD, DATA_TRANSFER, ABORT_REQUESTED, SQ_DELETION = 0x001, 0x002, 0x004, 0x007, 0x008
INTERNAL_ERROR, KEEP_ALIVE_EXPIRED, KEEP_ALIVE_INVALID = 0x006, 0x019, 0x01A
WRITE_FAULT, READ_ERROR, COMPARE_FAILURE = 0x280, 0x281, 0x285
SGL_SEGMENT, SGL_COUNT, SGL_LENGTH, SGL_TYPE, SGL_GRANULARITY = 0x00D, 0x00E, 0x00F, 0x011, 0x01E
INVALID_NAMESPACE, SEQUENCE_ERROR, PRP_OFFSET, LBA_RANGE = 0x00B, 0x00C, 0x013, 0x080
CQ_INVALID, INVALID_QID, INVALID_SIZE, AER_LIMIT = 0x100, 0x101, 0x102, 0x105
INVALID_VECTOR, INVALID_LOG, INVALID_DELETION = 0x108, 0x109, 0x10C
NOT_SAVEABLE, NOT_NAMESPACE = 0x10D, 0x10F
FORMAT_IN_PROGRESS, INVALID_FORMAT = 0x084, 0x10A

# Log pages, and asynchronous events: log << 16 | information << 8 | type.
SUPPORTED_LOGS, ERROR_LOG, SMART_LOG, FIRMWARE_LOG, CHANGED_NS, EFFECTS_LOG = range(6)
BAD_REGISTER, BAD_VALUE = 1 << 16, 1 << 16 | 1 << 8
TEMPERATURE, NS_CHANGED = 2 << 16 | 1 << 8 | 1, 4 << 16 | 2


class Timeout(AssertionError):
    """Something took longer than PATIENCE."""


class Refused(Exception):
    """An access to an address at which the memory answers with an error."""


class Memory:
    """Target of an AXI slave. Logs writes, and refuses accesses outside or in `refuse`."""

    def __init__(self, size: int) -> None:
        self.data = bytearray(size)
        self.refuse: list[range] = []
        self.on_write = None
        self.on_read = None
        self.reads: list[int] = []

    def _check(self, address: int, length: int) -> None:
        if address + length > len(self.data) or any(address in r for r in self.refuse):
            raise Refused(hex(address))

    async def read(self, address: int, length: int) -> bytes:
        self.reads.append(address)
        if self.on_read:
            self.on_read(address)
        self._check(address, length)
        return bytes(self.data[address : address + length])

    async def write(self, address: int, data: bytes) -> None:
        if self.on_write and self.on_write(address, bytes(data)):
            return
        self._check(address, len(data))
        self.data[address : address + len(data)] = data


@dataclass
class Completion:
    """A completion queue entry."""

    dw0: int
    sqhd: int
    sqid: int
    cid: int
    status: int  # SCT << 8 | SC
    dnr: bool
    phase: int = 0


@dataclass
class CompletionQueue:
    """Host side of a completion queue: entries are consumed by `Host.poll`."""

    qid: int
    base: int
    entries: int
    vector: int | None = 0
    head: int = 0
    phase: int = 1
    written: int = 0  # entries written and not consumed, as seen by the checker
    tail: int = 0  # where the checker expects the next
    tail_phase: int = 1
    hold: bool = False  # do not consume


@dataclass
class SubmissionQueue:
    """Host side of a submission queue."""

    qid: int
    base: int
    entries: int
    cq: CompletionQueue
    tail: int = 0
    head: int = 0  # as reported by SQHD
    cids: count = field(default_factory=lambda: count(1))

    def room(self) -> int:
        return (self.head - self.tail - 1) % self.entries


class Host:
    """Drives one controller."""

    def __init__(self, dut, mem_bytes: int | None = None, seed: int = 0) -> None:
        self.dut = dut
        self.identity = model.Identity.random(random.Random(f"identity {cocotb.RANDOM_SEED + seed}"))
        self.rng = random.Random(cocotb.RANDOM_SEED + seed)
        self.queues = int(dut.NumIoQueues.value) if hasattr(dut, "NumIoQueues") else 4
        self.memory = Memory(16 << 20)
        self.media = Memory(mem_bytes or 4 << 20)
        self.memory.on_write = self._host_write
        self.coverage = Monitor(self)
        self.memory.on_read = self._host_read
        self.cqs: dict[int, CompletionQueue] = {}
        self.sqs: dict[int, SubmissionQueue] = {}
        self.done: dict[tuple[int, int], Completion] = {}
        self.interrupts: list[int] = []  # message data, in order
        # ("data", address, length), ("cqe", qid), ("msi", data), in order
        self.log: list[tuple] = []
        self.allocator = PAGE
        # the controller may not read or write host memory: RDY fell, or SHST reported complete
        self.quiet = False
        self.started = False
        self.patience = PATIENCE  # cycles that a command may take
        self.shadow: tuple[int, int] | None = None  # pages of shadow doorbells and EventIdx
        self.doorbells = [0, 0]  # of I/O queues: changes, register writes
        self.acre = False  # this host accepts Command Interrupted

    # Start-up.

    async def power_up(self) -> None:
        """Clock, reset, and the bus models."""
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk_i, 4, "ns").start())
        dut.msix_enable_i.value = 0
        dut.msix_mask_i.value = 0
        dut.serial_i.value = int.from_bytes(self.identity.serial.encode().ljust(20), "big")
        dut.eui64_i.value = self.identity.eui64
        dut.skipped_i.value = 0
        dut.temperature_i.value = 308
        dut.ns_changed_i.value = 0
        dut.rst_ni.value = 0
        kw = {"reset": dut.rst_ni, "reset_active_level": False}
        self.bar = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk_i, **kw)
        self.host_slave = AxiSlave(AxiBus.from_prefix(dut, "m_axi_host"), dut.clk_i, target=self.memory, **kw)
        self.mem_slave = AxiSlave(AxiBus.from_prefix(dut, "m_axi_mem"), dut.clk_i, target=self.media, **kw)
        for thing in (self.bar.write_if, self.bar.read_if, self.host_slave, self.mem_slave):
            for part in (thing, getattr(thing, "write_if", None), getattr(thing, "read_if", None)):
                if part is not None and hasattr(part, "log"):
                    part.log.setLevel("ERROR")
        await ClockCycles(dut.clk_i, 5)
        dut.rst_ni.value = 1
        await ClockCycles(dut.clk_i, 5)
        self.started = True

    def pauses(self, chance: float) -> None:
        """Random back-pressure on every channel of both memories, and on the registers'
        responses."""

        def generator():
            while True:
                yield self.rng.random() < chance

        for slave in (self.host_slave, self.mem_slave):
            w, r = slave.write_if, slave.read_if
            for channel in (w.aw_channel, w.w_channel, w.b_channel, r.ar_channel, r.r_channel):
                channel.set_pause_generator(generator())
        for channel in (self.bar.write_if.b_channel, self.bar.read_if.r_channel):
            channel.set_pause_generator(generator())

    def stall(self, side, stop: bool) -> None:
        """Stops, or releases, all responses of a memory."""
        side.read_if.r_channel.pause = stop
        side.write_if.b_channel.pause = stop

    # Host memory.

    def alloc(self, size: int, align: int = PAGE) -> int:
        start = -(-self.allocator // align) * align
        self.allocator = start + size
        assert self.allocator <= len(self.memory.data), "the test needs more host memory"
        return start

    def _host_read(self, address: int) -> None:
        assert not self.quiet, f"read of {address:#x} after the controller had to be silent"
        self.coverage.read(address)

    def _host_write(self, address: int, data: bytes) -> bool:
        assert not self.quiet, f"write to {address:#x} after the controller had to be silent"
        if address & ~0xFFF == MSI:
            assert len(data) == 4, "a message is a dword"
            vector = (address & 0xFFF) // 4
            self.interrupts.append(struct.unpack("<I", data)[0])
            self.log.append(("msi", vector))
            self.coverage.message(vector)
            return True
        for cq in self.cqs.values():
            if cq.base <= address < cq.base + 16 * cq.entries:
                assert len(data) == 16, f"an entry is written whole: {len(data)} bytes"
                assert address == cq.base + 16 * cq.tail, f"CQ {cq.qid}: expected entry {cq.tail}, got {address:#x}"
                assert data[14] & 1 == cq.tail_phase, f"CQ {cq.qid} entry {cq.tail}: phase"
                cq.written += 1
                assert cq.written < cq.entries, f"CQ {cq.qid}: an entry was overwritten"
                cq.tail = (cq.tail + 1) % cq.entries
                cq.tail_phase ^= cq.tail == 0
                self.log.append(("cqe", cq.qid))
                self.coverage.write(address, data)
                return False
        self.log.append(("data", address, len(data)))
        self.coverage.write(address, data)
        return False

    # Registers.

    async def read(self, offset: int) -> int:
        return await self._within(self.bar.read_dword(offset))

    async def write(self, offset: int, value: int) -> None:
        self.coverage.register(offset, value)
        if offset == CC and value & 1 and not value >> 14 & 3:
            self.quiet = False
        await self._within(self.bar.write_dword(offset, value))

    async def read64(self, offset: int) -> int:
        return await self.read(offset) | await self.read(offset + 4) << 32

    async def write64(self, offset: int, value: int) -> None:
        await self.write(offset, value & 0xFFFF_FFFF)
        await self.write(offset + 4, value >> 32)

    async def _within(self, coroutine):
        task = cocotb.start_soon(coroutine)
        for _ in range(PATIENCE):
            if task.done():
                return task.result()
            await RisingEdge(self.dut.clk_i)
        raise Timeout("a register access")

    async def wait_csts(self, mask: int, value: int) -> int:
        """Polls CSTS."""
        for _ in range(PATIENCE // 20):
            csts = await self.read(CSTS)
            self.quiet = not csts & RDY or csts >> 2 & 3 == 2
            if csts & mask == value:
                return csts
        raise Timeout(f"CSTS {csts:#x}, wanted {value:#x} of {mask:#x}")

    async def doorbell(self, qid: int, is_cq: bool, value: int) -> None:
        """As Linux does it: with shadow doorbells, the register is written when the value moves
        beyond EventIdx."""
        at = 8 * qid + 4 * is_cq
        self.doorbells[0] += qid != 0
        if self.shadow and qid:
            data = self.memory.data
            old, event = (struct.unpack_from("<I", data, page + at)[0] for page in self.shadow)
            self._shadow(self.shadow[0], qid, is_cq, value)
            if (value - event - 1) & 0xFFFF >= (value - old) & 0xFFFF:
                self.coverage.doorbell(qid, is_cq, value)
                self.coverage.hit("doorbells", "shadow: only memory")
                return
            self.coverage.hit("doorbells", "shadow: register, too")
        self.doorbells[1] += qid != 0
        await self.write(DOORBELLS + at, value)

    def _shadow(self, page: int, qid: int, is_cq: bool, value: int) -> None:
        struct.pack_into("<I", self.memory.data, page + 8 * qid + 4 * is_cq, value)

    async def shadow_doorbells(self, fill: int = 0) -> None:
        """Doorbell Buffer Config, with an EventIdx page filled with `fill`. The shadow page has the
        doorbells of existing queues, and 0 elsewhere, as with Linux and SPDK."""
        pages = self.alloc(PAGE), self.alloc(PAGE)
        self.memory.data[pages[0] : pages[0] + PAGE] = bytes(PAGE)
        self.memory.data[pages[1] : pages[1] + PAGE] = bytes([fill]) * PAGE
        for qid in self.cqs.keys() - {0}:
            self._shadow(pages[0], qid, True, self.cqs[qid].head)
        for qid in self.sqs.keys() - {0}:
            self._shadow(pages[0], qid, False, self.sqs[qid].tail)
        await self.admin(0x7C, prp1=pages[0], prp2=pages[1])
        self.shadow = pages

    async def behavior(self, acre: bool) -> None:
        """Host Behavior Support: accepts Command Interrupted from now on, or not."""
        page = self.alloc(PAGE)
        self.memory.data[page : page + 512] = bytes([acre]).ljust(512, b"\0")
        await self.admin(9, cdw10=0x16, prp1=page)
        self.acre = acre

    @property
    def interrupted(self) -> int:
        """The status of a command that the controller had to end."""
        return INTERRUPTED if self.acre else INTERNAL_ERROR

    # Life cycle.

    async def enable(self, entries: int = 16, cq_entries: int | None = None, spdk: bool = False, ams: int = 0) -> None:
        """Brings the controller up as Linux does, or as SPDK does."""
        cq_entries = cq_entries or entries
        cq = CompletionQueue(0, self.alloc(16 * cq_entries), cq_entries)
        sq = SubmissionQueue(0, self.alloc(64 * entries), entries, cq)
        self._zero(cq)
        self.cqs, self.sqs, self.done = {0: cq}, {0: sq}, {}
        self.acre = False
        cap = await self.read64(CAP)
        assert cap >> 37 & 1, "NVM command set"
        assert cap >> 48 & 0xF == 0, "4 KiB pages"
        self.mqes = (cap & 0xFFFF) + 1
        await self.write(AQA, (cq_entries - 1) << 16 | (entries - 1))
        await self.write64(ASQ, sq.base)
        await self.write64(ACQ, cq.base)
        if not spdk:
            await self.write(CC, CC_SIZES | ams << 11)
            await self.read64(CAP)
        await self.write(CC, CC_SIZES | ams << 11 | 1)
        csts = await self.wait_csts(RDY | CFS, RDY)
        assert csts == RDY

    async def skip(self, cycles: int) -> None:
        """Lets time pass as a simulation skips it when everything is idle."""
        self.dut.skipped_i.value = cycles
        await RisingEdge(self.dut.clk_i)
        self.dut.skipped_i.value = 0
        await RisingEdge(self.dut.clk_i)

    async def disable(self) -> None:
        await self.write(CC, CC_SIZES)
        await self.wait_csts(RDY, 0)
        await ClockCycles(self.dut.clk_i, 200)
        assert await self.read(CSTS) == 0
        self.cqs, self.sqs, self.done = {}, {}, {}
        self.shadow = None

    async def shutdown(self) -> None:
        await self.write(CC, CC_SIZES | 1 | 1 << 14)
        await self.wait_csts(3 << 2, 2 << 2)

    async def msix(self, vectors: int) -> None:
        """Sets up the MSI-X table: vector v writes 0x1000 + v to a separate dword."""
        for v in range(vectors):
            for word, value in enumerate((MSI + 4 * v, 0, 0x1000 + v, 0)):
                await self.write(TABLE + 16 * v + 4 * word, value)
        self.dut.msix_enable_i.value = 1

    # Commands.

    def _zero(self, cq: CompletionQueue) -> None:
        self.memory.data[cq.base : cq.base + 16 * cq.entries] = bytes(16 * cq.entries)

    def sqe(self, opcode, *, cid, nsid=0, prp1=0, prp2=0, flags=0, mptr=0, **dw) -> bytes:
        """A submission queue entry; cdw2, cdw3 and cdw10 to cdw15 by name."""
        dwords = {n: dw.pop(f"cdw{n}", 0) for n in (2, 3, *range(10, 16))}
        assert not dw, dw
        front = dwords.pop(2), dwords.pop(3)
        return struct.pack("<BBHIIIQQQ6I", opcode, flags, cid, nsid, *front, mptr, prp1, prp2, *dwords.values())

    def noise(self, used: dict[str, int], **fields: int) -> dict[str, int]:
        """Fields of a command with random values of every bit that it does not use. `used` has the
        bits that it uses; fields not named there are not used at all. FUSE and PSDT mean the same
        for all commands, and stay."""
        widths = {"prp1": 64, "prp2": 64, "mptr": 64, "nsid": 32, "flags": 8}
        widths |= {f"cdw{n}": 32 for n in (2, 3, *range(10, 16))}
        assert fields.keys() <= used.keys() | {"flags"}, "a field that is set is used"
        drawn = {}
        for name, width in widths.items():
            mask = 0xC3 if name == "flags" else used.get(name, 0)
            drawn[name] = self.rng.getrandbits(width) & ~mask | fields.get(name, 0) & mask
        return drawn

    def push(self, sq: SubmissionQueue, opcode: int, **fields) -> int:
        """Puts a command into a queue without ringing; returns its identifier."""
        assert sq.room() > 0, "the test overfills its queue"
        cid = fields.pop("cid", None)
        if cid is None:
            cid = next(sq.cids) & 0xFFFF
        at = sq.base + 64 * sq.tail
        self.memory.data[at : at + 64] = self.sqe(opcode, cid=cid, **fields)
        sq.tail = (sq.tail + 1) % sq.entries
        return cid

    async def ring(self, sq: SubmissionQueue) -> None:
        await self.doorbell(sq.qid, False, sq.tail)

    async def poll(self, cq: CompletionQueue) -> int:
        """Consumes available entries, and rings; returns their number."""
        if cq.hold:
            return 0
        found = 0
        while True:
            at = cq.base + 16 * cq.head
            dw0, dw1, sqhd, sqid, cid, status = struct.unpack("<IIHHHH", self.memory.data[at : at + 16])
            if status & 1 != cq.phase:
                break
            assert dw1 == 0
            entry = Completion(dw0, sqhd, sqid, cid, status >> 1 & 0x7FF, bool(status >> 15), status & 1)
            interrupted = entry.status == INTERRUPTED
            assert not interrupted or self.acre, "Command Interrupted to a host that has not set ACRE"
            assert status >> 12 & 7 == interrupted, "More stays 0; CRD 1 when interrupted"
            assert (sqid, cid) not in self.done, f"command {cid} of SQ {sqid} completed twice"
            assert self.sqs[sqid].cq is cq or self.sqs[sqid].cq.qid == cq.qid, "wrong completion queue"
            assert sqhd < self.sqs[sqid].entries
            self.sqs[sqid].head = sqhd
            self.done[sqid, cid] = entry
            cq.head = (cq.head + 1) % cq.entries
            cq.phase ^= cq.head == 0
            cq.written -= 1
            found += 1
        if found:
            await self.doorbell(cq.qid, True, cq.head)
        return found

    async def wait(self, sq: SubmissionQueue, cid: int) -> Completion:
        for _ in range(self.patience // 4):
            if (sq.qid, cid) in self.done:
                return self.done.pop((sq.qid, cid))
            await self.poll(sq.cq)
            if (sq.qid, cid) not in self.done:
                await ClockCycles(self.dut.clk_i, 4)
        raise Timeout(f"command {cid} of SQ {sq.qid}")

    async def command(self, sq: SubmissionQueue | int, opcode: int, **fields) -> Completion:
        """One command, from push to completion."""
        sq = self.sqs[sq] if isinstance(sq, int) else sq
        cid = self.push(sq, opcode, **fields)
        await self.ring(sq)
        return await self.wait(sq, cid)

    async def command_after_parked(self, sq: SubmissionQueue) -> Completion:
        """Abort, in a queue whose head is ahead of the reported SQHD, because the previous command
        is parked."""
        sq.head = sq.tail
        return await self.command(sq, 8)

    async def admin(self, opcode: int, want: int = OK, dnr: bool | None = None, **fields) -> Completion:
        """An admin command that must end with status `want`."""
        entry = await self.command(0, opcode, **fields)
        assert entry.status == want, f"opcode {opcode:#x} {fields}: status {entry.status:#x}, wanted {want:#x}"
        assert entry.dnr == ((want != OK) if dnr is None else dnr), f"opcode {opcode:#x} {fields}: DNR"
        return entry

    async def identify(self, cns: int, nsid: int = 0, offset: int = 0, **kw) -> bytes:
        """Identify into a buffer at a page offset; returns the page."""
        buffer = self.alloc(2 * PAGE)
        self.memory.data[buffer : buffer + 2 * PAGE] = b"\xa5" * (2 * PAGE)
        second = self.alloc(PAGE)
        await self.admin(6, cdw10=cns, nsid=nsid, prp1=buffer + offset, prp2=second if offset else 0, **kw)
        data = self.memory.data
        first = bytes(data[buffer + offset : buffer + PAGE])
        return first + bytes(data[second : second + offset])

    async def log_page(
        self, lid: int, size: int, offset: int = 0, *, at: int = 0, rae: bool = False, want: int = OK, **kw
    ) -> bytes:
        """Get Log Page into a buffer at a page offset; returns the bytes, and checks that nothing
        else was written."""
        guard = 64
        buffer = self.alloc(3 * PAGE + size) + at
        data = self.memory.data
        fill = b"\xa5" * (size + 2 * guard)
        data[buffer + PAGE - guard : buffer + PAGE + size + guard] = fill
        prp1, prp2 = self.prps(buffer + PAGE, size)
        numd = size // 4 - 1
        fields = {
            "cdw10": (numd & 0xFFFF) << 16 | rae << 15 | lid,
            "cdw11": numd >> 16,
            "cdw12": offset & 0xFFFF_FFFF,
            "cdw13": offset >> 32,
            "prp1": prp1,
            "prp2": prp2,
        }
        await self.admin(2, want=want, **(fields | kw))
        got = bytes(data[buffer + PAGE : buffer + PAGE + size])
        assert data[buffer + PAGE - guard : buffer + PAGE] == fill[:guard], "written before the buffer"
        assert data[buffer + PAGE + size : buffer + PAGE + size + guard] == fill[:guard], "written beyond the buffer"
        if want != OK:
            assert got == b"\xa5" * size, "written in spite of the error"
        return got

    async def park(self) -> int:
        """An Asynchronous Event Request; returns its identifier once it has been fetched."""
        sq = self.sqs[0]
        reads = len(self.memory.reads)
        cid = self.push(sq, 12)
        await self.ring(sq)
        for _ in range(PATIENCE // 4):
            if len(self.memory.reads) > reads:
                break
            await ClockCycles(self.dut.clk_i, 4)
        else:
            raise Timeout("an Asynchronous Event Request")
        await self.idle()
        return cid

    async def event(self, cid: int) -> int | None:
        """DW0 of an Asynchronous Event Request that has succeeded, once the controller is idle;
        else None."""
        await ClockCycles(self.dut.clk_i, 4)  # inputs take effect
        await self.idle()
        await self.poll(self.cqs[0])
        entry = self.done.pop((0, cid), None)
        if entry is None:
            return None
        assert entry.status == OK
        return entry.dw0

    async def create_cq(self, qid: int, entries: int, vector: int | None = None, **kw) -> CompletionQueue:
        cq = CompletionQueue(qid, self.alloc(16 * entries), entries, vector)
        self._zero(cq)
        if self.shadow:
            self._shadow(self.shadow[0], qid, True, 0)
        fields = {
            "prp1": cq.base,
            "cdw10": (entries - 1) << 16 | qid,
            "cdw11": 1 | (vector is not None) << 1 | (vector or 0) << 16,
        }
        self.cqs[qid] = cq
        await self.admin(5, **(fields | kw))
        return cq

    async def create_sq(self, qid: int, entries: int, cq: CompletionQueue, **kw) -> SubmissionQueue:
        sq = SubmissionQueue(qid, self.alloc(64 * entries), entries, cq)
        if self.shadow:
            self._shadow(self.shadow[0], qid, False, 0)
        fields = {"prp1": sq.base, "cdw10": (entries - 1) << 16 | qid, "cdw11": 1 | cq.qid << 16}
        await self.admin(1, **(fields | kw))
        self.sqs[qid] = sq
        return sq

    async def delete_sq(self, qid: int) -> None:
        await self.admin(0, cdw10=qid)
        del self.sqs[qid]

    async def delete_cq(self, qid: int) -> None:
        await self.admin(4, cdw10=qid)
        del self.cqs[qid]

    async def io_queues(self, pairs: int, entries: int, vectors: bool = False) -> list[SubmissionQueue]:
        sqs = []
        for qid in range(1, pairs + 1):
            cq = await self.create_cq(qid, entries, qid if vectors else None)
            sqs.append(await self.create_sq(qid, entries, cq))
        return sqs

    # Data.

    def prps(self, address: int, size: int) -> tuple[int, int]:
        """PRP1 and PRP2 for a contiguous buffer; builds a list where one is needed."""
        first = PAGE - address % PAGE
        if size <= first:
            return address, 0
        pages = list(range(address + first, address + size, PAGE))
        if len(pages) == 1:
            return address, pages[0]
        assert len(pages) <= PAGE // 8, "one list page is enough for the tests"
        where = self.alloc(PAGE)
        self.memory.data[where : where + 8 * len(pages)] = struct.pack(f"<{len(pages)}Q", *pages)
        return address, where

    def rw(self, sq: SubmissionQueue, write: bool, lba: int, blocks: int, buffer: int, **fields) -> int:
        """Puts a Read or Write into a queue."""
        prp1, prp2 = self.prps(buffer, 512 * blocks)
        values = {
            "nsid": 1,
            "prp1": prp1,
            "prp2": prp2,
            "cdw10": lba & 0xFFFF_FFFF,
            "cdw11": lba >> 32,
            "cdw12": blocks - 1,
        }
        return self.push(sq, 1 if write else 2, **(values | fields))

    def sgl(self, blocks: list[tuple[int, int]], segment: int = 0, kind: int = 0x30) -> dict[str, int]:
        """Fields of a command whose SGL has these blocks (address, bytes): inline, or in a segment
        at this address."""
        entries = [struct.pack("<QIHBB", at, size, 0, 0, 0) for at, size in blocks]
        if segment:
            data = b"".join(entries)
            self.memory.data[segment : segment + len(data)] = data
            entries = [struct.pack("<QIHBB", segment, len(data), 0, 0, kind)]
        (entry,) = entries
        prp1, prp2 = struct.unpack("<QQ", entry)
        return {"flags": 0x40, "prp1": prp1, "prp2": prp2}

    def dsm(self, sq: SubmissionQueue, ranges: list[tuple[int, int]], at: int, cdw11: int = 4, **fields) -> int:
        """Puts a Dataset Management, by default a deallocation, into a queue; its list goes to
        `at`."""
        data = b"".join(struct.pack("<IIQ", self.rng.getrandbits(32), blocks, lba) for lba, blocks in ranges)
        self.memory.data[at : at + len(data)] = data
        prp1, prp2 = self.prps(at, len(data))
        values = {"nsid": 1, "prp1": prp1, "prp2": prp2, "cdw10": len(ranges) - 1, "cdw11": cdw11}
        return self.push(sq, 9, **(values | fields))

    async def idle(self) -> None:
        """Waits until the controller is idle. At a high temperature it never is: it counts the
        time."""
        if int(self.dut.temperature_i.value) >= model.WARNING_TEMPERATURE:
            await ClockCycles(self.dut.clk_i, 500)
            return
        for _ in range(PATIENCE):
            if not self.dut.busy_o.value:
                return
            await RisingEdge(self.dut.clk_i)
        raise Timeout("busy_o stays 1")


class Pump:
    """Keeps several queues busy with random reads and writes, and checks all data against a model
    of the media."""

    def __init__(self, host: Host, sqs: list[SubmissionQueue], max_blocks: int = 32) -> None:
        self.host, self.sqs, self.max_blocks = host, sqs, max_blocks
        blocks = len(host.media.data) // 512
        # Each queue has a separate part of the media, so that commands in flight never overlap.
        self.share = blocks // len(sqs)
        self.model = bytearray(host.media.data)
        self.buffers: dict[int, deque[int]] = {
            sq.qid: deque(host.alloc(512 * max_blocks + PAGE) for _ in range(8)) for sq in sqs
        }
        self.busy: dict[int, list[range]] = {sq.qid: [] for sq in sqs}
        self.pending: dict[tuple[int, int], tuple] = {}
        self.completed = 0

    def area(self, sq: SubmissionQueue) -> tuple[int, int, range]:
        """The area of a queue: a namespace, its first block on the media, and blocks of the media
        within it."""
        base = self.share * self.sqs.index(sq)
        return 1, 0, range(base, base + self.share)

    def submit(self, sq: SubmissionQueue) -> bool:
        host, rng = self.host, self.host.rng
        if not self.buffers[sq.qid] or sq.room() == 0:
            return False
        blocks = rng.choice((1, 1, 8, rng.randrange(1, self.max_blocks + 1)))
        nsid, origin, area = self.area(sq)
        lba = area.start + rng.randrange(len(area) - blocks)
        span = range(lba, lba + blocks)
        if any(span.start < other.stop and other.start < span.stop for other in self.busy[sq.qid]):
            return False
        page = self.buffers[sq.qid].popleft()
        buffer = page + rng.choice((0, 0, 512, 4 * rng.randrange(1024)))
        write = rng.random() < 0.5
        size = 512 * blocks
        if write:
            data = rng.randbytes(size)
            host.memory.data[buffer : buffer + size] = data
            self.model[512 * lba : 512 * lba + size] = data
        else:
            host.memory.data[buffer : buffer + size] = bytes(size)
        free = host.allocator
        cid = host.rw(sq, write, lba - origin, blocks, buffer, nsid=nsid)
        self.pending[sq.qid, cid] = (write, span, page, buffer, free)
        self.busy[sq.qid].append(span)
        return True

    def collect(self) -> None:
        """Checks what has completed."""
        host = self.host
        for key in [key for key in self.pending if key in host.done]:
            entry = host.done.pop(key)
            write, span, page, buffer, _ = self.pending.pop(key)
            assert entry.status == OK, f"{key} {span}: status {entry.status:#x}"
            size = 512 * len(span)
            want = self.model[512 * span.start : 512 * span.stop]
            if not write:
                assert host.memory.data[buffer : buffer + size] == want, f"read of {span}"
            else:
                assert host.media.data[512 * span.start : 512 * span.stop] == want, f"write of {span}"
            self.busy[key[0]].remove(span)
            self.buffers[key[0]].append(page)
            self.completed += 1

    async def run(self, commands: int) -> None:
        """Runs over all queues until `total` commands have completed, including those of earlier
        runs."""
        host = self.host
        submitted, waited = self.completed, 0
        while self.completed < commands:
            for sq in host.rng.sample(self.sqs, len(self.sqs)):
                burst = 0
                while submitted < commands and burst < 4 and self.submit(sq):
                    submitted += 1
                    burst += 1
                if burst:
                    await host.ring(sq)
            before = self.completed
            for cq in {sq.cq.qid: sq.cq for sq in self.sqs}.values():
                await host.poll(cq)
            self.collect()
            waited = 0 if self.completed > before else waited + 1
            if waited > PATIENCE // 50:
                raise Timeout(f"{len(self.pending)} commands")
            await ClockCycles(host.dut.clk_i, 10)
