# SPDX-License-Identifier: Apache-2.0
"""NVMulator's block driver: a stock driver makes a disk of the PM window, in a guest in simulated time."""

from __future__ import annotations

from typing import Any

from nearside.experiments import nvmulator_guest as guest
from nearside.experiments.nvmulator_fio import FILE_RW, parse_jobs
from nearside.experiments.registry import Experiment, PlotOptions, Row, Run, figure, plot

WINDOW, EXT4, DAX = "mmap of the window", "ext4 on pmem", "ext4 on pmem, dax"
WAYS = (WINDOW, EXT4, DAX)
KINDS = ("read", "write")
# Where the guest's firmware places BAR2 of the device, of 1 GiB.
BAR2 = 0xFF_4000_0000
# The kernel takes the window for persistent memory. It copies in words of 8 bytes where it would
# copy byte by byte with `rep movsb`, which is fast in caches only.
KERNEL_LINE = f"memmap=1G!{BAR2:#x} clearcpuid=erms,fsrm"
DEVICE = "/sys/bus/pci/devices/0000:00:01.0"
FS_BYTES = 32 << 20
LINE, WORD = 64, 8


def cases(run: Run) -> list[dict[str, Any]]:
    return [
        {"profile": profile, "way": way, "pattern": pattern, "kind": kind}
        for profile in run.parameters["profiles"]
        for way in WAYS
        for pattern in ("random", "sequential")
        for kind in KINDS
    ]


def fio_jobs(run: Run, way: str) -> str:
    """fio's jobs of a way, one after the other."""
    blocks = run.parameters["blocks"]
    lines = ["[global]", "thread=1", "bs=4k", f"size={4 * blocks}k", f"randseed={run.seed}", "stonewall=1"]
    if way == WINDOW:
        # A file of sysfs can't be synchronised.
        lines += ["ioengine=mmap", f"filename={DEVICE.replace(':', chr(92) + ':')}/resource2", "fallocate=none"]
        lines += ["invalidate=0", "file_service_type=random"]
    else:
        lines += ["ioengine=sync", "filename=/mnt/file", "fsync=1", "end_fsync=1"]
    for (pattern, kind), rw in FILE_RW.items():
        lines += [f"[{pattern}-{kind}]", f"rw={rw}"]
    return "\n".join(lines) + "\n"


def script(run: Run) -> str:
    """The window by itself, then a file system on a disk that the kernel's pmem driver makes of it."""
    blocks = run.parameters["blocks"]
    return f"""
device={DEVICE}
echo ${{device##*/}} > $device/driver/unbind
echo 1 > $device/enable
fio --output-format=json --output=window.json window
for module in libnvdimm nd_btt nd_pmem nd_e820; do insmod /modules/$module.ko; done
tries=0
while [ ! -b /dev/pmem0 ] && [ $tries -lt 1000 ]; do usleep 1000; tries=$((tries + 1)); done
dmesg | grep nd_pmem > pmem
mke2fs -q -t ext4 -b 4096 -N 64 -J size=4 -E nodiscard,lazy_itable_init=1,lazy_journal_init=1 /dev/pmem0 32m
for way in ext4 dax; do
    mount -t ext4 -o noinit_itable$([ $way = ext4 ] || echo ,dax) /dev/pmem0 /mnt
    dd if=/dev/zero of=/mnt/file bs=4k count={blocks} 2> /dev/null
    sync
    fio --output-format=json --output=$way.json file
    umount /mnt
done
"""


def measure(run: Run, case: dict[str, Any]) -> Row:
    kind = case["kind"]
    limit = run.once(("limit", case["profile"], kind), lambda: limit_us(run, case["profile"], kind))
    return measure_in_guest(run, case) | {"limit_us": limit}


