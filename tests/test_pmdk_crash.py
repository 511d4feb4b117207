# SPDX-License-Identifier: Apache-2.0
"""Power cuts of unmodified programs with libpmemobj or libpmem: `nearside crashtest -- PROGRAM`."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pmdk as kits
import pytest
from nearside import NearsideError, pmdk, pmdk_crash, pmdk_moments

ROOT = Path(__file__).resolve().parent.parent
KINDS = ["btree", "rbtree", "skiplist", "hashmap", "list"]
# With an odd seed some steps are aborted before they are complete.
CALM, ABORTING = 2, 3


def crash(structures: Path, kind: str, by: str, cuts: str, seed: int = CALM, threads: int = 1, **options) -> dict:
    pool = f"{kind}:{{}}/pool"
    program = [str(structures), "run", str(seed), "30", str(threads), pool]
    return pmdk_crash.run_campaign(program, f"{structures} check {seed} {pool}", by, cuts, model="fast", **options)


@pytest.mark.slow
@pytest.mark.parametrize("by", pmdk_crash.EXECUTORS)
def test_pmdk_crash_power_cuts(structures, by):
    doc = crash(structures, "btree", by, "sampled:8", seed=ABORTING)
    assert (doc["cuts"], doc["ended"], doc["violated"], doc["violation"]) == (8, 0, 0, None)
    assert doc["moments"] > 300
    assert not pmdk_crash.campaign_failed(doc)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "without", "cuts"), [("device", "snapshots", "sampled:10"), ("cpu", "fences", "sampled:2")]
)
def test_pmdk_crash_power_cuts_detect_fault_injections(structures, by, without, cuts):
    doc = crash(structures, "hashmap", by, cuts, without=without)
    assert doc["violated"] > 0
    assert not pmdk_crash.campaign_failed(doc)
    again = crash(structures, "hashmap", by, f"at:{doc['violation']['cut']}", without=without)
    assert again["violated"] == 1
    assert again["violation"]["what"].split(": ", 1)[1] == doc["violation"]["what"].split(": ", 1)[1]


def test_pmdk_crash_aborting_threads_do_not_wait_for_each_other(compiled):
    program = compiled("aborting")

    def run(cuts: str) -> dict:
        words = [str(program), "run", "{}/f"]
        return pmdk_crash.run_campaign(words, f"{program} check {{}}/f", "device", cuts, limit_s=30, model="fast")

    doc = run("at:900/7,1800/7")
    assert (doc["cuts"], doc["ended"], doc["violation"]) == (2, 0, None)
    # A moment that is not reached lets the program run to its end.
    with pytest.raises(NearsideError, match="the program ends before moment 1,000,000,000: "):
        run("at:1000000000")


@pytest.mark.slow
@pytest.mark.parametrize("by", pmdk_crash.EXECUTORS)
def test_pmdk_crash_power_cuts_of_reopened_pools(compiled, by):
    """The mapping that follows the program's memory has no lock on it."""
    steps = "create a set a 1 close a open a set a 2 close a"
    program = [str(compiled("pools")), "{}", *steps.split()]
    doc = pmdk_crash.run_campaign(program, f"{program[0]} {{}} open a get a", by, "sampled:12", model="fast")
    assert (doc["ended"], doc["violation"]) == (0, None)


WRONG_WAYS = ["nothing", "memcpy_noflush", "msync_async", "msync_invalidate", "msync_misaligned", "fsync_another"]


def lost_by(program: Path, ways: Sequence[str], moments: Callable[[range], Iterable[int]]) -> str | None:
    """The fault of a program that makes numbers persistent in these ways, and counts each."""

    def run(cuts: str) -> dict:
        return pmdk_crash.run_campaign([str(program), "run", "{}/f", *ways], f"{program} check {{}}/f", "cpu", cuts)

    doc = run("at:1")
    first = doc["left_out"] + 1
    violation = run("at:" + ",".join(map(str, moments(range(first, first + doc["moments"])))))["violation"]
    return violation and violation["what"]


@pytest.mark.slow
@pytest.mark.parametrize("way", WRONG_WAYS)
def test_pmdk_crash_ways_that_do_not_persist(compiled, way):
    assert lost_by(compiled("ways"), ["msync", way], list) == "number 2 of 2 is not there"


