# SPDX-License-Identifier: Apache-2.0
"""Command pages of engines: a store of 64 bytes is a command, in order with the stores of the PM window."""

import random

import pytest
from nearside import NearsideError
from nearside.device import Design, Device, SubmittedCommand

LINES = 64


@pytest.fixture(scope="module")
def device():
    with Device(Design.load("engines")) as device:
        yield device


# 50 MB/s for writes: a line is delayed for more than a microsecond, in each channel.
SLOW = """name = "slow writes"
description = ""
[read]
base_ns = 100.0
[write]
base_ns = 100.0
cap_gb_s = 0.05
"""


def test_command_page_command_reads_earlier_stores(device, tmp_path):
    copy, rng = device.engine("copy0"), random.Random(1)
    (tmp_path / "slow.toml").write_text(SLOW)
    device.delay_set(str(tmp_path / "slow.toml"))
    for turn in range(12):
        data = rng.randbytes(rng.choice([1, 64, 500, 9000]))
        at, last = rng.randrange(4096), min(50, len(data))
        device.pm_write(at, data)
        command = copy.submit(src=at + len(data) - last, dst=1 << 20, bytes=last)
        assert copy.finish(command) == {}
        assert device.pm_read(1 << 20, last) == data[-last:], turn
    device.delay_set("dram")


@pytest.mark.both
def test_command_page_commands_run_in_order(device):
    copy = device.engine("copy0")
    device.pm_write(0, b"first")
    commands = [copy.submit(src=at, dst=at + 4096, bytes=5) for at in range(0, 20 * 4096, 4096)]
    for command in commands:
        copy.finish(command)
    assert device.pm_read(20 * 4096, 5) == b"first"


def test_command_page_full_page_blocks_nothing_else(device):
    scan = device.engine("scan0")
    slow = scan.submit(src=0, bytes=8 << 20, low=0, high=0, kind=0)
    others = [scan.submit(src=0, bytes=4, low=0, high=n, kind=0) for n in range(LINES - 1)]
    with pytest.raises(NearsideError, match="all 64 lines of the command page are busy"):
        scan.submit(src=0, bytes=4, low=0, high=0, kind=0)
    device.pm_write(1 << 20, b"meanwhile")
    assert device.pm_read(1 << 20, 9) == b"meanwhile"
    with pytest.raises(NearsideError, match="scan0 has not ended in 0 us"):
        scan.finish(others[-1], timeout_us=0)
    assert scan.finish(others[-1])["count"] in (0, 1)
    assert scan.finish(slow)["count"] > 0
    # Any line may be reused.
    again = scan.submit(src=0, bytes=4, low=0, high=2**32 - 1, kind=0)
    assert scan.finish(again) == {"count": 1}
    with pytest.raises(NearsideError, match="no command 1 is in line 0: a later one has taken its place"):
        scan.finish(slow)


def test_command_page_alternates_with_registers(device):
    scan = device.engine("scan0")
    device.pm_write(0, bytes(4096))
    scan.start(src=0, bytes=1 << 20, low=0, high=0, kind=0)
    command = scan.submit(src=0, bytes=4096, low=0, high=0, kind=1)
    assert scan.command("count", cdw12=7) == 1024
    assert scan.finish(command) == {"count": 512}
    assert scan.wait() == []


@pytest.mark.parametrize(
    ("engine", "arguments", "why"),
    [
        ("scan0", {"src": 0, "bytes": 0, "low": 0, "high": 1, "kind": 0}, "scan0: invalid"),
        ("scan0", {"src": 0, "bytes": 8, "low": 0, "high": 1, "kind": 8}, "scan0: invalid"),
        ("scan0", {"src": 0, "bytes": 8, "low": 0, "high": 1, "kind": 1 << 63}, "scan0: invalid"),
        ("scan0", {"src": 1 << 62, "bytes": 8, "low": 0, "high": 1, "kind": 1}, "scan0: read_error"),
        ("copy0", {"src": 0, "dst": 2**64 - 4, "bytes": 64}, "copy0: invalid"),
    ],
)
def test_command_page_errors_are_named(device, engine, arguments, why):
    engine = device.engine(engine)
    with pytest.raises(NearsideError, match=why):
        engine.finish(engine.submit(**arguments))


def test_command_page_missing_page_is_named(device):
    with pytest.raises(NearsideError, match="scan0: kind: its arguments are src, bytes, low, high, kind, dst"):
        device.engine("scan0").submit(src=0, bytes=8, low=0, high=1)
    with pytest.raises(NearsideError, match="no command 7 is in line 99"):
        device.engine("scan0").finish(SubmittedCommand(99, 7, device.engine("scan0")))
