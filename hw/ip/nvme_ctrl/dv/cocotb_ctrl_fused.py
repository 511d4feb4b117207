# SPDX-License-Identifier: Apache-2.0
"""Tests of fused Compare and Write on nvme_ctrl_tb."""

from __future__ import annotations

import cocotb
import nvme_host as nvme
from cocotb.triggers import ClockCycles
from cocotb_ctrl import BLOCKS, ENTRIES, QUEUES, SLOTS, start
from cocotb_ctrl_io import COMPARE, WRITE_ZEROES
from extent import LONG
from nvme_host import CC, CC_SIZES, PAGE, RDY, Host

WRITE, READ = 1, 2
FIRST, SECOND = 1, 2
TIMEOUT = 3000  # cycles, see nvme_ctrl_tb
PAIR = (nvme.OK, nvme.OK)


def fields(host: Host, lba: int, blocks: int, at: int, flags: int) -> dict:
    prp1, prp2 = host.prps(at, 512 * blocks)
    return {"nsid": 1, "prp1": prp1, "prp2": prp2, "cdw10": lba, "cdw12": blocks - 1, "flags": flags}


def pair(host: Host, sq, lba: int, blocks: int, compare: int, write: int, **changes) -> tuple[int, int]:
    """Puts both commands of a pair into a queue; `changes`: dictionaries for `first` and
    `second`."""
    first = fields(host, lba, blocks, compare, FIRST) | changes.get("first", {})
    second = fields(host, lba, blocks, write, SECOND) | changes.get("second", {})
    opcodes = first.pop("opcode", COMPARE), second.pop("opcode", WRITE)
    return host.push(sq, opcodes[0], **first), host.push(sq, opcodes[1], **second)


async def statuses(host: Host, sq, cids) -> tuple[int, ...]:
    found = []
    for cid in cids:
        entry = await host.wait(sq, cid)
        assert entry.dnr == (entry.status not in (nvme.OK, nvme.DATA_TRANSFER, nvme.SQ_DELETION, host.interrupted))
        found.append(entry.status)
    return tuple(found)


@cocotb.test()
async def fused_pairs(dut):
    """Equal: both succeed, and the data are there. Different: Compare Failure, and the Write is
    aborted. One block to 128 KiB, with PRPs and SGLs, over the end of the queue."""
    host = await start(dut)
    (sq,) = await host.io_queues(1, 8)
    old, new = host.alloc((1 << 20) + PAGE), host.alloc((1 << 20) + PAGE)
    model = bytearray(host.media.data)
    for i, blocks in enumerate((1, 8, 3, 1, 16, 256, 5, 1, 1, 9)):
        size = 512 * blocks
        lba = host.rng.randrange(BLOCKS - blocks)
        data = host.rng.randbytes(size)
        host.memory.data[old : old + size] = model[512 * lba : 512 * lba + size]
        host.memory.data[new : new + size] = data
        if i % 3 == 1:
            host.memory.data[old + host.rng.randrange(size)] ^= 1 << host.rng.randrange(8)
        else:
            model[512 * lba : 512 * lba + size] = data
        sgls = {}
        if i % 2:
            sgls = {
                "first": host.sgl([(old, size)]) | {"flags": 0x40 | FIRST},
                "second": host.sgl([(new, size)]) | {"flags": 0x40 | SECOND},
            }
        cids = pair(host, sq, lba, blocks, old, new, **sgls)
        await host.ring(sq)
        want = (nvme.COMPARE_FAILURE, nvme.FAILED_FUSED) if i % 3 == 1 else PAIR
        assert await statuses(host, sq, cids) == want
        assert host.media.data == model
    await host.idle()


