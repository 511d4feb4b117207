# SPDX-License-Identifier: Apache-2.0
"""QEMU, a kernel and programs for a guest.

Everything comes from Debian's packages, from the mirror that this machine's apt uses. It is unpacked into a separate
directory, so nothing is installed and root is not needed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import lzma
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from nearside._native import NearsideError
from nearside.device import root
from nearside.guest import bootable

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SUITE = "trixie"
# QEMU has vfio-user-pci from version 10.1 on. Simulated time rests on how a version waits, so the
# version is fixed.
QEMU, QEMU_VERSION = "qemu-system-x86", "11.1.3"
PACKAGES = ["fio", "nvme-cli", "e2fsprogs", "xfsprogs", "btrfs-progs", "f2fs-tools", "grub-pc-bin"]
PACKAGES += ["rocksdb-tools", "sqlite3"]
KERNEL = ("linux-image-cloud-amd64", "6.12")
TOOLS = ["usr/bin/fio", "usr/sbin/nvme", "usr/sbin/mke2fs", "usr/sbin/e2fsck", "usr/sbin/filefrag", "usr/sbin/mdadm"]
TOOLS += ["usr/sbin/mkfs.xfs", "usr/sbin/mkfs.btrfs", "usr/sbin/mkfs.f2fs", "usr/bin/db_bench", "usr/bin/sqlite3"]
# The shell of jobs: that of busybox prefers the applets of busybox to programs of the same name.
TOOLS += ["usr/bin/dash"]
# Kernel modules, beside those that they depend on.
MODULES = ["raid1", "nd_pmem", "nd_e820"]
KIT_VERSION = 6
# The kernel's default limits. All parts of a large discard wait together, so the limit applies to
# the whole.
KERNEL_LINE = (
    "console=ttyS0 panic=-1 quiet nokaslr mitigations=off tsc=reliable cryptomgr.notests audit=0 apparmor=0"
    " nvme_core.io_timeout=30 nvme_core.admin_timeout=60"
)


class NoKit(NearsideError):
    """The kit can't be had on this machine; the text says why."""


def folder() -> Path:
    """Where kits and what is made of them are kept: `build/guest` of a checkout, else a cache of the user's."""
    if known := os.environ.get("NEARSIDE_GUEST"):
        return Path(known)
    try:
        return root() / "build" / "guest"
    except NearsideError:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nearside" / "guest"


