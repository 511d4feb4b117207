# SPDX-License-Identifier: Apache-2.0
"""row_shuffle_core with a memory that reorders answers: rows, lists, bad indexes, errors, stops."""

import random
import struct

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from interleaving_ram import InterleavingRam

SIZE = 1 << 19
LIST, SRC, DST = 0, SIZE // 8, SIZE // 2
READ_ERROR, WRITE_ERROR = 1, 2


class Bench:
    def __init__(self, dut, **ram):
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.ram = InterleavingRam(dut, "m_rows", SIZE, self.random.random(), **ram)
        self.list_ram = InterleavingRam(dut, "m_list", 0, self.random.random(), **ram)
        self.list_ram.data = self.ram.data
        self.list_ram.errors = self.ram.errors
        cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())

    async def start(self):
        d = self.dut
        for name in ("start", "index", "src", "dst", "count", "row_bytes", "rows", "records", "stop"):
            getattr(d, f"{name}_i").value = 0
        d.rst_ni.value = 0
        await ClockCycles(d.clk_i, 4)
        d.rst_ni.value = 1
        cocotb.start_soon(self.ram.run())
        cocotb.start_soon(self.list_ram.run())
        await ClockCycles(d.clk_i, 4)

    def table(self, indexes, records):
        """Writes the index list, with random bytes elsewhere."""
        self.ram.data[:] = self.random.randbytes(SIZE)
        stride = 4 << records
        for n, index in enumerate(indexes):
            address = LIST + n * stride + (stride // 2 if records else 0)
            self.ram.data[address : address + 4] = struct.pack("<I", index)

    async def run(self, count, row_bytes, rows, records=0, src=SRC, dst=DST, stop=None):
        """Starts a gather and waits for its end. Returns ((stopped, bad index, errors), position, cycles)."""
        d = self.dut
        d.index_i.value, d.src_i.value, d.dst_i.value = LIST, src, dst
        d.count_i.value, d.row_bytes_i.value, d.rows_i.value, d.records_i.value = count, row_bytes, rows, records
        d.start_i.value = 1
        await RisingEdge(d.clk_i)
        d.start_i.value = 0
        for cycle in range(200_000):
            d.stop_i.value = stop is not None and cycle >= stop
            await RisingEdge(d.clk_i)
            if int(d.done_o.value):
                flags = (int(d.stopped_o.value), int(d.bad_index_o.value), int(d.errors_o.value))
                await ClockCycles(d.clk_i, 4)
                assert not int(d.busy_o.value)
                d.stop_i.value = 0
                return flags, int(d.position_o.value), cycle
        raise AssertionError("the job does not end")

    def expected(self, indexes, row_bytes, src, dst):
        after = bytearray(self.ram.data)
        for n, index in enumerate(indexes):
            address = src + index * row_bytes
            after[dst + n * row_bytes : dst + (n + 1) * row_bytes] = self.ram.data[address : address + row_bytes]
        return after

    async def gather(self, indexes, row_bytes, rows, records=0, src=SRC, dst=DST):
        self.table(indexes, records)
        expected_bytes = self.expected(indexes, row_bytes, src, dst)
        flags, position, cycles = await self.run(len(indexes), row_bytes, rows, records, src, dst)
        assert (flags, position) == ((0, 0, 0), len(indexes))
        assert self.ram.data == expected_bytes, (len(indexes), row_bytes, records, src, dst)
        return cycles


@cocotb.test()
async def gather_all_row_sizes(dut):
    """Rows of 1 byte to 64 KiB at any alignment, with all list formats."""
    bench = Bench(dut, stall=0.1, latency=10)
    await bench.start()
    r = bench.random
    for row_bytes in (1, 3, 4, 16, 63, 64, 65, 100, 256, 1000, 4096, 5000, 65536):
        for records in range(4):
            rows = min(300, (DST - SRC - 64) // row_bytes)
            most = min(70, (SIZE - DST - 64) // row_bytes)
            indexes = [r.randrange(rows) for _ in range(r.randint(1, max(1, most)))]
            aligned = r.random() < 0.5
            src, dst = (SRC, DST) if aligned else (SRC + r.randrange(64), DST + r.randrange(64))
            await bench.gather(indexes, row_bytes, rows, records, src, dst)


@cocotb.test()
async def gather_all_counts(dut):
    """List lengths around beats and around read requests."""
    bench = Bench(dut, stall=0.1, latency=10)
    await bench.start()
    for count in (*range(1, 36), 1023, 1024, 1025, 2049):
        await bench.gather([bench.random.randrange(50) for _ in range(count)], 16, 50)


@cocotb.test()
async def gather_bad_indexes(dut):
    """The first index past the table ends the job. Only the rows before it are written."""
    bench = Bench(dut, stall=0.1, latency=10)
    await bench.start()
    r = bench.random
    for bad in (100, 101, 1 << 31, (1 << 32) - 1):
        for place in (0, 1, 15, 16, 60, 99):
            indexes = [r.randrange(100) for _ in range(100)]
            indexes[place] = bad
            bench.table(indexes, 0)
            expected_bytes = bench.expected(indexes[:place], 64, SRC, DST)
            flags, position, _ = await bench.run(100, 64, 100)
            assert (flags, position) == ((0, 1, 0), place)
            assert bench.ram.data == expected_bytes


@cocotb.test()
async def gather_errors_and_stops(dut):
    """Errors are reported, a stop ends the job at any time. The next gather is correct."""
    bench = Bench(dut, stall=0.1, latency=10)
    await bench.start()
    r = bench.random
    indexes = [r.randrange(200) for _ in range(150)]
    for page, error in ((LIST >> 12, READ_ERROR), (SRC >> 12, READ_ERROR), (DST >> 12, WRITE_ERROR)):
        bench.table(indexes, 0)
        bench.ram.errors.add(page)
        flags, _, _ = await bench.run(len(indexes), 128, 200)
        assert flags[:2] == (0, 0)
        assert flags[2] & error, page
        bench.ram.errors.clear()
        await bench.gather(indexes, 128, 200)
    total_cycles = await bench.gather(indexes, 128, 200)
    for _ in range(12):
        bench.table(indexes, 0)
        expected_bytes = bench.expected(indexes, 128, SRC, DST)
        flags, position, _ = await bench.run(len(indexes), 128, 200, stop=r.randrange(total_cycles))
        assert flags in ((1, 0, 0), (0, 0, 0)), flags
        end = DST + 128 * position
        assert bench.ram.data[:end] == expected_bytes[:end]
        await bench.gather(indexes, 128, 200)


@cocotb.test()
async def gather_rate(dut):
    """Rows of at least 256 bytes take a cycle for each beat; the memory never stalls."""
    bench = Bench(dut, stall=0.0, latency=8, interleave=False)
    await bench.start()
    for row_bytes, least in ((16, 0.14), (64, 0.6), (256, 0.95), (1024, 0.95), (4096, 0.95)):
        count = min(400, (SIZE - DST) // row_bytes)
        rows = (DST - SRC) // row_bytes
        cycles = await bench.gather([bench.random.randrange(rows) for _ in range(count)], row_bytes, rows)
        rate = count * row_bytes / 64 / cycles
        dut._log.info("%d rows of %d bytes: %.2f beats a cycle", count, row_bytes, rate)
        assert rate >= least, row_bytes
