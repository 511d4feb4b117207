# SPDX-License-Identifier: Apache-2.0
"""Persistent memory on a simulated host in this process: pools, transactions, power cuts.

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

Offsets and lengths are in bytes; offsets of objects count from the start of their pool. Times are
simulated. Failures and invalid arguments raise a `NearsideError` with a one-line message. Calls from
several Python threads are serialised.
"""

from __future__ import annotations

import asyncio
import json
import operator
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from nearside import _native
from nearside._native import NearsideError
from nearside.device import Design, as_text
from nearside.renamed import renamed
from nearside.types import PoolCheck, ThreadCounts

MECHANISMS = ("undo", "redo", "checkpoint", "shadow")
FENCES = ("read_back", "posted", "completion")
SYNCHRONISE = ("devices", "host")
DEVICES = (1, 2, 4)
THREADS = range(1, 17)
POOL_NUMBERS = range(16)
CPUS = range(64)
# One call of the native module moves at most this much: signals are handled between two calls.
CHUNK = 1 << 20

Buffer = bytes | bytearray | memoryview


def _format_number(number: float) -> str:
    # Python refuses to format very long integers.
    bits = number.bit_length() if isinstance(number, int) else 0
    return str(number) if bits <= 128 else f"a number of {bits} bits"


def _checked_number(what: str, value: int, allowed: range | tuple[int, ...] = range(1 << 64)) -> int:
    """The value as an integer, if it is one of those allowed."""
    number = operator.index(value)
    if number in allowed:
        return number
    if isinstance(allowed, range):
        words = f"{allowed.start} to {allowed.stop - 1}"
    else:
        words = f"{', '.join(map(str, allowed[:-1]))} and {allowed[-1]}"
    raise NearsideError(f"{what} = {_format_number(number)}: allowed are {words}")


def _checked_use(
    offload: bool, fence: str, number: int, engine_recovers: bool, group_commit: int | None, words: bool
) -> dict[str, Any]:
    """The arguments that `create` and `open` share."""
    if group_commit is not None:
        group_commit = _checked_number("group_commit", group_commit, range(1, 1 << 64))
    return {
        "offload": offload,
        "fence": as_text("fence", fence),
        "number": _checked_number("number", number, POOL_NUMBERS),
        "engine_recovers": engine_recovers,
        "group_commit": group_commit,
        "words": words,
    }


def _current_owner() -> tuple[threading.Thread, object]:
    """The present Python thread and asyncio task. Objects identify them, since numbers are reused."""
    try:
        return threading.current_thread(), asyncio.current_task()
    except RuntimeError:  # the thread runs no event loop
        return threading.current_thread(), None


def _bytes(data: Buffer) -> bytes:
    return memoryview(data).tobytes()


