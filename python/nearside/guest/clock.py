# SPDX-License-Identifier: Apache-2.0
"""The object that gives QEMU simulated time: `clock.c`, compiled at its first use."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from nearside._native import NearsideError

SOURCE = Path(__file__).with_name("clock.c")
FLAGS = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]


def build_clock(folder: Path) -> Path:
    """The compiled object in `folder`; compiles it unless it is there."""
    key = hashlib.sha256(SOURCE.read_bytes() + " ".join(FLAGS).encode()).hexdigest()[:12]
    target = folder / f"clock-{key}.so"
    if target.is_file():
        return target
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise NearsideError("no C compiler (cc): the object that gives QEMU simulated time has to be compiled")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / target.name
        command = [compiler, *FLAGS, "-o", str(made), str(SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise NearsideError(f"{SOURCE.name} can't be compiled: {(done.stderr.splitlines() or ['?'])[0]}")
        os.replace(made, target)
    return target
