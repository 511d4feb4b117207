# SPDX-License-Identifier: Apache-2.0
"""Tests on nvme_ctrl_tb: arbitration, shadow doorbells, subsystem reset, PMR properties, pending
bits."""

from __future__ import annotations

import struct
from itertools import pairwise

import cocotb
import nvme_host as nvme
from cocotb.triggers import ClockCycles
from cocotb_ctrl import ENTRIES, SLOTS, start
from nvme_host import PAGE, Host, Pump, SubmissionQueue

URGENT, HIGH, MEDIUM, LOW = range(4)
WRR = 1  # CC.AMS


async def queues(host: Host, *priorities: int) -> list[SubmissionQueue]:
    """One queue pair of each priority."""
    sqs = []
    for qid, priority in enumerate(priorities, 1):
        cq = await host.create_cq(qid, ENTRIES)
        sqs.append(await host.create_sq(qid, ENTRIES, cq, cdw11=1 | priority << 1 | qid << 16))
    return sqs


async def weights(host: Host, high: int, medium: int, low: int, burst: int = 7) -> None:
    await host.admin(9, cdw10=1, cdw11=(high - 1) << 24 | (medium - 1) << 16 | (low - 1) << 8 | burst)


async def order(dut, host: Host, sqs: list[SubmissionQueue], each: int) -> list[int]:
    """Queues in the order in which their commands are fetched, `each` from each queue, all waiting
    from the start."""
    filler = sqs[-1]
    host.stall(host.mem_slave, True)
    buffer = host.alloc(PAGE)
    # the last one is the admin queue's
    first = [host.rw(filler, False, 0, 8, buffer) for _ in range(SLOTS - 1)]
    reads = len(host.memory.reads)
    await host.ring(filler)
    for _ in range(nvme.PATIENCE):
        if len(host.memory.reads) == reads + SLOTS - 1:
            break
        await ClockCycles(dut.clk_i, 1)
    else:
        raise nvme.Timeout("all slots taken")
    waiting = [(sq, [host.push(sq, 0, nsid=1) for _ in range(each)]) for sq in sqs]
    for sq in sqs:
        await host.ring(sq)
    await ClockCycles(dut.clk_i, 50)
    host.stall(host.mem_slave, False)
    for sq, cids in [(filler, first), *waiting]:
        for cid in cids:
            assert (await host.wait(sq, cid)).status == nvme.OK
    await host.idle()
    at = host.memory.reads[reads + SLOTS - 1 :]
    owners = [next((sq.qid for sq in sqs if sq.base <= a < sq.base + 64 * sq.entries), None) for a in at]
    return [qid for qid in owners if qid is not None]


def shares(owners: list[int], sqs: list[SubmissionQueue], want: list[int], rounds: int) -> None:
    """`rounds` consecutive rounds have exactly the commands wanted of each queue."""
    size = sum(want)
    assert len(owners) >= size * rounds
    for at in range(0, size * rounds, size):
        part = owners[at : at + size]
        assert [part.count(sq.qid) for sq in sqs] == want, f"{at}: {owners}"


@cocotb.test()
async def weighted_classes(dut):
    """Urgent before all others, then high, medium and low by their weights, in every round."""
    host = await start(dut, ams=WRR)
    sqs = await queues(host, URGENT, LOW, HIGH, MEDIUM)
    each = 40
    for high, medium, low in ((4, 2, 1), (1, 1, 1), (1, 5, 2), (6, 1, 1)):
        await weights(host, high, medium, low)
        owners = await order(dut, host, sqs, each)
        assert len(owners) == each * 4
        assert owners[:each] == [1] * each, "urgent first"
        rest = owners[each:]
        # The rest of the previous round comes first.
        round_ = [3] * high + [4] * medium + [2] * low
        skip = next(i for i in range(len(rest)) if rest[i : i + len(round_)] == round_)
        assert skip <= 9, rest
        rounds = (each - skip) // max(high, medium, low)
        shares(rest[skip:], sqs[1:], [low, high, medium], rounds)


