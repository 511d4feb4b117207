# SPDX-License-Identifier: Apache-2.0
"""The whole engine with memory errors and damaged saved states: all is reported, and nothing hangs."""

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb_nearpm import BASE, LIVE, POOLS, Program
from nearpm_bench import RESERVED, Bench
from nearpm_model import (
    ABORT,
    BUSY,
    COMMIT,
    COMMIT_REDO,
    COPY,
    LOG_OPEN,
    POOL_MAP,
    POOL_UNMAP,
    READ_ERROR,
    RECOVER,
    SWITCH,
    TORN,
    UNDO,
    UNMAPPED,
    WRITE_ERROR,
    command,
    descriptor,
)


@cocotb.test()
async def error_closes_log(dut):
    """A memory error closes the log and cancels its later commands; other logs continue."""
    bench = Bench(dut)
    await bench.start()
    pool = POOLS[0]
    await bench.map_pool(**pool)
    ids, other = Program.ids(pool, 0), Program.ids(pool, 1)
    for what in ("read", "write"):
        for n in range(6):
            await bench.run_command(LOG_OPEN, **ids, value=100 * n + 1)
            await bench.run_command(LOG_OPEN, **other, value=100 * n + 1)
            await bench.run_command(UNDO, **ids, address=BASE + 64, size=64)
            await bench.wait_idle()
            bad = 0x10000 if what == "read" else pool["logs"]
            for ram in bench.rams:
                ram.errors = {bad >> 12}
            before = bytes(bench.media[0x20000:0x24000])
            texts = [
                command(UNDO, **ids, address=BASE + 0x10000, size=100),
                command(UNDO, **ids, address=BASE + 128, size=10),
                command(COMMIT if n % 2 else COMMIT_REDO, **ids),
                command(UNDO, **other, address=BASE + 256, size=10),
            ]
            numbers = [await bench.submit(text) for text in texts]
            for number in numbers:
                await bench.wait_ended(number)
            reported = [bench.ends[number][0] for number in numbers]
            first = READ_ERROR if what == "read" else WRITE_ERROR
            assert reported[0] == first, reported
            assert reported[1] in (0, UNMAPPED, first), reported
            assert reported[2] == UNMAPPED, reported
            assert reported[3] == 0, reported
            number = await bench.submit(command(UNDO, **ids, address=BASE, size=1))
            await bench.wait_ended(number)
            assert bench.ends[number][0] == UNMAPPED
            await bench.wait_idle()
            for ram in bench.rams:
                ram.errors = set()
            # The log stays torn: the descriptor says so, or else the engine remembers it.
            marked = descriptor(100 * n + 1, 0, 0xFFFF_FFFF) if what == "read" else before[:64]
            assert bench.media[0x20000:0x20040] == marked
            bench.media[64:128] = bytes(64)
            for _ in range(2):
                number = await bench.submit(command(RECOVER, **ids))
                await bench.wait_ended(number)
                assert bench.ends[number] == (TORN, 0), bench.ends[number]
                assert bench.media[64:128] == bytes(64)
                assert bench.media[0x20000:0x20040] == marked
            number = await bench.submit(command(COMMIT, **other))
            await bench.wait_ended(number)
            assert bench.ends[number][0] == 0
            await bench.run_command(POOL_UNMAP, **ids)
            await bench.map_pool(**pool)
            bench.model.data[:] = bench.media


@cocotb.test()
async def torn_record_closes_log(dut):
    """A record overwritten by the host: abort and recover write nothing, and the log is closed."""
    bench = Bench(dut)
    await bench.start()
    pool = POOLS[0]
    await bench.map_pool(**pool)
    for n, op in enumerate((ABORT, RECOVER)):
        ids = Program.ids(pool, n)
        await bench.run_command(LOG_OPEN, **ids, value=9)
        offsets = [(await bench.run_command(UNDO, **ids, address=BASE + 1000 * k, size=500))[1] for k in range(3)]
        await bench.store(0x20000 + 0x4000 * n + offsets[1] + 64 + 100, b"torn")
        await bench.wait_idle()
        wanted = bytearray(bench.media)
        wanted[0x20000 + 0x4000 * n : 0x20040 + 0x4000 * n] = descriptor(9, 0, 3)
        # Repeated attempts report the same.
        for attempt, result in ((op, TORN), (COMMIT, UNMAPPED), (RECOVER, TORN), (RECOVER, TORN)):
            assert await bench.run_command(attempt, **ids) == (result, 0)
            assert bench.media == wanted
        bench.check_media()


