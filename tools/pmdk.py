#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libpmemobj and libpmem of the repository's own, for the tests of unmodified programs.

usage: pmdk.py kit                      install them into build/pmdk (10 MB are downloaded, cached)
       pmdk.py compile SOURCE PROGRAM   compile a C program with them
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from kits import Kit, libraries
from nearside.guest.kit import NoKit

VERSION = "1.12.1-2"
PACKAGES = [f"{name}={VERSION}" for name in ("libpmem1", "libpmem-dev", "libpmemobj1", "libpmemobj-dev")]
LIBRARIES = ["libpmem.so.1", "libpmemobj.so.1"]


def _assemble(unpacked: Path, made: Path) -> None:
    """The libraries, with those that they need, and the headers."""
    for name in LIBRARIES:
        library = unpacked / "usr/lib/x86_64-linux-gnu" / name
        libraries(unpacked, library, made / "lib")
        shutil.copy(library, made / "lib")
        (made / "lib" / name.removesuffix(".1")).symlink_to(name)
    shutil.copytree(unpacked / "usr/include", made / "include")


KIT = Kit("pmdk", "libpmemobj and what it needs (10 MB)", PACKAGES, _assemble)


def _assemble_archive(unpacked: Path, made: Path) -> None:
    """libpmem to be linked into a program."""
    shutil.copy(unpacked / "usr/lib/x86_64-linux-gnu/libpmem.a", made / "lib")


ARCHIVE = Kit("pmdk-archive", "libpmem.a (10 MB)", [f"libpmem-dev={VERSION}"], _assemble_archive)


def compile_program(kit: Path, source: Path, program: Path, *words: str) -> None:
    """Compiles a C program that finds the kit's libraries by itself."""
    command = ["cc", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", f"-I{kit}/include", *words]
    command += ["-o", str(program), str(source), f"-L{kit}/lib", "-lpmemobj", "-lpmem", "-pthread"]
    # The libraries that these need are in the same folder, and have no path set.
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
        found = KIT.folder()
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
