"""The whole engine: commands and the host's accesses in one order, refusals, errors, power cuts."""

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from extent import LONG
from nearpm_bench import RESERVED, SIZE, Bench, local
from nearpm_model import (
    ABORT,
    APPLY,
    BUSY,
    CHECKPOINT,
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
    UNDO,
    UNMAPPED,
    WRONG_PROCESS,
    command,
    padded,
)

TAKE_CYCLES = 16
LIVE = b"NPMLIVE\x01" + bytes(56)
BASE = 0x7F00_0000_0000
TOP = (1 << 64) - 0x30000  # of a pool that ends with the address space
OBJECTS = 0x20000  # bytes of a pool before its logs
POOLS = (
    {"pool": 0, "process": 7, "base": BASE, "media": 0, "size": 0x40000, "logs": 0x20000, "log_bytes": 0x4000},
    {"pool": 5, "process": 900, "base": TOP, "media": 0x50000, "size": 0x30000, "logs": 0x20000, "log_bytes": 0x1000},
)


class Program:
    """Commands and accesses as they may come; most of them touch few lines."""

    def __init__(self, bench):
        self.bench, self.random = bench, bench.random
        self.wanted = {}  # number of a command: result and value
        self.redo = {}  # pool, thread: redo records (offset, bytes, target)

    async def start(self):
        for pool in POOLS:
            await self.bench.map(**pool)
            for thread in range(4):
                await self.bench.do(LOG_OPEN, **self.who(pool, thread), value=self.random.getrandbits(40))

    @staticmethod
    def who(pool, thread):
        return {"pool": pool["pool"], "process": pool["process"], "thread": thread}

    def place(self, pool, size):
        """Of an object: virtual address."""
        limit = OBJECTS if self.random.random() < 0.3 else 0x1000
        return pool["base"] + self.random.randrange(max(1, limit - size))

    async def give(self, op, **arguments):
        number, wanted = await self.bench.command(op, **arguments)
        assert self.bench.waited < TAKE_CYCLES - 1 or self.bench.stores != self.bench.answered
        self.wanted[number] = wanted
        return wanted

    async def step(self):
        b, r = self.bench, self.random
        pool, thread = r.choice(POOLS), r.randrange(4)
        who = self.who(pool, thread)
        log = b.model.logs.get((pool["pool"], thread))
        size = r.choice([1, 8, 64, 100, r.randrange(1, 700), r.randrange(1, 5000) if r.random() < 0.1 else 64])
        kind = r.random()
        if kind < 0.3:
            addr = pool["media"] + self.place(pool, 64) - pool["base"]
            if r.random() < 0.5:
                count = r.randrange(1, 5)
                addr = min(addr & ~63, (addr & ~4095) + 4096 - 64 * count)
                await b.store(addr, r.randbytes(64 * count))
            else:
                await b.store(addr, r.randbytes(r.randrange(1, 65 - addr % 64)))
        elif kind < 0.4:
            await b.load(pool["media"] + (self.place(pool, 64) - pool["base"] & ~63))
        elif kind < 0.65:
            redo = r.random() < 0.4
            address, target = self.place(pool, size), self.place(pool, size)
            if redo:
                result, offset = await self.give(
                    REDO, **who, address=address, size=size, target=target, transaction=r.getrandbits(64)
                )
                if result == 0:
                    self.redo.setdefault((pool["pool"], thread), []).append((offset, size, target))
            else:
                await self.give(UNDO, **who, address=address, size=size, transaction=r.getrandbits(64))
        elif kind < 0.67:
            address = pool["base"] + 4096 * r.randrange(4)
            await self.give(CHECKPOINT, **who, address=address, size=4096)
        elif kind < 0.75:
            address, target = self.place(pool, size), self.place(pool, size)
            await self.give(COPY, **who, address=address, size=size, target=target)
        elif kind < 0.8:
            await self.give(SWITCH, **who, target=self.place(pool, 8) & ~7, value=r.getrandbits(64))
        elif kind < 0.85 and self.redo.get((pool["pool"], thread)):
            offset, count, target = r.choice(self.redo[pool["pool"], thread])
            await self.give(APPLY, **who, size=count, target=target, value=offset)
        elif kind < 0.87:
            await self.give(SYNC, **who)
        elif log is not None:
            op = r.choice([COMMIT, COMMIT, COMMIT_REDO, DELETE, DELETE, ABORT, RECOVER])
            if op in (ABORT, RECOVER):
                await b.loaded()  # else they might see some of the records written back
            result, _ = await self.give(op, **who, transaction=r.getrandbits(64))
            if result == 0 and op != COMMIT_REDO:
                self.redo.pop((pool["pool"], thread), None)

    async def end(self):
        await self.bench.rest()
        for number, wanted in self.wanted.items():
            assert self.bench.ends[number] == wanted, (number, self.bench.ends[number], wanted)
        self.bench.check()


