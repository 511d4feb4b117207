# SPDX-License-Identifier: Apache-2.0
"""The DDR4 model against the arithmetic of JESD79-4."""

from __future__ import annotations

from collections.abc import Iterator

from nearside import _native
from nearside.claims.registry import Context, Measured, at_least, at_most, claim
from nearside.device import Design


def run(channel: _native.DramChannel, start: int, requests: Iterator[tuple[int, bool]]) -> list[tuple[int, int]]:
    """Issues requests as fast as the channel accepts them; returns (address, time in ps) of each completion."""
    now, done, waiting = start, [], next(requests, None)
    while True:
        while waiting is not None and channel.push(now, *waiting):
            waiting = next(requests, None)
        while (completion := channel.poll(now)) is not None:
            done.append(completion)
        following = channel.next_event()
        if following is None:
            if waiting is None:
                return done
            following = now + 1
        now = max(now + 1, following)


@claim(
    "dram.streaming", "% of peak", at_least(90),
    "A sequential stream of reads, and one of writes: the worse of the two.", model="sim",
)  # fmt: skip
def streaming(context: Context) -> Measured:
    design = Design.load("default").native
    count = context.commands(40_000)
    shares = {}
    for is_write in (False, True):
        channel = _native.DramChannel(design)
        peak = channel.timing()["peak_gb_s"]
        done = run(channel, 0, ((64 * n, is_write) for n in range(count)))
        shares[is_write] = 100 * count * 64 / (max(t for _, t in done) / 1e3) / peak
    return Measured(min(shares.values()), f"reads {shares[False]:.1f} %, writes {shares[True]:.1f} %")


@claim(
    "dram.row_latency", "ps off", at_most(0),
    "Latency of a row miss, a row hit and a row conflict against tRCD, tRP, CL and burst length.", model="sim",
)  # fmt: skip
def row_latency(context: Context) -> Measured:
    channel = _native.DramChannel(Design.load("default").native, refresh=False)
    t = channel.timing()
    data = t["cl"] + t["burst"]
    # Row 16 of the same bank: the address map permutes banks by the row's lower four bits.
    cases = (
        ("miss", 0, t["rcd"] + data),
        ("hit", 1 << 8, data),
        ("conflict", 16 << 17, t["rp"] + t["rcd"] + data),
    )
    worst, details = 0, []
    for number, (name, address, clocks) in enumerate(cases, 1):
        start = number * 1_000_000
        ((_, done),) = run(channel, start, iter([(address, False)]))
        rate = t["data_rate_mts"]
        seen = (start + 1000 * t["frontend_ns"]) * rate // 2_000_000 + 1
        due = -(-(seen + clocks) * 2_000_000 // rate) + 1000 * t["backend_ns"]
        worst = max(worst, abs(done - due))
        details.append(f"{name} {(done - start) / 1e3:.2f} ns")
    return Measured(worst, ", ".join(details))