@pytest.mark.slow
@pytest.mark.parametrize("of_pools", [False, True])
def test_pmdk_crash_ways_that_persist(compiled, of_pools):
    """All functions of libpmem, libc and libpmemobj that persist data, except those that do not."""
    names = re.findall(r'strcmp\(way, "(\w+)"\)', (ROOT / "crates/pmdk/tests/ways.c").read_text())
    ways = [name for name in names if name not in WRONG_WAYS and name.startswith("obj_") == of_pools]
    assert len(ways) >= (11 if of_pools else 19)
    # libpmemobj's ways use separate lines, so the last moments before its end have all that is
    # lost. Some of the others use the page.
    assert lost_by(compiled("ways"), ways, lambda moments: moments[-12:] if of_pools else moments) is None


def test_pmdk_crash_script_that_starts_the_program(compiled, tmp_path):
    ways = compiled("ways")
    script = tmp_path / "script"
    # Its steps after the power cut have no effect.
    script.write_text(f'#!/bin/sh\n{ways} run "$1/f" "$2" persist || cp "$0" "$1/later"\n')
    script.chmod(0o700)
    check = f"/bin/sh -c '! test -e {{}}/later && {ways} check {{}}/f'"
    docs = [pmdk_crash.run_campaign([str(script), "{}", way], check, "cpu", "all") for way in ("persist", "nothing")]
    assert (docs[0]["moments"], docs[0]["ended"], docs[0]["violation"]) == (9, 0, None)
    assert docs[1]["violation"]["what"] == "number 1 of 1 is not there"
    assert docs[1]["violation"]["timeline"][-1].startswith("the power fails: ")


@pytest.mark.parametrize("cuts", ["sampled:4", "all"])
def test_pmdk_crash_program_with_state_outside_its_folder(compiled, tmp_path, cuts):
    """It keeps state outside of its folder: if the power fails in no run, nothing was tested."""
    ways, script = compiled("ways"), tmp_path / "script"
    runs = tmp_path / "runs"
    script.write_text(f'#!/bin/sh\necho >> {runs}\ntest $(wc -l < {runs}) -gt 2 || {ways} run "$1/f" nothing\n')
    script.chmod(0o700)
    with pytest.raises(NearsideError, match=r"the power has failed in none of \d+ runs"):
        pmdk_crash.run_campaign([str(script), "{}"], f"{ways} check {{}}/f", "cpu", cuts)


def test_pmdk_crash_output_that_is_not_text(compiled, tmp_path):
    ways, bytes_ = compiled("ways"), r"printf 'a \377\376 name\n'"
    script = tmp_path / "check"
    script.write_text(f"#!/bin/sh\n{bytes_}; {ways} check $1/f 2>/dev/null || {{ {bytes_} >&2; exit 1; }}\n")
    script.chmod(0o700)
    program = ["/bin/sh", "-c", f"{bytes_} >&2; {ways} run {{}}/f nothing"]
    doc = pmdk_crash.run_campaign(program, f"{script} {{}}", "cpu", "all")
    assert doc["violation"]["what"] == r"a \xff\xfe name"


def test_pmdk_crash_program_that_kills_itself(compiled):
    script = f'if test "$NEARSIDE_PMDK_KILL" = 3; then kill -9 $$; fi; {compiled("ways")} run {{}}/f persist'
    doc = pmdk_crash.run_campaign(["/bin/sh", "-c", script], f"{compiled('ways')} check {{}}/f", "cpu", "at:2,3")
    assert (doc["cuts"], doc["violated"]) == (2, 1)
    assert doc["violation"]["what"] == "the program ends before the power fails: signal 9, Killed"


def campaign_of(compiled, how: str, way: str) -> dict:
    program = str(compiled("telling"))
    return pmdk_crash.run_campaign(
        [program, "run", "{}/f", how, way], f"{program} check {{}}/f {how} {way}", "cpu", "all"
    )


@pytest.mark.slow
@pytest.mark.parametrize("way", ["return", "_exit", "unmap", "drain", "msync", "fsync", "printf", "vfork"])
def test_pmdk_crash_output_needs_durable_data(compiled, way):
    """By a file, at the end, before a fence, a sync and an unmapping that are too late."""
    assert campaign_of(compiled, "careless", way)["violation"]["what"] == "reported, and lost"
    doc = campaign_of(compiled, "careful", way)
    assert (doc["ended"], doc["violation"]) == (0, None)


