# SPDX-License-Identifier: Apache-2.0
"""A memory with an AXI4 slave port that uses the freedom of AXI4: reads of different IDs in any order, beat by beat.

Writes are answered in any order, too, with errors for the pages in `errors`. Bursts of 64-byte beats, INCR. A reset of
`dut` ends all transactions.
"""

import random
from collections import deque

from cocotb.triggers import RisingEdge


class InterleavingRam:
    """`prefix_*` of `dut`; `errors` holds 4 KiB pages that answer SLVERR, read and written.

    With `writes_fail` all writes do.

    `place` makes an index into `data` out of an address; pages of 4 KiB stay together.
    """

    def __init__(self, dut, prefix, size, seed, stall=0.3, latency=20, interleave=True, place=int):
        self.dut, self.prefix = dut, prefix
        self.data = bytearray(size)
        self.place = place
        self.random = random.Random(seed)
        self.stall, self.latency = stall, latency
        self.interleave = interleave  # else each response takes `latency` cycles, reads end in order of addresses
        self.errors = set()
        self.writes_fail = False
        self.requested = 0
        self.reads = {}  # ID: deque of [due, address, beats left, error, number]
        self.answers = {}  # ID: deque of (due, response)
        self.writes = deque()  # [address, beats left, ID, error]
        self.now = 0
        self.beats = {"r": 0, "w": 0}
        self.interleaved = 0
        self.last_id = None

    def signal(self, name):
        return getattr(self.dut, f"{self.prefix}_{name}")

    def due(self):
        return self.now + (self.random.randrange(self.latency + 1) if self.interleave else self.latency)

    async def run(self):
        s = self.signal
        s("rvalid").value = s("bvalid").value = 0
        s("arready").value = s("awready").value = s("wready").value = 0
        ready = {"ar": 0, "aw": 0, "w": 0}
        r = b = None
        while True:
            await RisingEdge(self.dut.clk_i)
            if not int(self.dut.rst_ni.value):
                for queue in (self.reads, self.answers, self.writes):
                    queue.clear()
                r = b = None
                s("rvalid").value = s("bvalid").value = 0
                continue
            self.now += 1
            if ready["ar"] and int(s("arvalid").value):
                self._take_read(self.place(int(s("araddr").value)), int(s("arlen").value) + 1, int(s("arid").value))
            if ready["aw"] and int(s("awvalid").value):
                addr, beats = self.place(int(s("awaddr").value)), int(s("awlen").value) + 1
                assert addr // 4096 == (addr + 64 * beats - 1) // 4096, f"burst at {addr:#x} crosses a page"
                fails = self.writes_fail or addr >> 12 in self.errors
                self.writes.append([addr, beats, int(s("awid").value), fails])
            if ready["w"] and int(s("wvalid").value):
                self._accept_data(int(s("wdata").value), int(s("wstrb").value), int(s("wlast").value))
            if r is not None and int(s("rready").value):
                r = None
            if b is not None and int(s("bready").value):
                b = None
            r = r or self._next_read()
            b = b or self._next_answer()
            s("rvalid").value = r is not None
            if r is not None:
                s("rid").value, s("rdata").value, s("rresp").value, s("rlast").value = r
            s("bvalid").value = b is not None
            if b is not None:
                s("bid").value, s("bresp").value = b
            # Data is accepted after its address only.
            for name in ready:
                allowed = name != "w" or self.writes
                ready[name] = int(bool(allowed) and self.random.random() >= self.stall)
                s(f"{name}ready").value = ready[name]

    def _take_read(self, addr, beats, ident):
        assert addr % 64 == 0
        assert addr // 4096 == (addr + 64 * beats - 1) // 4096, f"read burst at {addr:#x} crosses a page"
        self.requested += 1
        burst = [self.due(), addr, beats, addr >> 12 in self.errors, self.requested]
        self.reads.setdefault(ident, deque()).append(burst)

    def _next_read(self):
        ids = [i for i, queue in self.reads.items() if queue and queue[0][0] <= self.now]
        if not ids or self.random.random() < self.stall:
            return None
        ident = self.random.choice(ids) if self.interleave else min(ids, key=lambda i: self.reads[i][0][4])
        burst = self.reads[ident][0]
        data = int.from_bytes(self.data[burst[1] : burst[1] + 64], "little")
        burst[1] += 64
        burst[2] -= 1
        self.beats["r"] += 1
        self.interleaved += self.last_id not in (None, ident)
        self.last_id = None if burst[2] == 0 else ident
        if burst[2] == 0:
            self.reads[ident].popleft()
        return ident, data, 2 * burst[3], burst[2] == 0

    def _accept_data(self, data, strb, last):
        burst = self.writes[0]
        for i in range(64):
            if strb >> i & 1 and not burst[3]:
                self.data[burst[0] + i] = data >> 8 * i & 0xFF
        burst[0] += 64
        burst[1] -= 1
        self.beats["w"] += 1
        assert last == (burst[1] == 0), "WLAST does not match the length of the burst"
        if burst[1] == 0:
            self.writes.popleft()
            self.answers.setdefault(burst[2], deque()).append((self.due(), 2 * burst[3]))

    def _next_answer(self):
        ids = [i for i, queue in self.answers.items() if queue and queue[0][0] <= self.now]
        if not ids or self.random.random() < self.stall:
            return None
        ident = self.random.choice(ids)
        return ident, self.answers[ident].popleft()[1]