@cocotb.test()
async def fused_malformed(dut):
    """Fused commands without partner, with a wrong one, or in error: each has its status, and
    nothing is written."""
    host = await start(dut)
    sq, _ = await host.io_queues(2, ENTRIES)
    at = host.alloc(4 * PAGE)
    host.memory.data[at : at + PAGE] = host.media.data[:PAGE]
    host.memory.data[at + PAGE : at + 2 * PAGE] = host.rng.randbytes(PAGE)
    before = bytes(host.media.data)
    missing, failed, field = nvme.MISSING_FUSED, nvme.FAILED_FUSED, nvme.INVALID_FIELD
    normal = fields(host, 0, 8, at + 2 * PAGE, 0)
    first, second = fields(host, 0, 8, at, FIRST), fields(host, 0, 8, at + PAGE, SECOND)
    outside = {"cdw10": BLOCKS - 3}
    gone = {"prp1": 0x7FFF_F000, "prp2": 0}
    cases = [
        ([(COMPARE, first)], [missing]),
        ([(WRITE, second)], [missing]),
        ([(COMPARE, first), (READ, normal)], [missing, nvme.OK]),
        ([(COMPARE, first), (0, {"nsid": 1})], [missing, nvme.OK]),
        ([(READ, first), (READ, normal)], [missing, nvme.OK]),
        ([(COMPARE, first | outside), (READ, normal)], [nvme.LBA_RANGE, nvme.OK]),
        ([(COMPARE, first | outside)], [nvme.LBA_RANGE]),
        ([(WRITE, second), (COMPARE, first)], [missing, missing]),
        ([(COMPARE, first), (COMPARE, first), (READ, normal)], [missing, missing, nvme.OK]),
        ([(COMPARE, first), (WRITE, second | {"cdw10": 8})], [field, field]),
        ([(COMPARE, first), (WRITE, second | {"cdw12": 6})], [field, field]),
        ([(COMPARE, first), (READ, second)], [failed, field]),
        ([(COMPARE, first), (WRITE_ZEROES, second)], [failed, field]),
        ([(COMPARE, first), (0, {"nsid": 1, "flags": SECOND})], [failed, field]),
        ([(READ, first), (WRITE, second)], [field, failed]),
        ([(WRITE, first), (WRITE, second)], [field, failed]),
        ([(COMPARE, first | outside), (WRITE, second | outside)], [nvme.LBA_RANGE, nvme.LBA_RANGE]),
        ([(COMPARE, first | outside), (WRITE, second)], [nvme.LBA_RANGE, failed]),
        ([(COMPARE, first), (WRITE, second | {"nsid": 9})], [failed, nvme.INVALID_NAMESPACE]),
        ([(COMPARE, first | {"nsid": 9}), (WRITE, second)], [nvme.INVALID_NAMESPACE, failed]),
        ([(COMPARE, first), (0x7F, second)], [failed, nvme.INVALID_OPCODE]),
        ([(COMPARE, first | {"flags": 3}), (WRITE, second)], [field, missing]),
        ([(COMPARE, first), (WRITE, second | {"flags": 3})], [missing, field]),
        ([(COMPARE, first | gone), (WRITE, second)], [nvme.DATA_TRANSFER, failed]),
        ([(COMPARE, first | {"prp1": at + 2}), (WRITE, second)], [nvme.PRP_OFFSET, failed]),
        ([(COMPARE, first), (WRITE, second | gone)], [nvme.OK, nvme.DATA_TRANSFER]),
        ([(COMPARE, first), (WRITE, second | {"prp1": at + 2})], [nvme.OK, nvme.PRP_OFFSET]),
    ]
    host.rng.shuffle(cases)
    for commands, want in cases:
        cids = [host.push(sq, opcode, **values) for opcode, values in commands]
        await host.ring(sq)
        assert list(await statuses(host, sq, cids)) == want, commands
        assert host.media.data == before
    # Two first commands, then the second of the latter; all of it among other commands.
    cids = [host.push(sq, COMPARE, **first) for _ in range(2)]
    cids.append(host.push(sq, WRITE, **second))
    cids.append(host.push(sq, READ, **normal))
    await host.ring(sq)
    assert await statuses(host, sq, cids) == (missing, nvme.OK, nvme.OK, nvme.OK)
    assert host.media.data[:PAGE] == host.memory.data[at + PAGE : at + 2 * PAGE]
    assert host.media.data[PAGE:] == before[PAGE:]
    await host.idle()


def value(host: Host, n: int) -> bytes:
    """A page that belongs to a number."""
    return bytes((n * 31 + i * 7 + (i >> 8)) & 0xFF for i in range(PAGE))


