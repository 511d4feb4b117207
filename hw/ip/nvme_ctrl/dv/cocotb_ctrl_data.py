"""Tests of how commands describe their data, on nvme_ctrl_tb: SGLs. The shapes of SGLs are tested on the data path."""

from __future__ import annotations

import struct

import cocotb
import nvme_host as nvme
from cocotb_ctrl import ENTRIES, start
from cocotb_ctrl_io import AD, COMPARE, DSM, VERIFY, WRITE_ZEROES, do
from nvme_host import PAGE, Host

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
    """Write, Compare and Read with SGLs, inline and in a segment, PSDT 01b and 10b, beside PRPs; one block to 1 MiB."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, ENTRIES)
    source, target, table = host.alloc((1 << 20) + PAGE), host.alloc((1 << 20) + PAGE), host.alloc(1 << 18)
    for i, blocks in enumerate((1, 3, 8, 100, 2048)):
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
    """Lists of ranges by SGL; commands without data do not look at it; admin commands refuse SGLs."""
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
