"""Flaws that were found from outside; each fails as long as it is there."""

from __future__ import annotations

import random

import pytest
from nearside import NearsideError, pm


@pytest.mark.parametrize("host", ["cxl", "optane-dimm"])
def test_what_was_committed_is_there_when_power_fails_in_growth(host):
    lost = []
    for seed in range(200):
        draw = random.Random(seed)
        with pm.System(devices=2, host=host) as system:
            pool = system.create(0, 8 << 20, "g", mechanism="checkpoint", threads=1, log_bytes=256 << 10, offload=True)
            with pool.thread() as thread:
                with thread.transaction():
                    at = thread.alloc(40000)
                    thread.set_root(at)
                    thread.write(at, bytes(40000))
                for n in range(draw.randrange(1, 5)):
                    with thread.transaction():
                        for _ in range(draw.randrange(1, 4)):
                            thread.write(at + draw.randrange(5000) * 8, bytes([n + 1] * 8))
                before = thread.read(at, 40000)
            system.power_cut_after(draw.randrange(1, 6000))
            with pytest.raises(NearsideError):
                pool.resize((8 << 20) + 8192)
            system.power_cut(devices_too=draw.random() < 0.5)
            system.power_on()
            pool = system.open(0, "g", offload=True)
            with pool.thread() as thread:
                if thread.read(at, 40000) != before:
                    lost.append(seed)
    assert lost == []
