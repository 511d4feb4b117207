# SPDX-License-Identifier: Apache-2.0
"""Several devices of one host from Python, each on a separate model: data of commands in a peer's PM window."""

import struct

import pytest
from nearside import Design, Device, NearsideError

KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize("models", [("rtl", "fast"), ("fast", "rtl"), ("fast", "fast")])
def test_peer_data_move_between_devices(models):
    design = Design.load("default")
    own, other = models
    with Device(design, model=own, peers=[(design, other)]) as device:
        (peer,) = device.peers
        data = bytes(range(256)) * 256
        device.write(data)
        # One command at a time, from the start of the media to the start of the peer's window.
        shape = {"queues": 1, "depth": 1, "min_bytes": 64 * KIB, "pattern": "sequential", "peer": 0}
        device.workload(read_percent=100, commands=1, span=64 * KIB, **shape)
        assert peer.pm_read(0, len(data)) == data
        # And back from there to another place.
        changed = data[::-1]
        peer.pm_write(0, changed)
        device.workload(read_percent=0, commands=1, start=MIB, span=64 * KIB, **shape)
        assert device.read(len(changed), MIB)[0] == changed


def test_peer_timing_is_separate():
    design = Design.load("default").with_values("media.profile = 'dram'")

    def write_ns(profile):
        with Device(design, model="fast", peers=[(design, "fast")]) as device:
            device.peers[0].delay_set(profile)
            job = {"read_percent": 0, "queues": 1, "depth": 1, "commands": 20, "peer": 0}
            return device.workload(**job)["latency"]["mean_ns"]

    assert write_ns("nand") > write_ns("dram") + 50_000


def test_peer_unsupported_requests():
    design = Design.load("default")
    with Device(design, model="fast", peers=[(design, "fast")]) as device:
        job = {"queues": 1, "depth": 1, "commands": 1}
        with pytest.raises(NearsideError, match=r"^peer = 1: the device has 1 of them"):
            device.workload(peer=1, **job)
        with pytest.raises(NearsideError, match=r"^verify: "):
            device.workload(peer=0, verify=True, **job)
        with pytest.raises(NearsideError, match="PM window"):
            device.peers[0].pm_read(1 << 40, 64)
        with pytest.raises(NearsideError, match="another device's window has"):
            device.workload(peer=0, queues=16, depth=256, commands=1, min_bytes=MIB)
    with Device(design, model="fast") as alone:
        assert alone.peers == []
        with pytest.raises(NearsideError, match=r"^peer = 0: the device has 0"):
            alone.workload(peer=0, **job)
    with pytest.raises(NearsideError, match="allowed are"):
        Device(design, model="fast", peers=[(design, "slow")])


def test_peer_arguments_are_pairs_of_a_design_and_a_model():
    design = Design.load("fuzz")
    with pytest.raises(NearsideError, match=r"^peers = 3000 devices: allowed are at most 15$"):
        Device(design, model="fast", peers=[(design, "fast")] * 3000)
    for peers in (
        design, "fast", 1, None, {}, [design], ["ab"], [None], [()], [(design,)], [(design, "fast", 1)],
        [("fuzz", "fast")], [("fast", design)], [(design, design)], [(design, 1)], [(design.native, None)],
    ):  # fmt: skip
        with pytest.raises(
            TypeError, match=r"^peers\S* = .*: allowed are pairs of a Design and the name of a model, or"
        ):
            Device(design, model="fast", peers=peers)
    with Device(design, model="fast", peers=[(design, "fast")] * 15) as device:
        assert len(device.peers) == 15
        device.peers[14].pm_write(0, b"x" * 64)
        assert device.peers[14].pm_read(0, 64) == b"x" * 64


def test_peer_engines_run_in_parallel():
    design = Design.load("sort")
    keys = struct.pack("<6I", 30, 10, 50, 10, 20, 0)
    with Device(design, model="fast", peers=[(design, "fast")] * 2) as device:
        both = [device, *device.peers]
        for place in both:
            place.pm_write(0, keys)
            place.set_qos("sorter0", reads=0, writes=0)
        for place in both:
            place.engine("sorter0").start(src=0, dst=4096, count=6, kind=32)
        for place in both:
            assert place.engine("sorter0").wait() == []
            assert struct.unpack("<6I", place.pm_read(4096, 24)) == (5, 1, 3, 4, 0, 2)
        peer = device.peers[1]
        assert peer.engine("sorter0").wait(0) == []
        peer.engine("sorter0").start(src=1, dst=4096, count=6)
        assert peer.engine("sorter0").wait() == ["invalid"]
        assert peer.engine("shuffle0").launch(index=4096, src=0, dst=8192, count=6, row_bytes=4, rows=6) > 0
        assert struct.unpack("<6I", peer.pm_read(8192, 24)) == (0, 10, 10, 20, 30, 50)
        with pytest.raises(NearsideError, match=r"^engine = 'scan0': the design of peer 1 has sorter0, shuffle0, dec"):
            peer.engine("scan0")
        with pytest.raises(NearsideError, match=r"^sorter0: none: its arguments are src, dst, tmp, count, kind$"):
            peer.engine("sorter0").start(src=0, dst=64, count=1, none=1)
        with pytest.raises(NearsideError, match=r'^master = "x": allowed are pm, nvme, sorter0'):
            peer.set_qos("x", reads=1)