@cocotb.test()
async def atomic(dut):
    """All queues count in one block by Compare and Write, with other commands between: each step is
    made once."""
    host = await start(dut)
    host.pauses(0.2)
    sqs = await host.io_queues(QUEUES, ENTRIES)
    steps = 12
    values = host.alloc(PAGE * (steps + 1))
    for n in range(steps + 1):
        host.memory.data[values + PAGE * n : values + PAGE * (n + 1)] = value(host, n)
    host.media.data[:PAGE] = value(host, 0)
    other = host.alloc(PAGE)
    reached, made = 0, []
    for n in range(steps):
        cids = []
        for sq in sqs:
            for _ in range(host.rng.randrange(1, 3)):
                # Not all use the current value.
                m = n if host.rng.random() < 0.7 else host.rng.randrange(steps)
                cids.append((sq, m, pair(host, sq, 0, 8, values + PAGE * m, values + PAGE * (m + 1))))
            host.rw(sq, host.rng.random() < 0.5, 64 + 8 * sq.qid, 8, other)
            await host.ring(sq)
        for sq, m, both in cids:
            result = await statuses(host, sq, both)
            assert result in (PAIR, (nvme.COMPARE_FAILURE, nvme.FAILED_FUSED))
            if result == PAIR:
                made.append(m)
        await host.idle()
        for sq in sqs:
            await host.poll(sq.cq)
        reached = next(k for k in range(steps + 1) if host.media.data[:PAGE] == value(host, k))
        assert sorted(made) == list(range(reached)), "a step was made twice or not at all"
    assert reached > 0


@cocotb.test()
async def fused_plain_writes_between(dut):
    """A plain Write of another queue never comes between the two commands: its data are never
    lost."""
    host = await start(dut)
    host.pauses(0.1)
    sqs = await host.io_queues(2, ENTRIES)
    a, b, w = (host.alloc(PAGE) for _ in range(3))
    for i, at in enumerate((a, b, w)):
        host.memory.data[at : at + PAGE] = value(host, i)
    seen, wanted = set(), {PAIR, (nvme.COMPARE_FAILURE, nvme.FAILED_FUSED)}
    for i in range(400):
        if i >= 40 and seen == wanted:
            break
        host.media.data[:PAGE] = value(host, 0)
        cids = pair(host, sqs[0], 0, 8, a, b)
        plain = host.rw(sqs[1], True, 0, 8, w)
        order = sqs if i % 2 else sqs[::-1]
        await host.ring(order[0])
        await ClockCycles(dut.clk_i, host.rng.randrange(300))
        await host.ring(order[1])
        result = await statuses(host, sqs[0], cids)
        assert await statuses(host, sqs[1], [plain]) == (nvme.OK,)
        assert host.media.data[:PAGE] == value(host, 2), "the plain write was lost"
        seen.add(result)
    assert seen == wanted


def whole_namespace(host: Host, sq, table: int) -> int:
    """A Dataset Management that takes minutes."""
    return host.dsm(sq, [(0, BLOCKS)] * 256, table)


