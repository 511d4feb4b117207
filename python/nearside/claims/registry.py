# SPDX-License-Identifier: Apache-2.0
"""The definition of a claim, and the list of all claims."""

from __future__ import annotations

import fnmatch
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nearside._native import NearsideError

MODULES = (
    "nvm_delay",
    "area",
    "nvme",
    "fuzz",
    "wire",
    "dram",
    "pm",
    "engines",
    "nearpm",
    "nearpm_modes",
    "sort",
    "rtl",
    "fast",
    "guest_nvmulator",
)


@dataclass(frozen=True)
class Bound:
    """The limit of a value."""

    sign: str
    limit: float

    def holds(self, value: float) -> bool:
        return value <= self.limit if self.sign == "<=" else value >= self.limit

    def __str__(self) -> str:
        return f"{self.sign} {self.limit:g}"


def at_most(limit: float) -> Bound:
    return Bound("<=", limit)


def at_least(limit: float) -> Bound:
    return Bound(">=", limit)


@dataclass(frozen=True)
class Measured:
    """A value with an explanation."""

    value: float
    detail: str = ""


class Context:
    """The context of a measurement: whether it is quick, the seed, and results of other claims.

    Claims that come out of one run share it: `context.once(key, f)` runs `f` for the first of them.
    """

    def __init__(self, quick: bool = False, seed: int = 1, progress: Callable[[int, int], None] | None = None) -> None:
        self.quick = quick
        self.seed = seed
        self.progress = progress
        self._cache: dict[Any, Any] = {}

    def once(self, key: Any, measure: Callable[[], Any]) -> Any:
        if key not in self._cache:
            try:
                self._cache[key] = measure()
            except Exception as error:
                self._cache[key] = error
        if isinstance(self._cache[key], Exception):
            raise self._cache[key]
        return self._cache[key]

    def forget_devices(self) -> None:
        """Discards shared devices after a failure, as they may no longer work."""
        self._cache = {key: value for key, value in self._cache.items() if key[:1] != ("device",)}

    def commands(self, full: int) -> int:
        """The number of commands: `full`, or a quarter of it in a quick run."""
        return max(full // 4, 1) if self.quick else full

    def device(self, profile: str = "dram", design: str = "", **options: Any) -> Any:
        """A device of the default design with this profile, shared by claims that give the same
        options.

        `design` is TOML text that overrides values of the default design.
        """
        from nearside.device import Design, Device

        def start() -> Device:
            return Device(Design.load("default").with_values(design), **options)

        device = self.once(("device", design, *options.items()), start)
        device.delay_set(profile)
        return device


@dataclass(frozen=True)
class Published:
    """A paper's figure beside a claim.

    `value` is the figure in the claim's unit, or None if the paper states no comparable number.
    `text` is the figure as shown, `source` its place in the paper. `differs` says how the paper's
    measurement differs from ours: clocks, baseline, host, subset. It is never empty; if nothing
    differs it says so.
    """

    text: str
    source: str
    differs: str
    value: float | None = None

    def __str__(self) -> str:
        return f"{self.text} ({self.source})"


# Published figures are rounded: a value that is worse by this part still reaches them.
ROUNDED = 0.005


@dataclass(frozen=True)
class Claim:
    """A figure that the project states.

    `clocks` says what is compared: the events at which the clock of each side starts and stops, and
    the other side. Ratios of two times, and claims beside a paper's figure, have it.
    """

    name: str
    unit: str
    bound: Bound
    text: str
    measure: Callable[[Context], float | Measured] = field(repr=False)
    paper: Published | None = None
    clocks: str = ""
    time: str = "simulated"
    model: str = "rtl"
    quick: bool = True
    quick_bound: Bound | None = None

    def bound_of(self, quick: bool) -> Bound:
        """The bound of a run: quick runs do less, so counts have another bound there."""
        return self.quick_bound or self.bound if quick else self.bound

    def reaches(self, value: float) -> bool | None:
        """Whether a value is as good as the paper's figure; None without one. The bound says which way is better."""
        if self.paper is None or self.paper.value is None:
            return None
        if self.bound.sign == "<=":
            return value <= self.paper.value * (1 + ROUNDED)
        return value >= self.paper.value * (1 - ROUNDED)


_claims: dict[str, Claim] = {}


def claim(
    name: str, unit: str, bound: Bound, text: str, paper: Published | None = None, **options: Any
) -> Callable[[Callable[[Context], float | Measured]], Callable[[Context], float | Measured]]:
    """Registers a measurement as a claim. Options are the further fields of `Claim`."""

    def register(measure: Callable[[Context], float | Measured]) -> Callable[[Context], float | Measured]:
        if name in _claims:
            raise ValueError(f"two claims are called {name}")
        _claims[name] = Claim(name, unit, bound, text, measure, paper, **options)
        return measure

    return register


def all_claims() -> dict[str, Claim]:
    """All claims by name, in the order of their definition."""
    for module in MODULES:
        importlib.import_module(f"nearside.claims.{module}")
    return _claims


def find(patterns: list[str]) -> list[Claim]:
    """Claims by name, by prefix (`nvme` matches `nvme.*`) or by pattern (`nvme.*.seq.*`); all without a pattern."""
    claims = all_claims()
    if not patterns:
        return list(claims.values())
    found: dict[str, Claim] = {}
    for pattern in patterns:
        names = [n for n in claims if n == pattern or n.startswith(f"{pattern}.") or fnmatch.fnmatchcase(n, pattern)]
        if not names:
            raise NearsideError(f"no claim is called {pattern!r}; `nearside claim list` shows all {len(claims)}")
        found |= {name: claims[name] for name in names}
    return [c for name, c in claims.items() if name in found]
