# SPDX-License-Identifier: Apache-2.0
"""A stock guest in simulated time: the same twice, the device's own latencies, and ends of all kinds."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from nearside import Design, NearsideError
from nearside.guest import check, kit, machine
from nearside.guest.job import Job, run_job

pytestmark = pytest.mark.slow

READS = 100
FIO = (
    "fio --name=t --filename=/dev/nvme0n1 --direct=1 --bs=4k --rw=randread --ioengine=psync --size=8m "
    f"--number_ios={READS} --randseed=1 --thread --output-format=json"
)


@pytest.fixture(scope="module", autouse=True)
def _kit():
    try:
        kit.install_kit(quiet=True)
    except kit.NoKit as reason:
        pytest.skip(str(reason))


def run(words: list[str], profile: str = "dram", **options):
    design = Design.load("default").with_values(f"[media]\nprofile = '{profile}'")
    return run_job(Job(words), design, model="fast", timeout_s=900, **options)


def qemu_pids() -> list[int]:
    """The emulators that this process has started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
            line = entry.with_name("cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and b"qemu-system" in line:
            found.append(int(entry.parent.name))
    return found


class Interference(threading.Thread):
    """Stops and continues the emulator at irregular times."""

    def __init__(self) -> None:
        super().__init__()
        self.ended, self.stops = threading.Event(), 0

    def run(self) -> None:
        while not self.ended.wait(0.05 + 0.013 * (self.stops % 7)):
            for pid in qemu_pids():
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.02)
                os.kill(pid, signal.SIGCONT)
                self.stops += 1


@pytest.fixture(scope="module")
def alone():
    return run(FIO.split())


def fio_ns(report) -> float:
    return json.loads(report["output"])["jobs"][0]["read"]["clat_ns"]["mean"]


def device_ns(report) -> float:
    return next(row["mean_ns"] for row in report["commands"] if row["command"] == "Read" and row["count"] >= READS)


def test_guest_time_is_the_same_on_a_disturbed_machine(alone):
    disturbance = Interference()
    disturbance.start()
    again = run(FIO.split())
    disturbance.ended.set()
    disturbance.join()
    assert disturbance.stops > 10
    for key in ("clock", "output", "commands", "counters"):
        assert again[key] == alone[key], key


def test_guest_time_measures_the_device(alone):
    slow = run(FIO.split(), "pcm")
    assert device_ns(slow) > device_ns(alone) + 100
    # The rest is the guest's own code, whatever the medium. Caches of the CPU are not modelled, so
    # only the phase of the device's clock differs.
    software = [fio_ns(report) - device_ns(report) for report in (alone, slow)]
    assert abs(software[0] - software[1]) < 8, software


def test_guest_saves_files_and_passes_the_status(tmp_path):
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\necho begun\nmkdir sub\necho $1 > sub/made\ncat job.sh > copy\nexit 7\n")
    report = run([str(script), "text"], results=tmp_path / "results")
    assert (report["status"], report["output"]) == (7, "begun\n")
    assert sorted(report["files"]) == ["copy", "sub/made"]
    assert (tmp_path / "results/sub/made").read_text() == "text\n"
    assert (tmp_path / "results/copy").read_text() == script.read_text()


def test_guest_that_panics_is_one_line():
    with pytest.raises(NearsideError, match="the guest's kernel has panicked: Kernel panic - not syncing: sysrq"):
        run(["sh", "-c", "echo c > /proc/sysrq-trigger"])
    assert not qemu_pids()


def test_guest_without_memory_says_so():
    report = run(["sh", "-c", "tail /dev/zero; echo ended $?"], memory_mib=384)
    assert report["out_of_memory"]
    with pytest.raises(NearsideError, match="the guest has too little memory for its file system: --memory MIB"):
        run(["true"], memory_mib=200)


def test_guest_whose_emulator_is_killed_is_one_line():
    def kill() -> None:
        while not (pids := qemu_pids()):
            time.sleep(0.05)
        time.sleep(1)
        os.kill(pids[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(NearsideError, match="QEMU ended with signal 9"):
        run(["sleep", "1000"])
    thread.join()


def test_guest_that_takes_too_long_is_ended():
    began = time.monotonic()
    with pytest.raises(NearsideError, match="has not ended within 2 s of wall-clock time"):
        run_job(Job(["sleep", "100000"]), Design.load("default"), model="fast", timeout_s=2)
    assert time.monotonic() - began < 60
    assert not qemu_pids()


def test_guest_clock_refuses_what_it_can_not_do(tmp_path):
    guest = machine.Guest(kit.install_kit(), tmp_path, [], tmp_path / "clock")
    words = guest.command(tmp_path / "initrd")
    two = [word if word != "1" else "2" for word in words]
    process = machine.start(two, tmp_path / "errors")
    assert process.wait(60) != 0
    assert "nearside clock: only one CPU is supported: -smp 1" in (tmp_path / "errors").read_text()
    at = words.index("--preload")
    process = machine.start(words[:at] + words[at + 2 :], tmp_path / "errors")
    assert process.wait(60) != 0
    assert "nearside clock: the object has to be preloaded, too" in (tmp_path / "errors").read_text()


def test_guest_check_finds_a_working_clock():
    found = check.check_clock(quiet=True)
    assert found["same_twice"]
    assert abs(found["software_difference_ns"]) < 8
