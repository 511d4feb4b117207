# SPDX-License-Identifier: Apache-2.0
"""Tests of the data path on nvme_data_tb: SGLs."""

from __future__ import annotations

import struct

import cocotb
from cocotb_data import BEAT, Media, check_failed, random_timing
from data_model import (
    BAD_COUNT,
    BAD_GRANULARITY,
    BAD_LENGTH,
    BAD_SEGMENT,
    BAD_TYPE,
    BLOCK,
    BUCKET,
    COMPARE,
    DEALLOCATE,
    HOST_ERROR,
    LAST_SEGMENT,
    MISMATCH,
    OK,
    OUT_OF_RANGE,
    PAGE,
    READ,
    READ_ERROR,
    SEGMENT,
    WRITE,
    WRITE_FAULT,
    Command,
    Env,
    Timing,
)
from extent import LONG

MAX_EMPTY = 300


async def start(dut, seed: int = 1) -> Env:
    env = Env(dut, seed, host_bytes=40 << 20, span_bytes=24 << 20)
    await env.reset()
    return env


def cut(env: Env, descriptors: list, most: int) -> list[list]:
    """Descriptors in segments of 1 to `most`."""
    segments, at = [], 0
    while at < len(descriptors):
        n = env.rng.randrange(1, most + 1)
        segments.append(descriptors[at : at + n])
        at += n
    if len(segments) > 1 and env.rng.random() < 0.3:
        segments.append([])  # the last one is empty: its descriptor is not used
        segments[-1] = [(BLOCK, env.rng.getrandbits(64), 0xFFFF_FFFC)]
    return segments


def blocks(env: Env, lengths: list[int]) -> list:
    return [(BLOCK, env.span(n), n) for n in lengths]


def random_command(env: Env, media: Media, op: int) -> Command:
    """Blocks of any number and length, empty ones and buckets among them, in segments of any
    number."""
    rng = env.rng
    descriptors = []
    for _ in range(rng.choice((1, 1, 2, 3, 10, 40))):
        length = 4 * rng.choice((0, 1, rng.randrange(1, 40), 128, 1024, rng.randrange(1, 3000)))
        if rng.random() < 0.15:
            descriptors.append((BUCKET, rng.getrandbits(64), length))
        else:
            descriptors += blocks(env, [length])
    descriptors += blocks(env, [4 * rng.randrange(1, 20)])
    total = sum(n for kind, _, n in descriptors if kind == BLOCK or op == READ)
    size = total if rng.random() < 0.7 else max(4, total - 4 * rng.randrange(40))
    command = env.sgl_command(op, media.take(size), descriptors, size)
    segments = [descriptors] if len(descriptors) == 1 else cut(env, descriptors, rng.choice((1, 4, 64)))
    if rng.random() < 0.2:
        segments[0] = [(BLOCK, 0, 0), *segments[0]]
    return env.sgl(command, segments, last=rng.random() < 0.9)


@cocotb.test()
async def sgl_inline(dut):
    """One Data Block in the command, of any dword length up to 1 MiB at any dword, over pages; all
    directions."""
    env = await start(dut)
    for timing in (None, random_timing):
        if timing:
            timing(env)
        media = Media(env)
        commands = []
        for size in (4, 8, 60, 512, 4092, 4096, 4100, 65536, 4 * env.rng.randrange(1, 9000)):
            for op in (READ, WRITE, COMPARE):
                descriptors = blocks(env, [size])
                command = env.sgl_command(op, media.take(size), descriptors)
                commands.append(env.sgl(command, [descriptors]))
        await env.copy(commands)
    descriptors = blocks(env, [1 << 20])
    await env.copy([env.sgl(env.sgl_command(op, 0x1004, descriptors), [descriptors]) for op in (READ,)])


@cocotb.test()
async def sgl_mix(dut):
    """SGLs of any shape between PRPs, in all directions, with random timings: data right, no
    deadlock."""
    for seed in range(4 if LONG else 2):
        env = await start(dut, cocotb.RANDOM_SEED + seed)
        random_timing(env)
        media = Media(env)
        commands = []
        for _ in range(70):
            if env.rng.random() < 0.3:
                size = 512 * env.rng.randrange(1, 40)
                at = media.take(size, 512)
                commands.append(env.command(env.rng.random() < 0.5, at, size, 4 * env.rng.randrange(1024)))
            else:
                commands.append(random_command(env, media, env.rng.choice((READ, WRITE, COMPARE))))
        await env.copy(commands, depth=env.rng.choice((64, 5)))


