# SPDX-License-Identifier: Apache-2.0
"""Hostile arguments: each parameter of each function that Python sees, and each option of the
command line.

Whatever is passed, the answer is a result or a one-line error; never an abort, a panic, a traceback
or a hang.
"""

from __future__ import annotations

import functools
import inspect
import json
import math
import signal
import struct
import sys
import threading
import time
import tomllib
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from nearside import Design, Device, NearsideError, _native, cli, fuzzing, sort_table

GOOD = Design.load("fuzz")
ANSWERS = (NearsideError, ValueError, TypeError, OverflowError)
NUMBERS = [-1, 0, 1, 3, 513, 1 << 20, (1 << 31) - 1, 1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 512]
NUMBERS += [(1 << 64) - 1, 1 << 64, 1 << 70, -(1 << 63), 1.5, math.nan, math.inf, -math.inf]
OTHERS = [None, "", "x", "\0", "\udc80", b"", b"x", [], {}, (), object(), True, [(1 << 64) - 1], [(1, 2, 3)]]
OTHERS += [[(0, (1 << 64) - 512)], [((1 << 64) - 512, 512)], [(512, -1)], ("x", 5, 5), ("x", 0, 1 << 62), (1, 2)]
OTHERS += [
    (0, 1, 1),
    (1, 257, 1),
    (1, 1, 65_536),
    (0, "dram"),
    (1 << 64, "dram"),
    ((1 << 64) - 1, "x = "),
    Path("/no/x"),
]
# Results are bounded: endless calls are stopped here.
MOST_CALLS = 3


class Stopped(Exception):
    """Raised by a progress callback."""


def stopper():
    """A progress callback that raises after a few calls."""
    calls = []

    def progress(done, total):
        calls.append(done)
        if len(calls) > MOST_CALLS:
            raise Stopped

    return progress


def answer(call, **arguments):
    """Calls a function; an error must be an expected one, in one line."""
    outcome = None
    try:
        outcome = call(**arguments)
    except Stopped:
        pass
    except ANSWERS as error:
        outcome = error
    if isinstance(outcome, ANSWERS):
        assert len(str(outcome).splitlines()) == 1, repr(outcome)
    return outcome


@pytest.fixture(scope="module")
def device():
    with Device(GOOD, timeout_us=2000, peers=[(GOOD, None)]) as device:
        yield device


@pytest.fixture
def native(device):
    """The native device; afterwards it must still work."""
    device.native.reset()
    yield device.native
    device.native.trace_stop()
    device.native.reset()
    data = bytes(range(256)) * 2
    device.write(data, offset=1024)
    assert device.read(512, offset=1024)[0] == data


