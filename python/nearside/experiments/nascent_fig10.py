# SPDX-License-Identifier: Apache-2.0
"""NASCENT, figure 10: decoding a dictionary-encoded column."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearside import baselines, ideal, kernels, platforms
from nearside.experiments import nascent
from nearside.experiments.registry import Experiment, Row, Run, figure, from_paper, plot

# Section 4.2.
PAPER = {(8, 64): 2.3}
WIDTHS = [(bits, value) for bits in (8, 16) for value in (16, 32, 64)]
MIB = kernels.MIB
NAND = "nand"


def cases(run: Run) -> list[dict[str, Any]]:
    """The paper's six cases, and one with the latency of ordinary flash."""
    six = [{"bits": bits, "value": value, "flash": nascent.FLASH} for bits, value in WIDTHS]
    return [*six, {"bits": 8, "value": 32, "flash": NAND}]


def measure(run: Run, case: dict[str, Any]) -> Row:
    device, local = nascent.device(run)
    device.delay_set(case["flash"])
    bits, value = case["bits"], case["value"]
    count = run.parameters["mib"] * MIB // (bits // 8)
    elapsed = kernels.decode(device, bits, value // 8, count, 0, local + 512 * MIB, run.seed)
    read = elapsed["key_bytes"] + elapsed["dictionary_bytes"]
    # The output is limited by the memory, or by the engine's port to it: a beat of 64 bytes a
    # cycle.
    lines = 32768
    values = ideal.LINE * lines / ideal.busy_ns(device.design, (), range(0, 64 * lines, 64))
    port = ideal.LINE * device.design.values["clock_mhz"] / 1e3
    limit = min(platforms.SSD_GB_S, min(values, port) * bits / value)
    rng = np.random.default_rng(run.seed)
    dictionary = rng.integers(0, 1 << value, 1 << bits, dtype=f"u{value // 8}")
    keys = rng.integers(0, 1 << bits, count, dtype=f"u{bits // 8}")
    cpu, library = baselines.decode(dictionary, keys)
    gb_s = read / elapsed["ns"]
    return {
        **case, "gb_s": gb_s, "total_gb_s": gb_s + elapsed["key_bytes"] * value / bits / elapsed["ns"],
        "limit_gb_s": limit,
        "cpu_gb_s": min(cpu, platforms.SSD_GB_S),
        "cores_gb_s": min(platforms.CPU_CORES * cpu, platforms.SSD_GB_S),
        "cpu": baselines.cpu(), "cpu_library": library,
    }  # fmt: skip


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for row in rows:
        bits, value, slow = row["bits"], row["value"], row["flash"] == NAND
        what = f"{bits}-bit keys to {value} bits" + (", flash of 60 us" if slow else "")
        name = f"{bits}_{value}" + (".nand" if slow else "")
        paper = None if slow else PAPER.get((bits, value), 3.0)
        out += [
            figure(f"{name}.input", f"bytes read from flash a second: {what}", row["gb_s"], "GB/s",
                   **from_paper(paper, "figure 10, section 4.2"), limit=row["limit_gb_s"],
                   limit_text="the link of 3 GB/s, or writing the values"),
            figure(f"{name}.total", f"the same with the output: {what}", row["total_gb_s"], "GB/s"),
            figure(f"{name}.cpu", f"one thread of the CPU, the faster of numpy and pyarrow: {what}",
                   row["cpu_gb_s"], "GB/s", limit=3.0, limit_text="the same link", time="CPU time"),
            figure(f"{name}.cores", f"{platforms.CPU_CORES} cores, as many as the paper's CPU has, sharing it evenly: "
                   f"{what}", row["cores_gb_s"], "GB/s", limit=3.0, limit_text="the same link", time="CPU time"),
        ]  # fmt: skip
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    six = [row for row in rows if row["flash"] != NAND]
    paper = [PAPER.get((row["bits"], row["value"]), 3.0) for row in six]
    series = [
        {"name": "smartssd, simulated", "of": "ours", "y": [row["gb_s"] for row in six]},
        {"name": "NASCENT", "of": "paper", "y": paper},
        {"name": "one thread of the CPU", "of": "ours", "y": [row["cpu_gb_s"] for row in six]},
        {"name": "six cores", "of": "ours", "y": [row["cores_gb_s"] for row in six]},
        {"name": "limit", "of": "limit", "y": [row["limit_gb_s"] for row in six]},
    ]
    labels = [f"{row['bits']} to {row['value']}" for row in six]
    title = "Figure 10: bytes of keys read from flash a second"
    return [plot(title, labels, series, x_label="bits of a key, of a value", y_label="GB/s", kind="bars")]


EXPERIMENT = Experiment(
    name="nascent_fig10",
    title="Decoding dictionaries at the rate of the flash",
    source=f"{nascent.TITLE}, figure 10",
    text=(
        "Random keys of 8 and 16 bits and a full dictionary from flash to values of 16, 32 and 64 bits in the "
        "device's memory, by one engine. The dictionary counts as input.",
        f"{nascent.DEVICE_TEXT} With 60 us, as in nand, the 64 KiB that an engine has in flight give 1 GB/s: the last "
        "row.",
        "The paper writes the keys to the device's memory first; ours are decoded as they come.",
        "The fast model takes 10 percent longer for 8 to 64 bits than the RTL does (2.0 and 2.2 GB/s).",
        "The CPU decodes from its memory, with one thread and the faster of numpy and pyarrow. It is shown with at "
        "most 3 GB/s, the link's rate, at which it equals an engine. Beside it are six cores, as many as the paper's "
        "CPU has, if they share the work evenly.",
    ),
    quick={"mib": 4},
    full={"mib": 32},
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast", "rtl"),
    design="smartssd",
)  # fmt: skip
