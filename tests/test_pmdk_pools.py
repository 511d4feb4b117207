# SPDX-License-Identifier: Apache-2.0
"""Pools of unmodified programs with libpmemobj on a device: their files, places, and owners."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from nearside import pmdk, serve
from nearside.device import Design
from pmdk_programs import Place, Steps


@contextmanager
def socket_that_is_silent(path: Path) -> Iterator[None]:
    """As of a stopped server: it accepts connections, and never answers."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        yield


@pytest.fixture
def steps(place, compiled, tmp_path) -> Iterator[Steps]:
    folder = tmp_path / "pools"
    folder.mkdir()
    steps = Steps(place, compiled("pools"), folder)
    yield steps
    # Otherwise the device is full.
    steps.clear()


FULL = "the device has no room"


SPACE = "No space left on device"


@pytest.mark.parametrize(
    "before",
    [
        "create a set a 42 close a rename a b open b close b",
        "create a set a 42 close a rename a b",
        "create a set a 42 unlink a",
        "create a set a 42 rename a b",
    ],
)
def test_pmdk_pool_keeps_its_place_while_it_exists(steps, before):
    """Renamed, or without a name while it is open; all places are requested."""
    name = "a" if "close" not in before else "b"
    reopened = f"open {name}" if "close" in before else ""
    lines = steps.output(f"{before} fill {reopened} get {name} set {name} 43 get {name} close {name}", diagnostic=FULL)
    assert lines == [f"filled by 15: {SPACE}", f"{name}: 42 42", f"{name}: 43 43"]


def test_pmdk_pool_places_of_inaccessible_files(steps):
    """They may exist; once they are known to be gone their places are free."""
    steps.output("create a set a 42 close a")
    away = steps.folder.with_name("away")
    steps.folder.rename(away)
    steps.folder.write_text("no folder")
    another = Steps(steps.place, steps.program, away.with_name("another"))
    another.folder.mkdir()
    assert another.output("fill", diagnostic=FULL) == [f"filled by 15: {SPACE}"]
    steps.folder.unlink()
    away.rename(steps.folder)
    assert steps.output("open a get a") == ["a: 42 42"]
    steps.clear()
    assert another.output("create b close b create c", diagnostic=FULL) == [f"c: {SPACE}"]
    another.clear()


def test_pmdk_pool_places_of_killed_processes_are_reused(steps):
    """The device keeps their pools mapped until it is notified; others get these places under other numbers."""
    assert steps.start("create a create b begin a 1 kill").wait(timeout=600) == -signal.SIGKILL
    assert steps.output("fill", diagnostic=FULL) == [f"filled by 14: {SPACE}"]
    steps.clear()
    assert steps.output("large c set c 3 get c") == ["c: 3 3"]


def test_pmdk_pool_copied_or_moved_files(steps):
    steps.output("create a set a 42 close a")
    (steps.folder / "b").write_bytes((steps.folder / "a").read_bytes())
    reported = f"{steps.folder}/b: a copy of {steps.folder}/a, whose contents are on the device once"
    assert steps.output("open b", diagnostic=reported) == ["b: No such device or address"]
    # As by a move to another file system.
    (steps.folder / "a").unlink()
    assert steps.output("open b get b close b fill open b get b", diagnostic=FULL)[::2] == ["b: 42 42", "b: 42 42"]
    # A renamed file with a copy in its old place.
    (steps.folder / "b").rename(steps.folder / "c")
    (steps.folder / "b").write_bytes((steps.folder / "c").read_bytes())
    assert steps.output("open c get c") == ["c: 42 42"]
    assert steps.output("open b", diagnostic="b: a copy of") == ["b: No such device or address"]


def test_pmdk_pool_hard_link_keeps_a_pool(steps):
    """Two names in two folders: the pool is opened by one, which is removed; the file still exists."""
    second = Steps(steps.place, steps.program, steps.folder.with_name("second"))
    second.folder.mkdir()
    steps.output("create a set a 42 close a")
    os.link(steps.folder / "a", second.folder / "b")
    assert second.output("open b get b") == ["b: 42 42"]
    (second.folder / "b").unlink()
    reported = (
        f"{second.folder}/b is no more, but its file had other names: its place is kept. Open the pool by another"
    )
    assert steps.output("fill", diagnostic=reported) == [f"filled by 15: {SPACE}"]
    assert steps.output("open a get a") == ["a: 42 42"]
    # A name that the file gets while the pool is open, and one in the same folder.
    holder = steps.start("open a stay close a")
    assert holder.stdout.readline() == "stays\n"
    os.link(steps.folder / "a", second.folder / "c")
    assert holder.communicate("\n", timeout=600) == ("", "")
    (steps.folder / "a").rename(steps.folder / "d")
    assert steps.output("create b", diagnostic=FULL) == [f"b: {SPACE}"]
    (steps.folder / "d").unlink()
    reported = f"{steps.folder}/d is no more"
    assert steps.output("create b", diagnostic=reported) == [f"b: {SPACE}"]
    # Without any name its place is reused on request.
    second.clear()
    assert steps.output("create b", diagnostic=reported) == [f"b: {SPACE}"]
    forgotten = {"NEARSIDE_PMDK_FORGET": f"{steps.folder}/d"}
    assert steps.output("create b set b 1 get b", variables=forgotten) == ["b: 1 1"]


