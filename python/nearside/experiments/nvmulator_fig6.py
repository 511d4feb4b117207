# SPDX-License-Identifier: Apache-2.0
"""NVMulator, figure 6: latency of single 64-byte accesses to emulated Optane memory."""

from __future__ import annotations

from typing import Any

from nearside.accuracy import DelayBench
from nearside.experiments.registry import Experiment, PlotOptions, Row, Run, figure, plot

# Section 4.1: the latencies of Optane that figure 6 compares with (its reference 11), and
# NVMulator's errors.
TARGET_NS = {"read": 305.0, "write": 94.0}
PAPER_ERROR_PERCENT = {"read": 0.62, "write": 1.7}


# Places of the measurement: the ports of the block alone, or the whole device by the block's
# counters.
PORTS, DEVICE = "ports", "device"


def cases(run: Run) -> list[dict[str, Any]]:
    places = (PORTS, DEVICE) if run.model == "rtl" else (DEVICE,)
    samples = run.parameters["samples"]
    return [{"at": place, "kind": kind, "samples": samples} for place in places for kind in TARGET_NS]


def measure(run: Run, case: dict[str, Any]) -> Row:
    """Random accesses of 64 bytes, and the latency from nvm_delay."""
    target = TARGET_NS[case["kind"]]
    found = (at_ports if case["at"] == PORTS else in_device)(run, case["kind"], target, case["samples"])
    error = 100 * abs(found["mean_ns"] - target) / target
    return {**case, "target_ns": target, **found, "mean_error_percent": error}


def at_ports(run: Run, kind: str, target: float, samples: int) -> Row:
    """Single accesses, timed at the ports of the block."""
    bench = run.once("bench", lambda: DelayBench(run.required_design, run.build))
    row = bench.measure(kind, target, samples, run.seed)
    return {key: row[key] for key in ("mean_ns", "min_ns", "max_ns", "late")}


def in_device(run: Run, kind: str, target: float, samples: int) -> Row:
    """Loads and stores of the PM window; the counters have whole clocks."""
    device = run.device()
    device.delay_set_latency(TARGET_NS["read"], TARGET_NS["write"])
    device.delay_counters(clear=True)
    device.pm_stream("load" if kind == "read" else "store", in_flight=1, count=samples, seed=run.seed)
    channels = [channel["read"] if kind == "read" else channel["write"] for channel in device.delay_counters()]
    used: list[Any] = [c for c in channels if c["transactions"]]  # these have latencies
    count = sum(c["transactions"] for c in used)
    return {
        "mean_ns": sum(c["mean_ns"] * c["transactions"] for c in used) / count,
        "min_ns": min(c["min_ns"] for c in used),
        "max_ns": max(c["max_ns"] for c in used),
        "late": sum(c["late"] for c in used),
    }


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for row in rows:
        kind = row["kind"]
        where = "at the ports of nvm_delay" if row["at"] == PORTS else "in the whole device, by nvm_delay's counters"
        what = f"random 64-byte {kind}s, {where}"
        off = PAPER_ERROR_PERCENT[kind]
        out.append(
            figure(
                f"{row['at']}.{kind}.latency", f"mean latency: {what}", row["mean_ns"], "ns",
                paper_text=f"target ± {off} %", source="figure 6, section 4.1", limit=row["target_ns"],
                limit_text="Optane, the target", better="equal",
            )
        )  # fmt: skip
        out.append(
            figure(
                f"{row['at']}.{kind}.error", f"error of the mean: {what}", row["mean_error_percent"], "%", paper=off,
                source="section 4.1", limit=0.0, limit_text="no error", better="lower",
            )
        )  # fmt: skip
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    places = list(dict.fromkeys(row["at"] for row in rows))

    def ours(key: str) -> list[dict[str, Any]]:
        found = {(row["at"], row["kind"]): row[key] for row in rows}
        # An exact value has no place on a logarithmic axis.
        values = {place: [found.get((place, kind)) or None for kind in kinds] for place in places}
        return [{"name": f"Nearside, {place}", "of": "ours", "y": values[place]} for place in places]

    target = {"name": "Optane, the target", "of": "limit", "y": [TARGET_NS[kind] for kind in kinds]}
    theirs = {"name": "NVMulator", "of": "paper", "y": [PAPER_ERROR_PERCENT[kind] for kind in kinds]}
    x: PlotOptions = {"x": [f"{kind}s" for kind in kinds], "x_label": "", "kind": "bars"}
    return [
        plot("Latency of 64-byte accesses", series=[target, *ours("mean_ns")], y_label="ns, simulated", **x),
        plot("Error of the mean latency", series=[theirs, *ours("mean_error_percent")], y_label="%", log=True, **x),
    ]


EXPERIMENT = Experiment(
    name="nvmulator_fig6",
    title="Latency of cache lines of emulated Optane memory",
    source="NVMulator (Tamimi et al., 2023), figure 6 and section 4.1",
    text=(
        "64-byte reads and writes at random addresses of DDR4 through `nvm_delay`, with the targets of the paper: 305 "
        "ns and 94 ns, which others have measured for Optane memory.",
        "The paper measured single accesses with a logic analyser in the FPGA. We measure them at 250 MHz, in "
        "simulation: one at a time at the ports of the block alone, and in the whole device, where the block counts "
        "loads (one at a time) and posted stores (as they come) of the PM window in whole clocks.",
        "The paper states the size of its errors, not their sign.",
        "`nvm_delay` gets its targets in fractions of a clock and spreads them over accesses: the mean is exact where "
        "a single access is off by less than a clock.",
    ),
    quick={"samples": 1000},
    full={"samples": 20_000},
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
)
