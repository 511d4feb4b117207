# SPDX-License-Identifier: Apache-2.0
"""OpenExpress, figure 4: bandwidth and latency of NVMe reads and writes by size, with 1 to 10 queues."""

from __future__ import annotations

from typing import Any

from nearside import wire
from nearside.experiments.registry import Experiment, PlotOptions, Row, Run, figure, from_paper, plot

# Section 4.1 states these for figure 4: ten threads, each with a queue of depth 8, PCIe Gen3, DRAM
# as media. The other points of the figure (8 KiB, random 4 KiB, latency of 16 KiB) have no numbers
# in the text.
MOST = {"read": (7.0, "at most 7.0 GB/s"), "write": (4.65, "at most 4.6 to 4.7 GB/s")}
BANDWIDTH = {
    ("sequential", "read", 4096): (3.0, "3.0 GB/s"),
    ("sequential", "write", 4096): (2.8, "2.8 GB/s"),
    **{(pattern, kind, 16384): MOST[kind] for pattern in ("sequential", "random") for kind in MOST},
    **{(pattern, kind, 32768): MOST[kind] for pattern in ("sequential", "random") for kind in MOST},
}
# Means, of both patterns.
MEANS = {("read", 4096): 72.7, ("write", 4096): 77.5, ("read", 32768): 358.0, ("write", 32768): 551.5}
LATENCY = {(pattern, *key): (us, None) for pattern in ("sequential", "random") for key, us in MEANS.items()}
# At depth 1, at the user: 27 to 30 us for 4 KiB.
DEPTH_1_US = (28.5, "27 to 30 us, reads and writes, at the user")
SIZES = (4096, 8192, 16384, 32768)
QUEUES, DEPTH = 10, 8
PANELS = {"sequential": ("4a", "4c"), "random": ("4b", "4d")}


def label(size: int) -> str:
    return f"{size // 1024} KiB"


