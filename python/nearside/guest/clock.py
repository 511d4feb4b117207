# SPDX-License-Identifier: Apache-2.0
"""The object that gives QEMU simulated time: `clock.c` and its other parts, compiled at its first use."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from nearside._native import NearsideError

FOLDER = Path(__file__).parent
SOURCES = [FOLDER / name for name in ("clock.c", "clock_host.c", "clock_plugin.c")]
HEADER = FOLDER / "clock.h"
FLAGS = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden"]


def build_clock(folder: Path) -> Path:
    """The compiled object in `folder`; compiles it unless it is there."""
    content = b"".join(path.read_bytes() for path in [*SOURCES, HEADER])
    key = hashlib.sha256(content + " ".join(FLAGS).encode()).hexdigest()[:12]
    target = folder / f"clock-{key}.so"
    if target.is_file():
        return target
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise NearsideError("no C compiler (cc): the object that gives QEMU simulated time has to be compiled")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / target.name
        command = [compiler, *FLAGS, "-o", str(made), *map(str, SOURCES)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise NearsideError(f"{SOURCES[0].name} can't be compiled: {(done.stderr.splitlines() or ['?'])[0]}")
        os.replace(made, target)
    return target
