# SPDX-License-Identifier: Apache-2.0
"""The whole engine: order of commands and host accesses, refusals, power cuts."""

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from extent import LONG
from nearpm_bench import RESERVED, SIZE, Bench, local
from nearpm_model import (
    ABORT,
    APPLY,
    BUSY,
    CHECKPOINT,
    CHECKPOINT_RANGES,
    COMMIT,
    COMMIT_REDO,
    COPY,
    DELETE,
    INVALID,
    LOG_FULL,
    LOG_OPEN,
    OUT_OF_POOL,
    POOL_MAP,
    POOL_UNMAP,
    RECOVER,
    REDO,
    SWITCH,
    SYNC,
    TORN,
    UNDO,
    UNDO_RANGES,
    UNMAPPED,
    WRONG_PROCESS,
    command,
    padded,
)

DECODE_CYCLES = 16
LIVE = b"NPMLIVE\x01" + bytes(56)
BASE = 0x7F00_0000_0000
TOP = (1 << 64) - 0x30000  # of a pool that ends with the address space
OBJECTS = 0x20000  # bytes of a pool before its logs
POOLS = (
    {"pool": 0, "process": 7, "base": BASE, "media": 0, "size": 0x40000, "logs": 0x20000, "log_bytes": 0x4000},
    {"pool": 5, "process": 900, "base": TOP, "media": 0x50000, "size": 0x30000, "logs": 0x20000, "log_bytes": 0x1000},
)


class Program:
    """Random commands and accesses; most of them concentrate on few lines."""

    def __init__(self, bench, pools=POOLS):
        self.bench, self.random, self.pools = bench, bench.random, pools
        self.wanted = {}  # number of a command: result and value
        self.redo = {}  # pool, thread: redo records (offset, bytes, target)

    async def start(self):
        for pool in self.pools:
            await self.bench.map_pool(**pool)
            for thread in range(self.threads(pool)):
                await self.bench.run_command(LOG_OPEN, **self.ids(pool, thread), value=self.random.getrandbits(40))

    @staticmethod
    def ids(pool, thread):
        return {"pool": pool["pool"], "process": pool["process"], "thread": thread}

    @staticmethod
    def threads(pool):
        return pool.get("threads", 4) & 31

    def object_address(self, pool, size):
        """Virtual address of an object."""
        limit = OBJECTS if self.random.random() < 0.3 else 0x1000
        return pool["base"] + self.random.randrange(max(1, limit - size))

    async def submit(self, op, **arguments):
        number, wanted = await self.bench.command(op, **arguments)
        assert self.bench.waited < DECODE_CYCLES - 1 or self.bench.stores != self.bench.answered
        assert wanted[0] != TORN
        self.wanted[number] = wanted
        return wanted

    async def before_store(self, pool, count):
        """Called before a store of up to `count` lines."""

    async def submit_random(self):
        b, r = self.bench, self.random
        pool = r.choice(self.pools)
        thread = r.randrange(self.threads(pool))
        ids = self.ids(pool, thread)
        size = r.choice([1, 8, 64, 100, r.randrange(1, 700), r.randrange(1, 5000) if r.random() < 0.1 else 64])
        kind = r.random()
        if kind < 0.3:
            addr = pool["media"] + self.object_address(pool, 64) - pool["base"]
            count = r.randrange(1, 5)
            await self.before_store(pool, count)
            if r.random() < 0.5:
                addr = min(addr & ~63, (addr & ~4095) + 4096 - 64 * count)
                await b.store(addr, r.randbytes(64 * count))
            else:
                await b.store(addr, r.randbytes(r.randrange(1, 65 - addr % 64)))
        elif kind < 0.4:
            await b.load(pool["media"] + (self.object_address(pool, 64) - pool["base"] & ~63))
        elif kind < 0.65:
            redo = r.random() < 0.4
            address, target = self.object_address(pool, size), self.object_address(pool, size)
            if redo:
                result, offset = await self.submit(
                    REDO, **ids, address=address, size=size, target=target, transaction=r.getrandbits(64)
                )
                if result == 0:
                    self.redo.setdefault((pool["pool"], thread), []).append((offset, size, target))
            elif r.random() < 0.5:
                await self.submit(UNDO, **ids, address=address, size=size, transaction=r.getrandbits(64))
            else:
                ranges = []
                for _ in range(r.randrange(1, 8)):
                    size = r.choice([1, 8, 64, r.randrange(1, 500)])
                    ranges.append((self.object_address(pool, size) - pool["base"], size))
                await self.submit(UNDO_RANGES, **ids, ranges=ranges, transaction=r.getrandbits(56))
        elif kind < 0.67:
            address = pool["base"] + 4096 * r.randrange(4)
            await self.submit(CHECKPOINT, **ids, address=address, size=4096)
        elif kind < 0.75:
            address, target = self.object_address(pool, size), self.object_address(pool, size)
            await self.submit(COPY, **ids, address=address, size=size, target=target)
        elif kind < 0.8:
            await self.submit(SWITCH, **ids, target=self.object_address(pool, 8) & ~7, value=r.getrandbits(64))
        elif kind < 0.85 and self.redo.get((pool["pool"], thread)):
            offset, count, target = r.choice(self.redo[pool["pool"], thread])
            await self.submit(APPLY, **ids, size=count, target=target, value=offset)
        elif kind < 0.87:
            await self.submit(SYNC, **ids)
        else:
            op = r.choice([COMMIT, COMMIT, COMMIT_REDO, DELETE, DELETE, ABORT, RECOVER])
            if op in (ABORT, RECOVER):
                await b.wait_loads_done()  # otherwise a load may return partly written-back data
            result, _ = await self.submit(op, **ids, transaction=r.getrandbits(64))
            if result == 0 and op != COMMIT_REDO:
                self.redo.pop((pool["pool"], thread), None)

    async def check_results(self):
        await self.bench.wait_idle()
        for number, wanted in self.wanted.items():
            assert self.bench.ends[number] == wanted, (number, self.bench.ends[number], wanted)
        self.bench.check_media()


