# SPDX-License-Identifier: Apache-2.0
"""pipeline as a whole engine: all interfaces, errors of entries and lists, stops, reports, progress."""

import struct

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from engine_bench import BASE, BLOCKS, CONTROL, RESULT, SIZE, STATUS, EngineBench
from parquet_runs import packed

ARGUMENTS = ("list", "count", "base", "bytes", "kind")
READ_ERROR, STOPPED, INVALID, WRITE_ERROR, BAD_ENTRY, BAD_DATA = (1 << i for i in range(6))
INVALID_FIELD, OUT_OF_RANGE, READ_FAULT, WRITE_FAULT = 0x02, 0x80, 0x281, 0x280
SORT, DECODE, SHUFFLE, PIPELINE = 0xD0, 0xD4, 0xD8, 0xDC
PROGRESS, ITEMS, CYCLES = 0x100, 0x104, 0x140
# Offsets in the namespace, in pages.
LIST, DICT, RUNS, KEYS, INDEXES, TABLE, ROWS = 1, 2, 3, 4, 8, 16, 64
REPORT = 1


def address(page):
    return BASE * 512 + (page << 12)


class Bench(EngineBench):
    def __init__(self, dut):
        super().__init__(dut, ARGUMENTS)

    def write_tables(self, count=100, row=24):
        """Writes a column of 3-bit keys and a table. Returns entries that sort the rows by it, and the result."""
        data, r = self.ram.data, self.random
        keys = [r.randrange(6) for _ in range(count)]
        runs = packed(keys, 3)
        data[address(RUNS) : address(RUNS) + len(runs)] = runs
        values = [struct.unpack_from("<I", data, address(DICT) + 4 * key)[0] for key in keys]
        order = sorted(range(count), key=lambda n: values[n])
        rows = [bytes(data[address(TABLE) + row * n :][:row]) for n in order]
        data[address(ROWS) : address(ROWS) + row * count] = bytes(row * count)
        entries = [
            self.sqe(DECODE, [DICT, RUNS, KEYS, count, len(runs), 5 | 3 << 16 | 2 << 24]),
            self.sqe(SORT, [KEYS, INDEXES, 0, count, 1 << 5, 0]),
            self.sqe(SHUFFLE, [INDEXES, TABLE, ROWS, count, count, row]),
        ]
        return entries, b"".join(rows)

    def write_list(self, entries):
        data = b"".join(entries)
        self.ram.data[address(LIST) : address(LIST) + len(data)] = data
        # Pattern after the reports.
        self.ram.data[address(LIST) + len(data) : address(LIST) + 2048] = b"\xa5" * (2048 - len(data))

    def reports(self, entries):
        """Returns of each entry: reported, status, dword 0, cycles."""
        found = []
        for n in range(entries):
            status, _, value, cycles = struct.unpack_from("<HHIQ", self.ram.data, address(LIST) + 64 * (entries + n))
            found.append((status & 1, status >> 1 & 0x7FF, value, cycles))
        return found

    async def by_registers(self, entries, **changes):
        self.write_list(entries)
        usual = {"list": address(LIST), "count": len(entries), "base": BASE * 512, "bytes": BLOCKS * 512, "kind": 0}
        return await self.launch(**{**usual, **changes})

    async def by_page(self, entries, **changes):
        self.write_list(entries)
        usual = {"list": address(LIST), "count": len(entries), "base": BASE * 512, "bytes": BLOCKS * 512, "kind": 0}
        return await self.page(**{**usual, **changes})

    async def by_command(self, entries, kind=0, place=LIST, count=None, more=(0, 0, 0)):
        self.write_list(entries)
        count = len(entries) if count is None else count
        return await self.send(self.sqe(PIPELINE, [place, more[0], more[1], count, kind, more[2]]))


