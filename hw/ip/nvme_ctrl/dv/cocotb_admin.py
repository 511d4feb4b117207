"""Tests of what the controller tells about itself: logs, asynchronous events, Abort, time. On nvme_ctrl_tb."""

from __future__ import annotations

import struct

import cocotb
import identify_model as model
import nvme_host as nvme
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb_ctrl import BLOCKS, ENTRIES, QUEUES, start
from nvme_host import PAGE, Host, Pump

KHZ = 20  # ClockKhz of the test top
SUPPORTED_LOGS, ERROR_LOG, SMART_LOG, FIRMWARE_LOG, CHANGED_NS, EFFECTS_LOG = range(6)
BAD_REGISTER, BAD_VALUE = 1 << 16, 1 << 16 | 1 << 8
TEMPERATURE = 2 << 16 | 1 << 8 | 1
NS_CHANGED = 4 << 16 | 2


async def skip(host: Host, cycles: int) -> None:
    """Lets time pass as the engine does when everything rests."""
    host.dut.skipped_i.value = cycles
    await RisingEdge(host.dut.clk_i)
    host.dut.skipped_i.value = 0
    await RisingEdge(host.dut.clk_i)


def differ(got: bytes, want: bytes) -> list[tuple[int, int, int]]:
    assert len(got) == len(want)
    return [(i, g, w) for i, (g, w) in enumerate(zip(got, want, strict=True)) if g != w][:8]


@cocotb.test()
async def log_ranges(dut):
    """Every log at every kind of offset, length and buffer position; zeros beyond its end; ranges that are refused."""
    host = await start(dut)
    logs = {
        SUPPORTED_LOGS: model.supported(),
        ERROR_LOG: bytes(PAGE),
        SMART_LOG: model.smart(),
        FIRMWARE_LOG: model.firmware(),
        CHANGED_NS: bytes(PAGE),
        EFFECTS_LOG: model.effects(),
    }
    free = host.allocator
    for lid, page in logs.items():
        host.allocator = free
        for offset, size, at in (
            (0, 4, 0),
            (0, len(page), 0),
            (0, len(page), 4092),
            (4, 508, 60),
            (60, 72, 4),
            (len(page) - 4, 4, 2048),
            (len(page) - 4, 8, 4092),
            (len(page), 64, 0),
            (512, 3 * PAGE, 1028),
            (4 * host.rng.randrange(128), 4 * host.rng.randrange(1, 2000), 4 * host.rng.randrange(1024)),
        ):
            want = page[offset : offset + size].ljust(size, b"\0")
            bad = differ(await host.log_page(lid, size, offset, at=at, rae=True), want)
            assert not bad, f"log {lid} offset {offset} size {size} at {at}: {bad}"
        got = await host.log_page(lid, 0x10000, 256, nsid=0xFFFF_FFFF)
        assert not differ(got, page[256:].ljust(0x10000, b"\0"))
    # The largest transfer.
    host.patience *= 3
    got = await host.log_page(EFFECTS_LOG, 1 << 20, PAGE - 4, at=4)
    assert not differ(got, bytes(1 << 20))
    for lid, page in logs.items():
        host.allocator = free
        for offset in (1, 2, 3, 66, len(page) + 4, 1 << 16, 1 << 32, 1 << 63):
            await host.log_page(lid, 64, offset, want=nvme.INVALID_FIELD)
        await host.log_page(lid, (1 << 20) + 4, want=nvme.INVALID_FIELD)
        numd = {"cdw10": 0xFFFF << 16 | lid, "cdw11": 0xFFFF}
        await host.log_page(lid, 64, want=nvme.INVALID_FIELD, **numd)
        for nsid in (1, 2, 0xFFFF_FFFE):
            await host.log_page(lid, 64, want=nvme.INVALID_FIELD, nsid=nsid)
    for lid in (6, 7, 8, 0x0D, 0x70, 0x80, 0xC1, 0xFF):
        await host.log_page(lid, 64, want=nvme.INVALID_LOG)
    await host.log_page(EFFECTS_LOG, 64, want=nvme.PRP_OFFSET, prp1=PAGE + 2)
    await host.admin(2, want=nvme.DATA_TRANSFER, dnr=False, cdw10=127 << 16 | SMART_LOG, prp1=0x7FFF_F000)


ALL32, ALL64 = (1 << 32) - 1, (1 << 64) - 1
# Bits that change what each admin command does, for Get and Set Features by feature (NVMe 1.4, 5.1 to 5.25).
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
# Bits of CDW11 that say something else, and stay 0.
OTHERS = {2: 0x1F, 4: 0x3F_0000}