@cocotb.test()
async def switch_refused_after_failed_copy(dut):
    """After a failed copy, switches of the thread are refused until the log is opened again."""
    bench = Bench(dut)
    await bench.start()
    pool = POOLS[0]
    await bench.map_pool(**pool)
    ids, other = Program.ids(pool, 0), Program.ids(pool, 1)
    for n in range(8):
        bad = (0x10000, 0x14000)[n % 2]  # source or target of the copy
        for ram in bench.rams:
            ram.errors = {bad >> 12}
        at = bytes(bench.media[0x100:0x108])
        numbers = []
        for text in (
            command(COPY, **ids, address=BASE + 0x10000, size=300, target=BASE + 0x14000),
            command(SWITCH, **ids, target=BASE + 0x100, value=n + 1),
            command(SWITCH, **other, target=BASE + 0x200, value=n + 1),
        ):
            numbers.append(await bench.submit(text))
            if n // 2 % 2:
                # Accepted after the end of the copy.
                await bench.wait_ended(numbers[-1])
        for number in numbers:
            await bench.wait_ended(number)
        reported = [bench.ends[number][0] for number in numbers]
        # A switch waits for the copies of its thread, even without overlap; other threads do not.
        assert reported == [WRITE_ERROR if n % 2 else READ_ERROR, UNMAPPED, 0], reported
        assert bytes(bench.media[0x100:0x108]) == at
        for ram in bench.rams:
            ram.errors = set()
        number = await bench.submit(command(SWITCH, **ids, target=BASE + 0x100, value=99))
        await bench.wait_ended(number)
        assert bench.ends[number] == (UNMAPPED, 0)
        number = await bench.submit(command(LOG_OPEN, **ids, value=n + 1))
        await bench.wait_ended(number)
        assert bench.ends[number] == (0, 0)
        number = await bench.submit(command(SWITCH, **ids, target=BASE + 0x100, value=77))
        await bench.wait_ended(number)
        assert bench.ends[number] == (0, 0)


@cocotb.test()
async def log_open_status_matches_log(dut):
    """log_open succeeds only if no older command closes the log afterwards."""
    bench = Bench(dut, latency=40)
    await bench.start()
    pool = POOLS[0]
    await bench.map_pool(**pool)
    ids = Program.ids(pool, 0)
    # With one unit, the log's next command starts after the second one has ended.
    expected = {0, UNMAPPED} if int(dut.Units.value) > 1 else {0}
    reported = set()
    for n in range(240):
        if n >= 24 and reported == expected:
            break
        number = await bench.submit(command(LOG_OPEN, **ids, value=10 * n + 1))
        await bench.wait_ended(number)
        assert bench.ends[number][0] in (0, BUSY)
        for ram in bench.rams:
            ram.errors = {0x10000 >> 12, 0x14000 >> 12}
        # Two failing commands, the second one later.
        first = await bench.submit(command(UNDO, **ids, address=BASE + 0x10000, size=1))
        second = await bench.submit(command(UNDO, **ids, address=BASE + 0x13800, size=0x800 + 64))
        await bench.wait_ended(first)
        await ClockCycles(dut.clk_i, bench.random.randrange(1, 60))
        opens = await bench.submit(command(LOG_OPEN, **ids, value=10 * n + 2))
        await bench.wait_ended(opens)
        await bench.wait_ended(second)
        for ram in bench.rams:
            ram.errors = set()
        number = await bench.submit(command(UNDO, **ids, address=BASE, size=1))
        await bench.wait_ended(number)
        reported.add(bench.ends[opens][0])
        assert reported <= expected
        assert bench.ends[number][0] == bench.ends[opens][0]
    assert reported == expected


@cocotb.test()
async def log_open_beside_failing_copy(dut):
    """A failing copy or switch of the thread does not close a log opened after it."""
    bench = Bench(dut)
    await bench.start()
    pool = POOLS[0]
    ids, other = Program.ids(pool, 0), Program.ids(pool, 1)
    copy = command(COPY, **ids, address=BASE + 0x10F80, size=0x100, target=BASE + 0x14000)
    # The switch waits for a copy of another thread.
    blocker = command(COPY, **other, address=BASE + 0x11000, size=0x200, target=BASE + 0x14000)
    switch = command(SWITCH, **ids, target=BASE + 0x14000, value=5)
    for n in range(40):
        await bench.map_pool(**pool)
        for ram in bench.rams:
            ram.errors = {(0x14000 if n % 2 else 0x11000) >> 12}
        numbers = [await bench.submit(text) for text in ((blocker, switch) if n % 2 else (copy,))]
        await ClockCycles(dut.clk_i, bench.random.randrange(1, 90))
        opens = await bench.submit(command(LOG_OPEN, **ids, value=n + 2))
        for number in (*numbers, opens):
            await bench.wait_ended(number)
        for ram in bench.rams:
            ram.errors = set()
        number = await bench.submit(command(UNDO, **ids, address=BASE, size=1))
        await bench.wait_ended(number)
        assert bench.ends[numbers[-1]][0] in (READ_ERROR, WRITE_ERROR)
        assert bench.ends[opens][0] == bench.ends[number][0], (n, bench.ends[opens], bench.ends[number])
        bench.model.data[:] = bench.media
        await bench.run_command(POOL_UNMAP, **ids)


