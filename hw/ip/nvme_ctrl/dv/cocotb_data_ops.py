# SPDX-License-Identifier: Apache-2.0
"""Tests of the data path on nvme_data_tb: zeros, verification, comparison, deallocation."""

from __future__ import annotations

import cocotb
from cocotb.triggers import RisingEdge
from cocotb_data import BEAT, Media, random_timing
from data_model import (
    ABORTED,
    BAD_PRP,
    DELETED,
    HOST_ERROR,
    INTERRUPTED,
    MISMATCH,
    OK,
    OUT_OF_RANGE,
    PAGE,
    READ_ERROR,
    WRITE_FAULT,
    Env,
)
from extent import LONG

MEDIA = 8 << 20
BLOCKS = MEDIA // 512


async def start(dut, **kw) -> Env:
    env = Env(dut, **kw)
    await env.reset()
    return env


def untouched(env: Env) -> None:
    """Nothing of the host has been read or written."""
    assert env.host_side.bursts == 0


@cocotb.test()
async def zeros(dut):
    """Every number of blocks up to three pages at every place in a page; large; nothing from or to
    the host."""
    env = await start(dut)
    await env.copy(
        [
            env.zero(512 * (16 * i + at), 512 * n)
            for i, (at, n) in enumerate((at, n) for at in range(8) for n in (1, 2, 7, 8, 9, 15, 16))
        ]
    )
    random_timing(env)
    await env.copy([env.zero(4 << 20, 3 << 20), env.zero(0, 512), env.zero((4 << 20) - 512, 512), env.zero(512, PAGE)])
    untouched(env)


@cocotb.test()
async def verifies(dut):
    """Each beat is read once, nothing is written; a beat that cannot be read is an error of its
    command only."""
    env = await start(dut)
    for timing in (None, random_timing):
        if timing:
            timing(env)
        commands, beats, at = [], 0, 0
        for n in (1, 3, 8, 9, 100, 2048, 1, 1):
            commands.append(env.verify(512 * at, 512 * n))
            beats += 8 * n
            at += n + env.rng.randrange(9)
        before = sum(env.mem_side.read_beats)
        await env.copy(commands)
        assert sum(env.mem_side.read_beats) - before == beats
        assert sum(env.mem_side.write_beats) == 0
    env.media.read_error.add(512 * 1000 + 64 * env.rng.randrange(8))
    commands = [env.verify(512 * lba, 512) for lba in range(990, 1010)]
    await env.run(commands)
    assert [c.status for c in commands] == [OK] * 10 + [READ_ERROR] + [OK] * 9
    untouched(env)


@cocotb.test()
async def compares_equal(dut):
    """Equal data at any pair of alignments and of any size; neither memory changes."""
    env = await start(dut)
    for timing in (None, random_timing):
        if timing:
            timing(env)
        media = Media(env)
        commands = []
        for i in range(80):
            size = env.rng.choice((4, 512, 4096, 4 * env.rng.randrange(1, 4096), 32768))
            offset = env.rng.choice((0, 4 * (i % 16), 4 * env.rng.randrange(1024)))
            commands.append(env.compare(media.take(size, env.rng.choice((4, 512))), size, offset))
        await env.copy(commands)
    assert sum(env.mem_side.write_beats) == 0
    assert sum(env.host_side.write_beats) == 0


@cocotb.test()
async def compares_unequal(dut):
    """One bit makes the difference: the first, the last or any; one next to the data makes none."""
    env = await start(dut)
    random_timing(env)
    media = Media(env)
    commands, wanted = [], []
    for i in range(120):
        size = env.rng.choice((4, 64, 512, 4 * env.rng.randrange(1, 200), 4096, 12288))
        offset = 4 * env.rng.randrange(1, 1020)
        command = env.compare(media.take(size + 8) + 4, size, offset)
        parts = command.parts()
        first, last = parts[0][0], parts[-1][0] + parts[-1][2] - 1
        part = env.rng.choice(parts)
        inside = (first, last, part[0] + env.rng.randrange(part[2]))[i % 3]
        at, want = (inside, MISMATCH) if i % 2 else (env.rng.choice((first - 1, last + 1)), OK)
        if env.host.base <= at < env.host.base + len(env.host.data):
            env.host.write(at, bytes([env.host.read(at, 1)[0] ^ 1 << env.rng.randrange(8)]))
        commands.append(command)
        wanted.append(want)
    host, memory = bytes(env.host.data), bytes(env.media.data)
    env.rng.shuffle(order := list(range(len(commands))))
    await env.run([commands[i] for i in order])
    assert [c.status for c in commands] == wanted
    assert (host, memory) == (env.host.data, env.media.data)


