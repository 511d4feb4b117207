# SPDX-License-Identifier: Apache-2.0
"""A device and a server with forks and threads: `multiprocessing` forks, and programs end while others wait."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from nearside import Design, Device, NearsideError
from nearside.serve import Server

GOOD = Design.load("fuzz")
PRELUDE = """
import os, sys, time
from pathlib import Path
from nearside import Design, Device, NearsideError, _native
from nearside.serve import Server

def forked(work):
    pid = os.fork()
    if pid == 0:
        work()
        sys.exit(0)  # Python discards all objects
    deadline = time.monotonic() + 60
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(pid, 9)
            sys.exit("the child does not end")
        time.sleep(0.02)

def refused(call):
    try:
        call()
    except NearsideError as error:
        assert f"belongs to process {os.getppid()}" in str(error), error
    else:
        os._exit(1)
"""


def script(text: str, tmp_path: Path) -> None:
    """Runs a function in a separate process, which must end silently with success."""
    command = [sys.executable, "-W", "ignore", "-c", PRELUDE + text]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_process_owns_its_device(tmp_path):
    """A child can't use it, and its end does not affect it. The media file is free after the parent has closed it."""
    script(
        """
device = Device(Design.load("fuzz").with_values("[media]\\nfile = 'm.img'"))
device.write(b"a" * 4096)
bench = _native.DelayBench(Design.load("fuzz").native)

def child():
    for call in (lambda: device.write(b"b" * 512), lambda: device.read(512), lambda: device.now_ns,
                 lambda: device.native.reset(), lambda: bench.measure("read", 100.0, 0.0, 1, 1, 1)):
        refused(call)
    device.shutdown()

forked(child)
forked(lambda: None)
assert device.read(4096)[0] == b"a" * 4096
pid = os.fork()
if pid == 0:
    time.sleep(60)
    os._exit(0)
device.shutdown()
with Device(Design.load("fuzz").with_values("[media]\\nfile = 'm.img'")) as again:
    assert again.read(4096)[0] == b"a" * 4096
os.kill(pid, 9)
os.waitpid(pid, 0)
""",
        tmp_path,
    )


def test_process_child_keeps_no_trace_file(tmp_path):
    """After the parent has closed it, another device can open it."""
    script(
        """
design = Design.load("fuzz")

def held(end):
    device = Device(design, commands="t.jsonl")
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
        os._exit(0)
    try:
        end(device)
        Device(design, commands="t.jsonl").shutdown()
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)

def again(device):
    device.trace_stop()
    device.trace_start("t.jsonl")
    device.trace_stop()
    device.shutdown()

held(lambda device: (device.shutdown(), device.trace_stop()))
held(again)
""",
        tmp_path,
    )


@pytest.mark.slow
@pytest.mark.parametrize("second", ["media", "commands", pytest.param("waveform", marks=pytest.mark.rtl)])
@pytest.mark.parametrize(
    "first", ["media", "commands", pytest.param("waveform", marks=[pytest.mark.rtl, pytest.mark.slow])]
)
def test_process_files_have_one_purpose(tmp_path, first, second):
    """A file that a device uses is refused to another one: here, in another process, and under another name."""
    script(
        f"""
first, second = {first!r}, {second!r}
good = Design.load("fuzz")
Path("link.jsonl").symlink_to("f.jsonl")

def device(what, name):
    if what == "media":
        return Device(good.with_values(f"[media]\\nfile = '{{name}}'"))
    if what == "commands":
        return Device(good, commands=name)
    return Device(good, trace=(name, 0, 1 << 40))

def busy():
    for name in ("f.jsonl", "link.jsonl"):
        try:
            device(second, name)
        except NearsideError as error:
            text = str(error)
            assert name in text and "in another process" in text and "name another file" in text, text
        else:
            os._exit(1)

owner = device(first, "f.jsonl")
owner.write(b"a" * 4096)
before = Path("f.jsonl").read_bytes()
busy()
forked(busy)
if first == "media":
    assert Path("f.jsonl").read_bytes() == before
owner.shutdown()
""",
        tmp_path,
    )


