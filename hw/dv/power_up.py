"""Loaded into every simulation before the tests: holds clocks low and resets active from time zero.

All else starts with random values. If these did too, the first clock edge could find the reset released, and
assertions would see the random state.
"""

import re
import warnings

import cocotb
from cocotb.handle import Immediate

warnings.filterwarnings("ignore", message=f"No tests were discovered in module: {__name__}")
for _name in dir(cocotb.top):
    if re.fullmatch(r"(clk|rst)(_\w+)?_n?i", _name):
        getattr(cocotb.top, _name).value = Immediate(0 if _name.startswith("clk") or _name.endswith("_ni") else 1)
