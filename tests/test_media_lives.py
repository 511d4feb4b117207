# SPDX-License-Identifier: Apache-2.0
"""Programs with a media file that end at any moment and in any way: the next one finds all
acknowledged data.

`crates/pm/tests/ends.rs` has every mechanism, `crates/vfio_user/tests/killed.rs` a served device.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from nearside import Design, Device, NearsideError, pm, tables
from nearside.kv_server import KvServer
from pyarrow import feather

BYTES = 8 << 20
VALUES = 'media.file = "{}"\nmedia.bytes = "32 MiB"\nnvme.namespaces = ["4 MiB"]'
POOL = """
import os, resource, sys
from nearside import Design, NearsideError, pm

file, mechanism, end = sys.argv[1:]
system = pm.System(Design.load("nearpm").with_values(file))
try:
    pool = system.open(0, "n", offload=True)
    thread = pool.thread()
except NearsideError:
    pool = system.create(0, 8 << 20, "n", mechanism=mechanism, offload=True, log_bytes=128 << 10)
    thread = pool.thread()
    with thread.transaction():
        at = thread.alloc(12 * 4096)
        thread.write(at, bytes(12 * 4096))
        thread.set_root(at)
at = thread.root()
number = int.from_bytes(thread.read(at, 8), "little")
last = number + 9 if end in ("end", "full") else 1 << 40
refused = 0
while number < last and refused < 3:
    number += 1
    try:
        with thread.transaction():
            for page in range(12):
                thread.write(at + page * 4096, number.to_bytes(8, "little"))
    except NearsideError:
        refused += 1
        print("refused", flush=True)
        if end == "anew":
            try:
                thread.close()
                pool.close()
            except NearsideError:
                pass
            try:
                pool = system.open(0, "n", offload=True)
                thread = pool.thread()
                number = int.from_bytes(thread.read(at, 8), "little")
            except NearsideError:
                break
        continue
    print(number, flush=True)
if end == "full":  # from now on the file takes nothing more
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
"""
NVME = """
import sys
from nearside import Design, Device

device = Device(Design.load(sys.argv[2]).with_values(sys.argv[1]))
number = int.from_bytes(device.read(512)[0][:8], "little")
while True:
    number += 1
    block = number.to_bytes(8, "little") * 64
    device.write(block * 16, offset=(1 + number % 64) * 8192)
    device.write(block)
    print(number, flush=True)
