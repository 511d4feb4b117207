# SPDX-License-Identifier: Apache-2.0
"""NearPM: transactions by units, threads and devices."""

from __future__ import annotations

from typing import Any

from nearside.experiments import nearpm
from nearside.experiments.registry import Experiment, Row, Run, figure, plot


def cases(run: Run) -> list[tuple[int, int, int]]:
    """Units of each device, threads, devices: all units with all threads, and all devices with all threads."""
    units, threads, devices = (run.parameters[name] for name in ("units", "threads", "devices"))
    own = run.parameters["own_units"]
    grid = [(count, thread, 1) for count in units for thread in threads]
    return grid + [(own, thread, count) for count in devices if count > 1 for thread in threads]


def measure(run: Run, case: tuple[int, int, int]) -> Row:
    units, threads, devices = case
    of = nearpm.design(run, more=nearpm.units(units))
    return {"units": units, "threads": threads, "devices": devices} | nearpm.rates(run, of, threads, devices)


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for row in rows:
        shape = f"{row['units']} units, {row['threads']} threads, {row['devices']} devices"
        for mechanism in nearpm.PAPER_MECHANISMS:
            name = f"{mechanism}.{row['units']}.{row['threads']}.{row['devices']}"
            what = f"{mechanism}, {shape}"
            out.append(figure(f"{name}.speed_up", f"{what}: speed-up", row[mechanism], "x"))
            rate = f"{what}: transactions a microsecond, offloaded"
            out.append(figure(f"{name}.rate", rate, row[f"{mechanism}_per_us"], "1/us"))
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    """A plot of each mechanism: the rate by threads, a line for each number of units and devices."""
    threads = sorted({row["threads"] for row in rows})
    shapes = list(dict.fromkeys((row["units"], row["devices"]) for row in rows))
    rates = {(row["units"], row["devices"], row["threads"]): row for row in rows}
    out = []
    for mechanism in nearpm.PAPER_MECHANISMS:

        def line(units: int, devices: int, key: str) -> list[float | None]:
            return [rates.get((units, devices, count), {}).get(key) for count in threads]

        series = [
            {
                "name": f"{units} units" if devices == 1 else f"{devices} devices of {units}",
                "of": "ours",
                "y": line(units, devices, f"{mechanism}_per_us"),
            }
            for units, devices in shapes
        ]
        series.append({"name": "CPUs", "of": "limit", "y": line(*shapes[0], f"{mechanism}_cpu_per_us")})
        y_label = "transactions a microsecond, simulated"
        out.append(plot(f"Scaling: {mechanism}", threads, series, x_label="threads", y_label=y_label))
    return out


EXPERIMENT = Experiment(
    name="nearpm_scaling",
    title="Scaling by units, threads and devices",
    source=f"{nearpm.TITLE}, figure 19 and figure 20",
    text=(
        "Insertions into B-trees as in figure 20, durable, without other computation, each thread with a private pool "
        "and tree; pools over several devices are in stripes of 4 KiB. Speed-ups are over as many CPUs alone.",
        nearpm.RUNS_TEXT,
        "Design nearpm: the default device, two channels, 250 MHz. The paper scales threads and units separately, and "
        "has two devices at most.",
    ),
    quick={
        "runs": nearpm.QUICK_RUNS,
        "inserts": 60,
        "units": [4],
        "own_units": 4,
        "threads": [1, 4],
        "devices": [1, 2],
    },
    full={
        "runs": nearpm.QUICK_RUNS,
        "inserts": 400,
        "units": [1, 2, 4, 8, 16],
        "own_units": 4,
        "threads": [1, 2, 4, 8, 16],
        "devices": [1, 2, 4],
    },
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast",),
    design="nearpm",
)  # fmt: skip
