# SPDX-License-Identifier: Apache-2.0
"""Tests of asynchronous events. On nvme_ctrl_tb."""

from __future__ import annotations

import struct

import cocotb
import identify_model as model
import nvme_host as nvme
from cocotb.triggers import ClockCycles
from cocotb_ctrl import QUEUES, start
from nvme_host import PAGE, Pump


@cocotb.test()
async def error_events(dut):
    """One event per bad doorbell until the log is read; Retain Asynchronous Event; order of AER and
    event; reset."""
    host = await start(dut)
    first, second = await host.park(), await host.park()
    assert await host.event(first) is None
    assert await host.event(second) is None
    await host.doorbell(QUEUES + 1, False, 1)
    parked = {first, second}
    events = {cid: await host.event(cid) for cid in parked}
    assert sorted(events.values(), key=str) == [nvme.BAD_REGISTER, None], events
    (left,) = (cid for cid, dw0 in events.items() if dw0 is None)
    # Masked until the log is read; reading another log, or with RAE, does not help.
    for value in (1, 0xFFFF):
        await host.doorbell(0, True, value) if value > 1 else await host.doorbell(99, True, value)
        assert await host.event(left) is None
    await host.log_page(nvme.ERROR_LOG, 64, rae=True)
    await host.log_page(nvme.SMART_LOG, 64)
    await host.log_page(nvme.ERROR_LOG, 64, want=nvme.INVALID_FIELD, nsid=1)
    await host.admin(2, want=nvme.PRP_OFFSET, cdw10=15 << 16 | nvme.ERROR_LOG, prp1=PAGE + 2)
    await host.doorbell(0, True, 0xFFFF)
    assert await host.event(left) is None
    await host.log_page(nvme.ERROR_LOG, 64)
    assert await host.event(left) is None, "what was masked is gone"
    await host.doorbell(0, True, 0xFFFF)
    assert await host.event(left) == nvme.BAD_VALUE
    # An event before its request waits; one that is cleared before is dropped.
    await host.log_page(nvme.ERROR_LOG, 64)
    await host.doorbell(0, True, 0xFFFF)
    await host.doorbell(99, True, 0)
    await host.idle()
    cid = host.push(host.sqs[0], 12)
    await host.ring(host.sqs[0])
    assert (await host.wait(host.sqs[0], cid)).dw0 == nvme.BAD_VALUE
    await host.log_page(nvme.ERROR_LOG, 64)
    await host.doorbell(99, True, 0)
    await host.log_page(nvme.ERROR_LOG, 64)
    cid = await host.park()
    assert await host.event(cid) is None
    # A controller reset drops events, and doorbells of a disabled controller make none.
    await host.doorbell(99, True, 0)
    assert await host.event(cid) == nvme.BAD_REGISTER
    await host.disable()
    await host.doorbell(99, True, 0)
    await host.doorbell(1, True, 0)
    await host.enable()
    cid = await host.park()
    assert await host.event(cid) is None
    await host.doorbell(1, True, 0)
    assert await host.event(cid) == nvme.BAD_REGISTER
    await host.shutdown()


@cocotb.test()
async def temperature_events(dut):
    """A threshold set below the temperature, or a temperature beyond a threshold, is an event if it
    is enabled."""
    host = await start(dut)
    cid = await host.park()

    async def over(kelvin: int) -> None:
        await host.admin(9, cdw10=4, cdw11=kelvin)

    await over(300)
    assert await host.event(cid) is None, "not enabled"
    assert (await host.log_page(nvme.SMART_LOG, 4))[0] == 2, "but a warning"
    await host.admin(9, cdw10=11, cdw11=0xFD)
    assert await host.event(cid) is None, "not this warning"
    await host.admin(9, cdw10=11, cdw11=0x02)
    assert await host.event(cid) == nvme.TEMPERATURE, "enabled while it lasts"
    cid = await host.park()
    await over(320)
    await over(308)
    assert await host.event(cid) is None, "masked"
    await host.log_page(nvme.SMART_LOG, 512)
    assert await host.event(cid) is None, "it comes up once"
    await over(309)
    assert (await host.log_page(nvme.SMART_LOG, 4))[0] == 0
    await over(308)
    assert await host.event(cid) == nvme.TEMPERATURE
    await host.log_page(nvme.SMART_LOG, 512)
    # By temperature, while the controller rests; and below the under temperature threshold.
    await over(320)
    await host.admin(9, cdw10=4, cdw11=1 << 20 | 280)
    cid = await host.park()
    for kelvin, warns in ((319, False), (320, True), (281, False), (280, True)):
        dut.temperature_i.value = kelvin
        assert await host.event(cid) == (nvme.TEMPERATURE if warns else None), kelvin
        assert (await host.log_page(nvme.SMART_LOG, 4))[0] == 2 * warns
        if warns:
            cid = await host.park()
    # Not enabled after a reset; thresholds are the default ones.
    dut.temperature_i.value = 400
    await host.disable()
    await host.enable()
    cid = await host.park()
    assert await host.event(cid) is None
    assert (await host.log_page(nvme.SMART_LOG, 4))[0] == 2