@cocotb.test()
async def operations(dut):
    """Each operation by itself, in a pool and in one that ends with the address space."""
    bench = Bench(dut)
    await bench.start()
    for pool in POOLS:
        await bench.map(**pool)
        await bench.map(**pool)  # again: nothing changes
        who, base = Program.who(pool, 2), pool["base"]
        await bench.do(LOG_OPEN, **who, value=55)
        for start, size in ((0, 1), (3, 61), (3, 62), (63, 2), (64, 64), (1, 128), (4000, 200), (17, 2000)):
            await bench.do(UNDO, **who, address=base + start, size=size, transaction=3)
            bench.check()
        await bench.do(SYNC, **who)
        await bench.do(COMMIT, **who, transaction=4)
        await bench.do(UNDO, **who, address=base + 5, size=100)
        await bench.store(pool["media"] + 64, bytes(64))
        await bench.do(UNDO, **who, address=base + 5, size=100)
        await bench.do(UNDO, **who, address=base + 90, size=10)
        await bench.do(ABORT, **who)
        for op in (COMMIT, ABORT, RECOVER, DELETE):
            await bench.do(op, **who, transaction=op)
            bench.check()
        offsets = []
        for n in range(4):
            told = await bench.do(REDO, **who, address=base + 1000 * n, size=333, target=base + 9000 + 300 * n)
            offsets.append(told[1])
        await bench.do(COMMIT_REDO, **who)
        for n, offset in enumerate(offsets):
            await bench.do(APPLY, **who, size=333, target=base + 9000 + 300 * n, value=offset)
        await bench.do(DELETE, **who)
        await bench.do(REDO, **who, address=base, size=99, target=base + 50)
        await bench.do(COMMIT_REDO, **who)
        await bench.do(RECOVER, **who)
        if pool["log_bytes"] > 0x2000:
            await bench.do(CHECKPOINT, **who, address=base + 4096, size=8192)
            await bench.store(pool["media"] + 4096 + 640, b"x" * 64)
            await bench.do(RECOVER, **who)
        await bench.do(COPY, **who, address=base + 7, size=4096, target=base + 0x10001)
        await bench.do(SWITCH, **who, target=base + 0x10008, value=0x1122_3344_5566_7788)
        await bench.rest()
        bench.check()
    for pool in POOLS:
        await bench.do(POOL_UNMAP, **Program.who(pool, 0))
        await bench.do(UNDO, **Program.who(pool, 2), address=pool["base"], size=1)
    await bench.rest()
    bench.check()


