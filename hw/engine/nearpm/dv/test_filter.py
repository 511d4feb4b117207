# SPDX-License-Identifier: Apache-2.0
"""The conflict filter and the table of commands."""

import pytest
from hdl import simulate

LISTS = ["hw/engine/nearpm/nearpm_table.f", "hw/engine/nearpm/nearpm_filter.f"]
SOURCES = ["../../../lib/dv/stable_check.sv", "../rtl/nearpm_save_filter.sv", "filter_tb.sv"]


@pytest.mark.parametrize(
    ("channels", "channel", "cuts"),
    [(2, 1, 2), *(pytest.param(*p, marks=pytest.mark.long) for p in [(1, 0, 4), (4, 2, 20)])],
)
def test_filter(channels, channel, cuts):
    simulate(
        "filter_tb",
        "cocotb_filter",
        filelists=LISTS,
        extra_sources=SOURCES,
        parameters={"NumChannels": channels, "Channel": channel},
        env={"CHANNELS": str(channels), "CHANNEL": str(channel), "CUTS": str(cuts)},
    )
