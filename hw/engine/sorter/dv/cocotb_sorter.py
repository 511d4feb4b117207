# SPDX-License-Identifier: Apache-2.0
"""sorter_core with a memory that reorders answers: key kinds, counts, adversarial inputs, errors, stops."""

import random
import struct

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from interleaving_ram import InterleavingRam

SIZE = 1 << 19
SRC, DST, TMP = 0, SIZE // 4, 5 * SIZE // 8
WIDTHS = (4, 8, 16)  # bytes of a key
UNSIGNED, COMPLEMENT, TOTAL_ORDER = range(3)


def rank(key, width, order):
    """Maps a key to the unsigned number of the same order."""
    top = 1 << (8 * width - 1)
    if order == UNSIGNED:
        return key
    if order == COMPLEMENT or not key & top:
        return key ^ top
    return key ^ (2 * top - 1)


def expected(keys, width, order, descending, indexes):
    """Returns the bytes that the sorter has to write."""
    ranks = [rank(key, width, order) for key in keys]
    # Stable in both directions.
    places = sorted(range(len(keys)), key=lambda i: -ranks[i] if descending else ranks[i])
    if indexes:
        return b"".join(struct.pack("<I", i) for i in places)
    return b"".join((keys[i].to_bytes(width, "little") + struct.pack("<I", i)).ljust(2 * width, b"\0") for i in places)


class Bench:
    def __init__(self, dut, **ram):
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.ram = InterleavingRam(dut, "m_axi", SIZE, self.random.random(), **ram)
        self.chunk = int(dut.Leaves.value) * int(dut.RunRows.value) * 8
        self.leaves = int(dut.Leaves.value)
        cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())

    async def start(self):
        d = self.dut
        for signal in (d.start_i, d.stop_i, d.src_i, d.dst_i, d.tmp_i, d.count_i, d.kind_i, d.indexes_i, d.pairs_i):
            signal.value = 0
        d.rst_ni.value = 0
        await ClockCycles(d.clk_i, 4)
        d.rst_ni.value = 1
        cocotb.start_soon(self.ram.run())
        await ClockCycles(d.clk_i, 4)

    def passes(self, count, pairs=False):
        passes, most = 1, self.chunk
        while most < count:
            passes, most = passes + 1, most * (2 if pairs else self.leaves)
        return passes

    async def run(self, count, width=4, order=UNSIGNED, descending=False, indexes=False, pairs=False, stop=None):
        """Starts a sort and waits for its end. Returns (stopped, errors), and the cycles."""
        d = self.dut
        d.src_i.value, d.dst_i.value, d.tmp_i.value, d.count_i.value = SRC, DST, TMP, count
        d.kind_i.value = descending << 4 | order << 2 | WIDTHS.index(width)
        d.indexes_i.value, d.pairs_i.value = indexes, pairs
        d.start_i.value = 1
        await RisingEdge(d.clk_i)
        d.start_i.value = 0
        for cycle in range(400_000):
            d.stop_i.value = stop is not None and cycle >= stop
            await RisingEdge(d.clk_i)
            if int(d.done_o.value):
                ended = int(d.stopped_o.value), int(d.errors_o.value)
                await ClockCycles(d.clk_i, 4)
                assert not int(d.busy_o.value)
                d.stop_i.value = 0
                return ended, cycle
        raise AssertionError("the job does not end")

    async def sort(self, keys, **options):
        """Sorts keys and compares the memory afterwards. Returns the cycles."""
        width = options.get("width", 4)
        self.ram.data[:] = self.random.randbytes(SIZE)
        self.ram.data[SRC : SRC + len(keys) * width] = b"".join(key.to_bytes(width, "little") for key in keys)
        expected_bytes = expected(
            keys, width, options.get("order", UNSIGNED), options.get("descending", False), options.get("indexes", False)
        )
        tail = bytes(self.ram.data[DST + len(expected_bytes) : TMP])
        ended, cycles = await self.run(len(keys), **options)
        assert ended == (0, 0)
        got = bytes(self.ram.data[DST : DST + len(expected_bytes)])
        if got != expected_bytes:
            size = len(expected_bytes) // len(keys)
            place = next(i for i in range(len(keys)) if got[i * size :][:size] != expected_bytes[i * size :][:size])
            raise AssertionError(
                f"{len(keys)} keys, {options}: record {place} is {got[place * size :][:size].hex()}, "
                f"not {expected_bytes[place * size :][:size].hex()}"
            )
        passes = self.passes(len(keys), options.get("pairs"))
        assert int(self.dut.passes_o.value) == passes
        assert int(self.dut.progress_o.value) == passes * len(keys)
        if passes < 3:
            assert bytes(self.ram.data[DST + len(expected_bytes) : TMP]) == tail, "bytes past the target have changed"
        return cycles


def random_keys(rng, count, width):
    return [rng.getrandbits(8 * width) for _ in range(count)]


@cocotb.test()
async def sort_all_counts(dut):
    """Counts from one key, around rows and runs, and around chunks and groups of chunks."""
    bench = Bench(dut, stall=0.1, latency=10)
    await bench.start()
    counts = [*range(1, 36), 63, 64, 65]
    for chunks in (1, 2, 3, bench.leaves, bench.leaves + 1):
        counts += [chunks * bench.chunk + more for more in (-1, 0, 1)]
    for count in counts:
        await bench.sort(random_keys(bench.random, count, 4))
    for chunks in (1, 2, 3, 4, bench.leaves, bench.leaves + 1):
        for more in (-1, 0, 1, bench.random.randrange(bench.chunk)):
            await bench.sort(random_keys(bench.random, chunks * bench.chunk + more, 4), pairs=True)


