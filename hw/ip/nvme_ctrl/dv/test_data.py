"""Runs the tests of the NVMe data path."""

import pytest
from hdl import simulate

SOURCES = {"filelists": ["hw/ip/nvme_ctrl/nvme_data.f"], "extra_sources": ["nvme_data_tb.sv"]}


@pytest.mark.parametrize("channels", [2])
def test_data(channels):
    simulate("nvme_data_tb", "cocotb_data", parameters={"NumChannels": channels}, **SOURCES)
