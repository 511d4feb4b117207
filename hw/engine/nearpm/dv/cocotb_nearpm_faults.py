"""The whole engine where the memory fails, or what was kept is not whole: it is told, and nobody waits for ever."""

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
async def errors(dut):
    """What the memory can't do closes the log; what was taken behind it is not done; other logs go on."""
    bench = Bench(dut)
    await bench.start()
    pool = POOLS[0]
    await bench.map(**pool)
    who, other = Program.who(pool, 0), Program.who(pool, 1)
    for what in ("read", "write"):
        for n in range(6):
            await bench.do(LOG_OPEN, **who, value=100 * n + 1)
            await bench.do(LOG_OPEN, **other, value=100 * n + 1)
            await bench.do(UNDO, **who, address=BASE + 64, size=64)
            await bench.rest()
            bad = 0x10000 if what == "read" else pool["logs"]
            for ram in bench.rams:
                ram.errors = {bad >> 12}
            before = bytes(bench.media[0x20000:0x24000])
            texts = [
                command(UNDO, **who, address=BASE + 0x10000, size=100),
                command(UNDO, **who, address=BASE + 128, size=10),
                command(COMMIT if n % 2 else COMMIT_REDO, **who),
                command(UNDO, **other, address=BASE + 256, size=10),
            ]
            numbers = [await bench.give(text) for text in texts]
            for number in numbers:
                await bench.ended(number)
            told = [bench.ends[number][0] for number in numbers]
            first = READ_ERROR if what == "read" else WRITE_ERROR
            assert told[0] == first, told
            assert told[1] in (0, UNMAPPED, first), told
            assert told[2] == UNMAPPED, told
            assert told[3] == 0, told
            number = await bench.give(command(UNDO, **who, address=BASE, size=1))
            await bench.ended(number)
            assert bench.ends[number][0] == UNMAPPED
            await bench.rest()
            for ram in bench.rams:
                ram.errors = set()
            # The log is never whole again: its descriptor says so, or the engine where that could not be written.
            marked = descriptor(100 * n + 1, 0, 0xFFFF_FFFF) if what == "read" else before[:64]
            assert bench.media[0x20000:0x20040] == marked
            bench.media[64:128] = bytes(64)
            for _ in range(2):
                number = await bench.give(command(RECOVER, **who))
                await bench.ended(number)
                assert bench.ends[number] == (TORN, 0), bench.ends[number]
                assert bench.media[64:128] == bytes(64)
                assert bench.media[0x20000:0x20040] == marked
            bench.model.data[64:128] = bytes(64)
            # The model knows nothing of errors.
            bench.model.logs.pop((0, 0))
            number = await bench.give(command(COMMIT, **other))
            await bench.ended(number)
            assert bench.ends[number][0] == 0
            await bench.do(POOL_UNMAP, **who)
            await bench.map(**pool)
            bench.model.data[:] = bench.media


@cocotb.test()
async def torn(dut):
    """A record that the host overwrote: neither abort nor recover writes anything, and the log is closed."""
    bench = Bench(dut)
    await bench.start()
    pool = POOLS[0]
    await bench.map(**pool)
    for n, op in enumerate((ABORT, RECOVER)):
        who = Program.who(pool, n)
        await bench.do(LOG_OPEN, **who, value=9)
        offsets = [(await bench.do(UNDO, **who, address=BASE + 1000 * k, size=500))[1] for k in range(3)]
        await bench.store(0x20000 + 0x4000 * n + offsets[1] + 64 + 100, b"torn")
        await bench.rest()
        before = bytes(bench.media)
        number = await bench.give(command(op, **who))
        await bench.ended(number)
        assert bench.ends[number] == (TORN, 0)
        wanted = bytearray(before)
        wanted[0x20000 + 0x4000 * n : 0x20040 + 0x4000 * n] = descriptor(9, 0, 3)
        assert bench.media == wanted
        number = await bench.give(command(COMMIT, **who))
        await bench.ended(number)
        assert bench.ends[number] == (UNMAPPED, 0)
        # Whoever asks again is told the same.
        for _ in range(2):
            number = await bench.give(command(RECOVER, **who))
            await bench.ended(number)
            assert bench.ends[number] == (TORN, 0)
            assert bench.media == wanted


