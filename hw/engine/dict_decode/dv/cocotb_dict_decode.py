# SPDX-License-Identifier: Apache-2.0
"""dict_decode_core with a memory that reorders answers: widths, sizes, runs, hostile input, errors, stops."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from extent import LONG
from interleaving_ram import InterleavingRam
from parquet_runs import BAD_KEY, OK, OVERRUN, READ_ERROR, TRUNCATED, decode, encode, flat, packed, rle, varint

SIZE = 1 << 20
DICT, SRC, DST = 0, SIZE // 4, SIZE // 2
PLAIN, FIXED = 1 << 8, 1 << 9


class Bench:
    def __init__(self, dut, **ram):
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.ram = InterleavingRam(dut, "m_axi", SIZE, self.random.random(), **ram)
        self.dict_bytes = int(dut.DictBytes.value)
        cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())

    async def start(self):
        d = self.dut
        inputs = (d.dict_i, d.entries_i, d.src_i, d.bytes_i, d.dst_i, d.count_i, d.kind_i)
        for signal in (d.start_i, d.stop_i, *inputs):
            signal.value = 0
        d.rst_ni.value = 0
        await ClockCycles(d.clk_i, 4)
        d.rst_ni.value = 1
        cocotb.start_soon(self.ram.run())
        await ClockCycles(d.clk_i, 4)

    def entries(self, size):
        """Most values of a dictionary."""
        return min(1 << 16, self.dict_bytes >> size)

    async def run(self, bytes_, count, entries, kind, stop=None, src=SRC):
        """Starts a job and waits for its end. Returns (end, stopped, write error, position), and the cycles."""
        d = self.dut
        d.dict_i.value, d.src_i.value, d.dst_i.value = DICT, src, DST
        d.entries_i.value, d.bytes_i.value, d.count_i.value, d.kind_i.value = entries, bytes_, count, kind
        d.start_i.value = 1
        await RisingEdge(d.clk_i)
        d.start_i.value = 0
        for cycle in range(400_000):
            d.stop_i.value = stop is not None and cycle >= stop
            await RisingEdge(d.clk_i)
            if int(d.done_o.value):
                ended = tuple(int(s.value) for s in (d.end_o, d.stopped_o, d.write_error_o, d.position_o))
                await ClockCycles(d.clk_i, 3)
                assert not int(d.busy_o.value)
                assert not any(self.ram.reads.values())
                assert not self.ram.writes
                d.stop_i.value = 0
                return ended, cycle
        raise AssertionError("the job does not end")

    def prepare(self, data, entries, size):
        """Writes a column to the memory, with random bytes elsewhere, and returns the dictionary's values."""
        self.ram.data[:] = self.random.randbytes(SIZE)
        self.ram.data[SRC : SRC + len(data)] = data
        return [bytes(self.ram.data[DICT + (i << size) : DICT + (i + 1 << size)]) for i in range(entries)]

    async def decode(self, data, count, width, size, entries, fixed=False):
        """Decodes a column, and compares result and memory. Returns the cycles."""
        values = self.prepare(data, entries, size)
        keys, end = decode(data, count, width, entries, fixed)
        before = bytes(self.ram.data)
        ended, cycles = await self.run(len(data), count, entries, fixed * FIXED | size << 6 | width)
        what = f"{count} keys of {width} bits, 2^{size} bytes, {entries} entries, {len(data)} bytes"
        assert ended == (end, 0, 0, len(keys)), f"{what}: {ended}, not {end}, {len(keys)}"
        if end == OK:
            expected_bytes = b"".join(values[key] for key in keys)
            got = bytes(self.ram.data[DST : DST + len(expected_bytes)])
            if got != expected_bytes:
                place = next(i for i in range(len(got)) if got[i] != expected_bytes[i])
                raise AssertionError(f"{what}: byte {place} is wrong")
        tail = DST + (count << size)
        assert self.ram.data[tail:] == before[tail:], f"{what}: bytes outside the target have changed"
        assert self.ram.data[:DST] == before[:DST], f"{what}: bytes outside the target have changed"
        return cycles


def random_runs(rng, count, width, entries):
    """Random runs of `count` keys. Only the last bit-packed run can have a partial group."""
    top = min(entries, 1 << width)
    runs = []
    while count:
        if rng.random() < 0.5:
            length = min(count, rng.choice([rng.randrange(1, 10), rng.randrange(1, 80)]))
            runs.append((rng.randrange(top), length))
        else:
            length = min(count, 8 * rng.choice([1, 2, rng.randrange(1, 30)]))
            runs.append([rng.randrange(top) for _ in range(length)])
        count -= length
    return runs


