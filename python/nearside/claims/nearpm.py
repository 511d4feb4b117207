# SPDX-License-Identifier: Apache-2.0
"""Crash consistency near memory: its gain, and the bandwidth that other traffic keeps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import fmean
from typing import Any

from nearside import beside
from nearside.claims.registry import Bound, Context, Measured, Published, at_least, at_most, claim
from nearside.device import Design
from nearside.experiments import (
    nearpm,
    nearpm_fig15,
    nearpm_fig16,
    nearpm_fig16_devices,
    nearpm_fig17,
    nearpm_fig18,
    nearpm_fig19,
    nearpm_fig20,
    nearpm_programs,
    nearpm_stores,
    repeat,
)
from nearside.experiments.registry import Run


def run_of(context: Context, inserts: int = 2000, seed: int | None = None) -> Run:
    parameters = {"inserts": context.commands(inserts)}
    seed = context.seed if seed is None else seed
    return Run("fast", context.quick, seed, parameters, Design.load("nearpm-paper"))


def paper(
    value: float | None, section: str, differs: str, unit: str = "x", text: str = "", of: str = "mean of nine programs"
) -> Published | None:
    """NearPM's figure, or None."""
    if value is None and not text:
        return None
    source = f"NearPM, section {section}" + (f", {of}" if of else "")
    return Published(text or f"{value:g}{unit if unit == 'x' else ' ' + unit}", source, differs, value)


def _copies(context: Context, design: str, size: int) -> dict[str, float]:
    """Mean times of each way to make a copy of this size."""

    def run() -> dict[str, float]:
        run = run_of(context)
        of = nearpm.design(run, design)
        count = context.commands(16)
        return {way: nearpm.copies(run, of, way, size, count)["mean_ns"] for way in nearpm_fig17.WAYS}

    return context.once(("nearpm.copy", design, size), run)


def _copy(size: int, design: str, ways: tuple[str, ...]) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        elapsed = _copies(context, design, size)
        cpu = min(ways, key=lambda way: elapsed[way])
        by_cpu = f"{elapsed[cpu]:.0f} ns by the CPU, {cpu}"
        return Measured(elapsed[cpu] / elapsed["ended"], f"{by_cpu}, {elapsed['ended']:.0f} ns by a command")

    return measure


def _accepted(size: int, design: str) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        elapsed = _copies(context, design, size)
        return Measured(elapsed["accepted"], f"the copy has ended after {elapsed['ended']:.0f} ns")

    return measure


COPY_DIFFERS = {
    "paper": "hardware; the paper says neither how its CPU copies nor what its clocks stop at",
    "default": "another device than the paper's: two channels, units that nothing holds to 4 GB/s",
}
# Size and name of a design: speed-up over the CPU's faster way, over its copies through the cache,
# and ns.
COPY_BOUNDS = {
    (64, "paper"): (1.45, 2.0, 540), (64, "default"): (1.35, 1.9, 560),
    (16384, "paper"): (4.2, 7.1, 800), (16384, "default"): (8.0, 13.4, 570),
}  # fmt: skip
for (_size, _name), (_least, _least_cached, _most) in COPY_BOUNDS.items():
    _design = {"paper": "nearpm-paper", "default": "nearpm"}[_name]
    _published = paper(nearpm.PAPER_COPY[_size], "8.2.1", COPY_DIFFERS[_name], of="")
    _clocks = f"on both sides {nearpm_fig17.CLOCKS}."
    claim(
        f"nearpm.copy.{_size}.{_name}", "x", at_least(_least),
        f"A copy of {_size} bytes by the CPU's faster way of two (non-temporal stores with 12 loads in flight, or "
        f"through the cache with clwb) and by a command, {_design}.", _published, clocks=_clocks, model="fast",
    )(_copy(_size, _design, ("streamed", "cached")))  # fmt: skip
    claim(
        f"nearpm.copy.{_size}.{_name}.cached", "x", at_least(_least_cached),
        f"A copy of {_size} bytes by the CPU through the cache with clwb, its slower way, and by a command, "
        f"{_design}.", _published, clocks=_clocks, model="fast",
    )(_copy(_size, _design, ("cached",)))  # fmt: skip
    claim(
        f"nearpm.copy.{_size}.{_name}.accepted", "ns", at_most(_most),
        f"The wait of a program until the device has accepted the command of a copy of {_size} bytes, which a power "
        f"cut does not revoke; the copy itself ends later. Design {_design}.", model="fast",
    )(_accepted(_size, _design))  # fmt: skip