@cocotb.test()
async def operation_results_match_model(dut):
    """Each operation alone, in a pool and in one at the end of the address space."""
    bench = Bench(dut)
    await bench.start()
    for pool in POOLS:
        await bench.map_pool(**pool)
        await bench.map_pool(**pool)  # repeating the mapping changes nothing
        ids, base = Program.ids(pool, 2), pool["base"]
        await bench.run_command(LOG_OPEN, **ids, value=55)
        for start, size in ((0, 1), (3, 61), (3, 62), (63, 2), (64, 64), (1, 128), (4000, 200), (17, 2000)):
            await bench.run_command(UNDO, **ids, address=base + start, size=size, transaction=3)
            bench.check_media()
        await bench.run_command(SYNC, **ids)
        await bench.run_command(COMMIT, **ids, transaction=4)
        # Several ranges: small ones, across pages, over each other, at the pool's end; larger ones.
        for ranges in (
            [(5, 100)],
            [(4090, 12), (0x1FFF, 2), (4000, 200), (4000, 200), (63, 2), (pool["size"] - 1, 1)],
            [(n, 448 - n) for n in range(7)],
            [(700, 449), (700, 3)],
        ):
            await bench.run_command(UNDO_RANGES, **ids, ranges=ranges, transaction=0x77_6655_4433_2211)
            bench.check_media()
        await bench.store(pool["media"] + 4032, b"y" * 64)
        await bench.run_command(ABORT, **ids)
        bench.check_media()
        await bench.run_command(UNDO, **ids, address=base + 5, size=100)
        await bench.store(pool["media"] + 64, bytes(64))
        await bench.run_command(UNDO, **ids, address=base + 5, size=100)
        await bench.run_command(UNDO, **ids, address=base + 90, size=10)
        await bench.run_command(ABORT, **ids)
        for op in (COMMIT, ABORT, RECOVER, DELETE):
            await bench.run_command(op, **ids, transaction=op)
            bench.check_media()
        offsets = []
        for n in range(4):
            reported = await bench.run_command(
                REDO, **ids, address=base + 1000 * n, size=333, target=base + 9000 + 300 * n
            )
            offsets.append(reported[1])
        await bench.run_command(COMMIT_REDO, **ids)
        for n, offset in enumerate(offsets):
            await bench.run_command(APPLY, **ids, size=333, target=base + 9000 + 300 * n, value=offset)
        await bench.run_command(DELETE, **ids)
        await bench.run_command(REDO, **ids, address=base, size=99, target=base + 50)
        await bench.run_command(COMMIT_REDO, **ids)
        await bench.run_command(RECOVER, **ids)
        if pool["log_bytes"] > 0x2000:
            await bench.run_command(CHECKPOINT_RANGES, **ids, ranges=[(8192, 4096)])
            await bench.run_command(CHECKPOINT, **ids, address=base + 4096, size=4096)
            await bench.store(pool["media"] + 4096 + 640, b"x" * 64)
            await bench.run_command(RECOVER, **ids)
        await bench.run_command(COPY, **ids, address=base + 7, size=4096, target=base + 0x10001)
        await bench.run_command(SWITCH, **ids, target=base + 0x10008, value=0x1122_3344_5566_7788)
        await bench.wait_idle()
        bench.check_media()
    for pool in POOLS:
        await bench.run_command(POOL_UNMAP, **Program.ids(pool, 0))
        await bench.run_command(UNDO, **Program.ids(pool, 2), address=pool["base"], size=1)
    await bench.wait_idle()
    bench.check_media()


