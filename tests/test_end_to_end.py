# SPDX-License-Identifier: Apache-2.0
"""The whole path: driver, link, device, DRAM, media, and back."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from nearside import Design, Device, LateReadsWarning, NearsideError

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def device():
    return Device(Design.load("default"))


@pytest.mark.both
def test_device_describes_itself(device):
    info = device.info()
    assert info["controller"]["nvme_version"] == "1.4"
    assert info["namespace"]["bytes"] == info["device"]["media_bytes"] == 1 << 30
    assert info["queues"]["io_queues"] == 16
    names = [b["name"] for b in info["device"]["blocks"]]
    assert names.count("nvm_delay") == info["device"]["channels"] == 2
    assert {"nvme_ctrl", "pm_window"} <= set(names)


def test_device_names_are_unique_in_a_process(device):
    def names(device):
        info = device.info()
        return info["controller"]["serial"], info["controller"]["subnqn"], info["namespace"]["nguid"]

    with Device(Design.load("default")) as other:
        second = names(other)
        assert all(a != b for a, b in zip(names(device), second, strict=True))
    # The next device at this position has the same identity; a serial number in the design is kept.
    with Device(Design.load("default")) as other:
        assert names(other) == second
    with Device(Design.load("default").with_values('[nvme]\nserial = "bench-1"')) as other:
        assert names(other)[:2] == ("bench-1", "nqn.2026-11.example.nearside:nvme_ctrl:snbench-1")


def test_device_profile_region_applies_to_the_media(device):
    """Only its page is slow, not its neighbours on the media and on its channel."""
    region = "[[region]]\nfirst = 4096\nbytes = 4096\n[region.read]\nbase_ns = 5000.0\n[region.write]\n"
    device.delay_set(f'name = "x"\ndescription = "y"\n[read]\nbase_ns = 100.0\n{region}')
    try:
        pages = [0, 4096, 8192, 12288]
        means = [
            device.workload(queues=1, depth=1, commands=8, start=at, span=4096)["latency"]["mean_ns"] for at in pages
        ]
        assert means[1] > 4000 + min(means)
        assert max(means[0], *means[2:]) < 1000 + min(means)
    finally:
        device.delay_set("dram")


@pytest.mark.both
def test_device_namespaces_are_listed_and_formatted_separately():
    with Device(Design.load("namespaces")) as device:
        info = device.info()
        assert info["controller"]["namespaces"] == 5
        sizes = {1: 960 << 20, 2: 33 << 20, 4: 1 << 20, 5: 1001 << 9}
        assert {n["nsid"]: n["bytes"] for n in info["namespaces"]} == sizes
        for nsid in sizes:
            device.select_namespace(nsid)
            assert device.info()["namespace"]["nsid"] == nsid
            device.write(bytes([nsid]) * 4096)
        with pytest.raises(NearsideError, match="active namespaces are 1, 2, 4, 5"):
            device.select_namespace(3)
        device.format(2)
        with pytest.raises(NearsideError, match="Invalid Field"):
            device.format(4, erase="cryptographic")
        with pytest.raises(ValueError, match="allowed are"):
            device.format(4, erase="twice")
        for nsid, byte in ((1, 1), (2, 0), (4, 4), (5, 5)):
            device.select_namespace(nsid)
            assert device.read(4096)[0] == bytes([byte]) * 4096


@pytest.mark.both
@pytest.mark.parametrize("latency", [10, 15, 20, 5000])
def test_device_data_round_trip_with_any_link_lengths(latency):
    """A device may run ahead of its host by the latency of the link: a few cycles, or many."""
    link = f"[pcie]\ndevice_phy_ns = {latency - 5}\npropagation_ns = 5\nroot_phy_ns = 0\n"
    with Device(Design.load("default").with_values(link)) as device:
        data = random.Random(latency).randbytes(70_000)
        device.write(data, queues=3, depth=4)
        assert device.read(len(data), queues=3, depth=4)[0] == data


@pytest.mark.parametrize("length", [1, 511, 512, 4096, 100_001])
def test_device_data_round_trip(device, length):
    data = random.Random(length).randbytes(length)
    report = device.write(data, offset=1 << 20, queues=3, depth=4, chunk=8192)
    assert report["time"] == "simulated"
    back, _ = device.read(length, offset=1 << 20, queues=5, depth=2, chunk=4096)
    assert hashlib.sha256(back).digest() == hashlib.sha256(data).digest()


@pytest.mark.both
def test_device_mixed_workload_on_all_queues_is_verified(device):
    report = device.workload(
        read_percent=50, min_bytes=512, max_bytes=32 << 10, queues=16, depth=4, commands=400, span=1 << 20, verify=True,
        scattered=True, list_offset=4088,
    )  # fmt: skip
    assert report["commands"] == 400
    assert report["verified_bytes"] > 100_000


@pytest.mark.both
def test_device_deallocates_zeroes_and_compares_blocks(device):
    base, size = 32 << 20, 256 << 10
    data = random.Random(5).randbytes(size)
    device.write(data, offset=base)
    device.verify(size, offset=base)
    assert device.compare(data, offset=base)
    for at in (0, size // 2 + 77, size - 1):
        assert not device.compare(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :], offset=base)
    device.deallocate((base + 4096, 8192), (base + 512 * 101, 512))
    device.write_zeroes(100 << 10, offset=base + (64 << 10))
    want = bytearray(data)
    for at, length in ((4096, 8192), (512 * 101, 512), (64 << 10, 100 << 10)):
        want[at : at + length] = bytes(length)
    assert device.read(size, offset=base)[0] == want
    with pytest.raises(NearsideError, match="reach beyond the namespace"):
        device.deallocate((base, 512), (1 << 30, 512))
    with pytest.raises(NearsideError, match="512"):
        device.write_zeroes(100, offset=base)
    assert device.compare(bytes(want), offset=base)


def test_device_run_is_reproducible_by_seed():
    reports = []
    for _ in range(2):
        with Device(Design.load("default")) as fresh:
            reports.append(fresh.workload(commands=200, read_percent=50, seed=9))
    assert reports[0] == reports[1]


def test_device_window_and_namespace_hold_the_same_bytes(device):
    data = bytes(range(64))
    device.pm_write(4096 + 3, data)
    assert device.pm_read(4096 + 3, 64) == data
    block, _ = device.read(512, offset=4096)
    assert block[3:67] == data


@pytest.mark.both
def test_device_window_streams(device):
    device.delay_set("optane-dcpmm")
    job = {"span": 1 << 20, "seed": 5}
    for pattern in ("random", "sequential"):
        stores = device.pm_stream("store", count=3000, pattern=pattern, **job)
        assert stores["bytes"] == 3000 * 64
        assert stores["link"]["down"]["payload"] == 3000 * 64
        loads = device.pm_stream("load", count=1000, pattern=pattern, verify=True, **job)
        assert loads["latency"]["count"] == 1000
        assert loads["bandwidth_gb_s"] == pytest.approx(64 * 64 / loads["latency"]["mean_ns"], rel=0.1)
    one = device.pm_stream("load", count=50, in_flight=1, **job)
    assert one["bandwidth_gb_s"] == pytest.approx(64 / one["latency"]["mean_ns"], rel=0.01)
    device.pm_write(64, b"x")
    with pytest.raises(NearsideError, match="holds something else at 0x40 than was stored"):
        device.pm_stream("load", count=40, pattern="sequential", verify=True, in_flight=16, **job)
    # Nothing of it stays in flight.
    data = bytes(range(256)) * 32
    device.pm_write(1 << 20, data)
    read = device.pm_stream("load", count=20, bytes=4096, in_flight=8, start=1 << 20, span=1 << 20)
    assert read["bytes"] == 20 * 4096
    assert device.pm_read(1 << 20, 8192) == data


@pytest.mark.both
def test_device_window_chains(device):
    """Each load's address is the result of the previous one; a long chain repeats its places."""
    device.delay_set("optane-dcpmm")
    for count, span in ((200, 1 << 20), (50, 640)):
        device.delay_counters(clear=True)
        found = device.pm_stream("load", pattern="chain", in_flight=1, count=count, span=span, seed=5)
        assert found["latency"]["count"] == count
        assert found["elapsed_ns"] == pytest.approx(count * found["latency"]["mean_ns"], rel=1e-6)
        sides = [channel["read"] for channel in device.delay_counters()]
        assert sum(side["transactions"] for side in sides) == count + 1  # one waits for the stores
    for wrong in ({"in_flight": 2}, {"in_flight": 1, "bytes": 4}, {"in_flight": 1, "verify": True}):
        with pytest.raises(NearsideError, match="a chain is of loads, one in flight, of at least 8 bytes"):
            device.pm_stream("load", pattern="chain", **wrong)
    with pytest.raises(ValueError, match='"random", "chain"'):
        device.pm_stream("load", pattern="rings")