@cocotb.test()
async def refusals(dut):
    """What may not be is told, and changes nothing."""
    bench = Bench(dut)
    await bench.start()
    pool = POOLS[0]

    async def refused(result, op, **arguments):
        number, wanted = await bench.command(op, **arguments)
        await bench.ended(number)
        assert bench.ends[number] == wanted == (result, 0), (op, arguments, bench.ends[number], wanted, result)

    who = Program.who(pool, 1)
    fields = {"address": BASE, "size": 0x40000, "target": 0, "transaction": 0x20000, "value": 0x4000, "extra": 4}
    owner = {"pool": 0, "process": 7}
    await refused(UNMAPPED, UNDO, **who, address=BASE, size=1)
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
    await bench.map(**pool)
    await refused(BUSY, POOL_MAP, **owner, **{**fields, "extra": 3})
    await refused(BUSY, POOL_MAP, pool=0, process=8, **fields)
    await refused(UNMAPPED, UNDO, **who, address=BASE, size=1)
    await refused(UNMAPPED, COMMIT, **who)
    await refused(UNMAPPED, LOG_OPEN, **{**who, "thread": 4}, value=1)
    await bench.do(LOG_OPEN, **who, value=1)
    await refused(BUSY, LOG_OPEN, **who, value=1)
    await refused(WRONG_PROCESS, UNDO, **{**who, "process": 8}, address=BASE, size=1)
    await refused(WRONG_PROCESS, POOL_UNMAP, pool=0, process=8)
    for op in (0, 5, 0x0F, 0x13, 0x17, 0x1E, 0x22, 0x80, 0xFF):
        await refused(INVALID, op, **who)
    for op in (POOL_UNMAP, SYNC, COMMIT, COMMIT_REDO, DELETE, ABORT, RECOVER):
        await refused(INVALID, op, **who, address=1)
        await refused(INVALID, op, **who, value=1)
    await refused(INVALID, UNDO, **who, address=BASE, size=1, target=1)
    await refused(INVALID, UNDO, **who, address=BASE, size=1, extra=1 << 63)
    await refused(INVALID, LOG_OPEN, **who, value=1, size=1)
    for bit in (0, 63, *range(64 + 12, 64 + 16), *range(64 + 20, 64 + 32), *range(64 + 48, 128)):
        text = int.from_bytes(command(SYNC, **who), "little") ^ 1 << bit
        number = await bench.give(text.to_bytes(64, "little"))
        await bench.ended(number)
        assert bench.ends[number] == (INVALID, 0), bit
    for size in (0, 65537, 1 << 32, (1 << 64) - 1):
        await refused(INVALID, UNDO, **who, address=BASE, size=size)
        await refused(INVALID, COPY, **who, address=BASE, size=size, target=BASE + 0x20000)
    await refused(INVALID, CHECKPOINT, **who, address=BASE + 64, size=4096)
    await refused(INVALID, CHECKPOINT, **who, address=BASE, size=64)
    await refused(INVALID, SWITCH, **who, target=BASE + 4)
    await refused(INVALID, COPY, **who, address=BASE, size=100, target=BASE + 99)
    await refused(INVALID, COPY, **who, address=BASE + 99, size=100, target=BASE)
    await refused(INVALID, COPY, **who, address=BASE, size=1, target=BASE)
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
        await refused(OUT_OF_POOL, UNDO, **who, address=address, size=size)
        await refused(OUT_OF_POOL, COPY, **who, address=address, size=size, target=BASE + 5)
        await refused(OUT_OF_POOL, COPY, **who, address=BASE + 5, size=size, target=address)
        await refused(OUT_OF_POOL, REDO, **who, address=BASE + 5, size=size, target=address)
    await refused(OUT_OF_POOL, SWITCH, **who, target=BASE + 0x40000)
    await refused(OUT_OF_POOL, SWITCH, **who, target=BASE - 8)
    await bench.do(REDO, **who, address=BASE, size=64, target=BASE + 64)
    await refused(INVALID, APPLY, **who, size=64, target=BASE + 64, value=65)
    for value in (0, 128, 192, 0x4000, 1 << 32, 1 << 44, (1 << 64) - 64):
        await refused(OUT_OF_POOL, APPLY, **who, size=64, target=BASE + 64, value=value)
    await refused(OUT_OF_POOL, APPLY, **who, size=65, target=BASE + 64, value=64)
    # The log ends with its last byte.
    left = 0x4000 - 64 - 128
    await refused(LOG_FULL, UNDO, **who, address=BASE, size=left - 63)
    await bench.do(UNDO, **who, address=BASE, size=left - 64)
    await refused(LOG_FULL, UNDO, **who, address=BASE, size=1)
    await bench.do(COMMIT_REDO, **who)
    for op, more in ((UNDO, {"address": BASE, "size": 1}), (COMMIT, {}), (ABORT, {})):
        await refused(BUSY, op, **who, **more)
    await bench.do(COMMIT_REDO, **who)
    await bench.do(RECOVER, **who)
    await bench.rest()
    bench.check()
    assert await bench.register(0x100) == bench.given
    assert await bench.register(0x108) == 0


@cocotb.test()
async def programs(dut):
    """Programs of all commands, stores and loads: media and loads are as if all had come one after another."""
    bench = Bench(dut)
    await bench.start()
    program = Program(bench)
    await program.start()
    for n in range(1200):
        await program.step()
        if n % 300 == 299:
            await program.end()
    assert await bench.register(0x118) > 0
    assert await bench.register(0x110) > 1


@cocotb.test()
async def slow_memory(dut):
    """The same with a memory that answers late: many commands are under way."""
    bench = Bench(dut, stall=0.02, latency=300)
    await bench.start()
    program = Program(bench)
    await program.start()
    most = 0
    for _ in range(250):
        await program.step()
        most = max(most, len(bench.under_way))
    await program.end()
    assert most > 8