@cocotb.test()
async def refusal_changes_nothing(dut):
    """An invalid command is reported and changes nothing."""
    bench = Bench(dut)
    await bench.start()
    pool = POOLS[0]

    async def refused(result, op, **arguments):
        number, wanted = await bench.command(op, **arguments)
        await bench.wait_ended(number)
        assert bench.ends[number] == wanted == (result, 0), (op, arguments, bench.ends[number], wanted, result)

    ids = Program.ids(pool, 1)
    fields = {"address": BASE, "size": 0x40000, "target": 0, "transaction": 0x20000, "value": 0x4000, "extra": 4}
    owner = {"pool": 0, "process": 7}
    await refused(UNMAPPED, UNDO, **ids, address=BASE, size=1)
    for change in (
        {"address": BASE + 64},
        {"size": 0x40040},
        {"size": 0},
        {"target": 64},
        {"transaction": 0x20040},
        {"value": 0x4001},
        {"value": 128},
        {"value": 1 << 32},
        {"extra": 0},
        {"extra": 17},
    ):
        await refused(INVALID, POOL_MAP, **owner, **{**fields, **change})
    for change in (
        {"address": (1 << 64) - 0x3F000},
        {"size": RESERVED + 4096},
        {"size": 1 << 44},
        {"size": (1 << 64) - 4096},
        {"target": RESERVED - 0x3F000},
        {"target": 1 << 45},
        {"target": (1 << 64) - 4096},
        {"transaction": 0x31000},
        {"transaction": (1 << 64) - 4096},
        {"extra": 9},
        {"value": 0xFFFF_FFC0},
    ):
        await refused(OUT_OF_POOL, POOL_MAP, **owner, **{**fields, **change})
    await bench.map_pool(**pool)
    await refused(BUSY, POOL_MAP, **owner, **{**fields, "extra": 3})
    await refused(BUSY, POOL_MAP, pool=0, process=8, **fields)
    await refused(UNMAPPED, UNDO, **ids, address=BASE, size=1)
    await refused(UNMAPPED, COMMIT, **ids)
    await refused(UNMAPPED, LOG_OPEN, **{**ids, "thread": 4}, value=1)
    await bench.run_command(LOG_OPEN, **ids, value=1)
    await refused(BUSY, LOG_OPEN, **ids, value=1)
    await refused(WRONG_PROCESS, UNDO, **{**ids, "process": 8}, address=BASE, size=1)
    await refused(WRONG_PROCESS, POOL_UNMAP, pool=0, process=8)
    for op in (0, 5, 0x0F, 0x15, 0x17, 0x1E, 0x22, 0x80, 0xFF):
        await refused(INVALID, op, **ids)
    for op in (POOL_UNMAP, SYNC, COMMIT, COMMIT_REDO, DELETE, ABORT, RECOVER):
        await refused(INVALID, op, **ids, address=1)
        await refused(INVALID, op, **ids, value=1)
    await refused(INVALID, UNDO, **ids, address=BASE, size=1, target=1)
    await refused(INVALID, UNDO, **ids, address=BASE, size=1, extra=1 << 63)
    await refused(INVALID, LOG_OPEN, **ids, value=1, size=1)
    for bit in (0, 63, *range(64 + 12, 64 + 16), *range(64 + 20, 64 + 32), *range(64 + 48, 128)):
        text = int.from_bytes(command(SYNC, **ids), "little") ^ 1 << bit
        number = await bench.submit(text.to_bytes(64, "little"))
        await bench.wait_ended(number)
        assert bench.ends[number] == (INVALID, 0), bit
    good = [(64 * n, 64 + n) for n in range(7)]
    for count in (1, 3, 7):
        text = command(UNDO_RANGES, **ids, ranges=good[:count])
        for bit in (*range(64 + 12, 64 + 16), *range(64 + 20, 64 + 24), *range(64 + 24, 64 + 32), *range(112, 128)):
            number = await bench.submit((int.from_bytes(text, "little") ^ 1 << bit).to_bytes(64, "little"))
            await bench.wait_ended(number)
            assert bench.ends[number] == (INVALID, 0), (count, bit)
    # A range without bytes, and one that is not counted.
    for n in range(7):
        for wrong in ((0, 0), (64, 0)):
            await refused(INVALID, UNDO_RANGES, **ids, ranges=[*good[:n], wrong, *good[n + 1 :]])
        await refused(INVALID, CHECKPOINT_RANGES, **ids, ranges=[*[(0, 4096)] * n, (64, 4096)])
        await refused(INVALID, CHECKPOINT_RANGES, **ids, ranges=[*[(0, 4096)] * n, (0, 4032)])
    # One of seven outside the pool: none is recorded.
    for n in range(7):
        for wrong in ((0x40000, 1), (0x3FFFF, 2), (0x3FFC0, 65535), ((1 << 40) - 1, 1)):
            await refused(OUT_OF_POOL, UNDO_RANGES, **ids, ranges=[*good[:n], wrong, *good[n + 1 :]])
    for size in (0, 65537, 1 << 32, (1 << 64) - 1):
        await refused(INVALID, UNDO, **ids, address=BASE, size=size)
        await refused(INVALID, COPY, **ids, address=BASE, size=size, target=BASE + 0x20000)
    await refused(INVALID, CHECKPOINT, **ids, address=BASE + 64, size=4096)
    await refused(INVALID, CHECKPOINT, **ids, address=BASE, size=64)
    await refused(INVALID, SWITCH, **ids, target=BASE + 4)
    await refused(INVALID, COPY, **ids, address=BASE, size=100, target=BASE + 99)
    await refused(INVALID, COPY, **ids, address=BASE + 99, size=100, target=BASE)
    await refused(INVALID, COPY, **ids, address=BASE, size=1, target=BASE)
    for address, size in (
        (BASE - 1, 1),
        (BASE - 1, 2),
        (BASE + 0x40000, 1),
        (BASE + 0x3FFFF, 2),
        (0, 1),
        ((1 << 64) - 1, 1),
        ((1 << 64) - 1, 65536),
        (BASE + (1 << 44), 1),
    ):
        await refused(OUT_OF_POOL, UNDO, **ids, address=address, size=size)
        await refused(OUT_OF_POOL, COPY, **ids, address=address, size=size, target=BASE + 5)
        await refused(OUT_OF_POOL, COPY, **ids, address=BASE + 5, size=size, target=address)
        await refused(OUT_OF_POOL, REDO, **ids, address=BASE + 5, size=size, target=address)
    await refused(OUT_OF_POOL, SWITCH, **ids, target=BASE + 0x40000)
    await refused(OUT_OF_POOL, SWITCH, **ids, target=BASE - 8)
    await bench.run_command(REDO, **ids, address=BASE, size=64, target=BASE + 64)
    await refused(INVALID, APPLY, **ids, size=64, target=BASE + 64, value=65)
    for value in (0, 128, 192, 0x4000, 1 << 32, 1 << 44, (1 << 64) - 64):
        await refused(OUT_OF_POOL, APPLY, **ids, size=64, target=BASE + 64, value=value)
    await refused(OUT_OF_POOL, APPLY, **ids, size=65, target=BASE + 64, value=64)
    # The log ends with its last byte.
    left = 0x4000 - 64 - 128
    await refused(LOG_FULL, UNDO, **ids, address=BASE, size=left - 63)
    await refused(LOG_FULL, UNDO_RANGES, **ids, ranges=[(0, 64), (0, left - 191)])
    await refused(LOG_FULL, UNDO_RANGES, **ids, ranges=[(0, 65535)] * 7)
    await bench.run_command(UNDO, **ids, address=BASE, size=left - 64)
    await refused(LOG_FULL, UNDO, **ids, address=BASE, size=1)
    await bench.run_command(COMMIT_REDO, **ids)
    for op, more in ((UNDO, {"address": BASE, "size": 1}), (COMMIT, {}), (ABORT, {})):
        await refused(BUSY, op, **ids, **more)
    await bench.run_command(COMMIT_REDO, **ids)
    await bench.run_command(RECOVER, **ids)
    await bench.wait_idle()
    bench.check_media()
    assert await bench.register(0x100) == bench.submitted
    assert await bench.register(0x108) == 0


