# SPDX-License-Identifier: Apache-2.0
"""The definition of an experiment, and the list of all."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypedDict

from nearside._native import NearsideError
from nearside.device import BuildProgress, Design, Device
from nearside.experiments import models
from nearside.renamed import former, renamed

Row = dict[str, Any]


@renamed(engine="model")
class Run:
    """The context of a run's measurements: model, seed, parameters, design, and shared devices."""

    def __init__(
        self,
        model: str = "rtl",
        quick: bool = False,
        seed: int = 1,
        parameters: dict[str, Any] | None = None,
        design: Design | None = None,
        build: BuildProgress | None = None,
    ) -> None:
        self.model = model
        self.quick = quick
        self.seed = seed
        self.parameters = parameters or {}
        self.design = design
        self.build = build
        self._kept: dict[Any, Any] = {}
        self._devices = ExitStack()

    engine = former("engine", "model")

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *failure: Any) -> None:
        """Shuts the devices down."""
        self._devices.__exit__(*failure)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """The result of `make`, which is called once in this run."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    @property
    def required_design(self) -> Design:
        """The design; an error without one."""
        if self.design is None:
            raise NearsideError("this experiment names no design, so it has no device")
        return self.design

    def device(self, profile: str = "dram", values: str = "") -> Device:
        """A device of the design with this media profile; `values` is TOML that overrides the design."""

        def start() -> Device:
            device = models.open_device(self.required_design.with_values(values), self.model, self.build)
            return self._devices.enter_context(device)

        device = self.once(("device", values), start)
        device.delay_set(profile)
        return device


@renamed(engines="models")
@dataclass(frozen=True)
class Experiment:
    """A figure or a table of a paper, measured here.

    `cases` lists what a run measures, by its parameters and model; `measure` makes a row of each.
    `figures` and `plots` make the report's content from the rows, of which an interrupted run has
    only some. With `runs` among its parameters each case is measured several times, with different
    seeds: see `repeat`.
    """

    name: str
    title: str
    source: str
    text: tuple[str, ...]
    quick: dict[str, Any]
    full: dict[str, Any]
    cases: Callable[[Run], Sequence[Any]] = field(repr=False)
    measure: Callable[[Run, Any], Row] = field(repr=False)
    figures: Callable[[list[Row]], list[dict[str, Any]]] = field(repr=False)
    plots: Callable[[list[Row]], list[dict[str, Any]]] = field(repr=False)
    models: tuple[str, ...] = ("rtl", "fast")
    design: str | None = "default"
    time: str = "simulated"

    def parameters(self, quick: bool) -> dict[str, Any]:
        return self.quick if quick else self.full

    def check(self, model: str) -> None:
        """Refuses a model that can't run this experiment."""
        models.check(model)
        if model not in self.models:
            raise NearsideError(f"{self.name}: can't be done with the model {model}, only with {self.models_text}")

    @property
    def models_text(self) -> str:
        return " or ".join(self.models)


class FigureOptions(TypedDict, total=False):
    """Keyword arguments of `figure` that several figures share."""

    paper: float | None
    source: str | None


class PlotOptions(TypedDict, total=False):
    """Keyword arguments of `plot` that several plots share."""

    x: Sequence[Any]
    x_label: str
    kind: str


def from_paper(paper: float | None, source: str) -> FigureOptions:
    """The paper's value with its place there, which a figure without a value does not have."""
    return {"paper": paper, "source": None if paper is None else source}


def figure(
    name: str,
    text: str,
    value: float,
    unit: str,
    *,
    paper: float | None = None,
    paper_text: str | None = None,
    source: str | None = None,
    limit: float | None = None,
    limit_text: str | None = None,
    better: str = "higher",
    time: str = "simulated",
) -> dict[str, Any]:
    """A figure: ours, the paper's with its place there, and the limit, in the same unit.

    `ratio` is ours divided by the paper's, `of_limit` ours divided by the limit. With several
    `runs`, `value` is their mean and `deviation` their standard deviation. `better` is "higher",
    "lower", or "equal" where the limit is a target.
    """
    if better not in ("higher", "lower", "equal"):
        raise ValueError(f"better = {better!r}")
    return {
        "name": name,
        "text": text,
        "value": value,
        "unit": unit,
        "time": time,
        "better": better,
        "paper": paper,
        "paper_text": paper_text,
        "source": source,
        "limit": limit,
        "limit_text": limit_text,
        "ratio": value / paper if paper else None,
        "of_limit": value / limit if limit else None,
        "deviation": None,
        "runs": 1,
    }


def plot(
    title: str,
    x: Sequence[Any],
    series: Sequence[dict[str, Any]],
    *,
    x_label: str,
    y_label: str,
    kind: str = "lines",
    log: bool = False,
    floor: float = 0.0,
) -> dict[str, Any]:
    """A plot as data: "lines" or "bars" over the categories `x`.

    The axis begins at `floor`, unless it is logarithmic. Each of the series has a `name`, values
    `y` (with None for gaps), and `of`: "ours", "paper" or "limit". Means of several runs have a
    `deviation` for each of `y`.
    """
    if kind not in ("lines", "bars"):
        raise ValueError(f"kind = {kind!r}")
    places = {"x": [str(value) for value in x], "x_label": x_label, "y_label": y_label}
    return {"title": title, "kind": kind, "log": log, "floor": floor, **places, "series": list(series)}


def natural(name: str) -> list[Any]:
    """A key that sorts fig10 after fig9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def all_experiments() -> dict[str, Experiment]:
    """All experiments by name: those of the modules of this package that define EXPERIMENT."""
    package = importlib.import_module("nearside.experiments")
    modules = [importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    found: dict[str, Experiment] = {}
    for module in modules:
        experiment = getattr(module, "EXPERIMENT", None)
        if experiment is None:
            continue
        if experiment.name in found:
            raise ValueError(f"two experiments are called {experiment.name}")
        found[experiment.name] = experiment
    return {name: found[name] for name in sorted(found, key=natural)}


def find(name: str) -> Experiment:
    """The experiment of this name; otherwise a one-line error suggests a similar name."""
    experiments = all_experiments()
    if name not in experiments:
        close = get_close_matches(name, experiments, 1, 0.5)
        hint = f"; did you mean {close[0]}?" if close else "; `nearside experiment list` shows all"
        raise NearsideError(f"no experiment is called {name!r}{hint}")
    return experiments[name]
