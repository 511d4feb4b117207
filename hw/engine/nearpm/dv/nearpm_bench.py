# SPDX-License-Identifier: Apache-2.0
"""Bench of the engine with two memory channels: a host that stores, loads and submits commands in one order."""

import random
from collections import deque

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiBus, AxiRam
from interleaving_ram import InterleavingRam
from nearpm_model import POOL_MAP, Engine, command

SIZE = 1 << 20
CHANNELS, GRANULE = 2, 4096
RESERVED = SIZE - Engine.RESERVED
HOST_BYTES = 1 << 16
PROGRESS = 0x210


def channel_of(addr):
    return addr // GRANULE % CHANNELS


def local(addr):
    return addr // GRANULE // CHANNELS * GRANULE + addr % GRANULE


class Bench:
    """`media`: content of the memory; `model`: expected content after all commands and stores."""

    def __init__(self, dut, stall=0.1, latency=10):
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.media = bytearray(self.random.randbytes(RESERVED) + bytes(SIZE - RESERVED))
        self.rams = []
        for c in range(CHANNELS):
            ram = InterleavingRam(
                dut,
                f"m_axi{c}",
                0,
                self.random.random(),
                stall=stall,
                latency=latency,
                place=lambda addr, c=c: (addr // GRANULE * CHANNELS + c) * GRANULE + addr % GRANULE,
            )
            ram.data = self.media
            self.rams.append(ram)
        self.model = Engine(bytearray(self.media))
        # Host memory. Accesses beyond its end are answered with errors.
        self.host = AxiRam(
            AxiBus.from_prefix(dut, "m_host"), dut.clk_i, dut.rst_ni, reset_active_level=False, size=HOST_BYTES
        )
        for part in (self.host.write_if, self.host.read_if):
            part.log.setLevel("ERROR")
        self.alive = False
        cocotb.start_soon(Clock(dut.clk_i, 4, unit="ns").start())

    # ------------------------------------------------------------ reset and power

    async def start(self):
        for ram in self.rams:
            cocotb.start_soon(ram.run())
        await self.reset()
        cocotb.start_soon(self._watch_page())
        for c in range(CHANNELS):
            cocotb.start_soon(self._write_data(c))
            cocotb.start_soon(self._check_responses(c))
        await self.wait_for(self.dut.open_o)

    async def reset(self):
        d = self.dut
        self.alive = False
        d.rst_ni.value = 0
        d.stop_i.value = d.page_valid_i.value = 0
        for name in ("awvalid", "wvalid", "bready", "arvalid", "rready"):
            getattr(d, f"s_axil_{name}").value = 0
            for c in range(CHANNELS):
                getattr(d, f"s_pm{c}_{name}").value = 0
                getattr(d, f"s_nvme{c}_{name}").value = 0
        self.free = list(range(64))
        self.random.shuffle(self.free)
        self.in_flight = {}  # line: number of the command
        self.ends = {}  # number: result and value
        self.submitted = 0
        self.data = [deque() for _ in range(CHANNELS)]  # (data, strobes, last)
        self.stores = self.answered = 0
        self.loads = [{} for _ in range(CHANNELS)]  # ID: address and permitted values
        await ClockCycles(d.clk_i, 4)
        d.rst_ni.value = 1
        self.alive = True

    async def wait_for(self, signal, cycles=200_000):
        for n in range(cycles):
            if int(signal.value):
                return n
            await RisingEdge(self.dut.clk_i)
        raise AssertionError(f"no {signal._name}")

    async def stop(self):
        """Power fails: what the engine reports as saved stays. Returns the cycles of the save."""
        self.alive = False
        self.dut.stop_i.value = 1
        self.dut.page_valid_i.value = 0
        # Data of accepted addresses still arrive, or arrive without strobes.
        if self.random.random() < 0.5:
            for queue in self.data:
                queue.extend([(word, 0, last) for word, _, last in [queue.popleft() for _ in range(len(queue))]])
        for c in range(CHANNELS):
            for name in ("awvalid", "arvalid"):
                getattr(self.dut, f"s_pm{c}_{name}").value = 0
        await RisingEdge(self.dut.clk_i)
        await RisingEdge(self.dut.clk_i)
        took = await self.wait_for(self.dut.saved_o, 2500)
        # The multiplexers of the test top lie between the engine and the memory.
        quiet = 0
        while quiet < 20:
            await RisingEdge(self.dut.clk_i)
            quiet = 0 if any(ram.writes for ram in self.rams) else quiet + 1
        return took

    # ------------------------------------------------------------ commands

    async def _watch_page(self):
        d = self.dut
        while True:
            await RisingEdge(d.clk_i)
            if self.alive and int(d.page_done_o.value):
                line = int(d.page_done_line_o.value)
                number = self.in_flight.pop(line)
                self.ends[number] = (int(d.page_result_o.value), int(d.page_value_o.value))
                self.free.append(line)

    async def submit(self, text):
        """Holds a command until it is accepted; returns its number."""
        d = self.dut
        while not self.free:
            await RisingEdge(d.clk_i)
        line = self.free.pop(0)
        number, self.submitted = self.submitted, self.submitted + 1
        self.in_flight[line] = number
        d.page_i.value = int.from_bytes(text, "little")
        d.page_line_i.value = line
        d.page_valid_i.value = 1
        waited = 0
        while True:
            await RisingEdge(d.clk_i)
            if not self.alive:
                return number
            if int(d.page_ready_o.value):
                break
            waited += 1
        self.waited = waited
        d.page_valid_i.value = 0
        return number

    async def command(self, op, **arguments):
        """Submits a command, also to the model; returns its number and the expected response."""
        text = command(op, **arguments)
        number = await self.submit(text)
        wanted = self.run_model(text)
        self.note_newer_values()
        return number, wanted

    def run_model(self, text):
        """Executes a command in the model."""
        return self.model.run(text)

    def store_in_model(self, addr, data):
        """Stores data in the model."""
        self.model.data[addr : addr + len(data)] = data

    async def run_command(self, op, **arguments):
        """Submits a command and waits for the expected response: result and value."""
        number, wanted = await self.command(op, **arguments)
        await self.wait_ended(number)
        assert self.ends[number] == wanted, (op, arguments, self.ends[number], wanted)
        return wanted

    async def wait_ended(self, number):
        for _ in range(100_000):
            if number in self.ends:
                return
            await RisingEdge(self.dut.clk_i)
        raise AssertionError("a command does not end")

    async def map_pool(
        self, pool=0, process=7, base=0x7F00_0000_0000, media=0, size=0x40000, logs=0x20000, log_bytes=0x4000, threads=4
    ):
        return await self.run_command(
            POOL_MAP,
            pool=pool,
            process=process,
            address=base,
            size=size,
            target=media,
            transaction=logs,
            value=log_bytes,
            extra=threads,
        )

    # ------------------------------------------------------------ stores and loads

    async def store(self, addr, data, strobes=None):
        """Stores lines in one burst within 4 KiB, or bytes of a line; returns after the address handshake."""
        d, c = self.dut, channel_of(addr)
        offset = addr % 64
        if offset or len(data) % 64:
            assert offset + len(data) <= 64
            lines = [(int.from_bytes(data, "little") << 8 * offset, ((1 << len(data)) - 1) << offset)]
        else:
            lines = [(int.from_bytes(data[n : n + 64], "little"), (1 << 64) - 1) for n in range(0, len(data), 64)]
        s = lambda name: getattr(d, f"s_pm{c}_{name}")  # noqa: E731
        s("awaddr").value = local(addr) & ~63
        s("awlen").value = len(lines) - 1
        s("awsize").value = 6
        s("awburst").value = 1
        s("awid").value = self.random.randrange(4)
        s("awvalid").value = 1
        self.store_waited = 0
        while True:
            await RisingEdge(d.clk_i)
            if not self.alive:
                return
            if int(s("awready").value):
                break
            self.store_waited += 1
        s("awvalid").value = 0
        for n, (word, strobe) in enumerate(lines):
            self.data[c].append((word, strobe, n == len(lines) - 1))
        self.stores += 1
        self.store_in_model(addr, data)
        self.note_newer_values()

    async def _write_data(self, c):
        d = self.dut
        s = lambda name: getattr(d, f"s_pm{c}_{name}")  # noqa: E731
        now = None
        while True:
            await RisingEdge(d.clk_i)
            if not int(d.rst_ni.value):
                now = None
                s("wvalid").value = 0
                continue
            if now and int(s("wready").value):
                now = None
            if now is None and self.data[c] and self.random.random() < 0.9:
                now = self.data[c].popleft()
                s("wdata").value, s("wstrb").value, s("wlast").value = now
            s("wvalid").value = now is not None

    async def _check_responses(self, c):
        d = self.dut
        s = lambda name: getattr(d, f"s_pm{c}_{name}")  # noqa: E731
        while True:
            await RisingEdge(d.clk_i)
            if not self.alive:
                continue
            if int(s("bready").value) and int(s("bvalid").value):
                assert int(s("bresp").value) == 0
                self.answered += 1
            if int(s("rready").value) and int(s("rvalid").value):
                wanted = self.loads[c].pop(int(s("rid").value))
                assert int(s("rlast").value)
                assert int(s("rresp").value) == 0
                got = int(s("rdata").value).to_bytes(64, "little")
                assert got in wanted[1], f"load of {wanted[0]:#x}: {got.hex()}, not {[v.hex() for v in wanted[1]]}"
            s("bready").value = s("rready").value = int(self.random.random() < 0.9)

    async def wait_stores_answered(self):
        """Waits until all stores are answered."""
        for _ in range(100_000):
            if self.answered == self.stores:
                return
            await RisingEdge(self.dut.clk_i)
        raise AssertionError("a store is not answered")

    def note_newer_values(self):
        """Outstanding loads may return values that were written after them."""
        for loads in self.loads:
            for addr, values in loads.values():
                values.append(bytes(self.model.data[addr : addr + 64]))

    async def wait_loads_done(self):
        """Waits until all loads have returned."""
        for _ in range(100_000):
            if not any(self.loads):
                return
            await RisingEdge(self.dut.clk_i)
        raise AssertionError("a load does not return")

    async def load(self, addr):
        """Loads a line after all stores are answered; checked on arrival."""
        await self.wait_stores_answered()
        d, c = self.dut, channel_of(addr)
        while len(self.loads[c]) == 16:
            await RisingEdge(d.clk_i)
        s = lambda name: getattr(d, f"s_pm{c}_{name}")  # noqa: E731
        ident = next(n for n in range(16) if n not in self.loads[c])
        self.loads[c][ident] = (addr, [bytes(self.model.data[addr : addr + 64])])
        s("araddr").value, s("arlen").value, s("arsize").value = local(addr), 0, 6
        s("arburst").value, s("arid").value, s("arvalid").value = 1, ident, 1
        while True:
            await RisingEdge(d.clk_i)
            if not self.alive:
                return
            if int(s("arready").value):
                break
        s("arvalid").value = 0

    # ------------------------------------------------------------ end of a test

    async def wait_idle(self):
        """Waits until everything has ended."""
        for _ in range(200_000):
            await RisingEdge(self.dut.clk_i)
            if (
                not self.in_flight
                and self.answered == self.stores
                and not any(self.loads)
                and not int(self.dut.busy_o.value)
            ):
                return
        raise AssertionError("the engine does not become idle")

    def check_media(self):
        """The media match the model."""
        for at in range(0, RESERVED, 64):
            got, wanted = self.media[at : at + 64], self.model.data[at : at + 64]
            assert got == wanted, f"line {at:#x} is {bytes(got).hex()} and not {bytes(wanted).hex()}"

    async def set_words(self, addr):
        """Sets the address of the progress words."""
        await self.write_register(PROGRESS, addr & 0xFFFF_FFFF)
        await self.write_register(PROGRESS + 4, addr >> 32)

    def word(self, addr, pool, thread):
        """The progress word of a log, in words at `addr`."""
        at = addr + 8 * (16 * pool + thread)
        return int.from_bytes(self.host.read(at, 8), "little")

    async def write_register(self, addr, value):
        d = self.dut
        d.s_axil_awaddr.value, d.s_axil_wdata.value, d.s_axil_wstrb.value = addr, value, 15
        d.s_axil_awvalid.value = d.s_axil_wvalid.value = d.s_axil_bready.value = 1
        left = {"aw", "w", "b"}
        while left:
            await RisingEdge(d.clk_i)
            for way in ("aw", "w"):
                if way in left and int(getattr(d, f"s_axil_{way}ready").value):
                    left.discard(way)
                    getattr(d, f"s_axil_{way}valid").value = 0
            if int(d.s_axil_bvalid.value):
                left.discard("b")

    async def register(self, addr):
        d = self.dut
        d.s_axil_araddr.value = addr
        d.s_axil_arvalid.value = d.s_axil_rready.value = 1
        while True:
            await RisingEdge(d.clk_i)
            if int(d.s_axil_arready.value):
                break
        d.s_axil_arvalid.value = 0
        while not int(d.s_axil_rvalid.value):
            await RisingEdge(d.clk_i)
        value = int(d.s_axil_rdata.value)
        await RisingEdge(d.clk_i)
        return value