async def bench_after_power_cut(dut):
    """A device after a power cut during a program, and its saved state."""
    bench = Bench(dut, latency=40)
    await bench.start()
    program = Program(bench)
    await program.start()
    for _ in range(40):
        await program.submit_random()
    await bench.wait_stores_answered()
    await bench.stop()
    saved = bytes(bench.media[RESERVED:])
    assert saved[:8] == b"NPMSAVE\x01"
    return bench, saved


@cocotb.test()
async def stop_during_restore_keeps_range(dut):
    """A stop before the end of the restore leaves the range unchanged."""
    bench, saved = await bench_after_power_cut(dut)
    same = 0
    for n in range(20):
        await bench.reset()
        await ClockCycles(dut.clk_i, 1 + 60 * n)
        if int(dut.open_o.value) or bench.media[RESERVED:] != saved:
            break
        await bench.stop()
        if bench.media[RESERVED:] == saved:
            same += 1
    assert same >= 10
    await bench.reset()
    await bench.wait_for(dut.open_o)
    await bench.wait_idle()
    bench.check_media()


async def check_isolated(bench):
    """The restore has failed: accesses and commands end with errors, and nothing changes."""
    dut = bench.dut
    before = bytes(bench.media)
    await bench.wait_for(dut.open_o)
    assert await bench.register(0x11C) & 0x1F == 8
    assert not int(dut.busy_o.value)
    number = await bench.submit(command(POOL_MAP, 0, 0, 7, BASE, 0x10000, 0, 0x8000, 0x1000, 1))
    await bench.wait_ended(number)
    assert bench.ends[number] == (READ_ERROR, 0)
    alive, bench.alive = bench.alive, False
    for c in range(2):
        for port in ("pm", "nvme"):
            s = lambda name: getattr(dut, f"s_{port}{c}_{name}")  # noqa: E731, B023
            for way in ("aw", "ar"):
                s(f"{way}addr").value, s(f"{way}len").value, s(f"{way}size").value = 0x40, 0, 6
                s(f"{way}burst").value, s(f"{way}id").value, s(f"{way}valid").value = 1, 0, 1
            if port == "pm":
                bench.data[c].append((5, (1 << 64) - 1, True))
            else:
                s("wlast").value, s("wstrb").value, s("wdata").value, s("wvalid").value = 1, (1 << 64) - 1, 5, 1
            s("bready").value = s("rready").value = 1
            reported = {}
            for _ in range(60):
                await RisingEdge(dut.clk_i)
                for way in ("aw", "ar", *(["w"] if port == "nvme" else [])):
                    if int(s(f"{way}valid").value) and int(s(f"{way}ready").value):
                        s(f"{way}valid").value = 0
                for way in ("b", "r"):
                    if int(s(f"{way}valid").value):
                        reported[way] = int(s(f"{way}resp").value)
            assert reported == {"b": 2, "r": 2}, (port, c, reported)
    bench.alive = alive
    assert bench.media == before
    assert not int(dut.busy_o.value)


@cocotb.test()
async def restore_fails_on_damaged_range(dut):
    """A damaged header or line, or one of another device: nothing is restored or discarded."""
    bench, saved = await bench_after_power_cut(dut)
    lines = int.from_bytes(saved[8:12], "little")
    for n in range(8):
        bench.media[RESERVED:] = saved
        changed = bytearray(saved[:64])
        if n < 3:
            bench.media[RESERVED + 64 * bench.random.randrange(1, lines + 1) + bench.random.randrange(64)] ^= 1
        elif n == 3:
            changed[8:12] = (lines + 96).to_bytes(4, "little")
        elif n == 4:
            changed = bytearray(LIVE)
            changed[bench.random.randrange(64)] ^= 4
        else:
            changed[bench.random.randrange(64)] ^= 1 << (1 + bench.random.randrange(7))
        if n >= 3:
            bench.media[RESERVED : RESERVED + 64] = changed
        await bench.reset()
        await check_isolated(bench)
        await bench.stop()
    # The mark cannot be written.
    bench.media[RESERVED:] = saved
    await bench.reset()
    for ram in bench.rams:
        ram.writes_fail = True
    await bench.wait_for(dut.open_o)
    assert await bench.register(0x11C) & 0x3F == 0x28
    assert bench.media[RESERVED:] == saved
    await bench.stop()
    for ram in bench.rams:
        ram.writes_fail = False
    # The host discards the state: after the next reset nothing of it is left.
    bench.media[RESERVED + 64 * 7] ^= 1
    await bench.reset()
    await bench.wait_for(dut.open_o)
    await bench.write_register(0x120, 1)
    await ClockCycles(dut.clk_i, 200)
    assert await bench.register(0x11C) == 8
    await bench.stop()
    assert bench.media[RESERVED : RESERVED + 64] == bytes(64)
    await bench.reset()
    await bench.wait_for(dut.open_o)
    assert await bench.register(0x11C) == 2


