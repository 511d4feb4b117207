"""Unmodified programs with libpmemobj whose logs a device keeps: they do as without it, and survive `kill -9`."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import guest
import pmdk as kits
import pytest
from nearside import NearsideError, pmdk, pmdk_crash, serve
from nearside.device import Design

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "crates/pmdk/examples"
KINDS = ["btree", "rbtree", "skiplist", "hashmap", "list"]
# With an odd seed steps are aborted, too, before they are done.
CALM, ABORTING = 2, 3


@pytest.fixture(scope="module")
def kit() -> Path:
    try:
        return kits.KIT.folder(tell=False)
    except guest.NoKit as reason:
        pytest.skip(f"no libpmemobj: {reason}")


@pytest.fixture(scope="module")
def structures(kit, tmp_path_factory) -> Path:
    program = tmp_path_factory.mktemp("programs") / "structures"
    kits.compile_program(kit, EXAMPLES / "structures.c", program)
    return program


@pytest.fixture(scope="module")
def calls(kit, tmp_path_factory) -> Path:
    program = tmp_path_factory.mktemp("programs") / "calls"
    kits.compile_program(kit, ROOT / "crates/pmdk/tests/calls.c", program)
    return program


@pytest.fixture(scope="module")
def compiled(kit, tmp_path_factory) -> Callable[[str], Path]:
    """A program of the tests' own, by its name."""
    folder = tmp_path_factory.mktemp("programs")

    def make(name: str) -> Path:
        if not (folder / name).exists():
            kits.compile_program(kit, ROOT / f"crates/pmdk/tests/{name}.c", folder / name)
        return folder / name

    return make


