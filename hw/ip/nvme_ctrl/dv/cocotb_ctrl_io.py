# SPDX-License-Identifier: Apache-2.0
"""Tests of the I/O commands beside Read, Write and Flush, and of fields that change nothing, on
nvme_ctrl_tb."""

from __future__ import annotations

import cocotb
import nvme_host as nvme
from cocotb.triggers import ClockCycles
from cocotb.utils import get_sim_time
from cocotb_ctrl import BLOCKS, ENTRIES, MEDIA, QUEUES, start
from extent import LONG
from nvme_host import PAGE, Host, Pump

COMPARE, WRITE_ZEROES, DSM, VERIFY = 5, 8, 9, 0xC
AD = 4
NSSR = 0x20
nvme.PATIENCE = 120_000  # one command may cover the whole media, 64 bytes a cycle


async def do(host: Host, sq, opcode: int, want: int = nvme.OK, dnr: bool | None = None, **fields) -> None:
    """One command that must end with a status."""
    cid = host.push(sq, opcode, **({"nsid": 1} | fields))
    await host.ring(sq)
    await ended(host, sq, cid, want, dnr)


async def ended(host: Host, sq, cid: int, want: int = nvme.OK, dnr: bool | None = None) -> None:
    entry = await host.wait(sq, cid)
    assert entry.status == want, f"status {entry.status:#x}, wanted {want:#x}"
    assert entry.dnr == ((want != nvme.OK) if dnr is None else dnr)
    assert entry.dw0 == 0


async def deallocate(host: Host, sq, ranges, at: int, want: int = nvme.OK, **fields) -> None:
    cid = host.dsm(sq, ranges, at, **fields)
    await host.ring(sq)
    await ended(host, sq, cid, want)


