# SPDX-License-Identifier: Apache-2.0
"""Experiments that repeat each case with other seeds: means, and standard deviations."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from nearside.device import MAX_U64
from nearside.experiments.registry import Row

# The parameter for the number of runs of each case. Experiments without it measure once, without a
# deviation.
RUNS = "runs"
# An additional column of rows in such experiments: the seed of the run.
SEED = "seed"
# The distance between seeds of runs, since threads of a run use consecutive seeds.
STEP = 1000


def seeds(seed: int, parameters: dict[str, Any]) -> list[int]:
    """The seeds of the runs of each case; the first is the requested one."""
    return [(seed + STEP * number) % (MAX_U64 + 1) for number in range(parameters.get(RUNS, 1))]


def _by_run(rows: list[Row]) -> list[list[Row]]:
    """The rows of each seed. An interrupted run lacks cases of the later seeds."""
    return [[row for row in rows if row[SEED] == seed] for seed in dict.fromkeys(row[SEED] for row in rows)]


def _deviation(values: list[float]) -> float | None:
    """The standard deviation of a sample."""
    return statistics.stdev(values) if len(values) > 1 else None


def figures(make: Callable[[list[Row]], list[dict[str, Any]]], rows: list[Row]) -> list[dict[str, Any]]:
    """Figures whose values are means over the runs, with their deviation."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for own in _by_run(rows):
        for one in make(own):
            runs.setdefault(one["name"], []).append(one)
    return [_figure(same) for same in runs.values()]


def _figure(runs: list[dict[str, Any]]) -> dict[str, Any]:
    first, values = runs[0], [one["value"] for one in runs]
    value = statistics.fmean(values)
    # Some limits are measured, too.
    limit = None if first["limit"] is None else statistics.fmean(one["limit"] for one in runs)
    return first | {
        "value": value, "deviation": _deviation(values), "runs": len(runs), "limit": limit,
        "ratio": value / first["paper"] if first["paper"] else None, "of_limit": value / limit if limit else None,
    }  # fmt: skip


def plots(make: Callable[[list[Row]], list[dict[str, Any]]], rows: list[Row]) -> list[dict[str, Any]]:
    """Plots of the means, with deviations of our values."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for own in _by_run(rows):
        for one in make(own):
            runs.setdefault(one["title"], []).append(one)
    # The first run has all cases.
    return [same[0] | {"series": [_series(series, same) for series in same[0]["series"]]} for same in runs.values()]


def _series(series: dict[str, Any], runs: list[dict[str, Any]]) -> dict[str, Any]:
    found: list[list[float]] = [[] for _ in series["y"]]
    places = {x: place for place, x in enumerate(runs[0]["x"])}
    for one in runs:
        # An interrupted run may have fewer of them.
        for own in (own for own in one["series"] if own["name"] == series["name"]):
            for x, value in zip(one["x"], own["y"], strict=True):
                if value is not None:
                    found[places[x]].append(value)
    means = {"y": [statistics.fmean(values) if values else None for values in found]}
    if series["of"] == "ours":
        means["deviation"] = [_deviation(values) for values in found]
    return series | means
