# SPDX-License-Identifier: Apache-2.0
"""The sorter core as a block."""

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
def test_sorter_input_orders():
    """Long runs, so that the start and end of a merge do not hide stalls within it."""
    simulate(
        "sorter_tb",
        "cocotb_sorter",
        filelists=["hw/engine/sorter/sorter.f"],
        extra_sources=["sorter_tb.sv"],
        parameters={"Leaves": 8, "RunRows": 64},
        testcase="sort_adversarial_inputs_at_full_rate",
    )