@cocotb.test()
async def program_order_with_random_traffic(dut):
    """Random commands, stores and loads: media and loads match sequential execution."""
    bench = Bench(dut)
    await bench.start()
    program = Program(bench)
    await program.start()
    for n in range(1200):
        await program.submit_random()
        if n % 300 == 299:
            await program.check_results()
    assert await bench.register(0x118) > 0
    assert await bench.register(0x110) > 1


@cocotb.test()
async def program_order_with_slow_memory(dut):
    """The same with a slow memory: many commands are in flight."""
    bench = Bench(dut, stall=0.02, latency=300)
    await bench.start()
    program = Program(bench)
    await program.start()
    most = 0
    for _ in range(250):
        await program.submit_random()
        most = max(most, len(bench.in_flight))
    await program.check_results()
    assert most > 8


@cocotb.test()
async def table_full_drains(dut):
    """64 commands at once, followed by stores: all end."""
    bench = Bench(dut, latency=120)
    await bench.start()
    pool = POOLS[0]
    await bench.map_pool(**pool)
    for thread in range(4):
        await bench.run_command(LOG_OPEN, **Program.ids(pool, thread), value=1)
    wanted = {}
    for n in range(64):
        number, reported = await bench.command(UNDO, **Program.ids(pool, n % 4), address=BASE + 64 * n, size=64)
        wanted[number] = reported
    # More units end more of them in the meantime.
    assert len(bench.in_flight) > (40 if int(dut.Units.value) <= 4 else 25)
    for n in range(64):
        await bench.store(64 * n, bench.random.randbytes(64))
    await bench.wait_idle()
    assert {number: bench.ends[number] for number in wanted} == wanted
    bench.check_media()


