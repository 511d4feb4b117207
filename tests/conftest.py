# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the tests of unmodified programs with libpmemobj."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import guest
import pmdk as kits
import pytest
from nearside import pmdk
from pmdk_programs import Place

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def kit() -> Path:
    try:
        return kits.KIT.folder(tell=False)
    except guest.NoKit as reason:
        pytest.skip(f"no libpmemobj: {reason}")


@pytest.fixture(scope="module")
def structures(kit, tmp_path_factory) -> Path:
    program = tmp_path_factory.mktemp("programs") / "structures"
    kits.compile_program(kit, ROOT / "crates/pmdk/examples/structures.c", program)
    return program


@pytest.fixture(scope="module")
def compiled(kit, tmp_path_factory) -> Callable[[str], Path]:
    """A test program, by its name."""
    folder = tmp_path_factory.mktemp("programs")

    def make(name: str) -> Path:
        if not (folder / name).exists():
            kits.compile_program(kit, ROOT / f"crates/pmdk/tests/{name}.c", folder / name)
        return folder / name

    return make


@pytest.fixture(scope="module")
def place(structures, tmp_path_factory) -> Iterator[Place]:
    # Files of pools are sparse.
    place = Place(tmp_path_factory.mktemp("device"), structures)
    with pmdk.serve_device("nearpm", place.socket, model=os.environ["NEARSIDE_MODEL"]):
        yield place