def test_pmdk_pool_opened_twice_at_the_same_time(place, compiled, tmp_path):
    """One of them gets it; neither takes the other's access to the file for an open pool."""
    command = [compiled("racing"), tmp_path / "pool", "40"]
    done = subprocess.run(command, env=place.environment(), capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "pool").unlink()


def test_pmdk_pool_with_a_stopped_device(structures, tmp_path):
    """Clients that wait for an answer give up: it never arrives."""
    path = tmp_path / "d.sock"
    variables = pmdk.environment(pmdk.write_shim(tmp_path), path) | {"NEARSIDE_PMDK_PATIENCE": "1"}
    command = [structures, "run", "1", "1", "1", f"btree:{tmp_path}/pool"]
    with socket_that_is_silent(path):
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1
    assert f"nearside: NEARSIDE_PMDK = {path}: it does not answer\n" in done.stderr
    variables["NEARSIDE_PMDK_PATIENCE"] = "soon"
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600)
    assert "NEARSIDE_PMDK_PATIENCE = soon: allowed are 1 to 86400 seconds; it is 120" in done.stderr


SERVED = """
import sys
from pathlib import Path
from nearside import pmdk
with pmdk.serve_device("nearpm", Path(sys.argv[1]), "fast"):
    print("serves", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
def test_pmdk_pool_with_a_device_stopped_in_a_transaction(compiled, tmp_path):
    """The program ends, as it can't roll back; the next one, when the device continues, finds that rolled back."""
    pools = tmp_path / "pools"
    pools.mkdir()
    place = Place(tmp_path, compiled("pools"))
    steps = Steps(place, place.program, pools)
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", SERVED, place.socket]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as server:
        assert server.stdout.readline() == "serves\n"
        process = steps.start("create a set a 1 stay set a 2", variables={"NEARSIDE_PMDK_PATIENCE": "10"})
        assert process.stdout.readline() == "stays\n"
        server.send_signal(signal.SIGSTOP)
        try:
            out, err = process.communicate("\n", timeout=600)
        finally:
            server.send_signal(signal.SIGCONT)
        assert (process.returncode, out) == (-signal.SIGABRT, "")
        assert err.splitlines()[-1] == "nearside: the device can't undo a transaction"
        assert steps.output("open a get a") == ["a: 1 1"]
        server.communicate("", timeout=600)


def test_pmdk_pool_is_open_once_at_a_time(steps):
    busy = "a: Resource temporarily unavailable"
    once = "create a set a 5 open a check a set a 6 undo a 7 get a"
    assert steps.same(f"{once} close a open a get a") == [
        busy,
        "check: -1",
        "aborted: Operation canceled",
        *["a: 6 6"] * 2,
    ]
    holder = steps.start("open a set a 8 stay set a 9 get a")
    assert holder.stdout.readline() == "stays\n"
    start = time.monotonic()
    assert steps.output("open a") == [busy]
    assert time.monotonic() - start < 5
    assert holder.communicate("\n", timeout=600) == ("a: 9 9\n", "")


def test_pmdk_pool_of_a_killed_parent_stays_with_the_child(steps):
    child = steps.start("create a set a 5 unlink a orphan stay get a")
    assert child.stdout.readline() == "stays\n"
    assert steps.output("fill", diagnostic=FULL) == [f"filled by 15: {SPACE}"]
    assert child.communicate("\n", timeout=600) == ("a: 5 5\n", "")
    # Nothing has it open now.
    assert steps.output("create b close b") == []


def test_pmdk_pool_with_copy_on_write(steps):
    """No change of that time is there afterwards, and the device keeps nothing of it."""
    done = "undo a 50 get a set a 60 set a 61 set a 62 get a close a"
    private = f"create a set a 42 close a private 1 open a {done} open a get a close a private 0"
    lines = steps.same(f"{private} open a get a set a 43 get a close a open a get a")
    assert [line for line in lines if line.startswith("a: ")] == [f"a: {n} {n}" for n in (42, 62, 42, 42, 43, 43)]
    # A partial transaction of a killed process is not in their initial state.
    process = steps.start("open a begin a 99 kill")
    assert process.communicate(timeout=600) == ("", "")
    assert steps.output("private 1 open a get a set a 5 get a close a private 0 open a get a")[::2] == ["a: 43 43"] * 2


