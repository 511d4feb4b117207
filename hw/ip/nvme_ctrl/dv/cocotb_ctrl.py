# SPDX-License-Identifier: Apache-2.0
"""Tests of the controller on nvme_ctrl_tb. `Host` checks order, phase, overrun and size of every
entry."""

from __future__ import annotations

import os

import cocotb
import identify_model as model
import nvme_host as nvme
from cocotb.triggers import ClockCycles, RisingEdge
from nvme_host import PAGE, Host, Pump

# Parameters of the test top: I/O queue pairs, their largest size, command slots.
QUEUES, ENTRIES, SLOTS = map(int, os.environ.get("NVME_CTRL_TB", "4 64 16").split())
MEDIA = 4 << 20
BLOCKS = MEDIA // 512


async def start(dut, **kw) -> Host:
    host = Host(dut, MEDIA)
    host.media.data[:] = host.rng.randbytes(MEDIA)
    await host.power_up()
    if kw.pop("enabled", True):
        await host.enable(**kw)
    return host


@cocotb.test()
async def registers(dut):
    """Properties: values, read-only fields, whole BAR0 without a hang or an error response."""
    host = await start(dut, enabled=False)
    cap = await host.read64(nvme.CAP)
    assert cap & 0xFFFF == ENTRIES - 1, "MQES"
    assert cap >> 16 & 1 == 1, "CQR"
    assert cap >> 24 & 0xFF >= 1, "TO"
    assert cap >> 32 & 0xF == 0, "DSTRD"
    assert cap >> 37 & 0xFF == 1, "CSS"
    assert cap >> 48 & 0xFF == 0, "MPSMIN, MPSMAX"
    assert cap >> 36 & 1 == 1, "NSSRS"
    assert cap >> 56 == 1, "PMRS"
    assert cap >> 17 & 3 == 1, "AMS: weighted round robin with urgent priority class"
    assert cap & ~(0xFFFF | 1 << 16 | 1 << 17 | 0xFF << 24 | 3 << 36 | 1 << 56) == 0
    assert await host.read(nvme.VS) == 0x10400
    assert await host.read(nvme.CSTS) == 0

    await host.write(nvme.INTMS, 0xF0F0_000F)
    await host.write(nvme.INTMC, 0x00F0_0003)
    assert await host.read(nvme.INTMS) == 0xF000_000C
    assert await host.read(nvme.INTMC) == 0xF000_000C

    await host.write64(nvme.ASQ, 0xFFFF_FFFF_FFFF_FFFF)
    assert await host.read64(nvme.ASQ) == 0xFFFF_FFFF_FFFF_F000
    await host.write64(nvme.ACQ, 0x1234_5678_9ABC_DEF0)
    assert await host.read64(nvme.ACQ) == 0x1234_5678_9ABC_D000
    await host.write(nvme.AQA, 0xFFFF_FFFF)
    assert await host.read(nvme.AQA) == 0x0FFF_0FFF
    await host.write(nvme.CC, 0xFF00_0000)
    assert await host.read(nvme.CC) == 0
    for offset in (nvme.CAP, nvme.CAP + 4, nvme.VS, nvme.CSTS):
        before = await host.read(offset)
        await host.write(offset, 0xFFFF_FFFF)
        assert await host.read(offset) == before

    for offset in (
        0x20,
        0x38,
        0x3C,
        0xDFC,
        0xE0C,
        0xE10,
        0xE14,
        0xE18,
        0xE1C,
        0x40,
        0xFFC,
        0x1000,
        0x1FFC,
        0x3008,
        0x3FFC,
        0x4014,
        0x8000,
        0xFFFC,
    ):
        await host.write(offset, 0x5A5A_5A5A)
        assert await host.read(offset) == 0
    assert await host.read(nvme.CC) == 0, "0x4014 is not an alias of CC"
    answer = await host.bar.read(0xFFF0, 4)
    assert int(answer.resp) == 0
    await host.idle()


@cocotb.test()
async def enable_with_unusable_settings(dut):
    """CFS on a CC, AQA, ASQ or ACQ that cannot be used; a reset recovers."""
    host = await start(dut, enabled=False)
    good = {nvme.AQA: 0x000F_000F, nvme.ASQ: 0x10000, nvme.ACQ: 0x20000, nvme.CC: nvme.CC_SIZES | 1}
    bad = [
        {nvme.AQA: 0x000F_0000},
        {nvme.AQA: 0x0000_000F},
        {nvme.ASQ: 0},
        {nvme.ACQ: 0},
        {nvme.CC: nvme.CC_SIZES | 1 | 1 << 4},
        {nvme.CC: nvme.CC_SIZES | 1 | 1 << 7},
        {nvme.CC: nvme.CC_SIZES | 1 | 2 << 11},
        {nvme.CC: nvme.CC_SIZES | 1 | 7 << 11},
    ]
    for change in bad:
        values = good | change
        for offset, value in values.items():
            await host.write(offset, value)
        assert await host.wait_csts(nvme.CFS, nvme.CFS) == nvme.CFS, change
        await host.doorbell(0, False, 1)
        await host.idle()
        await host.write(nvme.CC, 0)
        await host.wait_csts(nvme.RDY | nvme.CFS, 0)
    assert not host.memory.reads
    await host.enable()
    await host.admin(6, cdw10=1, prp1=host.alloc(PAGE))