@cocotb.test()
async def weighted_inside_a_class(dut):
    """Queues of one class take turns, and share their class's weight; a class without commands
    blocks no other."""
    host = await start(dut, ams=WRR)
    sqs = await queues(host, HIGH, HIGH, LOW, LOW)
    await weights(host, 4, 256, 2)
    owners = await order(dut, host, sqs, 40)
    skip = next(i for i in range(8) if [qid > 2 for qid in owners[i : i + 6]] == [False] * 4 + [True] * 2)
    shares(owners[skip:], sqs, [2, 2, 1, 1], (40 - skip) // 2)
    high = [qid for qid in owners if qid <= 2][:60]
    assert all(a != b for a, b in pairwise(high)), "in turns"


@cocotb.test()
async def weighted_admin_first(dut):
    """The admin queue comes before urgent queues."""
    host = await start(dut, ams=WRR)
    sqs = await queues(host, URGENT, URGENT, URGENT, URGENT)
    for sq in sqs:
        for _ in range(ENTRIES - 1):
            host.push(sq, 0, nsid=1)
        await host.ring(sq)
    cid = host.push(host.sqs[0], 10, cdw10=1)
    await host.ring(host.sqs[0])
    reads = len(host.memory.reads)
    assert (await host.wait(host.sqs[0], cid)).status == nvme.OK
    admin = host.sqs[0]
    at = next(i for i, a in enumerate(host.memory.reads[reads:]) if admin.base <= a < admin.base + 64 * admin.entries)
    assert at <= 5, "no more than what was on its way"
    for sq in sqs:
        for cid in range(1, ENTRIES):
            await host.wait(sq, cid)


@cocotb.test()
async def weighted_priorities_ignored(dut):
    """Without weighted round robin, priorities and weights change nothing; the next start may
    select it, or not."""
    host = await start(dut)
    for ams in (0, WRR, 0):
        sqs = await queues(host, URGENT, LOW, HIGH, MEDIUM)
        await weights(host, 4, 2, 1)
        owners = await order(dut, host, sqs, 20)
        if ams:
            assert owners[:20] == [1] * 20
        else:
            shares(owners, sqs, [1, 1, 1, 1], 19)
        await host.disable()
        host.allocator = PAGE
        await host.enable(ams=0 if ams else WRR)


# Shadow doorbells.


def event_idx(host: Host, qid: int, is_cq: bool) -> int:
    return struct.unpack_from("<I", host.memory.data, host.shadow[1] + 8 * qid + 4 * is_cq)[0]


@cocotb.test()
async def shadow_config(dut):
    """Doorbell Buffer Config: errors, EventIdx of existing and of new queues, for any content of
    the page; one command at a time and several at once, for any tails; reset."""
    host = await start(dut)

    async def rounds(sq, counts):
        for count in counts:
            cids = [host.push(sq, 0, nsid=1) for _ in range(count)]
            await host.ring(sq)
            await host.idle()
            await host.poll(sq.cq)
            assert [host.done.pop((sq.qid, cid)).status for cid in cids] == [nvme.OK] * count

    for prps in ((PAGE + 4, 2 * PAGE), (PAGE, 2 * PAGE + 2048), (PAGE + 1, 2 * PAGE + 1)):
        await host.admin(0x7C, want=nvme.INVALID_FIELD, prp1=prps[0], prp2=prps[1])
    await host.admin(0x7C, want=nvme.INVALID_FIELD, flags=1, prp1=PAGE, prp2=2 * PAGE)
    for fill in (0, 0xFF, 0x07):
        sqs = await host.io_queues(2, ENTRIES)
        for _ in range(5):
            assert (await host.command(sqs[0], 0, nsid=1)).status == nvme.OK
        page = host.memory.data
        await host.shadow_doorbells(fill)
        assert [event_idx(host, qid, cq) for qid in (1, 2) for cq in (False, True)] == [5, 5, 0, 0]
        sqs += [await host.create_sq(3, ENTRIES, await host.create_cq(3, ENTRIES))]
        assert [event_idx(host, 3, cq) for cq in (False, True)] == [0, 0]
        other = int.from_bytes(bytes([fill]) * 4, "little")
        assert [event_idx(host, qid, cq) for qid in (0, 4) for cq in (False, True)] == [other] * 4
        words = struct.unpack_from("<8I", page, host.shadow[0])
        assert words == (0, 0, 5, 5, 0, 0, 0, 0), "the shadow is the host's"
        assert not any(page[host.shadow[0] + 32 : host.shadow[0] + PAGE]), "the shadow is the host's"
        for sq in sqs:
            await rounds(sq, (4, 1, 2))
        # Again, with queues at work, to other pages.
        await host.shadow_doorbells(fill ^ 0x55)
        for sq in sqs:
            await rounds(sq, [1] * ENTRIES + [3] * ENTRIES)
        # A queue that is deleted and created again starts from 0, whatever its tail was.
        for tail in range(1, 6):
            await host.delete_sq(3)
            await host.delete_cq(3)
            sq = await host.create_sq(3, ENTRIES, await host.create_cq(3, ENTRIES))
            await rounds(sq, [1] * tail)
            await host.delete_sq(3)
            sq = await host.create_sq(3, ENTRIES, host.cqs[3])
            await rounds(sq, (4, 1))
        pages = host.shadow
        await host.disable()
        before = [bytes(page[at : at + PAGE]) for at in pages]
        await host.enable()
        (sq,) = await host.io_queues(1, ENTRIES)
        for _ in range(3):
            assert (await host.command(sq, 0, nsid=1)).status == nvme.OK, "registers count again"
        assert [bytes(page[at : at + PAGE]) for at in pages] == before
        await host.disable()
        host.allocator = PAGE
        await host.enable()


@cocotb.test()
async def shadow_traffic(dut):
    """Data over shadow doorbells, with back-pressure and around the ends of small queues; few
    register writes."""
    host = await start(dut)
    await host.shadow_doorbells()
    sqs = await host.io_queues(4, 8)
    await Pump(host, sqs, max_blocks=4).run(150)
    host.pauses(0.2)
    await Pump(host, sqs, max_blocks=4).run(150)
    await host.idle()
    changes, writes = host.doorbells
    dut._log.info(f"{writes} register writes for {changes} changes of doorbells")
    assert writes < changes


@cocotb.test()
async def shadow_spares_registers(dut):
    """A host that keeps a queue busy seldom writes its registers."""
    host = await start(dut)
    await host.shadow_doorbells()
    (sq,) = await host.io_queues(1, ENTRIES)
    buffer = host.alloc(PAGE)
    host.doorbells = [0, 0]
    count, sent, rung, done = 10 * ENTRIES, 0, 0, 0
    for _ in range(nvme.PATIENCE):
        while sent < count and sent - done < 16:
            host.rw(sq, False, 0, 8, buffer)
            sent += 1
        if sent > rung:
            await host.ring(sq)
            rung = sent
        await host.poll(sq.cq)
        done += len(host.done)
        host.done.clear()
        if done == count:
            break
        await ClockCycles(dut.clk_i, 20)
    changes, writes = host.doorbells
    dut._log.info(f"{writes} register writes for {changes} changes of doorbells, {count} commands")
    assert done == count
    assert writes <= changes // 2


@cocotb.test()
async def shadow_race(dut):
    """A change of the shadow at each cycle around the controller's transition to sleep is seen;
    none is lost."""
    host = await start(dut)
    await host.shadow_doorbells()
    (sq,) = await host.io_queues(1, 16)
    missed = 0
    for delay in range(90):
        assert (await host.command(sq, 0, nsid=1)).status == nvme.OK
        await host.idle()
        cids = [host.push(sq, 0, nsid=1)]
        await host.ring(sq)
        await ClockCycles(dut.clk_i, delay)
        cids.append(host.push(sq, 0, nsid=1))
        writes = host.doorbells[1]
        await host.ring(sq)
        missed += host.doorbells[1] == writes
        for cid in cids:
            assert (await host.wait(sq, cid)).status == nvme.OK
    assert 5 < missed < 85, "changes before and after EventIdx"


@cocotb.test()
async def shadow_full_completion_queue(dut):
    """A command that waits for room in a completion queue is woken by its head's shadow; no other
    queue stops."""
    host = await start(dut)
    await host.shadow_doorbells()
    cq = await host.create_cq(1, 4)
    sq = await host.create_sq(1, 16, cq)
    other = await host.create_sq(2, 16, await host.create_cq(2, 16))
    for delay in range(0, 60, 3):
        cids = [host.push(sq, 0, nsid=1) for _ in range(7)]
        cq.hold = True
        await host.ring(sq)
        await ClockCycles(dut.clk_i, 40 + delay)
        assert (await host.command(other, 0, nsid=1)).status == nvme.OK
        assert cq.written == 3, "full"
        cq.hold = False
        for cid in cids:
            assert (await host.wait(sq, cid)).status == nvme.OK
    await host.idle()


@cocotb.test()
async def shadow_errors(dut):
    """Invalid values are events and change nothing; pages that the host refuses are fatal, and a
    reset recovers."""
    host = await start(dut)
    await host.shadow_doorbells()
    (sq,) = await host.io_queues(1, 16)
    cid = await host.park()
    reads = len(host.memory.reads)
    await host.doorbell(1, False, 16)
    assert await host.event(cid) == 1 << 16 | 1 << 8
    assert not any(sq.base <= at < sq.base + 64 * 16 for at in host.memory.reads[reads:])
    await host.log_page(1, 64)
    assert (await host.command(sq, 0, nsid=1)).status == nvme.OK
    # A queue that does not exist.
    cid = await host.park()
    await host.write(nvme.DOORBELLS + 8 * 3, 1)
    assert await host.event(cid) == 1 << 16
    await host.idle()
    for page in (0, 1):
        start_ = host.shadow[page]
        host.memory.refuse = [range(start_, start_ + PAGE)]
        host.push(sq, 0, nsid=1)
        await host.write(nvme.DOORBELLS + 8, sq.tail)
        assert await host.wait_csts(nvme.CFS, nvme.CFS)
        host.memory.refuse = []
        await host.disable()
        await host.enable()
        await host.shadow_doorbells()
        (sq,) = await host.io_queues(1, 16)
        assert (await host.command(sq, 0, nsid=1)).status == nvme.OK


@cocotb.test()
async def shadow_disable_in_flight(dut):
    """CC.EN to 0 and deletion of queues at any time of a load over shadow doorbells: no DMA
    afterwards."""
    host = await start(dut)
    for round_ in range(10):
        await host.shadow_doorbells()
        sqs = await host.io_queues(4, 16)
        for sq in sqs:
            for _ in range(15):
                host.push(sq, 0, nsid=1)
            await host.ring(sq)
        await ClockCycles(dut.clk_i, 11 * round_ + 1)
        if round_ % 2:
            await host.delete_sq(2)
            host.sqs[2] = sqs[1]
            await ClockCycles(dut.clk_i, 5 * round_)
        await host.disable()
        await host.idle()
        host.allocator = PAGE
        await host.enable()


# Subsystem reset, PMR properties, pending bits.

NSSR, NSSRO = 0x20, 1 << 4
PMRCAP, PMRCTL, PMRSTS = 0xE00, 0xE04, 0xE08


@cocotb.test()
async def subsystem_reset(dut):
    """NSSR at any time: no DMA afterwards, properties at their reset values, CSTS.NSSRO until it is
    cleared."""
    host = await start(dut)
    await host.write(nvme.INTMS, 0xF)
    await host.write(PMRCTL, 1)
    for value in (0, 1, 0x4E56_4D64, 0x654D_564E):
        await host.write(NSSR, value)
        assert await host.wait_csts(0xFF, nvme.RDY) == nvme.RDY, "no reset"
        assert await host.read(NSSR) == 0
    for round_ in range(6):
        sqs = await host.io_queues(4, 16)
        pump = Pump(host, sqs)
        for sq in sqs:
            while pump.submit(sq):
                pass
            await host.ring(sq)
        await ClockCycles(dut.clk_i, 9 * round_ * round_ + 1)
        if round_ == 5:  # fatal
            await host.write(nvme.CC, nvme.CC_SIZES)
            await host.wait_csts(nvme.RDY, 0)
            await host.write(nvme.AQA, 0)
            await host.write(nvme.CC, nvme.CC_SIZES | 1)
            await host.wait_csts(nvme.CFS, nvme.CFS)
        await host.write(NSSR, 0x4E56_4D65)
        await host.wait_csts(nvme.RDY | NSSRO, NSSRO)
        await ClockCycles(dut.clk_i, 200)
        assert await host.read(nvme.CSTS) == NSSRO
        for offset in (nvme.INTMS, nvme.CC, nvme.AQA, PMRCTL, NSSR):
            assert await host.read(offset) == 0
        for offset in (nvme.ASQ, nvme.ACQ):
            assert await host.read64(offset) == 0
        await host.idle()
        await host.write(nvme.CSTS, nvme.RDY | nvme.CFS)
        assert await host.read(nvme.CSTS) == NSSRO
        await host.write(nvme.CSTS, NSSRO)
        assert await host.read(nvme.CSTS) == 0
        host.allocator = 256 * PAGE
        await host.enable()
    # While disabled.
    await host.disable()
    await host.write(nvme.AQA, 0x000F_000F)
    await host.write(NSSR, 0x4E56_4D65)
    await host.wait_csts(0xFF, NSSRO)
    assert await host.read(nvme.AQA) == 0
    await host.write(nvme.CSTS, NSSRO)
    await host.enable()
    await Pump(host, await host.io_queues(4, 16)).run(40)


@cocotb.test()
async def memory_region_properties(dut):
    """PMRCAP announces BAR2; PMRSTS follows PMRCTL; no controller memory space."""
    host = await start(dut, enabled=False)
    assert await host.read(PMRCAP) == 2 << 5 | 1 << 10 | 1 << 16
    for value, enabled in ((1, True), (0, False), (0xFFFF_FFFF, True), (0, False)):
        await host.write(PMRCTL, value)
        assert await host.read(PMRCTL) == enabled
        assert await host.read(PMRSTS) == (0 if enabled else 1 << 8)
    for offset in (PMRCAP, PMRSTS):
        before = await host.read(offset)
        await host.write(offset, 0xFFFF_FFFF)
        assert await host.read(offset) == before


@cocotb.test()
async def pending_bit_of_another_queue(dut):
    """A head doorbell in the cycle of its queue's deletion, or near it: what is pending or held for
    another queue on its vector stays."""
    host = await start(dut)
    await host.msix(5)

    for held in (False, True):
        if held:
            await host.admin(9, cdw10=8, cdw11=255 << 8 | 7)
        for delay in range(40):
            # Queue 1 is deleted, queue 2 stays.
            alloc = host.allocator
            sqs = [await host.create_sq(qid, ENTRIES, await host.create_cq(qid, ENTRIES, 1)) for qid in (1, 2)]
            await host.write(nvme.TABLE + 16 + 12, not held)
            host.interrupts.clear()
            for sq in sqs:
                host.push(sq, 0, nsid=1)
                await host.ring(sq)
            await host.delete_sq(1)
            assert [sq.cq.written for sq in sqs] == [1, 1]
            host.push(host.sqs[0], 4, cdw10=1)
            await host.ring(host.sqs[0])
            await ClockCycles(dut.clk_i, delay)
            assert 0x1001 not in host.interrupts, "the test is too slow"
            await host.write(nvme.DOORBELLS + 8 + 4, 1)
            await host.idle()
            await host.poll(host.cqs[0])
            assert [cqe.status for key, cqe in host.done.items() if key[0] == 0] == [nvme.OK]
            del host.cqs[1]
            if held:
                await ClockCycles(dut.clk_i, 256 * nvme.KHZ // 10)
            else:
                await host.write(nvme.TABLE + 16 + 12, 0)
            await ClockCycles(dut.clk_i, 60)
            assert 0x1001 in host.interrupts, f"{held=}, {delay=}: queue 2 has entries without an interrupt"
            await host.poll(sqs[1].cq)
            host.done.clear()
            await host.delete_sq(2)
            await host.delete_cq(2)
            host.allocator = alloc
    await host.admin(9, cdw10=8, cdw11=0)


@cocotb.test()
async def pending_bit_withdrawn(dut):
    """A masked vector is not pending once its queue has been emptied by polling; shared vectors
    stay pending."""
    host = await start(dut)
    await host.msix(5)
    for by_function in (False, True):
        sqs = await host.io_queues(2, ENTRIES, vectors=True)
        shared = [await host.create_sq(qid, ENTRIES, await host.create_cq(qid, ENTRIES, 3)) for qid in (3, 4)]
        if by_function:
            dut.msix_mask_i.value = 1
        else:
            for vector in range(5):
                await host.write(nvme.TABLE + 16 * vector + 12, 1)
        await ClockCycles(dut.clk_i, 10)
        host.interrupts.clear()

        async def post(sq, count):
            for _ in range(count):
                host.push(sq, 0, nsid=1)
            await host.ring(sq)
            await host.idle()

        await post(sqs[0], 2)
        await post(sqs[1], 1)
        assert await host.read(nvme.PBA) & ~1 == 3 << 1
        await host.doorbell(1, True, 1)
        assert await host.read(nvme.PBA) & ~1 == 3 << 1, "one entry is left"
        await host.poll(host.cqs[1])
        assert await host.read(nvme.PBA) & ~1 == 2 << 1
        await post(shared[0], 1)
        await host.poll(host.cqs[3])
        assert await host.read(nvme.PBA) & ~1 == 6 << 1
        await host.poll(host.cqs[0])
        dut.msix_mask_i.value = 0
        for vector in range(5):
            await host.write(nvme.TABLE + 16 * vector + 12, 0)
        await host.idle()
        await ClockCycles(dut.clk_i, 20)
        assert sorted(set(host.interrupts) - {0x1000}) == [0x1002, 0x1003]
        # Of a queue that was deleted and created again, alone on its vector; its deletion withdraws
        # the bit as well.
        dut.msix_mask_i.value = 1
        await ClockCycles(dut.clk_i, 10)
        for again in range(3):
            host.done.clear()
            await host.delete_sq(1)
            await host.delete_cq(1)
            sq = await host.create_sq(1, ENTRIES, await host.create_cq(1, ENTRIES, 1))
            await post(sq, 1)
            assert await host.read(nvme.PBA) & 2 == 2
            if again < 2:
                await host.poll(host.cqs[1])
                assert await host.read(nvme.PBA) & 2 == 0, "withdrawn"
            host.sqs[1].head = host.sqs[1].tail
        await host.delete_sq(1)
        await host.delete_cq(1)
        assert await host.read(nvme.PBA) & 2 == 0, "its queue has gone"
        # One of two queues on a vector is deleted: the other one is then alone.
        await host.delete_sq(3)
        await host.delete_cq(3)
        await host.poll(host.cqs[4])
        host.done.clear()
        await post(shared[1], 1)
        assert await host.read(nvme.PBA) & 8 == 8
        await host.poll(host.cqs[4])
        assert await host.read(nvme.PBA) & 8 == 0
        host.done.clear()
        dut.msix_mask_i.value = 0
        await host.disable()
        host.allocator = PAGE
        await host.enable()
