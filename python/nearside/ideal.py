# SPDX-License-Identifier: Apache-2.0
"""The bandwidth of the DDR4 model with ideal masters, which always have a request: the bound of all engines."""

from __future__ import annotations

from collections.abc import Sequence

from nearside import _native
from nearside.device import Design

LINE = 64
# Lines in a group of writes, up to a burst of 4 KiB; the best of these counts. The choice is
# greedy, not a proof: masters with 1000 lines in flight are up to 12 % faster
# (docs/guides/sort-inside.md).
GROUPS = (1, 16, 64)
# The same, for readers of results.
MASTERS = "ideal masters that write in groups of at most 64 lines (of 1000 they are 3 to 12 % quicker)"


def busy_ns(design: Design, reads: Sequence[int], writes: Sequence[int]) -> float:
    """Time that one channel takes for these lines (addresses); writes follow the reads as they return."""
    return min(masters(design, reads, writes, group) for group in GROUPS)


def masters(design: Design, reads: Sequence[int], writes: Sequence[int], group: int) -> float:
    """The time with one group size. Without reads, writes are not held back."""
    channel = _native.DramChannel(design.native)
    now, asked, written, back, ended = 0, 0, 0, 0, 0
    there = set(reads)
    share = len(writes) / max(len(reads), 1)
    while True:
        while asked < len(reads) and asked * share - written < 1024 and channel.push(now, reads[asked], False):
            asked += 1
        allowed = len(writes) if back == len(reads) else int(back * share) // group * group
        while written < allowed and channel.push(now, writes[written], True):
            written += 1
        while (completion := channel.poll(now)) is not None:
            address, ended = completion
            back += address in there
        following = channel.next_event()
        if following is None and written == len(writes) and back == len(reads):
            return ended / 1e3
        now = max(now + 1, following or 0)


def stream(start: int, lines: int) -> range:
    """Consecutive lines."""
    return range(start, start + LINE * lines, LINE)


def in_turns(start: int, runs: int, run_bytes: int, lines: int, piece: int = 4096) -> list[int]:
    """Lines of `runs` consecutive runs, read in turns, a piece of each."""
    of_piece = piece // LINE
    return [
        start + (turn % runs) * run_bytes + (turn // runs) * piece + LINE * line
        for turn in range(-(-lines // of_piece))
        for line in range(of_piece)
    ][:lines]
