"""Tests of what concerns queues on nvme_ctrl_tb: arbitration."""

from __future__ import annotations

from itertools import pairwise

import cocotb
import nvme_host as nvme
from cocotb.triggers import ClockCycles
from cocotb_ctrl import ENTRIES, SLOTS, start
from nvme_host import PAGE, Host, SubmissionQueue

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
    """Queues in the order in which their commands are fetched, `each` from each queue, all waiting from the start."""
    filler = sqs[-1]
    host.stall(host.mem_slave, True)
    buffer = host.alloc(PAGE)
    first = [host.rw(filler, False, 0, 8, buffer) for _ in range(SLOTS)]
    reads = len(host.memory.reads)
    await host.ring(filler)
    for _ in range(nvme.PATIENCE):
        if len(host.memory.reads) == reads + SLOTS:
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
    at = host.memory.reads[reads + SLOTS :]
    owners = [next((sq.qid for sq in sqs if sq.base <= a < sq.base + 64 * sq.entries), None) for a in at]
    return [qid for qid in owners if qid is not None]


def shares(owners: list[int], sqs: list[SubmissionQueue], want: list[int], rounds: int) -> None:
    """`rounds` rounds in a row have exactly the commands wanted of each queue."""
    size = sum(want)
    assert len(owners) >= size * rounds
    for at in range(0, size * rounds, size):
        part = owners[at : at + size]
        assert [part.count(sq.qid) for sq in sqs] == want, f"{at}: {owners}"


@cocotb.test()
async def weighted_classes(dut):
    """Urgent before all others, then high, medium and low as their weights say, in every round."""
    host = await start(dut, ams=WRR)
    sqs = await queues(host, URGENT, LOW, HIGH, MEDIUM)
    each = 40
    for high, medium, low in ((4, 2, 1), (1, 1, 1), (1, 5, 2), (6, 1, 1)):
        await weights(host, high, medium, low)
        owners = await order(dut, host, sqs, each)
        assert len(owners) == each * 4
        assert owners[:each] == [1] * each, "urgent first"
        rest = owners[each:]
        # What is left of the round before goes first.
        round_ = [3] * high + [4] * medium + [2] * low
        skip = next(i for i in range(len(rest)) if rest[i : i + len(round_)] == round_)
        assert skip <= 9, rest
        rounds = (each - skip) // max(high, medium, low)
        shares(rest[skip:], sqs[1:], [low, high, medium], rounds)


@cocotb.test()
async def weighted_inside_a_class(dut):
    """Queues of one class take turns, and share their class's weight; a class without commands holds up nobody."""
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
async def priorities_ignored(dut):
    """Without weighted round robin, priorities and weights change nothing; the next start may select it, or not."""
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
