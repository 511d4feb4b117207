# SPDX-License-Identifier: Apache-2.0
"""The guest's file system in memory: archives (cpio) that the kernel unpacks one after the other."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from nearside import files
from nearside._native import NearsideError

INIT, MARK = (Path(__file__).with_name(name) for name in ("init.sh", "mark.sh"))
FOLDERS = ("dev", "proc", "sys", "tmp", "mnt", "root", "job", "image")
MIB = 1 << 20
# The size of a device is a multiple of it.
IMAGE_STEP = 16 * MIB
# Identity, hash seed and time of images. By default mke2fs takes random ones, and the seed decides
# the order of names.
IMAGE_ID = "6e656172-7369-6465-0000-000000000001"
IMAGE_TIME = "1767225600"


class Archive:
    """An archive in the format `newc`. All times are 0, so the same content is the same bytes."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.count = 0
        self.digests: dict[str, bytes] = {}
        """SHA-256 of each file."""

    def _add(self, name: str, mode: int, content: bytes) -> None:
        self.count += 1
        # Inode, mode, user, group, links, time, size, device, special file's device, name,
        # checksum.
        name_bytes = os.fsencode(name) + b"\0"
        fields = [self.count, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name_bytes), 0]
        self.bytes += b"070701" + b"".join(b"%08X" % field for field in fields) + name_bytes
        self._pad()
        self.bytes += content
        self._pad()

    def _pad(self) -> None:
        self.bytes += bytes(-len(self.bytes) % 4)

    def add_folder(self, name: str) -> None:
        """Adds a folder, whose parents are there."""
        self._add(name, stat.S_IFDIR | 0o755, b"")

    def add_file(self, name: str, content: bytes, executable: bool = False) -> None:
        """Adds a file, whose folder is there."""
        self.digests[name] = hashlib.sha256(content).digest()
        self._add(name, stat.S_IFREG | (0o755 if executable else 0o644), content)

    def add_link(self, name: str, target: str) -> None:
        """Adds a symbolic link."""
        self._add(name, stat.S_IFLNK | 0o777, os.fsencode(target))

    def add_tree(self, name: str, tree: Path) -> None:
        """Adds a folder with all that is in it; links stay links, other special files are refused."""
        self.add_folder(name)
        for entry in sorted(tree.iterdir()):
            inner = f"{name}/{entry.name}"
            if entry.is_symlink():
                self.add_link(inner, os.readlink(entry))
            elif entry.is_dir():
                self.add_tree(inner, entry)
            elif entry.is_file():
                self.add_file(inner, entry.read_bytes(), os.access(entry, os.X_OK))
            else:
                raise NearsideError(f"{files.printable(entry)} is no file, folder or link: a guest can't have it")

    def finish(self) -> bytes:
        """The archive with its end."""
        self._add("TRAILER!!!", 0, b"")
        self.bytes += bytes(-len(self.bytes) % 512)
        return bytes(self.bytes)


def _applets(busybox: Path) -> Iterator[str]:
    done = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    yield from done.stdout.split()


def base_archive(kit: Path) -> Path:
    """The kit's programs and the first process, as an archive in the kit's folder."""
    sources = (INIT, MARK, Path(__file__))
    key = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    target = kit / f"base-{key}.cpio"
    if target.is_file():
        return target
    archive = Archive()
    for name in FOLDERS:
        archive.add_folder(name)
    archive.add_file("init", INIT.read_bytes(), executable=True)
    for entry in sorted((kit / "guest").iterdir()):
        archive.add_tree(entry.name, entry)
    archive.add_link("bin/sh", "dash")
    archive.add_file("bin/mark", MARK.read_bytes(), executable=True)
    programs = {"sh", *(path.name for path in (kit / "guest/bin").iterdir())}
    for applet in _applets(kit / "guest/bin/busybox"):
        if applet not in programs:
            archive.add_link(f"bin/{applet}", "busybox")
    with tempfile.NamedTemporaryFile(dir=kit, delete=False) as file:
        file.write(archive.finish())
    os.replace(file.name, target)
    return target


def write_initrd(kit: Path, job: Archive, output: IO[bytes]) -> None:
    """Writes the guest's file system: the kit's programs, and what `job` adds."""
    with open(base_archive(kit), "rb") as base:
        shutil.copyfileobj(base, output)
    output.write(job.finish())
    output.flush()


def write_disk(kit: Path, folder: Path, target: Path) -> int:
    """Makes a file system (ext4) with a copy of a folder; returns its size in bytes.

    The same folder gives the same bytes: the guest reads names and blocks in the same order.
    """
    if not folder.is_dir():
        raise NearsideError(f"{files.printable(folder)} is no folder")
    # A block for each file, and what the file system needs.
    content = sum(-(-path.lstat().st_size // 4096) * 4096 + 4096 for path in folder.rglob("*"))
    size = -(-(content * 11 // 10 + 4 * MIB) // IMAGE_STEP) * IMAGE_STEP
    tools = kit / "guest"
    run = [tools / "lib64/ld-linux-x86-64.so.2", "--library-path", tools / "usr/lib/x86_64-linux-gnu"]
    words = ["-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-U", IMAGE_ID]
    words += ["-E", f"root_owner=0:0,hash_seed={IMAGE_ID}", "-d"]
    command = [*run, tools / "bin/mke2fs", *words, folder, target, f"{size // 1024}k"]
    fixed = {**os.environ, "SOURCE_DATE_EPOCH": IMAGE_TIME}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=fixed)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise NearsideError(f"{files.printable(folder)}: no image can be made of it: {files.printable(last)}")
    return size