@cocotb.test()
async def full(dut):
    """64 commands at once, and stores behind them: all come to their end."""
    bench = Bench(dut, latency=60)
    await bench.start()
    pool = POOLS[0]
    await bench.map(**pool)
    for thread in range(4):
        await bench.do(LOG_OPEN, **Program.who(pool, thread), value=1)
    wanted = {}
    for n in range(64):
        number, told = await bench.command(UNDO, **Program.who(pool, n % 4), address=BASE + 64 * n, size=64)
        wanted[number] = told
    # More units end more of them meanwhile.
    assert len(bench.under_way) > (40 if int(dut.Units.value) <= 4 else 25)
    for n in range(64):
        await bench.store(64 * n, bench.random.randbytes(64))
    await bench.rest()
    assert {number: bench.ends[number] for number in wanted} == wanted
    bench.check()


@cocotb.test()
async def refused_beside_ends(dut):
    """A command that is refused while all units end theirs is taken as soon as any other one."""
    bench = Bench(dut, stall=0, latency=0)
    await bench.start()
    await bench.map(**POOLS[0])
    await bench.rest()
    who, units = Program.who(POOLS[0], 0), int(dut.Units.value)
    held = False
    for ram in bench.rams:
        answer = ram._next_answer
        ram._next_answer = lambda answer=answer: None if held else answer()
    waited = {}
    for late in range(24):
        held = True
        for n in range(units):
            await bench.command(SWITCH, **who, target=BASE + 0x1000 * (n % 2) + 64 * n, value=n)
        for _ in range(500):
            await RisingEdge(dut.clk_i)
        assert sum(len(queue) for ram in bench.rams for queue in ram.answers.values()) == units
        held = False
        await ClockCycles(dut.clk_i, late + 1)
        await bench.give(command(0xFF, **who))
        waited[late] = bench.waited
        await bench.rest()
    dut._log.info("cycles that the refused one waited: %s", waited)
    assert max(waited.values()) < TAKE_CYCLES, waited


@cocotb.test()
async def cuts(dut):
    """Power fails while commands are under way that the host knows to be taken: all are carried out after it."""
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
            await program.step()
        await bench.answers()
        await bench.loaded()
        await ClockCycles(dut.clk_i, bench.random.randrange(1, 60))
        left = len(bench.under_way)
        longest = max(longest, await bench.stop())
        # Power fails again while it restores.
        for _ in range(n % 3):
            await bench.reset()
            await ClockCycles(dut.clk_i, bench.random.randrange(1, 2500))
            await bench.stop()
        await bench.reset()
        await bench.until(dut.open_o)
        await bench.rest()
        bench.check()
        assert bench.media[RESERVED : RESERVED + 64] == LIVE
        carried += left
        program.wanted.clear()
    dut._log.info("save: %d cycles at most; %d commands carried over", longest, carried)
    assert carried > 2.5 * least
    assert longest < 1250


class Account:
    """A thread's objects, written together by transactions."""

    def __init__(self, bench, pool, thread):
        self.bench, self.pool, self.who = bench, pool, Program.who(pool, thread)
        self.objects = []
        at = 0x1000 + thread * 0x2000
        for _ in range(4):
            size = bench.random.randrange(1, 300)
            at += bench.random.randrange(64)
            self.objects.append((at, size))
            at = at + size
            at += -at % 64
        self.copy = 0x10000 + thread * 0x2000
        self.tag = self.sure = 0

    def write(self, base, offset, size):
        """Stores of a value that tells the transaction."""
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

    async def give(self, op, **arguments):
        await self.bench.give(command(op, **self.who, **arguments))

    async def transaction(self):
        b, p = self.bench, self.pool
        self.tag += 1
        kind = self.tag % 2
        if kind:
            for at, size in self.objects:
                await self.give(UNDO, address=p["base"] + at, size=size, transaction=self.tag)
                await self.store(p["media"], at, size)
            await self.give(COMMIT, transaction=self.tag)
        else:
            offset, records = 64, []
            for at, size in self.objects:
                await self.store(p["media"] + self.copy - 0x1000, at & 0x1FFF, size)
                source = p["base"] + self.copy - 0x1000 + (at & 0x1FFF)
                await self.give(REDO, address=source, size=size, target=p["base"] + at, transaction=self.tag)
                records.append((offset, at, size))
                offset += 64 + padded(size)
            await self.give(COMMIT_REDO, transaction=self.tag)
            for offset, at, size in records:
                await self.give(APPLY, value=offset, size=size, target=p["base"] + at)
            await self.give(DELETE)
        # A read-back.
        await b.answers()
        if b.alive:
            self.sure = self.tag

    def found(self):
        tags = set()
        for at, size in self.objects:
            tags |= set(self.bench.media[self.pool["media"] + at : self.pool["media"] + at + size])
        return tags


