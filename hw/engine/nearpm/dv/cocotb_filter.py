"""nearpm_filter and nearpm_table: order, what waits and what does not, a full queue, saving and restoring."""

from __future__ import annotations

import os

import cocotb
from cocotb.triggers import ClockCycles, Combine, RisingEdge, with_timeout
from filter_bench import LINE, LINES, NVME, PERIOD, Bench, ranges

CHANNELS, CHANNEL = int(os.environ["CHANNELS"]), int(os.environ["CHANNEL"])
CUTS = int(os.environ["CUTS"])
HOT = 40  # lines at the start of each half that most accesses go to


async def bounded(task, cycles: int):
    """A hang is a failure."""
    return await with_timeout(task, cycles * PERIOD, "ns")


async def bench_of(dut, seed: int, p: float = 0.0, latency=(1, 4)) -> Bench:
    bench = Bench(dut, seed + 100 * cocotb.RANDOM_SEED, CHANNELS, CHANNEL)
    bench.pause(p, latency)
    await bench.reset()
    return bench


def span(bench: Bench, base: int, most: int) -> tuple[int, int]:
    """Address and bytes of an access from line `base` on, within 4 KiB."""
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
    """Blocks; one write of a line at a time."""
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
    """A range of the media that begins in this channel."""
    rng = bench.rng
    line = rng.choice([0, 0, NVME]) + (rng.randrange(HOT) if rng.random() < 0.6 else rng.randrange(NVME - 128))
    first = bench.media(line)
    return first, first + rng.randint(0, most - 1)


def command(bench: Bench, most: int):
    """A command of random ranges that do not overlap, or None if the NVMe controller writes there."""
    while True:
        reads = place(bench, most) if bench.rng.random() < 0.7 else None
        writes = place(bench, most) if bench.rng.random() < 0.9 else None
        if not (reads and writes and reads[0] <= writes[1] and writes[0] <= reads[1]):
            break
    made = bench.make(reads, writes)
    taken = {line for access in bench.open_nvme for line in access.lines}
    return made if taken.isdisjoint({*made.reads, *made.writes}) else None


async def commands(bench: Bench, count: int, gap: int) -> None:
    rng = bench.rng
    for _ in range(count):
        while not bench.ids_free:
            await RisingEdge(bench.dut.clk_i)
        made = command(bench, rng.choice([1, 4, 32, 100]))
        if made:
            await bench.insert(made)
        await ClockCycles(bench.dut.clk_i, rng.randint(1, gap))


async def settled(bench: Bench, cycles: int = 5000) -> None:
    """Everything ends, the hook rests, and the memory is what program order makes of it."""
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
    await settled(bench)
    assert bench.queued > scale, "some stores have waited"
    assert bench.most_loads > 1 or scale < 6
    return bench


@cocotb.test()
async def random_full_speed(dut):
    await mixed(dut, 11, 0.0, (1, 4), 10)


@cocotb.test()
async def random_back_pressure(dut):
    await mixed(dut, 12, 0.4, (1, 60), 6)


@cocotb.test()
async def random_slow(dut):
    await mixed(dut, 13, 0.8, (20, 300), 2)


# ---------------------------------------------------------------- what waits and what does not


async def held(dut, seed: int, reads=None, writes=None):
    """A bench in which one command is under way until `go` says so."""
    bench = await bench_of(dut, seed)
    go: list[int] = []
    cocotb.start_soon(bench.units(when=lambda: bool(go)))
    made = bench.make(reads and span_of(bench, *reads), writes and span_of(bench, *writes))
    await bench.insert(made)
    return bench, go


def span_of(bench: Bench, first: int, last: int) -> tuple[int, int]:
    return bench.media(first), bench.media(last)


async def quick(task, cycles: int = 40):
    return await with_timeout(task, cycles * PERIOD, "ns")


async def waits(task, bench: Bench, cycles: int = 300) -> None:
    await ClockCycles(bench.dut.clk_i, cycles)
    assert not task.done()


