# SPDX-License-Identifier: Apache-2.0
"""A transaction belongs to one Python thread and one asyncio task, and ends after those nested in it."""

from __future__ import annotations

import asyncio
import random
import signal
import threading

import pytest
from nearside import NearsideError, pm


@pytest.fixture
def shared():
    """A thread of a pool whose root is an object of 64 zeros."""
    with pm.System() as system, system.create(place=0, length=8 << 20, name="x") as pool, pool.thread() as thread:
        with thread.transaction():
            at = thread.alloc(64)
            thread.write(at, bytes(64))
            thread.set_root(at)
        yield thread


def elsewhere(what):
    """The exception of a call in another Python thread."""
    raised = []

    def body():
        try:
            what()
        except NearsideError as error:
            raised.append(error)

    other = threading.Thread(target=body)
    other.start()
    other.join()
    return raised


def test_pm_owner_other_python_thread_is_refused(shared):
    at = shared.root()
    with shared.transaction():
        shared.write(at, b"mine")
        raised = elsewhere(lambda: shared.write(at + 32, b"others"))
    assert raised, f"it was taken into the transaction: {shared.read(at + 32, 6)}"


def test_pm_owner_other_task_is_refused(shared):
    at = shared.root()

    async def writer():
        with shared.transaction():
            shared.write(at, b"mine")
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    async def other():
        shared.write(at + 32, b"others")

    async def both():
        return await asyncio.gather(writer(), other(), return_exceptions=True)

    results = asyncio.run(both())
    assert isinstance(results[1], NearsideError), shared.read(at + 32, 6)


def test_pm_owner_thread_with_a_reused_number(shared):
    at = shared.root()
    held = []

    def begin():
        transaction = shared.transaction()
        transaction.__enter__()
        held[:] = transaction, threading.get_ident()

    def work():
        if threading.get_ident() == held[1]:
            with shared.transaction():
                shared.write(at, b"committed")

    # Another thread may take the number and keep it: then another one is tried.
    for _ in range(50):
        other = threading.Thread(target=begin)
        other.start()
        other.join()
        raised = [error for _ in range(5) for error in elsewhere(work)]
        held[0].__exit__(ValueError, ValueError(), None)
        if raised:
            break
    assert raised, "no thread has had the number of one that has ended"
    assert all("another Python thread" in str(error) for error in raised)


def test_pm_owner_transactions_end_in_reverse_order(shared):
    """Generators hold one each: the outermost ends first, while the other one may still abort its stores."""
    at = shared.root()

    def holding(offset, fails):
        with shared.transaction():
            shared.write(at + offset, b"x")
            yield
            if fails:
                raise ValueError("it fails")

    first, second = holding(0, False), holding(8, True)
    next(first), next(second)
    with pytest.raises(NearsideError, match="another order"):
        next(first)
    with pytest.raises(ValueError, match="it fails"):
        next(second)
    assert shared.read(at, 9) == bytes(9)
    with shared.transaction():
        shared.write(at, b"after")
    assert shared.read(at, 5) == b"after"


def test_pm_owner_signals_leave_the_thread_usable(shared):
    """Ctrl-C at any moment of a `with`: the next transaction can begin."""
    at = shared.root()

    def interrupt(*_):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    draw = random.Random(1)
    stuck = None
    try:
        for round in range(300):
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, draw.uniform(2e-6, 2e-4))
                    for _ in range(20):
                        with shared.transaction():
                            shared.write(at, b"x" * 8)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            try:
                with shared.transaction():
                    shared.write(at, b"y" * 8)
            except KeyboardInterrupt:
                pass
            except NearsideError as error:
                stuck = f"round {round}: {error}"
                break
    finally:
        signal.signal(signal.SIGALRM, old)
    assert stuck is None, stuck
