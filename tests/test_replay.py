# SPDX-License-Identifier: Apache-2.0
"""Recorded commands that are issued again at their times."""

from __future__ import annotations

import pytest
from nearside import Design, Device, NearsideError
from nearside import trace as traces
from nearside.experiments.nvmulator_replay import fetched_ps, replay

COSTLESS = "[cpu]\nprofile = 'none'"


@pytest.fixture(scope="module")
def device():
    with Device(Design.load("default").with_values(COSTLESS), model="fast") as opened:
        yield opened


def test_replay_keeps_times_and_latencies(device, tmp_path):
    """Commands of several queues, recorded, and issued on one: the device takes as long for them."""
    path = tmp_path / "trace.jsonl"
    device.trace_start(path)
    device.workload(read_percent=60, min_bytes=512, max_bytes=65536, queues=3, depth=2, commands=600, seed=5)
    device.trace_stop()
    recorded = traces.load(path)
    found = replay(Design.load("default"), "fast", recorded)
    assert sum(row["count"] for row in found.values()) == 600
    assert all(row["error_percent"] < 2 and row["late_us"] == 0 for row in found.values()), found
    # On another medium the same commands take another time.
    slow = replay(Design.load("default").with_values("[media]\nprofile = 'pcm'"), "fast", recorded)
    assert slow["write"]["error_percent"] > 20, slow


def test_replay_issues_commands_when_they_are_due(device, tmp_path):
    path = tmp_path / "trace.jsonl"
    device.trace_start(path)
    report = device.replay([(0, "read", 8, 8), (0, "flush", 0, 0), (7_000_000_000, "write", 0, 256)])
    device.trace_stop()
    assert (report["commands"], report["bytes"]) == (3, 264 * 512)
    first, *_, last = sorted(traces.load(path), key=fetched_ps)
    assert abs(fetched_ps(last) - fetched_ps(first) - 7_000_000_000) < 100_000
    assert 7e6 < report["elapsed_ns"] < 7e6 + report["write_latency"]["max_ns"] + 1


def test_replay_of_more_commands_than_a_queue_holds_is_late(device):
    report = device.replay([(0, "read", 8 * n, 8) for n in range(3000)])
    assert report["commands"] == 3000
    assert report["late_ns"] > 1000


@pytest.mark.parametrize(
    ("commands", "what"),
    [
        ([(5, "read", 0, 1), (4, "read", 0, 1)], "command 1: its time is before that of the previous one"),
        ([(0, "read", 0, 0)], "command 0: 0 blocks from LBA 0: allowed are 1 to"),
        ([(0, "write", (1 << 64) - 1, 1)], "command 0: 1 blocks from LBA 18446744073709551615"),
    ],
)
def test_replay_refuses_commands_that_can_not_be(device, commands, what):
    with pytest.raises(NearsideError, match=what):
        device.replay(commands)
    assert device.replay([(0, "read", 0, 1)])["commands"] == 1


def test_replay_refuses_unknown_kinds(device):
    with pytest.raises(ValueError, match='command "erase": allowed are "read", "write", "flush"'):
        device.replay([(0, "erase", 0, 1)])


def test_replay_of_nothing(device):
    assert device.replay([])["commands"] == 0
    with pytest.raises(NearsideError, match="the trace has no reads or writes"):
        replay(Design.load("default"), "fast", [])
