# SPDX-License-Identifier: Apache-2.0
"""nvm_delay: the accuracy of its latencies, and its throughput."""

from __future__ import annotations

from typing import Any

from nearside._native import NearsideError
from nearside.accuracy import DelayBench
from nearside.claims.registry import Context, Measured, Published, at_most, claim
from nearside.device import Design, media_profile
from nearside.types import AccuracyRow

# Beside the paper's 305 ns and 94 ns: from 60 ns to 100 us, most of them between two clocks. The
# DRAM's controller answers writes at once; a read takes some 70 ns, and up to 290 ns during a
# refresh.
TARGETS = {
    "read": (60, 94, 153, 251, 351, 602, 1001, 5003, 20_001, 100_000),
    "write": (60, 77, 130, 201, 351, 602, 1001, 5003, 20_001, 100_000),
}
# The mean of reads with these targets exceeds the target; bounds of that mean, in ns.
SLOW_READS = {60: 74, 94: 99, 153: 156, 251: 252}
# The most cycles of a full measurement.
BUDGET = 2_500_000
CLOCKS = (
    "at the ports of the block, one access at a time, from the handshake of the address to that of the last beat or of "
    "the response; the mean of all against the target."
)
DIFFERS = (
    "an emulator in an FPGA, with the memory's own spread, read by a logic analyser; it does not say of how many "
    "accesses, nor whether the error is that of a mean"
)
BURSTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def bench(context: Context) -> DelayBench:
    return context.once("nvm_delay.bench", lambda: DelayBench(Design.load("default")))


def row(context: Context, kind: str, target: float, **burst: Any) -> AccuracyRow:
    """A row of the accuracy table, shared by the claims about it."""

    def measure() -> AccuracyRow:
        samples = context.commands(max(200, min(20_000, int(BUDGET / (60 + target / bench(context).period_ns)))))
        return bench(context).measure(kind, target, samples, context.seed, **burst)

    return context.once(("nvm_delay.row", kind, target, *burst.items()), measure)


def explain(line: AccuracyRow) -> str:
    return (
        f"{line['samples']} samples, mean {line['mean_ns']:.4f} ns, smallest {line['min_ns']:g} ns, "
        f"largest {line['max_ns']:g} ns, {line['late']} late"
    )


def _accuracy(name: str, kind: str, target: float, what: str, paper: float | None = None) -> None:
    published = paper and Published(f"{paper:g} %", "NVMulator, section 4.1", DIFFERS, paper)
    clocks = CLOCKS if paper else ""

    @claim(
        f"nvm_delay.{name}.mean_error", "%", at_most(0.1), f"Error of the mean latency: {what}.", published or None,
        clocks=clocks,
    )  # fmt: skip
    def mean(context: Context) -> Measured:
        line = row(context, kind, target)
        return Measured(line["mean_error_percent"], explain(line))

    @claim(f"nvm_delay.{name}.max_error", "clocks", at_most(1), f"The worst single latency: {what}.")
    def worst(context: Context) -> Measured:
        line = row(context, kind, target)
        return Measured(line["max_error_clocks"], explain(line))


def _below_memory(name: str, target: float, most: float, what: str) -> None:
    """Targets that the memory can't always meet: exact if it does, and without further delay if it doesn't."""

    def explain_late(line: AccuracyRow) -> str:
        late = 100 * (1 - line["on_time"] / line["samples"])
        mean = line["on_time_mean_ns"]
        return f"{explain(line)}; {late:.1f} % wait for the DRAM, and the mean of the others is {mean:.4f} ns"

    @claim(f"nvm_delay.{name}.mean", "ns", at_most(most), f"The mean latency, including late answers: {what}.")
    def mean(context: Context) -> Measured:
        line = row(context, "read", target)
        return Measured(line["mean_ns"], explain_late(line))

    @claim(
        f"nvm_delay.{name}.on_time_error", "%", at_most(0.1),
        f"Error of the mean latency without the late answers: {what}.",
    )  # fmt: skip
    def on_time(context: Context) -> Measured:
        line = row(context, "read", target)
        return Measured(100 * abs(line["on_time_mean_ns"] / target - 1), explain_late(line))

    @claim(f"nvm_delay.{name}.early", "clocks", at_most(1), f"The earliest beat before its target: {what}.")
    def early(context: Context) -> Measured:
        line = row(context, "read", target)
        return Measured(line["early_clocks"], explain_late(line))

    @claim(
        f"nvm_delay.{name}.after_memory", "clocks", at_most(3),
        f"The longest time from the DRAM's late answer to that of nvm_delay: {what}.",
    )  # fmt: skip
    def after(context: Context) -> Measured:
        line = row(context, "read", target)
        return Measured(line["late_after_memory_clocks"] or 0, explain_late(line))