@cocotb.test()
async def fused_blocked_by_long_command(dut):
    """A pair waits for a Dataset Management of minutes. Admin commands, and commands of all queues
    that do not overlap the pair, continue as usual. Overlapping commands, further pairs, and the
    pair itself follow after the abort of the long command. A long command that does not overlap the
    pair does not delay it."""
    host = await start(dut)
    host.patience = 4000
    long, pairing, other, third = await host.io_queues(4, ENTRIES)
    table, old, new, at = host.alloc(PAGE), host.alloc(PAGE), host.alloc(PAGE), host.alloc(PAGE)
    host.memory.data[new : new + PAGE] = host.rng.randbytes(PAGE)
    # Does not overlap.
    verify = host.push(long, 0xC, nsid=1, cdw10=8, cdw12=BLOCKS - 9)
    await host.ring(long)
    await ClockCycles(dut.clk_i, 300)
    host.memory.data[old : old + PAGE] = host.media.data[:PAGE]
    cids = pair(host, pairing, 0, 8, old, new)
    await host.ring(pairing)
    assert await statuses(host, pairing, cids) == PAIR
    assert (long.qid, verify) not in host.done
    host.patience = nvme.PATIENCE
    assert await statuses(host, long, [verify]) == (nvme.OK,)
    # Overlaps, whatever it deallocates. A Write still waits for the 8192 beats that the movers
    # hold.
    for rounds in range(0 if LONG else 1, 3):
        blocker = whole_namespace(host, long, table)
        await host.ring(long)
        await ClockCycles(dut.clk_i, 2000)
        host.memory.data[old : old + PAGE] = bytes(PAGE)
        before = host.rng.randbytes(PAGE)
        host.memory.data[at : at + PAGE] = before
        cids = pair(host, pairing, 64, 8, old, new)
        again = pair(host, third, 64 + 4 * rounds, 8, old, new)
        for sq in (pairing, third):
            await host.ring(sq)
        await ClockCycles(dut.clk_i, 100)
        held = [host.rw(other, True, lba, 1, at) for lba in (64, 71)]
        held.append(host.push(other, WRITE_ZEROES, nsid=1, cdw10=60, cdw12=8))
        await host.ring(other)
        for _ in range(6):
            await host.admin(10, cdw10=7)
            await host.identify(1)
            for sq, lba in ((other, 63), (other, 72), (pairing, 500), (third, BLOCKS - 1), (other, 0)):
                done = host.rw(sq, host.rng.random() < 0.5, lba, 1, at)
                flush = host.push(sq, 0, nsid=1)
                await host.ring(sq)
                assert await statuses(host, sq, [done, flush]) == (nvme.OK, nvme.OK)
        waiting = {(pairing.qid, cid) for cid in cids} | {(third.qid, cid) for cid in again}
        waiting |= {(other.qid, cid) for cid in held} | {(long.qid, blocker)}
        for cq in host.cqs.values():
            await host.poll(cq)
        assert not waiting & host.done.keys()
        if rounds < 2:
            host.memory.data[old : old + PAGE] = host.media.data[64 * 512 : 72 * 512]
            assert (await host.admin(8, cdw10=blocker << 16 | long.qid)).dw0 == 0
            assert (await host.wait(long, blocker)).status == nvme.ABORT_REQUESTED
            first, second = await statuses(host, pairing, cids)
            assert (first, second) in (PAIR, (nvme.COMPARE_FAILURE, nvme.FAILED_FUSED))
            assert await statuses(host, other, held) == (nvme.OK,) * len(held)
            first, second = await statuses(host, third, again)
            assert (first, second) in (PAIR, (nvme.COMPARE_FAILURE, nvme.FAILED_FUSED))
        elif rounds == 2:
            # All slots except the last are used by waiting commands; then a disable.
            host.sqs[4].head = host.sqs[4].tail
            for sq in (other, third):
                for _ in range(12):
                    host.rw(sq, True, 66, 1, at)
                await host.ring(sq)
            await ClockCycles(dut.clk_i, 500)
            for _ in range(4):
                await host.admin(10, cdw10=7)
            await host.disable()
            await host.enable(ENTRIES)
            await host.identify(1)
    await host.idle()


async def blocked_pairs(host: Host, sqs: dict, victim: str, full: bool, late: bool) -> None:
    """A pair (`pair`), Writes of another queue (`writes`) and a second pair (`again`) wait for a
    Dataset Management of minutes; all overlap the pair's blocks. One of the three queues is
    deleted: its commands end without execution, and admin commands continue. Commands that are no
    longer blocked continue; the others follow after the abort of the long one. `full`: all slots
    are used; `late`: commands arrive while the queue is being deleted."""
    dut = host.dut
    new = {name: host.alloc(PAGE) for name in sqs}
    table, old = host.alloc(PAGE), host.alloc(PAGE)
    for at in new.values():
        host.memory.data[at : at + PAGE] = host.rng.randbytes(PAGE)
    data = {name: bytes(host.memory.data[at : at + PAGE]) for name, at in new.items()}
    host.media.data[64 * 512 : 72 * 512] = bytes(PAGE)
    blocker = whole_namespace(host, sqs["long"], table)
    await host.ring(sqs["long"])
    await ClockCycles(dut.clk_i, 1500)

    cids = {"pair": list(pair(host, sqs["pair"], 64, 8, old, new["pair"]))}
    # 7 slots are used by the long command, the pairs, and two admin commands.
    lbas = [64 + n % 4 for n in range(SLOTS - 7 if full else 2)]
    cids["writes"] = [host.rw(sqs["writes"], True, lba, 1, new["writes"] + (lba - 64) * 512) for lba in lbas]
    # It reads the pair's data, or zeros.
    compare = old if victim == "pair" else new["pair"] + 4 * 512
    cids["again"] = list(pair(host, sqs["again"], 68, 4, compare, new["again"]))
    later = [name for name in ("writes", "again") if late and name != victim]
    for name in cids:
        if name not in later:
            await host.ring(sqs[name])
            await ClockCycles(dut.clk_i, 150 + 20 * len(cids[name]))

    admin = host.sqs[0]
    delete, alive = host.push(admin, 0, cdw10=sqs[victim].qid), host.push(admin, 0x18)
    await host.ring(admin)
    if late:
        await ClockCycles(dut.clk_i, host.rng.randrange(300))
        for name in later:
            await host.ring(sqs[name])
            await ClockCycles(dut.clk_i, host.rng.randrange(150, 300))
    assert await statuses(host, admin, [delete, alive]) == (nvme.OK, nvme.OK)
    gone = cids.pop(victim)
    assert await statuses(host, sqs[victim], gone) == (nvme.SQ_DELETION,) * len(gone)

    # Only the pair blocks the Writes; nothing blocks what does not overlap, and the pairs still
    # wait.
    if victim == "pair":
        written = cids.pop("writes")
        assert await statuses(host, sqs["writes"], written) == (nvme.OK,) * len(written)
    waiting = {(sqs["long"].qid, blocker)} | {(sqs[name].qid, cid) for name in cids for cid in cids[name]}
    for name in cids:
        apart = host.rw(sqs[name], True, 500, 1, new[name])
        await host.ring(sqs[name])
        assert await statuses(host, sqs[name], [apart]) == (nvme.OK,)
    for cq in host.cqs.values():
        await host.poll(cq)
    assert not waiting & host.done.keys()

    assert (await host.admin(8, cdw10=blocker << 16 | sqs["long"].qid)).dw0 == 0
    assert (await host.wait(sqs["long"], blocker)).status == nvme.ABORT_REQUESTED
    for name in cids:
        assert await statuses(host, sqs[name], cids[name]) == (nvme.OK,) * len(cids[name]), name
    left = bytearray(host.media.data[64 * 512 : 72 * 512])
    model = bytearray(left)
    if victim != "pair":
        model[:] = data["pair"]
    if "writes" in cids:
        for lba in lbas:
            block = slice((lba - 64) * 512, (lba - 63) * 512)
            model[block] = data["writes"][block]
    if "again" in cids:
        model[4 * 512 :] = data["again"][: 4 * 512]
    assert left == model
    if victim == "pair":
        assert left[:512] in (bytes(512), data["writes"][:512])
    await host.idle()
    qid = sqs[victim].qid
    del host.sqs[qid]
    await host.delete_cq(qid)
    sqs[victim] = await host.create_sq(qid, ENTRIES, await host.create_cq(qid, ENTRIES))


