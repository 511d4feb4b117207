# SPDX-License-Identifier: Apache-2.0
"""NVMulator's figures of file systems and databases, in a guest in simulated time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nearside.claims.registry import Context, Measured, Published, at_least, at_most, claim
from nearside.device import Design
from nearside.experiments import nvmulator_fig7, nvmulator_fig8, nvmulator_fig9, nvmulator_fio, nvmulator_pm
from nearside.experiments.registry import Experiment, Row, Run

FIO = {7: (nvmulator_fig7.EXPERIMENT, "random"), 8: (nvmulator_fig8.EXPERIMENT, "sequential")}
DIFFERS = (
    "memory with a simple block driver and a DMA engine in an FPGA, four cores of an ARM N1-SDP; 512 MB a thread; the "
    "text states no values"
)
OPTANE = "optane-dcpmm"


def _run(context: Context, experiment: Experiment) -> Run:
    """The experiment's run, which all of its claims share."""

    def make() -> Run:
        return Run("fast", context.quick, context.seed, experiment.parameters(context.quick), Design.load("default"))

    return context.once(("guest.nvmulator", experiment.name), make)


def _published(text: str, source: str, profile: str) -> Published | None:
    return Published(text, f"NVMulator, {source}", DIFFERS) if profile == OPTANE else None


def _bandwidth(number: int, case: dict[str, Any]) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        experiment, pattern = FIO[number]
        row = nvmulator_fio.measure_in_guest(_run(context, experiment), {**case, "pattern": pattern})
        synced = f", fsync {row['fsync_us']:.2f} us" if case["kind"] == "write" else ""
        text = f"fio: mean {row['fio_us']:.2f} us{synced}; device and link {row['command_us']:.2f} us a command of"
        return Measured(row["mb_s"], f"{text} {row['command_kib']:.0f} KiB")

    return measure


# The least bandwidth in MB/s, by figure, profile and direction: one thread, four threads.
BANDWIDTHS = {
    (7, OPTANE, "read"): (510, 850),
    (7, OPTANE, "write"): (350, 530),
    (7, "dram", "read"): (530, 840),
    (7, "dram", "write"): (360, 530),
    (7, "pcm", "read"): (480, 830),
    (7, "pcm", "write"): (110, 240),
    (8, OPTANE, "read"): (2200, 2200),
    (8, OPTANE, "write"): (360, 570),
    (8, "dram", "read"): (2200, 2200),
    (8, "dram", "write"): (370, 570),
    (8, "pcm", "read"): (2200, 2200),
    (8, "pcm", "write"): (110, 290),
}
# The same with four threads on four CPUs, which the paper's host has, too.
FOUR_CPUS = {
    (7, OPTANE, "read"): 1550,
    (7, OPTANE, "write"): 1380,
    (8, OPTANE, "read"): 6800,
    (8, OPTANE, "write"): 1400,
}
CELLS = [
    *(
        (*key, threads, 1, least)
        for key, limits in BANDWIDTHS.items()
        for threads, least in zip((1, 4), limits, strict=True)
    ),
    *((*key, 4, 4, least) for key, least in FOUR_CPUS.items()),
]
for _number, _profile, _kind, _threads, _cpus, _least in CELLS:
    _case = {"profile": _profile, "cpus": _cpus, "way": nvmulator_fio.CACHED, "kind": _kind, "threads": _threads}
    _synced = ", fsync after each" if _kind == "write" else ""
    claim(
        f"guest.nvmulator.fig{_number}.{_profile}.{_kind}.{_threads}" + (f".{_cpus}cpus" if _cpus > 1 else ""),
        "MB/s", at_least(_least),
        f"fio's sync engine on ext4 in a guest: {FIO[_number][1]} {_kind}s of 4 KiB through the page cache"
        f"{_synced}, {nvmulator_fio.threads_text(_threads)}, CPUs of the guest: {_cpus}, media {_profile}.",
        _published("bars without numbers", f"figure {_number}", _profile),
        clocks="the device's data from the end of the last thread's warm-up to the end of the first thread.",
        model="fast", quick=_number == 7 and _profile == OPTANE and _cpus == 1,
    )(_bandwidth(_number, _case))  # fmt: skip


def _database_row(context: Context, case: dict[str, Any]) -> Row:
    return nvmulator_fig9.measure(_run(context, nvmulator_fig9.EXPERIMENT), case)