@cocotb.test()
async def io_ignored_fields(dut):
    """FUA, LR, PRINFO, DTYPE, DSM and tags in CDW12 to CDW15 change nothing; neither do reserved
    bits."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    buffer = host.alloc(2 * PAGE)
    fields = [1 << bit for bit in range(16, 32)] + [0xFFFF_0000, 0x4000_0000 | 0x3C00_0000]
    for i, high in enumerate(fields):
        tail = {f"cdw{n}": host.rng.getrandbits(32) for n in (13, 14, 15)}
        data = host.rng.randbytes(PAGE)
        host.memory.data[buffer : buffer + PAGE] = data
        for opcode in (1, COMPARE, VERIFY, 2):
            at = buffer if opcode != 2 else buffer + PAGE
            await do(host, sq, opcode, prp1=at, cdw10=8 * i, cdw12=7 | high, **tail)
        assert host.memory.data[buffer + PAGE : buffer + 2 * PAGE] == data
        await do(host, sq, WRITE_ZEROES, cdw10=8 * i, cdw12=7 | high, **tail)
        assert not any(host.media.data[PAGE * i : PAGE * (i + 1)])


ALL32, ALL64 = (1 << 32) - 1, (1 << 64) - 1
# Bits that change what a command does (NVMe 1.4, 6.6 to 6.15); the others are reserved or hints.
DATA = {"nsid": ALL32, "prp1": ALL64, "prp2": ALL64}
BLOCKS_OF = {"nsid": ALL32, "cdw10": ALL32, "cdw11": ALL32, "cdw12": 0xFFFF}
USED = {
    0: {"nsid": ALL32},
    1: DATA | BLOCKS_OF,
    2: DATA | BLOCKS_OF,
    COMPARE: DATA | BLOCKS_OF,
    WRITE_ZEROES: BLOCKS_OF,
    DSM: DATA | {"cdw10": 0xFF, "cdw11": AD},
    VERIFY: BLOCKS_OF,
}


@cocotb.test()
async def io_unused_bits(dut):
    """Bits that a command does not use, including reserved ones, have no effect: it does the same,
    or ends with the same error. Each opcode, fused pairs, opcodes that do not exist."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    model = bytearray(host.media.data)
    data = host.memory.data
    at, other = host.alloc(PAGE), host.alloc(PAGE)
    rounds = [op for op in USED for _ in range(24)] + ["pair", 0x7F, "outside"] * 8
    host.rng.shuffle(rounds)
    for op in rounds:
        blocks = host.rng.randrange(1, 9)
        lba = host.rng.randrange(BLOCKS - blocks)
        span = slice(512 * lba, 512 * (lba + blocks))
        data[at : at + PAGE] = host.rng.randbytes(PAGE)
        where = {"nsid": 1, "cdw10": lba, "cdw12": blocks - 1}
        buffers = {"prp1": at, "prp2": 0}
        want = nvme.OK
        if op == "pair":
            data[at : at + 512 * blocks] = model[span]
            data[other : other + PAGE] = host.rng.randbytes(PAGE)
            first = host.noise(USED[COMPARE], **where, **buffers, flags=1)
            second = host.noise(USED[1], **where, prp1=other, prp2=0, flags=2)
            cids = host.push(sq, COMPARE, **first), host.push(sq, 1, **second)
            await host.ring(sq)
            for cid in cids:
                await ended(host, sq, cid)
            model[span] = data[other : other + 512 * blocks]
        elif op == "outside":
            op = host.rng.choice((1, 2, COMPARE, WRITE_ZEROES, VERIFY))
            where |= {"cdw10": BLOCKS - blocks + 1}
            used = {name: value for name, value in (where | buffers).items() if name in USED[op]}
            await do(host, sq, op, nvme.LBA_RANGE, **host.noise(USED[op], **used))
        elif op == 0x7F:
            await do(host, sq, op, nvme.INVALID_OPCODE, **host.noise({}))
        elif op == DSM:
            deallocates = host.rng.random() < 0.7
            ranges = [(lba, blocks), (host.rng.randrange(BLOCKS - 8), 8)]
            fields = host.noise(USED[DSM], nsid=1, cdw10=1, cdw11=AD * deallocates, **buffers)
            await deallocate(host, sq, ranges, at, **fields)
            for first, count in ranges if deallocates else ():
                model[512 * first : 512 * (first + count)] = bytes(512 * count)
        else:
            if op == COMPARE:
                data[at : at + 512 * blocks] = model[span]
                if host.rng.random() < 0.3:
                    data[at + host.rng.randrange(512 * blocks)] ^= 0x10
                    want = nvme.COMPARE_FAILURE
            used = {name: value for name, value in (where | buffers).items() if name in USED[op]}
            # Without data PSDT has no meaning.
            flags = host.rng.choice((0, 0x40, 0x80)) if op in (0, WRITE_ZEROES, VERIFY) else 0
            await do(host, sq, op, want, **host.noise(USED[op], **used, flags=flags))
            if op == 1:
                model[span] = data[at : at + 512 * blocks]
            elif op == 2:
                assert data[at : at + 512 * blocks] == model[span]
            elif op == WRITE_ZEROES:
                model[span] = bytes(512 * blocks)
        assert host.media.data == model, f"{op}: the media"
    await host.idle()