def cases(run: Run) -> list[dict[str, Any]]:
    """Each size, direction and pattern with each number of queues; then depth 1, and a host with a kernel's costs."""
    parameters = run.parameters
    shapes = [(queues, DEPTH, "polled") for queues in parameters["queues"]]
    grid = [
        {"kind": kind, "bytes": size, "pattern": pattern, "queues": queues, "depth": depth, "cpu": cpu}
        for queues, depth, cpu in shapes
        for pattern in parameters["patterns"]
        for size in SIZES
        for kind in ("read", "write")
    ]
    for cpu in ("polled", "kernel"):
        for size, depth in ((4096, 1), *([(size, DEPTH) for size in SIZES] if cpu == "kernel" else [])):
            same = {"bytes": size, "pattern": "random", "queues": QUEUES, "depth": depth, "cpu": cpu}
            grid += [{"kind": kind, **same} for kind in ("read", "write")]
    # Several rounds of all commands in flight: at start and end there are fewer, which must have
    # little weight.
    least = [parameters["turns"] * case["queues"] * case["depth"] for case in grid]
    moved = parameters["bytes_moved"]
    return [case | {"commands": max(moved // case["bytes"], n)} for case, n in zip(grid, least, strict=True)]


def measure(run: Run, case: dict[str, Any]) -> Row:
    """A workload with the limit of the wire: bandwidth, and latency by Little's law for as many commands in flight."""
    device = run.device("dram", f"[cpu]\nprofile = '{case['cpu']}'")
    report = device.workload(
        read_percent=100 if case["kind"] == "read" else 0, pattern=case["pattern"], min_bytes=case["bytes"],
        queues=case["queues"], depth=case["depth"], commands=case["commands"], seed=run.seed,
    )  # fmt: skip
    bound = wire.bound(device.design, case["kind"], case["bytes"])
    found = report["latency"]
    assert found is not None  # commands were measured
    latency = {"mean_us": found["mean_ns"] / 1e3, "p50_us": found["p50_ns"] / 1e3, "p99_us": found["p99_ns"] / 1e3}
    in_flight = case["queues"] * case["depth"]
    return {
        **case,
        "gb_s": report["bandwidth_gb_s"],
        **latency,
        "wire_gb_s": bound,
        "wire_us": in_flight * case["bytes"] / bound / 1e3,
    }


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    """The paper's points: ten queues of depth 8, and depth 1."""
    out = []
    for row in rows:
        kind, size, pattern = row["kind"], row["bytes"], row["pattern"]
        ten = (row["queues"], row["depth"]) == (QUEUES, DEPTH)
        host = "" if row["cpu"] == "polled" else ", host with a kernel's costs"
        what = f"{pattern} {kind}s of {label(size)}, {row['queues']} queues of depth {row['depth']}{host}"
        name = f"{kind}_{size // 1024}k.{pattern}" + (".kernel" if host else "") + ("" if ten else ".depth_1")
        bandwidth, latency = PANELS[pattern]
        if ten:
            paper, text = BANDWIDTH.get((pattern, kind, size), (None, None))
            out.append(
                figure(
                    f"{name}.bandwidth", f"bandwidth: {what}", row["gb_s"], "GB/s", paper_text=text,
                    **from_paper(paper, f"figure {bandwidth}, section 4.1"), limit=row["wire_gb_s"],
                    limit_text="the wire",
                )
            )  # fmt: skip
        elif row["depth"] != 1:
            continue
        paper, text = LATENCY.get((pattern, kind, size), (None, None)) if ten else DEPTH_1_US
        out.append(
            figure(
                f"{name}.latency", f"mean latency: {what}", row["mean_us"], "us", paper_text=text,
                **from_paper(paper, "section 4.1" if not ten else f"figure {latency}, section 4.1"),
                limit=row["wire_us"], limit_text="the wire, with as many in flight", better="lower",
            )
        )  # fmt: skip
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    """Figures 4a to 4d, bandwidth and latency by the number of queues, and the effect of the host's costs."""
    found = {(r["pattern"], r["kind"], r["bytes"], r["queues"], r["depth"], r["cpu"]): r for r in rows}

    def ours(name: str, key: str, *places: tuple[Any, ...], of: str = "ours") -> dict[str, Any]:
        there = [found.get(place) for place in places]
        return {"name": name, "of": of, "y": [row and row[key] for row in there]}

    def by_size(pattern: str, kind: str, cpu: str = "polled") -> list[tuple[Any, ...]]:
        return [(pattern, kind, size, QUEUES, DEPTH, cpu) for size in SIZES]

    shape = f"{QUEUES} queues of depth {DEPTH}"
    sizes: PlotOptions = {"x": [label(size) for size in SIZES], "x_label": "size of a command"}
    out = []
    for key, unit, published in (("gb_s", "GB/s", BANDWIDTH), ("mean_us", "us", LATENCY)):
        what = "bandwidth" if key == "gb_s" else "mean latency"
        for pattern in dict.fromkeys(row["pattern"] for row in rows):
            series = []
            for kind in ("read", "write"):
                paper = [published.get((pattern, kind, size), (None,))[0] for size in SIZES]
                series.append(ours(f"{kind}s", key, *by_size(pattern, kind)))
                series.append({"name": f"{kind}s, OpenExpress", "of": "paper", "y": paper})
            if key == "gb_s":
                series.append(ours("the wire, reads", "wire_gb_s", *by_size(pattern, "read"), of="limit"))
            number = PANELS[pattern][key != "gb_s"]
            title = f"Figure {number}: {what}, {pattern}, {shape}"
            out.append(plot(title, series=series, y_label=f"{unit}, simulated", **sizes))
    queues = sorted({row["queues"] for row in rows})
    for key, unit, what in (("gb_s", "GB/s", "Bandwidth"), ("mean_us", "us", "Mean latency")):
        series = [
            ours(f"{kind}s of {label(size)}", key, *(("random", kind, size, n, DEPTH, "polled") for n in queues))
            for kind in ("read", "write")
            for size in (SIZES[0], SIZES[-1])
        ]
        title = f"{what} by the number of queues, random, depth {DEPTH}"
        out.append(plot(title, queues, series, x_label="queues", y_label=f"{unit}, simulated"))
    if any(row["cpu"] == "kernel" for row in rows):
        series = [
            ours(f"{kind}s, {host}", "gb_s", *by_size("random", kind, cpu))
            for cpu, host in (("polled", "polled"), ("kernel", "kernel's costs"))
            for kind in ("read", "write")
        ]
        out.append(plot(f"Bandwidth by the host, random, {shape}", series=series, y_label="GB/s, simulated", **sizes))
    return out


EXPERIMENT = Experiment(
    name="openexpress_fig4",
    title="Bandwidth and latency of NVMe by size and number of queues",
    source="OpenExpress (M. Jung, USENIX ATC 2020), figure 4 and section 4.1",
    text=(
        "Reads and writes of 4 to 32 KiB, sequential and random, with 1 to 10 queues of depth 8, DRAM timing.",
        "The paper ran fio in ten threads, through the Linux kernel, on an FPGA with PCIe Gen3 and four channels of "
        "DDR4; it states no number of lanes. Ours is simulated, with PCIe Gen3 x8 and two channels.",
        "Our host polls: a driver in user space with a core for each queue, 40 ns to place a command, 30 ns to reap "
        "one, no interrupts, no kernel. That favours ours, most of all at 4 KiB and at depth 1. The paper's "
        "figures include the time of fio and the kernel, ten threads on eight cores, and it does not say how much "
        "that is. So random accesses are also measured with the costs of a kernel and of interrupts: 900 ns to place "
        "a command, 500 ns to reap one, 1500 ns from an interrupt to its handler. Those are round numbers of the "
        "order of Linux, not measured on the paper's machine. The time of fio is in neither.",
        "The limit is the rate of the wire after headers, entries, doorbells and acknowledgements; for latency "
        "it is the time that as many commands in flight take at that rate. Reaping several completions with one "
        "doorbell can raise a run slightly above it. At start and end of a run fewer commands are in flight, which "
        "lowers mean latencies some percent below it, in quick runs more than in full ones.",
    ),
    quick={"queues": [1, 10], "patterns": ["sequential", "random"], "bytes_moved": 3 << 20, "turns": 6},
    full={
        "queues": [1, 2, 4, 6, 8, 10], "patterns": ["sequential", "random"], "bytes_moved": 24 << 20, "turns": 20,
    },
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
)  # fmt: skip
