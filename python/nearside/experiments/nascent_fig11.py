# SPDX-License-Identifier: Apache-2.0
"""NASCENT, figure 11: decoding and sorting a column of 8-bit keys, with values of 32 and of 64 bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearside import kernels, platforms
from nearside.experiments import nascent
from nearside.experiments.registry import Experiment, Row, Run, figure, plot

MIB = kernels.MIB


def cases(run: Run) -> list[dict[str, Any]]:
    return [{"count": count, "value": value} for count in run.parameters["counts"] for value in (32, 64)]


def measure(run: Run, case: dict[str, Any]) -> Row:
    device, local = nascent.device(run)
    count, size = case["count"], case["value"] // 8
    elapsed = kernels.decode(device, 8, size, count, 0, local, run.seed)
    # The decoded column, which is in the memory, is sorted.
    values = np.frombuffer(device.pm_read(local, count * size), f"u{size}")
    sorted_ = kernels.sort(device, values, local, local + 256 * MIB, stored=True, seed=run.seed)
    bounds = kernels.sort_bounds(device.design, count, size, 1)
    link = (elapsed["key_bytes"] + elapsed["dictionary_bytes"]) / platforms.SSD_GB_S
    return {**case, "decode_ns": elapsed["ns"], "sort_ns": sorted_.ns, "link_ns": link, "bound_ns": sum(bounds)}


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for row in rows:
        what = f"{nascent.count_name(row['count'])} values of {row['value']} bits"
        name = f"{nascent.count_name(row['count'])}_{row['value']}"
        out += [
            figure(f"{name}.decode", f"decoding: {what}", row["decode_ns"] / 1e6, "ms", better="lower",
                   limit=row["link_ns"] / 1e6, limit_text="the link of 3 GB/s"),
            figure(f"{name}.sort", f"sorting: {what}", row["sort_ns"] / 1e6, "ms", better="lower",
                   limit=row["bound_ns"] / 1e6, limit_text="memory with ideal masters, 8 keys a cycle in each pass"),
        ]  # fmt: skip
        narrow = [r for r in rows if (r["count"], r["value"]) == (row["count"], 32)]
        if row["value"] == 64 and narrow:
            ratio = (row["decode_ns"] + row["sort_ns"]) / (narrow[0]["decode_ns"] + narrow[0]["sort_ns"])
            out.append(
                figure(f"{name}.penalty", f"time of 64 bits by that of 32: {what}", ratio, "x", better="lower",
                       paper_text="the same up to 64K values, slightly slower above", source="section 4.2")
            )  # fmt: skip
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    counts = list(dict.fromkeys(row["count"] for row in rows))
    found = {(row["count"], row["value"]): row for row in rows}
    series = []
    for value in (32, 64):
        for key, what in (("decode_ns", "decoding"), ("sort_ns", "sorting")):
            there = [found.get((count, value)) for count in counts]
            y = [row and row[key] / 1e6 for row in there]
            series.append({"name": f"{what}, {value} bits", "of": "ours", "y": y})
    labels = [nascent.count_name(count) for count in counts]
    title = "Figure 11: time to decode and to sort a column of 8-bit keys"
    return [plot(title, labels, series, x_label="values", y_label="ms, simulated", log=True)]


EXPERIMENT = Experiment(
    name="nascent_fig11",
    title="Decoding and sorting values of 32 and of 64 bits",
    source=f"{nascent.TITLE}, figure 11",
    text=(
        "A column of 8-bit keys is decoded from flash to the device's memory, to values of 32 and of 64 bits, and "
        "these are sorted there with their indexes. There are 256 different values, as of any 8-bit keys.",
        nascent.DEVICE_TEXT,
        "The paper shows its times in a figure with a logarithmic axis and states none of them as a number.",
        "A record of 64 bits is 16 bytes with its index, one of 32 bits 8: each pass moves up to twice the bytes.",
    ),
    quick={"counts": [1000, 64_000, 256_000]},
    full={"counts": [1000, 8000, 64_000, 128_000, 256_000, 1_000_000, 4_000_000]},
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast", "rtl"),
    design="smartssd",
)
