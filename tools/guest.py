#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stock Linux guest on `nearside serve`: its kit, its checks, and a shell in it.

usage:

- `guest.py kit`: install QEMU, a kernel and the guest's tools into build/guest (100 MB, cached)
- `guest.py test [--model M]`: boot the guest and check what it can do with the device (make test-guest)
- `guest.py shell --socket PATH`: boot the guest with a served device, and start a shell
- `guest.py image FILE`: make a disk image to serve, from which the guest boots (shell --from-device)

Everything comes from Debian's packages, from the mirror that this machine's apt uses. It is unpacked into a separate
directory, so nothing is installed and root is not needed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from filelist import ROOT
from nearside.guest import bootable
from nearside.guest.kit import KERNEL_LINE, NoKit, folder, install_kit

BIN = ROOT / ".venv" / "bin"
WORK = folder()
MEMORY = "384M"
BOOT_LIMIT_S = 600
DESIGN = "guest"
MEDIA_BYTES = 1 << 30  # the design's
DISK_BYTES = 960 << 20  # the design's first namespace
# Features that the controller lacks, and how a guest is notified. A check that fails in another
# way, or passes, is a failure of the test. Then its entry has to be removed.
UNSUPPORTED: dict[str, str] = {}

# Every check, in order. One that doesn't report has failed.
FIRST = [
    "probe",
    "queues",
    "id-ctrl",
    "id-ns",
    "list",
    "get-feature",
    "keep-alive",
    "host-behavior",
    "raw-data",
    "flush",
    "interrupts",
    "clean-log",
    "smart-log",
    "error-log",
    "write-zeroes",
    "compare",
    "verify",
    "engine-sorts",
    "dsm",
    "blkdiscard",
    "namespaces",
    "format",
    "discard-limits",
    "blkdiscard-all",
    "format-all",
    "mkfs-xfs",
    "mkfs-btrfs",
    "mkfs-f2fs",
    "mkfs-ext4",
    "mount-discard",
    "discards-of-deletion",
    "fstrim",
    "clean-log-discards",
    "mkfs",
    "mount",
    "copy-tree",
    "engine-counts",
    "umount",
    "fsck",
    "remount",
    "checksums",
    "fio-verify",
    "reset-under-io",
    "rebind-under-io",
    "function-reset",
    "fsck-after-resets",
    "random-commands",
    "no-time-outs",
    "unharmed",
]
SECOND = [
    "probe",
    "same-device",
    "fsck-restarted",
    "mount-restarted",
    "checksums-restarted",
    "queues",
    "fio-verify-4-jobs",
    "interrupts",
    "umount",
    "reset-under-io",
    "rebind-under-io",
    "probe",
    "same-device",
    "fsck-restarted",
    "mount-restarted",
    "checksums-restarted",
    "rebooted",
    "fsck-rebooted",
]
# Two devices of one server, in one guest.
RAID = ["create", "filesystem", "degraded", "rebuilt", "same-on-both"]
PAIR = ["two-devices", *(f"raid1-{name}" for name in RAID), "no-time-outs"]
# From the device's own disk, twice: what was written before the reboot is there after it.
FROM_DEVICE = ["probe", "root-on-device", "write-root", "probe", "root-on-device", "root-kept"]
# Each part of the test: the guest's CPUs, and its checks.
RUNS = {"first": (1, FIRST), "second": (4, SECOND), "pair": (1, PAIR), "boot": (1, FROM_DEVICE)}


def guest_root(kit: Path, root: Path) -> None:
    """Makes the guest's file system in the new directory `root`: busybox, the tools, and guest_init.sh."""
    shutil.copytree(kit / "guest", root)
    for name in ("dev", "proc", "sys", "tmp", "mnt"):
        (root / name).mkdir()
    shutil.copy(ROOT / "tools/guest_init.sh", root / "init")
    (root / "init").chmod(0o755)
    compiler = ["cc", "-O1", "-Wall", "-Werror", "-static", "-o"]
    subprocess.run([*compiler, root / "bin/guest_passthru", ROOT / "tools/guest_passthru.c"], check=True)
    command = [kit / "guest/bin/busybox", "--list"]
    for applet in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split():
        if not (root / "bin" / applet).exists():
            (root / "bin" / applet).symlink_to("busybox")


def initrd(kit: Path) -> Path:
    """The guest's file system as the kernel takes it from memory."""
    target = WORK / "initrd.cpio"
    with tempfile.TemporaryDirectory(dir=WORK) as scratch:
        root = Path(scratch) / "root"
        guest_root(kit, root)
        names = sorted(str(path.relative_to(root)) for path in root.rglob("*"))
        with open(target, "wb") as output:
            text = "".join(f"{name}\n" for name in names)
            command = [kit / "guest/bin/busybox", "cpio", "-o", "-H", "newc"]
            subprocess.run(command, cwd=root, input=text.encode(), stdout=output, stderr=subprocess.DEVNULL, check=True)
    return target