@cocotb.test()
async def pipeline_through_all_interfaces(dut):
    """Registers, command page and NVMe commands sort the rows. Reports and registers give the same cycles."""
    bench = Bench(dut)
    await bench.start()
    for _ in range(3):
        for way in (bench.by_registers, bench.by_page, bench.by_command):
            count = bench.random.randrange(1, 300)
            entries, expected_rows = bench.write_tables(count)
            assert await way(entries, kind=REPORT) == (0, 3), way
            assert bench.ram.data[address(ROWS) : address(ROWS) + len(expected_rows)] == expected_rows
            assert bench.ram.data[address(LIST) : address(LIST) + 192] == b"".join(entries)
            reports = bench.reports(3)
            assert [one[:2] for one in reports] == [(1, 0)] * 3
            passes = reports[1][2]
            assert (reports[0][2], reports[2][2]) == (count, count)
            assert passes in (1, 2, 3)
            assert bench.ram.data[address(LIST) + 384 : address(LIST) + 2048] == b"\xa5" * 1664
            cycles = [await bench.read(CYCLES + 4 * n) for n in range(16)]
            assert cycles == [one[3] for one in reports] + [0] * 13
            assert all(10 < c < 100_000 for c in cycles[:3])
            assert await bench.read(PROGRESS) == 2
            assert await bench.read(ITEMS) == count


@cocotb.test()
async def pipeline_lists_of_any_length(dut):
    """Lists of 1 to 16 entries, in any order of kernels, with and without reports."""
    bench = Bench(dut)
    await bench.start()
    for count in (1, 2, 5, 15, 16):
        for kind in (0, REPORT):
            all_of_them, _ = bench.write_tables(20)
            entries = [all_of_them[bench.random.randrange(3)] for _ in range(count)]
            assert (await bench.by_registers(all_of_them))[0] == 0
            assert await bench.by_command(entries, kind) == (0, count)
            if kind:
                assert [one[:2] for one in bench.reports(count)] == [(1, 0)] * count
            end = address(LIST) + 64 * count * (1 + kind)
            assert bench.ram.data[end : address(LIST) + 2048] == b"\xa5" * (address(LIST) + 2048 - end)


@cocotb.test()
async def pipeline_bad_entries(dut):
    """The first invalid or failing entry ends the list. Its number and the reason are reported."""
    bench = Bench(dut)
    await bench.start()
    pages = BLOCKS >> 3
    entry = bench.sqe
    for bad, result, status, value in (
        (entry(0xDC, [LIST, 0, 0, 1, 0, 0]), BAD_ENTRY, INVALID_FIELD, 0),
        (entry(0, [0] * 6), BAD_ENTRY, INVALID_FIELD, 0),
        (entry(SORT | 1 << 8, [KEYS, INDEXES, 0, 9, 0, 0]), BAD_ENTRY, INVALID_FIELD, 0),
        (b"\xd0" + bytes(38) + b"\x80" + entry(0, [KEYS, INDEXES, 0, 9, 0, 0])[40:], BAD_ENTRY, INVALID_FIELD, 0),
        (entry(SORT, [KEYS, INDEXES, 0, 9, 1 << 7, 0]), BAD_ENTRY, INVALID_FIELD, 0),
        (entry(SORT, [KEYS, INDEXES, 0, 0, 0, 0]), BAD_ENTRY, INVALID_FIELD, 0),
        (entry(SORT, [KEYS, KEYS, 0, 9, 0, 0]), BAD_ENTRY, INVALID_FIELD, 0),
        (entry(SORT, [pages, INDEXES, 0, 9, 0, 0]), BAD_ENTRY, OUT_OF_RANGE, 0),
        (entry(SORT, [KEYS, 0xFFFF_FFFF, 0, 9, 0, 0]), BAD_ENTRY, OUT_OF_RANGE, 0),
        (entry(SHUFFLE, [INDEXES, TABLE, pages - 1, 9, 9, 456]), BAD_ENTRY, OUT_OF_RANGE, 0),
        (entry(SHUFFLE, [INDEXES, TABLE, ROWS, 9, 9, 1 << 17]), BAD_ENTRY, INVALID_FIELD, 0),
        (entry(SHUFFLE, [INDEXES, TABLE, INDEXES, 9, 9, 9]), BAD_ENTRY, INVALID_FIELD, 0),
        (entry(SHUFFLE, [INDEXES, TABLE, ROWS, 100, 1, 24]), BAD_DATA, INVALID_FIELD, None),
        (entry(DECODE, [DICT, RUNS, KEYS, 9, 9, 1 << 28]), BAD_ENTRY, INVALID_FIELD, 0),
        (entry(DECODE, [DICT, pages, KEYS, 9, 9, 3 << 16]), BAD_ENTRY, OUT_OF_RANGE, 0),
        (entry(DECODE, [DICT, RUNS, KEYS, 100, 3, 5 | 3 << 16 | 2 << 24]), BAD_DATA, INVALID_FIELD, None),
    ):
        good, _ = bench.write_tables(100)
        for place in (0, 1, 2):
            entries = [good[0], good[1], good[2]]
            entries.insert(place, bad)
            bench.ram.data[address(ROWS) : address(ROWS) + 2400] = bytes(2400)
            assert (await bench.by_registers(good[:2]))[0] == 0
            what = (bad.hex(), place)
            assert await bench.by_registers(entries, kind=REPORT) == (result, place), what
            reports = bench.reports(4)
            assert [one[0] for one in reports[: place + 1]] == [1] * (place + 1), what
            assert reports[place][1] == status, what
            if value is not None:
                assert reports[place][2] == value, what
            assert await bench.by_command(entries) == (status, place), what
            if bad[0] != SHUFFLE:
                assert bench.ram.data[address(ROWS) : address(ROWS) + 2400] == bytes(2400), what
            assert await bench.read(PROGRESS) == place