@cocotb.test()
async def refusal_not_delayed_by_completions(dut):
    """A command refused while all units report results is accepted as soon as any other."""
    bench = Bench(dut, stall=0, latency=0)
    await bench.start()
    await bench.map_pool(**POOLS[0])
    await bench.wait_idle()
    ids, units = Program.ids(POOLS[0], 0), int(dut.Units.value)
    held = False
    for ram in bench.rams:
        answer = ram._next_answer
        ram._next_answer = lambda answer=answer: None if held else answer()
    waited = {}
    for late in range(24):
        held = True
        for n in range(units):
            await bench.command(SWITCH, **ids, target=BASE + 0x1000 * (n % 2) + 64 * n, value=n)
        for _ in range(500):
            await RisingEdge(dut.clk_i)
        assert sum(len(queue) for ram in bench.rams for queue in ram.answers.values()) == units
        held = False
        await ClockCycles(dut.clk_i, late + 1)
        await bench.submit(command(0xFF, **ids))
        waited[late] = bench.waited
        await bench.wait_idle()
    dut._log.info("cycles that the refused command waited: %s", waited)
    assert max(waited.values()) < DECODE_CYCLES, waited


@cocotb.test()
async def power_cut_executes_accepted_commands(dut):
    """Power fails with accepted commands in flight: all of them are executed afterwards."""
    bench = Bench(dut, latency=120)
    await bench.start()
    program = Program(bench)
    await program.start()
    longest, carried = 0, 0
    least = 16 if LONG else 6
    for n in range(4 * least):
        if n >= least and carried > 2.5 * least:
            break
        for _ in range(bench.random.randrange(8, 30)):
            await program.submit_random()
        await bench.wait_stores_answered()
        await bench.wait_loads_done()
        await ClockCycles(dut.clk_i, bench.random.randrange(1, 60))
        left = len(bench.in_flight)
        longest = max(longest, await bench.stop())
        # Power fails again during the restore.
        for _ in range(n % 3):
            await bench.reset()
            await ClockCycles(dut.clk_i, bench.random.randrange(1, 2500))
            await bench.stop()
        await bench.reset()
        await bench.wait_for(dut.open_o)
        await bench.wait_idle()
        bench.check_media()
        assert bench.media[RESERVED : RESERVED + 64] == LIVE
        carried += left
        program.wanted.clear()
    dut._log.info("save: %d cycles at most; %d commands restored", longest, carried)
    assert carried > 2.5 * least
    assert longest < 1250


