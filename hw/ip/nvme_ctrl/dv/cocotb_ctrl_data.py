# SPDX-License-Identifier: Apache-2.0
"""Tests of how commands describe their data (SGLs), and of hosts that do not answer, on
nvme_ctrl_tb.

The shapes of SGLs are tested on the data path."""

from __future__ import annotations

import struct
from collections.abc import Callable

import cocotb
import nvme_host as nvme
from cocotb.triggers import ClockCycles
from cocotb_ctrl import BLOCKS, ENTRIES, start
from cocotb_ctrl_io import AD, COMPARE, DSM, VERIFY, WRITE_ZEROES, do
from nvme_host import CFS, CSTS, PAGE, RDY, Host

WRITE, READ = 1, 2
SEGMENT, LAST_SEGMENT = 0x20, 0x30


def cut(host: Host, at: int, size: int) -> list[tuple[int, int]]:
    """A buffer as blocks of random dword lengths."""
    blocks = []
    while size:
        n = min(size, 4 * host.rng.choice((1, 16, host.rng.randrange(1, 2000))))
        blocks.append((at, n))
        at, size = at + n, size - n
    return blocks


@cocotb.test()
async def sgl(dut):
    """Write, Compare and Read with SGLs, inline and in a segment, either PSDT, beside PRPs; one
    block to 128 KiB."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    source, target, table = host.alloc((1 << 20) + PAGE), host.alloc((1 << 20) + PAGE), host.alloc(1 << 18)
    for i, blocks in enumerate((1, 3, 8, 100, 256)):
        size, lba = 512 * blocks, 16 * i
        data = host.rng.randbytes(size)
        fields = {"cdw10": lba, "cdw12": blocks - 1}
        for inline in (True, False):
            at, to = source + 4 * host.rng.randrange(1024), target + 4 * host.rng.randrange(1024)
            host.memory.data[at : at + size] = data
            host.memory.data[to - 4 : to + size + 4] = bytes(size + 8)
            out = [(at, size)] if inline else cut(host, at, size)
            back = [(to, size)] if inline else cut(host, to, size)
            place = 0 if inline else table + 8 * host.rng.randrange(1024)
            for opcode in (WRITE, COMPARE):
                flags = host.rng.choice((0x40, 0x80))
                await do(host, sq, opcode, **(host.sgl(out, place) | fields | {"flags": flags}))
            await do(host, sq, READ, **host.sgl(back, place), **fields)
            assert host.memory.data[to : to + size] == data
            assert not any(host.memory.data[to - 4 : to])
            assert not any(host.memory.data[to + size : to + size + 4])
            host.memory.data[at + size // 2] ^= 1
            await do(host, sq, COMPARE, nvme.COMPARE_FAILURE, **host.sgl(out, place), **fields)
    cid = host.rw(sq, False, 0, 8, target)
    await host.ring(sq)
    assert (await host.wait(sq, cid)).status == nvme.OK


@cocotb.test()
async def sgl_other_commands(dut):
    """Lists of ranges by SGL; commands without data do not look at it; admin commands refuse
    SGLs."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    model = bytearray(host.media.data)
    at, table = host.alloc(2 * PAGE), host.alloc(PAGE)
    ranges = [(8 * i, 1 + i % 7) for i in range(200)]
    data = b"".join(struct.pack("<IIQ", 0, n, lba) for lba, n in ranges)
    host.memory.data[at + 4 : at + 4 + len(data)] = data
    for count, segment in ((1, 0), (200, 0), (200, table)):
        blocks = [(at + 4, 16 * count)] if not segment else cut(host, at + 4, 16 * count)
        await do(host, sq, DSM, **host.sgl(blocks, segment), cdw10=count - 1, cdw11=AD)
        for lba, n in ranges[:count]:
            model[512 * lba : 512 * (lba + n)] = bytes(512 * n)
        assert host.media.data == model
    await do(host, sq, DSM, nvme.SGL_LENGTH, **host.sgl([(at, 16)]), cdw10=1, cdw11=AD)
    nonsense = {"flags": 0x40, "prp1": 1, "prp2": 0xFF << 56}
    for opcode in (WRITE_ZEROES, VERIFY, 0):
        await do(host, sq, opcode, **nonsense)
    for flags in (0x40, 0x80):
        await host.admin(6, want=nvme.INVALID_FIELD, cdw10=1, flags=flags, prp1=at)