_accuracy("read_305ns", "read", 305.0, "64 B reads at random addresses, target 305 ns", 0.62)
_accuracy("write_94ns", "write", 94.0, "64 B writes at random addresses, target 94 ns", 1.7)
for _kind, _targets in TARGETS.items():
    for _target in _targets:
        _text = f"64 B {_kind}s at random addresses, target {_target} ns"
        if _kind == "read" and _target in SLOW_READS:
            _below_memory(f"targets.read_{_target}ns", float(_target), SLOW_READS[_target], _text)
        else:
            _accuracy(f"targets.{_kind}_{_target}ns", _kind, float(_target), _text)


def _burst(kind: str, beats: int) -> None:
    beat_ns = 10.0
    target = 400.0 + beat_ns * beats

    @claim(
        f"nvm_delay.bursts.{kind}_{beats}", "%", at_most(0.1),
        f"Error of the mean latency of {kind} bursts of {beats} beats: 400 ns and 10 ns a beat.",
    )  # fmt: skip
    def measure(context: Context) -> Measured:
        samples = max(64, context.commands(8000) // beats)
        line = context.once(
            ("nvm_delay.burst", kind, beats),
            lambda: bench(context).measure(kind, target, samples, context.seed, beats=beats, beat_ns=beat_ns),
        )
        off = max(line["max_error_clocks"], line["early_clocks"])
        if off > 1:
            raise NearsideError(f"a sample, or a beat of one, is off by {off:.2f} clocks: {explain(line)}")
        return Measured(line["mean_error_percent"], explain(line))


for _kind in ("read", "write"):
    for _beats in BURSTS:
        _burst(_kind, _beats)


@claim(
    "nvm_delay.pipelined_reads", "cycles", at_most(220), "Eight pipelined reads at a delay of 200 cycles.",
)  # fmt: skip
def pipelined_reads(context: Context) -> Measured:
    cycles = bench(context).native.pipelined_reads(8, 200.0)
    return Measured(cycles, "from the first address to the last beat")


# Two targets in the middle of a bucket of the latency histogram: 4600 and 9200 cycles of 4 ns.
SLOW, SLOWER = (18_400.0, 44), (36_800.0, 48)


def plain_profile(ns: float) -> str:
    """A media profile, as TOML, with one latency for everything."""
    return f"name = 'plain'\ndescription = ''\n[read]\nbase_ns = {ns}\n[write]\nbase_ns = {ns}\n"


@claim(
    "nvm_delay.profile_switch.strays", "transactions", at_most(0),
    "Timing changed under load from 18.4 us to 36.8 us, 80 commands in flight: the transactions with neither of both "
    "latencies. Data that are read equal those written.",
)  # fmt: skip
def profile_switch_strays(context: Context) -> Measured:
    device = context.device(plain_profile(SLOW[0]))
    device.delay_counters(clear=True)
    count = context.commands(2000)
    report = device.workload(
        queues=10, depth=8, read_percent=50, commands=count, span=4 << 20, verify=True, seed=context.seed,
        switch=(count // 2, plain_profile(SLOWER[0])),
    )  # fmt: skip
    counters = [channel[kind] for channel in device.delay_counters() for kind in ("read", "write")]
    total = sum(c["transactions"] for c in counters)
    early, later = (sum(c["buckets"][bucket] for c in counters) for _, bucket in (SLOW, SLOWER))
    if not (early and later and report["verified_bytes"]):
        raise NearsideError(f"of {total} transactions {early} took the old time and {later} the new one")
    return Measured(total - early - later, f"{early} with the old timing, {later} with the new")


@claim(
    "nvm_delay.profile_switch.step", "% off", at_most(1),
    "optane-dcpmm exchanged for nand: the step in the latency of single 4 KiB reads against that of the profiles.",
)  # fmt: skip
def profile_switch_step(context: Context) -> Measured:
    device = context.device("optane-dcpmm")
    device.delay_counters(clear=True)
    count = context.commands(240)
    job = {"queues": 1, "depth": 1, "commands": count, "seed": context.seed}
    report = device.workload(switch=(count // 2, "nand"), **job)
    reads = [channel["read"] for channel in device.delay_counters()]
    beats = sum(c["beats"] for c in reads) / sum(c["transactions"] for c in reads)
    channels = len(reads)

    def target_ns(name: str) -> float:
        timing = media_profile(name)["read"]
        return timing["base_ns"] + beats * max(timing["beat_ns"], 64 / (timing["cap_gb_s"] / channels))

    expected = target_ns("nand") - target_ns("optane-dcpmm")
    step = report["after"]["mean_ns"] - report["before"]["mean_ns"]
    return Measured(100 * abs(step - expected) / abs(expected), f"{step:.1f} ns, by the profiles {expected:.1f} ns")