@cocotb.test()
async def pipeline_bad_lists(dut):
    """Invalid and unreadable lists change no memory. Reports that cannot be written are an error."""
    bench = Bench(dut)
    await bench.start()
    entries, expected_rows = bench.write_tables(30)
    before = bytes(bench.ram.data[address(2) :])
    for change in (
        {"list": address(LIST) + 64},
        {"list": 1 << 11},
        {"count": 0},
        {"count": 17},
        {"count": 1 << 32},
        {"count": 3 | 1 << 63},
        {"base": 512},
        {"bytes": 100},
        {"base": (1 << 64) - 4096, "bytes": 8192},
        {"list": (1 << 64) - 4096, "bytes": (1 << 64) - 512},
        {"kind": 2},
        {"kind": 1 << 32},
    ):
        way = bench.random.choice([bench.by_registers, bench.by_page])
        assert await way(entries, **change) == (INVALID, 0), change
    last = (BLOCKS >> 3) - 1
    for change, status in (
        ({"count": 0}, INVALID_FIELD),
        ({"count": 17}, INVALID_FIELD),
        ({"kind": 2}, INVALID_FIELD),
        ({"kind": 1 << 31}, INVALID_FIELD),
        ({"more": (1, 0, 0)}, INVALID_FIELD),
        ({"more": (0, 1, 0)}, INVALID_FIELD),
        ({"more": (0, 0, 1 << 31)}, INVALID_FIELD),
        ({"place": last, "count": 65}, OUT_OF_RANGE),
        ({"place": last, "count": 33, "kind": REPORT}, OUT_OF_RANGE),
        ({"place": last + 1}, OUT_OF_RANGE),
        ({"place": 0xFFFF_FFFF}, OUT_OF_RANGE),
        ({"count": 0xFFFF_FFFF}, OUT_OF_RANGE),
    ):
        assert await bench.by_command(entries, **change) == (status, 0), change
    assert bench.ram.data[address(2) :] == before
    # Lists past the memory, and in pages with errors.
    assert await bench.by_registers(entries, list=SIZE) == (READ_ERROR, 0)
    bench.ram.errors = {address(LIST) >> 12}
    assert await bench.by_registers(entries) == (READ_ERROR, 0)
    assert await bench.by_command(entries) == (READ_FAULT, 0)
    bench.ram.errors = {address(KEYS) >> 12}
    assert await bench.by_registers(entries) == (WRITE_ERROR, 0)
    assert await bench.by_command(entries, REPORT) == (WRITE_FAULT, 0)
    assert bench.reports(3)[0][:2] == (1, WRITE_FAULT)
    bench.ram.errors = {address(TABLE) >> 12}
    assert await bench.by_registers(entries) == (READ_ERROR, 2)
    assert await bench.by_command(entries, REPORT) == (READ_FAULT, 2)
    assert bench.reports(3)[2][:2] == (1, READ_FAULT)
    bench.ram.errors = set()

    async def fail_reports(others):
        bench.ram.errors = others
        await ClockCycles(dut.clk_i, 150)  # the list has been read
        bench.ram.errors = others | {address(LIST) >> 12}

    # Of two errors the status is that of the first: an entry's error precedes that of the reports.
    # The return value has both.
    table, keys = {address(TABLE) >> 12}, {address(KEYS) >> 12}
    for others, way, ended in (
        (set(), bench.by_page, (WRITE_ERROR, 3)),
        (set(), bench.by_command, (WRITE_FAULT, 3)),
        (table, bench.by_page, (READ_ERROR | WRITE_ERROR, 2)),
        (table, bench.by_command, (READ_FAULT, 2)),
        (keys, bench.by_page, (WRITE_ERROR, 0)),
        (keys, bench.by_command, (WRITE_FAULT, 0)),
    ):
        failing = cocotb.start_soon(fail_reports(others))
        assert await way(entries, kind=REPORT) == ended, (others, ended)
        await failing
        bench.ram.errors = set()
    assert await bench.by_command(entries) == (0, 3)
    assert bench.ram.data[address(ROWS) : address(ROWS) + len(expected_rows)] == expected_rows
    # Base and bytes bound the accesses of entries.
    assert await bench.by_registers(entries, bytes=ROWS << 12) == (BAD_ENTRY, 2)
    assert await bench.by_registers(entries, base=address(1)) == (BAD_DATA, 0)