# The arguments of each function besides the hostile ones.
METHODS = {
    "set_priority": {"queue": 0, "priority": "medium"},
    "info": {},
    "write": {"data": bytes(512), "offset": 0, "queues": 1, "depth": 1, "chunk": 512, "progress": None},
    "read": {"length": 512, "offset": 0, "queues": 1, "depth": 1, "chunk": 512, "progress": None},
    "workload": {
        "read_percent": 50, "pattern": "random", "min_bytes": 512, "max_bytes": 1024, "queues": 1, "depth": 1,
        "commands": 10, "start": 0, "span": 1 << 16, "scattered": False, "list_offset": 0, "verify": False, "seed": 1,
        "switch": None, "loads_every": 0, "peer": None, "progress": None,
    },
    "delay_get": {},
    "delay_set": {"profile": "dram", "channel": 0, "memory": "storage"},
    "delay_set_latency": {"read_ns": 300.0, "write_ns": 100.0, "channel": 0, "memory": "storage"},
    "delay_counters": {"clear": False},
    "pm_read": {"offset": 0, "length": 64},
    "pm_write": {"offset": 0, "data": b"x"},
    "peer_read": {"peer": 0, "offset": 0, "length": 64},
    "peer_write": {"peer": 0, "offset": 0, "data": b"x"},
    "peer_delay_set": {"peer": 0, "profile": "dram"},
    "peer_engines": {"peer": 0},
    "peer_engine_start": {"peer": 0, "name": "copy0", "arguments": [0, 4096, 64]},
    "peer_engine_wait": {"peer": 0, "name": "copy0", "timeout_us": 10},
    "peer_qos_set": {"peer": 0, "master": "nvme", "reads": 0, "writes": 0, "weight": 128, "beside": 0},
    "pm_stream": {
        "kind": "load", "bytes": 64, "in_flight": 4, "count": 10, "start": 0, "span": 1 << 12, "pattern": "random",
        "seed": 1, "verify": False, "pause_ns": 100, "progress": None,
    },
    "replay": {"commands": [(0, "read", 0, 8), (1000, "write", 8, 8)], "progress": None},
    "select_namespace": {"nsid": 1},
    "format": {"nsid": 1, "erase": "none"},
    "write_zeroes": {"length": 512, "offset": 0},
    "verify": {"length": 512, "offset": 0},
    "compare": {"data": bytes(512), "offset": 0},
    "compare_and_write": {"expected": bytes(512), "data": bytes(512), "offset": 0},
    "deallocate": {"ranges": [(0, 512)]},
    "trace_start": {"path": "t.jsonl"},
    "trace_stop": {},
    "single": {"write": False, "bytes": 512, "commands": 1, "seed": 1},
    "engine_outputs": {"name": "copy0"},
    "engine_start": {"name": "copy0", "arguments": [0, 4096, 64]},
    "engine_stop": {"name": "copy0"},
    "engine_submit": {"name": "copy0", "arguments": [0, 4096, 64]},
    "engine_finish": {"name": "copy0", "line": 0, "number": 1, "timeout_us": 10},
    "io_command": {"opcode": 0xC0, "nsid": 1, "dwords": [(13, 0)]},
    "qos_get": {},
    "qos_set": {"master": "nvme", "reads": 0, "writes": 0, "weight": 128, "beside": 0},
    "engine_wait": {"name": "copy0", "timeout_us": 10},
    "flush": {},
    "rest": {"ns": 1000},
    "counters": {},
    "reset": {},
    "shutdown": {},
    "close": {},
}  # fmt: skip
FUZZ = {
    "amount": 20, "seed": 1, "calm": False, "torn_blocks": False, "first_episode": 0, "replay": None, "shrinks": 2,
    "per_episode": 20, "model": None, "progress": None,
}  # fmt: skip
CRASH = {
    "workload": "btree", "mechanism": "undo", "by": "device", "cuts": "sampled:2", "transactions": 2, "seed": 1,
    "without": None, "jobs": 1, "model": "fast", "progress": None, "devices": 1, "synchronise": "devices",
    "tracked": False, "later": None, "words": False,
}  # fmt: skip
CREATE = {
    "progress": None, "timeout_us": 2000, "queue_entries": 64, "trace": None, "skip_idle": True, "commands": None,
    "weights": None, "model": None, "peers": [],
}  # fmt: skip
SORT = {
    "data": b"", "by": "a", "name": "x", "source": "parquet", "target": "parquet", "compression": "snappy",
    "devices": 1, "model": None, "build": None, "progress": None, "trace": True,
    "output": None,
}  # fmt: skip
MERGE = {"tables": [], "by": "a"}
EXPLAIN = {"data": b"", "by": "a", "name": "x", "source": "parquet", "devices": 1}
MEDIA = {"media": [], "model": "fast", "build": None}
PUT = MEDIA | {"data": b"", "table": "t", "keys": "a", "name": "x", "source": "parquet", "progress": None}
GET = MEDIA | {
    "table": "t", "by": "a", "target": "parquet", "compression": "snappy", "progress": None, "trace": True,
    "output": None,
}  # fmt: skip
# Values that make a design small.
SMALL = '[media]\nbytes = "64 MiB"\n[nvme]\nnamespaces = ["1 MiB"]'
PM = {"model": "fast", "build": None, "progress": None}
COPIES = PM | {"way": "streamed", "bytes": 64, "count": 1, "seed": 1}
TRANSACTIONS = PM | {
    "mechanism": "undo", "offloaded": True, "fence": "read_back", "inserts": 2, "work_ns": 0.0,
    "threads": 1, "seed": 1, "devices": 1, "synchronise": "devices", "tracked": False, "group": None,
}  # fmt: skip
BENCHMARK = {
    "workload": "btree", "mechanism": "undo", "offloaded": True, "fence": "read_back", "transactions": 2,
    "work_ns": 0.0, "seed": 1, "build": None, "progress": None, "devices": 1, "synchronise": "devices",
    "tracked": False, "group": None,
}  # fmt: skip
TIMELINE = {
    "mechanism": "undo", "offloaded": True, "objects": 1, "bytes": 64, "transactions": 1, "devices": 1,
    "synchronise": "devices", "tracked": False, "build": None,
}  # fmt: skip
MEASURED = {"pm_copies": COPIES, "pm_transactions": TRANSACTIONS, "pm_benchmark": BENCHMARK}
FRONT = {
    "protocol": "redis", "model": "fast", "mechanism": "undo", "by": "cpu", "bytes": 8 << 20, "host": "127.0.0.1",
    "port": 0, "socket": None, "password": None, "protected": True, "cut_after": None, "cut_at_ps": None,
}  # fmt: skip
OVER = {"model": "fast", "devices": 1, "synchronise": "devices"}
USAGE = {
    "offload": False,
    "fence": "read_back",
    "number": 0,
    "engine_recovers": False,
    "group_commit": None,
    "words": False,
}
SYSTEM = {
    "now_ps": {}, "window_bytes": {}, "has_power": {}, "load": {"offset": 0, "length": 64},
    "store": {"offset": 0, "data": b"x"}, "power_cut": {"cut": "all"}, "power_cut_after": {"ps": 1}, "power_on": {},
    "forget": {},
    # A range that hostile offsets don't reach.
    "pool_create": USAGE | {
        "place": 16 << 20, "bytes": 8 << 20, "name": "x", "mechanism": "undo", "threads": 1, "log_bytes": 4096,
        "spare_pages": 1, "tracked": False,
    },
    "pool_open": USAGE | {"place": 128 << 20, "name": "hostile"},
    "close": {},
}  # fmt: skip
POOL = {"bytes": {}, "check": {}, "resize": {"bytes": 16 << 20}, "thread": {"cpu": 0}, "close": {}}
THREAD = {
    "begin": {}, "commit": {}, "commit_later": {}, "tickets": {}, "wait": {"ticket": 0}, "sync": {}, "abort": {},
    "fail": {}, "is_active": {}, "add_range": {"offset": 0, "length": 64},
    "write": {"offset": 0, "data": b"x"}, "read": {"offset": 0, "length": 64}, "alloc": {"bytes": 64},
    "free": {"offset": 0}, "root": {}, "set_root": {"offset": 0}, "finish": {}, "counts": {}, "close": {},
}  # fmt: skip
COST = {"trace": b"", "fence": "read_back", "model": "fast", "build": None, "way": "waiting"}
MEASURE = {"kind": "read", "base_ns": 100.0, "beat_ns": 0.0, "beats": 1, "samples": 2, "seed": 1}


def parameters(function) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self", "design"}


def test_hostile_tables_have_every_method_and_parameter():
    methods = {n for n, f in vars(_native.Device).items() if callable(f) and not n.startswith("__")}
    assert methods == set(METHODS)
    for name, arguments in METHODS.items():
        assert parameters(getattr(_native.Device, name)) == set(arguments), name
    assert parameters(_native.Device) == set(CREATE)
    assert parameters(_native.fuzz) == set(FUZZ)
    assert parameters(_native.crash_test) == set(CRASH)
    assert parameters(_native.sort_table) == set(SORT)
    assert parameters(_native.merge_tables) == set(MERGE)
    assert parameters(_native.explain_sort) == set(EXPLAIN)
    assert parameters(_native.table_put) == set(PUT)
    assert parameters(_native.table_get) == set(GET)
    assert parameters(_native.table_list) == set(MEDIA)
    assert parameters(_native.table_schema) == {*MEDIA, "table"}
    assert parameters(_native.table_drop) == {*MEDIA, "table"}
    assert parameters(_native.table_explain) == {*MEDIA, "table", "by"}
    assert parameters(_native.pm_copies) == set(COPIES)
    assert parameters(_native.pm_transactions) == set(TRANSACTIONS)
    assert parameters(_native.pm_benchmark) == set(BENCHMARK)
    assert parameters(_native.pm_timeline) == set(TIMELINE)
    assert set(inspect.signature(_native.Front).parameters) == {"design", *FRONT}
    assert {n for n, f in vars(_native.Front).items() if callable(f) and not n.startswith("__")} == {"stop"}
    assert parameters(_native.pmdk_cost) == set(COST)
    assert parameters(_native.pmdk_events) == {"trace"}
    assert parameters(_native.pmdk_instructions) == {"file"}
    assert parameters(_native.DelayBench.measure) == set(MEASURE)
    assert parameters(_native.PmSystem) == set(OVER)
    for kind, table in ((_native.PmSystem, SYSTEM), (_native.PmPool, POOL), (_native.PmThread, THREAD)):
        assert {n for n, f in vars(kind).items() if callable(f) and not n.startswith("__")} == set(table)
        for name, arguments in table.items():
            assert parameters(getattr(kind, name)) == set(arguments), name
    known = {"ArrowTable", "Design", "Device", "DramChannel", "DelayBench", "Server", "NearsideError", "root"}
    known |= {"compile", "profile", "guest_cpu"}
    known |= {"check_timeout", "diff", "model", "fuzz", "merge_tables", "sort_table", "explain_sort"}
    known |= {"crash_test", "crash_names", "pmdk_shim", "pmdk_cost", "pmdk_events", "pmdk_instructions"}
    known |= {"PmSystem", "PmPool", "PmThread"}
    known |= {"pm_copies", "pm_transactions", "pm_benchmark", "pm_timeline", "Front"}
    known |= {"table_put", "table_get", "table_list", "table_schema", "table_drop", "table_explain"}
    assert {n for n in dir(_native) if not n.startswith("_") and callable(getattr(_native, n))} == known


