# SPDX-License-Identifier: Apache-2.0
"""NASCENT, figures 8 and 9: sorting a column of 32-bit keys, from memory and from flash, beside a CPU."""

from __future__ import annotations

from typing import Any

from nearside import baselines, kernels, platforms
from nearside._native import ONE_PASS_KEYS
from nearside.experiments import nascent
from nearside.experiments.registry import Experiment, Row, Run, figure, from_paper, plot

# Section 4.2: speed-up over the CPU's quick sort, and energy ratio, where stated as numbers.
FASTER = {
    "memory": {128_000: 7.5, 256_000: 2.4, 1_000_000: 1.8, 8_000_000: 1.8},
    "flash": {1000: 6.6, 8_000_000: 8.25},
}
LESS = {
    "memory": {1000: 61.3, 1_000_000: 13.6, 8_000_000: 13.6},
    "flash": {1000: 49.7, 8_000_000: 61.6},
}
FIGURE = {"memory": "figure 8", "flash": "figure 9"}
MIB = kernels.MIB


def cases(run: Run) -> list[dict[str, Any]]:
    return [{"place": place, "count": n} for n in run.parameters["counts"] for place in ("memory", "flash")]


def measure(run: Run, case: dict[str, Any]) -> Row:
    device, local = nascent.device(run)
    count = case["count"]
    keys = kernels.random_keys(count, 32, run.seed)
    source = local if case["place"] == "memory" else 64 * MIB
    elapsed = kernels.sort(device, keys, source, local + 64 * MIB, seed=run.seed)
    # Keys that fit on the chip are not merged.
    pairs = elapsed if count <= ONE_PASS_KEYS else kernels.sort(
        device, keys, source, local + 64 * MIB, pairs=True, stored=True, seed=run.seed
    )  # fmt: skip
    bounds = kernels.sort_bounds(device.design, count, 4, 1)
    load = keys.nbytes / platforms.SSD_GB_S if case["place"] == "flash" else 0.0
    bounds[0] = max(bounds[0], load)
    sorts = nascent.cpu_sorts(run, count)
    cpu = {name: ns + load for name, ns in sorts.items()}
    cores = max(load, min(baselines.core_ns(sorts).values()) / platforms.CPU_CORES)
    ours = {"ns": elapsed.ns, "passes": elapsed.passes, "pairs_ns": pairs.ns, "bound_ns": sum(bounds)}
    return {**case, **ours, "cpu_ns": cpu, "cores_ns": cores, **nascent.cpu_parts()}


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for row in rows:
        place, count, ns, cpu = row["place"], row["count"], row["ns"], row["cpu_ns"]
        what, name = f"{nascent.count_name(count)} keys from {place}", f"{place}_{nascent.count_name(count)}"
        best = nascent.fastest(cpu)
        source = f"{FIGURE[place]}, section 4.2"
        faster, less = FASTER[place].get(count), LESS[place].get(count)
        plain = cpu[baselines.PLAIN]
        out += [
            figure(f"{name}.time", f"time: {what}", ns / 1e6, "ms", better="lower", limit=row["bound_ns"] / 1e6,
                   limit_text="memory and link with ideal masters, 8 keys a cycle in each pass"),
            figure(f"{name}.pairs", f"times faster than with chunks merged in pairs, as the paper's: {what}",
                   row["pairs_ns"] / ns, "x"),
            figure(f"{name}.cores", f"times faster than {platforms.CPU_CORES} cores, if these share the least work of "
                   f"one evenly, and keys come in parallel: {what}", row["cores_ns"] / ns, "x", time=nascent.RATIO),
            figure(f"{name}.plain", f"times faster than the plain quick sort: {what}", plain / ns, "x",
                   **from_paper(faster, source), time=nascent.RATIO),
            figure(f"{name}.best", f"times faster than {row['cpu_sorts'][best]}: {what}", cpu[best] / ns, "x",
                   time=nascent.RATIO),
            figure(f"{name}.energy", f"energy, times less than the plain quick sort, the paper's "
                   f"{platforms.CPU_W:g} and {platforms.SMARTSSD_W:g} W times this machine's and simulated seconds, "
                   f"no power is measured: {what}",
                   platforms.joules(platforms.CPU_W, plain) / platforms.joules(platforms.SMARTSSD_W, ns), "x",
                   **from_paper(less, source), time=nascent.RATIO),
        ]  # fmt: skip
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for place in dict.fromkeys(row["place"] for row in rows):
        part = [row for row in rows if row["place"] == place]
        names = list(part[0]["cpu_ns"])
        series = [{"name": "smartssd, simulated", "of": "ours", "y": [row["ns"] / 1e6 for row in part]}]
        series.append({"name": "merged in pairs", "of": "ours", "y": [row["pairs_ns"] / 1e6 for row in part]})
        cores = {"name": f"{platforms.CPU_CORES} cores", "of": "ours", "y": [row["cores_ns"] / 1e6 for row in part]}
        series.append(cores)
        series += [
            {"name": name, "of": "ours", "y": [row["cpu_ns"].get(name, 0) / 1e6 for row in part]} for name in names
        ]
        series.append({"name": "bound", "of": "limit", "y": [row["bound_ns"] / 1e6 for row in part]})
        title = f"{FIGURE[place].capitalize()}: time to sort keys from {place}"
        labels = [nascent.count_name(row["count"]) for row in part]
        out.append(plot(title, labels, series, x_label="keys", y_label="ms", log=True))
    return out


EXPERIMENT = Experiment(
    name="nascent_fig8",
    title="Sorting a column near storage and on a CPU",
    source=f"{nascent.TITLE}, figure 8 and figure 9",
    text=(
        "Random keys of 32 bits with their indexes, in order, from the device's memory and from its flash into its "
        "memory.",
        nascent.DEVICE_TEXT,
        nascent.CPU_TEXT,
        "From flash the CPU gets its keys over a link of 3 GB/s, too, before it starts.",
        f"The paper's CPU has {platforms.CPU_CORES} cores. That multiple of the speed of one core, with the sort of "
        "the least core time, is shown as a bound of a CPU.",
        "Energies combine the paper's watts with our times. The device has 7.5 W, which the paper states; the CPU has "
        "56.3 W, from its ratios of energies and times. No power was measured on this machine.",
        "One pass sorts 128 Ki keys, as in the paper. Longer columns are merged 64 chunks at a time, and for "
        "comparison two at a time, which is the paper's scheme as far as it is described.",
        "The time of a single small sort is mostly that of the host, which starts it and "
        "polls each microsecond for its end.",
    ),
    quick={"counts": [1000, 128_000, 256_000, 1_000_000]},
    full={"counts": [1000, 8000, 32_000, 128_000, 256_000, 512_000, 1_000_000, 2_000_000, 8_000_000]},
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast", "rtl"),
    design="smartssd",
)