class Account:
    """Objects of a thread, written together by transactions."""

    def __init__(self, bench, pool, thread):
        self.bench, self.pool, self.ids = bench, pool, Program.ids(pool, thread)
        self.objects = []
        at = 0x1000 + thread * 0x2000
        for _ in range(4):
            size = bench.random.randrange(1, 300)
            at += bench.random.randrange(64)
            self.objects.append((at, size))
            at = at + size
            at += -at % 64
        self.copy = 0x10000 + thread * 0x2000
        self.tag = self.confirmed_tag = 0

    def write(self, base, offset, size):
        """Stores of a value that identifies the transaction."""
        parts = []
        at, end = base + offset, base + offset + size
        while at < end:
            stop = min(end, (at & ~63) + 64)
            parts.append((at, bytes([self.tag & 0xFF]) * (stop - at)))
            at = stop
        return parts

    async def store(self, base, offset, size):
        for at, data in self.write(base, offset, size):
            await self.bench.store(at, data)

    async def submit(self, op, **arguments):
        await self.bench.submit(command(op, **self.ids, **arguments))

    async def transaction(self):
        b, p = self.bench, self.pool
        self.tag += 1
        kind = self.tag % 3
        if kind == 1:
            await self.submit(UNDO_RANGES, ranges=self.objects, transaction=self.tag)
            for at, size in self.objects:
                await self.store(p["media"], at, size)
            await self.submit(COMMIT, transaction=self.tag)
        elif kind:
            for at, size in self.objects:
                await self.submit(UNDO, address=p["base"] + at, size=size, transaction=self.tag)
                await self.store(p["media"], at, size)
            await self.submit(COMMIT, transaction=self.tag)
        else:
            offset, records = 64, []
            for at, size in self.objects:
                await self.store(p["media"] + self.copy - 0x1000, at & 0x1FFF, size)
                source = p["base"] + self.copy - 0x1000 + (at & 0x1FFF)
                await self.submit(REDO, address=source, size=size, target=p["base"] + at, transaction=self.tag)
                records.append((offset, at, size))
                offset += 64 + padded(size)
            await self.submit(COMMIT_REDO, transaction=self.tag)
            for offset, at, size in records:
                await self.submit(APPLY, value=offset, size=size, target=p["base"] + at)
            await self.submit(DELETE)
        # Read-back.
        await b.wait_stores_answered()
        if b.alive:
            self.confirmed_tag = self.tag

    def tags_found(self):
        tags = set()
        for at, size in self.objects:
            tags |= set(self.bench.media[self.pool["media"] + at : self.pool["media"] + at + size])
        return tags


