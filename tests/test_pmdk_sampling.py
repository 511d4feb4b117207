# SPDX-License-Identifier: Apache-2.0
"""The moments of a program that `sampled:N` chooses, and the report of a campaign about them."""

from __future__ import annotations

import re

import pytest
from nearside import NearsideError, pmdk_crash, pmdk_moments

IN_TRANSACTION, IN_COMMIT, AFTERWARDS = 1, 2, 4
FLUSH, FIRST_FLUSH, BEFORE_FENCE, FENCE, END = 0, 1, 3, 4, 10
# One transaction among many: the operations of libpmemobj at the end of a commit with a long log.
LONG = 261


def run_of(steps: int, long_at: int) -> tuple[bytes, range]:
    """Records of a run with a commit of 8 moments in each step, and a long one; and the numbers of the latter's."""
    rows, long = [], range(0)

    def add(phase: int, what: int, place: int, thread: int = 1) -> None:
        rows.append((len(rows) + 1, place, thread, phase, what))

    def commit(count: int, place: int) -> None:
        for n in range(count):
            add(IN_COMMIT, (FIRST_FLUSH, FLUSH, BEFORE_FENCE, FENCE)[n % 4], place + n % 4)

    for step in range(steps):
        for n in range(8):
            add(IN_TRANSACTION, (FIRST_FLUSH, FENCE)[n % 2], 100 + n)
        commit(8, 200)
        if step == long_at:
            first = len(rows) + 1
            add(IN_TRANSACTION, FLUSH, 300)
            commit(LONG, 200)
            long = range(first + 1, len(rows) + 1)
        add(AFTERWARDS, FENCE, 400)
    add(0, END, 500)
    return b"".join(pmdk_moments.RECORD.pack(*row) for row in rows), long