@cocotb.test()
async def pipeline_stops(dut):
    """Stops of register and NVMe jobs at any time of any entry. The next list is correct."""
    bench = Bench(dut)
    await bench.start()
    d = dut
    entries, _ = bench.write_tables(300)
    bench.write_list(entries)
    assert await bench.by_command(entries) == (0, 3)
    cycles = [await bench.read(CYCLES + 4 * n) for n in range(3)]
    total_cycles = sum(cycles) + 100
    stopped, amid = 0, set()
    for n in range(40):
        entries, expected_rows = bench.write_tables(300)
        bench.write_list(entries)
        wait = bench.random.randrange(total_cycles) if n > 8 else n
        sqe = bench.sqe(PIPELINE, [LIST, 0, 0, 3, 0, 0])
        if n % 2:
            d.sqe_i.value = int.from_bytes(sqe, "little")
            d.cmd_valid_i.value = 1
            await bench.until(d.cmd_ready_o)
            d.cmd_valid_i.value = 0
            for _ in range(wait):
                await RisingEdge(d.clk_i)
                if int(d.done_valid_o.value):
                    break
            else:
                d.stop_i.value = 1
                await RisingEdge(d.clk_i)
                d.stop_i.value = 0
                while not int(d.done_valid_o.value):
                    await RisingEdge(d.clk_i)
                assert int(d.status_o.value) == 0 or int(d.stopped_o.value)
                stopped += int(d.stopped_o.value)
        else:
            for i, value in enumerate((address(LIST), 3, BASE * 512, BLOCKS * 512, 0)):
                await bench.write(0x20 + 0x10 * i, value)
                await bench.write(0x24 + 0x10 * i, value >> 32)
            await bench.write(CONTROL, 1)
            await ClockCycles(d.clk_i, wait)
            await bench.write(CONTROL, 2)
            while not await bench.read(CONTROL) & 4:
                pass
            result = await bench.read(RESULT)
            assert result in (0, STOPPED), result
            stopped += result == STOPPED
            if result:
                amid.add(await bench.read(PROGRESS))
            await bench.write(STATUS, 1)
        await ClockCycles(d.clk_i, 20)
        assert not int(d.busy_o.value)
        assert await bench.by_command(entries) == (0, 3)
        assert bench.ram.data[address(ROWS) : address(ROWS) + len(expected_rows)] == expected_rows
    assert stopped > 20
    assert amid >= {0, 1, 2}