"""


def acknowledged(text: str, arguments: list[str], end: Callable[[subprocess.Popen], None] | None, draw: random.Random):
    """Runs the program until it has reported some numbers, and ends it; returns the last reported number."""
    command = [sys.executable, "-c", text, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        reported = ""
        if end is not None:
            for _ in range(draw.randrange(1, 40)):
                reported += process.stdout.readline()
            time.sleep(draw.random() * 0.002)
            end(process)
        reported += process.stdout.read()
    assert process.returncode in ((0,) if end is None else (-signal.SIGKILL, -signal.SIGTERM))
    # The last line may be incomplete.
    return [int(line) for line in reported.splitlines(keepends=True) if line.endswith("\n")][-1]


ENDS = {"end": None, "full": None, "term": subprocess.Popen.terminate, "kill": subprocess.Popen.kill}


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["checkpoint", "redo"])
def test_media_file_offloaded_pools_survive_their_program(tmp_path: Path, mechanism: str) -> None:
    values, draw = VALUES.format(tmp_path / "media"), random.Random(mechanism)
    for end in ("end", "kill", "term", "kill", "full"):
        last = acknowledged(POOL, [values, mechanism, end], ENDS[end], draw)
        with pm.System(Design.load("nearpm").with_values(values)) as system:
            pool = system.open(0, "n", offload=True)
            with pool.thread() as thread:
                words = {thread.read(thread.root() + page * 4096, 8) for page in range(12)}
            assert len(words) == 1, f"{end}: torn"
            assert int.from_bytes(words.pop(), "little") - last in ((0, 1) if ENDS[end] else (0,)), end
            pool.check()
            # The next program also finds a pool that was not closed.


@pytest.mark.slow
@pytest.mark.parametrize("end", ["goes on", "anew"])
@pytest.mark.parametrize("mechanism", ["undo", "redo", "checkpoint", "shadow"])
def test_media_file_temporary_full_disk_is_a_power_cut(tmp_path: Path, mechanism: str, end: str) -> None:
    """A write to the file fails at any moment; earlier and later ones may succeed."""
    values, draw = VALUES.format(tmp_path / "media"), random.Random(mechanism)
    for life in range(6):
        command = [sys.executable, "-c", POOL, values, mechanism, end]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            lines = [process.stdout.readline() for _ in range(draw.randrange(1, 20))]
            while lines[-1] not in ("refused\n", ""):
                room = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
                with contextlib.suppress(ProcessLookupError):
                    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
                    time.sleep(draw.choice([0, 1e-5]))
                    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, room)
                lines.append(process.stdout.readline())
            rest, errors = process.communicate()
        assert "make room, and open the file anew" in errors, errors
        last = [int(line) for line in [*lines, *rest.splitlines()] if line.strip().isdigit()][-1]
        with pm.System(Design.load("nearpm").with_values(values)) as system:
            pool = system.open(0, "n", offload=True)
            with pool.thread() as thread:
                words = [int.from_bytes(thread.read(thread.root() + page * 4096, 8), "little") for page in range(12)]
            assert len(set(words)) == 1, f"torn in life {life}: {words}"
            assert words[0] - last in (0, 1)
            pool.check()


@pytest.mark.slow
@pytest.mark.parametrize("design", ["default", "nearpm"])
def test_media_file_blocks_survive_their_program(tmp_path: Path, design: str) -> None:
    values, draw = VALUES.format(tmp_path / "media"), random.Random(design)
    for _ in range(3):
        last = acknowledged(NVME, [values, design], ENDS["kill"], draw)
        with Device(Design.load(design).with_values(values)) as device:
            number = int.from_bytes(device.read(512)[0][:8], "little")
            assert number - last in (0, 1)
            for written in range(max(1, number - 40), number + 1):
                block = written.to_bytes(8, "little") * 64
                assert device.read(8192, offset=(1 + written % 64) * 8192)[0] == block * 16


def test_media_file_refuses_to_lose_data(tmp_path: Path) -> None:
    design = Design.load("nearpm").with_values(VALUES.format(tmp_path / "media"))
    for start in (lambda: pm.System(design, model="rtl"), lambda: Device(design, model="rtl")):
        with pytest.raises(NearsideError, match=r"nearpm keeps what it has taken .* allowed with it are"):
            start()
    assert not (tmp_path / "media").exists()


class Served:
    """`nearside pm serve redis` in a separate process."""

    def __init__(self, folder: Path, mechanism: str, *more: str, base: str = "nearpm") -> None:
        self.socket, design = folder / "s", folder / "d.toml"
        text = (Path(__file__).parent.parent / f"designs/{base}.toml").read_text()
        design.write_text(text.replace("[media]\n", f'[media]\nfile = "{folder / "media"}"\n'))
        command = [sys.executable, "-m", "nearside.cli", "pm", "serve", "redis", "--design", design]
        command += ["--socket", self.socket, "--length", str(BYTES * 2), "--mechanism", mechanism, *more]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait(self) -> None:
        line = self.process.stdout.readline()
        assert "serving" in line, self.process.communicate()[1]

    def client(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(self.socket))
        client.settimeout(600)
        return client

    def end(self, how: int = signal.SIGKILL) -> str:
        self.process.send_signal(how)
        errors = self.process.communicate(timeout=600)[1]
        self.socket.unlink(missing_ok=True)
        return errors


def asked(client: socket.socket, request: bytes) -> bytes:
    client.sendall(request + b"\r\n")
    reply = b""
    while not reply.endswith(b"\r\n"):
        more = client.recv(4096)
        if not more:
            raise ConnectionError
        reply += more
    return reply


@pytest.mark.slow
def test_media_file_served_store_survives_its_server(tmp_path: Path) -> None:
    draw, count = random.Random(1), 0
    value = lambda n: b"%06d" % n * 100  # noqa: E731
    for how in (signal.SIGKILL, None, signal.SIGTERM, signal.SIGKILL, signal.SIGKILL):
        served = Served(tmp_path, "redo")
        if how is None:
            # During its start.
            time.sleep(draw.random())
            served.end()
            continue
        served.wait()
        client = served.client()
        there = int(asked(client, b"DBSIZE")[1:])
        # One more may have been in progress.
        assert there - count in (0, 1)
        for n in range(max(0, count - 20), there):
            client.sendall(b"GET n%d\r\n" % n)
            wanted = b"$600\r\n%b\r\n" % value(n)
            assert client.recv(len(wanted), socket.MSG_WAITALL) == wanted
        count = there + draw.randrange(5, 60)
        for n in range(there, count):
            assert asked(client, b"SET n%d %b" % (n, value(n))) == b"+OK\r\n"
        client.sendall(b"SET n%d %b\r\n" % (count, value(count)))
        time.sleep(draw.random() * 0.002)
        served.end(how)
        client.close()


@pytest.mark.slow
@pytest.mark.parametrize(("base", "by"), [("default", "cpu"), ("nearpm", "cpu"), ("nearpm", "device")])
def test_media_file_full_disk_is_reported_and_not_acknowledged(tmp_path: Path, base: str, by: str) -> None:
    """Stores have no answer: without a check of the device's losses each of these would count as acknowledged."""
    acknowledged: dict[int, bytes] = {}

    def put(client: socket.socket, numbers: range) -> list[bytes]:
        replies = []
        for n in numbers:
            value = b"%04d" % n * 700
            replies.append(asked(client, b"SET n%d %b" % (n, value)))
            if replies[-1] == b"+OK\r\n":
                acknowledged[n] = value
        return replies

    start = lambda: Served(tmp_path, "undo", "--by", by, base=base)  # noqa: E731
    served = start()
    served.wait()
    client = served.client()
    assert set(put(client, range(10))) == {b"+OK\r\n"}
    # The file accepts no more data from here on, as with a full disk.
    before = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    replies = put(client, range(10, 20))
    assert all(reply.startswith(b"-ERR ") for reply in replies), replies
    # Without a journal a store is lost. With one it may be a read, as reads fail, too.
    reasons = [b"is the disk of its media full?"] + ([b"or their disk full?"] if base == "nearpm" else [])
    assert any(reason in replies[0] for reason in reasons), replies
    resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, before)
    client.close()
    # There is room again. The server continues, except with a journal, whose file stays as it was.
    client = served.client()
    replies = put(client, range(20, 30))
    assert (replies[-1] == b"+OK\r\n") == (base == "default"), replies
    client.close()
    assert ("make room, and open the file anew" in served.end()) == (base == "nearpm")
    served = start()
    served.wait()
    client = served.client()
    assert set(put(client, range(30, 40))) == {b"+OK\r\n"}
    for n, value in acknowledged.items():
        client.sendall(b"GET n%d\r\n" % n)
        wanted = b"$%d\r\n%b\r\n" % (len(value), value)
        assert client.recv(len(wanted), socket.MSG_WAITALL) == wanted, n
    client.close()
    served.end()