def mirror() -> str:
    """The Debian archive that apt is set up for."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise NoKit("no apt: the guest's packages are Debian's")
    if not KEYRING.is_file():
        raise NoKit(f"{KEYRING} is missing: install debian-archive-keyring")
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    listed = subprocess.run(command, capture_output=True, text=True).stdout.split()
    for uri in listed:
        if uri.rstrip("/").endswith("/debian"):
            return uri
    raise NoKit("apt names no Debian mirror")


class Apt:
    """apt with a separate state directory."""

    def __init__(self, folder: Path, suites: Sequence[str] = (SUITE, f"{SUITE}-backports")) -> None:
        self.folder = folder
        for name in ("lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True)
        (folder / "status").touch()
        uri = mirror()
        lines = [f"deb [signed-by={KEYRING}] {uri} {suite} main\n" for suite in suites]
        (folder / "sources.list").write_text("".join(lines))
        settings = {
            "Dir::Etc::sourcelist": folder / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State": folder,
            "Dir::State::lists": folder / "lists",
            "Dir::State::status": folder / "status",
            "Dir::State::extended_states": folder / "extended_states",
            "Dir::Cache": folder / "cache",
            "APT::Architecture": "amd64",
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "",
            "Acquire::Languages": "none",
            "Acquire::Retries": "2",
            "Acquire::http::Timeout": "20",
            "Debug::NoLocking": "true",
        }
        self.options = ["-qq", *(word for key, value in settings.items() for word in ("-o", f"{key}={value}"))]

    def run(self, tool: str, *words: str) -> str:
        """The output of an apt tool; NoKit if it fails."""
        done = subprocess.run(
            [tool, *self.options, *words], cwd=self.folder / "cache/archives", capture_output=True, text=True
        )
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise NoKit(f"{tool} {words[0]}: {last}")
        return done.stdout

    def find_qemu(self) -> str:
        """The full version of the fixed QEMU in the archive."""
        listed = self.run("apt-cache", "madison", QEMU)
        versions = [line.split("|")[1].strip() for line in listed.splitlines()]
        for version in versions:
            if re.sub(r"^\d+:|[+-].*$", "", version) == QEMU_VERSION:
                return version
        found = ", ".join(versions) or "none"
        raise NoKit(f"the archive has no QEMU {QEMU_VERSION}, but {found}")


def install_kit(quiet: bool = False) -> Path:
    """The kit's folder; downloads the kit unless it is there. Of several callers at once, one downloads it."""
    wanted = json.dumps([KIT_VERSION, SUITE, QEMU, QEMU_VERSION, PACKAGES, KERNEL, TOOLS, MODULES])
    work = folder()
    kit = work / f"kit-{hashlib.sha256(wanted.encode()).hexdigest()[:12]}"
    work.mkdir(parents=True, exist_ok=True)
    with open(work.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (kit / "PACKAGES").is_file():
            if not quiet:
                print("guest: downloading QEMU, a kernel and programs (100 MB)", flush=True)
            _download(kit)
    return kit


def _download(kit: Path) -> None:
    """Downloads the kit, which is there only as a whole."""
    with tempfile.TemporaryDirectory(dir=kit.parent) as scratch:
        apt = Apt(Path(scratch) / "apt")
        apt.run("apt-get", "update")
        qemu = f"{QEMU}={apt.find_qemu()}"
        apt.run("apt-get", "-y", "--download-only", "-t", f"{SUITE}-backports", "install", qemu)
        apt.run("apt-get", "-y", "--download-only", "install", *PACKAGES)
        depends = apt.run("apt-cache", "depends", f"{KERNEL[0]}={KERNEL[1]}*")
        kernel = re.search(r"Depends: (linux-image-\S+)", depends)
        if not kernel:
            raise NoKit(f"no {KERNEL[0]} {KERNEL[1]} in the archive")
        apt.run("apt-get", "download", "busybox-static", "dash", "mdadm", "libudev1", kernel[1])
        unpacked = Path(scratch) / "root"
        archives = sorted((apt.folder / "cache/archives").glob("*.deb"))
        for archive in archives:
            subprocess.run(["dpkg-deb", "-x", archive, unpacked], check=True)
        made = Path(scratch) / "kit"
        _assemble(unpacked, made)
        (made / "PACKAGES").write_text("".join(f"{archive.name}\n" for archive in archives))
        made.rename(kit)


def _assemble(unpacked: Path, made: Path) -> None:
    """Takes what runs out of the unpacked packages: QEMU for this machine, kernel and tools for the guest."""
    libraries = unpacked / "usr/lib/x86_64-linux-gnu"

    def take(program: Path, target: Path, libs: Path) -> None:
        target.mkdir(parents=True, exist_ok=True)
        libs.mkdir(parents=True, exist_ok=True)
        shutil.copy(program, target)
        loader = libraries / "ld-linux-x86-64.so.2"
        path = f"{libraries}:{libraries}/ceph"
        listed = subprocess.run([loader, "--library-path", path, "--list", program], capture_output=True, text=True)
        for lib in re.findall(rf"{re.escape(str(libraries))}\S+", listed.stdout):
            shutil.copy(lib, libs)

    take(unpacked / "usr/bin/qemu-system-x86_64", made, made / "lib")
    shutil.copy(libraries / "ld-linux-x86-64.so.2", made / "lib")
    (made / "fw").mkdir()
    for name in ("seabios/bios-256k.bin", "qemu/linuxboot_dma.bin", "qemu/pvh.bin", "qemu/kvmvapic.bin"):
        shutil.copy(unpacked / "usr/share" / name, made / "fw")
    guest = made / "guest"
    for tool in TOOLS:
        program = unpacked / tool
        if not program.is_file():
            program = unpacked / tool.removeprefix("usr/")
        take(program, guest / "bin", guest / "usr/lib/x86_64-linux-gnu")
    (guest / "lib64").mkdir()
    shutil.copy(libraries / "ld-linux-x86-64.so.2", guest / "lib64")
    shutil.copy(unpacked / "usr/bin/busybox", guest / "bin/busybox")
    run = [str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries)]
    line = f"{KERNEL_LINE} root={bootable.ROOT} rootwait rw init=/init"
    bootable.make_grub(unpacked, made / "grub", run, line)
    kernel = next((unpacked / "boot").glob("vmlinuz-*"))
    shutil.copy(kernel, made / "vmlinuz")
    _unpack_kernel(made / "vmlinuz", made / "vmlinux")
    _take_modules(unpacked / "usr/lib/modules", guest / "modules")


def _take_modules(unpacked: Path, target: Path) -> None:
    """Puts MODULES and what they depend on into `target`, unpacked, and their names into its file `order`."""
    packed = {path.name.split(".")[0].replace("-", "_"): path for path in unpacked.rglob("*.ko*")}
    target.mkdir()
    order: list[str] = []

    def take(name: str) -> None:
        if name in order or name not in packed:  # built in
            return
        data = packed[name].read_bytes()
        module = lzma.decompress(data) if packed[name].suffix == ".xz" else data
        needs = re.search(rb"\0depends=([^\0]*)\0", module)
        for other in needs[1].decode().split(",") if needs else []:
            take(other.replace("-", "_"))
        (target / f"{name}.ko").write_bytes(module)
        order.append(name)

    for name in MODULES:
        take(name)
    (target / "order").write_text("".join(f"{name}\n" for name in order))


def _unpack_kernel(packed: Path, target: Path) -> None:
    """The kernel as an ELF file, which saves the guest the time to unpack it (3 s). Without zstd it stays packed."""
    if not shutil.which("zstd"):
        return
    image = packed.read_bytes()
    offset, length = (int.from_bytes(image[at : at + 4], "little") for at in (0x248, 0x24C))
    start = (image[0x1F1] + 1) * 512 + offset
    # The last four bytes are the size.
    done = subprocess.run(["zstd", "-dcq"], input=image[start : start + length - 4], capture_output=True)
    if done.returncode == 0:
        target.write_bytes(done.stdout)
