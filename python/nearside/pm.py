"""Persistent memory on a simulated host in this process: pools, transactions, losses of power.

    from nearside import pm

    with pm.System() as system:
        pool = system.create(place=0, length=8 << 20, name="notes", offload=True)
        with pool.thread() as thread:
            with thread.transaction():
                at = thread.alloc(5)
                thread.write(at, b"hello")
                thread.set_root(at)
        system.power_cut()
        system.power_on()
        pool = system.open(place=0, name="notes", offload=True)  # recovers it
        with pool.thread() as thread:
            assert thread.read(thread.root(), 5) == b"hello"

Offsets and lengths are bytes; offsets of objects count from their pool's start. Times are simulated. What can't be
done, or can't be asked for, is a `NearsideError` of one line; calls of several Python threads wait for each other.
"""

from __future__ import annotations

import asyncio
import json
import operator
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from nearside import _native
from nearside._native import NearsideError
from nearside.device import Design, as_text
from nearside.renamed import renamed

MECHANISMS = ("undo", "redo", "checkpoint", "shadow")
FENCES = ("read_back", "posted", "completion")
SYNCHRONISE = ("devices", "host")
DEVICES = (1, 2, 4)
THREADS = range(1, 17)
NUMBERS = range(16)
CPUS = range(64)
# Moved by one call of the native module: signals are heard between two.
PIECE = 1 << 20

Buffer = bytes | bytearray | memoryview


def _shown(number: float) -> str:
    # Python refuses to print the longest.
    bits = number.bit_length() if isinstance(number, int) else 0
    return str(number) if bits <= 128 else f"a number of {bits} bits"


def _number(what: str, value: int, allowed: range | tuple[int, ...] = range(1 << 64)) -> int:
    """The same, if it is one of these."""
    number = operator.index(value)
    if number in allowed:
        return number
    if isinstance(allowed, range):
        words = f"{allowed.start} to {allowed.stop - 1}"
    else:
        words = f"{', '.join(map(str, allowed[:-1]))} and {allowed[-1]}"
    raise NearsideError(f"{what} = {_shown(number)}: allowed are {words}")


def _who() -> tuple[threading.Thread, object]:
    """Which thread of Python this is, and which of its asyncio tasks; a number would be used again."""
    try:
        return threading.current_thread(), asyncio.current_task()
    except RuntimeError:  # no loop runs in it
        return threading.current_thread(), None


def _bytes(data: Buffer) -> bytes:
    return memoryview(data).tobytes()


