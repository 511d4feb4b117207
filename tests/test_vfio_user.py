# SPDX-License-Identifier: Apache-2.0
"""`nearside serve` as a process: its output, clients, and end."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nearside import serve
from nearside.guest import machine

ROOT = Path(__file__).resolve().parent.parent
COMMAND = [sys.executable, "-m", "nearside.cli", "serve"]
FAST = os.environ["NEARSIDE_MODEL"] == "fast"
ENVIRONMENT = os.environ | {"NEARSIDE_ROOT": str(ROOT)}


def start(*arguments: str | Path, sockets: list[Path]) -> subprocess.Popen[str]:
    command = [*COMMAND, *map(str, arguments), *(word for path in sockets for word in ("--socket", str(path)))]
    process = subprocess.Popen(
        command, cwd=sockets[0].parent, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 900  # the design may have to be compiled
    while not all(path.is_socket() for path in sockets):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


def ask(client: socket.socket, command: int, body: bytes) -> bytes:
    client.sendall(struct.pack("<HHIII", 1, command, 16 + len(body), 0, 0) + body)
    _, _, size, flags, error = struct.unpack("<HHIII", client.recv(16, socket.MSG_WAITALL))
    assert (flags, error) == (1, 0)
    return client.recv(size - 16, socket.MSG_WAITALL) if size > 16 else b""


def attach(path: Path) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(600)
    client.connect(str(path))
    ask(client, 1, struct.pack("<HH", 0, 1) + b"{}\0")
    return client


def read32(client: socket.socket, region: int, offset: int) -> int:
    return struct.unpack("<I", ask(client, 9, struct.pack("<QII", offset, region, 4))[16:])[0]


@pytest.mark.slow
@pytest.mark.both
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_vfio_user_two_devices_until_a_signal(tmp_path, number):
    sockets = [tmp_path / "a.sock", tmp_path / "b.sock"]
    media = [tmp_path / "a.img", tmp_path / "b.img"]
    process = start("--json", "--media", media[0], "--media", media[1], sockets=sockets)
    try:
        clients = [attach(path) for path in sockets]
        for client in clients:
            assert read32(client, 7, 8) >> 8 == 0x010802  # an NVMe controller
            assert read32(client, 0, 8) == 0x0001_0400  # NVMe 1.4
            assert read32(client, 4, 0) == 0x4E53_4456  # the status block
        # A store into the PM window, and its load.
        ask(clients[0], 10, struct.pack("<QII", 4096, 2, 8) + b"survives")
        assert ask(clients[0], 9, struct.pack("<QII", 4096, 2, 8))[16:] == b"survives"
    finally:
        process.send_signal(number)
        out, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (0, "")
    assert [device["counters"]["connections"] for device in json.loads(out)] == [1, 1]
    assert [device["build"] for device in json.loads(out)] == ["fast" if FAST else "checked"] * 2
    assert not any(path.exists() for path in sockets)
    assert [path.read_bytes()[4096:4104] for path in media] == [b"survives", bytes(8)]


def test_vfio_user_equal_serial_numbers_are_refused(tmp_path):
    design = tmp_path / "named.toml"
    text = (ROOT / "designs/default.toml").read_text()
    design.write_text(text.replace("[nvme]", '[nvme]\nserial = "bench-1"'))
    sockets = ["--socket", tmp_path / "a.sock", "--socket", tmp_path / "b.sock"]
    command = [*COMMAND, str(design), *map(str, sockets)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=900)
    assert done.returncode != 0
    assert "bench-1" in done.stderr
    assert "nvme.serial" in done.stderr
    assert not (tmp_path / "a.sock").exists()


def test_vfio_user_prints_how_to_attach(tmp_path):
    path = tmp_path / "a.sock"
    process = start(sockets=[path])
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    limit = 60 if FAST else 300
    for part in (
        f'"path":"{path}"',
        "vfio-user-pci",
        "share=on",
        f"io_timeout={limit} nvme_core.admin_timeout={limit}",
    ):
        assert part in out
    assert "Wall-clock" in out


@pytest.mark.slow
@pytest.mark.both
def test_vfio_user_paced_devices_report_how_late_they_were(tmp_path):
    sockets = [tmp_path / "a.sock", tmp_path / "b.sock"]
    process = start("--json", "--paced", "--dilate", "2.5", sockets=sockets)
    try:
        # The doorbells are not mapped: region 0 has no capability.
        with attach(sockets[1]) as client:
            info = ask(client, 5, struct.pack("<IIIIQQ", 32, 0, 0, 0, 0, 0))
            assert struct.unpack_from("<I", info, 4)[0] & 0xC == 0
            begin = time.monotonic()
            values = {read32(client, 0, 8) for _ in range(3)}
            elapsed = time.monotonic() - begin
    finally:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (0, "")
    assert values == {0x0001_0400}
    idle, read = (device["pacing"] for device in json.loads(out))
    assert idle["dilation"] == read["dilation"] == 2.5
    assert (idle["reads"]["count"], read["reads"]["count"], read["completions"]["count"]) == (0, 3, 0)
    errors = read["reads"]
    assert 0 <= errors["p50_ns"] <= errors["p99_ns"] <= errors["max_ns"] <= elapsed * 1e9 / 2.5
    assert errors["late"] <= errors["count"]


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        (["--paced"], ["as fast as modelled", "later than modelled", "interrupts"]),
        (
            ["--paced", "--dilate", "100"],
            ["100 times slower than modelled", "Divide", "divided by 100", "io_timeout=500 "],
        ),
        (["--clock", "time"], ["-plugin ./clock.so,channel=time", '"x-no-posted-writes":true', "tsc_early_khz"]),
    ],
)
def test_vfio_user_prints_what_its_clock_means(options, texts, tmp_path):
    process = start(*options, sockets=[tmp_path / "a.sock"])
    if "--clock" in options:
        assert (tmp_path / "time").is_socket()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (0, "")
    assert [text for text in texts if text not in out] == []
    assert not (tmp_path / "time").exists()


def test_vfio_user_pacing_of_two_devices_is_printed(capsys):
    none = dict.fromkeys(("count", "late"), 0) | dict.fromkeys(
        (f"{name}_ns" for name in ("mean", "p50", "p90", "p99", "p999", "max")), 0.0
    )
    some = none | {"count": 8, "late": 2, "max_ns": 2500.0}
    pacing = {"dilation": 10.0, "tolerance_ns": 1000.0, "set_back_ns": 7e6, "completions": some}
    pacing |= {"interrupts": none, "reads": none}
    serve.print_pacing([("a", pacing), ("b", pacing)])
    printed = capsys.readouterr().out
    lines = [line for line in printed.splitlines() if "b: completions" in line]
    assert len(lines) == 1
    assert "25.00%" in lines[0]
    assert "2500 ns" in lines[0]
    assert "set back by 7000 us" in printed.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--dilate", "3"], "--dilate K: only with --paced"),
        (["--paced", "--clock", "c"], "--clock and --paced: a device runs in simulated time or is paced, not both"),
        (["--paced", "--dilate", "0"], "a dilation of 0: allowed are 0.01 to 100000"),
        (["--paced", "--dilate", "-1"], "a dilation of -1: allowed are 0.01 to 100000"),
        (["--paced", "--dilate", "nan"], "a dilation of NaN: allowed are 0.01 to 100000"),
        (["--paced", "--dilate", "1e9"], "a dilation of 1000000000: allowed are 0.01 to 100000"),
        (["--paced", "--dilate", "fast"], "Invalid value for '--dilate'"),
        (["--clock", "a"], "a: --clock and --socket need different sockets"),
        (["--clock", "none/c"], "none/c: its directory doesn't exist"),
        (["--clock", "t.jsonl", "--trace", "t.jsonl"], "t.jsonl: a trace can't be a media file or a socket, too"),
    ],
)
def test_vfio_user_bad_clocks(arguments, text, tmp_path):
    command = [*COMMAND, "--model", "fast", "--socket", "a", *arguments]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=900)
    assert done.returncode != 0
    assert text in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.glob("a*"))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--paced"], "--paced: only with --time wall"),
        (["--time", "wall", "--dilate", "2"], "--dilate K: only with --paced"),
    ],
)
def test_vfio_user_guest_is_paced_on_the_wall_clock_only(arguments, text, tmp_path):
    command = [*COMMAND[:-1], "guest", "run", *arguments, "--", "true"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=900)
    assert done.returncode != 0
    assert text in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_vfio_user_guest_of_a_slow_device_has_time(tmp_path):
    limits = {None: "io_timeout=30", 1.0: "io_timeout=300", 1000.0: "io_timeout=5000"}
    for dilation, limit in limits.items():
        guest = machine.Guest(tmp_path, tmp_path, [tmp_path / "a.sock"], None, dilation=dilation)
        line = guest.command(tmp_path / "initrd")
        options = line[line.index("-append") + 1].split()
        # The kernel takes the last one.
        assert [option for option in options if "io_timeout" in option][-1] == f"nvme_core.{limit}"


@pytest.mark.slow
def test_vfio_user_bad_arguments(tmp_path):
    (tmp_path / "file").touch()
    for arguments, text in [
        (("--socket", "a", "--socket", "b", "--media", "m"), "2 sockets and 1 media files"),
        (("--socket", "a", "default", "dram"), "1 sockets and 2 designs"),
        (("--socket", "a", "--socket", "a"), "two devices can't share a socket"),
        (("--socket", "a", "--socket", "b", "--media", "m", "--media", "m"), "two devices can't share a media file"),
        (("--socket", "a", "--trace", "t.json", "--trace", "u.json"), "1 sockets and 2 traces: give one file for each"),
        (("--socket", "a", "--socket", "b", "--trace", "t.json"), "2 sockets and 1 traces"),
        (("--socket", "a", "--trace", "t.txt"), "ends in .jsonl"),
        (("--socket", "file"), "file exists, and is not the socket"),
        (("--socket", "none/a"), "none/a: its directory doesn't exist"),
        (("--socket", "a", "none"), "none"),
        ((), "--socket"),
    ]:
        done = subprocess.run(
            [*COMMAND, "--json", *arguments], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=900
        )
        assert done.returncode != 0, arguments
        assert text in done.stderr, (arguments, done.stderr)
        assert len(done.stderr.splitlines()) == 1
    assert (tmp_path / "file").is_file()


def test_vfio_user_unreachable_memory_is_reported(tmp_path):
    path = tmp_path / "a.sock"
    process = start("--json", sockets=[path])
    try:
        with attach(path) as client:
            # QEMU without a shared memory backend sends no file with its memory.
            ask(client, 2, struct.pack("<IIQQQ", 32, 3, 0, 0, 1 << 20))
            refused = struct.pack("<IIQQQ", 32, 3, 0, 0x800, 1 << 20)
            client.sendall(struct.pack("<HHIII", 2, 2, 16 + len(refused), 0, 0) + refused)
            assert struct.unpack("<HHIII", client.recv(16, socket.MSG_WAITALL))[3:] == (0x21, 22)
            # At its end a machine unmaps memory that was never mapped.
            ask(client, 3, struct.pack("<IIQQ", 24, 0, 1 << 40, 4096))
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=600)
    assert process.returncode == 0
    assert "the client's memory is not shared" in err
    assert "share=on" in err
    assert "DMA_MAP of 0x100000 bytes at 0x800 was refused: address, length and offset" in err
    counters = json.loads(out)[0]["counters"]
    assert (counters["refused_maps"], counters["refused_messages"]) == (1, 1)
