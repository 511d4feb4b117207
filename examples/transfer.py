# SPDX-License-Identifier: Apache-2.0
"""Transfers between two accounts in persistent memory, while the power fails. `offload`: the device keeps the log."""

from __future__ import annotations

import struct
import sys

from nearside import NearsideError, pm

POOL, BYTES, BESIDE = 0, 8 << 20, 16 << 20
OFFLOAD = sys.argv[1:] == ["offload"]


def number(data: bytes) -> int:
    return struct.unpack("<Q", data)[0]


def amounts(thread: pm.Thread) -> tuple[int, int, int]:
    """The accounts are 64 bytes apart, in two cache lines, which become persistent one by one."""
    at = thread.root()
    return at, number(thread.read(at, 8)), number(thread.read(at + 64, 8))


def transfer(thread: pm.Thread, amount: int) -> None:
    """Transfers an amount, atomically."""
    at, one, other = amounts(thread)
    with thread.transaction():
        # Both lines are logged at once: the CPU waits for its log once,
        # and the device gets one command.
        thread.add_range(at, 72)
        thread.write(at, struct.pack("<Q", one - amount))
        thread.write(at + 64, struct.pack("<Q", other + amount))


with pm.System() as system:
    # Two stores, each persistent when it returns; the power fails between them.
    system.store(BESIDE, struct.pack("<Q", 1000))
    system.store(BESIDE + 64, struct.pack("<Q", 1000))
    system.store(BESIDE, struct.pack("<Q", 600))
    system.power_cut()
    system.power_on()
    one, other = number(system.load(BESIDE, 8)), number(system.load(BESIDE + 64, 8))
    print(f"two stores:    {one} + {other} = {one + other}")

    # The same in a transaction.
    pool = system.create(POOL, BYTES, "accounts", offload=OFFLOAD)
    with pool.thread() as thread, thread.transaction():
        at = thread.alloc(128)
        for account in (0, 64):
            thread.write(at + account, struct.pack("<Q", 1000))
        thread.set_root(at)
    thread = pool.thread()
    try:
        with thread.transaction():
            thread.write(thread.root(), struct.pack("<Q", 600))
            system.power_cut()
    except NearsideError as error:
        print(f"a transaction: {error}")
    system.power_on()
    pool = system.open(POOL, "accounts", offload=OFFLOAD)  # recovers
    with pool.thread() as thread:
        _, one, other = amounts(thread)
    print(f"recovered:     {one} + {other} = {one + other}")

    # The power fails at arbitrary times in further transfers.
    done = 0
    for moment in range(20):
        system.power_cut_after(1000 + 777 * moment)
        thread = pool.thread()
        try:
            while True:
                transfer(thread, 1)
                done += 1
        except NearsideError:
            pass
        system.power_on()
        pool = system.open(POOL, "accounts", offload=OFFLOAD)
        with pool.thread() as thread:
            _, one, other = amounts(thread)
        assert one + other == 2000
        # A transfer that had not returned may be committed, too.
        assert 1000 - one in (done, done + 1), (one, done)
        done = 1000 - one
    print(f"20 losses:     {one} + {other} = {one + other}")
