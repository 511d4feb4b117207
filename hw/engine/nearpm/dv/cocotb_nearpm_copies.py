# SPDX-License-Identifier: Apache-2.0
"""The whole engine: large copies, which are divided over units."""

import cocotb
from cocotb.triggers import ClockCycles
from cocotb_nearpm import BASE, OBJECTS, POOLS, Program
from extent import LONG
from nearpm_bench import Bench
from nearpm_model import COPY, INVALID, LOG_OPEN, READ_ERROR, SWITCH, SYNC, UNDO, UNMAPPED, WRITE_ERROR, command

PARTS, PART_BYTES = 4, 4096
UNITS_AT_WORK = 0x10C


async def started(dut, **options):
    """A bench with random objects, and a mapped pool with two open logs."""
    bench = Bench(dut, **options)
    await bench.start()
    await bench.map_pool(**POOLS[0])
    for thread in range(2):
        await bench.run_command(LOG_OPEN, **Program.ids(POOLS[0], thread), value=1)
    bench.media[:OBJECTS] = bench.model.data[:OBJECTS] = bench.random.randbytes(OBJECTS)
    return bench


def random_copy(random, least=1):
    """Source, target and bytes: of any size and alignment; adjacent, overlapping or apart."""
    size = random.choice([random.randrange(least, 0x10001), random.randrange(max(least, 8000), 20000)])
    source = random.randrange(OBJECTS - size + 1)
    target = random.randrange(OBJECTS - size + 1)
    kind = random.random()
    if kind < 0.3:
        target = source + size if source + 2 * size <= OBJECTS else max(0, source - size)
    elif kind < 0.8:
        slack = (OBJECTS - 2 * size) // 2
        source, target = random.randrange(slack + 1), OBJECTS - size - random.randrange(slack + 1)
        if random.random() < 0.5:
            source, target = target, source
    return source, target, size


def overlaps(source, target, size):
    return source < target + size and target < source + size


@cocotb.test()
async def copies_match_model(dut):
    """Copies of all sizes and alignments, some refused because they overlap, beside small commands."""
    bench = await started(dut)
    ids, other = (Program.ids(POOLS[0], thread) for thread in range(2))
    refused = 0
    for n in range(160 if LONG else 40):
        wanted = {}
        for _ in range(bench.random.randrange(1, 4)):
            source, target, size = random_copy(bench.random)
            number, expected = await bench.command(COPY, **ids, address=BASE + source, size=size, target=BASE + target)
            assert (expected[0] == INVALID) == overlaps(source, target, size)
            refused += expected[0] == INVALID
            wanted[number] = expected
            for _ in range(bench.random.randrange(3)):
                at = bench.random.randrange(OBJECTS - 8) & ~7
                number, expected = await bench.command(SWITCH, **other, target=BASE + at, value=n)
                wanted[number] = expected
        await bench.wait_idle()
        for number, expected in wanted.items():
            assert bench.ends[number] == expected
        bench.check_media()
    assert refused > 2


@cocotb.test()
async def copy_leaves_a_unit_to_small_commands(dut):
    """A copy works in several units at once. A small command does not wait for its parts."""
    bench = await started(dut)
    ids, other = (Program.ids(POOLS[0], thread) for thread in range(2))
    units = int(dut.Units.value)
    for size in (PART_BYTES, 2 * PART_BYTES - 64, 2 * PART_BYTES, 3 * PART_BYTES, 0x10000):
        parts = max(1, min(units - 1, PARTS, size // PART_BYTES))
        copy = await bench.submit(command(COPY, **ids, address=BASE, size=size, target=BASE + 0x10000))
        await ClockCycles(dut.clk_i, 20)
        at_work = await bench.register(UNITS_AT_WORK)
        if size > PART_BYTES:
            assert at_work.bit_count() == parts, (size, at_work)
        small = await bench.submit(command(SYNC, **other))
        await bench.wait_ended(small)
        assert (copy not in bench.ends) == (units > 1), size
        await bench.wait_ended(copy)
        assert bench.ends[copy] == (0, 0)
        assert bench.media[0x10000 : 0x10000 + size] == bench.media[:size]
        await bench.wait_idle()


@cocotb.test()
async def errors_of_all_parts_are_reported(dut):
    """A copy with errors in any of its parts ends once, with all of them, and closes its log."""
    bench = await started(dut)
    ids = Program.ids(POOLS[0], 0)
    units = int(dut.Units.value)
    parts = max(1, min(units - 1, PARTS))
    for n in range(48 if LONG else 16):
        pages = 2 * parts
        size = pages * PART_BYTES
        bad_source = bench.random.randrange(pages) if n % 3 != 1 else None
        bad_target = bench.random.randrange(pages) if n % 3 != 0 else None
        errors = set() if bad_source is None else {bad_source}
        errors |= set() if bad_target is None else {16 + bad_target}
        for ram in bench.rams:
            ram.errors = errors
        copy = await bench.submit(command(COPY, **ids, address=BASE, size=size, target=BASE + 0x10000))
        await bench.wait_ended(copy)
        await bench.wait_idle()
        result, value = bench.ends[copy]
        allowed = READ_ERROR * (bad_source is not None) | WRITE_ERROR * (bad_target is not None)
        assert value == 0
        if len(errors) == 2 and bad_source // 2 == bad_target // 2:
            assert result
            assert result & ~allowed == 0
        else:
            assert result == allowed, (n, parts, errors, result)
        # The parts without an error are complete.
        for page in range(pages):
            if not {page, page ^ 1, 16 + page, 16 + (page ^ 1)} & errors:
                at = PART_BYTES * page
                assert bench.media[0x10000 + at : 0x11000 + at] == bench.media[at : at + PART_BYTES]
        for ram in bench.rams:
            ram.errors = set()
        for op, fields in ((UNDO, {"address": BASE, "size": 1}), (SWITCH, {"target": BASE, "value": 1})):
            number = await bench.submit(command(op, **ids, **fields))
            await bench.wait_ended(number)
            assert bench.ends[number] == (UNMAPPED, 0)
        number = await bench.submit(command(LOG_OPEN, **ids, value=n + 2))
        await bench.wait_ended(number)
        assert bench.ends[number] == (0, 0)


@cocotb.test()
async def power_cut_repeats_divided_copies(dut):
    """Power fails at any cycle of a divided copy, or during the restore: the whole copy is repeated."""
    bench = await started(dut, latency=60)
    ids = Program.ids(POOLS[0], 0)
    carried = 0
    for n in range(96 if LONG else 24):
        source, target, size = random_copy(bench.random, least=8192)
        if overlaps(source, target, size):
            source, target, size = 0, 0x10000, 0x10000 - n
        await bench.command(COPY, **ids, address=BASE + source, size=size, target=BASE + target)
        # A younger store of a line of the source, and of the target.
        for at in (source, target):
            await bench.store(at, bench.random.randbytes(min(size, 64 - at % 64)))
        await bench.wait_stores_answered()
        await ClockCycles(dut.clk_i, bench.random.randrange(1, 500))
        carried += len(bench.in_flight)
        await bench.stop()
        for _ in range(n % 2):
            await bench.reset()
            await ClockCycles(dut.clk_i, bench.random.randrange(1, 2500))
            await bench.stop()
        await bench.reset()
        await bench.wait_for(dut.open_o)
        await bench.wait_idle()
        bench.check_media()
    assert carried > 5
