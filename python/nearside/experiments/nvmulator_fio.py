# SPDX-License-Identifier: Apache-2.0
"""NVMulator's figures 7 and 8: fio on ext4, in a guest in simulated time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from nearside import wire
from nearside._native import NearsideError
from nearside.experiments import nvmulator_guest as guest
from nearside.experiments.registry import Experiment, PlotOptions, Row, Run, figure, plot

KINDS = ("read", "write")
# How fio opens its files, by our names: the paper's text names neither.
CACHED, DIRECT = "page cache", "direct"
WAYS = (CACHED, DIRECT)
FILE_MIB = 64
MOST_THREADS = 4
# How much of a file the kernel reads ahead on this device, in bytes.
READ_AHEAD = 256 << 10
# fio's names of patterns and directions.
FILE_RW = {
    ("random", "read"): "randread",
    ("random", "write"): "randwrite",
    ("sequential", "read"): "read",
    ("sequential", "write"): "write",
}
DROP = "#!/bin/sh\necho 1 > /proc/sys/vm/drop_caches\n"
NO_NUMBERS = "bars without numbers"


def cases(run: Run, pattern: str) -> list[dict[str, Any]]:
    parameters = run.parameters
    return [
        {"profile": profile, "cpus": cpus, "way": way, "kind": kind, "threads": threads, "pattern": pattern}
        for profile in parameters["profiles"]
        for cpus in parameters["cpus"]
        for way in parameters["ways"]
        for kind in KINDS
        for threads in parameters["threads"]
    ]


def script() -> str:
    """Makes a file system with a written file for each thread, and runs fio's jobs."""
    return f"""{guest.MKFS}
mount -t ext4 /dev/nvme0n1 /mnt
for i in $(seq 0 {MOST_THREADS - 1}); do
    dd if=/dev/zero of=/mnt/file.$i bs=1M count={FILE_MIB} oflag=direct 2> /dev/null
done
sync
filefrag -v /mnt/file.* > extents
fio --output-format=json --output=fio.json jobs
umount /mnt
"""


def job_file(run: Run, these: Sequence[dict[str, Any]]) -> str:
    """fio's jobs, one after the other, each after a read that marks its place in the trace."""
    parameters = run.parameters
    lines = ["[global]", "thread=1", "ioengine=sync", "bs=4k", f"randseed={run.seed}", "group_reporting=1"]
    # Threads that drop pages themselves would begin one after the other.
    lines += ["invalidate=0"]
    for number, case in enumerate([*these, None]):
        lines += [f"[mark{number}]", "stonewall=1", "filename=/dev/nvme0n1", "rw=read", "direct=1"]
        lines += ["exec_prerun=./drop.sh"]
        lines += [f"offset={guest.mark_place(number)}", f"size={guest.FS_BLOCK_BYTES}", "number_ios=1"]
        if case is None:
            break
        count = FILE_MIB << 8 if merged(case) else parameters["warm_up"] + parameters["measured"]
        rw = FILE_RW[case["pattern"], case["kind"]]
        lines += [f"[cell{number}]", "stonewall=1", "filename_format=/mnt/file.$jobnum", f"rw={rw}"]
        lines += [f"numjobs={case['threads']}", f"size={FILE_MIB}m", f"number_ios={count}"]
        lines += ["fsync=1", "end_fsync=1"] if case["kind"] == "write" else []
        lines += [f"direct={int(case['way'] == DIRECT)}"]
    return "\n".join(lines) + "\n"


def parse_jobs(text: str) -> dict[str, dict[str, Any]]:
    """fio's results by the names of its jobs; lines about commands that it has run come first."""
    return {job["jobname"]: job for job in json.loads(text[text.index("{") :])["jobs"]}


def merged(case: dict[str, Any]) -> bool:
    """Whether the kernel reads ahead, so that a command is many of fio's reads."""
    return (case["pattern"], case["kind"], case["way"]) == ("sequential", "read", CACHED)


def measure(run: Run, case: dict[str, Any]) -> Row:
    key = ("limit", *(value for name, value in case.items() if name != "cpus"))
    limit = run.once(key, lambda: limit_mb_s(run, case))
    return measure_in_guest(run, case) | {"limit_mb_s": limit}