REFUSED = "has no transactions in a pool that its parent has opened"


def test_pmdk_pool_of_a_parent_has_no_transactions_of_children(steps):
    child = "sum a fork 6 set a 7 undo a 8 same a"
    lines = steps.output(f"create a set a 1 {child} set a 2 undo a 3 {child} close a open a get a", diagnostic=REFUSED)
    refused = ["aborted: Operation not supported"] * 2
    assert lines == [*refused, "unchanged", "aborted: Operation canceled", *refused, "unchanged", "a: 2 2"]
    # A transaction that began earlier is neither committed nor rolled back.
    for end in ("commit", "abort", "set c 6"):
        words = f"fork {len(end.split())} {end}"
        lines = steps.output(
            f"create c set c 1 begin c 5 {words} commit get c close c unlink c", diagnostic="its parent has begun"
        )
        assert lines == ["the child ends: Aborted", "c: 5 5"]
    # It may have private pools as long as its parent has none.
    own = "open b set b 4 close b"
    assert steps.same(f"create b set b 3 close b fork 7 {own} open b get b") == ["b: 4 4"]


def test_pmdk_pool_survives_kills_after_a_child_has_tried(steps):
    program = "create a set a 1 fork 3 set a 2 set a 3 undo a 4"
    steps.output(program, diagnostic=REFUSED)
    counts = json.loads((steps.place.folder / "report.json").read_text())
    seen = set()
    for moment in range(counts["first_moment"], counts["moments"] + 1, 3):
        steps.clear()
        process = steps.start(program, kill=moment)
        process.communicate(timeout=600)
        assert process.returncode == -signal.SIGKILL
        seen.add(steps.output("open a get a")[0])
    assert seen == {"a: 0 0", "a: 1 1", "a: 3 3"}


def test_pmdk_pool_not_on_the_device(place, structures, tmp_path):
    pools = [f"btree:{tmp_path}/elsewhere"]
    alone = os.environ | {"PMEM_IS_PMEM_FORCE": "1"}
    command = [structures, "run", "1", "5", "1", *pools]
    assert subprocess.run(command, env=alone, capture_output=True).returncode == 0
    done, reported = place.check(pools, 1)
    assert (
        reported
        == f"nearside: {tmp_path}/elsewhere: its contents are not on the device; it is left to libpmemobj alone\n"
    )
    assert done[0, 0] == 5
    # One of a device that no longer exists.
    label = b"NEARSIDE-PMDK 1\0" + bytes([1] * 8)
    (tmp_path / "lost").write_bytes(label.ljust(4096, b"\0"))
    _, reported = place.check([f"btree:{tmp_path}/lost"], 1)
    assert reported.startswith(
        f"nearside: {tmp_path}/lost: its contents are on another device\n{tmp_path}/lost: can't be opened"
    )
    # Without the shim the pool's file is not a pool.
    pools = place.pools("btree")
    place.run(pools, 1, 5)
    done = subprocess.run([structures, "check", "1", *pools], env=alone, capture_output=True, text=True)
    assert done.returncode == 1
    assert "can't be opened" in done.stderr
    # An existing pool is not created again.
    path = Path(pools[0].partition(":")[2])
    assert place.check(pools, 1)[0][0, 0] == 5
    place.remove([f"btree:{path}"])


@pytest.mark.slow
def test_pmdk_pool_sixteen_fit_on_the_device(place):
    pools = [place.pools("hashmap")[0] for _ in range(17)]
    for pool in pools[:16]:
        place.run([pool], 1, 1)
    process = place.start(pools[16:], 1, 1)
    _, reported = process.communicate(timeout=600)
    assert process.returncode == 1
    assert "the device has no room" in reported
    assert not Path(pools[16].partition(":")[2]).exists()
    # The places of removed files are free.
    place.remove(pools[3:4])
    place.run(pools[16:], 1, 1)
    assert place.check(pools[4:5], 1)[0][0, 0] == 1
    place.remove(pools)


@pytest.mark.parametrize(
    ("design", "text"),
    [
        ("default", "it has no engine nearpm"),
        ("nearpm", "media in memory, of profile dram, are needed"),
        (None, "No such"),
    ],
)
def test_pmdk_pool_unsuitable_devices(structures, tmp_path, design, text):
    socket = tmp_path / "d.sock"
    environment = pmdk.environment(pmdk.write_shim(tmp_path), socket)
    command = [structures, "run", "1", "1", "1", f"btree:{tmp_path}/pool"]

    def reported() -> str:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 1
        return done.stderr

    if design is None:
        assert text in reported()
    else:
        with serve.Server([(Design.load(design), socket)], model="fast"):
            assert text in reported()
    assert not (tmp_path / "pool").exists()
