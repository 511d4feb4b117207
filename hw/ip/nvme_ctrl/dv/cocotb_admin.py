# SPDX-License-Identifier: Apache-2.0
"""Tests of Abort, Host Behavior Support, and of the bits that admin commands do not use. On
nvme_ctrl_tb."""

from __future__ import annotations

import struct

import cocotb
import identify_model as model
import nvme_host as nvme
from cocotb.triggers import ClockCycles
from cocotb_ctrl import BLOCKS, ENTRIES, QUEUES, start
from nvme_host import PAGE, Host, Pump

ALL32, ALL64 = (1 << 32) - 1, (1 << 64) - 1
# Bits that have an effect on each admin command, for Get and Set Features by feature
# (NVMe 1.4, 5.1 to 5.25).
PAGES = {"prp1": ALL64, "prp2": ALL64}
USED = {
    "delete": {"cdw10": 0xFFFF},
    "create sq": {"prp1": ALL64, "cdw10": ALL32, "cdw11": 0xFFFF_0007},
    "create cq": {"prp1": ALL64, "cdw10": ALL32, "cdw11": 0xFFFF_0003},
    "log": PAGES | {"nsid": ALL32, "cdw10": 0xFFFF_80FF, "cdw11": 0xFFFF, "cdw12": ALL32, "cdw13": ALL32},
    "identify 0": PAGES | {"nsid": ALL32, "cdw10": 0xFF},
    "identify 1": PAGES | {"cdw10": 0xFF},
    "identify 2": PAGES | {"nsid": ALL32, "cdw10": 0xFF},
    "identify 3": PAGES | {"nsid": ALL32, "cdw10": 0xFF},
    "identify 6": PAGES | {"cdw10": 0xFF, "cdw11": 0xFF00_0000},
    "identify 8": PAGES | {"nsid": ALL32, "cdw10": 0xFF},
    "abort": {"cdw10": ALL32},
    "set": {"nsid": ALL32, "cdw10": 0x8000_00FF, "cdw11": ALL32},
    "set timestamp": PAGES | {"nsid": ALL32, "cdw10": 0x8000_00FF},
    "get": {"nsid": ALL32, "cdw10": 0x7FF},
    "get temperature": {"nsid": ALL32, "cdw10": 0x7FF, "cdw11": 0x3F_0000},
    "get vector": {"nsid": ALL32, "cdw10": 0x7FF, "cdw11": 0xFFFF},
    "get timestamp": PAGES | {"nsid": ALL32, "cdw10": 0x7FF},
    "set behavior": PAGES | {"nsid": ALL32, "cdw10": 0x8000_00FF},
    "get behavior": PAGES | {"nsid": ALL32, "cdw10": 0x7FF},
    "format": {"nsid": ALL32, "cdw10": 0xEEF},
}
# Features: identifier, bits of CDW11 that are a value.
VALUES = {1: 0xFFFF_FF07, 2: 0xE0, 4: 0xFFFF, 8: 0xFFFF, 0xA: 1, 0xB: 0x1FF}
# Other bits of CDW11, which stay 0.
OTHERS = {2: 0x1F, 4: 0x3F_0000}


