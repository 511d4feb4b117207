# SPDX-License-Identifier: Apache-2.0
"""The models of experiments: the one place where they open devices."""

from __future__ import annotations

from typing import Any

from nearside._native import NearsideError
from nearside.device import BuildProgress, Design, Device
from nearside.renamed import renamed

MODELS = {
    "rtl": "the SystemVerilog, cycle by cycle",
    "fast": "the transaction-level model",
    "yosys": "synthesis of the SystemVerilog, no simulation",
}
SIMULATORS = ("rtl", "fast")


def check(model: str) -> None:
    """Refuses an unknown model, before anything long starts."""
    if model not in MODELS:
        raise NearsideError(f"no model is called {model!r}: allowed are {', '.join(MODELS)}")


@renamed(engine="model")
def open_device(design: Design, model: str, build: BuildProgress | None = None, **options: Any) -> Device:
    """A device of the design on a model; raises a one-line error if the model can't simulate the design."""
    check(model)
    return Device(design, build, model=model, **options)