@pytest.mark.rtl
@pytest.mark.parametrize("first", ["media", "commands"])
def test_process_device_file_is_not_its_waveform(tmp_path, first):
    values = "[media]\nfile = 'f.jsonl'" if first == "media" else ""
    script(
        f"""
options = {{}} if {first!r} == "media" else {{"commands": "f.jsonl"}}
try:
    Device(Design.load("fuzz").with_values({values!r}), trace=("f.jsonl", 0, 1000), **options)
except NearsideError as error:
    assert str(error).startswith("f.jsonl: a device has this file"), error
else:
    sys.exit("not refused")
""",
        tmp_path,
    )


@pytest.mark.rtl
@pytest.mark.parametrize("where", ["pipe.jsonl", "none/w.fst"])
def test_process_waveform_is_refused_before_compilation(tmp_path, where):
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(NearsideError, match=r"can't go to a pipe|No such file"):
        Device(GOOD, trace=(str(tmp_path / where), 0, 1000), progress=lambda *_: pytest.fail("it compiles"))


def test_process_owns_its_server(tmp_path):
    """The end of a child ends no server: it still answers, becomes idle, and ends as usual."""
    script(
        """
import socket, struct
server = Server([(Design.load("fuzz"), Path("a.sock"))])

def greet():
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(600)
    client.connect("a.sock")
    body = struct.pack("<HH", 0, 1) + b"{}\\0"
    client.sendall(struct.pack("<HHIII", 1, 1, 16 + len(body), 0, 0) + body)
    _, command, size, _, _ = struct.unpack("<HHIII", client.recv(16, socket.MSG_WAITALL))
    assert command == 1
    client.recv(size - 16, socket.MSG_WAITALL)
    client.close()

def child():
    refused(server.counters)
    refused(lambda: server.wait(0))
    server.native.stop()

forked(child)
forked(lambda: None)
assert Path("a.sock").is_socket()
greet()
before = os.times()
time.sleep(1)
after = os.times()
assert after.user + after.system - before.user - before.system < 0.5, "it does not rest"
assert server.counters()[0]["connections"] == 1
server.native.stop()
assert not Path("a.sock").exists()
""",
        tmp_path,
    )


@pytest.mark.parametrize("by", ["thread", "signal"])
def test_process_server_is_stopped_during_a_wait(tmp_path, by):
    with Server([(GOOD, tmp_path / "a.sock")]) as server:
        timer = threading.Timer(0.3, server.native.stop)
        if by == "thread":
            timer.start()
        else:
            before = signal.signal(signal.SIGALRM, lambda *_: server.native.stop())
            signal.setitimer(signal.ITIMER_REAL, 0.3)
        begun = time.monotonic()
        server.wait(60)
        assert time.monotonic() - begun < 30
        if by == "thread":
            timer.join()
        else:
            signal.signal(signal.SIGALRM, before)
        assert server.counters() == []
        assert not (tmp_path / "a.sock").exists()


def test_process_python_runs_while_a_server_waits_for_its_directory(tmp_path):
    """For instance the thread that closes it: it would not get Python's lock."""
    directory = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(directory, fcntl.LOCK_EX)
    timer = threading.Timer(0.3, os.close, [directory])
    timer.start()
    begun = time.monotonic()
    with Server([(GOOD, tmp_path / "a.sock")]):
        assert time.monotonic() - begun < 8
    timer.join()


@pytest.mark.rtl  # the fast model is done before another thread has its turn
@pytest.mark.parametrize("name", ["flush", "set_priority", "shutdown"])
def test_process_python_runs_while_a_device_simulates(name):
    """Threads alternate only where a call releases the lock: the switch interval is too long for any other switch."""
    arguments = [0, "medium"] if name == "set_priority" else []
    turns, end, interval = [0], threading.Event(), sys.getswitchinterval()

    def work():
        while not end.is_set():
            turns[0] += 1
            time.sleep(1e-5)

    thread = threading.Thread(target=work)
    device = Device(GOOD, skip_idle=False)
    try:
        sys.setswitchinterval(600)
        thread.start()
        others = 0
        for _ in range(1 if name == "shutdown" else 100):
            before = turns[0]
            getattr(device.native, name)(*arguments)
            others += turns[0] - before
        assert others > 0
    finally:
        end.set()
        sys.setswitchinterval(interval)
        thread.join()
