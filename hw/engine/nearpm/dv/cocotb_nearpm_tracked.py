# SPDX-License-Identifier: Apache-2.0
"""Tracked pools: each line is recorded before the first store to it in an epoch."""

from collections import deque

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb_nearpm import Program
from extent import LONG
from nearpm_bench import RESERVED, Bench
from nearpm_model import (
    ABORT,
    BUSY,
    CHECKPOINT,
    CHECKPOINT_RANGES,
    COMMIT,
    COMMIT_REDO,
    DELETE,
    INVALID,
    LOG_OPEN,
    POOL_MAP,
    POOL_UNMAP,
    RECOVER,
    REDO,
    TORN,
    UNDO,
    UNDO_RANGES,
    UNMAPPED,
    command,
    descriptor,
    padded,
    seal,
)

TRACKED, AS_CHECKPOINT = 1 << 8, 1 << 9
BASE, OTHER = 0x7F00_0000_0000, 0x7F10_0000_0000
UNDER_WAY, COUNT = 0x108, 0x128
SET_LINES = 1024
HOST_MASTER = 1  # of the multiplexer between the engine and the memory; 0: units
# The log ends inside a page: the lines after it are tracked.
POOL = {
    "pool": 0,
    "process": 7,
    "base": BASE,
    "media": 0,
    "size": 0x40000,
    "logs": 0x20000,
    "log_bytes": 0x10040,
    "threads": 1 | TRACKED,
}
CHECKPOINTS = {**POOL, "pool": 5, "base": OTHER, "media": 0x50000, "threads": 1 | TRACKED | AS_CHECKPOINT}
PLAIN = {**CHECKPOINTS, "log_bytes": 0x4000, "threads": 4}


class Tracking:
    """A tracked pool as the ordering point sees it."""

    def __init__(self, pool):
        self.pool = pool
        self.lines = set()  # that have a record
        self.next = 64  # offset of the next record
        self.open = self.sealed = False

    def new_epoch(self):
        self.lines.clear()
        self.next, self.open, self.sealed = 64, True, False

    def to_record(self, addr, size):
        """Lines of a store that are recorded first."""
        p = self.pool
        logs = p["media"] + p["logs"]
        lines = range(addr & ~63, addr + size, 64)
        if not self.open or self.sealed or not p["media"] <= addr < p["media"] + p["size"]:
            return []
        return [n for n in lines if n not in self.lines and not logs <= n < logs + p["log_bytes"]]


