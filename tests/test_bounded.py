# SPDX-License-Identifier: Apache-2.0
"""Commands with a time limit: the end of their output, and the end of all their processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from nearside import NearsideError, bounded

MARK = f"NEARSIDE_TEST_MARK={os.getpid()}"
# The seconds of a `sleep` that no other process has.
FOREVER = f"1{os.getpid():07}"


def run(script: str, limit_s: float = 60, **options) -> bounded.CommandResult:
    name, _, value = MARK.partition("=")
    return bounded.run_command(["/bin/sh", "-c", script], os.environ | {name: value}, limit_s, MARK, **options)


def left() -> list[str]:
    """Processes that are still running."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        found += [str(path)] if FOREVER.encode() in words else []
    return found


@pytest.mark.parametrize(
    "script",
    [
        "sleep FOREVER",
        "sleep FOREVER & sleep FOREVER & wait",
        "trap '' TERM INT HUP; sleep FOREVER; sleep FOREVER",
        "setsid -w setsid -w sleep FOREVER",
        "set -m; sleep FOREVER & wait",
        "while :; do echo y; done",
    ],
)
def test_command_kills_what_does_not_end(script):
    assert run(script.replace("FOREVER", FOREVER), 0.3).status is None
    assert left() == []


@pytest.mark.parametrize("start", ["", "setsid ", "set -m; "])
@pytest.mark.parametrize("quiet", ["", " > /dev/null 2>&1"])
def test_command_kills_child_processes(start, quiet):
    ended = run(f"echo reported; {start} sleep {FOREVER}{quiet} & exit 3")
    assert (ended.status, ended.stdout) == (3, "reported\n")
    assert left() == []


def test_command_waits_for_children_on_request():
    script = "(sleep 0.1; echo late) & echo early"
    assert "late" not in run(script).stdout
    assert run(script, with_children=True).stdout == "early\nlate\n"
    assert run(f"sleep {FOREVER} & exit 0", 0.3, with_children=True).status is None
    assert left() == []


def test_command_ends_when_the_poll_stops_it(tmp_path):
    ended = run(f"touch {tmp_path}/file; sleep {FOREVER}", stop=(tmp_path / "file").exists)
    assert ended.status is not None
    assert left() == []


def test_command_keeps_the_end_of_its_output():
    ended = run(
        "head -c 1000000 /dev/zero | tr '\\0' x; printf 'a\\n\\033[1mlast\\n'; echo 'of errors' >&2; kill -9 $$"
    )
    assert ended.status == -9
    assert len(ended.stdout) == bounded.TAIL
    assert ended.lines[-2:] == [r"\x1b[1mlast", "of errors"]
    assert ended.last_line == "of errors"
    assert run("echo only this; echo").last_line == "only this"
    assert run("true").last_line == ""


def test_command_that_cannot_start_is_an_error():
    for word, text in (("/no/program", "No such file"), ("a\0b", "null byte")):
        with pytest.raises(NearsideError, match=text):
            bounded.run_command([word], {}, 1, MARK)