@cocotb.test()
async def power_cut_keeps_transactions_atomic(dut):
    """Power fails at any cycle: after recover each transaction is whole or absent; one read back is whole."""
    bench = Bench(dut, latency=30)
    await bench.start()
    pool = POOLS[0]
    await bench.map_pool(**pool)
    accounts = [Account(bench, pool, thread) for thread in range(3)]
    for account in accounts:
        await bench.run_command(LOG_OPEN, **account.ids, value=1)
        await account.store(0, 0x1000, 1)
        for at, size in account.objects:
            await account.store(pool["media"], at, size)
    await bench.wait_idle()
    back = closed = 0
    least = 30 if LONG else 9
    for n in range(4 * least):
        if n >= least and back > 2 * least // 3 and closed > 0:
            break
        account = None

        async def host():
            while bench.alive:
                await bench.random.choice(accounts).transaction()

        task = cocotb.start_soon(host())
        await ClockCycles(dut.clk_i, bench.random.randrange(1, 1500))
        await bench.stop()
        task.cancel()
        for _ in range(n % 3):
            await bench.reset()
            await ClockCycles(dut.clk_i, bench.random.randrange(1, 2500))
            await bench.stop()
        await bench.reset()
        await bench.wait_for(dut.open_o)
        number = await bench.submit(
            command(POOL_MAP, 0, 0, 7, pool["base"], pool["size"], pool["media"], pool["logs"], pool["log_bytes"], 4)
        )
        await bench.wait_ended(number)
        assert bench.ends[number] == (0, 0)
        for account in accounts:
            number = await bench.submit(command(RECOVER, **account.ids))
            await bench.wait_ended(number)
            result, value = bench.ends[number]
            assert result == 0
            back += value
        await bench.wait_idle()
        for account in accounts:
            at = pool["media"] + pool["logs"] + account.ids["thread"] * pool["log_bytes"]
            generation = int.from_bytes(bench.media[at + 8 : at + 16], "little")
            number = await bench.submit(command(LOG_OPEN, **account.ids, value=generation))
            await bench.wait_ended(number)
            assert bench.ends[number][0] in (0, BUSY)
            closed += bench.ends[number][0] == 0
        await bench.wait_idle()
        for account in accounts:
            found = account.tags_found()
            assert len(found) == 1, (account.ids, found)
            tag = found.pop()
            allowed = {account.confirmed_tag & 0xFF, account.tag & 0xFF}
            assert tag in allowed, (account.ids, tag, account.confirmed_tag, account.tag)
            if tag != account.tag & 0xFF:
                account.tag = account.confirmed_tag
            account.confirmed_tag = account.tag
    dut._log.info("%d records written back or applied; %d logs were closed", back, closed)
    assert back > 2 * least // 3
    assert closed > 0


@cocotb.test()
async def latency_figures(dut):
    """Memory without latency: cycles from the first cycle of a command to its response."""
    bench = Bench(dut, stall=0, latency=0)
    await bench.start()
    pool = POOLS[0]
    await bench.map_pool(**pool)
    ids = Program.ids(pool, 0)
    await bench.run_command(LOG_OPEN, **ids, value=1)
    took = {}
    for name, op, fields in (
        ("undo of 64 bytes", UNDO, {"address": BASE, "size": 64}),
        ("copy of 16 KiB", COPY, {"address": BASE, "size": 16384, "target": BASE + 0x8000}),
        ("commit", COMMIT, {}),
    ):
        text = command(op, **ids, **fields)
        bench.model.run(text)
        start = cocotb.utils.get_sim_time("ns")
        number = await bench.submit(text)
        while number not in bench.ends:
            await RisingEdge(dut.clk_i)
        took[name] = (cocotb.utils.get_sim_time("ns") - start) / 4
        dut._log.info("%s: %d cycles, %d of them until acceptance", name, took[name], bench.waited + 1)
        assert bench.waited < DECODE_CYCLES - 1
    bench.check_media()
    # More than four units share buses, with two more stages each way.
    assert took["undo of 64 bytes"] <= (62 if int(dut.Units.value) <= 4 else 75)
    # With four units it is divided.
    assert took["copy of 16 KiB"] <= (260 if int(dut.Units.value) == 4 else 360)
    # Four copies at once.
    start = cocotb.utils.get_sim_time("ns")
    for n in range(4):
        await bench.command(COPY, **ids, address=BASE + 0x4000 * n, size=0x4000, target=BASE + 0x10000 + 0x4000 * n)
    await bench.wait_idle()
    cycles = (cocotb.utils.get_sim_time("ns") - start) / 4
    dut._log.info("four copies of 16 KiB: %d cycles", cycles)
    assert local(0x3000) == 0x1000
    assert SIZE > 0