class TrackedBench(Bench):
    """The model of the bench with records of tracked pools. Checks each write of the memory."""

    def __init__(self, dut, **more):
        super().__init__(dut, **more)
        self.tracked = {}
        self.records = 0  # that the ordering point has inserted
        self.forget_writes()
        for ram in self.rams:
            accept = ram._accept_data
            ram._accept_data = lambda data, strb, last, ram=ram, accept=accept: (
                self._check_write(ram, data),
                accept(data, strb, last),
            )

    def forget_writes(self):
        self.written = {}  # line: records of it in the memory
        self.needed = {}  # line: for each store, the records that precede it
        self.recorded = {}  # line: records of it in the model

    def _check_write(self, ram, data):
        addr, _, ident, _ = ram.writes[0]
        line = data.to_bytes(64, "little")
        for t in self.tracked.values():
            offset = addr - t.pool["media"]
            if not 0 <= offset < t.pool["size"]:
                continue
            if ident >> 6 == HOST_MASTER and self.needed.get(addr):
                needed = self.needed[addr].popleft()
                assert self.written.get(addr, 0) >= needed, f"a store to {addr:#x} precedes its record"
            in_log = t.pool["logs"] <= offset < t.pool["logs"] + t.pool["log_bytes"]
            if ident >> 6 == 0 and in_log and line[:4] == b"NPMR":
                place = t.pool["media"] + int.from_bytes(line[16:24], "little")
                self.written[place] = self.written.get(place, 0) + 1

    def run_model(self, text):
        op, pool = text[8], text[9] & 15
        map_bits = int.from_bytes(text[56:64], "little") if op == POOL_MAP else 0
        # The model knows no tracked pools.
        model_text = text[:56] + (map_bits & 31).to_bytes(8, "little") if op == POOL_MAP else text
        result, value = self.model.run(model_text)
        if result or text[10] & 15:
            return result, value
        if op == POOL_MAP and map_bits & TRACKED and pool not in self.tracked:
            word = lambda n: int.from_bytes(text[8 * n : 8 * n + 8], "little")  # noqa: E731
            fields = {"pool": pool, "process": word(1) >> 32, "base": word(2), "size": word(3), "media": word(4)}
            fields |= {"logs": word(5), "log_bytes": word(6), "threads": map_bits}
            self.tracked[pool] = Tracking(fields)
        elif op == POOL_UNMAP:
            self.tracked.pop(pool, None)
        elif pool in self.tracked:
            t = self.tracked[pool]
            if op == LOG_OPEN or (op in (COMMIT, DELETE, ABORT, RECOVER) and t.open):
                t.new_epoch()
            elif op == COMMIT_REDO:
                t.sealed = True
            elif op in (UNDO, REDO, CHECKPOINT):
                t.next = value + 64 + padded(int.from_bytes(text[24:32], "little"))
            elif op in (UNDO_RANGES, CHECKPOINT_RANGES):
                ranges = [int.from_bytes(text[at : at + 8], "little") for at in (0, *range(16, 64, 8))]
                t.next = value + sum(64 + padded(r >> 40 & 0xFFFF) for r in ranges if r >> 40 & 0xFFFF)
        return result, value

    def store_in_model(self, addr, data):
        for t in self.tracked.values():
            for line in t.to_record(addr, len(data)):
                if t.next + 128 > t.pool["log_bytes"] or len(t.lines) == SET_LINES:
                    # The record without bytes closes the log.
                    t.open = False
                    self.records += 1
                    break
                self.record(t, line)
        for line in range(addr & ~63, addr + len(data), 64):
            self.needed.setdefault(line, deque()).append(self.recorded.get(line, 0))
        super().store_in_model(addr, data)

    def record(self, t, line):
        """A record of a line in the model: as of the host's undo command."""
        p = t.pool
        text = command(UNDO, pool=p["pool"], process=p["process"], address=p["base"] + line - p["media"], size=64)
        assert self.model.run(text) == (0, t.next)
        if p["threads"] & AS_CHECKPOINT:
            at = p["media"] + p["logs"] + t.next
            header = self.model.data[at : at + 60]
            header[4] = 3
            self.model.data[at : at + 64] = seal(bytes(header))
        t.lines.add(line)
        t.next += 128
        self.records += 1
        self.recorded[line] = self.recorded.get(line, 0) + 1

    async def check(self):
        """All ends; media and counters match the model."""
        await self.wait_idle()
        self.check_media()
        assert await self.register(COUNT) == self.records
        assert await self.register(UNDER_WAY) == 0


async def ready_bench(dut, *pools, **more):
    """A bench with pools mapped and the log of thread 0 open."""
    bench = TrackedBench(dut, **more)
    await bench.start()
    for pool in pools:
        await bench.map_pool(**pool)
        await bench.run_command(LOG_OPEN, **Program.ids(pool, 0), value=1)
    return bench


@cocotb.test()
async def tracked_line_is_recorded_once_an_epoch(dut):
    """Single lines, bytes of a line, bursts, lines before and after the log, and lines of the log itself."""
    bench = await ready_bench(dut, POOL, CHECKPOINTS)
    r = bench.random
    for pool in (POOL, CHECKPOINTS):
        ids, media = Program.ids(pool, 0), pool["media"]
        for epoch in range(3):
            before = bench.records
            for _ in range(2):
                await bench.store(media + 64, r.randbytes(64))
                await bench.store(media + 133, r.randbytes(7))
                await bench.store(media + 4096 + 64 * 60, r.randbytes(64 * 4))
                await bench.store(media + 0x1F000, r.randbytes(4096))
            assert bench.records == before + 2 + 4 + 64
            after_log = media + pool["logs"] + pool["log_bytes"]
            await bench.store(after_log - 64, r.randbytes(256))
            await bench.store(media + pool["size"] - 64, r.randbytes(64))
            assert bench.records == before + 2 + 4 + 64 + 4
            await bench.load(media + 64)
            if epoch == 1:
                await bench.run_command(ABORT, **ids)
            else:
                await bench.run_command(COMMIT, **ids, transaction=epoch)
            await bench.check()
    # Lines of no pool, and of a pool whose log is not open.
    before = bench.records
    await bench.store(0x48000, r.randbytes(128))
    await bench.run_command(POOL_UNMAP, **Program.ids(POOL, 0))
    await bench.store(64, r.randbytes(128))
    await bench.map_pool(**POOL)
    await bench.store(64, r.randbytes(128))
    assert bench.records == before
    await bench.run_command(LOG_OPEN, **Program.ids(POOL, 0), value=9)
    await bench.store(64, r.randbytes(128))
    assert bench.records == before + 2
    await bench.check()


