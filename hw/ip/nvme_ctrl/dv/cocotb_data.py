# SPDX-License-Identifier: Apache-2.0
"""Tests of the data path on nvme_data_tb."""

from __future__ import annotations

import cocotb
from data_model import ADMIN, BAD_PRP, HOST_ERROR, OK, PAGE, READ_ERROR, WRITE_FAULT, Command, Env, Timing

SIZES = (4, 8, 60, 64, 68, 512, 516, 1024, 4092, 4096, 4100, 8192, 12288, 16384, 65536 + 8)
BEAT = 64


class Media:
    """Allocates disjoint ranges of the media with guard bytes between them."""

    def __init__(self, env: Env) -> None:
        self.env, self.at = env, 0

    def take(self, size: int, align: int = 4) -> int:
        rng = self.env.rng
        gap = 0 if rng.random() < 0.3 else align * rng.randrange(1, 1 + max(1, 4096 // align))
        start = -(-(self.at + gap) // align) * align
        self.at = start + size
        assert self.at <= len(self.env.media.data), "the test needs a larger media"
        return start


def random_timing(env: Env) -> None:
    """New random waits and latencies on each side."""
    for side in env.sides:
        low = env.rng.choice((1, 1, 20, 200))
        side.timing = Timing(
            ready=env.rng.choice((1.0, 0.9, 0.5)),
            respond=env.rng.choice((1.0, 0.9, 0.6)),
            latency=lambda low=low: env.rng.randrange(low, 2 * low + 1),
        )
    env.done_ready = env.rng.choice((1.0, 0.5, 0.1))


@cocotb.test()
async def basic_copies(dut):
    """One command at a time, every size in both directions, aligned."""
    env = Env(dut)
    await env.reset()
    for size in SIZES:
        for write in (False, True):
            await env.copy([env.command(write, 0x10000, size)])


@cocotb.test()
async def every_alignment(dut):
    """All 256 pairs of dword offsets within a beat, both directions, short and long, ends
    anywhere."""
    env = Env(dut)
    await env.reset()
    for timing in (None, random_timing):
        if timing:
            timing(env)
        media = Media(env)
        commands = []
        for source in range(16):
            for target in range(16):
                size = 4 * env.rng.randrange(1, 80)
                write = env.rng.random() < 0.5
                mem, host = (target, source) if write else (source, target)
                at = media.take(size + 64, 64) + 4 * mem
                offset = 64 * env.rng.randrange(0, 50) + 4 * host
                commands.append(env.command(write, at, size, offset))
        env.rng.shuffle(commands)
        await env.copy(commands)


@cocotb.test()
async def granule_edges(dut):
    """Transfers that end one dword before, at, and one or two dwords beyond a 4 KiB boundary of the
    media."""
    env = Env(dut)
    await env.reset()
    commands = []
    for i, (size, offset) in enumerate((s, b) for s in (8, 64, 512, 4096, 8192) for b in (-4, 0, 4, 8, 64)):
        end = 0x8000 * (i + 1) + offset
        commands.append(env.command(i % 2 == 1, end - size, size))
        commands.append(env.command(i % 2 == 0, 0x100000 + end - size, size))
    await env.copy(commands)


@cocotb.test()
async def random_mix(dut):
    """Sizes, alignments, list positions and timings at random, many commands in flight in both
    directions."""
    for seed in range(5):
        env = Env(dut, cocotb.RANDOM_SEED + seed)
        await env.reset()
        random_timing(env)
        media = Media(env)
        commands = []
        for _ in range(120):
            size = env.rng.choice(
                (4 * env.rng.randrange(1, 64), 512 * env.rng.randrange(1, 33), 4096, 4 * env.rng.randrange(1, 8192))
            )
            align = env.rng.choice((4, 512, 4096))
            offset = env.rng.choice((0, 0, 512, 4 * env.rng.randrange(1024)))
            commands.append(env.command(env.rng.random() < 0.5, media.take(size, align), size, offset))
        await env.copy(commands, depth=env.rng.choice((64, 64, 5)))


@cocotb.test()
async def list_positions(dut):
    """PRP lists of 2 to 20 entries that begin at each of the last 40 and some other entries of
    their page."""
    env = Env(dut, host_bytes=32 << 20)
    await env.reset()
    random_timing(env)
    media = Media(env)
    commands = []
    for index in [*range(0, 24), *range(472, 512)]:
        size = PAGE * env.rng.randrange(3, 21) if index % 3 else PAGE * 3
        commands.append(env.command(index % 2 == 1, media.take(size), size, 0, 8 * index))
    await env.copy(commands)


@cocotb.test()
async def largest_transfers(dut):
    """1 MiB in both directions at once, aligned and at odd offsets, lists chained at their first
    and later entries."""
    env = Env(dut, host_bytes=32 << 20, mem_bytes=16 << 20)
    await env.reset()
    mib = 1 << 20
    commands = [
        env.command(True, 0, mib, 0, 0),
        env.command(False, 2 * mib, mib, 0, PAGE - 8),
        env.command(True, 4 * mib + 4, mib, 2044, 8 * 300),
        env.command(False, 6 * mib + 2052, mib, 4092, 8 * 400),
    ]
    await env.copy(commands)


@cocotb.test()
async def admin_buffer(dut):
    """Reads from the admin buffer, with reads and writes of the media around them."""
    env = Env(dut)
    await env.reset()
    random_timing(env)
    media = Media(env)
    commands = []
    for i in range(40):
        if i % 4:
            commands.append(env.command(i % 2 == 1, media.take(4096, 512), 4096))
        else:
            offset = env.rng.choice((0, 4, 2048, 4092))
            commands.append(env.command(False, ADMIN | 4096 * env.rng.randrange(3), 4096, offset))
    await env.copy(commands)


def check_failed(env: Env, commands: list[Command], host_before: bytes, media_before: bytes) -> None:
    """Good commands have been executed completely; only the targets of failed ones may differ."""
    host, media = bytearray(host_before), bytearray(media_before)
    for command in commands:
        for page, mem, length in command.parts():
            at = page - env.host.base
            in_host = 0 <= at < len(host)
            if command.status == OK:
                if command.write:
                    media[mem : mem + length] = host_before[at : at + length]
                else:
                    host[at : at + length] = media_before[mem : mem + length]
            elif command.write:  # each dword old or new
                for i in range(0, length, 4):
                    found = bytes(env.media.data[mem + i : mem + i + 4])
                    if in_host and found == host_before[at + i : at + i + 4]:
                        media[mem + i : mem + i + 4] = found
            elif in_host:
                for i in range(0, length, 4):
                    found = bytes(env.host.data[at + i : at + i + 4])
                    if found in (media_before[mem + i : mem + i + 4], bytes(4)):
                        host[at + i : at + i + 4] = found
    assert host == env.host.data, "host memory differs outside the targets, or has data of no command"
    assert media == env.media.data, "media differs outside the targets, or has data of no command"


def corrupt(env: Env, command: Command, kind: str) -> int:
    """Makes a command of at least five pages fail; returns the status it must end with."""
    rng = env.rng
    entry = command.prp2 + 8 * rng.randrange(len(command.pages) - 1)
    page = rng.randrange(1, len(command.pages))
    # Of the last page, a command that begins within its first page uses some bytes only.
    used = (command.prp1 % PAGE + command.size - 1) % PAGE // 64 + 1 if page == len(command.pages) - 1 else PAGE // 64
    host_beat = command.pages[page] + 64 * rng.randrange(used)
    mem_beat = (command.mem & ~63) + 64 * rng.randrange(1, command.size // 64)
    if kind == "prp1":
        command.prp1 |= rng.randrange(1, 4)
        return BAD_PRP
    if kind == "pointer":
        command.prp2 |= 1 << rng.randrange(3)
        return BAD_PRP
    if kind == "entry":
        env.host.write(
            entry, (int.from_bytes(env.host.read(entry, 8), "little") | 1 << rng.randrange(12)).to_bytes(8, "little")
        )
        return BAD_PRP
    if kind == "list slverr":
        env.host.read_error.add(entry & ~63)
        return HOST_ERROR
    if kind == "list decerr":
        command.prp2 ^= 1 << 63
        return HOST_ERROR
    if kind == "host slverr":
        (env.host.read_error if command.write else env.host.write_error).add(host_beat)
        return HOST_ERROR
    if kind == "host decerr":
        at = command.prp2 + 8 * (page - 1)
        env.host.write(at, (command.pages[page] ^ 1 << 62).to_bytes(8, "little"))
        command.pages[page] ^= 1 << 62
        return HOST_ERROR
    mem_error = WRITE_FAULT if command.write else READ_ERROR
    if kind == "mem slverr":
        (env.media.write_error if command.write else env.media.read_error).add(mem_beat)
        return mem_error
    assert kind == "mem decerr"
    command.mem = 1 << 40
    return mem_error


KINDS = (
    "prp1",
    "pointer",
    "entry",
    "list slverr",
    "list decerr",
    "host slverr",
    "host decerr",
    "mem slverr",
    "mem decerr",
)


@cocotb.test()
async def errors(dut):
    """Each kind of error, in both directions, among good commands: right status, nothing else
    harmed."""
    for seed in range(3):
        env = Env(dut, cocotb.RANDOM_SEED + seed, host_bytes=16 << 20)
        await env.reset()
        random_timing(env)
        media = Media(env)
        commands, expected = [], []
        for kind in KINDS:
            for write in (False, True):
                size = PAGE * env.rng.randrange(5, 20)
                offset = 4 * env.rng.randrange(16)
                command = env.command(
                    write,
                    media.take(size, 4) if "mem" not in kind else media.take(size, 64),
                    size,
                    offset,
                    8 * env.rng.randrange(400),
                )
                expected.append((command, corrupt(env, command, kind), kind))
                commands.append(command)
                for _ in range(2):
                    size = 512 * env.rng.randrange(1, 40)
                    good = env.command(env.rng.random() < 0.5, media.take(size, 64), size, 64 * env.rng.randrange(64))
                    expected.append((good, OK, "good"))
                    commands.append(good)
        env.rng.shuffle(commands)
        host, media_before = bytes(env.host.data), bytes(env.media.data)
        for command in commands:
            if command.mem >= len(media_before) and command.write:
                command.pages = []  # none of it may be visible; a Read returns zeros
        await env.run(commands)
        for command, status, kind in expected:
            assert command.status == status, f"{kind} of {command}: {command.status}, not {status}"
        check_failed(env, commands, host, media_before)


@cocotb.test()
async def second_page_offset(dut):
    """PRP2 as second page and a chain pointer must have offset zero."""
    env = Env(dut)
    await env.reset()
    commands = []
    for write in (False, True):
        two = env.command(write, 0x1000, 8192)
        two.prp2 |= 4
        chained = env.command(write, 0x4000, PAGE * 6, 0, PAGE - 16)
        at = chained.prp2 + 8
        env.host.write(at, (int.from_bytes(env.host.read(at, 8), "little") | 8).to_bytes(8, "little"))
        # a list that points at its last entry
        loop = env.command(write, 0xC000, PAGE * 6, 0, PAGE - 8)
        env.host.write(loop.prp2, loop.prp2.to_bytes(8, "little"))
        commands += [two, chained, loop]
    await env.run(commands)
    assert [c.status for c in commands] == [BAD_PRP] * 6


@cocotb.test()
async def error_bytes(dut):
    """A burst with a byte that had a read error is not written to the media. To the host such bytes
    are zeros, and those a beat away are right, for any alignment."""
    env = Env(dut)
    await env.reset()
    for write in (False, True):
        for mem, offset in ((0, 0), (4, 0), (0, 60), (32, 28), (28, 32)):
            command = env.command(write, 0x2000 + mem, 3072, offset)
            source, target = (env.host, env.media) if write else (env.media, env.host)
            at, to = (command.pages[0], command.mem) if write else (command.mem, command.pages[0])
            bad = (at & ~63) + 64 * 5
            source.read_error.add(bad)
            first = to - target.base + bad - at
            last = first + 64
            wanted = bytearray(target.data)
            wanted[to - target.base : to - target.base + 3072] = source.read(at, 3072)
            if write:
                burst = slice(first & -1024, -(-last // 1024) * 1024)
                wanted[burst] = target.data[burst]
            else:
                wanted[first:last] = bytes(64)
            await env.run([command])
            assert command.status == (HOST_ERROR if write else READ_ERROR)
            assert target.data[first:last] == wanted[first:last]
            if not write:
                wanted[first - 60 : last + 60] = target.data[first - 60 : last + 60]
            assert target.data == wanted
            source.read_error.clear()


@cocotb.test()
async def done_not_accepted(dut):
    """While no end of a command is accepted, all bus traffic of commands, including responses,
    still finishes."""
    env = Env(dut)
    await env.reset()
    media = Media(env)
    commands = [env.command(i % 2 == 1, media.take(4096, 512), 4096) for i in range(64)]
    quiet = 0

    def on_cycle():
        nonlocal quiet
        moved = sum(map(sum, (env.host_side.write_beats, env.mem_side.write_beats)))
        quiet = quiet + 1 if moved == 64 * 64 and all(side.quiet for side in env.sides) else 0
        if quiet > 100:
            env.done_ready = 1.0

    env.done_ready, env.on_cycle = 0.0, on_cycle
    await env.copy(commands)


@cocotb.test()
async def directions_are_independent(dut):
    """While the host accepts no write, commands that read the host run to their end."""
    env = Env(dut)
    await env.reset()
    media = Media(env)
    commands = []
    for i in range(60):
        commands.append(env.command(i % 2 == 1, media.take(16384, 512), 16384))

    def on_cycle():
        if all(c.status is not None for c in commands if c.write):
            assert all(c.status is None for c in commands if not c.write)
            env.host_side.timing.write_ready = True
            env.on_cycle = lambda: None

    env.host_side.timing.write_ready, env.on_cycle = False, on_cycle
    await env.copy(commands)


# Throughput: beats from the first to the last cycle of a whole run, start-up and end included.


def one_channel(env: Env, count: int, write: bool, size: int, shift: int = 0, base: int = 0) -> list[Command]:
    """Commands that all go to channel 0; shift: dwords of PRP1 within its beat."""
    step = env.granule * env.channels
    return [env.command(write, base + step * i, size, 4 * shift) for i in range(count)]


async def rate(dut, build, latency: int = 1) -> float:
    env = Env(dut, host_bytes=4 << 20)
    await env.reset()
    for side in env.sides:
        side.timing = Timing(latency=lambda: latency)
    commands = build(env)
    cycles = await env.copy(commands)
    return sum(c.size for c in commands) / BEAT / cycles, env


@cocotb.test()
async def throughput(dut):
    """One beat a cycle and direction in one channel: aligned, misaligned, small, both directions at
    once."""
    cases = (
        ("read 4 KiB", lambda e: one_channel(e, 100, False, 4096), 0.95),
        ("write 4 KiB", lambda e: one_channel(e, 100, True, 4096), 0.95),
        ("read 512 B", lambda e: one_channel(e, 400, False, 512), 0.93),
        ("write 512 B", lambda e: one_channel(e, 400, True, 512), 0.93),
        # The data of a misaligned page is spread over one more beat at one end.
        ("read 4 KiB, shifted up", lambda e: one_channel(e, 100, False, 4032, 7), 0.9),
        ("write 4 KiB, shifted up", lambda e: one_channel(e, 100, True, 4032, 7), 0.9),
        (
            "both 4 KiB",
            lambda e: [
                c
                for p in zip(
                    one_channel(e, 100, False, 4096), one_channel(e, 100, True, 4096, base=1 << 21), strict=True
                )
                for c in p
            ],
            1.9,
        ),
    )
    for name, build, least in cases:
        value, _ = await rate(dut, build)
        dut._log.info("%s: %.3f beats/cycle", name, value)
        assert value >= least, f"{name}: {value:.3f} beats/cycle"


@cocotb.test()
async def round_trip(dut):
    """With 1.2 us (300 cycles) to the host, writes still fill the bus, and reads outstanding stay
    limited."""
    for size in (4096, 16384, 65536):

        def build(env, size=size):
            return [env.command(True, i * size, size) for i in range((1 << 20) // size)]

        value, env = await rate(dut, build, 300)
        most = env.host_side.outstanding_max
        dut._log.info("writes of %d B, 300 cycles: %.3f beats/cycle, at most %d beats outstanding", size, value, most)
        assert value >= 0.9
        assert most <= 512 + 64 + 32  # data, one burst more, lists


@cocotb.test()
async def mover_filled_by_blocks(dut):
    """Before late answers, single blocks of 512 bytes are read ahead. From the host as many as the
    mover has room for, from the media as many as nvme_hazard keeps apart."""
    for write, blocks in ((False, 32), (True, 64)):
        _, env = await rate(dut, lambda e, write=write: one_channel(e, 64, write, 512), 2000)
        side = env.host_side if write else env.mem_side
        most = side.outstanding_max
        dut._log.info("%s of 512 B: at most %d beats outstanding", "writes" if write else "reads", most)
        assert most == 8 * blocks


async def deep(dut, write: bool, count: int, latency: int) -> float:
    """Beats a cycle of commands of 64 KiB, with media of this latency."""
    env = Env(dut, host_bytes=8 << 20)
    await env.reset()
    env.mem_side.timing = Timing(latency=lambda: latency)
    commands = [env.command(write, i << 16, 1 << 16) for i in range(count)]
    cycles = await env.copy(commands)
    dut._log.info("%d cycles to the media: %d cycles", latency, cycles)
    return sum(c.size for c in commands) / BEAT / (cycles - latency)


@cocotb.test()
async def deep_reads(dut):
    """For slow media: 2048 beats a channel are requested before the first one arrives."""
    assert await deep(dut, False, 32, 1900) >= 1.8


@cocotb.test()
async def deep_writes(dut):
    """For slow media: 512 bursts of 4 KiB a channel are written before the first one is
    answered."""
    assert await deep(dut, True, 64, 31_000) >= 1.8
