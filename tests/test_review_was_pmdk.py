"""What a hostile review proved of unmodified programs; each of these fails."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from test_pmdk import FULL, SPACE, Steps, compiled, kit, place, steps, structures  # noqa: F401


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


def test_a_hard_link_in_the_same_folder(steps):  # noqa: F811
    steps.told("create a set a 42 close a")
    os.link(steps.folder / "a", steps.folder / "b")
    assert steps.told("open b get b close b") == ["b: 42 42"]
    (steps.folder / "b").unlink()
    steps.told("fill", told=FULL)
    assert steps.told("open a get a") == ["a: 42 42"]


def test_a_symlink(steps):  # noqa: F811
    steps.told("create a set a 42 close a")
    (steps.folder / "s").symlink_to(steps.folder / "a")
    assert steps.told("open s get s set s 43 close s") == ["s: 42 42"]
    (steps.folder / "s").unlink()
    steps.told("fill", told=FULL)
    assert steps.told("open a get a") == ["a: 43 43"]


def test_a_pool_that_lost_its_bytes(steps):  # noqa: F811
    steps.told("create a set a 42 close a")
    size = os.stat(steps.folder / "a").st_size
    os.truncate(steps.folder / "a", size // 2)
    print(steps.start("open a get a").communicate(timeout=60))
    os.truncate(steps.folder / "a", size)
    assert steps.told("open a get a") == ["a: 42 42"]
    os.truncate(steps.folder / "a", size * 2)
    print(steps.start("open a get a").communicate(timeout=60))
    print(steps.start("check a").communicate(timeout=60))


def test_moved_and_opened_while_open(steps):  # noqa: F811
    """A second process, by another name."""
    one = steps.start("create a set a 42 stay a get a set a 43 get a close a")
    assert one.stdout.readline() == "stays\n"
    os.link(steps.folder / "a", steps.folder / "b")
    print(steps.start("open b get b").communicate(timeout=60))
    print(one.communicate("\n", timeout=60))