@renamed(engine="model")
class System:
    """A host with devices. The media are lost on close unless the design has a media file.

    `design` needs the engine `nearpm` for offloaded mechanisms. `host` is a host profile by name or
    path: "nearpm" (PM on PCIe, 436 ns a load), "optane-dimm", "cxl", "numa", ...; `None` is that of
    the design. `model` simulates the devices: "fast", or "rtl", which is compiled first.

    `devices`, 1, 2 or 4, is the number of devices of each pool, which is striped in units of 4 KiB.
    `synchronise` is who deletes logs of offloaded transactions that span devices. With "devices"
    they synchronise among themselves; with "host" the CPU waits for each, for comparison. Media
    files are limited to one device.
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
        count = _checked_number("devices", devices, DEVICES)
        made_of = (as_text("model", model), count, as_text("synchronise", synchronise))
        self.native = _native.PmSystem(design.native, *made_of)
        self._children: weakref.WeakSet[Pool | Thread] = weakref.WeakSet()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the system with its pools and threads; closing twice is allowed."""
        try:
            for part in sorted(self._children, key=lambda part: isinstance(part, Pool)):
                try:
                    part.close()
                except NearsideError:
                    # A scheduled power cut has happened: other threads and pools have nothing left
                    # to close.
                    if self.has_power:
                        raise
        finally:
            self.native.close()

    @property
    def now_ns(self) -> float:
        """Simulated time since power-on, in ns."""
        return self.native.now_ps() / 1000

    @property
    def window_bytes(self) -> int:
        """Bytes of each device's PM window that pools may use: without the area reserved for engines."""
        return self.native.window_bytes()

    @property
    def has_power(self) -> bool:
        """False after a power cut, until `power_on`."""
        return self.native.has_power()

    def power_cut(self, *, devices_too: bool = True) -> int:
        """Cuts the power now, or completes a scheduled cut; returns the number of lines the host
        has lost.

        With `devices_too=False` the devices first accept everything that was posted to them.
        """
        return self.native.power_cut("all" if devices_too else "host")

    def power_cut_after(self, ns: float) -> None:
        """Schedules a power cut in `ns` simulated ns. The call in progress at that time raises an error."""
        if not 0 <= ns <= 1e15:
            raise NearsideError(f"ns = {_format_number(ns)}: allowed are 0 to 1e15")
        self.native.power_cut_after(round(ns * 1000))

    def power_on(self) -> None:
        """Restores the power. Earlier pools and threads are void: `open` the pools again to recover them."""
        self.native.power_on()

    def forget(self) -> None:
        """Accepts that a device has lost data: incomplete pools can be opened again.

        A device that could not restore its persistence domain loses that data at the next power
        cut.
        """
        self.native.forget()

    def load(self, offset: int, length: int) -> bytes:
        """Loads from the first device's window, bypassing the CPU's cache; for data outside pools."""
        offset, length = self._checked_range(offset, length)
        starts = range(0, length, CHUNK)
        return b"".join(self.native.load(offset + at, min(CHUNK, length - at)) for at in starts)

    def store(self, offset: int, data: Buffer) -> None:
        """Stores to the first device's window until persistent; for data outside pools.

        Nothing is stored if the data does not fit. After a power cut some of it may be stored.
        """
        data = _bytes(data)
        offset, _ = self._checked_range(offset, len(data))
        for at in range(0, len(data), CHUNK):
            self.native.store(offset + at, data[at : at + CHUNK])

    def _checked_range(self, offset: int, length: int) -> tuple[int, int]:
        """Checks that a range is within the window."""
        offset, length = _checked_number("offset", offset), _checked_number("length", length)
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
        threads: int | None = None,
        log_bytes: int = 64 << 10,
        spare_pages: int = 64,
        tracked: bool = False,
        offload: bool = False,
        fence: str = "read_back",
        number: int = 0,
        engine_recovers: bool = False,
        group_commit: int | None = None,
        words: bool = False,
    ) -> Pool:
        """Creates a pool of `length` bytes at offset `place` of the window, and opens it.

        Both are multiples of 4096. Earlier content is lost. With several devices each holds an
        equal part, a multiple of 4096, at the same offset.

        `name`, 1 to 47 bytes, identifies the pool's content. `mechanism` makes transactions atomic:
        "undo", "redo", "checkpoint" or "shadow". `threads` is the largest number of threads: 4, or 1
        to 16, or 1 to 8 over several devices. Each has a log of `log_bytes`, a multiple of 4096.
        `spare_pages` of 4 KiB hold the copies of "shadow": as many as a transaction may change. In a
        pool that is `tracked` the engine makes the records without commands; it is on one device,
        has one thread, and is not "redo". The other arguments are those of `open`.
        """
        if threads is None:
            threads = 1 if tracked else 4
        native = self.native.pool_create(
            log_bytes=_checked_number("log_bytes", log_bytes),
            spare_pages=_checked_number("spare_pages", spare_pages),
            name=as_text("name", name),
            mechanism=as_text("mechanism", mechanism),
            threads=_checked_number("threads", threads, THREADS),
            tracked=tracked,
            place=_checked_number("place", place),
            bytes=_checked_number("length", length),
            **_checked_use(offload, fence, number, engine_recovers, group_commit, words),
        )
        return Pool(self, native)

    def open(
        self,
        place: int,
        name: str,
        *,
        offload: bool = False,
        fence: str = "read_back",
        number: int = 0,
        engine_recovers: bool = False,
        group_commit: int | None = None,
        words: bool = False,
    ) -> Pool:
        """Opens a pool and recovers it: interrupted transactions are completed or rolled back.

        With `offload` the devices' engines execute the mechanism. They know the pool by `number`, 0
        to 15, which must be the same at each opening. `fence` is what a fence waits for:

        - "read_back": a load from the device has returned. Always used over several devices.
        - "posted": the host's root complex has accepted all stores. On PCIe, committed data may be
        lost.
        - "completion": the device has reported that it accepted all stores.

        With `engine_recovers` the engines recover their logs, otherwise the CPU does.

        With `group_commit` the commit of a transaction that becomes durable later waits if it makes
        that number of them not durable. Without it only the program waits.

        With `words` the engine of one device writes to host memory how far transactions are durable.
        `Thread.durable` then learns it without a load of the device.
        """
        native = self.native.pool_open(
            place=_checked_number("place", place),
            name=as_text("name", name),
            **_checked_use(offload, fence, number, engine_recovers, group_commit, words),
        )
        return Pool(self, native)


