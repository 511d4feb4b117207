"""The access hook and the table of commands."""

import pytest
from hdl import simulate

LISTS = ["hw/engine/nearpm/nearpm_table.f", "hw/engine/nearpm/nearpm_hook.f"]
SOURCES = ["../../../lib/dv/stable_check.sv", "hook_tb.sv"]


@pytest.mark.parametrize(("channels", "channel"), [(2, 1), pytest.param(1, 0, marks=pytest.mark.slow)])
def test_hook(channels, channel):
    simulate(
        "hook_tb",
        "cocotb_hook",
        filelists=LISTS,
        extra_sources=SOURCES,
        parameters={"NumChannels": channels, "Channel": channel},
        env={"CHANNELS": str(channels), "CHANNEL": str(channel)},
    )