@cocotb.test()
async def start_like_linux(dut):
    """The order of Linux: Identify, Number of Queues, queues with interrupts, AER, namespaces; then
    I/O."""
    host = await start(dut, entries=32)
    await host.msix(QUEUES + 1)
    page = await host.identify(1)
    assert page[512] == 0x66
    entry = await host.admin(9, cdw10=7, cdw11=0x00FF_00FF)
    assert entry.dw0 == (QUEUES - 1) << 16 | (QUEUES - 1)
    sqs = await host.io_queues(QUEUES, ENTRIES, vectors=True)
    aer = host.push(host.sqs[0], 12)
    await host.ring(host.sqs[0])
    assert (await host.identify(6)) == model.command_set()
    assert (await host.identify(2))[:8] == b"\1\0\0\0\0\0\0\0"
    assert (await host.identify(3, 1))[0] == 1
    assert (await host.identify(0, 1))[130] == 9
    for sq in sqs:
        for write in (True, False):
            cid = host.rw(sq, write, 100, 8, host.alloc(PAGE))
            await host.ring(sq)
            assert (await host.wait(sq, cid)).status == nvme.OK
    await host.idle()
    assert (0, aer) not in host.done
    for vector in range(QUEUES + 1):
        assert 0x1000 + vector in host.interrupts


@cocotb.test()
async def start_like_spdk(dut):
    """SPDK: deep admin queue, CC and EN in one write, polling without interrupts, shut down through
    SHN."""
    host = await start(dut, entries=256, spdk=True)
    await host.identify(1)
    await host.admin(9, cdw10=7, cdw11=0x000F_000F)
    sqs = await host.io_queues(2, ENTRIES)
    await Pump(host, sqs).run(20)
    for sq in sqs:
        await host.delete_sq(sq.qid)
        await host.delete_cq(sq.cq.qid)
    await host.shutdown()
    assert not host.interrupts
    await host.doorbell(0, False, 0)
    await ClockCycles(dut.clk_i, 200)
    assert await host.read(nvme.CSTS) == nvme.RDY | 2 << 2
    await host.disable()
    await host.enable()
    await host.identify(1)


@cocotb.test()
async def identify(dut):
    """Every byte of every page against the model, at several buffer offsets; namespace errors;
    other CNS."""
    host = await start(dut)
    cases = [
        (0, 1, model.namespace(MEDIA, host.identity.eui64)),
        (1, 0, model.controller(host.identity.serial)),
        (2, 0, model.namespaces(0)),
        (2, 1, model.namespaces(1)),
        (3, 1, model.descriptors(host.identity.eui64)),
        (6, 0, model.command_set()),
        (8, 1, model.independent()),
        # Controller lists (NVMe 1.4, 4.9, 5.15; CNTID in CDW10) from this identifier on.
        (0x12, 1, model.controllers(1)),
        (0x12 | 1 << 16, 1, model.controllers(1)),
        (0x12 | 2 << 16, 1, model.controllers()),
        (0x13, 0, model.controllers(1)),
        (0x13 | 1 << 16, 0xFFFF_FFFF, model.controllers(1)),
        (0x13 | 0xFFFF << 16, 0, model.controllers()),
    ]
    for cns, nsid, want in cases:
        for offset in (0, 4, 512, 4092):
            got = await host.identify(cns, nsid, offset)
            differ = [i for i in range(PAGE) if got[i] != want[i]]
            assert not differ, f"CNS {cns} NSID {nsid} at {offset}: bytes {differ[:8]}"
    buffer = host.alloc(PAGE)
    for cns, nsid in (
        (0, 0),
        (0, 2),
        (0, 0xFFFF_FFFF),
        (3, 0),
        (3, 2),
        (2, 0xFFFF_FFFE),
        (2, 0xFFFF_FFFF),
        (0x12, 0),
        (0x12, 2),
    ):
        await host.admin(6, want=nvme.INVALID_NAMESPACE, cdw10=cns, nsid=nsid, prp1=buffer)
    for nsid in (0, 2, 0xFFFF_FFFF):
        await host.admin(6, want=nvme.INVALID_NAMESPACE, cdw10=8, nsid=nsid, prp1=buffer)
    await host.admin(6, want=nvme.INVALID_FIELD, cdw10=0x12, nsid=0xFFFF_FFFF, prp1=buffer)
    for cns in (4, 5, 7, 9, 0x10, 0x11, 0x14, 0x15, 0xFF):
        await host.admin(6, want=nvme.INVALID_FIELD, cdw10=cns, nsid=1, prp1=buffer)
    for csi in (1, 2, 0x80):
        await host.admin(6, want=nvme.INVALID_FIELD, cdw10=6, cdw11=csi << 24, prp1=buffer)
    await host.admin(6, want=nvme.PRP_OFFSET, cdw10=1, prp1=buffer + 8, prp2=buffer + 12)
    await host.admin(6, want=nvme.DATA_TRANSFER, dnr=False, cdw10=1, prp1=0x7FFF_F000)


