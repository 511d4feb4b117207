"""The engines that an experiment may ask for: the one place where a device is opened with one."""

from __future__ import annotations

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
    """Refuses an engine that there is none of, before anything long begins."""
    if engine not in ENGINES:
        raise NearsideError(f"no engine is called {engine!r}: allowed are {', '.join(ENGINES)}")


def open_device(design: Design, engine: str, build: BuildProgress | None = None, **options: Any) -> Device:
    """A device of the design on an engine; one that can't do the design says so in one line."""
    check(engine)
    return Device(design, build, engine=engine, **options)
