"""Programs that show flaws: each of these fails on b172f1b."""

from __future__ import annotations

import os
import subprocess

import pytest
from nearside import NearsideError, pm, pmdk_crash


def test_fsync_in_a_signal_handler_does_not_hang(compiled):
    import sys

    program = str(compiled("signals"))
    file = f"/dev/shm/nearside-s2-{os.getpid()}"
    try:
        subprocess.run([program, file], check=True, timeout=30)
        subprocess.run([os.path.join(os.path.dirname(sys.executable), "nearside"), "pmdk", "run", "--", program, file], check=True, timeout=60)
    finally:
        os.unlink(file)


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_a_check_whose_power_fails_says_so(devices):
    for n in range(60):
        with pm.System(devices=devices) as system:
            pool = system.create(0, 8 << 20, "n", offload=True)
            start = system.now_ns
            pool.check()
            system.power_cut_after((system.now_ns - start) * n / 60 + 0.5)
            with pytest.raises(NearsideError, match="the power was cut"):
                pool.check()


def test_reads_take_their_time_and_not_that_of_the_next_transaction():
    with pm.System() as system:
        pool = system.create(0, 8 << 20, "n")
        with pool.thread() as thread:
            with thread.transaction():
                at = thread.alloc(4096)
                thread.write(at, b"x" * 4096)

            def change() -> float:
                start = system.now_ns
                with thread.transaction():
                    thread.write(at, b"y")
                return system.now_ns - start

            change()
            alone = change()
            for _ in range(1000):
                thread.read(at, 4096)
            assert change() == pytest.approx(alone, rel=0.1)
