# SPDX-License-Identifier: Apache-2.0
"""Tests on nvme_ctrl_tb with DoorbellBuffer 0: the controller does not offer shadow doorbells."""

from __future__ import annotations

import cocotb
import identify_model as model
import nvme_host as nvme
from cocotb.triggers import ClockCycles
from cocotb_ctrl import ENTRIES, start
from nvme_host import PAGE, Host, Pump

DOORBELL_BUFFER_CONFIG = 0x7C


async def refused(host: Host) -> tuple[int, int]:
    """Doorbell Buffer Config ends as every unknown command; returns its pages."""
    pages = host.alloc(PAGE), host.alloc(PAGE)
    for page in pages:
        host.memory.data[page : page + PAGE] = b"\xa5" * PAGE
    await host.admin(DOORBELL_BUFFER_CONFIG, want=nvme.INVALID_OPCODE, prp1=pages[0], prp2=pages[1])
    return pages


@cocotb.test()
async def registers_announced(dut):
    """Identify Controller and the log of effects without the command; nothing else differs."""
    host = await start(dut)
    assert await host.identify(1) == model.controller(host.identity.serial, doorbell_buffer=False)
    assert await host.log_page(nvme.EFFECTS_LOG, PAGE) == model.effects(doorbell_buffer=False)


@cocotb.test()
async def registers_after_refused_config(dut):
    """The status of the command, whatever its pages; flags are checked first. Queues of before and
    of after it are served by their registers, and its pages are neither read nor written."""
    host = await start(dut)
    await host.admin(DOORBELL_BUFFER_CONFIG, want=nvme.INVALID_FIELD, flags=1, prp1=PAGE, prp2=2 * PAGE)
    await host.admin(DOORBELL_BUFFER_CONFIG, want=nvme.INVALID_OPCODE, prp1=PAGE + 4, prp2=2 * PAGE + 1)
    sqs = await host.io_queues(2, 8)
    pages = await refused(host)
    sqs += [await host.create_sq(3, ENTRIES, await host.create_cq(3, ENTRIES))]
    reads = len(host.memory.reads)
    for pauses in (0, 0.2):
        host.pauses(pauses)
        await Pump(host, sqs, max_blocks=4).run(100)
    await host.idle()
    changes, writes = host.doorbells
    assert changes == writes > 0
    assert not any(page <= at < page + PAGE for page in pages for at in host.memory.reads[reads:])
    for page in pages:
        assert host.memory.data[page : page + PAGE] == b"\xa5" * PAGE


@cocotb.test()
async def registers_errors(dut):
    """Invalid values and absent queues are events and change nothing. A full completion queue is
    woken by its head."""
    host = await start(dut)
    cq = await host.create_cq(1, 4)
    sq = await host.create_sq(1, 16, cq)
    cid = await host.park()
    await host.doorbell(1, False, 16)
    assert await host.event(cid) == 1 << 16 | 1 << 8
    await host.log_page(1, 64)
    cid = await host.park()
    await host.write(nvme.DOORBELLS + 8 * 3, 1)
    assert await host.event(cid) == 1 << 16
    cids = [host.push(sq, 0, nsid=1) for _ in range(7)]
    cq.hold = True
    await host.ring(sq)
    await ClockCycles(dut.clk_i, 100)
    assert cq.written == 3, "full"
    cq.hold = False
    for cid in cids:
        assert (await host.wait(sq, cid)).status == nvme.OK
    await host.idle()


@cocotb.test()
async def registers_disable_in_flight(dut):
    """CC.EN to 0 and deletion of queues at any time of a load: no DMA afterwards."""
    host = await start(dut)
    for round_ in range(10):
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
        host.allocator = PAGE
        await host.enable()
        await refused(host)
