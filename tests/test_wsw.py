"""Flaws that were found from outside; each fails as long as it is there."""

from __future__ import annotations

import os
import random
import subprocess

import pytest
from nearside import NearsideError, pm


def told(place, command):
    bare = subprocess.run(command, env=os.environ | {"PMEM_IS_PMEM_FORCE": "1"}, capture_output=True, text=True, timeout=120)
    command[1].unlink()
    shim = subprocess.run(command, env=place.environment(), capture_output=True, text=True, timeout=120)
    command[1].unlink()
    return bare.stdout, shim.stdout


def test_a_deferred_free_hides_no_range(place, compiled, tmp_path):
    bare, shim = told(place, [compiled("deferred"), tmp_path / "pool"])
    assert bare == "0 0\n"
    assert shim == bare


def test_a_reserved_object_with_a_range_is_not_written_after_it_is_anothers(place, compiled, tmp_path):
    bare, shim = told(place, [compiled("reserved"), tmp_path / "pool", "1"])
    assert bare == "allocs some wrong 0\n"
    assert shim == bare


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