@cocotb.test()
async def transactions(dut):
    """Power fails at any cycle: after recover a transaction is done as a whole or not at all, one read back is."""
    bench = Bench(dut, latency=30)
    await bench.start()
    pool = POOLS[0]
    await bench.map(**pool)
    accounts = [Account(bench, pool, thread) for thread in range(3)]
    for account in accounts:
        await bench.do(LOG_OPEN, **account.who, value=1)
        await account.store(0, 0x1000, 1)
        for at, size in account.objects:
            await account.store(pool["media"], at, size)
    await bench.rest()
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
        await bench.until(dut.open_o)
        number = await bench.give(
            command(POOL_MAP, 0, 0, 7, pool["base"], pool["size"], pool["media"], pool["logs"], pool["log_bytes"], 4)
        )
        await bench.ended(number)
        assert bench.ends[number] == (0, 0)
        for account in accounts:
            number = await bench.give(command(RECOVER, **account.who))
            await bench.ended(number)
            result, value = bench.ends[number]
            assert result == 0
            back += value
        await bench.rest()
        for account in accounts:
            at = pool["media"] + pool["logs"] + account.who["thread"] * pool["log_bytes"]
            generation = int.from_bytes(bench.media[at + 8 : at + 16], "little")
            number = await bench.give(command(LOG_OPEN, **account.who, value=generation))
            await bench.ended(number)
            assert bench.ends[number][0] in (0, BUSY)
            closed += bench.ends[number][0] == 0
        await bench.rest()
        for account in accounts:
            found = account.found()
            assert len(found) == 1, (account.who, found)
            tag = found.pop()
            allowed = {account.sure & 0xFF, account.tag & 0xFF}
            assert tag in allowed, (account.who, tag, account.sure, account.tag)
            if tag != account.tag & 0xFF:
                account.tag = account.sure
            account.sure = account.tag
    dut._log.info("%d records written back or applied; %d logs were closed", back, closed)
    assert back > 2 * least // 3
    assert closed > 0


@cocotb.test()
async def figures(dut):
    """With a memory that answers at once: cycles from a command's first to its answer."""
    bench = Bench(dut, stall=0, latency=0)
    await bench.start()
    pool = POOLS[0]
    await bench.map(**pool)
    who = Program.who(pool, 0)
    await bench.do(LOG_OPEN, **who, value=1)
    took = {}
    for name, op, fields in (
        ("undo of 64 bytes", UNDO, {"address": BASE, "size": 64}),
        ("copy of 16 KiB", COPY, {"address": BASE, "size": 16384, "target": BASE + 0x8000}),
        ("commit", COMMIT, {}),
    ):
        text = command(op, **who, **fields)
        bench.model.run(text)
        start = cocotb.utils.get_sim_time("ns")
        number = await bench.give(text)
        while number not in bench.ends:
            await RisingEdge(dut.clk_i)
        took[name] = (cocotb.utils.get_sim_time("ns") - start) / 4
        dut._log.info("%s: %d cycles, %d of them to be taken", name, took[name], bench.waited + 1)
        assert bench.waited < TAKE_CYCLES - 1
    bench.check()
    # More than four units share buses, behind two more stages each way.
    assert took["undo of 64 bytes"] <= (62 if int(dut.Units.value) <= 4 else 75)
    assert took["copy of 16 KiB"] <= 360
    # Four copies at once, and what is left of a second.
    start = cocotb.utils.get_sim_time("ns")
    for n in range(4):
        await bench.command(COPY, **who, address=BASE + 0x4000 * n, size=0x4000, target=BASE + 0x10000 + 0x4000 * n)
    await bench.rest()
    cycles = (cocotb.utils.get_sim_time("ns") - start) / 4
    dut._log.info("four copies of 16 KiB: %d cycles", cycles)
    assert local(0x3000) == 0x1000
    assert SIZE > 0
