# SPDX-License-Identifier: Apache-2.0
"""Tests of times of the controller: Timestamp, Keep Alive, waits, coalescing. On nvme_ctrl_tb."""

from __future__ import annotations

import struct

import cocotb
import identify_model as model
import nvme_host as nvme
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb_ctrl import BLOCKS, ENTRIES, QUEUES, start
from nvme_host import PAGE, Host


@cocotb.test()
async def timestamp(dut):
    """Feature 0Eh: set at any dword of the host, counts milliseconds also while the controller is
    idle; errors."""
    host = await start(dut)

    async def get(**kw) -> tuple[int, int]:
        buffer = host.alloc(16, 64)
        host.memory.data[buffer : buffer + 16] = b"\xa5" * 16
        await host.admin(10, cdw10=14, prp1=buffer, **kw)
        assert host.memory.data[buffer + 8 : buffer + 16] == b"\xa5" * 8
        (value,) = struct.unpack_from("<Q", host.memory.data, buffer)
        return value & (1 << 48) - 1, value >> 48

    async def put(value: int, at: int = 0, **kw) -> None:
        page = host.alloc(2 * PAGE)
        other = host.alloc(PAGE)
        data = struct.pack("<Q", value)
        room = min(8, PAGE - at)
        host.memory.data[page + at : page + at + room] = data[:room]
        host.memory.data[other : other + 8 - room] = data[room:]
        await host.admin(9, **({"cdw10": 14, "prp1": page + at, "prp2": other if room < 8 else 0} | kw))

    ms, attributes = await get()
    assert ms < 1000
    assert attributes == 0, "Timestamp Origin: reset"
    for at in (0, 4, 56, 60, 64, 4088, 4092):
        value = host.rng.randrange(1 << 47)
        await put(value | 0xFFFF << 48, at)
        ms, attributes = await get()
        assert value <= ms < value + 100, f"at {at}: {ms:#x}, {value:#x}"
        assert attributes == 2, "Timestamp Origin: the host"
    await put(1_000_000)
    await host.idle()
    for passed in (1, 999, 3_600_000, 10**9):
        before, _ = await get()
        await host.idle()
        await host.skip(passed * nvme.KHZ)
        after, _ = await get()
        assert passed <= after - before < passed + 100
    await put((1 << 48) - 1)
    await host.skip(10 * nvme.KHZ)
    assert (await get())[0] < 110, "it wraps"
    # Errors change nothing.
    await put(77_000_000)
    good = host.alloc(PAGE)
    for want, fields in (
        (nvme.PRP_OFFSET, {"prp1": good + 2}),
        (nvme.PRP_OFFSET, {"prp1": good + 4092, "prp2": good + 4}),
        (nvme.DATA_TRANSFER, {"prp1": 0x7FFF_F000}),
        (nvme.DATA_TRANSFER, {"prp1": good + 4092, "prp2": 0x7FFF_F000}),
        (nvme.NOT_SAVEABLE, {"cdw10": 1 << 31 | 14}),
        (nvme.NOT_NAMESPACE, {"nsid": 1}),
        (nvme.INVALID_NAMESPACE, {"nsid": 2}),
    ):
        await put(1, want=want, dnr=want != nvme.DATA_TRANSFER, **fields)
        assert 77_000_000 <= (await get())[0] < 77_001_000
    await host.admin(10, want=nvme.PRP_OFFSET, cdw10=14, prp1=good + 2)
    # A controller reset restarts it at 0.
    await host.disable()
    await host.enable()
    ms, attributes = await get()
    assert ms < 1000
    assert attributes == 0


async def set_timeout(host: Host, ms: int, want: int = nvme.OK, **kw) -> None:
    await host.admin(9, want=want, **({"cdw10": 0x0F, "cdw11": ms} | kw))


async def timeout(host: Host, select: int = 0) -> int:
    return (await host.admin(10, cdw10=select << 8 | 0x0F)).dw0


