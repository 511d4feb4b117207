"""The sorter by itself."""

import pytest
from hdl import simulate


@pytest.mark.parametrize(("leaves", "run_rows"), [(8, 4), pytest.param(2, 2, marks=pytest.mark.slow)])
def test_sorter(leaves, run_rows):
    simulate(
        "sorter_tb",
        "cocotb_sorter",
        filelists=["hw/engine/sorter/sorter.f"],
        extra_sources=["sorter_tb.sv"],
        parameters={"Leaves": leaves, "RunRows": run_rows},
    )


@pytest.mark.slow
def test_orders():
    """Runs that are so long that what begins and ends a merge doesn't hide what it loses within."""
    simulate(
        "sorter_tb",
        "cocotb_sorter",
        filelists=["hw/engine/sorter/sorter.f"],
        extra_sources=["sorter_tb.sv"],
        parameters={"Leaves": 8, "RunRows": 64},
        testcase="adversarial_inputs",
    )
