# SPDX-License-Identifier: Apache-2.0
"""NVMulator, figure 9: RocksDB on ext4, in a guest in simulated time."""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path
from typing import Any

from nearside._native import NearsideError
from nearside.device import toml_text
from nearside.experiments import nvmulator_guest as guest
from nearside.experiments.nvmulator_replay import replay
from nearside.experiments.registry import Experiment, PlotOptions, Row, Run, figure, plot

# The paper's number of records. The sizes of RocksDB's defaults are for as many; ours are smaller
# by the same factor.
PAPER_RECORDS = 10_000_000
SIZES = {
    "write_buffer_size": 64 << 20,
    "target_file_size_base": 64 << 20,
    "max_bytes_for_level_base": 256 << 20,
    "cache_size": 32 << 20,
}
LEAST_SIZE = 64 << 10
BENCHMARKS = {
    "fillrandom": "fillrandom",
    "fillrandom_sync": "fillrandom, each record synchronised",
    "readrandom": "readrandom",
    "readwhilewriting": "readwhilewriting, the reads",
}
DEVICE, MEMORY = "device", "memory"
SIGKILL, RESET = "SIGKILL", "reset"
ENDS = (SIGKILL, RESET)
REPLAYS = ("read", "write")
SPEED = re.compile(r" ([\d.]+) ops/sec ")
OPERATIONS = re.compile(r" (\d+) operations;")
ACKNOWLEDGED = re.compile(r"thread 0: \(\d+,(\d+)\) ops")
FOUND = re.compile(r"\((\d+) of (\d+) found\)")


def cases(run: Run) -> list[dict[str, Any]]:
    profiles = run.parameters["profiles"]
    return [
        *({"what": name, "profile": profile} for profile in profiles for name in BENCHMARKS),
        *({"what": "replay", "profile": profile, "kind": kind} for profile in profiles for kind in REPLAYS),
        *({"what": "recovery", "profile": profiles[0], "how": how} for how in ENDS),
    ]