@pytest.mark.both
@pytest.mark.parametrize("pattern", ["random", "chain"])
def test_device_load_latency_is_profile_plus_link(device, pattern):
    """The time of the device's stages is part of the profile's latency, not in addition to it."""
    values = device.design.values
    link, host = values["pcie"], values["host"]
    way = link["device_phy_ns"] + link["propagation_ns"] + link["root_phy_ns"] + host["mmio_ns"]
    pause = 1000 if pattern == "random" else 0
    for target in (305, 451, 1000.5):  # more than a load takes that meets a refresh
        device.delay_set_latency(target, 94)
        found = device.pm_stream("load", pattern=pattern, in_flight=1, count=400, pause_ns=pause, seed=5)
        expected = 2 * way + (24 + 64 + 20) / found["link"]["gb_s"] + target
        # The loads of a chain arrive at one distance from the clock edge, up to half a cycle off
        # the mean.
        assert abs(found["latency"]["mean_ns"] - expected) < (1 if pattern == "random" else 2.5)


def test_device_profile_too_fast_for_the_dram_is_reported():
    """Reported on selection: in the design, by name, by values. Profiles that the DRAM meets are silent."""
    design = Design.load("default")
    with pytest.warns(LateReadsWarning, match="media profile stt-mram asks for reads of 64 bytes in 60 ns"):
        device = Device(design.with_values("[media]\nprofile = 'stt-mram'"))
    assert (device.late_reads["dram_ns"], device.late_reads["path_ns"]) == (72, 26)
    with device:
        with pytest.warns(LateReadsWarning, match="profile reram .* all reads come late"):
            device.delay_set("reram")
        with pytest.warns(LateReadsWarning, match="30 ns"):
            device.delay_set_latency(30, 500)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for profile in ("dram", "pcm", "optane-dcpmm", "nand"):
                device.delay_set(profile)
                assert device.late_reads is None
            device.delay_set_latency(98, 1)
        # The least latency of an idle device: that of its fastest read.
        device.delay_set("dram")
        for pattern, key in (("random", "dram_ns"), ("sequential", "open_row_ns")):
            device.delay_counters(clear=True)
            span = 1 << 29 if pattern == "random" else 4096
            device.pm_stream("load", in_flight=1, count=300, pattern=pattern, span=span)
            fastest = [channel["read"]["min_ns"] for channel in device.delay_counters()]
            assert min(ns for ns in fastest if ns is not None) == design.late_reads("reram")[key]