@cocotb.test()
async def namespace_notices(dut):
    """A changed namespace stays in the list until it is read, and is a notice if that is
    enabled."""
    host = await start(dut)
    state = 0

    def change() -> None:
        nonlocal state
        state ^= 1
        dut.ns_changed_i.value = state

    assert (await host.identify(1))[92:96] == struct.pack("<I", 0x100), "OAES"
    cid = await host.park()
    change()
    assert await host.event(cid) is None
    assert await host.log_page(nvme.CHANGED_NS, PAGE, rae=True) == model.changed(1)
    assert await host.log_page(nvme.CHANGED_NS, PAGE) == model.changed(1)
    assert await host.log_page(nvme.CHANGED_NS, PAGE) == model.changed()
    await host.admin(9, cdw10=11, cdw11=0x100)
    assert await host.event(cid) is None
    change()
    assert await host.event(cid) == nvme.NS_CHANGED
    cid = await host.park()
    change()
    assert await host.event(cid) is None, "masked"
    assert await host.log_page(nvme.CHANGED_NS, 4, rae=True) == model.changed(1)[:4]
    assert await host.event(cid) is None
    assert await host.log_page(nvme.CHANGED_NS, 4) == model.changed(1)[:4]
    assert await host.event(cid) is None
    # A change at any time of the reading is reported by this list, or by another event.
    seen = set()
    for moment in range(0, 120, 9):
        page = host.alloc(4)
        reader = host.push(host.sqs[0], 2, cdw10=nvme.CHANGED_NS, prp1=page)
        await host.ring(host.sqs[0])
        await ClockCycles(dut.clk_i, moment)
        change()
        await host.wait(host.sqs[0], reader)
        listed = bytes(host.memory.data[page : page + 4])
        reported = await host.event(cid) is not None
        after = await host.log_page(nvme.CHANGED_NS, 4)
        if reported:
            cid = await host.park()
        assert sorted((listed, after)) == [bytes(4), model.changed(1)[:4]], f"at {moment}: in one of the two"
        assert reported or after == bytes(4), f"at {moment}: the change is not reported"
        seen.add(listed)
    assert len(seen) == 2
    change()
    assert await host.event(cid) == nvme.NS_CHANGED
    await host.disable()
    await host.enable()
    cid = await host.park()
    assert await host.event(cid) is None
    assert await host.log_page(nvme.CHANGED_NS, 4) == bytes(4)


@cocotb.test()
async def several_events(dut):
    """One of each type at once, all requests parked: each completes one; one type never uses
    two."""
    host = await start(dut)
    await host.admin(9, cdw10=11, cdw11=0x102)
    cids = [await host.park() for _ in range(4)]
    dut.temperature_i.value = 500
    dut.ns_changed_i.value = 1
    await host.doorbell(200, False, 0)
    for _ in range(3):
        await host.doorbell(0, True, 0x8000)
    got = [await host.event(cid) for cid in cids]
    assert sorted(e for e in got if e is not None) == sorted((nvme.BAD_REGISTER, nvme.TEMPERATURE, nvme.NS_CHANGED))
    # No request: the events wait, in the order of the types.
    for lid in (nvme.ERROR_LOG, nvme.SMART_LOG, nvme.CHANGED_NS):
        await host.log_page(lid, 4)
    (left,) = (cid for cid, e in zip(cids, got, strict=True) if e is None)
    entry = await host.admin(8, cdw10=left << 16)
    assert entry.dw0 == 0
    await host.poll(host.cqs[0])
    assert host.done.pop((0, left)).status == nvme.ABORT_REQUESTED
    dut.temperature_i.value = 300
    await host.log_page(nvme.SMART_LOG, 4)
    dut.temperature_i.value = 500
    dut.ns_changed_i.value = 0
    await ClockCycles(dut.clk_i, 4)
    await host.doorbell(0, True, 0x8000)
    for want in (nvme.BAD_VALUE, nvme.TEMPERATURE, nvme.NS_CHANGED):
        assert (await host.command(0, 12)).dw0 == want


@cocotb.test()
async def events_under_load(dut):
    """Events with I/O on all queues and back-pressure: none lost, data right, requests renewed as
    Linux does."""
    host = await start(dut)
    host.pauses(0.2)
    sqs = await host.io_queues(QUEUES, 16)
    pump = cocotb.start_soon(Pump(host, sqs).run(120))
    for number in range(12):
        cid = host.push(host.sqs[0], 12)
        await host.ring(host.sqs[0])
        await ClockCycles(dut.clk_i, 23 * number)
        await host.doorbell(70, False, 0)
        assert (await host.wait(host.sqs[0], cid)).dw0 == nvme.BAD_REGISTER
        page = await host.log_page(nvme.ERROR_LOG, 128)
        assert struct.unpack_from("<QH", page) == (number + 1, 0xFFFF)
    await pump
    await host.idle()


@cocotb.test()
async def full_admin_completion_queue(dut):
    """A parked request completes only into an entry that the host has freed; the controller rests
    meanwhile."""
    host = await start(dut, entries=16, cq_entries=2)
    cq = host.cqs[0]
    cid = await host.park()
    other = await host.park()
    host.push(host.sqs[0], 8, cdw10=0x7777 << 16)
    cq.hold = True
    await host.ring(host.sqs[0])
    await host.idle()
    assert cq.written == 1
    await host.doorbell(99, True, 0)
    await ClockCycles(dut.clk_i, 50)
    await host.idle()
    await ClockCycles(dut.clk_i, 50)
    assert not dut.busy_o.value, "waiting for the host is no work"
    assert cq.written == 1
    cq.hold = False
    await host.poll(cq)
    host.done.clear()
    events = [await host.event(c) for c in (cid, other)]
    assert sorted(events, key=str) == [nvme.BAD_REGISTER, None]
    left = (cid, other)[events.index(None)]
    # An Abort that has used the last entry finds no room for the request, and reports that.
    assert (await host.admin(8, cdw10=left << 16)).dw0 == 1
    assert await host.event(left) is None
    await host.log_page(nvme.ERROR_LOG, 64)
    await host.doorbell(99, True, 0)
    assert await host.event(left) == nvme.BAD_REGISTER