def test_pmdk_crash_data_may_be_durable_before_output(compiled):
    """The line may have left the cache before the output."""
    program = str(compiled("telling"))
    cuts = "at:" + ",".join(f"1/{seed}" for seed in range(1, 30))
    for how, what in (("careless", "there, and not reported"), ("careful", None)):
        words = [program, "run", "{}/f", how, "early"]
        doc = pmdk_crash.run_campaign(words, f"{program} check {{}}/f {how} early", "cpu", cuts)
        assert doc["violation"]["what"] == what if what else doc["violation"] is None


MOVES = ["moved", "grown", "grown_file", "twice", "shrunk", "covered", "unmapped", "part", "under_way"]


@pytest.mark.parametrize("way", MOVES)
def test_pmdk_crash_moving_memory(compiled, way):
    """By `mremap`, and mappings that have lost a part: a file's former address may hold something else."""
    program = str(compiled("moving"))
    for how, what in (("careless", "counted, and not there"), ("careful", None)):
        doc = pmdk_crash.run_campaign([program, "run", "{}/f", how, way], f"{program} check {{}}/f", "cpu", "all")
        assert doc["ended"] == 0
        assert doc["violation"]["what"] == what if what else doc["violation"] is None


@pytest.mark.parametrize("way", ["persist", "msync", "fsync", "not_after", "not_last"])
def test_pmdk_crash_many_mappings(compiled, capfd, way):
    """All are followed, and the rest of one that loses its middle."""
    program = str(compiled("many"))
    doc = pmdk_crash.run_campaign([program, "run", "{}/f", way], f"{program} check {{}}/f", "cpu", "all")
    wrong = "counted, and not there" if way.startswith("not_") else None
    assert (doc["ended"], doc["violation"] and doc["violation"]["what"]) == (0, wrong)
    assert "not followed" not in capfd.readouterr().err


@pytest.mark.parametrize("how", ["careful", "careless"])
def test_pmdk_crash_many_files(compiled, capfd, how):
    """More than the limit of file descriptors, one after the other."""
    program, count = str(compiled("files")), 100
    words = [program, "run", "{}", how, str(count)]
    moments = pmdk_crash.run_campaign(words, "/bin/true", "cpu", "at:1")["moments"]
    cuts = "at:" + ",".join(str(moments - n) for n in range(1, 12))
    doc = pmdk_crash.run_campaign(words, f"{program} check {{}} {how} {count}", "cpu", cuts)
    wrong = f"counted in {count - 1}, and not there" if how == "careless" else None
    assert (doc["ended"], doc["violation"] and doc["violation"]["what"]) == (0, wrong)
    assert "not followed" not in capfd.readouterr().err


@pytest.mark.parametrize("way", ["all", "part", "again"])
def test_pmdk_crash_earlier_file_content_is_gone(compiled, way):
    """It is emptied while nothing maps it; or it is mapped again, with an earlier write-back in progress."""
    program = str(compiled("truncated"))
    doc = pmdk_crash.run_campaign([program, "run", "{}/f", way], f"{program} check {{}}/f {way}", "cpu", "all")
    assert (doc["ended"], doc["violation"]) == (0, None)


def test_pmdk_crash_line_with_newer_words(compiled):
    """Flushed by one thread, and streamed by another one that waits first."""
    program = str(compiled("stale"))
    doc = pmdk_crash.run_campaign([program, "run", "{}/f"], f"{program} check {{}}/f", "cpu", "all")
    assert (doc["ended"], doc["violation"]) == (0, None)


def test_pmdk_crash_fdatasync_in_a_signal_handler(compiled):
    """As POSIX allows: also when the signal interrupts the shim."""
    # Of a file in memory, whose handler does not wait.
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file, tempfile.TemporaryDirectory() as folder:
        shim = pmdk.write_shim(Path(folder))
        environment = pmdk.environment(shim, None)
        done = subprocess.run([compiled("signals"), file.name], env=environment, timeout=600)
    assert done.returncode == 0