def image(kit: Path, target: Path, task: str) -> None:
    """The guest's file system and kernel as a disk that boots and does `task`, of the size of the design's media."""
    with tempfile.TemporaryDirectory(dir=WORK) as scratch:
        root = Path(scratch) / "root"
        guest_root(kit, root)
        (root / "boot").mkdir()
        shutil.copy(kit / "vmlinuz", root / "boot")
        (root / "task").write_text(f"{task}\n")
        libraries = kit / "guest/usr/lib/x86_64-linux-gnu"
        mke2fs = [kit / "guest/lib64/ld-linux-x86-64.so.2", "--library-path", libraries, kit / "guest/bin/mke2fs"]
        bootable.make_image(target, DISK_BYTES, root, kit / "grub", mke2fs)
    os.truncate(target, MEDIA_BYTES)


def qemu(
    kit: Path, sockets: Sequence[Path], task: str | None, cpus: int, reboots: bool = False, line: str = ""
) -> list[str]:
    """The command that boots the guest with devices; without a task, from the first one. `line` is for the kernel."""
    from nearside.serve import qemu_options

    words = [kit / "lib/ld-linux-x86-64.so.2", "--library-path", kit / "lib", kit / "qemu-system-x86_64"]
    words += ["-L", kit / "fw", "-nodefaults", "-no-user-config", "-display", "none", "-accel", "tcg", "-cpu", "max"]
    words += ["-smp", cpus, *qemu_options(sockets, MEMORY), *([] if reboots else ["-no-reboot"])]
    if task:
        kernel = kit / "vmlinux"
        words += ["-kernel", kernel if kernel.is_file() else kit / "vmlinuz", "-initrd", initrd(kit)]
        words += ["-append", f"{KERNEL_LINE} guest={task} {line}"]
    return [str(word) for word in words]


