"""Runs the tests of the NVMe controller."""

from hdl import simulate

SOURCES = {"filelists": ["hw/ip/nvme_ctrl/nvme_ctrl.f"], "extra_sources": ["nvme_ctrl_tb.sv"]}


def test_ctrl():
    simulate("nvme_ctrl_tb", "cocotb_ctrl", **SOURCES)
