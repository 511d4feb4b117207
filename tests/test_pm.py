# SPDX-License-Identifier: Apache-2.0
"""Persistent memory from Python: transactions, power cuts and recovery, by the CPU and by the device."""

from __future__ import annotations

import asyncio
import random
import re
import runpy
import struct
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from nearside import Design, NearsideError, pm

PLACE, BYTES = 1 << 20, 8 << 20
BY = [pytest.param(False, id="cpu"), pytest.param(True, id="device")]


# Mechanisms, and whether the engine makes records without commands.
KINDS = [pytest.param(mechanism, False, id=mechanism) for mechanism in pm.MECHANISMS]
KINDS += [pytest.param(name, True, id=f"{name}-tracked") for name in pm.MECHANISMS if name != "redo"]


@pytest.fixture
def system():
    with pm.System() as system:
        yield system


def put(thread: pm.Thread, data: bytes) -> int:
    with thread.transaction():
        at = thread.alloc(len(data))
        thread.write(at, data)
        thread.set_root(at)
    return at


@pytest.mark.parametrize("offload", BY)
@pytest.mark.parametrize(("mechanism", "tracked"), KINDS)
def test_pm_committed_data_survive_and_nothing_else(system, mechanism, tracked, offload):
    pool = system.create(PLACE, BYTES, "notes", mechanism=mechanism, tracked=tracked, offload=offload)
    thread = pool.thread()
    at = put(thread, b"old" * 100)

    def abort() -> None:
        with thread.transaction():
            thread.write(at, b"aborted")
            thread.free(at)
            raise KeyError

    with pytest.raises(KeyError):
        abort()
    assert thread.read(at, 300) == b"old" * 100
    counts = thread.counts
    assert (counts["transactions"], counts["aborts"], counts["allocations"]) == (1, 1, 1)
    assert (counts["commands"] > 0) is offload
    assert 0 < counts["consistency_ps"] <= counts["time_ps"] <= system.now_ns * 1000

    def lose_power() -> None:
        with thread.transaction():
            thread.write(at, b"new" * 50)
            thread.alloc(64)
            system.power_cut(devices_too=False)

    with pytest.raises(NearsideError, match="power"):
        lose_power()
    assert not system.has_power
    system.power_on()
    with pytest.raises(NearsideError, match="open it again"):
        thread.read(at, 3)
    thread.close()
    pool.close()
    pool = system.open(PLACE, "notes", offload=offload)
    assert len(pool.check()["objects"]) == 1
    with pool.thread() as thread:
        assert thread.root() == at
        assert thread.read(at, 300) == b"old" * 100
        with thread.transaction():
            thread.add_range(at, 300)
            thread.write(at, b"new" * 100)
        thread.finish()
    system.power_cut()
    system.power_on()
    with system.open(PLACE, "notes", offload=offload) as pool, pool.thread() as thread:
        assert thread.read(at, 300) == b"new" * 100


@pytest.mark.parametrize("offload", BY)
@pytest.mark.parametrize(("mechanism", "tracked"), KINDS)
def test_pm_power_cut_at_any_time(system, mechanism, tracked, offload):
    """Two numbers that a transaction changes together never differ; returned transactions are there."""
    usage = {"offload": offload, "engine_recovers": offload}
    pool = system.create(0, BYTES, "pair", mechanism=mechanism, tracked=tracked, **usage)
    thread = pool.thread()
    first = put(thread, struct.pack("<Q", 0) * 2)
    done, more = 0, set()

    def count() -> None:
        nonlocal done
        while True:
            number = struct.pack("<Q", done + 1)
            with thread.transaction():
                thread.write(first, number)
                thread.write(first + 8, number)
            done += 1

    for cut in range(8):
        system.power_cut_after(700 * cut + 1)
        with pytest.raises(NearsideError) as reported:
            count()
        assert not system.has_power, reported.value
        system.power_on()
        pool = system.open(0, "pair", **usage)
        thread = pool.thread()
        a, b = struct.unpack("<2Q", thread.read(first, 16))
        assert a == b
        assert a in (done, done + 1)
        more.add(a - done)
        done = a
    assert done > 0
    assert 0 in more, "some transaction was undone"