def measure_in_guest(run: Run, case: dict[str, Any]) -> Row:
    """A row of the guest that runs all cases of its profile and number of CPUs."""
    setup = (case["profile"], case["cpus"])
    these = [one for one in cases(run, case["pattern"]) if (one["profile"], one["cpus"]) == setup]

    def all_cells() -> list[Row]:
        done = guest.run_script(
            run,
            guest.profile_design(run, case["profile"]),
            script(),
            {"jobs": job_file(run, these), "drop.sh": DROP},
            cpus=case["cpus"],
        )
        extents = list(guest.parse_extents(done.files["extents"]).values())
        jobs = parse_jobs(done.files["fio.json"])
        parts = guest.split_at_marks(done.commands, len(these))
        return [
            one | measure_cell(run, one, part, extents, jobs[f"cell{number}"])
            for number, (one, part) in enumerate(zip(these, parts, strict=True))
        ]

    rows: list[Row] = run.once(("fio", *setup, case["pattern"]), all_cells)
    return rows[these.index(case)]


def measure_cell(
    run: Run, case: dict[str, Any], part: Sequence[guest.Command], extents: Sequence[Any], job: dict[str, Any]
) -> Row:
    """A row from the commands of a cell, while all of its threads are at work, and from fio's own report."""
    kind, threads = case["kind"], case["threads"]
    of_files = [guest.commands_of(part, extents[i], kind.capitalize()) for i in range(threads)]
    ends = [[guest.completed_ps(command) for command in commands] for commands in of_files]
    # The first commands that read ahead are shorter than the others.
    skipped = [len(own) // 10 if merged(case) else run.parameters["warm_up"] for own in ends]
    start = max(own[count - 1] for own, count in zip(ends, skipped, strict=True))
    end = min(own[-2] for own in ends)  # the last one's thread ends
    within = [c for commands in of_files for c in commands if start < guest.completed_ps(c) <= end]
    if not within:
        raise NearsideError(f"{threads_text(threads)} of fio were never at work at the same time: measure more")
    moved = sum(command["blocks"] * share_within(command, start, end) for own in of_files for command in own)
    moved *= guest.LBA_BYTES
    every = [c for c in part if start < guest.completed_ps(c) <= end]
    bandwidth = moved / (end - start) * 1e6
    return {
        "mb_s": bandwidth,
        "turn_us": threads * guest.FS_BLOCK_BYTES / bandwidth,
        "command_us": sum(map(guest.device_ns, within)) / len(within) / 1e3,
        "command_kib": sum(command["blocks"] for command in within) * guest.LBA_BYTES / len(within) / 1024,
        "commands_each": len(every) * guest.FS_BLOCK_BYTES / moved,
        "fio_us": job[kind]["clat_ns"]["mean"] / 1e3,
        "fio_p99_us": job[kind]["clat_ns"]["percentile"]["99.000000"] / 1e3,
        "fsync_us": job["sync"]["lat_ns"]["mean"] / 1e3 if kind == "write" else 0.0,
        "fio_mb_s": job[kind]["bw_bytes"] / 1e6,
    }


def share_within(command: guest.Command, start: int, end: int) -> float:
    """The share of a command's time within a span, in ps: how much of its data is counted there."""
    begun, completed = guest.begun_ps(command), guest.completed_ps(command)
    return max(min(completed, end) - max(begun, start), 0) / (completed - begun)


def limit_mb_s(run: Run, case: dict[str, Any]) -> float:
    """The device with a host that takes no time for anything but its driver."""
    design = guest.profile_design(run, case["profile"])
    if merged(case):
        return 1e3 * wire.bound(design, "read", READ_AHEAD, below_4_gib=True)
    device = run.device(case["profile"])
    report = device.workload(
        read_percent=100 if case["kind"] == "read" else 0, pattern=case["pattern"], queues=case["threads"], depth=1,
        commands=1000 * case["threads"], span=256 << 20, seed=run.seed,
    )  # fmt: skip
    return report["bandwidth_gb_s"] * 1e3


def figures(rows: list[Row], number: int) -> list[dict[str, Any]]:
    out = []
    for row in rows:
        what = f"{row['pattern']} {row['kind']}s, {threads_text(row['threads'])}, {row['way']}, {setup_text(row)}"
        theirs = row["profile"] == "optane-dcpmm" and row["way"] == CACHED
        limit = "the wire" if merged(row) else "device and link, as many in flight"
        out.append(
            figure(
                figure_name(row), f"bandwidth: {what}", row["mb_s"], "MB/s",
                paper_text=NO_NUMBERS if theirs else None, source=f"figure {number}" if theirs else None,
                limit=row["limit_mb_s"], limit_text=limit,
            )
        )  # fmt: skip
    return out


def figure_name(row: Row) -> str:
    way = row["way"].replace(" ", "_")
    return f"{row['profile']}.{way}.{row['kind']}.{row['threads']}" + (f".{row['cpus']}cpus" if row["cpus"] > 1 else "")


def setup_text(row: Row) -> str:
    return row["profile"] + (f", {row['cpus']} CPUs" if row["cpus"] > 1 else "")


def threads_text(count: int) -> str:
    return f"{count} thread" + "s" * (count > 1)


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    """Bandwidth by threads: a plot for each direction and way, with a line for each profile and number of CPUs."""
    found = {(setup_text(row), row["way"], row["kind"], row["threads"]): row for row in rows}
    setups = list(dict.fromkeys(map(setup_text, rows)))
    ways, kinds, threads = (list(dict.fromkeys(row[key] for row in rows)) for key in ("way", "kind", "threads"))

    def line(name: str, key: str, setup: str, way: str, kind: str, of: str = "ours") -> dict[str, Any]:
        there = [found.get((setup, way, kind, count)) for count in threads]
        return {"name": name, "of": of, "y": [row and row[key] for row in there]}

    x: PlotOptions = {"x": threads, "x_label": "threads"}
    out = []
    for kind in kinds:
        for way in ways:
            series = [line(setup, "mb_s", setup, way, kind) for setup in setups]
            series.append(line(f"limit, {setups[0]}", "limit_mb_s", setups[0], way, kind, "limit"))
            out.append(plot(f"{rows[0]['pattern']} {kind}s, {way}", series=series, y_label="MB/s, simulated", **x))
    return out


def make_experiment(name: str, number: int, pattern: str, title: str, also: Sequence[str]) -> Experiment:
    """The experiment of one of the two figures."""
    return Experiment(
        name=name,
        title=title,
        source=f"NVMulator (Tamimi et al., 2023), figure {number}",
        text=(
            f"fio 3.39 with its `sync` engine on ext4: {pattern} reads and writes of 4 KiB, 1 to 4 threads, a file for "
            "each, `fsync` after each write. A stock Linux guest runs it in simulated time on the device.",
            *also,
            f"The paper's files have 512 MB. Ours have {FILE_MIB} MiB, are written beforehand, and a thread does as "
            "many as the parameters say, after a warm-up. Where the kernel reads ahead it is the whole file.",
            "Bandwidth is that of the device's commands to the files' blocks, while all threads are at work. Of a "
            "command at the begin or end of this span, the part counts that its time has within.",
            "The paper does not say whether fio bypasses the page cache. An `fsync` that ensures that data are not "
            "delayed has a meaning only with the page cache, which is fio's default. So `page cache` is the paper's "
            "case; pages are dropped beforehand. `direct` is shown beside it.",
            "The paper compares bars of NVMulator and of Optane memory (Izraelevitz et al., arXiv 1903.05714). Neither "
            "text states their values, and none are read off the plots.",
            "What differs: the paper's device is memory with a simple block driver, on four cores of an ARM N1-SDP. "
            "Optane memory is on the memory bus of a 24-core Xeon. Ours is an NVMe device across PCIe Gen3 x8 and "
            "Linux' driver; the guest has one CPU, which threads share, or four. Each instruction takes the same time.",
            "The device has no volatile write cache, so `fsync` sends no Flush; it may write the journal.",
            "The limit is the device with a polling host in this process and as many commands in flight. Where the "
            "kernel reads ahead it is the wire, with commands of 256 KiB.",
        ),
        quick={
            "profiles": ["optane-dcpmm"], "cpus": [1], "ways": [CACHED], "threads": [1, 4], "warm_up": 50,
            "measured": 400,
        },
        full={
            "profiles": list(guest.PROFILES), "cpus": [1, 4], "ways": list(WAYS), "threads": [1, 2, 3, 4],
            "warm_up": 200, "measured": 1000,
        },
        cases=lambda run: cases(run, pattern),
        measure=measure,
        figures=lambda rows: figures(rows, number),
        plots=plots,
        models=("fast",),
    )  # fmt: skip