CASES = [(name, key) for name, arguments in METHODS.items() for key in arguments]


@pytest.mark.parametrize(("name", "key"), CASES, ids=[".".join(case) for case in CASES])
def test_hostile_device_arguments(native, name, key, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good = METHODS[name] | ({"progress": stopper()} if "progress" in METHODS[name] else {})
    for value in NUMBERS + OTHERS:
        answer(getattr(native, name), **good | {key: value})
        if name == "trace_start":
            native.trace_stop()


PATTERN = bytes(range(256)) * 2


@pytest.mark.slow
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize(
    "call",
    [
        lambda d, p: d.read(1 << 20, progress=p),
        lambda d, p: d.write(bytes(1 << 19), offset=1 << 19, progress=p),
        lambda d, p: d.workload(
            commands=20_000, min_bytes=512, queues=4, read_percent=50, start=1 << 19, verify=True, progress=p
        ),
    ],
    ids=["read", "write", "workload"],
)
def test_hostile_stopped_call_leaves_nothing_in_flight(device, call, error):
    """Without a reset: later calls get the right completions and data."""

    def progress(_done, _total):
        raise error("enough")

    device.native.reset()
    device.write(PATTERN)
    for _ in range(3):
        with pytest.raises(error):
            call(device, progress)
        for _ in range(3):
            assert device.read(512)[0] == PATTERN
            device.flush()
            device.write(PATTERN, queues=2)
        assert device.compare(PATTERN)


# The fast model completes these before a signal can arrive.
LONG = functools.partial(pytest.param, marks=pytest.mark.rtl)


@pytest.mark.parametrize(
    "call",
    [
        LONG(lambda d: d.native.pm_read(0, 1 << 20), id="pm_read"),
        pytest.param(lambda d: d.verify(d.namespace_bytes), id="verify"),
        pytest.param(lambda d: d.compare(bytes(d.namespace_bytes)), id="compare"),
        pytest.param(lambda d: d.single(commands=300), id="single"),
        LONG(lambda d: d.rest(10**6), id="rest"),
        LONG(lambda d: d.native.pm_write(1 << 20, bytes(1 << 20)), id="pm_write"),
        pytest.param(
            lambda d: d.deallocate(*[(len(PATTERN), d.namespace_bytes - len(PATTERN))] * 2048), id="deallocate"
        ),
    ],
)
def test_hostile_signals_are_handled_before_the_end(call, request):
    """A handler that raises ends the call early in simulated time, and the device still works."""

    def handler(*_):
        raise Stopped

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with Device(GOOD, skip_idle=request.node.callspec.id != "rest") as device:
            device.write(PATTERN)
            start, begun = device.now_ns, time.monotonic()
            call(device)
            whole, elapsed = device.now_ns - start, time.monotonic() - begun
            parts = []
            # The signal may by chance arrive too late or too early, but not every time.
            while len(parts) < 10 and not any(0 < part < whole for part in parts):
                start = device.now_ns
                with suppress(Stopped):
                    signal.setitimer(signal.ITIMER_REAL, elapsed / 4)
                    call(device)
                    signal.pause()
                parts.append(device.now_ns - start)
            assert any(0 < part < whole for part in parts), (whole, parts)
            assert device.read(512)[0] == PATTERN
    finally:
        signal.signal(signal.SIGALRM, before)


def test_hostile_device_in_use_is_reported(device):
    """From its progress callback, and from another thread: an error, and the call in progress continues."""
    native = device.native
    native.reset()
    reported = []

    def progress(_done, _total):
        for name, arguments in METHODS.items():
            with pytest.raises(NearsideError, match="the device is in use by another call"):
                getattr(native, name)(**arguments)
        with pytest.raises(NearsideError, match="in use"):
            print(device.now_ns)
        thread = threading.Thread(target=lambda: reported.append(answer(native.flush)))
        thread.start()
        thread.join()

    assert native.workload(commands=200, min_bytes=512, queues=1, depth=1, progress=progress)
    assert reported
    assert all("in use" in str(error) for error in reported)
    device.flush()


def test_hostile_argument_pairs(native):
    """Sums and products of values that are allowed separately."""
    huge = [1 << 21, 1 << 32, 1 << 62, 1 << 63, (1 << 64) - 512]
    for a in huge:
        for b in huge:
            for name, keys in (
                ("read", ("length", "offset")), ("read", ("queues", "depth")), ("write", ("queues", "depth")),
                ("pm_read", ("offset", "length")), ("write_zeroes", ("length", "offset")),
                ("verify", ("length", "offset")), ("workload", ("start", "span")), ("workload", ("queues", "depth")),
                ("workload", ("min_bytes", "max_bytes")), ("pm_stream", ("start", "span")),
                ("pm_stream", ("bytes", "in_flight")),
            ):  # fmt: skip
                good = METHODS[name] | ({"progress": stopper()} if "progress" in METHODS[name] else {})
                outcome = answer(getattr(native, name), **good | dict(zip(keys, (a, b), strict=True)))
                assert isinstance(outcome, ANSWERS), (name, keys, a, b)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.pm_read(0, 1 << 62), f"{1 << 62} bytes from 0 on reach beyond the PM window"),
        (lambda d: d.pm_write((1 << 64) - 1, b"xy"), "reach beyond the PM window"),
        (lambda d: d.rest(1 << 62), f"ns = {1 << 62} ns: allowed are 0 to"),
        (lambda d: d.rest((1 << 63) // 1000 - 1), "simulated time is"),
        (lambda d: d.read(0), "0 bytes: at least 1 is needed"),
        (lambda d: d.write(b""), "0 bytes: at least 1 is needed"),
        (lambda d: d.workload(commands=0, queues=1), "commands = 0: at least 1 is needed"),
        (
            lambda d: d.workload(queues=1, min_bytes=1024, max_bytes=512),
            "min_bytes = 1024, max_bytes = 512: allowed are pairs with min_bytes <= max_bytes",
        ),
        (lambda d: d.design.with_values("[unknown]\nx = 1"), "override: unknown key `unknown`; allowed: "),
        (lambda d: d.design.with_values("[media]\nprofil = 1"), "override: unknown key `media.profil`; allowed: "),
        (lambda d: d.read(1 << 62), "reach beyond the namespace"),
        (lambda d: d.write_zeroes((1 << 64) - 512, 512), "reach beyond the namespace"),
        (lambda d: d.workload(queues=1 << 40, depth=1 << 40), "queues = "),
        (lambda d: d.workload(queues=1, depth=(1 << 64) - 1), "depth = "),
        (lambda d: d.single(bytes=513), "bytes = 513: allowed are multiples of 512"),
        (lambda d: d.delay_set_latency(math.nan, 1), "read.base_ns = NaN: allowed is 0 to"),
    ],
)  # fmt: skip
def test_hostile_errors_list_what_is_allowed(device, call, message):
    with pytest.raises(NearsideError) as error:
        call(device)
    assert message in str(error.value)