@pytest.mark.parametrize("devices", [1, 2])
def test_pm_power_cut_during_close(devices):
    """Its media end with it, so users need no report of it."""
    for ns in (1, 100, 400, 700, 1000):
        with pm.System(devices=devices) as system:
            pools = [system.create(at << 24, BYTES, "notes", offload=True, number=at) for at in range(2)]
            threads = [pool.thread() for pool in pools]
            for thread in threads:
                put(thread, b"there")
            system.power_cut_after(ns)
        with pytest.raises(NearsideError):
            threads[0].read(0, 0)


@pytest.mark.parametrize(("devices", "host"), [(2, "optane-dimm"), (2, "cxl"), (4, "cxl"), (1, "cxl")])
@pytest.mark.parametrize("mechanism", ["undo", "checkpoint", "redo"])
def test_pm_power_cut_during_growth(mechanism, devices, host):
    """The engines release the pool before the larger one: accesses that wait for another device are
    complete by then."""
    draw = random.Random(devices)
    for _ in range(20):
        with pm.System(devices=devices, host=host) as system:
            pool = system.create(0, 8 << 20, "notes", mechanism=mechanism, threads=1, log_bytes=256 << 10, offload=True)
            with pool.thread() as thread:
                with thread.transaction():
                    place = thread.alloc(40000)
                    thread.set_root(place)
                    thread.write(place, bytes(40000))
                for n in range(draw.randrange(1, 5)):
                    with thread.transaction():
                        for _ in range(draw.randrange(1, 4)):
                            thread.write(place + 8 * draw.randrange(5000), bytes([n + 1] * 8))
                before = thread.read(place, 40000)
            system.power_cut_after(draw.randrange(1, 6000))
            with pytest.raises(NearsideError):
                pool.resize((8 << 20) + 8192)
            system.power_cut(devices_too=draw.random() < 0.5)
            system.power_on()
            pool = system.open(0, "notes", offload=True)
            with pool.thread() as thread:
                assert thread.read(place, 40000) == before


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_pm_power_cut_during_a_check_reports_no_damage(devices):
    for n in range(24):
        with pm.System(devices=devices) as system:
            pool = system.create(0, BYTES, "notes", offload=True)
            start = system.now_ns
            pool.check()
            system.power_cut_after((system.now_ns - start) * n / 24 + 0.5)
            with pytest.raises(NearsideError, match="the power was cut"):
                pool.check()


def test_pm_cached_data_have_separate_latency(system):
    """And not that of the next transaction."""
    pool = system.create(0, BYTES, "notes")
    with pool.thread() as thread:
        with thread.transaction():
            place = thread.alloc(4096)
            thread.write(place, bytes(4096))

        def change() -> float:
            start = system.now_ns
            with thread.transaction():
                thread.write(place, b"y")
            return system.now_ns - start

        change()
        alone, start = change(), system.now_ns
        for _ in range(100):
            thread.read(place, 4096)
        assert system.now_ns > start
        assert change() == pytest.approx(alone, rel=0.1)


OVER = [
    pytest.param(2, "devices", True, id="2"),
    pytest.param(2, "host", True, id="2-by-the-host"),
    pytest.param(4, "devices", True, id="4"),
    pytest.param(2, "devices", False, id="2-cpu"),
]