@cocotb.test()
async def queue_management(dut):
    """Create and Delete with every error of the specification; nothing is created by a failed
    command."""
    host = await start(dut, entries=8)
    top = ENTRIES - 1
    page = host.alloc(2 * PAGE)

    async def cq(want, qid=1, size=top, vector=0, pc=1, prp=page):
        await host.admin(5, want=want, cdw10=size << 16 | qid, cdw11=vector << 16 | 2 | pc, prp1=prp)

    async def sq(want, qid=1, size=top, cqid=1, pc=1, prp=page + PAGE):
        await host.admin(1, want=want, cdw10=size << 16 | qid, cdw11=cqid << 16 | pc, prp1=prp)

    await sq(nvme.CQ_INVALID)
    for qid in (0, QUEUES + 1, 0xFFFF, 1 << 8 | 1):
        await cq(nvme.INVALID_QID, qid=qid)
    for size in (0, ENTRIES, 0xFFFF):
        await cq(nvme.INVALID_SIZE, size=size)
    for vector in (QUEUES + 1, 0xFFFF):
        await cq(nvme.INVALID_VECTOR, vector=vector)
    await cq(nvme.INVALID_FIELD, pc=0)
    for offset in (4, 16, 2048):
        await cq(nvme.PRP_OFFSET, prp=page + offset)
    await sq(nvme.CQ_INVALID)
    await cq(nvme.OK, vector=QUEUES)
    await cq(nvme.INVALID_QID)

    for qid in (0, QUEUES + 1, 0xFFFF):
        await sq(nvme.INVALID_QID, qid=qid)
    for cqid in (0, QUEUES + 1, 0xFFFF):
        await sq(nvme.INVALID_QID, cqid=cqid)
    await sq(nvme.CQ_INVALID, cqid=2)
    for size in (0, ENTRIES):
        await sq(nvme.INVALID_SIZE, size=size)
    await sq(nvme.INVALID_FIELD, pc=0)
    await sq(nvme.PRP_OFFSET, prp=page + 64)
    await host.admin(0, want=nvme.INVALID_QID, cdw10=1)
    await sq(nvme.OK)
    await sq(nvme.INVALID_QID)
    await sq(nvme.OK, qid=3)

    await host.admin(9, want=nvme.SEQUENCE_ERROR, cdw10=7, cdw11=0)
    await host.admin(4, want=nvme.INVALID_DELETION, cdw10=1)
    await host.admin(0, cdw10=1)
    await host.admin(4, want=nvme.INVALID_DELETION, cdw10=1)
    for qid in (0, 1, 2, QUEUES + 1, 0xFFFF):
        await host.admin(0, want=nvme.INVALID_QID, cdw10=qid)
    await host.admin(0, cdw10=3)
    for qid in (0, 2, QUEUES + 1):
        await host.admin(4, want=nvme.INVALID_QID, cdw10=qid)
    await host.admin(4, cdw10=1)
    await host.admin(4, want=nvme.INVALID_QID, cdw10=1)
    await host.admin(9, cdw10=7, cdw11=0)

    # Without entry sizes in CC, no I/O queue can be created.
    await host.disable()
    host.allocator = 64 * PAGE
    await host.enable()
    await host.write(nvme.CC, 1)
    await cq(nvme.INVALID_SIZE)
    await host.write(nvme.CC, 4 << 20 | 1)
    await cq(nvme.OK)
    await sq(nvme.INVALID_SIZE)


@cocotb.test()
async def features(dut):
    """Set and Get of every mandatory feature, defaults, bits that don't exist, errors, defaults
    after a reset."""
    host = await start(dut)

    async def get(fid, cdw11=0, want=nvme.OK, nsid=0):
        return (await host.admin(10, want=want, cdw10=fid, cdw11=cdw11, nsid=nsid)).dw0

    async def put(fid, value, want=nvme.OK, nsid=0, save=0):
        return (await host.admin(9, want=want, cdw10=save << 31 | fid, cdw11=value, nsid=nsid)).dw0

    async def defaults():
        assert await get(1) == 7
        assert await get(4) == 343
        assert await get(4, 1 << 20) == 0
        for fid in (2, 8, 10, 11):
            assert await get(fid) == 0
        assert await get(5, nsid=1) == 0
        for vector in range(QUEUES + 1):
            assert await get(9, vector) == vector

    count = (QUEUES - 1) << 16 | (QUEUES - 1)
    await defaults()
    assert await get(7) == count
    for request in (0, 0x0001_0001, 0xFFFE_FFFE):
        assert await put(7, request) == count
    for request in (0xFFFF, 0xFFFF_0000, 0xFFFF_FFFF):
        await put(7, request, want=nvme.INVALID_FIELD)

    for fid, value, stored in (
        (1, 0xFFFF_FFFF, 0xFFFF_FF07),
        (1, 0x0102_0303, 0x0102_0303),
        (2, 0x40, 0x40),
        (4, 0x0150, 0x0150),
        (8, 0xFFFF_1234, 0x1234),
        (10, 3, 1),
        (11, 0xFFFF_FFFF, 0x1FF),
    ):
        await put(fid, value)
        assert await get(fid) == stored, f"feature {fid}"
    await put(4, 0x0100 | 1 << 20)
    assert await get(4, 1 << 20) == 0x0100
    assert await get(4) == 0x0150
    await put(4, 0x0160 | 0xF << 16)
    assert await get(4) == 0x0160
    await put(9, 1 << 16 | 2)
    assert await get(9, 2) == 1 << 16 | 2
    assert await get(9, 1) == 1
    await put(5, 0x1234, nsid=1)
    assert await get(5, nsid=1) == 0x1234

    await put(2, 1, want=nvme.INVALID_FIELD)
    await put(4, 1 << 16, want=nvme.INVALID_FIELD)
    await put(4, 2 << 20, want=nvme.INVALID_FIELD)
    await get(4, 0xF << 16, want=nvme.INVALID_FIELD)
    await put(5, 1 << 16, want=nvme.INVALID_FIELD, nsid=1)
    await put(5, 0, want=nvme.INVALID_NAMESPACE)
    await get(5, want=nvme.INVALID_NAMESPACE, nsid=0xFFFF_FFFF)
    await get(9, QUEUES + 1, want=nvme.INVALID_FIELD)
    await put(9, 0xFFFF, want=nvme.INVALID_FIELD)
    await put(8, 0, want=nvme.NOT_SAVEABLE, save=1)
    await put(8, 0, want=nvme.NOT_NAMESPACE, nsid=1)
    await put(8, 0, want=nvme.INVALID_NAMESPACE, nsid=2)
    await put(8, 0, nsid=0xFFFF_FFFF)
    await put(3, 0, want=nvme.INVALID_FIELD, save=1)
    for fid in (0, 3, 6, 0xC, 0xD, 0x10, 0x11, 0x12, 0x14, 0x81, 0xC1, 0xFF):
        await get(fid, want=nvme.INVALID_FIELD)
        await put(fid, 0, want=nvme.INVALID_FIELD)
    # Select: defaults, also for saved values, since nothing is saved; capabilities.
    for fid, value in ((1, 7), (2, 0), (4, 343), (8, 0), (10, 0), (11, 0), (7, count), (9, 2)):
        nsid_free = {"cdw11": 2} if fid == 9 else {}
        for select in (1, 2):
            assert await get(select << 8 | fid, **nsid_free) == value, f"feature {fid}"
        assert await get(3 << 8 | fid, **nsid_free) == 4, f"feature {fid}: changeable"
    assert await get(1 << 8 | 4, 1 << 20) == 0
    assert await get(1 << 8 | 5, nsid=1) == 0
    assert await get(3 << 8 | 5, nsid=1) == 6, "a namespace's"
    assert await get(1) == 0x0102_0303, "nothing has changed"
    for select in range(4, 8):
        await get(select << 8 | 1, want=nvme.INVALID_FIELD)
    await get(1 << 8 | 3, want=nvme.INVALID_FIELD)
    await host.disable()
    await host.enable()
    await defaults()