def _region(mechanism: str, design: str, what: str, of: str) -> Callable[[Context], Measured]:
    """The mean over the runs of the experiment, or of one run in quick mode."""

    def measure(context: Context) -> Measured:
        def runs() -> list[dict[str, Any]]:
            seeds = repeat.seeds(context.seed, {repeat.RUNS: 1 if context.quick else nearpm.RUNS})
            return [nearpm_fig15.measure(run_of(context, seed=seed), (design, mechanism)) for seed in seeds]

        rows = context.once(("nearpm.region", design, mechanism), runs)
        key = "ns" if of == "transaction" else "consistency_ns"
        cpu, engine = (fmean(row[by][key] for row in rows) for by in nearpm_fig15.RATIOS[what])
        text = f"{cpu:.0f} ns by the CPU, {engine:.0f} ns offloaded, runs: {len(rows)}"
        column = f"{what}_whole" if of == "transaction" else what
        return Measured(fmean(row[column] for row in rows), text)

    return measure


def _whole(context: Context, mechanism: str) -> dict[str, Any]:
    """A row of figures 1 and 16."""
    key = ("nearpm.program", mechanism)
    return context.once(key, lambda: nearpm_fig16.measure(run_of(context), ("nearpm-paper", mechanism)))


def _program(mechanism: str, what: str) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        row = _whole(context, mechanism)
        cpu, engine = row[f"{what}_cpu_ns"], row[f"{what}_engine_ns"]
        text = f"f = {row['share']:.3f}, so at most {row['bound']:.2f}x; {cpu:.0f} and {engine:.0f} ns a transaction"
        return Measured(row[what], text)

    return measure


def _copied(mechanism: str) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        row = _whole(context, mechanism)
        return Measured(100 * row["copies"], f"fences {100 * row['fences']:.1f} %")

    return measure


# A durable transaction waits for a load of 436 ns, which the paper's means don't include:
# docs/experiments.md.
REGIONS: dict[str, dict[str, Bound]] = {
    "durable": {"undo": at_least(2.5), "redo": at_least(2.0), "checkpoint": at_least(3.0), "shadow": at_least(5.0)},
    "ordered": {"undo": at_least(1.3), "redo": at_least(0.95), "checkpoint": at_least(2.3), "shadow": at_least(4.5)},
    "relaxed": {"undo": at_least(1.15), "redo": at_least(0.75), "checkpoint": at_least(2.2), "shadow": at_least(6.5)},
}
TRANSACTIONS: dict[str, dict[str, Bound]] = {
    "durable": {"undo": at_least(2.3), "redo": at_least(1.9), "checkpoint": at_least(2.9), "shadow": at_least(1.65)},
    "ordered": {"undo": at_least(1.25), "redo": at_least(0.95), "checkpoint": at_least(2.3), "shadow": at_least(1.5)},
}
# A quick run ends before shadow paging has moved every page once.
QUICK: dict[tuple[str, str, str], Bound] = {
    ("region", "shadow", "durable"): at_least(2.8), ("region", "shadow", "relaxed"): at_least(3.3),
    ("region", "shadow", "ordered"): at_least(2.4),
}  # fmt: skip
for _of, _what_bounds, _clocks, _text in (
    (
        "transaction",
        TRANSACTIONS,
        nearpm.WHOLE_CLOCKS,
        "The whole time of insertions into a B-tree without other computation",
    ),
    (
        "region",
        REGIONS,
        nearpm.REGION_CLOCKS,
        "The time of the crash-consistency region in insertions into a B-tree",
    ),
):
    for _what, _bounds in _what_bounds.items():
        for _mechanism, _limit in _bounds.items():
            _published = None
            if _of == "region":
                _published = paper(nearpm.PAPER_REGIONS.get(_mechanism), "8.2.3", nearpm.REGION_DIFFERS)
            claim(
                f"nearpm.{_of}.{_mechanism}.{_what}", "x", _limit,
                f"{_text}, by the CPU and offloaded; {_mechanism}, {nearpm_fig15.TEXTS[_what]}, design nearpm-paper.",
                _published, clocks=f"{_clocks}.", model="fast", quick_bound=QUICK.get((_of, _mechanism, _what)),
            )(_region(_mechanism, "nearpm-paper", _what, _of))  # fmt: skip