@pytest.mark.parametrize(("devices", "synchronise", "offload"), OVER)
@pytest.mark.parametrize("mechanism", pm.MECHANISMS)
def test_pm_power_cut_at_any_time_of_several_devices(mechanism, devices, synchronise, offload):
    """A number on each device, changed together: they never differ."""
    starts = range(0, devices * 4096, 4096)
    with pm.System(devices=devices, synchronise=synchronise) as system:
        usage = {"offload": offload, "engine_recovers": offload}
        pool = system.create(4096, BYTES, "stripes", mechanism=mechanism, **usage)
        assert pool.length == BYTES
        thread = pool.thread()
        first = put(thread, bytes(starts.stop))
        done, undone = 0, False

        def count() -> None:
            nonlocal done
            while True:
                number = struct.pack("<Q", done + 1)
                with thread.transaction():
                    for at in starts:
                        thread.write(first + at, number)
                done += 1

        for cut in range(4):
            system.power_cut_after(2900 * cut + 1)
            with pytest.raises(NearsideError) as reported:
                count()
            assert not system.has_power, reported.value
            system.power_on()
            pool = system.open(4096, "stripes", **usage)
            thread = pool.thread()
            found = {struct.unpack("<Q", thread.read(first + at, 8))[0] for at in starts}
            assert found in ({done}, {done + 1})
            undone |= found == {done}
            done = found.pop()
        assert done > 0
        assert undone, "some transaction was undone"


def test_pm_pool_is_striped_over_several_devices():
    """Each has an equal part, at the pool's offset; a transaction involves all devices whose parts it changes."""
    elapsed = {}
    for devices, synchronise in [(1, "devices"), (2, "devices"), (2, "host"), (4, "devices")]:
        with pm.System(devices=devices, synchronise=synchronise) as system:
            pool = system.create(0, devices * BYTES, "one", offload=True)
            with pytest.raises(NearsideError, match="close it first"):
                system.create(BYTES - 4096, devices * BYTES, "within")
            with system.create(2 * BYTES, devices * BYTES, "next"):
                with pytest.raises(NearsideError, match="is open"):
                    pool.resize(devices * (2 * BYTES + 4096))
                pool.resize(2 * devices * BYTES)
            thread = pool.thread()
            at = put(thread, bytes(4 * 4096))
            before = thread.counts
            with thread.transaction():
                for n in range(4):
                    thread.write(at + n * 4096, b"x" * 64)
            counts = {key: count - before[key] for key, count in thread.counts.items()}
            assert counts["commands"] - counts["records"] == devices, "a commit for each"
            elapsed[devices, synchronise] = counts["time_ps"]
    assert elapsed[2, "host"] > elapsed[2, "devices"]


def test_pm_numbers_of_devices_are_checked(tmp_path):
    for devices in (0, 3, 5, 1 << 40):
        with pytest.raises(NearsideError, match=f"devices = {devices}: allowed are 1, 2 and 4"):
            pm.System(devices=devices)
    for word in ("nobody", "", "Host"):
        with pytest.raises(NearsideError, match=f'synchronise = "{word}": allowed are devices, host'):
            pm.System(devices=2, synchronise=word)
    file = Design.load("nearpm").with_values(f'media.file = "{tmp_path / "media"}"')
    with pytest.raises(NearsideError, match="media have a file, which is for one device"):
        pm.System(file, devices=2)
    assert not (tmp_path / "media").exists()
    with pm.System(devices=2) as system:
        for fence in ("posted", "completion"):
            with pytest.raises(NearsideError, match="over 2 devices: allowed are fences that read back"):
                system.create(0, BYTES, "x", fence=fence)
        with pytest.raises(NearsideError, match="9 threads: allowed are 1 to 8"):
            system.create(0, BYTES, "x", threads=9)
        with pytest.raises(NearsideError, match="allowed are multiples of 8192"):
            system.create(0, BYTES + 4096, "x")
    with pm.System("default", devices=2) as system, pytest.raises(NearsideError, match="no engine `nearpm`"):
        system.create(0, BYTES, "x", offload=True)


