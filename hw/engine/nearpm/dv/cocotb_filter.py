# SPDX-License-Identifier: Apache-2.0
"""nearpm_filter and nearpm_table: order, conflicts, a full queue, save and restore."""

from __future__ import annotations

import os

import cocotb
from cocotb.triggers import ClockCycles, Combine, RisingEdge, with_timeout
from filter_bench import LINE, LINES, NVME, PERIOD, Bench, ranges

CHANNELS, CHANNEL = int(os.environ["CHANNELS"]), int(os.environ["CHANNEL"])
CUTS = int(os.environ["CUTS"])
HOT = 40  # lines at the start of each half that receive most accesses


async def bounded(task, cycles: int):
    """A hang is a failure."""
    return await with_timeout(task, cycles * PERIOD, "ns")


async def bench_of(dut, seed: int, p: float = 0.0, latency=(1, 4)) -> Bench:
    bench = Bench(dut, seed + 100 * cocotb.RANDOM_SEED, CHANNELS, CHANNEL)
    bench.pause(p, latency)
    await bench.reset()
    return bench


def span(bench: Bench, base: int, most: int) -> tuple[int, int]:
    """Address and length of an access from line `base` on, within 4 KiB."""
    rng = bench.rng
    line = base + (rng.randrange(HOT) if rng.random() < 0.7 else rng.randrange(NVME - 64))
    start = line * LINE + rng.choice([0, 0, 0, rng.randrange(LINE)])
    length = rng.choice([LINE, LINE, 8, 100, rng.randint(1, most * LINE)])
    return start, min(length, 4096 - start % 4096)


async def stores(bench: Bench, count: int) -> None:
    rng, tasks = bench.rng, []
    for _ in range(count):
        start, length = span(bench, 0, rng.choice([2, 8, 64]))
        size = 6 if rng.random() < 0.95 else rng.randint(2, 5)
        tasks.append(cocotb.start_soon(bench.store(start, rng.randbytes(min(length, 64 << size)), size)))
        await ClockCycles(bench.dut.clk_i, rng.choice([1, 1, 1, 4, 30]))
    await Combine(*tasks)


async def loads(bench: Bench, count: int) -> None:
    rng, tasks = bench.rng, []
    for _ in range(count):
        start, length = span(bench, rng.choice([0, 0, NVME]), 8)
        ident = rng.choice([None, None, 3])
        tasks.append(cocotb.start_soon(bench.load(start, length, ident=ident)))
        await ClockCycles(bench.dut.clk_i, rng.choice([1, 2, 10, 30]))
    await Combine(*tasks)