class Pool:
    """An open pool."""

    def __init__(self, system: System, native: _native.PmPool) -> None:
        self.system = system
        self.native = native
        system._children.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the pool; closing twice is allowed. Threads must be closed first, unless the power failed."""
        self.native.close()

    @property
    def length(self) -> int:
        """Bytes of the pool."""
        return self.native.bytes()

    def check(self) -> PoolCheck:
        """Checks the consistency of the pool's metadata; no transaction may be in progress."""
        return self.native.check()

    def resize(self, length: int) -> None:
        """Grows the pool to `length` bytes, a multiple of 4096. Close all threads first; not for "shadow"."""
        self.native.resize(_checked_number("length", length))

    def thread(self, cpu: int = 0) -> Thread:
        """A thread with a separate log, on a CPU of the host, 0 to 63."""
        return Thread(self, self.native.thread(_checked_number("cpu", cpu, CPUS)))


class _TransactionScope:
    """A transaction, outermost or nested, for the duration of its `with` block."""


class Thread:
    """A thread of a pool. Changes within `with thread.transaction():` are atomic."""

    def __init__(self, pool: Pool, native: _native.PmThread) -> None:
        self.pool = pool
        self.native = native
        # Open transactions from the outermost to the innermost, and their owner.
        self._open: list[weakref.ref[_TransactionScope]] = []
        self._owner: tuple[threading.Thread, object] | None = None
        # Functions to call when transactions are durable, by ticket.
        self._callbacks: list[tuple[int, Callable[[int], object]]] = []
        pool.system._children.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the thread and aborts its open transaction; closing twice is allowed.

        All of its other transactions are durable then, unless the power has failed.
        """
        durable = self.native.close()
        if durable is not None:
            self._call_due(durable)

    @contextmanager
    def transaction(self, *, later: bool = False) -> Iterator[Thread]:
        """Commits at the end of the `with` block, when all changes are persistent.

        With `later` it becomes durable later: `wait` or `sync` waits for that, and `ticket` names
        it. After a power cut a prefix of the thread's transactions is found, with all that were
        known to be durable. The outermost transaction decides.

        An exception aborts the transaction and propagates. A nested transaction is part of the
        outer one: an exception that leaves it makes the outermost abort. If the exception was
        caught in between, the outermost reports that at its end. With "checkpoint" and "shadow",
        which protect pages, a pool refuses a second concurrent transaction.

        A commit that raises has aborted, with two exceptions. After a power cut recovery finds the
        transaction complete or absent. If a device could not write to its media (the disk is full),
        an offloaded transaction may be partial.

        Other Python threads and asyncio tasks are refused meanwhile: each needs a separate
        `Thread`.
        """
        level = _TransactionScope()
        outermost = False
        try:
            self._check_owner()
            if outermost := not self._open:
                self._owner = _current_owner()
            self._open.append(weakref.ref(level))
            if outermost:
                # A signal may have interrupted the end of an earlier transaction.
                if self.native.is_active():
                    self.native.abort()
                self.native.begin()
            yield self
            if self._open[-1:] != [weakref.ref(level)]:
                raise NearsideError(
                    "transactions end in another order than they began in: one within another ends before that"
                )
            if outermost and later:
                self.native.commit_later()
            elif outermost:
                self.native.commit()
        except BaseException:
            self._abort(level, outermost)
            raise
        finally:
            # Including nested ones that are still referenced, for instance by a generator.
            if weakref.ref(level) in self._open:
                del self._open[self._open.index(weakref.ref(level)) :]
        if outermost:
            self._call_due()

    @property
    def ticket(self) -> int:
        """The ticket of the last transaction. One that has changed nothing has that of the one before it."""
        return self.native.tickets()[1]

    @property
    def durable(self) -> int:
        """The last ticket that is known to be durable, and all before it.

        In a pool with `words` it is learned by a load of host memory, and calls that are due are
        made. Otherwise nothing new is learned, and no simulated time passes.
        """
        durable = self.native.tickets()[0]
        self._call_due(durable)
        return durable

    def wait(self, ticket: int) -> None:
        """Waits until the transaction of this ticket is durable."""
        self._check_owner()
        self.native.wait(_checked_number("ticket", ticket))
        self._call_due()

    def sync(self) -> None:
        """Waits until all transactions of this thread are durable."""
        self._check_owner()
        self.native.sync()
        self._call_due()

    def when_durable(self, ticket: int, callback: Callable[[int], object]) -> None:
        """Calls `callback(ticket)` once, when the transaction is durable.

        The call is made by the method of this thread that learns it: the end of a `transaction`,
        `wait`, `sync`, `finish`, `durable` or `close`. It is made at once for a durable one, and never
        after a power cut. An exception of the callback leaves that method.
        """
        durable, last = self.native.tickets()
        if _checked_number("ticket", ticket) > last:
            raise NearsideError(f"ticket {ticket}: allowed are tickets of this thread, up to {last}")
        if ticket <= durable:
            callback(ticket)
            return
        self._callbacks.append((ticket, callback))

    def _call_due(self, durable: int | None = None) -> None:
        """Makes the calls of durable transactions, in the order of their tickets."""
        if not self._callbacks:
            return
        durable = self.native.tickets()[0] if durable is None else durable
        self._callbacks.sort(key=lambda waits: waits[0])
        while self._callbacks and self._callbacks[0][0] <= durable:
            ticket, callback = self._callbacks.pop(0)
            callback(ticket)

    def _check_owner(self) -> None:
        """Raises an error unless the thread and task that began the transaction are calling."""
        # A scope whose end was interrupted by a signal is gone, and those nested in it, too.
        gone = [n for n, level in enumerate(self._open) if level() is None]
        del self._open[min(gone, default=len(self._open)) :]
        if self._open and self._owner != _current_owner():
            raise NearsideError(
                "a transaction of this pool thread is in progress in another Python thread or asyncio task: "
                "open a separate one for each, with `pool.thread()`"
            )

    def _abort(self, level: _TransactionScope, outermost: bool) -> None:
        """Aborts the outermost transaction, or marks it for an abort."""
        try:
            if weakref.ref(level) not in self._open:
                return
            if not outermost:
                self.native.fail()
            elif self.native.is_active():
                self.native.abort()
        except NearsideError as error:
            # Without power, or after the thread was closed within the block, there is nothing to
            # abort.
            if self._is_usable():
                raise NearsideError(f"the transaction could not be aborted: {error}") from error

    def _is_usable(self) -> bool:
        try:
            return self.pool.system.has_power and self.native.is_active()
        except NearsideError:
            return False

    def alloc(self, length: int) -> int:
        """Allocates up to 4,128,768 bytes, in a transaction; returns the offset. Not initialised."""
        self._check_owner()
        return self.native.alloc(_checked_number("length", length))

    def free(self, offset: int) -> None:
        """Frees an object when the transaction commits."""
        self._check_owner()
        self.native.free(_checked_number("offset", offset))

    def read(self, offset: int, length: int) -> bytes:
        """Reads bytes of an object, including changes of the open transaction."""
        self._check_owner()
        return self.native.read(_checked_number("offset", offset), _checked_number("length", length))

    def write(self, offset: int, data: Buffer) -> None:
        """Writes bytes of an object, in a transaction."""
        self._check_owner()
        self.native.write(_checked_number("offset", offset), _bytes(data))

    def add_range(self, offset: int, length: int) -> None:
        """Announces changes within a range, which is then logged as a whole instead of in pieces."""
        self._check_owner()
        self.native.add_range(_checked_number("offset", offset), _checked_number("length", length))

    def root(self) -> int:
        """The offset of the pool's root object, or 0 if none is set."""
        self._check_owner()
        return self.native.root()

    def set_root(self, offset: int) -> None:
        """Makes an object the pool's root object, in a transaction."""
        self._check_owner()
        self.native.set_root(_checked_number("offset", offset))

    def finish(self) -> None:
        """Waits until the engine has completed all its commands; raises an error if one was refused."""
        self.native.finish()
        self._call_due()

    @property
    def counts(self) -> ThreadCounts:
        """Counts since the thread was opened."""
        return self.native.counts()