@pytest.mark.parametrize("devices_too", [False, True])
def test_pm_tracked_pool_is_opened_by_the_cpu(system, devices_too):
    """The device still has it mapped, and would record the CPU's stores."""
    thread = system.create(0, BYTES, "pair", tracked=True, offload=True).thread()
    at = put(thread, b"old." * 100)

    def lose_power() -> None:
        with thread.transaction():
            thread.write(at, b"new." * 100)
            system.power_cut(devices_too=devices_too)

    with pytest.raises(NearsideError, match="power"):
        lose_power()
    system.power_on()
    for number in range(3):
        thread = system.open(0, "pair").thread()
        assert thread.read(at, 400) == (b"old." if number == 0 else b"%3d." % number) * 100
        with thread.transaction():
            thread.write(at, b"%3d." % (number + 1) * 100)
        with pytest.raises(NearsideError, match="power"):
            lose_power()
        system.power_on()


def test_pm_tracked_pools_have_their_limits(system):
    with pytest.raises(NearsideError, match="tracked pool for 2 threads: allowed is 1"):
        system.create(0, BYTES, "x", tracked=True, threads=2, offload=True)
    with pytest.raises(NearsideError, match='tracked pool with mechanism "redo": allowed are'):
        system.create(0, BYTES, "x", tracked=True, mechanism="redo")
    with pm.System(devices=2) as two, pytest.raises(NearsideError, match="over 2 devices: allowed is 1"):
        two.create(0, BYTES, "x", tracked=True, offload=True)
    pool = system.create(0, BYTES, "x", tracked=True, log_bytes=4096, offload=True)
    with pool.thread() as thread:
        with thread.transaction():
            at = thread.alloc(4096)
        for part in range(0, 4096, 1024):
            with thread.transaction():
                thread.write(at + part, b"old." * 256)
        commands = thread.counts["commands"]

        def change(lines: int) -> None:
            with thread.transaction():
                for line in range(lines):
                    thread.write(at + 64 * line, b"new.")

        with pytest.raises(NearsideError, match="transaction has 32 lines: allowed are 31 in this tracked pool"):
            change(32)
        assert thread.read(at, 4096) == b"old." * 1024
        change(31)
        assert thread.counts["commands"] == commands + 2


@pytest.mark.parametrize("offload", BY)
def test_pm_nested_transactions_are_one(system, offload):
    thread = system.create(0, BYTES, "nest", offload=offload).thread()
    at = put(thread, b"one.two.")
    with thread.transaction():
        thread.write(at, b"ONE.")
        with thread.transaction():
            thread.write(at + 4, b"TWO.")
    assert thread.read(at, 8) == b"ONE.TWO."

    def inner() -> None:
        with thread.transaction():
            thread.write(at + 4, b"xxx.")
            raise ZeroDivisionError

    def outer() -> None:
        with thread.transaction():
            thread.write(at, b"xxx.")
            with pytest.raises(ZeroDivisionError):
                inner()
            thread.write(at + 4, b"yyy.")

    with pytest.raises(NearsideError, match="nested"):
        outer()
    assert thread.read(at, 8) == b"ONE.TWO."
    put(thread, b"goes on")


@pytest.mark.parametrize("offload", BY)
def test_pm_pool_grows_up_to_the_next_one(system, offload):
    pool = system.create(0, BYTES, "small", offload=offload)
    with system.create(4 * BYTES, BYTES, "next"):
        with pool.thread() as thread:
            at = put(thread, b"kept")
            with pytest.raises(NearsideError, match="threads use it"):
                pool.resize(2 * BYTES)
        for length in (BYTES - 4096, BYTES + 1, 4 * BYTES + 4096, 0):
            with pytest.raises(NearsideError):
                pool.resize(length)
        pool.resize(4 * BYTES)
        assert (pool.length, pool.check()["generation"]) == (4 * BYTES, 2)
    with pytest.raises(NearsideError, match="close it first"):
        system.create(2 * BYTES, BYTES, "within")
    with pool.thread() as thread, thread.transaction():
        assert [thread.alloc(3 << 20) for _ in range(5)]
    pool.close()
    with system.open(0, "small", offload=offload) as pool, pool.thread() as thread:
        assert thread.read(at, 4) == b"kept"
        assert len(pool.check()["objects"]) == 6