@pytest.mark.parametrize("key", CREATE)
def test_hostile_arguments_of_a_new_device(key, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for value in NUMBERS + OTHERS:
        if key == "trace" and isinstance(value, tuple) and value[:1] == ("x",) and value[1] < value[2] <= 1 << 40:
            continue  # a valid one needs a separate build
        made = answer(_native.Device, design=GOOD.native, **CREATE | {key: value})
        if isinstance(made, _native.Device):
            made.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("key", FUZZ)
def test_hostile_fuzzer_arguments(key):
    replays = [
        "1",
        "1:2:3:4",
        "1:0:-",
        "1:0:5-3",
        "1:0:",
        "1:0:,",
        "1:0:0-4294967295",
        "1:0:4294967295",
        f"{1 << 64}:0",
        "1:0:" + "1," * 10_000,
    ]
    for value in NUMBERS + OTHERS + (replays if key == "replay" else []):
        answer(_native.fuzz, design=GOOD.native, **FUZZ | {"progress": stopper()} | {key: value})


@pytest.mark.slow
@pytest.mark.parametrize("key", CRASH)
def test_hostile_crash_campaigns(key):
    design = Design.load("nearpm")
    names = [*_native.crash_names()[0], "all", "undo,redo", "at:", "at:1", f"at:{1 << 70}", "at:1:early=1/q"]
    names += [f"sampled:{1 << 63}", "at:1:again=1/", "at:1:lost=-1", "at:" + "1," * 10_000, "cpu", "snapshots"]
    for value in NUMBERS + OTHERS + names:
        answer(_native.crash_test, design=design.native, **CRASH | {"progress": stopper()} | {key: value})


def test_hostile_fuzzer_refuses_clocks_beyond_its_limits():
    slow = GOOD.with_values("clock_mhz = 49")
    with pytest.raises(NearsideError, match=r"^clock_mhz = 49: the time limits .* are for 50 MHz and more$"):
        _native.fuzz(slow.native, 1)


@pytest.mark.parametrize("calm", [False, True])
def test_hostile_fuzzer_episode_can_be_stopped(calm):
    """Ctrl-C is handled, and progress reported, within an episode of any length: one of a soak takes minutes."""

    def progress(done, total):
        if 0 < done < total:
            raise Stopped

    amount = 20_000_000 if calm else 20_000
    with pytest.raises(Stopped):
        _native.fuzz(GOOD.native, amount, calm=calm, per_episode=amount, progress=progress)


@pytest.mark.slow
@pytest.mark.parametrize("key", SORT)
def test_hostile_sort_arguments(key, tmp_path, monkeypatch):
    """Also with truncated tables, and with tables that have flipped bits."""
    monkeypatch.chdir(tmp_path)  # names of files are among the values
    outputs = [("x", "x"), ("/no/x", "x"), (Path("/dev/full"), "\n"), ("\0", "x"), (1, "x"), ("x", 1), ("x",)]
    design, sink = Design.load("sort").native, pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [3, 1, None, 2] * 20, "b": ["x", "", None, "y"] * 20}), sink)
    data = sink.getvalue().to_pybytes()
    values = NUMBERS + OTHERS + ["a desc", "b, a", "a,", '"', "a nulls", "a" * 5000, "csv", "arrow", "stream", "zstd"]
    if key == "data":
        values += [data[:n] for n in range(0, len(data), 37)]
        values += [data[:n] + bytes([data[n] ^ 1 << n % 8]) + data[n + 1 :] for n in range(0, len(data), 7)]
    for value in values + (outputs if key == "output" else []):
        for by in ("a", "b"):
            answer(
                _native.sort_table,
                design=design,
                **SORT | {"data": data, "by": by, "progress": stopper()} | {key: value},
            )
    report, out = _native.sort_table(design, data, "a desc")
    assert report["rows"] == 80
    assert pa.table(out).column("a").to_pylist() == [None] * 20 + [3] * 20 + [2] * 20 + [1] * 20


@pytest.mark.slow
@pytest.mark.parametrize(("name", "key"), [(name, key) for name, arguments in MEASURED.items() for key in arguments])
def test_hostile_persistent_memory_arguments(name, key):
    good = MEASURED[name]
    design = Design.load("nearpm").with_values(SMALL).native
    words = ["cached", "accepted", "redo", "shadow", "posted", "completion", "undo\n", "tatp", "redis"]
    for value in NUMBERS + OTHERS + words:
        answer(getattr(_native, name), design=design, **good | {"progress": stopper()} | {key: value})
    answer(getattr(_native, name), design=GOOD.native, **good)


@pytest.mark.parametrize("key", TIMELINE)
def test_hostile_timeline_arguments(key):
    design = Design.load("nearpm").with_values(SMALL).native
    for value in NUMBERS + OTHERS + ["redo", "shadow", "checkpoint", "host", "nobody"]:
        answer(_native.pm_timeline, design=design, **TIMELINE | {key: value})
    answer(_native.pm_timeline, design=GOOD.native, **TIMELINE)