@cocotb.test()
async def only_overlaps_wait(dut):
    """Beside a command that does not end: stores of its lines are answered all the same, its input can be read."""
    bench, go = await held(dut, 1, reads=(8, 11), writes=(16, 19))
    rng = bench.rng
    for line in (0, 7, 12, 15, 20, 63):
        await quick(bench.store(line * LINE, rng.randbytes(LINE)))
        await quick(bench.load(line * LINE, LINE))
        await quick(bench.nvme_read(line * LINE, LINE))
    for line in (8, 11):
        await quick(bench.load(line * LINE, LINE))
        await quick(bench.nvme_read(line * LINE, LINE))
    await quick(bench.nvme_write(NVME * LINE, rng.randbytes(512)))
    assert bench.queued == 0
    # Four lines of stores into the queue, and what overlaps these behind them.
    await quick(bench.store(11 * LINE + 32, rng.randbytes(LINE)))
    await quick(bench.store(16 * LINE, rng.randbytes(2 * LINE)))
    assert (bench.queued, int(dut.lines_o.value)) == (2, 4)
    await quick(bench.store(12 * LINE, rng.randbytes(LINE)))
    assert (bench.queued, int(dut.lines_o.value)) == (3, 5)
    parked = [cocotb.start_soon(bench.load(line * LINE, LINE, ident=line)) for line in (11, 12, 17, 19)]
    await quick(bench.load(13 * LINE, LINE))
    await quick(bench.load(8 * LINE, LINE))
    nvme_waits = cocotb.start_soon(bench.nvme_read(18 * LINE, LINE))
    for task in (*parked, nvme_waits):
        await waits(task, bench, 60)
    assert int(dut.loads_o.value) == 4
    # Younger commands: one elsewhere goes at once, one that overlaps a line of the queue or the older command does not.
    other = bench.make(span_of(bench, 40, 41), span_of(bench, 44, 44))
    behind_line = bench.make(None, span_of(bench, 12, 12))
    behind_command = bench.make(span_of(bench, 19, 19), None)
    for made in (other, behind_line, behind_command):
        await bench.insert(made)
    await ClockCycles(dut.clk_i, 20)
    assert int(dut.ready_o.value) >> other.number & 1
    assert not int(dut.ready_o.value) >> behind_line.number & 1
    assert not int(dut.ready_o.value) >> behind_command.number & 1
    go.append(1)
    await bounded(Combine(*parked, nvme_waits), 1000)
    await settled(bench)


@cocotb.test()
async def behind_the_store_before(dut):
    """A store in the cycle behind one that is queued, which overlaps it and no command, does not pass it."""
    bench, go = await held(dut, 7, reads=(16, 16))
    taken = []

    async def note() -> None:
        while True:
            await RisingEdge(dut.clk_i)
            if int(dut.s_pm_awvalid.value) and int(dut.s_pm_awready.value):
                taken.append(bench.cycle)

    cocotb.start_soon(note())
    pair = [cocotb.start_soon(bench.store(line * LINE, bench.rng.randbytes(2 * LINE))) for line in (16, 17)]
    await bounded(Combine(*pair), 200)
    assert taken[1] - taken[0] == 1
    assert (bench.queued, int(dut.lines_o.value)) == (2, 4)
    go.append(1)
    await settled(bench)


@cocotb.test()
async def sixteen_loads_wait(dut):
    """The seventeenth that overlaps waits in front of the others, and then those behind it."""
    bench, go = await held(dut, 2, writes=(0, 31))
    parked = [cocotb.start_soon(bench.load(line * LINE, LINE, ident=line)) for line in range(16)]
    await ClockCycles(dut.clk_i, 60)
    assert int(dut.loads_o.value) == 16
    for line in range(32, 44):
        await quick(bench.load(line * LINE, LINE, ident=line))
    last = cocotb.start_soon(bench.load(16 * LINE, LINE, ident=16))
    await ClockCycles(dut.clk_i, 20)
    assert int(dut.loads_o.value) == 17
    behind = cocotb.start_soon(bench.load(50 * LINE, LINE, ident=17))
    await waits(behind, bench)
    await quick(bench.store(50 * LINE, bench.rng.randbytes(LINE)))
    await quick(bench.nvme_read(50 * LINE, LINE))
    go.append(1)
    await bounded(Combine(*parked, last, behind), 1000)
    await settled(bench)


@cocotb.test()
async def full_queue(dut):
    """Sixty-four lines are taken; a further store that overlaps stops stores, and nothing else."""
    bench, go = await held(dut, 3, reads=(0, 99))
    rng = bench.rng
    tasks = [cocotb.start_soon(bench.store(8 * i * LINE, rng.randbytes(8 * LINE))) for i in range(8)]
    await bounded(Combine(*tasks), 200)
    assert (bench.queued, int(dut.lines_o.value)) == (8, 64)
    await quick(bench.store(200 * LINE, rng.randbytes(LINE)))
    stuck = cocotb.start_soon(bench.store(70 * LINE, rng.randbytes(LINE)))
    behind = cocotb.start_soon(bench.store(200 * LINE, rng.randbytes(LINE)))
    await waits(behind, bench)
    assert not stuck.done()
    await quick(bench.load(99 * LINE, LINE))
    await quick(bench.nvme_write(NVME * LINE, rng.randbytes(512)))
    go.append(1)
    await bounded(Combine(stuck, behind), 1000)
    assert bench.queued == 8
    await settled(bench)