def test_pmdk_crash_child_with_shared_memory_is_not_the_program(compiled):
    """Its end is not the program's."""
    assert campaign_of(compiled, "careful", "vfork")["moments"] == campaign_of(compiled, "careful", "return")["moments"]


def test_pmdk_crash_frequent_output_has_one_moment(compiled):
    """With one moment for each, nearly all moments would be before such calls."""
    counts = [campaign_of(compiled, "careful", way)["moments"] for way in ("return", "often")]
    assert counts[0] == counts[1]


@pytest.mark.slow
@pytest.mark.parametrize("cuts", ["all", pytest.param("sampled:60", marks=pytest.mark.long)])
def test_pmdk_crash_words_that_must_be_atomic(compiled, cuts):
    """Only `torn` finds them, as moments are at calls; it also refuses programs that rely on the
    order within a line."""
    program = str(compiled("words"))

    def wrong(way: str, torn: bool) -> str | None:
        words = [program, "run", "{}/f", way]
        doc = pmdk_crash.run_campaign(words, f"{program} check {{}}/f {way}", "cpu", cuts, torn=torn)
        assert ("--torn" in (doc["violation"] or {"replay": ""})["replay"]) == (torn and doc["violation"] is not None)
        return doc["violation"] and doc["violation"]["what"]

    assert [wrong(way, False) for way in ("alike", "ordered", "fenced")] == [None, None, None]
    assert [wrong(way, True) for way in ("alike", "ordered", "fenced")] == ["torn", "counted, and not there", None]