def test_pm_fence_and_host_are_selectable():
    elapsed = {}
    for host, fence in [("nearpm", "read_back"), ("nearpm", "posted"), ("nearpm", "completion"), ("cxl", "read_back")]:
        with pm.System(host=host) as system, system.create(0, BYTES, "x", fence=fence) as pool, pool.thread() as thread:
            at = put(thread, bytes(64))
            before = thread.counts["time_ps"]
            with thread.transaction():
                thread.write(at, b"x" * 64)
            elapsed[host, fence] = thread.counts["time_ps"] - before
    assert elapsed["nearpm", "posted"] < elapsed["nearpm", "read_back"]
    assert elapsed["cxl", "read_back"] < elapsed["nearpm", "read_back"]
    with pm.System() as system:
        with pytest.raises(NearsideError, match="allowed are read_back, posted, completion"):
            system.create(0, BYTES, "x", fence="none")
        with pytest.raises(NearsideError, match="allowed are undo, redo, checkpoint, shadow"):
            system.create(0, BYTES, "x", mechanism="none")
    for name in ("nonesuch", '"', "\udc80"):
        with pytest.raises(NearsideError):
            pm.System(host=name)
    with pm.System("default") as system, pytest.raises(NearsideError, match="no engine `nearpm`"):
        system.create(0, BYTES, "x", offload=True)


def test_pm_pool_that_was_discarded_is_opened_again(system):
    """Python's objects end at any time: nothing of them stays in use."""
    for offload in (True, False, True):
        put(system.create(0, BYTES, "gone", offload=offload).thread(), b"kept")
        thread = system.open(0, "gone", offload=offload).thread()
        at = thread.root()
        transaction = thread.transaction()
        transaction.__enter__()
        thread.write(at, b"lost")
        del thread, transaction
        thread = system.open(0, "gone", offload=offload).thread()
        assert thread.read(at, 4) == b"kept"
        del thread