@cocotb.test()
async def unused_bits(dut):
    """Whatever stands in the bits that an admin command does not use, reserved ones included: it does the same."""
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
            (SUPPORTED_LOGS, model.supported()),
            (FIRMWARE_LOG, model.firmware()),
            (EFFECTS_LOG, model.effects()),
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
async def error_log(dut):
    """An entry for each command that fails and each bad doorbell, newest first, around the ring, past a reset."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    buffer = host.alloc(PAGE)
    host.media.refuse.append(range(0x10000, 0x11000))
    entries: list[bytes] = []
    rw = {"nsid": 1, "prp1": buffer, "cdw12": 7}
    wide = {"cdw10": 0x89AB_CDEF, "cdw11": 0x0123_4567}
    cases = [
        (sq, 2, rw | wide, nvme.LBA_RANGE, 0x0123_4567_89AB_CDEF),
        (sq, 1, rw | {"nsid": 7, "cdw10": 5}, nvme.INVALID_NAMESPACE, 5),
        (sq, 0x7F, {"nsid": 1} | wide, nvme.INVALID_OPCODE, 0),
        (sq, 2, rw | {"cdw10": 0x10000 // 512}, nvme.READ_ERROR, 0x80),
        (sq, 2, rw | {"prp1": buffer + 4, "prp2": buffer + 4, "cdw10": 3}, nvme.PRP_OFFSET, 3),
        (sq, 0, {"nsid": 0}, nvme.INVALID_NAMESPACE, 0),
        (host.sqs[0], 6, {"cdw10": 0x55, "nsid": 9}, nvme.INVALID_FIELD, 0),
        (host.sqs[0], 0x7F, {}, nvme.INVALID_OPCODE, 0),
        (host.sqs[0], 0, {"cdw10": 9}, nvme.INVALID_QID, 0),
    ]

    async def fail(case, cid=None) -> None:
        queue, opcode, fields, status, lba = case
        cid = host.push(queue, opcode, cid=cid, **fields)
        await host.ring(queue)
        entry = await host.wait(queue, cid)
        assert entry.status == status
        nsid = fields.get("nsid", 0)
        more = {"phase": entry.phase, "dnr": entry.dnr, "lba": lba, "nsid": nsid}
        entries.append(model.error(len(entries) + 1, queue.qid, cid, status, **more))

    async def check() -> None:
        want = b"".join(reversed(entries[-model.ERRORS :])).ljust(PAGE, b"\0")
        assert not differ(await host.log_page(ERROR_LOG, PAGE), want)
        count = int.from_bytes((await host.log_page(SMART_LOG, 512))[176:192], "little")
        assert count == len(entries)

    await check()
    for case in cases:
        await fail(case)
        await check()
    await fail(cases[0], cid=0xFFFF)
    # Commands that succeed leave nothing.
    assert (await host.command(sq, 0, nsid=1)).status == nvme.OK
    await host.doorbell(QUEUES + 3, False, 1)
    entries.append(model.error(len(entries) + 1, 0xFFFF, 0xFFFF, nvme.INVALID_QID))
    await host.doorbell(1, True, 0xFFFF)
    entries.append(model.error(len(entries) + 1, 0xFFFF, 0xFFFF, nvme.INVALID_FIELD))
    await check()
    for number in range(2 * model.ERRORS):
        await fail(cases[number % len(cases)])
    await check()
    assert not differ(await host.log_page(ERROR_LOG, 200, 260), b"".join(reversed(entries))[260:460])
    # The log outlives a controller reset.
    await host.disable()
    host.allocator = 256 * PAGE
    await host.enable()
    await check()


@cocotb.test()
async def error_log_overtaken(dut):
    """Errors while the log travels: what has been overwritten reads as no entry, never as another one."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)

    async def errors(count: int) -> None:
        cids = [host.push(sq, 0x7F) for _ in range(count)]
        await host.ring(sq)
        for cid in cids:
            assert (await host.wait(sq, cid)).status == nvme.INVALID_OPCODE

    for _ in range(4):
        await errors(20)
    for moment in range(40, 200, 20):
        before = int.from_bytes(await host.log_page(ERROR_LOG, 8), "little")
        page = host.alloc(PAGE)
        admin = host.push(host.sqs[0], 2, cdw10=1023 << 16 | ERROR_LOG, prp1=page)
        cids = [host.push(sq, 0x7F) for _ in range(30)]
        await host.ring(host.sqs[0])
        await ClockCycles(dut.clk_i, moment)
        await host.ring(sq)
        assert (await host.wait(host.sqs[0], admin)).status == nvme.OK
        for cid in cids:
            await host.wait(sq, cid)
        counts = [struct.unpack_from("<Q", host.memory.data, page + 64 * i)[0] for i in range(64)]
        newest = counts[0]
        assert before <= newest <= before + 30
        missing = counts.count(0)
        assert counts == [newest - i for i in range(64 - missing)] + [0] * missing
        assert missing < 31