@cocotb.test()
async def sort_all_key_kinds(dut):
    """All widths, orders, directions and outputs. Many keys are equal or differ in the top bit."""
    bench = Bench(dut, stall=0.1, latency=10)
    await bench.start()
    for width in WIDTHS:
        for order in (UNSIGNED, COMPLEMENT, TOTAL_ORDER):
            for descending in (False, True):
                for indexes in (False, True):
                    count = bench.random.choice(
                        [bench.random.randrange(1, 100), bench.chunk + bench.random.randrange(1, 100)]
                    )
                    top = 1 << (8 * width - 1)
                    few = [0, 1, top - 1, top, top + 1, 2 * top - 1]
                    keys = [
                        bench.random.choice([bench.random.choice(few), bench.random.getrandbits(8 * width)])
                        for _ in range(count)
                    ]
                    pairs = bench.random.random() < 0.5
                    options = {"width": width, "order": order, "descending": descending}
                    await bench.sort(keys, **options, indexes=indexes, pairs=pairs)


@cocotb.test()
async def sort_floats_in_total_order(dut):
    """IEEE 754 totalOrder: NaN, infinities and zeros of both signs, subnormal numbers."""
    bench = Bench(dut, stall=0.1, latency=10)
    await bench.start()
    for width, code in ((4, "<f"), (8, "<d")):
        values = [0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), 1e-40, -1e-40, 3.4e38]
        keys = [int.from_bytes(struct.pack(code, bench.random.choice(values)), "little") for _ in range(200)]
        nan = int.from_bytes(struct.pack(code, float("nan")), "little")
        keys += [nan, nan | 1 << (8 * width - 1), nan | 1]
        await bench.sort(keys, width=width, order=TOTAL_ORDER)


def adversarial(n, rng):
    yield "sorted", list(range(n))
    yield "reversed", list(range(n))[::-1]
    yield "equal", [7] * n
    yield "few", [rng.randrange(3) for _ in range(n)]
    yield "organ pipe", [min(i, n - i) for i in range(n)]
    yield "extremes", [rng.choice([0, (1 << 32) - 1]) for _ in range(n)]
    yield "saw", [i % 17 for i in range(n)]
    yield "random", random_keys(rng, n, 4)


@cocotb.test()
async def sort_adversarial_inputs_at_full_rate(dut):
    """No input is much slower than random keys: a merge starts before the tree's buffers are full.

    The buffers have 16 rows, two for each leaf. If a leaf's rows come in succession, nothing is lost
    over random keys. If leaves alternate, at most half of these rows are.
    """
    bench = Bench(dut, stall=0.0, latency=8, interleave=False)
    await bench.start()
    n = 3 * bench.chunk
    cycles = {}
    for name, keys in adversarial(n, bench.random):
        cycles[name] = await bench.sort(keys)
        dut._log.info("%s: %d keys, %d cycles", name, n, cycles[name])
    merges = 4  # of each of three chunks, and of their runs
    for name, spent in cycles.items():
        most = (2 if name in ("sorted", "reversed", "equal", "organ pipe") else 8) * bench.leaves
        assert spent <= cycles["random"] + merges * most, name


@cocotb.test()
async def sort_errors_and_stops(dut):
    """Read errors, write errors and stops end a sort at any time. The next sort is correct."""
    bench = Bench(dut, stall=0.1, latency=10)
    await bench.start()
    count = 2 * bench.chunk + 5
    keys = random_keys(bench.random, count, 4)

    for page, error in ((SRC, 1), (TMP, 2), (DST, 2)):
        bench.ram.errors = {page >> 12}
        ended, _ = await bench.run(count)
        assert ended == (0, error), page
        bench.ram.errors = set()
        await bench.sort(keys)
    # The sort ends soon after a write error: it merges nothing further, and starts no further pass.
    long_count = 12_000
    first, second = (DST, TMP) if bench.passes(long_count) % 2 else (TMP, DST)  # targets of these passes
    for before, page in enumerate((SRC, first, second)):
        bench.ram.errors = {page >> 12}
        ended, _ = await bench.run(long_count)
        assert ended == (0, 1 if page == SRC else 2), page
        assert int(dut.progress_o.value) < max(1, before) * long_count, page

    async def fail_second_pass():
        await RisingEdge(dut.start_i)
        await ClockCycles(dut.clk_i, 4)
        while int(dut.progress_o.value) <= long_count:
            await RisingEdge(dut.clk_i)
        bench.ram.errors = set(range(first >> 12, (first + 8 * long_count >> 12) + 1))

    bench.ram.errors = set()
    cocotb.start_soon(fail_second_pass())
    ended, _ = await bench.run(long_count)
    assert ended == (0, 1)
    assert int(dut.progress_o.value) < 2 * long_count
    bench.ram.errors = set()
    total_cycles = await bench.sort(keys)
    for _ in range(12):
        pairs = bench.random.random() < 0.5
        ended, _ = await bench.run(count, stop=bench.random.randrange(total_cycles), pairs=pairs)
        assert ended in ((1, 0), (0, 0)), ended
        await bench.sort(keys[: bench.random.randrange(1, count)])