@cocotb.test()
async def sgl_segment_places(dut):
    """Segments at every qword of a line and around the end of a page, of 1 to 300 descriptors."""
    env = await start(dut)
    random_timing(env)
    media = Media(env)
    commands = []
    for i, count in enumerate([*range(1, 20), 100, 300]):
        for place in (8 * i % 64, PAGE - 8 * (i + 1), PAGE - 16):
            lengths = [4 * env.rng.randrange(1, 4) for _ in range(count)]
            descriptors = blocks(env, lengths)
            command = env.sgl_command(env.rng.choice((READ, WRITE)), media.take(sum(lengths)), descriptors)
            where = env.span(16 * count + PAGE, PAGE) + place
            env.span_at += 2 * PAGE
            env.host.write(where, b"".join(env.descriptor(*d) for d in descriptors))
            kind = LAST_SEGMENT if i % 2 else SEGMENT
            command.prp1, command.prp2 = struct.unpack("<QQ", env.descriptor(kind, where, 16 * count))
            commands.append(command)
    await env.copy(commands)


@cocotb.test()
async def sgl_reads_no_further(dut):
    """Nothing is read beyond the end of a segment; of a long SGL, hardly anything beyond what the
    data need."""
    env = await start(dut)
    count = 9
    descriptors = blocks(env, [512] * count)
    command = env.sgl_command(WRITE, 0, descriptors)
    where = env.span(1 << 16, PAGE)
    env.host.write(where, b"".join(env.descriptor(*d) for d in descriptors))
    command.prp1, command.prp2 = struct.unpack("<QQ", env.descriptor(LAST_SEGMENT, where, 16 * count))
    read = []
    env.host_side.check = lambda port, addr, length, write: read.extend(
        addr + 64 * i for i in range(length) if port == env.channels and not write
    )
    await env.copy([command])
    assert sorted(read) == [where + 64 * i for i in range(3)]
    read.clear()
    command.prp2 = struct.unpack("<QQ", env.descriptor(LAST_SEGMENT, where, 1 << 30))[1]
    await env.copy([command])
    assert len(read) <= 3 + 4


def wrong(env: Env, op: int, mem: int, kind: str) -> tuple[Command, int]:
    """A command with an error, and its status."""
    rng = env.rng
    data = blocks(env, [4 * rng.randrange(1, 300) for _ in range(6)])
    command = env.sgl_command(op, mem, data)
    if kind == "granularity":
        at = rng.randrange(6)
        _, address, length = data[at]
        data[at] = (
            BLOCK,
            *rng.choice(((address + rng.randrange(1, 4), length), (address, length + rng.randrange(1, 4)))),
        )
        return env.sgl(command, cut(env, data, 4)), BAD_GRANULARITY
    if kind == "bucket granularity":
        return env.sgl(command, [data[:3], [(BUCKET, 0, 6), *data[3:]]]), BAD_GRANULARITY
    if kind == "type":
        data[rng.randrange(6)] = (rng.choice((0x01, 0x0A, 0x11, 0x21, 0x31, 0x40, 0x5A, 0xF0)), env.span(64), 64)
        return env.sgl(command, cut(env, data, 4)), BAD_TYPE
    if kind == "short":
        return env.sgl(command, [data[:2], data[2:5]], last=rng.random() < 0.5), BAD_LENGTH
    if kind == "short inline":
        return env.sgl(command, [data[:1]]), BAD_LENGTH
    if kind == "segment in last":
        data[4] = (rng.choice((SEGMENT, LAST_SEGMENT)), env.span(64, 8), 64)
        return env.sgl(command, [data]), BAD_SEGMENT
    if kind == "segment too early":
        data[4] = (rng.choice((SEGMENT, LAST_SEGMENT)), env.span(64, 8), 64)
        return env.sgl(command, [data], last=False), BAD_COUNT
    if kind in ("segment length", "segment address"):
        env.sgl(command, [data[:3], data[3:]])
        address, length = (0, rng.choice((8, 4, 1))) if kind == "segment length" else (rng.choice((1, 2, 4)), 0)
        if rng.random() < 0.5:
            command.prp1 += address
            command.prp2 += length
        else:
            where, size = command.prp1, command.prp2 & 0xFFFF_FFFF
            at = where + size - 16
            old_address, old_length = struct.unpack("<QI", env.host.read(at, 12))
            env.host.write(at, struct.pack("<QI", old_address + address, old_length + length))
        return command, BAD_SEGMENT
    if kind == "segment of nothing":
        env.sgl(command, [data])
        command.prp2 &= ~0xFFFF_FFFF
        return command, BAD_SEGMENT
    if kind == "segment refused":
        env.sgl(command, [data])
        env.host.read_error.add(command.prp1 & ~63)
        return command, HOST_ERROR
    if kind == "segment nowhere":
        env.sgl(command, [data])
        command.prp1 ^= 1 << 62
        return command, HOST_ERROR
    if kind == "data nowhere":
        address = data[2][1]
        data[2] = (BLOCK, address ^ 1 << 62, data[2][2])
        command.spans[2] = (address ^ 1 << 62, *command.spans[2][1:])
        return env.sgl(command, [data]), HOST_ERROR
    assert kind == "media"
    (env.media.write_error if op == WRITE else env.media.read_error).add(mem & ~63)
    return env.sgl(command, [data]), WRITE_FAULT if op == WRITE else READ_ERROR