def _rate(case: dict[str, Any]) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        row = _database_row(context, case)
        moved = (
            f"{row['reads']} reads of {row['read_mib']:.1f} MiB, {row['writes']} writes of {row['write_mib']:.1f} MiB"
        )
        return Measured(row["ops_s"], f"in the guest's memory {row['memory_ops_s']:.0f} 1/s; {moved}")

    return measure


# The least rates by profile, in operations a second, in the order of `BENCHMARKS`. Quick runs have
# smaller databases.
RATES = {
    OPTANE: (95_000, 18_500, 30_000, 10_000),
    "dram": (95_000, 19_000, 30_000, 10_000),
    "pcm": (95_000, 7600, 29_000, 9300),
}
QUICK_RATES = (70_000, 12_000, 20_000, 5000)
for _profile, _rates in RATES.items():
    for _name, _rate_least, _quick in zip(nvmulator_fig9.BENCHMARKS, _rates, QUICK_RATES, strict=True):
        claim(
            f"guest.nvmulator.fig9.{_profile}.{_name}", "1/s", at_least(_rate_least),
            f"RocksDB's db_bench on ext4 in a guest: {nvmulator_fig9.BENCHMARKS[_name]}, media {_profile}.",
            _published("bars without numbers, within 2 x of Optane", "figure 9", _profile)
            if _name == "fillrandom" else None,
            clocks="as db_bench reports it, from the begin of a benchmark to its end.", model="fast",
            quick=_profile == OPTANE, quick_bound=at_least(_quick),
        )(_rate({"what": _name, "profile": _profile}))  # fmt: skip


def _replayed(case: dict[str, Any]) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        row = _database_row(context, case)
        text = (
            f"{row['count']} commands, {row['recorded_us']:.3f} us in the guest, {row['replayed_us']:.3f} us in process"
        )
        return Measured(row["error_percent"], text)

    return measure


for _profile in RATES:
    for _kind in nvmulator_fig9.REPLAYS:
        claim(
            f"guest.nvmulator.replay.{_profile}.{_kind}", "%", at_most(5),
            f"Mean latency of the {_kind}s of RocksDB in device and link: in a guest, and issued again in process at "
            f"their times; the difference, media {_profile}.",
            model="fast", quick=_profile == OPTANE,
        )(_replayed({"what": "replay", "profile": _profile, "kind": _kind}))  # fmt: skip


def _lost(case: dict[str, Any]) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        row = _database_row(context, case)
        return Measured(row["lost"], f"{row['acknowledged']} had been reported as written, {row['there']} are there")

    return measure


for _end, _text in zip(nvmulator_fig9.ENDS, ("SIGKILL", "a reset of the guest"), strict=True):
    claim(
        f"guest.nvmulator.lost.{_end.lower()}", "records", at_most(0),
        f"RocksDB ended by {_text} while it writes synchronised records: those that it had reported and that another "
        "guest does not find in the recovered file system.",
        model="fast",
    )(_lost({"what": "recovery", "profile": OPTANE, "how": _end}))  # fmt: skip


def _window(case: dict[str, Any]) -> Callable[[Context], Measured]:
    def measure(context: Context) -> Measured:
        row = nvmulator_pm.measure_in_guest(_run(context, nvmulator_pm.EXPERIMENT), case)
        return Measured(row["us"], f"{row['blocks']} blocks")

    return measure


# The most time of 4 KiB in us, by way and direction; in quick runs, whose few writes have the first
# ones among them.
WINDOWS = {
    ("window", nvmulator_pm.WINDOW, "read"): (500, 500),
    ("window", nvmulator_pm.WINDOW, "write"): (4.6, 4.6),
    ("ext4", nvmulator_pm.EXT4, "read"): (500, 500),
    ("ext4", nvmulator_pm.EXT4, "write"): (8, 9.5),
    ("dax", nvmulator_pm.DAX, "read"): (500, 500),
    ("dax", nvmulator_pm.DAX, "write"): (5.2, 6.8),
}
for (_short, _way, _kind), (_most, _quick_most) in WINDOWS.items():
    claim(
        f"guest.nvmulator.pm.{_short}.{_kind}", "us", at_most(_most),
        f"A {_kind} of 4 KiB at random by fio through the PM window in a guest: {_way}"
        + (", with fsync" if _kind == "write" and _short != "window" else "") + f", media {OPTANE}.",
        model="fast",
        quick_bound=at_most(_quick_most),
    )(_window({"profile": OPTANE, "way": _way, "pattern": "random", "kind": _kind}))  # fmt: skip
