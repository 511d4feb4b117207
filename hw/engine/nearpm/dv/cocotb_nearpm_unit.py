# SPDX-License-Identifier: Apache-2.0
"""A unit with a memory that answers in any order: operations, torn records, errors, power cuts."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from interleaving_ram import InterleavingRam
from nearpm_model import (
    ABORT,
    APPLY,
    CHECKPOINT,
    CHECKPOINT_RANGES,
    COMMIT,
    COMMIT_REDO,
    COPY,
    DELETE,
    KINDS,
    LOG_OPEN,
    POOL_UNMAP,
    READ_ERROR,
    RECOVER,
    REDO,
    SWITCH,
    SYNC,
    TORN,
    UNDO,
    UNDO_RANGES,
    WRITE_ERROR,
    descriptor,
    padded,
    record,
    seal,
)

SIZE = 1 << 20
POOL, POOL_BYTES = 0x8000, 0x80000
LOGS, LOG_BYTES = 0x40000, 0x20000
LOG = 0x23  # pool 2, thread 3
BASE = POOL + LOGS + 3 * 0x8000
GENERATION, TRANSACTION = 0x1234_5678_9ABC, 77
UNKNOWN = 0xFFFF_FFFF
NEVER = 0xFFFF_FFFF


class Bench:
    def __init__(self, dut, stall=0.1, latency=10):
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.ram = InterleavingRam(dut, "m_axi", SIZE, self.random.random(), stall=stall, latency=latency)
        cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())

    @property
    def data(self):
        return self.ram.data

    async def start(self):
        cocotb.start_soon(self.ram.run())
        await self.reset()
        self.data[:] = self.random.randbytes(SIZE)

    async def reset(self):
        d = self.dut
        d.valid_i.value = 0
        d.rst_ni.value = 0
        await ClockCycles(d.clk_i, 4)
        d.rst_ni.value = 1
        await ClockCycles(d.clk_i, 2)

    async def run(self, op, cut=None, **fields):
        """Result and value; None if the run was cut after `cut` cycles."""
        d = self.dut
        job = {
            "op": op,
            "log": LOG,
            "source": 0,
            "target": 0,
            "bytes": 0,
            "object": 0,
            "value": GENERATION,
            "transaction": TRANSACTION,
            "number": 0,
            "previous": 0,
            "base": BASE,
            "pool": POOL,
            "pool_last": POOL + POOL_BYTES - 1,
            "more": 0,
            **fields,
        }
        for name, value in job.items():
            getattr(d, f"{name}_i").value = value
        d.valid_i.value = 1
        while True:
            await RisingEdge(d.clk_i)
            if int(d.ready_o.value):
                break
        d.valid_i.value = 0
        for name in job:
            getattr(d, f"{name}_i").value = 0
        self.cycles = 0
        while self.cycles < 200_000:
            if self.cycles == cut:
                await self.reset()
                return None
            await RisingEdge(d.clk_i)
            self.cycles += 1
            if int(d.end_valid_o.value):
                return int(d.result_o.value), int(d.value_o.value)
        raise AssertionError("the command does not end")

    def write_records(self, count, kinds=(1, 2, 3), longest=300, generation=GENERATION):
        """Writes records of a log: [kind, offset in the log, object, payload]."""
        written, at, previous, place = [], 64, 0, self.random.randrange(200)
        for number in range(count):
            size = self.random.choice([1, 63, 64, 65, 128, self.random.randrange(1, longest)])
            payload = self.random.randbytes(size)
            kind = self.random.choice(kinds)
            text = record(kind, LOG >> 4, LOG & 15, generation, place, payload, number, previous, TRANSACTION)
            self.data[BASE + at : BASE + at + len(text)] = text
            written.append((kind, at, place, payload))
            previous = at
            at += len(text)
            # Some objects overlap, so the order matters.
            place += self.random.randrange(1, 2 * size + 1)
        # Remove records of an older log of that generation.
        self.data[BASE + at : BASE + LOG_BYTES] = bytes(LOG_BYTES - at)
        return written

    def with_required_records(self, before, records):
        """The media with a descriptor that requires this number of records."""
        wanted = bytearray(before)
        wanted[BASE : BASE + 64] = descriptor(GENERATION, 0, records, TRANSACTION)
        return wanted

    def walk_fields(self, written):
        return {"object": LOG_BYTES, "number": len(written), "previous": written[-1][1] if written else 0}


def write_back(data, written, redo=False):
    """The media with records written back, or applied."""
    wanted = bytearray(data)
    count = 0
    for kind, _, place, payload in written if redo else reversed(written):
        if (kind == 2) == redo:
            wanted[POOL + place : POOL + place + len(payload)] = payload
            count += 1
    return wanted, count


@cocotb.test()
async def record_layout(dut):
    """Undo, redo and checkpoint of any alignment and length."""
    bench = Bench(dut)
    await bench.start()
    cases = [(n, size) for n in (0, 1, 31, 63) for size in (1, 8, 63, 64, 65, 127, 128, 129, 1000)]
    cases += [(bench.random.randrange(64), bench.random.randrange(1, 3000)) for _ in range(40)]
    cases += [(5, 65536), (0, 65536)]
    for n, (start, size) in enumerate(cases):
        op = (UNDO, REDO, CHECKPOINT)[n % 3]
        source, target = POOL + 64 * n + start, BASE + 64 * (n + 1)
        place = bench.random.randrange(1 << 40)
        wanted = bytearray(bench.data)
        payload = bytes(wanted[source : source + size])
        text = record(KINDS[op], LOG >> 4, LOG & 15, GENERATION, place, payload, n, 64 * n, TRANSACTION)
        wanted[target : target + len(text)] = text
        reported = await bench.run(
            op, source=source, target=target, bytes=size, object=place, number=n, previous=64 * n
        )
        assert reported == (0, target - BASE), (op, start, size)
        assert bench.data == wanted, (op, start, size)


def ranges_fields(ranges):
    """Fields of a command with these ranges, each of an offset in the pool and bytes."""
    packed = [offset | size << 40 for offset, size in ranges]
    return {
        "object": packed[0],
        "more": sum(one << 56 * n for n, one in enumerate(packed[1:])),
        "bytes": sum(64 + padded(size) for _, size in ranges) // 64,
        "source": POOL + min(offset for offset, _ in ranges),
        "pool_last": POOL + max(offset + size for offset, size in ranges) - 1,
    }


def records_of(data, ranges, kind, number, previous, header):
    """The records of these ranges, as they lie in the log from `header` on."""
    text = b""
    for offset, size in ranges:
        payload, at = bytes(data[POOL + offset : POOL + offset + size]), header - BASE + len(text)
        text += record(kind, LOG >> 4, LOG & 15, GENERATION, offset, payload, number, previous, TRANSACTION)
        number, previous = number + 1, at
    return text


@cocotb.test()
async def ranges_layout(dut):
    """Commands with one to seven ranges: small ones, and some with larger ones; overlaps, bounds of pages."""
    bench = Bench(dut)
    await bench.start()
    r = bench.random
    for n in range(150):
        longest = 448 if n % 3 else 3000
        ranges = [(r.randrange(0x30000), r.choice([1, 8, 64, 448, r.randrange(1, longest)])) for _ in range(1 + n % 7)]
        if n % 5 == 0:
            ranges[-1] = (ranges[0][0] + 1, ranges[0][1])
        if n % 4 == 0:
            ranges[0] = (4096 * r.randrange(1, 40) - 30, 60)
        op, target = (UNDO_RANGES, CHECKPOINT_RANGES)[n % 2], BASE + 64 * (n + 1)
        kind = KINDS[UNDO if n % 2 == 0 else CHECKPOINT]
        wanted = bytearray(bench.data)
        text = records_of(wanted, ranges, kind, n, 64 * n, target)
        wanted[target : target + len(text)] = text
        reported = await bench.run(op, target=target, number=n, previous=64 * n, **ranges_fields(ranges))
        assert reported == (0, target - BASE), ranges
        assert bench.data == wanted, ranges


@cocotb.test()
async def copy_and_switch(dut):
    """Copies of any alignments and lengths; page switches."""
    bench = Bench(dut)
    await bench.start()
    for n in range(120):
        size = bench.random.choice([1, 7, 64, 65, bench.random.randrange(1, 6000), 65536 if n == 0 else 4096])
        source = bench.random.randrange(0, SIZE // 2 - size)
        target = SIZE // 2 + bench.random.randrange(0, SIZE // 2 - size)
        if n % 3 == 0:
            source, target = source & ~63, target & ~63
        wanted = bytearray(bench.data)
        wanted[target : target + size] = wanted[source : source + size]
        assert await bench.run(COPY, source=source, target=target, bytes=size) == (0, 0)
        assert bench.data == wanted, (source, target, size)
        target, value = bench.random.randrange(SIZE // 8) * 8, bench.random.getrandbits(64)
        wanted[target : target + 8] = value.to_bytes(8, "little")
        assert await bench.run(SWITCH, target=target, value=value) == (0, 0)
        assert bench.data == wanted


@cocotb.test()
async def descriptor_only_operations(dut):
    """Operations that write only the descriptor, or nothing."""
    bench = Bench(dut)
    await bench.start()
    for op, line, value in (
        (LOG_OPEN, descriptor(GENERATION, transaction=TRANSACTION), 0),
        (COMMIT, descriptor(GENERATION + 1, transaction=TRANSACTION), GENERATION + 1),
        (DELETE, descriptor(GENERATION + 1, transaction=TRANSACTION), GENERATION + 1),
        (COMMIT_REDO, descriptor(GENERATION, 1, 9, TRANSACTION), 0),
        (SYNC, None, 0),
        (POOL_UNMAP, None, 0),
    ):
        wanted = bytearray(bench.data)
        if line:
            wanted[BASE : BASE + 64] = line
        assert await bench.run(op, number=9, previous=640) == (0, value), op
        assert bench.data == wanted, op


@cocotb.test()
async def walk_of_abort_and_recover(dut):
    """Abort and recover of logs of any length, open and closed."""
    bench = Bench(dut)
    await bench.start()
    for count in (0, 1, 2, 3, 9, 20):
        for op, state, known in (
            (ABORT, 0, True),
            (RECOVER, 0, True),
            (RECOVER, 0, False),
            (RECOVER, 1, True),
            (RECOVER, 1, False),
        ):
            written = bench.write_records(count)
            bench.data[BASE : BASE + 64] = descriptor(GENERATION, state, count if state else 0, 5)
            wanted, count_back = write_back(bench.data, written, redo=state == 1)
            wanted[BASE : BASE + 64] = descriptor(GENERATION + 1, transaction=TRANSACTION)
            fields = bench.walk_fields(written)
            if not known:
                fields.update(number=UNKNOWN, value=bench.random.getrandbits(64), previous=0)
            assert await bench.run(op, **fields) == (0, count_back), (op, state, known, count)
            assert bench.data == wanted, (op, state, known, count)


@cocotb.test()
async def apply_redo_records(dut):
    """Applies redo records one by one; rejects everything else."""
    bench = Bench(dut)
    await bench.start()
    written = bench.write_records(20, kinds=(2,))
    for _, at, place, payload in written:
        fields = {"source": BASE + at, "target": POOL + place, "object": place, "bytes": len(payload)}
        wanted = bytearray(bench.data)
        for wrong in ({"object": place + 1}, {"bytes": len(payload) + 1}, {"value": GENERATION + 1}, {"log": LOG ^ 1}):
            assert await bench.run(APPLY, **{**fields, **wrong}) == (TORN, 0)
        assert bench.data == wanted
        wanted[POOL + place : POOL + place + len(payload)] = payload
        assert await bench.run(APPLY, **fields) == (0, 0)
        assert bench.data == wanted
    written = bench.write_records(1, kinds=(1,))
    _, at, place, payload = written[0]
    fields = {"source": BASE + at, "target": POOL + place, "object": place, "bytes": len(payload)}
    assert await bench.run(APPLY, **fields) == (TORN, 0)
    # A flipped bit in the payload, or in the padding of its last line.
    for n in range(20):
        _, at, place, payload = bench.write_records(1, kinds=(2,), longest=3000)[0]
        bit = bench.random.randrange(8 * padded(len(payload)))
        bench.data[BASE + at + 64 + bit // 8] ^= 1 << bit % 8
        before = bytes(bench.data)
        fields = {"source": BASE + at, "target": POOL + place, "object": place, "bytes": len(payload)}
        assert await bench.run(APPLY, **fields) == (TORN, 0), (n, bit)
        assert bench.data == before


@cocotb.test()
async def torn_record_detected(dut):
    """A flipped bit in a record: only the required number of records is written."""
    bench = Bench(dut)
    await bench.start()
    for n in range(150):
        count = bench.random.randrange(1, 5)
        op, state, known = [(ABORT, 0, True), (RECOVER, 0, True), (RECOVER, 1, True), (RECOVER, 1, False)][n % 4]
        written = bench.write_records(count)
        bench.data[BASE : BASE + 64] = descriptor(GENERATION, state, count if state else 0, 5)
        _, at, _, payload = written[bench.random.randrange(count)]
        if op == RECOVER and n % 7 == 0:
            at, payload = 0, b""
        bit = bench.random.randrange(8 * (64 + padded(len(payload)) if n % 2 else 64))
        bench.data[BASE + at + bit // 8] ^= 1 << bit % 8
        before = bytes(bench.data)
        fields = bench.walk_fields(written)
        if not known:
            fields.update(number=UNKNOWN, value=0, previous=0)
        assert await bench.run(op, **fields) == (TORN, 0), (op, state, known, at, bit)
        reported = state == 0 and at != 0
        wanted = bench.with_required_records(before, count) if reported else before
        assert bench.data == wanted
        # A recover without a known count reports the same every time.
        fields = {**bench.walk_fields(written), "number": UNKNOWN, "value": 0, "previous": 0}
        assert await bench.run(RECOVER, **fields) == (TORN, 0), (op, state, known, at, bit)
        assert bench.data == wanted
        # After repair the recover succeeds.
        if reported:
            bench.data[BASE + at + bit // 8] ^= 1 << bit % 8
            wanted, count_back = write_back(bench.data, written)
            wanted[BASE : BASE + 64] = descriptor(GENERATION + 1, transaction=TRANSACTION)
            assert await bench.run(RECOVER, **fields) == (0, count_back)
            assert bench.data == wanted
    # Unknown count, not committed: an invalid last header ends the log. Any other one is a hole,
    # unless a CPU has written the records before the same fence.
    for n in range(24):
        written = bench.write_records(4)
        bench.data[BASE : BASE + 64] = descriptor(GENERATION, 0, 0, 5)
        which = n % 4
        maker = n % 12 // 4
        by_cpu = maker == 1
        for _, at, _, _ in written if maker else []:
            line = bytearray(bench.data[BASE + at : BASE + at + 60])
            line[7] = maker
            bench.data[BASE + at : BASE + at + 64] = seal(bytes(line))
        bit = bench.random.randrange(512)
        bench.data[BASE + written[which][1] + bit // 8] ^= 1 << bit % 8
        before = bytes(bench.data)
        wanted, count_back = write_back(bench.data, written[:which])
        wanted[BASE : BASE + 64] = descriptor(GENERATION + 1, transaction=TRANSACTION)
        fields = {**bench.walk_fields(written), "number": UNKNOWN, "previous": 0}
        if by_cpu or which == 3:
            assert await bench.run(RECOVER, **fields) == (0, count_back)
            assert bench.data == wanted
        else:
            assert await bench.run(RECOVER, **fields) == (TORN, 0)
            assert bench.data == before


@cocotb.test()
async def hole_detected(dut):
    """A later record of the generation, at any distance from the missing one; others are ignored."""
    bench = Bench(dut, stall=0)
    await bench.start()
    pool, thread = LOG >> 4, LOG & 15
    size = LOG_BYTES
    for n in range(40):
        written = bench.write_records(n % 3)
        end = written[-1][1] + 64 + padded(len(written[-1][3])) if written else 64
        bench.data[BASE : BASE + 64] = descriptor(GENERATION, 0, 0, 5)
        at = bench.random.choice([end, end + 64, size - 64, bench.random.randrange(end, size, 64)])
        good = (1, pool, thread, GENERATION, 100, b"x" * 70, len(written) + n % 2, 64)
        change = {1: {1: pool ^ 1}, 2: {2: thread ^ 1}, 3: {3: GENERATION - 1}, 4: {6: len(written) - 1}}.get(n % 8, {})
        if change.get(6) == -1:
            change = {3: GENERATION + 1}
        fields = list(good)
        for place, value in change.items():
            fields[place] = value
        # At this place it would be the next record.
        if at == end:
            fields[7] = 1 << 20
        bench.data[BASE + at : BASE + at + 64] = record(*fields, TRANSACTION)[:64]
        before = bytes(bench.data)
        wanted, count_back = write_back(bench.data, written)
        wanted[BASE : BASE + 64] = descriptor(GENERATION + 1, transaction=TRANSACTION)
        reported = await bench.run(RECOVER, object=size, number=UNKNOWN, value=0)
        assert reported == ((0, count_back) if change else (TORN, 0)), (n, at, end)
        assert bench.data == (wanted if change else before), (n, at, end)
    # Exactly the number of records in the descriptor, for each state.
    for state, records, participants in ((0, 3, 0), (0, NEVER, 0), (1, 3, 0), (2, 3, 3)):
        for there in (2, 3, 4):
            written = bench.write_records(there)
            line = bytearray(descriptor(GENERATION, state, records, 5)[:60])
            line[32] = participants
            bench.data[BASE : BASE + 64] = seal(bytes(line))
            before = bytes(bench.data)
            reported = await bench.run(RECOVER, object=size, number=UNKNOWN, value=0)
            if there < records:
                assert reported == (TORN, 0), (state, records, there)
                assert bench.data == before
            else:
                wanted, count_back = write_back(bench.data, written[:records], redo=state == 1)
                wanted[BASE : BASE + 64] = descriptor(GENERATION + 1, transaction=TRANSACTION)
                assert reported == (0, count_back), (state, records, there)
                assert bench.data == wanted


@cocotb.test()
async def forged_record_rejected(dut):
    """Records with valid CRCs, but outside the pool, or of another log, number, place or generation."""
    bench = Bench(dut)
    await bench.start()
    pool, thread = LOG >> 4, LOG & 15
    good = (1, pool, thread, GENERATION, 100, b"x" * 70, 1, 64)
    for change in (
        {0: 0},
        {0: 4},
        {1: pool ^ 1},
        {2: thread ^ 1},
        {3: GENERATION - 1},
        {3: GENERATION + 1},
        {4: POOL_BYTES - 69},
        {4: POOL_BYTES},
        {4: (1 << 64) - 70},
        {4: 1 << 44},
        {6: 0},
        {6: 2},
        {7: 0},
        {7: 128},
        {7: 192},
        {7: 63},
        {7: 1 << 32 | 64},
    ):
        for op, state in ((ABORT, 0), (RECOVER, 0), (RECOVER, 1)):
            fields = list(good)
            for n, value in change.items():
                fields[n] = value
            first = record(1, pool, thread, GENERATION, 0, b"a" * 64, 0, 0, 0)
            second = record(*fields, TRANSACTION)
            last = record(1, pool, thread, GENERATION, 500, b"c" * 3, 2, 192, 0)
            bench.data[BASE : BASE + 64] = descriptor(GENERATION, state, 3 if state else 0)
            text = first + second + last
            bench.data[BASE + 64 : BASE + 64 + len(text)] = text
            before = bytes(bench.data)
            reported = await bench.run(op, object=LOG_BYTES, number=3, previous=64 + 128 + 192)
            assert reported == (TORN, 0), (change, op, state)
            assert bench.data == (before if state else bench.with_required_records(before, 3))
    # A length of 0, or above the limit.
    for size in (0, 65537, 1 << 31, (1 << 32) - 1):
        text = bytearray(record(*good, TRANSACTION))
        text[24:28] = size.to_bytes(4, "little")
        text[28:40] = bytes(12)
        text[:64] = seal(bytes(text[:60]))
        bench.data[BASE : BASE + 64] = descriptor(GENERATION)
        bench.data[BASE + 64 : BASE + 64 + len(text)] = text
        before = bytes(bench.data)
        for op in (ABORT, RECOVER):
            assert await bench.run(op, object=LOG_BYTES, number=1, previous=64) == (TORN, 0)
        assert bench.data == bench.with_required_records(before, 1)
    # A log that ends with its last record, and one that is a line too short.
    written = bench.write_records(3)
    end = written[-1][1] + 64 + padded(len(written[-1][3]))
    for size, result in ((end, 0), (end - 64, TORN)):
        for op in (ABORT, RECOVER):
            bench.data[BASE : BASE + 64] = descriptor(GENERATION)
            reported = await bench.run(op, **{**bench.walk_fields(written), "object": size})
            assert reported[0] == result, (size, end, op)


@cocotb.test()
async def memory_error_reported(dut):
    """Read and write errors anywhere: the result reports them, and a failed record has no header."""
    bench = Bench(dut)
    await bench.start()
    source, target = POOL + 0x123, BASE + 64
    bench.ram.errors = {(POOL + 0x1000) >> 12}
    header = bytes(bench.data[target : target + 64])
    for op in KINDS:
        bench.data[BASE : BASE + 64] = descriptor(GENERATION)
        assert await bench.run(op, source=source, target=target, bytes=0x1000) == (READ_ERROR, 0)
        assert bench.data[target : target + 64] == header
        # The object of a failed record may change: the log stays torn.
        assert bench.data[BASE : BASE + 64] == descriptor(GENERATION, 0, NEVER, TRANSACTION)
        assert await bench.run(RECOVER, object=LOG_BYTES, number=UNKNOWN) == (TORN, 0)
    # Of a small record that cannot be read, nothing is written, nor of those after it.
    good, bad = (0x123, 100), (0x1000 - 1, 100)
    for ranges in ([bad], [good, bad], [bad, good], [good, bad, good], [good, (0x123, 500), bad]):
        bench.data[BASE : BASE + 64] = descriptor(GENERATION)
        bench.data[target : target + 0x1000] = bytes(0x1000)
        first = records_of(bench.data, ranges[: ranges.index(bad)], 1, 0, 0, target)
        assert await bench.run(UNDO_RANGES, target=target, **ranges_fields(ranges)) == (READ_ERROR, 0)
        at = target + len(first)
        assert bench.data[at : at + 64] == bytes(64), ranges
        assert bench.data[target:at] in (first, bytes(len(first))), ranges
        assert bench.data[BASE : BASE + 64] == descriptor(GENERATION, 0, NEVER, TRANSACTION)
    assert await bench.run(COPY, source=0x60000, target=POOL + 0xF00, bytes=0x1000) == (WRITE_ERROR, 0)
    assert await bench.run(SWITCH, target=POOL + 0x1008, value=1) == (WRITE_ERROR, 0)
    bench.ram.errors = {BASE >> 12}
    for op in (LOG_OPEN, COMMIT, DELETE, COMMIT_REDO):
        assert await bench.run(op) == (WRITE_ERROR, 0)
    assert await bench.run(UNDO, source=source, target=target, bytes=100) == (WRITE_ERROR, 0)
    assert await bench.run(RECOVER, object=LOG_BYTES, number=UNKNOWN) == (READ_ERROR, 0)
    bench.ram.errors = set()
    # Pages of the log.
    for n in range(30):
        written = bench.write_records(40, longest=3000)
        state = n % 2
        redo = state == 1
        bench.data[BASE : BASE + 64] = descriptor(GENERATION, state, 40 if state else 0)
        pages = sorted({(BASE + at + 64) >> 12 for _, at, _, _ in written})
        bench.ram.errors = {bench.random.choice(pages)}
        before = bytes(bench.data)
        reported = await bench.run(RECOVER if n % 4 < 2 or redo else ABORT, **bench.walk_fields(written))
        # If the first page cannot be read, the descriptor cannot be written either.
        marks = state == 0 and BASE >> 12 not in bench.ram.errors
        assert reported in ((READ_ERROR, 0), (WRITE_ERROR, 0), (READ_ERROR | WRITE_ERROR, 0))
        if reported[0] & READ_ERROR:
            assert bench.data == (bench.with_required_records(before, 40) if marks else before)
        bench.ram.errors = set()
        bench.data[:] = before
        wanted, count_back = write_back(bench.data, written, redo)
        wanted[BASE : BASE + 64] = descriptor(GENERATION + 1, transaction=TRANSACTION)
        assert await bench.run(RECOVER, **bench.walk_fields(written)) == (0, count_back)
        assert bench.data == wanted


@cocotb.test()
async def power_cut_restart(dut):
    """Cut at any cycle, several times, and restarted: the result is the same."""
    bench = Bench(dut)
    await bench.start()
    for n in range(210):
        kind = n % 8
        written = bench.write_records(4, longest=200)
        state = int(kind == 1)
        bench.data[BASE : BASE + 64] = descriptor(GENERATION, state, 4 if state else 0, 5)
        fields = bench.walk_fields(written)
        wanted, _ = write_back(bench.data, written, redo=state == 1)
        closed = descriptor(GENERATION + 1, transaction=TRANSACTION)
        if kind < 3:
            op = (RECOVER, RECOVER, ABORT)[kind]
            wanted[BASE : BASE + 64] = closed
        else:
            wanted = bytearray(bench.data)
            source, target, size = POOL + 0x3F5, BASE + 0x2000, 500
            if kind == 3:
                op = UNDO
                text = record(
                    1, LOG >> 4, LOG & 15, GENERATION, 9, bytes(wanted[source : source + size]), 4, 64, TRANSACTION
                )
                wanted[target : target + len(text)] = text
                fields = {"source": source, "target": target, "bytes": size, "object": 9, "number": 4, "previous": 64}
            elif kind == 4:
                op = COMMIT
                wanted[BASE : BASE + 64] = closed
            elif kind > 5:
                op = UNDO_RANGES
                ranges = [(0x3F5, 300), (0x400, 8), (0xFFF, 70), (0x20, 64), (0x5000, 1), (0x5007, 64)]
                # One is not small.
                ranges += [(0x6001, 448 if kind == 6 else 449)]
                text = records_of(wanted, ranges, 1, 4, 64, target)
                wanted[target : target + len(text)] = text
                fields = {"target": target, "number": 4, "previous": 64, **ranges_fields(ranges)}
            else:
                op = COPY
                target += 13
                wanted[target : target + size] = wanted[source : source + size]
                fields = {"source": source, "target": target, "bytes": size}
        cuts = 0
        longest = {3: 90, 4: 90, 5: 90, 6: 200}.get(kind, 700)
        while await bench.run(op, cut=bench.random.randrange(1, longest), **fields) is None:
            cuts += 1
            if cuts == 4:
                await bench.run(op, **fields)
                break
        assert bench.data == wanted, (kind, cuts)


@cocotb.test()
async def latency_figures(dut):
    """Memory without latency, in order: cycles of an undo of 64 bytes and of a copy of 16 KiB."""
    bench = Bench(dut, stall=0, latency=0)
    bench.ram.interleave = False  # the random order of responses would change the result
    await bench.start()
    assert await bench.run(UNDO, source=POOL, target=BASE + 64, bytes=64) == (0, 64)
    dut._log.info("undo of 64 bytes: %d cycles", bench.cycles)
    undo = bench.cycles
    assert await bench.run(COPY, source=POOL, target=POOL + 0x10000, bytes=16384) == (0, 0)
    dut._log.info("copy of 16 KiB: %d cycles", bench.cycles)
    assert undo <= 40
    assert bench.cycles <= 300