@cocotb.test()
async def write_zeroes(dut):
    """From one block to the whole namespace, with and without DEAC; other blocks are unchanged; no
    host memory is read."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    model = bytearray(host.media.data)
    for blocks in (1, 2, 7, 8, 9, 100, 2049, *((2048, 5000) if LONG else ())):
        lba = host.rng.choice((0, BLOCKS - blocks, host.rng.randrange(BLOCKS - blocks)))
        reads = len(host.memory.reads)
        prps = {"prp1": host.rng.getrandbits(64), "prp2": host.rng.getrandbits(64)}
        await do(host, sq, WRITE_ZEROES, cdw10=lba, cdw12=blocks - 1 | (blocks & 1) << 25, **prps)
        assert len(host.memory.reads) == reads + 1
        model[512 * lba : 512 * (lba + blocks)] = bytes(512 * blocks)
        assert host.media.data == model
    await do(host, sq, WRITE_ZEROES, cdw12=BLOCKS - 1)
    assert not any(host.media.data)


@cocotb.test()
async def verify(dut):
    """Reads the media and returns nothing; a block that cannot be read is an Unrecovered Read
    Error."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    host.media.refuse.append(range(512 * 1000, 512 * 1001))
    for lba, blocks, want in (
        (0, 1, nvme.OK),
        (3, 996, nvme.OK),
        *([(1001, BLOCKS - 1001, nvme.OK)] if LONG else []),
        (1000, 1, nvme.READ_ERROR),
        (0, BLOCKS, nvme.READ_ERROR),
        (999, 1, nvme.OK),
    ):
        await do(host, sq, VERIFY, want, False, cdw10=lba, cdw12=blocks - 1, prp1=host.rng.getrandbits(64))
    host.media.refuse.clear()
    await do(host, sq, VERIFY, cdw12=BLOCKS - 1)
    assert not any(kind == "data" for kind, *_ in host.log)


@cocotb.test()
async def compare(dut):
    """Equal, or different in one bit anywhere: Compare Failure, not to be retried. Up to MDTS, at
    any PRP1."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    media = bytes(host.media.data)
    buffer = host.alloc((1 << 20) + PAGE)
    for blocks in (1, 2, 8, 9, 64, 333, 2048):
        size = 512 * blocks
        lba = host.rng.randrange(BLOCKS - blocks)
        at = buffer + host.rng.choice((0, 4, 2052, 4092))
        host.memory.data[at : at + size] = media[512 * lba : 512 * lba + size]
        for byte in (None, 0, size - 1, host.rng.randrange(size)):
            if byte is not None:
                host.memory.data[at + byte] ^= 1 << host.rng.randrange(8)
            cid = host.rw(sq, True, lba, blocks, at)
            raw = host.memory.data
            raw[sq.base + 64 * ((sq.tail - 1) % sq.entries)] = COMPARE
            await host.ring(sq)
            await ended(host, sq, cid, nvme.OK if byte is None else nvme.COMPARE_FAILURE)
            if byte is not None:
                raw[at : at + size] = media[512 * lba : 512 * lba + size]
    assert host.media.data == media
    host.media.refuse.append(range(0x10000, 0x10200))
    await do(host, sq, COMPARE, nvme.READ_ERROR, False, cdw10=0x80, prp1=buffer)
    await do(host, sq, COMPARE, nvme.DATA_TRANSFER, False, prp1=0x7FFF_F000)


@cocotb.test()
async def dataset_management(dut):
    """Deallocated blocks read as zeros; lists at any dword; hints alone do nothing; errors change
    nothing."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    model = bytearray(host.media.data)
    table = host.alloc(2 * PAGE)
    for count, offset in ((1, 0), (2, 4084), (40, 3000), (256, 2052), *([(256, 0)] if LONG else [])):
        ranges = [(host.rng.randrange(BLOCKS - 40), host.rng.choice((0, 1, 3, 8, 40))) for _ in range(count)]
        for cdw11 in (0, 1, 2, 3, 0xFFFF_FFFB):
            await deallocate(host, sq, ranges, table + offset, cdw11=cdw11)
        assert host.media.data == model
        await deallocate(host, sq, ranges, table + offset, cdw11=host.rng.choice((AD, AD | 3, 0xFFFF_FFFF)))
        for lba, blocks in ranges:
            model[512 * lba : 512 * (lba + blocks)] = bytes(512 * blocks)
        assert host.media.data == model
    for bad in ((BLOCKS, 1), (BLOCKS - 1, 2), (0, 0xFFFF_FFFF), ((1 << 64) - 1, 1), (1 << 55, 8)):
        await deallocate(host, sq, [(8, 8), bad, (64, 8)], table, want=nvme.LBA_RANGE)
    await deallocate(host, sq, [(8, 8), (64, 8)], table, want=nvme.PRP_OFFSET, prp1=table + 2)
    await deallocate(host, sq, [(8, 8), (64, 8)], table + 4092, want=nvme.PRP_OFFSET, prp2=table + PAGE + 4)
    await do(host, sq, DSM, nvme.DATA_TRANSFER, False, prp1=0x7FFF_F000, cdw11=AD)
    assert host.media.data == model
    await deallocate(host, sq, [(0, BLOCKS)], table)
    assert not any(host.media.data)
    page = host.alloc(PAGE)
    host.memory.data[page : page + PAGE] = b"x" * PAGE
    await do(host, sq, 2, prp1=page, cdw10=77, cdw12=7)
    assert not any(host.memory.data[page : page + PAGE])