def test_media_file_store_never_overwrites_other_content(tmp_path: Path) -> None:
    """Another program's pool, and any other content: the file stays unchanged."""
    values = VALUES.format(tmp_path / "media")
    design = Design.load("nearpm").with_values(values)
    serve = lambda **options: KvServer("redis", design=design, length=BYTES, **options)  # noqa: E731
    with pm.System(design) as system:
        pool = system.create(0, BYTES, "mine", offload=True)
        pool.close()
    before = (tmp_path / "media").read_bytes()
    with pytest.raises(NearsideError, match="something that is no store"):
        serve()
    assert (tmp_path / "media").read_bytes()[: 31 << 20] == before[: 31 << 20]
    os.unlink(tmp_path / "media")
    with Device(design) as device:
        device.write(b"x" * 512, offset=3 << 20)
    with pytest.raises(NearsideError, match="hold something that is no store"):
        serve()
    with Device(design) as device:
        assert device.read(512, offset=3 << 20)[0] == b"x" * 512
    os.unlink(tmp_path / "media")
    serve().close()
    for other in ({"mechanism": "redo"}, {"length": 2 * BYTES}):
        with pytest.raises(NearsideError, match="allowed are these values, or another file"):
            KvServer("redis", design=design, **{"length": BYTES, **other})
    serve().close()


TABLE = """
import sys
from pathlib import Path
from nearside import Design, tables

what, source, *media = sys.argv[1:]
media = [Path(name) for name in media]
print("begins", flush=True)
if what == "put":
    tables.put(Path(source), media, "u", "k", "fast", Design.load("sort"))
else:
    tables.drop("u", media, "fast", Design.load("sort"))
print("done", flush=True)
"""


@pytest.mark.slow
def test_media_file_tables_survive_their_program(tmp_path: Path) -> None:
    """A table that a killed program put or dropped is complete, or can be put again; others stay."""
    design, media, draw = Design.load("sort"), [tmp_path / f"d{n}" for n in range(2)], random.Random(3)
    source, out = tmp_path / "t.feather", tmp_path / "o.arrow"
    data = pa.table({"k": list(range(60_000)), "text": [f"row {n}" for n in range(60_000)]})
    feather.write_feather(data, source, compression="uncompressed")
    feather.write_feather(data.slice(0, 100), tmp_path / "s.feather", compression="uncompressed")
    tables.put(tmp_path / "s.feather", media, "t", "k", "fast", design)

    def got(name: str) -> pa.Table:
        tables.get(name, media, out, model="fast", design=design)
        return pa.ipc.open_file(out).read_all()

    for what in ("put", "drop", "put"):
        command = [sys.executable, "-c", TABLE, what, source, *media]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            time.sleep(draw.random() * 0.2)
            process.kill()
            done = "done" in process.communicate()[0]
        assert got("t").equals(data.slice(0, 100))
        try:
            there = got("u").equals(data)
        except NearsideError:
            there = False
            assert not (done and what == "put")
        assert not (there and done and what == "drop")
        if what == "put" and not there:
            # Nothing may be left of it.
            with contextlib.suppress(NearsideError):
                tables.drop("u", media, "fast", design)
            tables.put(source, media, "u", "k", "fast", design)
            assert got("u").equals(data)