@cocotb.test()
async def tracked_epochs_begin_with_generations(dut):
    """Commit, delete, abort, recover and log_open: the next store to a line is recorded again."""
    bench = await ready_bench(dut, POOL)
    ids, r = Program.ids(POOL, 0), bench.random
    for op in (COMMIT, DELETE, ABORT, RECOVER) * 3:
        before = bench.records
        for n in range(5):
            await bench.store(64 * n, r.randbytes(64 * 2))
        assert bench.records == before + 6
        # Commands of the host make records beside.
        await bench.run_command(UNDO, **ids, address=BASE + 100, size=300, transaction=5)
        await bench.store(64, r.randbytes(300 & ~63))
        await bench.command(op, **ids)
        # The epoch begins with the acceptance of the command, not with its end.
        await bench.store(0, r.randbytes(64))
        assert bench.records == before + 7
        await bench.check()
        await bench.run_command(COMMIT, **ids)
    # With redo records to be applied nothing is recorded.
    await bench.run_command(REDO, **ids, address=BASE + 64, size=64, target=BASE + 256)
    await bench.run_command(COMMIT_REDO, **ids)
    before = bench.records
    await bench.store(0x1000, r.randbytes(64))
    assert bench.records == before
    await bench.run_command(RECOVER, **ids)
    await bench.store(0x1000, r.randbytes(64))
    assert bench.records == before + 1
    await bench.check()


class TrackedProgram(Program):
    """Random commands and accesses in a tracked pool and others; the log never overflows."""

    async def before_store(self, pool, count):
        t = self.bench.tracked.get(pool["pool"])
        if t and t.next + 128 * count > pool["log_bytes"]:
            await self.bench.wait_loads_done()
            await self.submit(RECOVER if t.sealed else COMMIT, **self.ids(pool, 0))
            self.redo.pop((pool["pool"], 0), None)


@cocotb.test()
async def tracked_random_traffic(dut):
    """Random commands, stores and loads: media and loads match sequential execution."""
    bench = TrackedBench(dut)
    await bench.start()
    program = TrackedProgram(bench, (POOL, PLAIN))
    await program.start()
    least = 1200 if LONG else 500
    for n in range(4 * least):
        if n >= least and bench.records > 60:
            break
        await program.submit_random()
        if n % 250 == 249:
            await program.check_results()
    await program.check_results()
    dut._log.info("%d records", bench.records)
    assert bench.records > 60
    await bench.check()


@cocotb.test()
async def tracked_random_traffic_with_slow_memory(dut):
    """Two tracked pools and a slow memory: many commands are in flight."""
    bench = TrackedBench(dut, stall=0.02, latency=300)
    await bench.start()
    program = TrackedProgram(bench, (POOL, CHECKPOINTS))
    await program.start()
    least = 300 if LONG else 120
    for n in range(4 * least):
        if n >= least and bench.records > 30:
            break
        await program.submit_random()
    await program.check_results()
    assert bench.records > 30
    await bench.check()


@cocotb.test()
async def tracked_records_fill_the_table(dut):
    """More lines than internal records in flight, in both channels, with commands of the host beside."""
    bench = await ready_bench(dut, POOL, latency=400)
    ids, r = Program.ids(POOL, 0), bench.random
    most, watching = 0, True

    async def watch():
        nonlocal most
        while watching:
            most = max(most, await bench.register(UNDER_WAY))

    watcher = cocotb.start_soon(watch())
    for n in range(4):
        await bench.store(4096 * n, r.randbytes(64 * 40))
        await bench.command(UNDO, **ids, address=BASE + 0x10000 + 64 * n, size=64)
    await bench.command(COMMIT, **ids)
    await bench.store(0, r.randbytes(64 * 20))
    watching = False
    await watcher
    dut._log.info("%d commands and records in flight", most)
    assert most >= 16
    await bench.check()


