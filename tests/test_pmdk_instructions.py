# SPDX-License-Identifier: Apache-2.0
"""Power cuts of programs with flush, fence and non-temporal store instructions."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pmdk as kits
import pytest
from nearside import NearsideError, pmdk_code, pmdk_crash
from nearside.guest.kit import NoKit

FOLDER = Path(__file__).resolve().parent.parent / "crates/pmdk/tests"


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> Callable[[str], Path]:
    """A program without PMDK, by its name."""
    folder = tmp_path_factory.mktemp("programs")

    def make(name: str, *options: str) -> Path:
        path = folder / name
        if not path.exists():
            words = ["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", path]
            subprocess.run([*words, *options, FOLDER / f"{name}.c", "-ldl"], check=True)
        return path

    return make


def crash(program: Path, way: str, cuts: str, **options) -> dict:
    """A campaign of a program that is cut while it runs, and that checks the result."""
    return pmdk_crash.run_campaign(
        [str(program), "run", "{}/f", way], f"{program} check {{}}/f {way}", "cpu", cuts, **options
    )


def kinds(doc: dict) -> dict[str, int]:
    (module,) = doc["instructions"]
    return {kind: count for kind, count in module.items() if kind != "file" and count > 0}


HASH_RIGHT = ["clwb", "clflushopt", "clflush", "streams", "locked"]
HASH_WRONG = {
    "no_flush": "a slot that counts is torn",
    "no_fence": "a slot that counts is torn",
    "token_first": "a slot that counts is torn",
    "no_fence_at_end": "is not there",
    "half": "a slot that counts is torn",
}
LEAF_RIGHT = ["flushes", "clwb"]
LEAF_WRONG = {
    "no_flush": "the records are not sorted",
    "no_fence": "is not there",
    "first": "is not there",
    "no_flush_of_record": "is not there",
}


def check_wrong(program: Path, wrong: dict[str, str], cuts: str) -> None:
    found = {way: crash(program, way, cuts)["violation"] for way in wrong}
    assert [way for way, violation in found.items() if violation is None] == []
    assert [way for way, text in wrong.items() if not found[way]["what"].endswith(text)] == []


def test_pmdk_instructions_hash_table_with_and_without_a_bug(own):
    """The others, and those of a B-tree's leaf, are below."""
    doc = crash(own("hash"), "clwb", "sampled:12")
    assert (doc["ended"], doc["violation"]) == (0, None)
    assert doc["moments"] == 24 * 10 + 1
    assert kinds(doc).keys() == {"flushes", "ordered_flushes", "fences", "locked", "streams"}
    violation = crash(own("hash"), "half", "sampled:4")["violation"]
    assert violation["what"] == "exit status 1: a slot that counts is torn"
    assert any(line.startswith("CPU     clwb of 64 bytes, ") for line in violation["timeline"])


@pytest.mark.slow
@pytest.mark.parametrize("way", HASH_RIGHT)
def test_pmdk_instructions_correct_hash_table(own, way):
    doc = crash(own("hash"), way, "sampled:40")
    assert (doc["ended"], doc["violation"]) == (0, None)


@pytest.mark.slow
def test_pmdk_instructions_wrong_hash_table(own):
    check_wrong(own("hash"), HASH_WRONG, "sampled:40")


@pytest.mark.slow
@pytest.mark.parametrize("way", LEAF_RIGHT)
def test_pmdk_instructions_correct_leaf(own, way):
    doc = crash(own("leaf"), way, "sampled:40")
    assert (doc["ended"], doc["violation"]) == (0, None)


@pytest.mark.slow
def test_pmdk_instructions_wrong_leaf(own):
    check_wrong(own("leaf"), LEAF_WRONG, "sampled:40")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["clwb", "clflush", "streams"])
def test_pmdk_instructions_fences_that_do_not_count(own, way):
    doc = crash(own("hash"), way, "sampled:4", without="fences")
    assert doc["violated"] > 0


@pytest.mark.long
@pytest.mark.parametrize(("name", "ways"), [("hash", HASH_RIGHT), ("leaf", LEAF_RIGHT)])
def test_pmdk_instructions_all_moments_of_correct_programs(own, name, ways):
    for way in ways:
        assert crash(own(name), way, "all")["violation"] is None


CORNERS = [
    "plain",
    "thread",
    "handler",
    "trap",
    "registers",
    "operands",
    "nowhere",
    "fork",
    "atfork",
    "protected",
    "threads",
    "library",
]


@pytest.mark.slow
@pytest.mark.parametrize("way", CORNERS)
def test_pmdk_instructions_corner_cases(own, way):
    """All behave as without the shim, or the program reports it; without its one flush the number is lost."""
    program = own("corners")
    words = [str(program), "run", "{}/f", way]
    library = str(own("library", "-shared", "-fPIC"))
    check = f"{program} check {{}}/f {way}"
    cuts = "sampled:6" if way == "threads" else "all"
    doc = pmdk_crash.run_campaign([*words, "kept", library], check, "cpu", cuts)
    assert (doc["ended"], doc["violation"]) == (0, None)
    # In a program of several threads only the last moment has all of it.
    last = doc["left_out"] + doc["moments"]
    doc = pmdk_crash.run_campaign(
        [*words, "lost", library], check, "cpu", f"at:{last - 3}" if way == "threads" else "all"
    )
    assert doc["violation"]["what"] == "exit status 1: done, and not there"
    assert {Path(module["file"]).name for module in doc["instructions"]} >= {"corners"}
    assert ("library" in {Path(module["file"]).name for module in doc["instructions"]}) == (way == "library")


@pytest.mark.slow
def test_pmdk_instructions_libpmem_within_a_program(kit, tmp_path):
    """Its calls can't be followed; its flushes and copies are, as instructions."""
    try:
        archive = kits.ARCHIVE.folder(tell=False) / "lib/libpmem.a"
    except NoKit as reason:
        pytest.skip(f"no libpmem.a: {reason}")
    program = tmp_path / "inside"
    needed = [f"-L{kit}/lib", "-l:libndctl.so.6", "-l:libdaxctl.so.1", f"-Wl,--disable-new-dtags,-rpath,{kit}/lib"]
    words = ["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{kit}/include", "-o", program]
    subprocess.run([*words, FOLDER / "inside.c", archive, *needed], check=True)
    doc = crash(program, "right", "sampled:40")
    assert (doc["ended"], doc["violation"]) == (0, None)
    found = next(module for module in doc["instructions"] if module["file"] == str(program))
    assert found["left_alone"] == 0
    assert found["flushes"] > 100
    assert found["streams"] > 1000
    assert " of " in crash(program, "wrong", "sampled:40")["violation"]["what"]


def test_pmdk_instructions_program_without_flushes(own):
    with pytest.raises(NearsideError, match="it has persisted nothing"):
        pmdk_crash.run_campaign(["/bin/true", "{}"], None, "cpu", "all")


def test_pmdk_instructions_folder_with_a_name_too_long(tmp_path):
    with (
        pytest.raises(NearsideError, match=r"no socket can be there: .*TMPDIR"),
        pmdk_code.served(tmp_path / ("x" * 200)),
    ):
        pass


def test_pmdk_instructions_file_that_is_not_a_program(tmp_path):
    """Its requests are answered, and reported."""
    broken = tmp_path / "broken"
    broken.write_bytes(Path("/bin/true").read_bytes()[:200])
    with pmdk_code.served(tmp_path / "socket") as code, broken.open("rb") as file:
        assert code._instructions_of(str(broken), file.fileno()) == bytes(16)
        (module,) = code.modules()
    assert module["file"] == str(broken)
    assert "broken" in module["error"]