def options(run: Run) -> str:
    """db_bench's options for all benchmarks."""
    records = run.parameters["records"]
    sizes = {name: max(size * records // PAPER_RECORDS, LEAST_SIZE) for name, size in SIZES.items()}
    words = {"key_size": 20, "value_size": 100, "compression_type": "none", "num": records, "seed": run.seed}
    return " ".join(f"--{name}={value}" for name, value in (words | sizes).items())


def benchmarks(run: Run, place: str, folder: str, marks: bool) -> str:
    """The benchmarks in a folder, with a mark before each and after the last."""
    records, reads = run.parameters["records"], run.parameters["reads"]
    steps = {
        "fillrandom": "--benchmarks=fillrandom",
        "readrandom": f"--benchmarks=readrandom --use_existing_db=1 --use_direct_reads=1 --reads={reads}",
        "readwhilewriting": f"--benchmarks=readwhilewriting --use_existing_db=1 --use_direct_reads=1 --reads={reads}",
        "fillrandom_sync": f"--benchmarks=fillrandom --sync=1 --num={records // 10}",
    }
    lines = []
    for number, (name, words) in enumerate(steps.items()):
        lines += ["sync", "echo 1 > /proc/sys/vm/drop_caches", f"mark {number}" if marks else "true"]
        if name == "fillrandom_sync":
            lines.append(f"rm -r {folder}")
        lines.append(f"db_bench --db={folder} $OPTIONS {words} > {place}.{name} 2>&1")
    return "\n".join([*lines, "sync", f"mark {len(steps)}" if marks else "true"]) + "\n"


def database_script(run: Run, memory: bool) -> str:
    text = f"{guest.MARK}{guest.MKFS}\nmount -t ext4 /dev/nvme0n1 /mnt\nOPTIONS='{options(run)}'\n"
    text += benchmarks(run, DEVICE, "/mnt/db", True)
    # The memory's file system: a device that takes no time.
    return text + (benchmarks(run, MEMORY, "/dev/shm/db", False) if memory else "") + "umount /mnt\n"


def measure(run: Run, case: dict[str, Any]) -> Row:
    if case["what"] == "recovery":
        return case | run.once("recovery", lambda: recover(run, case["profile"]))[case["how"]]
    done = run.once(("database", case["profile"]), lambda: run_database(run, case["profile"]))
    if case["what"] == "replay":
        rows: dict[str, Row] = run.once(("replay", case["profile"]), lambda: replayed(run, case["profile"], done))
        return case | rows[case["kind"]]
    first = run.once(("database", run.parameters["profiles"][0]), lambda: None)
    name = case["what"]
    part = guest.split_at_marks(done.commands, len(BENCHMARKS))[order().index(name)]
    return case | {
        "ops_s": speed(done.files, DEVICE, name),
        "memory_ops_s": speed(first.files, MEMORY, name),
        **{f"{kind}s": len(of_kind(part, kind)) for kind in REPLAYS},
        **{f"{kind}_mib": sum(c["blocks"] for c in of_kind(part, kind)) * guest.LBA_BYTES / 2**20 for kind in REPLAYS},
    }


def order() -> list[str]:
    """The benchmarks in the order in which they run."""
    return ["fillrandom", "readrandom", "readwhilewriting", "fillrandom_sync"]


def of_kind(commands: list[guest.Command], kind: str) -> list[guest.Command]:
    return [command for command in commands if command["command"] == kind.capitalize()]


def speed(files: dict[str, str], place: str, name: str) -> float:
    text = files[f"{place}.{name}"]
    found = SPEED.search(text)
    if not found:
        raise NearsideError(f"db_bench {name}: {text.strip().splitlines()[-1:]}")
    return float(found[1])


def run_database(run: Run, profile: str) -> guest.GuestRun:
    script = database_script(run, profile == run.parameters["profiles"][0])
    return guest.run_script(run, guest.profile_design(run, profile), script)


def replayed(run: Run, profile: str, done: guest.GuestRun) -> dict[str, Row]:
    """All commands between the first mark and the last one, issued again."""
    parts = guest.split_at_marks(done.commands, len(BENCHMARKS))
    commands = [command for part in parts for command in part]
    return replay(guest.profile_design(run, profile), run.model, commands)


FILL = "db_bench --benchmarks=fillseq --sync=1 --stats_interval=50 $OPTIONS"
CHECK = """
check() {
    READ="db_bench --db=$1 --use_existing_db=1 $OPTIONS"
    $READ --benchmarks=readseq > $2.readseq 2>&1
    count=$(grep '^readseq' $2.readseq | sed 's/.* \\([0-9]*\\) operations.*/\\1/')
    $READ --benchmarks=verifychecksum,readrandom --num=$count --reads=$((8 * count)) > $2.readrandom 2>&1
}
"""
# How long a database is filled before its end, in us of the guest's time.
FILLED_US = 100_000


def recover(run: Run, profile: str) -> dict[str, Row]:
    """Kills a database by a signal, and another by a reset of the guest; then counts the records of both.

    What a database reports about its records leaves the guest at once, through its terminal.
    """
    preamble = f"OPTIONS='{options(run)}'\n"
    with tempfile.TemporaryDirectory(prefix="nearside-") as folder:
        file = toml_text("the name of a media file", str(Path(folder) / "media"))
        design = guest.profile_design(run, profile).with_values(f"[media]\nfile = {file}")
        first = preamble + guest.MKFS + "\nmount -t ext4 /dev/nvme0n1 /mnt\n"
        for name, end in (("killed", "kill -9 $!\nwait $! || true\n"), ("cut", "echo b > /proc/sysrq-trigger\n")):
            first += f"echo {name}\n{FILL} --db=/mnt/{name} 2>&1 &\nusleep {FILLED_US}\n{end}"
        first += "sleep 10\n"
        output = io.BytesIO()
        try:
            guest.run_script(run, design, first, output=output)
        except NearsideError as reason:
            if "switched off before its job was done" not in str(reason):
                raise
        else:
            raise NearsideError("the guest survived its end")
        killed, _, cut = output.getvalue().decode(errors="replace").partition("cut\n")
        second = preamble + CHECK + "mount -t ext4 /dev/nvme0n1 /mnt\ndmesg | grep EXT4 > mounted\n"
        second += "check /mnt/killed killed\ncheck /mnt/cut cut\numount /mnt\n"
        files = guest.run_script(run, design, second).files
    if "recovery complete" not in files["mounted"]:
        raise NearsideError("ext4 had nothing to recover: the guest was not reset while it wrote")
    return {SIGKILL: recovered(killed, files, "killed"), RESET: recovered(cut, files, "cut")}


def recovered(reports: str, files: dict[str, str], name: str) -> Row:
    """Records that were acknowledged, that are there, and those lost: too few of them, or not found among them."""
    acknowledged = [int(number) for number in ACKNOWLEDGED.findall(reports)]
    counted = OPERATIONS.search(files[f"{name}.readseq"])
    found = FOUND.search(files[f"{name}.readrandom"])
    if not acknowledged or not counted or not found:
        raise NearsideError(f"the database that was {name} reports nothing: {files[f'{name}.readseq'].strip()[-200:]}")
    there, missing = int(counted[1]), int(found[2]) - int(found[1])
    lost = max(acknowledged[-1] - there, 0) + missing
    return {"acknowledged": acknowledged[-1], "there": there, "lost": lost}


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    return [figure_of(row) for row in rows]


def figure_of(row: Row) -> dict[str, Any]:
    what, profile = row["what"], row["profile"]
    if what == "replay":
        text = f"mean latency of {row['kind']}s in the device, issued again in process: difference, {profile}"
        return figure(
            f"{profile}.replay.{row['kind']}", text, row["error_percent"], "%", limit=5.0,
            limit_text="the most that is accepted", better="lower",
        )  # fmt: skip
    if what == "recovery":
        text = f"acknowledged records lost by a {row['how']}, {profile}"
        name = row["how"].lower().replace(" ", "_")
        return figure(f"{profile}.lost.{name}", text, row["lost"], "records", better="lower")
    theirs = what == "fillrandom" and profile == "optane-dcpmm"
    return figure(
        f"{profile}.{what}", f"{BENCHMARKS[what]}, {profile}", row["ops_s"], "1/s", limit=row["memory_ops_s"],
        limit_text="the same in the memory's file system",
        paper_text="bars without numbers, within 2 x of Optane" if theirs else None,
        source="figure 9, section 4.3" if theirs else None,
    )  # fmt: skip


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    found = {(row["what"], row["profile"]): row for row in rows if row["what"] in BENCHMARKS}
    profiles = list(dict.fromkeys(profile for _, profile in found))
    x: PlotOptions = {"x": list(BENCHMARKS), "x_label": "", "kind": "bars"}

    def line(name: str, key: str, profile: str, of: str) -> dict[str, Any]:
        there = [found.get((what, profile)) for what in BENCHMARKS]
        return {"name": name, "of": of, "y": [row and row[key] for row in there]}

    series = [line(profile, "ops_s", profile, "ours") for profile in profiles]
    series += [line("in the memory's file system", "memory_ops_s", profile, "limit") for profile in profiles[:1]]
    return [plot("RocksDB on ext4", series=series, y_label="operations/s, simulated", **x)] if series else []


EXPERIMENT = Experiment(
    name="nvmulator_fig9",
    title="RocksDB on ext4",
    source="NVMulator (Tamimi et al., 2023), figure 9 and section 4.3",
    text=(
        "RocksDB's `db_bench` on ext4: `fillrandom` with keys of 20 bytes and values of 100 bytes, also with each "
        "record synchronised; `readrandom` and `readwhilewriting` of that database with direct reads. A stock Linux "
        "guest runs it in simulated time on the device.",
        "The paper has 10 million records and values of 100M, which is read as 100 bytes. Ours are as many as the "
        "parameters say. Write buffer, files, levels and cache are smaller than RocksDB's defaults by the same factor.",
        "RocksDB is Debian's, version 9.10; the paper's is 5.4. Data are not compressed.",
        "The paper has bars for `fillrandom` on NVMulator and on Optane memory (Izraelevitz et al., arXiv 1903.05714). "
        "It states that they are within a factor of 2; no values are read off the plot.",
        "What differs: the paper's device is memory with a simple block driver, on four cores of an ARM N1-SDP. "
        "Optane memory is on the memory bus of a 24-core Xeon. Ours is an NVMe device across PCIe Gen3 x8; the guest "
        "has one CPU, which RocksDB's threads for flushes and compactions share. Each instruction takes the same time.",
        "The limit is the same benchmark in the guest's memory (tmpfs): a device that takes no time.",
        "Replay: the reads and writes of the benchmarks are issued again in this process, at their recorded times, "
        "without a guest. The figure is by how much their mean latency in device and link differs.",
        "Recovery: one database is killed by SIGKILL, another by a reset of the guest while it writes, which loses "
        "what is in its memory. Another guest then mounts the file system, which recovers, and opens both. Records are "
        "written in the order of keys, each synchronised. As many as had been reported must be there, lookups of eight "
        "times as many must find theirs, and all checksums must be correct.",
    ),
    quick={"profiles": ["optane-dcpmm"], "records": 5000, "reads": 500},
    full={"profiles": list(guest.PROFILES), "records": 50_000, "reads": 5000},
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast",),
)  # fmt: skip
