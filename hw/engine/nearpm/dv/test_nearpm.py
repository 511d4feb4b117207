"""The crash-consistency engine."""

from hdl import simulate


def test_unit():
    simulate(
        "nearpm_unit_tb",
        "cocotb_nearpm_unit",
        filelists=["hw/engine/nearpm/nearpm_unit.f"],
        extra_sources=["nearpm_unit_tb.sv"],
    )
