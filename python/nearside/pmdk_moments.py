"""Moments of a program at which the power may fail: what happens at each, and a choice of them by that."""

from __future__ import annotations

import math
import random
import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearside._native import NearsideError

# As `crates/pmdk/shim/persist_points.c` writes them: number, place in the program, thread, phase, kind.
RECORD = struct.Struct("<QIHBB")
PHASES = ("", "in a transaction", "in a commit", "in an abort", "behind a transaction")
COMMIT, END_OF_COMMIT = 2, "at the end of a commit"
EVENTS = (
    "behind a flush",
    "behind the first flush since a fence",
    "behind a copy past the cache",
    "in front of a fence",
    "behind a fence",
    "in front of a sync",
    "in front of an unmapping",
    "at a command",
    "behind a call of libpmemobj",
    "in front of a call that tells",
    "at the end",
)


@dataclass(frozen=True)
class Moment:
    """One moment of a run. Moments of one class have the same `kind`; of these, those of one place the same `place`."""

    number: int
    kind: str
    # Where in the program and its libraries, and for one within a transaction how long that is.
    place: tuple[int, int]


def parse(records: bytes, first: int) -> list[Moment]:
    """The moments that a shim has written, in their order, from number `first` on."""
    rows = sorted(row for row in RECORD.iter_unpack(records[: len(records) // RECORD.size * RECORD.size]))
    # A run of moments of one thread in one phase, as a commit is.
    runs: dict[int, list[tuple[int, int]]] = {}
    whole: list[tuple[int, list[tuple[int, int]]]] = []
    phases: dict[int, int] = {}
    for index, (_, _, thread, phase, _) in enumerate(rows):
        if phases.get(thread) != phase:
            phases[thread], runs[thread] = phase, []
            whole.append((phase, runs[thread]))
        runs[thread].append((index, phase))
    said = {}
    for phase, run in whole:
        # The last eighth, and not less than two: where a commit ends its logs are emptied, one after the other.
        late = len(run) - max(2, len(run) // 8)
        for at, (index, _) in enumerate(run):
            said[index] = (END_OF_COMMIT if phase == COMMIT and at >= late else PHASES[phase], len(run).bit_length())
    moments = []
    for index, (number, place, _, phase, event) in enumerate(rows):
        when, size = said[index]
        kind = f"{EVENTS[event]}, {when}" if when else EVENTS[event]
        if number >= first:
            moments.append(Moment(number, kind, (place, size if phase else 0)))
    return moments


def classes(moments: Iterable[Moment]) -> dict[str, dict[tuple[int, int], list[int]]]:
    """The numbers of moments, by what happens at them and where."""
    found: dict[str, dict[tuple[int, int], list[int]]] = defaultdict(lambda: defaultdict(list))
    for moment in moments:
        found[moment.kind][moment.place].append(moment.number)
    return found


class _Kind:
    """What is left to choose of the moments of one class."""

    def __init__(self, kind: str, places: dict[tuple[int, int], list[int]], draw: random.Random) -> None:
        # What a program does seldom comes early: an even choice hardly ever comes to it.
        order = sorted(places, key=lambda place: (-math.log(1 - draw.random()) * len(places[place]), place))
        self.left = [draw.sample(places[place], len(places[place])) for place in order]
        # At its end a commit is most likely wrong: what it says is true by then, and the logs that have undone it go.
        self.turns = 2 if kind.endswith(END_OF_COMMIT) else 1

    def take(self) -> list[int]:
        """Those of its next turn, each of another place."""
        taken = []
        for _ in range(min(self.turns, len(self.left))):
            place = self.left.pop(0)
            taken.append(place.pop())
            if place:
                self.left.append(place)
        return taken


def sample(moments: Sequence[Moment], count: int, seed: int) -> list[int]:
    """Numbers of `count` moments: each class in its turn, and of it each place. None comes again before all have."""
    draw = random.Random(seed)
    chosen: list[int] = []
    while len(chosen) < count:
        by_kind = classes(moments)
        kinds = [_Kind(kind, by_kind[kind], draw) for kind in draw.sample(sorted(by_kind), len(by_kind))]
        while kinds and len(chosen) < count:
            chosen += [number for kind in kinds for number in kind.take()]
            kinds = [kind for kind in kinds if kind.left]
    return chosen[:count]


def coverage(moments: Sequence[Moment], cut: Iterable[int]) -> list[dict[str, Any]]:
    """Of each class how many moments and places there are, and at how many of them the power has failed."""
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
    """Those of a run that has written them to a file."""
    try:
        moments = parse(path.read_bytes(), first)
    except OSError as error:
        raise NearsideError(f"{path}: the program's moments can't be read: {error.strerror}") from None
    if not moments:
        raise NearsideError("the program has no moment behind the begin of its first transaction")
    return moments
