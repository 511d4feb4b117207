"""The speed of the RTL engine on this machine."""

from __future__ import annotations

import time
from typing import Any

from nearside.claims.registry import Context, Measured, at_least, at_most, claim


def busy(context: Context) -> dict[str, Any]:
    """All queues and channels at work: 16 queues of depth 8, 4 KiB, as many reads as writes."""

    def measure() -> dict[str, Any]:
        device = context.device("optane-dcpmm")
        job = {"read_percent": 50, "queues": 16, "depth": 8, "seed": context.seed}
        device.workload(commands=500, **job)
        before, cpu = device.counters(), time.process_time()
        device.workload(commands=context.commands(12_000), **job)
        after, seconds = device.counters(), time.process_time() - cpu
        moved = {name: after[name] - before[name] for name in after}
        return moved | {"cpu": seconds}

    return context.once("rtl.busy", measure)


@claim(
    "rtl.speed.busy", "cycles/s", at_least(300_000),
    "Simulated clock cycles per CPU second with all queues and channels at work.", time="wall-clock",
)  # fmt: skip
def speed_busy(context: Context) -> Measured:
    run = busy(context)
    cycles = run["cycles.evaluated"]
    return Measured(cycles / run["cpu"], f"{cycles:.0f} cycles evaluated in {run['cpu']:.1f} s of CPU time")


@claim(
    "rtl.speed.share_outside", "%", at_most(35), "Share of the CPU time that is spent outside of the Verilated model.",
    time="wall-clock",
)  # fmt: skip
def share_outside(context: Context) -> Measured:
    run = busy(context)
    inside, whole = run["cpu.model"], run["cpu"]
    return Measured(
        100 * (1 - inside / whole), f"{inside:.1f} s of {whole:.1f} s in the model (one cycle of 509 timed)"
    )


@claim(
    "rtl.speed.idle", "cycles/s", at_least(300_000), "Simulated clock cycles per CPU second with nothing to do.",
    time="wall-clock",
)  # fmt: skip
def speed_idle(context: Context) -> Measured:
    device = context.device("dram")
    before, cpu = device.counters(), time.process_time()
    device.rest(10_000_000_000)
    seconds = max(time.process_time() - cpu, 1e-6)
    after = device.counters()
    evaluated = after["cycles.evaluated"] - before["cycles.evaluated"]
    skipped = after["cycles.skipped"] - before["cycles.skipped"]
    return Measured((evaluated + skipped) / seconds, f"{skipped:.0f} cycles skipped, {evaluated:.0f} evaluated")
