"""Nearside: a near-data-processing NVM device in RTL, with link, host and driver around it.

    from nearside import Design, Device

    device = Device(Design.load("default"))
    device.write(b"hello", offset=0)
    data, report = device.read(5)

All times that a device reports are simulated.
"""

from nearside._native import NearsideError
from nearside.device import Design, Device, LateReadsWarning, compile_design, media_profile, root
from nearside.tables import sort_table

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