@cocotb.test()
async def admin_commands_other(dut):
    """AER parked up to the limit, Abort of nothing; logs, opcodes, flags that do not exist; a
    two-entry queue."""
    host = await start(dut, entries=2)
    sq = host.sqs[0]
    for _ in range(4):
        host.push(sq, 12)
        await host.ring(sq)
        for _ in range(100):
            await ClockCycles(dut.clk_i, 4)
            if len(host.memory.reads) >= sq.tail:
                break
        # The head of a parked command is reported only by the next completion.
        assert (await host.command_after_parked(sq)).status == nvme.OK
    await host.admin(12, want=nvme.AER_LIMIT, dnr=False)
    await host.idle()
    assert not host.done, "AERs stay parked"

    assert (await host.admin(8, cdw10=1 << 16)).dw0 == 1
    for log in (6, 7, 0x0D, 0x80, 0xC1, 0xFF):
        await host.admin(2, want=nvme.INVALID_LOG, cdw10=0x7F << 16 | log, prp1=PAGE)
    for opcode in (3, 7, 0x0D, 0x10, 0x11, 0x14, 0x1A, 0x7F, 0x84, 0xC0, 0xFF):
        await host.admin(opcode, want=nvme.INVALID_OPCODE, nsid=1)
    for flags in (1, 2, 0x40, 0x80, 0xC0):
        await host.admin(6, want=nvme.INVALID_FIELD, cdw10=1, flags=flags)
    await host.disable()
    await host.enable(entries=16)
    for _ in range(4):
        host.push(host.sqs[0], 12)
    await host.ring(host.sqs[0])
    await host.admin(12, want=nvme.AER_LIMIT, dnr=False)
    await host.shutdown()
    assert not host.done


@cocotb.test()
async def io_sizes(dut):
    """Write, read back and flush, every size from 512 B to 1 MiB in powers of two, and odd ones;
    last block."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    source, target = host.alloc((1 << 20) + PAGE), host.alloc((1 << 20) + PAGE)
    for blocks in (1, 2, 3, 4, 7, 8, 9, 16, 32, 64, 100, 256, 512, 2048):
        size = 512 * blocks
        lba = host.rng.choice((0, BLOCKS - blocks, host.rng.randrange(BLOCKS - blocks)))
        offset = host.rng.choice((0, 4, 512, 2052, 4092))
        data = host.rng.randbytes(size)
        host.memory.data[source + offset : source + offset + size] = data
        cid = host.rw(sq, True, lba, blocks, source + offset)
        await host.ring(sq)
        assert (await host.wait(sq, cid)).status == nvme.OK
        assert host.media.data[512 * lba : 512 * lba + size] == data
        assert (await host.command(sq, 0, nsid=1)).status == nvme.OK
        cid = host.rw(sq, False, lba, blocks, target + 4096 - offset)
        await host.ring(sq)
        assert (await host.wait(sq, cid)).status == nvme.OK
        assert host.memory.data[target + 4096 - offset : target + 4096 - offset + size] == data
    assert (await host.command(sq, 0, nsid=0xFFFF_FFFF)).status == nvme.OK


@cocotb.test()
async def io_errors(dut):
    """Each malformed I/O command gets its status, changes nothing, and does not disturb other
    commands."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    buffer = host.alloc(PAGE)
    before = bytes(host.media.data)
    rw = {"nsid": 1, "prp1": buffer, "cdw12": 7}
    cases = [(nvme.INVALID_OPCODE, opcode, rw) for opcode in (3, 4, 6, 7, 0xA, 0xD, 0x0E, 0x7F, 0x80, 0xFF)]
    for op in (1, 2):
        cases += [
            (nvme.INVALID_NAMESPACE, op, rw | {"nsid": 0}),
            (nvme.INVALID_NAMESPACE, op, rw | {"nsid": 2}),
            (nvme.INVALID_NAMESPACE, op, rw | {"nsid": 0xFFFF_FFFF}),
            (nvme.INVALID_FIELD, op, rw | {"flags": 0x03}),
            (nvme.INVALID_FIELD, op, rw | {"flags": 0xC0}),
            (nvme.SGL_LENGTH, op, rw | {"flags": 0x40}),
            (nvme.INVALID_FIELD, op, rw | {"cdw12": 2048}),
            (nvme.INVALID_FIELD, op, rw | {"cdw12": 0xFFFF}),
            (nvme.LBA_RANGE, op, rw | {"cdw10": BLOCKS}),
            (nvme.LBA_RANGE, op, rw | {"cdw10": BLOCKS - 7}),
            (nvme.LBA_RANGE, op, rw | {"cdw11": 1}),
            (nvme.LBA_RANGE, op, rw | {"cdw10": 0xFFFF_FFFF, "cdw11": 0xFFFF_FFFF}),
            (nvme.LBA_RANGE, op, rw | {"cdw10": 0xFFFF_FFFC, "cdw11": 0xFFFF_FFFF}),
            (nvme.PRP_OFFSET, op, rw | {"prp1": buffer + 4, "prp2": buffer + 4}),
        ]
    cases += [
        (nvme.INVALID_NAMESPACE, 0, {"nsid": 0}),
        (nvme.INVALID_NAMESPACE, 0, {"nsid": 2}),
        (nvme.INVALID_FIELD, 0, {"nsid": 1, "flags": 0xC0}),
    ]
    host.rng.shuffle(cases)
    for want, opcode, fields in cases:
        neighbour = host.rw(sq, False, 0, 8, buffer)
        cid = host.push(sq, opcode, **fields)
        await host.ring(sq)
        entry = await host.wait(sq, cid)
        assert entry.status == want, f"{opcode:#x} {fields}: {entry.status:#x}, wanted {want:#x}"
        assert entry.dnr
        assert entry.dw0 == 0
        assert (await host.wait(sq, neighbour)).status == nvme.OK
        # data before the bad entry may have been written
        if (want, opcode) == (nvme.PRP_OFFSET, 1):
            before = bytes(host.media.data[:PAGE]) + before[PAGE:]
        assert host.media.data == before, f"{opcode:#x} {fields}"


