# SPDX-License-Identifier: Apache-2.0
"""The simulation speed of the RTL model on this machine."""

from __future__ import annotations

import time
from typing import Any

from nearside.claims.registry import Context, Measured, at_least, at_most, claim
from nearside.device import Design, compile_design

# Other programs share the caches, which halves single speeds: the median of several windows counts.
WINDOWS = 5


def busy(context: Context) -> dict[str, Any]:
    """All queues and channels busy, on a trained bitstream: 16 queues of depth 8, 4 KiB, half
    reads, half writes.

    Returns the counters and CPU seconds of the window with the median speed, and the speeds of all.
    """

    def measure() -> dict[str, Any]:
        compile_design(Design.load("default"), train=True)
        device = context.device("optane-dcpmm")
        job = {"read_percent": 50, "queues": 16, "depth": 8, "seed": context.seed}
        device.workload(commands=500, **job)
        windows = []
        for _ in range(WINDOWS):
            before, cpu = device.counters(), time.process_time()
            device.workload(commands=context.commands(6_000), **job)
            after, seconds = device.counters(), time.process_time() - cpu
            windows.append({name: after[name] - before[name] for name in after} | {"cpu": seconds})
        windows.sort(key=lambda w: w["cycles.evaluated"] / w["cpu"])
        return windows[WINDOWS // 2] | {
            "speeds": [w["cycles.evaluated"] / w["cpu"] for w in windows],
            "build": device.build,
        }

    return context.once("rtl.busy", measure)


@claim(
    "rtl.speed.busy", "cycles/s", at_least(300_000),
    f"Simulated clock cycles per CPU second with all queues and channels at work: the median of {WINDOWS} windows.",
    time="wall-clock",
)  # fmt: skip
def speed_busy(context: Context) -> Measured:
    run = busy(context)
    speeds = ", ".join(f"{s / 1000:.0f}" for s in run["speeds"])
    return Measured(run["speeds"][WINDOWS // 2], f"{speeds} thousand; build: {run['build']}; one thread")


@claim(
    "rtl.speed.share_outside", "%", at_most(35), "Share of the CPU time that is spent outside of the Verilated model.",
    time="wall-clock",
)  # fmt: skip
def share_outside(context: Context) -> Measured:
    run = busy(context)
    inside, whole = run["cpu.model"], run["cpu"]
    return Measured(
        100 * (1 - inside / whole),
        f"{inside:.1f} s of {whole:.1f} s in the model (one cycle of 509 timed); build: {run['build']}",
    )


@claim(
    "rtl.speed.idle", "cycles/s", at_least(300_000),
    "Simulated clock cycles per CPU second with nothing to do, each of them evaluated.", time="wall-clock",
)  # fmt: skip
def speed_idle(context: Context) -> Measured:
    device = context.device("dram", skip_idle=False)
    before, cpu = device.counters(), time.process_time()
    device.advance_time(4_000_000)
    seconds = max(time.process_time() - cpu, 1e-6)
    after = device.counters()
    cycles = after["cycles.evaluated"] - before["cycles.evaluated"]
    detail = f"{cycles:.0f} cycles; {after['cycles.skipped']:.0f} skipped; build: {device.build}"
    return Measured(cycles / seconds, detail)


@claim("rtl.skipped", "%", at_least(99.99), "Cycles of a second of simulated rest that cost nothing, being skipped.")
def skipped(context: Context) -> Measured:
    device = context.device("dram")
    before = device.counters()
    device.advance_time(1_000_000_000)
    moved = {name: value - before[name] for name, value in device.counters().items()}
    cycles = moved["cycles.skipped"] + moved["cycles.evaluated"]
    return Measured(
        100 * moved["cycles.skipped"] / cycles, f"{moved['cycles.evaluated']:.0f} of {cycles:.0f} evaluated"
    )