async def nvme(bench: Bench, count: int) -> None:
    """NVMe blocks; a line has at most one outstanding write."""
    rng, tasks = bench.rng, []
    for _ in range(count):
        blocks = rng.choice([1, 2, 8])
        line = NVME + rng.randrange((NVME - 64) // 8) * 8 if rng.random() < 0.5 else NVME + rng.randrange(HOT // 8) * 8
        addr = line * LINE
        length = min(blocks * 512, 4096 - addr % 4096)
        taken = {at for access in bench.open_nvme for at in access.lines}
        if bench.inserting:
            taken |= {*bench.inserting.reads, *bench.inserting.writes}
        if rng.random() < 0.5:
            tasks.append(cocotb.start_soon(bench.nvme_read(addr, length)))
        elif taken.isdisjoint(range(addr // LINE, (addr + length) // LINE)):
            tasks.append(bench.nvme_write(addr, rng.randbytes(length)))
        await ClockCycles(bench.dut.clk_i, rng.choice([1, 10, 40]))
    await Combine(*tasks)


def place(bench: Bench, most: int) -> tuple[int, int]:
    """A range of the media that starts in this channel."""
    rng = bench.rng
    line = rng.choice([0, 0, NVME]) + (rng.randrange(HOT) if rng.random() < 0.6 else rng.randrange(NVME - 128))
    first = bench.media(line)
    return first, first + rng.randint(0, most - 1)


def command(bench: Bench, most: int):
    """A command with random disjoint ranges; None if the NVMe controller writes to them."""
    while True:
        reads = place(bench, most) if bench.rng.random() < 0.7 else None
        writes = place(bench, most) if bench.rng.random() < 0.9 else None
        if not (reads and writes and reads[0] <= writes[1] and writes[0] <= reads[1]):
            break
    new = bench.new_command(reads, writes)
    taken = {line for access in bench.open_nvme for line in access.lines}
    return new if taken.isdisjoint({*new.reads, *new.writes}) else None


async def commands(bench: Bench, count: int, gap: int) -> None:
    rng = bench.rng
    for _ in range(count):
        while not bench.ids_free:
            await RisingEdge(bench.dut.clk_i)
        new = command(bench, rng.choice([1, 4, 32, 100]))
        if new:
            await bench.insert(new)
        await ClockCycles(bench.dut.clk_i, rng.randint(1, gap))


async def check_drained(bench: Bench, cycles: int = 5000) -> None:
    """Everything ends, the filter is idle, and the memory matches program order."""
    for _ in range(cycles):
        await RisingEdge(bench.dut.clk_i)
        if not bench.commands and not int(bench.dut.busy_o.value):
            break
    assert not bench.commands
    assert int(bench.dut.busy_o.value) == 0
    assert not bench.order
    wrong = [i for i in range(LINES) if bytes(bench.mem[i * LINE : (i + 1) * LINE]) != bench.versions[i][-1]]
    assert not wrong, f"lines {wrong}"


async def mixed(dut, seed: int, p: float, latency, scale: int) -> Bench:
    bench = await bench_of(dut, seed, p, latency)
    cocotb.start_soon(bench.units())
    tasks = [
        stores(bench, 40 * scale),
        loads(bench, 25 * scale),
        nvme(bench, 15 * scale),
        commands(bench, 12 * scale, 60),
    ]
    await bounded(Combine(*map(cocotb.start_soon, tasks)), 200_000)
    await check_drained(bench)
    assert bench.queued > scale, "some stores have waited"
    assert bench.most_loads > 1 or scale < 6
    return bench


@cocotb.test()
async def traffic_at_full_speed(dut):
    await mixed(dut, 11, 0.0, (1, 4), 10)


@cocotb.test()
async def traffic_with_back_pressure(dut):
    await mixed(dut, 12, 0.4, (1, 60), 6)


@cocotb.test()
async def traffic_with_slow_memory(dut):
    await mixed(dut, 13, 0.8, (20, 300), 2)


# ---------------------------------------------------------------- conflicts


async def bench_with_blocked_command(dut, seed: int, reads=None, writes=None):
    """A bench with one command in flight until `released` holds an entry."""
    bench = await bench_of(dut, seed)
    released: list[int] = []
    cocotb.start_soon(bench.units(when=lambda: bool(released)))
    new = bench.new_command(reads and span_of(bench, *reads), writes and span_of(bench, *writes))
    await bench.insert(new)
    return bench, released


def span_of(bench: Bench, first: int, last: int) -> tuple[int, int]:
    return bench.media(first), bench.media(last)


async def prompt(task, cycles: int = 40):
    return await with_timeout(task, cycles * PERIOD, "ns")


async def assert_waits(task, bench: Bench, cycles: int = 300) -> None:
    await ClockCycles(bench.dut.clk_i, cycles)
    assert not task.done()


@cocotb.test()
async def conflict_blocks_only_overlaps(dut):
    """A command that does not end: stores to its lines are still answered, its input can be read."""
    bench, released = await bench_with_blocked_command(dut, 1, reads=(8, 11), writes=(16, 19))
    rng = bench.rng
    for line in (0, 7, 12, 15, 20, 63):
        await prompt(bench.store(line * LINE, rng.randbytes(LINE)))
        await prompt(bench.load(line * LINE, LINE))
        await prompt(bench.nvme_read(line * LINE, LINE))
    for line in (8, 11):
        await prompt(bench.load(line * LINE, LINE))
        await prompt(bench.nvme_read(line * LINE, LINE))
    await prompt(bench.nvme_write(NVME * LINE, rng.randbytes(512)))
    assert bench.queued == 0
    # Stores put four lines into the queue; an access that overlaps these follows them.
    await prompt(bench.store(11 * LINE + 32, rng.randbytes(LINE)))
    await prompt(bench.store(16 * LINE, rng.randbytes(2 * LINE)))
    assert (bench.queued, int(dut.lines_o.value)) == (2, 4)
    await prompt(bench.store(12 * LINE, rng.randbytes(LINE)))
    assert (bench.queued, int(dut.lines_o.value)) == (3, 5)
    parked = [cocotb.start_soon(bench.load(line * LINE, LINE, ident=line)) for line in (11, 12, 17, 19)]
    await prompt(bench.load(13 * LINE, LINE))
    await prompt(bench.load(8 * LINE, LINE))
    nvme_waits = cocotb.start_soon(bench.nvme_read(18 * LINE, LINE))
    for task in (*parked, nvme_waits):
        await assert_waits(task, bench, 60)
    assert int(dut.loads_o.value) == 4
    # Younger commands: one without overlap is ready at once. One that overlaps a line of the
    # queue, or the older command, is not.
    other = bench.new_command(span_of(bench, 40, 41), span_of(bench, 44, 44))
    after_line = bench.new_command(None, span_of(bench, 12, 12))
    after_command = bench.new_command(span_of(bench, 19, 19), None)
    for new in (other, after_line, after_command):
        await bench.insert(new)
    await ClockCycles(dut.clk_i, 20)
    assert int(dut.ready_o.value) >> other.number & 1
    assert not int(dut.ready_o.value) >> after_line.number & 1
    assert not int(dut.ready_o.value) >> after_command.number & 1
    released.append(1)
    await bounded(Combine(*parked, nvme_waits), 1000)
    await check_drained(bench)


@cocotb.test()
async def store_waits_for_queued_predecessor(dut):
    """A store that overlaps only a store queued one cycle earlier does not pass it."""
    bench, released = await bench_with_blocked_command(dut, 7, reads=(16, 16))
    taken = []

    async def record() -> None:
        while True:
            await RisingEdge(dut.clk_i)
            if int(dut.s_pm_awvalid.value) and int(dut.s_pm_awready.value):
                taken.append(bench.cycle)

    cocotb.start_soon(record())
    pair = [cocotb.start_soon(bench.store(line * LINE, bench.rng.randbytes(2 * LINE))) for line in (16, 17)]
    await bounded(Combine(*pair), 200)
    assert taken[1] - taken[0] == 1
    assert (bench.queued, int(dut.lines_o.value)) == (2, 4)
    released.append(1)
    await check_drained(bench)


@cocotb.test()
async def loads_parked_up_to_sixteen(dut):
    """The seventeenth conflicting load blocks all later loads."""
    bench, released = await bench_with_blocked_command(dut, 2, writes=(0, 31))
    parked = [cocotb.start_soon(bench.load(line * LINE, LINE, ident=line)) for line in range(16)]
    await ClockCycles(dut.clk_i, 60)
    assert int(dut.loads_o.value) == 16
    for line in range(32, 44):
        await prompt(bench.load(line * LINE, LINE, ident=line))
    last = cocotb.start_soon(bench.load(16 * LINE, LINE, ident=16))
    await ClockCycles(dut.clk_i, 20)
    assert int(dut.loads_o.value) == 17
    later = cocotb.start_soon(bench.load(50 * LINE, LINE, ident=17))
    await assert_waits(later, bench)
    await prompt(bench.store(50 * LINE, bench.rng.randbytes(LINE)))
    await prompt(bench.nvme_read(50 * LINE, LINE))
    released.append(1)
    await bounded(Combine(*parked, last, later), 1000)
    await check_drained(bench)


@cocotb.test()
async def queue_full_blocks_only_stores(dut):
    """The queue accepts 64 lines; a further conflicting store blocks stores, and nothing else."""
    bench, released = await bench_with_blocked_command(dut, 3, reads=(0, 99))
    rng = bench.rng
    tasks = [cocotb.start_soon(bench.store(8 * i * LINE, rng.randbytes(8 * LINE))) for i in range(8)]
    await bounded(Combine(*tasks), 200)
    assert (bench.queued, int(dut.lines_o.value)) == (8, 64)
    await prompt(bench.store(200 * LINE, rng.randbytes(LINE)))
    stuck = cocotb.start_soon(bench.store(70 * LINE, rng.randbytes(LINE)))
    later = cocotb.start_soon(bench.store(200 * LINE, rng.randbytes(LINE)))
    await assert_waits(later, bench)
    assert not stuck.done()
    await prompt(bench.load(99 * LINE, LINE))
    await prompt(bench.nvme_write(NVME * LINE, rng.randbytes(512)))
    released.append(1)
    await bounded(Combine(stuck, later), 1000)
    assert bench.queued == 8
    await check_drained(bench)


@cocotb.test()
async def queue_fills_to_last_place(dut):
    """Forwarded stores in the preceding cycles do not use places that a queued store needs."""
    bench, released = await bench_with_blocked_command(dut, 6, reads=(64, 127))
    rng = bench.rng
    passing = [cocotb.start_soon(bench.store(i * LINE, rng.randbytes(40 * LINE))) for i in (0, 20)]
    waiting = cocotb.start_soon(bench.store(64 * LINE, rng.randbytes(64 * LINE)))
    await bounded(Combine(*passing, waiting), 300)
    assert (bench.queued, int(dut.lines_o.value)) == (1, 64)
    released.append(1)
    await check_drained(bench)


@cocotb.test()
async def store_narrow_waits_in_front(dut):
    """A store that cannot be queued waits in front; a younger command is inserted and waits for it."""
    bench, released = await bench_with_blocked_command(dut, 4, writes=(10, 12))
    rng = bench.rng
    narrow = cocotb.start_soon(bench.store(11 * LINE + 8, rng.randbytes(16), size=3))
    await assert_waits(narrow, bench, 20)
    assert bench.queued == 0
    younger = bench.new_command(span_of(bench, 11, 11), span_of(bench, 30, 30))
    elsewhere = bench.new_command(None, span_of(bench, 40, 40))
    await bench.insert(younger)
    await bench.insert(elsewhere)
    later = cocotb.start_soon(bench.store(50 * LINE, rng.randbytes(LINE)))
    await assert_waits(later, bench, 100)
    await prompt(bench.load(50 * LINE, LINE))
    released.append(1)
    await bounded(Combine(narrow, later), 1000)
    await check_drained(bench)


@cocotb.test()
async def latency_and_rate(dut):
    """Latency added to a store, its response and a load; successive forwarded stores never wait."""
    bench = await bench_of(dut, 5)
    bench.memory.latency = (1, 1)
    rng = bench.rng
    seen = {name: [] for name in ("s_pm_aw", "m_pm_aw", "s_pm_ar", "m_pm_ar", "m_pm_b", "s_pm_b")}
    stalls = [0]

    async def record() -> None:
        while True:
            await RisingEdge(dut.clk_i)
            for name, cycles in seen.items():
                if int(getattr(dut, f"{name}valid").value) and int(getattr(dut, f"{name}ready").value):
                    cycles.append(bench.cycle)
            stalls[0] += int(dut.s_pm_awvalid.value) and not int(dut.s_pm_awready.value)

    cocotb.start_soon(record())
    await prompt(bench.store(0, rng.randbytes(LINE)))
    await prompt(bench.load(0, LINE))
    assert seen["m_pm_aw"][0] - seen["s_pm_aw"][0] == 3
    assert seen["m_pm_ar"][0] - seen["s_pm_ar"][0] == 3
    assert seen["s_pm_b"][0] - seen["m_pm_b"][0] == 2
    tasks = [cocotb.start_soon(bench.store(i % 400 * LINE, rng.randbytes(LINE))) for i in range(200)]
    await bounded(Combine(*tasks), 2000)
    gaps = [b - a for a, b in zip(seen["s_pm_aw"][1:], seen["s_pm_aw"][2:], strict=False)]
    assert len(gaps) == 199
    assert gaps.count(1) > 100, "the master sends several in successive cycles"
    assert stalls[0] == 0
    await check_drained(bench)


# ---------------------------------------------------------------- power


totals = [0, 0, 0]


async def run_power_cut(dut, seed: int, p: float, latency, cycles: int) -> None:
    """Power fails during traffic; the saved state is restored and completes."""
    bench = await bench_of(dut, seed, p, latency)
    cocotb.start_soon(bench.units())
    traffic = [
        cocotb.start_soon(task)
        for task in (stores(bench, 1000), loads(bench, 1000), nvme(bench, 1000), commands(bench, 1000, 20))
    ]
    await ClockCycles(dut.clk_i, cycles)
    dut.freeze_i.value = 1
    oldest_open = bench.order[0].number if bench.order else None
    await ClockCycles(dut.clk_i, 3)
    before = dict(bench.commands)
    saved, dropped = {}, {}
    for number in range(64):
        dut.save_number_i.value = number
        await ClockCycles(dut.clk_i, 2)
        fields = int(dut.save_valid_o.value), int(dut.save_commands_o.value), int(dut.save_lines_o.value)
        if fields[0]:
            saved[number] = fields
            assert number in before
        elif number in before:
            dropped[number] = before[number]
    dropped_mask = int(dut.dropped_o.value)
    assert {n for n in range(64) if dropped_mask >> n & 1} == set(dropped)
    image = []
    for index in range(96):
        dut.queue_save_index_i.value = index
        await ClockCycles(dut.clk_i, 2)
        image.append(int(dut.queue_save_data_o.value))
    # A command may be dropped only for stores that are not answered to the host.
    for command in dropped.values():
        assert oldest_open is not None
        assert oldest_open < command.stores
    # Transfers in flight on the buses end; the host and the controller have stopped.
    await ClockCycles(dut.clk_i, 1000)
    durable = list(bench.durable)
    for command in before.values():
        if command.number in saved:
            for line, version in command.versions_made.items():
                durable[line] = max(durable[line], version)
    await bench.power_cut(traffic)
    for number in saved:
        command = before[number]
        command.restored, command.issued = command.issued, False
        dut.restore_i.value, dut.restore_number_i.value = 1, number
        dut.restore_ranges_i.value = ranges(*command.ranges)
        dut.restore_commands_i.value, dut.restore_lines_i.value = saved[number][1:]
        await ClockCycles(dut.clk_i, 1)
    dut.restore_i.value = 0
    for index, data in enumerate(image):
        dut.queue_restore_i.value, dut.queue_restore_index_i.value, dut.queue_restore_data_i.value = 1, index, data
        await ClockCycles(dut.clk_i, 1)
    dut.queue_restore_i.value = 0
    await ClockCycles(dut.clk_i, 1)
    lines = int(dut.lines_o.value)
    bench.commands = {number: before[number] for number in saved}
    dut.freeze_i.value = 0
    cocotb.start_soon(bench.units())
    for _ in range(20_000):
        await RisingEdge(dut.clk_i)
        if not bench.commands and not int(dut.busy_o.value):
            break
    assert not bench.commands
    assert int(dut.busy_o.value) == 0
    for line in range(LINES):
        found = bytes(bench.mem[line * LINE : (line + 1) * LINE])
        assert found in bench.versions[line][durable[line] :], f"line {line} after power came back"
    for i, count in enumerate((len(saved), len(dropped), lines)):
        totals[i] += count


@cocotb.test()
@cocotb.parametrize(seed=range(1, 1 + CUTS))
async def power_cut_restores_state(dut, seed: int):
    await run_power_cut(dut, seed, 0.0, (1, 40), 250 + 137 * seed)


@cocotb.test()
@cocotb.parametrize(seed=range(1, 1 + CUTS))
async def power_cut_restores_state_slow(dut, seed: int):
    await run_power_cut(dut, 50 + seed, 0.5, (20, 200), 500 + 137 * seed)


@cocotb.test()
async def power_cut_coverage(dut):
    """The preceding tests have saved commands and lines, and dropped commands."""
    cocotb.log.info(f"{totals[0]} commands saved, {totals[1]} dropped, {totals[2]} lines saved")
    assert all(totals)
