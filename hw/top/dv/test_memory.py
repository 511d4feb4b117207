# SPDX-License-Identifier: Apache-2.0
"""The memory of the shell by itself."""

import pytest
from hdl import simulate


def test_memory_stop():
    simulate(
        "memory_tb",
        "cocotb_memory",
        filelists=["hw/top/shell.f"],
        extra_sources=["memory_tb.sv"],
    )


@pytest.mark.parametrize(
    ("credits", "beside"),
    [(8, 2), *(pytest.param(*p, marks=pytest.mark.slow) for p in [(8, 0), (0, 3), (4, 12), (1, 1)])],
)
def test_memory_credits_beside_the_controller(credits, beside):
    """An engine has fewer lines outstanding while the controller has any there; the controller has no such limit."""
    simulate(
        "memory_tb",
        "cocotb_credits",
        filelists=["hw/top/shell.f"],
        extra_sources=["memory_tb.sv"],
        parameters={"Credits": credits, "Beside": beside},
        env={"CREDITS": str(credits), "BESIDE": str(beside)},
    )


@pytest.mark.parametrize("limit", [4096, 3 * 4096])
def test_memory_bounds(limit):
    """The engine may access nothing of one of the two channels, or less than of the other one."""
    simulate(
        "memory_tb",
        "cocotb_memory",
        filelists=["hw/top/shell.f"],
        extra_sources=["memory_tb.sv"],
        parameters={"Credits": 0, "Limit": f"64'd{limit}"},
        env={"LIMIT": str(limit)},
    )