class Place:
    """A device, and programs that have their pools on it."""

    def __init__(self, folder: Path, program: Path) -> None:
        self.socket, self.folder, self.program = folder / "device.sock", folder, program
        self.library = pmdk.shim(folder)
        self.count = 0

    def environment(self, **options) -> dict[str, str]:
        return dict(pmdk.environment(self.library, self.socket, self.folder / "report.json", **options))

    def pools(self, *kinds: str) -> list[str]:
        """Names of pools that are not there yet."""
        self.count += 1
        return [f"{kind}:{self.folder}/pool-{self.count}-{n}" for n, kind in enumerate(kinds)]

    def start(self, pools: list[str], seed: int, steps: int, threads: int = 1, **options) -> subprocess.Popen[str]:
        command = [self.program, "run", str(seed), str(steps), str(threads), *pools]
        return subprocess.Popen(
            command, env=self.environment(**options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, pools: list[str], seed: int, steps: int, threads: int = 1, **options) -> dict[str, int]:
        """To the end; what the device has done."""
        process = self.start(pools, seed, steps, threads, **options)
        _, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (0, "")
        return json.loads((self.folder / "report.json").read_text())

    def check(self, pools: list[str], seed: int) -> tuple[dict[tuple[int, int], int], str]:
        """Steps that are done of each pool and thread, or what is wrong."""
        command = [self.program, "check", str(seed), *pools]
        done = subprocess.run(command, env=self.environment(), capture_output=True, text=True, timeout=120)
        assert done.returncode in (0, 1), done
        return steps_of(done.stdout), done.stderr

    def remove(self, pools: list[str]) -> None:
        """Their places on the device are free then."""
        for pool in pools:
            Path(pool.partition(":")[2]).unlink(missing_ok=True)


def steps_of(output: str) -> dict[tuple[int, int], int]:
    lines = re.findall(r"^(\d+) (\d+) (\d+)$", output, re.MULTILINE)
    return {(int(pool), int(thread)): int(done) for pool, thread, done in lines}


@pytest.fixture(scope="module")
def place(structures, tmp_path_factory) -> Iterator[Place]:
    # Pools' files are sparse.
    place = Place(tmp_path_factory.mktemp("device"), structures)
    with pmdk.served("nearpm", place.socket, engine=os.environ["NEARSIDE_ENGINE"]):
        yield place


def acknowledged(process: subprocess.Popen[str], lines: int, pause_s: float) -> dict[tuple[int, int], int]:
    """Kills a program some time after so many lines; the steps of which it has said that they are done."""
    output = "".join(process.stdout.readline() for _ in range(lines))
    time.sleep(pause_s)
    process.send_signal(signal.SIGKILL)
    output += process.stdout.read()  # what `communicate` returns lacks what has been read ahead
    process.communicate(timeout=60)
    return steps_of(output)


def kill_often(
    place: Place, pools: list[str], seed: int, threads: int, rounds: int, draw: random.Random, **options
) -> str:
    """Kills a program at moments that are drawn, and checks each time; what is wrong first, or nothing."""
    before: dict[tuple[int, int], int] = {}
    for _ in range(rounds):
        process = place.start(pools, seed, 1 << 30, threads, **options)
        told = before | acknowledged(process, draw.randrange(1, 40), draw.random() * 0.004)
        done, wrong = place.check(pools, seed)
        if wrong:
            return wrong
        for key, steps in told.items():
            assert steps <= done[key] <= steps + 1, (key, told, done)
        before = done
    return ""


def kill_at_moments(place: Place, pools: list[str], seed: int, rounds: int, draw: random.Random, **options) -> str:
    """Kills a program at drawn moments between what it does with libpmemobj and with the device, recovery included."""
    opening = place.run(pools, seed, 0)["moments"]
    before: dict[tuple[int, int], int] = {}
    for _ in range(rounds):
        process = place.start(pools, seed, 1 << 30, kill=1 + draw.randrange(opening + 150), **options)
        output, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (-signal.SIGKILL, "")
        told = before | steps_of(output)
        done, wrong = place.check(pools, seed)
        if wrong:
            return wrong
        for key, steps in told.items():
            assert steps <= done[key] <= steps + 1, (key, told, done)
        before = done
    return ""


def test_transactions_and_recovery(place):
    pools = place.pools(*KINDS[:4])
    counts = place.run(pools, ABORTING, 100, threads=2)
    assert counts["commits"] >= 4 * 2 * 100
    assert counts["aborts"] > 50
    assert counts["records"] > counts["commits"]
    assert counts["ranges_repeated"] > 0
    assert counts["ranges_left_to_libpmemobj"] == 0
    done, wrong = place.check(pools, ABORTING)
    assert wrong == ""
    assert all(done[pool, thread] == 100 for pool in range(4) for thread in range(2))
    place.remove(pools)


def test_a_program_sees_no_difference(place, calls, tmp_path):
    """Aborts in all ways, nesting, callbacks, locks, large ranges, more threads than logs, wrong arguments."""
    command = [calls, tmp_path / "pool"]
    alone = os.environ | {"PMEM_IS_PMEM_FORCE": "1"}
    bare = subprocess.run(command, env=alone, capture_output=True, text=True, timeout=120)
    assert (bare.returncode, bare.stderr) == (0, "")
    (tmp_path / "pool").unlink()
    done = subprocess.run(command, env=place.environment(), capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == bare.stdout
    assert (tmp_path / "pool").stat().st_blocks * 512 <= 4096  # its contents are on the device
    (tmp_path / "pool").unlink()
    counts = json.loads((place.folder / "report.json").read_text())
    assert counts["ranges_left_to_libpmemobj"] > 0  # beyond a log, or a 17th transaction at once
    assert counts["records"] > counts["commits"] > 50
    assert counts["aborts"] > 50


def test_objects_of_another_pool(place, compiled, tmp_path):
    """libpmemobj refuses them; a new object of the transaction's own at the same place stays new, and has no record."""
    command = [compiled("foreign"), tmp_path / "pool", tmp_path / "another"]

    def told(environment: dict[str, str]) -> str:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        for path in command[1:]:
            path.unlink()
        return done.stdout

    bare = told(os.environ | {"PMEM_IS_PMEM_FORCE": "1"})
    assert told(place.environment()) == bare
    assert json.loads((place.folder / "report.json").read_text())["records"] == 0


class Steps:
    """Programs that do steps with pools, on a device and alone."""

    def __init__(self, place: Place, program: Path, folder: Path) -> None:
        self.place, self.program, self.folder = place, program, folder

    def start(self, steps: str, alone: bool = False, **options) -> subprocess.Popen[str]:
        variables = os.environ | {"PMEM_IS_PMEM_FORCE": "1"} if alone else self.place.environment(**options)
        pipe = subprocess.PIPE
        command = [self.program, self.folder, *steps.split()]
        return subprocess.Popen(command, env=variables, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def told(self, steps: str, told: str = "", alone: bool = False, **options) -> list[str]:
        """What they have said; `told` is what has to be in what else there is."""
        process = self.start(steps, alone, **options)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, (out, err)
        assert (told in err) if told else err == ""
        return out.splitlines()

    def same(self, steps: str) -> list[str]:
        """What they say on a device, which is what they say alone."""
        bare = self.told(steps, alone=True)
        self.clear()
        assert self.told(steps) == bare
        return bare

    def clear(self) -> None:
        for path in self.folder.iterdir():
            path.unlink()


@pytest.fixture
def steps(place, compiled, tmp_path) -> Iterator[Steps]:
    folder = tmp_path / "pools"
    folder.mkdir()
    steps = Steps(place, compiled("pools"), folder)
    yield steps
    # The device is full otherwise.
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
def test_a_pool_keeps_its_place_as_long_as_it_is_there(steps, before):
    """Renamed, or without a name while it is open; all places are asked for."""
    name = "a" if "close" not in before else "b"
    reopened = f"open {name}" if "close" in before else ""
    lines = steps.told(f"{before} fill {reopened} get {name} set {name} 43 get {name} close {name}", told=FULL)
    assert lines == [f"filled by 15: {SPACE}", f"{name}: 42 42", f"{name}: 43 43"]


def test_places_of_files_that_can_not_be_looked_at(steps):
    """They may be there; once they are known to be gone their places are free."""
    steps.told("create a set a 42 close a")
    away = steps.folder.with_name("away")
    steps.folder.rename(away)
    steps.folder.write_text("no folder")
    another = Steps(steps.place, steps.program, away.with_name("another"))
    another.folder.mkdir()
    assert another.told("fill", told=FULL) == [f"filled by 15: {SPACE}"]
    steps.folder.unlink()
    away.rename(steps.folder)
    assert steps.told("open a get a") == ["a: 42 42"]
    steps.clear()
    assert another.told("create b close b create c", told=FULL) == [f"c: {SPACE}"]
    another.clear()


def test_places_of_killed_processes_are_given_away(steps):
    """The device has their pools mapped until it is told otherwise; others get these places under other numbers."""
    assert steps.start("create a create b begin a 1 kill").wait(timeout=60) == -signal.SIGKILL
    assert steps.told("fill", told=FULL) == [f"filled by 14: {SPACE}"]
    steps.clear()
    assert steps.told("large c set c 3 get c") == ["c: 3 3"]


def test_files_of_pools_that_are_copied_or_moved(steps):
    steps.told("create a set a 42 close a")
    (steps.folder / "b").write_bytes((steps.folder / "a").read_bytes())
    told = f"{steps.folder}/b: a copy of {steps.folder}/a, whose contents are on the device once"
    assert steps.told("open b", told=told) == ["b: No such device or address"]
    # As a move to another file system is.
    (steps.folder / "a").unlink()
    assert steps.told("open b get b close b fill open b get b", told=FULL)[::2] == ["b: 42 42", "b: 42 42"]
    # One that was renamed, and has a copy in its old place.
    (steps.folder / "b").rename(steps.folder / "c")
    (steps.folder / "b").write_bytes((steps.folder / "c").read_bytes())
    assert steps.told("open c get c") == ["c: 42 42"]
    assert steps.told("open b", told="b: a copy of") == ["b: No such device or address"]


def test_a_pool_is_opened_once_at_a_time(steps):
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
    assert steps.told("open a") == [busy]
    assert time.monotonic() - start < 5
    assert holder.communicate("\n", timeout=60) == ("a: 9 9\n", "")


@pytest.mark.parametrize("by", pmdk_crash.SIDES)
def test_losses_of_power_of_pools_that_are_opened_again(compiled, by):
    """What follows the program's memory has no lock on it."""
    steps = "create a set a 1 close a open a set a 2 close a"
    program = [str(compiled("pools")), "{}", *steps.split()]
    doc = pmdk_crash.run(program, f"{program[0]} {{}} open a get a", by, "sampled:12", engine="fast")
    assert (doc["ended"], doc["violation"]) == (0, None)


def test_a_child_keeps_the_pools_of_a_parent_that_was_killed(steps):
    child = steps.start("create a set a 5 unlink a orphan stay get a")
    assert child.stdout.readline() == "stays\n"
    assert steps.told("fill", told=FULL) == [f"filled by 15: {SPACE}"]
    assert child.communicate("\n", timeout=60) == ("a: 5 5\n", "")
    # Now nobody has it.
    assert steps.told("create b close b") == []


def test_pools_with_copies_on_write(steps):
    """Nothing of what was done then is there afterwards, and the device keeps nothing of it."""
    done = "undo a 50 get a set a 60 set a 61 set a 62 get a close a"
    private = f"create a set a 42 close a private 1 open a {done} open a get a close a private 0"
    lines = steps.same(f"{private} open a get a set a 43 get a close a open a get a")
    assert [line for line in lines if line.startswith("a: ")] == [f"a: {n} {n}" for n in (42, 62, 42, 42, 43, 43)]
    # Half a transaction of a process that was killed is none of what they begin with.
    process = steps.start("open a begin a 99 kill")
    assert process.communicate(timeout=60) == ("", "")
    assert steps.told("private 1 open a get a set a 5 get a close a private 0 open a get a")[::2] == ["a: 43 43"] * 2


REFUSED = "has no transactions in a pool that its parent has opened"


def test_children_have_no_transactions_in_pools_of_their_parents(steps):
    child = "sum a fork 6 set a 7 undo a 8 same a"
    lines = steps.told(f"create a set a 1 {child} set a 2 undo a 3 {child} close a open a get a", told=REFUSED)
    refused = ["aborted: Operation not supported"] * 2
    assert lines == [*refused, "unchanged", "aborted: Operation canceled", *refused, "unchanged", "a: 2 2"]
    # Of a transaction that has begun before it nothing is committed, nor undone.
    for end in ("commit", "abort", "set c 6"):
        words = f"fork {len(end.split())} {end}"
        lines = steps.told(
            f"create c set c 1 begin c 5 {words} commit get c close c unlink c", told="its parent has begun"
        )
        assert lines == ["the child ends: Aborted", "c: 5 5"]
    # Pools of its own it has as long as its parent has none.
    own = "open b set b 4 close b"
    assert steps.same(f"create b set b 3 close b fork 7 {own} open b get b") == ["b: 4 4"]


def test_kills_of_a_parent_whose_child_has_tried(steps):
    program = "create a set a 1 fork 3 set a 2 set a 3 undo a 4"
    steps.told(program, told=REFUSED)
    counts = json.loads((steps.place.folder / "report.json").read_text())
    seen = set()
    for moment in range(counts["first_moment"], counts["moments"] + 1, 3):
        steps.clear()
        process = steps.start(program, kill=moment)
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        seen.add(steps.told("open a get a")[0])
    assert seen == {"a: 0 0", "a: 1 1", "a: 3 3"}


def test_pools_that_are_not_on_the_device(place, structures, tmp_path):
    pools = [f"btree:{tmp_path}/elsewhere"]
    alone = os.environ | {"PMEM_IS_PMEM_FORCE": "1"}
    command = [structures, "run", "1", "5", "1", *pools]
    assert subprocess.run(command, env=alone, capture_output=True).returncode == 0
    done, told = place.check(pools, 1)
    assert (
        told == f"nearside: {tmp_path}/elsewhere: its contents are not on the device; it is left to libpmemobj alone\n"
    )
    assert done[0, 0] == 5
    # One of a device that is no more.
    label = b"NEARSIDE-PMDK 1\0" + bytes([1] * 8)
    (tmp_path / "lost").write_bytes(label.ljust(4096, b"\0"))
    _, told = place.check([f"btree:{tmp_path}/lost"], 1)
    assert told.startswith(
        f"nearside: {tmp_path}/lost: its contents are on another device\n{tmp_path}/lost: can't be opened"
    )
    # Without the shim the pool's file is no pool.
    pools = place.pools("btree")
    place.run(pools, 1, 5)
    done = subprocess.run([structures, "check", "1", *pools], env=alone, capture_output=True, text=True)
    assert done.returncode == 1
    assert "can't be opened" in done.stderr
    # A pool that is there is not created again.
    path = Path(pools[0].partition(":")[2])
    assert place.check(pools, 1)[0][0, 0] == 5
    place.remove([f"btree:{path}"])


@pytest.mark.slow
def test_the_device_has_room_for_sixteen_pools(place):
    pools = [place.pools("hashmap")[0] for _ in range(17)]
    for pool in pools[:16]:
        place.run([pool], 1, 1)
    process = place.start(pools[16:], 1, 1)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the device has no room" in told
    assert not Path(pools[16].partition(":")[2]).exists()
    # The places of files that are gone are free.
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
def test_devices_that_will_not_do(structures, tmp_path, design, text):
    socket = tmp_path / "d.sock"
    environment = pmdk.environment(pmdk.shim(tmp_path), socket)
    command = [structures, "run", "1", "1", "1", f"btree:{tmp_path}/pool"]

    def told() -> str:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        return done.stderr

    if design is None:
        assert text in told()
    else:
        with serve.Server([(Design.load(design), socket)], engine="fast"):
            assert text in told()
    assert not (tmp_path / "pool").exists()


def test_what_crash_consistency_takes(structures):
    program = [str(structures), "run", "2", "60", "1", "btree:{}/pool"]
    docs = {fence: pmdk.gain(program, fence=fence, engine="fast") for fence in ("read_back", "posted")}
    for doc in docs.values():
        alone, offloaded = doc["alone"], doc["offloaded"]
        assert alone["transactions"] == offloaded["transactions"] == 61
        assert alone["lines"] > 0
        assert alone["commands"] == 0 < offloaded["commands"]
        # The device's records are neither copied nor fenced by the CPU.
        assert offloaded["streamed"] < alone["streamed"]
        assert offloaded["fences"] < alone["fences"]
        assert doc["ratio"] > 1
    assert docs["posted"]["alone"]["ns"] < docs["read_back"]["alone"]["ns"]
    for words, text in [
        (["true"], "lack {}"),
        (["true", "{}"], "no transaction"),
        (["false", "{}"], "exit status 1"),
        (["/no/program", "{}"], "No such file"),
    ]:
        with pytest.raises(NearsideError, match=re.escape(text)):
            pmdk.gain(words, engine="fast")


def test_processes_that_a_program_starts_cost_nothing(compiled):
    program = [str(compiled("ways")), "run", "{}/pool", "obj_persist"]
    without = pmdk.gain([*program, "obj_persist"], engine="fast")
    doc = pmdk.gain([*program, "obj_persist_with_processes"], engine="fast")
    assert {**doc, "program": None} == {**without, "program": None}
    # Nor does a script that starts it.
    doc = pmdk.gain(["/bin/sh", "-c", f"true; {shlex.join([*program, 'obj_persist'])}; true"], engine="fast")
    assert {**doc, "program": None} == {**without, "program": None}


def crash(structures: Path, kind: str, by: str, cuts: str, seed: int = CALM, threads: int = 1, **options) -> dict:
    pool = f"{kind}:{{}}/pool"
    program = [str(structures), "run", str(seed), "30", str(threads), pool]
    return pmdk_crash.run(program, f"{structures} check {seed} {pool}", by, cuts, engine="fast", **options)


@pytest.mark.slow
@pytest.mark.parametrize("by", pmdk_crash.SIDES)
def test_losses_of_power(structures, by):
    doc = crash(structures, "btree", by, "sampled:8", seed=ABORTING)
    assert (doc["cuts"], doc["ended"], doc["violated"], doc["violation"]) == (8, 0, 0, None)
    assert doc["moments"] > 300
    assert not pmdk_crash.failed(doc)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "without", "cuts"), [("device", "snapshots", "sampled:10"), ("cpu", "fences", "sampled:2")]
)
def test_losses_of_power_find_what_is_left_out(structures, by, without, cuts):
    doc = crash(structures, "hashmap", by, cuts, without=without)
    assert doc["violated"] > 0
    assert not pmdk_crash.failed(doc)
    again = crash(structures, "hashmap", by, f"at:{doc['violation']['cut']}", without=without)
    assert again["violated"] == 1
    assert again["violation"]["what"].split(": ", 1)[1] == doc["violation"]["what"].split(": ", 1)[1]


def test_threads_that_abort_do_not_wait_for_each_other(compiled, monkeypatch):
    monkeypatch.setattr(pmdk_crash, "PATIENCE_S", 30)
    program = compiled("aborting")
    # The one at a moment that does not come has it run to its end.
    cuts = "at:900/7,1800/7,1000000000"
    doc = pmdk_crash.run([str(program), "run", "{}/f"], f"{program} check {{}}/f", "device", cuts, engine="fast")
    assert (doc["cuts"], doc["ended"], doc["violation"]) == (3, 1, None)


WRONG_WAYS = ["nothing", "memcpy_noflush", "msync_async", "msync_invalidate", "msync_misaligned", "fsync_another"]


def lost_by(program: Path, ways: Sequence[str], moments: Callable[[range], Iterable[int]]) -> str | None:
    """What is wrong where a program makes numbers persistent in these ways, and counts each."""

    def run(cuts: str) -> dict:
        return pmdk_crash.run([str(program), "run", "{}/f", *ways], f"{program} check {{}}/f", "cpu", cuts)

    doc = run("at:1000000000")
    first = doc["left_out"] + 1
    violation = run("at:" + ",".join(map(str, moments(range(first, first + doc["moments"])))))["violation"]
    return violation and violation["what"]


@pytest.mark.parametrize("way", WRONG_WAYS)
def test_ways_that_make_nothing_persistent(compiled, way):
    assert lost_by(compiled("ways"), ["msync", way], list) == "number 2 of 2 is not there"


@pytest.mark.parametrize("of_pools", [False, True])
def test_ways_that_make_it_persistent(compiled, of_pools):
    """All that the program has of libpmem's and of libc's, or of libpmemobj's, but for those that do not."""
    names = re.findall(r'strcmp\(way, "(\w+)"\)', (ROOT / "crates/pmdk/tests/ways.c").read_text())
    ways = [name for name in names if name not in WRONG_WAYS and name.startswith("obj_") == of_pools]
    assert len(ways) >= (11 if of_pools else 19)
    # libpmemobj's have lines of their own, so the last moment has all that is lost; some of the others have the page.
    assert lost_by(compiled("ways"), ways, lambda moments: moments[-1:] if of_pools else moments) is None


def test_a_script_that_starts_the_program(compiled, tmp_path):
    ways = compiled("ways")
    script = tmp_path / "script"
    # Whatever it goes on with when the power has failed does not come to it.
    script.write_text(f'#!/bin/sh\n{ways} run "$1/f" "$2" persist || cp "$0" "$1/later"\n')
    script.chmod(0o700)
    check = f"/bin/sh -c '! test -e {{}}/later && {ways} check {{}}/f'"
    docs = [pmdk_crash.run([str(script), "{}", way], check, "cpu", "all") for way in ("persist", "nothing")]
    assert (docs[0]["moments"], docs[0]["ended"], docs[0]["violation"]) == (8, 0, None)
    assert docs[1]["violation"]["what"] == "number 1 of 1 is not there"
    assert docs[1]["violation"]["timeline"][-1].startswith("the power fails: ")


def test_output_that_is_no_text(compiled, tmp_path):
    ways, bytes_ = compiled("ways"), r"printf 'a \377\376 name\n'"
    script = tmp_path / "check"
    script.write_text(f"#!/bin/sh\n{bytes_}; {ways} check $1/f 2>/dev/null || {{ {bytes_} >&2; exit 1; }}\n")
    script.chmod(0o700)
    program = ["/bin/sh", "-c", f"{bytes_} >&2; {ways} run {{}}/f nothing"]
    doc = pmdk_crash.run(program, f"{script} {{}}", "cpu", "all")
    assert doc["violation"]["what"] == r"a \xff\xfe name"


def test_a_program_that_kills_itself(compiled):
    script = f'{compiled("ways")} run {{}}/f persist && if test -n "$NEARSIDE_PMDK_CRASH"; then kill -9 $$; fi'
    doc = pmdk_crash.run(["/bin/sh", "-c", script], f"{compiled('ways')} check {{}}/f", "cpu", "at:2,1000")
    assert (doc["cuts"], doc["violated"]) == (2, 1)
    assert doc["violation"]["what"] == "the program ends before the power fails: signal 9, Killed"


@pytest.mark.slow
def test_a_fence_too_few_is_told_with_what_happened(kit, tmp_path):
    docs = {}
    for name, cuts in (("careless", "all"), ("careful", "sampled:20")):
        program = tmp_path / name
        kits.compile_program(kit, ROOT / "crates/pmdk/tests/careless.c", program)
        docs[name] = pmdk_crash.run([str(program), "run", "{}/f"], f"{program} check {{}}/f", "cpu", cuts)
    assert docs["careful"]["violated"] == 0
    violation = docs["careless"]["violation"]
    assert re.fullmatch(r"in step \d+ the old number is \d+", violation["what"])
    assert violation["timeline"][-1].startswith("the power fails: ")
    assert any(line.startswith("CPU     clwb of 8 bytes, ") for line in violation["timeline"])
    command = [sys.executable, "-m", "nearside.cli", *shlex.split(violation["replay"])[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert violation["what"] in done.stderr


def test_moments_that_are_left_out_are_told(compiled, capsys):
    command = [str(compiled("aborting")), "run", "{}/f"]
    doc = pmdk_crash.run(command, f"{command[0]} check {{}}/f", "cpu", "sampled:1")
    assert doc["left_out"] > 10
    pmdk_crash.print_reports([doc])
    assert f"left out are {doc['left_out']:,} moments before the first transaction" in capsys.readouterr().out
    # They can be asked for.
    early = pmdk_crash.run(command, f"{command[0]} check {{}}/f", "cpu", "at:3")
    assert (early["cuts"], early["ended"]) == (1, 0)
    doc = pmdk_crash.run([str(compiled("ways")), "run", "{}/f", "persist"], "/bin/true", "cpu", "sampled:1")
    assert doc["left_out"] == 0
    pmdk_crash.print_reports([doc])
    assert "left out" not in capsys.readouterr().out


def test_bad_campaigns_of_programs(structures):
    good = {"program": ["/bin/true", "{}"], "check": None, "by": "cpu", "cuts": "sampled:1"}
    for bad, text in [
        ({"program": ["/bin/true"]}, "lack {}"),
        ({"program": ["/bin/false", "{}"]}, "exit status 1"),
        ({"program": ["/no/program", "{}"]}, "No such file"),
        ({}, "it has persisted nothing"),
        ({"check": "/bin/false"}, "the check fails without a loss of power"),
        ({"check": '"'}, "check = "),
        ({"check": ""}, "a command is needed"),
        ({"by": "x"}, "allowed is cpu, device"),
        ({"without": "snapshots"}, "allowed for programs by the cpu is fences"),
    ]:
        with pytest.raises(NearsideError, match=re.escape(text)):
            pmdk_crash.run(**good | bad)
    for cuts in ("x", "sampled:", "sampled:0", "at:", "at:x", "at:1/x", "at:0", "sampled:9999999"):
        with pytest.raises(NearsideError, match=r"^cuts = "):
            list(pmdk_crash.cuts_of(cuts, range(1, 9), 1))
    assert list(pmdk_crash.cuts_of("at:5/7,6", range(1, 9), 1)) == [(5, 7), (6, 0)]
    assert len(list(pmdk_crash.cuts_of("all", range(1, 9), 1))) == 16


@pytest.mark.long
@pytest.mark.parametrize("by", pmdk_crash.SIDES)
@pytest.mark.parametrize("kind", KINDS)
def test_many_losses_of_power(structures, kind, by):
    assert crash(structures, kind, by, "sampled:150", seed=ABORTING, threads=2)["violation"] is None


def test_the_command(structures, tmp_path):
    command = [sys.executable, "-m", "nearside.cli", "pmdk", "run", "--json", "--"]
    command += [structures, "run", "3", "20", "1", f"rbtree:{tmp_path}/pool"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    doc = json.loads(done.stdout)
    assert doc["program"] == [str(word) for word in command[7:]]
    assert doc["done"]["commits"] >= 20
    assert done.stderr.splitlines()[-1] == "0 0 20"
    done = subprocess.run([*command[:5], "--", "false"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "no transaction of libpmemobj" in done.stdout
    done = subprocess.run([*command[:5], "--", "/no/program"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr == "nearside: /no/program: No such file or directory\n"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_kills_at_any_time(place, kind):
    pools = place.pools(kind)
    assert kill_often(place, pools, ABORTING, 2, 2, random.Random(kind)) == ""
    place.remove(pools)


@pytest.mark.slow
def test_kills_of_several_pools_with_several_threads(place):
    pools = place.pools("btree", "hashmap", "list")
    assert kill_often(place, pools, ABORTING, 3, 3, random.Random(1)) == ""
    place.remove(pools)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_kills_at_moments(place, kind):
    pools = place.pools(kind)
    assert kill_at_moments(place, pools, ABORTING, 4, random.Random(kind)) == ""
    place.remove(pools)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["btree", "hashmap"])
def test_without_snapshots_kills_are_seen(place, kind):
    """The control: the same kills find that nothing keeps the old bytes."""
    pools = place.pools(kind)
    assert kill_at_moments(place, pools, CALM, 60, random.Random(kind), without="snapshots") != ""
    place.remove(pools)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [ABORTING, CALM, 5, 7])
def test_many_kills(place, kind, seed):
    pools = place.pools(kind)
    draw = random.Random(f"{kind} {seed}")
    assert kill_at_moments(place, pools, seed, 250, draw) == ""
    assert kill_often(place, pools, seed, 3, 50, draw) == ""
    place.remove(pools)