WRONG = (
    "granularity",
    "bucket granularity",
    "type",
    "short",
    "short inline",
    "segment in last",
    "segment too early",
    "segment length",
    "segment address",
    "segment of nothing",
    "segment refused",
    "segment nowhere",
    "data nowhere",
    "media",
)


@cocotb.test()
async def sgl_errors(dut):
    """Each error in each direction, between good commands: its status, and nothing else is
    harmed."""
    for seed in range(3 if LONG else 1):
        env = await start(dut, cocotb.RANDOM_SEED + seed)
        random_timing(env)
        media = Media(env)
        commands, expected = [], []
        for kind in WRONG:
            for op in (READ, WRITE, COMPARE):
                expected.append((*wrong(env, op, media.take(8192, 64), kind), kind))
                env.span_at += 256  # no data of others in the line of an error
                expected.append((random_command(env, media, env.rng.choice((READ, WRITE))), OK, "good"))
        env.rng.shuffle(expected)
        commands = [command for command, _, _ in expected]
        host, before = bytes(env.host.data), bytes(env.media.data)
        await env.run(commands)
        for command, status, kind in expected:
            assert command.status == status, f"{kind} of {command}: {command.status}, not {status}"
            if command.op == COMPARE:
                command.spans = []  # changes nothing
        check_failed(env, commands, host, before)


@cocotb.test()
async def sgl_compares_unequal(dut):
    """A bit anywhere in one of the blocks makes a difference; one in a bucket's place does not
    exist."""
    env = await start(dut)
    random_timing(env)
    media = Media(env)
    commands = []
    for _ in range(40):
        command = random_command(env, media, COMPARE)
        address, _, length = env.rng.choice(command.spans)
        at = address + env.rng.randrange(length)
        env.host.write(at, bytes([env.host.read(at, 1)[0] ^ 1 << env.rng.randrange(8)]))
        commands.append(command)
    await env.run(commands)
    assert all(c.status == MISMATCH for c in commands)


@cocotb.test()
async def sgl_rings(dut):
    """Segments that form rings end with an error, those that move data with the transfer; others go
    on meanwhile."""
    env = await start(dut)
    rings, media = [], Media(env)
    for count in (1, 2, 3):
        for op in (READ, WRITE):
            command = env.sgl_command(op, media.take(4096), blocks(env, [4096]))
            where = env.span(64 * count, 8)
            for i in range(count):
                body = [(BLOCK, 0, 0)] * i
                target = where + 64 * ((i + 1) % count)
                entries = [*body, (SEGMENT, target, 16 * ((i + 1) % count + 1))]
                env.host.write(where + 64 * i, b"".join(env.descriptor(*e) for e in entries))
            command.prp1, command.prp2 = struct.unpack("<QQ", env.descriptor(SEGMENT, where, 16))
            command.spans = []
            rings.append(command)
    others = [env.command(i % 2 == 1, media.take(4096, 512), 4096) for i in range(8)]
    expected = env.expect(others)
    await env.run([*rings[:3], *others, *rings[3:]], bound=400_000)
    assert all(c.status == BAD_COUNT for c in rings)
    assert all(c.status == OK for c in others)
    assert expected == (env.host.data, env.media.data)
    # Moving data: ends with it.
    target = env.span(64)
    where = env.span(32, 8)
    env.host.write(where, env.descriptor(BLOCK, target, 64) + env.descriptor(SEGMENT, where, 32))
    command = env.sgl_command(READ, 0, [(BLOCK, target, 64)] * 16)
    command.prp1, command.prp2 = struct.unpack("<QQ", env.descriptor(SEGMENT, where, 32))
    await env.run([command])
    assert command.status == OK
    # The limit itself.
    for count, want in ((MAX_EMPTY, OK), (MAX_EMPTY + 1, BAD_COUNT)):
        data = [*[(BLOCK, 0, 0)] * (count - 1), *blocks(env, [512])]
        command = env.sgl(env.sgl_command(WRITE, 8192, data), [data])
        await env.run([command], bound=100_000)
        assert command.status == want