@cocotb.test()
async def bus_errors(dut):
    """Data that host or media refuse: Data Transfer Error, Write Fault, Unrecovered Read Error, all
    retryable."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    good = host.alloc(PAGE)
    bad = host.alloc(PAGE)
    host.memory.refuse.append(range(bad, bad + PAGE))
    host.media.refuse.append(range(0x10000, 0x11000))
    for want, write, lba, buffer in (
        (nvme.DATA_TRANSFER, True, 0, bad),
        (nvme.DATA_TRANSFER, False, 0, bad),
        (nvme.WRITE_FAULT, True, 0x10000 // 512, good),
        (nvme.READ_ERROR, False, 0x10000 // 512, good),
        (nvme.OK, True, 0, good),
        (nvme.OK, False, 0, good),
    ):
        cid = host.rw(sq, write, lba, 8, buffer)
        await host.ring(sq)
        entry = await host.wait(sq, cid)
        assert entry.status == want
        assert not entry.dnr
    assert await host.read(nvme.CSTS) == nvme.RDY


@cocotb.test()
async def fetch_error(dut):
    """An entry that cannot be read is fatal: CFS, no further fetches; a reset recovers."""
    host = await start(dut)
    await host.io_queues(1, ENTRIES)
    refused = range(host.sqs[1].base, host.sqs[1].base + 64)
    host.memory.refuse.append(refused)
    host.push(host.sqs[1], 0, nsid=1)
    await host.ring(host.sqs[1])
    await host.wait_csts(nvme.CFS, nvme.CFS)
    await host.idle()
    reads = len(host.memory.reads)
    await host.doorbell(0, False, 0)
    host.push(host.sqs[0], 6, cdw10=1, prp1=PAGE)
    await host.ring(host.sqs[0])
    await ClockCycles(dut.clk_i, 200)
    assert len(host.memory.reads) == reads
    await host.disable()
    host.memory.refuse.clear()
    await host.enable()
    sqs = await host.io_queues(1, ENTRIES)
    await Pump(host, sqs).run(5)


@cocotb.test()
async def write_error(dut):
    """A completion entry that the host refuses is fatal as well."""
    host = await start(dut)
    cq = host.cqs[0]
    host.memory.refuse.append(range(cq.base, cq.base + PAGE))
    host.push(host.sqs[0], 8)
    await host.ring(host.sqs[0])
    await host.wait_csts(nvme.CFS, nvme.CFS)
    host.memory.refuse.clear()
    await host.disable()
    await host.enable()
    await host.identify(1)


async def mix(dut, commands: int, entries: int, chance: float, queues: int = QUEUES) -> Host:
    host = await start(dut)
    host.pauses(chance)
    sqs = await host.io_queues(queues, entries)
    await Pump(host, sqs).run(commands)
    await host.idle()
    return host


@cocotb.test()
async def io_random_mix(dut):
    """Random reads and writes on all queues, any alignment, random back-pressure, data compared."""
    await mix(dut, 150, 16, 0.2)


@cocotb.test()
async def io_random_mix_fast(dut):
    """The same without back-pressure."""
    await mix(dut, 250, ENTRIES, 0.0)


@cocotb.test()
async def queue_wrap_around(dut):
    """Queues of 2, 3, 5 and 7 entries, with many wrap-arounds."""
    host = await start(dut, entries=3)
    sqs = []
    for qid, (sq_entries, cq_entries) in enumerate(((2, 7), (3, 2), (5, 3), (7, 5)), 1):
        sqs.append(await host.create_sq(qid, sq_entries, await host.create_cq(qid, cq_entries)))
    await Pump(host, sqs, max_blocks=2).run(150)
    for _ in range(10):
        await host.admin(8)


@cocotb.test()
async def completion_queue_full(dut):
    """A host that does not consume: nothing is overwritten, other queues continue, and all entries
    arrive once it consumes."""
    host = await start(dut)
    lazy = await host.create_sq(1, 32, await host.create_cq(1, 4))
    other = await host.create_sq(2, 32, await host.create_cq(2, 32))
    lazy.cq.hold = True
    cids = [host.push(lazy, 0, nsid=1) for _ in range(20)]
    await host.ring(lazy)
    await Pump(host, [other]).run(40)
    assert (await host.command(0, 8)).status == nvme.OK
    await host.idle()
    assert lazy.cq.written == 3
    lazy.cq.hold = False
    for cid in cids:
        await host.wait(lazy, cid)
    # Two queues of one completion queue share its room.
    lazy.cq.hold = True
    second = await host.create_sq(3, 32, lazy.cq)
    expect = [(sq, host.push(sq, 0, nsid=1)) for _ in range(8) for sq in (lazy, second)]
    await host.ring(lazy)
    await host.ring(second)
    await ClockCycles(dut.clk_i, 300)
    assert lazy.cq.written == 3
    # A queue can be deleted meanwhile; what was fetched completes, the rest is dropped.
    lazy.cq.hold = False
    for sq, cid in expect:
        await host.wait(sq, cid)
    lazy.cq.hold = True
    for _ in range(8):
        host.push(lazy, 0, nsid=1)
    await host.ring(lazy)
    await host.idle()
    await host.delete_sq(1)
    assert lazy.cq.written == 3


@cocotb.test()
async def queue_deletion_in_flight(dut):
    """Deletion of a submission queue waits for its commands, whose completions precede that of the
    deletion."""
    host = await start(dut)
    sqs = await host.io_queues(2, ENTRIES)
    for round_ in range(4):
        host.stall(host.mem_slave, True)
        buffer = host.alloc(32 * 1024)
        cids = [host.rw(sqs[0], False, 64 * i, 8, buffer + PAGE * (i % 8)) for i in range(8)]
        await host.ring(sqs[0])
        await ClockCycles(dut.clk_i, 40 + 13 * round_)
        admin = host.push(host.sqs[0], 0, cdw10=1)
        await host.ring(host.sqs[0])
        await ClockCycles(dut.clk_i, 400)
        await host.poll(host.cqs[0])
        assert (0, admin) not in host.done, "the queue still has commands in flight"
        assert (await host.command(sqs[1], 0, nsid=1)).status == nvme.OK
        at = len(host.log)
        host.stall(host.mem_slave, False)
        assert (await host.wait(host.sqs[0], admin)).status == nvme.OK
        order = [entry[1] for entry in host.log[at:] if entry[0] == "cqe"]
        assert order[-1] == 0
        await host.poll(sqs[0].cq)
        finished = [cid for cid in cids if host.done.pop((1, cid), None)]
        assert finished == cids, "all had been fetched"
        await host.doorbell(1, False, 3)
        newest = await host.log_page(1, 64)
        assert newest[8:14] == model.error(0, 0xFFFF, 0xFFFF, nvme.INVALID_QID)[8:14], "the doorbell is gone"
        sqs[0] = await host.create_sq(1, ENTRIES, sqs[0].cq)


@cocotb.test()
async def interrupts(dut):
    """MSI-X: order after entries, masks by vector and function, pending bits, shared vectors, table
    access."""
    host = await start(dut)
    for offset in range(0, 16 * (QUEUES + 1), 16):
        assert await host.read(nvme.TABLE + offset + 12) == 1, "masked after reset"
    await host.msix(QUEUES + 1)
    for vector in range(QUEUES + 1):
        entry = [await host.read(nvme.TABLE + 16 * vector + 4 * word) for word in range(4)]
        assert entry == [nvme.MSI + 4 * vector, 0, 0x1000 + vector, 0]
    await host.write(nvme.TABLE + 16 * (QUEUES + 1), 0xFFFF_FFFF)
    assert await host.read(nvme.TABLE + 16 * (QUEUES + 1)) == 0

    sqs = await host.io_queues(2, ENTRIES, vectors=True)
    silent = await host.create_sq(3, ENTRIES, await host.create_cq(3, ENTRIES, None))
    shared = await host.create_sq(4, ENTRIES, await host.create_cq(4, ENTRIES, 1))

    async def flush(sq, *want):
        await host.idle()
        host.interrupts.clear()
        at = len(host.log)
        assert (await host.command(sq, 0, nsid=1)).status == nvme.OK
        await host.idle()
        assert host.interrupts == [0x1000 + v for v in want]
        kinds = [entry[0] for entry in host.log[at:]]
        assert kinds == ["cqe"] + ["msi"] * len(want)

    await flush(sqs[0], 1)
    await flush(sqs[1], 2)
    await flush(silent)
    await flush(shared, 1)
    # Data, entry, message, in that order.
    at = len(host.log)
    cid = host.rw(sqs[0], False, 0, 16, host.alloc(2 * PAGE))
    await host.ring(sqs[0])
    await host.wait(sqs[0], cid)
    await host.idle()
    kinds = [entry[0] for entry in host.log[at:]]
    assert kinds == ["data"] * (len(kinds) - 2) + ["cqe", "msi"]
    assert len(kinds) == 130

    # One vector masked.
    await host.write(nvme.TABLE + 16 * 1 + 12, 1)
    await flush(sqs[0])
    await flush(sqs[0])
    assert await host.read(nvme.PBA) == 1 << 1
    await flush(sqs[1], 2)
    host.interrupts.clear()
    await host.write(nvme.TABLE + 16 * 1 + 12, 0)
    await host.idle()
    assert host.interrupts == [0x1001], "one message, however many entries"
    assert await host.read(nvme.PBA) == 0
    # All masked.
    dut.msix_mask_i.value = 1
    await ClockCycles(dut.clk_i, 4)
    await flush(sqs[0])
    host.push(sqs[1], 0, nsid=1)
    await host.ring(sqs[1])
    await host.idle()
    assert await host.read(nvme.PBA) == 3 << 1
    assert await host.read(nvme.PBA + 4) == 0
    host.interrupts.clear()
    dut.msix_mask_i.value = 0
    await ClockCycles(dut.clk_i, 4)
    await host.idle()
    await ClockCycles(dut.clk_i, 20)
    assert sorted(host.interrupts) == [0x1001, 0x1002]
    # Disabled: nothing is sent, nothing kept.
    dut.msix_enable_i.value = 0
    await ClockCycles(dut.clk_i, 4)
    await flush(sqs[0])
    dut.msix_enable_i.value = 1
    await ClockCycles(dut.clk_i, 4)
    await flush(sqs[1], 2)
    # A pending interrupt does not survive a controller reset.
    dut.msix_mask_i.value = 1
    await ClockCycles(dut.clk_i, 4)
    await flush(sqs[0])
    await host.disable()
    dut.msix_mask_i.value = 0
    host.interrupts.clear()
    await ClockCycles(dut.clk_i, 50)
    assert not host.interrupts
    assert await host.read(nvme.PBA) == 0


@cocotb.test()
async def interrupts_before_reads(dut):
    """A read of BAR0 completes after the messages that were decided before it (PCI Express 4.0,
    2.4.1). After the mask of a vector or the function has been read back, no message is sent. The
    same holds after MSI-X is off and any register was read. No message ever uses the old address.
    At every phase, with and without a link that is slow to accept."""
    host = await start(dut)
    await host.msix(QUEUES + 1)
    (sq, other) = await host.io_queues(2, ENTRIES, vectors=True)
    entry = nvme.TABLE + 16 * 1
    places = [nvme.MSI + 4 * v for v in range(32, 1024)]
    place, late = nvme.MSI + 4, 0
    channels = host.host_slave.write_if
    for round_ in range(150):
        slow, how = round_ % 3, ("vector", "vector", "function", "disable")[round_ % 4]
        host.log.clear()
        for queue in (sq, other, sq):
            host.push(queue, 0, nsid=1)
            await host.ring(queue)
        await ClockCycles(dut.clk_i, host.rng.randrange(70))
        for channel in (channels.aw_channel, channels.w_channel)[:slow]:
            channel.pause = True
        if how == "vector":
            await host.write(entry + 12, 1)
            old, place = place, places.pop()
            await host.write(entry, place)
            reading = cocotb.start_soon(host.read(entry if round_ & 8 else entry + 12))
        else:
            old = None
            if how == "function":
                dut.msix_mask_i.value = 1
            else:
                dut.msix_enable_i.value = 0
            await ClockCycles(dut.clk_i, 3)
            reading = cocotb.start_soon(host.read(nvme.CSTS))
        await ClockCycles(dut.clk_i, 60)
        channels.aw_channel.pause = channels.w_channel.pause = False
        value = await reading
        assert value == (nvme.RDY if how != "vector" else place if round_ & 8 else 1)
        at = len(host.log)
        late += slow > 0 and any(entry[0] == "msi" for entry in host.log)
        await ClockCycles(dut.clk_i, 300)
        after = [entry[1] for entry in host.log[at:] if entry[0] == "msi"]
        if how == "vector":
            assert (old - nvme.MSI) // 4 not in after, f"round {round_}: a message after its mask was read back"
            assert (place - nvme.MSI) // 4 not in after
            await host.write(entry + 12, 0)
        else:
            assert not after, f"round {round_}: a message after a read"
            dut.msix_mask_i.value, dut.msix_enable_i.value = 0, 1
        await host.idle()
        await ClockCycles(dut.clk_i, 20)
        if old is not None:
            sent = [entry[1] for entry in host.log if entry[0] == "msi"]
            assert {(old - nvme.MSI) // 4, (place - nvme.MSI) // 4} & set(sent), "the interrupt is not lost"
        for queue in (sq, other):
            await host.poll(queue.cq)
        host.done.clear()
    assert late > 5


@cocotb.test()
async def interrupts_under_load(dut):
    """With interrupts on and back-pressure, every entry is followed by a message of its vector."""
    host = await start(dut)
    await host.msix(QUEUES + 1)
    host.pauses(0.3)
    sqs = await host.io_queues(QUEUES, 16, vectors=True)
    await Pump(host, sqs, max_blocks=4).run(100)
    await host.idle()
    last = {}
    for at, entry in enumerate(host.log):
        if entry[0] in ("cqe", "msi"):
            last[entry[:2]] = at
    for qid in range(QUEUES + 1):
        assert last["msi", qid] > last["cqe", qid]


@cocotb.test()
async def disable_in_flight(dut):
    """CC.EN to 0 at any time of a running load: RDY falls, no DMA afterwards, and the controller
    starts again."""
    host = await start(dut)
    for round_ in range(8):
        sqs = await host.io_queues(QUEUES, 16)
        host.push(host.sqs[0], 12)
        await host.ring(host.sqs[0])
        pump = Pump(host, sqs)
        for sq in sqs:
            while pump.submit(sq):
                pass
            await host.ring(sq)
        if round_ % 2:
            host.stall(host.mem_slave, True)
            cocotb.start_soon(resume(dut, host, 500))
        await ClockCycles(dut.clk_i, 7 * round_ * round_ + 1)
        await host.disable()
        await host.idle()
        host.allocator = 256 * PAGE
        await host.enable()
    sqs = await host.io_queues(QUEUES, 16)
    await Pump(host, sqs).run(40)


async def resume(dut, host: Host, cycles: int) -> None:
    await ClockCycles(dut.clk_i, cycles)
    host.stall(host.mem_slave, False)


@cocotb.test()
async def shutdown_in_flight(dut):
    """SHN under load: all fetched commands complete before SHST reports complete, then no access; a
    reset recovers."""
    host = await start(dut)
    for notification in (1, 2):
        sqs = await host.io_queues(QUEUES, 16)
        pump = Pump(host, sqs)
        for sq in sqs:
            while pump.submit(sq):
                pass
            await host.ring(sq)
        await ClockCycles(dut.clk_i, 100)
        await host.write(nvme.CC, nvme.CC_SIZES | 1 | notification << 14)
        await host.wait_csts(3 << 2, 2 << 2)
        await ClockCycles(dut.clk_i, 300)
        assert await host.read(nvme.CSTS) == nvme.RDY | 2 << 2
        await host.disable()
        assert await host.read(nvme.CSTS) == 0
        host.allocator = 256 * PAGE
        await host.enable()
    # A notification to a disabled controller is answered at once.
    await host.disable()
    await host.write(nvme.CC, nvme.CC_SIZES | 1 << 14)
    await host.wait_csts(0xF, 2 << 2)
    await host.write(nvme.CC, nvme.CC_SIZES)
    await host.wait_csts(0xF, 0)


@cocotb.test()
async def doorbells_out_of_range(dut):
    """Doorbells of queues that do not exist, or with invalid values, change nothing; each is an
    error event."""
    host = await start(dut, entries=16)
    sqs = await host.io_queues(2, 16)
    cases = [(0, qid, is_cq, 1) for qid in (3, QUEUES, QUEUES + 1, 63, 64, 511) for is_cq in (False, True)]
    cases += [(1, 1, is_cq, value) for value in (16, 17, 0xFFFF) for is_cq in (False, True)]
    cases += [(1, 0, True, 12), (1, 1, True, 1)]
    for info, qid, is_cq, value in cases:
        cid = await host.park()
        reads = len(host.memory.reads)
        await host.doorbell(qid, is_cq, value)
        assert await host.event(cid) == 1 << 16 | info << 8, f"{qid} {is_cq} {value}"
        assert len(host.memory.reads) == reads, f"{qid} {is_cq} {value}"
        status = nvme.INVALID_FIELD if info else nvme.INVALID_QID
        newest = await host.log_page(1, 64)
        assert newest[8:14] == model.error(0, 0xFFFF, 0xFFFF, status)[8:14], f"{qid} {is_cq} {value}"
    # Partial writes are not doorbells.
    cid = await host.park()
    reads = len(host.memory.reads)
    await host._within(host.bar.write(nvme.DOORBELLS + 8, b"\x01"))
    assert await host.event(cid) is None
    assert len(host.memory.reads) == reads
    await Pump(host, sqs).run(30)
    assert await host.event(cid) is None


@cocotb.test()
async def slots_exhausted(dut):
    """More commands than slots: the rest waits in the host's queues, nothing is lost, admin
    commands get through."""
    host = await start(dut)
    sqs = await host.io_queues(QUEUES, ENTRIES)
    host.stall(host.mem_slave, True)
    buffer = host.alloc(PAGE)
    reads = len(host.memory.reads)
    cids = []
    for sq in sqs:
        cids += [(sq, host.rw(sq, False, 8, 8, buffer)) for _ in range(SLOTS // QUEUES + 4)]
        await host.ring(sq)
    await ClockCycles(dut.clk_i, 500 + 20 * SLOTS)
    assert len(host.memory.reads) - reads == SLOTS - 1
    for _ in range(3):
        await host.admin(10, cdw10=7)
    host.stall(host.mem_slave, False)
    for sq, cid in cids:
        assert (await host.wait(sq, cid)).status == nvme.OK
    await host.idle()


@cocotb.test()
async def arbitration_round_robin(dut):
    """Queues with commands take turns."""
    host = await start(dut)
    sqs = await host.io_queues(QUEUES, ENTRIES)
    for sq in sqs:
        for _ in range(20):
            host.push(sq, 0, nsid=1)
    host.memory.reads.clear()
    for sq in sqs:
        await host.ring(sq)
    for sq in sqs:
        for cid in range(1, 21):
            await host.wait(sq, cid)
    owners = [next(sq.qid for sq in sqs if sq.base <= at < sq.base + 64 * sq.entries) for at in host.memory.reads]
    assert len(owners) == 20 * QUEUES
    fair = owners[20 : 20 + 4 * QUEUES]  # all doorbells have been rung by then
    for at in range(0, len(fair), QUEUES):
        assert sorted(fair[at : at + QUEUES]) == [1, 2, 3, 4], fair


@cocotb.test()
async def head_counts_arrived_entries(dut):
    """SQHD excludes entries whose read is still in flight: the host must not reuse them yet."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    buffer = host.alloc(PAGE)
    host.stall(host.mem_slave, True)
    first = host.rw(sq, False, 0, 8, buffer)
    await host.ring(sq)
    await ClockCycles(dut.clk_i, 100)
    host.host_slave.read_if.r_channel.pause = True
    reads = len(host.memory.reads)
    others = [host.push(sq, 0, nsid=1) for _ in range(2)]
    await host.ring(sq)
    await ClockCycles(dut.clk_i, 100)
    assert len(host.memory.reads) > reads, "the next read has been sent"
    host.stall(host.mem_slave, False)
    assert (await host.wait(sq, first)).sqhd == 1
    host.host_slave.read_if.r_channel.pause = False
    assert [(await host.wait(sq, cid)).status for cid in others] == [nvme.OK] * 2
    assert sq.head == 3