@pytest.mark.parametrize("key", FRONT)
def test_hostile_kv_server_arguments(key, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    design = Design.load("nearpm").with_values(SMALL).native
    for value in (
        NUMBERS
        + OTHERS
        + ["memcached", "device", "shadow", "/dev/null", "no/such/folder/s", "0.0.0.0", "::ffff:1.2.3.4"]
    ):
        served = answer(_native.Front, design=design, **FRONT | {key: value})
        if isinstance(served, _native.Front):
            assert served.stop() is not None
            assert served.stop() is None


@pytest.mark.parametrize("key", COST)
def test_hostile_traces_of_programs(key):
    def event(what: int, size: int, place: int) -> bytes:
        return struct.pack("<IIQ", what, size, place)

    design = Design.load("nearpm").with_values('[media]\nbytes = "64 MiB"\n[nvme]\nnamespaces = ["1 MiB"]').native
    begin, most = event(5, 0, 0), (1 << 32) - 1
    good = begin + event(1, 64, 64) + event(3, 300, 4000) + event(2, 0, 0)
    traces = [good[:n] for n in range(0, len(good), 7)] + [event(n, most, 0) for n in (0, 4, 6, most)]
    for what in (1, 3):
        traces += [begin + event(what, size, place) for size in (0, most) for place in (0, 1 << 26, (1 << 64) - 1)]
    for operation in range(0, 0x30):
        traces.append(begin + event(4, operation, 0) + event(0, 0, 64) + event(0, 0, (1 << 64) - 64) * 4)
    for value in NUMBERS + OTHERS + ["posted", "sfence"] + (traces if key == "trace" else []):
        answer(_native.pmdk_cost, design=design, **COST | {key: value})
        answer(_native.pmdk_events, trace=value)
        answer(_native.pmdk_instructions, file=value)
    cost = _native.pmdk_cost(design, good, "read_back", "fast")
    assert (cost["lines"], cost["fences"], cost["streamed"]) == (1, 1, 300)


class Exported:
    """An object with the Arrow PyCapsule interface."""

    def __init__(self, export) -> None:
        self.export = export

    def __arrow_c_stream__(self, requested_schema=None):
        return self.export()


def raw_column(kind, *buffers: bytes) -> pa.Table:
    """A table of two rows whose column `b` has these buffers, which pyarrow does not check."""
    column = pa.Array.from_buffers(kind, 2, [None, *map(pa.py_buffer, buffers)])
    return pa.table({"a": [2, 1], "b": column})


CAPSULE = pa.table({"a": [1]}).__arrow_c_stream__()
READ_TWICE = Exported(lambda: CAPSULE)
HOSTILE_TABLES = [
    Exported(lambda: int("x")),
    Exported(lambda: None),
    Exported(lambda: pa.table({"a": [1]}).schema.__arrow_c_schema__()),
    Exported(lambda: pa.array([1]).__arrow_c_array__()),
    Exported(lambda: pa.chunked_array([[1, 2]]).__arrow_c_stream__()),
    Exported(pa.table({}).__arrow_c_stream__),
    READ_TWICE,
    # Text that is not UTF-8, an offset that goes back, and a key beyond the dictionary.
    raw_column(pa.string(), b"\0\0\0\0\1\0\0\0\2\0\0\0", b"\xff\xfe"),
    raw_column(pa.string(), b"\2\0\0\0\1\0\0\0\2\0\0\0", b"xy"),
    pa.table(
        {"a": [2, 1], "b": pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int8()), pa.array(["x"]), safe=False)}
    ),
]


@pytest.mark.parametrize("key", MERGE)
def test_hostile_merge_arguments(key):
    data = pa.table({"a": [1, 2], "b": ["x", "y"]})
    values = NUMBERS + OTHERS + ["a desc", "b, a", "a,", '"', "x"]
    if key == "tables":
        values += [[], [data, b""], [data, pa.table({"a": ["1"]})], [pa.table({"a": [2, 1]})], [None], [data] * 100]
        values += [[table] for table in HOSTILE_TABLES]
    for value in values:
        answer(_native.merge_tables, **MERGE | {"tables": [data, data]} | {key: value})
    with pytest.raises(NearsideError, match="table 1 has rows that are not in order"):
        _native.merge_tables([data, pa.table({"a": [2, 1], "b": ["x", "y"]})], "a")
    with pytest.raises(NearsideError, match="table 1 has another schema"):
        _native.merge_tables([data, pa.table({"a": [2.0]})], "a")
    assert pa.table(_native.merge_tables([data, data], "a")).column("a").to_pylist() == [1, 1, 2, 2]


def test_hostile_tables_in_memory():
    """Objects with a broken interface, and arrays whose values contradict their types."""
    design = Design.load("sort").native
    for table in HOSTILE_TABLES:
        for by in ("a", "b"):
            answer(_native.sort_table, design=design, **SORT | {"data": table, "by": by})
    for table in HOSTILE_TABLES[-3:]:
        with pytest.raises(NearsideError, match="no Arrow stream that can be read"):
            _native.sort_table(design, table, "b", model="fast")
    with pytest.raises(NearsideError, match="its stream was read before"):
        _native.sort_table(design, READ_TWICE, "a", model="fast")


