"""The engines that an experiment may ask for: the one place where a device is opened with one."""

from __future__ import annotations

import inspect
from typing import Any

from nearside._native import NearsideError
from nearside.device import BuildProgress, Design, Device

ENGINES = {
    "rtl": "the SystemVerilog, cycle by cycle",
    "fast": "the transaction-level model",
    "yosys": "synthesis of the SystemVerilog, no simulation",
}
SIMULATORS = ("rtl", "fast")


def check(engine: str) -> None:
    """Refuses an engine that there is none of, or that this build doesn't have, before anything long begins."""
    if engine not in ENGINES:
        raise NearsideError(f"no engine is called {engine!r}: allowed are {', '.join(ENGINES)}")
    if engine == "fast" and not _chosen_by_name():
        raise NearsideError("the engine fast is not in this build of nearside; run with --engine rtl")


def _chosen_by_name() -> bool:
    return "engine" in inspect.signature(Device.__init__).parameters


def open_device(design: Design, engine: str, build: BuildProgress | None = None, **options: Any) -> Device:
    """A device of the design on an engine; one that can't do the design says so in one line."""
    check(engine)
    if _chosen_by_name():
        options["engine"] = engine
    return Device(design, build, **options)
