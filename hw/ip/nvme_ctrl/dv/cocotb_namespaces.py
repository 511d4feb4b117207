# SPDX-License-Identifier: Apache-2.0
"""Tests of several namespaces and of Format NVM, on nvme_ctrl_tb with five of them, one of which is
inactive."""

from __future__ import annotations

import os
import struct

import cocotb
import identify_model as model
import nvme_host as nvme
from cocotb.triggers import ClockCycles
from cocotb_ctrl import BLOCKS, ENTRIES, MEDIA, start
from extent import LONG
from nvme_host import PAGE, Host, Pump, SubmissionQueue

READ, WRITE, COMPARE, WRITE_ZEROES, DSM, VERIFY, FORMAT = 2, 1, 5, 8, 9, 0xC, 0x80
ALL = 0xFFFF_FFFF
nvme.PATIENCE = 120_000  # one command may cover the whole media, 64 bytes a cycle

SIZES = [int(size) for size in os.environ["NVME_CTRL_NS"].split()]
# Each begins at the next multiple of 4 KiB.
BASES = [sum((size + 7) // 8 * 8 for size in SIZES[:n]) for n in range(len(SIZES))]
ACTIVE = tuple(n + 1 for n, size in enumerate(SIZES) if size)
INACTIVE = tuple(n + 1 for n, size in enumerate(SIZES) if not size)
BEYOND = (0, len(SIZES) + 1, 16, 17, 0x100 + ACTIVE[0], 0xFFFF_FFFE)


def span(nsid: int, lba: int = 0, blocks: int | None = None) -> slice:
    """Bytes of the media."""
    first = BASES[nsid - 1] + lba
    return slice(512 * first, 512 * (first + (SIZES[nsid - 1] - lba if blocks is None else blocks)))


async def do(host: Host, sq, opcode: int, want: int = nvme.OK, **fields) -> None:
    entry = await host.command(sq, opcode, **fields)
    assert entry.status == want, f"opcode {opcode:#x} {fields}: status {entry.status:#x}, wanted {want:#x}"
    assert entry.dnr == (want not in (nvme.OK, nvme.FORMAT_IN_PROGRESS, nvme.WRITE_FAULT))


async def deallocate(host: Host, sq, nsid: int, ranges, at: int, want: int = nvme.OK) -> None:
    cid = host.dsm(sq, ranges, at, nsid=nsid)
    await host.ring(sq)
    assert (await host.wait(sq, cid)).status == want


async def format_nvm(host: Host, nsid: int, cdw10: int = 0, want: int = nvme.OK, dnr: bool | None = None) -> None:
    await host.admin(FORMAT, want=want, dnr=dnr, nsid=nsid, cdw10=cdw10)


@cocotb.test()
async def identify(dut):
    """Every page of every namespace; the lists; identifiers without a namespace, or of an inactive
    one."""
    host = await start(dut)
    assert BASES[-1] + SIZES[-1] <= BLOCKS
    assert len(ACTIVE) >= 4
    assert INACTIVE

    async def check(cns: int, nsid: int, want: bytes, **kw) -> None:
        host.allocator = 256 * PAGE
        assert await host.identify(cns, nsid, **kw) == want, f"CNS {cns} NSID {nsid}"

    await check(1, 0, model.controller(host.identity.serial, nn=len(SIZES)))
    await check(6, 0, model.command_set())
    for nsid in ACTIVE:
        eui64 = host.identity.eui64 + nsid - 1
        await check(0, nsid, model.namespace(512 * SIZES[nsid - 1], eui64), offset=4)
        await check(3, nsid, model.descriptors(eui64))
        await check(8, nsid, model.independent())
    for nsid in INACTIVE:
        for cns in (0, 8):
            await check(cns, nsid, bytes(PAGE))
    for above in (*range(len(SIZES) + 2), 15, 16, 17, 0x100, 0xFFFF_FFFD):
        await check(2, above, model.namespaces(above, ACTIVE))
    buffer = host.alloc(PAGE)
    for cns in (0, 3, 8):
        for nsid in (*BEYOND, ALL):
            await host.admin(6, want=nvme.INVALID_NAMESPACE, cdw10=cns, nsid=nsid, prp1=buffer)
    for nsid in INACTIVE:
        await host.admin(6, want=nvme.INVALID_FIELD, cdw10=3, nsid=nsid, prp1=buffer)


@cocotb.test()
async def namespace_bounds(dut):
    """First and last block of each namespace by every command; nothing beyond; neighbours are
    unchanged."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    buffer, table = host.alloc(2 * PAGE), host.alloc(PAGE)
    want = bytearray(host.media.data)
    for nsid in ACTIVE:
        last = SIZES[nsid - 1] - 1
        for lba in (0, last):
            data = host.rng.randbytes(512)
            host.memory.data[buffer : buffer + 512] = data
            rw = {"nsid": nsid, "cdw10": lba}
            await do(host, sq, WRITE, prp1=buffer, **rw)
            want[span(nsid, lba, 1)] = data
            assert host.media.data == want, f"NSID {nsid} LBA {lba}"
            await do(host, sq, READ, prp1=buffer + PAGE, **rw)
            assert host.memory.data[buffer + PAGE : buffer + PAGE + 512] == data
            await do(host, sq, COMPARE, prp1=buffer, **rw)
            await do(host, sq, VERIFY, **rw)
        for lba, blocks in ((last, 2), (last + 1, 1), (0, last + 2), (0x10_0000, 1)):
            blocks = min(blocks, 65536)
            rw = {"nsid": nsid, "cdw10": lba, "cdw12": blocks - 1}
            for opcode in (READ, WRITE, COMPARE, WRITE_ZEROES, VERIFY):
                moves = opcode in (READ, WRITE, COMPARE)
                refused = nvme.INVALID_FIELD if moves and blocks > 2048 else nvme.LBA_RANGE
                await do(host, sq, opcode, refused, prp1=buffer, **rw)
            await deallocate(host, sq, nsid, [(0, 1), (lba, blocks)], table, nvme.LBA_RANGE)
        for high in (1, 1 << 22, 1 << 23, 0xFFFF_FFFF):
            await do(host, sq, WRITE_ZEROES, nvme.LBA_RANGE, nsid=nsid, cdw11=high)
        # An LBA that would be back in the namespace if the sum with its base wrapped around.
        around = (1 << 64) - BASES[nsid - 1]
        wrap = {"cdw10": around & 0xFFFF_FFFF, "cdw11": around >> 32}
        if BASES[nsid - 1]:
            await do(host, sq, WRITE_ZEROES, nvme.LBA_RANGE, nsid=nsid, **wrap)
        assert host.media.data == want, "what is refused changes nothing"
        await do(host, sq, WRITE_ZEROES, nsid=nsid, cdw10=last)
        want[span(nsid, last, 1)] = bytes(512)
        await deallocate(host, sq, nsid, [(0, 1), (last, 1), (last + 1, 0)], table)
        want[span(nsid, 0, 1)] = bytes(512)
        assert host.media.data == want
        await do(host, sq, 0, nsid=nsid)
    for nsid in ACTIVE:
        await deallocate(host, sq, nsid, [(0, SIZES[nsid - 1])], table)
        want[span(nsid)] = bytes(512 * SIZES[nsid - 1])
        assert host.media.data == want, f"NSID {nsid} whole"
    await do(host, sq, 0, nsid=ALL)


@cocotb.test()
async def namespace_absent(dut):
    """Commands to identifiers beyond NN, and to an inactive namespace; the error log names them."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    buffer = host.alloc(PAGE)
    before = bytes(host.media.data)
    expect = []
    for opcode in (0, WRITE, READ, COMPARE, WRITE_ZEROES, DSM, VERIFY):
        broad = () if opcode == 0 else (ALL,)
        cases = [(n, nvme.INVALID_NAMESPACE) for n in (*BEYOND, *broad)] + [(n, nvme.INVALID_FIELD) for n in INACTIVE]
        for nsid, want in cases:
            await do(host, sq, opcode, want, nsid=nsid, prp1=buffer, cdw11=4 if opcode == DSM else 0)
            expect.append((nsid, want))
    assert host.media.data == before
    log = await host.log_page(1, PAGE)
    for i, (nsid, want) in enumerate(reversed(expect[-model.ERRORS :])):
        entry = log[64 * i : 64 * i + 64]
        assert struct.unpack_from("<I", entry, 24)[0] == nsid
        assert struct.unpack_from("<H", entry, 12)[0] >> 1 & 0x7FF == want


class Spread(Pump):
    """Each queue uses a separate namespace."""

    nsids: tuple[int, ...] = ()

    def area(self, sq: SubmissionQueue) -> tuple[int, int, range]:
        nsid = self.nsids[self.sqs.index(sq)]
        base = BASES[nsid - 1]
        return nsid, base, range(base, base + SIZES[nsid - 1])


def spread(host: Host, sqs: list[SubmissionQueue], nsids: tuple[int, ...]) -> Spread:
    pump = Spread(host, sqs)
    pump.nsids = nsids
    return pump


LARGE = tuple(nsid for nsid in ACTIVE if SIZES[nsid - 1] > 64)


@cocotb.test()
async def namespace_mixed_load(dut):
    """A mixed load on all large namespaces at once, with back-pressure: no block of one appears in
    another."""
    host = await start(dut)
    host.pauses(0.2)
    pump = spread(host, await host.io_queues(len(LARGE), ENTRIES), LARGE)
    await pump.run(240)
    assert host.media.data == pump.model


@cocotb.test()
async def error_recovery(dut):
    """The feature of each namespace; of all together; of none."""
    host = await start(dut)

    async def get(nsid: int, want: int = nvme.OK) -> int:
        return (await host.admin(10, want=want, cdw10=5, nsid=nsid)).dw0

    async def put(nsid: int, value: int, want: int = nvme.OK) -> None:
        await host.admin(9, want=want, cdw10=5, cdw11=value, nsid=nsid)

    values = {nsid: 0x100 + nsid for nsid in ACTIVE}
    for nsid, value in values.items():
        await put(nsid, value)
    assert {nsid: await get(nsid) for nsid in ACTIVE} == values
    for nsid in INACTIVE:
        await put(nsid, 9, nvme.INVALID_FIELD)
        await get(nsid, nvme.INVALID_FIELD)
    for nsid in BEYOND:
        await put(nsid, 9, nvme.INVALID_NAMESPACE)
        await get(nsid, nvme.INVALID_NAMESPACE)
    await get(ALL, nvme.INVALID_NAMESPACE)
    assert {nsid: await get(nsid) for nsid in ACTIVE} == values
    await put(ALL, 0x77)
    assert {await get(nsid) for nsid in ACTIVE} == {0x77}
    await host.admin(9, want=nvme.NOT_NAMESPACE, cdw10=8, nsid=ACTIVE[-1])
    await host.disable()
    await host.enable()
    assert {await get(nsid) for nsid in ACTIVE} == {0}


@cocotb.test()
async def namespace_change_notices(dut):
    """Changes of several namespaces make one event, and a list in order."""
    host = await start(dut)
    await host.admin(9, cdw10=11, cdw11=0x100)
    cid = await host.park()
    dut.ns_changed_i.value = 1 << (ACTIVE[-1] - 1) | 1 << (ACTIVE[1] - 1)
    assert await host.event(cid) == 4 << 16 | 2
    assert await host.log_page(4, PAGE) == model.changed(ACTIVE[1], ACTIVE[-1])
    cid = await host.park()
    dut.ns_changed_i.value = 1 << (ACTIVE[1] - 1) | 1
    assert await host.event(cid) == 4 << 16 | 2
    assert await host.log_page(4, PAGE) == model.changed(1, ACTIVE[-1])


@cocotb.test()
async def formats(dut):
    """One namespace becomes zeros and all others are unchanged; then all; no attribute changes, so
    there is no notice."""
    host = await start(dut)
    await host.admin(9, cdw10=11, cdw11=0x100)
    parked = await host.park()
    host.sqs[0].head = host.sqs[0].tail
    want = bytearray(host.media.data)
    pages = {nsid: await host.identify(0, nsid) for nsid in ACTIVE}
    for nsid, cdw10 in zip(ACTIVE, (0, 1 << 9, 1 << 4, 1 << 8 | 0xFFFF_F000), strict=True):
        writes = len(host.log)
        await format_nvm(host, nsid, cdw10)
        assert [kind for kind, *_ in host.log[writes:]] == ["cqe"], "no host traffic but the completion"
        want[span(nsid)] = bytes(512 * SIZES[nsid - 1])
        assert host.media.data == want, f"NSID {nsid}"
    assert any(want), "blocks between and beyond the namespaces are unchanged"
    for nsid, page in pages.items():
        assert await host.identify(0, nsid) == page
    for nsid in ACTIVE:
        host.media.data[span(nsid)] = host.rng.randbytes(512 * SIZES[nsid - 1])
    await format_nvm(host, ALL, 1 << 9)
    assert host.media.data == want
    await host.idle()
    await host.poll(host.cqs[0])
    assert (0, parked) not in host.done, "a notice without a change"
    assert await host.log_page(4, 64) == bytes(64)


@cocotb.test()
async def format_errors(dut):
    """A refused format changes nothing; checks are made in their order; the media's errors are
    reported."""
    host = await start(dut)
    before = bytes(host.media.data)
    for nsid in BEYOND:
        await format_nvm(host, nsid, 1, nvme.INVALID_NAMESPACE)
    for nsid in INACTIVE:
        await format_nvm(host, nsid, 1, nvme.INVALID_FIELD)
    for nsid in (ACTIVE[0], ALL):
        for lbaf in (1, 2, 15):
            await format_nvm(host, nsid, lbaf | 2 << 9, nvme.INVALID_FORMAT)
        for pi in (1, 2, 3):
            await format_nvm(host, nsid, pi << 5 | 2 << 9, nvme.INVALID_FORMAT)
        for pi in (4, 7):
            await format_nvm(host, nsid, pi << 5, nvme.INVALID_FIELD)
        for ses in range(2, 8):
            await format_nvm(host, nsid, ses << 9, nvme.INVALID_FIELD)
        await host.admin(FORMAT, want=nvme.INVALID_FIELD, nsid=nsid, flags=1)
    assert host.media.data == before
    nsid = LARGE[-1]
    host.media.refuse.append(range(512 * (BASES[nsid - 1] + 100), 512 * (BASES[nsid - 1] + 101)))
    await format_nvm(host, nsid, want=nvme.WRITE_FAULT, dnr=False)
    await format_nvm(host, ALL, want=nvme.WRITE_FAULT, dnr=False)
    host.media.refuse.clear()
    await format_nvm(host, nsid)
    assert not any(host.media.data[span(nsid)])


@cocotb.test()
async def format_under_load(dut):
    """Commands in flight end first; new commands to the namespace are Format In Progress; others
    continue."""
    host = await start(dut)
    victim, *others = LARGE[::-1]
    *sqs, own = await host.io_queues(len(others) + 1, ENTRIES)
    pump = spread(host, sqs, tuple(others))
    buffer, target = host.alloc(8 * PAGE), host.alloc(8 * PAGE)
    seen = set()
    for moment in (0, 40, 150, 400, 1200) if LONG else (40, 400):
        host.media.data[span(victim)] = pump.model[span(victim)] = b"\xee" * (512 * SIZES[victim - 1])
        host.memory.data[buffer : buffer + 8 * PAGE] = b"\x77" * (8 * PAGE)
        early = [host.rw(own, i % 2 == 0, 64 * i, 64, (buffer, target)[i % 2], nsid=victim) for i in range(4)]
        await host.ring(own)
        await ClockCycles(dut.clk_i, moment)
        done = host.push(host.sqs[0], FORMAT, nsid=victim)
        await host.ring(host.sqs[0])
        await ClockCycles(dut.clk_i, 30)
        late = [
            host.push(own, opcode, nsid=victim, prp1=target if opcode == READ else buffer)
            for opcode in (READ, WRITE, 0, VERIFY, DSM, WRITE_ZEROES)
        ]
        await host.ring(own)
        await pump.run(pump.completed + 25)
        assert (await host.wait(host.sqs[0], done)).status == nvme.OK
        for cid in early:
            status = (await host.wait(own, cid)).status
            assert status in (nvme.OK, nvme.FORMAT_IN_PROGRESS)
            seen.add((True, status))
        late_status = [(await host.wait(own, cid)) for cid in late]
        for entry in late_status:
            assert entry.status in (nvme.OK, nvme.FORMAT_IN_PROGRESS)
            assert not entry.dnr
            seen.add((False, entry.status))
        pump.model[span(victim)] = bytes(512 * SIZES[victim - 1])
        if late_status[1].status == nvme.OK:  # a Write before or after the format
            got = bytes(host.media.data[span(victim, 0, 1)])
            assert got in (b"\x77" * 512, bytes(512))
            host.media.data[span(victim, 0, 1)] = bytes(512)
        assert host.media.data == pump.model, f"at {moment}"
        await do(host, own, WRITE, nsid=victim, prp1=buffer)
        assert host.media.data[span(victim, 0, 1)] == b"\x77" * 512
    assert (True, nvme.OK) in seen
    assert (False, nvme.FORMAT_IN_PROGRESS) in seen


@cocotb.test()
async def format_beside_fused(dut):
    """A Compare and Write that waits when a format begins ends before blocks are erased, or is
    refused."""
    host = await start(dut)
    sqs = await host.io_queues(2, ENTRIES)
    victim, other = ACTIVE[0], ACTIVE[1]
    old, new = host.alloc(PAGE), host.alloc(PAGE)
    prp1, prp2 = host.prps(host.alloc(32 * PAGE), 32 * PAGE)
    host.memory.data[new : new + PAGE] = b"\x5a" * PAGE
    seen = set()
    for delay in range(-61, 40, 10 if LONG else 30):
        data = host.rng.randbytes(PAGE)
        host.media.data[span(victim, 0, 8)] = host.memory.data[old : old + PAGE] = data
        for _ in range(3):  # what the pair waits for
            host.push(sqs[1], READ, nsid=other, prp1=prp1, prp2=prp2, cdw10=0, cdw12=255)
        fields = {"nsid": victim, "cdw10": 0, "cdw12": 7}
        pair = [
            host.push(sqs[0], COMPARE, prp1=old, flags=1, **fields),
            host.push(sqs[0], WRITE, prp1=new, flags=2, **fields),
        ]
        done = host.push(host.sqs[0], FORMAT, nsid=victim)
        await host.ring(sqs[1])
        first, then = (sqs[0], host.sqs[0]) if delay < 0 else (host.sqs[0], sqs[0])
        await host.ring(first)
        await ClockCycles(dut.clk_i, abs(delay))
        await host.ring(then)
        result = tuple([(await host.wait(sqs[0], cid)).status for cid in pair])
        assert (await host.wait(host.sqs[0], done)).status == nvme.OK
        assert not any(host.media.data[span(victim)]), f"erased too early, {delay} cycles before the pair"
        seen.add(result)
        await host.idle()
        await host.poll(sqs[1].cq)
    assert (nvme.OK, nvme.OK) in seen


@cocotb.test()
async def format_ended_early(dut):
    """Disable and shutdown during a format of all: zeros, in order, or untouched; the controller
    starts again."""
    host = await start(dut)
    cut = 0
    for round_, moment in enumerate((60, 300, 1500, 5000) * 2):
        await host.behavior(acre=round_ > 3)
        for nsid in ACTIVE:
            host.media.data[span(nsid)] = b"\x5a" * (512 * SIZES[nsid - 1])
        host.push(host.sqs[0], FORMAT, nsid=ALL)
        await host.ring(host.sqs[0])
        await ClockCycles(dut.clk_i, moment)
        if round_ % 2:
            await host.shutdown()
            await host.poll(host.cqs[0])
            ((_, entry),) = host.done.items()
            assert entry.status in (nvme.OK, host.interrupted)
            assert not entry.dnr
        await host.disable()
        state = []  # of each namespace, how many blocks are zeros
        for nsid in ACTIVE:
            data = host.media.data[span(nsid)]
            blocks = [set(data[at : at + 512]) for at in range(0, len(data), 512)]
            assert all(block in ({0}, {0x5A}) for block in blocks), "half a block"
            state.append(blocks.count({0}))
        whole = [SIZES[nsid - 1] for nsid in ACTIVE]
        cut += state != whole
        begun = [nsid for nsid, zeros in enumerate(state) if zeros]
        assert begun == list(range(len(begun))), "in order"
        assert all(state[i] == whole[i] for i in begun[:-1]), "in order"
        host.allocator = 256 * PAGE
        await host.enable()
        await host.idle()
    assert cut >= 2
    assert len(host.media.data) == MEDIA
    (sq,) = await host.io_queues(1, ENTRIES)
    for nsid in ACTIVE:
        await do(host, sq, WRITE_ZEROES, nsid=nsid)