@cocotb.test()
async def compare_errors(dut):
    """What cannot be read on either side is an error, not a difference; PRP errors as for a
    write."""
    env = await start(dut)
    for kind, want in (("media", READ_ERROR), ("host", HOST_ERROR), ("prp", BAD_PRP), ("none", OK)):
        command = env.compare(0x3000 + 4 * env.rng.randrange(128), 5 * PAGE, 4 * env.rng.randrange(1024))
        if kind == "media":
            env.media.read_error.add((command.mem & ~63) + 64 * env.rng.randrange(1, 300))
        elif kind == "host":
            page = env.rng.choice(command.pages[1:-1])
            env.host.read_error.add(page + 64 * env.rng.randrange(64))
        elif kind == "prp":
            command.prp1 += 1
        others = [env.compare(0x20000 + PAGE * i, PAGE) for i in range(4)]
        await env.run([*others[:2], command, *others[2:]])
        assert command.status == want, kind
        assert all(c.status == OK for c in others)
        env.media.read_error.clear()
        env.host.read_error.clear()


@cocotb.test()
async def deallocates(dut):
    """Lists of 1 to 256 ranges at any dword of a page, into the next one; ranges of no block,
    overlapping, large."""
    env = await start(dut)
    for timing in (None, random_timing):
        if timing:
            timing(env)
        commands, at = [], 0
        for count, offset in ((1, 0), (1, 4084), (2, 4), (4, 60), (5, 4092), (17, 2048), (256, 0), (256, 1236)):
            ranges = []
            for _ in range(count):
                n = env.rng.choice((0, 1, 1, 2, 8, 11))
                ranges.append((at, n))
                at += n + env.rng.randrange(3)
            env.rng.shuffle(ranges)
            commands.append(env.deallocate(ranges, offset))
        commands.append(
            env.deallocate([(at, 3000), (at + 5, 8), (BLOCKS - 1, 1), (BLOCKS, 0)], 4 * env.rng.randrange(1024))
        )
        assert at + 3000 < BLOCKS
        await env.copy(commands)
    for lba in range(BLOCKS):
        env.media.write(512 * lba, env.rng.randbytes(8))


@cocotb.test()
async def deallocate_errors(dut):
    """A range beyond the end, a list that cannot be read or has a wrong address: nothing changes,
    and the next one works."""
    env = await start(dut)
    good = [(8 * i, 1 + i % 5) for i in range(40)]
    for bad in ((BLOCKS, 1), (BLOCKS - 1, 2), (0, 0xFFFF_FFFF), (1 << 55, 1), ((1 << 64) - 1, 1), ((1 << 64) - 1, 0)):
        for place in (0, 20, 40):
            ranges = [*good[:place], bad, *good[place:]]
            command = env.deallocate(ranges, 4 * env.rng.randrange(1024))
            before = bytes(env.media.data)
            await env.run([command])
            assert command.status == OUT_OF_RANGE, bad
            assert env.media.data == before, bad
    before = bytes(env.media.data)
    commands = [env.deallocate(good, offset) for offset in (0, 4, 4000, 4000, 0)]
    commands[0].prp1 += 2
    commands[1].prp1 += 1
    commands[2].prp2 += 4
    env.host.read_error.add(commands[3].prp2)
    env.host.read_error.add(commands[4].prp1 + 64)
    await env.run(commands)
    assert [c.status for c in commands] == [BAD_PRP] * 3 + [HOST_ERROR] * 2
    assert env.media.data == before
    env.media.write_error.add(512 * 8 * 3)
    command = env.deallocate(good)
    await env.run([command])
    assert command.status == WRITE_FAULT
    env.media.write_error.clear()
    await env.copy([env.deallocate(good, 4092)])


def zero_or_as_before(env: Env, before: bytes, first: int, blocks: int) -> int:
    """Each block of a range of the media is zero or as before; all others are as before. Returns
    the number of zero blocks."""
    end = first + blocks
    assert env.media.data[: 512 * first] == before[: 512 * first]
    assert env.media.data[512 * end :] == before[512 * end :]
    gone = 0
    for at in range(512 * first, 512 * end, 512):
        block = env.media.data[at : at + 512]
        assert not any(block) or block == before[at : at + 512]
        gone += not any(block)
    return gone


