# SPDX-License-Identifier: Apache-2.0
"""Tests of the logs: ranges, errors, SMART. On nvme_ctrl_tb."""

from __future__ import annotations

import struct

import cocotb
import identify_model as model
import nvme_host as nvme
from cocotb.triggers import ClockCycles
from cocotb_ctrl import BLOCKS, ENTRIES, QUEUES, start
from nvme_host import PAGE, Pump


def differ(got: bytes, want: bytes) -> list[tuple[int, int, int]]:
    assert len(got) == len(want)
    return [(i, g, w) for i, (g, w) in enumerate(zip(got, want, strict=True)) if g != w][:8]


@cocotb.test()
async def log_ranges(dut):
    """Every log at every kind of offset, length and buffer position; zeros beyond its end; ranges
    that are refused."""
    host = await start(dut)
    logs = {
        nvme.SUPPORTED_LOGS: model.supported(),
        nvme.ERROR_LOG: bytes(PAGE),
        nvme.SMART_LOG: model.smart(),
        nvme.FIRMWARE_LOG: model.firmware(),
        nvme.CHANGED_NS: bytes(PAGE),
        nvme.EFFECTS_LOG: model.effects(),
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
    got = await host.log_page(nvme.EFFECTS_LOG, 1 << 20, PAGE - 4, at=4)
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
    await host.log_page(nvme.EFFECTS_LOG, 64, want=nvme.PRP_OFFSET, prp1=PAGE + 2)
    await host.admin(2, want=nvme.DATA_TRANSFER, dnr=False, cdw10=127 << 16 | nvme.SMART_LOG, prp1=0x7FFF_F000)


@cocotb.test()
async def error_log(dut):
    """An entry for each command that fails and each bad doorbell, newest first, around the ring,
    past a reset."""
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
        assert not differ(await host.log_page(nvme.ERROR_LOG, PAGE), want)
        count = int.from_bytes((await host.log_page(nvme.SMART_LOG, 512))[176:192], "little")
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
    assert not differ(await host.log_page(nvme.ERROR_LOG, 200, 260), b"".join(reversed(entries))[260:460])
    # A controller reset keeps the log.
    await host.disable()
    host.allocator = 256 * PAGE
    await host.enable()
    await check()


@cocotb.test()
async def error_log_overtaken(dut):
    """Errors while the log is transferred: an overwritten entry reads as no entry, never as another
    one."""
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
        before = int.from_bytes(await host.log_page(nvme.ERROR_LOG, 8), "little")
        page = host.alloc(PAGE)
        admin = host.push(host.sqs[0], 2, cdw10=1023 << 16 | nvme.ERROR_LOG, prp1=page)
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
    """The counters against the executed commands: units rounded up, commands, media errors, hours,
    errors."""
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
        bad = differ(await host.log_page(nvme.SMART_LOG, 512), model.smart(**(values | more)))
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
    # A controller reset keeps the counters; time passes while the controller is idle.
    await host.disable()
    host.allocator = 512 * PAGE
    await host.enable()
    await check()
    await host.idle()
    hour = nvme.KHZ * 3_600_000
    await host.skip(hour)
    await check(hours=1)
    await host.skip(41 * hour)
    await check(hours=42)
    dut.temperature_i.value = 343
    await check(hours=42, temperature=343, warning=2)
    dut.temperature_i.value = 342
    await check(hours=42, temperature=342)
    sqs = await host.io_queues(2, ENTRIES)
    done = sum(commands)
    await Pump(host, sqs).run(60)
    page = await host.log_page(nvme.SMART_LOG, 512)
    assert sum(struct.unpack_from("<QQQ", page, 64)[::2]) == done + 60
