# SPDX-License-Identifier: Apache-2.0
"""dict_decode as a whole engine: registers, NVMe commands and command page, and their argument checks."""

import cocotb
from cocotb.triggers import ClockCycles
from engine_bench import BASE, CONTROL, RESULT, SIZE, STATUS, EngineBench
from parquet_runs import packed, rle, varint

DICT, SRC, DST = 0x10000, 0x20000, 0x40000
ARGUMENTS = ("dict", "entries", "src", "bytes", "dst", "count", "kind")
READ_ERROR, STOPPED, INVALID, WRITE_ERROR, BAD_KEY, TRUNCATED, OVERRUN = (1 << i for i in range(7))
INVALID_FIELD, OUT_OF_RANGE, READ_FAULT, WRITE_FAULT = 0x02, 0x80, 0x281, 0x280
PLAIN, FIXED = 1 << 16, 1 << 17


class Bench(EngineBench):
    def __init__(self, dut):
        super().__init__(dut, ARGUMENTS)

    def column(self, count=100):
        """Writes a column of 3-bit keys and 4-byte values. Returns the arguments and the expected bytes."""
        keys = [self.random.randrange(6) for _ in range(count)]
        data = packed(keys, 3)
        self.ram.data[SRC : SRC + len(data)] = data
        self.ram.data[DST : DST + 4 * count] = bytes(4 * count)
        expected_bytes = b"".join(bytes(self.ram.data[DICT + 4 * key :][:4]) for key in keys)
        return {
            "dict": DICT,
            "entries": 6,
            "src": SRC,
            "bytes": len(data),
            "dst": DST,
            "count": count,
            "kind": 2 << 8 | 3,
        }, expected_bytes

    async def command(self, more=0, **arguments):
        """Decodes by an NVMe command with additional bits in dword 15. Returns status and dword 0."""
        a = arguments
        kind = a["kind"]
        cdw15 = a["entries"] - 1 & 0xFFFF | (kind & 0x3F) << 16 | (kind >> 8 & 3) << 24 | (kind >> 16 & 3) << 26 | more
        places = [(a[name] - BASE * 512) >> 12 for name in ("dict", "src", "dst")]
        return await self.send(self.sqe(0xD4, [*places, a["count"], a["bytes"], cdw15]))


@cocotb.test()
async def decode_through_all_interfaces(dut):
    """Registers, command page and NVMe commands decode the same column and report the same errors."""
    bench = Bench(dut)
    await bench.start()
    for _ in range(4):
        for way in (bench.launch, bench.page, bench.command):
            arguments, expected_bytes = bench.column(bench.random.randrange(1, 300))
            assert await way(**arguments) == (0, arguments["count"]), way
            assert bench.ram.data[DST : DST + len(expected_bytes)] == expected_bytes
    for data, result, position in (
        (rle(2, 10, 3) + rle(6, 90, 3), BAD_KEY, 10),
        (rle(2, 10, 3) + rle(5, 20, 3), TRUNCATED, 30),
        (rle(2, 10, 3) + varint(91 << 1) + b"\0", OVERRUN, 10),
    ):
        arguments, _ = bench.column()
        bench.ram.data[SRC : SRC + len(data)] = data
        arguments["bytes"] = len(data)
        assert await bench.launch(**arguments) == (result, position)
        assert await bench.page(**arguments) == (result, position)
        assert await bench.command(**arguments) == (INVALID_FIELD, position)
    arguments, _ = bench.column()
    for place, result, status in (
        (SRC, READ_ERROR, READ_FAULT),
        (DICT, READ_ERROR, READ_FAULT),
        (DST, WRITE_ERROR, WRITE_FAULT),
    ):
        bench.ram.errors = {place >> 12}
        position = 100 if place == DST else 0
        assert await bench.launch(**arguments) == (result, position)
        assert await bench.page(**arguments) == (result, position)
        assert await bench.command(**arguments) == (status, position)
    bench.ram.errors = set()
    assert await bench.command(**arguments) == (0, 100)


