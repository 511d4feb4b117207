# SPDX-License-Identifier: Apache-2.0
"""Programs and libraries out of Debian's packages, for tests: each kit is a folder below build/, made once.

They come from the mirror that this machine's apt uses, with what they need beside the C library: nothing is installed,
and root is not needed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelist import ROOT
from nearside.guest.kit import Apt, NoKit

SUITE = "bookworm"


@dataclass(frozen=True)
class Kit:
    """`name` of its folder below build/, `what` it is for people, packages with their versions.

    `assemble` takes what is wanted out of the folder with the unpacked packages; another `version` of it makes another
    kit.
    """

    name: str
    what: str
    packages: Sequence[str]
    assemble: Callable[[Path, Path], None]
    version: int = 1

    def folder(self, tell: bool = True) -> Path:
        """The kit's folder; installs it unless it is there. NoKit says why it can't be had."""
        wanted = json.dumps([self.version, SUITE, *self.packages])
        work = ROOT / "build" / self.name
        folder = work / f"kit-{hashlib.sha256(wanted.encode()).hexdigest()[:12]}"
        work.mkdir(parents=True, exist_ok=True)
        with open(work / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "PACKAGES").is_file():
                self._install(folder, tell)
        return folder

    def _install(self, folder: Path, tell: bool) -> None:
        """Downloads the kit into `folder`, which is there only as a whole."""
        if platform.machine() != "x86_64":
            raise NoKit(f"the packages are for x86_64, this is {platform.machine()}")
        if tell:
            print(f"{self.name}: downloading {self.what}", flush=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            apt = Apt(Path(scratch) / "apt", [SUITE])
            apt.run("apt-get", "update")
            apt.run("apt-get", "-y", "--download-only", "install", *self.packages)
            unpacked = Path(scratch) / "root"
            archives = sorted((apt.folder / "cache/archives").glob("*.deb"))
            # The program's C library is this machine's.
            archives = [archive for archive in archives if not archive.name.startswith("libc6")]
            for archive in archives:
                subprocess.run(["dpkg-deb", "-x", archive, unpacked], check=True)
            made = Path(scratch) / "kit"
            (made / "lib").mkdir(parents=True)
            self.assemble(unpacked, made)
            (made / "PACKAGES").write_text("".join(f"{archive.name}\n" for archive in archives))
            made.rename(folder)


def libraries(unpacked: Path, needed_by: Path, to: Path) -> None:
    """Copies the unpacked libraries that a program or a library needs."""
    folders = [unpacked / "usr/lib/x86_64-linux-gnu", unpacked / "lib/x86_64-linux-gnu"]
    path = ":".join(map(str, folders))
    environment = os.environ | {"LD_LIBRARY_PATH": path}
    listed = subprocess.run(["ldd", needed_by], env=environment, capture_output=True, text=True)
    if missing := re.findall(r"(\S+) => not found", listed.stdout):
        raise NoKit(f"{needed_by.name} needs {', '.join(missing)}")
    for found in re.findall(rf"{re.escape(str(unpacked))}\S+", listed.stdout):
        shutil.copy(found, to)
