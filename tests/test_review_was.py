"""What a hostile review proved; each of these fails."""

from __future__ import annotations

import threading

import pytest
from nearside import NearsideError, pm

PLACE, BYTES, LOG, SPARE = 1 << 20, 8 << 20, 64 << 10, 16
TABLE = 4096 + LOG
PAGES = BYTES // 4096
WORD = TABLE + (PAGES * 8 + 4095) // 4096 * 4096
DATA = WORD + 3 * 4096


def shadow(offload: bool) -> tuple[pm.System, pm.Pool, int, int]:
    system = pm.System()
    layout = {"mechanism": "shadow", "threads": 1, "log_bytes": LOG, "spare_pages": SPARE}
    pool = system.create(PLACE, BYTES, "n", offload=offload, **layout)
    with pool.thread() as thread:
        with thread.transaction():
            a, b = thread.alloc(8192), thread.alloc(8192)
            thread.write(a, b"A" * 8192)
            thread.write(b, b"B" * 8192)
            thread.set_root(a)
        with thread.transaction():
            thread.write(a, b"C" * 8192)
        for _ in range(2):  # the table has all of that by now
            with thread.transaction():
                thread.set_root(a)
    return system, pool, a, b


def reopened(system: pm.System, a: int, offload: bool) -> bytes:
    system.power_cut(devices_too=False)
    system.power_on()
    with system.open(PLACE, "n", offload=offload) as pool, pool.thread() as thread:
        return thread.read(a, 4)


@pytest.mark.parametrize("offload", [False, True])
def test_check_sees_that_two_pages_have_changed_places(offload):
    """The page table is metadata, and what it should be is known; no checksum guards it."""
    system, pool, a, b = shadow(offload)
    pool.check()
    pages = [(at - DATA) // 4096 for at in (a, b)]
    entries = [system.load(PLACE + TABLE + 8 * page, 8) for page in pages]
    for page, entry in zip(pages, reversed(entries), strict=True):
        system.store(PLACE + TABLE + 8 * page, entry)
    try:
        pool.check()
    except NearsideError:
        return
    assert reopened(system, a, offload) == b"CCCC", "check has accepted a table that gives an object another one's bytes"


HEAP = 4096 + LOG  # of a pool with undo logs for one thread


def test_check_sees_a_chunk_that_says_what_it_has_not():
    """An object byte of a free chunk is not 0: objects that nobody has made are there as soon as the chunk is used."""
    with pm.System() as system:
        pool = system.create(PLACE, BYTES, "n", threads=1, log_bytes=LOG)
        system.store(PLACE + HEAP + 512 + 5, b"\x01")  # chunk 1, object 5
        try:
            pool.check()
        except NearsideError:
            return
        with pool.thread() as thread, thread.transaction():
            made = thread.alloc(64)
        assert [at for at, _ in pool.check()["objects"]] == [made]


def test_a_pool_is_not_lost_by_growth():
    """The word of a chunk behind the end is damaged: `check` says nothing, and `resize` loses the pool for ever."""
    with pm.System() as system:
        pool = system.create(PLACE, 1 << 20, "n", threads=1, log_bytes=LOG)
        with pool.thread() as thread, thread.transaction():
            at = thread.alloc(64)
            thread.write(at, b"precious")
            thread.set_root(at)
        system.store(PLACE + HEAP + 8 * 40, b"\xff" * 8)
        try:
            pool.check()
        except NearsideError:
            return
        try:
            pool.resize(8 << 20)
        except NearsideError:
            pass
        system.power_cut(devices_too=False)
        system.power_on()
        with system.open(PLACE, "n") as pool, pool.thread() as thread:
            assert thread.read(thread.root(), 8) == b"precious"


def test_two_threads_of_python_in_one_thread_of_a_pool():
    """`with` has ended well, so it is persistent; a transaction of another Python thread takes it away."""
    with pm.System() as system:
        pool = system.create(PLACE, BYTES, "n")
        thread = pool.thread()
        with thread.transaction():
            at = thread.alloc(64)
            thread.write(at, b"0" * 64)
        inside, done = threading.Event(), threading.Event()
        told: list[str] = []

        def aborts() -> None:
            try:
                with thread.transaction():
                    inside.set()
                    done.wait(10)
                    raise KeyError
            except KeyError:
                pass

        def commits() -> None:
            inside.wait(10)
            try:
                with thread.transaction():
                    thread.write(at, b"1" * 8)
                told.append("committed")
            except NearsideError:
                told.append("refused")
            done.set()

        both = [threading.Thread(target=aborts), threading.Thread(target=commits)]
        for one in both:
            one.start()
        for one in both:
            one.join()
        assert told == ["refused"] or thread.read(at, 8) == b"1" * 8, f"{told}, and lost"


@pytest.mark.parametrize("mechanism", pm.MECHANISMS)
def test_a_pool_in_the_reserved_range_is_refused(mechanism):
    """The last 128 KiB of the window belong to the engine: no host reaches them."""
    with pm.System() as system:
        try:
            pool = system.create(system.window_bytes - BYTES, BYTES, "n", mechanism=mechanism, threads=1)
        except NearsideError:
            return
        pool.check()
        with pool.thread() as thread:
            objects = []
            with thread.transaction():
                while True:
                    try:
                        objects.append(thread.alloc(65536))
                    except NearsideError:
                        break
            with thread.transaction():
                thread.write(max(objects) + 65536 - 64, b"x" * 64)


@pytest.mark.parametrize(
    "call",
    [
        lambda system, thread: thread.read(-1, 4),
        lambda system, thread: thread.read(0, -1),
        lambda system, thread: system.load(-1, 4),
        lambda system, thread: system.store(1 << 70, b"x"),
        lambda system, thread: system.create(-4096, BYTES, "x"),
        lambda system, thread: system.create(16 << 20, BYTES, "x", threads=300),
        lambda system, thread: system.create(16 << 20, BYTES, "x", number=-1),
        lambda system, thread: thread.pool.thread(-1),
        lambda system, thread: pm.System(devices=-1),
    ],
)
def test_numbers_that_can_not_be_are_errors_of_one_line(call):
    """pm.py: "What can't be done, or can't be asked for, is a NearsideError of one line"."""
    with pm.System() as system:
        thread = system.create(PLACE, BYTES, "n").thread()
        with pytest.raises(NearsideError):
            call(system, thread)


def test_a_store_that_does_not_fit_stores_nothing():
    with pm.System() as system:
        at = system.window_bytes - (2 << 20)
        old = system.load(at, 64)
        with pytest.raises(NearsideError):
            system.store(at, b"x" * ((2 << 20) + 1))
        assert system.load(at, 64) == old