async def pass_time(host: Host, ms: int) -> None:
    """All but 20 ms of it at once, as a simulation skips time when everything is idle."""
    await host.idle()
    if ms > 20:
        await host.skip((ms - 20) * nvme.KHZ)
    await ClockCycles(host.dut.clk_i, min(ms, 20) * nvme.KHZ)


async def expired_entry(host: Host) -> bytes:
    """The newest entry of the error log, except its count."""
    return (await host.log_page(nvme.ERROR_LOG, 64))[8:]


EXPIRED = model.error(0, 0xFFFF, 0xFFFF, nvme.KEEP_ALIVE_EXPIRED)[8:]


@cocotb.test()
async def keep_alive_timeout(dut):
    """Feature 0Fh: rounded up to KAS, the current value or the default by Select; refused values,
    which change nothing; 0 after a reset. A timer that is off never expires, and a Keep Alive then
    has no effect."""
    host = await start(dut)
    await host.admin(0x18)
    assert await timeout(host) == 0
    await pass_time(host, 10**9)
    assert await host.read(nvme.CSTS) == nvme.RDY
    most = (1 << 32) // 100 * 100
    for ms in (1, 99, 100, 101, 5000, 12_345, 1 << 31, most - 1, most, host.rng.randrange(1, most)):
        await set_timeout(host, ms)
        assert await timeout(host) == -(-ms // 100) * 100, f"{ms} ms"
        assert (await timeout(host, 1), await timeout(host, 2), await timeout(host, 3)) == (0, 0, 4)
        # A refused value changes neither the timeout nor the timer.
        for bad in (most + 1, 0xFFFF_FFFF):
            await set_timeout(host, bad, want=nvme.KEEP_ALIVE_INVALID)
        for want, fields in (
            (nvme.NOT_SAVEABLE, {"cdw10": 1 << 31 | 0x0F}),
            (nvme.NOT_NAMESPACE, {"nsid": 1}),
            (nvme.INVALID_NAMESPACE, {"nsid": 2}),
        ):
            await set_timeout(host, 0, want=want, **fields)
        await host.admin(10, want=nvme.INVALID_FIELD, cdw10=4 << 8 | 0x0F)
        assert await timeout(host) == -(-ms // 100) * 100, f"{ms} ms"
    await set_timeout(host, 0)
    assert await timeout(host) == 0
    await pass_time(host, 10**9)
    assert await host.read(nvme.CSTS) == nvme.RDY
    await set_timeout(host, 700)
    await host.disable()
    await host.enable()
    assert await timeout(host) == 0
    await pass_time(host, 10**6)
    assert await host.read(nvme.CSTS) == nvme.RDY


@cocotb.test()
async def keep_alive(dut):
    """The timer is restarted by Keep Alive and by Set Features, by nothing else. When it expires:
    CFS, an entry in the error log, no further fetch, and a long command ends; a reset recovers.
    Resets, shutdown and 0 stop it."""
    host = await start(dut)
    errors = 0

    async def alive(ms: int) -> None:
        await pass_time(host, ms)
        assert await host.read(nvme.CSTS) == nvme.RDY

    async def dead() -> None:
        """The timer has expired, within the time of a register access."""
        await pass_time(host, 15)
        assert await host.read(nvme.CSTS) == nvme.RDY | nvme.CFS

    async def again(how: str = "disable") -> None:
        nonlocal errors
        if how == "reset":
            await host.write(0x20, 0x4E56_4D65)
            await host.wait_csts(nvme.RDY, 0)
            await host.write(nvme.CSTS, 1 << 4)
        else:
            await host.disable()
        host.allocator = 256 * PAGE
        await host.enable()
        assert await timeout(host) == 0
        count = int.from_bytes(await host.log_page(nvme.ERROR_LOG, 8), "little")
        assert count == errors, "errors and ends of the time are counted, nothing else"
        await alive(10**6)

    # To the millisecond, for any timeout; from the last restart.
    for round_, ms in enumerate((100, 300, 150_000, (1 << 32) // 100 * 100)):
        await set_timeout(host, ms)
        for _ in range(2):
            await alive(ms - 30)
            await host.admin(0x18, **host.noise({}))
        await alive(ms - 30)
        await set_timeout(host, ms)
        await alive(ms - 60)
        await host.identify(1)
        await host.admin(0x18, want=nvme.INVALID_FIELD, flags=1)
        await set_timeout(host, 0xFFFF_FFFF, want=nvme.KEEP_ALIVE_INVALID)
        errors += 2
        await alive(25)
        await host.idle()
        await ClockCycles(dut.clk_i, 15 * nvme.KHZ)
        await dead()
        errors += 1
        # Nothing more happens; the clock stops.
        reads, log = len(host.memory.reads), len(host.log)
        host.push(host.sqs[0], 0x18)
        await host.ring(host.sqs[0])
        await ClockCycles(dut.clk_i, 2000)
        await host.idle()
        assert (len(host.memory.reads), len(host.log)) == (reads, log), "fetched after the end"
        await pass_time(host, 10**6)
        assert await host.read(nvme.CSTS) == nvme.RDY | nvme.CFS
        await again("reset" if round_ == 1 else "disable")
        assert await expired_entry(host) == EXPIRED
    # A longer, then a shorter timeout; none; a stop of any kind before the end.
    await set_timeout(host, 1000)
    await alive(900)
    await set_timeout(host, 2000)
    await alive(1900)
    await set_timeout(host, 100)
    await alive(60)
    await set_timeout(host, 0)
    await alive(10**6)
    for how in ("disable", "reset", "shutdown"):
        await set_timeout(host, 100)
        await alive(60)
        if how == "shutdown":
            await host.shutdown()
            host.quiet = False
            await pass_time(host, 10**6)
            assert await host.read(nvme.CSTS) == nvme.RDY | 2 << 2, "inactive from CC.SHN on"
        await again("reset" if how == "reset" else "disable")
    # While a long command is in flight, with other traffic: it ends, and can be retried.
    for acre in (False, True):
        await host.behavior(acre)
        (sq,) = await host.io_queues(1, ENTRIES)
        await set_timeout(host, 100)
        ranges = [(0, BLOCKS)] * 256
        cid = host.dsm(sq, ranges, host.alloc(PAGE))
        await host.ring(sq)
        for _ in range(9):
            await ClockCycles(dut.clk_i, 10 * nvme.KHZ)
            assert await host.read(nvme.CSTS) == nvme.RDY
        await ClockCycles(dut.clk_i, 20 * nvme.KHZ)
        assert await host.read(nvme.CSTS) == nvme.RDY | nvme.CFS
        entry = await host.wait(sq, cid)
        assert (entry.status, entry.dnr) == (host.interrupted, False)
        errors += 2
        await again()
        entries = await host.log_page(nvme.ERROR_LOG, 128)
        assert entries[72:128] == EXPIRED, "before the command that it ended"


@cocotb.test()
async def skippable_waits(dut):
    """Waits with a known end, of held interrupts and of a first fused command, may be skipped. What
    follows comes in the same cycle, counted with the skipped ones, and few are simulated."""
    host = await start(dut)
    await host.msix(QUEUES + 1)
    (sq, other) = await host.io_queues(2, ENTRIES, vectors=True)
    narrow = await host.create_sq(3, 8, await host.create_cq(3, 2))
    unit = nvme.KHZ // 10

    async def until(done, leave_out: bool) -> tuple[int, int]:
        """Cycles until `done()`, and how many of them were simulated."""
        cycles = stale = 0
        for simulated in range(40_000):
            if done():
                return cycles, simulated
            wait = int(dut.wait_o.value)
            more = wait - 8 if leave_out and wait > 8 and stale == 0 else 0
            dut.skipped_i.value = more
            stale = 7 if more else max(stale - 1, 0)  # then it is computed again
            await RisingEdge(dut.clk_i)
            cycles += 1 + more
        raise nvme.Timeout("a wait")

    await host.admin(9, cdw10=8, cdw11=255 << 8 | 100)
    for queues in ((sq,), (sq, other)):
        lengths = []
        # The first round brings the search for held vectors to its position after each round.
        for leave_out in (False, False, True):
            await host.idle()
            host.interrupts.clear()
            for queue in queues:
                host.push(queue, 0, nsid=1)
                await host.ring(queue)
            want = len(queues)
            cycles, simulated = await until(lambda want=want: len(host.interrupts) == want, leave_out)
            lengths.append(cycles)
            assert cycles >= 255 * unit
            assert not leave_out or simulated < 200
            for queue in queues:
                await host.poll(queue.cq)
        assert lengths[1] == lengths[2], lengths
    at = host.alloc(PAGE)
    lengths = []
    for leave_out in (False, True):
        for opcode, flags in ((5, 1), (1, 2)):
            host.push(narrow, opcode, nsid=1, flags=flags, prp1=at)
        await host.ring(narrow)
        await ClockCycles(dut.clk_i, 300)
        narrow.cq.hold = False
        cycles, simulated = await until(lambda: narrow.cq.written > 0, leave_out)
        assert not leave_out or simulated < 600
        lengths.append(cycles)
        await host.poll(narrow.cq)
        for _ in range(2):
            await ClockCycles(dut.clk_i, 300)
            await host.poll(narrow.cq)
        host.done.clear()
        await host.idle()
    assert min(lengths) > 2000, "a half waits for its partner"
    await host.disable()


async def post(host: Host, sq, count: int) -> None:
    """Flushes, until their entries are there. None is consumed, because that would withdraw what is
    held."""
    want = sq.cq.written + count
    for _ in range(count):
        host.push(sq, 0, nsid=1)
    await host.ring(sq)
    for _ in range(nvme.PATIENCE):
        if sq.cq.written == want:
            return
        await RisingEdge(host.dut.clk_i)
    raise nvme.Timeout("entries")


@cocotb.test()
async def coalescing(dut):
    """Features 08h and 09h: a message for a threshold of entries, or when the time is over;
    exceptions; resets."""
    host = await start(dut)
    await host.msix(QUEUES + 1)
    sqs = await host.io_queues(QUEUES, ENTRIES, vectors=True)
    unit = nvme.KHZ // 10  # cycles in 100 us

    async def flushes(sq, count: int) -> None:
        await post(host, sq, count)

    async def messages(wait: int = 60) -> list[int]:
        """Vectors of the messages since the last call; the entries that they announce are
        consumed."""
        await ClockCycles(dut.clk_i, wait)
        got = [data - 0x1000 for data in host.interrupts]
        host.interrupts.clear()
        for vector in set(got):
            await host.poll(host.cqs[vector])
        return got

    async def set_up(threshold: int, time: int) -> None:
        await host.admin(9, cdw10=8, cdw11=time << 8 | threshold)
        await host.idle()
        await messages()

    # Off: threshold or time 0.
    for threshold, time in ((0, 0), (3, 0), (0, 255)):
        await set_up(threshold, time)
        for _ in range(3):
            await flushes(sqs[0], 1)
            assert await messages() == [1]
    # Complete thresholds; the admin queue is exempt.
    await set_up(3, 255)
    for count, want in ((4, 1), (8, 2), (40, 10)):
        await flushes(sqs[0], count)
        assert await messages() == [1] * want
    for _ in range(3):
        await host.admin(8)
        assert await messages() == [0]
    # The rest waits for the time, all vectors together.
    await flushes(sqs[0], 3)
    await flushes(sqs[2], 1)
    assert await messages() == []
    assert dut.busy_o.value
    assert sorted(await messages(255 * unit)) == [1, 3]
    await host.idle()
    assert await messages() == []
    # Nothing is counted twice after that.
    await flushes(sqs[0], 3)
    assert await messages() == []
    await flushes(sqs[0], 1)
    assert await messages() == [1]
    for time in (50, 100, 200):
        await set_up(200, time)
        await flushes(sqs[1], 1)
        cycles = 0
        while not host.interrupts and cycles < 2 * 255 * unit:
            cycles += 1
            await RisingEdge(dut.clk_i)
        assert time * unit - 40 <= cycles <= time * unit + 40, f"{time}: {cycles}"
        assert await messages() == [2]
    # One vector is exempt.
    await set_up(3, 255)
    await host.admin(9, cdw10=9, cdw11=1 << 16 | 2)
    await messages()
    await flushes(sqs[0], 1)
    for _ in range(3):
        await flushes(sqs[1], 1)
        assert await messages() == [2]
    assert await messages(256 * unit) == [1]
    # The settings change while something waits.
    await flushes(sqs[0], 2)
    assert await messages() == []
    await host.admin(9, cdw10=8, cdw11=0)
    assert sorted(await messages()) == [0, 1]
    # A load with all of it, consumed as messages say: each entry is reported, with far fewer
    # messages than entries.
    await set_up(7, 100)
    await host.admin(9, cdw10=9, cdw11=2)
    taken = 0
    for _ in range(4):
        for sq in sqs:
            for _ in range(11):
                host.push(sq, 0, nsid=1)
            await host.ring(sq)
        for _ in range(nvme.PATIENCE):
            if all(sq.head == sq.tail for sq in sqs):
                break
            for data in host.interrupts[taken:]:
                await host.poll(host.cqs[data - 0x1000])
                taken += 1
            await RisingEdge(dut.clk_i)
        else:
            raise nvme.Timeout("messages")
        host.done.clear()
    await host.idle()
    assert len(host.interrupts) <= 44 * QUEUES // 4
    # A shutdown does not wait for the time, and nothing is sent afterwards; nor after a reset.
    await set_up(7, 255)
    await flushes(sqs[0], 2)
    host.interrupts.clear()
    await host.shutdown()
    assert host.interrupts == [0x1001]
    await ClockCycles(dut.clk_i, 600)
    await host.disable()
    host.allocator = 256 * PAGE
    await host.enable()
    (sq,) = await host.io_queues(1, ENTRIES, vectors=True)
    await set_up(7, 255)
    await flushes(sq, 2)
    await host.disable()
    await host.idle()


@cocotb.test()
async def coalescing_withdrawn(dut):
    """A held interrupt is dropped with its cause, masked or not: the queue that the host empties by
    polling, or deletes. No message and no pending bit follow at the end of the time, and later
    entries are counted from the beginning. A queue on a shared vector withdraws nothing of the
    others."""
    host = await start(dut)
    await host.msix(QUEUES + 1)
    unit = nvme.KHZ // 10
    threshold = 7
    await host.admin(9, cdw10=8, cdw11=255 << 8 | threshold)
    (sq,) = await host.io_queues(1, ENTRIES, vectors=True)

    async def message_sent(wait: int = 60) -> bool:
        """Whether a message came since the last call."""
        await ClockCycles(dut.clk_i, wait)
        found = 0x1001 in host.interrupts
        host.interrupts.clear()
        return found

    async def mask(masked: bool) -> None:
        await host.write(nvme.TABLE + 16 + 12, masked)

    for masked in (False, True):
        for how in ("polled", "deleted", "deleted and created"):
            for then in ("the time", "entries"):
                await mask(masked)
                await message_sent()
                await post(host, sq, threshold - 1)
                if how == "polled":
                    await host.poll(sq.cq)
                else:
                    await host.delete_sq(1)
                    await host.delete_cq(1)
                assert not await message_sent(0), "the test is too slow"
                assert await host.read(nvme.PBA) & 2 == 0
                if how == "deleted and created":
                    (sq,) = await host.io_queues(1, ENTRIES, vectors=True)
                case = f"{how}, {masked=}, then {then}"
                if then == "entries" and how != "deleted":
                    await post(host, sq, threshold)
                    assert await host.read(nvme.PBA) & 2 == 0, case
                    assert not await message_sent(), case
                    await post(host, sq, 1)
                    assert masked or await message_sent(), case
                    assert await host.read(nvme.PBA) & 2 == 2 * masked, case
                    await host.poll(sq.cq)
                assert not await message_sent(256 * unit), case
                assert await host.read(nvme.PBA) & 2 == 0, case
                await mask(False)
                assert not await message_sent(), case
                if how == "deleted":
                    (sq,) = await host.io_queues(1, ENTRIES, vectors=True)
                host.done.clear()
    # Two queues on one vector: neither the emptied nor the deleted one withdraws the other's
    # interrupt.
    shared = [await host.create_sq(qid, ENTRIES, await host.create_cq(qid, ENTRIES, 3)) for qid in (2, 3)]
    for deleted in (False, True):
        host.interrupts.clear()
        for queue in shared:
            await post(host, queue, 1)
        if deleted:
            await host.delete_sq(2)
            await host.delete_cq(2)
        else:
            await host.poll(shared[0].cq)
        assert 0x1003 not in host.interrupts, "the test is too slow"
        await ClockCycles(dut.clk_i, 256 * unit)
        assert 0x1003 in host.interrupts
        await host.poll(shared[1].cq)
        host.done.clear()


@cocotb.test()
async def coalescing_race(dut):
    """Around the doorbell that empties a queue: an entry at any cycle before or after is reported.
    If the time is over at any cycle before or after, nothing is pending any more once the doorbell
    has been accepted."""
    host = await start(dut)
    await host.msix(QUEUES + 1)
    unit = nvme.KHZ // 10
    (sq,) = await host.io_queues(1, ENTRIES, vectors=True)

    async def rest() -> None:
        await host.poll(sq.cq)
        await host.idle()
        host.interrupts.clear()
        host.done.clear()

    # How long a Flush takes after its doorbell.
    written = sq.cq.written
    host.push(sq, 0, nsid=1)
    await host.ring(sq)
    latency = 0
    while sq.cq.written == written:
        latency += 1
        await RisingEdge(dut.clk_i)
        assert latency < nvme.PATIENCE
    # With the second entry the threshold is reached, or not.
    for threshold in (1, 7):
        await host.admin(9, cdw10=8, cdw11=100 << 8 | threshold)
        early = late = 0
        for offset in range(max(latency - 30, 0), latency + 6):
            await rest()
            await post(host, sq, 1)
            await ClockCycles(dut.clk_i, 20)
            assert not host.interrupts, "the test is too slow"
            host.push(sq, 0, nsid=1)
            await host.ring(sq)
            await ClockCycles(dut.clk_i, offset)
            before = sq.cq.written
            early += before == 1
            late += before == 2
            await host.doorbell(1, True, (sq.cq.head + 1) % ENTRIES)
            for _ in range(101 * unit + 60):
                if sq.cq.written == 2 and 0x1001 in host.interrupts:
                    break
                assert not host.interrupts, "the test is too slow"
                await RisingEdge(dut.clk_i)
            assert (sq.cq.written, host.interrupts) == (2, [0x1001]), f"{offset=} {threshold=}"
        assert early >= 10
        assert late >= 3
    # The time, with the vector masked.
    await rest()
    await host.write(nvme.TABLE + 16 + 12, 1)
    await host.admin(9, cdw10=8, cdw11=100 << 8 | 7)
    bits = set()
    for offset in range(100 * unit - 50, 100 * unit + 10):
        await rest()
        await post(host, sq, 1)
        await ClockCycles(dut.clk_i, offset)
        bits.add(await host.read(nvme.PBA) & 2)
        await host.poll(sq.cq)
        for _ in range(2):
            assert await host.read(nvme.PBA) & 2 == 0, f"{offset=}"
            await ClockCycles(dut.clk_i, 110)
    assert bits == {0, 2}