@pytest.mark.both
def test_device_timing_changes_at_run_time(device):
    device.delay_set("dram")
    job = {"queues": 1, "depth": 1, "commands": 60, "min_bytes": 512}
    before = device.workload(**job)["latency"]["mean_ns"]
    device.delay_set_latency(2000, 1000)
    after = device.workload(**job)["latency"]["mean_ns"]
    assert after - before == pytest.approx(2000, abs=200)
    timing = device.delay_get()
    assert [c["read"]["base_ns"] for c in timing] == [2000, 2000]
    device.delay_set_latency(100, 100, channel=1)
    assert [c["read"]["base_ns"] for c in device.delay_get()] == [2000, 100]
    device.delay_set("dram")
    assert not any(c["enabled"] for c in device.delay_get())


def test_device_counters_match_the_traffic(device):
    device.delay_set("optane-dcpmm")
    device.delay_counters(clear=True)
    device.workload(queues=1, depth=1, commands=50)
    reads = [c["read"] for c in device.delay_counters()]
    assert sum(c["beats"] for c in reads) == 50 * 64
    assert all(c["min_ns"] >= 305 - 4 for c in reads if c["transactions"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.workload(queues=17), "queues = 17: allowed are 1 to 16"),
        (lambda d: d.workload(min_bytes=1000), "multiples of 512"),
        (lambda d: d.write(b"x", offset=5), "offset = 5: allowed are multiples of 512"),
        (lambda d: d.read(1, offset=1 << 30), "beyond the namespace"),
        (lambda d: d.write(b"x", offset=1 << 30), "beyond the namespace"),
        (lambda d: d.delay_set("core"), "no media profile"),
        (lambda d: d.delay_set("pcm", channel=2), "channel = 2: allowed are 0 to 1"),
        (lambda d: d.pm_read(1 << 30, 1), "beyond the PM window"),
    ],
)
def test_device_argument_errors_are_one_line(device, call, message):
    with pytest.raises(NearsideError) as error:
        call(device)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_device_stopped_run_leaves_the_interpreter_intact(device):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        device.workload(commands=100_000, progress=stop)
    device.reset()
    assert device.workload(commands=100)["commands"] == 100


@pytest.mark.both
def test_device_media_file_survives(tmp_path):
    path = tmp_path / "media.img"
    design = Design.load("default").with_values(f'[media]\nfile = "{path}"\n')
    data = random.Random(3).randbytes(5000)
    with Device(design) as first:
        first.write(data, offset=8192)
        first.flush()
    with Device(design) as second:
        assert second.read(5000, offset=8192)[0] == data


def test_device_media_file_belongs_to_one_device(tmp_path):
    path, link = tmp_path / "media.img", tmp_path / "link.img"
    design = Design.load("default").with_values(f'[media]\nfile = "{path}"\n')

    def fails() -> None:
        with Device(design) as first:
            link.hardlink_to(path)
            for name in (path, link):
                with pytest.raises(NearsideError, match=f"{name}: another device has it"):
                    Device(design.with_values(f'[media]\nfile = "{name}"\n'))
            first.write(bytes(512))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    with Device(design) as second:  # however the first one has ended
        assert second.read(512)[0] == bytes(512)


