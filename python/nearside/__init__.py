# SPDX-License-Identifier: Apache-2.0
"""Nearside: a near-data-processing NVM device in RTL, with link, host and driver around it.

    from nearside import Design, Device

    device = Device(Design.load("default"))
    device.write(b"hello", offset=0)
    data, report = device.read(5)

All times that a device reports are simulated.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nearside._native import NearsideError
    from nearside.device import Design, Device, LateReadsWarning, compile_design, media_profile, root
    from nearside.tables import sort_table

# Modules of names. They are imported on first use, so that the command line starts at once.
_MODULES = {"NearsideError": "nearside._native", "sort_table": "nearside.tables"}

__all__ = [
    "Design",
    "Device",
    "LateReadsWarning",
    "NearsideError",
    "compile_design",
    "media_profile",
    "root",
    "sort_table",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES.get(name, "nearside.device")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
