#!/usr/bin/env python3
"""libpmemobj and libpmem of the repository's own, for the tests of unmodified programs.

usage: pmdk.py kit                      install them into build/pmdk (10 MB are downloaded, cached)
       pmdk.py compile SOURCE PROGRAM   compile a C program with them

They come from Debian's packages, from the mirror that this machine's apt uses, with what they need beside the C
library, into a directory of its own: nothing is installed and root is not needed.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from filelist import ROOT
from guest import Apt, NoKit

WORK = ROOT / "build" / "pmdk"
SUITE = "bookworm"
VERSION = "1.12.1-2"
PACKAGES = [f"{name}={VERSION}" for name in ("libpmem1", "libpmem-dev", "libpmemobj1", "libpmemobj-dev")]
LIBRARIES = ["libpmem.so.1", "libpmemobj.so.1"]
KIT_VERSION = 1


def kit(tell: bool = True) -> Path:
    """The kit's folder, with `lib` and `include`; installs it unless it is there. NoKit says why it can't be had."""
    wanted = json.dumps([KIT_VERSION, SUITE, PACKAGES])
    folder = WORK / f"kit-{hashlib.sha256(wanted.encode()).hexdigest()[:12]}"
    WORK.mkdir(parents=True, exist_ok=True)
    with open(WORK / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "PACKAGES").is_file():
            install(folder, tell)
    return folder


def install(folder: Path, tell: bool) -> None:
    """Downloads the kit into `folder`, which is there only as a whole."""
    if platform.machine() != "x86_64":
        raise NoKit(f"the packages are for x86_64, this is {platform.machine()}")
    if tell:
        print("pmdk: downloading libpmemobj and what it needs (10 MB)", flush=True)
    with tempfile.TemporaryDirectory(dir=WORK) as scratch:
        apt = Apt(Path(scratch) / "apt", [SUITE])
        apt.run("apt-get", "update")
        apt.run("apt-get", "-y", "--download-only", "install", *PACKAGES)
        unpacked = Path(scratch) / "root"
        archives = sorted((apt.folder / "cache/archives").glob("*.deb"))
        # The program's C library is this machine's.
        archives = [archive for archive in archives if not archive.name.startswith("libc6")]
        for archive in archives:
            subprocess.run(["dpkg-deb", "-x", archive, unpacked], check=True)
        made = Path(scratch) / "kit"
        assemble(unpacked, made)
        (made / "PACKAGES").write_text("".join(f"{archive.name}\n" for archive in archives))
        made.rename(folder)


def assemble(unpacked: Path, made: Path) -> None:
    """Takes the libraries, with those that they need, and the headers out of the unpacked packages."""
    folders = [unpacked / "usr/lib/x86_64-linux-gnu", unpacked / "lib/x86_64-linux-gnu"]
    path = ":".join(map(str, folders))
    (made / "lib").mkdir(parents=True)
    for name in LIBRARIES:
        command = ["ldd", folders[0] / name]
        listed = subprocess.run(command, env=os.environ | {"LD_LIBRARY_PATH": path}, capture_output=True, text=True)
        if missing := re.findall(r"(\S+) => not found", listed.stdout):
            raise NoKit(f"{name} needs {', '.join(missing)}")
        for found in [folders[0] / name, *re.findall(rf"{re.escape(str(unpacked))}\S+", listed.stdout)]:
            shutil.copy(found, made / "lib")
        (made / "lib" / name.removesuffix(".1")).symlink_to(name)
    shutil.copytree(unpacked / "usr/include", made / "include")


def compile_program(kit: Path, source: Path, program: Path, *words: str) -> None:
    """Compiles a C program that finds the kit's libraries by itself."""
    command = ["cc", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", f"-I{kit}/include", *words]
    command += ["-o", str(program), str(source), f"-L{kit}/lib", "-lpmemobj", "-lpmem", "-pthread"]
    # The libraries that these need are in the same folder, and have no path of their own.
    subprocess.run([*command, f"-Wl,--disable-new-dtags,-rpath,{kit}/lib"], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("kit")
    one = commands.add_parser("compile")
    one.add_argument("source", type=Path)
    one.add_argument("program", type=Path)
    arguments = parser.parse_args()
    try:
        found = kit()
    except NoKit as reason:
        print(f"pmdk.py: {reason}", file=sys.stderr)
        return 1
    if arguments.command == "kit":
        print(found)
    else:
        compile_program(found, arguments.source, arguments.program)
    return 0


if __name__ == "__main__":
    sys.exit(main())