@cocotb.test()
async def decode_all_key_widths(dut):
    """All key widths and value sizes, runs of all kinds, dictionaries of one, some and the most values."""
    bench = Bench(dut, stall=0.1, latency=10)
    await bench.start()
    rng = bench.random
    for width in range(33):
        for size in range(4) if LONG else (width & 3,):
            for entries in {1, rng.randrange(1, 40), rng.randrange(1, bench.entries(size)), bench.entries(size)}:
                count = rng.randrange(1, 400)
                runs = random_runs(rng, count, width, entries)
                await bench.decode(encode(runs, width), count, width, size, entries)


@cocotb.test()
async def decode_all_counts(dut):
    """Counts around groups, rows and beats."""
    bench = Bench(dut, stall=0.1, latency=10)
    await bench.start()
    rng = bench.random
    counts = [*range(1, 36), *(n + m for n in (48, 64, 128, 512, 1024) for m in (-1, 0, 1))]
    for count in counts:
        for size in range(4) if LONG else (count & 3,):
            width = rng.randrange(1, 17)
            entries = rng.randrange(1, bench.entries(size) + 1)
            top = min(entries, 1 << width)
            for runs in (
                random_runs(rng, count, width, entries),
                [[rng.randrange(top) for _ in range(count)]],
                [(rng.randrange(top), count)],
            ):
                await bench.decode(encode(runs, width), count, width, size, entries)