@cocotb.test()
async def command_rate(dut):
    """Fetching, decoding and completing sustain a command per 20 cycles; the first CQE follows its
    doorbell soon."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    await host.msix(2)
    count = 60

    async def until_written(wanted):
        for cycle in range(nvme.PATIENCE):
            if sq.cq.written == wanted:
                return cycle
            await RisingEdge(dut.clk_i)
        raise nvme.Timeout(f"{wanted} entries")

    for number in range(count):
        host.push(sq, 0, nsid=1)
        if number == 0:
            await host.ring(sq)
            latency = await until_written(1)
    await host.ring(sq)
    cycles = await until_written(count)
    dut._log.info(f"{cycles / (count - 1):.1f} cycles a command, {latency} cycles from doorbell response to entry")
    assert cycles <= 20 * (count - 1)
    assert latency <= 40


@cocotb.test()
async def deep_queue(dut):
    """The largest queue, filled and around its end."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    for count in (ENTRIES // 2, ENTRIES - 1, ENTRIES - 1):
        cids = [host.push(sq, 0, nsid=1) for _ in range(count)]
        await host.ring(sq)
        for cid in cids:
            assert (await host.wait(sq, cid)).status == nvme.OK
        assert sq.head == sq.tail


@cocotb.test()
async def idle_and_wake(dut):
    """busy_o is 0 when there is nothing to do, and every relevant input wakes the controller."""
    host = await start(dut, enabled=False)
    await host.idle()
    await host.enable()
    await host.idle()
    host.push(host.sqs[0], 12)
    await host.ring(host.sqs[0])
    await host.idle()
    await ClockCycles(dut.clk_i, 50)
    assert not dut.busy_o.value, "a parked command is no work"
    assert await host.read(nvme.CSTS) == nvme.RDY
    await host.idle()
    sqs = await host.io_queues(1, ENTRIES)
    await Pump(host, sqs).run(10)
    await host.idle()