@cocotb.test()
async def decode_rejects_invalid_arguments(dut):
    """Invalid arguments change no memory. The limits themselves are valid."""
    bench = Bench(dut)
    await bench.start()
    good, _ = bench.column()
    most = int(dut.DictBytes.value)
    wrong = [
        {"dict": DICT + 32},
        {"src": SRC + 8},
        {"dst": DST + 1},
        {"entries": 0},
        {"entries": 65537},
        {"entries": (most >> 2) + 1},
        {"entries": 1 << 40},
        {"count": 0},
        {"count": (1 << 31) + 1},
        {"count": 1 << 32},
        {"bytes": (1 << 40) + 1},
        {"kind": 2 << 8 | 33},
        {"kind": 63},
        {"kind": 1 << 6 | 3},
        {"kind": 1 << 10 | 3},
        {"kind": 1 << 18 | 3},
        {"kind": 1 << 63 | 3},
        {"kind": PLAIN | FIXED | 8},
        {"kind": FIXED | 3},
        {"kind": FIXED | 24},
        {"dst": SRC},
        {"dst": DICT},
        {"src": DICT},
        {"dst": SRC - 64},
        {"dst": (1 << 64) - 64},
        {"src": (1 << 64) - 64, "bytes": 65},
        {"dict": (1 << 64) - 64, "entries": 17},
    ]
    before = bytes(bench.ram.data)
    for change in wrong:
        way = bench.random.choice([bench.launch, bench.page])
        assert await way(**{**good, **change}) == (INVALID, 0), change
    for change in ({"kind": 2 << 8 | 33}, {"kind": PLAIN | FIXED | 8}, {"count": 0}, {"dst": SRC}):
        assert await bench.command(**{**good, **change}) == (INVALID_FIELD, 0), change
    for bit in (22, 23, 28, 31):
        assert await bench.command(more=1 << bit, **good) == (INVALID_FIELD, 0), bit
    last = SIZE - 4096
    for change in (
        {"dict": SIZE},
        {"src": SIZE},
        {"dst": SIZE},
        {"dst": last, "count": 1025},
        {"src": last, "bytes": 4097},
        {"src": (1 << 44) - 4096 + 512 * BASE},
    ):
        assert await bench.command(**{**good, **change}) == (OUT_OF_RANGE, 0), change
    assert bench.ram.data == before
    # Adjacent ranges, and unused arguments.
    fits = [
        {"entries": most >> 2},
        {"kind": 2 << 8, "bytes": 0},
        {"kind": 2 << 8, "src": SRC + 1, "bytes": 0},
        {"dst": DICT + 64},
        {"dst": SRC + 64},
        {"dict": DST - 64, "entries": 16},
    ]
    for change in fits:
        good, _ = bench.column()
        result, position = await bench.launch(**{**good, **change})
        assert (result, position) == (0, 100) or (result == BAD_KEY and "dict" not in change), (change, result)
    for change in ({"dst": last}, {"dict": last}):
        good, _ = bench.column()
        assert await bench.command(**{**good, **change}) == (0, 100), change
    plain = {"dict": DST + 1, "entries": 0, "src": SRC, "bytes": 400, "dst": DST, "count": 100, "kind": PLAIN | 2 << 8}
    assert await bench.launch(**plain) == (0, 100)
    assert bench.ram.data[DST : DST + 400] == bench.ram.data[SRC : SRC + 400]
    assert await bench.page(**{**plain, "bytes": 399}) == (TRUNCATED, 99)


@cocotb.test()
async def decode_stops_by_registers(dut):
    """Stops at any time. The next job is correct."""
    bench = Bench(dut)
    await bench.start()
    stopped = 0
    for wait in (0, 1, 2, 3, 4, 5, 8, 20, 100, 300):
        bench.ram.data[SRC : SRC + 8] = rle(3, 4000, 3).ljust(8, b"\0")
        arguments = {"dict": DICT, "entries": 6, "src": SRC, "bytes": 3, "dst": DST, "count": 4000, "kind": 2 << 8 | 3}
        assert await bench.launch(**arguments) == (0, 4000)
        await bench.write(CONTROL, 1 if wait else 3)
        await ClockCycles(dut.clk_i, wait)
        await bench.write(CONTROL, 2)
        while not await bench.read(CONTROL) & 4:
            pass
        result = await bench.read(RESULT)
        assert result in (0, STOPPED), result
        stopped += result == STOPPED
        await bench.write(STATUS, 1)
        arguments, expected_bytes = bench.column()
        assert await bench.launch(**arguments) == (0, 100)
        assert bench.ram.data[DST : DST + len(expected_bytes)] == expected_bytes
    assert stopped > 5