@cocotb.test()
async def pipeline_stops_in_each_cycle(dut):
    """Stops a short list in each of its cycles, also between entries. It ends; the next list is correct."""
    bench = Bench(dut)
    await bench.start()
    d = dut
    bench.ram.stall = bench.ram.latency = 0
    entries, expected_rows = bench.write_tables(1)
    bench.write_list(entries)
    d.sqe_i.value = int.from_bytes(bench.sqe(PIPELINE, [LIST, 0, 0, 3, 0, 0]), "little")
    d.base_i.value, d.blocks_i.value = BASE, BLOCKS
    stopped = 0
    for wait in range(2000):
        d.cmd_valid_i.value = 1
        await bench.until(d.cmd_ready_o)
        d.cmd_valid_i.value = 0
        over = False
        for _ in range(wait):
            await RisingEdge(d.clk_i)
            over = over or int(d.done_valid_o.value)
        if over:
            break
        d.stop_i.value = 1
        await RisingEdge(d.clk_i)
        d.stop_i.value = 0
        for _ in range(5000):
            if int(d.done_valid_o.value):
                break
            await RisingEdge(d.clk_i)
        else:
            raise AssertionError(f"the list does not end after a stop in cycle {wait}")
        assert int(d.status_o.value) == 0 or int(d.stopped_o.value), wait
        stopped += int(d.stopped_o.value)
        await ClockCycles(d.clk_i, 5)
        assert not int(d.busy_o.value), wait
    assert over, wait
    assert stopped > 100, stopped
    assert await bench.by_command(entries) == (0, 3)
    assert bench.ram.data[address(ROWS) : address(ROWS) + len(expected_rows)] == expected_rows


@cocotb.test()
async def pipeline_progress(dut):
    """The registers show entry, items and cycles of a running list, and none of them decreases."""
    bench = Bench(dut)
    await bench.start()
    entries, _ = bench.write_tables(300)
    bench.write_list(entries)
    dut.sqe_i.value = int.from_bytes(bench.sqe(PIPELINE, [LIST, 0, 0, 3, 0, 0]), "little")
    dut.base_i.value, dut.blocks_i.value = BASE, BLOCKS
    dut.cmd_valid_i.value = 1
    await bench.until(dut.cmd_ready_o)
    dut.cmd_valid_i.value = 0
    await RisingEdge(dut.clk_i)
    seen, items, cycles = [], {}, {}
    while int(dut.busy_o.value):
        status = await bench.read(PROGRESS)
        if not status >> 8:
            continue
        entry = status & 15
        item, cycle = await bench.read(ITEMS), await bench.read(CYCLES + 4 * entry)
        if (await bench.read(PROGRESS)) != status:
            continue
        seen.append(entry)
        assert item >= items.get(entry, 0)
        assert cycle >= cycles.get(entry, 0)
        items[entry], cycles[entry] = item, cycle
        if entry == 2 and item == 300:
            break
    assert seen == sorted(seen)
    assert set(seen) == {0, 1, 2}
    assert 0 < items[0] <= 300
    assert items[2] == 300
    await ClockCycles(dut.clk_i, 2000)
    assert await bench.read(PROGRESS) == 2
