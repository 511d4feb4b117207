"""nearpm_hook and nearpm_table: order, what waits and what does not, a full queue, saving and restoring."""

from __future__ import annotations

import os

import cocotb
from cocotb.triggers import ClockCycles, Combine, RisingEdge, with_timeout
from hook_bench import BYTES, LINE, LINES, NVME, PERIOD, Bench

CHANNELS, CHANNEL = int(os.environ["CHANNELS"]), int(os.environ["CHANNEL"])
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
            tasks.append(cocotb.start_soon(bench.nvme_write(addr, rng.randbytes(length))))
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
    assert bench.most_loads > 1
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