@cocotb.test()
async def loss_reported_until_acknowledged(dut):
    """A state that was not saved, or only in part, is reported until the host acknowledges it."""
    bench, saved = await bench_after_power_cut(dut)
    for kind in range(3):
        bench.media[RESERVED:] = saved
        if kind == 0:
            # Nothing was saved.
            bench.media[RESERVED:] = LIVE + bytes(len(saved) - 64)
            await bench.reset()
        else:
            # Writes to the range fail: to all of it, or to one page but the first.
            await bench.reset()
            await bench.wait_for(dut.open_o)
            await bench.wait_idle()
            assert await bench.register(0x11C) == 3
            for ram in bench.rams:
                ram.writes_fail = kind == 1
                ram.errors = {(RESERVED >> 12) + 2}
            # Stale content of the range.
            bench.media[RESERVED + 0x2000 : RESERVED + 0x3000] = bytes([1]) * 0x1000
            await bench.stop()
            for ram in bench.rams:
                ram.writes_fail, ram.errors = False, set()
            await bench.reset()
        if kind == 2:
            await check_isolated(bench)
            await bench.stop()
            continue
        await bench.wait_for(dut.open_o)
        for _ in range(3):
            # The loss is also reported after resets with a successful save.
            assert await bench.register(0x11C) & 0x3E == 0x12
            await bench.stop()
            await bench.reset()
            await bench.wait_for(dut.open_o)
        await bench.write_register(0x120, 1)
        await bench.wait_idle()
        assert await bench.register(0x11C) & 0x3E == 2
        assert bench.media[RESERVED : RESERVED + 64] == bytes(64)
        await bench.stop()


@cocotb.test()
async def mark_follows_mapped_pools(dut):
    """The header marks live state while a pool is mapped; a failed write is reported."""
    bench = Bench(dut)
    await bench.start()
    pool = POOLS[0]
    assert bench.media[RESERVED : RESERVED + 64] == bytes(64)
    for fails in (False, True, False):
        for ram in bench.rams:
            ram.writes_fail = fails
        await bench.map_pool(**pool)
        await ClockCycles(dut.clk_i, 300)
        assert await bench.register(0x11C) == (0x22 if fails else 2)
        assert bench.media[RESERVED : RESERVED + 64] == (bytes(64) if fails else LIVE)
        for ram in bench.rams:
            ram.writes_fail = False
        await bench.run_command(POOL_UNMAP, **Program.ids(pool, 0))
        await ClockCycles(dut.clk_i, 300)
        assert await bench.register(0x11C) == 2
        assert bench.media[RESERVED : RESERVED + 64] == bytes(64)


def fail_second_reads(ram, page):
    """Makes the second read of each address in a media page fail."""
    seen, take = set(), ram._take_read

    def take_read(addr, beats, ident):
        ram.errors = {page} if addr in seen else set()
        seen.add(addr)
        take(addr, beats, ident)

    ram._take_read = take_read
    return lambda: setattr(ram, "_take_read", take)


@cocotb.test()
async def restore_fails_on_second_read(dut):
    """Errors in the second pass: the window stays isolated; the next reset restores everything."""
    bench, saved = await bench_after_power_cut(dut)
    for page in range(3):
        undo_faults = [fail_second_reads(ram, (RESERVED >> 12) + page) for ram in bench.rams]
        await bench.reset()
        await check_isolated(bench)
        await bench.stop()
        assert bench.media[RESERVED:] == saved, page
        for ram, undo_fault in zip(bench.rams, undo_faults, strict=True):
            undo_fault()
            ram.errors = set()
    await bench.reset()
    await bench.wait_for(dut.open_o)
    await bench.wait_idle()
    bench.check_media()


@cocotb.test()
async def restore_fails_on_first_read(dut):
    """Errors in the first pass: the range is unchanged; the next reset restores everything."""
    bench, saved = await bench_after_power_cut(dut)
    for page in range(3):
        for ram in bench.rams:
            ram.errors = {(RESERVED >> 12) + page}
        await bench.reset()
        await check_isolated(bench)
        await bench.stop()
        assert bench.media[RESERVED:] == saved, page
        for ram in bench.rams:
            ram.errors = set()
    await bench.reset()
    await bench.wait_for(dut.open_o)
    await bench.wait_idle()
    bench.check_media()