FULL_DISK = """
import os
from nearside import Design, Device, NearsideError

device = Device(Design.load("default").with_values("[media]\\nfile = 'small/media.img'\\n"))
for what in (lambda: device.write(b"x" * (1 << 20)), lambda: device.write(b"x" * 65536, offset=1 << 20)):
    try:
        what()
    except NearsideError as error:
        print(error)
device.pm_write(1 << 21, b"lost")
device.write(bytes(512))
print(device.read(512)[0] == bytes(512))
"""


def test_device_full_disk_ends_in_write_faults(tmp_path):
    """A file system of 300 KiB, in a separate mount namespace."""
    (tmp_path / "small").mkdir()
    mount = 'mount -t tmpfs -o size=300k none small && exec "$0" -c "$1"'
    command = ["unshare", "-rm", "sh", "-c", mount, sys.executable, FULL_DISK]
    if shutil.which("unshare") is None or subprocess.run([*command[:2], "true"], check=False).returncode:
        pytest.skip("no name spaces here")
    env = os.environ | {"NEARSIDE_ROOT": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert len(lines) == 3, done.stderr
    assert all("Write Fault" in line for line in lines[:2])
    assert lines[2] == "True"
    assert "small/media.img: can't write at" in done.stderr


CUT_MEDIA = """
import faulthandler, os, signal, sys
from nearside import Design, Device, NearsideError

case = sys.argv[1]

def disturb(*_):
    if case == "while it works" or case == "after":
        faulthandler.enable()
    if case == "before, and gone after":
        faulthandler.disable()
    if case == "after, and gone":
        faulthandler.enable()
        device.now_ns
        faulthandler.disable()
    if case == "python":
        signal.signal(signal.SIGBUS, lambda *_: print("heard"))
    if case in ("python", "sent"):
        os.kill(os.getpid(), signal.SIGBUS)
    os.truncate("media.img", 0)

if case.startswith("before"):
    faulthandler.enable()
device = Device(Design.load("default").with_values("[media]\\nfile = 'media.img'\\n"))
device.write(b"x" * 65536)
if case != "while it works":
    disturb()
try:
    device.read(65536, progress=disturb if case == "while it works" else None)
    device.read(65536)
except NearsideError as error:
    print(error, flush=True)
if case == "sent later":
    os.kill(os.getpid(), signal.SIGBUS)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    ["before", "before, and gone after", "after", "after, and gone", "while it works", "python", "sent", "sent later"],
)
def test_device_media_file_may_shrink_with_another_signal_handler(tmp_path, case):
    env = os.environ | {"NEARSIDE_ROOT": str(ROOT)}
    command = [sys.executable, "-c", CUT_MEDIA, case]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600)
    # A signal from elsewhere is not the device's concern.
    assert done.returncode == (-signal.SIGBUS if case.startswith("sent") else 0), done.stderr
    assert ("heard" in done.stdout) == (case == "python")
    assert ("Unrecovered Read Error" in done.stdout) == (case != "sent")
    assert "Fatal Python error" not in done.stderr


def test_device_after_shutdown_reports_it():
    device = Device(Design.load("default"))
    device.shutdown()
    device.shutdown()
    with pytest.raises(NearsideError, match="shut down"):
        device.info()


@pytest.mark.both
def test_device_interrupt_driven_host():
    with (
        Device(Design.load("default").with_values('[cpu]\nprofile = "kernel"\n')) as slow,
        Device(Design.load("default")) as fast,
    ):
        job = {"queues": 2, "depth": 2, "commands": 100, "verify": True, "read_percent": 50, "span": 1 << 20}
        assert slow.workload(**job)["latency"]["mean_ns"] > fast.workload(**job)["latency"]["mean_ns"] + 2000


@pytest.mark.both
@pytest.mark.slow
def test_device_demo_end_to_end(tmp_path):
    path = tmp_path / "input.bin"
    path.write_bytes(random.Random(5).randbytes(300_001))
    command = [sys.executable, "-m", "nearside.cli", "demo", str(path), "--json"]
    env = os.environ | {"NEARSIDE_ROOT": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600, check=True)
    doc = json.loads(done.stdout)
    assert doc["intact"]
    assert {t["sha256"] for t in doc["trips"]} == {hashlib.sha256(path.read_bytes()).hexdigest()}
    assert json.loads((tmp_path / "results" / "demo.json").read_text())["figures"] == doc["figures"]
    assert (tmp_path / "results" / "demo.png").read_bytes().startswith(b"\x89PNG")
