# SPDX-License-Identifier: Apache-2.0
"""Quality of service: what loads, NVMe commands and engines achieve in parallel, by the engines' credits."""

from __future__ import annotations

import random
from collections.abc import Sequence

from nearside import _native, show
from nearside.device import BuildProgress, Design, Device, Progress
from nearside.renamed import renamed
from nearside.types import QosCurve, QosPoint

MIB = 1 << 20
# Lines of credit of each engine in a channel, for reads and for writes; None: the values after
# reset.
CREDITS = 8
CURVE = (4, 8, 12, 16, 24, 32, 0, None)
# Source and target of the copies by the two engines of the design `engines`.
COPIES = {"copy0": (0, 128 * MIB), "copy1": (512 * MIB, 640 * MIB)}
COPY_BYTES = 128 * MIB
LOAD = (
    f"Two copies within the media at full rate, each with {CREDITS} + {CREDITS} lines of credit a channel, beside "
    "4 KiB NVMe reads (10 queues of depth 8) and 64-byte loads of the PM window, one after every fourth command, "
    "DRAM timing"
)


@renamed(engine="model")
def measure(
    credits: Sequence[int | None] = CURVE,
    commands: int = 6400,
    seed: int = 1,
    build: BuildProgress | None = None,
    progress: Progress | None = None,
    model: str | None = None,
) -> QosCurve:
    """Bandwidth and load latency for each number of credits (lines a channel and direction; 0: no
    limit).

    The credits also hold while the controller is active; None keeps the values after reset, which
    are lower then.

    `copied_percent` relates to ideal masters without a limit, `copied_percent_of_same` to ideal
    masters with the same credits.
    """
    design = Design.load("engines")
    job = {"commands": commands, "queues": 10, "depth": 8, "seed": seed}
    rows: list[QosPoint] = []
    with Device(design, build, model) as device:
        model = device.model
        device.delay_set("dram")
        alone = device.workload(**job)["bandwidth_gb_s"]
        quiet = device.workload(commands=400, queues=1, depth=1, loads_every=1, seed=seed)["loads"]
    assert quiet is not None
    best = ideal(design, 100_000, alone)
    for done, lines in enumerate(credits):
        if progress:
            progress(done, len(credits))
        with Device(design, model=model) as device:
            device.delay_set("dram")
            for name, (source, target) in COPIES.items():
                if lines is not None:
                    device.set_qos(name, reads=lines, writes=lines, beside=0)
                device.engine(name).start(src=source, dst=target, bytes=COPY_BYTES)
            device.native.delay_counters(True)
            start = device.now_ns
            report = device.workload(**job, loads_every=4)
            ns = device.now_ns - start
            channels = device.native.delay_counters(False)
        copied = sum(channel["write"]["beats"] for channel in channels) * 64 / ns
        loads = report["loads"]
        assert loads is not None  # `loads_every` requests them
        rows.append(
            {
                "credits": lines,
                "loads": loads["count"],
                "load_mean_ns": loads["mean_ns"],
                "load_p99_ns": loads["p99_ns"],
                "nvme_gb_s": report["bandwidth_gb_s"],
                "nvme_percent": 100 * report["bandwidth_gb_s"] / alone,
                "copied_gb_s": copied,
                "copied_percent": 100 * copied / best,
                "copied_percent_of_same": 100 * copied / (ideal(design, 30_000, alone, lines) if lines else best),
            }
        )
    return {
        "engine": model,
        "time": "simulated",
        "seed": seed,
        "nvme_alone_gb_s": alone,
        "ideal_copies_gb_s": best,
        "load_alone_ns": quiet["mean_ns"],
        "rows": rows,
    }


# Lines that ideal masters read ahead of their writes, and keep in flight in each direction, without
# a limit.
UNLIMITED = 128


def ideal(design: Design, ns: float, nvme_gb_s: float, credits: int = 0) -> float:
    """GB/s that ideal masters copy in the DDR4 model beside NVMe reads of `nvme_gb_s`, with the
    best grouping of lines."""
    channels = design.values["channels"]
    groups = (1, 4, 8) if credits else (4, 16, 64)
    return channels * max(_ideal(design, ns, nvme_gb_s / channels, group, credits) for group in groups)


def _ideal(design: Design, ns: float, nvme_gb_s: float, group: int, credits: int) -> float:
    """GB/s that are copied in one channel.

    Each copy always has a request and alternates between reads and writes of `group` lines, with at
    most `credits` lines in flight in each direction. The NVMe reads are 4 KiB at random addresses,
    at a constant rate.
    """
    channel = _native.DramChannel(design.native)
    channels = design.values["channels"]
    chance = random.Random(1)
    # For each copy: source, target, lines requested, written, read, and completed.
    copies = [[source // channels, target // channels, 0, 0, 0, 0] for source, target in COPIES.values()]
    most = credits or UNLIMITED
    now, asked, lines = 0, 0, []
    while now < ns * 1000:
        while asked < nvme_gb_s * now / 1000:
            asked += 4096
            page = chance.randrange(256 * MIB // 4096) * 4096
            lines += [page + 64 * n for n in range(64)]
        while lines and channel.push(now, lines[0], False):
            lines.pop(0)
        for copy in copies:
            source, target, reads, writes, there, safe = copy
            while reads - writes < UNLIMITED and reads - there < most and channel.push(now, source + 64 * reads, False):
                reads += 1
            while (
                writes < there // group * group
                and writes - safe < most
                and channel.push(now, target + 64 * writes, True)
            ):
                writes += 1
            copy[2:4] = reads, writes
        while (completion := channel.poll(now)) is not None:
            for copy in copies:
                copy[4] += 0 <= completion[0] - copy[0] < 64 * copy[2]
                copy[5] += 0 <= completion[0] - copy[1] < 64 * copy[3]
        now = max(now + 1, channel.next_event() or 0)
    return sum(copy[3] for copy in copies) * 64 / ns


def label(credits: int | None) -> str:
    """The label of a row."""
    return "as after reset" if credits is None else str(credits or "no limit")


def print_table(doc: QosCurve) -> None:
    """Prints the curve as a table."""
    title = (
        f"two copies, NVMe reads at the wire's rate ({doc['nvme_alone_gb_s']:.2f} GB/s alone), loads "
        f"({doc['load_alone_ns']:.0f} ns alone); simulated"
    )
    table = show.table(
        title, "credits", "load, mean", "load, p99", "NVMe", "of alone", "copied", "of ideal", "at the same credits"
    )
    for row in doc["rows"]:
        table.add_row(
            label(row["credits"]),
            f"{row['load_mean_ns']:.0f} ns",
            f"{row['load_p99_ns']:.0f} ns",
            f"{row['nvme_gb_s']:.2f} GB/s",
            f"{row['nvme_percent']:.1f} %",
            f"{row['copied_gb_s']:.2f} GB/s",
            f"{row['copied_percent']:.1f} %",
            f"{row['copied_percent_of_same']:.1f} %",
        )
    show.out.print(table)
