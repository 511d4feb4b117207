# SPDX-License-Identifier: Apache-2.0
"""Tests of the data path on nvme_data_tb: a logical block is atomic under races, failures and
interruptions."""

from __future__ import annotations

import cocotb
from cocotb.triggers import RisingEdge
from cocotb_data import Media, random_timing
from data_model import (
    ABORTED,
    BAD_LENGTH,
    BAD_PRP,
    BAD_TYPE,
    BLOCK,
    COMPARE,
    HOST_ERROR,
    INTERRUPTED,
    MISMATCH,
    OK,
    PAGE,
    READ,
    READ_ERROR,
    VERIFY,
    WRITE,
    ZERO,
    Command,
    Env,
    Timing,
)
from extent import LONG

LBA = 512
HOST, SPANS = 12 << 20, 4 << 20  # bytes of host memory; of those, not in pages


async def start(dut, seed: int = 1) -> Env:
    env = Env(dut, seed, host_bytes=HOST, span_bytes=SPANS)
    await env.reset()
    return env


def spread_lines(env: Env, most: int) -> None:
    """A memory that serves each line at a separate time."""
    env.mem_side.timing = Timing(latency=lambda: env.rng.randrange(1, 20), line_spread=most)
    env.host_side.timing = Timing(latency=lambda: env.rng.randrange(30, 60))