def test_pm_threads_are_serialised(system):
    pool = system.create(0, BYTES, "many", offload=True)
    wrong = []

    def work(cpu: int) -> None:
        try:
            with pool.thread(cpu) as thread:
                for n in range(20):
                    with thread.transaction():
                        at = thread.alloc(64)
                        thread.write(at, bytes([cpu, n]))
                    if thread.read(at, 2) != bytes([cpu, n]):
                        wrong.append((cpu, n))
        except BaseException as error:
            wrong.append(error)

    workers = [threading.Thread(target=work, args=(cpu,)) for cpu in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
    assert len(pool.check()["objects"]) == 80


def test_pm_bytes_outside_of_pools(system):
    data = bytes(range(256)) * 5000
    system.store(4096 + 3, data)
    assert system.load(4096 + 3, len(data)) == data
    assert system.load(0, 0) == b""
    for offset, length in [(system.window_bytes, 1), (-1, 1), (0, -1), (1 << 70, 4)]:
        with pytest.raises(NearsideError, match="allowed are"):
            system.load(offset, length)


def test_pm_store_that_does_not_fit_stores_nothing(system):
    at = system.window_bytes - (2 << 20)
    old = system.load(at, 64)
    with pytest.raises(NearsideError, match="within the window"):
        system.store(at, b"x" * ((2 << 20) + 1))
    assert system.load(at, 64) == old
    system.store(at, b"x" * (2 << 20))
    assert system.load(at, 2 << 20) == b"x" * (2 << 20)


@pytest.mark.parametrize("mechanism", pm.MECHANISMS)
def test_pm_pool_in_the_reserved_range_is_refused(system, mechanism):
    """The engine has the last 128 KiB of the media; all bytes before them can be used."""
    with pytest.raises(NearsideError, match="the engine reserves the 131072 after them"):
        system.create(system.window_bytes - BYTES + 4096, BYTES, "end", mechanism=mechanism)
    pool = system.create(system.window_bytes - BYTES, BYTES, "end", mechanism=mechanism, threads=1)
    with pool.thread() as thread:
        objects = []

        def fill() -> None:
            while True:
                objects.append(thread.alloc(65536))

        with thread.transaction():
            with pytest.raises(NearsideError, match="no room"):
                fill()
            last = objects[-1]
            thread.write(last + 65536 - 64, b"x" * 64)
        assert thread.read(last + 65536 - 64, 64) == b"x" * 64
    assert len(pool.check()["objects"]) == len(objects)


WRONG = {
    "read-offset": lambda system, thread: thread.read(-1, 4),
    "read-length": lambda system, thread: thread.read(0, -1),
    "read-long": lambda system, thread: thread.read(0, 10**5000),
    "write": lambda system, thread: thread.write(-1, b"x"),
    "alloc": lambda system, thread: thread.alloc(1 << 64),
    "free": lambda system, thread: thread.free(-64),
    "add_range": lambda system, thread: thread.add_range(0, -1),
    "set_root": lambda system, thread: thread.set_root(-1),
    "load": lambda system, thread: system.load(-1, 4),
    "store": lambda system, thread: system.store(1 << 70, b"x"),
    "create-place": lambda system, thread: system.create(-4096, BYTES, "x"),
    "create-threads": lambda system, thread: system.create(16 << 20, BYTES, "x", threads=300),
    "create-number": lambda system, thread: system.create(16 << 20, BYTES, "x", number=-1),
    "create-log": lambda system, thread: system.create(16 << 20, BYTES, "x", log_bytes=-1),
    "create-spare": lambda system, thread: system.create(16 << 20, BYTES, "x", spare_pages=-1),
    "open": lambda system, thread: system.open(-1, "x"),
    "resize": lambda system, thread: thread.pool.resize(-1),
    "cpu": lambda system, thread: thread.pool.thread(-1),
    "devices": lambda system, thread: pm.System(devices=-1),
    "power_cut_after": lambda system, thread: system.power_cut_after(10**5000),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_pm_invalid_numbers_are_one_line(system, call):
    thread = system.create(PLACE, BYTES, "n").thread()
    with pytest.raises(NearsideError, match="allowed are") as reported:
        call(system, thread)
    assert len(str(reported.value).splitlines()) == 1
    put(thread, b"goes on")


def test_pm_transaction_belongs_to_one_python_thread(system):
    """Another one is refused, not taken for a nested one: its `with` would end without a commit."""
    thread = system.create(PLACE, BYTES, "n").thread()
    at = put(thread, b"0" * 8)
    inside, done = threading.Event(), threading.Event()
    reported: list[object] = []

    def aborts() -> None:
        with thread.transaction(), thread.transaction():
            inside.set()
            done.wait(10)
            raise KeyError

    def first() -> None:
        with pytest.raises(KeyError):
            aborts()

    def second() -> None:
        inside.wait(10)
        try:
            with thread.transaction():
                thread.write(at, b"1" * 8)
        except NearsideError as error:
            reported.append(error)
        done.set()

    both = [threading.Thread(target=work) for work in (first, second)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert len(reported) == 1
    assert "pool.thread()" in str(reported[0])
    assert thread.read(at, 8) == b"0" * 8
    put(thread, b"goes on")


def test_pm_transaction_belongs_to_one_task(system):
    pool = system.create(PLACE, BYTES, "n")
    thread = pool.thread()
    at = put(thread, b"0" * 8)

    async def change(thread: pm.Thread, byte: bytes) -> None:
        with thread.transaction():
            thread.write(at, byte * 8)
            await asyncio.sleep(0)
            with thread.transaction():
                thread.write(at, byte * 4)

    async def both(second: pm.Thread) -> list[object]:
        return await asyncio.gather(change(thread, b"1"), change(second, b"2"), return_exceptions=True)

    first, second = asyncio.run(both(thread))
    assert first is None
    assert isinstance(second, NearsideError)
    assert thread.read(at, 8) == b"1" * 8
    with pool.thread() as own:
        assert asyncio.run(both(own)) == [None, None]


def test_pm_closed_system_keeps_nothing(system):
    pool = system.create(0, BYTES, "x", offload=True)
    thread = pool.thread()
    transaction = thread.transaction()
    transaction.__enter__()
    for _ in range(2):
        system.close()
    for call in (lambda: system.load(0, 1), pool.check, thread.root):
        with pytest.raises(NearsideError, match="is closed"):
            call()


def test_pm_documentation_examples_work(capsys):
    docs = Path(__file__).parent.parent / "docs/persistence.md"
    blocks = re.findall(r"```python\n(from nearside import pm\n.*?)```", docs.read_text(), re.DOTALL)
    assert len(blocks) == 1
    indented = re.search(r"^    from nearside.*?(?=^\S)", pm.__doc__, re.DOTALL | re.MULTILINE)
    for text in (blocks[0], textwrap.dedent(indented[0])):
        exec(compile(text, "example", "exec"), {})
    assert "'commands': " in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["offload"]])
def test_pm_guide_program_prints_what_the_guide_shows(capsys, monkeypatch, arguments):
    """crates/pm-c/tests/c.rs runs the same one in C and in Rust."""
    root = Path(__file__).parent.parent
    program = root / "examples/transfer.py"
    monkeypatch.setattr(sys, "argv", [str(program), *arguments])
    runpy.run_path(str(program), run_name="__main__")
    out, guide = capsys.readouterr().out, (root / "docs/crash-consistency.md").read_text()
    assert f"```\n{out}```" in guide
    done = 1000 - int(re.search(r"20 losses: +(\d+)", out)[1])
    assert (f"{done} transfers instead of" if arguments else f"transfers instead of {done}:") in guide
    # Neither program logs or persists more, or more often, than necessary.
    assert "thread.add_range(" in program.read_text()


@pytest.mark.parametrize("offload", BY)
@pytest.mark.parametrize("mechanism", pm.MECHANISMS)
def test_pm_later_transactions_call_back_when_durable(system, mechanism, offload):
    pool = system.create(PLACE, BYTES, "later", mechanism=mechanism, offload=offload, group_commit=4)
    thread = pool.thread()
    at = put(thread, bytes(8))
    first = thread.durable
    answered: list[int] = []

    def count_up(value: int) -> int:
        with thread.transaction(later=True):
            thread.write(at, value.to_bytes(8, "little"))
        return thread.ticket

    for value in range(1, 7):
        ticket = count_up(value)
        thread.when_durable(ticket, lambda ticket: answered.append(ticket - first))
    assert (thread.ticket - first, thread.durable - first, answered) == (6, 4, [1, 2, 3, 4])
    assert thread.read(at, 8) == (6).to_bytes(8, "little")
    with pytest.raises(NearsideError, match="sync"):
        pool.check()
    before = system.now_ns
    thread.wait(ticket)
    assert system.now_ns > before
    assert answered == [1, 2, 3, 4, 5, 6]
    thread.when_durable(ticket, answered.append)
    assert answered[-1] == ticket
    for refused in (thread.wait, lambda ticket: thread.when_durable(ticket, print)):
        with pytest.raises(NearsideError, match=f"ticket {ticket + 1}: allowed are tickets .* up to {ticket}"):
            refused(ticket + 1)
    with pytest.raises(NearsideError, match="group_commit = 0: allowed are 1 to"):
        system.open(PLACE, "later", offload=offload, group_commit=0)
    count_up(7)
    thread.sync()
    lost = count_up(8)
    thread.when_durable(lost, answered.append)
    system.power_cut()
    system.power_on()
    thread.close()
    with system.open(PLACE, "later", offload=offload) as pool, pool.thread() as thread:
        assert int.from_bytes(thread.read(at, 8), "little") in (7, 8)
    assert lost not in answered


def test_pm_words_of_the_engine_show_what_is_durable():
    with pm.System() as system:
        with pytest.raises(NearsideError, match="words: allowed is an offloaded pool on one device"):
            system.create(PLACE, BYTES, "words", words=True)
        with (
            system.create(PLACE, BYTES, "words", offload=True, tracked=True, words=True) as pool,
            pool.thread() as thread,
        ):
            at = put(thread, bytes(8))
            first, called = thread.durable, []
            with thread.transaction(later=True):
                thread.write(at, (1).to_bytes(8, "little"))
            ticket = thread.ticket
            thread.when_durable(ticket, called.append)
            assert (ticket - first, called) == (1, []), "a round trip has not been waited for"
            loads = 0
            while thread.durable < ticket:
                loads += 1
                assert loads < 10_000
            assert loads > 0
            assert called == [ticket]
            system.power_cut()
        system.power_on()
        with system.open(PLACE, "words", offload=True) as pool, pool.thread() as thread:
            assert int.from_bytes(thread.read(at, 8), "little") == 1
    match = "words: allowed is an offloaded pool on one device"
    with pm.System(devices=2) as system, pytest.raises(NearsideError, match=match):
        system.create(PLACE, BYTES, "words", offload=True, words=True)


@pytest.mark.parametrize("offload", BY)
@pytest.mark.parametrize(("mechanism", "tracked"), KINDS)
def test_pm_thread_from_before_a_power_cut_changes_nothing_when_it_is_closed(system, mechanism, tracked, offload):
    old = system.create(PLACE, BYTES, "stale", mechanism=mechanism, tracked=tracked, offload=offload).thread()
    at = put(old, b"1" * 320)
    for text in (b"2" * 320, b"3" * 320):
        with old.transaction(later=True):
            old.write(at, text)
    system.power_cut()
    system.power_on()
    with system.open(PLACE, "stale", offload=offload) as pool, pool.thread() as thread:
        old.close()  # its transactions have ended with the power
        left = thread.read(at, 320)
    with system.open(PLACE, "stale", offload=offload) as pool, pool.thread() as thread:
        assert thread.read(at, 320) == left
    with system.open(PLACE, "stale", offload=offload) as pool:
        pool.check()


@pytest.mark.parametrize("offload", BY)
@pytest.mark.parametrize(("mechanism", "tracked"), KINDS)
def test_pm_closing_a_thread_from_before_a_power_cut_keeps_the_log_of_the_next(system, mechanism, tracked, offload):
    old = system.create(PLACE, BYTES, "stale", mechanism=mechanism, tracked=tracked, offload=offload).thread()
    at = put(old, b"1" * 4096)
    with old.transaction(later=True):
        old.write(at, b"2" * 4096)
    system.power_cut()
    system.power_on()
    thread = system.open(PLACE, "stale", offload=offload).thread()
    left = thread.read(at, 4096)

    def interrupted() -> None:
        with thread.transaction():
            for start in range(0, 4096, 64):
                thread.write(at + start, b"3" * 64)
            old.close()  # its transactions have ended with the power before
            system.power_cut(devices_too=False)

    with pytest.raises(NearsideError):
        interrupted()
    system.power_on()
    with system.open(PLACE, "stale", offload=offload) as pool, pool.thread() as thread:
        assert thread.read(at, 4096) == left


@pytest.mark.parametrize("offload", BY)
def test_pm_callbacks_are_called_when_a_thread_is_closed(system, offload):
    called = []
    with system.create(PLACE, BYTES, "closed", offload=offload) as pool, pool.thread() as thread:
        at = put(thread, b"1")
        with thread.transaction(later=True):
            thread.write(at, b"2")
        ticket = thread.ticket
        thread.when_durable(ticket, called.append)
        assert not called
        thread.close()
        assert called == [ticket], "closing waits for the transaction, so it is durable"