@cocotb.test()
async def smart_log(dut):
    """The counters against what was done: units rounded up, commands, media errors, hours, errors."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    buffer = host.alloc(1 << 20)
    blocks, commands, media_errors, errors = [0, 0], [0, 0], 0, 0

    async def check(**more) -> None:
        values = {
            "units": tuple(-(-n // 1000) for n in blocks),
            "commands": tuple(commands),
            "media_errors": media_errors,
            "errors": errors,
        }
        bad = differ(await host.log_page(SMART_LOG, 512), model.smart(**(values | more)))
        assert not bad, bad

    async def rw(write: bool, count: int, lba: int = 0, status: int = nvme.OK) -> None:
        cid = host.rw(sq, write, lba, count, buffer)
        await host.ring(sq)
        assert (await host.wait(sq, cid)).status == status
        if status != nvme.LBA_RANGE:
            commands[write] += 1
        if status == nvme.OK:
            blocks[write] += count

    await check()
    await rw(False, 1)
    await check()
    await rw(True, 8)
    await check()
    await rw(False, 999)
    await check()
    await rw(False, 1)
    await check()
    for write, count in ((True, 2048), (False, 1001), (True, 1)):
        await rw(write, count)
        await check()
    await rw(False, 8, BLOCKS, nvme.LBA_RANGE)
    errors += 1
    await check()
    host.media.refuse.append(range(0x100000, 0x101000))
    for write in (False, True):
        await rw(write, 8, 0x100000 // 512, nvme.WRITE_FAULT if write else nvme.READ_ERROR)
        errors += 1
        media_errors += 1
    await check()
    # The counters outlive a controller reset; time passes while the controller rests.
    await host.disable()
    host.allocator = 512 * PAGE
    await host.enable()
    await check()
    await host.idle()
    hour = KHZ * 3_600_000
    await skip(host, hour)
    await check(hours=1)
    await skip(host, 41 * hour)
    await check(hours=42)
    dut.temperature_i.value = 343
    await check(hours=42, temperature=343, warning=2)
    dut.temperature_i.value = 342
    await check(hours=42, temperature=342)
    sqs = await host.io_queues(2, ENTRIES)
    done = sum(commands)
    await Pump(host, sqs).run(60)
    page = await host.log_page(SMART_LOG, 512)
    assert sum(struct.unpack_from("<QQQ", page, 64)[::2]) == done + 60


@cocotb.test()
async def error_events(dut):
    """One event per bad doorbell until the log is read; Retain Asynchronous Event; order of AER and event; reset."""
    host = await start(dut)
    first, second = await host.park(), await host.park()
    assert await host.event(first) is None
    assert await host.event(second) is None
    await host.doorbell(QUEUES + 1, False, 1)
    parked = {first, second}
    events = {cid: await host.event(cid) for cid in parked}
    assert sorted(events.values(), key=str) == [BAD_REGISTER, None], events
    (left,) = (cid for cid, dw0 in events.items() if dw0 is None)
    # Masked until the log is read; reading another log, or with RAE, does not help.
    for value in (1, 0xFFFF):
        await host.doorbell(0, True, value) if value > 1 else await host.doorbell(99, True, value)
        assert await host.event(left) is None
    await host.log_page(ERROR_LOG, 64, rae=True)
    await host.log_page(SMART_LOG, 64)
    await host.log_page(ERROR_LOG, 64, want=nvme.INVALID_FIELD, nsid=1)
    await host.admin(2, want=nvme.PRP_OFFSET, cdw10=15 << 16 | ERROR_LOG, prp1=PAGE + 2)
    await host.doorbell(0, True, 0xFFFF)
    assert await host.event(left) is None
    await host.log_page(ERROR_LOG, 64)
    assert await host.event(left) is None, "what was masked is gone"
    await host.doorbell(0, True, 0xFFFF)
    assert await host.event(left) == BAD_VALUE
    # An event before its request waits; one that is cleared before does not come.
    await host.log_page(ERROR_LOG, 64)
    await host.doorbell(0, True, 0xFFFF)
    await host.doorbell(99, True, 0)
    await host.idle()
    cid = host.push(host.sqs[0], 12)
    await host.ring(host.sqs[0])
    assert (await host.wait(host.sqs[0], cid)).dw0 == BAD_VALUE
    await host.log_page(ERROR_LOG, 64)
    await host.doorbell(99, True, 0)
    await host.log_page(ERROR_LOG, 64)
    cid = await host.park()
    assert await host.event(cid) is None
    # A controller reset forgets events, and doorbells of a disabled controller are none.
    await host.doorbell(99, True, 0)
    assert await host.event(cid) == BAD_REGISTER
    await host.disable()
    await host.doorbell(99, True, 0)
    await host.doorbell(1, True, 0)
    await host.enable()
    cid = await host.park()
    assert await host.event(cid) is None
    await host.doorbell(1, True, 0)
    assert await host.event(cid) == BAD_REGISTER
    await host.shutdown()


@cocotb.test()
async def temperature_events(dut):
    """A threshold set below the temperature, or a temperature beyond a threshold, is an event if it is enabled."""
    host = await start(dut)
    cid = await host.park()

    async def over(kelvin: int) -> None:
        await host.admin(9, cdw10=4, cdw11=kelvin)

    await over(300)
    assert await host.event(cid) is None, "not enabled"
    assert (await host.log_page(SMART_LOG, 4))[0] == 2, "but a warning"
    await host.admin(9, cdw10=11, cdw11=0xFD)
    assert await host.event(cid) is None, "not this warning"
    await host.admin(9, cdw10=11, cdw11=0x02)
    assert await host.event(cid) == TEMPERATURE, "enabled while it lasts"
    cid = await host.park()
    await over(320)
    await over(308)
    assert await host.event(cid) is None, "masked"
    await host.log_page(SMART_LOG, 512)
    assert await host.event(cid) is None, "it comes up once"
    await over(309)
    assert (await host.log_page(SMART_LOG, 4))[0] == 0
    await over(308)
    assert await host.event(cid) == TEMPERATURE
    await host.log_page(SMART_LOG, 512)
    # By temperature, while the controller rests; and below the under temperature threshold.
    await over(320)
    await host.admin(9, cdw10=4, cdw11=1 << 20 | 280)
    cid = await host.park()
    for kelvin, warns in ((319, False), (320, True), (281, False), (280, True)):
        dut.temperature_i.value = kelvin
        assert await host.event(cid) == (TEMPERATURE if warns else None), kelvin
        assert (await host.log_page(SMART_LOG, 4))[0] == 2 * warns
        if warns:
            cid = await host.park()
    # Not enabled after a reset; thresholds are the default ones.
    dut.temperature_i.value = 400
    await host.disable()
    await host.enable()
    cid = await host.park()
    assert await host.event(cid) is None
    assert (await host.log_page(SMART_LOG, 4))[0] == 2


@cocotb.test()
async def namespace_notices(dut):
    """A changed namespace stands in the list until that is read, and is a notice if that is enabled."""
    host = await start(dut)
    state = 0

    def change() -> None:
        nonlocal state
        state ^= 1
        dut.ns_changed_i.value = state

    assert (await host.identify(1))[92:96] == struct.pack("<I", 0x100), "OAES"
    cid = await host.park()
    change()
    assert await host.event(cid) is None
    assert await host.log_page(CHANGED_NS, PAGE, rae=True) == model.changed(1)
    assert await host.log_page(CHANGED_NS, PAGE) == model.changed(1)
    assert await host.log_page(CHANGED_NS, PAGE) == model.changed()
    await host.admin(9, cdw10=11, cdw11=0x100)
    assert await host.event(cid) is None
    change()
    assert await host.event(cid) == NS_CHANGED
    cid = await host.park()
    change()
    assert await host.event(cid) is None, "masked"
    assert await host.log_page(CHANGED_NS, 4, rae=True) == model.changed(1)[:4]
    assert await host.event(cid) is None
    assert await host.log_page(CHANGED_NS, 4) == model.changed(1)[:4]
    assert await host.event(cid) is None
    # A change at any moment of the reading is told by this list, or by another event.
    seen = set()
    for moment in range(0, 120, 9):
        page = host.alloc(4)
        reader = host.push(host.sqs[0], 2, cdw10=CHANGED_NS, prp1=page)
        await host.ring(host.sqs[0])
        await ClockCycles(dut.clk_i, moment)
        change()
        await host.wait(host.sqs[0], reader)
        listed = bytes(host.memory.data[page : page + 4])
        told = await host.event(cid) is not None
        after = await host.log_page(CHANGED_NS, 4)
        if told:
            cid = await host.park()
        assert sorted((listed, after)) == [bytes(4), model.changed(1)[:4]], f"at {moment}: in one of the two"
        assert told or after == bytes(4), f"at {moment}: nobody has told"
        seen.add(listed)
    assert len(seen) == 2
    change()
    assert await host.event(cid) == NS_CHANGED
    await host.disable()
    await host.enable()
    cid = await host.park()
    assert await host.event(cid) is None
    assert await host.log_page(CHANGED_NS, 4) == bytes(4)


@cocotb.test()
async def several_events(dut):
    """One of each type at once, all requests parked: each completes one; one type never takes two."""
    host = await start(dut)
    await host.admin(9, cdw10=11, cdw11=0x102)
    cids = [await host.park() for _ in range(4)]
    dut.temperature_i.value = 500
    dut.ns_changed_i.value = 1
    await host.doorbell(200, False, 0)
    for _ in range(3):
        await host.doorbell(0, True, 0x8000)
    got = [await host.event(cid) for cid in cids]
    assert sorted(e for e in got if e is not None) == sorted((BAD_REGISTER, TEMPERATURE, NS_CHANGED))
    # No request: the events wait, in the order of the types.
    for lid in (ERROR_LOG, SMART_LOG, CHANGED_NS):
        await host.log_page(lid, 4)
    (left,) = (cid for cid, e in zip(cids, got, strict=True) if e is None)
    entry = await host.admin(8, cdw10=left << 16)
    assert entry.dw0 == 0
    await host.poll(host.cqs[0])
    assert host.done.pop((0, left)).status == nvme.ABORT_REQUESTED
    dut.temperature_i.value = 300
    await host.log_page(SMART_LOG, 4)
    dut.temperature_i.value = 500
    dut.ns_changed_i.value = 0
    await ClockCycles(dut.clk_i, 4)
    await host.doorbell(0, True, 0x8000)
    for want in (BAD_VALUE, TEMPERATURE, NS_CHANGED):
        assert (await host.command(0, 12)).dw0 == want


@cocotb.test()
async def abort(dut):
    """Abort completes a parked request with Command Abort Requested before itself, and nothing else."""
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
    # Its place is free again, and the others still work.
    cids = [await host.park() for _ in range(4)]
    assert (await host.admin(8, cdw10=cids[2] << 16)).dw0 == 0
    host.done.pop((0, cids[2]))
    await host.doorbell(99, True, 0)
    events = [await host.event(cid) for cid in (cids[0], cids[1], cids[3])]
    assert sorted(events, key=str) == [BAD_REGISTER, None, None]
    # An executed command cannot be aborted.
    done = await host.admin(6, cdw10=1, prp1=host.alloc(PAGE))
    assert (await host.admin(8, cdw10=done.cid << 16)).dw0 == 1
    await host.disable()
    await host.idle()


async def abort_one(host: Host, sq, cid: int) -> bool:
    """Aborts a command of an I/O queue, and says whether that has worked: then its entry came first."""
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
    """Abort of I/O commands beside other traffic: long ones under way, waiting, just fetched, over, others than those;
    each completes once, as the Abort has said. Deletion of a queue with long commands."""
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
    for i in (4, 0, 3, 2):  # waiting, under way, waiting, waiting or under way
        assert await abort_one(host, sq, cids[i]), i
        assert not await abort_one(host, sq, cids[i]), "it is gone"
    assert await abort_one(host, sq, cids[1])
    # At any moment from the doorbell on. What is still being fetched is not found.
    found = 0
    for moment in range(0, 120, 8):
        cid = long(16 * (moment % 64))
        await host.ring(sq)
        await ClockCycles(dut.clk_i, moment)
        first = await abort_one(host, sq, cid)
        found += first
        assert first or await abort_one(host, sq, cid)
    assert found
    # Short ones: over or aborted.
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
    """Deletes a queue whose commands take long: all end before, as aborted due to that."""
    cid = host.push(host.sqs[0], 0, cdw10=sq.qid)
    await host.ring(host.sqs[0])
    assert (await host.wait(host.sqs[0], cid)).status == nvme.OK
    await host.poll(sq.cq)
    for long in cids:
        entry = host.done.pop((sq.qid, long))
        assert (entry.status, entry.dnr) == (nvme.SQ_DELETION, False)
    del host.sqs[sq.qid]


@cocotb.test()
async def full_admin_completion_queue(dut):
    """A parked request completes only into an entry that the host has freed; the controller rests meanwhile."""
    host = await start(dut, entries=16, cq_entries=2)
    cq = host.cqs[0]
    cid = await host.park()
    other = await host.park()
    host.push(host.sqs[0], 8, cdw10=0x7777 << 16)
    cq.hold = True
    await host.ring(host.sqs[0])
    await host.idle()
    assert cq.written == 1
    await host.doorbell(99, True, 0)
    await ClockCycles(dut.clk_i, 50)
    await host.idle()
    await ClockCycles(dut.clk_i, 50)
    assert not dut.busy_o.value, "waiting for the host is no work"
    assert cq.written == 1
    cq.hold = False
    await host.poll(cq)
    host.done.clear()
    events = [await host.event(c) for c in (cid, other)]
    assert sorted(events, key=str) == [BAD_REGISTER, None]
    left = (cid, other)[events.index(None)]
    # An Abort that has taken the last entry finds no room for the request, and says so.
    assert (await host.admin(8, cdw10=left << 16)).dw0 == 1
    assert await host.event(left) is None
    await host.log_page(ERROR_LOG, 64)
    await host.doorbell(99, True, 0)
    assert await host.event(left) == BAD_REGISTER


@cocotb.test()
async def events_under_load(dut):
    """Events with I/O on all queues and back-pressure: none lost, data right, requests renewed as Linux does."""
    host = await start(dut)
    host.pauses(0.2)
    sqs = await host.io_queues(QUEUES, 16)
    pump = cocotb.start_soon(Pump(host, sqs).run(120))
    for number in range(12):
        cid = host.push(host.sqs[0], 12)
        await host.ring(host.sqs[0])
        await ClockCycles(dut.clk_i, 23 * number)
        await host.doorbell(70, False, 0)
        assert (await host.wait(host.sqs[0], cid)).dw0 == BAD_REGISTER
        page = await host.log_page(ERROR_LOG, 128)
        assert struct.unpack_from("<QH", page) == (number + 1, 0xFFFF)
    await pump
    await host.idle()


@cocotb.test()
async def timestamp(dut):
    """Feature 0Eh: set at any dword of the host, counts milliseconds also while the controller rests; errors."""
    host = await start(dut)

    async def get(**kw) -> tuple[int, int]:
        buffer = host.alloc(16, 64)
        host.memory.data[buffer : buffer + 16] = b"\xa5" * 16
        await host.admin(10, cdw10=14, prp1=buffer, **kw)
        assert host.memory.data[buffer + 8 : buffer + 16] == b"\xa5" * 8
        (value,) = struct.unpack_from("<Q", host.memory.data, buffer)
        return value & (1 << 48) - 1, value >> 48

    async def put(value: int, at: int = 0, **kw) -> None:
        page = host.alloc(2 * PAGE)
        other = host.alloc(PAGE)
        data = struct.pack("<Q", value)
        room = min(8, PAGE - at)
        host.memory.data[page + at : page + at + room] = data[:room]
        host.memory.data[other : other + 8 - room] = data[room:]
        await host.admin(9, **({"cdw10": 14, "prp1": page + at, "prp2": other if room < 8 else 0} | kw))

    ms, attributes = await get()
    assert ms < 1000
    assert attributes == 0, "Timestamp Origin: reset"
    for at in (0, 4, 56, 60, 64, 4088, 4092):
        value = host.rng.randrange(1 << 47)
        await put(value | 0xFFFF << 48, at)
        ms, attributes = await get()
        assert value <= ms < value + 100, f"at {at}: {ms:#x}, {value:#x}"
        assert attributes == 2, "Timestamp Origin: the host"
    await put(1_000_000)
    await host.idle()
    for passed in (1, 999, 3_600_000, 10**9):
        before, _ = await get()
        await host.idle()
        await skip(host, passed * KHZ)
        after, _ = await get()
        assert passed <= after - before < passed + 100
    await put((1 << 48) - 1)
    await skip(host, 10 * KHZ)
    assert (await get())[0] < 110, "it wraps"
    # Errors change nothing.
    await put(77_000_000)
    good = host.alloc(PAGE)
    for want, fields in (
        (nvme.PRP_OFFSET, {"prp1": good + 2}),
        (nvme.PRP_OFFSET, {"prp1": good + 4092, "prp2": good + 4}),
        (nvme.DATA_TRANSFER, {"prp1": 0x7FFF_F000}),
        (nvme.DATA_TRANSFER, {"prp1": good + 4092, "prp2": 0x7FFF_F000}),
        (nvme.NOT_SAVEABLE, {"cdw10": 1 << 31 | 14}),
        (nvme.NOT_NAMESPACE, {"nsid": 1}),
        (nvme.INVALID_NAMESPACE, {"nsid": 2}),
    ):
        await put(1, want=want, dnr=want != nvme.DATA_TRANSFER, **fields)
        assert 77_000_000 <= (await get())[0] < 77_001_000
    await host.admin(10, want=nvme.PRP_OFFSET, cdw10=14, prp1=good + 2)
    # The controller's reset begins at 0 again.
    await host.disable()
    await host.enable()
    ms, attributes = await get()
    assert ms < 1000
    assert attributes == 0


@cocotb.test()
async def host_behavior(dut):
    """Feature 16h: 512 bytes from and to any dword, ACRE kept, reserved values refused, reserved bytes ignored; Select;
    errors change nothing; gone after a reset."""
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
        # What is reserved in this revision a later one uses.
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
    # The Timestamp takes the same way.
    data[both[0] : both[0] + 8] = struct.pack("<Q", 1)
    await host.admin(9, cdw10=14, prp1=both[0])
    assert await get() == structure(1)
    await host.disable()
    await host.enable()
    assert await get() == structure(0), "a reset forgets"


async def set_timeout(host: Host, ms: int, want: int = nvme.OK, **kw) -> None:
    await host.admin(9, want=want, **({"cdw10": 0x0F, "cdw11": ms} | kw))


async def timeout(host: Host, select: int = 0) -> int:
    return (await host.admin(10, cdw10=select << 8 | 0x0F)).dw0


async def pass_time(host: Host, ms: int) -> None:
    """All but 20 ms of it in one go, as the engine does when everything rests."""
    await host.idle()
    if ms > 20:
        await skip(host, (ms - 20) * KHZ)
    await ClockCycles(host.dut.clk_i, min(ms, 20) * KHZ)


async def expired_entry(host: Host) -> bytes:
    """The newest entry of the error log, but for its count."""
    return (await host.log_page(ERROR_LOG, 64))[8:]


EXPIRED = model.error(0, 0xFFFF, 0xFFFF, nvme.KEEP_ALIVE_EXPIRED)[8:]


@cocotb.test()
async def keep_alive_timeout(dut):
    """Feature 0Fh: rounded up to KAS, the present value or the default by Select; what cannot be, and changes nothing;
    0 after a reset. A timer that is off never expires, and a Keep Alive then does nothing."""
    host = await start(dut)
    await host.admin(0x18)
    assert await timeout(host) == 0
    await pass_time(host, 10**9)
    assert await host.read(nvme.CSTS) == nvme.RDY
    most = (1 << 32) // 100 * 100
    for ms in (1, 99, 100, 101, 5000, 12_345, 1 << 31, most - 1, most, host.rng.randrange(1, most)):
        await set_timeout(host, ms)
        assert await timeout(host) == -(-ms // 100) * 100, f"{ms} ms"
        assert (await timeout(host, 1), await timeout(host, 2), await timeout(host, 3)) == (0, 0, 4)
        # What is refused neither changes the value nor stops the time.
        for bad in (most + 1, 0xFFFF_FFFF):
            await set_timeout(host, bad, want=nvme.KEEP_ALIVE_INVALID)
        for want, fields in (
            (nvme.NOT_SAVEABLE, {"cdw10": 1 << 31 | 0x0F}),
            (nvme.NOT_NAMESPACE, {"nsid": 1}),
            (nvme.INVALID_NAMESPACE, {"nsid": 2}),
        ):
            await set_timeout(host, 0, want=want, **fields)
        await host.admin(10, want=nvme.INVALID_FIELD, cdw10=4 << 8 | 0x0F)
        assert await timeout(host) == -(-ms // 100) * 100, f"{ms} ms"
    await set_timeout(host, 0)
    assert await timeout(host) == 0
    await pass_time(host, 10**9)
    assert await host.read(nvme.CSTS) == nvme.RDY
    await set_timeout(host, 700)
    await host.disable()
    await host.enable()
    assert await timeout(host) == 0
    await pass_time(host, 10**6)
    assert await host.read(nvme.CSTS) == nvme.RDY


@cocotb.test()
async def keep_alive(dut):
    """The timer: restarted by Keep Alive and by Set Features, by nothing else; at its end CFS, an entry in the error
    log, nothing is fetched any more, a command that takes long ends; a reset heals that. Resets, shutdown and 0 stop
    it."""
    host = await start(dut)
    errors = 0

    async def alive(ms: int) -> None:
        await pass_time(host, ms)
        assert await host.read(nvme.CSTS) == nvme.RDY

    async def dead() -> None:
        """Its time is over, with what a register access takes."""
        await pass_time(host, 15)
        assert await host.read(nvme.CSTS) == nvme.RDY | nvme.CFS

    async def again(how: str = "disable") -> None:
        nonlocal errors
        if how == "reset":
            await host.write(0x20, 0x4E56_4D65)
            await host.wait_csts(nvme.RDY, 0)
            await host.write(nvme.CSTS, 1 << 4)
        else:
            await host.disable()
        host.allocator = 256 * PAGE
        await host.enable()
        assert await timeout(host) == 0
        count = int.from_bytes(await host.log_page(ERROR_LOG, 8), "little")
        assert count == errors, "errors and ends of the time are counted, nothing else"
        await alive(10**6)

    # To the millisecond, whatever the time is; from the last of what restarts it.
    for round_, ms in enumerate((100, 300, 150_000, (1 << 32) // 100 * 100)):
        await set_timeout(host, ms)
        for _ in range(2):
            await alive(ms - 30)
            await host.admin(0x18, **host.noise({}))
        await alive(ms - 30)
        await set_timeout(host, ms)
        await alive(ms - 60)
        await host.identify(1)
        await host.admin(0x18, want=nvme.INVALID_FIELD, flags=1)
        await set_timeout(host, 0xFFFF_FFFF, want=nvme.KEEP_ALIVE_INVALID)
        errors += 2
        await alive(25)
        await host.idle()
        await ClockCycles(dut.clk_i, 15 * KHZ)
        await dead()
        errors += 1
        # Nothing more happens; the clock rests.
        reads, log = len(host.memory.reads), len(host.log)
        host.push(host.sqs[0], 0x18)
        await host.ring(host.sqs[0])
        await ClockCycles(dut.clk_i, 2000)
        await host.idle()
        assert (len(host.memory.reads), len(host.log)) == (reads, log), "fetched after the end"
        await pass_time(host, 10**6)
        assert await host.read(nvme.CSTS) == nvme.RDY | nvme.CFS
        await again("reset" if round_ == 1 else "disable")
        assert await expired_entry(host) == EXPIRED
    # A longer, then a shorter time; none; a stop of any kind before the end.
    await set_timeout(host, 1000)
    await alive(900)
    await set_timeout(host, 2000)
    await alive(1900)
    await set_timeout(host, 100)
    await alive(60)
    await set_timeout(host, 0)
    await alive(10**6)
    for how in ("disable", "reset", "shutdown"):
        await set_timeout(host, 100)
        await alive(60)
        if how == "shutdown":
            await host.shutdown()
            host.quiet = False
            await pass_time(host, 10**6)
            assert await host.read(nvme.CSTS) == nvme.RDY | 2 << 2, "inactive from CC.SHN on"
        await again("reset" if how == "reset" else "disable")
    # While a command is under way that takes long, other traffic included: it ends, and can be tried again.
    for acre in (False, True):
        await host.behavior(acre)
        (sq,) = await host.io_queues(1, ENTRIES)
        await set_timeout(host, 100)
        ranges = [(0, BLOCKS)] * 256
        cid = host.dsm(sq, ranges, host.alloc(PAGE))
        await host.ring(sq)
        for _ in range(9):
            await ClockCycles(dut.clk_i, 10 * KHZ)
            assert await host.read(nvme.CSTS) == nvme.RDY
        await ClockCycles(dut.clk_i, 20 * KHZ)
        assert await host.read(nvme.CSTS) == nvme.RDY | nvme.CFS
        entry = await host.wait(sq, cid)
        assert (entry.status, entry.dnr) == (host.interrupted, False)
        errors += 2
        await again()
        entries = await host.log_page(ERROR_LOG, 128)
        assert entries[72:128] == EXPIRED, "before the command that it ended"


@cocotb.test()
async def known_waits(dut):
    """Waits whose end is known, of held interrupts and of half a fused pair, may be left out: what follows comes in the
    same cycle, counted with those left out, and few are simulated."""
    host = await start(dut)
    await host.msix(QUEUES + 1)
    (sq, other) = await host.io_queues(2, ENTRIES, vectors=True)
    narrow = await host.create_sq(3, 8, await host.create_cq(3, 2))
    unit = KHZ // 10

    async def until(done, leave_out: bool) -> tuple[int, int]:
        """Cycles until `done()`, and how many of them were simulated."""
        cycles = stale = 0
        for simulated in range(40_000):
            if done():
                return cycles, simulated
            wait = int(dut.wait_o.value)
            more = wait - 8 if leave_out and wait > 8 and stale == 0 else 0
            dut.skipped_i.value = more
            stale = 7 if more else max(stale - 1, 0)  # then it is worked out again
            await RisingEdge(dut.clk_i)
            cycles += 1 + more
        raise nvme.Timeout("a wait")

    await host.admin(9, cdw10=8, cdw11=255 << 8 | 100)
    for queues in ((sq,), (sq, other)):
        lengths = []
        # The first round brings the search for held vectors to where it stands after each.
        for leave_out in (False, False, True):
            await host.idle()
            host.interrupts.clear()
            for queue in queues:
                host.push(queue, 0, nsid=1)
                await host.ring(queue)
            want = len(queues)
            cycles, simulated = await until(lambda want=want: len(host.interrupts) == want, leave_out)
            lengths.append(cycles)
            assert cycles >= 255 * unit
            assert not leave_out or simulated < 200
            for queue in queues:
                await host.poll(queue.cq)
        assert lengths[1] == lengths[2], lengths
    at = host.alloc(PAGE)
    lengths = []
    for leave_out in (False, True):
        for opcode, flags in ((5, 1), (1, 2)):
            host.push(narrow, opcode, nsid=1, flags=flags, prp1=at)
        await host.ring(narrow)
        await ClockCycles(dut.clk_i, 300)
        narrow.cq.hold = False
        cycles, simulated = await until(lambda: narrow.cq.written > 0, leave_out)
        assert not leave_out or simulated < 600
        lengths.append(cycles)
        await host.poll(narrow.cq)
        for _ in range(2):
            await ClockCycles(dut.clk_i, 300)
            await host.poll(narrow.cq)
        host.done.clear()
        await host.idle()
    assert min(lengths) > 2000, "a half waits for its partner"
    await host.disable()


@cocotb.test()
async def coalescing(dut):
    """Features 08h and 09h: a message for a threshold of entries, or when the time is over; exceptions; resets."""
    host = await start(dut)
    await host.msix(QUEUES + 1)
    sqs = await host.io_queues(QUEUES, ENTRIES, vectors=True)
    unit = KHZ // 10  # cycles in 100 us

    async def flushes(sq, count: int) -> None:
        cids = [host.push(sq, 0, nsid=1) for _ in range(count)]
        await host.ring(sq)
        for cid in cids:
            await host.wait(sq, cid)

    async def messages(wait: int = 60) -> list[int]:
        """Vectors of the messages since the last call."""
        await ClockCycles(dut.clk_i, wait)
        got = [data - 0x1000 for data in host.interrupts]
        host.interrupts.clear()
        return got

    async def set_up(threshold: int, time: int) -> None:
        await host.admin(9, cdw10=8, cdw11=time << 8 | threshold)
        await host.idle()
        await messages()

    # Off: threshold or time 0.
    for threshold, time in ((0, 0), (3, 0), (0, 255)):
        await set_up(threshold, time)
        for _ in range(3):
            await flushes(sqs[0], 1)
            assert await messages() == [1]
    # Whole thresholds; the admin queue is left out.
    await set_up(3, 255)
    for count, want in ((4, 1), (8, 2), (40, 10)):
        await flushes(sqs[0], count)
        assert await messages() == [1] * want
    for _ in range(3):
        await host.admin(8)
        assert await messages() == [0]
    # What is left waits for the time, all vectors together.
    await flushes(sqs[0], 3)
    await flushes(sqs[2], 1)
    assert await messages() == []
    assert dut.busy_o.value
    assert sorted(await messages(255 * unit)) == [1, 3]
    await host.idle()
    assert await messages() == []
    # Nothing is counted twice after that.
    await flushes(sqs[0], 3)
    assert await messages() == []
    await flushes(sqs[0], 1)
    assert await messages() == [1]
    for time in (50, 100, 200):
        await set_up(200, time)
        await flushes(sqs[1], 1)
        cycles = 0
        while not host.interrupts and cycles < 2 * 255 * unit:
            cycles += 1
            await RisingEdge(dut.clk_i)
        assert time * unit - 40 <= cycles <= time * unit + 40, f"{time}: {cycles}"
        assert await messages() == [2]
    # One vector is exempt.
    await set_up(3, 255)
    await host.admin(9, cdw10=9, cdw11=1 << 16 | 2)
    await messages()
    await flushes(sqs[0], 1)
    for _ in range(3):
        await flushes(sqs[1], 1)
        assert await messages() == [2]
    assert await messages(256 * unit) == [1]
    # The settings change while something waits.
    await flushes(sqs[0], 2)
    assert await messages() == []
    await host.admin(9, cdw10=8, cdw11=0)
    assert sorted(await messages()) == [0, 1]
    # A load with all of it: the last entry of each queue is told, and far fewer messages than entries are sent.
    await set_up(7, 100)
    await host.admin(9, cdw10=9, cdw11=2)
    host.log.clear()
    host.interrupts.clear()
    for _ in range(4):
        for sq in sqs:
            for _ in range(11):
                host.push(sq, 0, nsid=1)
            await host.ring(sq)
        for sq in sqs:
            while sq.head != sq.tail:
                await host.poll(sq.cq)
                await ClockCycles(dut.clk_i, 4)
        host.done.clear()
    await host.idle()
    last = {entry[:2]: at for at, entry in enumerate(host.log) if entry[0] in ("cqe", "msi")}
    for qid in range(1, QUEUES + 1):
        assert last["msi", qid] > last["cqe", qid]
    assert len(host.interrupts) <= 44 * QUEUES // 4
    # A shutdown does not wait for the time, and nothing comes afterwards; nor after a reset.
    await set_up(7, 255)
    await flushes(sqs[0], 2)
    host.interrupts.clear()
    await host.shutdown()
    assert host.interrupts == [0x1001]
    await ClockCycles(dut.clk_i, 600)
    await host.disable()
    host.allocator = 256 * PAGE
    await host.enable()
    (sq,) = await host.io_queues(1, ENTRIES, vectors=True)
    await set_up(7, 255)
    await flushes(sq, 2)
    await host.disable()
    await host.idle()
