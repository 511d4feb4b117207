"""NVMulator, figure 6: latency of single 64-byte accesses to emulated Optane memory."""

from __future__ import annotations

from typing import Any

from nearside.accuracy import Bench
from nearside.experiments.registry import Experiment, Row, Run, figure, plot

# Section 4.1: the latencies of Optane that figure 6 compares with (its reference 11), and how far NVMulator is off.
TARGET_NS = {"read": 305.0, "write": 94.0}
PAPER_ERROR_PERCENT = {"read": 0.62, "write": 1.7}


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"kind": kind, "samples": parameters["samples"]} for kind in TARGET_NS]


def measure(run: Run, case: dict[str, Any]) -> Row:
    """Random accesses, one at a time, at the ports of nvm_delay."""
    bench = run.once("bench", lambda: Bench(run.design, run.build))
    kind = case["kind"]
    row = bench.measure(kind, TARGET_NS[kind], case["samples"], run.seed)
    keys = ("mean_ns", "min_ns", "max_ns", "mean_error_percent", "max_error_clocks", "late")
    return {"kind": kind, "target_ns": TARGET_NS[kind], "samples": case["samples"], **{key: row[key] for key in keys}}


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for row in rows:
        kind, what = row["kind"], f"random 64-byte {row['kind']}s, one at a time"
        off = PAPER_ERROR_PERCENT[kind]
        out.append(
            figure(
                f"{kind}.latency", f"mean latency: {what}", row["mean_ns"], "ns", paper_text=f"target ± {off} %",
                source="figure 6, section 4.1", limit=row["target_ns"], limit_text="Optane, the target",
                better="equal",
            )
        )  # fmt: skip
        out.append(
            figure(
                f"{kind}.error", f"error of the mean: {what}", row["mean_error_percent"], "%", paper=off,
                source="section 4.1", limit=0.0, limit_text="no error", better="lower",
            )
        )  # fmt: skip
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    x = [f"{row['kind']}s" for row in rows]
    latency = [
        {"name": "Optane, the target", "of": "limit", "y": [row["target_ns"] for row in rows]},
        {"name": "Nearside", "of": "ours", "y": [row["mean_ns"] for row in rows]},
    ]
    error = [
        {"name": "NVMulator", "of": "paper", "y": [PAPER_ERROR_PERCENT[row["kind"]] for row in rows]},
        {"name": "Nearside", "of": "ours", "y": [row["mean_error_percent"] or None for row in rows]},
    ]
    return [
        plot("Latency of 64-byte accesses", x, latency, kind="bars", x_label="", y_label="ns, simulated"),
        plot("Error of the mean latency", x, error, kind="bars", log=True, x_label="", y_label="%"),
    ]


EXPERIMENT = Experiment(
    name="nvmulator_fig6",
    title="Latency of cache lines of emulated Optane memory",
    source="NVMulator (Tamimi et al., 2023), figure 6 and section 4.1",
    text=(
        "Single 64-byte reads and writes at random addresses of DDR4 behind `nvm_delay`, with the targets of the "
        "paper: 305 ns and 94 ns, which others have measured for Optane memory.",
        "The paper measured with a logic analyser in the FPGA; we measure at the ports of the block, at 250 MHz, in "
        "simulation. It states by how much it is off, not to which side.",
        "`nvm_delay` gets its targets in fractions of a clock and spreads them over accesses: the mean is exact where "
        "a single access is off by less than a clock.",
    ),
    quick={"samples": 1000},
    full={"samples": 20_000},
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    engines=("rtl",),
)