@cocotb.test()
async def range_commands_stopped_early(dut):
    """Disable, shutdown and subsystem reset while commands of 256 times nearly the whole namespace
    are in flight or wait. RDY falls, or SHST is complete, soon. Each command ends at most once, no
    block is half, no other one changes."""
    host = await start(dut)
    first, blocks = 101, BLOCKS - 302
    span = slice(512 * first, 512 * (first + blocks))
    table = host.alloc(16 * PAGE)
    allocated = host.allocator
    partly = 0
    for round_, (moment, how) in enumerate(
        ((1, "disable"), (3000, "shutdown"), (90, "reset"), (250, "shutdown"), (2000, "disable"), (9000, "reset"))
    ):
        host.allocator = allocated
        host.media.data[:] = host.rng.randbytes(MEDIA)
        before = bytes(host.media.data)
        sqs = await host.io_queues(2, 16)
        await host.behavior(acre=round_ == 1)
        cids = []
        for i, sq in enumerate(sqs):
            at = table + 4 * PAGE * i
            fields = {"cdw10": first, "cdw12": blocks - 1}
            cids += [(sq, host.dsm(sq, [(first, blocks)] * 256, at + 4 * (round_ % 3))) for _ in range(2)]
            cids.append((sq, host.dsm(sq, [(first, blocks)] * 256, at + 2 * PAGE, **host.sgl([(at + 2 * PAGE, PAGE)]))))
            cids.append((sq, host.push(sq, WRITE_ZEROES, nsid=1, **fields)))
            cids.append((sq, host.push(sq, VERIFY, nsid=1, **fields)))
            await host.ring(sq)
        await ClockCycles(dut.clk_i, moment)
        begin = get_sim_time("ns")
        if how == "disable":
            await host.write(nvme.CC, nvme.CC_SIZES)
            await host.wait_csts(nvme.RDY, 0)
        elif how == "shutdown":
            await host.write(nvme.CC, nvme.CC_SIZES | 1 | 1 << 14)
            await host.wait_csts(3 << 2, 2 << 2)
        else:
            await host.write(NSSR, 0x4E56_4D65)
            await host.wait_csts(nvme.RDY, 0)
        cycles = (get_sim_time("ns") - begin) / 4
        # The movers hold 64 descriptors of 4 KiB a channel: 8192 beats, through one port here.
        assert cycles < 15_000, f"{how} after {moment}: {cycles} cycles, while one of the commands takes 16 million"
        host.quiet = True
        await host.idle()
        # The host may not consume meanwhile, so all completed entries are there.
        host.quiet = False
        if how == "shutdown":
            for sq in sqs:
                await host.poll(sq.cq)
            if moment >= 3000:
                assert len(host.done) == len(cids)
            for sq, cid in cids:
                entry = host.done.pop((sq.qid, cid), None)
                assert entry is None or (entry.status, entry.dnr) == (host.interrupted, False)
            assert not host.done
        host.quiet = True
        assert host.media.data[: span.start] == before[: span.start]
        assert host.media.data[span.stop :] == before[span.stop :]
        zeroed = 0
        for at in range(span.start, span.stop, 512):
            block = host.media.data[at : at + 512]
            assert not any(block) or block == before[at : at + 512]
            zeroed += not any(block)
        partly += 0 < zeroed < blocks
        host.quiet = False
        if how == "reset":
            await host.write(nvme.CSTS, 1 << 4)
        else:
            await host.disable()
        await host.enable()
        (sq,) = await host.io_queues(1, 16)
        await deallocate(host, sq, [(first, 8), (first + 100, 3)], table)
        assert not any(host.media.data[span.start : span.start + 8 * 512])
        await do(host, sq, VERIFY, cdw10=0, cdw12=99)
        await host.disable()
        await host.enable()
    assert partly >= 3