@cocotb.test()
@cocotb.parametrize(full=[False, True], late=[False, True])
async def fused_deletion_while_blocked(dut, full, late):
    """Each kind of queue in turn, so that slots are reused."""
    host = await start(dut)
    sqs = dict(zip(("long", "pair", "writes", "again"), await host.io_queues(4, ENTRIES), strict=True))
    for victim in ("pair", "writes", "again", "pair") if LONG else ("writes", "pair"):
        await blocked_pairs(host, sqs, victim, full, late)
    # All slots are free, and nothing is in flight: Format NVM waits for that.
    at = host.alloc(PAGE)
    many = [host.rw(sqs["pair"], False, n, 1, at) for n in range(2 * SLOTS)]
    await host.ring(sqs["pair"])
    assert await statuses(host, sqs["pair"], many) == (nvme.OK,) * len(many)
    await host.admin(0x80, nsid=1)
    await host.idle()


@cocotb.test()
async def fused_many_pairs(dut):
    """Pairs, plain commands and long ones of all queues on a few blocks at once. A block is never
    half of two, each pair sees what it compares until it writes, and everything ends."""
    host = await start(dut)
    host.pauses(0.1)
    sqs = await host.io_queues(QUEUES, ENTRIES)
    values = host.alloc(PAGE * 64)
    counters = [0] * 4  # of each place of 8 blocks, counted by pairs only
    for n in range(64):
        host.memory.data[values + PAGE * n : values + PAGE * (n + 1)] = value(host, n)
    for place in range(4):
        host.media.data[PAGE * place : PAGE * (place + 1)] = value(host, 0)
    other, table = host.alloc(PAGE), host.alloc(PAGE)
    for _ in range(14):
        cids = []
        for sq in sqs:
            for _ in range(host.rng.randrange(1, 4)):
                kind = host.rng.random()
                place = host.rng.randrange(4)
                if kind < 0.6:
                    n = counters[place]
                    cids.append((sq, place, pair(host, sq, 8 * place, 8, values + PAGE * n, values + PAGE * (n + 1))))
                elif kind < 0.7:
                    cids.append((sq, None, [host.push(sq, 0xC, nsid=1, cdw10=0, cdw12=host.rng.choice((31, 999)))]))
                elif kind < 0.75:
                    cids.append((sq, None, [host.dsm(sq, [(64, 300), (1000, 8)], table)]))
                else:
                    cids.append((sq, None, [host.rw(sq, False, 8 * place, 8, other)]))
            await host.ring(sq)
            await ClockCycles(dut.clk_i, host.rng.randrange(60))
        made = [0] * 4
        tried = [0] * 4
        for sq, place, both in cids:
            result = await statuses(host, sq, both)
            if place is None:
                assert result == (nvme.OK,)
            else:
                assert result in (PAIR, (nvme.COMPARE_FAILURE, nvme.FAILED_FUSED))
                made[place] += result == PAIR
                tried[place] += 1
        for place in range(4):
            assert made[place] == (tried[place] > 0), "exactly one of those that compare with the same value"
            counters[place] += made[place]
            assert host.media.data[PAGE * place : PAGE * (place + 1)] == value(host, counters[place])
    await host.idle()