@cocotb.test()
async def switches(dut):
    """No page takes another one's place when a copy of its thread has failed, until the log is opened again."""
    bench = Bench(dut)
    await bench.start()
    pool = POOLS[0]
    await bench.map(**pool)
    who, other = Program.who(pool, 0), Program.who(pool, 1)
    for n in range(8):
        bad = (0x10000, 0x14000)[n % 2]  # what is copied from, or to
        for ram in bench.rams:
            ram.errors = {bad >> 12}
        at = bytes(bench.media[0x100:0x108])
        numbers = []
        for text in (
            command(COPY, **who, address=BASE + 0x10000, size=300, target=BASE + 0x14000),
            command(SWITCH, **who, target=BASE + 0x100, value=n + 1),
            command(SWITCH, **other, target=BASE + 0x200, value=n + 1),
        ):
            numbers.append(await bench.give(text))
            if n // 2 % 2:
                # Taken when the copy has ended.
                await bench.ended(numbers[-1])
        for number in numbers:
            await bench.ended(number)
        told = [bench.ends[number][0] for number in numbers]
        # A switch waits for the copies of its thread, though it touches nothing of them; other threads' do not.
        assert told == [WRITE_ERROR if n % 2 else READ_ERROR, UNMAPPED, 0], told
        assert bytes(bench.media[0x100:0x108]) == at
        for ram in bench.rams:
            ram.errors = set()
        number = await bench.give(command(SWITCH, **who, target=BASE + 0x100, value=99))
        await bench.ended(number)
        assert bench.ends[number] == (UNMAPPED, 0)
        number = await bench.give(command(LOG_OPEN, **who, value=n + 1))
        await bench.ended(number)
        assert bench.ends[number] == (0, 0)
        number = await bench.give(command(SWITCH, **who, target=BASE + 0x100, value=77))
        await bench.ended(number)
        assert bench.ends[number] == (0, 0)


@cocotb.test()
async def opened(dut):
    """A log that is opened is open: not if an older command has closed it in between."""
    bench = Bench(dut, latency=40)
    await bench.start()
    pool = POOLS[0]
    await bench.map(**pool)
    who = Program.who(pool, 0)
    both = set()
    for n in range(240):
        if n >= 24 and len(both) == 2:
            break
        number = await bench.give(command(LOG_OPEN, **who, value=10 * n + 1))
        await bench.ended(number)
        assert bench.ends[number][0] in (0, BUSY)
        for ram in bench.rams:
            ram.errors = {0x10000 >> 12, 0x14000 >> 12}
        # Two that fail, the second one later.
        first = await bench.give(command(UNDO, **who, address=BASE + 0x10000, size=1))
        second = await bench.give(command(UNDO, **who, address=BASE + 0x13800, size=0x800 + 64))
        await bench.ended(first)
        await ClockCycles(dut.clk_i, bench.random.randrange(1, 60))
        opens = await bench.give(command(LOG_OPEN, **who, value=10 * n + 2))
        await bench.ended(opens)
        await bench.ended(second)
        for ram in bench.rams:
            ram.errors = set()
        number = await bench.give(command(UNDO, **who, address=BASE, size=1))
        await bench.ended(number)
        told = bench.ends[opens][0]
        both.add(told)
        assert told in (0, UNMAPPED)
        assert bench.ends[number][0] == told
    assert both == {0, UNMAPPED}, both


