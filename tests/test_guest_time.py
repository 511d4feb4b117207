# SPDX-License-Identifier: Apache-2.0
"""A stock guest in simulated time, and on a paced device: the same twice, the device's own latencies, ends."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from nearside import Design, NearsideError
from nearside.cli.app import app
from nearside.guest import check, job, kit, machine
from nearside.guest.job import Job, Setup, run_job
from nearside.guest.machine import CpuModel
from nearside.guest.report import job_commands, print_report
from typer.testing import CliRunner

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


def run(
    words: list[str],
    profile: str = "dram",
    devices: int = 1,
    memory_mib: int = 512,
    images=(),
    cpus: int = 1,
    **options,
):
    design = Design.load("default").with_values(f"[media]\nprofile = '{profile}'")
    setup = Setup([design] * devices, "fast", CpuModel.load(), memory_mib, cpus=cpus)
    return run_job(Job(words, images=images), setup, timeout_s=900, **options)


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


@pytest.fixture(scope="module")
def slow():
    """The same on a device with slower media."""
    return run(FIO.split(), "pcm")


def fio_ns(output: str) -> float:
    return json.loads(output)["jobs"][0]["read"]["clat_ns"]["mean"]


def device_ns(report) -> float:
    [reads] = job_commands(report, "Read")
    assert reads["count"] == READS
    assert reads["mean_ns"] == pytest.approx(reads["device_ns"] + reads["link_ns"])
    return reads["mean_ns"]


def disturbed(monkeypatch, words: list[str], cpus: int = 1):
    """A run while the emulator is stopped again and again, and its threads wait at other places."""
    monkeypatch.setattr(job, "Guest", functools.partial(machine.Guest, jitter=7))
    disturbance = Interference()
    disturbance.start()
    report = run(words, cpus=cpus)
    disturbance.ended.set()
    disturbance.join()
    assert disturbance.stops > 10
    return report


def test_guest_time_is_the_same_on_a_disturbed_machine(alone, monkeypatch):
    again = disturbed(monkeypatch, FIO.split())
    for key in ("clock", "output", "devices"):
        assert again[key] == alone[key], key


def test_guest_time_of_two_cpus_is_the_same_on_a_disturbed_machine(alone, monkeypatch):
    count = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done"
    clock = "sed -n 's/^now at \\([0-9]*\\) nsecs/\\1/p' /proc/timer_list"
    fio = f"{FIO} --numjobs=2 --group_reporting"
    words = ["sh", "-c", f"nproc; count() {{ {count}; }}; {clock}; count; {clock}; count & count; wait; {clock}; {fio}"]
    quiet = run(words, cpus=2)
    again = disturbed(monkeypatch, words, cpus=2)
    for key in ("clock", "output", "devices"):
        assert again[key] == quiet[key], key
    assert (quiet["status"], quiet["cpus"]) == (0, 2)
    *numbers, found = quiet["output"].split("\n", 4)
    cpus, begin, middle, end = map(int, numbers)
    one, both = middle - begin, end - middle
    assert cpus == 2
    assert one > 1_000_000
    assert 0.9 * one < both < 1.2 * one, "the CPUs run at the same time"
    assert json.loads(found)["jobs"][0]["read"]["total_ios"] == 2 * READS
    # A thread does not wait for the other one's code. On one CPU it does, for 800 ns.
    assert abs(fio_ns(found) - fio_ns(alone["output"])) < 300


def test_guest_time_measures_the_device(alone, slow):
    assert device_ns(slow) > device_ns(alone) + 100
    # The rest is the guest's own code, whatever the medium. Caches of the CPU are not modelled, so
    # only the phase of the device's clock differs.
    software = [fio_ns(report["output"]) - device_ns(report) for report in (alone, slow)]
    assert abs(software[0] - software[1]) < 8, software


def test_guest_on_a_paced_device_measures_at_least_the_modelled_latency(slow, tmp_path, capsys):
    """Nothing is early, however slow or fast this machine is."""
    dilation, trace = 20.0, tmp_path / "trace.jsonl"
    setup = Setup([Design.load("default").with_values("[media]\nprofile = 'pcm'")], "fast", dilation=dilation)
    report = run_job(Job(FIO.split()), setup, trace=trace, timeout_s=900)
    assert report["status"] == 0
    commands = [json.loads(line) for line in trace.read_text().splitlines()]
    times = [command["times_ps"].values() for command in commands if command["command"] == "Read"]
    least_ns = min(max(span) - min(span) for span in times) / 1e3
    measured = json.loads(report["output"])["jobs"][0]["read"]["clat_ns"]["min"]
    assert measured >= dilation * least_ns
    # The device is the one of simulated time. Single reads wait for a refresh of the DRAM.
    [[paced], [simulated]] = (job_commands(one, "Read") for one in (report, slow))
    assert min(paced["count"], simulated["count"]) >= READS
    assert paced["p50_ns"] == pytest.approx(simulated["p50_ns"], rel=0.01)
    pacing = report["devices"][0]["pacing"]
    assert pacing["dilation"] == dilation
    assert pacing["completions"]["count"] >= READS
    assert pacing["interrupts"]["count"] >= READS
    print_report(report, tmp_path)
    printed = capsys.readouterr().out
    assert "as modelled" in printed
    assert "Divide what the job has measured by 20." in printed


def test_guest_has_devices_images_phases_files_and_a_status(tmp_path):
    image = tmp_path / "data"
    (image / "sub").mkdir(parents=True)
    (image / "sub/words").write_text("some words\n" * 1000)
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/sh\n"
        "cmp /image/data/sub/words words && ! touch /image/data/new 2>/dev/null && echo read-only\n"
        "mark reads\ndd if=/dev/nearside0n1 of=/dev/null bs=4k count=7 iflag=direct 2>/dev/null\n"
        "mark 'two words'\ndd if=/dev/zero of=/dev/nearside1n1 bs=4k count=5 oflag=direct 2>/dev/null\n"
        "mkdir sub\necho $2 > sub/made\ncat job.sh > copy\nexit 7\n"
    )
    (tmp_path / "words").write_bytes((image / "sub/words").read_bytes())
    words = [str(script), str(tmp_path / "words"), "text"]
    report = run(words, devices=2, images=[image], results=tmp_path / "results")
    assert (report["status"], report["output"]) == (7, "read-only\n")
    assert sorted(report["files"]) == ["copy", "sub/made"]
    assert (tmp_path / "results/sub/made").read_text() == "text\n"
    assert (tmp_path / "results/copy").read_text() == script.read_text()
    found = [
        {phase["name"]: {row["command"]: row["count"] for row in phase["commands"]} for phase in device["phases"]}
        for device in report["devices"]
    ]
    assert [device["name"] for device in report["devices"]] == ["nearside0", "nearside1", "nearside2"]
    assert (found[0]["reads"], found[0]["two words"]) == ({"Read": 7}, {})
    assert (found[1]["reads"], found[1]["two words"]) == ({}, {"Write": 5})
    assert found[2]["job"].keys() == {"Read"}


def test_guest_image_and_cpu_errors_name_what_is_allowed(tmp_path):
    with pytest.raises(NearsideError, match="no folder"):
        run(["true"], images=[tmp_path / "none"])
    (tmp_path / "a b").mkdir()
    with pytest.raises(NearsideError, match="the name of an image has no spaces"):
        run(["true"], images=[tmp_path / "a b"])
    (tmp_path / "1/same").mkdir(parents=True)
    (tmp_path / "2/same").mkdir(parents=True)
    with pytest.raises(NearsideError, match="two images are called same"):
        run(["true"], images=[tmp_path / "1/same", tmp_path / "2/same"])
    with pytest.raises(NearsideError, match=r"allowed is a profile with the table \[guest\]: kernel, or a file"):
        CpuModel.load("polled")


@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.long)])
def test_guest_that_is_interrupted_keeps_what_there_is(tmp_path, times):
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/sh\ntrap 'echo kept > out; exit 1' INT\ndd if=/dev/nvme0n1 of=/dev/null bs=4k count=9 iflag=direct\n"
        "echo ready\nwhile :; do sleep 1000; done\n"
    )
    words = ["guest", "run", "--model", "fast", "--json", "--", str(script)]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "NEARSIDE_RESULTS": str(tmp_path / "results"), "TMPDIR": str(scratch)}
    command = [sys.executable, "-m", "nearside", *words]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 600
    while not any(b"ready" in port.read_bytes() for port in scratch.glob("*/serial1")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    if times == 2:
        process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=600)
    assert "interrupting the job" in errors
    report = json.loads(output)
    assert (process.returncode, report["partial"], report["status"]) == (130, True, 130)
    phases = {phase["name"]: phase["commands"] for phase in report["devices"][0]["phases"]}
    reads = [row["count"] for rows in phases.values() for row in rows if row["command"] == "Read"]
    assert sum(reads) >= 9
    if times == 1:
        assert report["files"] == ["out"]
        assert (tmp_path / "results/guest/out").read_text() == "kept\n"
    assert not list(scratch.iterdir())


def start_cli(scratch: Path, *words: str) -> subprocess.Popen[str]:
    """A command of nearside whose scratch files are in a folder."""
    environment = {**os.environ, "NEARSIDE_RESULTS": str(scratch.parent / "results"), "TMPDIR": str(scratch)}
    command = [sys.executable, "-m", "nearside", "guest", *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)


def wait_for_file(scratch: Path, pattern: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 600
    while not list(scratch.glob(pattern)):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)


@pytest.mark.long
def test_guest_runs_from_folders_with_separators_in_their_names(tmp_path, monkeypatch):
    # The name of a socket is shorter than this test's folder.
    short = tempfile.TemporaryDirectory(prefix="n")
    parts, scratch, spaced = tmp_path / "kit of mine, too", Path(short.name) / "s,", Path(short.name) / "s s"
    parts.symlink_to(kit.folder())
    scratch.mkdir()
    spaced.mkdir()
    monkeypatch.setenv("NEARSIDE_GUEST", str(parts))
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    with pytest.raises(NearsideError, match="the guest switched off"):
        run(["poweroff", "-f"])
    monkeypatch.setattr(tempfile, "tempdir", str(spaced))
    with pytest.raises(NearsideError, match="no space and no colon: TMPDIR"):
        run(["true"])
    (tmp_path / "a:b").symlink_to(kit.folder())
    monkeypatch.setenv("NEARSIDE_GUEST", str(tmp_path / "a:b"))
    with pytest.raises(NearsideError, match="no colon and no semicolon"):
        run(["true"])


@pytest.mark.long
def test_guest_that_is_interrupted_while_it_boots_ends_its_job(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    script = "echo begun; while :; do sleep 1000; done"
    process = start_cli(scratch, "run", "--model", "fast", "--json", "--limit", "900", "--", "sh", "-c", script)
    wait_for_file(scratch, "*/serial1", process)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=900)
    report = json.loads(output)
    assert (process.returncode, report["partial"], report["status"]) == (130, True, 130)
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(("words", "number"), [
    (("run", "--model", "fast", "--", "sleep", "1000000"), signal.SIGHUP),
    pytest.param(("shell", "--model", "fast"), signal.SIGHUP, marks=pytest.mark.long),
    (("shell", "--model", "fast"), signal.SIGTERM),
])  # fmt: skip
def test_guest_leaves_nothing_when_its_terminal_closes(tmp_path, words, number):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = start_cli(scratch, *words)
    wait_for_file(scratch, "*/serial1", process)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert not list(scratch.iterdir())


@pytest.mark.long
def test_guest_that_panics_is_one_line():
    with pytest.raises(NearsideError, match="the guest's kernel has panicked: Kernel panic - not syncing: sysrq"):
        run(["sh", "-c", "echo c > /proc/sysrq-trigger"])
    assert not qemu_pids()


@pytest.mark.long
def test_guest_of_two_cpus_ends_while_one_of_them_spins():
    with pytest.raises(NearsideError, match="the guest's kernel has panicked: Kernel panic - not syncing: sysrq"):
        run(["sh", "-c", "(while :; do :; done) & echo c > /proc/sysrq-trigger"], cpus=2)
    with pytest.raises(NearsideError, match="the guest switched off before its job was done"):
        run(["sh", "-c", "(while :; do :; done) & (while :; do :; done) & poweroff -f"], cpus=2)
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
        run_job(Job(["sleep", "100000"]), Setup([Design.load("default")], "fast", CpuModel.load()), timeout_s=2)
    assert time.monotonic() - began < 60
    assert not qemu_pids()


def test_guest_clock_refuses_what_it_can_not_do(tmp_path):
    guest = machine.Guest(kit.install_kit(), tmp_path, [], tmp_path / "clock", cpu=CpuModel.load())
    words = guest.command(tmp_path / "initrd")
    many = list(words)
    many[words.index("-smp") + 1] = "9"
    process = machine.start(many, tmp_path / "errors")
    assert process.wait(60) != 0
    assert "nearside clock: at most 8 CPUs are supported: -smp 8" in (tmp_path / "errors").read_text()
    other = [word.replace(f"qemu={kit.QEMU_VERSION}", "qemu=10.0.0") for word in words]
    process = machine.start(other, tmp_path / "errors")
    assert process.wait(60) != 0
    assert f"this is QEMU {kit.QEMU_VERSION}: allowed is 10.0.0" in (tmp_path / "errors").read_text()
    at = words.index("--preload")
    process = machine.start(words[:at] + words[at + 2 :], tmp_path / "errors")
    assert process.wait(60) != 0
    assert "nearside clock: the object has to be preloaded, too" in (tmp_path / "errors").read_text()


@pytest.mark.long
def test_guest_check_finds_a_working_clock():
    found = check.check_clock(quiet=True)
    assert found["same_twice"]
    assert check.explain_failure(found) is None


def test_guest_check_fails_where_the_clock_does_not_work(monkeypatch):
    found = {"same_twice": True, "fio_dram_ns": 1.0, "device_dram_ns": 1.0, "fio_pcm_ns": 1.0, "device_pcm_ns": 1.0}
    cases = ({"software_difference_ns": 0.0}, 0), ({"software_difference_ns": -9.0}, 1), ({"same_twice": False}, 1)
    for change, status in cases:
        result = {"software_difference_ns": 0.0, **found, **change}
        monkeypatch.setattr(check, "check_clock", lambda result=result, **_: result)
        for words in (["guest", "check"], ["guest", "check", "--json"]):
            done = CliRunner().invoke(app, words)
            assert (done.exit_code == 0) == (status == 0), (change, done.output)
