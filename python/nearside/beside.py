# SPDX-License-Identifier: Apache-2.0
"""The performance that loads, stores and NVMe commands keep while all `nearpm` units are busy."""

from __future__ import annotations

from collections.abc import Callable

from nearside._native import NearsideError
from nearside.device import BuildProgress, Design, Device
from nearside.renamed import renamed
from nearside.types import InterferenceReport, StreamReport, WorkloadReport

KIB, MIB = 1 << 10, 1 << 20
# The units' commands: copies, each within a separate range, in the upper half of the media.
COPY, POOL_MAP = 0x20, 0x01
BASE, POOL, LOGS, TARGET = 0x7000_0000_0000, 64 * MIB, 32 * MIB, 8 * MIB
COPIES, COPY_BYTES = 64, 64 * KIB
# The range of the measured traffic.
SPAN = 32 * MIB
SIZES = f'[media]\nbytes = "{4 * POOL // MIB} MiB"\nprofile = "dram"\n[nvme]\nnamespaces = ["{POOL // MIB} MiB"]\n'


def _stream(kind: str, in_flight: int, pattern: str, count: int) -> Callable[[Device, int, int], StreamReport]:
    def run(device: Device, seed: int, part: int) -> StreamReport:
        return device.pm_stream(
            kind, bytes=64, in_flight=in_flight, count=count // part, start=0, span=SPAN, pattern=pattern, seed=seed
        )

    return run


def _nvme(percent: int, queues: int, depth: int, count: int) -> Callable[[Device, int, int], WorkloadReport]:
    def run(device: Device, seed: int, part: int) -> WorkloadReport:
        return device.workload(
            read_percent=percent, pattern="random", min_bytes=4096, max_bytes=4096, queues=queues, depth=depth,
            commands=count // part, start=0, span=SPAN, seed=seed,
        )  # fmt: skip

    return run


# Each is shorter than the copies.
TRAFFIC: dict[str, Callable[[Device, int, int], StreamReport | WorkloadReport]] = {
    "load": _stream("load", 1, "random", 300),
    "loads": _stream("load", 64, "random", 8000),
    "stores": _stream("store", 64, "random", 8000),
    "stores_in_sequence": _stream("store", 64, "sequential", 8000),
    "nvme_read": _nvme(100, 1, 1, 100),
    "nvme_write": _nvme(0, 1, 1, 100),
    "nvme_reads": _nvme(100, 4, 16, 400),
    "nvme_writes": _nvme(0, 4, 16, 400),
}


def _run(design: Design, model: str | None, build: BuildProgress | None, kind: str, seed: int, part: int, credits: int,
         busy: bool) -> StreamReport | WorkloadReport:  # fmt: skip
    with Device(design, build, model) as device:
        device.delay_set("dram")
        units = next(e for e in device.engines() if e["name"] == "nearpm0")["name"]
        near = device.engine(units)
        if credits:
            device.set_qos(units, reads=credits, writes=credits, beside=0)
        logs = {"transaction": LOGS, "value": 64 * KIB, "extra": 1}
        near.finish(near.submit(operation=POOL_MAP, address=BASE, bytes=POOL, target=POOL, **logs))
        places = [BASE + n * COPY_BYTES for n in range(COPIES if busy else 0)]
        commands = [
            near.submit(operation=COPY, address=at, bytes=COPY_BYTES, target=at + TARGET) for at in places
        ]  # fmt: skip
        found = TRAFFIC[kind](device, seed, part)
        if commands:
            # The last copies must still be in progress, which shows that no unit was idle.
            try:
                near.finish(commands[-1], timeout_us=0)
            except NearsideError:
                pass
            else:
                raise NearsideError(f"{kind}: the units' copies have ended before it")
        return found


@renamed(engine="model")
def measure(
    design: Design,
    kind: str,
    credits: int = 0,
    seed: int = 1,
    quick: bool = False,
    model: str | None = None,
    build: BuildProgress | None = None,
) -> InterferenceReport:
    """Bandwidth and 99th percentile of the latency, alone and beside copies by all units.

    `credits`: lines of credit of the engine, for each direction in each channel; 0 keeps those
    after reset.
    """
    part = 4 if quick else 1
    sized = design.with_values(SIZES)
    alone, beside = (_run(sized, model, build, kind, seed, part, credits, busy) for busy in (False, True))
    alone_p99, beside_p99 = (latency and latency["p99_ns"] for latency in (alone["latency"], beside["latency"]))
    gb_s = [found["bandwidth_gb_s"] for found in (alone, beside)]
    return {
        "kind": kind, "credits": credits, "alone_gb_s": gb_s[0], "beside_gb_s": gb_s[1],
        "kept_percent": 100 * gb_s[1] / gb_s[0], "alone_p99_ns": alone_p99, "beside_p99_ns": beside_p99,
        "lost_p99_ns": None if alone_p99 is None or beside_p99 is None else beside_p99 - alone_p99,
    }  # fmt: skip