@cocotb.test()
async def opened_beside(dut):
    """A log is opened beside a copy, or switch, of its thread that fails: it is not closed once it has been opened."""
    bench = Bench(dut)
    await bench.start()
    pool = POOLS[0]
    who, other = Program.who(pool, 0), Program.who(pool, 1)
    copy = command(COPY, **who, address=BASE + 0x10F80, size=0x100, target=BASE + 0x14000)
    # It waits for a copy of another thread.
    behind = command(COPY, **other, address=BASE + 0x11000, size=0x200, target=BASE + 0x14000)
    switch = command(SWITCH, **who, target=BASE + 0x14000, value=5)
    for n in range(40):
        await bench.map(**pool)
        for ram in bench.rams:
            ram.errors = {(0x14000 if n % 2 else 0x11000) >> 12}
        numbers = [await bench.give(text) for text in ((behind, switch) if n % 2 else (copy,))]
        await ClockCycles(dut.clk_i, bench.random.randrange(1, 90))
        opens = await bench.give(command(LOG_OPEN, **who, value=n + 2))
        for number in (*numbers, opens):
            await bench.ended(number)
        for ram in bench.rams:
            ram.errors = set()
        number = await bench.give(command(UNDO, **who, address=BASE, size=1))
        await bench.ended(number)
        assert bench.ends[numbers[-1]][0] in (READ_ERROR, WRITE_ERROR)
        assert bench.ends[opens][0] == bench.ends[number][0], (n, bench.ends[opens], bench.ends[number])
        bench.model.data[:] = bench.media
        await bench.do(POOL_UNMAP, **who)


async def stopped(dut):
    """A device whose power has failed in the middle of a program, and what it has saved."""
    bench = Bench(dut, latency=40)
    await bench.start()
    program = Program(bench)
    await program.start()
    for _ in range(40):
        await program.step()
    await bench.answers()
    await bench.stop()
    saved = bytes(bench.media[RESERVED:])
    assert saved[:8] == b"NPMSAVE\x01"
    return bench, saved


@cocotb.test()
async def early_stop(dut):
    """A stop before the restore is complete leaves the range as it is."""
    bench, saved = await stopped(dut)
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
    await bench.until(dut.open_o)
    await bench.rest()
    bench.check()


async def is_shut(bench):
    """What was kept is not back: nothing of the media is to be had, nobody waits, and nothing changes."""
    dut = bench.dut
    before = bytes(bench.media)
    await bench.until(dut.open_o)
    assert await bench.register(0x11C) & 0x1F == 8
    assert not int(dut.busy_o.value)
    number = await bench.give(command(POOL_MAP, 0, 0, 7, BASE, 0x10000, 0, 0x8000, 0x1000, 1))
    await bench.ended(number)
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
            told = {}
            for _ in range(60):
                await RisingEdge(dut.clk_i)
                for way in ("aw", "ar", *(["w"] if port == "nvme" else [])):
                    if int(s(f"{way}valid").value) and int(s(f"{way}ready").value):
                        s(f"{way}valid").value = 0
                for way in ("b", "r"):
                    if int(s(f"{way}valid").value):
                        told[way] = int(s(f"{way}resp").value)
            assert told == {"b": 2, "r": 2}, (port, c, told)
    bench.alive = alive
    assert bench.media == before
    assert not int(dut.busy_o.value)


@cocotb.test()
async def not_whole(dut):
    """A header or line that has changed, or one of another device: nothing is restored, nor forgotten by itself."""
    bench, saved = await stopped(dut)
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
        await is_shut(bench)
        await bench.stop()
    # A range that can't be written at once: a mark that fails.
    bench.media[RESERVED:] = saved
    await bench.reset()
    for ram in bench.rams:
        ram.writes_fail = True
    await bench.until(dut.open_o)
    assert await bench.register(0x11C) & 0x3F == 0x28
    assert bench.media[RESERVED:] == saved
    await bench.stop()
    for ram in bench.rams:
        ram.writes_fail = False
    # The host says that it may be forgotten: the next life has nothing of it.
    bench.media[RESERVED + 64 * 7] ^= 1
    await bench.reset()
    await bench.until(dut.open_o)
    await bench.write_register(0x120, 1)
    await ClockCycles(dut.clk_i, 200)
    assert await bench.register(0x11C) == 8
    await bench.stop()
    assert bench.media[RESERVED : RESERVED + 64] == bytes(64)
    await bench.reset()
    await bench.until(dut.open_o)
    assert await bench.register(0x11C) == 2