@cocotb.test()
async def tracked_stores_of_two_channels_at_once(dut):
    """Stores wait at the ports of both channels at the same time: one record of each line; abort undoes all."""
    bench = await ready_bench(dut, POOL, latency=20)
    ids, r = Program.ids(POOL, 0), bench.random
    for _ in range(10 if LONG else 3):
        await bench.wait_idle()
        before, records = bytes(bench.media[: POOL["logs"]]), bench.records
        await bench.run_command(COMMIT, **ids)
        places = {c: [0x2000 * r.randrange(3) + 4096 * c + 64 * r.randrange(32) for _ in range(6)] for c in (0, 1)}

        async def stores(addrs):
            for addr in addrs:
                await bench.store(addr, r.randbytes(64 * r.randrange(1, 6)))

        tasks = [cocotb.start_soon(stores(places[c])) for c in (0, 1)]
        for task in tasks:
            await task
        await bench.run_command(ABORT, **ids)
        await bench.wait_idle()
        assert bytes(bench.media[: POOL["logs"]]) == before
        # The records of the two channels have any order.
        logs = slice(POOL["logs"], POOL["logs"] + POOL["log_bytes"])
        bench.model.data[logs] = bench.media[logs]
        assert await bench.register(COUNT) == bench.records > records + 6


async def overflow(dut, pool, most):
    """One line more than the epoch may have."""
    bench = await ready_bench(dut, pool)
    ids, r = Program.ids(pool, 0), bench.random

    async def end(op, **arguments):
        number = await bench.submit(command(op, **ids, **arguments))
        await bench.wait_ended(number)
        return bench.ends[number]

    for n in range(most):
        await bench.store(64 * n, r.randbytes(64))
    assert bench.records == most
    await bench.check()
    # A store of two lines, then a commit: it follows the failed record.
    await bench.store(64 * most, r.randbytes(128))
    assert await end(COMMIT) == (UNMAPPED, 0)
    await bench.wait_idle()
    assert bench.records == most + 1
    assert await bench.register(COUNT) == bench.records
    place = pool["media"] + pool["logs"]
    assert bench.media[place : place + 64] == descriptor(1, records=0xFFFF_FFFF)
    # Nothing is recorded now, and nothing can be undone.
    await bench.store(64 * most + 4096, r.randbytes(128))
    assert await end(COMMIT) == await end(ABORT) == (UNMAPPED, 0)
    assert await end(RECOVER) == (TORN, 0)
    await bench.wait_idle()
    for line in range(0, pool["logs"], 64):
        assert bench.media[line : line + 64] == bench.model.data[line : line + 64]
    assert await bench.register(COUNT) == bench.records
    # A new generation begins an epoch.
    assert await end(LOG_OPEN, value=7) == (0, 0)
    before = bytes(bench.media[:64])
    await bench.store(0, r.randbytes(64))
    assert await end(ABORT) == (0, 1)
    await bench.wait_idle()
    assert bench.media[:64] == before
    assert await bench.register(COUNT) == bench.records + 1