# CXL completes each write, so a fence needs no load, on either side.
CXL_REGIONS = {"undo": 1.8, "checkpoint": 2.2, "shadow": 4.5}
CXL_QUICK = {"shadow": at_least(3.0)}
for _mechanism, _least in CXL_REGIONS.items():
    claim(
        f"nearpm.region.{_mechanism}.cxl", "x", at_least(_least),
        "The time of the crash-consistency region in insertions into a B-tree, by the CPU and offloaded; "
        f"{_mechanism}, durable, by fences that wait for completions, design {nearpm.CXL}.",
        clocks=f"{nearpm.REGION_CLOCKS}.", model="fast", quick_bound=CXL_QUICK.get(_mechanism),
    )(_region(_mechanism, nearpm.CXL, "durable", "region"))  # fmt: skip


def _stores(mechanism: str, interval: int) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        row = nearpm_stores.measure(run_of(context), (mechanism, interval))
        text = f"{row['cpu_ns']:.0f} ns by the CPU, {row['engine_ns']:.0f} ns offloaded, {row['commands']:.1f} commands"
        return Measured(row["regions"], text)

    return measure


# The profiles have 60 ns, as in `nearpm.region`.
STORES = {20: {"undo": 2.75, "checkpoint": 3.0, "shadow": 5.1}, 300: {"undo": 1.05, "checkpoint": 3.0, "shadow": 3.1}}
for _interval, _least_of in STORES.items():
    for _mechanism, _least in _least_of.items():
        claim(
            f"nearpm.stores.{_mechanism}.{_interval}", "x", at_least(_least),
            "The time of the crash-consistency region in insertions into a B-tree, by the CPU and offloaded, with "
            f"{_interval} ns between commands that leave the CPU; {_mechanism}, durable, design nearpm-paper.",
            clocks=f"{nearpm.REGION_CLOCKS}.", model="fast",
            quick_bound=at_least(0.7 * _least) if _mechanism == "shadow" else None,
        )(_stores(_mechanism, _interval))  # fmt: skip

PROGRAMS = {
    "durable": {"undo": 1.15, "checkpoint": 1.57, "shadow": 1.7},
    "ordered": {"undo": 0.97, "checkpoint": 1.5, "shadow": 1.6},
}
_stated: float | None
for _what, _least_of in PROGRAMS.items():
    for _mechanism, _stated in nearpm.PAPER_ALONE.items():
        claim(
            f"nearpm.program.{_mechanism}.{_what}", "x", at_least(_least_of[_mechanism]),
            "Insertions with computation that makes the share of crash consistency that of the paper's figure 1, by "
            f"the CPU and offloaded; {_mechanism}, {nearpm_fig15.TEXTS[_what]}, design nearpm-paper.",
            paper(_stated, "8.2.4, one device", nearpm.PROGRAM_DIFFERS), clocks=f"{nearpm.WHOLE_CLOCKS}.",
            model="fast",
        )(_program(_mechanism, _what))  # fmt: skip