@cocotb.test()
async def queue_to_the_last_place(dut):
    """Stores in successive cycles, of which the first ones pass, do not take room from those that are queued."""
    bench, go = await held(dut, 6, reads=(64, 127))
    rng = bench.rng
    passing = [cocotb.start_soon(bench.store(i * LINE, rng.randbytes(40 * LINE))) for i in (0, 20)]
    waiting = cocotb.start_soon(bench.store(64 * LINE, rng.randbytes(64 * LINE)))
    await bounded(Combine(*passing, waiting), 300)
    assert (bench.queued, int(dut.lines_o.value)) == (1, 64)
    go.append(1)
    await settled(bench)


@cocotb.test()
async def narrow_store(dut):
    """A store that can't be queued waits in front; a younger command goes in meanwhile, and waits for it."""
    bench, go = await held(dut, 4, writes=(10, 12))
    rng = bench.rng
    narrow = cocotb.start_soon(bench.store(11 * LINE + 8, rng.randbytes(16), size=3))
    await waits(narrow, bench, 20)
    assert bench.queued == 0
    younger = bench.make(span_of(bench, 11, 11), span_of(bench, 30, 30))
    elsewhere = bench.make(None, span_of(bench, 40, 40))
    await bench.insert(younger)
    await bench.insert(elsewhere)
    behind = cocotb.start_soon(bench.store(50 * LINE, rng.randbytes(LINE)))
    await waits(behind, bench, 100)
    await quick(bench.load(50 * LINE, LINE))
    go.append(1)
    await bounded(Combine(narrow, behind), 1000)
    await settled(bench)


@cocotb.test()
async def rate_and_latency(dut):
    """What the hook adds to a store, to its response and to a load; stores that pass one after another never wait."""
    bench = await bench_of(dut, 5)
    bench.memory.latency = (1, 1)
    rng = bench.rng
    seen = {name: [] for name in ("s_pm_aw", "m_pm_aw", "s_pm_ar", "m_pm_ar", "m_pm_b", "s_pm_b")}
    stalls = [0]

    async def note() -> None:
        while True:
            await RisingEdge(dut.clk_i)
            for name, cycles in seen.items():
                if int(getattr(dut, f"{name}valid").value) and int(getattr(dut, f"{name}ready").value):
                    cycles.append(bench.cycle)
            stalls[0] += int(dut.s_pm_awvalid.value) and not int(dut.s_pm_awready.value)

    cocotb.start_soon(note())
    await quick(bench.store(0, rng.randbytes(LINE)))
    await quick(bench.load(0, LINE))
    assert seen["m_pm_aw"][0] - seen["s_pm_aw"][0] == 3
    assert seen["m_pm_ar"][0] - seen["s_pm_ar"][0] == 3
    assert seen["s_pm_b"][0] - seen["m_pm_b"][0] == 2
    tasks = [cocotb.start_soon(bench.store(i % 400 * LINE, rng.randbytes(LINE))) for i in range(200)]
    await bounded(Combine(*tasks), 2000)
    gaps = [b - a for a, b in zip(seen["s_pm_aw"][1:], seen["s_pm_aw"][2:], strict=False)]
    assert len(gaps) == 199
    assert gaps.count(1) > 100, "the master sends several in successive cycles"
    assert stalls[0] == 0
    await settled(bench)


# ---------------------------------------------------------------- power


totals = [0, 0, 0]


async def cut(dut, seed: int, p: float, latency, cycles: int) -> None:
    """Power fails amid traffic; what is saved goes on in another life."""
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
    gone = int(dut.dropped_o.value)
    assert {n for n in range(64) if gone >> n & 1} == set(dropped)
    image = []
    for index in range(96):
        dut.queue_save_index_i.value = index
        await ClockCycles(dut.clk_i, 2)
        image.append(int(dut.queue_save_data_o.value))
    # Stores that the host has no answer for are what a command may be dropped for.
    for command in dropped.values():
        assert oldest_open is not None
        assert oldest_open < command.stores
    # What is under way on the buses ends; the host and the controller are dead.
    await ClockCycles(dut.clk_i, 1000)
    durable = list(bench.durable)
    for command in before.values():
        if command.number in saved:
            for line, version in command.made.items():
                durable[line] = max(durable[line], version)
    await bench.die(traffic)
    for number in saved:
        command = before[number]
        command.again, command.begun = command.begun, False
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
async def power_cut(dut, seed: int):
    await cut(dut, seed, 0.0, (1, 40), 250 + 137 * seed)


@cocotb.test()
@cocotb.parametrize(seed=range(1, 1 + CUTS))
async def power_cut_slow(dut, seed: int):
    await cut(dut, 50 + seed, 0.5, (20, 200), 500 + 137 * seed)


@cocotb.test()
async def power_cuts_met_all(dut):
    """The ones before have saved commands and lines, and dropped commands."""
    cocotb.log.info(f"{totals[0]} commands saved, {totals[1]} dropped, {totals[2]} lines saved")
    assert all(totals)