@cocotb.test()
async def sgl_errors(dut):
    """Every status of figure 126 that an SGL can cause; the next command is unharmed."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    at, table = host.alloc(PAGE), host.alloc(PAGE)
    whole = [(at, 2048), (at + 2048, 2048)]

    def kind(fields: dict, value: int) -> dict:
        return fields | {"prp2": fields["prp2"] & (1 << 56) - 1 | value << 56}

    cases = [
        (nvme.SGL_SEGMENT, lambda: host.sgl(whole, table) | {"prp1": table + 4}),
        (nvme.SGL_SEGMENT, lambda: kind(host.sgl([(table, 40)]), LAST_SEGMENT)),
        (nvme.SGL_SEGMENT, lambda: kind(host.sgl([(table, 0)]), SEGMENT)),
        (nvme.SGL_LENGTH, lambda: host.sgl(whole[:1], table)),
        (nvme.SGL_LENGTH, lambda: host.sgl(whole[:1])),
        (nvme.SGL_TYPE, lambda: kind(host.sgl([(at, 4096)]), 0x01)),
        (nvme.SGL_TYPE, lambda: kind(host.sgl([(at, 4096)]), 0x40)),
        (nvme.SGL_GRANULARITY, lambda: host.sgl([(at + 2, 4096)])),
        (nvme.SGL_GRANULARITY, lambda: host.sgl([(at, 4098)])),
        (nvme.DATA_TRANSFER, lambda: host.sgl([(0x7FFF_F000, 4096)])),
        (nvme.DATA_TRANSFER, lambda: host.sgl(whole, table) | {"prp1": 0x7FFF_F000}),
        (nvme.OK, lambda: host.sgl([(at, 8192)])),
    ]
    for want, build in cases:
        for opcode in (READ, WRITE, COMPARE):
            if want == nvme.OK and opcode == COMPARE:
                continue
            await do(host, sq, opcode, want, want not in (nvme.OK, nvme.DATA_TRANSFER), **build(), cdw12=7)
    # A segment descriptor that is not the last of its segment.
    fields = host.sgl(whole, table, SEGMENT)
    host.memory.data[table + 15] = LAST_SEGMENT
    host.memory.data[table : table + 8] = struct.pack("<Q", table)
    host.memory.data[table + 8 : table + 12] = struct.pack("<I", 16)
    await do(host, sq, READ, nvme.SGL_COUNT, **fields, cdw12=7)
    # In a last segment.
    await do(host, sq, READ, nvme.SGL_SEGMENT, **kind(fields, LAST_SEGMENT), cdw12=7)
    # A ring.
    host.memory.data[table + 15] = SEGMENT
    nvme.PATIENCE, patience = 2_000_000, nvme.PATIENCE
    host.patience = 2_000_000
    await do(host, sq, READ, nvme.SGL_COUNT, **kind(host.sgl([(table, 16)]), SEGMENT), cdw12=7)
    nvme.PATIENCE = patience
    await do(host, sq, READ, prp1=at, cdw12=7)
    await host.idle()


TIMEOUT = 3000  # cycles, see nvme_ctrl_tb
# Masters of the host port, as shown by the bits of their IDs above those of the lists: movers of
# two channels, lists, front end.
LIST_BITS = 4
MOVER0, MOVER1, LISTS, FRONT = range(4)
LIST_BITS = 4  # of the IDs below these: 11 lists, see nvme_data_pkg::num_lists


class Silence:
    """Holds back the host's answers of one channel: those with an ID of `owner`, after the first
    `after` of them."""

    def __init__(
        self, channel, field: str, owner: int, after: int = 0, when: Callable[[], bool] = lambda: True
    ) -> None:
        self.channel, self.field, self.owner, self.after, self.when = channel, field, owner, after, when
        self.held: list = []
        self.send = channel.send
        channel.send = self._filter

    async def _filter(self, answer) -> None:
        if int(getattr(answer, self.field)) >> LIST_BITS == self.owner and self.when():
            if self.after == 0:
                self.held.append(answer)
                return
            self.after -= 1
        await self.send(answer)

    async def end(self) -> int:
        """Releases the late answers; returns their number."""
        self.channel.send = self.send
        for answer in self.held:
            await self.send(answer)
        return len(self.held)


def reads(host: Host, owner: int, **kw) -> Silence:
    return Silence(host.host_slave.read_if.r_channel, "rid", owner, **kw)


def writes(host: Host, owner: int, **kw) -> Silence:
    return Silence(host.host_slave.write_if.b_channel, "bid", owner, **kw)


async def works(host: Host, sq) -> None:
    """Data of both channels can be written and read back; the controller becomes idle again."""
    at = host.alloc(8 * PAGE)
    data = host.rng.randbytes(4 * PAGE)
    host.memory.data[at : at + len(data)] = data
    fields = {"cdw10": 64, "cdw12": 31}
    table = host.alloc(PAGE)
    await do(host, sq, WRITE, **host.sgl([(at, 2 * PAGE), (at + 2 * PAGE, 2 * PAGE)], table), **fields)
    prp1, prp2 = host.prps(at + 4 * PAGE, 4 * PAGE)
    await do(host, sq, READ, prp1=prp1, prp2=prp2, **fields)
    assert host.memory.data[at + 4 * PAGE : at + 8 * PAGE] == data
    await host.idle()


@cocotb.test()
async def silent_reads(dut):
    """Data, PRP lists, SGL segments and lists of ranges that never arrive: Data Transfer Error in
    time. Other commands continue meanwhile. Late answers are dropped."""
    host = await start(dut)
    sq, other = await host.io_queues(2, ENTRIES)
    buffer, table = host.alloc(16 * PAGE), host.alloc(PAGE)
    prp1, prp2 = host.prps(buffer, 4 * PAGE)
    whole = {"prp1": prp1, "prp2": prp2, "cdw12": 31}
    segment = host.sgl([(buffer, 2 * PAGE), (buffer + 2 * PAGE, 2 * PAGE)], table)
    ranges = {"prp1": buffer, "cdw10": 9, "cdw11": AD}
    cases = [
        (MOVER0, 0, WRITE, whole),
        (MOVER1, 5, WRITE, whole),
        (MOVER0, 64, COMPARE, whole),
        (LISTS, 0, READ, whole),
        (LISTS, 0, WRITE, whole),
        (LISTS, 0, WRITE, segment | {"cdw12": 31}),
        (LISTS, 0, DSM, ranges),
        (LISTS, 2, DSM, ranges),
        (LISTS, 0, DSM, host.sgl([(buffer, 80), (buffer + 80, 80)], table) | {"cdw10": 9, "cdw11": AD}),
    ]
    cid = host.rw(sq, True, 0, 32, buffer)  # so that a comparison finds no difference
    await host.ring(sq)
    assert (await host.wait(sq, cid)).status == nvme.OK
    for owner, after, opcode, fields in cases:
        silence = reads(host, owner, after=after)
        cids = [host.push(sq, opcode, nsid=1, **fields) for _ in range(3)]
        await host.ring(sq)
        # Of the other channel: in the same channel a read waits for a preceding comparison.
        free = {"prp1": buffer + 8 * PAGE, "cdw10": 8 if owner == MOVER0 else 0, "cdw12": 7}
        await do(host, other, READ, **free)
        await ClockCycles(dut.clk_i, TIMEOUT // 2)
        await host.poll(sq.cq)
        assert (sq.qid, cids[0]) not in host.done
        for cid in cids:
            entry = await host.wait(sq, cid)
            assert (entry.status, entry.dnr) == (nvme.DATA_TRANSFER, False)
        await do(host, other, READ, **free)
        assert await silence.end() > 0
        await works(host, sq)


@cocotb.test()
async def silent_writes(dut):
    """Data towards the host that is never acknowledged ends in time as well."""
    host = await start(dut)
    sq, other = await host.io_queues(2, ENTRIES)
    buffer = host.alloc(16 * PAGE)
    for owner, after in ((MOVER0, 0), (MOVER1, 3)):
        silence = writes(host, owner, after=after)
        cids = [host.rw(sq, False, 0, 32, buffer) for _ in range(3)]
        await host.ring(sq)
        await do(host, other, WRITE, prp1=buffer + 8 * PAGE, cdw10=BLOCKS - 8, cdw12=7)
        for cid in cids:
            assert (await host.wait(sq, cid)).status == nvme.DATA_TRANSFER
        assert await silence.end() > 0
        await works(host, sq)


@cocotb.test()
async def silent_timestamp(dut):
    """Data of an admin command that never arrive: Data Transfer Error in time; the next command
    succeeds."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    page = host.alloc(PAGE)
    silence = reads(host, FRONT, after=1)  # of the entry
    cid = host.push(host.sqs[0], 9, cdw10=0x0E, prp1=page)
    await host.ring(host.sqs[0])
    await ClockCycles(dut.clk_i, TIMEOUT // 2)
    await host.poll(host.cqs[0])
    assert (0, cid) not in host.done
    entry = await host.wait(host.sqs[0], cid)
    assert (entry.status, entry.dnr) == (nvme.DATA_TRANSFER, False)
    assert await silence.end() == 1
    await host.admin(9, cdw10=0x0E, prp1=page)
    await works(host, sq)


@cocotb.test()
async def silent_front_end(dut):
    """Entries and shadow doorbells that never arrive, completions and messages that are never
    acknowledged: fatal status. A new start recovers."""
    host = await start(dut)
    await host.msix(2)
    for make, after, shadow in ((reads, 0, False), (writes, 0, False), (writes, 1, False), (reads, 0, True)):
        if shadow:
            await host.shadow_doorbells()
        (sq,) = await host.io_queues(1, ENTRIES, vectors=True)
        await host.idle()
        silence = make(host, FRONT, after=after)
        host.push(sq, 0, nsid=1)
        await host.ring(sq)
        await ClockCycles(dut.clk_i, TIMEOUT // 2)
        assert await host.read(CSTS) == RDY
        await host.wait_csts(CFS, CFS)
        await host.write(nvme.CC, nvme.CC_SIZES)
        await host.wait_csts(RDY, 0)
        host.shadow = None
        assert await silence.end() > 0
        await ClockCycles(dut.clk_i, 100)
        await host.idle()
        await host.enable(ENTRIES)
    (sq,) = await host.io_queues(1, ENTRIES)
    await works(host, sq)


@cocotb.test()
async def disable_in_silence(dut):
    """A controller whose host is dead can be disabled: all in flight ends, there is no access
    afterwards. Repeated while old answers are still outstanding."""
    host = await start(dut)
    silences = []
    for owner in (MOVER0, LISTS, MOVER1):
        sq, other = await host.io_queues(2, ENTRIES)
        silences.append(reads(host, owner))
        buffer = host.alloc(8 * PAGE)
        for i in range(6):
            host.rw(sq, True, 64 * i, 32, buffer)
            host.rw(other, False, 64 * i, 32, buffer + 4 * PAGE)
        await host.ring(sq)
        await host.ring(other)
        await ClockCycles(dut.clk_i, 300)
        await host.disable()
        await host.enable(ENTRIES)
    for silence in reversed(silences):
        await silence.end()
    (sq,) = await host.io_queues(1, ENTRIES)
    await works(host, sq)


@cocotb.test()
async def slow_host(dut):
    """A host that answers each read just in time causes no timeout."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    read = host.memory.read

    async def slowly(address: int, length: int) -> bytes:
        await ClockCycles(dut.clk_i, TIMEOUT - 200)
        return await read(address, length)

    buffer = host.alloc(PAGE)
    host.memory.read = slowly
    await do(host, sq, WRITE, prp1=buffer, cdw12=0)
    host.memory.read = read
    await works(host, sq)