@cocotb.test()
async def not_saved(dut):
    """A life whose end was not written down, wholly or in part: the next one is told, until somebody has seen it."""
    bench, saved = await stopped(dut)
    for kind in range(3):
        bench.media[RESERVED:] = saved
        if kind == 0:
            # None of it was.
            bench.media[RESERVED:] = LIVE + bytes(len(saved) - 64)
            await bench.reset()
        else:
            # Writes to the range fail: to all of it, or to some page but the first.
            await bench.reset()
            await bench.until(dut.open_o)
            await bench.rest()
            assert await bench.register(0x11C) == 3
            for ram in bench.rams:
                ram.writes_fail = kind == 1
                ram.errors = {(RESERVED >> 12) + 2}
            # What another life has left there.
            bench.media[RESERVED + 0x2000 : RESERVED + 0x3000] = bytes([1]) * 0x1000
            await bench.stop()
            for ram in bench.rams:
                ram.writes_fail, ram.errors = False, set()
            await bench.reset()
        if kind == 2:
            await is_shut(bench)
            await bench.stop()
            continue
        await bench.until(dut.open_o)
        for _ in range(3):
            # It is told over lives that are saved, too.
            assert await bench.register(0x11C) & 0x3E == 0x12
            await bench.stop()
            await bench.reset()
            await bench.until(dut.open_o)
        await bench.write_register(0x120, 1)
        await bench.rest()
        assert await bench.register(0x11C) & 0x3E == 2
        assert bench.media[RESERVED : RESERVED + 64] == bytes(64)
        await bench.stop()


@cocotb.test()
async def marks(dut):
    """The header says that there is something while a pool is mapped; what can't be written is told."""
    bench = Bench(dut)
    await bench.start()
    pool = POOLS[0]
    assert bench.media[RESERVED : RESERVED + 64] == bytes(64)
    for fails in (False, True, False):
        for ram in bench.rams:
            ram.writes_fail = fails
        await bench.map(**pool)
        await ClockCycles(dut.clk_i, 300)
        assert await bench.register(0x11C) == (0x22 if fails else 2)
        assert bench.media[RESERVED : RESERVED + 64] == (bytes(64) if fails else LIVE)
        for ram in bench.rams:
            ram.writes_fail = False
        await bench.do(POOL_UNMAP, **Program.who(pool, 0))
        await ClockCycles(dut.clk_i, 300)
        assert await bench.register(0x11C) == 2
        assert bench.media[RESERVED : RESERVED + 64] == bytes(64)


def fail_second_reads(ram, page):
    """Reads of a page of the media fail when they come a second time."""
    seen, take = set(), ram._take_read

    def take_read(addr, beats, ident):
        ram.errors = {page} if addr in seen else set()
        seen.add(addr)
        take(addr, beats, ident)

    ram._take_read = take_read
    return lambda: setattr(ram, "_take_read", take)


@cocotb.test()
async def second_reading(dut):
    """Errors of the memory in restoring what was checked: it stays closed, and the next reset restores all of it."""
    bench, saved = await stopped(dut)
    for page in range(3):
        mends = [fail_second_reads(ram, (RESERVED >> 12) + page) for ram in bench.rams]
        await bench.reset()
        await is_shut(bench)
        await bench.stop()
        assert bench.media[RESERVED:] == saved, page
        for ram, mend in zip(bench.rams, mends, strict=True):
            mend()
            ram.errors = set()
    await bench.reset()
    await bench.until(dut.open_o)
    await bench.rest()
    bench.check()


@cocotb.test()
async def first_reading(dut):
    """Errors of the memory in reading what was kept: the range stays as it is, the next reset restores all of it."""
    bench, saved = await stopped(dut)
    for page in range(3):
        for ram in bench.rams:
            ram.errors = {(RESERVED >> 12) + page}
        await bench.reset()
        await is_shut(bench)
        await bench.stop()
        assert bench.media[RESERVED:] == saved, page
        for ram in bench.rams:
            ram.errors = set()
    await bench.reset()
    await bench.until(dut.open_o)
    await bench.rest()
    bench.check()