def measure_in_guest(run: Run, case: dict[str, Any]) -> Row:
    """A row of the guest that runs all cases of its profile: fio's own latencies."""

    def all_jobs() -> dict[str, dict[str, Any]]:
        inputs = {"window": fio_jobs(run, WINDOW), "file": fio_jobs(run, EXT4)}
        design = guest.profile_design(run, case["profile"])
        files = guest.run_script(run, design, script(run), inputs, kernel_line=KERNEL_LINE).files
        names = {WINDOW: "window.json", EXT4: "ext4.json", DAX: "dax.json"}
        return {way: parse_jobs(files[name]) for way, name in names.items()}

    jobs = run.once(("pm", case["profile"]), all_jobs)[case["way"]]
    kind = case["kind"]
    job = jobs[f"{case['pattern']}-{kind}"]
    synced = job["sync"]["lat_ns"]["mean"] if kind == "write" else 0.0
    turn_us = (job[kind]["lat_ns"]["mean"] + synced) / 1e3
    return case | {
        "us": turn_us,
        "mb_s": guest.FS_BLOCK_BYTES / turn_us,
        "fsync_us": synced / 1e3,
        "blocks": job[kind]["total_ios"],
    }


def limit_us(run: Run, profile: str, kind: str) -> float:
    """The time of 4 KiB as loads of 64 bytes, one after the other, or as stores of 64 bytes."""
    device = run.device(profile)
    report = device.pm_stream("load" if kind == "read" else "store", in_flight=1, count=2000, seed=run.seed)
    return guest.FS_BLOCK_BYTES / report["bandwidth_gb_s"] / 1e3


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    return [
        figure(
            figure_name(row), f"4 KiB: {row['pattern']} {row['kind']}, {row['way']}, {row['profile']}", row["us"], "us",
            limit=row["limit_us"], limit_text=f"64 {'loads' if row['kind'] == 'read' else 'stores'} of 64 bytes",
            better="lower",
        )
        for row in rows
    ]  # fmt: skip


def figure_name(row: Row) -> str:
    way = {WINDOW: "window", EXT4: "ext4", DAX: "dax"}[row["way"]]
    return f"{row['profile']}.{way}.{row['pattern']}.{row['kind']}"


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    """The time of 4 KiB by way, with bars for each profile."""
    found = {(row["profile"], row["way"], row["pattern"], row["kind"]): row for row in rows}
    profiles = list(dict.fromkeys(row["profile"] for row in rows))
    x: PlotOptions = {"x": WAYS, "x_label": "", "kind": "bars"}
    out = []
    for kind in KINDS:
        for pattern in ("random", "sequential"):
            series = []
            for profile in profiles:
                there = [found.get((profile, way, pattern, kind)) for way in WAYS]
                series.append({"name": profile, "of": "ours", "y": [row and row["us"] for row in there]})
            title = f"4 KiB, {pattern} {kind}s of the PM window"
            out.append(plot(title, series=series, y_label="us, simulated", log=True, **x))
    return out


EXPERIMENT = Experiment(
    name="nvmulator_pm",
    title="A block driver on persistent memory across PCIe",
    source="NVMulator (Tamimi et al., 2023), section 4.2, figure 7 and figure 8",
    text=(
        "NVMulator is memory with bytes that can be addressed and a simple block driver. Here Linux' own driver, "
        "`nd_pmem`, makes a disk of the PM window (BAR2): the kernel of the guest is started with "
        "`memmap=1G!ADDRESS`, and `nd_e820` presents the range as a persistent memory of the firmware.",
        "fio reads and writes 4 KiB with one thread: the window by itself (`ioengine=mmap` on `resource2`), ext4 on "
        "that disk through the page cache, and ext4 with DAX. With ext4 an `fsync` follows each write.",
        "A time is what fio measures for 4 KiB, with `fsync`. Each access of the CPU is a message across the link, in "
        "simulated time: a load waits for its answer, a store is posted.",
        "The CPU has no cache for the window and loads 8 bytes at a time, one after the other. A CPU with write-back "
        "or write-combining memory would load 64 bytes, and several lines at a time. The limit is 64 bytes at a time.",
        "NVMulator's driver moves data by a DMA engine in the FPGA, which these drivers do not have.",
        "`nd_pmem` reports that it can't guarantee persistence: stores are posted, and an `fsync` does not wait for "
        "their arrival. Only a load proves it. So these writes are faster than a durable write is.",
    ),
    quick={"profiles": ["optane-dcpmm"], "blocks": 16},
    full={"profiles": list(guest.PROFILES), "blocks": 64},
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast",),
)  # fmt: skip
