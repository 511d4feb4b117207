# SPDX-License-Identifier: Apache-2.0
"""Misuse of engines and memories: every mistake is reported at once, and nothing is lost by it."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from nearside.device import Design, Device, NearsideError

MIB = 1 << 20
BLOCK = 512


class Stopped(Exception):
    """Raised by a signal handler."""


@pytest.fixture(scope="module")
def device():
    with Device(Design.load("engines")) as device:
        yield device


@pytest.mark.slow
def test_engine_command_handles_signals():
    """A handler that raises ends the wait early, the engine stops, and the device still works."""

    def handler(*_):
        raise Stopped

    scan_all = {"cdw12": 8 * MIB // BLOCK - 1}
    before = signal.signal(signal.SIGALRM, handler)
    # On the fast model a command ends before a signal can arrive.
    try:
        with Device(Design.load("engines"), model="rtl") as device:
            scan = device.engine("scan0")
            begin = device.now_ns
            scan.command("count", **scan_all)
            whole = device.now_ns - begin

            def until_stopped() -> float:
                """Simulated time of a command until a signal has ended it, at any point."""
                signal.setitimer(signal.ITIMER_REAL, 0.005)
                try:
                    while True:
                        begin = device.now_ns
                        scan.command("count", **scan_all)
                except Stopped:
                    return device.now_ns - begin

            assert any(until_stopped() < whole / 2 for _ in range(50))
            assert scan.command("count", cdw12=7) >= 0
            assert scan.launch(src=0, bytes=4096, low=0, high=0, kind=0) < whole / 10
            device.write(bytes(BLOCK))
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
def test_engine_command_belongs_to_its_engine(device):
    """Lines and numbers are equal in all pages and on other devices, too."""
    copy, scan = device.engine("copy0"), device.engine("scan0")
    mine = copy.submit(src=0, dst=MIB, bytes=64)
    other = scan.submit(src=0, bytes=64, low=0, high=0, kind=0)
    for engine, command in ((scan, mine), (copy, other)):
        with pytest.raises(NearsideError, match="was submitted to"):
            engine.finish(command)
    # A second lookup returns the same engine.
    assert device.engine("copy0").finish(mine) == {}
    assert device.engine("scan0").finish(other) == {"count": 16}
    for command in ((0,), 5, None, "ab"):
        with pytest.raises((TypeError, ValueError)):
            scan.finish(command)


@pytest.mark.slow
@pytest.mark.parametrize("value", [-1, 2**64, 2**70, 1.5, "x", None])
def test_engine_argument_out_of_range_is_named(device, value):
    copy = device.engine("copy0")
    for call in (copy.start, copy.submit, copy.launch):
        with pytest.raises(NearsideError) as error:
            call(src=0, dst=value, bytes=1)
        assert str(error.value) == f"copy0: dst = {value!r}: allowed are integers from 0 to {2**64 - 1}"


@pytest.mark.slow
@pytest.mark.parametrize("timeout", [-1, 2**64, 2 * 10**9, 1.5, None])
def test_engine_refused_launch_starts_nothing(device, timeout):
    copy = device.engine("copy0")
    device.pm_write(0, b"new")
    device.pm_write(2 * MIB, b"old")
    with pytest.raises((NearsideError, TypeError, OverflowError)):
        copy.launch(timeout, src=0, dst=2 * MIB, bytes=3)
    device.advance_time(100_000)
    assert device.pm_read(2 * MIB, 3) == b"old"


@pytest.mark.slow
def test_engine_names_that_are_not_text(device):
    for call in (device.engine, device.set_qos, lambda name: device.delay_set("dram", memory=name)):
        for name in (None, 5, b"copy0"):
            with pytest.raises((NearsideError, TypeError)):
                call(name)


def nearside(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nearside.cli", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)


def test_engine_outputs_never_overwrite_design_or_local_memory(tmp_path):
    text = (Path(__file__).parent.parent / "designs/engines.toml").read_text()
    design = tmp_path / "d.toml"
    design.write_text(text.replace("[media]\n", '[media]\nfile = "disk.img"\n'))
    kept = tmp_path / "disk.img.local"
    kept.write_bytes(b"what the local memory holds")
    for option in ("--top", "--header"):
        done = nearside("build", "--design", "d.toml", option, kept.name, cwd=tmp_path)
        assert (done.returncode, kept.read_bytes()) == (1, b"what the local memory holds"), done
        assert "the same file" in done.stderr
    own = Design.load("engines").files
    assert [path.name for path in own] == ["engines.toml"]


def test_engine_design_header_compiles_as_c(tmp_path):
    (tmp_path / "d.c").write_text(
        '#include "map.h"\n#include "map.h"\nint main(void) { return NEARSIDE_COPY0_REGS == 0; }\n'
    )
    done = nearside("build", "--design", "engines", "--header", "map.h", cwd=tmp_path)
    assert done.returncode == 0, done
    compiler = ["gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "d.c", "-o", "d"]
    subprocess.run(compiler, cwd=tmp_path, check=True)


@pytest.mark.slow
def test_engine_local_memory_timing_applies_there_only(tmp_path):
    done = nearside("delay", "set", "pcm", "--memory", "local", "--design", "engines", "--json", cwd=tmp_path)
    assert done.returncode == 0, done
    doc = json.loads(done.stdout)
    # The profile's reads take some 50 ns more than those of DRAM.
    assert doc["after"]["p50_ns"] > doc["before"]["p50_ns"] + 30
    done = nearside("delay", "set", "pcm", "--memory", "flash", "--design", "engines", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert 'memory = "flash": allowed is "storage", "local"' in done.stderr
