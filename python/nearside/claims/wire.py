# SPDX-License-Identifier: Apache-2.0
"""nvme_ctrl: bandwidth beside the limit of the wire."""

from __future__ import annotations

from nearside import wire
from nearside.claims.registry import Bound, Context, Measured, at_least, at_most, claim
from nearside.wire import Case


def _ratio(link: str, name: str, case: Case, bound: Bound) -> None:
    queues = "one queue" if case.queues == 1 else f"{case.queues} queues"
    kinds = {"read": "reads", "write": "writes", "mix": "half reads, half writes"}[case.kind]

    @claim(
        f"nvme.wire.{link}.{name}", "%", bound,
        f"Bandwidth as a share of what the wire allows: {wire.PATTERNS[case.pattern]} {kinds} of "
        f"{wire.SIZES[case.size]} bytes, {queues} of depth {case.depth}, {link}, DRAM timing.",
        quick=False,
    )  # fmt: skip
    def measure(context: Context) -> Measured:
        device = context.device("dram", design=wire.LINKS[link])
        row = wire.measure(device, case, context.commands(case.commands()), context.seed)
        return Measured(
            row["percent"], f"{row['gb_s']:.3f} of {row['bound_gb_s']:.3f} GB/s, {row['kiops']:.0f} thousand commands/s"
        )


@claim(
    "nvme.fairness", "%", at_least(90),
    "64 queues of depth 4, 4 KiB random reads: the commands of the queue with the fewest, as a share of the mean.",
    quick=False,
)  # fmt: skip
def fairness(context: Context) -> Measured:
    device = context.device("dram", design="[nvme]\nio_queues = 64")
    report = device.workload(
        read_percent=100, min_bytes=4096, queues=64, depth=4, commands=context.commands(25_600), seed=context.seed
    )
    counts = report["commands_by_queue"]
    mean = sum(counts) / len(counts)
    return Measured(
        100 * min(counts) / mean,
        f"{min(counts)} to {max(counts)} commands, {report['bandwidth_gb_s']:.3f} GB/s in total",
    )


WEIGHTS = {"high": 8, "medium": 4, "low": 2}


@claim(
    "nvme.wrr", "%", at_most(5),
    "Weighted round robin 8:4:2, 63 queues of depth 4, a third of each class, 4 KiB random reads: the share of the "
    "class that is furthest from its weight, relative to it.",
    quick=False,
)  # fmt: skip
def wrr(context: Context) -> Measured:
    queues = 63
    device = context.device("dram", design="[nvme]\nio_queues = 64", weights=tuple(WEIGHTS.values()))
    classes = list(WEIGHTS)
    for queue in range(queues):
        device.set_priority(queue, classes[queue % 3])
    report = device.workload(
        read_percent=100, min_bytes=4096, queues=queues, depth=4, commands=context.commands(50_000), seed=context.seed
    )
    counts = [sum(report["commands_by_queue"][first::3]) for first in range(3)]
    weights = list(WEIGHTS.values())
    off = [100 * abs(n * sum(weights) / (w * sum(counts)) - 1) for n, w in zip(counts, weights, strict=True)]
    return Measured(max(off), f"{counts[0]}, {counts[1]} and {counts[2]} commands, {report['bandwidth_gb_s']:.3f} GB/s")


for _link in wire.LINKS:
    for _case in wire.cases():
        _name = f"{_case.kind}_{_case.size}.{_case.pattern}"
        _least = 98 if _link == "gen3x8" else 95
        if _case.queues == 1:
            _ratio(_link, f"{_name}.one_queue", _case, at_least(90))
        elif _case.kind == "mix":  # 95 % are 12.5 GB/s on Gen3 x8
            _ratio(_link, _name, _case, at_least(95))
        elif _case.size == "512b":
            _ratio(_link, _name, _case, at_least(95 if _link == "gen3x8" else 90))
        else:
            _ratio(_link, _name, _case, at_least(_least))