async def half(host: Host, qid: int) -> tuple:
    """A pair of which only the first command can be fetched: its completion queue has one free
    entry."""
    cq = await host.create_cq(qid, 2)
    sq = await host.create_sq(qid, 8, cq)
    at = host.alloc(PAGE)
    cids = pair(host, sq, 0, 1, at, at)
    await host.ring(sq)
    await ClockCycles(host.dut.clk_i, 300)
    return sq, cids


@cocotb.test()
async def fused_waits_for_room(dut):
    """A partner that finds no room in the completion queue: the first command times out, then the
    other one ends; other queues continue meanwhile."""
    host = await start(dut)
    (free,) = await host.io_queues(1, ENTRIES)
    at = host.alloc(PAGE)
    await host.behavior(acre=host.rng.random() < 0.5)
    sq, cids = await half(host, 2)
    for _ in range(10):
        cid = host.rw(free, True, 0, 8, at)
        await host.ring(free)
        assert await statuses(host, free, [cid]) == (nvme.OK,)
    await host.poll(sq.cq)
    assert (sq.qid, cids[0]) not in host.done
    assert await statuses(host, sq, cids) == (host.interrupted, nvme.MISSING_FUSED)
    await host.idle()


@cocotb.test()
async def fused_abort_of_first(dut):
    """A waiting first command is aborted; the second one then has no partner. A wrong one, or one
    not fetched, is not aborted."""
    host = await start(dut)
    sq, cids = await half(host, 2)
    for sqid, cid in ((2, cids[1]), (2, 0x7777), (1, cids[0]), (2, cids[0]), (2, cids[0])):
        at = len(host.log)
        dw0 = (await host.admin(8, cdw10=cid << 16 | sqid)).dw0
        if dw0 == 0:
            assert (sqid, cid) == (2, cids[0])
            assert [e[1] for e in host.log[at:] if e[0] == "cqe"] == [2, 0]
            break
        assert (sqid, cid) != (2, cids[0])
    assert dw0 == 0
    entry = await host.wait(sq, cids[0])
    assert (entry.status, entry.dnr) == (nvme.ABORT_REQUESTED, False)
    assert (await host.admin(8, cdw10=cids[0] << 16 | 2)).dw0 == 1
    assert await statuses(host, sq, [cids[1]]) == (nvme.MISSING_FUSED,)
    await host.idle()


@cocotb.test()
async def fused_deletion_between(dut):
    """Deletion of the queue ends a waiting first command; so do shutdown and disable, and the next
    start is clean."""
    host = await start(dut)
    sq, (first, _) = await half(host, 1)
    delete = host.push(host.sqs[0], 0, cdw10=1)
    await host.ring(host.sqs[0])
    assert await statuses(host, sq, [first]) == (nvme.MISSING_FUSED,)
    assert await statuses(host, host.sqs[0], [delete]) == (nvme.OK,)
    del host.sqs[1]
    await host.delete_cq(1)
    sq, (first, _) = await half(host, 1)
    await host.shutdown()
    assert await statuses(host, sq, [first]) == (nvme.MISSING_FUSED,)
    await host.disable()
    await host.enable(ENTRIES)
    await half(host, 1)
    await host.write(CC, CC_SIZES)
    await host.wait_csts(RDY, 0)
    await host.enable(ENTRIES)
    (sq,) = await host.io_queues(1, ENTRIES)
    old, new = host.alloc(PAGE), host.alloc(PAGE)
    host.memory.data[old : old + PAGE] = host.media.data[:PAGE]
    cids = pair(host, sq, 0, 8, old, new)
    await host.ring(sq)
    assert await statuses(host, sq, cids) == PAIR
    await host.idle()
