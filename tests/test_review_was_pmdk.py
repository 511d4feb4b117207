"""What a hostile review proved of unmodified programs; each of these fails."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pmdk as kits  # noqa: E402
import pytest  # noqa: E402
from nearside import pmdk_crash  # noqa: E402
from test_pmdk import FULL, ROOT, Steps, compiled, kit, place, steps, structures  # noqa: F401, E402


def test_a_hard_link_keeps_a_pool(steps):  # noqa: F811
    """Two names in two folders: the pool is opened by the one, which is removed; the file is still there."""
    folder = steps.folder.with_name("second")
    folder.mkdir(exist_ok=True)
    steps.told("create a set a 42 close a")
    os.link(steps.folder / "a", folder / "b")
    second = Steps(steps.place, steps.program, folder)
    assert second.told("open b get b") == ["b: 42 42"]
    (folder / "b").unlink()
    try:
        steps.told("fill", told=FULL)
        assert steps.told("open a get a") == ["a: 42 42"]
    finally:
        second.clear()


@pytest.mark.parametrize("name", ["last", "torn"])
@pytest.mark.parametrize("cuts", ["all", "sampled:200"])
def test_broken_programs_are_refused(kit, tmp_path, name, cuts):  # noqa: F811
    """crates/pmdk/tests/unflushed.c: a last flush that is forgotten, and 16 bytes that are stored in two steps."""
    program = tmp_path / name
    kits.compile_program(kit, ROOT / "crates/pmdk/tests/unflushed.c", program)
    doc = pmdk_crash.run([str(program), "run", "{}/f"], f"{program} check {{}}/f", "cpu", cuts)
    assert doc["violation"] is not None