class Capsule:
    """An object that gives this capsule."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __arrow_c_stream__(self, requested_schema=None):
        return self.capsule


NATIVE_TABLES = {
    "sort_table": lambda table: _native.sort_table(Design.load("sort").native, table, "a", model="fast"),
    "explain_sort": lambda table: _native.explain_sort(Design.load("sort").native, table, "a"),
    "merge_tables": lambda table: _native.merge_tables([table], "a"),
}


@pytest.mark.parametrize("call", NATIVE_TABLES)
def test_hostile_released_stream_is_refused(call):
    """Another library that reads a stream clears only the callback that releases it."""
    capsule = pa.table({"a": [3, 1, 2]}).__arrow_c_stream__()
    pa.RecordBatchReader._import_from_c_capsule(capsule).read_all()
    with pytest.raises(NearsideError, match="its stream was read before"):
        NATIVE_TABLES[call](Capsule(capsule))


@pytest.mark.parametrize("call", NATIVE_TABLES)
def test_hostile_null_rows_are_refused(call):
    with pytest.raises(NearsideError, match="a row as a whole is null"):
        NATIVE_TABLES[call](pa.chunked_array([pa.array([None, {"a": 3}])]))


def test_hostile_producer_reports_its_error_in_one_line():
    def batches():
        yield pa.record_batch({"a": [1]})
        raise ValueError("bad row 2")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), batches())
    with pytest.raises(NearsideError, match=r"stream ends with an error: .*bad row 2[^\n]*$"):
        sort_table(reader, "a", model="fast")


def test_hostile_endless_stream_ends_by_ctrl_c():
    def batches():
        while True:
            time.sleep(0.001)
            yield pa.record_batch({"a": [1]})

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), batches())
    # Not `KeyboardInterrupt`: where the signal meets the producer, pyarrow makes an error of it.
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises((KeyboardInterrupt, NearsideError)):
        _native.merge_tables([reader], "a")


def test_hostile_arrow_streams():
    """Truncated streams, and streams with flipped bits."""
    design, sink = Design.load("sort").native, pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, (table := pa.table({"a": [1, 2], "b": ["x", "y"]})).schema) as out:
        out.write_table(table)
    data = sink.getvalue().to_pybytes()
    values = [data[:n] for n in range(0, len(data), 13)]
    values += [data[:n] + bytes([data[n] ^ 1 << n % 8]) + data[n + 1 :] for n in range(0, len(data), 7)]
    for value in values:
        answer(_native.sort_table, design=design, **SORT | {"data": value, "source": "stream"})


@pytest.mark.slow
def test_hostile_resident_table_arguments(tmp_path, monkeypatch):
    """The earlier content is still there afterwards, too."""
    monkeypatch.chdir(tmp_path)
    small = "[media]\nbytes = '1 MiB'\n[nvme]\nnamespaces = ['1 MiB']"
    design, sink = Design.load("sort").with_values(small).native, pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [3, 1, None, 2] * 20}), sink)
    data, media = sink.getvalue().to_pybytes(), [str(tmp_path / "d")]
    good = {"media": media, "model": "fast"}
    _native.table_put(design, data=data, table="t", keys="a", **good)
    values = [*NUMBERS[:6], *OTHERS, "a desc", "b, a", '"', "a" * 5000, "csv", ["/no/x"], media * 2, media * 17]
    for name, arguments in {
        "table_put": PUT | {"data": data, "table": "u", "progress": stopper()},
        "table_get": GET | {"progress": stopper()},
        "table_list": MEDIA,
        "table_explain": MEDIA | {"table": "t", "by": "a"},
        "table_schema": MEDIA | {"table": "t"},
        "table_drop": MEDIA | {"table": "none"},
    }.items():
        for key in arguments:
            for value in values:
                answer(getattr(_native, name), design=design, **arguments | good | {key: value})
                if name == "table_put":
                    for other in _native.table_list(design, **good):
                        if other["name"] != "t":
                            _native.table_drop(design, table=other["name"], **good)
    for key in EXPLAIN:
        for value in values:
            answer(_native.explain_sort, design=design, **EXPLAIN | {"data": data} | {key: value})
    report, out = _native.table_get(design, table="t", by="a desc", **good)
    assert report["rows"] == 80
    assert pa.table(out).column("a").to_pylist() == [None] * 20 + [3] * 20 + [2] * 20 + [1] * 20


def test_hostile_design_and_profile_arguments(tmp_path):
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\0")
    (tmp_path / "folder.toml").mkdir()
    deep = "x = " + "[" * 20_000
    names = ["", ".", "..", "/", "a/b", "\0", "\udc80", "x" * 5000, deep, "name = ", "binary.toml", "clock_mhz = nan"]
    names += [str(tmp_path / "binary.toml"), str(tmp_path / "folder.toml"), "/proc/self/mem", "/dev/null"]
    for value in names + NUMBERS + OTHERS:
        for function in (_native.Design.load, _native.profile):
            assert isinstance(answer(lambda f=function, v=value: f(v)), ANSWERS), (function, value)
        answer(lambda v=value: GOOD.native.with_values(v))
        answer(lambda v=value: _native.compile(v))
        answer(lambda v=value: _native.check_timeout(v))
    for text in (
        "clock_mhz = 0",
        "granule = 0",
        "channels = 0",
        "[media]\nbytes = 0",
        "[media]\nbytes = 9223372036854775807",
    ):
        assert isinstance(answer(lambda t=text: GOOD.native.with_values(t)), NearsideError), text


def test_hostile_dram_model_arguments():
    for key in ("now", "addr", "is_write"):
        channel = _native.DramChannel(GOOD.native)
        for value in NUMBERS + OTHERS:
            answer(channel.push, **{"now": 0, "addr": 0, "is_write": False} | {key: value})
            answer(channel.poll, **{"now": value})
    for value in NUMBERS + OTHERS:
        answer(_native.DramChannel, design=GOOD.native, refresh=value)
        answer(_native.DramChannel, design=value)


@pytest.mark.slow
def test_hostile_delay_bench_arguments():
    bench = _native.DelayBench(GOOD.native)
    for key in MEASURE:
        for value in NUMBERS + OTHERS + ["write", 1e-300, 1e300]:
            if key == "samples" and type(value) is int and 1000 < value < 1 << 24:
                continue  # these are only long
            answer(bench.measure, **MEASURE | {key: value})
    for value in NUMBERS + OTHERS:
        answer(lambda v=value: bench.pipelined_reads(v, 50.0))
        answer(lambda v=value: bench.pipelined_reads(2, v))
    assert bench.pipelined_reads(2, 50.0) > 50


def test_hostile_pool_and_thread_arguments():
    design = Design.load("nearpm").native
    for value in [*NUMBERS, *OTHERS, 2, 3, 4, 5, "host", "nobody"]:
        assert isinstance(answer(_native.PmSystem, design=value, **OVER), ANSWERS), value
        for key in OVER:
            made = answer(_native.PmSystem, design=design, **OVER | {key: value})
            allowed = {"devices": value in (1, 2, 4), "synchronise": value == "host"}.get(key, False)
            assert isinstance(made, ANSWERS) is not allowed, (key, value)
    system = _native.PmSystem(design, **OVER)
    pool = system.pool_create(place=128 << 20, name="hostile", **{
        k: v for k, v in SYSTEM["pool_create"].items() if k not in ("place", "name")
    })  # fmt: skip
    values = [*NUMBERS, *OTHERS, "host", "posted", "redo", "shadow", 16, 4096, "x" * 48]
    for name in ("load", "store", "power_cut", "pool_create", "pool_open"):
        for key in SYSTEM[name]:
            for value in values:
                if (name, value) == ("power_cut", "host"):
                    continue
                made = answer(getattr(system, name), **SYSTEM[name] | {key: value})
                if isinstance(made, _native.PmPool):
                    made.close()
    thread = pool.thread(0)
    kept = None
    for begun in (False, True):
        for name, arguments in THREAD.items():
            if name in ("begin", "commit", "commit_later", "abort", "fail", "close"):
                continue
            for key in arguments:
                for value in values:
                    if begun and not thread.is_active():
                        thread.begin()
                    answer(getattr(thread, name), **arguments | {key: value})
        if begun:
            thread.abort()
        thread.begin()
        kept = thread.alloc(64)
        thread.write(kept, b"kept")
        thread.set_root(kept)
        thread.commit()
    for value in values:
        answer(pool.thread, cpu=value)
        assert isinstance(answer(pool.resize, bytes=value), ANSWERS), "a thread has it"
    # Void objects report it, and can be discarded.
    thread.begin()
    thread.write(kept, b"lost")
    system.power_cut("host")
    for call in (thread.commit, thread.abort, thread.begin, thread.root, pool.check, lambda: system.power_cut("all")):
        assert isinstance(answer(call), NearsideError)
    system.power_on()
    for call in (thread.commit, thread.root, pool.check, lambda: pool.thread(0), system.power_on):
        assert isinstance(answer(call), NearsideError)
    for part in (thread, pool):
        part.close()
        part.close()
    for call in (thread.begin, thread.counts, pool.bytes):
        assert "is closed" in str(answer(call))
    pool = system.pool_open(**SYSTEM["pool_open"])
    for value in values:
        if value not in (8 << 20, 16 << 20):
            assert isinstance(answer(pool.resize, bytes=value), ANSWERS), value
    thread = pool.thread(0)
    assert thread.read(thread.root(), 4) == b"kept"
    for value in NUMBERS + OTHERS:
        answer(system.power_cut_after, ps=value)
    system.close()
    system.close()
    for name, arguments in SYSTEM.items():
        if name != "close":
            assert "is closed" in str(answer(getattr(system, name), **arguments))


class Meddler:
    """A number that uses the same object while it is converted to an argument."""

    def __init__(self, value: int, call) -> None:
        self.value, self.call = value, call

    def __index__(self) -> int:
        self.call()
        return self.value


def test_hostile_argument_that_uses_its_object():
    channel = _native.DramChannel(GOOD.native)
    assert channel.push(Meddler(5, lambda: channel.poll(1)), Meddler(64, channel.next_event), False)
    assert channel.poll(Meddler(6, channel.timing)) is None
    bench = _native.DelayBench(GOOD.native)
    nested = Meddler(2, lambda: bench.pipelined_reads(1, 10.0))
    assert bench.pipelined_reads(nested, 50.0) > 50
    assert bench.measure(**MEASURE | {"samples": nested})


LONG = [
    lambda b: b.measure(**MEASURE | {"samples": 1_000_000}), lambda b: b.pipelined_reads(64, 1_000_000.0)
]  # fmt: skip


@pytest.mark.parametrize("call", LONG, ids=["measure", "pipelined_reads"])
def test_hostile_delay_bench_in_use_reports_it_and_handles_signals(call):
    bench = _native.DelayBench(GOOD.native)
    reported = []

    def meddle():
        for other in (lambda: bench.pipelined_reads(1, 10.0), lambda: bench.measure(**MEASURE)):
            reported.append(answer(other))
        signal.raise_signal(signal.SIGALRM)

    def handler(*_):
        raise Stopped

    before = signal.signal(signal.SIGALRM, handler)
    try:
        timer = threading.Timer(0.3, meddle)
        timer.start()
        begun = time.monotonic()
        with pytest.raises(Stopped):
            call(bench)
        assert time.monotonic() - begun < 20
        timer.join()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert [str(error).partition(",")[0] for error in reported] == ["the bench is in use by another call"] * 2
    assert bench.pipelined_reads(2, 50.0) > 50


def test_hostile_server_arguments(tmp_path):
    for value in [*NUMBERS, *OTHERS, [(GOOD.native, tmp_path / "none/s", None)], [(GOOD.native, "x" * 200, None)]]:
        outcome = answer(_native.Server, devices=value)
        if isinstance(outcome, _native.Server):
            outcome.stop()
    for value in [*NUMBERS, *OTHERS]:
        outcome = answer(_native.Server, devices=[], dilation=value)
        if isinstance(outcome, _native.Server):
            assert outcome.pacing() == []
            outcome.stop()
    server = _native.Server([])
    for value in [-1, math.nan, math.inf, -math.inf, 1e300, "x", None, 0, 0.001]:
        answer(server.wait, seconds=value)
    server.stop()
    server.stop()


def test_hostile_overflow_is_caught_in_release_builds():
    cargo = tomllib.loads((Path(__file__).parent.parent / "Cargo.toml").read_text())
    assert cargo["profile"]["release"]["overflow-checks"] is True


# ---- the command line ----


def nearside(capsys, monkeypatch, *arguments) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["nearside", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


NESTED = "[" * 100_000
SOAK = {
    "seed": 1, "design": GOOD.hash, "hardware": GOOD.hardware, "engine": "fast", "time": "simulated",
    "moved_bytes": 5, "episodes": 1, "mismatches": 0, "kinds": {}, "outcomes": {},
    "simulated_ns": 1.0, "failure": None,
}  # fmt: skip
COMMAND = {"command": "Read", "queue": 1, "blocks": 8, "status": 0, "times_ps": {"fetch": 1, "landed": 5}}


def damaged(good: dict) -> list[str]:
    """Texts that are nearly that document, or no document at all."""
    texts = ["", "{", "5", "null", "[]", "{}", '"x"', "nan", NESTED, "\0", json.dumps(good)[:-5]]
    for key in good:
        texts.append(json.dumps({k: v for k, v in good.items() if k != key}))
        texts += [json.dumps(good | {key: value}) for value in (None, "x", -1, [], {"x": "y"}, {"fetch": -1})]
    return texts


def test_hostile_damaged_soak_results(tmp_path):
    path = tmp_path / "soak.json"
    path.write_text(json.dumps(SOAK))
    assert fuzzing.resume(path, GOOD, 1, "fast") == SOAK
    assert fuzzing.resume(tmp_path / "none.json", GOOD, 1, "fast") == {}
    for other in ({"seed": 2}, {"design": "0"}, {"hardware": "0"}, {"engine": "rtl"}):
        path.write_text(json.dumps(SOAK | other))
        with pytest.raises(NearsideError, match="another seed, design, RTL or model"):
            fuzzing.resume(path, GOOD, 1, "fast")
    values = (math.nan, math.inf, -math.inf, -0.5, 10**400, "1", None, True, 1 << 64)
    hostile = [{key: value} for key in ("simulated_ns", "moved_bytes", "episodes", "mismatches") for value in values]
    hostile += [{table: {"x": value}} for table in ("kinds", "outcomes") for value in values]
    hostile += [{"more": value} for value in values]
    # A failure without a mismatch, and mismatches whose failure can't be printed.
    failure = {"what": "x", "steps": 1, "of_steps": 2, "history": []}
    hostile += [{"failure": failure}, {"mismatches": 1}, {"mismatches": 1, "failure": {}}]
    hostile += [{"mismatches": 1, "failure": failure | {key: None}} for key in ("what", "history")]
    hostile += [{"episodes": 1 << 32}]
    for change in hostile:
        path.write_text(json.dumps(SOAK | change))
        with pytest.raises(NearsideError, match="a damaged one"):
            fuzzing.resume(path, GOOD, 1, "fast")
    refused = 0
    for text in damaged(SOAK):
        path.write_text(text)
        outcome = answer(fuzzing.resume, result=path, design=GOOD, seed=1, model="fast")
        assert path.read_text() == text, "what can't be used is left alone"
        refused += isinstance(outcome, NearsideError)
    assert refused > 40
    path.write_bytes(b"\xff\xfe")
    for bad in (path, tmp_path, tmp_path / "none/x.json", Path("/proc/self/mem")):
        assert isinstance(answer(fuzzing.resume, result=bad, design=GOOD, seed=1, model="fast"), NearsideError), bad


def test_hostile_soak_continues_after_the_last_episode(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzzing, "SOAK_EPISODE", 1000)
    path = tmp_path / "soak.json"
    path.write_text(json.dumps(SOAK | {"episodes": (1 << 32) - 1}))
    total = fuzzing.soak(GOOD, 2_000_000, 1, path)
    assert total["episodes"] > 1 << 32
    fuzzing.print_report(total)
    failure = {"what": "x", "steps": 1, "of_steps": 2, "history": ["y"]}
    path.write_text(json.dumps(SOAK | {"mismatches": 1, "failure": failure}))
    fuzzing.print_report(fuzzing.soak(GOOD, 5000, 1, path))


@pytest.mark.slow
@pytest.mark.parametrize("command", [["soak", "--result"], ["trace"], ["claim", "report"], ["demo"]])
def test_hostile_damaged_files_are_one_line(command, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good = {"soak": SOAK, "trace": COMMAND}.get(command[0], {"what": "claims", "claims": [{"name": "x"}]})
    path = tmp_path / "file"
    # A demo sends any file.
    texts = damaged(good)[:40] if command != ["demo"] else [""]
    for text in texts:
        path.write_text(text)
        if command[0] == "soak" and not isinstance(
            answer(fuzzing.resume, result=path, design=GOOD, seed=1, model="fast"), Exception
        ):
            continue  # it would run on
        status, out, err = nearside(capsys, monkeypatch, *command, path)
        if status:
            assert (out, len(err.splitlines())) == ("", 1), err
            assert err.startswith("nearside: ")
    path.write_bytes(b"\xff\xfe\0")
    for bad in (tmp_path, tmp_path / "none/x", "/proc/self/mem", *([path] if command != ["demo"] else [])):
        status, out, err = nearside(capsys, monkeypatch, *command, bad)
        assert status != 0, bad
        assert (out, len(err.splitlines())) == ("", 1), err


def test_hostile_damaged_trace_line_is_named(tmp_path, capsys, monkeypatch):
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(COMMAND) + "\n" + json.dumps(COMMAND | {"times_ps": {}}) + "\n")
    status, _, err = nearside(capsys, monkeypatch, "trace", path)
    assert (status, err) == (1, f"nearside: {path}:2: no command of a trace of JSON lines (*.jsonl)\n")
    path.write_text(json.dumps(COMMAND) + "\n")
    for plot in (tmp_path / "none/x.png", tmp_path / "x.nonesuch", tmp_path):
        status, _, err = nearside(capsys, monkeypatch, "trace", path, "--plot", plot)
        assert (status, len(err.splitlines())) == (1, 1), err
    assert nearside(capsys, monkeypatch, "trace", path)[0] == 0


HUGE = str(1 << 64)
OPTIONS = [
    *([*command, "--seed", seed] for seed in (HUGE, "-1", "x", "1.5", "") for command in (
        ["wire"], ["fuzz"], ["latency"], ["soak"], ["claim", "run"],
    )),
    *(["fuzz", "--commands", n] for n in ("0", "-1", HUGE, "nan")),
    *(["crashtest", *words] for words in (
        [], ["none"], [""], ["btree", "--mechanism", "x"], ["btree", "--by", ""], ["btree", "--cuts", "some"],
        ["btree", "--cuts", "at:1", "--by", "cpu"], ["btree", "--transactions", "0"], ["btree", "--seed", HUGE],
        ["btree", "--without", "x"], ["btree", "--jobs", "0"], ["btree", "--model", "x"],
        ["btree", "--design", "none.toml"],
        ["btree", "--by", "device", "--design", "default"], ["btree", "--cuts", "all", "--transactions", "17"],
    )),
    *(["crashtest", *words, "--", *program] for program in (["/bin/true", "{}"], ["/bin/false", "{}"], ["/none", "{}"])
      for words in ([], ["--by", "x"], ["--check", ""], ["--check", '"'], ["--cuts", "x"], ["--without", "hook"])),
    *(["crashtest", "--limit", limit, "--", "/bin/true", "{}"] for limit in ("0", "-1", "nan", "inf", "86401", "x")),
    ["crashtest", "--", "/bin/true", "x"], ["crashtest", "btree", "x"], ["crashtest", "btree", "--x"],
    ["pmdk", "run"], ["pmdk", "run", "--", "/none/x"], ["pmdk", "run", "--without", "x", "--", "true"],
    ["pmdk", "run", "--design", "none", "--", "true"], ["pmdk", "gain", "--", "true"],
    *(["pmdk", "gain", *words, "--", "true", "{}"] for words in (
        [], ["--fence", "x"], ["--profile", "x"], ["--profile", "/"], ["--design", "default"],
    )),
    *(["soak", "--gigabytes", n] for n in ("0", "-1", "nan", "inf", "1e300", "x")),
    *(["latency", "--commands", n] for n in ("0", "1001", "nan")),
    *(["trace", "file", "--first", n] for n in ("0", "201", HUGE)),
    *(["delay", "set", "pcm", "--channel", n] for n in ("-1", HUGE, "x")),
    *(["delay", "set", "--write-ns", "1", "--read-ns", n] for n in ("nan", "inf", "-1", "1e300")),
    *([*command, "--design", design] for design in ("", "/", "none.toml", "a\nb") for command in (
        ["demo"], ["info"], ["build"], ["wire"], ["latency"], ["delay", "show"], ["delay", "set", "pcm"],
    )),
    *([command, design] for design in ("", "/", "none.toml") for command in ("fuzz", "soak")),
    ["wire", "gen9x9"], ["fuzz", "--replay", "x"], ["fuzz", "--replay", f"{HUGE}:0"], ["latency", "--profile", ""],
    ["latency", "--profile", "/"], ["serve"], ["serve", "--socket", ""], ["serve", "none", "-s", "a"],
    ["serve", "-s", "a", "-s", "a"], ["serve", "-s", "a", "-m", "b", "-m", "c"], ["serve", "fuzz", "-s", "/none/s"],
    ["serve", "fuzz", "-s", "x" * 200], ["serve", "fuzz", "-s", "a", "--trace", "/none/t"],
    ["serve", "-s", "a", "-m", "/"],
    ["claim", "run", ""], ["claim", "run", "["], ["claim", "report", "file", "-o", "/none/x"], ["nonesuch"], ["delay"],
    ["demo", "--trace", "/none/x.jsonl"], ["demo", "a", "b"],
    ["sort"], ["sort", "none", "--by", "a", "-o", "x"], ["sort", "/", "--by", "a", "-o", "x"],
    ["sort", "none", "--by", "a", "-o", "/"], ["sort", "none", "--by", "", "-o", "none"],
    *(["sort", "none", "--by", "a", "-o", "x", "--devices", n] for n in ("0", "17", HUGE, "x")),
]  # fmt: skip


@pytest.mark.parametrize("arguments", OPTIONS, ids=lambda a: " ".join(a)[:60] if isinstance(a, list) else a)
def test_hostile_options_are_one_line(arguments, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEARSIDE_RESULTS", str(tmp_path / "results"))
    status, out, err = nearside(capsys, monkeypatch, *arguments)
    assert status != 0
    if arguments == ["delay"]:
        return  # its help
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("nearside: ")