@renamed(engine="model")
class System:
    """A host with devices, whose media are lost when this is closed, unless the design has a file for them.

    `design` is one with the engine `nearpm` where mechanisms are offloaded. `host` is a profile of hosts/ by name or
    path: "nearpm" (PM behind PCIe, 436 ns a load), "optane-dimm", "cxl", "numa", ...; None is that of the design.
    `model` simulates the devices: "fast", or "rtl", which is compiled first.

    `devices`, 1, 2 or 4, are as many as each pool is over: stripes of 4 KiB are on them in turns. Where mechanisms are
    offloaded, `synchronise` is who sees to it that a log is deleted when all devices have completed its transaction:
    they by themselves ("devices"), or the CPU, which waits for each ("host", for comparison). Media in a file are for
    one device.
    """

    def __init__(
        self,
        design: str | Design = "nearpm",
        *,
        host: str | None = "nearpm",
        model: str = "fast",
        devices: int = 1,
        synchronise: str = "devices",
    ) -> None:
        if not isinstance(design, Design):
            design = Design.load(design)
        if host is not None:
            design = design.with_values(f"cpu.profile = {json.dumps(as_text('host', host))}")
        self.design = design
        count = _number("devices", devices, DEVICES)
        made_of = (as_text("model", model), count, as_text("synchronise", synchronise))
        self.native = _native.PmSystem(design.native, *made_of)
        self._parts: weakref.WeakSet[Pool | Thread] = weakref.WeakSet()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends its use, and closes its threads and pools; a second time does nothing."""
        try:
            for part in sorted(self._parts, key=lambda part: isinstance(part, Pool)):
                try:
                    part.close()
                except NearsideError:
                    # A loss of power that was ordered has come: the others have nothing to close any more.
                    if self.has_power:
                        raise
        finally:
            self.native.close()

    @property
    def now_ns(self) -> float:
        """The present simulated time, ns."""
        return self.native.now_ps() / 1000

    @property
    def window_bytes(self) -> int:
        """Bytes of each device's PM window where pools lie: without what an engine has reserved behind them."""
        return self.native.window_bytes()

    @property
    def has_power(self) -> bool:
        """False from a loss of power on, until `power_on`."""
        return self.native.has_power()

    def power_cut(self, *, devices_too: bool = True) -> int:
        """The power fails now, or has when it was ordered to; returns how many lines of stores the host has lost.

        `devices_too` false: the devices first take all that was posted to them.
        """
        return self.native.power_cut("all" if devices_too else "host")

    def power_cut_after(self, ns: float) -> None:
        """The power fails so many simulated ns later, in the middle of whatever is under way then: its call raises."""
        if not 0 <= ns <= 1e15:
            raise NearsideError(f"ns = {_shown(ns)}: allowed are 0 to 1e15")
        self.native.power_cut_after(round(ns * 1000))

    def power_on(self) -> None:
        """Power is back. Pools and threads of before are void: open the pools again, which recovers them."""
        self.native.power_on()

    def forget(self) -> None:
        """What the devices have lost may be forgotten: pools can be opened again, whatever is missing of them.

        A device that could not bring back what it had taken has it no more when its power has failed once more.
        """
        self.native.forget()

    def load(self, offset: int, length: int) -> bytes:
        """Bytes of the first device's window, past the CPU's cache: for what is no pool."""
        offset, length = self._within(offset, length)
        starts = range(0, length, PIECE)
        return b"".join(self.native.load(offset + at, min(PIECE, length - at)) for at in starts)

    def store(self, offset: int, data: Buffer) -> None:
        """Stores bytes of the first device's window, and returns when they are persistent: for what is no pool.

        Nothing of it if it does not fit; a loss of power leaves some of it.
        """
        data = _bytes(data)
        offset, _ = self._within(offset, len(data))
        for at in range(0, len(data), PIECE):
            self.native.store(offset + at, data[at : at + PIECE])

    def _within(self, offset: int, length: int) -> tuple[int, int]:
        """An offset and a length, if all of that is within the window."""
        offset, length = _number("offset", offset), _number("length", length)
        if offset + length > self.window_bytes:
            window = f"the window of {self.window_bytes} bytes"
            raise NearsideError(f"{length} bytes at {offset:#x}: allowed are those within {window}")
        return offset, length

    def create(
        self,
        place: int,
        length: int,
        name: str,
        *,
        mechanism: str = "undo",
        threads: int = 4,
        log_bytes: int = 64 << 10,
        spare_pages: int = 64,
        offload: bool = False,
        fence: str = "read_back",
        number: int = 0,
        engine_recovers: bool = False,
    ) -> Pool:
        """Makes a pool of `length` bytes at `place` of the window, both multiples of 4096, and opens it.

        What stood there is lost. Each of several devices has an equal part of it, a multiple of 4096, at that place of
        its window. `name`, 1 to 47 bytes, says what the program keeps there. `mechanism` makes transactions whole:
        "undo", "redo", "checkpoint", "shadow". `threads`, 1 to 16, over several devices 1 to 8, may use it at a time,
        each with a log of `log_bytes`, a multiple of 4096. `spare_pages` of 4 KiB are for the copies of "shadow": as
        many as a transaction may change. The others are as for `open`.
        """
        sizes = (_number("log_bytes", log_bytes), _number("spare_pages", spare_pages))
        made_of = (as_text("name", name), as_text("mechanism", mechanism), _number("threads", threads, THREADS), *sizes)
        usage = (offload, as_text("fence", fence), _number("number", number, NUMBERS), engine_recovers)
        span = (_number("place", place), _number("length", length))
        return Pool(self, self.native.pool_create(*span, *made_of, *usage))

    def open(
        self,
        place: int,
        name: str,
        *,
        offload: bool = False,
        fence: str = "read_back",
        number: int = 0,
        engine_recovers: bool = False,
    ) -> Pool:
        """Opens a pool: transactions that were under way are brought to their end or their start.

        `offload`: the devices' engines do the mechanism's work, and have the pool by a `number`, 0 to 15, the same each
        time. A fence waits until a load from the device has come back ("read_back"), until the host's root complex has
        taken all ("posted": behind PCIe what was committed may be lost), or until the device has told that it has taken
        all ("completion"); over several devices it reads back. `engine_recovers`: the engines recover their logs,
        else the CPU does.
        """
        usage = (offload, as_text("fence", fence), _number("number", number, NUMBERS), engine_recovers)
        return Pool(self, self.native.pool_open(_number("place", place), as_text("name", name), *usage))