# A CPU that copies badly would flatter any engine. Ours spends its time in fences instead, waiting
# for loads of 436 ns.
COPIES = {"undo": 3.0, "checkpoint": 30.0, "shadow": 65.0}
for _mechanism, _part in nearpm.PAPER_COPIES.items():
    claim(
        f"nearpm.copies.{_mechanism}", "% of crash consistency", at_most(COPIES[_mechanism]),
        f"The share of copies in the CPU's time for crash consistency, in insertions into a B-tree; {_mechanism}, "
        "design nearpm-paper.",
        Published(f"{100 * _part:.1f} %", "NearPM, section 2.1, figure 1", "programs with PMDK; less is no better"),
        clocks="parts of the CPU's time within the library's code for crash consistency.", model="fast",
    )(_copied(_mechanism))  # fmt: skip


def _over(mechanism: str, name: str) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        def all_of_them() -> dict[str, Any]:
            return nearpm_fig16_devices.measure(run_of(context, 1000), mechanism)

        row = context.once(("nearpm.devices", mechanism), all_of_them)
        text = f"{row[f'{name}_cpu_ns']:.0f} ns by the CPU, {row[f'{name}_ns']:.0f} ns offloaded"
        return Measured(row[name], f"{text}; crash consistency alone {row[f'{name}_regions']:.2f}x")

    return measure


# Two devices gain nothing over one here: docs/experiments.md.
DEVICES = {
    "undo": {"one": 1.15, "two_software": 1.03, "two": 1.13, "four": 1.12},
    "checkpoint": {"one": 1.5, "two_software": 1.4, "two": 1.5, "four": 1.5},
    "shadow": {"one": 1.65, "two_software": 1.4, "two": 1.4, "four": 1.35},
}
for _mechanism, _configurations in DEVICES.items():
    for _name, _least in _configurations.items():
        _stated = nearpm_fig16_devices.PAPER.get(_name, {}).get(_mechanism)
        claim(
            f"nearpm.devices.{_mechanism}.{_name}", "x", at_least(_least),
            "Insertions with computation that makes the share of crash consistency that of the paper's figure 1, "
            "durable: by the CPU over as many devices or fewer, which reads back at each fence, and offloaded; "
            f"{_mechanism}, devices: "
            f"{nearpm_fig16_devices.NAMES[_name]}.",
            paper(_stated, "8.2.4, figure 16", nearpm.PROGRAM_DIFFERS), clocks=f"{nearpm.WHOLE_CLOCKS}.", model="fast",
        )(_over(_mechanism, _name))  # fmt: skip


def _programs(mechanism: str, name: str) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        def all_of_them() -> list[dict[str, Any]]:
            run = run_of(context)
            run.parameters = {"transactions": context.commands(300), "workloads": nearpm_fig18.WORKLOADS}
            own = [case for case in nearpm_fig18.cases(run) if case[0] == mechanism]
            return [nearpm_programs.measure(run, case) for case in own]

        rows = context.once(("nearpm.programs", mechanism), all_of_them)
        detail = ", ".join(f"{row['workload']} {row[name]:.2f}" for row in rows)
        return Measured(nearpm_programs.mean(rows, mechanism, name), detail)

    return measure


MEANS = {
    "undo": {"one": 1.35, "ordered": 1.11, "two_software": 1.31, "two": 1.34},
    "checkpoint": {"one": 1.65, "ordered": 1.54, "two_software": 1.56, "two": 1.64},
    "shadow": {"one": 1.41, "ordered": 1.27, "two_software": 1.28, "two": 1.28},
}
for _mechanism, _configurations in MEANS.items():
    for _name, _least in _configurations.items():
        _stated = nearpm_programs.PAPER_PROGRAMS.get(_name, nearpm.PAPER_ALONE)[_mechanism]
        claim(
            f"nearpm.programs.{_mechanism}.{_name}", "x", at_least(_least),
            "Transactions of nine programs with computation that makes the share of crash consistency that of the "
            f"paper's figure 1: by the CPU, over as many devices or fewer, and offloaded, durable; mean; {_mechanism}, "
            f"devices: {nearpm_programs.NAMES[_name]}.",
            paper(_stated, "8.2.4, figure 16", nearpm.PROGRAM_DIFFERS),
            clocks="on both sides from the begin of the first transaction to the return of the last one's commit.",
            model="fast", quick=False,
        )(_programs(_mechanism, _name))  # fmt: skip