@cocotb.test()
async def decode_fixed_keys(dut):
    """Keys of 8, 16 and 32 bits without runs, also fewer than requested."""
    bench = Bench(dut, stall=0.1, latency=10)
    await bench.start()
    rng = bench.random
    for width in (8, 16, 32):
        for size in range(4):
            for count in (1, 7, 8, 9, 15, 16, 17, 63, 64, 65, rng.randrange(100, 700)):
                entries = rng.randrange(1, bench.entries(size) + 1)
                top = min(entries, 1 << width)
                data = b"".join(rng.randrange(top).to_bytes(width // 8, "little") for _ in range(count))
                await bench.decode(data, count, width, size, entries, fixed=True)
                await bench.decode(data + b"more", count, width, size, entries, fixed=True)
                await bench.decode(data[: rng.randrange(len(data))], count, width, size, entries, fixed=True)


@cocotb.test()
async def decode_plain_values(dut):
    """Values without a dictionary, also fewer than requested."""
    bench = Bench(dut, stall=0.1, latency=10)
    await bench.start()
    for size in range(4):
        for count in (1, 7, 8, 9, 63, 64, 65, 1000, 4097):
            data = bench.random.randbytes(count << size)
            bench.prepare(data, 0, size)
            ended, _ = await bench.run(len(data) + 3, count, 0, PLAIN | size << 6)
            assert ended == (OK, 0, 0, count)
            assert bytes(bench.ram.data[DST : DST + len(data)]) == data
            ended, _ = await bench.run(len(data) - 1, count, 0, PLAIN | size << 6)
            assert ended == (TRUNCATED, 0, 0, count - 1)


@cocotb.test()
async def decode_hostile_input(dut):
    """Bad keys, a source that ends at every byte, overlong headers, empty and overlong runs, noise."""
    bench = Bench(dut, stall=0.1, latency=5)
    await bench.start()
    rng = bench.random
    # The source ends at every byte.
    for width in (1, 7, 20):
        runs = [(1, 9), [rng.randrange(2) for _ in range(32)], (0, 200), [rng.randrange(2) for _ in range(24)]]
        data = encode(runs, width)
        for bytes_ in range(len(data) + 1):
            await bench.decode(data[:bytes_], len(flat(runs)), width, 2, 2)
    # One or several bad keys anywhere.
    for _ in range(150 if LONG else 50):
        width, size = rng.randrange(1, 33), rng.randrange(4)
        entries = rng.randrange(1, min(1 << width, bench.entries(size) + 1))
        count = rng.randrange(1, 200)
        keys = [rng.randrange(entries) for _ in range(count)]
        for _ in range(rng.choice([1, 1, 5])):
            keys[rng.randrange(count)] = rng.choice([entries, (1 << width) - 1, rng.randrange(entries, 1 << width)])
        await bench.decode(packed(keys, width), count, width, size, entries)
        data = packed([0] * 8, width) + rle(entries, 30, width)
        await bench.decode(data, 38, width, size, entries)
    # An RLE key with more bits than the key width.
    await bench.decode(varint(20 << 1) + b"\x05", 20, 2, 2, 8)
    await bench.decode(varint(20 << 1) + b"\xff", 20, 2, 2, 8)
    # Headers.
    start = rle(1, 19, 3)
    for bad in (
        b"\x80\x80\x80\x80\x80\x00",
        b"\xff" * 12,
        b"\xff\xff\xff\xff\x7f" + bytes(9),
        b"\x80\x80\x80\x80\x40" + bytes(9),
        b"\x80\x80\x00",
        b"\x00\x00",
        b"\x01" + bytes(8),
        b"\x90\x00\x01" + bytes(9),
        varint(101 << 1) + b"\1",
        varint(100 << 1) + b"\1",
        varint(14 << 1 | 1) + bytes(64),
        varint(13 << 1 | 1) + bytes(64),
    ):
        await bench.decode(start + bad, 119, 3, 2, 2)
    # Noise.
    ends = set()
    for _ in range(300):
        width, size = rng.choice([1, 2, 3, 8, 12, 17, rng.randrange(33)]), rng.randrange(4)
        count = rng.choice([rng.randrange(1, 100), rng.randrange(1, 3000)])
        entries = rng.choice([bench.entries(size), rng.randrange(1, 40)])
        data = bytes(rng.choice([rng.randrange(256), rng.randrange(1, 12)]) for _ in range(rng.randrange(300)))
        await bench.decode(data, count, width, size, entries)
        ends.add(decode(data, count, width, entries)[1])
    assert ends == {OK, TRUNCATED, OVERRUN, BAD_KEY}


@cocotb.test()
async def decode_errors_and_stops(dut):
    """Read errors and stops end a job at any time, write errors are reported. The next job is correct."""
    bench = Bench(dut, stall=0.1, latency=10)
    await bench.start()
    rng = bench.random
    width, size, count = 11, 2, 8000
    entries = min(2000, bench.entries(size))
    runs = random_runs(rng, count, width, entries)
    data = encode(runs, width)
    bench.prepare(data, entries, size)
    pages = (len(data) + 4095) // 4096
    for page in ((DICT >> 12), *((SRC >> 12) + i for i in range(pages))):
        for plain in (0, PLAIN):
            bench.ram.errors = {page}
            first = max(0, (page << 12) - SRC)
            if plain and page == DICT >> 12:
                continue
            ended, _ = await bench.run(
                len(data), len(data) >> 2 if plain else count, entries, plain | size << 6 | width
            )
            assert ended[:3] == (READ_ERROR, 0, 0), (page, ended)
            assert ended[3] == (first >> 2 if plain else 0) or (not plain and first and 0 < ended[3] < count), ended
    for place in (0, 1, (count << size) >> 12):
        bench.ram.errors = {(DST >> 12) + place}
        ended, _ = await bench.run(len(data), count, entries, size << 6 | width)
        assert ended == (OK, 0, 1, count), ended
    bench.ram.errors = set()
    total_cycles = await bench.decode(data, count, width, size, entries)
    stopped = 0
    for _ in range(40):
        plain = rng.choice([0, PLAIN])
        n = len(data) >> 2 if plain else count
        bench.prepare(data, entries, size)
        ended, _ = await bench.run(len(data), n, entries, plain | size << 6 | width, stop=rng.randrange(total_cycles))
        assert ended == (OK, 0, 0, n) or (ended[:3] == (OK, 1, 0) and ended[3] <= n), ended
        stopped += ended[1]
        short_count = rng.randrange(1, 100)
        await bench.decode(
            encode(random_runs(rng, short_count, width, entries), width), short_count, width, size, entries
        )
    assert stopped > 10


@cocotb.test()
async def decode_stop_in_each_cycle_of_an_error(dut):
    """A bad key and a stop in each cycle: the earlier of the two is reported, never both."""
    bench = Bench(dut, stall=0, latency=3, interleave=False)
    await bench.start()
    data, entries = encode([[0] * 32 + [9] + [0] * 31], 4), 9
    bench.prepare(data, entries, 0)
    ended, cycles = await bench.run(len(data), 64, entries, 4)
    end = ended[0]
    assert end != OK
    assert ended[1:] == (0, 0, 32)
    reported = set()
    for stop in range(cycles + 2):
        ended, _ = await bench.run(len(data), 64, entries, 4, stop=stop)
        assert ended == (end, 0, 0, 32) or (ended[:3] == (OK, 1, 0) and ended[3] <= 32), (stop, ended)
        reported.add(ended[:2])
    assert reported == {(end, 0), (OK, 1)}


@cocotb.test()
async def decode_errors_near_headers(dut):
    """Unreadable bytes after a header are reported where they are needed, and ignored after the last run."""
    bench = Bench(dut, stall=0.1, latency=10)
    await bench.start()
    page = 4096
    src = SRC + page - 64  # the next page is unreadable
    for width in (3, 8, 20, 32) if LONG else (3, 20):
        one = len(rle(0, 1, width))
        for length in (5, 100, 10_000):
            run = rle(1, length, width)
            for before in range(1, 14):  # readable bytes, from the header on
                # Fill with runs of one value, and with runs whose length takes one byte more.
                longer = (64 - before) % one
                shorter = (64 - before) // one - longer
                data = rle(0, 1, width) * shorter + rle(0, 64, width) * longer + run
                values = shorter + 64 * longer
                spare = max(0, before - len(run))  # bytes of a continued or overlong length
                data += b"\xff" * spare
                bench.prepare(b"", 2, 0)
                bench.ram.data[src : src + len(data)] = data
                bench.ram.errors = {(SRC + page) // page}
                what = f"{width} bits, {length} values, {before} bytes"
                readable = len(run) <= before
                good = (OK, 0, 0, values + length)
                ended, _ = await bench.run(5000, values + length, 2, width, src=src)
                assert ended == (good if readable else (READ_ERROR, 0, 0, values)), f"{what}: {ended}"
                # With one more value the next header is missing.
                end = TRUNCATED if spare >= 5 else READ_ERROR
                ended, _ = await bench.run(5000, values + length + 1, 2, width, src=src)
                assert ended == (end, 0, 0, values + length * readable), f"{what} and one: {ended}"
                # A source that ends there needs no byte of the next page.
                ended, _ = await bench.run(64, values + length, 2, width, src=src)
                assert ended == (good if readable else (TRUNCATED, 0, 0, values)), f"{what} at the end: {ended}"
                bench.ram.errors = set()


@cocotb.test()
async def decode_rates(dut):
    """Values per cycle of long columns, without the dictionary load. Logged, and checked against lower bounds."""
    bench = Bench(dut, stall=0.0, latency=8, interleave=False)
    await bench.start()
    rng = bench.random

    async def rate(what, least, size, width, entries, runs):
        data, count = encode(runs, width), len(flat(runs))
        load = await bench.decode(rle(0, 1, width), 1, width, size, entries)
        cycles = await bench.decode(data, count, width, size, entries) - load
        dut._log.info("%s: %d keys of %d bits, 2^%d bytes, %.2f a cycle", what, count, width, size, count / cycles)
        assert count / cycles >= least, (what, count / cycles)

    small = bench.dict_bytes // 16  # bytes of a dictionary that fits in one bank
    n = 24_000
    for width in (1, 4, 5, 8, 11, 16, 20, 32):
        for size in (1, 2):
            entries = min(small >> size, 1 << width)
            await rate("packed", 14, size, width, entries, [[rng.randrange(entries) for _ in range(n)]])
    await rate("packed, 8 bytes", 7.5, 3, 8, small >> 3, [[rng.randrange(min(small >> 3, 256)) for _ in range(n)]])
    await rate("one run", 14, 2, 8, 9, [(7, n)])
    await rate("runs of 504 packed", 12, 2, 8, 9, [[rng.randrange(9) for _ in range(504)] for _ in range(n // 504)])
    for length in (8, 16, 64):
        await rate(f"runs of {length}", 2, 2, 8, 9, [(rng.randrange(9), length) for _ in range(n // length)])
    for banks in (2, 4, 8, 16):
        entries = small * banks >> 2
        await rate(f"copies of {banks} banks", 3, 2, 16, entries, [[rng.randrange(entries) for _ in range(n)]])
    await rate("equal keys, 16 banks", 14, 2, 16, small * 16 >> 2, [[5] * n])
    await rate("one bank of 16", 0.9, 3, 16, small * 16 >> 3, [[16 * rng.randrange(small >> 3) for _ in range(n // 8)]])