def pieces(env: Env, size: int, most: int) -> list[int]:
    """Lengths of at most `most` pieces that add up to `size`, at any dword."""
    cuts = sorted(4 * env.rng.randrange(1, size // 4) for _ in range(env.rng.randrange(1, most)))
    return [b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True) if b > a]


def build(env: Env, kind: str, op: int, mem: int, size: int) -> Command:
    """A command of that kind: PRPs at a page's start, PRPs that split a block, an SGL of a few or
    many pieces."""
    if kind == "sgl":
        lengths = pieces(env, size, env.rng.choice((3, 10)))
    elif kind == "crumbs":
        lengths = [4] * (size // 4)
    if kind in ("sgl", "crumbs"):
        descriptors = [(BLOCK, env.span(n), n) for n in lengths]
        command = env.sgl_command(op, mem, descriptors)
        return env.sgl(command, [descriptors])
    offset = 0 if kind == "page" else PAGE - 4 * env.rng.randrange(1, min(size, PAGE) // 4)
    command = env.command(op != READ, mem, size, offset)
    command.op = op
    return command


def fill(env: Env, command: Command, value: bytes) -> Command:
    """Host data: the four bytes repeated."""
    for address, _, length in command.parts():
        env.host.write(address, value * (length // 4))
    return command


def read_data(env: Env, command: Command) -> bytes:
    """The data of a Read."""
    return b"".join(env.host.read(address, length) for address, _, length in command.parts())


def assert_whole_blocks(data: bytes, allowed: set[bytes]) -> None:
    """Every block has one of the allowed values."""
    for at in range(0, len(data), LBA):
        block = data[at : at + LBA]
        assert block == block[:4] * (LBA // 4), f"block {at // LBA} is not whole: {block.hex()}"
        assert block[:4] in allowed, f"{block[:4].hex()} of nobody"


class Values:
    """A different value for each command."""

    def __init__(self) -> None:
        self.last = 0

    def __call__(self) -> bytes:
        self.last += 1
        return self.last.to_bytes(4, "little")


PAIRS = [
    (a, b) for i, a in enumerate(("page", "split", "sgl", "crumbs")) for b in ("page", "split", "sgl", "crumbs")[i:]
]


@cocotb.test()
async def atomic_racing_writes(dut):
    """Two Writes of one block at every phase to each other, by PRPs and SGLs: the result is one of
    the two, whole."""
    env = await start(dut)
    value, media = Values(), Media(env)
    for first, second in PAIRS:
        for phase in range(-80, 81, (1 if LONG else 5) * (4 if "crumbs" in (first, second) else 2)):
            env.pages = env.pages or list(range((HOST - SPANS) // PAGE))
            if not phase % 16:
                spread_lines(env, env.rng.choice((1, 8, 60)))
            at = media.take(LBA, LBA)
            old = value()
            env.media.write(at, old * 128)
            values = [value(), value()]
            commands = [
                fill(env, build(env, kind, WRITE, at, LBA), v) for kind, v in zip((first, second), values, strict=True)
            ]
            commands[0].delay, commands[1].delay = max(0, -phase), max(0, phase)
            commands.sort(key=lambda c: c.delay)
            await env.run(commands)
            assert all(c.status == OK for c in commands)
            assert_whole_blocks(env.media.read(at, LBA), set(values))
            env.span_at = env.host.base + HOST - SPANS


@cocotb.test()
async def atomic_racing_everything(dut):
    """Reads, Writes, Compares, Write Zeroes and deallocations of a few blocks at random: each block
    that is read, compared or left on the media is whole."""
    env = await start(dut)
    value = Values()
    seen = set()
    for round_ in range(600):
        if round_ >= (150 if LONG else 75) and len(seen) == 2:
            break
        env.pages = list(range((HOST - SPANS) // PAGE))
        env.rng.shuffle(env.pages)
        env.span_at = env.host.base + HOST - SPANS
        if round_ % 10 == 0:
            spread_lines(env, env.rng.choice((1, 8, 60, 200)))
        blocks = env.rng.choice((1, 1, 2, 3, 8, 9))
        base = LBA * env.rng.randrange(64)
        old = value()
        env.media.write(base, old * (128 * blocks))
        allowed = {old}
        commands = []
        for _ in range(env.rng.choice((2, 3, 6))):
            n = env.rng.randrange(1, blocks + 1)
            at = base + LBA * env.rng.randrange(blocks - n + 1)
            what = env.rng.choice(("read", "read", "write", "write", "compare", "zero", "deallocate"))
            kind = env.rng.choice(("page", "split", "split", "sgl", "crumbs" if n < 3 else "sgl"))
            if what == "read":
                command = build(env, kind, READ, at, LBA * n)
            elif what == "write":
                allowed.add(v := value())
                command = fill(env, build(env, kind, WRITE, at, LBA * n), v)
            elif what == "compare":
                command = build(env, kind, COMPARE, at, LBA * n)
                # Half of a block old, the other half zeros or different: equal to no allowed value.
                other = env.rng.choice(sorted({*allowed, bytes(4)} - {old}))
                data = (old * 64 + other * 64) * n
                if env.rng.random() < 0.5:
                    data = (other * 64 + old * 64) * n
                for address, mem, length in command.parts():
                    env.host.write(address, data[mem - at : mem - at + length])
            else:
                allowed.add(bytes(4))
                command = env.zero(at, LBA * n) if what == "zero" else env.deallocate([(at // LBA, n)])
            command.delay = env.rng.choice((0, env.rng.randrange(300)))
            command.what = what
            commands.append(command)
        commands.sort(key=lambda c: c.delay)
        # SGLs of 4 bytes a descriptor are walked one after the other
        await env.run(commands, bound=30_000)
        for command in commands:
            assert command.status == (MISMATCH if command.what == "compare" else OK), command
            if command.what == "read":
                assert_whole_blocks(read_data(env, command), allowed)
                seen.add(read_data(env, command)[:4] == old)
        assert_whole_blocks(env.media.read(base, LBA * blocks), allowed)
    assert seen == {True, False}


class Interruption:
    """Ends or holds up commands from a cycle on: an Abort of a command, a stop, or a pause of the
    memory side."""

    def __init__(self, env: Env, how: str, moment: int, target: Command) -> None:
        self.env, self.how, self.moment, self.target = env, how, moment, target
        self.found = False
        self.active = False

    def cycle(self) -> None:
        env, dut = self.env, self.env.dut
        if self.how == "stop":
            dut.stop_i.value = int(env.now >= self.moment)
        elif self.how == "quiesce":
            dut.quiesce_i.value = int(self.moment <= env.now < self.moment + 900)
        elif self.how == "abort" and self.active:
            if int(dut.abort_ready_o.value):
                self.found = bool(int(dut.abort_found_o.value))
                self.how, self.active = "", False
                dut.abort_valid_i.value = 0
        elif self.how == "abort" and env.now >= self.moment and self.target.slot >= 0 and not self.target.ended:
            self.active = True
            dut.abort_valid_i.value = 1
            dut.abort_slot_i.value = self.target.slot
            dut.abort_current_i.value = 1

    async def end(self) -> None:
        """All commands have ended; a pending query gets its answer."""
        while self.active:
            await RisingEdge(self.env.dut.clk_i)
            self.cycle()
        for name in ("stop", "quiesce", "abort_current"):
            getattr(self.env.dut, f"{name}_i").value = 0


@cocotb.test()
async def atomic_racing_fills(dut):
    """Fills, beside Reads, Writes and Compares of the same blocks at every phase, to their end,
    ended early, or with a pause of the memory side. Everything read, compared or left on the media
    is whole blocks."""
    env = await start(dut)
    value = Values()
    region = 1024 * max(1, env.granule // 524_288) * env.channels
    ends, seen, overlaps = set(), set(), 0
    least = 80 if LONG else 40
    for round_ in range(4 * least):
        if round_ >= least and len(ends) == 3 and len(seen) == 2 and overlaps > 6.25 * least:
            break
        env.pages = list(range((HOST - SPANS) // PAGE))
        env.rng.shuffle(env.pages)
        env.span_at = env.host.base + HOST - SPANS
        if round_ % 4 == 0:
            spread_lines(env, env.rng.choice((1, 8, 60, 200)))
        how = ("", "", "stop", "abort", "quiesce")[round_ % 5]
        blocks = env.rng.choice((128, 131, 200, 400))
        # Some within a region, some over its end.
        first = env.rng.choice((env.rng.randrange(16, 200), region - env.rng.randrange(16, blocks)))
        base, end = first - 16, first + blocks + 16
        old = value()
        env.media.write(LBA * base, old * (128 * (end - base)))
        allowed, zero = {old, bytes(4)}, bytes(4)
        fill_command = (
            env.zero(LBA * first, LBA * blocks) if env.rng.random() < 0.5 else env.deallocate([(first, blocks)])
        )
        fill_command.what = "fill"
        fill_command.delay = 0 if how else env.rng.randrange(150)
        commands = [fill_command]
        for _ in range(24):
            n = env.rng.choice((1, 1, 2, 8, 9))
            near = env.rng.choice(
                (first, first + blocks, min(max(region, base + 9), end - 9), env.rng.randrange(base, end))
            )
            at = min(max(near - env.rng.randrange(n + 1), base), end - n)
            what = env.rng.choice(("read", "read", "write", "compare"))
            kind = env.rng.choice(("page", "split", "sgl"))
            if what == "read":
                command = build(env, kind, READ, LBA * at, LBA * n)
            elif what == "write":
                allowed.add(v := value())
                command = fill(env, build(env, kind, WRITE, LBA * at, LBA * n), v)
            else:
                command = build(env, kind, COMPARE, LBA * at, LBA * n)
                # Half of each block old, the other half zeros: equal to no allowed value.
                data = (env.rng.choice((old * 64 + zero * 64, zero * 64 + old * 64))) * n
                for address, mem, length in command.parts():
                    env.host.write(address, data[mem - LBA * at : mem - LBA * at + length])
            command.what = what
            command.delay = env.rng.randrange(900)
            commands.append(command)
        commands.sort(key=lambda c: c.delay)
        event = Interruption(env, how, env.now + 20 + env.rng.randrange(700), fill_command)
        env.on_cycle = event.cycle
        await env.run(commands, bound=60_000)
        env.on_cycle = lambda: None
        await event.end()
        for command in commands:
            if command.what == "fill":
                want = {"stop": (OK, INTERRUPTED), "abort": (OK, ABORTED)}.get(how, (OK,))
                assert command.status in want, f"{how}: {command.status}"
                ends.add(command.status)
                continue
            overlaps += fill_command.started < command.ended and command.started < fill_command.ended
            assert command.status == (MISMATCH if command.what == "compare" else OK), command
            if command.what == "read":
                assert_whole_blocks(read_data(env, command), allowed)
                seen |= {read_data(env, command)[at : at + 4] == zero for at in range(0, command.size, LBA)}
        data = env.media.read(LBA * base, LBA * (end - base))
        assert_whole_blocks(data, allowed)
        if fill_command.status == OK:
            written = {at for c in commands if c.what == "write" for at in range(c.mem // LBA, (c.mem + c.size) // LBA)}
            for at in set(range(first, first + blocks)) - written:
                assert env.media.read(LBA * at, 4) == zero, f"block {at} has not been zeroed"
        for at in (*range(base, first), *range(first + blocks, end)):
            assert env.media.read(LBA * at, 4) != zero, f"block {at} has been zeroed"
    assert ends == {OK, INTERRUPTED, ABORTED}
    assert seen == {True, False}
    assert overlaps > 6.25 * least, overlaps


@cocotb.test()
async def atomic_fills_and_pieces(dut):
    """Fills while Reads of blocks in several pieces begin, at every phase: no block changes between
    two of its pieces."""
    env = await start(dut)
    value = Values()
    seen = set()
    for kind in ("split", "sgl"):
        for phase in range(0, 120, 5):
            env.pages = list(range((HOST - SPANS) // PAGE))
            env.span_at = env.host.base + HOST - SPANS
            env.mem_side.timing = Timing(latency=lambda: 10)
            env.host_side.timing = Timing(latency=lambda: 40)
            old = value()
            env.media.write(0, old * (128 * 400))
            zeroes = env.zero(0, LBA * 200)
            reads = [build(env, kind, READ, LBA * 8 * i, LBA) for i in range(20)]
            zeroes.delay = phase
            for read in reads[10:]:
                read.delay = phase
            await env.run(sorted([*reads, zeroes], key=lambda c: c.delay), bound=60_000)
            for read in reads:
                assert read.status == OK
                assert_whole_blocks(read_data(env, read), {old, bytes(4)})
                seen.add(read_data(env, read)[:4] == old)
    assert seen == {True, False}


@cocotb.test()
async def fill_waits_for_host(dut):
    """A block is read in several pieces, the later ones of which wait for the host, which accepts
    no write. A fill does not zero it meanwhile, but a reset need not wait."""
    env = await start(dut)
    # Of the next channel, the second time: its group is not even ahead of the fill.
    for at in (LBA * 8 * env.channels, LBA * 8):
        old = Values()()
        env.media.write(0, old * (128 * 400))
        read, zeroes = build(env, "crumbs", READ, at, LBA), env.zero(0, LBA * 200)
        begin, bursts = env.now + 3000, env.mem_side.bursts  # by then the list has been read
        zeroes.delay = 3000
        written = sum(env.mem_side.write_beats)
        env.host_side.timing = Timing(write_ready=False)

        def on_cycle(begin=begin, written=written, bursts=bursts):
            if begin < env.now < begin + 1000:
                assert 0 < env.mem_side.bursts - bursts < LBA // 4
                assert not int(dut.media_busy_o.value)
                assert sum(env.mem_side.write_beats) == written
            elif env.now == begin + 1000:
                env.host_side.timing = Timing()

        env.on_cycle = on_cycle
        await env.run([read, zeroes], bound=60_000)
        env.on_cycle = lambda: None
        assert (read.status, zeroes.status) == (OK, OK)
        assert_whole_blocks(read_data(env, read), {old})
        assert_whole_blocks(env.media.read(0, LBA * 200), {bytes(4)})


@cocotb.test()
async def hot_granule(dut):
    """However many commands access 4 KiB of the media, one of the other direction gets its turn
    there, and so do the commands that follow it in its channel."""
    env = await start(dut)
    value = Values()
    for crowd_op, lone_op, latency in (
        (READ, WRITE, 100),
        (READ, WRITE, 10),
        (READ, ZERO, 100),
        (WRITE, READ, 100),
        (WRITE, READ, 10),
        (WRITE, VERIFY, 100),
        (WRITE, COMPARE, 100),
        (ZERO, READ, 100),
    ):
        env.pages = list(range((HOST - SPANS) // PAGE))
        env.mem_side.timing = Timing(latency=lambda latency=latency: latency)
        env.host_side.timing = Timing(latency=lambda: 40)
        env.media.write(0, (old := value()) * (128 * 64 * env.channels))

        def another(op, block, old=old):
            if op in (ZERO, VERIFY):
                return (env.zero if op == ZERO else env.verify)(LBA * block, LBA)
            command = build(env, "page", op, LBA * block, LBA)
            return fill(env, command, old) if op != READ else command

        crowd = [another(crowd_op, 0) for _ in range(400)]
        # A block of the same 4 KiB, the hot one itself, and one of another 4 KiB of the channel.
        lone = [another(lone_op, block) for block in (7, 0, 8 * env.channels)]
        commands = [*crowd[:40], *lone, *crowd[40:]]
        await env.run(commands, depth=16)
        for command in commands:
            # The hot block may become zero, and is compared then.
            assert command.status in ((OK, MISMATCH) if command.op == COMPARE else (OK,))
        for command in lone:
            before = sum(c.started > command.started and c.ended < command.ended for c in crowd)
            dut._log.info(
                "%d among %d, %d cycles: %d that came later go before",
                lone_op,
                crowd_op,
                latency,
                before,
            )
            assert before < 30, f"{lone_op} among {crowd_op}: {before} that came later went before"


@cocotb.test()
async def hot_everything(dut):
    """Commands of all kinds, fills among them, in 8 KiB of one channel: all end; Reads, Writes and
    fills take turns."""
    env = await start(dut)
    value = Values()
    for latency in (3, 60):
        env.pages = list(range((HOST - SPANS) // PAGE))
        env.span_at = env.host.base + HOST - SPANS
        env.mem_side.timing = Timing(latency=lambda latency=latency: latency)
        env.host_side.timing = Timing(latency=lambda: 40)
        env.media.write(0, (old := value()) * (128 * 400))
        allowed, commands = {old, bytes(4)}, []
        for i in range(400):
            at = LBA * env.rng.choice((0, 7, 8 * env.channels))
            kind = env.rng.choice(("page", "split", "sgl"))
            what = "fill" if i % 50 == 25 else env.rng.choice(("read", "write", "compare", "zero"))
            if what == "fill":
                command = env.zero(0, LBA * 200)
            elif what == "zero":
                command = env.zero(at, LBA)
            else:
                command = build(env, kind, {"read": READ, "write": WRITE, "compare": COMPARE}[what], at, LBA)
                if what == "write":
                    allowed.add(v := value())
                    fill(env, command, v)
            command.what = what
            commands.append(command)
        await env.run(commands, depth=24)
        for i, command in enumerate(commands):
            assert command.status in ((OK, MISMATCH) if command.what == "compare" else (OK,))
            if command.what == "read":
                assert_whole_blocks(read_data(env, command), allowed)
            # Commands that came later and ended before; fills and zeros wait in a separate queue,
            # one by one.
            if command.what in ("read", "write", "compare"):
                before = sum(c.ended < command.ended for c in commands[i + 1 :])
                assert before < 200, f"{command.what} {i}: {before} that came later went before"


def failing_write(env: Env, kind: str, at: int) -> tuple[Command, int]:
    """A Write of one block or more whose second or later piece cannot be read, and its status."""
    rng = env.rng
    size = LBA * rng.choice((1, 1, 2, 9))
    if kind.startswith("prp"):
        offset = PAGE - 4 * rng.randrange(1, LBA // 4)
        command = env.command(True, at, size, offset)
        if kind == "prp offset":
            if len(command.pages) == 2:
                command.prp2 |= 4
            else:
                env.host.write(command.prp2, (command.pages[1] | 4).to_bytes(8, "little"))
            return command, BAD_PRP
        if kind == "prp list":
            command = env.command(True, at, 8192 + LBA * rng.randrange(1, 8), offset)
            env.host.read_error.add(command.prp2 & ~63)
            return command, HOST_ERROR
        env.host.read_error.add(command.pages[1])
        if kind == "prp first page":
            env.host.read_error.add(PAGE * (command.pages[0] // PAGE) + PAGE - 64)
        return command, HOST_ERROR
    descriptors = [(BLOCK, env.span(n), n) for n in pieces(env, size, rng.choice((3, 30)))]
    if len(descriptors) == 1:
        descriptors = [(BLOCK, env.span(4), 4), (BLOCK, env.span(size - 4), size - 4)]
    bad = rng.randrange(1, len(descriptors))
    command = env.sgl_command(WRITE, at, descriptors)
    if kind == "sgl type":
        descriptors[bad] = (0x40, *descriptors[bad][1:])
        return env.sgl(command, [descriptors]), BAD_TYPE
    if kind == "sgl short":
        del descriptors[bad:]
        if len(descriptors) > 1:
            return env.sgl(command, [descriptors]), BAD_LENGTH
        return env.sgl(command, [descriptors]), BAD_LENGTH
    assert kind == "sgl data"
    env.host.read_error.add(descriptors[bad][1] & ~63)
    command.spans = None
    return env.sgl(command, [descriptors]), HOST_ERROR


@cocotb.test()
async def atomic_failing_writes(dut):
    """A Write whose second page or descriptor is wrong or cannot be read leaves each block old or
    new."""
    env = await start(dut)
    value, media = Values(), Media(env)
    for round_ in range(12):
        if round_:
            random_timing(env)
        for kind in ("prp offset", "prp list", "prp page", "prp first page", "sgl type", "sgl short", "sgl data"):
            media.at = media.at if media.at < 6 << 20 else 0
            at = media.take(4 * PAGE, LBA)
            env.media.write(at, (old := value()) * (PAGE // LBA * 4 * 128))
            env.host.data[:] = (new := value()) * (len(env.host.data) // 4)
            command, status = failing_write(env, kind, at)
            good = fill(env, build(env, "split", WRITE, media.take(LBA, LBA), LBA), value())
            wanted = read_data(env, good)
            await env.run([command, good] if round_ % 2 else [good, command])
            assert command.status == status, f"{kind}: {command.status}"
            assert good.status == OK
            assert env.media.read(good.mem, LBA) == wanted
            assert_whole_blocks(env.media.read(at, command.size), {old, new})
            assert_whole_blocks(env.media.read(at + command.size, 4 * PAGE - command.size), {old})
            if command.size == LBA:
                assert_whole_blocks(env.media.read(at, LBA), {old})
            env.host.read_error.clear()
            env.span_at += 64


@cocotb.test()
async def atomic_every_cut(dut):
    """A block split between two pages, and two descriptors, at every dword: the bytes are right."""
    env = await start(dut)
    for timing in (None, random_timing):
        if timing:
            timing(env)
        media, commands = Media(env), []
        for dwords in range(1, 128):
            op = env.rng.choice((READ, WRITE, COMPARE))
            blocks = env.rng.choice((1, 1, 2))
            if op == COMPARE:
                commands.append(env.compare(media.take(LBA * blocks, LBA), LBA * blocks, PAGE - 4 * dwords))
            else:
                commands.append(
                    env.command(op == WRITE, media.take(LBA * blocks, LBA), LBA * blocks, PAGE - 4 * dwords)
                )
            descriptors = [
                (BLOCK, env.span(4 * dwords), 4 * dwords),
                (BLOCK, env.span(LBA - 4 * dwords), LBA - 4 * dwords),
            ]
            command = env.sgl_command(env.rng.choice((READ, WRITE, COMPARE)), media.take(LBA, LBA), descriptors)
            commands.append(env.sgl(command, [descriptors]))
        await env.copy(commands)


@cocotb.test()
async def atomic_failed_reads(dut):
    """A Read of unreadable media: no write burst to the host has a gap, and only its bytes
    change."""
    env = await start(dut)
    media = Media(env)
    for round_ in range(30):
        if round_ > 5:
            random_timing(env)
        size = 4 * env.rng.randrange(128, 2048)
        at = media.take(size, LBA)
        command = env.command(False, at, size, 4 * env.rng.randrange(1024))
        env.media.read_error.add((at & ~63) + 64 * env.rng.randrange(size // 64))
        before = bytearray(env.host.data)
        await env.run([command])
        assert command.status == READ_ERROR
        # The model has checked the strobes. Bytes of the command are the data read, or zeros around
        # the error.
        for address, mem, length in command.parts():
            got, want = env.host.read(address, length), env.media.read(mem, length)
            assert all(g in (w, 0) for g, w in zip(got, want, strict=True))
            offset = address - env.host.base
            before[offset : offset + length] = got
        assert env.host.data == before
        env.media.read_error.clear()


@cocotb.test()
async def quiesce_at_any_time(dut):
    """From any time on, no further burst begins on the memory side, and bursts in flight end
    although the host is dead; the blocks are whole. Afterwards all continues."""
    env = await start(dut)
    value = Values()
    cut = 0
    for n in range(100):
        if n >= 25 and cut > 15:
            break
        env.pages = list(range((HOST - SPANS) // PAGE))
        env.span_at = env.host.base + HOST - SPANS
        spread_lines(env, env.rng.choice((1, 8, 60)))
        commands, expected = [], {}
        for i in range(24):
            at = 16384 * i
            size = LBA * env.rng.choice((1, 2, 8, 16))
            kind = env.rng.choice(("page", "split", "sgl"))
            op = env.rng.choice((READ, WRITE, WRITE, WRITE))
            old, new = value(), value()
            env.media.write(at, old * (size // 4))
            command = build(env, kind, op, at, size)
            if op == WRITE:
                fill(env, command, new)
            expected[at] = size, {old, new} if op == WRITE else {old}
            commands.append(command)
        moment = env.now + env.rng.randrange(20, 400)
        began = []
        env.mem_side.check = lambda port, addr, length, write, began=began: began.append(env.now)
        quiet = None
        respond = env.host_side.timing

        def on_cycle(moment=moment, began=began, respond=respond, expected=expected):
            nonlocal quiet, cut
            if env.now == moment:
                dut.quiesce_i.value = 1
                env.host_side.timing = Timing(respond=0.0, write_ready=False, latency=respond.latency)
            elif moment < env.now < moment + 600:
                # An address that was valid in the cycle of the signal may still be accepted.
                if not int(dut.media_busy_o.value) and quiet is None:
                    quiet = env.now
                    cut += env.now < moment + 599 and len(began) > 0
                    assert env.mem_side.quiet
                if quiet is not None:
                    assert not int(dut.media_busy_o.value)
                    assert not began or max(began) <= quiet
            elif env.now == moment + 600:
                assert quiet is not None, "bursts did not end"
                for at, (size, allowed) in expected.items():
                    assert_whole_blocks(env.media.read(at, size), allowed)
                dut.quiesce_i.value = 0
                env.host_side.timing = respond

        env.on_cycle = on_cycle
        await env.run(commands, bound=40_000)
        env.on_cycle = lambda: None
        dut.quiesce_i.value = 0
        for _ in range(2):
            await RisingEdge(dut.clk_i)
        assert [c.status for c in commands] == [OK] * len(commands)
        for command in commands:
            size, allowed = expected[command.mem]
            if command.op == WRITE:
                assert_whole_blocks(
                    env.media.read(command.mem, size), {max(allowed, key=lambda v: int.from_bytes(v, "little"))}
                )
    assert cut > 15