# Regions of crash consistency of the nine programs, and the creation of logs and copies alone.
PROGRAM_REGIONS = {
    "undo": {"one_regions": 3.25, "creation": 11.0}, "checkpoint": {"one_regions": 7.9, "creation": 39.0},
    "shadow": {"one_regions": 3.25, "creation": 11.0},
}  # fmt: skip
_PARTS = {
    "one_regions": ("regions", "crash consistency", nearpm.REGION_CLOCKS, nearpm.REGION_DIFFERS),
    "creation": (
        "creation", "the creation of log entries, checkpoints or copies",
        "the CPU's time until the copies of old content have been requested, and stores may follow",
        "the paper's artifact times the same events with PMDK 1.9",
    ),
}  # fmt: skip
for _mechanism, _least_of in PROGRAM_REGIONS.items():
    for _column, _least in _least_of.items():
        _own, _region_part, _of_part, _differs_by = _PARTS[_column]
        claim(
            f"nearpm.programs.{_mechanism}.{_own}", "x", at_least(_least),
            f"The time of {_region_part} in transactions of nine programs, by the CPU and by one device, durable; "
            f"mean; {_mechanism}, design nearpm-paper.",
            paper(nearpm.PAPER_REGIONS[_mechanism], "8.2.3", _differs_by), clocks=f"{_of_part}.", model="fast",
            quick=False,
        )(_programs(_mechanism, _column))  # fmt: skip


def _units(mechanism: str) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        # The first insertions change fewer pages, which must not dominate a quick run.
        run = run_of(context, 4000 if context.quick else 1000)
        one, four = (context.once(("nearpm.units", n), partial(nearpm_fig19.measure, run, n)) for n in (1, 4))
        gain = four[mechanism] / one[mechanism]
        return Measured(gain, f"over the CPU {one[mechanism]:.2f}x with one, {four[mechanism]:.2f}x with four")

    return measure


# A transaction's undo log takes less time to copy than commands take to arrive: more units change
# nothing.
UNITS = {"undo": 0.97, "checkpoint": 1.7, "shadow": 1.7}
for _mechanism, _least in UNITS.items():
    claim(
        f"nearpm.units.{_mechanism}", "x", at_least(_least),
        f"Insertions without other computation, durable: the rate with four units by that with one; {_mechanism}, "
        "design nearpm-paper.",
        Published(
            "more with each of 1, 2 and 4 units", "NearPM, section 8.3.2, figure 19", "programs that compute, too", 1.0
        ),
        clocks=f"{nearpm.WHOLE_CLOCKS}.", model="fast",
    )(_units(_mechanism))  # fmt: skip


def _threads(mechanism: str, threads: int, who: str) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        def run() -> dict[str, Any]:
            # Shorter runs end before shadow paging has used all places.
            whole = run_of(context)
            whole.parameters = {"inserts": 400}
            return nearpm_fig20.measure(whole, threads)

        row = context.once(("nearpm.threads", threads), run)
        by_cpus = row[f"{mechanism}_ordered_per_us" if who else f"{mechanism}_cpu_per_us"]
        text = f"{by_cpus:.2f} a microsecond by the CPUs, {row[f'{mechanism}_per_us']:.2f} offloaded"
        return Measured(row[f"{mechanism}{who}"], text)

    return measure


