# SPDX-License-Identifier: Apache-2.0
"""nvme_ctrl: bandwidth against OpenExpress, and integrity of all data."""

from __future__ import annotations

from nearside import latency
from nearside.claims.matrices import OURS, THEIRS
from nearside.claims.registry import Context, Measured, Published, at_least, at_most, claim

# OpenExpress, section 4.1 and figure 4: GB/s on PCIe Gen3 with ten threads at queue depth 8. For 4
# KiB these are of sequential accesses, for larger sizes the maximum of both patterns.
OPEN_EXPRESS = {
    ("read", "4k"): 3.0,
    ("write", "4k"): 2.8,
    ("read", "16k"): 7.0,
    ("write", "16k"): 4.7,
    ("read", "32k"): 7.0,
    ("write", "32k"): 4.7,
}
SIZES = {"4k": 4096, "16k": 16384, "32k": 32768}
COMMANDS = {"4k": 6000, "16k": 2400, "32k": 1600}
PATTERNS = {"seq": "sequential", "rand": "random"}
FIO_DIFFERS = (
    f"{THEIRS}, ten threads on eight cores, including their time; ours is {OURS}: a CPU for each queue, 40 ns to "
    "place a command, 30 ns to reap one, no kernel, no interrupts"
)


def _published(kind: str, size: str, pattern: str) -> Published | None:
    if (size, pattern) == ("4k", "rand"):
        return None
    value = OPEN_EXPRESS[kind, size]
    text = f"{value} GB/s, sequential" if size == "4k" else f"at most {value} GB/s"
    return Published(text, "OpenExpress, section 4.1", FIO_DIFFERS, value)


def _bandwidth(kind: str, size: str, pattern: str) -> None:
    @claim(
        f"nvme.{kind}_{size}.{pattern}.bandwidth", "GB/s", at_least(OPEN_EXPRESS[kind, size]),
        f"{PATTERNS[pattern].capitalize()} {kind}s of {size.upper().replace('K', ' KiB')}, 10 queues of depth 8, "
        f"PCIe Gen3 x8, DRAM timing; {OURS}.",
        _published(kind, size, pattern),
        clocks="on the host, from the placement of the first command to the reaping of the last one.",
    )  # fmt: skip
    def measure(context: Context) -> Measured:
        report = context.device("dram").workload(
            read_percent=100 if kind == "read" else 0, pattern=PATTERNS[pattern], min_bytes=SIZES[size], queues=10,
            depth=8, commands=context.commands(COMMANDS[size]), seed=context.seed,
        )  # fmt: skip
        mean, p99 = (report["latency"][key] / 1e3 for key in ("mean_ns", "p99_ns"))
        return Measured(
            report["bandwidth_gb_s"],
            f"{report['iops'] / 1e3:.0f} kIOPS, mean {mean:.1f} us, p99 {p99:.1f} us",
        )


for _kind, _size in OPEN_EXPRESS:
    for _pattern in PATTERNS:
        _bandwidth(_kind, _size, _pattern)


@claim(
    "nvme.sizes",
    "sizes",
    at_least(12),
    "Every size from 512 B to 1 MiB (powers of two) is written, read back and compared.",
)
def sizes(context: Context) -> Measured:
    device = context.device("dram")
    verified = []
    for size in (512 << n for n in range(12)):
        # Few places, so that most reads find data of an earlier command.
        report = device.workload(
            read_percent=50, min_bytes=size, queues=2, depth=2, commands=max(40, context.commands(96)), span=8 * size,
            verify=True, seed=context.seed,
        )  # fmt: skip
        if report["verified_bytes"] >= size:
            verified.append(size)
    return Measured(len(verified), f"{', '.join(str(s) for s in verified)} bytes")


@claim(
    "nvme.data_integrity", "wrong bytes", at_most(0),
    "Random sizes from 512 B to 128 KiB, PRP1 at any multiple of 4, scattered pages, PRP lists at any multiple of 8, "
    "mixed reads and writes, all queues, queue wrap-around: every byte read is what was last written.",
)  # fmt: skip
def data_integrity(context: Context) -> Measured:
    device = context.device("dram", queue_entries=16)
    compared = commands = 0
    # One run with page-aligned lists, one with lists that are chained after their first entry.
    for list_offset in (0, 4080):
        report = device.workload(
            read_percent=50, min_bytes=512, max_bytes=128 << 10, queues=16, depth=8, commands=context.commands(2400),
            span=8 << 20, scattered=True, list_offset=list_offset, verify=True, seed=context.seed ^ list_offset,
        )  # fmt: skip
        compared += report["verified_bytes"]
        commands += report["commands"]
    return Measured(
        0 if compared > 0 else 1, f"{compared} bytes compared in {commands} commands on queues of 16 entries"
    )


@claim(
    "nvme.qd1.read_4k.added_cycles", "cycles", at_most(60),
    "4 KiB reads one at a time: cycles of the controller beside the physical terms (doorbell and entry on the link, "
    "round trip of the fetch, memory access, transfer), the slowest of all, DRAM and Optane timing.",
)  # fmt: skip
def added_cycles(context: Context) -> Measured:
    rows = []
    for profile in ("dram", "optane-dcpmm"):
        device = context.device(profile)
        rows.append(latency.measure(device, "read", context.commands(40), context.seed))
    total = max(row["total_ns"] for row in rows)
    means = " and ".join(f"{row['added_cycles']:.1f}" for row in rows)
    return Measured(max(row["added_cycles_max"] for row in rows), f"means {means} cycles; up to {total:.0f} ns in all")


NAND_GB_S = 3.0  # media/nand.toml, both directions


def _nand(kind: str, commands: int) -> None:
    @claim(
        f"nvme.nand.{kind}", "%", at_least(97),
        f"Bandwidth of sequential {kind}s of 128 KiB, 8 queues of depth 8, as a share of the 3 GB/s of the profile "
        "nand, start and end of the run included.",
        quick=False,
    )  # fmt: skip
    def measure(context: Context) -> Measured:
        device = context.device("nand", design='[media]\nprofile = "nand"')
        report = device.workload(
            read_percent=100 if kind == "read" else 0, pattern="sequential", min_bytes=128 << 10, queues=8, depth=8,
            commands=context.commands(commands), seed=context.seed,
        )  # fmt: skip
        reached = report["bandwidth_gb_s"]
        return Measured(100 * reached / NAND_GB_S, f"{reached:.3f} of {NAND_GB_S:.0f} GB/s")


# The first write takes 0.7 ms, which must be a small part of the run.
_nand("read", 300)
_nand("write", 1200)
