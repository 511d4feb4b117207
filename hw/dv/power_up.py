# SPDX-License-Identifier: Apache-2.0
"""Loaded into every simulation before the tests: drives the inputs (`*_i`, `*_ni`) of the top from time zero on.

Clocks are low, resets become active, all other inputs are 0. Registers and memories start as POWER_UP selects
(hdl.py). Inputs do not: otherwise an input that a test never drives would differ from seed to seed.

Resets are inactive for the first evaluation and active from the second one on, both at time zero. Verilator
reacts only to edges of an asynchronous reset: one that is active from the start resets no block with a stopped clock.
"""

import re
import warnings

import cocotb
from cocotb import simulator
from cocotb.handle import Immediate, ValueObjectBase

warnings.filterwarnings("ignore", message=f"No tests were discovered in module: {__name__}")


def reset() -> None:
    """Makes the resets active."""
    for handle, level in RESETS.items():
        handle.value = Immediate(level)


RESETS = {}
for _name in dir(cocotb.top):
    _handle = getattr(cocotb.top, _name)
    if not _name.endswith(("_i", "_ni")) or not isinstance(_handle, ValueObjectBase):
        continue
    _is_reset = re.fullmatch(r"rst(_\w+)?_n?i", _name) is not None
    _active_low = _name.endswith("_ni")
    if _is_reset:
        RESETS[_handle] = 0 if _active_low else 1
    _handle.value = Immediate(1 if _is_reset and _active_low else 0)
FIRST = simulator.register_rwsynch_callback(reset)  # kept, or it would not be called
