# SPDX-License-Identifier: Apache-2.0
"""Redis's own clients for tests, out of Debian's packages."""

from __future__ import annotations

import shutil
from pathlib import Path

from kits import Kit, libraries

PROGRAMS = ["redis-cli", "redis-benchmark"]


def _assemble(unpacked: Path, made: Path) -> None:
    for name in PROGRAMS:
        program = unpacked / "usr/bin" / name
        libraries(unpacked, program, made / "lib")
        shutil.copy(program, made)


# Any security update of it.
KIT = Kit("redis-tools", "Redis's clients (1 MB)", ["redis-tools=5:7.0.15-1~deb12u*"], _assemble)