class Server:
    """`nearside serve`, until the end of the block."""

    def __init__(self, model: str, sockets: Sequence[Path], media: Sequence[Path]) -> None:
        self.model = model
        self.sockets = sockets
        self.log = sockets[0].with_suffix(".log")
        words: list[str | Path] = [BIN / "nearside", "serve", DESIGN, "--model", model]
        for socket, file in zip(sockets, media, strict=True):
            words += ["--socket", socket, "--media", file]
        self.command = [str(word) for word in words]

    def __enter__(self) -> Server:
        with open(self.log, "w") as output:
            # A test is to notice assertions that fail.
            env = os.environ | {"NEARSIDE_CHECKED": "1"}
            self.process = subprocess.Popen(self.command, env=env, stdout=output, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 1200  # the design may have to be compiled
        while not all(socket.is_socket() for socket in self.sockets):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise RuntimeError(f"the server doesn't start:\n{self.log.read_text()}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise RuntimeError("the server doesn't end on SIGTERM") from None
        left = [socket.name for socket in self.sockets if socket.exists()]
        if self.model == "rtl" and "checked build" not in self.log.read_text():
            raise RuntimeError(f"the server runs a build without assertions:\n{self.log.read_text()}")
        if code != 0 or left:
            raise RuntimeError(f"the server ended with {code}, sockets left: {left}\n{self.log.read_text()}")


def boot(command: list[str], log: Path) -> str:
    """Runs a guest to its end; returns its console."""
    with open(log, "w") as output:
        process = subprocess.Popen(
            [*command, "-monitor", "none", "-serial", "stdio"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        timer = threading.Timer(BOOT_LIMIT_S, process.kill)
        timer.start()
        process.wait()
        timer.cancel()
    return log.read_text(errors="replace").replace("\r", "")


class Report:
    """Checks and their outcomes, as they are printed."""

    def __init__(self) -> None:
        self.passed = self.failed = self.unsupported = 0

    def show(self, name: str, verdict: str, detail: str = "") -> None:
        print(f"  {name:24} {verdict:12} {detail}".rstrip(), flush=True)

    def take(self, expected: list[str], console: str) -> None:
        """Compares what a guest said with what it was to say."""
        seen = []
        output: list[str] = []
        for line in console.splitlines():
            found = re.fullmatch(r".*@@ (\S+) (pass|fail)", line)
            if found:
                seen.append((found[1], found[2], output))
                output = []
            elif line.startswith("   "):  # what a check had to say
                output.append(line.rstrip())
        for number, name in enumerate(expected):
            if number >= len(seen) or seen[number][0] != name:
                self.fail(name, "no word of it", console.splitlines()[-25:])
                return
            _, verdict, said = seen[number]
            if name in UNSUPPORTED:
                self.judge_unsupported(name, verdict, said)
            elif verdict == "pass":
                self.passed += 1
                self.show(name, "pass", said[-1].strip()[:90] if said else "")
            else:
                self.fail(name, "", said[-12:])
        if len(seen) > len(expected):
            self.fail("checks", f"unknown: {[name for name, *_ in seen[len(expected) :]]}", [])
        if "@@done" not in console:
            self.fail("end", "the guest did not finish", console.splitlines()[-25:])

    def judge_unsupported(self, name: str, verdict: str, said: list[str]) -> None:
        if verdict == "pass":
            self.fail(name, "works now: take it out of UNSUPPORTED in tools/guest.py", [])
        elif any(UNSUPPORTED[name].lower() in line.lower() for line in said):
            self.unsupported += 1
            self.show(name, "unsupported", f"as expected: {UNSUPPORTED[name]}")
        else:
            self.fail(name, f"unsupported, but without {UNSUPPORTED[name]!r}", said[-12:])

    def fail(self, name: str, why: str, lines: list[str]) -> None:
        self.failed += 1
        self.show(name, "FAIL", why)
        for line in lines:
            print(f"      {line}")


def measured(console: str) -> None:
    """Times and rates of a run, for people: wall-clock of this machine."""
    times = re.findall(r"@@time (\S+) ([\d.]+)", console)
    print("  guest time, s:  " + "  ".join(f"{name} {seconds}" for name, seconds in times))
    for name, numbers in re.findall(r"@@rate (\S+) (\S+)", console):
        kib, iops = numbers.split(";")[:2]
        print(f"  fio {name:20} {kib} KiB/s, {iops} IOPS (wall-clock: the simulator's speed)")


def test(seed: int, model: str, tasks: Sequence[str]) -> int:
    start = time.monotonic()
    try:
        installed = install_kit()
    except NoKit as reason:
        print(f"skipped: {reason}\n0 passed, 0 failed, 1 skipped")
        return 0
    report = Report()
    runs = [(task, *RUNS[task]) for task in tasks or RUNS]
    work = WORK / model
    work.mkdir(parents=True, exist_ok=True)
    # A separate path, because sockets cannot have long names.
    with tempfile.TemporaryDirectory(prefix="nearside-") as scratch:
        sockets = [Path(scratch) / f"device{n}.sock" for n in range(2)]
        media = [work / f"media{n}.img" for n in range(2)]
        for file in media:
            file.unlink(missing_ok=True)
        try:
            for task, cpus, checks in runs:
                began = time.monotonic()
                given = None if task == "boot" else task
                if not given:
                    image(installed, media[0], task)
                count = 2 if task == "pair" else 1
                with Server(model, sockets[:count], media[:count]):
                    reboots = task in ("second", "boot")
                    command = qemu(installed, sockets[:count], given, cpus, reboots, f"seed={seed}")
                    log = work / f"{task}.log"
                    console = boot(command, log)
                took = f"{time.monotonic() - began:.1f} s"
                print(f"guest with {cpus} CPU(s) on {model}: {took}, console in {log.relative_to(ROOT)}")
                report.take(checks, console)
                measured(console)
        except RuntimeError as error:
            report.fail("server", "", str(error).splitlines())
        finally:
            for file in media:
                file.unlink(missing_ok=True)
    print(f"guest: {time.monotonic() - start:.1f} s; {report.unsupported} checks of what the controller can't do yet")
    print(f"{report.passed} passed, {report.failed} failed, {report.unsupported} skipped")
    return 1 if report.failed else 0


def check_image(target: Path | None) -> None:
    """Ends with a line unless the image can be made there."""
    if target is None or os.path.lexists(target):
        known = "" if target is None else f"{target} exists: "
        sys.exit(f"guest: {known}image needs the name of a file that does not exist yet")
    try:
        # Tried, as only that tells; the image itself comes much later.
        target.touch(exist_ok=False)
        target.unlink()
    except OSError as error:
        sys.exit(f"guest: {target}: {error.strerror}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["kit", "test", "shell", "image"])
    parser.add_argument("file", type=Path, nargs="?", help="the image to write")
    parser.add_argument("--socket", type=Path, help="where the device is served")
    parser.add_argument("--cpus", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1, help="of the random commands in the test")
    models = ["rtl", "fast"]
    parser.add_argument("--model", choices=models, help="what simulates the device in the test; fast without it")
    parser.add_argument("--engine", choices=models, help=argparse.SUPPRESS)  # its former name, for one more release
    parser.add_argument(
        "--task", choices=list(RUNS), action="append", help="only this part of the test; may be repeated"
    )
    parser.add_argument("--from-device", action="store_true", help="the device holds an image: boot from it")
    arguments = parser.parse_args()
    model, former = arguments.model, arguments.engine
    if former is not None:
        print("guest: --engine is deprecated: it is --model now", file=sys.stderr)
        if model not in (None, former):
            parser.error(f"--model {model}, --engine {former}: --engine is --model now")
    if arguments.action == "test":
        return test(arguments.seed, model or former or "fast", arguments.task or [])
    # Before anything is downloaded.
    if arguments.action == "image":
        check_image(arguments.file)
    if arguments.action == "shell" and (arguments.socket is None or not arguments.socket.is_socket()):
        sys.exit("guest: --socket must name the socket of a device that is being served (nearside serve --socket PATH)")
    try:
        installed = install_kit()
    except NoKit as reason:
        sys.exit(f"guest: {reason}")
    if arguments.action == "kit":
        print(installed.relative_to(ROOT))
        return 0
    if arguments.action == "image":
        image(installed, arguments.file, "shell")
        return 0
    task = None if arguments.from_device else "shell"
    command = qemu(installed, [arguments.socket], task, arguments.cpus)
    return subprocess.run([*command, "-serial", "mon:stdio"]).returncode


if __name__ == "__main__":
    sys.exit(main())