@cocotb.test()
async def admin_unused_bits(dut):
    """Bits that an admin command does not use, including reserved ones, have no effect on it."""
    host = await start(dut)
    rng, data = host.rng, host.memory.data
    host.patience = 120_000  # Format NVM
    page, free = host.alloc(PAGE), host.allocator
    pages = {cns: await host.identify(cns, **fields) for cns, fields in ((0, {"nsid": 1}), (1, {}), (2, {}))}
    pages |= {3: await host.identify(3, nsid=1), 6: await host.identify(6), 8: await host.identify(8, nsid=1)}
    values: dict[int, int] = {}

    async def do(opcode: int, used: str, want: int = nvme.OK, **fields) -> nvme.Completion:
        return await host.admin(opcode, want=want, **host.noise(USED[used], **fields))

    for _ in range(12):
        host.allocator = free
        for cns, want in pages.items():
            nsid = {"nsid": 1} if cns in (0, 3, 8) else {"nsid": 0} if cns == 2 else {}
            data[page : page + PAGE] = bytes(PAGE)
            await do(6, f"identify {cns}", prp1=page, prp2=0, cdw10=cns, **nsid)
            assert data[page : page + PAGE] == want, f"CNS {cns}"
        for lid, want in (
            (nvme.SUPPORTED_LOGS, model.supported()),
            (nvme.FIRMWARE_LOG, model.firmware()),
            (nvme.EFFECTS_LOG, model.effects()),
        ):
            await do(2, "log", prp1=page, prp2=0, cdw10=127 << 16 | lid)
            assert data[page : page + 512] == want[:512], f"log {lid}"
        # A queue of every kind, a command in it, and away.
        qid = rng.randrange(1, QUEUES + 1)
        cq, sq = nvme.CompletionQueue(qid, host.alloc(PAGE), 4, None), None
        host._zero(cq)
        host.cqs[qid] = cq
        await do(5, "create cq", prp1=cq.base, cdw10=3 << 16 | qid, cdw11=1 | rng.randrange(QUEUES + 1) << 16)
        sq = host.sqs[qid] = nvme.SubmissionQueue(qid, host.alloc(PAGE), 4, cq)
        await do(1, "create sq", prp1=sq.base, cdw10=3 << 16 | qid, cdw11=1 | rng.randrange(4) << 1 | qid << 16)
        assert (await host.command(qid, 0, nsid=1)).status == nvme.OK
        assert (await do(8, "abort", cdw10=rng.getrandbits(16) << 16 | qid)).dw0 == 1
        await do(0, "delete", cdw10=qid)
        await do(4, "delete", cdw10=qid)
        del host.sqs[qid], host.cqs[qid]
        # Features.
        for fid, mask in VALUES.items():
            if rng.random() < 0.5:
                value = rng.getrandbits(32) & ~OTHERS.get(fid, 0)
                await do(9, "set", cdw10=fid, cdw11=value)
                values[fid] = value & mask
            if fid in values:
                used = "get temperature" if fid == 4 else "get"
                assert (await do(10, used, cdw10=fid)).dw0 == values[fid], f"feature {fid}"
            # Beyond the capabilities there is no Select, and FIDs have eight bits.
            await do(10, "get", want=nvme.INVALID_FIELD, cdw10=rng.randrange(4, 8) << 8 | fid)
        vector, off = rng.randrange(QUEUES + 1), rng.randrange(2)
        await do(9, "set", cdw10=9, cdw11=rng.getrandbits(15) << 17 | off << 16 | vector)
        assert (await do(10, "get vector", cdw10=9, cdw11=vector)).dw0 == off << 16 | vector
        recovery = rng.getrandbits(32) & ~0x1_0000
        await do(9, "set", nsid=1, cdw10=5, cdw11=recovery)
        assert (await do(10, "get", nsid=1, cdw10=5)).dw0 == recovery & 0xFFFF
        count = (QUEUES - 1) << 16 | (QUEUES - 1)
        assert (await do(10, "get", cdw10=7)).dw0 == count
        data[page : page + 8] = struct.pack("<Q", 5_000_000 | rng.getrandbits(16) << 48)
        await do(9, "set timestamp", prp1=page, prp2=0, cdw10=14)
        await do(10, "get timestamp", prp1=page, prp2=0, cdw10=14)
        assert 5_000_000 <= int.from_bytes(data[page : page + 6], "little") < 5_010_000
        await do(9, "set", cdw10=0x0F, cdw11=(ms := rng.randrange(1 << 30, 1 << 31)))
        assert (await do(10, "get", cdw10=0x0F)).dw0 == -(-ms // 100) * 100
        await host.admin(0x18, **host.noise({}))
        acre = rng.randrange(2)
        data[page : page + 512] = bytes([acre]) + rng.randbytes(511)
        await do(9, "set behavior", prp1=page, prp2=0, cdw10=0x16)
        host.acre = bool(acre)
        await do(10, "get behavior", prp1=page, prp2=0, cdw10=0x16)
        assert data[page : page + 512] == bytes([acre]).ljust(512, b"\0")
        await host.admin(rng.choice((3, 7, 0x1A, 0x7F, 0xC0, 0xFF)), want=nvme.INVALID_OPCODE, **host.noise({}))
    await do(0x80, "format", nsid=1, cdw10=0x200)
    assert not any(host.media.data)
    # Four that stay parked.
    for _ in range(4):
        cid = host.push(host.sqs[0], 12, **host.noise({}))
        await host.ring(host.sqs[0])
        assert await host.event(cid) is None
    await host.admin(12, want=nvme.AER_LIMIT, dnr=False, **host.noise({}))
    await host.disable()


@cocotb.test()
async def abort(dut):
    """Abort completes a parked request with Command Abort Requested before itself, and nothing
    else."""
    host = await start(dut)
    await host.io_queues(1, ENTRIES)
    cids = [await host.park() for _ in range(4)]
    await host.admin(12, want=nvme.AER_LIMIT, dnr=False)
    for sqid, cid in ((0, 0x7777), (1, cids[0]), (0xFFFF, cids[0]), (2, cids[1])):
        assert (await host.admin(8, cdw10=cid << 16 | sqid)).dw0 == 1
    await host.idle()
    await host.poll(host.cqs[0])
    assert not host.done
    for cid in (cids[1], cids[3], cids[0], cids[2]):
        at = len(host.log)
        assert (await host.admin(8, cdw10=cid << 16)).dw0 == 0
        entry = host.done.pop((0, cid))
        assert entry.status == nvme.ABORT_REQUESTED
        assert not entry.dnr
        assert entry.dw0 == 0
        assert [e[0] for e in host.log[at:]] == ["cqe", "cqe"]
        assert (await host.admin(8, cdw10=cid << 16)).dw0 == 1, "it is gone"
        assert not host.done
    # The place is free again, and the others still work.
    cids = [await host.park() for _ in range(4)]
    assert (await host.admin(8, cdw10=cids[2] << 16)).dw0 == 0
    host.done.pop((0, cids[2]))
    await host.doorbell(99, True, 0)
    events = [await host.event(cid) for cid in (cids[0], cids[1], cids[3])]
    assert sorted(events, key=str) == [nvme.BAD_REGISTER, None, None]
    # An executed command cannot be aborted.
    done = await host.admin(6, cdw10=1, prp1=host.alloc(PAGE))
    assert (await host.admin(8, cdw10=done.cid << 16)).dw0 == 1
    await host.disable()
    await host.idle()


async def abort_one(host: Host, sq, cid: int) -> bool:
    """Aborts a command of an I/O queue, and returns whether that has succeeded: then its entry came
    first."""
    at = len(host.log)
    dw0 = (await host.admin(8, cdw10=cid << 16 | sq.qid)).dw0
    assert dw0 in (0, 1)
    await host.poll(sq.cq)
    if dw0 == 0:
        entry = host.done.pop((sq.qid, cid))
        assert (entry.status, entry.dnr, entry.dw0) == (nvme.ABORT_REQUESTED, False, 0)
        order = [e[1] for e in host.log[at:] if e[0] == "cqe" and e[1] in (0, sq.qid)]
        assert order[-1] == 0
        assert sq.qid in order
    elif (sq.qid, cid) in host.done:
        assert host.done[sq.qid, cid].status == nvme.OK, "it was not aborted"
    return dw0 == 0


@cocotb.test()
async def abort_io(dut):
    """Abort of I/O commands beside other traffic: long ones in flight or waiting, fetched,
    completed, and absent ones. Each command completes once, as the Abort has reported. Deletion of
    a queue with long commands."""
    host = await start(dut)
    sqs = await host.io_queues(3, ENTRIES)
    sq = sqs.pop()
    half = BLOCKS // 2
    upper = slice(512 * half, 512 * BLOCKS)
    before = bytes(host.media.data[upper])
    table = host.alloc(3 * PAGE)
    pump = Pump(host, sqs)
    pump.share = half // 2
    traffic = cocotb.start_soon(pump.run(120))

    def long(at: int = 0) -> int:
        return host.dsm(sq, [(half, half)] * 256, table + at)

    cids = [long(16 * i) for i in range(3)]
    cids.append(host.push(sq, 8, nsid=1, cdw10=half, cdw12=half - 1))
    cids.append(long(64))
    await host.ring(sq)
    await ClockCycles(dut.clk_i, 800)
    for other, cid in ((sq, 0x7777), (sqs[0], cids[0]), (sqs[1], cids[1])):
        assert not await abort_one(host, other, cid)
    for sqid in (4, 99, 0xFFFF):
        assert (await host.admin(8, cdw10=cids[0] << 16 | sqid)).dw0 == 1, "there is no such queue"
    await host.poll(sq.cq)
    assert not [key for key in host.done if key[0] == sq.qid]
    for i in (4, 0, 3, 2):  # waiting, in flight, waiting, waiting or in flight
        assert await abort_one(host, sq, cids[i]), i
        assert not await abort_one(host, sq, cids[i]), "it is gone"
    assert await abort_one(host, sq, cids[1])
    # At any time from the doorbell on. A command that is still being fetched is not found.
    found = 0
    for moment in range(0, 120, 8):
        cid = long(16 * (moment % 64))
        await host.ring(sq)
        await ClockCycles(dut.clk_i, moment)
        aborted = await abort_one(host, sq, cid)
        found += aborted
        for _ in range(10):  # beside other traffic fetching may take longer than an Abort
            aborted = aborted or await abort_one(host, sq, cid)
        assert aborted
    assert found
    # Short ones: completed or aborted.
    results = []
    for moment in range(24):
        cid = host.dsm(sq, [(half + 8 * i, 8) for i in range(moment % 7 + 1)], table)
        await host.ring(sq)
        await ClockCycles(dut.clk_i, 15 * (moment % 12))
        results.append(await abort_one(host, sq, cid))
        if not results[-1]:
            assert (await host.wait(sq, cid)).status == nvme.OK
            assert not await abort_one(host, sq, cid)
    assert set(results) == {True, False}
    after = host.media.data[upper]
    for at in range(0, len(before), 512):
        assert not any(after[at : at + 512]) or after[at : at + 512] == before[at : at + 512]
    # Deletion.
    cids = [long(16 * i) for i in range(5)]
    await host.ring(sq)
    await ClockCycles(dut.clk_i, 1500)
    await delete(host, sq, cids)
    await traffic
    assert pump.completed == 120
    again = await host.create_sq(sq.qid, ENTRIES, sq.cq)
    cid = host.dsm(again, [(half, half)], table)
    host.patience = 80_000  # half of the media, 64 bytes a cycle
    await host.ring(again)
    assert (await host.wait(again, cid)).status == nvme.OK
    assert not any(host.media.data[upper])
    await host.idle()


async def delete(host: Host, sq, cids: list[int]) -> None:
    """Deletes a queue with long commands: all end before the deletion, with the status for it."""
    cid = host.push(host.sqs[0], 0, cdw10=sq.qid)
    await host.ring(host.sqs[0])
    assert (await host.wait(host.sqs[0], cid)).status == nvme.OK
    await host.poll(sq.cq)
    for long in cids:
        entry = host.done.pop((sq.qid, long))
        assert (entry.status, entry.dnr) == (nvme.SQ_DELETION, False)
    del host.sqs[sq.qid]


@cocotb.test()
async def host_behavior(dut):
    """Feature 16h: 512 bytes from and to any dword, ACRE kept, reserved values refused, reserved
    bytes ignored; Select; errors change nothing; cleared by a reset."""
    host = await start(dut)
    data = host.memory.data
    both = host.alloc(PAGE), host.alloc(PAGE)

    def spread(at: int, content: bytes) -> dict[str, int]:
        """512 bytes from `at` of the first page on, the rest at the start of the second one."""
        room = min(512, PAGE - at)
        data[both[0] + at : both[0] + at + room] = content[:room]
        data[both[1] : both[1] + 512 - room] = content[room:]
        return {"prp1": both[0] + at, "prp2": both[1] if room < 512 else 0}

    async def get(at: int = 0, select: int = 0, **kw) -> bytes:
        for page in both:
            data[page : page + PAGE] = b"\xa5" * PAGE
        entry = await host.admin(10, **(spread(at, b"\xa5" * 512) | {"cdw10": select << 8 | 0x16} | kw))
        assert entry.dw0 == 0
        got = bytes(data[both[0] + at : both[0] + PAGE][:512])
        got += bytes(data[both[1] : both[1] + 512 - len(got)])
        return got

    def structure(acre: int) -> bytes:
        return bytes([acre]).ljust(512, b"\0")

    assert await get() == structure(0)
    for i, at in enumerate((0, 4, 60, 64, 2048, PAGE - 512, PAGE - 508, PAGE - 256, PAGE - 4)):
        acre = (i + 1) % 2
        # Bytes that are reserved in this revision are used by later ones.
        content = bytes([acre]) + host.rng.randbytes(511)
        reads = len(host.memory.reads)
        await host.admin(9, cdw10=0x16, **spread(at, content))
        lines = {address // 64 for address in host.memory.reads[reads:] if address // PAGE * PAGE in both}
        want = {(both[0] + at + 4 * n if at + 4 * n < PAGE else both[1] + at + 4 * n - PAGE) // 64 for n in range(128)}
        assert lines == want, f"at {at}: all of the data, nothing else"
        for where in (0, 60, PAGE - 4):
            assert await get(where) == structure(acre), f"from {at}, to {where}"
    for select in (1, 2):
        assert await get(select=select) == structure(0), "nothing is saved, the default is 0"
    entry = await host.admin(10, cdw10=3 << 8 | 0x16, prp1=both[0])
    assert entry.dw0 == 4, "changeable"
    for acre in (2, 3, 0x80, 0xFF):
        await host.admin(9, want=nvme.INVALID_FIELD, cdw10=0x16, **spread(0, structure(acre)))
        assert await get() == structure(1)
    for want, fields in (
        (nvme.PRP_OFFSET, {"prp1": both[0] + 2}),
        (nvme.PRP_OFFSET, {"prp1": both[0] + PAGE - 508, "prp2": both[1] + 4}),
        (nvme.DATA_TRANSFER, {"prp1": 0x7FFF_F000}),
        (nvme.DATA_TRANSFER, {"prp1": both[0] + PAGE - 508, "prp2": 0x7FFF_F000}),
        (nvme.NOT_SAVEABLE, {"cdw10": 1 << 31 | 0x16}),
        (nvme.NOT_NAMESPACE, {"nsid": 1}),
        (nvme.INVALID_NAMESPACE, {"nsid": 2}),
    ):
        spread(0, structure(0))
        spread(PAGE - 508, structure(0))
        await host.admin(9, want=want, dnr=want != nvme.DATA_TRANSFER, **({"cdw10": 0x16, "prp1": both[0]} | fields))
        assert await get() == structure(1), fields
    await host.admin(10, want=nvme.PRP_OFFSET, cdw10=0x16, prp1=both[0] + 2)
    await host.admin(10, want=nvme.INVALID_FIELD, cdw10=4 << 8 | 0x16, prp1=both[0])
    # The Timestamp uses the same path.
    data[both[0] : both[0] + 8] = struct.pack("<Q", 1)
    await host.admin(9, cdw10=14, prp1=both[0])
    assert await get() == structure(1)
    await host.disable()
    await host.enable()
    assert await get() == structure(0), "a reset forgets"
