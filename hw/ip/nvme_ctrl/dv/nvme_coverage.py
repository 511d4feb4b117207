# SPDX-License-Identifier: Apache-2.0
"""Functional coverage of the controller's tests: what has happened on the wire, counted in bins.

`Monitor` is passive: it observes what the controller reads and writes in host memory and what the
host writes to registers, and derives queues and commands from that. It costs a dictionary look-up a
beat. Each simulation writes its counts to build/coverage/nvme_ctrl/; `conftest.py` merges them
after the tests.

`PLAN` names the bins that the whole suite must hit. Others show up in the table when they are hit.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import struct
from collections import Counter
from pathlib import Path

# Runs with free clocks are counted separately: they may run at the same time.
FREE_CLOCKS = os.environ.get("CLOCK_GATE_BYPASS", "0") not in ("", "0")
PARTS = Path(__file__).parents[4] / "build" / "coverage" / ("nvme_ctrl_free_clocks" if FREE_CLOCKS else "nvme_ctrl")
PAGE = 4096

ADMIN = {
    0x00: "Delete I/O SQ",
    0x01: "Create I/O SQ",
    0x02: "Get Log Page",
    0x04: "Delete I/O CQ",
    0x05: "Create I/O CQ",
    0x06: "Identify",
    0x08: "Abort",
    0x09: "Set Features",
    0x0A: "Get Features",
    0x0C: "Asynchronous Event Request",
    0x18: "Keep Alive",
    0x7C: "Doorbell Buffer Config",
    0x80: "Format NVM",
}
IO = {
    0x00: "Flush",
    0x01: "Write",
    0x02: "Read",
    0x05: "Compare",
    0x08: "Write Zeroes",
    0x09: "Dataset Management",
    0x0C: "Verify",
}
STATUS = {
    0x000: "Successful Completion",
    0x001: "Invalid Command Opcode",
    0x002: "Invalid Field in Command",
    0x004: "Data Transfer Error",
    0x006: "Internal Error",
    0x007: "Command Abort Requested",
    0x008: "Command Aborted due to SQ Deletion",
    0x009: "Failed Fused Command",
    0x00A: "Missing Fused Command",
    0x00B: "Invalid Namespace or Format",
    0x00C: "Command Sequence Error",
    0x00D: "Invalid SGL Segment Descriptor",
    0x00E: "Invalid Number of SGL Descriptors",
    0x00F: "Data SGL Length Invalid",
    0x011: "SGL Descriptor Type Invalid",
    0x013: "PRP Offset Invalid",
    0x01A: "Keep Alive Timeout Invalid",
    0x01E: "SGL Data Block Granularity Invalid",
    0x021: "Command Interrupted",
    0x080: "LBA Out of Range",
    0x084: "Format In Progress",
    0x100: "Completion Queue Invalid",
    0x101: "Invalid Queue Identifier",
    0x102: "Invalid Queue Size",
    0x105: "Asynchronous Event Request Limit Exceeded",
    0x108: "Invalid Interrupt Vector",
    0x109: "Invalid Log Page",
    0x10A: "Invalid Format",
    0x10C: "Invalid Queue Deletion",
    0x10D: "Feature Identifier Not Saveable",
    0x10F: "Feature Not Namespace Specific",
    0x280: "Write Fault",
    0x281: "Unrecovered Read Error",
    0x285: "Compare Failure",
}
SGL_STATUS = (0x00D, 0x00E, 0x00F, 0x011, 0x01E)
SELECT = ("current", "default", "saved", "supported")
PRIORITY = ("urgent", "high", "medium", "low")
RESETS = ("disable", "shutdown", "subsystem reset")
STAGES = ("not fetched", "fetched", "list read", "data moving", "parked", "nothing in flight")
KINDS = ("PRP1", "PRP1 with offset", "PRP2 a page", "list", "list with offset", "chained list", "SGL data block", "SGL")
SIZES = ("512 B", "to 4 KiB", "to 128 KiB", "to 1 MiB", "1 MiB")


# Bins that no test of the controller hits: the code is shared with others that are hit, or the
# tests of the data path hit them.
HOLES = {
    f"Write: {STATUS[0x00E]}",
    f"Compare: {STATUS[0x00E]}",
    *(f"Dataset Management: {STATUS[code]}" for code in (0x00D, 0x00E, 0x011, 0x01E, 0x280)),
    *(f"{name} {kind}" for name in ("Read", "Write", "Compare") for kind in ("list with offset", "chained list")),
    "bit bucket in a segment",
    "another type in a segment",
    "get 0Eh default",
    "get 0Eh supported",
}


def plan() -> dict[str, list[str]]:
    """The bins that the whole suite must hit, by group."""
    return {group: [name for name in names if name not in HOLES] for group, names in everything().items()}


def everything() -> dict[str, list[str]]:
    """All bins worth hitting, by group: after the tables of statuses and features in the
    documentation."""
    common = [0x002, 0x00B]
    data = [*common, 0x004, 0x013, *SGL_STATUS, 0x080, 0x084]
    statuses = {
        "Read": [*data, 0x281],
        "Write": [*data, 0x280],
        "Compare": [*data, 0x281, 0x285],
        "Write Zeroes": [*common, 0x006, 0x007, 0x021, 0x080, 0x084, 0x280],
        "Verify": [*common, 0x006, 0x021, 0x080, 0x084, 0x281],
        "Dataset Management": [*data, 0x006, 0x007, 0x008, 0x021, 0x280],
        "Flush": [*common, 0x084],
        "Identify": [0x002, 0x00B],
        "Create I/O CQ": [0x002, 0x013, 0x101, 0x102, 0x108],
        "Create I/O SQ": [0x002, 0x013, 0x100, 0x101, 0x102],
        "Delete I/O SQ": [0x101],
        "Delete I/O CQ": [0x101, 0x10C],
        "Get Log Page": [0x002, 0x004, 0x013, 0x109],
        "Format NVM": [0x002, 0x006, 0x00B, 0x021, 0x10A, 0x280],
        "Abort": [],
        "Keep Alive": [],
        "Doorbell Buffer Config": [0x002],
        "Set Features": [0x002, 0x004, 0x00B, 0x00C, 0x013, 0x01A, 0x10D, 0x10F],
        "Get Features": [0x002, 0x00B],
        "Asynchronous Event Request": [0x007, 0x105],
    }
    features = (0x01, 0x02, 0x04, 0x05, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0E, 0x0F, 0x16)
    moves = ("Read", "Write", "Compare")
    return {
        "command and status": [
            *(f"{name}: {STATUS[code]}" for name, codes in statuses.items() for code in (0x000, *codes)),
            f"another admin command: {STATUS[1]}",
            f"another I/O command: {STATUS[1]}",
        ],
        "size": [f"{name} {size}" for name in moves for size in SIZES],
        "data": [
            *(f"{name} {kind}" for name in moves for kind in KINDS),
            *(f"Dataset Management {kind}" for kind in ("PRP1", "PRP1 with offset", "PRP2 a page", "SGL data block")),
            *(f"Get Log Page {kind}" for kind in ("PRP1", "PRP1 with offset", "PRP2 a page", "list")),
        ],
        "SGL": [
            *(f"{what} in the command" for what in ("data block", "segment", "last segment")),
            *(f"{what} in a segment" for what in ("data block", "bit bucket", "segment", "last segment")),
            "another type in the command",
            "another type in a segment",
            "no data at all",
        ],
        "queues": [
            "SQ starts again",
            "CQ ends with phase 0",
            "CQ ends with phase 1",
            "SQ full",
            "CQ full",
            "SQ of 2 entries",
            "CQ of 2 entries",
            "two SQs to one CQ",
            "CQ without interrupts",
            "two CQs on one vector",
        ],
        "doorbells": [
            "tail of no queue",
            "head of no queue",
            "tail beyond the queue",
            "head beyond the queue",
            "head beyond the entries",
            "shadow: only memory",
            "shadow: register, too",
        ],
        "features": [
            *(f"set {fid:02X}h" for fid in features),
            *(f"get {fid:02X}h {select}" for fid in features for select in (SELECT[0], SELECT[1], SELECT[3])),
        ],
        "Identify": [f"CNS {cns:02X}h" for cns in (0, 1, 2, 3, 6, 8, 0x12, 0x13)],
        "logs": [
            *(f"{lid:02X}h from {where}" for lid in (1, 2, 3, 4, 5) for where in ("0", "inside")),
            "00h from 0",
            "with RAE",
            "more than a page",
        ],
        "events": ["error 00h", "error 01h", "SMART 01h", "notice 00h"],
        "fused": [
            "pair: both succeed",
            "pair: first fails, second Failed Fused Command",
            "pair: second fails",
            "first alone: Missing Fused Command",
            "second alone: Missing Fused Command",
        ],
        "resets": [
            *(f"{reset}, {stage}" for reset in RESETS for stage in ("fetched", "data moving")),
        ],
        "arbitration": ["round robin", *(f"weighted: {what}" for what in ("admin", *PRIORITY)), "weights set"],
        "interrupts": ["message of the admin queue", "message of an I/O queue", "message while coalescing"],
        "namespaces": [
            *(f"{name} to {ns}" for name in ("Read", "Write", "Compare") for ns in ("the first", "another")),
            "inactive",
            "0 or beyond NN",
            "FFFFFFFFh",
        ],
    }


def size_class(size: int) -> str:
    for limit, name in ((512, SIZES[0]), (4 << 10, SIZES[1]), (128 << 10, SIZES[2]), ((1 << 20) - 1, SIZES[3])):
        if size <= limit:
            return name
    return SIZES[4]


class Command:
    """A submission queue entry that has been fetched."""

    def __init__(self, entry: bytes) -> None:
        fields = struct.unpack("<BBHIQQQQ6I", entry)
        self.opcode, flags, self.cid, self.nsid = fields[:4]
        self.fuse, self.psdt = flags & 3, flags >> 6
        self.prp1, self.prp2 = fields[6:8]
        self.cdw = dict(enumerate(fields[8:], 10))
        self.stage = "fetched"


HITS: Counter[tuple[str, str]] = Counter()


class Monitor:
    """Counts the actions of one host and its controller."""

    def __init__(self, host) -> None:
        self.host = host
        self.namespaces = [int(size) for size in os.environ.get("NVME_CTRL_NS", "1").split()]
        self.registers: dict[int, int] = {}
        self.forget()

    def forget(self) -> None:
        """The controller has no queues."""
        self.pages: dict[int, tuple[str, int]] = {}  # of host memory: the queue that lies there
        # base, entries, CQ, priority, next entry, reported tail
        self.sqs: dict[int, list[int]] = {}
        self.cqs: dict[int, list[int]] = {}  # base, entries, vector or -1, tail, head
        self.commands: dict[tuple[int, int], Command] = {}
        self.lists: dict[int, Command] = {}  # pages with lists, and with the first data
        self.buffers: dict[int, Command] = {}
        self.first: dict[int, int] = {}  # status of the first command of a pair, by queue
        self.waiting_first: dict[int, Command] = {}
        self.weighted = self.coalescing = False

    def hit(self, group: str, name: str) -> None:
        HITS[group, name] += 1

    # Queues.

    def add(self, kind: str, qid: int, base: int, entries: int, *more: int) -> None:
        (self.sqs if kind == "sq" else self.cqs)[qid] = [base, entries, *more]
        size = entries * (64 if kind == "sq" else 16)
        for page in range(base // PAGE, (base + size - 1) // PAGE + 1):
            self.pages[page] = (kind, qid)
        if entries == 2:
            self.hit("queues", f"{kind.upper()} of 2 entries")

    def remove(self, kind: str, qid: int) -> None:
        (self.sqs if kind == "sq" else self.cqs).pop(qid, None)
        for page in [page for page, queue in self.pages.items() if queue == (kind, qid)]:
            del self.pages[page]

    # Accesses of the controller to host memory.

    def read(self, address: int) -> None:
        page = address // PAGE
        queue = self.pages.get(page)
        if queue and queue[0] == "sq":
            self.fetched(queue[1], address)
            return
        command = self.lists.get(page)
        if command and command.stage == "fetched":
            command.stage = "list read"
        command = self.buffers.get(page)
        if command:
            command.stage = "data moving"

    def write(self, address: int, data: bytes) -> None:
        page = address // PAGE
        queue = self.pages.get(page)
        if queue and queue[0] == "cq" and len(data) == 16:
            self.posted(queue[1], address, data)
            return
        command = self.buffers.get(page)
        if command:
            command.stage = "data moving"

    def message(self, vector: int) -> None:
        self.hit("interrupts", f"message of {'an I/O' if vector else 'the admin'} queue")
        if self.coalescing and vector:
            self.hit("interrupts", "message while coalescing")

    def fetched(self, qid: int, address: int) -> None:
        sq = self.sqs[qid]
        index = (address - sq[0]) // 64
        if index >= sq[1]:
            return
        sq[4] = (index + 1) % sq[1]
        if sq[4] == 0:
            self.hit("queues", "SQ starts again")
        command = Command(bytes(self.host.memory.data[address : address + 64]))
        self.commands[qid, command.cid] = command
        if self.weighted:
            self.hit("arbitration", f"weighted: {PRIORITY[sq[3]] if qid else 'admin'}")
        else:
            self.hit("arbitration", "round robin")
        if qid == 0:
            if command.opcode == 0x0C:
                command.stage = "parked"
        elif command.opcode in (1, 2, 5, 9):
            self.buffers[command.prp1 // PAGE] = command
            if command.psdt or command.prp2:
                self.lists[(command.prp1 if command.psdt else command.prp2) // PAGE] = command

    def posted(self, cqid: int, address: int, data: bytes) -> None:
        dw0, _, _, qid, cid, status = struct.unpack("<IIHHHH", data)
        cq = self.cqs[cqid]
        cq[3] = ((address - cq[0]) // 16 + 1) % cq[1]
        if cq[3] == 0:
            self.hit("queues", f"CQ ends with phase {status & 1}")
        if (cq[3] + 1) % cq[1] == cq[4]:
            self.hit("queues", "CQ full")
        command = self.commands.pop((qid, cid), None)
        if command is None:
            return
        for pages, page in ((self.buffers, command.prp1), (self.lists, command.prp2), (self.lists, command.prp1)):
            if pages.get(page // PAGE) is command:
                del pages[page // PAGE]
        status = status >> 1 & 0x7FF
        name = (ADMIN if qid == 0 else IO).get(command.opcode, f"another {'I/O' if qid else 'admin'} command")
        self.hit("command and status", f"{name}: {STATUS.get(status, f'{status:03X}h')}")
        if qid == 0:
            self.admin_over(command, status, dw0)
        else:
            self.io_over(qid, command, name, status)

    def admin_over(self, command: Command, status: int, dw0: int) -> None:
        opcode, cdw = command.opcode, command.cdw
        if opcode == 0x02 and status == 0:
            lid, offset = cdw[10] & 0xFF, cdw[12] | cdw[13] << 32
            size = 4 * ((cdw[10] >> 16 | (cdw[11] & 0xFFFF) << 16) + 1)
            self.hit("logs", f"{lid:02X}h from {'inside' if offset else 0}")
            if cdw[10] >> 15 & 1:
                self.hit("logs", "with RAE")
            if size > PAGE:
                self.hit("logs", "more than a page")
            self.hit("data", f"Get Log Page {self.prp_kind(command, size)}")
        elif opcode == 0x06 and status == 0:
            self.hit("Identify", f"CNS {cdw[10] & 0xFF:02X}h")
        elif opcode == 0x09 and status == 0:
            fid = cdw[10] & 0xFF
            self.hit("features", f"set {fid:02X}h")
            if fid == 1 and cdw[11] >> 8:
                self.hit("arbitration", "weights set")
            if fid == 8:
                self.coalescing = cdw[11] & 0xFFFF != 0
        elif opcode == 0x0A and status == 0:
            self.hit("features", f"get {cdw[10] & 0xFF:02X}h {SELECT[cdw[10] >> 8 & 3]}")
        elif opcode == 0x0C and status == 0:
            kind = {0: "error", 1: "SMART", 2: "notice"}.get(dw0 & 7, "another")
            self.hit("events", f"{kind} {dw0 >> 8 & 0xFF:02X}h")
        elif opcode == 0x01 and status == 0:
            cqid, qid, entries = cdw[11] >> 16, cdw[10] & 0xFFFF, (cdw[10] >> 16) + 1
            if any(sq[2] == cqid for sq in self.sqs.values()):
                self.hit("queues", "two SQs to one CQ")
            self.add("sq", qid, command.prp1, entries, cqid, cdw[11] >> 1 & 3, 0, 0)
        elif opcode == 0x05 and status == 0:
            vector = cdw[11] >> 16 if cdw[11] & 2 else -1
            if vector < 0:
                self.hit("queues", "CQ without interrupts")
            elif any(cq[2] == vector for cq in self.cqs.values()):
                self.hit("queues", "two CQs on one vector")
            self.add("cq", cdw[10] & 0xFFFF, command.prp1, (cdw[10] >> 16) + 1, vector, 0, 0)
        elif opcode in (0x00, 0x04) and status == 0:
            self.remove("cq" if opcode else "sq", cdw[10] & 0xFFFF)

    def io_over(self, qid: int, command: Command, name: str, status: int) -> None:
        if command.opcode in IO:
            count = len(self.namespaces)
            if command.nsid == 0xFFFF_FFFF:
                self.hit("namespaces", "FFFFFFFFh")
            elif not 1 <= command.nsid <= count:
                self.hit("namespaces", "0 or beyond NN")
            elif self.namespaces[command.nsid - 1] == 0:
                self.hit("namespaces", "inactive")
            elif status == 0:
                self.hit("namespaces", f"{name} to {'the first' if command.nsid == 1 else 'another'}")
        if command.opcode in (1, 2, 5) and status in (0x000, 0x285):
            size = 512 * ((command.cdw[12] & 0xFFFF) + 1)
            self.hit("size", f"{name} {size_class(size)}")
            self.hit("data", f"{name} {self.kind(command, size)}")
        elif command.opcode == 9 and status == 0 and command.cdw[11] & 4:
            self.hit("data", f"{name} {self.kind(command, 16 * ((command.cdw[10] & 0xFF) + 1))}")
        if command.psdt and command.opcode in (1, 2, 5, 9):
            self.sgl(command)
        if command.fuse == 1:
            if status == 0x00A:
                self.hit("fused", "first alone: Missing Fused Command")
            else:
                self.first[qid] = status
        elif command.fuse == 2:
            if status == 0x00A:
                self.hit("fused", "second alone: Missing Fused Command")
                return
            first = self.first.pop(qid, None)
            if first == 0 and status == 0:
                self.hit("fused", "pair: both succeed")
            elif first == 0x009:
                self.hit("fused", "pair: second fails")
            elif first and status == 0x009:
                self.hit("fused", "pair: first fails, second Failed Fused Command")

    # Description of the data.

    def prp_kind(self, command: Command, size: int) -> str:
        pages = -(-(command.prp1 % PAGE + size) // PAGE)
        if pages == 1:
            return "PRP1 with offset" if command.prp1 % PAGE else "PRP1"
        if pages == 2:
            return "PRP2 a page"
        if pages - 1 > (PAGE - command.prp2 % PAGE) // 8:
            return "chained list"
        return "list with offset" if command.prp2 % PAGE else "list"

    def kind(self, command: Command, size: int) -> str:
        if not command.psdt:
            return self.prp_kind(command, size)
        return "SGL" if command.prp2 >> 60 in (2, 3) else "SGL data block"

    def sgl(self, command: Command) -> None:
        """The descriptors of an SGL: at most 1024, so that rings end."""
        names = {0: "data block", 1: "bit bucket", 2: "segment", 3: "last segment"}
        address, size, kind = command.prp1, command.prp2 & 0xFFFF_FFFF, command.prp2 >> 60
        self.hit("SGL", f"{names.get(kind, 'another type')} in the command")
        if kind == 0 and size == 0:
            self.hit("SGL", "no data at all")
        memory, left = self.host.memory.data, 1024
        while kind in (2, 3) and left and size >= 16 and address + size <= len(memory):
            at, end = address, address + size
            kind = 0
            while at + 16 <= end and left:
                address, size, _, _, last = struct.unpack_from("<QIHBB", memory, at)
                kind = last >> 4
                self.hit("SGL", f"{names.get(kind, 'another type')} in a segment")
                at, left = at + 16, left - 1

    # Actions of the host.

    def register(self, offset: int, value: int) -> None:
        """The host writes a register."""
        old = self.registers.get(offset, 0)
        if offset in (0x24, 0x28, 0x2C, 0x30, 0x34):
            self.registers[offset] = value
        elif 0x1000 <= offset < 0x2000:
            self.doorbell((offset & 0xFFF) // 8, bool(offset & 4), value & 0xFFFF)
        elif offset == 0x20 and value == 0x4E56_4D65:
            self.reset(RESETS[2])
        elif offset == 0x14:
            self.registers[offset] = value
            if value & 1 and not old & 1:
                self.forget()
                self.weighted = value >> 11 & 7 == 1
                aqa, regs = self.registers.get(0x24, 0), self.registers
                sq, cq = (regs.get(at, 0) | regs.get(at + 4, 0) << 32 for at in (0x28, 0x30))
                self.add("cq", 0, cq, (aqa >> 16 & 0xFFF) + 1, 0, 0, 0)
                self.add("sq", 0, sq, (aqa & 0xFFF) + 1, 0, 0, 0, 0)
            elif old & 1 and not value & 1:
                self.reset(RESETS[0])
                self.forget()
            elif value >> 14 & 3 and not old >> 14 & 3:
                self.reset(RESETS[1])

    def reset(self, kind: str) -> None:
        stages = {command.stage for command in self.commands.values()}
        stages |= {"not fetched" for sq in self.sqs.values() if sq[5] != sq[4]}
        for stage in stages or {"nothing in flight"}:
            self.hit("resets", f"{kind}, {stage}")

    def doorbell(self, qid: int, is_cq: bool, value: int) -> None:
        queue = (self.cqs if is_cq else self.sqs).get(qid)
        name = "head" if is_cq else "tail"
        if queue is None:
            self.hit("doorbells", f"{name} of no queue")
        elif value >= queue[1]:
            self.hit("doorbells", f"{name} beyond the queue")
        elif is_cq:
            if (value - queue[4]) % queue[1] > (queue[3] - queue[4]) % queue[1]:
                self.hit("doorbells", "head beyond the entries")
            else:
                queue[4] = value
        else:
            queue[5] = value
            if (value + 1) % queue[1] == queue[4]:
                self.hit("queues", "SQ full")


def leave() -> None:
    """Writes the counts of this simulation."""
    current = os.environ.get("PYTEST_CURRENT_TEST", "").split(" ")[0]
    if current and HITS:
        PARTS.mkdir(parents=True, exist_ok=True)
        rows = [[group, name, count] for (group, name), count in sorted(HITS.items())]
        name = re.sub(r"[^\w.-]+", "_", current.split("/")[-1])
        (PARTS / f"part-{name}.json").write_text(json.dumps(rows))


atexit.register(leave)
