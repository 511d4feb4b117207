# SPDX-License-Identifier: Apache-2.0
"""A disk image that a PC's firmware boots: a boot sector, GRUB, and an ext4 partition with kernel and file system.

    sector 0      GRUB's boot sector with a partition table
    sector 1      GRUB itself, up to the partition
    1 MiB         the partition

GRUB's two parts come ready from the kit: they need to know only that the second follows the first.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

SECTOR = 512
PARTITION = 1 << 20
MODULES = ["biosdisk", "part_msdos", "ext2", "linux", "boot"]
# The disk's, by which Linux finds its partitions whatever number the disk gets.
SIGNATURE = 0x4E53_0001
ROOT = f"PARTUUID={SIGNATURE:08x}-01"
# GRUB knows the file systems of its time.
FEATURES = "^metadata_csum_seed,^orphan_file"


def make_grub(unpacked: Path, target: Path, run: list[str], kernel_line: str) -> None:
    """Puts GRUB for the first partition of the first disk into `target`, from unpacked packages.

    run: how to run a program of those packages.
    kernel_line: the kernel's command line.
    """
    target.mkdir()
    modules = unpacked / "usr/lib/grub/i386-pc"
    config = target / "grub.cfg"
    config.write_text(f"set root=(hd0,msdos1)\nlinux /boot/vmlinuz {kernel_line}\nboot\n")
    words = [*run, unpacked / "usr/bin/grub-mkimage", "-O", "i386-pc", "-p", "/boot/grub", "-d", modules]
    words += ["-c", config, "-o", target / "core.img", *MODULES]
    subprocess.run([str(word) for word in words], check=True)
    (target / "boot.img").write_bytes((modules / "boot.img").read_bytes())


def partition_table(size: int) -> bytes:
    """A master boot record's table and signature: one active Linux partition up to the end of `size` bytes."""
    first, count = PARTITION // SECTOR, (size - PARTITION) // SECTOR
    # Cylinders, heads and sectors: "beyond what they can say".
    entry = b"\x80\xfe\xff\xff\x83\xfe\xff\xff" + first.to_bytes(4, "little") + count.to_bytes(4, "little")
    return entry + bytes(48) + b"\x55\xaa"


def make_image(path: Path, size: int, root: Path, grub: Path, mke2fs: list[str]) -> None:
    """Writes an image of `size` bytes that boots the kernel root/boot/vmlinuz with `root` as its file system.

    mke2fs: how to run mke2fs.
    """
    boot, core = (grub / "boot.img").read_bytes(), (grub / "core.img").read_bytes()
    if len(core) > PARTITION - SECTOR:
        raise ValueError(f"GRUB has {len(core)} bytes: more than fit before the partition")
    with open(path, "wb") as image:
        image.truncate(size)
        signature = SIGNATURE.to_bytes(4, "little") + bytes(2)
        image.write(boot[:440] + signature + partition_table(size) + core)
    blocks = (size - PARTITION) // 1024
    words = [*mke2fs, "-q", "-F", "-t", "ext4", "-O", FEATURES, "-E", f"offset={PARTITION},root_owner=0:0"]
    words += ["-d", str(root), str(path), f"{blocks}k"]
    subprocess.run(words, check=True)