@pytest.mark.parametrize("order", [1, -1])
def test_pmdk_sampling_chooses_rare_moments(order):
    """The end of one long commit among 36,000 moments, which a random choice of 60 has in none or one."""
    records, long = run_of(2100, 1234)
    rows = [records[at : at + 16] for at in range(0, len(records), 16)]
    moments = pmdk_moments.parse(b"".join(rows[::order]), 1)
    assert len(moments) > 35_000
    for seed in range(20):
        chosen = pmdk_moments.sample(moments, 60, seed)
        assert len(chosen) == len(set(chosen)) == 60
        assert sum(number in long for number in chosen) >= 8
        # Some at its end, where the logs are cleared.
        assert sum(number > long[-1] - LONG // 8 for number in chosen if number in long) >= 3


def test_pmdk_sampling_is_reproducible_by_seed():
    moments = pmdk_moments.parse(run_of(40, 7)[0], 1)
    assert pmdk_moments.sample(moments, 60, 5) == pmdk_moments.sample(moments, 60, 5)
    assert pmdk_moments.sample(moments, 60, 5) != pmdk_moments.sample(moments, 60, 6)
    assert list(pmdk_crash.parse_cuts("sampled:60", moments, 5)) == list(
        pmdk_crash.parse_cuts("sampled:60", moments, 5)
    )


def test_pmdk_sampling_repeats_no_moment_before_all_were_chosen():
    moments = pmdk_moments.parse(run_of(5, 2)[0], 1)
    chosen = pmdk_moments.sample(moments, 2 * len(moments) + 3, 1)
    assert sorted(chosen[: len(moments)]) == [moment.number for moment in moments]
    assert sorted(chosen[len(moments) : 2 * len(moments)]) == [moment.number for moment in moments]
    # The loss without evicted lines is the same each time.
    cuts = list(pmdk_crash.parse_cuts(f"sampled:{6 * len(moments)}", moments, 1))
    bare = [number for number, evict in cuts if evict == 0]
    assert len(bare) == len(set(bare)) > len(moments) // 2


def test_pmdk_sampling_counts_classes_and_cuts():
    records, long = run_of(10, 3)
    moments = pmdk_moments.parse(records, 1)
    rows = {row["class"]: row for row in pmdk_moments.coverage(moments, [1, 2, 2, long[-1], len(moments)])}
    assert sum(row["moments"] for row in rows.values()) == len(moments)
    assert sum(row["moments_cut"] for row in rows.values()) == 4
    assert rows["at the end"] == {"class": "at the end", "moments": 1, "moments_cut": 1, "places": 1, "places_cut": 1}
    first = rows["following the first flush since a fence, in a transaction"]
    assert (first["moments"], first["moments_cut"], first["places"], first["places_cut"]) == (40, 1, 4, 1)
    assert rows["following the first flush since a fence, at the end of a commit"]["moments_cut"] == 1
    # A run that begins later, and the rest of an incomplete record.
    assert [moment.number for moment in pmdk_moments.parse(records + b"x", 5)] == list(range(5, len(moments) + 1))


def test_pmdk_sampling_of_commits_of_several_threads():
    """Each thread has a separate phase, in any interleaving."""
    rows = [(n + 1, 7, n % 2, IN_COMMIT, FENCE) for n in range(64)]
    moments = pmdk_moments.parse(b"".join(pmdk_moments.RECORD.pack(*row) for row in rows), 1)
    assert [moment.number for moment in moments if moment.kind.endswith("at the end of a commit")] == list(
        range(57, 65)
    )


def test_pmdk_sampling_without_moments(tmp_path):
    with pytest.raises(NearsideError, match="can't be read"):
        pmdk_moments.read(tmp_path / "none", 1)
    (tmp_path / "empty").touch()
    with pytest.raises(NearsideError, match="no moment"):
        pmdk_moments.read(tmp_path / "empty", 1)


def test_pmdk_sampling_names_are_those_of_the_shim():
    header = (pmdk_crash.Path(__file__).parent.parent / "crates/pmdk/shim/persist_points.h").read_text()
    events, phases = (re.search(rf"enum {name} {{(.*?)}}", header, re.S)[1] for name in ("persist_point_kind", "phase"))
    assert len(re.findall(r"\w+", events)) == len(pmdk_moments.EVENTS)
    assert len(re.findall(r"\w+", phases)) == len(pmdk_moments.PHASES)


@pytest.mark.slow
def test_pmdk_sampling_finds_a_bug_that_an_even_choice_misses(compiled, capsys):
    """16 of some 3,300 moments are wrong, of which 60 have one in four cases."""
    program = str(compiled("seldom"))
    doc = pmdk_crash.run_campaign([program, "run", "{}/f"], f"{program} check {{}}/f", "cpu", "sampled:60", seed=3)
    assert doc["moments"] > 3300
    assert doc["violation"]["what"] == "exit status 1: an entry is wrong"
    rows = {row["class"]: row for row in doc["coverage"]}
    assert rows["following a fence"]["places"] >= 3
    assert rows["following a fence"]["places_cut"] == rows["following a fence"]["places"]
    assert sum(row["moments_cut"] for row in doc["coverage"]) == 60
    pmdk_crash.print_reports([doc])
    shown = capsys.readouterr().out
    assert "what happens" in shown
    assert "following the first flush since a fence" in shown


@pytest.mark.slow
def test_pmdk_sampling_of_a_program_with_transactions(structures):
    pool = "btree:{}/pool"
    program = [str(structures), "run", "3", "30", "1", pool]
    docs = [pmdk_crash.run_campaign(program, f"{structures} check 3 {pool}", "cpu", "sampled:2") for _ in range(2)]
    assert docs[0]["coverage"] == docs[1]["coverage"]
    kinds = {row["class"] for row in docs[0]["coverage"]}
    for phase in (
        "in a transaction",
        "in a commit",
        "at the end of a commit",
        "in an abort",
        "following a transaction",
    ):
        assert any(kind.endswith(phase) for kind in kinds), phase
    for event in (
        "following a flush",
        "in front of a fence",
        "following a fence",
        "following a copy past the cache",
        "at the end",
    ):
        assert any(kind.startswith(event) for kind in kinds), event