@cocotb.test()
async def tracked_full_log_is_closed(dut):
    """More lines than the log holds: the epoch cannot be undone any more."""
    await overflow(dut, {**POOL, "log_bytes": 0x1000}, (0x1000 - 64) // 128)


@cocotb.test()
async def tracked_full_set_closes_log(dut):
    """More lines than the set holds."""
    await overflow(dut, {**POOL, "size": 0x80000, "logs": 0x40000, "log_bytes": 0x24000}, SET_LINES)


@cocotb.test()
async def tracked_overflow_before_a_commit_of_the_next_epoch(dut):
    """The commit is accepted before the failed record has ended: it and the records after it are cancelled."""
    small = {**POOL, "log_bytes": 0x400}
    bench = await ready_bench(dut, small, latency=300)
    ids, r = Program.ids(small, 0), bench.random
    for n in range(8):
        await bench.store(64 * n, r.randbytes(64))
    number = await bench.submit(command(COMMIT, **ids))
    await bench.store(0, r.randbytes(64))
    await bench.wait_ended(number)
    assert bench.ends[number] == (UNMAPPED, 0)
    await bench.wait_idle()
    place = small["media"] + small["logs"]
    assert bench.media[place : place + 64] == descriptor(1, records=0xFFFF_FFFF)
    number = await bench.submit(command(LOG_OPEN, **ids, value=2))
    await bench.wait_ended(number)
    assert bench.ends[number] == (0, 0)
    before = bytes(bench.media[:64])
    await bench.store(0, r.randbytes(64))
    number = await bench.submit(command(RECOVER, **ids))
    await bench.wait_ended(number)
    assert bench.ends[number] == (0, 1)
    await bench.wait_idle()
    assert bench.media[:64] == before


@cocotb.test()
async def tracked_power_cut_keeps_transactions_whole(dut):
    """Power fails at any cycle: after recover each transaction is whole or absent; one read back is whole."""
    pool = {**POOL, "log_bytes": 0x4000}
    bench = await ready_bench(dut, pool, latency=40)
    ids, r = Program.ids(pool, 0), bench.random
    lines = sorted(r.sample(range(0, 0x6000, 64), 40))
    tag = confirmed = 0
    for line in lines:
        await bench.store(line, bytes(64))
    await bench.run_command(COMMIT, **ids)
    await bench.wait_idle()

    async def transactions():
        nonlocal tag, confirmed
        while bench.alive:
            tag += 1
            some = list(lines)
            r.shuffle(some)
            # Some lines twice.
            for line in (*some, *some[:10]):
                await bench.store(line, bytes([tag & 0xFF]) * 64)
                if r.random() < 0.05:
                    await bench.submit(command(UNDO, **ids, address=BASE + 0x8000, size=100))
                if not bench.alive:
                    return
            await bench.submit(command(COMMIT, **ids, transaction=tag))
            await bench.wait_stores_answered()
            if bench.alive:
                confirmed = tag

    back = closed = 0
    least = 30 if LONG else 6
    for n in range(6 * least):
        if n >= least and back > 20:
            break
        task = cocotb.start_soon(transactions())
        await ClockCycles(dut.clk_i, r.randrange(1, 2000))
        await bench.stop()
        task.cancel()
        for _ in range(n % 3):
            await bench.reset()
            await ClockCycles(dut.clk_i, r.randrange(1, 2500))
            await bench.stop()
        await bench.reset()
        bench.forget_writes()
        await bench.wait_for(dut.open_o)
        bench.tracked.clear()
        text = command(
            POOL_MAP,
            0,
            0,
            7,
            pool["base"],
            pool["size"],
            pool["media"],
            pool["logs"],
            pool["log_bytes"],
            pool["threads"],
        )
        for submitted in (text, command(RECOVER, **ids)):
            number = await bench.submit(submitted)
            await bench.wait_ended(number)
            result, value = bench.ends[number]
            assert result == 0, (n, result)
        back += value
        await bench.wait_idle()
        at = pool["media"] + pool["logs"]
        generation = int.from_bytes(bench.media[at + 8 : at + 16], "little")
        number = await bench.submit(command(LOG_OPEN, **ids, value=generation))
        await bench.wait_ended(number)
        assert bench.ends[number][0] in (0, BUSY)
        closed += bench.ends[number][0] == 0
        await bench.wait_idle()
        found = {bytes(bench.media[line : line + 64]) for line in lines}
        assert len(found) == 1, (n, [f[:1] for f in found])
        value = found.pop()[0]
        assert value in (confirmed & 0xFF, tag & 0xFF), (n, value, confirmed, tag)
        if value != tag & 0xFF:
            tag = confirmed
        confirmed = tag
        dut._log.info("cut %d: %d records written back so far, %d logs were closed", n, back, closed)
    dut._log.info("%d records written back; %d logs were closed", back, closed)
    assert back > 20


@cocotb.test()
async def tracked_records_survive_a_power_cut(dut):
    """Power fails with records in flight: all stores are whole afterwards, and the log is open with all records."""
    bench = TrackedBench(dut, latency=120)
    await bench.start()
    program = TrackedProgram(bench, (POOL, CHECKPOINTS))
    await program.start()
    carried = 0
    for _ in range(12 if LONG else 5):
        for _ in range(bench.random.randrange(8, 40)):
            await program.submit_random()
        await bench.wait_stores_answered()
        await bench.wait_loads_done()
        await ClockCycles(dut.clk_i, bench.random.randrange(1, 60))
        carried += await bench.register(UNDER_WAY)
        await bench.stop()
        await bench.reset()
        bench.forget_writes()
        await bench.wait_for(dut.open_o)
        await bench.wait_idle()
        bench.check_media()
        # The set is empty: lines may be recorded again.
        for t in bench.tracked.values():
            t.lines.clear()
        bench.records = 0
        program.wanted.clear()
    await bench.check()
    assert carried > 0


@cocotb.test()
async def tracked_pool_map_and_commit_are_checked(dut):
    """Bits of `extra`, the number of threads, and commits of several devices."""
    bench = TrackedBench(dut)
    await bench.start()

    async def end(op, **arguments):
        number = await bench.submit(command(op, **arguments))
        await bench.wait_ended(number)
        return bench.ends[number][0]

    ids = {"pool": 0, "process": 7}
    fields = {**ids, "address": BASE, "size": 0x40000, "transaction": 0x20000, "value": 0x4000}
    for extra in (0x101 + 1, 0x301 + 1, 0x201, 0x200, 0x100, *(1 | 1 << n for n in (5, 6, 7, *range(10, 64)))):
        assert await end(POOL_MAP, **fields, extra=extra) == INVALID, hex(extra)
    assert await end(POOL_MAP, **fields, extra=0x101) == 0
    assert await end(POOL_MAP, **fields, extra=0x101) == 0
    for extra in (1, 0x301):
        assert await end(POOL_MAP, **fields, extra=extra) == BUSY
    await bench.write_register(0x180, 0x101)
    assert await end(LOG_OPEN, **ids, value=1) == 0
    assert await end(COMMIT, **ids, value=2, transaction=1) == INVALID
    assert await end(COMMIT, **ids, transaction=1) == 0
    # The same commit in a pool that is not tracked.
    plain = {**fields, "pool": 3, "address": OTHER, "target": 0x50000}
    assert await end(POOL_MAP, **plain, extra=1) == 0
    assert await end(LOG_OPEN, pool=3, process=7, value=1) == 0
    assert await end(COMMIT, pool=3, process=7, value=2, transaction=1) == 0
    await bench.wait_idle()


@cocotb.test()
async def tracked_cycles_of_a_store(dut):
    """Memory without latency: cycles for which the address of a store waits."""
    bench = TrackedBench(dut, stall=0, latency=0)
    await bench.start()
    waited = {}

    async def measure(name, addr, lines=1):
        await bench.wait_idle()
        await ClockCycles(dut.clk_i, 40)
        await bench.store(addr, bench.random.randbytes(64 * lines))
        waited[name] = bench.store_waited

    await measure("no tracked pool", 0x48000)
    await bench.map_pool(**POOL)
    await bench.run_command(LOG_OPEN, **Program.ids(POOL, 0), value=1)
    await ClockCycles(dut.clk_i, 2100)  # the set is cleared
    await measure("outside", 0x48000)
    await measure("recorded now", 0x1000)
    await measure("recorded before", 0x1000)
    await measure("4 lines, recorded now", 0x3000, 4)
    await measure("4 lines, recorded before", 0x3000, 4)
    await bench.run_command(COMMIT, **Program.ids(POOL, 0))
    await measure("recorded now, second epoch", 0x1000)
    dut._log.info("cycles that an address waits: %s", waited)
    none = waited["no tracked pool"]
    more = {name: cycles - none for name, cycles in waited.items()}
    assert more["outside"] == 1
    assert more["recorded before"] == 3
    assert more["recorded now"] == more["recorded now, second epoch"] == 8
    assert more["4 lines, recorded before"] == 3 + 3 * 2
    assert more["4 lines, recorded now"] == 8 + 3 * 7
    await bench.check()
    assert RESERVED > 0


@cocotb.test()
async def tracked_pool_waits_until_its_set_is_empty(dut):
    """A store right after the first log_open waits; stores to other lines and commands do not wait long."""
    bench = TrackedBench(dut)
    await bench.start()
    await bench.map_pool(**POOL)
    await bench.run_command(LOG_OPEN, **Program.ids(POOL, 0), value=1)
    await bench.store(0x48000, bytes(64))
    assert bench.store_waited < 50
    await bench.store(64, bench.random.randbytes(64))
    assert 1000 < bench.store_waited < 2200
    for _ in range(20):
        await RisingEdge(dut.clk_i)
    await bench.check()