class Pool:
    """A pool that is open."""

    def __init__(self, system: System, native: _native.PmPool) -> None:
        self.system = system
        self.native = native
        system._parts.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends its use; a second time does nothing. No thread may have it, unless the power has failed."""
        self.native.close()

    @property
    def length(self) -> int:
        """Bytes of it."""
        return self.native.bytes()

    def check(self) -> dict[str, Any]:
        """Compares its metadata with each other and with what is known; no transaction may be under way.

        "objects": offset and bytes of each; "bytes" of the pool; "generation": 1, and 1 more for each growth.
        """
        return json.loads(self.native.check())

    def resize(self, length: int) -> None:
        """Lets it grow to so many bytes, a multiple of 4096. No thread may have it; with "shadow" it keeps its size."""
        self.native.resize(_number("length", length))

    def thread(self, cpu: int = 0) -> Thread:
        """A thread that works on it with a log of its own, on a CPU of the host, 0 to 63."""
        return Thread(self, self.native.thread(_number("cpu", cpu, CPUS)))


class _Level:
    """A transaction, or one within another, as long as its `with` is there."""


class Thread:
    """A thread of a pool. What is changed within `with thread.transaction():` stays as a whole, or not at all."""

    def __init__(self, pool: Pool, native: _native.PmThread) -> None:
        self.pool = pool
        self.native = native
        # Transactions within each other, and whose they are.
        self._open: list[weakref.ref[_Level]] = []
        self._owner: tuple[threading.Thread, object] | None = None
        pool.system._parts.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends it; a transaction that is under way is aborted. A second time does nothing."""
        self.native.close()

    @contextmanager
    def transaction(self) -> Iterator[Thread]:
        """Commits at its end: all of it is persistent behind the `with`. An exception aborts it, and goes on.

        One within another is part of that: an exception that leaves it makes the outermost abort, which says so at its
        end if the exception was caught before. Where pages are protected ("checkpoint", "shadow") a second one of the
        pool is refused. A commit that raises has aborted, unless the power has failed: then what was committed is there
        after recovery, or nothing of it; or unless a device could not write what was stored (its media's disk is full):
        with `offload` a part of it may be there then. Other threads of Python and other asyncio tasks are refused
        meanwhile: each takes a `Thread` of its own.
        """
        level = _Level()
        outermost = False
        try:
            self._mine()
            if outermost := not self._open:
                self._owner = _who()
            self._open.append(weakref.ref(level))
            if outermost:
                # A signal may have left one when it came to an end.
                if self.native.is_active():
                    self.native.abort()
                self.native.begin()
            yield self
            if self._open[-1:] != [weakref.ref(level)]:
                raise NearsideError(
                    "transactions end in another order than they began in: one within another ends before that"
                )
            if outermost:
                self.native.commit()
        except BaseException:
            self._give_up(level, outermost)
            raise
        finally:
            # Those within this one, too, which a generator holds, say.
            if weakref.ref(level) in self._open:
                del self._open[self._open.index(weakref.ref(level)) :]

    def _mine(self) -> None:
        """A transaction is of the thread of Python and the task in which it has begun."""
        # Where a signal has come while one ended, it is gone all the same, with those within it.
        gone = [n for n, level in enumerate(self._open) if level() is None]
        del self._open[min(gone, default=len(self._open)) :]
        if self._open and self._owner != _who():
            raise NearsideError(
                "a transaction of this pool thread is under way in another thread of Python or another asyncio task: "
                "take a thread of its own for each, with `pool.thread()`"
            )

    def _give_up(self, level: _Level, outermost: bool) -> None:
        """Aborts, or lets the outermost do so."""
        try:
            if weakref.ref(level) not in self._open:
                return
            if not outermost:
                self.native.fail()
            elif self.native.is_active():
                self.native.abort()
        except NearsideError as error:
            # Without power, or when the thread was closed within, there is nothing left to abort.
            if self._is_usable():
                raise NearsideError(f"the transaction could not be aborted: {error}") from error

    def _is_usable(self) -> bool:
        try:
            return self.pool.system.has_power and self.native.is_active()
        except NearsideError:
            return False

    def alloc(self, length: int) -> int:
        """Room for an object of up to 4,128,768 bytes, in a transaction; its offset. What stands there is left over."""
        self._mine()
        return self.native.alloc(_number("length", length))

    def free(self, offset: int) -> None:
        """Gives an object back when the transaction commits."""
        self._mine()
        self.native.free(_number("offset", offset))

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of an object, as the transaction has them if one is under way."""
        self._mine()
        return self.native.read(_number("offset", offset), _number("length", length))

    def write(self, offset: int, data: Buffer) -> None:
        """Stores bytes of an object, in a transaction."""
        self._mine()
        self.native.write(_number("offset", offset), _bytes(data))

    def add_range(self, offset: int, length: int) -> None:
        """Says that a range is going to be changed, so that it is kept as a whole and not piece by piece."""
        self._mine()
        self.native.add_range(_number("offset", offset), _number("length", length))

    def root(self) -> int:
        """Offset of the object that the pool's root points to; 0: none."""
        self._mine()
        return self.native.root()

    def set_root(self, offset: int) -> None:
        """Lets the pool's root point to an object, in a transaction."""
        self._mine()
        self.native.set_root(_number("offset", offset))

    def finish(self) -> None:
        """Waits until the engine has done all that was left to it; an error if it has refused any of it."""
        self.native.finish()

    @property
    def counts(self) -> dict[str, int]:
        """What it has done since it began.

        "transactions", "aborts", "fences", "orders" (fences that only order a command behind stores), "lines" flushed,
        "copied_bytes", "records", "payload_bytes", "commands", "allocations"; "time_ps" within transactions, simulated,
        and "consistency_ps", the part of it that is there for crash consistency only.
        """
        return json.loads(self.native.counts())
