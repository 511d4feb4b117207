# SPDX-License-Identifier: Apache-2.0
"""Moments of a program at which the power may fail: their classes, and a sample of them."""

from __future__ import annotations

import math
import random
import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearside import files
from nearside._native import NearsideError

# The shim's record: number, place in the program, thread, phase, event. See
# crates/pmdk/shim/persist_points.h.
RECORD = struct.Struct("<QIHBB")
# The order of these texts decides which moments a seed chooses, see `sample`.
PHASES = ("", "in a transaction", "in a commit", "in an abort", "following a transaction")
COMMIT, END_OF_COMMIT = 2, "at the end of a commit"
EVENTS = (
    "following a flush",
    "following the first flush since a fence",
    "following a copy past the cache",
    "in front of a fence",
    "following a fence",
    "in front of a sync",
    "in front of an unmapping",
    "at a command",
    "following a call of libpmemobj",
    "in front of a call that tells",
    "at the end",
)


@dataclass(frozen=True)
class Moment:
    """A moment of a run. Moments of a class have the same `kind`, those of one code location the same `place`."""

    number: int
    kind: str
    # Location in the program and its libraries, and the length of its phase if within a
    # transaction.
    place: tuple[int, int]


def parse(records: bytes, first: int) -> list[Moment]:
    """The moments that a shim has written, in order, from number `first` on."""
    rows = sorted(row for row in RECORD.iter_unpack(records[: len(records) // RECORD.size * RECORD.size]))
    # A run is a sequence of moments of one thread in one phase, such as a commit.
    runs: dict[int, list[tuple[int, int]]] = {}
    whole: list[tuple[int, list[tuple[int, int]]]] = []
    phases: dict[int, int] = {}
    for index, (_, _, thread, phase, _) in enumerate(rows):
        if phases.get(thread) != phase:
            phases[thread], runs[thread] = phase, []
            whole.append((phase, runs[thread]))
        runs[thread].append((index, phase))
    contexts = {}
    for phase, run in whole:
        # The last eighth, and at least two: at its end a commit clears its logs, one after another.
        late = len(run) - max(2, len(run) // 8)
        for at, (index, _) in enumerate(run):
            contexts[index] = (
                END_OF_COMMIT if phase == COMMIT and at >= late else PHASES[phase],
                len(run).bit_length(),
            )
    moments = []
    for index, (number, place, _, phase, event) in enumerate(rows):
        when, size = contexts[index]
        kind = f"{EVENTS[event]}, {when}" if when else EVENTS[event]
        if number >= first:
            moments.append(Moment(number, kind, (place, size if phase else 0)))
    return moments


def classes(moments: Iterable[Moment]) -> dict[str, dict[tuple[int, int], list[int]]]:
    """The numbers of moments, by class and place."""
    found: dict[str, dict[tuple[int, int], list[int]]] = defaultdict(lambda: defaultdict(list))
    for moment in moments:
        found[moment.kind][moment.place].append(moment.number)
    return found


class _MomentClass:
    """The moments of one class that are not chosen yet."""

    def __init__(self, kind: str, places: dict[tuple[int, int], list[int]], draw: random.Random) -> None:
        # Rare places come early: an even choice would seldom reach them.
        order = sorted(places, key=lambda place: (-math.log(1 - draw.random()) * len(places[place]), place))
        self.left = [draw.sample(places[place], len(places[place])) for place in order]
        # The end of a commit is the most error-prone: its changes are valid by then, and its undo
        # logs are cleared.
        self.turns = 2 if kind.endswith(END_OF_COMMIT) else 1

    def next_turn(self) -> list[int]:
        """The moments of the next turn, each of another place."""
        chosen = []
        for _ in range(min(self.turns, len(self.left))):
            place = self.left.pop(0)
            chosen.append(place.pop())
            if place:
                self.left.append(place)
        return chosen


def sample(moments: Sequence[Moment], count: int, seed: int) -> list[int]:
    """Numbers of `count` moments: classes in turns, and in each its places. None repeats before all were chosen."""
    draw = random.Random(seed)
    chosen: list[int] = []
    while len(chosen) < count:
        by_kind = classes(moments)
        kinds = [_MomentClass(kind, by_kind[kind], draw) for kind in draw.sample(sorted(by_kind), len(by_kind))]
        while kinds and len(chosen) < count:
            chosen += [number for kind in kinds for number in kind.next_turn()]
            kinds = [kind for kind in kinds if kind.left]
    return chosen[:count]


def coverage(moments: Sequence[Moment], cut: Iterable[int]) -> list[dict[str, Any]]:
    """For each class the number of moments and places, and of those with a power cut."""
    tried = set(cut)
    rows = []
    for kind, places in sorted(classes(moments).items()):
        hit = [sum(number in tried for number in numbers) for numbers in places.values()]
        rows.append(
            {
                "class": kind,
                "moments": sum(map(len, places.values())),
                "moments_cut": sum(hit),
                "places": len(places),
                "places_cut": sum(map(bool, hit)),
            }
        )
    return rows


def read(path: Path, first: int) -> list[Moment]:
    """The moments that a run has written to a file."""
    try:
        moments = parse(path.read_bytes(), first)
    except OSError as error:
        raise NearsideError(f"{files.printable(path)}: the program's moments can't be read: {error.strerror}") from None
    if not moments:
        raise NearsideError("the program has no moment after the begin of its first transaction")
    return moments