def ranges_by_sgl(env: Env, ranges: list[tuple[int, int]]) -> Command:
    """Deallocation whose list lies in pieces; `spans` are those of the list."""
    rng = env.rng
    data = b"".join(struct.pack("<IIQ", rng.getrandbits(32), n, lba) for lba, n in ranges)
    descriptors, at = [], 0
    while at < len(data):
        n = min(len(data) - at, 4 * rng.choice((0, 1, 3, 4, rng.randrange(1, 40), 1024)))
        (block,) = blocks(env, [n])
        env.host.write(block[1], data[at : at + n])
        descriptors.append(block)
        at += n
        if rng.random() < 0.2:
            descriptors.append((BUCKET, 0, 64))
    command = Command(True, 0, len(data), 0, op=DEALLOCATE, sgl=True)
    command.zeroed = [(512 * lba, 512 * n) for lba, n in ranges]
    command.spans = [(address, 0, n) for kind, address, n in descriptors if kind == BLOCK and n]
    return env.sgl(command, [descriptors] if len(descriptors) == 1 else cut(env, descriptors, rng.choice((2, 30))))


@cocotb.test()
async def sgl_deallocates(dut):
    """Lists of ranges in pieces of any dword length, beside copies; errors of the list and of its
    pieces."""
    env = await start(dut)
    for timing in (None, random_timing):
        if timing:
            timing(env)
        commands, at = [], 0
        for count in (1, 1, 2, 5, 40, 256):
            ranges = []
            for _ in range(count):
                n = env.rng.choice((0, 1, 1, 2, 8))
                ranges.append((at, n))
                at += n + env.rng.randrange(3)
            commands.append(ranges_by_sgl(env, ranges))
        media = Media(env)
        media.at = 4 << 20
        commands += [random_command(env, media, env.rng.choice((READ, WRITE))) for _ in range(10)]
        await env.copy(commands)
    good = [(8 * i, 1 + i % 5) for i in range(20)]
    for lba in range(160):
        env.media.write(512 * lba, env.rng.randbytes(512))
    before = bytes(env.media.data)
    for kind, want in (
        ("range", OUT_OF_RANGE),
        ("type", BAD_TYPE),
        ("short", BAD_LENGTH),
        ("piece", HOST_ERROR),
        ("segment", HOST_ERROR),
    ):
        for _ in range(4):
            command = ranges_by_sgl(env, [*good, (1 << 55, 1)] if kind == "range" else good)
            if kind == "type":
                command.prp2 |= 0x40 << 56
            elif kind == "short":
                descriptors = [(BLOCK, address, n) for address, _, n in command.spans]
                descriptors[-1] = (*descriptors[-1][:2], descriptors[-1][2] - 4)
                env.sgl(command, [descriptors, [(BUCKET, 0, 4096)]])
            elif kind == "piece":
                env.host.read_error.add(env.rng.choice(command.spans)[0] & ~63)
            elif kind == "segment":
                command.prp1 = (command.prp1 & ~7) ^ 1 << 61
                command.prp2 = struct.unpack("<QQ", env.descriptor(LAST_SEGMENT, 0, 64))[1]
            await env.run([command])
            assert command.status == want, f"{kind}: {command.status}"
            assert env.media.data == before
            env.host.read_error.clear()
            env.span_at += 256
    await env.copy([ranges_by_sgl(env, good)])


@cocotb.test()
async def sgl_throughput(dut):
    """One beat a cycle: 4 KiB inline, and long lists of pages with 300 cycles to the host."""
    for name, write, size, count, latency, least in (
        ("read, 4 KiB inline", False, PAGE, 100, 1, 0.95),
        ("write, 4 KiB inline", True, PAGE, 100, 1, 0.95),
        ("read, pages of 128 KiB", False, 1 << 17, 16, 300, 0.9),
        ("write, pages of 128 KiB", True, 1 << 17, 16, 300, 0.9),
    ):
        env = await start(dut)
        for side in env.sides:
            side.timing = Timing(latency=lambda latency=latency: latency)
        commands = []
        step = max(size, env.granule * env.channels)
        for i in range(count):
            descriptors = [(BLOCK, env.page(), PAGE) for _ in range(size // PAGE)]
            command = env.sgl_command(WRITE if write else READ, step * i % (4 << 20), descriptors)
            commands.append(env.sgl(command, [descriptors]))
        await env.run(commands)
        assert all(c.status == OK for c in commands)
        value = sum(c.size for c in commands) / BEAT / (max(c.ended for c in commands) - commands[0].started)
        dut._log.info("%s: %.3f beats/cycle", name, value)
        assert value >= least, f"{name}: {value:.3f} beats/cycle"