@cocotb.test()
async def io_malformed(dut):
    """Each malformed command gets its status and changes nothing."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    before = bytes(host.media.data)
    good = {"prp1": host.alloc(PAGE), "cdw11": AD}
    for opcode in (COMPARE, WRITE_ZEROES, VERIFY, DSM):
        base = good if opcode == DSM else good | {"cdw11": 0, "cdw12": 7}
        for nsid in (0, 2, 0xFFFF_FFFF):
            await do(host, sq, opcode, nvme.INVALID_NAMESPACE, **(base | {"nsid": nsid}))
        for flags in (3, 0xC0):
            await do(host, sq, opcode, nvme.INVALID_FIELD, **(base | {"flags": flags}))
        if opcode == DSM:
            continue
        for low, high in ((BLOCKS, 0), (BLOCKS - 7, 0), (0, 1), (0xFFFF_FFFC, 0xFFFF_FFFF)):
            await do(host, sq, opcode, nvme.LBA_RANGE, **(base | {"cdw10": low, "cdw11": high}))
    for opcode, want in ((COMPARE, nvme.INVALID_FIELD), (WRITE_ZEROES, nvme.LBA_RANGE), (VERIFY, nvme.LBA_RANGE)):
        await do(host, sq, opcode, want, **(good | {"cdw11": 0, "cdw12": 0xFFFF}))
    await do(host, sq, COMPARE, nvme.INVALID_FIELD, **(good | {"cdw11": 0, "cdw12": 2048}))
    host.media.refuse.append(range(512 * 64, 512 * 65))
    await do(host, sq, WRITE_ZEROES, nvme.WRITE_FAULT, False, cdw10=64)
    host.media.refuse.clear()
    assert host.media.data == before
    await host.idle()


@cocotb.test()
async def range_commands_beside_io(dut):
    """Zeroing, verifying and comparing in the upper half of the media under a mixed load on the
    lower half; disable."""
    host = await start(dut)
    host.pauses(0.2)
    sqs = await host.io_queues(QUEUES, ENTRIES)
    last = sqs.pop()
    half = len(host.media.data) // 2
    upper = bytes(host.media.data[half:])
    table = host.alloc(PAGE)
    page = host.alloc(PAGE)
    host.memory.data[page : page + PAGE] = upper[:PAGE]
    first = half // 512
    cids = [host.push(last, COMPARE, nsid=1, prp1=page, cdw10=first, cdw12=7) for _ in range(5)]
    cids.append(host.push(last, VERIFY, nsid=1, cdw10=first, cdw12=2047))
    cids.append(host.push(last, WRITE_ZEROES, nsid=1, cdw10=first + 8, cdw12=1023))
    cids.append(host.dsm(last, [(first + 2048, 512), (first + 4000, 9)], table))
    await host.ring(last)
    pump = Pump(host, sqs)
    pump.share = half // 512 // len(sqs)
    await pump.run(80)
    for cid in cids:
        await ended(host, last, cid)
    want = bytearray(upper)
    want[PAGE : PAGE + 512 * 1024] = bytes(512 * 1024)
    want[512 * 2048 : 512 * 2560] = bytes(512 * 512)
    want[512 * 4000 : 512 * 4009] = bytes(512 * 9)
    assert host.media.data[half:] == want
    for _ in range(3):
        host.push(last, WRITE_ZEROES, nsid=1, cdw10=first, cdw12=1023)
    host.dsm(last, [(first, 512)], table)
    await host.ring(last)
    await host.disable()
    await host.enable()
    await host.identify(1)