@cocotb.test()
async def ops_stopped(dut):
    """A stop at any time: commands of 256 times nearly everything end at once, with the status for
    it; copies continue; no block is half, no other one changes. Then all works again."""
    env = await start(dut)
    first, blocks = 803, BLOCKS - 1003
    seen, wanted = set(), {OK, INTERRUPTED, "part", "none"}
    for round_ in range(64):
        if round_ >= 16 and seen >= wanted:
            break
        if round_ > 4:
            random_timing(env)
        moment = (0, 7, 60, 400, 1500, 6000)[round_ % 6] + env.rng.randrange(60)
        last = env.rng.random() < 0.3
        commands = [
            env.deallocate(([(first, 1)] * 255 if last else [(first, blocks)] * 255) + [(first, blocks)], offset)
            for offset in (0, 4 * env.rng.randrange(1024), 4092)
        ]
        commands += [env.zero(512 * first, 512 * blocks), env.verify(512 * first, 512 * blocks)]
        short = env.deallocate([(first, 1)])
        commands.append(short)
        copies = [env.command(False, 0, PAGE), env.command(False, PAGE, PAGE)]
        everything = commands + copies
        env.rng.shuffle(everything)
        if round_ == 5:  # in good time for this one
            everything.sort(key=lambda c: c is not short)
        before = bytes(env.media.data)
        start_at = env.now
        env.on_cycle = lambda at=start_at + moment: setattr(dut.stop_i, "value", int(env.now >= at))
        # One deallocation alone writes 200 MiB, 128 bytes a cycle; this is far below that.
        await env.run(everything, bound=moment + 20_000)
        env.on_cycle = lambda: None
        dut.stop_i.value = 0
        assert all(c.status == OK for c in copies)
        assert all(c.status in (OK, INTERRUPTED) for c in commands)
        if not last:
            assert all(c.status == INTERRUPTED for c in commands[:3])
        assert round_ != 5 or short.status == OK
        zeroed = zero_or_as_before(env, before, first, blocks)
        seen |= {c.status for c in commands} | {"part" if 0 < zeroed < blocks else "none" if zeroed == 0 else "all"}
        for at in range(first, first + blocks):
            env.media.write(512 * at, env.rng.randbytes(16) + before[512 * at + 16 : 512 * at + 512])
        await env.copy([env.deallocate([(at, 1) for at in range(0, 60, 2)])])
        for at in range(0, 60, 2):
            env.media.write(512 * at, env.rng.randbytes(512))
    assert seen >= wanted, seen


class Aborter:
    """Aborts commands in flight, one after the other, in random order and with random gaps."""

    def __init__(self, env: Env, commands: list, deleted: bool) -> None:
        self.env, self.commands, self.deleted = env, commands, deleted
        self.asked: list[tuple] = []  # command, whether it was found, and when that was reported
        self.once = False
        self.target = None
        self.pause = 100

    def cycle(self) -> None:
        dut, rng = self.env.dut, self.env.rng
        if self.target is not None:
            if int(dut.abort_ready_o.value):
                self.asked.append((self.target, int(dut.abort_found_o.value), self.env.now))
                self.target = None
                dut.abort_valid_i.value = 0
                self.pause = rng.choice((0, 3, 40, 900))
            return
        if self.once and self.asked:
            return
        self.pause -= 1
        in_flight = [c for c in self.commands if c.slot >= 0 and not c.ended]
        if self.pause < 0 and in_flight:
            self.target = rng.choice(in_flight)
            dut.abort_valid_i.value = 1
            dut.abort_slot_i.value = self.target.slot
            dut.abort_current_i.value = int(self.once or rng.random() < 0.9)
            dut.abort_deleted_i.value = int(self.deleted)


@cocotb.test()
async def ops_aborted(dut):
    """Commands of 256 times nearly everything and short ones, in flight or waiting, are aborted in
    any order. Those that were found end soon, as aborted or done, the others as usual."""
    env = await start(dut)
    first, blocks = 803, BLOCKS - 1003
    seen, wanted = set(), {OK, ABORTED, DELETED}
    for round_ in range(40):
        if round_ >= 10 and seen == wanted:
            break
        if round_ > 2:
            random_timing(env)
        deleted = bool(round_ % 2)
        long = [env.deallocate([(first, blocks)] * 256, 4 * env.rng.randrange(1024)) for _ in range(5)]
        short = [env.deallocate([(first + 8 * i, 1 + i % 9)] * (1 + i), 0) for i in range(8)]
        short += [env.zero(512 * first, 512 * 300), env.verify(512 * first, 512 * 300)]
        copies = [env.command(False, PAGE * i, PAGE) for i in range(4)]
        everything = long + short + copies
        env.rng.shuffle(everything)
        for command in everything:
            command.slot, command.ended = -1, 0
        aborter = Aborter(env, everything, deleted)
        before = bytes(env.media.data)
        env.on_cycle = aborter.cycle
        # One long one alone writes 200 MiB, 128 bytes a cycle.
        await env.run(everything, bound=400_000)
        env.on_cycle = lambda: None
        while aborter.target is not None:  # a pending query gets its answer
            await RisingEdge(dut.clk_i)
            aborter.cycle()
        dut.abort_valid_i.value = 0
        dut.abort_current_i.value = 0
        found = {id(c) for c, hit, _ in aborter.asked if hit}
        want = DELETED if deleted else ABORTED
        for command in everything:
            assert command.status in ((OK, want) if id(command) in found else (OK,)), command
        assert all(c.status == want for c in long)
        assert all(c.status == OK for c in copies)
        zero_or_as_before(env, before, first, blocks)
        seen |= {c.status for c in short}
        for at in range(first, first + blocks):
            env.media.write(512 * at, before[512 * at : 512 * at + 512])
    assert seen == wanted, seen
    await env.copy([env.deallocate([(at, 1) for at in range(0, 60, 2)])])