def test_pmdk_crash_torn_line_is_reproduced(compiled):
    program = str(compiled("words"))
    check = f"{program} check {{}}/f alike"
    violation = pmdk_crash.run_campaign([program, "run", "{}/f", "alike"], check, "cpu", "sampled:30", torn=True)[
        "violation"
    ]
    assert re.search(r"left the cache before, [1-9]\d* in part$", violation["timeline"][-1])
    command = [sys.executable, "-m", "nearside.cli", *shlex.split(violation["replay"])[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, "torn" in done.stderr) == (1, True)


def test_pmdk_crash_workload_lines_are_not_torn():
    command = [sys.executable, "-m", "nearside.cli", "crashtest", "btree", "--torn"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1
    assert "--torn is for programs (-- PROGRAM); the lines of btree leave whole" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "option", ["--mechanism=undo", "--transactions=3", "--devices=2", "--synchronise=host", "--jobs=1"]
)
def test_pmdk_crash_workload_options_are_refused_for_programs(option):
    command = [sys.executable, "-m", "nearside.cli", "crashtest", option, "--", "/bin/true", "{}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1
    name = option.partition("=")[0]
    assert done.stderr == f"nearside: {name} is for workloads, not for programs (-- PROGRAM)\n"


@pytest.mark.slow
@pytest.mark.parametrize("by", pmdk_crash.EXECUTORS)
def test_pmdk_crash_libpmemobj_does_not_rely_on_store_order_within_a_line(structures, by):
    assert crash(structures, "btree", by, "sampled:20", seed=ABORTING, torn=True)["violation"] is None


@pytest.mark.parametrize("moment", [1000, 1 << 62])
def test_pmdk_crash_moments_that_are_not_reached(compiled, moment):
    program = [str(compiled("ways")), "run", "{}/f", "persist"]
    with pytest.raises(NearsideError, match=rf"^cuts = at:2,{moment}: .* before moment {moment:,}: it has \d+$"):
        pmdk_crash.run_campaign(program, "/bin/true", "cpu", f"at:2,{moment}")


@pytest.mark.slow
def test_pmdk_crash_missing_fence_is_reported_with_its_timeline(kit, tmp_path):
    docs = {}
    for name, cuts in (("careless", "all"), ("careful", "sampled:20")):
        program = tmp_path / name
        kits.compile_program(kit, ROOT / "crates/pmdk/tests/careless.c", program)
        docs[name] = pmdk_crash.run_campaign([str(program), "run", "{}/f"], f"{program} check {{}}/f", "cpu", cuts)
    assert docs["careful"]["violated"] == 0
    violation = docs["careless"]["violation"]
    assert re.fullmatch(r"in step \d+ the old number is \d+", violation["what"])
    assert violation["timeline"][-1].startswith("the power fails: ")
    assert any(line.startswith("CPU     clwb of 8 bytes, ") for line in violation["timeline"])
    command = [sys.executable, "-m", "nearside.cli", *shlex.split(violation["replay"])[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1
    assert violation["what"] in done.stderr


def test_pmdk_crash_left_out_moments_are_reported(compiled, capsys):
    command = [str(compiled("aborting")), "run", "{}/f"]
    doc = pmdk_crash.run_campaign(command, f"{command[0]} check {{}}/f", "cpu", "sampled:1")
    assert doc["left_out"] > 10
    pmdk_crash.print_reports([doc])
    assert f"left out are {doc['left_out']:,} moments before the first transaction" in capsys.readouterr().out
    # They can be requested.
    early = pmdk_crash.run_campaign(command, f"{command[0]} check {{}}/f", "cpu", "at:3")
    assert (early["cuts"], early["ended"]) == (1, 0)
    doc = pmdk_crash.run_campaign([str(compiled("ways")), "run", "{}/f", "persist"], "/bin/true", "cpu", "sampled:1")
    assert doc["left_out"] == 0
    pmdk_crash.print_reports([doc])
    assert "left out" not in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("way", ["return", "atexit", "quick_exit"])
def test_pmdk_crash_exits_that_report_lost_data(compiled, way):
    program = str(compiled("ends"))

    def run(how: str) -> dict:
        check = f"{program} check {{}}/f {how} {way}"
        return pmdk_crash.run_campaign([program, "run", "{}/f", how, way], check, "cpu", "all")

    assert (run("careful")["ended"], run("careful")["violation"]) == (0, None)
    assert run("careless")["violation"]["what"] == "reported, and lost"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["write", "create", "mkdir", "symlink", "unbuffered", "dprintf"])
def test_pmdk_crash_data_may_be_durable_before_exit(compiled, way):
    """A line may leave the cache before it is flushed, and so before the program reports it."""
    program = str(compiled("early"))
    cuts = "at:" + ",".join(f"{moment}/{seed}" for moment in (1, 2) for seed in range(1, 12))
    doc = pmdk_crash.run_campaign([program, "run", "{}/f", way], f"{program} check {{}}/f {way}", "cpu", cuts)
    assert doc["violation"]["what"] == "there, and not reported"


def test_pmdk_crash_bad_arguments(structures):
    good = {"program": ["/bin/true", "{}"], "check": None, "by": "cpu", "cuts": "sampled:1"}
    for bad, text in [
        ({"program": ["/bin/true"]}, "lack {}"),
        ({"program": ["/bin/false", "{}"]}, "exit status 1"),
        ({"program": ["/no/program", "{}"]}, "No such file"),
        ({}, "it has persisted nothing"),
        ({"check": "/bin/false"}, "the check fails without a loss of power"),
        ({"check": '"'}, "check = "),
        ({"check": ""}, "a command is needed"),
        ({"by": "x"}, "allowed is cpu, device"),
        ({"without": "snapshots"}, "allowed for programs by the cpu is fences"),
    ]:
        with pytest.raises(NearsideError, match=re.escape(text)):
            pmdk_crash.run_campaign(**good | bad)
    moments = [pmdk_moments.Moment(number, "following a fence", (0, 0)) for number in range(1, 9)]
    for cuts in ("x", "sampled:", "sampled:0", "at:", "at:x", "at:1/x", "at:0", "sampled:9999999"):
        with pytest.raises(NearsideError, match=r"^cuts = "):
            list(pmdk_crash.parse_cuts(cuts, moments, 1))
    assert list(pmdk_crash.parse_cuts("at:5/7,6", moments, 1)) == [(5, 7), (6, 0)]
    assert len(list(pmdk_crash.parse_cuts("all", moments, 1))) == 16
    assert len(list(pmdk_crash.parse_cuts("all", moments, 1, torn=True))) == 32


@pytest.mark.long
@pytest.mark.parametrize("by", pmdk_crash.EXECUTORS)
@pytest.mark.parametrize("kind", KINDS)
def test_pmdk_crash_many_power_cuts(structures, kind, by):
    assert crash(structures, kind, by, "sampled:150", seed=ABORTING, threads=2)["violation"] is None