# The paper's gain stays above 1. With undo logs and 16 threads ours is little more than 1. Over
# CPUs that order only it is below. 16 threads take too long for a quick run.
THREADS = {4: {"undo": 2.0, "checkpoint": 1.25, "shadow": 1.29}, 16: {"undo": 1.05, "checkpoint": 1.45, "shadow": 1.5}}
ORDERED_THREADS = {
    4: {"undo": 1.15, "checkpoint": 1.15, "shadow": 1.28}, 16: {"undo": 0.93, "checkpoint": 1.5, "shadow": 1.55},
}  # fmt: skip
for _who, _of_threads, _how in (
    ("", THREADS, "which read back at each fence"),
    ("_ordered", ORDERED_THREADS, "whose fences between stores are an sfence, as the device keeps their order"),
):
    for _count, _least_of in _of_threads.items():
        for _mechanism, _least in _least_of.items():
            claim(
                f"nearpm.threads.{_mechanism}.{_count}{_who.replace('_', '.')}", "x", at_least(_least),
                f"Insertions by {_count} threads with a pool each, without other computation, durable: the offloaded "
                f"rate by that of as many CPUs, {_how}; {_mechanism}, design nearpm-paper.",
                Published(
                    "falls with threads, and is above 1 up to 16", "NearPM, section 8.3.1, figure 20",
                    "memcached and Redis, which compute, too", 1.0,
                ),
                clocks="on both sides from the common begin of all threads to the end of the last one.",
                model="fast", quick=_count == 4,
            )(_threads(_mechanism, _count, _who))  # fmt: skip


def _parallel(mechanism: str) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        run = run_of(context)
        run.parameters = {"transactions": context.commands(200), "workloads": nearpm_fig18.WORKLOADS}
        rows = [nearpm_fig18.measure(run, case) for case in nearpm_fig18.cases(run) if case[0] == mechanism]
        detail = ", ".join(f"{row['workload']} {row['durable']:.1f}" for row in rows)
        return Measured(nearpm_fig18.means(rows, "durable")[mechanism], detail)

    return measure


# Records of undo logs are short, so units have little to do: docs/experiments.md.
PARALLEL = {"undo": 5.9, "checkpoint": 18.0, "shadow": 33.0}
for _mechanism, _stated in nearpm_fig18.PAPER.items():
    claim(
        f"nearpm.parallel.{_mechanism}", "% of the time", at_least(PARALLEL[_mechanism]),
        "The share of time in which at least one unit works and the CPU is in no fence, in transactions of nine "
        "programs. Their computation makes the share of crash consistency that of the paper's figure 1. Durable; "
        f"mean; {_mechanism}, design nearpm-paper.",
        paper(
            _stated, "8.2.2, figure 18", "the paper's is the part that is parallelizable, and it does not say how that "
            "was found; a CPU of ours that waits for a load which a command delays counts as working", "%",
        ),
        clocks="parts of the time from the begin of the first transaction to the end of the last one.", model="fast",
    )(_parallel(_mechanism))  # fmt: skip


def _beside(kind: str, key: str, model: str) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        def run() -> dict[str, Any]:
            of = nearpm.design(run_of(context), "nearpm")
            return dict(beside.measure(of, kind, seed=context.seed, quick=context.quick, model=model))

        row = context.once(("nearpm.beside", kind, model), run)
        text = f"{row['beside_gb_s']:.2f} of {row['alone_gb_s']:.2f} GB/s"
        if row["alone_p99_ns"] is not None:
            text += f", p99 {row['beside_p99_ns']:.0f} and {row['alone_p99_ns']:.0f} ns"
        return Measured(row[key], text)

    return measure


for _kind, _name in {
    "loads": "64 loads at a time",
    "stores": "stores of 64 bytes at random places",
    "stores_in_sequence": "stores of 64 bytes in sequence",
    "nvme_reads": "NVMe reads of 4 KiB",
    "nvme_writes": "NVMe writes of 4 KiB",
}.items():
    claim(
        f"nearpm.beside.{_kind}", "% of alone", at_least(95),
        f"Bandwidth of {_name} while all units copy elsewhere, design nearpm.", quick=False,
    )(_beside(_kind, "kept_percent", "rtl"))  # fmt: skip
for _kind, _name in {
    "load": "a load",
    "loads": "64 loads at a time",
    "nvme_read": "an NVMe read of 4 KiB",
    "nvme_write": "an NVMe write of 4 KiB",
}.items():
    claim(
        f"nearpm.beside.{_kind}.p99", "ns", at_most(450),
        f"The rise of the 99th percentile of {_name} while all units copy elsewhere, design nearpm.",
        quick=False,
    )(_beside(_kind, "lost_p99_ns", "rtl"))  # fmt: skip