@cocotb.test()
async def ops_aborted_at_every_moment(dut):
    """A command that was found ends soon, however little of it is left: one range, the last of a
    list, one that waits for others."""
    env = await start(dut)
    first, blocks = 803, BLOCKS - 1003
    short = [(first + i, 1) for i in range(6)]
    one = [(first, blocks)]

    def cases():
        yield [env.deallocate(one)]
        yield [env.deallocate(short + one)]
        yield [env.deallocate(short), env.deallocate(one)]
        yield [env.zero(0, PAGE), env.zero(512 * first, 512 * blocks)]
        yield [env.verify(0, 16 * PAGE), env.verify(512 * first, 512 * blocks)]

    late = []
    for delay in range(0, 70, 1 if LONG else 3):
        for number, commands in enumerate(cases()):
            target = commands[-1]
            for command in commands:
                command.slot, command.ended = -1, 0
            aborter = Aborter(env, [target], False)
            aborter.pause = delay
            aborter.once = True
            env.on_cycle = aborter.cycle
            await env.run(commands, bound=100_000)
            env.on_cycle = lambda: None
            while aborter.target is not None:
                await RisingEdge(dut.clk_i)
                aborter.cycle()
            found = [at for _, hit, at in aborter.asked if hit]
            if found and target.ended - found[0] > 2000:  # a fill in flight
                late.append((number, delay, target.ended - found[0]))
            assert target.status in ((OK, ABORTED) if found else (OK,))
    dut.abort_current_i.value = 0
    assert not late, late


@cocotb.test()
async def ops_all_at_once(dut):
    """All commands with random timings, many in flight: data right, no deadlock."""
    for seed in range(4 if LONG else 2):
        env = Env(dut, cocotb.RANDOM_SEED + seed)
        await env.reset()
        random_timing(env)
        media = Media(env)
        commands = []
        for _ in range(120):
            kind = env.rng.randrange(6)
            offset = env.rng.choice((0, 0, 512, 4 * env.rng.randrange(1024)))
            size = 512 * env.rng.choice((1, 1, 8, env.rng.randrange(1, 40)))
            at = media.take(size, 512)
            if kind < 2:
                commands.append(env.command(kind == 1, at, size, offset))
            elif kind == 2:
                commands.append(env.compare(at, size, offset))
            elif kind == 3:
                commands.append(env.zero(at, size))
            elif kind == 4:
                commands.append(env.verify(at, size))
            else:
                commands.append(env.deallocate([(at // 512, size // 512)], offset))
        await env.copy(commands)


@cocotb.test()
async def compares_and_reads(dut):
    """Comparisons and reads over all channels while the host accepts no write for a while: all end
    eventually."""
    env = await start(dut)
    media = Media(env)
    commands = []
    for _ in range(60):
        size = 16384
        commands.append(env.command(False, media.take(size, 512), size))
        commands.append(env.compare(media.take(size, 512), size, 4 * env.rng.randrange(64)))

    def on_cycle():
        if env.now > 3000:
            env.host_side.timing.write_ready = True

    env.host_side.timing.write_ready, env.on_cycle = False, on_cycle
    await env.copy(commands)


@cocotb.test()
async def ops_throughput(dut):
    """One beat a cycle and channel: zeros by commands and by ranges, verification, comparison."""
    cases = (
        ("zeros, 1 MiB", lambda e: [e.zero(0, 1 << 20)], 0.98 * 2),
        ("zeros, 4 KiB", lambda e: [e.zero(PAGE * i, PAGE) for i in range(200)], 0.9 * 2),
        ("deallocation", lambda e: [e.deallocate([(64 * i, 64) for i in range(64)])], 0.85 * 2),
        ("verification, 1 MiB", lambda e: [e.verify(0, 1 << 20)], 0.98 * 2),
        ("comparison, 64 KiB", lambda e: [e.compare(i << 16, 1 << 16) for i in range(16)], 0.9 * 2),
    )
    for name, build, least in cases:
        env = await start(dut)
        commands = build(env)
        beats = sum(sum(n for _, n in c.zeroed) or c.size for c in commands) // BEAT
        value = beats / await env.copy(commands)
        dut._log.info("%s: %.3f beats/cycle", name, value)
        least = least if env.channels > 1 else least / 2
        assert value >= least, f"{name}: {value:.3f} beats/cycle"
