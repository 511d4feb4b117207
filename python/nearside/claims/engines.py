# SPDX-License-Identifier: Apache-2.0
"""Throughput of engines, against that of the memory."""

from __future__ import annotations

import random
import struct
from array import array

from nearside import ideal, qos
from nearside.claims.registry import Context, Measured, at_least, at_most, claim
from nearside.device import Design, Device

MIB = 1 << 20
LAUNCHES = 100


@claim(
    "engine.copy.rate", "% of the model's rate", at_least(90),
    "A copy of 32 MiB within the media by the copy engine, from its start to its end as the host sees it, against "
    f"what the DDR4 model gives for that pattern to {ideal.MASTERS}.",
)  # fmt: skip
def copy_rate(context: Context) -> Measured:
    design = Design.load("engines")
    bytes_ = context.commands(32) * MIB
    source, target = 0, 256 * MIB
    with Device(design) as device:
        device.delay_set("dram")
        device.pm_write(source, random.Random(context.seed).randbytes(MIB))
        ns = device.engine("copy0").launch(timeout_us=100_000_000, src=source, dst=target, bytes=bytes_)
        if device.pm_read(target, MIB) != random.Random(context.seed).randbytes(MIB):
            raise AssertionError("the copy is not what was copied")
    channels = design.values["channels"]
    lines = bytes_ // ideal.LINE // channels
    busy = ideal.busy_ns(design, ideal.stream(0, lines), ideal.stream(target // channels, lines))
    bound = channels * lines * ideal.LINE / busy
    rate = bytes_ / ns
    return Measured(
        100 * rate / bound, f"{rate:.2f} GB/s copied of {bound:.2f}; {channels} channels, {bytes_ // MIB} MiB"
    )


def ideal_read(design: Design, lines: int) -> float:
    """GB/s of an ideal reader of consecutive lines in one channel of the DDR4 model, at most a beat a cycle."""
    busy = ideal.busy_ns(design, ideal.stream(0, lines), ())
    return min(lines * ideal.LINE / busy, ideal.LINE * design.values["clock_mhz"] / 1e3)


def scan(context: Context, *, bitmap: bool) -> Measured:
    design = Design.load("engines")
    bytes_ = context.commands(32) * MIB
    data = random.Random(context.seed).randbytes(MIB)
    expected = sum(value < 1 << 30 for value in array("I", data))
    with Device(design) as device:
        device.delay_set("dram")
        for at in range(0, bytes_, MIB):
            device.pm_write(at, data)
        engine = device.engine("scan0")
        arguments = {
            "src": 0,
            "bytes": bytes_,
            "low": 0,
            "high": (1 << 30) - 1,
            "kind": 4 * bitmap,
            "dst": 2 * bytes_ * bitmap,
        }
        ns = engine.launch(timeout_us=100_000_000, **arguments)
        if engine.outputs()["count"] != expected * (bytes_ // MIB):
            raise AssertionError("the count is wrong")
        if bitmap and device.pm_read(2 * bytes_, bytes_ // 32).count(b"\0") == bytes_ // 32:
            raise AssertionError("there is no bitmap")
    channels = design.values["channels"]
    bound = channels * ideal_read(design, bytes_ // 64 // channels)
    rate = bytes_ / ns
    return Measured(
        100 * rate / bound, f"{rate:.2f} GB/s scanned of {bound:.2f}; {channels} channels, {bytes_ // MIB} MiB"
    )


@claim(
    "engine.scan.rate", "% of the memory's rate", at_least(90),
    "A scan of 32 MiB of the media by the scan engine, from its start to its end as the host sees it, against what "
    "the DDR4 model gives to an ideal reader, at most a beat a cycle and channel.",
)  # fmt: skip
def scan_rate(context: Context) -> Measured:
    return scan(context, bitmap=False)


@claim(
    "engine.scan.filter", "% of the memory's rate", at_least(90),
    "The same with a bitmap of the 32-bit values between the bounds, which is written to the media, against the same "
    "reader, which writes nothing.",
)  # fmt: skip
def scan_filter(context: Context) -> Measured:
    return scan(context, bitmap=True)


@claim(
    "engine.pipeline.between", "ns", at_most(1000),
    "The time between two entries of a list: of 16 short ones, as the host sees it, less that of one and less the "
    "cycles that their reports count, by 15.",
    quick=False,
)  # fmt: skip
def between_entries(context: Context) -> Measured:
    design = Design.load("pipeline")
    cycle_ns = 1e3 / design.values["clock_mhz"]
    with Device(design) as device:
        device.delay_set("dram")
        data = random.Random(context.seed).randbytes(4096)
        device.pm_write(4096, data)
        beside = {1: 0.0, 16: 0.0}
        for launch in range(LAUNCHES):
            # Plain values of 4 bytes, from unit 1 to unit 2. There are many, as the host polls for
            # the end.
            values = 8 * (1 + launch)
            entry = struct.pack("<16I", 0xD4, *[0] * 9, 0, 1, 2, values, 4 * values, 1 << 26 | 2 << 24)
            for count in beside:
                device.pm_write(0, 16 * entry)
                ns = device.engine("pipeline0").launch(list=0, count=count, bytes=1 << 20, kind=1)
                reports = [struct.unpack("<HHIQ", device.pm_read(64 * (count + n), 16)) for n in range(count)]
                if any(status != 1 for status, *_ in reports) or device.pm_read(8192, 4 * values) != data[: 4 * values]:
                    raise AssertionError(f"a list of {count} is incomplete")
                beside[count] += (ns - cycle_ns * sum(cycles for *_, cycles in reports)) / LAUNCHES
    detail = f"beside the cycles of entries {beside[1]:.0f} ns with 1 of them, {beside[16]:.0f} ns with 16"
    return Measured((beside[16] - beside[1]) / 15, detail)


def crowd(context: Context) -> dict[str, float]:
    return context.once(("qos",), lambda: qos.measure([qos.CREDITS], context.commands(6400), context.seed))["rows"][0]


@claim("qos.load.p99", "ns", at_most(1300), f"{qos.LOAD}: latency of a load at the host, 99th percentile.")
def load_p99(context: Context) -> Measured:
    row = crowd(context)
    return Measured(row["load_p99_ns"], f"{row['loads']} loads, {row['load_mean_ns']:.0f} ns on average")


@claim(
    "qos.copied", "% of simple masters", at_least(90),
    f"{qos.LOAD}: bytes copied, of what simple masters, which write in groups of 1, 4 or 8 lines and have as many "
    "credits, copy in the DDR4 model beside such reads.",
)  # fmt: skip
def copied(context: Context) -> Measured:
    row = crowd(context)
    detail = f"{row['copied_gb_s']:.2f} GB/s; {row['copied_percent']:.0f} % of what they copy without a limit"
    return Measured(row["copied_percent_of_same"], detail)


@claim("qos.nvme", "%", at_least(95), f"{qos.LOAD}: the NVMe reads' share of what they get alone.")
def nvme_share(context: Context) -> Measured:
    row = crowd(context)
    return Measured(row["nvme_percent"], f"{row['nvme_gb_s']:.2f} GB/s")
